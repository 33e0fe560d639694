/* A step of the ranks as a step of the whole program, and what the ranks then hold of it.
 *
 * The whole call has the ranks' operator and attributes. An integer of it may have to be larger,
 * as a size is; which one is found by trying: what the ranks hold has to be the whole's shards or
 * parts on every draw. What differs from rank to rank covers all ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_SLOTS = 14, MOST_VARIANTS = 512 };

/* The remainder of sums that cancel, relative to their terms. */
static const double cancelled = 1e-14;

/* ---- the whole call ---- */

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

static bool is_getitem(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE) return rule_is_getitem(plc_node(x, t->node[r])->call->u.s);
  return false;
}

/* ---- one variant ---- */

static void drop_wholes(plc_tuple *t, rule_tensor **whole) {
  for (uint32_t i = 0; i < PLC_DRAWS * t->n_out; i++) {
    rule_tensor_unref(whole[i]);
    whole[i] = NULL;
  }
}

/* Runs the whole call on a draw. Returns: false where it cannot be run. */
static bool call_whole(plc *x, plc_tuple *t, const rule_term *call, uint32_t draw,
                       rule_tensor *regrown, rule_tensor **out) {
  rule_tensor *bind[PLC_ARGS];
  size_t n = 0;
  iso_error err = {0};
  for (uint32_t i = 0; i < t->n_args; i++)
    bind[i] = i == t->regrown && regrown ? regrown : x->tuple[t->arg[i]]->whole[draw];
  const iso_code c = x->oracle->call(x->oracle->ctx, call, bind, true, out, t->n_out, &n, &err);
  if (c == ISO_NOMEM || c == ISO_DEVICE) x->code = iso_fail(x->err, c, "%s", err.msg);
  if (!c && n == t->n_out) return true;
  for (size_t i = 0; !c && i < n; i++) rule_tensor_unref(out[i]), out[i] = NULL;
  return false;
}

/* The whole of a larger constant in place of an argument. Owns. */
static rule_tensor *regrow(plc *x, plc_tuple *t) {
  if (t->regrown == PLC_NONE) return NULL;
  plc_tuple *c = x->tuple[t->arg[t->regrown]];
  const rule_term *call = plc_whole_call(x, c, &t->regrow, &x->run);
  rule_tensor *out = NULL;
  return call && c->n_out == 1 && call_whole(x, c, call, 0, NULL, &out) ? out : NULL;
}

/* A larger integer that changes no shape is no size. */
static bool is_size(const plc_tuple *t, const plc_variant *v, const rule_shape *as_is) {
  if (v->n == 0 || v->by[0] == 0) return true;
  for (uint32_t k = 0; k < t->n_out; k++)
    if (!t->whole[k] || !rule_shape_eq(&t->whole[k]->shape, &as_is[k])) return true;
  return false;
}

/* Whether the variant has a whole, in t->whole; `fits`: and the ranks hold it somehow. `as_is`:
 * shapes with the ranks' own integers, once these were tried; rank RULE_MAX_RANK + 1 before. */
static bool try_variant(plc *x, plc_tuple *t, const plc_variant *v, uint32_t axes, bool blocks,
                        rule_shape *as_is, bool *fits) {
  const rule_term *call = plc_whole_call(x, t, v, &x->run);
  rule_tensor *larger = regrow(x, t);
  bool runs = call && (t->regrown == PLC_NONE || larger);
  *fits = false;
  drop_wholes(t, t->whole);
  for (uint32_t d = 0; d < PLC_DRAWS && runs; d++) {
    runs = call_whole(x, t, call, d, larger, t->whole + d * t->n_out);
    if (d == 0 && runs && !is_size(t, v, as_is)) runs = false;
    for (uint32_t k = 0; k < t->n_out && runs && d == 0; k++) {
      if (v->n == 0 && t->regrown == PLC_NONE) as_is[k] = t->whole[k]->shape;
      *fits = plc_match_with(x, t, k, axes, blocks, &t->place[k]);
      if (!*fits) break;
    }
    if (d == 0 && !*fits) break;
  }
  /* Seen on one draw only so far. */
  for (uint32_t k = 0; k < t->n_out && *fits && runs; k++)
    *fits = plc_match_with(x, t, k, axes, blocks, &t->place[k]);
  rule_tensor_unref(larger);
  *fits = *fits && runs;
  if (!*fits) drop_wholes(t, t->whole);
  return runs;
}

static bool fill_wholes(plc *x, plc_tuple *t, const plc_variant *v) {
  const rule_term *call = plc_whole_call(x, t, v, &x->run);
  bool runs = call != NULL;
  for (uint32_t d = 0; d < PLC_DRAWS && runs; d++)
    runs = call_whole(x, t, call, d, NULL, t->whole + d * t->n_out);
  if (!runs) drop_wholes(t, t->whole);
  return runs;
}

