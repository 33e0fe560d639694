/* The claim about a node, as a rule.
 *
 * A and B count ranks, or parts of one. Variables are the parts of an operand that A of them hold
 * together and that B of them hold together. The rule says that the operator on both parts is the
 * results of the operator on each, put together. So the claim for A + B ranks follows from those
 * for A and for B, for all numbers; for one rank it is trivial. For an operator that works in each
 * rank's part, or on a sum that has one tensor from every rank, the claim has a term of its own
 * instead of the operator. A second rule then says that the two are equal for one rank. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "capture/roles/roles_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MOST_VARS = 64, MOST_DEPTH = 4, ROOT = 0 };

typedef enum side {
  HALF_A,
  HALF_B,
  BOTH,  /* of A and B together */
  WHOLE, /* of all ranks: nodes of the new graph */
  LOCAL, /* of one rank */
  GROWN  /* the same, and what is `times` is multiplied by `factor` */
} side;

typedef struct builder {
  roles_work *x;
  iso_arena *a;
  const roles_claim *claim;
  rule_variable var[MOST_VARS];
  uint32_t of[MOST_VARS], half[MOST_VARS], n_vars;
  int64_t unit; /* sizes that grow with the ranks are multiples of it; 0: of none yet */
  const rule_term *factor;
  bool gathering; /* the unit is looked for */
  bool fails;
} builder;

static const rule_term *fail(builder *b) {
  b->fails = true;
  return NULL;
}

static const rule_term *call(builder *b, const char *op, const rule_term *const *arg, size_t n) {
  const rule_term *out = NULL;
  iso_error ignored;
  for (size_t i = 0; i < n; i++)
    if (!arg[i]) return fail(b);
  return rule_call(b->a, b->x->g->schemas, op, arg, n, &out, &ignored) ? fail(b) : out;
}

static const rule_term *times(builder *b, const rule_term *t, const rule_term *n) {
  return call(b, OP_MUL_SCALAR, (const rule_term *[]){t, n}, 2);
}

static const rule_term *joined(builder *b, const rule_term *one, const rule_term *two,
                               roles_kind kind, uint32_t dim) {
  const rule_term *both[2] = {one, two};
  if (kind == ROLES_SUM) return call(b, OP_ADD_TENSOR, both, 2);
  if (!one || !two) return fail(b);
  return call(b, OP_CAT, (const rule_term *[]){rule_list(b->a, both, 2), rule_int(b->a, dim)}, 2);
}

/* ---- sizes ---- */

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t r = a % b;
    a = b, b = r;
  }
  return a;
}

static const rule_term *count(builder *b, side s) {
  if (s == HALF_A) return rule_name(b->a, "A");
  if (s == HALF_B) return rule_name(b->a, "B");
  if (s == WHOLE) return rule_int(b->a, b->x->n_ranks);
  if (s == LOCAL) return rule_int(b->a, 1);
  return rule_expr(b->a, "+", (const rule_term *[]){rule_name(b->a, "A"), rule_name(b->a, "B")}, 2);
}

/* The size of the ranks' tensors together, where one rank's is `n`. */
static const rule_term *grown(builder *b, int64_t n, side s) {
  if (s == WHOLE) return rule_int(b->a, n * b->x->n_ranks);
  if (s == LOCAL || s == GROWN) return rule_int(b->a, n);
  if (b->gathering) {
    b->unit = gcd(n, b->unit);
    return rule_int(b->a, n);
  }
  if (n == b->unit) return count(b, s);
  return rule_expr(b->a, "*", (const rule_term *[]){rule_int(b->a, n / b->unit), count(b, s)}, 2);
}

/* ---- operands ---- */

