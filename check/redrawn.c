/* Both captures run on other values of free leaves, related as the certificate relates them.
 *
 * Captured values say too much: a relation of leaves, a rule or a step that is false may hold of
 * them. So inputs and parameters are drawn again, the elements that relations make one with one
 * value, and the outputs must agree there as they do where they were captured. Where they differ,
 * they must do so again with a little noise in all leaves, and by more than the noise moves them:
 * ill-conditioned outputs say nothing.
 *
 * And outputs must be NaN together. Rules hold where both of their sides are numbers, so that
 * nan_to_num(x) is x as far as any proof goes, and a chain of such steps joins a graph that guards
 * against 0/0 with one that does not: rows of zeros wherever an input is of floats, and all leaves
 * drawn anew where a graph tests for numbers that are NaN or infinite. Draws that an operator
 * cannot take, or from which numbers overflow, say nothing.
 *
 * Integers are some that were captured, or that the graphs compare with. Of models of many elements
 * only small leaves are drawn: matrices vary where they were captured, norms and biases do not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/redrawn_int.h"
#include "rules/operators.h"

/* On which values are compared, too. */
static const draw_kind plain[] = {{NORMAL, NORMAL, 1}, {HALVES, CAPTURED, 1}};
enum { N_PLAIN = sizeof plain / sizeof *plain, FEW = 1 << 12, MORE_DRAWS = 8 * N_PLAIN };
/* Where the graphs compare, clamp or fill (edges.c). */
static const draw_kind at_edges = {AT_EDGES, AT_EDGES, 1};
enum { EDGE_DRAWS = 64, FEW_EDGE_DRAWS = 8, SOME = 1 << 17 };
enum { MANY = 1 << 24 }; /* elements of a model */

/* The first ones show calls that are undefined without any guard; further ones, calls that
 * parameters can make undefined. */
static const draw_kind kinds[] = {{ZEROS, CAPTURED, 1},
                                  {ZERO_ROW, CAPTURED, 1},
                                  {TIES, CAPTURED, 1},
                                  {ANY, CAPTURED, 1},
                                  {ANY, CAPTURED, 1},
                                  {HALVES, CAPTURED, 1},
                                  {NORMAL, CAPTURED, 1},
                                  {POSITIVE, CAPTURED, 1},
                                  {NEGATIVE, CAPTURED, 1},
                                  {NORMAL, NORMAL, 1},
                                  {NORMAL, POSITIVE, 1},
                                  {NORMAL, NEGATIVE, 1},
                                  {TIES, TIES, 1},
                                  {ZEROS, ZEROS, 1},
                                  {POSITIVE, POSITIVE, 64},
                                  {NEGATIVE, NEGATIVE, 64},
                                  {NORMAL, NORMAL, 16},
                                  {ANY, CAPTURED, 1},
                                  {ANY, CAPTURED, 1},
                                  {ANY, ANY, 1},
                                  {ANY, ANY, 1},
                                  {ANY, ANY, 1},
                                  {ANY, ANY, 64},
                                  {ANY, ANY, 64},
                                  {POSITIVE, NEGATIVE, 1},
                                  {NEGATIVE, NEGATIVE, 1}};
enum {
  N_KINDS = sizeof kinds / sizeof *kinds,
  N_UNGUARDED = 5,
  N_SHAKEN = 3,
  N_POLE_ROWS = 24,
  N_LARGE = 16
};

static const double output_tol = 1e-6; /* as where they were captured */
static const double ordinary = 1e30;   /* beyond are masks, and numbers in place of infinity */
static const double rounding =
    0x1p-40; /* what a number cancelled to by chance, it does not with this much noise before it */

/* ---- when ---- */

static bool captures_guard(const chk_state *k) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < k->graph[side]->n_nodes; i++) {
      const rule_term *call = k->graph[side]->node[i].call;
      if (call && rule_sees_undefined(call)) return true;
    }
  return false;
}

