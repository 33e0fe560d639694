/* Witnesses: inputs and parameters on which the outputs differ by more than rounding explains.
 *
 * Draws on which the outputs differed are confirmed by stochastic arithmetic (rounding.c). Where
 * the outputs agreed on every draw and no rule joins them, more kinds of values are tried: other
 * scales and signs, values at the graphs' literals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/leaves/leaves.h"
#include "synth/refute/refute_int.h"

static bool draws_masks(const state *s) {
  bool any = false;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !any; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_INPUT || !rule_dtype_is_float(n->dtype)) continue;
      for (int64_t k = 0; k < n->value[0]->numel && !any; k++)
        any = !st_ordinary(rule_tensor_get(n->value[0], k));
    }
  return any;
}

/* A mask that is drawn may hide a whole row together with one that is computed. What is left of
 * such a row is no number, or the kernel's own affair: it shows something only where the captured
 * inputs have such rows. */
static iso_code drop_hidden_rows(state *s, const st_run run[2], bool *found, iso_error *err) {
  st_run captured[2] = {0};
  if (!st_hides_row(s, run)) return ISO_OK;
  iso_code c = st_run_captured(s, LEFT, &captured[LEFT], err);
  if (!c) c = st_run_captured(s, RIGHT, &captured[RIGHT], err);
  if (!c) *found = st_hides_row(s, captured);
  for (int side = 0; side < 2; side++) st_run_free(&captured[side]);
  return c;
}

/* What a cast to integers makes of NaN or an infinity is the machine's own affair: draws where one
 * meets these show nothing. */
static bool casts_no_number(const state *s, const st_run run[2]) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < run[side].n; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_OP || !rule_operator_of(n->call->u.s)->cast || n->dtype == RULE_BOOL ||
          rule_dtype_is_float(n->dtype) || rule_dtype_is_complex(n->dtype))
        continue;
      if (st_infinite_operand(n->call, &run[side])) return true;
    }
  return false;
}

iso_code st_confirm(state *s, size_t d, st_difference *out, iso_error *err) {
  rule_tensor **leaf[2];
  st_run base[2] = {0};
  out->found = false;
  iso_code c = s->leaves.lonely_both && d >= s->n_sets ? st_leaves_as_loaded(s, d, leaf, err)
                                                       : st_leaves_of_draw(s, d, leaf, err);
  if (!c) c = st_run_both(s, leaf, true, base, err);
  const st_margin sc = {s->o->rel_tol, 100,
                        d < s->n_sets && !base[LEFT].overflow && !base[RIGHT].overflow};
  if (!c) c = st_differs(s, leaf, base, sc, 1000 + d * 16, out, err);
  if (!c && out->found && (d >= s->n_sets || st_by_looks(s, d))) {
    out->found = !casts_no_number(s, base);
    if (out->found && (st_by_looks(s, d) || draws_masks(s)))
      c = drop_hidden_rows(s, base, &out->found, err);
  }
  for (int side = 0; side < 2; side++) {
    if (!c && out->found) s->witness.run[side] = base[side];
    else st_run_free(&base[side]);
  }
  st_free_leaves(s, leaf);
  return c;
}

/* Operators that test for NaN and infinity (nan_to_num, isnan): over the reals they do nothing. */
static size_t count_guards(const state *s, int side) {
  size_t k = 0;
  for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
    const synth_node *n = &s->graph[side]->node[i];
    k += n->kind == SYNTH_OP && s->map[side][i].i != EG_NONE && rule_sees_undefined(n->call);
  }
  return k;
}

static bool has_float_input(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind == SYNTH_INPUT && s->map[side][i].i != EG_NONE &&
          rule_dtype_is_float(s->graph[side]->node[i].dtype))
        return true;
  return false;
}

/* Inputs that are so large that masks hide nothing show nothing: it is assumed that there are none.
 * Nor do those on which they hide more than they may, or where integers are made of no number. */
static iso_code drop_unshown(state *s, bool *found, iso_error *err) {
  bool near = false;
  iso_code c = st_near_masks(s, s->witness.run, &near, err);
  if (!c && (near || casts_no_number(s, s->witness.run))) *found = false;
  if (!c && *found && draws_masks(s)) c = drop_hidden_rows(s, s->witness.run, found, err);
  if (c || *found) return c;
  for (int side = 0; side < 2; side++) st_run_free(&s->witness.run[side]);
  return ISO_OK;
}

