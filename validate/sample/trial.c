/* One sample: both sides evaluated and compared.
 *
 * Elements are compared one by one against how far rounding could have moved them. A sample that
 * agrees within rel_tol and the floor (64 eps times the largest intermediate value) is accepted at
 * once. Any other is evaluated again with noise in every operator that rounds (probe.c), and
 * differs only where the difference is far larger than the noise made it. So a sum that cancels, or
 * a naive formula, does not refute a rule that is true over the reals, and 1e-12 does where nothing
 * cancels. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/oracle_int.h"

/* A candidate that is wrongly refuted is one that a finer one replaces: two runs do. */
enum { NOISY_RUNS = 8, GROSS_RUNS = 4, CANDIDATE_RUNS = 2, SURE_RUNS = 32 };
static const double noise_factor =
    48; /* of the largest move seen; one move is within 4 eps per operator */
static const double huge_value = 1e30; /* masks' finfo.min lies beyond */
static const double strict_rel = 1e-12;
static const double strict_unfloored =
    1e-11; /* also below the floor: an exponential that a logarithm takes back hides nothing */
static const double underflow =
    1e-318; /* below it a few hundred subnormal roundings are a millionth of a number */

void val_trial_fini(val_trial *t) {
  rule_tensor_unref(t->lhs);
  rule_tensor_unref(t->rhs);
  t->lhs = t->rhs = NULL;
}

static bool same_kind(rule_dtype a, rule_dtype b) {
  return a == b || (rule_dtype_is_float(a) && rule_dtype_is_float(b)) ||
         (rule_dtype_is_complex(a) && rule_dtype_is_complex(b));
}

static bool is_float(const rule_tensor *t) {
  return rule_dtype_is_float(t->dtype) || rule_dtype_is_complex(t->dtype);
}
static int64_t n_numbers(const rule_tensor *t) {
  return rule_dtype_is_complex(t->dtype) ? 2 * t->numel : t->numel;
}
/* Number `i`; the parts of complex numbers lie side by side. */
static double number_of(const rule_tensor *t, int64_t i) {
  return is_float(t) ? ((const double *)t->data)[i] : rule_tensor_get(t, i);
}

/* Whether two numbers differ at first sight. Masks must agree as numbers: -3.4e38 is not minus
 * infinity. */
static bool suspect(double x, double y, double floor, bool strict, double rel_tol) {
  const double d = fabs(x - y), size = fmax(fabs(x), fabs(y));
  /* An intermediate value that underflowed may have been multiplied by the largest one. */
  if (x == y || d <= underflow * fmax(1, floor / (64 * DBL_EPSILON))) return false;
  if (!(size < huge_value)) return isinf(x) || isinf(y) || !(d <= 1e-9 * size);
  if (d > floor && d > (strict ? strict_rel : rel_tol) * size) return true;
  return strict && (d > 1e-6 * size || d > strict_unfloored * fmax(size, 1));
}

/* Both results in one pass. */
typedef struct survey {
  bool nan, suspect;
  bool apart;   /* no number on one side alone */
  double size;  /* largest absolute value below huge_value */
  double worst; /* largest relative difference above the floor */
  double abs;   /* largest difference of suspects */
} survey;

static survey survey_floats(const double *a, const double *b, int64_t n, double floor, bool strict,
                            double rel_tol) {
  survey s = {0};
  for (int64_t i = 0; i < n; i++) {
    const double x = a[i], y = b[i], size = fmax(fabs(x), fabs(y));
    if (size > s.size && size < huge_value) s.size = size;
    if (x == y) continue;
    if (isnan(x) || isnan(y)) s.nan = true, s.apart |= !isnan(x) || !isnan(y);
    else if (suspect(x, y, floor, strict, rel_tol))
      s.suspect = true, s.abs = fmax(s.abs, fabs(x - y));
    else if (fabs(x - y) > floor && size < huge_value) s.worst = fmax(s.worst, fabs(x - y) / size);
  }
  return s;
}

static survey survey_both(const rule_tensor *a, const rule_tensor *b, double floor, bool strict,
                          double rel_tol) {
  if (is_float(a)) return survey_floats(a->data, b->data, n_numbers(a), floor, strict, rel_tol);
  survey s = {0};
  for (int64_t i = 0; i < a->numel && !s.suspect; i++)
    s.suspect = rule_tensor_get_int(a, i) != rule_tensor_get_int(b, i);
  return s;
}

typedef struct noise {
  iso_rng *rng;
  int runs;
  bool far; /* numbers beyond 1e30 are moved, too */
} noise;

