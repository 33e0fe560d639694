/* Runs the ranks themselves, and compares them with the tensors that they are claimed to hold
 * together.
 *
 * Ranks are decided once on the strength of an argument about places. This file argues nothing: it
 * runs every rank's own nodes, on the captured leaves and on drawn ones, computes each node's place
 * from their results and compares it with the node of the new graph. If one node on one rank
 * disagrees, the ranks are compared as they are.
 *
 * Of ranks that are written once no two differ but by their leaves. There a few are run, the first,
 * the last and drawn ones, and each other rank has the leaves of one of them, and so its results:
 * what all ranks have together is made of as many tensors as there are ranks all the same. Where a
 * result is shared out by place each rank is run, since then their places tell them apart.
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
#include "rules/names.h"
#include "rules/operators.h"

enum { LEAST_RESULTS = 64, DISTURBED = 2, MOST_RUNS = 16 };
static const double REL_TOL = 1e-9, NOISE = 1e-11;
static const uint64_t RUNS = UINT64_C(0x72756e73);

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
  bool has_forgiven;   /* it is known of these leaves */
  uint32_t n_runs;     /* of ranks */
  uint32_t *rank;      /* by run: whose it is */
  uint32_t *run;       /* by rank: the run that has its results */
  size_t stride;       /* from the nodes of a run to those of the next: 0, they have other nodes */
  size_t n_slots;      /* nodes of all runs */
  rule_tensor **value; /* by slot */
  cell *values;
  uint32_t *last; /* by slot: the last step that reads or compares it */
  bool *done;
  rule_tensor **out;    /* of one call */
  rule_tensor **theirs; /* by rank */
  size_t cap;
} replay;

static const cap_node *node_of(const replay *p, uint32_t i) { return &p->x->g->node[i]; }

/* The value that run `j` has in the place of the first rank's node. */
static size_t slot(const replay *p, uint32_t j, uint32_t first) {
  return j * p->stride + roles_image(p->x, p->rank[j], first);
}

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
  const double by[2] = {1 - NOISE, 1 + NOISE};
  uint64_t up = 0; /* a bit for each */
  for (int64_t i = 0; i < was->numel; i++, up >>= 1) {
    if (i % 64 == 0) up = iso_rng_next(rng);
    ((double *)own->data)[i] = ((const double *)was->data)[i] * by[up & 1];
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

/* Runs that are whole are the first, the last, and drawn ones. */
static void choose_runs(replay *p, iso_rng *rng) {
  const uint32_t n = p->x->n_ranks;
  for (uint32_t j = 0; j < p->n_runs; j++) p->rank[j] = j;
  for (uint32_t j = 1; p->n_runs < n && j < p->n_runs; j++) {
    /* One of each of as many ranges, so that no two are one. */
    const uint32_t low = (uint32_t)((uint64_t)n * j / p->n_runs),
                   high = (uint32_t)((uint64_t)n * (j + 1) / p->n_runs);
    p->rank[j] = j + 1 == p->n_runs ? n - 1 : low + (uint32_t)iso_rng_below(rng, high - low);
  }
  for (uint32_t r = 0; r < n; r++)
    p->run[r] = p->n_runs < n ? (uint32_t)iso_rng_below(rng, p->n_runs) : r;
  for (uint32_t j = 0; j < p->n_runs; j++) p->run[p->rank[j]] = j;
}

/* A leaf of which ranks without a run have another's part. */
static iso_code repeat(const replay *p, const roles_place *at) {
  roles_work *x = p->x;
  rule_tensor *own[MOST_RUNS] = {NULL}, **whole = &p->whole[at->at], *was = *whole;
  iso_code c = ISO_OK;
  for (uint32_t j = 0; j < p->n_runs && !c; j++)
    c = roles_cut(x, was, at->dim, p->rank[j], &own[j]);
  for (uint32_t r = 0; r < x->n_ranks; r++) p->theirs[r] = own[p->run[r]];
  if (!c && !(c = roles_join(x, p->theirs, at->dim, whole))) rule_tensor_unref(was);
  for (uint32_t j = 0; j < p->n_runs; j++) rule_tensor_unref(own[j]);
  return c;
}

static iso_code repeat_leaves(const replay *p) {
  const roles_work *x = p->x;
  iso_code c = ISO_OK;
  for (uint32_t j = 0; j < x->n_leaves && p->n_runs < x->n_ranks && !c; j++)
    if (x->place[x->leaf[j]].kind == ROLES_PART) c = repeat(p, &x->place[x->leaf[j]]);
  return c;
}

/* The rank's own value of a leaf: the captured one, or its part of the drawn one. Of ranks that are
 * written once `whole` is of these. */
static iso_code take_leaf(replay *p, uint32_t first, uint32_t j, int64_t set) {
  roles_work *x = p->x;
  const roles_place *at = &x->place[first];
  rule_tensor **v = &p->value[slot(p, j, first)];
  if (set >= 0 && !x->once)
    return rule_tensor_to_float64(roles_value(x, p->rank[j], first, (size_t)set), v, x->err);
  if (at->kind == ROLES_PART) return roles_cut(x, p->whole[at->at], at->dim, p->rank[j], v);
  *v = rule_tensor_ref(p->whole[at->at]);
  return ISO_OK;
}

/* A call, with the nodes of a run. */
typedef struct called {
  const rule_term *call;
  rule_tensor *const *v;
  const cell *c;
} called;

static called call_of(const replay *p, uint32_t j, uint32_t first) {
  const size_t base = j * p->stride;
  return (called){node_of(p, roles_image(p->x, p->rank[j], first))->call, p->value + base,
                  p->values + base};
}

/* Whether two calls are one, on the same tensors. */
static bool same_call(const called *x, const called *y) {
  const rule_term *a = x->call, *b = y->call;
  if (a->kind != b->kind) return false;
  if (a->kind == RULE_VAR)
    return x->v[a->u.i] && x->v[a->u.i] == y->v[b->u.i] && x->c[a->u.i].n == 0 &&
           y->c[b->u.i].n == 0;
  if (a->kind != RULE_OP && a->kind != RULE_LIST) return rule_term_eq(a, b);
  if (a->n != b->n || (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0)) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_call(&(called){a->child[i], x->v, x->c}, &(called){b->child[i], y->v, y->c}))
      return false;
  return true;
}

