/* Running maxima and sums: a softmax over blocks that come one after another.
 *
 * Who sees a row of scores block by block keeps the largest score so far, the sum of exponentials
 * below it, and the sum of values weighed by these; a new block changes all three. Written out, a
 * step holds all steps before it, and so does the gradient of each block. But after each step the
 * three are what they are of all scores so far put together: a rule of one step, the same for each
 * of them. So a tensor of neither graph is joined with each: the largest of the concatenation, the
 * sum over it, the product with the values put together. Factors from one maximum to a later one
 * become one factor, and the last quotient a softmax (Milakov and Gimelshein, *Online normalizer
 * calculation for softmax*, 2018). */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/parts/parts.h"
#include "synth/parts/running.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- nodes ---- */

/* The e-node of operand k of a call; EG_NONE: it is no tensor. */
eg_node rn_operand(const running *x, uint32_t i, uint32_t k) {
  const rule_term *call = x->g->node[i].call;
  if (k >= call->n || call->child[k]->kind != RULE_VAR) return (eg_node){EG_NONE};
  return x->s->map[x->side][call->child[k]->u.i];
}

bool rn_same(const running *x, eg_node a, eg_node b) {
  return a.i != EG_NONE && b.i != EG_NONE && eg_equal(x->s->g, a, b);
}

/* Whether node `i` is a call of the operator on tensors with values. */
bool rn_calls(const running *x, uint32_t i, const char *op) {
  const synth_node *n = &x->g->node[i];
  const eg_node e = x->s->map[x->side][i];
  return n->kind == SYNTH_OP && e.i != EG_NONE && x->s->rec[e.i].tensor && x->s->rec[e.i].valued &&
         strcmp(n->call->u.s, op) == 0;
}

/* The one dimension that a call reduces and keeps as 1. */
bool rn_reduced(const running *x, uint32_t i, uint32_t *d) {
  const rule_term *call = x->g->node[i].call;
  const eg_node of = rn_operand(x, i, 0);
  if (of.i == EG_NONE || call->n < 3 || call->child[1]->kind != RULE_LIST ||
      call->child[1]->n != 1 || call->child[1]->child[0]->kind != RULE_INT)
    return false;
  const int64_t rank = x->s->rec[of.i].shape.rank, at = call->child[1]->child[0]->u.i;
  if (at < -rank || at >= rank) return false;
  *d = (uint32_t)(at < 0 ? at + rank : at);
  return x->s->rec[x->s->map[x->side][i].i].shape.rank == rank;
}

/* ---- terms ---- */

/* Parts beside one another. NULL: no memory. */
static const rule_term *beside(iso_arena *a, const rule_term *const *part, uint32_t n, uint32_t d) {
  const rule_term *arg[2] = {NULL, rule_int(a, d)};
  for (uint32_t k = 0; k < n; k++)
    if (!part[k]) return NULL;
  if (n == 1) return part[0];
  arg[0] = rule_list(a, part, n);
  return arg[0] && arg[1] ? rule_op(a, OP_CAT, arg, 2) : NULL;
}

const rule_term *rn_call(state *s, const char *op, const rule_term *l, const rule_term *r) {
  const rule_term *arg[2] = {l, r}, *out;
  iso_error ignored;
  return l && r && !rule_call(&s->arena, s->schemas, op, arg, 2, &out, &ignored) ? out : NULL;
}

const rule_term *rn_exp_below(state *s, const rule_term *a, const rule_term *b) {
  const rule_term *d = rn_call(s, OP_SUB_TENSOR, a, b), *out;
  iso_error ignored;
  return d && !rule_call(&s->arena, s->schemas, OP_EXP, &d, 1, &out, &ignored) ? out : NULL;
}

/* One call over e-nodes, with values. `more`: literals behind them. */
static iso_code made(running *x, const char *op, const eg_node *of, uint32_t n,
                     const rule_term *more, eg_node *out, iso_error *err) {
  enum { MOST = 2 };
  state *s = x->s;
  iso_arena *a = &s->arena;
  const rule_term *arg[MOST + 1], *t;
  for (uint32_t k = 0; k < n; k++)
    if (!(arg[k] = rule_var(a, k))) return nomem(err);
  if (more) arg[n++] = more;
  iso_code c = rule_call(a, s->schemas, op, arg, n, &t, err);
  if (!c) c = st_add_term(s, t, of, out, err);
  return c ? c : st_value(s, *out, err);
}

