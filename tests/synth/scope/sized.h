/* Pairs of small graphs whose sizes are symbols, and an oracle that decides a rule for all sizes by
 * running it at all small ones. */
#ifndef TESTS_SYNTH_SCOPE_SIZED_H
#define TESTS_SYNTH_SCOPE_SIZED_H

#include "tests/support/masked_operators.h"
#include "tests/synth/small_graphs.h"

enum { MOST_SIZE = 6, MOST_NAMES = 3, MOST_INTEGER = 20 };

static const char *only;  /* rules of another name are left open; NULL: none are */
static bool only_tested;  /* what holds is tested, and not proved */
static unsigned rests_on; /* RULE_RESTS_*: of every proof */
static synth_symbol symbol[2][MOST_NAMES];
static size_t captured_size; /* of each symbol */

/* ---- rules at all small sizes ---- */

typedef struct named {
  const char *name[MOST_NAMES];
  uint32_t n;
  bool many;
} named;

static inline void name_in(named *all, const rule_term *t) {
  if (t->kind == RULE_NAME) {
    for (uint32_t i = 0; i < all->n; i++)
      if (strcmp(all->name[i], t->u.s) == 0) return;
    if (all->n == MOST_NAMES) all->many = true;
    else all->name[all->n++] = t->u.s;
  }
  for (uint32_t k = 0; k < t->n; k++) name_in(all, t->child[k]);
}

static inline named names_of(const rule *r) {
  named all = {0};
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; d < r->var[i].n_dims; d++) name_in(&all, r->var[i].dim[d]);
  for (uint32_t i = 0; i < r->n_where; i++) name_in(&all, r->where[i]);
  name_in(&all, r->lhs);
  name_in(&all, r->rhs);
  return all;
}

static inline rule_tensor *drawn(const rule_variable *v, iso_rng *rng) {
  rule_shape s = {.rank = v->n_dims};
  for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = v->dim[d]->u.i;
  rule_tensor *t = make_as(rule_variable_dtype(v), s);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i,
                    v->kind == 'f' ? iso_rng_normal(rng)
                                   : (double)iso_rng_below(rng, v->kind == 'b' ? 2 : MOST_INTEGER));
  return t;
}

/* Of a rule without names. Returns: whether both sides can run, and in `equal` whether they then
 * are. */
static inline bool holds_at(const rule *r, iso_rng *rng, bool *equal) {
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  for (uint32_t i = 0; i < r->n_vars; i++) bind[i] = drawn(&r->var[i], rng);
  rule_tensor *a = run_term_by(run_masked, r->lhs, bind),
              *b = run_term_by(run_masked, r->rhs, bind);
  const bool ran = a && b;
  if (ran) *equal &= rule_shape_eq(&a->shape, &b->shape) && masked_compare(NULL, a, b, 1e-9).equal;
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return ran;
}

/* Whether the rule holds wherever it is defined at sizes up to MOST_SIZE, and is somewhere. */
static inline bool holds_for_all(const rule *r, const named *all) {
  iso_rng rng = iso_rng_new(11, 2);
  bool equal = true, ran = false;
  int64_t points = 1;
  for (uint32_t i = 0; i < all->n; i++) points *= MOST_SIZE;
  for (int64_t p = 0; p < points && equal; p++) {
    iso_arena a;
    iso_error err;
    rule at;
    bool whole;
    const rule_term *value[MOST_NAMES];
    iso_arena_init(&a);
    for (int64_t i = 0, rest = p; i < all->n; i++, rest /= MOST_SIZE)
      value[i] = rule_int(&a, 1 + rest % MOST_SIZE);
    const rule_assignment v = {all->n, all->name, value, 0};
    ck_assert(rule_at(r, &v, &a, &at, &whole, &err) == ISO_OK);
    if (whole) ran |= holds_at(&at, &rng, &equal);
    iso_arena_fini(&a);
  }
  return ran && equal;
}

static inline iso_code sized_decide(void *ctx, const rule *r, rule_tensor *const *example,
                                    rule_verdict *out, iso_error *err) {
  (void)ctx, (void)example, (void)err;
  const named all = names_of(r);
  *out = (rule_verdict){.status = RULE_UNKNOWN, .scope = RULE_ALL_SHAPES};
  for (uint32_t i = 0; i < r->n_attrs; i++)
    if (r->attr[i].kind != 'i') return ISO_OK;
  if (all.many || (only && strncmp(r->name, only, strlen(only)) != 0)) return ISO_OK;
  const bool holds = holds_for_all(r, &all);
  out->status = !holds ? RULE_REFUTED : only_tested ? RULE_TESTED : RULE_PROVED;
  out->rests_on = holds ? rests_on : 0;
  return ISO_OK;
}

/* ---- graphs ---- */

