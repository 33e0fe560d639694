/* A mesh, and lines of placements for it: the first line is what --mesh has, the rest a placements
 * file. Any bytes are read or refused with one line; placements that are read, printed and read
 * again are the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void refused(iso_code c, const iso_error *err) {
  if (c != ISO_USAGE && c != ISO_FORMAT && c != ISO_LIMIT) abort();
  if (!*err->msg || strchr(err->msg, '\n')) abort();
}

static void read_again(plc *x) {
  const size_t n = x->n_lines;
  for (size_t i = 0; i < n; i++) {
    if (x->line[i].varies) continue;
    if (!plc_line_for(x, x->line[i].name, x->line[i].output)) abort();
    const char *text = plc_print(x, &x->line[i].place, &x->steps);
    if (strstr(text, "times the whole")) continue; /* no way to write that */
    const char *line = iso_arena_printf(&x->steps, "again = %s", text);
    if (plc_lines_parse(x, line, "again")) abort();
    const plc_line *l = &x->line[x->n_lines - 1];
    if (!plc_same(x, &l->place, &x->line[i].place)) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  char *text = malloc(n + 1);
  if (!text || (n && memchr(data, 0, n))) return free(text), 0; /* what is read has none */
  memcpy(text, data, n);
  text[n] = 0;
  char *rest = strchr(text, '\n');
  if (rest) *rest++ = 0;
  iso_error err = {0};
  plc x = {.err = &err};
  iso_arena keep = {0};
  iso_code c = plc_mesh_parse(&keep, text, &x.mesh, &err);
  if (!c && rest) c = plc_lines_parse(&x, rest, "lines");
  if (c) refused(c, &err);
  else read_again(&x);
  iso_arena_fini(&x.steps);
  iso_arena_fini(&keep);
  free(text);
  return 0;
}
