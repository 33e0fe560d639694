/* Divisors that are 0 between two draws. A step may cancel one, which holds where it is not 0, and
 * no draw comes upon the number at which exp(x) - 5 is. But a divisor that is positive on one draw
 * and negative on another is 0 between them, by continuity. That place is found by halves; what is
 * far smaller there than close by is 0 but for rounding, and becomes 0. An output that is then a
 * number on one side and none on the other is no equal of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/redrawn_int.h"
#include "rules/operators.h"

enum { MIXED = 8, ORDINARY = 8, DRAWS = CHK_POLES + MIXED + ORDINARY };
enum { HALVINGS = 80, PAIRS = 4, NODES = 256 };
static const double close_by = 0x1p-10, far_smaller = 0x1p-20;

typedef struct divisor {
  uint32_t term, by; /* `by`: the call that divides by it */
  rule_tensor *on[DRAWS];
} divisor;

typedef struct crossing {
  chk_state *k;
  look *x;
  bool *real;           /* by class of elements: it is of leaves of floats */
  double *drawn[DRAWS]; /* by class of elements; NULL: the captures did not run */
  size_t n_draws;
  divisor *d;
  size_t n;
} crossing;

/* An element of a divisor, and two draws between which it is 0. */
typedef struct segment {
  const divisor *d;
  int64_t element;
  size_t above, below;
} segment;

/* ---- what divides ---- */

static bool is_divisor(const crossing *z, uint32_t term) {
  for (size_t j = 0; j < z->n; j++)
    if (z->d[j].term == term) return true;
  return false;
}

static void find_divisors(crossing *z) {
  const chk_state *k = z->k;
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const rule_term *call = z->x->need[i] && k->term[i].node ? k->term[i].call : NULL;
    const int at = call ? rule_pole_at_zero(call) : -1;
    if (at < 0 || (uint32_t)at >= call->n || call->child[at]->kind != RULE_VAR) continue;
    const uint32_t of = (uint32_t)call->child[at]->u.i;
    const cap_node *n = k->term[of].node;
    if (!n || n->n_outputs != 1 || !rule_dtype_is_float(n->output[0].dtype) || is_divisor(z, of))
      continue;
    z->d[z->n++] = (divisor){.term = of, .by = i};
  }
}

/* Whether the other side divides by an equal of it. */
static bool is_shared(const crossing *z, const divisor *d) {
  chk_state *k = z->k;
  for (size_t j = 0; j < z->n; j++)
    if (k->term[z->d[j].term].side != k->term[d->term].side &&
        chk_root(k, z->d[j].term) == chk_root(k, d->term))
      return true;
  return false;
}

static bool all_shared(const crossing *z) {
  for (size_t j = 0; j < z->n; j++)
    if (!is_shared(z, &z->d[j])) return false;
  return true;
}

/* ---- draws ---- */

static iso_code find_real(crossing *z) {
  chk_state *k = z->k;
  if (!(z->real = calloc(z->x->elements.n + 1, 1))) return chk_nomem(k);
  for (uint32_t leaf = 0; leaf < k->n_terms; leaf++) {
    if (!chk_leaf_is_free(k, leaf) || !chk_has_elements(&z->x->elements, leaf)) continue;
    const rule_tensor *v = chk_captured(k, leaf, k->here.set);
    for (int64_t i = 0; i < v->numel && rule_dtype_is_float(v->dtype); i++)
      z->real[chk_element(&z->x->elements, leaf, i)] = true;
  }
  return ISO_OK;
}

/* Draw `n` at numbers of the captures and at larger ones: one number everywhere, then several; then
 * parameters vary, too. */
static iso_code draw_one(crossing *z, size_t n, bool *done) {
  static const draw_kind as_captured = {CAPTURED, CAPTURED, 1}, drawn = {NORMAL, NORMAL, 4};
  iso_rng rng = iso_rng_new(UINT64_C(0x63726f73) + z->k->o->seed, n);
  z->x->at_poles = n < z->x->poles.n + MIXED;
  z->x->pole = n;
  const iso_code c = chk_draw(z->k, z->x, z->x->at_poles ? &as_captured : &drawn, n, &rng, done);
  z->x->at_poles = false;
  return c;
}

static iso_code keep(crossing *z, size_t n) {
  const size_t bytes = (z->x->elements.n + 1) * sizeof *z->drawn[n];
  if (!(z->drawn[n] = malloc(bytes))) return chk_nomem(z->k);
  memcpy(z->drawn[n], z->x->value, z->x->elements.n * sizeof *z->drawn[n]);
  for (size_t j = 0; j < z->n; j++) {
    const chk_values *v = &z->k->here.real[z->d[j].term];
    if (v->n == 1) z->d[j].on[n] = rule_tensor_ref(v->v[0]);
  }
  return ISO_OK;
}

