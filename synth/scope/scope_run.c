/* A rule says that its sides are equal where both are defined. A chain through a term that is
 * undefined at other sizes (a view of the wrong number of elements) would show nothing, so all
 * terms of the chain are run at other sizes: the least ones, and some at which two different sizes
 * are unlikely to be equal. Their shapes have to be those that the captures and the steps say.
 * Terms of the certificate alone are also run beside every number in a size that is no polynomial,
 * and past every size that is a number, with zeros for captured terms.
 *
 * Nor does a rule make a claim where one of its parts is no number: var(x) * (T - 1) is a sum of
 * squares but at T = 1. At the captured sizes values tell, so they are asked here, too: where one
 * side of a step is no number, and the other one is, the step holds no longer. That is looked for
 * at the points above, where a size is 0, and beside small numbers that calls have. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "rules/operators.h"
#include "synth/scope/scope_int.h"

enum {
  POINTS = 3,
  MOST_OVER = 9,
  MOST_ELEMENTS = 1 << 25,
  MOST_NUMBERS = 24,
  MOST_SMALL = 48 /* a number that is tried for a size because calls have it */
};

typedef struct running {
  scoping *z;
  iso_arena arena;
  int64_t *value;     /* by atom */
  rule_tensor ***out; /* by term: its results */
  size_t *n_out;
  rule_tensor **bound; /* by term, for one call */
  bool *needed;
  const bool *step; /* those that were taken */
  bool own;         /* captured terms are zeros */
  bool captured;    /* calls of the certificate's own are those of the captures that they are */
} running;

/* ---- sizes at a point ---- */

static bool number_at(const void *ctx, const char *name, rule_term *out) {
  const running *r = ctx;
  for (uint32_t i = 0; i < r->z->space.n; i++) {
    const rule_term *as = r->z->space.atom[i].as;
    if (as->kind != RULE_NAME || strcmp(as->u.s, name) != 0) continue;
    *out = (rule_term){.kind = RULE_INT, .u.i = r->value[i]};
    return true;
  }
  return false;
}

static bool sum_at(const running *r, const size_sum *s, int64_t *out);

/* The value of an atom at the point. */
static bool atom_at(const running *r, const size_atom *x, int64_t *out) {
  size_sum a, b;
  int64_t p, q;
  if (x->as->kind == RULE_NAME) {
    rule_term t;
    return number_at(r, x->as->u.s, &t) && (*out = t.u.i, true);
  }
  if (!scope_size(r->z, x->as->child[0], &a) || !scope_size(r->z, x->as->child[1], &b) ||
      !sum_at(r, &a, &p) || !sum_at(r, &b, &q))
    return false;
  const char *op = x->as->u.s;
  if (strcmp(op, "min") == 0) *out = p < q ? p : q;
  else if (strcmp(op, "max") == 0) *out = p > q ? p : q;
  else if (q <= 0) return false;
  else *out = *op == '%' ? p - q * (p / q - (p % q < 0)) : p / q - (p % q < 0);
  return true;
}

static bool sum_at(const running *r, const size_sum *s, int64_t *out) {
  *out = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    int64_t x = s->of[i].by, factor;
    for (uint8_t k = 0; k < s->of[i].n; k++)
      if (!atom_at(r, &r->z->space.atom[s->of[i].of[k]], &factor) ||
          __builtin_mul_overflow(x, factor, &x))
        return false;
    if (__builtin_add_overflow(*out, x, out)) return false;
  }
  return true;
}

