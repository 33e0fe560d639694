/* Terms in the joint e-graph of small_state.h, with their values: leaves, and operators on what was
 * made before them. */
#ifndef TESTS_SYNTH_SMALL_TERMS_H
#define TESTS_SYNTH_SMALL_TERMS_H

#include "synth/saturate/saturate.h"
#include "tests/synth/small_state.h"

enum { MOST = 40 };

static eg_node node[MOST]; /* in the order in which they were made */
static size_t n_made;

/* No rule is known, none was tried. */
static inline void begin_terms(void) {
  begin_state();
  ck_assert(rule_set_new(&st.rules.set, &err) == ISO_OK);
  ck_assert(rule_set_new(&st.rules.tried, &err) == ISO_OK);
  n_made = 0;
}

/* An atom that has this value on every draw. */
static inline eg_node add_leaf(rule_tensor *value) {
  char name[8];
  eg_node e;
  snprintf(name, sizeof name, "#x%d", (int)n_made);
  ck_assert_uint_lt(n_made, MOST);
  ck_assert(st_add_atom(&st, name, &value->shape, &e, &err) == ISO_OK);
  rec *r = &st.rec[e.i];
  r->val = calloc(st.n_draws, sizeof *r->val);
  ck_assert(r->val != NULL);
  for (size_t d = 0; d < st.n_draws; d++) r->val[d] = rule_tensor_ref(value);
  r->n_out = 1;
  r->valued = true;
  return node[n_made++] = e;
}

/* The term over node[], valued. */
static inline eg_node add_made(const rule_term *t) {
  eg_node e;
  bool ok = true;
  ck_assert_uint_lt(n_made, MOST);
  ck_assert(st_add_valued(&st, t, node, &e, &ok, &err) == ISO_OK && ok);
  return node[n_made++] = e;
}

static inline eg_node add_op(const char *op, size_t a, size_t b, bool two) {
  const rule_term *arg[5] = {v((uint32_t)a), two ? v((uint32_t)b) : NULL};
  return add_made(call_of(op, arg));
}

#endif
