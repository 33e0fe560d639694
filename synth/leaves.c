/* Leaves and constants: what of one side is what of the other, by value, and fresh values that keep those relations.
 *
 * An atom is a leaf that no relation defines; all others are layout terms over atoms, so that one draw of the atoms
 * gives consistent values on both sides. */
#include "synth/synth_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* An integer input whose values have a visible structure (0, 1, 2, ..., or one value) is a position, a length or a
 * bound, and is kept; so is what is not numeric. */
static bool structured(const rule_tensor *t) {
  if (rule_dtype_is_float(t->dtype)) return t->numel == 0;
  if (!rule_dtype_is_int(t->dtype)) return true;
  /* One number has no structure to see, but for 0, where positions begin. */
  if (t->numel == 1) return rule_tensor_get_int(t, 0) == 0;
  bool steps = true, same = true, mask = true;
  for (int64_t i = 0; i < t->numel; i++) {
    const int64_t v = rule_tensor_get_int(t, i), d = i ? v - rule_tensor_get_int(t, i - 1) : 0;
    steps &= i == 0 || d == 1;
    same &= d == 0;
    mask &= v == 0 || v == 1;
  }
  return steps || same || mask;
}

static bool leaf_konst(const state *s, const synth_node *n) {
  (void)s;
  switch (n->kind) {
  case SYNTH_INPUT:
    return structured(n->value[0]);
  case SYNTH_PARAMETER:
    return !rule_dtype_is_float(n->value[0]->dtype);
  default:
    return true;
  }
}

static iso_code add_leaves(state *s, int side, iso_error *err) {
  const synth_graph *g = s->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    s->map[side][i] = (eg_node){EG_NONE};
    if (n->kind == SYNTH_OP) continue;
    char name[32];
    snprintf(name, sizeof name, "$%c%zu", side == LEFT ? 'L' : 'R', i);
    eg_symbol sym;
    iso_code c = eg_intern(s->g, name, strlen(name), &sym, err);
    if (!c) c = eg_add(s->g, sym, NULL, 0, &s->map[side][i], err);
    if (c) return c;
    const size_t id = s->map[side][i].i;
    if (!iso_grow(s->rec, s->cap_rec, id + 1)) return nomem(err);
    for (size_t k = s->n_rec; k <= id; k++) s->rec[k] = (rec){.node = {-1, -1}, .group = -1, .def = EG_NONE, .from = EG_NONE};
    if (s->n_rec <= id) s->n_rec = id + 1;
    rec *r = &s->rec[id];
    r->tensor = r->leaf = r->atom = true;
    r->konst = leaf_konst(s, n);
    r->param = n->kind == SYNTH_PARAMETER && !r->konst;
    r->node[side] = (int32_t)i;
    r->shape = n->shape;
  }
  return ISO_OK;
}

typedef struct relations {
  synth_relation *of; /* per node of the target side; term over nodes of the other */
} relations;

static bool float_parameter(const synth_node *n) { return n->kind == SYNTH_PARAMETER && rule_dtype_is_float(n->value[0]->dtype); }

/* Relate leaf `i` by `x`, the index of `source`; where one of these is forbidden for it, by an index without that one. */
static iso_code relate_leaf(state *s, int side, size_t i, const rule_tensor *value, synth_index *x, rule_tensor *const *source, const char *const *name,
                            synth_relation *out, iso_error *err) {
  const synth_graph *t = s->graph[side];
  const size_t n = s->graph[!side]->n_nodes;
  rule_tensor **allowed = NULL;
  synth_index *own = NULL;
  iso_code c = ISO_OK;
  for (size_t k = 0; k < n && s->o->n_given; k++) {
    if (!source[k] || !st_forbidden(s, side, i, k)) continue;
    if (!allowed) {
      if (!(allowed = malloc(n * sizeof *allowed))) return nomem(err);
      memcpy(allowed, source, n * sizeof *allowed);
    }
    allowed[k] = NULL;
  }
  if (allowed) c = synth_index_new(allowed, name, n, s->schemas, &own, err);
  if (own) synth_index_threads(own, s->o->threads);
  if (!c) c = synth_relate(own ? own : x, value, t->node[i].name, &s->arena, out, err);
  synth_index_free(own);
  free(allowed);
  return c;
}

