/* Settings: the part of TOML that is read, and the errors for the rest. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config/config.h"
#include "tests/support/suite.h"

static const toml_entry *find(const toml *t, const char *table, const char *key) {
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->entry[i].table, table) == 0 && strcmp(t->entry[i].key, key) == 0)
      return &t->entry[i];
  ck_abort_msg("no %s in [%s]", key, table);
  return NULL;
}

static const char every[] = "# settings\r\n"
                            "a = \"x\\u00e9\\n\\\"#\" # a comment\n"
                            "b = 'raw \\n'\n"
                            "\"c d\" = +1_000\n"
                            "e-f_1 = -0.5e-3\n"
                            "  on = true\n"
                            "empty = []\n"
                            "list = [ # items\n  \"one\",\n\n  'two', # last\n]\n"
                            "[ t . u ]\n"
                            "a = 0\n";

START_TEST(reads) {
  toml t;
  iso_error err = {0};
  ck_assert_msg(toml_parse(every, strlen(every), "f", &t, &err) == ISO_OK, "%s", err.msg);
  ck_assert_str_eq(find(&t, "", "a")->text, "x\xc3\xa9\n\"#");
  ck_assert_str_eq(find(&t, "", "b")->text, "raw \\n");
  ck_assert_int_eq(find(&t, "", "c d")->integer, 1000);
  ck_assert_str_eq(find(&t, "", "c d")->text, "1000");
  ck_assert_double_eq(find(&t, "", "e-f_1")->real, -0.5e-3);
  ck_assert(find(&t, "", "on")->boolean);
  ck_assert_uint_eq(find(&t, "", "empty")->n_items, 0);
  const toml_entry *l = find(&t, "", "list");
  ck_assert_uint_eq(l->n_items, 2);
  ck_assert_str_eq(l->item[0], "one");
  ck_assert_str_eq(l->item[1], "two");
  ck_assert_int_eq(l->line, 8);
  ck_assert_int_eq(find(&t, "t.u", "a")->line, 14);
  ck_assert_uint_eq(t.n_tables, 1);
  toml_free(&t);
}
END_TEST

static const struct {
  const char *text;
  int line;
  const char *says;
} refused[] = {{"a = 1\n\na = 2", 3, "twice"},
               {"[t]\n[t]", 2, "twice"},
               {"a = \"x\nb = 1", 1, "does not end"},
               {"a = \"x", 1, "does not end"},
               {"a = \"\\q\"", 1, "escape"},
               {"a = \"\\u12\"", 1, "hexadecimal"},
               {"a = \"\\ud800\"", 1, "no character"},
               {"a = \"\\u0000\"", 1, "no character"},
               {"a = \"\"\"x\"\"\"", 1, "several lines"},
               {"a = 01", 1, "no value"},
               {"a = 1_", 1, "no value"},
               {"a = 1__0", 1, "no value"},
               {"a = 1.", 1, "no value"},
               {"a = .5", 1, "no value"},
               {"a = 0x10", 1, "no value"},
               {"a = inf", 1, "no value"},
               {"a = True", 1, "no value"},
               {"a = 9223372036854775808", 1, "too large"},
               {"a = 1e999", 1, "too large"},
               {"a =", 1, "missing"},
               {"\na", 2, "\"=\""},
               {"a.b = 1", 1, "dotted"},
               {"a = {b = 1}", 1, "inline"},
               {"[[a]]", 1, "arrays of tables"},
               {"[a", 1, "\"]\""},
               {"[]", 1, "expected"},
               {"a = [1]", 1, "lists hold strings"},
               {"a = [\n\"x\"\n\"y\"]", 3, "goes on"},
               {"a = [\"x\"", 1, "goes on"},
               {"a = 1 b = 2", 1, "behind"},
               {"a = \"x\ty\x01\"", 1, "control"},
               {"# \x01", 1, "control"},
               {"\n\xc3\x28", 2, "UTF-8"},
               {"\xed\xa0\x80", 1, "UTF-8"}};

START_TEST(refuses) {
  toml t;
  iso_error err = {0};
  char at[32];
  ck_assert_int_eq(toml_parse(refused[_i].text, strlen(refused[_i].text), "f", &t, &err),
                   ISO_FORMAT);
  snprintf(at, sizeof at, "f:%d: ", refused[_i].line);
  ck_assert_msg(strncmp(err.msg, at, strlen(at)) == 0 && strstr(err.msg, refused[_i].says),
                "%s: %s", refused[_i].text, err.msg);
  toml_free(&t);
}
END_TEST

/* Lines that are no settings: right TOML all the same. */
static const struct {
  const char *text, *says;
} unfit[] = {{"sede = 1", "f:1: sede"},
             {"\n[compar]", "f:2: [compar] is no command"},
             {"[compare]\nfloat64 = true", "f:2: float64: isomer compare has no such option"},
             {"seed = \"1\"", "f:1: seed: an integer is expected, not a string"},
             {"seed = -1", "below 0"},
             {"jobs = 0", "from 1 to 1024"},
             {"timeout = \"1\"", "a number is expected"},
             {"timeout = 0", "not a number of seconds"},
             {"memory = \"8X\"", "not a number of bytes"},
             {"memory = true", "expected"},
             {"device = \"gpu\"", "\"gpu\" is none of cpu, cuda"},
             {"device = \"\"", "empty"},
             {"[compare]\ndisable = [\"lazy\", \"lazier\"]", "\"lazier\" is none"},
             {"disable = \"lazy,\"", "\"\" is none"},
             {"github = 1", "true or false"},
             {"json = [\"a\"]", "a string is expected"},
             {"also = [\"a\"]", "no right one"},
             {"ops = [\"\"]", "empty"},
             {"config = \"x\"", "no such option"},
             {"dot = true", "saturate"}};

START_TEST(holds_against_options) {
  toml t;
  iso_error err = {0};
  ck_assert_int_eq(toml_parse(unfit[_i].text, strlen(unfit[_i].text), "f", &t, &err), ISO_OK);
  const iso_code c = config_check(&t, "f", &err);
  ck_assert_int_eq(c, ISO_FORMAT);
  if (strcmp(unfit[_i].says, "saturate") != 0)
    ck_assert_msg(strstr(err.msg, unfit[_i].says) != NULL, "%s: %s", unfit[_i].text, err.msg);
  toml_free(&t);
}
END_TEST

int main(void) {
  Suite *s = suite_create("settings");
  TCase *t = tcase_create("toml");
  tcase_add_test(t, reads);
  tcase_add_loop_test(t, refuses, 0, sizeof refused / sizeof *refused);
  tcase_add_loop_test(t, holds_against_options, 0, sizeof unfit / sizeof *unfit);
  suite_add_tcase(s, t);
  return run_suite(s);
}
