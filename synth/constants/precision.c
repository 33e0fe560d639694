/* Constants in other precisions: in float64 all through, with some steps rounded, by another
 * formula for the same numbers, and with each rounding's error drawn. The variant that a stored
 * table agrees with tells how the table may have been computed. */
#include "synth/constants/precision.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOISE_RUNS = 8, MAX_STEPS = 400 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Tables of float8, and of no floats, are one number by number. */
static rule_dtype rounds_as(rule_dtype d) {
  return rule_dtype_is_float(d) && rule_dtype_size(d) > 1 ? d : RULE_F64;
}

static int digits(rule_dtype d) { return rule_dtype_digits(rounds_as(d)); }

/* Where numbers cancelled to 0 the larger ones were about 1. */
double pr_ulp(double x, rule_dtype dtype) {
  return rule_dtype_unit(rounds_as(dtype), x != 0 ? x : 0.5);
}

static double rounded(double x, rule_dtype dtype) { return rule_dtype_round(rounds_as(dtype), x); }

/* Few enough digits to have been written so. */
static bool is_short(double x, rule_dtype dtype) {
  const int d = dtype == RULE_F32 || dtype == RULE_F64 ? 15 : dtype == RULE_F16 ? 7 : 5;
  int exponent;
  const double m = ldexp(frexp(x, &exponent), d);
  return m == floor(m);
}

/* ---- what is given ---- */

static bool fits(const rule_tensor *t, rule_dtype dtype) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (isfinite(x) && rounded(x, dtype) != x) return false;
  }
  return true;
}

/* Numbers that use all digits of a dtype: a table that was rounded to it, and no few numbers that
 * happen to fit. */
static bool fills(const rule_tensor *t, rule_dtype dtype) {
  enum { LEAST = 8 };
  int64_t full = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (x != 0 && isfinite(x) && fmod(fabs(x) / pr_ulp(x, dtype), 2) == 1) full++;
  }
  return full >= LEAST && full >= t->numel / 4;
}

/* The dtype that held the numbers of `t` when they were rounded: its own, or a narrower one that
 * they were cast up from. */
static rule_dtype held_in(const rule_tensor *t) {
  static const rule_dtype narrower[] = {RULE_BF16, RULE_F16, RULE_F32};
  for (size_t i = 0; i < sizeof narrower / sizeof *narrower; i++) {
    if (narrower[i] == t->dtype) return t->dtype;
    if (digits(narrower[i]) < digits(t->dtype) && fits(t, narrower[i]) && fills(t, narrower[i]))
      return narrower[i];
  }
  return t->dtype;
}

static bool all_short(const rule_tensor *t, rule_dtype dtype) {
  for (int64_t i = 0; i < t->numel; i++)
    if (isfinite(rule_tensor_get(t, i)) && !is_short(rule_tensor_get(t, i), dtype)) return false;
  return true;
}

static void describe_given(const state *s, pr_step *x) {
  const rec *r = &s->rec[x->e.i];
  const rule_tensor *t = r->cval ? r->cval[0] : r->val[0];
  x->held = RULE_F64;
  if (!rule_dtype_is_float(t->dtype)) return;
  x->held = held_in(t);
  x->rounded = x->held != RULE_F64 && !all_short(t, x->held);
}

/* ---- the steps ---- */

static bool on_both_sides(const state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  bool on[2] = {false, false};
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) on[side] |= s->rec[m[i].i].node[side] >= 0;
  return on[0] && on[1];
}

static iso_code add_step(pr_cone *c, eg_node e, bool top, int32_t *out, iso_error *err);

static iso_code arguments(pr_cone *c, eg_node e, const rule_term ***out, iso_error *err);

/* An argument as a term over steps. */
static iso_code argument(pr_cone *c, eg_node e, const rule_term **out, iso_error *err) {
  state *s = c->s;
  if ((*out = st_literal(s, e))) return ISO_OK;
  if (!st_is_list(s, e)) {
    int32_t at;
    iso_code code = add_step(c, e, false, &at, err);
    return code || (*out = rule_var(&c->arena, (uint32_t)at)) ? code : nomem(err);
  }
  const rule_term **child;
  const iso_code code = arguments(c, e, &child, err);
  if (code) return code;
  return (*out = rule_list(&c->arena, child, eg_node_arity(s->g, e))) ? ISO_OK : nomem(err);
}

