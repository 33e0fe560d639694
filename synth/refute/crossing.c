/* Divisors that cross 0. A rule may cancel one, which holds where it is not 0, and draws come upon
 * the one number at which exp(x) - 5 is 0 by chance alone, if a float is there at all. But a
 * divisor that is positive on one draw and negative on another is 0 between them, by continuity.
 * That place is bisected for, and there what is 0 but for rounding becomes 0 on both sides: if one
 * output is then no number and its counterpart is one, no rule says that they are equal. */
#include <math.h>
#include <stdlib.h>

#include "rules/operators.h"
#include "synth/refute/refute_int.h"

enum { DRAWS = 40, STEPS = 80, WAYS = 8 };

typedef struct divisor {
  int side;
  size_t node;
  const char *of;            /* the id of what divides by it */
  rule_tensor *value[DRAWS]; /* on each draw; NULL: it did not run */
} divisor;

/* Two draws on which an element of a divisor has opposite signs, and their leaves. */
typedef struct segment {
  const divisor *d;
  int64_t at;
  rule_tensor **from[2], **to[2];
} segment;

typedef struct crossing {
  state *s;
  st_poles poles; /* numbers to draw: those of the graphs, and larger ones */
  size_t draw[DRAWS], n_draws;
  divisor *d;
  size_t n;
} crossing;

static bool fails(iso_code c) {
  return c && c != ISO_TORCH && c != ISO_RANGE && c != ISO_UNSUPPORTED;
}

static const rule_tensor *one_value(const st_run *r, size_t i) {
  return r->value && r->value[i].n == 1 ? r->value[i].v[0] : NULL;
}

/* ---- what divides ---- */

static iso_code find_divisors(crossing *x, iso_error *err) {
  state *s = x->s;
  const size_t most = s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes;
  if (!(x->d = calloc(most + 1, sizeof *x->d))) return st_no_memory(err);
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    const size_t from = x->n;
    for (size_t i = 0; i < g->n_nodes; i++) {
      if (!x->poles.divides[side][i]) continue;
      const rule_term *t = g->node[i].call;
      const size_t at = (size_t)t->child[rule_pole_at_zero(t)]->u.i;
      bool known = !rule_dtype_is_float(g->node[at].dtype) || g->node[at].n_outputs != 1;
      for (size_t j = from; j < x->n && !known; j++) known = x->d[j].node == at;
      if (!known) x->d[x->n++] = (divisor){.side = side, .node = at, .of = g->node[i].id};
    }
  }
  return ISO_OK;
}

/* Whether the other side divides by the same. */
static bool is_shared(const crossing *x, const divisor *d) {
  const state *s = x->s;
  for (size_t j = 0; j < x->n; j++)
    if (x->d[j].side != d->side &&
        eg_equal(s->g, s->map[d->side][d->node], s->map[x->d[j].side][x->d[j].node]))
      return true;
  return false;
}

static bool all_shared(const crossing *x) {
  for (size_t j = 0; j < x->n; j++)
    if (!is_shared(x, &x->d[j])) return false;
  return true;
}

/* ---- leaves ---- */

static void add_number(st_poles *p, double v) {
  for (size_t i = 0; i < p->n; i++)
    if (p->value[i] == v) return;
  if (p->n < ST_POLES) p->value[p->n++] = v;
}

/* Each number everywhere, and some draws with several. */
static void choose_draws(crossing *x, const st_poles *p) {
  static const double more[] = {4, -4, 16, -16, 256, -256, 1e4, -1e4};
  x->poles = *p;
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) add_number(&x->poles, more[i]);
  x->poles.n_one = x->poles.n;
  x->poles.n_mixed = x->poles.n_draws = x->poles.n + DRAWS;
  while (x->n_draws < DRAWS && x->n_draws < x->poles.n + WAYS)
    x->draw[x->n_draws] = x->n_draws, x->n_draws++;
}

/* The leaves of a draw. Owns: st_free_leaves, also after an error. */
static iso_code leaves_of(crossing *x, size_t k, rule_tensor **leaf[2], iso_error *err) {
  state *s = x->s;
  st_drawing h = {.s = s, .k = x->draw[k], .poles = &x->poles};
  iso_code c = st_new_leaves(s, leaf) ? ISO_OK : st_no_memory(err);
  if (!c && !(h.of = calloc(s->n_rec + 1, sizeof *h.of))) c = st_no_memory(err);
  if (!c) c = st_draw_all(&h, leaf, err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++)
      (void)rule_tensor_ref(leaf[side][i]);
  if (h.of) st_forget_draw(&h);
  free(h.of);
  return c;
}