/* Parameters that one side stores in another floating dtype: a cast is an identity, so they are related as the numbers that they hold. */
static iso_code relate_across_dtypes(state *s, int side, const char *const *name, synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  unsigned dtypes[2] = {0, 0};
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < s->graph[k]->n_nodes; i++)
      if (float_parameter(&s->graph[k]->node[i])) dtypes[k] |= 1u << s->graph[k]->node[i].value[0]->dtype;
  if (dtypes[LEFT] == dtypes[RIGHT]) return ISO_OK;
  rule_tensor **wide = calloc(src->n_nodes + 1, sizeof *wide);
  synth_index *x = NULL;
  iso_code c = wide ? ISO_OK : nomem(err);
  for (size_t i = 0; i < src->n_nodes && !c; i++)
    if (float_parameter(&src->node[i]) && s->replica[!side][i] < 0 && !s->settled[!side][i]) c = rule_tensor_to_float64(src->node[i].value[0], &wide[i], err);
  if (!c) c = synth_index_new(wide, name, src->n_nodes, s->schemas, &x, err);
  if (!c) synth_index_threads(x, s->o->threads);
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    rule_tensor *v;
    if (of[i].term || !float_parameter(&t->node[i]) || s->replica[side][i] >= 0 || s->settled[side][i]) continue;
    if ((c = rule_tensor_to_float64(t->node[i].value[0], &v, err))) break;
    c = relate_leaf(s, side, i, v, x, wide, name, &of[i], err);
    rule_tensor_unref(v);
  }
  synth_index_free(x);
  for (size_t i = 0; wide && i < src->n_nodes; i++) rule_tensor_unref(wide[i]);
  free(wide);
  return c;
}

/* Whether something that counts tells 0 from -0 in leaf `i`. */
static iso_code zero_sign_matters(const state *s, int side, size_t i, const bool *live, bool *matters, iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *carries = calloc(g->n_nodes + 1, 1);
  if (!carries) return nomem(err);
  carries[i] = true;
  *matters = false;
  for (size_t j = i + 1; j < g->n_nodes && !*matters; j++)
    if (g->node[j].kind == SYNTH_OP && live[j]) *matters = rule_zero_sign_matters(g->node[j].call, carries, j);
  free(carries);
  return ISO_OK;
}

/* Leaves that are equal but for signs of zeros, where nothing looks at these. */
static iso_code relate_zeros(state *s, int side, const bool *const live[2], synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    const synth_node *n = &t->node[i];
    if (n->kind == SYNTH_OP || of[i].term || !live[side][i] || s->replica[side][i] >= 0 || s->settled[side][i]) continue;
    size_t found = src->n_nodes;
    for (size_t k = 0; k < src->n_nodes; k++) {
      const synth_node *m = &src->node[k];
      if (m->kind == SYNTH_OP || (m->kind == SYNTH_INPUT) != (n->kind == SYNTH_INPUT) || s->replica[!side][k] >= 0 || s->settled[!side][k] ||
          st_forbidden(s, side, i, k) || !rule_tensor_same_numbers(n->value[0], m->value[0]))
        continue;
      if (found == src->n_nodes || strcmp(n->name, m->name) == 0) found = k;
    }
    bool matters[2] = {false, false};
    if (found == src->n_nodes) continue;
    c = zero_sign_matters(s, side, i, live[side], &matters[0], err);
    if (!c) c = zero_sign_matters(s, !side, found, live[!side], &matters[1], err);
    if (!c && !matters[0] && !matters[1] && !(of[i].term = rule_var(&s->arena, (uint32_t)found))) c = nomem(err);
  }
  return c;
}

/* Express every leaf of `side` by leaves of the other: inputs by inputs, all else by all else. */
static iso_code relate_side(state *s, int side, synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  rule_tensor **value = calloc(src->n_nodes + 1, sizeof *value);
  const char **name = calloc(src->n_nodes + 1, sizeof *name);
  iso_code c = value && name ? ISO_OK : nomem(err);
  for (int inputs = 0; inputs < 2 && !c; inputs++) {
    for (size_t i = 0; i < src->n_nodes; i++) {
      const synth_node *n = &src->node[i];
      value[i] = n->kind != SYNTH_OP && (n->kind == SYNTH_INPUT) == inputs && s->replica[!side][i] < 0 && !s->settled[!side][i] ? n->value[0] : NULL;
      name[i] = n->name;
    }
    synth_index *x = NULL;
    c = synth_index_new(value, name, src->n_nodes, s->schemas, &x, err);
    if (!c) synth_index_threads(x, s->o->threads);
    for (size_t i = 0; i < t->n_nodes && !c; i++) {
      const synth_node *n = &t->node[i];
      if (n->kind == SYNTH_OP || (n->kind == SYNTH_INPUT) != inputs || s->replica[side][i] >= 0 || s->settled[side][i]) continue;
      c = relate_leaf(s, side, i, n->value[0], x, value, name, &of[i], err);
    }
    synth_index_free(x);
  }
  for (size_t i = 0; i < src->n_nodes && !c; i++) name[i] = src->node[i].name;
  if (!c) c = relate_across_dtypes(s, side, name, of, err);
  free(value);
  free(name);
  return c;
}

