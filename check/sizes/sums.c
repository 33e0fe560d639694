/* Polynomials, with code of the checker's own: nothing here is the search's. */
#include "check/sizes/sums.h"

#include <string.h>

static chk_sum number(int64_t x) {
  chk_sum s = {.n = x != 0};
  s.of[0].by = x;
  return s;
}

/* Returns: false where it does not fit. */
static bool put(chk_sum *s, const chk_product *p) {
  uint32_t at = 0, degree = 0;
  for (uint32_t i = 0; i < CHK_ATOMS; i++) degree += p->power[i];
  if (p->by == 0) return true;
  if (degree > CHK_DEGREE) return false;
  while (at < s->n && memcmp(s->of[at].power, p->power, sizeof p->power) < 0) at++;
  const bool there = at < s->n && memcmp(s->of[at].power, p->power, sizeof p->power) == 0;
  if (there && __builtin_add_overflow(s->of[at].by, p->by, &s->of[at].by)) return false;
  if (there && s->of[at].by != 0) return true;
  if (!there && s->n == CHK_PRODUCTS) return false;
  if (there) memmove(&s->of[at], &s->of[at + 1], (--s->n - at) * sizeof *s->of);
  else {
    memmove(&s->of[at + 1], &s->of[at], (s->n++ - at) * sizeof *s->of);
    s->of[at] = *p;
  }
  return true;
}

static bool plus(const chk_sum *a, const chk_sum *b, int64_t by, chk_sum *out) {
  chk_sum x = *a;
  for (uint32_t i = 0; i < b->n; i++) {
    chk_product p = b->of[i];
    if (__builtin_mul_overflow(p.by, by, &p.by) || !put(&x, &p)) return false;
  }
  *out = x;
  return true;
}

bool chk_sum_times(const chk_sum *a, const chk_sum *b, chk_sum *out) {
  chk_sum x = {0};
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < b->n; j++) {
      chk_product p = a->of[i];
      if (__builtin_mul_overflow(p.by, b->of[j].by, &p.by)) return false;
      for (uint32_t k = 0; k < CHK_ATOMS; k++) p.power[k] += b->of[j].power[k];
      if (!put(&x, &p)) return false;
    }
  *out = x;
  return true;
}

bool chk_sum_equal(const chk_sum *a, const chk_sum *b) {
  bool same = a->n == b->n;
  for (uint32_t i = 0; i < a->n && same; i++)
    same = a->of[i].by == b->of[i].by &&
           memcmp(a->of[i].power, b->of[i].power, sizeof a->of[i].power) == 0;
  return same;
}

static bool is_constant(const chk_product *p) {
  for (uint32_t i = 0; i < CHK_ATOMS; i++)
    if (p->power[i]) return false;
  return true;
}

bool chk_sum_is_number(const chk_sum *a, int64_t *out) {
  *out = a->n ? a->of[0].by : 0;
  return a->n == 0 || (a->n == 1 && is_constant(&a->of[0]));
}

/* ---- signs ---- */

/* Whether an atom stands only where it makes the sum less. */
static bool lowers(const chk_sum *a, uint32_t atom) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->of[i].power[atom] && a->of[i].by > 0) return false;
  return true;
}

/* With each atom as one end of its range and a number that is not negative, a sum without negative
 * products is no less than its constant. Returns: false where that shows nothing. */
static bool least(const chk_atoms *x, const chk_sum *a, int64_t *out) {
  chk_sum all = {0};
  for (uint32_t i = 0; i < a->n; i++) {
    chk_sum product = number(a->of[i].by);
    for (uint32_t k = 0; k < CHK_ATOMS; k++) {
      if (!a->of[i].power[k]) continue;
      const bool high = lowers(a, k);
      const int64_t end = high ? x->of[k].max : x->of[k].min;
      chk_product rest = {.by = high ? -1 : 1};
      chk_sum moved = number(end);
      rest.power[k] = 1;
      if (end == (high ? INT64_MAX : INT64_MIN) || !put(&moved, &rest)) return false;
      for (uint8_t n = 0; n < a->of[i].power[k]; n++)
        if (!chk_sum_times(&product, &moved, &product)) return false;
    }
    if (!plus(&all, &product, 1, &all)) return false;
  }
  *out = 0;
  for (uint32_t i = 0; i < all.n; i++) {
    if (is_constant(&all.of[i])) *out = all.of[i].by;
    else if (all.of[i].by < 0) return false;
  }
  return true;
}

