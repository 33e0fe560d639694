/* Samples that meet a rule's conditions: shapes as the rule gives them, float variables at several
 * scales and with the values that tell functions apart (ties, zeros, past the literals of the
 * rule), index variables within their tables. */
#include "rules/operators.h"
#include "validate/sample/sample_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/exec/engine_int.h"

/* ---- float literals of the rule: thresholds that samples should pass ---- */

static void literals(const rule_term *t, double *v, size_t *n, size_t cap) {
  double x = t->kind == RULE_FLOAT ? t->u.f : t->kind == RULE_INT ? (double)t->u.i : 0;
  if (isfinite(x) && fabs(x) > 1e-30 && fabs(x) < 1e12 && (t->kind == RULE_FLOAT || fabs(x) > 2)) {
    bool seen = false;
    for (size_t i = 0; i < *n; i++) seen |= v[i] == fabs(x);
    if (!seen && *n < cap) v[(*n)++] = fabs(x);
  }
  for (uint32_t i = 0; i < t->n; i++) literals(t->child[i], v, n, cap);
}

static bool is_mask(const rule_tensor *t) {
  if (!t || !rule_dtype_is_float(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (rule_tensor_get(t, i) < -1e30) return true;
  return false;
}

/* Kinds of values, in the order in which samples take them. */
enum {
  UNIT,
  TINY,
  LARGE,
  POSITIVE,
  TIES,
  NEAR_LITERALS,
  NEGATIVE,
  AT_LITERALS,
  HALVES,
  ROWS,
  SMALL_LITERALS,
  MULTIPLES,
  WIDE,
  INTERVAL,
  ABOVE,
  MINUTE
};
_Static_assert((int)AT_LITERALS == (int)VAL_AT && (int)UNIT == (int)VAL_PLAIN &&
                   (int)POSITIVE == (int)VAL_POSITIVE && (int)NEGATIVE == (int)VAL_NEGATIVE,
               "sample_int.h");

/* Thresholds themselves, a step to either side, zero: all of them in turn, from a random one on. */
static double at_literals(const double *lit, size_t n_lit, uint64_t turn) {
  static const double step[] = {1, 1 + 1e-3, 1 - 1e-3, 0, 1, 2};
  const double l = n_lit ? lit[turn % n_lit] : 1;
  turn /= n_lit ? n_lit : 1;
  return (turn / 6 % 2 ? -1 : 1) * l * step[turn % 6];
}

/* Ties of numbers that are scaled and then rounded: odd halves of a literal, or of its inverse. */
static double multiple(double lit, uint64_t turn) {
  const double half = (double)(turn / 2 % 10) - 4.5;
  return turn % 2 ? half * lit : half / lit;
}

static double of_normal(double z, unsigned kind) {
  switch (kind) {
  case TINY: return z / 256;
  case LARGE: return z * 64;
  case POSITIVE: return fabs(z) + 0.05;
  case NEGATIVE: return -fabs(z) - 0.05;
  case WIDE: return exp(3 * z);
  case ABOVE: return 1 + fabs(z);
  case MINUTE: return z * 1e-6;
  default: return z;
  }
}

static double draw(iso_rng *rng, unsigned kind, double lit, double row) {
  const double z = iso_rng_normal(rng);
  switch (kind) {
  case TIES: return (double)iso_rng_below(rng, 5) - 2;
  case NEAR_LITERALS: return 2 * lit * z;
  case HALVES: return (double)iso_rng_below(rng, 9) - 4 + 0.5; /* where roundings part */
  case ROWS: return row + z * 1e-3;
  case SMALL_LITERALS: return sqrt(lit) * z; /* an eps beside a square */
  case INTERVAL: return 2 * iso_rng_uniform(rng) - 1;
  default: return of_normal(z, kind);
  }
}

/* Kinds that are functions of one normal number. */
static bool by_normal(unsigned kind) {
  return kind == UNIT || kind == TINY || kind == LARGE || kind == POSITIVE || kind == NEGATIVE ||
         kind == WIDE || kind == ABOVE || kind == MINUTE;
}

/* The same as one by one, of those kinds. */
static void fill_rows(iso_rng *rng, double *x, int64_t n, int64_t last, unsigned kind) {
  for (int64_t i = 0; i < n; i += last) {
    (void)iso_rng_next(rng); /* the row's own number, of which these kinds make no use */
    iso_rng_fill_normal(rng, x + i, (size_t)last);
    for (int64_t k = i; kind != UNIT && k < i + last; k++) x[k] = of_normal(x[k], kind);
  }
}

enum { LONG_ROW = 1024, MANY_ROWS = 1009, SOME_ROWS = 101 };

/* Magnitudes that no literal of the rule names: large ones and small ones in turn, from `k` on for
 * all, then for each its own. */
static void fill_spread(iso_rng *rng, rule_tensor *t, unsigned k) {
  const unsigned turn = k < VAL_SPREADS / 2 ? k : (unsigned)iso_rng_below(rng, VAL_SPREADS / 2);
  const double scale = pow(10, (turn % 2 ? -1.0 : 1.0) * (double)(2 + turn / 2 * 2));
  for (int64_t i = 0; i < t->numel; i++) ((double *)t->data)[i] = iso_rng_normal(rng) * scale;
}

static double power_of_two(iso_rng *rng, int span) {
  return ldexp(iso_rng_below(rng, 2) ? 1 : -1,
               (int)iso_rng_below(rng, (uint64_t)(2 * span + 1)) - span);
}

/* A literal, its root, its inverse: numbers whose sum, square or quotient is compared with it. */
static double of_literal(iso_rng *rng, const double *lit, size_t n_lit) {
  const double l = n_lit ? lit[iso_rng_below(rng, n_lit)] : 1;
  switch (iso_rng_below(rng, 4)) {
  case 0: return sqrt(l);
  case 1: return 1 / l;
  default: return l;
  }
}

/* Numbers beside which the rule's least literal counts, an eps: as it is or as its root, of both
 * signs or of one. */
static void fill_small(iso_rng *rng, rule_tensor *t, unsigned k, const double *lit, size_t n_lit) {
  double least = 1;
  for (size_t i = 0; i < n_lit; i++) least = fmin(least, lit[i]);
  const double scale = k / 2 % 2 ? sqrt(least) : least;
  for (int64_t i = 0; i < t->numel; i++) {
    const double z = scale * iso_rng_normal(rng);
    ((double *)t->data)[i] = k % 2 ? z : fabs(z);
  }
}

/* Numbers by which operators are met where they jump: exact ones, row by row. `how` 0: eighths. 1:
 * a literal times a power of two, or 0, in any place. 2: odd halves of the step that the row's
 * largest, a literal times a power of two, stands for. 3: rows of one number. 4: rows with one
 * number, else 0. 5: zeros and ones. 6: a row's numbers sum up to a literal. 7: odd halves of a
 * literal. From 8 on: each variable its own. */
static void fill_seam(iso_rng *rng, rule_tensor *t, unsigned k, const double *lit, size_t n_lit) {
  const int64_t last =
      t->shape.rank && t->shape.dim[t->shape.rank - 1] ? t->shape.dim[t->shape.rank - 1] : 1;
  const unsigned how = k < 8 ? k : (unsigned)iso_rng_below(rng, 8);
  double *x = t->data, unit = 1, sum = 0;
  int64_t place = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    if (i % last == 0) {
      unit = power_of_two(rng, 3);
      sum = n_lit ? lit[iso_rng_below(rng, n_lit)] : 1;
      if (how != 2) unit = of_literal(rng, lit, n_lit) * power_of_two(rng, 2);
      place = (int64_t)iso_rng_below(rng, (uint64_t)last);
    }
    const double odd = 2 * (double)iso_rng_below(rng, 5) + 1;
    switch (how) {
    case 0: x[i] = ((double)iso_rng_below(rng, 65) - 32) / 8; break;
    case 1:
      x[i] = iso_rng_below(rng, 4) == 0 ? 0
             : iso_rng_below(rng, 3)    ? of_literal(rng, lit, n_lit) * power_of_two(rng, 1)
                                        : power_of_two(rng, 1);
      break;
    case 2:
      x[i] = i % last == place ? unit * (n_lit ? lit[i / last % (int64_t)n_lit] : 127)
                               : unit / 2 * odd * (iso_rng_below(rng, 2) ? 1 : -1);
      break;
    case 3: x[i] = unit; break;
    case 4: x[i] = i % last == place ? unit : 0; break;
    case 5: x[i] = (double)iso_rng_below(rng, 3) - 1; break;
    case 6:
      x[i] = i % last == last - 1 ? sum : ((double)iso_rng_below(rng, 17) - 8) / 4;
      sum -= x[i];
      break;
    default: x[i] = (odd - 6) / 2 * (n_lit ? lit[i % (int64_t)n_lit] : 1); break;
    }
  }
}

/* Zeros, by which nothing can be divided. `zero`: everywhere. */
static void fill_zeros(iso_rng *rng, rule_tensor *t, bool zero, bool mixed) {
  for (int64_t i = 0; i < t->numel; i++)
    ((double *)t->data)[i] = zero || (mixed && iso_rng_below(rng, 2)) ? 0 : iso_rng_normal(rng);
}

static void fill_float(iso_rng *rng, rule_tensor *t, unsigned k, const double *lit, size_t n_lit,
                       const rule_tensor *example) {
  if (k >= VAL_SMALL) {
    fill_small(rng, t, k - VAL_SMALL, lit, n_lit);
    return;
  }
  if (k >= VAL_SEAM) {
    fill_seam(rng, t, k - VAL_SEAM, lit, n_lit);
    return;
  }
  if (k >= VAL_SPREAD) {
    fill_spread(rng, t, k - VAL_SPREAD);
    return;
  }
  double *x = t->data;
  const unsigned kind = k % VAL_ALL_KINDS;
  const bool mask = k % 2 == 1 && is_mask(example);
  const int64_t last =
      t->shape.rank && t->shape.dim[t->shape.rank - 1] ? t->shape.dim[t->shape.rank - 1] : 1;
  double by_lit = n_lit ? lit[iso_rng_below(rng, n_lit)] : 1;
  /* The largest bound is passed only where every factor of a product is of its size. */
  for (size_t i = 0; kind == NEAR_LITERALS && i < n_lit; i++) by_lit = fmax(by_lit, lit[i]);
  const uint64_t turn = iso_rng_below(rng, 1024);
  /* A large tensor repeats its first rows, a prime number of them, so that no part of it is another
   * part. */
  const int64_t rows = last <= LONG_ROW ? MANY_ROWS : SOME_ROWS,
                drawn = t->numel / last > 2 * rows && t->numel > LONG_ROW * MANY_ROWS ? last * rows
                                                                                      : t->numel;
  if (by_normal(kind) && !mask && drawn % last == 0) fill_rows(rng, x, drawn, last, kind);
  else {
    double row = 0;
    for (int64_t i = 0; i < drawn; i++) {
      if (i % last == 0) row = iso_rng_normal(rng) * 2;
      if (kind == SMALL_LITERALS && n_lit)
        by_lit = lit[(turn + (uint64_t)(i / last)) % n_lit]; /* each has its rows */
      if (kind == MULTIPLES)
        x[i] = multiple(n_lit ? lit[(uint64_t)i % n_lit] : 1,
                        turn + (uint64_t)i / (n_lit ? n_lit : 1));
      else
        x[i] = kind == AT_LITERALS ? at_literals(lit, n_lit, turn + (uint64_t)i)
                                   : draw(rng, kind, by_lit, row);
      /* Whole numbers of both signs that can be divided by, and logarithms of whose size there are.
       */
      if (kind == TIES && turn % 2 == 0)
        x[i] = (double)(1 + iso_rng_below(rng, 3)) * (iso_rng_below(rng, 2) ? 1 : -1);
      /* A row of zeros, by which nothing can be divided. */
      else if (kind == TIES && i < last && (i < t->numel - last || turn % 2)) x[i] = 0;
      /* Behind a mean that is no square an eps counts as it is, and a root takes no negative
       * numbers. */
      if (kind == SMALL_LITERALS && turn % 2) x[i] = fabs(x[i]);
      /* An additive mask: hidden elements are far below, and the first element of a row stays. */
      if (mask) x[i] = i % last != 0 && iso_rng_below(rng, 2) ? -3.4028234663852886e38 : 0;
    }
  }
  for (int64_t i = drawn; i < t->numel; i++) x[i] = x[i - drawn];
}

/* The source of a sample's integers. */
typedef struct int_draw {
  iso_rng *rng;
  unsigned k;                 /* the kind of sample */
  const rule_tensor *example; /* may be NULL */
  const double *lit;
  size_t n_lit;
  unsigned edge; /* not 0: all are at this one, or 1 below */
} int_draw;

/* Where narrower types and floats stop being exact. The last is out of range with either sign. */
static const int64_t edges[] = {127,
                                128,
                                255,
                                256,
                                257,
                                2049,
                                4099,
                                32767,
                                32768,
                                65535,
                                16777217,
                                INT64_C(2147483647),
                                INT64_C(2147483648),
                                INT64_C(4294967301)};
/* Where a type stops being enough: for a sum, a negation, a double, a square. And how many of
 * `edges` it holds. */
enum { ENDS = 4 };
static const struct {
  int64_t end[ENDS];
  uint64_t n_edges;
} of_type[] = {[RULE_I64] = {{INT64_MAX, INT64_MIN, INT64_C(1) << 62, INT64_C(3037000500)}, 14},
               [RULE_I32] = {{INT32_MAX, INT32_MIN, 1 << 30, 46341}, 11},
               [RULE_I16] = {{INT16_MAX, INT16_MIN, 1 << 14, 182}, 8},
               [RULE_I8] = {{INT8_MAX, INT8_MIN, 1 << 6, 12}, 1},
               [RULE_U8] = {{UINT8_MAX, 0, 1 << 7, 16}, 3}};
static int64_t least(rule_dtype d) { return of_type[d].end[1]; }
static int64_t most(rule_dtype d) { return of_type[d].end[0]; }

/* One of those; beside it, where a literal is added, or a part of it, where one multiplies; or any
 * number, which the type then wraps. */
static int64_t at_end(const int_draw *d, rule_dtype type, uint64_t turn) {
  const int64_t end = of_type[type].end[turn % ENDS],
                beside = (int64_t)iso_rng_below(d->rng, 3) - 1;
  const double lit = d->n_lit ? fabs(d->lit[iso_rng_below(d->rng, d->n_lit)]) : 0;
  const uint64_t how = iso_rng_below(d->rng, 6);
  if (how == 5) return (int64_t)iso_rng_next(d->rng);
  if (how < 3 || !(lit >= 2 && lit <= 0x1p31)) return end;
  const int64_t by = (int64_t)lit;
  return how == 3 ? end / by + beside : end > 0 ? end - by + beside : end + by + beside;
}

/* The range of an integer that indexes nothing: some around 0, or that of the example. */
static void open_range(const int_draw *d, int64_t *low, int64_t *high) {
  *low = -3, *high = 9;
  if (!d->example || d->k % 3 != 0) return;
  *low = INT64_MAX, *high = INT64_MIN;
  for (int64_t i = 0; i < d->example->numel; i++) {
    const int64_t v = rule_tensor_get_int(d->example, i);
    if (v < *low) *low = v;
    if (v >= *high) *high = v + 1;
  }
  if (*high <= *low) *low = 0, *high = 2;
}

/* Element i of an index within [0, high), drawn as v: boundary rows, row by row, literals. */
static int64_t index_at(const int_draw *d, const rule_tensor *t, int64_t i, int64_t high,
                        int64_t v) {
  const unsigned k = d->k;
  if (k % 4 == 3)
    v = (int64_t)(((uint64_t)(k / 4) * (uint64_t)t->numel + (uint64_t)i) %
                  (uint64_t)(high > 0 ? high : 1)); /* row by row */
  if (k % 2 == 0 &&
      d->n_lit) { /* at and beside each literal in turn: where the shards of a table end */
    const uint64_t place = (uint64_t)(k / 2) * (uint64_t)t->numel + (uint64_t)i;
    const int64_t near = (int64_t)d->lit[place / 3 % d->n_lit] + (int64_t)(place % 3) - 1;
    if (near >= 0 && near < high) v = near;
  }
  if (i == 0 && k % 4 == 1) v = 0; /* boundary rows */
  if (i == 0 && k % 4 == 2) v = high - 1;
  return v;
}

/* `limit`: of an index; INT64_MAX: of an integer that is none. */
static void fill_int(const int_draw *d, rule_tensor *t, int64_t limit) {
  iso_rng *rng = d->rng;
  const unsigned k = d->k;
  /* One that overflows its type would hide the effect of smaller ones: not always all of them. In
   * turn, from a random one on. */
  const uint64_t all = of_type[t->dtype].n_edges, turn = iso_rng_below(rng, 1024);
  const uint64_t n_edges = k / 3 % 2 && all > 7 ? 7 : k / 6 % 2 && all > 11 ? 11 : all;
  int64_t low = 0, high = limit;
  const bool open = limit == INT64_MAX;
  if (open) open_range(d, &low, &high);
  for (int64_t i = 0; i < t->numel; i++) {
    int64_t v = low + (int64_t)iso_rng_below(rng, (uint64_t)(high - low > 0 ? high - low : 1));
    if (!open) v = index_at(d, t, i, high, v);
    if (open && k % 3 == 1)
      v = edges[i == 0 ? n_edges - 1 : (turn + (uint64_t)i) % n_edges] *
          (iso_rng_below(rng, 2) ? 1 : -1);
    if (open && k % 3 == 2 && d->n_lit && iso_rng_below(rng, 2)) {
      v = (int64_t)d->lit[iso_rng_below(rng, d->n_lit)] + (int64_t)iso_rng_below(rng, 3) - 1;
      if (iso_rng_below(rng, 2)) v = -v;
    }
    if (open && d->edge && d->edge <= all) v = edges[d->edge - 1] - (int64_t)iso_rng_below(rng, 2);
    else if (open && k % VAL_KINDS == VAL_ENDS) v = at_end(d, t->dtype, turn + (uint64_t)i);
    rule_tensor_set_int(t, i, v);
  }
}

/* At random; all or none; one that stands alone in its row: the last, the first, any. */
static void fill_bool(iso_rng *rng, rule_tensor *t, unsigned k) {
  uint8_t *x = t->data;
  const int64_t last =
      t->shape.rank && t->shape.dim[t->shape.rank - 1] ? t->shape.dim[t->shape.rank - 1] : 1;
  const bool alone = k % 8 >= 2 && k % 8 <= 5;
  const uint8_t rest = k % 8 == 6 || k % 8 == 3 || k % 8 == 5;
  int64_t odd = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    if (i % last == 0) {
      const uint64_t where = iso_rng_below(rng, 3);
      odd = i + (where == 0   ? last - 1
                 : where == 1 ? 0
                              : (int64_t)iso_rng_below(rng, (uint64_t)last));
    }
    x[i] = k % 8 < 2 ? (uint8_t)iso_rng_below(rng, 2) : alone && i == odd ? !rest : rest;
  }
}

