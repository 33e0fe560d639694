/* Random numbers: splitmix64, one state per user, the same numbers on every machine. */
#ifndef EGRAPH_BASE_RNG_H
#define EGRAPH_BASE_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iso_rng {
  uint64_t state;
} iso_rng;

iso_rng iso_rng_new(uint64_t seed, uint64_t stream); /* streams of one seed are independent */
uint64_t iso_rng_next(iso_rng *r);
uint64_t iso_rng_below(iso_rng *r, uint64_t n); /* uniform in [0, n); Requires: n > 0 */
double iso_rng_uniform(iso_rng *r);             /* uniform in [0, 1), 53 bits */
double iso_rng_normal(iso_rng *r);              /* N(0, 1) */

/* Many numbers at once: those of as many calls of iso_rng_normal, and mean + width * z with z
 * uniform among the 2^64 integers around 0. */
void iso_rng_fill_normal(iso_rng *r, double *x, size_t n);
void iso_rng_fill_even(iso_rng *r, double mean, double width, double *x, size_t n);
/* The state after n numbers: parts of a sequence can be drawn apart. */
iso_rng iso_rng_after(iso_rng r, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
