/* The ladder for one candidate: pre-check, refute on samples, prove, test (architecture.md, section
 * 3).
 *
 * A sample counts where both sides ran within their domains and rounding leaves something to see; a
 * difference just above rounding must show on a second sample before it refutes. What fails to run
 * on a sample says nothing. A rule with open sizes gets another instance for every sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/branch/choice_int.h"
#include "validate/branch/cover_int.h"
#include "validate/branch/meet_int.h"
#include "validate/sample/sample_int.h"

static const double STRICT_REL = 1e-12;
enum {
  STRICT_ROUNDS = 3,
  LEAST_SAMPLES = 8,
  MAX_FAILED = 8,
  SETTLED = 12,
  LEAST_SURE = 4,
  WORK = 100000000
};

typedef struct ladder {
  val_engine *e;
  const rule *given;           /* as it is asked for: what is proved */
  const rule *r;               /* in canonical form: samples do not depend on how it is spelled */
  rule_tensor *const *example; /* by variable of r */
  val_problem problem;
  iso_rng rng;
  bool strict;
  bool unproved;  /* samples now are all that there is: they count to the last digits */
  unsigned first; /* samples that take all kinds in turn, before the proof */
  uint32_t good, failed, blind, outside, soft, no_instance;
  uint32_t settled, sure; /* samples that were looked at in many digits, and those of them where
                             nothing was lost */
  uint32_t worked[VAL_ALL_KINDS]; /* samples of each kind that counted */
  val_cover cover[2];             /* of the samples that counted, left and right */
  val_cover undefined[2];         /* of those where a side is undefined */
  int64_t work; /* left for looking whether anything shows a branch, and for samples that do */
  unsigned soft_kind; /* of the sample that differed by so little that another one should, too */
  double max_rel;
  bool guarded;  /* some sample differs where a number on the way is undefined */
  bool parted;   /* two conditions were not seen in all cases */
  bool ties;     /* some sample differs where equal numbers leave a choice open */
  bool cut;      /* some sample differs on an axis, by the sign of a zero */
  bool doubt;    /* some sample differs by more than such a tolerance, if not surely */
  double coarse; /* the largest tolerance of samples whose operators compute in a narrower dtype */
  char last_error[200];
  val_witness *witness; /* NULL: not wanted */
  rule *general;        /* NULL: not wanted; else the rule that is proved */
  iso_arena *arena;     /* of what is new in it */
} ladder;

static double largest(const rule_tensor *t) {
  double m = 0;
  if (t->dtype == RULE_F64) {
    const double *x = t->data;
    for (int64_t i = 0; i < t->numel; i++)
      if (fabs(x[i]) > m && fabs(x[i]) < 1e30) m = fabs(x[i]);
    return m;
  }
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = fabs(rule_tensor_get(t, i));
    if (v > m && v < 1e30) m = v;
  }
  return m;
}

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

/* What the sample showed of the operators that choose. */
static iso_code note_cover(ladder *l, const rule *r, rule_tensor *const *bind, val_trial *t,
                           iso_error *err) {
  iso_code c = ISO_OK;
  /* A rule of a file says nothing of where a side is undefined: what is taken only there needs no
   * sample. */
  val_cover *const all = t->outcome == VAL_AGREE ? l->cover : l->undefined;
  if (t->outcome != VAL_AGREE && t->outcome != VAL_OUTSIDE && t->outcome != VAL_BLIND)
    return ISO_OK;
  for (int side = 0; side < 2 && t->outcome == VAL_BLIND; side++)
    for (size_t i = 0; i < t->cover[side].n; i++)
      t->cover[side].op[i].seen = t->cover[side].op[i].taken;
  for (int side = 0; side < 2 && !c && t->outcome == VAL_AGREE && l->unproved; side++)
    c = val_observe(l->e, side ? r->rhs : r->lhs, bind, side ? t->rhs : t->lhs, &l->cover[side],
                    &t->cover[!side], &t->cover[side], &l->work, err);
  for (int side = 0; side < 2 && !c; side++) val_cover_add(&all[side], &t->cover[side]);
  return c;
}