/* As the rule says: low .. high - 1, the ends more often than by chance. Of a range that reaches
 * where integers wrap there are small ones, and in some samples those near its ends. */
static void fill_range(const int_draw *d, rule_tensor *t, int64_t low, int64_t high) {
  const bool vast = high > INT64_MAX / 2 || low < INT64_MIN / 2;
  if (low < least(t->dtype)) low = least(t->dtype);
  if (high > most(t->dtype) && t->dtype != RULE_I64) high = most(t->dtype) + 1;
  const int64_t from = low < INT64_MIN / 2 ? (high < 0 ? high - 64 : -32) : low;
  const uint64_t n = vast && high > from + 64 ? 64
                     : high > from            ? (uint64_t)(high - from)
                                              : 1,
                 turn = iso_rng_below(d->rng, 1024);
  for (int64_t i = 0; i < t->numel; i++) {
    int64_t v = from + (int64_t)iso_rng_below(d->rng, n);
    if (i == 0 && d->k % 4 == 1) v = low;
    if (i == 0 && d->k % 4 == 2 && high > low) v = high - 1;
    if (vast && d->k % VAL_KINDS == VAL_ENDS) {
      const int64_t end = at_end(d, t->dtype, turn + (uint64_t)i);
      v = end >= low && end < high ? end : v;
      if (iso_rng_below(d->rng, 3) == 0 && high > v + 64)
        v = high - 1 - (int64_t)iso_rng_below(d->rng, 64);
    }
    rule_tensor_set_int(t, i, v);
  }
}

