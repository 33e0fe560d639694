/* Whether a parameter was rounded from the value of a term: each element as far as rounding moves
 * it, and all of them together as little as roundings do, which point up and down. A scale that is
 * 1 % off hides in each element of bfloat16, and not in a hundred. */
#include "cli/config/relations_int.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum {
  RUNS = 16,           /* with all that is computed up or down by a rounding */
  STEPS = 3,           /* how many times as far as in these an element may be off */
  SHIFT = 4,           /* and a number or an operand */
  LOOKED_AT = 1 << 16, /* elements of which the latter is asked */
  NO_NUMBER = UINT32_MAX
};

typedef struct rounding {
  const relations_held *h;
  const rule_tensor *stored, *v;
  rule_tensor *as;         /* of the numbers of the term; NULL: as they stand */
  double u, least;         /* a rounding, of 1; and of the least numbers */
  double *moves;           /* by element */
  int64_t step, n;         /* each step-th element is looked at */
  double *run[RUNS], *off; /* of these: how far they move, and how far they are off */
  double *bound;
  iso_error *err;
} rounding;

/* How far a rounding moves a number, of its size: the root of the mean of squares, about. At most
 * it is twice as far. */
static double rounding_of(rule_dtype d) { return rule_dtype_unit(d, 1) / 4; }

/* The value of the term with something changed; `leaf` is larger by `change->by`. */
static iso_code run_changed(const rounding *x, relfile_change *change, size_t leaf,
                            rule_tensor **out) {
  const relations_held *h = x->h;
  const cap_graph *g = h->g;
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value);
  iso_code c = value ? ISO_OK : nomem(x->err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    rule_tensor *v = h->value[i];
    if (!v) continue;
    const bool floating = rule_dtype_is_float(v->dtype) && !rule_dtype_is_complex(v->dtype);
    if (g->node[i].kind == CAP_OP)
      c = relfile_changed(g, g->node[i].call, value, h->oracle, change, &value[i], x->err);
    else if (floating && change->rng) c = relfile_disturb(v, change, &value[i], x->err);
    else if (floating && i == leaf) c = relfile_scaled(v, 1 + change->by, &value[i], x->err);
    else value[i] = rule_tensor_ref(v);
  }
  if (!c) c = relfile_changed(g, h->term, value, h->oracle, change, out, x->err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  return c;
}

/* How far each element of `v` moves with roundings. */
static iso_code disturb(rounding *x) {
  iso_rng rng = iso_rng_new(UINT64_C(0x666f6c64), 0);
  iso_code c = ISO_OK;
  for (int n = 0; n < RUNS && !c; n++) {
    relfile_change change = {.by = x->u, .rng = &rng, .number = NO_NUMBER, .as = x->as};
    rule_tensor *now = NULL;
    if ((c = run_changed(x, &change, SIZE_MAX, &now))) break;
    for (int64_t i = 0; i < x->v->numel && now->numel == x->v->numel; i++) {
      const double by = rule_tensor_get(now, i) - rule_tensor_get(x->v, i);
      x->moves[i] = fmax(x->moves[i], fabs(by));
      if (i % x->step == 0) x->run[n][i / x->step] = by;
    }
    rule_tensor_unref(now);
  }
  return c;
}

static bool each_is_near(rounding *x) {
  for (int64_t i = 0; i < x->stored->numel; i++) {
    const double s = rule_tensor_get(x->stored, i), by = s - rule_tensor_get(x->v, i);
    const double bound = x->u * fabs(s) + x->least + x->moves[i];
    if (!(fabs(by) <= STEPS * bound)) return false; /* or is no number */
    if (i % x->step == 0) x->off[i / x->step] = by, x->bound[i / x->step] = bound;
  }
  return true;
}

/* How much of the way `to` the elements went. */
static double share(const rounding *x, const double *went, const double *to) {
  double both = 0, own = 0;
  for (int64_t i = 0; i < x->n; i++) {
    if (!(x->bound[i] > 0)) continue;
    const double d = to[i] / x->bound[i];
    both += went[i] / x->bound[i] * d;
    own += d * d;
  }
  return own > 0 ? both / own : 0;
}

/* Whether the elements are off as if a number or an operand were another, by more than roundings
 * shift it. What cannot be computed with another number says nothing. */
