/* Which tensors both sides hold in one dtype, as the comparison found them equal. */
#include "localise/rounding/rounding_int.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct held {
  uint32_t class, node;
  rule_dtype dtype;
  int side;
} held;

static int by_class(const void *a, const void *b) {
  const held *x = a, *y = b;
  if (x->class != y->class) return x->class < y->class ? -1 : 1;
  if (x->dtype != y->dtype) return x->dtype < y->dtype ? -1 : 1;
  if (x->side != y->side) return x->side - y->side;
  return x->node < y->node ? -1 : x->node > y->node;
}

static void mark(const rule_term *t, bool *live) {
  if (t->kind == RULE_VAR) live[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) mark(t->child[k], live);
}

static iso_code find_live(lr_cuts *c, int side, iso_error *err) {
  const synth_graph *g = c->graph[side];
  bool *live = c->live[side] = calloc(g->n_nodes + 1, sizeof *live);
  int32_t *of = c->of[side] = malloc((g->n_nodes + 1) * sizeof *of);
  if (!live || !of) return nomem(err);
  for (size_t k = 0; k < g->n_outputs; k++) live[g->output[k].node] = true;
  for (size_t i = g->n_nodes; i-- > 0;) {
    of[i] = -1;
    if (live[i] && g->node[i].kind == SYNTH_OP) mark(g->node[i].call, live);
  }
  return ISO_OK;
}

/* The run of entries [from, to) is one class in one dtype: a cut where both sides are among it. */
static void add_cut(lr_cuts *c, const held *all, size_t from, size_t to) {
  if (all[from].side == all[to - 1].side) return;
  lr_cut *cut = &c->cut[c->n];
  *cut = (lr_cut){.difference = NAN};
  for (size_t k = to; k-- > from;) {
    cut->node[all[k].side] = all[k].node;
    c->of[all[k].side][all[k].node] = (int32_t)c->n;
  }
  c->n++;
}

/* Measurements end at an output, in any dtype that either side gives it. */
static void add_outputs(lr_cuts *c) {
  for (size_t p = 0; p < c->n_pairs; p++) {
    uint32_t node[2];
    bool unmarked = true;
    for (int side = 0; side < 2; side++) {
      node[side] = c->graph[side]->output[c->output[side][p]].node;
      const synth_node *n = &c->graph[side]->node[node[side]];
      unmarked &= c->of[side][node[side]] < 0 && n->kind == SYNTH_OP && n->n_outputs == 1 &&
                  lr_digits(n->dtype);
    }
    if (!unmarked) continue;
    for (int side = 0; side < 2; side++) c->of[side][node[side]] = (int32_t)c->n;
    c->cut[c->n++] = (lr_cut){.node = {node[0], node[1]}, .difference = NAN};
  }
}

static int by_left(const void *a, const void *b) {
  const lr_cut *x = a, *y = b;
  return x->node[0] < y->node[0] ? -1 : x->node[0] > y->node[0];
}

/* Cuts in the left graph's order; nodes keep to theirs. */
static iso_code in_order(lr_cuts *c, iso_error *err) {
  int32_t *to = malloc((c->n + 1) * sizeof *to);
  if (!to) return nomem(err);
  for (size_t k = 0; k < c->n; k++) c->cut[k].error[0] = (double)k;
  qsort(c->cut, c->n, sizeof *c->cut, by_left);
  for (size_t k = 0; k < c->n; k++) {
    to[(size_t)c->cut[k].error[0]] = (int32_t)k;
    c->cut[k].error[0] = 0;
  }
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < c->graph[side]->n_nodes; i++)
      if (c->of[side][i] >= 0) c->of[side][i] = to[c->of[side][i]];
  free(to);
  return ISO_OK;
}

iso_code lr_cuts_find(lr_cuts *c, iso_error *err) {
  const size_t most = c->graph[0]->n_nodes + c->graph[1]->n_nodes + c->n_pairs;
  held *all = malloc((most + 1) * sizeof *all);
  size_t n = 0;
  c->cut = calloc(most + 1, sizeof *c->cut);
  iso_code code = all && c->cut ? ISO_OK : nomem(err);
  for (int side = 0; side < 2 && !code; side++) {
    const synth_graph *g = c->graph[side];
    const uint32_t *class = c->result->class_of[side];
    code = find_live(c, side, err);
    for (uint32_t i = 0; i < g->n_nodes && !code && class; i++) {
      const synth_node *x = &g->node[i];
      if (c->live[side][i] && x->kind == SYNTH_OP && x->n_outputs == 1 && class[i] != UINT32_MAX &&
          lr_digits(x->dtype))
        all[n++] = (held){class[i], i, x -> dtype, side};
    }
  }
  if (!code) qsort(all, n, sizeof *all, by_class);
  for (size_t i = 0, j; i < n && !code; i = j) {
    for (j = i + 1; j < n && all[j].class == all[i].class && all[j].dtype == all[i].dtype;) j++;
    add_cut(c, all, i, j);
  }
  free(all);
  if (!code) add_outputs(c);
  return code ? code : in_order(c, err);
}

void lr_cuts_free(lr_cuts *c) {
  for (size_t k = 0; k < c->n; k++) {
    rule_tensor_unref(c->cut[k].captured);
    rule_tensor_unref(c->cut[k].exact);
  }
  for (int side = 0; side < 2; side++) {
    free(c->live[side]);
    free(c->of[side]);
    free(c->output[side]);
  }
  free(c->cut);
}
