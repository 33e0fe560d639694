/* A step of several ranks as one step, where the other graph has no such tensor.
 *
 * A cross entropy over shards of a vocabulary takes the largest logit of each rank, and then of
 * these; the other graph has neither, only a log_softmax. The whole's step is the same operator on
 * the operands' wholes: that term becomes a node, which is joined with the parts as a tensor of the
 * other graph would be. The remaining rules are of single operators again, and one without ranks.
 *
 * A step whose operands are all known as wholes is taken on the wholes first, whether the other
 * graph has it or not. Its result is joined with the parts by a rule of this operator, and with the
 * other graph's tensor by one without ranks. A tensor that all ranks have may be of a rank's sizes
 * (an expanded column, zeros that are scattered into): the whole has what it was expanded from, or
 * one beside the other.
 *
 * An index into a rank's part is the index into the whole, less the rows of the ranks before it,
 * and hidden where it lies in another rank's part; so are the elements that it reads. Such steps
 * get the whole of their first operand, as a guess that a later step has to confirm: the sum over
 * ranks of the elements that are not hidden is the element that the whole index reads of the whole.
 * A summand that is 1 on one rank and 0 on the others is 1 in the whole.
 *
 * A term of neither graph must be a number wherever both graphs are: an integer stands for an index
 * only where its values cannot leave their range. */
#include "synth/parts/parts.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/search/frontier.h"
#include "synth/search/search.h"

#include <string.h>

typedef struct lifting {
  state *s;
  const peers *p;
  eg_node bind[RULE_MAX_VARS]; /* of the term's variables */
  bool same[RULE_MAX_VARS];    /* and is the same tensor on all ranks */
  uint32_t n;
  eg_node first;   /* what the operand that is passed on is as one; EG_NONE: nothing */
  bool chosen;     /* that is a choice's operand */
  bool operands;   /* some tensor operand was looked at */
  bool guessed;    /* one is a guess as one */
  bool incomplete; /* an operand is nothing as one, or ranks have literals of their own */
} lifting;

static eg_node node_of(const lifting *x, const rule_term *var) {
  return x->s->map[x->p->side][var->u.i];
}

/* One operand of all ranks, as one. */
static eg_node operand(lifting *x, const rule_term *const *term, bool *same) {
  state *s = x->s;
  uint32_t node[MAX_RANKS];
  *same = true;
  for (uint32_t r = 0; r < x->p->n; r++) {
    node[r] = (uint32_t)term[r]->u.i;
    *same &= eg_equal(s->g, node_of(x, term[r]), node_of(x, term[0]));
  }
  const peers *of = *same ? NULL : st_peers_of(s, x->p->side, node, x->p->n);
  x->guessed |= of && of->whole.i != EG_NONE && !of->met;
  return *same ? node_of(x, term[0]) : of ? of->whole : (eg_node){EG_NONE};
}

/* The first tensor operand is passed on; of a choice the first that ranks have parts of, and that
 * may be chosen: the condition, and a fill that all have, come before it. */
static void pass_on(lifting *x, const rule_term *var, eg_node e, bool same) {
  const synth_node *node = x->s->graph[x->p->side]->node, *own = &node[x->p->node[0]];
  const bool choice = rule_operator_of(own->call->u.s)->choice == RULE_CHOICE_SELECT,
             part = choice && !same && node[var->u.i].dtype == own->dtype;
  if (!x->operands || (part && !x->chosen)) x->first = e;
  x->chosen |= part;
}

/* The calls of all ranks, walked together, as a term over their operands' wholes. NULL: no
 * memory. */