static bool has_float_input(chk_state *k) {
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const chk_term *t = &k->term[i];
    if (t->node && t->node->kind == CAP_INPUT && rule_dtype_is_float(t->node->value->dtype) &&
        chk_leaf_is_free(k, i))
      return true;
  }
  return false;
}

/* ---- running ---- */

static bool is_no_number(double x) { return !isfinite(x); }

/* Disturbs an operator's result, but for numbers that are too short to be rounded, and for 0. */
static iso_code shake(chk_state *k, uint32_t id, iso_rng *rng) {
  iso_code c = ISO_OK;
  for (size_t n = 0; n < k->here.real[id].n && !c; n++) {
    rule_tensor *t = k->here.real[id].v[n], *now;
    if (t->dtype != RULE_F64) continue;
    if ((c = rule_tensor_new(t->dtype, &t->shape, &now, k->err))) break;
    for (int64_t i = 0; i < t->numel; i++) {
      const double x = rule_tensor_get(t, i), units = ldexp(x, 20);
      const bool exact = !(fabs(x) < ordinary) || (fabs(units) < 0x1p40 && units == floor(units));
      rule_tensor_set(now, i, exact ? x : x * (1 + rounding * (2 * iso_rng_uniform(rng) - 1)));
    }
    rule_tensor_unref(t);
    k->here.real[id].v[n] = now;
  }
  return c;
}

iso_code chk_run_drawn(chk_state *k, look *x, bool *done) {
  iso_code c = ISO_OK;
  bool unspecified = false;
  x->overflow = false;
  k->here.own = 0;
  for (uint32_t i = 0; i < k->n_terms && !c && !chk_settled(k); i++) {
    const bool stays = !k->term[i].call && !k->here.drawn[i] && k->here.real[i].n == 1;
    if (!x->need[i] || stays) continue; /* what is not drawn has its value from the captured run */
    c = chk_run_term(k, i);
    if (c || chk_settled(k) || !k->term[i].call) continue;
    x->overflow |= chk_overflows(k, i);
    unspecified |= chk_casts_no_number(k, i);
    if (x->shake) c = shake(k, i, x->shake);
    if (!c && x->vanishes) c = chk_vanish(k, x, i);
  }
  *done = !c && !chk_settled(k) && !unspecified && (x->large || !x->overflow);
  chk_unsettle(k); /* an operator that cannot take these values */
  return c;
}

/* The first output from `from` on that is NaN somewhere on one side, and a number there on the
 * other; n_outputs: none. */
static size_t parted(const chk_state *k, size_t from) {
  for (size_t o = from; o < k->cert.n_outputs; o++) {
    const chk_values *a = &k->here.real[k->cert.output[o].a],
                     *b = &k->here.real[k->cert.output[o].b];
    if (a->n != 1 || b->n != 1 || !rule_dtype_is_float(a->v[0]->dtype) ||
        a->v[0]->numel != b->v[0]->numel)
      continue;
    for (int64_t i = 0; i < a->v[0]->numel; i++) {
      const double x = rule_tensor_get(a->v[0], i), y = rule_tensor_get(b->v[0], i);
      if (isnan(x) != isnan(y) && (isfinite(x) || isfinite(y))) return o;
    }
  }
  return k->cert.n_outputs;
}

/* ---- masks ---- */

static bool has_masks(chk_state *k) {
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const chk_term *t = &k->term[i];
    if (t->node && t->node->kind == CAP_INPUT && rule_dtype_is_float(t->node->value->dtype) &&
        chk_any_number(chk_captured(k, i, k->here.set), chk_hides))
      return true;
  }
  return false;
}

bool chk_hides_row(const chk_state *k) {
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const rule_term *call = k->term[i].node ? k->term[i].call : NULL;
    for (uint32_t a = 0; call && a < call->n; a++) {
      if (call->child[a]->kind != RULE_VAR) continue;
      const chk_values *v = &k->here.real[call->child[a]->u.i];
      if (v->n == 1 && rule_mask_hides_row(call, a, v->v[0])) return true;
    }
  }
  return false;
}

