/* Whether outputs differ by more than rounding explains: more than disturbed roundings move them,
 * and not as two spellings of one real number that float64 tells apart. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/refute/margins.h"

enum { /* which runs of both sides, as bits */
       FIRST = 1,
       STORED = 1 << STORAGE_RUN,
       LATER = ((1 << STORAGE_RUN) - 1) & ~1,
       WIDE = 1 << NOISE_RUNS,
       ALL_WIDE = WIDE | ((1 << STORAGE_RUN) - 1) /* none disturbs constants */
};
static const double noise = 4 * DBL_EPSILON;
static const double WIDER = 0x1p28; /* of the runs that show what is a number by rounding alone */
static const st_signs zero_signs[STORAGE_RUN] = {ST_ZEROS_ABOVE, ST_ZEROS_BELOW, ST_ZEROS_DRAWN};

typedef struct place { /* a node of a graph, or a constant that stands in neither */
  int side;
  size_t node;
  rule_tensor *constant; /* borrowed; NULL: the node */
} place;

/* Side `side` on these leaves, as steps. Owns: `step`, and the values in it. */
static iso_code program_of(state *s, int side, rule_tensor *const *leaf, rule_step **step,
                           iso_error *err) {
  const synth_graph *g = s->graph[side];
  iso_code c = (*step = calloc(g->n_nodes + 1, sizeof **step)) ? ISO_OK : st_no_memory(err);
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

static iso_code constant_of(rule_tensor *value, rule_step **step, iso_error *err) {
  if (!(*step = calloc(1, sizeof **step))) return st_no_memory(err);
  return rule_tensor_to_float64(value, &(*step)->value, err);
}

/* Whether two nodes are the same real numbers, so that only rounding tells them apart: a sum that
 * swallowed an operand, say, which stochastic arithmetic need not notice. */
static iso_code real_numbers(state *s, rule_tensor **const leaf[2], const place at[2],
                             rule_numbers *out, iso_error *err) {
  rule_step *step[2] = {NULL, NULL};
  rule_program side[2];
  iso_code c = ISO_OK;
  *out = RULE_NUMBERS_UNKNOWN;
  if (!s->oracle->same_numbers) return ISO_OK;
  size_t n[2];
  for (int k = 0; k < 2 && !c; k++) {
    n[k] = at[k].constant ? 1 : s->graph[at[k].side]->n_nodes;
    c = at[k].constant ? constant_of(at[k].constant, &step[k], err)
                       : program_of(s, at[k].side, leaf[at[k].side], &step[k], err);
    side[k] = (rule_program){step[k], n[k], at[k].constant ? 0 : at[k].node};
  }
  if (!c) c = s->oracle->same_numbers(s->oracle->ctx, side, out, err);
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; step[k] && i < n[k]; i++) rule_tensor_unref(step[k][i].value);
    free(step[k]);
  }
  return c;
}

/* The left's output `o` and its counterpart, which differ in `base`. What is made of numbers that
 * overflowed differs where many digits say so, which have no largest number. */
static iso_code output_by_rounding(state *s, rule_tensor **const leaf[2], const st_run base[2],
                                   size_t o, bool *yes, iso_error *err) {
  const place at[2] = {{LEFT, s->graph[LEFT]->output[o].node, NULL},
                       {RIGHT, s->graph[RIGHT]->output[s->right_of[o]].node, NULL}};
  const bool beyond =
      base[LEFT].value[at[LEFT].node].beyond || base[RIGHT].value[at[RIGHT].node].beyond;
  rule_numbers numbers;
  const iso_code c = real_numbers(s, leaf, at, &numbers, err);
  *yes = !c && (numbers == RULE_NUMBERS_SAME || numbers == RULE_NUMBERS_LOST ||
                numbers == RULE_NUMBERS_JUMP || (beyond && numbers != RULE_NUMBERS_APART));
  return c;
}

static bool whole(double x) { return fabs(x) < 1e15 && x == nearbyint(x); }

