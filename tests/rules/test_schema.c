/* Schemas: the built-in tables parse, their notation is read right, and malformed ones are refused.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rules.h"
#include "tests/support/suite.h"

static const char *const built_in[] = {
#define S(text) text,
#include "rules/schemas.def"
#include "rules/kernels.def"
#undef S
};
enum { N_BUILT_IN = sizeof built_in / sizeof built_in[0] };
static const char *const torch_only[] = {
#define S(text) text,
#include "rules/schemas.def"
#undef S
};

static rule_schemas *s;
static void setup(void) { ck_assert_int_eq(rule_schemas_new(&s, NULL), ISO_OK); }
static void teardown(void) { rule_schemas_free(s); }

START_TEST(every_built_in_is_found) {
  for (size_t i = 0; i < N_BUILT_IN; i++) {
    char name[128];
    const size_t n = strcspn(built_in[i], "(");
    ck_assert_uint_lt(n, sizeof name);
    memcpy(name, built_in[i], n);
    name[n] = '\0';
    iso_error err = {0};
    /* Added first, for the message; found twice, to see the table too. */
    ck_assert_msg(rule_schemas_add(s, built_in[i], &err) == ISO_OK, "%s", err.msg);
    rule_schemas *fresh;
    ck_assert_int_eq(rule_schemas_new(&fresh, NULL), ISO_OK);
    const rule_schema *found = rule_schemas_find(fresh, name);
    ck_assert_msg(found != NULL, "%s", name);
    ck_assert_str_eq(found->name, name);
    ck_assert_ptr_eq(found, rule_schemas_find(fresh, name));
    ck_assert_uint_eq(found->n_args, rule_schemas_find(s, name)->n_args);
    rule_schemas_free(fresh);
  }
}
END_TEST

START_TEST(torch_table_is_sorted) {
  for (size_t i = 1; i < sizeof torch_only / sizeof torch_only[0]; i++) {
    char a[128], b[128];
    snprintf(a, sizeof a, "%.*s", (int)strcspn(torch_only[i - 1], "("), torch_only[i - 1]);
    snprintf(b, sizeof b, "%.*s", (int)strcspn(torch_only[i], "("), torch_only[i]);
    ck_assert_str_lt(a, b);
  }
}
END_TEST

START_TEST(unknown_names) {
  const char *none[] = {
      "", "aten", "aten::", "aten::add.Tenso", "aten::add.Tensor2", "aten::add.Tensor(", "zzz::z"};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    ck_assert_ptr_null(rule_schemas_find(s, none[i]));
}
END_TEST

START_TEST(arguments_as_written) {
  const rule_schema *f = rule_schemas_find(s, "aten::scaled_dot_product_attention");
  ck_assert_str_eq(f->arg[3].name, "attn_mask");
  ck_assert(f->arg[3].optional && f->arg[3].deflt->kind == RULE_NONE);
  ck_assert(f->arg[4].type == RULE_ARG_FLOAT && f->arg[4].deflt->kind == RULE_FLOAT);
  ck_assert(!f->arg[5].kwarg_only && f->arg[6].kwarg_only && f->arg[6].optional);
  f = rule_schemas_find(s, "aten::_to_copy");
  ck_assert_int_eq(f->arg[1].type, RULE_ARG_DTYPE);
  for (size_t i = 2; i < f->n_args; i++) ck_assert_int_eq(f->arg[i].type, RULE_ARG_CONTEXT);
  f = rule_schemas_find(s, "aten::to.device");
  ck_assert(f->arg[1].type == RULE_ARG_CONTEXT && f->arg[1].deflt->kind == RULE_NONE);
  ck_assert(f->arg[3].type == RULE_ARG_CONTEXT && f->arg[4].type == RULE_ARG_BOOL);
  f = rule_schemas_find(s, "aten::index.Tensor");
  ck_assert(f->arg[1].type == RULE_ARG_TENSORS && !f->arg[1].optional);
  f = rule_schemas_find(s, "aten::conv2d");
  ck_assert(f->arg[3].list_size == 2 && f->arg[3].deflt->kind == RULE_LIST &&
            f->arg[3].deflt->n == 2);
  f = rule_schemas_find(s, "aten::mean.dim");
  ck_assert(f->arg[1].type == RULE_ARG_INTS && f->arg[1].optional && f->arg[1].list_size == 1);
}
END_TEST

START_TEST(outputs) {
  const struct {
    const char *name;
    size_t returns, outputs;
    bool writes, random;
  } want[] = {{"aten::relu", 1, 1, false, false},
              {"aten::chunk", SIZE_MAX, SIZE_MAX, false, false},
              {"aten::topk", 2, 2, false, false},
              {"aten::native_layer_norm", 3, 3, false, false},
              {"aten::rand_like", 1, 1, false, true},
              {"aten::dropout", 1, 1, false, true},
              {"_C::fused_add_rms_norm", 0, 2, true, false},
              {"_C::fused_add_rms_norm.isomer", 2, 2, false, false},
              {"vllm::unified_attention_with_output", 0, 1, true, false},
              {"_moe_C::topk_softmax", 0, 3, true, false},
              {"dist::all_reduce", 1, 1, false, false}};
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    const rule_schema *f = rule_schemas_find(s, want[i].name);
    ck_assert_msg(f != NULL, "%s", want[i].name);
    ck_assert_uint_eq(f->n_returns, want[i].returns);
    ck_assert_uint_eq(rule_schema_outputs(f), want[i].outputs);
    ck_assert_int_eq(f->writes, want[i].writes);
    ck_assert_int_eq(f->random, want[i].random);
  }
}
END_TEST

/* Among PyTorch's operators those arguments name dimensions whose type can and whose name says so.
 */
