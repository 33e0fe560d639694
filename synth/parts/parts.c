/* How parts make a whole, by value and as a term.
 *
 * Equal parts of a tensor in rows are told by one number: how many runs of elements each rank has.
 * A cut inside a dimension (the heads of each row of a batch, where both are one dimension) is a
 * cut along a dimension of its own before they are joined.
 *
 * A mean over each rank's part of a batch makes every gradient of a rank too large by the number of
 * ranks: the whole may be that of the parts, divided by a number of them. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/relate/layout.h"
#include "synth/search/frontier.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool has_counterpart(state *s, eg_node e, int side) { return st_has_side(s, e, !side); }

/* ---- how a tensor is cut ---- */

/* Dimension `d`, of which the first `outer` rows of a size of their own lie outside of the cut. */
typedef struct cutting {
  uint32_t d;
  int64_t outer;
} cutting;

bool st_near_element(double a, double b) {
  return a == b || fabs(a - b) <= 1e-7 * (1e-30 + fmax(fabs(a), fabs(b))) || fabs(a - b) < 1e-12;
}

/* Whether the whole has the part's runs of elements, `before` of them, each `first` behind the
 * beginning of one of its own. */
static bool stands_at(const rule_tensor *whole, const rule_tensor *part, double scale,
                      int64_t before, int64_t first) {
  const int64_t row = whole->numel / before, run = part->numel / before;
  if (first + run > row) return false;
  for (int64_t b = 0; b < before; b++)
    for (int64_t i = 0; i < run; i++)
      if (!st_near_element(rule_tensor_get(whole, b * row + first + i),
                           scale * rule_tensor_get(part, b * run + i)))
        return false;
  return true;
}

/* Whether the parts take turns in the whole, `before` times; then they are put in that order. Peers
 * come in the order of ranks, or of a rank's pieces, and nothing says which rows are whose. */
static bool arrange(const rule_tensor *whole, st_parts *p, int64_t before) {
  st_parts out = *p;
  int64_t first = 0;
  for (uint32_t k = 0; k < out.n; k++) {
    uint32_t j = k;
    while (j < out.n && !stands_at(whole, out.value[j], out.scale, before, first)) j++;
    if (j == out.n) return false;
    const eg_node of = out.of[j];
    const rule_tensor *value = out.value[j];
    for (; j > k; j--) out.of[j] = out.of[j - 1], out.value[j] = out.value[j - 1];
    out.of[k] = of, out.value[k] = value;
    first += value->numel / before;
  }
  *p = out;
  return true;
}

/* The parts along dimension `d`, whose shapes differ there alone. */
static bool cut_along(const rule_tensor *whole, st_parts *p, uint32_t d) {
  int64_t before = 1, row = 0;
  for (uint32_t i = 0; i < d; i++) before *= whole->shape.dim[i];
  for (uint32_t k = 0; k < p->n; k++) {
    const rule_shape *part = &p->value[k]->shape;
    if (part->rank != whole->shape.rank) return false;
    for (uint32_t i = 0; i < part->rank; i++)
      if (i != d && part->dim[i] != whole->shape.dim[i]) return false;
    row += part->dim[d];
  }
  return row == whole->shape.dim[d] && arrange(whole, p, before);
}

/* Along a dimension of the parts themselves, if there is one. */
static bool find_plain(const rule_tensor *whole, st_parts *p, cutting *out) {
  for (uint32_t d = whole->shape.rank; d-- > 0;)
    if (cut_along(whole, p, d)) return *out = (cutting){d, 0}, true;
  return false;
}

/* Along a dimension, in the order in which the parts are given. */
bool st_is_cut_along(const rule_tensor *whole, const st_parts *p, uint32_t *d) {
  cutting c;
  st_parts in = *p;
  if (whole->dtype != p->value[0]->dtype || !find_plain(whole, &in, &c)) return false;
  for (uint32_t k = 0; k < p->n; k++)
    if (in.of[k].i != p->of[k].i) return false;
  *d = c.d;
  return true;
}