/* ---- all variants ---- */

typedef struct variants {
  plc_variant at[MOST_VARIANTS];
  uint32_t n;
} variants;

static void add(variants *all, uint32_t n, const uint32_t *slot, const double *by) {
  if (all->n == MOST_VARIANTS) return;
  plc_variant *v = &all->at[all->n++];
  *v = (plc_variant){.n = (uint8_t)n};
  for (uint32_t i = 0; i < n; i++) v->slot[i] = (uint8_t)slot[i], v->by[i] = by[i];
}

/* The simplest first: as the ranks have it, one integer larger, one for each of two axes, two for
 * one axis, one smaller. */
static void list_variants(const plc *x, uint32_t slots, uint32_t axes, bool scaled, variants *all) {
  const uint32_t n = slots < MOST_SLOTS ? slots : MOST_SLOTS, none = 0;
  const double zero = 0;
  all->n = 0;
  add(all, 0, &none, &zero);
  for (uint32_t i = 0; i < n && scaled; i++) add(all, 1, &i, &zero);
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
    const double by = x->mesh.size[a];
    if (axes >> a & 1)
      for (uint32_t i = 0; i < n; i++) add(all, 1, &i, &by);
  }
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    for (uint32_t b = a; b < x->mesh.n_axes; b++) {
      const double by[2] = {x->mesh.size[a], x->mesh.size[b]};
      if (!(axes >> a & 1) || !(axes >> b & 1)) continue;
      for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = a == b ? i + 1 : 0; k < n; k++) add(all, 2, (uint32_t[]){i, k}, by);
    }
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) { /* the sizes of three or four parts */
    const double by = x->mesh.size[a], each[] = {by, by, by, by};
    static const uint32_t first[] = {0, 1, 2, 3};
    for (uint32_t k = 3; axes >> a & 1 && k <= 4 && k <= n; k++) add(all, k, first, each);
  }
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
    const double by = 1.0 / x->mesh.size[a];
    if (axes >> a & 1)
      for (uint32_t i = 0; i < n; i++) add(all, 1, &i, &by);
  }
}

/* Along which axes something may be other than replicas. */
static uint32_t free_axes(const plc *x, const plc_tuple *t, bool differs, bool *scaled) {
  const uint32_t all = (UINT32_C(1) << x->mesh.n_axes) - 1;
  uint32_t axes = differs ? all : 0;
  *scaled = false;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) axes = all;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state != PLC_PLACED) axes = all;
    for (uint32_t k = 0; k < o->n_out && o->state == PLC_PLACED; k++) {
      for (uint32_t a = 0; a < x->mesh.n_axes; a++)
        if (o->place[k].axis[a].kind != PLC_R) axes |= UINT32_C(1) << a;
      if (o->place[k].scale != 1) *scaled = true;
    }
  }
  return *scaled ? all : axes;
}

/* A constant made by an operator without operands may be one's own part of a larger one. */
static bool try_regrown(plc *x, plc_tuple *t, const variants *all, uint32_t axes,
                        rule_shape *as_is) {
  for (uint32_t i = 0; i < t->n_args && !plc_failed(x); i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (!o->konst || o->n_args || o->leaf || o->collective) continue;
    for (uint32_t s = 0; s < MOST_SLOTS; s++)
      for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
        if (!(axes >> a & 1)) continue;
        t->regrown = i;
        t->regrow = (plc_variant){.n = 1, .slot = {(uint8_t)s}, .by = {x->mesh.size[a]}};
        bool fits = false;
        for (uint32_t v = 0; v < all->n && v <= MOST_SLOTS && !fits; v++) {
          try_variant(x, t, &all->at[v], axes, false, as_is, &fits);
          if (fits) t->variant = all->at[v];
        }
        if (fits) return true;
      }
  }
  t->regrown = PLC_NONE;
  return false;
}

static void varies(plc_tuple *t, plc_state state, const char *why) {
  t->state = state;
  t->why = why;
  drop_wholes(t, t->whole);
}

/* A tensor that is the same on all ranks is a replica of itself. */
static bool lift_replica(plc *x, plc_tuple *t) {
  rule_tensor *each[PLC_RANKS];
  for (uint32_t d = 0; d < PLC_DRAWS; d++)
    for (uint32_t k = 0; k < t->n_out; k++) {
      plc_locals(x, t, d, k, each);
      if (!each[0]) return false;
      t->whole[d * t->n_out + k] = rule_tensor_ref(each[0]);
      t->place[k] = plc_replica();
    }
  t->state = PLC_PLACED;
  return true;
}

