/* Witnesses: inputs and parameters on which the outputs differ by more than rounding explains.
 *
 * Draws on which the outputs differed are confirmed by stochastic arithmetic (run_graph.c). Where
 * the outputs agreed on every draw and no rule joins them, more kinds of values are tried: other
 * scales and signs, values at the graphs' literals. */
#include "synth/joint/joint.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"
#include "synth/refute/refute.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  NOISE_RUNS = 4,
  STORAGE_RUN = 3,
  /* the last one disturbs constants as their storage rounds them */ STORAGE_MARGIN = 8,
  N_LITERALS = 16
};
static const double noise = 4 * DBL_EPSILON;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- beyond rounding ---- */

typedef struct margin {
  double rel,
      noise; /* differences must exceed rel * the slice's norm and noise * what rounding moved */
  bool nonfinite; /* NaN or infinity on one side only counts */
} margin;

static double moved(const rule_tensor *base, const rule_tensor *const *run, int from, int to,
                    int64_t i) {
  double m = 0;
  const double x = rule_tensor_get(base, i);
  for (int k = from; k < to; k++) {
    const double y = rule_tensor_get(run[k], i);
    if (x == y || (isnan(x) && isnan(y))) continue;
    if (!(fabs(x - y) <= m)) m = isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
  }
  return m;
}

static bool ordinary(double x) { return fabs(x) < 1e30; }

/* `l`, `r`: flat alike; `nl`, `nr`: the same outputs with rounding disturbed. */
static bool beyond_rounding(const rule_tensor *l, const rule_tensor *r,
                            const rule_tensor *const *nl, const rule_tensor *const *nr, margin sc,
                            rule_diff *d) {
  *d = (rule_diff){.equal = true, .index = -1};
  const int64_t row =
      l->shape.rank && l->shape.dim[l->shape.rank - 1] > 0 ? l->shape.dim[l->shape.rank - 1] : 1;
  const bool is_float = rule_dtype_is_float(l->dtype);
  /* What kernels that compute in few bits leave open, ten times: no difference is found in it. */
  const double least = fmax(sc.rel, 10 * fmax(l->coarse, r->coarse));
  for (int64_t from = 0; from < l->numel; from += row) {
    double norm = 0, shaken = 0;
    for (int64_t i = from; i < from + row; i++) {
      const double x = rule_tensor_get(l, i);
      if (ordinary(x)) norm = fmax(norm, fabs(x));
      shaken = fmax(shaken, sc.noise * fmax(moved(l, nl, 0, STORAGE_RUN, i),
                                            moved(r, nr, 0, STORAGE_RUN, i)));
      shaken = fmax(shaken, STORAGE_MARGIN * fmax(moved(l, nl, STORAGE_RUN, NOISE_RUNS, i),
                                                  moved(r, nr, STORAGE_RUN, NOISE_RUNS, i)));
    }
    if (!is_float && shaken > 0) continue; /* an order or a decision that rounding makes */
    for (int64_t i = from; i < from + row; i++) {
      const double x = rule_tensor_get(l, i), y = rule_tensor_get(r, i);
      double abs_diff = fabs(x - y), rel;
      if (x == y || (isnan(x) && isnan(y))) continue;
      if (!is_float) {
        rel = abs_diff / fmax(1, fabs(x));
      } else if (!ordinary(x) || !ordinary(y)) {
        const double size = fmax(fabs(x), fabs(y));
        if (fabs(x - y) <= 1e-6 * size && isfinite(size)) continue; /* both are masks, or large */
        rel = isfinite(size) && !ordinary(x) && !ordinary(y) ? abs_diff / size : INFINITY;
        if (rel == INFINITY ? !sc.nonfinite || shaken == INFINITY : !(abs_diff > shaken)) continue;
        if (rel == INFINITY) abs_diff = INFINITY;
      } else {
        if (!(abs_diff > least * norm) || !(abs_diff > shaken)) continue;
        rel = norm > 0 ? abs_diff / norm : INFINITY;
      }
      d->equal = false;
      d->max_abs = fmax(d->max_abs, abs_diff);
      if (rel > d->max_rel) d->max_rel = rel, d->index = i;
    }
  }
  return !d->equal;
}

static const rule_tensor *output(const state *s, int side, const st_run *r, size_t k) {
  const st_value_list *v = &r->value[s->graph[side]->output[k].node];
  return v->n ? v->v[0] : NULL;
}

/* ---- by rounding alone ---- */

/* Side `side` on these leaves, as steps. Owns: `step`, and the values in it. */
static iso_code program_of(state *s, int side, rule_tensor *const *leaf, rule_step **step,
                           iso_error *err) {
  const synth_graph *g = s->graph[side];
  iso_code c = (*step = calloc(g->n_nodes + 1, sizeof **step)) ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    rule_step *at = &(*step)[i];
    if (n->kind == SYNTH_OP) at->call = n->call;
    else if (s->map[side][i].i == EG_NONE) continue;
    else if (!st_masked(s, side, i)) at->value = rule_tensor_ref(leaf[i]);
    else
      c = rule_tensor_to_float64(n->value[n->kind == SYNTH_INPUT ? s->witness.set : 0], &at->value,
                                 err);
  }
  return c;
}

