/* Samples made for events that none has shown: a jump met on purpose, rare conditions together. */
#include "validate/ladder/ladder.h"

static val_shown shown(const rule *r, rule_tensor *const *bind, int side,
                       const rule_tensor *plain) {
  return (val_shown){side ? r->rhs : r->lhs, bind, plain};
}

/* Whether the truth value of the root's element moves its side on this sample. */
static iso_code shows(val_ladder *l, const rule *r, rule_tensor *const *bind, const val_made *made,
                      const val_trial *t, bool *yes, iso_error *err) {
  *yes = false;
  if (t->outcome != VAL_AGREE || t->unmet) return ISO_OK;
  const val_shown side = shown(r, bind, made->side, made->side ? t->rhs : t->lhs);
  return val_observe_one(l->e, &side, made->op->at, made->root->element, yes, &l->work, err);
}

/* A root that no integer meets, from its other side. */
static iso_code weigh_beyond(val_ladder *l, const rule *r, rule_tensor **bind, const val_made *made,
                             bool *yes, iso_error *err) {
  val_trial t = {0};
  rule_tensor *was = bind[made->root->var];
  bind[made->root->var] = made->root->beyond;
  iso_code c = val_weigh(l, r, 0, VAL_ALL_KINDS, bind, &t, err);
  if (!c) c = shows(l, r, bind, made, &t, yes, err);
  bind[made->root->var] = was;
  val_trial_fini(&t);
  return c;
}

/* Whether the same element's truth value shows beside the root. Where it does not, that it shows
 * nothing at the root says nothing. */
static iso_code shows_beside(val_ladder *l, const rule *r, rule_tensor **bind, const val_made *made,
                             bool *yes, iso_error *err) {
  const val_root *root = made->root;
  rule_tensor *was = bind[root->var], *plain = NULL;
  iso_error local;
  *yes = false;
  if (!root->beyond) return ISO_OK;
  bind[root->var] = root->beyond;
  val_shown side = shown(r, bind, made->side, NULL);
  iso_code c = val_eval(l->e, side.term, bind, VAL_FLOAT64, &plain, &local);
  side.plain = plain;
  if (c == ISO_NOMEM) c = iso_fail(err, c, "out of memory");
  else if (c) c = ISO_OK;
  else c = val_observe_one(l->e, &side, made->op->at, root->element, yes, &l->work, err);
  rule_tensor_unref(plain);
  bind[root->var] = was;
  return c;
}

/* A jump that was met on purpose: it counts, in `o`, if it shows, and if it never does where it
 * could. */
static iso_code note_met(val_ladder *l, const rule *r, rule_tensor **bind, const val_made *made,
                         val_covered *o, const val_trial *t, iso_error *err) {
  const val_made of = {made->side, o, made->bit, made->root};
  const uint16_t bit = made->bit;
  bool yes = false;
  /* Where rounding hides the effect, the sides mostly did differ; where they agree all the same,
   * two jumps may have been met at once that make up for one another. */
  if (bit == VAL_MEET && (t->outcome == VAL_BLIND || t->unmet)) o->n_hidden++;
  if (bit == VAL_MEET && o->n_hidden > o->n_met) o->seen &= (uint16_t)~bit;
  if (t->outcome != VAL_AGREE || t->unmet || (bit != VAL_MEET && (o->seen & bit))) return ISO_OK;
  iso_code c = bit == VAL_MEET ? shows(l, r, bind, &of, t, &yes, err) : ISO_OK;
  if (!c && yes && ++o->n_met > o->n_hidden) o->seen |= bit;
  if (!c && !yes && !(o->seen & bit)) {
    c = shows_beside(l, r, bind, &of, &yes, err);
    if (!c && yes) val_cover_barren(o, bit, made->root);
  }
  return c;
}

static iso_code weigh_made(void *ctx, const rule *r, rule_tensor **bind, const val_made *made,
                           bool *stop, iso_error *err) {
  val_ladder *l = ctx;
  val_trial t = {0};
  bool here = false, there = false;
  const uint16_t bit = made->bit;
  const bool across = made->root->across;
  iso_code c = val_weigh(l, r, 0, VAL_ALL_KINDS, bind, &t, err);
  if (!c && across && !l->refuted) c = shows(l, r, bind, made, &t, &here, err);
  if (!c && here) c = weigh_beyond(l, r, bind, made, &there, err);
  val_covered *o = val_cover_at(&l->cover[made->side], made->op);
  if (!c && o && here && there) o->seen |= bit, o->n_met++;
  if (!c && o && !across && !l->refuted && (bit == VAL_MEET || bit == VAL_EDGE))
    c = note_met(l, r, bind, made, o, &t, err);
  *stop = l->refuted || val_stopped(val_engine_options(l->e));
  val_trial_fini(&t);
  return c;
}

static iso_code seek_instance(val_ladder *l, iso_error *err) {
  const val_seeker who = {weigh_made, l, &l->rng, &l->work};
  if (!l->problem.open) return val_seek(l->e, l->r, l->example, l->cover, &who, err);
  iso_arena a = {0};
  val_found at;
  l->problem.roomy = true;
  iso_code c = val_find_instance(l->e, &l->problem, &l->rng, &a, &at, err);
  if (!c && at.found) c = val_seek(l->e, &at.r, l->example, l->cover, &who, err);
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
  val_watcher who = {weigh_rare, l, &l->rng, 1};
  const uint32_t failed = l->failed;
  iso_arena a = {0};
  val_found at = {.r = *l->r, .found = true};
  iso_code c = ISO_OK;
  l->problem.roomy = true;
  if (l->problem.open) c = val_find_instance(l->e, &l->problem, &l->rng, &a, &at, err);
  if (!c && at.found) {
    who.share = val_heavy(&at.r) ? DEAR : 1;
    c = val_rare(l->e, &at.r, l->example, &who, &l->parted, err);
  }
  iso_arena_fini(&a);
  l->failed = failed;
  return c;
}
