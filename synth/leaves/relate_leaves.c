/* Leaves and constants: relations of one side's to the other's, by value, and fresh values that
 * keep those relations.
 *
 * An atom is a leaf that no relation defines; all others are layout terms over atoms, so that one
 * draw of the atoms gives consistent values on both sides. */
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool leaf_konst(const state *s, int side, size_t i, const bool *live) {
  const synth_node *n = &s->graph[side]->node[i];
  switch (n->kind) {
  case SYNTH_INPUT: return st_structured(s, side, i, live);
  case SYNTH_PARAMETER: return !rule_dtype_is_inexact(n->value[0]->dtype);
  default: return true;
  }
}

static iso_code add_leaves(state *s, int side, const bool *live, iso_error *err) {
  const synth_graph *g = s->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    s->map[side][i] = (eg_node){EG_NONE};
    if (n->kind == SYNTH_OP) continue;
    char name[32];
    snprintf(name, sizeof name, "$%c%zu", side == LEFT ? 'L' : 'R', i);
    const iso_code c = st_add_atom(s, name, &n->shape, &s->map[side][i], err);
    if (c) return c;
    rec *r = &s->rec[s->map[side][i].i];
    r->konst = leaf_konst(s, side, i, live);
    r->param = n->kind == SYNTH_PARAMETER && !r->konst;
    r->node[side] = (int32_t)i;
  }
  return ISO_OK;
}

/* The leaves that no output needs. Requires: replicas are joined. */
static iso_code find_unread(state *s, int side, const bool *live, iso_error *err) {
  const size_t n = s->graph[side]->n_nodes;
  bool *unread = s->leaves.unread[side] = calloc(n + 1, 1);
  if (!unread) return nomem(err);
  for (size_t i = 0; i < n; i++) unread[i] = !live[i];
  for (size_t i = 0; i < n; i++)
    if (live[i] && s->leaves.replica[side][i] >= 0) unread[s->leaves.replica[side][i]] = false;
  return ISO_OK;
}

/* Leaves that are related by their values. A constant that nothing reads is not: none needs it to
 * keep its value, and one that is read would seem to be the other side's. */
static bool relatable(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  return n->kind != SYNTH_OP && s->leaves.replica[side][i] < 0 && !s->leaves.settled[side][i] &&
         !(s->leaves.unread[side][i] && n->kind != SYNTH_INPUT && s->rec[s->map[side][i].i].konst);
}

static bool float_parameter(const synth_node *n) {
  return n->kind == SYNTH_PARAMETER && rule_dtype_is_float(n->value[0]->dtype);
}

typedef struct sources { /* tensors of the other side, by node */
  synth_index *x;
  rule_tensor *const *source;
  const char *const *name;
} sources;

/* Relate leaf `i` by the index; where one of its sources is forbidden for it, by an index without
 * that one. */
static iso_code relate_leaf(state *s, int side, size_t i, const rule_tensor *value,
                            const sources *from, synth_relation *out, iso_error *err) {
  rule_tensor *const *source = from->source;
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
  if (allowed) c = synth_index_new(allowed, from->name, n, s->schemas, &own, err);
  if (own) synth_index_threads(own, s->o->threads);
  if (!c) c = synth_relate(own ? own : from->x, value, t->node[i].name, &s->arena, out, err);
  synth_index_free(own);
  free(allowed);
  return c;
}

/* Parameters that one side stores in another floating dtype: a cast is an identity, so they are
 * related as the numbers that they hold. */
static iso_code relate_across_dtypes(state *s, int side, const char *const *name,
                                     synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  unsigned dtypes[2] = {0, 0};
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < s->graph[k]->n_nodes; i++)
      if (float_parameter(&s->graph[k]->node[i]))
        dtypes[k] |= 1u << s->graph[k]->node[i].value[0]->dtype;
  if (dtypes[LEFT] == dtypes[RIGHT]) return ISO_OK;
  rule_tensor **wide = calloc(src->n_nodes + 1, sizeof *wide);
  synth_index *x = NULL;
  iso_code c = wide ? ISO_OK : nomem(err);
  for (size_t i = 0; i < src->n_nodes && !c; i++)
    if (float_parameter(&src->node[i]) && relatable(s, !side, i))
      c = rule_tensor_to_float64(src->node[i].value[0], &wide[i], err);
  if (!c) c = synth_index_new(wide, name, src->n_nodes, s->schemas, &x, err);
  if (!c) synth_index_threads(x, s->o->threads);
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    rule_tensor *v;
    if (of[i].term || !float_parameter(&t->node[i]) || !relatable(s, side, i)) continue;
    if ((c = rule_tensor_to_float64(t->node[i].value[0], &v, err))) break;
    c = relate_leaf(s, side, i, v, &(sources){x, wide, name}, &of[i], err);
    rule_tensor_unref(v);
  }
  synth_index_free(x);
  for (size_t i = 0; wide && i < src->n_nodes; i++) rule_tensor_unref(wide[i]);
  free(wide);
  return c;
}

