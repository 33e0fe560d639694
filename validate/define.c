/* Arguments of calls, and the definitions of elementwise operators. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/encode_int.h"

/* ---- arguments ---- */

const rule_term *pv_arg(pv_call_args *a, const char *name) {
  for (size_t i = 0; i < a->schema->n_args; i++)
    if (!strcmp(a->schema->arg[i].name, name)) return a->t->child[i]->kind == RULE_NONE ? NULL : a->t->child[i];
  return NULL;
}

pv_tensor *pv_arg_tensor(pv_call_args *a, const char *name) {
  const rule_term *t = pv_arg(a, name);
  if (!t) return NULL;
  if (t->kind != RULE_VAR && t->kind != RULE_OP) {
    /* A number where the schema has a tensor is a 0-dim tensor. */
    char kind = 'f';
    pv_id e = pv_arg_scalar(a, name, &kind);
    pv_tensor *s = pv_tensor_new(a->c, kind, &(rule_shape){.rank = 0});
    if (s) s->e[0] = e;
    return s;
  }
  return pv_eval_tensor(a->c, t);
}

size_t pv_arg_tensors(pv_call_args *a, const char *name, pv_tensor ***out) {
  const rule_term *t = pv_arg(a, name);
  if (!t || t->kind != RULE_LIST) {
    pv_fail(a->c, "%s without a list of tensors", a->schema->name);
    return 0;
  }
  *out = iso_arena_alloc(&a->c->arena, t->n * sizeof **out);
  if (!*out) {
    a->c->no_memory = true;
    pv_fail(a->c, "out of memory");
  }
  for (uint32_t i = 0; i < t->n && !a->c->failed; i++) (*out)[i] = pv_eval_tensor(a->c, t->child[i]);
  return a->c->failed ? 0 : t->n;
}

static bool int_of(pv_cx *c, const rule_term *t, int64_t *out) {
  int64_t x, y;
  if (t->kind == RULE_INT || t->kind == RULE_BOOLEAN) {
    *out = t->u.i;
    return true;
  }
  if (t->kind == RULE_EXPR && t->n == 2 && strlen(t->u.s) == 1 && strchr("+-*", t->u.s[0]) &&
      int_of(c, t->child[0], &x) && int_of(c, t->child[1], &y)) {
    bool over = t->u.s[0] == '+'   ? __builtin_add_overflow(x, y, out)
                : t->u.s[0] == '-' ? __builtin_sub_overflow(x, y, out)
                                   : __builtin_mul_overflow(x, y, out);
    if (!over) return true;
  }
  pv_fail(c, "a symbolic attribute");
  return false;
}

int64_t pv_arg_int(pv_call_args *a, const char *name, int64_t if_none) {
  const rule_term *t = pv_arg(a, name);
  int64_t v = if_none;
  if (t && !int_of(a->c, t, &v)) return if_none;
  return v;
}

double pv_arg_float(pv_call_args *a, const char *name, double if_none) {
  const rule_term *t = pv_arg(a, name);
  int64_t v = 0;
  if (!t) return if_none;
  if (t->kind == RULE_FLOAT) return t->u.f;
  return int_of(a->c, t, &v) ? (double)v : if_none;
}

bool pv_arg_ints(pv_call_args *a, const char *name, int64_t *out, uint32_t *n) {
  const rule_term *t = pv_arg(a, name);
  *n = 0;
  if (!t) return false;
  if (t->kind != RULE_LIST) {
    *n = 1;
    return int_of(a->c, t, out);
  }
  if (t->n > RULE_MAX_RANK) {
    pv_fail(a->c, "a list of more than %d numbers", (int)RULE_MAX_RANK);
    return false;
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!int_of(a->c, t->child[i], &out[i])) return false;
  *n = t->n;
  return true;
}

bool pv_arg_is(pv_call_args *a, const char *name, const char *text) {
  const rule_term *t = pv_arg(a, name);
  if (t && t->kind != RULE_STRING) pv_fail(a->c, "a string attribute that is not a literal");
  return t && t->kind == RULE_STRING && !strcmp(t->u.s, text);
}

bool pv_arg_dtype(pv_call_args *a, const char *name, rule_dtype *out) {
  const rule_term *t = pv_arg(a, name);
  if (!t) return false;
  if (t->kind != RULE_DTYPE) {
    pv_fail(a->c, "a dtype that is not a literal");
    return false;
  }
  *out = (rule_dtype)t->u.i;
  return true;
}

