/* A vector that one graph puts together of numbers and the other one computes as a vector: joined
 * number by number, where one rule of all numbers would be too large. */
#include "tests/support/suite.h"
#include "tests/synth/small_graphs.h"

enum { N = 6, SMALL = 3 };

/* ---- lists of numbers ---- */

static rule_tensor *stacked(const rule_term *list, rule_tensor *const *bind) {
  rule_tensor *r = make(SHAPE(list->n));
  for (uint32_t k = 0; k < list->n; k++) {
    const rule_tensor *x = list->child[k]->kind == RULE_VAR ? bind[list->child[k]->u.i] : NULL;
    if (!x || x->shape.rank != 0) return rule_tensor_unref(r), NULL;
    rule_tensor_set(r, k, rule_tensor_get(x, 0));
  }
  return r;
}

static rule_tensor *selected(const rule_tensor *x, int64_t d, int64_t i) {
  if (x->shape.rank != 1 || d != 0 || i < 0 || i >= x->numel) return NULL;
  rule_tensor *r = make((rule_shape){0});
  rule_tensor_set(r, 0, rule_tensor_get(x, i));
  return r;
}

static rule_tensor *run_listed(const rule_term *t, rule_tensor *const *bind) {
  if (strcmp(t->u.s, "aten::stack") == 0) return stacked(t->child[0], bind);
  if (strcmp(t->u.s, "aten::select.int") == 0)
    return t->child[0]->kind == RULE_VAR
               ? selected(bind[t->child[0]->u.i], t->child[1]->u.i, t->child[2]->u.i)
               : NULL;
  return run_op(t, bind);
}

/* parameters: those of rule_oracle.call. */
static iso_code listed_call(void *ctx, const rule_term *call, rule_tensor *const *bind,
                            bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                            iso_error *e) {
  (void)ctx, (void)float64, (void)cap;
  *n_out = 1;
  out[0] = run_listed(call, bind);
  return out[0] ? ISO_OK : iso_fail(e, ISO_UNSUPPORTED, "%s cannot run", call->u.s);
}

/* ---- rules ---- */

static size_t most_operators; /* of the largest rule that was decided */

/* Operators that compute, and neither list numbers nor take one of a list. */
static size_t computing(const rule_term *t) {
  size_t n = t->kind == RULE_OP && strcmp(t->u.s, "aten::stack") != 0 &&
             strcmp(t->u.s, "aten::select.int") != 0;
  for (uint32_t k = 0; k < t->n; k++) n += computing(t->child[k]);
  return n;
}

/* Holds on draws; of rules that compute more than SMALL times nothing is known. */
static iso_code listed_decide(void *ctx, const rule *r, rule_tensor *const *example,
                              rule_verdict *out, iso_error *e) {
  (void)ctx, (void)example, (void)e;
  iso_rng rng = iso_rng_new(7, 1);
  const size_t n = computing(r->lhs) + computing(r->rhs);
  *out = (rule_verdict){.status = RULE_UNKNOWN, .scope = RULE_THESE_SHAPES};
  if (n > SMALL) return ISO_OK;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind != RULE_INT) return ISO_OK;
  if (n > most_operators) most_operators = n;
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  for (uint32_t i = 0; i < r->n_vars; i++) {
    rule_shape s = {.rank = r->var[i].n_dims};
    for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = r->var[i].dim[d]->u.i;
    bind[i] = make(s);
    for (int64_t k = 0; k < bind[i]->numel; k++) rule_tensor_set(bind[i], k, iso_rng_normal(&rng));
  }
  rule_tensor *a = run_term_by(run_listed, r->lhs, bind),
              *b = run_term_by(run_listed, r->rhs, bind);
  const bool equal =
      a && b && rule_shape_eq(&a->shape, &b->shape) && small_compare(NULL, a, b, 1e-9).equal;
  out->status = equal ? RULE_TESTED : a && b ? RULE_REFUTED : RULE_UNKNOWN;
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return ISO_OK;
}

/* ---- graphs ---- */

static uint32_t listed_step(graph *g, const char *name, const rule_term *a, const rule_term *b) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t k = 0; k < i; k++) bind[k] = g->value[k][0];
  n->kind = SYNTH_OP;
  n->call = call_of(name, (const rule_term *const[5]){a, b});
  n->op = n->call->u.s;
  ck_assert((g->value[i][0] = run_listed(n->call, bind)) != NULL);
  keep(g->value[i][0]);
  n->shape = g->value[i][0]->shape;
  return i;
}

static uint32_t list_of(graph *g, const uint32_t *number) {
  const rule_term *each[N];
  for (uint32_t k = 0; k < N; k++) each[k] = v(number[k]);
  return listed_step(g, "aten::stack", rule_list(&w.arena, each, N), num(0));
}

/* Sums of two numbers each, as a list of sums, or as the sum of two lists. `wrong`: the sum of
 * which a number is taken twice, -1: none. */
static void sums(graph *g, bool by_number, int wrong) {
  uint32_t x[N], y[N], sum[N];
  for (uint32_t k = 0; k < N; k++) {
    rule_tensor *a = w.tensor[k], *b = w.tensor[N + k];
    x[k] = leaf(g, SYNTH_INPUT, iso_arena_printf(&w.arena, "x%u", k), a, a);
    y[k] = leaf(g, SYNTH_INPUT, iso_arena_printf(&w.arena, "y%u", k), b, b);
  }
  if (wrong >= 0) y[wrong] = x[wrong];
  for (uint32_t k = 0; k < N && by_number; k++) sum[k] = add(g, x[k], y[k]);
  output(g, "y",
         by_number ? list_of(g, sum)
                   : listed_step(g, "aten::add.Tensor", v(list_of(g, x)), v(list_of(g, y))));
}

static synth_verdict compare_listed(void) {
  const rule_oracle oracle = {.ctx = &w.oracle,
                              .call = listed_call,
                              .compare = small_compare,
                              .decide = listed_decide,
                              .same_numbers = small_numbers};
  iso_error e = {0};
  synth_result_free(w.res);
  w.res = NULL;
  const iso_code c =
      synth_compare(&w.l.g, &w.r.g, NULL, &oracle, w.schemas, &w.options, &w.res, &e);
  ck_assert_msg(c == ISO_OK, "%s", e.msg);
  return w.res->verdict;
}

static void pair(bool exchanged, int wrong) {
  teardown();
  setup();
  most_operators = 0;
  for (uint64_t k = 0; k < 2 * N; k++) noise(k + 1, (rule_shape){0}, 0, 1);
  sums(&w.l, exchanged, -1);
  sums(&w.r, !exchanged, wrong);
}

START_TEST(a_list_of_numbers_is_joined_number_by_number) {
  for (int exchanged = 0; exchanged < 2; exchanged++) {
    pair(exchanged, -1);
    ck_assert_msg(compare_listed() == SYNTH_EQUIVALENT, "%s", w.res->reason);
    ck_assert_uint_eq(most_operators, 2); /* a sum of items against the item of a sum */
  }
}
END_TEST

START_TEST(one_number_that_is_another_one_is_seen) {
  for (int exchanged = 0; exchanged < 2; exchanged++)
    for (int wrong = 0; wrong < N; wrong++) {
      pair(exchanged, wrong);
      ck_assert_int_eq(compare_listed(), SYNTH_DIFFERENT);
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("items");
  TCase *t = tcase_create("items");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, a_list_of_numbers_is_joined_number_by_number);
  tcase_add_test(t, one_number_that_is_another_one_is_seen);
  suite_add_tcase(s, t);
  return run_suite(s);
}
