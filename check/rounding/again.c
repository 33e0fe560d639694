/* A constant computed again in float64, in one of the ways in which a table may have come to be:
 * with steps rounded, by another formula, as captured, or with each stored number and each result
 * moved as far as its rounding may have moved it. */
#include "check/rounding/again.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/value_int.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "egraph/base/rng.h"

enum { RUNS = 16, DEEPEST = 500 };

enum { UNSEEN, PLAIN, BEFORE_POWER };

/* The values of the terms below one, on one run. */
typedef struct run {
  chk_state *k;
  chk_values *at;      /* by term */
  unsigned char *rank; /* by term: UNSEEN, or whether a power is made of it */
  ag_way how;
  iso_rng rng;
  int held;    /* in how few digits anything below is stored */
  bool stored; /* something below is stored in few digits */
  bool rounds; /* a call below rounds */
  uint32_t steps;
} run;

double ag_unit(double x, int digits) {
  int exponent;
  frexp(x, &exponent);
  const int least = digits == 11   ? -13
                    : digits == 53 ? -1021
                                   : -125; /* below, numbers have fewer digits */
  return ldexp(1, (exponent < least ? least : exponent) - digits);
}

/* Of float8, and of no floats, each number counts as it is. */
static int digits_of(rule_dtype d) {
  return rule_dtype_digits(rule_dtype_is_float(d) && rule_dtype_size(d) > 1 ? d : RULE_F64);
}

bool ag_has_digits(double x, int digits) {
  int exponent;
  const double m = ldexp(frexp(x, &exponent), digits);
  return m == floor(m);
}

/* In how few digits the numbers of a table were held, its own dtype's or those of a narrower one
 * that all of them fit in. */
static int stored_digits(const rule_tensor *t) {
  static const rule_dtype narrow[] = {RULE_BF16, RULE_F16, RULE_F32};
  enum { LEAST = 8 };
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
    const int d = digits_of(narrow[i]);
    bool fits = t->numel >= LEAST, uses = false;
    if (d >= digits_of(t->dtype)) break;
    for (int64_t e = 0; e < t->numel && fits; e++) {
      fits = ag_has_digits(rule_tensor_get(t, e), d);
      uses |= !ag_has_digits(rule_tensor_get(t, e), d - 1);
    }
    if (fits && uses) return d;
  }
  return digits_of(t->dtype);
}

/* Whether `x` has so few digits that somebody wrote it so, or that no rounding was needed to make
 * it. */
static bool is_short(double x, int digits) {
  return ag_has_digits(x, digits >= 24 ? 15 : digits == 11 ? 7 : 5);
}

static bool all_short(const rule_tensor *t, int digits) {
  for (int64_t i = 0; i < t->numel; i++)
    if (isfinite(rule_tensor_get(t, i)) && !is_short(rule_tensor_get(t, i), digits)) return false;
  return true;
}

static void move(run *r, rule_tensor *t, int digits, double by) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i), s = iso_rng_below(&r->rng, 2) ? by : -by;
    const double step = x != 0         ? ag_unit(x, digits)
                        : digits == 11 ? 0x1p-24
                                       : 0; /* float16 makes 0 of what others hold */
    if (fabs(x) < 1e30) rule_tensor_set(t, i, x + s * step);
  }
}

/* A sum of many numbers rounds often, a library's function by a unit or so, any other operator to
 * the nearest number. Noise in the operands of a power would move the power by many units, so they
 * are rounded only as the way in question says. */
static void move_result(run *r, uint32_t id, const char *op, rule_tensor *t) {
  const rule_operator *o = rule_operator_of(op);
  const double by = o->transcendental || o->accumulates ? 1 : 0.505;
  if (chk_rounds_nothing(op) || (r->rank[id] == BEFORE_POWER && !o->transcendental)) return;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i), s = iso_rng_below(&r->rng, 2) ? by : -by;
    if (x != 0 && fabs(x) < 1e30 && !is_short(x, 24)) rule_tensor_set(t, i, x + s * ag_unit(x, 24));
  }
}

