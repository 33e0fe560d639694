/* Where the graphs may be undefined, and which of their operators see it: a divisor that may be 0,
 * the root of a number that may be negative, with a comparison or an isnan after it. Rules make no
 * claim there, so inputs are drawn at the numbers that divisors and comparisons hold against
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/refute/refute.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- what may be undefined ---- */

static bool is_float(rule_dtype d) { return rule_dtype_is_float(d) || rule_dtype_is_complex(d); }

/* The fact of a constant is that of its numbers; other leaves are given. */
static rule_fact leaf_fact(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  rule_fact f = rule_fact_of_domain(n->domain);
  const rule_tensor *v = n->value ? n->value[0] : NULL;
  f.nonnegative |= n->dtype == RULE_BOOL;
  if (!v || !s->rec[s->map[side][i].i].konst) return f;
  f = (rule_fact){.constant = true, .nonnegative = true, .nonzero = true};
  for (int64_t k = 0; k < v->numel; k++) {
    const double x = rule_tensor_get(v, k);
    f.masked |= x == -INFINITY;
    f.undefined |= !isfinite(x) && x != -INFINITY;
    f.nonnegative &= x >= 0;
    f.nonzero &= x != 0;
  }
  return f;
}

/* Flags in `watch` the operands of a call that are undefined in `fact`. */
static bool watch_operands(const rule_term *t, const rule_fact *fact, bool *watch) {
  bool any = t->kind == RULE_VAR && fact[t->u.i].undefined;
  if (any) watch[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) any |= watch_operands(t->child[i], fact, watch);
  return any;
}

static bool any_large(const rule_term *t, const rule_fact *fact) {
  bool any = t->kind == RULE_VAR && fact[t->u.i].large;
  for (uint32_t i = 0; i < t->n; i++) any |= any_large(t->child[i], fact);
  return any;
}

/* Whether the call divides by a tensor that may be 0, or takes its logarithm. */
static bool divides(const rule_term *t, const rule_fact *fact) {
  const int k = rule_pole_at_zero(t);
  return k >= 0 && (uint32_t)k < t->n && t->child[k]->kind == RULE_VAR &&
         !fact[t->child[k]->u.i].nonzero;
}

/* A truth value that is the same everywhere and on all draws, of numbers that may be large: as a
 * number is no less than itself, which one that has overflowed need not be. */
static bool is_steady(state *s, int side, size_t i, const rule_fact *fact, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  if (n->dtype != RULE_BOOL || fact[i].constant || !any_large(n->call, fact)) return false;
  if (!s->rec[e.i].valued || s->rec[e.i].n_out != 1) return false;
  for (size_t d = 0; d < s->n_draws; d++) {
    st_trim(s);
    const rule_tensor *first = st_val(s, e, 0), *v = st_val(s, e, d);
    for (int64_t k = 0; v && first && k < v->numel; k++)
      if (rule_tensor_get(v, k) != rule_tensor_get(first, 0)) return false;
    if (!v || !first) return (void)st_lost(&s->values, err), false;
  }
  return true;
}

bool st_any_undefined(const rule_term *t, const rule_fact *fact) {
  bool any = t->kind == RULE_VAR && fact[t->u.i].undefined;
  for (uint32_t i = 0; i < t->n; i++) any |= st_any_undefined(t->child[i], fact);
  return any;
}

static bool reads_float(const synth_graph *g, const rule_term *t) {
  bool any = t->kind == RULE_VAR && is_float(g->node[t->u.i].dtype);
  for (uint32_t i = 0; i < t->n; i++) any |= reads_float(g, t->child[i]);
  return any;
}

/* Whether an integer that the node makes may be one that nothing specifies, of a number that is
 * none: what a cast gives for it. A comparison has seen it. */
static bool keeps_undefined(const synth_graph *g, const synth_node *n) {
  if (is_float(n->dtype)) return true;
  return n->dtype != RULE_BOOL &&
         (rule_operator_of(n->call->u.s)->cast || !reads_float(g, n->call));
}

/* Whether its values have minus infinity: where, constants alone decide, so that it is there on
 * draws if on any inputs. The largest of a row that is padded is a number. */
static bool meets_mask(state *s, eg_node e) {
  if (!s->rec[e.i].valued || s->rec[e.i].n_out != 1) return true;
  for (size_t d = 0; d < s->n_draws; d++) {
    st_trim(s);
    const rule_tensor *v = st_val(s, e, d);
    if (!v) return true;
    for (int64_t k = 0; k < v->numel; k++)
      if (rule_tensor_get(v, k) == -INFINITY) return true;
  }
  return s->n_draws == 0;
}

