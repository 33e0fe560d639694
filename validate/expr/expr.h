/* Expressions: one per tensor, at one generic index, hash-consed and in normal form.
 *
 * A tensor is its sizes (polynomials over size names) and a way to give its element at an index
 * (expressions again). Both sides of a rule are asked for their element at the same fresh index
 * symbols; equal ids are equal functions.
 *
 * Normal form. Numbers are polynomials: sums of rational * monomial, a monomial being powers
 * (rational exponents) of atoms: symbols, elements of variables, functions, sums over an index
 * (binders), floor division and remainder of indices. Sums over an index are linear, factors that
 * do not depend on the index move outside, nested sums are one block, split into connected parts;
 * the ranges are cut where a condition on the index changes and where an index is taken apart by
 * division. Conditions move outside of everything, as a decision diagram ordered by id (X_ITE);
 * inside a sum, a condition that cannot be cut out becomes a factor that is 0 or 1 (X_IVER). Bound
 * indices are numbered by height, so that binders are equal up to renaming; of the orders of a
 * block the one with the least hash is taken.
 *
 * Soundness. Every constructor returns an expression that has the value of its operation on its
 * arguments wherever these are defined. A rule speaks of values for which both sides and all their
 * parts are defined, so x * (1/x) is 1 and sqrt(x)^2 is x. An operation that is not modelled calls
 * sc_fail, which sticks: the rule is then unknown. */
#ifndef VALIDATE_EXPR_H
#define VALIDATE_EXPR_H

#include "validate/expr/context.h"

/* ---- expressions (node.c, polynomial.c, power.c, divide.c, fn.c) ---- */

/* The number of a new walk; whether that walk comes to `x` for the first time, as far as it knows:
 * a walk within it may forget for it. */
static inline uint32_t sc_walk_start(const sc *c) { return ++c->budget.walk->stamp; }
static inline bool sc_walk_first(const sc *c, sx x, uint32_t walk) {
  if (c->store.node[x].seen == walk) return false;
  c->budget.walk->visited++;
  c->store.node[x].seen = walk;
  return true;
}

/* The memory that a proof writes first, kept for the next one: mapping it anew and its first pages
 * cost as much as a small proof. NULL: no memory. */
struct sc_scratch *sc_scratch_new(void);
void sc_scratch_free(struct sc_scratch *x);
bool sc_init(sc *c, const rule *r, rule_schemas *s, const val_options *o); /* false: no memory */
void sc_fini(sc *c);
void sc_fail(sc *c, const char *fmt, ...) ISO_PRINTF(2, 3); /* the first reason stays */
bool sc_work(sc *c, size_t n);
sx sc_node(sc *c, sx_op op, const uint32_t *w, size_t n); /* interned as it is */
sx sc_symbol(sc *c, const char *name, char role, unsigned flags);
sx sc_unknown(sc *c,
              const char *name); /* a real number of which nothing is known; `name` is copied */
sx sc_derived(sc *c, const char *name, sx of,
              int64_t low);  /* an integer of at least `low`; the same one each time */
sx sc_index(sc *c, sx high); /* a fresh one in [0, high); 0 where high is 1 */
sx sc_symbol_named(sc *c, const char *name); /* a positive real constant of that name */

static inline const sx_node *sc_at(const sc *c, sx x) { return &c->store.node[x]; }
static inline sx_op sc_op(const sc *c, sx x) { return (sx_op)c->store.node[x].op; }
static inline unsigned sc_flags(const sc *c, sx x) { return c->store.node[x].flags; }
static inline uint32_t sc_word(const sc *c, sx x, size_t i) {
  return c->store.word[c->store.node[x].off + i];
}
static inline bool sc_has(const sc *c, sx x, unsigned flags) {
  return (c->store.node[x].flags & flags) == flags;
}

/* Whether word i of a node of `op` is an expression. */
static inline bool sx_is_child(sx_op op, size_t i) {
  switch (op) {
  case X_CONST:
  case X_SYM:
  case X_BOUND: return false;
  case X_ADD: return i & 1;
  case X_MUL: return !(i & 1);
  case X_LEAF:
  case X_FN:
  case X_SUM:
  case X_TOP:
  case X_PROD:
  case X_ROW: return i > 0;
  default: return true;
  }
}

