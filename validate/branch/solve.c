/* Samples that meet an operator where it jumps. Of two floats that are compared none is the other
 * one by chance, of 50,000 words none is word 512. So one variable is moved along a line, x + t d,
 * until the distance between the operands of one element changes its sign, and halved from there to
 * where it is 0 (for integers: to neighbours). A line is scanned over all magnitudes first, so that
 * a root that is far away, or one of several, is found as well. All is bounded by counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/branch/choice_int.h"
#include "validate/branch/cover_int.h"
#include "validate/branch/meet_int.h"

enum {
  EDGES = VAL_EDGE | VAL_MEET | VAL_EDGE_BELOW | VAL_EDGE_ODD | VAL_EDGE_ABOVE,
  GRID = 256,
  HALVINGS = 120,
  DIGITS = 44,
  LINES = 4,

  MAX_LITERALS = 24
};

typedef struct line {
  val_engine *e;
  const rule *r;
  const rule_term *term;
  uint16_t bit;
  rule_tensor **bind;
  uint32_t var;
  bool whole;       /* the variable is of integers */
  double low, high; /* which lie here */
  rule_tensor *base;
  double *step; /* of each element */
  int64_t element;
  uint64_t pick;
  double at;      /* see val_site_distance */
  int64_t numel;  /* of the call's result */
  bool takes;     /* the element does what the bit says */
  bool truth;     /* what the call gives for it, where that is a truth value */
  double operand; /* the first operand there */
  double distance;
  int64_t *work;
} line;

static void look(void *ctx, const rule_term *call, rule_tensor *const *bind, size_t n,
                 const rule_tensor *out) {
  line *l = ctx;
  double other;
  const val_site s = val_site_of(call, bind, n, out);
  l->numel = out->numel;
  if (l->element >= out->numel) return;
  l->distance = val_site_distance(&s, l->bit, l->element, l->pick, &l->at);
  l->takes = val_site_slip(&s, l->bit, l->element, &other);
  l->truth = out->dtype == RULE_BOOL && rule_tensor_get(out, l->element) != 0;
  l->operand = s.aligned ? val_operand(&s.o, 0, l->element) : 0;
}

/* Runs the call on the present bindings. */
static iso_code run(line *l, iso_error *err) {
  const val_tap tap = {l->term, look, l};
  val_probe p = {.tap = &tap};
  rule_tensor *x = NULL;
  iso_error local;
  l->distance = (double)NAN;
  l->takes = false;
  const iso_code c = val_eval_probe(l->e, l->term, l->bind, &p, &x, &local);
  rule_tensor_unref(x);
  *l->work -= (int64_t)p.n_run * 1000 + (l->base ? l->base->numel : 0);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* Bind the variable at t. Returns: in `in` whether it lies within its range. */
static iso_code move_to(line *l, double t, bool *in, iso_error *err) {
  rule_tensor *x = NULL;
  iso_code c = rule_tensor_new(l->base->dtype, &l->base->shape, &x, err);
  if (c) return c;
  *in = true;
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = l->step[i] == 0 ? rule_tensor_get(l->base, i)
                                     : rule_tensor_get(l->base, i) + t * l->step[i];
    if (l->whole && l->step[i] != 0) *in &= v >= l->low && v < l->high;
    if (!l->whole || l->step[i] != 0) rule_tensor_set(x, i, *in ? v : 0);
    else if (x->dtype == RULE_I64) ((int64_t *)x->data)[i] = rule_tensor_get_int(l->base, i);
    else rule_tensor_set(x, i, v);
  }
  rule_tensor_unref(l->bind[l->var]);
  l->bind[l->var] = x;
  return ISO_OK;
}

static iso_code distance_at(line *l, double t, iso_error *err) {
  bool in;
  iso_code c = move_to(l, t, &in, err);
  l->distance = (double)NAN;
  l->takes = false;
  return c || !in ? c : run(l, err);
}