/* The bar that a difference has to pass at first sight. */
typedef struct sight {
  double floor; /* absolute, of rounding */
  bool strict;
  double rel_tol;
} sight;

/* How far noise moves each number of a side (`other` is the rule's other one, NULL: of no
 * interest): the largest of some runs, added up in `moved`. The first two lean up and down, so that
 * a step at a tie is stepped over. */
static iso_code add_noise(val_engine *e, const val_shown *side, const rule_term *other,
                          const noise *how, double *moved, bool *tied, iso_error *err) {
  const rule_tensor *plain = side->plain;
  const int runs = how->runs;
  *tied = false;
  const int64_t n = n_numbers(plain);
  double *worst = calloc((size_t)n + 1, sizeof *worst);
  if (worst == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_code code = ISO_OK;
  bool even = false;
  for (int run = 0; run < (even && runs < GROSS_RUNS ? GROSS_RUNS : runs) && !code; run++) {
    val_probe p = {.noise = how->rng,
                   .lean = run == 0   ? 1
                           : run == 1 ? -1
                                      : 0,
                   .blur_all = how->far,
                   .other = other};
    rule_tensor *x = NULL;
    iso_error local;
    code = val_eval_probe(e, side->term, side->bind, &p, &x, &local);
    *tied |= p.tied;
    even |= p.even; /* rounding made them equal if noise at random parts them */
    const bool same = !code && rule_shape_eq(&x->shape, &plain->shape) && x->dtype == plain->dtype;
    for (int64_t i = 0; i < n; i++) {
      /* A side that fails or changes its shape under noise could have been anything. */
      const double d = same ? fabs(number_of(x, i) - number_of(plain, i)) : (double)INFINITY;
      if (!same || (!(d <= worst[i]) && number_of(x, i) != number_of(plain, i)))
        worst[i] = isnan(d) ? (double)INFINITY : d;
    }
    rule_tensor_unref(x);
    if (code && code != ISO_NOMEM) code = ISO_OK;
  }
  for (int64_t i = 0; i < n; i++) moved[i] += worst[i];
  free(worst);
  return code == ISO_NOMEM ? iso_fail(err, code, "out of memory") : ISO_OK;
}

static void note_difference(val_trial *t, int64_t i, double x, double y, double *best) {
  const double d = fabs(x - y), size = fmax(fabs(x), fabs(y)),
               rel = size > 0 && isfinite(d) ? d / size : (double)INFINITY;
  if (t->outcome == VAL_DIFFER && !(rel > *best)) return;
  *best = rel;
  t->outcome = VAL_DIFFER;
  t->what = 'v';
  t->index = i;
  t->abs = d;
  t->rel = rel;
  t->soft = rel < 1e-6;
}

/* The suspects, against noise. */
static iso_code judge(val_engine *e, const rule *r, rule_tensor *const *bind, const sight *at,
                      const noise *by, val_trial *t, iso_error *err) {
  const rule_tensor *a = t->lhs, *b = t->rhs;
  const int64_t n = n_numbers(a);
  double *moved = calloc((size_t)n + 1, sizeof *moved), best = 0;
  if (moved == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  bool tied_a = false, tied_b = false;
  const val_shown left = {r->lhs, bind, a}, right = {r->rhs, bind, b};
  iso_code code = add_noise(e, &left, r->rhs, by, moved, &tied_a, err);
  if (!code) code = add_noise(e, &right, r->lhs, by, moved, &tied_b, err);
  t->outcome = VAL_BLIND;
  const double little = 64 * at->floor;
  double most = 0; /* where next to nothing is left of larger numbers, one element may by chance not
                      have moved */
  for (int64_t i = 0; i < n; i++) most = fmax(most, isfinite(moved[i]) ? moved[i] : 0);
  for (int64_t i = 0; i < n && !code; i++) {
    const double x = number_of(a, i), y = number_of(b, i);
    if (!is_float(a)) {
      if (rule_tensor_get_int(a, i) != rule_tensor_get_int(b, i) && moved[i] == 0) {
        note_difference(t, i, x, y, &best);
        t->soft = false;
      }
    } else if (suspect(x, y, at->floor, at->strict, at->rel_tol) &&
               ((!by->far && !(fmax(fabs(x), fabs(y)) < huge_value)) ||
                fabs(x - y) >
                    noise_factor * ((x != 0 && y != 0) || moved[i] == 0 || fabs(x - y) > little
                                        ? moved[i]
                                        : fmax(moved[i], most)))) {
      note_difference(t, i, x, y, &best);
      t->soft |= t->index == i && (x == 0 || y == 0) && moved[i] > 0 && fabs(x - y) <= little;
    }
  }
  free(moved);
  if ((tied_a || tied_b) && t->outcome == VAL_DIFFER) {
    t->outcome = VAL_BLIND;
    t->index = -1;
    t->ties = true;
    t->soft = false;
  }
  if (rule_dtype_is_complex(a->dtype) && t->index >= 0) t->index /= 2;
  return code;
}

/* A literal beyond 1e30. */
static bool has_mask(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return fabs(t->u.f) >= huge_value;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_mask(t->child[i])) return true;
  return false;
}

static bool masks(const rule *r) { return has_mask(r->lhs) || has_mask(r->rhs); }

/* A finite literal beyond 1e30: a mask that is read as minus infinity, where a row keeps an
 * element. */
static bool has_finite_mask(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return isfinite(t->u.f) && fabs(t->u.f) >= huge_value;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_finite_mask(t->child[i])) return true;
  return false;
}

