#include "egraph/base/rng.h"

#include <math.h>

#include "egraph/base/wide.h"

static const uint64_t STEP = UINT64_C(0x9E3779B97F4A7C15);

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014. */
static inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

iso_rng iso_rng_new(uint64_t seed, uint64_t stream) {
  return (iso_rng){.state = mix(mix(seed + UINT64_C(0x9E3779B97F4A7C15)) ^
                                mix(stream + UINT64_C(0xD1B54A32D192ED03)))};
}

uint64_t iso_rng_next(iso_rng *r) {
  r->state += STEP;
  return mix(r->state);
}

uint64_t iso_rng_below(iso_rng *r, uint64_t n) {
  /* Rejection, so that no remainder is favoured. */
  uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;
  do x = iso_rng_next(r);
  while (x >= limit);
  return x % n;
}

double iso_rng_uniform(iso_rng *r) { return (double)(iso_rng_next(r) >> 11) * 0x1p-53; }

/* The inverse of the normal distribution function by rational functions (Acklam 2003), relative
 * error below 1.2e-9: without a logarithm for all but one number in twenty. */
static double tail(double p) {
  const double q = sqrt(-2 * log(p));
  return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838) * q -
            2.549732539343734) *
               q +
           4.374664141464968) *
              q +
          2.938163982698783) /
         ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996) * q +
           3.754408661907416) *
              q +
          1);
}

/* The middle of the distribution. */
static inline double central(double p) {
  const double q = p - 0.5, s = q * q;
  return (((((-3.969683028665376e+01 * s + 2.209460984245205e+02) * s - 2.759285104469687e+02) * s +
            1.383577518672690e+02) *
               s -
           3.066479806614716e+01) *
              s +
          2.506628277459239) *
         q /
         (((((-5.447609879822406e+01 * s + 1.615858368580409e+02) * s - 1.556989798598866e+02) * s +
            6.680131188771972e+01) *
               s -
           1.328068155288572e+01) *
              s +
          1);
}

static const double LOW = 0.02425; /* where the tails begin */

static inline double probability(uint64_t x) {
  return ((double)(int64_t)(x >> 11) + 0.5) * 0x1p-53;
}

double iso_rng_normal(iso_rng *r) {
  const double p = probability(iso_rng_next(r));
  return p < LOW ? tail(p) : p > 1 - LOW ? -tail(1 - p) : central(p);
}

/* ---- many at once: blocks of one length, which compilers turn into vectors ---- */

enum { BLOCK = 32 };

iso_rng iso_rng_after(iso_rng r, uint64_t n) { return (iso_rng){r.state + n * STEP}; }

ISO_WIDE static void normal_block(uint64_t state, double *restrict p, double *restrict x) {
  for (uint64_t i = 0; i < BLOCK; i++) {
    p[i] = probability(mix(state + (i + 1) * STEP));
    x[i] = central(p[i]);
  }
}

void iso_rng_fill_normal(iso_rng *r, double *x, size_t n) {
  double p[BLOCK];
  size_t at = 0;
  for (; n - at >= BLOCK; at += BLOCK) {
    normal_block(r->state, p, x + at);
    for (size_t i = 0; i < BLOCK; i++)
      if (p[i] < LOW) x[at + i] = tail(p[i]);
      else if (p[i] > 1 - LOW) x[at + i] = -tail(1 - p[i]);
    *r = iso_rng_after(*r, BLOCK);
  }
  for (; at < n; at++) x[at] = iso_rng_normal(r);
}

ISO_WIDE static void even_block(uint64_t state, double mean, double width, double *restrict x) {
  for (uint64_t i = 0; i < BLOCK; i++)
    x[i] = mean + width * (double)(int64_t)mix(state + (i + 1) * STEP);
}

void iso_rng_fill_even(iso_rng *r, double mean, double width, double *x, size_t n) {
  size_t at = 0;
  for (; n - at >= BLOCK; at += BLOCK) {
    even_block(r->state, mean, width, x + at);
    *r = iso_rng_after(*r, BLOCK);
  }
  for (; at < n; at++) x[at] = mean + width * (double)(int64_t)iso_rng_next(r);
}