/* Masks of an input that were put elsewhere may hide a row together with one that is computed.
 * What is left of it is the kernel's own affair. */
static bool says_nothing(const chk_state *k, const look *x) { return x->masks && chk_hides_row(k); }

/* ---- values that differ ---- */

static bool all_finite(const rule_tensor *t) { return !chk_any_number(t, is_no_number); }

static const rule_tensor *output(const chk_state *k, uint32_t term) {
  const chk_values *v = &k->here.real[term];
  return v->n == 1 && all_finite(v->v[0]) ? v->v[0] : NULL;
}

/* How far output `o` of the right is from the left one's, relative; 0 where that says nothing. */
static double distance(const chk_state *k, size_t o) {
  const rule_tensor *a = output(k, k->cert.output[o].a), *b = output(k, k->cert.output[o].b);
  if (!a || !b || a->numel != b->numel || rule_dtype_is_complex(a->dtype)) return 0;
  const rule_diff d = k->oracle->compare(k->oracle->ctx, a, b, output_tol);
  return d.equal ? 0 : d.max_rel;
}

/* The first output from `o` on that differs; n_outputs: none. */
static size_t differs(const chk_state *k, size_t o) {
  while (o < k->cert.n_outputs && distance(k, o) == 0) o++;
  return o;
}

/* Again with noise: it must differ by more than the noise moves it. Returns: in `sure` whether it
 * does. */
static iso_code confirm(chk_state *k, look *x, size_t number, size_t o, iso_rng *rng, bool *sure) {
  enum { MORE = 16 };
  rule_tensor *before = rule_tensor_ref(k->here.real[k->cert.output[o].a].v[0]);
  iso_code c = ISO_OK;
  *sure = true;
  for (int n = 0; n < N_SHAKEN && !c && *sure; n++) {
    c = chk_put_drawn(k, x, number, rounding, rng);
    if (!c) c = chk_run_drawn(k, x, sure);
    const rule_tensor *now = *sure && !c ? output(k, k->cert.output[o].a) : NULL;
    *sure = now && now->numel == before->numel;
    if (!*sure) break;
    const double moved = k->oracle->compare(k->oracle->ctx, before, now, 0).max_rel;
    *sure = distance(k, o) > MORE * moved;
  }
  rule_tensor_unref(before);
  return c;
}

/* ---- draws ---- */

iso_code chk_draw(chk_state *k, look *x, const draw_kind *as, size_t number, iso_rng *rng,
                  bool *done) {
  *done = false;
  x->number = number;
  memset(x->is_drawn, 0, x->elements.n);
  x->outside = false;
  for (uint32_t leaf = 0; leaf < k->n_terms; leaf++)
    if (chk_leaf_is_free(k, leaf) &&
        !rule_dtype_is_complex(chk_captured(k, leaf, k->here.set)->dtype))
      chk_draw_elements(k, x, leaf, as, rng);
  iso_code c = chk_put_drawn(k, x, number, 0, rng);
  return c || x->outside ? c : chk_run_drawn(k, x, done);
}

/* A difference that rounding explains is listed, once for each output. */
static iso_code excuse(chk_state *k, look *x, size_t o, const char *words) {
  const size_t set = k->here.set;
  if (x->excused[o]) return ISO_OK;
  x->excused[o] = true;
  k->here.set = 0; /* what is said of the first set is listed */
  const iso_code c = chk_assume(
      k, RULE_ASSUMES_ROUNDING,
      iso_arena_printf(k->arena,
                       "outputs %s and %s differ%s on other inputs and parameters than the "
                       "captured ones, where rounding moves them as far",
                       k->cert.output[o].left, k->cert.output[o].right, words));
  k->here.set = set;
  return c;
}