/* Whether the side that is undefined at element i stays so when its operators are blurred. */
static iso_code stays_undefined(val_engine *e, const rule_term *side, rule_tensor *const *bind,
                                iso_rng *rng, int64_t n, bool *lost, iso_error *err) {
  for (int lean = -1; lean <= 1; lean += 2) {
    val_probe p = {.noise = rng, .lean = lean};
    rule_tensor *x = NULL;
    iso_error local;
    const iso_code c = val_eval_probe(e, side, bind, &p, &x, &local);
    if (c == ISO_NOMEM) return iso_fail(err, c, "out of memory");
    for (int64_t i = 0; i < n; i++)
      lost[i] = lost[i] && !c && n_numbers(x) == n && is_float(x) && !isfinite(number_of(x, i));
    rule_tensor_unref(x);
  }
  return ISO_OK;
}

/* A step between graphs whose one side is undefined (0/0, a row that is masked wholly) where the
 * other has a value: the graphs differ there, as a guard against NaN that one of them lacks.
 * `undefined`: which. */
static iso_code seek_undefined(val_engine *e, const rule *r, rule_tensor *const *bind, iso_rng *rng,
                               int undefined, val_trial *t, iso_error *err) {
  const rule_tensor *at = undefined ? t->rhs : t->lhs, *other = undefined ? t->lhs : t->rhs;
  if (at->coarse > 0) return ISO_OK; /* few bits end early */
  const int64_t n = n_numbers(at);
  bool *lost = calloc((size_t)n + 1, 1), any = false, tied;
  double *moved = calloc((size_t)n + 1, sizeof *moved);
  iso_code c = lost && moved ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (int64_t i = 0; i < n && !c; i++)
    any |= lost[i] = !isfinite(number_of(at, i)) && isfinite(number_of(other, i));
  if (!c && any) c = stays_undefined(e, undefined ? r->rhs : r->lhs, bind, rng, n, lost, err);
  if (!c && any)
    c = add_noise(e, &(val_shown){undefined ? r->lhs : r->rhs, bind, other}, NULL,
                  &(noise){rng, CANDIDATE_RUNS, false}, moved, &tied, err);
  for (int64_t i = 0; i < n && !c && t->outcome != VAL_DIFFER; i++) {
    if (!lost[i] || !(moved[i] <= 1e-6 * fabs(number_of(other, i)))) continue;
    t->outcome = VAL_DIFFER;
    t->none = true;
    t->what = 'v';
    t->index = rule_dtype_is_complex(at->dtype) ? i / 2 : i;
    t->abs = t->rel = (double)INFINITY;
  }
  free(lost);
  free(moved);
  return c;
}

/* Whether the rule itself gives what is no number, as XLA does where an index is outside of its
 * table: no operand has one, and no operator makes one. */
static bool gives_none(const rule *r, rule_tensor *const *bind) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (int64_t k = 0, n = is_float(bind[i]) ? n_numbers(bind[i]) : 0; k < n; k++)
      if (isnan(number_of(bind[i], k))) return false;
  return true;
}

/* Given on one side alone, the sides differ there. */
static iso_code judge_given(val_engine *e, const rule *r, rule_tensor *const *bind, iso_rng *rng,
                            val_trial *t, iso_error *err) {
  iso_code c = ISO_OK;
  t->outcome = VAL_OUTSIDE;
  for (int side = 0; side < 2 && !c && t->outcome != VAL_DIFFER; side++)
    c = seek_undefined(e, r, bind, rng, side, t, err);
  return c;
}

