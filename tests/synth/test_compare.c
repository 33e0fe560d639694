/* Comparing two graphs, on graphs of a few operators and an oracle of plain C: what is equal needs
 * no rule, what one rule joins is joined by one, and what values or the oracle do not support is
 * never called equivalent. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "localise/localise.h"
#include "synth/synth.h"

enum { MAX_NODES = 16, MAX_TENSORS = 32, MAX_ARGS = 8 };

/* ---- an oracle: a handful of operators on float64 ---- */

typedef enum judge { JUDGE_TRY, JUDGE_UNKNOWN, JUDGE_YES } judge;

typedef struct small_oracle {
  judge judge;
  const char *broken; /* an operator that cannot run */
  size_t n_decided;
} small_oracle;

static rule_shape shape_of(uint32_t rank, const int64_t *dim) {
  rule_shape s = {.rank = rank};
  for (uint32_t d = 0; d < rank; d++) s.dim[d] = dim[d];
  return s;
}
#define SHAPE(...) \
  shape_of((uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static rule_tensor *make(rule_shape shape) {
  rule_tensor *t;
  iso_error err;
  ck_assert_msg(rule_tensor_new(RULE_F64, &shape, &t, &err) == ISO_OK, "%s", err.msg);
  return t;
}

/* Where element `i` of a tensor of shape `s` lies in one of shape `of`, sizes 1 and missing ones
 * repeated. */
static int64_t broadcast_at(const rule_shape *s, int64_t i, const rule_shape *of) {
  int64_t at = 0, step = 1;
  for (uint32_t d = 0; d < s->rank; d++) {
    const int64_t size = s->dim[s->rank - 1 - d], k = i % size;
    i /= size;
    if (d >= of->rank) continue;
    const int64_t own = of->dim[of->rank - 1 - d];
    if (own != 1) at += k * step;
    step *= own;
  }
  return at;
}

static bool broadcast(const rule_shape *a, const rule_shape *b, rule_shape *out) {
  out->rank = a->rank > b->rank ? a->rank : b->rank;
  for (uint32_t d = 0; d < out->rank; d++) {
    const int64_t x = d < a->rank ? a->dim[a->rank - 1 - d] : 1,
                  y = d < b->rank ? b->dim[b->rank - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out->dim[out->rank - 1 - d] = x == 1 ? y : x;
  }
  return true;
}

static double number(const rule_term *t) { return t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i; }

/* A tensor argument; numbers stand for tensors without dimensions. Owns. */
static rule_tensor *operand(const rule_term *t, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR) return rule_tensor_ref(bind[t->u.i]);
  ck_assert(t->kind == RULE_INT || t->kind == RULE_FLOAT);
  rule_tensor *r = make((rule_shape){0});
  rule_tensor_set(r, 0, number(t));
  return r;
}

static rule_tensor *pointwise(const rule_term *t, rule_tensor *const *bind) {
  const bool add = strcmp(t->u.s, "aten::add.Tensor") == 0;
  rule_tensor *x = operand(t->child[0], bind), *y = operand(t->child[1], bind), *r = NULL;
  const double alpha = add ? number(t->child[2]) : 1;
  rule_shape s = {0};
  if (broadcast(&x->shape, &y->shape, &s)) {
    r = make(s);
    for (int64_t i = 0; i < r->numel; i++) {
      const double a = rule_tensor_get(x, broadcast_at(&s, i, &x->shape)),
                   b = rule_tensor_get(y, broadcast_at(&s, i, &y->shape));
      rule_tensor_set(r, i, add ? a + alpha * b : a * b);
    }
  }
  rule_tensor_unref(x);
  rule_tensor_unref(y);
  return r;
}

static rule_tensor *reshaped(const rule_tensor *x, rule_shape s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s.rank; d++) n *= s.dim[d];
  if (n != x->numel) return NULL;
  rule_tensor *r = make(s);
  for (int64_t i = 0; i < r->numel; i++) rule_tensor_set(r, i, rule_tensor_get(x, i));
  return r;
}

static rule_shape list_shape(const rule_term *t) {
  rule_shape s = {.rank = t->n};
  for (uint32_t d = 0; d < t->n; d++) s.dim[d] = t->child[d]->u.i;
  return s;
}

static rule_tensor *transposed(const rule_tensor *x, int64_t a, int64_t b) {
  const int64_t rank = x->shape.rank;
  if (a < 0) a += rank;
  if (b < 0) b += rank;
  if (a < 0 || b < 0 || a >= rank || b >= rank) return NULL;
  rule_shape s = x->shape;
  s.dim[a] = x->shape.dim[b];
  s.dim[b] = x->shape.dim[a];
  rule_tensor *r = make(s);
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t at[RULE_MAX_RANK], rest = i, from = 0;
    for (int64_t d = rank; d-- > 0; rest /= s.dim[d]) at[d] = rest % s.dim[d];
    const int64_t swap = at[a];
    at[a] = at[b];
    at[b] = swap;
    for (int64_t d = 0; d < rank; d++) from = from * x->shape.dim[d] + at[d];
    rule_tensor_set(r, i, rule_tensor_get(x, from));
  }
  return r;
}

