/* Domains of the captures' inputs: terms that leave these alone, and draws inside. */
#include <math.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/names.h"
#include "egraph/base/rng.h"
#include "rules/permutation.h"

static bool literal(const rule_term *t, double *out) {
  if (t->kind == RULE_INT) *out = (double)t->u.i;
  else if (t->kind == RULE_FLOAT) *out = t->u.f;
  else return false;
  return true;
}

static bool bound(const rule_term *t, double *out) {
  return t->kind == RULE_NONE || literal(t, out);
}

/* Whether every number of the domain comes out as it went in: clamped to no less than the domain,
 * and others put in place of numbers that are not in it. */
static bool gives_back(const chk_state *k, const rule_domain *d, uint32_t a, uint32_t id,
                       int depth) {
  const rule_term *t = k->term[id].call;
  double low = -INFINITY, high = INFINITY, x;
  if (id == a) return true;
  if (!t || depth > CHK_LAYOUT_DEPTH || t->n != 3) return false;
  if (strcmp(t->u.s, OP_CLAMP) == 0)
    return t->child[0]->kind == RULE_VAR && bound(t->child[1], &low) && bound(t->child[2], &high) &&
           low <= d->low && high >= d->high &&
           gives_back(k, d, a, (uint32_t)t->child[0]->u.i, depth + 1);
  if (strcmp(t->u.s, OP_WHERE_SCALARSELF) != 0 || t->child[0]->kind != RULE_VAR ||
      t->child[2]->kind != RULE_VAR)
    return false;
  const rule_term *is = k->term[t->child[0]->u.i].call;
  return is && strcmp(is->u.s, OP_EQ_SCALAR) == 0 && is->n == 2 && is->child[0]->kind == RULE_VAR &&
         is->child[0]->u.i == t->child[2]->u.i && literal(is->child[1], &x) &&
         !rule_domain_has(d, x) && gives_back(k, d, a, (uint32_t)t->child[2]->u.i, depth + 1);
}

/* Whether an argument is this one, with the terms that it refers to written out. */
static bool spells(const chk_state *k, const rule_term *t, const rule_term *as) {
  if (t->kind == RULE_VAR && as->kind == RULE_OP) t = k->term[t->u.i].call;
  if (!t || t->kind != as->kind || t->n != as->n) return false;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return rule_term_eq(t, as);
  if (t->kind == RULE_OP && strcmp(t->u.s, as->u.s) != 0) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!spells(k, t->child[i], as->child[i])) return false;
  return true;
}

/* Whether `b` is the places that an input of different integers has in the order that it begins. */
static iso_code is_places(chk_state *k, uint32_t a, uint32_t b, bool *yes) {
  const cap_node *n = k->term[a].node;
  const rule_term *t = rule_var(k->arena, a), top = {.kind = RULE_VAR, .u = {.i = b}};
  *yes = false;
  if (!t) return chk_nomem(k);
  if (n->value->dtype != RULE_I64 || !rule_domain_permutes(n->domain, RULE_I64)) return ISO_OK;
  const rule_shape *shape = &n->value->shape;
  iso_code c = rule_order(k->arena, k->schemas, n->domain, shape, t, &t, k->err);
  if (!c) c = rule_places(k->arena, k->schemas, n->domain, shape, t, &t, k->err);
  *yes = !c && spells(k, &top, t);
  return c;
}

iso_code chk_stays_inside(chk_state *k, uint32_t a, uint32_t b, bool *yes) {
  const chk_term *t = &k->term[a];
  *yes = false;
  if (t->call || t->node->kind != CAP_INPUT || !t->node->domain || !k->term[b].call) return ISO_OK;
  *yes = gives_back(k, t->node->domain, a, b, 0);
  return *yes ? ISO_OK : is_places(k, a, b, yes);
}

const char *chk_domain_text(const chk_state *k, uint32_t a) {
  char says[256];
  const chk_term *t = &k->term[a];
  return iso_arena_printf(k->arena, "%s's %s may be: %s", t->side == LEFT ? "left" : "right",
                          t->node->name, rule_domain_print(t->node->domain, says, sizeof says));
}

bool chk_has_domain(const chk_state *k, uint32_t leaf) {
  const chk_term *t = &k->term[leaf];
  return t->node && !t->call && t->node->kind == CAP_INPUT && t->node->domain;
}

bool chk_fit_drawn(const chk_state *k, uint32_t leaf, size_t number, rule_tensor *t) {
  iso_rng rng = iso_rng_new(UINT64_C(0x66697473), leaf * 64 + number);
  const rule_domain *d = k->term[leaf].node->domain;
  return rule_domain_admits(d, t, NULL, 0) ||
         rule_domain_fit(d, -INFINITY, INFINITY, (unsigned)number, &rng, t);
}

iso_code chk_agreed(chk_state *k) {
  const cap_agreement *a = k->o->agreed;
  iso_code c = ISO_OK;
  for (size_t i = 0; a && i < a->n_notes && !c; i++)
    c = chk_assume(k, a->note[i].kind, a->note[i].text);
  return c;
}