/* Whether something that counts tells 0 from -0 in leaf `i`. */
static iso_code zero_sign_matters(const state *s, int side, size_t i, const bool *live,
                                  bool *matters, iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *carries = calloc(g->n_nodes + 1, 1), *fixed = calloc(g->n_nodes + 1, 1);
  const iso_code c = carries && fixed ? ISO_OK : nomem(err);
  *matters = false;
  for (size_t j = 0; j < g->n_nodes && !*matters && !c; j++) {
    carries[j] = j == i;
    fixed[j] = g->node[j].kind != SYNTH_INPUT; /* parameters may be */
    if (g->node[j].kind == SYNTH_OP && live[j])
      *matters = rule_zero_sign_matters(g->node[j].call, fixed, carries, j);
  }
  free(fixed);
  free(carries);
  return c;
}

/* On every set. */
static bool same_numbers(const state *s, const synth_node *n, const synth_node *m) {
  const size_t sets = n->kind == SYNTH_INPUT ? s->n_sets : 1;
  for (size_t set = 0; set < sets; set++)
    if (!rule_tensor_same_numbers(n->value[set], m->value[set])) return false;
  return true;
}

/* Leaves that are equal but for signs of zeros, where nothing looks at these. */
static iso_code relate_zeros(state *s, int side, const bool *const live[2], synth_relation *of,
                             iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    const synth_node *n = &t->node[i];
    if (of[i].term || !live[side][i] || !relatable(s, side, i)) continue;
    size_t found = src->n_nodes;
    for (size_t k = 0; k < src->n_nodes; k++) {
      const synth_node *m = &src->node[k];
      if (!relatable(s, !side, k) || (m->kind == SYNTH_INPUT) != (n->kind == SYNTH_INPUT) ||
          st_forbidden(s, side, i, k) || !same_numbers(s, n, m))
        continue;
      if (found == src->n_nodes || strcmp(n->name, m->name) == 0) found = k;
    }
    bool matters[2] = {false, false};
    if (found == src->n_nodes) continue;
    c = zero_sign_matters(s, side, i, live[side], &matters[0], err);
    if (!c) c = zero_sign_matters(s, !side, found, live[!side], &matters[1], err);
    if (!c && !matters[0] && !matters[1] && !(of[i].term = rule_var(&s->arena, (uint32_t)found)))
      c = nomem(err);
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
    for (size_t i = 0; i < src->n_nodes && !c; i++) {
      const synth_node *n = &src->node[i];
      rule_tensor_unref(value[i]);
      value[i] = NULL;
      if (relatable(s, !side, i) && (n->kind == SYNTH_INPUT) == inputs)
        c = st_all_sets(s, n, &value[i], err);
      name[i] = n->name;
    }
    if (c) break;
    synth_index *x = NULL;
    c = synth_index_new(value, name, src->n_nodes, s->schemas, &x, err);
    if (!c) synth_index_threads(x, s->o->threads);
    for (size_t i = 0; i < t->n_nodes && !c; i++) {
      const synth_node *n = &t->node[i];
      if (!relatable(s, side, i) || (n->kind == SYNTH_INPUT) != inputs) continue;
      rule_tensor *v;
      if ((c = st_all_sets(s, n, &v, err))) break;
      c = relate_leaf(s, side, i, v, &(sources){x, value, name}, &of[i], err);
      if (!c && inputs) c = st_hold_on_sets(s, side, i, &of[i], err);
      rule_tensor_unref(v);
    }
    synth_index_free(x);
  }
  for (size_t i = 0; value && i < src->n_nodes; i++) rule_tensor_unref(value[i]);
  for (size_t i = 0; i < src->n_nodes && !c; i++) name[i] = src->node[i].name;
  if (!c) c = relate_across_dtypes(s, side, name, of, err);
  free(value);
  free(name);
  return c;
}

