/* Graphs of a few operators, an oracle of plain C for them, and the expected result of comparing
 * two. */
#ifndef TESTS_SYNTH_SMALL_GRAPHS_H
#define TESTS_SYNTH_SMALL_GRAPHS_H

#include <stdlib.h>

#include "egraph/base/rng.h"
#include "localise/localise.h"
#include "synth/synth.h"
#include "tests/support/small_operators.h"

enum { MAX_NODES = 32, MAX_TENSORS = 64 };

/* ---- an oracle ---- */

/* JUDGE_GIVEN tries rules whose names begin with "given", as if all others were too hard; where
 * such a rule holds and its name says "proved", it is proved. */
typedef enum judge { JUDGE_TRY, JUDGE_UNKNOWN, JUDGE_YES, JUDGE_GIVEN } judge;

typedef struct small_oracle {
  judge judge;
  const char *broken;   /* an operator that cannot run */
  rule_numbers numbers; /* what it says of the real numbers of any two programs */
  size_t n_decided;
} small_oracle;

/* parameters: those of rule_oracle.call. */
static inline iso_code small_call(void *ctx, const rule_term *call, rule_tensor *const *bind,
                                  bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                                  iso_error *err) {
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

static inline iso_code small_decide(void *ctx, const rule *r, rule_tensor *const *example,
                                    rule_verdict *out, iso_error *err) {
  small_oracle *o = ctx;
  (void)example, (void)err;
  o->n_decided++;
  *out = (rule_verdict){.status = o->judge == JUDGE_YES ? RULE_TESTED : RULE_UNKNOWN,
                        .scope = RULE_THESE_SHAPES};
  const bool given = o->judge == JUDGE_GIVEN && strncmp(r->name, "given", 5) == 0;
  if (o->judge != JUDGE_TRY && !given) return ISO_OK;
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
    out->status = equal ? given && strstr(r->name, "proved") ? RULE_PROVED : RULE_TESTED
                  : ran ? RULE_REFUTED
                        : RULE_UNKNOWN;
    if (!equal) break;
    out->n_samples++;
  }
  return ISO_OK;
}

static inline iso_code small_numbers(void *ctx, const rule_program side[2], rule_numbers *out,
                                     iso_error *err) {
  (void)side, (void)err;
  *out = ((const small_oracle *)ctx)->numbers;
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

static inline void graph_init(graph *g, const char *path) {
  *g = (graph){.g = {.path = path, .n_sets = 1}};
  g->g.node = g->node;
  g->g.output = g->out;
}

static inline void setup(void) {
  w = (world){.options = synth_options_default()};
  w.options.localiser = localise_parts();
  iso_arena_init(&w.arena);
  ck_assert(rule_schemas_new(&w.schemas, NULL) == ISO_OK);
  graph_init(&w.l, "left.json");
  graph_init(&w.r, "right.json");
}

static inline void teardown(void) {
  synth_result_free(w.res);
  rule_set_free(w.known);
  for (size_t i = 0; i < w.n_tensors; i++) rule_tensor_unref(w.tensor[i]);
  rule_schemas_free(w.schemas);
  iso_arena_fini(&w.arena);
}

static inline rule_tensor *keep(rule_tensor *t) {
  ck_assert(w.n_tensors < MAX_TENSORS);
  return w.tensor[w.n_tensors++] = t;
}

static inline rule_tensor *noise(uint64_t seed, rule_shape s, double mean, double deviation) {
  rule_tensor *t = keep(make(s));
  iso_rng rng = iso_rng_new(seed, 3);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, mean + deviation * iso_rng_normal(&rng));
  return t;
}

/* Mostly small, so that draws of the same mean and deviation are often negative. */
static inline rule_tensor *positive(uint64_t seed, rule_shape s, double scale) {
  rule_tensor *t = noise(seed, s, 0, 1);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, scale * (pow(rule_tensor_get(t, i), 4) + 0.01));
  return t;
}

static inline rule_tensor *constant(rule_shape s, double v) {
  rule_tensor *t = keep(make(s));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, v);
  return t;
}

static inline synth_node *new_node(graph *g, uint32_t *index) {
  ck_assert(g->g.n_nodes < MAX_NODES);
  *index = (uint32_t)g->g.n_nodes++;
  synth_node *n = &g->node[*index];
  n->id = iso_arena_printf(&w.arena, "%c%u", g == &w.l ? 'l' : 'r', *index);
  n->n_outputs = 1;
  n->dtype = RULE_F64;
  return n;
}