static iso_code shape_of(const rule_variable *v, rule_shape *out, iso_error *err) {
  if (v->any_shape || v->leading || v->n_dims > RULE_MAX_RANK)
    return iso_fail(err, ISO_UNSUPPORTED, "variable %s has an open shape", v->name);
  out->rank = v->n_dims;
  for (uint32_t i = 0; i < v->n_dims; i++) {
    if (v->dim[i]->kind != RULE_INT)
      return iso_fail(err, ISO_UNSUPPORTED, "variable %s has symbolic sizes", v->name);
    out->dim[i] = v->dim[i]->u.i;
  }
  return ISO_OK;
}

static bool casts(const rule_term *t) {
  bool any = t->kind == RULE_OP && rule_operator_of(t->u.s)->cast;
  for (uint32_t i = 0; i < t->n; i++) any |= casts(t->child[i]);
  return any;
}

bool val_casts_integers(const rule *r) {
  bool some = false;
  for (uint32_t i = 0; i < r->n_vars; i++) some |= r->var[i].kind == 'i';
  return some && (casts(r->lhs) || casts(r->rhs));
}

bool val_has_eps(const rule *r) {
  double lit[16], least = 1;
  size_t n_lit = 0;
  literals(r->lhs, lit, &n_lit, 16);
  literals(r->rhs, lit, &n_lit, 16);
  for (size_t i = 0; i < n_lit; i++) least = fmin(least, lit[i]);
  return least < 1e-2;
}

