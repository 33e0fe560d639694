/* One graph run in several ways side by side, node by node, so that values that nothing reads any
 * more are let go. A way of running it is a track.
 *
 * Invariant: before node i is run, every track has the values of all live nodes below i that a live
 * node from i on reads. */
#include "localise/rounding/rounding_int.h"
#include "egraph/base/rng.h"
#include "rules/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OUT = 64 };
/* The first tracks of a run; draws come behind them. */
enum {
  EXACT,
  CAPTURED,
  REST,
  NEAREST,
  FIXED,
  MOVED = FIXED,
  DRAWN = FIXED,
  OWN = FIXED + LR_DRAWS
};
enum { MOST_TRACKS = FIXED + 2 * LR_DRAWS };

typedef struct list {
  rule_tensor **v;
  size_t n;
} list;

typedef struct track {
  bool captured; /* in captured dtypes, else in float64 */
  bool again;    /* begins anew at each cut */
  bool draws;    /* rounds at random */
  iso_rng rng;
  list *at; /* by node */
} track;

typedef struct runner {
  lr_cuts *c;
  int side;
  const synth_graph *g;
  track track[MOST_TRACKS];
  size_t n;
  uint32_t *uses;
  rule_tensor **bind;
  iso_error *err;
} runner;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static void drop(list *l) {
  for (size_t k = 0; k < l->n; k++) rule_tensor_unref(l->v[k]);
  free(l->v);
  *l = (list){0};
}

/* Takes over one reference of each. */
static iso_code put(list *l, rule_tensor *const *v, size_t n, iso_error *err) {
  drop(l);
  if (!(l->v = calloc(n + 1, sizeof *l->v))) {
    for (size_t k = 0; k < n; k++) rule_tensor_unref(v[k]);
    return nomem(err);
  }
  memcpy(l->v, v, n * sizeof *v);
  l->n = n;
  return ISO_OK;
}

static void count(const rule_term *t, uint32_t *uses) {
  if (t->kind == RULE_VAR) uses[t->u.i]++;
  for (uint32_t k = 0; k < t->n; k++) count(t->child[k], uses);
}

static void release(runner *w, const rule_term *t) {
  if (t->kind == RULE_VAR && --w->uses[t->u.i] == 0)
    for (size_t k = 0; k < w->n; k++) drop(&w->track[k].at[t->u.i]);
  for (uint32_t k = 0; k < t->n; k++) release(w, t->child[k]);
}

static void arguments(const rule_term *t, const track *x, rule_tensor **bind) {
  if (t->kind == RULE_VAR) bind[t->u.i] = x->at[t->u.i].n ? x->at[t->u.i].v[0] : NULL;
  for (uint32_t k = 0; k < t->n; k++) arguments(t->child[k], x, bind);
}

static rule_tensor *value(const runner *w, size_t which, uint32_t i) {
  return w->track[which].at[i].n == 1 ? w->track[which].at[i].v[0] : NULL;
}

/* ---- one node ---- */

static iso_code leaf(runner *w, uint32_t i) {
  rule_tensor *given = w->g->node[i].value[0], *wide = NULL;
  iso_code c = rule_tensor_to_float64(given, &wide, w->err);
  for (size_t k = 0; k < w->n && !c; k++) {
    rule_tensor *v = rule_tensor_ref(w->track[k].captured ? given : wide);
    c = put(&w->track[k].at[i], &v, 1, w->err);
  }
  rule_tensor_unref(wide);
  return c;
}

static iso_code project(runner *w, track *x, const rule_term *call, rule_tensor **out) {
  const list *from = &x->at[call->child[0]->u.i];
  const int64_t k = call->child[1]->u.i;
  if (k < 0 || (size_t)k >= from->n)
    return iso_fail(w->err, ISO_FORMAT, "there is no output %lld", (long long)k);
  *out = rule_tensor_ref(from->v[k]);
  return ISO_OK;
}

static iso_code step(runner *w, track *x, uint32_t i) {
  const synth_node *n = &w->g->node[i];
  const rule_oracle *o = w->c->oracle;
  rule_tensor *out[MAX_OUT];
  size_t n_out = 1;
  iso_code c;
  if (rule_is_getitem(n->call->u.s)) c = project(w, x, n->call, out);
  else {
    arguments(n->call, x, w->bind);
    c = o->call(o->ctx, n->call, w->bind, !x->captured, out, MAX_OUT, &n_out, w->err);
  }
  if (!c && x->draws && n_out == 1) {
    rule_tensor *exact = out[0];
    c = lr_round(exact, n->dtype, &x->rng, &out[0], w->err);
    rule_tensor_unref(exact);
  }
  if (c) iso_prefix(w->err, "%s: node \"%s\" (%s): ", w->g->path, n->id, n->op);
  return c ? c : put(&x->at[i], out, n_out, w->err);
}