static const rule_term *variable(builder *b, uint32_t node, side s) {
  const roles_place *p = &b->x->place[node];
  const cap_output *what = &b->x->g->node[node].output[0];
  uint32_t i = 0;
  while (i < b->n_vars && (b->of[i] != node || b->half[i] != (uint32_t)s)) i++;
  if (i < b->n_vars) return rule_var(b->a, i);
  const rule_term **dim = iso_arena_alloc(b->a, (what->shape.rank + 1) * sizeof *dim);
  if (i == MOST_VARS || !dim) return fail(b);
  for (uint32_t d = 0; d < what->shape.rank; d++) {
    const bool grows = p->kind == ROLES_PART && p->dim == d;
    dim[d] = grows ? grown(b, what->shape.dim[d], s) : rule_int(b->a, what->shape.dim[d]);
    if (!dim[d]) return fail(b);
  }
  rule_variable *v = &b->var[i];
  *v = (rule_variable){
      .name = iso_arena_printf(b->a, "x%u", i), .n_dims = what->shape.rank, .dim = dim};
  if (!v->name) return fail(b);
  rule_variable_set_dtype(v, what->dtype);
  if (p->ranged) v->low = rule_int(b->a, p->low), v->high = rule_int(b->a, p->high + 1);
  b->of[i] = node, b->half[i] = s;
  b->n_vars = i + 1;
  return rule_var(b->a, i);
}

/* Whether the sum over the ranks has the tensor once for each of them. */
static bool is_repeated(const builder *b, uint32_t node) {
  return b->claim->repeated && b->x->place[node].kind == ROLES_SAME &&
         rule_dtype_is_float(b->x->g->node[node].output[0].dtype);
}

static const rule_term *placed(builder *b, uint32_t node, side s) {
  const roles_place *p = &b->x->place[node];
  if (is_repeated(b, node)) {
    const rule_term *one = s == WHOLE ? rule_var(b->a, p->at) : variable(b, node, LOCAL);
    return one ? times(b, one, count(b, s)) : fail(b);
  }
  if (s == WHOLE) return rule_var(b->a, p->at);
  if (s == LOCAL) return variable(b, node, LOCAL);
  if (s == GROWN) {
    const rule_term *v = variable(b, node, LOCAL);
    return p->times && v ? times(b, v, b->factor) : v;
  }
  if (p->kind == ROLES_SAME) return variable(b, node, LOCAL);
  if (s != BOTH) return variable(b, node, s);
  const rule_term *one = variable(b, node, HALF_A), *two = variable(b, node, HALF_B);
  return joined(b, one, two, p->kind, p->dim);
}

/* ---- operators ---- */

typedef struct spot { /* an operator in the claim */
  uint32_t node, depth, deeper;
  int64_t dim; /* of its result, that grows with the ranks; -1: none does */
} spot;

static const rule_term *operator(builder *b, spot at, side s);

/* The dimension of an operand that lies along the growing dimension of its reader. */
static int64_t dim_below(const builder *b, const spot *at, uint32_t node) {
  const rule_shape *up = &b->x->g->node[at->node].output[0].shape;
  const rule_shape *own = &b->x->g->node[node].output[0].shape;
  const roles_place *p = &b->x->place[node];
  if (p->kind == ROLES_PART) return p->dim;
  if (p->kind == ROLES_MANY || p->kind == ROLES_SUM || at->dim < 0) return -1;
  const int64_t d = at->dim - ((int64_t)up->rank - (int64_t)own->rank);
  return d >= 0 && own->dim[d] == up->dim[at->dim] ? d : -1;
}

/* Sizes that the operator is given for its result. */
static bool says_sizes(const cap_node *n, const rule_term *list) {
  const rule_shape *shape = &n->output[0].shape;
  bool same = list->n == shape->rank && list->n > 0;
  for (uint32_t i = 0; i < list->n && same; i++)
    same = list->child[i]->kind == RULE_INT && list->child[i]->u.i == shape->dim[i];
  return same;
}

