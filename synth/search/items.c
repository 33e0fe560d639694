/* A vector that one graph puts together of numbers, and the other computes as a vector.
 *
 * The norm of all gradients is that of a list of norms, one for each parameter. Where ranks hold
 * shards, each has its own list, and squares of the lists are added up: as one rule, it would speak
 * of every shard of every parameter. But an item of a vector is its operator's result on the
 * operands' items. So each number is joined with the item in its place, by rules of single
 * operators, and the vector with the list of its items.
 *
 * A plan with ranks of several kinds has several such vectors, and the root of the sum of the
 * squares of their norms. Below a number each vector becomes the list of its items, which are
 * joined with numbers of the other graph: what is left is a rule of these numbers. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/search/frontier.h"
#include "synth/search/search.h"
#include "synth/search/search_int.h"

#include <string.h>

enum { DEEP = 8, FEW = 4, MOST_OPERANDS = RULE_MAX_VARS };
enum { LONG = 2 * MOST_OPERANDS }; /* a sum of as many, one after another */

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static const char *operator_of(const state *s, eg_node e) {
  return eg_symbol_name(s->g, eg_node_symbol(s->g, e));
}

static eg_node operand(const state *s, eg_node e, uint32_t k) {
  return (eg_node){eg_node_original(s->g, e, k).i};
}

static bool is_number(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  return r->tensor && r->valued && r->shape.rank == 0;
}

/* A list of numbers as a vector, and the list. */
static bool stacks(state *s, eg_node e, eg_node *list) {
  if (s->rec[e.i].leaf || strcmp(operator_of(s, e), OP_STACK) != 0) return false;
  *list = operand(s, e, 0);
  const size_t n = eg_node_arity(s->g, *list);
  const rule_term *d = st_literal(s, operand(s, e, 1));
  if (!d || d->kind != RULE_INT || d->u.i != 0) return false;
  for (uint32_t k = 0; k < n; k++)
    if (!is_number(s, operand(s, *list, k))) return false;
  return n >= FEW && n <= MOST_OPERANDS;
}

static bool stacked(state *s, eg_node e, eg_node *list) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (stacks(s, m[i], list)) return true;
  return false;
}

/* ---- a rule that is known beforehand ---- */

/* Instantiates two terms by `bind`, and joins them. */
typedef struct identity {
  eg_node from, to;
  const rule_term *l, *r;
  const eg_node *bind;
  size_t n;
} identity;

/* Joins both ends, if the rule that says so holds. */
static iso_code join_by(state *s, const identity *x, bool *done, iso_error *err) {
  builder b = {.s = s, .n_vars = x->n};
  rule cand;
  rule_tensor *example[RULE_MAX_VARS];
  rule_verdict v;
  size_t index;
  bool fresh;
  *done = eg_equal(s->g, x->from, x->to);
  if (*done) return ISO_OK;
  for (size_t i = 0; i < x->n; i++) b.var[i] = eg_class_of(s->g, x->bind[i]);
  if (!fr_rule(s, &b, x->l, x->r, &cand, example)) return nomem(err);
  iso_code c = fr_decide(s, &cand, example, &index, &v, &fresh, err);
  if (c || index == SIZE_MAX || !st_usable(s, index)) return c;
  *done = true;
  const st_use use = {.rule = index, .from = x->from, .to = x->to, .as = &cand, .var = x->bind};
  return st_record_application(s, &use, err);
}

/* ---- items ---- */

static const rule_term *item_term(state *s, const rule_term *of, int64_t i) {
  iso_arena *a = &s->arena;
  const rule_term *arg[3] = {of, rule_int(a, 0), rule_int(a, i)};
  return of && arg[1] && arg[2] ? rule_op(a, OP_SELECT, arg, 3) : NULL;
}

static iso_code item_node(state *s, eg_node e, int64_t i, eg_node *out, iso_error *err) {
  const rule_term *t = item_term(s, rule_var(&s->arena, 0), i);
  iso_code c = t ? st_add_term(s, t, &e, out, err) : nomem(err);
  return c ? c : st_value(s, *out, err);
}

