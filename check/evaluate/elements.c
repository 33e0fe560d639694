/* Elementwise operators on balls. */
#include <string.h>

#include "check/evaluate/evaluate_int.h"

const ev_tensor *ev_map(ev *e, const ev_tensor *a, char kind, ball (*f)(ball)) {
  ev_tensor *r = a ? ev_new(e, kind, a->rank, a->dim) : NULL;
  for (int64_t i = 0; r && i < r->n; i++) r->v[i] = f(a->v[i]);
  return r;
}

const ev_tensor *ev_expand(ev *e, const ev_tensor *t, uint32_t rank, const int64_t *dim) {
  int64_t own[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  if (!t) return NULL;
  if (rank > RULE_MAX_RANK || t->rank > rank) return ev_fail(e, "shapes do not fit");
  bool same = rank == t->rank;
  ev_strides(t, own);
  for (uint32_t d = 0; d < rank; d++) {
    const bool new = d < rank - t->rank;
    const uint32_t at = new ? 0 : d - (rank - t->rank);
    stride[d] = new || t->dim[at] == 1 ? 0 : own[at];
    if (!new && t->dim[at] != 1 && t->dim[at] != dim[d]) return ev_fail(e, "shapes do not fit");
    same &= !new && t->dim[at] == dim[d];
  }
  return same ? t : ev_strided(e, t, rank, dim, stride, 0);
}

bool ev_broadcast(ev *e, const ev_tensor **a, const ev_tensor **b, uint32_t keep) {
  int64_t dim[2][RULE_MAX_RANK];
  if (!*a || !*b) return false;
  const uint32_t rank = (*a)->rank > (*b)->rank ? (*a)->rank : (*b)->rank;
  for (uint32_t d = 0; d < rank; d++) {
    const int64_t x = d + (*a)->rank < rank ? 1 : (*a)->dim[d + (*a)->rank - rank];
    const int64_t y = d + (*b)->rank < rank ? 1 : (*b)->dim[d + (*b)->rank - rank];
    const bool kept = d + keep >= rank;
    if (!kept && x != y && x != 1 && y != 1) return ev_fail(e, "shapes do not fit") != NULL;
    dim[0][d] = kept ? x : x == 1 ? y : x;
    dim[1][d] = kept ? y : y == 1 ? x : y;
  }
  *a = ev_expand(e, *a, rank, dim[0]);
  *b = ev_expand(e, *b, rank, dim[1]);
  return *a && *b;
}

const ev_tensor *ev_zip(ev *e, const ev_tensor *a, const ev_tensor *b, char kind,
                        ball (*f)(ball, ball)) {
  if (!ev_broadcast(e, &a, &b, 0)) return NULL;
  ev_tensor *r = ev_new(e, kind, a->rank, a->dim);
  for (int64_t i = 0; r && i < r->n; i++) r->v[i] = f(a->v[i], b->v[i]);
  return r;
}

/* The kind of a result among two: numbers beside tensors change it from integers to reals only. */
static char joint(const ev_tensor *a, const ev_tensor *b) {
  if (a->kind == 'f' || b->kind == 'f') return 'f';
  return a->kind == 'i' || b->kind == 'i' ? 'i' : 'b';
}

/* ---- of one tensor ---- */

static ball not_of(ball x) { return ball_equal(x, ball_exact(0)); }
static ball inverted(ball x) { return ball_sub(ball_exact(-1), x); }
static ball truth_of(ball x) { return not_of(not_of(x)); }
static ball same(ball x) { return x; }
static ball relu6(ball x) { return ball_min(ball_relu(x), ball_exact(6)); }
static ball frac(ball x) { return ball_sub(x, ball_trunc(x)); }
static ball exp2_of(ball x) { return ball_exp(ball_mul(x, ball_log(ball_exact(2)))); }
static ball log2_of(ball x) { return ball_div(ball_log(x), ball_log(ball_exact(2))); }
static ball erfc_of(ball x) { return ball_sub(ball_exact(1), ball_erf(x)); }
static ball tan_of(ball x) { return ball_div(ball_sin(x), ball_cos(x)); }
static ball third(ball x) {
  return ball_div(ball_min(ball_relu(ball_add(x, ball_exact(3))), ball_exact(6)), ball_exact(6));
}
static ball hard_swish(ball x) { return ball_mul(x, third(x)); }
static ball softplus(ball x) {
  return ball_add(ball_relu(x), ball_log1p(ball_exp(ball_neg(ball_abs(x)))));
}
static ball log_sigmoid(ball x) { return ball_neg(softplus(ball_neg(x))); }
/* By a softplus that is its argument above 20, or by one that is not. */
static ball mish(ball x) {
  ball part = ball_tanh(softplus(x));
  part.rad += 0x1p-55L;
  return ball_mul(x, part);
}
static ball quick(ball x) { return ball_mul(x, ball_sigmoid(ball_mul(ball_about(1.702L), x))); }

typedef ball (*unary)(ball);
enum { SAME, REALS, TRUTHS }; /* kind of the result: the argument's, of reals, truth values */
static const struct {
  const char *name;
  unary f;
  int gives;
} unaries[] = {{"alias", same, SAME},
               {"detach", same, SAME},
               {"clone", same, SAME},
               {"contiguous", same, SAME},
               {"lift_fresh", same, SAME},
               {"lift_fresh_copy", same, SAME},
               {"neg", ball_neg, SAME},
               {"negative", ball_neg, SAME},
               {"positive", same, SAME},
               {"abs", ball_abs, SAME},
               {"relu", ball_relu, SAME},
               {"relu6", relu6, SAME},
               {"square", ball_square, SAME},
               {"sign", ball_sign, SAME},
               {"sgn", ball_sign, SAME},
               {"floor", ball_floor, SAME},
               {"ceil", ball_ceil, SAME},
               {"trunc", ball_trunc, SAME},
               {"fix", ball_trunc, SAME},
               {"round", ball_round, SAME},
               {"frac", frac, SAME},
               {"exp", ball_exp, REALS},
               {"exp2", exp2_of, REALS},
               {"expm1", ball_expm1, REALS},
               {"log", ball_log, REALS},
               {"log1p", ball_log1p, REALS},
               {"log2", log2_of, REALS},
               {"sqrt", ball_sqrt, REALS},
               {"rsqrt", ball_rsqrt, REALS},
               {"reciprocal", ball_reciprocal, REALS},
               {"sin", ball_sin, REALS},
               {"cos", ball_cos, REALS},
               {"tan", tan_of, REALS},
               {"tanh", ball_tanh, REALS},
               {"erf", ball_erf, REALS},
               {"erfc", erfc_of, REALS},
               {"sigmoid", ball_sigmoid, REALS},
               {"silu", ball_silu, REALS},
               {"mish", mish, REALS},
               {"log_sigmoid", log_sigmoid, REALS},
               {"hardswish", hard_swish, REALS},
               {"hardsigmoid", third, REALS},
               {"logical_not", not_of, TRUTHS}};

static const ev_tensor *one(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  if (!a) return NULL;
  if (a->kind == 'b' && unaries[which].gives == SAME && unaries[which].f != same)
    return ev_fail(e, "truth values as numbers");
  return ev_map(e, a,
                unaries[which].gives == REALS    ? 'f'
                : unaries[which].gives == TRUTHS ? 'b'
                                                 : a->kind,
                unaries[which].f);
}

static const ev_tensor *by_table(ev *e, const rule_term *t, int which) {
  (void)which;
  const char *name = t->u.s + strlen("aten::");
  for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++)
    if (strcmp(unaries[i].name, name) == 0) return one(e, t, (int)i);
  return ev_fail(e, t->u.s);
}

