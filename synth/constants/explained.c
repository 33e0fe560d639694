/* Whether rounding explains that two constants differ. Two that are computed from the same numbers
 * are one if they are equal in float64, however far their captured values are apart. A stored table
 * was computed by code that was not captured: it is compared with the other side's computation,
 * with some of its steps or all of them rounded, and by other formulas for one number. Each
 * comparison allows the effect of rounding the stored numbers, and of a unit in the last place of
 * each elementary function. It allows no more, as a base of 500001 in place of 500000 moves
 * frequencies by 16 units. */
#include "synth/constants/rounding.h"
#include "synth/joint/joint.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* One of the two constants: its value in float64, and its spread under noise. */
typedef struct view {
  pr_cone *cone;
  const rule_tensor *captured;
  rule_tensor *exact, *spread;
} view;

static iso_code look(view *x, size_t set, iso_error *err) {
  iso_code c = pr_run(x->cone, &(pr_how){0}, set, &x->exact, err);
  return c ? c : pr_spread(x->cone, set, x->exact, &x->spread, err);
}

static void let_go(view *x) {
  rule_tensor_unref(x->exact);
  rule_tensor_unref(x->spread);
}

typedef struct pair_of {
  view side[2];
  bool computed; /* one is computed by steps that round */
  double margin; /* times what noise moves */
  bool company;  /* in one comparison, elements were off together */
  bool lone;     /* in one comparison all elements agreed but for a few: these are no rounding */
} pair_of;

/* A value that moves without bound under noise, or is no number, explains nothing. */
static double allowed(const pair_of *p, int64_t i) {
  const double by =
      p->margin * (rule_tensor_get(p->side[0].spread, i) + rule_tensor_get(p->side[1].spread, i));
  return isfinite(by) ? by : 0;
}

static bool one_number(double x, double y) {
  return x == y || (fabs(x) > 1e30 && fabs(y) > 1e30 && signbit(x) == signbit(y));
}

static bool near(const pair_of *p, const rule_tensor *a, const rule_tensor *b) {
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (one_number(x, y)) continue;
    if (!(fabs(x - y) <= allowed(p, i) + 1e-13 * fabs(x))) return false;
  }
  return true;
}

static bool computes(const pr_cone *c) {
  for (size_t i = 0; i < c->n; i++)
    if (c->step[i].call && st_op_rounds(c->step[i].call->u.s)) return true;
  return false;
}

/* In float64: up to its rounding, which is 2^-29 of float32's. Each element is held by its own
 * size, since a large one excuses no other; below one, sums that cancel are as exact as their
 * largest terms, and these are not known here. Numbers that both sides store may be a library's
 * function apart. */
static bool same_in_float64(const pair_of *p) {
  const double by = p->computed ? 1e-14 : 8 * DBL_EPSILON;
  const rule_tensor *a = p->side[0].exact, *b = p->side[1].exact;
  double most = 0;
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i)) < 1e30) most = fmax(most, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    const double size = fmax(fmax(fabs(x), fabs(y)), fmin(most, 1));
    if (one_number(x, y)) continue;
    if (!isfinite(size) || !(fabs(x - y) <= 0x1p-24 * allowed(p, i) + by * size)) return false;
  }
  return true;
}

/* ---- one element that is off ----
 * An element that noise moves far may hide a wrong one: where hardly any other element is off, it
 * is no rounding. One number alone has none beside it, and is held by how far noise moves it. */

static bool is_off(const pair_of *p, const rule_tensor *a, const rule_tensor *b, rule_dtype in,
                   int64_t i, bool *may) {
  const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i), unit = pr_ulp(x, in);
  *may = allowed(p, i) > 8 * unit;
  return *may && fabs(x - y) > 2.5 * unit;
}

/* Of the elements in a line with `i`, or of all, enough are off. */
static bool in_company(const bool *off, const bool *may, const rule_shape *shape, int64_t numel,
                       int64_t i) {
  int64_t stride = 1;
  for (uint32_t d = shape->rank; d-- > 0; stride *= shape->dim[d]) {
    const int64_t first = i - i / stride % shape->dim[d] * stride;
    int64_t n = 0, all = 0;
    for (int64_t k = 0; k < shape->dim[d]; k++)
      n += off[first + k * stride], all += may[first + k * stride];
    if (n > 1 && 4 * n >= all) return true;
  }
  int64_t n = 0, all = 0;
  for (int64_t k = 0; k < numel; k++) n += off[k], all += may[k];
  return n > 1 && 4 * n >= all;
}

