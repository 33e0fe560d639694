/* Settings of any bytes: they are read or refused with one line that names file and line; settings
 * that were read are then checked against the table of options. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_line(const iso_error *err) {
  if (strncmp(err->msg, "fuzz:", 5) != 0 || err->msg[5] < '1' || err->msg[5] > '9' ||
      strchr(err->msg, '\n'))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  toml t;
  iso_error err;
  const iso_code c = toml_parse((const char *)data, n, "fuzz", &t, &err);
  if (c == ISO_FORMAT) check_line(&err);
  else if (c) abort();
  for (size_t i = 0; !c && i < t.n; i++) {
    const toml_entry *e = &t.entry[i];
    size_t bytes = strlen(e->table) + strlen(e->key);
    if (e->kind == TOML_STRING || e->kind == TOML_INTEGER || e->kind == TOML_FLOAT)
      bytes += strlen(e->text);
    for (size_t k = 0; e->kind == TOML_STRINGS && k < e->n_items; k++) bytes += strlen(e->item[k]);
    if (e->line < 1 || bytes > n) abort();
  }
  if (!c && config_check(&t, "fuzz", &err) == ISO_FORMAT) check_line(&err);
  toml_free(&t);
  return 0;
}
