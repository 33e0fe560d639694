/* Tensors that are one number everywhere although inputs go into them: scores that a mask hides
 * wholly, their exponentials, the summands made of these. As fills they are constants, and an
 * operator on a constant makes a fill again or can be left out. So each such step is a rule of a
 * single operator, where without a fill a rule would contain all the terms below. */
#include "rules/operators.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <math.h>

/* The number that all elements are on all draws. */
static bool uniform(state *s, eg_node e, double *number) {
  for (size_t d = 0; d < s->n_draws; d++) {
    const rule_tensor *v = st_val(s, e, d);
    if (!v || v->numel < 2) return false;
    if (d == 0) *number = rule_tensor_get(v, 0);
    for (int64_t i = 0; i < v->numel; i++)
      if (rule_tensor_get(v, i) != *number) return false;
  }
  return true;
}

/* Whether the captured dtype has the number: float64 runs beyond it. Float8 may lack infinity. */
static bool has_number(rule_dtype d, double x) {
  return fabs(x) <= rule_dtype_largest(d) || (isinf(x) && rule_dtype_size(d) > 1);
}

/* NULL: no memory, or no such call. */
static const rule_term *fill_of(state *s, const rule_shape *shape, double number,
                                rule_dtype dtype) {
  const rule_term *dim[RULE_MAX_RANK + 1];
  for (uint32_t i = 0; i < shape->rank; i++)
    if (!(dim[i] = rule_int(&s->arena, shape->dim[i]))) return NULL;
  return st_fill_term(s, rule_list(&s->arena, dim, shape->rank), rule_float(&s->arena, number),
                      dtype);
}

static iso_code join(state *s, eg_node e, double number, rule_dtype dtype, iso_error *err) {
  const rule_term *t = fill_of(s, &s->rec[e.i].shape, number, dtype);
  eg_node fill;
  bool done;
  if (!t) return ISO_OK;
  iso_code c = st_add_term(s, t, NULL, &fill, err);
  if (!c) c = st_value(s, fill, err);
  if (!c && st_values_equal(s, e, fill)) c = st_prove(s, e, fill, &done, err);
  return c;
}

iso_code st_join_fill(state *s, eg_node e, iso_error *err) {
  const rec *r = &s->rec[e.i];
  const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
  double number = 0;
  if (r->konst || r->leaf || r->param || r->cancels || r->node[side] < 0) return ISO_OK;
  const synth_node *node = &s->graph[side]->node[r->node[side]];
  const rule_dtype dtype = node->dtype;
  /* A fill is one already. Of a tensor whose sizes alone are read it becomes one where there are
   * ranks, whose tensors have sizes of their own; elsewhere that would only be a step more. */
  if (rule_operator_of(node->call->u.s)->fills &&
      (eg_node_arity(s->g, e) == 0 || !s->ranks.collective[side]))
    return ISO_OK;
  if (!rule_dtype_is_float(dtype) || !uniform(s, e, &number) || !has_number(dtype, number))
    return ISO_OK;
  return join(s, e, number, dtype, err);
}

iso_code st_join_fill_made(state *s, eg_node e, iso_error *err) {
  const rec *r = &s->rec[e.i];
  const rule_dtype dtype = st_dtype(s, e);
  double number = 0;
  if (!r->tensor || !r->valued || !rule_dtype_is_float(dtype) || !uniform(s, e, &number) ||
      !has_number(dtype, number))
    return ISO_OK;
  return join(s, e, number, dtype, err);
}
