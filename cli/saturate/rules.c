/* Rules of workload files: guards, tested in the search; conditions, tested before an application;
 * capture-avoiding substitution. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/saturate/saturate.h"
#include "egraph/base/vec.h"

enum { MAX_TESTS = 8 };
typedef enum test_kind {
  T_DISTINCT,
  T_NO_ZERO,
  T_HAS_CONST,
  T_HAS_SYMBOL,
  T_HAS_EITHER, /* when */
  T_IS_NOT_ZERO,
  T_IS_CONST,
  T_IS_SYM,
  T_CONST_OR_DISTINCT,
  T_NOT_SAME,
  T_TERMS_EQUAL /* if */
} test_kind;

typedef struct term_of {
  eg_pattern *p;
  size_t *var; /* of the rule, for each of its own; SIZE_MAX: the fresh one */
} term_of;

typedef struct one_test {
  test_kind kind;
  size_t a, b; /* variables */
  term_of left, right;
} one_test;

struct cli_sat_test {
  cli_sat_language *l;
  one_test when[MAX_TESTS], cond[MAX_TESTS];
  size_t n_when, n_cond;
  eg_op zero;
  /* capture-avoid */
  size_t v2, e;
  term_of plain, renamed;
};

static const struct {
  const char *name;
  test_kind kind;
  int n_vars; /* -1: terms */
  bool in_when;
} known[] = {{"distinct", T_DISTINCT, 2, true},
             {"no-zero", T_NO_ZERO, 1, true},
             {"has-const", T_HAS_CONST, 1, true},
             {"has-symbol", T_HAS_SYMBOL, 1, true},
             {"has-const-or-symbol", T_HAS_EITHER, 1, true},
             {"is-not-zero", T_IS_NOT_ZERO, 1, false},
             {"is-const", T_IS_CONST, 1, false},
             {"is-sym", T_IS_SYM, 1, false},
             {"is-const-or-distinct-var", T_CONST_OR_DISTINCT, 2, false},
             {"is-not-same-var", T_NOT_SAME, 2, false},
             {"terms-equal", T_TERMS_EQUAL, -1, false}};

/* ---- leaves ---- */

unsigned cli_sat_leaf_kind(const cli_sat_language *l, const char *name) {
  const char *d = *name == '-' ? name + 1 : name;
  if (l->numbers && *d && strspn(d, "0123456789") == strlen(d)) return SAT_NUMBER;
  if (l->bools && (!strcmp(name, "true") || !strcmp(name, "false"))) return SAT_BOOL;
  return SAT_SYMBOL;
}

/* Kinds of leaves per class, made anew when the graph has changed: there are few leaves. */
static unsigned kind_of(cli_sat_language *l, const eg_sat *s, eg_class c) {
  if (l->kind_of != s || l->version != eg_sat_version(s)) {
    if (!iso_grow(l->kind, l->cap_kind, eg_sat_count_ids(s) + 1)) {
      l->failed = "out of memory for guards";
      return 0;
    }
    memset(l->kind, 0, eg_sat_count_ids(s));
    for (uint32_t i = 0; i < eg_sat_count_ops(s); i++) {
      eg_class at;
      if (eg_sat_op_arity(s, (eg_op){i}) == 0 && eg_sat_lookup(s, (eg_op){i}, NULL, &at))
        l->kind[at.i] |= (unsigned char)cli_sat_leaf_kind(l, eg_sat_op_name(s, (eg_op){i}));
    }
    l->kind_of = s;
    l->version = eg_sat_version(s);
  }
  return l->kind[eg_sat_find(s, c).i];
}

/* ---- tests ---- */

static bool guard_holds(const cli_sat_test *t, const one_test *x, const eg_sat *s,
                        const eg_class *var) {
  const eg_class a = var[x->a];
  eg_class zero;
  switch (x->kind) {
  case T_DISTINCT: return eg_sat_find(s, a).i != eg_sat_find(s, var[x->b]).i;
  case T_NO_ZERO: return !eg_sat_lookup(s, t->zero, NULL, &zero) || zero.i != eg_sat_find(s, a).i;
  case T_HAS_CONST: return kind_of(t->l, s, a) & (SAT_NUMBER | SAT_BOOL);
  case T_HAS_SYMBOL: return kind_of(t->l, s, a) & SAT_SYMBOL;
  default: return kind_of(t->l, s, a) != 0;
  }
}

