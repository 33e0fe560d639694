/* Samples made for what nothing has shown: a jump met on purpose, rare conditions together. */
#include "validate/ladder/ladder.h"

/* Whether the truth value of one element of `op` moves its side on this sample. */
static iso_code shows(val_ladder *l, const rule *r, rule_tensor *const *bind, int side,
                      const val_covered *op, int64_t element, const val_trial *t, bool *yes,
                      iso_error *err) {
  *yes = false;
  if (t->outcome != VAL_AGREE || t->unmet) return ISO_OK;
  return val_observe_one(l->e, side ? r->rhs : r->lhs, bind, side ? t->rhs : t->lhs, op->at,
                         element, yes, &l->work, err);
}

/* A root that no integer meets, from its other side. */
static iso_code weigh_beyond(val_ladder *l, const rule *r, rule_tensor **bind, int side,
                             const val_covered *op, const val_root *root, bool *yes,
                             iso_error *err) {
  val_trial t = {0};
  rule_tensor *was = bind[root->var];
  bind[root->var] = root->beyond;
  iso_code c = val_weigh(l, r, 0, VAL_ALL_KINDS, bind, &t, err);
  if (!c) c = shows(l, r, bind, side, op, root->element, &t, yes, err);
  bind[root->var] = was;
  val_trial_fini(&t);
  return c;
}

/* Whether the same element's truth value shows beside the root. Where it does not, that it shows
 * nothing at the root says nothing. */
static iso_code shows_beside(val_ladder *l, const rule *r, rule_tensor **bind, int side,
                             const val_covered *op, const val_root *root, bool *yes,
                             iso_error *err) {
  rule_tensor *was = bind[root->var], *plain = NULL;
  iso_error local;
  *yes = false;
  if (!root->beyond) return ISO_OK;
  bind[root->var] = root->beyond;
  iso_code c = val_eval(l->e, side ? r->rhs : r->lhs, bind, VAL_FLOAT64, &plain, &local);
  if (c == ISO_NOMEM) c = iso_fail(err, c, "out of memory");
  else if (c) c = ISO_OK;
  else
    c = val_observe_one(l->e, side ? r->rhs : r->lhs, bind, plain, op->at, root->element, yes,
                        &l->work, err);
  rule_tensor_unref(plain);
  bind[root->var] = was;
  return c;
}

/* A jump that was met on purpose: it counts if it shows, and if it never does where it could. */
static iso_code note_met(val_ladder *l, const rule *r, rule_tensor **bind, int side, val_covered *o,
                         uint16_t bit, const val_root *root, const val_trial *t, iso_error *err) {
  bool yes = false;
  /* Where rounding hides what comes of it, the sides mostly did differ; where they agree all the
   * same, two jumps may have been met at once that make up for one another. */
  if (bit == VAL_MEET && (t->outcome == VAL_BLIND || t->unmet)) o->n_hidden++;
  if (bit == VAL_MEET && o->n_hidden > o->n_met) o->seen &= (uint16_t)~bit;
  if (t->outcome != VAL_AGREE || t->unmet || (bit != VAL_MEET && (o->seen & bit))) return ISO_OK;
  iso_code c = bit == VAL_MEET ? shows(l, r, bind, side, o, root->element, t, &yes, err) : ISO_OK;
  if (!c && yes && ++o->n_met > o->n_hidden) o->seen |= bit;
  if (!c && !yes && !(o->seen & bit)) {
    c = shows_beside(l, r, bind, side, o, root, &yes, err);
    if (!c && yes) val_cover_barren(o, bit, root);
  }
  return c;
}

static iso_code weigh_made(void *ctx, const rule *r, rule_tensor **bind, int side,
                           const val_covered *op, uint16_t bit, const val_root *root, bool *stop,
                           iso_error *err) {
  val_ladder *l = ctx;
  val_trial t = {0};
  bool here = false, there = false;
  iso_code c = val_weigh(l, r, 0, VAL_ALL_KINDS, bind, &t, err);
  if (!c && root->across && !l->refuted)
    c = shows(l, r, bind, side, op, root->element, &t, &here, err);
  if (!c && here) c = weigh_beyond(l, r, bind, side, op, root, &there, err);
  val_covered *o = val_cover_at(&l->cover[side], op);
  if (!c && o && here && there) o->seen |= bit, o->n_met++;
  if (!c && o && !root->across && !l->refuted && (bit == VAL_MEET || bit == VAL_EDGE))
    c = note_met(l, r, bind, side, o, bit, root, &t, err);
  *stop = l->refuted || val_stopped(val_engine_options(l->e));
  val_trial_fini(&t);
  return c;
}

static iso_code seek_instance(val_ladder *l, iso_error *err) {
  const val_seeker who = {weigh_made, l};
  if (!l->problem.open)
    return val_seek(l->e, l->r, l->example, l->cover, &l->rng, &who, &l->work, err);
  iso_arena a = {0};
  rule r;
  bool found = false;
  char why[200] = "";
  l->problem.roomy = true;
  iso_code c = val_find_instance(l->e, &l->problem, &l->rng, &a, &r, &found, why, err);
  if (!c && found) c = val_seek(l->e, &r, l->example, l->cover, &l->rng, &who, &l->work, err);
  iso_arena_fini(&a);
  return c;
}

iso_code val_seek_branches(val_ladder *l, iso_error *err) {
  enum { TIMES = 3 };
  const uint32_t failed = l->failed;
  iso_code c = ISO_OK;
  for (int k = 0; k < TIMES && !c && !l->refuted && !val_stopped(val_engine_options(l->e)); k++)
    if (k == 0 || val_ladder_gap(l)) c = seek_instance(l, err);
  l->failed = failed;
  return c;
}

/* ---- what is rare ---- */

static iso_code weigh_rare(void *ctx, const rule *r, rule_tensor **bind, bool *agree, bool *stop,
                           iso_error *err) {
  val_ladder *l = ctx;
  val_trial t = {0};
  const iso_code c = val_weigh(l, r, 0, VAL_ALL_KINDS, bind, &t, err);
  *agree = t.outcome == VAL_AGREE;
  *stop = l->refuted || val_stopped(val_engine_options(l->e));
  val_trial_fini(&t);
  return c;
}

iso_code val_sample_rare(val_ladder *l, iso_error *err) {
  enum { DEAR = 4 };
  const val_watcher who = {weigh_rare, l};
  const uint32_t failed = l->failed;
  iso_arena a = {0};
  rule r = *l->r;
  bool found = true;
  char why[200] = "";
  iso_code c = ISO_OK;
  l->problem.roomy = true;
  if (l->problem.open) c = val_find_instance(l->e, &l->problem, &l->rng, &a, &r, &found, why, err);
  if (!c && found)
    c = val_rare(l->e, &r, l->example, val_heavy(&r) ? DEAR : 1, &l->rng, &who, &l->parted, err);
  iso_arena_fini(&a);
  l->failed = failed;
  return c;
}