static const rule_term *as_one(lifting *x, const rule_term *const *term) {
  iso_arena *a = &x->s->arena;
  const rule_term *const t = term[0], *child[RULE_MAX_VARS], *at[MAX_RANKS];
  for (uint32_t r = 1; r < x->p->n; r++)
    if (term[r]->kind != t->kind || term[r]->n != t->n ||
        (t->kind == RULE_OP && strcmp(term[r]->u.s, t->u.s) != 0) ||
        (t->kind != RULE_OP && t->kind != RULE_LIST && t->kind != RULE_VAR &&
         !rule_term_eq(term[r], t))) {
      x->incomplete = true;
      return t;
    }
  if (t->kind == RULE_VAR) {
    bool same;
    const eg_node e = operand(x, term, &same);
    pass_on(x, t, e, same);
    x->operands = true;
    if (e.i == EG_NONE || x->n == RULE_MAX_VARS) return x->incomplete = true, t;
    x->bind[x->n] = e;
    x->same[x->n] = same;
    return rule_var(a, x->n++);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  if (t->n > RULE_MAX_VARS) return x->incomplete = true, t;
  for (uint32_t k = 0; k < t->n; k++) {
    for (uint32_t r = 0; r < x->p->n; r++) at[r] = term[r]->child[k];
    if (!(child[k] = as_one(x, at))) return NULL;
  }
  return t->kind == RULE_LIST ? rule_list(a, child, t->n) : rule_op(a, t->u.s, child, t->n);
}

/* The input whose integers a tensor holds, moved. EG_NONE: it holds others. */
static eg_node integers_of(state *s, eg_node e) {
  enum { DEEP = 8 };
  for (int k = 0; k < DEEP && e.i != EG_NONE; k++) {
    if (s->rec[e.i].leaf || st_bound_of(s, e)) return e;
    if (eg_node_arity(s->g, e) == 0 || !fr_moves_op(st_operator(s, e))) break;
    e = (eg_node){eg_node_original(s->g, e, 0).i};
  }
  return (eg_node){EG_NONE};
}

/* How many rows of `table`, its first operand, a call chooses from by integers. INT64_MAX: it
 * chooses none. */
static int64_t rows_by(const rule_term *t, const rule_shape *table) {
  const rule_operator *o = rule_operator_of(t->u.s);
  const uint32_t at = o->index;
  if (o->ends == RULE_ENDS_NOWHERE || at == 0 || at >= t->n || t->child[at]->kind != RULE_VAR)
    return INT64_MAX;
  if (o->ends == RULE_ENDS_COUNT)
    return at + 1 < t->n && t->child[at + 1]->kind == RULE_INT ? t->child[at + 1]->u.i : INT64_MAX;
  if (t->child[0]->kind != RULE_VAR) return INT64_MAX;
  int64_t d = o->ends == RULE_ENDS_ALONG && t->child[1]->kind == RULE_INT ? t->child[1]->u.i : 0;
  if (d < 0) d += table->rank;
  return d < 0 || d >= (int64_t)table->rank ? INT64_MAX : table->dim[d];
}

static int64_t elements(const rule_shape *shape) {
  int64_t n = 1;
  for (uint32_t i = 0; i < shape->rank; i++) n *= shape->dim[i];
  return n;
}

/* The node whose integers a node of a graph holds, all of them, moved. */
static uint32_t moved_from(const synth_graph *g, uint32_t i) {
  for (;;) {
    const synth_node *n = &g->node[i];
    const rule_term *x = n->kind == SYNTH_OP && n->call->n > 0 ? n->call->child[0] : NULL;
    if (!x || x->kind != RULE_VAR || !fr_moves_op(n->call->u.s) ||
        elements(&g->node[x->u.i].shape) != elements(&n->shape))
      return i;
    i = (uint32_t)x->u.i;
  }
}

/* All of an input's integers lie in 0 and below this where both graphs are functions: one reads
 * rows of a table by them. INT64_MAX: none does. A loss may leave out a label that is none. */
static int64_t end_of(state *s, eg_node leaf) {
  int64_t end = INT64_MAX;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    for (size_t j = 0; j < g->n_nodes; j++) {
      const rule_term *t = g->node[j].kind == SYNTH_OP ? g->node[j].call : NULL;
      const uint32_t at = t ? rule_operator_of(t->u.s)->table : 0;
      if (at == 0 || at >= t->n || t->child[at]->kind != RULE_VAR || s->map[side][j].i == EG_NONE)
        continue;
      const uint32_t index = moved_from(g, (uint32_t)t->child[at]->u.i);
      if (s->map[side][index].i == EG_NONE || !eg_equal(s->g, s->map[side][index], leaf)) continue;
      const int64_t rows = rows_by(t, &g->node[t->child[0]->u.i].shape);
      if (rows < end) end = rows;
    }
  }
  return end;
}