static rule_tensor *run_op(const rule_term *t, rule_tensor *const *bind) {
  const char *op = t->u.s;
  if (strcmp(op, "aten::add.Tensor") == 0 || strcmp(op, "aten::mul.Tensor") == 0)
    return pointwise(t, bind);
  if (strcmp(op, "aten::full") == 0) {
    rule_tensor *r = make(list_shape(t->child[0]));
    for (int64_t i = 0; i < r->numel; i++) rule_tensor_set(r, i, number(t->child[1]));
    return r;
  }
  if (t->n == 0 || t->child[0]->kind != RULE_VAR) return NULL;
  const rule_tensor *x = bind[t->child[0]->u.i];
  if (strcmp(op, "aten::alias") == 0) return reshaped(x, x->shape);
  const bool neg = strcmp(op, "aten::neg") == 0;
  if (neg || strcmp(op, "aten::relu") == 0) {
    rule_tensor *r = make(x->shape);
    for (int64_t i = 0; i < r->numel; i++) {
      const double v = rule_tensor_get(x, i);
      rule_tensor_set(r, i, neg ? -v : v > 0 ? v : 0);
    }
    return r;
  }
  if (strcmp(op, "aten::unsqueeze") == 0) {
    rule_shape s = {.rank = x->shape.rank + 1};
    int64_t at = t->child[1]->u.i;
    if (at < 0) at += s.rank;
    for (uint32_t d = 0, k = 0; d < s.rank; d++) s.dim[d] = d == at ? 1 : x->shape.dim[k++];
    return reshaped(x, s);
  }
  if (strcmp(op, "aten::reshape") == 0) return reshaped(x, list_shape(t->child[1]));
  if (strcmp(op, "aten::transpose.int") == 0)
    return transposed(x, t->child[1]->u.i, t->child[2]->u.i);
  if (strcmp(op, "aten::t") == 0) return transposed(x, 0, 1);
  return NULL;
}

static iso_code small_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                           rule_tensor **out, size_t cap, size_t *n_out, iso_error *err) {
  const small_oracle *o = ctx;
  (void)float64;
  if (cap < 1) return iso_fail(err, ISO_RANGE, "no room");
  if (o->broken && strcmp(o->broken, call->u.s) == 0)
    return iso_fail(err, ISO_UNSUPPORTED, "nobody implements %s", call->u.s);
  out[0] = run_op(call, bind);
  if (!out[0]) return iso_fail(err, ISO_UNSUPPORTED, "%s cannot run", call->u.s);
  *n_out = 1;
  return ISO_OK;
}

static rule_diff small_compare(void *ctx, const rule_tensor *a, const rule_tensor *b,
                               double rel_tol) {
  (void)ctx;
  if (a->numel != b->numel)
    return (rule_diff){.max_abs = INFINITY, .max_rel = INFINITY, .index = -1};
  rule_diff d = {.equal = true, .index = -1};
  double norm = 0;
  for (int64_t i = 0; i < a->numel; i++) norm = fmax(norm, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double diff = fabs(rule_tensor_get(a, i) - rule_tensor_get(b, i));
    if (!(diff <= rel_tol * norm)) d.equal = false;
    d.max_abs = fmax(d.max_abs, diff);
    const double rel = diff == 0 ? 0 : diff / norm;
    if (rel > d.max_rel) {
      d.max_rel = rel;
      d.index = i;
    }
  }
  return d;
}

/* A term on a few tensors. Owns; NULL where something cannot run. */
static rule_tensor *run_term(const rule_term *t, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR) return rule_tensor_ref(bind[t->u.i]);
  if (t->kind != RULE_OP || t->n > MAX_ARGS) return NULL;
  rule_tensor *arg[MAX_ARGS] = {NULL}, *r = NULL;
  const rule_term *child[MAX_ARGS];
  iso_arena a;
  iso_arena_init(&a);
  bool fine = true;
  for (uint32_t i = 0; i < t->n; i++) {
    child[i] = t->child[i];
    if (child[i]->kind != RULE_VAR && child[i]->kind != RULE_OP) continue;
    arg[i] = run_term(child[i], bind);
    fine &= arg[i] != NULL;
    child[i] = rule_var(&a, i);
  }
  if (fine) r = run_op(rule_op(&a, t->u.s, child, t->n), arg);
  for (uint32_t i = 0; i < t->n; i++) rule_tensor_unref(arg[i]);
  iso_arena_fini(&a);
  return r;
}