static bool guard(void *ctx, const eg_sat *s, const eg_class *var) {
  const cli_sat_test *t = ctx;
  for (size_t i = 0; i < t->n_when; i++)
    if (!guard_holds(t, &t->when[i], s, var)) return false;
  return true;
}

static bool has_symbol(const cli_sat_language *l, const eg_sat *s, eg_class c) {
  for (eg_row r = eg_sat_first(s, c); r.i; r = eg_sat_next(s, r)) {
    const eg_op op = eg_sat_row_op(s, r);
    if (eg_sat_op_arity(s, op) == 0 && cli_sat_leaf_kind(l, eg_sat_op_name(s, op)) == SAT_SYMBOL)
      return true;
  }
  return false;
}

static bool is_const(const cli_sat_test *t, const eg_sat *s, eg_class c) {
  double v;
  if (t->l->analysis == SAT_LAMBDA) return cli_sat_lambda_is_const(s, c);
  return t->l->analysis == SAT_FOLD_MATH && cli_sat_math_value(s, c, &v);
}

static iso_code build(eg_sat *s, const term_of *t, const eg_class *var, eg_class fresh,
                      eg_class *out, iso_error *err) {
  eg_class own[64];
  const size_t n = eg_pattern_count_vars(t->p);
  for (size_t i = 0; i < n; i++) own[i] = t->var[i] == SIZE_MAX ? fresh : var[t->var[i]];
  return eg_sat_build(s, t->p, own, out, err);
}

static iso_code condition_holds(const cli_sat_test *t, const one_test *x, eg_sat *s,
                                const eg_class *var, bool *holds, iso_error *err) {
  const eg_class a = var[x->a], b = var[x->b];
  const bool distinct = eg_sat_find(s, a).i != eg_sat_find(s, b).i;
  double v = 1;
  switch (x->kind) {
  case T_IS_NOT_ZERO:
    *holds = !is_const(t, s, a) || (cli_sat_math_value(s, a, &v) && v != 0);
    return ISO_OK;
  case T_IS_CONST: *holds = is_const(t, s, a); return ISO_OK;
  case T_IS_SYM: *holds = has_symbol(t->l, s, a); return ISO_OK;
  case T_CONST_OR_DISTINCT:
    *holds = distinct && (is_const(t, s, a) || has_symbol(t->l, s, a));
    return ISO_OK;
  case T_NOT_SAME: *holds = distinct; return ISO_OK;
  default: break;
  }
  eg_class left, right;
  iso_code code = build(s, &x->left, var, a, &left, err);
  if (!code) code = build(s, &x->right, var, a, &right, err);
  if (!code) *holds = eg_sat_find(s, left).i == eg_sat_find(s, right).i;
  return code;
}

static iso_code condition(void *ctx, eg_sat *s, const eg_class *var, bool *holds, iso_error *err) {
  const cli_sat_test *t = ctx;
  *holds = true;
  for (size_t i = 0; i < t->n_cond && *holds; i++) {
    const iso_code code = condition_holds(t, &t->cond[i], s, var, holds, err);
    if (code) return code;
  }
  return ISO_OK;
}

/* Renames where the bound variable is free in the substituted term: the new name comes from the
 * class that matched. */
static iso_code avoid_capture(void *ctx, eg_sat *s, eg_class root, const eg_class *var,
                              iso_error *err) {
  const cli_sat_test *t = ctx;
  const bool rename = cli_sat_lambda_is_free(s, var[t->e], var[t->v2]);
  eg_class fresh = root, made;
  iso_code code = ISO_OK;
  if (rename) {
    char name[24];
    eg_op op;
    const int n = snprintf(name, sizeof name, "_%u", root.i);
    code = eg_sat_op(s, name, (size_t)n, 0, &op, err);
    if (!code) code = eg_sat_add(s, op, NULL, &fresh, err);
  }
  if (!code) code = build(s, rename ? &t->renamed : &t->plain, var, fresh, &made, err);
  return code ? code : eg_sat_merge(s, root, made, (eg_why){EG_WHY_GIVEN, 1}, err);
}

/* ---- reading ---- */

static size_t var_at(const eg_pattern *lhs, const char *name, size_t n) {
  for (size_t i = 0; i < eg_pattern_count_vars(lhs); i++)
    if (strlen(eg_pattern_var(lhs, i)) == n && memcmp(eg_pattern_var(lhs, i), name, n) == 0)
      return i;
  return SIZE_MAX;
}

