/* Terms: equality, copies, sizes, calls, and their text. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rules.h"
#include "tests/support/suite.h"

static iso_arena a;
static rule_schemas *s;

static void setup(void) {
  iso_arena_init(&a);
  ck_assert_int_eq(rule_schemas_new(&s, NULL), ISO_OK);
}
static void teardown(void) {
  iso_arena_fini(&a);
  rule_schemas_free(s);
}

static const rule_term *pair(const char *op, const rule_term *x, const rule_term *y) {
  const rule_term *child[2] = {x, y};
  return rule_op(&a, op, child, 2);
}

static void check_text(const rule_term *t, const char *want) {
  char *text = rule_term_print(t, s, NULL);
  ck_assert_str_eq(text, want);
  free(text);
}

START_TEST(equality) {
  const rule_term *different[] = {rule_var(&a, 0),
                                  rule_var(&a, 1),
                                  rule_int(&a, 0),
                                  rule_int(&a, 1),
                                  rule_float(&a, 0.0),
                                  rule_float(&a, -0.0),
                                  rule_float(&a, 1),
                                  rule_float(&a, (double)NAN),
                                  rule_float(&a, (double)INFINITY),
                                  rule_bool(&a, false),
                                  rule_bool(&a, true),
                                  rule_none(&a),
                                  rule_string(&a, "x"),
                                  rule_name(&a, "x"),
                                  rule_name(&a, "y"),
                                  rule_dtype_term(&a, RULE_F32),
                                  rule_list(&a, NULL, 0),
                                  rule_op(&a, "x", NULL, 0),
                                  rule_expr(&a, "x", NULL, 0),
                                  pair("f", rule_var(&a, 0), rule_var(&a, 1)),
                                  pair("f", rule_var(&a, 0), rule_var(&a, 0))};
  const size_t n = sizeof different / sizeof different[0];
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++)
      ck_assert_int_eq(rule_term_eq(different[i], different[k]), i == k);
  for (size_t i = 0; i < n; i++)
    ck_assert(rule_term_eq(different[i], rule_term_copy(&a, different[i])));
  ck_assert(rule_term_eq(rule_float(&a, (double)NAN), rule_float(&a, -(double)NAN)));
}
END_TEST

START_TEST(copies_own_their_parts) {
  iso_arena other = {0};
  char name[] = "size";
  const rule_term *t = pair("op", rule_name(&other, name), rule_string(&other, name));
  const rule_term *c = rule_term_copy(&a, t);
  memset(name, 'X', 4);
  ck_assert(rule_term_eq(t, c));
  iso_arena_fini(&other);
  ck_assert_str_eq(c->child[0]->u.s, "size");
  ck_assert_str_eq(c->child[1]->u.s, "size");
}
END_TEST

/* Equal subterms of one side and of both become one; different ones stay apart. */
START_TEST(equal_parts_are_shared) {
  const rule_term *x = pair("f", rule_var(&a, 0), rule_int(&a, 2)),
                  *y = pair("f", rule_var(&a, 0), rule_int(&a, 2)),
                  *z = pair("f", rule_var(&a, 0), rule_int(&a, 3));
  rule r = {.lhs = pair("g", x, pair("h", y, z)),
            .rhs = pair("h", pair("f", rule_var(&a, 0), rule_int(&a, 2)), z)};
  const rule before = r;
  iso_arena own = {0};
  ck_assert(rule_share(&own, &r));
  ck_assert(rule_term_eq(before.lhs, r.lhs) && rule_term_eq(before.rhs, r.rhs));
  ck_assert_ptr_eq(r.lhs->child[0], r.lhs->child[1]->child[0]);
  ck_assert_ptr_eq(r.lhs->child[1], r.rhs);
  ck_assert_ptr_ne(r.lhs->child[0], r.lhs->child[1]->child[1]);
  iso_arena_fini(&own);
}
END_TEST