static iso_code small_decide(void *ctx, const rule *r, rule_tensor *const *example,
                             rule_verdict *out, iso_error *err) {
  small_oracle *o = ctx;
  (void)example, (void)err;
  o->n_decided++;
  *out = (rule_verdict){.status = o->judge == JUDGE_YES ? RULE_TESTED : RULE_UNKNOWN,
                        .scope = RULE_THESE_SHAPES};
  if (o->judge != JUDGE_TRY) return ISO_OK;
  for (uint32_t i = 0; i < r->n_vars; i++) /* all sizes at once are more than can be tried */
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind != RULE_INT) return ISO_OK;
  iso_rng rng = iso_rng_new(7, 7);
  for (int k = 0; k < 6; k++) {
    rule_tensor *bind[64] = {NULL};
    ck_assert_uint_lt(r->n_vars, 64);
    for (uint32_t i = 0; i < r->n_vars; i++) {
      rule_shape s = {.rank = r->var[i].n_dims};
      for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = r->var[i].dim[d]->u.i;
      bind[i] = make(s);
      for (int64_t e = 0; e < bind[i]->numel; e++)
        rule_tensor_set(bind[i], e, iso_rng_normal(&rng));
    }
    rule_tensor *a = run_term(r->lhs, bind), *b = run_term(r->rhs, bind);
    const bool ran = a && b;
    const bool equal =
        ran && rule_shape_eq(&a->shape, &b->shape) && small_compare(NULL, a, b, 1e-9).equal;
    rule_tensor_unref(a);
    rule_tensor_unref(b);
    for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
    out->status = equal ? RULE_TESTED : ran ? RULE_REFUTED : RULE_UNKNOWN;
    if (!equal) break;
    out->n_samples++;
  }
  return ISO_OK;
}

/* ---- graphs ---- */

typedef struct graph {
  synth_graph g;
  synth_node node[MAX_NODES];
  synth_output out[2];
  rule_tensor *value[MAX_NODES][2];
} graph;

typedef struct world {
  iso_arena arena;
  rule_schemas *schemas;
  small_oracle oracle;
  synth_options options;
  rule_set *known;
  rule_tensor *tensor[MAX_TENSORS];
  size_t n_tensors;
  graph l, r;
  synth_result *res;
} world;

static world w;

static void graph_init(graph *g, const char *path) {
  *g = (graph){.g = {.path = path, .n_sets = 1}};
  g->g.node = g->node;
  g->g.output = g->out;
}

static void setup(void) {
  w = (world){.options = synth_options_default()};
  w.options.localiser = localise_parts();
  iso_arena_init(&w.arena);
  ck_assert(rule_schemas_new(&w.schemas, NULL) == ISO_OK);
  graph_init(&w.l, "left.json");
  graph_init(&w.r, "right.json");
}

static void teardown(void) {
  synth_result_free(w.res);
  rule_set_free(w.known);
  for (size_t i = 0; i < w.n_tensors; i++) rule_tensor_unref(w.tensor[i]);
  rule_schemas_free(w.schemas);
  iso_arena_fini(&w.arena);
}

static rule_tensor *keep(rule_tensor *t) {
  ck_assert(w.n_tensors < MAX_TENSORS);
  return w.tensor[w.n_tensors++] = t;
}

static rule_tensor *noise(uint64_t seed, rule_shape s, double mean, double deviation) {
  rule_tensor *t = keep(make(s));
  iso_rng rng = iso_rng_new(seed, 3);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, mean + deviation * iso_rng_normal(&rng));
  return t;
}

/* Mostly small, so that draws of the same mean and deviation are often negative. */
static rule_tensor *positive(uint64_t seed, rule_shape s, double scale) {
  rule_tensor *t = noise(seed, s, 0, 1);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, scale * (pow(rule_tensor_get(t, i), 4) + 0.01));
  return t;
}

static rule_tensor *constant(rule_shape s, double v) {
  rule_tensor *t = keep(make(s));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, v);
  return t;
}

