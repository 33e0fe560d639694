/* Inputs that a caller may have computed from one another: lengths and their sum, a permutation and
 * its inverse, ids and the mask of their padding. They are drawn each by itself, and outputs that
 * differ only where one of them is other than it was captured may be those of a contradiction: one
 * side reads one of them where the other side reads the other. Then changing either alone shows it,
 * and as they were captured nothing does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/refute/refute.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_RUNS = 64, MIN_RUNS = 12 };
static const int64_t work = 200000000; /* elements of leaves read by all runs together */

/* An input of integers, or of two numbers, as masks have; or floats that are no more than one of
 * these has: lengths, or their inverses. */
typedef struct one {
  const synth_node *node;
  eg_node leaf;
  rule_tensor *captured;
  rule_tensor *drawn; /* borrowed: of the witness */
  bool changed;
} one;

typedef struct together {
  state *s;
  one *in;
  size_t n, runs;
  eg_node *leaf; /* of the variant that is tried: all of them */
  rule_tensor **value;
} together;

/* ---- which there are ---- */

static bool has_two_numbers(const rule_tensor *t) {
  enum { SOME = 4 };
  double other = 0;
  bool two = false;
  for (int64_t i = 1; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i), first = rule_tensor_get(t, 0);
    if (x == first || (two && x == other)) continue;
    if (two) return false;
    two = true, other = x;
  }
  return two && t->numel >= SOME;
}

static int64_t most_of_masks(const synth_graph *const graph[2]) {
  int64_t most = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < graph[side]->n_nodes; i++) {
      const synth_node *n = &graph[side]->node[i];
      if (n->kind != SYNTH_INPUT || !n->value[0]) continue;
      const bool real = rule_dtype_is_inexact(n->value[0]->dtype);
      if (n->value[0]->numel > most && (!real || has_two_numbers(n->value[0])))
        most = n->value[0]->numel;
    }
  return most;
}

bool st_some_computed(const state *s) {
  const int64_t most = most_of_masks(s->graph);
  bool any = false;
  for (int side = 0; side < 2 && !any; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !any; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      any = n->kind == SYNTH_INPUT && n->value[0] && n->value[0]->numel > 0 &&
            rule_dtype_is_float(n->value[0]->dtype) && n->value[0]->numel <= most;
    }
  return any;
}

static bool may_be_computed(const synth_node *n, int64_t most) {
  const rule_dtype dtype = n->value[0]->dtype;
  if (n->value[0]->numel == 0 || rule_dtype_is_complex(dtype)) return false;
  return !rule_dtype_is_float(dtype) || n->value[0]->numel <= most || has_two_numbers(n->value[0]);
}

static bool differ(const rule_tensor *x, const rule_tensor *y) {
  for (int64_t i = 0; i < x->numel; i++)
    if (rule_tensor_get(x, i) != rule_tensor_get(y, i)) return true;
  return false;
}

static iso_code collect(together *k, iso_error *err) {
  state *s = k->s;
  const int64_t most = most_of_masks(s->graph);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      const eg_node e = s->map[side][i];
      bool seen = n->kind != SYNTH_INPUT || e.i == EG_NONE || !s->res->witness_leaf[side][i] ||
                  !s->rec[e.i].atom || !may_be_computed(n, most);
      for (size_t j = 0; j < k->n && !seen; j++) seen = eg_equal(s->g, k->in[j].leaf, e);
      if (seen) continue;
      one *x = &k->in[k->n];
      *x = (one){.node = n, .leaf = e, .drawn = s->res->witness_leaf[side][i]};
      const iso_code c = rule_tensor_to_float64_in(n->value[0], s->o->threads, &x->captured, err);
      if (c) return c;
      x->changed = differ(x->captured, x->drawn);
      k->n++;
    }
  return ISO_OK;
}

/* ---- what shows it ---- */

