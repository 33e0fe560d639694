/* Definitions for the symbolic prover: operators of two and more tensors element by element,
 * choices and casts; kinds and broadcasting for all. */
#include <math.h>
#include <string.h>

#include "validate/ops/ops.h"

enum {
  ADD,
  SUB,
  RSUB,
  MUL,
  DIV,
  MAXIMUM,
  MINIMUM,
  REMAINDER,
  FLOOR_DIV,
  TRUNC_DIV,
  POW,
  ATAN2,
  LOGADDEXP,
  CMP_EQ,
  CMP_NE,
  CMP_LT,
  CMP_LE,
  CMP_GT,
  CMP_GE,
  AND,
  OR,
  XOR,
  BIT_AND,
  BIT_OR,
  BIT_XOR
};
enum { WHERE, MASKED_FILL };
enum { SAME, CAST, CAST_LIKE, COPY };

/* ---- kinds and broadcasting ---- */

static char wider(char a, char b) {
  return a == 'f' || b == 'f' ? 'f' : a == 'i' || b == 'i' ? 'i' : 'b';
}

static sx kind_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  if (t->in[0]->kind == 'b') return sx_ite(c, x, c->one, c->zero);
  if (t->kind == 'b') return sx_not(c, sx_eq(c, x, c->zero));
  return x;
}

pt_tensor *pt_like(sc *c, const pt_tensor *x, char kind, pt_elem f) {
  pt_tensor *t = x ? pt_new(c, kind, f) : NULL;
  if (!t) return NULL;
  t->lead = x->lead;
  t->rank = x->rank;
  memcpy(t->dim, x->dim, sizeof t->dim);
  t->in[0] = x;
  return t;
}

/* Exact conversions: int to float as numbers, bool to 0 and 1, anything to bool. */
const pt_tensor *pt_kind(sc *c, const pt_tensor *t, char kind) {
  if (!t || t->kind == kind) return t;
  if (t->kind == 'f' && kind == 'i') {
    sc_fail(c, "a cast from float to int");
    return NULL;
  }
  return pt_like(c, t, kind, kind_elem);
}

bool pt_broadcast(sc *c, const pt_tensor *const *t, size_t n, sx *dim, uint32_t *rank,
                  uint64_t *lead) {
  *rank = 0;
  *lead = 0;
  for (size_t i = 0; i < n; i++) {
    if (!t[i]) return false;
    *lead |= t[i]->lead;
    if (t[i]->rank > *rank) *rank = t[i]->rank;
  }
  for (size_t i = 0; i < n && *lead; i++)
    if (t[i]->lead && t[i]->rank != *rank) {
      sc_fail(c, "open leading dimensions against others");
      return false;
    }
  for (uint32_t k = 0; k < *rank; k++) {
    sx d = c->one;
    for (size_t i = 0; i < n; i++) {
      if (k + t[i]->rank < *rank) continue;
      const sx e = t[i]->dim[k + t[i]->rank - *rank];
      bool same = sx_same(c, d, e), one = false;
      if (e == c->one || same) continue;
      if (d == c->one) {
        d = e;
        continue;
      }
      if (!sc_decide(c, sx_eq(c, d, e), &same)) return false;
      if (same) continue;
      if (!sc_decide(c, sx_eq(c, e, c->one), &one)) return false;
      if (one) continue;
      if (!sc_require(c, sx_eq(c, d, c->one))) return false;
      d = e;
    }
    dim[k] = d;
  }
  return !c->fault.failed;
}

static sx expand_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  const uint32_t skip = t->rank - t->in[0]->rank;
  for (uint32_t k = 0; k < t->in[0]->rank; k++) in[k] = t->k[k] ? c->zero : idx[k + skip];
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_expand(sc *c, const pt_tensor *t, const sx *dim, uint32_t rank, uint64_t lead) {
  if (!t || t->rank > rank || (t->lead && t->rank != rank)) {
    if (t) sc_fail(c, "an expansion to fewer dimensions");
    return NULL;
  }
  bool same = t->rank == rank && t->lead == lead;
  for (uint32_t k = 0; k < t->rank && same; k++) same = t->dim[k] == dim[k];
  if (same) return t;
  pt_tensor *r = pt_new(c, t->kind, expand_elem);
  if (!r) return NULL;
  r->in[0] = t;
  r->rank = rank;
  r->lead = lead | t->lead;
  memcpy(r->dim, dim, rank * sizeof *dim);
  for (uint32_t k = 0; k < t->rank; k++) {
    const sx d = t->dim[k], e = dim[k + rank - t->rank];
    bool equal = sx_same(c, d, e);
    if (!equal && d != c->one && !sc_decide(c, sx_eq(c, d, e), &equal)) return NULL;
    if (!equal && !sc_require_eq(c, d, c->one)) return NULL;
    r->k[k] = !equal;
  }
  return r;
}