/* An output of which whole numbers differ, cast or not: rounding makes a decision that a number
 * meets exactly, as it does exp(0) > 1, and whether disturbed runs move it is luck. Many digits say
 * that it differs, where it does not hang on how constants are stored or read. */
static iso_code decided_apart(state *s, rule_tensor **const leaf[2], const st_outputs *v, size_t o,
                              st_difference *out, iso_error *err) {
  const place at[2] = {{LEFT, s->graph[LEFT]->output[o].node, NULL},
                       {RIGHT, s->graph[RIGHT]->output[s->right_of[o]].node, NULL}};
  const rule_tensor *l = v->base[LEFT], *r = v->base[RIGHT];
  rule_diff d = {.equal = true, .index = -1};
  if (s->constants.n_rounded || s->constants.n_readings) return ISO_OK;
  for (int64_t i = 0; i < l->numel; i++) {
    const double x = rule_tensor_get(l, i), y = rule_tensor_get(r, i), apart = fabs(x - y);
    if (apart > 0 && (!whole(x) || !whole(y))) return ISO_OK;
    if (st_moved(l, v->run[LEFT], STORAGE_RUN, NOISE_RUNS, i) > 0 ||
        st_moved(r, v->run[RIGHT], STORAGE_RUN, NOISE_RUNS, i) > 0)
      return ISO_OK;
    if (apart > d.max_abs) d = (rule_diff){false, apart, apart, i};
  }
  rule_numbers numbers = RULE_NUMBERS_UNKNOWN;
  const iso_code c = d.equal ? ISO_OK : real_numbers(s, leaf, at, &numbers, err);
  out->found = !c && numbers == RULE_NUMBERS_APART;
  if (out->found) out->diff = d;
  return c;
}

/* How the k-th run disturbs roundings; `wide`: much more, and with zeros of all signs. */
static st_run_how disturbed(int k, double by, bool wide, uint64_t stream) {
  st_run_how how = {.noise = k == STORAGE_RUN ? ST_STORAGE : by, .stream = stream};
  if (wide) how.noise = by * WIDER, how.signs = zero_signs[k];
  return how;
}

/* Both sides with roundings disturbed: the runs that `which` has bits for. */
static iso_code run_shaken(state *s, rule_tensor **const leaf[2], double by, unsigned which,
                           uint64_t streams, st_run run[2][NOISE_RUNS], iso_error *err) {
  const bool wide = which & WIDE;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    st_run_how how[NOISE_RUNS];
    st_run made[NOISE_RUNS];
    size_t n = 0, at[NOISE_RUNS];
    for (int k = 0; k < NOISE_RUNS; k++) {
      if (!(which >> k & 1)) continue;
      how[n] = disturbed(k, by, wide, streams + (uint64_t)(side * NOISE_RUNS + k));
      at[n++] = (size_t)k;
    }
    c = st_run_together(s, side, leaf[side], how, n, made, err);
    for (size_t k = 0; k < n && !c; k++) run[side][at[k]] = made[k];
  }
  return c;
}

static void free_shaken(st_run run[2][NOISE_RUNS]) {
  for (int side = 0; side < 2; side++)
    for (int k = 0; k < NOISE_RUNS; k++) st_run_free(&run[side][k]);
}

static void output_of(const state *s, st_run run[2][NOISE_RUNS], size_t o,
                      const rule_tensor *out[2][NOISE_RUNS]) {
  for (int k = 0; k < NOISE_RUNS; k++) {
    out[LEFT][k] = run[LEFT][k].value ? st_output(s, LEFT, &run[LEFT][k], o) : NULL;
    out[RIGHT][k] =
        run[RIGHT][k].value ? st_output(s, RIGHT, &run[RIGHT][k], s->right_of[o]) : NULL;
  }
}

static bool calls_ties(const synth_graph *g) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && rule_leaves_ties(g->node[i].call)) return true;
  return false;
}

