/* Domains of the captures' inputs: terms that leave these alone, and draws inside. */
#include <math.h>
#include <stdlib.h>
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

static const char *domain_text(const chk_state *k, uint32_t a) {
  char says[256];
  const chk_term *t = &k->term[a];
  return iso_arena_printf(k->arena, "%s's %s may be: %s", t->side == LEFT ? "left" : "right",
                          t->node->name, rule_domain_print(t->node->domain, says, sizeof says));
}

/* ---- parts: what is said of each is said of the whole that they make up ---- */

static bool reads_only(const chk_state *k, const rule_term *t, uint32_t a, int depth, int *room) {
  if (--*room < 0) return false;
  if (t->kind == RULE_VAR && t->u.i == a) return true;
  if (t->kind == RULE_VAR) t = k->term[t->u.i].call;
  if (!t || depth > CHK_LAYOUT_DEPTH) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!reads_only(k, t->child[i], a, depth + 1, room)) return false;
  return true;
}

/* Whether a step says that an input is a layout of elements of `a`, and that input's numbers come
 * out of `b`, where they stand for `a`'s, as they went in. */
static bool is_part(const chk_state *k, const chk_step *s, uint32_t a, uint32_t b) {
  enum { CALLS = 1024 };
  int room = CALLS;
  return s->kind == CHK_LEAF && chk_has_domain(k, s->a) && k->term[s->b].call &&
         reads_only(k, k->term[s->b].call, a, 0, &room) &&
         gives_back(k, k->term[s->a].node->domain, a, b, 0);
}

static iso_code numbered(chk_state *k, void *ctx, uint32_t leaf, rule_tensor **out) {
  const rule_tensor *v = ctx;
  (void)leaf; /* the whole: nothing else is read */
  const iso_code c = rule_tensor_new(RULE_I64, &v->shape, out, k->err);
  for (int64_t i = 0; !c && i < v->numel; i++) ((int64_t *)(*out)->data)[i] = i;
  return c;
}

static iso_code take_part(chk_state *k, size_t step, rule_tensor *whole, bool *taken) {
  rule_tensor *id;
  const iso_code c = chk_layout(k, k->cert.step[step].b, step, numbered, whole, &id);
  if (c || !id) return c;
  for (int64_t i = 0; i < id->numel; i++) {
    const int64_t at = rule_tensor_get_int(id, i);
    if (at >= 0 && at < whole->numel) taken[at] = true;
  }
  rule_tensor_unref(id);
  return ISO_OK;
}

static iso_code parts_stay_inside(chk_state *k, uint32_t a, uint32_t b, bool *yes) {
  rule_tensor *whole = chk_captured(k, a, 0);
  if (!whole) return ISO_OK;
  bool *taken = calloc((size_t)whole->numel + 1, 1);
  iso_code c = taken ? ISO_OK : chk_nomem(k);
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++)
    if (is_part(k, &k->cert.step[i], a, b)) c = take_part(k, i, whole, taken);
  *yes = !c && !chk_settled(k);
  for (int64_t i = 0; *yes && i < whole->numel; i++) *yes = taken[i];
  free(taken);
  for (size_t i = 0; i < k->cert.n_steps && !c && *yes; i++)
    if (is_part(k, &k->cert.step[i], a, b))
      c = chk_assume(k, RULE_ASSUMES_RANGE, domain_text(k, k->cert.step[i].a));
  return c;
}

iso_code chk_stays_inside(chk_state *k, uint32_t a, uint32_t b, bool *yes) {
  const chk_term *t = &k->term[a];
  iso_code c = ISO_OK;
  *yes = false;
  if (t->call || t->node->kind != CAP_INPUT || !k->term[b].call) return ISO_OK;
  if (t->node->domain) {
    *yes = gives_back(k, t->node->domain, a, b, 0);
    if (!*yes) c = is_places(k, a, b, yes);
    if (!c && *yes) c = chk_assume(k, RULE_ASSUMES_RANGE, domain_text(k, a));
  }
  return c || *yes || chk_settled(k) ? c : parts_stay_inside(k, a, b, yes);
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

/* The report outlives the captures. */
iso_code chk_agreed(chk_state *k) {
  const cap_agreement *a = k->o->agreed;
  iso_code c = ISO_OK;
  for (size_t i = 0; a && i < a->n_notes && !c; i++)
    c = chk_assume(k, a->note[i].kind, iso_arena_strdup(k->arena, a->note[i].text));
  return c;
}