static inline uint32_t leaf(graph *g, synth_kind kind, const char *name, rule_tensor *first,
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
static inline uint32_t input(graph *g, rule_tensor *t) { return leaf(g, SYNTH_INPUT, "x", t, t); }
static inline uint32_t weight(graph *g, const char *name, rule_tensor *t) {
  return leaf(g, SYNTH_PARAMETER, name, t, NULL);
}

static inline const rule_term *v(uint32_t i) { return rule_var(&w.arena, i); }
static inline const rule_term *num(int64_t i) { return rule_int(&w.arena, i); }

/* A step; its shape is that of its result on the captured values. */
static inline uint32_t step_by(graph *g, const rule_term *call) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  n->kind = SYNTH_OP;
  n->op = call->u.s;
  n->call = call;
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t k = 0; k < i; k++) bind[k] = g->value[k][0];
  ck_assert((g->value[i][0] = run_op(n->call, bind)) != NULL);
  keep(g->value[i][0]);
  n->shape = g->value[i][0]->shape;
  return i;
}
/* A call with up to five arguments. */
static inline const rule_term *call_of(const char *name, const rule_term *const arg[5]) {
  const rule_term *call;
  iso_error err;
  uint32_t n = 0;
  while (n < 5 && arg[n]) n++;
  ck_assert_msg(rule_call(&w.arena, w.schemas, name, arg, n, &call, &err) == ISO_OK, "%s", err.msg);
  return call;
}
static inline uint32_t op(graph *g, const char *name, const rule_term *a, const rule_term *b,
                          const rule_term *c) {
  return step_by(g, call_of(name, (const rule_term *const[5]){a, b, c}));
}
static inline uint32_t add(graph *g, uint32_t x, uint32_t y) {
  return op(g, "aten::add.Tensor", v(x), v(y), NULL);
}
static inline uint32_t mul(graph *g, uint32_t x, uint32_t y) {
  return op(g, "aten::mul.Tensor", v(x), v(y), NULL);
}
static inline uint32_t neg(graph *g, uint32_t x) { return op(g, "aten::neg", v(x), NULL, NULL); }
static inline uint32_t relu(graph *g, uint32_t x) { return op(g, "aten::relu", v(x), NULL, NULL); }
static inline uint32_t ones(graph *g, int64_t n) {
  const rule_term *size = num(n);
  return op(g, "aten::full", rule_list(&w.arena, &size, 1), rule_float(&w.arena, 1),
            rule_dtype_term(&w.arena, RULE_F64));
}

static inline void output(graph *g, const char *name, uint32_t node) {
  ck_assert(g->g.n_outputs < 2);
  g->out[g->g.n_outputs++] = (synth_output){.name = name, .node = node};
}

static inline iso_code try_compare(const graph *l, const graph *r, iso_error *err) {
  const rule_oracle oracle = {.ctx = &w.oracle,
                              .call = small_call,
                              .compare = small_compare,
                              .decide = small_decide,
                              .same_numbers = small_numbers};
  synth_result_free(w.res);
  w.res = NULL;
  w.oracle.n_decided = 0;
  return synth_compare(&l->g, &r->g, w.known, &oracle, w.schemas, &w.options, &w.res, err);
}

static inline const char *verdict_name(synth_verdict x) {
  return x == SYNTH_EQUIVALENT ? "equivalent" : x == SYNTH_DIFFERENT ? "different" : "undecided";
}

static inline void compare_one(const graph *l, const graph *r, synth_verdict want) {
  iso_error err = {0};
  ck_assert_msg(try_compare(l, r, &err) == ISO_OK, "%s", err.msg);
  ck_assert_ptr_nonnull(w.res);
  ck_assert_msg(w.res->verdict == want, "%s, expected %s%s%s", verdict_name(w.res->verdict),
                verdict_name(want), w.res->reason ? ": " : "", w.res->reason ? w.res->reason : "");
  ck_assert((w.res->verdict == SYNTH_UNDECIDED) == (w.res->reason != NULL));
  ck_assert((w.res->verdict == SYNTH_EQUIVALENT) == (w.res->n_divergences == 0));
  ck_assert_uint_eq(w.res->n_pairs, l->g.n_outputs);
}

/* Both ways round, on four seeds; the result that stays is of left against right with seed 0. */
static inline void expect(synth_verdict want) {
  for (uint64_t seed = 4; seed-- > 0;) {
    w.options.seed = seed;
    compare_one(&w.r, &w.l, want);
    compare_one(&w.l, &w.r, want);
  }
}

static inline size_t n_needed(void) {
  size_t n = 0;
  for (size_t i = 0; i < w.res->n_rules; i++) n += w.res->rule[i].needed;
  return n;
}

static inline rule_set *parse(const char *text) {
  rule_set *s = NULL;
  iso_error err;
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "known", &s, &err) == ISO_OK, "%s", err.msg);
  return s;
}

static inline void stands(int side, uint32_t node, synth_standing as) {
  ck_assert_msg(w.res->standing_of[side][node] == as, "%s %u: %d, not %d", side ? "right" : "left",
                node, w.res->standing_of[side][node], as);
  ck_assert((as == SYNTH_UNREAD) == (w.res->class_of[side][node] == UINT32_MAX));
}

#endif
