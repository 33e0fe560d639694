/* Bits of integers, for the symbolic prover.
 *
 * In two's complement an integer is the sum of its bits, each times its weight, and a function of
 * several integers that works bit by bit is a polynomial in their bits of degree 1 in each. So
 * every such function is a sum of conjunctions with whole coefficients,
 *
 *   x | y = x + y - (x & y),  x ^ y = x + y - 2 (x & y),  ~x = -1 - x,
 *
 * where -1, all of whose bits are set, is the conjunction of nothing. Only conjunctions of atoms
 * are left, in one order. A sum is read back as a function of bits where each assignment of bits to
 * its atoms gives 0 or 1, so that nothing is carried. */
#include "validate/ops/ops.h"

enum { MAX_ATOMS = 6, MAX_COEFFICIENT = 1 << 20, MAX_BITS = 61 };

typedef struct bits {
  int64_t of[1 << MAX_ATOMS]; /* by set of atoms */
} bits;

typedef struct atoms {
  size_t n;
  sx at[MAX_ATOMS];
} atoms;

static bool note(atoms *a, sx x, unsigned *set) {
  size_t i = 0;
  while (i < a->n && a->at[i] != x) i++;
  if (i == MAX_ATOMS) return false;
  if (i == a->n) a->at[a->n++] = x;
  *set |= 1u << i;
  return true;
}

static bool is_conjunction(const sc *c, sx x) {
  return sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_AND;
}

static bool note_all(const sc *c, sx x, atoms *a, unsigned *set) {
  for (; is_conjunction(c, x); x = sc_word(c, x, 2))
    if (!note(a, sc_word(c, x, 1), set)) return false;
  return note(a, x, set);
}

static bool is_function_of_bits(const bits *b, size_t n) {
  for (unsigned v = 0; v < 1u << n; v++) {
    int64_t bit = 0;
    for (unsigned s = 0; s < 1u << n; s++) bit += (s & v) == s ? b->of[s] : 0;
    if (bit != 0 && bit != 1) return false;
  }
  return true;
}

/* x as a polynomial in the bits of atoms. */
static bool read_sum(sc *c, sx x, atoms *a, bits *b) {
  *b = (bits){{0}};
  for (size_t i = 0, n = sx_terms(c, x); i < n; i++) {
    uint32_t q;
    int64_t k;
    sx m;
    unsigned set = 0;
    sx_term(c, x, i, &q, &m);
    if (!pv_q_is_int(&c->q, q, &k) || k > MAX_COEFFICIENT || k < -MAX_COEFFICIENT) return false;
    if (m != c->one && (!sc_has(c, m, S_INT) || !note_all(c, m, a, &set))) return false;
    b->of[set] += m == c->one ? -k : k;
  }
  return is_function_of_bits(b, a->n);
}

/* The same, or x as an atom. false: too many atoms. */
static bool read(sc *c, sx x, atoms *a, bits *b) {
  const atoms before = *a;
  unsigned set = 0;
  if (read_sum(c, x, a, b)) return true;
  *a = before;
  *b = (bits){{0}};
  if (!note(a, x, &set)) return false;
  b->of[set] = 1;
  return true;
}

bool sx_is_of_bits(sc *c, sx x, bool (*taken)(const sc *c, sx atom, rule_dtype d), rule_dtype d) {
  atoms a = {0};
  bits b;
  if (c->fault.failed || sx_terms(c, x) > 1u << MAX_ATOMS || !read_sum(c, x, &a, &b)) return false;
  for (size_t i = 0; i < a.n; i++)
    if (!taken(c, a.at[i], d)) return false;
  /* The bits above those of an unsigned integer are 0, and have to stay so. */
  return d != RULE_U8 || b.of[0] == 0;
}

static void sort(sx *x, size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && x[k - 1] > x[k]; k--) {
      const sx t = x[k];
      x[k] = x[k - 1], x[k - 1] = t;
    }
}

