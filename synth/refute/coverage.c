/* The coverage of a comparison, so that a reader knows its gaps: operators that nothing
 * reaches, draws that were made, and branches on values (a mask, a clamp, a window) of which one
 * side was never taken on any of them. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/refute/refute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct seen { /* on all draws together */
  bool low, high;     /* below and above, or false and true */
} seen;

typedef struct point {
  state *s;
  int side;
  const synth_node *n;
  uint32_t node;
  size_t cap;
} point;

static bool valued(const point *p, uint32_t k) {
  if (k >= p->n->call->n || p->n->call->child[k]->kind != RULE_VAR) return false;
  const rec *r = st_rec(p->s, p->s->map[p->side][p->n->call->child[k]->u.i]);
  return r->valued && r->n_out == 1;
}

static rule_tensor *argument(const point *p, uint32_t k, size_t draw) {
  return st_val(p->s, p->s->map[p->side][p->n->call->child[k]->u.i], draw);
}

static bool number(const point *p, uint32_t k, double *out) {
  if (k >= p->n->call->n) return false;
  const rule_term *t = p->n->call->child[k];
  if (t->kind == RULE_FLOAT) *out = t->u.f;
  else if (t->kind == RULE_INT) *out = (double)t->u.i;
  else return false;
  return true;
}

/* Where argument k stands to `edge` (to argument `other` where that is a tensor). */
static seen against(const point *p, uint32_t k, double edge, int32_t other) {
  seen r = {false, false};
  for (size_t d = 0; d < p->s->n_draws && !(r.low && r.high); d++) {
    st_trim(p->s);
    const rule_tensor *t = argument(p, k, d),
                      *u = other >= 0 ? argument(p, (uint32_t)other, d) : NULL;
    if (!t || (other >= 0 && !u) || (u && u->numel != t->numel))
      return (seen){true, true}; /* broadcast: not looked at */
    for (int64_t i = 0; i < t->numel && !(r.low && r.high); i++) {
      const double x = rule_tensor_get(t, i), y = u ? rule_tensor_get(u, i) : edge;
      r.low |= x < y;
      r.high |= x > y;
    }
  }
  return r;
}

static iso_code note(const point *p, const char *text, iso_error *err) {
  synth_coverage *v = &p->s->res->coverage;
  synth_branch *b = (synth_branch *)(uintptr_t)v->branch;
  if (!text) return nomem(err);
  if (v->n_branches < p->cap) b[v->n_branches++] = (synth_branch){p->side == RIGHT, p->node, text};
  return ISO_OK;
}

/* A choice between two: `low` and `high` name the branch that was never seen. */
static iso_code choice(const point *p, seen r, const char *low, const char *high, iso_error *err) {
  p->s->res->coverage.n_points++;
  iso_code c = r.low || !low ? ISO_OK : note(p, low, err);
  return c || r.high || !high ? c : note(p, high, err);
}

static iso_code bounds(const point *p, uint32_t low, uint32_t high, iso_error *err) {
  double x;
  iso_arena *a = &p->s->res->arena;
  iso_code c = ISO_OK;
  if (low && number(p, low, &x))
    c = choice(p, against(p, 0, x, -1), iso_arena_printf(a, "no value below the lower bound %g", x),
               NULL, err);
  if (!c && high && number(p, high, &x))
    c = choice(p, against(p, 0, x, -1), NULL,
               iso_arena_printf(a, "no value above the upper bound %g", x), err);
  return c;
}

/* A sliding window shows only where a sequence is longer. */
static iso_code window(const point *p, iso_error *err) {
  const rule_schema *sc = rule_schemas_find(p->s->schemas, p->n->call->u.s);
  double w;
  for (uint32_t k = 0; sc && k < sc->n_args && k < p->n->call->n; k++)
    if (strcmp(sc->arg[k].name, "sliding_window") == 0 && number(p, k, &w) && w > 0 &&
        valued(p, 0)) {
      const int64_t tokens =
          st_rec(p->s, p->s->map[p->side][p->n->call->child[0]->u.i])->shape.dim[0];
      const char *text = iso_arena_printf(
          &p->s->res->arena, "no token is further away than the window of %g: there are %lld", w,
          (long long)tokens);
      return choice(p, (seen){(double)tokens > w, true}, text, NULL, err);
    }
  return ISO_OK;
}

static iso_code look(const point *p, iso_error *err) {
  const char *op = p->n->op;
  if (rule_is_overload(op, OP_WHERE) && valued(p, 0))
    return choice(p, against(p, 0, 0.5, -1), "the condition is never false",
                  "the condition is never true", err);
  if (rule_is_overload(op, OP_MASKED_FILL) && valued(p, 1))
    return choice(p, against(p, 1, 0.5, -1), "the mask keeps nothing", "the mask hides nothing",
                  err);
  if ((rule_is_overload(op, OP_RELU) || rule_is_overload(op, OP_LEAKY_RELU) ||
       rule_is_overload(op, OP_ELU)) &&
      valued(p, 0))
    return choice(p, against(p, 0, 0, -1), "no value below 0", "no value above 0", err);
  if ((rule_is_overload(op, OP_MAXIMUM) || rule_is_overload(op, OP_MINIMUM)) && valued(p, 0) &&
      valued(p, 1))
    return choice(p, against(p, 0, 0, 1), "the first is never the smaller one",
                  "the first is never the larger one", err);
  if (rule_is_overload(op, OP_CLAMP_MIN)) return valued(p, 0) ? bounds(p, 1, 0, err) : ISO_OK;
  if (rule_is_overload(op, OP_CLAMP_MAX)) return valued(p, 0) ? bounds(p, 0, 1, err) : ISO_OK;
  if (rule_is_overload(op, OP_CLAMP) || rule_is_overload(op, OP_HARDTANH))
    return valued(p, 0) ? bounds(p, 1, 2, err) : ISO_OK;
  return rule_is_aten(op) ? ISO_OK : window(p, err);
}

iso_code st_cover(state *s, const bool *const live[2], iso_error *err) {
  synth_result *r = s->res;
  synth_coverage *v = &r->coverage;
  const size_t cap = 3 * (s->graph[0]->n_nodes + s->graph[1]->n_nodes) + 1;
  v->n_captured = st_n_captured(s);
  v->n_redrawn = s->n_draws - v->n_captured;
  if (!(v->branch = iso_arena_alloc(&r->arena, cap * sizeof *v->branch))) return nomem(err);
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    uint32_t *dead = iso_arena_alloc(&r->arena, (g->n_nodes + 1) * sizeof *dead);
    if (!dead) return nomem(err);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      const synth_node *n = &g->node[i];
      if (!live[side][i]) dead[v->n_unreached[side]++] = i;
      else v->n_reached[side]++;
      if (!live[side][i] || n->kind != SYNTH_OP) continue;
      const point p = {s, side, n, i, cap};
      iso_code c = look(&p, err);
      if (c) return c;
    }
    v->unreached[side] = dead;
  }
  return ISO_OK;
}
