/* Expressions of the symbolic prover as numbers, and as text: for tests and for the check that
 * sizes exist. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/expr/expr_int.h"

/* ---- numbers ---- */

typedef struct numbers {
  sc *c;
  const double *sym;
  sc_draws *own; /* where a symbol that is met first is drawn; NULL: all are given */
  uint64_t salt;
  double bound[256]; /* by level */
  size_t steps,
      most; /* taken so far, and allowed: sums within sums can be longer than anyone waits */
} numbers;

enum { MAX_STEPS = 10000000 };

static double q_value(const sc *c, uint32_t q) { return pv_q_value(&c->q, q); }

static double value(numbers *m, sx x);

/* A quotient that is whole but for rounding: its factors come in the order of a normal form. */
static double whole(double a) {
  const double n = nearbyint(a);
  return fabs(a - n) <= 1e-13 * fabs(n) ? n : a;
}

static double fn_value(sx_func f, double a, double b) {
  switch (f) {
  case F_EXP: return exp(a);
  case F_LOG: return log(a);
  case F_ERF: return erf(a);
  case F_SIN: return sin(a);
  case F_COS: return cos(a);
  case F_TAN: return tan(a);
  case F_ATAN: return atan(a);
  case F_ASIN: return asin(a);
  case F_ABS: return fabs(a);
  case F_FLOOR: return floor(whole(a));
  case F_CEIL: return ceil(whole(a));
  case F_ROUND: return nearbyint(a);
  case F_TRUNC:
  case F_CAST_INT: return trunc(whole(a));
  case F_WRAP:
  case F_WRAP_I32:
  case F_WRAP_I16:
  case F_WRAP_I8:
  case F_WRAP_U8: return sx_wrapped_number(f, a);
  case F_AND: return (double)((int64_t)llround(a) & (int64_t)llround(b));
  case F_POW: return pow(a, b);
  case F_ATAN2: return atan2(a, b);
  case F_SAFE_INV: return a > 0 || a < 0 ? 1 / a : 0;
  case F_ADD: return a + b;
  case F_MUL: return a * b;
  case F_POWER: return pow(a, b);
  case F_CAST_F32: return (double)(float)a;
  default: return NAN;
  }
}

/* Sum, product or maximum over the binder's indices. */
static double binder(numbers *m, sx x, uint32_t at, uint32_t n, uint32_t base, sx_op op) {
  if (at == n) return value(m, sc_word(m->c, x, n + 1));
  const int64_t k = (int64_t)llround(value(m, sc_word(m->c, x, at + 1)));
  double r = op == X_SUM ? 0 : op == X_PROD ? 1 : -INFINITY;
  if (base + 1 + at >= 256) return NAN;
  for (int64_t i = 0; i < k && m->steps <= m->most; i++) {
    m->bound[base + 1 + at] = (double)i;
    const double v = binder(m, x, at + 1, n, base, op);
    if (op == X_SUM) r += v;
    else if (op == X_PROD) r *= v;
    else if (v > r || isnan(v)) r = v;
  }
  return r;
}

/* The place in the row of the element that `rank` others go before: larger ones, and equal ones
 * that stand before it. */
static double place(numbers *m, double rank, sx row) {
  const int64_t n = (int64_t)llround(value(m, sc_word(m->c, row, 1)));
  const uint32_t level = sc_at(m->c, sc_word(m->c, row, 2))->height + 1;
  double *v = n > 0 && n < 100000 && level < 256 ? malloc((size_t)n * sizeof *v) : NULL, r = NAN;
  for (int64_t i = 0; i < n && v; i++) {
    m->bound[level] = (double)i;
    v[i] = value(m, sc_word(m->c, row, 2));
  }
  for (int64_t i = 0; i < n && v; i++) {
    int64_t before = 0;
    for (int64_t j = 0; j < n; j++) before += v[j] > v[i] || (j < i && !(v[j] < v[i]));
    if (before == llround(rank)) r = (double)i;
  }
  free(v);
  return r;
}

static double leaf_value(numbers *m, sx x) {
  int64_t idx[RULE_MAX_RANK] = {0};
  const uint32_t n = sc_at(m->c, x)->n - 1;
  for (uint32_t i = 0; i < n; i++) idx[i] = llround(value(m, sc_word(m->c, x, i + 1)));
  return m->c->hooks.value_of
             ? m->c->hooks.value_of(m->c->hooks.value_ctx, sc_word(m->c, x, 0), idx)
             : NAN;
}

