/* The table of operators: sorted, looked up by the dispatcher's names, and true to itself. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "rules/operators.h"
#include "tests/support/suite.h"

static const rule_operator *of(const char *op) { return rule_operator_of(op); }

START_TEST(names_are_sorted_and_found) {
  size_t n;
  const rule_operator *o = rule_operators(&n);
  for (size_t i = 0; i < n; i++) {
    char name[128];
    ck_assert(memchr(o[i].name, 0, RULE_OPERATOR_NAME) != NULL);
    const bool plain = !strstr(o[i].name, "::") && !rule_is_getitem(o[i].name);
    snprintf(name, sizeof name, "%s%s", plain ? "aten::" : "", o[i].name);
    ck_assert_msg(i == 0 || strcmp(o[i - 1].name, o[i].name) < 0, "%s is out of order", name);
    ck_assert_msg(of(name) == &o[i], "%s is not found", name);
  }
  ck_assert_uint_gt(n, 450);
}
END_TEST

START_TEST(an_overload_without_a_line_is_its_operator) {
  ck_assert_str_eq(of("aten::gt.Scalar")->name, "gt");
  ck_assert_str_eq(of("aten::max.other")->name, "max");
  ck_assert_str_eq(of("aten::max.dim")->name, "max.dim");
  ck_assert_str_eq(of("_C::silu_and_mul.isomer")->name, "_C::silu_and_mul");
}
END_TEST

START_TEST(copies_and_special_functions_are_the_operators_they_are_named_after) {
  ck_assert_ptr_eq(of("aten::special_round"), of("aten::round"));
  ck_assert_ptr_eq(of("aten::view_copy"), of("aten::view"));
  ck_assert_ptr_eq(of("aten::select_copy.int"), of("aten::select.int"));
  ck_assert_ptr_ne(of("aten::lift_fresh_copy"), of("aten::lift_fresh"));
}
END_TEST

START_TEST(of_what_is_not_listed_nothing_is_known) {
  static const char *const names[] = {"mine::gt", "aten::gtx",   "gt",   "aten::getitem",  "aten::",
                                      "",         "aten::_copy", "a::b", "aten::special_", "::gt"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ck_assert_str_eq(of(names[i])->name, "");
    ck_assert_int_eq(of(names[i])->choice, RULE_CHOICE_UNLISTED);
    ck_assert(!of(names[i])->exact && !of(names[i])->elementwise && of(names[i])->table == 0);
  }
}
END_TEST

/* Siblings name operators of the table, and know of one another. */
START_TEST(siblings_are_mutual) {
  size_t n;
  const rule_operator *o = rule_operators(&n);
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < RULE_MOST_SIBLINGS && *o[i].sibling[k]; k++) {
      char name[128];
      bool back = false;
      ck_assert(memchr(o[i].sibling[k], 0, RULE_SIBLING_NAME) != NULL);
      snprintf(name, sizeof name, "aten::%s", o[i].sibling[k]);
      for (int j = 0; j < RULE_MOST_SIBLINGS && *of(name)->sibling[j]; j++)
        back |= strcmp(of(name)->sibling[j], o[i].name) == 0;
      ck_assert_msg(back, "%s does not know its sibling %s", name, o[i].name);
    }
}
END_TEST

/* ---- schemas' facts of arguments and memory ---- */

static const char *const signatures[] = {
#define S(text) text,
#include "rules/schemas.def"
#undef S
};
enum { N_SIGNATURES = sizeof signatures / sizeof *signatures };

/* The line of the operator that is named so, and no other's. */
static const rule_operator *own_line(const char *signature) {
  static const rule_operator none;
  char op[128];
  snprintf(op, sizeof op, "%.*s", (int)strcspn(signature, "("), signature);
  const rule_operator *o = of(op);
  const size_t n = strcspn(op + 6, ".");
  return *o->name && strncmp(o->name, op + 6, n) == 0 && strcspn(o->name, ".") == n ? o : &none;
}

