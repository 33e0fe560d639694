/* Gradients of scores that come block by block.
 *
 * The gradient of a block is made of its weights below the maximum that its step knew, and of what
 * holds the rest of their factor: exp(that maximum - the last one) / the whole sum, pulled through
 * products, sums and copies along the rows. Said with the weights as parts of the whole sum it
 * needs no maximum, and no other block: a rule of one step. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/parts/running.h"
#include "synth/search/search.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* A tensor that holds, in each row, a factor of the scores' rows: exp(top of a step - top of the
 * last one) / the whole sum. In `with` the tensor as it is computed, in `without` the same without
 * that factor. */
typedef struct pulling {
  running *x;
  const step *end;
  eg_node var[RULE_MAX_VARS];
  uint32_t n;
} pulling;

typedef struct pulled {
  const rule_term *with, *without;
} pulled;

/* NULL: no memory, or no room, or it is no tensor. */
static const rule_term *variable(pulling *p, eg_node e) {
  const rec *r = p->x->s->rec;
  uint32_t k = 0;
  if (e.i == EG_NONE || !r[e.i].tensor || !r[e.i].valued) return NULL;
  while (k < p->n && !rn_same(p->x, p->var[k], e)) k++;
  if (k == RULE_MAX_VARS) return NULL;
  if (k == p->n) p->var[p->n++] = e;
  return rule_var(&p->x->s->arena, k);
}

/* Operands 1 and on of a call: literals, or variables. Returns: how many in all; 0: such a call is
 * not looked into. */
static uint32_t operands_of(pulling *p, uint32_t i, const rule_term **arg) {
  const rule_term *call = p->x->g->node[i].call;
  if (call->n > 8) return 0;
  for (uint32_t k = 1; k < call->n; k++) {
    const rule_term *t = call->child[k];
    if (t->kind == RULE_OP) return 0;
    arg[k] = t->kind == RULE_VAR ? variable(p, rn_operand(p->x, i, k)) : t;
    if (!arg[k]) return 0;
  }
  return call->n;
}

/* Pulls the factor of step `at` out of node `i`. */
static bool pull(pulling *p, uint32_t i, const step *at, int depth, pulled *out);

static bool pull_operand(pulling *p, uint32_t i, uint32_t k, const step *at, int depth,
                         pulled *out) {
  const rule_term *t = p->x->g->node[i].call->child[k];
  return t->kind == RULE_VAR && pull(p, (uint32_t)t->u.i, at, depth + 1, out);
}

/* A call through which a factor of rows passes with its first operand. */
static bool passes(const running *x, uint32_t i, const step *end) {
  const rule_operator *o = rule_operator_of(x->g->node[i].call->u.s);
  uint32_t d;
  return o->contracts == RULE_CONTRACTS_MATRICES || o->broadcasts ||
         o->arithmetic == RULE_ARITHMETIC_MUL || o->arithmetic == RULE_ARITHMETIC_DIV ||
         o->arithmetic == RULE_ARITHMETIC_NEG ||
         (rn_calls(x, i, OP_SUM_DIM) && rn_reduced(x, i, &d) && d == end->d);
}

/* The sum of two tensors. */
static bool adds(const running *x, uint32_t i) {
  const rule_term *call = x->g->node[i].call;
  return rn_calls(x, i, OP_ADD_TENSOR) && call->n == 3 && call->child[2]->kind != RULE_VAR;
}

/* Without a factor it has the shape that it has with it. */
static bool has_shape(const running *x, eg_node a, eg_node e) {
  const rec *r = x->s->rec;
  return a.i != EG_NONE && rule_shape_eq(&r[a.i].shape, &r[e.i].shape);
}

static bool pull(pulling *p, uint32_t i, const step *at, int depth, pulled *out) {
  enum { DEEP = 8 };
  running *x = p->x;
  state *s = x->s;
  iso_arena *a = &s->arena;
  const synth_node *n = &x->g->node[i];
  const eg_node e = s->map[x->side][i];
  pulled first, second;
  if (depth == DEEP || n->kind != SYNTH_OP || e.i == EG_NONE || !s->rec[e.i].tensor) return false;
  if (n->call->n > 1 &&
      rn_same(x, e, rn_operand(x, i, 0))) /* times 1, as often as blocks are hidden */
    return pull_operand(p, i, 0, at, depth - 1, out);
  const scaled *by = rn_scaled(x, e);
  if (by && has_shape(x, by->of, e) && x->step[by->from].before == at - x->step &&
      &x->step[by->to] == p->end) {
    const int32_t of = s->rec[by->of.i].node[x->side];
    if (of < 0 || !pull(p, (uint32_t)of, p->end, depth + 1, &first)) return false;
    const rule_term *from = variable(p, at->top), *to = variable(p, p->end->top);
    out->with = rn_call(s, OP_MUL_TENSOR, first.with, rn_exp_below(s, from, to));
    out->without = first.without;
    return out->with;
  }
  if (at == p->end && rn_calls(x, i, OP_DIV_TENSOR) &&
      rn_same(x, rn_operand(x, i, 1), p->end->total) && has_shape(x, rn_operand(x, i, 0), e)) {
    out->without = variable(p, rn_operand(x, i, 0));
    out->with = rn_call(s, OP_DIV_TENSOR, out->without, variable(p, p->end->total));
    return out->with;
  }
  if (adds(x, i)) {
    if (!pull_operand(p, i, 0, at, depth, &first) || !pull_operand(p, i, 1, at, depth, &second))
      return false;
    const rule_term *with[3] = {first.with, second.with, n->call->child[2]},
                    *without[3] = {first.without, second.without, n->call->child[2]};
    out->with = rule_op(a, n->call->u.s, with, 3);
    out->without = rule_op(a, n->call->u.s, without, 3);
    return out->with && out->without;
  }
  const rule_term *arg[8];
  if (!passes(x, i, p->end) || !pull_operand(p, i, 0, at, depth, &first)) return false;
  const uint32_t n_args = operands_of(p, i, arg);
  if (!n_args) return false;
  arg[0] = first.with;
  out->with = rule_op(a, n->call->u.s, arg, n_args);
  arg[0] = first.without;
  out->without = rule_op(a, n->call->u.s, arg, n_args);
  return out->with && out->without;
}