/* Whether parameter `i` is better related by `instead`, over leaves that are read, than by `now`.
 * Two leaves of the same numbers are told apart by their names alone. */
static bool read_instead(const state *s, int side, size_t i, const rule_term *now,
                         const rule_term *instead) {
  if (now->kind != RULE_VAR || instead->kind != RULE_VAR) return true;
  const char *name = s->graph[side]->node[i].name, *other = s->graph[!side]->node[now->u.i].name;
  return !name || !other || strcmp(name, other) != 0;
}

/* Prefers relations to leaves that are read over those to an unread copy. Zeros and ones keep the
 * relations of their names. */
static iso_code prefer_read(state *s, int side, synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  rule_tensor **value = calloc(src->n_nodes + 1, sizeof *value);
  const char **name = calloc(src->n_nodes + 1, sizeof *name);
  synth_index *x = NULL;
  iso_code c = value && name ? ISO_OK : nomem(err);
  for (size_t i = 0; i < src->n_nodes && !c; i++) {
    const synth_node *n = &src->node[i];
    name[i] = n->name;
    if (n->kind != SYNTH_INPUT && relatable(s, !side, i) && !s->leaves.unread[!side][i])
      value[i] = n->value[0];
  }
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    const synth_node *n = &t->node[i];
    synth_relation rel = {0};
    if (!float_parameter(n) || !of[i].term || s->leaves.unread[side][i] || !relatable(s, side, i) ||
        !st_term_uses(of[i].term, s->leaves.unread[!side]) || !st_generic(n->value[0]))
      continue;
    if (!x) c = synth_index_new(value, name, src->n_nodes, s->schemas, &x, err);
    if (!c) c = relate_leaf(s, side, i, n->value[0], &(sources){x, value, name}, &rel, err);
    if (!c && rel.term && read_instead(s, side, i, of[i].term, rel.term)) of[i] = rel;
  }
  synth_index_free(x);
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
  for (size_t i = 0; i < g->n_nodes; i++)
    names[i] = g->node[i].name ? g->node[i].name : g->node[i].id;
  char *text = rule_term_print(t, s->schemas, names);
  const char *kept = text ? iso_arena_strdup(&s->arena, text) : NULL;
  free(text);
  free(names);
  return kept;
}

/* Leaf i of `side` is not drawn freely, and so none that is one with it is. */
static void not_free(state *s, int side, size_t i) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, s->map[side][i]), &m);
  for (size_t k = 0; k < n; k++) s->rec[m[k].i].atom = false;
}

/* State leaf i of `side` = term over the other side's leaves. */
static iso_code define(state *s, int side, size_t i, const synth_relation *rel, iso_error *err) {
  const eg_node leaf = s->map[side][i];
  eg_node def;
  iso_code c = st_add_term(s, rel->term, s->map[!side], &def, err);
  if (c) return c;
  if (rel->term->kind != RULE_VAR) not_free(s, side, i);
  if ((c = st_pass_domain_on(s, side, i, rel->term, err))) return c;
  const synth_node *n = &s->graph[side]->node[i];
  char text[512];
  const char *rtext = relation_text(s, rel->term, !side);
  snprintf(text, sizeof text, "%s's %s is %s by value%s", side == LEFT ? "left" : "right", n->name,
           rtext ? rtext : "?",
           rel->tied                    ? "; other leaves have the same values, names decided"
           : s->leaves.written[side][i] ? ", as was given"
                                        : "");
  const eg_node none = {EG_NONE};
  eg_node l = side == LEFT ? leaf : none, r = side == RIGHT ? leaf : none;
  if (rel->term->kind == RULE_VAR) {
    if (side == RIGHT) l = def;
    else r = def;
  }
  if (!st_assume(s, RULE_ASSUMES_LEAF, l, r, rtext, text)) return nomem(err);
  return st_merge(s, leaf, def, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
}

/* Relations are oriented: a leaf that others are written in may not be defined itself. Kept by
 * node of each side. */
typedef struct orientation {
  synth_relation *of[2];
  bool *used[2], *defined[2];
  bool *equal[2]; /* defined as what another leaf is: of one class with it, so that terms may use
                     either */
} orientation;

static iso_code define_by(state *s, orientation *o, int side, size_t i, iso_error *err) {
  iso_code c = define(s, side, i, &o->of[side][i], err);
  o->defined[side][i] = true;
  st_term_mark(o->of[side][i].term, o->used[!side]);
  return c;
}

/* Given relations go first, and the rest does not change them. */
static iso_code define_given(state *s, orientation *o, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < s->graph[RIGHT]->n_nodes && !c; i++) {
    if (!s->leaves.written[RIGHT][i]) continue;
    c = define_by(s, o, RIGHT, i, err);
    o->used[RIGHT][i] = true;
    o->equal[RIGHT][i] = o->of[RIGHT][i].term->kind == RULE_VAR;
  }
  for (size_t k = 0; k < s->o->n_given && !c; k++) {
    const synth_given *g = &s->o->given[k];
    if (g->forbid || g->equals || !g->term || !s->leaves.written[LEFT][g->left]) continue;
    o->of[LEFT][g->left].term = g->term;
    c = define_by(s, o, LEFT, g->left, err);
    o->used[LEFT][g->left] = true;
  }
  return c;
}

