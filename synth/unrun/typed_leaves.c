/* Leaves of graphs that are not run. Parameters have a shape, a dtype and a name; inputs and
 * constants have values as well, because calls of these alone are compared by value. */
#include "synth/unrun/unrun.h"
#include "rules/names.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool leaf_konst(const state *s, int side, size_t i, const bool *live) {
  const synth_node *n = &s->graph[side]->node[i];
  if (n->kind == SYNTH_INPUT) return st_structured(s, side, i, live);
  return n->kind != SYNTH_PARAMETER && n->value[0] != NULL;
}

static iso_code add_leaf(state *s, int side, size_t i, bool konst, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  char name[32];
  snprintf(name, sizeof name, "$%c%zu", side == LEFT ? 'L' : 'R', i);
  const iso_code c = st_add_atom(s, name, &n->shape, &s->map[side][i], err);
  if (c) return c;
  rec *r = &s->rec[s->map[side][i].i];
  r->konst = konst;
  r->param = n->kind == SYNTH_PARAMETER;
  r->node[side] = (int32_t)i;
  r->dtype = n->dtype;
  return ISO_OK;
}

/* The results of st_join_replicas, st_take_given and the search for ranges, had they found nothing.
 */
static iso_code no_facts(state *s, int side, const bool *live, iso_error *err) {
  const size_t n = s->graph[side]->n_nodes;
  st_leaves *l = &s->leaves;
  l->replica[side] = malloc((n + 1) * sizeof *l->replica[side]);
  l->settled[side] = calloc(n + 1, 1);
  l->written[side] = calloc(n + 1, 1);
  l->kept[side] = calloc(n + 1, 1);
  l->unread[side] = calloc(n + 1, 1);
  if (!l->replica[side] || !l->settled[side] || !l->written[side] || !l->kept[side] ||
      !l->unread[side])
    return nomem(err);
  for (size_t i = 0; i < n; i++) {
    l->replica[side][i] = -1;
    l->unread[side][i] = !live[i];
    s->map[side][i] = (eg_node){EG_NONE};
  }
  return ISO_OK;
}

/* ---- inputs ---- */

static bool same_input(const state *s, const synth_node *a, const synth_node *b) {
  if (a->kind != SYNTH_INPUT || b->kind != SYNTH_INPUT) return false;
  for (size_t set = 0; set < s->n_sets; set++)
    if (!rule_tensor_same(a->value[set], b->value[set])) return false;
  return true;
}

static bool named(const synth_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_INPUT && strcmp(g->node[i].name, name) == 0) return true;
  return false;
}

/* The left input that a right one is: its namesake, else the only one of its values that has no
 * namesake. -1: none. */
static int64_t left_input(const state *s, size_t r) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  const bool by_name = named(L, R->node[r].name);
  int64_t found = -1;
  for (size_t l = 0; l < L->n_nodes; l++) {
    if (!same_input(s, &L->node[l], &R->node[r])) continue;
    if (by_name && strcmp(L->node[l].name, R->node[r].name) == 0) return (int64_t)l;
    if (by_name || named(R, L->node[l].name)) continue;
    if (found >= 0) return -1;
    found = (int64_t)l;
  }
  return found;
}

/* ---- one of each side ---- */

static iso_code join(state *s, size_t l, size_t r, const char *how, iso_error *err) {
  const eg_node a = s->map[LEFT][l], b = s->map[RIGHT][r];
  const char *text =
      iso_arena_printf(&s->arena, "right's %s is %s %s", s->graph[RIGHT]->node[r].name,
                       s->graph[LEFT]->node[l].name, how);
  if (!text || !st_assume(s, RULE_ASSUMES_LEAF, a, b, NULL, text)) return nomem(err);
  s->rec[a.i].atom = s->rec[b.i].atom = false;
  return st_merge(s, b, a, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
}

/* Whether `a` is `b` with a size 1 before the others, on every set. */
static bool batched(const state *s, const synth_node *a, const synth_node *b) {
  const uint32_t rank = b->shape.rank;
  if (a->kind != SYNTH_INPUT || b->kind != SYNTH_INPUT || a->dtype != b->dtype ||
      a->shape.rank != rank + 1 || a->shape.dim[0] != 1 ||
      memcmp(a->shape.dim + 1, b->shape.dim, rank * sizeof *b->shape.dim) != 0)
    return false;
  for (size_t set = 0; set < s->n_sets; set++)
    if (memcmp(a->value[set]->data, b->value[set]->data,
               (size_t)b->value[set]->numel * rule_dtype_size(b->dtype)) != 0)
      return false;
  return true;
}

/* Input `i` of `side` is unsqueeze(k of the other side, 0). */
static iso_code join_batched(state *s, int side, size_t i, size_t k, iso_error *err) {
  const rule_term *arg[2] = {rule_var(&s->arena, (uint32_t)k), rule_int(&s->arena, 0)};
  const rule_term *term = arg[0] && arg[1] ? rule_op(&s->arena, OP_UNSQUEEZE, arg, 2) : NULL;
  const char *text = iso_arena_printf(&s->arena, "%s's %s is unsqueeze(%s, 0) by captured values",
                                      side == LEFT ? "left" : "right", s->graph[side]->node[i].name,
                                      s->graph[!side]->node[k].name);
  const eg_node e = s->map[side][i], none = {EG_NONE};
  eg_node def;
  iso_code c = term && text ? st_add_term(s, term, s->map[!side], &def, err) : nomem(err);
  if (c) return c;
  if (!st_assume(s, RULE_ASSUMES_LEAF, side == LEFT ? e : none, side == RIGHT ? e : none, NULL,
                 text))
    return nomem(err);
  s->rec[e.i].atom = false;
  return st_merge(s, e, def, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
}

/* One sequence, and a batch of one. Only where one input fits. */
static iso_code join_batches(state *s, int side, iso_error *err) {
  const synth_graph *g = s->graph[side], *o = s->graph[!side];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    size_t n = 0, found = 0;
    for (size_t k = 0; k < o->n_nodes; k++)
      if (batched(s, &g->node[i], &o->node[k])) n++, found = k;
    if (n == 1 && s->rec[s->map[side][i].i].atom && s->rec[s->map[!side][found].i].atom)
      c = join_batched(s, side, i, found, err);
  }
  return c;
}

static iso_code join_inputs(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t r = 0; r < s->graph[RIGHT]->n_nodes && !c; r++) {
    const int64_t l = s->graph[RIGHT]->node[r].kind == SYNTH_INPUT ? left_input(s, r) : -1;
    if (l >= 0) c = join(s, (size_t)l, r, "by its captured values", err);
  }
  return c;
}

