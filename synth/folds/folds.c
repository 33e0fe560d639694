/* Parameters of one side that were computed, when its model was loaded, from tensors that the other
 * side computes with as it runs: a norm's scale in the weight after it, an adapter that was merged,
 * numbers that were scaled back. The captured values show it, to their last digits. */
#include "synth/folds/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/names.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- a tensor of the other side, read in the parameter's order ---- */

typedef struct source {
  uint32_t node;
  bool turned; /* transposed */
  const rule_tensor *v;
} source;

static double at(const source *s, int64_t i) {
  if (!s->turned) return rule_tensor_get(s->v, i);
  const int64_t rows = s->v->shape.dim[0], columns = s->v->shape.dim[1];
  return rule_tensor_get(s->v, i % rows * columns + i / rows);
}

static const rule_term *as_read(finder *f, const source *s) {
  const rule_term *t = fold_node(f, s->node);
  if (s->turned) return fold_call(f, OP_T, t, NULL);
  return rule_shape_eq(&s->v->shape, &f->t->shape) ? t : fold_reshape(f, t, &f->t->shape);
}

static bool may_be(const finder *f, uint32_t node, bool turned, source *out) {
  const rule_tensor *v = f->value[node];
  if (!v || v->numel != f->t->numel || rule_dtype_is_complex(v->dtype)) return false;
  const rule_shape *a = &v->shape, *b = &f->t->shape;
  if (turned &&
      (a->rank != 2 || b->rank != 2 || a->dim[0] != b->dim[1] || a->dim[0] < 2 || a->dim[1] < 2))
    return false;
  *out = (source){node, turned, v};
  return true;
}

/* ---- one factor ---- */

/* Where the source is largest, among the first elements. */
static int64_t largest(const source *s, int64_t from, int64_t n, int64_t step) {
  int64_t best = from;
  for (int64_t i = 0; i < n; i++)
    if (fabs(at(s, from + i * step)) > fabs(at(s, best))) best = from + i * step;
  return best;
}

static bool is_scaled(const finder *f, const source *s, double c) {
  enum { STEPS = 16 };
  for (int64_t i = 0; i < f->t->numel; i++) {
    const double y = rule_tensor_get(f->t, i);
    if (!(fabs(y - c * at(s, i)) <= STEPS * (f->ulp * fabs(y) + f->least))) return false;
  }
  return true;
}

/* The factor that `y` has of `x`, by least squares, in a sum over elements. A few elements that are
 * far larger than the others tell it alone. */
typedef struct squares {
  double both, own, fourth; /* sums of x y, of x x, and of its square */
} squares;

static void add_to(squares *q, double x, double y) {
  q->both += x * y, q->own += x * x, q->fourth += x * x * x * x;
}

/* How far it may be off: as far as roundings of both shift it in four deviations. `size`: the
 * squares of the numbers that were rounded; `operands`: how far, of itself, by those of operands.
 */
static double off_of(const finder *f, const squares *q, double c, double size, double operands) {
  const double n = q->own * q->own / q->fourth;
  const double rounding = rule_dtype_unit(f->t->dtype, 1) / 4; /* the root of the mean */
  return 4 * rounding * (sqrt(size / q->own / n) + fabs(c) * operands);
}

static bool factor_of_all(const finder *f, const source *s, double *c) {
  squares q = {0};
  for (int64_t i = 0; i < f->t->numel; i++) add_to(&q, at(s, i), rule_tensor_get(f->t, i));
  *c = q.both / q.own;
  const double off = off_of(f, &q, *c, *c * *c * q.own, sqrt(q.fourth) / q.own);
  return fold_number(f, *c, off, c);
}

/* Whether a term computes, and does not only move or cast floats of leaves: a parameter that is
 * these but for rounding was stored in fewer digits, and not made of them. */
static bool computes(const finder *f, const rule_term *t) {
  if (t->kind == RULE_VAR) {
    const synth_node *n = &f->from->node[t->u.i];
    return n->kind == SYNTH_OP ? computes(f, n->call) : !rule_dtype_is_float(n->dtype);
  }
  const rule_operator *o = t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
  bool any = o && !o->moves && !o->cast && !o->identity;
  for (uint32_t i = 0; i < t->n && !any; i++) any = computes(f, t->child[i]);
  return any;
}

