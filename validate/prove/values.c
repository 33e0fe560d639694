/* A case in numbers: the left side of a rule element by element, for tests of definitions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove/cases_int.h"

enum { LEAST_UNKNOWN = -4, MOST_UNKNOWN = 64, MAX_UNKNOWN = 3 };

/* The numbers of the names that are given; the rest 0. */
static double *numbers_given(const sc *c, const sc_point *p) {
  double *v = calloc(c->store.n_syms + 1, sizeof *v);
  for (size_t i = 0; v && i < c->store.n_syms; i++)
    for (size_t k = 0; k < p->n && strchr("sa", c->store.sym[i].role); k++)
      if (!strcmp(c->store.sym[i].name, p->name[k])) v[i] = (double)p->value[k];
  return v;
}

static double off_by(sc_cases *k, size_t bound, const double *v) {
  return fabs(sc_number(k->c, k->c->here.bound_size[bound].to, v) -
              v[sc_word(k->c, k->c->here.bound_size[bound].from, 0)]);
}

static bool agrees(sc_cases *k, const double *v) {
  sc *c = k->c;
  for (size_t i = 0; i < c->here.n_bound_sizes;
       i++) /* names that others gave way to keep their least value */
    for (size_t q = 0; q < c->store.n_syms; q++)
      if (c->store.sym[q].role == 'q' && c->store.sym[q].has_low &&
          v[q] < (double)c->store.sym[q].low &&
          sx_occurs(c, sc_node(c, X_SYM, &(uint32_t){(uint32_t)q}, 1), c->here.bound_size[i].to))
        return false;
  for (size_t i = 0; i < c->here.n_bound_sizes; i++)
    if (off_by(k, i, v) > 1e-9) return false;
  for (size_t i = 0; i < k->n; i++)
    if ((sc_number(c, k->guess[i].cond, v) > 0) != k->guess[i].holds) return false;
  return true;
}

/* Unknown numbers that one equation alone gives. Returns: how many of them are left. */
static size_t solve_in_numbers(sc_cases *k, double *v, size_t *unknown, size_t n) {
  sc *c = k->c;
  for (size_t b = 0; b < c->here.n_bound_sizes; b++) {
    size_t at = n, times = 0;
    for (size_t i = 0; i < n; i++) {
      const sx x = sc_node(c, X_SYM, &(uint32_t){(uint32_t)unknown[i]}, 1);
      if (c->here.bound_size[b].from == x || sx_occurs(c, x, c->here.bound_size[b].to))
        at = i, times++;
    }
    if (times != 1) continue;
    double u = LEAST_UNKNOWN;
    for (v[unknown[at]] = u; u <= 8 * MOST_UNKNOWN && off_by(k, b, v) > 1e-9;) v[unknown[at]] = ++u;
    unknown[at] = unknown[--n];
    b = SIZE_MAX; /* from the first again */
  }
  return n;
}

/* Whether the numbers given meet the case, with some numbers for the symbols derived from them.
 * Returns: then these in v. */
static bool settle(sc_cases *k, double *v) {
  sc *c = k->c;
  size_t unknown[64], n = 0;
  for (size_t i = 0; i < c->store.n_syms; i++) {
    bool occurs = false;
    const sx x = c->store.sym[i].role == 'q' ? sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1) : 0;
    for (size_t b = 0; x && b < c->here.n_bound_sizes && !occurs; b++)
      occurs = c->here.bound_size[b].from == x || sx_occurs(c, x, c->here.bound_size[b].to);
    for (size_t g = 0; x && g < k->n && !occurs; g++) occurs = sx_occurs(c, x, k->guess[g].cond);
    if (occurs && n == sizeof unknown / sizeof *unknown) return false;
    if (occurs) unknown[n++] = i;
  }
  n = solve_in_numbers(k, v, unknown, n);
  if (n > MAX_UNKNOWN) return false;
  for (size_t i = 0; i < n; i++) v[unknown[i]] = LEAST_UNKNOWN;
  for (;;) {
    if (agrees(k, v)) return true;
    size_t i = 0;
    while (i < n && v[unknown[i]] == MOST_UNKNOWN) v[unknown[i++]] = LEAST_UNKNOWN;
    if (i == n) return false;
    v[unknown[i]]++;
  }
}