/* The tracks that do so go on from the exact value, rounded to the dtype in which both sides have
 * it. */
static iso_code begin_anew(runner *w, uint32_t i) {
  rule_tensor *narrow = NULL, *wide = NULL;
  iso_code c = lr_cast(value(w, EXACT, i), w->g->node[i].dtype, &narrow, w->err);
  if (!c) c = rule_tensor_to_float64(narrow, &wide, w->err);
  for (size_t k = 0; k < w->n && !c; k++) {
    if (!w->track[k].again) continue;
    rule_tensor *v = rule_tensor_ref(w->track[k].captured ? narrow : wide);
    c = put(&w->track[k].at[i], &v, 1, w->err);
  }
  rule_tensor_unref(narrow);
  rule_tensor_unref(wide);
  return c;
}

/* ---- all nodes ---- */

static iso_code start(runner *w, size_t n_tracks) {
  const size_t n = w->g->n_nodes;
  w->n = n_tracks;
  w->uses = calloc(n + 1, sizeof *w->uses);
  w->bind = calloc(n + 1, sizeof *w->bind);
  bool ok = w->uses && w->bind;
  for (size_t k = 0; k < w->n; k++) {
    w->track[k].rng = iso_rng_new(w->c->o->seed, 2 * k + (size_t)w->side);
    ok = (w->track[k].at = calloc(n + 1, sizeof *w->track[k].at)) && ok;
  }
  if (!ok) return nomem(w->err);
  for (size_t i = 0; i < n; i++)
    if (w->c->live[w->side][i] && w->g->node[i].kind == SYNTH_OP)
      count(w->g->node[i].call, w->uses);
  for (size_t k = 0; k < w->g->n_outputs; k++) w->uses[w->g->output[k].node]++;
  w->track[CAPTURED].captured = w->track[NEAREST].captured = true;
  w->track[REST].again = w->track[NEAREST].again = true;
  return ISO_OK;
}

static void finish(runner *w) {
  for (size_t k = 0; k < w->n && w->g; k++) {
    for (size_t i = 0; i < w->g->n_nodes && w->track[k].at; i++) drop(&w->track[k].at[i]);
    free(w->track[k].at);
  }
  free(w->uses);
  free(w->bind);
}

/* Run all nodes; `see` looks at each operator's values before tracks begin anew. */
static iso_code run(runner *w, iso_code (*see)(runner *w, uint32_t i, void *ctx), void *ctx) {
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < w->g->n_nodes && !c; i++) {
    const synth_node *n = &w->g->node[i];
    if (!w->c->live[w->side][i]) continue;
    const char *why = w->c->o->stop ? w->c->o->stop(w->c->o->ctx) : NULL;
    if (why) return iso_fail(w->err, ISO_LIMIT, "%s", why);
    if (n->kind != SYNTH_OP) {
      c = leaf(w, i);
      continue;
    }
    for (size_t k = 0; k < w->n && !c; k++) c = step(w, &w->track[k], i);
    if (!c) c = see(w, i, ctx);
    if (!c && w->c->of[w->side][i] >= 0) c = begin_anew(w, i);
    if (!c) release(w, n->call);
  }
  return c;
}

/* ---- measuring ---- */

/* The root mean square of the draws' distances from a track. */
static double spread(const runner *w, size_t first, size_t from, uint32_t i) {
  double sum = 0;
  const rule_tensor *x = value(w, from, i);
  for (size_t k = 0; k < LR_DRAWS; k++) {
    const double d = lr_distance(value(w, first + k, i), x, x);
    sum += d * d / LR_DRAWS;
  }
  return sqrt(sum);
}

/* Tensors that agree where nothing is rounded lie in one order. */
static void measure_apart(lr_cut *cut, const rule_tensor *captured, const rule_tensor *exact) {
  static const double same_order = 0.1;
  if (lr_distance(cut->exact, exact, cut->exact) < same_order)
    cut->difference = lr_distance(cut->captured, captured, cut->exact);
  rule_tensor_unref(cut->captured);
  rule_tensor_unref(cut->exact);
  cut->captured = cut->exact = NULL;
}

