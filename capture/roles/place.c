/* The places of nodes, operands first. */
#include <string.h>

#include "egraph/base/vec.h"
#include "capture/roles/roles_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MOST_OPERANDS = 64, DEEPEST = 2, MOST_OPEN = 3 };

typedef struct operands {
  uint32_t of[MOST_OPERANDS], n;
  bool too_many;
} operands;

static void collect(const roles_work *x, const rule_term *t, operands *o) {
  if (t->kind == RULE_VAR) {
    const uint32_t i = (uint32_t)t->u.i;
    if (x->place[i].kind == ROLES_MANY) collect(x, x->g->node[i].call, o);
    else if (o->n == MOST_OPERANDS) o->too_many = true;
    else o->of[o->n++] = i;
    return;
  }
  for (uint32_t i = 0; i < t->n; i++) collect(x, t->child[i], o);
}

static bool any(const roles_work *x, const operands *o, roles_kind kind) {
  for (uint32_t i = 0; i < o->n; i++)
    if (x->place[o->of[i]].kind == kind) return true;
  return false;
}

static bool any_times(const roles_work *x, const operands *o) {
  for (uint32_t i = 0; i < o->n; i++)
    if (x->place[o->of[i]].times) return true;
  return false;
}

/* ---- collectives ---- */

static uint32_t first_of(const cap_node *n) { return (uint32_t)n->call->child[0]->child[0]->u.i; }

static bool is_word(const rule_term *t, const char *word) {
  return t->kind == RULE_STRING && strcmp(t->u.s, word) == 0;
}

/* The node's counterpart in the new graph, divided by the number of ranks. */
static iso_code divide(roles_work *x, uint32_t node, uint32_t *at) {
  iso_arena *a = &x->out->arena;
  const rule_term *of = rule_var(a, x->place[node].at), *n = rule_int(a, x->n_ranks);
  const rule_term *t = of && n ? rule_op(a, OP_DIV_TENSOR, (const rule_term *[]){of, n}, 2) : NULL;
  return t ? roles_make(x, t, node, at) : roles_nomem(x);
}

/* The tensor of which they all have the sum, or the mean. Integers wrap, and sums of booleans are
 * no multiples of them: so many times a tensor, and a mean, are of real numbers. */
static iso_code reduced(roles_work *x, uint32_t own, const rule_term *how, roles_place *out,
                        bool *known) {
  const roles_place *p = &x->place[own];
  const bool sum = is_word(how, "sum"), mean = is_word(how, "avg");
  *out = (roles_place){.kind = ROLES_SAME, .at = p->at, .times = p->times};
  *known = p->kind == ROLES_SUM && sum;
  if (*known || !rule_dtype_is_float(x->g->node[own].output[0].dtype)) return ISO_OK;
  *known =
      (p->kind == ROLES_SAME && ((sum && !p->times) || mean)) || (p->kind == ROLES_SUM && mean);
  if (p->kind == ROLES_SAME && sum) out->times = true;
  if (p->kind != ROLES_SUM || !mean) return ISO_OK;
  out->times = false;
  return p->times ? ISO_OK : divide(x, own, &out->at);
}

/* The place of a collective of all members of all teams, by the places of the operands of one
 * team's members. */
static iso_code place_of_all(roles_work *x, uint32_t i) {
  const cap_node *n = &x->g->node[i];
  const rule_term *const *arg = n->call->child;
  const uint32_t members = roles_n_team(x);
  iso_arena *a = &x->out->arena;
  const rule_term **of = iso_arena_alloc(a, members * sizeof *of);
  bool known = rule_is_overload(n->op, OP_DIST_ALL_REDUCE);
  roles_place p = {.kind = ROLES_SAME};
  if (!of) return roles_nomem(x);
  iso_code c = ISO_OK;
  for (uint32_t m = 0; m < members && known && !c; m++) {
    roles_place own;
    c = reduced(x, (uint32_t)arg[0]->child[roles_rank(x, 0, m)]->u.i, arg[1], &own, &known);
    known = known && (m == 0 || own.times == p.times);
    p.times = own.times;
    if (!c && !(of[m] = rule_var(a, own.at))) c = roles_nomem(x);
  }
  if (c) return c;
  if (!known) return roles_refuse(x, "what %s makes of the ranks' tensors", n->id);
  const rule_term *list = rule_list(a, of, members);
  const rule_term *whole =
      list ? rule_op(a, n->call->u.s, (const rule_term *[]){list, arg[1]}, 2) : NULL;
  c = whole ? roles_make(x, whole, i, &p.at) : roles_nomem(x);
  x->place[i] = p;
  return c;
}

