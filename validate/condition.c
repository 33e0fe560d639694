/* Conditions over sizes and attributes: their truth at given values, and values that make them true.
 *
 * Integers are exact (rationals over 128 bits); where a real attribute takes part, doubles with a tolerance that only
 * says whether an equation was solved. A name that is the last one open in a condition is solved for: linear and
 * quadratic equations in closed form, the rest by trying what the rule's numbers suggest. */
#include <math.h>
#include <string.h>

#include "validate/instance_int.h"

/* A number of a condition: num / den where `exact`, else `d`. */
typedef struct value {
  bool exact, ok; /* ok: every name had a value, and nothing was divided by zero or left 128 bits */
  __int128 num, den;
  double d;
} value;

static const value bad_value = {0};

static value real_value(double d) { return (value){.ok = isfinite(d), .d = d}; }

static value fraction(__int128 num, __int128 den) {
  const __int128 limit = (__int128)1 << 62;
  if (den == 0) return bad_value;
  if (den < 0) num = -num, den = -den;
  __int128 a = num < 0 ? -num : num, b = den;
  while (b != 0) {
    const __int128 r = a % b;
    a = b, b = r;
  }
  if (a > 1) num /= a, den /= a;
  if (num > limit || num < -limit || den > limit) return real_value((double)num / (double)den);
  return (value){.exact = true, .ok = true, .num = num, .den = den, .d = (double)num / (double)den};
}

static value name_value(const val_problem *p, const char *name) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->name[i].name, name) == 0) {
      const val_name *n = &p->name[i];
      if (!n->set) return bad_value;
      return n->kind == 'f' ? real_value(n->f) : n->kind == 'l' ? bad_value : fraction(n->i, 1);
    }
  return bad_value;
}

static value combine(const char *op, value a, value b) {
  if (!a.ok || !b.ok) return bad_value;
  const bool exact = a.exact && b.exact;
  switch (op[0]) {
  case '+': return exact ? fraction(a.num * b.den + b.num * a.den, a.den * b.den) : real_value(a.d + b.d);
  case '-': return exact ? fraction(a.num * b.den - b.num * a.den, a.den * b.den) : real_value(a.d - b.d);
  case '*': return exact ? fraction(a.num * b.num, a.den * b.den) : real_value(a.d * b.d);
  case '/': return exact ? fraction(a.num * b.den, a.den * b.num) : real_value(a.d / b.d);
  default: /* mod: the remainder has the divisor's sign */
    if (!exact || a.den != 1 || b.den != 1 || b.num == 0) return bad_value;
    const __int128 r = a.num % b.num;
    return fraction(r != 0 && (r < 0) != (b.num < 0) ? r + b.num : r, 1);
  }
}

static value number_at(const val_problem *p, const rule_term *t) {
  if (t->kind == RULE_INT) return fraction(t->u.i, 1);
  if (t->kind == RULE_FLOAT) {
    /* A decimal is a double, and a double is a fraction: exact where it is a small one. */
    const double scaled = ldexp(t->u.f, 30);
    return fabs(t->u.f) < 1e6 && scaled == nearbyint(scaled) ? fraction((__int128)scaled, (__int128)1 << 30) : real_value(t->u.f);
  }
  if (t->kind == RULE_NAME) return name_value(p, t->u.s);
  if (t->kind != RULE_EXPR || t->n == 0) return bad_value;
  value v = number_at(p, t->child[0]);
  if (t->n == 1 && t->u.s[0] == '-') return combine("-", fraction(0, 1), v);
  for (uint32_t i = 1; i < t->n; i++) v = combine(t->u.s, v, number_at(p, t->child[i]));
  return v;
}

bool val_size_at(const val_problem *p, const rule_term *t, int64_t *out) {
  const value v = number_at(p, t);
  if (!v.ok || !v.exact || v.den != 1) return false;
  *out = (int64_t)v.num;
  return true;
}

/* Sign of a - b; 0 also where two doubles agree to rounding. */
static int compare(value a, value b) {
  if (a.exact && b.exact) {
    const __int128 d = a.num * b.den - b.num * a.den;
    return d < 0 ? -1 : d > 0;
  }
  const double d = a.d - b.d;
  return fabs(d) <= 1e-11 * fmax(fabs(a.d), fabs(b.d)) ? 0 : d < 0 ? -1 : 1;
}