uint64_t sc_mixed(uint64_t salt, uint64_t of) {
  uint64_t h = (salt ^ of) * 0x9e3779b97f4a7c15ULL + 1442695040888963407ULL;
  h = (h ^ h >> 29) * 6364136223846793005ULL;
  return h ^ h >> 32;
}

/* A number that the symbol may have, small where it is a size. */
static double drawn(numbers *m, uint32_t at) {
  const sx_sym *s = &m->c->store.sym[at];
  const uint64_t h = sc_mixed(m->salt, at);
  const double part = (double)(h >> 11) * 0x1p-53;
  if (s->role == 'x') return s->high ? floor(part * value(m, s->high)) : NAN;
  const bool size = s->role == 's', some = (s->flags & (S_NONNEG | S_POS)) != 0;
  const double low = s->has_low ? (double)s->low : size || (s->flags & S_POS) ? 1 : some ? 0 : -3;
  if (s->flags & S_INT) return low + floor(part * (size ? 6 : 7));
  return some ? 0.1 + 2 * part : 4 * part - 2;
}

static double symbol(numbers *m, uint32_t at) {
  if (m->own && isnan(m->own->sym[at])) {
    const double v = drawn(m, at);
    if (isnan(v)) return v;
    if (isnan(m->own->sym[at])) m->own->met[m->own->n_met++] = at;
    m->own->sym[at] = v;
  }
  return m->sym[at];
}

static double value(numbers *m, sx x) {
  sc *c = m->c;
  const sx_node p = *sc_at(c, x);
  double r = 0, v;
  if (++m->steps > m->most) return NAN;
  switch ((sx_op)p.op) {
  case X_CONST: return q_value(c, sc_word(c, x, 0));
  case X_SYM:
    if (c->store.sym[sc_word(c, x, 0)].role == 'c') return sqrt(2 / acos(-1));
    return symbol(m, sc_word(c, x, 0));
  case X_BOUND: return sc_word(c, x, 0) < 256 ? m->bound[sc_word(c, x, 0)] : NAN;
  case X_ADD:
    for (uint32_t i = 0; i < p.n; i += 2)
      r += q_value(c, sc_word(c, x, i)) * value(m, sc_word(c, x, i + 1));
    return r;
  case X_MUL:
    r = 1;
    for (uint32_t i = 0; i < p.n; i += 2) {
      v = value(m, sc_word(c, x, i));
      if (sc_op(c, sc_word(c, x, i)) == X_IVER && !(v > 0))
        return 0; /* what it guards need not be defined */
      r *= pow(v, q_value(c, sc_word(c, x, i + 1)));
    }
    return r;
  case X_DIV: return floor(value(m, sc_word(c, x, 0)) / value(m, sc_word(c, x, 1)));
  case X_LEAF: return leaf_value(m, x);
  case X_FN:
    if (sc_word(c, x, 0) == F_IF)
      return value(m, sc_word(c, x, value(m, sc_word(c, x, 1)) > 0 ? 2 : 3));
    if (sc_word(c, x, 0) == F_PLACE) return place(m, value(m, sc_word(c, x, 1)), sc_word(c, x, 2));
    return fn_value((sx_func)sc_word(c, x, 0), value(m, sc_word(c, x, 1)),
                    p.n > 2 ? value(m, sc_word(c, x, 2)) : 0);
  case X_SUM:
  case X_TOP:
  case X_PROD:
    return binder(m, x, 0, sc_word(c, x, 0), sc_at(c, sc_word(c, x, sc_word(c, x, 0) + 1))->height,
                  (sx_op)p.op);
  case X_MAX:
    r = -INFINITY;
    for (uint32_t i = 0; i < p.n; i++) {
      v = value(m, sc_word(c, x, i));
      if (v > r || isnan(v)) r = v;
    }
    return r;
  case X_ITE: return value(m, sc_word(c, x, value(m, sc_word(c, x, 0)) > 0 ? 1 : 2));
  case X_LT: return value(m, sc_word(c, x, 0)) < 0;
  case X_EQ: return fabs(value(m, sc_word(c, x, 0))) < 1e-300;
  case X_TRUE: return 1;
  case X_FALSE: return 0;
  case X_NEGINF: return -INFINITY;
  case X_IVER: return value(m, sc_word(c, x, 0)) > 0;
  default: return NAN;
  }
}

double sc_number(sc *c, sx x, const double *sym) {
  numbers m = {.c = c, .sym = sym, .most = MAX_STEPS};
  return value(&m, x);
}

double sc_number_within(sc *c, sx x, const double *sym, size_t most) {
  numbers m = {.c = c, .sym = sym, .most = most};
  const double r = value(&m, x);
  c->budget.work += (int64_t)(m.steps / 64);
  return m.steps > most ? NAN : r;
}