/* Output `o` differs on draw `number`: an open order or rounding explains it, or it is refused. */
static iso_code weigh(chk_state *k, look *x, size_t number, size_t o, iso_rng *rng) {
  const chk_output *out = &k->cert.output[o];
  const double by = distance(k, o);
  bool sure, open = false, rounds = false;
  iso_code c = confirm(k, x, number, o, rng, &sure);
  if (!c && sure) c = chk_order_explains(k, x->need, out, output_tol, &open);
  if (c || !sure || open) return c;
  c = chk_rounding_explains(k, x->need, out, output_tol, &rounds);
  if (!c && rounds) {
    char words[48];
    snprintf(words, sizeof words, " by %.3g (relative)", by);
    return excuse(k, x, o, words);
  }
  if (c) return c;
  return chk_settle(k, CHK_REFUSED,
                    "outputs %s and %s differ by %.3g (relative) on other inputs and parameters "
                    "than the captured ones",
                    out->left, out->right, by);
}

/* Values agree on draw `number` of this kind. */
static iso_code try_values(chk_state *k, look *x, const draw_kind *as, size_t number) {
  iso_rng rng = iso_rng_new(UINT64_C(0x72656472) + k->o->seed, number);
  bool done;
  iso_code c = chk_draw(k, x, as, number, &rng, &done);
  for (size_t o = !c && done && !says_nothing(k, x) ? differs(k, 0) : k->cert.n_outputs;
       o < k->cert.n_outputs && !c && !chk_settled(k); o = differs(k, o + 1))
    c = weigh(k, x, number, o, &rng);
  return c;
}

/* An output that parts must do so with noise in the leaves, too: the root of a variance of equal
 * numbers may be of -1e-17. */
static iso_code try_undefined(chk_state *k, look *x, size_t number) {
  iso_rng rng = iso_rng_new(UINT64_C(0x756e646566), number);
  bool done;
  iso_code c = chk_draw(k, x, &kinds[number], number, &rng, &done);
  const size_t o = !c && done && !says_nothing(k, x) ? parted(k, 0) : k->cert.n_outputs;
  for (int n = 0; n < N_SHAKEN && !c && done && o < k->cert.n_outputs; n++) {
    c = chk_put_drawn(k, x, number, rounding, &rng);
    if (!c) c = chk_run_drawn(k, x, &done);
    done = done && parted(k, o) == o;
  }
  bool rounds = false;
  if (!c && done && o < k->cert.n_outputs)
    c = chk_rounding_explains(k, x->need, &k->cert.output[o], output_tol, &rounds);
  if (!c && rounds) return excuse(k, x, o, " in what is no number");
  if (c || !done || o == k->cert.n_outputs) return c;
  return chk_settle(k, CHK_REFUSED,
                    "outputs %s and %s are equal as real numbers, and on some inputs one is NaN "
                    "where the other is not",
                    k->cert.output[o].left, k->cert.output[o].right);
}

/* ---- at poles ---- */

/* The first output from `from` on that differs there, by far: NaN on one side, or other numbers;
 * of large ones, an infinity too. */
static size_t apart_at_pole(const chk_state *k, const look *x, size_t from) {
  for (size_t o = from; o < k->cert.n_outputs; o++) {
    const chk_values *a = &k->here.real[k->cert.output[o].a],
                     *b = &k->here.real[k->cert.output[o].b];
    if (a->n != 1 || b->n != 1 || a->v[0]->numel != b->v[0]->numel ||
        rule_dtype_is_complex(a->v[0]->dtype))
      continue;
    double size = 0;
    for (int64_t i = 0; i < a->v[0]->numel; i++)
      if (fabs(rule_tensor_get(a->v[0], i)) < ordinary)
        size = fmax(size, fabs(rule_tensor_get(a->v[0], i)));
    for (int64_t i = 0; i < a->v[0]->numel; i++) {
      const double l = rule_tensor_get(a->v[0], i), r = rule_tensor_get(b->v[0], i);
      if (isnan(l) != isnan(r) && (isfinite(l) || isfinite(r))) return o;
      if (x->large && isinf(l) != isinf(r)) return o;
      if (isfinite(l) && isfinite(r) && fabs(l - r) > output_tol * fmax(size, fabs(r))) return o;
    }
  }
  return k->cert.n_outputs;
}

