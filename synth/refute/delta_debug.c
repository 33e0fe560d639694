/* A small counterexample: the witness with as many elements of its inputs zero as still show the
 * difference, and the others small whole numbers where these do. The search is delta debugging
 * (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002) over elements,
 * in halves, quarters and so on, from the last to the first, so that the first tokens show it where
 * they can; it is bounded by a count of runs, never by time. */
#include "synth/leaves/leaves.h"
#include "synth/refute/refute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_INPUTS = 32, MAX_RUNS = 240, MIN_RUNS = 12 };
static const int64_t work = 2000000000; /* elements of leaves read by all runs together */

typedef struct shrink {
  state *s;
  st_variant v;
  size_t runs;
} shrink;

/* Inputs whose values are drawn, one for each class. */
static void find_inputs(shrink *k, eg_node *of, rule_tensor **value) {
  state *s = k->s;
  k->v = (st_variant){.leaf = of, .value = value};
  int64_t elements = 1;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      rule_tensor *t = s->res->witness_leaf[side][i];
      const eg_node e = s->map[side][i];
      if (!t) continue;
      elements += t->numel;
      if (s->graph[side]->node[i].kind != SYNTH_INPUT || s->rec[e.i].konst || !s->rec[e.i].atom ||
          k->v.n == MAX_INPUTS)
        continue;
      bool seen = false;
      for (size_t j = 0; j < k->v.n; j++) seen |= eg_equal(s->g, of[j], e);
      if (!seen) of[k->v.n] = e, value[k->v.n++] = rule_tensor_ref(t);
    }
  const int64_t runs = work / elements;
  k->runs = runs < MIN_RUNS ? MIN_RUNS : runs > MAX_RUNS ? MAX_RUNS : (size_t)runs;
}

/* Whether the difference still shows with elements [from, from + n) of input `j` at `x` (NAN: each
 * rounded); if so they stay. */
static iso_code put(shrink *k, size_t j, int64_t from, int64_t n, double x, bool *kept,
                    iso_error *err) {
  rule_tensor *was = k->v.value[j], *now;
  bool other = false;
  *kept = false;
  for (int64_t i = from; i < from + n; i++)
    other |= rule_tensor_get(was, i) != (isnan(x) ? round(rule_tensor_get(was, i)) : x);
  if (!other || k->runs == 0 || st_stopped(k->s)) return ISO_OK;
  k->runs--;
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &now, err);
  if (c) return c;
  memcpy(now->data, was->data, (size_t)was->numel * rule_dtype_size(was->dtype));
  for (int64_t i = from; i < from + n; i++)
    rule_tensor_set(now, i, isnan(x) ? round(rule_tensor_get(was, i)) : x);
  if (!st_admits(k->s, k->v.leaf[j], now)) {
    rule_tensor_unref(now);
    return ISO_OK;
  }
  k->v.value[j] = now;
  c = st_try_variant(k->s, &k->v, false, NULL, NULL, kept, err);
  if (!*kept) k->v.value[j] = was;
  rule_tensor_unref(*kept ? was : now);
  return c;
}

static iso_code shrink_input(shrink *k, size_t j, iso_error *err) {
  const rule_dtype dtype = k->v.value[j]->dtype;
  const int64_t n = k->v.value[j]->numel;
  bool kept;
  iso_code c = ISO_OK;
  for (int64_t size = n; size > 0 && !c; size /= 2)
    for (int64_t from = (n - 1) / size * size; from >= 0 && !c; from -= size)
      c = put(k, j, from, size < n - from ? size : n - from, 0, &kept, err);
  if (!c && rule_dtype_is_float(dtype)) c = put(k, j, 0, n, NAN, &kept, err);
  for (int64_t i = 0; i < n && !c; i++) {
    const double x = rule_tensor_get(k->v.value[j], i);
    if (x == 0 || x == 1) continue;
    c = put(k, j, i, 1, 1, &kept, err);
    if (!c && !kept && fabs(x) > 2) c = put(k, j, i, 1, 2, &kept, err);
  }
  return c;
}

iso_code st_shrink(state *s, iso_error *err) {
  eg_node of[MAX_INPUTS];
  rule_tensor *value[MAX_INPUTS], **leaf[2] = {NULL, NULL};
  shrink k = {.s = s};
  bool shows = false;
  size_t output = 0;
  rule_diff diff = {0};
  iso_code c = ISO_OK;
  find_inputs(&k, of, value);
  for (size_t j = 0; j < k.v.n && !c; j++) c = shrink_input(&k, j, err);
  for (int side = 0; side < 2 && !c; side++)
    if (!(leaf[side] = calloc(s->graph[side]->n_nodes + 1, sizeof *leaf[side]))) c = nomem(err);
  /* The reduced witness is confirmed as the witness was. */
  if (!c) c = st_try_variant(s, &k.v, true, leaf, &diff, &shows, err);
  if (!c && shows) {
    output = k.v.output;
    s->res->witness_output = s->graph[LEFT]->output[output].name;
    s->res->witness_abs = diff.max_abs;
    s->res->witness_rel = diff.max_rel;
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
        if (s->res->witness_leaf[side][i] && leaf[side][i]) {
          rule_tensor_unref(s->res->witness_leaf[side][i]);
          s->res->witness_leaf[side][i] = rule_tensor_ref(leaf[side][i]);
        }
  }
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++)
      rule_tensor_unref(leaf[side][i]);
    free(leaf[side]);
  }
  for (size_t j = 0; j < k.v.n; j++) rule_tensor_unref(value[j]);
  return c;
}