/* The item of a list is its member. */
static iso_code item_of_list(state *s, eg_node list, int64_t i, eg_node item, bool *done,
                             iso_error *err) {
  const rule_term *member[MOST_OPERANDS], *arg[2] = {NULL, rule_int(&s->arena, 0)};
  eg_node bind[MOST_OPERANDS];
  const uint32_t n = (uint32_t)eg_node_arity(s->g, list);
  for (uint32_t k = 0; k < n; k++) {
    bind[k] = operand(s, list, k);
    if (!(member[k] = rule_var(&s->arena, k))) return nomem(err);
  }
  arg[0] = rule_list(&s->arena, member, n);
  const rule_term *t = arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  if (!(t = item_term(s, t, i))) return nomem(err);
  return join_by(s, &(identity){item, bind[i], t, member[i], bind, n}, done, err);
}

/* A call over its operands, and over these operands' items. */
typedef struct itemised {
  state *s;
  int64_t n, i; /* of a vector of so many, this item */
  eg_node of[MOST_OPERANDS];
  uint32_t n_of;
  bool unfit;
} itemised;

typedef struct two_terms {
  const rule_term *whole, *item;
} two_terms;

static bool is_vector(const itemised *x, eg_node e) {
  const rec *r = &x->s->rec[e.i];
  return r->tensor && r->valued && r->shape.rank == 1 && r->shape.dim[0] == x->n;
}

static void itemise(itemised *x, eg_node e, bool root, two_terms *out) {
  state *s = x->s;
  const rule_term *whole[MOST_OPERANDS], *item[MOST_OPERANDS];
  const size_t n = eg_node_arity(s->g, e);
  *out = (two_terms){st_literal(s, e), st_literal(s, e)};
  if (out->whole) return;
  if (!root && !st_is_list(s, e)) {
    x->unfit |= x->n_of == MOST_OPERANDS || (!is_vector(x, e) && !is_number(s, e));
    if (x->unfit) return;
    x->of[x->n_of] = e;
    out->whole = out->item = rule_var(&s->arena, x->n_of++);
    if (is_vector(x, e)) out->item = item_term(s, out->whole, x->i);
    return;
  }
  x->unfit |= n > MOST_OPERANDS;
  for (uint32_t k = 0; k < n && !x->unfit; k++) {
    two_terms child;
    itemise(x, operand(s, e, k), false, &child);
    whole[k] = child.whole, item[k] = child.item;
  }
  if (x->unfit) return;
  out->whole =
      root ? rule_op(&s->arena, operator_of(s, e), whole, n) : rule_list(&s->arena, whole, n);
  out->item = root ? rule_op(&s->arena, operator_of(s, e), item, n) : rule_list(&s->arena, item, n);
}

static bool acts_on_items(const state *s, eg_node e) {
  const char *op = operator_of(s, e);
  return !s->rec[e.i].leaf && eg_node_arity(s->g, e) > 0 &&
         (rule_operator_of(op)->elementwise || strcmp(op, OP_DIST_ALL_REDUCE) == 0);
}

static iso_code find_item(state *s, eg_node e, int64_t i, int depth, eg_node *made, iso_error *err);

/* The item as the operator of `e` makes it of its operands' items. */
static iso_code item_by_operator(state *s, eg_node e, int64_t i, int depth, eg_node item,
                                 eg_node *made, iso_error *err) {
  itemised x = {.s = s, .n = s->rec[e.i].shape.dim[0], .i = i};
  two_terms t;
  bool done;
  iso_code c = ISO_OK;
  itemise(&x, e, true, &t);
  if (x.unfit) return ISO_OK;
  for (uint32_t k = 0; k < x.n_of && !c; k++) {
    eg_node ignored;
    if (is_vector(&x, x.of[k])) c = find_item(s, x.of[k], i, depth + 1, &ignored, err);
  }
  const rule_term *whole = item_term(s, t.whole, i);
  if (!c && (!whole || !t.item)) return nomem(err);
  if (!c) c = st_add_term(s, t.item, x.of, made, err);
  if (!c) c = st_value(s, *made, err);
  if (!c && st_values_equal(s, item, *made))
    c = join_by(s, &(identity){item, *made, whole, t.item, x.of, x.n_of}, &done, err);
  return c;
}