typedef struct place { /* a node of a graph */
  int side;
  size_t node;
} place;

/* Whether two nodes are the same in real numbers, so that what tells them apart is what rounding
 * made of it: a sum that swallowed an operand, say, which stochastic arithmetic need not notice. */
static iso_code made_by_rounding(state *s, rule_tensor **const leaf[2], const place at[2],
                                 bool *yes, iso_error *err) {
  rule_step *step[2] = {NULL, NULL};
  rule_program side[2];
  iso_code c = ISO_OK;
  *yes = false;
  if (!s->oracle->same_numbers) return ISO_OK;
  for (int k = 0; k < 2 && !c; k++) {
    c = program_of(s, at[k].side, leaf[at[k].side], &step[k], err);
    side[k] = (rule_program){step[k], s->graph[at[k].side]->n_nodes, at[k].node};
  }
  if (!c) c = s->oracle->same_numbers(s->oracle->ctx, side, yes, err);
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; step[k] && i < s->graph[at[k].side]->n_nodes; i++)
      rule_tensor_unref(step[k][i].value);
    free(step[k]);
  }
  return c;
}

/* The left's output `o` and its counterpart. */
static iso_code output_by_rounding(state *s, rule_tensor **const leaf[2], size_t o, bool *yes,
                                   iso_error *err) {
  const place at[2] = {{LEFT, s->graph[LEFT]->output[o].node},
                       {RIGHT, s->graph[RIGHT]->output[s->right_of[o]].node}};
  return made_by_rounding(s, leaf, at, yes, err);
}

/* The first output (of the left) that differs beyond rounding between two runs from the given
 * leaves. `streams`: numbers of its own. */
static iso_code differs(state *s, rule_tensor **const leaf[2], const st_run base[2], margin sc,
                        uint64_t streams, size_t *which, rule_diff *diff, bool *found,
                        iso_error *err) {
  st_run shaken[2][NOISE_RUNS] = {0};
  iso_code c = ISO_OK;
  /* A kernel in few bits rounds by about a hundredth of the tolerance that stands for it. */
  const double by = fmax(noise, 1e-2 * s->groups.coarse);
  *found = false;
  for (int side = 0; side < 2 && !c; side++)
    for (int k = 0; k < NOISE_RUNS && !c; k++)
      c = st_run_graph(s, side, leaf[side], k == STORAGE_RUN ? ST_STORAGE : by,
                       streams + (uint64_t)(side * NOISE_RUNS + k), false, NULL, &shaken[side][k],
                       err);
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && !*found; o++) {
    const rule_tensor *l = output(s, LEFT, &base[LEFT], o),
                      *r = output(s, RIGHT, &base[RIGHT], s->right_of[o]), *n[2][NOISE_RUNS];
    if (!l || !r || l->numel != r->numel) continue;
    for (int k = 0; k < NOISE_RUNS; k++) {
      n[LEFT][k] = output(s, LEFT, &shaken[LEFT][k], o);
      n[RIGHT][k] = output(s, RIGHT, &shaken[RIGHT][k], s->right_of[o]);
    }
    *found = beyond_rounding(l, r, n[LEFT], n[RIGHT], sc, diff);
    if (!*found) continue;
    bool rounding = false;
    c = output_by_rounding(s, leaf, o, &rounding, err);
    *found = !c && !rounding;
    if (*found) *which = o;
  }
  for (int side = 0; side < 2; side++)
    for (int k = 0; k < NOISE_RUNS; k++) st_run_free(&shaken[side][k]);
  return c;
}

static iso_code run_both(state *s, rule_tensor **const leaf[2], bool keep_all, st_run run[2],
                         iso_error *err) {
  iso_code c = st_run_graph(s, LEFT, leaf[LEFT], 0, 0, keep_all, NULL, &run[LEFT], err);
  if (!c) c = st_run_graph(s, RIGHT, leaf[RIGHT], 0, 0, keep_all, NULL, &run[RIGHT], err);
  return c;
}

static bool new_leaves(const state *s, rule_tensor **leaf[2]) {
  for (int side = 0; side < 2; side++)
    leaf[side] = calloc(s->graph[side]->n_nodes + 1, sizeof *leaf[side]);
  return leaf[LEFT] && leaf[RIGHT];
}

static iso_code leaves_of_draw(state *s, size_t d, rule_tensor **leaf[2], iso_error *err) {
  if (!new_leaves(s, leaf)) return nomem(err);
  s->witness.set = st_kept_set(s, d);
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      if (s->graph[side]->node[i].kind == SYNTH_OP) continue;
      if ((leaf[side][i] = rule_tensor_ref(st_val(s, s->map[side][i], d)))) st_trim(s);
      else c = st_lost(&s->values, err);
    }
  return c;
}

static void free_leaves(const state *s, rule_tensor **leaf[2]) {
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++)
      rule_tensor_unref(leaf[side][i]);
    free(leaf[side]);
  }
}

int64_t st_leaf_elements(const synth_graph *g) {
  int64_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind != SYNTH_OP && g->node[i].value && g->node[i].value[0])
      n += g->node[i].value[0]->numel;
  return n;
}

