/* Constants of the two sides that are one but for rounding are joined, as an assumption that says
 * how far the outputs move by it: tables stored in a narrow dtype, or computed by another formula,
 * scales stored and written. Runs after the relations by value (constants.c), on constants that
 * these leave without a counterpart. */
#include "synth/constants/rounding.h"
#include "rules/names.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_ELEMENTS = 1 << 22, MAX_LITERALS = 64 };

typedef struct search {
  state *s;
  const eg_node *all;
  size_t n;
  double literal[2][MAX_LITERALS]; /* that calls of each side have beside tensors that are no
                                      constants */
  size_t n_literals[2];
  bool *related; /* by number in `all`; NULL: none is yet */
} search;

static const rule_tensor *value(const search *x, eg_node e) { return st_val(x->s, e, 0); }

static bool floating(const search *x, eg_node e) {
  const rec *r = &x->s->rec[e.i];
  return r->cval && rule_dtype_is_float(r->cval[0]->dtype) && r->cval[0]->numel > 0 &&
         r->cval[0]->numel <= MAX_ELEMENTS;
}

/* ---- joining two ---- */

/* The value by which a constant is remembered. Where both were read with more digits and so became
 * one, that is the captured value, from which the reading moved it. */
static iso_code remember_value(state *s, const eg_node of[2], int k, rule_tensor **out,
                               iso_error *err) {
  rule_tensor *v[2] = {st_val(s, of[0], 0), st_val(s, of[1], 0)};
  *out = NULL;
  if (!v[0] || !v[1]) return st_lost(&s->values, err);
  const rec *r = &s->rec[of[k].i];
  if (r->cval && r->n_out == 1 && rule_tensor_same(v[0], v[1]))
    return rule_tensor_to_float64(r->cval[0], out, err);
  *out = rule_tensor_ref(v[k]);
  return ISO_OK;
}

static iso_code remember(state *s, eg_node a, eg_node b, iso_error *err) {
  if (!iso_grow(s->constants.rounded, s->constants.cap_rounded, s->constants.n_rounded + 1))
    return nomem(err);
  st_rounded *r = &s->constants.rounded[s->constants.n_rounded];
  *r = (st_rounded){.assumption = s->assumed.n - 1, .node = {a, b}};
  iso_code c = ISO_OK;
  for (int k = 0; k < 2 && !c; k++) c = remember_value(s, r->node, k, &r->value[k], err);
  s->constants.n_rounded += !c;
  return c;
}

static iso_code share_value(state *s, eg_node from, eg_node to, iso_error *err) {
  for (size_t d = 0; d < s->n_draws; d++) {
    rule_tensor *v = rule_tensor_ref(st_val(s, from, d));
    if (!v) return st_lost(&s->values, err);
    rule_tensor_unref(s->rec[to.i].val[d]);
    s->rec[to.i].val[d] = v;
  }
  return ISO_OK;
}

iso_code st_note_rounded(state *s, eg_node l, eg_node r, const char *relation, iso_error *err) {
  const char *name[2] = {st_any_id(s, l), st_any_id(s, r)};
  for (int k = 0; k < 2; k++)
    if (relation && s->rec[k ? r.i : l.i].node[LEFT] < 0 && s->rec[k ? r.i : l.i].node[RIGHT] < 0)
      name[k] = relation;
  const char *text =
      iso_arena_printf(&s->arena, "%s and %s are one but for rounding", name[0], name[1]);
  if (!text || !st_assume(s, RULE_ASSUMES_ROUNDING, l, r, relation, text)) return nomem(err);
  s->constants.inexact = true;
  return remember(s, l, r, err);
}

/* `of`: the other side's constant, or a layout of it; `relation`: the layout in words, NULL: the
 * constant itself. */