/* Try a sample, and count what it shows. */
static iso_code weigh(ladder *l, const rule *r, unsigned k, unsigned kind, rule_tensor *const *bind,
                      rule_verdict *out, bool *refuted, val_trial *t, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  iso_code c =
      val_try(l->e, r, bind, &l->rng, o->rel_tol, l->strict || l->unproved, l->strict, t, err);
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
  l->guarded |= t->guarded;
  if (kind == VAL_AXES && t->outcome == VAL_DIFFER && t->what == 'v') {
    l->cut = true;
    t->outcome = VAL_BLIND;
  }
  switch (t->outcome) {
  case VAL_AGREE:
    l->good++;
    if (kind < VAL_ALL_KINDS) l->worked[kind]++;
    if (t->max_rel > l->max_rel) l->max_rel = t->max_rel;
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
    *refuted = true;
    describe(t, k, out);
    if (l->witness != NULL) c = val_witness_take(l->witness, &l->problem, r, bind, t, err);
    break;
  }
  return c;
}

/* Sample `k` on an instance. Returns: in `refuted` whether it is a counterexample. */
static iso_code sample_once(ladder *l, const rule *r, unsigned k, unsigned kind, rule_verdict *out,
                            bool *refuted, iso_error *err) {
  rule_tensor *bind[VAL_MAX_VARS] = {NULL};
  val_trial t = {0};
  iso_code c = val_sample(l->e, r, l->example, &l->rng, kind,
                          kind < VAL_SPREAD && k >= l->first && k % 3 == 0, bind, err);
  if (!c) c = weigh(l, r, k, kind, bind, out, refuted, &t, err);
  val_trial_fini(&t);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return c;
}

/* After all kinds have had their turn: one that counted before, more often than not. */
static unsigned choose_kind(ladder *l, unsigned k) {
  /* What all kinds were looked at for coarsely, before the proof, and was not quite equal. */
  const bool again = l->unproved && !l->strict && l->max_rel > STRICT_REL && k < 2 * l->first;
  if (k < l->first || again) return k % VAL_KINDS;
  const unsigned any = (unsigned)iso_rng_below(&l->rng, VAL_ALL_KINDS);
  if (l->good >= LEAST_SAMPLES || l->outside <= l->good || iso_rng_below(&l->rng, 4) == 0)
    return any;
  for (unsigned i = 0; i < VAL_ALL_KINDS; i++)
    if (l->worked[(any + i) % VAL_ALL_KINDS]) return (any + i) % VAL_ALL_KINDS;
  return any;
}

/* The same on an instance of its own. */
static iso_code sample_instance(ladder *l, unsigned k, unsigned kind, rule_verdict *out,
                                bool *refuted, iso_error *err) {
  if (!l->problem.open) return sample_once(l, l->r, k, kind, out, refuted, err);
  /* Every value must lie in the domains: few values do so by chance. */
  l->problem.roomy = l->outside <= l->good + 4 && k % 2 == 1;
  l->problem.max_size = l->outside > 2 * l->good + 4 ? 1 + (int64_t)(k % 2) : 6;
  if (l->problem.pinned) l->problem.roomy = false, l->problem.max_size = 3;
  iso_arena a = {0};
  rule r;
  bool found = false;
  char why[200] = "";
  iso_code c = val_find_instance(l->e, &l->problem, &l->rng, &a, &r, &found, why, err);
  if (!c && found) c = sample_once(l, &r, k, kind, out, refuted, err);
  /* Exchanged bounds show where a number stands at one of them: the two come together by no chance.
   */
  if (!c && found && !*refuted && l->strict && l->unproved && l->problem.twisted)
    c = sample_once(l, &r, k, VAL_AT, out, refuted, err);
  if (!c && !found) {
    l->no_instance++;
    l->failed++;
    if (why[0]) snprintf(l->last_error, sizeof l->last_error, "%s", why);
  }
  iso_arena_fini(&a);
  return c;
}