/* Some leaf of the term is related to nothing itself. */
static bool any_unrelated(const rule_term *t, const synth_relation *of) {
  if (t->kind == RULE_VAR) return !of[t->u.i].term;
  for (uint32_t i = 0; i < t->n; i++)
    if (any_unrelated(t->child[i], of)) return true;
  return false;
}

static const char *relation_text(state *s, const rule_term *t, int source_side) {
  const synth_graph *g = s->graph[source_side];
  const char **names = calloc(g->n_nodes + 1, sizeof *names);
  if (!names) return NULL;
  for (size_t i = 0; i < g->n_nodes; i++) names[i] = g->node[i].name ? g->node[i].name : g->node[i].id;
  char *text = rule_term_print(t, s->schemas, names);
  const char *kept = text ? iso_arena_strdup(&s->arena, text) : NULL;
  free(text);
  free(names);
  return kept;
}

/* State leaf i of `side` = term over the other side's leaves. */
static iso_code define(state *s, int side, size_t i, const synth_relation *rel, iso_error *err) {
  const eg_node leaf = s->map[side][i];
  eg_node def;
  iso_code c = st_add_term(s, rel->term, s->map[!side], &def, err);
  if (c) return c;
  if (rel->term->kind != RULE_VAR) s->rec[leaf.i].atom = false;
  const synth_node *n = &s->graph[side]->node[i];
  char text[512];
  const char *rtext = relation_text(s, rel->term, !side);
  snprintf(text, sizeof text, "%s's %s is %s by value%s", side == LEFT ? "left" : "right", n->name, rtext ? rtext : "?",
           rel->tied ? "; other leaves have the same values, names decided" : side == LEFT && s->settled[LEFT][i] ? ", as was given" : "");
  const eg_node none = {EG_NONE};
  eg_node l = side == LEFT ? leaf : none, r = side == RIGHT ? leaf : none;
  if (rel->term->kind == RULE_VAR) {
    if (side == RIGHT) l = def;
    else r = def;
  }
  if (!st_assume(s, "leaf", l, r, rtext, text)) return nomem(err);
  return st_merge(s, leaf, def, WHY_LEAF, (uint32_t)(s->n_assume - 1), err);
}

/* What orients the relations: a leaf that others are written in may not be defined itself. By node of each side. */
typedef struct orientation {
  synth_relation *of[2];
  bool *used[2], *defined[2];
  bool *equal[2]; /* defined as what another leaf is: of one class with it, so that terms may use either */
} orientation;

static iso_code define_by(state *s, orientation *o, int side, size_t i, iso_error *err) {
  iso_code c = define(s, side, i, &o->of[side][i], err);
  o->defined[side][i] = true;
  st_term_mark(o->of[side][i].term, o->used[!side]);
  return c;
}

/* What was given goes first, and is not changed by the rest. */
static iso_code define_given(state *s, orientation *o, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k < s->o->n_given && !c; k++) {
    const synth_given *g = &s->o->given[k];
    if (g->forbid || !g->term) continue;
    o->of[LEFT][g->left].term = g->term;
    c = define_by(s, o, LEFT, g->left, err);
    o->used[LEFT][g->left] = true;
  }
  return c;
}

/* Equal leaves need no orientation: those of the right first, then what else of the left equals one of the right. */
static iso_code define_equal(state *s, orientation *o, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = RIGHT; side >= LEFT; side--)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const rule_term *t = o->of[side][i].term;
      if (!t || t->kind != RULE_VAR || o->used[side][i]) continue;
      c = define(s, side, i, &o->of[side][i], err);
      o->used[side][i] = o->defined[side][i] = o->equal[side][i] = true;
      if (side == RIGHT) o->used[LEFT][t->u.i] = true;
    }
  return c;
}

/* The same elements in another layout: the one of higher rank is written in terms of the other, so that rules read
 * f(unsqueeze(x)) and not f(squeeze(x)). A higher-rank leaf on the left may be defined only if nothing uses it. */