static iso_code join(search *x, eg_node target, eg_node of, const char *relation, rx_fit fit,
                     iso_error *err) {
  state *s = x->s;
  const bool left = s->rec[target.i].node[LEFT] >= 0;
  iso_code c = st_note_rounded(s, left ? target : of, left ? of : target, relation, err);
  if (!c && fit == RX_NEAR && !s->constants.doubtful) {
    s->constants.doubtful = iso_arena_printf(
        &s->arena,
        "the constants %s and %s differ by little, and by more than rounding is known to explain",
        st_any_id(s, target), relation ? relation : st_any_id(s, of));
    if (!s->constants.doubtful) c = nomem(err);
  }
  if (relation) s->rec[target.i].def = of.i;
  if (!c) c = share_value(s, of, target, err);
  return c ? c : st_merge(s, target, of, WHY_VALUE, (uint32_t)(s->assumed.n - 1), err);
}

/* ---- the same numbers in the same order ---- */

/* Worth a closer look. */
static bool resembles(const search *at, eg_node target, eg_node e) {
  const rule_tensor *a = value(at, target), *b = value(at, e);
  double most = 0, apart = 0;
  if (a->numel != b->numel) return false;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (isnan(x) || isnan(y)) return false;
    if (fabs(x) > 1e30 ||
        fabs(y) > 1e30) { /* masks: rounding makes none of another, and none infinite */
      if (x != y) return false;
      continue;
    }
    most = fmax(most, fabs(x));
    apart = fmax(apart, fabs(x - y));
  }
  return apart <= 0.25 * most && !st_zeros_told(at->s, target, e);
}

static bool same_but_ones(const rule_shape *a, const rule_shape *b) {
  uint32_t i = 0, k = 0;
  for (;;) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (k < b->rank && b->dim[k] == 1) k++;
    if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
    if (a->dim[i++] != b->dim[k++]) return false;
  }
}

/* `e` in the shape of `like`. */
static iso_code in_shape(search *x, eg_node e, eg_node like, eg_node *out, char **text,
                         iso_error *err) {
  state *s = x->s;
  const rule_shape *to = &s->rec[like.i].cval[0]->shape;
  *out = e;
  *text = NULL;
  if (rule_shape_eq(to, &s->rec[e.i].cval[0]->shape)) return ISO_OK;
  const rule_term *dim[RULE_MAX_RANK], *arg[2] = {rule_var(&s->arena, 0), NULL}, *term;
  for (uint32_t i = 0; i < to->rank; i++)
    if (!(dim[i] = rule_int(&s->arena, to->dim[i]))) return nomem(err);
  if (!arg[0] || !(arg[1] = rule_list(&s->arena, dim, to->rank))) return nomem(err);
  iso_code c = rule_call(&s->arena, s->schemas, OP_RESHAPE, arg, 2, &term, err);
  if (!c) c = st_add_term(s, term, &e, out, err);
  if (!c) c = st_value(s, *out, err);
  const char *name = st_any_id(s, e);
  if (!c && !(*text = rule_term_print(term, s->schemas, &name))) c = nomem(err);
  return c;
}

typedef struct found {
  eg_node of;
  char *text;              /* a layout in words, NULL: none */
  const rule_term *layout; /* over all constants, or NULL */
  rx_fit fit;
} found;

static void better(found *best, found now) {
  if (now.fit <= best->fit) {
    free(now.text);
    return;
  }
  free(best->text);
  *best = now;
}