/* A division by a number of ranks; one rank alone divides by 1. */
static bool lift_counting(plc *x, plc_tuple *t) {
  const plc_variant none = {0};
  rule_shape as_is;
  bool fits = false;
  if (!plc_counts_ranks(x, t) || t->n_out != 1) return false;
  try_variant(x, t, &none, UINT32_MAX, false, &as_is, &fits);
  if (fits) t->state = PLC_PLACED;
  return fits;
}

static bool several(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && plc_node(x, t->node[r])->n_outputs > 1) return true;
  return false;
}

/* A collective is an identity of the whole; what it makes of constants is a constant. */
static void lift_identity(plc *x, plc_tuple *t, const plc_tuple *o) {
  for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(o->whole[d * o->n_out]);
  t->state = PLC_PLACED;
  if (several(x, t)) { /* its getitems are placed */
    t->state = o->state;
    t->why = o->why;
    t->several = true;
    return;
  }
  if (plc_match(x, t, 0, UINT32_MAX, &t->place[0])) return;
  t->state = PLC_VARYING;
  t->why = "the collective does not fit what the ranks hold";
}

static bool constant_replica(plc *x, plc_tuple *t) {
  rule_tensor *each[PLC_RANKS];
  const plc_place p = plc_replica();
  plc_locals(x, t, 0, 0, each);
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (!each[r]) return false;
  return plc_holds(x, each, each[0], &p, t->floor);
}

static uint32_t literals(const rule_term *t) {
  uint32_t n = t->kind == RULE_INT || t->kind == RULE_FLOAT;
  for (uint32_t i = 0; i < t->n; i++) n += literals(t->child[i]);
  return n;
}

/* Arguments for which the schema wants a literal. */
static rule_arg_type type_of(const plc *x, const plc_tuple *t, uint32_t slot) {
  uint32_t r = 0;
  while (t->node[r] == PLC_NONE) r++;
  const rule_term *c = plc_node(x, t->node[r])->call;
  const rule_schema *s = rule_schemas_find(x->schemas, c->u.s);
  for (uint32_t k = 0, at = 0; s && k < c->n && k < s->n_args; k++) {
    at += literals(c->child[k]);
    if (slot < at) return s->arg[k].type;
  }
  return RULE_ARG_INTS;
}

/* Whether the literal is one integer for the schema, and no number of any kind. */
static bool is_integer(const plc *x, const plc_tuple *t, uint32_t slot) {
  return type_of(x, t, slot) == RULE_ARG_INT;
}

bool plc_has_sizes(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->slots; i++) {
    const rule_arg_type type = type_of(x, t, i);
    if (type == RULE_ARG_INT || type == RULE_ARG_INTS) return true;
  }
  return false;
}

/* Whether an integer that changes no shape would let it be placed: it may be a number of groups. */
static bool fits_unseen(plc *x, plc_tuple *t, const variants *all, uint32_t axes) {
  rule_shape *none = iso_arena_alloc(&x->run, t->n_out * sizeof *none);
  bool fits = false;
  for (uint32_t i = 1; plc_need(x, none) && i < all->n && !fits && !plc_failed(x); i++) {
    const plc_variant *v = &all->at[i];
    if (v->n != 1 || v->by[0] <= 1 || !is_integer(x, t, v->slot[0])) continue;
    for (uint32_t k = 0; k < t->n_out; k++) none[k].rank = RULE_MAX_RANK + 1;
    try_variant(x, t, v, axes, false, none, &fits);
  }
  drop_wholes(t, t->whole);
  return fits;
}

static bool lift_variants(plc *x, plc_tuple *t, uint32_t slots, uint32_t axes, bool scaled) {
  variants *all = malloc(sizeof *all);
  rule_shape *as_is = iso_arena_alloc(&x->run, t->n_out * sizeof *as_is);
  const plc_variant *natural = NULL;
  bool fits = false;
  if (!plc_need(x, all) || !plc_need(x, as_is)) {
    free(all);
    return false;
  }
  for (uint32_t k = 0; k < t->n_out; k++) as_is[k].rank = RULE_MAX_RANK + 1;
  list_variants(x, slots, axes, scaled, all);
  uint32_t skip = plc_tried(x, t), readings = 0;
  for (uint32_t i = 0; i < 2 * all->n && !fits && !plc_failed(x); i++) {
    const plc_variant *v = &all->at[i % all->n];
    const bool runs = try_variant(x, t, v, axes, i >= all->n, as_is, &fits);
    /* Where none fits, the guess is which of those that run. */
    if (runs && i < all->n && (v->n == 0 || v->by[0] > 0) && readings++ <= plc_tried(x, t))
      natural = v;
    if (fits && skip) {
      skip--;
      fits = false;
      drop_wholes(t, t->whole);
    }
    t->chosen = v->n > 0 || i >= all->n;
    if (fits) t->variant = *v;
  }
  if (!fits) fits = try_regrown(x, t, all, axes, as_is);
  const bool unseen = !fits && natural && fits_unseen(x, t, all, axes);
  if (fits) t->state = PLC_PLACED;
  else if (natural && fill_wholes(x, t, natural)) {
    t->variant = *natural;
    t->unsure = t->differs || unseen || (natural->n > 0 && readings > 1);
    t->chosen = readings > 1;
    t->state = PLC_VARYING;
    t->why = "it is neither replicas, shards nor parts of what one rank would compute";
  }
  free(all);
  return t->state == PLC_PLACED || t->state == PLC_VARYING;
}