/* Integers that stand for ranks' indices into their own parts cannot leave their range. */
static bool stays_inside(state *s, eg_node e) {
  const eg_node leaf = integers_of(s, e);
  return leaf.i != EG_NONE && (st_bound_of(s, leaf) || end_of(s, leaf) < INT64_MAX);
}

/* Whether a call of neither graph may choose a row that there is not, where both graphs choose none
 * such: it is no number there, and proves nothing. */
static bool may_leave(state *s, const rule_term *t, const eg_node *bind) {
  const bool has = t->n > 0 && t->child[0]->kind == RULE_VAR;
  const int64_t rows = has ? rows_by(t, &s->rec[bind[t->child[0]->u.i].i].shape) : INT64_MAX;
  if (rows == INT64_MAX) return false;
  const eg_node leaf = integers_of(s, bind[t->child[rule_operator_of(t->u.s)->index]->u.i]);
  const int64_t end = leaf.i == EG_NONE || st_bound_of(s, leaf) ? INT64_MAX : end_of(s, leaf);
  return end != INT64_MAX && rows < end;
}

/* Whether a shape is the parts', one beside the other along one dimension. */
static bool is_beside(const rule_shape *shape, const st_parts *of) {
  const rule_shape *own = &of->value[0]->shape;
  uint32_t larger = 0;
  if (shape->rank != own->rank) return false;
  for (uint32_t d = 0; d < own->rank; d++) {
    int64_t all = 0;
    for (uint32_t r = 0; r < of->n; r++) all += of->value[r]->shape.dim[d];
    if (shape->dim[d] == own->dim[d]) continue;
    if (shape->dim[d] != all) return false;
    larger++;
  }
  return larger == 1;
}

/* Whether a tensor may be the whole of the tensors that ranks make from its elements. It is no
 * larger than one rank's. Or it is as large as theirs together, where it is itself made of such a
 * guess, or is put together of `of`, which groups of ranks may have. */
static bool stands_for(state *s, eg_node whole, const peers *p, const st_parts *of, bool guessed) {
  const rule_shape *shape = &s->rec[whole.i].shape;
  if (rule_shape_eq(shape, &of->value[0]->shape) || (guessed && is_beside(shape, of))) return true;
  const rule_tensor *v = of->n < p->n ? st_val(s, whole, s->n_draws - 1) : NULL;
  return v && st_is_cut(v, of);
}

/* The whole of the first operand, where the step only moves it or hides some of it. */
static bool passes_on(state *s, const lifting *x, const st_parts *of) {
  if (x->first.i == EG_NONE || !s->rec[x->first.i].tensor || !s->rec[x->first.i].valued)
    return false;
  const rule_dtype dtype = st_dtype(s, x->first);
  return dtype == of->value[0]->dtype && stands_for(s, x->first, x->p, of, x->guessed) &&
         (!rule_dtype_is_int(dtype) || stays_inside(s, x->first));
}

/* A tensor that is the same on all ranks may have a rank's sizes: the tensor from which it was
 * expanded has none. */
static eg_node unexpanded(const state *s, eg_node e) {
  return st_calls(s, e, OP_EXPAND) ? (eg_node){eg_node_original(s->g, e, 0).i} : e;
}

