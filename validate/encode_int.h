/* The prover's own language: one expression per tensor element, hash-consed and in normal form.
 *
 * A rule over concrete shapes is decided by evaluating both sides to arrays of element expressions: element i of a
 * variable is a leaf, layout operators move ids, arithmetic builds normalised sums and products, and equal ids are
 * equal functions. Where ids differ, the next level expands more (contractions, then products of sums), and the last
 * step is Z3 on the pairs that are left (solve.c).
 *
 * Soundness: every constructor returns an expression equal to what its arguments say wherever both are defined over
 * the reals. What is not modelled calls pv_fail, which sticks: the rule is then unknown. A partial function (1/x,
 * sqrt, log) is an uninterpreted total one; x * (1/x) cancels only where x is known not to be zero. */
#ifndef VALIDATE_ENCODE_INT_H
#define VALIDATE_ENCODE_INT_H

#include "validate/engine_int.h"

typedef uint32_t pv_id; /* below n_leaves: a leaf; else node[id - n_leaves] */

typedef enum pv_op {
  PV_CONST,   /* [rational] */
  PV_SUM,     /* [rational, monomial]...: sorted by monomial; two terms, or one with a coefficient that is not 1 */
  PV_PROD,    /* [base, exponent]...: sorted by base, then positive exponents before negative ones */
  PV_EXP,     /* [x]; always positive */
  PV_SQRT,    /* [x] */
  PV_FN,      /* [pv_fn, x] */
  PV_POW,     /* [x, rational] */
  PV_ROOT,    /* sqrt(2/pi) */
  PV_MAX,     /* [x]...: sorted, distinct */
  PV_ITE,     /* [condition, x, y] */
  PV_SELECT,  /* [sequence, index] */
  PV_SEQ,     /* [x]... */
  PV_DOT,     /* [sequence, sequence]: sorted */
  PV_RSUM,    /* [sequence]: sorted elements */
  PV_NEGINF,  /* minus infinity, of a mask */
  PV_NEGBIG,  /* a finite literal below half of finfo.min, read as minus infinity */
  PV_BOOL,    /* [0 or 1] */
  PV_LT, PV_EQ, /* [x, y] */
  PV_AND, PV_OR, /* [b]...: sorted, distinct */
  PV_NOT      /* [b] */
} pv_op;
typedef enum pv_fn { PV_LOG, PV_ERF, PV_SIN, PV_COS } pv_fn;

enum { PV_POS = 1, PV_NONNEG = 2, PV_NONZERO = 4, PV_EXT = 8 }; /* known sign; may be minus infinity */
enum { PV_ZERO_Q = 0, PV_ONE_Q = 1, PV_MINUS_Q = 2 };           /* interned rationals */

typedef struct pv_node {
  uint8_t op, flags;
  uint32_t n, off; /* words */
} pv_node;

/* n / d * 2^e with n and d odd (n = 0: d = 1, e = 0), d > 0, no common factor. */
typedef struct pv_q {
  __int128 n, d;
  int32_t e;
} pv_q;

typedef struct pv_term {
  uint32_t q;
  pv_id m;
} pv_term;
typedef struct pv_factor {
  pv_id b;
  int32_t x;
} pv_factor;

typedef struct pv_tensor {
  char kind; /* 'f', 'i', 'b' */
  rule_shape s;
  int64_t n;
  pv_id *e;
} pv_tensor;
typedef struct pv_value {
  size_t n;
  pv_tensor **t; /* one, or several where the operator has several */
  bool several;
} pv_value;

enum { PV_MAX_NODES = 3000000, PV_MAX_WORDS = 1 << 25, PV_MAX_SCRATCH = 1 << 23, PV_TABLE = 1 << 10 };
enum { PV_MAX_ELEMENTS = 24000000, PV_MAX_RELATIVE = 16, PV_MAX_WORK = 400000000, PV_LOOK_WORK = 1 << 18 };