iso_code st_same_numbers(state *s, size_t d, eg_node a, eg_node b, bool *yes, iso_error *err) {
  enum { MOST_ELEMENTS = 60000 }; /* more are not evaluated so */
  const eg_node e[2] = {a, b};
  place at[2];
  rule_tensor **leaf[2];
  *yes = false;
  for (int k = 0; k < 2; k++) {
    const int32_t *node = s->rec[e[k].i].node;
    at[k].side = node[LEFT] >= 0 ? LEFT : RIGHT;
    if (node[at[k].side] < 0) return ISO_OK;
    at[k].node = (size_t)node[at[k].side];
  }
  if (st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) > MOST_ELEMENTS)
    return ISO_OK;
  iso_code c = leaves_of_draw(s, d, leaf, err);
  if (!c) c = made_by_rounding(s, leaf, at, yes, err);
  free_leaves(s, leaf);
  return c;
}

iso_code st_run_draw(state *s, size_t d, iso_error *err) {
  rule_tensor **leaf[2];
  iso_code c = leaves_of_draw(s, d, leaf, err);
  if (!c) c = run_both(s, leaf, true, s->witness.run, err);
  free_leaves(s, leaf);
  return c;
}

iso_code st_run_captured(state *s, int side, st_run *out, iso_error *err) {
  rule_tensor **leaf[2];
  iso_code c = leaves_of_draw(s, 0, leaf, err);
  if (!c) c = st_run_graph(s, side, leaf[side], 0, 0, true, NULL, out, err);
  free_leaves(s, leaf);
  return c;
}

/* Whether a call reads where integers say: what can fail for some values and not for others. */
static bool reads_by_index(const synth_graph *g, const rule_term *t) {
  if (t->kind == RULE_VAR) return rule_dtype_is_int(g->node[t->u.i].dtype);
  for (uint32_t k = 0; k < t->n; k++)
    if (reads_by_index(g, t->child[k])) return true;
  return false;
}

/* Where the leaves themselves could not be had (no such device) there is nothing to run on. */
static bool leaves_are_drawn(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind != SYNTH_OP &&
          (s->map[side][i].i == EG_NONE || !s->rec[s->map[side][i].i].valued))
        return false;
  return true;
}

iso_code st_fails_alone(state *s, int *side, int64_t *node, bool *alone, bool *drawn,
                        iso_error *err) {
  rule_tensor **leaf[2];
  st_run run[2] = {0};
  iso_error why[2];
  bool fails[2] = {false, false};
  *alone = *drawn = false;
  if (!leaves_are_drawn(s)) return ISO_OK;
  iso_code c = leaves_of_draw(s, 0, leaf, err);
  for (int k = 0; k < 2 && !c; k++) {
    const iso_code rc = st_run_graph(s, k, leaf[k], 0, 0, false, NULL, &run[k], &why[k]);
    if (rc == ISO_NOMEM) c = nomem(err);
    if (rc == ISO_DEVICE) c = iso_fail(err, rc, "%s", why[k].msg);
    fails[k] = rc == ISO_TORCH;
    if (fails[k]) *side = k, *node = run[k].failed;
    *drawn = rc == ISO_OK && (k == LEFT || *drawn);
  }
  *alone = !c && fails[LEFT] != fails[RIGHT] && *node >= 0;
  if (*alone) { /* a call that can never work is a malformed capture */
    const synth_node *n = &s->graph[*side]->node[*node];
    *alone = n->kind == SYNTH_OP && reads_by_index(s->graph[*side], n->call);
  }
  const synth_localiser *l = s->o->localiser;
  if (*alone && s->o->keep_witness && l)
    c = l->cut_failing(s, *side, (uint32_t)*node, leaf[*side], err);
  if (!c && *alone && !(s->res->reason = iso_arena_strdup(&s->res->arena, why[*side].msg)))
    c = nomem(err);
  for (int k = 0; k < 2; k++) st_run_free(&run[k]);
  free_leaves(s, leaf);
  return c;
}

static bool makes_empty(const synth_node *n) {
  return n->kind == SYNTH_OP && rule_operator_of(n->op)->unspecified;
}

/* What `base` gives where empty memory holds `fill`. */
static iso_code run_filled(state *s, int side, const st_run *base, double fill, st_run *out,
                           iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *again = calloc(g->n_nodes + 1, 1);
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value);
  iso_code c = again && value ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    if (g->node[i].kind != SYNTH_OP || base->value[i].n == 0) continue;
    again[i] = makes_empty(&g->node[i]) || st_term_uses(g->node[i].call, again);
    if (!makes_empty(&g->node[i])) continue;
    const rule_tensor *v = base->value[i].v[0];
    if ((c = rule_tensor_new(v->dtype, &v->shape, &value[i], err))) break;
    for (int64_t k = 0; k < v->numel; k++) rule_tensor_set(value[i], k, fill);
  }
  const st_carry with = {.from = base, .again = again, .value = value};
  if (!c) c = st_run_graph(s, side, NULL, 0, 0, true, &with, out, err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  free(again);
  return c;
}

