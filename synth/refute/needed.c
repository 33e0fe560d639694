/* Which of the values that were drawn for a witness matter: elements of inputs, and parameters,
 * take their captured values again as long as the outputs still differ (delta debugging, in halves,
 * quarters and so on, bounded by a count of runs). Values that still differ from the captured ones
 * at the end are needed for the difference. */
#include "synth/leaves/leaves.h"
#include "synth/refute/refute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_RUNS = 96, MIN_RUNS = 8, SHOWN = 16 };
enum {
  LARGE = 1 << 26
}; /* elements of parameters that stay as drawn: a second copy takes too much */
static const int64_t work = 200000000; /* elements of leaves read by all runs together */

typedef struct needed {
  state *s;
  st_variant v;
  eg_node *leaf;
  rule_tensor **value, **captured; /* by leaf: as it is, as it was captured */
  size_t n_inputs, runs;           /* inputs come first */
  int64_t elements;
} needed;

/* Atoms that were drawn: inputs, or parameters, one for each class. */
static iso_code collect(needed *k, bool inputs, iso_error *err) {
  state *s = k->s;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      rule_tensor *t = s->res->witness_leaf[side][i];
      const eg_node e = s->map[side][i];
      if (!t || (n->kind == SYNTH_INPUT) != inputs || s->rec[e.i].konst || !s->rec[e.i].atom)
        continue;
      bool seen = false;
      for (size_t j = 0; j < k->v.n && !seen; j++) seen = eg_equal(s->g, k->leaf[j], e);
      if (seen) continue;
      const iso_code c =
          rule_tensor_to_float64_in(n->value[0], s->o->threads, &k->captured[k->v.n], err);
      if (c) return c;
      k->elements += t->numel;
      k->leaf[k->v.n] = e;
      k->value[k->v.n++] = rule_tensor_ref(t);
    }
  if (inputs) k->n_inputs = k->v.n;
  return ISO_OK;
}

static int64_t parameter_elements(const state *s) {
  int64_t n = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind == SYNTH_PARAMETER)
        n += s->graph[side]->node[i].value[0]->numel;
  return n;
}

static iso_code shows(needed *k, bool *yes, iso_error *err) {
  *yes = false;
  if (k->runs == 0 || st_stopped(k->s)) return ISO_OK;
  k->runs--;
  return st_try_variant(k->s, &k->v, false, NULL, NULL, yes, err);
}

/* All parameters as they were captured, if that shows it too. */
static iso_code captured_parameters(needed *k, bool *kept, iso_error *err) {
  *kept = false;
  for (size_t j = k->n_inputs; j < k->v.n; j++) {
    rule_tensor *t = k->value[j];
    k->value[j] = k->captured[j];
    k->captured[j] = t;
  }
  iso_code c = shows(k, kept, err);
  for (size_t j = k->n_inputs; j < k->v.n && !*kept; j++) {
    rule_tensor *t = k->value[j];
    k->value[j] = k->captured[j];
    k->captured[j] = t;
  }
  return c;
}

static iso_code copy_of(const rule_tensor *t, rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new(t->dtype, &t->shape, out, err);
  if (!c) memcpy((*out)->data, t->data, (size_t)t->numel * rule_dtype_size(t->dtype));
  return c;
}

/* Returns: whether the input's values contradicted a mask, and now do not. */
static bool made_to_agree(const needed *k, size_t j, rule_tensor *now) {
  const rec *r = &k->s->rec[k->leaf[j].i];
  bool any = false;
  for (int side = 0; side < 2; side++)
    if (r->node[side] >= 0) any |= st_agree_with_masks(k->s, side, (size_t)r->node[side], now);
  return any;
}

/* Ids as the mask beside them has them, if that shows it too. */
static iso_code agree_with_masks(needed *k, size_t j, iso_error *err) {
  rule_tensor *was = k->value[j], *now;
  iso_code c = copy_of(was, &now, err);
  if (c) return c;
  bool kept = made_to_agree(k, j, now);
  k->value[j] = now;
  kept = kept && st_admits(k->s, k->leaf[j], now);
  if (kept) c = shows(k, &kept, err);
  if (!kept) k->value[j] = was;
  rule_tensor_unref(kept ? was : now);
  return c;
}

/* Elements [from, from + n) of input `j` as captured, if that shows it too. */
static iso_code put_back(needed *k, size_t j, int64_t from, int64_t n, iso_error *err) {
  rule_tensor *was = k->value[j], *now;
  bool other = false, kept;
  for (int64_t i = from; i < from + n && !other; i++)
    other = rule_tensor_get(was, i) != rule_tensor_get(k->captured[j], i);
  if (!other) return ISO_OK;
  iso_code c = copy_of(was, &now, err);
  if (c) return c;
  for (int64_t i = from; i < from + n; i++)
    rule_tensor_set(now, i, rule_tensor_get(k->captured[j], i));
  made_to_agree(k, j, now);
  const bool inside = st_admits(k->s, k->leaf[j], now);
  k->value[j] = now;
  c = inside ? shows(k, &kept, err) : ISO_OK;
  if (!inside || !kept) k->value[j] = was;
  rule_tensor_unref(k->value[j] == now ? was : now);
  return c;
}

static iso_code reduce_input(needed *k, size_t j, iso_error *err) {
  const int64_t n = k->value[j]->numel;
  iso_code c = ISO_OK;
  for (int64_t size = n; size > 0 && !c; size /= 2)
    for (int64_t from = 0; from < n && !c; from += size)
      c = put_back(k, j, from, size < n - from ? size : n - from, err);
  return c;
}