sx sx_q(sc *c, uint32_t q);
sx sx_int(sc *c, int64_t i);
sx sx_double(sc *c, double f);                   /* exact */
bool sx_is_int(const sc *c, sx x, int64_t *out); /* an integer constant */
bool sx_is_q(const sc *c, sx x, uint32_t *q);
sx sx_add(sc *c, sx a, sx b);
sx sx_sub(sc *c, sx a, sx b);
sx sx_neg(sc *c, sx a);
sx sx_scale(sc *c, uint32_t q, sx a);
sx sx_addn(sc *c, const sx *a, size_t n);
sx sx_mul(sc *c, sx a, sx b);
sx sx_mul3(sc *c, sx a, sx b, sx d);
sx sx_pow(sc *c, sx a, uint32_t q);
sx sx_powi(sc *c, sx a, int64_t k);
sx sx_inv(sc *c, sx a);
sx sx_sqrt(sc *c, sx a);
sx sx_fn(sc *c, sx_func f, sx a);
sx sx_fn2(sc *c, sx_func f, sx a, sx b);
sx sx_exp(sc *c, sx a);
sx sx_log(sc *c, sx a);
sx sx_abs(sc *c, sx a);
sx sx_max(sc *c, sx a, sx b);
sx sx_min(sc *c, sx a, sx b);
sx sx_leaf(sc *c, uint32_t var, const sx *idx, uint32_t n);
sx sx_wrap(sc *c, sx x, rule_dtype d); /* an integer as `d` holds it (wrap.c) */
/* x where the condition holds, or where it does not: what is known there may say that x fits. */
sx sx_wrapped_where(sc *c, sx cond, bool holds, sx x);
bool sx_within(sc *c, sx x, double most); /* whether |x| is seen to be smaller */
/* One that is x modulo 2^bits, as it was before it wrapped, in that many bits or more. */
sx sx_unwrapped(sc *c, sx x, unsigned bits);
bool sx_is_wrap(sx_func f);
double sx_wrapped_number(sx_func f, double x); /* NaN where a double does not tell */
/* The bounds [low, high) of an element of a narrow integer variable, or of a value wrapped to few
 * bits. false: x is neither. */
bool sx_narrow_bounds(sc *c, sx x, sx *low, sx *high);
/* A value wrapped to fewer than 64 bits as the remainder that it is; x where it is none. */
sx sx_wrap_written_out(sc *c, sx x);
sx sx_of_equal_size(sc *c, sx x);  /* x, or -x where only x is a wrap: a number of the same size */
sx sx_bits_and(sc *c, sx x, sx y); /* of integers, bit by bit (bits.c) */
sx sx_bits_or(sc *c, sx x, sx y);
sx sx_bits_xor(sc *c, sx x, sx y);
sx sx_bits_not(sc *c, sx x);
/* Whether x is a function, bit by bit, of integers that are `taken` for integers of type d: it is
 * one, too. */
bool sx_is_of_bits(sc *c, sx x, bool (*taken)(const sc *c, sx atom, rule_dtype d), rule_dtype d);
/* Terms of a polynomial: number, and each. A monomial of 1 is `one`. */
size_t sx_terms(const sc *c, sx x);
void sx_term(const sc *c, sx x, size_t i, uint32_t *q, sx *m);
/* Factors of a monomial. */
size_t sx_factors(const sc *c, sx m);
void sx_factor(const sc *c, sx m, size_t i, sx *base, uint32_t *exponent);
bool sx_divides(sc *c, sx d, sx p, sx *quotient); /* exactly, by a monomial d */
bool sx_is_long(const sc *c, sx x);               /* a sum of several terms */
sx sx_single(sc *c, sx base, uint32_t q);         /* base^q as one factor */
uint32_t sx_leading(sc *c, sx a,
                    bool any_sign); /* the coefficient of the term with the least hash */
bool sx_q_floor(const sc *c, uint32_t q, int64_t *out); /* false: out of reach */
bool sx_q_even(const sc *c, uint32_t q);
sx sx_smallest_guard(const sc *c, const sx *a,
                     size_t n);            /* the top condition of several diagrams, 0 for none */
sx sx_without(sc *c, sx a, sx common);     /* a / common, its content */
sx sx_content(sc *c, sx a, bool any_base); /* the common factor of its terms */
bool sx_linear(sc *c, sx p, sx atom, sx *a,
               sx *b); /* p = a * atom + b, neither with `atom` in it */
bool sx_occurs(const sc *c, sx x, sx in);
sx sx_find_place(const sc *c, sx k, sx in); /* F_PLACE of the rank k, a symbol; 0: there is none */

/* ---- conditions and integers (guard.c, sign.c, bound.c, quotient.c) ---- */

