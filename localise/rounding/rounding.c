/* Rounding of two captures, and whether it explains how far they are apart. */
#include "localise/rounding/rounding_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As far as the largest of the draws, and as far again: few elements make few figures. */
static const double margin = 2;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static uint32_t named(const synth_graph *g, const char *name) {
  for (size_t o = 0; o < g->n_outputs; o++)
    if (strcmp(g->output[o].name, name) == 0) return (uint32_t)o;
  return UINT32_MAX;
}

/* The pairs whose two outputs are graphs' own. */
static iso_code pair_outputs(lr_cuts *c, rounding *out, rounding_output **pair, iso_error *err) {
  const synth_result *r = c->result;
  *pair = iso_arena_alloc(&out->arena, (r->n_pairs + 1) * sizeof **pair);
  for (int side = 0; side < 2; side++)
    c->output[side] = calloc(r->n_pairs + 1, sizeof *c->output[side]);
  if (!*pair || !c->output[0] || !c->output[1]) return nomem(err);
  for (size_t i = 0; i < r->n_pairs; i++) {
    const uint32_t l = named(c->graph[0], r->pair[i].left),
                   x = named(c->graph[1], r->pair[i].right);
    if (l == UINT32_MAX || x == UINT32_MAX) continue;
    (*pair)[c->n_pairs] = (rounding_output){.left = c->graph[0]->output[l].name,
                                            .right = c->graph[1]->output[x].name};
    c->output[0][c->n_pairs] = l;
    c->output[1][c->n_pairs++] = x;
  }
  out->output = *pair;
  out->n_outputs = c->n_pairs;
  return ISO_OK;
}

/* ---- figures ---- */

/* How far two draws move the outputs apart that are exact otherwise. */
static double drawn_apart(const rule_tensor *x, const rule_tensor *a, const rule_tensor *y,
                          const rule_tensor *b) {
  double apart = 0, size = 0;
  if (x->numel != y->numel) return INFINITY;
  for (int64_t i = 0; i < x->numel; i++) {
    const double e = rule_tensor_get(a, i), by = rule_tensor_get(x, i) - e,
                 other = rule_tensor_get(y, i) - rule_tensor_get(b, i);
    if (!isfinite(by - other) || fabs(e) >= 1e30) continue;
    apart += (by - other) * (by - other);
    size += e * e;
  }
  return apart > 0 ? sqrt(apart / (size > 0 ? size : 1)) : 0;
}

/* How much more kernels lose than rounding their results does, because they add up in the format of
 * these: all cuts together, so that the largest errors count. */
static double of_kernels(const lr_cuts *c) {
  double measured = 0, drawn = 0;
  for (size_t k = 0; k < c->n; k++)
    for (int side = 0; side < 2; side++) {
      const double m = c->cut[k].nearest[side], d = c->cut[k].own[side];
      if (isfinite(m) && isfinite(d)) measured += m * m, drawn += d * d;
    }
  return measured > drawn && drawn > 0 ? sqrt(measured / drawn) : 1;
}

static void measure(const lr_cuts *c, const lr_values v[2], size_t p, rounding_output *out,
                    double *most) {
  const uint32_t l = c->output[0][p], r = c->output[1][p];
  const rule_tensor *exact[2] = {v[0].exact[l], v[1].exact[r]},
                    *own[2] = {v[0].captured[l], v[1].captured[r]};
  const double factor = of_kernels(c);
  double sum = 0;
  *most = 0;
  for (int side = 0; side < 2; side++)
    if (exact[side] && own[side])
      out->error[side] = lr_distance(own[side], exact[side], exact[side]);
  if (!exact[0] || !exact[1]) return;
  out->exact = lr_distance(exact[0], exact[1], exact[0]);
  out->difference = lr_distance(own[0], own[1], exact[0]);
  for (size_t k = 0; k < LR_DRAWS; k++) {
    const double d = drawn_apart(v[0].drawn[k][l], exact[0], v[1].drawn[k][r], exact[1]) * factor;
    sum += d * d / LR_DRAWS;
    if (d > *most) *most = d;
  }
  out->predicted = sqrt(sum);
}

/* ---- words ---- */

static const rounding_loss *loss_of(const rounding *out, size_t p) {
  const rounding_loss *most = NULL;
  for (size_t i = 0; i < out->n_losses; i++)
    if (out->loss[i].share[p] >= ROUNDING_LEAST_SHARE &&
        (!most || out->loss[i].share[p] > most->share[p]))
      most = &out->loss[i];
  return most;
}

