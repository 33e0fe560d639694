/* Gradients against the loss that the ranks give: how its value moves with a leaf.
 *
 * A rank's gradient does not tell whether the ranks' results are to be added up or
 * averaged: a literal like 1/16 may stand for the elements of one rank or of all. The loss does. A
 * leaf is moved in a drawn direction, on all ranks alike, and the change of the loss is held
 * against the gradient along that direction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

static const double step = 1e-5; /* relative to the leaf's numbers */

const plc_output *plc_loss(const plc *x) {
  const plc_output *found = NULL;
  for (size_t i = 0; i < x->n_outputs; i++) {
    const plc_output *o = &x->output[i];
    const uint32_t i0 = x->tuple[o->tuple]->node[0];
    if (i0 == PLC_NONE || strcmp(o->name, "loss") != 0) continue;
    const cap_node *n = plc_node(x, i0);
    if (n->n_outputs == 1 && rule_dtype_is_float(n->output[0].dtype)) found = o;
  }
  return found;
}

bool plc_run_node(plc *x, uint32_t i, rule_tensor **value, rule_tensor ***many) {
  rule_tensor **was = x->value[1], ***were = x->many[1];
  x->value[1] = value;
  x->many[1] = many;
  iso_error err = {0};
  const bool runs = plc_execute(x, i, 1, &err);
  x->value[1] = was;
  x->many[1] = were;
  return runs;
}

void plc_free_values(const plc *x, rule_tensor **value, rule_tensor ***many) {
  for (size_t i = 0; value && many && i < x->g->n_nodes; i++) {
    rule_tensor_unref(value[i]);
    for (size_t k = 0; many[i] && k < x->g->node[i].n_outputs; k++) rule_tensor_unref(many[i][k]);
    free(many[i]);
  }
  free(value);
  free(many);
}

static void mark(const rule_term *t, uint8_t *needed) {
  if (t->kind == RULE_VAR) needed[t->u.i] = 1;
  for (uint32_t i = 0; i < t->n; i++) mark(t->child[i], needed);
}

/* The loss where the leaf is `by` times the direction further. NaN: it cannot be run. */
static double loss_at(plc *x, uint32_t loss, const plc_tuple *leaf, rule_tensor *const *direction,
                      double by) {
  const size_t n = x->g->n_nodes;
  rule_tensor **value = calloc(n + 1, sizeof *value), ***many = calloc(n + 1, sizeof *many);
  uint8_t *needed = calloc(n + 1, 1);
  double out = NAN;
  bool runs = plc_need(x, value) && plc_need(x, many) && plc_need(x, needed);
  if (runs) needed[loss] = 1;
  for (uint32_t i = loss + 1; runs && i-- > 0;)
    if (needed[i] && x->g->node[i].call) mark(x->g->node[i].call, needed);
  for (uint32_t i = 0; i <= loss && runs; i++) {
    if (!needed[i]) continue;
    if (x->g->node[i].kind != CAP_OP) value[i] = rule_tensor_ref(x->value[1][i]);
    for (uint32_t r = 0; r < x->mesh.n; r++) {
      if (leaf->node[r] != i || (r && leaf->node[r - 1] == i)) continue;
      rule_tensor *moved = NULL;
      x->code = rule_tensor_new(value[i]->dtype, &value[i]->shape, &moved, x->err);
      for (int64_t k = 0; moved && k < moved->numel; k++)
        rule_tensor_set(moved, k,
                        rule_tensor_get(value[i], k) + by * rule_tensor_get(direction[r], k));
      rule_tensor_unref(value[i]);
      value[i] = moved;
    }
    runs = !plc_failed(x) && (x->g->node[i].kind != CAP_OP || plc_run_node(x, i, value, many));
  }
  if (runs && value[loss] && value[loss]->numel == 1) out = rule_tensor_get(value[loss], 0);
  plc_free_values(x, value, many);
  free(needed);
  return out;
}

static double along(const rule_tensor *g, const rule_tensor *v) {
  double sum = 0;
  for (int64_t i = 0; i < g->numel; i++) sum += rule_tensor_get(g, i) * rule_tensor_get(v, i);
  return sum;
}

/* A direction of the leaf's shape, each rank's part of it, and the gradient's whole, put together
 * as `p` says, along it. */
static bool draw_direction(plc *x, const plc_tuple *leaf, const plc_tuple *grad, const plc_place *p,
                           rule_tensor **direction, double *slope, double *size) {
  rule_tensor *each[PLC_RANKS], *own[PLC_RANKS], *v = NULL;
  rule_shape shape[PLC_RANKS];
  plc_locals(x, grad, 1, 0, each);
  plc_locals(x, leaf, 1, 0, own);
  plc_place one = *p;
  one.scale = 1;
  rule_tensor *g = plc_combine(x, each, &one, grad->floor);
  bool fits = g && rule_shape_eq(&g->shape, &leaf->whole[1]->shape);
  if (fits) x->code = rule_tensor_new(g->dtype, &g->shape, &v, x->err);
  iso_rng rng = iso_rng_new(x->seed, 4711 + leaf->id);
  *size = fits ? fmax(plc_largest(leaf->whole[1]), 1e-3) : 1;
  for (int64_t i = 0; v && i < v->numel; i++) rule_tensor_set(v, i, *size * iso_rng_normal(&rng));
  fits = fits && v && plc_shapes(x, own, shape) &&
         plc_cut(x, v, &leaf->place[0], shape, x->seed, direction);
  if (fits) *slope = along(g, v);
  rule_tensor_unref(g);
  rule_tensor_unref(v);
  return fits;
}

double plc_gradient_scale(plc *x, const plc_output *loss, const plc_tuple *leaf,
                          const plc_tuple *grad) {
  rule_tensor *direction[PLC_RANKS];
  const plc_place *p = &grad->place[0];
  const uint32_t node = x->tuple[loss->tuple]->node[0];
  double slope = 0, size = 1;
  if (leaf->state != PLC_PLACED || plc_has(x, &leaf->place[0], PLC_P) ||
      !draw_direction(x, leaf, grad, p, direction, &slope, &size))
    return 0;
  const double up = loss_at(x, node, leaf, direction, step);
  const double down = loss_at(x, node, leaf, direction, -step);
  for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(direction[r]);
  const double change = (up - down) / (2 * step);
  /* A direction that hardly moves the loss says nothing. */
  if (!isfinite(change) || fabs(change) < 1e-6 * fabs(up)) return 0;
  return slope / change;
}

/* Whether it is one number that is computed, and no literal: the same on all ranks. */
static bool is_factor(const plc *x, const plc_tuple *t) {
  return t->state == PLC_PLACED && t->n_out == 1 && !t->konst && t->whole[0] &&
         t->whole[0]->numel == 1 && plc_is_replica(x, &t->place[0]);
}

const plc_tuple *plc_unclipped(const plc *x, const plc_tuple *t) {
  const plc_tuple *found = NULL;
  while (t->state == PLC_PLACED && t->n_args == 2 && !t->mixed && plc_complete(x, t)) {
    const plc_tuple *a = x->tuple[t->arg[0]], *b = x->tuple[t->arg[1]];
    const rule_arithmetic how = rule_operator_of(plc_node(x, t->node[0])->op)->arithmetic;
    if (how != RULE_ARITHMETIC_MUL && how != RULE_ARITHMETIC_DIV) break;
    if (is_factor(x, b)) t = a;
    else if (how == RULE_ARITHMETIC_MUL && is_factor(x, a)) t = b;
    else break;
    found = t;
  }
  return found && found->state == PLC_PLACED && found->n_out == 1 ? found : NULL;
}
