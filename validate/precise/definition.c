/* Operators by the prover's definitions of them, in intervals: element by element, as the
 * definition says it and not in its normal form. So every term of a proof can be evaluated too, and
 * operators need no code of their own here, unless for a shorter way (ops.c).
 * tests/validate/test_precise.c holds every definition against libtorch. */
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "validate/prove/prove.h"

enum { MOST_LEVELS = 256, MOST_ROW = 256, MOST_DEEP = 2000, MOST_LITERALS = 8, SETUP = 40 };

/* Literals that may be read as other numbers than their doubles, by names. */
typedef struct literals {
  rule_attribute attr[MOST_LITERALS];
  double value[MOST_LITERALS];
  size_t n;
} literals;

typedef struct walk {
  vp *v;
  sc *c;
  const vp_call *k;
  const literals *literals;
  const int64_t *sym;         /* by symbol */
  int64_t bound[MOST_LEVELS]; /* by level */
  vn **spare;                 /* numbers that are free, a stack */
  size_t n_spare, cap_spare;
  unsigned depth;
} walk;

static void evaluate(walk *w, sx x, vn *r);

/* A number for a while: to be given back with `put`. It may be NULL, where there is no memory. */
static vn *get(walk *w) {
  if (w->n_spare > 0) return w->spare[--w->n_spare];
  const vp_tensor *t = vp_new(w->v, RULE_F64, &(rule_shape){0});
  return t ? t->x : NULL;
}

static void put(walk *w, vn *x) {
  if (!x) return;
  if (!iso_grow(w->spare, w->cap_spare, w->n_spare + 1)) w->v->no_memory = true;
  else w->spare[w->n_spare++] = x;
}

static uint32_t word(const walk *w, sx x, size_t i) { return sc_word(w->c, x, i); }

/* ---- integers ---- */

static bool whole(walk *w, sx x, int64_t *out);

static bool whole_rational(const walk *w, uint32_t q, int64_t *out) {
  pv_q v;
  if (!pv_q_small(&w->c->q, q, &v)) return false;
  if (v.d != 1 || v.e < 0 || v.e > 40 || v.n > (1 << 20) || v.n < -(1 << 20)) return false;
  *out = (int64_t)v.n * ((int64_t)1 << v.e);
  return true;
}

/* Sums: coefficient and term. Products: factor and exponent. */
static bool whole_pairs(walk *w, sx x, bool product, int64_t *out) {
  *out = product;
  for (uint32_t i = 0; i < sc_at(w->c, x)->n; i += 2) {
    int64_t a, q;
    if (!whole(w, word(w, x, product ? i : i + 1), &a) ||
        !whole_rational(w, word(w, x, product ? i + 1 : i), &q))
      return false;
    if (product && q != 1) return false;
    if (__builtin_mul_overflow(product ? *out : q, a, &a)) return false;
    if (product) *out = a;
    else if (__builtin_add_overflow(*out, a, out)) return false;
  }
  return true;
}

/* Expressions of indices and whole numbers alone, quickly. */
static bool whole(walk *w, sx x, int64_t *out) {
  int64_t d = 0;
  switch (sc_op(w->c, x)) {
  case X_CONST: return whole_rational(w, word(w, x, 0), out);
  case X_SYM: *out = w->sym[word(w, x, 0)]; return w->c->store.sym[word(w, x, 0)].role == 'x';
  case X_BOUND:
    if (word(w, x, 0) >= MOST_LEVELS) return false;
    *out = w->bound[word(w, x, 0)];
    return true;
  case X_ADD: return whole_pairs(w, x, false, out);
  case X_MUL: return whole_pairs(w, x, true, out);
  case X_DIV:
    if (!whole(w, word(w, x, 0), out) || !whole(w, word(w, x, 1), &d) || d <= 0) return false;
    *out = *out / d - (*out % d < 0);
    return true;
  default: return false;
  }
}