/* Bring several to one shape. */
static bool align(sc *c, const pt_tensor **t, size_t n) {
  sx dim[RULE_MAX_RANK];
  uint32_t rank;
  uint64_t lead;
  if (!pt_broadcast(c, t, n, dim, &rank, &lead)) return false;
  for (size_t i = 0; i < n; i++)
    if (!(t[i] = pt_expand(c, t[i], dim, rank, lead))) return false;
  return true;
}

/* ---- binary ---- */

static sx floor_div(sc *c, sx x, sx y, bool whole) {
  if (whole && !sx_top_guard(c, y) && sx_gt0(c, y)) return sx_div(c, x, y);
  return sx_fn(c, F_FLOOR, sx_mul(c, x, pt_reciprocal(c, y)));
}

/* x, of which its remainder by y is asked: by a power of two that does not see how x wrapped. */
static sx by_low_bits(sc *c, sx x, sx y) {
  int64_t n;
  unsigned bits = 0;
  if (!sx_is_int(c, y, &n) || n <= 0 || (n & (n - 1)) != 0) return x;
  while (n >> bits > 1) bits++;
  return sx_unwrapped(c, x, bits);
}

static sx xor (sc * c, sx x, sx y) { return sx_ite(c, x, sx_not(c, y), y); }

    static sx power(sc *c, sx x, sx y) {
  uint32_t q;
  if (sx_is_q(c, y, &q)) return sx_pow(c, x, q);
  /* A positive constant, or a number known to be positive: e^(y log x). */
  if (!sx_top_guard(c, x) && sc_has(c, x, S_POS)) return sx_exp(c, sx_mul(c, y, sx_log(c, x)));
  /* Of a root: where it is defined its operand is not negative. */
  sx m, b;
  uint32_t e;
  if (!sx_top_guard(c, x) && sx_terms(c, x) == 1 && !sx_top_guard(c, y)) {
    sx_term(c, x, 0, &q, &m);
    sx_factor(c, m, 0, &b, &e);
    if (q == PV_ONE_Q && sx_factors(c, m) == 1 && !pv_q_is_int(&c->q, e, &(int64_t){0}) &&
        pv_q_sign(&c->q, e) > 0)
      return sx_fn2(c, F_POW, b, sx_scale(c, e, y));
  }
  return sx_fn2(c, F_POW, x, y);
}

static sx binary(sc *c, int op, sx x, sx y, sx alpha, bool whole) {
  switch (op) {
  case ADD: return sx_add(c, x, sx_mul(c, alpha, y));
  case SUB: return sx_sub(c, x, sx_mul(c, alpha, y));
  case RSUB: return sx_sub(c, y, sx_mul(c, alpha, x));
  case MUL: return sx_mul(c, x, y);
  case DIV: return sx_mul(c, x, pt_reciprocal(c, y));
  case MAXIMUM: return sx_max(c, x, y);
  case MINIMUM: return sx_min(c, x, y);
  case FLOOR_DIV: return floor_div(c, x, y, whole);
  case TRUNC_DIV:
    if (whole && sx_ge0(c, x) && !sx_top_guard(c, y) && sx_gt0(c, y)) return sx_div(c, x, y);
    return sx_fn(c, F_TRUNC, sx_mul(c, x, pt_reciprocal(c, y)));
  case REMAINDER:
    if (whole) x = by_low_bits(c, x, y);
    return sx_sub(c, x, sx_mul(c, y, floor_div(c, x, y, whole)));
  case POW: return power(c, x, y);
  case ATAN2: /* to the right of the axis it has no cut */
    if (sx_lt(c, c->zero, y) == c->yes) return sx_fn(c, F_ATAN, sx_mul(c, x, pt_reciprocal(c, y)));
    return sx_fn2(c, F_ATAN2, x, y);
  case LOGADDEXP: return sx_log(c, sx_add(c, sx_exp(c, x), sx_exp(c, y)));
  case CMP_EQ: return sx_eq(c, x, y);
  case CMP_NE: return sx_not(c, sx_eq(c, x, y));
  case CMP_LT: return sx_lt(c, x, y);
  case CMP_LE: return sx_le(c, x, y);
  case CMP_GT: return sx_lt(c, y, x);
  case CMP_GE: return sx_le(c, y, x);
  case BIT_AND: return whole ? sx_bits_and(c, x, y) : sx_and(c, x, y);
  case BIT_OR: return whole ? sx_bits_or(c, x, y) : sx_or(c, x, y);
  case BIT_XOR: return whole ? sx_bits_xor(c, x, y) : xor(c, x, y);
  case AND: return sx_and(c, x, y);
  case OR: return sx_or(c, x, y);
  default: return xor(c, x, y);
  }
}

