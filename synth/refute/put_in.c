/* Undefined values, put in where no draw made any. Two quantities have to be 0 at once for 0/0, and
 * no search finds each such input. So the graphs are run on from NaN or infinity there: if the
 * outputs differ, such an input would tell them apart, and nobody has shown that there is none. */
#include <math.h>
#include <stdlib.h>

#include "synth/refute/refute_int.h"

/* Bind the operands of `t`: constants have their values, others are `x` everywhere. Owns: `bind`'s
 * elements. */
static iso_code bind_with(const state *s, int side, const rule_term *t, const st_run *run, double x,
                          rule_tensor **bind, iso_error *err) {
  iso_code c = ISO_OK;
  const st_value_list *v = t->kind == RULE_VAR ? &run->value[t->u.i] : NULL;
  if (v && v->n == 1 && v->v[0] && !bind[t->u.i]) {
    const bool kept = s->rec[s->map[side][t->u.i].i].konst || !rule_dtype_is_float(v->v[0]->dtype);
    if (kept) bind[t->u.i] = rule_tensor_ref(v->v[0]);
    else c = rule_tensor_new(v->v[0]->dtype, &v->v[0]->shape, &bind[t->u.i], err);
    for (int64_t k = 0; !kept && !c && k < v->v[0]->numel; k++) rule_tensor_set(bind[t->u.i], k, x);
  }
  for (uint32_t i = 0; i < t->n && !c; i++) c = bind_with(s, side, t->child[i], run, x, bind, err);
  return c;
}

static bool any_nan(const rule_tensor *v) {
  for (int64_t i = 0; i < v->numel; i++)
    if (isnan(rule_tensor_get(v, i))) return true;
  return false;
}

/* Whether node `i` has a NaN where its operands are zero, negative or above one: 1/x has infinities
 * alone. An operator that takes none of these tells nothing. */
static iso_code can_be_none(state *s, int side, size_t i, const st_run *run, bool *yes,
                            iso_error *err) {
  static const double at[] = {0, -1, 2};
  const synth_graph *g = s->graph[side];
  rule_tensor **bind = calloc(g->n_nodes + 1, sizeof *bind);
  iso_code c = bind ? ISO_OK : st_no_memory(err);
  *yes = false;
  for (size_t k = 0; k < sizeof at / sizeof *at && !c && !*yes; k++) {
    rule_tensor *out = NULL;
    size_t n = 0;
    c = bind_with(s, side, g->node[i].call, run, at[k], bind, err);
    if (!c) c = s->oracle->call(s->oracle->ctx, g->node[i].call, bind, true, &out, 1, &n, err);
    if (c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED) c = ISO_OK;
    *yes = !c && out && n == 1 && rule_dtype_is_float(out->dtype) && any_nan(out);
    rule_tensor_unref(out);
    for (size_t j = 0; j < g->n_nodes; j++) {
      rule_tensor_unref(bind[j]);
      bind[j] = NULL;
    }
  }
  free(bind);
  return c;
}

/* Every other element is no number. */
static iso_code without_numbers(const rule_tensor *v, rule_tensor **out, iso_error *err) {
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t k = 0; k < v->numel && !c; k++)
    rule_tensor_set(*out, k, k % 2 ? rule_tensor_get(v, k) : NAN);
  return c;
}

/* One side again, with the nodes of a class so. Owns: `out`. */
static iso_code run_with(state *s, int side, eg_node e, const st_run *base, st_run *out,
                         iso_error *err) {
  const synth_graph *g = s->graph[side];
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value);
  bool *again = calloc(g->n_nodes + 1, 1);
  iso_code c = value && again ? ISO_OK : st_no_memory(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    const st_value_list *v = &base->value[i];
    if (n->kind != SYNTH_OP || !v->n || s->map[side][i].i == EG_NONE) continue;
    if (v->n == 1 && rule_dtype_is_float(v->v[0]->dtype) && eg_equal(s->g, s->map[side][i], e))
      c = without_numbers(v->v[0], &value[i], err);
    again[i] = value[i] || st_term_uses(n->call, again);
  }
  const st_carry with = {.from = base, .again = again, .value = value};
  if (!c) c = st_run_graph(s, side, NULL, &(st_run_how){.with = &with}, out, err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  free(again);
  return c;
}

static iso_code parts_at(state *s, eg_node e, const st_run base[2], bool *parts, iso_error *err) {
  st_run run[2] = {0};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) c = run_with(s, side, e, &base[side], &run[side], err);
  *parts = !c && st_parted(s, run) < s->graph[LEFT]->n_outputs;
  for (int side = 0; side < 2; side++) st_run_free(&run[side]);
  return c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED ? ISO_OK : c;
}

/* Whether a node of its class was no number on some draw, and the outputs the same on all such. */
static bool was_none(const state *s, const st_poles *p, eg_node e) {
  bool none = false;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      if (!p->origin[side][i] || !eg_equal(s->g, s->map[side][i], e)) continue;
      if (p->parted[side][i]) return false;
      none |= p->none[side][i];
    }
  return none;
}

iso_code st_part_where_undefined(state *s, const st_poles *p, const char **node, iso_error *err) {
  rule_tensor **leaf[2];
  st_run base[2] = {0};
  const size_t fresh = s->n_draws - 1; /* inputs that are told apart */
  *node = NULL;
  iso_code c = st_leaves_of_draw(s, fresh, leaf, err);
  if (!c) c = st_run_both(s, leaf, true, base, err);
  st_free_leaves(s, leaf);
  const bool ran = !c;
  if (c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED) c = ISO_OK;
  for (int side = 0; side < 2 && ran; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c && !*node; i++) {
      bool yes = p->origin[side][i] && !was_none(s, p, s->map[side][i]);
      if (yes) c = can_be_none(s, side, i, &base[side], &yes, err);
      if (yes && !c) c = parts_at(s, s->map[side][i], base, &yes, err);
      if (yes && !c) *node = s->graph[side]->node[i].id;
    }
  for (int side = 0; side < 2; side++) st_run_free(&base[side]);
  return c;
}