/* One draw. Where an operator cannot take these values, the draw says nothing. */
static iso_code try_draw(st_drawing *h, rule_tensor **leaf[2], st_difference *out, iso_error *err) {
  state *s = h->s;
  st_run base[2] = {0};
  iso_code c = st_draw_all(h, leaf, err);
  if (!c) c = st_run_both(s, leaf, h->poles && h->poles->watched, base, err);
  bool apart = false;
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && !apart; o++) {
    const rule_tensor *l = st_output(s, LEFT, &base[LEFT], o),
                      *r = st_output(s, RIGHT, &base[RIGHT], s->right_of[o]);
    apart = l && r && l->numel == r->numel &&
            (!s->oracle->compare(s->oracle->ctx, l, r, 1e-7).equal || st_far_apart(l, r));
  }
  if (!c && h->poles) st_poles_note(h->poles, h->k, !apart, base);
  /* A difference that was searched for must be clear: a thousand times the effect of rounding. */
  if (!c && apart)
    c = st_differs(
        s, leaf, base,
        (st_margin){1e-7, 1e3, h->undefined && !base[LEFT].overflow && !base[RIGHT].overflow},
        5000 + h->k * 16, out, err);
  if (!c && out->found) {
    for (int side = 0; side < 2; side++) st_run_free(&base[side]);
    c = st_run_both(s, leaf, true, s->witness.run, err);
    if (!c) c = drop_unshown(s, &out->found, err);
  }
  for (int side = 0; side < 2; side++) st_run_free(&base[side]);
  return c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED ? ISO_OK : c;
}

iso_code st_keep_witness(state *s, iso_error *err) {
  if (!s->witness.run[LEFT].value || !s->witness.run[RIGHT].value) return ISO_OK;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    if (!(s->res->witness_leaf[side] = calloc(g->n_nodes + 1, sizeof *s->res->witness_leaf[side])))
      return st_no_memory(err);
    s->res->n_leaf[side] = g->n_nodes;
    for (size_t i = 0; i < g->n_nodes; i++)
      if (g->node[i].kind != SYNTH_OP && s->witness.run[side].value[i].n == 1)
        s->res->witness_leaf[side][i] = rule_tensor_ref(s->witness.run[side].value[i].v[0]);
  }
  return ISO_OK;
}

iso_code st_try_variant(state *s, st_variant *v, bool sure, rule_tensor **leaf[2], rule_diff *diff,
                        bool *shows, iso_error *err) {
  st_drawing h = {.s = s, .of = calloc(s->n_rec + 1, sizeof *h.of)};
  rule_tensor **own[2];
  st_run base[2] = {0};
  st_difference found = {0};
  *shows = false;
  if (!s->res->witness_leaf[LEFT]) {
    free(h.of);
    return ISO_OK;
  }
  iso_code c = st_new_leaves(s, own) && h.of ? ISO_OK : st_no_memory(err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->res->witness_leaf[side][i] && s->rec[s->map[side][i].i].atom)
        st_preset(&h, s->map[side][i], s->res->witness_leaf[side][i]);
  for (size_t j = 0; j < v->n && !c; j++) st_preset(&h, v->leaf[j], v->value[j]);
  if (!c) c = st_draw_all(&h, own, err);
  for (int side = 0; side < 2 && !c; side++)
    c = st_run_graph(s, side, own[side], &(st_run_how){.anew = v->anew}, &base[side], err);
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !c && !*shows; o++) {
    const rule_tensor *l = st_output(s, LEFT, &base[LEFT], o),
                      *r = st_output(s, RIGHT, &base[RIGHT], s->right_of[o]);
    if (!l || !r || l->numel != r->numel) continue;
    found.diff = s->oracle->compare(s->oracle->ctx, l, r, 1e-7);
    *shows = !found.diff.equal && isfinite(found.diff.max_rel);
    if (*shows) v->output = o;
  }
  if (!c && sure) {
    c = st_differs(s, own, base, (st_margin){s->o->rel_tol, 100, true}, 9000, &found, err);
    *shows = found.found;
    if (*shows) v->output = found.output;
  }
  for (int side = 0; side < 2 && leaf && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      leaf[side][i] = rule_tensor_ref(own[side][i]);
  if (diff) *diff = found.diff;
  for (int side = 0; side < 2; side++) {
    st_run_free(&base[side]);
    free(own[side]);
  }
  for (size_t i = 0; h.of && i < s->n_rec; i++) rule_tensor_unref(h.of[i]);
  free(h.of);
  if (c && c != ISO_NOMEM) *shows = false;
  return c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED ? ISO_OK : c;
}

