/* Findings about rules as JSON and text. The parent prints text from the JSON that workers send, so
 * that text and JSON agree. */
#include "cli/rules/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 256 };

static json_t *text_or_null(const char *s) {
  return s != NULL && *s ? json_string(s) : json_null();
}

/* JSON has no infinities. */
static json_t *number(double v) {
  if (isnan(v)) return json_string("nan");
  if (isinf(v)) return json_string(v > 0 ? "inf" : "-inf");
  return json_real(v);
}

static json_t *element(const rule_tensor *t, int64_t i) {
  if (t->dtype == RULE_BOOL) return json_boolean(rule_tensor_get_int(t, i));
  if (rule_dtype_is_int(t->dtype)) return json_integer((json_int_t)rule_tensor_get_int(t, i));
  if (!rule_dtype_is_complex(t->dtype)) return number(rule_tensor_get(t, i));
  const double im = t->dtype == RULE_C128 ? ((const double *)t->data)[2 * i + 1]
                                          : (double)((const float *)t->data)[2 * i + 1];
  json_t *pair = json_array();
  json_array_append_new(pair, number(rule_tensor_get(t, i)));
  json_array_append_new(pair, number(im));
  return pair;
}

static json_t *tensor_json(const rule_tensor *t) {
  json_t *shape = json_array(), *values = json_array();
  for (uint32_t i = 0; i < t->shape.rank; i++)
    json_array_append_new(shape, json_integer((json_int_t)t->shape.dim[i]));
  for (int64_t i = 0; i < t->numel && i < MAX_VALUES; i++)
    json_array_append_new(values, element(t, i));
  json_t *o = json_pack("{s:s, s:o, s:o}", "dtype", rule_dtype_name(t->dtype), "shape", shape,
                        "values", values);
  if (o != NULL && t->numel > MAX_VALUES) json_object_set_new(o, "cut", json_true());
  return o;
}

static json_t *literal_json(const rule_term *t) {
  if (t->kind == RULE_INT) return json_integer((json_int_t)t->u.i);
  if (t->kind == RULE_FLOAT) return number(t->u.f);
  json_t *a = json_array();
  for (uint32_t i = 0; i < t->n; i++) json_array_append_new(a, literal_json(t->child[i]));
  return a;
}

static json_t *counterexample_json(const rule *r, const val_counterexample *w,
                                   rule_schemas *schemas) {
  if (!w->found) return json_null();
  json_t *sizes = json_object(), *inputs = json_object();
  for (uint32_t i = 0; i < w->n_names; i++)
    json_object_set_new(sizes, w->name[i], literal_json(w->value[i]));
  for (uint32_t i = 0; i < w->r->n_vars; i++)
    json_object_set_new(inputs, w->r->var[i].name, tensor_json(w->bind[i]));
  char *python = rules_python(r, w, schemas);
  json_t *o = json_pack(
      "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "difference",
      w->what == 's'   ? "shape"
      : w->what == 'd' ? "dtype"
                       : "value",
      "sizes", sizes, "inputs", inputs, "lhs", tensor_json(w->lhs), "rhs", tensor_json(w->rhs),
      "index", w->index >= 0 ? json_integer((json_int_t)w->index) : json_null(), "max_abs",
      isfinite(w->max_abs) ? json_real(w->max_abs) : json_null(), "max_rel",
      isfinite(w->max_rel) ? json_real(w->max_rel) : json_null(), "python", text_or_null(python));
  free(python);
  return o;
}

json_t *rules_rests_json(unsigned rests_on) {
  json_t *a = json_array();
  for (size_t i = 0; i < RULE_N_RESTS; i++)
    if (rests_on & rule_rests[i].bits) json_array_append_new(a, json_string(rule_rests[i].text));
  return a;
}

unsigned rules_rests_read(const json_t *words) {
  unsigned bits = 0;
  size_t i;
  json_t *w;
  json_array_foreach(words, i, w) {
    for (size_t k = 0; k < RULE_N_RESTS; k++)
      if (strcmp(json_string_value(w), rule_rests[k].text) == 0) bits |= rule_rests[k].bits;
  }
  return bits;
}

typedef struct said { /* of a rule; texts may be NULL or empty */
  rule_status status;
  unsigned rests_on;
  const char *scope, *method, *float_class, *reason;
} said;

static json_t *entry(const char *file, const rule *r, said s, json_t *counterexample) {
  return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", r->name, "file", file,
                   "status", rule_status_name(s.status), "scope", text_or_null(s.scope), "method",
                   text_or_null(s.method), "rests_on", rules_rests_json(s.rests_on), "float",
                   text_or_null(s.float_class), "counterexample", counterexample, "reason",
                   text_or_null(s.reason));
}