/* The name of argument `k`, "" where there is none. Keyword arguments count. */
static const char *argument(const char *signature, unsigned k, char buf[64]) {
  const char *p = strchr(signature, '(') + 1, *end = strstr(signature, ") ->");
  int depth = 0;
  buf[0] = 0;
  for (unsigned i = 0; p < end; i++) {
    const char *from = p, *last = p;
    for (; p < end && (*p != ',' || depth > 0); p++) {
      depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
      if (*p == ' ' && depth == 0) last = p + 1;
    }
    if (*from == '*') i--;
    else if (i == k) return snprintf(buf, 64, "%.*s", (int)strcspn(last, "=,)"), last), buf;
    p += strspn(p, ", ");
  }
  return buf;
}

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

/* Returns: in `at` where an argument of such a name stands first. */
static bool has_argument(const char *signature, const char *const *names, unsigned *at) {
  char buf[64];
  for (*at = 0; *argument(signature, *at, buf); ++*at)
    if (is_one_of(buf, names)) return true;
  return false;
}

/* The argument that chooses places is an index, a class that is meant, or the operand itself. */
START_TEST(integers_that_end_somewhere_are_where_it_says) {
  static const char *const names[] = {"index", "indices", "target", "self", NULL};
  size_t n_found = 0;
  for (size_t i = 0; i < N_SIGNATURES; i++) {
    const rule_operator *o = own_line(signatures[i]);
    char buf[64];
    if (!*o->name || o->ends == RULE_ENDS_NOWHERE) continue;
    ck_assert_msg(is_one_of(argument(signatures[i], o->index, buf), names),
                  "%s: argument %u is no index", signatures[i], o->index);
    ck_assert_msg(!o->table || o->table == o->index, "%s", signatures[i]);
    if (o->ends == RULE_ENDS_CLASSES)
      ck_assert_str_eq(argument(signatures[i], o->index + 3u, buf), "ignore_index");
    if (o->ends == RULE_ENDS_ALONG) ck_assert_str_eq(argument(signatures[i], 1, buf), "dim");
    n_found++;
  }
  ck_assert_uint_gt(n_found, 20);
}
END_TEST

START_TEST(arguments_have_their_places) {
  static const char *const dims[] = {"dim", NULL}, *const fills[] = {"fill_value", NULL},
                           *const indices[] = {"index", "indices", NULL};
  static bool axis[2000], fill[2000], table[2000];
  size_t n;
  unsigned at;
  const rule_operator *line = rule_operators(&n);
  for (size_t i = 0; i < N_SIGNATURES; i++) {
    const rule_operator *o = own_line(signatures[i]);
    char buf[64];
    if (!*o->name) continue;
    const size_t k = (size_t)(o - line);
    if (has_argument(signatures[i], dims, &at) && o->axis) {
      ck_assert_msg(at == o->axis, "%s: dim is argument %u", signatures[i], at);
      axis[k] = true;
    }
    if (has_argument(signatures[i], fills, &at)) {
      ck_assert_msg(at + 1 == o->fill, "%s fills with argument %u", signatures[i], at);
      fill[k] = true;
    }
    if (o->fill && is_one_of(argument(signatures[i], o->fill - 1u, buf),
                             (const char *const[]){"value", "s", NULL}))
      fill[k] = true;
    if (o->table && has_argument(signatures[i], indices, &at)) {
      ck_assert_msg(at == o->table, "%s: indices are argument %u", signatures[i], at);
      table[k] = true;
    }
  }
  for (size_t i = 0; i < n; i++) {
    ck_assert_msg(!line[i].axis || axis[i], "%s has no dim", line[i].name);
    ck_assert_msg(!line[i].fill || fill[i], "%s does not fill", line[i].name);
    ck_assert_msg(!line[i].table || table[i], "%s has no index", line[i].name);
  }
}
END_TEST