iso_code st_check_unspecified(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    const synth_graph *g = s->graph[side];
    const synth_node *first = NULL;
    for (size_t i = 0; i < g->n_nodes && !first; i++)
      if (s->map[side][i].i != EG_NONE && makes_empty(&g->node[i])) first = &g->node[i];
    if (!first) continue;
    rule_tensor **leaf[2];
    st_run base = {0}, one = {0}, two = {0};
    c = leaves_of_draw(s, 0, leaf, err);
    if (!c) c = st_run_graph(s, side, leaf[side], 0, 0, true, NULL, &base, err);
    if (!c) c = run_filled(s, side, &base, 1, &one, err);
    if (!c) c = run_filled(s, side, &base, 3, &two, err);
    for (size_t o = 0; o < g->n_outputs && !c; o++) {
      const rule_tensor *a = output(s, side, &one, o), *b = output(s, side, &two, o);
      if (a && b &&
          (a->numel != b->numel || !s->oracle->compare(s->oracle->ctx, a, b, s->o->rel_tol).equal))
        c = iso_fail(err, ISO_UNSUPPORTED,
                     "%s: node \"%s\": output \"%s\" depends on memory that %s leaves unspecified",
                     g->path, first->id, g->output[o].name, first->op);
    }
    st_run_free(&base);
    st_run_free(&one);
    st_run_free(&two);
    free_leaves(s, leaf);
  }
  return c;
}

static iso_code leaves_as_loaded(state *s, size_t d, rule_tensor **leaf[2], iso_error *err);

iso_code st_confirm(state *s, size_t d, size_t *which, rule_diff *diff, bool *found,
                    iso_error *err) {
  rule_tensor **leaf[2];
  st_run base[2] = {0};
  *found = false;
  iso_code c = s->leaves.lonely_both && d >= s->n_sets ? leaves_as_loaded(s, d, leaf, err)
                                                       : leaves_of_draw(s, d, leaf, err);
  if (!c) c = run_both(s, leaf, true, base, err);
  const margin sc = {s->o->rel_tol, 100,
                     d < s->n_sets && !base[LEFT].overflow && !base[RIGHT].overflow};
  if (!c) c = differs(s, leaf, base, sc, 1000 + d * 16, which, diff, found, err);
  for (int side = 0; side < 2; side++) {
    if (!c && *found) s->witness.run[side] = base[side];
    else st_run_free(&base[side]);
  }
  free_leaves(s, leaf);
  return c;
}

/* ---- more draws ---- */

typedef enum how {
  AS_CAPTURED,
  NORMAL,
  POSITIVE,
  NEGATIVE,
  TIES,
  HALVES,
  AT_LITERALS,
  ROWS,
  OUTLIERS,
  ZERO_ROW,
  ZEROS,
  N_HOW
} how;

typedef struct kind {
  how input;
  double input_scale;
  how matrix;
  double matrix_scale;
  how vector;
  double vector_scale;
} kind;