static iso_code define_layouts(state *s, orientation *o, iso_error *err) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  bool *vars = calloc(R->n_nodes + 1, 1);
  iso_code c = vars ? ISO_OK : nomem(err);
  for (size_t i = 0; i < L->n_nodes && !c; i++) {
    const rule_term *t = o->of[LEFT][i].term;
    if (!t || o->used[LEFT][i] || t->kind == RULE_VAR) continue;
    memset(vars, 0, R->n_nodes);
    st_term_mark(t, vars);
    size_t n_vars = 0, v = 0;
    for (size_t j = 0; j < R->n_nodes; j++)
      if (vars[j]) n_vars++, v = j;
    if (n_vars != 1 || R->node[v].value[0]->numel != L->node[i].value[0]->numel || o->defined[RIGHT][v] ||
        L->node[i].shape.rank <= R->node[v].shape.rank)
      continue;
    c = define_by(s, o, LEFT, i, err);
    o->used[LEFT][i] = true;
  }
  free(vars);
  return c;
}

/* A shard with padding is no layout of anything, but the whole is one of the shards: then the whole is defined. So are
 * shards that repeat one another's elements. */
static iso_code define_wholes(state *s, orientation *o, iso_error *err) {
  bool *repeating = st_repeating(s, o->of);
  iso_code c = repeating ? ISO_OK : nomem(err);
  for (size_t i = 0; i < s->graph[LEFT]->n_nodes && !c; i++) {
    const rule_term *t = o->of[LEFT][i].term;
    if (!t || o->used[LEFT][i] || st_term_uses(t, o->defined[RIGHT]) || !(any_unrelated(t, o->of[RIGHT]) || repeating[i])) continue;
    c = define_by(s, o, LEFT, i, err);
    o->used[LEFT][i] = true;
  }
  free(repeating);
  return c;
}

/* Some leaf of the term is made of others. */
static bool uses_made(const orientation *o, int side, const rule_term *t) {
  if (t->kind == RULE_VAR) return o->defined[side][t->u.i] && !o->equal[side][t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (uses_made(o, side, t->child[i])) return true;
  return false;
}

/* All else: by leaves that are not made of others, the right's first. */
static iso_code define_rest(state *s, orientation *o, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = RIGHT; side >= LEFT; side--)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const rule_term *t = o->of[side][i].term;
      if (t && !o->used[side][i] && !o->defined[side][i] && !uses_made(o, !side, t)) c = define_by(s, o, side, i, err);
    }
  return c;
}

/* What equals a parameter of the other side is drawn as that is, even where it is a buffer here. */
static void free_buffers(state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const eg_node e = s->map[side][i], *m;
      if (s->graph[side]->node[i].kind != SYNTH_PARAMETER || s->rec[e.i].konst) continue;
      const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
      for (size_t k = 0; k < n; k++) s->rec[m[k].i].konst = false;
    }
}

iso_code st_relate_leaves(state *s, const bool *const live[2], iso_error *err) {
  orientation o = {0};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) c = add_leaves(s, side, err);
  if (!c) c = st_join_replicas(s, err);
  if (!c) c = st_take_given(s, err);
  for (int side = 0; side < 2 && !c; side++) {
    const size_t n = s->graph[side]->n_nodes + 1;
    o.of[side] = calloc(n, sizeof *o.of[side]);
    o.used[side] = calloc(n, 1);
    o.defined[side] = calloc(n, 1);
    o.equal[side] = calloc(n, 1);
    if (!o.of[side] || !o.used[side] || !o.defined[side] || !o.equal[side]) c = nomem(err);
  }
  for (int side = 0; side < 2 && !c; side++) c = relate_side(s, side, o.of[side], err);
  for (int side = 0; side < 2 && !c; side++) c = relate_zeros(s, side, live, o.of[side], err);
  for (int side = 0; side < 2 && !c; side++) c = st_drop_coincidences(s, side, o.of[side], err);
  if (!c) c = define_given(s, &o, err);
  if (!c) c = define_equal(s, &o, err);
  if (!c) c = define_layouts(s, &o, err);
  if (!c) c = define_wholes(s, &o, err);
  if (!c) c = define_rest(s, &o, err);
  if (!c) c = st_free_tokens(s, live, err);
  if (!c) c = st_keep_positions(s, live, err);
  if (!c) free_buffers(s);
  for (int side = 0; side < 2; side++) {
    free(o.of[side]);
    free(o.used[side]);
    free(o.defined[side]);
    free(o.equal[side]);
  }
  return c;
}

