/* Vectors of numbers that may have been computed from others. */
#include "synth/folds/folds.h"

#include <math.h>
#include <stdlib.h>

#include "rules/names.h"

enum { MOST = 2048 }; /* forms of vectors */

/* ---- scales ---- */

static bool near(const finder *f, double x, double y) {
  enum { STEPS = 12 };
  return fabs(x - y) <= STEPS * f->ulp * fabs(x);
}

static bool equals(const finder *f, const double *x, const double *a, const double *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!near(f, x[i], b ? a[i] * b[i] : a[i])) return false;
  return true;
}

/* In the shape of a list, so that it can stand beside others. */
static const rule_term *flat(finder *f, const vector *v, int64_t n) {
  return v->rank == 1 ? v->term : fold_reshape(f, v->term, &(rule_shape){.rank = 1, .dim = {n}});
}

static const rule_term *scaled(finder *f, const vector *v, const double *x, int64_t n) {
  const double one = x[0] / v->x[0];
  double c;
  if (v->x[0] == 0 || !fold_number(f, one, fold_off(f, one), &c)) return NULL;
  for (int64_t i = 0; i < n; i++)
    if (!near(f, x[i], c * v->x[i])) return NULL;
  return fold_call(f, OP_MUL_TENSOR, flat(f, v, n), fold_literal(f, c));
}

static const rule_term *product_of(finder *f, const vector *v, size_t n_v, const double *x,
                                   int64_t n) {
  for (size_t i = 0; i < n_v; i++)
    if (equals(f, x, v[i].x, NULL, n)) return flat(f, &v[i], n);
  for (size_t i = 0; i < n_v; i++)
    for (size_t k = i + 1; k < n_v; k++)
      if (equals(f, x, v[i].x, v[k].x, n))
        return fold_call(f, OP_MUL_TENSOR, flat(f, &v[i], n), flat(f, &v[k], n));
  for (size_t i = 0; i < n_v; i++) {
    const rule_term *t = scaled(f, &v[i], x, n);
    if (t) return t;
  }
  return NULL;
}

const rule_term *fold_product(finder *f, uint32_t node, const double *x, int64_t n) {
  vector *v = calloc(MOST, sizeof *v);
  f->failed |= !v;
  const size_t n_v = v ? fold_vectors(f, node, n, v, MOST) : 0;
  const rule_term *t = product_of(f, v, n_v, x, n);
  free(v);
  return t;
}

/* ---- what is added ---- */

static bool is_whole(const finder *f, const double *x) {
  enum { ELEMENT = 16, LARGEST = 8 };
  const rule_tensor *t = f->t;
  double most = 0;
  for (int64_t i = 0; i < t->numel; i++) most = fmax(most, fabs(rule_tensor_get(t, i)));
  for (int64_t i = 0; i < t->numel; i++) {
    const double y = rule_tensor_get(t, i);
    if (!(fabs(x[i] - y) <= f->ulp * (ELEMENT * fabs(y) + LARGEST * most))) return false;
  }
  return true;
}

typedef struct adding {
  finder *f;
  const vector *v; /* as they are */
  size_t n_v;
  int64_t n;
  double *x; /* a candidate's values */
} adding;

/* (y - m) * s + z, where y, m, z may be left out (SIZE_MAX). */
static bool affine(const adding *a, const double *s, size_t y, size_t m, size_t z) {
  for (int64_t i = 0; i < a->n; i++) {
    const double base = (y < a->n_v ? a->v[y].x[i] : 0) - (m < a->n_v ? a->v[m].x[i] : 0);
    a->x[i] = base * (s ? s[i] : 1) + (z < a->n_v ? a->v[z].x[i] : 0);
    const double t = rule_tensor_get(a->f->t, i);
    if (i == 0 && fabs(a->x[0] - t) > 1e-2 * (fabs(t) + fabs(a->x[0]))) return false;
  }
  return is_whole(a->f, a->x);
}

