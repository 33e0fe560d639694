/* A rule says that its sides are equal where both are defined: a chain through a term that is
 * undefined at other sizes would show nothing of them. So all terms of the chain are run at other
 * sizes: the least that are claimed, and some drawn from the checker's seed. The certificate's own
 * calls are run beside every number that stands in sizes, too, on zeros of the shapes that captured
 * terms have there. At least sizes, drawn ones, and those that numbers of calls speak of, the two
 * terms of each step are both numbers, or neither is: rules make no claim about NaN and
 * infinity. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/sizes/sizes_int.h"
#include "egraph/base/vec.h"
#include "rules/operators.h"

enum {
  POINTS = 3,
  MOST_OVER = 9,
  MOST_ELEMENTS = 1 << 25,
  MAX_OUT = 64,
  MOST_NUMBERS = 24,
  MOST_SPOKEN = 48 /* a size that is tried because numbers of calls speak of it */
};

typedef struct running {
  chk_chain *z;
  iso_arena arena;
  int64_t value[CHK_ATOMS]; /* of the symbols */
  chk_values *out;          /* by term */
  rule_tensor **bound;      /* by term, for one call */
  bool *needed;
  bool own; /* captured terms are zeros */
} running;

static bool size_at(const running *r, const chk_sum *s, int64_t *out) {
  return chk_sum_at(&r->z->atoms, s, r->value, out);
}

static const rule_term *call_at(running *r, const rule_term *t) {
  chk_sum s;
  int64_t x;
  if (chk_is_size(t))
    return chk_size_of(r->z, t, &s) && size_at(r, &s, &x) ? rule_int(&r->arena, x) : NULL;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(&r->arena, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = call_at(r, t->child[i]))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP ? rule_op(&r->arena, t->u.s, child, t->n)
                            : rule_list(&r->arena, child, t->n);
}

static bool shape_at(const running *r, const chk_dims *d, rule_shape *out) {
  int64_t numel;
  iso_error ignored;
  out->rank = d->rank;
  for (uint32_t i = 0; i < d->rank; i++)
    if (!size_at(r, &d->of[i], &out->dim[i]) || out->dim[i] < 0) return false;
  return rule_shape_numel(out, &numel, &ignored) == ISO_OK && numel <= MOST_ELEMENTS;
}

/* ---- terms ---- */

static iso_code keep(running *r, uint32_t t, rule_tensor *const *v, size_t n) {
  rule_tensor **own = calloc(n + 1, sizeof *own);
  for (size_t i = 0; i < n; i++) {
    if (own) own[i] = v[i];
    else rule_tensor_unref(v[i]);
  }
  r->out[t] = (chk_values){own, n};
  return own ? ISO_OK : chk_nomem(r->z->k);
}

/* From 1 to 2, in one order for terms that are one: roots, logarithms and quotients take them. */
static void draw(const running *r, uint32_t t, rule_tensor *v) {
  iso_rng rng = iso_rng_new(r->z->k->o->seed, chk_chain_root(r->z, t));
  for (int64_t i = 0; rule_dtype_is_float(v->dtype) && i < v->numel; i++)
    rule_tensor_set(v, i, 1 + iso_rng_uniform(&rng));
}

/* Its captured value, where no size changes it; numbers, or zeros. */
static iso_code run_leaf(running *r, uint32_t t, bool *fine) {
  const cap_node *n = r->z->k->term[t].node;
  const chk_dims *d = chk_dims_of(r->z, t);
  rule_shape shape;
  rule_tensor *v;
  *fine = d && n->n_outputs == 1 && shape_at(r, d, &shape);
  if (!*fine) return ISO_OK;
  if (n->kind != CAP_OP && n->kind != CAP_INPUT && rule_shape_eq(&n->value->shape, &shape)) {
    v = rule_tensor_ref(n->value);
    return keep(r, t, &v, 1);
  }
  const iso_code c = rule_tensor_new(n->output[0].dtype, &shape, &v, r->z->k->err);
  if (!c && !r->own) draw(r, t, v);
  return c ? c : keep(r, t, &v, 1);
}

static bool bind(const running *r, const rule_term *t) {
  if (t->kind == RULE_VAR) {
    if (!r->out[t->u.i].v) return false;
    r->bound[t->u.i] = r->out[t->u.i].v[0];
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!bind(r, t->child[i])) return false;
  return true;
}

