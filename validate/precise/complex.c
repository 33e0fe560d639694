/* Operators on tensors of complex numbers, in intervals of their parts. Where a function has a cut,
 * a number that may lie on either side of it is open. */
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <string.h>

typedef struct cn {
  vn *re, *im;
} cn;

static vn *new_number(vp *v) {
  const vp_tensor *t = vp_new(v, RULE_F64, &(rule_shape){0});
  return t ? t->x : NULL;
}

static bool new_complex(vp *v, cn *z) {
  *z = (cn){new_number(v), new_number(v)};
  return z->re && z->im;
}

static cn at(const vp_tensor *t, int64_t i) { return (cn){&t->x[2 * i], &t->x[2 * i + 1]}; }

static void set(cn r, cn a) {
  vn_set(r.re, a.re);
  vn_set(r.im, a.im);
}

static void by_name(vp *v, const char *name, vn *r, const vn *a) {
  vn_unary_find(name, &(int){0})(v, r, a);
}

/* ---- numbers: `t` and `s` are scratch, and no operand is one of them ---- */

typedef struct scratch {
  vp *v;
  cn t, s;
  vn *one;
} scratch;

typedef void (*c_unary)(scratch *w, cn r, cn a);
typedef void (*c_binary)(scratch *w, cn r, cn a, cn b);

static void c_add(scratch *w, cn r, cn a, cn b) {
  vn_add(w->v, r.re, a.re, b.re);
  vn_add(w->v, r.im, a.im, b.im);
}

static void c_sub(scratch *w, cn r, cn a, cn b) {
  vn_sub(w->v, r.re, a.re, b.re);
  vn_sub(w->v, r.im, a.im, b.im);
}

static void c_mul(scratch *w, cn r, cn a, cn b) {
  vn_mul(w->v, w->t.re, a.re, b.re);
  vn_mul(w->v, w->s.re, a.im, b.im);
  vn_mul(w->v, w->t.im, a.re, b.im);
  vn_mul(w->v, w->s.im, a.im, b.re);
  vn_sub(w->v, r.re, w->t.re, w->s.re);
  vn_add(w->v, r.im, w->t.im, w->s.im);
}

static void c_square(scratch *w, cn r, cn a) { c_mul(w, r, a, a); }

static void c_neg(scratch *w, cn r, cn a) {
  by_name(w->v, "neg", r.re, a.re);
  by_name(w->v, "neg", r.im, a.im);
}

/* |a|^2 */
static void norm(scratch *w, vn *r, cn a) {
  vn_square(w->v, w->t.re, a.re);
  vn_square(w->v, w->t.im, a.im);
  vn_add(w->v, r, w->t.re, w->t.im);
}

static void c_recip(scratch *w, cn r, cn a) {
  norm(w, w->s.re, a);
  vn_div(w->v, r.re, a.re, w->s.re);
  by_name(w->v, "neg", w->s.im, a.im);
  vn_div(w->v, r.im, w->s.im, w->s.re);
}

static void c_div(scratch *w, cn r, cn a, cn b) {
  cn q;
  if (!new_complex(w->v, &q)) return;
  c_recip(w, q, b);
  c_mul(w, r, a, q);
}

/* e^x cos y, e^x sin y */
static void c_exp(scratch *w, cn r, cn a) {
  vn_exp(w->v, w->t.re, a.re);
  by_name(w->v, "cos", w->s.re, a.im);
  by_name(w->v, "sin", w->s.im, a.im);
  vn_mul(w->v, r.re, w->t.re, w->s.re);
  vn_mul(w->v, r.im, w->t.re, w->s.im);
}

static void angle(scratch *w, vn *r, cn a) {
  vn_binary_find("atan2", &(int){0})(w->v, r, a.im, a.re);
}

static void c_log(scratch *w, cn r, cn a) {
  norm(w, w->s.re, a);
  angle(w, w->s.im, a);
  vn_log(w->v, r.re, w->s.re);
  vn_div(w->v, r.re, r.re, w->one);
  vn_set(r.im, w->s.im);
}