static synth_node *new_node(graph *g, uint32_t *index) {
  ck_assert(g->g.n_nodes < MAX_NODES);
  *index = (uint32_t)g->g.n_nodes++;
  synth_node *n = &g->node[*index];
  n->id = iso_arena_printf(&w.arena, "%c%u", g == &w.l ? 'l' : 'r', *index);
  n->n_outputs = 1;
  n->dtype = RULE_F64;
  return n;
}

static uint32_t leaf(graph *g, synth_kind kind, const char *name, rule_tensor *first,
                     rule_tensor *second) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  n->kind = kind;
  n->name = name;
  n->shape = first->shape;
  g->value[i][0] = first;
  g->value[i][1] = second;
  n->value = g->value[i];
  return i;
}
static uint32_t input(graph *g, rule_tensor *t) { return leaf(g, SYNTH_INPUT, "x", t, t); }
static uint32_t weight(graph *g, const char *name, rule_tensor *t) {
  return leaf(g, SYNTH_PARAMETER, name, t, NULL);
}

static const rule_term *v(uint32_t i) { return rule_var(&w.arena, i); }
static const rule_term *num(int64_t i) { return rule_int(&w.arena, i); }

/* A call with up to three arguments; its shape is what it gives on the captured values. */
static uint32_t op(graph *g, const char *name, const rule_term *a, const rule_term *b,
                   const rule_term *c) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  const rule_term *arg[3] = {a, b, c};
  iso_error err;
  ck_assert_msg(rule_call(&w.arena, w.schemas, name, arg,
                          c   ? 3
                          : b ? 2
                              : 1,
                          &n->call, &err) == ISO_OK,
                "%s", err.msg);
  n->kind = SYNTH_OP;
  n->op = name;
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t k = 0; k < i; k++) bind[k] = g->value[k][0];
  ck_assert((g->value[i][0] = run_op(n->call, bind)) != NULL);
  keep(g->value[i][0]);
  n->shape = g->value[i][0]->shape;
  return i;
}
static uint32_t add(graph *g, uint32_t x, uint32_t y) {
  return op(g, "aten::add.Tensor", v(x), v(y), NULL);
}
static uint32_t mul(graph *g, uint32_t x, uint32_t y) {
  return op(g, "aten::mul.Tensor", v(x), v(y), NULL);
}
static uint32_t neg(graph *g, uint32_t x) { return op(g, "aten::neg", v(x), NULL, NULL); }
static uint32_t relu(graph *g, uint32_t x) { return op(g, "aten::relu", v(x), NULL, NULL); }
static uint32_t ones(graph *g, int64_t n) {
  const rule_term *size = num(n);
  return op(g, "aten::full", rule_list(&w.arena, &size, 1), rule_float(&w.arena, 1),
            rule_dtype_term(&w.arena, RULE_F64));
}

static void output(graph *g, const char *name, uint32_t node) {
  ck_assert(g->g.n_outputs < 2);
  g->out[g->g.n_outputs++] = (synth_output){.name = name, .node = node};
}

static iso_code try_compare(const graph *l, const graph *r, iso_error *err) {
  const rule_oracle oracle = {
      .ctx = &w.oracle, .call = small_call, .compare = small_compare, .decide = small_decide};
  synth_result_free(w.res);
  w.res = NULL;
  w.oracle.n_decided = 0;
  return synth_compare(&l->g, &r->g, w.known, &oracle, w.schemas, &w.options, &w.res, err);
}

static const char *verdict_name(synth_verdict x) {
  return x == SYNTH_EQUIVALENT ? "equivalent" : x == SYNTH_DIFFERENT ? "different" : "undecided";
}

static void compare_one(const graph *l, const graph *r, synth_verdict want) {
  iso_error err = {0};
  ck_assert_msg(try_compare(l, r, &err) == ISO_OK, "%s", err.msg);
  ck_assert_ptr_nonnull(w.res);
  ck_assert_msg(w.res->verdict == want, "%s, expected %s", verdict_name(w.res->verdict),
                verdict_name(want));
  ck_assert((w.res->verdict == SYNTH_UNDECIDED) == (w.res->reason != NULL));
  ck_assert((w.res->verdict == SYNTH_EQUIVALENT) == (w.res->n_divergences == 0));
  ck_assert_uint_eq(w.res->n_pairs, l->g.n_outputs);
}

/* Both ways round, on four seeds; the result that stays is of left against right with seed 0. */
static void expect(synth_verdict want) {
  for (uint64_t seed = 4; seed-- > 0;) {
    w.options.seed = seed;
    compare_one(&w.r, &w.l, want);
    compare_one(&w.l, &w.r, want);
  }
}