/* ---- where to look ---- */

static void literals(const rule_term *t, double *v, size_t *n) {
  if ((t->kind == RULE_INT || t->kind == RULE_FLOAT) && *n < MAX_LITERALS)
    v[(*n)++] = t->kind == RULE_INT ? (double)t->u.i : t->u.f;
  for (uint32_t i = 0; i < t->n; i++) literals(t->child[i], v, n);
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Each number once. */
static size_t in_order(double *t, size_t n) {
  size_t k = 0;
  qsort(t, n, sizeof *t, by_value);
  for (size_t i = 0; i < n; i++)
    if (k == 0 || t[i] != t[k - 1]) t[k++] = t[i];
  return k;
}

/* Every magnitude, of both signs. */
static size_t grid_of_floats(iso_rng *rng, double *t) {
  const double u = 1 + iso_rng_uniform(rng) / 2;
  size_t n = 0;
  t[n++] = 0;
  for (int k = -12; k <= 64; k += k < 12 ? 1 : 4)
    for (int sign = -1; sign <= 1; sign += 2) t[n++] = sign * ldexp(u, k);
  return n;
}

/* The ends, small numbers, the rule's literals and their sums and quotients, as steps from the
 * value that the element has. */
static size_t grid_of_integers(const line *l, iso_rng *rng, double from, double *t) {
  double lit[MAX_LITERALS];
  size_t n = 0, m = 0;
  const double low = fmax(l->low, -0x1p40), high = fmin(l->high, 0x1p40);
  literals(l->r->lhs, lit, &m);
  literals(l->r->rhs, lit, &m);
  t[n++] = low - from;
  t[n++] = high - 1 - from;
  for (int k = -2; k < 34; k++) t[n++] = k - from;
  for (size_t i = 0; i < m && n + 16 < GRID / 2; i++)
    for (int d = -1; d <= 1; d++) t[n++] = floor(lit[i]) + d - from;
  for (size_t i = 0; i < m && n + 16 < GRID; i++) {
    const double a = lit[i], b = lit[iso_rng_below(rng, m)];
    t[n++] = floor(a + b) - from, t[n++] = floor(a - b) - from, t[n++] = floor(a * b) - from;
    t[n++] = b != 0 ? floor(a / b) - from : 0;
  }
  for (int k = 0; k < 16 && n < GRID; k++)
    t[n++] = floor(low + iso_rng_uniform(rng) * (high - low)) - from;
  return n;
}

/* Along which line: all elements by steps of their own, or one, or all by the same. */
static void choose_step(line *l, iso_rng *rng) {
  static const double steps[] = {1, -1, 0.5, 2, 1, 1};
  const int64_t n = l->base->numel;
  const uint64_t how = iso_rng_below(rng, 4);
  int64_t one = l->element % n;
  if (how == 1 && l->numel >= n) one = l->element / (l->numel / n) % n;
  else if (how >= 2) one = (int64_t)iso_rng_below(rng, (uint64_t)n);
  const bool all = l->whole ? how == 3 && iso_rng_below(rng, 3) == 0 : how != 0;
  for (int64_t i = 0; i < n; i++)
    l->step[i] = l->whole ? all || i == one : all ? steps[iso_rng_below(rng, 6)] : i == one;
  /* From 0 on the moved element takes every double near its root. */
  for (int64_t i = 0; i < n && !l->whole; i++)
    if (how == 0 ? i == one : how == 1) rule_tensor_set(l->base, i, 0);
}

/* ---- roots ---- */

static iso_code scan(line *l, const double *t, size_t n, double *d, bool *takes, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n && !c; i++) {
    d[i] = (double)NAN;
    takes[i] = false;
    if (*l->work <= 0) continue;
    c = distance_at(l, t[i], err);
    d[i] = l->distance;
    takes[i] = l->takes;
  }
  return c;
}

/* Between two points of opposite signs. Returns: in `*a` where it is 0, or else the two are
 * neighbours. */
