/* Outputs beside what they have to be, when faults on the way to them are known. */
#include <math.h>
#include <stdlib.h>

#include "lint/placement/placement_int.h"

/* A placement whose operands' are shown, and which is not. */
static const plc_tuple *unshown(const plc *x, const plc_tuple *t, bool *seen) {
  if (seen[t->id]) return NULL;
  seen[t->id] = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *u = unshown(x, x->tuple[t->arg[i]], seen);
    if (u) return u;
  }
  return t->state == PLC_PLACED && t->evidence < RULE_TESTED ? t : NULL;
}

void plc_judge_evidence(plc *x) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  if (!plc_need(x, seen)) return;
  for (size_t i = 0; i < x->n_outputs && !x->undecided; i++) {
    const plc_tuple *t = x->tuple[x->output[i].tuple], *u = NULL;
    if (t->state == PLC_PLACED && t->evidence < RULE_TESTED) u = unshown(x, t, seen);
    if (u)
      x->undecided = iso_arena_printf(x->keep, "%s is %s on every draw, and that is not shown: %s",
                                      plc_say(x, u), plc_print(x, &u->place[0], x->keep),
                                      u->why ? u->why : "?");
  }
  free(seen);
}

/* A gradient that is placed is judged by the loss, where that is known. Returns: whether it was. */
static bool judge_gradient(plc *x, const plc_output *o) {
  const plc_output *loss = plc_loss(x);
  const plc_tuple *t = x->tuple[o->tuple];
  if (!o->gradient || o->leaf == PLC_NONE || !loss || !plc_output_holds(x, loss) ||
      t->state != PLC_PLACED)
    return false;
  plc_place want = plc_wanted(x, o), own = t->place[0];
  want.scale = own.scale = 1;
  const plc_tuple *leaf = x->tuple[o->leaf], *before = plc_unclipped(x, t);
  if (before && fabs(plc_gradient_scale(x, loss, leaf, before) - 1) < 1e-3)
    return false; /* what clips it is judged by the whole */
  const double scale = plc_gradient_scale(x, loss, leaf, t);
  if (scale == 0) return false;
  if (!plc_size_near(x, scale)) { /* as gradients that are clipped, or divided wrongly */
    if (!x->undecided)
      x->undecided = iso_arena_printf(
          x->keep, "output %s is %.4g times the derivative of the loss that the ranks give",
          o->name, scale);
    return true;
  }
  if (plc_same(x, &want, &own)) {
    if (fabs(scale - 1) > 1e-3) plc_blame_gradient(x, o, scale);
  } else {
    x->tuple[o->tuple]->place[0].scale = plc_size_near(x, scale);
    plc_blame_output(x, o);
  }
  return true;
}

/* An output that is right if no literal behind it is a number of elements, and wrong if one is. */
static void judge_counts(plc *x, const plc_output *o) {
  const plc_tuple *t = x->tuple[o->tuple];
  const plc_tuple *by = x->undecided ? NULL : plc_count_behind(x, t);
  if (!by) return;
  x->undecided = iso_arena_printf(
      x->keep,
      "output %s is %s if the %g of %s is no number of a rank's elements, of which one rank alone "
      "has more%s",
      o->name, plc_print(x, &t->place[0], x->keep), plc_may_count(x, by), plc_say(x, by),
      o->gradient && !plc_loss(x) ? ": an output \"loss\" would tell" : "");
}

/* Returns: whether nothing is decided of an output that does not hold. */
static bool leave_passed(plc *x, const plc_output *o) {
  const plc_tuple *by = NULL;
  if (plc_passed_round(x, o, &by) && !x->undecided)
    x->undecided = iso_arena_printf(
        x->keep, "output %s is made of %s, which ranks pass round: one rank alone would not",
        o->name, plc_say(x, by));
  return by != NULL;
}

void plc_judge_outputs(plc *x) {
  for (size_t i = 0; i < x->n_outputs && !plc_failed(x); i++) {
    const plc_output *o = &x->output[i];
    plc_tuple *t = x->tuple[o->tuple];
    if (plc_doubts(x, o)) continue;
    if (o->declared && judge_gradient(x, o)) continue;
    const bool placed = t->state == PLC_PLACED && o->declared;
    if (placed && !plc_output_holds(x, o)) {
      if (!leave_passed(x, o)) plc_blame_output(x, o);
    } else if (placed) judge_counts(x, o);
    else if (o->alone && t->state == PLC_PLACED && !plc_output_holds(x, o) && !x->undecided)
      x->undecided = iso_arena_printf(x->keep, "output %s, which only some ranks have, is %s",
                                      o->name, plc_print(x, &t->place[0], x->keep));
    else if (plc_loose(t) && o->declared && !x->n_findings && plc_unequal(x, o))
      plc_found(x, LINT_REPLICAS_DIFFER, t, NULL,
                "output %s is declared to be the same on all ranks, and differs", o->name);
    else if (plc_loose(t) && !x->undecided) {
      const bool wrong = o->declared && t->state == PLC_VARYING && !plc_output_holds(x, o);
      if (wrong && x->n_findings) continue; /* a consequence */
      const plc_tuple *from = plc_begins(x, t);
      x->undecided = iso_arena_printf(x->keep, "output %s is not placed: %s: %s", o->name,
                                      plc_say(x, from), from->why ? from->why : "?");
    }
  }
}