static unsigned argument_named(const char *signature, const char *name) {
  unsigned at;
  return has_argument(signature, (const char *const[]){name, NULL}, &at) ? at : UINT_MAX;
}

/* Places and sizes are where the facts look for them, and the forms that write have an operand. */
START_TEST(spellings_speak_of_arguments_that_are_there) {
  static bool said[2000];
  size_t n, found = 0;
  const rule_operator *line = rule_operators(&n);
  for (size_t i = 0; i < N_SIGNATURES; i++) {
    const char *g = signatures[i];
    const rule_operator *o = own_line(g);
    char buf[64];
    unsigned at;
    if (!*o->name) continue;
    const bool sized = has_argument(g, (const char *const[]){"size", "shape", NULL}, &at);
    const bool range = argument_named(g, "start") != UINT_MAX &&
                       argument_named(g, "end") != UINT_MAX && argument_named(g, "dim") != UINT_MAX,
               index = argument_named(g, "index") != UINT_MAX &&
                       argument_named(g, "dim") != UINT_MAX && strstr(g, "nt index");
    const bool dims = argument_named(g, "dim") != UINT_MAX || argument_named(g, "dim1") != UINT_MAX;
    said[o - line] |= (!o->sizes || sized) && (o->placed != RULE_PLACED_RANGE || range) &&
                      (o->placed != RULE_PLACED_INDEX || index) && (!o->dims || dims) &&
                      (!o->in_place || !strcmp(argument(g, 0, buf), "self"));
    ck_assert_msg(!range || strstr(g, "backward") || o->placed == RULE_PLACED_RANGE, "%s", g);
    ck_assert_msg(!index || strstr(g, "backward") || o->placed == RULE_PLACED_INDEX, "%s", g);
  }
  for (size_t i = 0; i < n; i++) {
    const rule_operator *o = &line[i];
    const bool says = o->sizes || o->placed || o->dims || o->in_place;
    found += says;
    ck_assert_msg(!says || said[i], "%s has no such argument", o->name);
  }
  ck_assert_uint_gt(found, 45);
}
END_TEST

/* Arguments with masks are tensors or numbers; a choice is made by a condition or a mask. */
START_TEST(masks_go_through_arguments_that_hold_numbers) {
  static const char *const choosers[] = {"mask", "condition", NULL},
                           *const values[] = {"self", "other", "value", "attn_mask", NULL},
                           *const factors[] = {"query", "key", NULL};
  int found = 0;
  for (size_t i = 0; i < N_SIGNATURES; i++) {
    const char *g = signatures[i];
    const rule_mask_op *m = &own_line(g)->mask;
    char buf[64];
    if (m->role == RULE_MASK_STOPS) {
      ck_assert_msg(!m->masks && !m->numbers && !m->chooses && !m->factors && !m->one, "%s", g);
      continue;
    }
    ck_assert_msg(m->masks, "%s", g);
    for (unsigned k = 0; k < 32 && *argument(g, k, buf); k++) {
      const bool value = (m->masks | m->numbers) >> k & 1;
      ck_assert_msg(!value || is_one_of(buf, values), "%s: argument %u", g, k);
      ck_assert_msg(!(m->chooses >> k & 1) || is_one_of(buf, choosers), "%s: argument %u", g, k);
      ck_assert_msg(!(m->factors >> k & 1) || is_one_of(buf, factors), "%s: argument %u", g, k);
      ck_assert_msg(!m->one || k != m->one || !strcmp(buf, "alpha"), "%s: argument %u", g, k);
      ck_assert_msg(!m->dim || k != m->dim || !strcmp(buf, "dim"), "%s: argument %u", g, k);
      ck_assert_msg(strcmp(buf, "alpha") || m->one == k, "%s has a factor", g);
    }
    found++;
  }
  ck_assert_int_gt(found, 15);
}
END_TEST