static const rule_term *call_at(running *r, const rule_term *t) {
  size_sum s;
  int64_t x;
  if (scope_is_size(t))
    return scope_size(r->z, t, &s) && sum_at(r, &s, &x) ? rule_int(&r->arena, x) : NULL;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(&r->arena, (t->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < t->n; k++)
    if (!(child[k] = call_at(r, t->child[k]))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP ? rule_op(&r->arena, t->u.s, child, t->n)
                            : rule_list(&r->arena, child, t->n);
}

static bool shape_at(const running *r, const scope_dims *d, rule_shape *out) {
  int64_t numel;
  iso_error ignored;
  out->rank = d->rank;
  for (uint32_t i = 0; i < d->rank; i++)
    if (!sum_at(r, &d->of[i], &out->dim[i]) || out->dim[i] < 0) return false;
  return rule_shape_numel(out, &numel, &ignored) == ISO_OK && numel <= MOST_ELEMENTS;
}

/* ---- terms ---- */

static const synth_node *node_of(const scoping *z, uint32_t t) {
  const size_t n_left = z->s->graph[LEFT]->n_nodes;
  return t < n_left ? &z->s->graph[LEFT]->node[t] : &z->s->graph[RIGHT]->node[t - n_left];
}

/* Numbers that a root, a logarithm and a quotient take. Leaves that are one get the same. */
static void fill(rule_tensor *v, uint32_t root) {
  iso_rng rng = iso_rng_new(root, 0);
  for (int64_t i = 0; rule_dtype_is_float(v->dtype) && i < v->numel; i++)
    rule_tensor_set(v, i, 0.5 + iso_rng_uniform(&rng));
}

static iso_code run_leaf(running *r, uint32_t t, bool *fine) {
  const synth_node *n = node_of(r->z, t);
  const scope_dims *d = scope_dims_of(r->z, t);
  rule_shape shape = n->shape;
  *fine = d && ((!r->z->call[t] && scope_is_fixed(r->z, t)) || shape_at(r, d, &shape));
  if (!*fine) return ISO_OK;
  rule_tensor **out = r->out[t] = calloc(1, sizeof *out);
  if (!out) return scope_no_memory(r->z);
  r->n_out[t] = 1;
  const bool kept = n->kind != SYNTH_INPUT && n->value && n->value[0];
  if (kept && rule_shape_eq(&n->value[0]->shape, &shape))
    return *out = rule_tensor_ref(n->value[0]), ISO_OK;
  const iso_code c = rule_tensor_new(n->dtype, &shape, out, r->z->err);
  if (!c && !r->own) fill(*out, scope_root(r->z, t));
  return c;
}

static iso_code run_item(running *r, uint32_t t, bool *fine) {
  const rule_term *call = r->z->sized[t];
  const uint32_t of = (uint32_t)call->child[0]->u.i;
  const int64_t k = call->child[1]->kind == RULE_INT ? call->child[1]->u.i : -1;
  *fine = r->out[of] && k >= 0 && (size_t)k < r->n_out[of];
  if (!*fine) return ISO_OK;
  if (!(r->out[t] = calloc(1, sizeof *r->out[t]))) return scope_no_memory(r->z);
  r->n_out[t] = 1;
  r->out[t][0] = rule_tensor_ref(r->out[of][k]);
  return ISO_OK;
}

static bool bind(const running *r, const rule_term *t, rule_tensor **bound) {
  if (t->kind == RULE_VAR) {
    if (!r->out[t->u.i]) return false;
    bound[t->u.i] = r->out[t->u.i][0];
  }
  for (uint32_t k = 0; k < t->n; k++)
    if (!bind(r, t->child[k], bound)) return false;
  return true;
}

static iso_code run_call(running *r, uint32_t t, bool *fine) {
  state *s = r->z->s;
  const rule_term *call = call_at(r, r->z->sized[t]);
  rule_tensor *out[MAX_OUT];
  size_t n = 0;
  iso_error why;
  *fine = call && bind(r, call, r->bound);
  if (!*fine) return ISO_OK;
  const iso_code c = s->oracle->call(s->oracle->ctx, call, r->bound, false, out, MAX_OUT, &n, &why);
  *fine = !c && n > 0;
  if (c == ISO_NOMEM) return scope_no_memory(r->z);
  if (!*fine) return ISO_OK;
  r->out[t] = calloc(n, sizeof *r->out[t]);
  for (size_t k = 0; k < n; k++) {
    if (r->out[t]) r->out[t][k] = out[k];
    else rule_tensor_unref(out[k]);
  }
  r->n_out[t] = n;
  return r->out[t] ? ISO_OK : scope_no_memory(r->z);
}

/* Whether a term is made without its arguments. */
static bool is_leaf(const running *r, uint32_t t) {
  return !r->z->call[t] || (r->own && r->z->captured[t] && scope_dims_of(r->z, t));
}

uint32_t scope_captured(const scoping *z, uint32_t t) {
  const size_t n = z->s->graph[LEFT]->n_nodes + z->s->graph[RIGHT]->n_nodes;
  for (uint32_t i = 0; i < n && !z->captured[t]; i++)
    if (scope_root(z, i) == scope_root(z, t) && z->call[i] && z->sized[i]) return i;
  return t;
}

/* The value of another term. */
static iso_code take(running *r, uint32_t t, uint32_t from) {
  r->out[t] = calloc(1, sizeof *r->out[t]);
  if (!r->out[t]) return scope_no_memory(r->z);
  r->out[t][0] = rule_tensor_ref(r->out[from][0]);
  r->n_out[t] = 1;
  return ISO_OK;
}

/* One term. Returns: in `fine` whether it is defined, and has the shape that it should. */
static iso_code run_term(running *r, uint32_t t, bool *fine) {
  const scoping *z = r->z;
  const scope_dims *d = scope_dims_of(z, t);
  rule_shape shape;
  iso_code c;
  *fine = true;
  const uint32_t from = r->captured ? scope_captured(z, t) : t;
  if (from != t) return *fine = r->n_out[from] == 1, *fine ? take(r, t, from) : ISO_OK;
  if (is_leaf(r, t)) c = run_leaf(r, t, fine);
  else if (!z->sized[t]) return *fine = false, ISO_OK;
  else c = rule_is_getitem(z->call[t]->u.s) ? run_item(r, t, fine) : run_call(r, t, fine);
  if (!c && *fine && d && !is_leaf(r, t) && r->n_out[t] == 1)
    *fine = shape_at(r, d, &shape) && rule_shape_eq(&shape, &r->out[t][0]->shape);
  return c;
}

/* ---- points ---- */

static void need(running *r, uint32_t t);

static void need_below(running *r, const rule_term *x) {
  if (x->kind == RULE_VAR) need(r, (uint32_t)x->u.i);
  for (uint32_t k = 0; k < x->n; k++) need_below(r, x->child[k]);
}

static void need(running *r, uint32_t t) {
  if (r->needed[t]) return;
  r->needed[t] = true;
  const uint32_t from = r->captured ? scope_captured(r->z, t) : t;
  if (from != t) need(r, from);
  else if (!is_leaf(r, t)) need_below(r, r->z->call[t]);
}

static void choose(running *r, int point, iso_rng *rng) {
  for (uint32_t i = 0; i < r->z->space.n; i++) {
    const size_atom *x = &r->z->space.atom[i];
    if (x->as->kind != RULE_NAME) continue;
    const int64_t over = point ? 1 + (int64_t)iso_rng_below(rng, MOST_OVER) : 0;
    r->value[i] = x->max - x->min < over ? x->max : x->min + over;
  }
}

static bool has_nan(const running *r, uint32_t t) {
  const rule_tensor *v = r->out[t][0];
  for (int64_t i = 0; rule_dtype_is_float(v->dtype) && i < v->numel; i++)
    if (isnan(rule_tensor_get(v, i))) return true;
  return false;
}

/* Whether the sides of each step are numbers together. */
static bool numbers_together(const running *r, uint32_t *at) {
  const synth_certificate *c = r->z->cert;
  for (size_t i = 0; i < c->n_steps; i++) {
    const uint32_t a = r->z->of[c->step[i].a], b = r->z->of[c->step[i].b];
    if (!r->step[i] || r->n_out[a] != 1 || r->n_out[b] != 1) continue;
    if (has_nan(r, a) != has_nan(r, b)) return *at = a, false;
  }
  return true;
}

static iso_code run_needed(running *r, uint32_t *at, bool *fine) {
  iso_code c = ISO_OK;
  *fine = true;
  for (uint32_t t = 0; t < r->z->n_terms && !c && *fine; t++) {
    if (!r->needed[t]) continue;
    c = run_term(r, t, fine);
    *at = t;
  }
  return c;
}

static void forget(running *r) {
  for (size_t t = 0; t < r->z->n_terms; t++) {
    for (size_t k = 0; r->out[t] && k < r->n_out[t]; k++) rule_tensor_unref(r->out[t][k]);
    free(r->out[t]);
    r->out[t] = NULL;
  }
  iso_arena_fini(&r->arena);
  iso_arena_init(&r->arena);
}

static iso_code run_point(running *r, uint32_t *at, bool *fine) {
  const iso_code c = run_needed(r, at, fine);
  if (!c && *fine && !r->own) *fine = numbers_together(r, at);
  forget(r);
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

static void note_in(numbers *all, const rule_term *t) {
  if (t->kind == RULE_INT)
    for (int64_t by = -1; by <= 1; by++) note(all, (t->u.i < 0 ? -t->u.i : t->u.i) + by);
  for (uint32_t k = 0; k < t->n; k++) note_in(all, t->child[k]);
}

/* Those of sizes that are no polynomials, and one past every size that is a number. */
static void find_numbers(const scoping *z, numbers *all) {
  int64_t most = 0, x;
  for (uint32_t i = 0; i < z->space.n; i++) note_in(all, z->space.atom[i].as);
  for (uint32_t t = 0; t < z->n_terms; t++)
    for (uint32_t d = 0; z->dim[t].of && d < z->dim[t].rank; d++)
      if (size_is_number(&z->dim[t].of[d], &x) && x > most) most = x;
  note(all, most + 1);
}

/* Whether all that the captures have there is small enough to be made. */
static bool small_enough(const running *r) {
  rule_shape ignored;
  for (uint32_t t = 0; t < r->z->n_terms; t++)
    if (r->needed[t] && r->z->dim[t].of && !shape_at(r, &r->z->dim[t], &ignored)) return false;
  return true;
}

static iso_code run_beside(running *r, uint32_t *at, bool *fine) {
  const size_space *x = &r->z->space;
  numbers all = {0};
  iso_code c = ISO_OK;
  find_numbers(r->z, &all);
  for (uint32_t s = 0; s < x->n; s++)
    for (size_t i = 0; x->atom[s].as->kind == RULE_NAME && i < all.n && !c && *fine; i++) {
      for (uint32_t k = 0; k < x->n; k++) r->value[k] = x->atom[k].min;
      r->value[s] = all.of[i];
      if (all.of[i] > x->atom[s].min && all.of[i] <= x->atom[s].max && small_enough(r))
        c = run_point(r, at, fine);
    }
  return c;
}

/* ---- sizes at which something may be no number ---- */

static bool is_zero(const running *r, const rule_term *t) {
  size_sum s;
  int64_t x;
  return scope_is_size(t) && scope_size(r->z, t, &s) && sum_at(r, &s, &x) && x == 0;
}

/* Whether a number of the call is the size `x`, or the one before it, or a size of it is 0. */
static bool speaks_of(const running *r, const rule_term *t, int64_t x) {
  if (t->kind == RULE_INT && (t->u.i == x || t->u.i == x - 1)) return true;
  const double y = (double)x;
  if (t->kind == RULE_FLOAT && t->u.f >= y - 1 && t->u.f <= y) return true;
  if (t->kind != RULE_INT && is_zero(r, t)) return true;
  for (uint32_t k = 0; k < t->n; k++)
    if (speaks_of(r, t->child[k], x)) return true;
  return false;
}

/* The others are the least. */
static iso_code run_spoken_of(running *r, uint32_t *at, bool *fine) {
  const scoping *z = r->z;
  iso_code c = ISO_OK;
  for (uint32_t s = 0; s < z->space.n; s++) {
    const size_atom *x = &z->space.atom[s];
    for (int64_t v = x->min + 1; x->as->kind == RULE_NAME && v <= MOST_SMALL && v <= x->max; v++) {
      bool spoken = false;
      for (uint32_t k = 0; k < z->space.n; k++) r->value[k] = z->space.atom[k].min;
      r->value[s] = v;
      for (uint32_t t = 0; t < z->n_terms && !spoken; t++)
        spoken = r->needed[t] && z->sized[t] && speaks_of(r, z->sized[t], v);
      if (spoken && small_enough(r)) c = run_point(r, at, fine);
      if (c || !*fine) return c;
    }
  }
  return c;
}

static void need_steps(running *r, const bool *step) {
  memset(r->needed, 0, r->z->n_terms);
  for (size_t i = 0; i < r->z->cert->n_steps; i++)
    if (step[i]) need(r, r->z->of[r->z->cert->step[i].a]), need(r, r->z->of[r->z->cert->step[i].b]);
}

static iso_code start(running *r, scoping *z) {
  *r = (running){.z = z,
                 .value = calloc(SIZE_ATOMS, sizeof *r->value),
                 .out = calloc(z->n_terms, sizeof *r->out),
                 .n_out = calloc(z->n_terms, sizeof *r->n_out),
                 .bound = calloc(z->n_terms, sizeof *r->bound),
                 .needed = calloc(z->n_terms, 1)};
  iso_arena_init(&r->arena);
  return r->value && r->out && r->n_out && r->bound && r->needed ? ISO_OK : scope_no_memory(z);
}

static void end(running *r) {
  iso_arena_fini(&r->arena);
  free(r->value);
  free(r->out);
  free(r->n_out);
  free(r->bound);
  free(r->needed);
}

iso_code scope_run(scoping *z, const bool *step, bool *fine, uint32_t *at) {
  running r;
  iso_rng rng = iso_rng_new(z->s->o->seed ^ UINT64_C(0x73636f7065), 0);
  iso_code c = start(&r, z);
  *fine = true;
  r.step = step;
  if (!c) need_steps(&r, step);
  for (int point = 0; point < POINTS && !c && *fine; point++) {
    choose(&r, point, &rng);
    c = run_point(&r, at, fine);
  }
  if (!c && *fine) c = run_spoken_of(&r, at, fine);
  r.own = true;
  if (!c && *fine) {
    need_steps(&r, step);
    c = run_beside(&r, at, fine);
  }
  end(&r);
  return c;
}

/* Whether casts of the certificate's own change no number. */
static bool casts_exactly(const running *r) {
  for (uint32_t t = 0; t < r->z->n_terms; t++) {
    const rule_term *call = r->z->call[t];
    if (!r->needed[t] || r->z->captured[t] || scope_captured(r->z, t) != t ||
        !rule_operator_of(call->u.s)->cast)
      continue;
    const rule_tensor *to = r->out[t][0], *from = r->out[call->child[0]->u.i][0];
    for (int64_t i = 0; i < to->numel; i++)
      if (!(rule_tensor_get(to, i) == rule_tensor_get(from, i))) return false;
  }
  return true;
}

iso_code scope_run_table(scoping *z, const uint32_t t[2], const scope_table *table,
                         rule_tensor *out[2]) {
  running r;
  iso_code c = start(&r, z);
  uint32_t at;
  bool fine = false;
  out[0] = out[1] = NULL;
  r.captured = true;
  for (int k = 0; k < 2 && !c; k++) need(&r, t[k]);
  if (!c) r.value[table->atom] = table->most;
  if (!c && small_enough(&r)) c = run_needed(&r, &at, &fine);
  fine = fine && !c && casts_exactly(&r);
  for (int k = 0; k < 2 && !c && fine; k++) fine = r.n_out[t[k]] == 1;
  for (int k = 0; k < 2 && !c && fine; k++) out[k] = rule_tensor_ref(r.out[t[k]][0]);
  if (r.out && r.n_out) forget(&r);
  end(&r);
  return c;
}
