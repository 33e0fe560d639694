/* Proof obligations: z3 answers each as it should, and never `unsat` to all those of a wrong rule.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <z3.h>

#include "validate/validate.h"
#include "tests/support/suite.h"

static rule_schemas *schemas;

static void on_error(Z3_context z, Z3_error_code e) {
  (void)z;
  (void)e;
}

static void ask(const char *text, char answer[64]) {
  Z3_config cfg = Z3_mk_config();
  Z3_context z = Z3_mk_context(cfg);
  Z3_del_config(cfg);
  Z3_set_error_handler(z, on_error);
  (void)Z3_eval_smtlib2_string(z, "(set-option :timeout 4000)(set-option :rlimit 2000000)");
  snprintf(answer, 64, "%s", Z3_eval_smtlib2_string(z, text));
  Z3_del_context(z);
}

typedef struct tally {
  size_t rules, certified, wrong,
      shown; /* of the wrong ones: those whose obligations could be written */
} tally;

static void check_true(const rule *r, tally *t) {
  val_obligations k;
  iso_error err = {ISO_OK, ""};
  const val_options o = val_options_default();
  ck_assert_msg(val_write_obligations(r, schemas, &o, false, &k, &err) == ISO_OK, "%s: %s", r->name,
                err.msg);
  t->rules++;
  t->certified += k.n > 0;
  ck_assert_msg((k.n > 0) == (k.reason[0] == 0), "%s: %zu files, reason \"%s\"", r->name, k.n,
                k.reason);
  ck_assert_msg(strstr(k.reason, "(error") == NULL, "%s: it is no SMT-LIB: %s", r->name, k.reason);
  bool some = k.n == 0;
  for (size_t i = 0; i < k.n; i++) {
    char got[64];
    ask(k.text[i], got);
    const bool whole = strcmp(got, "unsat\nsat\n") == 0;
    ck_assert_msg(whole || strcmp(got, "unsat\n") == 0, "%s: %s for\n%s", r->name, got, k.text[i]);
    some |= whole;
  }
  ck_assert_msg(some, "%s: only cases that no sizes meet", r->name);
  val_obligations_free(&k);
}

static void check_wrong(const rule *r, tally *t) {
  t->wrong++;
  val_obligations k;
  iso_error err = {ISO_OK, ""};
  const val_options o = val_options_default();
  ck_assert_msg(val_write_obligations(r, schemas, &o, false, &k, &err) == ISO_OK, "%s: %s", r->name,
                err.msg);
  ck_assert_msg(k.n == 0 && k.reason[0], "%s has an obligation", r->name);
  val_obligations_free(&k);
  ck_assert_msg(val_write_obligations(r, schemas, &o, true, &k, &err) == ISO_OK, "%s: %s", r->name,
                err.msg);
  /* A fault of its shapes is not written: obligations are about elements. */
  bool open = k.n == 0 || strstr(k.reason, "size at dimension") || strstr(k.reason, "ranks") ||
              strstr(k.reason, "dtypes");
  if (open) {
    val_obligations_free(&k);
    return;
  }
  for (size_t i = 0; i < k.n && !open; i++) { /* one that z3 does not prove is enough */
    char got[64];
    ask(k.text[i], got);
    open |= strncmp(got, "unsat", 5) != 0 || strcmp(got, "unsat\nsat\n") != 0;
  }
  ck_assert_msg(open, "%s is wrong, and z3 says that it holds", r->name);
  t->shown++;
  val_obligations_free(&k);
}

/* Rules named no-... are wrong; `step`: each so manieth of them and of the others. */
static tally check_file(const char *path, size_t step) {
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  tally t = {0};
  size_t n[2] = {0};
  ck_assert_msg(rule_set_load(path, &set, &err) == ISO_OK, "%s", err.msg);
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  for (size_t i = 0; i < rule_set_count(set); i++) {
    const rule *r = rule_set_at(set, i);
    const bool wrong = strncmp(r->name, "no-", 3) == 0;
    if (n[wrong]++ % step) continue;
    if (wrong) check_wrong(r, &t);
    else check_true(r, &t);
  }
  rule_schemas_free(schemas);
  rule_set_free(set);
  return t;
}

START_TEST(the_papers_rules) {
  const tally t = check_file("rules/paper.rules", 1);
  ck_assert_uint_ge(t.rules, 12);
  ck_assert_uint_eq(t.certified, t.rules);
}
END_TEST

static const struct {
  const char *path;
  double least; /* of the true ones */
  size_t step;
} files[] = {{"tests/validate/rules/elementwise.rules", 0.9, 3},
             {"tests/validate/rules/layout.rules", 0.9, 3},
             {"tests/validate/rules/contract.rules", 0.7, 3},
             {"tests/validate/rules/ranks.rules", 0.9, 3},
             {"tests/validate/rules/reduce.rules", 0.75, 3},
             {"tests/validate/rules/anyshape.rules", 0.9, 3},
             {"tests/validate/rules/order.rules", 0.9, 1},
             {"tests/rules/published.rules", 0.7, 12},
             {"tests/validate/rules/shared.rules", 1.0, 1},
             {"tests/validate/rules/pieces.rules", 0.75, 1},
             {"tests/validate/rules/activation.rules", 1.0, 1}};

START_TEST(rules_of_each_family) {
  const tally t = check_file(files[_i].path, files[_i].step);
  ck_assert_msg((double)t.certified >= files[_i].least * (double)t.rules, "%s: %zu of %zu",
                files[_i].path, t.certified, t.rules);
  ck_assert_msg(t.wrong == 0 || t.shown > 0, "%s: no wrong rule could be written down",
                files[_i].path);
}
END_TEST

int main(void) {
  Suite *s = suite_create("obligations");
  TCase *t = tcase_create("obligations");
  tcase_set_timeout(t, 240);
  tcase_add_test(t, the_papers_rules);
  tcase_add_loop_test(t, rules_of_each_family, 0, (int)(sizeof files / sizeof *files));
  suite_add_tcase(s, t);
  return run_suite(s);
}