/* Equal parts, of runs of elements that take turns in the whole. */
static bool find_cutting(const rule_tensor *whole, st_parts *p, cutting *out) {
  const int64_t n = p->n, numel = p->value[0]->numel;
  int64_t before = 1;
  for (uint32_t k = 1; k < p->n; k++)
    if (p->value[k]->numel != numel) return false;
  if (whole->numel != n * numel) return false;
  for (uint32_t d = 0; d < whole->shape.rank; before *= whole->shape.dim[d++])
    for (int64_t a = 1; a * n <= whole->shape.dim[d]; a++)
      if (whole->shape.dim[d] % (a * n) == 0 && arrange(whole, p, before * a))
        return *out = (cutting){d, a}, true;
  return false;
}

/* ---- terms ---- */

static const rule_term *reshaped(iso_arena *a, const rule_term *x, const rule_shape *shape) {
  const rule_term *dim[RULE_MAX_RANK + 1], *arg[2] = {x, NULL};
  for (uint32_t i = 0; i < shape->rank; i++)
    if (!(dim[i] = rule_int(a, shape->dim[i]))) return NULL;
  return (arg[1] = rule_list(a, dim, shape->rank)) ? rule_op(a, OP_RESHAPE, arg, 2) : NULL;
}

const rule_term *st_joined(iso_arena *a, const st_parts *p, const rule_shape *shape, uint32_t d) {
  const rule_term *part[MAX_RANKS], *arg[2];
  for (uint32_t k = 0; k < p->n; k++) {
    part[k] = rule_var(a, k);
    if (part[k] && shape && !rule_shape_eq(&p->value[k]->shape, shape))
      part[k] = reshaped(a, part[k], shape);
    if (!part[k]) return NULL;
  }
  arg[0] = rule_list(a, part, p->n);
  arg[1] = rule_int(a, d);
  return arg[0] && arg[1] ? rule_op(a, OP_CAT, arg, 2) : NULL;
}

/* The whole of its parts. NULL: no memory. */
static const rule_term *put_together(iso_arena *a, const st_parts *p, const rule_shape *whole,
                                     cutting c) {
  if (c.outer == 0) return st_joined(a, p, NULL, c.d);
  rule_shape own = *whole;
  if (c.outer == 1) {
    own.dim[c.d] /= p->n;
    return st_joined(a, p, &own, c.d);
  }
  if (whole->rank == RULE_MAX_RANK) return NULL;
  for (uint32_t i = own.rank++; i > c.d; i--) own.dim[i] = own.dim[i - 1];
  own.dim[c.d + 1] = own.dim[c.d] / c.outer / p->n;
  own.dim[c.d] = c.outer;
  const rule_term *t = st_joined(a, p, &own, c.d + 1);
  return t ? reshaped(a, t, whole) : NULL;
}

/* One after another. */
static const rule_term *added_up(state *s, const rule_term *const *part, uint32_t n) {
  const rule_term *sum = part[0];
  iso_error ignored;
  for (uint32_t k = 1; k < n; k++) {
    const rule_term *arg[2] = {sum, part[k]};
    if (rule_call(&s->arena, s->schemas, OP_ADD_TENSOR, arg, 2, &sum, &ignored)) return NULL;
  }
  return sum;
}

const rule_term *st_reduced(state *s, const st_parts *p, const char *how) {
  const rule_term *part[MAX_RANKS], *arg[2];
  iso_arena *a = &s->arena;
  for (uint32_t k = 0; k < p->n; k++)
    if (!(part[k] = rule_var(a, k))) return NULL;
  if (p->pieces && strcmp(how, "sum") == 0) return added_up(s, part, p->n);
  arg[0] = rule_list(a, part, p->n);
  arg[1] = rule_string(a, how);
  return arg[0] && arg[1] ? rule_op(a, OP_DIST_ALL_REDUCE, arg, 2) : NULL;
}

