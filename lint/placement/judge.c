/* Which outputs are wrong, the step where that begins, and its mend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_RUNS = 400, MOST_OPTIONS = 48, MOST_BEHIND = 64, MOST_AGO = 6, MOST_NEAR = 2 };

typedef struct score { /* of one run */
  uint32_t begins;     /* the order of the first origin; PLC_NONE: there is none */
  uint32_t wrong;      /* outputs */
  uint32_t loose;      /* tensors */
} score;

/* ---- where it begins ---- */

/* Whether every rank has it. */
static bool complete(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) return false;
  return true;
}

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

static bool loose(const plc_tuple *t) { return t->state == PLC_VARYING || t->state == PLC_UNKNOWN; }

static void earliest(const plc *x, plc_tuple *t, bool *seen, plc_tuple **out) {
  bool begins = true;
  if (seen[t->id] || !loose(t)) return;
  seen[t->id] = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    begins &= !loose(x->tuple[t->arg[i]]);
    earliest(x, x->tuple[t->arg[i]], seen, out);
  }
  if (begins && !t->stuck && (!*out || t->order < (*out)->order)) *out = t;
}

static bool pass_round(const plc *x) {
  for (size_t i = 0; i < x->n_tuples; i++)
    if (plc_is_passed(x, x->tuple[i])) return true;
  return false;
}

/* Whether an output depends on a tensor that ranks pass round, so that its value says nothing.
 * `by`, or NULL: gets that tensor. */
static bool is_passed_round(plc *x, const plc_output *o, const plc_tuple **by) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  if (!plc_need(x, seen)) return false;
  const plc_tuple *t = plc_passed_behind(x, x->tuple[o->tuple], seen);
  free(seen);
  if (by) *by = t;
  return t != NULL;
}

/* The first tensor on the way to outputs that are wrong, or of which nothing is known. */
static plc_tuple *origin(plc *x, bool wrong) {
  const bool passes = wrong && pass_round(x);
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  plc_tuple *out = NULL;
  if (!plc_need(x, seen)) return NULL;
  for (size_t i = 0; i < x->n_outputs; i++) {
    plc_tuple *t = x->tuple[x->output[i].tuple];
    const bool judged = x->output[i].declared && t->state == PLC_VARYING;
    if (wrong ? judged && !plc_output_holds(x, &x->output[i]) &&
                    !(passes && is_passed_round(x, &x->output[i], NULL))
              : loose(t))
      earliest(x, t, seen, &out);
  }
  free(seen);
  return out;
}

/* The first loose tensor on the way to `t`. */
static const plc_tuple *begins(plc *x, plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  plc_tuple *out = NULL;
  if (plc_need(x, seen)) earliest(x, t, seen, &out);
  free(seen);
  return out ? out : t;
}

static score score_of(plc *x) {
  const plc_tuple *t = origin(x, true);
  score s = {.begins = t ? t->order : PLC_NONE};
  for (size_t i = 0; i < x->n_outputs; i++)
    s.wrong += loose(x->tuple[x->output[i].tuple]) ||
               (x->output[i].declared && !plc_output_holds(x, &x->output[i]));
  for (size_t i = 0; i < x->n_tuples; i++) s.loose += loose(x->tuple[i]) || x->tuple[i]->doubt;
  return s;
}

static bool better(score a, score b) {
  return a.begins != b.begins ? a.begins > b.begins
         : a.wrong != b.wrong ? a.wrong < b.wrong
                              : a.loose < b.loose;
}

/* ---- leaves of which nothing is said ---- */

/* Guesses made on the way to `t`, the nearest first. */
static uint32_t guesses_behind(plc *x, plc_tuple *t, uint32_t *out) {
  uint32_t queue[MOST_BEHIND], n = 0, made = 0;
  queue[n++] = t->id;
  for (uint32_t i = 0; i < n; i++) {
    const plc_tuple *u = x->tuple[queue[i]];
    if (u->chosen || (u->leaf && u->guess == u->id)) out[made++] = u->id;
    for (uint32_t k = 0; k < u->n_args && n < MOST_BEHIND; k++) {
      bool known = false;
      for (uint32_t j = 0; j < n && !known; j++) known = queue[j] == u->arg[k];
      if (!known) queue[n++] = u->arg[k];
    }
  }
  return made;
}

/* Whether `t` is placed, or a leaf's other place at least leads beyond it. */
static bool helps(plc *x, const plc_guess *g, plc_tuple *t, uint32_t before, bool runs) {
  plc_tuple *u = x->tuple[g->tuple];
  if (!u->leaf) return plc_again(x, u, t) || (runs && t->state == PLC_VARYING);
  plc_run(x);
  const plc_tuple *next = origin(x, false);
  return !next || next->order > before;
}

