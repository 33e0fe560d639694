/* Balls: see ball.h. Radii are rounded up by a factor. */
#include "check/evaluate/ball.h"

static const long double unit = LDBL_EPSILON, up = 1 + 8 * LDBL_EPSILON;

/* A result that was rounded to `mid`, where the arguments leave it `rad`. */
static ball rounded(long double mid, long double rad, int units) {
  if (!isfinite(mid) || !isfinite(rad)) return ball_unknown();
  const long double own = units * unit * fabsl(mid);
  return (ball){mid, (rad + own + (units && own < LDBL_MIN ? LDBL_MIN : 0)) * up};
}

/* So few digits that a product of two such numbers is exact. */
static bool is_short(long double x) { return fabsl(x) < 0x1p100L && (long double)(float)x == x; }

static bool is_power(long double x) {
  int e;
  return fabsl(frexpl(x, &e)) == 0.5L;
}

ball ball_neg(ball a) { return (ball){-a.mid, a.rad}; }

ball ball_add(ball a, ball b) {
  if (isinf(a.mid) || isinf(b.mid)) return ball_exact(a.mid + b.mid);
  const long double s = a.mid + b.mid, of_b = s - a.mid, of_a = s - of_b;
  const long double lost = (a.mid - of_a) + (b.mid - of_b);
  return rounded(s, a.rad + b.rad + fabsl(lost), 0);
}

ball ball_sub(ball a, ball b) { return ball_add(a, ball_neg(b)); }

static bool has_zero(ball a) { return fabsl(a.mid) <= a.rad; }

ball ball_mul(ball a, ball b) {
  if (isinf(a.mid) || isinf(b.mid))
    return has_zero(a) || has_zero(b) ? ball_unknown() : ball_exact(a.mid * b.mid);
  const long double p = a.mid * b.mid;
  const long double rad = fabsl(a.mid) * b.rad + fabsl(b.mid) * a.rad + a.rad * b.rad;
  const bool exact = a.mid == 0 || b.mid == 0 || (is_short(a.mid) && is_short(b.mid)) ||
                     is_power(a.mid) || is_power(b.mid);
  return rounded(p, rad, exact ? 0 : 1);
}

ball ball_div(ball a, ball b) {
  if (!ball_known(b) || has_zero(b) || isinf(a.mid)) return ball_unknown();
  if (isinf(b.mid)) return ball_known(a) ? ball_exact(0) : a;
  const long double q = a.mid / b.mid;
  const bool exact = is_short(q) && is_short(b.mid) && q * b.mid == a.mid;
  return rounded(q, (a.rad + fabsl(q) * b.rad) / (fabsl(b.mid) - b.rad), exact ? 0 : 2);
}

/* No larger is further from the others than they are from it. */
static ball larger(ball a, ball b) {
  return (ball){a.mid > b.mid ? a.mid : b.mid, a.rad > b.rad ? a.rad : b.rad};
}

ball ball_max(ball a, ball b) {
  if (!ball_known(a) || !ball_known(b)) return ball_unknown();
  if (isinf(a.mid) || isinf(b.mid)) return a.mid > b.mid ? a : b;
  return larger(a, b);
}

ball ball_min(ball a, ball b) { return ball_neg(ball_max(ball_neg(a), ball_neg(b))); }
ball ball_relu(ball a) { return ball_max(a, ball_exact(0)); }
ball ball_abs(ball a) { return (ball){fabsl(a.mid), a.rad}; }
ball ball_square(ball a) { return ball_mul(a, a); }
ball ball_reciprocal(ball a) { return ball_div(ball_exact(1), a); }

/* ---- functions ---- */

ball ball_exp(ball a) {
  if (a.mid == -INFINITY) return ball_exact(0);
  if (a.mid == 0 && a.rad == 0) return ball_exact(1);
  const long double v = expl(a.mid);
  return rounded(v, a.rad < 1 ? v * expm1l(a.rad) : expl(a.mid + a.rad), 4);
}

ball ball_expm1(ball a) {
  if (isinf(a.mid)) return ball_unknown();
  return rounded(expm1l(a.mid), a.rad < 1 ? expl(a.mid) * expm1l(a.rad) : expl(a.mid + a.rad), 4);
}

ball ball_log(ball a) {
  const long double low = a.mid - a.rad;
  if (!(low > 0) || isinf(a.mid)) return ball_unknown();
  return a.mid == 1 && a.rad == 0 ? ball_exact(0) : rounded(logl(a.mid), a.rad / low, 4);
}

