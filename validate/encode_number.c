/* Element expressions as numbers: for tests, which hold the definitions for literal sizes against the operators. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/encode_int.h"
#include "validate/prove_int.h"

static double q_value(const pv_cx *c, uint32_t q) {
  const pv_q v = c->q[q];
  return ldexp((double)v.n / (double)v.d, v.e);
}

static double fn_value(uint32_t f, double x) {
  switch ((pv_fn)f) {
  case PV_LOG: return x > 0 ? log(x) : NAN;
  case PV_ERF: return erf(x);
  case PV_SIN: return sin(x);
  case PV_COS: return cos(x);
  }
  return NAN;
}

/* The sum of the elements of one sequence, or of the products of two. */
static double total(const pv_cx *c, const double *v, pv_id a, pv_id b) {
  const pv_node *p = pv_at(c, a), *q = b ? pv_at(c, b) : NULL;
  double r = 0;
  for (uint32_t i = 0; i < p->n; i++) r += v[pv_words(c, p)[i]] * (q ? v[pv_words(c, q)[i]] : 1);
  return r;
}

/* base^k, a reciprocal of 0 being what the caller says. */
static double power(double base, int32_t k, double no_value) { return k < 0 && fabs(base) <= 0 ? no_value : pow(base, k); }

/* `v`: by id, of all that stands before this node. */
static double node_value(const pv_cx *c, const pv_node *p, const double *v, double no_value) {
  const uint32_t *w = pv_words(c, p);
  double r = 0;
  switch ((pv_op)p->op) {
  case PV_CONST: return q_value(c, w[0]);
  case PV_SUM:
    for (uint32_t i = 0; i < p->n; i += 2) r += q_value(c, w[i]) * v[w[i + 1]];
    return r;
  case PV_PROD:
    r = 1;
    for (uint32_t i = 0; i < p->n; i += 2) r *= power(v[w[i]], (int32_t)w[i + 1], no_value);
    return r;
  case PV_EXP: return exp(v[w[0]]);
  case PV_SQRT: return sqrt(v[w[0]]);
  case PV_FN: return fn_value(w[0], v[w[1]]);
  case PV_POW: return pow(v[w[0]], q_value(c, w[1]));
  case PV_ROOT: return sqrt(2 / acos(-1));
  case PV_MAX:
    r = v[w[0]];
    for (uint32_t i = 1; i < p->n; i++)
      if (v[w[i]] > r || isnan(v[w[i]])) r = v[w[i]];
    return r;
  case PV_ITE: return v[w[v[w[0]] > 0 ? 1 : 2]];
  case PV_SELECT: {
    const pv_node *seq = pv_at(c, w[0]);
    const double at = v[w[1]];
    return at >= 0 && at < seq->n ? v[pv_words(c, seq)[(uint32_t)at]] : NAN;
  }
  case PV_SEQ: return NAN; /* no number */
  case PV_DOT: return total(c, v, w[0], w[1]);
  case PV_RSUM: return total(c, v, w[0], 0);
  case PV_NEGINF: case PV_NEGBIG: return -INFINITY;
  case PV_BOOL: return w[0] != 0;
  case PV_LT: return v[w[0]] < v[w[1]];
  case PV_EQ: return !(v[w[0]] < v[w[1]]) && !(v[w[0]] > v[w[1]]);
  case PV_AND:
    r = 1;
    for (uint32_t i = 0; i < p->n; i++) r = r > 0 && v[w[i]] > 0;
    return r;
  case PV_OR:
    for (uint32_t i = 0; i < p->n; i++) r = r > 0 || v[w[i]] > 0;
    return r;
  case PV_NOT: return !(v[w[0]] > 0);
  }
  return NAN;
}

/* The leaves' numbers: the variables' elements in order. */
static void leaf_values(const rule *r, const pv_id *base, const sc_point *at, double *v) {
  for (uint32_t i = 0; i < r->n_vars; i++) {
    int64_t n = 1, idx[RULE_MAX_RANK] = {0};
    const uint32_t rank = r->var[i].n_dims;
    for (uint32_t k = 0; k < rank; k++) n *= r->var[i].dim[k]->u.i;
    for (int64_t e = 0; e < n; e++) {
      int64_t rest = e;
      for (uint32_t k = rank; k-- > 0; rest /= r->var[i].dim[k]->u.i) idx[k] = rest % r->var[i].dim[k]->u.i;
      v[base[i] + e] = at->value_of(at->ctx, i, idx);
    }
  }
}

static double *in_numbers(const pv_cx *c, const pv_tensor *t, const sc_point *at, double no_value) {
  double *v = calloc((size_t)c->n_leaves + c->n_nodes + 1, sizeof *v), *out = calloc((size_t)t->n + 1, sizeof *out);
  if (v && out) {
    leaf_values(c->r, c->var_base, at, v);
    for (uint32_t i = 0; i < c->n_nodes; i++) v[c->n_leaves + i] = node_value(c, &c->node[i], v, no_value); /* parts come first */
    for (int64_t i = 0; i < t->n; i++) out[i] = v[t->e[i]];
  }
  if (!v) free(out), out = NULL;
  free(v);
  return out;
}

bool pv_values(const rule *r, rule_schemas *schemas, int level, double no_value, const sc_point *at, rule_shape *shape, char *kind,
               double **out, char *reason) {
  pv_cx *c = calloc(1, sizeof *c);
  pv_id *leaf = calloc((size_t)r->n_vars + r->n_attrs + 1, sizeof *leaf), total_leaves = 0;
  *out = NULL;
  snprintf(reason, 200, "out of memory");
  if (c && leaf && pv_lay_out_leaves(r, leaf, leaf + r->n_vars, &total_leaves) && pv_init(c, r, schemas, level, total_leaves)) {
    c->var_base = leaf;
    c->attr_leaf = leaf + r->n_vars;
    const pv_tensor *t = pv_eval_tensor(c, r->lhs);
    snprintf(reason, 200, "%s", c->reason);
    if (t && !c->failed) {
      *shape = t->s;
      *kind = t->kind;
      *out = in_numbers(c, t, at, no_value);
    }
  }
  if (c) pv_fini(c);
  free(c);
  free(leaf);
  return *out != NULL;
}