/* Or the whole has it once for each rank, side by side along `d`. */
static iso_code side_by_side(state *s, eg_node e, uint32_t n, uint32_t d, eg_node *out,
                             iso_error *err) {
  st_parts all = {.n = n, .by = 1, .scale = 1};
  for (uint32_t k = 0; k < n; k++) all.of[k] = e;
  const rule_term *t = st_joined(&s->arena, &all, NULL, d);
  if (!t) return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_code c = st_add_term(s, t, all.of, out, err);
  if (!c) c = st_value(s, *out, err);
  return c ? c : st_join_fill_made(s, *out, err);
}

/* Binds the tensors that all ranks have, in one of several ways: as they are, unexpanded,
 * and side by side along each dimension. Returns: in `any` whether this way there is. */
static iso_code in_way(state *s, const lifting *x, uint32_t way, uint32_t rank, eg_node *bind,
                       bool *any, iso_error *err) {
  enum { AS_IT_IS, UNEXPANDED, SIDE_BY_SIDE };
  iso_code c = ISO_OK;
  *any = way == AS_IT_IS;
  for (uint32_t i = 0; i < x->n && !c; i++) {
    const eg_node e = bind[i] = x->bind[i];
    const rec *r = &s->rec[e.i];
    if (way == AS_IT_IS || !x->same[i] || !r->tensor || !r->valued) continue;
    if (way == UNEXPANDED) bind[i] = unexpanded(s, e);
    else if (r->shape.rank == rank)
      c = side_by_side(s, e, x->p->n, way - SIDE_BY_SIDE, &bind[i], err);
    *any |= bind[i].i != e.i;
  }
  return c;
}

enum { ANY_WAY = RULE_MAX_RANK, ANY_CUT };

/* Whether the parts make `v` as they have to: cut along `d`, as they are, or ANY_CUT. */
static bool is_made_so(const rule_tensor *v, const st_parts *of, uint32_t d) {
  uint32_t along;
  if (d == ANY_WAY) return true;
  if (!v) return false;
  return d == ANY_CUT ? st_is_cut(v, of) : st_is_cut_along(v, of, &along) && along == d;
}

/* The term as a node, joined with the parts. `d`: how they have to be cut, or ANY_WAY. Returns: the
 * result in `p`. */
static iso_code try_term(state *s, peers *p, const st_parts *of, const rule_term *t, uint32_t d,
                         const eg_node *bind, iso_error *err) {
  eg_node whole;
  bool fits = false;
  if (may_leave(s, t, bind)) return ISO_OK;
  iso_code c = st_add_term(s, t, bind, &whole, err);
  if (!c) c = st_value(s, whole, err);
  if (c == ISO_TORCH) return ISO_OK; /* sizes that are a rank's own */
  if (c || s->rec[whole.i].konst) return c;
  if (!is_made_so(d == ANY_WAY ? NULL : st_val(s, whole, s->n_draws - 1), of, d)) return ISO_OK;
  if ((c = st_join_whole(s, of, whole, &fits, err)) || !fits) return c;
  p->whole = whole;
  return ISO_OK;
}

/* One call of each peer, of an operator that can be lifted: a collective, too, where each takes
 * part in one of its own, with ranks that are no peers here. */
static bool is_call(const state *s, const peers *p) {
  const synth_node *first = &s->graph[p->side]->node[p->node[0]];
  if (first->kind != SYNTH_OP || first->n_outputs != 1 || rule_is_getitem(first->call->u.s))
    return false;
  for (uint32_t r = 1; r < p->n && rule_is_collective(first->call->u.s); r++)
    for (uint32_t k = 0; k < r; k++)
      if (p->node[k] == p->node[r]) return false;
  return true;
}

/* The peers' calls as a term over their operands' wholes. NULL: no memory. */
static const rule_term *lifted(lifting *x) {
  const synth_node *node = x->s->graph[x->p->side]->node;
  const rule_term *call[MAX_RANKS];
  for (uint32_t r = 0; r < x->p->n; r++) call[r] = node[x->p->node[r]].call;
  return as_one(x, call);
}