const rule_term *st_divided(state *s, const rule_term *t, int64_t by) {
  iso_error ignored;
  const rule_term *arg[2] = {t, rule_float(&s->arena, (double)by)}, *out;
  if (by == 1 || !t) return t;
  return arg[1] && rule_call(&s->arena, s->schemas, OP_DIV_TENSOR, arg, 2, &out, &ignored) == ISO_OK
             ? out
             : NULL;
}

/* ---- joining ---- */

static bool collective(const state *s, eg_node e) { return rule_is_collective(st_operator(s, e)); }

/* A collective's result is compared with that of another one over the same tensors, where that
 * is the whole: a rule of these two alone. */
static eg_node as_reduced(state *s, const st_parts *p, eg_node whole) {
  const eg_node *m;
  const bool given = rule_is_getitem(st_operator(s, p->of[0])) &&
                     collective(s, (eg_node){eg_node_original(s->g, p->of[0], 0).i});
  const size_t n = given ? eg_class_nodes(s->g, eg_class_of(s->g, whole), &m) : 0;
  for (size_t i = 0; i < n; i++)
    if (collective(s, m[i]) && s->rec[m[i].i].valued) return m[i];
  return whole;
}

/* The tensor that `e` is a layout or a part of, by its own steps. */
static eg_node cut_from(state *s, eg_node e) {
  enum { DEEP = 8 };
  for (int k = 0; k < DEEP; k++) {
    if (s->rec[e.i].leaf || eg_node_arity(s->g, e) == 0 || !fr_moves_op(st_operator(s, e))) break;
    e = (eg_node){eg_node_original(s->g, e, 0).i};
  }
  return e;
}

/* Where all parts are cut from one tensor, and a member of the whole's class is a layout or a part
 * of that, too: a rule of how it is cut is enough, and nothing is said of how it was computed.
 * EG_NONE: there is none. */
static eg_node as_cut(state *s, const st_parts *p, eg_node whole) {
  const eg_node *m, of = cut_from(s, p->of[0]);
  bool one = of.i != p->of[0].i;
  for (uint32_t k = 1; k < p->n && one; k++) one = eg_equal(s->g, of, cut_from(s, p->of[k]));
  const size_t n = one ? eg_class_nodes(s->g, eg_class_of(s->g, whole), &m) : 0;
  for (size_t i = 0; i < n; i++)
    if (m[i].i != whole.i && s->rec[m[i].i].valued && eg_equal(s->g, of, cut_from(s, m[i])))
      return m[i];
  return (eg_node){EG_NONE};
}

/* Where the whole was joined with such a term before, of these parts or of what they are layouts
 * of, a rule of these two is enough. */
iso_code st_prove_alike(state *s, eg_node whole, eg_node aux, bool *done, iso_error *err) {
  enum { MOST = 8 };
  const eg_node *m;
  eg_node alike[MOST];
  size_t n_alike = 0;
  iso_code c = ISO_OK;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, whole), &m);
  for (size_t i = 0; i < n && n_alike < MOST; i++)
    if (m[i].i != aux.i && st_made(&s->rec[m[i].i]) && !s->rec[m[i].i].leaf &&
        s->rec[m[i].i].valued && st_calls(s, m[i], st_operator(s, aux)))
      alike[n_alike++] = m[i];
  const bool was = s->search.briefly;
  s->search.briefly = true;
  for (size_t i = 0; i < n_alike && !c && !*done; i++) c = st_prove(s, alike[i], aux, done, err);
  s->search.briefly = was;
  return c;
}

/* Looks for a rule that joins `whole` with a term over the parts. */
static iso_code prove_parts(state *s, const st_parts *p, eg_node whole, eg_node aux, bool *done,
                            iso_error *err) {
  const eg_node cut = as_cut(s, p, whole), with = as_reduced(s, p, whole);
  iso_code c = cut.i == EG_NONE ? ISO_OK : st_prove(s, cut, aux, done, err);
  if (!c && !*done) c = st_prove_alike(s, whole, aux, done, err);
  if (!c && !*done) c = st_prove(s, with, aux, done, err);
  /* A term that all parts share stands in the pattern as often; or the cones ended before they
   * met. */
  s->ranks.wide = p->n > 2 || s->ranks.cut_short;
  if (!c && !*done && s->ranks.wide) c = st_prove(s, with, aux, done, err);
  s->ranks.wide = false;
  return c;
}

