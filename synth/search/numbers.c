/* Numbers that graphs compute from norms, joined by one rule of all of these.
 *
 * A plan with ranks of several kinds has several vectors of norms, and the root of the sum of the
 * squares of their norms. Below a number each vector becomes the list of its items (items.c), which
 * are joined with numbers of the other graph: what is left is a rule of these numbers. A sum of a
 * tensor's squares is the square of its norm, and is written so. */
#include "synth/search/items.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Terms over numbers. */
typedef struct numbers {
  state *s;
  eg_node of[MOST_OPERANDS]; /* the variables */
  uint32_t n_of;
  eg_node whole[MOST_OPERANDS]; /* numbers that are written by ranks' variables */
  const rule_term *written[MOST_OPERANDS];
  uint32_t n_whole;
  bool unfit, squares; /* norms were written as sums of squares */
  iso_code code;
  iso_error *err;
} numbers;

static const rule_term *number_var(numbers *x, eg_node e) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < x->n_whole; i++)
    if (eg_equal(x->s->g, x->whole[i], e)) return x->written[i];
  while (k < x->n_of && !eg_equal(x->s->g, x->of[k], e)) k++;
  x->unfit |= k == MOST_OPERANDS;
  if (x->unfit) return NULL;
  if (k == x->n_of) x->of[x->n_of++] = e;
  return rule_var(&x->s->arena, k);
}

/* A number, or a vector of one. */
static bool is_one(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  return items_is_number(s, e) ||
         (r->tensor && r->valued && r->shape.rank == 1 && r->shape.dim[0] == 1);
}

/* Whether an operator takes nothing but numbers, and vectors that are lists of them. */
static bool takes_numbers(state *s, eg_node e) {
  bool all = !s->rec[e.i].leaf && eg_node_arity(s->g, e) > 0;
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && all; k++) {
    const eg_node of = items_operand(s, e, k);
    eg_node list;
    if (st_is_list(s, of)) all = eg_node_arity(s->g, of) == 0 || takes_numbers(s, of);
    else all = st_literal(s, of) || is_one(s, of) || st_stacked(s, of, &list);
  }
  return all;
}

/* The call that computes a number from numbers; EG_NONE: the number is one of those that rules
 * speak of, since both graphs have it, or one computes it from tensors. */
static eg_node call_of(state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  eg_node call = {EG_NONE};
  if (s->rec[e.i].konst && takes_numbers(s, e)) return e;
  if (st_has_side(s, e, LEFT) && st_has_side(s, e, RIGHT)) return call;
  for (size_t i = 0; i < n; i++) {
    if (s->rec[m[i].i].node[LEFT] < 0 && s->rec[m[i].i].node[RIGHT] < 0) continue;
    if (!takes_numbers(s, m[i])) return (eg_node){EG_NONE};
    if (call.i == EG_NONE || m[i].i == e.i) call = m[i];
  }
  return call;
}

/* Whether all tensors that a call takes are one. */
static bool takes_one(state *s, eg_node e, eg_node *of) {
  bool all = !s->rec[e.i].leaf;
  *of = (eg_node){EG_NONE};
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && all; k++) {
    const eg_node o = items_operand(s, e, k);
    if (st_literal(s, o)) continue;
    all = s->rec[o.i].tensor && s->rec[o.i].valued && (of->i == EG_NONE || eg_equal(s->g, *of, o));
    *of = o;
  }
  return all && of->i != EG_NONE;
}

/* The call with `t` for the tensor that it takes. */
static const rule_term *call_on(state *s, eg_node e, const rule_term *t) {
  const rule_term *child[MOST_OPERANDS];
  const uint32_t n = (uint32_t)eg_node_arity(s->g, e);
  for (uint32_t k = 0; k < n && n <= MOST_OPERANDS; k++) {
    const rule_term *literal = st_literal(s, items_operand(s, e, k));
    child[k] = literal ? literal : t;
  }
  return t && n <= MOST_OPERANDS ? rule_op(&s->arena, st_operator(s, e), child, n) : NULL;
}

/* Joins a number `sum`, of what `square` makes of the elements of `of` one by one, with the square
 * of their norm, if it is that. Returns: in `norm` the norm. */
