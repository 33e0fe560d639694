/* Terms and rules as text: the inverse of parse.c.
 *
 * Arguments are printed by position up to the last that is not at its default, keyword-only ones by
 * name where they are not at theirs; the parser fills in the rest. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "rules/rules_int.h"

/* ---- text ---- */

static void text_add(rule_text *t, const char *s, size_t n) {
  if (t->failed) return;
  if (!iso_grow(t->p, t->cap, t->len + n + 1)) {
    t->failed = true;
    return;
  }
  memcpy(t->p + t->len, s, n);
  t->len += n;
  t->p[t->len] = '\0';
}

void rule_text_str(rule_text *t, const char *s) { text_add(t, s, strlen(s)); }

void rule_text_fmt(rule_text *t, const char *fmt, ...) {
  char buf[128]; /* callers print numbers and short names */
  va_list ap;
  va_start(ap, fmt);
  const int n = vsnprintf(buf, sizeof buf, fmt, ap);
  va_end(ap);
  if (n < 0 || (size_t)n >= sizeof buf) t->failed = true;
  else text_add(t, buf, (size_t)n);
}

char *rule_text_take(rule_text *t) {
  if (!t->failed && t->p == NULL) text_add(t, "", 0);
  if (t->failed) {
    free(t->p);
    t->p = NULL;
  }
  return t->p;
}

const char *rule_float_print(double f, char *buf) {
  if (isnan(f)) return "nan";
  if (isinf(f)) return f > 0 ? "inf" : "-inf";
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buf, 32, "%.*g", digits, f);
    const double back = strtod(buf, NULL);
    if (memcmp(&back, &f, sizeof f) == 0) break;
  }
  if (strpbrk(buf, ".e") == NULL) strcat(buf, ".0");
  return buf;
}

void rule_text_quoted(rule_text *t, const char *s) {
  rule_text_str(t, "\"");
  for (; *s != '\0'; s++) {
    const unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') {
      const char pair[2] = {'\\', *s};
      text_add(t, pair, 2);
    } else if (c == '\n') {
      rule_text_str(t, "\\n");
    } else if (c < 32 || c == 127) {
      rule_text_fmt(t, "\\x%02x", c);
    } else {
      text_add(t, s, 1);
    }
  }
  rule_text_str(t, "\"");
}

/* ---- terms ---- */

static void print_term(rule_text *out, const rule_term *t, rule_schemas *s,
                       const char *const *vars);

static void print_children(rule_text *out, const rule_term *t, rule_schemas *s,
                           const char *const *vars) {
  for (uint32_t i = 0; i < t->n; i++) {
    rule_text_str(out, " ");
    print_term(out, t->child[i], s, vars);
  }
}

static void print_call(rule_text *out, const rule_term *t, rule_schemas *s,
                       const char *const *vars) {
  const rule_schema *schema = NULL;
  if (s != NULL && !rule_schemas_get(s, t->u.s, &schema)) out->failed = true;
  if (schema == NULL || schema->n_args != t->n) {
    print_children(out, t, s, vars);
    return;
  }
  uint32_t n = 0; /* arguments by position */
  for (uint32_t i = 0; i < t->n && !schema->arg[i].kwarg_only; i++)
    if (schema->arg[i].deflt == NULL || !rule_term_eq(schema->arg[i].deflt, t->child[i])) n = i + 1;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_arg *arg = &schema->arg[i];
    const bool by_name =
        arg->kwarg_only && (arg->deflt == NULL || !rule_term_eq(arg->deflt, t->child[i]));
    if (i >= n && !by_name) continue;
    rule_text_str(out, by_name ? " :" : " ");
    if (by_name) {
      rule_text_str(out, arg->name);
      rule_text_str(out, " ");
    }
    print_term(out, t->child[i], s, vars);
  }
}

static void print_term(rule_text *out, const rule_term *t, rule_schemas *s,
                       const char *const *vars) {
  char buf[40];
  switch (t->kind) {
  case RULE_VAR:
    if (vars != NULL) rule_text_str(out, vars[t->u.i]);
    else rule_text_fmt(out, "x%" PRId64, t->u.i);
    break;
  case RULE_OP:
  case RULE_EXPR:
    rule_text_str(out, "(");
    rule_text_str(out, t->u.s);
    if (t->kind == RULE_OP) print_call(out, t, s, vars);
    else print_children(out, t, s, vars);
    rule_text_str(out, ")");
    break;
  case RULE_LIST:
    rule_text_str(out, "(list");
    print_children(out, t, s, vars);
    rule_text_str(out, ")");
    break;
  case RULE_INT: rule_text_fmt(out, "%" PRId64, t->u.i); break;
  case RULE_FLOAT: rule_text_str(out, rule_float_print(t->u.f, buf)); break;
  case RULE_BOOLEAN: rule_text_str(out, t->u.i ? "true" : "false"); break;
  case RULE_NONE: rule_text_str(out, "none"); break;
  case RULE_STRING: rule_text_quoted(out, t->u.s); break;
  case RULE_DTYPE: rule_text_str(out, rule_dtype_name((rule_dtype)t->u.i)); break;
  case RULE_NAME: rule_text_str(out, t->u.s); break;
  }
}