/* An element that a layout repeats is one, and no company to itself. */
static int by_numbers(const void *l, const void *r) {
  const double *a = l, *b = r;
  for (int k = 0; k < 3; k++)
    if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
  return 0;
}

static iso_code forget_repeated(const rule_tensor *a, const rule_tensor *b, bool *off, bool *may,
                                iso_error *err) {
  const size_t n = (size_t)a->numel;
  double(*at)[3] = malloc((n + 1) * sizeof *at);
  if (!at) return nomem(err);
  for (size_t i = 0; i < n; i++) {
    at[i][0] = rule_tensor_get(a, (int64_t)i), at[i][1] = rule_tensor_get(b, (int64_t)i);
    at[i][2] = (double)i;
  }
  qsort(at, n, sizeof *at, by_numbers);
  for (size_t i = 1; i < n; i++)
    if (at[i][0] == at[i - 1][0] && at[i][1] == at[i - 1][1])
      off[(size_t)at[i][2]] = may[(size_t)at[i][2]] = false;
  free(at);
  return ISO_OK;
}

/* `clean`: no element is off. */
static iso_code no_lone_element(const pair_of *p, const rule_tensor *a, const rule_tensor *b,
                                rule_dtype in, bool *fine, bool *clean, iso_error *err) {
  bool *off = calloc((size_t)a->numel + 1, 1), *may = calloc((size_t)a->numel + 1, 1);
  const bool alone = !rule_tensor_varies(a) && !rule_tensor_varies(b);
  *fine = *clean = true;
  for (int64_t i = 0; i < a->numel && off && may && !alone; i++)
    *clean &= !(off[i] = is_off(p, a, b, in, i, &may[i]));
  iso_code c = !off || !may ? nomem(err) : *clean ? ISO_OK : forget_repeated(a, b, off, may, err);
  for (int64_t i = 0; i < a->numel && !c && *fine && !*clean; i++)
    *fine = !off[i] || in_company(off, may, &a->shape, a->numel, i);
  free(off);
  free(may);
  return c;
}

/* ---- how a stored table may have been computed ---- */

static iso_code fits_one(pair_of *p, const rule_tensor *stored, const rule_tensor *made,
                         rule_dtype in, rx_fit *fit, iso_error *err) {
  bool fine = false, clean = false;
  rx_drift drifts = RX_STAYS;
  if (stored->numel != made->numel || !near(p, stored, made)) return ISO_OK;
  iso_code c = rx_drifts(stored, made, in, &drifts, err);
  if (c || drifts) return c;
  c = no_lone_element(p, stored, made, in, &fine, &clean, err);
  p->lone |= !fine;
  if (!c) *fit = clean ? RX_YES : RX_NEAR;
  p->company |= fine && !clean;
  return c;
}

static iso_code try_how(pair_of *p, int other, const pr_how *how, rule_dtype in, size_t set,
                        rx_fit *fit, iso_error *err) {
  rule_tensor *made;
  rx_fit now = RX_NO;
  iso_code c = pr_run(p->side[other].cone, how, set, &made, err);
  if (c) return c;
  c = fits_one(p, p->side[!other].exact, made, in, &now, err);
  if (now > *fit) *fit = now;
  rule_tensor_unref(made);
  return c;
}

/* The first or the last steps rounded to `by`'s dtype; the rest in float64. */
static iso_code try_rounded(pair_of *p, int other, const pr_how *by, rule_dtype in, size_t set,
                            rx_fit *fit, iso_error *err) {
  enum { MAX_CUTS = 24 };
  const size_t n = p->side[other].cone->n;
  iso_code c = ISO_OK;
  for (size_t k = 0; k < n && !c && *fit != RX_YES; k++) {
    if (!p->side[other].cone->step[k].call || (n > MAX_CUTS && k % (n / MAX_CUTS + 1))) continue;
    pr_how how = *by;
    how.rounds = true, how.first = k, how.last = n;
    c = try_how(p, other, &how, in, set, fit, err);
    if (c || *fit == RX_YES || by->formula) continue;
    how.first = 0, how.last = k;
    c = try_how(p, other, &how, in, set, fit, err);
  }
  return c;
}