/* A literal of a rule file is the double that stands there, unless the rule says otherwise: a proof
 * that read 0.1 as 1/10, or 1.4142135623730951 as the root of 2, is of another rule. */
static iso_code as_written(const ladder *l, rule_verdict *proof, iso_error *err) {
  if (proof->status != RULE_PROVED || !(proof->rests_on & RULE_RESTS_ON_LITERALS)) return ISO_OK;
  iso_code c = val_prove_as_written(l->given, val_engine_schemas(l->e), val_engine_options(l->e),
                                    proof, err);
  if (!c && proof->status != RULE_PROVED)
    snprintf(proof->reason, sizeof proof->reason,
             "proved only with literals read as the numbers that they stand for");
  return c;
}

/* ---- the ladder ---- */

/* Whether a sample costs more than most proofs: a table of words, the matrices of a real model. */
static bool heavy(const rule *r) {
  enum { ELEMENTS = 1 << 20 };
  int64_t all = 0;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    int64_t n = 1;
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind != RULE_INT ||
          __builtin_mul_overflow(n, r->var[i].dim[d]->u.i, &n))
        return false;
    if (__builtin_add_overflow(all, n, &all)) return true;
  }
  return all > ELEMENTS;
}

/* Whether shapes of variables leave sizes or ranks open. */
static rule_scope tested_scope(const rule *r) {
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (r->var[i].any_shape || r->var[i].leading) return RULE_THESE_RANKS;
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind != RULE_INT) return RULE_THESE_RANKS;
  }
  return RULE_THESE_SHAPES;
}

static const char *gap(const ladder *l) {
  return val_cover_gap(&l->cover[0], &l->cover[1], l->unproved);
}

/* An operator that was 0 wherever it was looked at. */
static const char *always_zero(const ladder *l) {
  const char *name = val_zeros_gap(&l->cover[0].zeros, &l->cover[1].zeros);
  return name ? name : val_zeros_gap(&l->cover[1].zeros, &l->cover[0].zeros);
}

static void conclude(const ladder *l, rule_verdict *out, const rule_verdict *proof, bool refuted) {
  out->n_samples = l->good;
  out->max_rel = l->max_rel;
  if (refuted) {
    out->status = RULE_REFUTED;
  } else if (proof->status == RULE_PROVED) {
    out->status = RULE_PROVED;
    out->scope = proof->scope;
    out->method = proof->method;
    out->rests_on = proof->rests_on;
    out->n_relative = proof->n_relative;
    memcpy(out->relative_to, proof->relative_to, sizeof out->relative_to);
  } else if (l->good >= LEAST_SAMPLES && val_rests_on_literals(l->r)) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ in numbers that samples cannot tell apart");
  } else if (l->good >= LEAST_SAMPLES && val_reads_apart(l->r)) {
    snprintf(out->reason, sizeof out->reason,
             "each side reads a variable that the other does not, and samples do not show that "
             "neither matters");
  } else if (l->good >= LEAST_SAMPLES && l->settled && l->sure < LEAST_SURE) {
    snprintf(out->reason, sizeof out->reason,
             "only %u of %u samples are free of sums that lose what is added to them", l->sure,
             l->settled);
  } else if (l->good >= LEAST_SAMPLES && gap(l)) {
    snprintf(out->reason, sizeof out->reason,
             "no sample showed both sides of %.60s, and where it jumps", gap(l));
  } else if (l->good >= LEAST_SAMPLES && always_zero(l)) {
    snprintf(out->reason, sizeof out->reason, "%.60s was 0 on every sample", always_zero(l));
  } else if (l->good >= LEAST_SAMPLES && l->guarded) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ where a number on the way to them is undefined");
  } else if (l->good >= LEAST_SAMPLES && l->parted) {
    snprintf(out->reason, sizeof out->reason,
             "no sample showed two conditions that meet both together and apart");
  } else if (l->good >= LEAST_SAMPLES && l->ties) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ where numbers are equal, and an operator leaves open which of them "
             "comes first");
  } else if (l->good >= LEAST_SAMPLES && l->cut) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ on a branch cut, where the sign of a zero decides");
  } else if (l->good >= LEAST_SAMPLES && l->doubt) {
    snprintf(out->reason, sizeof out->reason,
             "a sample differs by more than a kernel in few bits explains");
  } else if (l->good >= LEAST_SAMPLES) {
    out->status = RULE_TESTED;
    out->scope = tested_scope(l->r);
    out->method = RULE_BY_TESTS;
    if (l->coarse > 0) out->rel_tol = out->within = l->coarse;
    snprintf(out->reason, sizeof out->reason, "%s", proof->reason);
  } else if (l->failed && l->failed >= l->outside) {
    snprintf(out->reason, sizeof out->reason, "could not be run: %.200s", l->last_error);
  } else if (l->outside > l->blind) {
    snprintf(out->reason, sizeof out->reason, "%u samples lie where both sides are defined",
             l->good);
  } else {
    snprintf(out->reason, sizeof out->reason, "only %u samples show anything", l->good);
  }
}

