/* Samples weighed: which kind is drawn, which branches one shows, whether it is a
 * counterexample. */
#include <math.h>
#include <stdio.h>

#include "validate/ladder/ladder.h"

static const double STRICT_REL = 1e-12;
enum { SETTLED = 12 };

static void describe(const val_trial *t, unsigned k, rule_verdict *out) {
  char x[100], y[100];
  if (t->what == 'v')
    snprintf(out->reason, sizeof out->reason,
             "element %lld differs by %.3g (relative %.3g) on sample %u", (long long)t->index,
             t->abs, t->rel, k);
  else
    snprintf(out->reason, sizeof out->reason, "the sides are %s %s and %s %s",
             rule_dtype_name(t->lhs->dtype), rule_shape_print(&t->lhs->shape, x, sizeof x),
             rule_dtype_name(t->rhs->dtype), rule_shape_print(&t->rhs->shape, y, sizeof y));
}

/* Note the branches that the sample showed of operators that choose. */
static iso_code note_cover(val_ladder *l, const rule *r, rule_tensor *const *bind, val_trial *t,
                           iso_error *err) {
  iso_code c = ISO_OK;
  /* A rule of a file makes no claim where a side is undefined: a branch taken only there needs no
   * sample. */
  val_cover *const all = t->outcome == VAL_AGREE ? l->cover : l->undefined;
  if (t->outcome != VAL_AGREE && t->outcome != VAL_OUTSIDE && t->outcome != VAL_BLIND)
    return ISO_OK;
  for (int side = 0; side < 2 && t->outcome == VAL_BLIND; side++)
    for (size_t i = 0; i < t->cover[side].n; i++)
      t->cover[side].op[i].seen = t->cover[side].op[i].taken;
  for (int side = 0; side < 2 && !c && t->outcome == VAL_AGREE && l->unproved; side++) {
    const val_shown shown = {side ? r->rhs : r->lhs, bind, side ? t->rhs : t->lhs};
    c = val_observe(l->e, &shown, &l->cover[side], &t->cover[!side], &t->cover[side], &l->work,
                    err);
  }
  for (int side = 0; side < 2 && !c; side++) val_cover_add(&all[side], &t->cover[side]);
  return c;
}

iso_code val_weigh(val_ladder *l, const rule *r, unsigned k, unsigned kind,
                   rule_tensor *const *bind, val_trial *t, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  const val_trying how = {&l->rng, o->rel_tol, l->strict || l->unproved, l->strict};
  iso_code c = val_try(l->e, r, bind, &how, t, err);
  const bool all = l->unproved && l->settled < SETTLED;
  if (!c && (all || l->strict || l->unproved)) c = val_trial_settle(l->e, r, bind, all, t, err);
  if (c) return c;
  if (all && (t->outcome == VAL_AGREE || t->outcome == VAL_BLIND)) {
    l->settled++;
    l->sure += t->outcome == VAL_AGREE && t->sure;
  }
  if ((c = note_cover(l, r, bind, t, err))) return c;
  l->coarse = fmax(l->coarse, t->coarse);
  l->doubt |= t->doubt;
  l->ties |= t->ties;
  l->wraps |= t->wraps;
  l->masked |= t->masked;
  l->guarded |= t->guarded;
  l->apart |= t->apart;
  if (kind == VAL_AXES && t->outcome == VAL_DIFFER && t->what == 'v') {
    l->cut = true;
    t->outcome = VAL_BLIND;
  }
  switch (t->outcome) {
  case VAL_AGREE:
    l->good++;
    if (kind < VAL_ALL_KINDS) l->worked[kind]++;
    if (t->max_rel > l->max_rel) l->max_rel = t->max_rel;
    if (l->unproved) c = val_note_moved(l, r, bind, err);
    break;
  case VAL_BLIND: l->blind++; break;
  case VAL_OUTSIDE: l->outside++; break;
  case VAL_FAILED:
    l->failed++;
    snprintf(l->last_error, sizeof l->last_error, "%s", t->reason);
    break;
  case VAL_DIFFER:
    if (t->soft && l->soft++ == 0) {
      l->soft_kind = kind;
      l->blind++;
      break;
    }
    l->refuted = true;
    l->none = t->none;
    describe(t, k, l->out);
    if (l->counterexample != NULL)
      c = val_counterexample_take(l->counterexample, &l->problem, r, bind, t, err);
    break;
  }
  return c;
}

/* Sample `k` on an instance. Returns: in `refuted` whether it is a counterexample. */
static iso_code sample_once(val_ladder *l, const rule *r, unsigned k, unsigned kind,
                            iso_error *err) {
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  val_trial t = {0};
  const bool mixed = kind < VAL_SPREAD && k >= l->first && k % 3 == 0;
  iso_code c = val_sample(l->e, r, l->example, &l->rng, mixed ? kind | VAL_MIXED : kind, bind, err);
  if (!c) c = val_weigh(l, r, k, kind, bind, &t, err);
  val_trial_fini(&t);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return c;
}

