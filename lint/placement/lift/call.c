/* A step of the ranks as a call of the whole program.
 *
 * The call has the ranks' operator and attributes. A literal that differs from rank to rank becomes
 * one that covers all ranks. */
#include <math.h>
#include <stdlib.h>

#include "lint/placement/lift/variants.h"
#include "rules/operators.h"

typedef struct lifting {
  plc *x;
  plc_tuple *t;
  const plc_variant *v; /* NULL: arguments are gathered */
  iso_arena *a;
  uint32_t rank[PLC_RANKS], n; /* those that have the step */
  uint32_t slot, arg;
  bool fails, differs; /* no whole call; attributes are not the same on all ranks */
} lifting;

static const rule_term *refuse(lifting *l) {
  l->fails = true;
  return NULL;
}

/* Of integers that grow evenly along an axis: the first where they are beginnings, else the last.
 */
static int64_t covering(const lifting *l, const rule_term *const *t) {
  const int64_t first = t[0]->u.i, last = t[l->n - 1]->u.i;
  int64_t next = last;
  for (uint32_t i = 1; i < l->n && next == last; i++)
    if (t[i]->u.i != first) next = t[i]->u.i;
  const int64_t by = next - first;
  if (by < 0) return 2 * llabs(last) < -by ? last : first;
  return 2 * llabs(first) < by ? first : last;
}

/* Whether it is a number of ranks, or one through that; `root`: or a root of it, too. */
static bool is_count(const plc_mesh *m, double v, bool root) {
  for (uint32_t a = 0; a <= m->n_axes; a++) {
    const double n = a < m->n_axes ? m->size[a] : m->n;
    if (v == n || v == 1 / n || (root && (v == sqrt(n) || v == 1 / sqrt(n)))) return true;
  }
  return false;
}

/* One rank alone has 1 there. */
static const rule_term *one(lifting *l, const rule_term *t) {
  return t->kind == RULE_INT ? rule_int(l->a, 1) : rule_float(l->a, 1);
}

static const rule_term *literal(lifting *l, const rule_term *const *t) {
  const uint32_t slot = l->slot++;
  bool same = true;
  for (uint32_t i = 1; i < l->n; i++) same &= rule_term_eq(t[i], t[0]);
  l->differs |= !same;
  if (!same && t[0]->kind != RULE_INT) return refuse(l);
  const double own = t[0]->kind == RULE_INT ? (double)t[0]->u.i : t[0]->u.f;
  int64_t value = t[0]->kind == RULE_INT ? same ? t[0]->u.i : covering(l, t) : 0;
  const bool said = plc_counts_ranks(l->x, l->t), counts = is_count(&l->x->mesh, own, said);
  if (same && counts && said) return one(l, t[0]);
  const double all = same && l->v ? plc_whole_count(l->x, l->t, own) : 0;
  if (all > 0) return t[0]->kind == RULE_INT ? rule_int(l->a, (int64_t)all) : rule_float(l->a, all);
  if (same && l->v && l->v->bounds && t[0]->kind == RULE_INT)
    return rule_int(l->a, l->t->n_args ? plc_whole_bound(l->x, value) : value);
  if (same && l->v && l->v->bounds && l->t->n_args == 0)
    return rule_float(l->a, plc_whole_number(l->x, own));
  for (uint32_t i = 0; l->v && i < l->v->n; i++) {
    const double by = l->v->by[i];
    if (l->v->slot[i] != slot) continue;
    if (by == 0) return counts ? one(l, t[0]) : refuse(l);
    if (t[0]->kind != RULE_INT || value <= 0 || value > INT32_MAX) return refuse(l);
    if (by < 1 && fmod((double)value * by, 1) != 0) return refuse(l);
    value = (int64_t)((double)value * by);
  }
  return t[0]->kind == RULE_INT ? rule_int(l->a, value) : rule_float(l->a, t[0]->u.f);
}

static const rule_term *argument(lifting *l, const rule_term *const *t) {
  const uint32_t i = l->arg++;
  if (l->v) return rule_var(l->a, i);
  uint32_t node[PLC_RANKS];
  for (uint32_t r = 0; r < l->x->mesh.n; r++) node[r] = PLC_NONE;
  for (uint32_t k = 0; k < l->n; k++)
    if (t[k]->kind == RULE_VAR) node[l->rank[k]] = (uint32_t)t[k]->u.i;
  if (i >= PLC_ARGS) return refuse(l);
  if ((l->t->arg[i] = plc_intern(l->x, node)) == PLC_NONE) return refuse(l);
  l->t->n_args = i + 1;
  return rule_var(l->a, i);
}