static iso_code together(running *x, eg_node a, eg_node b, uint32_t d, eg_node *out,
                         iso_error *err) {
  state *s = x->s;
  const rule_term *part[2] = {rule_var(&s->arena, 0), rule_var(&s->arena, 1)},
                  *t = beside(&s->arena, part, 2, d);
  const eg_node of[2] = {a, b};
  if (!t) return nomem(err);
  iso_code c = st_add_term(s, t, of, out, err);
  return c ? c : st_value(s, *out, err);
}

/* A reduction along `d` that keeps it. */
static iso_code along(running *x, const char *op, eg_node of, uint32_t d, eg_node *out,
                      iso_error *err) {
  state *s = x->s;
  iso_arena *a = &s->arena;
  const rule_term *at = rule_int(a, d),
                  *arg[3] = {rule_var(a, 0), at ? rule_list(a, &at, 1) : NULL, rule_bool(a, true)},
                  *t;
  if (!arg[0] || !arg[1] || !arg[2]) return nomem(err);
  iso_code c = rule_call(a, s->schemas, op, arg, 3, &t, err);
  if (!c) c = st_add_term(s, t, &of, out, err);
  return c ? c : st_value(s, *out, err);
}

/* exp(a - b) */
static iso_code below(running *x, eg_node a, eg_node b, eg_node *out, iso_error *err) {
  const eg_node of[2] = {a, b};
  eg_node difference;
  iso_code c = made(x, OP_SUB_TENSOR, of, 2, NULL, &difference, err);
  return c ? c : made(x, OP_EXP, &difference, 1, NULL, out, err);
}

/* A rule that they are equal, where their values are. */
static iso_code join(running *x, eg_node e, eg_node made, bool *done, iso_error *err) {
  state *s = x->s;
  *done = eg_equal(s->g, e, made);
  if (*done || !rule_shape_eq(&s->rec[e.i].shape, &s->rec[made.i].shape) ||
      !st_values_equal(s, e, made))
    return ISO_OK;
  iso_code c = st_prove(s, e, made, done, err);
  return c ? c : eg_rebuild(s->g, err);
}

