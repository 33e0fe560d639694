/* Parameters that were computed when a model was loaded: found by value, and taken. */
#include "cli/commands/compare_int.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- found ---- */

static iso_code print(const pair *p, const synth_fold *f, refinement *out, iso_error *err) {
  iso_arena *a = &out->arena;
  const cap_graph *to = p->graph[f->right], *from = p->graph[!f->right];
  const char **name = calloc(from->n_nodes + 1, sizeof *name);
  if (!name) return nomem(err);
  for (size_t i = 0; i < from->n_nodes; i++)
    name[i] = from->node[i].kind == CAP_OP ? from->node[i].id : from->node[i].name;
  const char *text = relations_print(a, f->term, name),
             *own = relations_name(a, to->node[f->leaf].name);
  free(name);
  const char *line = !text || !own ? NULL
                     : f->right    ? iso_arena_printf(a, "leaf %s = %s", text, own)
                                   : iso_arena_printf(a, "leaf %s = %s", own, text);
  if (!line) return nomem(err);
  out->fold[out->n_folds++] = line;
  return ISO_OK;
}

/* Values are asked for where something may be made of them. */
static bool worth_looking(const pair *p) {
  const synth_result *r = p->result;
  if (!r || r->verdict == SYNTH_EQUIVALENT) return false;
  for (size_t i = 0; i < r->n_unexplained; i++) {
    const cap_graph *g = p->graph[r->unexplained[i].right];
    if (g->node[r->unexplained[i].node].kind == CAP_PARAMETER) return true;
  }
  return false;
}

iso_code cmp_find_folds(pair *p, const rule_oracle *oracle, refinement *out, iso_error *err) {
  if (!worth_looking(p)) return ISO_OK;
  const synth_graph *g[2] = {&p->view[0].g, &p->view[1].g};
  rule_tensor **value[2] = {NULL, NULL};
  const synth_result *r = p->result;
  synth_folds found = {0};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    c = relations_values(p->graph[side], NULL, oracle, &value[side], err);
  if (!c)
    c = synth_find_folds(g, (rule_tensor *const *const *)value, r->unexplained, r->n_unexplained,
                         &out->arena, &found, err);
  if (!c && !(out->fold = iso_arena_alloc(&out->arena, (found.n + 1) * sizeof *out->fold)))
    c = nomem(err);
  for (size_t i = 0; i < found.n && !c; i++) c = print(p, &found.of[i], out, err);
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; value[side] && i < p->graph[side]->n_nodes; i++)
      rule_tensor_unref(value[side][i]);
    free(value[side]);
  }
  return c;
}

/* ---- taken ---- */

/* Folds that were found are proposals: a line that does not hold of the values is dropped. */
iso_code cmp_take_folds(const options *o, pair *p, const rule_oracle *oracle, iso_error *err) {
  iso_code c = relations_fold_file(o->relations, p->graph, oracle, &p->folded, err);
  size_t kept = 0;
  for (size_t i = 0; i < p->refinement.n_folds && !c; i++) {
    iso_error why;
    const char *line = p->refinement.fold[i];
    c = relations_fold(line, "found", true, p->graph, oracle, &p->folded, &why);
    if (!c) p->refinement.fold[kept++] = line;
    else c = c == ISO_NOMEM ? nomem(err) : ISO_OK;
  }
  p->refinement.n_folds = kept;
  return c;
}