static iso_code run_call(running *r, uint32_t t, bool *fine) {
  chk_state *k = r->z->k;
  const rule_term *call = call_at(r, r->z->sized[t]);
  rule_tensor *out[MAX_OUT];
  size_t n = 0;
  iso_error why;
  *fine = call && bind(r, call);
  if (!*fine) return ISO_OK;
  if (rule_is_getitem(call->u.s)) {
    const chk_values *from = &r->out[call->child[0]->u.i];
    const int64_t which = call->child[1]->kind == RULE_INT ? call->child[1]->u.i : -1;
    *fine = which >= 0 && (size_t)which < from->n;
    if (!*fine) return ISO_OK;
    out[0] = rule_tensor_ref(from->v[which]);
    return keep(r, t, out, 1);
  }
  const iso_code c = k->oracle->call(k->oracle->ctx, call, r->bound, false, out, MAX_OUT, &n, &why);
  if (c == ISO_NOMEM) return chk_nomem(k);
  *fine = !c && n > 0;
  return *fine ? keep(r, t, out, n) : ISO_OK;
}

/* In `fine` whether the term is defined, and has the shape that it should. */
static iso_code run_term(running *r, uint32_t t, bool *fine) {
  const chk_term *x = &r->z->k->term[t];
  const chk_dims *d = chk_dims_of(r->z, t);
  rule_shape shape;
  *fine = true;
  if (!x->call || (r->own && x->node && d)) return run_leaf(r, t, fine);
  if (!r->z->sized[t]) return *fine = false, ISO_OK;
  const iso_code c = run_call(r, t, fine);
  if (!c && *fine && d && r->out[t].n == 1)
    *fine = shape_at(r, d, &shape) && rule_shape_eq(&shape, &r->out[t].v[0]->shape);
  return c;
}

static void need(running *r, uint32_t t);

static void need_below(running *r, const rule_term *x) {
  if (x->kind == RULE_VAR) need(r, (uint32_t)x->u.i);
  for (uint32_t i = 0; i < x->n; i++) need_below(r, x->child[i]);
}

static void need(running *r, uint32_t t) {
  const chk_term *x = &r->z->k->term[t];
  if (r->needed[t]) return;
  r->needed[t] = true;
  if (x->call && !(r->own && x->node && chk_dims_of(r->z, t))) need_below(r, x->call);
}

/* ---- points ---- */

/* Whether both captures admit these sizes. */
static bool admitted(running *r) {
  chk_state *k = r->z->k;
  const cap_graph *g = k->graph[RIGHT];
  const char *broken = NULL;
  int64_t value[CHK_ATOMS] = {0};
  chk_sum s;
  iso_error ignored;
  if (cap_admits(k->graph[LEFT], r->value, &broken, &ignored) || broken) return false;
  if (g->n_symbols > CHK_ATOMS) return false;
  for (size_t i = 0; i < g->n_symbols; i++)
    if (!r->z->right[i] || !chk_size_of(r->z, r->z->right[i], &s) || !size_at(r, &s, &value[i]))
      return false;
  return cap_admits(g, value, &broken, &ignored) == ISO_OK && !broken;
}

/* Drawn, not far from the least; 0: the least. Returns: false where none was found that the
 * captures admit. */
static bool choose(running *r, int point, iso_rng *rng) {
  enum { TRIES = 200 };
  for (int n = 0; n < (point ? TRIES : 1); n++) {
    const uint64_t most = n < TRIES / 2 ? MOST_OVER : 8 * MOST_OVER;
    for (uint32_t i = 0; i < r->z->atoms.n; i++) {
      const chk_atom *x = &r->z->atoms.of[i];
      const int64_t over = point ? 1 + (int64_t)iso_rng_below(rng, most) : 0;
      if (x->name) r->value[i] = x->max - x->min < over ? x->max : x->min + over;
    }
    if (admitted(r)) return true;
  }
  return false;
}

static bool is_number(const chk_values *x) {
  const rule_tensor *v = x->v[0];
  for (int64_t i = 0; rule_dtype_is_float(v->dtype) && i < v->numel; i++)
    if (isnan(rule_tensor_get(v, i))) return false;
  return true;
}

/* Whether the terms of every step are numbers both, or neither is. */
static bool alike(const running *r, uint32_t *at) {
  const chk_state *k = r->z->k;
  for (size_t i = 0; i < k->cert.sizes->n_steps; i++) {
    const chk_step *x = &k->cert.step[k->cert.sizes->step[i].step];
    const chk_values *a = &r->out[x->a], *b = &r->out[x->b];
    if (a->n != 1 || b->n != 1 || is_number(a) == is_number(b)) continue;
    return *at = x->a, false;
  }
  return true;
}

static void drop(chk_values *x) {
  for (size_t i = 0; i < x->n; i++) rule_tensor_unref(x->v[i]);
  free(x->v);
  *x = (chk_values){0};
}