static size_t n_needed(void) {
  size_t n = 0;
  for (size_t i = 0; i < w.res->n_rules; i++) n += w.res->rule[i].needed;
  return n;
}

static rule_set *parse(const char *text) {
  rule_set *s = NULL;
  iso_error err;
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "known", &s, &err) == ISO_OK, "%s", err.msg);
  return s;
}

/* ---- equivalent ---- */

START_TEST(equal_graphs_need_no_rule) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  graph *side[2] = {&w.l, &w.r};
  for (int k = 0; k < 2; k++) {
    const uint32_t p = weight(side[k], "b", b), i = input(side[k], x);
    output(side[k], "y", relu(side[k], add(side[k], i, p)));
  }
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_rules, 0);
  ck_assert_uint_eq(w.res->n_synthesised, 0);
  ck_assert_uint_eq(w.oracle.n_decided, 0);
  ck_assert_int_eq(w.res->evidence, RULE_PROVED);
  ck_assert_uint_eq(w.res->n_unexplained, 0);
  ck_assert_str_eq(w.res->pair[0].relation, "equal");
  ck_assert(w.res->pair[0].equivalent);
  size_t leaves = 0;
  for (size_t i = 0; i < w.res->n_assumptions; i++)
    leaves += w.res->assumption[i].kind == RULE_ASSUMES_LEAF;
  ck_assert_uint_eq(leaves, 2);
}
END_TEST

static void commuted(int times) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t lx = input(&w.l, x), rx = input(&w.r, x);
  uint32_t l = lx, r = rx;
  for (int k = 0; k < times; k++) {
    rule_tensor *b = noise((uint64_t)(k + 2), SHAPE(3), 0, 1);
    const char *name = iso_arena_printf(&w.arena, "b%d", k);
    const uint32_t lb = weight(&w.l, name, b), rb = weight(&w.r, name, b);
    l = relu(&w.l, add(&w.l, l, lb));
    r = relu(&w.r, add(&w.r, rb, r));
  }
  output(&w.l, "y", l);
  output(&w.r, "y", r);
}

START_TEST(commuted_add_takes_one_rule) {
  commuted(1);
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_rules, 1);
  ck_assert_uint_eq(n_needed(), 1);
  const synth_rule_use *use = &w.res->rule[0];
  ck_assert_uint_eq(use->uses, 1);
  ck_assert(!use->loaded && use->verdict.status == RULE_TESTED);
  ck_assert_int_eq(w.res->evidence, RULE_TESTED);
  ck_assert_str_eq(use->what->lhs->u.s, "aten::add.Tensor");
  ck_assert_str_eq(use->what->rhs->u.s, "aten::add.Tensor");
  ck_assert_uint_eq(use->what->n_vars, 2);
  ck_assert_uint_ge(w.res->n_steps, 1);
  ck_assert_uint_eq(w.res->n_synthesised, 1);
}
END_TEST

START_TEST(a_rule_is_found_once_and_used_again) {
  commuted(3);
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_rules, 1);
  ck_assert_uint_eq(w.res->n_synthesised, 1);
  ck_assert_uint_eq(w.res->rule[0].uses, 3);
  ck_assert_uint_eq(w.res->n_reused, 2);
}
END_TEST

START_TEST(known_rules_are_validated_and_used) {
  w.known = parse("(rule commute (var x f (A B)) (var y f (B)) (lhs (aten::add.Tensor x y)) (rhs "
                  "(aten::add.Tensor y x)))");
  commuted(2);
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.oracle.n_decided, 2); /* for all sizes, then for these */
  ck_assert_uint_eq(w.res->n_rules, 1);
  ck_assert(w.res->rule[0].loaded && w.res->rule[0].needed);
  ck_assert_uint_eq(w.res->n_synthesised, 0);
}
END_TEST

START_TEST(outputs_pair_by_name_and_up_to_sizes_1) {
  rule_tensor *x = noise(1, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", relu(&w.l, op(&w.l, "aten::unsqueeze", v(a), num(0), NULL)));
  output(&w.l, "z", neg(&w.l, a));
  output(&w.r, "z", neg(&w.r, b));
  output(&w.r, "y", relu(&w.r, b));
  w.options.seed = 0;
  compare_one(&w.l, &w.r, SYNTH_EQUIVALENT);
  ck_assert_str_eq(w.res->pair[0].right, "y");
  ck_assert_str_eq(w.res->pair[0].relation, "unsqueeze(right, 0)");
  ck_assert_str_eq(w.res->pair[1].right, "z");
  ck_assert_str_eq(w.res->pair[1].relation, "equal");
  ck_assert_uint_eq(n_needed(), 1);
}
END_TEST

START_TEST(a_transposed_weight_is_related) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *m = noise(2, SHAPE(3, 4), 0, 1);
  const uint32_t a = input(&w.l, x), lm = weight(&w.l, "m", m);
  output(&w.l, "y", add(&w.l, a, op(&w.l, "aten::transpose.int", v(lm), num(0), num(1))));
  const uint32_t b = input(&w.r, x), rm = weight(&w.r, "m", keep(transposed(m, 0, 1)));
  output(&w.r, "y", add(&w.r, b, rm));
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_unexplained, 0);
}
END_TEST

