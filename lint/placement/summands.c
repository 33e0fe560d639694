/* Parts of a sum that are read otherwise than as a sum.
 *
 * How a sum is cut among ranks is nobody's business: with other parts of the same sum the outputs
 * have to be what they are. So parts are changed by what adds up to nothing, and what follows is
 * run again. This needs no reading of what follows, as where ranks meet by messages.
 *
 * It says something of parts that can be any: no number in them is 0 by construction, and what they
 * were made of is read for nothing else. */
#include <math.h>
#include <stdlib.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

static const double room = 1e-6; /* relative: far beyond rounding */

static bool has_zero(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (rule_tensor_get(t, i) == 0) return true;
  return false;
}

/* Whether `t`, or what it was moved to, is read by `by` alone. */
static bool read_by(const plc *x, const plc_tuple *t, const plc_tuple *by) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    for (uint32_t k = 0; k < u->n_args; k++) {
      if (u->arg[k] != t->id || u == by) continue;
      const bool moved = !u->mixed && !u->collective && plc_complete(x, u) &&
                         rule_operator_of(plc_node(x, u->node[0])->op)->rearranges;
      if (!moved || !read_by(x, u, by)) return false;
    }
  }
  return true;
}

/* The leaf or result that was moved to be `t`. */
static const plc_tuple *moved_from(const plc *x, const plc_tuple *t) {
  while (!t->leaf && !t->mixed && !t->collective && t->n_args == 1 && plc_complete(x, t) &&
         rule_operator_of(plc_node(x, t->node[0])->op)->rearranges)
    t = x->tuple[t->arg[0]];
  return t;
}

/* The axis along which it is a part of a sum on each rank, and may be any; PLC_NONE: it is not. */
static uint32_t summed_axis(const plc *x, const plc_tuple *t) {
  uint32_t axis = PLC_NONE;
  if (t->state != PLC_PLACED || t->n_out != 1 || t->leaf || t->collective || t->mixed ||
      !plc_complete(x, t) || !rule_operator_of(plc_node(x, t->node[0])->op)->product)
    return PLC_NONE;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (t->place[0].axis[a].kind == PLC_P && t->place[0].axis[a].reduce == PLC_SUM) axis = a;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (axis != PLC_NONE && (!x->value[1][t->node[r]] || has_zero(x->value[1][t->node[r]])))
      return PLC_NONE;
  for (uint32_t i = 0; i < t->n_args && axis != PLC_NONE; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (!plc_is_replica(x, &o->place[0]) && !read_by(x, moved_from(x, o), t)) return PLC_NONE;
  }
  return axis;
}

/* The largest number of any rank's part: one for all, or the changes would not add up to nothing.
 */
static double size_of(const plc *x, const plc_tuple *t) {
  double size = 0;
  for (uint32_t r = 0; r < x->mesh.n; r++) size = fmax(size, plc_largest(x->value[1][t->node[r]]));
  return size;
}

/* A part with what adds up to nothing along the axis. Owns. */
static rule_tensor *changed(plc *x, const plc_tuple *t, uint32_t rank, uint32_t axis, double size) {
  const rule_tensor *v = x->value[1][t->node[rank]];
  const uint32_t n = x->mesh.size[axis], at = plc_along(&x->mesh, rank, axis);
  rule_tensor *out = NULL;
  x->code = rule_tensor_new(v->dtype, &v->shape, &out, x->err);
  for (int64_t i = 0; out && i < v->numel; i++) {
    iso_rng rng = iso_rng_new(x->seed + 5 * t->id, (uint64_t)i);
    double own = 0, sum = 0;
    for (uint32_t k = 1; k < n; k++) {
      const double by = size * iso_rng_normal(&rng);
      sum += by;
      if (k == at) own = by;
    }
    rule_tensor_set(out, i, rule_tensor_get(v, i) + (at ? own : -sum));
  }
  return out;
}

static bool depends(const rule_term *t, const bool *on) {
  if (t->kind == RULE_VAR) return on[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (depends(t->child[i], on)) return true;
  return false;
}

static bool far(const rule_tensor *a, const rule_tensor *b) {
  const double most = fmax(plc_largest(a), plc_largest(b));
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i) - rule_tensor_get(b, i)) > room * most) return true;
  return false;
}

/* The output that moves with the parts; NULL: none does. `again`: the values with others. */
static const plc_output *moves(const plc *x, const bool *on, rule_tensor *const *again) {
  for (size_t i = 0; i < x->n_outputs; i++) {
    const plc_tuple *t = x->tuple[x->output[i].tuple];
    for (uint32_t r = 0; r < x->mesh.n && x->output[i].declared; r++) {
      const uint32_t k = t->node[r];
      if (k == PLC_NONE || !on[k] || !again[k] || !x->value[1][k]) continue;
      if (rule_shape_eq(&again[k]->shape, &x->value[1][k]->shape) && far(again[k], x->value[1][k]))
        return &x->output[i];
    }
  }
  return NULL;
}

/* The results of a node of several. Owns. */
static rule_tensor **results_of(plc *x, uint32_t i) {
  const size_t n = plc_node(x, i)->n_outputs;
  rule_tensor **out = malloc((n + 1) * sizeof *out);
  for (size_t k = 0; plc_need(x, out) && k < n; k++) out[k] = rule_tensor_ref(x->many[1][i][k]);
  return out;
}

static const plc_output *moved_by(plc *x, const plc_tuple *t, uint32_t axis) {
  const size_t n = x->g->n_nodes;
  const double size = size_of(x, t);
  rule_tensor **value = calloc(n + 1, sizeof *value), ***many = calloc(n + 1, sizeof *many);
  bool *on = calloc(n + 1, sizeof *on), runs = plc_need(x, value) && plc_need(x, many);
  runs = plc_need(x, on) && runs;
  for (uint32_t r = 0; runs && r < x->mesh.n; r++) {
    on[t->node[r]] = true;
    if (!value[t->node[r]]) value[t->node[r]] = changed(x, t, r, axis, size);
  }
  for (uint32_t i = 0; runs && i < n && !plc_failed(x); i++) {
    const cap_node *node = plc_node(x, i);
    if (!on[i]) on[i] = node->call && depends(node->call, on);
    if (on[i] && !value[i]) runs = plc_run_node(x, i, value, many);
    if (!on[i]) value[i] = rule_tensor_ref(x->value[1][i]);
    if (!on[i] && x->many[1][i]) many[i] = results_of(x, i);
  }
  const plc_output *o = runs && !plc_failed(x) ? moves(x, on, value) : NULL;
  plc_free_values(x, value, many);
  free(on);
  return o;
}

void plc_blame_summands(plc *x) {
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++) {
    const plc_tuple *t = x->tuple[i];
    const uint32_t axis = summed_axis(x, t);
    const plc_output *o = axis == PLC_NONE ? NULL : moved_by(x, t, axis);
    if (!o) continue;
    const char *mend = iso_arena_printf(x->keep,
                                        "all_reduce or reduce_scatter %s before it is "
                                        "used otherwise",
                                        plc_say(x, t));
    if (!plc_need(x, mend)) return;
    plc_found(
        x, LINT_BAD_PLACEMENT, t, mend,
        "output %s depends on how %s, which is %s, is cut among the ranks, and not on its sum "
        "alone",
        o->name, plc_say(x, t), plc_print(x, &t->place[0], x->keep));
    return;
  }
}
