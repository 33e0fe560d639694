/* Where a chain that was not found has its gaps: the first operators of each side that have no
 * counterpart although all that they read has one, and leaves without one. */
#include "synth/unrun/unrun.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool all_met(const rule_term *t, const bool *met) {
  if (t->kind == RULE_VAR) return met[t->u.i];
  for (uint32_t k = 0; k < t->n; k++)
    if (!all_met(t->child[k], met)) return false;
  return true;
}

/* A term that relates leaves: of neither graph, and one with a node of `side`. */
static bool relates(state *s, eg_node e, int side) {
  return s->rec[e.i].node[LEFT] < 0 && s->rec[e.i].node[RIGHT] < 0 && eg_node_arity(s->g, e) > 0 &&
         st_has_side(s, e, side);
}

/* Whether all tensors in a term that stands in neither graph are the other side's, or constants. */
static bool made_of(state *s, eg_node e, int side, int depth) {
  const eg_node *m;
  if (depth == 0 || eg_node_arity(s->g, e) == 0) return false;
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_class c = eg_node_child(s->g, e, k);
    const size_t n = eg_class_nodes(s->g, c, &m);
    bool there = false;
    for (size_t i = 0; i < n && !there; i++)
      there = s->rec[m[i].i].konst || s->rec[m[i].i].node[side] >= 0 || st_literal(s, m[i]) ||
              (s->rec[m[i].i].node[!side] < 0 && made_of(s, m[i], side, depth - 1));
    if (!there) return false;
  }
  return true;
}

/* A node has a counterpart: it is one with a node of the other side, or with a layout of some, or a
 * constant, or a leaf that is put together of others, or that others are put together of. */
static bool has_partner(state *s, int side, size_t i) {
  const eg_node e = s->map[side][i], *p, *q;
  if (st_has_side(s, e, !side) || s->rec[e.i].konst) return true;
  enum { DEPTH = 4 };
  const size_t members = eg_class_nodes(s->g, eg_class_of(s->g, e), &p);
  for (size_t k = 0; k < members; k++)
    if (s->rec[p[k].i].node[side] < 0 && made_of(s, p[k], !side, DEPTH)) return true;
  size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &p);
  for (size_t k = 0; k < n && s->graph[side]->node[i].kind != SYNTH_OP; k++)
    if (relates(s, p[k], side)) return true;
  n = eg_class_parents(s->g, eg_class_of(s->g, e), &p);
  for (size_t k = 0; k < n; k++) {
    if (relates(s, p[k], !side)) return true;
    const size_t m = st_is_list(s, p[k]) ? eg_class_parents(s->g, eg_class_of(s->g, p[k]), &q) : 0;
    for (size_t j = 0; j < m; j++)
      if (relates(s, q[j], !side)) return true;
  }
  return false;
}

static void read_by(const rule_term *t, bool *all, bool *any, bool bridged) {
  if (t->kind == RULE_VAR) any[t->u.i] = true, all[t->u.i] &= bridged;
  for (uint32_t k = 0; k < t->n; k++) read_by(t->child[k], all, any, bridged);
}

/* Nodes that the chain reaches, or passes: nodes without a counterpart inside of a rule's term are
 * read only by nodes that are passed themselves. Returns: in `met`, by node. */
static iso_code bridge(state *s, int side, const bool *live, bool *met, iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *all = malloc(g->n_nodes + 1), *any = calloc(g->n_nodes + 1, 1);
  if (all) memset(all, true, g->n_nodes + 1);
  for (size_t i = g->n_nodes; i-- > 0 && all && any;) {
    if (!live[i]) continue;
    met[i] = has_partner(s, side, i) || (any[i] && all[i]);
    if (g->node[i].kind == SYNTH_OP) read_by(g->node[i].call, all, any, met[i]);
  }
  const iso_code c = all && any ? ISO_OK : nomem(err);
  free(all);
  free(any);
  return c;
}

/* The first node of a side that is not met although all that it reads is; -1: none. */
static iso_code first_gap(state *s, int side, const bool *live, int64_t *leaf, int64_t *op,
                          iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *met = calloc(g->n_nodes + 1, 1);
  *leaf = *op = -1;
  const iso_code c = met ? bridge(s, side, live, met, err) : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    if (!live[i] || met[i]) continue;
    if (g->node[i].kind != SYNTH_OP) {
      if (*leaf < 0) *leaf = (int64_t)i;
    } else if (*op < 0 && all_met(g->node[i].call, met)) *op = (int64_t)i;
  }
  free(met);
  return c;
}

static const char *words(state *s, int side, int64_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  const char *where = n->scope && *n->scope ? n->scope : "the model";
  if (n->kind != SYNTH_OP) return iso_arena_printf(&s->res->arena, "leaf %s", n->name);
  return iso_arena_printf(&s->res->arena, "%s (%s) in %s", n->id, n->op, where);
}

typedef struct named {
  size_t n;
  const char *all; /* the first of them */
} named;

static iso_code add_name(state *s, named *k, const char *one, iso_error *err) {
  enum { NAMED = 6 };
  if (!one || ++k->n > NAMED + 1) return ISO_OK;
  k->all = iso_arena_printf(&s->res->arena, "%s%s%s", k->all, k->n > 1 ? "; " : "",
                            k->n > NAMED ? "and more" : one);
  return k->all ? ISO_OK : nomem(err);
}

/* Leaves that differ from their namesakes, or are another layer's, say more than the operators
 * behind them. */
static iso_code name_leaves(state *s, const bool *const live[2], iso_error *err) {
  named k = {0, ""};
  iso_code c = ISO_OK;
  for (int side = RIGHT; side >= LEFT && !c; side--)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const char *one = NULL;
      if (!live[side][i]) continue;
      if (side == RIGHT) c = st_leaf_differs(s, i, &one, err);
      if (!c && !one) c = st_leaf_misplaced(s, side, i, &one, err);
      if (!c) c = add_name(s, &k, one, err);
    }
  if (c || k.n == 0) return c;
  s->res->reason = iso_arena_printf(&s->res->arena, "%zu lea%s from what the left has: %s", k.n,
                                    k.n == 1 ? "f differs" : "ves differ", k.all);
  return s->res->reason ? ISO_OK : nomem(err);
}

iso_code st_name_gaps(state *s, const bool *const live[2], iso_error *err) {
  const iso_code first = name_leaves(s, live, err);
  if (first || s->res->reason) return first;
  const char *side[2] = {NULL, NULL};
  int64_t at[2] = {-1, -1};
  for (int k = 0; k < 2; k++) {
    int64_t leaf, op;
    const iso_code c = first_gap(s, k, live[k], &leaf, &op, err);
    if (c) return c;
    at[k] = leaf >= 0 ? leaf : op;
    side[k] = at[k] < 0 ? "nothing alone" : words(s, k, at[k]);
    if (!side[k]) return nomem(err);
  }
  s->res->reason = iso_arena_printf(
      &s->res->arena,
      "nothing was run, and no rule that is proved joins the outputs: the first gap is, on the "
      "left, %s, and on the right %s",
      side[LEFT], side[RIGHT]);
  return s->res->reason ? ISO_OK : nomem(err);
}