/* Equal leaves need no orientation: those of the right first, then other left leaves that equal one
 * of the right. */
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

/* The same elements in another layout: the one of higher rank is written in terms of the other, so
 * that rules read f(unsqueeze(x)) and not f(squeeze(x)). A higher-rank leaf on the left may be
 * defined only if nothing uses it. */
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
    if (n_vars != 1 || R->node[v].value[0]->numel != L->node[i].value[0]->numel ||
        o->defined[RIGHT][v] || L->node[i].shape.rank <= R->node[v].shape.rank)
      continue;
    c = define_by(s, o, LEFT, i, err);
    o->used[LEFT][i] = true;
  }
  free(vars);
  return c;
}

/* A shard with padding is no layout of anything, but the whole is one of the shards: then the whole
 * is defined. So are shards that repeat one another's elements. */
static iso_code define_wholes(state *s, orientation *o, iso_error *err) {
  bool *repeating = st_repeating(s, o->of);
  iso_code c = repeating ? ISO_OK : nomem(err);
  for (size_t i = 0; i < s->graph[LEFT]->n_nodes && !c; i++) {
    const rule_term *t = o->of[LEFT][i].term;
    if (!t || o->used[LEFT][i] || st_term_uses(t, o->defined[RIGHT]) ||
        !(any_unrelated(t, o->of[RIGHT]) || repeating[i]))
      continue;
    c = define_by(s, o, LEFT, i, err);
    o->used[LEFT][i] = true;
  }
  free(repeating);
  return c;
}

/* Class `c` is `of`, or is made of it. */
static bool made_of(const state *s, eg_class c, eg_class of) {
  if (c.i == of.i) return true;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < eg_node_arity(s->g, m[i]); k++)
      if (made_of(s, eg_node_child(s->g, m[i], k), of)) return true;
  return false;
}

/* Some leaf of the term over `side` is made of the other side's leaf `i`. */
static bool uses_what_is_made_of(const state *s, int side, const rule_term *t, size_t i) {
  if (t->kind == RULE_VAR)
    return made_of(s, eg_class_of(s->g, s->map[side][t->u.i]), eg_class_of(s->g, s->map[!side][i]));
  for (uint32_t k = 0; k < t->n; k++)
    if (uses_what_is_made_of(s, side, t->child[k], i)) return true;
  return false;
}

/* All else, the right's first. */
static iso_code define_rest(state *s, orientation *o, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = RIGHT; side >= LEFT; side--)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const rule_term *t = o->of[side][i].term;
      if (t && !o->used[side][i] && !o->defined[side][i] && !uses_what_is_made_of(s, !side, t, i))
        c = define_by(s, o, side, i, err);
    }
  return c;
}

/* A parameter of many numbers that is read, and has no relation to leaves that the other side
 * reads: a table with rows beside those that are there, where another leaf (perhaps a copy that
 * nothing reads) has the relation to these. */
static bool left_over(const state *s, const orientation *o, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  const rule_term *t = o->of[side][i].term;
  return n->kind != SYNTH_OP && n->kind != SYNTH_INPUT && relatable(s, side, i) &&
         !s->leaves.unread[side][i] && (!t || st_term_uses(t, s->leaves.unread[!side])) &&
         s->rec[s->map[side][i].i].atom && st_generic(n->value[0]);
}

static bool uses_source(const rule_term *t, const sources *from) {
  if (t->kind == RULE_VAR) return from->source[t->u.i] != NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (uses_source(t->child[i], from)) return true;
  return false;
}

