/* Equalities that the oracle is asked to prove for all sizes that are claimed. */
#include <stdlib.h>
#include <string.h>

#include "check/sizes/sizes_int.h"
#include "rules/names.h"

enum { MOST_CALLS = 120, MOST_VARIABLES = 32 };

typedef struct question {
  chk_chain *z;
  iso_arena *a; /* `own`, which terms are made in */
  iso_arena own;
  const bool *cut;        /* by root: it may be any tensor. NULL: none may */
  const rule_term **made; /* by term: as it is written */
  rule_variable var[MOST_VARIABLES];
  uint32_t root[MOST_VARIABLES];
  uint32_t n_vars, n_calls;
  bool used[CHK_ATOMS], shape[CHK_ATOMS]; /* symbols that stand there, and in a shape */
  bool fine;
} question;

static const rule_term *refuse(question *q, const char *why) {
  q->z->wrong = why;
  q->fine = false;
  return NULL;
}

static void use(const question *q, const rule_term *t, bool *used) {
  for (uint32_t i = 0; t->kind == RULE_NAME && i < q->z->atoms.n; i++)
    used[i] |= q->z->atoms.of[i].name && strcmp(q->z->atoms.of[i].name, t->u.s) == 0;
  for (uint32_t i = 0; i < t->n; i++) use(q, t->child[i], used);
}

static const rule_term *size(question *q, const chk_sum *s) {
  const rule_term *t = chk_sum_term(&q->z->atoms, s, q->a);
  if (!t) return refuse(q, "a size of it is no polynomial");
  use(q, t, q->used);
  return t;
}

/* The dtype that a captured term of the class has. */
static bool dtype_of(const chk_chain *z, uint32_t root, rule_dtype *out) {
  for (uint32_t i = 0; i < z->k->n_terms; i++) {
    const cap_node *n = z->k->term[i].node;
    if (!n || n->n_outputs != 1 || chk_chain_root(z, i) != root) continue;
    return *out = n->output[0].dtype, true;
  }
  return false;
}

static const rule_term *variable(question *q, uint32_t t) {
  const uint32_t root = chk_chain_root(q->z, t);
  const chk_dims *d = chk_dims_of(q->z, t);
  const chk_sum zero = {0};
  rule_dtype dtype;
  for (uint32_t i = 0; i < q->n_vars; i++)
    if (q->root[i] == root) return rule_var(q->a, i);
  if (!d || !dtype_of(q->z, root, &dtype)) return refuse(q, "a tensor's shape is not known");
  if (q->n_vars == MOST_VARIABLES) return refuse(q, "it is over too many tensors");
  const rule_term **dim = iso_arena_alloc(q->a, (d->rank + 1) * sizeof *dim);
  if (!dim) return NULL;
  for (uint32_t i = 0; i < d->rank; i++) {
    if (!chk_sum_at_least(&q->z->atoms, &d->of[i], &zero, 1)) return refuse(q, "a size may be 0");
    if (!(dim[i] = size(q, &d->of[i]))) return NULL;
    use(q, dim[i], q->shape);
  }
  rule_variable *v = &q->var[q->n_vars];
  *v = (rule_variable){
      .name = iso_arena_printf(q->a, "x%u", q->n_vars), .n_dims = d->rank, .dim = dim};
  rule_variable_set_dtype(v, dtype);
  q->root[q->n_vars] = root;
  return v->name ? rule_var(q->a, q->n_vars++) : NULL;
}

/* The one number that all elements are. */
static const rule_term *number_of(iso_arena *a, const rule_tensor *x) {
  enum { MOST_ELEMENTS = 1 << 16 };
  if (x->numel == 0 || x->numel > MOST_ELEMENTS) return NULL;
  const double first = rule_tensor_get(x, 0);
  for (int64_t i = 0; i < x->numel; i++) {
    const double other = rule_tensor_get(x, i);
    if (memcmp(&first, &other, sizeof first) != 0) return NULL;
  }
  if (rule_dtype_is_int(x->dtype)) return rule_int(a, rule_tensor_get_int(x, 0));
  if (x->dtype == RULE_BOOL) return rule_bool(a, first > 0);
  return first - first == 0 ? rule_float(a, first) : NULL;
}

/* operator: how a constant is written. A leaf: any tensor, or the number that a constant is filled
 * with. */
static const rule_term *leaf(question *q, uint32_t t) {
  chk_state *k = q->z->k;
  const cap_node *n = k->term[t].node;
  if (n->kind == CAP_INPUT) return refuse(q, "it depends on an input's values");
  const bool constant =
      !k->here.unpinned[t] && (n->kind != CAP_PARAMETER || !rule_dtype_is_inexact(n->value->dtype));
  const rule_term *x = constant && q->z->fixed[t] ? number_of(q->a, n->value) : NULL;
  const rule_term *dim[RULE_MAX_RANK], *call,
      *arg[3] = {NULL, x, rule_dtype_term(q->a, n->value->dtype)};
  iso_error ignored;
  if (!x) return variable(q, t);
  for (uint32_t d = 0; d < n->value->shape.rank; d++)
    dim[d] = rule_int(q->a, n->value->shape.dim[d]);
  arg[0] = rule_list(q->a, dim, n->value->shape.rank);
  return rule_call(q->a, k->schemas, OP_FULL, arg, 3, &call, &ignored) ? NULL : call;
}

