/* Integers as chance does not draw them: the same ones again in a table of thousands, neighbours,
 * all at an end of their range, where narrow types and sums of many run over. */
#include "validate/branch/meet_int.h"

#include <math.h>

void val_variable_range(const rule *r, uint32_t v, const val_domain *d, rule_dtype type,
                        double *low, double *high) {
  const rule_variable *x = &r->var[v];
  const double size = (double)(d->size != INT64_MAX ? d->size : d->behind),
               most = ldexp(1, type == RULE_U8 ? 8 : (int)(8 * rule_dtype_size(type)) - 1);
  *low = x->low ? (double)x->low->u.i
         : type == RULE_U8 || (size < 0x1p62 && !d->from_end)
             ? 0
             : fmax(-most, size < 0x1p62 ? -size : -0x1p40);
  *high = x->high ? (double)x->high->u.i : fmin(most, fmin(size, 0x1p40));
  if (d->reached) *low = (double)d->low, *high = (double)d->high;
}

/* One element. `base` is the same for all variables, `few` are this one's own numbers. */
static double crowded(unsigned how, double low, double high, double base, const double *few,
                      iso_rng *rng) {
  switch (how) {
  case 0: return high - 1;
  case 1: return few[iso_rng_below(rng, 2)];
  case 2: return base + (double)iso_rng_below(rng, 2);
  case 3: return base;
  case 4: return iso_rng_below(rng, 2) ? low : high - 1;
  case 5: return base + (double)iso_rng_below(rng, 3) - 1;
  case 6: return fmin(low + 1, high - 1);
  default: return few[iso_rng_below(rng, 3)];
  }
}

static double any_of(iso_rng *rng, double low, double high) {
  return floor(low + iso_rng_uniform(rng) * (high - low));
}

static void crowd_integers(unsigned turn, double low, double high, double base, iso_rng *rng,
                           rule_tensor *t) {
  const double few[3] = {any_of(rng, low, high), any_of(rng, low, high), any_of(rng, low, high)};
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(
        t, i, fmin(fmax(crowded(turn % VAL_CROWD_WAYS, low, high, base, few, rng), low), high - 1));
}

/* Rows of which so many are true that a narrow count of them runs over. */
static bool crowd_truth(unsigned turn, rule_tensor *t) {
  static const int64_t count[] = {256, 128, 127, 255, 512, 257};
  const int64_t row = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  const int64_t n = count[turn % (sizeof count / sizeof *count)];
  if (row < 128) return false;
  const int64_t from = turn % 2 ? row - (n < row ? n : row) : 0;
  for (int64_t i = 0; i < t->numel; i++)
    ((uint8_t *)t->data)[i] = i % row >= from && i % row < from + n;
  return true;
}

bool val_crowd_fill(const rule *r, const val_domain *domain, unsigned turn, iso_rng *rng,
                    rule_tensor **bind) {
  double base = NAN;
  bool any = false;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    double low, high;
    if (r->var[v].kind == 'b') any |= crowd_truth(turn, bind[v]);
    if (r->var[v].kind != 'i' || bind[v]->numel == 0) continue;
    val_variable_range(r, v, &domain[v], bind[v]->dtype, &low, &high);
    /* Where a range has no end, other samples have small and large numbers. */
    if (!(high > low) || high - low > 0x1p40) low = -3, high = 9;
    if (!(base >= low && base < high)) base = any_of(rng, low, high);
    crowd_integers(turn, low, high, base, rng, bind[v]);
    any = true;
  }
  return any;
}
