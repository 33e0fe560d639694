/* What ranks do by messages in place of a collective.
 *
 * A ring passes parts round, and one rank alone passes nothing: it has at once what the ranks have
 * when all parts have met. So a tensor behind messages may be an earlier one of the whole program,
 * as a collective's result is its operand: where the ranks hold that one, on every draw. */
#include <stdlib.h>

#include "lint/placement/lift/variants.h"

/* Whether some rank has a tensor of another rank. */
static bool is_sent(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !(x->ranks_of[t->node[r]] >> r & 1)) return true;
  return false;
}

bool plc_reads_sent(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args; i++)
    if (x->tuple[t->arg[i]]->sent) return true;
  return is_sent(x, t);
}

/* Whether the ranks hold `t`, beside the whole of `u`, as replicas or shards. */
static bool holds(plc *x, plc_tuple *t, const plc_tuple *u) {
  plc_place p;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(u->whole[d]);
  if (plc_match_with(x, t, 0, UINT32_MAX, false, &p) && p.scale == 1 && !plc_has(x, &p, PLC_P)) {
    t->place[0] = p;
    return true;
  }
  plc_drop_wholes(t);
  return false;
}

static void mark(const plc *x, const plc_tuple *t, bool *before) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    if (before[t->arg[i]]) continue;
    before[t->arg[i]] = true;
    mark(x, x->tuple[t->arg[i]], before);
  }
}

static bool is_known(const plc_tuple *t) {
  return (t->state == PLC_PLACED || t->state == PLC_VARYING) && t->n_out == 1 && !t->konst &&
         !t->several && t->whole && t->whole[0] && rule_tensor_varies(t->whole[0]);
}

bool plc_lift_by_hand(plc *x, plc_tuple *t) {
  if (!t->sent || t->n_out != 1 || t->leaf || !plc_complete(x, t)) return false;
  if (t->state == PLC_PLACED && t->place[0].scale == 1) return false;
  bool *before = calloc(x->n_tuples + 1, sizeof *before);
  const plc_place was = t->place[0];
  rule_tensor *kept[PLC_DRAWS];
  bool found = false;
  if (!plc_need(x, before)) return false;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    kept[d] = t->whole[d];
    t->whole[d] = NULL;
  }
  mark(x, t, before);
  for (size_t i = 0; i < x->n_tuples && !found && !plc_failed(x); i++) {
    if (!before[i] || !is_known(x->tuple[i])) continue;
    found = holds(x, t, x->tuple[i]);
    t->stands_for = found ? (uint32_t)i : PLC_NONE;
  }
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    if (found) rule_tensor_unref(kept[d]);
    else t->whole[d] = kept[d];
  }
  if (found) {
    t->state = PLC_PLACED;
    t->why = NULL;
    t->unsure = t->chosen = t->whole_refused = false;
  } else t->place[0] = was;
  free(before);
  return found;
}
