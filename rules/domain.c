/* Domains of inputs: membership, intersection, and drawing. */
#include "rules/domain.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rule_domain rule_domain_all(const char *who) {
  return (rule_domain){.low = -INFINITY, .high = INFINITY, .who = who};
}

bool rule_domain_is_open(const rule_domain *d) {
  return isinf(d->low) && isinf(d->high) && d->n_exclude == 0;
}

bool rule_domain_is_joint(const rule_domain *d) { return d->distinct || d->sorted || d->mask; }

static bool excluded(const rule_domain *d, double x) {
  size_t from = 0, to = d->n_exclude;
  while (from < to) {
    const size_t mid = from + (to - from) / 2;
    if (d->exclude[mid] == x) return true;
    if (d->exclude[mid] < x) from = mid + 1;
    else to = mid;
  }
  return false;
}

bool rule_domain_same(const rule_domain *a, const rule_domain *b) {
  if (!a || !b) return a == b;
  bool same = a->low == b->low && a->high == b->high && a->n_exclude == b->n_exclude &&
              a->distinct == b->distinct && a->sorted == b->sorted && a->mask == b->mask;
  for (size_t i = 0; i < a->n_exclude && same; i++) same = a->exclude[i] == b->exclude[i];
  return same;
}

bool rule_domain_has(const rule_domain *d, double x) {
  return x >= d->low && x <= d->high && !excluded(d, x);
}

static int64_t row_of(const rule_shape *s) { return s->rank ? s->dim[s->rank - 1] : 1; }

/* ---- what is said of it ---- */

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bool whole(rule_dtype d) { return rule_dtype_is_int(d) || d == RULE_BOOL; }

/* The number at a distance of `by`; where that is less than doubles are apart, the next one. */
static double step(double x, double by) {
  return isinf(x) || x + by != x ? x + by : nextafter(x, by > 0 ? INFINITY : -INFINITY);
}

/* Whole numbers end at whole numbers, and none of these is left out. */
static void narrow(rule_domain *d, double *x, rule_dtype dtype) {
  size_t from = 0, to = d->n_exclude;
  if (whole(dtype)) d->low = ceil(d->low), d->high = floor(d->high);
  const double bits = 8 * (double)rule_dtype_size(dtype);
  if (dtype == RULE_U8) d->low = fmax(d->low, 0), d->high = fmin(d->high, 255);
  else if (rule_dtype_is_int(dtype) && bits < 64 && !rule_domain_is_open(d)) {
    d->low = fmax(d->low, -exp2(bits - 1));
    d->high = fmin(d->high, exp2(bits - 1) - 1);
  }
  if (dtype == RULE_BOOL || d->mask) d->low = fmax(d->low, 0), d->high = fmin(d->high, 1);
  while (from < to && x[from] < d->low) from++;
  while (to > from && x[to - 1] > d->high) to--;
  for (; whole(dtype) && from < to && x[from] == d->low; d->low = step(d->low, 1))
    while (from < to && x[from] == d->low) from++;
  for (; whole(dtype) && from < to && x[to - 1] == d->high; d->high = step(d->high, -1))
    while (to > from && x[to - 1] == d->high) to--;
  size_t n = 0;
  for (size_t i = from; i < to; i++)
    if (n == 0 || x[n - 1] != x[i]) x[n++] = x[i];
  d->exclude = x;
  d->n_exclude = n;
}

/* How many numbers it holds; INFINITY: of no integers, or too many to count. */
static double room(const rule_domain *d, rule_dtype dtype) {
  if (d->low > d->high) return 0;
  if (d->mask) return (double)rule_domain_has(d, 0) + (double)rule_domain_has(d, 1);
  if (!whole(dtype)) return d->low < d->high ? INFINITY : rule_domain_has(d, d->low);
  return d->high - d->low + 1 - (double)d->n_exclude;
}