/* Whether the node is made of sizes and other literals, and the claim looks into such. */
static bool is_made(const builder *b, uint32_t node) {
  const cap_node *n = &b->x->g->node[node];
  bool sizes = false;
  if (!b->claim->made || !n->call) return false;
  for (uint32_t i = 0; i < n->call->n; i++) {
    const rule_term *t = n->call->child[i];
    if (t->kind == RULE_VAR) return false;
    for (uint32_t k = 0; t->kind == RULE_LIST && k < t->n; k++)
      if (t->child[k]->kind == RULE_VAR) return false;
    sizes |= t->kind == RULE_LIST && says_sizes(n, t);
  }
  return sizes;
}

static const rule_term *operand(builder *b, const spot *at, uint32_t node, side s) {
  const cap_node *n = &b->x->g->node[node];
  const roles_place *p = &b->x->place[node];
  const bool many = p->kind == ROLES_MANY, open = p->kind == ROLES_OPEN || many;
  const bool apart = open || is_made(b, node) || (at->deeper && n->call && !b->x->meets[node]);
  /* A place that is `times` counts as the tensor itself only as a direct operand of the operator at
   * hand, since only there has that been shown. */
  if (b->fails || (p->times && (at->depth || apart))) return fail(b);
  if (!apart) return placed(b, node, s);
  if (!n->call || b->x->meets[node] || at->depth == MOST_DEPTH) return fail(b);
  const spot below = {node, many ? at->depth : at->depth + 1,
                      at->deeper && !many ? at->deeper - 1 : at->deeper, dim_below(b, at, node)};
  return operator(b, below, s);
}

static const rule_term *argument(builder *b, const spot *at, const rule_term *t, side s) {
  if (t->kind == RULE_VAR) return operand(b, at, (uint32_t)t->u.i, s);
  if (t->kind != RULE_LIST) return t;
  const bool sizes = at->dim >= 0 && says_sizes(&b->x->g->node[at->node], t);
  const rule_term **child = iso_arena_alloc(b->a, (t->n + 1) * sizeof *child);
  if (!child) return fail(b);
  for (uint32_t i = 0; i < t->n; i++) {
    child[i] = sizes && i == (uint32_t)at->dim ? grown(b, t->child[i]->u.i, s)
                                               : argument(b, at, t->child[i], s);
    if (!child[i]) return fail(b);
  }
  return rule_list(b->a, child, t->n);
}

/* A result of given sizes, of operands that grow. */
static bool cannot_grow(const builder *b, const spot *at) {
  const cap_node *n = &b->x->g->node[at->node];
  bool sizes = false, grows = false;
  for (uint32_t i = 0; i < n->call->n; i++) {
    const rule_term *t = n->call->child[i];
    sizes |= t->kind == RULE_LIST && says_sizes(n, t);
    grows |= t->kind == RULE_VAR && b->x->place[t->u.i].kind == ROLES_PART;
  }
  return sizes && grows && at->dim < 0;
}

static const rule_term *operator(builder *b, spot at, side s) {
  const rule_term *t = b->x->g->node[at.node].call;
  const rule_term **child = iso_arena_alloc(b->a, (t->n + 1) * sizeof *child);
  if (!child || ((s == HALF_A || s == HALF_B || s == BOTH) && cannot_grow(b, &at))) return fail(b);
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = argument(b, &at, t->child[i], s))) return fail(b);
  return rule_op(b->a, t->u.s, child, t->n);
}

/* ---- within each part ---- */

/* Rows of a micro-batch are some of each rank's: no range of all rows, but one of each where the
 * ranks have a dimension of their own. [N * n, ...] is [N, n, ...] then, and the operator works one
 * dimension further on. */
static const rule_term *viewed(builder *b, const rule_term *t, uint32_t node, bool apart, side s) {
  const rule_shape *own = &b->x->g->node[node].output[0].shape;
  const rule_term *size[RULE_MAX_RANK + 1];
  uint32_t n = 0;
  if (own->rank <= b->claim->dim || own->rank == RULE_MAX_RANK) return fail(b);
  for (uint32_t d = 0; d < own->rank; d++) {
    const bool along = d == b->claim->dim;
    if (along && apart) size[n++] = count(b, s);
    size[n++] = along && !apart ? grown(b, own->dim[d], s) : rule_int(b->a, own->dim[d]);
  }
  return call(b, OP_RESHAPE, (const rule_term *[]){t, rule_list(b->a, size, n)}, 2);
}