/* Draws `number`[0..n), NULL: all. `undefined`: NaN on one side only counts. `poles` may be NULL.
 */
static iso_code hunt_among(state *s, const unsigned char *number, size_t n, bool undefined,
                           st_poles *poles, st_difference *out, iso_error *err) {
  st_drawing h = {.s = s, .undefined = undefined, .poles = poles};
  rule_tensor **leaf[2];
  out->found = false;
  s->witness.set = 0;
  iso_code c = st_new_leaves(s, leaf) ? ISO_OK : st_no_memory(err);
  if (!c && !(h.of = calloc(s->n_rec + 1, sizeof *h.of))) c = st_no_memory(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->map[side][i].i != EG_NONE && s->graph[side]->node[i].kind == SYNTH_OP)
        st_collect_literals(&h, s->graph[side]->node[i].call);
  for (size_t d = 0; d < n && !c && !out->found; d++) {
    if (st_stopped(s)) break;
    h.k = number ? number[d] : d;
    if (s->o->progress) s->o->progress(s->o->ctx, "search for a difference", d, n);
    c = try_draw(&h, leaf, out, err);
    s->res->coverage.n_searched++;
    st_forget_draw(&h);
  }
  free(h.of);
  free(leaf[LEFT]);
  free(leaf[RIGHT]);
  return c;
}

iso_code st_hunt(state *s, st_difference *out, iso_error *err) {
  return hunt_among(s, NULL, ST_DRAWS, count_guards(s, LEFT) != count_guards(s, RIGHT), NULL, out,
                    err);
}

iso_code st_hunt_poles(state *s, st_poles *p, st_difference *out, iso_error *err) {
  return hunt_among(s, NULL, p->n_draws, true, p, out, err);
}

/* Without any guard, a number is undefined on one side only where the other side leaves it out (a
 * mask that multiplies, and one that selects): a few inputs show that, as far as inputs can be zero
 * at all. Or it is undefined for some signs (the root of a product, and a product of roots): inputs
 * and parameters take either. */
iso_code st_hunt_undefined(state *s, bool signs, st_difference *out, iso_error *err) {
  static const unsigned char few[] = {ST_ZEROS_DRAW,   ST_ZERO_ROW_DRAW,  ST_TIES_DRAW,
                                      ST_DRAW_KINDS,   ST_DRAW_KINDS + 1, ST_ALL_NEGATIVE_DRAW,
                                      ST_VECTORS_DRAW, ST_NEGATIVE_DRAW};
  enum { FEW = sizeof few, OF_SIGNS = 3 };
  unsigned char zeros[FEW + ST_SIGNS];
  memcpy(zeros, few, FEW);
  for (int i = 0; i < ST_SIGNS; i++) zeros[FEW + i] = (unsigned char)(ST_SIGNS_DRAW + i);
  const size_t n = signs ? sizeof zeros : FEW - OF_SIGNS;
  out->found = false;
  if (count_guards(s, LEFT) || count_guards(s, RIGHT))
    return hunt_among(s, NULL, ST_DRAWS, true, NULL, out, err);
  return has_float_input(s) ? hunt_among(s, zeros, n, true, NULL, out, err) : ISO_OK;
}

static bool any_reads_zero_sign(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP && s->map[side][i].i != EG_NONE && rule_reads_zero_sign(n->call))
        return true;
    }
  return false;
}

iso_code st_hunt_zero_signs(state *s, st_difference *out, iso_error *err) {
  unsigned char number[ST_ZERO_SIGNS];
  out->found = false;
  if (!has_float_input(s) || !any_reads_zero_sign(s)) return ISO_OK;
  for (int i = 0; i < ST_ZERO_SIGNS; i++) number[i] = (unsigned char)(ST_ZERO_SIGNS_DRAW + i);
  return hunt_among(s, number, ST_ZERO_SIGNS, false, NULL, out, err);
}