static int64_t integer(walk *w, sx x) {
  int64_t r = 0;
  if (whole(w, x, &r)) return r;
  vn *t = get(w);
  r = 0;
  if (!t) return 0;
  evaluate(w, x, t);
  if (vp_go(w->v, 0) && mpfr_equal_p(&t->lo, &t->hi) && mpfr_integer_p(&t->lo) &&
      mpfr_fits_slong_p(&t->lo, MPFR_RNDN))
    r = mpfr_get_si(&t->lo, MPFR_RNDN);
  else w->v->open = true;
  put(w, t);
  return r;
}

/* ---- conditions: 1, 0, or 2 where that is open ---- */

static int condition(walk *w, sx x) {
  const sx_op op = sc_op(w->c, x);
  int64_t i = 0;
  if (op == X_TRUE || op == X_FALSE) return op == X_TRUE;
  if ((op == X_LT || op == X_EQ) && whole(w, word(w, x, 0), &i)) return op == X_LT ? i < 0 : i == 0;
  vn *a = get(w), *zero = get(w);
  int yes = 2;
  if (a && zero) {
    vn_int(w->v, zero, 0);
    evaluate(w, op == X_LT || op == X_EQ ? word(w, x, 0) : x, a);
    const int c = vp_go(w->v, 0) ? vn_compare(a, zero) : 2;
    if (c != 2) yes = op == X_LT ? c < 0 : op == X_EQ ? c == 0 : c > 0;
    else if (op == X_LT && mpfr_sgn(&a->lo) >= 0) yes = 0;
    else if (op != X_LT && op != X_EQ && mpfr_sgn(&a->hi) <= 0) yes = 0;
  }
  put(w, a);
  put(w, zero);
  return yes;
}

/* One of two; both, where it is open which. */
static void choose(walk *w, sx cond, sx yes, sx no, vn *r) {
  const int c = condition(w, cond);
  if (!vp_go(w->v, 1)) return;
  evaluate(w, c ? yes : no, r);
  vn *other = c == 2 ? get(w) : NULL;
  if (!other) return;
  evaluate(w, no, other);
  vn_hull(r, r, other);
  put(w, other);
}

/* ---- numbers ---- */

static void rational(walk *w, uint32_t q, vn *r) { vn_rational(w->v, r, &w->c->q, q); }

static void to_power(walk *w, vn *x, uint32_t q) {
  vn *e = q == PV_ONE_Q ? NULL : get(w);
  if (!e) return;
  rational(w, q, e);
  pv_q half;
  const bool root = pv_q_small(&w->c->q, q, &half) && half.e == -1 && half.d == 1 &&
                    half.n <= INT64_MAX && half.n >= -INT64_MAX;
  if (root) { /* of odd powers: by the root, which is defined at 0 */
    vn_sqrt(w->v, x, x);
    vn_int(w->v, e, (int64_t)half.n);
  }
  if (vp_go(w->v, 4)) vn_pow(w->v, x, x, e);
  put(w, e);
}

static void sum_of(walk *w, sx x, vn *r) {
  vn *t = get(w), *q = get(w);
  vn_int(w->v, r, 0);
  for (uint32_t i = 0; t && q && i < sc_at(w->c, x)->n && vp_go(w->v, 2); i += 2) {
    evaluate(w, word(w, x, i + 1), t);
    rational(w, word(w, x, i), q);
    vn_mul(w->v, t, t, q);
    vn_add(w->v, r, r, t);
  }
  put(w, t);
  put(w, q);
}

static void product_of(walk *w, sx x, vn *r) {
  const uint32_t n = sc_at(w->c, x)->n;
  vn_int(w->v, r, 0);
  /* A factor beside 0 need not be defined. */
  for (uint32_t i = 0; i < n; i += 2)
    if (sc_op(w->c, word(w, x, i)) == X_IVER && condition(w, word(w, word(w, x, i), 0)) == 0)
      return;
  vn *t = get(w);
  vn_int(w->v, r, 1);
  for (uint32_t i = 0; t && i < n && vp_go(w->v, 1); i += 2) {
    evaluate(w, word(w, x, i), t);
    to_power(w, t, word(w, x, i + 1));
    vn_mul(w->v, r, r, t);
  }
  put(w, t);
}