static iso_code halve(line *l, double *a, double *b, double da, bool *zero, iso_error *err) {
  iso_code c = ISO_OK;
  *zero = false;
  for (int k = 0; k < HALVINGS && !c && !*zero && *l->work > 0; k++) {
    const double m = l->whole ? floor((*a + *b) / 2) : (*a + *b) / 2;
    if (m == *a || m == *b) break;
    c = distance_at(l, m, err);
    if (isnan(l->distance)) break;
    if (l->distance == 0) *a = m, *zero = true;
    else if ((l->distance < 0) == (da < 0)) *a = m;
    else *b = m;
  }
  return c;
}

/* A number with few digits beside the root may meet it where the root's neighbours do not. */
static iso_code snap(line *l, double *t, bool *zero, iso_error *err) {
  iso_code c = ISO_OK;
  for (int digits = 0; digits < DIGITS && !c && !*zero && *l->work > 0; digits++) {
    const double s = ldexp(nearbyint(ldexp(*t, digits)), -digits);
    c = distance_at(l, s, err);
    if (l->distance == 0) *t = s, *zero = true;
  }
  for (int k = -6; k <= 6 && !c && !*zero && *l->work > 0; k++) {
    const double s = *t + k * 0x1p-52 * fabs(*t);
    c = distance_at(l, s, err);
    if (l->distance == 0) *t = s, *zero = true;
  }
  return c;
}

static bool opposite(double a, double b) { return (a < 0 && b > 0) || (a > 0 && b < 0); }

/* One of the places of the grid where something is met: `*which` and, where the sign changes, the
 * next one that has a value. */
static size_t choose_root(const line *l, iso_rng *rng, const double *d, const bool *takes, size_t n,
                          size_t *which, size_t *next) {
  const bool edge = (l->bit & EDGES) != 0;
  size_t found = 0;
  for (size_t i = 0, last = n; i < n; i++) {
    if (isnan(d[i]) && !takes[i]) continue;
    const bool zero = takes[i] && (!edge || d[i] == 0),
               change = edge && last < n && opposite(d[last], d[i]);
    if ((zero || change) && iso_rng_below(rng, ++found) == 0) *which = zero ? i : last, *next = i;
    last = i;
  }
  return found;
}

/* Keep the variable as it is on the root's other side. */
static iso_code across(line *l, double b, val_root *out, iso_error *err) {
  const iso_code c = distance_at(l, b, err);
  out->truth = l->truth;
  if (!c && !isnan(l->distance)) out->beyond = rule_tensor_ref(l->bind[l->var]);
  return c;
}

/* And as it is close to a root that is met. */
static iso_code beside(line *l, double a, val_root *out, iso_error *err) {
  bool in = true;
  iso_code c = move_to(l, l->whole ? a - 1 : a + 0x1p-7 * fmax(1, fabs(a)), &in, err);
  if (!c && !in) c = move_to(l, a + 1, &in, err);
  if (!c && in) out->beyond = rule_tensor_ref(l->bind[l->var]);
  return c;
}

/* And on either side of a jump, nearer than another number on the way moves it, and farther than
 * rounding does: few floats meet a jump, and those that do may be where all of them agree (0). */
static iso_code close_by(line *l, double a, val_root *out, iso_error *err) {
  bool in;
  iso_code c = ISO_OK;
  for (int k = 0; k < 2 && !c; k++) {
    c = move_to(l, a + (k ? 1 : -1) * 0x1p-27 * fmax(1, fabs(a)), &in, err);
    if (c) break;
    rule_tensor_unref(out->close[k]);
    out->close[k] = rule_tensor_ref(l->bind[l->var]);
  }
  return c;
}