/* The term over the parts becomes a node, and a rule is looked for that joins it with `whole`.
 * Returns: in `met` whether their values agree, too, in `done` whether there is such a rule. Of a
 * sum that cancels values say nothing: only a rule does. */
static iso_code join_if(state *s, const st_parts *p, const rule_term *t, eg_node whole, bool *met,
                        bool *done, iso_error *err) {
  *done = false;
  if (!t) return nomem(err);
  eg_node aux;
  bool equal;
  iso_code c = st_add_term(s, t, p->of, &aux, err);
  if (!c) c = st_value(s, aux, err);
  if (c || !rule_shape_eq(&s->rec[aux.i].shape, &s->rec[whole.i].shape)) return c;
  if ((equal = st_values_equal(s, whole, aux))) c = prove_parts(s, p, whole, aux, done, err);
  *met |= equal && (*done || !s->rec[p->of[0].i].cancels);
  return c;
}

static iso_code join(state *s, const st_parts *p, const rule_term *t, eg_node whole, bool *met,
                     iso_error *err) {
  bool done;
  return join_if(s, p, t, whole, met, &done, err);
}

/* A parameter, and the same less a gradient that cancels, have the same values: where some are as
 * the parts are, made of such a sum or not, the others are left out. Returns: how many stay. */
static uint32_t made_alike(state *s, const st_parts *p, eg_node *whole, uint32_t n) {
  const bool rests = s->rec[p->of[0].i].rests;
  uint32_t alike = 0;
  for (uint32_t i = 0; i < n; i++)
    if (st_rests(s, whole[i]) == rests) {
      const eg_node w = whole[alike];
      whole[alike++] = whole[i];
      whole[i] = w;
    }
  return alike ? alike : n;
}

/* First those that the parts' own operator computes: its rule is one of a step. */
static void of_one_operator(state *s, const st_parts *p, eg_node *whole, uint32_t n) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < n; i++) {
    const eg_node w = whole[i];
    if (!st_calls(s, w, st_operator(s, p->of[0]))) continue;
    memmove(whole + first + 1, whole + first, (i - first) * sizeof *whole);
    whole[first++] = w;
  }
}

static bool is_operand(const state *s, const st_parts *p, eg_class of) {
  for (uint32_t k = 0; k < p->n; k++)
    for (size_t a = 0; a < eg_node_arity(s->g, p->of[k]); a++) {
      const eg_node e = {eg_node_original(s->g, p->of[k], a).i};
      if (s->rec[e.i].tensor && eg_class_of(s->g, e).i == of.i) return true;
    }
  return false;
}

/* Whether what a part is computed from stands a few steps below `e`, too. */
static bool near_parts(state *s, const st_parts *p, eg_node e, int depth, int *work) {
  enum { DEEP = 6 };
  if (s->rec[e.i].leaf || depth == DEEP || (*work)-- <= 0) return false;
  for (size_t a = 0; a < eg_node_arity(s->g, e); a++) {
    const eg_class d = eg_node_child(s->g, e, a);
    if (is_operand(s, p, d)) return true;
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, d, &m);
    for (size_t i = 0; i < n; i++)
      if ((i == 0 || st_made(&s->rec[m[i].i])) && near_parts(s, p, m[i], depth + 1, work))
        return true;
  }
  return false;
}

/* Whether the terms of the parts' sums may be those of a whole that cancels, too: half of the ranks
 * have half of them, where both sums are 0. */
static bool has_all_terms(const state *s, const st_parts *p, eg_node whole) {
  double sum = 0, of = s->rec[whole.i].terms * (double)p->by;
  for (uint32_t k = 0; k < p->n && of > 0; k++) {
    if (!(s->rec[p->of[k].i].terms > 0)) return true;
    sum += s->rec[p->of[k].i].terms;
  }
  return !(of > 0) || fabs(sum - of) <= 1e-6 * of;
}