bool rule_domain_settle(rule_domain *d, double *exclude, rule_dtype dtype, const rule_shape *shape,
                        char *why, size_t n) {
  int64_t numel = 1;
  for (uint32_t i = 0; i < shape->rank; i++) numel *= shape->dim[i];
  if (d->mask && d->sorted) d->mask |= RULE_MASK_LEFT; /* which is the same */
  if (d->n_exclude) qsort(exclude, d->n_exclude, sizeof *exclude, ascending);
  narrow(d, exclude, dtype);
  const double has = room(d, dtype);
  if (numel == 0) return true;
  if (!(has > 0)) snprintf(why, n, "no value is left");
  else if (d->mask && !rule_domain_has(d, 1)) snprintf(why, n, "a mask has a 1 in every row");
  else if (d->distinct && has < (double)numel)
    snprintf(why, n, "%" PRId64 " distinct elements are wanted of %.0f values", numel, has);
  else return true;
  return false;
}

rule_domain *rule_domain_meet(iso_arena *arena, const rule_domain *a, const rule_domain *b,
                              rule_dtype dtype, const rule_shape *shape, bool *empty) {
  const size_t n = a->n_exclude + b->n_exclude;
  rule_domain *d = iso_arena_alloc(arena, sizeof *d);
  double *exclude = iso_arena_alloc(arena, (n + 1) * sizeof *exclude);
  char why[128];
  if (!d || !exclude) return NULL;
  if (a->n_exclude) memcpy(exclude, a->exclude, a->n_exclude * sizeof *exclude);
  if (b->n_exclude) memcpy(exclude + a->n_exclude, b->exclude, b->n_exclude * sizeof *exclude);
  *d = (rule_domain){.low = fmax(a->low, b->low),
                     .high = fmin(a->high, b->high),
                     .exclude = exclude,
                     .n_exclude = n,
                     .distinct = a->distinct || b->distinct,
                     .sorted = a->sorted || b->sorted,
                     .mask = a->mask | b->mask};
  d->who = a->who;
  if (strcmp(a->who, b->who) != 0) d->who = iso_arena_printf(arena, "%s and %s", a->who, b->who);
  *empty = !rule_domain_settle(d, exclude, dtype, shape, why, sizeof why);
  return d->who ? d : NULL;
}

/* ---- what is inside ---- */

static bool say(char *why, size_t n, const char *format, ...) {
  va_list v;
  va_start(v, format);
  if (why) vsnprintf(why, n, format, v);
  va_end(v);
  return false;
}

/* One row of a mask, whose numbers are 0 and 1. */
static bool mask_row(unsigned form, const rule_tensor *t, int64_t from, int64_t n) {
  bool one = false, falls = false, rises = false;
  for (int64_t i = from; i < from + n; i++) {
    const double x = rule_tensor_get(t, i), before = i > from ? rule_tensor_get(t, i - 1) : x;
    one |= x == 1;
    falls |= x < before;
    rises |= x > before;
  }
  if (n && !one) return false;
  return !((form & RULE_MASK_LEFT) && falls) && !((form & RULE_MASK_RIGHT) && rises);
}

/* The same where there is no memory to sort in. */
static int64_t repeated_in_place(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    for (int64_t k = 0; k < i; k++)
      if (rule_tensor_get(t, i) == rule_tensor_get(t, k)) return i;
  return -1;
}

/* The first element that repeats: another one before it has its value. -1: there is none. */
static int64_t repeated(const rule_tensor *t) {
  double *x = malloc(((size_t)t->numel + 1) * sizeof *x), twice = NAN;
  if (!x) return repeated_in_place(t);
  for (int64_t i = 0; i < t->numel; i++) x[i] = rule_tensor_get(t, i);
  qsort(x, (size_t)t->numel, sizeof *x, ascending);
  for (int64_t i = 1; i < t->numel && isnan(twice); i++)
    if (x[i] == x[i - 1]) twice = x[i];
  free(x);
  for (int64_t i = 0, n = 0; i < t->numel; i++)
    if (rule_tensor_get(t, i) == twice && n++) return i;
  return -1;
}