/* Both sides with the orders that operators leave open taken up and down, once. */
static iso_code run_ordered(state *s, rule_tensor **const leaf[2], st_run run[2][ORDERS],
                            iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    for (int k = 0; k < ORDERS && !c && !run[side][k].value && calls_ties(s->graph[side]); k++) {
      const st_run_how how = {.order = k ? ST_ORDER_DOWN : ST_ORDER_UP};
      c = st_run_graph(s, side, leaf[side], &how, &run[side][k], err);
    }
  return c;
}

/* Whether the output of a difference that was found differs, and not by an order that is left open.
 */
static iso_code beyond_order(state *s, rule_tensor **const leaf[2], st_run run[2][ORDERS],
                             st_outputs *at, st_margin sc, st_difference *out, iso_error *err) {
  const size_t o = out->output;
  st_reals parts;
  iso_code c = run_ordered(s, leaf, run, err);
  for (int k = 0; k < ORDERS && !c; k++) {
    if (run[LEFT][k].value) at->order[LEFT][k] = st_output(s, LEFT, &run[LEFT][k], o);
    if (run[RIGHT][k].value)
      at->order[RIGHT][k] = st_output(s, RIGHT, &run[RIGHT][k], s->right_of[o]);
  }
  if (!c && (at->order[LEFT][0] || at->order[RIGHT][0])) {
    st_in_reals(at, &parts);
    out->found = st_beyond_rounding(at, sc, &out->diff);
  }
  return c;
}

typedef struct differing { /* what st_differs is asked, and the runs that it makes */
  state *s;
  rule_tensor **const *leaf;
  const st_run *base;
  st_margin sc;
  double by;
  uint64_t streams;
  st_run shaken[2][NOISE_RUNS], wide[2][NOISE_RUNS], ordered[2][ORDERS];
} differing;

/* False: the sides' have not as many numbers, or none. */
static bool outputs_at(differing *d, size_t o, st_outputs *at) {
  const state *s = d->s;
  *at = (st_outputs){.base = {st_output(s, LEFT, &d->base[LEFT], o),
                              st_output(s, RIGHT, &d->base[RIGHT], s->right_of[o])}};
  if (!at->base[LEFT] || !at->base[RIGHT] || at->base[LEFT]->numel != at->base[RIGHT]->numel)
    return false;
  output_of(s, d->shaken, o, at->run);
  for (int side = 0; side < 2; side++)
    for (int k = 1; k < STORAGE_RUN; k++)
      if (!at->run[side][k]) at->run[side][k] = at->run[side][0];
  return true;
}

/* Whether numbers differ, and all that do are whole (decided_apart). */
static bool whole_apart(const rule_tensor *l, const rule_tensor *r) {
  bool any = false;
  for (int64_t i = 0; i < l->numel; i++) {
    const double x = rule_tensor_get(l, i), y = rule_tensor_get(r, i);
    if (!(fabs(x - y) > 0)) continue;
    if (!whole(x) || !whole(y)) return false;
    any = true;
  }
  return any;
}

/* Whether an output may differ after the runs that there are: further ones only take differences
 * away. */
static bool any_may_differ(differing *d) {
  for (size_t o = 0; o < d->s->graph[LEFT]->n_outputs; o++) {
    st_outputs at;
    st_reals parts;
    rule_diff diff;
    if (!outputs_at(d, o, &at)) continue;
    for (int side = 0; side < 2; side++)
      for (int k = 0; k < NOISE_RUNS; k++)
        if (!at.run[side][k]) at.run[side][k] = at.base[side];
    st_in_reals(&at, &parts);
    if (whole_apart(at.base[LEFT], at.base[RIGHT])) return true;
    if (st_beyond_rounding(&at, d->sc, &diff)) return true;
  }
  return false;
}

/* Whether the first runs are enough: the first output that may differ does so by so much more than
 * any number of a long row is moved that further runs, which move them a few times as far, change
 * nothing. */
