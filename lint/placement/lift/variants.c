/* Which call of the whole program a step of the ranks is.
 *
 * An integer of it may have to be larger, as a size is; which one is found by trying: the ranks'
 * tensors must be the whole's shards or parts on every draw. */
#include <math.h>
#include <stdlib.h>

#include "lint/placement/lift/variants.h"
#include "rules/operators.h"

enum { MOST_SLOTS = 14, MOST_VARIANTS = 512, MOST_LAID_OUT = 6, MOST_READINGS = 24 };

/* ---- one variant ---- */

void plc_drop_wholes(plc_tuple *t) {
  for (uint32_t i = 0; i < PLC_DRAWS * t->n_out; i++) {
    rule_tensor_unref(t->whole[i]);
    t->whole[i] = NULL;
  }
}

/* Runs the whole call on a draw; `other` (or NULL) in place of argument `at`. Returns: false where
 * it cannot be run. */
static bool call_whole(plc *x, plc_tuple *t, const rule_term *call, uint32_t draw, uint32_t at,
                       rule_tensor *other, rule_tensor **out) {
  rule_tensor *bind[PLC_ARGS];
  size_t n = 0;
  iso_error err = {0};
  for (uint32_t i = 0; i < t->n_args; i++)
    bind[i] = i == at && other ? other : x->tuple[t->arg[i]]->whole[draw];
  const iso_code c = x->oracle->call(x->oracle->ctx, call, bind, true, out, t->n_out, &n, &err);
  if (c == ISO_NOMEM || c == ISO_DEVICE) x->code = iso_fail(x->err, c, "%s", err.msg);
  if (!c && n == t->n_out) return true;
  for (size_t i = 0; !c && i < n; i++) rule_tensor_unref(out[i]), out[i] = NULL;
  return false;
}

static bool is_moved(const plc *x, const plc_tuple *t) {
  return !t->collective && !t->mixed && t->node[0] != PLC_NONE &&
         rule_operator_of(plc_node(x, t->node[0])->op)->rearranges;
}

/* Whether it is a constant that an operator without operands makes, moved about at most: it may be
 * larger there for one rank alone. */
static bool may_grow(const plc *x, const plc_tuple *t) {
  while (t->konst && t->n_args == 1 && t->n_out == 1 && !t->differs && t->variant.n == 0 &&
         is_moved(x, t))
    t = x->tuple[t->arg[0]];
  return t->konst && t->n_args == 0 && t->n_out == 1 && !t->leaf && !t->collective;
}

/* A constant that is larger where it is made. Owns. */
static rule_tensor *grown(plc *x, plc_tuple *c, const plc_variant *v) {
  rule_tensor *inner = c->n_args ? grown(x, x->tuple[c->arg[0]], v) : NULL, *out = NULL;
  const rule_term *call = plc_whole_call(x, c, c->n_args ? &c->variant : v, &x->run);
  const bool runs = call && (inner || !c->n_args) && call_whole(x, c, call, 0, 0, inner, &out);
  rule_tensor_unref(inner);
  return runs ? out : NULL;
}

/* The whole of a larger constant in place of an argument. Owns. */
static rule_tensor *regrow(plc *x, plc_tuple *t) {
  return t->regrown == PLC_NONE ? NULL : grown(x, x->tuple[t->arg[t->regrown]], &t->regrow);
}

/* A larger integer that changes no shape is no size. */
static bool is_size(const plc_tuple *t, const plc_variant *v, const rule_shape *as_is) {
  if (v->n == 0 || v->by[0] == 0) return true;
  for (uint32_t k = 0; k < t->n_out; k++)
    if (!t->whole[k] || !rule_shape_eq(&t->whole[k]->shape, &as_is[k])) return true;
  return false;
}

bool plc_try_variant(plc *x, plc_tuple *t, const plc_variant *v, uint32_t axes, bool blocks,
                     rule_shape *as_is, bool *fits) {
  const rule_term *call = plc_whole_call(x, t, v, &x->run);
  rule_tensor *larger = regrow(x, t);
  bool runs = call && (t->regrown == PLC_NONE || larger);
  *fits = false;
  plc_drop_wholes(t);
  for (uint32_t d = 0; d < PLC_DRAWS && runs; d++) {
    runs = call_whole(x, t, call, d, t->regrown, larger, t->whole + d * t->n_out);
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
  if (!*fits) plc_drop_wholes(t);
  return runs;
}

static bool fill_wholes(plc *x, plc_tuple *t, const plc_variant *v) {
  const rule_term *call = plc_whole_call(x, t, v, &x->run);
  bool runs = call != NULL;
  for (uint32_t d = 0; d < PLC_DRAWS && runs; d++)
    runs = call_whole(x, t, call, d, 0, NULL, t->whole + d * t->n_out);
  if (!runs) plc_drop_wholes(t);
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

/* Variants for tensors that ranks exchange. Ranks lay these out with a leading dimension by rank,
 * of which one rank alone has size 1; its other dimensions are larger instead. */
static void list_exchanged(const plc *x, uint32_t n, uint32_t axes, variants *all) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
    const double by[3] = {1.0 / x->mesh.size[a], x->mesh.size[a], x->mesh.size[a]};
    for (uint32_t i = 0; axes >> a & 1 && i < n; i++)
      for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = k + 1; j < n; j++)
          if (i != k && i != j) add(all, 3, (uint32_t[]){i, k, j}, by);
  }
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

