/* The ladder for one candidate: pre-check, refute on samples, prove, test; and the same as the
 * rule_oracle that a search asks. How samples are weighed is validate/ladder/'s. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/inside.h"
#include "validate/ladder/ladder.h"
#include "validate/prove/prove.h"

enum { STRICT_ROUNDS = 3, MAX_FAILED = 8, WORK = 100000000, ENDS = 24 };

/* ---- the ladder ---- */

/* A literal of a rule file is the double that stands there, unless the rule says otherwise: a proof
 * that read 0.1 as 1/10, or 1.4142135623730951 as the root of 2, is of another rule. */
static iso_code as_written(const val_ladder *l, rule_verdict *proof, iso_error *err) {
  if (proof->status != RULE_PROVED || !(proof->rests_on & RULE_RESTS_ON_LITERALS)) return ISO_OK;
  val_options o = *val_engine_options(l->e);
  o.whole = proof->rests_on & RULE_RESTS_ON_WHOLE;
  iso_code c = val_prove_as_written(l->given, val_engine_schemas(l->e), &o, proof, err);
  if (!c && proof->status != RULE_PROVED)
    snprintf(proof->reason, sizeof proof->reason,
             "proved only with literals read as the numbers that they stand for");
  return c;
}

/* Whether another sample may still show something. */
static bool going(const val_ladder *l) {
  return !l->refuted && !val_stopped(val_engine_options(l->e));
}

/* A wrong rule shows on the first samples nearly always. `vacuous`: nothing meets the conditions,
 * and a proof of it would say nothing. */
static iso_code sample_early(val_ladder *l, unsigned early, unsigned *k, bool *vacuous,
                             iso_error *err) {
  val_truth possible = VAL_OPEN;
  iso_code c = ISO_OK;
  for (; *k < early && !c && l->failed < MAX_FAILED && going(l); ++*k)
    c = val_sample_instance(l, *k, val_choose_kind(l, *k), err);
  if (!c && l->problem.open && l->no_instance && l->no_instance == l->failed && l->good == 0)
    c = val_ask_names(&l->problem, val_engine_options(l->e)->z3_rlimit, &possible, err);
  *vacuous = !c && possible == VAL_FALSE;
  if (*vacuous)
    snprintf(l->out->reason, sizeof l->out->reason, "rejected: nothing meets the conditions");
  if (!c && !*vacuous && !l->strict && !l->refuted) c = val_sample_poles(l, err);
  /* A clamp or a threshold that no sample has passed is dead as far as was seen: a fault there
   * shows sooner than a proof fails. */
  for (unsigned n = 0; !c && !*vacuous && !l->strict && early == l->first && l->good > 0 &&
                       n < VAL_SPREADS && val_ladder_gap(l) && going(l);
       n++)
    c = val_sample_instance(l, l->first + n, VAL_SPREAD + n, err);
  return c;
}

static iso_code decide(val_ladder *l, rule_verdict *out, iso_error *err);

/* A candidate whose sides are undefined together at the sizes and numbers where it was found may
 * part from itself at others: a divisor that a literal keeps away from 0, a row of a mask. */
static iso_code undefined_together(void *ctx, const rule *r, bool *yes, iso_error *err) {
  enum { INSTANCES = 4 };
  const val_ladder *l = ctx;
  bool at[RULE_MAX_VARS] = {false};
  const bool left = val_poles(r->lhs, false, at), right = val_poles(r->rhs, false, at);
  *yes = true;
  if (!left && !right) return ISO_OK;
  rule_verdict v;
  val_ladder own = {
      .e = l->e, .r = r, .seed = l->seed, .first = VAL_KINDS, .work = WORK, .poles = INSTANCES};
  iso_code c = decide(&own, &v, err);
  *yes = !own.refuted;
  return c;
}

static bool has_integers(const rule *r) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].kind == 'i') return true;
  return false;
}