/* Numbers and, as arbitrary reals, the rule's attributes. */
static pv_id scalar_of(pv_cx *c, const rule_term *t, char *kind) {
  pv_id x, y;
  char k = 'i';
  switch (t->kind) {
  case RULE_INT: *kind = 'i'; return pv_int(c, t->u.i);
  case RULE_BOOLEAN: *kind = 'b'; return pv_bool(c, t->u.i);
  case RULE_FLOAT: *kind = 'f'; return pv_literal(c, t->u.f);
  case RULE_NAME:
    for (uint32_t i = 0; i < c->r->n_attrs; i++)
      if (!strcmp(c->r->attr[i].name, t->u.s) && c->r->attr[i].kind == 'f') {
        *kind = 'f';
        return c->attr_leaf[i];
      }
    break;
  case RULE_EXPR:
    if (t->n != 2 || strlen(t->u.s) != 1 || !strchr("+-*", t->u.s[0])) break;
    x = scalar_of(c, t->child[0], kind);
    y = scalar_of(c, t->child[1], &k);
    if (*kind == 'b' || k == 'b' || c->failed) break;
    if (k == 'f') *kind = 'f';
    return t->u.s[0] == '+' ? pv_add(c, x, y) : t->u.s[0] == '-' ? pv_sub(c, x, y) : pv_mul(c, x, y);
  default: break;
  }
  pv_fail(c, "an attribute that is not a number");
  return c->zero;
}

pv_id pv_arg_scalar(pv_call_args *a, const char *name, char *kind) {
  const rule_term *t = pv_arg(a, name);
  if (!t) {
    pv_fail(a->c, "%s without %s", a->schema->name, name);
    return a->c->zero;
  }
  return scalar_of(a->c, t, kind);
}

bool pv_dim(pv_cx *c, int64_t d, uint32_t rank, uint32_t *out) {
  int64_t r = rank ? rank : 1; /* a 0-dim tensor takes dimensions 0 and -1 */
  if (d < -r || d >= r) {
    pv_fail(c, "a dimension out of range");
    return false;
  }
  *out = (uint32_t)(d < 0 ? d + r : d);
  return true;
}

/* ---- kinds and broadcasting ---- */

static pv_id convert(pv_cx *c, pv_id e, char from, char to) {
  if (from == to || (from == 'i' && to == 'f')) return e;
  if (from == 'b') return pv_ite(c, e, c->one, c->zero);
  if (to == 'b') return pv_not(c, pv_eq(c, e, c->zero));
  pv_fail(c, "a cast from float to int");
  return e;
}

pv_tensor *pv_kind(pv_cx *c, pv_tensor *t, char kind) {
  if (!t || t->kind == kind) return t;
  pv_tensor *r = pv_tensor_new(c, kind, &t->s);
  for (int64_t i = 0; r && i < t->n; i++) r->e[i] = convert(c, t->e[i], t->kind, kind);
  return r;
}

static char wider(char a, char b) { return a == 'f' || b == 'f' ? 'f' : a == 'i' || b == 'i' ? 'i' : 'b'; }

bool pv_broadcast(pv_cx *c, const rule_shape *a, const rule_shape *b, rule_shape *out) {
  rule_shape r = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (uint32_t k = 0; k < r.rank; k++) {
    uint32_t back = r.rank - k;
    int64_t x = back <= a->rank ? a->dim[a->rank - back] : 1, y = back <= b->rank ? b->dim[b->rank - back] : 1;
    if (x != y && x != 1 && y != 1) {
      pv_fail(c, "shapes that do not broadcast");
      return false;
    }
    r.dim[k] = x == 1 ? y : x;
  }
  *out = r;
  return true;
}

/* Bring several tensors to one shape. */
static bool align(pv_cx *c, pv_tensor **t, size_t n, rule_shape *s) {
  *s = (rule_shape){.rank = 0};
  for (size_t i = 0; i < n; i++)
    if (!t[i] || (t[i]->kind != 'f' && t[i]->kind != 'i' && t[i]->kind != 'b')) {
      if (t[i]) pv_fail(c, "complex numbers");
      return false;
    } else if (!pv_broadcast(c, s, &t[i]->s, s)) {
      return false;
    }
  for (size_t i = 0; i < n; i++)
    if (!(t[i] = pv_expand(c, t[i], s))) return false;
  return true;
}

/* ---- unary ---- */

enum { NEG, ABS, SQUARE, SQRT, RSQRT, RECIPROCAL, EXP, LOG, TANH, SIGMOID, SILU, RELU, COS, SIN, ERF, GELU, NOT, BIT_NOT };