static iso_code goes_along(rounding *x, relfile_change *change, size_t leaf, double *to,
                           bool *out) {
  rule_tensor *now = NULL;
  const iso_code c = run_changed(x, change, leaf, &now);
  *out = false;
  if (c) return c == ISO_NOMEM ? c : ISO_OK;
  const bool fits = now->numel == x->v->numel;
  for (int64_t i = 0; i < x->n && fits; i++)
    to[i] = rule_tensor_get(now, i * x->step) - rule_tensor_get(x->v, i * x->step);
  rule_tensor_unref(now);
  double squares = 0;
  for (int n = 0; n < RUNS && fits; n++) squares += pow(share(x, x->run[n], to), 2);
  *out = fits && fabs(share(x, x->off, to)) > SHIFT * sqrt(squares / RUNS);
  return ISO_OK;
}

static iso_code all_go_along(rounding *x, bool *out) {
  enum { NUMBERS = 16 };
  const double by = 0x1p-20; /* small, and far above float64's own rounding */
  double *to = calloc((size_t)x->n + 1, sizeof *to);
  iso_code c = to ? ISO_OK : nomem(x->err);
  uint32_t numbers = 1;
  *out = false;
  for (uint32_t k = 0; k < numbers && k < NUMBERS && !*out && !c; k++) {
    relfile_change change = {.by = by, .number = k, .as = x->as};
    c = goes_along(x, &change, SIZE_MAX, to, out);
    numbers = change.numbers;
  }
  for (size_t i = 0; i < x->h->g->n_nodes && !*out && !c; i++) {
    if (!x->h->value[i] || x->h->g->node[i].kind == CAP_OP) continue;
    relfile_change change = {.by = by, .number = NO_NUMBER, .as = x->as};
    c = goes_along(x, &change, i, to, out);
  }
  free(to);
  return c;
}

/* ISO_OK with `fine` where `v` may have been rounded to what is stored. */
static iso_code judge(rounding *x, bool *fine) {
  const size_t n = (size_t)x->n + 1;
  bool along = false;
  *fine = false;
  x->moves = calloc((size_t)x->v->numel + 1, sizeof *x->moves);
  x->off = calloc(n, sizeof *x->off);
  x->bound = calloc(n, sizeof *x->bound);
  iso_code c = x->moves && x->off && x->bound ? ISO_OK : nomem(x->err);
  for (int k = 0; k < RUNS; k++)
    if (!(x->run[k] = calloc(n, sizeof *x->run[k]))) c = nomem(x->err);
  if (!c) c = disturb(x);
  if (!c && each_is_near(x)) {
    c = all_go_along(x, &along);
    *fine = !along;
  }
  for (int k = 0; k < RUNS; k++) free(x->run[k]);
  free(x->bound);
  free(x->off);
  free(x->moves);
  return c;
}

static double largest(const rule_tensor *t) {
  double most = 0;
  for (int64_t i = 0; i < t->numel; i++) most = fmax(most, fabs(rule_tensor_get(t, i)));
  return most;
}

/* How far they are apart, of the largest element. */
static double apart(const rule_tensor *stored, const rule_tensor *v, double most) {
  double off = 0;
  for (int64_t i = 0; i < stored->numel && most > 0; i++)
    off = fmax(off, fabs(rule_tensor_get(stored, i) - rule_tensor_get(v, i)) / most);
  return off;
}

iso_code relations_rounded(const relations_held *h, const rule_tensor *stored, const rule_tensor *v,
                           bool *fine, double *off, iso_error *err) {
  const double most = largest(stored);
  const int64_t step = stored->numel / LOOKED_AT | 1; /* odd: no column is left out */
  rounding x = {.h = h,
                .stored = stored,
                .v = v,
                .u = rounding_of(stored->dtype),
                .least = rule_dtype_unit(stored->dtype, 0) / 2,
                .err = err,
                .step = step,
                .n = (stored->numel + step - 1) / step};
  *off = 0;
  *fine = false;
  if (x.u == 0 || !isfinite(most) || stored->numel != v->numel) return ISO_OK;
  *off = apart(stored, v, most);
  iso_code c = judge(&x, fine);
  if (c || *fine) return c;
  /* A loader may compute with its numbers in the parameter's dtype, too. */
  rule_tensor *rounded = NULL;
  c = rule_tensor_new(stored->dtype, &(rule_shape){0}, &x.as, err);
  relfile_change change = {.number = NO_NUMBER, .as = x.as};
  if (!c) c = run_changed(&x, &change, SIZE_MAX, &rounded);
  x.v = rounded;
  if (!c && change.numbers) c = judge(&x, fine);
  if (!c && *fine) *off = apart(stored, rounded, most);
  rule_tensor_unref(rounded);
  rule_tensor_unref(x.as);
  return c;
}