/* Item `i` of the vector `e`: in `made` as the term that computes it, if that is known. */
static iso_code find_item(state *s, eg_node e, int64_t i, int depth, eg_node *made,
                          iso_error *err) {
  const eg_node *m;
  eg_node list;
  bool done;
  iso_code c = item_node(s, e, i, made, err);
  const eg_node item = *made;
  if (c || depth == DEEP) return c;
  if (stacked(s, e, &list)) {
    *made = operand(s, list, (uint32_t)i);
    return item_of_list(s, list, i, item, &done, err);
  }
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t k = 0; k < n && !c; k++)
    if (acts_on_items(s, m[k])) return item_by_operator(s, m[k], i, depth, item, made, err);
  return c;
}

/* A vector is the list of its items. */
static iso_code join_items(state *s, eg_node e, int64_t n, bool *done, iso_error *err) {
  const rule_term *item[MOST_OPERANDS], *arg[2] = {NULL, rule_int(&s->arena, 0)};
  const rule_term *whole = rule_var(&s->arena, 0);
  eg_node made;
  for (int64_t i = 0; i < n; i++)
    if (!(item[i] = item_term(s, whole, i))) return nomem(err);
  arg[0] = rule_list(&s->arena, item, (size_t)n);
  const rule_term *t = arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  iso_code c = t ? st_add_term(s, t, &e, &made, err) : nomem(err);
  if (!c) c = st_value(s, made, err);
  return c ? c : join_by(s, &(identity){made, e, t, whole, &e, 1}, done, err);
}

/* ---- vectors below a number ---- */

/* Joins a number with one of the other graph, if there is one of its value. */
static iso_code join_number(state *s, eg_node e, int side, bool *joined, iso_error *err) {
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  double m[4];
  bool done = false;
  iso_code c = ISO_OK;
  if (!v) return st_lost(&s->values, err);
  st_moments(v, m);
  for (int32_t gi = st_next_group(s, 1, v->dtype, m, -1); gi >= 0 && !c && !done;
       gi = st_next_group(s, 1, v->dtype, m, gi))
    for (size_t k = 0; k < s->groups.of[gi].n && !c && !done; k++) {
      const eg_node x = s->groups.of[gi].member[k];
      if (is_number(s, x) && st_has_side(s, x, side) && st_values_equal(s, x, e))
        c = st_prove(s, x, e, &done, err);
    }
  *joined = done;
  return c;
}

/* Whether operators on numbers make each vector that `e` takes of lists of numbers. A vector of
 * another origin, as a bias's gradient, is no list: its norm is one number. */
static bool takes_lists(state *s, eg_node e, int depth) {
  bool all = depth < DEEP, any = false;
  eg_node list;
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && all; k++) {
    const eg_node of = operand(s, e, k);
    if (!st_is_list(s, of) && (st_literal(s, of) || is_number(s, of))) continue;
    if (st_is_list(s, of) && eg_node_arity(s->g, of) == 0) continue;
    any = all = (!st_is_list(s, of) && stacked(s, of, &list)) ||
                ((st_is_list(s, of) || acts_on_items(s, of)) && takes_lists(s, of, depth + 1));
  }
  return any && all;
}

/* A vector that operators on numbers make of lists. */
static bool is_of_items(state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  eg_node list;
  return r->tensor && r->valued && !r->konst && !r->leaf && r->shape.rank == 1 &&
         r->shape.dim[0] >= FEW && r->shape.dim[0] <= MOST_OPERANDS && acts_on_items(s, e) &&
         !stacked(s, e, &list) && takes_lists(s, e, 0);
}

static iso_code list_items(state *s, eg_node vector, int side, bool *any, iso_error *err) {
  const int64_t n = s->rec[vector.i].shape.dim[0];
  iso_code c = ISO_OK;
  bool done;
  for (int64_t i = 0; i < n && !c; i++) {
    eg_node item;
    c = find_item(s, vector, i, 0, &item, err);
    if (!c) c = join_number(s, item, side, &done, err);
  }
  if (!c) c = join_items(s, vector, n, &done, err);
  *any |= !c && done;
  return c;
}

/* The vectors that the number `e` is computed from, by operators on numbers and on them. */
static iso_code list_below(state *s, eg_node e, int side, int depth, bool *any, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && depth < DEEP && !c; k++) {
    const eg_node of = operand(s, e, k);
    if (is_of_items(s, of)) c = list_items(s, of, side, any, err);
    else if (is_number(s, of) || st_is_list(s, of))
      c = list_below(s, of, side, depth + 1, any, err);
  }
  return c;
}