static iso_code arguments(pr_cone *c, eg_node e, const rule_term ***out, iso_error *err) {
  const size_t n = eg_node_arity(c->s->g, e);
  iso_code code = ISO_OK;
  if (!(*out = iso_arena_alloc(&c->arena, (n + 1) * sizeof **out))) return nomem(err);
  for (size_t k = 0; k < n && !code; k++)
    code = argument(c, (eg_node){eg_node_original(c->s->g, e, k).i}, &(*out)[k], err);
  return code;
}

/* A constant that both sides have is computed in one way: as the oldest captured call of its class
 * does; `e` if there is none. */
static eg_node computed_by(const state *s, eg_node e) {
  const eg_node *m;
  const size_t n = on_both_sides(s, e) ? eg_class_nodes(s->g, eg_class_of(s->g, e), &m) : 0;
  eg_node best = {EG_NONE};
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    if (!r->leaf && !r->multi && r->tensor && (r->node[LEFT] >= 0 || r->node[RIGHT] >= 0) &&
        m[i].i < best.i)
      best = m[i];
  }
  return best.i == EG_NONE ? e : best;
}

/* Whether `e` is a few of the numbers of a large table that is given, and nothing else: a table of
 * all positions, of which a prompt reads the first. The others say nothing of them. */
static bool is_excerpt(state *s, eg_node e) {
  enum { FEW = 16 };
  const rule_operator *o = rule_operator_of(st_operator(s, e));
  const rec *r = &s->rec[e.i];
  if (!o->moves || !(o->table || o->part) || r->multi || !r->cval) return false;
  const eg_node from = {eg_node_original(s->g, e, 0).i};
  const rec *of = st_is_list(s, from) || st_literal(s, from) ? NULL : &s->rec[from.i];
  if (!of || !of->leaf || !of->cval || of->cval[0]->numel < FEW * r->cval[0]->numel) return false;
  for (size_t k = 1; k < eg_node_arity(s->g, e); k++) {
    const eg_node at = {eg_node_original(s->g, e, k).i};
    if (st_literal(s, at)) continue;
    if (st_is_list(s, at) || !s->rec[at.i].cval || !rule_dtype_is_int(s->rec[at.i].cval[0]->dtype))
      return false;
  }
  return true;
}

static iso_code add_step(pr_cone *c, eg_node e, bool top, int32_t *out, iso_error *err) {
  enum { UNDER_WAY = -2 };
  state *s = c->s;
  if ((*out = c->at[e.i]) >= 0) return ISO_OK;
  if (c->n >= MAX_STEPS)
    return iso_fail(err, ISO_LIMIT, "a constant is computed in too many steps");
  const bool again =
      *out == UNDER_WAY; /* a relation goes the other way round: its value is given */
  const eg_node by = top || again || s->rec[e.i].multi ? e : computed_by(s, e);
  c->at[e.i] = UNDER_WAY;
  if (by.i != e.i && c->at[by.i] != UNDER_WAY) {
    iso_code code = add_step(c, by, false, out, err);
    c->at[e.i] = *out;
    return code;
  }
  pr_step x = {.e = e, .held = RULE_F64};
  x.excerpt = by.i == e.i && !again && !s->rec[e.i].leaf && is_excerpt(s, e);
  if (s->rec[e.i].leaf || again || by.i != e.i || x.excerpt) describe_given(s, &x);
  else {
    const rule_term **child;
    const iso_code code = arguments(c, e, &child, err);
    if (code) return code;
    x.call = rule_op(&c->arena, st_operator(s, e), child, eg_node_arity(s->g, e));
    if (!x.call) return nomem(err);
  }
  if (!iso_grow(c->step, c->cap, c->n + 1)) return nomem(err);
  c->pure &= !x.rounded;
  if (x.rounded && digits(x.held) < digits(c->held)) c->held = x.held;
  *out = c->at[e.i] = (int32_t)c->n;
  c->step[c->n++] = x;
  return ISO_OK;
}

static void mark_before(pr_cone *c, const rule_term *t) {
  if (t->kind == RULE_VAR) c->step[t->u.i].before_power = true;
  for (uint32_t k = 0; k < t->n; k++) mark_before(c, t->child[k]);
}