static void c_abs(scratch *w, cn r, cn a) {
  norm(w, w->s.re, a);
  vn_sqrt(w->v, r.re, w->s.re);
}

static void c_angle(scratch *w, cn r, cn a) {
  angle(w, w->s.re, a);
  vn_set(r.re, w->s.re);
}

static bool is_zero(cn a) {
  return mpfr_zero_p(&a.re->lo) && mpfr_zero_p(&a.re->hi) && mpfr_zero_p(&a.im->lo) &&
         mpfr_zero_p(&a.im->hi);
}

/* e^(b log a); 0 where a is 0 and b is above it. */
static void c_pow(scratch *w, cn r, cn a, cn b) {
  cn q;
  if (!new_complex(w->v, &q)) return;
  if (is_zero(a) && mpfr_sgn(&b.re->lo) > 0) {
    set(r, a);
    return;
  }
  c_log(w, q, a);
  c_mul(w, q, q, b);
  c_exp(w, r, q);
}

static void c_sqrt(scratch *w, cn r, cn a) {
  cn half;
  if (!new_complex(w->v, &half)) return;
  vn_double(w->v, half.re, 0.5);
  c_pow(w, r, a, half);
}

static void c_sin(scratch *w, cn r, cn a) { /* sin x cosh y, cos x sinh y */
  by_name(w->v, "sin", w->t.re, a.re);
  by_name(w->v, "cosh", w->s.re, a.im);
  by_name(w->v, "cos", w->t.im, a.re);
  by_name(w->v, "sinh", w->s.im, a.im);
  vn_mul(w->v, r.re, w->t.re, w->s.re);
  vn_mul(w->v, r.im, w->t.im, w->s.im);
}

static void c_cos(scratch *w, cn r, cn a) { /* cos x cosh y, -sin x sinh y */
  by_name(w->v, "cos", w->t.re, a.re);
  by_name(w->v, "cosh", w->s.re, a.im);
  by_name(w->v, "sin", w->t.im, a.re);
  by_name(w->v, "sinh", w->s.im, a.im);
  vn_mul(w->v, r.re, w->t.re, w->s.re);
  vn_mul(w->v, r.im, w->t.im, w->s.im);
  by_name(w->v, "neg", r.im, r.im);
}

static void c_sigmoid(scratch *w, cn r, cn a) {
  cn q;
  if (!new_complex(w->v, &q)) return;
  c_neg(w, q, a);
  c_exp(w, q, q);
  vn_int(w->v, w->t.re, 1);
  vn_add(w->v, q.re, q.re, w->t.re);
  c_recip(w, r, q);
}

/* 2 sigmoid(2a) - 1 */
static void c_tanh(scratch *w, cn r, cn a) {
  cn q;
  if (!new_complex(w->v, &q)) return;
  c_add(w, q, a, a);
  c_sigmoid(w, q, q);
  c_add(w, r, q, q);
  vn_int(w->v, w->t.re, 1);
  vn_sub(w->v, r.re, r.re, w->t.re);
}

static void c_sgn(scratch *w, cn r, cn a) {
  if (is_zero(a)) {
    set(r, a);
    return;
  }
  c_abs(w, r, a);
  vn_set(w->t.re, r.re);
  vn_div(w->v, r.re, a.re, w->t.re);
  vn_div(w->v, r.im, a.im, w->t.re);
}

static const struct {
  const char *name;
  c_unary f;
  bool real; /* the result */
} unary_table[] = {
    {"neg", c_neg, false},          {"negative", c_neg, false},    {"exp", c_exp, false},
    {"log", c_log, false},          {"sqrt", c_sqrt, false},       {"abs", c_abs, true},
    {"absolute", c_abs, true},      {"angle", c_angle, true},      {"square", c_square, false},
    {"reciprocal", c_recip, false}, {"sin", c_sin, false},         {"cos", c_cos, false},
    {"tanh", c_tanh, false},        {"sigmoid", c_sigmoid, false}, {"sgn", c_sgn, false}};

