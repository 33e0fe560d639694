/* Interval arithmetic over the operators of a term, with ends that are reached or not. It shows
 * that a bound never binds: a count is at most the number of elements counted, a softmax lies
 * between 0 and 1. Ends are computed without rounding, or moved outwards; an operator that is not
 * defined here may give any number. */
#include "validate/branch/range.h"
#include "validate/branch/choice_int.h"

#include <math.h>
#include <string.h>

#include "egraph/base/vec.h"

/* ---- ends ---- */

typedef struct end {
  double at;
  bool open;
} end;

static end low_of(val_range r) { return (end){r.low, r.low_open}; }
static end high_of(val_range r) { return (end){r.high, r.high_open}; }
static val_range between(end low, end high) {
  return (val_range){low.at, high.at, low.open, high.open};
}
static val_range closed(double low, double high) { return (val_range){low, high, false, false}; }

/* `x` was rounded: the end is outside of it, and not reached. */
static end outside(double x, int way) { return (end){nextafter(x, way * (double)INFINITY), true}; }

static bool reached_infinity(end a, end b) {
  return (isinf(a.at) && !a.open) || (isinf(b.at) && !b.open);
}

static end sum_of(end a, end b, int way) {
  const double s = a.at + b.at, t = s - a.at, rest = (a.at - (s - t)) + (b.at - t);
  if (isnan(s)) return (end){way * (double)INFINITY, false};
  if (!isinf(s) && !(rest <= 0 && rest >= 0)) return outside(s, way);
  return (end){s, isinf(s) ? !reached_infinity(a, b) : a.open || b.open};
}

static bool zero(double x) { return !(x < 0) && !(x > 0); }

static end product_of(end a, end b, int way) {
  if (zero(a.at) || zero(b.at))
    return (end){0, !(zero(a.at) && !a.open) && !(zero(b.at) && !b.open)};
  const double p = a.at * b.at;
  if (!isinf(p) && (!zero(fma(a.at, b.at, -p)) || fabs(p) < 1e-290)) return outside(p, way);
  return (end){p, isinf(p) ? !reached_infinity(a, b) : a.open || b.open};
}

/* The further one out; of equal ones the one that is reached. */
static end further(end a, end b, int way) {
  if (way * a.at > way * b.at) return a;
  if (way * a.at < way * b.at) return b;
  return (end){a.at, a.open && b.open};
}

/* ---- arithmetic ---- */

static val_range hull(val_range a, val_range b) {
  return between(further(low_of(a), low_of(b), -1), further(high_of(a), high_of(b), 1));
}

static val_range negative(val_range a) {
  return (val_range){-a.high, -a.low, a.high_open, a.low_open};
}

static val_range plus(val_range a, val_range b) {
  return between(sum_of(low_of(a), low_of(b), -1), sum_of(high_of(a), high_of(b), 1));
}

static val_range times(val_range a, val_range b) {
  const end x[2] = {low_of(a), high_of(a)}, y[2] = {low_of(b), high_of(b)};
  end low = product_of(x[0], y[0], -1), high = product_of(x[0], y[0], 1);
  for (int k = 1; k < 4; k++) {
    low = further(low, product_of(x[k / 2], y[k % 2], -1), -1);
    high = further(high, product_of(x[k / 2], y[k % 2], 1), 1);
  }
  return between(low, high);
}

/* The smaller, or the larger, of one number in `a` and one in `b`. */
static val_range lesser(val_range a, val_range b) {
  const end h = a.high < b.high || (a.high <= b.high && a.high_open) ? high_of(a) : high_of(b);
  return between(further(low_of(a), low_of(b), -1), h);
}

static val_range larger(val_range a, val_range b) {
  return negative(lesser(negative(a), negative(b)));
}

static val_range magnitude(val_range a) {
  if (a.low >= 0) return a;
  if (a.high <= 0) return negative(a);
  return between((end){0, false}, further((end){-a.low, a.low_open}, high_of(a), 1));
}

/* Of a function that never falls, and is computed exactly. */
static val_range rising(val_range a, double (*f)(double)) { return closed(f(a.low), f(a.high)); }