sx sx_lt(sc *c, sx a, sx b);
sx sx_le(sc *c, sx a, sx b);
sx sx_eq(sc *c, sx a, sx b);
sx sx_not(sc *c, sx a);
sx sx_and(sc *c, sx a, sx b);
sx sx_or(sc *c, sx a, sx b);
sx sx_ite(sc *c, sx cond, sx a, sx b);
sx sx_cofactor(sc *c, sx x, sx guard, bool holds); /* where `guard` is the top condition */
sx sx_top_guard(const sc *c, sx x);                /* 0 where it is no X_ITE */
/* The diagram that is yes where the condition holds. */
static inline sx sx_truth(sc *c, sx guard) {
  return sc_node(c, X_ITE, (uint32_t[3]){guard, c->yes, c->no}, 3);
}
sx sx_iver(sc *c, sx guard); /* of one atom, or a diagram */
sx sx_lift(sc *c, sx x, sx (*f)(sc *c, sx x, const void *ctx),
           const void *ctx); /* f at the diagram's ends */
/* Where an element of an integer variable lies: [*low, *high). Returns: whether that is known. */
bool sx_leaf_range(sc *c, sx leaf, sx *low, sx *high);
bool sx_ge0(sc *c, sx p); /* known to be at least 0 (integers) */
bool sx_gt0(sc *c, sx p);
bool sx_same(sc *c, sx a, sx b); /* integers known to be equal */
/* The same of any number, by what bounds its parts (validate/expr/nonneg.c). */
bool sx_never_negative(sc *c, sx p);
bool sx_always_positive(sc *c, sx p);
sx sx_div(sc *c, sx p, sx d);
sx sx_mod(sc *c, sx p, sx d);
/* Assume a condition in this case. false: it contradicts the hypotheses. */
bool sc_assume(sc *c, sx guard, bool holds);
/* x, of which an operator has no value where it is `none`, without such ends that no index reaches:
 * a row of a mask that keeps nothing, which is no row. */
sx sx_reached(sc *c, sx x, sx none);

/* The condition D x + y < 0, |y| < D, on x and y by themselves (radix.c). 0: none. */
sx sx_by_radix(sc *c, sx g);

/* ---- binders and substitution (subst.c, block.c, sum.c, largest.c) ---- */

typedef struct sx_map {
  sx from, to;
} sx_map;
sx sx_subst(sc *c, sx x, const sx_map *map, size_t n);
sx sx_sum(sc *c, sx k,
          sx body); /* over the index symbol k, in its range (k may be 0, for a range of 1) */
sx sx_largest(sc *c, sx k, sx body);
sx sx_product(sc *c, sx k, sx body);
/* A row of elements `body` over k, up to changes that keep its order; the place of the element that
 * is the `rank`-th largest. */
sx sx_row(sc *c, sx k, sx body);
sx sx_place(sc *c, sx rank, sx row);
/* Where k, a bound index, is nothing but the rank of places in one row, all of its ranks: `body` by
 * the places themselves, in k. They are a permutation, and the binder of k does not depend on
 * order. */
void sx_over_places(sc *c, sx k, sx *body);
sx sx_close(sc *c, sx_op op, sx k, sx body); /* a binder over one index, as it is */
/* Open a binder: fresh symbols in `k` (room for 8), the body in them. */
sx sx_open(sc *c, sx binder, sx *k, uint32_t *n);
/* An index symbol `k` in x that a division takes apart: into quotient and remainder by `d`, which
 * divides its range. */
bool sx_apart(sc *c, sx x, sx *k, sx *d);
bool sx_apart_at(sc *c, sx x, sx k, sx *d);
/* Whether a quotient in x has the index k in it. */
bool sx_divided(sc *c, sx x, sx k);
/* A condition that holds (`lower`: below, else above) up to a bound of the index k. */
bool sx_cuts(sc *c, sx g, sx k, sx *at, bool *lower);

/* ---- numbers and text (number.c) ---- */

/* `sym[i]` is the value of symbol i. NaN where it has none, or takes too long. */
double sc_number(sc *c, sx x, const double *sym);
/* The same in `most` steps, which count as work; NaN where they are not enough. */
double sc_number_within(sc *c, sx x, const double *sym, size_t most);
/* The same where symbols are drawn by `salt` when they are met. Requires: sc_draw_anew. */
double sc_number_drawn(sc *c, sx x, uint64_t salt, size_t most);
/* Forgets what was drawn. Returns: false without memory. */
bool sc_draw_anew(sc *c);
/* Bits that depend on all of both. */
uint64_t sc_mixed(uint64_t salt, uint64_t of);
char *sx_print(sc *c, sx x); /* for reading; malloc'ed */

#endif
