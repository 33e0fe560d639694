/* Both graphs of small_graphs.h on the witness of a comparison. */
#ifndef TESTS_SYNTH_REFUTE_ON_WITNESS_H
#define TESTS_SYNTH_REFUTE_ON_WITNESS_H

#include "tests/synth/small_graphs.h"

static inline rule_tensor *witness_of(uint32_t i) {
  rule_tensor *t = w.res->witness_leaf[0][i];
  ck_assert_ptr_nonnull(t);
  return t;
}

/* A graph's first output, with element `at` of the leaf `x` another number, unless `at` is -1. */
static inline rule_tensor *run_on_witness(int side, uint32_t x, int64_t at, double number) {
  const graph *g = side ? &w.r : &w.l;
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t i = 0; i < g->g.n_nodes; i++) {
    if (g->node[i].kind == SYNTH_OP) {
      bind[i] = run_op(g->node[i].call, bind);
      continue;
    }
    const rule_tensor *t = w.res->witness_leaf[side][i];
    bind[i] = reshaped(t, t->shape);
    if (i == x && at >= 0) rule_tensor_set(bind[i], at, number);
  }
  rule_tensor *y = rule_tensor_ref(bind[g->out[0].node]);
  for (uint32_t i = 0; i < g->g.n_nodes; i++) rule_tensor_unref(bind[i]);
  return y;
}

/* The largest difference of the outputs there. */
static inline double apart(uint32_t x, int64_t at, double number) {
  rule_tensor *l = run_on_witness(0, x, at, number), *r = run_on_witness(1, x, at, number);
  double far = 0;
  for (int64_t i = 0; i < l->numel; i++)
    far = fmax(far, fabs(rule_tensor_get(l, i) - rule_tensor_get(r, i)));
  rule_tensor_unref(l);
  rule_tensor_unref(r);
  return far;
}

#endif
