/* Runs that say nothing of the numbers: a call that fails on one side only, and outputs that depend
 * on memory which an operator leaves unspecified. */
#include <stdlib.h>

#include "rules/operators.h"
#include "synth/refute/refute_int.h"

static bool has_integers(const synth_graph *g, const rule_term *t) {
  if (t->kind == RULE_VAR) return rule_dtype_is_int(g->node[t->u.i].dtype);
  for (uint32_t k = 0; k < t->n; k++)
    if (has_integers(g, t->child[k])) return true;
  return false;
}

/* Whether a call reads at places given by integers, so that it can fail for some values and not for
 * others. Other operators with integers may fail since they take no float64. */
static bool reads_by_index(const synth_graph *g, const rule_term *t) {
  const rule_operator *o = rule_operator_of(t->u.s);
  const bool known = o->table || o->ends != RULE_ENDS_NOWHERE || o->choice == RULE_CHOICE_INDEX;
  return (known || !rule_is_aten(t->u.s)) && has_integers(g, t);
}

/* Where the leaves themselves could not be had (no such device) there is nothing to run on. */
static bool leaves_are_drawn(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind != SYNTH_OP &&
          (s->map[side][i].i == EG_NONE || !s->rec[s->map[side][i].i].valued))
        return false;
  return true;
}

iso_code st_fails_alone(state *s, int *side, int64_t *node, bool *alone, bool *drawn,
                        iso_error *err) {
  rule_tensor **leaf[2];
  st_run run[2] = {0};
  iso_error why[2];
  bool fails[2] = {false, false};
  *alone = *drawn = false;
  if (!leaves_are_drawn(s)) return ISO_OK;
  iso_code c = st_leaves_of_draw(s, 0, leaf, err);
  for (int k = 0; k < 2 && !c; k++) {
    const iso_code rc = st_run_graph(s, k, leaf[k], &(st_run_how){0}, &run[k], &why[k]);
    if (rc == ISO_NOMEM) c = st_no_memory(err);
    if (rc == ISO_DEVICE) c = iso_fail(err, rc, "%s", why[k].msg);
    fails[k] = rc == ISO_TORCH;
    if (fails[k]) *side = k, *node = run[k].failed;
    *drawn = rc == ISO_OK && (k == LEFT || *drawn);
  }
  *alone = !c && fails[LEFT] != fails[RIGHT] && *node >= 0;
  if (*alone) { /* a call that can never work is a malformed capture */
    const synth_node *n = &s->graph[*side]->node[*node];
    *alone = n->kind == SYNTH_OP && reads_by_index(s->graph[*side], n->call);
  }
  const synth_localiser *l = s->o->localiser;
  if (*alone && s->o->keep_witness && l)
    c = l->cut_failing(s, *side, (uint32_t)*node, leaf[*side], err);
  if (!c && *alone && !(s->res->reason = iso_arena_strdup(&s->res->arena, why[*side].msg)))
    c = st_no_memory(err);
  for (int k = 0; k < 2; k++) st_run_free(&run[k]);
  st_free_leaves(s, leaf);
  return c;
}

static bool makes_empty(const synth_node *n) {
  return n->kind == SYNTH_OP && rule_operator_of(n->op)->unspecified;
}

/* The run `base` with `fill` in empty memory. */
static iso_code run_filled(state *s, int side, const st_run *base, double fill, st_run *out,
                           iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *again = calloc(g->n_nodes + 1, 1);
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value);
  iso_code c = again && value ? ISO_OK : st_no_memory(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    if (g->node[i].kind != SYNTH_OP || base->value[i].n == 0) continue;
    again[i] = makes_empty(&g->node[i]) || st_term_uses(g->node[i].call, again);
    if (!makes_empty(&g->node[i])) continue;
    const rule_tensor *v = base->value[i].v[0];
    if ((c = rule_tensor_new(v->dtype, &v->shape, &value[i], err))) break;
    for (int64_t k = 0; k < v->numel; k++) rule_tensor_set(value[i], k, fill);
  }
  const st_carry with = {.from = base, .again = again, .value = value};
  if (!c) c = st_run_graph(s, side, NULL, &(st_run_how){.keep_all = true, .with = &with}, out, err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  free(again);
  return c;
}

iso_code st_check_unspecified(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    const synth_graph *g = s->graph[side];
    const synth_node *first = NULL;
    for (size_t i = 0; i < g->n_nodes && !first; i++)
      if (s->map[side][i].i != EG_NONE && makes_empty(&g->node[i])) first = &g->node[i];
    if (!first) continue;
    rule_tensor **leaf[2];
    st_run base = {0}, one = {0}, two = {0};
    c = st_leaves_of_draw(s, 0, leaf, err);
    if (!c) c = st_run_graph(s, side, leaf[side], &(st_run_how){.keep_all = true}, &base, err);
    if (!c) c = run_filled(s, side, &base, 1, &one, err);
    if (!c) c = run_filled(s, side, &base, 3, &two, err);
    for (size_t o = 0; o < g->n_outputs && !c; o++) {
      const rule_tensor *a = st_output(s, side, &one, o), *b = st_output(s, side, &two, o);
      if (a && b &&
          (a->numel != b->numel || !s->oracle->compare(s->oracle->ctx, a, b, s->o->rel_tol).equal))
        c = iso_fail(err, ISO_UNSUPPORTED,
                     "%s: node \"%s\": output \"%s\" depends on memory that %s leaves unspecified",
                     g->path, first->id, g->output[o].name, first->op);
    }
    st_run_free(&base);
    st_run_free(&one);
    st_run_free(&two);
    st_free_leaves(s, leaf);
  }
  return c;
}