START_TEST(ones_that_are_a_term_go_by_a_rule) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", relu(&w.l, mul(&w.l, a, ones(&w.l, 3))));
  output(&w.r, "y", relu(&w.r, b));
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(n_needed(), 1);
}
END_TEST

/* ---- different ---- */

START_TEST(a_missing_relu_is_different_where_captured_values_hide_it) {
  rule_tensor *x = positive(1, SHAPE(6, 4), 1), *b = positive(2, SHAPE(4), 0.01);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", neg(&w.l, relu(&w.l, add(&w.l, a, lb))));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", neg(&w.r, add(&w.r, c, rb)));
  expect(SYNTH_DIFFERENT);
  ck_assert(w.res->redrawn);
  ck_assert_str_eq(w.res->witness_output, "y");
  ck_assert(w.res->witness_abs > 0 && w.res->witness_rel > 1e-6);
  ck_assert(!w.res->pair[0].equivalent);
  /* left: the relu; right: what it is missing behind. */
  ck_assert_uint_eq(w.res->n_divergences, 1);
  const synth_divergence *d = &w.res->divergence[0];
  ck_assert_int_eq(d->left, 3);
  ck_assert_int_eq(d->right, 2);
  ck_assert_ptr_nonnull(strstr(d->hint, "aten::relu is missing"));
  ck_assert_uint_eq(d->n_left_region, 2);
  ck_assert_uint_eq(d->left_region[0], 3);
  ck_assert_uint_eq(d->left_region[1], 4);
  ck_assert_uint_eq(d->n_right_region, 1);
  /* Whatever the oracle says: values tell them apart, so that it is never asked to join them. */
  w.oracle.judge = JUDGE_YES;
  expect(SYNTH_DIFFERENT);
}
END_TEST

START_TEST(a_missing_relu_that_only_other_signs_show_is_different) {
  rule_tensor *x = noise(1, SHAPE(6, 4), 1000, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", neg(&w.l, relu(&w.l, a)));
  output(&w.r, "y", neg(&w.r, b));
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(n_needed(), 0);
  ck_assert_uint_ge(w.res->n_refuted, 1);
  ck_assert(w.res->redrawn);
  /* Nor does a rule that somebody wrote down. */
  w.known = parse(
      "(rule wrong (evidence proved \"all shapes\") (var x f _) (lhs (aten::relu x)) (rhs x))");
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(w.res->n_rules, 0);
}
END_TEST

START_TEST(a_second_set_of_inputs_is_a_witness_of_its_own) {
  rule_tensor *x = positive(1, SHAPE(6, 4), 1), *x2 = noise(2, SHAPE(6, 4), 0, 1);
  const uint32_t a = leaf(&w.l, SYNTH_INPUT, "x", x, x2), b = leaf(&w.r, SYNTH_INPUT, "x", x, x2);
  w.l.g.n_sets = w.r.g.n_sets = 2;
  output(&w.l, "y", neg(&w.l, relu(&w.l, a)));
  output(&w.r, "y", neg(&w.r, b));
  expect(SYNTH_DIFFERENT);
  ck_assert(!w.res->redrawn);
}
END_TEST

START_TEST(weights_of_ones_that_are_dropped_are_different) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), one = weight(&w.l, "w", constant(SHAPE(3), 1));
  output(&w.l, "y", relu(&w.l, mul(&w.l, a, one)));
  const uint32_t b = input(&w.r, x);
  output(&w.r, "y", relu(&w.r, b));
  expect(SYNTH_DIFFERENT);
  ck_assert(w.res->redrawn);
  ck_assert_uint_eq(w.res->n_unexplained, 1);
  ck_assert(!w.res->unexplained[0].right);
  ck_assert_uint_eq(w.res->unexplained[0].node, one);
  ck_assert_int_eq(w.res->divergence[0].left, one);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_ptr_nonnull(strstr(w.res->divergence[0].hint, "of w"));
}
END_TEST