static iso_code place_collective(roles_work *x, uint32_t i) {
  const cap_node *n = &x->g->node[i];
  const rule_term *const *arg = n->call->child;
  if (!x->once && arg[0]->n != x->n_ranks) return place_of_all(x, i);
  const roles_place *p = &x->place[first_of(n)];
  bool known = false;
  iso_code c = ISO_OK;
  if (n->n_outputs > 1) {
    x->place[i].kind = ROLES_MANY; /* its shares are placed */
    return ISO_OK;
  }
  if (rule_is_overload(n->op, OP_DIST_ALL_REDUCE))
    c = reduced(x, first_of(n), arg[1], &x->place[i], &known);
  else if (rule_is_overload(n->op, OP_DIST_ALL_GATHER) && arg[1]->kind == RULE_INT) {
    x->place[i] = (roles_place){.kind = ROLES_SAME, .at = p->at, .times = p->times};
    known = p->kind == ROLES_PART && (int64_t)p->dim == arg[1]->u.i;
  }
  return c || known ? c : roles_refuse(x, "what %s makes of the ranks' tensors", n->id);
}

/* A rank's own part of a sum that is shared out by `all`. */
static iso_code place_share(roles_work *x, uint32_t i, const cap_node *all) {
  const rule_term *const *arg = all->call->child;
  const bool scatters = rule_is_overload(all->op, OP_DIST_REDUCE_SCATTER);
  roles_place *p = &x->place[i];
  bool known = false;
  const iso_code c = scatters ? reduced(x, first_of(all), arg[1], p, &known) : ISO_OK;
  if (c) return c;
  if (!known || arg[2]->kind != RULE_INT)
    return roles_refuse(x, "what %s makes of the ranks' tensors", all->id);
  p->kind = ROLES_PART;
  p->dim = (uint32_t)arg[2]->u.i;
  p->shared = true;
  return ISO_OK;
}

/* ---- operators ---- */

/* Operands that are so many times their tensor: the result is, or they are multiplied out. */
static iso_code take_times(roles_work *x, uint32_t i, const operands *o, bool *carried) {
  iso_code c = any(x, o, ROLES_OPEN) ? ISO_OK : roles_carries(x, i, carried);
  for (uint32_t k = 0; k < o->n && !c && !*carried; k++)
    if (x->place[o->of[k]].times) c = roles_multiply(x, o->of[k]);
  return c;
}

/* Tries one claim. Returns: in `holds` whether the node is placed now. */
static iso_code claim(roles_work *x, const roles_claim *k, bool carried, bool *holds) {
  const rule_term *whole = NULL;
  roles_place p = {.kind = k->kind, .dim = k->dim, .times = carried || k->times};
  iso_code c = roles_holds(x, k, holds, &whole);
  if (!c && *holds) c = roles_make(x, whole, k->node, &p.at);
  if (!c && *holds) x->place[k->node] = p;
  return c;
}

static iso_code claim_kinds(roles_work *x, roles_claim k, bool carried, bool parts, bool *holds) {
  const cap_output *what = &x->g->node[k.node].output[0];
  iso_code c = ISO_OK;
  *holds = false;
  k.kind = ROLES_PART;
  for (k.dim = 0; k.dim < what->shape.rank && parts && !c && !*holds; k.dim++)
    c = claim(x, &k, carried, holds);
  k.kind = ROLES_SUM, k.dim = 0;
  if (!c && !*holds && rule_dtype_is_float(what->dtype)) c = claim(x, &k, carried, holds);
  return c;
}

/* The result of an operator that works along the ranks' parts, of each part by itself. */
static iso_code claim_within(roles_work *x, uint32_t i, const operands *o, bool carried,
                             bool *holds) {
  const roles_place *p = &x->place[o->of[0]];
  if (p->kind != ROLES_PART) return ISO_OK;
  return claim(x, &(roles_claim){i, .kind = ROLES_PART, .dim = p->dim, .within = true}, carried,
               holds);
}

/* What ranks add up of what is the same on all and of what is not: gradients that are reduced
 * already, and those of the next micro-batch. */
static iso_code claim_repeated(roles_work *x, uint32_t i, const operands *o, bool carried,
                               bool *holds) {
  if (!any(x, o, ROLES_SAME) || !any(x, o, ROLES_SUM) ||
      !rule_dtype_is_float(x->g->node[i].output[0].dtype))
    return ISO_OK;
  return claim(x, &(roles_claim){i, .kind = ROLES_SUM, .repeated = true}, carried, holds);
}

static uint32_t result_of(const cap_node *n) {
  return rule_is_getitem(n->op) ? (uint32_t)n->call->child[1]->u.i : 0;
}

/* The operator, of which the node may be one of several results. */
static const rule_operator *operator_of(const roles_work *x, uint32_t i) {
  const rule_term *t = x->g->node[i].call;
  return rule_operator_of(rule_is_getitem(t->u.s) ? x->g->node[t->child[0]->u.i].op : t->u.s);
}