/* ---- drawing ---- */

/* Every element of the result is an element of the first argument. */
static bool moves_elements(const char *op) {
  static const char *const ops[] = {"aten::to.", "aten::_to_copy", "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::flatten", "aten::unsqueeze",
                                    "aten::squeeze", "aten::slice", "aten::select.", "aten::expand", "aten::transpose.", "aten::permute", "aten::alias",
                                    "aten::detach", "aten::clone", "aten::contiguous", "aten::lift_fresh", "aten::t"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    const size_t n = strlen(ops[i]);
    if (strncmp(op, ops[i], n) == 0 && (op[n] == 0 || ops[i][n - 1] == '.' || op[n] == '.' || op[n] == '_')) return true;
  }
  return false;
}

/* The rows of a table less those at the end that are zero: padding of a vocabulary to a size that divides well. */
static int64_t used_rows(const synth_node *table, int64_t dim) {
  const int64_t rows = table->shape.dim[dim];
  if (table->kind == SYNTH_OP || dim != 0 || table->shape.rank < 2 || rows < 1) return rows;
  const rule_tensor *t = table->value[0];
  int64_t last = t->numel;
  while (last > 0 && rule_tensor_get(t, last - 1) == 0) last--;
  return last == 0 ? rows : (last - 1) / (t->numel / rows) + 1;
}

static bool all_below(const synth_graph *g, size_t i, int64_t limit) {
  for (size_t set = 0; set < g->n_sets; set++)
    for (int64_t k = 0; k < g->node[i].value[set]->numel; k++)
      if (rule_tensor_get_int(g->node[i].value[set], k) >= limit) return false;
  return true;
}

/* What a call that reads rows of a table is given: the table, the dimension along which it is read, and the tensor of indices. Returns:
 * false where it is none, or reads by more than one tensor. */
static bool reads_rows(const rule_term *t, const rule_term **table, int64_t *dim, const rule_term **index) {
  const bool rows = strcmp(t->u.s, "aten::embedding") == 0, select = strcmp(t->u.s, "aten::index_select") == 0;
  *dim = 0;
  *table = t->n ? t->child[0] : NULL;
  if (rows || select) {
    *index = t->child[rows ? 1 : 2];
    if (select) *dim = t->child[1]->u.i;
  } else {
    if (strcmp(t->u.s, "aten::index.Tensor") != 0 || t->n < 2 || t->child[1]->kind != RULE_LIST) return false;
    const rule_term *list = t->child[1];
    while (*dim < list->n && list->child[*dim]->kind == RULE_NONE) ++*dim;
    if (*dim + 1 != list->n) return false;
    *index = list->child[*dim];
  }
  return (*table)->kind == RULE_VAR && (*index)->kind == RULE_VAR;
}

/* The rows of the smallest table that node `i` of `side` indexes, as it is: behind arithmetic and masks (shards of a
 * vocabulary) the table's rows say nothing. Padding rows do not count where the captured values do without them.
 * In `all`: with them. `live`: the operators that count, where they are not in the e-graph yet; else NULL. `wraps` is set where an operator reads that would count a negative index from the end. */
int64_t st_index_rows(const state *s, int side, size_t i, const bool *live, int64_t *all, bool *wraps) {
  const synth_graph *g = s->graph[side];
  bool *flow = calloc(g->n_nodes + 1, 1);
  int64_t limit = INT64_MAX;
  *all = INT64_MAX;
  if (!flow) return limit;
  flow[i] = true;
  for (size_t j = i + 1; j < g->n_nodes; j++) {
    const synth_node *n = &g->node[j];
    if (n->kind != SYNTH_OP || !(live ? live[j] : s->map[side][j].i != EG_NONE)) continue;
    const rule_term *t = n->call, *table, *index;
    int64_t dim;
    if (reads_rows(t, &table, &dim, &index) && flow[index->u.i]) {
      const rule_shape *sh = &g->node[table->u.i].shape;
      if (dim < 0 || dim >= (int64_t)sh->rank) continue;
      const int64_t used = used_rows(&g->node[table->u.i], dim);
      if (sh->dim[dim] < *all) *all = sh->dim[dim];
      if (used < limit) limit = used;
      if (wraps && strcmp(t->u.s, "aten::index.Tensor") == 0) *wraps = true;
      continue;
    }
    if (rule_dtype_is_int(n->dtype) && n->n_outputs == 1 && t->n && moves_elements(t->u.s) && st_term_uses(t->child[0], flow)) flow[j] = true;
  }
  free(flow);
  return limit != INT64_MAX && all_below(g, i, limit) ? limit : *all;
}