/* A copy that may be written to, in float64; other kinds of numbers stay. */
static iso_code own(run *r, rule_tensor *t, rule_tensor **out) {
  rule_tensor *wide;
  iso_code c = rule_tensor_to_float64(t, &wide, r->k->err);
  if (c) return c;
  if (wide->dtype != RULE_F64) return *out = wide, ISO_OK;
  if (!(c = rule_tensor_new(RULE_F64, &wide->shape, out, r->k->err)) && wide->numel)
    memcpy((*out)->data, wide->data, (size_t)wide->numel * sizeof(double));
  rule_tensor_unref(wide);
  return c;
}

/* Whether `x` has so many decimal digits that a narrow dtype made it and nobody wrote it. */
bool ag_many_digits(double x) {
  char text[40];
  snprintf(text, sizeof text, "%.6g", x);
  return strtod(text, NULL) != x;
}

static int written_digits(const rule_term *number) {
  return ag_has_digits(number->u.f, 24) && ag_many_digits(number->u.f) ? 24 : 53;
}

/* A literal of a capture as a tensor, which the certificate makes of it. */
bool ag_is_written(const chk_term *t) {
  return !t->node && t->call && strcmp(t->call->u.s, OP_FULL) == 0 && t->call->n > 1 &&
         t->call->child[1]->kind == RULE_FLOAT;
}

static void round_to(int digits, rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!isfinite(x) || x == 0) continue;
    const double step = ag_unit(x, digits);
    rule_tensor_set(t, i, nearbyint(x / step) * step);
  }
}

/* The result of a call, as this run computes it. */
static void computed(run *r, uint32_t id, const char *op, rule_tensor *t) {
  const uint32_t i = r->steps - 1;
  if (r->how.formula) chk_by_formula(r->how.formula, t);
  if (r->how.noise) move_result(r, id, op, t);
  if (r->how.digits && i >= r->how.first && i < r->how.last) round_to(r->how.digits, t);
}

static iso_code keep(run *r, uint32_t id, rule_tensor *const *v, size_t n, const chk_term *t) {
  chk_values *to = &r->at[id];
  if (!(to->v = calloc(n + 1, sizeof *to->v))) return chk_nomem(r->k);
  for (size_t i = 0; i < n; i++) {
    iso_code c = own(r, v[i], &to->v[i]);
    if (c) return c;
    to->n = i + 1;
    if (to->v[i]->dtype != RULE_F64) continue;
    if (t->call && !ag_is_written(t)) {
      computed(r, id, t->call->u.s, to->v[i]);
      r->rounds |= !chk_rounds_nothing(t->call->u.s);
      continue;
    }
    const int digits = t->call ? written_digits(t->call->child[1]) : stored_digits(v[i]);
    if (digits == 53 || all_short(v[i], digits)) continue;
    r->stored = true;
    if (digits < r->held) r->held = digits;
    if (r->how.noise) move(r, to->v[i], digits, digits == 24 ? 1 : 0.505);
  }
  return ISO_OK;
}

static iso_code value(run *r, uint32_t id, int depth, size_t step);

static iso_code arguments(run *r, const rule_term *t, rule_tensor **bind, int depth, size_t step) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR) {
    c = value(r, (uint32_t)t->u.i, depth + 1, step);
    if (!c && !chk_settled(r->k)) bind[t->u.i] = r->at[t->u.i].n ? r->at[t->u.i].v[0] : NULL;
  }
  for (uint32_t i = 0; i < t->n && !c && !chk_settled(r->k); i++)
    c = arguments(r, t->child[i], bind, depth, step);
  return c;
}

