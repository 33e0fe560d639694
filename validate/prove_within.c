/* Elements of one part of a concatenation. Its index is known to lie within that part, while the
 * conditions in an element are written for all indices of the whole. Where an operator has no value
 * at a place outside of the part, say a row without a key in a block of a mask, that place is left
 * out before the operator sees it. What is left out are places where the part's own element has no
 * value, so that an element that is remembered holds elsewhere too, wherever it is defined. */
#include "validate/prove_int.h"

bool sc_within_begin(sc *c, sx at, sx size) {
  if (c->n_within == SC_MAX_WITHIN) return false;
  c->within[c->n_within].at = at;
  c->within[c->n_within++].size = size;
  return true;
}

void sc_within_end(sc *c) { c->n_within--; }

/* x without the ends that are `none` and that no index within the parts reaches. */
static sx without(sc *c, sx x, sx none, int depth) {
  const sx g = sx_top_guard(c, x);
  if (!g || depth > 16 || c->failed) return x;
  const sx y = sx_cofactor(c, x, g, true), z = sx_cofactor(c, x, g, false);
  if (sc_op(c, g) == X_LT && sc_has(c, sc_word(c, g, 0), S_INT) && (y == none || z == none)) {
    const sx now = sx_lt(c, sc_word(c, g, 0), c->zero);
    if (now == c->no && y == none) return without(c, z, none, depth + 1);
    if (now == c->yes && z == none) return without(c, y, none, depth + 1);
  }
  const sx u = without(c, y, none, depth + 1), v = without(c, z, none, depth + 1);
  if (u == y && v == z) return x;
  return u == v ? u : sc_node(c, X_ITE, (uint32_t[3]){g, u, v}, 3);
}

sx sx_within(sc *c, sx x, sx none) {
  const size_t facts = c->n_facts;
  if (!c->n_within || !sx_top_guard(c, x)) return x;
  for (size_t i = 0; i < c->n_within && c->n_facts + 2 <= SC_MAX_FACTS; i++) {
    c->fact[c->n_facts++] = c->within[i].at;
    c->fact[c->n_facts++] = sx_sub(c, sx_sub(c, c->within[i].size, c->one), c->within[i].at);
  }
  x = without(c, x, none, 0);
  c->n_facts = facts;
  return x;
}
