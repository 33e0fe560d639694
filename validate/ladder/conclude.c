/* The verdict from samples and proof, with its reason. */
#include <stdio.h>
#include <string.h>

#include "validate/ladder/ladder.h"

enum { LEAST_SURE = 4 };

bool val_heavy(const rule *r) {
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

const char *val_ladder_gap(const val_ladder *l) {
  return val_cover_gap(&l->cover[0], &l->cover[1], l->unproved);
}

/* An operator that was 0 wherever it was looked at. */
static const char *always_zero(const val_ladder *l) {
  const char *name = val_zeros_gap(&l->cover[0].zeros, &l->cover[1].zeros);
  return name ? name : val_zeros_gap(&l->cover[1].zeros, &l->cover[0].zeros);
}

static void say_too_few(const val_ladder *l) {
  rule_verdict *out = l->out;
  if (l->failed && l->failed >= l->outside)
    snprintf(out->reason, sizeof out->reason, "could not be run: %.200s", l->last_error);
  else if (l->outside > l->blind)
    snprintf(out->reason, sizeof out->reason, "%u samples lie where both sides are defined",
             l->good);
  else snprintf(out->reason, sizeof out->reason, "only %u samples show anything", l->good);
}

/* Names the facts that no sample showed. False: nothing is missing. */
static bool say_unshown(const val_ladder *l) {
  char *why = l->out->reason;
  const size_t n = sizeof l->out->reason;
  if (val_unmoved(l)) snprintf(why, n, "no sample showed what %.60s does", val_unmoved(l));
  else if (val_ladder_gap(l))
    snprintf(why, n, "no sample showed both sides of %.60s, and where it jumps", val_ladder_gap(l));
  else if (always_zero(l)) snprintf(why, n, "%.60s was 0 on every sample", always_zero(l));
  else if (l->parted)
    snprintf(why, n, "no sample showed two conditions that meet both together and apart");
  else return false;
  return true;
}

static void say_tested(const val_ladder *l, const rule_verdict *proof) {
  rule_verdict *out = l->out;
  out->status = RULE_TESTED;
  out->scope = tested_scope(l->r);
  out->method = RULE_BY_TESTS;
  if (l->wraps) out->rests_on |= RULE_RESTS_ON_WHOLE;
  if (l->coarse > 0) out->rel_tol = out->within = l->coarse;
  snprintf(out->reason, sizeof out->reason, "%s", proof->reason);
}

void val_conclude(const val_ladder *l, const rule_verdict *proof) {
  rule_verdict *out = l->out;
  out->n_samples = l->good;
  out->max_rel = l->max_rel;
  out->rests_on = l->strict && l->apart ? RULE_RESTS_ON_NUMBERS : 0;
  if (l->refuted) {
    out->status = RULE_REFUTED;
    if (l->none && proof->status == RULE_PROVED) out->rests_on |= RULE_RESTS_ON_NUMBERS;
  } else if (proof->status == RULE_PROVED) {
    out->status = proof->status;
    out->scope = proof->scope;
    out->method = proof->method;
    out->rests_on |= proof->rests_on;
    out->n_relative = proof->n_relative;
    memcpy(out->relative_to, proof->relative_to, sizeof out->relative_to);
  } else if (l->good >= VAL_LEAST_SAMPLES && l->whole) {
    snprintf(out->reason, sizeof out->reason,
             "the sides are equal where integers do not wrap, and these may");
  } else if (l->good >= VAL_LEAST_SAMPLES && val_rests_on_literals(l->r)) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ in numbers that samples cannot tell apart");
  } else if (l->good >= VAL_LEAST_SAMPLES && val_reads_apart(l->r)) {
    snprintf(out->reason, sizeof out->reason,
             "each side reads a variable that the other does not, and samples do not show that "
             "neither matters");
  } else if (l->good >= VAL_LEAST_SAMPLES && val_beyond_sizes(&l->problem)) {
    snprintf(out->reason, sizeof out->reason, "no sample has sizes as large as %lld",
             (long long)val_beyond_sizes(&l->problem));
  } else if (l->good >= VAL_LEAST_SAMPLES && val_unlooked(l->r)) {
    snprintf(out->reason, sizeof out->reason,
             "%.60s has no definition, and where it jumps or is bounded is not known",
             val_unlooked(l->r));
  } else if (l->good >= VAL_LEAST_SAMPLES && l->settled && l->sure < LEAST_SURE) {
    snprintf(out->reason, sizeof out->reason,
             "only %u of %u samples are free of sums that lose what is added to them", l->sure,
             l->settled);
  } else if (l->good >= VAL_LEAST_SAMPLES && say_unshown(l)) {
    /* said */
  } else if (l->good >= VAL_LEAST_SAMPLES && (l->guarded || l->masked)) {
    snprintf(out->reason, sizeof out->reason, "the sides differ where %s",
             l->guarded ? "a number on the way to them is undefined" : "a mask's number overflows");
  } else if (l->good >= VAL_LEAST_SAMPLES && l->ties) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ where numbers are equal, and an operator leaves open which of them "
             "comes first");
  } else if (l->good >= VAL_LEAST_SAMPLES && l->cut) {
    snprintf(out->reason, sizeof out->reason,
             "the sides differ on a branch cut, where the sign of a zero decides");
  } else if (l->good >= VAL_LEAST_SAMPLES && l->doubt) {
    snprintf(out->reason, sizeof out->reason,
             "a sample differs by more than a kernel in few bits explains");
  } else if (l->good >= VAL_LEAST_SAMPLES) {
    say_tested(l, proof);
  } else say_too_few(l);
}
