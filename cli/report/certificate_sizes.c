#include "cli/report/certificate_sizes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes as text ---- */

static void put_size(FILE *f, const rule_term *t);

/* Operands of operators that bind closer than a sum are put in parentheses. */
static void put_operand(FILE *f, const rule_term *t) {
  const bool plain = t->kind == RULE_NAME || (t->kind == RULE_INT && t->u.i >= 0);
  if (!plain) fputc('(', f);
  put_size(f, t);
  if (!plain) fputc(')', f);
}

static void put_size(FILE *f, const rule_term *t) {
  const bool call = t->kind == RULE_EXPR && t->u.s[0] == 'm'; /* min, max */
  if (t->kind == RULE_INT) fprintf(f, "%" PRId64, t->u.i);
  if (t->kind == RULE_NAME) fputs(t->u.s, f);
  if (t->kind != RULE_EXPR) return;
  if (call) fprintf(f, "%s(", t->u.s);
  else if (t->n == 1) fputs(t->u.s, f);
  for (uint32_t i = 0; i < t->n; i++) {
    if (i && call) fputs(", ", f);
    else if (i) fprintf(f, " %s ", t->u.s);
    if (call) put_size(f, t->child[i]);
    else put_operand(f, t->child[i]);
  }
  if (call) fputc(')', f);
}

static json_t *size_json(const rule_term *t) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  put_size(f, t);
  const bool failed = fclose(f) != 0;
  json_t *j = failed ? NULL : json_pack("{s:s}", "size", text);
  free(text);
  return j;
}

json_t *certificate_argument(const rule_term *t) {
  switch (t->kind) {
  case RULE_VAR: return json_pack("{s:I}", "ref", (json_int_t)t->u.i);
  case RULE_INT: return json_integer(t->u.i);
  case RULE_FLOAT:
    if (isfinite(t->u.f)) return json_real(t->u.f);
    return json_pack("{s:s}", "float", isnan(t->u.f) ? "nan" : t->u.f > 0 ? "inf" : "-inf");
  case RULE_BOOLEAN: return json_boolean(t->u.i);
  case RULE_STRING: return json_string(t->u.s);
  case RULE_DTYPE: return json_pack("{s:s}", "dtype", rule_dtype_name((rule_dtype)t->u.i));
  case RULE_NAME:
  case RULE_EXPR: return size_json(t);
  case RULE_LIST: {
    json_t *a = json_array();
    for (uint32_t i = 0; a && i < t->n; i++)
      if (json_array_append_new(a, certificate_argument(t->child[i]))) return json_decref(a), NULL;
    return a;
  }
  default: return json_null();
  }
}

/* ---- the chain ---- */

static json_t *symbol(const synth_symbol *s) {
  json_t *o = json_pack("{s:s, s:I}", "name", s->name, "min", (json_int_t)s->min);
  if (o && s->max < INT64_MAX && json_object_set_new(o, "max", json_integer(s->max)))
    return json_decref(o), NULL;
  return o;
}

static json_t *call(const synth_sized_call *x) {
  json_t *args = json_array();
  for (uint32_t i = 0; args && i < x->call->n; i++)
    if (json_array_append_new(args, certificate_argument(x->call->child[i])))
      return json_decref(args), NULL;
  return json_pack("{s:I, s:o}", "term", (json_int_t)x->term, "args", args);
}

static json_t *step(const synth_sized_step *x) {
  static const char *const how[] = {NULL, "whole", "shared", "table"};
  if (how[x->how])
    return json_pack("{s:I, s:s}", "step", (json_int_t)x->step, "proved", how[x->how]);
  if (!x->n_names) return json_integer((json_int_t)x->step);
  json_t *names = json_object();
  for (uint32_t i = 0; names && i < x->n_names; i++)
    if (json_object_set_new(names, x->name[i], certificate_argument(x->value[i])))
      return json_decref(names), NULL;
  return json_pack("{s:I, s:o}", "step", (json_int_t)x->step, "names", names);
}

json_t *certificate_sizes(const synth_result *r) {
  const synth_certificate *x = r->certificate;
  json_t *symbols = json_array(), *calls = json_array(), *steps = json_array();
  bool fine = symbols && calls && steps;
  for (size_t i = 0; i < r->scope.n_symbols && fine; i++)
    fine = !json_array_append_new(symbols, symbol(&r->scope.symbol[i]));
  for (size_t i = 0; i < x->n_sized_calls && fine; i++)
    fine = !json_array_append_new(calls, call(&x->sized_call[i]));
  for (size_t i = 0; i < x->n_sized_steps && fine; i++)
    fine = !json_array_append_new(steps, step(&x->sized_step[i]));
  json_t *j = json_pack("{s:o, s:o, s:o}", "symbols", symbols, "calls", calls, "steps", steps);
  if (!fine) json_decref(j);
  return fine ? j : NULL;
}
