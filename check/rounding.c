/* Two constants that are taken to be one although rounding tells them apart. Nothing of the
 * search's reasons is believed: both are computed again in float64 from what was captured, and over
 * again with each stored number and each result moved by a unit in the last place. Where nothing is
 * stored in few digits they must agree in float64, else to what that moves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "check/value_int.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "egraph/base/rng.h"

enum { RUNS = 8 };

/* How a constant may have been computed where it was stored. All zero: in float64. */
typedef struct way {
  uint64_t noise;   /* 0: none */
  unsigned formula; /* 1 to CHK_FORMULAS: progressions are computed by it */
  int digits;       /* that results of calls first <= i < last are rounded to, in their order */
  uint32_t first, last;
} way;

/* The values of the terms below one, on one run. */
typedef struct run {
  chk_state *k;
  chk_values *at; /* by term */
  way how;
  iso_rng rng;
  int held;    /* in how few digits anything below is stored */
  bool stored; /* something below is stored in few digits */
  uint32_t steps;
} run;

static double unit(double x, int digits) {
  int exponent;
  frexp(x, &exponent);
  const int least = digits == 11   ? -13
                    : digits == 53 ? -1021
                                   : -125; /* below, numbers have fewer digits */
  return ldexp(1, (exponent < least ? least : exponent) - digits);
}

static int digits_of(rule_dtype d) {
  return d == RULE_F32 ? 24 : d == RULE_F16 ? 11 : d == RULE_BF16 ? 8 : 53;
}

static bool has_digits(double x, int digits) {
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
      fits = has_digits(rule_tensor_get(t, e), d);
      uses |= !has_digits(rule_tensor_get(t, e), d - 1);
    }
    if (fits && uses) return d;
  }
  return digits_of(t->dtype);
}

static bool is_exact(const rule_tensor *t, int digits) {
  for (int64_t i = 0; i < t->numel; i++)
    if (isfinite(rule_tensor_get(t, i)) && !has_digits(rule_tensor_get(t, i), digits == 24   ? 15
                                                                              : digits == 11 ? 7
                                                                                             : 5))
      return false;
  return true;
}

static void move(run *r, rule_tensor *t, int digits, double by) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i), s = iso_rng_below(&r->rng, 2) ? by : -by;
    const double step = x != 0         ? unit(x, digits)
                        : digits == 11 ? 0x1p-24
                                       : 0; /* float16 makes 0 of what others hold */
    if (fabs(x) < 1e30) rule_tensor_set(t, i, x + s * step);
  }
}

/* Exponents and their bases may be rounded before the power is taken: by as many units as its
 * logarithm has. */
static void move_power(run *r, rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i), s = iso_rng_below(&r->rng, 2) ? 1 : -1;
    if (x > 0 && x < 1e30) rule_tensor_set(t, i, x + s * x * fabs(log(x)) * 0x1p-24);
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

/* A number that a narrow dtype made, and nobody would write. */
static bool many_digits(double x) {
  char text[40];
  snprintf(text, sizeof text, "%.6g", x);
  return strtod(text, NULL) != x;
}

static int written_digits(const rule_term *number) {
  return has_digits(number->u.f, 24) && many_digits(number->u.f) ? 24 : 53;
}

/* A literal of a capture as a tensor, which the certificate makes of it. */
static bool is_written(const chk_term *t) {
  return !t->node && t->call && strcmp(t->call->u.s, OP_FULL) == 0 && t->call->n > 1 &&
         t->call->child[1]->kind == RULE_FLOAT;
}

static void round_to(int digits, rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!isfinite(x) || x == 0) continue;
    const double step = unit(x, digits);
    rule_tensor_set(t, i, nearbyint(x / step) * step);
  }
}

