/* Which branches the samples of a rule took, and whether anything showed it. An operator that
 * chooses (choice.c) is one function on each side of its choice: samples that all lie on one side
 * show nothing about the other. And where it jumps it has a value of its own, that no number beside
 * it has: `>` and `>=`, or roundings to even and upwards, differ there alone. A branch that was
 * taken where the output does not depend on it shows nothing either (observe.c). A term that occurs
 * on both sides of the rule makes one choice for both. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "rules/operators.h"
#include "validate/branch/choice_int.h"
#include "validate/branch/cover_int.h"
#include "validate/branch/range.h"

enum {
  EDGES = VAL_EDGE | VAL_MEET | VAL_EDGE_BELOW | VAL_EDGE_ODD | VAL_EDGE_ABOVE,
  MANY_TIES = 8
};

static bool varies(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (varies(t->child[i])) return true;
  return false;
}

/* Places in a dimension, as a maximum, a sort or a choice of the largest gives them, or some of
 * these in another layout. They range over that dimension on every draw: a bound past its end is
 * never met, and need not be. */
static bool places(const rule_term *t) {
  if (t->kind == RULE_LIST) {
    for (uint32_t i = 0; i < t->n; i++)
      if (!places(t->child[i])) return false;
    return t->n > 0;
  }
  if (t->kind != RULE_OP || t->n == 0) return false;
  const rule_operator *o = rule_operator_of(t->u.s);
  if (o->places) return true;
  if (rule_is_getitem(t->u.s))
    return t->child[0]->kind == RULE_OP && t->child[1]->kind == RULE_INT && t->child[1]->u.i == 1 &&
           rule_operator_of(t->child[0]->u.s)->places_too;
  return (o->identity || o->rearranges || o->part || o->joins) && places(t->child[0]);
}

uint64_t val_term_hash(const rule_term *t, uint64_t seed) {
  uint64_t h = iso_hash(&t->kind, sizeof t->kind, seed);
  if (t->kind == RULE_OP || t->kind == RULE_STRING || t->kind == RULE_NAME || t->kind == RULE_EXPR)
    h = iso_hash(t->u.s, strlen(t->u.s), h);
  else if (t->kind != RULE_LIST) h = iso_hash(&t->u.i, sizeof t->u.i, h);
  for (uint32_t i = 0; i < t->n; i++) h = val_term_hash(t->child[i], h);
  return h;
}

void val_cover_note(val_cover *c, size_t at, const rule_term *term, const val_ran *ran,
                    const val_range *in, size_t shown) {
  const rule_term *call = ran->call;
  rule_tensor *const *bind = ran->bind;
  const rule_tensor *out = ran->out[shown];
  const size_t n = ran->n;
  const val_site s = val_site_of(call, bind, n, out);
  val_zeros_note(&c->zeros, at, term, call, val_range_of(call, bind, in, n, out), out);
  uint16_t want, need = val_site_needs(&s, &want);
  const uint16_t possible = val_range_needs(call, bind, in, n, out, need);
  if (need && !possible) want = 0;
  need = possible;
  if (!(need | want) || !varies(term)) return;
  if ((need & (VAL_UP | VAL_DOWN)) && term->n && places(term->child[0])) return;
  if (s.choice == RULE_CHOICE_ORDER && val_orders_places(term)) return;
  if (c->n >= VAL_COVER) {
    c->full = true;
    return;
  }
  val_covered *o = &c->op[c->n++];
  *o = (val_covered){.at = at, .where = term, .need = need, .want = want, .numel = out->numel};
  snprintf(o->name, sizeof o->name, "%s", call->u.s);
  o->term = val_term_hash(term, 0);
  o->orders = s.choice == RULE_CHOICE_ORDER;
  for (unsigned b = 0; b < VAL_BITS; b++)
    if (((need | want) & ~VAL_MEET) >> b & 1 && val_site_takes(&s, (uint16_t)(1U << b)))
      o->taken |= (uint16_t)(1U << b);
}

val_covered *val_cover_at(const val_cover *c, const val_covered *like) {
  for (size_t i = 0; i < c->n; i++)
    if (c->op[i].at == like->at && strcmp(c->op[i].name, like->name) == 0)
      return (val_covered *)(uintptr_t)&c->op[i];
  return NULL;
}

/* One term makes one choice, however often it stands on a side. */
static void join_equal(val_cover *c) {
  for (size_t i = 0; i < c->n; i++)
    for (size_t k = 0; k < c->n; k++)
      if (c->op[i].term == c->op[k].term) c->op[i].seen |= c->op[k].seen;
}

