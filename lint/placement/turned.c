/* Shards in another order than the whole has them.
 *
 * Ranks that take the part of another rank, or send theirs on, have all parts, each in the place of
 * another one; joined they are the whole with its parts in another order. A program may put them
 * right behind that, so it is a fault only where nothing does, and an output is wrong. */
#include <stdlib.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

/* The part of the whole, along a dimension, that each place along an axis has. Returns: whether
 * that is a part for each, all of them, and in another order. `each`: of ranks that differ in their
 * place along that axis alone. */
static bool in_other_order(rule_tensor *const *each, rule_tensor *const *part, uint32_t n) {
  uint64_t taken = 0;
  bool turned = false;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t of = PLC_NONE;
    for (uint32_t j = 0; j < n && of == PLC_NONE; j++)
      if (!(taken >> j & 1) && plc_near(each[k], part[j], 1, 0, 0)) of = j;
    if (of == PLC_NONE) return false;
    taken |= UINT64_C(1) << of;
    turned |= of != k;
  }
  return turned;
}

/* Both as parts along one axis, where all ranks of the other axes have the same. `joined`: each
 * rank has all parts, one behind the other. */
static bool turned_along(plc *x, const plc_tuple *t, uint32_t draw, uint32_t axis, uint32_t dim,
                         bool joined) {
  const uint32_t n = x->mesh.size[axis], step = plc_stride(&x->mesh, axis);
  rule_tensor *each[PLC_RANKS], *part[PLC_RANKS], *own[PLC_RANKS];
  rule_shape shape[PLC_RANKS];
  plc_place p = plc_replica();
  p.axis[axis] = (plc_one){.kind = PLC_S, .dim = dim};
  plc_locals(x, t, draw, 0, each);
  if (!plc_shapes(x, each, shape)) return false;
  for (uint32_t r = 0; joined && r < x->mesh.n; r++) {
    if (dim >= shape[r].rank || shape[r].dim[dim] % n) return false;
    if (!plc_near(each[r], each[0], 1, 0, t->floor)) return false;
    shape[r].dim[dim] /= n;
  }
  if (!plc_cut(x, t->whole[draw], &p, shape, 0, part)) return false;
  const bool cut = !joined || plc_cut(x, each[0], &p, shape, 0, own);
  bool is = cut;
  for (uint32_t r = 0; r < x->mesh.n && is; r++) {
    if (plc_along(&x->mesh, r, axis)) continue;
    rule_tensor *mine[PLC_RANKS], *all[PLC_RANKS];
    for (uint32_t k = 0; k < n; k++) {
      mine[k] = (joined ? own : each)[r + k * step];
      all[k] = part[r + k * step];
    }
    is = in_other_order(mine, all, n);
  }
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    rule_tensor_unref(part[r]);
    if (joined && cut) rule_tensor_unref(own[r]);
  }
  return is;
}

static bool is_turned(plc *x, const plc_tuple *t) {
  if (t->state != PLC_VARYING || t->n_out != 1 || t->several || !plc_complete(x, t)) return false;
  for (uint32_t d = 0; d < PLC_DRAWS; d++)
    if (!t->whole[d]) return false;
  if (!rule_tensor_varies(t->whole[0])) return false;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    for (uint32_t i = 0; i < 2 * t->whole[0]->shape.rank; i++) {
      bool is = true;
      for (uint32_t d = 0; d < PLC_DRAWS && is && !plc_failed(x); d++)
        is = turned_along(x, t, d, a, i / 2, i % 2);
      if (is) return true;
    }
  return false;
}

/* Whether it may put parts in order again. */
static bool may_order(const plc *x, const plc_tuple *t) {
  uint32_t r = 0;
  if (t->leaf) return false;
  if (t->mixed) return true;
  while (t->node[r] == PLC_NONE) r++;
  const rule_operator *o = rule_operator_of(plc_node(x, t->node[r])->op);
  if (t->collective) return !o->collective;
  if (plc_takes_part(x, t)) return false; /* of a collective */
  return o->part || o->joins || o->choice == RULE_CHOICE_INDEX || o->choice == RULE_CHOICE_ORDER ||
         (o->rearranges && o->shares == RULE_SHARES_NOTHING) ||
         rule_is_getitem(plc_node(x, t->node[r])->op);
}

/* Whether a wrong output is made of `t`, and nothing on the way may put parts in order. */
static bool ends_wrong(plc *x, const plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen), wrong = false, ordered = false;
  for (size_t i = 0; plc_need(x, seen) && i < x->n_outputs; i++) {
    const plc_output *o = &x->output[i];
    const plc_tuple *u = x->tuple[o->tuple];
    for (size_t k = 0; k < x->n_tuples; k++) seen[k] = false;
    if (plc_goes_into(x, t, u, seen) && u->state == PLC_VARYING && o->declared)
      wrong |= !plc_output_holds(x, o);
  }
  for (size_t i = 0; seen && i < x->n_tuples && wrong; i++) {
    const plc_tuple *u = x->tuple[i];
    for (size_t k = 0; k < x->n_tuples; k++) seen[k] = false;
    if (u != t && may_order(x, u)) ordered |= plc_goes_into(x, t, u, seen);
  }
  free(seen);
  return wrong && !ordered;
}

/* Whether ranks take parts of its operand otherwise, too: halves of a model may meet so. */
static bool is_taken_again(const plc *x, const plc_tuple *t) {
  const plc_tuple *split = t->n_args ? x->tuple[t->arg[0]] : t;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    for (uint32_t k = 0; k < u->n_args; k++)
      if (u != t && u->arg[k] == split->id && (u->differs || t->apart)) return true;
  }
  return false;
}

/* Whether a part that ranks took by their own numbers, another rank's, meets the rank's own part of
 * another tensor element by element. */
static bool meets_others(plc *x, const plc_tuple *t) {
  bool other = false, own = false;
  if (t->state != PLC_VARYING || t->mixed || t->leaf || !plc_complete(x, t) ||
      !rule_operator_of(plc_node(x, t->node[0])->op)->elementwise)
    return false;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    own |= o->state == PLC_PLACED && o->n_out == 1 && plc_has(x, &o->place[0], PLC_S) &&
           o->whole[0] && rule_shape_eq(&o->whole[0]->shape, &t->whole[0]->shape);
    other |= o->differs && is_turned(x, o) && !is_taken_again(x, o);
  }
  return own && other;
}

static bool is_output(const plc *x, const plc_tuple *t) {
  for (size_t i = 0; i < x->n_outputs; i++)
    if (x->output[i].tuple == t->id && x->output[i].declared) return true;
  return false;
}

void plc_blame_turned(plc *x) {
  const plc_tuple *first = NULL;
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++) {
    const plc_tuple *t = x->tuple[i];
    if (first && first->order < t->order) continue;
    const bool joins = (t->collective || is_output(x, t)) && is_turned(x, t);
    if ((joins || meets_others(x, t)) && ends_wrong(x, t)) first = t;
  }
  if (first && first->state == PLC_VARYING && !is_turned(x, first))
    plc_found(x, LINT_BAD_PLACEMENT, first, "have each rank take the part that it holds",
              "%s has another rank's part of one tensor beside the rank's own of another one",
              plc_say(x, first));
  else if (first)
    plc_found(x, LINT_BAD_PLACEMENT, first, "have each rank give the part that it holds",
              "%s has the whole's parts in another order: ranks take, or are sent, those of other "
              "ranks",
              plc_say(x, first));
}