static sx binary_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const bool equation = t->which == CMP_EQ || t->which == CMP_NE;
  const sx masked =
      equation && pt_at(c, t->in[1], idx) == c->neginf ? sc_masked_if(c, t->in[0], idx) : 0;
  if (masked) return t->which == CMP_EQ ? masked : sx_not(c, masked);
  return binary(c, t->which, pt_at(c, t->in[0], idx), pt_at(c, t->in[1], idx), t->p[0], t->k[0]);
}

/* The logical operation that arithmetic is among truth values, of which both are; `op` itself where
 * there is none. */
static int of_truths(const sc *c, int op, sx alpha) {
  if (op == MUL || op == MINIMUM) return AND;
  return (op == ADD && alpha == c->one) || op == MAXIMUM ? OR : op;
}

static const pt_tensor *combine(sc *c, int op, const pt_tensor *x, const pt_tensor *y, sx alpha,
                                char alpha_kind) {
  const pt_tensor *t[2] = {x, y};
  if (!align(c, t, 2) || alpha_kind == 'b') return NULL;
  const bool floats = op == DIV || op == ATAN2 || op == LOGADDEXP;
  char kind = floats ? 'f' : wider(t[0]->kind, t[1]->kind), result = kind;
  if (kind == 'b') op = of_truths(c, op, alpha);
  if (kind == 'b' && op <= POW) return NULL;
  if (op == LOGADDEXP && wider(x->kind, y->kind) != 'f') return NULL;
  if ((op == SUB || op == RSUB) && (x->kind == 'b' || y->kind == 'b')) return NULL;
  if (kind == 'i' && alpha_kind == 'f') return NULL;
  const bool bits = kind == 'i' && op >= BIT_AND;
  if (kind != 'b' && op >= BIT_AND && !bits) return NULL;
  if (op >= AND && op <= XOR) kind = 'b';
  if (op >= CMP_EQ && !bits) {
    result = 'b';
    if (kind == 'b' && op < AND) kind = 'i'; /* compared as 0 and 1 */
  }
  for (int k = 0; k < 2; k++) t[k] = pt_kind(c, t[k], kind);
  pt_tensor *r = pt_like(c, t[0], result, binary_elem);
  if (!r || !t[1]) return NULL;
  r->in[1] = t[1];
  r->which = op;
  r->p[0] = alpha;
  r->k[0] = kind == 'i';
  return r;
}

/* No element is infinity: numbers are real, and a mask is minus infinity. An element that would be
 * is outside of the domain, which evaluating it notes. */
static sx beside_infinity(sc *c, const pt_tensor *t, const sx *idx) {
  (void)pt_at(c, t->in[0], idx);
  return t->which == CMP_NE || t->which == CMP_LT || t->which == CMP_LE ? c->yes : c->no;
}

static bool is_infinity(const rule_term *t) {
  return t && t->kind == RULE_FLOAT && t->u.f == INFINITY;
}

