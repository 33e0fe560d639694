/* The e-graph's result for the captured nodes: which share a class, and the reason for each one's
 * equality with the other side. */
#include "synth/joint/joint.h"
#include "rules/operators.h"
#include "synth/result/result.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static uint32_t root(uint32_t *up, uint32_t i) {
  while (up[i] != i) i = up[i] = up[up[i]];
  return i;
}

/* Layouts that the comparison made (unsqueeze(x) on the way from one graph to the other) join the
 * classes of both ends. */
static bool made_layout(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  const char *op = st_operator(s, e);
  if (!st_made(r) || !r->tensor || eg_node_arity(s->g, e) == 0) return false;
  const rule_operator *o = rule_operator_of(op);
  return o->relates && o->rearranges;
}

static iso_code join_layouts(state *s, iso_error *err) {
  const size_t all = s->res->n_classes = eg_count_added(s->g);
  uint32_t *up = s->class_root = malloc((all + 1) * sizeof *up);
  if (!up) return nomem(err);
  for (uint32_t i = 0; i < all; i++) up[i] = i;
  for (uint32_t i = 0; i < all; i++)
    if (made_layout(s, (eg_node){i}))
      up[root(up, eg_class_of(s->g, (eg_node){i}).i)] =
          root(up, eg_node_child(s->g, (eg_node){i}, 0).i);
  return ISO_OK;
}

/* ---- what a node rests on ---- */

static uint32_t class_root(const state *s, eg_node e) {
  return root(s->class_root, eg_class_of(s->g, e).i);
}

static bool congruent(const state *s, eg_node a, eg_node b) {
  const size_t n = eg_node_arity(s->g, a);
  if (a.i == b.i) return true;
  if (eg_node_symbol(s->g, a).i != eg_node_symbol(s->g, b).i || n != eg_node_arity(s->g, b))
    return false;
  for (size_t i = 0; i < n; i++)
    if (eg_node_child(s->g, a, i).i != eg_node_child(s->g, b, i).i) return false;
  return true;
}

/* Whether the other side has the same operator on equal arguments. */
static bool same_operator(state *s, int side, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[!side] >= 0 && congruent(s, e, m[i])) return true;
  return false;
}

typedef struct facts { /* by class root */
  bool *on[2];         /* it has a node of this side */
  bool *ruled;         /* a rule made two of its tensors one */
} facts;

static synth_standing standing(state *s, const facts *f, int side, size_t i, bool unexplained,
                               bool read_alone) {
  const eg_node e = s->map[side][i];
  const uint32_t c = class_root(s, e);
  const rec *r = &s->rec[e.i];
  const bool met = f->on[!side][c];
  if (s->graph[side]->node[i].kind != SYNTH_OP && (met || !r->konst))
    return unexplained ? SYNTH_ALONE : SYNTH_ASSUMED;
  if (!met) return read_alone ? SYNTH_ALONE : SYNTH_WITHIN;
  if (same_operator(s, side, e)) return SYNTH_SAME;
  return f->ruled[c] ? SYNTH_BY_RULE : r->konst ? SYNTH_ASSUMED : SYNTH_SAME;
}

/* From the outputs back: a node without a counterpart is explained where all that reads it is. */
static iso_code stand(state *s, const facts *f, int side, iso_error *err) {
  const synth_graph *g = s->graph[side];
  uint8_t *of = iso_arena_alloc(&s->res->arena, g->n_nodes + 1);
  bool *alone = calloc(g->n_nodes + 1, 1),
       *leaf = calloc(g->n_nodes + 1, 1); /* read by what is alone; unexplained leaves */
  iso_code c = of && alone && leaf ? ISO_OK : nomem(err);
  for (size_t k = 0; k < g->n_outputs && !c; k++) alone[g->output[k].node] = true;
  for (size_t k = 0; k < s->res->n_unexplained && !c; k++)
    if (s->res->unexplained[k].right == (side == RIGHT)) leaf[s->res->unexplained[k].node] = true;
  for (size_t i = g->n_nodes; i-- > 0 && !c;) {
    of[i] = s->map[side][i].i == EG_NONE ? SYNTH_UNREAD
                                         : (uint8_t)standing(s, f, side, i, leaf[i], alone[i]);
    if (of[i] == SYNTH_ALONE && g->node[i].kind == SYNTH_OP) st_term_mark(g->node[i].call, alone);
  }
  s->res->standing_of[side] = of;
  free(alone);
  free(leaf);
  return c;
}

static iso_code stand_both(state *s, iso_error *err) {
  const size_t n = s->res->n_classes + 1;
  facts f = {{calloc(n, 1), calloc(n, 1)}, calloc(n, 1)};
  iso_code c = f.on[LEFT] && f.on[RIGHT] && f.ruled ? ISO_OK : nomem(err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->res->class_of[side][i] != UINT32_MAX) f.on[side][s->res->class_of[side][i]] = true;
  for (size_t i = 0; i < s->rules.n_app && !c; i++)
    f.ruled[class_root(s, s->rules.app[i].from)] = true;
  for (int side = 0; side < 2 && !c; side++) c = stand(s, &f, side, err);
  free(f.on[LEFT]);
  free(f.on[RIGHT]);
  free(f.ruled);
  return c;
}

iso_code st_publish_classes(state *s, iso_error *err) {
  iso_code c = join_layouts(s, err);
  for (int side = 0; side < 2 && !c; side++) {
    const size_t n = s->graph[side]->n_nodes;
    uint32_t *of = iso_arena_alloc(&s->res->arena, (n + 1) * sizeof *of);
    if (!of) return nomem(err);
    for (size_t i = 0; i < n; i++)
      of[i] = s->map[side][i].i == EG_NONE ? UINT32_MAX : class_root(s, s->map[side][i]);
    s->res->class_of[side] = of;
  }
  return c ? c : stand_both(s, err);
}

static int ascending(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

iso_code st_rule_classes(state *s, size_t index, synth_rule_use *use, iso_error *err) {
  uint32_t *of = iso_arena_alloc(&s->res->arena, (s->rules.info[index].uses + 1) * sizeof *of);
  size_t n = 0, kept = 0;
  if (!of) return nomem(err);
  for (size_t i = 0; i < s->rules.n_app && n < s->rules.info[index].uses; i++)
    if (s->rules.app[i].rule == index) of[n++] = class_root(s, s->rules.app[i].from);
  qsort(of, n, sizeof *of, ascending);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || of[i] != of[kept - 1]) of[kept++] = of[i];
  use->of_class = of;
  use->n_of_class = kept;
  return ISO_OK;
}