/* A rule speaks of where both of its sides are defined. Between two graphs it must not join what is
 * 0/0 with a number either, whether it was found or given: each variable that may be at a pole is
 * zero once. */
static iso_code sample_poles(ladder *l, rule_verdict *out, bool *refuted, iso_error *err) {
  iso_code c = ISO_OK;
  bool at[VAL_MAX_VARS] = {false};
  const bool left = val_poles(l->r->lhs, false, at), right = val_poles(l->r->rhs, false, at);
  if (!left && !right) return ISO_OK;
  for (unsigned k = 0;
       k <= l->r->n_vars && !*refuted && !c && !val_stopped(val_engine_options(l->e)); k++)
    if (k == 0 || (at[k - 1] && l->r->var[k - 1].kind == 'f'))
      c = sample_instance(l, k, VAL_POLE + k, out, refuted, err);
  return c;
}

/* ---- samples made for what nothing has shown ---- */

typedef struct search {
  ladder *l;
  rule_verdict *out;
  bool *refuted;
} search;

/* Whether the truth value of one element of `op` moves its side on this sample. */
static iso_code shows(ladder *l, const rule *r, rule_tensor *const *bind, int side,
                      const val_covered *op, int64_t element, const val_trial *t, bool *yes,
                      iso_error *err) {
  *yes = false;
  if (t->outcome != VAL_AGREE || t->unmet) return ISO_OK;
  return val_observe_one(l->e, side ? r->rhs : r->lhs, bind, side ? t->rhs : t->lhs, op->at,
                         element, yes, &l->work, err);
}

/* A root that no integer meets, from its other side. */
static iso_code weigh_beyond(search *s, const rule *r, rule_tensor **bind, int side,
                             const val_covered *op, const val_root *root, bool *yes,
                             iso_error *err) {
  val_trial t = {0};
  rule_tensor *was = bind[root->var];
  bind[root->var] = root->beyond;
  iso_code c = weigh(s->l, r, 0, VAL_ALL_KINDS, bind, s->out, s->refuted, &t, err);
  if (!c) c = shows(s->l, r, bind, side, op, root->element, &t, yes, err);
  bind[root->var] = was;
  val_trial_fini(&t);
  return c;
}

/* Whether the same element's truth value shows beside the root. Where it does not, that it shows
 * nothing at the root says nothing. */
