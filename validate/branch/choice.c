/* The choices that operators make, element by element. */
#include "validate/branch/choice_int.h"
#include "rules/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a call ---- */

static const char *bare(const rule_term *call) {
  const char *name = strstr(call->u.s, "::");
  return name ? name + 2 : call->u.s;
}

static bool named(const val_site *s, const char *name) {
  const char *p = bare(s->call);
  return strcspn(p, ".") == strlen(name) && strncmp(p, name, strlen(name)) == 0;
}

static bool number(const val_site *s, uint32_t k, double *out) {
  const rule_term *t = k < s->call->n ? s->call->child[k] : NULL;
  if (!t || (t->kind != RULE_FLOAT && t->kind != RULE_INT)) return false;
  *out = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
  return true;
}

static double number_or(const val_site *s, uint32_t k, double otherwise) {
  double x;
  return number(s, k, &x) ? x : otherwise;
}

static bool any_float(const val_site *s) {
  for (size_t i = 0; i < s->n; i++)
    if (rule_dtype_is_float(s->bind[i]->dtype)) return true;
  for (uint32_t i = 0; i < s->call->n; i++)
    if (s->call->child[i]->kind == RULE_FLOAT) return true;
  return false;
}

static bool any_complex(const val_site *s) {
  bool any = rule_dtype_is_complex(s->out->dtype);
  for (size_t i = 0; i < s->n; i++) any |= rule_dtype_is_complex(s->bind[i]->dtype);
  return any;
}

static const rule_tensor *tensor(const val_site *s, uint32_t k) {
  const rule_term *t = k < s->call->n ? s->call->child[k] : NULL;
  return t && t->kind == RULE_VAR && (size_t)t->u.i < s->n ? s->bind[t->u.i] : NULL;
}

/* Overloads of one name that do other things: a cast that casts nothing, a quotient without
 * rounding, a maximum of two tensors. */
static rule_choice refined(const val_site *s) {
  const rule_choice c = s->choice;
  const rule_tensor *x = tensor(s, 0);
  if (c == RULE_CHOICE_DIVISION) {
    for (uint32_t i = 2; i < s->call->n; i++)
      if (s->call->child[i]->kind == RULE_STRING) return RULE_CHOICE_QUOTIENT;
    return RULE_CHOICE_NONE;
  }
  if (c == RULE_CHOICE_CAST) {
    const rule_tensor *from = named(s, "copy") ? tensor(s, 1) : x;
    if (!from || from->dtype == RULE_BOOL || s->out->dtype == from->dtype) return RULE_CHOICE_NONE;
    if (s->out->dtype == RULE_BOOL) return RULE_CHOICE_CAST;
    return rule_dtype_is_float(from->dtype) && rule_dtype_is_int(s->out->dtype) && !named(s, "copy")
               ? RULE_CHOICE_CAST
               : RULE_CHOICE_NONE;
  }
  if (rule_operator_of(s->call->u.s)->breaks.form == RULE_BREAKS_WITHIN && s->call->n > 1 &&
      s->call->child[1]->kind != RULE_NONE)
    return RULE_CHOICE_PIECES; /* within eps and 1 - eps */
  if (c == RULE_CHOICE_EXTREME && strstr(s->call->u.s, ".other")) return RULE_CHOICE_BOUND;
  if (c == RULE_CHOICE_EXTREME && val_finds_places(s->call)) return RULE_CHOICE_ORDER;
  if (c == RULE_CHOICE_LOGIC && s->out->dtype != RULE_BOOL) return RULE_CHOICE_STEP;
  return c;
}

val_site val_site_of(const rule_term *call, rule_tensor *const *bind, size_t n,
                     const rule_tensor *out) {
  val_site s = {.call = call,
                .bind = bind,
                .n = n,
                .out = out,
                .choice = rule_operator_of(call->u.s)->choice};
  if (s.choice <= RULE_CHOICE_NONE) return s;
  if (any_complex(&s)) s.choice = RULE_CHOICE_NONE;
  s.choice = refined(&s);
  s.aligned = s.choice > RULE_CHOICE_NONE && n > 0 && val_operands_of(call, bind, n, out, &s.o);
  return s;
}

/* ---- pieces ---- */

/* Between which the operator is one function. Returns: how many, at most two. `jumps`: it does at
 * each. */
