/* A rule spelled in other words has the same canonical form; another rule has another one. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rules.h"
#include "tests/support/suite.h"

static iso_error err;

typedef struct form {
  rule_set *set;
  iso_arena a;
  rule r;
  uint32_t from[8];
  uint64_t hash;
} form;

static void read_form(const char *text, form *f) {
  *f = (form){0};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &f->set, &err) == ISO_OK, "%s: %s", text,
                err.msg);
  ck_assert_int_eq(rule_canonical(&f->a, rule_set_at(f->set, 0), &f->r, f->from, &f->hash, &err),
                   ISO_OK);
}

static void drop_form(form *f) {
  rule_set_free(f->set);
  iso_arena_fini(&f->a);
}

/* Whether two are equal up to names: sides, kinds and sizes of variables by number, conditions in
 * order. */
static bool alike(const form *a, const form *b) {
  bool same = a->hash == b->hash && a->r.n_vars == b->r.n_vars && a->r.n_where == b->r.n_where &&
              a->r.n_attrs == b->r.n_attrs;
  for (uint32_t i = 0; same && i < a->r.n_vars; i++)
    same = a->r.var[i].kind == b->r.var[i].kind && a->r.var[i].n_dims == b->r.var[i].n_dims;
  for (uint32_t i = 0; same && i < a->r.n_where; i++)
    same = strcmp(a->r.where[i]->u.s, b->r.where[i]->u.s) == 0;
  for (uint32_t i = 0; same && i < a->r.n_attrs; i++) same = a->r.attr[i].kind == b->r.attr[i].kind;
  return same && a->r.claimed == RULE_UNKNOWN;
}

/* %d: a name or an order that is drawn. */
static void spell(unsigned k, char *out, size_t cap) {
  static const char *const names[][5] = {{"x", "w", "N", "M", "s"},
                                         {"w", "x", "M", "N", "t"},
                                         {"q7", "a", "S", "B", "N"},
                                         {"zz", "y", "x", "K", "w"}};
  const char *const *n = names[k % 4];
  char var[2][60], where[2][60], attr[2][40];
  snprintf(var[0], 60, "(var %s f (%s %s))", n[0], n[2], n[3]);
  snprintf(var[1], 60, "(var %s f (%s))", n[1], n[3]);
  snprintf(where[0], 60, "(>= %s 2)", n[2]);
  snprintf(where[1], 60, "(< 0 %s)", n[4]);
  snprintf(attr[0], 40, "(attr %s float)", n[4]);
  snprintf(attr[1], 40, "%s", k & 32 ? "(attr unused int)" : "");
  const unsigned v = k >> 2 & 1, w = k >> 3 & 1, t = k >> 4 & 1;
  snprintf(out, cap,
           "(rule r%u %s %s %s %s (lhs (aten::mul.Scalar (aten::mul.Tensor %s %s) %s)) (rhs "
           "(aten::mul.Tensor %s (aten::mul.Scalar %s %s)))"
           " (where %s %s)%s)",
           k, var[v], var[1 - v], attr[t], attr[1 - t], n[0], n[1], n[4], n[0], n[1], n[4],
           where[w], where[1 - w], k & 64 ? " (evidence proved \"all shapes\")" : "");
}

START_TEST(spellings) {
  form first, f;
  char text[1000];
  spell(0, text, sizeof text);
  read_form(text, &first);
  for (unsigned k = 1; k < 128; k++) {
    spell(k, text, sizeof text);
    read_form(text, &f);
    ck_assert_msg(alike(&first, &f), "%s", text);
    ck_assert_uint_eq(f.from[0], k >> 2 & 1); /* what occurs first is declared first or second */
    drop_form(&f);
  }
  drop_form(&first);
}
END_TEST

START_TEST(others) {
  static const char *const rules[] = {
      "(rule r (var x f (N)) (var y f (N)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
      "x)))",
      "(rule r (var x f (N)) (var y f (N)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor x "
      "y)))",
      "(rule r (var x f (N)) (var y i (N)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
      "x)))",
      "(rule r (var x f (N)) (lhs (aten::add.Tensor x x)) (rhs (aten::add.Tensor x x)))",
      "(rule r (var x f (N)) (lhs (aten::mul.Scalar x 2.0)) (rhs (aten::add.Tensor x x)))",
      "(rule r (var x f (N)) (lhs (aten::mul.Scalar x 2)) (rhs (aten::add.Tensor x x)))"};
  enum { N = sizeof rules / sizeof *rules };
  form f[N];
  for (int i = 0; i < N; i++) read_form(rules[i], &f[i]);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < i; k++) ck_assert_msg(f[i].hash != f[k].hash, "%s\n%s", rules[i], rules[k]);
  for (int i = 0; i < N; i++) drop_form(&f[i]);
}
END_TEST

int main(void) {
  Suite *s = suite_create("canonical");
  TCase *t = tcase_create("all");
  tcase_add_test(t, spellings);
  tcase_add_test(t, others);
  suite_add_tcase(s, t);
  return run_suite(s);
}