/* Sums that cancel are 0 in every layer: those that are computed from what the parts are computed
 * from are taken alone, where there are such, and of these, or of all, those that add up as much.
 * Returns: how many stay. */
static uint32_t nearest(state *s, const st_parts *p, bool any_terms, eg_node *whole, uint32_t n) {
  enum { MOST_ASKED = 400 };
  uint32_t near_ones = 0, fit = 0;
  for (uint32_t i = 0; i < n; i++) {
    const eg_node w = whole[i];
    if (!near_parts(s, p, w, 0, &(int){MOST_ASKED})) continue;
    memmove(whole + near_ones + 1, whole + near_ones, (i - near_ones) * sizeof *whole);
    whole[near_ones++] = w;
  }
  if (near_ones == 0 && any_terms) return n;
  if (near_ones > 0) n = near_ones;
  for (uint32_t i = 0; i < n; i++)
    if (has_all_terms(s, p, whole[i])) whole[fit++] = whole[i];
  return fit;
}

uint32_t st_wholes(state *s, const st_parts *p, const st_sought *x, eg_node *out) {
  const int64_t numel = x->numel;
  const double *moment = x->moment;
  const bool cancels = s->rec[p->of[0].i].cancels;
  uint32_t n = 0;
  for (int32_t gi = st_next_group(s, numel, p->value[0]->dtype, moment, -1); gi >= 0;
       gi = st_next_group(s, numel, p->value[0]->dtype, moment, gi)) {
    const group *g = &s->groups.of[gi];
    for (size_t k = 0; k < g->n && n < MOST_WHOLES; k++) {
      /* That both are 0 is a sign only where both are sums that cancel. */
      bool seen = !has_counterpart(s, g->member[k], x->side) ||
                  (cancels && !s->rec[g->member[k].i].cancels);
      for (uint32_t j = 0; j < n && !seen; j++) seen = eg_equal(s->g, out[j], g->member[k]);
      if (!seen) out[n++] = g->member[k];
    }
  }
  n = made_alike(s, p, out, n);
  of_one_operator(s, p, out, n);
  return cancels ? nearest(s, p, x->any_terms, out, n) : n;
}

iso_code st_concatenated(const st_parts *p, uint32_t d, rule_tensor **out, iso_error *err) {
  rule_shape all = p->value[0]->shape;
  int64_t before = 1, inner = 1, first = 0;
  *out = NULL;
  for (uint32_t k = 1; k < p->n; k++) {
    const rule_shape *part = &p->value[k]->shape;
    if (part->rank != all.rank) return ISO_OK;
    for (uint32_t i = 0; i < all.rank; i++)
      if (i != d && part->dim[i] != all.dim[i]) return ISO_OK;
    all.dim[d] += part->dim[d];
  }
  for (uint32_t i = 0; i < all.rank; i++)
    if (i < d) before *= all.dim[i];
    else if (i > d) inner *= all.dim[i];
  iso_code c = rule_tensor_new(p->value[0]->dtype, &all, out, err);
  for (uint32_t k = 0; k < p->n && !c; k++) {
    const int64_t run = p->value[k]->shape.dim[d] * inner;
    for (int64_t b = 0; b < before; b++)
      for (int64_t i = 0; i < run; i++)
        rule_tensor_set(*out, b * all.dim[d] * inner + first + i,
                        p->scale * rule_tensor_get(p->value[k], b * run + i));
    first += run;
  }
  return c;
}

/* A tensor that is the concatenation of the parts with its dimensions in another order: heads stand
 * before the rows on one side, and behind them on the other. */