/* Inputs defined by others are layouts of them: one limit for all value-carrying integer inputs is safe. In `matters`: whether a rule may
 * hold within it only, as there is padding or what is negative is read from the end. */
int64_t st_index_limit(const state *s, bool *matters) {
  bool wraps = false;
  int64_t limit = INT64_MAX, least = INT64_MAX;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_INPUT || !rule_dtype_is_int(n->value[0]->dtype) || s->rec[s->map[side][i].i].konst) continue;
      int64_t all;
      const int64_t l = st_index_rows(s, side, i, NULL, &all, &wraps);
      if (l < limit) limit = l;
      if (all < least) least = all;
    }
  if (matters) *matters = limit < least || wraps;
  return limit;
}

static iso_code values_of(state *s, eg_node e, eg_node from, iso_error *err);

/* Ids that one side looks up in a smaller table than the other lie within the smaller one. */
static iso_code note_smaller_tables(state *s, iso_error *err) {
  const synth_graph *g[2] = {s->graph[LEFT], s->graph[RIGHT]};
  for (size_t l = 0; l < g[LEFT]->n_nodes; l++)
    for (size_t r = 0; r < g[RIGHT]->n_nodes; r++) {
      const eg_node e[2] = {s->map[LEFT][l], s->map[RIGHT][r]};
      if (g[LEFT]->node[l].kind != SYNTH_INPUT || g[RIGHT]->node[r].kind != SYNTH_INPUT || !rule_dtype_is_int(g[LEFT]->node[l].dtype) ||
          s->rec[e[LEFT].i].konst || !eg_equal(s->g, e[LEFT], e[RIGHT]))
        continue;
      int64_t rows[2];
      st_index_rows(s, LEFT, l, NULL, &rows[LEFT], NULL);
      st_index_rows(s, RIGHT, r, NULL, &rows[RIGHT], NULL);
      const int64_t least = rows[LEFT] < rows[RIGHT] ? rows[LEFT] : rows[RIGHT];
      if (rows[LEFT] == rows[RIGHT] || rows[LEFT] == INT64_MAX || rows[RIGHT] == INT64_MAX) continue;
      const char *text = iso_arena_printf(&s->arena, "%s lies below %lld, the rows of the smaller table that it indexes", g[LEFT]->node[l].name, (long long)least);
      if (!text || !st_assume(s, "input", e[LEFT], e[RIGHT], NULL, text)) return nomem(err);
    }
  return ISO_OK;
}

/* Token ids lie below the padding of every table: the input as a term that cannot leave that range, for rules that hold
 * there only (one side reads a padding row where another's masks give zero, or the last row for -1). */
iso_code st_bound_indices(state *s, iso_error *err) {
  bool matters;
  const int64_t limit = st_index_limit(s, &matters);
  const eg_node none = {EG_NONE};
  eg_node done = none;
  const iso_code noted = note_smaller_tables(s, err);
  if (noted) return noted;
  for (int side = 0; side < 2 && matters; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      const eg_node e = s->map[side][i];
      int64_t all;
      if (n->kind != SYNTH_INPUT || !rule_dtype_is_int(n->value[0]->dtype) || s->rec[e.i].konst || (done.i != EG_NONE && eg_equal(s->g, done, e)) ||
          st_index_rows(s, side, i, NULL, &all, NULL) == INT64_MAX)
        continue;
      eg_symbol sym;
      eg_node raw, def;
      iso_code c = eg_intern(s->g, "$tokens", strlen("$tokens"), &sym, err);
      if (!c) c = eg_add(s->g, sym, NULL, 0, &raw, err);
      if (c) return c;
      if (done.i != EG_NONE) return ISO_OK; /* two independent inputs of ids: the first alone is given a range */
      done = e;
      s->bounded.leaf = e, s->bounded.raw = raw;
      if (!iso_grow(s->rec, s->cap_rec, (size_t)raw.i + 1)) return nomem(err);
      for (size_t k = s->n_rec; k <= raw.i; k++) s->rec[k] = (rec){.node = {-1, -1}, .group = -1, .def = EG_NONE, .from = EG_NONE};
      if (s->n_rec <= raw.i) s->n_rec = (size_t)raw.i + 1;
      rec *r = &s->rec[raw.i];
      r->tensor = r->leaf = r->atom = true;
      r->shape = n->shape;
      if ((c = values_of(s, raw, e, err))) return c;
      const rule_term *arg[3] = {rule_var(&s->arena, 0), rule_int(&s->arena, 0), rule_int(&s->arena, limit - 1)}, *term;
      if (!arg[0] || !arg[1] || !arg[2] || rule_call(&s->arena, s->schemas, "aten::clamp", arg, 3, &term, err)) return nomem(err);
      if ((c = st_add_term(s, term, &raw, &def, err)) || (c = st_value(s, def, err))) return c;
      const char *text = iso_arena_printf(&s->arena, "%s's %s lies from 0 to %lld: no row of padding is meant, and no index counts from the end",
                                          side == LEFT ? "left" : "right", n->name, (long long)limit - 1);
      if (!text || !st_assume(s, "input", side == LEFT ? e : none, side == RIGHT ? e : none, NULL, text)) return nomem(err);
      if ((c = st_merge(s, e, def, WHY_LEAF, (uint32_t)(s->n_assume - 1), err))) return c;
    }
  return ISO_OK;
}