pv_id pv_sigmoid(pv_cx *c, pv_id x) {
  pv_id e = pv_exp(c, pv_neg(c, x));
  return pv_pow(c, pv_add(c, c->one, e), -1);
}

/* 1 - 2 / (1 + e^2x) */
pv_id pv_tanh(pv_cx *c, pv_id x) {
  pv_id e = pv_exp(c, pv_scale(c, pv_q_int(c, 2), x));
  pv_id inverse = pv_pow(c, pv_add(c, c->one, e), -1);
  return pv_sub(c, c->one, pv_scale(c, pv_q_int(c, 2), inverse));
}

/* x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
pv_id pv_gelu(pv_cx *c, pv_id x, bool approximate) {
  pv_id u;
  if (approximate) {
    pv_id cube = pv_scale(c, pv_q_double(c, 0.044715), pv_pow(c, x, 3));
    u = pv_tanh(c, pv_mul(c, pv_root(c), pv_add(c, x, cube)));
  } else {
    u = pv_call(c, PV_ERF, pv_div(c, x, pv_sqrt(c, pv_int(c, 2))));
  }
  pv_id half = pv_scale(c, pv_q_pow(c, pv_q_int(c, 2), -1), x);
  return pv_mul(c, half, pv_add(c, c->one, u));
}

static pv_id unary(pv_cx *c, int op, pv_id x, bool approximate) {
  switch (op) {
  case NEG: return pv_neg(c, x);
  case ABS: return pv_max2(c, x, pv_neg(c, x));
  case SQUARE: return pv_pow(c, x, 2);
  case SQRT: return pv_sqrt(c, x);
  case RSQRT: return pv_pow(c, pv_sqrt(c, x), -1);
  case RECIPROCAL: return pv_pow(c, x, -1);
  case EXP: return pv_exp(c, x);
  case LOG: return pv_call(c, PV_LOG, x);
  case TANH: return pv_tanh(c, x);
  case SIGMOID: return pv_sigmoid(c, x);
  case SILU: return pv_mul(c, x, pv_sigmoid(c, x));
  case RELU: return pv_max2(c, x, c->zero);
  case COS: return pv_call(c, PV_COS, x);
  case SIN: return pv_call(c, PV_SIN, x);
  case ERF: return pv_call(c, PV_ERF, x);
  case GELU: return pv_gelu(c, x, approximate);
  default: return pv_not(c, x);
  }
}

static pv_value *define_unary(pv_call_args *a, int op) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  bool approximate = false;
  if (!x) return NULL;
  if (op == GELU) {
    approximate = pv_arg_is(a, "approximate", "tanh");
    if (!approximate && !pv_arg_is(a, "approximate", "none")) return NULL;
  }
  bool keeps = op == NEG || op == ABS || op == SQUARE || op == RELU;
  if (keeps && x->kind == 'b') return NULL;
  if (op == BIT_NOT && x->kind != 'b') {
    if (x->kind == 'i') pv_fail(a->c, "bits of integers");
    return NULL;
  }
  if ((op == SILU || op == GELU) && x->kind != 'f') return NULL;
  if (op == NOT || op == BIT_NOT) x = pv_kind(c, x, 'b');
  else if (!keeps) x = pv_kind(c, x, 'f');
  pv_tensor *r = x ? pv_tensor_new(c, x->kind, &x->s) : NULL;
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) r->e[i] = unary(c, op, x->e[i], approximate);
  return pv_value_of(c, r);
}

/* ---- binary ---- */

enum { ADD, SUB, RSUB, MUL, DIV, MAXIMUM, MINIMUM, CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, AND, OR, BIT_AND, BIT_OR };

static pv_id compare(pv_cx *c, int op, pv_id x, pv_id y) {
  switch (op) {
  case CMP_EQ: return pv_eq(c, x, y);
  case CMP_NE: return pv_not(c, pv_eq(c, x, y));
  case CMP_LT: return pv_lt(c, x, y);
  case CMP_LE: return pv_not(c, pv_lt(c, y, x));
  case CMP_GT: return pv_lt(c, y, x);
  case CMP_GE: return pv_not(c, pv_lt(c, x, y));
  case AND: case BIT_AND: return pv_and(c, x, y);
  default: return pv_or(c, x, y);
  }
}