static const struct {
  const char *name;
  c_binary f;
} binary_table[] = {{"add", c_add},    {"sub", c_sub},         {"subtract", c_sub},
                    {"mul", c_mul},    {"multiply", c_mul},    {"div", c_div},
                    {"divide", c_div}, {"true_divide", c_div}, {"pow", c_pow}};

/* ---- tensors ---- */

static bool start(vp *v, scratch *w) {
  *w = (scratch){.v = v, .one = new_number(v)};
  if (!w->one || !new_complex(v, &w->t) || !new_complex(v, &w->s)) return false;
  vn_int(v, w->one, 2); /* what a logarithm of a square is divided by */
  return true;
}

/* Element `i` of a result of shape `to`, of an operand that broadcasts: any tensor, or a number. */
static bool operand(vp *v, const vp_call *k, const rule_term *a, const rule_shape *to, int64_t i,
                    cn r) {
  vn_int(v, r.im, 0);
  if (a->kind == RULE_INT || a->kind == RULE_BOOLEAN) vn_int(v, r.re, a->u.i);
  else if (a->kind == RULE_FLOAT) vn_literal(v, r.re, a->u.f);
  else if (a->kind != RULE_VAR) return false;
  if (a->kind != RULE_VAR) return true;
  const vp_tensor *t = k->in[a->u.i];
  int64_t from = 0, stride = 1;
  for (uint32_t d = to->rank; d-- > 0; i /= to->dim[d]) {
    const uint32_t lead = to->rank - t->shape.rank;
    if (t->shape.rank > to->rank || d < lead) continue;
    const int64_t size = t->shape.dim[d - lead];
    if (size != 1) from += i % to->dim[d] * stride;
    stride *= size;
  }
  if (rule_dtype_is_complex(t->dtype)) set(r, at(t, from));
  else if (t->x) vn_set(r.re, &t->x[from]);
  else vn_int(v, r.re, rule_tensor_get_int(t->plain, from));
  return true;
}

static void store(vp_tensor *out, int64_t i, cn z) {
  if (rule_dtype_is_complex(out->dtype)) set(at(out, i), z);
  else vn_set(&out->x[i], z.re);
}

static const vp_tensor *unary(vp *v, const vp_call *k, c_unary f) {
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  scratch w;
  cn a, r;
  if (!out || !start(v, &w) || !new_complex(v, &a) || !new_complex(v, &r)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 100); i++) {
    if (!operand(v, k, k->call->child[0], &out->shape, i, a)) return NULL;
    f(&w, r, a);
    store(out, i, r);
  }
  return out;
}

static bool whole(cn b, long *n) {
  if (!mpfr_zero_p(&b.im->lo) || !mpfr_zero_p(&b.im->hi) || !mpfr_equal_p(&b.re->lo, &b.re->hi))
    return false;
  *n = mpfr_integer_p(&b.re->lo) && mpfr_fits_slong_p(&b.re->lo, MPFR_RNDN)
           ? mpfr_get_si(&b.re->lo, MPFR_RNDN)
           : 1000;
  return *n <= 16 && *n >= -16;
}

/* Small whole powers have no cut. */
static void power(scratch *w, cn r, cn a, cn b) {
  long n;
  cn q;
  if (!whole(b, &n)) {
    c_pow(w, r, a, b);
    return;
  }
  if (!new_complex(w->v, &q)) return;
  vn_int(w->v, q.re, 1);
  vn_int(w->v, q.im, 0);
  for (long i = 0; i < (n < 0 ? -n : n); i++) c_mul(w, q, q, a);
  if (n < 0) c_recip(w, r, q);
  else set(r, q);
}

static const vp_tensor *binary(vp *v, const vp_call *k, const rule_term *left,
                               const rule_term *right, c_binary f) {
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  const rule_term *alpha = vp_arg(k, "alpha");
  const bool scaled = alpha && alpha->kind != RULE_NONE;
  scratch w;
  cn a, b, r, by;
  if (!out || !start(v, &w) || !new_complex(v, &a) || !new_complex(v, &b) || !new_complex(v, &r) ||
      !new_complex(v, &by))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, f == c_pow ? 150 : 12); i++) {
    if (!operand(v, k, left, &out->shape, i, a) || !operand(v, k, right, &out->shape, i, b))
      return NULL;
    if (scaled && !operand(v, k, alpha, &(rule_shape){0}, 0, by)) return NULL;
    if (scaled) c_mul(&w, b, b, by);
    (f == c_pow ? power : f)(&w, r, a, b);
    store(out, i, r);
  }
  return out;
}

