/* Polynomials over symbols, and their signs. A sign is shown by moving each symbol to one end of
 * its range: T >= 2 makes T - 1 a 1 + T', T' >= 0, and where no product is negative then, neither
 * is the sum. That is enough for the sizes of programs, and needs no search. */
#include <string.h>

#include "synth/scope/sizes.h"

/* ---- sums ---- */

size_sum size_number(int64_t x) {
  size_sum s = {.n = x != 0};
  s.of[0].by = x;
  return s;
}

static int order(const size_product *a, const size_product *b) {
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  return memcmp(a->of, b->of, a->n);
}

/* Returns: false where it does not fit. */
static bool add_product(size_sum *s, const size_product *p) {
  uint32_t at = 0;
  if (p->by == 0) return true;
  while (at < s->n && order(&s->of[at], p) < 0) at++;
  if (at < s->n && order(&s->of[at], p) == 0) {
    if (__builtin_add_overflow(s->of[at].by, p->by, &s->of[at].by)) return false;
    if (s->of[at].by != 0) return true;
    memmove(&s->of[at], &s->of[at + 1], (s->n - at - 1) * sizeof *s->of);
    s->n--;
    return true;
  }
  if (s->n == SIZE_PRODUCTS) return false;
  memmove(&s->of[at + 1], &s->of[at], (s->n - at) * sizeof *s->of);
  s->of[at] = *p;
  s->n++;
  return true;
}

static bool multiply_products(const size_product *a, const size_product *b, size_product *out) {
  uint8_t i = 0, j = 0;
  if (a->n + b->n > SIZE_DEGREE || __builtin_mul_overflow(a->by, b->by, &out->by)) return false;
  out->n = 0;
  while (i < a->n || j < b->n)
    out->of[out->n++] = j == b->n || (i < a->n && a->of[i] <= b->of[j]) ? a->of[i++] : b->of[j++];
  return true;
}

/* out = a + by * b */
static bool add_times(const size_sum *a, const size_sum *b, int64_t by, size_sum *out) {
  *out = *a;
  for (uint32_t i = 0; i < b->n; i++) {
    size_product p = b->of[i];
    if (__builtin_mul_overflow(p.by, by, &p.by) || !add_product(out, &p)) return false;
  }
  return true;
}

static bool multiply(const size_sum *a, const size_sum *b, size_sum *out) {
  size_sum x = {0};
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < b->n; j++) {
      size_product p;
      if (!multiply_products(&a->of[i], &b->of[j], &p) || !add_product(&x, &p)) return false;
    }
  *out = x;
  return true;
}

bool size_equal(const size_sum *a, const size_sum *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->of[i].by != b->of[i].by || order(&a->of[i], &b->of[i]) != 0) return false;
  return true;
}

bool size_is_number(const size_sum *a, int64_t *x) {
  *x = a->n ? a->of[0].by : 0;
  return a->n == 0 || (a->n == 1 && a->of[0].n == 0);
}

/* ---- signs ---- */

/* Atom `i` as the value at one end of its range plus or minus a number that is not negative. */
static bool moved(const size_atom *atom, uint8_t i, bool high, size_sum *out) {
  const int64_t end = high ? atom->max : atom->min;
  if (end == (high ? INT64_MAX : INT64_MIN)) return false;
  *out = size_number(end);
  return add_product(out, &(size_product){.by = high ? -1 : 1, .n = 1, .of = {i}});
}

/* Which end: the high one where all products with the atom are negative. */
static bool from_above(const size_sum *a, uint8_t atom) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->of[i].by > 0 && memchr(a->of[i].of, atom, a->of[i].n)) return false;
  return true;
}

/* A number below which the sum never is. Returns: false where nothing shows one. */
static bool least(const size_space *s, const size_sum *a, int64_t *out) {
  size_sum all = {0};
  for (uint32_t i = 0; i < a->n; i++) {
    size_sum product = size_number(a->of[i].by), factor;
    for (uint8_t k = 0; k < a->of[i].n; k++) {
      const uint8_t atom = a->of[i].of[k];
      if (!moved(&s->atom[atom], atom, from_above(a, atom), &factor)) return false;
      if (!multiply(&product, &factor, &product)) return false;
    }
    size_sum next;
    if (!add_times(&all, &product, 1, &next)) return false;
    all = next;
  }
  *out = 0;
  for (uint32_t i = 0; i < all.n; i++) {
    if (all.of[i].n == 0) *out = all.of[i].by;
    else if (all.of[i].by < 0) return false;
  }
  return true;
}

bool size_at_least(const size_space *s, const size_sum *a, const size_sum *b, int64_t by) {
  size_sum d;
  int64_t low;
  return add_times(a, b, -1, &d) && least(s, &d, &low) && low >= by;
}

/* ---- atoms ---- */

static bool add_atom(size_space *s, size_atom x, size_sum *out) {
  uint32_t i = 0;
  while (i < s->n && !rule_term_eq(s->atom[i].as, x.as)) i++;
  if (i == SIZE_ATOMS) return false;
  if (i == s->n) s->atom[s->n++] = x;
  *out = (size_sum){.n = 1, .of = {{.by = 1, .n = 1, .of = {(uint8_t)i}}}};
  return true;
}

bool size_symbol(size_space *s, const char *name, int64_t min, int64_t max, size_sum *out) {
  const rule_term *as = rule_name(s->arena, name);
  return as && add_atom(s, (size_atom){as, min, max}, out);
}

