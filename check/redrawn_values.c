/* Other values of leaves: elements that relations make one get one value, of the kind that a draw
 * asks for, at poles, at edges, or large; then each leaf is made to fit its domain. */
#include <math.h>

#include "check/redrawn_int.h"

/* Of the numbers that mask nothing. Returns: whether any masks. */
static bool spread(const rule_tensor *t, double *mean, double *deviation) {
  double sum = 0, squares = 0, n = 0;
  for (int64_t i = 0; i < t->numel; i++)
    if (!chk_hides(rule_tensor_get(t, i))) sum += rule_tensor_get(t, i), n++;
  *mean = n > 0 ? sum / n : 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double by = rule_tensor_get(t, i) - *mean;
    if (!chk_hides(rule_tensor_get(t, i))) squares += by * by;
  }
  *deviation = n > 0 ? sqrt(squares / n) : 0;
  if (!isfinite(*mean)) *mean = 0;
  if (!(*deviation > 1e-6 * fabs(*mean)) || !isfinite(*deviation))
    *deviation = fmax(0.1, 0.5 * fabs(*mean));
  return n < (double)t->numel;
}

/* The number that element `i` of a masked leaf is masked with, 0 if none: masks stay where they
 * were captured on every other draw, and are moved round by a row and an element on the rest, so
 * that a diagonal moves, too. */
static double mask_at(const rule_tensor *v, int64_t i, int64_t row, size_t number) {
  const int64_t by = number % 2 ? (row + 1) * (int64_t)(number / 2 + 1) : 0;
  const double x = rule_tensor_get(v, (i + by) % v->numel);
  return chk_hides(x) ? x : 0;
}

static double draw_float(draw_how m, double mean, double deviation, bool first_row, iso_rng *rng) {
  const double z = mean + deviation * iso_rng_normal(rng);
  switch (m) {
  case ZEROS: return 0;
  case ZERO_ROW: return first_row ? 0 : z;
  case TIES: return (double)iso_rng_below(rng, 5) - 2;
  case HALVES: return 0.5 * ((double)iso_rng_below(rng, 13) - 6);
  case POSITIVE: return fabs(z) + 0.05 * deviation;
  case NEGATIVE: return -fabs(z) - 0.05 * deviation;
  default: return z;
  }
}

/* Rows at one pole, at several, and of any numbers; the first draws are one number everywhere. On
 * two of three of the others a leaf is one number, or the same along one of its dimensions: what is
 * summed along that is at a pole, too. */
typedef struct row_at {
  enum { ROWS, WHOLE, ALONG, N_WAYS } way;
  int64_t stride, length; /* of the dimension that the leaf is the same along */
  uint64_t how;
  size_t which;
} row_at;

static row_at pole_way(const look *x, const rule_shape *s, int64_t numel, iso_rng *rng) {
  row_at r = {.stride = 1, .length = 1};
  if (!x->at_poles || x->pole < x->poles.n || s->rank == 0) return r;
  r.way = iso_rng_below(rng, N_WAYS);
  if (r.way == WHOLE) r.length = numel;
  if (r.way != ALONG) return r;
  const uint32_t d = (uint32_t)iso_rng_below(rng, s->rank);
  for (uint32_t i = d + 1; i < s->rank; i++) r.stride *= s->dim[i];
  r.length = s->dim[d];
  return r;
}

/* Whether an element is that before it along this dimension. */
static bool repeats(const row_at *r, int64_t i) {
  return r->length > 1 && i / r->stride % r->length > 0;
}

static double draw_pole(const look *x, row_at *row, bool new_row, double other, iso_rng *rng) {
  enum { ONE, SEVERAL, OTHER, N_HOW };
  const chk_poles *p = &x->poles;
  if (x->pole < p->n) return p->value[x->pole];
  if (new_row) row->how = iso_rng_below(rng, N_HOW), row->which = iso_rng_below(rng, p->n);
  if (row->way != ROWS) row->how = SEVERAL;
  if (row->how == SEVERAL) row->which = iso_rng_below(rng, p->n);
  return row->how == OTHER ? other : p->value[row->which];
}

/* Where an operator tells whether a number has overflowed: of one size everywhere, then some. */
static double draw_large(size_t number, double captured, iso_rng *rng) {
  static const double size[] = {1.7e308, -1.7e308, 1e155, -1e155, 900, -900, 1e100, -1e100};
  enum { SIZES = sizeof size / sizeof *size };
  if (number < SIZES) return size[number];
  return iso_rng_below(rng, 3) ? captured : size[iso_rng_below(rng, SIZES)];
}

