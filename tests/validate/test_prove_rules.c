/* Rules with open sizes, from files: the true ones are proved, near misses ("no-...") never. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/validate.h"
#include "tests/support/suite.h"

static rule_set *load(const char *path) {
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  ck_assert_msg(rule_set_load(path, &set, &err) == ISO_OK, "%s", err.msg);
  return set;
}

static rule_verdict prove(const rule *r) {
  rule_schemas *schemas = NULL;
  rule_verdict v = {.status = RULE_REFUTED};
  iso_error err = {ISO_OK, ""};
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  ck_assert_msg(val_prove(r, schemas, &(val_options){.z3_rlimit = 5000000, .whole = true}, &v,
                          &err) == ISO_OK,
                "%s: %s", r->name, err.msg);
  rule_schemas_free(schemas);
  if (getenv("PROVE_VERBOSE"))
    fprintf(stderr, "%s: %s [%s] %s\n", r->name, rule_status_name(v.status),
            rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}), v.reason);
  return v;
}

/* Names that stand in the file to be proved one day. */
static const char *const files[] = {"layout",
                                    "elementwise",
                                    "reduce",
                                    "contract",
                                    "rewrites",
                                    "anyshape",
                                    "order",
                                    "chosen",
                                    "kernels",
                                    "masks",
                                    "beyond",
                                    "sums",
                                    "pieces",
                                    "../../rules/published",
                                    "../../rules/laws",
                                    "../../rules/passes",
                                    "../../rules/identities",
                                    "../../rules/compilers",
                                    "../../rules/collection",
                                    "../../rules/traps",
                                    "../../rules/operators"};

START_TEST(true_rules_are_proved_and_near_misses_are_not) {
  char path[200];
  const char *only = getenv("PROVE_ONLY"); /* names of files, for mutants_text.py */
  if (only && !strstr(only, files[_i])) return;
  snprintf(path, sizeof path, "tests/validate/rules/%s.rules", files[_i]);
  rule_set *set = load(path);
  size_t n_true = 0, n_proved = 0;
  for (size_t i = 0; i < rule_set_count(set); i++) {
    const rule *r = rule_set_at(set, i);
    const rule_verdict v = prove(r);
    const bool proved = v.status == RULE_PROVED;
    if (strncmp(r->name, "no-", 3) == 0) {
      ck_assert_msg(!proved, "%s: %s is proved (%s)", path, r->name,
                    rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}));
      ck_assert_msg(v.reason[0] != 0, "%s: %s: no reason", path, r->name);
      continue;
    }
    n_true++;
    n_proved += proved;
    if (!proved) fprintf(stderr, "%s: %s: %s\n", path, r->name, v.reason);
  }
  ck_assert_msg(only ? n_proved == n_true : 10 * n_proved >= 9 * n_true,
                "%s: %zu of %zu true rules proved", path, n_proved, n_true);
  rule_set_free(set);
}
END_TEST

/* The paper's, and those of the core library, of which some, of several ranks, say that they are
 * for these shapes alone. */
START_TEST(shipped_rules_hold_for_all_sizes) {
  if (getenv("PROVE_ONLY")) return;
  rule_set *set = load(_i ? "rules/core.rules" : "rules/paper.rules");
  size_t n_general = 0;
  for (size_t i = 0; i < rule_set_count(set); i++) {
    const rule *r = rule_set_at(set, i);
    const rule_verdict v = prove(r);
    const bool bound = r->scope == RULE_THESE_SHAPES;
    n_general += !bound;
    ck_assert_msg(v.status == RULE_PROVED && (_i == 0 || r->claimed == RULE_PROVED), "%s: %s",
                  r->name, v.reason);
    ck_assert_msg(r->reads_literals || !(v.rests_on & RULE_RESTS_ON_LITERALS),
                  "%s does not say that its literals are read", r->name);
    if (!bound) ck_assert_int_ge((int)v.scope, (int)RULE_THESE_RANKS);
  }
  ck_assert_uint_ge(n_general, _i ? 100 : 11);
  rule_set_free(set);
}
END_TEST