/* A rule that holds at most sizes may say nothing at these: at a width of 4 alone a quotient by
 * sum(softmax(x) - 1/4) has no value. */
static iso_code defined_here(const val_ladder *l, bool *yes, rule_verdict *proof, iso_error *err) {
  rule_verdict here = {0};
  bool at[RULE_MAX_VARS] = {false};
  *yes = true;
  if (!val_poles(l->r->lhs, false, at) && !val_poles(l->r->rhs, false, at)) return ISO_OK;
  const iso_code c =
      val_prove(l->given, val_engine_schemas(l->e), val_engine_options(l->e), &here, err);
  *yes = c || here.status == RULE_PROVED || strcmp(here.reason, SC_NOWHERE) != 0;
  if (!*yes) *proof = here;
  return c;
}

/* As general as it is proved; where that is undefined on one side alone, as general as it is not.
 * The first costs instances of one rule, the second of each that is tried. */
static iso_code prove_general(val_ladder *l, rule_verdict *proof, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  rule_schemas *schemas = val_engine_schemas(l->e);
  const val_generality proved = {l->arena, NULL, l}, admitted = {l->arena, undefined_together, l};
  bool together = true, here = true;
  iso_code c = val_generalise(l->given, schemas, o, &proved, l->general, proof, err);
  if (!c && proof->status == RULE_PROVED) c = defined_here(l, &here, proof, err);
  if (!here) *l->general = *l->r;
  if (c || !here) return c;
  if (proof->status == RULE_PROVED) c = undefined_together(l, l->general, &together, err);
  if (c || together) return c;
  *l->general = *l->r;
  *proof = (rule_verdict){0};
  return val_generalise(l->given, schemas, o, &admitted, l->general, proof, err);
}

static iso_code prove_whole(const val_ladder *l, rule_verdict *proof, iso_error *err) {
  val_options whole = *val_engine_options(l->e);
  whole.whole = true;
  return val_prove(l->given, val_engine_schemas(l->e), &whole, proof, err);
}

/* A rule of a file may speak of integers that do not wrap, which is then said; a step between two
 * graphs is of those that do. */
static iso_code prove(val_ladder *l, rule_verdict *proof, iso_error *err) {
  iso_code c = l->general ? prove_general(l, proof, err)
                          : val_prove(l->given, val_engine_schemas(l->e), val_engine_options(l->e),
                                      proof, err);
  if (!c && l->strict && proof->status != RULE_PROVED && has_integers(l->r))
    c = prove_whole(l, proof, err);
  if (!c && l->strict && !l->r->reads_literals) c = as_written(l, proof, err);
  return c;
}

/* A rule that holds for integers that do not wrap, and is not proved for those that do, nearly
 * always fails of one of these: few of them show it (6 x = 12 has two solutions among 2^64), and
 * samples that agree say nothing. */
static iso_code ask_whole(val_ladder *l, iso_error *err) {
  rule_verdict proof = {0};
  if (l->strict || l->refuted || !has_integers(l->r)) return ISO_OK;
  const iso_code c = prove_whole(l, &proof, err);
  l->whole = !c && proof.status == RULE_PROVED && (proof.rests_on & RULE_RESTS_ON_WHOLE);
  return c;
}

/* A rule makes a claim only where its sides and all of their parts are numbers: (x / w) * w = x,
 * and any claim about isnan(x / w). A file's rule is said to rest on that where 0, infinities and
 * the like show the sides apart, where an operator sees a number that may be undefined, or where no
 * sample met one. */
static iso_code ask_numbers(val_ladder *l, iso_error *err) {
  bool together = true;
  for (int side = 0; side < 2; side++) {
    const rule_term *t = side ? l->r->rhs : l->r->lhs;
    together &= !rule_fact_of(t, NULL).seen && rule_tells_overflow(t, NULL) < RULE_TELLS_OVERFLOW;
  }
  const iso_code c = together ? undefined_together(l, l->r, &together, err) : ISO_OK;
  l->apart |= !c && !together;
  return c || l->apart ? c : val_seek_origins(l, err);
}