static const pt_value *define_binary(pt_args *a, int op) {
  sc *c = a->c;
  if (op >= CMP_EQ && op <= CMP_GE && is_infinity(pt_arg(a, "other"))) {
    const pt_tensor *of = pt_arg_tensor(a, "self");
    pt_tensor *r = of ? pt_like(c, of, 'b', beside_infinity) : NULL;
    if (r) r->which = op;
    return pt_one(c, r);
  }
  char alpha_kind = 'i';
  sx alpha = c->one;
  const bool raised = op == POW;
  const pt_tensor *x = pt_arg_tensor(a, "self"),
                  *y = pt_arg_tensor(a, raised ? "exponent" : "other");
  if (!x || !y) return NULL;
  if (pt_arg(a, "alpha")) alpha = pt_arg_scalar(a, "alpha", &alpha_kind);
  if (pt_arg(a, "rounding_mode"))
    op = pt_arg_is(a, "rounding_mode", "floor") ? FLOOR_DIV : TRUNC_DIV;
  if (raised && x->kind == 'i' && y->kind == 'i') {
    uint32_t q;
    if (!y->wrapped || !sx_is_q(c, y->p[0], &q) || pv_q_sign(&c->q, q) < 0) return NULL;
  }
  return pt_one(c, combine(c, op, x, y, alpha, alpha_kind));
}

const pt_tensor *pt_times(sc *c, const pt_tensor *a, const pt_tensor *b) {
  return a && b ? combine(c, MUL, a, b, c->one, 'i') : NULL;
}

const pt_tensor *pt_combine(sc *c, sx p, const pt_tensor *a, sx q, const pt_tensor *b) {
  if (!a || !b) return NULL;
  if (p == c->zero) return pt_times(c, b, pt_scalar_tensor(c, q, 'i'));
  if (p != c->one) a = pt_times(c, a, pt_scalar_tensor(c, p, 'i'));
  return a ? combine(c, ADD, a, b, q, 'i') : NULL;
}

static const pt_value *define_addc(pt_args *a, int divides) {
  sc *c = a->c;
  char kind;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "tensor1"),
                  *z = pt_arg_tensor(a, "tensor2");
  const sx value = pt_arg_scalar(a, "value", &kind);
  if (!x || !y || !z || kind == 'b' || x->kind != 'f' || y->kind != 'f' || z->kind != 'f')
    return NULL;
  return pt_one(
      c, combine(c, ADD, x, combine(c, divides ? DIV : MUL, y, z, c->one, 'i'), value, kind));
}

static const pt_value *define_lerp(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "end"),
                  *w = pt_arg_tensor(a, "weight");
  if (!x || !y || !w || x->kind != 'f' || y->kind != 'f' || w->kind == 'b' ||
      (w->kind == 'i' && !w->wrapped))
    return NULL;
  return pt_one(
      c, combine(c, ADD, x, pt_times(c, w, combine(c, SUB, y, x, c->one, 'i')), c->one, 'i'));
}

/* A bound: none where it is infinite on its own side. */
static const pt_tensor *bound(pt_args *a, const char *name, double open) {
  const rule_term *t = pt_arg(a, name);
  if (!t || (t->kind == RULE_FLOAT && t->u.f == open)) return NULL;
  return pt_eval_tensor(a->c, t);
}

static const pt_value *define_clamp(pt_args *a, int which) {
  static const char *const names[][2] = {{"min", "max"}, {"min_val", "max_val"}};
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *low = bound(a, names[which][0], -INFINITY),
                  *high = bound(a, names[which][1], INFINITY);
  if (!x || x->kind == 'b' || (which && x->kind != 'f') || c->fault.failed)
    return NULL; /* hardtanh keeps integers */
  if (low && low->kind == 'b') return NULL;
  if (low) x = combine(c, MAXIMUM, x, low, c->one, 'i');
  if (high && high->kind == 'b') return NULL;
  if (high && x) x = combine(c, MINIMUM, x, high, c->one, 'i');
  return pt_one(c, x);
}

/* ---- choices ---- */

static sx where_elem(sc *c, const pt_tensor *t, const sx *idx) {
  if (c->reading.has_none) { /* what is never chosen may be no number */
    const sx first = pt_at(c, t->in[0], idx);
    if (first == c->yes || first == c->no) return pt_at(c, t->in[first == c->yes ? 1 : 2], idx);
  }
  /* A condition that is built last stands behind what it chooses from in sums and products, and
   * proofs about masked attention over several blocks end sooner so. */
  const sx y = pt_at(c, t->in[2], idx), x = pt_at(c, t->in[1], idx);
  const sx cond = pt_at(c, t->in[0], idx);
  return sx_ite(c, cond, sx_wrapped_where(c, cond, true, x), sx_wrapped_where(c, cond, false, y));
}

