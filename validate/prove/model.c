/* Small sizes that the facts of a case hold for: a case that none meets says nothing of the rule.
 */
#include <math.h>
#include <stdlib.h>

#include "validate/prove/prove.h"

static double one(void *ctx, uint32_t var, const int64_t *idx) {
  (void)ctx, (void)var, (void)idx;
  return 1;
}

/* Whether every function's argument lies in its domain where all elements are 1. */
static bool domain_holds(sc *c, const double *v) {
  bool holds = true;
  if (!c->hooks.value_of) c->hooks.value_of = one;
  for (size_t i = 0; i < c->here.n_domain && holds; i++)
    holds = sc_number(c, c->here.domain[i], v) > 0;
  if (c->hooks.value_of == one) c->hooks.value_of = NULL;
  return holds;
}

bool sc_model(sc *c, double *v) {
  static const int least[] = {1, 2, 3, 4, 6, 8, 5, 7, 9, 12, 16};
  uint64_t state = 12345;
  bool found = false;
  for (int round = 0; round < 4000 && !found; round++) {
    for (size_t i = 0; i < c->store.n_syms; i++) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const int pick = round < 11 ? least[round] : least[(state >> 33) % 11];
      const bool whole = c->store.sym[i].flags & S_INT;
      v[i] = pick;
      if (c->store.sym[i].role == 'a' && round >= 11 && !(c->store.sym[i].flags & S_POS))
        v[i] = (double)((int64_t)((state >> 40) % 13) - 4);
      if (!whole && round >= 11 && (state >> 20) % 2) v[i] = v[i] / 4;
    }
    found = true;
    for (size_t i = 0; i < c->here.n_facts && found; i++)
      found = sc_number(c, c->here.fact[i], v) >= 0;
    for (size_t i = 0; i < c->here.n_path && found; i++) {
      const sx g = c->here.path[i].cond;
      if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) continue;
      const double p = sc_number(c, sc_word(c, g, 0), v);
      found = (sc_op(c, g) == X_LT ? p < 0 : fabs(p) < 1e-9) == c->here.path[i].holds;
    }
  }
  return found;
}

bool sc_has_model(sc *c, bool *defined) {
  double *v = calloc(c->store.n_syms + 1, sizeof *v);
  const bool found = v && sc_model(c, v);
  if (defined) *defined = found && domain_holds(c, v);
  free(v);
  return found;
}