static iso_code draw_all(crossing *z) {
  static const double larger[] = {4, -4, 16, -16, 256, -256, 1e4, -1e4};
  const chk_poles before = z->x->poles;
  chk_poles *p = &z->x->poles;
  for (size_t i = 0; i < sizeof larger / sizeof *larger && p->n < CHK_POLES; i++)
    p->value[p->n++] = larger[i];
  iso_code c = ISO_OK;
  for (size_t n = 0; n < p->n + MIXED + ORDINARY && !c; n++) {
    bool done;
    c = draw_one(z, n, &done);
    if (!c && done) c = keep(z, n);
    z->n_draws = n + 1;
  }
  z->x->poles = before;
  return c;
}

/* Both captures, or what `need` says, at `t` between the draws. */
static iso_code run_at(crossing *z, const segment *g, double t, bool *need, bool *done) {
  const double *a = z->drawn[g->above], *b = z->drawn[g->below];
  bool *const all = z->x->need;
  iso_rng none = iso_rng_new(0, 0);
  for (size_t i = 0; i < z->x->elements.n; i++)
    z->x->value[i] = z->real[i] ? (1 - t) * a[i] + t * b[i] : a[i];
  z->x->outside = false;
  iso_code c = chk_put_drawn(z->k, z->x, g->above, 0, &none);
  z->x->need = need;
  *done = false;
  if (!c && !z->x->outside) c = chk_run_drawn(z->k, z->x, done);
  z->x->need = all;
  return c;
}

/* ---- where one is 0 ---- */

static double element_of(const crossing *z, const segment *g) {
  const chk_values *v = &z->k->here.real[g->d->term];
  return v->n == 1 && g->element < v->v[0]->numel ? rule_tensor_get(v->v[0], g->element) : NAN;
}

/* Where between the draws the element changes its sign. */
static iso_code halve(crossing *z, const segment *g, double *t, bool *found) {
  double low = 0, high = 1;
  bool *need = calloc(z->k->n_terms + 1, 1);
  if (!need) return chk_nomem(z->k);
  need[g->d->term] = true;
  chk_mark_below(z->k, need);
  iso_code c = ISO_OK;
  *found = true;
  for (int i = 0; i < HALVINGS && !c && *found; i++) {
    const double middle = (low + high) / 2;
    c = run_at(z, g, middle, need, found);
    const double e = *found && !c ? element_of(z, g) : NAN;
    *found = isfinite(e);
    if (e >= 0) low = middle;
    else high = middle;
  }
  free(need);
  *t = low;
  return c;
}

/* ---- what the outputs are there ---- */

static double beside(const look *x, uint32_t id, int64_t i) {
  double most = 0;
  for (int n = 0; n < 2; n++) {
    const rule_tensor *v = x->beside[n][id];
    const double e = v && i < v->numel ? fabs(rule_tensor_get(v, i)) : 0;
    if (isfinite(e)) most = fmax(most, e);
  }
  return most;
}

iso_code chk_vanish(chk_state *k, const look *x, uint32_t id) {
  chk_values *v = &k->here.real[id];
  if (v->n != 1 || v->v[0]->dtype != RULE_F64) return ISO_OK;
  rule_tensor *now;
  const iso_code c = rule_tensor_new(RULE_F64, &v->v[0]->shape, &now, k->err);
  if (c) return c;
  for (int64_t i = 0; i < now->numel; i++) {
    const double e = rule_tensor_get(v->v[0], i);
    rule_tensor_set(now, i, fabs(e) <= far_smaller * beside(x, id, i) ? 0 : e);
  }
  rule_tensor_unref(v->v[0]);
  v->v[0] = now;
  return ISO_OK;
}

/* A number, and none that grows without bound: that of a pole, but for rounding. */
static bool is_number(const look *x, uint32_t id, const rule_tensor *v, int64_t i) {
  const double e = rule_tensor_get(v, i), by = beside(x, id, i);
  return isfinite(e) && !(by > 0 && far_smaller * fabs(e) > by);
}

/* The first output that is a number on one side alone; n_outputs: none. */
static size_t parted(const chk_state *k, const look *x) {
  for (size_t o = 0; o < k->cert.n_outputs; o++) {
    const uint32_t l = k->cert.output[o].a, r = k->cert.output[o].b;
    const chk_values *a = &k->here.real[l], *b = &k->here.real[r];
    if (a->n != 1 || b->n != 1 || !rule_dtype_is_float(a->v[0]->dtype) ||
        !rule_dtype_is_float(b->v[0]->dtype))
      continue;
    for (int64_t i = 0; i < a->v[0]->numel && i < b->v[0]->numel; i++)
      if (is_number(x, l, a->v[0], i) != is_number(x, r, b->v[0], i)) return o;
  }
  return k->cert.n_outputs;
}