static pv_id binary(pv_cx *c, int op, pv_id x, pv_id y, pv_id alpha) {
  switch (op) {
  case ADD: return pv_add(c, x, alpha == c->one ? y : pv_mul(c, alpha, y));
  case SUB: return pv_sub(c, x, alpha == c->one ? y : pv_mul(c, alpha, y));
  case RSUB: return pv_sub(c, y, alpha == c->one ? x : pv_mul(c, alpha, x));
  case MUL: return pv_mul(c, x, y);
  case DIV: return pv_div(c, x, y);
  case MAXIMUM: return pv_max2(c, x, y);
  case MINIMUM: return pv_neg(c, pv_max2(c, pv_neg(c, x), pv_neg(c, y)));
  default: return compare(c, op, x, y);
  }
}

static pv_value *define_binary(pv_call_args *a, int op) {
  pv_cx *c = a->c;
  pv_tensor *t[2] = {pv_arg_tensor(a, "self"), pv_arg_tensor(a, "other")};
  rule_shape s;
  char alpha_kind = 'i';
  pv_id alpha = c->one;
  if (!align(c, t, 2, &s)) return NULL;
  if (pv_arg(a, "rounding_mode")) return NULL;
  if (pv_arg(a, "alpha")) alpha = pv_arg_scalar(a, "alpha", &alpha_kind);
  if (alpha_kind == 'b') return NULL;
  char kind = op == DIV ? 'f' : wider(t[0]->kind, t[1]->kind), result = kind;
  if (kind == 'b' && (op <= MUL || op == MAXIMUM || op == MINIMUM)) return NULL;
  if ((op == SUB || op == RSUB) && (t[0]->kind == 'b' || t[1]->kind == 'b')) return NULL;
  if (kind == 'i' && alpha_kind == 'f') return NULL;
  if (kind != 'b' && (op == BIT_AND || op == BIT_OR)) {
    if (kind == 'i') pv_fail(c, "bits of integers");
    return NULL;
  }
  if (op == AND || op == OR) kind = 'b';
  if (op >= CMP_EQ) {
    result = 'b';
    if (kind == 'b' && op < AND) kind = 'i'; /* compared as 0 and 1 */
  }
  for (int k = 0; k < 2; k++) t[k] = pv_kind(c, t[k], kind);
  pv_tensor *r = pv_tensor_new(c, result, &s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) r->e[i] = binary(c, op, t[0]->e[i], t[1]->e[i], alpha);
  return pv_value_of(c, r);
}

/* A number to the power of numbers. */
static pv_value *define_pow_scalar(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "exponent");
  char kind = 'i';
  const pv_id base = pv_arg_scalar(a, "self", &kind);
  uint32_t b, q;
  if (!x || c->failed || kind == 'b' || x->kind == 'b' || !pv_is_const(c, base, &b)) return NULL;
  pv_tensor *r = pv_tensor_new(c, kind == 'f' || x->kind == 'f' ? 'f' : 'i', &x->s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) {
    /* A root of a negative number, and 1 / 0, have no value. */
    if (!pv_is_const(c, x->e[i], &q) || pv_q_sign(c, b) <= 0 || (r->kind == 'i' && pv_q_sign(c, q) < 0)) return NULL;
    r->e[i] = pv_powq(c, base, q);
  }
  return pv_value_of(c, r);
}

static pv_value *define_pow(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  char kind = 'i';
  pv_id e = pv_arg_scalar(a, "exponent", &kind);
  const rule_term *t = pv_arg(a, "exponent");
  uint32_t q = PV_ONE_Q;
  if (!x || c->failed || kind == 'b' || x->kind == 'b') return NULL;
  /* The exponent as written: 0.7071... stands for no root here. */
  if (t->kind == RULE_FLOAT) q = pv_q_double(c, t->u.f);
  else if (!pv_is_const(c, e, &q)) return NULL;
  if (x->kind == 'i' && kind == 'i' && pv_q_sign(c, q) < 0) return NULL;
  if (kind == 'f') x = pv_kind(c, x, 'f');
  pv_tensor *r = x ? pv_tensor_new(c, x->kind, &x->s) : NULL;
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) r->e[i] = pv_powq(c, x->e[i], q);
  return pv_value_of(c, r);
}

