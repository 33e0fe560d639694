/* Private to validate/: exact rationals n / d * 2^e in 128 bits, interned, so that coefficients
 * compare by number. Doubles are dyadic, so the power of two stands apart: 1e-12 needs no 92-bit
 * denominator. What does not fit fails the proof. */
#ifndef VALIDATE_RATIONAL_H
#define VALIDATE_RATIONAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n / d * 2^e with n and d odd (n = 0: d = 1, e = 0), d > 0, no common factor. */
typedef struct pv_q {
  __int128 n, d;
  int32_t e;
} pv_q;

enum { PV_ZERO_Q = 0, PV_ONE_Q = 1, PV_MINUS_Q = 2 }; /* 0, 1 and -1, which pv_q_init makes */

typedef struct pv_rationals { /* all bits zero: none yet */
  pv_q *q;
  size_t n_q, cap_q;
  uint32_t *table; /* number + 1, 0 where empty */
  size_t cap_table;
  bool failed, no_memory;
  const char *reason; /* the first */
  void (*failure)(
      void *ctx,
      const char *why); /* told of it at once: what follows it must not count; may be NULL */
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

#endif