static const kind kinds[] = {{NORMAL, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {NORMAL, 64, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {NORMAL, 1.0 / 64, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {NEGATIVE, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {POSITIVE, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {TIES, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {AT_LITERALS, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {NORMAL, 1e4, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {NORMAL, 1, NORMAL, 4, NORMAL, 1},
                             {NORMAL, 1, NORMAL, 16, NORMAL, 1},
                             {NORMAL, 1, NORMAL, 1.0 / 64, AS_CAPTURED, 1},
                             {NORMAL, 1, NORMAL, 1.0 / 1024, NORMAL, 1},
                             {NORMAL, 1, NORMAL, 1, NORMAL, 8},
                             {NORMAL, 1, NEGATIVE, 1, NEGATIVE, 1},
                             {NORMAL, 1, POSITIVE, 1, POSITIVE, 1},
                             {ROWS, 1, NORMAL, 1, NORMAL, 1},
                             {OUTLIERS, 1, OUTLIERS, 1, NORMAL, 1},
                             {NORMAL, 1, AT_LITERALS, 1, NORMAL, 1},
                             {NORMAL, 1e6, NORMAL, 1e3, NORMAL, 1},
                             {TIES, 1, TIES, 1, TIES, 1},
                             {HALVES, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {ZERO_ROW, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                             {POSITIVE, 64, POSITIVE, 64, POSITIVE, 64},
                             {NEGATIVE, 64, NEGATIVE, 64, NEGATIVE, 64},
                             {ZEROS, 1, AS_CAPTURED, 1, AS_CAPTURED, 1}};
enum {
  N_KINDS = sizeof kinds / sizeof *kinds,
  N_DRAWS = N_KINDS + 8,
  TIES_DRAW = 5,
  ZERO_ROW_DRAW = 21,
  ZEROS_DRAW = N_KINDS - 1
};

typedef struct hunt {
  state *s;
  size_t k;         /* number of the draw */
  rule_tensor **of; /* by class: its value on this draw */
  double literal[N_LITERALS];
  size_t n_literal;
  int64_t limit;   /* rows of the smallest table that integer inputs index */
  bool undefined;  /* NaN on one side only counts */
  st_poles *poles; /* NULL, or inputs are drawn there */
} hunt;

/* Operators that look at what is no number (nan_to_num, isnan): over the reals they do nothing. */
static size_t count_guards(const state *s, int side) {
  size_t k = 0;
  for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
    const synth_node *n = &s->graph[side]->node[i];
    k += n->kind == SYNTH_OP && s->map[side][i].i != EG_NONE && rule_sees_undefined(n->call);
  }
  return k;
}

static bool has_float_input(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind == SYNTH_INPUT && s->map[side][i].i != EG_NONE &&
          rule_dtype_is_float(s->graph[side]->node[i].dtype))
        return true;
  return false;
}

static void collect_literals(hunt *h, const rule_term *t) {
  if ((t->kind == RULE_FLOAT && isfinite(t->u.f)) || (t->kind == RULE_INT && llabs(t->u.i) > 2)) {
    const double x = t->kind == RULE_FLOAT ? fabs(t->u.f) : fabs((double)t->u.i);
    bool seen = x == 0 || x > 1e12;
    for (size_t i = 0; i < h->n_literal; i++) seen |= h->literal[i] == x;
    if (!seen && h->n_literal < N_LITERALS) h->literal[h->n_literal++] = x;
  }
  for (uint32_t i = 0; i < t->n; i++) collect_literals(h, t->child[i]);
}

static double draw_one(const hunt *h, iso_rng *rng, how m, double mean, double dev, double row) {
  const double z = iso_rng_normal(rng);
  switch (m) {
  case POSITIVE: return fabs(mean + dev * z) + dev * 0.05;
  case NEGATIVE: return -fabs(mean + dev * z) - dev * 0.05;
  case TIES: return (double)iso_rng_below(rng, 5) - 2;
  case HALVES: return 0.5 * ((double)iso_rng_below(rng, 13) - 6);
  case AT_LITERALS: {
    static const double step[] = {1, 1 + 1e-3, 1 - 1e-3, 0, 2, 0.5};
    if (h->n_literal == 0) return mean + dev * z;
    const double v = h->literal[iso_rng_below(rng, h->n_literal)] * step[iso_rng_below(rng, 6)];
    return iso_rng_below(rng, 2) ? v : -v;
  }
  case ROWS: return row;
  case ZEROS: return 0;
  case OUTLIERS: return iso_rng_below(rng, 8) == 0 ? 1e3 * dev * z : mean + dev * z;
  default: return mean + dev * z;
  }
}

static iso_code draw_float(hunt *h, const synth_node *n, iso_rng *rng, rule_tensor **out,
                           iso_error *err) {
  rule_tensor *v = n->value[0];
  const bool input = n->kind == SYNTH_INPUT, matrix = v->shape.rank >= 2;
  if (h->poles && (input || (!matrix && h->k >= h->poles->n && h->k % 2))) {
    iso_code c = rule_tensor_new(RULE_F64, &v->shape, out, err);
    if (!c) st_poles_fill(h->poles, h->k, rng, -INFINITY, INFINITY, *out);
    return c;
  }
  if (h->poles) return rule_tensor_to_float64(v, out, err);
  const kind k = kinds[h->k % N_KINDS];
  how m = input ? k.input : matrix ? k.matrix : k.vector;
  double scale = input ? k.input_scale : matrix ? k.matrix_scale : k.vector_scale;
  if (h->k >= N_KINDS) {
    static const double scales[] = {1.0 / 64, 0.25, 1, 1, 4, 64};
    m = (how)iso_rng_below(rng, N_HOW);
    scale = scales[iso_rng_below(rng, 6)];
  }
  if (m == AS_CAPTURED) return rule_tensor_to_float64(v, out, err);
  double sum = 0, sq = 0;
  for (int64_t i = 0; i < v->numel; i++) sum += rule_tensor_get(v, i);
  const double mean = v->numel ? sum / (double)v->numel : 0;
  for (int64_t i = 0; i < v->numel; i++)
    sq += (rule_tensor_get(v, i) - mean) * (rule_tensor_get(v, i) - mean);
  double dev = v->numel ? sqrt(sq / (double)v->numel) : 0;
  if (!(dev > 1e-6 * fabs(mean)) || dev < 1e-12 || !isfinite(dev)) dev = 0.1;
  if (!input && !matrix && dev < 0.5 * fabs(mean)) dev = 0.5 * fabs(mean);
  iso_code c = rule_tensor_new(RULE_F64, &v->shape, out, err);
  const int64_t last =
      v->shape.rank && v->shape.dim[v->shape.rank - 1] > 0 ? v->shape.dim[v->shape.rank - 1] : 1;
  double row = 0;
  for (int64_t i = 0; i < v->numel && !c; i++) {
    if (i % last == 0) row = mean + dev * iso_rng_normal(rng);
    ((double *)(*out)->data)[i] =
        m == ZERO_ROW && i < last
            ? 0
            : scale * draw_one(h, rng, m, isfinite(mean) ? mean : 0, dev, row);
  }
  return c;
}

static iso_code draw_int(hunt *h, const synth_node *n, iso_rng *rng, rule_tensor **out,
                         iso_error *err) {
  const rule_tensor *v = n->value[0];
  static const int64_t edges[] = {0, 1, 127, 128, 255, 256, 257, 32767, 32768, 65535, 16777217};
  int64_t low = 0, high = h->limit;
  const bool open = h->limit == INT64_MAX;
  if (open) {
    st_interval(n, &low, &high);
    if (h->k % 4 == 3) low = -8, high = 9;
  }
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  if (c) return c;
  if (h->poles) {
    const bool truth = v->dtype == RULE_BOOL;
    st_poles_fill(h->poles, h->k, rng, truth ? 0 : (double)low, truth ? 2 : (double)high, *out);
    return ISO_OK;
  }
  int64_t edge[64];
  const size_t n_edges =
      open || h->k % 4 != 3 ? 0 : st_integer_edges(h->s, high, edge, sizeof edge / sizeof *edge);
  const uint64_t width = high > low ? (uint64_t)(high - low) : 1;
  int64_t x = low + (int64_t)iso_rng_below(rng, width);
  for (int64_t i = 0; i < v->numel; i++) {
    if (h->k % 4 != 1) x = low + (int64_t)iso_rng_below(rng, width); /* 1: one value everywhere */
    if (h->k % 4 == 2 && !open) x = iso_rng_below(rng, 2) ? low : high - 1;
    if (h->k % 4 == 2 && open)
      x = edges[iso_rng_below(rng, v->dtype == RULE_I64 || v->dtype == RULE_I32 ? 11 : 3)] *
          (iso_rng_below(rng, 2) ? 1 : -1);
    if (n_edges) x = edge[(h->k / 4 * (size_t)v->numel + (size_t)i) % n_edges]; /* each in turn */
    rule_tensor_set(*out, i, (double)x);
  }
  return ISO_OK;
}

static iso_code class_value(hunt *h, eg_class cls, rule_tensor **out, iso_error *err);

typedef struct binder {
  hunt *h;
  rule_tensor *at[MAX_CHILDREN];
  uint32_t n;
  iso_arena arena;
} binder;

/* An argument of a definition: a literal, a list, or a variable for a class's value. NULL: an
 * error, in `c`. */
static const rule_term *argument(binder *b, eg_class cls, iso_code *c, iso_error *err) {
  state *s = b->h->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  for (size_t i = 0; i < n; i++) {
    const rule_term *lit = st_literal(s, m[i]);
    if (lit) return lit;
    if (!st_is_list(s, m[i])) continue;
    const eg_node list = m[i];
    const size_t k = eg_node_arity(s->g, list);
    const rule_term **child = iso_arena_alloc(&b->arena, (k + 1) * sizeof *child);
    for (size_t j = 0; j < k && child && !*c; j++)
      if (!(child[j] = argument(b, eg_node_child(s->g, list, j), c, err))) return NULL;
    return child && !*c ? rule_list(&b->arena, child, k) : NULL;
  }
  if (b->n == MAX_CHILDREN || (*c = class_value(b->h, cls, &b->at[b->n], err))) return NULL;
  return rule_var(&b->arena, b->n++);
}

static iso_code defined_value(hunt *h, eg_node e, rule_tensor **out, iso_error *err) {
  state *s = h->s;
  binder *b = calloc(1, sizeof *b);
  if (!b) return nomem(err);
  b->h = h;
  iso_arena_init(&b->arena);
  const size_t n = eg_node_arity(s->g, e);
  const rule_term **child = iso_arena_alloc(&b->arena, (n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++)
    if (!(child[i] = argument(b, eg_node_child(s->g, e, i), &c, err)) && !c) c = nomem(err);
  const rule_term *t =
      c ? NULL : rule_op(&b->arena, eg_symbol_name(s->g, eg_node_symbol(s->g, e)), child, n);
  size_t n_out = 0;
  if (!c && !t) c = nomem(err);
  if (!c) c = s->oracle->call(s->oracle->ctx, t, b->at, true, out, 1, &n_out, err);
  iso_arena_fini(&b->arena);
  free(b);
  return c;
}

/* Where either side has parameters that the other lacks, some may have been computed from others
 * while they were loaded (a norm folded into a weight). Zeros and ones tell nothing of what belongs
 * to what: they stay as captured too. */
static bool stays(const state *s, const rec *r, const synth_node *n) {
  return r->lonely || (s->leaves.lonely_both && n->kind != SYNTH_INPUT && !st_generic(n->value[0]));
}

/* The value on this draw of a class of leaves and of the layouts that tie them; borrowed. */
static iso_code class_value(hunt *h, eg_class cls, rule_tensor **out, iso_error *err) {
  state *s = h->s;
  if ((*out = h->of[cls.i])) return ISO_OK;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  eg_node def = {EG_NONE}, atom = {EG_NONE}, captured = {EG_NONE};
  bool konst = false;
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    if (r->konst && r->valued) konst = true, def = m[i];
    else if (!konst && !r->leaf && r->node[0] < 0 && r->node[1] < 0 && def.i == EG_NONE) def = m[i];
    if (r->leaf && r->atom && atom.i == EG_NONE) atom = m[i];
    if (!r->leaf && r->tensor && m[i].i < captured.i) captured = m[i];
  }
  /* A graph may itself compute the part of a leaf that the other one's is made of: leaves were
   * related before, so it is the oldest. */
  if (def.i == EG_NONE) def = captured;
  iso_code c = ISO_OK;
  rule_tensor *v = NULL;
  if (konst) v = rule_tensor_ref(st_val(s, def, s->witness.set)); /* constants stay */
  else if (atom.i != EG_NONE) {
    const rec *r = &s->rec[atom.i];
    const synth_node *nd = r->node[LEFT] >= 0 ? &s->graph[LEFT]->node[r->node[LEFT]]
                                              : &s->graph[RIGHT]->node[r->node[RIGHT]];
    /* At poles every other draw gives all leaves the same numbers: x - y is one, too. */
    const uint64_t own = h->poles && h->k % 4 < 2 ? 0 : atom.i;
    iso_rng rng = iso_rng_new(s->o->seed ^ UINT64_C(0x77697475), own * 64 + h->k);
    if (stays(s, r, nd))
      c = (v = rule_tensor_ref(st_val(s, atom, 0))) ? ISO_OK : st_lost(&s->values, err);
    else
      c = rule_dtype_is_float(nd->value[0]->dtype) ? draw_float(h, nd, &rng, &v, err)
                                                   : draw_int(h, nd, &rng, &v, err);
    if (!c && nd->domain && !stays(s, r, nd)) c = st_fit(s, nd, h->k, &rng, &v, err);
  } else {
    ISO_CHECK(def.i != EG_NONE);
    c = defined_value(h, def, &v, err);
  }
  if (!c) *out = h->of[cls.i] = v;
  return c;
}

static iso_code draw_all(hunt *h, rule_tensor **leaf[2], iso_error *err) {
  state *s = h->s;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      if (s->graph[side]->node[i].kind != SYNTH_OP)
        c = class_value(h, eg_class_of(s->g, s->map[side][i]), &leaf[side][i], err);
  return c;
}

/* Inputs that are so large that masks hide nothing show nothing: it is assumed that there are none.
 */
static iso_code drop_near_masks(state *s, bool *found, iso_error *err) {
  bool near = false;
  iso_code c = st_near_masks(s, s->witness.run, &near, err);
  if (c || !near) return c;
  *found = false;
  for (int side = 0; side < 2; side++) st_run_free(&s->witness.run[side]);
  return ISO_OK;
}

/* One draw. Where an operator cannot take these values, the draw says nothing. */
static iso_code try_draw(hunt *h, rule_tensor **leaf[2], size_t *which, rule_diff *diff,
                         bool *found, iso_error *err) {
  state *s = h->s;
  st_run base[2] = {0};
  iso_code c = draw_all(h, leaf, err);
  if (!c) c = run_both(s, leaf, h->poles && h->poles->watched, base, err);
  if (!c && h->poles) st_poles_note(h->poles, base);
  bool apart = false;
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && !apart; o++) {
    const rule_tensor *l = output(s, LEFT, &base[LEFT], o),
                      *r = output(s, RIGHT, &base[RIGHT], s->right_of[o]);
    apart = l && r && l->numel == r->numel &&
            (!s->oracle->compare(s->oracle->ctx, l, r, 1e-7).equal || st_far_apart(l, r));
  }
  /* What was looked for must be clear: a thousand times what rounding moves. */
  if (!c && apart)
    c = differs(s, leaf, base,
                (margin){1e-7, 1e3, h->undefined && !base[LEFT].overflow && !base[RIGHT].overflow},
                5000 + h->k * 16, which, diff, found, err);
  if (!c && *found) {
    for (int side = 0; side < 2; side++) st_run_free(&base[side]);
    c = run_both(s, leaf, true, s->witness.run, err);
    if (!c) c = drop_near_masks(s, found, err);
  }
  for (int side = 0; side < 2; side++) st_run_free(&base[side]);
  return c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED ? ISO_OK : c;
}

iso_code st_keep_witness(state *s, iso_error *err) {
  if (!s->witness.run[LEFT].value || !s->witness.run[RIGHT].value) return ISO_OK;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    if (!(s->res->witness_leaf[side] = calloc(g->n_nodes + 1, sizeof *s->res->witness_leaf[side])))
      return nomem(err);
    s->res->n_leaf[side] = g->n_nodes;
    for (size_t i = 0; i < g->n_nodes; i++)
      if (g->node[i].kind != SYNTH_OP && s->witness.run[side].value[i].n == 1)
        s->res->witness_leaf[side][i] = rule_tensor_ref(s->witness.run[side].value[i].v[0]);
  }
  return ISO_OK;
}

static void preset(hunt *h, eg_node e, rule_tensor *v) {
  rule_tensor **at = &h->of[eg_class_of(h->s->g, e).i];
  rule_tensor_unref(*at);
  *at = rule_tensor_ref(v);
}

/* The leaves of a draw, but for what stays as captured. */
static iso_code leaves_as_loaded(state *s, size_t d, rule_tensor **leaf[2], iso_error *err) {
  hunt h = {.s = s, .limit = st_index_limit(s, NULL), .of = calloc(s->n_rec + 1, sizeof *h.of)};
  iso_code c = new_leaves(s, leaf) && h.of ? ISO_OK : nomem(err);
  s->witness.set = st_kept_set(s, d);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP) continue;
      const rec *r = &s->rec[s->map[side][i].i];
      if (!r->atom || r->konst) continue;
      rule_tensor *v = st_val(s, s->map[side][i], stays(s, r, n) ? 0 : d);
      if (v) preset(&h, s->map[side][i], v);
      else c = st_lost(&s->values, err);
    }
  if (!c) c = draw_all(&h, leaf, err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++)
      (void)rule_tensor_ref(leaf[side][i]);
  for (size_t i = 0; h.of && i < s->n_rec; i++) rule_tensor_unref(h.of[i]);
  free(h.of);
  return c;
}

iso_code st_try_variant(state *s, st_variant *v, bool sure, rule_tensor **leaf[2], rule_diff *diff,
                        bool *shows, iso_error *err) {
  hunt h = {.s = s, .limit = st_index_limit(s, NULL), .of = calloc(s->n_rec + 1, sizeof *h.of)};
  rule_tensor **own[2];
  st_run base[2] = {0};
  rule_diff found = {0};
  *shows = false;
  if (!s->res->witness_leaf[LEFT]) {
    free(h.of);
    return ISO_OK;
  }
  iso_code c = new_leaves(s, own) && h.of ? ISO_OK : nomem(err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->res->witness_leaf[side][i] && s->rec[s->map[side][i].i].atom)
        preset(&h, s->map[side][i], s->res->witness_leaf[side][i]);
  for (size_t j = 0; j < v->n && !c; j++) preset(&h, v->leaf[j], v->value[j]);
  if (!c) c = draw_all(&h, own, err);
  if (!c) c = run_both(s, own, false, base, err);
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && !*shows; o++) {
    const rule_tensor *l = output(s, LEFT, &base[LEFT], o),
                      *r = output(s, RIGHT, &base[RIGHT], s->right_of[o]);
    if (!l || !r || l->numel != r->numel) continue;
    found = s->oracle->compare(s->oracle->ctx, l, r, 1e-7);
    *shows = !found.equal && isfinite(found.max_rel);
    if (*shows) v->output = o;
  }
  if (!c && sure)
    c = differs(s, own, base, (margin){s->o->rel_tol, 100, true}, 9000, &v->output, &found, shows,
                err);
  for (int side = 0; side < 2 && leaf && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      leaf[side][i] = rule_tensor_ref(own[side][i]);
  if (diff) *diff = found;
  for (int side = 0; side < 2; side++) {
    st_run_free(&base[side]);
    free(own[side]);
  }
  for (size_t i = 0; h.of && i < s->n_rec; i++) rule_tensor_unref(h.of[i]);
  free(h.of);
  if (c && c != ISO_NOMEM) *shows = false;
  return c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED ? ISO_OK : c;
}

/* Draws `number`[0..n), NULL: all. `undefined`: NaN on one side only counts. `poles` may be NULL.
 */
static iso_code hunt_among(state *s, const unsigned char *number, size_t n, bool undefined,
                           st_poles *poles, size_t *which, rule_diff *diff, bool *found,
                           iso_error *err) {
  hunt h = {.s = s, .limit = st_index_limit(s, NULL), .undefined = undefined, .poles = poles};
  rule_tensor **leaf[2];
  const size_t n_class = s->n_rec;
  *found = false;
  s->witness.set = 0;
  iso_code c = new_leaves(s, leaf) ? ISO_OK : nomem(err);
  if (!c && !(h.of = calloc(n_class + 1, sizeof *h.of))) c = nomem(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->map[side][i].i != EG_NONE && s->graph[side]->node[i].kind == SYNTH_OP)
        collect_literals(&h, s->graph[side]->node[i].call);
  for (size_t d = 0; d < n && !c && !*found; d++) {
    if (st_stopped(s)) break;
    h.k = number ? number[d] : d;
    if (s->o->progress) s->o->progress(s->o->ctx, "search for a difference", d, n);
    c = try_draw(&h, leaf, which, diff, found, err);
    s->res->coverage.n_searched++;
    for (size_t i = 0; i < n_class; i++) {
      rule_tensor_unref(h.of[i]);
      h.of[i] = NULL;
    }
  }
  free(h.of);
  free(leaf[LEFT]);
  free(leaf[RIGHT]);
  return c;
}

iso_code st_hunt(state *s, size_t *which, rule_diff *diff, bool *found, iso_error *err) {
  return hunt_among(s, NULL, N_DRAWS, count_guards(s, LEFT) != count_guards(s, RIGHT), NULL, which,
                    diff, found, err);
}

iso_code st_hunt_poles(state *s, st_poles *p, size_t *which, rule_diff *diff, bool *found,
                       iso_error *err) {
  return hunt_among(s, NULL, p->n + ST_POLE_DRAWS, true, p, which, diff, found, err);
}

/* Without any guard, what is undefined on one side only is so because the other one leaves it out
 * (a mask that multiplies, and one that selects): a few inputs show that, as far as inputs can be
 * zero at all. */
iso_code st_hunt_undefined(state *s, size_t *which, rule_diff *diff, bool *found, iso_error *err) {
  static const unsigned char zeros[] = {ZEROS_DRAW, ZERO_ROW_DRAW, TIES_DRAW, N_KINDS, N_KINDS + 1};
  *found = false;
  if (count_guards(s, LEFT) || count_guards(s, RIGHT))
    return hunt_among(s, NULL, N_DRAWS, true, NULL, which, diff, found, err);
  return has_float_input(s)
             ? hunt_among(s, zeros, sizeof zeros, true, NULL, which, diff, found, err)
             : ISO_OK;
}