static const ev_tensor *gelu(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  if (t->n < 2 || t->child[1]->kind != RULE_STRING) return ev_fail(e, t->u.s);
  return ev_map(e, a, 'f', strcmp(t->child[1]->u.s, "tanh") == 0 ? ball_gelu_tanh : ball_gelu);
}

static const ev_tensor *inverse(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  return a ? ev_map(e, a, a->kind, a->kind == 'b' ? not_of : inverted) : NULL;
}

static const ev_tensor *leaky_relu(ev *e, const rule_term *t, int which) {
  (void)which;
  ball slope;
  const ev_tensor *a = ev_arg(e, t, 0);
  if (!a || !ev_number(e, t, 1, &slope)) return NULL;
  const ev_tensor *below = ev_map(e, ev_map(e, a, 'f', ball_neg), 'f', ball_relu);
  return ev_zip(e, ev_map(e, a, 'f', ball_relu),
                ev_zip(e, below, ev_scalar(e, slope, 'f'), 'f', ball_mul), 'f', ball_sub);
}

/* Casts among reals are identities. */
static const ev_tensor *cast(ev *e, const ev_tensor *a, char kind) {
  if (!a || a->kind == kind || (kind == 'f') || (kind == 'i' && a->kind == 'b'))
    return ev_map(e, a, kind, same);
  return ev_map(e, a, kind, kind == 'b' ? truth_of : ball_trunc);
}