/* ---- shapes that a call says ---- */

static bool is_shape(const rule_term *t, const rule_shape *shape) {
  bool same = t->kind == RULE_LIST && t->n == shape->rank && t->n > 0;
  for (uint32_t i = 0; same && i < t->n; i++)
    same = t->child[i]->kind == RULE_INT && t->child[i]->u.i == shape->dim[i];
  return same;
}

/* Whether argument `i` says how many rows the result has. */
static bool is_count(const rule_term *t, uint32_t i, const rule_shape *shape) {
  if (t->kind != RULE_OP || t->child[i]->kind != RULE_INT || shape->rank == 0) return false;
  const rule_operator *o = rule_operator_of(t->u.s);
  return o->ends == RULE_ENDS_COUNT && i == o->index + 1u && t->child[i]->u.i == shape->dim[0];
}

bool st_says_shape(const rule_term *t, const rule_shape *shape) {
  if (is_shape(t, shape)) return true;
  for (uint32_t i = 0; t->kind == RULE_OP && i < t->n; i++)
    if (is_count(t, i, shape)) return true;
  for (uint32_t i = 0; (t->kind == RULE_OP || t->kind == RULE_LIST) && i < t->n; i++)
    if (st_says_shape(t->child[i], shape)) return true;
  return false;
}

const rule_term *st_with_shape(iso_arena *a, const rule_term *t, const rule_shape *from,
                               const rule_shape *to) {
  const rule_term *child[RULE_MAX_VARS];
  if ((t->kind != RULE_OP && t->kind != RULE_LIST) || t->n > RULE_MAX_VARS) return t;
  const bool shape = is_shape(t, from);
  for (uint32_t i = 0; i < t->n; i++) {
    child[i] = shape                  ? rule_int(a, to->dim[i])
               : is_count(t, i, from) ? rule_int(a, to->dim[0])
                                      : st_with_shape(a, t->child[i], from, to);
    if (!child[i]) return NULL;
  }
  return t->kind == RULE_LIST ? rule_list(a, child, t->n) : rule_op(a, t->u.s, child, t->n);
}

/* The shape that a rank's call says. */
static const rule_shape *said_by(const state *s, const peers *p) {
  return &s->rec[s->map[p->side][p->node[0]].i].shape;
}

/* Whether this operator gives such a shape in the other graph, or one that is so many times as
 * large along one dimension: ranks of another group have their own rows of it. */
static bool has_shape(const state *s, const peers *p, const rule_shape *shape) {
  const synth_graph *g = s->graph[!p->side];
  const char *op = s->graph[p->side]->node[p->node[0]].op;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    uint32_t other = 0;
    if (n->kind != SYNTH_OP || n->shape.rank != shape->rank || strcmp(n->op, op) != 0) continue;
    for (uint32_t d = 0; d < shape->rank && other < 2; d++)
      if (n->shape.dim[d] != shape->dim[d])
        other += shape->dim[d] > 0 && n->shape.dim[d] % shape->dim[d] == 0 ? 1 : 2;
    if (other < 2) return true;
  }
  return false;
}

/* The term with the whole's shape where it has a rank's, larger along one dimension. Any parts can
 * be put beside one another along a dimension of size 1: that comes late, unless the other graph
 * has that shape (one head of each rank). Last comes a shape that it has and of which the parts are
 * a cut inside of a dimension (each row's heads, where both are one; a piece of each rank's rows);
 * of ranks whose batch is in pieces, too, rows have more than one order, and nothing is guessed. */
