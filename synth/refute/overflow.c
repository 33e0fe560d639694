/* Numbers that overflow. Proofs are about real numbers, of which none is infinite, and where
 * nothing looks at infinities a difference there is one of rounding. Where an operator does (isinf,
 * nan_to_num, x * 0 == 0), the graphs are run there. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/refute/refute_int.h"

/* ---- draws ---- */

/* Draws of one size and sign; further ones have some among others. */
enum { EVERYWHERE = 8, AS_CAPTURED = ST_LARGE_DRAWS - 1 };

static double large(size_t k) {
  static const double size[] = {1e160, 1.7e308, 800, 1e80};
  return size[k / 2 % (sizeof size / sizeof *size)] * (k % 2 ? -1 : 1);
}

iso_code st_draw_large(size_t k, rule_tensor *captured, iso_rng *rng, rule_tensor **out,
                       iso_error *err) {
  iso_code c = rule_tensor_new(RULE_F64, &captured->shape, out, err);
  for (int64_t i = 0; i < captured->numel && !c; i++)
    rule_tensor_set(*out, i,
                    k == AS_CAPTURED             ? rule_tensor_get(captured, i)
                    : k < EVERYWHERE             ? large(k)
                    : iso_rng_below(rng, 3) == 0 ? large(iso_rng_below(rng, EVERYWHERE))
                                                 : rule_tensor_get(captured, i));
  return c;
}

/* ---- what operators are told ---- */

static bool is_real(const rule_tensor *v) {
  return v && rule_dtype_is_float(v->dtype) && !rule_dtype_is_complex(v->dtype);
}

static bool any_infinite(const rule_tensor *v) {
  for (int64_t i = 0; is_real(v) && i < v->numel; i++)
    if (!isfinite(rule_tensor_get(v, i))) return true;
  return false;
}

bool st_infinite_operand(const rule_term *t, const st_run *run) {
  const st_value_list *v = t->kind == RULE_VAR ? &run->value[t->u.i] : NULL;
  if (v && v->n == 1 && any_infinite(v->v[0])) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (st_infinite_operand(t->child[i], run)) return true;
  return false;
}

static bool reached(const state *s, const st_poles *p, const st_run run[2]) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < run[side].n; i++)
      if (p->tells[side][i] && st_infinite_operand(s->graph[side]->node[i].call, &run[side]))
        return true;
  return false;
}

/* The same numbers but for rounding, and no number at the same places. */
static bool same(const state *s, const rule_tensor *l, const rule_tensor *r) {
  if (!l || !r || l->numel != r->numel) return false;
  return s->oracle->compare(s->oracle->ctx, l, r, 1e-7).equal && !st_far_apart(l, r);
}

size_t st_parted(const state *s, const st_run run[2]) {
  size_t o = 0;
  while (o < s->graph[LEFT]->n_outputs && same(s, st_output(s, LEFT, &run[LEFT], o),
                                               st_output(s, RIGHT, &run[RIGHT], s->right_of[o])))
    o++;
  return o;
}

/* ---- because of what they are told ---- */

/* The largest number for infinities, and 0 for NaN. */
static iso_code made_finite(rule_tensor *v, rule_tensor **out, iso_error *err) {
  if (!any_infinite(v)) return *out = rule_tensor_ref(v), ISO_OK;
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t i = 0; i < v->numel && !c; i++) {
    const double x = rule_tensor_get(v, i);
    rule_tensor_set(*out, i, isnan(x) ? 0 : fmax(-DBL_MAX, fmin(x, DBL_MAX)));
  }
  return c;
}

/* Bind the operands of `t`, made finite but where they are so on all inputs. Owns: `bind`'s
 * elements. */
static iso_code bind_finite(const state *s, int side, const rule_term *t, const st_run *run,
                            rule_tensor **bind, iso_error *err) {
  iso_code c = ISO_OK;
  const st_value_list *v = t->kind == RULE_VAR ? &run->value[t->u.i] : NULL;
  if (v && v->n && v->v[0] && !bind[t->u.i]) {
    if (s->rec[s->map[side][t->u.i].i].konst) bind[t->u.i] = rule_tensor_ref(v->v[0]);
    else c = made_finite(v->v[0], &bind[t->u.i], err);
  }
  for (uint32_t i = 0; i < t->n && !c; i++) c = bind_finite(s, side, t->child[i], run, bind, err);
  return c;
}

/* Runs one side again, with the results that its telling operators give for finite operands. Owns:
 * `out`. */