void st_note_fact(state *s, int side, size_t i, rule_fact *fact) {
  const synth_graph *g = s->graph[side];
  const synth_node *n = &g->node[i];
  if (s->map[side][i].i == EG_NONE) return;
  fact[i] = n->kind == SYNTH_OP ? rule_fact_of(n->call, fact) : leaf_fact(s, side, i);
  fact[i] = rule_fact_in_shape(fact[i], &n->shape);
  if (n->kind != SYNTH_OP) return;
  if (!is_float(n->dtype)) fact[i].large = false;
  fact[i].undefined &= keeps_undefined(g, n);
  fact[i].masked = fact[i].masked && is_float(n->dtype) && meets_mask(s, s->map[side][i]);
}

static void facts_of(state *s, int side, rule_fact *fact, st_poles *p, iso_error *err) {
  const synth_graph *g = s->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    st_note_fact(s, side, i, fact);
    if (n->kind != SYNTH_OP || s->map[side][i].i == EG_NONE) continue;
    p->divides[side][i] = divides(n->call, fact);
    const bool keeps = keeps_undefined(g, n),
               sees = !keeps || (is_float(n->dtype) && rule_looks_at_undefined(n->call));
    p->origin[side][i] = fact[i].undefined && n->n_outputs == 1 && !st_any_undefined(n->call, fact);
    if (sees) p->watched |= watch_operands(n->call, fact, p->watch[side]);
    const rule_tells tells = rule_tells_overflow(n->call, fact);
    p->tells[side][i] = tells != RULE_TELLS_NOTHING;
    p->steady[side][i] = !p->tells[side][i] && is_steady(s, side, i, fact, err);
    p->told |= tells == RULE_TELLS_OVERFLOW;
    p->jumps |= p->tells[side][i] || (!is_float(n->dtype) && any_large(n->call, fact));
    p->hides |= p->steady[side][i];
    p->hides |= tells == RULE_TELLS_MASKS;
  }
}

/* ---- numbers to look at ---- */

static void add_pole(st_poles *p, double x) {
  for (size_t i = 0; i < p->n; i++)
    if (p->value[i] == x) return;
  if (isfinite(x) && fabs(x) < 1e12 && p->n < ST_POLES) p->value[p->n++] = x;
}

/* Whether a number beside the operand moves where it has a pole, or chooses. */
static bool moves_pole(const rule_operator *o) {
  const bool sum = o->arithmetic >= RULE_ARITHMETIC_ADD && o->arithmetic <= RULE_ARITHMETIC_RSUB;
  return sum || o->choice == RULE_CHOICE_COMPARE ||
         (o->choice == RULE_CHOICE_BOUND && o->bound == RULE_BOUND_BELOW);
}

/* The number that the call compares its operand with: a literal, or a constant of one number. */
static void collect(const state *s, int side, const rule_term *call, st_poles *p) {
  const rule_operator *o = rule_operator_of(call->u.s);
  if (!moves_pole(o)) return;
  for (uint32_t i = 0; i < call->n && i < 2; i++) {
    const rule_term *t = call->child[i];
    double x = NAN;
    if (t->kind == RULE_FLOAT) x = t->u.f;
    if (t->kind == RULE_INT) x = (double)t->u.i;
    const synth_node *n = t->kind == RULE_VAR ? &s->graph[side]->node[t->u.i] : NULL;
    if (n && n->kind != SYNTH_OP && n->kind != SYNTH_INPUT && n->value && n->value[0]->numel == 1)
      x = rule_tensor_get(n->value[0], 0);
    if (!isnan(x)) add_pole(p, o->arithmetic == RULE_ARITHMETIC_ADD ? -x : x);
  }
}

static double elements(const rule_shape *s) {
  double n = 1;
  for (uint32_t k = 0; k < s->rank; k++) n *= (double)s->dim[k];
  return n;
}

static bool is_square(const rule_operator *o, const rule_term *t) {
  const rule_term *a = t->child[0], *b = t->n > 1 ? t->child[1] : NULL;
  if (o->arithmetic == RULE_ARITHMETIC_SQUARE) return true;
  if (o->arithmetic == RULE_ARITHMETIC_MUL) return b && b->kind == RULE_VAR && a->u.i == b->u.i;
  return o->power && b &&
         ((b->kind == RULE_INT && b->u.i == 2) || (b->kind == RULE_FLOAT && b->u.f == 2));
}

/* The operand of a call that is a pole: of a sum, where all of its numbers are one, of a mean,
 * where all others are 0. */
