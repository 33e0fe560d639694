/* Finite masks in the symbolic prover: -3.4e38 where others write minus infinity.
 *
 * Added to a score or put in its place, it is read as minus infinity (assumption `literal`, proofs.md). That is the same function only in
 * a row that keeps an element: one that is masked wholly is a plain mean with the finite mask, and nothing, or 0, with the infinite
 * one. So the literal has to go nowhere but into softmaxes, through operators that only move, add or choose it, and every row of these
 * has to keep its first element or that of its own index (a causal mask, a window). */
#include <math.h>
#include <string.h>

#include "validate/prove_int.h"

bool sc_mask_literal(double f) { return isfinite(f) && f <= -0.5 * 3.3895313892515355e38; }

static bool is_one_of(const char *op, const char *const *name, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(op, name[i]) == 0) return true;
  return false;
}

/* What moves, adds or chooses. */
static bool passes_on(const char *op) {
  static const char *const name[] = {"aten::full", "aten::full_like", "aten::scalar_tensor", "aten::add.Tensor", "aten::where.self", "aten::where.ScalarSelf",
                                     "aten::where.ScalarOther", "aten::where.Scalar", "aten::masked_fill.Scalar", "aten::masked_fill.Tensor", "aten::triu",
                                     "aten::tril", "aten::view", "aten::reshape", "aten::unsqueeze", "aten::squeeze.dim", "aten::expand", "aten::slice.Tensor",
                                     "aten::select.int", "aten::transpose.int", "aten::permute", "aten::to.dtype", "aten::to.dtype_layout", "aten::_to_copy",
                                     "aten::clone", "aten::contiguous", "aten::alias", "aten::detach"};
  return is_one_of(op, name, sizeof name / sizeof *name);
}

/* The argument that a softmax is taken over, as a mask is added to it; UINT32_MAX: none. */
static uint32_t scores_of(const char *op) {
  static const char *const softmax[] = {"aten::softmax.int", "aten::_softmax", "aten::_safe_softmax"};
  if (is_one_of(op, softmax, sizeof softmax / sizeof *softmax)) return 0;
  return strcmp(op, "aten::scaled_dot_product_attention") == 0 ? 3 : UINT32_MAX;
}

/* `ends`: what stands here ends in a softmax as a mask does. */
static bool walk(const rule_term *t, bool ends, bool *any) {
  if (t->kind == RULE_FLOAT && sc_mask_literal(t->u.f)) {
    *any = true;
    return ends;
  }
  const uint32_t scores = t->kind == RULE_OP ? scores_of(t->u.s) : UINT32_MAX;
  const bool on = ends && (t->kind != RULE_OP || passes_on(t->u.s));
  const bool factor = t->kind == RULE_OP && strcmp(t->u.s, "aten::add.Tensor") == 0; /* its third argument is one */
  for (uint32_t i = 0; i < t->n; i++)
    if (!walk(t->child[i], i == scores || (scores == UINT32_MAX && on && !(factor && i == 2)), any)) return false;
  return true;
}

bool sc_only_masks(const rule *r) {
  bool any = false;
  return walk(r->lhs, false, &any) && walk(r->rhs, false, &any) && any;
}

bool sc_row_keeps(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const uint32_t d = (uint32_t)t->k[0];
  for (uint32_t j = 0; j <= t->rank && !c->failed; j++) {
    if (j < t->rank && (j == d || t->dim[j] != t->dim[d])) continue;
    if (t->rank) at[d] = j < t->rank ? idx[j] : c->zero;
    const sx x = pt_at(c, t->in[0], at);
    if (!c->failed && !sx_occurs(c, c->neginf, x)) return true;
  }
  return false;
}