/* The place of the first of the nodes from `from` on. */
static size_t first_call(const running *x, uint32_t from) {
  size_t low = 0, high = x->n_calls;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (x->call[middle] < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Nodes from `from` on that call `op`, or add up, and have these values, joined with `made`; in
 * `out` the first. */
static iso_code find(running *x, const char *op, uint32_t from, eg_node made, eg_node *out,
                     iso_error *err) {
  state *s = x->s;
  const rule_shape *shape = &s->rec[made.i].shape;
  iso_code c = ISO_OK;
  bool done = false;
  out->i = EG_NONE;
  for (size_t k = first_call(x, from); k < x->n_calls && !c; k++) {
    const uint32_t i = x->call[k];
    if (!rn_calls(x, i, op) && !rn_calls(x, i, OP_ADD_TENSOR)) continue;
    const eg_node e = s->map[x->side][i];
    if (!rule_shape_eq(&s->rec[e.i].shape, shape)) continue;
    c = join(x, e, made, &done, err);
    if (!c && done && out->i == EG_NONE) *out = e;
  }
  return c;
}

/* ---- steps ---- */

/* The last step with this maximum. NULL: none. */
static step *with_top(const running *x, eg_node top) {
  for (size_t k = x->n; k-- > 0;)
    if (rn_same(x, x->step[k].top, top)) return &x->step[k];
  return NULL;
}

/* Whether tensors can be put together along `d`. */
static bool fit(const running *x, eg_node a, eg_node b, uint32_t d) {
  const rule_shape *l = &x->s->rec[a.i].shape, *r = &x->s->rec[b.i].shape;
  bool same = l->rank == r->rank && d < l->rank;
  for (uint32_t k = 0; k < l->rank && same; k++) same = k == d || l->dim[k] == r->dim[k];
  return same;
}

/* The operand of a product with `weights`, a matrix or several. */
static eg_node weighed(const running *x, eg_node weights, const char **product) {
  for (size_t k = 0; k < x->n_calls; k++) {
    const uint32_t i = x->call[k];
    const synth_node *n = &x->g->node[i];
    if (n->call->n != 2 || rule_operator_of(n->call->u.s)->contracts != RULE_CONTRACTS_MATRICES ||
        !rn_same(x, rn_operand(x, i, 0), weights))
      continue;
    const eg_node of = rn_operand(x, i, 1);
    *product = n->call->u.s;
    if (of.i != EG_NONE && x->s->rec[of.i].valued && x->s->rec[of.i].shape.rank > 1) return of;
  }
  return (eg_node){EG_NONE};
}

static iso_code add_step(running *x, const step *a, const step *b, step *now, iso_error *err) {
  bool done = false;
  eg_node top;
  if (a->d != b->d || !fit(x, a->scores, b->scores, a->d)) return ISO_OK;
  iso_code c = together(x, a->scores, b->scores, a->d, &now->scores, err);
  if (!c) c = along(x, OP_AMAX, now->scores, a->d, &top, err);
  if (!c) c = join(x, now->top, top, &done, err);
  if (!c && done) c = below(x, a->top, now->top, &now->factor, err);
  if (!c && done) c = below(x, b->block, now->top, &now->weights, err);
  if (c || !done) return c;
  now->before = (int32_t)(a - x->step);
  now->block = b->block;
  now->d = a->d;
  if (!iso_grow(x->step, x->cap, x->n + 1)) return nomem(err);
  x->step[x->n++] = *now;
  return ISO_OK;
}

/* Whether block `b` is masked wholly: then nothing changes. */
static iso_code is_hidden(running *x, eg_node top, const step *a, const step *b, bool *hidden,
                          iso_error *err) {
  state *s = x->s;
  if (!st_values_equal(s, top, a->top)) return ISO_OK;
  iso_code c = st_join_fill(s, b->block, err);
  if (!c) c = st_join_fill(s, b->top, err);
  if (!c) c = join(x, top, a->top, hidden, err);
  x->hides |= *hidden;
  return c;
}

static bool is_float(const running *x, eg_node e) {
  const rule_tensor *v = st_val(x->s, e, 0);
  return v && rule_dtype_is_float(v->dtype);
}

/* Maxima of blocks, and of two of these. */
static iso_code find_steps(running *x, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k < x->n_calls && !c; k++) {
    const uint32_t i = x->call[k];
    const eg_node e = x->s->map[x->side][i], none = {EG_NONE};
    step now = {.top = e,
                .node = i,
                .before = NONE,
                .row = NONE,
                .value = none,
                .values = none,
                .total = none,
                .out = none,
                .factor = none};
    if (rn_calls(x, i, OP_AMAX) && rn_reduced(x, i, &now.d) && is_float(x, e)) {
      now.scores = now.block = rn_operand(x, i, 0);
      if (!iso_grow(x->step, x->cap, x->n + 1)) return nomem(err);
      c = below(x, now.block, now.top, &now.weights, err);
      if (!c) x->step[x->n++] = now;
    } else if (rn_calls(x, i, OP_MAXIMUM)) {
      const step *a = with_top(x, rn_operand(x, i, 0)), *b = with_top(x, rn_operand(x, i, 1));
      bool hidden = false;
      if (a && b) c = is_hidden(x, e, a, b, &hidden, err);
      if (c || hidden) continue;
      if (a && b && b->before == NONE) c = add_step(x, a, b, &now, err);
      else if (a && b && a->before == NONE) c = add_step(x, b, a, &now, err);
    }
  }
  return c;
}

/* ---- sums ---- */

static iso_code find_total(running *x, step *now, iso_error *err) {
  eg_node weights, total;
  iso_code c = below(x, now->scores, now->top, &weights, err);
  if (!c) c = along(x, OP_SUM_DIM, weights, now->d, &total, err);
  if (!c) c = find(x, OP_SUM_DIM, now->node, total, &now->total, err);
  return c;
}

static iso_code find_out(running *x, step *now, iso_error *err) {
  const step *was = now->before == NONE ? NULL : &x->step[now->before];
  eg_node weights, out;
  now->value = weighed(x, now->weights, &now->product);
  if (now->value.i == EG_NONE || now->d + 1 != x->s->rec[now->weights.i].shape.rank) return ISO_OK;
  const uint32_t d = x->s->rec[now->value.i].shape.rank - 2;
  if (was && (was->values.i == EG_NONE || strcmp(was->product, now->product) != 0 ||
              !fit(x, was->values, now->value, d)))
    return ISO_OK;
  now->values = now->value;
  iso_code c = ISO_OK;
  if (was) c = together(x, was->values, now->value, d, &now->values, err);
  if (!c) c = below(x, now->scores, now->top, &weights, err);
  const eg_node of[2] = {weights, now->values};
  if (!c) c = made(x, now->product, of, 2, NULL, &out, err);
  if (!c) c = find(x, now->product, now->node, out, &now->out, err);
  return c;
}

/* ---- factors ---- */

const scaled *rn_scaled(const running *x, eg_node e) {
  for (size_t k = x->n_scaled; k-- > 0;)
    if (rn_same(x, x->scaled[k].e, e)) return &x->scaled[k];
  return NULL;
}

/* The step whose factor this is. NONE: of none. */
static int32_t factor_of(const running *x, eg_node e) {
  for (size_t k = 0; k < x->n; k++)
    if (x->step[k].before != NONE && rn_same(x, x->step[k].factor, e)) return (int32_t)k;
  return NONE;
}

/* e = a * factor of step `at`. Two factors in a row are one. */
static iso_code add_scaled(running *x, eg_node e, eg_node a, int32_t at, iso_error *err) {
  state *s = x->s;
  const scaled *was = rn_scaled(x, a);
  scaled now = {e, a, at, at};
  iso_code c = ISO_OK;
  if (was && x->step[was->from].before == at) {
    const eg_node var[4] = {was->of, x->step[x->step[at].before].top, x->step[at].top,
                            x->step[was->to].top};
    const rule_term *v[4];
    for (uint32_t k = 0; k < 4; k++)
      if (!(v[k] = rule_var(&s->arena, k))) return nomem(err);
    const st_stated both = {
        .l = rn_call(s, OP_MUL_TENSOR, rn_call(s, OP_MUL_TENSOR, v[0], rn_exp_below(s, v[2], v[3])),
                     rn_exp_below(s, v[1], v[2])),
        .r = rn_call(s, OP_MUL_TENSOR, v[0], rn_exp_below(s, v[1], v[3])),
        .var = var,
        .n = 4};
    bool done = false;
    if (!both.l || !both.r) return nomem(err);
    c = st_join_stated(s, &both, &done, err);
    if (!c) c = eg_rebuild(s->g, err);
    if (done) now.of = was->of, now.to = was->to;
  }
  if (!c && !iso_grow(x->scaled, x->cap_scaled, x->n_scaled + 1)) c = nomem(err);
  if (!c) x->scaled[x->n_scaled++] = now;
  return c;
}

static bool same_shape(const running *x, eg_node a, eg_node b) {
  const rec *r = x->s->rec;
  return a.i != EG_NONE && b.i != EG_NONE && r[b.i].valued &&
         rule_shape_eq(&r[a.i].shape, &r[b.i].shape);
}

static iso_code find_factors(running *x, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k < x->n_calls && !c; k++) {
    const uint32_t i = x->call[k];
    if (!rn_calls(x, i, OP_MUL_TENSOR)) continue;
    const eg_node a = rn_operand(x, i, 0), b = rn_operand(x, i, 1), e = x->s->map[x->side][i];
    int32_t at = factor_of(x, b);
    bool done = false;
    if (x->hides && same_shape(x, e, a)) c = join(x, e, a, &done, err); /* times 1 */
    if (c || done) continue;
    if (at != NONE) c = add_scaled(x, e, a, at, err);
    else if ((at = factor_of(x, a)) != NONE) c = add_scaled(x, e, b, at, err);
  }
  return c;
}

