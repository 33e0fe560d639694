/* The two halves of a tensor: taken for one another, or taken as its first and second elements in
 * turn where they are to be its first and second part (or the other way about): a gate and its
 * operand, the pairs of a rotation. */
#include "localise/mutate.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "localise/localise_int.h"

#include <string.h>

enum { MAX_HALVES = 32 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct half {
  uint32_t node, of; /* the half, the tensor */
  int64_t dim, size; /* of the tensor */
  int which;         /* 0 the first, 1 the second */
  bool in_turn;      /* every second element */
} half;

static bool is_int(const rule_term *t, int64_t x) { return t->kind == RULE_INT && t->u.i == x; }

static bool whole_dim(const rule_term *t, uint32_t rank, int64_t *dim) {
  if (t->kind != RULE_INT) return false;
  *dim = t->u.i < 0 ? t->u.i + rank : t->u.i;
  return *dim >= 0 && *dim < (int64_t)rank;
}

/* Output `k` of a call that splits a tensor into two halves. */
static bool half_of_split(const repair *r, const rule_term *call, int64_t k, half *h) {
  const rule_tensor *x = call->n > 2 && call->child[0]->kind == RULE_VAR
                             ? rp_value(r->task->run, (uint32_t)call->child[0]->u.i)
                             : NULL;
  if (!x || !whole_dim(call->child[2], x->shape.rank, &h->dim)) return false;
  h->size = x->shape.dim[h->dim];
  const rule_term *by = call->child[1];
  const bool list = by->kind == RULE_LIST && by->n == 2 && is_int(by->child[0], h->size / 2) &&
                    is_int(by->child[1], h->size / 2);
  const bool two = (strcmp(call->u.s, OP_CHUNK) == 0 && is_int(by, 2)) ||
                   (strcmp(call->u.s, OP_SPLIT_TENSOR) == 0 && is_int(by, h->size / 2)) ||
                   (strcmp(call->u.s, OP_SPLIT_WITH_SIZES) == 0 && list);
  h->of = (uint32_t)call->child[0]->u.i;
  h->which = k == 1;
  h->in_turn = false;
  return two && k <= 1 && h->size > 2 && h->size % 2 == 0;
}

static bool half_by_slice(const repair *r, const rule_term *call, half *h) {
  const rule_tensor *x = call->n > 4 && call->child[0]->kind == RULE_VAR
                             ? rp_value(r->task->run, (uint32_t)call->child[0]->u.i)
                             : NULL;
  if (!x || !whole_dim(call->child[1], x->shape.rank, &h->dim)) return false;
  h->size = x->shape.dim[h->dim];
  const rule_term *const start = call->child[2], *const end = call->child[3],
                         *const step = call->child[4];
  const bool to_end = end->kind == RULE_INT && end->u.i >= h->size;
  h->of = (uint32_t)call->child[0]->u.i;
  h->in_turn = is_int(step, 2);
  h->which = !is_int(start, 0);
  if (h->size <= 2 || h->size % 2 != 0) return false;
  if (h->in_turn) return to_end && (is_int(start, 0) || is_int(start, 1));
  return is_int(step, 1) &&
         ((is_int(start, 0) && is_int(end, h->size / 2)) || (is_int(start, h->size / 2) && to_end));
}

static bool is_half(const repair *r, uint32_t i, half *h) {
  const synth_node *n = &r->g->node[i];
  h->node = i;
  if (n->kind != SYNTH_OP || !r->to_goal[i] || r->s->map[r->task->side][i].i == EG_NONE ||
      r->s->rec[r->s->map[r->task->side][i].i].konst)
    return false;
  if (strcmp(n->call->u.s, OP_SLICE_TENSOR) == 0) return half_by_slice(r, n->call, h);
  if (!rule_is_getitem(n->call->u.s)) return false;
  const synth_node *from = &r->g->node[n->call->child[0]->u.i];
  return from->kind == SYNTH_OP && half_of_split(r, from->call, n->call->child[1]->u.i, h);
}

/* That half, taken as is said. */
static const rule_term *taken(repair *r, const half *h, int which, bool in_turn) {
  const int64_t middle = h->size / 2;
  const rule_term *arg[] = {rule_var(&r->arena, h->of), rule_int(&r->arena, h->dim),
                            rule_int(&r->arena, in_turn ? which : which * middle),
                            rule_int(&r->arena, in_turn || which ? INT64_MAX : middle),
                            rule_int(&r->arena, in_turn ? 2 : 1)};
  for (size_t i = 0; i < sizeof arg / sizeof *arg; i++)
    if (!arg[i]) return NULL;
  return rule_op(&r->arena, OP_SLICE_TENSOR, arg, sizeof arg / sizeof *arg);
}

/* All of them at once, in another way: `turn`, else exchanged. */
static iso_code try_halves(repair *r, const half *h, size_t n, bool turn, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n && !c; i++)
    if (!(r->call[h[i].node] =
              taken(r, &h[i], turn ? h[i].which : !h[i].which, h[i].in_turn != turn)))
      c = nomem(err);
  if (!c) c = rp_try_calls(r, h[0].node, err);
  memset(r->call, 0, r->g->n_nodes * sizeof *r->call);
  return c;
}

