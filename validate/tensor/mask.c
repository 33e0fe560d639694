/* Finite masks in the symbolic prover: -3.4e38 where others write minus infinity.
 *
 * Added to a score or put in its place, it is read as minus infinity (assumption `literal`,
 * docs/reports.md). That is the same function only in a row that keeps an element: one that is
 * masked wholly is a plain mean with the finite mask, and nothing, or 0, with the infinite one. So
 * the literal has to go nowhere but where masks vanish (rules/masks.h says through which
 * operators), and every row of a softmax has to keep its first element or that of its own index (a
 * causal mask, a window). */
#include <stdlib.h>
#include <string.h>

#include "rules/masks.h"
#include "validate/tensor/tensor.h"

bool sc_mask_literal(double f) { return rule_is_mask(RULE_F32, f); }

/* Whether an operator that passes masks on also multiplies them by a number other than 1. It is 1
 * where it is left out. */
static bool is_scaled(const rule_term *t, const rule_mask_op *op) {
  const rule_term *by = op->one && op->one < t->n ? t->child[op->one] : NULL;
  if (!by || (by->kind == RULE_INT && by->u.i == 1)) return false;
  return by->kind != RULE_FLOAT || by->u.f > 1 || !(by->u.f >= 1);
}

/* Whether masks come to a good end in argument `i` of `t`, whose own masks do if `ends`. A row that
 * is reduced is none whose elements are looked at here. */
static bool takes_masks(const rule_term *t, uint32_t i, bool ends) {
  if (t->kind != RULE_OP) return ends;
  const rule_mask_op *op = rule_mask_op_of(t->u.s);
  if (!op || i >= 32 || !(op->masks >> i & 1) || is_scaled(t, op)) return false;
  return op->role == RULE_MASK_PASSES ? ends : op->role != RULE_MASK_REDUCED;
}

/* Whether all masks in a term come to a good end. `ends`: the term ends in a softmax as a mask
 * does. */
static bool ends_well(const rule_term *t, bool ends) {
  if (t->kind == RULE_FLOAT && sc_mask_literal(t->u.f)) return ends;
  for (uint32_t i = 0; i < t->n; i++)
    if (!ends_well(t->child[i], takes_masks(t, i, ends))) return false;
  return true;
}

static bool has_mask(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return sc_mask_literal(t->u.f);
  for (uint32_t i = 0; i < t->n; i++)
    if (has_mask(t->child[i])) return true;
  return false;
}

/* Most rules have no such literal: no operator is looked up for them. */
bool sc_only_masks(const rule *r) {
  return (has_mask(r->lhs) || has_mask(r->rhs)) && ends_well(r->lhs, false) &&
         ends_well(r->rhs, false);
}

bool sc_row_keeps(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const uint32_t d = (uint32_t)t->k[0];
  for (uint32_t j = 0; j <= t->rank && !c->fault.failed; j++) {
    if (j < t->rank && (j == d || !sx_ge0(c, sx_sub(c, t->dim[d], t->dim[j])))) continue;
    if (t->rank) at[d] = j < t->rank ? idx[j] : c->zero;
    const sx x = pt_at(c, t->in[0], at);
    if (!c->fault.failed && !(sc_flags(c, x) & S_MASKED)) return true;
  }
  return false;
}

/* Where x, as the definitions give it, is minus infinity: yes or no, by conditions on indices
 * alone. 0: by others, or it stands within. */
static sx masked_if(sc *c, sx x) {
  const sx g = sx_top_guard(c, x);
  if (!(sc_flags(c, x) & S_MASKED) || x == c->neginf) return x == c->neginf ? c->yes : c->no;
  if (!g || (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) || !sc_has(c, sc_word(c, g, 0), S_INT))
    return 0;
  const sx a = masked_if(c, sc_word(c, x, 1)), b = masked_if(c, sc_word(c, x, 2));
  return a && b ? sx_ite(c, sc_node(c, X_ITE, (uint32_t[3]){g, c->yes, c->no}, 3), a, b) : 0;
}

/* Bringing it to normal form can be costly, and could only remove the condition that is asked
 * for. */
sx sc_masked_if(sc *c, const pt_tensor *t, const sx *idx) {
  if (c->reading.plain || c->fault.failed) return 0;
  struct sc_elem *const elems = c->terms.elems;
  const size_t n = c->terms.n_elems, cap = c->terms.cap_elems;
  c->terms.elems = NULL;
  c->terms.n_elems = c->terms.cap_elems = 0;
  c->reading.plain = true;
  const sx x = pt_at(c, t, idx);
  c->reading.plain = false;
  free(c->terms.elems);
  c->terms.elems = elems;
  c->terms.n_elems = n;
  c->terms.cap_elems = cap;
  return c->fault.failed ? 0 : masked_if(c, x);
}
