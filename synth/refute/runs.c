/* The leaves of a draw, and both sides run from them. */
#include <stdlib.h>

#include "synth/joint/joint.h"
#include "synth/refute/refute_int.h"

iso_code st_run_both(state *s, rule_tensor **const leaf[2], bool keep_all, st_run run[2],
                     iso_error *err) {
  iso_code c =
      st_run_graph(s, LEFT, leaf[LEFT], &(st_run_how){.keep_all = keep_all}, &run[LEFT], err);
  if (!c)
    c = st_run_graph(s, RIGHT, leaf[RIGHT], &(st_run_how){.keep_all = keep_all}, &run[RIGHT], err);
  return c;
}

bool st_new_leaves(const state *s, rule_tensor **leaf[2]) {
  for (int side = 0; side < 2; side++)
    leaf[side] = calloc(s->graph[side]->n_nodes + 1, sizeof *leaf[side]);
  return leaf[LEFT] && leaf[RIGHT];
}

iso_code st_leaves_of_draw(state *s, size_t d, rule_tensor **leaf[2], iso_error *err) {
  if (!st_new_leaves(s, leaf)) return st_no_memory(err);
  s->witness.set = st_kept_set(s, d);
  /* By e-node: what was let go since is not made a second time, as large as it is. */
  rule_tensor **made = calloc(s->n_rec + 1, sizeof *made);
  iso_code c = made ? ISO_OK : st_no_memory(err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      if (s->graph[side]->node[i].kind == SYNTH_OP) continue;
      const eg_node home = st_home(s, s->map[side][i]);
      rule_tensor *stored = NULL;
      if ((c = st_stored_leaf(s, side, i, d, &stored, err))) break;
      if (stored) {
        leaf[side][i] = rule_tensor_ref(stored);
        continue;
      }
      if (!made[home.i]) made[home.i] = st_val(s, home, d);
      if ((leaf[side][i] = rule_tensor_ref(made[home.i]))) st_trim(s);
      else c = st_lost(&s->values, err);
    }
  free(made);
  return c;
}

void st_free_leaves(const state *s, rule_tensor **leaf[2]) {
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++)
      rule_tensor_unref(leaf[side][i]);
    free(leaf[side]);
  }
}

int64_t st_leaf_elements(const synth_graph *g) {
  int64_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind != SYNTH_OP && g->node[i].value && g->node[i].value[0])
      n += g->node[i].value[0]->numel;
  return n;
}

iso_code st_run_draw(state *s, size_t d, iso_error *err) {
  rule_tensor **leaf[2];
  iso_code c = st_leaves_of_draw(s, d, leaf, err);
  if (!c) c = st_run_both(s, leaf, true, s->witness.run, err);
  st_free_leaves(s, leaf);
  return c;
}

iso_code st_run_captured(state *s, int side, st_run *out, iso_error *err) {
  rule_tensor **leaf[2];
  iso_code c = st_leaves_of_draw(s, 0, leaf, err);
  if (!c) c = st_run_graph(s, side, leaf[side], &(st_run_how){.keep_all = true}, out, err);
  st_free_leaves(s, leaf);
  return c;
}