/* ---- ends ---- */

static bool goes_on(const running *x, size_t at) {
  for (size_t k = at + 1; k < x->n; k++)
    if (x->step[k].before == (int32_t)at) return true;
  return false;
}

/* The last step after it. */
step *rn_end(const running *x, step *at) {
  for (bool on = true; on;) {
    on = false;
    for (size_t k = 0; k < x->n && !on; k++)
      if (x->step[k].before == at - x->step) at = &x->step[k], on = true;
  }
  return at;
}

/* The steps up to `at`, the first one in front. Returns: how many, 0: too many. */
static uint32_t chain_of(const running *x, const step *at, const step **out) {
  uint32_t n = 1;
  for (const step *k = at; k->before != NONE; k = &x->step[k->before]) n++;
  if (n > MAX_RANKS) return 0;
  for (uint32_t k = n; k-- > 0; at = at->before == NONE ? at : &x->step[at->before]) out[k] = at;
  return n;
}

/* Where a block is masked, its weights are those without the mask, and 0 under it: a pattern that
 * has them as a variable would not know that. */
static iso_code join_masked(running *x, const step *at, const step *end, iso_error *err) {
  state *s = x->s;
  iso_arena *a = &s->arena;
  const int32_t i = s->rec[at->block.i].node[x->side];
  if (i < 0 || !rn_calls(x, (uint32_t)i, OP_MASKED_FILL_SCALAR)) return ISO_OK;
  const eg_node var[4] = {rn_operand(x, (uint32_t)i, 0), rn_operand(x, (uint32_t)i, 1), end->top,
                          end->total};
  if (var[0].i == EG_NONE || var[1].i == EG_NONE) return ISO_OK;
  const rule_term *v[4], *fill = x->g->node[i].call->child[2];
  for (uint32_t k = 0; k < 4; k++)
    if (!(v[k] = rule_var(a, k))) return nomem(err);
  const rule_term *free_of = rn_call(s, OP_DIV_TENSOR, rn_exp_below(s, v[0], v[2]), v[3]),
                  *l[3] = {v[0], v[1], fill}, *r[3] = {free_of, v[1], rule_float(a, 0)};
  if (!free_of || !r[2]) return nomem(err);
  const rule_term *masked = rule_op(a, OP_MASKED_FILL_SCALAR, l, 3);
  const st_stated both = {
      .l = masked ? rn_call(s, OP_DIV_TENSOR, rn_exp_below(s, masked, v[2]), v[3]) : NULL,
      .r = rule_op(a, OP_MASKED_FILL_SCALAR, r, 3),
      .var = var,
      .n = 4};
  bool done;
  if (!both.l || !both.r) return nomem(err);
  iso_code c = st_join_stated(s, &both, &done, err);
  return c ? c : eg_rebuild(s->g, err);
}