/* Both sides have these symbols, which are 4 in the captures. */
static inline void symbols(const char *name, int64_t min, int64_t max) {
  captured_size = 4;
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    symbol[side][g->g.n_symbols++] = (synth_symbol){name, min, max};
    g->g.symbol = symbol[side];
  }
}

static inline const rule_term *size(const char *text) { return rule_name(&w.arena, text); }
static inline const rule_term *times(int64_t by, const char *name) {
  const rule_term *both[] = {num(by), size(name)};
  return rule_expr(&w.arena, "*", both, 2);
}
static inline const rule_term *half(const char *name) {
  const rule_term *both[] = {size(name), num(2)};
  return rule_expr(&w.arena, "//", both, 2);
}
static inline const rule_term *sizes(const rule_term *a, const rule_term *b) {
  const rule_term *both[] = {a, b};
  return rule_list(&w.arena, both, b ? 2 : 1);
}

/* The sizes of a node. */
static inline void dims(graph *g, uint32_t node, const rule_term *list) {
  ck_assert_uint_eq(list->n, g->node[node].shape.rank);
  g->node[node].dim = list->child;
}

static inline bool captured_value(const void *ctx, const char *name, rule_term *out) {
  (void)ctx, (void)name;
  *out = (rule_term){.kind = RULE_INT, .u.i = (int64_t)captured_size};
  return true;
}

/* A term with the captured numbers for sizes. */
static inline const rule_term *as_captured(const rule_term *t) {
  const rule_values v = {captured_value, NULL, 0};
  int64_t x;
  if (t->kind == RULE_NAME) return num((int64_t)captured_size);
  if (t->kind == RULE_EXPR) return ck_assert(rule_size_at(t, &v, &x)), num(x);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term *child[MAX_ARGS];
  for (uint32_t k = 0; k < t->n; k++) child[k] = as_captured(t->child[k]);
  return t->kind == RULE_OP ? rule_op(&w.arena, t->u.s, child, t->n)
                            : rule_list(&w.arena, child, t->n);
}

/* A step with these sizes, whose result has those of `list`. */
static inline uint32_t sized_step(graph *g, const rule_term *sized, const rule_term *list) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t k = 0; k < i; k++) bind[k] = g->value[k][0];
  n->kind = SYNTH_OP;
  n->sized = sized;
  n->call = as_captured(sized);
  n->op = n->call->u.s;
  ck_assert_msg((g->value[i][0] = run_masked(n->call, bind)) != NULL, "%s cannot run", n->op);
  keep(g->value[i][0]);
  n->shape = g->value[i][0]->shape;
  n->dtype = g->value[i][0]->dtype;
  dims(g, i, list);
  return i;
}
static inline uint32_t sized_op(graph *g, const rule_term *list, const char *name,
                                const rule_term *a, const rule_term *b, const rule_term *c) {
  return sized_step(g, call_of(name, (const rule_term *const[5]){a, b, c}), list);
}

/* ---- what is concluded ---- */

static inline void set_up_sized(void) {
  setup();
  only = NULL;
  only_tested = false;
  rests_on = 0;
  w.options.scope = w.options.certificate = true;
}

static inline void conclude(void) {
  const rule_oracle oracle = {.ctx = &w.oracle,
                              .call = masked_call,
                              .compare = masked_compare,
                              .decide = sized_decide,
                              .same_numbers = small_numbers};
  iso_error err = {0};
  synth_result_free(w.res);
  w.res = NULL;
  const iso_code c =
      synth_compare(&w.l.g, &w.r.g, w.known, &oracle, w.schemas, &w.options, &w.res, &err);
  ck_assert_msg(c == ISO_OK, "%s", err.msg);
  ck_assert_msg(w.res->verdict == SYNTH_EQUIVALENT, "%s: %s", verdict_name(w.res->verdict),
                w.res->reason ? w.res->reason : "");
}

/* The captures are equivalent, and that for all sizes. */
static inline void for_all_sizes(const char *what) {
  conclude();
  ck_assert_msg(w.res->scope.all, "%s: %s", what,
                w.res->scope.n_held ? w.res->scope.held[0] : "no reason");
  ck_assert_uint_gt(w.res->certificate->n_sized_steps, 0);
}

/* They are at the captured sizes, and one of the reasons against others has this text. */
static inline void held_back(const char *what, const char *by) {
  bool said = false;
  conclude();
  ck_assert_msg(!w.res->scope.all, "%s: for all sizes", what);
  ck_assert_uint_eq(w.res->certificate->n_sized_steps, 0);
  for (size_t i = 0; i < w.res->scope.n_held; i++) said |= strstr(w.res->scope.held[i], by) != NULL;
  ck_assert_msg(said, "%s: %s", what, w.res->scope.n_held ? w.res->scope.held[0] : "no reason");
}

#endif