bool sc_draw_anew(sc *c) {
  sc_draws *d = &c->draws;
  const size_t n = c->store.n_syms;
  while (d->n_met) d->sym[d->met[--d->n_met]] = NAN;
  if (n <= d->cap) return true;
  double *sym = realloc(d->sym, (n + n / 2) * sizeof *sym);
  if (sym) d->sym = sym;
  uint32_t *met = realloc(d->met, (n + n / 2) * sizeof *met);
  if (met) d->met = met;
  if (!sym || !met) return false;
  for (; d->cap < n + n / 2; d->cap++) d->sym[d->cap] = NAN;
  return true;
}

double sc_number_drawn(sc *c, sx x, uint64_t salt, size_t most) {
  numbers m = {.c = c, .sym = c->draws.sym, .own = &c->draws, .salt = salt, .most = most};
  const double r = value(&m, x);
  c->budget.work += (int64_t)(m.steps / 64);
  return m.steps > most ? NAN : r;
}

/* ---- text ---- */

/* operator: functions under their names, for a reader. */
static void show(sc *c, sx x, FILE *f, int depth) {
  static const char *const fn[] = {
      "exp",   "log",   "erf", "sin",   "cos",      "tan", "atan", "abs",  "floor", "ceil",
      "round", "trunc", "pow", "atan2", "safe_inv", "f32", "f16",  "bf16", "f8",    "f8e5m2",
      "int",   "asin",  "and", "place", "+",        "*",   "^",    "wrap", "if"};
  const sx_node p = *sc_at(c, x);
  if (depth > 20) {
    fputs("...", f);
    return;
  }
  switch ((sx_op)p.op) {
  case X_CONST: fprintf(f, "%g", q_value(c, sc_word(c, x, 0))); return;
  case X_SYM:
    fprintf(f, c->store.sym[sc_word(c, x, 0)].role == 'x' ? "%s%u" : "%s",
            c->store.sym[sc_word(c, x, 0)].name, sc_word(c, x, 0));
    return;
  case X_BOUND: fprintf(f, "$%u", sc_word(c, x, 0)); return;
  case X_NEGINF: fputs("-inf", f); return;
  case X_TRUE:
  case X_FALSE: fputs(p.op == X_TRUE ? "yes" : "no", f); return;
  case X_ADD:
  case X_MUL:
    fputc('(', f);
    for (uint32_t i = 0; i < p.n; i += 2) {
      const uint32_t q = sc_word(c, x, p.op == X_ADD ? i : i + 1),
                     t = sc_word(c, x, p.op == X_ADD ? i + 1 : i);
      if (i) fputs(p.op == X_ADD ? " + " : " * ", f);
      if (p.op == X_ADD && q != PV_ONE_Q) fprintf(f, "%g ", q_value(c, q));
      show(c, t, f, depth + 1);
      if (p.op == X_MUL && q != PV_ONE_Q) fprintf(f, "^%g", q_value(c, q));
    }
    fputc(')', f);
    return;
  case X_LEAF:
    fprintf(f, "%s[", c->r->var[sc_word(c, x, 0)].name);
    for (uint32_t i = 1; i < p.n; i++)
      fputs(i > 1 ? "," : "", f), show(c, sc_word(c, x, i), f, depth + 1);
    fputc(']', f);
    return;
  default: break;
  }
  static const char *const name[] = {
      [X_DIV] = "div",   [X_FN] = "",       [X_SUM] = "sum", [X_TOP] = "top",
      [X_MAX] = "max",   [X_ITE] = "if",    [X_LT] = "neg?", [X_EQ] = "zero?",
      [X_IVER] = "iver", [X_PROD] = "prod", [X_ROW] = "row"};
  uint32_t from = 0;
  if (p.op == X_FN && sc_word(c, x, 0) < sizeof fn / sizeof *fn)
    fputs(fn[sc_word(c, x, 0)], f), from = 1;
  else fputs(p.op < X_ROW + 1 && name[p.op] ? name[p.op] : "?", f);
  if (p.op == X_SUM || p.op == X_TOP || p.op == X_PROD || p.op == X_ROW) from = 1;
  fputc('(', f);
  for (uint32_t i = from; i < p.n; i++)
    fputs(i > from ? "; " : "", f), show(c, sc_word(c, x, i), f, depth + 1);
  fputc(')', f);
}

char *sx_print(sc *c, sx x) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  show(c, x, f, 0);
  fclose(f);
  return text;
}