json_t *rules_finding_json(const char *file, const rule *r, const val_finding *f,
                           rule_schemas *schemas) {
  const rule_verdict *v = &f->verdict;
  const bool holds = v->status == RULE_PROVED || v->status == RULE_TESTED;
  char how[RULE_METHOD_TEXT];
  const said s = {v->status,
                  holds ? v->rests_on : 0,
                  holds ? rule_scope_name(v->scope) : NULL,
                  rule_verdict_method(v, how),
                  f->float_class,
                  v->reason};
  json_t *o = entry(file, r, s, counterexample_json(r, &f->counterexample, schemas));
  if (o == NULL) return NULL;
  json_object_set_new(o, "samples", json_integer(v->n_samples));
  json_object_set_new(o, "seed", json_integer((json_int_t)v->seed));
  json_object_set_new(o, "rel_tol", json_real(v->rel_tol));
  return o;
}

json_t *rules_failure_json(const char *file, const rule *r, const char *reason) {
  return entry(file, r, (said){.status = RULE_UNKNOWN, .reason = reason}, json_null());
}

/* ---- text ---- */

static void print_number(FILE *f, const json_t *v) {
  if (json_is_string(v)) fputs(json_string_value(v), f);
  else if (json_is_boolean(v)) fputs(json_is_true(v) ? "true" : "false", f);
  else if (json_is_integer(v)) fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
  else if (json_is_array(v))
    fprintf(f, "%g%+gi", json_number_value(json_array_get(v, 0)),
            json_number_value(json_array_get(v, 1)));
  else fprintf(f, "%.17g", json_real_value(v));
}

/* Nested as the shape says; values that fall behind the cut are dots. */
static void print_nested(FILE *f, const json_t *t, size_t dim, size_t *at) {
  const json_t *shape = json_object_get(t, "shape"), *values = json_object_get(t, "values");
  if (dim == json_array_size(shape)) {
    const json_t *v = json_array_get(values, (*at)++);
    v != NULL ? print_number(f, v) : (void)fputs("...", f);
    return;
  }
  fputc('[', f);
  const json_int_t n = json_integer_value(json_array_get(shape, dim));
  for (json_int_t i = 0; i < n; i++) {
    if (i) fputs(", ", f);
    if (*at > 64) {
      fputs("...", f);
      break;
    }
    print_nested(f, t, dim + 1, at);
  }
  fputc(']', f);
}

static void print_tensor(FILE *f, const char *name, const json_t *t) {
  size_t at = 0;
  const json_t *shape = json_object_get(t, "shape");
  fprintf(f, "    %s = ", name);
  print_nested(f, t, 0, &at);
  fputs("  (", f);
  fputs(json_string_value(json_object_get(t, "dtype")), f);
  for (size_t i = 0; i < json_array_size(shape); i++)
    fprintf(f, "%s%" JSON_INTEGER_FORMAT, i ? "x" : " ",
            json_integer_value(json_array_get(shape, i)));
  fputs(")\n", f);
}

static void print_counterexample(FILE *f, const json_t *w) {
  const char *key;
  json_t *v;
  json_t *sizes = json_object_get(w, "sizes"), *inputs = json_object_get(w, "inputs");
  if (json_object_size(sizes) > 0) {
    char *text = json_dumps(sizes, JSON_REAL_PRECISION(17));
    fprintf(f, "    at %s\n", text != NULL ? text : "?");
    free(text);
  }
  json_object_foreach(inputs, key, v) print_tensor(f, key, v);
  print_tensor(f, "left side", json_object_get(w, "lhs"));
  print_tensor(f, "right side", json_object_get(w, "rhs"));
}

static const char *text_of(const json_t *e, const char *key) {
  const char *s = json_string_value(json_object_get(e, key));
  return s != NULL ? s : "";
}

void rules_entry_text(FILE *f, const json_t *e, bool verbose) {
  const char *status = text_of(e, "status"), *reason = text_of(e, "reason");
  fprintf(f, "%s: %s", text_of(e, "name"), status);
  if (strcmp(status, "proved") == 0 || strcmp(status, "tested") == 0) {
    fprintf(f, ", %s, %s", text_of(e, "scope"), text_of(e, "method"));
    if (*text_of(e, "float")) fprintf(f, ", float %s", text_of(e, "float"));
    if (verbose && *reason) fprintf(f, " (not proved: %s)", reason);
  } else if (*reason) {
    fprintf(f, ": %s", reason);
  }
  fputc('\n', f);
  if (!json_is_null(json_object_get(e, "counterexample")))
    print_counterexample(f, json_object_get(e, "counterexample"));
}