static iso_code join_squares(state *s, eg_node sum, eg_node square, eg_node of, eg_node *norm,
                             iso_error *err) {
  const rule_term *x = rule_var(&s->arena, 0), *l = call_on(s, sum, call_on(s, square, x)), *r;
  const rule_term *arg[2] = {x, rule_float(&s->arena, 2)};
  eg_node made[2], one;
  bool done = false;
  if (!l || !arg[1]) return nomem(err);
  iso_code c = rule_call(&s->arena, s->schemas, OP_VECTOR_NORM, arg, 2, &r, err);
  if (!c) c = st_add_term(s, r, &of, &one, err);
  if (!c) c = st_value(s, one, err);
  if (!c && !(r = rule_op(&s->arena, OP_MUL_TENSOR, (const rule_term *[]){r, r}, 2)))
    return nomem(err);
  if (!c) c = st_add_term(s, l, &of, &made[0], err);
  if (!c) c = st_add_term(s, r, &of, &made[1], err);
  for (int k = 0; k < 2 && !c; k++) c = st_value(s, made[k], err);
  if (c || !st_values_equal(s, made[0], made[1])) return c;
  c = st_join_by(s, &(identity){made[0], made[1], l, r, &of, 1}, &done, err);
  if (!c && done) *norm = one;
  return c;
}

/* The norm whose square the number is, which a call writes as a sum of squares. EG_NONE: it is no
 * such. */
static iso_code norm_squared(state *s, eg_node call, eg_node *norm, iso_error *err) {
  const eg_node *m;
  eg_node of, x;
  if (!takes_one(s, call, &of) || items_is_number(s, of)) return ISO_OK;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, of), &m);
  for (size_t i = 0; i < n; i++)
    if (takes_one(s, m[i], &x) && rule_operator_of(st_operator(s, m[i]))->elementwise &&
        rule_shape_eq(&s->rec[x.i].shape, &s->rec[of.i].shape))
      return join_squares(s, call, m[i], x, norm, err);
  return ISO_OK;
}

/* The number as a variable, or as the square of one that is a norm. */
static const rule_term *variable_of(numbers *x, eg_node e) {
  state *s = x->s;
  const eg_node *m;
  eg_node norm = {EG_NONE};
  const size_t n = s->rec[e.i].konst ? 0 : eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (uint32_t i = 0; i < x->n_whole; i++)
    if (eg_equal(s->g, x->whole[i], e)) return x->written[i];
  for (size_t i = 0; i < n && !x->code && norm.i == EG_NONE; i++)
    x->code = norm_squared(s, m[i], &norm, x->err);
  const rule_term *v = x->code ? NULL : number_var(x, norm.i == EG_NONE ? e : norm);
  if (norm.i == EG_NONE || !v) return v;
  x->squares = true;
  return rule_op(&s->arena, OP_MUL_TENSOR, (const rule_term *[]){v, v}, 2);
}

/* NULL: it has none, or no memory. */
static const rule_term *number_term(numbers *x, eg_node e, bool root, int depth) {
  state *s = x->s;
  const rule_term *child[MOST_OPERANDS], *literal = st_literal(s, e);
  eg_node list;
  if (literal) return literal;
  const bool number = is_one(s, e);
  const eg_node call = number && !root ? call_of(s, e) : e;
  if (call.i == EG_NONE) return variable_of(x, e);
  e = call;
  x->unfit |= depth == LONG || eg_node_arity(s->g, e) > MOST_OPERANDS;
  if (!number && !st_is_list(s, e)) {
    if (!st_stacked(s, e, &list)) x->unfit = true;
    const rule_term *arg[2] = {x->unfit ? NULL : number_term(x, list, false, depth + 1),
                               rule_int(&s->arena, 0)};
    return arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  }
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && !x->unfit; k++)
    if (!(child[k] = number_term(x, items_operand(s, e, k), false, depth + 1))) x->unfit = true;
  if (x->unfit) return NULL;
  return st_is_list(s, e) ? rule_list(&s->arena, child, eg_node_arity(s->g, e))
                          : rule_op(&s->arena, st_operator(s, e), child, eg_node_arity(s->g, e));
}

/* The node whose norm a variable is; -1: it is none. */
static int32_t tensor_of(const numbers *x, uint32_t k, int side) {
  const state *s = x->s;
  const eg_node *m;
  if (strcmp(st_operator(s, x->of[k]), OP_VECTOR_NORM) != 0) return -1;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, items_operand(s, x->of[k], 0)), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return s->rec[m[i].i].node[side];
  return -1;
}

/* The variables that are norms of these peers, by the nodes whose norms variables are. Returns: how
 * many, 0 where one of the peers has none. */
static uint32_t norms_of(const peers *p, const int32_t *tensor, uint32_t n, uint32_t *out) {
  for (uint32_t r = 0; r < p->n; r++) {
    uint32_t j = 0;
    while (j < n && tensor[j] != (int32_t)p->node[r]) j++;
    if (j == n) return 0;
    out[r] = j;
  }
  return p->n;
}