static iso_code try_shapes(state *s, peers *p, const st_parts *of, const rule_term *t,
                           const eg_node *bind, iso_error *err) {
  enum { BESIDE_KNOWN, LARGER, BESIDE, INSIDE, TURNS };
  const rule_shape *own = &of->value[0]->shape, *said = said_by(s, p);
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < TURNS * own->rank && !c && p->whole.i == EG_NONE; k++) {
    const uint32_t d = k % own->rank, turn = k / own->rank;
    rule_shape all = *own;
    for (uint32_t r = 1; r < of->n; r++) all.dim[d] += of->value[r]->shape.dim[d];
    if ((own->dim[d] == 1) != (turn == BESIDE_KNOWN || turn == BESIDE) && turn != INSIDE) continue;
    if (turn == BESIDE_KNOWN && !has_shape(s, p, &all)) continue;
    if (turn == INSIDE && (!has_shape(s, p, &all) || (!p->pieces && st_n_batches(s, p->side) > 0)))
      continue;
    const rule_term *larger = st_with_shape(&s->arena, t, said, &all);
    if (!larger) return iso_fail(err, ISO_NOMEM, "out of memory");
    c = try_term(s, p, of, larger, turn == INSIDE ? ANY_CUT : d, bind, err);
  }
  return c;
}

iso_code st_lift(state *s, peers *p, const st_parts *of, bool resized, iso_error *err) {
  lifting x = {.s = s, .p = p, .first = {EG_NONE}};
  const uint32_t rank = of->value[0]->shape.rank;
  const rule_term *t;
  eg_node bind[RULE_MAX_VARS];
  iso_code c = ISO_OK;
  if (!is_call(s, p)) return ISO_OK;
  if (!(t = lifted(&x))) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!x.operands || x.incomplete) return ISO_OK;
  if (resized && !st_says_shape(t, said_by(s, p))) return ISO_OK;
  for (uint32_t way = 0; way < 2 + rank && !c && p->whole.i == EG_NONE; way++) {
    bool any;
    c = in_way(s, &x, way, rank, bind, &any, err);
    if (!c && any)
      c = resized ? try_shapes(s, p, of, t, bind, err) : try_term(s, p, of, t, ANY_WAY, bind, err);
  }
  return c;
}

/* The tensors that the collective at a node takes; NULL: it is none. In `at`: which rank's part of
 * its results the node is, -1 where all ranks have the same. */
static const rule_term *taken(const state *s, int side, uint32_t i, int64_t *at) {
  const synth_node *node = s->graph[side]->node, *n = &node[i];
  const rule_term *call = n->kind == SYNTH_OP ? n->call : NULL;
  *at = -1;
  if (call && rule_is_getitem(call->u.s) && call->child[0]->kind == RULE_VAR) {
    const synth_node *of = &node[call->child[0]->u.i];
    if (call->child[1]->kind == RULE_INT) *at = call->child[1]->u.i;
    call = of->kind == SYNTH_OP ? of->call : NULL;
  }
  const bool is = call && rule_is_collective(call->u.s) && call->n > 0;
  return is && call->child[0]->kind == RULE_LIST ? call->child[0] : NULL;
}

/* The operands of all groups' collectives, of which each peer is a result: by rank, where
 * neighbours are one group, or ranks that are equally far apart. Returns: how many, 0 where they
 * are no such. */
static uint32_t all_taken(const state *s, const peers *p, bool apart, uint32_t *node) {
  const rule_term *list[MAX_RANKS];
  uint32_t groups = 0;
  for (uint32_t r = 0; r < p->n; r++) {
    int64_t at;
    const rule_term *t = taken(s, p->side, p->node[r], &at);
    bool seen = false;
    for (uint32_t k = 0; k < groups && t; k++) seen |= list[k] == t;
    if (!t || (groups > 0 && t->n != list[0]->n)) return 0;
    if (!seen) list[groups++] = t;
  }
  const uint32_t each = list[0]->n, n = groups * each;
  for (uint32_t k = 0; n <= MAX_RANKS && k < n; k++) {
    const rule_term *t =
        apart ? list[k % groups]->child[k / groups] : list[k / each]->child[k % each];
    if (t->kind != RULE_VAR) return 0;
    node[k] = (uint32_t)t->u.i;
  }
  return n <= MAX_RANKS ? n : 0;
}

