/* Fresh values of leaves: each a function of the seed, of the leaf and of the captured values'
 * scale, and large ones also of the place alone, so that parts of them can be drawn by themselves
 * and in several threads. */
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>

#include "egraph/base/parallel.h"

/* Mean and deviation of about MOST elements, spread evenly: which ones does not matter, and large
 * parameters have millions. All elements are asked for masks where one of them alone may count. */
static void spread_of(const rule_tensor *t, bool all, st_spread *of) {
  enum { MOST = 1 << 12 };
  const int64_t step = t->numel / MOST | 1;
  double sum = 0, sq = 0, n = 0;
  for (int64_t i = 0; i < t->numel; i += step) {
    const double x = rule_tensor_get(t, i);
    if (st_ordinary(x)) sum += x, n++;
    else of->masks = true;
  }
  for (int64_t i = 0; all && i < t->numel && !of->masks; i++)
    of->masks = !st_ordinary(rule_tensor_get(t, i));
  of->mean = n > 0 ? sum / n : 0;
  for (int64_t i = 0; i < t->numel; i += step) {
    const double by = rule_tensor_get(t, i) - of->mean;
    if (st_ordinary(by)) sq += by * by;
  }
  of->dev = n > 0 ? sqrt(sq / n) : 0;
}

/* A large parameter is drawn from the uniform distribution of that mean and deviation: its numbers
 * are as different from one another as normal ones, at a tenth of the time. */
typedef struct even_draw {
  double *x, mean, width;
  iso_rng rng;
} even_draw;

static even_draw even(double *x, double mean, double dev, iso_rng rng) {
  return (even_draw){x, mean, dev * sqrt(12) * 0x1p-64, rng};
}

static void fill_part(void *ctx, int64_t from, int64_t to) {
  const even_draw *d = ctx;
  iso_rng rng = iso_rng_after(d->rng, (uint64_t)from);
  iso_rng_fill_even(&rng, d->mean, d->width, d->x + from, (size_t)(to - from));
}

static void fill_even(rule_tensor *t, double mean, double dev, iso_rng rng, unsigned threads) {
  even_draw d = even(t->data, mean, dev, rng);
  iso_parallel(threads, t->numel, 1, fill_part, &d);
}

static void fill_normal(rule_tensor *t, double mean, double dev, double scale, iso_rng *rng) {
  double *x = t->data;
  iso_rng_fill_normal(rng, x, (size_t)t->numel);
  for (int64_t i = 0; i < t->numel; i++) x[i] = scale * (mean + dev * x[i]);
}

static void know(st_spread *of, const synth_node *n) {
  if (of->known) return;
  spread_of(n->value[0], n->kind == SYNTH_INPUT, of);
  if (!(of->dev > 1e-6 * fabs(of->mean)) || of->dev < 1e-12) of->dev = 0.1;
  of->known = true;
}

/* The element whose mask is at `i` in that round. Masks go round along every dimension, so that two
 * that are added hide together as much as they did, and rows go further than elements, so that a
 * diagonal moves, too. */
static int64_t mask_from(const rule_shape *shape, int64_t i, size_t round) {
  int64_t from = 0, stride = 1;
  for (uint32_t k = shape->rank; k-- > 0;) {
    const int64_t n = shape->dim[k], at = i % n;
    const size_t by = k + 1 == shape->rank ? round : 2 * round;
    from += stride * ((at + (int64_t)by) % n);
    stride *= n;
    i /= n;
  }
  return from;
}

void st_put_masks(const rule_tensor *v, size_t round, int64_t from, int64_t n, double *to) {
  for (int64_t i = 0; i < n; i++) {
    const double x = rule_tensor_get(v, mask_from(&v->shape, from + i, round));
    if (!st_ordinary(x)) to[i] = x;
  }
}

/* A later round makes matrices small, so that eps in the norms behind them shows. */
static double scale_of(const rule_tensor *v, size_t round) {
  return round >= 1 && v->shape.rank >= 2 ? 0.25 : 1.0;
}

static iso_rng stream_of(const state *s, size_t ordinal, size_t round) {
  return iso_rng_new(s->o->seed, ordinal * 64 + round + 1);
}

/* Which of the elements' equal shares of a range each gets: a random order of all. NULL: no memory.
 */