static char kind_of(rule_dtype d) {
  return rule_dtype_is_float(d) ? 'f' : d == RULE_BOOL ? 'b' : rule_dtype_is_complex(d) ? 0 : 'i';
}

/* `which`: where the dtype stands; none keeps the argument's. */
static const ev_tensor *to(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  const uint32_t at = (uint32_t)which;
  if (!a || ev_none(t, at)) return a;
  const rule_dtype d = t->child[at]->kind == RULE_DTYPE ? (rule_dtype)t->child[at]->u.i : RULE_C64;
  if (!kind_of(d) || (kind_of(d) == 'i' && d != RULE_I64 && d != RULE_I32))
    return ev_fail(e, "a cast to few bits");
  return cast(e, a, kind_of(d));
}

static const ev_tensor *alike(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  if (!a || !b) return NULL;
  return which ? ev_expand(e, cast(e, b, a->kind), a->rank, a->dim)
               : cast(e, a, b->kind); /* copy; to.other, type_as */
}

static const ev_tensor *dropout(ev *e, const rule_term *t, int which) {
  (void)which;
  return ev_flag(e, t, 2) ? ev_fail(e, "it draws random numbers") : ev_arg(e, t, 0);
}

/* ---- of two ---- */

static ball and_of(ball a, ball b) { return ball_mul(truth_of(a), truth_of(b)); }
static ball or_of(ball a, ball b) { return ball_max(truth_of(a), truth_of(b)); }
static ball xor_of(ball a, ball b) { return not_of(ball_equal(truth_of(a), truth_of(b))); }
static ball greater(ball a, ball b) { return ball_less(b, a); }
static ball greater_equal(ball a, ball b) { return ball_less_equal(b, a); }
static ball unequal(ball a, ball b) { return not_of(ball_equal(a, b)); }
static ball reversed(ball a, ball b) { return ball_sub(b, a); }

enum { ADD, SUB, RSUB, MUL, DIV, MAX, MIN, LT, LE, GT, GE, EQ, NE, AND, OR, XOR, POW, N_BINARY };
static ball (*const binary[])(ball, ball) = {
    [ADD] = ball_add,       [SUB] = ball_sub, [RSUB] = reversed,    [MUL] = ball_mul,
    [DIV] = ball_div,       [MAX] = ball_max, [MIN] = ball_min,     [LT] = ball_less,
    [LE] = ball_less_equal, [GT] = greater,   [GE] = greater_equal, [EQ] = ball_equal,
    [NE] = unequal,         [AND] = and_of,   [OR] = or_of,         [XOR] = xor_of,
    [POW] = ball_pow};

/* add, sub and rsub have a factor for the summand: argument 2. */
static const ev_tensor *two(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  ball alpha;
  if (!a || !b) return NULL;
  if (which <= RSUB && t->n > 2 && !ev_none(t, 2)) {
    if (!ev_number(e, t, 2, &alpha)) return NULL;
    if (which == RSUB) a = ev_zip(e, a, ev_scalar(e, alpha, 'f'), joint(a, b), ball_mul);
    else b = ev_zip(e, b, ev_scalar(e, alpha, 'f'), joint(a, b), ball_mul);
    if (!a || !b) return NULL;
  }
  const char kind = joint(a, b);
  if (kind == 'b' && which <= RSUB) return ev_fail(e, "truth values are added");
  const bool truth = which >= LT && which <= XOR;
  return ev_zip(e, a, b, truth ? 'b' : which == DIV ? 'f' : kind, binary[which]);
}

static const ev_tensor *bitwise(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  if (!a || !b) return NULL;
  if (a->kind != 'b' || b->kind != 'b') return ev_fail(e, "bits of integers");
  return ev_zip(e, a, b, 'b', binary[which]);
}

static const ev_tensor *div_mode(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  const ev_tensor *q = ev_zip(e, a, b, 'f', ball_div);
  if (!q || ev_none(t, 2)) return q;
  const bool floor = t->child[2]->kind == RULE_STRING && strcmp(t->child[2]->u.s, "floor") == 0;
  return ev_map(e, q, joint(a, b), floor ? ball_floor : ball_trunc);
}

static const ev_tensor *floor_div(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  return a && b ? ev_map(e, ev_zip(e, a, b, 'f', ball_div), joint(a, b), ball_floor) : NULL;
}

/* ---- choices ---- */

static ball chosen(ball c, ball x, ball y) {
  if (ball_known(c)) return c.mid != 0 ? x : y;
  return x.rad == 0 && y.rad == 0 && x.mid == y.mid ? x : ball_unknown();
}

