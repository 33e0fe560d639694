/* Runs the ranks themselves, and compares them with the tensors that they are claimed to hold
 * together.
 *
 * Ranks are decided once on the strength of an argument about places. This file argues nothing: it
 * runs every rank's own nodes, on the captured leaves and on drawn ones, computes each node's place
 * from their results and compares it with the node of the new graph. If one node on one rank
 * disagrees, the ranks are compared as they are.
 *
 * All ranks take a step together. A rank that takes the first's step on the first's tensors has the
 * first's result, so that work that is the same on all ranks is done once.
 *
 * Ranks add up in another order, so that a sum which cancels leaves rounding behind. The new graph
 * tells how much that may be: it is run once more with each result disturbed by far more than
 * rounding does, and a node is forgiven as much as this moves it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/roles/replay_int.h"
#include "rules/operators.h"

enum { LEAST_RESULTS = 64, DISTURBED = 2 };
static const double REL_TOL = 1e-9, NOISE = 1e-11;

typedef struct cell { /* the results of a node */
  rule_tensor **of;
  size_t n;
} cell;

typedef struct replay {
  roles_work *x;
  const char *what;    /* the leaves that it is run on, in words */
  rule_tensor **whole; /* by node of the new graph: the first result */
  cell *wholes;        /* nodes of several */
  double *forgiven;    /* by node of the new graph */
  rule_tensor **value; /* by node of the ranks */
  cell *values;
  uint32_t *last; /* by node of the ranks: the last step that reads or compares it */
  bool *done;
  rule_tensor **out;    /* of one call */
  rule_tensor **theirs; /* by rank */
  size_t cap;
} replay;

static const cap_node *node_of(const replay *p, uint32_t i) { return &p->x->g->node[i]; }

static void drop(rule_tensor **v, cell *c) {
  rule_tensor_unref(*v);
  *v = NULL;
  for (size_t k = 0; k < c->n; k++) rule_tensor_unref(c->of[k]);
  free(c->of);
  *c = (cell){0};
}

/* Takes the `n` tensors of p->out. */
static iso_code keep(const replay *p, size_t n, rule_tensor **v, cell *c) {
  *v = n ? p->out[0] : NULL;
  if (n < 2) return ISO_OK;
  c->of = calloc(n, sizeof *c->of);
  for (size_t k = 1; k < n; k++)
    if (c->of) c->of[k] = p->out[k];
    else rule_tensor_unref(p->out[k]);
  c->n = c->of ? n : 0;
  return c->of ? ISO_OK : roles_nomem(p->x);
}

static rule_tensor *item(const rule_term *t, rule_tensor *const *v, const cell *c) {
  const uint32_t from = (uint32_t)t->child[0]->u.i;
  const size_t k = (size_t)t->child[1]->u.i;
  return k == 0 ? v[from] : k < c[from].n ? c[from].of[k] : NULL;
}

/* Returns: in `ran` whether there is a result. */
static iso_code run(const replay *p, const rule_term *t, rule_tensor *const *v, const cell *c,
                    size_t *n, bool *ran) {
  roles_work *x = p->x;
  iso_error why;
  *n = 1;
  *ran = true;
  if (rule_is_getitem(t->u.s) && t->child[0]->kind == RULE_VAR) {
    p->out[0] = rule_tensor_ref(item(t, v, c));
    *ran = p->out[0] != NULL;
    return ISO_OK;
  }
  const rule_oracle *o = x->q->oracle;
  const iso_code code = o->call(o->ctx, t, v, true, p->out, p->cap, n, &why);
  *ran = !code && *n > 0;
  if (code == ISO_NOMEM || code == ISO_DEVICE) return iso_fail(x->err, code, "%s", why.msg);
  return ISO_OK;
}

/* ---- the new graph ---- */

/* Another tensor in the place of `*t`, disturbed. */
static iso_code disturb(const replay *p, rule_tensor **t, iso_rng *rng) {
  rule_tensor *was = *t, *own;
  if (!was || was->dtype != RULE_F64) return ISO_OK;
  const iso_code c = rule_tensor_new(RULE_F64, &was->shape, &own, p->x->err);
  if (c) return c;
  uint64_t up = 0; /* a bit for each */
  for (int64_t i = 0; i < was->numel; i++, up >>= 1) {
    if (i % 64 == 0) up = iso_rng_next(rng);
    ((double *)own->data)[i] = ((const double *)was->data)[i] * (up & 1 ? 1 + NOISE : 1 - NOISE);
  }
  rule_tensor_unref(was);
  *t = own;
  return ISO_OK;
}