/* All as they were captured, but for input `i`, which is `v`. */
static iso_code shows(together *k, size_t i, rule_tensor *v, bool *yes, iso_error *err) {
  st_variant all = {.leaf = k->leaf, .value = k->value, .n = k->n, .anew = true};
  *yes = false;
  if (k->runs == 0 || st_stopped(k->s)) return ISO_OK;
  k->runs--;
  for (size_t j = 0; j < k->n; j++) k->leaf[j] = k->in[j].leaf, k->value[j] = k->in[j].captured;
  if (i < k->n) k->value[i] = v;
  return st_try_variant(k->s, &all, false, NULL, NULL, yes, err);
}

/* Other values of an input, which nearly all that may be read of it tells: the last two lie beyond
 * the numbers of all other inputs, whatever it is compared with there. */
enum { ROTATED, REVERSED, ONE_NUMBER, MORE, LESS, TWICE, ABOVE, BELOW, N_WAYS };

static double other_number(const rule_tensor *t, int64_t i, int way, double far) {
  const double x = rule_tensor_get(t, i);
  switch (way) {
  case ROTATED: return rule_tensor_get(t, (i + 1) % t->numel);
  case REVERSED: return rule_tensor_get(t, t->numel - 1 - i);
  case ONE_NUMBER: return rule_tensor_get(t, 0);
  case MORE: return x + 1;
  case LESS: return x - 1;
  case TWICE: return 2 * x;
  default: return way == ABOVE ? x + far : x - far;
  }
}

/* One more than what two integers of the inputs lie apart. */
static double beyond(const together *k) {
  double low = 0, high = 0;
  for (size_t i = 0; i < k->n; i++) {
    const rule_tensor *t = k->in[i].captured;
    if (rule_dtype_is_float(k->in[i].node->value[0]->dtype)) continue;
    for (int64_t j = 0; j < t->numel; j++) {
      low = fmin(low, rule_tensor_get(t, j));
      high = fmax(high, rule_tensor_get(t, j));
    }
  }
  return high - low + 1;
}

/* Whether input `i` alone shows it, at some values. */
static iso_code any_shows(together *k, size_t i, bool *yes, iso_error *err) {
  const rule_tensor *was = k->in[i].captured;
  const bool bits = k->in[i].node->value[0]->dtype == RULE_BOOL ||
                    rule_dtype_is_float(k->in[i].node->value[0]->dtype);
  const double far = beyond(k);
  iso_code c = ISO_OK;
  *yes = false;
  for (int way = 0; way < (bits ? MORE : N_WAYS) && !c && !*yes; way++) {
    rule_tensor *v;
    if ((c = rule_tensor_new(was->dtype, &was->shape, &v, err))) break;
    for (int64_t j = 0; j < was->numel; j++) rule_tensor_set(v, j, other_number(was, j, way, far));
    if (differ(v, was)) c = shows(k, i, v, yes, err);
    rule_tensor_unref(v);
  }
  return c;
}

static iso_code say(state *s, const one *x, const one *y, iso_error *err) {
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason = iso_arena_printf(
      &s->res->arena,
      "the outputs differ only where %.80s or %.80s is other than it was captured, and one may "
      "have "
      "been computed from the other: a relations file may say that each is any (input %.80s range "
      "LOW HIGH, input %.80s range LOW HIGH)",
      x->node->name, y->node->name, x->node->name, y->node->name);
  return s->res->reason ? ISO_OK : nomem(err);
}

/* ---- whether they meet where the graphs part ---- */

/* Marks the inputs that one side's region of a divergence is computed from. */
static iso_code mark_inputs(const together *k, int side, const synth_divergence *d, bool *read,
                            iso_error *err) {
  const state *s = k->s;
  const synth_graph *g = s->graph[side];
  const int64_t from[2] = {side == LEFT ? d->left : d->right, d->at[side]};
  const uint32_t *region = side == LEFT ? d->left_region : d->right_region;
  const size_t n = side == LEFT ? d->n_left_region : d->n_right_region;
  bool *below = calloc(g->n_nodes + 1, 1);
  if (!below) return nomem(err);
  for (int i = 0; i < 2; i++)
    if (from[i] >= 0) below[from[i]] = true;
  for (size_t i = 0; i < n; i++) below[region[i]] = true;
  for (size_t i = g->n_nodes; i-- > 0;) {
    if (!below[i]) continue;
    if (g->node[i].kind == SYNTH_OP) st_term_mark(g->node[i].call, below);
    for (size_t j = 0; j < k->n && g->node[i].kind == SYNTH_INPUT; j++)
      read[j] |= eg_equal(s->g, k->in[j].leaf, s->map[side][i]);
  }
  free(below);
  return ISO_OK;
}