/* ---- what is told of it ---- */

static iso_code tell(state *s, int side, size_t node, const rule_tensor *was,
                     const rule_tensor *now, iso_error *err) {
  synth_result *r = s->res;
  if (!r->changed && !(r->changed = iso_arena_alloc(&r->arena, SHOWN * sizeof *r->changed)))
    return nomem(err);
  synth_changed *out = (synth_changed *)(uintptr_t)r->changed;
  for (int64_t i = 0; i < now->numel; i++) {
    const double x = rule_tensor_get(was, i), y = rule_tensor_get(now, i);
    if (x == y || (isnan(x) && isnan(y))) continue;
    if (r->n_changed < SHOWN)
      out[r->n_changed++] = (synth_changed){side == RIGHT, (uint32_t)node, i, now->shape, y, x};
    r->n_changed_all++;
  }
  return ISO_OK;
}

/* Inputs that are kept have no other values than those of the set that shows it. */
static iso_code tell_kept(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      const eg_node e = s->map[side][i];
      bool told = n->kind != SYNTH_INPUT || !s->res->witness_leaf[side][i] || !s->rec[e.i].konst;
      for (size_t j = 0; side == RIGHT && j < s->graph[LEFT]->n_nodes && !told; j++)
        told = s->graph[LEFT]->node[j].kind == SYNTH_INPUT && s->map[LEFT][j].i != EG_NONE &&
               eg_equal(s->g, e, s->map[LEFT][j]);
      if (!told) c = tell(s, side, i, n->value[0], s->res->witness_leaf[side][i], err);
    }
  return c;
}

static iso_code tell_all(needed *k, iso_error *err) {
  state *s = k->s;
  iso_code c = tell_kept(s, err);
  for (size_t j = 0; j < k->n_inputs && !c; j++) {
    const rec *r = &s->rec[k->leaf[j].i];
    const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
    c = tell(s, side, (size_t)r->node[side], k->captured[j], k->value[j], err);
  }
  return c;
}

/* Makes the reduced values the witness, once they are confirmed. */
static iso_code take(needed *k, bool *confirmed, iso_error *err) {
  state *s = k->s;
  rule_tensor **leaf[2] = {NULL, NULL};
  rule_diff diff = {0};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    if (!(leaf[side] = calloc(s->graph[side]->n_nodes + 1, sizeof *leaf[side]))) c = nomem(err);
  if (!c) c = st_try_variant(s, &k->v, true, leaf, &diff, confirmed, err);
  if (!c && *confirmed) {
    s->res->witness_output = s->graph[LEFT]->output[k->v.output].name;
    s->res->witness_abs = diff.max_abs;
    s->res->witness_rel = diff.max_rel;
  }
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++) {
      rule_tensor **own = &s->res->witness_leaf[side][i];
      rule_tensor *t = leaf[side][i];
      if (!c && *confirmed && *own && t) leaf[side][i] = *own, *own = t;
      rule_tensor_unref(leaf[side][i]);
    }
  free(leaf[LEFT]);
  free(leaf[RIGHT]);
  return c;
}

static void needed_free(needed *k) {
  for (size_t j = 0; k->value && k->captured && j < k->v.n; j++) {
    rule_tensor_unref(k->value[j]);
    rule_tensor_unref(k->captured[j]);
  }
  free(k->leaf);
  free(k->value);
  free(k->captured);
}

iso_code st_needed(state *s, iso_error *err) {
  const size_t cap = s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes + 1;
  needed k = {.s = s, .elements = 1};
  s->res->redrawn_parameters = s->res->redrawn && parameter_elements(s) > 0;
  if (!s->res->redrawn || !s->res->witness_leaf[LEFT]) return ISO_OK;
  k.leaf = calloc(cap, sizeof *k.leaf);
  k.value = calloc(cap, sizeof *k.value);
  k.captured = calloc(cap, sizeof *k.captured);
  k.v = (st_variant){.leaf = k.leaf, .value = k.value};
  iso_code c = k.leaf && k.value && k.captured ? ISO_OK : nomem(err);
  if (!c) c = collect(&k, true, err);
  if (!c && parameter_elements(s) <= LARGE) c = collect(&k, false, err);
  const int64_t runs = work / k.elements;
  k.runs = runs < MIN_RUNS ? MIN_RUNS : runs > MAX_RUNS ? MAX_RUNS : (size_t)runs;
  bool captured = false, confirmed = false;
  if (!c) c = captured_parameters(&k, &captured, err);
  for (size_t j = 0; j < k.n_inputs && !c; j++) c = agree_with_masks(&k, j, err);
  for (size_t j = 0; j < k.n_inputs && !c; j++) c = reduce_input(&k, j, err);
  if (!c) c = take(&k, &confirmed, err);
  if (!c && confirmed) {
    s->res->redrawn_parameters = !captured && parameter_elements(s) > 0;
    c = tell_all(&k, err);
  }
  needed_free(&k);
  return c;
}

void st_drop_witness(state *s) {
  for (int side = 0; side < 2; side++) {
    rule_tensor **leaf = s->res->witness_leaf[side];
    for (size_t i = 0; leaf && i < s->res->n_leaf[side]; i++) rule_tensor_unref(leaf[i]);
    free(leaf);
    s->res->witness_leaf[side] = NULL;
    s->res->n_leaf[side] = 0;
  }
}
