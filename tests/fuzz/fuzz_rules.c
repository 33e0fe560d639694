/* Rule files: a parsed rule prints, and the printed text parses and prints as itself. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char *print_all(const rule_set *s) {
  char *all = calloc(1, 1);
  size_t len = 0;
  for (size_t i = 0; i < rule_set_count(s); i++) {
    char *one = rule_print(rule_set_at(s, i));
    if (!one || !all) abort();
    const size_t more = strlen(one);
    all = realloc(all, len + more + 1);
    if (!all) abort();
    memcpy(all + len, one, more + 1);
    len += more;
    free(one);
  }
  return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  rule_set *first = NULL, *second = NULL;
  iso_error err;
  if (rule_set_parse((const char *)data, n, "fuzz", &first, &err) != ISO_OK) return 0;
  char *text = print_all(first);
  if (rule_set_parse(text, SIZE_MAX, "printed", &second, &err) != ISO_OK) abort();
  char *again = print_all(second);
  if (rule_set_count(first) != rule_set_count(second) || strcmp(text, again) != 0) abort();
  for (size_t i = 0; i < rule_set_count(first); i++) {
    const rule *a = rule_set_at(first, i), *b = rule_set_at(second, i);
    if (!rule_term_eq(a->lhs, b->lhs) || !rule_term_eq(a->rhs, b->rhs)) abort();
  }
  free(text);
  free(again);
  rule_set_free(first);
  rule_set_free(second);
  return 0;
}
