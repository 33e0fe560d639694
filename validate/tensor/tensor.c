/* Tensors and lists of them; their elements, remembered by index; a rule's variables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "validate/ops/ops.h"
#include "validate/prove/prove.h"

typedef struct sc_elem {
  const pt_tensor *t;
  uint32_t place;
  const sx *idx;
  sx value;
} sc_elem;

void *sc_take(sc *c, size_t n) {
  void *p = c->fault.failed ? NULL : iso_arena_alloc(&c->arena, n);
  if (!p && !c->fault.failed) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
  }
  return p;
}

/* ---- tensors ---- */

pt_tensor *pt_new(sc *c, char kind, pt_elem f) {
  pt_tensor *t = sc_take(c, sizeof *t);
  if (!t) return NULL;
  *t = (pt_tensor){.kind = kind, .elem = f, .id = ++c->terms.n_tensors};
  return t;
}

static size_t elem_slot(const sc *c, const pt_tensor *t, uint32_t place, const sx *idx) {
  size_t h = iso_hash(idx, t->rank * sizeof *idx, t->id + ((uint64_t)place << 32)) &
             (c->terms.cap_elems - 1);
  for (; c->terms.elems[h].t; h = (h + 1) & (c->terms.cap_elems - 1))
    if (c->terms.elems[h].t == t && c->terms.elems[h].place == place &&
        (!t->rank || !memcmp(c->terms.elems[h].idx, idx, t->rank * sizeof *idx)))
      break;
  return h;
}

static bool more_elems(sc *c) {
  sc_elem *old = c->terms.elems;
  const size_t n = c->terms.cap_elems;
  c->terms.cap_elems = n ? 2 * n : 256;
  c->terms.elems = calloc(c->terms.cap_elems, sizeof *c->terms.elems);
  if (!c->terms.elems) {
    c->terms.elems = old;
    c->terms.cap_elems = n;
    return false;
  }
  for (size_t i = 0; i < n; i++)
    if (old[i].t) c->terms.elems[elem_slot(c, old[i].t, old[i].place, old[i].idx)] = old[i];
  free(old);
  return true;
}

sx pt_at(sc *c, const pt_tensor *t, const sx *idx) {
  if (c->fault.failed || !t) return c->zero;
  if (c->terms.cap_elems) {
    const size_t h = elem_slot(c, t, c->parts.at_place, idx);
    if (c->terms.elems[h].t) return c->terms.elems[h].value;
  }
  if (++c->budget.depth > 400) sc_fail(c, "a term too deep");
  const sx v = c->fault.failed ? c->zero : t->elem(c, t, idx);
  c->budget.depth--;
  sx *copy = sc_take(c, (t->rank + 1) * sizeof *copy);
  if (c->fault.failed || !copy) return c->zero;
  memcpy(copy, idx, t->rank * sizeof *copy);
  if (2 * (c->terms.n_elems + 1) > c->terms.cap_elems && !more_elems(c)) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  c->terms.elems[elem_slot(c, t, c->parts.at_place, copy)] =
      (sc_elem){t, c->parts.at_place, copy, v};
  c->terms.n_elems++;
  return v;
}

pt_value *pt_list(sc *c, const pt_tensor *const *t, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!t[i]) return NULL;
  pt_value *v = sc_take(c, sizeof *v);
  const pt_tensor **copy = sc_take(c, (n + 1) * sizeof *copy);
  if (!v || !copy) return NULL;
  if (n) memcpy(copy, t, n * sizeof *copy);
  *v = (pt_value){.several = true, .n = n, .t = copy};
  return v;
}

pt_value *pt_one(sc *c, const pt_tensor *t) {
  pt_value *v = t ? pt_list(c, &t, 1) : NULL;
  if (v) v->several = false;
  return v;
}

const pt_tensor *pt_piece(sc *c, const pt_value *v, size_t k) {
  if (v->t) {
    if (k < v->n) return v->t[k];
    sc_fail(c, "getitem out of range");
    return NULL;
  }
  /* Piece k of equal ones: [k step, min((k + 1) step, size)); there is one where k step < size. */
  const sx size = v->base->dim[v->dim], start = sx_mul(c, sx_int(c, (int64_t)k), v->step),
           end = sx_add(c, start, v->step);
  bool whole;
  if (!(k == 0 ? sc_require(c, c->yes) : sc_require(c, sx_lt(c, start, size)))) return NULL;
  if (!sc_decide(c, sx_le(c, end, size), &whole)) return NULL;
  const rule_dtype type = v->base->narrow ? (rule_dtype)v->base->narrow : RULE_I64;
  if (v->unbind) return pt_typed(c, pt_drop(c, v->base, v->dim, start), type);
  return pt_typed(
      c, pt_slice(c, v->base, v->dim, start, whole ? v->step : sx_sub(c, size, start), c->one),
      type);
}

/* ---- variables ---- */

static sx bool_end(sc *c, sx x, const void *ctx) {
  (void)ctx;
  return sc_op(c, x) == X_LEAF ? sc_node(c, X_ITE, (uint32_t[3]){x, c->yes, c->no}, 3) : x;
}

static sx variable_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  if (c->look && c->look->filled && t->kind == 'f')
    return sx_int(c, c->look->filled == 1 ? 1 : 2 + t->which);
  memcpy(at, idx, t->rank * sizeof *at);
  /* Within a part of a concatenation of any shapes, the place among the open dimensions is another
   * one. */
  const bool moved = t->lead && c->parts.at_place && t->rank < RULE_MAX_RANK;
  if (moved) at[t->rank] = sx_int(c, c->parts.at_place);
  const sx x = sx_leaf(c, (uint32_t)t->which, at, t->rank + moved);
  return t->kind == 'b' ? sx_lift(c, x, bool_end, NULL) : x;
}

bool pt_is_variable(const pt_tensor *t) { return t->elem == variable_elem; }

const pt_tensor *pt_variable(sc *c, int64_t index) {
  if (index < 0 || index >= (int64_t)c->r->n_vars || index >= RULE_MAX_VARS) {
    sc_fail(c, "too many variables");
    return NULL;
  }
  const rule_variable *v = &c->r->var[index];
  pt_tensor *t = pt_new(c, v->kind, variable_elem);
  if (!t) return NULL;
  if (!strchr("fib", v->kind)) sc_fail(c, "a variable of complex numbers");
  t->which = (int)index;
  t->narrow = (uint8_t)v->narrow;
  c->reading.narrow |= v->narrow != 0;
  if (v->any_shape || v->leading) t->lead = 1ULL << index;
  for (uint32_t k = 0; k < v->n_dims && !c->fault.failed; k++) {
    char *name = v->dim[k]->kind == RULE_NONE
                     ? iso_arena_printf(&c->arena, "size %" PRId64 " %u", index, k)
                     : NULL; /* no name that a rule can give */
    const rule_term n = {.kind = RULE_NAME, .u.s = name};
    t->dim[t->rank++] = sc_size(c, name ? &n : v->dim[k]);
  }
  return c->fault.failed ? NULL : t;
}
