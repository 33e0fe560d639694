/* How far the storage of constants may move an output. One run disturbs each constant once, and
 * where an output hangs on the difference of two of them, it may be moved by far less than another
 * run would: a softmax whose two largest scores are moved alike. Among many draws some row is so.
 * So a difference that is not far beyond what one run shows is held against more of them. */
#include <math.h>

#include "synth/refute/margins.h"

enum { RUNS = 12, STREAMS = 1 << 21 };
static const double FAR = 0x1p13; /* times a run's: no luck explains this */

/* `base`, moved `by` times as far as `run` is. */
static iso_code moved_by(const rule_tensor *base, const rule_tensor *run, double by,
                         rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new(base->dtype, &base->shape, out, err);
  for (int64_t i = 0; i < base->numel && !c; i++) {
    const double x = rule_tensor_get(base, i), y = rule_tensor_get(run, i);
    rule_tensor_set(*out, i, isfinite(x) && isfinite(y) ? x + by * (y - x) : y);
  }
  return c;
}

/* Each number as it was moved farthest. */
static void take_farther(const rule_tensor *base, const rule_tensor *run, rule_tensor *farthest) {
  for (int64_t i = 0; i < base->numel; i++) {
    const double x = rule_tensor_get(base, i), y = rule_tensor_get(run, i);
    if (fabs(y - x) > fabs(rule_tensor_get(farthest, i) - x)) rule_tensor_set(farthest, i, y);
  }
}

static bool any_moved(const st_outputs *o) {
  for (int side = 0; side < 2; side++)
    for (int64_t i = 0; i < o->base[side]->numel; i++)
      if (st_moved(o->base[side], o->run[side], STORAGE_RUN, NOISE_RUNS, i) > 0) return true;
  return false;
}

/* Further runs of one side, into `farthest`. */
static iso_code run_more(state *s, const st_storage *x, int side, uint64_t streams,
                         rule_tensor *farthest, iso_error *err) {
  const size_t output = side == LEFT ? x->output : s->right_of[x->output];
  const rule_tensor *base = x->at->base[side];
  st_run_how how[ST_TOGETHER];
  st_run run[ST_TOGETHER];
  for (int k = 0; k < ST_TOGETHER; k++)
    how[k] = (st_run_how){.noise = ST_STORAGE, .stream = streams + (uint64_t)k};
  const iso_code c = st_run_together(s, side, x->leaf[side], how, ST_TOGETHER, run, err);
  if (c) return c;
  for (int k = 0; k < ST_TOGETHER; k++) {
    const rule_tensor *v = st_output(s, side, &run[k], output);
    if (v && v->numel == base->numel) take_farther(base, v, farthest);
    st_run_free(&run[k]);
  }
  return ISO_OK;
}

/* Whether the difference is gone with these in the place of the storage's run. */
static bool explains(const st_outputs *o, rule_tensor *const moved[2], st_margin sc) {
  st_outputs with = *o;
  rule_diff ignored;
  for (int side = 0; side < 2; side++) with.run[side][STORAGE_RUN] = moved[side];
  return !st_beyond_rounding(&with, sc, &ignored);
}

static iso_code make_moved(const st_outputs *o, double by, rule_tensor *out[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    c = moved_by(o->base[side], o->run[side][STORAGE_RUN], by, &out[side], err);
  return c;
}

static void let_go(rule_tensor *moved[2]) {
  for (int side = 0; side < 2; side++) {
    rule_tensor_unref(moved[side]);
    moved[side] = NULL;
  }
}

iso_code st_moved_by_storage(state *s, const st_storage *x, bool *yes, iso_error *err) {
  const st_outputs *o = x->at;
  rule_tensor *moved[2] = {NULL, NULL};
  *yes = false;
  if (o->pairs || !rule_dtype_is_float(o->base[LEFT]->dtype) || !any_moved(o)) return ISO_OK;
  iso_code c = make_moved(o, FAR, moved, err);
  const bool may = !c && explains(o, moved, x->margin);
  let_go(moved);
  if (!c && may) c = make_moved(o, 1, moved, err);
  for (int k = 0; k < RUNS / ST_TOGETHER && may && !c && !*yes; k++) {
    for (int side = 0; side < 2 && !c; side++)
      c = run_more(s, x, side, x->streams + STREAMS + (uint64_t)(2 * k + side) * ST_TOGETHER,
                   moved[side], err);
    *yes = !c && explains(o, moved, x->margin);
  }
  let_go(moved);
  return c;
}