static double moved(const rule_tensor *a, const rule_tensor *b) {
  double most = 0;
  if (a->dtype != RULE_F64 || b->dtype != RULE_F64 || a->numel != b->numel) return 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double d = fabs(((const double *)a->data)[i] - ((const double *)b->data)[i]);
    if (isfinite(d) && d > most) most = d;
  }
  return most;
}

/* Its leaves are in `v`. `rng`: each result is disturbed. `runs`: whether all of it does. */
static iso_code run_whole(const replay *p, iso_rng *rng, rule_tensor **v, cell *cells, bool *runs) {
  const roles_work *x = p->x;
  iso_code c = ISO_OK;
  *runs = true;
  for (size_t i = 0; i < x->n_made && !c && *runs; i++) {
    size_t n;
    if (x->made[i].as.call) {
      c = run(p, x->made[i].as.call, v, cells, &n, runs);
      if (!c && *runs) c = keep(p, n, &v[i], &cells[i]);
    }
    if (rng && !c && *runs) c = disturb(p, &v[i], rng);
    for (size_t k = 1; rng && k < cells[i].n && !c; k++) c = disturb(p, &cells[i].of[k], rng);
  }
  return c;
}

/* Runs on the same leaves with each result disturbed, and compares with the undisturbed run. */
static iso_code find_forgiven(replay *p, unsigned stream) {
  const roles_work *x = p->x;
  iso_rng rng = iso_rng_new(x->q->seed, stream);
  rule_tensor **v = calloc(x->n_made + 1, sizeof *v);
  cell *cells = calloc(x->n_made + 1, sizeof *cells);
  iso_code c = v && cells ? ISO_OK : roles_nomem(p->x);
  bool runs;
  for (size_t i = 0; i < x->n_made && !c; i++)
    if (!x->made[i].as.call) v[i] = rule_tensor_ref(p->whole[i]);
  if (!c) c = run_whole(p, &rng, v, cells, &runs);
  for (size_t i = 0; i < x->n_made && !c; i++)
    if (v[i]) p->forgiven[i] = fmax(p->forgiven[i], moved(p->whole[i], v[i]));
  for (size_t i = 0; v && cells && i < x->n_made; i++) drop(&v[i], &cells[i]);
  free(v);
  free(cells);
  return c;
}

/* ---- the ranks ---- */

/* The rank's own value of a leaf: the captured one, or its part of the drawn one. */
static iso_code take_leaf(replay *p, uint32_t node, uint32_t first, uint32_t r, int64_t set) {
  roles_work *x = p->x;
  const roles_place *at = &x->place[first];
  if (set >= 0) {
    const cap_graph *g = x->g;
    rule_tensor *own = g->node[node].kind == CAP_INPUT ? g->input[(size_t)set * g->n_nodes + node]
                                                       : g->node[node].value;
    return rule_tensor_to_float64(own, &p->value[node], x->err);
  }
  if (at->kind == ROLES_PART) return roles_cut(x, p->whole[at->at], at->dim, r, &p->value[node]);
  p->value[node] = rule_tensor_ref(p->whole[at->at]);
  return ISO_OK;
}

/* Whether two calls are one, on the same tensors. */
static bool same_call(const replay *p, const rule_term *a, const rule_term *b) {
  if (a->kind != b->kind) return false;
  if (a->kind == RULE_VAR)
    return p->value[a->u.i] && p->value[a->u.i] == p->value[b->u.i] && p->values[a->u.i].n == 0 &&
           p->values[b->u.i].n == 0;
  if (a->kind != RULE_OP && a->kind != RULE_LIST) return rule_term_eq(a, b);
  if (a->n != b->n || (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0)) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_call(p, a->child[i], b->child[i])) return false;
  return true;
}

static iso_code copy(replay *p, uint32_t from, uint32_t to) {
  const cell *c = &p->values[from];
  const size_t n = c->n ? c->n : 1;
  p->out[0] = rule_tensor_ref(p->value[from]);
  for (size_t k = 1; k < n; k++) p->out[k] = rule_tensor_ref(c->of[k]);
  return keep(p, n, &p->value[to], &p->values[to]);
}

static iso_code step(replay *p, uint32_t first, uint32_t r, int64_t set) {
  roles_work *x = p->x;
  const uint32_t node = roles_image(x, r, first), zero = roles_image(x, 0, first);
  const cap_node *n = node_of(p, node);
  bool ran = false;
  size_t n_out;
  if (p->done[node]) return ISO_OK;
  p->done[node] = true;
  iso_code c = ISO_OK;
  if (!n->call) c = take_leaf(p, node, first, r, set);
  else if (r && same_call(p, node_of(p, zero)->call, n->call)) c = copy(p, zero, node);
  else {
    c = run(p, n->call, p->value, p->values, &n_out, &ran);
    if (!c && !ran) return roles_refuse(x, "%s cannot be run on %s", n->id, p->what);
    if (!c) c = keep(p, n_out, &p->value[node], &p->values[node]);
  }
  if (c || !r || p->values[node].n || p->value[node] == p->value[zero]) return c;
  if (p->value[zero] && rule_tensor_same(p->value[node], p->value[zero])) {
    rule_tensor_unref(p->value[node]);
    p->value[node] = rule_tensor_ref(p->value[zero]);
  }
  return ISO_OK;
}