/* The whole of the collectives' operands, divided by `by` where they return a mean of so many. */
static iso_code lift_taken(state *s, peers *p, const st_parts *of, const peers *q, int64_t by,
                           iso_error *err) {
  eg_node whole = q->whole;
  bool fits = false;
  iso_code c = ISO_OK;
  if (by > 1) {
    const rule_term *t = st_divided(s, rule_var(&s->arena, 0), by);
    if (!t) return iso_fail(err, ISO_NOMEM, "out of memory");
    c = st_add_term(s, t, &q->whole, &whole, err);
    if (!c) c = st_value(s, whole, err);
  }
  if (!c) c = st_join_whole(s, of, whole, &fits, err);
  if (!c && fits) p->whole = whole;
  return c;
}

/* By how many the collective at a node divides its sum. */
static int64_t mean_of(const state *s, int side, uint32_t i) {
  const synth_node *node = s->graph[side]->node;
  const rule_term *call = node[i].call;
  if (rule_is_getitem(call->u.s)) call = node[call->child[0]->u.i].call;
  const bool mean =
      call->n > 1 && call->child[1]->kind == RULE_STRING && strcmp(call->child[1]->u.s, "avg") == 0;
  return mean ? (int64_t)call->child[0]->n : 1;
}

/* The values of a sum that cancels do not tell its divisor: the collective does. */
iso_code st_lift_collective(state *s, peers *p, const st_parts *of, iso_error *err) {
  iso_code c = ISO_OK;
  for (int apart = 0; apart < 2 && !c && p->whole.i == EG_NONE; apart++) {
    uint32_t node[MAX_RANKS];
    const uint32_t n = all_taken(s, p, apart == 1, node);
    const peers *q = n > 1 ? st_peers_of(s, p->side, node, n) : NULL;
    if (!q || q->whole.i == EG_NONE) continue;
    const bool cancels = s->rec[of->of[0].i].cancels;
    const int64_t mean = mean_of(s, p->side, p->node[0]);
    if (!cancels) c = lift_taken(s, p, of, q, 1, err);
    if (!c && (cancels || mean > 1) && p->whole.i == EG_NONE)
      c = lift_taken(s, p, of, q, mean, err);
  }
  return c;
}

/* The dimension along which a call chooses places of its first operand by integers. */
static uint32_t chosen_along(const rule_term *t, const rule_shape *table) {
  if (rule_operator_of(t->u.s)->ends != RULE_ENDS_ALONG) return 0;
  const int64_t d = t->child[1]->kind == RULE_INT ? t->child[1]->u.i : 0;
  return (uint32_t)(d < 0 ? d + (int64_t)table->rank : d);
}

/* Integers that are guessed to be the whole's choose places of the whole: a tensor of a rank's
 * size that all ranks have, and into which they write, stands beside itself there. */
static iso_code widened(lifting *x, const rule_term *t, iso_error *err) {
  const bool has = t->n > 0 && t->child[0]->kind == RULE_VAR;
  if (!x->guessed || !has || !x->same[t->child[0]->u.i]) return ISO_OK;
  eg_node *first = &x->bind[t->child[0]->u.i];
  const rec *r = &x->s->rec[first->i];
  if (!r->tensor || !r->valued || rows_by(t, &r->shape) == INT64_MAX) return ISO_OK;
  return side_by_side(x->s, *first, x->p->n, chosen_along(t, &r->shape), first, err);
}

/* Whether one rank has 1 there and the others 0, for each element: truth values, as numbers, of the
 * elements in a rank's part. */