/* `exactly`: of the same shape, else those with other sizes 1. */
static iso_code try_direct(search *x, eg_node target, bool exactly, found *best, iso_error *err) {
  state *s = x->s;
  const int side = s->rec[target.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  for (size_t k = 0; k < x->n && best->fit != RX_YES; k++) {
    const eg_node e = x->all[k];
    if (!floating(x, e) || !st_constant_on(s, e, !side) || eg_equal(s->g, e, target)) continue;
    const rule_shape *a = &s->rec[e.i].cval[0]->shape, *b = &s->rec[target.i].cval[0]->shape;
    if (rule_shape_eq(a, b) != exactly || !same_but_ones(a, b) || !resembles(x, target, e))
      continue;
    found now = {.fit = RX_NO};
    iso_code c = in_shape(x, e, target, &now.of, &now.text, err);
    if (!c) c = rx_explained(s, target, now.of, &now.fit, err);
    better(best, now);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- literals ---- */

static bool is_long(double v) {
  int exponent;
  const double m = ldexp(frexp(v, &exponent), 15);
  return isfinite(v) && v != 0 && m != floor(m);
}

static void collect(search *x, int side, const rule_term *t) {
  if (t->kind == RULE_FLOAT && is_long(t->u.f)) {
    size_t k = 0;
    while (k < x->n_literals[side] && x->literal[side][k] != t->u.f) k++;
    if (k == x->n_literals[side] && k < MAX_LITERALS)
      x->literal[side][x->n_literals[side]++] = t->u.f;
  }
  for (uint32_t i = 0; i < t->n; i++) collect(x, side, t->child[i]);
}

static void collect_all(search *x) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < x->s->graph[side]->n_nodes; i++) {
      const synth_node *n = &x->s->graph[side]->node[i];
      const eg_node e = x->s->map[side][i];
      if (n->kind == SYNTH_OP && e.i != EG_NONE && !x->s->rec[e.i].konst) collect(x, side, n->call);
    }
}

/* One number, of the shape of `target`. */
static iso_code filled(search *x, eg_node target, double v, eg_node *out, char **text,
                       iso_error *err) {
  state *s = x->s;
  const rule_shape *shape = &s->rec[target.i].cval[0]->shape;
  const rule_term *dim[RULE_MAX_RANK], *list, *term;
  for (uint32_t i = 0; i < shape->rank; i++)
    if (!(dim[i] = rule_int(&s->arena, shape->dim[i]))) return nomem(err);
  if (!(list = rule_list(&s->arena, dim, shape->rank)) ||
      !(term = st_fill_term(s, list, rule_float(&s->arena, v), RULE_F64)))
    return nomem(err);
  iso_code c = st_add_term(s, term, NULL, out, err);
  if (!c) c = st_value(s, *out, err);
  if (!c && !(*text = rule_term_print(term, s->schemas, NULL))) c = nomem(err);
  return c;
}

/* A literal that float32 made of the number that is computed here. */
static iso_code is_rounded_of(search *x, eg_node target, double literal, rx_fit *fit,
                              iso_error *err) {
  pr_cone cone;
  rule_tensor *v = NULL;
  iso_code c = pr_cone_new(x->s, target, &cone, err);
  if (!c && cone.pure) c = pr_run(&cone, &(pr_how){0}, 0, &v, err);
  if (!c && v && (double)(float)rule_tensor_get(v, 0) == literal) *fit = RX_YES;
  rule_tensor_unref(v);
  pr_cone_free(&cone);
  return c;
}

/* A number that the other side writes, or divides by. */
static iso_code try_literals(search *x, eg_node target, found *best, iso_error *err) {
  state *s = x->s;
  const int side = s->rec[target.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  const rule_tensor *v = value(x, target);
  if (rule_tensor_varies(v)) return ISO_OK;
  const double have = rule_tensor_get(v, 0);
  const bool read = rule_tensor_get(s->rec[target.i].cval[0], 0) != have; /* with more digits */
  for (size_t k = 0; k < 2 * x->n_literals[!side] && best->fit != RX_YES; k++) {
    const double l = x->literal[!side][k / 2], meant = k % 2 ? 1 / l : l;
    if ((meant == have && !read) || !(fabs(meant - have) <= 0x1p-7 * fabs(have))) continue;
    found now = {.fit = RX_NO};
    iso_code c = filled(x, target, meant, &now.of, &now.text, err);
    if (!c && meant == have) now.fit = RX_YES;
    else if (!c && !eg_equal(s->g, now.of, target))
      c = rx_explained(s, target, now.of, &now.fit, err);
    if (!c && now.fit != RX_YES && k % 2 == 0 && st_uses_float32(l))
      c = is_rounded_of(x, target, l, &now.fit, err);
    if (now.fit != RX_YES) now.fit = RX_NO; /* many numbers are near one another */
    better(best, now);
    if (c) return c;
  }
  return ISO_OK;
}

/* One side multiplies by a number and the other divides by its reciprocal: a stored root, and its
 * reciprocal computed. */
static iso_code try_reciprocals(search *x, eg_node target, found *best, iso_error *err) {
  state *s = x->s;
  const int side = s->rec[target.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  if (rule_tensor_varies(value(x, target))) return ISO_OK;
  const double have = rule_tensor_get(value(x, target), 0);
  for (size_t k = 0; k < x->n && best->fit != RX_YES; k++) {
    const eg_node e = x->all[k];
    if (!floating(x, e) || !st_constant_on(s, e, !side) || rule_tensor_varies(value(x, e)) ||
        !st_feeds_values(s, e))
      continue;
    if (!rule_shape_eq(&s->rec[e.i].cval[0]->shape, &s->rec[target.i].cval[0]->shape)) continue;
    if (!(fabs(1 / rule_tensor_get(value(x, e), 0) - have) <= 0x1p-7 * fabs(have))) continue;
    const rule_term *arg = rule_var(&s->arena, 0), *term;
    found now = {.fit = RX_NO};
    if (!arg) return nomem(err);
    iso_code c = rule_call(&s->arena, s->schemas, OP_RECIPROCAL, &arg, 1, &term, err);
    if (!c) c = st_add_term(s, term, &e, &now.of, err);
    if (!c) c = st_value(s, now.of, err);
    if (!c && !eg_equal(s->g, now.of, target)) c = rx_explained(s, target, now.of, &now.fit, err);
    const char *name = st_any_id(s, e);
    if (!c && !(now.text = rule_term_print(term, s->schemas, &name))) c = nomem(err);
    better(best, now);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- layouts ----
 * The relation engine compares bits: numbers that are near one another get one representative
 * first. */

typedef struct near_number {
  double v, reach;
} near_number;

typedef struct numbers {
  near_number *at;
  size_t n, cap;
} numbers;

static int by_value(const void *a, const void *b) {
  const double x = ((const near_number *)a)->v, y = ((const near_number *)b)->v;
  return (x > y) - (x < y);
}

static bool add_numbers(numbers *set, const rule_tensor *v, const rule_tensor *reach) {
  if (!iso_grow(set->at, set->cap, set->n + (size_t)v->numel)) return false;
  for (int64_t i = 0; i < v->numel; i++)
    set->at[set->n++] = (near_number){rule_tensor_get(v, i), rule_tensor_get(reach, i)};
  return true;
}

/* The first of each run of neighbours within reach of one another stands for them. */
static void gather(numbers *set) {
  double last = 0, reach = 0;
  qsort(set->at, set->n, sizeof *set->at, by_value);
  for (size_t i = 0; i < set->n; i++) {
    near_number *x = &set->at[i];
    const bool near = i && (x->v == last || x->v - last <= fmax(x->reach, reach));
    last = x->v;
    reach = x->reach;
    x->reach = near ? set->at[i - 1].reach : x->v; /* from here on: the representative */
  }
}

static double representative(const numbers *set, double x) {
  size_t lo = 0, hi = set->n;
  while (lo + 1 < hi) {
    const size_t mid = (lo + hi) / 2;
    if (set->at[mid].v <= x) lo = mid;
    else hi = mid;
  }
  return set->at[lo].reach;
}

static iso_code represented(const numbers *set, const rule_tensor *t, rule_tensor **out,
                            iso_error *err) {
  iso_code c = rule_tensor_new(RULE_F64, &t->shape, out, err);
  for (int64_t i = 0; i < t->numel && !c; i++)
    rule_tensor_set(*out, i, representative(set, rule_tensor_get(t, i)));
  return c;
}

typedef struct seen { /* a constant in float64, and how far each number may be from the one that is
                         meant */
  rule_tensor *exact, *reach;
} seen;

static iso_code see(state *s, eg_node e, seen *out, iso_error *err) {
  pr_cone cone;
  *out = (seen){0};
  iso_code c = pr_cone_new(s, e, &cone, err);
  if (!c) c = pr_run(&cone, &(pr_how){0}, 0, &out->exact, err);
  if (!c && (c = pr_spread(&cone, 0, out->exact, &out->reach, err))) out->reach = NULL;
  const rule_tensor *v = c ? NULL : st_val(s, e, 0);
  for (int64_t i = 0; !c && i < v->numel && v->numel == out->exact->numel;
       i++) { /* steps that were rounded as captured */
    const double by = 4 * rule_tensor_get(out->reach, i) +
                      2 * fabs(rule_tensor_get(v, i) - rule_tensor_get(out->exact, i));
    rule_tensor_set(out->reach, i, by);
  }
  pr_cone_free(&cone);
  return c;
}

static void unsee(seen *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    rule_tensor_unref(x[i].exact);
    rule_tensor_unref(x[i].reach);
  }
  free(x);
}

/* Whether a source has a number near this one. */
static bool is_near(const search *x, double v, double reach, const seen *from) {
  enum { CHAIN = 16 }; /* neighbours lead further than the reach of one */
  for (size_t k = 0; k < x->n; k++)
    for (int64_t i = 0; from[k].exact && i < from[k].exact->numel; i++) {
      const double apart = fabs(rule_tensor_get(from[k].exact, i) - v);
      if (apart <= CHAIN * fmax(reach, rule_tensor_get(from[k].reach, i))) return true;
    }
  return false;
}

/* A few numbers of a large target, each of which a source must have, say whether sorting all of
 * them may be worth it: a table of all positions is no layout of that of a few. */
static bool may_be_layout(const search *x, const seen *target, const seen *from) {
  enum { LARGE = 4096, PROBES = 16 };
  const int64_t n = target->exact->numel;
  for (int64_t k = 0; n >= LARGE && k < PROBES; k++) {
    const int64_t at = n / PROBES * k + k;
    if (!is_near(x, rule_tensor_get(target->exact, at), rule_tensor_get(target->reach, at), from))
      return false;
  }
  return true;
}

/* A layout of `from` (by number in `all`, NULL: not this one) that is `target` as far as the
 * representatives tell. */
static iso_code find_layout(search *x, const seen *target, const seen *from, const rule_term **out,
                            iso_error *err) {
  state *s = x->s;
  numbers set = {0};
  *out = NULL;
  if (!may_be_layout(x, target, from)) return ISO_OK;
  rule_tensor **copy = calloc(x->n + 1, sizeof *copy), *goal = NULL;
  iso_code c = copy && add_numbers(&set, target->exact, target->reach) ? ISO_OK : nomem(err);
  for (size_t k = 0; k < x->n && !c; k++)
    if (from[k].exact && !add_numbers(&set, from[k].exact, from[k].reach)) c = nomem(err);
  if (!c) gather(&set);
  if (!c) c = represented(&set, target->exact, &goal, err);
  for (size_t k = 0; k < x->n && !c; k++)
    if (from[k].exact) c = represented(&set, from[k].exact, &copy[k], err);
  synth_index *index = NULL;
  synth_relation rel = {0};
  if (!c) c = synth_index_new(copy, NULL, x->n, s->schemas, &index, err);
  if (!c) c = st_relate_repeated(s, index, goal, &rel, err);
  if (!c && !rel.term) c = synth_relate(index, goal, NULL, &s->arena, &rel, err);
  *out = rel.term;
  synth_index_free(index);
  rule_tensor_unref(goal);
  for (size_t k = 0; k < x->n && copy; k++) rule_tensor_unref(copy[k]);
  free(copy);
  free(set.at);
  return c;
}

static iso_code judge_layout(search *x, eg_node target, const rule_term *term, found *best,
                             iso_error *err) {
  state *s = x->s;
  found now = {.fit = RX_NO};
  iso_code c = st_add_term(s, term, x->all, &now.of, err);
  if (!c) c = st_value(s, now.of, err);
  if (c || !s->rec[now.of.i].cval || eg_equal(s->g, now.of, target) ||
      !rule_shape_eq(&s->rec[now.of.i].cval[0]->shape, &s->rec[target.i].cval[0]->shape))
    return c;
  if (!resembles(x, target, now.of)) return ISO_OK;
  if ((c = rx_explained(s, target, now.of, &now.fit, err)) || now.fit == RX_NO) return c;
  const char **name = calloc(x->n + 1, sizeof *name);
  if (!name) return nomem(err);
  for (size_t k = 0; k < x->n; k++) name[k] = st_any_id(s, x->all[k]);
  now.text = rule_term_print(term, s->schemas, name);
  now.layout = term;
  free(name);
  if (!now.text) return nomem(err);
  better(best, now);
  return ISO_OK;
}

/* From one source each, then from all that are smaller. */
static iso_code try_layouts(search *x, eg_node target, found *best, iso_error *err) {
  enum { MAX_LAYOUT = 1 << 20 };
  state *s = x->s;
  const int side = s->rec[target.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  const int64_t numel = value(x, target)->numel;
  if (numel < 2 || numel > MAX_LAYOUT || !rule_tensor_varies(value(x, target))) return ISO_OK;
  seen goal, *from = calloc(x->n + 1, sizeof *from), *one = calloc(x->n + 1, sizeof *one);
  iso_code c = from && one ? see(s, target, &goal, err) : nomem(err);
  const rule_term *term;
  for (size_t k = 0; k < x->n && !c && best->fit != RX_YES; k++) {
    const eg_node e = x->all[k];
    if (!floating(x, e) || !st_constant_on(s, e, !side) || eg_equal(s->g, e, target) ||
        value(x, e)->numel < 2 || !rule_tensor_varies(value(x, e)))
      continue;
    if (value(x, e)->numel > MAX_LAYOUT || (c = see(s, e, &from[k], err))) continue;
    one[k] = from[k];
    if (!(c = find_layout(x, &goal, one, &term, err)) && term)
      c = judge_layout(x, target, term, best, err);
    one[k] = (seen){0};
  }
  if (!c && best->fit != RX_YES && !(c = find_layout(x, &goal, from, &term, err)) && term)
    c = judge_layout(x, target, term, best, err);
  if (from && one) {
    rule_tensor_unref(goal.exact);
    rule_tensor_unref(goal.reach);
    unsee(from, x->n);
  } else free(from);
  free(one);
  return c;
}

/* ---- all of them ---- */

static iso_code relate_target(search *x, eg_node e, iso_error *err) {
  found best = {.fit = RX_NO};
  iso_code c = try_direct(x, e, true, &best, err);
  if (!c && best.fit != RX_YES) c = try_direct(x, e, false, &best, err);
  if (!c && best.fit != RX_YES) c = try_reciprocals(x, e, &best, err);
  if (!c && best.fit != RX_YES) c = try_layouts(x, e, &best, err);
  if (!c && best.fit != RX_NO && !eg_equal(x->s->g, e, best.of))
    c = join(x, e, best.of, best.text, best.fit, err);
  const int side = x->s->rec[e.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  if (!c && best.fit != RX_NO && best.layout)
    c = st_mark_related(x->s, x->all, x->n, best.layout, side, x->related, err);
  free(best.text);
  return c;
}

static iso_code start(state *s, const eg_node *all, size_t n, search **out, iso_error *err) {
  if (!(*out = calloc(1, sizeof **out))) return nomem(err);
  (*out)->s = s, (*out)->all = all, (*out)->n = n;
  collect_all(*out);
  return ISO_OK;
}

static bool one_sided(const search *x, eg_node e) {
  return floating(x, e) && !(st_constant_on(x->s, e, LEFT) && st_constant_on(x->s, e, RIGHT));
}

iso_code st_relate_literals(state *s, const eg_node *all, size_t n, iso_error *err) {
  search *x;
  iso_code c = start(s, all, n, &x, err);
  for (size_t k = 0; k < n && !c; k++) {
    found best = {.fit = RX_NO};
    if (!one_sided(x, all[k]) || !st_feeds_values(s, all[k])) continue;
    c = try_literals(x, all[k], &best, err);
    if (!c && best.fit != RX_NO) c = join(x, all[k], best.of, best.text, best.fit, err);
    free(best.text);
  }
  free(x);
  return c;
}

/* Constants that others are made of come first: where these are joined, congruence joins the
 * others. */
iso_code st_relate_rounded(state *s, const eg_node *all, size_t n, bool *related, iso_error *err) {
  search *x;
  iso_code c = start(s, all, n, &x, err);
  if (x) x->related = related;
  for (int leaves = 1; leaves >= 0; leaves--)
    for (size_t k = 0; k < n && !c; k++) {
      if (related[k] || !one_sided(x, all[k]) || s->rec[all[k].i].def != EG_NONE) continue;
      if (leaves ? s->rec[all[k].i].leaf : st_feeds_values(s, all[k]))
        c = relate_target(x, all[k], err);
    }
  free(x);
  return c;
}