/* ---- the operators ---- */

typedef struct question {
  const rule_term *call;
  rule_tensor *const *bind;
  const val_range *in;
  size_t n;
  const rule_tensor *out;
} question;

/* The range of a variable, or of a result of which nothing is known. */
static val_range range_any(rule_dtype d) {
  if (d == RULE_BOOL) return closed(0, 1);
  return closed(-(double)INFINITY, (double)INFINITY); /* masks are minus infinity */
}

/* Argument `k`: a tensor or a number. */
static bool argument(const question *q, uint32_t k, val_range *r) {
  const rule_term *t = k < q->call->n ? q->call->child[k] : NULL;
  if (!t) return false;
  if (t->kind == RULE_VAR && (size_t)t->u.i < q->n)
    return *r = q->in[t->u.i], !rule_dtype_is_complex(q->bind[t->u.i]->dtype);
  if (t->kind != RULE_FLOAT && t->kind != RULE_INT) return false;
  const double x = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
  return *r = closed(x, x), !isnan(x) && (t->kind == RULE_FLOAT || fabs(x) < 0x1p53);
}

static const rule_tensor *tensor(const question *q, uint32_t k) {
  const rule_term *t = k < q->call->n ? q->call->child[k] : NULL;
  return t && t->kind == RULE_VAR && (size_t)t->u.i < q->n ? q->bind[t->u.i] : NULL;
}