/* The same with leaves that the same operator reads: a fused weight has a fused bias. */
static bool helps_together(plc *x, const plc_guess *g, plc_tuple *t, uint32_t before) {
  plc_guess was[MOST_BEHIND];
  uint32_t n = 0;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    bool reads = false;
    for (uint32_t k = 0; k < u->n_args; k++) reads |= u->arg[k] == g->tuple;
    for (uint32_t k = 0; reads && k < u->n_args && n < MOST_BEHIND; k++) {
      const plc_tuple *o = x->tuple[u->arg[k]];
      if (!o->leaf || o->guess != o->id || o->id == g->tuple) continue;
      plc_guess *other = plc_guess_of(x, o);
      if (!other) return false;
      was[n] = *other;
      n += plc_guess_like(x, other, g);
    }
  }
  if (n && helps(x, g, t, before, false)) return true;
  while (n-- > 0) *plc_guess_of(x, x->tuple[was[n].tuple]) = was[n];
  return false;
}

/* The same with another possibility of one of them: both factors of a product are cut along the
 * summed dimension. */
static bool helps_pair(plc *x, const plc_guess *g, plc_tuple *t, uint32_t before, uint32_t *runs) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    bool reads = false;
    for (uint32_t k = 0; k < u->n_args; k++) reads |= u->arg[k] == g->tuple;
    for (uint32_t k = 0; reads && k < u->n_args; k++) {
      const plc_tuple *o = x->tuple[u->arg[k]];
      if (!o->leaf || o->guess != o->id || o->id == g->tuple) continue;
      plc_guess *other = plc_guess_of(x, o);
      if (!other) return false;
      const plc_guess was = *other;
      for (uint32_t n = 0; n < RULE_MAX_RANK && *runs < MOST_RUNS; n++) {
        if (n == was.tried) continue;
        if (!plc_next_guess(x, other, n)) break;
        ++*runs;
        if (helps(x, g, t, before, false)) return true;
      }
      *other = was;
    }
  }
  return false;
}

static bool same_form(const plc *x, const plc_tuple *t, const plc_tuple *u) {
  const cap_node *a = plc_node(x, t->node[0]), *b = plc_node(x, u->node[0]);
  return !u->leaf && strcmp(a->op, b->op) == 0 &&
         rule_shape_eq(&a->output[0].shape, &b->output[0].shape);
}

/* The same with steps of one form: queries and keys are taken apart alike. */
static bool helps_alike(plc *x, uint32_t guess, plc_tuple *t, const uint32_t *at, uint32_t n) {
  plc_guess was[MOST_BEHIND];
  const plc_tuple *u = x->tuple[guess];
  uint32_t changed = 0;
  for (uint32_t i = 0; i < n && complete(x, u); i++) {
    const plc_tuple *v = x->tuple[at[i]];
    if (at[i] == guess || !complete(x, v) || !same_form(x, u, v)) continue;
    plc_guess *other = plc_guess_of(x, v);
    if (!other) return false;
    was[changed++] = *other;
    other->tried = plc_tried(x, u);
  }
  if (changed) plc_run(x);
  if (changed && t->state == PLC_PLACED) return true;
  for (uint32_t i = 0; i < changed; i++) *plc_guess_of(x, x->tuple[was[i].tuple]) = was[i];
  return false;
}

/* Looks for another choice of one guess that places a loose tensor; with `only_runs`, that one rank
 * could run. */
static bool move_one(plc *x, plc_tuple *t, bool only_runs, uint32_t *runs) {
  uint32_t at[MOST_BEHIND];
  const uint32_t n = guesses_behind(x, t, at), before = t->order;
  for (uint32_t i = 0; i < n && !plc_failed(x); i++) {
    plc_guess *g = plc_guess_of(x, x->tuple[at[i]]);
    if (!g) return false;
    const plc_guess was = *g;
    for (uint32_t k = 0; *runs < MOST_RUNS && !plc_failed(x); k++) {
      if (k == was.tried) continue;
      g = plc_guess_of(x, x->tuple[at[i]]); /* the list may have grown */
      if (!g || !plc_next_guess(x, g, k)) break;
      ++*runs;
      const bool leaf = x->tuple[at[i]]->leaf;
      if (!helps(x, g, t, before, only_runs) &&
          !(leaf ? helps_together(x, g, t, before) || helps_pair(x, g, t, before, runs)
                 : helps_alike(x, at[i], t, at, n)))
        continue;
      plc_run(x);
      return true;
    }
    if (!(g = plc_guess_of(x, x->tuple[at[i]]))) return false;
    *g = was;
    if (x->tuple[g->tuple]->leaf) plc_run(x);
    else plc_again(x, x->tuple[g->tuple], t);
  }
  if (n) plc_run(x);
  return false;
}