/* The term becomes a number, and is joined with one of the other graph. */
static iso_code write_as(numbers *x, const rule_term *t, int side, bool *done, iso_error *err) {
  state *s = x->s;
  eg_node *whole = &x->whole[x->n_whole];
  if (!t || x->n_whole == MOST_OPERANDS) return t ? ISO_OK : nomem(err);
  iso_code c = st_add_term(s, t, x->of, whole, err);
  if (!c) c = st_value(s, *whole, err);
  if (!c) c = st_join_number(s, *whole, !side, done, err);
  if (!c && *done) x->written[x->n_whole++] = t;
  return c;
}

static iso_code write_norm(numbers *x, const uint32_t *of, uint32_t n, int side, bool *done,
                           iso_error *err) {
  state *s = x->s;
  const rule_term *var[MOST_OPERANDS], *arg[2] = {NULL, rule_int(&s->arena, 0)};
  for (uint32_t k = 0; k < n; k++)
    if (!(var[k] = rule_var(&s->arena, of[k]))) return nomem(err);
  arg[0] = rule_list(&s->arena, var, n);
  const rule_term *t = arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  arg[0] = t, arg[1] = rule_float(&s->arena, 2);
  if (!t || !arg[1]) return nomem(err);
  const iso_code c = rule_call(&s->arena, s->schemas, OP_VECTOR_NORM, arg, 2, &t, err);
  return c ? c : write_as(x, t, side, done, err);
}

/* Where the other graph has the sum of the squares, and not its root. */
static iso_code write_squares(numbers *x, const uint32_t *of, uint32_t n, int side, bool *done,
                              iso_error *err) {
  state *s = x->s;
  const rule_term *t = NULL;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < n && !c; k++) {
    const rule_term *v = rule_var(&s->arena, of[k]), *both[2] = {v, v};
    if (!v) return nomem(err);
    c = rule_call(&s->arena, s->schemas, OP_MUL_TENSOR, both, 2, &both[1], err);
    both[0] = t;
    if (!c && k) c = rule_call(&s->arena, s->schemas, OP_ADD_TENSOR, both, 2, &both[1], err);
    t = both[1];
  }
  if (c) return c;
  return write_as(x, t, side, done, err);
}

static iso_code write_whole(numbers *x, const uint32_t *of, uint32_t n, int side, bool *done,
                            iso_error *err) {
  const iso_code c = n > 1 ? write_norm(x, of, n, side, done, err) : ISO_OK;
  return c || *done || !x->squares ? c : write_squares(x, of, n, side, done, err);
}

/* The norm of what ranks have parts of is that of their norms: looked for with those of `k`'s peers
 * that are variables, too. */
static iso_code find_whole(numbers *x, uint32_t k, int side, iso_error *err) {
  const st_ranks *ranks = &x->s->ranks;
  uint32_t of[MOST_OPERANDS];
  int32_t tensor[MOST_OPERANDS];
  bool done = false;
  iso_code c = st_join_number(x->s, x->of[k], !side, &done, err);
  for (uint32_t j = 0; j < x->n_of; j++) tensor[j] = tensor_of(x, j, side);
  if (!c && !done) c = write_whole(x, &k, 1, side, &done, err);
  for (size_t i = 0; i < ranks->n_peers && !c && !done; i++) {
    const peers *p = &ranks->peers[i];
    if (p->side != side || p->n > x->n_of || tensor[k] != (int32_t)p->node[0]) continue;
    const uint32_t n = norms_of(p, tensor, x->n_of, of);
    if (n > 1 && of[0] == k) c = write_whole(x, of, n, side, &done, err);
  }
  return c;
}

iso_code st_join_as_numbers(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  numbers x = {.s = s, .err = err};
  eg_node made[2];
  const int side = !s->ranks.whole_side;
  iso_code c = ISO_OK;
  if (!st_has_side(s, t, side)) return st_join_as_numbers(s, t, u, done, err);
  const rule_term *r = number_term(&x, t, true, 0);
  if (x.code || !r || x.n_of < FEW) return x.code;
  for (uint32_t k = 0; k < x.n_of && !c; k++)
    if (!st_has_side(s, x.of[k], !side)) c = find_whole(&x, k, side, err);
  if (!c) c = eg_rebuild(s->g, err);
  const uint32_t n_of = x.n_of;
  const rule_term *l = c ? NULL : number_term(&x, u, true, 0);
  if (!c) c = x.code;
  if (!l || x.n_of > n_of) return c; /* of what no rank computes nothing is known */
  c = st_add_term(s, l, x.of, &made[0], err);
  if (!c) c = st_add_term(s, r, x.of, &made[1], err);
  for (int k = 0; k < 2 && !c; k++) c = st_value(s, made[k], err);
  if (!c) c = st_join_by(s, &(identity){made[0], made[1], l, r, x.of, x.n_of}, done, err);
  if (!c && *done) c = eg_rebuild(s->g, err);
  *done = !c && eg_equal(s->g, u, t);
  return c;
}