bool rule_domain_admits(const rule_domain *d, const rule_tensor *t, char *why, size_t n) {
  const int64_t row = row_of(&t->shape);
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    const long long at = (long long)i;
    if ((d->mask && x != 0 && x != 1) || !rule_domain_has(d, x))
      return say(why, n, "element %lld (row-major) is %.9g", at, x);
    if (d->sorted && i % row && x < rule_tensor_get(t, i - 1))
      return say(why, n, "element %lld (row-major) is less than the one before", at);
  }
  for (int64_t i = 0; d->mask && row > 0 && i < t->numel; i += row)
    if (!mask_row(d->mask, t, i, row))
      return say(why, n, "the row at element %lld (row-major) is padded otherwise, or has no 1",
                 (long long)i);
  const int64_t twice = d->distinct ? repeated(t) : -1;
  return twice == -1 || say(why, n, "element %lld (row-major) is there before", (long long)twice);
}

/* ---- drawing inside ---- */

/* A number inside; `low` and `high` are within the domain. Every fourth is an end. */
static double inside(const rule_domain *d, double low, double high, bool is_whole, double x,
                     iso_rng *rng) {
  enum { TRIES = 64 };
  if (isinf(low)) low = isinf(high) ? -8 : high - 16;
  if (isinf(high)) high = low + 16;
  if (isnan(x)) x = low;
  for (int i = 0; i < TRIES; i++) {
    const double u = iso_rng_uniform(rng);
    double y = is_whole ? low + floor(u * (high - low + 1)) : low + u * (high - low);
    if (i == 0 && iso_rng_below(rng, 4) == 0) y = x < low || iso_rng_below(rng, 2) ? low : high;
    if (y <= high && rule_domain_has(d, y)) return y;
  }
  for (double y = low; is_whole && isfinite(y) && y <= high; y = step(y, 1))
    if (rule_domain_has(d, y)) return y;
  return low;
}

typedef struct draw {
  double low, high;
  unsigned form;
  bool anew;
  iso_rng *rng;
} draw;

static void fit_numbers(const rule_domain *d, const draw *w, rule_tensor *t) {
  const bool is_whole = whole(t->dtype);
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!w->anew && x >= w->low && x <= w->high && rule_domain_has(d, x)) continue;
    rule_tensor_set(t, i, inside(d, w->low, w->high, is_whole, x, w->rng));
  }
}

/* Rows that are padded on the left, on the right, and with holes, by `form`; how many ones is drawn
 * in turn with one number of them after the other in all rows, and with one hole there. */
static void fit_mask(const rule_domain *d, unsigned form, iso_rng *rng, rule_tensor *t) {
  const int64_t row = row_of(&t->shape);
  const bool both = (d->mask & RULE_MASK_LEFT) && (d->mask & RULE_MASK_RIGHT);
  const bool full = both || !rule_domain_has(d, 0);
  const bool open = !(d->mask & (RULE_MASK_LEFT | RULE_MASK_RIGHT));
  const unsigned kind = d->mask & RULE_MASK_LEFT ? 0 : open ? form % 3 : 1;
  const unsigned turn = open ? form / 3 : form;
  const bool in_turn = turn % 2 && row > 1;
  const int64_t at = row ? turn / 2 % row : 0;
  for (int64_t from = 0; row > 0 && from < t->numel; from += row) {
    const int64_t some = in_turn ? 1 + at : 1 + (int64_t)iso_rng_below(rng, (uint64_t)row);
    const int64_t ones = full ? row : some, sure = (int64_t)iso_rng_below(rng, (uint64_t)row);
    for (int64_t i = 0; i < row; i++) {
      const bool hole =
          !full && (in_turn ? i == at : ones < row && i != sure && iso_rng_below(rng, 2));
      const bool one = kind == 0 ? i >= row - ones : kind == 1 ? i < ones : !hole;
      rule_tensor_set(t, from + i, one);
    }
  }
}

typedef struct place {
  double x;
  int64_t at;
} place;

static int by_value(const void *a, const void *b) {
  const place *p = a, *q = b;
  return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->at > q->at) - (p->at < q->at);
}

/* The next number inside after `x`, in steps of `by`. */
static double next_inside(const rule_domain *d, double x, double by) {
  do x = step(x, by);
  while (d->n_exclude && isfinite(x) && excluded(d, x));
  return x;
}

