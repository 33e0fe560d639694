/* One factor near 1, or one small summand, hides in every element of a table of few digits. It
 * moves elements by whole units, as rounding does, but all of them the same way, where rounding
 * moves as many up as down. */
#include "check/rounding/again.h"

#include <math.h>
#include <stdlib.h>

/* One number in units of its last place, and how many of them it moves. */
typedef struct move {
  double units, moves;
} move;

static int order(const void *a, const void *b) {
  const move *x = a, *y = b;
  if (x->units != y->units) return x->units < y->units ? -1 : 1;
  return (x->moves > y->moves) - (x->moves < y->moves);
}

/* Numbers that are alike but for a power of two are rounded alike, and are one. */
static bool all_one_way(move *m, size_t n) {
  double up = 0, down = 0, weight = 0, units = 0;
  size_t different = 0, moved = 0;
  qsort(m, n, sizeof *m, order);
  for (size_t i = 0; i < n; i++) {
    if (i && order(&m[i - 1], &m[i]) == 0) continue;
    different++;
    moved += m[i].moves != 0;
    units += m[i].moves;
    weight += m[i].moves * m[i].moves;
    up = fmax(up, m[i].moves);
    down = fmax(down, -m[i].moves);
  }
  const bool both = up > 0 && down > 0, many = moved >= 4 || (moved == 3 && different <= 6);
  return (!both && many) || fabs(units) > 2.75 * sqrt(weight);
}

iso_code ag_is_scaled(chk_state *k, const rule_tensor *stored, const rule_tensor *made, int digits,
                      bool *yes) {
  *yes = false;
  if (digits >= 24) return ISO_OK;
  move *m = malloc(((size_t)stored->numel + 1) * sizeof *m);
  if (!m) return chk_nomem(k);
  for (int factor = 0; factor < 2; factor++) {
    size_t n = 0;
    for (int64_t i = 0; i < stored->numel; i++) {
      const double x = rule_tensor_get(stored, i), unit = ag_unit(x, digits);
      const double by = (rule_tensor_get(made, i) - x) / unit;
      if (x == 0 || !isfinite(by) || fabs(x) > 1e30) continue;
      const double sign = factor && x < 0 ? -1 : 1;
      m[n++] = (move){sign * x / unit, sign * nearbyint(by)};
    }
    *yes |= all_one_way(m, n);
  }
  free(m);
  return ISO_OK;
}