static int breaks(const val_site *s, double at[2], bool *jumps) {
  const rule_breaks *b = &rule_operator_of(s->call->u.s)->breaks;
  *jumps = b->jumps;
  at[0] = number_or(s, b->argument, 0);
  switch (b->form) {
  case RULE_BREAKS_AT_ARGUMENT: return 1;
  case RULE_BREAKS_AT_RATIO: return at[0] /= number_or(s, b->over, 1), 1;
  case RULE_BREAKS_AROUND: return at[1] = at[0], at[0] = -at[1], 2;
  case RULE_BREAKS_WITHIN: return at[1] = 1 - at[0], 2;
  case RULE_BREAKS_AT_NUMBERS: return at[0] = b->low, at[1] = b->high, 2;
  default: return at[0] = 0, 1;
  }
}

/* The operand whose numbers are compared with these. */
static double piece_operand(const val_site *s, int64_t i) {
  const int k = rule_operator_of(s->call->u.s)->breaks.operand;
  return k == 0 || s->o.two ? val_operand(&s->o, k, i) : (double)NAN;
}

static bool piece(const val_site *s, uint16_t bit, int64_t i, double y, double *other) {
  const double x = piece_operand(s, i);
  double at[2];
  bool jumps;
  const int n = breaks(s, at, &jumps);
  *other = y + fmax(1, fabs(y));
  if (bit == VAL_DOWN) return x < at[0];
  if (bit == VAL_UP) return x > at[n - 1];
  if (bit == VAL_SAME) return n == 2 && x > at[0] && x < at[1];
  if (!jumps || !(bit & (VAL_EDGE | VAL_EDGE_BELOW | VAL_EDGE_ABOVE))) return false;
  *other = val_operand(&s->o, 0, i);
  return (bit != VAL_EDGE_ABOVE && x == at[0]) || (n == 2 && bit != VAL_EDGE_BELOW && x == at[1]);
}

/* ---- roundings ---- */

static bool odd(double x) { return fmod(floor(x), 2) != 0; }

/* Which kind of jump lies at x, if one does there. */
static bool edge_of(uint16_t bit, bool jump, double x) {
  if (!jump) return false;
  if (bit == VAL_EDGE) return true;
  if (bit == VAL_EDGE_BELOW) return x < 0;
  return bit == VAL_EDGE_ODD ? odd(x) : bit == VAL_EDGE_ABOVE && x > 0 && !odd(x);
}

static double decimals(const val_site *s) { return pow(10, number_or(s, 1, 0)); }

static bool rounding(const val_site *s, uint16_t bit, double x, double y, double *other) {
  const double scale = s->choice == RULE_CHOICE_ROUND ? decimals(s) : 1, v = x * scale,
               toward = v > 0 ? 1 : -1;
  const bool whole = v == nearbyint(v) && fabs(v) < 1e9, half = !whole && 2 * v == nearbyint(2 * v);
  *other = 0;
  if (bit == VAL_SOME) return y != 0;
  switch (s->choice) {
  case RULE_CHOICE_ROUND: return *other = 2 * x - y, edge_of(bit, half, v);
  case RULE_CHOICE_FLOOR: return *other = y - 1, edge_of(bit, whole, x);
  case RULE_CHOICE_CEIL: return *other = y + 1, edge_of(bit, whole, x);
  case RULE_CHOICE_FRAC: return *other = y + toward, edge_of(bit, whole && x != 0, x);
  default: return *other = y - toward, edge_of(bit, whole && x != 0, x);
  }
}

static bool cast(const val_site *s, uint16_t bit, double x, double y, double *other) {
  if (s->out->dtype == RULE_BOOL) {
    *other = y == 0;
    return bit == VAL_YES ? y != 0 : (bit & (VAL_NO | VAL_EDGE)) && y == 0;
  }
  const double limit =
      ldexp(1, s->out->dtype == RULE_U8 ? 8 : (int)(8 * rule_dtype_size(s->out->dtype)) - 1);
  if (bit == VAL_FAR) return *other = y + 1, fabs(x) > limit;
  return rounding(s, bit, x, y, other);
}

static bool quotient(const val_site *s, uint16_t bit, double x, double y, double by,
                     double *other) {
  /* At 0 a remainder, or a quotient, shows nothing of where it begins anew. */
  const bool whole = x != 0 && by != 0 && fmod(x, by) == 0;
  if (named(s, "fmod")) by = copysign(by, x); /* it jumps away from 0 */
  if (s->choice == RULE_CHOICE_REMAINDER)
    return *other = bit == VAL_SOME ? 0 : y + by,
           bit == VAL_SOME ? y != 0 : edge_of(bit, whole, x / by);
  *other = bit == VAL_SOME ? 0 : y - 1;
  return bit == VAL_SOME ? y != 0 : edge_of(bit, whole, x / by);
}

/* ---- bounds and signs ---- */