/* ---- the number itself ---- */

/* Terms over numbers. */
typedef struct numbers {
  state *s;
  eg_node of[MOST_OPERANDS]; /* the variables */
  uint32_t n_of;
  eg_node whole[MOST_OPERANDS]; /* numbers that are written by ranks' variables */
  const rule_term *written[MOST_OPERANDS];
  uint32_t n_whole;
  bool unfit;
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
  return is_number(s, e) || (r->tensor && r->valued && r->shape.rank == 1 && r->shape.dim[0] == 1);
}

/* Whether an operator takes nothing but numbers, and vectors that are lists of them. */
static bool takes_numbers(state *s, eg_node e) {
  bool all = !s->rec[e.i].leaf && eg_node_arity(s->g, e) > 0;
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && all; k++) {
    const eg_node of = operand(s, e, k);
    eg_node list;
    if (st_is_list(s, of)) all = eg_node_arity(s->g, of) == 0 || takes_numbers(s, of);
    else all = st_literal(s, of) || is_one(s, of) || stacked(s, of, &list);
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

/* NULL: it has none, or no memory. */
static const rule_term *number_term(numbers *x, eg_node e, bool root, int depth) {
  state *s = x->s;
  const rule_term *child[MOST_OPERANDS], *literal = st_literal(s, e);
  eg_node list;
  if (literal) return literal;
  const bool number = is_one(s, e);
  const eg_node call = number && !root ? call_of(s, e) : e;
  if (call.i == EG_NONE) return number_var(x, e);
  e = call;
  x->unfit |= depth == LONG || eg_node_arity(s->g, e) > MOST_OPERANDS;
  if (!number && !st_is_list(s, e)) {
    if (!stacked(s, e, &list)) x->unfit = true;
    const rule_term *arg[2] = {x->unfit ? NULL : number_term(x, list, false, depth + 1),
                               rule_int(&s->arena, 0)};
    return arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  }
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && !x->unfit; k++)
    if (!(child[k] = number_term(x, operand(s, e, k), false, depth + 1))) x->unfit = true;
  if (x->unfit) return NULL;
  return st_is_list(s, e) ? rule_list(&s->arena, child, eg_node_arity(s->g, e))
                          : rule_op(&s->arena, operator_of(s, e), child, eg_node_arity(s->g, e));
}

/* The node whose norm a variable is; -1: it is none. */
static int32_t tensor_of(const numbers *x, uint32_t k, int side) {
  const state *s = x->s;
  const eg_node *m;
  if (strcmp(operator_of(s, x->of[k]), OP_VECTOR_NORM) != 0) return -1;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, operand(s, x->of[k], 0)), &m);
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

/* The norm of norms becomes a number, and is joined with one of the other graph. */
static iso_code write_whole(numbers *x, const uint32_t *of, uint32_t n, int side, bool *done,
                            iso_error *err) {
  state *s = x->s;
  const rule_term *var[MOST_OPERANDS], *arg[2] = {NULL, rule_int(&s->arena, 0)};
  for (uint32_t k = 0; k < n; k++)
    if (!(var[k] = rule_var(&s->arena, of[k]))) return nomem(err);
  arg[0] = rule_list(&s->arena, var, n);
  const rule_term *t = arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  arg[0] = t, arg[1] = rule_float(&s->arena, 2);
  if (!t || !arg[1]) return nomem(err);
  iso_code c = rule_call(&s->arena, s->schemas, OP_VECTOR_NORM, arg, 2, &t, err);
  if (!c) c = st_add_term(s, t, x->of, &x->whole[x->n_whole], err);
  if (!c) c = st_value(s, x->whole[x->n_whole], err);
  if (!c) c = join_number(s, x->whole[x->n_whole], !side, done, err);
  if (!c && *done) x->written[x->n_whole++] = t;
  return c;
}

/* The norm of what ranks have parts of is that of their norms: looked for with those of `k`'s peers
 * that are variables, too. */
