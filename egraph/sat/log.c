/* The log behind explanations of eg_sat. */
#include <stdlib.h>

#include "egraph/base/vec.h"
#include "egraph/sat/log_int.h"

bool egi_log_reserve(eg_sat *s, size_t n, uint32_t arity) {
  egi_log *l = s->log;
  return !l || (iso_grow(l->term, l->cap_term, l->n_term + n * (1 + (size_t)arity)) &&
                iso_grow(l->term_at, l->cap_at, l->n_at + n));
}

void egi_log_class(eg_sat *s, uint32_t row) {
  egi_log *l = s->log;
  if (!l) return;
  const uint32_t op = egi_row_op(s, row);
  l->term_at[l->n_at++] = l->n_term;
  l->term[l->n_term++] = op;
  for (uint32_t k = 0; k < s->op[op].arity; k++) l->term[l->n_term++] = egi_row_child(s, row, k);
}

bool egi_log_merge(eg_sat *s, uint32_t a, uint32_t b, eg_why why) {
  egi_log *l = s->log;
  if (!l) return true;
  if (!iso_grow(l->event, l->cap_event, l->n_event + 5)) return false;
  const uint32_t e[5] = {EGI_LOG_MERGE, why.kind, why.data, a, b};
  for (int i = 0; i < 5; i++) l->event[l->n_event++] = e[i];
  return true;
}

bool egi_log_rule(eg_sat *s, uint32_t rule, const uint32_t *var, size_t n_vars) {
  egi_log *l = s->log;
  if (!l) return true;
  if (!iso_grow(l->event, l->cap_event, l->n_event + 1 + n_vars)) return false;
  l->event[l->n_event++] = EGI_LOG_RULE + rule;
  for (size_t i = 0; i < n_vars; i++) l->event[l->n_event++] = var[i];
  return true;
}

void egi_log_free(egi_log *l) {
  if (!l) return;
  free(l->term);
  free(l->term_at);
  free(l->event);
  free(l);
}