iso_code pr_cone_new(state *s, eg_node e, pr_cone *out, iso_error *err) {
  *out = (pr_cone){
      .s = s, .pure = true, .held = RULE_F64, .at = malloc((s->n_rec + 1) * sizeof *out->at)};
  iso_arena_init(&out->arena);
  if (!out->at) return nomem(err);
  for (size_t i = 0; i <= s->n_rec; i++) out->at[i] = -1;
  int32_t top;
  iso_code c = add_step(out, e, true, &top, err);
  for (size_t i = out->n; i-- > 0 && !c;)
    if (out->step[i].call &&
        (out->step[i].before_power || rule_operator_of(out->step[i].call->u.s)->power))
      mark_before(out, out->step[i].call);
  return c;
}

static void forget(pr_cone *c) {
  for (size_t i = 0; i < c->n; i++) {
    for (size_t k = 0; k < c->step[i].n; k++) rule_tensor_unref(c->step[i].v[k]);
    free(c->step[i].v);
    c->step[i].v = NULL;
    c->step[i].n = 0;
  }
}

void pr_cone_free(pr_cone *c) {
  forget(c);
  free(c->step);
  free(c->at);
  iso_arena_fini(&c->arena);
  *c = (pr_cone){0};
}

/* ---- other formulas ---- */

/* Whether `t` is a, a q, a q q, ...; in a stretch of its last dimension where all others are of
 * size 1. */
static bool geometric(const rule_tensor *t, double *a, double *q) {
  if (t->numel < 3 || t->shape.rank == 0 || t->shape.dim[t->shape.rank - 1] * 1 != t->numel)
    return false;
  *a = rule_tensor_get(t, 0);
  *q = pow(rule_tensor_get(t, t->numel - 1) / *a, 1.0 / (double)(t->numel - 1));
  if (!(*a > 0) || !(*q > 0) || *q == 1 || !isfinite(*q)) return false;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!(fabs(x - *a * pow(*q, (double)i)) <= 1e-12 * x)) return false;
  }
  return true;
}

static double single(double x) { return (double)(float)x; }

/* Element `i` of 1, q, q q, ... (n of them) as float32 gives it: frequencies of a rotary embedding,
 * base ** (-2i / 2n). */
static double progression(unsigned formula, double q, int64_t n, int64_t i) {
  const double d = 2 * (double)n, e = single(2 * (double)i / d);
  double base = exp(-log(q) * (double)n);
  if (fabs(base - nearbyint(base)) < 1e-9 * base) base = nearbyint(base);
  switch (formula) {
  case 1: return single(1 / single(pow(base, e)));
  case 2: return single(pow(base, -e));
  case 3: return single(exp(single(-e * single(log(base)))));
  default: return single(exp(single(2 * (double)i * single(-log(base) / d))));
  }
}

static void by_formula(unsigned formula, rule_tensor *t) {
  double a, q;
  if (!geometric(t, &a, &q) || (formula < PR_FORMULAS && (a != 1 || q > 1))) return;
  double power = single(a);
  for (int64_t i = 0; i < t->numel; i++) {
    rule_tensor_set(t, i, formula < PR_FORMULAS ? progression(formula, q, t->numel, i) : power);
    power = single(power * single(q));
  }
}

/* ---- running ---- */

static double sign(iso_rng *rng) { return iso_rng_below(rng, 2) ? 1 : -1; }

/* Half a unit for dtypes to which numbers are rounded once, and a whole one for float32, in which
 * tables are computed. */
static void disturb_given(const pr_step *x, rule_tensor *t, iso_rng *rng) {
  const double part = x->held == RULE_F32 ? 1 : 0.505;
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = rule_tensor_get(t, i), by = sign(rng) * part * pr_ulp(v, x->held);
    if (v != 0 && fabs(v) < 1e30) rule_tensor_set(t, i, v + by);
  }
}

static void disturb_result(double by, rule_tensor *t, iso_rng *rng) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = rule_tensor_get(t, i), move = sign(rng) * by * pr_ulp(v, RULE_F32);
    if (v != 0 && fabs(v) < 1e30 && !is_short(v, RULE_F32)) rule_tensor_set(t, i, v + move);
  }
}

static void round_result(rule_dtype dtype, rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, rounded(rule_tensor_get(t, i), dtype));
}

/* An owned copy that may be written to; other dtypes than float64 are left alone. */
static iso_code own(rule_tensor **t, bool *writable, iso_error *err) {
  rule_tensor *copy;
  *writable = (*t)->dtype == RULE_F64;
  if (!*writable) return ISO_OK;
  iso_code c = rule_tensor_new(RULE_F64, &(*t)->shape, &copy, err);
  if (c) return c;
  if ((*t)->numel) memcpy(copy->data, (*t)->data, (size_t)(*t)->numel * sizeof(double));
  rule_tensor_unref(*t);
  *t = copy;
  return ISO_OK;
}

