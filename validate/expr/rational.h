/* Private to validate/: exact rationals n / d * 2^e of any size, interned, so that equal numbers
 * have equal ids. Doubles are dyadic, so the power of two is kept apart: 1e-12 needs no 92-bit
 * denominator.
 *
 * A number that fits in 128 bits is kept and computed so; only larger ones are GMP's. A number has
 * one form: it is large if and only if it does not fit. The sizes are bounded (PV_MOST_BITS,
 * PV_MOST_BYTES), as all work of a proof is; a number beyond them fails the proof, as lack of
 * memory does. */
#ifndef VALIDATE_RATIONAL_H
#define VALIDATE_RATIONAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gmp.h>

enum { PV_MOST_BITS = 1 << 14, PV_MOST_BYTES = 1 << 26, PV_MOST_SHIFT = 100000 };

/* n / d * 2^e with n and d odd (n = 0: d = 1, e = 0), d > 0, no common factor; |n|, d < 2^127. */
typedef struct pv_q {
  __int128 n, d;
  int32_t e;
} pv_q;

/* The same n and d where one of them does not fit. Only to be read: the limbs are in one block with
 * this. */
typedef struct pv_large {
  mpz_t n, d;
} pv_large;

typedef struct pv_number {
  pv_q small;            /* of a large one: e alone */
  const pv_large *large; /* NULL: it is small */
} pv_number;

enum { PV_ZERO_Q = 0, PV_ONE_Q = 1, PV_MINUS_Q = 2 }; /* 0, 1 and -1, which pv_q_init makes */

typedef struct pv_rationals { /* all bits zero: none yet */
  pv_number *q;
  size_t n_q, cap_q;
  uint32_t *table; /* number + 1, 0 where empty */
  size_t cap_table;
  size_t bytes; /* of large ones */
  bool failed, no_memory;
  const char *reason; /* the first */
  void (*failure)(
      void *ctx,
      const char *why); /* told of it at once: later results must not count; may be NULL */
  void *ctx;
} pv_rationals;

bool pv_q_init(pv_rationals *c); /* false: no memory. Owns: pv_q_fini */
void pv_q_fini(pv_rationals *c);
uint32_t pv_q_int(pv_rationals *c, int64_t i);
uint32_t pv_q_double(pv_rationals *c, double f); /* exact */
uint32_t pv_q_mul(pv_rationals *c, uint32_t a, uint32_t b);
uint32_t pv_q_add(pv_rationals *c, uint32_t a, uint32_t b);
uint32_t pv_q_pow(pv_rationals *c, uint32_t a, int64_t k);
int pv_q_sign(const pv_rationals *c, uint32_t a);
bool pv_q_is_int(const pv_rationals *c, uint32_t a, int64_t *out);
/* The number itself. Returns: false where it is large. */
bool pv_q_small(const pv_rationals *c, uint32_t a, pv_q *out);
/* To the last bits of a double. */
double pv_q_value(const pv_rationals *c, uint32_t a);
/* The same for equal numbers, in every process. */
uint64_t pv_q_hash(const pv_rationals *c, uint32_t a);
/* |n| and d of any number as decimals; e is pv_q_exponent's. Returns: false without memory.
 * Owns: free, of both. */
bool pv_q_decimals(const pv_rationals *c, uint32_t a, char **n, char **d);
int32_t pv_q_exponent(const pv_rationals *c, uint32_t a);

#endif