/* A term that is no polynomial: an atom by its operands. */
static bool opaque(size_space *s, const char *op, const size_sum *a, const size_sum *b, int64_t min,
                   int64_t max, size_sum *out) {
  const rule_term *of[2] = {size_term(s, a), size_term(s, b)};
  const rule_term *as = rule_expr(s->arena, op, of, 2);
  return as && add_atom(s, (size_atom){as, min, max}, out);
}

/* a // b and a % b, by a number above 0. */
static bool divide(size_space *s, const size_sum *a, const size_sum *b, bool rest, size_sum *out) {
  int64_t by, low;
  if (!size_is_number(b, &by) || by < 1) return false;
  size_sum whole = {0}, left = {0};
  for (uint32_t i = 0; i < a->n; i++) {
    size_product p = a->of[i], q = p;
    q.by = p.by / by - (p.by % by < 0);
    p.by -= q.by * by;
    if (!add_product(&whole, &q) || !add_product(&left, &p)) return false;
  }
  if (left.n == 0) return *out = rest ? left : whole, true;
  if (size_is_number(&left, &low)) return *out = rest ? left : whole, true;
  if (rest) return opaque(s, "%", &left, b, 0, by - 1, out);
  if (!least(s, &left, &low)) return false;
  size_sum part;
  low = low / by - (low % by < 0);
  return opaque(s, "//", &left, b, low, INT64_MAX, &part) && add_times(&whole, &part, 1, out);
}

static bool extreme(size_space *s, const size_sum *a, const size_sum *b, bool largest,
                    size_sum *out) {
  int64_t low_a, low_b;
  const bool above = size_at_least(s, a, b, 0);
  if (above || size_at_least(s, b, a, 0)) return *out = *(above == largest ? a : b), true;
  if (!least(s, a, &low_a) || !least(s, b, &low_b)) return false;
  const int64_t low = (low_a > low_b) == largest ? low_a : low_b;
  return opaque(s, largest ? "max" : "min", a, b, low, INT64_MAX, out);
}

/* A place in a dimension of this size, counted from the front; `bound`: and within it. */
static bool place(size_space *s, const size_sum *at, const size_sum *size, bool bound,
                  size_sum *out) {
  enum { END = 62 }; /* a place as far as that is the end, however large the dimension */
  const size_sum zero = {0};
  size_sum x = *at;
  int64_t number;
  if (size_is_number(at, &number) && number >= INT64_C(1) << END && bound)
    return *out = *size, true;
  if (size_at_least(s, &zero, at, 1)) {
    if (!add_times(at, size, 1, &x)) return false;
  } else if (!size_at_least(s, at, &zero, 0)) return false;
  if (!bound) return *out = x, true;
  return extreme(s, &x, &zero, true, &x) && extreme(s, &x, size, false, out);
}

/* ---- terms ---- */

static bool combine(size_space *s, const char *op, const size_sum *a, const size_sum *b,
                    size_sum *out) {
  size_sum x;
  bool fine = false;
  if (strcmp(op, "+") == 0) fine = add_times(a, b, 1, &x);
  else if (strcmp(op, "-") == 0) fine = add_times(a, b, -1, &x);
  else if (strcmp(op, "*") == 0) fine = multiply(a, b, &x);
  else if (strcmp(op, "//") == 0) fine = divide(s, a, b, false, &x);
  else if (strcmp(op, "%") == 0) fine = divide(s, a, b, true, &x);
  else if (strcmp(op, "min") == 0) fine = extreme(s, a, b, false, &x);
  else if (strcmp(op, "max") == 0) fine = extreme(s, a, b, true, &x);
  else if (strcmp(op, "bound") == 0) fine = place(s, a, b, true, &x);
  else if (strcmp(op, "wrap") == 0) fine = place(s, a, b, false, &x);
  if (fine) *out = x;
  return fine;
}

bool size_read(size_space *s, const rule_term *t, const size_names *names, size_sum *out) {
  size_sum x;
  if (t->kind == RULE_INT) return *out = size_number(t->u.i), true;
  if (t->kind == RULE_NAME) return names->value(names->ctx, t->u.s, out);
  if (t->kind != RULE_EXPR || t->n == 0 || !size_read(s, t->child[0], names, out)) return false;
  const size_sum zero = {0};
  if (t->n == 1) {
    x = *out;
    return t->u.s[0] == '-' && combine(s, "-", &zero, &x, out);
  }
  for (uint32_t i = 1; i < t->n; i++)
    if (!size_read(s, t->child[i], names, &x) || !combine(s, t->u.s, out, &x, out)) return false;
  return true;
}

static const rule_term *product_term(const size_space *s, const size_product *p) {
  const rule_term *of[SIZE_DEGREE + 1];
  size_t n = 0;
  if (p->by != 1 || p->n == 0) of[n++] = rule_int(s->arena, p->by);
  for (uint8_t k = 0; k < p->n; k++) of[n++] = s->atom[p->of[k]].as;
  return n == 1 ? of[0] : rule_expr(s->arena, "*", of, n);
}

const rule_term *size_term(const size_space *s, const size_sum *a) {
  const rule_term *of[SIZE_PRODUCTS];
  if (a->n == 0) return rule_int(s->arena, 0);
  for (uint32_t i = 0; i < a->n; i++) of[i] = product_term(s, &a->of[i]);
  return a->n == 1 ? of[0] : rule_expr(s->arena, "+", of, a->n);
}

bool size_is_polynomial(const size_space *s, const size_sum *a) {
  for (uint32_t i = 0; i < a->n; i++)
    for (uint8_t k = 0; k < a->of[i].n; k++)
      if (s->atom[a->of[i].of[k]].as->kind != RULE_NAME) return false;
  return true;
}