/* Floats between those of two draws; all else as in the first. Owns: as leaves_of. */
static iso_code between(const crossing *x, const segment *g, double t, rule_tensor **leaf[2],
                        iso_error *err) {
  iso_code c = st_new_leaves(x->s, leaf) ? ISO_OK : st_no_memory(err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < x->s->graph[side]->n_nodes && !c; i++) {
      rule_tensor *a = g->from[side][i], *b = g->to[side][i];
      if (!a || a == b || !b || a->dtype != RULE_F64 || b->numel != a->numel) {
        leaf[side][i] = rule_tensor_ref(a);
        continue;
      }
      c = rule_tensor_new(RULE_F64, &a->shape, &leaf[side][i], err);
      for (int64_t k = 0; k < a->numel && !c; k++)
        rule_tensor_set(leaf[side][i], k,
                        (1 - t) * rule_tensor_get(a, k) + t * rule_tensor_get(b, k));
    }
  return c;
}

static iso_code run_draws(crossing *x, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k < x->n_draws && !c && !st_stopped(x->s); k++) {
    rule_tensor **leaf[2] = {NULL, NULL};
    st_run run[2] = {0};
    c = leaves_of(x, k, leaf, err);
    if (!c) c = st_run_both(x->s, leaf, true, run, err);
    for (size_t j = 0; j < x->n && !c; j++)
      x->d[j].value[k] =
          rule_tensor_ref((rule_tensor *)one_value(&run[x->d[j].side], x->d[j].node));
    for (int side = 0; side < 2; side++) st_run_free(&run[side]);
    st_free_leaves(x->s, leaf);
    c = fails(c) ? c : ISO_OK;
  }
  return c;
}

/* ---- where one is 0 ---- */

/* Two draws on which an element has opposite signs. */
static bool opposite(const crossing *x, const divisor *d, int64_t *at, size_t pair[2]) {
  int64_t n = 0;
  for (size_t k = 0; k < x->n_draws; k++)
    if (d->value[k]) n = d->value[k]->numel;
  for (*at = 0; *at < n; ++*at) {
    pair[0] = pair[1] = DRAWS;
    for (size_t k = 0; k < x->n_draws; k++) {
      const rule_tensor *v = d->value[k];
      const double e = v && v->numel == n ? rule_tensor_get(v, *at) : NAN;
      if (isfinite(e) && e > 0 && pair[0] == DRAWS) pair[0] = k;
      if (isfinite(e) && e < 0 && pair[1] == DRAWS) pair[1] = k;
    }
    if (pair[0] < DRAWS && pair[1] < DRAWS) return true;
  }
  return false;
}

/* The element of the divisor at `t` between the draws; NaN: it has none. */
static iso_code element_at(const crossing *x, const segment *g, double t, double *out,
                           iso_error *err) {
  const int side = g->d->side;
  rule_tensor **leaf[2] = {NULL, NULL};
  st_run run = {0};
  iso_code c = between(x, g, t, leaf, err);
  if (!c) c = st_run_graph(x->s, side, leaf[side], &(st_run_how){.keep_all = true}, &run, err);
  const rule_tensor *v = c ? NULL : one_value(&run, g->d->node);
  *out = v && g->at < v->numel ? rule_tensor_get(v, g->at) : NAN;
  st_run_free(&run);
  st_free_leaves(x->s, leaf);
  return fails(c) ? c : ISO_OK;
}

/* Where between the draws the element changes its sign. `t` < 0: that was not found. */
static iso_code bisect(const crossing *x, const segment *g, double *t, iso_error *err) {
  double low = 0, high = 1, first = NAN, last = NAN, e = NAN;
  *t = -1;
  iso_code c = element_at(x, g, 0, &first, err);
  if (!c) c = element_at(x, g, 1, &last, err);
  if (c || !(first > 0) || !(last < 0)) return c;
  for (int k = 0; k < STEPS && !c && e != 0; k++) {
    const double middle = (low + high) / 2;
    c = element_at(x, g, middle, &e, err);
    if (!isfinite(e)) return c;
    if (e >= 0) low = middle;
    else high = middle;
  }
  if (!c) *t = low;
  return c;
}

/* ---- what the outputs are there ---- */

/* Where a divisor is 0, and a little to either side. */
typedef struct place {
  st_run at[2], beside[2][2]; /* beside: by which, and side */
} place;

static const double close_by = 0x1p-10, far_smaller = 0x1p-20;

/* How large an element is beside the place. */
static double size_beside(const rule_tensor *const v[2], int64_t i) {
  double size = 0;
  for (int n = 0; n < 2; n++) {
    const double e = v[n] && i < v[n]->numel ? fabs(rule_tensor_get(v[n], i)) : 0;
    if (isfinite(e)) size = fmax(size, e);
  }
  return size;
}

/* The value with 0 for what is far smaller than beside the place. */
static iso_code zeroed(const rule_tensor *v, const rule_tensor *const beside[2], rule_tensor **out,
                       iso_error *err) {
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t i = 0; i < v->numel && !c; i++) {
    const double e = rule_tensor_get(v, i);
    rule_tensor_set(*out, i, fabs(e) <= far_smaller * size_beside(beside, i) ? 0 : e);
  }
  return c;
}