static bool find_clear(differing *d, size_t *output) {
  enum { LONG = 64 };
  static const double CLEAR = 1e6;
  for (size_t o = 0; o < d->s->graph[LEFT]->n_outputs; o++) {
    st_outputs at;
    st_reals parts;
    rule_diff diff;
    if (!outputs_at(d, o, &at)) continue;
    st_in_reals(&at, &parts);
    const rule_tensor *l = at.base[LEFT];
    if (!rule_dtype_is_float(l->dtype)) return false;
    if (!st_beyond_rounding(&at, (st_margin){d->sc.rel, 0, d->sc.nonfinite}, &diff)) continue;
    *output = o;
    return l->shape.rank && l->shape.dim[l->shape.rank - 1] >= LONG &&
           st_beyond_rounding(&at, (st_margin){d->sc.rel, CLEAR, d->sc.nonfinite}, &diff) &&
           isfinite(diff.max_rel);
  }
  return false;
}

static iso_code differs_at(differing *d, size_t o, st_difference *out, iso_error *err) {
  enum { WIDE_STREAMS = 1 << 20 };
  st_outputs at;
  st_reals parts;
  iso_code c = ISO_OK;
  if (!outputs_at(d, o, &at)) return ISO_OK;
  st_in_reals(&at, &parts);
  out->found = st_beyond_rounding(&at, d->sc, &out->diff);
  if (out->found && isinf(out->diff.max_rel)) { /* a number on one side only */
    if (!d->wide[LEFT][0].value)
      c = run_shaken(d->s, d->leaf, d->by, ALL_WIDE, d->streams + WIDE_STREAMS, d->wide, err);
    if (!c) output_of(d->s, d->wide, o, at.wide), st_in_reals(&at, &parts);
    out->found = !c && st_beyond_rounding(&at, d->sc, &out->diff);
    out->signs |= !c && !out->found;
  }
  if (!c && out->found) {
    bool by_storage;
    const st_storage asked = {d->leaf, &at, o, d->sc, d->streams};
    c = st_moved_by_storage(d->s, &asked, &by_storage, err);
    out->found = !c && !by_storage;
    if (c || !out->found) return c;
  }
  if (!c && !out->found) c = decided_apart(d->s, d->leaf, &at, o, out, err);
  if (!c && out->found)
    c = out->output = o, c = beyond_order(d->s, d->leaf, d->ordered, &at, d->sc, out, err);
  if (c || !out->found) return c;
  bool rounding = false;
  c = output_by_rounding(d->s, d->leaf, d->base, o, &rounding, err);
  out->found = !c && !rounding;
  return c;
}

iso_code st_differs(state *s, rule_tensor **const leaf[2], const st_run base[2], st_margin sc,
                    uint64_t streams, st_difference *out, iso_error *err) {
  /* A kernel in few bits rounds by about a hundredth of the tolerance that stands for it. */
  differing d = {.s = s,
                 .leaf = leaf,
                 .base = base,
                 .sc = sc,
                 .by = fmax(noise, 1e-2 * s->groups.coarse),
                 .streams = streams};
  out->found = out->clear = false;
  iso_code c = run_shaken(s, leaf, d.by, FIRST, streams, d.shaken, err);
  const bool any = !c && any_may_differ(&d);
  if (any) c = run_shaken(s, leaf, d.by, STORED, streams, d.shaken, err);
  size_t clear = 0;
  const bool is_clear = !c && any && find_clear(&d, &clear);
  if (!c && any && !is_clear) c = run_shaken(s, leaf, d.by, LATER, streams, d.shaken, err);
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && any && !out->found; o++) {
    c = differs_at(&d, o, out, err);
    out->clear = !c && out->found && is_clear && o == clear;
    if (c || out->found || !is_clear || o != clear) continue;
    /* It was something else by which it differs: what comes behind it is to be looked at whole. */
    c = run_shaken(s, leaf, d.by, LATER, streams, d.shaken, err);
  }
  free_shaken(d.shaken);
  free_shaken(d.wide);
  for (int side = 0; side < 2; side++)
    for (int k = 0; k < ORDERS; k++) st_run_free(&d.ordered[side][k]);
  return c;
}

