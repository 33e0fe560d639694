/* Variables of rules: the tensors that they stand for. */
#include <string.h>

#include "rules/rules.h"

/* Integers of few bits wrap elsewhere than those of many: a rule is about one type of them. */
static const struct {
  const char *text;
  char kind;
  rule_dtype narrow, held;
} kinds[] = {{"f", 'f', 0, RULE_F64},          {"c", 'c', 0, RULE_C128},
             {"b", 'b', 0, RULE_BOOL},         {"i", 'i', 0, RULE_I64},
             {"i32", 'i', RULE_I32, RULE_I32}, {"i16", 'i', RULE_I16, RULE_I16},
             {"i8", 'i', RULE_I8, RULE_I8},    {"u8", 'i', RULE_U8, RULE_U8}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static size_t row_of(const rule_variable *v) {
  size_t i = 0;
  while (i + 1 < N_KINDS && (kinds[i].kind != v->kind || kinds[i].narrow != v->narrow)) i++;
  return i;
}

const char *rule_variable_kind(const rule_variable *v) { return kinds[row_of(v)].text; }

rule_dtype rule_variable_dtype(const rule_variable *v) { return kinds[row_of(v)].held; }

bool rule_variable_read_kind(rule_variable *v, const char *text) {
  for (size_t i = 0; i < N_KINDS; i++)
    if (strcmp(kinds[i].text, text) == 0)
      return v->kind = kinds[i].kind, v->narrow = kinds[i].narrow, true;
  return false;
}

void rule_variable_set_dtype(rule_variable *v, rule_dtype d) {
  v->kind = rule_dtype_is_float(d) ? 'f' : rule_dtype_is_complex(d) ? 'c' : 'i';
  if (d == RULE_BOOL) v->kind = 'b';
  v->narrow = v->kind == 'i' && d != RULE_I64 ? d : 0;
}

bool rule_variable_takes(const rule_variable *v, rule_dtype d) {
  rule_variable own = {0};
  rule_variable_set_dtype(&own, d);
  return own.kind == v->kind && own.narrow == v->narrow;
}