/* The first operator that one rank could not run on the wholes, as these are read. */
static plc_tuple *refused(const plc *x) {
  plc_tuple *out = NULL;
  for (size_t i = 0; i < x->n_tuples; i++) {
    plc_tuple *t = x->tuple[i];
    if (t->state == PLC_UNKNOWN && t->whole_refused && !t->stuck && (!out || t->order < out->order))
      out = t;
  }
  return out;
}

/* Inputs that are taken apart, as into micro-batches: whether the ranks share each part, or all of
 * it in one piece, is seen where fewer tensors are loose. All are changed together. */
static void settle_parts(plc *x) {
  const score before = score_of(x);
  plc_guess was[MOST_BEHIND];
  uint32_t n = 0;
  for (size_t i = 0; i < x->n_tuples && before.loose && n < MOST_BEHIND && !plc_failed(x); i++) {
    plc_tuple *t = x->tuple[i];
    plc_guess *g = plc_input(x, t) && t->guess == t->id ? plc_guess_of(x, t) : NULL;
    if (!g || plc_has_blocks(x, &g->place)) continue;
    was[n] = *g;
    for (uint32_t k = 0; !plc_has_blocks(x, &g->place) && plc_next_guess(x, g, k);) k++;
    if (plc_has_blocks(x, &g->place)) n++;
    else *g = was[n];
  }
  if (n == 0 || plc_failed(x)) return;
  plc_run(x);
  if (better(score_of(x), before)) return;
  while (n-- > 0) *plc_guess_of(x, x->tuple[was[n].tuple]) = was[n];
  plc_run(x);
}

/* One rank alone may lay out an exchanged tensor in another way. Another guess for a step on the
 * way to it is kept where more tensors are placed with it, even if this tensor is not. */
static void settle_exchange(plc *x, plc_tuple *t, uint32_t *runs) {
  uint32_t at[MOST_BEHIND];
  const uint32_t n = guesses_behind(x, t, at);
  score most = score_of(x);
  bool found = false;
  for (uint32_t i = 0; i < n && i < MOST_NEAR && !found && !plc_failed(x); i++) {
    plc_guess *g = x->tuple[at[i]]->leaf ? NULL : plc_guess_of(x, x->tuple[at[i]]);
    if (!g) continue;
    plc_guess best = *g;
    for (uint32_t k = 0; *runs < MOST_RUNS && plc_next_guess(x, g, k); k++, ++*runs) {
      plc_run(x);
      if (plc_failed(x) || !(g = plc_guess_of(x, x->tuple[at[i]]))) return; /* it may have moved */
      const score now = score_of(x);
      if (now.wrong > most.wrong || (now.wrong == most.wrong && now.loose >= most.loose)) continue;
      most = now;
      best = *g;
      found = true;
    }
    *g = best;
    plc_run(x);
  }
}

static void settle_exchanges(plc *x, uint32_t *runs) {
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++) {
    plc_tuple *t = x->tuple[i];
    if (!t->leaf && !t->mixed && t->state == PLC_VARYING && plc_takes_part(x, t))
      settle_exchange(x, t, runs);
  }
}

/* Bounds of rows may be those of a rank's own. All are changed together. */
static void settle_bounds(plc *x) {
  const score before = score_of(x);
  bool some = false;
  for (size_t i = 0; i < x->n_tuples && before.loose && !some; i++)
    some = plc_is_bounded(x, x->tuple[i]);
  if (!some || plc_failed(x)) return;
  x->bounds = true;
  plc_run(x);
  if (score_of(x).loose < before.loose) return; /* a fault may be seen only now */
  x->bounds = false;
  plc_run(x);
}

/* Guesses are changed where that lets more of the program be placed. Outputs that are placed, and
 * wrong, change none. */