static iso_code measure(runner *w, uint32_t i, void *ctx) {
  (void)ctx;
  lr_cuts *c = w->c;
  const int side = w->side;
  rule_tensor *exact = value(w, EXACT, i), *captured = value(w, CAPTURED, i);
  if (!exact || !captured) return ISO_OK;
  if (c->overflow[side] < 0 && lr_overflows(captured, exact)) c->overflow[side] = i;
  lr_cut *cut = c->of[side][i] >= 0 ? &c->cut[c->of[side][i]] : NULL;
  if (!cut || cut->node[side] != i) return ISO_OK;
  cut->error[side] = lr_distance(captured, exact, exact);
  cut->spread[side] = spread(w, DRAWN, EXACT, i);
  cut->own[side] = spread(w, OWN, REST, i);
  cut->nearest[side] = lr_distance(value(w, NEAREST, i), value(w, REST, i), value(w, REST, i));
  if (side == 1) measure_apart(cut, captured, exact);
  else cut->captured = rule_tensor_ref(captured), cut->exact = rule_tensor_ref(exact);
  return ISO_OK;
}

static rule_tensor **outputs(const runner *w, size_t which) {
  rule_tensor **v = calloc(w->g->n_outputs + 1, sizeof *v);
  for (size_t o = 0; o < w->g->n_outputs && v; o++)
    v[o] = rule_tensor_ref(value(w, which, w->g->output[o].node));
  return v;
}

iso_code lr_run(lr_cuts *c, int side, lr_values *out, iso_error *err) {
  runner w = {.c = c, .side = side, .g = c->graph[side], .err = err};
  *out = (lr_values){0};
  c->overflow[side] = -1;
  iso_code code = start(&w, MOST_TRACKS);
  for (size_t k = 0; k < LR_DRAWS; k++)
    w.track[DRAWN + k].draws = w.track[OWN + k].draws = w.track[OWN + k].again = true;
  if (!code) code = run(&w, measure, NULL);
  if (!code) {
    out->exact = outputs(&w, EXACT);
    out->captured = outputs(&w, CAPTURED);
    bool ok = out->exact && out->captured;
    for (size_t k = 0; k < LR_DRAWS; k++) ok = (out->drawn[k] = outputs(&w, DRAWN + k)) && ok;
    if (!ok) code = nomem(err);
  }
  finish(&w);
  return code;
}

static void free_outputs(rule_tensor **v, size_t n) {
  for (size_t o = 0; o < n && v; o++) rule_tensor_unref(v[o]);
  free(v);
}

void lr_values_free(const lr_cuts *c, int side, lr_values *v) {
  const size_t n = c->graph[side]->n_outputs;
  free_outputs(v->captured, n);
  free_outputs(v->exact, n);
  for (size_t k = 0; k < LR_DRAWS; k++) free_outputs(v->drawn[k], n);
  *v = (lr_values){0};
}

/* ---- one error, carried to the outputs ---- */

static iso_code carry(runner *w, uint32_t i, void *ctx) {
  const bool *marked = ctx;
  if (!marked[i]) return ISO_OK;
  const rule_tensor *low = value(w, NEAREST, i), *rest = value(w, REST, i),
                    *at = value(w, MOVED, i);
  rule_tensor *v = NULL;
  iso_code c = rule_tensor_new(RULE_F64, &at->shape, &v, w->err);
  for (int64_t k = 0; k < at->numel && !c; k++) {
    const double by = rule_tensor_get(low, k) - rule_tensor_get(rest, k);
    rule_tensor_set(v, k, rule_tensor_get(at, k) + (isfinite(by) ? by : 0));
  }
  return c ? c : put(&w->track[MOVED].at[i], &v, 1, w->err);
}

iso_code lr_run_with(lr_cuts *c, int side, const bool *marked, double *moved, iso_error *err) {
  runner w = {.c = c, .side = side, .g = c->graph[side], .err = err};
  iso_code code = start(&w, MOVED + 1);
  if (!code) code = run(&w, carry, (void *)(uintptr_t)marked);
  for (size_t o = 0; o < w.g->n_outputs && !code; o++) {
    const rule_tensor *x = value(&w, EXACT, w.g->output[o].node),
                      *y = value(&w, MOVED, w.g->output[o].node);
    moved[o] = x && y ? lr_distance(y, x, x) : 0;
  }
  finish(&w);
  return code;
}