static int64_t *shares(int64_t n, iso_rng *rng) {
  int64_t *share = malloc(((size_t)n + 1) * sizeof *share);
  for (int64_t i = 0; share && i < n; i++) {
    const int64_t k = (int64_t)iso_rng_below(rng, (uint64_t)i + 1);
    share[i] = share[k];
    share[k] = i;
  }
  return share;
}

/* One of `n` numbers in the share `k` of `of`. */
static uint64_t in_share(iso_rng *rng, uint64_t n, int64_t k, int64_t of) {
  const double at = ((double)k + (double)iso_rng_below(rng, 1 << 20) / (1 << 20)) / (double)of;
  const uint64_t x = (uint64_t)(at * (double)n);
  return x < n ? x : n - 1;
}

/* Where ranks have parts of a table, a rank whose rows nobody reads on any draw has zeros that are
 * equal to others' by chance: the numbers are spread over all of the range. */
static iso_code redraw_spread(state *s, int side, size_t leaf, iso_rng *rng, rule_tensor *out,
                              iso_error *err) {
  int64_t edge[64], low, high;
  const st_range *r = st_interval(s, side, leaf, &low, &high);
  const size_t n_edges = st_integer_edges(s, low, high, edge, sizeof edge / sizeof *edge);
  const int64_t n = out->numel;
  int64_t *share = shares(n, rng);
  if (!share) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (int64_t i = 0; i < n; i++) {
    int64_t x = low + (int64_t)in_share(rng, (uint64_t)(high > low ? high - low : 1), share[i], n);
    if (n_edges && i % 3) x = edge[in_share(rng, n_edges, share[i], n)];
    if (r->has_none && iso_rng_below(rng, 4) == 0) x = r->none;
    rule_tensor_set(out, i, (double)x);
  }
  free(share);
  return ISO_OK;
}

/* Where no table ends a range, and the captured numbers look like what they are by chance: as many
 * more on both sides, but none below 0 where none was captured. */
enum { OTHERS = 8 };

static void widen(int64_t *low, int64_t *high) {
  *high += OTHERS;
  if (*low > 0) *low = *low > OTHERS ? *low - OTHERS : 0;
}

/* And what the graphs compare them with, however far up that is. */
enum { FURTHEST = 1 << 16 };

static iso_code redraw_int(state *s, int side, size_t leaf, size_t round, iso_rng *rng,
                           rule_tensor **out, iso_error *err) {
  const rule_tensor *v = s->graph[side]->node[leaf].value[0];
  int64_t edge[64], low, high;
  const st_range *r = st_interval(s, side, leaf, &low, &high);
  const iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  if (c) return c;
  const bool chance =
      s->leaves.frees_by_chance && r->end[LEFT] == INT64_MAX && r->end[RIGHT] == INT64_MAX;
  if (chance) widen(&low, &high);
  if (round == 1 && (st_has_collective(s, LEFT) || st_has_collective(s, RIGHT)))
    return redraw_spread(s, side, leaf, rng, *out, err);
  const size_t n_edges = st_integer_edges(s, low, chance && high < FURTHEST ? FURTHEST : high, edge,
                                          sizeof edge / sizeof *edge);
  for (int64_t i = 0; i < v->numel; i++) {
    int64_t x = low + (int64_t)iso_rng_below(rng, (uint64_t)(high > low ? high - low : 1));
    /* What is kept by chance is few numbers, perhaps one: over the draws it is each edge in turn.
     */
    const size_t turn = chance ? round * (size_t)v->numel + (size_t)i : (size_t)i;
    if (n_edges && turn % 3)
      x = edge[(chance ? turn - turn / 3 - 1 : iso_rng_below(rng, n_edges)) % n_edges];
    if (r->has_none && iso_rng_below(rng, 4) == 0) x = r->none;
    rule_tensor_set(*out, i, (double)x);
  }
  return ISO_OK;
}

iso_code st_draw_plane(rule_tensor *captured, double scale, iso_rng *rng, rule_tensor **out,
                       iso_error *err) {
  rule_tensor *v;
  iso_code c = rule_tensor_to_float64(captured, &v, err);
  if (c) return c;
  const double *x = v->data;
  double squares = 0;
  for (int64_t i = 0; i < 2 * v->numel; i++) squares += x[i] * x[i];
  const double size = v->numel ? sqrt(squares / (double)(2 * v->numel)) : 0;
  const double by = scale * (isfinite(size) && size > 0 ? size : 1);
  rule_tensor_unref(v);
  if ((c = rule_tensor_new_unset(RULE_C128, &captured->shape, out, err))) return c;
  double *to = (*out)->data;
  for (int64_t i = 0; i < 2 * captured->numel; i++) to[i] = by * iso_rng_normal(rng);
  return ISO_OK;
}

