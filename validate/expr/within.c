/* Elements of one part of a concatenation. Its index is known to lie within that part, while the
 * conditions in an element are written for all indices of the whole. Where an operator has no value
 * at a place outside of the part, say a row without a key in a block of a mask, that place is left
 * out before the operator sees it. Only places where the part's own element has no value are left
 * out, so that a memoised element is right elsewhere too, wherever it is defined. */
#include "validate/expr/expr_int.h"

bool sc_within_begin(sc *c, sx at, sx size) {
  if (c->parts.n_within == SC_MAX_WITHIN) return false;
  c->parts.within[c->parts.n_within].at = at;
  c->parts.within[c->parts.n_within++].size = size;
  return true;
}

void sc_within_end(sc *c) { c->parts.n_within--; }

static sx without(sc *c, sx x, sx none, int depth);

/* One branch of x; `*alive` is false where the facts leave no index that takes it. */
static sx branch(sc *c, sx x, sx g, bool holds, sx none, int depth, bool *alive) {
  const size_t facts = c->here.n_facts, path = c->here.n_path;
  *alive = sc_assume(c, g, holds);
  const sx y = sx_cofactor(c, x, g, holds), r = *alive ? without(c, y, none, depth + 1) : y;
  c->here.n_facts = facts, c->here.n_path = path;
  return r;
}

/* x without the ends that are `none` and that no index within the parts reaches. */
static sx without(sc *c, sx x, sx none, int depth) {
  const sx g = sx_top_guard(c, x);
  if (!g || depth > 16 || c->fault.failed) return x;
  const sx y = sx_cofactor(c, x, g, true), z = sx_cofactor(c, x, g, false);
  bool first, second;
  const sx u = branch(c, x, g, true, none, depth, &first);
  const sx v = branch(c, x, g, false, none, depth, &second);
  if (!first && y == none) return v;
  if (!second && z == none) return u;
  if (u == y && v == z) return x;
  return u == v ? u : sc_node(c, X_ITE, (uint32_t[3]){g, u, v}, 3);
}

sx sx_within(sc *c, sx x, sx none) {
  const size_t facts = c->here.n_facts;
  if (!sx_top_guard(c, x)) return x;
  for (size_t i = 0; i < c->parts.n_within && c->here.n_facts + 2 <= SC_MAX_FACTS; i++) {
    c->here.fact[c->here.n_facts++] = c->parts.within[i].at;
    c->here.fact[c->here.n_facts++] =
        sx_sub(c, sx_sub(c, c->parts.within[i].size, c->one), c->parts.within[i].at);
  }
  x = without(c, x, none, 0);
  c->here.n_facts = facts;
  return x;
}