/* Both sides of an output as they were without noise, and how far each element moved with it: a
 * gradient that is zero but for rounding is as far apart as it moves, at poles as elsewhere. */
typedef struct moved {
  rule_tensor *was[2];
  double *by;
} moved;

static iso_code note_values(const chk_state *k, size_t o, moved *m, iso_error *err) {
  const uint32_t id[2] = {k->cert.output[o].a, k->cert.output[o].b};
  for (int side = 0; side < 2; side++) m->was[side] = rule_tensor_ref(k->here.real[id[side]].v[0]);
  m->by = calloc((size_t)m->was[0]->numel + 1, sizeof *m->by);
  return m->by ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

static void note_noise(const chk_state *k, size_t o, moved *m) {
  const uint32_t id[2] = {k->cert.output[o].a, k->cert.output[o].b};
  for (int side = 0; side < 2; side++)
    for (int64_t i = 0; i < m->was[side]->numel; i++) {
      const double by =
          fabs(rule_tensor_get(k->here.real[id[side]].v[0], i) - rule_tensor_get(m->was[side], i));
      if (isfinite(by)) m->by[i] = fmax(m->by[i], by);
    }
}

/* Whether every element that is apart is so by about as much as noise moved it. */
static bool noise_explains(const moved *m) {
  enum { AS_FAR = 64 };
  for (int64_t i = 0; i < m->was[0]->numel; i++) {
    const double l = rule_tensor_get(m->was[0], i), r = rule_tensor_get(m->was[1], i);
    if (isnan(l) != isnan(r) || !(isnan(l) || l == r || fabs(l - r) <= AS_FAR * m->by[i]))
      return false;
  }
  return true;
}

static void moved_free(moved *m) {
  for (int side = 0; side < 2; side++) rule_tensor_unref(m->was[side]);
  free(m->by);
}

/* Graphs that differ there must differ with noise after every operator, too: poles stay, and a
 * difference made by rounding alone does not. */
static iso_code try_pole(chk_state *k, look *x, size_t number) {
  static const draw_kind as_captured = {CAPTURED, CAPTURED, 1}, inputs = {LARGE, CAPTURED, 1},
                         all = {LARGE, LARGE, 1};
  iso_rng rng = iso_rng_new(UINT64_C(0x706f6c65) + k->o->seed, number);
  moved m = {.by = NULL};
  bool done;
  x->at_poles = !x->large;
  x->pole = number;
  iso_code c = chk_draw(k, x,
                        !x->large         ? &as_captured
                        : number % 4 == 3 ? &all
                                          : &inputs,
                        number, &rng, &done);
  const size_t o = !c && done ? apart_at_pole(k, x, 0) : k->cert.n_outputs;
  x->shake = &rng;
  if (!c && done && o < k->cert.n_outputs) c = note_values(k, o, &m, k->err);
  for (int n = 0; n < N_SHAKEN && !c && done && o < k->cert.n_outputs; n++) {
    c = chk_run_drawn(k, x, &done);
    done = !c && done && apart_at_pole(k, x, o) == o;
    if (done) note_noise(k, o, &m);
  }
  x->shake = NULL;
  x->at_poles = false;
  const bool rounds = !c && done && o < k->cert.n_outputs && noise_explains(&m);
  moved_free(&m);
  if (rounds) return excuse(k, x, o, x->large ? " where numbers are large" : " at poles");
  bool open = false;
  if (!c && done && o < k->cert.n_outputs)
    c = chk_order_explains(k, x->need, &k->cert.output[o], output_tol, &open);
  if (c || !done || o == k->cert.n_outputs || open) return c;
  return chk_settle(k, CHK_REFUSED,
                    "outputs %s and %s are equal as real numbers, and differ where an operator "
                    "sees what is none",
                    k->cert.output[o].left, k->cert.output[o].right);
}

/* ---- all of it ---- */

/* Elements of free leaves; those that are one on both sides are counted twice. */
static double count_free(chk_state *k) {
  double n = 0;
  for (uint32_t i = 0; i < k->n_terms; i++)
    if (chk_leaf_is_free(k, i)) n += (double)chk_captured(k, i, k->here.set)->numel;
  return n;
}

static iso_code prepare(chk_state *k, look *x) {
  x->value = malloc((x->elements.n + 1) * sizeof *x->value);
  x->is_drawn = malloc(x->elements.n + 1);
  x->need = calloc(k->n_terms + 1, 1);
  x->excused = calloc(k->cert.n_outputs + 1, 1);
  k->here.drawn = calloc(k->n_terms + 1, sizeof *k->here.drawn);
  if (!x->value || !x->is_drawn || !x->need || !x->excused || !k->here.drawn) return chk_nomem(k);
  for (size_t i = 0; i < k->cert.n_outputs; i++)
    x->need[k->cert.output[i].a] = x->need[k->cert.output[i].b] = true;
  chk_mark_below(k, x->need);
  return chk_edges_new(k, x->need, &x->edges);
}

iso_code chk_redrawn(chk_state *k) {
  const size_t sets = chk_n_sets(k);
  if (!k->oracle || sets == 0) return ISO_OK;
  k->here.set = sets - 1; /* the one whose constants are at hand */
  const double elements = count_free(k);
  const bool all = captures_guard(k) || (elements < CHK_SMALL && chk_may_be_undefined(k));
  const size_t n = all ? N_KINDS : has_float_input(k) ? N_UNGUARDED : 0;
  look x = {.few = n == 0 && elements > MANY};
  const size_t n_plain = x.few ? 1 : elements < FEW ? MORE_DRAWS : N_PLAIN;
  iso_code c = chk_elements_new(k, x.few ? CHK_SMALL : INT64_MAX, &x.elements);
  if (!c && x.elements.n >= UINT32_MAX) {
    k->here.set = 0;
    c = chk_assume(k, RULE_ASSUMES_LEAF,
                   "outputs were looked at on the captured values alone: too many elements");
  } else if (!c && !chk_settled(k)) {
    x.masks = has_masks(k) && !chk_hides_row(k);
    c = prepare(k, &x);
    if (!c) c = chk_poles_of(k, &x.poles);
    const size_t n_poles = x.poles.seen || x.poles.apart ? x.poles.n + N_POLE_ROWS : 0;
    const size_t n_edges = c || x.few || !chk_any_edges(x.edges) ? 0
                           : elements < SOME                     ? EDGE_DRAWS
                                                                 : FEW_EDGE_DRAWS;
    for (size_t i = 0; i < n_plain && !c && !chk_settled(k); i++)
      c = try_values(k, &x, &plain[i % N_PLAIN], i);
    for (size_t i = 0; i < n_edges && !c && !chk_settled(k); i++)
      c = try_values(k, &x, &at_edges, MORE_DRAWS + i);
    for (size_t i = 0; i < n && !c && !chk_settled(k); i++) c = try_undefined(k, &x, i);
    for (size_t i = 0; i < n_poles && !c && !chk_settled(k); i++) c = try_pole(k, &x, i);
    if (!c && !chk_settled(k) && all) c = chk_cancelled(k, &x);
    x.large = x.poles.told;
    for (size_t i = 0; i < N_LARGE && x.large && !c && !chk_settled(k); i++) c = try_pole(k, &x, i);
  }
  for (uint32_t i = 0; k->here.drawn && i < k->n_terms; i++) rule_tensor_unref(k->here.drawn[i]);
  free(k->here.drawn);
  k->here.drawn = NULL;
  chk_elements_free(&x.elements);
  chk_edges_free(x.edges);
  free(x.value);
  free(x.is_drawn);
  free(x.need);
  free(x.excused);
  k->here.set = 0;
  return c;
}