bool sc_case_meets(sc_cases *k) {
  double *v = numbers_given(k->c, k->at->given);
  const bool yes = v && settle(k, v);
  free(v);
  return yes;
}

/* Where a function's argument lies outside of its domain at this element: its conditions on inner
 * indices are left out. */
static bool outside(sc *c, const sx *idx, uint32_t rank, const double *v) {
  for (size_t i = 0; i < c->here.n_domain; i++) {
    bool inner = false;
    for (size_t s = 0; s < c->store.n_syms && !inner; s++) {
      if (c->store.sym[s].role != 'x') continue;
      const sx x = sc_node(c, X_SYM, &(uint32_t){(uint32_t)s}, 1);
      bool own = false;
      for (uint32_t d = 0; d < rank; d++) own |= idx[d] == x;
      inner = !own && sx_occurs(c, x, c->here.domain[i]);
    }
    if (!inner && !(sc_number(c, c->here.domain[i], v) > 0)) return true;
  }
  return false;
}

bool sc_case_in_numbers(sc_cases *k, const pt_tensor *t) {
  sc *c = k->c;
  sc_numbers *out = k->at->out;
  rule_shape *shape = &out->shape;
  sx idx[RULE_MAX_RANK];
  int64_t n = 1;
  for (uint32_t i = 0; i < t->rank; i++) idx[i] = sc_index(c, t->dim[i]);
  const sx x = pt_at(c, t, idx);
  double *v = c->fault.failed ? NULL : numbers_given(c, k->at->given), *got = NULL;
  bool ok = v && settle(k, v);
  *shape = (rule_shape){.rank = t->rank};
  for (uint32_t i = 0; i < t->rank && ok; i++) {
    shape->dim[i] = llround(sc_number(c, t->dim[i], v));
    ok = !__builtin_mul_overflow(n, shape->dim[i] < 0 ? 0 : shape->dim[i], &n);
  }
  got = ok ? calloc((size_t)n + 1, sizeof *got) : NULL;
  for (int64_t e = 0; e < n && got; e++) {
    int64_t rest = e;
    for (uint32_t i = shape->rank; i-- > 0; rest /= shape->dim[i])
      if (idx[i] != c->zero) v[sc_word(c, idx[i], 0)] = (double)(rest % shape->dim[i]);
    got[e] = outside(c, idx, t->rank, v) ? NAN : sc_number(c, x, v);
  }
  if (got) out->kind = t->kind, out->integers = t->narrow ? (rule_dtype)t->narrow : RULE_I64;
  free(out->value);
  out->value = got;
  free(v);
  return got != NULL;
}

bool sc_values(const rule *r, rule_schemas *schemas, const sc_point *at, sc_numbers *out) {
  sc *c = calloc(1, sizeof *c);
  sc_cases *k = calloc(1, sizeof *k);
  *out = (sc_numbers){.reason = "out of memory"};
  if (c && k && sc_init(c, r, schemas, NULL)) {
    c->budget.max_work = 4 * SC_MAX_WORK; /* a test waits */
    c->hooks.value_of = at->value_of;
    c->hooks.value_ctx = at->ctx;
    c->reading.machine = at->machine;
    k->c = c;
    k->at = &(sc_wanted){at, out};
    sc_declare_names(c);
    if (!c->fault.failed) sc_prove_case(k);
    const bool no_case = !c->fault.failed && !k->why[0] && !out->value;
    out->undefined = (c->fault.undefined || no_case) && !out->value;
    snprintf(out->reason, sizeof out->reason, "%s",
             k->why[0] ? k->why
             : no_case ? "no case has these numbers"
                       : c->fault.reason);
  }
  if (c) sc_fini(c);
  free(c);
  free(k);
  return out->value != NULL;
}
