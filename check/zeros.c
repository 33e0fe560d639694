/* Steps that join 0 and -0, which are one real number: nothing of either capture, and no call of
 * the certificate's own, may read the sign or divide by it. */
#include <stdlib.h>

#include "check/value_int.h"
#include "rules/operators.h"

iso_code chk_zeros_joined(chk_state *k, uint32_t a, const rule_tensor *x, const rule_tensor *y) {
  if (rule_tensor_same_zeros(x, y)) return ISO_OK;
  if (!k->here.zeros && !(k->here.zeros = calloc(k->n_terms + 1, 1))) return chk_nomem(k);
  k->here.zeros[a] = true;
  return ISO_OK;
}

typedef struct flow {
  bool *of;              /* by class: some term's zeros have the sign that is asked for */
  bool *carries, *fixed; /* by term */
} flow;

/* Once through all terms. Returns: the first one that tells the signs apart; CHK_NONE. */
static uint32_t pass(chk_state *k, const flow *f, bool *changed) {
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const uint32_t class = chk_root(k, i);
    f->carries[i] = f->of[class];
    f->fixed[i] = !chk_leaf_is_free(k, i);
    if (rule_zero_sign_matters(k->term[i].call, f->fixed, f->carries, i)) return i;
    *changed |= f->carries[i] && !f->of[class];
    f->of[class] |= f->carries[i];
  }
  return CHK_NONE;
}

iso_code chk_zeros(chk_state *k) {
  if (!k->here.zeros) return ISO_OK;
  const size_t n = k->n_terms + 1;
  const flow f = {calloc(n, 1), calloc(n, 1), calloc(n, 1)};
  iso_code c = f.of && f.carries && f.fixed ? ISO_OK : chk_nomem(k);
  uint32_t told = CHK_NONE;
  bool changed = !c;
  for (uint32_t i = 0; i < k->n_terms && !c; i++)
    if (k->here.zeros[i]) f.of[chk_root(k, i)] = true;
  while (changed && told == CHK_NONE) {
    changed = false;
    told = pass(k, &f, &changed);
  }
  if (told != CHK_NONE)
    c = chk_settle(k, CHK_REFUSED,
                   "zeros of different signs are joined, and %s %s tells them apart",
                   chk_side_of(k, told), chk_name_of(k, told));
  free(f.of);
  free(f.carries);
  free(f.fixed);
  return c;
}