ball ball_log1p(ball a) {
  const long double low = 1 + a.mid - a.rad;
  return low > 0 && isfinite(a.mid) ? rounded(log1pl(a.mid), a.rad / low, 4) : ball_unknown();
}

ball ball_sqrt(ball a) {
  const long double low = a.mid - a.rad;
  if (a.mid == 0 && a.rad == 0) return a;
  if (!(low > 0) || isinf(a.mid)) return ball_unknown();
  const long double v = sqrtl(a.mid);
  return rounded(v, a.rad / (v + sqrtl(low)), is_short(v) && v * v == a.mid ? 0 : 1);
}

ball ball_rsqrt(ball a) { return ball_reciprocal(ball_sqrt(a)); }

/* Functions that grow by no more than their argument times `slope`. */
static ball gentle(ball a, long double v, long double slope) {
  if (isinf(a.mid)) return ball_unknown();
  return a.mid == 0 && a.rad == 0 ? ball_exact(v) : rounded(v, slope * a.rad, 4);
}

ball ball_sin(ball a) { return gentle(a, sinl(a.mid), 1); }
ball ball_cos(ball a) { return gentle(a, cosl(a.mid), 1); }
ball ball_tanh(ball a) { return gentle(a, tanhl(a.mid), 1); }
ball ball_erf(ball a) { return gentle(a, erfl(a.mid), 1.129L); }

ball ball_sigmoid(ball a) {
  const ball e = ball_exp(a.mid < 0 ? a : ball_neg(a)), one = ball_exact(1);
  return ball_div(a.mid < 0 ? e : one, ball_add(one, e));
}

ball ball_silu(ball a) { return ball_mul(a, ball_sigmoid(a)); }

static ball half_of(ball a, ball f) {
  return ball_mul(ball_mul(a, ball_exact(0.5L)), ball_add(ball_exact(1), f));
}

ball ball_gelu(ball a) {
  return half_of(a, ball_erf(ball_mul(a, ball_about(0.70710678118654752440L))));
}

ball ball_gelu_tanh(ball a) {
  const ball cube = ball_mul(ball_about(0.044715L), ball_mul(a, ball_square(a)));
  return half_of(a, ball_tanh(ball_mul(ball_about(0.79788456080286535588L), ball_add(a, cube))));
}

/* An exact small exponent by products; 1/2 and -1/2 by roots; else of positive numbers only. */
ball ball_pow(ball a, ball b) {
  const long double n = b.mid;
  if (b.rad == 0 && fabsl(n) <= 64 && n == floorl(n)) {
    ball p = ball_exact(1);
    for (int i = 0; i < (int)fabsl(n); i++) p = ball_mul(p, a);
    return n < 0 ? ball_reciprocal(p) : p;
  }
  if (b.rad == 0 && n == 0.5L) return ball_sqrt(a);
  if (b.rad == 0 && n == -0.5L) return ball_rsqrt(a);
  return ball_exp(ball_mul(b, ball_log(a)));
}

/* ---- what jumps ---- */

static ball step(ball a, long double (*f)(long double)) {
  const long double low = f(a.mid - a.rad), high = f(a.mid + a.rad);
  return low == high ? ball_exact(low) : ball_unknown();
}

static long double sign_of(long double x) { return (x > 0) - (x < 0); }

ball ball_floor(ball a) { return step(a, floorl); }
ball ball_ceil(ball a) { return step(a, ceill); }
ball ball_trunc(ball a) { return step(a, truncl); }
ball ball_round(ball a) { return step(a, rintl); }
ball ball_sign(ball a) { return ball_known(a) ? step(a, sign_of) : a; }

/* 1 where `yes`, 0 where `no`. */
static ball truth(bool yes, bool no) {
  return yes ? ball_exact(1) : no ? ball_exact(0) : ball_unknown();
}

ball ball_less(ball a, ball b) {
  return truth(a.mid + a.rad < b.mid - b.rad, a.mid - a.rad >= b.mid + b.rad);
}

ball ball_less_equal(ball a, ball b) {
  return truth(a.mid + a.rad <= b.mid - b.rad, a.mid - a.rad > b.mid + b.rad);
}

ball ball_equal(ball a, ball b) {
  const bool known = ball_known(a) && ball_known(b);
  return truth(known && a.rad == 0 && b.rad == 0 && a.mid == b.mid, known && !ball_meet(a, b));
}

bool ball_meet(ball a, ball b) {
  if (!ball_known(a) || !ball_known(b) || a.mid == b.mid) return true;
  return isfinite(a.mid) && isfinite(b.mid) && fabsl(a.mid - b.mid) <= (a.rad + b.rad) * up;
}