/* As many samples as the verdict takes: few or none for a proved rule. */
static iso_code sample_enough(val_ladder *l, bool proved, unsigned *k, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  const uint32_t integers = val_samples_wanted(l->r),
                 plain = integers > o->n_samples ? integers : o->n_samples;
  const uint32_t least = l->strict ? o->least_samples : 0, needed = proved      ? 0
                                                                    : l->strict ? 2 * plain
                                                                                : plain;
  const uint32_t enough = needed > least ? needed : least;
  const unsigned want = (l->strict ? 4 : 2) * enough;
  iso_code c = ISO_OK;
  for (; !proved && *k < l->first && !c && l->failed < MAX_FAILED && going(l); ++*k)
    c = val_sample_instance(l, *k, val_choose_kind(l, *k), err);
  for (; *k < want && !c && l->good < enough && l->failed < MAX_FAILED + 2 * l->good && going(l);
       ++*k)
    c = val_sample_instance(l, *k, val_choose_kind(l, *k), err);
  for (unsigned s = 0; !proved && l->soft == 1 && s < VAL_KINDS && !c && going(l); s++)
    c = val_sample_instance(l, *k + s, l->soft_kind, err);
  return c;
}

/* Samples that look for where the sides may differ: small numbers, integers that wrap, axes, jumps.
 */
static iso_code sample_sought(val_ladder *l, unsigned k, iso_error *err) {
  iso_code c = ISO_OK;
  for (unsigned s = 0; s < VAL_SMALLS && val_has_eps(l->r) && !c && going(l); s++)
    c = val_sample_instance(l, k + s, VAL_SMALL + s, err);
  if (!c && l->strict && l->problem.open && !l->refuted) c = val_sample_sizes(l, k, err);
  for (unsigned s = 0; s < ENDS && !l->strict && has_integers(l->r) && !c && going(l); s++)
    c = val_sample_instance(l, k + s, VAL_ENDS, err);
  for (unsigned s = 0; s < VAL_ALIKES && val_casts_integers(l->r) && !c && going(l); s++)
    c = val_sample_instance(l, k + s, VAL_ALIKE + s, err);
  if (!c && !l->refuted) c = val_sample_axes(l, k, err);
  /* A jump that is seen may be one of those where the sides agree: of halves every other one. So
   * all these kinds are tried. */
  const bool jumps = val_cover_jumps(&l->cover[0], &l->cover[1]);
  for (unsigned s = 0;
       s < 2 * VAL_SEAMS && (val_ladder_gap(l) || (jumps && s < VAL_SEAMS)) && !c && going(l); s++)
    c = val_sample_instance(l, k + s, VAL_SEAM + s % VAL_SEAMS, err);
  for (unsigned s = 0; s < VAL_SPREADS && val_ladder_gap(l) && !c && going(l); s++)
    c = val_sample_instance(l, k + s, VAL_SPREAD + s, err);
  if (!c && going(l) && (jumps || val_ladder_gap(l))) c = val_seek_branches(l, err);
  if (!c && going(l)) c = val_sample_rare(l, err);
  return c;
}

/* The verdict of samples and proof; a sample that refutes a proof is an internal error. */
static iso_code finish(val_ladder *l, const rule_verdict *proof, bool proved, iso_error *err) {
  const char *stopped = l->refuted || proved ? NULL : val_stopped(val_engine_options(l->e));
  char how[RULE_METHOD_TEXT];
  if (stopped) {
    snprintf(l->out->reason, sizeof l->out->reason, "%s", stopped);
    return ISO_OK;
  }
  val_conclude(l, proof);
  if (l->refuted && proved)
    return iso_fail(err, ISO_INTERNAL, "rule %s was proved (%s) and a sample refutes it: %s",
                    l->r->name, rule_verdict_method(proof, how), l->out->reason);
  return ISO_OK;
}

