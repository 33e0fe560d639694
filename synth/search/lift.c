/* A step of several ranks as one step, where the other graph has no such tensor.
 *
 * A cross entropy over shards of a vocabulary takes the largest logit of each rank, and then of
 * these; the other graph has neither, only a log_softmax. Its step is the same operator on what the
 * operands are as one: that term becomes a node, which is joined with the parts as a tensor of the
 * other graph would be. What follows are rules of single operators again, and one of no ranks.
 *
 * What all operands of a step are known of is taken on the whole first, whether the other graph has
 * it or not: that is joined with the parts by a rule of this operator, and with what the other
 * graph has by one of no ranks. A tensor that all ranks have may be of a rank's sizes (an expanded
 * column, zeros that are scattered into): the whole has what it was expanded from, or one beside
 * the other.
 *
 * An index into a rank's part is the index into the whole, moved by what the ranks before it hold
 * and hidden where it lies in another one's part; so are the elements that it reads. Such steps
 * have the whole of their first operand, as a guess that a later one has to bear out: the sum of
 * what is left is what the whole index reads of the whole.
 *
 * A term of neither graph must be a number wherever both graphs are: an integer stands for an index
 * only where its values cannot leave their range. */
#include "synth/search/parts.h"
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
  eg_node bind[MAX_VARS]; /* what stands for the variables of the term */
  bool same[MAX_VARS];    /* and is the same tensor on all ranks */
  uint32_t n;
  eg_node first;   /* what the first tensor operand is as one; EG_NONE: nothing */
  bool operands;   /* some tensor operand was looked at */
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
  return *same ? node_of(x, term[0]) : of ? of->whole : (eg_node){EG_NONE};
}

/* The calls of all ranks, walked together, as a term over what their operands are as one. NULL: no
 * memory. */
static const rule_term *as_one(lifting *x, const rule_term *const *term) {
  iso_arena *a = &x->s->arena;
  const rule_term *const t = term[0], *child[MAX_VARS], *at[MAX_RANKS];
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
    if (!x->operands) x->first = e;
    x->operands = true;
    if (e.i == EG_NONE || x->n == MAX_VARS) return x->incomplete = true, t;
    x->bind[x->n] = e;
    x->same[x->n] = same;
    return rule_var(a, x->n++);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  if (t->n > MAX_VARS) return x->incomplete = true, t;
  for (uint32_t k = 0; k < t->n; k++) {
    for (uint32_t r = 0; r < x->p->n; r++) at[r] = term[r]->child[k];
    if (!(child[k] = as_one(x, at))) return NULL;
  }
  return t->kind == RULE_LIST ? rule_list(a, child, t->n) : rule_op(a, t->u.s, child, t->n);
}

/* Integers that stand for what ranks have as indices of their own parts cannot leave their range.
 */
static bool stays_inside(state *s, eg_node e) {
  enum { DEEP = 8 };
  for (int k = 0; k < DEEP && e.i != EG_NONE; k++) {
    if (st_bound_of(s, e)) return true;
    if (s->rec[e.i].leaf || eg_node_arity(s->g, e) == 0 ||
        !fr_moves_op(eg_symbol_name(s->g, eg_node_symbol(s->g, e))))
      return false;
    e = (eg_node){eg_node_original(s->g, e, 0).i};
  }
  return false;
}

/* The whole of the first operand, where the step only moves it or hides some of it. */
static bool passes_on(state *s, const lifting *x, const st_parts *of) {
  if (x->first.i == EG_NONE || !s->rec[x->first.i].tensor || !s->rec[x->first.i].valued)
    return false;
  const rule_dtype dtype = st_dtype(s, x->first);
  return dtype == of->value[0]->dtype &&
         rule_shape_eq(&s->rec[x->first.i].shape, &of->value[0]->shape) &&
         (!rule_dtype_is_int(dtype) || stays_inside(s, x->first));
}

/* A tensor that is the same on all ranks may have a rank's sizes: what it was expanded from has
 * none. */
static eg_node unexpanded(const state *s, eg_node e) {
  const char *op = eg_symbol_name(s->g, eg_node_symbol(s->g, e));
  return strcmp(op, OP_EXPAND) == 0 ? (eg_node){eg_node_original(s->g, e, 0).i} : e;
}

