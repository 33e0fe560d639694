/* Terms that every rank adds to its part of a sum. */
#include "lint/placement/blame/scale.h"

static rule_tensor *zeros_like(plc *x, const rule_tensor *t) {
  rule_tensor *z = NULL;
  if (!plc_failed(x)) x->code = rule_tensor_new(t->dtype, &t->shape, &z, x->err);
  return z;
}

/* The result of a rank's call with other operands for all that is no replica along an axis: `zero`,
 * 0, else drawn parts of the whole. Owns. */
static rule_tensor *with_others(plc *x, const plc_tuple *t, uint32_t rank, uint32_t axis,
                                bool zero) {
  const uint32_t i = t->node[rank];
  rule_tensor *out = NULL, *was[PLC_ARGS] = {0}, *part[PLC_RANKS], *each[PLC_RANKS];
  rule_shape shape[PLC_RANKS];
  iso_error err = {0};
  size_t n = 0;
  for (uint32_t k = 0; k < t->n_args && !plc_failed(x); k++) {
    const plc_tuple *o = x->tuple[t->arg[k]];
    const uint32_t node = o->node[rank];
    if (o->n_out != 1 || node == PLC_NONE) continue;
    if (o->place[0].axis[axis].kind == PLC_R && o->place[0].scale == 1) continue;
    rule_tensor *other = NULL;
    plc_locals(x, o, 1, 0, each);
    if (!plc_shapes(x, each, shape)) continue;
    if (zero) other = zeros_like(x, each[rank]);
    else if (plc_cut(x, o->whole[1], &o->place[0], shape, x->seed + 99 + k, part)) {
      other = rule_tensor_ref(part[rank]);
      for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(part[r]);
    }
    if (!other) continue;
    was[k] = x->value[1][node];
    x->value[1][node] = other;
  }
  if (!plc_failed(x) &&
      x->oracle->call(x->oracle->ctx, plc_node(x, i)->call, x->value[1], true, &out, 1, &n, &err))
    out = NULL;
  for (uint32_t k = t->n_args; k-- > 0;) {
    const uint32_t node = x->tuple[t->arg[k]]->node[rank];
    if (!was[k]) continue;
    rule_tensor_unref(x->value[1][node]);
    x->value[1][node] = was[k];
  }
  return out;
}

/* Whether tensors are parts of a sum along one axis, and replicas or shards along the others. */
static bool are_parts(plc *x, rule_tensor *const *own, const plc_tuple *t, uint32_t axis) {
  const uint32_t n = x->mesh.n_axes, ways = t->whole[1]->shape.rank + 1;
  uint32_t all = 1;
  for (uint32_t a = 1; a < n; a++) all *= ways;
  for (uint32_t i = 0; i < all && !plc_failed(x); i++) {
    plc_place p = plc_replica();
    for (uint32_t a = 0, e = i; a < n; a++) {
      if (a == axis) continue;
      if (e % ways) p.axis[a] = (plc_one){.kind = PLC_S, .dim = e % ways - 1};
      e /= ways;
    }
    p.axis[axis].kind = PLC_P;
    if (plc_holds(x, own, t->whole[1], &p, t->floor)) return true;
  }
  return false;
}

static bool summed_but_once(plc *x, const plc_tuple *t, uint32_t axis) {
  rule_tensor *own[PLC_RANKS] = {0};
  bool fits = true;
  for (uint32_t r = 0; r < x->mesh.n && fits; r++) {
    rule_tensor *rest = with_others(x, t, r, axis, true);
    rule_tensor *each = with_others(x, t, r, axis, false);
    own[r] = rest && each ? zeros_like(x, each) : NULL;
    fits = own[r] && rule_shape_eq(&rest->shape, &each->shape);
    const bool first = plc_along(&x->mesh, r, axis) == 0;
    for (int64_t i = 0; fits && i < own[r]->numel; i++)
      rule_tensor_set(own[r], i, rule_tensor_get(each, i) - (first ? 0 : rule_tensor_get(rest, i)));
    rule_tensor_unref(rest);
    rule_tensor_unref(each);
  }
  fits = fits && are_parts(x, own, t, axis);
  for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(own[r]);
  return fits;
}

uint32_t plc_added_on_each(plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) return 0;
  for (uint32_t i = 0; i < t->n_args; i++)
    if (x->tuple[t->arg[i]]->state != PLC_PLACED) return 0;
  for (uint32_t a = 0; a < x->mesh.n_axes && t->n_out == 1 && t->whole[1]; a++)
    if (summed_but_once(x, t, a)) return x->mesh.size[a];
  return 0;
}