void chk_draw_elements(chk_state *k, look *x, uint32_t leaf, const draw_kind *as, iso_rng *rng) {
  const rule_tensor *v = chk_captured(k, leaf, k->here.set);
  const bool input = k->term[leaf].node->kind == CAP_INPUT, real = rule_dtype_is_float(v->dtype);
  const int64_t row =
      v->shape.rank && v->shape.dim[v->shape.rank - 1] > 0 ? v->shape.dim[v->shape.rank - 1] : 1;
  double mean = 0, deviation = 0;
  draw_how m = input ? as->input : as->parameter;
  if (m == ANY) m = (draw_how)iso_rng_below(rng, ANY);
  const bool edges = m == AT_EDGES && (input || v->numel <= CHK_SMALL) &&
                     chk_has_edges(k, x->edges, leaf) && iso_rng_below(rng, 8) > 0;
  if (m == AT_EDGES) m = input ? NORMAL : CAPTURED;
  const bool masks = real && spread(v, &mean, &deviation) && input;
  iso_rng same = iso_rng_new(UINT64_C(0x706f6c65), x->pole);
  /* At poles every other draw gives all inputs the same numbers: x - y is one, too. */
  iso_rng *poles = x->pole % 2 ? &same : rng;
  row_at where = pole_way(x, &v->shape, v->numel, poles);
  for (int64_t i = 0; i < v->numel; i++) {
    const int64_t at = chk_element(&x->elements, leaf, i);
    if (at < 0) return; /* it stays as it was captured */
    if (x->is_drawn[at]) continue;
    x->is_drawn[at] = true;
    if (x->at_poles && input && repeats(&where, i))
      x->value[at] = x->value[chk_element(&x->elements, leaf, i - where.stride)];
    else if (x->at_poles && input) {
      const double other =
          real ? iso_rng_normal(poles)
               : rule_tensor_get(v, (int64_t)iso_rng_below(poles, (uint64_t)v->numel));
      x->value[at] = draw_pole(x, &where, i % row == 0, other, poles);
      if (!real) x->value[at] = floor(x->value[at]);
    } else if (edges && iso_rng_below(rng, 16) > 0)
      x->value[at] = chk_draw_edge(k, x->edges, leaf, x->number, i, rng);
    else if (!real)
      x->value[at] = rule_tensor_get(v, (int64_t)iso_rng_below(rng, (uint64_t)v->numel));
    else if (m == CAPTURED) x->value[at] = rule_tensor_get(v, i);
    else if (masks && mask_at(v, i, row, x->number)) x->value[at] = mask_at(v, i, row, x->number);
    else if (m == LARGE) x->value[at] = draw_large(x->number, rule_tensor_get(v, i), rng);
    else x->value[at] = (input ? 1 : as->scale) * draw_float(m, mean, deviation, i < row, rng);
  }
}

iso_code chk_put_drawn(chk_state *k, look *x, size_t number, double noise, iso_rng *rng) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < x->elements.n; i++)
    x->value[i] *= 1 + noise * (2 * iso_rng_uniform(rng) - 1);
  for (size_t at = 0; at < 2 * k->n_terms && !c; at++) { /* what has a domain first, then all */
    const uint32_t leaf = (uint32_t)(at % k->n_terms);
    if (!chk_leaf_is_free(k, leaf) || (at < k->n_terms && !chk_has_domain(k, leaf))) continue;
    const rule_tensor *v = chk_captured(k, leaf, k->here.set);
    if (rule_dtype_is_complex(v->dtype) || !chk_has_elements(&x->elements, leaf)) continue;
    rule_tensor_unref(k->here.drawn[leaf]);
    k->here.drawn[leaf] = NULL;
    const bool real = rule_dtype_is_float(v->dtype);
    c = rule_tensor_new(real ? RULE_F64 : v->dtype, &v->shape, &k->here.drawn[leaf], k->err);
    for (int64_t i = 0; i < v->numel && !c; i++) {
      const double y = x->value[chk_element(&x->elements, leaf, i)];
      rule_tensor_set(k->here.drawn[leaf], i, real ? y : nearbyint(y));
    }
    if (!c && chk_has_domain(k, leaf))
      x->outside |= !chk_fit_drawn(k, leaf, number, k->here.drawn[leaf]);
    for (int64_t i = 0; i < v->numel && !c && chk_has_domain(k, leaf); i++)
      x->value[chk_element(&x->elements, leaf, i)] = rule_tensor_get(k->here.drawn[leaf], i);
  }
  return c;
}