/* Side `other`'s value in all the ways in which it may have been computed before it was stored. */
static iso_code try_all(pair_of *p, int other, rule_dtype in, size_t set, rx_fit *fit,
                        iso_error *err) {
  const view *stored = &p->side[!other], *made = &p->side[other];
  rx_fit now = RX_NO;
  iso_code c = fits_one(p, stored->exact, made->exact, in, &now, err);
  if (!c && now != RX_YES) c = fits_one(p, stored->exact, made->captured, in, &now, err);
  if (!c && now != RX_YES) c = fits_one(p, stored->captured, made->captured, in, &now, err);
  for (unsigned f = 1; f <= PR_FORMULAS && !c && now != RX_YES; f++)
    c = try_how(p, other, &(pr_how){.formula = f}, in, set, &now, err);
  if (!c && now != RX_YES)
    c = try_rounded(p, other, &(pr_how){.dtype = RULE_F32}, in, set, &now, err);
  for (unsigned f = 1; f <= PR_FORMULAS && !c && now != RX_YES; f++)
    c = try_rounded(p, other, &(pr_how){.dtype = RULE_F32, .formula = f}, in, set, &now, err);
  if (!c && now != RX_YES && in != RULE_F32)
    c = try_rounded(p, other, &(pr_how){.dtype = in}, in, set, &now, err);
  if (now == RX_NEAR && p->company && !p->lone) now = RX_YES;
  if (now > *fit) *fit = now;
  return c;
}

/* One number in a narrow dtype is the number that it is: sqrt(48) is 6.9375 in bfloat16, and models
 * are trained with that. */
static bool narrow_number(const pair_of *p) {
  for (int k = 0; k < 2; k++)
    if (pr_ulp(1, p->side[k].cone->held) > pr_ulp(1, RULE_F32) &&
        !rule_tensor_varies(p->side[k].captured))
      return true;
  return false;
}

/* Whether the two are near, as numbers or as they were captured, and no drift says that they are
 * not one. */
static iso_code are_near(const pair_of *p, rule_dtype in, bool *yes, iso_error *err) {
  const rule_tensor *of[2][2] = {{p->side[0].exact, p->side[1].exact},
                                 {p->side[0].captured, p->side[1].captured}};
  iso_code c = ISO_OK;
  *yes = false;
  for (int k = 0; k < 2 && !c && !*yes; k++) {
    rx_drift drifts = RX_STAYS;
    if (!near(p, of[k][0], of[k][1])) continue;
    c = rx_drifts(of[k][0], of[k][1], in, &drifts, err);
    *yes = !c && drifts != RX_DRIFTS_FAR;
  }
  return c;
}

static iso_code explained_on(state *s, pr_cone cone[2], const eg_node e[2], size_t set, rx_fit *fit,
                             iso_error *err) {
  pair_of p = {.margin = 1.25};
  iso_code c = ISO_OK;
  *fit = RX_NO;
  for (int k = 0; k < 2 && !c; k++) {
    p.side[k].cone = &cone[k];
    p.computed |= computes(&cone[k]);
    if (!(p.side[k].captured = st_val(s, e[k], set))) c = st_lost(&s->values, err);
    if (!c) c = look(&p.side[k], set, err);
  }
  const bool alike = !c && p.side[0].exact->numel == p.side[1].exact->numel &&
                     p.side[0].captured->numel == p.side[0].exact->numel;
  if (alike && same_in_float64(&p)) *fit = RX_YES;
  else if (alike && !(cone[0].pure && cone[1].pure) && !narrow_number(&p)) {
    for (int other = 0; other < 2 && !c && *fit != RX_YES; other++)
      if (!cone[!other].pure) c = try_all(&p, other, cone[!other].held, set, fit, err);
    p.margin = 4;
    bool close = false;
    if (!c && *fit == RX_NO) c = are_near(&p, cone[cone[0].pure ? 1 : 0].held, &close, err);
    if (close) *fit = RX_NEAR;
  }
  for (int k = 0; k < 2; k++) let_go(&p.side[k]);
  return c;
}

iso_code rx_explained(state *s, eg_node a, eg_node b, rx_fit *fit, iso_error *err) {
  const eg_node e[2] = {a, b};
  pr_cone cone[2] = {{0}};
  *fit = RX_NO;
  iso_code c = pr_cone_new(s, a, &cone[0], err);
  if (!c) c = pr_cone_new(s, b, &cone[1], err);
  rx_fit least = RX_YES;
  for (size_t set = 0; set < s->n_kept && !c && least != RX_NO; set++) {
    rx_fit now;
    c = explained_on(s, cone, e, set, &now, err);
    if (now < least) least = now;
  }
  if (!c) *fit = least;
  for (int k = 0; k < 2; k++)
    if (cone[k].at) pr_cone_free(&cone[k]);
  return c == ISO_NOMEM || c == ISO_OK || c == ISO_DEVICE
             ? c
             : ISO_OK; /* what cannot be run otherwise explains nothing */
}