static pv_value *define_clamp(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  char low_kind = 'i', high_kind = 'i';
  if (!x || x->kind == 'b') return NULL;
  pv_id low = pv_arg(a, "min") ? pv_arg_scalar(a, "min", &low_kind) : c->neginf;
  bool bounded = pv_arg(a, "max");
  pv_id high = bounded ? pv_neg(c, pv_arg_scalar(a, "max", &high_kind)) : c->zero;
  if (low_kind == 'b' || high_kind == 'b') return NULL;
  char kind = wider(x->kind, wider(low_kind, high_kind));
  pv_tensor *r = pv_tensor_new(c, kind, &x->s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) {
    pv_id e = pv_max2(c, x->e[i], low);
    r->e[i] = bounded ? pv_neg(c, pv_max2(c, pv_neg(c, e), high)) : e;
  }
  return pv_value_of(c, r);
}

/* ---- choices ---- */

enum { WHERE, MASKED_FILL };

static pv_value *define_where(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *t[3];
  rule_shape s;
  t[0] = pv_arg_tensor(a, which == WHERE ? "condition" : "mask");
  t[1] = pv_arg_tensor(a, which == WHERE ? "self" : "value");
  t[2] = pv_arg_tensor(a, which == WHERE ? "other" : "self");
  if (which == MASKED_FILL && (!t[1] || t[1]->s.rank)) return NULL;
  if (!align(c, t, 3, &s) || t[0]->kind != 'b') return NULL;
  char kind = which == WHERE ? wider(t[1]->kind, t[2]->kind) : t[2]->kind;
  if (which == MASKED_FILL && wider(kind, t[1]->kind) != kind) return NULL;
  for (int k = 1; k < 3; k++) t[k] = pv_kind(c, t[k], kind);
  pv_tensor *r = pv_tensor_new(c, kind, &s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++)
    r->e[i] = kind == 'b' ? pv_ite_bool(c, t[0]->e[i], t[1]->e[i], t[2]->e[i])
                          : pv_ite(c, t[0]->e[i], t[1]->e[i], t[2]->e[i]);
  return pv_value_of(c, r);
}

/* ---- casts and identities ---- */

enum { SAME, CAST, CAST_LIKE, COPY };

/* Integers up to this are exact in a floating dtype; 0 where all are taken to be. */
static int64_t exact_up_to(rule_dtype d) {
  switch (d) {
  case RULE_F64: return 0;
  case RULE_F32: return 1 << 24;
  case RULE_F16: return 1 << 11;
  case RULE_BF16: return 1 << 8;
  default: return 8;
  }
}

/* A cast of integers to a narrow float rounds: it is exact only for small known ones. */
static bool rounds(const pv_cx *c, const pv_tensor *x, rule_dtype d) {
  const int64_t most = exact_up_to(d);
  for (int64_t i = 0; x->kind == 'i' && most && i < x->n; i++) {
    uint32_t q;
    int64_t v;
    if (!pv_is_const(c, x->e[i], &q) || !pv_q_is_int(c, q, &v) || v > most || v < -most) return true;
  }
  return false;
}

static pv_tensor *cast(pv_cx *c, pv_tensor *x, rule_dtype d) {
  if (rule_dtype_is_complex(d)) return NULL;
  if (rule_dtype_is_float(d)) {
    if (rounds(c, x, d)) pv_fail(c, "a cast of integers that may round");
    return pv_kind(c, x, 'f');
  }
  if (d == RULE_BOOL) return pv_kind(c, x, 'b');
  /* Narrow integers would wrap; where the values come from is not known here. */
  if (d != RULE_I64 && x->kind != 'b') pv_fail(c, "a cast to a narrow integer type");
  return pv_kind(c, x, 'i');
}

static pv_value *define_cast(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  rule_dtype d;
  pv_tensor *x = pv_arg_tensor(a, which == SAME && !pv_arg(a, "self") ? "input" : "self");
  if (!x) return NULL;
  if (which == CAST && pv_arg_dtype(a, "dtype", &d)) x = cast(c, x, d);
  if (which == CAST_LIKE || which == COPY) {
    pv_tensor *o = pv_arg_tensor(a, which == COPY ? "src" : "other");
    if (!o) return NULL;
    if (which == COPY) {
      const pv_tensor *into = x;
      x = pv_expand(c, o, &into->s);
      o = pv_tensor_new(c, into->kind, &(rule_shape){.rank = 0});
    }
    if (!x || !o || o->kind == 'i' || (o->kind == 'f' && x->kind == 'i')) return NULL; /* integers might narrow or round */
    x = pv_kind(c, x, o->kind);
  }
  return pv_value_of(c, x);
}

static pv_value *define_dropout(pv_call_args *a, int which) {
  (void)which;
  if (pv_arg_int(a, "train", 1) && pv_arg_float(a, "p", 1) != 0) {
    pv_fail(a->c, "dropout in training");
    return NULL;
  }
  return pv_value_of(a->c, pv_arg_tensor(a, "input"));
}

