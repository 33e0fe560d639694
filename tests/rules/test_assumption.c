/* Kinds of assumptions: each has one name, which reads back and which docs/reports.md explains in
 * the same words, and the subject of a relative equality is a field, from which its words are
 * made. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "rules/assumption.h"
#include "tests/support/suite.h"

static bool documented(const char *row) {
  static char line[4096];
  FILE *f = fopen("docs/reports.md", "r");
  bool found = false;
  ck_assert_ptr_nonnull(f);
  while (!found && fgets(line, sizeof line, f)) found = strncmp(line, row, strlen(row)) == 0;
  fclose(f);
  return found;
}

START_TEST(a_kind_is_printed_read_back_and_documented) {
  const rule_assumption kind = (rule_assumption)_i;
  rule_assumption back = RULE_ASSUMPTIONS;
  char row[256];
  ck_assert_ptr_nonnull(rule_assumption_name(kind));
  ck_assert(rule_assumption_parse(rule_assumption_name(kind), &back));
  ck_assert_int_eq(back, kind);
  snprintf(row, sizeof row, "| `%s` | %s | %s |", rule_assumption_name(kind),
           rule_assumption_meaning(kind), rule_assumption_weakens(kind) ? "yes" : "no");
  ck_assert_msg(documented(row), "docs/reports.md has no row \"%s\"", row);
}
END_TEST

START_TEST(what_is_no_kind_is_refused) {
  rule_assumption back;
  ck_assert(!rule_assumption_parse("", &back));
  ck_assert(!rule_assumption_parse("leaf ", &back));
  ck_assert(!rule_assumption_parse("guess", &back));
}
END_TEST

START_TEST(a_kernel_is_named_as_captures_name_it) {
  static const char *const op[][2] = {{"vllm::unified_attention.isomer", "vllm::unified_attention"},
                                      {"vllm::unified_attention", "vllm::unified_attention"},
                                      {"mine::scan.isomers", "mine::scan.isomers"},
                                      {".isomer", ".isomer"}};
  iso_arena a;
  iso_arena_init(&a);
  for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
    rule_relative r;
    char text[96];
    ck_assert(rule_relative_of(&a, op[i][0], &r));
    ck_assert_int_eq(r.kind, RULE_ASSUMES_DEFINITION);
    ck_assert_str_eq(r.what, op[i][1]);
    snprintf(text, sizeof text, "%s means what its reference kernel computes", op[i][1]);
    ck_assert_str_eq(rule_relative_print(&a, r), text);
  }
  iso_arena_fini(&a);
}
END_TEST

int main(void) {
  Suite *s = suite_create("kinds of assumptions");
  TCase *t = tcase_create("assumption");
  tcase_add_loop_test(t, a_kind_is_printed_read_back_and_documented, 0, RULE_ASSUMPTIONS);
  tcase_add_test(t, what_is_no_kind_is_refused);
  tcase_add_test(t, a_kernel_is_named_as_captures_name_it);
  suite_add_tcase(s, t);
  return run_suite(s);
}