/* The result of a call, as this run computes it. */
static void computed(run *r, const char *op, rule_tensor *t) {
  const uint32_t i = r->steps - 1;
  if (r->how.formula) chk_by_formula(r->how.formula, t);
  if (r->how.noise && !chk_rounds_nothing(op)) move(r, t, 24, 1);
  if (r->how.noise && rule_is_overload(op, OP_POW)) move_power(r, t);
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
    if (t->call && !is_written(t)) {
      computed(r, t->call->u.s, to->v[i]);
      continue;
    }
    const int digits = t->call ? written_digits(t->call->child[1]) : stored_digits(v[i]);
    if (digits == 53 || is_exact(v[i], digits)) continue;
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

static iso_code value(run *r, uint32_t id, int depth, size_t step) {
  enum { DEEPEST = 500 };
  chk_state *k = r->k;
  if (r->at[id].v || chk_settled(k)) return ISO_OK;
  if (depth > DEEPEST)
    return chk_settle(k, CHK_REFUSED, "step %zu: a constant is computed too deep", step);
  if (k->term[id].call && !may_round(k, id)) return alike(r, id, depth, step);
  if (k->term[id].call) return called(r, id, depth, step);
  if (!k->here.konst[chk_root(k, id)].v)
    return chk_settle(k, CHK_REFUSED, "step %zu: it depends on what is no constant", step);
  rule_tensor *v = chk_captured(k, id, k->here.set);
  return keep(r, id, &v, 1, &k->term[id]);
}

/* Facts of a constant beside its value. */
typedef struct held {
  bool stored;    /* something below is stored in few digits, */
  int digits;     /* this few */
  uint32_t calls; /* that it takes */
} held;

/* Term `id`, computed so. Owns: the caller unrefs; NULL in `out`: it has none (settled). */
static iso_code run_once(chk_state *k, uint32_t id, const way *how, size_t step, held *of,
                         rule_tensor **out) {
  run r = {.k = k,
           .at = calloc(k->n_terms + 1, sizeof *r.at),
           .how = *how,
           .rng = iso_rng_new(how->noise, id),
           .held = 53};
  *out = NULL;
  iso_code c = r.at ? value(&r, id, 0, step) : chk_nomem(k);
  if (!c && !chk_settled(k)) {
    if (r.at[id].n == 1 && r.at[id].v[0]->dtype == RULE_F64) *out = rule_tensor_ref(r.at[id].v[0]);
    else c = chk_settle(k, CHK_REFUSED, "step %zu: it is no tensor of real numbers", step);
  }
  if (of) *of = (held){r.stored, r.held, r.steps};
  for (size_t i = 0; r.at && i < k->n_terms; i++) {
    for (size_t j = 0; j < r.at[i].n; j++) rule_tensor_unref(r.at[i].v[j]);
    free(r.at[i].v);
  }
  free(r.at);
  return c;
}

/* The larger one; what is no number is without bound. */
static double further(double a, double b) { return isnan(b) ? INFINITY : fmax(a, b); }

/* How far the elements of `id` move, added to `spread`. */
static iso_code add_spread(chk_state *k, uint32_t id, const rule_tensor *exact, size_t step,
                           double *spread) {
  double *most = calloc((size_t)exact->numel + 1, sizeof *most);
  iso_code c = most ? ISO_OK : chk_nomem(k);
  for (uint64_t n = 1; n <= RUNS && !c && !chk_settled(k); n++) {
    rule_tensor *v;
    if ((c = run_once(k, id, &(way){.noise = n}, step, NULL, &v)) || !v) break;
    for (int64_t i = 0; i < exact->numel && v->numel == exact->numel; i++)
      most[i] = further(most[i], fabs(rule_tensor_get(v, i) - rule_tensor_get(exact, i)));
    rule_tensor_unref(v);
  }
  for (int64_t i = 0; most && i < exact->numel; i++) spread[i] += most[i];
  free(most);
  return c;
}

/* Each element is held by its own size, since a large one excuses no other. */
static bool agree(const rule_tensor *a, const rule_tensor *b, const double *spread, bool stored) {
  const double times = stored ? 1.25 : 0x1p-24;
  double most = 0;
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i)) < 1e30) most = fmax(most, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    const double size = fmax(fmax(fabs(x), fabs(y)), fmin(most, 1));
    if (x == y) continue;
    if (!isfinite(spread[i]) || !isfinite(size))
      return false; /* what moves without bound explains nothing */
    if (!(fabs(x - y) <= times * spread[i] + 1e-14 * size)) return false;
  }
  return true;
}

/* A captured call, and the same one with literals of more digits, which a narrow dtype makes those
 * of. */
static bool rounded_literals(const rule_term *a, const rule_term *b, size_t *n) {
  if (a->kind == RULE_FLOAT && b->kind == RULE_FLOAT && a->u.f != b->u.f) {
    const double by = fabs(a->u.f - b->u.f);
    ++*n;
    const int digits = has_digits(a->u.f, 8) ? 8 : has_digits(a->u.f, 11) ? 11 : 24;
    return has_digits(a->u.f, digits) && by <= 0.505 * unit(a->u.f, digits) && many_digits(a->u.f);
  }
  if (a->kind != b->kind || a->n != b->n || (a->kind != RULE_OP && a->kind != RULE_LIST))
    return rule_term_eq(a, b);
  if (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!rounded_literals(a->child[i], b->child[i], n)) return false;
  return true;
}

static iso_code say(chk_state *k, uint32_t a, uint32_t b) {
  int room[2] = {64, 64};
  const char *x = chk_spelled(k, a, &room[0]), *y = chk_spelled(k, b, &room[1]);
  return !x || !y
             ? chk_nomem(k)
             : chk_assume(k, RULE_ASSUMES_ROUNDING,
                          iso_arena_printf(k->arena, "%s and %s are one but for rounding", x, y));
}

/* Two constants, and what is known of them in float64. */
typedef struct two {
  uint32_t id[2];
  rule_tensor *v[2];
  held of[2];
  double *spread; /* by element, of both together */
  size_t step;
} two;

