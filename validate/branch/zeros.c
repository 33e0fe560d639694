/* Tensors that are 0 on every sample. Samples show nothing of a product of six conditions, each of
 * which was seen to hold, as long as the six never held at once; nor of a sum of products, or any
 * operator that makes numbers. Tensors that are 0 by their shape (triangles, padding) are moved by
 * the operators that make them, and tensors that are 0 by interval arithmetic need no sample. */
#include <string.h>

#include "rules/operators.h"
#include "validate/branch/choice_int.h"
#include "validate/branch/range.h"

static bool varies(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (varies(t->child[i])) return true;
  return false;
}

static bool all_zero(const rule_tensor *x) {
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = rule_tensor_get(x, i);
    if (v < 0 || v > 0 || v != v) return false;
  }
  return true;
}

void val_zeros_note(val_zeros *z, size_t at, const rule_term *term, const rule_term *call,
                    val_range known, const rule_tensor *out) {
  const rule_operator *o = rule_operator_of(call->u.s);
  if (at >= VAL_ZEROS || out->numel == 0 || out->dtype == RULE_BOOL) return;
  if (o->fills || o->moves || o->cast || !varies(term)) return;
  if (!all_zero(out)) {
    z->some[at] = true;
    return;
  }
  if (known.low >= 0 && known.high <= 0) return;
  z->term[at] = val_term_hash(term, 1);
  z->name[at] = *o->name ? o->name : "an operator";
}

void val_zeros_add(val_zeros *all, const val_zeros *one) {
  for (size_t i = 0; i < VAL_ZEROS; i++) {
    if (one->term[i]) all->term[i] = one->term[i], all->name[i] = one->name[i];
    all->some[i] |= one->some[i];
  }
}

static bool shared(const val_zeros *other, uint64_t term) {
  for (size_t i = 0; i < VAL_ZEROS; i++)
    if (other->term[i] == term) return true;
  return false;
}

const char *val_zeros_gap(const val_zeros *z, const val_zeros *other) {
  for (size_t i = 0; i < VAL_ZEROS; i++)
    if (z->term[i] && !z->some[i] && !shared(other, z->term[i])) return z->name[i];
  return NULL;
}
