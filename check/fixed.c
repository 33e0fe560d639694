/* Which inputs may be kept as they were captured: those whose values have a visible structure. */
#include "check/check_int.h"

/* Positions (consecutive integers), masks, one number everywhere. */
static bool plain(const rule_tensor *t) {
  bool steps = true, same = true, bits = true;
  for (int64_t i = 0; i < t->numel; i++) {
    const int64_t v = rule_tensor_get_int(t, i), before = i ? rule_tensor_get_int(t, i - 1) : v - 1;
    steps &= v - before == 1;
    same &= i == 0 || v == before;
    bits &= v == 0 || v == 1;
  }
  if (t->numel == 1) return rule_tensor_get_int(t, 0) == 0;
  return steps || same || bits;
}

/* In every row, bounds of sequences (0 first, never falling) or positions that begin again at 0;
 * behind padding of one number. */
static bool of_sequences(const rule_tensor *t) {
  const int64_t row = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  bool adds_up = row > 2, restarts = row > 3;
  for (int64_t from = 0; row > 0 && from < t->numel; from += row) {
    const int64_t first = rule_tensor_get_int(t, from),
                  last = rule_tensor_get_int(t, from + row - 1);
    int64_t steps = 0;
    bool padding = first == 0 || first == 1;
    adds_up &= first == 0 && last > 0;
    restarts &= padding;
    for (int64_t i = from + 1; i < from + row; i++) {
      const int64_t x = rule_tensor_get_int(t, i), before = rule_tensor_get_int(t, i - 1);
      padding &= x == before;
      adds_up &= x >= before;
      restarts &= x == before + 1 || x == 0 || padding;
      steps += x == before + 1;
    }
    restarts &= 2 * steps >= row;
  }
  return t->numel > 0 && (adds_up || restarts);
}

bool chk_structured(chk_state *k, uint32_t input) {
  const rule_tensor *t = k->term[input].node->value;
  const rule_domain *d = k->term[input].node->domain;
  if (d && rule_domain_is_joint(d)) return true;
  if (rule_dtype_is_float(t->dtype)) return t->numel == 0;
  if (!rule_dtype_is_int(t->dtype)) return true;
  return plain(t) || (!d && of_sequences(t));
}