val_truth val_condition_at(const val_problem *p, const rule_term *t) {
  const char *op = t->u.s;
  if (strcmp(op, "and") == 0 || strcmp(op, "or") == 0) {
    const val_truth decisive = op[0] == 'a' ? VAL_FALSE : VAL_TRUE;
    bool open = false;
    for (uint32_t i = 0; i < t->n; i++) {
      const val_truth v = val_condition_at(p, t->child[i]);
      if (v == decisive) return v;
      open |= v == VAL_OPEN;
    }
    return open ? VAL_OPEN : decisive == VAL_TRUE ? VAL_FALSE : VAL_TRUE;
  }
  if (strcmp(op, "not") == 0) {
    const val_truth v = val_condition_at(p, t->child[0]);
    return v == VAL_OPEN ? v : v == VAL_TRUE ? VAL_FALSE : VAL_TRUE;
  }
  value a = number_at(p, t->child[0]), b = number_at(p, t->child[1]);
  if (!a.ok || !b.ok) return VAL_OPEN;
  bool holds = false;
  if (strcmp(op, "divides") == 0) {
    const value m = combine("mod", b, a);
    holds = m.ok && m.num == 0;
  } else if (strcmp(op, "in") == 0) { /* low <= x < high */
    const value high = number_at(p, t->child[2]);
    if (!high.ok) return VAL_OPEN;
    holds = compare(b, a) <= 0 && compare(a, high) < 0;
  } else {
    const int s = compare(a, b);
    holds = strcmp(op, "=") == 0    ? s == 0
            : strcmp(op, "!=") == 0 ? s != 0
            : strcmp(op, "<") == 0  ? s < 0
            : strcmp(op, "<=") == 0 ? s <= 0
            : strcmp(op, ">") == 0  ? s > 0
                                    : s >= 0;
  }
  return holds ? VAL_TRUE : VAL_FALSE;
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

/* left - right of an equation at x. */
static double residue(val_problem *p, val_name *n, const rule_term *t, double x) {
  n->set = true;
  n->f = x;
  n->i = (int64_t)x;
  const value a = number_at(p, t->child[0]), b = number_at(p, t->child[1]);
  n->set = false;
  return a.ok && b.ok ? a.d - b.d : (double)NAN;
}

/* Roots of an equation that is a polynomial of degree 2 or less in the name, by three values. */
static size_t roots(val_problem *p, val_name *n, const rule_term *t, double out[2]) {
  const double c = residue(p, n, t, 0), f1 = residue(p, n, t, 1), f2 = residue(p, n, t, -1);
  if (isnan(c) || isnan(f1) || isnan(f2)) return 0;
  const double a = (f1 + f2) / 2 - c, b = (f1 - f2) / 2;
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

bool val_solve_last(val_problem *p, const rule_term *t, uint32_t which, iso_rng *rng) {
  val_name *n = &p->name[which];
  double real[24];
  int64_t whole[160];
  size_t n_real = 0, n_whole = 0;
  const bool equation = strcmp(t->u.s, "=") == 0;
  double r[2];
  size_t k = equation ? roots(p, n, t, r) : 0;
  if (n->kind == 'f') {
    for (size_t i = 0; i < k; i++) real[n_real++] = r[i];
    if (equation) n_real += solve_numerically(p, n, t, real + n_real);
    static const double some[] = {0.5, 2, 1, 0.25, 3, -1, 0.1, 10, -0.5, 0, 1e-3, 100};
    if (!equation)
      for (size_t i = 0; i < sizeof some / sizeof *some; i++) real[n_real++] = some[i];
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
  /* What holds, one of them at random; small numbers stand in front. */
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
    if ((n->kind != 's' || n->i >= 1) && val_condition_at(p, t) == VAL_TRUE && iso_rng_below(rng, ++good) == 0) v = n->i;
  }
  n->i = v;
  if (chosen != NULL) n->f = *chosen;
  n->set = good > 0;
  return good > 0;
}