/* ---- places ---- */

/* So many times the tensor. Owns: the caller unrefs. */
static iso_code multiplied(const replay *p, const rule_tensor *t, rule_tensor **out) {
  const iso_code c = rule_tensor_new(t->dtype, &t->shape, out, p->x->err);
  for (int64_t i = 0; !c && i < t->numel; i++)
    ((double *)(*out)->data)[i] = ((const double *)t->data)[i] * p->x->n_ranks;
  return c;
}

/* Whether the ranks' tensors can be put together, and to the claimed shape. */
static bool fits(const replay *p, const roles_place *at, const rule_tensor *whole) {
  rule_shape shape = whole->shape;
  const bool parts = at->kind == ROLES_PART;
  if (parts && (at->dim >= shape.rank || shape.dim[at->dim] % p->x->n_ranks)) return false;
  if (parts) shape.dim[at->dim] /= p->x->n_ranks;
  for (uint32_t r = 0; r < p->x->n_ranks; r++)
    if (!p->theirs[r] || p->theirs[r]->dtype != whole->dtype ||
        !rule_shape_eq(&p->theirs[r]->shape, &shape))
      return false;
  return (at->kind != ROLES_SUM && !at->times) || whole->dtype == RULE_F64;
}

static iso_code summed(const replay *p, rule_tensor **out) {
  const iso_code c = rule_tensor_new(RULE_F64, &p->theirs[0]->shape, out, p->x->err);
  for (uint32_t r = 0; r < p->x->n_ranks && !c; r++)
    for (int64_t i = 0; i < (*out)->numel; i++)
      ((double *)(*out)->data)[i] += ((const double *)p->theirs[r]->data)[i];
  return c;
}

static bool is_near(const rule_tensor *a, const rule_tensor *b, double most) {
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = ((const double *)a->data)[i], y = ((const double *)b->data)[i];
    if (!(fabs(x - y) <= most) && x != y && !(isnan(x) && isnan(y))) return false;
  }
  return true;
}

static bool equal(const replay *p, const rule_tensor *a, const rule_tensor *b, double forgiven) {
  const rule_oracle *o = p->x->q->oracle;
  if (a == b || rule_tensor_same(a, b)) return true;
  if (!rule_dtype_is_inexact(a->dtype)) return false;
  return (a->dtype == RULE_F64 && is_near(a, b, forgiven)) ||
         o->compare(o->ctx, a, b, REL_TOL).equal;
}

/* The ranks' values, put together, against `whole`. */
static iso_code agree(const replay *p, const roles_place *at, const rule_tensor *whole, bool *yes) {
  const double forgiven = p->forgiven[at->at] * (at->times ? p->x->n_ranks : 1);
  rule_tensor *all = NULL;
  iso_code c = ISO_OK;
  *yes = true;
  if (at->kind == ROLES_SAME) {
    for (uint32_t r = 0; r < p->x->n_ranks && *yes; r++)
      *yes = (r && p->theirs[r] == p->theirs[0]) || equal(p, whole, p->theirs[r], forgiven);
    return c;
  }
  c = at->kind == ROLES_SUM ? summed(p, &all) : roles_join(p->x, p->theirs, at->dim, &all);
  if (!c) *yes = equal(p, whole, all, forgiven);
  rule_tensor_unref(all);
  return c;
}

static iso_code hold(replay *p, uint32_t first) {
  roles_work *x = p->x;
  const roles_place *at = &x->place[first];
  rule_tensor *whole = at->kind == ROLES_OPEN || at->kind == ROLES_MANY ? NULL : p->whole[at->at];
  bool yes = true;
  iso_code c = ISO_OK;
  if (!whole) return ISO_OK;
  for (uint32_t r = 0; r < x->n_ranks; r++) p->theirs[r] = p->value[roles_image(x, r, first)];
  yes = fits(p, at, whole);
  if (yes && at->times) c = multiplied(p, whole, &whole);
  else rule_tensor_ref(whole);
  if (c) return c;
  if (yes) c = agree(p, at, whole, &yes);
  rule_tensor_unref(whole);
  if (c || yes) return c;
  return roles_refuse(x, "%s is something else on the ranks themselves, run on %s",
                      node_of(p, first)->id, p->what);
}