static iso_code set_values(state *s, eg_node e, rule_tensor **val, iso_error *err) {
  rec *r = &s->rec[e.i];
  r->val = calloc(s->n_draws, sizeof *r->val);
  if (!r->val) return nomem(err);
  r->n_out = 1;
  for (size_t d = 0; d < s->n_draws; d++) r->val[d] = rule_tensor_ref(val[d]);
  r->valued = true;
  return ISO_OK;
}

/* The same values as `from`, kept. */
static iso_code values_of(state *s, eg_node e, eg_node from, iso_error *err) {
  rule_tensor **val = calloc(s->n_draws + 1, sizeof *val);
  iso_code c = val ? ISO_OK : nomem(err);
  for (size_t d = 0; d < s->n_draws && !c; d++)
    if (!(val[d] = st_val(s, from, d))) c = st_lost(s, err);
  if (!c) c = set_values(s, e, val, err);
  free(val);
  return c;
}

/* Large parameters take values when they are asked for. `rep`: what they are equal to, if anything. */
static iso_code draw_later(state *s, eg_node e, eg_node rep, size_t ordinal, iso_error *err) {
  rec *r = &s->rec[e.i];
  r->n_out = 1;
  r->valued = true;
  if (rep.i != EG_NONE) r->from = st_home(s, rep).i;
  else {
    r->ordinal = ordinal;
    if (!(r->val = calloc(s->n_draws, sizeof *r->val))) return nomem(err);
  }
  return ISO_OK;
}

/* So do the terms that define them: what comes out has the leaf's shape. */
static iso_code define_later(state *s, eg_node def, const rule_shape *shape, iso_error *err) {
  rec *r = &s->rec[def.i];
  r->n_out = 1;
  r->valued = true;
  r->shape = *shape;
  return (r->val = calloc(s->n_draws, sizeof *r->val)) ? ISO_OK : nomem(err);
}

static bool class_on_side(const state *s, eg_class c, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return true;
  return false;
}

/* Whether a leaf of `side` has the class, or is defined by a layout of it: cat(slice(c), ...) = a leaf there. */
static bool ties_to(const state *s, eg_class c, int side, int depth) {
  if (class_on_side(s, c, side)) return true;
  const eg_node *p;
  const size_t n = depth > 0 ? eg_class_parents(s->g, c, &p) : 0;
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[p[i].i];
    if (r->node[LEFT] < 0 && r->node[RIGHT] < 0 && ties_to(s, eg_class_of(s->g, p[i]), side, depth - 1)) return true;
  }
  return false;
}

bool st_generic(const rule_tensor *t) {
  enum { LOOKED_AT = 4096, ENOUGH = 64 };
  double seen[ENOUGH];
  const int64_t step = t->numel / LOOKED_AT + 1;
  int64_t count = 0, distinct = 0;
  for (int64_t i = 0; i < t->numel && distinct < ENOUGH; i += step, count++) {
    const double x = rule_tensor_get(t, i);
    int64_t k = distinct;
    while (k > 0 && seen[k - 1] != x) k--;
    if (k == 0) seen[distinct++] = x;
  }
  return distinct > 1 && (distinct == ENOUGH || 2 * distinct >= count);
}

