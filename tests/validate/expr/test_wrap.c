/* Integers that wrap: a whole number that stays within its block of a type's numbers is itself, and
 * where it may leave it, nothing says so. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "validate/validate.h"
#include "tests/support/suite.h"

enum { TEXT = 512, MOST = 9 };

static const struct {
  const char *name;
  int64_t least, most;
} types[] = {{"i", INT64_MIN, INT64_MAX},
             {"i32", INT32_MIN, INT32_MAX},
             {"i16", INT16_MIN, INT16_MAX},
             {"i8", INT8_MIN, INT8_MAX}};

/* Whether the sides are proved to be one, of integers that wrap. */
static bool proved(const char *type, const char *lhs, const char *rhs) {
  char text[3 * TEXT];
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  rule_verdict verdict = {.status = RULE_REFUTED};
  iso_error err = {ISO_OK, ""};
  snprintf(text, sizeof text, "(rule r (var k %s (N)) (var j %s (N)) (lhs %s) (rhs %s))", type,
           type, lhs, rhs);
  ck_assert_msg(!rule_set_parse(text, SIZE_MAX, "test", &set, &err), "%s: %s", err.msg, text);
  ck_assert(!rule_schemas_new(&schemas, &err));
  ck_assert_msg(!val_prove(rule_set_at(set, 0), schemas, &(val_options){.z3_rlimit = 5000000},
                           &verdict, &err),
                "%s", err.msg);
  rule_schemas_free(schemas);
  rule_set_free(set);
  return verdict.status == RULE_PROVED && !(verdict.rests_on & RULE_RESTS_ON_WHOLE);
}

/* k // d of the block that k is in, moved by r: k // d where r stays within the block, and where
 * the blocks are whole ones, which a power of two cuts. */
START_TEST(a_number_within_its_block_does_not_wrap) {
  char own[TEXT], moved[TEXT];
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int d = 2; d <= MOST; d++)
      for (int r = -1; r <= d; r++) {
        snprintf(own, sizeof own, "(aten::floor_divide k %d)", d);
        snprintf(
            moved, sizeof moved,
            "(aten::floor_divide (aten::add.Scalar (aten::sub.Tensor k (aten::remainder.Scalar "
            "k %d)) %d) %d)",
            d, r, d);
        const int64_t first = (types[t].least % d + d) % d, last = types[t].most % d;
        const bool within = r >= 0 && r < d, so = within && r >= first && r <= last,
                   known = proved(types[t].name, own, moved);
        ck_assert_msg(so || !known, "%s: %d of %d", types[t].name, r, d);
        ck_assert_msg(known || !within || (d & (d - 1)), "%s: %d of %d", types[t].name, r, d);
      }
}
END_TEST

/* What lies in a wider type's block says nothing of a narrower one. */
START_TEST(a_block_is_of_its_type) {
  static const char cast[] = "(aten::to.dtype %s int8)";
  char own[TEXT], block[TEXT];
  snprintf(own, sizeof own, cast, "(aten::floor_divide k 4)");
  snprintf(block, sizeof block,
           "(aten::floor_divide (aten::to.dtype (aten::sub.Tensor k (aten::remainder.Scalar k 4)) "
           "int8) 4)");
  ck_assert(proved("i8", own, block));
  ck_assert(!proved("i32", own, block));
}
END_TEST

#define AND(a, b) "(aten::bitwise_and.Tensor " a " " b ")"
#define OR(a, b) "(aten::bitwise_or.Tensor " a " " b ")"
#define XOR(a, b) "(aten::bitwise_xor.Tensor " a " " b ")"
#define NOT(a) "(aten::bitwise_not " a ")"
#define TO(type, a) "(aten::to.dtype " a " " #type ")"
#define HALF(a) "(aten::floor_divide " a " 2)"

/* No bit is carried, so that what is made of integers bit by bit is of their type. What reads it
 * is told so: a cast, or a quotient. */
START_TEST(bits_of_integers_do_not_wrap) {
  static const char *const all[] = {"i", "i32", "i16", "i8", "u8"};
  for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
    const bool is_signed = strcmp(all[t], "u8") != 0;
    ck_assert(proved(all[t], TO(int64, XOR("k", "j")), XOR(TO(int64, "k"), TO(int64, "j"))));
    ck_assert(proved(all[t], TO(int64, NOT("k")), NOT(TO(int64, "k"))) == is_signed);
    if (!is_signed) continue;
    ck_assert(
        proved(all[t], HALF(XOR("k", "j")), HALF(OR(AND("k", NOT("j")), AND(NOT("k"), "j")))));
    ck_assert(proved(all[t], HALF(NOT(AND("k", "j"))), HALF(OR(NOT("k"), NOT("j")))));
  }
}
END_TEST

START_TEST(bits_of_a_wider_type_and_sums_may_wrap) {
  ck_assert(proved("i8", TO(int8, XOR("k", "j")), XOR("k", "j")));
  ck_assert(!proved("i32", TO(int64, TO(int8, XOR("k", "j"))), TO(int64, XOR("k", "j"))));
  ck_assert(!proved("u8", TO(int64, TO(int8, XOR("k", "j"))), TO(int64, XOR("k", "j"))));
  ck_assert(!proved("i8", TO(int64, TO(uint8, XOR("k", "j"))), TO(int64, XOR("k", "j"))));
  ck_assert(!proved("i8", TO(int64, "(aten::add.Tensor k j)"),
                    "(aten::add.Tensor " TO(int64, "k") " " TO(int64, "j") ")"));
}
END_TEST

int main(void) {
  Suite *s = suite_create("wrap");
  TCase *t = tcase_create("wrap");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, a_number_within_its_block_does_not_wrap);
  tcase_add_test(t, a_block_is_of_its_type);
  tcase_add_test(t, bits_of_integers_do_not_wrap);
  tcase_add_test(t, bits_of_a_wider_type_and_sums_may_wrap);
  suite_add_tcase(s, t);
  return run_suite(s);
}