/* The weights of each block as parts of the whole sum: a row of tiles. */
static iso_code make_weights(running *x, const step *end, st_tile_row *row, iso_error *err) {
  const step *at[MAX_RANKS];
  iso_code c = ISO_OK;
  *row = (st_tile_row){.side = x->side, .n = chain_of(x, end, at)};
  for (uint32_t k = 0; k < row->n && !c; k++) {
    eg_node pair[2] = {{EG_NONE}, end->total};
    c = below(x, at[k]->block, end->top, &pair[0], err);
    if (!c) c = made(x, OP_DIV_TENSOR, pair, 2, NULL, &row->tile[k], err);
    if (!c) c = join_masked(x, at[k], end, err);
  }
  return c;
}

/* Scores of all blocks of a chain, put together as its steps do. NULL: no memory. */
static const rule_term *scores_of(iso_arena *a, uint32_t n, uint32_t d) {
  const rule_term *all = rule_var(a, 0);
  for (uint32_t k = 1; k < n && all; k++) {
    const rule_term *pair[2] = {all, rule_var(a, k)};
    all = beside(a, pair, 2, d);
  }
  return all;
}

/* The last quotient: all weights as parts of the whole sum, times all values. It is stated with the
 * blocks as they are: what they are computed from is nothing to it. */
static iso_code join_end(running *x, const step *now, const st_tile_row *row, bool *done,
                         iso_error *err) {
  state *s = x->s;
  iso_arena *a = &s->arena;
  const step *at[MAX_RANKS];
  eg_node var[MAX_RANKS + 3];
  const rule_term *weight[MAX_RANKS], *v[3];
  const uint32_t n = chain_of(x, now, at);
  for (uint32_t k = 0; k < n; k++) var[k] = at[k]->block;
  var[n] = now->top, var[n + 1] = now->total, var[n + 2] = now->values;
  for (uint32_t k = 0; k < 3; k++)
    if (!(v[k] = rule_var(a, n + k))) return nomem(err);
  for (uint32_t k = 0; k < n; k++)
    weight[k] = rn_call(s, OP_DIV_TENSOR, rn_exp_below(s, rule_var(a, k), v[0]), v[1]);
  const rule_term *whole = rn_exp_below(s, scores_of(a, n, now->d), v[0]);
  const st_stated both = {
      .l = rn_call(s, OP_DIV_TENSOR, rn_call(s, now->product, whole, v[2]), v[1]),
      .r = rn_call(s, now->product, beside(a, weight, row->n, now->d), v[2]),
      .var = var,
      .n = n + 3};
  if (!both.l || !both.r) return nomem(err);
  iso_code c = st_join_stated(s, &both, done, err);
  return c ? c : eg_rebuild(s->g, err);
}

