/* Values of terms over leaves, and whether a parameter was rounded from one. */
#include "cli/config/relations_int.h"
#include "egraph/base/rng.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_BOUND = 512 };

typedef struct evaluation {
  const cap_graph *g;
  const rule_oracle *oracle;
  rule_tensor **value; /* by node */
  iso_arena arena;
  iso_error *err;
} evaluation;

typedef struct bound { /* tensors that stand for the variables of one call */
  rule_tensor *at[MAX_BOUND];
  uint32_t n;
} bound;

/* An argument with its tensors numbered into `b`. */
static iso_code bind(evaluation *x, const rule_term *t, bound *b, const rule_term **out) {
  iso_code c = ISO_OK;
  *out = t;
  if (t->kind == RULE_VAR || t->kind == RULE_OP) {
    if (b->n == MAX_BOUND) return iso_fail(x->err, ISO_LIMIT, "too many tensors in one call");
    c = rel_value(x->g, t, x->value, x->oracle, &b->at[b->n], x->err);
    if (!c) *out = rule_var(&x->arena, b->n++);
  } else if (t->kind == RULE_LIST) {
    const rule_term **child = iso_arena_alloc(&x->arena, (t->n + 1) * sizeof *child);
    c = child ? ISO_OK : nomem(x->err);
    for (uint32_t i = 0; i < t->n && !c; i++) c = bind(x, t->child[i], b, &child[i]);
    if (!c) *out = rule_list(&x->arena, child, t->n);
  }
  return c ? c : *out ? ISO_OK : nomem(x->err);
}

iso_code rel_value(const cap_graph *g, const rule_term *t, rule_tensor **value,
                   const rule_oracle *oracle, rule_tensor **out, iso_error *err) {
  if (t->kind == RULE_VAR && value[t->u.i]) return *out = rule_tensor_ref(value[t->u.i]), ISO_OK;
  if (t->kind == RULE_VAR)
    return iso_fail(err, ISO_USAGE, "\"%.80s\" depends on inputs", g->node[t->u.i].id);
  evaluation x = {.g = g, .oracle = oracle, .value = value, .err = err};
  iso_arena_init(&x.arena);
  bound *b = calloc(1, sizeof *b);
  const rule_term **child = iso_arena_alloc(&x.arena, (t->n + 1) * sizeof *child);
  iso_code c = b && child ? ISO_OK : nomem(err);
  size_t n = 0;
  for (uint32_t i = 0; i < t->n && !c; i++) c = bind(&x, t->child[i], b, &child[i]);
  const rule_term *call = c ? NULL : rule_op(&x.arena, t->u.s, child, t->n);
  if (!c) c = call ? oracle->call(oracle->ctx, call, b->at, true, out, 1, &n, err) : nomem(err);
  for (uint32_t i = 0; b && i < b->n; i++) rule_tensor_unref(b->at[i]);
  free(b);
  iso_arena_fini(&x.arena);
  return c;
}

static bool all_known(const rule_term *t, rule_tensor *const *value) {
  if (t->kind == RULE_VAR) return value[t->u.i] != NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!all_known(t->child[i], value)) return false;
  return true;
}

iso_code relations_values(const cap_graph *g, const bool *only, const rule_oracle *oracle,
                          rule_tensor ***out, iso_error *err) {
  rule_tensor **value = *out = calloc(g->n_nodes + 1, sizeof *value);
  iso_code c = value ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const cap_node *n = &g->node[i];
    if ((only && !only[i]) || n->kind == CAP_INPUT) continue;
    if (n->kind != CAP_OP) c = rule_tensor_to_float64(n->value, &value[i], err);
    else if (n->n_outputs == 1 && all_known(n->call, value) && !rule_draws(g->schemas, n->call)) {
      iso_error ignored;
      /* A node that cannot be run has no value; the comparison says why. */
      c = rel_value(g, n->call, value, oracle, &value[i], &ignored);
      if (c == ISO_NOMEM) nomem(err);
      else if (c) c = ISO_OK, value[i] = NULL;
    }
  }
  return c;
}

/* ---- rounding ---- */

/* Half a unit in the last place of 1. */
static double half_ulp(rule_dtype d) {
  switch (d) {
  case RULE_F64: return DBL_EPSILON / 2;
  case RULE_F32: return FLT_EPSILON / 2;
  case RULE_F16: return 0x1p-11;
  case RULE_BF16: return 0x1p-8 / 2;
  default: return 0;
  }
}

/* Each number up or down by half a unit of the dtype that it was computed in. Owns: the caller
 * unrefs. */
static iso_code disturbed(const rule_tensor *v, double by, iso_rng *rng, rule_tensor **out,
                          iso_error *err) {
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t i = 0; i < v->numel && !c; i++)
    rule_tensor_set(*out, i, rule_tensor_get(v, i) * (iso_rng_below(rng, 2) ? 1 + by : 1 - by));
  return c;
}

/* The value of `term` where all that it is computed from is disturbed: leaves and steps. */
static iso_code run_disturbed(const relations_held *h, double by, iso_rng *rng, rule_tensor **out,
                              iso_error *err) {
  const cap_graph *g = h->g;
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value), *v;
  iso_code c = value ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    if (!h->value[i]) continue;
    if (!rule_dtype_is_float(h->value[i]->dtype) || rule_dtype_is_complex(h->value[i]->dtype)) {
      value[i] = rule_tensor_ref(h->value[i]);
      continue;
    }
    if (g->node[i].kind != CAP_OP) v = rule_tensor_ref(h->value[i]);
    else if ((c = rel_value(g, g->node[i].call, value, h->oracle, &v, err))) break;
    c = disturbed(v, by, rng, &value[i], err);
    rule_tensor_unref(v);
  }
  if (!c) c = rel_value(g, h->term, value, h->oracle, out, err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  return c;
}

/* How far each element of `v` moves with that. Owns: `out`. */
static iso_code spread(const relations_held *h, const rule_tensor *v, double by, double **out,
                       iso_error *err) {
  enum { RUNS = 4 };
  iso_rng rng = iso_rng_new(UINT64_C(0x666f6c64), 0);
  iso_code c = (*out = calloc((size_t)v->numel + 1, sizeof **out)) ? ISO_OK : nomem(err);
  for (int n = 0; n < RUNS && !c; n++) {
    rule_tensor *now;
    if ((c = run_disturbed(h, by, &rng, &now, err))) break;
    for (int64_t i = 0; i < v->numel && now->numel == v->numel; i++)
      (*out)[i] = fmax((*out)[i], fabs(rule_tensor_get(now, i) - rule_tensor_get(v, i)));
    rule_tensor_unref(now);
  }
  return c;
}

iso_code relations_rounded(const relations_held *h, const rule_tensor *stored, const rule_tensor *v,
                           bool *fine, double *off, iso_error *err) {
  enum { STEPS = 16 }; /* that were rounded behind one element */
  const double u = half_ulp(stored->dtype);
  double most = 0, *moves = NULL;
  for (int64_t i = 0; i < stored->numel; i++) most = fmax(most, fabs(rule_tensor_get(stored, i)));
  *off = 0;
  *fine = u > 0 && isfinite(most) && stored->numel == v->numel;
  iso_code c = *fine ? spread(h, v, u, &moves, err) : ISO_OK;
  for (int64_t i = 0; i < stored->numel && *fine && !c; i++) {
    const double x = rule_tensor_get(stored, i), by = fabs(x - rule_tensor_get(v, i));
    *fine = by <= STEPS * (u * fabs(x) + moves[i]); /* and is a number */
    if (most > 0) *off = fmax(*off, by / most);
  }
  free(moves);
  return c;
}