static void solve(const synth_graph *g, const synth_node *n, st_poles *p) {
  const rule_term *t = n->call;
  const rule_operator *o = rule_operator_of(t->u.s);
  if (!t->n || t->child[0]->kind != RULE_VAR) return;
  const double many = elements(&g->node[t->child[0]->u.i].shape), few = elements(&n->shape);
  const bool sums = o->sums && !o->product && few >= 1 && many > few, square = is_square(o, t);
  const size_t n_known = p->n;
  for (size_t k = 0; k < n_known; k++) {
    const double v = p->value[k];
    if (sums) add_pole(p, o->growth == RULE_GROWS_TERMS ? v * few / many : v * many / few);
    if (square && v > 0) add_pole(p, sqrt(v));
    if (o->arithmetic == RULE_ARITHMETIC_SQRT) add_pole(p, v * v);
  }
}

/* Each call once, before its operands. */
static iso_code solve_all(const state *s, st_poles *p, iso_error *err) {
  bool *done = calloc(s->n_rec + 1, 1);
  if (!done) return nomem(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = s->graph[side]->n_nodes; i-- > 0;) {
      const synth_node *n = &s->graph[side]->node[i];
      const eg_node e = s->map[side][i];
      if (n->kind != SYNTH_OP || e.i == EG_NONE || done[e.i]) continue;
      done[e.i] = true;
      solve(s->graph[side], n, p);
    }
  free(done);
  return ISO_OK;
}

bool *st_below_watched(const state *s, const st_poles *p, int side) {
  const synth_graph *g = s->graph[side];
  bool *need = calloc(g->n_nodes + 1, 1);
  for (size_t i = g->n_nodes; need && i-- > 0;) {
    need[i] |= p->watch[side][i];
    if (need[i] && g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE)
      st_term_mark(g->node[i].call, need);
  }
  return need;
}

/* The classes of leaves that watched nodes are computed from, and the origins among the nodes in
 * between. */
static iso_code find_cone(state *s, st_poles *p, iso_error *err) {
  if (!(p->feeds = calloc(s->n_rec + 1, 1))) return nomem(err);
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    bool *need = st_below_watched(s, p, side);
    if (!need) return nomem(err);
    for (size_t i = 0; i < g->n_nodes; i++) {
      p->origin[side][i] &= need[i];
      if (need[i] && g->node[i].kind != SYNTH_OP && s->map[side][i].i != EG_NONE)
        p->feeds[eg_class_of(s->g, s->map[side][i]).i] = true;
    }
    free(need);
  }
  for (size_t i = 0; i < s->graph[LEFT]->n_nodes; i++)
    p->others |= s->graph[LEFT]->node[i].kind == SYNTH_INPUT && s->map[LEFT][i].i != EG_NONE &&
                 !p->feeds[eg_class_of(s->g, s->map[LEFT][i]).i];
  return ISO_OK;
}

/* Graphs of ranks have thousands of nodes, and each draw runs both. */
static bool is_small(const state *s) {
  enum { ELEMENTS = 1 << 16, NODES = 256 };
  return s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes <= NODES &&
         st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) <= ELEMENTS;
}

