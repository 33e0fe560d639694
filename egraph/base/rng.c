#include "egraph/base/rng.h"

#include <math.h>

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014. */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

iso_rng iso_rng_new(uint64_t seed, uint64_t stream) {
  return (iso_rng){.state = mix(mix(seed + UINT64_C(0x9E3779B97F4A7C15)) ^ mix(stream + UINT64_C(0xD1B54A32D192ED03)))};
}

uint64_t iso_rng_next(iso_rng *r) {
  r->state += UINT64_C(0x9E3779B97F4A7C15);
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

double iso_rng_normal(iso_rng *r) {
  if (r->has_spare) {
    r->has_spare = false;
    return r->spare;
  }
  double u, v, s;
  do {
    u = 2 * iso_rng_uniform(r) - 1;
    v = 2 * iso_rng_uniform(r) - 1;
    s = u * u + v * v;
  } while (s >= 1 || s == 0);
  const double f = sqrt(-2 * log(s) / s);
  r->spare = v * f;
  r->has_spare = true;
  return u * f;
}
