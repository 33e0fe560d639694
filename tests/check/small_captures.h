/* Two captures of a few nodes in memory, and the state of a check of them, so that each file of
 * check/ can be asked by itself. Operators are those of tests/support/small_operators.h. */
#ifndef TESTS_CHECK_SMALL_CAPTURES_H
#define TESTS_CHECK_SMALL_CAPTURES_H

#include <stdlib.h>

#include "check/check_int.h"
#include "tests/support/small_operators.h"

enum { MAX_NODES = 24, MAX_TERMS = 256, MAX_STEPS = 64, MAX_RESULTS = 8, MAX_TENSORS = 64 };

typedef struct capture {
  cap_graph g;
  cap_node node[MAX_NODES];
  cap_output output[MAX_NODES];
  cap_result result[MAX_RESULTS];
  rule_tensor *input[MAX_NODES];
} capture;

static capture side[2];
static chk_state k;
static chk_report report;
static chk_options options;
static iso_error err;
static rule_schemas *schemas;
static chk_term term[MAX_TERMS];
static chk_step step[MAX_STEPS];
static chk_output output[MAX_RESULTS];
static uint32_t fixed[MAX_NODES];
static rule_tensor *kept[MAX_TENSORS];
static size_t n_kept;

/* parameters: those of rule_oracle.call. */
static inline iso_code small_run(void *ctx, const rule_term *call, rule_tensor *const *bind,
                                 bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                                 iso_error *e) {
  (void)ctx, (void)float64, (void)cap;
  *n_out = 1;
  out[0] = run_op(call, bind);
  return out[0] ? ISO_OK : iso_fail(e, ISO_UNSUPPORTED, "%s cannot run", call->u.s);
}

static const rule_oracle small_oracle = {.call = small_run, .compare = small_compare};

static inline void setup(void) {
  options = (chk_options){0};
  report = (chk_report){0};
  err = (iso_error){0};
  iso_arena_init(&report.arena);
  ck_assert(rule_schemas_new(&schemas, NULL) == ISO_OK);
  for (int s = 0; s < 2; s++) {
    capture *c = &side[s];
    *c = (capture){.g = {.path = s ? "right" : "left", .model = s ? "r" : "l", .n_sets = 1}};
    c->g.node = c->node;
    c->g.result = c->result;
    c->g.input = c->input;
  }
  k = (chk_state){.graph = {&side[LEFT].g, &side[RIGHT].g},
                  .schemas = schemas,
                  .oracle = &small_oracle,
                  .o = &options,
                  .report = &report,
                  .arena = &report.arena,
                  .term = term,
                  .cert.step = step,
                  .cert.output = output,
                  .cert.fixed = fixed,
                  .err = &err};
  memset(term, 0, sizeof term);
  n_kept = 0;
}

static inline void teardown(void) {
  chk_masks_free(&k);
  chk_free_values(&k);
  free(k.here.up);
  free(k.here.unpinned);
  free(k.mask.unread);
  free(k.used.assumption);
  for (size_t i = 0; i < n_kept; i++) rule_tensor_unref(kept[i]);
  rule_schemas_free(schemas);
  iso_arena_fini(&report.arena);
}

/* ---- captures ---- */

static inline rule_tensor *keep(rule_tensor *t) {
  ck_assert_uint_lt(n_kept, MAX_TENSORS);
  return kept[n_kept++] = t;
}

static inline rule_tensor *noise(iso_rng *rng, rule_shape s) {
  rule_tensor *t = keep(make(s));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, iso_rng_normal(rng));
  return t;
}

static inline cap_node *new_node(int s, uint32_t *index, rule_dtype dtype, rule_shape shape) {
  capture *c = &side[s];
  ck_assert_uint_lt(c->g.n_nodes, MAX_NODES);
  *index = (uint32_t)c->g.n_nodes++;
  cap_node *n = &c->node[*index];
  c->output[*index] = (cap_output){shape, dtype};
  *n = (cap_node){.id = iso_arena_printf(&report.arena, "%c%u", s ? 'r' : 'l', *index),
                  .n_outputs = 1,
                  .output = &c->output[*index]};
  return n;
}

static inline uint32_t leaf(int s, cap_kind kind, const char *name, rule_tensor *value) {
  uint32_t i;
  cap_node *n = new_node(s, &i, value->dtype, value->shape);
  n->kind = kind;
  n->name = name;
  n->value = value;
  if (kind == CAP_INPUT) side[s].input[i] = value;
  return i;
}

static inline const rule_term *v(uint32_t i) { return rule_var(&report.arena, i); }
static inline const rule_term *num(int64_t i) { return rule_int(&report.arena, i); }
static inline const rule_term *sizes(const int64_t *size, uint32_t n) {
  const rule_term *list[RULE_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) list[i] = num(size[i]);
  return rule_list(&report.arena, list, n);
}