static const rule_term *within(builder *b, uint32_t node, side s);

static const rule_term *part_of(builder *b, const rule_term *t, side s) {
  if (t->kind == RULE_VAR) {
    const uint32_t node = (uint32_t)t->u.i;
    const roles_place *p = &b->x->place[node];
    if (p->kind == ROLES_MANY && !b->x->meets[node]) return within(b, node, s);
    if (p->kind != ROLES_PART || p->dim != b->claim->dim) return fail(b);
    return viewed(b, placed(b, node, s), node, true, s);
  }
  if (t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(b->a, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; i < t->n && child; i++)
    if (!(child[i] = part_of(b, t->child[i], s))) return fail(b);
  return child ? rule_list(b->a, child, t->n) : fail(b);
}

static const rule_term *within(builder *b, uint32_t node, side s) {
  const rule_term *t = b->x->g->node[node].call;
  const rule_schema *known = rule_schemas_find(b->x->g->schemas, t->u.s);
  const rule_term **child = iso_arena_alloc(b->a, (t->n + 1) * sizeof *child);
  if (!known || !child || known->n_args != t->n) return fail(b);
  for (uint32_t i = 0; i < t->n; i++) {
    const bool dim = rule_arg_is_dim(&known->arg[i]) && t->child[i]->kind == RULE_INT;
    if (dim && t->child[i]->u.i != b->claim->dim) return fail(b);
    child[i] = dim ? rule_int(b->a, t->child[i]->u.i + 1) : part_of(b, t->child[i], s);
    if (!child[i]) return fail(b);
  }
  return rule_op(b->a, t->u.s, child, t->n);
}

/* ---- rules ---- */

static const rule_term *root(builder *b, side s) {
  const roles_claim *c = b->claim;
  if (c->within) return viewed(b, within(b, c->node, s), c->node, false, s);
  const int64_t dim = c->kind == ROLES_PART ? (int64_t)c->dim : -1;
  return operator(b, (spot){c->node, ROOT, c->deeper, dim}, s);
}

static iso_code decide(roles_work *x, const rule *r, rule_verdict *v) {
  rule_tensor *none[MOST_VARS] = {NULL};
  const iso_code c = x->q->oracle->decide(x->q->oracle->ctx, r, none, v, x->err);
  if (c == ISO_TORCH || c == ISO_UNSUPPORTED || c == ISO_LIMIT || c == ISO_RANGE) {
    v->status = RULE_UNKNOWN;
    return ISO_OK;
  }
  return c;
}

/* What a proof may rest on: that an order among equal elements is open is assumed wherever a graph
 * has such an operator. */
enum { MAY_REST = RULE_RESTS_IN_PARTS | RULE_RESTS_ON_TIES };

/* Asked once, and kept. Less than a proof without conditions is none. */
static iso_code ask(builder *b, const rule_term *lhs, const rule_term *rhs, const rule_term *where,
                    bool *holds) {
  roles_work *x = b->x;
  size_t i;
  bool fresh;
  *holds = false;
  if (b->fails || !lhs || !rhs) return ISO_OK;
  const rule r = {.name = "ranks",
                  .n_vars = b->n_vars,
                  .var = b->var,
                  .lhs = lhs,
                  .rhs = rhs,
                  .where = &where,
                  .n_where = where != NULL};
  iso_code c = rule_set_add(x->out->rules, &r, &i, &fresh, x->err);
  if (c) return c;
  if (!iso_grow(x->verdict, x->cap_verdict, i + 1) || !iso_grow(x->uses, x->cap_uses, i + 1))
    return roles_nomem(x);
  if (fresh) {
    x->verdict[i] = (rule_verdict){0};
    x->uses[i] = 0;
    x->n_asked = i + 1;
    if (roles_runs(x, &r)) c = decide(x, &r, &x->verdict[i]);
  }
  const rule_verdict *v = &x->verdict[i];
  *holds = !c && v->status == RULE_PROVED && !v->n_relative &&
           !(v->rests_on & ~(unsigned)MAY_REST) && (!b->unit || v->scope > RULE_THESE_SHAPES);
  x->uses[i] += *holds;
  return c;
}

static builder start(roles_work *x, const roles_claim *c) {
  return (builder){.x = x, .a = &x->out->arena, .claim = c};
}

/* The results of A and of B, each by itself, put together. */
static const rule_term *made(builder *b) {
  const roles_claim *c = b->claim;
  const rule_term *one = root(b, HALF_A), *two = root(b, HALF_B);
  if (c->times && one && two)
    one = times(b, one, count(b, HALF_A)), two = times(b, two, count(b, HALF_B));
  return joined(b, one, two, c->kind, c->dim);
}

/* Of one rank the term of all is the operator. */
static iso_code of_one(roles_work *x, const roles_claim *c, bool *holds) {
  const roles_claim own = {.node = c->node};
  builder b = start(x, c);
  const rule_term *lhs = root(&b, LOCAL);
  b.claim = &own;
  return ask(&b, lhs, lhs ? root(&b, LOCAL) : NULL, NULL, holds);
}

iso_code roles_holds(roles_work *x, const roles_claim *c, bool *holds, const rule_term **whole) {
  builder gather = start(x, c), b = start(x, c);
  const bool other = c->within || c->repeated;
  gather.gathering = true;
  root(&gather, BOTH);
  b.unit = other && gather.unit ? 1 : gather.unit; /* A and B are numbers of ranks there */
  *holds = false;
  if (gather.fails || (c->times && !b.unit)) return ISO_OK;
  const rule_term *lhs = root(&b, BOTH);
  if (c->times && lhs) lhs = times(&b, lhs, count(&b, BOTH));
  iso_code code = ask(&b, lhs, b.fails ? NULL : made(&b), NULL, holds);
  if (!code && *holds && other) code = of_one(x, c, holds);
  *whole = *holds ? root(&b, WHOLE) : NULL;
  return code || !*holds || *whole ? code : roles_nomem(x);
}

iso_code roles_alike(roles_work *x, uint32_t node, const rule_term **whole) {
  const roles_claim c = {.node = node, .kind = ROLES_SAME};
  builder b = start(x, &c);
  *whole = root(&b, WHOLE);
  return *whole ? ISO_OK : roles_nomem(x);
}

iso_code roles_undoes(roles_work *x, uint32_t node, bool *holds) {
  const roles_claim c = {.node = node};
  builder b = start(x, &c);
  b.factor = rule_int(b.a, x->n_ranks);
  const rule_term *lhs = root(&b, GROWN);
  *holds = false;
  return b.n_vars == 1 ? ask(&b, lhs, rule_var(b.a, 0), NULL, holds) : ISO_OK;
}

static iso_code carries(roles_work *x, const roles_claim *c, bool *holds) {
  builder b = start(x, c);
  b.factor = rule_name(b.a, "A");
  const rule_term *least[2] = {b.factor, rule_int(b.a, 1)};
  const rule_term *lhs = root(&b, GROWN), *rhs = lhs ? root(&b, LOCAL) : NULL;
  return ask(&b, lhs, rhs ? times(&b, rhs, b.factor) : NULL, rule_expr(b.a, ">=", least, 2), holds);
}

iso_code roles_carries(roles_work *x, uint32_t node, bool *holds) {
  const iso_code c = carries(x, &(roles_claim){.node = node}, holds);
  return c || *holds ? c : carries(x, &(roles_claim){.node = node, .made = true}, holds);
}
