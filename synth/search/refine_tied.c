/* Which variables of a refuted candidate are not free in the graphs.
 *
 * A candidate holds on the values that its classes have, or it would not be one. Where it is
 * refuted, some variables are tied: to others (a table and its halves), or in themselves (heads
 * that repeat). Each in turn is given other values while the rest keep theirs: where the sides
 * part, it is one of these. So several are opened at once, where best first would try every choice
 * of them. */
#include "synth/search/frontier.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 320 };
static const int64_t MAX_ELEMENTS = 1 << 18; /* of all variables */

typedef struct step { /* an operator of a side, its arguments variables: of the rule, or the steps
                         before */
  const rule_term *of, *call;
  rule_tensor *v[MAX_OUT];
  size_t n;
} step;

typedef struct plan {
  state *s;
  iso_arena arena;
  step *at;
  size_t n, n_vars;
  rule_tensor **bind; /* variables, then the steps' first outputs */
  iso_rng rng;        /* of other values */
} plan;

static bool projects(const rule_term *t) { return t->kind == RULE_OP && rule_is_getitem(t->u.s); }

static bool add_step(plan *p, const rule_term *t);

/* A term with steps for its operators; NULL where one cannot be made. */
static const rule_term *flat(plan *p, const rule_term *t) {
  if (t->kind == RULE_OP) {
    if (!add_step(p, t)) return NULL;
    for (size_t i = 0; i < p->n; i++)
      if (p->at[i].of == t) return rule_var(&p->arena, (uint32_t)(p->n_vars + i));
    return NULL;
  }
  if (t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(&p->arena, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; i < t->n && child; i++)
    if (!(child[i] = flat(p, t->child[i]))) return NULL;
  return child ? rule_list(&p->arena, child, t->n) : NULL;
}

static bool add_step(plan *p, const rule_term *t) {
  for (size_t i = 0; i < p->n; i++)
    if (p->at[i].of == t) return true;
  const rule_term **child = iso_arena_alloc(&p->arena, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; i < t->n && child; i++)
    if (!(child[i] = flat(p, t->child[i]))) return false;
  if (!child || p->n == MAX_OPS) return false;
  p->at[p->n] = (step){.of = t, .call = rule_op(&p->arena, t->u.s, child, t->n)};
  return p->at[p->n++].call != NULL;
}

static void let_go(plan *p) {
  for (size_t i = 0; i < p->n; i++) {
    for (size_t k = 0; k < p->at[i].n; k++) rule_tensor_unref(p->at[i].v[k]);
    p->at[i].n = 0;
    p->bind[p->n_vars + i] = NULL;
  }
}

static iso_code run_step(plan *p, step *st, iso_error *err) {
  if (!projects(st->of))
    return p->s->oracle->call(p->s->oracle->ctx, st->call, p->bind, true, st->v, MAX_OUT, &st->n,
                              err);
  const rule_term *from = st->call->child[0];
  const size_t k = (size_t)st->call->child[1]->u.i, at = (size_t)from->u.i;
  if (from->kind != RULE_VAR || at < p->n_vars || k >= p->at[at - p->n_vars].n)
    return iso_fail(err, ISO_RANGE, "no such output");
  st->v[0] = rule_tensor_ref(p->at[at - p->n_vars].v[k]);
  st->n = 1;
  return ISO_OK;
}

/* Both sides on the values bound. Returns: in `same`, whether they agree; in `fails`, whether an
 * operator cannot take them. */
static iso_code run(plan *p, const rule_term *const side[2], bool *same, bool *fails,
                    iso_error *err) {
  iso_error ignored;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < p->n && !c; i++)
    if (!(c = run_step(p, &p->at[i], &ignored))) p->bind[p->n_vars + i] = p->at[i].v[0];
  *same = false;
  *fails = c != ISO_OK;
  if (!c) {
    const rule_tensor *l = p->bind[side[0]->u.i], *r = p->bind[side[1]->u.i];
    *same = l && r && l->numel == r->numel &&
            p->s->oracle->compare(p->s->oracle->ctx, l, r, 1e-7).equal;
  }
  let_go(p);
  return c == ISO_NOMEM ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
}