bool chk_sum_at_least(const chk_atoms *x, const chk_sum *a, const chk_sum *b, int64_t by) {
  chk_sum d;
  int64_t low;
  return plus(a, b, -1, &d) && least(x, &d, &low) && low >= by;
}

/* ---- atoms ---- */

static bool same_atom(const chk_atom *a, const chk_atom *b) {
  if (a->name || b->name) return a->name && b->name && strcmp(a->name, b->name) == 0;
  return a->op == b->op && chk_sum_equal(&a->a, &b->a) && chk_sum_equal(&a->b, &b->b);
}

static bool atom(chk_atoms *x, const chk_atom *which, chk_sum *out) {
  uint32_t i = 0;
  while (i < x->n && !same_atom(&x->of[i], which)) i++;
  if (i == CHK_ATOMS) return false;
  if (i == x->n) x->of[x->n++] = *which;
  *out = (chk_sum){.n = 1, .of = {{.by = 1}}};
  out->of[0].power[i] = 1;
  return true;
}

bool chk_atom_symbol(chk_atoms *x, const char *name, int64_t min, int64_t max, chk_sum *out) {
  const chk_atom a = {.name = name, .min = min, .max = max};
  return atom(x, &a, out);
}

static int64_t down(int64_t a, int64_t b) { return a / b - (a % b < 0); } /* b > 0 */

/* a // b or a % b. The terms of `a` that `b` divides at all sizes are taken out first, so that (2*T
 * + 2) // 2 is T + 1. */
static bool divided(chk_atoms *x, char op, const chk_sum *a, const chk_sum *b, chk_sum *out) {
  chk_atom as = {.op = op, .b = *b, .min = 0, .max = INT64_MAX};
  chk_sum whole = {0};
  int64_t by, low, rest;
  if (!chk_sum_is_number(b, &by) || by < 1) return false;
  for (uint32_t i = 0; i < a->n; i++) {
    chk_product p = a->of[i], q = a->of[i];
    q.by = down(p.by, by);
    p.by -= q.by * by;
    if (!put(&whole, &q) || !put(&as.a, &p)) return false;
  }
  if (chk_sum_is_number(&as.a, &rest)) return *out = op == '%' ? as.a : whole, true;
  if (op == '%') return as.max = by - 1, atom(x, &as, out);
  if (!least(x, &as.a, &low)) return false;
  as.min = down(low, by);
  return atom(x, &as, out) && plus(&whole, out, 1, out);
}

static bool extreme(chk_atoms *x, char op, const chk_sum *a, const chk_sum *b, chk_sum *out) {
  chk_atom as = {.op = op, .a = *a, .b = *b, .max = INT64_MAX};
  int64_t p, q;
  if (chk_sum_at_least(x, a, b, 0)) return *out = *(op == '>' ? a : b), true;
  if (chk_sum_at_least(x, b, a, 0)) return *out = *(op == '>' ? b : a), true;
  if (!least(x, a, &p) || !least(x, b, &q)) return false;
  as.min = op == '>' ? (p > q ? p : q) : (p < q ? p : q);
  return atom(x, &as, out);
}

/* A place in a dimension, from the front; `within` it. */
static bool place(chk_atoms *x, const chk_sum *at, const chk_sum *size, bool within, chk_sum *out) {
  const int64_t end = INT64_C(1) << 62; /* as far as that is the end of any dimension */
  const chk_sum zero = {0};
  int64_t n;
  chk_sum p = *at;
  if (within && chk_sum_is_number(at, &n) && n >= end) return *out = *size, true;
  if (!chk_sum_at_least(x, at, &zero, 0) &&
      !(chk_sum_at_least(x, &zero, at, 1) && plus(at, size, 1, &p)))
    return false;
  if (!within) return *out = p, true;
  return extreme(x, '>', &p, &zero, &p) && extreme(x, '<', &p, size, out);
}