static iso_code run_point(running *r, uint32_t *at, bool *fine) {
  iso_code c = ISO_OK;
  *fine = true;
  for (uint32_t t = 0; t < r->z->k->n_terms && !c && *fine; t++) {
    if (!r->needed[t]) continue;
    c = run_term(r, t, fine);
    *at = t;
  }
  if (!c && *fine && !r->own) *fine = alike(r, at);
  for (size_t t = 0; t < r->z->k->n_terms; t++) drop(&r->out[t]);
  iso_arena_fini(&r->arena);
  iso_arena_init(&r->arena);
  return c;
}

/* ---- numbers beside which sizes are tried ---- */

typedef struct numbers {
  size_t n;
  int64_t of[MOST_NUMBERS];
} numbers;

static void note(numbers *all, int64_t x) {
  for (size_t i = 0; i < all->n; i++)
    if (all->of[i] == x) return;
  if (all->n < MOST_NUMBERS) all->of[all->n++] = x;
}

static void note_in(numbers *all, const chk_sum *s) {
  for (uint32_t i = 0; i < s->n; i++)
    for (int64_t by = -1; by <= 1; by++)
      note(all, (s->of[i].by < 0 ? -s->of[i].by : s->of[i].by) + by);
}

/* Those of sizes that are no polynomials, and one past every size that is a number. */
static void find_numbers(const chk_chain *z, numbers *all) {
  int64_t most = 0, x;
  for (uint32_t i = 0; i < z->atoms.n; i++)
    if (!z->atoms.of[i].name) note_in(all, &z->atoms.of[i].a), note_in(all, &z->atoms.of[i].b);
  for (uint32_t t = 0; t < z->k->n_terms; t++)
    for (uint32_t d = 0; z->dim[t].of && d < z->dim[t].rank; d++)
      if (chk_sum_is_number(&z->dim[t].of[d], &x) && x > most) most = x;
  note(all, most + 1);
}

/* Whether all that the captures have there is small enough to be made. */
static bool small_enough(const running *r) {
  rule_shape ignored;
  for (uint32_t t = 0; t < r->z->k->n_terms; t++)
    if (r->needed[t] && r->z->dim[t].of && !shape_at(r, &r->z->dim[t], &ignored)) return false;
  return true;
}

static iso_code run_beside(running *r, uint32_t *at, bool *fine) {
  const chk_atoms *x = &r->z->atoms;
  numbers all = {0};
  iso_code c = ISO_OK;
  find_numbers(r->z, &all);
  for (uint32_t s = 0; s < x->n; s++)
    for (size_t i = 0; x->of[s].name && i < all.n && !c && *fine; i++) {
      for (uint32_t j = 0; j < x->n; j++) r->value[j] = x->of[j].name ? x->of[j].min : 0;
      r->value[s] = all.of[i];
      if (all.of[i] > x->of[s].min && all.of[i] <= x->of[s].max && admitted(r) && small_enough(r))
        c = run_point(r, at, fine);
    }
  return c;
}

/* ---- sizes that numbers of calls speak of ---- */

/* Whether a size in the call is 0 here, or it has `x`, or the number before it. */
static bool speaks(const running *r, const rule_term *t, int64_t x) {
  chk_sum s;
  int64_t at;
  bool yes = false;
  if (t->kind == RULE_INT) return t->u.i == x || t->u.i + 1 == x;
  if (t->kind == RULE_FLOAT) return t->u.f <= (double)x && t->u.f + 1 >= (double)x;
  if (chk_is_size(t)) yes = chk_size_of(r->z, t, &s) && size_at(r, &s, &at) && at == 0;
  for (uint32_t i = 0; i < t->n && !yes; i++) yes = speaks(r, t->child[i], x);
  return yes;
}

static bool any_speaks(const running *r, int64_t x) {
  for (uint32_t t = 0; t < r->z->k->n_terms; t++)
    if (r->needed[t] && r->z->sized[t] && speaks(r, r->z->sized[t], x)) return true;
  return false;
}

static iso_code run_spoken(running *r, uint32_t *at, bool *fine) {
  const chk_atoms *all = &r->z->atoms;
  iso_code c = ISO_OK;
  for (uint32_t s = 0; s < all->n && !c && *fine; s++)
    for (int64_t v = 1; all->of[s].name && v <= MOST_SPOKEN && !c && *fine; v++) {
      for (uint32_t i = 0; i < all->n; i++) r->value[i] = all->of[i].name ? all->of[i].min : 0;
      if (v <= r->value[s] || v > all->of[s].max) continue;
      r->value[s] = v;
      if (any_speaks(r, v) && admitted(r) && small_enough(r)) c = run_point(r, at, fine);
    }
  return c;
}