/* Nodes of several steps: together they are what one of these is. */
static void lift_mixed(plc *x, plc_tuple *t) {
  const plc_tuple *last = NULL;
  for (uint32_t i = 0; i < t->n_args && !plc_failed(x); i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if ((o->state != PLC_PLACED && o->state != PLC_VARYING) || o->n_out != 1 || !o->whole[0])
      continue;
    if (!last || o->order > last->order) last = o, t->from = i;
    for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(o->whole[d]);
    if (plc_match(x, t, 0, UINT32_MAX, &t->place[0])) {
      t->state = PLC_PLACED;
      t->from = i;
      return;
    }
    drop_wholes(t, t->whole);
  }
  varies(t, last ? PLC_VARYING : PLC_UNKNOWN, "ranks have it from different operators");
  for (uint32_t d = 0; last && d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(last->whole[d]);
}

/* Each rank takes another part: together they have what was taken apart. */
static void lift_own_parts(plc *x, plc_tuple *t, const plc_tuple *o) {
  const plc_tuple *base = o->n_args ? x->tuple[o->arg[0]] : NULL;
  t->apart = base && base->n_out == 1 && base->whole && base->whole[0];
  varies(t, t->apart ? PLC_VARYING : PLC_UNKNOWN, "the ranks take parts that are no shards");
  if (!t->apart) return;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(base->whole[d]);
  if (plc_match(x, t, 0, UINT32_MAX, &t->place[0])) t->state = PLC_PLACED;
}

static void lift_getitem(plc *x, plc_tuple *t, const plc_tuple *o) {
  uint32_t k = 0;
  if (t->differs && !o->collective) {
    lift_own_parts(x, t, o);
    return;
  }
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !o->collective)
      k = (uint32_t)plc_node(x, t->node[r])->call->child[1]->u.i;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    rule_tensor *whole = o->whole[d * o->n_out + k];
    if (!whole) break;
    t->whole[d] = rule_tensor_ref(whole);
  }
  if (!t->whole[0]) {
    varies(t, PLC_UNKNOWN, o->why);
    return;
  }
  t->state = PLC_PLACED;
  if (o->state == PLC_PLACED && !o->collective) t->place[0] = o->place[k];
  else if (!plc_match(x, t, 0, UINT32_MAX, &t->place[0])) {
    t->state = PLC_VARYING;
    t->why = o->why ? o->why : "the collective does not fit what the ranks hold";
  }
}

bool plc_takes_part(const plc *x, const plc_tuple *t) {
  return is_getitem(x, t) && x->tuple[t->arg[0]]->collective;
}

void plc_lift(plc *x, plc_tuple *t) {
  bool scaled = false, known = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    known &= o->state == PLC_PLACED || o->state == PLC_VARYING;
    rule_tensor *each[PLC_RANKS];
    plc_locals(x, o, 0, 0, each);
    for (uint32_t r = 0; r < x->mesh.n && o->n_out == 1; r++)
      if (each[r]) t->floor = fmax(t->floor, plc_largest(each[r]) * cancelled);
    t->floor = fmax(t->floor, o->floor);
  }
  if (t->mixed) lift_mixed(x, t);
  else if (!known) varies(t, PLC_UNKNOWN, "what it reads has no whole");
  else if (t->collective) {
    const plc_tuple *o = x->tuple[t->arg[0]];
    t->constant = o->konst && !several(x, t) && constant_replica(x, t) && lift_replica(x, t);
    if (!t->constant) lift_identity(x, t, o);
  } else if (is_getitem(x, t)) {
    lift_getitem(x, t, x->tuple[t->arg[0]]);
  } else {
    const uint32_t axes = free_axes(x, t, t->differs, &scaled);
    const bool other = plc_tried(x, t) > 0;
    if (axes == 0 && !other && lift_counting(x, t)) return;
    if (axes == 0 && !other && lift_replica(x, t)) {
      /* It may as well be a shard each of something larger. */
      t->chosen = t->slots > 0 && t->n_out == 1;
      return;
    }
    if (lift_variants(x, t, t->slots, other ? UINT32_MAX : axes, scaled) || plc_failed(x)) return;
    varies(t, PLC_UNKNOWN, "one rank could not run it on whole tensors");
    t->whole_refused = true;
  }
}
