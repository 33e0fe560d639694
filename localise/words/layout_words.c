/* Two operands that hold the same elements in another order: by which views and copies each side
 * lays them out, and the first step in which the two part. */
#include "localise/words/wiring.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

/* It gives all numbers of its one operand, in other places or several times. */
bool lo_lays_out(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->rearranges || o->broadcasts || o->joins;
}

/* Node i only passes its first operand on, or lays it out. */
static bool is_step(const parting *p, int side, uint32_t i) {
  const synth_node *n = &p->s->graph[side]->node[i];
  return n->kind == SYNTH_OP && !rule_is_getitem(n->op) &&
         (lo_lays_out(n->op) || lo_passes_on(p, side, i)) && n->call->n &&
         n->call->child[0]->kind == RULE_VAR;
}

static lo_chain chain_of(const parting *p, int side, uint32_t i) {
  lo_chain c = {.node = {i}, .n = 1};
  while (c.n < LO_CHAIN && is_step(p, side, i))
    c.node[c.n++] = i = (uint32_t)lo_node(p, side, i)->call->child[0]->u.i;
  return c;
}

/* The operators that lay out what a chain begins at, from the first to the last. */
static const char *laid_out(const parting *p, int side, const lo_chain *c) {
  iso_arena *const a = &p->s->res->arena;
  const char *words = "", *last = "";
  for (size_t k = 0; k + 1 < c->n && words; k++) {
    const char *const name = lo_node(p, side, c->node[k])->op, *const op = lo_short_name(a, name);
    if (!lo_lays_out(name) || !op || strcmp(op, last) == 0) continue;
    words = iso_arena_printf(a, "%s%s%s", op, *words ? ", " : "", words);
    last = op;
  }
  return words;
}

static bool one_tensor(const parting *p, uint32_t l, uint32_t r) {
  const rule_tensor *x = lo_value(p, LEFT, l), *y = lo_value(p, RIGHT, r);
  return x && y && lo_same_but_ones(&x->shape, &y->shape) && lo_agree(p, x, y);
}

bool lo_meet(const parting *p, const lo_chain c[2], size_t meet[2]) {
  for (size_t sum = 0; sum + 1 < c[LEFT].n + c[RIGHT].n; sum++)
    for (size_t i = 0; i <= sum && i < c[LEFT].n; i++)
      if (sum - i < c[RIGHT].n && one_tensor(p, c[LEFT].node[i], c[RIGHT].node[sum - i])) {
        meet[LEFT] = i;
        meet[RIGHT] = sum - i;
        return true;
      }
  return false;
}

/* How many operators that count for something read node i. */
static size_t readers(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  size_t n = 0;
  if (!flag) return 2; /* then the place stays at the operator that reads it */
  flag[i] = true;
  for (size_t k = i + 1; k < g->n_nodes; k++)
    n += g->node[k].kind == SYNTH_OP && p->s->map[side][k].i != EG_NONE &&
         st_term_uses(g->node[k].call, flag);
  free(flag);
  return n;
}

/* The step of a chain behind place `meet`, where nothing else reads it or what is made of it. */
static void put_step(const parting *p, int side, const lo_chain *c, size_t meet, int64_t *step) {
  if (meet == 0) return;
  for (size_t k = 0; k < meet; k++)
    if (readers(p, side, c->node[k]) != 1) return;
  *step = c->node[meet - 1];
}

/* The place of element i with the indices of dimensions a and b exchanged. */
static int64_t exchanged(const rule_shape *shape, int64_t i, uint32_t a, uint32_t b) {
  int64_t index[RULE_MAX_RANK], at = 0;
  for (uint32_t k = shape->rank; k-- > 0; i /= shape->dim[k]) index[k] = i % shape->dim[k];
  for (uint32_t k = 0; k < shape->rank; k++)
    at = at * shape->dim[k] + index[k == a ? b : k == b ? a : k];
  return at;
}

/* y is x with dimensions a and b exchanged. */
static bool is_transposed(const parting *p, const rule_tensor *x, const rule_tensor *y, uint32_t a,
                          uint32_t b) {
  rule_tensor *t = NULL;
  iso_error ignored;
  if (x->shape.dim[a] != x->shape.dim[b] || x->shape.dim[a] < 2 ||
      rule_tensor_new(x->dtype, &x->shape, &t, &ignored))
    return false;
  for (int64_t i = 0; i < x->numel; i++)
    rule_tensor_set(t, i, rule_tensor_get(x, exchanged(&x->shape, i, a, b)));
  const bool is = lo_agree(p, t, y);
  rule_tensor_unref(t);
  return is;
}

/* The operands themselves are one another's transposes, however they came about. */
static const char *transposed(const parting *p, const uint32_t at[2]) {
  const rule_tensor *x = lo_value(p, LEFT, at[LEFT]), *y = lo_value(p, RIGHT, at[RIGHT]);
  double of_x[4], of_y[4];
  if (!x || !y || !rule_dtype_is_float(x->dtype) || x->dtype != y->dtype ||
      !rule_shape_eq(&x->shape, &y->shape))
    return NULL;
  st_moments(x, of_x);
  st_moments(y, of_y);
  if (!st_near_moments(of_x, of_y)) return NULL;
  for (uint32_t b = 1; b < x->shape.rank; b++)
    for (uint32_t a = 0; a < b; a++)
      if (is_transposed(p, x, y, a, b))
        return iso_arena_printf(&p->s->res->arena,
                                "%s on the right is %s on the left with dimensions %d and %d "
                                "exchanged",
                                lo_named(p, RIGHT, at[RIGHT]), lo_named(p, LEFT, at[LEFT]), (int)a,
                                (int)b);
  return NULL;
}

/* The place in a chain behind the operator that made its first tensor. */
static size_t behind_maker(const parting *p, int side, const lo_chain *c) {
  const uint32_t made = lo_maker(p, side, c->node[0]);
  size_t k = 0;
  while (k + 1 < c->n && c->node[k] != made) k++;
  return lo_node(p, side, made)->kind == SYNTH_OP ? k + 1 : 0;
}

const char *lo_other_layout(const parting *p, const uint32_t at[2], int64_t step[2]) {
  const lo_chain c[2] = {chain_of(p, LEFT, at[LEFT]), chain_of(p, RIGHT, at[RIGHT])};
  const char *const left = laid_out(p, LEFT, &c[LEFT]),
                    *const right = laid_out(p, RIGHT, &c[RIGHT]), *words;
  const uint32_t from[2] = {c[LEFT].node[c[LEFT].n - 1], c[RIGHT].node[c[RIGHT].n - 1]};
  size_t meet[2];
  if (left && right && *left && *right && one_tensor(p, from[LEFT], from[RIGHT]))
    words = iso_arena_printf(&p->s->res->arena,
                             "the elements of %s stand in another order: the left reads them "
                             "through %s, the right through %s",
                             lo_named(p, LEFT, from[LEFT]), left, right);
  else words = transposed(p, at);
  if (words && !lo_meet(p, c, meet))
    for (int side = 0; side < 2; side++) meet[side] = behind_maker(p, side, &c[side]);
  for (int side = 0; side < 2 && words; side++)
    put_step(p, side, &c[side], meet[side], &step[side]);
  return words;
}
