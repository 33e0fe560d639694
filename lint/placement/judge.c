/* Which outputs are wrong, the step where that begins, and its mend. */
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_OPTIONS = 48, MOST_AGO = 6 };

/* Whether ranks have leaves of other names in one place: each may do a part of the work, as where
 * each updates some parameters. */
static bool of_other_leaves(const plc *x, const plc_tuple *t) {
  const char *first = NULL;
  uint32_t rank;
  for (uint32_t r = 0; r < x->mesh.n && t->mixed; r++) {
    const char *name = t->node[r] == PLC_NONE ? NULL : plc_node(x, t->node[r])->name;
    const char *bare = name ? plc_leaf_name(name, &rank) : NULL;
    if (bare && first && strcmp(bare, first) != 0) return true;
    if (!first) first = bare;
  }
  return false;
}

/* ---- mending ---- */

static uint32_t options(const plc *x, const plc_tuple *t, plc_place *out) {
  const uint32_t rank = t->whole[0]->shape.rank, each = rank + 2;
  uint32_t all = 1, n = 0;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) all *= each;
  for (uint32_t i = 0; i < all && n < MOST_OPTIONS; i++) {
    plc_place p = plc_replica();
    for (uint32_t a = 0, e = i; a < x->mesh.n_axes; a++, e /= each) {
      const uint32_t k = e % each;
      if (k == rank + 1) p.axis[a] = (plc_one){.kind = PLC_P};
      else if (k) p.axis[a] = (plc_one){.kind = PLC_S, .dim = k - 1};
    }
    out[n++] = p;
  }
  return n;
}

/* Whether another placement of `id` mends later tensors; it then has the best of them. */
static bool mend(plc *x, uint32_t id, plc_score before) {
  plc_place all[MOST_OPTIONS], best = plc_replica();
  const uint32_t n = options(x, x->tuple[id], all);
  bool found = false;
  if (x->n_mends == PLC_MENDS) return false;
  x->n_mends++;
  for (uint32_t i = 0; i < n && !plc_failed(x); i++) {
    x->mend[x->n_mends - 1] = (plc_mend){.tuple = id, .place = all[i]};
    plc_run(x);
    const plc_score s = plc_score_of(x);
    if (!x->tuple[id]->mended || !plc_better(s, before)) continue;
    found = true;
    best = all[i];
    before = s;
  }
  x->mend[x->n_mends - 1] = (plc_mend){.tuple = id, .place = best};
  x->n_mends -= !found;
  plc_run(x);
  return found;
}

/* Whether a collective that fits nothing stands before it. */
static bool behind(plc *x, const plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  const bool is = plc_need(x, seen) && plc_is_behind(x, t, seen);
  free(seen);
  return is;
}

/* Whether a collective joined ranks that have shards of its operand, or other parts than it is for.
 */
static bool meets_parts(const plc *x, const plc_tuple *t) {
  const plc_tuple *o = t->collective && t->n_args ? x->tuple[t->arg[0]] : NULL;
  bool found = x->finding[x->n_findings - 1].kind == LINT_GROUP_MISMATCH;
  for (uint32_t a = 0; o && o->state == PLC_PLACED && x->mesh.n_axes > 1 && a < x->mesh.n_axes; a++)
    found |= o->place[0].axis[a].kind == PLC_S && (t->axes >> a & 1);
  return found;
}

/* Whether a collective fits nothing that the ranks hold, although its operand is placed as the
 * capture says. */
static bool meets_wrongly(const plc *x, const plc_tuple *t) {
  if (!t->collective || t->state != PLC_VARYING || t->guess != PLC_NONE || !t->n_args) return false;
  return x->tuple[t->arg[0]]->state == PLC_PLACED && plc_complete(x, t);
}

void plc_judge_steps(plc *x) {
  plc_run(x);
  if (!plc_failed(x)) plc_settle(x);
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->stuck = false;
  plc_tuple *t = plc_failed(x) ? NULL : plc_origin(x, false);
  bool *seen = t ? calloc(x->n_tuples + 1, sizeof *seen) : NULL;
  if (!t || !plc_need(x, seen)) return;
  const bool of_it = plc_goes_into(x, x->tuple[x->among_from], t, seen);
  free(seen);
  if (of_it && meets_wrongly(x, t)) plc_blame(x, t);
  else if (of_it && t->state == PLC_UNKNOWN && !behind(x, t)) plc_blame_unfit(x, t);
}