static iso_code find_whole(numbers *x, uint32_t k, int side, iso_error *err) {
  const st_ranks *ranks = &x->s->ranks;
  uint32_t of[MOST_OPERANDS];
  int32_t tensor[MOST_OPERANDS];
  bool done = false;
  iso_code c = join_number(x->s, x->of[k], !side, &done, err);
  for (uint32_t j = 0; j < x->n_of; j++) tensor[j] = tensor_of(x, j, side);
  for (size_t i = 0; i < ranks->n_peers && !c && !done; i++) {
    const peers *p = &ranks->peers[i];
    if (p->side != side || p->n > x->n_of || tensor[k] != (int32_t)p->node[0]) continue;
    const uint32_t n = norms_of(p, tensor, x->n_of, of);
    if (n > 1 && of[0] == k) c = write_whole(x, of, n, side, &done, err);
  }
  return c;
}

/* One rule of both numbers, over those that ranks compute from tensors, or both graphs have. */
static iso_code join_as_numbers(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  numbers x = {.s = s};
  eg_node made[2];
  const int side = !s->ranks.whole_side;
  iso_code c = ISO_OK;
  if (!st_has_side(s, t, side)) return join_as_numbers(s, t, u, done, err);
  const rule_term *r = number_term(&x, t, true, 0);
  if (!r || x.n_of < FEW) return ISO_OK;
  for (uint32_t k = 0; k < x.n_of && !c; k++)
    if (!st_has_side(s, x.of[k], !side)) c = find_whole(&x, k, side, err);
  if (!c) c = eg_rebuild(s->g, err);
  const uint32_t n_of = x.n_of;
  const rule_term *l = c ? NULL : number_term(&x, u, true, 0);
  if (!l || x.n_of > n_of) return c; /* of what no rank computes nothing is known */
  c = st_add_term(s, l, x.of, &made[0], err);
  if (!c) c = st_add_term(s, r, x.of, &made[1], err);
  for (int k = 0; k < 2 && !c; k++) c = st_value(s, made[k], err);
  if (!c) c = join_by(s, &(identity){made[0], made[1], l, r, x.of, x.n_of}, done, err);
  if (!c && *done) c = eg_rebuild(s->g, err);
  *done = !c && eg_equal(s->g, u, t);
  return c;
}

iso_code st_join_numbers(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  iso_code c = ISO_OK;
  bool any = false;
  *done = false;
  if (!s->ranks.norms || s->search.itemising || !is_number(s, u) || !is_number(s, t)) return ISO_OK;
  s->search.itemising = true;
  for (int side = 0; side < 2 && !c; side++) {
    if (st_has_side(s, u, side)) c = list_below(s, u, !side, 0, &any, err);
    if (!c && st_has_side(s, t, side)) c = list_below(s, t, !side, 0, &any, err);
  }
  if (!c && any) c = eg_rebuild(s->g, err);
  const bool across = st_has_side(s, u, LEFT) != st_has_side(s, t, LEFT) &&
                      st_has_side(s, u, RIGHT) != st_has_side(s, t, RIGHT);
  if (!c && across && s->ranks.n_peers) c = join_as_numbers(s, u, t, done, err);
  s->search.itemising = false;
  return c;
}

iso_code st_join_items(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  eg_node list, other;
  const bool left = stacked(s, u, &list), right = stacked(s, t, &other);
  const eg_node vector = left ? t : u;
  iso_code c = ISO_OK;
  bool all = true;
  *done = false;
  if (left == right || s->search.itemising || s->rec[vector.i].konst) return ISO_OK;
  if (right) list = other;
  const int64_t n = (int64_t)eg_node_arity(s->g, list);
  if (s->rec[vector.i].shape.rank != 1 || s->rec[vector.i].shape.dim[0] != n) return ISO_OK;
  s->search.itemising = true;
  for (int64_t i = 0; i < n && !c && all; i++) {
    const eg_node number = operand(s, list, (uint32_t)i);
    eg_node item;
    c = find_item(s, vector, i, 0, &item, err);
    if (!c) c = st_prove(s, number, item, &all, err);
  }
  if (!c && all) c = join_items(s, vector, n, &all, err);
  s->search.itemising = false;
  if (!c && all) c = eg_rebuild(s->g, err);
  *done = !c && eg_equal(s->g, u, t);
  return c;
}