static void leaf(walk *w, sx x, vn *r) {
  const vp_tensor *t = w->k->in[word(w, x, 0)];
  int64_t at = 0;
  bool inside = sc_at(w->c, x)->n == t->shape.rank + 1;
  for (uint32_t d = 0; d < t->shape.rank && inside; d++) {
    const int64_t i = integer(w, word(w, x, d + 1));
    inside = i >= 0 && i < t->shape.dim[d];
    at = at * t->shape.dim[d] + i;
  }
  if (!inside) w->v->open = true;
  else if (t->x) vn_set(r, &t->x[at]);
  else vn_int(w->v, r, rule_tensor_get_int(t->plain, at));
}

static void fold_one(walk *w, sx_op op, vn *r, const vn *t) {
  if (op == X_SUM) vn_add(w->v, r, r, t);
  else if (op == X_PROD) vn_mul(w->v, r, r, t);
  else vn_max(w->v, r, r, t);
}

/* Over the binder's indices from number `at` on. */
static void binder(walk *w, sx x, uint32_t at, uint32_t n, uint32_t base, vn *r) {
  const sx_op op = sc_op(w->c, x);
  if (at == n) {
    evaluate(w, word(w, x, n + 1), r);
    return;
  }
  const int64_t count = integer(w, word(w, x, at + 1));
  if (base + 1 + at >= MOST_LEVELS) w->v->lacks = true;
  vn *t = get(w);
  if (op == X_TOP) vn_double(w->v, r, -(double)INFINITY);
  else vn_int(w->v, r, op == X_PROD);
  for (int64_t i = 0; t && i < count && vp_go(w->v, 1); i++) {
    w->bound[base + 1 + at] = i;
    binder(w, x, at + 1, n, base, t);
    fold_one(w, op, r, t);
  }
  put(w, t);
}

/* Whether element j of a row goes before element i: 1, 0 or 2 where that is open. */
static int before(vn *const *e, int64_t j, int64_t i) {
  const int c = vn_compare(e[j], e[i]);
  if (c == 2) return j == i ? 0 : 2;
  return c > 0 || (c == 0 && j < i);
}

/* The place in the row of the element that `rank` others go before: larger ones, and equal ones
 * that stand in front of it. */
static void place(walk *w, int64_t rank, sx row, vn *r) {
  const int64_t n = integer(w, word(w, row, 1));
  const uint32_t level = sc_at(w->c, word(w, row, 2))->height + 1;
  vn *e[MOST_ROW] = {0};
  int64_t at = -1;
  if (n > MOST_ROW || level >= MOST_LEVELS) w->v->lacks = true;
  if (!vp_go(w->v, n > 0 ? n * n / 16 : 0)) return;
  for (int64_t i = 0; i < n; i++) {
    if (!(e[i] = get(w))) break;
    w->bound[level] = i;
    evaluate(w, word(w, row, 2), e[i]);
  }
  for (int64_t i = 0; i < n && at < 0 && vp_go(w->v, 0); i++) {
    int64_t sure = 0, open = 0;
    for (int64_t j = 0; j < n; j++) {
      const int b = before(e, j, i);
      sure += b == 1;
      open += b == 2;
    }
    if (open == 0 && sure == rank) at = i;
  }
  for (int64_t i = 0; i < n; i++) put(w, e[i]);
  w->v->open |= at < 0;
  vn_int(w->v, r, at);
}

static void apply(walk *w, const char *name, vn *r, const vn *a, const vn *b) {
  int cost = 1;
  const vn_unary one = b ? NULL : vn_unary_find(name, &cost);
  const vn_binary two = b ? vn_binary_find(name, &cost) : NULL;
  if (!one && !two) w->v->lacks = true;
  if (!vp_go(w->v, cost)) return;
  if (one) one(w->v, r, a);
  else two(w->v, r, a, b);
}