/* Whether the node is of the region, or read by it: not of an earlier layer. */
static bool is_near(const repair *r, uint32_t i) {
  size_t n = 0;
  for (int p = 0; p < LO_PHASES - 1; p++) n += r->task->n_suspects[p];
  for (size_t k = 0; k < n; k++)
    if (r->task->suspect[k] == i) return true;
  return false;
}

static bool makes_product(const synth_node *n) {
  return n->kind == SYNTH_OP && rule_operator_of(n->op)->product;
}

/* Halves of the tensor that node n is one of, where n is the first. */
static size_t both(const repair *r, const half *first, half *out) {
  size_t n = 0;
  for (uint32_t i = 0; i < r->g->n_nodes && n < MAX_HALVES; i++)
    if (is_half(r, i, &out[n]) && out[n].of == first->of && out[n].dim == first->dim) n++;
  return n;
}

/* Taken for one another. Where they are taken in their order, it is the tensor's rows (its
 * weight's) that are not in theirs. */
static iso_code exchanged(repair *r, const half *first, iso_error *err) {
  half h[MAX_HALVES];
  const size_t n = both(r, first, h);
  if (n < 2 || h[0].node != first->node) return ISO_OK;
  iso_code c = try_halves(r, h, n, false, err);
  if (c || !r->found) return c;
  const synth_node *of = &r->g->node[h[0].of];
  r->what = iso_arena_printf(&r->s->res->arena, "the halves of \"%s\" are exchanged", of->id);
  if (makes_product(of) && h[0].which == 0) r->node = h[0].of;
  return ISO_OK;
}

/* Of one tensor, then of all that have its shape: queries and keys. */
static iso_code in_turn(repair *r, const half *first, iso_error *err) {
  half h[MAX_HALVES];
  const size_t n_own = both(r, first, h);
  if (n_own == 0 || h[0].node != first->node) return ISO_OK;
  iso_code c = try_halves(r, h, n_own, true, err);
  size_t n = 0;
  const rule_shape *shape = &r->g->node[first->node].shape;
  for (uint32_t i = 0; i < r->g->n_nodes && n < MAX_HALVES && !r->found; i++)
    if (is_half(r, i, &h[n]) && is_near(r, i) && h[n].dim == first->dim &&
        h[n].in_turn == first->in_turn && rule_shape_eq(&r->g->node[i].shape, shape) &&
        strcmp(r->g->node[i].op, r->g->node[first->node].op) == 0)
      n++;
  if (!c && n > n_own && h[0].node == first->node) c = try_halves(r, h, n, true, err);
  if (c || !r->found) return c;
  const rule_term *call = r->g->node[h[0].node].call;
  if (rule_is_getitem(call->u.s))
    r->node = (uint32_t)call->child[0]->u.i; /* the split is what does it */
  r->what =
      iso_arena_printf(&r->s->res->arena, "its halves are %s, and would have to be %s",
                       first->in_turn ? "every second element" : "the first and the second part",
                       first->in_turn ? "the first and the second part" : "every second element");
  return c;
}

iso_code rp_halves(repair *r, uint32_t n, iso_error *err) {
  half first;
  if (r->found || !is_half(r, n, &first)) return ISO_OK;
  iso_code c = exchanged(r, &first, err);
  return c || r->found ? c : in_turn(r, &first, err);
}