/* ---- terms ---- */

static bool combined(chk_atoms *x, const char *op, const chk_sum *a, const chk_sum *b,
                     chk_sum *out) {
  if (strcmp(op, "+") == 0) return plus(a, b, 1, out);
  if (strcmp(op, "-") == 0) return plus(a, b, -1, out);
  if (strcmp(op, "*") == 0) return chk_sum_times(a, b, out);
  if (strcmp(op, "//") == 0) return divided(x, '/', a, b, out);
  if (strcmp(op, "%") == 0) return divided(x, '%', a, b, out);
  if (strcmp(op, "min") == 0) return extreme(x, '<', a, b, out);
  if (strcmp(op, "max") == 0) return extreme(x, '>', a, b, out);
  if (strcmp(op, "bound") == 0) return place(x, a, b, true, out);
  return strcmp(op, "wrap") == 0 && place(x, a, b, false, out);
}

bool chk_sum_read(chk_atoms *x, const rule_term *t, const chk_meaning *names, chk_sum *out) {
  if (t->kind == RULE_INT) return *out = number(t->u.i), true;
  if (t->kind == RULE_NAME) {
    const chk_sum *known = names->of(names->ctx, t->u.s);
    if (known) *out = *known;
    return known != NULL;
  }
  chk_sum all, next;
  const chk_sum zero = {0};
  if (t->kind != RULE_EXPR || t->n == 0 || !chk_sum_read(x, t->child[0], names, &all)) return false;
  if (t->n == 1) return strcmp(t->u.s, "-") == 0 && plus(&zero, &all, -1, out);
  for (uint32_t i = 1; i < t->n; i++) {
    const chk_sum before = all;
    if (!chk_sum_read(x, t->child[i], names, &next) || !combined(x, t->u.s, &before, &next, &all))
      return false;
  }
  *out = all;
  return true;
}

static bool atom_at(const chk_atoms *x, uint32_t i, const int64_t *value, int64_t *out) {
  const chk_atom *a = &x->of[i];
  int64_t p, q;
  if (a->name) return *out = value[i], true;
  if (!chk_sum_at(x, &a->a, value, &p) || !chk_sum_at(x, &a->b, value, &q)) return false;
  if (a->op == '<' || a->op == '>') return *out = (p < q) == (a->op == '<') ? p : q, true;
  if (q < 1) return false;
  *out = a->op == '/' ? down(p, q) : p - q * down(p, q);
  return true;
}

bool chk_sum_at(const chk_atoms *x, const chk_sum *a, const int64_t *value, int64_t *out) {
  int64_t all = 0, factor;
  for (uint32_t i = 0; i < a->n; i++) {
    int64_t product = a->of[i].by;
    for (uint32_t k = 0; k < CHK_ATOMS; k++)
      for (uint8_t n = 0; n < a->of[i].power[k]; n++)
        if (!atom_at(x, k, value, &factor) || __builtin_mul_overflow(product, factor, &product))
          return false;
    if (__builtin_add_overflow(all, product, &all)) return false;
  }
  *out = all;
  return true;
}

const rule_term *chk_sum_term(const chk_atoms *x, const chk_sum *a, iso_arena *arena) {
  const rule_term *of[CHK_PRODUCTS];
  if (a->n == 0) return rule_int(arena, 0);
  for (uint32_t i = 0; i < a->n; i++) {
    const rule_term *factor[CHK_DEGREE + 1];
    uint32_t n = 0;
    if (a->of[i].by != 1 || is_constant(&a->of[i])) factor[n++] = rule_int(arena, a->of[i].by);
    for (uint32_t k = 0; k < CHK_ATOMS; k++) {
      if (a->of[i].power[k] && !x->of[k].name) return NULL;
      for (uint8_t m = 0; m < a->of[i].power[k]; m++) factor[n++] = rule_name(arena, x->of[k].name);
    }
    of[i] = n == 1 ? factor[0] : rule_expr(arena, "*", factor, n);
  }
  return a->n == 1 ? of[0] : rule_expr(arena, "+", of, a->n);
}