/* Whether a node is the quotient of the last sums of a chain. */
static bool is_end(const running *x, uint32_t i, const step *now) {
  return rn_calls(x, i, OP_DIV_TENSOR) && rn_same(x, rn_operand(x, i, 0), now->out) &&
         rn_same(x, rn_operand(x, i, 1), now->total);
}

static iso_code find_end(running *x, step *now, iso_error *err) {
  st_tiles *tiles = &x->s->ranks.tiles;
  bool done = false;
  if (now->total.i == EG_NONE || now->out.i == EG_NONE) return ISO_OK;
  if (!iso_grow(tiles->row, tiles->cap_rows, tiles->n_rows + 1)) return nomem(err);
  st_tile_row *row = &tiles->row[tiles->n_rows];
  iso_code c = make_weights(x, now, row, err);
  const size_t from = first_call(x, now->node);
  for (size_t k = from; k < x->n_calls && !c && !done && row->n > 0; k++)
    if (is_end(x, x->call[k], now)) c = join_end(x, now, row, &done, err);
  if (c || !done) return c;
  now->row = (int32_t)tiles->n_rows++;
  for (size_t k = from; k < x->n_calls; k++)
    if (is_end(x, x->call[k], now)) tiles->row_at[x->side][x->call[k]] = 1 + (uint32_t)now->row;
  return ISO_OK;
}

/* Maxima, sums, products and quotients. Owns: x->call. */
static iso_code find_calls(running *x, iso_error *err) {
  static const char *const of[] = {OP_AMAX,       OP_MAXIMUM,    OP_SUM_DIM,
                                   OP_ADD_TENSOR, OP_MUL_TENSOR, OP_DIV_TENSOR};
  if (!(x->call = calloc(x->g->n_nodes + 1, sizeof *x->call))) return nomem(err);
  for (uint32_t i = 0; i < x->g->n_nodes; i++) {
    const synth_node *n = &x->g->node[i];
    if (n->kind != SYNTH_OP) continue;
    bool any = rule_operator_of(n->call->u.s)->contracts == RULE_CONTRACTS_MATRICES;
    for (size_t k = 0; k < sizeof of / sizeof *of && !any; k++) any = rn_calls(x, i, of[k]);
    if (any) x->call[x->n_calls++] = i;
  }
  return ISO_OK;
}

iso_code st_join_running(state *s, int side, iso_error *err) {
  running x = {.s = s, .g = s->graph[side], .side = side};
  const bool linking = s->ranks.linking;
  s->ranks.linking = true;
  iso_code c = find_calls(&x, err);
  if (!c) c = find_steps(&x, err);
  bool any = false;
  for (size_t k = 0; k < x.n; k++) any |= x.step[k].before != NONE;
  for (size_t i = 0; i < x.g->n_nodes && !c && any && x.hides; i++)
    if (s->map[side][i].i != EG_NONE && s->rec[s->map[side][i].i].tensor &&
        s->rec[s->map[side][i].i].valued)
      c = st_join_fill(s, s->map[side][i], err);
  for (size_t k = 0; k < x.n && !c && any; k++)
    if (!(c = find_total(&x, &x.step[k], err))) c = find_out(&x, &x.step[k], err);
  if (!c && any) c = find_factors(&x, err);
  if (!c && any && !(s->ranks.tiles.row_at[side] = calloc(x.g->n_nodes + 1, sizeof(uint32_t))))
    c = nomem(err);
  for (size_t k = 0; k < x.n && !c && any; k++)
    if (!goes_on(&x, k)) c = find_end(&x, &x.step[k], err);
  if (!c && any) c = rn_join_gradients(&x, err);
  s->ranks.linking = linking;
  s->ranks.running |= any;
  if (c == ISO_TORCH) c = ISO_OK; /* sizes that do not go together: joined with nothing */
  free(x.call);
  free(x.step);
  free(x.scaled);
  return c;
}
