/* needs libtorch: folds of ranks that are wrong on purpose, for tests/pairs/roles.py.
 *
 *     wrong_folds LEFT RIGHT SEED COUNT
 *
 * The ranks of RIGHT are argued to be one, as `isomer compare` does it. Then the argument is given
 * a fault, COUNT times another: a node's place, or which node of a rank stands in a place. It is
 * known to be a fault by the captured values, and running the ranks has to refuse it. Half of them
 * have a prover that lies instead, about some rules: a fold that it allows must be right on other
 * leaves, too. Where ranks are no role by themselves, for they are another program than one of one
 * rank, the prover lies about all rules, and nothing may be folded. The last line is `N passed, N
 * failed`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/roles/replay_int.h"
#include "egraph/base/rng.h"
#include "rules/operators.h"
#include "validate/validate.h"

static const double FAR = 1e-3;
static const cap_options as_written = {.keep_role = true};

typedef struct asked_for {
  const char *path[2];
  rule_schemas *schemas;
  rule_oracle oracle;
  uint64_t seed;
  iso_error *err;
} asked_for;

/* ---- faults ---- */

static rule_tensor *whole_of(const roles_work *x, uint32_t node) {
  return x->made[x->place[node].at].value[0];
}

static bool is_large(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (fabs(rule_tensor_get(t, i)) > FAR) return true;
  return false;
}

static bool are_apart(const rule_tensor *a, const rule_tensor *b) {
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i) - rule_tensor_get(b, i)) > FAR) return true;
  return false;
}

static bool same_type(const rule_tensor *a, const rule_tensor *b) {
  return a->dtype == b->dtype && rule_shape_eq(&a->shape, &b->shape);
}

/* Another kind of place. Sizes differ, or so many times a number that is not 0. */
static const char *other_kind(roles_work *x, uint32_t node, iso_rng *rng) {
  roles_place *p = &x->place[node];
  const rule_shape *shape = &x->g->node[node].output[0].shape;
  const roles_kind kind[3] = {ROLES_SAME, ROLES_PART, ROLES_SUM};
  const roles_kind to = kind[iso_rng_below(rng, 3)];
  const uint32_t dim = (uint32_t)iso_rng_below(rng, shape->rank + 1);
  if (to == p->kind && (to != ROLES_PART || dim == p->dim)) return NULL;
  if (to == ROLES_PART && dim == shape->rank) return NULL;
  p->kind = to, p->dim = dim;
  return "kind";
}

static const char *other_factor(roles_work *x, uint32_t node, iso_rng *rng) {
  (void)rng;
  x->place[node].times = !x->place[node].times;
  return "factor";
}

static const char *other_node(roles_work *x, uint32_t node, iso_rng *rng) {
  const uint32_t at = (uint32_t)iso_rng_below(rng, x->n_made);
  const rule_tensor *is = whole_of(x, node), *other = x->made[at].value[0];
  if (!other || !same_type(is, other) || !are_apart(is, other)) return NULL;
  x->place[node].at = at;
  return "node";
}

/* Two ranks exchanged, where they have parts: another tensor is put together. */
static const char *other_order(roles_work *x, uint32_t node, iso_rng *rng) {
  const roles_place *p = &x->place[node];
  const uint32_t r = 1 + (uint32_t)iso_rng_below(rng, x->n_ranks - 1);
  if (p->kind != ROLES_PART) return NULL;
  rule_tensor *own[2] = {NULL, NULL};
  const bool cut = !roles_cut(x, whole_of(x, node), p->dim, 0, &own[0]) &&
                   !roles_cut(x, whole_of(x, node), p->dim, r, &own[1]);
  const bool apart = cut && are_apart(own[0], own[1]);
  rule_tensor_unref(own[0]);
  rule_tensor_unref(own[1]);
  uint32_t *a = &x->images[x->order[node]], *b = a + (size_t)r * x->n_needed;
  const uint32_t was = *a;
  if (!apart || *a == *b) return NULL;
  *a = *b, *b = was;
  return "order";
}

/* One rank has another of its nodes in the place of this. */
static const char *other_image(roles_work *x, uint32_t node, iso_rng *rng) {
  const uint32_t r = (uint32_t)iso_rng_below(rng, x->n_ranks);
  const uint32_t k = x->at[iso_rng_below(rng, x->n_needed)];
  const roles_place *p = &x->place[node], *q = &x->place[k];
  if (p->kind != q->kind || p->times != q->times || p->dim != q->dim || k > node) return NULL;
  if ((q->kind != ROLES_SAME && q->kind != ROLES_PART) ||
      !same_type(whole_of(x, node), whole_of(x, k)) ||
      roles_image(x, r, node) == roles_image(x, r, k))
    return NULL;
  rule_tensor *own[2] = {rule_tensor_ref(whole_of(x, node)), rule_tensor_ref(whole_of(x, k))};
  for (int i = 0; i < 2 && p->kind == ROLES_PART; i++) {
    rule_tensor *part;
    if (roles_cut(x, own[i], p->dim, r, &part)) continue;
    rule_tensor_unref(own[i]);
    own[i] = part;
  }
  const bool apart = are_apart(own[0], own[1]);
  rule_tensor_unref(own[0]);
  rule_tensor_unref(own[1]);
  if (apart) x->images[(size_t)r * x->n_needed + x->order[node]] = roles_image(x, r, k);
  return apart ? "image" : NULL;
}