typedef struct pv_cx {
  const rule *r;
  rule_schemas *schemas;
  int level;       /* 0: contractions as pairs of sequences; 1: as sums of products; 2: products of sums expanded */
  pv_id n_leaves;
  pv_node *node;
  uint32_t n_nodes;
  uint32_t *word;
  size_t n_words;
  uint32_t *table; /* id - n_leaves + 1, 0 where empty; PV_TABLE slots at first */
  size_t table_mask; /* slots - 1; 0 before there is one */
  uint64_t *scratch; /* a stack of terms and factors, which share a size */
  size_t sp;
  pv_q *q;
  size_t n_q, cap_q;
  uint32_t *q_table;
  size_t q_table_cap;
  pv_id zero, one, neginf, negbig, yes, no;
  pv_id *var_base;   /* first leaf of each variable */
  pv_id *attr_leaf;  /* leaves of the rule's attributes, in scalars */
  int64_t n_elements, work;
  const val_options *o; /* for `stop`; may be NULL */
  int64_t next_look;    /* work at which to ask it again */
  bool failed, no_memory;
  bool arithmetic, literal, big_mask, expansion_left; /* what the evaluation used */
  const char *relative[PV_MAX_RELATIVE];
  size_t n_relative;
  char reason[200];
  iso_arena arena;
  struct pv_memo *memo;
  size_t n_memo, cap_memo;
} pv_cx;

/* ---- expressions (normal.c) ---- */

bool pv_init(pv_cx *c, const rule *r, rule_schemas *s, int level, pv_id n_leaves); /* false: no memory */
void pv_fini(pv_cx *c);
void pv_fail(pv_cx *c, const char *fmt, ...) ISO_PRINTF(2, 3); /* the first reason stays */

uint32_t pv_q_int(pv_cx *c, int64_t i);
uint32_t pv_q_double(pv_cx *c, double f); /* exact */
uint32_t pv_q_mul(pv_cx *c, uint32_t a, uint32_t b);
uint32_t pv_q_add(pv_cx *c, uint32_t a, uint32_t b);
uint32_t pv_q_pow(pv_cx *c, uint32_t a, int64_t k);
int pv_q_sign(const pv_cx *c, uint32_t a);
bool pv_q_is_int(const pv_cx *c, uint32_t a, int64_t *out);

pv_id pv_const(pv_cx *c, uint32_t q);
pv_id pv_int(pv_cx *c, int64_t i);
pv_id pv_literal(pv_cx *c, double f); /* a float literal, read as proofs.md says */
bool pv_is_const(const pv_cx *c, pv_id a, uint32_t *q);
pv_id pv_add(pv_cx *c, pv_id a, pv_id b);
pv_id pv_scale(pv_cx *c, uint32_t q, pv_id a);
pv_id pv_sub(pv_cx *c, pv_id a, pv_id b);
pv_id pv_neg(pv_cx *c, pv_id a);
pv_id pv_mul(pv_cx *c, pv_id a, pv_id b);
pv_id pv_pow(pv_cx *c, pv_id a, int64_t k); /* integer exponent of either sign */
pv_id pv_div(pv_cx *c, pv_id a, pv_id b);
pv_id pv_powq(pv_cx *c, pv_id a, uint32_t q);
pv_id pv_sqrt(pv_cx *c, pv_id a);
pv_id pv_exp(pv_cx *c, pv_id a);
pv_id pv_call(pv_cx *c, pv_fn f, pv_id a);
pv_id pv_root(pv_cx *c); /* sqrt(2/pi) */
pv_id pv_max(pv_cx *c, const pv_id *a, size_t n);
pv_id pv_max2(pv_cx *c, pv_id a, pv_id b);
pv_id pv_sum(pv_cx *c, const pv_id *a, size_t n);
pv_id pv_seq(pv_cx *c, const pv_id *a, size_t n);
/* A sequence as (common factor) * (sequence): computed once per row and column of a contraction. */
typedef struct pv_vec {
  pv_id factor, seq;
  const pv_id *e;
  size_t n;
} pv_vec;
pv_vec pv_vec_of(pv_cx *c, const pv_id *a, size_t n); /* keeps `a` */
pv_id pv_dot(pv_cx *c, const pv_vec *a, const pv_vec *b);
pv_id pv_select(pv_cx *c, pv_id seq, pv_id index);

pv_id pv_bool(const pv_cx *c, bool b);
pv_id pv_not(pv_cx *c, pv_id a);
pv_id pv_and(pv_cx *c, pv_id a, pv_id b);
pv_id pv_or(pv_cx *c, pv_id a, pv_id b);
pv_id pv_lt(pv_cx *c, pv_id a, pv_id b);
pv_id pv_eq(pv_cx *c, pv_id a, pv_id b);
pv_id pv_ite(pv_cx *c, pv_id cond, pv_id a, pv_id b);
pv_id pv_ite_bool(pv_cx *c, pv_id cond, pv_id a, pv_id b);