static const ev_tensor *choose(ev *e, const ev_tensor *c, const ev_tensor *x, const ev_tensor *y,
                               char kind) {
  if (!ev_broadcast(e, &c, &x, 0) || !ev_broadcast(e, &c, &y, 0) || !ev_broadcast(e, &x, &y, 0))
    return NULL;
  ev_tensor *r = ev_new(e, kind, x->rank, x->dim);
  for (int64_t i = 0; r && i < r->n; i++) r->v[i] = chosen(c->v[i], x->v[i], y->v[i]);
  return r;
}

static const ev_tensor *where(ev *e, const rule_term *t, int which) {
  (void)which;
  if (t->n != 3) return ev_fail(e, t->u.s);
  const ev_tensor *c = ev_arg(e, t, 0), *x = ev_arg(e, t, 1), *y = ev_arg(e, t, 2);
  return c && x && y ? choose(e, c, x, y, joint(x, y)) : NULL;
}

static const ev_tensor *masked_fill(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *x = ev_arg(e, t, 0), *c = ev_arg(e, t, 1), *y = ev_arg(e, t, 2);
  return c && x && y ? choose(e, c, y, x, x->kind) : NULL;
}

/* The lower bound first: where they are exchanged, the upper one counts. `which`: bits of the
 * bounds that arguments 1, 2 are. */
static const ev_tensor *clamp(ev *e, const rule_term *t, int which) {
  const ev_tensor *x = ev_arg(e, t, 0);
  const uint32_t high = which == 3 ? 2 : 1;
  if (x && (which & 1) && !ev_none(t, 1)) {
    const ev_tensor *low = ev_arg(e, t, 1);
    x = low ? ev_zip(e, x, low, joint(x, low), ball_max) : NULL;
  }
  if (x && (which & 2) && !ev_none(t, high)) {
    const ev_tensor *y = ev_arg(e, t, high);
    x = y ? ev_zip(e, x, y, joint(x, y), ball_min) : NULL;
  }
  return x;
}

/* self + value * a * b, or a / b. */
static const ev_tensor *addc(ev *e, const rule_term *t, int which) {
  const ev_tensor *s = ev_arg(e, t, 0), *a = ev_arg(e, t, 1), *b = ev_arg(e, t, 2),
                  *v = ev_arg(e, t, 3);
  const ev_tensor *p = ev_zip(e, ev_zip(e, a, b, 'f', binary[which]), v, 'f', ball_mul);
  return ev_zip(e, s, p, 'f', ball_add);
}

static const ev_tensor *lerp(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1), *w = ev_arg(e, t, 2);
  return ev_zip(e, a, ev_zip(e, w, ev_zip(e, b, a, 'f', ball_sub), 'f', ball_mul), 'f', ball_add);
}

static const ev_tensor *kernel_gelu(ev *e, const rule_term *t, int which) {
  return ev_map(e, ev_arg(e, t, 0), 'f', which ? quick : ball_gelu_tanh);
}

/* log(1 + e^y) / beta of y = beta x, and x itself above the threshold for y. */
static const ev_tensor *softplus_op(ev *e, const rule_term *t, int which) {
  (void)which;
  ball beta = ball_exact(1), most = ball_exact(20);
  const ev_tensor *x = ev_arg(e, t, 0);
  if (!x || (!ev_none(t, 1) && !ev_number(e, t, 1, &beta)) ||
      (!ev_none(t, 2) && !ev_number(e, t, 2, &most)))
    return NULL;
  const ev_tensor *by = ev_scalar(e, beta, 'f'), *y = ev_zip(e, x, by, 'f', ball_mul),
                  *below = ev_zip(e, ev_map(e, y, 'f', softplus), by, 'f', ball_div),
                  *above = y ? ev_zip(e, ev_scalar(e, most, 'f'), y, 'b', ball_less) : NULL;
  return above && below ? choose(e, above, x, below, 'f') : NULL;
}

#define PLAIN(name) \
  { "aten::" name, by_table, 0 }
#define BOTH(name, w) \
  {"aten::" name ".Tensor", two, w}, { "aten::" name ".Scalar", two, w }