unsigned val_samples_wanted(const rule *r) {
  double lit[16];
  size_t n_lit = 0;
  int64_t least = INT64_MAX;
  literals(r->lhs, lit, &n_lit, 16);
  literals(r->rhs, lit, &n_lit, 16);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    int64_t n = 1;
    if (r->var[i].kind != 'i') continue;
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      n *= r->var[i].dim[d]->kind == RULE_INT && r->var[i].dim[d]->u.i > 0 ? r->var[i].dim[d]->u.i
                                                                           : 1;
    if (n < least) least = n;
  }
  return least == INT64_MAX ? 0 : (unsigned)(2 * (3 * (int64_t)n_lit / least + 1));
}

static void draw_index(const int_draw *d, const rule_variable *v, const val_domain *at,
                       rule_tensor *out) {
  const bool own = at->size != INT64_MAX, from_end = own ? at->from_end : at->behind_from_end;
  int64_t limit = own ? at->size : at->behind;
  if (limit != INT64_MAX && limit > most(out->dtype)) limit = most(out->dtype) + 1;
  if (!own && limit != INT64_MAX && d->k % 2 == 0)
    for (size_t j = 0; j < d->n_lit; j++) /* bounded behind arithmetic: past the first part, too */
      if ((int64_t)d->lit[j] + 2 > limit)
        limit = (int64_t)d->lit[j] + 2; /* at the literal itself and behind it */
  if (v->low != NULL || v->high != NULL) {
    fill_range(d, out, v->low != NULL ? v->low->u.i : 0, v->high != NULL ? v->high->u.i : limit);
    return;
  }
  /* A smaller table behind arithmetic takes none that is further from the end. */
  const int64_t end = d->k % 4 == 3 && at->behind < limit ? at->behind : limit;
  if (limit != INT64_MAX && from_end && d->k % 2 == 1) fill_range(d, out, -end, limit);
  else fill_int(d, out, limit);
  for (int64_t i = 0; i < out->numel && at->has_besides && d->k % 3 == 2; i++)
    if (iso_rng_below(d->rng, 3) == 0) rule_tensor_set(out, i, (double)at->besides);
}

