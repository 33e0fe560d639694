/* A rule says "for ids from 0 to 15" by clamps, so that it can be applied without looking at
 * values. Proofs and tests are of the rule over integers of that range: a proof need not find out
 * that min(max(i, 0), 15) is none of the numbers outside, and samples need not leave the range. */
#include "validate/inside.h"

#include "rules/names.h"

#include <string.h>

enum { MAX_INSIDE = 64 };

typedef struct bound {
  const rule_term *low, *high; /* NULL: it was not met yet */
  bool free;                   /* it occurs otherwise */
} bound;

static bool is_none(const rule_term *t) { return t->kind == RULE_NONE; }

/* clamp of a variable between two integers in order. */
static bool clamps(const rule_term *t) {
  return t->kind == RULE_OP && t->n == 3 && strcmp(t->u.s, OP_CLAMP) == 0 &&
         t->child[0]->kind == RULE_VAR && !is_none(t->child[1]) && !is_none(t->child[2]) &&
         t->child[1]->kind == RULE_INT && t->child[2]->kind == RULE_INT &&
         t->child[1]->u.i <= t->child[2]->u.i && t->child[2]->u.i < INT64_MAX;
}

static void find(const rule_term *t, bound *of) {
  if (t->kind == RULE_VAR) of[t->u.i].free = true;
  if (!clamps(t)) {
    for (uint32_t i = 0; i < t->n; i++) find(t->child[i], of);
    return;
  }
  bound *b = &of[t->child[0]->u.i];
  if (b->low && (b->low->u.i != t->child[1]->u.i || b->high->u.i != t->child[2]->u.i))
    b->free = true;
  b->low = t->child[1];
  b->high = t->child[2];
}

typedef struct change {
  iso_arena *a;
  const bound *of;
  rule_schemas *schemas; /* NULL: clamps go; else they come back */
} change;

static const rule_term *with_bounds(const change *k, const rule_term *t) {
  const bound *b = &k->of[t->u.i];
  const rule_term *arg[3] = {t, b->low, b->high}, *out;
  iso_error err;
  if (!b->low) return t;
  return rule_call(k->a, k->schemas, OP_CLAMP, arg, 3, &out, &err) == ISO_OK ? out : NULL;
}

static const rule_term *changed(const change *k, const rule_term *t) {
  if (!k->schemas && clamps(t) && !k->of[t->child[0]->u.i].free) return t->child[0];
  if (k->schemas && t->kind == RULE_VAR) return with_bounds(k, t);
  if (t->n == 0) return t;
  const rule_term **child = iso_arena_alloc(k->a, t->n * sizeof *child);
  rule_term *out = iso_arena_alloc(k->a, sizeof *out);
  if (!child || !out) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = changed(k, t->child[i]))) return NULL;
  *out = *t;
  out->child = child;
  return out;
}

static bool change_sides(const change *k, rule *r) {
  r->lhs = changed(k, r->lhs);
  r->rhs = r->lhs ? changed(k, r->rhs) : NULL;
  return r->rhs != NULL;
}

bool val_inside(iso_arena *a, const rule *r, rule *out) {
  bound of[MAX_INSIDE] = {{0}};
  bool any = false;
  if (r->n_vars > MAX_INSIDE) return false;
  find(r->lhs, of);
  find(r->rhs, of);
  rule_variable *var = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *var);
  if (!var) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    var[i] = r->var[i];
    if (var[i].low || var[i].high) return false; /* which come from clamps would not be known */
    if (var[i].kind != 'i' || !of[i].low) of[i].free = true;
    if (of[i].free) continue;
    var[i].low = of[i].low;
    if (!(var[i].high = rule_int(a, of[i].high->u.i + 1))) return false;
    any = true;
  }
  *out = *r;
  out->var = var;
  return any && change_sides(&(change){a, of, NULL}, out);
}

bool val_outside(iso_arena *a, rule_schemas *s, rule *r) {
  bound of[MAX_INSIDE] = {{0}};
  rule_variable *var = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *var);
  if (!var || r->n_vars > MAX_INSIDE) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    var[i] = r->var[i];
    if (!var[i].low || !var[i].high) continue;
    of[i].low = var[i].low;
    if (!(of[i].high = rule_int(a, var[i].high->u.i - 1))) return false;
    var[i].low = var[i].high = NULL;
  }
  r->var = var;
  return change_sides(&(change){a, of, s}, r);
}
