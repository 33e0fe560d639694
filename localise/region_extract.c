/* The two regions of a divergence cut out of their graphs: the operators between tensors that both
 * sides hold and the two tensors that should be one, with the values that they read there on the
 * witness: all that a standalone script needs. */
#include "localise/localise_int.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool is_op(const synth_graph *g, size_t i) { return g->node[i].kind == SYNTH_OP; }

/* Operators that lie between the region (or the node named) and its end. In `in`, by node. */
static iso_code between(const state *s, int side, const synth_divergence *d, uint32_t end, bool *in,
                        iso_error *err) {
  const synth_graph *g = s->graph[side];
  const uint32_t *region = side == LEFT ? d->left_region : d->right_region;
  const size_t n_region = side == LEFT ? d->n_left_region : d->n_right_region;
  const int64_t named = side == LEFT ? d->left : d->right;
  bool *above = calloc(g->n_nodes + 1, 1);
  if (!above) return nomem(err);
  above[end] = true;
  for (size_t i = (size_t)end + 1; i-- > 0;)
    if (above[i] && is_op(g, i)) st_term_mark(g->node[i].call, above);
  for (size_t k = 0; k < n_region; k++) in[region[k]] = above[region[k]];
  if (named >= 0) in[named] = above[named];
  for (size_t i = 0; i <= end; i++)
    if (is_op(g, i) && above[i] && st_term_uses(g->node[i].call, in)) in[i] = true;
  for (size_t i = (size_t)end + 1; i-- > 0;) /* an output of several stands with its operator */
    if (in[i] && is_op(g, i) && rule_is_getitem(g->node[i].call->u.s))
      in[g->node[i].call->child[0]->u.i] = true;
  in[end] = true;
  free(above);
  return ISO_OK;
}

static iso_code collect(state *s, int side, const st_run *run, uint32_t end, bool *in,
                        synth_cut *cut, iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *read = calloc(g->n_nodes + 1, 1);
  uint32_t *node = iso_arena_alloc(&s->res->arena, ((size_t)end + 2) * sizeof *node),
           *given = iso_arena_alloc(&s->res->arena, ((size_t)end + 2) * sizeof *given);
  rule_tensor **value = iso_arena_alloc(&s->res->arena, ((size_t)end + 2) * sizeof *value);
  iso_code c = read && node && given && value ? ISO_OK : nomem(err);
  cut->node[side] = node;
  cut->given[side] = given;
  cut->value[side] = value;
  for (size_t i = 0; i <= end && !c; i++) {
    if (!in[i] || !is_op(g, i)) continue;
    node[cut->n_nodes[side]++] = (uint32_t)i;
    st_term_mark(g->node[i].call, read);
    cut->constants |= s->rec[s->map[side][i].i].konst;
  }
  if (!c && !is_op(g, end)) read[end] = true;
  for (size_t i = 0; i <= end && !c; i++) {
    if (!read[i] || (in[i] && is_op(g, i))) continue;
    const st_value_list *v = &run->value[i];
    if (v->n != 1)
      c = iso_fail(err, ISO_UNSUPPORTED, "node \"%s\" has no value to cut at", g->node[i].id);
    else
      given[cut->n_given[side]] = (uint32_t)i,
      value[cut->n_given[side]++] = rule_tensor_ref(v->v[0]);
  }
  cut->end[side] = end;
  free(read);
  return c;
}

static bool same_elements(const rule_tensor *a, const rule_tensor *b) {
  if (a->dtype != b->dtype || a->numel != b->numel) return false;
  double norm = 0;
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i)) < 1e30) norm = fmax(norm, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= 1e-12 * norm)) return false;
  }
  return true;
}

static const rule_term *reshaped(state *s, uint32_t i, const rule_tensor *from,
                                 const rule_tensor *to) {
  const rule_term *x = rule_var(&s->res->arena, i), *size[RULE_MAX_RANK], *call = NULL;
  if (rule_shape_eq(&from->shape, &to->shape)) return x;
  for (uint32_t k = 0; k < to->shape.rank; k++)
    size[k] = rule_int(&s->res->arena, to->shape.dim[k]);
  const rule_term *arg[] = {x, rule_list(&s->res->arena, size, to->shape.rank)};
  iso_error ignored;
  return rule_call(&s->res->arena, s->schemas, OP_RESHAPE, arg, 2, &call, &ignored) == ISO_OK
             ? call
             : NULL;
}