/* Whether constant `side`, computed so, is the other one. */
static iso_code try_way(chk_state *k, const two *x, int side, const way *how, bool *same) {
  rule_tensor *v;
  iso_code c = run_once(k, x->id[side], how, x->step, NULL, &v);
  if (!c && v && v->numel == x->v[!side]->numel) *same = agree(v, x->v[!side], x->spread, true);
  rule_tensor_unref(v);
  return c;
}

/* The last calls of it, or the first ones, rounded to so many digits. */
static iso_code try_rounded(chk_state *k, const two *x, int side, unsigned formula, int digits,
                            bool *same) {
  const uint32_t n = x->of[side].calls;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < n && !c && !*same && !chk_settled(k); i++) {
    c = try_way(k, x, side, &(way){0, formula, digits, i, n}, same);
    if (!c && !*same && !formula) c = try_way(k, x, side, &(way){0, 0, digits, 0, i}, same);
  }
  return c;
}

/* Whether `side` computes what the other side stored: by another formula, or with some of its steps
 * in float32 or in the dtype that it was stored in. */
static iso_code try_ways(chk_state *k, const two *x, int side, bool *same) {
  const int digits = x->of[!side].digits;
  iso_code c = ISO_OK;
  if (!x->of[!side].stored) return ISO_OK;
  for (unsigned f = 1; f <= CHK_FORMULAS && !c && !*same && !chk_settled(k); f++)
    c = try_way(k, x, side, &(way){.formula = f}, same);
  for (unsigned f = 0; f <= CHK_FORMULAS && !c && !*same; f++)
    c = try_rounded(k, x, side, f, 24, same);
  return c || *same || digits >= 24 ? c : try_rounded(k, x, side, 0, digits, same);
}

static iso_code look_at(chk_state *k, two *x) {
  iso_code c = ISO_OK;
  for (int i = 0; i < 2 && !c && !chk_settled(k); i++)
    c = run_once(k, x->id[i], &(way){0}, x->step, &x->of[i], &x->v[i]);
  if (c || chk_settled(k)) return c;
  if (!rule_shape_eq(&x->v[0]->shape, &x->v[1]->shape))
    return chk_settle(k, CHK_REFUSED, "step %zu: they have different shapes", x->step);
  if (!(x->spread = calloc((size_t)x->v[0]->numel + 1, sizeof *x->spread))) return chk_nomem(k);
  for (int i = 0; i < 2 && !c && !chk_settled(k); i++)
    c = add_spread(k, x->id[i], x->v[i], x->step, x->spread);
  return c;
}

static iso_code same_constants(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  two x = {.id = {a, b}, .step = step};
  iso_code c = look_at(k, &x);
  bool same =
      c || chk_settled(k) || agree(x.v[0], x.v[1], x.spread, x.of[0].stored || x.of[1].stored);
  for (int side = 0; side < 2 && !same && !c && !chk_settled(k); side++)
    c = try_ways(k, &x, side, &same);
  if (!c && !chk_settled(k) && same) c = chk_zeros_joined(k, a, x.v[0], x.v[1]);
  if (!c && !chk_settled(k) && !same)
    c = chk_settle(k, CHK_REFUSED, "step %zu: the constants differ by more than rounding", step);
  free(x.spread);
  rule_tensor_unref(x.v[0]);
  rule_tensor_unref(x.v[1]);
  return c;
}

/* Their class has the value of one that was captured. A number that a call writes is captured with
 * all of its digits, and the call is run with these. */
static iso_code share_value(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const bool wrote = is_written(&k->term[a]) || is_written(&k->term[b]),
             first = wrote ? is_written(&k->term[a]) : k->term[a].node || !k->term[b].node;
  const chk_values *v;
  uint32_t on;
  iso_code c = chk_constant(k, first ? a : b, 0, &v, &on);
  if (!c && !v && !chk_settled(k))
    c = chk_settle(k, CHK_REFUSED, "step %zu: it is no constant", step);
  const uint32_t root = chk_root(k, first ? b : a);
  if (!c && v && wrote && root != chk_root(k, first ? a : b)) chk_drop_values(&k->here.konst[root]);
  return c;
}

iso_code chk_rounded(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  k->used.rounded = true;
  const chk_term *p = &k->term[a], *q = &k->term[b];
  size_t n = 0;
  if (p->node && p->call && q->call && !q->node && rounded_literals(p->call, q->call, &n) && n)
    return say(k, a, b);
  iso_code c = same_constants(k, a, b, step);
  if (c || chk_settled(k)) return c;
  if (!p->node && !q->node)
    return chk_settle(k, CHK_REFUSED, "step %zu: neither of the constants was captured", step);
  c = share_value(k, a, b, step);
  return c || chk_settled(k) ? c : say(k, a, b);
}