static inline const pv_node *pv_at(const pv_cx *c, pv_id id) {
  return id < c->n_leaves ? NULL : &c->node[id - c->n_leaves];
}
static inline bool pv_is(const pv_cx *c, pv_id id, pv_op op) {
  return id >= c->n_leaves && c->node[id - c->n_leaves].op == op;
}
static inline unsigned pv_flags(const pv_cx *c, pv_id id) {
  return id < c->n_leaves ? 0 : c->node[id - c->n_leaves].flags;
}
static inline const uint32_t *pv_words(const pv_cx *c, const pv_node *n) { return c->word + n->off; }

/* ---- tensors and operators ---- */

/* Leaves: the variables' elements, then one real number per attribute. false: too many. */
bool pv_lay_out_leaves(const rule *r, pv_id *base, pv_id *attr, pv_id *total);
pv_tensor *pv_tensor_new(pv_cx *c, char kind, const rule_shape *s); /* NULL: failed */
/* Arguments of a call, by the schema's names (define.c). All fail the rule where a value is not literal. */
typedef struct pv_call_args {
  pv_cx *c;
  const rule_term *t;
  const rule_schema *schema;
} pv_call_args;
const rule_term *pv_arg(pv_call_args *a, const char *name); /* NULL where it is none or the schema has none such */
pv_tensor *pv_arg_tensor(pv_call_args *a, const char *name); /* NULL also where none */
int64_t pv_arg_int(pv_call_args *a, const char *name, int64_t if_none);
double pv_arg_float(pv_call_args *a, const char *name, double if_none);
bool pv_arg_ints(pv_call_args *a, const char *name, int64_t *out, uint32_t *n); /* false: none; at most RULE_MAX_RANK */
bool pv_arg_is(pv_call_args *a, const char *name, const char *text); /* a string */
bool pv_arg_dtype(pv_call_args *a, const char *name, rule_dtype *out); /* false: none */
size_t pv_arg_tensors(pv_call_args *a, const char *name, pv_tensor ***out);
/* A scalar (or 0-dim literal) as expression and kind. */
pv_id pv_arg_scalar(pv_call_args *a, const char *name, char *kind);
bool pv_dim(pv_cx *c, int64_t d, uint32_t rank, uint32_t *out); /* wraps a negative one; fails out of range */

const pv_value *pv_eval(pv_cx *c, const rule_term *t); /* NULL: failed */
pv_tensor *pv_eval_tensor(pv_cx *c, const rule_term *t);
pv_value *pv_value_of(pv_cx *c, pv_tensor *t);
pv_value *pv_value_list(pv_cx *c, pv_tensor **t, size_t n);

/* Dense strides, e[i] = src.e[offset + sum index * stride]: the layout operators. */
pv_tensor *pv_strided(pv_cx *c, const pv_tensor *src, const rule_shape *s, const int64_t *stride, int64_t offset);
void pv_dense(const rule_shape *s, int64_t *stride);
pv_tensor *pv_expand(pv_cx *c, pv_tensor *t, const rule_shape *s);
pv_tensor *pv_reshape(pv_cx *c, pv_tensor *t, const rule_shape *s);
pv_tensor *pv_transpose(pv_cx *c, pv_tensor *t, uint32_t a, uint32_t b);
/* Concatenated along `d`. NULL: shapes or kinds do not fit. */
pv_tensor *pv_join(pv_cx *c, pv_tensor *const *t, size_t n, uint32_t d);
bool pv_broadcast(pv_cx *c, const rule_shape *a, const rule_shape *b, rule_shape *out);
pv_tensor *pv_kind(pv_cx *c, pv_tensor *t, char kind); /* exact conversions only */

typedef pv_value *(*pv_define)(pv_call_args *a, int which);
typedef struct pv_definition {
  const char *name;
  pv_define f;
  int which;
} pv_definition;
const pv_definition *pv_define_elementwise(const char *name); /* define.c */
const pv_definition *pv_define_layout(const char *name);      /* define_layout.c */
const pv_definition *pv_define_nn(const char *name);          /* define_nn.c */
const pv_definition *pv_define_dist(const char *name);        /* define_dist.c */

/* Elementwise helpers shared by definitions. */
pv_id pv_sigmoid(pv_cx *c, pv_id x);
pv_id pv_tanh(pv_cx *c, pv_id x);
pv_id pv_gelu(pv_cx *c, pv_id x, bool approximate);

/* ---- Z3 (solve.c) ---- */

typedef enum pv_answer { PV_VALID, PV_NOT_VALID, PV_NO_ANSWER } pv_answer;
/* Is a = b for all values of the leaves? Uses up `*rlimit`. `reason` (200 bytes) says why there is no answer. */
pv_answer pv_solve(pv_cx *c, pv_id a, pv_id b, uint64_t *rlimit, char *reason);

#endif