static iso_code shows_beside(ladder *l, const rule *r, rule_tensor **bind, int side,
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
static iso_code note_met(search *s, const rule *r, rule_tensor **bind, int side, val_covered *o,
                         uint16_t bit, const val_root *root, const val_trial *t, iso_error *err) {
  ladder *l = s->l;
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
  search *s = ctx;
  ladder *l = s->l;
  val_trial t = {0};
  bool here = false, there = false;
  iso_code c = weigh(l, r, 0, VAL_ALL_KINDS, bind, s->out, s->refuted, &t, err);
  if (!c && root->across && !*s->refuted)
    c = shows(l, r, bind, side, op, root->element, &t, &here, err);
  if (!c && here) c = weigh_beyond(s, r, bind, side, op, root, &there, err);
  val_covered *o = val_cover_at(&l->cover[side], op);
  if (!c && o && here && there) o->seen |= bit, o->n_met++;
  if (!c && o && !root->across && !*s->refuted && (bit == VAL_MEET || bit == VAL_EDGE))
    c = note_met(s, r, bind, side, o, bit, root, &t, err);
  *stop = *s->refuted || val_stopped(val_engine_options(l->e));
  val_trial_fini(&t);
  return c;
}

static iso_code seek_instance(ladder *l, search *s, iso_error *err) {
  const val_seeker who = {weigh_made, s};
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

static iso_code seek_branches(ladder *l, rule_verdict *out, bool *refuted, iso_error *err) {
  enum { INSTANCES = 3 };
  search s = {l, out, refuted};
  const uint32_t failed = l->failed;
  iso_code c = ISO_OK;
  for (int k = 0; k < (l->problem.open ? INSTANCES : 1) && !c && !*refuted &&
                  !val_stopped(val_engine_options(l->e));
       k++)
    if (k == 0 || gap(l)) c = seek_instance(l, &s, err);
  l->failed = failed;
  return c;
}

/* ---- what is rare ---- */

static iso_code weigh_rare(void *ctx, const rule *r, rule_tensor **bind, bool *agree, bool *stop,
                           iso_error *err) {
  search *s = ctx;
  val_trial t = {0};
  const iso_code c = weigh(s->l, r, 0, VAL_ALL_KINDS, bind, s->out, s->refuted, &t, err);
  *agree = t.outcome == VAL_AGREE;
  *stop = *s->refuted || val_stopped(val_engine_options(s->l->e));
  val_trial_fini(&t);
  return c;
}

/* On an instance of its own. A rule of a file is about all numbers, those beyond a mask too. */
static iso_code sample_rare(ladder *l, rule_verdict *out, bool *refuted, iso_error *err) {
  enum { DEAR = 4 };
  search s = {l, out, refuted};
  const val_watcher who = {weigh_rare, &s};
  const uint32_t failed = l->failed;
  iso_arena a = {0};
  rule r = *l->r;
  bool found = true;
  char why[200] = "";
  iso_code c = ISO_OK;
  l->problem.roomy = true;
  if (l->problem.open) c = val_find_instance(l->e, &l->problem, &l->rng, &a, &r, &found, why, err);
  if (!c && found)
    c = val_rare(l->e, &r, l->example, l->strict, heavy(&r) ? DEAR : 1, &l->rng, &who, &l->parted,
                 err);
  iso_arena_fini(&a);
  l->failed = failed;
  return c;
}

/* Rows that are longer than the rule's windows, slices and thresholds. */
static iso_code sample_sizes(ladder *l, unsigned k, rule_verdict *out, bool *refuted,
                             iso_error *err) {
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
    for (int s = 0; s < 2 && l->good == good && !*refuted && !c; s++)
      if (!val_stopped(val_engine_options(l->e)))
        c = sample_instance(l, k, kinds[s], out, refuted, err);
  }
  l->problem.pinned = 0;
  l->failed = failed;
  return c;
}

/* Complex numbers on the axes. */
static iso_code sample_axes(ladder *l, unsigned k, rule_verdict *out, bool *refuted,
                            iso_error *err) {
  enum { SAMPLES = 12 };
  iso_code c = ISO_OK;
  bool any = false;
  for (uint32_t i = 0; i < l->r->n_vars; i++) any |= l->r->var[i].kind == 'c';
  for (unsigned s = 0; s < SAMPLES && any && !l->cut && !*refuted && !c; s++)
    if (!val_stopped(val_engine_options(l->e)))
      c = sample_instance(l, k + s, VAL_AXES, out, refuted, err);
  return c;
}

static iso_code climb(ladder *l, rule_verdict *out, bool *refuted, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  rule_verdict proof = {0};
  iso_code c = ISO_OK;
  unsigned k = 0;
  rule_schemas *schemas = val_engine_schemas(l->e);
  if (!l->strict &&
      l->problem.open) { /* a known rule: its instances are sought only where there is no proof */
    c = val_prove(l->given, schemas, o, &proof, err);
    if (!c && proof.status == RULE_PROVED && !(c = sample_poles(l, out, refuted, err)))
      conclude(l, out, &proof, *refuted);
    if (c || proof.status == RULE_PROVED) return c;
  }
  const unsigned early = !l->strict && heavy(l->r)
                             ? 1
                             : l->first; /* what is wrong shows on the first sample nearly always */
  for (; k < early && !*refuted && !c && l->failed < MAX_FAILED && !val_stopped(o); k++)
    c = sample_instance(l, k, choose_kind(l, k), out, refuted, err);
  val_truth possible = VAL_OPEN;
  if (!c && l->problem.open && l->no_instance && l->no_instance == l->failed && l->good == 0)
    c = val_ask_names(&l->problem, o->z3_rlimit, &possible, err);
  if (!c && possible == VAL_FALSE) {
    snprintf(out->reason, sizeof out->reason, "rejected: nothing meets the conditions");
    return ISO_OK; /* vacuous: a proof of it would say nothing */
  }
  if (!c && !l->strict && !*refuted) c = sample_poles(l, out, refuted, err);
  /* A clamp or a threshold that no sample has passed is dead as far as was seen: what is wrong
   * there shows sooner than a proof fails. */
  for (unsigned n = 0; !l->strict && early == l->first && l->good > 0 && n < VAL_SPREADS &&
                       gap(l) && !*refuted && !c && !val_stopped(o);
       n++)
    c = sample_instance(l, l->first + n, VAL_SPREAD + n, out, refuted, err);
  if (!c && !*refuted)
    c = l->general ? val_generalise(l->given, schemas, o, l->arena, l->general, &proof, err)
                   : val_prove(l->given, schemas, o, &proof, err);
  if (!c && !*refuted && l->strict && !l->r->reads_literals) c = as_written(l, &proof, err);
  const bool proved = !c && !*refuted && proof.status == RULE_PROVED;
  l->unproved = true;
  for (; !proved && k < l->first && !*refuted && !c && l->failed < MAX_FAILED && !val_stopped(o);
       k++)
    c = sample_instance(l, k, choose_kind(l, k), out, refuted, err);
  const uint32_t integers = val_samples_wanted(l->r),
                 plain = integers > o->n_samples ? integers : o->n_samples;
  const uint32_t least = l->strict ? o->least_samples : 0, needed = proved      ? 0
                                                                    : l->strict ? 2 * plain
                                                                                : plain;
  const uint32_t enough = needed > least ? needed : least;
  const unsigned want = (l->strict ? 4 : 2) * enough;
  for (; k < want && !*refuted && !c && l->good < enough && l->failed < MAX_FAILED + 2 * l->good &&
         !val_stopped(o);
       k++)
    c = sample_instance(l, k, choose_kind(l, k), out, refuted, err);
  for (unsigned s = 0;
       !proved && l->soft == 1 && s < VAL_KINDS && !*refuted && !c && !val_stopped(o); s++)
    c = sample_instance(l, k + s, l->soft_kind, out, refuted, err);
  const bool seek = !proved && l->good >= LEAST_SAMPLES;
  for (unsigned s = 0;
       seek && s < VAL_SMALLS && val_has_eps(l->r) && !*refuted && !c && !val_stopped(o); s++)
    c = sample_instance(l, k + s, VAL_SMALL + s, out, refuted, err);
  if (!c && seek && l->strict && l->problem.open && !*refuted)
    c = sample_sizes(l, k, out, refuted, err);
  if (!c && seek && !*refuted) c = sample_axes(l, k, out, refuted, err);
  /* A jump that is seen may be one of those where the sides agree: of halves every other one. So
   * all these kinds are tried. */
  const bool jumps = seek && val_cover_jumps(&l->cover[0], &l->cover[1]);
  for (unsigned s = 0; seek && s < 2 * VAL_SEAMS && (gap(l) || (jumps && s < VAL_SEAMS)) &&
                       !*refuted && !c && !val_stopped(o);
       s++)
    c = sample_instance(l, k + s, VAL_SEAM + s % VAL_SEAMS, out, refuted, err);
  for (unsigned s = 0; seek && s < VAL_SPREADS && gap(l) && !*refuted && !c && !val_stopped(o); s++)
    c = sample_instance(l, k + s, VAL_SPREAD + s, out, refuted, err);
  if (!c && seek && !*refuted && !val_stopped(o) && (jumps || gap(l)))
    c = seek_branches(l, out, refuted, err);
  if (!c && seek && !*refuted && !val_stopped(o)) c = sample_rare(l, out, refuted, err);
  if (!c && !*refuted && l->strict)
    for (int side = 0; side < 2; side++) val_cover_excuse(&l->cover[side], &l->undefined[side]);
  if (c) return c;
  const char *stopped = *refuted || proved ? NULL : val_stopped(o);
  if (stopped) {
    snprintf(out->reason, sizeof out->reason, "%s", stopped);
    return ISO_OK;
  }
  conclude(l, out, &proof, *refuted);
  char how[RULE_METHOD_TEXT];
  if (*refuted && proved)
    return iso_fail(err, ISO_INTERNAL, "rule %s was proved (%s) and a sample refutes it: %s",
                    l->r->name, rule_verdict_method(&proof, how), out->reason);
  return ISO_OK;
}

/* The operator of `t` that draws random numbers: such a term is no function of its variables, and
 * its samples show nothing. NULL: none. */
static const char *draws(rule_schemas *s, const rule_term *t) {
  if (t->kind == RULE_OP && rule_draws(s, t)) return t->u.s;
  for (uint32_t i = 0; i < t->n; i++) {
    const char *op = draws(s, t->child[i]);
    if (op) return op;
  }
  return NULL;
}

/* l->r and its examples in canonical form. */
static iso_code spell_out(ladder *l, iso_arena *a, rule *canonical, rule_tensor **example,
                          uint64_t *stream, iso_error *err) {
  uint32_t from[VAL_MAX_VARS];
  l->given = l->r;
  if (l->r->n_vars > VAL_MAX_VARS) return ISO_OK; /* too large, as is said where it is looked at */
  iso_code c = rule_canonical(a, l->r, canonical, from, stream, err);
  if (c) return c;
  if (!rule_share(a, canonical)) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t i = 0; i < l->r->n_vars; i++) example[i] = l->example ? l->example[from[i]] : NULL;
  l->r = canonical;
  if (l->example) l->example = example;
  return ISO_OK;
}

