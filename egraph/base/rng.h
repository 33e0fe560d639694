/* Random numbers: splitmix64, one state per user, the same numbers on every machine. */
#ifndef ISO_BASE_RNG_H
#define ISO_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iso_rng {
  uint64_t state;
  double spare; /* normal numbers are made in pairs */
  bool has_spare;
} iso_rng;

iso_rng iso_rng_new(uint64_t seed, uint64_t stream); /* streams of one seed are independent */
uint64_t iso_rng_next(iso_rng *r);
uint64_t iso_rng_below(iso_rng *r, uint64_t n); /* uniform in [0, n); Requires: n > 0 */
double iso_rng_uniform(iso_rng *r);             /* uniform in [0, 1), 53 bits */
double iso_rng_normal(iso_rng *r);              /* N(0, 1), Marsaglia's polar method */

#ifdef __cplusplus
}
#endif
#endif
