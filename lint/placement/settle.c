/* Choices that values alone did not settle: placements of leaves of which nothing is said, and
 * which of several whole calls a step is. */
#include <string.h>

#include "lint/placement/placement_int.h"

enum { MOST_RUNS = 400, MOST_BEHIND = 64, MOST_NEAR = 2 };

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
  const plc_tuple *next = plc_origin(x, false);
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
  for (uint32_t i = 0; i < n && plc_complete(x, u); i++) {
    const plc_tuple *v = x->tuple[at[i]];
    if (at[i] == guess || !plc_complete(x, v) || !same_form(x, u, v)) continue;
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
  const plc_score before = plc_score_of(x);
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
  if (plc_better(plc_score_of(x), before)) return;
  while (n-- > 0) *plc_guess_of(x, x->tuple[was[n].tuple]) = was[n];
  plc_run(x);
}

/* One rank alone may lay out an exchanged tensor in another way. Another guess for a step on the
 * way to it is kept where more tensors are placed with it, even if this tensor is not. */
static void settle_exchange(plc *x, plc_tuple *t, uint32_t *runs) {
  uint32_t at[MOST_BEHIND];
  const uint32_t n = guesses_behind(x, t, at);
  plc_score most = plc_score_of(x);
  bool found = false;
  for (uint32_t i = 0; i < n && i < MOST_NEAR && !found && !plc_failed(x); i++) {
    plc_guess *g = x->tuple[at[i]]->leaf ? NULL : plc_guess_of(x, x->tuple[at[i]]);
    if (!g) continue;
    plc_guess best = *g;
    for (uint32_t k = 0; *runs < MOST_RUNS && plc_next_guess(x, g, k); k++, ++*runs) {
      plc_run(x);
      if (plc_failed(x) || !(g = plc_guess_of(x, x->tuple[at[i]]))) return; /* it may have moved */
      const plc_score now = plc_score_of(x);
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
  const plc_score before = plc_score_of(x);
  bool some = false;
  for (size_t i = 0; i < x->n_tuples && before.loose && !some; i++)
    some = plc_is_bounded(x, x->tuple[i]);
  if (!some || plc_failed(x)) return;
  x->bounds = true;
  plc_run(x);
  if (plc_score_of(x).loose < before.loose) return; /* a fault may be seen only now */
  x->bounds = false;
  plc_run(x);
}

void plc_settle(plc *x) {
  uint32_t runs = 0;
  plc_tuple *t;
  settle_bounds(x);
  while (!plc_failed(x) && runs < MOST_RUNS && (t = plc_origin(x, false)))
    if (!move_one(x, t, false, &runs)) t->stuck = true;
  while (!plc_failed(x) && runs < MOST_RUNS && (t = refused(x)))
    if (!move_one(x, t, true, &runs)) t->stuck = true;
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->stuck = false;
  plc_run(x);
  if (!plc_failed(x)) settle_parts(x);
  if (!plc_failed(x)) settle_exchanges(x, &runs);
}