/* ---- one term at a point, from below ---- */

static iso_code run_whole(running *r, uint32_t t, int depth, bool *fine);

static iso_code run_below(running *r, const rule_term *x, int depth, bool *fine) {
  if (x->kind == RULE_VAR) return run_whole(r, (uint32_t)x->u.i, depth, fine);
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < x->n && !c && *fine; i++) c = run_below(r, x->child[i], depth, fine);
  return c;
}

static bool unrounded(const running *r, uint32_t t) {
  const rule_term *call = r->z->k->term[t].call;
  const bool cast = rule_operator_of(call->u.s)->cast;
  if (!cast) return rule_is_getitem(call->u.s) || chk_rounds_nothing(call->u.s);
  const rule_tensor *to = r->out[t].v[0], *from = r->out[call->child[0]->u.i].v[0];
  bool same = !rule_dtype_is_complex(to->dtype) && !rule_dtype_is_complex(from->dtype);
  for (int64_t i = 0; same && i < to->numel; i++)
    same = rule_tensor_get(to, i) == rule_tensor_get(from, i);
  return same;
}

/* The captured call that a term is, or the term where it rounds nothing. */
static iso_code run_whole(running *r, uint32_t t, int depth, bool *fine) {
  enum { MOST_DEPTH = 500 };
  const uint32_t from = chk_chain_captured(r->z, t);
  const chk_term *x = &r->z->k->term[t];
  iso_code c = ISO_OK;
  *fine = depth < MOST_DEPTH;
  if (!*fine || r->out[t].v) return ISO_OK;
  if (from != t) {
    c = run_whole(r, from, depth + 1, fine);
    if (c || !*fine || r->out[from].n != 1) return *fine = false, c;
    rule_tensor *v = rule_tensor_ref(r->out[from].v[0]);
    return keep(r, t, &v, 1);
  }
  if (x->call) c = run_below(r, x->call, depth + 1, fine);
  if (!c && *fine) c = run_term(r, t, fine);
  if (!c && *fine && x->call && !x->node) *fine = unrounded(r, t);
  return c;
}

iso_code chk_chain_run_table(chk_chain *z, const uint32_t t[2], const chk_table *table,
                             rule_tensor *out[2]) {
  running r = {.z = z,
               .out = calloc(z->k->n_terms + 1, sizeof *r.out),
               .bound = calloc(z->k->n_terms + 1, sizeof *r.bound)};
  bool fine = true;
  iso_code c = r.out && r.bound ? ISO_OK : chk_nomem(z->k);
  out[0] = out[1] = NULL;
  iso_arena_init(&r.arena);
  r.value[table->atom] = table->most;
  for (int i = 0; i < 2 && !c && fine; i++) c = run_whole(&r, t[i], 0, &fine);
  for (int i = 0; i < 2 && !c && fine; i++) fine = r.out[t[i]].n == 1;
  for (int i = 0; i < 2 && !c && fine; i++) out[i] = rule_tensor_ref(r.out[t[i]].v[0]);
  for (size_t i = 0; r.out && i < z->k->n_terms; i++) drop(&r.out[i]);
  iso_arena_fini(&r.arena);
  free(r.out);
  free(r.bound);
  return c;
}

iso_code chk_chain_run(chk_chain *z, bool *fine, uint32_t *at) {
  chk_state *k = z->k;
  running r = {.z = z,
               .out = calloc(k->n_terms + 1, sizeof *r.out),
               .bound = calloc(k->n_terms + 1, sizeof *r.bound),
               .needed = calloc(k->n_terms + 1, 1)};
  iso_rng rng = iso_rng_new(k->o->seed ^ UINT64_C(0x73697a6573), 0);
  iso_arena_init(&r.arena);
  *fine = true;
  iso_code c = r.out && r.bound && r.needed ? ISO_OK : chk_nomem(k);
  for (int own = 0; own < 2 && !c && *fine; own++) {
    r.own = own;
    memset(r.needed, 0, k->n_terms);
    for (size_t i = 0; i < k->cert.sizes->n_steps; i++) {
      const chk_step *x = &k->cert.step[k->cert.sizes->step[i].step];
      need(&r, x->a), need(&r, x->b);
    }
    for (int point = 0; point < POINTS && !own && !c && *fine; point++)
      if (choose(&r, point, &rng)) c = run_point(&r, at, fine);
    if (!own && !c && *fine) c = run_spoken(&r, at, fine);
    if (own && !c) c = run_beside(&r, at, fine);
  }
  iso_arena_fini(&r.arena);
  free(r.out);
  free(r.bound);
  free(r.needed);
  return c;
}