START_TEST(another_operator_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  const uint32_t l = add(&w.l, neg(&w.l, a), lb);
  output(&w.l, "y", neg(&w.l, relu(&w.l, l)));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  const uint32_t r = mul(&w.r, neg(&w.r, c), rb);
  output(&w.r, "y", neg(&w.r, relu(&w.r, r)));
  expect(SYNTH_DIFFERENT);
  ck_assert(!w.res->redrawn);
  ck_assert_int_eq(w.res->divergence[0].left, l);
  ck_assert_int_eq(w.res->divergence[0].right, r);
  ck_assert(w.res->divergence[0].max_abs > 0);
}
END_TEST

START_TEST(another_attribute_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", relu(&w.l, add(&w.l, a, lb)));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", relu(&w.r, op(&w.r, "aten::add.Tensor", v(c), v(rb), num(2))));
  expect(SYNTH_DIFFERENT);
  ck_assert_int_eq(w.res->divergence[0].left, 2);
  ck_assert_int_eq(w.res->divergence[0].right, 2);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(w.res->divergence[0].hint, "alpha is 1 on the left and 2 on the right");
}
END_TEST

START_TEST(one_change_in_two_places_is_named_once) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1),
              *e = noise(3, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), le = weight(&w.l, "e", e);
  const uint32_t first = relu(&w.l, add(&w.l, a, lb)), second = relu(&w.l, add(&w.l, a, le));
  output(&w.l, "y", mul(&w.l, first, second));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b), re = weight(&w.r, "e", e);
  const uint32_t one = add(&w.r, c, rb);
  output(&w.r, "y", mul(&w.r, one, add(&w.r, c, re)));
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(w.res->n_divergences, 1);
  ck_assert_int_eq(w.res->divergence[0].left, first);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(
      w.res->divergence[0].hint,
      iso_arena_printf(&w.arena, "on the left the other side does without it; the same at \"%s\"",
                       w.l.node[second].id));
}
END_TEST

/* ---- what each node rests on ---- */

static void stands(int side, uint32_t node, synth_standing as) {
  ck_assert_msg(w.res->standing_of[side][node] == as, "%s %u: %d, not %d", side ? "right" : "left",
                node, w.res->standing_of[side][node], as);
  ck_assert((as == SYNTH_UNREAD) == (w.res->class_of[side][node] == UINT32_MAX));
}

START_TEST(a_node_stands_by_congruence_rule_or_assumption) {
  commuted(1);
  neg(&w.l, 0); /* nobody reads it */
  expect(SYNTH_EQUIVALENT);
  for (int side = 0; side < 2; side++) {
    stands(side, 0, SYNTH_ASSUMED);
    stands(side, 1, SYNTH_ASSUMED);
    stands(side, 2, SYNTH_BY_RULE);
    stands(side, 3, SYNTH_SAME);
  }
  stands(0, 4, SYNTH_UNREAD);
  ck_assert_uint_eq(w.res->rule[0].n_of_class, 1);
  ck_assert_uint_eq(w.res->rule[0].of_class[0], w.res->class_of[0][2]);
  ck_assert_uint_eq(w.res->class_of[1][2], w.res->class_of[0][2]);
}
END_TEST

START_TEST(an_inner_step_stands_within_a_rule) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), inner = neg(&w.l, a), outer = neg(&w.l, inner);
  output(&w.l, "y", relu(&w.l, outer));
  output(&w.r, "y", relu(&w.r, input(&w.r, x)));
  expect(SYNTH_EQUIVALENT);
  stands(0, inner, SYNTH_WITHIN);
  stands(0, outer, SYNTH_BY_RULE);
  stands(0, outer + 1, SYNTH_SAME);
}
END_TEST

START_TEST(where_tensors_differ_is_pictured) {
  rule_tensor *x = noise(1, SHAPE(2, 60, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  rule_tensor_set(b, 1, 0);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), l = add(&w.l, a, lb);
  output(&w.l, "y", relu(&w.l, l));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b),
                 r = op(&w.r, "aten::add.Tensor", v(c), v(rb), num(2));
  output(&w.r, "y", relu(&w.r, r));
  expect(SYNTH_DIFFERENT);
  stands(0, l, SYNTH_ALONE);
  stands(1, r, SYNTH_ALONE);
  stands(1, r + 1, SYNTH_ALONE);
  const synth_divergence *d = &w.res->divergence[0];
  ck_assert_int_eq(d->at[0], l);
  ck_assert_int_eq(d->at[1], r);
  const synth_picture *p = d->picture;
  ck_assert_ptr_nonnull(p);
  /* 120 rows of 3 in 40 cells of 3 rows each; alpha is 2 instead of 1, so that they differ by b. */
  ck_assert_int_eq(p->n_rows, 120);
  ck_assert_int_eq(p->row_step, 3);
  ck_assert_uint_eq(p->rows, 40);
  ck_assert_uint_eq(p->columns, 3);
  ck_assert(!w.res->redrawn);
  for (uint32_t i = 0; i < p->rows * p->columns; i++)
    ck_assert_double_eq_tol((double)p->cell[i], fabs(rule_tensor_get(b, i % 3)), 1e-6);
  ck_assert_int_eq(p->n_differ, 240);
  ck_assert_double_eq_tol(fabs(p->left - p->right), d->max_abs, 1e-12);
  ck_assert_int_ne(p->index % 3, 1);
}
END_TEST