static iso_code read_var(const eg_pattern *lhs, const eg_sexp *e, size_t *out, iso_error *err) {
  *out = e && !e->is_list ? var_at(lhs, e->text, e->n) : SIZE_MAX;
  if (*out == SIZE_MAX) return iso_fail(err, ISO_FORMAT, "a variable of the left side is expected");
  return ISO_OK;
}

/* `fresh` NULL: none is allowed. */
static iso_code read_term(eg_sat *s, const eg_pattern *lhs, const eg_sexp *e, const eg_sexp *fresh,
                          term_of *out, iso_error *err) {
  if (!e) return iso_fail(err, ISO_FORMAT, "a term is missing");
  const iso_code code = eg_pattern_parse(s, e->text, e->n, &out->p, err);
  if (code) return code;
  const size_t n = eg_pattern_count_vars(out->p);
  if (n > 64) return iso_fail(err, ISO_LIMIT, "more than 64 variables");
  if (!(out->var = calloc(n + 1, sizeof *out->var)))
    return iso_fail(err, ISO_NOMEM, "out of memory for a rule");
  for (size_t i = 0; i < n; i++) {
    const char *name = eg_pattern_var(out->p, i);
    out->var[i] = var_at(lhs, name, strlen(name));
    if (out->var[i] == SIZE_MAX && !eg_sexp_is(fresh, name))
      return iso_fail(err, ISO_FORMAT, "variable %s is not on the left side", name);
  }
  return ISO_OK;
}

static iso_code read_test(eg_sat *s, const eg_pattern *lhs, const eg_sexp *e, bool when,
                          one_test *out, iso_error *err) {
  for (size_t i = 0; e->is_list && i < sizeof known / sizeof *known; i++) {
    if (known[i].in_when != when || !eg_sexp_is(e->first, known[i].name)) continue;
    const eg_sexp *x = e->first->next, *y = x ? x->next : NULL;
    out->kind = known[i].kind;
    if (known[i].n_vars < 0) {
      const iso_code code = read_term(s, lhs, x, NULL, &out->left, err);
      return code ? code : read_term(s, lhs, y, NULL, &out->right, err);
    }
    const iso_code code = read_var(lhs, x, &out->a, err);
    return code || known[i].n_vars < 2 ? code : read_var(lhs, y, &out->b, err);
  }
  return iso_fail(err, ISO_FORMAT, "unknown %s: %.*s", when ? "guard" : "condition",
                  (int)(e->n < 60 ? e->n : 60), e->text);
}

static iso_code read_tests(eg_sat *s, const eg_pattern *lhs, const eg_sexp *list, bool when,
                           one_test *out, size_t *n, iso_error *err) {
  for (const eg_sexp *e = list ? list->first->next : NULL; e; e = e->next) {
    if (*n == MAX_TESTS) return iso_fail(err, ISO_LIMIT, "more than %d guards", MAX_TESTS);
    const iso_code code = read_test(s, lhs, e, when, &out[(*n)++], err);
    if (code) return code;
  }
  return ISO_OK;
}

static iso_code read_avoid(eg_sat *s, const eg_pattern *lhs, const eg_sexp *e, cli_sat_test *t,
                           iso_error *err) {
  const eg_sexp *fresh = e->first->next, *v2 = fresh ? fresh->next : NULL,
                *in = v2 ? v2->next : NULL;
  iso_code code = read_var(lhs, v2, &t->v2, err);
  if (!code) code = read_var(lhs, in, &t->e, err);
  if (!code) code = read_term(s, lhs, in->next, NULL, &t->plain, err);
  return code ? code : read_term(s, lhs, in->next->next, fresh, &t->renamed, err);
}