static iso_code called(run *r, uint32_t id, int depth, size_t step) {
  enum { MOST = 512 };
  chk_state *k = r->k;
  const chk_term *t = &k->term[id];
  rule_tensor **bind = calloc(k->n_terms + 1, sizeof *bind), *out[MAX_OUT];
  size_t n = 0;
  iso_error why = {0};
  iso_code c = bind ? arguments(r, t->call, bind, depth, step) : chk_nomem(k);
  if (!c && !chk_settled(k) && ++r->steps > MOST)
    c = chk_settle(k, CHK_REFUSED, "step %zu: a constant is computed in too many steps", step);
  if (c || chk_settled(k)) {
    free(bind);
    return c;
  }
  if (rule_is_getitem(t->call->u.s)) {
    const chk_values *from =
        t->call->child[0]->kind == RULE_VAR ? &r->at[t->call->child[0]->u.i] : NULL;
    const int64_t i =
        t->call->n == 2 && t->call->child[1]->kind == RULE_INT ? t->call->child[1]->u.i : -1;
    if (!from || i < 0 || (size_t)i >= from->n)
      c = chk_settle(k, CHK_REFUSED, "step %zu: there is no such output", step);
    else out[n++] = rule_tensor_ref(from->v[i]);
  } else if ((c = k->oracle
                      ? k->oracle->call(k->oracle->ctx, t->call, bind, true, out, MAX_OUT, &n, &why)
                      : ISO_UNSUPPORTED)) {
    n = 0;
    if (c == ISO_NOMEM || c == ISO_DEVICE) c = iso_fail(k->err, c, "%s", why.msg);
    else c = chk_settle(k, CHK_REFUSED, "step %zu: a constant cannot be run in float64", step);
  }
  free(bind);
  if (!c && !chk_settled(k)) c = keep(r, id, out, n, t);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(out[i]);
  return c;
}

/* A call of the certificate's own must round nothing, else it could drift. */
static bool may_round(const chk_state *k, uint32_t id) {
  const chk_term *t = &k->term[id];
  return t->node || chk_rounds_nothing(t->call->u.s) || strcmp(t->call->u.s, OP_RECIPROCAL) == 0;
}

/* Marks the terms below powers. A call that has the value of a captured call stands for it, and is
 * marked through that one. */
static iso_code mark(run *r, uint32_t id, unsigned char rank, int depth);

static iso_code mark_arguments(run *r, const rule_term *t, unsigned char rank, int depth) {
  iso_code c = t->kind == RULE_VAR ? mark(r, (uint32_t)t->u.i, rank, depth + 1) : ISO_OK;
  for (uint32_t i = 0; i < t->n && !c; i++) c = mark_arguments(r, t->child[i], rank, depth);
  return c;
}

static iso_code mark(run *r, uint32_t id, unsigned char rank, int depth) {
  const chk_term *t = &r->k->term[id];
  if (r->rank[id] >= rank || depth > DEEPEST) return ISO_OK;
  r->rank[id] = rank;
  if (!t->call) return ISO_OK;
  if (!may_round(r->k, id)) {
    uint32_t as;
    const iso_code c = chk_captured_alike(r->k, id, &as);
    return c || chk_settled(r->k) || as == id ? c : mark(r, as, rank, depth + 1);
  }
  return mark_arguments(r, t->call, rule_operator_of(t->call->u.s)->power ? BEFORE_POWER : rank,
                        depth);
}

/* One that rounds is a captured one, with arguments that are equal to its own. */
static iso_code alike(run *r, uint32_t id, int depth, size_t step) {
  chk_state *k = r->k;
  uint32_t as;
  iso_code c = chk_captured_alike(k, id, &as);
  if (c || chk_settled(k)) return c;
  if (as == id)
    return chk_settle(
        k, CHK_REFUSED,
        "step %zu: a constant is computed by \"%s\", which rounds, and which no capture "
        "computes",
        step, k->term[id].call->u.s);
  c = value(r, as, depth + 1, step);
  if (c || chk_settled(k)) return c;
  const chk_values *from = &r->at[as];
  chk_values *to = &r->at[id];
  if (!(to->v = calloc(from->n + 1, sizeof *to->v))) return chk_nomem(k);
  for (size_t i = 0; i < from->n; i++) to->v[to->n++] = rule_tensor_ref(from->v[i]);
  return ISO_OK;
}

