/* Two constants that are taken to be one although rounding tells them apart. Nothing of the
 * search's reasons is believed: both are computed again in float64 from captured values, and over
 * again with each stored number and each result moved as far as its rounding may have moved it.
 * Where nothing is stored in few digits they must agree in float64. Else the stored one must be the
 * result of the other's computation in some way, up to those moves: with no element off, or with
 * elements off together, but never with a single one off. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/rounding/again.h"
#include "check/value_int.h"

/* A captured call, and the same one with literals of more digits, which a narrow dtype makes those
 * of. */
static bool rounded_literals(const rule_term *a, const rule_term *b, size_t *n) {
  if (a->kind == RULE_FLOAT && b->kind == RULE_FLOAT && a->u.f != b->u.f) {
    const double by = fabs(a->u.f - b->u.f);
    ++*n;
    const int digits = ag_has_digits(a->u.f, 8) ? 8 : ag_has_digits(a->u.f, 11) ? 11 : 24;
    return ag_has_digits(a->u.f, digits) && by <= 0.505 * ag_unit(a->u.f, digits) &&
           ag_many_digits(a->u.f);
  }
  if (a->kind != b->kind || a->n != b->n || (a->kind != RULE_OP && a->kind != RULE_LIST))
    return rule_term_eq(a, b);
  if (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!rounded_literals(a->child[i], b->child[i], n)) return false;
  return true;
}

static iso_code say(chk_state *k, uint32_t a, uint32_t b) {
  int room[2] = {64, 64};
  const char *x = chk_spelled(k, a, &room[0]), *y = chk_spelled(k, b, &room[1]);
  return !x || !y
             ? chk_nomem(k)
             : chk_assume(k, RULE_ASSUMES_ROUNDING,
                          iso_arena_printf(k->arena, "%s and %s are one but for rounding", x, y));
}

/* Two constants, and the facts of them in float64. */
typedef struct two {
  uint32_t id[2];
  rule_tensor *v[2];
  ag_held of[2];
  double *spread; /* by element, of both together */
  size_t step;
  bool seen[AG_CLEAN + 1]; /* by fit: some way has it */
} two;

static bool settled(const chk_state *k, const two *x) {
  return x->seen[AG_CLEAN] || chk_settled(k);
}

/* Compares constant `side`, computed so, with the stored value of the other one. */
static iso_code try_way(chk_state *k, two *x, int side, const ag_way *how) {
  rule_tensor *v;
  ag_fit fit = AG_APART;
  if (settled(k, x)) return ISO_OK;
  iso_code c = ag_run(k, x->id[side], how, x->step, NULL, &v);
  if (!c && v) c = ag_compare(k, x->v[!side], v, x->spread, x->of[!side].digits, &fit);
  x->seen[fit] = true;
  rule_tensor_unref(v);
  return c;
}

/* The last calls of it, or the first ones, rounded to so many digits. */
static iso_code try_rounded(chk_state *k, two *x, int side, unsigned formula, int digits) {
  const uint32_t n = x->of[side].calls;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < n && !c; i++) {
    c = try_way(k, x, side, &(ag_way){0, formula, digits, i, n, false});
    if (!c && !formula) c = try_way(k, x, side, &(ag_way){0, 0, digits, 0, i, false});
  }
  return c;
}

/* Compares the constant that `side` computes with the one that the other side stored. It is
 * computed in float64, as captured, by another formula, or with some of its steps in float32 or in
 * the dtype in which it was stored. */
static iso_code try_ways(chk_state *k, two *x, int side) {
  const int digits = x->of[!side].digits;
  if (!x->of[!side].stored) return ISO_OK;
  iso_code c = try_way(k, x, side, &(ag_way){0});
  if (!c) c = try_way(k, x, side, &(ag_way){.captured = true});
  for (unsigned f = 1; f <= CHK_FORMULAS && !c; f++)
    c = try_way(k, x, side, &(ag_way){.formula = f});
  for (unsigned f = 0; f <= CHK_FORMULAS && !c; f++) c = try_rounded(k, x, side, f, 24);
  return c || digits >= 24 ? c : try_rounded(k, x, side, 0, digits);
}

static iso_code look_at(chk_state *k, two *x) {
  iso_code c = ISO_OK;
  for (int i = 0; i < 2 && !c && !chk_settled(k); i++)
    c = ag_run(k, x->id[i], &(ag_way){0}, x->step, &x->of[i], &x->v[i]);
  if (c || chk_settled(k)) return c;
  if (!rule_shape_eq(&x->v[0]->shape, &x->v[1]->shape))
    return chk_settle(k, CHK_REFUSED, "step %zu: they have different shapes", x->step);
  if (!(x->spread = calloc((size_t)x->v[0]->numel + 1, sizeof *x->spread))) return chk_nomem(k);
  for (int i = 0; i < 2 && !c && !chk_settled(k); i++)
    c = ag_add_spread(k, x->id[i], x->v[i], x->step, x->spread);
  return c;
}

static iso_code same_constants(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  two x = {.id = {a, b}, .step = step};
  iso_code c = look_at(k, &x);
  /* Numbers that both sides store are as far apart as a library's function, and no further. */
  const double own = x.of[0].rounds || x.of[1].rounds ? 1e-14 : 8 * DBL_EPSILON;
  if (!c && !chk_settled(k)) x.seen[AG_CLEAN] = ag_agree(x.v[0], x.v[1], x.spread, 0x1p-24, own);
  for (int side = 0; side < 2 && !c; side++) c = try_ways(k, &x, side);
  const bool same = x.seen[AG_CLEAN] || (x.seen[AG_TOGETHER] && !x.seen[AG_ALONE]);
  if (!c && !chk_settled(k) && same) c = chk_zeros_joined(k, a, x.v[0], x.v[1]);
  if (!c && !chk_settled(k) && !same)
    c = chk_settle(k, CHK_REFUSED, "step %zu: the constants differ by more than rounding", step);
  free(x.spread);
  rule_tensor_unref(x.v[0]);
  rule_tensor_unref(x.v[1]);
  return c;
}

/* Their class has the value of one that was captured. A number that a call writes is captured with
 * all of its digits, and the call is run with these. */
static iso_code share_value(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const bool wrote = ag_is_written(&k->term[a]) || ag_is_written(&k->term[b]),
             first = wrote ? ag_is_written(&k->term[a]) : k->term[a].node || !k->term[b].node;
  const chk_values *v;
  uint32_t on;
  iso_code c = chk_constant(k, first ? a : b, 0, &v, &on);
  if (!c && !v && !chk_settled(k))
    c = chk_settle(k, CHK_REFUSED, "step %zu: it is no constant", step);
  const uint32_t root = chk_root(k, first ? b : a);
  if (!c && v && wrote && root != chk_root(k, first ? a : b)) chk_drop_values(&k->here.konst[root]);
  return c;
}

iso_code chk_rounded(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  k->used.rounded = true;
  const chk_term *p = &k->term[a], *q = &k->term[b];
  size_t n = 0;
  if (p->node && p->call && q->call && !q->node && rounded_literals(p->call, q->call, &n) && n)
    return say(k, a, b);
  iso_code c = same_constants(k, a, b, step);
  if (c || chk_settled(k)) return c;
  if (!p->node && !q->node)
    return chk_settle(k, CHK_REFUSED, "step %zu: neither of the constants was captured", step);
  c = share_value(k, a, b, step);
  return c || chk_settled(k) ? c : say(k, a, b);
}