static const rule_term *by_number(finder *f, const source *s) {
  enum { LOOKED_AT = 64 };
  const int64_t n = f->t->numel < LOOKED_AT ? f->t->numel : LOOKED_AT, k = largest(s, 0, n, 1);
  double c = rule_tensor_get(f->t, k) / at(s, k);
  if (at(s, k) == 0 || (!fold_is_narrow(f) && !fold_number(f, c, fold_off(f, c), &c)) ||
      !is_scaled(f, s, c) || (fold_is_narrow(f) && !factor_of_all(f, s, &c)))
    return NULL;
  const synth_node *from = &f->from->node[s->node];
  if (c == 1) return from->kind == SYNTH_OP && computes(f, from->call) ? as_read(f, s) : NULL;
  return fold_call(f, OP_MUL_TENSOR, as_read(f, s), fold_literal(f, c));
}

/* ---- a factor for each place of one dimension ---- */

/* In `by` the factors; false where they are none. */
static bool factors(const finder *f, const source *s, uint32_t d, double *by) {
  enum { STEPS = 24 };
  const rule_shape *shape = &f->t->shape;
  int64_t inner = 1, n = shape->dim[d];
  for (uint32_t i = d + 1; i < shape->rank; i++) inner *= shape->dim[i];
  double *most = calloc((size_t)n, sizeof *most);
  bool fine = most != NULL;
  for (int64_t i = 0; i < f->t->numel && fine; i++) {
    const int64_t k = i / inner % n;
    const double x = at(s, i);
    if (fabs(x) > most[k]) most[k] = fabs(x), by[k] = rule_tensor_get(f->t, i) / x;
  }
  for (int64_t k = 0; k < n && fine; k++) fine = most[k] > 0 && isfinite(by[k]);
  for (int64_t i = 0; i < f->t->numel && fine; i++) {
    const double y = rule_tensor_get(f->t, i);
    fine = fabs(y - by[i / inner % n] * at(s, i)) <= STEPS * (f->ulp * fabs(y) + f->least);
  }
  free(most);
  return fine;
}

/* Most sources are refused by their first few elements. */
static bool hopeless(const finder *f, const source *s, uint32_t d) {
  const rule_shape *shape = &f->t->shape;
  int64_t inner = 1;
  for (uint32_t i = d + 1; i < shape->rank; i++) inner *= shape->dim[i];
  /* two elements of one place: neighbours, or a step of the dimension before */
  const int64_t step = inner > 1 ? 1 : shape->dim[d];
  if (step >= f->t->numel) return true;
  const double a = rule_tensor_get(f->t, 0), b = rule_tensor_get(f->t, step);
  return fabs(a * at(s, step) - b * at(s, 0)) > 64 * f->ulp * fabs(a * at(s, step));
}

static const rule_term *by_vector(finder *f, const source *s, fold_of *out) {
  const rule_shape *shape = &f->t->shape;
  const rule_term *found = NULL;
  for (uint32_t d = 0; d < shape->rank && shape->rank > 1 && !found && !f->failed; d++) {
    const int64_t n = shape->dim[d];
    if (n < 2 || n == f->t->numel || hopeless(f, s, d)) continue;
    double *by = iso_arena_alloc(f->arena, (size_t)n * sizeof *by);
    if (!by) return f->failed = true, NULL;
    if (!factors(f, s, d, by)) continue;
    const rule_term *v = fold_product(f, s->node, by, n);
    rule_shape wide = {.rank = shape->rank - d, .dim = {n}};
    for (uint32_t i = 1; i < wide.rank; i++) wide.dim[i] = 1;
    if (!v) continue;
    if (d == 0) out->scale = v, out->by = by;
    found =
        fold_call(f, OP_MUL_TENSOR, as_read(f, s), wide.rank == 1 ? v : fold_reshape(f, v, &wide));
  }
  return found;
}

/* ---- what was added ---- */

static double dot(const rule_tensor *a, const rule_tensor *b, int64_t row, int64_t column) {
  const int64_t n = a->shape.dim[1], columns = b->shape.dim[1];
  double sum = 0;
  for (int64_t k = 0; k < n; k++)
    sum += rule_tensor_get(a, row * n + k) * rule_tensor_get(b, k * columns + column);
  return sum;
}