/* Whether two operands are cut, and no part of a sum, and one of them by a doubtful reading. */
static bool cut_doubtfully(const plc *x, const plc_tuple *t) {
  if (t->collective || t->mixed || t->n_args != 2) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state != PLC_PLACED || !plc_has(x, &o->place[0], PLC_S)) return false;
    if (plc_has(x, &o->place[0], PLC_P)) return false;
  }
  return plc_grew_one(x, t, MOST_AGO);
}

/* Whether one rank's value here is unknown. */
static bool unclear(plc *x, const plc_tuple *t) {
  if (t->unsure || t->differs || !plc_complete(x, t) || of_other_leaves(x, t) ||
      (plc_reads_numbers(x, t) && !plc_own_rows(x, t)) || cut_doubtfully(x, t) ||
      plc_is_exchanged(x, t) || plc_is_piece(x, t) || plc_is_reordered(x, t) ||
      plc_is_passed(x, t) || plc_is_doubtful(x, t))
    return true;
  return behind(x, t);
}

/* Whether each rank multiplies its own rows of one tensor with its own rows of another: no rank
 * computes the products of rows of two ranks. */
static bool crosses(plc *x, const plc_tuple *t) {
  if (t->state != PLC_VARYING || t->guess != PLC_NONE || t->n_args != 2 || !plc_complete(x, t) ||
      t->mixed || t->collective || !rule_operator_of(plc_node(x, t->node[0])->op)->product)
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state != PLC_PLACED || !plc_has(x, &o->place[0], PLC_S)) return false;
    if (plc_has(x, &o->place[0], PLC_P) || plc_is_met(x, o)) return false;
  }
  for (size_t i = 0; i < x->n_tuples; i++)
    if (plc_is_passed(x, x->tuple[i])) return false;
  return !unclear(x, t);
}

/* Looks for faults that no output shows, since the outputs have no whole or depend on messages. */
static void judge_unread(plc *x) {
  plc_tuple *t = plc_origin(x, false);
  if (t && (t->state == PLC_UNKNOWN || t->collective) && !behind(x, t) && !plc_is_doubtful(x, t) &&
      !plc_is_exchanged(x, t))
    plc_blame_unfit(x, t);
  if (t && !x->n_findings && crosses(x, t)) plc_blame(x, t);
  if (t && !x->n_findings) plc_blame_turned(x);
  if (t && !x->n_findings) plc_blame_summands(x);
}

void plc_judge(plc *x) {
  plc_run(x);
  if (!plc_failed(x)) plc_settle(x);
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++)
    if (x->tuple[i]->leaf && x->tuple[i]->unfit)
      plc_found(x, LINT_REPLICAS_DIFFER, x->tuple[i], NULL,
                "%s is declared to be %s, and the ranks' values differ where that is R",
                plc_say(x, x->tuple[i]), plc_print(x, &x->tuple[i]->place[0], x->keep));
  while (!plc_failed(x)) {
    plc_tuple *t = plc_origin(x, true);
    if (!t) break;
    if (t->guess != PLC_NONE) {
      x->undecided = iso_arena_printf(
          x->keep,
          "nothing is said of the placement of %s, and with %s %s fits nowhere: give it "
          "with --placements",
          plc_say(x, x->tuple[t->guess]), plc_print(x, &x->tuple[t->guess]->place[0], x->keep),
          plc_say(x, t));
      break;
    }
    const plc_tuple *lost = plc_complete(x, t) ? NULL : plc_lost_parts(x, t);
    if (lost) {
      plc_blame_lost(x, t, lost);
      break;
    }
    const plc_tuple *sum = plc_is_doubtful(x, t) ? NULL : plc_part_of_sum(x, t);
    if (sum) {
      plc_blame_part(x, t, sum);
      break;
    }
    if (unclear(x, t)) {
      t->stuck = true; /* what one rank would do here is not known */
      continue;
    }
    const plc_score before = plc_score_of(x);
    const size_t found = x->n_findings;
    plc_blame(x, t);
    if (x->n_findings > found && meets_parts(x, t))
      break; /* ranks that share what it gave cannot be given parts of their own */
    if (plc_failed(x) || t->state != PLC_VARYING || t->n_out != 1 || !mend(x, t->id, before)) break;
  }
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->stuck = false;
  if (!plc_failed(x) && !x->n_findings) judge_unread(x);
  plc_judge_outputs(x);
  if (!plc_failed(x)) plc_prove(x);
  if (!plc_failed(x) && !x->undecided) plc_judge_evidence(x);
}
