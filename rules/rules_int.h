/* Private to rules/: helpers that its files share. */
#ifndef RULES_RULES_INT_H
#define RULES_RULES_INT_H

#include "rules/rules.h"

/* Growing text. After memory ran out, further text is dropped and `failed` stays. */
typedef struct rule_text {
  char *p;
  size_t len, cap;
  bool failed;
} rule_text;

void rule_text_str(rule_text *t, const char *s);
void rule_text_fmt(rule_text *t, const char *fmt, ...) ISO_PRINTF(2, 3);
/* Returns: the text, malloc'ed; NULL (and nothing is left) when memory ran out. */
char *rule_text_take(rule_text *t);

/* A double in its shortest form that reads back the same, recognizable as no integer. `buf` has 40
 * bytes. */
const char *rule_float_print(double f, char *buf);
/* A string in quotes. */
void rule_text_quoted(rule_text *t, const char *s);

/* rule_schemas_find that tells an unknown name (*out is NULL) from missing memory. Returns: false
 * for the latter. */
bool rule_schemas_get(rule_schemas *s, const char *name, const rule_schema **out);
/* The type of a list's elements; `t` itself where it is no list. */
rule_arg_type rule_arg_element(rule_arg_type t);

/* rule_set_parse; `all`: duplicates are kept. */
ISO_MUST_USE iso_code rule_set_read(const char *text, size_t n, const char *file, bool all,
                                    rule_set **out, iso_error *err);
/* Add `r` even if the set has an equal rule. */
ISO_MUST_USE iso_code rule_set_append(rule_set *s, const rule *r, iso_error *err);

/* ---- between schema.c and schema_parse.c ---- */

enum { RULE_MAX_ARGS = 128 }; /* of one operator */
iso_code rule_schema_no_memory(iso_error *err);
iso_code rule_parse_schema(iso_arena *a, const char *text, rule_schema **out, iso_error *err);

#endif
