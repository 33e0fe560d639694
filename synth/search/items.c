/* A vector that one graph puts together of numbers, and the other computes as a vector.
 *
 * The norm of all gradients is that of a list of norms, one for each parameter. Where ranks hold
 * shards, each has its own list, and squares of the lists are added up: as one rule, it would speak
 * of every shard of every parameter. But an item of a vector is its operator's result on the
 * operands' items. So each number is joined with the item in its place, by rules of single
 * operators, and the vector with the list of its items. */
#include "synth/search/items.h"

enum { DEEP = 8 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool is_square(const rule_term *t) {
  if (t->n < 2 || t->child[0]->kind != RULE_VAR) return false;
  const rule_term *by = t->child[1];
  if (rule_is_overload(t->u.s, OP_POW))
    return (by->kind == RULE_INT && by->u.i == 2) || (by->kind == RULE_FLOAT && by->u.f == 2);
  return rule_operator_of(t->u.s)->arithmetic == RULE_ARITHMETIC_MUL &&
         rule_term_eq(t->child[0], by);
}

/* A norm, or a number that is made of all squares of a tensor. */
static bool is_norm(const synth_graph *g, const synth_node *n) {
  if (n->kind != SYNTH_OP) return false;
  if (rule_is_overload(n->call->u.s, OP_VECTOR_NORM)) return true;
  if (n->shape.rank > 0 || !rule_operator_of(n->call->u.s)->reduces) return false;
  if (!n->call->n || n->call->child[0]->kind != RULE_VAR) return false;
  const synth_node *of = &g->node[n->call->child[0]->u.i];
  return of->kind == SYNTH_OP && of->shape.rank > 0 && is_square(of->call);
}

void st_find_norms(state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !s->ranks.norms; i++)
      s->ranks.norms = is_norm(s->graph[side], &s->graph[side]->node[i]);
}

/* A list of numbers as a vector, and the list. */
static bool stacks(state *s, eg_node e, eg_node *list) {
  if (s->rec[e.i].leaf || strcmp(st_operator(s, e), OP_STACK) != 0) return false;
  *list = items_operand(s, e, 0);
  const size_t n = eg_node_arity(s->g, *list);
  const rule_term *d = st_literal(s, items_operand(s, e, 1));
  if (!d || d->kind != RULE_INT || d->u.i != 0) return false;
  for (uint32_t k = 0; k < n; k++)
    if (!items_is_number(s, items_operand(s, *list, k))) return false;
  return n >= FEW && n <= MOST_OPERANDS;
}

bool st_stacked(state *s, eg_node e, eg_node *list) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (stacks(s, m[i], list)) return true;
  return false;
}

/* ---- a rule that is known beforehand ---- */

/* Joins both ends, if the rule that says so holds. */
iso_code st_join_by(state *s, const identity *x, bool *done, iso_error *err) {
  builder b = {.s = s, .n_vars = x->n};
  rule cand;
  rule_tensor *example[RULE_MAX_VARS];
  fr_decision as;
  *done = eg_equal(s->g, x->from, x->to);
  if (*done) return ISO_OK;
  for (size_t i = 0; i < x->n; i++) b.var[i] = eg_class_of(s->g, x->bind[i]);
  if (!fr_rule(s, &b, x->l, x->r, &cand, example)) return nomem(err);
  iso_code c = fr_decide(s, &cand, example, false, &as, err);
  if (c || as.index == SIZE_MAX || !st_usable(s, as.index)) return c;
  *done = true;
  const st_use use = {.rule = as.index, .from = x->from, .to = x->to, .as = &cand, .var = x->bind};
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
    bind[k] = items_operand(s, list, k);
    if (!(member[k] = rule_var(&s->arena, k))) return nomem(err);
  }
  arg[0] = rule_list(&s->arena, member, n);
  const rule_term *t = arg[0] && arg[1] ? rule_op(&s->arena, OP_STACK, arg, 2) : NULL;
  if (!(t = item_term(s, t, i))) return nomem(err);
  return st_join_by(s, &(identity){item, bind[i], t, member[i], bind, n}, done, err);
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
    x->unfit |= x->n_of == MOST_OPERANDS || (!is_vector(x, e) && !items_is_number(s, e));
    if (x->unfit) return;
    x->of[x->n_of] = e;
    out->whole = out->item = rule_var(&s->arena, x->n_of++);
    if (is_vector(x, e)) out->item = item_term(s, out->whole, x->i);
    return;
  }
  x->unfit |= n > MOST_OPERANDS;
  for (uint32_t k = 0; k < n && !x->unfit; k++) {
    two_terms child;
    itemise(x, items_operand(s, e, k), false, &child);
    whole[k] = child.whole, item[k] = child.item;
  }
  if (x->unfit) return;
  out->whole =
      root ? rule_op(&s->arena, st_operator(s, e), whole, n) : rule_list(&s->arena, whole, n);
  out->item = root ? rule_op(&s->arena, st_operator(s, e), item, n) : rule_list(&s->arena, item, n);
}