/* The parameter is the source and `c` times a product of matrices. */
static bool is_merged(const finder *f, const source *s, const rule_tensor *a, const rule_tensor *b,
                      double c) {
  enum { ELEMENT = 16, LARGEST = 8 };
  const int64_t columns = f->t->shape.dim[1];
  double most = 0;
  for (int64_t i = 0; i < f->t->numel; i++) most = fmax(most, fabs(rule_tensor_get(f->t, i)));
  for (int64_t i = 0; i < f->t->numel; i++) {
    const double y = rule_tensor_get(f->t, i),
                 x = at(s, i) + c * dot(a, b, i / columns, i % columns);
    if (!(fabs(y - x) <= f->ulp * (ELEMENT * fabs(y) + LARGEST * most))) return false;
  }
  return true;
}

/* The factor at the element that moved most, in the first row; checked at another one. */
static bool factor_of(const finder *f, const source *s, const rule_tensor *a, const rule_tensor *b,
                      double *c) {
  const int64_t columns = f->t->shape.dim[1];
  int64_t best = 0;
  double far = 0;
  for (int64_t i = 0; i < columns; i++) {
    const double by = fabs(rule_tensor_get(f->t, i) - at(s, i));
    if (by > far) far = by, best = i;
  }
  const double whole = dot(a, b, 0, best);
  if (far == 0 || whole == 0) return false;
  const double rough = (rule_tensor_get(f->t, best) - at(s, best)) / whole;
  finder coarse = *f; /* the difference has fewer digits than the numbers */
  coarse.ulp = f->ulp * fmax(1, fabs(rule_tensor_get(f->t, best)) / far) * 4;
  if (!fold_number(&coarse, rough, fold_off(&coarse, rough), c)) return false;
  const int64_t other = f->t->numel - 1;
  const double y = rule_tensor_get(f->t, other),
               x = at(s, other) + *c * dot(a, b, other / columns, other % columns);
  return fabs(x - y) <= 64 * f->ulp * (fabs(y) + fabs(at(s, other)) + far);
}

/* The factor by all elements. Roundings of the matrices move whole rows and columns of their
 * product.
 */
static bool merged_factor(const finder *f, const source *s, const rule_tensor *a,
                          const rule_tensor *b, double *c) {
  const int64_t columns = f->t->shape.dim[1];
  squares q = {0};
  double size = 0;
  for (int64_t i = 0; i < f->t->numel; i++) {
    const double y = rule_tensor_get(f->t, i);
    add_to(&q, dot(a, b, i / columns, i % columns), y - at(s, i));
    size += y * y;
  }
  const double rounded = sqrt(1.0 / (double)a->numel + 1.0 / (double)b->numel);
  *c = q.both / q.own;
  return fold_number(f, *c, off_of(f, &q, *c, size, rounded), c);
}

static const rule_term *merged(finder *f, const source *s) {
  const rule_shape *shape = &f->t->shape;
  if (shape->rank != 2) return NULL;
  for (uint32_t i = 0; i < f->from->n_nodes; i++) {
    const rule_tensor *a = f->value[i];
    if (!a || a->shape.rank != 2 || a->shape.dim[0] != shape->dim[0] ||
        a->shape.dim[1] >= shape->dim[1] || a->shape.dim[1] >= shape->dim[0])
      continue;
    for (uint32_t k = 0; k < f->from->n_nodes; k++) {
      const rule_tensor *b = f->value[k];
      double c;
      if (!b || b->shape.rank != 2 || b->shape.dim[0] != a->shape.dim[1] ||
          b->shape.dim[1] != shape->dim[1] || !factor_of(f, s, a, b, &c) ||
          !is_merged(f, s, a, b, c))
        continue;
      if (fold_is_narrow(f) && !merged_factor(f, s, a, b, &c)) continue;
      const rule_term *m = fold_call(f, OP_MATMUL, fold_node(f, i), fold_node(f, k));
      if (c != 1) m = fold_call(f, OP_MUL_TENSOR, m, fold_literal(f, c));
      return fold_call(f, OP_ADD_TENSOR, as_read(f, s), m);
    }
  }
  return NULL;
}

/* ---- a parameter ---- */