iso_code st_poles_of(state *s, st_poles *p, iso_error *err) {
  rule_fact *fact[2] = {NULL, NULL};
  iso_code c = ISO_OK;
  *p = (st_poles){.value = {0, -1, 1}, .n = 3};
  for (int side = 0; side < 2; side++) {
    fact[side] = calloc(s->graph[side]->n_nodes + 1, sizeof *fact[side]);
    p->watch[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    p->tells[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    p->steady[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    p->origin[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    p->none[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    p->parted[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    p->divides[side] = calloc(s->graph[side]->n_nodes + 1, 1);
    if (!fact[side] || !p->watch[side] || !p->tells[side] || !p->steady[side]) c = nomem(err);
    if (!p->origin[side] || !p->none[side] || !p->parted[side] || !p->divides[side]) c = nomem(err);
  }
  for (int side = 0; side < 2 && !c; side++) {
    const synth_graph *g = s->graph[side];
    facts_of(s, side, fact[side], p, err);
    for (size_t i = 0; i < g->n_nodes; i++)
      if (g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE)
        collect(s, side, g->node[i].call, p);
  }
  p->small = is_small(s);
  if (!c && p->small) c = solve_all(s, p, err);
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c; o++) {
    const uint32_t l = s->graph[LEFT]->output[o].node,
                   r = s->graph[RIGHT]->output[s->right_of[o]].node;
    p->apart |= fact[LEFT][l].undefined != fact[RIGHT][r].undefined;
    p->undefined |= fact[LEFT][l].undefined || fact[RIGHT][r].undefined;
  }
  free(fact[LEFT]);
  free(fact[RIGHT]);
  enum { MANY = 96, FEW = 24 };
  p->n_one = p->small && p->watched ? 2 * p->n : p->n;
  p->n_mixed = p->n_one + (p->small && p->watched ? MANY : FEW);
  p->n_draws = p->n_mixed + (p->small ? p->n : 0);
  return c || !p->watched ? c : find_cone(s, p, err);
}

void st_poles_free(st_poles *p) {
  for (int side = 0; side < 2; side++) {
    free(p->watch[side]);
    free(p->tells[side]);
    free(p->steady[side]);
    free(p->origin[side]);
    free(p->none[side]);
    free(p->parted[side]);
    free(p->divides[side]);
  }
  free(p->feeds);
  *p = (st_poles){0};
}

iso_code st_tells_overflow(state *s, bool *yes, iso_error *err) {
  st_poles p;
  const iso_code c = st_poles_of(s, &p, err);
  *yes = p.jumps;
  st_poles_free(&p);
  return c;
}

/* ---- draws ---- */

/* One of the poles that the leaf may hold, else the least number that it may. */
static double pole_within(const st_poles *p, size_t k, double low, double high) {
  const double x = p->value[k % p->n];
  return isinf(low) || (x >= low && x < high && x == floor(x)) ? x : low;
}

/* A leaf that feeds no watched node takes ordinary values on every other draw, which tell choices
 * apart: at poles alone two such inputs would be one number. */
static bool tells_apart(const st_poles *p, size_t k) {
  return k >= p->n && (k < p->n_one || k % 2);
}

bool st_poles_plain(const st_poles *p, size_t k, size_t class) {
  return p->feeds && !p->feeds[class] && tells_apart(p, k);
}

/* A leaf that is one number everywhere, or the same along one of its dimensions. */
static bool fill_along(const st_poles *p, size_t k, iso_rng *rng, st_within in, rule_tensor *v) {
  enum { ROWS, WHOLE, ALONG, N_WAYS };
  const uint64_t way = k >= p->n_one && k < p->n_mixed ? iso_rng_below(rng, N_WAYS) : ROWS;
  if (way == ROWS || v->shape.rank == 0 || v->numel == 0) return false;
  const uint32_t d = way == ALONG ? (uint32_t)iso_rng_below(rng, v->shape.rank) : 0;
  int64_t stride = 1;
  for (uint32_t i = d + 1; i < v->shape.rank && way == ALONG; i++) stride *= v->shape.dim[i];
  const int64_t length = way == ALONG ? v->shape.dim[d] : v->numel;
  for (int64_t i = 0; i < v->numel; i++)
    rule_tensor_set(v, i,
                    i / stride % length == 0
                        ? pole_within(p, iso_rng_below(rng, p->n), in.low, in.high)
                        : rule_tensor_get(v, i - stride));
  return true;
}

void st_poles_fill(const st_poles *p, size_t k, bool plain_only, iso_rng *rng, st_within in,
                   rule_tensor *v) {
  enum { ONE, MANY, PLAIN, N_ROWS };
  const double low = in.low, high = in.high;
  const uint32_t rank = v->shape.rank;
  const int64_t row = rank && v->shape.dim[rank - 1] > 0 ? v->shape.dim[rank - 1] : 1;
  const double width = isinf(low) ? 0 : fmin(high - low, 0x1p40);
  uint64_t how = plain_only ? PLAIN : ONE;
  size_t at = k;
  if (!plain_only && fill_along(p, k, rng, in, v)) return;
  for (int64_t i = 0; i < v->numel; i++) {
    if (!plain_only && k >= p->n_one && i % row == 0)
      how = iso_rng_below(rng, N_ROWS), at = iso_rng_below(rng, p->n);
    if (how == MANY) at = iso_rng_below(rng, p->n);
    if (k >= p->n_mixed) how = ONE, at = i % row == 0 ? k - p->n_mixed : 0; /* 0 is the first */
    const double plain =
        width > 0 ? low + (double)iso_rng_below(rng, (uint64_t)width) : iso_rng_normal(rng);
    rule_tensor_set(v, i, how == PLAIN ? plain : pole_within(p, at, low, high));
  }
}

/* Whether a value has a NaN, or an infinity. */
static void look(const rule_tensor *v, bool *nan, bool *infinite) {
  for (int64_t j = 0; v && is_float(v->dtype) && j < v->numel && !*nan; j++) {
    const double x = rule_tensor_get(v, j);
    *nan |= isnan(x);
    *infinite |= isinf(x);
  }
}

void st_poles_note(st_poles *p, size_t draw, bool agreed, const st_run run[2]) {
  const bool told = tells_apart(p, draw) && (p->others || draw >= p->n_one);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < run[side].n; i++) {
      bool nan = false, infinite = false;
      const bool asked =
          (p->watch[side][i] && !p->reached) || (p->origin[side][i] && !p->parted[side][i]);
      for (size_t k = 0; asked && k < run[side].value[i].n; k++)
        look(run[side].value[i].v[k], &nan, &infinite);
      p->none[side][i] |= nan && agreed && told;
      p->parted[side][i] |= nan && !agreed && p->origin[side][i];
      p->reached |= p->watch[side][i] && (nan || infinite);
    }
}
