/* The surroundings of an operator: numbers and vectors that a parameter may have been made with.
 */
#include "synth/folds/folds.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "rules/names.h"

/* ---- terms ---- */

static const rule_term *checked(finder *f, const rule_term *t) {
  if (!t) f->failed = true;
  return t;
}

const rule_term *fold_node(finder *f, uint32_t node) {
  const rule_term *v = rule_var(f->arena, node);
  return checked(f, f->from->node[node].kind == SYNTH_OP ? rule_op(f->arena, "node", &v, 1) : v);
}

const rule_term *fold_call(finder *f, const char *op, const rule_term *a, const rule_term *b) {
  const rule_term *arg[2] = {a, b};
  return a ? checked(f, rule_op(f->arena, op, arg, b ? 2 : 1)) : NULL;
}

const rule_term *fold_literal(finder *f, double c) {
  const bool whole = c == rint(c) && fabs(c) < 1e6;
  return checked(f, whole ? rule_int(f->arena, (int64_t)c) : rule_float(f->arena, c));
}

const rule_term *fold_reshape(finder *f, const rule_term *t, const rule_shape *shape) {
  const rule_term *size[RULE_MAX_RANK];
  for (uint32_t i = 0; i < shape->rank; i++)
    if (!(size[i] = checked(f, rule_int(f->arena, shape->dim[i])))) return NULL;
  return fold_call(f, OP_RESHAPE, t, checked(f, rule_list(f->arena, size, shape->rank)));
}

/* ---- numbers ---- */

static bool add_number(finder *f, double x) {
  if (!isfinite(x) || x == 0) return true;
  for (size_t i = 0; i < f->n_numbers; i++)
    if (f->number[i] == x) return true;
  if (!iso_grow(f->number, f->cap_numbers, f->n_numbers + 1)) return false;
  f->number[f->n_numbers++] = x;
  return true;
}

static bool add_literals(finder *f, const rule_term *t) {
  if (t->kind == RULE_FLOAT && !add_number(f, t->u.f)) return false;
  if (t->kind == RULE_INT && !add_number(f, (double)t->u.i)) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!add_literals(f, t->child[i])) return false;
  return true;
}

/* Literals first: they are meant as they stand. */
bool fold_collect(finder *f) {
  const synth_graph *g[2] = {f->from, f->to};
  bool fine = true;
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < g[k]->n_nodes && fine; i++)
      if (g[k]->node[i].call) fine = add_literals(f, g[k]->node[i].call);
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < g[k]->n_nodes && fine; i++)
      for (uint32_t d = 0; d < g[k]->node[i].shape.rank && fine; d++) {
        const double n = (double)g[k]->node[i].shape.dim[d];
        fine = n < 2 || (add_number(f, 1 / sqrt(n)) && add_number(f, sqrt(n)) &&
                         add_number(f, 1 / n) && add_number(f, n));
      }
  return fine;
}

/* A loader may have rounded the number before it computed with it. */
static bool may_be_number(const finder *f, double c, double x, double off) {
  return fabs(c - x) <= off ||
         (fold_is_narrow(f) && (fabs(c - rule_dtype_round(RULE_BF16, x)) <= off ||
                                fabs(c - rule_dtype_round(RULE_F16, x)) <= off));
}

bool fold_is_narrow(const finder *f) { return f->ulp > FLT_EPSILON; }

bool fold_number(const finder *f, double c, double off, double *meant) {
  /* A number that the graphs have is taken for another one only where that is beyond doubt. */
  const double graph = fold_is_narrow(f) ? 2 * off : off;
  for (size_t i = 0; i < f->n_numbers; i++) {
    const double x[4] = {f->number[i], -f->number[i], 1 / f->number[i], -1 / f->number[i]};
    for (int k = 0; k < 4; k++)
      if (may_be_number(f, c, x[k], graph)) return *meant = x[k], true;
  }
  if (!isfinite(c) || c == 0) return false;
  const double most = pow(10, floor(log10(fabs(c))));
  for (int digits = 2; digits <= 4; digits++) { /* as people write them */
    const double unit = most / pow(10, digits - 1);
    *meant = rint(c / unit) * unit;
    if (fabs(c - *meant) <= off) return true;
  }
  return false;
}

/* ---- neighbours ---- */

typedef struct walk {
  finder *f;
  uint8_t *at; /* by node: how many operators away, from 1 on */
} walk;

static void reach(walk *w, const rule_term *t, uint8_t at) {
  if (t->kind == RULE_VAR && !w->at[t->u.i]) w->at[t->u.i] = at;
  for (uint32_t i = 0; i < t->n; i++) reach(w, t->child[i], at);
}