START_TEST(a_missing_child_travels_up) {
  ck_assert_ptr_null(pair("f", rule_var(&a, 0), NULL));
  ck_assert_ptr_null(rule_term_copy(&a, NULL));
}
END_TEST

START_TEST(a_slice_is_a_call_of_places) {
  static const int64_t want[] = {9, 1, 2, 5, 1};
  const rule_term *t = rule_slice(&a, rule_int(&a, 9), 1, 2, 5);
  ck_assert_str_eq(t->u.s, "aten::slice.Tensor");
  ck_assert_uint_eq(t->n, 5);
  for (uint32_t i = 0; i < 5; i++) ck_assert_int_eq(t->child[i]->u.i, want[i]);
  ck_assert_ptr_null(rule_slice(&a, NULL, 0, 0, 1));
}
END_TEST

START_TEST(sizes) {
  const rule_term *list[] = {rule_var(&a, 0), rule_int(&a, 1)};
  ck_assert_uint_eq(rule_term_size(rule_int(&a, 3)), 0);
  ck_assert_uint_eq(rule_term_size(pair("f", rule_list(&a, list, 2), rule_int(&a, 2))), 3);
}
END_TEST

START_TEST(calls_are_completed) {
  iso_error err;
  const rule_term *t, *x = rule_var(&a, 0), *one = rule_int(&a, 1);
  const rule_term *arg[] = {x, x, x, x};
  ck_assert_int_eq(rule_call(&a, s, "aten::add.Tensor", arg, 2, &t, &err), ISO_OK);
  ck_assert_uint_eq(t->n, 3);
  ck_assert(rule_term_eq(t->child[2], one));
  check_text(t, "(aten::add.Tensor x0 x0)");
  ck_assert_int_eq(rule_call(&a, s, "aten::add.Tensor", arg, 1, &t, &err), ISO_USAGE);
  ck_assert_ptr_nonnull(strstr(err.msg, "other is missing"));
  ck_assert_int_eq(rule_call(&a, s, "aten::add.Tensor", arg, 4, &t, &err), ISO_USAGE);
  ck_assert_int_eq(rule_call(&a, s, "aten::addd", arg, 1, &t, &err), ISO_USAGE);
  arg[1] = NULL;
  ck_assert_int_eq(rule_call(&a, s, "aten::add.Tensor", arg, 2, &t, &err), ISO_NOMEM);
  arg[1] = rule_string(&a, "?");
  ck_assert_int_eq(rule_call(&a, s, "aten::add.Tensor", arg, 2, &t, &err), ISO_USAGE);
  /* A completed call outlives its schemas. */
  arg[1] = one;
  ck_assert_int_eq(rule_call(&a, s, "aten::softmax.int", arg, 2, &t, &err), ISO_OK);
  rule_schemas_free(s);
  s = NULL;
  ck_assert_int_eq(t->child[2]->kind, RULE_NONE);
}
END_TEST

START_TEST(values_take_their_arguments_form) {
  const rule_term *t, *x = rule_var(&a, 0);
  const rule_term *norm[] = {x, x, rule_int(&a, 2)};
  ck_assert_int_eq(rule_call(&a, s, "_C::rms_norm.isomer", norm, 3, &t, NULL), ISO_OK);
  ck_assert_int_eq(t->child[2]->kind, RULE_FLOAT);
  const rule_term *to[] = {x, rule_name(&a, "bfloat16"), rule_bool(&a, true)};
  ck_assert_int_eq(rule_call(&a, s, "aten::to.dtype", to, 3, &t, NULL), ISO_OK);
  ck_assert_int_eq(t->child[1]->kind, RULE_DTYPE);
  ck_assert_int_eq(t->child[2]->kind, RULE_NONE);
  check_text(t, "(aten::to.dtype x0 bfloat16)");
  const rule_term *pool[] = {x, rule_int(&a, 3)};
  ck_assert_int_eq(rule_call(&a, s, "aten::max_pool2d", pool, 2, &t, NULL), ISO_OK);
  check_text(t, "(aten::max_pool2d x0 (list 3 3))");
  const rule_term *item = rule_int(&a, 1);
  const rule_term *cat[] = {rule_list(&a, &item, 1)};
  ck_assert_int_eq(rule_call(&a, s, "aten::cat", cat, 1, &t, NULL), ISO_USAGE);
}
END_TEST