static const rule_term *written(question *q, const rule_term *t);

static const rule_term *term(question *q, uint32_t t) {
  if (q->made[t]) return q->made[t];
  if (q->cut && q->cut[chk_chain_root(q->z, t)]) return q->made[t] = variable(q, t);
  if (!q->z->k->term[t].call) return q->made[t] = leaf(q, t);
  if (!q->z->sized[t]) return refuse(q, "the sizes of an operator are not known");
  if (++q->n_calls > MOST_CALLS) return refuse(q, "it is too large to be proved at once");
  return q->made[t] = written(q, q->z->sized[t]);
}

static const rule_term *written(question *q, const rule_term *t) {
  chk_sum x;
  if (t->kind == RULE_VAR) return term(q, (uint32_t)t->u.i);
  if (chk_is_size(t))
    return chk_size_of(q->z, t, &x) ? size(q, &x) : refuse(q, "a size of it is not known");
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(q->a, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = written(q, t->child[i]))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP ? rule_op(q->a, t->u.s, child, t->n) : rule_list(q->a, child, t->n);
}

/* A symbol that no shape has: it is the length of a tensor all the same. */
static bool as_length(question *q, const char *symbol) {
  if (q->n_vars == MOST_VARIABLES) return refuse(q, "it is over too many tensors") != NULL;
  const rule_term **dim = iso_arena_alloc(q->a, sizeof *dim);
  rule_variable *v = &q->var[q->n_vars];
  if (!dim || !(dim[0] = rule_name(q->a, symbol))) return false;
  *v = (rule_variable){.name = iso_arena_printf(q->a, "x%u", q->n_vars), .n_dims = 1, .dim = dim};
  rule_variable_set_dtype(v, RULE_F32);
  q->n_vars++;
  return v->name != NULL;
}

/* The symbols that it speaks of: sizes within the ranges that are claimed. */
static bool declare(question *q, rule *r) {
  const rule_term **where = iso_arena_alloc(q->a, 2 * CHK_ATOMS * sizeof *where);
  if (!where) return false;
  for (uint32_t i = 0; i < q->z->atoms.n; i++) {
    const chk_atom *x = &q->z->atoms.of[i];
    if (!q->used[i]) continue;
    if (x->min < 1) return refuse(q, "a size may be 0") != NULL;
    if (!q->shape[i] && !as_length(q, x->name)) return false;
    const rule_term *name = rule_name(q->a, x->name), *low[2] = {name, rule_int(q->a, x->min)},
                    *high[2] = {name, rule_int(q->a, x->max)};
    if (!(where[r->n_where++] = rule_expr(q->a, ">=", low, 2))) return false;
    if (x->max < INT64_MAX && !(where[r->n_where++] = rule_expr(q->a, "<=", high, 2))) return false;
  }
  r->where = where;
  r->n_vars = q->n_vars;
  return true;
}

static iso_code decide(question *q, rule *r, bool *proved) {
  chk_state *k = q->z->k;
  rule_verdict v = {0};
  rule_tensor *example[MOST_VARIABLES] = {NULL};
  if (!rule_share(q->a, r)) return chk_nomem(k);
  const iso_code c = k->oracle->decide(k->oracle->ctx, r, example, &v, k->err);
  *proved = !c && v.status == RULE_PROVED && !(v.rests_on & CHK_SIZES_REST);
  q->z->wrong = "it is not proved for all sizes";
  return c;
}

/* ---- questions ---- */

/* A question over the terms that are `cut`. Owns: `end` frees it. NULL: no memory. */
static question *begin(chk_chain *z, const bool *cut) {
  question *q = calloc(1, sizeof *q);
  if (!q) return NULL;
  *q = (question){.z = z, .a = &q->own, .cut = cut, .fine = true};
  iso_arena_init(q->a);
  q->made = calloc(z->k->n_terms + 1, sizeof *q->made);
  if (q->made) return q;
  free(q);
  return NULL;
}

/* Whether the two are proved equal; they are NULL where one could not be written. */
static iso_code end(question *q, const rule_term *l, const rule_term *r, bool *proved) {
  iso_code c = ISO_OK;
  rule as = {.name = "sizes", .var = q->var, .lhs = l, .rhs = r};
  if (q->fine && !(l && r && declare(q, &as)) && q->fine) c = chk_nomem(q->z->k);
  if (!c && q->fine) c = decide(q, &as, proved);
  iso_arena_fini(q->a);
  free(q->made);
  free(q);
  return c;
}

/* Marks the roots of a term and of the terms below it. */
static void reach(const chk_chain *z, uint32_t t, bool *mark, bool *seen);