/* Numbers that are there twice move up to the next that is free, and down again at the end. */
static bool fit_distinct(const rule_domain *d, double high, rule_tensor *t) {
  const size_t n = (size_t)t->numel;
  place *p = malloc((n + 1) * sizeof *p);
  if (!p) return false;
  const double by = whole(t->dtype) ? 1 : 0x1p-10;
  for (size_t i = 0; i < n; i++) p[i] = (place){rule_tensor_get(t, (int64_t)i), (int64_t)i};
  qsort(p, n, sizeof *p, by_value);
  for (size_t i = 1; i < n; i++)
    if (!(p[i].x > p[i - 1].x)) p[i].x = next_inside(d, p[i - 1].x, by);
  for (size_t i = n; i-- > 0;) {
    const double most = i + 1 < n ? p[i + 1].x : high + by;
    if (!(p[i].x < most)) p[i].x = next_inside(d, most, -by);
  }
  for (size_t i = 0; i < n; i++) rule_tensor_set(t, p[i].at, p[i].x);
  free(p);
  return true;
}

static bool fit_sorted(rule_tensor *t) {
  const int64_t row = row_of(&t->shape);
  double *x = malloc(((size_t)(row > 0 ? row : 0) + 1) * sizeof *x);
  if (!x) return false;
  for (int64_t from = 0; row > 0 && from < t->numel; from += row) {
    for (int64_t i = 0; i < row; i++) x[i] = rule_tensor_get(t, from + i);
    qsort(x, (size_t)row, sizeof *x, ascending);
    for (int64_t i = 0; i < row; i++) rule_tensor_set(t, from + i, x[i]);
  }
  free(x);
  return true;
}

static bool put_inside(const rule_domain *d, draw w, rule_tensor *t) {
  /* Of the part that was asked for, if there is room in it. */
  const double low = fmax(w.low, d->low), high = fmin(w.high, d->high), n = (double)t->numel;
  const bool part = low <= high && !(d->distinct && high - low + 1 - (double)d->n_exclude < n);
  w.low = part ? low : d->low;
  w.high = part ? high : d->high;
  if (d->mask) fit_mask(d, w.form, w.rng, t);
  else fit_numbers(d, &w, t);
  if (d->distinct && !fit_distinct(d, w.high, t)) return false;
  if (d->sorted && !fit_sorted(t)) return false;
  return rule_domain_admits(d, t, NULL, 0);
}

bool rule_domain_fit(const rule_domain *d, double low, double high, unsigned form, iso_rng *rng,
                     rule_tensor *t) {
  return put_inside(d, (draw){low, high, form, false, rng}, t);
}

bool rule_domain_draw(const rule_domain *d, double low, double high, unsigned form, iso_rng *rng,
                      rule_tensor *t) {
  return put_inside(d, (draw){low, high, form, true, rng}, t);
}

/* ---- in words ---- */

static void add(char *buf, size_t n, const char *format, ...) {
  const size_t at = strlen(buf);
  va_list v;
  va_start(v, format);
  if (at < n) vsnprintf(buf + at, n - at, format, v);
  va_end(v);
}

char *rule_domain_print(const rule_domain *d, char *buf, size_t n) {
  enum { SHOWN = 8 };
  if (n) *buf = 0;
  if (d->mask)
    add(buf, n, "a mask of zeros and ones%s%s",
        d->mask & RULE_MASK_LEFT ? ", padded on the left" : "",
        d->mask & RULE_MASK_RIGHT ? ", padded on the right" : "");
  else if (isfinite(d->low) && isfinite(d->high))
    add(buf, n, "from %.15g to %.15g", d->low, d->high);
  else if (isfinite(d->low)) add(buf, n, "from %.15g on", d->low);
  else if (isfinite(d->high)) add(buf, n, "up to %.15g", d->high);
  else add(buf, n, "any value");
  for (size_t i = 0; i < d->n_exclude && i < SHOWN; i++)
    add(buf, n, "%s%.15g", i ? ", " : ", without ", d->exclude[i]);
  if (d->n_exclude > SHOWN) add(buf, n, " and %zu more", d->n_exclude - SHOWN);
  if (d->distinct) add(buf, n, ", distinct");
  if (d->sorted) add(buf, n, ", sorted");
  return buf;
}