/* A call with up to five arguments, complete and in schema order. */
static inline const rule_term *call_of(const char *op, const rule_term *const arg[5]) {
  const rule_term *call;
  uint32_t n = 0;
  while (n < 5 && arg[n]) n++;
  ck_assert_msg(rule_call(&report.arena, schemas, op, arg, n, &call, &err) == ISO_OK, "%s",
                err.msg);
  return call;
}
#define CALL(op, ...) call_of(op, (const rule_term *const[5]){__VA_ARGS__})

/* An operator whose shape is given; nothing is run. */
static inline uint32_t shaped(int s, const rule_term *call, rule_dtype dtype, rule_shape shape) {
  uint32_t i;
  cap_node *n = new_node(s, &i, dtype, shape);
  n->kind = CAP_OP;
  n->op = call->u.s;
  n->call = call;
  return i;
}

/* An operator that is run on the captured values for its shape; its operands are leaves or such
 * operators. */
static inline uint32_t op(int s, const rule_term *call) {
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t i = 0; i < side[s].g.n_nodes; i++) {
    const cap_node *n = &side[s].node[i];
    bind[i] = n->call ? run_op(n->call, bind) : rule_tensor_ref(n->value);
  }
  rule_tensor *t = run_op(call, bind);
  ck_assert_ptr_nonnull(t);
  const uint32_t i = shaped(s, call, t->dtype, t->shape);
  rule_tensor_unref(t);
  for (uint32_t j = 0; j < i; j++) rule_tensor_unref(bind[j]);
  return i;
}

static inline void result(int s, const char *name, uint32_t node) {
  capture *c = &side[s];
  ck_assert_uint_lt(c->g.n_results, MAX_RESULTS);
  c->result[c->g.n_results++] = (cap_result){name, node};
}

/* ---- the certificate ---- */

static inline uint32_t add_term(const rule_term *call, const cap_node *node, int s,
                                uint32_t index) {
  ck_assert_uint_lt(k.n_terms, MAX_TERMS);
  chk_term *t = &term[k.n_terms];
  *t = (chk_term){.call = call, .node = node, .side = s, .index = index, .depth = call != NULL};
  return (uint32_t)k.n_terms++;
}

static inline const rule_term *rebased(const rule_term *t, uint32_t by) {
  const rule_term *child[16];
  if (t->kind == RULE_VAR) return v((uint32_t)t->u.i + by);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  ck_assert_uint_le(t->n, 16);
  for (uint32_t i = 0; i < t->n; i++) child[i] = rebased(t->child[i], by);
  return t->kind == RULE_OP ? rule_op(&report.arena, t->u.s, child, t->n)
                            : rule_list(&report.arena, child, t->n);
}

/* The nodes of both captures become terms. */
static inline void add_captures(void) {
  for (int s = 0; s < 2; s++) {
    const uint32_t base = (uint32_t)k.n_terms;
    for (uint32_t i = 0; i < side[s].g.n_nodes; i++) {
      const cap_node *n = &side[s].node[i];
      add_term(n->call ? rebased(n->call, base) : NULL, n, s, i);
    }
  }
}
/* The term of a node. */
static inline uint32_t at(int s, uint32_t node) {
  return s == LEFT ? node : (uint32_t)side[LEFT].g.n_nodes + node;
}
static inline uint32_t own(const rule_term *call) { return add_term(call, NULL, LEFT, 0); }

static inline void add_step(chk_kind kind, uint32_t a, uint32_t b) {
  ck_assert_uint_lt(k.cert.n_steps, MAX_STEPS);
  step[k.cert.n_steps++] = (chk_step){.kind = kind, .a = a, .b = b};
}

static inline void add_output(const char *left, const char *right, uint32_t a, uint32_t b) {
  ck_assert_uint_lt(k.cert.n_outputs, MAX_RESULTS);
  output[k.cert.n_outputs++] = (chk_output){left, right, a, b};
}

/* Runs the checks that come before the first step, none of which may refuse. There is room for
 * terms that are added later. */
static inline void begin(void) {
  const size_t n = k.n_terms;
  k.n_terms = MAX_TERMS;
  ck_assert(chk_relations(&k) == ISO_OK);
  ck_assert_msg(!chk_settled(&k), "%s", report.reason);
  ck_assert(chk_begin_values(&k) == ISO_OK);
  k.n_terms = n;
}

/* No two terms are equal. */
static inline void part_all(void) {
  for (uint32_t i = 0; i < MAX_TERMS; i++) k.here.up[i] = i;
}
static inline void unite(uint32_t a, uint32_t b) { k.here.up[chk_root(&k, a)] = chk_root(&k, b); }

/* Whether nothing was refused; the next question begins anew. */
static inline bool accepted(iso_code c) {
  ck_assert_msg(c == ISO_OK, "%s", err.msg);
  const bool fine = report.outcome == CHK_HOLDS;
  report.outcome = CHK_HOLDS;
  return fine;
}

#endif