static bool bound(const val_site *s, uint16_t bit, double x, double y, double by, double *other) {
  *other = x;
  if (bit == VAL_UP) return y > x;
  if (bit == VAL_DOWN) return y < x;
  *other = s->o.two && s->o.tensor[1] ? by : y + fmax(1, fabs(y));
  return bit == VAL_SAME && y == x && *other != y;
}

static bool sign(uint16_t bit, double x, double y, double *other) {
  *other = bit == VAL_EDGE ? y + 1 : 0;
  return bit == VAL_EDGE ? x == 0 : bit == VAL_UP ? x > 0 : bit == VAL_DOWN && x < 0;
}

static bool truth(const val_site *s, uint16_t bit, double x, double y, double by, double *other) {
  *other = y == 0;
  if (bit == VAL_YES) return y != 0;
  if (bit == VAL_NO) return y == 0;
  return (bit & (VAL_EDGE | VAL_MEET)) && s->choice == RULE_CHOICE_COMPARE && x == by &&
         isfinite(x);
}

/* ---- buckets ---- */

/* The row of boundaries that result `i` is sought in. Returns: its length; 0 where it is not in
 * order. */
static int64_t boundaries_of(const val_site *s, int64_t i, const rule_tensor **bounds,
                             int64_t *first, double *x) {
  const bool bucketize = named(s, "bucketize");
  const rule_tensor *b = tensor(s, bucketize ? 1 : 0), *v = tensor(s, bucketize ? 0 : 1);
  if (!b || b->shape.rank == 0 || b->numel == 0) return 0;
  const int64_t length = b->shape.dim[b->shape.rank - 1],
                per_row = s->out->shape.rank ? s->out->shape.dim[s->out->shape.rank - 1] : 1;
  *first = b->shape.rank == 1 || per_row == 0 ? 0 : i / per_row * length;
  if (*first + length > b->numel) return 0;
  if (v) *x = rule_tensor_get(v, i % v->numel);
  else if (!number(s, bucketize ? 0 : 1, x)) return 0;
  for (int64_t k = 1; k < length; k++)
    if (rule_tensor_get(b, *first + k) < rule_tensor_get(b, *first + k - 1)) return 0;
  *bounds = b;
  return length;
}

static bool bucket(const val_site *s, uint16_t bit, int64_t i, double y, double *other) {
  const rule_tensor *b = NULL;
  int64_t first = 0;
  double x = 0;
  const int64_t n = boundaries_of(s, i, &b, &first, &x);
  if (bit == VAL_SOME) return *other = 0, y != 0;
  if (bit != VAL_EDGE || n == 0) return false;
  /* A number taken to be above the boundary may be below it, and the other way round. */
  *other =
      y > 0 && rule_tensor_get(b, first + (int64_t)fmin(y, (double)n) - 1) == x ? y - 1 : y + 1;
  for (int64_t k = 0; k < n; k++)
    if (rule_tensor_get(b, first + k) == x) return true;
  return false;
}

/* Edge `k` of a count: 0, which counts as none, or of a histogram one between two bins. Returns:
 * false where its bins depend on its numbers. */
static bool count_edge(const val_site *s, double k, double *at) {
  enum { BINS = 1, LOW, HIGH, HISTOGRAM };
  double bins, low, high;
  *at = 0;
  if (s->call->n < HISTOGRAM) return true;
  if (!number(s, BINS, &bins) || !number(s, LOW, &low) || !number(s, HIGH, &high)) return false;
  *at = low + (high - low) * (1 + fmod(k, bins - 1)) / bins;
  return low < high && bins > 1;
}

/* Whether some number that is counted lies on an edge. */
static bool count(const val_site *s, uint16_t bit, double y, double *other) {
  const rule_tensor *x = tensor(s, 0);
  double first, next, at;
  *other = y + 1;
  if (!x || bit != VAL_EDGE || !count_edge(s, 0, &first) || !count_edge(s, 1, &next)) return false;
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = rule_tensor_get(x, i), step = next - first,
                 k = step > 0 ? nearbyint((v - first) / step) : 0;
    if (k >= 0 && count_edge(s, k, &at) && v == at) return true;
  }
  return false;
}

/* ---- all of them ---- */