/* What has few numbers, or one everywhere, tells little at its captured value: such a leaf is drawn all the same. Where both sides
 * have such parameters, those of one may have been computed from the other's when they were loaded (-exp(A_log), a norm's
 * weight + 1, an adapter merged into its weight), and are off by their storage's rounding. */
static void mark_lonely(state *s) {
  enum { DEPTH = 8 }; /* of the layout terms that relate leaves */
  bool lonely[2] = {false, false};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const eg_node e = s->map[side][i];
      if (s->keep_integers && s->graph[side]->node[i].kind == SYNTH_INPUT &&
          !rule_dtype_is_float(s->graph[side]->node[i].value[0]->dtype))
        s->rec[e.i].lonely = true;
      if (s->graph[side]->node[i].kind != SYNTH_PARAMETER || !s->rec[e.i].atom || !st_generic(s->graph[side]->node[i].value[0])) continue;
      s->rec[e.i].lonely = !ties_to(s, eg_class_of(s->g, e), !side, DEPTH);
      lonely[side] |= s->rec[e.i].lonely;
    }
  s->lonely_both = lonely[LEFT] && lonely[RIGHT];
}

/* A leaf takes the values of its class where there are some, else of its definition, else its own. */
static iso_code draw_leaf(state *s, int side, size_t i, size_t ordinal, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  rec *r = &s->rec[e.i];
  iso_code c = ISO_OK;
  if (r->valued) return ISO_OK;
  eg_node rep = st_rep(s, eg_class_of(s->g, e));
  if (rep.i == EG_NONE && !r->atom) {
    const eg_node *m;
    const size_t cnt = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
    for (size_t k = 0; k < cnt && rep.i == EG_NONE; k++)
      if (!s->rec[m[k].i].leaf) rep = m[k];
    ISO_CHECK(rep.i != EG_NONE);
    if (r->konst) s->rec[rep.i].konst = true;
    if (r->param && s->rec[rep.i].param && !r->konst && st_large(&n->shape)) c = define_later(s, rep, &n->shape, err);
    else c = st_value(s, rep, err);
    if (c) return c;
    r = &s->rec[e.i];
  }
  if (r->param && st_large(&n->shape) && (rep.i == EG_NONE || st_spare(s, rep))) return draw_later(s, e, rep, ordinal, err);
  if (r->konst) {
    r->cval = calloc(s->n_kept, sizeof *r->cval);
    if (!r->cval) return nomem(err);
    for (size_t set = 0; set < s->n_kept; set++) r->cval[set] = rule_tensor_ref(n->value[n->kind == SYNTH_INPUT ? set : 0]);
  }
  if (rep.i != EG_NONE) return values_of(s, e, rep, err);
  rule_tensor **val = calloc(s->n_draws, sizeof *val);
  if (!val) return nomem(err);
  st_spread of = {0};
  for (size_t d = 0; d < s->n_draws && !c; d++) {
    if (d < s->n_sets) {
      c = rule_tensor_to_float64(n->value[n->kind == SYNTH_INPUT ? d : 0], &val[d], err);
      if (!c && r->konst) c = st_read_mask(s, n->dtype, &val[d], err);
    }
    else if (r->konst || r->lonely) val[d] = rule_tensor_ref(val[0]);
    else c = st_redraw(s, n, ordinal, d - s->n_sets, &of, &val[d], err);
  }
  if (!c) c = set_values(s, e, val, err);
  for (size_t d = 0; d < s->n_draws; d++) rule_tensor_unref(val[d]);
  free(val);
  return c;
}

/* A kept input that is another one in another set (positions further on): constants are what they are on every set. */
static bool kept_inputs_vary(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_INPUT || !s->rec[s->map[side][i].i].konst) continue;
      for (size_t set = 1; set < s->n_sets; set++)
        if (!rule_tensor_same(n->value[0], n->value[set])) return true;
    }
  return false;
}

iso_code st_draw_leaves(state *s, iso_error *err) {
  size_t ordinal = 0;
  mark_lonely(s);
  s->n_kept = kept_inputs_vary(s) ? s->n_sets : 1;
  /* Atoms first: definitions read them. */
  for (int atoms = 1; atoms >= 0; atoms--)
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
        if (s->graph[side]->node[i].kind == SYNTH_OP) continue;
        if (s->rec[s->map[side][i].i].atom != (atoms == 1)) continue;
        iso_code c = draw_leaf(s, side, i, ordinal++, err);
        if (c) return iso_prefix(err, "%s: leaf \"%s\": ", s->graph[side]->path, s->graph[side]->node[i].id);
      }
  return ISO_OK;
}