START_TEST(dimensions_are_known_by_name) {
  static const struct {
    const char *op;
    unsigned dims; /* bits: arguments */
  } want[] = {{"aten::softmax.int", 2},
              {"aten::transpose.int", 6},
              {"aten::sum.dim_IntList", 2},
              {"aten::movedim.int", 6},
              {"aten::permute", 2},
              {"aten::flatten.using_ints", 6},
              {"aten::swapaxes", 6},
              {"aten::add.Tensor", 0},
              {"aten::index_add", 2},
              {"aten::slice.Tensor", 2},
              {"aten::masked_scatter", 0},
              {"aten::unfold", 2},
              {"aten::diagonal", 12},
              {"aten::cat", 2},
              {"aten::view", 0},
              {"aten::select.int", 2}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    const rule_schema *f = rule_schemas_find(s, want[i].op);
    for (size_t k = 0; k < f->n_args; k++)
      ck_assert_msg(rule_arg_is_dim(&f->arg[k]) == (want[i].dims >> k & 1), "%s: argument %s",
                    want[i].op, f->arg[k].name);
  }
}
END_TEST

START_TEST(added_schemas) {
  iso_error err;
  ck_assert_int_eq(
      rule_schemas_add(s,
                       "my::op.v(Tensor(a!)? x, *, int[3]? k=None, str m='it', ScalarType? d=long, "
                       "Scalar[] c=[1, 2.5], float e=-1) -> (Tensor, Tensor(b))",
                       &err),
      ISO_OK);
  const rule_schema *f = rule_schemas_find(s, "my::op.v");
  ck_assert(f->n_args == 6 && f->n_returns == 2 && f->writes && f->arg[0].optional &&
            f->arg[0].written);
  ck_assert_str_eq(f->arg[2].deflt->u.s, "it");
  ck_assert(f->arg[3].deflt->kind == RULE_DTYPE && f->arg[3].deflt->u.i == RULE_I64);
  ck_assert(f->arg[4].deflt->n == 2 && f->arg[4].deflt->child[1]->u.f == 2.5);
  ck_assert(f->arg[5].deflt->kind == RULE_FLOAT && f->arg[5].deflt->u.f == -1);
  /* The later of two counts, also over a built-in one; the pointer to the earlier stays good. */
  const rule_schema *relu = rule_schemas_find(s, "aten::relu");
  ck_assert_int_eq(rule_schemas_add(s, "aten::relu(Tensor x, int k) -> Tensor", NULL), ISO_OK);
  ck_assert_uint_eq(rule_schemas_find(s, "aten::relu")->n_args, 2);
  ck_assert_uint_eq(relu->n_args, 1);
  for (int i = 0; i < 500; i++) {
    char text[64], name[32];
    snprintf(text, sizeof text, "my::op%d(Tensor x) -> Tensor", i);
    ck_assert_int_eq(rule_schemas_add(s, text, NULL), ISO_OK);
    snprintf(name, sizeof name, "my::op%d", i / 2);
    ck_assert_str_eq(rule_schemas_find(s, name)->name, name);
  }
}
END_TEST

START_TEST(malformed) {
  const char *bad[] = {"",
                       "f",
                       "f(",
                       "(Tensor x) -> Tensor",
                       "f(Tensor) -> Tensor",
                       "f(Tensor x",
                       "f(Tensor x)",
                       "f(Tensor x) ->",
                       "f(Tensor x) -> int",
                       "f(Tensor x) -> Tensor y z",
                       "f(Tensr x) -> Tensor",
                       "f(Tensor x Tensor y) -> Tensor",
                       "f(Tensor x, Tensor x) -> Tensor",
                       "f(*, *, int x) -> Tensor",
                       "f(int[ x) -> Tensor",
                       "f(Tensor(a x) -> Tensor",
                       "f(int x=) -> Tensor",
                       "f(int x=foo) -> Tensor",
                       "f(int x=[1) -> Tensor",
                       "f(int x=\"a) -> Tensor",
                       "f(int x=\"a\") -> Tensor",
                       "f(int x=99999999999999999999) -> Tensor",
                       "f(str[] x) -> Tensor",
                       "f(int[99999] x) -> Tensor",
                       "f(Tensor x) -> (Tensor",
                       "f(Tensor x) -> (Tensor[], Tensor)",
                       "f(int x=1.5) -> Tensor"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    iso_error err = {0};
    const iso_code code = rule_schemas_add(s, bad[i], &err);
    ck_assert_msg(code != ISO_OK, "%s", bad[i]);
    ck_assert_msg(err.msg[0] != '\0' && err.code == code, "%s", bad[i]);
  }
}
END_TEST

/* Every cut of a schema is refused or read, never more. */
START_TEST(truncations) {
  const char *whole = "a::b.c(Tensor(a!)? x, *, int[3]? k=None, str m=\"t\", float[] e=[1, -2.]) "
                      "-> (Tensor, Tensor(b))";
  for (size_t n = 0; n < strlen(whole); n++) {
    char *cut = malloc(n + 1);
    memcpy(cut, whole, n);
    cut[n] = '\0';
    ck_assert_int_ne(rule_schemas_add(s, cut, NULL), ISO_OK);
    free(cut);
  }
  ck_assert_int_eq(rule_schemas_add(s, whole, NULL), ISO_OK);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rules/schema");
  TCase *t = tcase_create("schema");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, every_built_in_is_found);
  tcase_add_test(t, torch_table_is_sorted);
  tcase_add_test(t, unknown_names);
  tcase_add_test(t, arguments_as_written);
  tcase_add_test(t, outputs);
  tcase_add_test(t, dimensions_are_known_by_name);
  tcase_add_test(t, added_schemas);
  tcase_add_test(t, malformed);
  tcase_add_test(t, truncations);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