uint32_t plc_free_axes(const plc *x, const plc_tuple *t, bool *scaled) {
  const uint32_t all = (UINT32_C(1) << x->mesh.n_axes) - 1;
  uint32_t axes = t->differs ? all : 0;
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
    if (!may_grow(x, o)) continue;
    for (uint32_t s = 0; s < MOST_SLOTS; s++)
      for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
        if (!(axes >> a & 1)) continue;
        t->regrown = i;
        t->regrow = (plc_variant){.n = 1, .slot = {(uint8_t)s}, .by = {x->mesh.size[a]}};
        bool fits = false;
        for (uint32_t v = 0; v < all->n && v <= MOST_SLOTS && !fits; v++) {
          plc_try_variant(x, t, &all->at[v], axes, false, as_is, &fits);
          if (fits) t->variant = all->at[v];
        }
        if (fits) return true;
      }
  }
  t->regrown = PLC_NONE;
  return false;
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

/* A call with another integer at a slot. */
static const rule_term *with_other(plc *x, const rule_term *c, uint32_t slot, uint32_t *at) {
  if (c->kind == RULE_INT && *at == slot) {
    ++*at;
    return rule_int(&x->run, c->u.i ? 2 * c->u.i : 1);
  }
  *at += c->kind == RULE_INT || c->kind == RULE_FLOAT;
  if (c->kind != RULE_OP && c->kind != RULE_LIST) return c;
  const rule_term **child = iso_arena_alloc(&x->run, (c->n + 1) * sizeof *child);
  for (uint32_t k = 0; plc_need(x, child) && k < c->n; k++)
    child[k] = with_other(x, c->child[k], slot, at);
  if (plc_failed(x)) return NULL;
  return c->kind == RULE_LIST ? rule_list(&x->run, child, c->n)
                              : rule_op(&x->run, c->u.s, child, c->n);
}

/* Whether a rank's result has its shape with another integer there, too. */
static bool keeps_shape(plc *x, const plc_tuple *t, uint32_t slot) {
  uint32_t r = 0, at = 0;
  rule_tensor *out[64];
  size_t n = 0;
  iso_error err = {0};
  while (t->node[r] == PLC_NONE) r++;
  const cap_node *node = plc_node(x, t->node[r]);
  const rule_term *call = with_other(x, node->call, slot, &at);
  if (!call) return false;
  const iso_code c = x->oracle->call(x->oracle->ctx, call, x->value[0], true, out, 64, &n, &err);
  if (c == ISO_NOMEM || c == ISO_DEVICE) x->code = iso_fail(x->err, c, "%s", err.msg);
  if (c) return false;
  bool same = n == node->n_outputs;
  for (size_t i = 0; i < n; i++) {
    same = same && rule_shape_eq(&out[i]->shape, &node->output[i].shape);
    rule_tensor_unref(out[i]);
  }
  return same;
}

bool plc_has_sizes(plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->slots; i++) {
    const rule_arg_type type = type_of(x, t, i);
    if (type == RULE_ARG_INTS || (type == RULE_ARG_INT && !keeps_shape(x, t, i))) return true;
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
    plc_try_variant(x, t, v, axes, false, none, &fits);
  }
  plc_drop_wholes(t);
  return fits;
}

bool plc_lift_variants(plc *x, plc_tuple *t, uint32_t axes, bool scaled) {
  variants *all = malloc(sizeof *all);
  rule_shape *as_is = iso_arena_alloc(&x->run, t->n_out * sizeof *as_is);
  const plc_variant *natural = NULL;
  bool fits = false;
  if (!plc_need(x, all) || !plc_need(x, as_is)) {
    free(all);
    return false;
  }
  for (uint32_t k = 0; k < t->n_out; k++) as_is[k].rank = RULE_MAX_RANK + 1;
  list_variants(x, t->slots, axes, scaled, all);
  if (plc_tried(x, t) && t->n_args == 1 && t->slots <= MOST_LAID_OUT && is_moved(x, t))
    list_exchanged(x, t->slots, axes, all);
  all->at[0].bounds = x->bounds && plc_is_bounded(x, t);
  const plc_variant *reading[MOST_READINGS]; /* those that run */
  uint32_t skip = plc_tried(x, t), readings = 0;
  for (uint32_t i = 0; i < 2 * all->n && !fits && !plc_failed(x); i++) {
    const plc_variant *v = &all->at[i % all->n];
    const bool runs = plc_try_variant(x, t, v, axes, i >= all->n, as_is, &fits);
    if (runs && i < all->n && (v->n == 0 || v->by[0] > 0) && readings < MOST_READINGS)
      reading[readings++] = v;
    if (fits && skip) {
      skip--;
      fits = false;
      plc_drop_wholes(t);
    }
    t->chosen = v->n > 0 || i >= all->n;
    if (fits) t->variant = *v;
  }
  /* Behind those that fit, the guess is which of those that run. */
  if (readings) natural = reading[skip < readings ? skip : readings - 1];
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