/* Node `i` computes its gradient from the weights of step `at` and what holds their factor: the
 * same from the weights as parts of the whole sum. `turned`: the call between, where the weights
 * are an operand in another layout; NULL: none. */
static iso_code join_gradient(running *x, uint32_t i, step *at, uint32_t weights,
                              const rule_term *turned, iso_error *err) {
  state *s = x->s;
  iso_arena *a = &s->arena;
  pulling p = {.x = x, .end = rn_end(x, at)};
  const rule_term *call = x->g->node[i].call, *l[2], *r[2];
  pulled rest;
  if (call->n != 2 || p.end->total.i == EG_NONE || !pull_operand(&p, i, 1 - weights, at, 0, &rest))
    return ISO_OK;
  const rule_term *block = variable(&p, at->block), *end = variable(&p, p.end->top),
                  *top = variable(&p, at->top), *total = variable(&p, p.end->total);
  if (!block || !end || !top || !total) return ISO_OK;
  l[weights] = rn_exp_below(s, block, top);
  r[weights] = rn_call(s, OP_DIV_TENSOR, rn_exp_below(s, block, end), total);
  if (!l[weights] || !r[weights]) return nomem(err);
  for (int k = 0; turned && k < 2; k++) {
    const rule_term *arg[8] = {k ? r[weights] : l[weights]}, **out = k ? r : l;
    for (uint32_t j = 1; j < turned->n; j++) arg[j] = turned->child[j];
    if (!(out[weights] = rule_op(a, turned->u.s, arg, turned->n))) return nomem(err);
  }
  l[1 - weights] = rest.with;
  r[1 - weights] = rest.without;
  const st_stated both = {
      .l = rule_op(a, call->u.s, l, 2), .r = rule_op(a, call->u.s, r, 2), .var = p.var, .n = p.n};
  bool done;
  if (!both.l || !both.r) return nomem(err);
  iso_code c = st_join_stated(s, &both, &done, err);
  if (done && p.end->row != NONE) s->ranks.tiles.row_at[x->side][i] = 1 + (uint32_t)p.end->row;
  return c ? c : eg_rebuild(s->g, err);
}

/* The step whose weights this is. NULL: of none. */
static step *of_weights(const running *x, eg_node e) {
  for (size_t k = 0; k < x->n; k++)
    if (rn_same(x, x->step[k].weights, e)) return &x->step[k];
  return NULL;
}

/* Another layout of the first operand, as literals say. */
static bool turns(const rule_term *call) {
  bool literal = call->n <= 8 && rule_operator_of(call->u.s)->rearranges;
  for (uint32_t k = 1; k < call->n; k++) literal &= call->child[k]->kind != RULE_VAR;
  return literal;
}

iso_code rn_join_gradients(running *x, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t m = 0; m < x->n_calls && !c; m++) {
    const uint32_t i = x->call[m];
    const synth_node *n = &x->g->node[i];
    const bool product = rule_operator_of(n->call->u.s)->contracts == RULE_CONTRACTS_MATRICES;
    if (!product && !rn_calls(x, i, OP_MUL_TENSOR)) continue;
    for (uint32_t k = 0; k < 2 && k < n->call->n && !c; k++) {
      const rule_term *t = n->call->child[k];
      step *at = t->kind == RULE_VAR && !product ? of_weights(x, rn_operand(x, i, k)) : NULL;
      if (at) c = join_gradient(x, i, at, k, NULL, err);
      const synth_node *of = t->kind == RULE_VAR ? &x->g->node[t->u.i] : NULL;
      if (!product || k || !of || of->kind != SYNTH_OP || !turns(of->call)) continue;
      if ((at = of_weights(x, rn_operand(x, (uint32_t)t->u.i, 0))))
        c = join_gradient(x, i, at, 0, of->call, err);
    }
  }
  return c;
}