/* ---- undecided ---- */

START_TEST(an_oracle_that_knows_nothing_decides_nothing) {
  w.oracle.judge = JUDGE_UNKNOWN;
  commuted(2);
  expect(SYNTH_UNDECIDED);
  ck_assert_uint_eq(w.res->n_rules, 0);
  ck_assert_uint_ge(w.oracle.n_decided, 1);
  ck_assert_ptr_nonnull(strstr(w.res->reason, "no justified rule"));
  ck_assert_uint_eq(w.res->n_steps, 0);
}
END_TEST

START_TEST(tested_is_not_proved) {
  w.options.require_proved = true;
  commuted(1);
  expect(SYNTH_UNDECIDED);
}
END_TEST

/* ---- errors ---- */

static void expect_error(iso_code want, const char *part) {
  for (int turn = 0; turn < 2; turn++) {
    iso_error err = {0};
    ck_assert_int_eq(turn ? try_compare(&w.r, &w.l, &err) : try_compare(&w.l, &w.r, &err), want);
    ck_assert_msg(strstr(err.msg, part) != NULL, "\"%s\"", err.msg);
    ck_assert_ptr_null(w.res);
  }
}

START_TEST(outputs_that_cannot_be_paired) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", relu(&w.l, a));
  output(&w.r, "y", relu(&w.r, b));
  output(&w.r, "z", neg(&w.r, b));
  expect_error(ISO_USAGE, "outputs");
  w.r.g.n_outputs = 1;
  const rule_term *size[2] = {num(3), num(4)};
  w.r.out[0].node = op(&w.r, "aten::reshape", v(b), rule_list(&w.arena, size, 2), NULL);
  expect_error(ISO_USAGE, "[4, 3]");
}
END_TEST

START_TEST(operators_that_cannot_run_are_named) {
  w.oracle.broken = "aten::relu";
  commuted(1);
  expect_error(ISO_UNSUPPORTED, "aten::relu");
  iso_error err = {0};
  ck_assert_int_eq(try_compare(&w.l, &w.r, &err), ISO_UNSUPPORTED);
  ck_assert_msg(strstr(err.msg, "left.json") && strstr(err.msg, "l3"), "\"%s\"", err.msg);
}
END_TEST

int main(void) {
  Suite *s = suite_create("compare");
  TCase *t = tcase_create("compare");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, equal_graphs_need_no_rule);
  tcase_add_test(t, commuted_add_takes_one_rule);
  tcase_add_test(t, a_rule_is_found_once_and_used_again);
  tcase_add_test(t, known_rules_are_validated_and_used);
  tcase_add_test(t, outputs_pair_by_name_and_up_to_sizes_1);
  tcase_add_test(t, a_transposed_weight_is_related);
  tcase_add_test(t, ones_that_are_a_term_go_by_a_rule);
  tcase_add_test(t, a_missing_relu_is_different_where_captured_values_hide_it);
  tcase_add_test(t, a_missing_relu_that_only_other_signs_show_is_different);
  tcase_add_test(t, a_second_set_of_inputs_is_a_witness_of_its_own);
  tcase_add_test(t, weights_of_ones_that_are_dropped_are_different);
  tcase_add_test(t, another_operator_is_named);
  tcase_add_test(t, another_attribute_is_named);
  tcase_add_test(t, one_change_in_two_places_is_named_once);
  tcase_add_test(t, a_node_stands_by_congruence_rule_or_assumption);
  tcase_add_test(t, an_inner_step_stands_within_a_rule);
  tcase_add_test(t, where_tensors_differ_is_pictured);
  tcase_add_test(t, an_oracle_that_knows_nothing_decides_nothing);
  tcase_add_test(t, tested_is_not_proved);
  tcase_add_test(t, outputs_that_cannot_be_paired);
  tcase_add_test(t, operators_that_cannot_run_are_named);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