static const pt_value *define_where(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *t[3] = {pt_arg_tensor(a, which == WHERE ? "condition" : "mask"),
                           pt_arg_tensor(a, which == WHERE ? "self" : "value"),
                           pt_arg_tensor(a, which == WHERE ? "other" : "self")};
  if (!t[0] || !t[1] || !t[2] || t[0]->kind != 'b') return NULL;
  const char kind = which == WHERE ? wider(t[1]->kind, t[2]->kind) : t[2]->kind;
  if (which == MASKED_FILL && (t[1]->rank || t[1]->lead || wider(kind, t[1]->kind) != kind))
    return NULL;
  if (!align(c, t, 3)) return NULL;
  for (int k = 1; k < 3; k++) t[k] = pt_kind(c, t[k], kind);
  pt_tensor *r = pt_like(c, t[0], kind, where_elem);
  if (!r || !t[1] || !t[2]) return NULL;
  r->in[1] = t[1];
  r->in[2] = t[2];
  return pt_one(c, r);
}

/* ---- casts and identities ---- */

/* Integers up to this are exact in the dtype. */
static int64_t exact_up_to(rule_dtype d) {
  /* Float64's up to 2^53; taken as the real numbers themselves. */
  return d == RULE_F64 ? INT64_MAX : INT64_C(1) << rule_dtype_digits(d);
}

static sx round_end(sc *c, sx x, const void *ctx) {
  const rule_dtype d = *(const rule_dtype *)ctx;
  const int64_t most = exact_up_to(d);
  if (most == INT64_MAX) return x;
  if (sx_within(c, x, (double)most) || (sx_never_negative(c, sx_sub(c, sx_int(c, most), x)) &&
                                        sx_never_negative(c, sx_add(c, sx_int(c, most), x))))
    return x;
  if (sc_op(c, x) == X_MAX) { /* rounding does not fall */
    sx r = c->neginf;
    for (uint32_t i = 0, n = sc_at(c, x)->n; i < n && !c->fault.failed; i++)
      r = sx_max(c, r, round_end(c, sc_word(c, x, i), ctx));
    return r;
  }
  return sc_node(c, X_FN,
                 (uint32_t[2]){d == RULE_F32        ? F_CAST_F32
                               : d == RULE_F16      ? F_CAST_F16
                               : d == RULE_BF16     ? F_CAST_BF16
                               : d == RULE_F8E4M3FN ? F_CAST_F8E4M3FN
                                                    : F_CAST_F8E5M2,
                               x},
                 2);
}

static sx cast_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  const rule_dtype d = (rule_dtype)t->which;
  /* The integer that a float out of range becomes is the processor's choice. */
  if (t->kind == 'i') return pt_fitting(c, sx_fn(c, F_TRUNC, x), d);
  return sx_lift(c, x, round_end, &d);
}

const pt_tensor *pt_cast(sc *c, const pt_tensor *x, rule_dtype d) {
  pt_tensor *t;
  if (!x || rule_dtype_is_complex(d)) return NULL;
  if (d == RULE_BOOL) return pt_kind(c, x, 'b');
  if (rule_dtype_is_float(d)) {
    if (x->kind != 'i') return pt_kind(c, x, 'f');
    t = pt_like(c, x, 'f', cast_elem);
  } else if (x->kind == 'f') {
    t = pt_like(c, x, 'i', cast_elem);
  } else {
    return pt_kind(c, x, 'i');
  }
  if (t) t->which = (int)d;
  return t;
}

/* In the type of o, of integers. NULL: among integers of two types, where it is not known which the
 * result's bits are. */
static const pt_tensor *as_integers(sc *c, const pt_tensor *x, const pt_tensor *o) {
  if (!x || o->wrapped || (x->kind == 'i' && x->narrow != o->narrow)) return NULL;
  return pt_cast(c, x, o->narrow ? (rule_dtype)o->narrow : RULE_I64);
}

static const pt_value *define_cast(pt_args *a, int which) {
  sc *c = a->c;
  rule_dtype d;
  const pt_tensor *x = pt_arg_tensor(a, which == SAME && !pt_arg(a, "self") ? "input" : "self"), *o;
  if (!x) return NULL;
  switch (which) {
  case CAST: return pt_one(c, pt_arg_dtype(a, "dtype", &d) ? pt_cast(c, x, d) : x);
  case CAST_LIKE:
    o = pt_arg_tensor(a, "other");
    if (!o || (o->kind == 'f' && x->kind == 'i')) return NULL; /* the width is not known */
    return pt_one(c, o->kind == 'i' ? as_integers(c, x, o) : pt_kind(c, x, o->kind));
  case COPY:
    o = pt_arg_tensor(a, "src");
    if (!o || (x->kind == 'f' && o->kind == 'i')) return NULL;
    o = pt_expand(c, o, x->dim, x->rank, x->lead);
    return pt_one(c, x->kind == 'i' ? as_integers(c, o, x) : pt_kind(c, o, x->kind));
  default: return pt_one(c, x);
  }
}