static bool is_one_of(const char *name, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(name, list[i]) == 0) return true;
  return false;
}
#define IS(...) \
  is_one_of(name, (const char *const[]){__VA_ARGS__}, \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Operators that take elements of their tensors, or a mean or an extreme of them: in the hull of
 * all. operator: the range of each is defined here. */
static bool of_elements(const question *q, const char *name, val_range *r) {
  if (!IS("view", "reshape", "unsqueeze", "squeeze", "transpose", "t", "permute", "expand",
          "contiguous", "clone", "alias", "detach", "select", "slice", "flatten", "cat", "stack",
          "flip", "repeat", "amax", "amin", "mean") ||
      q->n == 0 || q->bind[0]->dtype != q->out->dtype)
    return false;
  *r = q->in[0];
  for (size_t i = 1; i < q->n; i++) *r = hull(*r, q->in[i]);
  return true;
}

/* The size of the dimension that argument `k` names, or of all where there is none. */
static double size_along(const question *q, uint32_t k) {
  const rule_tensor *x = tensor(q, 0);
  const rule_term *t = k < q->call->n ? q->call->child[k] : NULL;
  if (!x || !t || t->kind != RULE_INT) return x ? (double)x->numel : 0;
  const int64_t d = t->u.i < 0 ? t->u.i + x->shape.rank : t->u.i;
  return d >= 0 && d < x->shape.rank ? (double)x->shape.dim[d] : (double)x->numel;
}

/* Operators whose result lies between two numbers for every argument.
 * operator: the range of each is defined here. */
static bool of_any(const question *q, const char *name, val_range *r) {
  const double infinite = (double)INFINITY;
  if (IS("one_hot", "sigmoid", "softmax", "_softmax")) *r = closed(0, 1);
  else if (IS("tanh", "erf", "sin", "cos")) *r = closed(-1, 1);
  else if (IS("exp")) *r = closed(0, infinite);
  else if (IS("argmax", "argmin")) {
    const double size = size_along(q, 1);
    if (size < 1) return false;
    *r = closed(0, size - 1);
  } else return false;
  return true;
}

/* Of one tensor, element by element.
 * operator: the range of each is defined here. */
static bool of_one(const question *q, const char *name, val_range *r) {
  val_range a, b;
  if (!argument(q, 0, &a)) return false;
  if (IS("neg")) *r = negative(a);
  else if (IS("abs")) *r = magnitude(a);
  else if (IS("square")) *r = times(magnitude(a), magnitude(a));
  else if (IS("relu")) *r = larger(a, closed(0, 0));
  else if (IS("sqrt"))
    *r = closed(0, a.high < 0 ? 0 : isinf(a.high) ? a.high : nextafter(sqrt(a.high), INFINITY));
  else if (IS("floor")) *r = rising(a, floor);
  else if (IS("ceil")) *r = rising(a, ceil);
  else if (IS("trunc")) *r = rising(a, trunc);
  else if (IS("round") && q->call->n == 1) *r = rising(a, nearbyint);
  else if (IS("clamp", "clip")) {
    *r = a;
    if (q->call->n > 1 && q->call->child[1]->kind != RULE_NONE) {
      if (!argument(q, 1, &b)) return false;
      *r = larger(*r, b);
    }
    if (q->call->n > 2 && q->call->child[2]->kind != RULE_NONE) {
      if (!argument(q, 2, &b)) return false;
      *r = lesser(*r, b);
    }
  } else return false;
  return true;
}

/* Of two, as broadcasting pairs them. A factor behind them (alpha) is not looked at.
 * operator: the range of each is defined here. */
static bool of_two(const question *q, const char *name, val_range *r) {
  val_range a, b;
  if (q->call->n != 2 || !argument(q, 0, &a) || !argument(q, 1, &b)) return false;
  if (IS("add")) *r = plus(a, b);
  else if (IS("sub")) *r = plus(a, negative(b));
  else if (IS("rsub")) *r = plus(b, negative(a));
  else if (IS("mul")) *r = times(a, b);
  else if (IS("maximum", "clamp_min")) *r = larger(a, b);
  else if (IS("minimum", "clamp_max")) *r = lesser(a, b);
  else return false;
  return true;
}

/* A sum of so many, or of up to so many.
 * operator: the range of each is defined here. */
static bool of_sums(const question *q, const char *name, val_range *r) {
  const rule_tensor *x = tensor(q, 0);
  val_range a;
  if (!x || x->numel == 0 || q->out->numel == 0 || !argument(q, 0, &a)) return false;
  if (IS("sum")) {
    const double m = (double)(x->numel / q->out->numel);
    *r = times(a, closed(m, m));
  } else if (IS("cumsum")) {
    *r = times(a, closed(1, size_along(q, 1)));
  } else if (IS("cumprod", "prod")) {
    if (!(a.low >= 0) || !(a.high <= 1)) return false;
    *r = closed(0, 1);
  } else return false;
  return true;
}

/* Operators that choose: the hull of their branches.
 * operator: the range of each is defined here. */
static bool of_branches(const question *q, const char *name, val_range *r) {
  const bool fill = IS("masked_fill");
  val_range a, b;
  if ((!fill && !IS("where")) || q->call->n != 3 || !argument(q, fill ? 0 : 1, &a) ||
      !argument(q, 2, &b))
    return false;
  *r = hull(a, b);
  return true;
}

/* Casts to floats change no number; casts to integers cut digits off, and keep numbers that fit.
 * operator: the range of each is defined here. */
static bool of_cast(const question *q, const char *name, val_range *r) {
  val_range a;
  if (!IS("to", "_to_copy") || !argument(q, 0, &a) || q->out->dtype == RULE_BOOL) return false;
  *r = rule_dtype_is_int(q->out->dtype) ? rising(a, trunc) : a;
  return true;
}

/* Integers that could leave their dtype may be any of it. */
static bool fits(rule_dtype d, val_range r) {
  if (isnan(r.low) || isnan(r.high)) return false;
  if (!rule_dtype_is_int(d)) return true;
  const int bits = 8 * (int)rule_dtype_size(d) - (d != RULE_U8);
  const double most = bits > 52 ? 0x1p53 : ldexp(1, bits) - 1;
  return r.low >= (d == RULE_U8 ? 0 : bits > 52 ? -0x1p53 : -ldexp(1, bits)) && r.high <= most;
}

/* Real numbers, and integers that do not leave their dtype. */
val_range val_range_of(const rule_term *call, rule_tensor *const *bind, const val_range *in,
                       size_t n, const rule_tensor *out) {
  char buf[64];
  const char *name = val_base_name(call->u.s, buf);
  const question q = {call, bind, in, n, out};
  val_range r;
  if (strncmp(call->u.s, "aten::", 6) == 0 && out->dtype != RULE_BOOL &&
      !rule_dtype_is_complex(out->dtype) &&
      (of_elements(&q, name, &r) || of_any(&q, name, &r) || of_one(&q, name, &r) ||
       of_two(&q, name, &r) || of_sums(&q, name, &r) || of_branches(&q, name, &r) ||
       of_cast(&q, name, &r)) &&
      fits(out->dtype, r))
    return r;
  return range_any(out->dtype);
}

void val_ranges_in(const val_ranges *all, rule_tensor *const *bind, size_t n, val_range *in) {
  for (size_t i = 0; i < n; i++) {
    in[i] = range_any(bind[i]->dtype);
    for (size_t k = 0; k < all->n; k++)
      if (all->of[k].tensor == bind[i]) in[i] = all->of[k].range;
  }
}

bool val_ranges_note(val_ranges *all, const rule_term *call, rule_tensor *const *bind,
                     const val_range *in, size_t n, rule_tensor *const *out, size_t n_out) {
  if (n_out != 1) return true;
  for (size_t i = 0; i < n; i++)
    if (bind[i] == out[0]) return true; /* it may be a variable */
  if (!iso_grow(all->of, all->cap, all->n + 1)) return false;
  all->of[all->n].tensor = out[0];
  all->of[all->n++].range = val_range_of(call, bind, in, n, out[0]);
  return true;
}

/* ---- what can be done there ---- */

/* Whether every number of `a` is below every one of `b`, or with `or_equal` not above it. */
static bool below(val_range a, val_range b, bool or_equal) {
  return a.high < b.low || (a.high <= b.low && (or_equal || a.high_open || b.low_open));
}

/* operator: the range of each is defined here. */
static bool one_answer(const char *name, val_range a, val_range b) {
  if (IS("lt", "ge")) return below(a, b, false) || below(b, a, true);
  if (IS("gt", "le")) return below(b, a, false) || below(a, b, true);
  return IS("eq", "ne") && (below(a, b, false) || below(b, a, false));
}

/* Which of a bound's sides, `a` being bounded by `b` from below. */
static uint16_t by_lower(val_range a, val_range b) {
  return (below(b, a, true) ? VAL_UP : 0) | (below(a, b, true) ? VAL_SAME : 0);
}

static uint16_t by_upper(val_range a, val_range b) {
  return (below(a, b, true) ? VAL_DOWN : 0) | (below(b, a, true) ? VAL_SAME : 0);
}

/* operator: the range of each is defined here. */
static uint16_t never_bounds(const question *q, const char *name, val_range a) {
  val_range b;
  uint16_t never = 0;
  if (IS("relu")) return by_lower(a, closed(0, 0));
  if (IS("clamp_min", "maximum")) return argument(q, 1, &b) ? by_lower(a, b) : 0;
  if (IS("clamp_max", "minimum")) return argument(q, 1, &b) ? by_upper(a, b) : 0;
  if (!IS("clamp", "clip")) return 0;
  if (argument(q, 1, &b)) never |= by_lower(a, b) & VAL_UP;
  if (argument(q, 2, &b)) never |= by_upper(a, b) & VAL_DOWN;
  return never;
}

uint16_t val_range_needs(const rule_term *call, rule_tensor *const *bind, const val_range *in,
                         size_t n, const rule_tensor *out, uint16_t need) {
  const question q = {call, bind, in, n, out};
  char buf[64];
  const char *name = val_base_name(call->u.s, buf);
  val_range a, b;
  if (!need || strncmp(call->u.s, "aten::", 6) != 0 || !argument(&q, 0, &a)) return need;
  if (argument(&q, 1, &b) && one_answer(name, a, b)) return 0;
  if ((need & VAL_FAR) && rule_dtype_is_int(out->dtype) && fits(out->dtype, rising(a, trunc)))
    need &= (uint16_t)~VAL_FAR;
  return need & (uint16_t)~never_bounds(&q, name, a);
}