/* Integers stay in their range where an operator only moves them. */
static void keep_facts(roles_work *x, uint32_t i, const operands *o) {
  const roles_place *from = o->n == 1 ? &x->place[o->of[0]] : NULL;
  roles_place *p = &x->place[i];
  if (from && p->kind == ROLES_PART) p->shared = from->shared;
  const rule_operator *known = operator_of(x, i);
  if (!from || !from->ranged || (!known->rearranges && !known->part)) return;
  p->ranged = true, p->low = from->low, p->high = from->high;
}

static iso_code place_all_same(roles_work *x, uint32_t i, bool carried) {
  roles_place p = {.kind = ROLES_SAME, .times = carried};
  const rule_term *whole = NULL;
  iso_code c = roles_alike(x, i, &whole);
  if (!c) c = roles_make(x, whole, i, &p.at);
  x->place[i] = p;
  return c;
}

/* Its readers may be shown together with it. */
static iso_code leave_open(roles_work *x, uint32_t i, const operands *o, bool carried) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < o->n; k++)
    if (x->place[o->of[k]].open > most) most = x->place[o->of[k]].open;
  x->place[i].open = most + 1;
  return carried || most + 1 >= MOST_OPEN
             ? roles_refuse(x, "what %s is of all ranks' tensors was not shown", x->g->node[i].id)
             : ISO_OK;
}

/* Sums are divided by the number of ranks. In rows of a batch a division by the same number is
 * another one, of a mean over a width that is as large. */
static bool may_undo(const roles_work *x, const operands *o) {
  const roles_place *p = &x->place[o->of[0]];
  return o->n == 1 && p->kind != ROLES_OPEN && (p->kind != ROLES_PART || p->shared);
}

static iso_code place_operator(roles_work *x, uint32_t i) {
  operands o = {0};
  bool holds = false, carried = false;
  iso_code c = ISO_OK;
  collect(x, x->g->node[i].call, &o);
  if (o.too_many || result_of(&x->g->node[i]) >= MOST_OPERANDS)
    return roles_refuse(x, "%s has too many operands", x->g->node[i].id);
  if (any_times(x, &o)) {
    if (may_undo(x, &o)) c = roles_undoes(x, i, &holds);
    if (holds) {
      x->place[i] = x->place[o.of[0]];
      x->place[i].times = false;
    }
    if (c || holds) return c;
    c = take_times(x, i, &o, &carried);
  }
  const bool parts = any(x, &o, ROLES_PART), open = any(x, &o, ROLES_OPEN);
  if (!c && !parts && !open && !any(x, &o, ROLES_SUM)) return place_all_same(x, i, carried);
  for (uint32_t deeper = 0; deeper <= DEEPEST && !c && !holds; deeper++) {
    for (int many = 0; many < 2 && !c && !holds; many++)
      if (!many || !carried)
        c = claim_kinds(x, (roles_claim){.node = i, .times = many != 0, .deeper = deeper}, carried,
                        parts || open || deeper, &holds);
    if (!c && !holds && !deeper) c = claim_within(x, i, &o, carried, &holds);
    if (!c && !holds && !deeper) c = claim_repeated(x, i, &o, carried, &holds);
    if (!c && !holds && !deeper)
      c = claim_kinds(x, (roles_claim){.node = i, .made = true}, carried, parts, &holds);
  }
  if (holds) keep_facts(x, i, &o);
  return c || holds ? c : leave_open(x, i, &o, carried);
}

/* Something reads this very node: that is the tensor itself only where each rank has it. */
static iso_code hold_common(roles_work *x, uint32_t i) {
  const roles_kind kind = x->place[i].kind;
  return kind == ROLES_SAME || kind == ROLES_MANY
             ? ISO_OK
             : roles_refuse(x, "%s is not the same on all ranks", x->g->node[i].id);
}

iso_code roles_places(roles_work *x) {
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < x->g->n_nodes && !c && !roles_refused(x); i++) {
    const cap_node *n = &x->g->node[i];
    if (!c && x->common[i] && !n->call) c = hold_common(x, i);
    if (!x->needed[i] || !n->call) continue;
    if (x->once && rule_is_overload(n->op, OP_DIST_REDUCE_SCATTER)) c = place_share(x, i, n);
    else if (x->meets[i]) c = place_collective(x, i);
    else if (roles_is_share(x, n)) c = place_share(x, i, &x->g->node[n->call->child[0]->u.i]);
    else if (n->n_outputs > 1) x->place[i].kind = ROLES_MANY;
    else c = place_operator(x, i);
    if (!c && !roles_refused(x) && x->common[i]) c = hold_common(x, i);
  }
  return c;
}