static bool acts_on_items(const state *s, eg_node e) {
  const char *op = st_operator(s, e);
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
    c = st_join_by(s, &(identity){item, *made, whole, t.item, x.of, x.n_of}, &done, err);
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
  if (st_stacked(s, e, &list)) {
    *made = items_operand(s, list, (uint32_t)i);
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
  return c ? c : st_join_by(s, &(identity){made, e, t, whole, &e, 1}, done, err);
}

/* ---- vectors below a number ---- */

/* Joins a number with one of the other graph, if there is one of its value. */
iso_code st_join_number(state *s, eg_node e, int side, bool *joined, iso_error *err) {
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
      if (items_is_number(s, x) && st_has_side(s, x, side) && st_values_equal(s, x, e))
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
    const eg_node of = items_operand(s, e, k);
    if (!st_is_list(s, of) && (st_literal(s, of) || items_is_number(s, of))) continue;
    if (st_is_list(s, of) && eg_node_arity(s->g, of) == 0) continue;
    any = all = (!st_is_list(s, of) && st_stacked(s, of, &list)) ||
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
         !st_stacked(s, e, &list) && takes_lists(s, e, 0);
}

static iso_code list_items(state *s, eg_node vector, int side, bool *any, iso_error *err) {
  const int64_t n = s->rec[vector.i].shape.dim[0];
  iso_code c = ISO_OK;
  bool done;
  for (int64_t i = 0; i < n && !c; i++) {
    eg_node item;
    c = find_item(s, vector, i, 0, &item, err);
    if (!c) c = st_join_number(s, item, side, &done, err);
  }
  if (!c) c = join_items(s, vector, n, &done, err);
  *any |= !c && done;
  return c;
}

/* The vectors that the number `e` is computed from, by operators on numbers and on them. */
static iso_code list_below(state *s, eg_node e, int side, int depth, bool *any, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < eg_node_arity(s->g, e) && depth < DEEP && !c; k++) {
    const eg_node of = items_operand(s, e, k);
    if (is_of_items(s, of)) c = list_items(s, of, side, any, err);
    else if (items_is_number(s, of) || st_is_list(s, of))
      c = list_below(s, of, side, depth + 1, any, err);
  }
  return c;
}

iso_code st_join_numbers(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  iso_code c = ISO_OK;
  bool any = false;
  *done = false;
  if (!s->ranks.norms || s->search.itemising || !items_is_number(s, u) || !items_is_number(s, t))
    return ISO_OK;
  s->search.itemising = true;
  for (int side = 0; side < 2 && !c; side++) {
    if (st_has_side(s, u, side)) c = list_below(s, u, !side, 0, &any, err);
    if (!c && st_has_side(s, t, side)) c = list_below(s, t, !side, 0, &any, err);
  }
  if (!c && any) c = eg_rebuild(s->g, err);
  const bool across = st_has_side(s, u, LEFT) != st_has_side(s, t, LEFT) &&
                      st_has_side(s, u, RIGHT) != st_has_side(s, t, RIGHT);
  if (!c && across && s->ranks.n_peers) c = st_join_as_numbers(s, u, t, done, err);
  s->search.itemising = false;
  return c;
}

iso_code st_join_items(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  eg_node list, other;
  const bool left = st_stacked(s, u, &list), right = st_stacked(s, t, &other);
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
    const eg_node number = items_operand(s, list, (uint32_t)i);
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