START_TEST(random_calls) {
  const rule_term *t, *x = rule_var(&a, 0);
  const rule_term *drop[] = {x, rule_float(&a, 0.5), rule_bool(&a, _i == 1)};
  ck_assert_int_eq(rule_call(&a, s, "aten::dropout", drop, 3, &t, NULL), ISO_OK);
  ck_assert_int_eq(rule_draws(s, t), _i == 1);
  const rule_term *keep[] = {x, rule_float(&a, 0), rule_bool(&a, true)};
  ck_assert_int_eq(rule_call(&a, s, "aten::dropout", keep, 3, &t, NULL), ISO_OK);
  ck_assert(!rule_draws(s, t));
  const rule_term *attend[] = {x, x, x, rule_none(&a), rule_float(&a, _i == 1 ? 0.1 : 0)};
  ck_assert_int_eq(rule_call(&a, s, "aten::scaled_dot_product_attention", attend, 5, &t, NULL),
                   ISO_OK);
  ck_assert_int_eq(rule_draws(s, t), _i == 1);
  ck_assert_int_eq(rule_call(&a, s, "aten::bernoulli", &x, 1, &t, NULL), ISO_OK);
  ck_assert(rule_draws(s, t));
  ck_assert(!rule_draws(s, x));
}
END_TEST

START_TEST(text_of_literals) {
  check_text(rule_float(&a, 1), "1.0");
  check_text(rule_float(&a, -0.0), "-0.0");
  check_text(rule_float(&a, 0.1), "0.1");
  check_text(rule_float(&a, 1e300), "1e+300");
  check_text(rule_float(&a, 0.28867513459481287), "0.28867513459481287");
  check_text(rule_float(&a, 5e-324), "5e-324");
  check_text(rule_float(&a, (double)INFINITY), "inf");
  check_text(rule_float(&a, -(double)INFINITY), "-inf");
  check_text(rule_float(&a, -(double)NAN), "nan");
  check_text(rule_int(&a, INT64_MIN), "-9223372036854775808");
  check_text(rule_bool(&a, true), "true");
  check_text(rule_none(&a), "none");
  check_text(rule_string(&a, "a\"\\\n\x01"), "\"a\\\"\\\\\\n\\x01\"");
  check_text(rule_dtype_term(&a, RULE_BF16), "bfloat16");
  check_text(pair("unknown::op", rule_var(&a, 3), rule_int(&a, 1)), "(unknown::op x3 1)");
}
END_TEST

START_TEST(names_of_statuses) {
  ck_assert_str_eq(rule_status_name(RULE_PROVED), "proved");
  ck_assert_str_eq(rule_scope_name(RULE_SCOPE_NONE), "");
  ck_assert_str_eq(rule_scope_name(RULE_ALL_SHAPES), "all shapes");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rules/term");
  TCase *t = tcase_create("term");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, equality);
  tcase_add_test(t, copies_own_their_parts);
  tcase_add_test(t, equal_parts_are_shared);
  tcase_add_test(t, a_missing_child_travels_up);
  tcase_add_test(t, a_slice_is_a_call_of_places);
  tcase_add_test(t, sizes);
  tcase_add_test(t, calls_are_completed);
  tcase_add_test(t, values_take_their_arguments_form);
  tcase_add_loop_test(t, random_calls, 0, 2);
  tcase_add_test(t, text_of_literals);
  tcase_add_test(t, names_of_statuses);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