static iso_code as_captured(run *r, uint32_t id) {
  const chk_values *v;
  chk_values *to = &r->at[id];
  uint32_t on;
  iso_code c = chk_constant(r->k, id, 0, &v, &on);
  if (c || !v) return c;
  if (!(to->v = calloc(v->n + 1, sizeof *to->v))) return chk_nomem(r->k);
  for (size_t i = 0; i < v->n && !c; i++)
    if (!(c = own(r, v->v[i], &to->v[i]))) to->n = i + 1;
  return c;
}

static iso_code value(run *r, uint32_t id, int depth, size_t step) {
  chk_state *k = r->k;
  if (r->at[id].v || chk_settled(k)) return ISO_OK;
  if (depth > DEEPEST)
    return chk_settle(k, CHK_REFUSED, "step %zu: a constant is computed too deep", step);
  if (k->term[id].call && !may_round(k, id)) return alike(r, id, depth, step);
  if (k->term[id].call && k->term[id].node && r->how.captured) return as_captured(r, id);
  if (k->term[id].call) return called(r, id, depth, step);
  if (!k->here.konst[chk_root(k, id)].v)
    return chk_settle(k, CHK_REFUSED, "step %zu: it depends on what is no constant", step);
  rule_tensor *v = chk_captured(k, id, k->here.set);
  return keep(r, id, &v, 1, &k->term[id]);
}

iso_code ag_run(chk_state *k, uint32_t id, const ag_way *how, size_t step, ag_held *of,
                rule_tensor **out) {
  run r = {.k = k,
           .at = calloc(k->n_terms + 1, sizeof *r.at),
           .rank = calloc(k->n_terms + 1, 1),
           .how = *how,
           .rng = iso_rng_new(how->noise, id),
           .held = 53};
  *out = NULL;
  iso_code c = r.at && r.rank ? mark(&r, id, PLAIN, 0) : chk_nomem(k);
  if (!c && !chk_settled(k)) c = value(&r, id, 0, step);
  if (!c && !chk_settled(k)) {
    if (r.at[id].n == 1 && r.at[id].v[0]->dtype == RULE_F64) *out = rule_tensor_ref(r.at[id].v[0]);
    else c = chk_settle(k, CHK_REFUSED, "step %zu: it is no tensor of real numbers", step);
  }
  if (of) *of = (ag_held){r.stored, r.rounds, r.held, r.steps};
  for (size_t i = 0; r.at && i < k->n_terms; i++) {
    for (size_t j = 0; j < r.at[i].n; j++) rule_tensor_unref(r.at[i].v[j]);
    free(r.at[i].v);
  }
  free(r.at);
  free(r.rank);
  return c;
}

/* The larger one; NaN counts as unbounded. */
static double further(double a, double b) { return isnan(b) ? INFINITY : fmax(a, b); }

iso_code ag_add_spread(chk_state *k, uint32_t id, const rule_tensor *exact, size_t step,
                       double *spread) {
  double *most = calloc((size_t)exact->numel + 1, sizeof *most);
  iso_code c = most ? ISO_OK : chk_nomem(k);
  for (uint64_t n = 1; n <= RUNS && !c && !chk_settled(k); n++) {
    rule_tensor *v;
    if ((c = ag_run(k, id, &(ag_way){.noise = n}, step, NULL, &v)) || !v) break;
    for (int64_t i = 0; i < exact->numel && v->numel == exact->numel; i++)
      most[i] = further(most[i], fabs(rule_tensor_get(v, i) - rule_tensor_get(exact, i)));
    rule_tensor_unref(v);
  }
  for (int64_t i = 0; most && i < exact->numel; i++) spread[i] += most[i];
  free(most);
  return c;
}
