/* Where it begins that outputs are wrong, or not known, and how good a reading of the program is.
 */
#include <stdlib.h>

#include "lint/placement/placement_int.h"

/* The first loose tensor on the way to `t`. Numbers of a rank's own rows are known. */
static void earliest(plc *x, plc_tuple *t, bool *seen, plc_tuple **out) {
  bool begins = true, numbers = true;
  if (seen[t->id] || !plc_loose(t)) return;
  seen[t->id] = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    begins &= !plc_loose(o);
    numbers &= !plc_loose(o) || plc_is_number(o);
    earliest(x, x->tuple[t->arg[i]], seen, out);
  }
  if (!begins && numbers && !t->stuck && !plc_is_number(t)) begins = plc_own_rows(x, t) != NULL;
  if (begins && !t->stuck && (!*out || t->order < (*out)->order)) *out = t;
}

static bool pass_round(const plc *x) {
  for (size_t i = 0; i < x->n_tuples; i++)
    if (plc_is_passed(x, x->tuple[i])) return true;
  return false;
}

bool plc_passed_round(plc *x, const plc_output *o, const plc_tuple **by) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  if (!plc_need(x, seen)) return false;
  const plc_tuple *t = plc_passed_behind(x, x->tuple[o->tuple], seen);
  free(seen);
  if (by) *by = t;
  return t != NULL;
}

plc_tuple *plc_origin(plc *x, bool wrong) {
  const bool passes = wrong && pass_round(x);
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  plc_tuple *out = NULL;
  if (!plc_need(x, seen)) return NULL;
  for (size_t i = 0; i < x->n_outputs; i++) {
    plc_tuple *t = x->tuple[x->output[i].tuple];
    const bool judged = x->output[i].declared && t->state == PLC_VARYING;
    if (wrong ? judged && !plc_output_holds(x, &x->output[i]) &&
                    !(passes && plc_passed_round(x, &x->output[i], NULL))
              : plc_loose(t))
      earliest(x, t, seen, &out);
  }
  free(seen);
  return out;
}

const plc_tuple *plc_begins(plc *x, plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  plc_tuple *out = NULL;
  if (plc_need(x, seen)) earliest(x, t, seen, &out);
  free(seen);
  return out ? out : t;
}

plc_score plc_score_of(plc *x) {
  const plc_tuple *t = plc_origin(x, true);
  plc_score s = {.begins = t ? t->order : PLC_NONE};
  for (size_t i = 0; i < x->n_outputs; i++)
    s.wrong += plc_loose(x->tuple[x->output[i].tuple]) ||
               (x->output[i].declared && !plc_output_holds(x, &x->output[i]));
  for (size_t i = 0; i < x->n_tuples; i++) s.loose += plc_loose(x->tuple[i]) || x->tuple[i]->doubt;
  return s;
}

bool plc_better(plc_score a, plc_score b) {
  return a.begins != b.begins ? a.begins > b.begins
         : a.wrong != b.wrong ? a.wrong < b.wrong
                              : a.loose < b.loose;
}
