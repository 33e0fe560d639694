/* Finite masks in the symbolic prover: -3.4e38 where others write minus infinity.
 *
 * Added to a score or put in its place, it is read as minus infinity (assumption `literal`, proofs.md). That is the same function only in
 * a row that keeps an element: one that is masked wholly is a plain mean with the finite mask, and nothing, or 0, with the infinite
 * one. So the literal has to go nowhere but into softmaxes, through operators that only move, add or choose it, and every row of these
 * has to keep its first element or that of its own index (a causal mask, a window). */
#include <math.h>
#include <stdlib.h>
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
    if (j < t->rank && (j == d || !sx_ge0(c, sx_sub(c, t->dim[d], t->dim[j])))) continue;
    if (t->rank) at[d] = j < t->rank ? idx[j] : c->zero;
    const sx x = pt_at(c, t->in[0], at);
    if (!c->failed && !(sc_flags(c, x) & S_MASKED)) return true;
  }
  return false;
}

/* Where x, as the definitions give it, is minus infinity: yes or no, by conditions on indices alone. 0: by others, or it stands within. */
static sx masked_if(sc *c, sx x) {
  const sx g = sx_top_guard(c, x);
  if (!(sc_flags(c, x) & S_MASKED) || x == c->neginf) return x == c->neginf ? c->yes : c->no;
  if (!g || (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) || !sc_has(c, sc_word(c, g, 0), S_INT)) return 0;
  const sx a = masked_if(c, sc_word(c, x, 1)), b = masked_if(c, sc_word(c, x, 2));
  return a && b ? sx_ite(c, sc_node(c, X_ITE, (uint32_t[3]){g, c->yes, c->no}, 3), a, b) : 0;
}

/* A normal form can be large, and would only take away what is asked for. */
sx sc_masked_if(sc *c, const pt_tensor *t, const sx *idx) {
  if (c->plain || c->failed) return 0;
  struct sc_elem *const elems = c->elems;
  const size_t n = c->n_elems, cap = c->cap_elems;
  c->elems = NULL;
  c->n_elems = c->cap_elems = 0;
  c->plain = true;
  const sx x = pt_at(c, t, idx);
  c->plain = false;
  free(c->elems);
  c->elems = elems;
  c->n_elems = n;
  c->cap_elems = cap;
  return c->failed ? 0 : masked_if(c, x);
}