/* Leaves of the other side that would be drawn freely, and are parts of a left-over parameter of
 * `side`, are defined as such parts: leaves that they equal besides stay equal to them. Where both
 * have partners, one that is read has its own: it is not the left-over one's, though they be
 * equal. */
static iso_code define_parts(state *s, const orientation *o, int side, const sources *from,
                             iso_error *err) {
  const synth_graph *t = s->graph[!side];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    const synth_node *n = &t->node[i];
    synth_relation rel = {0};
    if (n->kind == SYNTH_OP || n->kind == SYNTH_INPUT || !relatable(s, !side, i) ||
        !o->of[!side][i].term || !s->rec[s->map[!side][i].i].atom ||
        s->rec[s->map[!side][i].i].konst || !st_generic(n->value[0]))
      continue;
    c = relate_leaf(s, !side, i, n->value[0], from, &rel, err);
    const rule_term *own = o->of[!side][i].term;
    const bool taken = !c && rel.term && !any_unrelated(rel.term, o->of[side]) &&
                       !st_term_uses(own, s->leaves.unread[side]) && !uses_source(own, from);
    if (!c && rel.term && !taken && !uses_what_is_made_of(s, side, rel.term, i))
      c = define(s, !side, i, &rel, err);
  }
  return c;
}

static iso_code define_by_left_over(state *s, const orientation *o, int side, iso_error *err) {
  const synth_graph *src = s->graph[side];
  rule_tensor **value = calloc(src->n_nodes + 1, sizeof *value);
  const char **name = calloc(src->n_nodes + 1, sizeof *name);
  synth_index *x = NULL;
  bool any = false;
  iso_code c = value && name ? ISO_OK : nomem(err);
  for (size_t i = 0; i < src->n_nodes && !c; i++) {
    name[i] = src->node[i].name;
    if (!left_over(s, o, side, i)) continue;
    value[i] = src->node[i].value[0];
    any = true;
  }
  if (!c && any) c = synth_index_new(value, name, src->n_nodes, s->schemas, &x, err);
  if (x) synth_index_threads(x, s->o->threads);
  if (!c && any) c = define_parts(s, o, side, &(sources){x, value, name}, err);
  synth_index_free(x);
  free(value);
  free(name);
  return c;
}

/* A replica of a leaf that is made of others is made of them, too. */
static void follow_originals(state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const int32_t first = s->leaves.replica[side][i];
      if (first >= 0 && !s->rec[s->map[side][first].i].atom) s->rec[s->map[side][i].i].atom = false;
    }
}

/* A leaf that equals the other side's parameter is drawn as a parameter, even if a buffer here. */
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
  for (int side = 0; side < 2 && !c; side++) c = add_leaves(s, side, live[side], err);
  if (!c) c = st_join_replicas(s, err);
  for (int side = 0; side < 2 && !c; side++) c = find_unread(s, side, live[side], err);
  for (int side = 0; side < 2 && !c; side++) {
    const size_t n = s->graph[side]->n_nodes + 1;
    o.of[side] = calloc(n, sizeof *o.of[side]);
    o.used[side] = calloc(n, 1);
    o.defined[side] = calloc(n, 1);
    o.equal[side] = calloc(n, 1);
    if (!o.of[side] || !o.used[side] || !o.defined[side] || !o.equal[side]) c = nomem(err);
  }
  if (!c) c = st_take_given(s, o.of[RIGHT], err);
  for (int side = 0; side < 2 && !c; side++) c = relate_side(s, side, o.of[side], err);
  for (int side = 0; side < 2 && !c; side++) c = prefer_read(s, side, o.of[side], err);
  for (int side = 0; side < 2 && !c; side++) c = relate_zeros(s, side, live, o.of[side], err);
  for (int side = 0; side < 2 && !c; side++) c = st_drop_coincidences(s, side, o.of[side], err);
  for (int side = 0; side < 2 && !c; side++) c = st_drop_repeats(s, side, o.of[side], err);
  if (!c) c = define_given(s, &o, err);
  if (!c) c = define_equal(s, &o, err);
  if (!c) c = define_layouts(s, &o, err);
  if (!c) c = define_wholes(s, &o, err);
  if (!c) c = define_rest(s, &o, err);
  for (int side = 0; side < 2 && !c; side++) c = define_by_left_over(s, &o, side, err);
  for (int side = 0; side < 2 && !c; side++)
    c = st_pass_parts_on(s, side, o.of[side], o.defined[side], err);
  if (!c) follow_originals(s);
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