bool val_site_slip(const val_site *s, uint16_t bit, int64_t i, double *other) {
  const double y = rule_tensor_get(s->out, i);
  if (s->choice == RULE_CHOICE_ORDER) return val_order_slip(s, bit, i, other);
  if (s->choice == RULE_CHOICE_LOGIC) return truth(s, bit, 0, y, 1, other);
  if (s->choice == RULE_CHOICE_BUCKET) return bucket(s, bit, i, y, other);
  if (s->choice == RULE_CHOICE_COUNT) return count(s, bit, y, other);
  if (s->choice == RULE_CHOICE_STEP) return *other = 0, bit == VAL_SOME && y != 0;
  if (!s->aligned) return false;
  const double x = val_operand(&s->o, 0, i), by = s->o.two ? val_operand(&s->o, 1, i) : 0;
  switch (s->choice) {
  case RULE_CHOICE_COMPARE: return truth(s, bit, x, y, by, other);
  case RULE_CHOICE_FLOOR:
  case RULE_CHOICE_CEIL:
  case RULE_CHOICE_TRUNC:
  case RULE_CHOICE_FRAC:
  case RULE_CHOICE_ROUND: return rounding(s, bit, x, y, other);
  case RULE_CHOICE_CAST: return cast(s, bit, x, y, other);
  case RULE_CHOICE_SIGN: return sign(bit, x, y, other);
  case RULE_CHOICE_QUOTIENT:
  case RULE_CHOICE_REMAINDER: return quotient(s, bit, x, y, by, other);
  case RULE_CHOICE_BOUND: return bound(s, bit, x, y, by, other);
  case RULE_CHOICE_PIECES: return piece(s, bit, i, y, other);
  case RULE_CHOICE_CUT: return *other = -y, bit == VAL_EDGE && x == 0 && by < 0;
  default: return false;
  }
}

bool val_site_takes(const val_site *s, uint16_t bit) {
  double other;
  for (int64_t i = 0; i < s->out->numel; i++)
    if (val_site_slip(s, bit, i, &other)) return true;
  return false;
}

/* Infinite, or the largest number of float32, bfloat16 or float64. */
static bool mask_literal(const rule_term *t) {
  const double a = t->kind == RULE_FLOAT ? fabs(t->u.f) : 0;
  return !(a <= 1.79e308) || (a > 3.38e38 && a < 3.41e38);
}

/* Below, above or both. */
static uint16_t bound_needs(const val_site *s) {
  switch (rule_operator_of(s->call->u.s)->bound) {
  case RULE_BOUND_BELOW: return VAL_SAME | VAL_UP;
  case RULE_BOUND_ABOVE: return VAL_SAME | VAL_DOWN;
  case RULE_BOUND_BOTH: return VAL_SAME | VAL_UP | VAL_DOWN;
  default: break;
  }
  uint16_t need = VAL_SAME;
  for (uint32_t k = 1; k < 3 && k < s->call->n; k++)
    if (s->call->child[k]->kind != RULE_NONE) need |= k == 1 ? VAL_UP : VAL_DOWN;
  return need;
}

static uint16_t piece_needs(const val_site *s) {
  double at[2];
  bool jumps;
  const int n = breaks(s, at, &jumps);
  return (uint16_t)(VAL_DOWN | VAL_UP | (n == 2 && at[0] < at[1] ? VAL_SAME : 0) |
                    (jumps ? VAL_EDGE : 0));
}

uint16_t val_site_needs(const val_site *s, uint16_t *wanted) {
  static const uint16_t edges = VAL_EDGE_BELOW | VAL_EDGE_ODD | VAL_EDGE_ABOVE;
  *wanted = 0;
  if (s->choice <= RULE_CHOICE_NONE || s->n == 0 || s->out->numel == 0) return 0;
  for (uint32_t i = 0; i < s->call->n; i++)
    if (mask_literal(s->call->child[i])) return 0; /* a question about masks */
  switch (s->choice) {
  case RULE_CHOICE_COMPARE:
    return s->aligned                   ? VAL_YES | VAL_NO | VAL_MEET
           : s->out->dtype == RULE_BOOL ? VAL_YES | VAL_NO
                                        : 0;
  case RULE_CHOICE_ORDER: return val_order_needs(s, wanted);
  case RULE_CHOICE_LOGIC: return VAL_YES | VAL_NO;
  case RULE_CHOICE_FLOOR:
  case RULE_CHOICE_CEIL:
  case RULE_CHOICE_TRUNC:
  case RULE_CHOICE_FRAC:
  case RULE_CHOICE_ROUND:
    if (!s->aligned || !any_float(s)) return 0;
    *wanted = edges;
    return VAL_SOME | VAL_EDGE;
  case RULE_CHOICE_QUOTIENT:
  case RULE_CHOICE_REMAINDER:
    if (!s->aligned) return 0;
    *wanted = edges;
    return VAL_SOME | VAL_EDGE;
  case RULE_CHOICE_CAST:
    if (s->out->dtype == RULE_BOOL) return VAL_YES | VAL_NO;
    *wanted = edges;
    return VAL_SOME | VAL_EDGE | VAL_FAR;
  case RULE_CHOICE_SIGN: return s->aligned ? VAL_EDGE | VAL_UP | VAL_DOWN : 0;
  case RULE_CHOICE_COUNT:
  case RULE_CHOICE_BUCKET: return VAL_EDGE;
  case RULE_CHOICE_CUT: return s->aligned ? VAL_EDGE : 0;
  case RULE_CHOICE_BOUND: return s->aligned ? bound_needs(s) : 0;
  case RULE_CHOICE_PIECES: return s->aligned ? piece_needs(s) : 0;
  default: return 0;
  }
}