/* The values of all terms at `t`. Owns: forget, also after an error. */
static iso_code remember(crossing *z, const segment *g, double t, int n, bool *done) {
  if (!(z->x->beside[n] = calloc(z->k->n_terms + 1, sizeof **z->x->beside))) return chk_nomem(z->k);
  const iso_code c = run_at(z, g, t, z->x->need, done);
  for (uint32_t i = 0; i < z->k->n_terms && !c && *done; i++) {
    const chk_values *v = &z->k->here.real[i];
    if (z->x->need[i] && v->n == 1) z->x->beside[n][i] = rule_tensor_ref(v->v[0]);
  }
  return c;
}

static void forget(crossing *z) {
  for (int n = 0; n < 2; n++) {
    for (uint32_t i = 0; z->x->beside[n] && i < z->k->n_terms; i++)
      rule_tensor_unref(z->x->beside[n][i]);
    free(z->x->beside[n]);
    z->x->beside[n] = NULL;
  }
}

/* Returns: in `o` the output that parts where the element is 0; n_outputs: none. */
static iso_code look_between(crossing *z, const segment *g, size_t *o) {
  double t = 0;
  bool done = false;
  *o = z->k->cert.n_outputs;
  iso_code c = halve(z, g, &t, &done);
  for (int n = 0; n < 2 && !c && done; n++)
    c = remember(z, g, n ? fmin(1, t + close_by) : fmax(0, t - close_by), n, &done);
  z->x->vanishes = true;
  if (!c && done) c = run_at(z, g, t, z->x->need, &done);
  z->x->vanishes = false;
  if (!c && done && element_of(z, g) == 0) *o = parted(z->k, z->x);
  forget(z);
  return c;
}

static double on_draw(const divisor *d, size_t n, int64_t i) {
  return d->on[n] && i < d->on[n]->numel ? rule_tensor_get(d->on[n], i) : NAN;
}

/* Some pairs of draws between which an element of the divisor changes its sign. */
static iso_code look_at(crossing *z, const divisor *d, size_t *o) {
  iso_code c = ISO_OK;
  int64_t elements = 0;
  size_t pairs = 0;
  for (size_t n = 0; n < z->n_draws; n++)
    if (d->on[n]) elements = d->on[n]->numel;
  for (int64_t i = 0; i < elements && pairs < PAIRS; i++)
    for (size_t a = 0; a < z->n_draws && pairs < PAIRS; a++)
      for (size_t b = 0; b < z->n_draws && pairs < PAIRS; b++) {
        const double x = on_draw(d, a, i), y = on_draw(d, b, i);
        if (!isfinite(x) || !isfinite(y) || !(x > 0) || !(y < 0)) continue;
        pairs++;
        c = look_between(z, &(segment){d, i, a, b}, o);
        if (c || *o < z->k->cert.n_outputs) return c;
      }
  return c;
}

static bool is_small(const chk_state *k) {
  size_t calls = 0;
  for (uint32_t i = 0; i < k->n_terms; i++) calls += k->term[i].node && k->term[i].call;
  return calls <= NODES;
}

static iso_code look_at_all(crossing *z) {
  chk_state *k = z->k;
  iso_code c = find_real(z);
  if (!c) c = draw_all(z);
  for (size_t j = 0; j < z->n && !c; j++) {
    size_t o = k->cert.n_outputs;
    if (!is_shared(z, &z->d[j])) c = look_at(z, &z->d[j], &o);
    if (!c && o < k->cert.n_outputs)
      return chk_settle(k, CHK_REFUSED,
                        "outputs %s and %s are equal as real numbers, and where what %s divides "
                        "by is 0 one is a number and the other is none",
                        k->cert.output[o].left, k->cert.output[o].right,
                        k->term[z->d[j].by].node->id);
  }
  return c;
}

iso_code chk_cancelled(chk_state *k, look *x) {
  crossing z = {.k = k, .x = x};
  if (x->elements.n > CHK_SMALL || !is_small(k)) return ISO_OK;
  if (!(z.d = calloc(k->n_terms + 1, sizeof *z.d))) return chk_nomem(k);
  find_divisors(&z);
  const iso_code c = all_shared(&z) ? ISO_OK : look_at_all(&z);
  for (size_t n = 0; n < DRAWS; n++) {
    free(z.drawn[n]);
    for (size_t j = 0; j < z.n; j++) rule_tensor_unref(z.d[j].on[n]);
  }
  free(z.real);
  free(z.d);
  return c;
}