static iso_code copy(replay *p, size_t from, size_t to) {
  const cell *c = &p->values[from];
  const size_t n = c->n ? c->n : 1;
  p->out[0] = rule_tensor_ref(p->value[from]);
  for (size_t k = 1; k < n; k++) p->out[k] = rule_tensor_ref(c->of[k]);
  return keep(p, n, &p->value[to], &p->values[to]);
}

/* In which all ranks meet that are written once. */
static iso_code meet(replay *p, uint32_t node) {
  roles_work *x = p->x;
  iso_arena a;
  iso_arena_init(&a);
  const rule_term *t = node_of(p, node)->call;
  const uint32_t own = (uint32_t)t->child[0]->child[0]->u.i;
  const rule_term **of = iso_arena_alloc(&a, x->n_ranks * sizeof *of),
                  **child = iso_arena_alloc(&a, t->n * sizeof *child);
  bool ran = of && child;
  size_t n = 0;
  for (uint32_t r = 0; r < x->n_ranks && ran; r++) {
    p->theirs[r] = p->value[slot(p, p->run[r], own)];
    ran = (of[r] = rule_var(&a, r)) != NULL;
  }
  if (ran) memcpy(child, t->child, t->n * sizeof *child);
  if (ran) ran = (child[0] = rule_list(&a, of, x->n_ranks)) != NULL;
  const rule_term *all = ran ? rule_op(&a, t->u.s, child, t->n) : NULL;
  iso_code c = all ? run(p, all, p->theirs, NULL, &n, &ran) : roles_nomem(x);
  if (!c && !ran) c = roles_refuse(x, "%s cannot be run on %s", node_of(p, node)->id, p->what);
  for (uint32_t j = 0; j < p->n_runs && n; j++) /* each has all of it, or its share */
    p->value[slot(p, j, node)] = rule_tensor_ref(p->out[n == 1 ? 0 : p->rank[j]]);
  for (size_t k = 0; k < n; k++) rule_tensor_unref(p->out[k]);
  iso_arena_fini(&a);
  return c;
}