void val_cover_add(val_cover *all, const val_cover *one) {
  all->full |= one->full;
  val_zeros_add(&all->zeros, &one->zeros);
  for (size_t i = 0; i < one->n; i++) {
    val_covered *o = val_cover_at(all, &one->op[i]);
    if (o) {
      o->need |= one->op[i].need, o->want |= one->op[i].want;
      o->taken |= one->op[i].taken, o->seen |= one->op[i].seen;
      o->term = one->op[i].term;
      o->n_tied += one->op[i].n_tied;
      /* Whichever of equal numbers is taken: it is read for its value. */
      if (o->n_tied >= MANY_TIES) o->seen |= VAL_EDGE;
    } else if (all->n < VAL_COVER) {
      all->op[all->n++] = one->op[i];
    } else {
      all->full = true;
    }
  }
  join_equal(all);
}

static bool shared(const val_covered *o, const val_cover *other) {
  for (size_t i = 0; i < other->n; i++)
    if (other->op[i].term == o->term) return true;
  return false;
}

/* The branches that no sample has shown yet: `other` is the rule's other side. */
static uint16_t cover_unseen(const val_covered *o, const val_cover *other) {
  if (shared(o, other)) return o->need & (uint16_t) ~(o->taken | EDGES);
  return o->need & (uint16_t) ~(o->seen | (o->taken & VAL_FAR));
}

uint16_t val_cover_sought(const val_covered *o, const val_cover *other) {
  return cover_unseen(o, other) | (shared(o, other) ? 0 : o->want & (uint16_t)~o->seen);
}

/* How many operators named `name` lack FAR. */
static size_t count_far(const val_cover *c, const char *name) {
  size_t k = 0;
  for (size_t i = 0; i < c->n; i++)
    k += strcmp(c->op[i].name, name) == 0 && (c->op[i].need & ~c->op[i].taken & VAL_FAR);
  return k;
}

static const char *gap_of(const val_cover *c, const val_cover *other, bool observed) {
  for (size_t i = 0; i < c->n; i++) {
    const val_covered *o = &c->op[i];
    uint16_t lacks = observed ? cover_unseen(o, other) : o->need & (uint16_t)~o->taken;
    if (!observed && shared(o, other)) lacks &= (uint16_t)~EDGES;
    if ((lacks & VAL_FAR) && count_far(c, o->name) == count_far(other, o->name))
      lacks &= (uint16_t)~VAL_FAR;
    if (lacks) return o->name;
  }
  return observed && c->full ? "the last of many operators" : NULL;
}

const char *val_cover_gap(const val_cover *left, const val_cover *right, bool observed) {
  const char *name = gap_of(left, right, observed);
  return name ? name : gap_of(right, left, observed);
}

/* In `outside`, `seen` has the branches that a sample took where rounding hid the effect. */
void val_cover_excuse(val_cover *all, const val_cover *outside) {
  for (size_t i = 0; i < VAL_ZEROS; i++) all->zeros.some[i] |= outside->zeros.some[i];
  for (size_t i = 0; i < all->n; i++) {
    val_covered *o = &all->op[i];
    const val_covered *there = val_cover_at(outside, o);
    const uint16_t only = there ? there->taken & (uint16_t) ~(o->taken | there->seen) : 0;
    o->seen |= only;
    o->taken |= only;
  }
}

/* `x > y` met at many x, or where only one place is (t, of `x > t`): an edge of measure 0 that
 * showed nothing on any of them. */
void val_cover_barren(val_covered *o, uint16_t bit, const val_root *root) {
  enum { MANY = 10, APART = 6 };
  size_t apart = 0;
  if (o->n_barren < VAL_ROOTS) o->barren[o->n_barren] = root->operand;
  o->n_barren++;
  o->several |= !root->unique;
  const size_t n = o->n_barren < VAL_ROOTS ? o->n_barren : VAL_ROOTS;
  for (size_t i = 0; i < n; i++) {
    bool again = false;
    for (size_t k = 0; k < i; k++) again |= o->barren[k] == o->barren[i];
    apart += !again;
  }
  if (o->n_barren >= MANY && (apart >= APART || !o->several)) o->seen |= bit;
}

static bool alone(const val_cover *c, const val_cover *other) {
  for (size_t i = 0; i < c->n; i++)
    if ((c->op[i].need & (VAL_EDGE | VAL_MEET)) && !shared(&c->op[i], other)) return true;
  return false;
}

bool val_cover_jumps(const val_cover *left, const val_cover *right) {
  return alone(left, right) || alone(right, left);
}