/* The value without rounding: casts to floating types are none. */
static const char *function_name(sx_func f) {
  switch (f) {
  case F_EXP: return "exp";
  case F_LOG: return "log";
  case F_ERF: return "erf";
  case F_SIN: return "sin";
  case F_COS: return "cos";
  case F_TAN: return "tan";
  case F_ATAN: return "atan";
  case F_ASIN: return "asin";
  case F_ABS: return "abs";
  case F_FLOOR: return "floor";
  case F_CEIL: return "ceil";
  case F_ROUND: return "round";
  case F_TRUNC:
  case F_CAST_INT: return "trunc";
  case F_CAST_F32:
  case F_CAST_F16:
  case F_CAST_BF16: return "positive";
  case F_SAFE_INV: return "reciprocal";
  case F_POW:
  case F_POWER: return "pow";
  case F_ATAN2: return "atan2";
  case F_MUL: return "mul";
  default: return NULL;
  }
}

static bool is_zero(const vn *a) { return mpfr_zero_p(&a->lo) && mpfr_zero_p(&a->hi); }

static void function(walk *w, sx x, vn *r) {
  const sx_func f = (sx_func)word(w, x, 0);
  const bool two = sc_at(w->c, x)->n > 2;
  if (f == F_IF) {
    choose(w, word(w, x, 1), word(w, x, 2), word(w, x, 3), r);
    return;
  }
  if (f == F_PLACE) {
    place(w, integer(w, word(w, x, 1)), word(w, x, 2), r);
    return;
  }
  if (f == F_AND) {
    vn_int(w->v, r, integer(w, word(w, x, 1)) & integer(w, word(w, x, 2)));
    return;
  }
  vn *a = get(w), *b = two ? get(w) : NULL;
  if (a) evaluate(w, word(w, x, 1), a);
  if (a && b) evaluate(w, word(w, x, 2), b);
  if (a && (b || !two) && vp_go(w->v, 1)) {
    if (f == F_ADD) vn_add(w->v, r, a, b);
    else if (f == F_SAFE_INV && is_zero(a)) vn_int(w->v, r, 0);
    else if (function_name(f)) apply(w, function_name(f), r, a, b);
    else w->v->lacks = true;
  }
  put(w, a);
  put(w, b);
}

static void quotient(walk *w, sx x, vn *r) {
  const int64_t p = integer(w, word(w, x, 0)), d = integer(w, word(w, x, 1));
  if (d <= 0) w->v->open = true;
  else vn_int(w->v, r, p / d - (p % d < 0));
}

static bool literal_of(walk *w, const char *name, vn *r) {
  for (size_t i = 0; i < w->literals->n; i++)
    if (strcmp(w->literals->attr[i].name, name) == 0)
      return vn_literal(w->v, r, w->literals->value[i]), true;
  return false;
}

static void symbol(walk *w, sx x, vn *r) {
  const sx_sym *s = &w->c->store.sym[word(w, x, 0)];
  if (s->role == 'c') vn_gelu_root(w->v, r);
  else if (s->role == 'x') vn_int(w->v, r, w->sym[word(w, x, 0)]);
  else if (!literal_of(w, s->name, r)) w->v->lacks = true;
}

static void largest(walk *w, sx x, vn *r) {
  vn *t = get(w);
  for (uint32_t i = 0; t && i < sc_at(w->c, x)->n && vp_go(w->v, 1); i++) {
    evaluate(w, word(w, x, i), i ? t : r);
    if (i) vn_max(w->v, r, r, t);
  }
  put(w, t);
}

static void from_condition(walk *w, sx x, vn *r) {
  const int yes = condition(w, sc_op(w->c, x) == X_IVER ? word(w, x, 0) : x);
  vn_int(w->v, r, yes == 1);
  if (yes == 2) mpfr_set_ui(&r->hi, 1, MPFR_RNDU);
}

