/* Parts put together: neighbours first, then the results, until one tensor is left.
 *
 * Ranks are numbered so that the inner groups are neighbours, and a mesh of several dimensions is
 * gone through from the inside: of 2 x 4 ranks, say, each four hold columns of a tensor of which
 * the two groups hold sums. A parameter that is cut for the inner groups first, and then each part
 * for the outer ones, is gone through from the outside: ranks that are equally far apart, where
 * ranks were given a leaf in that order. Pieces that stay apart (another order, a part twice) have
 * no such relation. */
#include "synth/refine/refine.h"
#include "rules/names.h"
#include "synth/relate/layout.h"
#include "synth/search/search.h"

#include <math.h>
#include <string.h>

enum { SUM = -1 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static int64_t numel(const rule_shape *s) {
  int64_t n = 1;
  for (uint32_t i = 0; i < s->rank; i++) n *= s->dim[i];
  return n;
}

typedef struct search {
  const st_refiner *x;
  uint32_t left;
  const rule_shape *want;
  bool by_shape;
  int outside; /* steps that joined pieces which are equally far apart */
  const rule_term *found;
  double scale;            /* NAN: not asked for */
  const rule_term *scaled; /* what holds but for the factor `scale` */
} search;

/* ---- the last step: layout, padding ---- */

/* The dimension, if it is one, in which `s` is larger than wanted: the excess is padding. */
static int padded(const rule_shape *s, const rule_shape *want) {
  int at = -1;
  if (s->rank != want->rank) return -1;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (s->dim[d] == want->dim[d]) continue;
    if (at >= 0 || s->dim[d] < want->dim[d]) return -1;
    at = (int)d;
  }
  return at;
}

static const rule_term *substitute(iso_arena *a, const rule_term *layout, const rule_term *t) {
  if (layout->kind == RULE_VAR) return t;
  if (layout->kind != RULE_OP) return layout;
  const rule_term *child[RULE_MAX_RANK + 4];
  if (layout->n > sizeof child / sizeof *child) return NULL;
  for (uint32_t i = 0; i < layout->n; i++)
    if (!(child[i] = substitute(a, layout->child[i], t))) return NULL;
  return rule_op(a, layout->u.s, child, layout->n);
}

/* The same elements in another layout, as one draw suggests. */
static iso_code relaid(const search *q, const st_piece *p, const rule_term **out, iso_error *err) {
  const st_refiner *x = q->x;
  const size_t d = x->n_draws - 1;
  rule_tensor *v = NULL;
  *out = NULL;
  iso_code c = st_piece_value(x, p->term, d, &v, err);
  if (c) return c;
  const rule_term *t = synth_layout(x->arena, x->s->schemas, v, st_left_value(x, q->left, d),
                                    x->s->oracle, x->s->o->rel_tol);
  rule_tensor_unref(v);
  if (t) *out = substitute(x->arena, t, p->term);
  return t && !*out ? nomem(err) : ISO_OK;
}

static iso_code look_at(search *q, const rule_term *t, iso_error *err) {
  bool holds = q->by_shape;
  double scale = 0;
  iso_code c = ISO_OK;
  if (!q->by_shape) c = st_holds(q->x, q->left, t, &holds, isnan(q->scale) ? &scale : NULL, err);
  if (!c && q->outside && holds) c = st_given_so(q->x, t, q->want, &holds, err);
  if (q->outside) scale = 0;
  if (!c && holds) q->found = t;
  else if (!c && scale != 0 && isnan(q->scale)) q->scale = scale, q->scaled = t;
  return c;
}

static iso_code finish(search *q, const st_piece *p, iso_error *err) {
  const int pad = padded(&p->shape, q->want);
  if (pad >= 0 && p->term->kind == RULE_OP) {
    const rule_term *t = rule_slice(q->x->arena, p->term, (uint32_t)pad, 0, q->want->dim[pad]);
    return t ? look_at(q, t, err) : nomem(err);
  }
  if (numel(&p->shape) != numel(q->want)) return ISO_OK;
  const bool fits = st_shape_distance(&p->shape, q->want) < 2;
  iso_code c = fits ? look_at(q, p->term, err) : ISO_OK;
  if (c || q->found || q->by_shape) return c;
  const rule_term *t = NULL;
  c = relaid(q, p, &t, err);
  return c || !t ? c : look_at(q, t, err);
}

/* ---- neighbours ---- */

/* Whether `n` pieces can be joined so. Returns: in `shape` the result's. */
static bool can_join(const st_piece *p, size_t n, int dim, rule_shape *shape) {
  *shape = p[0].shape;
  if (dim != SUM && (uint32_t)dim >= shape->rank) return false;
  for (size_t i = 1; i < n; i++) {
    if (p[i].shape.rank != shape->rank) return false;
    for (uint32_t d = 0; d < shape->rank; d++)
      if ((int)d != dim && p[i].shape.dim[d] != shape->dim[d]) return false;
    if (dim != SUM) shape->dim[dim] += p[i].shape.dim[dim];
  }
  return true;
}