static iso_code decide(ladder *l, rule_verdict *out, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  *out = (rule_verdict){.status = RULE_UNKNOWN, .seed = o->seed, .rel_tol = o->rel_tol};
  const char *left = draws(val_engine_schemas(l->e), l->r->lhs),
             *op = left ? left : draws(val_engine_schemas(l->e), l->r->rhs);
  if (op) {
    snprintf(out->reason, sizeof out->reason,
             "%.100s draws random numbers: a side is no function of its variables", op);
    return ISO_OK;
  }
  iso_arena a = {0};
  rule canonical;
  rule_tensor *example[VAL_MAX_VARS];
  uint64_t stream = 0;
  iso_code c = spell_out(l, &a, &canonical, example, &stream, err);
  if (!c) c = val_problem_init(&l->problem, l->r, val_engine_schemas(l->e), err);
  if (c == ISO_UNSUPPORTED) {
    if (err != NULL) snprintf(out->reason, sizeof out->reason, "%.255s", err->msg);
    c = ISO_OK;
  } else if (!c) {
    /* The stream depends on the rule and not on when it is asked for: the same rule gets the same
     * samples. */
    bool refuted = false;
    l->rng = iso_rng_new(o->seed, stream);
    c = climb(l, out, &refuted, err);
    if (!c && refuted && l->witness != NULL)
      c = val_witness_shrink(l->e, l->witness, &l->problem, &l->rng, l->strict, err);
    if (!c && refuted && l->witness != NULL && l->witness->found)
      val_witness_describe(l->witness, out);
  }
  val_problem_fini(&l->problem);
  iso_arena_fini(&a);
  return c;
}