/* A rule at literal sizes, and the numbers that generalising must keep. */
static const struct {
  const char *rule, *gone[4], *there[4];
} specific[] = {
    {"(rule r (var x f (1 5 12)) (var w f (36 12)) (var b f (36))"
     " (lhs (aten::view (aten::slice.Tensor (aten::linear x w b) 2 12 24) (list 1 5 3 4)))"
     " (rhs (aten::view (getitem (aten::split.Tensor (aten::linear x w b) 12 2) 1) (list 1 5 3 "
     "4))))",
     {"36", "12", "24", "5 "},
     {"(* size0 size1)"}},
    {"(rule r (var q f (1 2 3 12)) (var k f (1 2 3 12)) (var v f (1 2 3 12))"
     " (lhs (aten::scaled_dot_product_attention q k v :scale 0.28867513459481287))"
     " (rhs (aten::scaled_dot_product_attention q k v)))",
     {"12", "0.28"},
     {"(= (* (* value0 value0) size2) 1)"}},
    {"(rule r (var x f (7 48)) (var w f (48 48)) (lhs (aten::linear (aten::unsqueeze x 0) w)) (rhs "
     "(aten::unsqueeze (aten::linear x w) 0)))",
     {"48"},
     {"(size0 size1)", "(size2 size1)"}},
    {"(rule r (var x f (7 4 12)) (lhs (aten::slice.Tensor x 2 6 12)) (rhs (getitem (aten::chunk x "
     "2 2) 1)))",
     {"12", "6", "7"},
     {"(* 2 size"}},
    {"(rule r (var q f (1 4 7 12)) (var k f (1 2 7 12)) (lhs (aten::scaled_dot_product_attention q "
     "k k none 0.0 true :enable_gqa true))"
     " (rhs (aten::alias (aten::scaled_dot_product_attention q k k none 0.0 true :enable_gqa "
     "true))))",
     {"(* size0 size0)", " 12"},
     {"(1 size1 "}},
    /* two groups of two are four heads; a mask is no number that could be another */
    {"(rule r (var x f (1 4 7 12)) (var y f (1 2 7 12)) (lhs (aten::matmul (aten::softmax.int "
     "(aten::add.Tensor (aten::mul.Tensor (aten::matmul x"
     " (aten::transpose.int (aten::reshape (aten::expand (aten::unsqueeze y 2) (list 1 2 2 7 12)) "
     "(list 1 4 7 12)) 2 3)) 0.28867513459481287)"
     " (aten::triu (aten::full (list 1 1 7 7) -3.4028234663852886e+38 :dtype float32) 1)) 3 "
     "float32)"
     " (aten::reshape (aten::expand (aten::unsqueeze y 2) (list 1 2 2 7 12)) (list 1 4 7 12))))"
     " (rhs (aten::scaled_dot_product_attention x y y none 0.0 true :scale 0.28867513459481287 "
     ":enable_gqa true)))",
     {"size0 size0", " 12", "0.28", " 7 "},
     {"-3.4028234663852886e+38", ":scale value0"}},
    /* the root of a size, and the fourth root of one in each factor */
    {"(rule r (var x f (4 7 12)) (var y f (4 7 12)) (lhs (aten::div.Tensor (aten::bmm x "
     "(aten::transpose.int y 1 2)) (aten::full (list) 3.4641016151377544 :dtype float64)))"
     " (rhs (aten::bmm (aten::mul.Scalar x 0.537284965911771) (aten::transpose.int "
     "(aten::mul.Scalar y 0.537284965911771) 1 2))))",
     {" 12", "3.46", "0.537"},
     {"(= (* value", "size"}},
    /* a probability that does not matter need not be positive */
    {"(rule r (var x f (3 4)) (lhs x) (rhs (aten::dropout x 0.1 false)))",
     {"(> value0 0)", "0.1"},
     {"x f _"}},
    {"(rule r (var x f (3 4)) (lhs (aten::mul.Tensor x 3)) (rhs (aten::add.Tensor x "
     "(aten::mul.Tensor x 2))))",
     {"(3 4)"},
     {"x 3", "x 2"}},
    /* the last place of what is chosen from */
    {"(rule r (var x f (9 4)) (lhs (getitem (aten::topk x 2 1) 1))"
     " (rhs (aten::clamp (getitem (aten::topk x 2 1) 1) 0 3)))",
     {"0 3", "(* ", "x f (9 4)"},
     {"0 (- "}},
    /* places are as narrow integers what they are, where there are not too many */
    {"(rule r (var x f (9 4)) (lhs (getitem (aten::topk x 2 1) 1)) (rhs (aten::to.dtype"
     " (aten::to.dtype (getitem (aten::topk x 2 1) 1) int8) int64)))",
     {" 4)", "(< size0", "(< size2"},
     {"(where (< size1 128))"}},
    /* equal parts, however many there are and however small */
    {"(rule r (var x f (12 5)) (lhs x) (rhs (aten::cat (list (aten::slice.Tensor x 0 0 2)"
     " (aten::slice.Tensor x 0 2 4) (aten::slice.Tensor x 0 4 6) (aten::slice.Tensor x 0 6 8)"
     " (aten::slice.Tensor x 0 8 10) (aten::slice.Tensor x 0 10 12)))))",
     {"12", "10"},
     {"(* 5 size0)"}},
    /* shards of a vocabulary: the places are compared with numbers, the width is any */
    {"(rule r (var w f (9 7)) (var i i (4)) (lhs (aten::embedding w i)) (rhs (aten::add.Tensor"
     " (aten::masked_fill.Scalar (aten::embedding (aten::slice.Tensor w 0 0 5)"
     " (aten::masked_fill.Scalar i (aten::ge.Scalar i 5) 0)) (aten::unsqueeze"
     " (aten::ge.Scalar i 5) 1) 0.0) (aten::masked_fill.Scalar (aten::embedding"
     " (aten::slice.Tensor w 0 5 9) (aten::masked_fill.Scalar (aten::sub.Tensor i 5)"
     " (aten::lt.Scalar i 5) 0)) (aten::unsqueeze (aten::lt.Scalar i 5) 1) 0.0))))",
     {" 7)", "(4)"},
     {"ge.Scalar i 5"}},
    {"(rule r (var x f (5 7)) (lhs (aten::slice.Tensor x 1 1 3)) (rhs (aten::narrow x 1 1 2)))",
     {"5", "7"},
     {"narrow x 1 1 2"}},
    /* Four heads are no square of two halves, nor is their size one of the heads. */
    {"(rule r (var x f (9 4 16)) (lhs (getitem (aten::chunk (aten::transpose.int x 0 1) 2 2) 1))"
     " (rhs (aten::transpose.int (getitem (aten::chunk x 2 2) 1) 0 1)))",
     {"(* ", "9", "4", "16"},
     {"chunk x 2 2"}},
    {"(rule r (var x f (9 4 16)) (var y f (9 4 16)) (lhs x)"
     " (rhs (aten::cat (list x (aten::slice.Tensor y 2 16 16)) 2)))",
     {"(* ", "9", "4", "16"},
     {"slice.Tensor y 2 size"}},
};