/* ---- how far away ---- */

/* The number of the form k + shift that is nearest to `x`, or one of its neighbours. */
static double near_whole(double x, double shift, uint64_t pick) {
  return nearbyint(x - shift) + shift + (double)(pick % 7) - 3;
}

static double bucket_distance(const val_site *s, int64_t i, uint64_t pick) {
  const rule_tensor *b = NULL;
  int64_t first = 0;
  double x = 0;
  const int64_t n = boundaries_of(s, i, &b, &first, &x);
  return n ? x - rule_tensor_get(b, first + (int64_t)(pick % (uint64_t)n)) : (double)NAN;
}

static double piece_distance(const val_site *s, int64_t i, uint64_t pick) {
  const double x = piece_operand(s, i);
  double at[2];
  bool jumps;
  const int n = breaks(s, at, &jumps);
  return x - at[n == 2 ? pick % 2 : 0];
}

/* A clamp's own bounds; of two tensors, the other one. */
static double bound_distance(const val_site *s, uint16_t bit, double x, double by, int64_t i) {
  const rule_operator *o = rule_operator_of(s->call->u.s);
  if (o->breaks.form == RULE_BREAKS_AT_NUMBERS)
    return x - (bit == VAL_UP ? o->breaks.low : o->breaks.high);
  if (o->bound == RULE_BOUND_GIVEN) {
    const rule_tensor *t = tensor(s, bit == VAL_UP ? 1 : 2);
    double edge;
    if (number(s, bit == VAL_UP ? 1 : 2, &edge)) return x - edge;
    return t && t->numel == s->out->numel ? x - rule_tensor_get(t, i)
           : t && t->numel == 1           ? x - rule_tensor_get(t, 0)
                                          : (double)NAN;
  }
  return x - by;
}

double val_site_distance(const val_site *s, uint16_t bit, int64_t i, uint64_t pick, double *at) {
  const rule_tensor *counted = s->choice == RULE_CHOICE_COUNT ? tensor(s, 0) : NULL;
  if (s->choice == RULE_CHOICE_BUCKET) return bucket_distance(s, i, pick);
  if (s->choice == RULE_CHOICE_ORDER) return val_order_distance(s, i, pick);
  if (counted && counted->numel) {
    const uint64_t n = (uint64_t)counted->numel;
    double edge;
    const bool known = count_edge(s, (double)(pick / n % 1024), &edge);
    return known ? rule_tensor_get(counted, (int64_t)(pick % n)) - edge : (double)NAN;
  }
  if (!s->aligned || i >= s->out->numel) return (double)NAN;
  const double x = val_operand(&s->o, 0, i), by = s->o.two ? val_operand(&s->o, 1, i) : 0;
  switch (s->choice) {
  case RULE_CHOICE_COMPARE: return x - by;
  case RULE_CHOICE_CUT:
  case RULE_CHOICE_SIGN: return x;
  case RULE_CHOICE_PIECES: return piece_distance(s, i, pick);
  case RULE_CHOICE_BOUND: return bound_distance(s, bit, x, by, i);
  case RULE_CHOICE_ROUND:
    if (isnan(*at)) *at = near_whole(x * decimals(s), 0.5, pick) / decimals(s);
    return x - *at;
  case RULE_CHOICE_QUOTIENT:
  case RULE_CHOICE_REMAINDER:
    if (isnan(*at)) *at = near_whole(by != 0 ? x / by : 0, 0, pick);
    return x - *at * by;
  case RULE_CHOICE_CAST:
    if (s->out->dtype == RULE_BOOL) return x;
    /* fall through */
  case RULE_CHOICE_FLOOR:
  case RULE_CHOICE_CEIL:
  case RULE_CHOICE_TRUNC:
  case RULE_CHOICE_FRAC:
    if (isnan(*at)) *at = near_whole(x, 0, pick);
    return x - *at;
  default: return (double)NAN;
  }
}
