/* Conditions over sizes and attributes: their truth at given values.
 *
 * Integers are exact (rationals over 128 bits; a condition that leaves them is open). Where a real
 * attribute takes part, doubles are used with a tolerance that the caller sets: a literal stands
 * for the number that an equation asks for if it is within it. Each double carries a bound of its
 * error: a sum that cancels ((1e20 + 1) - 1e20) says nothing of the real numbers, and is open. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rules/rules_int.h"

/* A number of a condition: num / den where `exact`, else `d`. */
typedef struct number {
  bool exact, ok; /* ok: every name had a value, and nothing was divided by zero or left 128 bits */
  __int128 num, den;
  double d, error; /* not exact: what is meant is within `error` of d */
} number;

static const number bad = {0};

/* `error`: of its operands; the result is rounded in turn. */
static number rounded(double d, double error) {
  error += DBL_EPSILON / 2 * fabs(d);
  return (number){.ok = isfinite(d) && isfinite(error), .d = d, .error = error};
}

static number fraction(__int128 num, __int128 den) {
  const __int128 limit = (__int128)1 << 62;
  if (den == 0) return bad;
  if (den < 0) num = -num, den = -den;
  __int128 a = num < 0 ? -num : num, b = den;
  while (b != 0) {
    const __int128 r = a % b;
    a = b, b = r;
  }
  if (a > 1) num /= a, den /= a;
  if (num > limit || num < -limit || den > limit) return bad;
  return (number){
      .exact = true, .ok = true, .num = num, .den = den, .d = (double)num / (double)den};
}

/* A sum in which one part is lost in the rounding of the other says nothing of it: 1e20 is not 1e20
 * + 1 by another reading. */
static number sum(number a, number b, double sign, double rel_tol) {
  const number s = rounded(a.d + sign * b.d, a.error + b.error);
  return rel_tol > 0 && ((a.d != 0 && s.error > 4 * rel_tol * fabs(a.d)) ||
                         (b.d != 0 && s.error > 4 * rel_tol * fabs(b.d)))
             ? bad
             : s;
}

static number combine(const char *op, number a, number b, double rel_tol) {
  if (!a.ok || !b.ok) return bad;
  const bool exact = a.exact && b.exact;
  switch (op[0]) {
  case '+':
    return exact ? fraction(a.num * b.den + b.num * a.den, a.den * b.den) : sum(a, b, 1, rel_tol);
  case '-':
    return exact ? fraction(a.num * b.den - b.num * a.den, a.den * b.den) : sum(a, b, -1, rel_tol);
  case '*':
    return exact
               ? fraction(a.num * b.num, a.den * b.den)
               : rounded(a.d * b.d, fabs(a.d) * b.error + fabs(b.d) * a.error + a.error * b.error);
  case '/':
    if (exact) return fraction(a.num * b.den, a.den * b.num);
    if (!(fabs(b.d) > b.error)) return bad;
    return rounded(a.d / b.d, (a.error + fabs(a.d / b.d) * b.error) / (fabs(b.d) - b.error));
  default: /* mod: the remainder has the divisor's sign */
    if (!exact || a.den != 1 || b.den != 1 || b.num == 0) return bad;
    const __int128 r = a.num % b.num;
    return fraction(r != 0 && (r < 0) != (b.num < 0) ? r + b.num : r, 1);
  }
}

static number literal_number(const rule_term *t, double rel_tol) {
  if (t->kind == RULE_INT) return fraction(t->u.i, 1);
  /* A decimal is a double, and a double is a fraction: exact where it is a small one. */
  const double scaled = ldexp(t->u.f, 30);
  return fabs(t->u.f) < 1e6 && !(scaled < nearbyint(scaled)) && !(scaled > nearbyint(scaled))
             ? fraction((__int128)scaled, (__int128)1 << 30)
         : rel_tol > 0 ? rounded(t->u.f, 0)
                       : (number){.ok = isfinite(t->u.f), .d = t->u.f};
}

