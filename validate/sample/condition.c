/* Conditions over sizes and attributes (rules/condition.c): values that make them true.
 *
 * A name that is the last one open in a condition is solved for: linear and quadratic equations in
 * closed form, the rest by trying numbers that the rule suggests. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/sample/instance_int.h"

static const double equation_tol = 1e-11; /* says whether an equation was solved */

static bool value_of(const void *ctx, const char *name, rule_term *out) {
  const val_problem *p = ctx;
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->name[i].name, name) == 0) {
      const val_name *n = &p->name[i];
      if (!n->set || n->kind == 'l') return false;
      if (n->kind == 'f') *out = (rule_term){.kind = RULE_FLOAT, .u.f = n->f};
      else *out = (rule_term){.kind = RULE_INT, .u.i = n->i};
      return true;
    }
  return false;
}

static rule_values values_of(const val_problem *p) {
  return (rule_values){value_of, p, equation_tol};
}

bool val_size_at(const val_problem *p, const rule_term *t, int64_t *out) {
  const rule_values v = values_of(p);
  return rule_size_at(t, &v, out);
}

bool val_real_at(const val_problem *p, const rule_term *t, double *out) {
  const rule_values v = values_of(p);
  *out = rule_number_at(t, &v);
  return isfinite(*out);
}

val_truth val_condition_at(const val_problem *p, const rule_term *t) {
  const rule_values v = values_of(p);
  const rule_truth x = rule_condition_at(t, &v);
  return x == RULE_OPEN ? VAL_OPEN : x == RULE_TRUE ? VAL_TRUE : VAL_FALSE;
}

/* ---- the last open name ---- */

static void count_open(const val_problem *p, const rule_term *t, uint32_t *open, uint32_t *which) {
  if (t->kind == RULE_NAME)
    for (uint32_t i = 0; i < p->n_names; i++)
      if (strcmp(p->name[i].name, t->u.s) == 0 && !p->name[i].set && (*open == 0 || *which != i)) {
        ++*open;
        *which = i;
      }
  for (uint32_t i = 0; i < t->n; i++) count_open(p, t->child[i], open, which);
}

bool val_last_open(const val_problem *p, const rule_term *t, uint32_t *which) {
  uint32_t open = 0;
  count_open(p, t, &open, which);
  return open == 1;
}

static void numbers_in(const rule_term *t, int64_t *out, size_t *n, size_t cap) {
  if (t->kind == RULE_INT && *n < cap) out[(*n)++] = t->u.i;
  for (uint32_t i = 0; i < t->n; i++) numbers_in(t->child[i], out, n, cap);
}

static void floats_in(const rule_term *t, double *out, size_t *n, size_t cap) {
  if (t->kind == RULE_FLOAT && t->u.f != 0 && isfinite(t->u.f) && *n < cap) out[(*n)++] = t->u.f;
  for (uint32_t i = 0; i < t->n; i++) floats_in(t->child[i], out, n, cap);
}

/* left - right of an equation at x. */
static double residue(val_problem *p, val_name *n, const rule_term *t, double x) {
  n->set = true;
  n->f = x;
  n->i = (int64_t)x;
  const rule_values v = values_of(p);
  const double a = rule_number_at(t->child[0], &v), b = rule_number_at(t->child[1], &v);
  n->set = false;
  return a - b;
}

/* Roots of an equation that is a polynomial of degree 2 or less in the name, found by three values;
 * other equations (a remainder) have none here. */
static size_t roots(val_problem *p, val_name *n, const rule_term *t, double out[2]) {
  const double c = residue(p, n, t, 0), f1 = residue(p, n, t, 1), f2 = residue(p, n, t, -1);
  if (isnan(c) || isnan(f1) || isnan(f2)) return 0;
  const double a = (f1 + f2) / 2 - c, b = (f1 - f2) / 2, f5 = residue(p, n, t, 5);
  if (!(fabs(25 * a + 5 * b + c - f5) <= 1e-6 * (fabs(a) + fabs(b) + fabs(c)))) return 0;
  if (fabs(a) <= 1e-12 * (fabs(b) + fabs(c))) return b != 0 ? (out[0] = -c / b, 1u) : 0;
  const double d = b * b - 4 * a * c;
  if (d < 0) return 0;
  out[0] = (-b + sqrt(d)) / (2 * a);
  out[1] = (-b - sqrt(d)) / (2 * a);
  return 2;
}

/* Newton from several places, for equations with a quotient of the name. */
static size_t solve_numerically(val_problem *p, val_name *n, const rule_term *t, double *out) {
  static const double start[] = {0.5, 0.1, 2, 0.01, 10, -0.5};
  for (size_t k = 0; k < sizeof start / sizeof *start; k++) {
    double x = start[k];
    for (int i = 0; i < 60; i++) {
      const double h = 1e-6 * (fabs(x) + 1e-9), f = residue(p, n, t, x);
      const double slope = (residue(p, n, t, x + h) - residue(p, n, t, x - h)) / (2 * h);
      if (!isfinite(f) || !isfinite(slope) || slope == 0) break;
      if (f == 0) break;
      x -= f / slope;
    }
    n->set = true;
    n->f = x;
    const bool solved = isfinite(x) && val_condition_at(p, t) == VAL_TRUE;
    n->set = false;
    if (solved) return *out = x, 1;
  }
  return 0;
}