static iso_code add_rule(cli_sat_language *l, eg_sat *s, const eg_workload_rule *w, cli_sat_test *t,
                         eg_rules *r, iso_error *err) {
  eg_rule rule = {.name = w->name, .lhs = w->lhs, .rhs = w->rhs, .ctx = t, .never_done = w->multi};
  eg_pattern *lhs = NULL;
  iso_code code = eg_pattern_parse(s, w->lhs, strlen(w->lhs), &lhs, err);
  if (!code) code = eg_sat_op(s, "0", 1, 0, &t->zero, err);
  if (!code) code = read_tests(s, lhs, w->when, true, t->when, &t->n_when, err);
  if (!code) code = read_tests(s, lhs, w->cond, false, t->cond, &t->n_cond, err);
  if (!code && w->rhs_at->is_list && eg_sexp_is(w->rhs_at->first, "capture-avoid")) {
    if (l->analysis != SAT_LAMBDA)
      code = iso_fail(err, ISO_FORMAT, "capture-avoid needs the analysis lambda");
    if (!code) code = read_avoid(s, lhs, w->rhs_at, t, err);
    rule.rhs = NULL;
    rule.apply = avoid_capture;
  }
  if (t->n_when) rule.guard = guard;
  if (t->n_cond) rule.condition = condition;
  /* Classes only grow: a class that is not distinct, or has a zero, stays so. */
  rule.guard_stays_false = true;
  for (size_t i = 0; i < t->n_when; i++)
    if (t->when[i].kind != T_DISTINCT && t->when[i].kind != T_NO_ZERO)
      rule.guard_stays_false = false;
  if (!code && eg_pattern_count_vars(lhs) > 64)
    code = iso_fail(err, ISO_LIMIT, "more than 64 variables");
  eg_pattern_free(lhs);
  if (code) return iso_prefix(err, "rule %s: ", w->name);
  return eg_rules_add(r, &rule, err);
}

static void term_fini(term_of *t) {
  eg_pattern_free(t->p);
  free(t->var);
}

static void tests_free(cli_sat_language *l) {
  for (size_t i = 0; i < l->n_tests; i++) {
    cli_sat_test *t = l->test[i];
    for (size_t k = 0; k < t->n_cond; k++) {
      term_fini(&t->cond[k].left);
      term_fini(&t->cond[k].right);
    }
    term_fini(&t->plain);
    term_fini(&t->renamed);
    free(t);
  }
  l->n_tests = 0;
}

iso_code cli_sat_language_rules(cli_sat_language *l, eg_sat *s, eg_rules *r, iso_error *err) {
  tests_free(l);
  l->kind_of = NULL;
  for (size_t i = 0; i < l->w->n_rules; i++) {
    cli_sat_test *t = iso_grow(l->test, l->cap_tests, l->n_tests + 1) ? calloc(1, sizeof *t) : NULL;
    if (!t) return iso_fail(err, ISO_NOMEM, "out of memory for a rule");
    t->l = l;
    l->test[l->n_tests++] = t;
    const iso_code code = add_rule(l, s, &l->w->rule[i], t, r, err);
    if (code) return code;
  }
  return ISO_OK;
}

/* ---- the language ---- */

iso_code cli_sat_language_new(const eg_workload *w, cli_sat_language **out, iso_error *err) {
  cli_sat_language *l = calloc(1, sizeof *l);
  if (!l) return iso_fail(err, ISO_NOMEM, "out of memory");
  l->w = w;
  const bool prop = !strcmp(w->language, "prop"), lambda = !strcmp(w->language, "lambda");
  l->numbers = !prop;
  l->bools = prop || lambda;
  bool ok = true;
  if (!strcmp(w->analysis, "const-fold") && (prop || !strcmp(w->language, "math")))
    l->analysis = prop ? SAT_FOLD_PROP : SAT_FOLD_MATH;
  else if (!strcmp(w->analysis, "lambda") && lambda) l->analysis = SAT_LAMBDA;
  else ok = !strcmp(w->analysis, "none");
  if (!ok) {
    free(l);
    return iso_fail(err, ISO_FORMAT, "no analysis \"%s\" for language \"%s\"", w->analysis,
                    w->language);
  }
  *out = l;
  return ISO_OK;
}

eg_sat_analysis cli_sat_language_analysis(cli_sat_language *l) {
  switch (l->analysis) {
  case SAT_FOLD_MATH: return cli_sat_fold_math(l);
  case SAT_FOLD_PROP: return cli_sat_fold_prop(l);
  case SAT_LAMBDA: return cli_sat_lambda(l);
  default: return (eg_sat_analysis){0};
  }
}

iso_code cli_sat_language_error(const cli_sat_language *l, iso_error *err) {
  return l->failed ? iso_fail(err, ISO_NOMEM, "%s", l->failed) : ISO_OK;
}

void cli_sat_language_free(cli_sat_language *l) {
  if (!l) return;
  tests_free(l);
  free(l->test);
  free(l->kind);
  free(l);
}