/* The value of a node in a run. NULL: it has none, or several. */
static const rule_tensor *value_at(const st_run *run, const place *at) {
  const st_value_list *v = run->value ? &run->value[at->node] : NULL;
  return v && v->n == 1 ? v->v[0] : NULL;
}

/* The runs that show how far roundings move two nodes: `base` undisturbed. */
typedef struct noise_runs {
  st_run base[2], run[2][NOISE_RUNS], wide[2][NOISE_RUNS];
} noise_runs;
/* Those of the outputs on one draw, which every pair of outputs is asked of in turn. */
struct st_output_runs {
  noise_runs of;
  bool done;
  size_t read_as[4]; /* what a run depends on: how constants and literals are read, and merges */
};

static void free_runs(noise_runs *r) {
  for (int k = 0; k < 2; k++) st_run_free(&r->base[k]);
  free_shaken(r->run);
  free_shaken(r->wide);
}

/* Of each of two sides; `poles`: the wide runs as well. Owns: free_runs, after a failure too. */
static iso_code run_noise(state *s, rule_tensor **const leaf[2], const int side[2], bool poles,
                          bool keep_all, noise_runs *r, iso_error *err) {
  iso_code c = ISO_OK;
  for (int k = 0; k < 2 && !c; k++) {
    const int at = side[k];
    c = st_run_graph(s, at, leaf[at], &(st_run_how){.keep_all = keep_all}, &r->base[k], err);
    for (int i = 0; i < NOISE_RUNS && !c; i++) {
      st_run_how how = disturbed(i, noise, false, (uint64_t)(k * NOISE_RUNS + i));
      how.keep_all = keep_all;
      c = st_run_graph(s, at, leaf[at], &how, &r->run[k][i], err);
      if (c || !poles || i == STORAGE_RUN) continue;
      how = disturbed(i, noise, true, how.stream);
      how.keep_all = keep_all;
      c = st_run_graph(s, at, leaf[at], &how, &r->wide[k][i], err);
    }
  }
  return c;
}

/* `all`: both nodes have one value in each run. Without it nothing is said. */
static bool moved_so_far(state *s, const noise_runs *r, const place at[2], bool poles, bool *all) {
  st_outputs o = {0};
  *all = true;
  for (int k = 0; k < 2; k++) {
    o.base[k] = value_at(&r->base[k], &at[k]);
    for (int i = 0; i < NOISE_RUNS; i++) {
      o.run[k][i] = value_at(&r->run[k][i], &at[k]);
      o.wide[k][i] = value_at(&r->wide[k][i], &at[k]);
      *all &= o.base[k] && o.run[k][i] && (!poles || i == STORAGE_RUN || o.wide[k][i]);
    }
  }
  if (!*all || o.base[0]->numel != o.base[1]->numel) return false;
  st_reals parts;
  st_in_reals(&o, &parts);
  rule_diff d;
  const st_margin margin = {s->o->rel_tol, 100, true};
  return !st_beyond_rounding(&o, margin, &d);
}

static bool is_output(const synth_graph *g, size_t node) {
  for (size_t i = 0; i < g->n_outputs; i++)
    if (g->output[i].node == node) return true;
  return false;
}

/* The outputs' runs on draw `d`, made once. */
static iso_code output_runs(state *s, size_t d, rule_tensor **const leaf[2], const noise_runs **out,
                            iso_error *err) {
  static const int sides[2] = {LEFT, RIGHT};
  if (d >= s->values.n_output_runs) {
    struct st_output_runs *more = realloc(s->values.output_runs, (d + 1) * sizeof *more);
    if (!more) return iso_fail(err, ISO_NOMEM, "out of memory");
    s->values.output_runs = more;
    while (s->values.n_output_runs <= d)
      more[s->values.n_output_runs++] = (struct st_output_runs){.done = false};
  }
  struct st_output_runs *r = &s->values.output_runs[d];
  const size_t now[4] = {s->constants.n_rounded, s->constants.n_readings, s->constants.wide,
                         s->res->n_merges};
  if (memcmp(now, r->read_as, sizeof now) != 0) {
    free_runs(&r->of);
    *r = (struct st_output_runs){.read_as = {now[0], now[1], now[2], now[3]}};
  }
  iso_code c = r->done ? ISO_OK : run_noise(s, leaf, sides, false, false, &r->of, err);
  if (c) free_runs(&r->of), r->of = (noise_runs){0};
  r->done = !c;
  *out = &r->of;
  return c;
}