START_TEST(proved_rules_become_general) {
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  iso_error err = {ISO_OK, ""};
  iso_arena a = {0};
  rule out;
  rule_verdict v;
  ck_assert_msg(rule_set_parse(specific[_i].rule, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s",
                err.msg);
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  ck_assert_int_eq(val_generalise(rule_set_at(set, 0), schemas,
                                  &(val_options){.z3_rlimit = 5000000}, &(val_generality){.a = &a},
                                  &out, &v, &err),
                   ISO_OK);
  ck_assert_msg(v.status == RULE_PROVED && v.scope >= RULE_THESE_RANKS, "%s", v.reason);
  char *text = rule_print(&out);
  for (int k = 0; k < 4; k++) {
    ck_assert_msg(!specific[_i].gone[k] || !strstr(text, specific[_i].gone[k]), "%s is left: %s",
                  specific[_i].gone[k], text);
    ck_assert_msg(!specific[_i].there[k] || strstr(text, specific[_i].there[k]), "no %s: %s",
                  specific[_i].there[k], text);
  }
  rule_set *again = NULL;
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "printed", &again, &err) == ISO_OK, "%s: %s",
                err.msg, text);
  rule_set_free(again);
  free(text);
  iso_arena_fini(&a);
  rule_schemas_free(schemas);
  rule_set_free(set);
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_rules");
  TCase *t = tcase_create("prove_rules");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, true_rules_are_proved_and_near_misses_are_not, 0,
                      (int)(sizeof files / sizeof *files));
  tcase_add_loop_test(t, shipped_rules_hold_for_all_sizes, 0, 2);
  tcase_add_loop_test(t, proved_rules_become_general, 0, (int)(sizeof specific / sizeof *specific));
  suite_add_tcase(s, t);
  return run_suite(s);
}