iso_code val_decide(val_engine *e, const rule *r, rule_tensor *const *example, rule_verdict *out,
                    iso_error *err) {
  ladder l = {.e = e, .r = r, .example = example, .first = VAL_KINDS, .work = WORK};
  return decide(&l, out, err);
}

iso_code val_decide_general(val_engine *e, const rule *r, rule_tensor *const *example, iso_arena *a,
                            rule *general, rule_verdict *out, iso_error *err) {
  ladder l = {.e = e,
              .r = r,
              .example = example,
              .first = VAL_KINDS,
              .work = WORK,
              .general = general,
              .arena = a};
  *general = *r;
  return decide(&l, out, err);
}

iso_code val_check(val_engine *e, const rule *r, val_finding *out, iso_error *err) {
  *out = (val_finding){0};
  ladder l = {.e = e,
              .r = r,
              .strict = true,
              .first = STRICT_ROUNDS * VAL_KINDS,
              .work = WORK,
              .witness = &out->witness};
  iso_code c = decide(&l, &out->verdict, err);
  if (!c && (out->verdict.status == RULE_PROVED || out->verdict.status == RULE_TESTED))
    c = val_float_class(e, r, &out->float_class, err);
  if (c) val_finding_free(out);
  return c;
}

/* ---- as a rule_oracle ---- */