static iso_code adjust(pr_cone *c, size_t i, const pr_how *how, iso_rng *rng, iso_error *err) {
  pr_step *x = &c->step[i];
  const bool power = x->call && rule_operator_of(x->call->u.s)->transcendental,
             rounds = x->call && st_op_rounds(x->call->u.s);
  for (size_t k = 0; k < x->n; k++) {
    bool writable;
    iso_code code = own(&x->v[k], &writable, err);
    if (code) return code;
    if (!writable) continue;
    if (how->formula && x->call) by_formula(how->formula, x->v[k]);
    if (how->noise && x->rounded) disturb_given(x, x->v[k], rng);
    if (how->noise && rounds && (power || !x->before_power))
      disturb_result(power ? 1 : 0.5, x->v[k], rng);
    if (how->rounds && x->call && i >= how->first && i < how->last)
      round_result(how->dtype, x->v[k]);
  }
  return ISO_OK;
}

static iso_code run_step(pr_cone *c, size_t i, const pr_how *how, size_t set, iso_error *err) {
  state *s = c->s;
  pr_step *x = &c->step[i];
  rule_tensor *out[MAX_OUT], **bind = calloc(i + 1, sizeof *bind);
  size_t n = 1;
  iso_code code = bind ? ISO_OK : nomem(err);
  for (size_t k = 0; k < i && !code; k++) bind[k] = c->step[k].n ? c->step[k].v[0] : NULL;
  if (!code && !x->call) {
    const bool own = x->excerpt || (s->rec[x->e.i].leaf && !on_both_sides(s, x->e));
    const eg_node rep = own ? x->e : st_rep(s, eg_class_of(s->g, x->e));
    if (!(out[0] = rule_tensor_ref(st_val(s, rep, set)))) code = st_lost(&s->values, err);
  } else if (!code && rule_is_getitem(x->call->u.s)) {
    const pr_step *from = &c->step[x->call->child[0]->u.i];
    const size_t k = (size_t)x->call->child[1]->u.i;
    if (k >= from->n) code = iso_fail(err, ISO_RANGE, "there is no such output");
    else out[0] = rule_tensor_ref(from->v[k]);
  } else if (!code)
    code = s->oracle->call(s->oracle->ctx, x->call, bind, true, out, MAX_OUT, &n, err);
  free(bind);
  if (code) return code;
  if (!(x->v = malloc((n + 1) * sizeof *x->v))) {
    for (size_t k = 0; k < n; k++) rule_tensor_unref(out[k]);
    return nomem(err);
  }
  memcpy(x->v, out, n * sizeof *out);
  x->n = n;
  iso_rng rng = iso_rng_new(s->o->seed ^ how->noise << 32, eg_class_of(s->g, x->e).i);
  return adjust(c, i, how, &rng, err);
}

iso_code pr_run(pr_cone *c, const pr_how *how, size_t set, rule_tensor **out, iso_error *err) {
  iso_code code = ISO_OK;
  forget(c);
  for (size_t i = 0; i < c->n && !code; i++) code = run_step(c, i, how, set, err);
  if (!code && (c->step[c->n - 1].n != 1 || c->step[c->n - 1].v[0]->dtype != RULE_F64))
    code = iso_fail(err, ISO_RANGE, "a constant is no tensor of numbers");
  if (!code) *out = rule_tensor_ref(c->step[c->n - 1].v[0]);
  forget(c);
  return code;
}

iso_code pr_spread(pr_cone *c, size_t set, const rule_tensor *exact, rule_tensor **out,
                   iso_error *err) {
  iso_code code = rule_tensor_new(RULE_F64, &exact->shape, out, err);
  for (uint64_t k = 1; k <= NOISE_RUNS && !code; k++) {
    rule_tensor *v;
    if ((code = pr_run(c, &(pr_how){.noise = k}, set, &v, err))) break;
    for (int64_t i = 0; i < exact->numel && v->numel == exact->numel; i++) {
      const double by = fabs(rule_tensor_get(v, i) - rule_tensor_get(exact, i));
      if (!(by <= rule_tensor_get(*out, i))) rule_tensor_set(*out, i, isnan(by) ? INFINITY : by);
    }
    rule_tensor_unref(v);
  }
  if (code) rule_tensor_unref(*out);
  return code;
}