static iso_code run_untold(state *s, int side, const st_poles *p, const st_run *base, st_run *out,
                           iso_error *err) {
  const synth_graph *g = s->graph[side];
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value),
              **bind = calloc(g->n_nodes + 1, sizeof *bind);
  bool *again = calloc(g->n_nodes + 1, 1);
  iso_code c = value && bind && again ? ISO_OK : st_no_memory(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP || !base->value[i].n) continue;
    again[i] = st_term_uses(n->call, again);
    if (!p->tells[side][i] && !p->steady[side][i]) continue;
    if (again[i] || base->value[i].n != 1) continue;
    if (p->steady[side][i]) {
      value[i] = rule_tensor_ref(st_val(s, s->map[side][i], 0));
      again[i] = true;
      continue;
    }
    size_t n_out = 0;
    memset(bind, 0, g->n_nodes * sizeof *bind);
    c = bind_finite(s, side, n->call, base, bind, err);
    if (!c) c = s->oracle->call(s->oracle->ctx, n->call, bind, true, &value[i], 1, &n_out, err);
    for (size_t k = 0; k < g->n_nodes; k++) rule_tensor_unref(bind[k]);
    again[i] = true;
  }
  if (!c)
    c = st_run_graph(
        s, side, NULL,
        &(st_run_how){.with = &(st_carry){.from = base, .again = again, .value = value}}, out, err);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  free(bind);
  free(again);
  return c;
}

static iso_code by_telling(state *s, const st_poles *p, const st_run base[2], bool *yes,
                           iso_error *err) {
  st_run run[2] = {0};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    c = run_untold(s, side, p, &base[side], &run[side], err);
  *yes = !c && st_parted(s, run) == s->graph[LEFT]->n_outputs;
  for (int side = 0; side < 2; side++) st_run_free(&run[side]);
  return c;
}

/* ---- the search ---- */

/* Where outputs are numbers that differ: how far. */
static bool numbers_differ(const state *s, const st_run base[2], size_t o, rule_diff *diff) {
  const rule_tensor *l = st_output(s, LEFT, &base[LEFT], o),
                    *r = st_output(s, RIGHT, &base[RIGHT], s->right_of[o]);
  if (!l || !r || l->numel != r->numel || any_infinite(l) || any_infinite(r)) return false;
  *diff = s->oracle->compare(s->oracle->ctx, l, r, 1e-7);
  return !diff->equal;
}

static iso_code keep_witness(state *s, rule_tensor **leaf[2], st_difference *out, iso_error *err) {
  bool near = false;
  iso_code c = st_run_both(s, leaf, true, s->witness.run, err);
  if (!c) c = st_near_masks(s, s->witness.run, &near, err);
  if (c || !near) return c;
  out->found = false; /* of masks that hide nothing */
  for (int side = 0; side < 2; side++) st_run_free(&s->witness.run[side]);
  return c;
}

static iso_code try_large(st_drawing *h, rule_tensor **leaf[2], const st_poles *p, bool *apart,
                          st_difference *out, iso_error *err) {
  state *s = h->s;
  st_run base[2] = {0};
  bool told = false;
  iso_code c = st_draw_all(h, leaf, err);
  if (!c) c = st_run_both(s, leaf, true, base, err);
  const size_t o = c ? s->graph[LEFT]->n_outputs : st_parted(s, base);
  if (!c && o < s->graph[LEFT]->n_outputs) {
    const bool tells = reached(s, p, base);
    c = by_telling(s, p, base, &told, err);
    const bool differ = !c && told && numbers_differ(s, base, o, &out->diff);
    const bool overflows = base[LEFT].overflow || base[RIGHT].overflow;
    rule_diff captured;
    *apart |= tells ? p->told : differ;
    *apart |= h->k == AS_CAPTURED && overflows && numbers_differ(s, base, o, &captured);
    out->found = differ && tells;
    out->output = o;
    if (out->found) c = keep_witness(s, leaf, out, err);
  }
  for (int side = 0; side < 2; side++) st_run_free(&base[side]);
  return c == ISO_TORCH || c == ISO_RANGE || c == ISO_UNSUPPORTED ? ISO_OK : c;
}

iso_code st_hunt_large(state *s, const st_poles *p, bool *apart, st_difference *out,
                       iso_error *err) {
  st_drawing h = {.s = s, .large = true, .of = calloc(s->n_rec + 1, sizeof *h.of)};
  rule_tensor **leaf[2];
  *apart = false;
  out->found = false;
  s->witness.set = 0;
  iso_code c = st_new_leaves(s, leaf) && h.of ? ISO_OK : st_no_memory(err);
  for (h.k = 0; h.k < ST_LARGE_DRAWS && !c && !out->found && !st_stopped(s); h.k++) {
    if (s->o->progress)
      s->o->progress(s->o->ctx, "search where numbers overflow", h.k, ST_LARGE_DRAWS);
    c = try_large(&h, leaf, p, apart, out, err);
    s->res->coverage.n_searched++;
    st_forget_draw(&h);
  }
  free(h.of);
  free(leaf[LEFT]);
  free(leaf[RIGHT]);
  return c;
}
