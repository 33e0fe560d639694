/* Names of a rule bound to numbers: every form of condition, names that follow from others, and
 * terms that must not match. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "synth/search/substitution.h"
#include "tests/support/suite.h"

/* A rule with conditions, the same rule at literal sizes, and whether the first covers the second.
 */
static const struct {
  const char *general, *literal;
  bool covers;
} cases[] = {
#define SPLIT(dims, chunks, size, where) \
  "(rule r (var x f (7 " dims ")) (lhs (getitem (aten::split.Tensor x " size \
  " 1) 0)) (rhs (getitem (aten::chunk x " chunks " 1) 0)) (where " where "))"
#define SPLIT_AT(n, c, s) \
  "(rule r (var x f (7 " #n ")) (lhs (getitem (aten::split.Tensor x " #s \
  " 1) 0)) (rhs (getitem (aten::chunk x " #c " 1) 0)))"
    {SPLIT("N", "3", "S", "(= (* 3 S) N)"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "3", "S", "(= (* 3 S) N)"), SPLIT_AT(12, 3, 5), false},
    {SPLIT("N", "3", "S", "(= (* 3 S) N)"), SPLIT_AT(12, 4, 4), false},
    {SPLIT("(* C S)", "C", "S", ""), SPLIT_AT(12, 3, 4), true},
    {SPLIT("(* C S)", "C", "S", ""), SPLIT_AT(12, 3, 3), false},
    {SPLIT("(* 3 K)", "3", "(* 1 K)", ""), SPLIT_AT(12, 3, 4),
     true}, /* K stands in expressions only */
    {SPLIT("(* 3 K)", "3", "(* 1 K)", ""), SPLIT_AT(13, 3, 4), false},
    {SPLIT("(- (* 2 K) 4)", "3", "4", ""), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(divides C N)"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(divides C N)"), SPLIT_AT(13, 3, 4), false},
    {SPLIT("N", "C", "S", "(in S 1 5)"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(in S 1 4)"), SPLIT_AT(12, 3, 4), false},
    {SPLIT("N", "C", "S", "(!= S C)"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(!= S C)"), SPLIT_AT(12, 4, 4), false},
    {SPLIT("N", "C", "S", "(< C S)"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(< C S)"), SPLIT_AT(12, 4, 4), false},
    {SPLIT("N", "C", "S", "(<= C S)"), SPLIT_AT(12, 4, 4), true},
    {SPLIT("N", "C", "S", "(> C S)"), SPLIT_AT(12, 4, 4), false},
    {SPLIT("N", "C", "S", "(>= C S)"), SPLIT_AT(12, 4, 4), true},
    {SPLIT("N", "C", "S", "(= (/ N S) C)"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(= (/ N S) C)"), SPLIT_AT(13, 3, 4), false}, /* quotients are exact */
    {SPLIT("N", "C", "S", "(= (mod N S) 1)"), SPLIT_AT(13, 3, 4), true},
    {SPLIT("N", "C", "S", "(= (mod N S) 1)"), SPLIT_AT(12, 3, 4), false},
    {SPLIT("N", "C", "S", "(and (divides C N) (> S 3))"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(and (divides C N) (> S 4))"), SPLIT_AT(12, 3, 4), false},
    {SPLIT("N", "C", "S", "(or (divides C N) (> S 4))"), SPLIT_AT(12, 3, 4), true},
    {SPLIT("N", "C", "S", "(not (or (divides C N) (> S 4)))"), SPLIT_AT(12, 3, 4), false},
    {SPLIT("N", "C", "S", "(= (mod N (- C 3)) 1)"), SPLIT_AT(12, 3, 4),
     false}, /* nothing is divided by zero */
    {SPLIT("N", "C", "S",
           "(= (* 4611686018427387904 (* 4611686018427387904 N)) (* 4611686018427387904 (* "
           "4611686018427387904 N)))"),
     SPLIT_AT(12, 3, 4), false}, /* nor known beyond 128 bits */
    {SPLIT("N", "C", "S", "(= k (* 2 S)) (= (* 3 k) (* 2 N))"), SPLIT_AT(12, 3, 4),
     true}, /* k stands in conditions only */
    {SPLIT("N", "C", "S", "(> k 1)"), SPLIT_AT(12, 3, 4),
     false}, /* and here nothing says what it is */
#define SCALE(s, where) \
  "(rule r (var q f (1 2 3 D)) (attr s float) (lhs (aten::scaled_dot_product_attention q q q " \
  ":scale " s "))" \
  " (rhs (aten::scaled_dot_product_attention q q q)) (where " where "))"
#define SCALE_AT(s) \
  "(rule r (var q f (1 2 3 12)) (lhs (aten::scaled_dot_product_attention q q q :scale " s "))" \
  " (rhs (aten::scaled_dot_product_attention q q q)))"
    {SCALE("s", "(= (* (* s s) D) 1)"), SCALE_AT("0.28867513459481287"), true},
    {SCALE("s", "(= (* (* s s) D) 1)"), SCALE_AT("0.2886751409"),
     false}, /* the nearest float32 is another number */
    {SCALE("s", "(= (* (* s s) D) 1)"), SCALE_AT("0.2886751345948"), false},
    {SCALE("s", "(> s 0)"), SCALE_AT("-0.5"), false},
    {SCALE("s", "(> s 0)"), SCALE_AT("none"), false}, /* an attribute is a number */
    {SCALE("s", "(> s 0)"), SCALE_AT("inf"), false},
    {"(rule r (var x f _) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))",
     "(rule r (var x f (2 3 4)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))", true},
    {"(rule r (var x f (... K)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))) (where (= K "
     "4)))",
     "(rule r (var x f (2 3 4)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))", true},
    {"(rule r (var x f (... A B C D)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))",
     "(rule r (var x f (2 3 4)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))", false},
    {"(rule r (var x f (A A)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))",
     "(rule r (var x f (3 4)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))", false},
    {"(rule r (var x f (A _)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))",
     "(rule r (var x i (3 4)) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))", false},
    {"(rule r (var x f (A B C)) (attr p ints) (lhs (aten::permute x p)) (rhs (aten::alias "
     "(aten::permute x p))))",
     "(rule r (var x f (2 3 4)) (lhs (aten::permute x (list 0 2 1))) (rhs (aten::alias "
     "(aten::permute x (list 0 2 1)))))",
     true},
    {"(rule r (var x f (A B C)) (attr p ints) (lhs (aten::permute x p)) (rhs (aten::alias "
     "(aten::permute x p))))",
     "(rule r (var x f (2 3 4)) (lhs (aten::permute x (list 0 2 1))) (rhs (aten::alias "
     "(aten::permute x (list 0 1 2)))))",
     false},
};

static rule_set *parse(const char *text) {
  rule_set *set = NULL;
  iso_error err = {0};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  return set;
}

START_TEST(conditions_are_evaluated_exactly) {
  rule_set *general = parse(cases[_i].general), *literal = parse(cases[_i].literal);
  iso_arena a = {0};
  bool exact = true;
  const bool covers = names_cover(rule_set_at(general, 0), rule_set_at(literal, 0), &a, &exact);
  ck_assert_msg(covers == cases[_i].covers, "%s %s", cases[_i].general,
                covers ? "covers too much" : "should cover it");
  iso_arena_fini(&a);
  rule_set_free(general);
  rule_set_free(literal);
}
END_TEST

/* A float that stands for a root is read as that number; a fraction is itself. */
START_TEST(readings_are_told) {
  static const struct {
    const char *where, *size, *scale;
    bool exact;
  } at[] = {{"(= (* (* s s) D) 1)", "12", "0.28867513459481287", false},
            {"(= (* (* s s) D) 1)", "16", "0.25", true},
            {"(= (* (* s s) D) 1)", "3", "0.57735026918962573",
             false}, /* 3 s s is 1 in doubles: by chance */
            {"(= (* (* s s) D) 1)", "2", "0.70710678118654757", false},
            {"(> s 0)", "12", "0.28867513459481287", true}};
#define ATTENTION(attr, where) \
  "(rule r (var q f (1 2 3 %s))" attr \
  " (lhs (aten::scaled_dot_product_attention q q q :scale %s)) (rhs " \
  "(aten::scaled_dot_product_attention q q q))" where ")"
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    char open[400], fixed[400];
    snprintf(open, sizeof open, ATTENTION(" (attr s float)", " (where (> s 0) %s)"), "D", "s",
             at[i].where);
    snprintf(fixed, sizeof fixed, ATTENTION("", ""), at[i].size, at[i].scale);
    rule_set *general = parse(open), *literal = parse(fixed);
    iso_arena a = {0};
    bool exact = !at[i].exact;
    ck_assert_msg(names_cover(rule_set_at(general, 0), rule_set_at(literal, 0), &a, &exact),
                  "%s at %s", open, fixed);
    ck_assert_msg(exact == at[i].exact, "%s at %s", open, fixed);
    iso_arena_fini(&a);
    rule_set_free(general);
    rule_set_free(literal);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("names");
  TCase *t = tcase_create("names");
  tcase_add_loop_test(t, conditions_are_evaluated_exactly, 0, (int)(sizeof cases / sizeof *cases));
  tcase_add_test(t, readings_are_told);
  suite_add_tcase(s, t);
  return run_suite(s);
}