/* One side again from there. Owns: `out`. */
static iso_code run_zeroed(const crossing *x, int side, const place *p, st_run *out,
                           iso_error *err) {
  const synth_graph *g = x->s->graph[side];
  const st_run *base = &p->at[side];
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value);
  bool *again = calloc(g->n_nodes + 1, 1);
  iso_code c = value && again ? ISO_OK : st_no_memory(err);
  for (size_t j = 0; j < x->n && !c; j++) {
    const size_t i = x->d[j].node;
    const rule_tensor *v = x->d[j].side == side ? one_value(base, i) : NULL;
    const rule_tensor *beside[2] = {one_value(&p->beside[0][side], i),
                                    one_value(&p->beside[1][side], i)};
    if (v) c = zeroed(v, beside, &value[i], err);
  }
  for (size_t i = 0; i < g->n_nodes && !c; i++)
    again[i] = value[i] || (g->node[i].kind == SYNTH_OP && x->s->map[side][i].i != EG_NONE &&
                            st_term_uses(g->node[i].call, again));
  const st_carry with = {.from = base, .again = again, .value = value};
  if (!c) c = st_run_graph(x->s, side, NULL, &(st_run_how){.with = &with}, out, err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  free(again);
  return c;
}

/* A number, and none that grows without bound: the tangent of pi/2 is finite but for rounding. */
static bool is_number(double e, double beside) {
  return isfinite(e) && !(beside > 0 && far_smaller * fabs(e) > beside);
}

/* Whether an element of some output is a number on one side alone. */
static bool parted(const state *s, const place *p, const st_run run[2]) {
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs; o++) {
    const rule_tensor *v[2], *beside[2][2];
    for (int side = 0; side < 2; side++) {
      const size_t at = side ? s->right_of[o] : o;
      v[side] = st_output(s, side, &run[side], at);
      for (int n = 0; n < 2; n++) beside[side][n] = st_output(s, side, &p->beside[n][side], at);
    }
    for (int64_t i = 0; v[0] && v[1] && v[0]->numel == v[1]->numel && i < v[0]->numel; i++)
      if (is_number(rule_tensor_get(v[LEFT], i), size_beside(beside[LEFT], i)) !=
          is_number(rule_tensor_get(v[RIGHT], i), size_beside(beside[RIGHT], i)))
        return true;
  }
  return false;
}

static iso_code run_between(const crossing *x, const segment *g, double t, st_run run[2],
                            iso_error *err) {
  rule_tensor **leaf[2] = {NULL, NULL};
  iso_code c = between(x, g, t, leaf, err);
  if (!c) c = st_run_both(x->s, leaf, true, run, err);
  st_free_leaves(x->s, leaf);
  return c;
}

static iso_code parts_where_zero(const crossing *x, const segment *g, bool *yes, iso_error *err) {
  place p = {0};
  st_run run[2] = {0};
  double t = -1;
  iso_code c = bisect(x, g, &t, err);
  if (c || t < 0) return c;
  c = run_between(x, g, t, p.at, err);
  if (!c) c = run_between(x, g, fmax(0, t - close_by), p.beside[0], err);
  if (!c) c = run_between(x, g, fmin(1, t + close_by), p.beside[1], err);
  for (int side = 0; side < 2 && !c; side++) c = run_zeroed(x, side, &p, &run[side], err);
  *yes = !c && parted(x->s, &p, run);
  for (int side = 0; side < 2; side++) {
    st_run_free(&p.at[side]), st_run_free(&run[side]);
    for (int n = 0; n < 2; n++) st_run_free(&p.beside[n][side]);
  }
  return fails(c) ? c : ISO_OK;
}

static iso_code look_at(crossing *x, const divisor *d, bool *yes, iso_error *err) {
  segment g = {.d = d};
  size_t pair[2];
  if (is_shared(x, d) || !opposite(x, d, &g.at, pair)) return ISO_OK;
  iso_code c = leaves_of(x, pair[0], g.from, err);
  if (!c) c = leaves_of(x, pair[1], g.to, err);
  if (!c) c = parts_where_zero(x, &g, yes, err);
  st_free_leaves(x->s, g.from);
  st_free_leaves(x->s, g.to);
  return c;
}

iso_code st_part_where_zero(state *s, const st_poles *p, const char **node, iso_error *err) {
  crossing x = {.s = s};
  *node = NULL;
  if (!p->small) return ISO_OK;
  choose_draws(&x, p);
  iso_code c = find_divisors(&x, err);
  if (!c && !all_shared(&x)) c = run_draws(&x, err);
  for (size_t j = 0; j < x.n && !c && !*node && !st_stopped(s); j++) {
    bool yes = false;
    c = look_at(&x, &x.d[j], &yes, err);
    if (!c && yes) *node = x.d[j].of;
  }
  for (size_t j = 0; j < x.n; j++)
    for (size_t k = 0; k < DRAWS; k++) rule_tensor_unref(x.d[j].value[k]);
  free(x.d);
  return c;
}