/* Mistakes in two places are two: inputs hang together where one place reads both. */
static iso_code meet(const together *k, size_t x, size_t y, bool *yes, iso_error *err) {
  const synth_result *r = k->s->res;
  iso_code c = ISO_OK;
  *yes = r->n_divergences == 0;
  for (size_t i = 0; i < r->n_divergences && !c && !*yes; i++) {
    bool *read = calloc(k->n + 1, 1);
    if (!read) return nomem(err);
    for (int side = 0; side < 2 && !c; side++)
      c = mark_inputs(k, side, &r->divergence[i], read, err);
    *yes = read[x] && read[y];
    free(read);
  }
  return c;
}

/* ---- what is said ---- */

/* Whether both are said to have any values; or are equal: nobody computes what is there already. */
static bool are_apart(const one *x, const one *y) {
  const bool same = x->captured->numel == y->captured->numel && !differ(x->captured, y->captured);
  return same || (x->node->domain && y->node->domain);
}

/* Input `i` alone shows it: another one that does, too. */
static iso_code seek_other(together *k, size_t i, bool *found, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t j = 0; j < k->n && !c && !*found; j++) {
    if (j == i || are_apart(&k->in[i], &k->in[j])) continue;
    bool close;
    c = meet(k, i, j, &close, err);
    if (!c && close) c = any_shows(k, j, found, err);
    if (!c && *found) c = say(k->s, &k->in[i], &k->in[j], err);
  }
  return c;
}

static iso_code seek(together *k, iso_error *err) {
  bool yes, found = false;
  size_t changed = 0, first = 0, last = 0;
  for (size_t i = 0; i < k->n; i++)
    if (k->in[i].changed) first = changed++ ? first : i, last = i;
  if (changed == 0 || k->n < 2) return ISO_OK;
  iso_code c = shows(k, k->n, NULL, &yes, err); /* all as they were captured */
  if (c || yes) return c;
  bool alone = false;
  for (size_t i = 0; i < k->n && !c && !found; i++) {
    if (!k->in[i].changed) continue;
    c = shows(k, i, k->in[i].drawn, &yes, err);
    alone |= yes;
    if (!c && yes) c = seek_other(k, i, &found, err);
  }
  if (!c && !alone && changed > 1 && k->runs && !are_apart(&k->in[first], &k->in[last]) &&
      !k->in[first].node->kept)
    c = say(k->s, &k->in[first], &k->in[last], err);
  return c;
}

iso_code st_doubt_together(state *s, iso_error *err) {
  const size_t most = s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes + 1;
  together k = {.s = s};
  if (s->res->verdict != SYNTH_DIFFERENT || !s->res->redrawn || !s->res->witness_leaf[LEFT] ||
      !s->res->witness_leaf[RIGHT])
    return ISO_OK;
  const int64_t runs =
      work / (st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) + 1);
  k.runs = runs < MIN_RUNS ? MIN_RUNS : runs > MAX_RUNS ? MAX_RUNS : (size_t)runs;
  k.in = calloc(most, sizeof *k.in);
  k.leaf = calloc(most, sizeof *k.leaf);
  k.value = calloc(most, sizeof *k.value);
  iso_code c = k.in && k.leaf && k.value ? ISO_OK : nomem(err);
  if (!c) c = collect(&k, err);
  if (!c) c = seek(&k, err);
  for (size_t i = 0; i < k.n; i++) rule_tensor_unref(k.in[i].captured);
  free(k.in);
  free(k.leaf);
  free(k.value);
  return c;
}