/* Whether the sides have different shapes, or different kinds of numbers: then they differ. */
static bool of_other_kind(val_trial *t) {
  const bool shaped = rule_shape_eq(&t->lhs->shape, &t->rhs->shape);
  if (shaped && same_kind(t->lhs->dtype, t->rhs->dtype)) return false;
  t->outcome = VAL_DIFFER;
  t->what = shaped ? 'd' : 's';
  t->abs = t->rel = (double)INFINITY;
  return true;
}

iso_code val_try(val_engine *e, const rule *r, rule_tensor *const *bind, const val_trying *how,
                 val_trial *t, iso_error *err) {
  const bool strict = how->strict, unbounded = how->unbounded;
  iso_rng *rng = how->rng;
  *t = (val_trial){.outcome = VAL_FAILED, .index = -1};
  /* A rule of a file speaks of integers that do not wrap; a step between two graphs is of those
   * that do. */
  val_probe pa = {.unbounded = unbounded, .cover = &t->cover[0]},
            pb = {.unbounded = unbounded, .cover = &t->cover[1]};
  iso_error local;
  iso_code c = val_eval_probe(e, r->lhs, bind, &pa, &t->lhs, &local);
  if (!c) c = val_eval_probe(e, r->rhs, bind, &pb, &t->rhs, &local);
  if (c) {
    val_trial_fini(t);
    snprintf(t->reason, sizeof t->reason, "%.199s", local.msg);
    return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
  }
  const rule_tensor *a = t->lhs, *b = t->rhs;
  if (of_other_kind(t)) return ISO_OK;
  const double floor = 64 * DBL_EPSILON * fmax(pa.magnitude, pb.magnitude);
  const survey s = survey_both(a, b, floor, strict, how->rel_tol);
  const bool given = s.nan && !pa.undefined && !pb.undefined && gives_none(r, bind);
  if (given && s.apart) return judge_given(e, r, bind, rng, t, err);
  if (pa.undefined || pb.undefined || (s.nan && (s.size == 0 || !given))) {
    t->outcome = VAL_OUTSIDE;
    t->wraps = pa.wraps || pb.wraps;
    t->apart = (s.apart || s.suspect) && (pa.pole || pb.pole) && !t->wraps && !masks(r);
    t->masked = s.suspect && !s.nan && !t->wraps && !pa.pole && !pb.pole && masks(r);
    t->guarded = (pa.pole || pb.pole) && !pa.far && !pb.far && s.suspect && !s.nan;
    const bool sought = !unbounded && is_float(a) && pa.undefined != pb.undefined &&
                        (pa.pole || pb.pole) && !pa.far && !pb.far;
    return sought && !has_finite_mask(r->lhs) && !has_finite_mask(r->rhs)
               ? seek_undefined(e, r, bind, rng, pb.pole, t, err)
               : ISO_OK;
  }
  if (val_narrow_apart(t, &pa, &pb)) return val_narrow_judge(e, r, bind, rng, t, err);
  const bool far = pa.far || pb.far;
  if (s.suspect && far && masks(r)) /* what is a mask here, and what merely large? */
    return t->outcome = VAL_OUTSIDE, ISO_OK;
  if (s.suspect) {
    const sight at = {floor, strict, how->rel_tol};
    const int runs = s.abs > 1e-3 * s.size ? (strict ? GROSS_RUNS : CANDIDATE_RUNS) : NOISY_RUNS;
    c = judge(e, r, bind, &at, &(noise){rng, runs, far}, t, err);
    t->gross = t->outcome == VAL_DIFFER && !far && !masks(r) && s.abs > 1e-3 * s.size &&
               t->abs > 1e6 * floor;
    /* Where a difference may be only the digits that larger numbers lost, a few runs may by chance
     * lose the same. */
    if (!c && t->outcome == VAL_DIFFER && t->abs <= floor) {
      t->index = -1;
      t->soft = false;
      c = judge(e, r, bind, &at, &(noise){rng, SURE_RUNS, far}, t, err);
    }
    return c;
  }
  /* Rounding that could hide the whole result, or a result without elements, shows nothing. */
  const bool hidden = is_float(a) && s.size > 0 && floor > 1e-6 * s.size;
  t->outcome = hidden || a->numel == 0 ? VAL_BLIND : VAL_AGREE;
  t->max_rel = hidden ? 0 : s.worst;
  return ISO_OK;
}
