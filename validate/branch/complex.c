/* Complex numbers that tell branches apart: all quadrants at several scales, arguments past a turn
 * of the exponential, both sides of every axis. On an axis in samples of their own: over the
 * complex numbers there is one zero, and float64's two decide by themselves on which side of a cut
 * a number lies, so that sides that differ there are not refuted. Nor are they tested: real numbers
 * have a 0 there. */
#include <math.h>

#include "validate/sample/sample_int.h"

enum { PLANE, TURNS, CUT, IMAGINARY, CIRCLE, SMALL, LARGE, WIDE_APART, COMPLEX_KINDS };

static double sign(iso_rng *rng) { return iso_rng_below(rng, 2) ? 1 : -1; }

static double zero(iso_rng *rng) { return copysign(0, sign(rng)); }

void val_fill_axes(iso_rng *rng, rule_tensor *t) {
  double *x = t->data;
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = (fabs(iso_rng_normal(rng)) + 0.01) * sign(rng);
    const bool real = iso_rng_below(rng, 3) != 0;
    x[2 * i] = real ? v : zero(rng);
    x[2 * i + 1] = real ? zero(rng) : v;
  }
}

/* Beside an axis, a little to one side or the other. */
static double aside(iso_rng *rng, double size) {
  static const double by[] = {1e-2, 1e-5, 1e-8};
  return sign(rng) * size * by[iso_rng_below(rng, 3)];
}

void val_fill_complex(iso_rng *rng, rule_tensor *t, unsigned k) {
  double *x = t->data;
  const unsigned kind = k % COMPLEX_KINDS;
  for (int64_t i = 0; i < t->numel; i++) {
    double re = iso_rng_normal(rng), im = iso_rng_normal(rng);
    switch (kind) {
    case TURNS: re *= 2, im *= 6; break;
    case CUT: re = -fabs(re) - 0.01, im = aside(rng, -re); break;
    case IMAGINARY: im = (fabs(im) + 0.01) * 2 * sign(rng), re = aside(rng, im); break;
    case CIRCLE: {
      const double turn = (2 * iso_rng_uniform(rng) - 1) * acos(-1);
      re = cos(turn), im = sin(turn);
      break;
    }
    case SMALL: re /= 256, im /= 256; break;
    case LARGE: re *= 64, im *= 64; break;
    case WIDE_APART: re *= exp(3 * iso_rng_normal(rng)), im *= exp(3 * iso_rng_normal(rng)); break;
    default: break;
    }
    x[2 * i] = re;
    x[2 * i + 1] = im;
  }
}
