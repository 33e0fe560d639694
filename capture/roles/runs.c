/* Whether a claim makes sense at all: both its sides run at a few numbers of ranks, and give the
 * same there.
 *
 * A rule says nothing where a side is undefined, and an induction must have every step. Most claims
 * that are no good end here, long before a prover looks at them. */
#include <stdlib.h>

#include "egraph/base/rng.h"
#include "egraph/base/vec.h"
#include "capture/roles/roles_int.h"
#include "rules/operators.h"

enum { MOST_RESULTS = 64 };
static const double FAR = 1e-6, LEAST = 0.25;

typedef struct runner {
  roles_work *x;
  rule_tensor **value; /* variables first, then results of calls */
  size_t n, cap;
  iso_rng rng;
  iso_arena a;
} runner;

static bool eval(runner *u, const rule_term *t, const rule_term **out);

static bool arguments(runner *u, const rule_term *t, const rule_term **out) {
  if (t->kind == RULE_OP) return eval(u, t, out);
  if (t->kind != RULE_LIST) {
    *out = t;
    return true;
  }
  const rule_term **child = iso_arena_alloc(&u->a, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; i < t->n; i++)
    if (!child || !arguments(u, t->child[i], &child[i])) return false;
  return (*out = rule_list(&u->a, child, t->n)) != NULL;
}

/* The first result of a call, or the one that a getitem asks for. */
static bool eval(runner *u, const rule_term *t, const rule_term **out) {
  const bool item = t->n == 2 && rule_is_getitem(t->u.s);
  const rule_term *of = item ? t->child[0] : t;
  const size_t k = item ? (size_t)t->child[1]->u.i : 0;
  rule_tensor *result[MOST_RESULTS] = {NULL};
  size_t n = 0;
  iso_error ignored;
  const rule_term **child = iso_arena_alloc(&u->a, (of->n + 1) * sizeof *child);
  if (of->kind != RULE_OP || !child) return false;
  for (uint32_t i = 0; i < of->n; i++)
    if (!arguments(u, of->child[i], &child[i])) return false;
  const rule_term *call = rule_op(&u->a, of->u.s, child, of->n);
  const rule_oracle *o = u->x->q->oracle;
  if (!call || o->call(o->ctx, call, u->value, true, result, MOST_RESULTS, &n, &ignored))
    return false;
  rule_tensor *one = k < n ? rule_tensor_ref(result[k]) : NULL;
  for (size_t i = 0; i < n; i++) rule_tensor_unref(result[i]);
  if (!one || !iso_grow(u->value, u->cap, u->n + 1)) {
    rule_tensor_unref(one);
    return false;
  }
  u->value[u->n] = one;
  return (*out = rule_var(&u->a, (uint32_t)u->n++)) != NULL;
}

/* Integers are 0, or in their declared range. Reals are positive, so that a root is a number. */
static void fill(runner *u, const rule_variable *v, rule_tensor *t) {
  const bool ranged = v->low && v->high, is_float = rule_dtype_is_float(t->dtype);
  const int64_t low = ranged ? v->low->u.i : 0, high = ranged ? v->high->u.i : 1;
  for (int64_t i = 0; i < t->numel; i++)
    if (is_float) rule_tensor_set(t, i, LEAST + iso_rng_uniform(&u->rng));
    else if (high > low)
      rule_tensor_set_int(t, i, low + (int64_t)iso_rng_below(&u->rng, (uint64_t)(high - low)));
}

/* `v`: with its range; its sizes are those of `at`. */
static bool make_variable(runner *u, const rule_variable *at, const rule_variable *v) {
  rule_shape shape = {.rank = v->n_dims};
  rule_tensor *t = NULL;
  iso_error ignored;
  for (uint32_t d = 0; d < v->n_dims; d++) {
    if (at->dim[d]->kind != RULE_INT) return false;
    shape.dim[d] = at->dim[d]->u.i;
  }
  if (!iso_grow(u->value, u->cap, u->n + 1) ||
      rule_tensor_new(rule_variable_dtype(v), &shape, &t, &ignored))
    return false;
  fill(u, v, t);
  u->value[u->n++] = t;
  return true;
}

static bool agree(const runner *u, const rule_term *a, const rule_term *b) {
  const rule_oracle *o = u->x->q->oracle;
  if (a->kind != RULE_VAR || b->kind != RULE_VAR) return true;
  const rule_tensor *one = u->value[a->u.i], *two = u->value[b->u.i];
  return one->dtype == two->dtype && rule_shape_eq(&one->shape, &two->shape) &&
         o->compare(o->ctx, one, two, FAR).equal;
}

static bool run_at(roles_work *x, const rule *r, int64_t a, int64_t b) {
  runner u = {.x = x, .rng = iso_rng_new((uint64_t)a, (uint64_t)b)};
  rule at;
  bool whole = false;
  iso_error ignored;
  iso_arena_init(&u.a);
  const char *name[2] = {"A", "B"};
  const rule_term *value[2] = {rule_int(&u.a, a), rule_int(&u.a, b)}, *out[2];
  const rule_assignment v = {2, name, value, 0};
  rule bare = *r; /* its sizes alone */
  rule_variable *var = iso_arena_alloc(&u.a, (r->n_vars + 1) * sizeof *var);
  for (uint32_t i = 0; var && i < r->n_vars; i++) {
    var[i] = r->var[i];
    var[i].low = var[i].high = NULL;
  }
  bare.var = var;
  bool runs =
      var && value[0] && value[1] && !rule_at(&bare, &v, &u.a, &at, &whole, &ignored) && whole;
  for (uint32_t i = 0; runs && i < at.n_vars; i++) runs = make_variable(&u, &at.var[i], &r->var[i]);
  runs = runs && arguments(&u, at.lhs, &out[0]) && arguments(&u, at.rhs, &out[1]) &&
         agree(&u, out[0], out[1]);
  for (size_t i = 0; i < u.n; i++) rule_tensor_unref(u.value[i]);
  free(u.value);
  iso_arena_fini(&u.a);
  return runs;
}

bool roles_runs(roles_work *x, const rule *r) {
  return run_at(x, r, 1, 1) && run_at(x, r, 1, 2) && run_at(x, r, 3, 2);
}
