/* Real numbers as balls: a middle in long double, and how far the real number may be from it.
 *
 * Every function returns a ball that has all results of numbers in its arguments. So two results
 * whose balls do not meet are two numbers, whatever was rounded on the way. A ball without a middle
 * (NaN) is a number of which nothing is known: one divided by 0, or chosen by a comparison that
 * rounding leaves open. Minus infinity is a mask's number, with radius 0; a number beyond the range
 * of long double is unknown. Truth values are 0 and 1. A result that needs few binary digits is
 * exact, with radius 0.
 *
 * The C library's functions are assumed to be off by at most four units in the last place. */
#ifndef CHECK_EVALUATE_BALL_H
#define CHECK_EVALUATE_BALL_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

typedef struct ball {
  long double mid, rad;
} ball;

static inline ball ball_exact(long double x) { return (ball){x, 0}; }
static inline ball ball_unknown(void) { return (ball){NAN, 0}; }
static inline bool ball_known(ball x) { return !isnan(x.mid); }
/* `x` and every number that rounds to it in float64. */
static inline ball ball_about(long double x) { return (ball){x, fabsl(x) * 0x1p-52L}; }

ball ball_neg(ball a);
ball ball_add(ball a, ball b);
ball ball_sub(ball a, ball b);
ball ball_mul(ball a, ball b);
ball ball_div(ball a, ball b); /* not known where b may be 0 */
ball ball_max(ball a, ball b);
ball ball_min(ball a, ball b);
ball ball_pow(ball a, ball b);
ball ball_abs(ball a);
ball ball_exp(ball a);
ball ball_expm1(ball a);
ball ball_log(ball a); /* not known where a may be 0 or less */
ball ball_log1p(ball a);
ball ball_sqrt(ball a);
ball ball_rsqrt(ball a);
ball ball_square(ball a);
ball ball_reciprocal(ball a);
ball ball_sin(ball a);
ball ball_cos(ball a);
ball ball_tanh(ball a);
ball ball_erf(ball a);
ball ball_sigmoid(ball a);
ball ball_silu(ball a);
ball ball_gelu(ball a);
ball ball_gelu_tanh(ball a);
ball ball_relu(ball a);
/* The result of a jumping function is known where all numbers of the ball give one. */
ball ball_floor(ball a);
ball ball_ceil(ball a);
ball ball_trunc(ball a);
ball ball_round(ball a);
ball ball_sign(ball a);
ball ball_less(ball a, ball b);
ball ball_less_equal(ball a, ball b);
ball ball_equal(ball a, ball b);

/* Some number is in both, or of one nothing is known. */
bool ball_meet(ball a, ball b);

#endif