static iso_code step(replay *p, uint32_t first, uint32_t j, int64_t set) {
  roles_work *x = p->x;
  const size_t at = slot(p, j, first), zero = slot(p, 0, first);
  const called own = call_of(p, j, first), other = call_of(p, 0, first);
  bool ran = false;
  size_t n_out;
  if (x->once && x->meets[first]) return j ? ISO_OK : meet(p, first);
  if (p->done[at]) return ISO_OK;
  p->done[at] = true;
  iso_code c = ISO_OK;
  if (!own.call) c = take_leaf(p, first, j, set);
  else if (j && same_call(&other, &own)) c = copy(p, zero, at);
  else {
    c = run(p, own.call, own.v, own.c, &n_out, &ran);
    if (!c && !ran)
      return roles_refuse(x, "%s cannot be run on %s", node_of(p, first)->id, p->what);
    if (!c) c = keep(p, n_out, &p->value[at], &p->values[at]);
  }
  if (c || !j || p->values[at].n || p->value[at] == p->value[zero]) return c;
  if (p->value[zero] && rule_tensor_same(p->value[at], p->value[zero])) {
    rule_tensor_unref(p->value[at]);
    p->value[at] = rule_tensor_ref(p->value[zero]);
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

/* Whether `b`, of the ranks, is `a`, which has the place. */
static iso_code equal(replay *p, const roles_place *at, const rule_tensor *a, const rule_tensor *b,
                      bool *yes) {
  const rule_oracle *o = p->x->q->oracle;
  iso_code c = ISO_OK;
  *yes = a == b || rule_tensor_same(a, b);
  if (*yes || !rule_dtype_is_inexact(a->dtype)) return c;
  *yes = o->compare(o->ctx, a, b, REL_TOL).equal;
  if (*yes || a->dtype != RULE_F64) return c;
  for (unsigned k = 0; k < DISTURBED && !c && !p->has_forgiven; k++) c = find_forgiven(p, k);
  p->has_forgiven = true;
  *yes = !c && is_near(a, b, p->forgiven[at->at] * (at->times ? p->x->n_ranks : 1));
  return c;
}

/* The ranks' values, put together, against `whole`. */
static iso_code agree(replay *p, const roles_place *at, const rule_tensor *whole, bool *yes) {
  rule_tensor *all = NULL;
  iso_code c = ISO_OK;
  *yes = true;
  if (at->kind == ROLES_SAME) {
    for (uint32_t j = 0; j < p->n_runs && *yes && !c; j++) {
      const uint32_t r = p->rank[j];
      if (!j || p->theirs[r] != p->theirs[0]) c = equal(p, at, whole, p->theirs[r], yes);
    }
    return c;
  }
  c = at->kind == ROLES_SUM ? summed(p, &all) : roles_join(p->x, p->theirs, at->dim, &all);
  if (!c) c = equal(p, at, whole, all, yes);
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
  for (uint32_t r = 0; r < x->n_ranks; r++) p->theirs[r] = p->value[slot(p, p->run[r], first)];
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

static void mark_read(const replay *p, const rule_term *t, size_t base, uint32_t step) {
  if (t->kind == RULE_VAR) p->last[base + (size_t)t->u.i] = step;
  for (uint32_t i = 0; i < t->n; i++) mark_read(p, t->child[i], base, step);
}

/* Collectives are one node of all ranks, unless these are written once: looked at once. */
static bool looks(const replay *p, uint32_t first, uint32_t j) {
  return node_of(p, first)->call && (!j || p->stride || !p->x->meets[first]);
}

static void find_last(const replay *p) {
  const roles_work *x = p->x;
  for (uint32_t k = 0; k < x->n_needed; k++)
    for (uint32_t j = 0; j < p->n_runs; j++) {
      const called own = call_of(p, j, x->at[k]);
      if (looks(p, x->at[k], j)) mark_read(p, own.call, j * p->stride, k);
      p->last[slot(p, j, x->at[k])] = k;
    }
}

static void let_go(const replay *p, const rule_term *t, size_t base, uint32_t step) {
  const size_t at = base + (t->kind == RULE_VAR ? (size_t)t->u.i : 0);
  if (t->kind == RULE_VAR && p->last[at] == step) drop(&p->value[at], &p->values[at]);
  for (uint32_t i = 0; i < t->n; i++) let_go(p, t->child[i], base, step);
}

static iso_code run_ranks(replay *p, int64_t set) {
  roles_work *x = p->x;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < x->n_needed && !c && !roles_refused(x); k++) {
    for (uint32_t j = 0; j < p->n_runs && !c && !roles_refused(x); j++)
      c = step(p, x->at[k], j, set);
    if (!c && !roles_refused(x)) c = hold(p, x->at[k]);
    for (uint32_t j = 0; j < p->n_runs; j++) {
      const size_t at = slot(p, j, x->at[k]);
      if (looks(p, x->at[k], j)) let_go(p, call_of(p, j, x->at[k]).call, j * p->stride, k);
      if (p->last[at] == k) drop(&p->value[at], &p->values[at]);
    }
  }
  return c;
}

/* Leaves of the set, or of draw -1 - set. */
static iso_code run_set(replay *p, int64_t set) {
  roles_work *x = p->x;
  iso_rng rng = iso_rng_new(x->q->seed ^ RUNS, (uint64_t)(set + ROLES_DRAWS));
  bool runs = false;
  memset(p->done, 0, p->n_slots * sizeof *p->done);
  choose_runs(p, &rng);
  p->what = set < 0 ? "drawn leaves" : "the captured leaves";
  iso_code c = set < 0 ? roles_drawn(x, (unsigned)(-1 - set), p->whole)
                       : roles_captured(x, (size_t)set, p->whole);
  if (!c) c = repeat_leaves(p);
  if (!c) c = run_whole(p, NULL, p->whole, p->wholes, &runs);
  /* Drawn leaves may be such as the program is not meant for: indices beyond their table. */
  if (!c && !runs && set >= 0) c = roles_refuse(x, "the graph of one cannot be run on %s", p->what);
  memset(p->forgiven, 0, x->n_made * sizeof *p->forgiven);
  p->has_forgiven = false;
  if (!c && runs) c = run_ranks(p, set);
  for (size_t i = 0; i < x->n_made; i++) drop(&p->whole[i], &p->wholes[i]);
  for (size_t i = 0; i < p->n_slots; i++) drop(&p->value[i], &p->values[i]);
  return c;
}

static bool shares_out(const roles_work *x) {
  for (uint32_t k = 0; k < x->n_needed; k++)
    if (rule_is_overload(x->g->node[x->at[k]].op, OP_DIST_REDUCE_SCATTER)) return true;
  return false;
}

static void end(replay *p) {
  free(p->whole);
  free(p->wholes);
  free(p->forgiven);
  free(p->rank);
  free(p->run);
  free(p->value);
  free(p->values);
  free(p->last);
  free(p->done);
  free(p->out);
  free(p->theirs);
}

iso_code roles_replay(roles_work *x) {
  replay p = {.x = x, .cap = x->n_ranks < LEAST_RESULTS ? LEAST_RESULTS : x->n_ranks};
  const bool few = x->once && x->n_ranks > MOST_RUNS && !shares_out(x);
  p.n_runs = few ? MOST_RUNS : x->n_ranks;
  p.stride = x->once ? x->g->n_nodes : 0;
  p.n_slots = x->once ? p.n_runs * x->g->n_nodes : x->g->n_nodes;
  p.whole = calloc(x->n_made + 1, sizeof *p.whole);
  p.wholes = calloc(x->n_made + 1, sizeof *p.wholes);
  p.forgiven = calloc(x->n_made + 1, sizeof *p.forgiven);
  p.rank = calloc(p.n_runs, sizeof *p.rank);
  p.run = calloc(x->n_ranks, sizeof *p.run);
  p.value = calloc(p.n_slots + 1, sizeof *p.value);
  p.values = calloc(p.n_slots + 1, sizeof *p.values);
  p.last = calloc(p.n_slots + 1, sizeof *p.last);
  p.done = calloc(p.n_slots + 1, sizeof *p.done);
  p.out = calloc(p.cap, sizeof *p.out);
  p.theirs = calloc(x->n_ranks, sizeof *p.theirs);
  const bool room = p.whole && p.wholes && p.forgiven && p.rank && p.run && p.value && p.values &&
                    p.last && p.done && p.out && p.theirs;
  iso_code c = room ? ISO_OK : roles_nomem(x);
  iso_rng first = iso_rng_new(x->q->seed, 0); /* which ranks: as good as any */
  if (!c) choose_runs(&p, &first);
  if (!c) find_last(&p);
  for (int64_t set = -ROLES_DRAWS; set < (int64_t)x->g->n_sets && !c && !roles_refused(x); set++)
    c = run_set(&p, set);
  end(&p);
  return c;
}