/* The inputs of the right region in terms of the left one's. */
static iso_code relate(state *s, synth_cut *cut, iso_error *err) {
  const size_t n = cut->n_given[LEFT];
  const rule_term **same =
      iso_arena_alloc(&s->res->arena, (cut->n_given[RIGHT] + 1) * sizeof *same);
  synth_index *x = NULL;
  iso_code c = same ? synth_index_new(cut->value[LEFT], NULL, n, s->schemas, &x, err) : nomem(err);
  for (size_t j = 0; j < cut->n_given[RIGHT] && !c; j++) {
    const rule_tensor *t = cut->value[RIGHT][j];
    same[j] = NULL;
    for (size_t i = 0; i < n && !same[j]; i++)
      if (same_elements(cut->value[LEFT][i], t))
        same[j] = reshaped(s, (uint32_t)i, cut->value[LEFT][i], t);
    synth_relation found = {0};
    if (!same[j] && t->numel > 8) c = synth_relate(x, t, NULL, &s->res->arena, &found, err);
    if (!c && !same[j]) same[j] = found.term;
  }
  synth_index_free(x);
  cut->same = same;
  return c;
}

iso_code lo_cut(state *s, const st_run run[2], const int64_t end[2], const synth_divergence *d,
                iso_error *err) {
  synth_cut *cut = iso_arena_alloc(&s->res->arena, sizeof *cut);
  if (!cut) return nomem(err);
  *cut = (synth_cut){.fails = -1, .divergence = s->res->n_divergences};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    bool *in = calloc(s->graph[side]->n_nodes + 1, 1);
    c = in ? between(s, side, d, (uint32_t)end[side], in, err) : nomem(err);
    if (!c) c = collect(s, side, &run[side], (uint32_t)end[side], in, cut, err);
    free(in);
  }
  if (!c) c = relate(s, cut, err);
  if (!c) s->res->cut = cut;
  else
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < cut->n_given[side]; i++) rule_tensor_unref(cut->value[side][i]);
  return c == ISO_NOMEM ? c : ISO_OK; /* without one the verdict stands all the same */
}

static size_t count_vars(const rule_term *t) {
  size_t n = t->kind == RULE_VAR;
  for (uint32_t k = 0; k < t->n; k++) n += count_vars(t->child[k]);
  return n;
}

static void list_vars(const rule_term *t, synth_output *out, size_t *n) {
  if (t->kind == RULE_VAR) out[(*n)++] = (synth_output){.name = "", .node = (uint32_t)t->u.i};
  for (uint32_t k = 0; k < t->n; k++) list_vars(t->child[k], out, n);
}

/* The graph is run up to the operator, for its operands. */
iso_code lo_cut_failing(state *s, int side, uint32_t node, rule_tensor *const *leaf,
                        iso_error *err) {
  const synth_graph *const whole = s->graph[side];
  const rule_term *call = whole->node[node].call;
  synth_graph part = *whole;
  synth_cut *cut = iso_arena_alloc(&s->res->arena, sizeof *cut);
  synth_output *read = calloc(count_vars(call) + 1, sizeof *read);
  bool *in = calloc(whole->n_nodes + 1, 1);
  st_run run = {0};
  if (!cut || !read || !in) {
    free(read);
    free(in);
    return nomem(err);
  }
  *cut = (synth_cut){.fails = side};
  in[node] = true;
  part.n_nodes = node;
  part.output = read;
  part.n_outputs = 0;
  list_vars(call, read, &part.n_outputs);
  s->graph[side] = &part;
  iso_code c = st_run_graph(s, side, leaf, &(st_run_how){0}, &run, err);
  s->graph[side] = whole;
  if (!c) c = collect(s, side, &run, node, in, cut, err);
  if (!c) s->res->cut = cut;
  st_run_free(&run);
  free(read);
  free(in);
  return c == ISO_NOMEM ? c : ISO_OK;
}