static sx conjunction(sc *c, const atoms *a, unsigned set) {
  sx x[MAX_ATOMS];
  size_t n = 0;
  for (size_t i = 0; i < a->n; i++)
    if (set >> i & 1) x[n++] = a->at[i];
  if (n == 0) return c->minus_one;
  sort(x, n);
  sx r = x[n - 1];
  for (size_t i = n - 1; i-- > 0;) r = sc_node(c, X_FN, (uint32_t[3]){F_AND, x[i], r}, 3);
  return r;
}

/* The lowest `k` bits of x. */
static sx lowest(sc *c, sx x, int k) {
  if (k > MAX_BITS) sc_fail(c, "some bits of an integer");
  return c->fault.failed ? c->zero : sx_mod(c, x, sx_int(c, (int64_t)1 << k));
}

/* x, of which a mask takes some bits: a low one does not see how x wrapped. */
static sx low_bits(sc *c, sx x, int64_t mask) {
  unsigned n = 0;
  if (mask < 0) return x;
  while (n < 63 && mask >> n) n++;
  return sx_unwrapped(c, x, n);
}

/* x & mask: run after run of the mask's bits. */
static sx masked(sc *c, sx x, int64_t mask) {
  if (mask < 0) return sx_sub(c, x, masked(c, x, ~mask));
  sx r = c->zero;
  for (int from = 0; from < 63 && mask >> from && !c->fault.failed;) {
    int to = from;
    while (to < 63 && mask >> to & 1) to++;
    if (to > from) r = sx_add(c, r, sx_sub(c, lowest(c, x, to), lowest(c, x, from)));
    from = to > from ? to : from + 1;
  }
  return r;
}

/* x is below 2^k and y a multiple of it: they have no bit in common. */
static bool apart(sc *c, sx x, sx y) {
  sx q;
  if (!sx_ge0(c, x)) return false;
  for (int k = MAX_BITS; k > 0; k--) {
    const sx power = sx_int(c, (int64_t)1 << k);
    if (sx_divides(c, power, y, &q) && sc_has(c, q, S_INT))
      return sx_ge0(c, sx_sub(c, sx_sub(c, power, c->one), x));
  }
  return false;
}

sx sx_bits_and(sc *c, sx x, sx y) {
  int64_t mask;
  atoms a = {0};
  bits p, q, r = {{0}};
  if (c->fault.failed) return c->zero;
  const sx g = sx_smallest_guard(c, (sx[2]){x, y}, 2);
  if (g) {
    const sx then = sx_bits_and(c, sx_cofactor(c, x, g, true), sx_cofactor(c, y, g, true));
    const sx other = sx_bits_and(c, sx_cofactor(c, x, g, false), sx_cofactor(c, y, g, false));
    return then == other ? then : sc_node(c, X_ITE, (uint32_t[3]){g, then, other}, 3);
  }
  if (!sc_has(c, x, S_INT) || !sc_has(c, y, S_INT)) sc_fail(c, "bits of what is no integer");
  if (sx_is_int(c, y, &mask)) return masked(c, low_bits(c, x, mask), mask);
  if (sx_is_int(c, x, &mask)) return masked(c, low_bits(c, y, mask), mask);
  if (apart(c, x, y) || apart(c, y, x)) return c->zero;
  const bool one = read(c, x, &a, &p);
  if (!one || !read(c, y, &a, &q)) {
    sc_fail(c, "bits of too many integers");
    return c->zero;
  }
  for (unsigned s = 0; s < 1u << a.n; s++)
    for (unsigned t = 0; t < 1u << a.n && p.of[s]; t++) r.of[s | t] += p.of[s] * q.of[t];
  sx sum = c->zero;
  for (unsigned s = 0; s < 1u << a.n && !c->fault.failed; s++)
    if (r.of[s]) sum = sx_add(c, sum, sx_mul(c, sx_int(c, r.of[s]), conjunction(c, &a, s)));
  return sum;
}
sx sx_bits_or(sc *c, sx x, sx y) { return sx_sub(c, sx_add(c, x, y), sx_bits_and(c, x, y)); }
sx sx_bits_xor(sc *c, sx x, sx y) {
  const sx both = sx_bits_and(c, x, y);
  return sx_sub(c, sx_add(c, x, y), sx_add(c, both, both));
}
sx sx_bits_not(sc *c, sx x) { return sx_sub(c, c->minus_one, x); }