static iso_code join_turned(state *s, const st_parts *p, eg_node whole, bool *met, iso_error *err) {
  const rule_tensor *v = st_val(s, whole, s->n_draws - 1);
  iso_code c = v ? ISO_OK : st_lost(&s->values, err);
  for (uint32_t d = p->value[0]->shape.rank; d-- > 0 && !c && !*met;) {
    rule_tensor *all;
    if ((c = st_concatenated(p, d, &all, err)) || !all) continue;
    const rule_term *turned = synth_layout(&s->arena, s->schemas, all, v, s->oracle, s->o->rel_tol);
    rule_tensor_unref(all);
    if (!turned) continue;
    const rule_term *t = st_divided(s, st_joined(&s->arena, p, NULL, d), p->by);
    st_parts one = {.n = 1};
    if (!t) c = nomem(err);
    if (!c) c = st_add_term(s, t, p->of, &one.of[0], err);
    if (!c) c = join(s, &one, turned, whole, met, err);
  }
  return c;
}

/* The ways to prepare parts before they are put together, from none on. */
enum { AS_THEY_ARE, VIEWED, TURNED, WAYS };

static iso_code join_one(state *s, const st_parts *p, int way, eg_node whole, bool *met,
                         iso_error *err) {
  const rule_tensor *v = st_val(s, whole, s->n_draws - 1);
  cutting cut;
  st_parts in = *p;
  if (way == TURNED) return join_turned(s, p, whole, met, err);
  if (!v) return st_lost(&s->values, err);
  if (!(way == VIEWED ? find_cutting(v, &in, &cut) : find_plain(v, &in, &cut))) return ISO_OK;
  const rule_term *t = put_together(&s->arena, &in, &v->shape, cut);
  bool fits = false, done;
  iso_code c = join_if(s, &in, st_divided(s, t, in.by), whole, &fits, &done, err);
  if (!c && fits && !done && way == AS_THEY_ARE && in.by == 1)
    c = st_join_rows(s, &in, whole, cut.d, err);
  *met |= fits;
  return c;
}

/* The whole is what steps on the parts are repeated on: one of their rank, if there is one. */
static void note_whole(const state *s, const st_parts *p, eg_node whole, bool first, st_sought *x) {
  const uint32_t rank = p->value[0]->shape.rank;
  if (first || (s->rec[x->at.i].shape.rank != rank && s->rec[whole.i].shape.rank == rank))
    x->at = whole;
}

iso_code st_join_cut(state *s, const st_parts *p, st_sought *x, iso_error *err) {
  eg_node whole[MOST_WHOLES];
  iso_code c = ISO_OK;
  const uint32_t n = st_wholes(s, p, x, whole);
  const bool cancels = s->rec[p->of[0].i].cancels; /* only a rule tells which it is: one will do */
  for (int way = 0; way < TURNED && !x->met; way++)
    for (uint32_t i = 0; i < n && !c && !(cancels && x->met); i++) {
      const bool before = x->met;
      bool met = false;
      c = join_one(s, p, way, whole[i], &met, err);
      x->met |= met;
      if (met) note_whole(s, p, whole[i], !before, x);
    }
  /* Two groups at once are a turned concatenation, too, and a rule of all ranks. */
  if (!c && !x->met) c = st_join_grid(s, p, (eg_node){EG_NONE}, x, err);
  for (uint32_t i = 0; i < n && !c && !x->met; i++) {
    c = join_one(s, p, TURNED, whole[i], &x->met, err);
    if (x->met) x->at = whole[i];
  }
  return c;
}

/* Whether each element of `whole` is the parts' elements reduced by `how`, times p->scale. */
static bool reduces_to(const rule_tensor *whole, const st_parts *p, const char *how) {
  for (uint32_t k = 0; k < p->n; k++)
    if (!rule_shape_eq(&whole->shape, &p->value[k]->shape)) return false;
  for (int64_t i = 0; i < whole->numel; i++) {
    double x = rule_tensor_get(p->value[0], i);
    for (uint32_t k = 1; k < p->n; k++) {
      const double y = rule_tensor_get(p->value[k], i);
      x = strcmp(how, "sum") == 0 ? x + y : strcmp(how, "max") == 0 ? fmax(x, y) : fmin(x, y);
    }
    if (!st_near_element(rule_tensor_get(whole, i), p->scale * x)) return false;
  }
  return true;
}