static const rule_term *join(iso_arena *a, const st_piece *p, size_t n, int dim) {
  const rule_term *part[ST_MAX_PARTS], *arg[2];
  for (size_t i = 0; i < n; i++) part[i] = p[i].term;
  arg[0] = rule_list(a, part, n);
  arg[1] = dim == SUM ? rule_string(a, "sum") : rule_int(a, dim);
  return arg[0] && arg[1] ? rule_op(a, dim == SUM ? OP_DIST_ALL_REDUCE : OP_CAT, arg, 2) : NULL;
}

/* Whether a term joined along `dim` may still become the wanted output: it has no more elements
 * than that, unless all is joined and the excess is padding, at the end of the last part. */
static bool promising(const search *q, const rule_shape *s, int dim, const st_piece *last,
                      size_t left_over) {
  if (numel(s) <= numel(q->want)) return true;
  return left_over == 1 && dim != SUM && padded(s, q->want) == dim &&
         s->dim[dim] - q->want->dim[dim] < last->shape.dim[dim];
}

static iso_code explore(search *q, const st_piece *p, size_t n, iso_error *err);

/* Whether one of two pieces is the other but for a factor, and not zero: then a sum of them is a
 * replica times a scale, and no sum of the ranks' parts. */
static iso_code multiples(const search *q, const st_piece *a, const st_piece *b, bool *yes,
                          iso_error *err) {
  const st_refiner *x = q->x;
  iso_code c = ISO_OK;
  double scale = NAN;
  *yes = true;
  for (size_t d = 0; d < x->n_draws && !c && *yes; d++) {
    rule_tensor *v[2] = {NULL, NULL};
    c = st_piece_value(x, a->term, d, &v[0], err);
    if (!c) c = st_piece_value(x, b->term, d, &v[1], err);
    if (!c) c = st_multiple(x, v[0], v[1], &scale, err);
    *yes = !c && scale != 0;
    rule_tensor_unref(v[0]);
    rule_tensor_unref(v[1]);
  }
  return c;
}

static iso_code any_multiples(const search *q, const st_piece *p, size_t n, bool *yes,
                              iso_error *err) {
  iso_code c = ISO_OK;
  *yes = false;
  for (size_t i = 0; i < n && !c && !*yes; i++)
    for (size_t k = i + 1; k < n && !c && !*yes; k++) c = multiples(q, &p[i], &p[k], yes, err);
  return c;
}

/* Every `f` neighbours become one, or every `f` that are equally far apart, by a sum or along
 * `dim`; then the rest. */
static iso_code join_all(search *q, const st_piece *given, size_t n, size_t f, int dim,
                         bool outside, iso_error *err) {
  st_piece joined[ST_MAX_PARTS], p[ST_MAX_PARTS];
  const size_t m = n / f;
  for (size_t i = 0; i < n; i++) p[i] = given[outside ? i % f * m + i / f : i];
  for (size_t i = 0; i < m; i++)
    if (!can_join(p + i * f, f, dim, &joined[i].shape) ||
        !promising(q, &joined[i].shape, dim, &p[i * f + f - 1], m))
      return ISO_OK;
  for (size_t i = 0; i < m && dim == SUM && !q->by_shape; i++) {
    bool scaled = false;
    const iso_code c = any_multiples(q, p + i * f, f, &scaled, err);
    if (c || scaled) return c;
  }
  for (size_t i = 0; i < m; i++)
    if (!(joined[i].term = join(q->x->arena, p + i * f, f, dim))) return nomem(err);
  q->outside += outside;
  const iso_code c = explore(q, joined, m, err);
  q->outside -= outside;
  return c;
}

static iso_code explore(search *q, const st_piece *p, size_t n, iso_error *err) {
  if (n == 1) return finish(q, p, err);
  iso_code c = ISO_OK;
  for (size_t f = n; f > 1 && !c && !q->found; f--) { /* all at once first */
    if (n % f != 0) continue;
    for (int d = 0; d < (int)p[0].shape.rank && !c && !q->found; d++)
      c = join_all(q, p, n, f, d, false, err);
    if (!c && !q->found) c = join_all(q, p, n, f, SUM, false, err);
    for (int d = 0; d < (int)p[0].shape.rank && f < n && !q->by_shape && !c && !q->found; d++)
      c = join_all(q, p, n, f, d, true, err);
  }
  return c;
}

/* parameters: the pieces, how they may be put together, and two results. */
iso_code st_put_together(const st_refiner *x, uint32_t left, const st_piece *piece, size_t n,
                         bool by_shape, const rule_term **out, double *scale, iso_error *err) {
  search q = {.x = x,
              .left = left,
              .want = &st_left_value(x, left, 0)->shape,
              .by_shape = by_shape,
              .scale = scale ? NAN : 0};
  *out = NULL;
  if (scale) *scale = 1;
  if (n == 0 || n > ST_MAX_PARTS) return ISO_OK;
  const iso_code c = explore(&q, piece, n, err);
  if (c) return c;
  *out = q.found;
  if (!q.found && scale && q.scaled) *out = q.scaled, *scale = q.scale;
  return ISO_OK;
}