static number at(const rule_term *t, const rule_values *v) {
  rule_term value;
  if (t->kind == RULE_INT || t->kind == RULE_FLOAT) return literal_number(t, v->rel_tol);
  if (t->kind == RULE_NAME) {
    if (!v->value(v->ctx, t->u.s, &value)) return bad;
    return value.kind == RULE_INT || value.kind == RULE_FLOAT ? literal_number(&value, v->rel_tol)
                                                              : bad;
  }
  if (t->kind != RULE_EXPR || t->n == 0) return bad;
  number x = at(t->child[0], v);
  if (t->n == 1 && t->u.s[0] == '-') return combine("-", fraction(0, 1), x, v->rel_tol);
  for (uint32_t i = 1; i < t->n; i++) x = combine(t->u.s, x, at(t->child[i], v), v->rel_tol);
  return x;
}

bool rule_size_at(const rule_term *t, const rule_values *v, int64_t *out) {
  const number x = at(t, v);
  if (!x.ok || !x.exact || x.den != 1) return false;
  *out = (int64_t)x.num;
  return true;
}

double rule_number_at(const rule_term *t, const rule_values *v) {
  const number x = at(t, v);
  return x.ok ? x.d : (double)NAN;
}

/* Sign of a - b, UNSURE where the errors leave it open; 0 also where two doubles whose error is of
 * the tolerance's size agree within it. */
enum { UNSURE = 2 };
static int compare(number a, number b, double rel_tol) {
  if (a.exact && b.exact) {
    const __int128 d = a.num * b.den - b.num * a.den;
    return d < 0 ? -1 : d > 0;
  }
  const double d = a.d - b.d, error = a.error + b.error,
               near = rel_tol * fmax(fabs(a.d), fabs(b.d));
  if (rel_tol >= 0 && fabs(d) <= near && error <= 4 * near) return 0;
  return fabs(d) > error ? (d < 0 ? -1 : 1) : UNSURE;
}

static rule_truth truth(bool holds) { return holds ? RULE_TRUE : RULE_FALSE; }

static rule_truth related(const char *op, number a, number b, double rel_tol) {
  const int s = compare(a, b, rel_tol);
  if (s == UNSURE) return RULE_OPEN;
  return truth(strcmp(op, "=") == 0    ? s == 0
               : strcmp(op, "!=") == 0 ? s != 0
               : strcmp(op, "<") == 0  ? s < 0
               : strcmp(op, "<=") == 0 ? s <= 0
               : strcmp(op, ">") == 0  ? s > 0
                                       : s >= 0);
}

rule_truth rule_condition_at(const rule_term *t, const rule_values *v) {
  const char *op = t->kind == RULE_EXPR ? t->u.s : "";
  if (strcmp(op, "and") == 0 || strcmp(op, "or") == 0) {
    const rule_truth decisive = op[0] == 'a' ? RULE_FALSE : RULE_TRUE;
    bool open = false;
    for (uint32_t i = 0; i < t->n; i++) {
      const rule_truth x = rule_condition_at(t->child[i], v);
      if (x == decisive) return x;
      open |= x == RULE_OPEN;
    }
    return open ? RULE_OPEN : decisive == RULE_TRUE ? RULE_FALSE : RULE_TRUE;
  }
  if (strcmp(op, "not") == 0) {
    const rule_truth x = rule_condition_at(t->child[0], v);
    return x == RULE_OPEN ? x : x == RULE_TRUE ? RULE_FALSE : RULE_TRUE;
  }
  if (t->n < 2) return RULE_OPEN;
  const number a = at(t->child[0], v), b = at(t->child[1], v);
  if (!a.ok || !b.ok) return RULE_OPEN;
  if (strcmp(op, "divides") == 0) {
    const number m = combine("mod", b, a, v->rel_tol);
    return m.ok ? truth(m.num == 0) : RULE_OPEN;
  }
  if (strcmp(op, "in") != 0) return related(op, a, b, v->rel_tol);
  const number high = at(t->child[2], v); /* low <= x < high */
  if (!high.ok) return RULE_OPEN;
  const rule_truth low = related("<=", b, a, v->rel_tol), below = related("<", a, high, v->rel_tol);
  return low == RULE_FALSE || below == RULE_FALSE ? RULE_FALSE
         : low == RULE_TRUE && below == RULE_TRUE ? RULE_TRUE
                                                  : RULE_OPEN;
}