/* How many samples come before the proof. Those of large tensors cost more than most proofs: there
 * is one, or none where small ones have shown no fault. */
static unsigned samples_first(const val_ladder *l) {
  if (l->strict || !val_heavy(l->r)) return l->first;
  return l->agree_cropped ? 0 : 1;
}

static iso_code climb(val_ladder *l, iso_error *err) {
  rule_verdict proof = {0};
  unsigned k = 0;
  bool vacuous = false;
  iso_code c = ISO_OK;
  if (l->poles) return val_sample_only_poles(l, err);
  if (!l->strict &&
      l->problem.open) { /* a known rule: its instances are sought only where there is no proof */
    c = val_prove(l->given, val_engine_schemas(l->e), val_engine_options(l->e), &proof, err);
    if (!c && proof.status == RULE_PROVED && !(c = val_sample_poles(l, err)))
      val_conclude(l, &proof);
    if (c || proof.status == RULE_PROVED) return c;
  }
  if ((c = val_sample_cropped(l, err))) return c;
  if (l->refuted) return finish(l, &proof, false, err);
  c = sample_early(l, samples_first(l), &k, &vacuous, err);
  if (vacuous) return ISO_OK;
  if (!c && !l->refuted) c = prove(l, &proof, err);
  const bool proved = !c && !l->refuted && proof.status == RULE_PROVED;
  if (!c && l->glance) return finish(l, &proof, proved, err);
  l->unproved = true;
  if (!c) c = sample_enough(l, proved, &k, err);
  if (!c && !proved && l->good >= VAL_LEAST_SAMPLES) c = sample_sought(l, k, err);
  if (!c && !proved && l->good >= VAL_LEAST_SAMPLES) c = ask_whole(l, err);
  if (!c && !l->refuted && l->strict && (proved || l->good >= VAL_LEAST_SAMPLES))
    c = ask_numbers(l, err);
  for (int side = 0; side < 2 && !c && !l->refuted && l->strict; side++)
    val_cover_excuse(&l->cover[side], &l->undefined[side]);
  return c ? c : finish(l, &proof, proved, err);
}

/* ---- deciding ---- */

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
static iso_code spell_out(val_ladder *l, iso_arena *a, rule *canonical, rule_tensor **example,
                          uint64_t *stream, iso_error *err) {
  uint32_t from[RULE_MAX_VARS];
  l->given = l->r;
  if (l->r->n_vars > RULE_MAX_VARS) return ISO_OK; /* too large, as is said where it is looked at */
  iso_code c = rule_canonical(a, l->r, canonical, from, stream, err);
  if (c) return c;
  if (!rule_share(a, canonical)) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t i = 0; i < l->r->n_vars; i++) example[i] = l->example ? l->example[from[i]] : NULL;
  l->r = canonical;
  if (l->example) l->example = example;
  return ISO_OK;
}

static iso_code decide_as_given(val_ladder *l, rule_verdict *out, iso_error *err) {
  const val_options *o = val_engine_options(l->e);
  *out = (rule_verdict){.status = RULE_UNKNOWN, .seed = l->seed, .rel_tol = o->rel_tol};
  const char *left = draws(val_engine_schemas(l->e), l->r->lhs),
             *op = left ? left : draws(val_engine_schemas(l->e), l->r->rhs);
  if (op) {
    snprintf(out->reason, sizeof out->reason,
             "%.100s draws random numbers: a side is no function of its variables", op);
    return ISO_OK;
  }
  l->out = out;
  iso_arena a = {0};
  rule canonical;
  rule_tensor *example[RULE_MAX_VARS];
  uint64_t stream = 0;
  iso_code c = spell_out(l, &a, &canonical, example, &stream, err);
  if (!c) c = val_problem_init(&l->problem, l->r, val_engine_schemas(l->e), err);
  if (c == ISO_UNSUPPORTED) {
    if (err != NULL) snprintf(out->reason, sizeof out->reason, "%.255s", err->msg);
    c = ISO_OK;
  } else if (!c) {
    /* The stream depends on the rule and not on when it is asked for: the same rule gets the same
     * samples. */
    l->rng = iso_rng_new(l->seed, stream);
    c = climb(l, err);
    if (!c && l->refuted && l->counterexample != NULL)
      c = val_counterexample_shrink(l->e, l->counterexample, &l->problem, &l->rng, l->strict, err);
    if (!c && l->refuted && l->counterexample != NULL && l->counterexample->found)
      val_counterexample_describe(l->counterexample, out);
  }
  val_problem_fini(&l->problem);
  iso_arena_fini(&a);
  return c;
}