/* Its elements in another order; numbers scaled as well, and no zeros where there were only those;
 * one row of a mask hides all; whole numbers, with `far`, past all that there were. */
static iso_code other_values(const rule_tensor *v, bool far, iso_rng *rng, rule_tensor **out,
                             iso_error *err) {
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  if (c) return c;
  bool zero = true;
  for (int64_t i = 0; i < v->numel; i++) {
    const int64_t j = (int64_t)iso_rng_below(rng, (uint64_t)i + 1);
    rule_tensor_set(*out, i, rule_tensor_get(*out, j));
    rule_tensor_set(*out, j, rule_tensor_get(v, i));
    zero &= rule_tensor_get(v, i) == 0;
  }
  for (int64_t i = 0; i < v->numel && rule_dtype_is_float(v->dtype); i++)
    rule_tensor_set(*out, i, (zero ? 1 : rule_tensor_get(*out, i)) * (0.5 + iso_rng_uniform(rng)));
  const int64_t row = v->shape.rank ? v->shape.dim[v->shape.rank - 1] : v->numel;
  for (int64_t i = 0; i < row && v->dtype == RULE_BOOL; i++) rule_tensor_set(*out, i, 0);
  for (int64_t i = 0; i < v->numel && far && rule_dtype_is_int(v->dtype); i++)
    rule_tensor_set(*out, i, rule_tensor_get(*out, i) + 2 * (double)v->numel);
  return ISO_OK;
}

static iso_code vary_one(plan *p, const rule_term *const side[2], size_t i, bool far, bool *tied,
                         bool *fails, iso_error *err) {
  rule_tensor *const own = p->bind[i];
  bool same = true;
  iso_code c = other_values(own, far, &p->rng, &p->bind[i], err);
  if (!c) {
    c = run(p, side, &same, fails, err);
    rule_tensor_unref(p->bind[i]);
  }
  p->bind[i] = own;
  *tied = !same;
  return c;
}

static iso_code vary(plan *p, const rule_term *const side[2], bool *tied, iso_error *err) {
  p->rng = iso_rng_new(p->s->o->seed, 0x74696564);
  bool same, fails;
  iso_code c = run(p, side, &same, &fails, err);
  for (size_t i = 0; i < p->n_vars && same && !c; i++) {
    if (!p->bind[i] || rule_dtype_is_complex(p->bind[i]->dtype)) continue;
    c = vary_one(p, side, i, true, &tied[i], &fails, err);
    if (!c && fails && rule_dtype_is_int(p->bind[i]->dtype))
      c = vary_one(p, side, i, false, &tied[i], &fails, err);
  }
  return c;
}

iso_code fr_tied(state *s, const builder *b, const rule_term *l, const rule_term *r, bool *tied,
                 iso_error *err) {
  plan p = {.s = s,
            .n_vars = b->n_vars,
            .at = calloc(MAX_OPS, sizeof *p.at),
            .bind = calloc(b->n_vars + MAX_OPS, sizeof *p.bind)};
  iso_arena_init(&p.arena);
  const size_t draw =
      s->n_draws > s->n_sets ? s->n_sets : 0; /* captured parameters may be ones and zeros */
  iso_code c = p.at && p.bind ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  int64_t elements = 0;
  for (size_t i = 0; i < b->n_vars; i++) tied[i] = false;
  for (size_t i = 0; i < b->n_vars && !c; i++) {
    const eg_node rep = st_rep(s, b->var[i]);
    if (rep.i == EG_NONE || (elements += st_numel(s, rep)) > MAX_ELEMENTS) break;
    if (b->used[i] && !(p.bind[i] = rule_tensor_ref(st_val(s, rep, draw))))
      c = st_lost(&s->values, err);
  }
  const rule_term *side[2] = {NULL, NULL};
  if (!c && elements <= MAX_ELEMENTS && (side[0] = flat(&p, l)) && (side[1] = flat(&p, r)))
    c = vary(&p, side, tied, err);
  for (size_t i = 0; i < b->n_vars && p.bind; i++) rule_tensor_unref(p.bind[i]);
  free(p.at);
  free(p.bind);
  iso_arena_fini(&p.arena);
  return c;
}