iso_code val_sample(val_engine *e, const rule *r, rule_tensor *const *example, iso_rng *rng,
                    unsigned k, rule_tensor **bind, iso_error *err) {
  const bool mixed = k & VAL_MIXED;
  k &= ~(unsigned)VAL_MIXED;
  double lit[16];
  size_t n_lit = 0;
  literals(r->lhs, lit, &n_lit, 16);
  literals(r->rhs, lit, &n_lit, 16);
  for (uint32_t i = 0; i < r->n_vars; i++) bind[i] = NULL;
  iso_code c = ISO_OK;
  const bool axes = k == VAL_AXES;
  const unsigned edge = k >= VAL_ALIKE ? k - VAL_ALIKE + 1 : 0;
  if (axes || edge) k = VAL_PLAIN;
  for (uint32_t i = 0; i < r->n_vars && !c; i++) {
    const rule_variable *v = &r->var[i];
    rule_shape sh;
    if ((c = shape_of(v, &sh, err))) break;
    if ((c = rule_tensor_new(rule_variable_dtype(v), &sh, &bind[i], err))) break;
    if (v->kind == 'f' && k >= VAL_POLE)
      fill_zeros(rng, bind[i], k == VAL_POLE + 1 + i, k == VAL_POLE);
    else if (v->kind == 'f')
      fill_float(rng, bind[i], mixed ? (unsigned)iso_rng_below(rng, VAL_ALL_KINDS) : k, lit, n_lit,
                 example ? example[i] : NULL);
    if (v->kind == 'c' && axes) val_fill_axes(rng, bind[i]);
    else if (v->kind == 'c')
      val_fill_complex(rng, bind[i], mixed ? (unsigned)iso_rng_below(rng, VAL_ALL_KINDS) : k);
    if (v->kind == 'b') fill_bool(rng, bind[i], k);
  }
  /* Indices last: their range depends on the shapes of the tensors that they index. They are zero
   * until then, which every table has. */
  val_domain *domain = calloc(r->n_vars + 1, sizeof *domain);
  if (!c && !domain) c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c) c = val_domains(e, val_engine_schemas(e), r, bind, domain, err);
  for (uint32_t i = 0; i < r->n_vars && !c; i++) {
    const int_draw d = {rng, k, example ? example[i] : NULL, lit, n_lit, edge};
    if (r->var[i].kind == 'i') draw_index(&d, &r->var[i], &domain[i], bind[i]);
  }
  free(domain);
  if (c)
    for (uint32_t i = 0; i < r->n_vars; i++) {
      rule_tensor_unref(bind[i]);
      bind[i] = NULL;
    }
  return c;
}