static void reach_below(const chk_chain *z, const rule_term *t, bool *mark, bool *seen) {
  if (t->kind == RULE_VAR) reach(z, (uint32_t)t->u.i, mark, seen);
  for (uint32_t i = 0; i < t->n; i++) reach_below(z, t->child[i], mark, seen);
}

static void reach(const chk_chain *z, uint32_t t, bool *mark, bool *seen) {
  if (seen[t]) return;
  seen[t] = mark[chk_chain_root(z, t)] = true;
  if (z->k->term[t].call) reach_below(z, z->k->term[t].call, mark, seen);
}

iso_code chk_chain_prove(chk_chain *z, uint32_t a, uint32_t b, const uint32_t *cut, uint32_t n_cut,
                         bool shared, bool *proved) {
  const size_t n = z->k->n_terms + 1;
  bool *mark[2] = {calloc(n, 1), calloc(n, 1)}, *seen[2] = {calloc(n, 1), calloc(n, 1)};
  iso_code c = mark[0] && mark[1] && seen[0] && seen[1] ? ISO_OK : chk_nomem(z->k);
  *proved = false;
  if (!c) {
    if (shared) reach(z, a, mark[0], seen[0]), reach(z, b, mark[1], seen[1]);
    for (size_t i = 0; i < n; i++) mark[0][i] = mark[0][i] && mark[1][i];
    for (uint32_t i = 0; i < n_cut; i++)
      if (cut[i] != CHK_NONE) mark[0][chk_chain_root(z, cut[i])] = true;
    question *q = begin(z, mark[0]);
    if (!q) c = chk_nomem(z->k);
    else {
      const rule_term *l = term(q, a), *r = l ? term(q, b) : NULL;
      c = end(q, l, r, proved);
    }
  }
  for (int i = 0; i < 2; i++) free(mark[i]), free(seen[i]);
  return c;
}

static const rule_term *call(question *q, const char *op, const rule_term *a, const rule_term *b,
                             const rule_term *c) {
  const rule_term *arg[3] = {a, b, c}, *t;
  iso_error ignored;
  return a && !rule_call(q->a, q->z->k->schemas, op, arg,
                         c   ? 3
                         : b ? 2
                             : 1,
                         &t, &ignored)
             ? t
             : NULL;
}

/* operator: how the question is written. */
iso_code chk_chain_diagonal(chk_chain *z, uint32_t t, const chk_sum *of, bool number,
                            bool complement, bool *proved) {
  question *q = begin(z, NULL);
  *proved = false;
  if (!q) return chk_nomem(z->k);
  const rule_term *self = term(q, t), *n = self ? size(q, of) : NULL;
  const rule_term *column = call(q, "aten::arange", n, NULL, NULL),
                  *row = call(q, "aten::unsqueeze", column, rule_int(q->a, 1), NULL),
                  *on = call(q, "aten::eq.Tensor", row, column, NULL), *kept = NULL;
  if (on && number) kept = call(q, "aten::where.ScalarSelf", on, rule_float(q->a, 0), self);
  else if (on && complement) kept = call(q, "aten::logical_or", self, on, NULL);
  else if (on)
    kept = call(q, "aten::logical_and", self, call(q, "aten::logical_not", on, NULL, NULL), NULL);
  return end(q, kept, self, proved);
}

/* A term with a number for a symbol. */
static const rule_term *at_number(iso_arena *a, const rule_term *t, const char *name, int64_t x) {
  if (t->kind == RULE_NAME) return strcmp(t->u.s, name) == 0 ? rule_int(a, x) : t;
  if (t->n == 0) return t;
  const rule_term **child = iso_arena_alloc(a, t->n * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = at_number(a, t->child[i], name, x))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_LIST ? rule_list(a, child, t->n)
         : t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n)
                              : rule_expr(a, t->u.s, child, t->n);
}

/* operator: how the first places along a dimension are written. */
static const rule_term *first(question *q, const rule_term *t, uint32_t dim, const char *symbol) {
  const rule_term *arg[5] = {t, rule_int(q->a, dim), rule_int(q->a, 0), rule_name(q->a, symbol),
                             rule_int(q->a, 1)},
                  *out;
  iso_error ignored;
  return rule_call(q->a, q->z->k->schemas, OP_SLICE_TENSOR, arg, 5, &out, &ignored) ? NULL : out;
}

iso_code chk_chain_places(chk_chain *z, uint32_t t, const chk_table *table, bool *proved) {
  question *q = begin(z, NULL);
  *proved = false;
  if (!q) return chk_nomem(z->k);
  const char *symbol = z->atoms.of[table->atom].name;
  const rule_term *l = term(q, t), *r = l;
  for (uint32_t i = 0; i < z->atoms.n && l; i++)
    if (q->shape[i] || (q->used[i] && i != table->atom))
      r = l = refuse(q, "it depends on several symbols");
  if (l) r = at_number(q->a, l, symbol, table->most);
  for (uint32_t d = 0; r && d < table->rank; d++)
    if (table->along[d]) r = first(q, r, d, symbol);
  return end(q, l, r, proved);
}