static void evaluate(walk *w, sx x, vn *r) {
  if (w->depth > MOST_DEEP) w->v->lacks = true;
  if (!vp_go(w->v, 0)) return;
  w->depth++;
  switch (sc_op(w->c, x)) {
  case X_CONST: rational(w, word(w, x, 0), r); break;
  case X_SYM: symbol(w, x, r); break;
  case X_BOUND: vn_int(w->v, r, word(w, x, 0) < MOST_LEVELS ? w->bound[word(w, x, 0)] : 0); break;
  case X_ADD: sum_of(w, x, r); break;
  case X_MUL: product_of(w, x, r); break;
  case X_DIV: quotient(w, x, r); break;
  case X_LEAF: leaf(w, x, r); break;
  case X_FN: function(w, x, r); break;
  case X_SUM:
  case X_TOP:
  case X_PROD: {
    const uint32_t n = word(w, x, 0);
    binder(w, x, 0, n, sc_at(w->c, word(w, x, n + 1))->height, r);
    break;
  }
  case X_MAX: largest(w, x, r); break;
  case X_ITE: choose(w, word(w, x, 0), word(w, x, 1), word(w, x, 2), r); break;
  case X_LT:
  case X_EQ:
  case X_TRUE:
  case X_FALSE:
  case X_IVER: from_condition(w, x, r); break;
  case X_NEGINF: vn_double(w->v, r, -(double)INFINITY); break;
  default: w->v->lacks = true;
  }
  w->depth--;
}

/* ---- tensors ---- */

static bool write_element(vp *v, vp_tensor *t, int64_t i, const vn *x) {
  if (t->x) {
    vn_set(&t->x[i], x);
    return true;
  }
  if (!mpfr_equal_p(&x->lo, &x->hi) || !mpfr_integer_p(&x->lo)) return v->open = true, false;
  rule_tensor_set(t->plain, i, mpfr_get_d(&x->lo, MPFR_RNDN));
  return true;
}

/* Result `of`, whose shape is `got`'s. */
static const vp_tensor *elements(walk *w, const pt_tensor *of, const rule_tensor *got) {
  sx idx[RULE_MAX_RANK], x;
  int64_t size = 0;
  if (of->lead || of->rank != got->shape.rank) return NULL;
  for (uint32_t d = 0; d < of->rank; d++) {
    if (!sx_is_int(w->c, of->dim[d], &size) || size != got->shape.dim[d]) return NULL;
    idx[d] = sc_index(w->c, of->dim[d]);
  }
  w->c->reading.plain = true;
  x = got->numel > 0 ? pt_at(w->c, of, idx) : w->c->zero;
  w->c->reading.plain = false;
  vp_tensor *t = w->c->fault.failed ? NULL : vp_new(w->v, got->dtype, &got->shape);
  int64_t *sym = vp_take(w->v, (w->c->store.n_syms + 1) * sizeof *sym);
  vn *r = get(w);
  if (!t || !sym || !r) return NULL;
  w->sym = sym;
  for (int64_t i = 0; i < t->n && vp_go(w->v, 1); i++) {
    int64_t rest = i;
    for (uint32_t d = of->rank; d-- > 0; rest /= got->shape.dim[d])
      if (sc_op(w->c, idx[d]) == X_SYM) sym[word(w, idx[d], 0)] = rest % got->shape.dim[d];
    evaluate(w, x, r);
    if (!vp_go(w->v, 0) || !write_element(w->v, t, i, r)) return NULL;
  }
  put(w, r);
  return t;
}

static bool all_results(walk *w, const rule *r, const vp_tensor **out) {
  const pt_value *value = pt_eval(w->c, r->lhs);
  if (!value || w->c->fault.failed) return false;
  for (size_t i = 0; i < w->k->n_got; i++) {
    if (rule_dtype_is_complex(w->k->got[i]->dtype) || (value->several && i >= value->n)) continue;
    const pt_tensor *t = value->several ? pt_piece(w->c, value, i) : i == 0 ? value->t[0] : NULL;
    if (t && !w->c->fault.failed) out[i] = elements(w, t, w->k->got[i]);
    if (!vp_go(w->v, 0)) return false;
  }
  return out[0] != NULL;
}