/* Floats that a mask gives by chance are run on others, near and far. */
static iso_code redraw_far(rule_tensor *v, iso_rng *rng, rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new_unset(RULE_F64, &v->shape, out, err);
  for (int64_t i = 0; i < v->numel && !c; i++)
    rule_tensor_set(*out, i, pow(FURTHEST, iso_rng_uniform(rng)));
  return c;
}

static iso_code redraw(state *s, int side, size_t leaf, st_stream at, st_spread *of,
                       rule_tensor **out, iso_error *err) {
  iso_rng rng = stream_of(s, at.ordinal, at.round);
  rule_tensor *v = s->graph[side]->node[leaf].value[0];
  iso_code c;
  if (rule_dtype_is_complex(v->dtype))
    return st_draw_plane(v, scale_of(v, at.round), &rng, out, err);
  if (!rule_dtype_is_float(v->dtype)) return redraw_int(s, side, leaf, at.round, &rng, out, err);
  if (s->leaves.frees_by_chance && s->graph[side]->node[leaf].by_chance)
    return redraw_far(v, &rng, out, err);
  know(of, &s->graph[side]->node[leaf]);
  const double scale = scale_of(v, at.round);
  if ((c = rule_tensor_new_unset(RULE_F64, &v->shape, out, err))) return c;
  if (st_large(&v->shape)) fill_even(*out, scale * of->mean, scale * of->dev, rng, s->o->threads);
  else fill_normal(*out, of->mean, of->dev, scale, &rng);
  if (of->masks) st_put_masks(v, at.round, 0, v->numel, (*out)->data);
  return ISO_OK;
}

iso_code st_redraw(state *s, int side, size_t i, st_stream at, st_spread *of, rule_tensor **out,
                   iso_error *err) {
  iso_rng more = iso_rng_new(s->o->seed ^ UINT64_C(0x72616e6765), at.ordinal * 64 + at.round);
  const iso_code c = redraw(s, side, i, at, of, out, err);
  return c ? c : st_fit(s, side, i, at.round, &more, out, err);
}

iso_code st_draw_atom(state *s, eg_node e, size_t draw, rule_tensor **out, iso_error *err) {
  const rec *r = &s->rec[e.i];
  const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
  const size_t i = (size_t)r->node[side];
  rule_tensor *v = s->graph[side]->node[i].value[0];
  st_spread of = {0};
  if (draw < s->n_sets) return rule_tensor_to_float64_in(v, s->o->threads, out, err);
  return st_redraw(s, side, i, (st_stream){r->ordinal, draw - s->n_sets}, &of, out, err);
}

iso_code st_draw_rows(state *s, eg_node e, size_t draw, const rule_tensor *row, rule_tensor **out,
                      iso_error *err) {
  const rec *r = &s->rec[e.i];
  const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
  const rule_tensor *v = s->graph[side]->node[r->node[side]].value[0];
  const int64_t width = v->shape.dim[1];
  const rule_shape shape = {.rank = 2, .dim = {row->numel, width}};
  st_spread of = {0};
  iso_code c = rule_tensor_new_unset(RULE_F64, &shape, out, err);
  if (c) return c;
  if (draw >= s->n_sets) know(&of, &s->graph[side]->node[r->node[side]]);
  for (int64_t k = 0; k < row->numel; k++) {
    const int64_t at = rule_tensor_get_int(row, k) * width;
    double *x = (double *)(*out)->data + k * width;
    if (draw < s->n_sets) rule_tensor_widen(v, at, width, x);
    else {
      const double scale = scale_of(v, draw - s->n_sets);
      even_draw d = even(x, scale * of.mean, scale * of.dev,
                         iso_rng_after(stream_of(s, r->ordinal, draw - s->n_sets), (uint64_t)at));
      fill_part(&d, 0, width);
      if (of.masks) st_put_masks(v, draw - s->n_sets, at, width, x);
    }
  }
  return ISO_OK;
}