/* Numbers about which the conditions speak, and between them: where a real attribute can be. */
static size_t reals_near(const val_problem *p, double *out, size_t cap) {
  static const double some[] = {0.5, 2, 1, 0.25, 3, -1, 0.1, 10, -0.5, 0, 1e-3, 100};
  double lit[8];
  size_t n = 0, n_lit = 0;
  for (size_t i = 0; i < sizeof some / sizeof *some && n < cap; i++) out[n++] = some[i];
  for (uint32_t i = 0; i < p->n_where; i++) floats_in(p->where[i], lit, &n_lit, 8);
  for (size_t i = 0; i < n_lit; i++) {
    const double near[] = {lit[i],
                           -lit[i],
                           lit[i] / 2,
                           1.5 * lit[i],
                           (1 - 1e-5) * lit[i],
                           (1 + 1e-5) * lit[i],
                           (1 + 1e-3) * lit[i],
                           (1 - 1e-3) * lit[i],
                           sqrt(fabs(lit[i])) / 2,
                           -sqrt(fabs(lit[i])) / 2,
                           i ? (lit[i] + lit[i - 1]) / 2 : 0};
    for (size_t k = 0; k < sizeof near / sizeof *near && n < cap; k++) out[n++] = near[k];
  }
  return n;
}

/* A root to its last digit, and of few digits where it has them: numbers tied by an equation must
 * not depend on how it was solved. */
static double polished(val_problem *p, val_name *n, const rule_term *t, double x) {
  double best = x, least = fabs(residue(p, n, t, x));
  const double h = 1e-3 * (fabs(x) + 1e-9),
               slope = (residue(p, n, t, x + h) - residue(p, n, t, x - h)) / (2 * h);
  for (int i = 0; i < 3 && isfinite(slope) && slope != 0; i++) {
    const double y = best - residue(p, n, t, best) / slope, off = fabs(residue(p, n, t, y));
    if (!(off < least)) break;
    best = y;
    least = off;
  }
  char text[40];
  for (int digits = 1; digits < 15; digits++) {
    snprintf(text, sizeof text, "%.*e", digits - 1, best);
    const double y = strtod(text, NULL), off = fabs(residue(p, n, t, y));
    if (fabs(y - best) <= 1e-12 * fabs(best) && (off <= least || off == 0)) return y;
  }
  return best;
}

bool val_solve_last(val_problem *p, const rule_term *t, uint32_t which, iso_rng *rng) {
  val_name *n = &p->name[which];
  double real[112];
  int64_t whole[160];
  size_t n_real = 0, n_whole = 0;
  const bool equation = strcmp(t->u.s, "=") == 0;
  double r[2];
  size_t k = equation ? roots(p, n, t, r) : 0;
  if (n->kind == 'f') {
    for (size_t i = 0; i < k; i++) real[n_real++] = r[i];
    if (equation) n_real += solve_numerically(p, n, t, real + n_real);
    if (!equation) n_real = reals_near(p, real, sizeof real / sizeof *real);
  } else {
    for (size_t i = 0; i < k; i++) whole[n_whole++] = (int64_t)nearbyint(r[i]);
    if (!equation || k == 0) {
      int64_t lit[24];
      size_t n_lit = 0;
      numbers_in(t, lit, &n_lit, 24);
      for (int64_t v = n->kind == 's' ? 1 : -4; v <= 16; v++) whole[n_whole++] = v;
      for (size_t i = 0; i < n_lit; i++)
        for (int64_t d = -1; d <= 1; d++) whole[n_whole++] = lit[i] + d;
      for (uint32_t i = 0; i < p->n_names && n_whole < 150; i++)
        if (p->name[i].set && p->name[i].kind != 'f' && p->name[i].kind != 'l')
          for (int64_t d = -1; d <= 1; d++) whole[n_whole++] = p->name[i].i + d;
    }
  }
  /* Values that hold, one of them at random; small numbers stand in front. */
  size_t good = 0;
  n->set = true;
  const double *chosen = NULL;
  for (size_t i = 0; i < n_real; i++) {
    n->f = real[i];
    if (val_condition_at(p, t) == VAL_TRUE && iso_rng_below(rng, ++good) == 0) chosen = &real[i];
  }
  int64_t v = 0;
  for (size_t i = 0; i < n_whole; i++) {
    n->i = whole[i];
    if ((n->kind != 's' || n->i >= 1) && val_condition_at(p, t) == VAL_TRUE &&
        iso_rng_below(rng, ++good) == 0)
      v = n->i;
  }
  n->i = v;
  if (chosen != NULL) n->f = equation ? polished(p, n, t, *chosen) : *chosen;
  n->set = good > 0;
  return good > 0;
}