static const rule_term *written(const adding *a, const rule_term *scale, size_t y, size_t m,
                                size_t z) {
  finder *f = a->f;
  const rule_term *t = y < a->n_v ? flat(f, &a->v[y], a->n) : NULL;
  if (m < a->n_v) {
    const rule_term *mean = flat(f, &a->v[m], a->n);
    t = t ? fold_call(f, OP_SUB_TENSOR, t, mean) : fold_call(f, OP_NEG, mean, NULL);
  }
  if (scale) t = fold_call(f, OP_MUL_TENSOR, t, scale);
  return z < a->n_v ? fold_call(f, OP_ADD_TENSOR, t, flat(f, &a->v[z], a->n)) : t;
}

/* A bias folded with a normalisation: by the scale that it gave to the weight. */
static const rule_term *normalised(adding *a, const fold_of *w) {
  const size_t none = a->n_v;
  for (size_t y = 0; y <= none; y++)
    for (size_t m = 0; m <= none; m++)
      for (size_t z = 0; z <= none; z++) {
        if (y == none && m == none) continue;
        if ((y == m && y < none) || (y == z && y < none) || (m == z && m < none)) continue;
        if (affine(a, w->by, y, m, z)) return written(a, w->scale, y, m, z);
      }
  return NULL;
}

/* A bias folded with an addition in front of its linear operator. */
static const rule_term *carried(adding *a, uint32_t node) {
  finder *f = a->f;
  const rule_tensor *w = f->value[node];
  if (w->shape.rank != 2) return NULL;
  const rule_shape *s = &w->shape;
  vector *in = calloc(MOST, sizeof *in);
  f->failed |= !in;
  const rule_term *out = NULL;
  for (int turned = 0; turned < 2 && in && !out; turned++) {
    const int64_t rows = s->dim[turned], columns = s->dim[!turned];
    const size_t n_in = rows == a->n ? fold_vectors(f, node, columns, in, MOST) : 0;
    for (size_t k = 0; k < n_in && !out; k++)
      for (size_t z = 0; z <= a->n_v && !out; z++) {
        for (int64_t i = 0; i < rows; i++) {
          a->x[i] = z < a->n_v ? a->v[z].x[i] : 0;
          for (int64_t j = 0; j < columns; j++)
            a->x[i] += in[k].x[j] * rule_tensor_get(w, turned ? j * rows + i : i * columns + j);
          const double t = rule_tensor_get(f->t, i);
          if (i == 0 && fabs(a->x[0] - t) > 1e-2 * (fabs(t) + fabs(a->x[0]))) break;
        }
        if (!is_whole(f, a->x)) continue;
        const rule_term *m = fold_node(f, node);
        if (turned) m = fold_call(f, OP_T, m, NULL);
        out = fold_call(f, OP_MATMUL, m, flat(f, &in[k], columns));
        if (z < a->n_v) out = fold_call(f, OP_ADD_TENSOR, out, flat(f, &a->v[z], a->n));
      }
  }
  free(in);
  return out;
}

const rule_term *fold_bias(finder *f, const fold_of *w) {
  const int64_t n = f->t->numel;
  vector *v = calloc(MOST, sizeof *v);
  double *x = calloc((size_t)n + 1, sizeof *x), *t = calloc((size_t)n + 1, sizeof *t);
  const rule_term *out = NULL;
  f->failed |= !v || !x || !t;
  for (int64_t i = 0; i < n && t; i++) t[i] = rule_tensor_get(f->t, i);
  size_t all = f->failed ? 0 : fold_vectors(f, (uint32_t)w->source, n, v, MOST);
  if (all) out = product_of(f, v, all, t, n);
  size_t plain = 0;
  for (size_t i = 0; i < all; i++) { /* as they are: leaves and what operators compute */
    const rule_term *a = v[i].term;
    if (a->kind == RULE_VAR || (a->n == 1 && a->child[0]->kind == RULE_VAR && a->u.s[0] == 'n'))
      v[plain++] = v[i];
  }
  adding a = {f, v, plain, n, x};
  if (!out && plain && w->scale) out = normalised(&a, w);
  if (!out && !f->failed) out = carried(&a, (uint32_t)w->source);
  free(v);
  free(x);
  free(t);
  return out;
}