void st_free_output_runs(state *s) {
  for (size_t d = 0; d < s->values.n_output_runs; d++) free_runs(&s->values.output_runs[d].of);
  free(s->values.output_runs);
}

/* Whether two nodes differ by no more than disturbed roundings move them: of a sum that cancels
 * they are all that is left, and graphs of more work than many digits are had for have such sums.
 * `poles`: numbers that rounding alone makes count as no difference either. */
static iso_code within_noise(state *s, size_t d, rule_tensor **const leaf[2], const place at[2],
                             bool poles, bool *yes, iso_error *err) {
  const int side[2] = {at[0].side, at[1].side};
  bool all = false;
  if (!poles && side[0] == LEFT && side[1] == RIGHT && is_output(s->graph[LEFT], at[0].node) &&
      is_output(s->graph[RIGHT], at[1].node)) {
    const noise_runs *r = NULL;
    const iso_code c = output_runs(s, d, leaf, &r, err);
    if (c) return c;
    *yes = moved_so_far(s, r, at, false, &all);
    if (all) return ISO_OK;
  }
  noise_runs r = {0};
  const iso_code c = run_noise(s, leaf, side, poles, true, &r, err);
  *yes = !c && moved_so_far(s, &r, at, poles, &all);
  free_runs(&r);
  return c;
}

iso_code st_same_pole(state *s, size_t d, const eg_node e[2], bool *yes, iso_error *err) {
  place at[2];
  rule_tensor **leaf[2];
  *yes = false;
  for (int k = 0; k < 2; k++) {
    const int32_t *node = s->rec[e[k].i].node;
    at[k] = (place){.side = node[LEFT] >= 0 ? LEFT : RIGHT};
    if (node[at[k].side] < 0) return ISO_OK;
    at[k].node = (size_t)node[at[k].side];
  }
  iso_code c = st_leaves_of_draw(s, d, leaf, err);
  if (!c) c = within_noise(s, d, leaf, at, true, yes, err);
  st_free_leaves(s, leaf);
  return c;
}

/* Noise is a weak witness: it says nothing where the numbers themselves tell two nodes apart, nor
 * where nothing but the values is there to join them. */
iso_code st_same_numbers(state *s, size_t d, const eg_node e[2], bool by_noise, bool *yes,
                         iso_error *err) {
  enum { MOST_ELEMENTS = 60000 }; /* more are not evaluated so */
  place at[2];
  rule_tensor **leaf[2];
  bool alone = false;
  *yes = false;
  for (int k = 0; k < 2; k++) {
    const int32_t *node = s->rec[e[k].i].node;
    at[k] = (place){.side = node[LEFT] >= 0 ? LEFT : RIGHT};
    const bool stands = node[at[k].side] >= 0;
    if (stands) at[k].node = (size_t)node[at[k].side];
    else if (!s->rec[e[k].i].konst || !(at[k].constant = st_val(s, e[k], d))) return ISO_OK;
    alone |= !stands;
  }
  if (st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) > MOST_ELEMENTS)
    return ISO_OK;
  iso_code c = st_leaves_of_draw(s, d, leaf, err);
  rule_numbers numbers = RULE_NUMBERS_UNKNOWN;
  if (!c) c = real_numbers(s, leaf, at, &numbers, err);
  *yes = !c && numbers == RULE_NUMBERS_SAME;
  if (!c && by_noise && !alone && numbers == RULE_NUMBERS_UNKNOWN)
    c = within_noise(s, d, leaf, at, false, yes, err);
  st_free_leaves(s, leaf);
  return c;
}