/* Sums and products over dimensions; `dim` is a list, an integer, or left out. */
static bool reduced(const rule_term *dim, uint32_t rank, bool *in) {
  const bool all = !dim || dim->kind == RULE_NONE || (dim->kind == RULE_LIST && dim->n == 0);
  for (uint32_t d = 0; d < rank; d++) in[d] = all;
  for (uint32_t i = 0; !all && i < (dim->kind == RULE_LIST ? dim->n : 1); i++) {
    const rule_term *one = dim->kind == RULE_LIST ? dim->child[i] : dim;
    if (one->kind != RULE_INT) return false;
    const int64_t d = one->u.i < 0 ? one->u.i + rank : one->u.i;
    if (d < 0 || d >= (int64_t)rank) return rank == 0;
    in[d] = true;
  }
  return true;
}

static const vp_tensor *reduction(vp *v, const vp_call *k) {
  const rule_term *of = k->call->child[0];
  const vp_tensor *x = of->kind == RULE_VAR ? k->in[of->u.i] : NULL;
  const bool product = strcmp(k->name, "prod") == 0;
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  bool in[RULE_MAX_RANK];
  scratch w;
  cn a;
  if (!x || !out || !reduced(vp_arg(k, "dim"), x->shape.rank, in) || !start(v, &w) ||
      !new_complex(v, &a))
    return NULL;
  for (int64_t i = 0; i < out->n; i++) vn_int(v, out->x + 2 * i, product);
  for (int64_t i = 0; i < x->n && vp_go(v, 8); i++) {
    int64_t to = 0, stride = 1, rest = i;
    for (uint32_t d = x->shape.rank; d-- > 0; rest /= x->shape.dim[d]) {
      if (in[d]) continue;
      to += rest % x->shape.dim[d] * stride;
      stride *= x->shape.dim[d];
    }
    if (!operand(v, k, of, &x->shape, i, a)) return NULL;
    (product ? c_mul : c_add)(&w, at(out, to), at(out, to), a);
  }
  vn_int(v, w.one, out->n ? x->n / out->n : 1);
  for (int64_t i = 0; i < 2 * out->n && strcmp(k->name, "mean") == 0 && vp_go(v, 2); i++)
    vn_div(v, &out->x[i], &out->x[i], w.one);
  return out;
}

/* From the front on. */
static const vp_tensor *running(vp *v, const vp_call *k) {
  const rule_term *of = k->call->child[0], *dim = vp_arg(k, "dim");
  const vp_tensor *x = of->kind == RULE_VAR ? k->in[of->u.i] : NULL;
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  bool in[RULE_MAX_RANK];
  scratch w;
  int64_t stride = 1, size = 1;
  if (!x || !out || !dim || !reduced(dim, x->shape.rank, in) || !start(v, &w)) return NULL;
  for (uint32_t d = x->shape.rank; d-- > 0 && size == 1;)
    if (in[d]) size = x->shape.dim[d] > 1 ? x->shape.dim[d] : 0;
    else stride *= x->shape.dim[d];
  for (int64_t i = 0; i < x->n && vp_go(v, 8); i++) {
    const bool first = size <= 1 || i / stride % size == 0;
    if (first) set(at(out, i), at(x, i));
    else if (strcmp(k->name, "cumprod") == 0) c_mul(&w, at(out, i), at(out, i - stride), at(x, i));
    else c_add(&w, at(out, i), at(out, i - stride), at(x, i));
  }
  return out;
}

