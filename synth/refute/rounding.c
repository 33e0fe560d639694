/* Whether outputs differ by more than rounding explains: more than disturbed roundings move them,
 * and not as two spellings of one real number that float64 tells apart. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "synth/refute/refute_int.h"

enum {
  NOISE_RUNS = 4,
  STORAGE_RUN = 3, /* the last one disturbs constants as their storage rounds them */
  STORAGE_MARGIN = 8
};
static const double noise = 4 * DBL_EPSILON;

typedef struct place { /* a node of a graph, or a constant that stands in neither */
  int side;
  size_t node;
  rule_tensor *constant; /* borrowed; NULL: the node */
} place;

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
                            const rule_tensor *const *nl, const rule_tensor *const *nr,
                            st_margin sc, rule_diff *d) {
  *d = (rule_diff){.equal = true, .index = -1};
  const int64_t row =
      l->shape.rank && l->shape.dim[l->shape.rank - 1] > 0 ? l->shape.dim[l->shape.rank - 1] : 1;
  const bool is_float = rule_dtype_is_float(l->dtype);
  /* Ten times the error of kernels that compute in few bits: no difference is found in it. */
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

/* Whether two nodes are the same in real numbers, so that what tells them apart is what rounding
 * made of it: a sum that swallowed an operand, say, which stochastic arithmetic need not notice. */
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

/* The left's output `o` and its counterpart. */
static iso_code output_by_rounding(state *s, rule_tensor **const leaf[2], size_t o, bool *yes,
                                   iso_error *err) {
  const place at[2] = {{LEFT, s->graph[LEFT]->output[o].node, NULL},
                       {RIGHT, s->graph[RIGHT]->output[s->right_of[o]].node, NULL}};
  rule_numbers numbers;
  const iso_code c = real_numbers(s, leaf, at, &numbers, err);
  *yes = !c && (numbers == RULE_NUMBERS_SAME || numbers == RULE_NUMBERS_LOST ||
                numbers == RULE_NUMBERS_JUMP);
  return c;
}

iso_code st_differs(state *s, rule_tensor **const leaf[2], const st_run base[2], st_margin sc,
                    uint64_t streams, st_difference *out, iso_error *err) {
  st_run shaken[2][NOISE_RUNS] = {0};
  iso_code c = ISO_OK;
  /* A kernel in few bits rounds by about a hundredth of the tolerance that stands for it. */
  const double by = fmax(noise, 1e-2 * s->groups.coarse);
  out->found = false;
  for (int side = 0; side < 2 && !c; side++)
    for (int k = 0; k < NOISE_RUNS && !c; k++)
      c = st_run_graph(s, side, leaf[side],
                       &(st_run_how){.noise = k == STORAGE_RUN ? ST_STORAGE : by,
                                     .stream = streams + (uint64_t)(side * NOISE_RUNS + k)},
                       &shaken[side][k], err);
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && !out->found; o++) {
    const rule_tensor *l = st_output(s, LEFT, &base[LEFT], o),
                      *r = st_output(s, RIGHT, &base[RIGHT], s->right_of[o]), *n[2][NOISE_RUNS];
    if (!l || !r || l->numel != r->numel) continue;
    for (int k = 0; k < NOISE_RUNS; k++) {
      n[LEFT][k] = st_output(s, LEFT, &shaken[LEFT][k], o);
      n[RIGHT][k] = st_output(s, RIGHT, &shaken[RIGHT][k], s->right_of[o]);
    }
    out->found = beyond_rounding(l, r, n[LEFT], n[RIGHT], sc, &out->diff);
    if (!out->found) continue;
    bool rounding = false;
    c = output_by_rounding(s, leaf, o, &rounding, err);
    out->found = !c && !rounding;
    if (out->found) out->output = o;
  }
  for (int side = 0; side < 2; side++)
    for (int k = 0; k < NOISE_RUNS; k++) st_run_free(&shaken[side][k]);
  return c;
}

/* Whether two nodes differ by no more than disturbed roundings move them: of a sum that cancels
 * they are all that is left, and graphs of more work than many digits are had for have such sums.
 */
static iso_code within_noise(state *s, rule_tensor **const leaf[2], const place at[2], bool *yes,
                             iso_error *err) {
  const rule_tensor *base[2] = {NULL, NULL}, *shaken[2][NOISE_RUNS] = {{NULL}};
  st_run run[2][NOISE_RUNS + 1] = {0};
  iso_code c = ISO_OK;
  bool all = true;
  for (int k = 0; k < 2 && !c; k++)
    for (int i = 0; i <= NOISE_RUNS && !c; i++) {
      const double by = i == NOISE_RUNS ? 0 : i == STORAGE_RUN ? ST_STORAGE : noise;
      const st_run_how how = {.noise = by, .stream = (uint64_t)(k * NOISE_RUNS + i), true, NULL};
      c = st_run_graph(s, at[k].side, leaf[at[k].side], &how, &run[k][i], err);
      const st_value_list *v = c ? NULL : &run[k][i].value[at[k].node];
      const rule_tensor *x = v && v->n == 1 ? v->v[0] : NULL;
      *(i == NOISE_RUNS ? &base[k] : &shaken[k][i]) = x;
      all &= x != NULL;
    }
  rule_diff d;
  const st_margin margin = {s->o->rel_tol, 100, true};
  *yes = !c && all && base[0]->numel == base[1]->numel &&
         !beyond_rounding(base[0], base[1], shaken[0], shaken[1], margin, &d);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i <= NOISE_RUNS; i++) st_run_free(&run[k][i]);
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
    c = within_noise(s, leaf, at, yes, err);
  st_free_leaves(s, leaf);
  return c;
}