/* The term that adds the parts up and divides by p->by. NULL: no memory. */
static const rule_term *averaged(state *s, const st_parts *p) {
  const bool avg = p->by > 1 && p->by == p->n && !p->pieces;
  return st_divided(s, st_reduced(s, p, avg ? "avg" : "sum"), avg ? 1 : p->by);
}

/* Join `whole` with the reduction of the parts that it is, if it is one. */
static iso_code join_reduced(state *s, const st_parts *p, eg_node whole, const rule_tensor *v,
                             bool *met, iso_error *err) {
  /* operator: a collective's ways to reduce, no operators' names */
  static const char *const how[] = {"max", "min"};
  iso_code c = ISO_OK;
  st_parts in = *p;
  for (in.by = 1; in.by <= in.n && !c && !*met; in.by++) {
    in.scale = 1.0 / (double)in.by;
    if (in.n % in.by == 0 && reduces_to(v, &in, "sum"))
      c = join(s, &in, averaged(s, &in), whole, met, err);
  }
  for (size_t i = 0; i < 2 && !p->pieces && !c && !*met; i++)
    if (reduces_to(v, p, how[i])) c = join(s, p, st_reduced(s, p, how[i]), whole, met, err);
  return c;
}

iso_code st_join_whole(state *s, const st_parts *p, eg_node whole, bool *met, iso_error *err) {
  iso_code c = ISO_OK;
  int64_t numel = 0;
  for (uint32_t k = 0; k < p->n; k++) numel += p->value[k]->numel;
  const rule_tensor *v = st_val(s, whole, s->n_draws - 1);
  if (!v) return st_lost(&s->values, err);
  if (v->dtype != p->value[0]->dtype) return ISO_OK;
  for (int way = 0; way < TURNED && !c && !*met && v->numel == numel; way++)
    c = join_one(s, p, way, whole, met, err);
  if (!c && !*met && rule_dtype_is_float(v->dtype)) c = join_reduced(s, p, whole, v, met, err);
  st_sought x = {.at = whole};
  if (!c && !*met) c = st_join_grid(s, p, whole, &x, err);
  *met |= x.met;
  return c || *met || v->numel != numel ? c : join_one(s, p, TURNED, whole, met, err);
}

iso_code st_join_sum(state *s, const st_parts *p, st_sought *x, iso_error *err) {
  const rule_shape *shape = &p->value[0]->shape;
  eg_node whole[MOST_WHOLES];
  iso_code c = ISO_OK;
  x->numel = p->value[0]->numel;
  const uint32_t n = st_wholes(s, p, x, whole);
  const bool cancels = s->rec[p->of[0].i].cancels;
  for (uint32_t i = 0; i < n && !c && !(cancels && x->met); i++) {
    const bool before = x->met;
    if (!rule_shape_eq(shape, &s->rec[whole[i].i].shape)) continue;
    c = join(s, p, averaged(s, p), whole[i], &x->met, err);
    if (x->met && !before) x->at = whole[i];
  }
  return c;
}

int64_t st_moments_of_all(const st_parts *p, double out[4]) {
  double m[4];
  int64_t numel = 0;
  memset(out, 0, 4 * sizeof *out);
  for (uint32_t k = 0; k < p->n; k++) {
    st_moments(p->value[k], m);
    for (int i = 0; i < 4; i++) out[i] += m[i];
    numel += p->value[k]->numel;
  }
  return numel;
}

void st_scale_moments(const double m[4], double by, double out[4]) {
  const double power[4] = {by, by, by * by, by * by};
  for (int i = 0; i < 4; i++) out[i] = m[i] * power[i];
}

/* Whether the parts can be put together to the whole, and how is not asked. */
bool st_is_cut(const rule_tensor *whole, const st_parts *p) {
  cutting c;
  st_parts in = *p;
  return whole->dtype == p->value[0]->dtype &&
         (find_plain(whole, &in, &c) || find_cutting(whole, &in, &c));
}