/* A matrix, or several, by another: both with as many batches. */
static const vp_tensor *product(vp *v, const vp_call *k) {
  if (k->call->child[0]->kind != RULE_VAR || k->call->child[1]->kind != RULE_VAR) return NULL;
  const vp_tensor *a = k->in[k->call->child[0]->u.i], *b = k->in[k->call->child[1]->u.i];
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  const uint32_t rank = a->shape.rank;
  scratch w;
  cn p;
  if (!out || rank < 2 || b->shape.rank != rank || !start(v, &w) || !new_complex(v, &p) ||
      !rule_dtype_is_complex(a->dtype) || !rule_dtype_is_complex(b->dtype))
    return NULL;
  for (uint32_t d = 0; d + 2 < rank; d++)
    if (a->shape.dim[d] != b->shape.dim[d]) return NULL;
  const int64_t m = a->shape.dim[rank - 2], n = b->shape.dim[rank - 1], l = b->shape.dim[rank - 2];
  for (int64_t i = 0; i < out->n && vp_go(v, 8 * l); i++)
    for (int64_t j = 0; j < l; j++) {
      const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
      c_mul(&w, p, at(a, (batch * m + row) * l + j), at(b, (batch * l + j) * n + column));
      c_add(&w, at(out, i), at(out, i), p);
    }
  return out;
}

/* By a modulus and an angle. */
static const vp_tensor *polar(vp *v, const vp_call *k) {
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  scratch w;
  cn size, turn;
  if (!out || !start(v, &w) || !new_complex(v, &size) || !new_complex(v, &turn)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 60); i++) {
    if (!operand(v, k, k->call->child[0], &out->shape, i, size) ||
        !operand(v, k, k->call->child[1], &out->shape, i, turn))
      return NULL;
    by_name(v, "cos", w.s.re, turn.re);
    by_name(v, "sin", w.s.im, turn.re);
    vn_mul(v, at(out, i).re, size.re, w.s.re);
    vn_mul(v, at(out, i).im, size.re, w.s.im);
  }
  return out;
}

static const vp_tensor *compared(vp *v, const vp_call *k) {
  vp_tensor *out = vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
  const bool differs = k->name[0] == 'n';
  cn a, b;
  if (!out || !out->plain || !new_complex(v, &a) || !new_complex(v, &b)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 2); i++) {
    if (!operand(v, k, k->call->child[0], &out->shape, i, a) ||
        !operand(v, k, k->call->child[1], &out->shape, i, b))
      return NULL;
    const int re = vn_compare(a.re, b.re), im = vn_compare(a.im, b.im);
    const bool apart = re == 1 || re == -1 || im == 1 || im == -1;
    v->open |= !apart && (re == 2 || im == 2);
    rule_tensor_set(out->plain, i, apart == differs);
  }
  return out;
}

static const vp_tensor *other(vp *v, const vp_call *k, bool *known) {
  static const struct {
    const char *name;
    const vp_tensor *(*f)(vp *v, const vp_call *k);
  } table[] = {{"sum", reduction},   {"mean", reduction}, {"prod", reduction}, {"cumsum", running},
               {"cumprod", running}, {"mm", product},     {"bmm", product},    {"matmul", product},
               {"polar", polar},     {"eq", compared},    {"ne", compared}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, k->name) == 0) return table[i].f(v, k);
  *known = false;
  return NULL;
}

const vp_tensor *vp_compute_complex(vp *v, const vp_call *k, bool *known) {
  *known = true;
  for (size_t i = 0; i < sizeof unary_table / sizeof *unary_table && k->call->n == 1; i++)
    if (strcmp(unary_table[i].name, k->name) == 0 &&
        rule_dtype_is_complex(k->got[0]->dtype) != unary_table[i].real)
      return unary(v, k, unary_table[i].f);
  for (size_t i = 0; i < sizeof binary_table / sizeof *binary_table && k->call->n >= 2; i++)
    if (strcmp(binary_table[i].name, k->name) == 0 && rule_dtype_is_complex(k->got[0]->dtype) &&
        !vp_arg(k, "rounding_mode"))
      return binary(v, k, k->call->child[0], k->call->child[1], binary_table[i].f);
  return other(v, k, known);
}
#endif