static void settle(plc *x) {
  uint32_t runs = 0;
  plc_tuple *t;
  settle_bounds(x);
  while (!plc_failed(x) && runs < MOST_RUNS && (t = origin(x, false)))
    if (!move_one(x, t, false, &runs)) t->stuck = true;
  while (!plc_failed(x) && runs < MOST_RUNS && (t = refused(x)))
    if (!move_one(x, t, true, &runs)) t->stuck = true;
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->stuck = false;
  plc_run(x);
  if (!plc_failed(x)) settle_parts(x);
  if (!plc_failed(x)) settle_exchanges(x, &runs);
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
static bool mend(plc *x, uint32_t id, score before) {
  plc_place all[MOST_OPTIONS], best = plc_replica();
  const uint32_t n = options(x, x->tuple[id], all);
  bool found = false;
  if (x->n_mends == PLC_MENDS) return false;
  x->n_mends++;
  for (uint32_t i = 0; i < n && !plc_failed(x); i++) {
    x->mend[x->n_mends - 1] = (plc_mend){.tuple = id, .place = all[i]};
    plc_run(x);
    const score s = score_of(x);
    if (!x->tuple[id]->mended || !better(s, before)) continue;
    found = true;
    best = all[i];
    before = s;
  }
  x->mend[x->n_mends - 1] = (plc_mend){.tuple = id, .place = best};
  x->n_mends -= !found;
  plc_run(x);
  return found;
}

/* ---- outputs ---- */

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

/* A placement refuted on the way does no harm where outputs are shown without it. */
static void judge_evidence(plc *x) {
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
  const double scale = plc_gradient_scale(x, loss, o, &t->place[0]);
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
  if (is_passed_round(x, o, &by) && !x->undecided)
    x->undecided = iso_arena_printf(
        x->keep, "output %s is made of %s, which ranks pass round: one rank alone would not",
        o->name, plc_say(x, by));
  return by != NULL;
}

static void judge_outputs(plc *x) {
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
    else if (loose(t) && o->declared && !x->n_findings && plc_unequal(x, o))
      plc_found(x, LINT_REPLICAS_DIFFER, t, NULL,
                "output %s is declared to be the same on all ranks, and differs", o->name);
    else if (loose(t) && !x->undecided) {
      const bool wrong = o->declared && t->state == PLC_VARYING && !plc_output_holds(x, o);
      if (wrong && x->n_findings) continue; /* a consequence */
      const plc_tuple *from = begins(x, t);
      x->undecided = iso_arena_printf(x->keep, "output %s is not placed: %s: %s", o->name,
                                      plc_say(x, from), from->why ? from->why : "?");
    }
  }
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
  return x->tuple[t->arg[0]]->state == PLC_PLACED && complete(x, t);
}

void plc_judge_steps(plc *x) {
  plc_run(x);
  if (!plc_failed(x)) settle(x);
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->stuck = false;
  plc_tuple *t = plc_failed(x) ? NULL : origin(x, false);
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
  if (t->unsure || t->differs || !complete(x, t) || of_other_leaves(x, t) ||
      plc_reads_numbers(x, t) || cut_doubtfully(x, t) || plc_is_exchanged(x, t) ||
      plc_is_piece(x, t) || plc_is_reordered(x, t) || plc_is_passed(x, t) || plc_is_doubtful(x, t))
    return true;
  return behind(x, t);
}

void plc_judge(plc *x) {
  plc_run(x);
  if (!plc_failed(x)) settle(x);
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++)
    if (x->tuple[i]->leaf && x->tuple[i]->unfit)
      plc_found(x, LINT_REPLICAS_DIFFER, x->tuple[i], NULL,
                "%s is declared to be %s, and the ranks' values differ where that is R",
                plc_say(x, x->tuple[i]), plc_print(x, &x->tuple[i]->place[0], x->keep));
  while (!plc_failed(x)) {
    plc_tuple *t = origin(x, true);
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
    const plc_tuple *lost = complete(x, t) ? NULL : plc_lost_parts(x, t);
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
    const score before = score_of(x);
    const size_t found = x->n_findings;
    plc_blame(x, t);
    if (x->n_findings > found && meets_parts(x, t))
      break; /* ranks that share what it gave cannot be given parts of their own */
    if (plc_failed(x) || t->state != PLC_VARYING || t->n_out != 1 || !mend(x, t->id, before)) break;
  }
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->stuck = false;
  plc_tuple *t = plc_failed(x) ? NULL : origin(x, false);
  if (t && !x->n_findings && (t->state == PLC_UNKNOWN || t->collective) && !behind(x, t) &&
      !plc_is_doubtful(x, t))
    plc_blame_unfit(x, t);
  judge_outputs(x);
  if (!plc_failed(x)) plc_prove(x);
  if (!plc_failed(x) && !x->undecided) judge_evidence(x);
}