static const rule_term *from_tensor(finder *f, fold_of *out) {
  source s;
  for (int kind = 0; kind < 3; kind++)
    for (uint32_t i = 0; i < f->from->n_nodes && !f->failed; i++)
      for (int turned = 0; turned < 2; turned++) {
        if (!may_be(f, i, turned, &s)) continue;
        const rule_term *t = kind == 0   ? by_number(f, &s)
                             : kind == 1 ? by_vector(f, &s, out)
                                         : merged(f, &s);
        if (!t) continue;
        out->source = i;
        return t;
      }
  return NULL;
}

static bool mentions(const rule_term *t, uint32_t node) {
  if (t->kind == RULE_VAR) return (uint32_t)t->u.i == node;
  for (uint32_t i = 0; i < t->n; i++)
    if (mentions(t->child[i], node)) return true;
  return false;
}

/* The tensor of the other side that leaf `i` is, bit for bit: -1, none. */
static int64_t same(const finder *f, uint32_t i) {
  const rule_tensor *v = f->to->node[i].value[0];
  for (uint32_t k = 0; k < f->from->n_nodes; k++)
    if (f->value[k] && f->from->node[k].kind == SYNTH_PARAMETER &&
        rule_tensor_same(v, f->from->node[k].value[0]))
      return k;
  return -1;
}

/* The other operand of the operator that reads a vector: a weight, whose source tells where to
 * look. */
static const rule_term *from_beside(finder *f, uint32_t leaf) {
  const synth_graph *g = f->to;
  for (size_t i = 0; i < g->n_nodes; i++) {
    if (!g->node[i].call || !mentions(g->node[i].call, leaf)) continue;
    for (uint32_t k = 0; k < g->n_nodes; k++) {
      const synth_node *n = &g->node[k];
      if (k == leaf || n->kind != SYNTH_PARAMETER || n->shape.rank < 2 ||
          !mentions(g->node[i].call, k))
        continue;
      fold_of w = f->found[k];
      if (w.source < 0) w.source = same(f, k);
      const rule_term *t = w.source < 0 ? NULL : fold_bias(f, &w);
      if (t) return t;
    }
  }
  return NULL;
}

static const rule_term *look(finder *f, uint32_t leaf) {
  f->t = f->to->node[leaf].value[0];
  f->ulp = rule_dtype_unit(f->t->dtype, 1) / 2;
  f->least = rule_dtype_unit(f->t->dtype, 0) / 2;
  const rule_term *t = from_tensor(f, &f->found[leaf]);
  return t || f->t->shape.rank != 1 || f->failed ? t : from_beside(f, leaf);
}

bool synth_generic(const rule_tensor *t) { return st_generic(t); }

/* Matrices first: vectors beside them were computed from the original matrices. */
static bool look_at(finder *f, bool right, const struct synth_leaf_ref *open, size_t n_open,
                    synth_fold *out, size_t *n) {
  for (int vectors = 0; vectors < 2; vectors++)
    for (size_t i = 0; i < n_open && !f->failed; i++) {
      const synth_node *x = &f->to->node[open[i].node];
      if (open[i].right != right || x->kind != SYNTH_PARAMETER ||
          !rule_dtype_is_float(x->value[0]->dtype) || rule_dtype_is_complex(x->value[0]->dtype) ||
          (x->shape.rank < 2) != vectors || !st_generic(x->value[0]))
        continue;
      const rule_term *t = look(f, open[i].node);
      if (t && !f->failed) out[(*n)++] = (synth_fold){right, open[i].node, t};
    }
  return !f->failed;
}

iso_code synth_find_folds(const synth_graph *const graph[2], rule_tensor *const *const value[2],
                          const struct synth_leaf_ref *open, size_t n_open, iso_arena *a,
                          synth_folds *out, iso_error *err) {
  synth_fold *of = iso_arena_alloc(a, (n_open + 1) * sizeof *of);
  bool fine = of != NULL;
  *out = (synth_folds){of, 0};
  for (int side = 0; side < 2 && fine; side++) {
    finder f = {.to = graph[side], .from = graph[!side], .value = value[!side], .arena = a};
    f.found = calloc(f.to->n_nodes + 1, sizeof *f.found);
    for (size_t i = 0; f.found && i < f.to->n_nodes; i++) f.found[i].source = -1;
    fine = f.found && fold_collect(&f) && look_at(&f, side, open, n_open, of, &out->n);
    free(f.found);
    free(f.number);
  }
  return fine ? ISO_OK : nomem(err);
}