static const pt_value *define_dropout(pt_args *a, int which) {
  (void)which;
  char kind;
  if (pt_arg_flag(a, "train", true) && pt_arg_scalar(a, "p", &kind) != a->c->zero) {
    sc_fail(a->c, "dropout in training");
    return NULL;
  }
  return pt_one(a->c, pt_arg_tensor(a, "input"));
}

static const struct {
  const char *name;
  int op;
} binaries[] = {
    {"add", ADD},
    {"sub", SUB},
    {"subtract", SUB},
    {"rsub", RSUB},
    {"mul", MUL},
    {"multiply", MUL},
    {"div", DIV},
    {"divide", DIV},
    {"true_divide", DIV},
    {"maximum", MAXIMUM},
    {"minimum", MINIMUM},
    {"fmax", MAXIMUM},
    {"fmin", MINIMUM},
    {"remainder", REMAINDER},
    {"floor_divide", FLOOR_DIV},
    {"pow", POW},
    {"atan2", ATAN2},
    {"arctan2", ATAN2},
    {"logaddexp", LOGADDEXP},
    {"eq", CMP_EQ},
    {"ne", CMP_NE},
    {"lt", CMP_LT},
    {"le", CMP_LE},
    {"gt", CMP_GT},
    {"ge", CMP_GE},
    {"less", CMP_LT},
    {"less_equal", CMP_LE},
    {"greater", CMP_GT},
    {"greater_equal", CMP_GE},
    {"not_equal", CMP_NE},
    {"logical_and", AND},
    {"logical_or", OR},
    {"logical_xor", XOR},
    {"bitwise_and", BIT_AND},
    {"bitwise_or", BIT_OR},
    {"bitwise_xor", BIT_XOR},
    {"__and__", BIT_AND},
    {"__or__", BIT_OR},
    {"__xor__", BIT_XOR},
};

static const pt_definition table[] = {
    {"addcmul", define_addc, 0},
    {"addcdiv", define_addc, 1},
    {"lerp", define_lerp, 0},
    {"clamp", define_clamp, 0},
    {"clip", define_clamp, 0},
    {"clamp_min", define_clamp, 0},
    {"clamp_max", define_clamp, 0},
    {"hardtanh", define_clamp, 1},
    {"where", define_where, WHERE},
    {"masked_fill", define_where, MASKED_FILL},
    {"to", define_cast, CAST},
    {"_to_copy", define_cast, CAST},
    {"type_as", define_cast, CAST_LIKE},
    {"copy", define_cast, COPY},
    {"alias", define_cast, SAME},
    {"detach", define_cast, SAME},
    {"clone", define_cast, SAME},
    {"contiguous", define_cast, SAME},
    {"lift_fresh_copy", define_cast, SAME},
    {"lift_fresh", define_cast, SAME},
    {"dropout", define_dropout, 0},
};

/* The dispatcher's name without namespace and overload. */
bool pt_named(const char *full, const char *base) {
  const size_t n = strlen(base);
  return !strncmp(full, base, n) && (full[n] == 0 || full[n] == '.');
}

bool pt_find(const pt_definition *entry, size_t n, const char *name, pt_definition *out) {
  if (strncmp(name, "aten::", 6)) return false;
  for (size_t i = 0; i < n; i++)
    if (pt_named(name + 6, entry[i].name)) return *out = entry[i], true;
  return false;
}

bool pt_define_elementwise(const char *full, pt_definition *out) {
  if (strncmp(full, "aten::", 6)) return false;
  const char *name = full + 6;
  if (!strcmp(name, "to.other")) return *out = (pt_definition){name, define_cast, CAST_LIKE}, true;
  if (pt_find(table, sizeof table / sizeof *table, full, out)) return true;
  for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
    if (pt_named(name, binaries[i].name))
      return *out = (pt_definition){name, define_binary, binaries[i].op}, true;
  return false;
}