typedef const char *fault_fn(roles_work *x, uint32_t node, iso_rng *rng);
/* The last two are of one rank's own nodes, which it has where ranks are written one by one. */
static fault_fn *const fault[] = {other_kind, other_factor, other_node, other_order, other_image};

/* Returns: the change, in words. */
static const char *make_wrong(roles_work *x, iso_rng *rng) {
  enum { TRIES = 4000 };
  const size_t n = sizeof fault / sizeof *fault;
  fault_fn *const f = fault[iso_rng_below(rng, x->once ? n - 2 : n)];
  for (int k = 0; k < TRIES; k++) {
    const uint32_t node = x->at[iso_rng_below(rng, x->n_needed)];
    const roles_place *p = &x->place[node];
    if (p->kind == ROLES_OPEN || p->kind == ROLES_MANY) continue;
    const rule_tensor *t = whole_of(x, node);
    if (!t || !rule_dtype_is_float(t->dtype) || !is_large(t)) continue;
    const char *what = f(x, node, rng);
    if (what) return what;
  }
  return NULL;
}

/* The first rows of ranks of which it can be argued that they are one. */
static iso_code argue(roles_work *x, uint32_t n_all) {
  const roles_work bare = *x;
  iso_code c = ISO_OK;
  for (uint32_t n = n_all; n > 1 && !c; n--)
    for (uint32_t stride = n_all / n; n_all % n == 0 && stride > 0 && !c; stride--) {
      if (n_all / n % stride) continue;
      *x = bare;
      x->n_all = n_all, x->n_ranks = n, x->stride = stride;
      x->out->why = NULL;
      c = roles_argue(x);
      if (c || !x->out->why) return c;
      roles_end(x);
      rule_set_free(x->out->rules);
      x->out->rules = NULL;
    }
  return c;
}

static const char *faulty(const asked_for *a, iso_rng *rng, cap_graph *g, const cap_graph *left) {
  roles_result out = {0};
  const roles_asked q = {left, &a->oracle, 2, true, a->seed};
  roles_work x = {.g = g, .q = &q, .out = &out, .err = a->err};
  const char *rest;
  uint32_t n = cap_role_ranks(g);
  x.once = n > 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind != CAP_OP && roles_rank_of(g->node[i].name, &rest) >= n)
      n = (uint32_t)roles_rank_of(g->node[i].name, &rest) + 1;
  iso_code c = argue(&x, n);
  const bool argued = !c && !out.why;
  const char *wrong = argued ? NULL : "the argument fails";
  const char *what = wrong ? NULL : make_wrong(&x, rng);
  if (!wrong && what) c = roles_replay(&x);
  if (c) wrong = a->err->msg;
  else if (!wrong && what && !out.why) wrong = what;
  if (argued) roles_end(&x);
  roles_free(&out);
  return wrong;
}

/* ---- a prover that lies ---- */

typedef struct liar {
  const rule_oracle *honest;
  iso_rng rng;
  uint64_t one_in; /* of what is not proved it says so */
} liar;

static iso_code lie(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out,
                    iso_error *err) {
  liar *l = ctx;
  const iso_code c = l->honest->decide(l->honest->ctx, r, example, out, err);
  if (!c && out->status != RULE_PROVED && iso_rng_below(&l->rng, l->one_in) == 0)
    *out = (rule_verdict){.status = RULE_PROVED, .scope = RULE_ALL_SHAPES};
  return c;
}

/* parameters: those of rule_oracle.call. */
static iso_code call(void *ctx, const rule_term *t, rule_tensor *const *bind, bool float64,
                     rule_tensor **out, size_t cap, size_t *n, iso_error *err) {
  const liar *l = ctx;
  return l->honest->call(l->honest->ctx, t, bind, float64, out, cap, n, err);
}

static rule_diff compare(void *ctx, const rule_tensor *a, const rule_tensor *b, double tol) {
  const liar *l = ctx;
  return l->honest->compare(l->honest->ctx, a, b, tol);
}