const ev_op ev_elementwise[] = {PLAIN("alias"),
                                PLAIN("detach"),
                                PLAIN("clone"),
                                PLAIN("contiguous"),
                                PLAIN("lift_fresh"),
                                PLAIN("lift_fresh_copy"),
                                PLAIN("neg"),
                                PLAIN("negative"),
                                PLAIN("positive"),
                                PLAIN("abs"),
                                PLAIN("relu"),
                                PLAIN("relu6"),
                                PLAIN("square"),
                                PLAIN("sign"),
                                PLAIN("sgn"),
                                PLAIN("floor"),
                                PLAIN("ceil"),
                                PLAIN("trunc"),
                                PLAIN("fix"),
                                PLAIN("round"),
                                PLAIN("frac"),
                                PLAIN("exp"),
                                PLAIN("exp2"),
                                PLAIN("expm1"),
                                PLAIN("log"),
                                PLAIN("log1p"),
                                PLAIN("log2"),
                                PLAIN("sqrt"),
                                PLAIN("rsqrt"),
                                PLAIN("reciprocal"),
                                PLAIN("sin"),
                                PLAIN("cos"),
                                PLAIN("tan"),
                                PLAIN("tanh"),
                                PLAIN("erf"),
                                PLAIN("erfc"),
                                PLAIN("sigmoid"),
                                PLAIN("silu"),
                                PLAIN("mish"),
                                PLAIN("log_sigmoid"),
                                PLAIN("hardswish"),
                                PLAIN("hardsigmoid"),
                                PLAIN("logical_not"),
                                {"aten::gelu", gelu, 0},
                                {"aten::bitwise_not", inverse, 0},
                                {"aten::leaky_relu", leaky_relu, 0},
                                {"aten::softplus", softplus_op, 0},
                                {"aten::to.dtype", to, 1},
                                {"aten::to.dtype_layout", to, 1},
                                {"aten::_to_copy", to, 1},
                                {"aten::to.other", alike, 0},
                                {"aten::type_as", alike, 0},
                                {"aten::copy", alike, 1},
                                {"aten::dropout", dropout, 0},
                                BOTH("add", ADD),
                                BOTH("sub", SUB),
                                BOTH("rsub", RSUB),
                                BOTH("mul", MUL),
                                BOTH("div", DIV),
                                BOTH("lt", LT),
                                BOTH("le", LE),
                                BOTH("gt", GT),
                                BOTH("ge", GE),
                                BOTH("eq", EQ),
                                BOTH("ne", NE),
                                {"aten::subtract.Tensor", two, SUB},
                                {"aten::multiply.Tensor", two, MUL},
                                {"aten::divide.Tensor", two, DIV},
                                {"aten::true_divide.Tensor", two, DIV},
                                {"aten::maximum", two, MAX},
                                {"aten::minimum", two, MIN},
                                {"aten::max.other", two, MAX},
                                {"aten::min.other", two, MIN},
                                {"aten::logical_and", two, AND},
                                {"aten::logical_or", two, OR},
                                {"aten::logical_xor", two, XOR},
                                {"aten::pow.Tensor_Scalar", two, POW},
                                {"aten::pow.Tensor_Tensor", two, POW},
                                {"aten::pow.Scalar", two, POW},
                                {"aten::__and__.Tensor", bitwise, AND},
                                {"aten::__or__.Tensor", bitwise, OR},
                                {"aten::__xor__.Tensor", bitwise, XOR},
                                {"aten::bitwise_and.Tensor", bitwise, AND},
                                {"aten::bitwise_or.Tensor", bitwise, OR},
                                {"aten::bitwise_xor.Tensor", bitwise, XOR},
                                {"aten::div.Tensor_mode", div_mode, 0},
                                {"aten::div.Scalar_mode", div_mode, 0},
                                {"aten::floor_divide", floor_div, 0},
                                {"aten::floor_divide.Scalar", floor_div, 0},
                                {"aten::where.self", where, 0},
                                {"aten::where.Scalar", where, 0},
                                {"aten::where.ScalarOther", where, 0},
                                {"aten::where.ScalarSelf", where, 0},
                                {"aten::masked_fill.Scalar", masked_fill, 0},
                                {"aten::masked_fill.Tensor", masked_fill, 0},
                                {"aten::clamp", clamp, 3},
                                {"aten::clamp.Tensor", clamp, 3},
                                {"aten::clamp_min", clamp, 1},
                                {"aten::clamp_max", clamp, 2},
                                {"aten::clamp_min.Tensor", clamp, 1},
                                {"aten::clamp_max.Tensor", clamp, 2},
                                {"aten::hardtanh", clamp, 3},
                                {"aten::addcmul", addc, MUL},
                                {"aten::addcdiv", addc, DIV},
                                {"aten::lerp.Tensor", lerp, 0},
                                {"aten::lerp.Scalar", lerp, 0},
                                {"_C::gelu_new.isomer", kernel_gelu, 0},
                                {"_C::gelu_fast.isomer", kernel_gelu, 0},
                                {"_C::gelu_quick.isomer", kernel_gelu, 1},
                                {NULL, NULL, 0}};