/* An operator is near if it reads the node itself or the result of a near operator. */
static bool reads(const walk *w, const rule_term *t, uint8_t far) {
  if (t->kind == RULE_VAR) {
    const uint8_t at = w->at[t->u.i];
    return at && at <= far && (at == 1 || w->f->from->node[t->u.i].call);
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (reads(w, t->child[i], far)) return true;
  return false;
}

/* Walks to the operators near `node`: each step goes to the operators that read a reached node, and
 * to their operands. Leaves are reached, and nothing is read through them. */
static void walk_from(walk *w, uint32_t node) {
  enum { FAR = 5 };
  const synth_graph *g = w->f->from;
  w->at[node] = 1;
  for (uint8_t step = 1; step < FAR; step++) {
    for (size_t i = 0; i < g->n_nodes; i++)
      if (g->node[i].call && !w->at[i] && reads(w, g->node[i].call, step))
        w->at[i] = (uint8_t)(step + 1);
    for (size_t i = 0; i < g->n_nodes; i++)
      if (g->node[i].call && w->at[i] && w->at[i] <= step + 1)
        reach(w, g->node[i].call, (uint8_t)(step + 1));
  }
}

/* ---- vectors ---- */

static double plain(double x, double e) { return x + 0 * e; }
static double one_more(double x, double e) { return 1 + x + 0 * e; }
static double exponential(double x, double e) { return exp(x) + 0 * e; }
static double minus_exponential(double x, double e) { return -exp(x) + 0 * e; }
static double inverse(double x, double e) { return 1 / x + 0 * e; }
static double inverse_root(double x, double e) { return 1 / sqrt(x + e); }
static double root(double x, double e) { return sqrt(x + e); }

enum { PLAIN, ONE_MORE, EXP, MINUS_EXP, INVERSE, INVERSE_ROOT, ROOT, FORMS };
static double (*const form[FORMS])(double, double) = {
    plain, one_more, exponential, minus_exponential, inverse, inverse_root, root};

static const rule_term *written(finder *f, int k, const rule_term *t, double e) {
  if ((k == INVERSE_ROOT || k == ROOT) && e > 0)
    t = fold_call(f, OP_ADD_TENSOR, t, fold_literal(f, e));
  switch (k) {
  case ONE_MORE: return fold_call(f, OP_ADD_TENSOR, t, fold_literal(f, 1));
  case EXP: return fold_call(f, OP_EXP, t, NULL);
  case MINUS_EXP: return fold_call(f, OP_NEG, fold_call(f, OP_EXP, t, NULL), NULL);
  case INVERSE: return fold_call(f, OP_RECIPROCAL, t, NULL);
  case INVERSE_ROOT: return fold_call(f, OP_RSQRT, t, NULL);
  case ROOT: return fold_call(f, OP_SQRT, t, NULL);
  default: return t;
  }
}

typedef struct list {
  vector *of;
  size_t n, cap;
} list;

/* A value that is no number anywhere is left out. */
static void add_form(finder *f, uint32_t node, int k, double e, list *out) {
  const rule_tensor *t = f->value[node];
  double *x = out->n < out->cap ? iso_arena_alloc(f->arena, (size_t)t->numel * sizeof *x) : NULL;
  if (!x) return;
  for (int64_t i = 0; i < t->numel; i++)
    if (!isfinite(x[i] = form[k](rule_tensor_get(t, i), e))) return;
  const rule_term *term = written(f, k, fold_node(f, node), e);
  if (term) out->of[out->n++] = (vector){term, x, t->shape.rank};
}

static void add_forms(finder *f, uint32_t node, list *out) {
  for (int k = 0; k < FORMS; k++) {
    add_form(f, node, k, 0, out);
    for (size_t i = 0; i < f->n_numbers && (k == INVERSE_ROOT || k == ROOT); i++)
      if (f->number[i] > 0 && f->number[i] < 0.1) add_form(f, node, k, f->number[i], out);
  }
}

/* All elements are equal, as of scales and biases that were never trained: many leaves hold that
 * number, and nothing says which one was folded. */
static bool is_one_number(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get(t, i) != rule_tensor_get(t, 0)) return false;
  return true;
}

size_t fold_vectors(finder *f, uint32_t node, int64_t n, vector *out, size_t cap) {
  enum { MOST = 24 }; /* tensors */
  const synth_graph *g = f->from;
  walk w = {f, calloc(g->n_nodes + 1, 1)};
  list all = {out, 0, cap};
  size_t taken = 0;
  f->failed |= !w.at;
  if (w.at) walk_from(&w, node);
  for (uint8_t near = 1; near < 16 && !f->failed; near++)
    for (uint32_t i = 0; i < g->n_nodes && taken < MOST && !f->failed; i++) {
      const rule_tensor *t = f->value[i];
      if (w.at[i] != near || !t || t->numel != n || is_one_number(t)) continue;
      add_forms(f, i, &all);
      taken++;
    }
  free(w.at);
  return all.n;
}