static const char *why(rounding *out, size_t p, const rounding_output *o, double allowed) {
  const rounding_loss *l = loss_of(out, p);
  static const char no[] = "rounding does not explain the difference";
  if (l) return iso_arena_printf(&out->arena, "%s: %s", no, l->text);
  if (o->difference <= allowed) return "rounding explains the difference";
  if (isinf(o->difference))
    return iso_arena_printf(&out->arena, "%s: there are numbers on one side only", no);
  if (o->exact > allowed)
    return iso_arena_printf(&out->arena,
                            "%s: in float64 the two are %.2g apart, where rounding makes %.2g", no,
                            o->exact, o->predicted);
  return iso_arena_printf(&out->arena, "%s: it is %.2g, and stochastic rounding predicts %.2g", no,
                          o->difference, o->predicted);
}

static iso_code conclude(lr_cuts *c, rounding_output *pair, const double *most, rounding *out,
                         iso_error *err) {
  const bool same = c->result->verdict == SYNTH_EQUIVALENT;
  out->explained = true;
  out->text = "rounding explains the difference";
  for (size_t p = 0; p < c->n_pairs; p++) {
    rounding_output *o = &pair[p];
    /* Where the functions are one, exact results differ by how constants were stored. */
    const double allowed = margin * most[p] + (same ? margin * o->exact : 0);
    o->explained = o->difference <= allowed && !loss_of(out, p);
    if (!(o->text = why(out, p, o, allowed))) return nomem(err);
    if (out->explained && !o->explained) out->text = o->text;
    out->explained &= o->explained;
  }
  return ISO_OK;
}

static iso_code points(const lr_cuts *c, rounding *out, iso_error *err) {
  const double factor = of_kernels(c);
  rounding_point *all = iso_arena_alloc(&out->arena, (c->n + 1) * sizeof *all);
  if (!all) return nomem(err);
  for (size_t k = 0; k < c->n; k++) {
    const lr_cut *x = &c->cut[k];
    all[k] = (rounding_point){.node = {x->node[0], x->node[1]},
                              .error = {x->error[0], x->error[1]},
                              .difference = x->difference,
                              .predicted = factor * hypot(x->spread[0], x->spread[1])};
  }
  out->point = all;
  out->n_points = c->n;
  return ISO_OK;
}

/* ---- all of it ---- */

static iso_code measure_all(lr_cuts *c, lr_values v[2], rounding *out, iso_error *err) {
  rounding_output *pair = NULL;
  iso_code code = pair_outputs(c, out, &pair, err);
  if (!code) code = lr_cuts_find(c, err);
  for (int side = 0; side < 2 && !code; side++) code = lr_run(c, side, &v[side], err);
  double *most = calloc(c->n_pairs + 1, sizeof *most);
  if (!most && !code) code = nomem(err);
  for (size_t p = 0; p < c->n_pairs && !code; p++) measure(c, v, p, &pair[p], &most[p]);
  if (!code) code = lr_find_losses(c, pair, out, err);
  if (!code) code = conclude(c, pair, most, out, err);
  if (!code) code = points(c, out, err);
  free(most);
  return code;
}

static iso_code nothing(const char *why, rounding *out, iso_error *err) {
  rounding_free(out);
  out->missing = iso_arena_strdup(&out->arena, why);
  out->text = iso_arena_printf(&out->arena, "it was not measured: %s", why);
  return out->missing && out->text ? ISO_OK : nomem(err);
}

iso_code rounding_measure(const synth_graph *left, const synth_graph *right, const synth_result *r,
                          const rule_oracle *oracle, const synth_options *o, rounding *out,
                          iso_error *err) {
  lr_cuts c = {.graph = {left, right}, .result = r, .oracle = oracle, .o = o};
  lr_values v[2] = {{0}, {0}};
  iso_error why;
  *out = (rounding){0};
  if (!r->class_of[0] || !r->class_of[1]) return nothing("the graphs were not compared", out, err);
  const iso_code code = measure_all(&c, v, out, &why);
  for (int side = 0; side < 2; side++) lr_values_free(&c, side, &v[side]);
  lr_cuts_free(&c);
  if (code == ISO_NOMEM) return nomem(err);
  return code ? nothing(why.msg, out, err) : ISO_OK;
}

void rounding_free(rounding *r) {
  iso_arena_fini(&r->arena);
  *r = (rounding){0};
}