unsigned val_choose_kind(val_ladder *l, unsigned k) {
  /* Sides that were not quite equal on a coarse look at all kinds, before the proof. */
  const bool again = l->unproved && !l->strict && l->max_rel > STRICT_REL && k < 2 * l->first;
  if (k < l->first || again) return k % VAL_KINDS;
  const unsigned any = (unsigned)iso_rng_below(&l->rng, VAL_ALL_KINDS);
  if (l->good >= VAL_LEAST_SAMPLES || l->outside <= l->good || iso_rng_below(&l->rng, 4) == 0)
    return any;
  for (unsigned i = 0; i < VAL_ALL_KINDS; i++)
    if (l->worked[(any + i) % VAL_ALL_KINDS]) return (any + i) % VAL_ALL_KINDS;
  return any;
}

/* How large sample `k`'s instance may be. */
static void draw_room(val_ladder *l, unsigned k) {
  /* Every value must lie in the domains: few values do so by chance. */
  l->problem.roomy = l->outside <= l->good + 4 && k % 2 == 1;
  l->problem.max_size = l->outside > 2 * l->good + 4 ? 1 + (int64_t)(k % 2) : 6;
  if (l->problem.pinned) l->problem.roomy = false, l->problem.max_size = 3;
  l->problem.few = l->poles != 0; /* where sides are undefined, few elements show it */
}

iso_code val_sample_instance(val_ladder *l, unsigned k, unsigned kind, iso_error *err) {
  if (!l->problem.open) return sample_once(l, l->r, k, kind, err);
  draw_room(l, k);
  iso_arena a = {0};
  val_found at;
  iso_code c = val_find_instance(l->e, &l->problem, &l->rng, &a, &at, err);
  if (!c && at.found) c = sample_once(l, &at.r, k, kind, err);
  /* Exchanged bounds show where a number stands at one of them: the two come together by no chance.
   */
  if (!c && at.found && !l->refuted && l->strict && l->unproved && l->problem.twisted)
    c = sample_once(l, &at.r, k, VAL_AT, err);
  if (!c && !at.found) {
    l->no_instance++;
    l->failed++;
    if (at.why[0]) snprintf(l->last_error, sizeof l->last_error, "%s", at.why);
  }
  iso_arena_fini(&a);
  return c;
}

/* Each operand at its pole in turn, and all. `as`: at this instance; NULL: each at its own. */
static iso_code at_poles(val_ladder *l, const rule *as, iso_error *err) {
  iso_code c = ISO_OK;
  bool at[RULE_MAX_VARS] = {false};
  const bool left = val_poles(l->r->lhs, false, at), right = val_poles(l->r->rhs, false, at);
  if (!left && !right) return ISO_OK;
  for (unsigned k = 0;
       k <= l->r->n_vars && !l->refuted && !c && !val_stopped(val_engine_options(l->e)); k++)
    if (k == 0 || (at[k - 1] && l->r->var[k - 1].kind == 'f'))
      c = as ? sample_once(l, as, k, VAL_POLE + k, err)
             : val_sample_instance(l, k, VAL_POLE + k, err);
  return c;
}

iso_code val_sample_poles(val_ladder *l, iso_error *err) { return at_poles(l, NULL, err); }

iso_code val_sample_only_poles(val_ladder *l, iso_error *err) {
  iso_code c = ISO_OK;
  bool found = true;
  if (!l->problem.open) return at_poles(l, NULL, err);
  for (unsigned i = 0; i < l->poles && found && !c && !l->refuted; i++) {
    iso_arena a = {0};
    val_found at;
    draw_room(l, i);
    c = val_find_instance(l->e, &l->problem, &l->rng, &a, &at, err);
    found = !c && at.found;
    if (found) c = at_poles(l, &at.r, err);
    iso_arena_fini(&a);
  }
  return c;
}

iso_code val_sample_sizes(val_ladder *l, unsigned k, iso_error *err) {
  static const unsigned kinds[] = {VAL_PLAIN, VAL_POSITIVE};
  enum { EDGES = 48 };
  val_size_edge edge[EDGES];
  size_t n = 0;
  const uint32_t failed = l->failed;
  iso_code c = val_size_edges(l->e, &l->problem, &l->rng, edge, EDGES, &n, err);
  for (size_t i = 0; i < n && !c; i++) {
    const uint32_t good = l->good;
    l->problem.pinned = 1 + edge[i].name;
    l->problem.pin = edge[i].size;
    for (int s = 0; s < 2 && l->good == good && !l->refuted && !c; s++)
      if (!val_stopped(val_engine_options(l->e))) c = val_sample_instance(l, k, kinds[s], err);
  }
  l->problem.pinned = 0;
  l->failed = failed;
  return c;
}

iso_code val_sample_axes(val_ladder *l, unsigned k, iso_error *err) {
  enum { SAMPLES = 12 };
  iso_code c = ISO_OK;
  bool any = false;
  for (uint32_t i = 0; i < l->r->n_vars; i++) any |= l->r->var[i].kind == 'c';
  for (unsigned s = 0; s < SAMPLES && any && !l->cut && !l->refuted && !c; s++)
    if (!val_stopped(val_engine_options(l->e))) c = val_sample_instance(l, k + s, VAL_AXES, err);
  return c;
}