static iso_code oracle_call(void *ctx, const rule_term *call, rule_tensor *const *bind,
                            bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                            iso_error *err) {
  return val_call(ctx, call, bind, float64 ? VAL_FLOAT64 : 0, out, cap, n_out, err);
}

static rule_diff oracle_compare(void *ctx, const rule_tensor *a, const rule_tensor *b,
                                double rel_tol) {
  (void)ctx;
  /* Views of one value, and values computed in the same way. */
  if (rule_tensor_same_bytes(a, b)) return (rule_diff){.equal = true, .index = -1};
  rel_tol = fmax(rel_tol, fmax(a->coarse, b->coarse));
  /* A slice that is zero but for rounding must not be compared with itself: its neighbours give the
   * scale. */
  const val_diff d = val_compare(a, b, rel_tol, 64 * 0x1p-52 * largest(a));
  return (rule_diff){d.equal, d.max_abs, d.max_rel, d.index};
}

static iso_code oracle_decide(void *ctx, const rule *r, rule_tensor *const *example,
                              rule_verdict *out, iso_error *err) {
  return val_decide(ctx, r, example, out, err);
}

static iso_code oracle_generalise(void *ctx, const rule *r, rule_tensor *const *example,
                                  iso_arena *a, rule *general, rule_verdict *out, iso_error *err) {
  return val_decide_general(ctx, r, example, a, general, out, err);
}

static iso_code oracle_certify(void *ctx, const rule *r, size_t *n, char *why, iso_error *err) {
  val_certificate k = {0};
  iso_code c = val_certify(r, val_engine_schemas(ctx), val_engine_options(ctx), false, &k, err);
  *n = k.n;
  snprintf(why, 200, "%s", k.reason[0] ? k.reason : "no obligation could be written");
  val_certificate_free(&k);
  return c;
}

rule_oracle val_oracle(val_engine *e) {
  return (rule_oracle){.ctx = e,
                       .call = oracle_call,
                       .compare = oracle_compare,
                       .decide = oracle_decide,
                       .generalise = oracle_generalise,
                       .certify = oracle_certify,
                       .same_numbers = val_same_numbers};
}