static iso_code root_on(line *l, iso_rng *rng, val_root *out, iso_error *err) {
  double t[GRID], d[GRID];
  bool takes[GRID], zero = true;
  size_t at = 0, next = 0;
  size_t n = l->whole ? 0 : grid_of_floats(rng, t);
  for (int64_t i = 0; i < l->base->numel && l->whole && n == 0; i++)
    if (l->step[i] != 0) n = grid_of_integers(l, rng, rule_tensor_get(l->base, i), t);
  n = in_order(t, n);
  iso_code c = scan(l, t, n, d, takes, err);
  const size_t found = c ? 0 : choose_root(l, rng, d, takes, n, &at, &next);
  if (c || found == 0) return c;
  double a = t[at], b = t[next];
  if (at != next) c = halve(l, &a, &b, d[at], &zero, err);
  if (!c && !zero && !l->whole) c = snap(l, &a, &zero, err);
  if (!c && !zero && l->whole) c = across(l, b, out, err);
  if (!c && zero && (l->bit & EDGES)) c = beside(l, a, out, err);
  if (!c && !l->whole && (l->bit & EDGES)) c = close_by(l, a, out, err);
  if (!c) c = distance_at(l, a, err);
  out->across = out->beyond && !zero && l->truth != out->truth;
  out->found = !c && (zero ? l->takes : out->across);
  out->unique = found == 1;
  out->element = l->element;
  out->var = l->var;
  out->operand = l->operand;
  return c;
}

static void note_variables(const rule_term *t, bool *reads) {
  if (t->kind == RULE_VAR) reads[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) note_variables(t->child[i], reads);
}

/* A variable of numbers that the call depends on. Returns: false where there is none. */
static bool choose_variable(line *l, const val_domain *domain, iso_rng *rng) {
  bool reads[RULE_MAX_VARS] = {false};
  uint64_t n = 0;
  note_variables(l->term, reads);
  for (uint32_t v = 0; v < l->r->n_vars; v++) {
    const rule_variable *x = &l->r->var[v];
    if (reads[v] && (x->kind == 'f' || x->kind == 'i') && l->bind[v]->numel > 0 &&
        iso_rng_below(rng, ++n) == 0)
      l->var = v;
  }
  if (n == 0) return false;
  l->whole = l->r->var[l->var].kind == 'i';
  val_variable_range(l->r, l->var, &domain[l->var], l->bind[l->var]->dtype, &l->low, &l->high);
  return true;
}

static iso_code search(line *l, const val_domain *domain, iso_rng *rng, val_root *out,
                       iso_error *err) {
  if (!choose_variable(l, domain, rng)) return ISO_OK;
  iso_code c = run(l, err); /* how many elements there are */
  if (c || l->element >= l->numel) return c;
  /* One number on both sides is no edge that was met. */
  if (l->bit == VAL_MEET && l->distance == 0) return c;
  rule_tensor *x = l->bind[l->var];
  if ((c = rule_tensor_new(x->dtype, &x->shape, &l->base, err))) return c;
  memcpy(l->base->data, x->data, (size_t)x->numel * rule_dtype_size(x->dtype));
  if (!(l->step = calloc((size_t)x->numel, sizeof *l->step)))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  for (int k = 0; k < LINES && !c && !out->found && *l->work > 0; k++) {
    choose_step(l, rng);
    l->pick = iso_rng_next(rng);
    l->at = (double)NAN;
    c = distance_at(l, 0, err); /* whole numbers are counted from here, not from the line's end */
    if (!c) c = root_on(l, rng, out, err);
    if (!out->found) {
      rule_tensor_unref(out->beyond);
      out->beyond = NULL;
    }
  }
  return c;
}

iso_code val_solve(const val_bench *on, const val_target *t, val_root *out, iso_error *err) {
  line l = {.e = on->e,
            .r = on->r,
            .term = t->term,
            .bit = t->bit,
            .element = t->element,
            .bind = on->bind,
            .work = on->work};
  *out = (val_root){.found = false};
  const iso_code c = search(&l, on->domain, on->rng, out, err);
  rule_tensor_unref(l.base);
  free(l.step);
  return c;
}