/* Or the whole has it once for each rank, side by side along `d`. */
static iso_code side_by_side(state *s, eg_node e, uint32_t n, uint32_t d, eg_node *out,
                             iso_error *err) {
  st_parts all = {.n = n, .by = 1, .scale = 1};
  for (uint32_t k = 0; k < n; k++) all.of[k] = e;
  const rule_term *t = st_joined(&s->arena, &all, NULL, d);
  if (!t) return iso_fail(err, ISO_NOMEM, "out of memory");
  return st_add_term(s, t, all.of, out, err);
}

/* What stands for the tensors that all ranks have, in one of several ways: as they are, unexpanded,
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

/* The term as a node, joined with the parts. Returns: in `p` what came of it. */
static iso_code try_term(state *s, peers *p, const st_parts *of, const rule_term *t,
                         const eg_node *bind, iso_error *err) {
  eg_node whole;
  bool fits = false;
  iso_code c = st_add_term(s, t, bind, &whole, err);
  if (!c) c = st_value(s, whole, err);
  if (c == ISO_TORCH) return ISO_OK; /* sizes that are a rank's own */
  if (c || s->rec[whole.i].konst) return c;
  if ((c = st_join_whole(s, of, whole, &fits, err)) || !fits) return c;
  p->whole = whole;
  return ISO_OK;
}

/* One call of each rank, of an operator that can be lifted. */
static bool is_call(const state *s, const peers *p) {
  const synth_node *first = &s->graph[p->side]->node[p->node[0]];
  return first->kind == SYNTH_OP && first->n_outputs == 1 &&
         !rule_is_collective(first->call->u.s) && !rule_is_getitem(first->call->u.s);
}

/* The peers' calls as a term over what their operands are as one. NULL: no memory. */
static const rule_term *lifted(lifting *x) {
  const synth_node *node = x->s->graph[x->p->side]->node;
  const rule_term *call[MAX_RANKS];
  for (uint32_t r = 0; r < x->p->n; r++) call[r] = node[x->p->node[r]].call;
  return as_one(x, call);
}

iso_code st_lift(state *s, peers *p, const st_parts *of, iso_error *err) {
  lifting x = {.s = s, .p = p, .first = {EG_NONE}};
  const uint32_t rank = of->value[0]->shape.rank;
  const rule_term *t;
  eg_node bind[MAX_VARS];
  iso_code c = ISO_OK;
  if (!is_call(s, p)) return ISO_OK;
  if (!(t = lifted(&x))) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!x.operands || x.incomplete) return ISO_OK;
  for (uint32_t way = 0; way < 2 + rank && !c && p->whole.i == EG_NONE; way++) {
    bool any;
    c = in_way(s, &x, way, rank, bind, &any, err);
    if (!c && any) c = try_term(s, p, of, t, bind, err);
  }
  return c;
}

iso_code st_guess_whole(state *s, peers *p, const st_parts *of, iso_error *err) {
  lifting x = {.s = s, .p = p, .first = {EG_NONE}};
  const rule_term *t;
  if (!is_call(s, p)) return ISO_OK;
  if (!(t = lifted(&x))) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!x.operands) return ISO_OK;
  eg_node whole = x.first;
  if (!x.incomplete) {
    iso_code c = st_add_term(s, t, x.bind, &whole, err);
    if (!c) c = st_value(s, whole, err);
    if (c == ISO_TORCH) return ISO_OK;
    if (c || s->rec[whole.i].konst) return c;
  } else if (!passes_on(s, &x, of)) return ISO_OK;
  iso_code c = x.incomplete ? st_join_whole(s, of, whole, &p->met, err) : ISO_OK;
  const rule_undefined none = rule_undefined_of(s->graph[p->side]->node[p->node[0]].call->u.s);
  const bool defined = none != RULE_UNDEFINED_MAKES && none != RULE_UNDEFINED_BOTH;
  const bool guess = defined && rule_shape_eq(&s->rec[whole.i].shape, &of->value[0]->shape);
  if (p->met || guess) p->whole = whole;
  return c;
}