/* ---- a run ---- */

static void mark_read(replay *p, const rule_term *t, uint32_t step) {
  if (t->kind == RULE_VAR) p->last[t->u.i] = step;
  for (uint32_t i = 0; i < t->n; i++) mark_read(p, t->child[i], step);
}

/* Collectives are one node of all ranks: looked at once. */
static void find_last(replay *p) {
  const roles_work *x = p->x;
  for (uint32_t k = 0; k < x->n_needed; k++)
    for (uint32_t r = 0; r < x->n_ranks; r++) {
      const uint32_t node = roles_image(x, r, x->at[k]);
      const cap_node *n = node_of(p, node);
      if (n->call && (!r || !x->meets[x->at[k]])) mark_read(p, n->call, k);
      p->last[node] = k;
    }
}

static void let_go(replay *p, const rule_term *t, uint32_t step) {
  if (t->kind == RULE_VAR && p->last[t->u.i] == step) drop(&p->value[t->u.i], &p->values[t->u.i]);
  for (uint32_t i = 0; i < t->n; i++) let_go(p, t->child[i], step);
}

static iso_code run_ranks(replay *p, int64_t set) {
  roles_work *x = p->x;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < x->n_needed && !c && !roles_refused(x); k++) {
    for (uint32_t r = 0; r < x->n_ranks && !c && !roles_refused(x); r++)
      c = step(p, x->at[k], r, set);
    if (!c && !roles_refused(x)) c = hold(p, x->at[k]);
    for (uint32_t r = 0; r < x->n_ranks; r++) {
      const uint32_t node = roles_image(x, r, x->at[k]);
      const cap_node *n = node_of(p, node);
      if (n->call && (!r || !x->meets[x->at[k]])) let_go(p, n->call, k);
      if (p->last[node] == k) drop(&p->value[node], &p->values[node]);
    }
  }
  return c;
}

/* Leaves of the set, or of draw -1 - set. */
static iso_code run_set(replay *p, int64_t set) {
  roles_work *x = p->x;
  bool runs = false;
  memset(p->done, 0, x->g->n_nodes * sizeof *p->done);
  p->what = set < 0 ? "drawn leaves" : "the captured leaves";
  iso_code c = set < 0 ? roles_drawn(x, (unsigned)(-1 - set), p->whole)
                       : roles_captured(x, (size_t)set, p->whole);
  if (!c) c = run_whole(p, NULL, p->whole, p->wholes, &runs);
  /* Drawn leaves may be such as the program is not meant for: indices beyond their table. */
  if (!c && !runs && set >= 0) c = roles_refuse(x, "the graph of one cannot be run on %s", p->what);
  memset(p->forgiven, 0, x->n_made * sizeof *p->forgiven);
  for (unsigned k = 0; k < DISTURBED && !c && runs; k++) c = find_forgiven(p, k);
  if (!c && runs) c = run_ranks(p, set);
  for (size_t i = 0; i < x->n_made; i++) drop(&p->whole[i], &p->wholes[i]);
  for (size_t i = 0; i < x->g->n_nodes; i++) drop(&p->value[i], &p->values[i]);
  return c;
}

iso_code roles_replay(roles_work *x) {
  const size_t n = x->g->n_nodes + 1;
  replay p = {.x = x, .cap = x->n_ranks < LEAST_RESULTS ? LEAST_RESULTS : x->n_ranks};
  p.whole = calloc(x->n_made + 1, sizeof *p.whole);
  p.wholes = calloc(x->n_made + 1, sizeof *p.wholes);
  p.forgiven = calloc(x->n_made + 1, sizeof *p.forgiven);
  p.value = calloc(n, sizeof *p.value);
  p.values = calloc(n, sizeof *p.values);
  p.last = calloc(n, sizeof *p.last);
  p.done = calloc(n, sizeof *p.done);
  p.out = calloc(p.cap, sizeof *p.out);
  p.theirs = calloc(x->n_ranks, sizeof *p.theirs);
  const bool room = p.whole && p.wholes && p.forgiven && p.value && p.values && p.last && p.done &&
                    p.out && p.theirs;
  iso_code c = room ? ISO_OK : roles_nomem(x);
  if (!c) find_last(&p);
  for (int64_t set = -ROLES_DRAWS; set < (int64_t)x->g->n_sets && !c && !roles_refused(x); set++)
    c = run_set(&p, set);
  free(p.whole);
  free(p.wholes);
  free(p.forgiven);
  free(p.value);
  free(p.values);
  free(p.last);
  free(p.done);
  free(p.out);
  free(p.theirs);
  return c;
}