/* A tensor that only some ranks give, as a bias that is added once. */
static bool given_by_some(const lifting *l, const rule_term *const *t) {
  bool some = false, none = false;
  for (uint32_t i = 0; i < l->n; i++) {
    some |= t[i]->kind == RULE_VAR;
    none |= t[i]->kind == RULE_NONE;
    if (t[i]->kind != RULE_VAR && t[i]->kind != RULE_NONE) return false;
  }
  return some && none;
}

static const rule_term *lift_term(lifting *l, const rule_term *const *t) {
  if (given_by_some(l, t)) {
    l->differs = true;
    return argument(l, t);
  }
  for (uint32_t i = 1; i < l->n; i++)
    if (t[i]->kind != t[0]->kind || t[i]->n != t[0]->n) return refuse(l);
  switch (t[0]->kind) {
  case RULE_VAR: return argument(l, t);
  case RULE_INT:
  case RULE_FLOAT: return literal(l, t);
  case RULE_OP:
  case RULE_LIST: break;
  default:
    for (uint32_t i = 1; i < l->n; i++)
      if (!rule_term_eq(t[i], t[0])) return refuse(l);
    return t[0];
  }
  const rule_term **child = iso_arena_alloc(l->a, (t[0]->n + 1) * sizeof *child);
  if (!plc_need(l->x, child)) return refuse(l);
  for (uint32_t k = 0; k < t[0]->n; k++) {
    const rule_term *part[PLC_RANKS];
    for (uint32_t i = 0; i < l->n; i++) part[i] = t[i]->child[k];
    if (!(child[k] = lift_term(l, part))) return refuse(l);
  }
  return t[0]->kind == RULE_LIST ? rule_list(l->a, child, t[0]->n)
                                 : rule_op(l->a, t[0]->u.s, child, t[0]->n);
}

static const rule_term *lift_with(lifting *l) {
  const rule_term *t[PLC_RANKS];
  for (uint32_t r = 0; r < l->x->mesh.n; r++)
    if (l->t->node[r] != PLC_NONE) {
      t[l->n] = plc_node(l->x, l->t->node[r])->call;
      l->rank[l->n++] = r;
    }
  return lift_term(l, t);
}

const rule_term *plc_whole_call(plc *x, plc_tuple *t, const plc_variant *v, iso_arena *a) {
  lifting l = {.x = x, .t = t, .v = v, .a = a};
  return plc_from_end(x, t, lift_with(&l), a);
}

/* The operand of a collective: each rank's tensor in its own group. */
static bool gather_group(plc *x, plc_tuple *t) {
  uint32_t node[PLC_RANKS];
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    node[r] = PLC_NONE;
    if (t->node[r] == PLC_NONE) continue;
    const cap_node *n = plc_node(x, t->node[r]);
    const rule_term *list = plc_group_list(n);
    const uint64_t below = x->ranks_of[t->node[r]] & ((UINT64_C(1) << r) - 1);
    const uint32_t place = (uint32_t)__builtin_popcountll(below);
    if (!list || place >= list->n) return false;
    node[r] = (uint32_t)list->child[place]->u.i;
  }
  t->n_args = 1;
  return (t->arg[0] = plc_intern(x, node)) != PLC_NONE;
}

static bool gather_mixed(plc *x, plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const uint32_t step = t->node[r] == PLC_NONE ? PLC_NONE : x->step_of[t->node[r]];
    bool known = step == PLC_NONE;
    for (uint32_t i = 0; i < t->n_args; i++) known |= t->arg[i] == step;
    if (!known && t->n_args < PLC_ARGS) t->arg[t->n_args++] = step;
  }
  return true;
}

bool plc_gather(plc *x, plc_tuple *t) {
  lifting l = {.x = x, .t = t, .a = &x->run};
  t->n_args = 0;
  if (!plc_need(x, t->arg = iso_arena_alloc(&x->run, PLC_ARGS * sizeof *t->arg))) return false;
  if (t->mixed) return gather_mixed(x, t);
  if (t->collective) return gather_group(x, t);
  lift_with(&l);
  t->differs = l.differs;
  t->slots = l.slot;
  return !l.fails;
}

bool plc_is_getitem(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE) return rule_is_getitem(plc_node(x, t->node[r])->call->u.s);
  return false;
}
