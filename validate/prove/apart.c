/* Whether two expressions differ at a point that the case admits: then no step makes them one, and
 * the long ones are not tried. Where a point shows nothing, nothing is said. */
#include <math.h>

#include "validate/prove/equal_int.h"

/* Points that are tried until the hypotheses hold at one; steps of one evaluation. */
enum { POINTS = 12, MOST_STEPS = 200000 };

typedef struct point {
  sc *c;
  uint64_t salt;
} point;

/* An element that is a real number. Integers stand for places, of which not all bounds are known
 * here. */
static double some_element(void *ctx, uint32_t var, const int64_t *idx) {
  const point *p = ctx;
  uint64_t h = sc_mixed(p->salt, var + 1);
  for (int i = 0; i < RULE_MAX_RANK; i++) h = sc_mixed(h, (uint64_t)idx[i]);
  return p->c->r->var[var].kind == 'f' ? (double)(h >> 11) * 0x1p-52 - 1 : NAN;
}

static double at(point *p, sx x) { return sc_number_drawn(p->c, x, p->salt, MOST_STEPS); }

static bool admitted(point *p) {
  const sc_case *h = &p->c->here;
  for (size_t i = 0; i < h->n_facts; i++)
    if (!(at(p, h->fact[i]) >= 0)) return false;
  for (size_t i = 0; i < h->n_path; i++) {
    const double holds = at(p, h->path[i].cond);
    if (isnan(holds) || (holds > 0) != h->path[i].holds) return false;
  }
  for (size_t i = 0; i < h->n_bound_sizes; i++)
    if (!(fabs(at(p, h->bound_size[i].from) - at(p, h->bound_size[i].to)) < 1e-9)) return false;
  return true;
}

/* Rounding errors are no differences, also of sums that absorb much. */
static bool differ(double x, double y) {
  return isfinite(x) && isfinite(y) && fabs(x - y) > 1e-3 * (1 + fabs(x) + fabs(y));
}

bool sc_differs(sc *c, sx a, sx b) {
  point p = {.c = c};
  bool apart = false, met = false;
  if (c->hooks.value_of || c->fault.failed) return false;
  c->hooks.value_of = some_element;
  c->hooks.value_ctx = &p;
  for (int k = 0; k < POINTS && !met && sc_draw_anew(c); k++) {
    p.salt = 77 + (uint64_t)k;
    met = admitted(&p);
    apart = met && differ(at(&p, a), at(&p, b));
  }
  c->hooks.value_of = NULL;
  c->hooks.value_ctx = NULL;
  return apart;
}