static int by_name(const void *a, const void *b) {
  const synth_node *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static bool alike(const synth_node *a, const synth_node *b) {
  return rule_shape_eq(&a->shape, &b->shape) && a->dtype == b->dtype;
}

/* Parameters of one name, shape and dtype, and of the same bytes where both have values. */
static iso_code join_namesakes(state *s, iso_error *err) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  const synth_node **of = calloc(L->n_nodes + 1, sizeof *of);
  size_t n = 0;
  iso_code c = of ? ISO_OK : nomem(err);
  for (size_t i = 0; i < L->n_nodes && !c; i++)
    if (L->node[i].kind == SYNTH_PARAMETER) of[n++] = &L->node[i];
  if (!c && n) qsort(of, n, sizeof *of, by_name);
  for (size_t r = 0; r < R->n_nodes && !c && n; r++) {
    const synth_node *key = &R->node[r], **at = key->kind == SYNTH_PARAMETER
                                                    ? bsearch(&key, of, n, sizeof *of, by_name)
                                                    : NULL;
    if (!at || !alike(*at, key) || !st_unjoined(s, LEFT, (size_t)(*at - L->node)) ||
        !st_unjoined(s, RIGHT, r))
      continue;
    const rule_tensor *x = (*at)->value[0], *y = key->value[0];
    const bool compared = x && y;
    if (compared && !st_same_bytes(s, x, y)) continue;
    c = join(s, (size_t)(*at - L->node), r, compared ? "byte for byte" : "by name, not compared",
             err);
    s->res->n_by_name += !compared;
  }
  free(of);
  return c;
}

/* ---- what has no values ---- */

/* Floating numbers are real numbers, as in a comparison that runs: their widths are one. */
static void set_type(state *s, eg_node e, rule_dtype dtype) {
  rec *r = &s->rec[e.i];
  r->typed = r->valued = true;
  r->dtype = rule_dtype_is_float(dtype)     ? RULE_F64
             : rule_dtype_is_complex(dtype) ? RULE_C128
                                            : dtype;
  r->n_out = 0;
}

static void type_leaves(state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const eg_node e = s->map[side][i];
      if (s->graph[side]->node[i].kind == SYNTH_OP || s->rec[e.i].konst) continue;
      set_type(s, e, s->graph[side]->node[i].dtype);
      s->rec[e.i].atom = false; /* it is not drawn */
    }
}

void st_type_operators(state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const eg_node e = s->map[side][i];
      if (e.i == EG_NONE || s->graph[side]->node[i].kind != SYNTH_OP) continue;
      const rec *r = &s->rec[e.i];
      if (r->tensor && !r->konst && !r->valued) set_type(s, e, s->graph[side]->node[i].dtype);
    }
}

iso_code st_type_leaves(state *s, const bool *const live[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    c = no_facts(s, side, live[side], err);
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      if (s->graph[side]->node[i].kind != SYNTH_OP)
        c = add_leaf(s, side, i, leaf_konst(s, side, i, live[side]), err);
  }
  if (!c) c = join_inputs(s, err);
  for (int side = 0; side < 2 && !c; side++) c = join_batches(s, side, err);
  if (!c) c = st_join_hinted(s, live, err);
  if (!c) c = join_namesakes(s, err);
  for (int side = RIGHT; side >= LEFT && !c; side--) c = st_join_stacked(s, side, live, err);
  if (!c) c = eg_rebuild(s->g, err);
  if (!c) c = st_free_tokens(s, live, err);
  if (!c) c = st_keep_positions(s, live, err);
  if (!c) type_leaves(s);
  return c;
}