/* The call as a rule of its own: its tensors are variables with the sizes that they have. */
static bool as_rule(vp *v, const vp_call *k, rule *r) {
  rule_variable *var = vp_take(v, (k->n + 1) * sizeof *var);
  if (!var) return false;
  for (size_t i = 0; i < k->n; i++) {
    const vp_tensor *x = k->in[i];
    const rule_term **dim = vp_take(v, (x->shape.rank + 1) * sizeof *dim);
    char *name = vp_take(v, 16);
    if (!dim || !name) return false;
    snprintf(name, 16, "v%u", (unsigned)i);
    for (uint32_t d = 0; d < x->shape.rank; d++)
      if (!(dim[d] = rule_int(&v->arena, x->shape.dim[d]))) return v->no_memory = true, false;
    const char kind = x->x ? 'f' : x->dtype == RULE_BOOL ? 'b' : 'i';
    var[i] = (rule_variable){.name = name, .kind = kind, .n_dims = x->shape.rank, .dim = dim};
  }
  *r = (rule){.name = "call", .n_vars = (uint32_t)k->n, .var = var, .lhs = k->call, .rhs = k->call};
  return true;
}

/* Whether a literal could be read as another number than its double. */
static bool is_long(double f) {
  return isfinite(f) && fabs(ldexp(f, 20) - nearbyint(ldexp(f, 20))) > 0;
}

/* The call with names for such literals, whose values `symbol` knows. NULL: no memory. */
static const rule_term *named(vp *v, const rule_term *t, literals *l) {
  if (t->kind == RULE_FLOAT && is_long(t->u.f) && l->n < MOST_LITERALS) {
    char *name = vp_take(v, 16);
    if (!name) return NULL;
    snprintf(name, 16, "l%u", (unsigned)l->n);
    l->attr[l->n] = (rule_attribute){.name = name, .kind = 'f'};
    l->value[l->n++] = t->u.f;
    return rule_name(&v->arena, name);
  }
  if (t->n == 0) return t;
  const rule_term **child = vp_take(v, t->n * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = named(v, t->child[i], l))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP ? rule_op(&v->arena, t->u.s, child, t->n)
                            : rule_list(&v->arena, child, t->n);
}

/* The call `r` as its definition says. `decimals`: with literals read as such in the definition. */
static bool define(vp *v, const vp_call *k, const rule *r, const literals *l, bool decimals,
                   const vp_tensor **out) {
  enum { MOST_SETUP = 1 << 18 };
  sc *c = calloc(1, sizeof *c);
  bool ok = false;
  if (!c) v->no_memory = true;
  else if (!sc_init(c, r, val_engine_schemas(v->e), NULL)) v->no_memory = true;
  else {
    c->budget.max_work = MOST_SETUP;
    c->reading.decimals = decimals;
    sc_declare_names(c);
    walk w = {.v = v, .c = c, .k = k, .literals = l};
    ok = all_results(&w, r, out);
    free(w.spare);
    v->no_memory |= c->fault.no_memory;
  }
  if (c) sc_fini(c);
  free(c);
  return ok;
}

static bool has_infinity(const vp_tensor *t) {
  for (int64_t i = 0; t->x && i < t->n; i++)
    if (mpfr_inf_p(&t->x[i].lo) || mpfr_inf_p(&t->x[i].hi)) return true;
  return false;
}

bool vp_by_definition(vp *v, const vp_call *k, const vp_tensor **out) {
  rule r;
  /* A definition takes its operands for numbers, of which none is infinite. */
  for (size_t i = 0; i < k->n && rule_sees_undefined(k->call); i++)
    if (has_infinity(k->in[i])) return false;
  for (size_t i = 0; i < k->n; i++)
    if (rule_dtype_is_complex(k->in[i]->dtype)) return false;
  if (!vp_go(v, SETUP) || !as_rule(v, k, &r)) return false;
  literals l = {.n = 0};
  if (v->reading == VP_DOUBLES) return define(v, k, &r, &l, false, out);
  rule n = r;
  n.attr = l.attr;
  n.lhs = n.rhs = named(v, k->call, &l);
  n.n_attrs = (uint32_t)l.n;
  if (!n.lhs) return v->no_memory = true, false;
  if (define(v, k, &n, &l, false, out)) return true;
  /* A definition that asks where a number lies cannot be had with a name for it. */
  const literals none = {.n = 0};
  return v->reading == VP_DECIMALS && l.n > 0 && vp_go(v, SETUP) &&
         define(v, k, &r, &none, true, out);
}
#endif