char *rule_term_print(const rule_term *t, rule_schemas *s, const char *const *vars) {
  rule_text out = {0};
  print_term(&out, t, s, vars);
  return rule_text_take(&out);
}

/* ---- rules ---- */

static void print_variable(rule_text *out, const rule_variable *v) {
  rule_text_str(out, "(var ");
  rule_text_str(out, v->name);
  rule_text_fmt(out, " %s ", rule_variable_kind(v));
  if (v->any_shape) {
    rule_text_str(out, "_)");
    return;
  }
  rule_text_str(out, v->leading ? "(..." : "(");
  for (uint32_t i = 0; i < v->n_dims; i++) {
    if (i > 0 || v->leading) rule_text_str(out, " ");
    if (v->dim[i]->kind == RULE_NONE) rule_text_str(out, "_");
    else print_term(out, v->dim[i], NULL, NULL);
  }
  rule_text_str(out, "))");
}

static void print_bound(rule_text *out, const rule_term *t) {
  rule_text_str(out, " ");
  if (t != NULL) print_term(out, t, NULL, NULL);
  else rule_text_str(out, "none");
}

/* The conditions, ranges of index tensors among them. */
static void print_where(rule_text *out, const rule *r) {
  rule_text_str(out, "\n  (where");
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_variable *v = &r->var[i];
    if (v->low == NULL && v->high == NULL) continue;
    rule_text_str(out, " (in ");
    rule_text_str(out, v->name);
    print_bound(out, v->low);
    print_bound(out, v->high);
    rule_text_str(out, ")");
  }
  for (uint32_t i = 0; i < r->n_where; i++) {
    rule_text_str(out, " ");
    print_term(out, r->where[i], NULL, NULL);
  }
  rule_text_str(out, ")");
}

static void print_optional(rule_text *out, const rule *r) {
  if (r->reads_literals) rule_text_str(out, "\n  (literals read)");
  if (r->float_class != NULL) {
    rule_text_str(out, "\n  (float ");
    rule_text_str(out, r->float_class);
    rule_text_str(out, ")");
  }
  if (r->n_relative > 0) {
    rule_text_str(out, "\n  (relative-to");
    for (uint32_t i = 0; i < r->n_relative; i++) {
      rule_text_str(out, " ");
      rule_text_str(out, r->relative_to[i]);
    }
    rule_text_str(out, ")");
  }
  if (r->claimed != RULE_UNKNOWN || r->scope != RULE_SCOPE_NONE) {
    rule_text_str(out, "\n  (evidence ");
    rule_text_str(out, rule_status_name(r->claimed));
    if (r->scope != RULE_SCOPE_NONE) {
      rule_text_str(out, " ");
      rule_text_quoted(out, rule_scope_name(r->scope));
    }
    rule_text_str(out, ")");
  }
}

/* The variables' names, malloc'ed. */
static const char **names_of(const rule *r) {
  const char **name = malloc((r->n_vars + 1u) * sizeof *name);
  for (uint32_t i = 0; name != NULL && i < r->n_vars; i++) name[i] = r->var[i].name;
  return name;
}

static void print_rule(rule_text *out, const rule *r, rule_schemas *s, const char *const *vars) {
  rule_text_str(out, "(rule ");
  rule_text_str(out, r->name);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    rule_text_str(out, i == 0 ? "\n  " : " ");
    print_variable(out, &r->var[i]);
  }
  for (uint32_t i = 0; i < r->n_attrs; i++) {
    const char kind = r->attr[i].kind;
    rule_text_str(out, "\n  (attr ");
    rule_text_str(out, r->attr[i].name);
    rule_text_str(out, kind == 'i' ? " int)" : kind == 'f' ? " float)" : " ints)");
  }
  rule_text_str(out, "\n  (lhs ");
  print_term(out, r->lhs, s, vars);
  rule_text_str(out, ")\n  (rhs ");
  print_term(out, r->rhs, s, vars);
  rule_text_str(out, ")");
  print_where(out, r);
  print_optional(out, r);
  rule_text_str(out, ")\n");
}

/* Shared by the two below: `side` is NULL for the whole rule. */
static char *print(const rule *r, const rule_term *side) {
  rule_schemas *s = NULL;
  const char **vars = names_of(r);
  rule_text out = {0};
  if (vars == NULL || rule_schemas_new(&s, NULL) != ISO_OK) out.failed = true;
  else if (side != NULL) print_term(&out, side, s, vars);
  else print_rule(&out, r, s, vars);
  free(vars);
  rule_schemas_free(s);
  return rule_text_take(&out);
}

char *rule_print(const rule *r) { return print(r, NULL); }
char *rule_side_print(const rule *r, bool rhs) { return print(r, rhs ? r->rhs : r->lhs); }