static bool ones_together(const lifting *x, const rule_term *const *term) {
  const state *s = x->s;
  const rule_tensor *v[MAX_RANKS] = {NULL};
  for (uint32_t r = 0; r < x->p->n; r++) {
    const rec *q = &s->rec[node_of(x, term[r]).i];
    v[r] = q->tensor && q->valued ? st_val(x->s, node_of(x, term[r]), s->n_draws - 1) : NULL;
    if (!v[r] || !rule_dtype_is_float(v[r]->dtype) || !rule_shape_eq(&v[r]->shape, &v[0]->shape))
      return false;
  }
  for (int64_t i = 0; i < v[0]->numel; i++) {
    uint32_t ones = 0;
    for (uint32_t r = 0; r < x->p->n; r++) {
      const double e = rule_tensor_get(v[r], i);
      if (e != 0 && e != 1) return false;
      ones += e == 1;
    }
    if (ones != 1) return false;
  }
  return v[0]->numel > 0;
}

/* A sum of a guessed whole and a tensor that is 1 on the rank whose part holds the element and 0 on
 * the others: the whole takes 1. In `x`: it is complete. NULL: no memory. */
static const rule_term *with_ones(lifting *x, const rule_term *t) {
  const synth_node *node = x->s->graph[x->p->side]->node;
  const rule_term *first[MAX_RANKS], *second[MAX_RANKS], *child[RULE_MAX_VARS];
  const rule_arithmetic how = rule_operator_of(t->u.s)->arithmetic;
  if ((how != RULE_ARITHMETIC_ADD && how != RULE_ARITHMETIC_SUB) || t->n > RULE_MAX_VARS) return t;
  for (uint32_t r = 0; r < x->p->n; r++) {
    const rule_term *call = node[x->p->node[r]].call;
    first[r] = call->child[0];
    second[r] = call->child[1];
    if (first[r]->kind != RULE_VAR || second[r]->kind != RULE_VAR) return t;
  }
  if (!ones_together(x, second)) return t;
  x->n = 0;
  x->incomplete = false;
  if (!(child[0] = as_one(x, first)) || !(child[1] = rule_float(&x->s->arena, 1))) return NULL;
  for (uint32_t i = 2; i < t->n; i++) child[i] = t->child[i];
  return rule_op(&x->s->arena, t->u.s, child, t->n);
}

iso_code st_guess_whole(state *s, peers *p, const st_parts *of, iso_error *err) {
  lifting x = {.s = s, .p = p, .first = {EG_NONE}};
  const rule_term *t;
  if (!is_call(s, p)) return ISO_OK;
  if (!(t = lifted(&x))) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!x.operands) return ISO_OK;
  if (x.incomplete && x.guessed && t->kind == RULE_OP && !(t = with_ones(&x, t)))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  eg_node whole = x.first;
  const char *op = s->graph[p->side]->node[p->node[0]].call->u.s;
  /* An index that is kept within a rank's part is hidden by that, too. */
  const bool hides = x.guessed && rule_dtype_is_int(of->value[0]->dtype) &&
                     rule_operator_of(op)->choice == RULE_CHOICE_BOUND;
  const bool lifts = !x.incomplete && !hides;
  if (lifts) {
    iso_code c = widened(&x, t, err);
    if (c || may_leave(s, t, x.bind)) return c;
    c = st_add_term(s, t, x.bind, &whole, err);
    if (!c) c = st_value(s, whole, err);
    if (c == ISO_TORCH) return ISO_OK;
    if (c || s->rec[whole.i].konst) return c;
  } else if (!passes_on(s, &x, of)) return ISO_OK;
  iso_code c = lifts ? ISO_OK : st_join_whole(s, of, whole, &p->met, err);
  const rule_undefined none = rule_undefined_of(op);
  const bool defined = none != RULE_UNDEFINED_MAKES && none != RULE_UNDEFINED_BOTH;
  const bool guess = defined && stands_for(s, whole, p, of, x.guessed);
  if (p->met || guess) p->whole = whole;
  return c;
}