/* PyTorch marks results that may share their first operand's memory, except those of operators
 * whose results are unsafe to write to, or that copy only when they must. */
START_TEST(what_shares_memory_is_marked_so) {
  int marked = 0;
  for (size_t i = 0; i < N_SIGNATURES; i++) {
    const rule_operator *o = own_line(signatures[i]);
    const char *first = strchr(signatures[i], '('), *results = strstr(signatures[i], ") ->");
    const bool shares = strncmp(first, "(Tensor(a", 9) == 0 && strstr(results, "(a") != NULL;
    marked += shares;
    if (!*o->name) continue;
    const bool as_needed = o->shares == RULE_SHARES_MAYBE || o->shares == RULE_SHARES_UNLESS_CAST ||
                           o->shares == RULE_SHARES_UNLESS_TRAINED || strstr(o->name, "unsafe");
    ck_assert_msg(shares || as_needed ? o->shares != RULE_SHARES_NOTHING || !shares
                                      : o->shares == RULE_SHARES_NOTHING,
                  "%s", signatures[i]);
  }
  ck_assert_int_gt(marked, 60);
}
END_TEST

/* An operator that takes a generator draws; one that draws otherwise drops out or is named so. */
START_TEST(what_draws_takes_a_generator) {
  int draws = 0;
  for (size_t i = 0; i < N_SIGNATURES; i++) {
    const rule_operator *o = own_line(signatures[i]);
    const bool takes = strstr(signatures[i], "Generator") != NULL,
               trains = strstr(signatures[i], " train") != NULL;
    draws += o->draws;
    ck_assert_msg(!takes || o->draws, "%s draws", signatures[i]);
    ck_assert_msg(!o->draws || takes || trains || strstr(signatures[i], "::rand"),
                  "%s does not draw", signatures[i]);
  }
  ck_assert_int_gt(draws, 40);
}
END_TEST

/* A batch of matrices is multiplied as one pair of them is. */
START_TEST(what_contracts_matrices_is_a_product) {
  static const char *const with_a_summand[] = {"aten::addmm", "aten::baddbmm"};
  size_t n, found = 0;
  const rule_operator *o = rule_operators(&n);
  for (size_t i = 0; i < n; i++) {
    found += o[i].contracts != RULE_CONTRACTS_NOTHING;
    ck_assert_msg(o[i].contracts == RULE_CONTRACTS_NOTHING || o[i].product, "%s", o[i].name);
    ck_assert_msg(!o[i].product || (o[i].sums && o[i].growth == RULE_GROWS_CONTRACTION), "%s",
                  o[i].name);
  }
  ck_assert_uint_ge(found, 4);
  for (size_t i = 0; i < 2; i++) ck_assert(of(with_a_summand[i])->product);
  ck_assert(!of("aten::mul.Tensor")->product);
  ck_assert(!of("aten::sum")->product);
}
END_TEST

int main(void) {
  Suite *s = suite_create("operators");
  TCase *t = tcase_create("operators");
  tcase_add_test(t, names_are_sorted_and_found);
  tcase_add_test(t, an_overload_without_a_line_is_its_operator);
  tcase_add_test(t, copies_and_special_functions_are_the_operators_they_are_named_after);
  tcase_add_test(t, of_what_is_not_listed_nothing_is_known);
  tcase_add_test(t, siblings_are_mutual);
  tcase_add_test(t, integers_that_end_somewhere_are_where_it_says);
  tcase_add_test(t, arguments_have_their_places);
  tcase_add_test(t, spellings_speak_of_arguments_that_are_there);
  tcase_add_test(t, masks_go_through_arguments_that_hold_numbers);
  tcase_add_test(t, what_shares_memory_is_marked_so);
  tcase_add_test(t, what_draws_takes_a_generator);
  tcase_add_test(t, what_contracts_matrices_is_a_product);
  suite_add_tcase(s, t);
  return run_suite(s);
}