/* A rule about clamped integers is decided as one about integers of their range. */
static iso_code decide(val_ladder *l, rule_verdict *out, iso_error *err) {
  const rule *given = l->r;
  rule_schemas *schemas = val_engine_schemas(l->e);
  iso_arena own = {0}, *a = l->arena ? l->arena : &own;
  rule inside;
  const bool clamped = val_inside(a, given, &inside);
  if (clamped) l->r = &inside;
  if (clamped && l->general) *l->general = inside;
  iso_code c = decide_as_given(l, out, err);
  if (!c && clamped && l->general) {
    if (out->status != RULE_PROVED) *l->general = *given;
    else if (!val_outside(a, schemas, l->general)) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  iso_arena_fini(&own);
  return c;
}

/* A rule that is tested says nothing of a number that no sample shows. */
static iso_code ask_literals(val_engine *e, const rule *r, rule_tensor *const *example,
                             rule_verdict *out, iso_error *err) {
  iso_arena a = {0};
  val_twin twin = {.found = out->status == RULE_TESTED};
  iso_code c = ISO_OK;
  for (size_t k = 0; !c && twin.found && !val_stopped(val_engine_options(e)); k++) {
    rule_verdict v = {0};
    c = val_literal_twin(&a, val_engine_schemas(e), r, k, &twin, err);
    if (c || !twin.found) break;
    val_ladder l = {.e = e,
                    .r = &twin.r,
                    .seed = val_engine_options(e)->seed,
                    .example = example,
                    .first = VAL_KINDS,
                    .work = WORK};
    c = decide(&l, &v, err);
    if (c || l.refuted || (v.status != RULE_PROVED && l.good < VAL_LEAST_SAMPLES)) continue;
    out->status = RULE_UNKNOWN;
    snprintf(out->reason, sizeof out->reason, "no sample showed what the number %.9g does",
             twin.number);
    twin.found = false;
  }
  iso_arena_fini(&a);
  return c;
}

/* A borderline rule passes on some samples and not on others: a rule that is tested here must also
 * be found tested on samples drawn with another seed. */
static iso_code decide_again(val_engine *e, const rule *r, rule_tensor *const *example,
                             rule_verdict *out, iso_error *err) {
  const val_options *o = val_engine_options(e);
  rule_verdict v = {0};
  if (out->status != RULE_TESTED || !o->other_samples) return ISO_OK;
  val_ladder l = {.e = e,
                  .r = r,
                  .seed = o->seed + o->other_samples,
                  .example = example,
                  .first = VAL_KINDS,
                  .work = WORK};
  const iso_code c = decide(&l, &v, err);
  if (!c && v.status < RULE_TESTED) *out = v;
  return c;
}

iso_code val_decide(val_engine *e, const rule *r, rule_tensor *const *example, rule_verdict *out,
                    iso_error *err) {
  const val_options *o = val_engine_options(e);
  val_ladder l = {
      .e = e, .r = r, .seed = o->seed, .example = example, .first = VAL_KINDS, .work = WORK};
  iso_code c = decide(&l, out, err);
  if (!c) c = ask_literals(e, r, example, out, err);
  return c ? c : decide_again(e, r, example, out, err);
}

/* The same for literal sizes, the rule made general where it is proved (val_generalise): `out` is
 * about `*general`. */
static iso_code oracle_generalise(void *ctx, const rule *r, rule_tensor *const *example,
                                  iso_arena *a, rule *general, rule_verdict *out, iso_error *err) {
  val_engine *e = ctx;
  val_ladder l = {.e = e,
                  .r = r,
                  .seed = val_engine_options(e)->seed,
                  .example = example,
                  .first = VAL_KINDS,
                  .work = WORK,
                  .general = general,
                  .arena = a};
  *general = *r;
  iso_code c = decide(&l, out, err);
  if (!c) c = ask_literals(e, general, example, out, err);
  return c ? c : decide_again(e, general, example, out, err);
}

static iso_code oracle_glance(void *ctx, const rule *r, rule_tensor *const *example, iso_arena *a,
                              rule *general, rule_verdict *out, iso_error *err) {
  val_ladder l = {.e = ctx,
                  .r = r,
                  .seed = val_engine_options(ctx)->seed,
                  .example = example,
                  .first = VAL_KINDS,
                  .work = WORK,
                  .general = general,
                  .arena = a,
                  .glance = true};
  if (general) *general = *r;
  const iso_code c = decide(&l, out, err);
  if (out->status == RULE_TESTED) out->status = RULE_UNKNOWN;
  return c;
}

iso_code val_check(val_engine *e, const rule *r, val_finding *out, iso_error *err) {
  *out = (val_finding){0};
  val_ladder l = {.e = e,
                  .r = r,
                  .seed = val_engine_options(e)->seed,
                  .strict = true,
                  .first = STRICT_ROUNDS * VAL_KINDS,
                  .work = WORK,
                  .counterexample = &out->counterexample};
  iso_code c = decide(&l, &out->verdict, err);
  if (!c) c = ask_literals(e, r, NULL, &out->verdict, err);
  if (!c && (out->verdict.status == RULE_PROVED || out->verdict.status == RULE_TESTED))
    c = val_float_class(e, r, &out->float_class, err);
  if (c) val_finding_free(out);
  return c;
}

iso_code val_undefined_together(val_engine *e, const rule *r, bool *yes, iso_error *err) {
  bool at[RULE_MAX_VARS] = {false};
  rule_verdict v = {0};
  val_ladder l = {.e = e,
                  .r = r,
                  .seed = val_engine_options(e)->seed,
                  .strict = true,
                  .first = STRICT_ROUNDS * VAL_KINDS,
                  .work = WORK};
  *yes =
      r->n_vars <= RULE_MAX_VARS && !val_poles(r->lhs, false, at) && !val_poles(r->rhs, false, at);
  if (*yes) return ISO_OK;
  const iso_code c = decide(&l, &v, err);
  *yes = v.status == RULE_PROVED && !(v.rests_on & RULE_RESTS_ON_NUMBERS);
  return c;
}

/* ---- as a rule_oracle ---- */

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

/* parameters: those of rule_oracle.call. */
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

static iso_code oracle_certify(void *ctx, const rule *r, size_t *n, char *why, iso_error *err) {
  val_obligations k = {0};
  iso_code c =
      val_write_obligations(r, val_engine_schemas(ctx), val_engine_options(ctx), false, &k, err);
  *n = k.n;
  snprintf(why, 200, "%s", k.reason[0] ? k.reason : "no obligation could be written");
  val_obligations_free(&k);
  return c;
}

rule_oracle val_oracle(val_engine *e) {
  return (rule_oracle){.ctx = e,
                       .call = oracle_call,
                       .compare = oracle_compare,
                       .decide = oracle_decide,
                       .glance = oracle_glance,
                       .generalise = oracle_generalise,
                       .certify = oracle_certify,
                       .same_numbers = val_same_numbers};
}