/* The outputs of a graph of one on leaves that its names and the seed say. */
static bool run(const asked_for *a, const cap_graph *g, rule_tensor **v) {
  enum { MOST = 64 };
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *n = &g->node[i];
    rule_tensor *out[MOST] = {NULL};
    size_t n_out = 0, k = 0;
    iso_error ignored;
    const bool moves = !n->call && rule_dtype_is_float(n->output[0].dtype);
    if (n->call && rule_is_getitem(n->op)) k = (size_t)n->call->child[1]->u.i;
    const rule_term *t =
        n->call && rule_is_getitem(n->op) ? g->node[n->call->child[0]->u.i].call : n->call;
    if (!t) {
      if (rule_tensor_new(n->output[0].dtype, &n->output[0].shape, &v[i], &ignored)) return false;
      iso_rng rng = iso_rng_new(a->seed, n->name[strlen(n->name) - 1]);
      for (int64_t e = 0; e < v[i]->numel; e++)
        rule_tensor_set(v[i], e,
                        rule_tensor_get(n->value, e) + (moves ? 0.1 * iso_rng_uniform(&rng) : 0));
      continue;
    }
    if (a->oracle.call(a->oracle.ctx, t, v, true, out, MOST, &n_out, &ignored) || k >= n_out)
      return false;
    v[i] = rule_tensor_ref(out[k]);
    for (size_t j = 0; j < n_out; j++) rule_tensor_unref(out[j]);
  }
  return true;
}

static const char *differ(const asked_for *a, const cap_graph *one, const cap_graph *two) {
  rule_tensor **v[2] = {calloc(one->n_nodes + 1, sizeof *v[0]),
                        calloc(two->n_nodes + 1, sizeof *v[1])};
  const char *wrong =
      v[0] && v[1] && run(a, one, v[0]) && run(a, two, v[1]) && one->n_results == two->n_results
          ? NULL
          : "cannot be run";
  for (size_t j = 0; j < one->n_results && !wrong; j++) {
    const rule_tensor *x = v[0][one->result[j].node], *y = v[1][two->result[j].node];
    if (!rule_shape_eq(&x->shape, &y->shape) || !a->oracle.compare(a->oracle.ctx, x, y, 1e-6).equal)
      wrong = one->result[j].name;
  }
  for (size_t i = 0; v[0] && i < one->n_nodes; i++) rule_tensor_unref(v[0][i]);
  for (size_t i = 0; v[1] && i < two->n_nodes; i++) rule_tensor_unref(v[1][i]);
  free(v[0]);
  free(v[1]);
  return wrong;
}

static const char *lied_to(const asked_for *a, iso_rng *rng, cap_graph *g, const cap_graph *left,
                           const cap_graph *honest) {
  roles_result out = {0};
  const uint64_t one_in = honest ? 4 + iso_rng_below(rng, 60) : 1 + iso_rng_below(rng, 2);
  liar l = {&a->oracle, iso_rng_new(a->seed, iso_rng_next(rng)), one_in};
  const rule_oracle o = {.ctx = &l, .call = call, .compare = compare, .decide = lie};
  const roles_asked q = {left, &o, 2, true, a->seed};
  const iso_code c = roles_fold(g, &q, &out, a->err);
  const char *wrong = c              ? a->err->msg
                      : !out.n_ranks ? NULL
                      : honest       ? differ(a, honest, g)
                                     : "another program";
  roles_free(&out);
  return wrong;
}

/* ---- all of it ---- */

static const char *once(const asked_for *a, iso_rng *rng, bool lies, const cap_graph *left,
                        const cap_graph *honest) {
  cap_graph *g = NULL;
  if (cap_load_with(a->path[1], &as_written, a->schemas, &g, a->err)) return a->err->msg;
  const char *wrong = lies ? lied_to(a, rng, g, left, honest) : faulty(a, rng, g, left);
  cap_free(g);
  return wrong;
}

int main(int argc, char **argv) {
  iso_error err = {0};
  asked_for a = {.err = &err};
  cap_graph *graph[2] = {NULL, NULL};
  val_engine *engine = NULL;
  roles_result out = {0};
  const val_options val = val_options_default();
  if (argc < 5) return 2;
  const int count = atoi(argv[4]);
  int failed = 0;
  a.seed = strtoull(argv[3], NULL, 10);
  iso_code c = rule_schemas_new(&a.schemas, &err);
  for (int i = 0; i < 2 && !c; i++)
    c = cap_load_with(a.path[i] = argv[i + 1], i ? &as_written : NULL, a.schemas, &graph[i], &err);
  if (!c) c = val_new(&val, a.schemas, &engine, &err);
  if (!c) a.oracle = val_oracle(engine);
  const roles_asked q = {graph[0], &a.oracle, 2, true, a.seed};
  if (!c) c = roles_fold(graph[1], &q, &out, &err);
  const bool honest = out.n_ranks > 0;
  for (int k = 0; k < count && !c; k++) {
    iso_rng rng = iso_rng_new(a.seed, (uint64_t)k);
    const char *wrong = once(&a, &rng, k % 2 || !honest, graph[0], honest ? graph[1] : NULL);
    if (wrong) printf("seed %s, %d: not refused: %s\n", argv[3], k, wrong);
    failed += wrong != NULL;
  }
  if (c) fprintf(stderr, "%s\n", err.msg);
  else printf("%d passed, %d failed\n", count - failed, failed);
  roles_free(&out);
  cap_free(graph[0]);
  cap_free(graph[1]);
  val_free(engine);
  rule_schemas_free(a.schemas);
  return c || failed;
}