static const pv_definition table[] = {
    {"aten::add.Tensor", define_binary, ADD},
    {"aten::add.Scalar", define_binary, ADD},
    {"aten::sub.Tensor", define_binary, SUB},
    {"aten::sub.Scalar", define_binary, SUB},
    {"aten::rsub.Tensor", define_binary, RSUB},
    {"aten::rsub.Scalar", define_binary, RSUB},
    {"aten::mul.Tensor", define_binary, MUL},
    {"aten::mul.Scalar", define_binary, MUL},
    {"aten::div.Tensor", define_binary, DIV},
    {"aten::div.Scalar", define_binary, DIV},
    {"aten::maximum", define_binary, MAXIMUM},
    {"aten::minimum", define_binary, MINIMUM},
    {"aten::eq.Tensor", define_binary, CMP_EQ},
    {"aten::eq.Scalar", define_binary, CMP_EQ},
    {"aten::ne.Tensor", define_binary, CMP_NE},
    {"aten::ne.Scalar", define_binary, CMP_NE},
    {"aten::lt.Tensor", define_binary, CMP_LT},
    {"aten::lt.Scalar", define_binary, CMP_LT},
    {"aten::le.Tensor", define_binary, CMP_LE},
    {"aten::le.Scalar", define_binary, CMP_LE},
    {"aten::gt.Tensor", define_binary, CMP_GT},
    {"aten::gt.Scalar", define_binary, CMP_GT},
    {"aten::ge.Tensor", define_binary, CMP_GE},
    {"aten::ge.Scalar", define_binary, CMP_GE},
    {"aten::logical_and", define_binary, AND},
    {"aten::logical_or", define_binary, OR},
    {"aten::bitwise_and.Tensor", define_binary, BIT_AND},
    {"aten::bitwise_or.Tensor", define_binary, BIT_OR},
    {"aten::__and__.Tensor", define_binary, BIT_AND},
    {"aten::__or__.Tensor", define_binary, BIT_OR},
    {"aten::pow.Tensor_Scalar", define_pow, 0},
    {"aten::pow.Scalar", define_pow_scalar, 0},
    {"aten::clamp", define_clamp, 0},
    {"aten::clamp_min", define_clamp, 0},
    {"aten::clamp_max", define_clamp, 0},
    {"aten::neg", define_unary, NEG},
    {"aten::abs", define_unary, ABS},
    {"aten::square", define_unary, SQUARE},
    {"aten::sqrt", define_unary, SQRT},
    {"aten::rsqrt", define_unary, RSQRT},
    {"aten::reciprocal", define_unary, RECIPROCAL},
    {"aten::exp", define_unary, EXP},
    {"aten::log", define_unary, LOG},
    {"aten::tanh", define_unary, TANH},
    {"aten::sigmoid", define_unary, SIGMOID},
    {"aten::silu", define_unary, SILU},
    {"aten::relu", define_unary, RELU},
    {"aten::cos", define_unary, COS},
    {"aten::sin", define_unary, SIN},
    {"aten::erf", define_unary, ERF},
    {"aten::gelu", define_unary, GELU},
    {"aten::logical_not", define_unary, NOT},
    {"aten::bitwise_not", define_unary, BIT_NOT},
    {"aten::where.self", define_where, WHERE},
    {"aten::where.ScalarSelf", define_where, WHERE},
    {"aten::where.ScalarOther", define_where, WHERE},
    {"aten::masked_fill.Scalar", define_where, MASKED_FILL},
    {"aten::masked_fill.Tensor", define_where, MASKED_FILL},
    {"aten::to.dtype", define_cast, CAST},
    {"aten::to.dtype_layout", define_cast, CAST},
    {"aten::to.device", define_cast, CAST},
    {"aten::_to_copy", define_cast, CAST},
    {"aten::to.other", define_cast, CAST_LIKE},
    {"aten::type_as", define_cast, CAST_LIKE},
    {"aten::copy", define_cast, COPY},
    {"aten::alias", define_cast, SAME},
    {"aten::detach", define_cast, SAME},
    {"aten::clone", define_cast, SAME},
    {"aten::contiguous", define_cast, SAME},
    {"aten::lift_fresh_copy", define_cast, SAME},
    {"aten::lift_fresh", define_cast, SAME},
    {"aten::dropout", define_dropout, 0},
};

const pv_definition *pv_define_elementwise(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}
