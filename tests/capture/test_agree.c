/* The inputs that two captures are run on: inputs that are one, sets that are put together, and
 * memory that ends at every allocation. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include "tests/capture/loading_test.h"
#include "tests/support/suite.h"

#define HOLDS(cond) \
  do { \
    if (!(cond)) fail_disarm(), ck_abort_msg("%s", #cond); \
  } while (0)

static void save(const char *file, const char *name, const int64_t *x, int64_t n) {
  rule_tensor *t = NULL;
  const rule_shape s = {.rank = 1, .dim = {n}};
  ck_assert_int_eq(rule_tensor_new(RULE_I64, &s, &t, NULL), ISO_OK);
  for (int64_t i = 0; i < n; i++) rule_tensor_set(t, i, (double)x[i]);
  const cap_named_tensor named = {name, t};
  ck_assert_int_eq(cap_tensors_save(in_tmp(file), &named, name ? 1 : 0, NULL), ISO_OK);
  rule_tensor_unref(t);
}

/* A capture with one input, whose domain is `domain` (JSON with ' for "). Owns: cap_free, unless it
 * is an error. */
static iso_code one(const char *name, const int64_t *x, int64_t n, const char *domain,
                    cap_graph **out, iso_error *err) {
  char said[1024];
  snprintf(said, sizeof said,
           "{'format':'isomer-capture','version':1,'nodes':[{'id':'x','op':'input','name':'%s',"
           "'outputs':[{'shape':[%d],'dtype':'int64'}],'domain':%s}],'outputs':[{'name':'y','ref':'"
           "x'}]}",
           name, (int)n, domain);
  char *text = quotes(said);
  write_bytes("graph.json", text, strlen(text));
  free(text);
  save("weights.safetensors", NULL, NULL, 0);
  save("inputs.safetensors", name, x, n);
  return cap_load(tmp_dir, schemas, out, err);
}

static int64_t at(const cap_graph *g, size_t set, int64_t i) {
  return rule_tensor_get_int(g->input[set], i);
}

START_TEST(domains_that_are_wrong) {
  static const struct {
    const char *domain, *says;
  } bad[] = {{"[]", "is not an object"},
             {"{'range':[1]}", "[lowest, highest]"},
             {"{'range':[5,1]}", "nothing is inside"},
             {"{'exclude':'3'}", "list of numbers"},
             {"{'distinct':1}", "true or false"},
             {"{'mask':'up'}", "\"any\", \"left\" and \"right\""},
             {"{'steps':1}", "none of range"},
             {"{'range':[0,9007199254740993]}", "[lowest, highest]"},
             {"{'exclude':[7]}", "element 1 (row-major) is 7"},
             {"{'sorted':true}", "less than the one before"}};
  static const int64_t x[3] = {9, 7, 8};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cap_graph *g = NULL;
    iso_error err = {0};
    ck_assert_int_eq(one("x", x, 3, bad[i].domain, &g, &err), ISO_FORMAT);
    ck_assert_msg(strstr(err.msg, bad[i].says) && strstr(err.msg, "node \"x\""), "%s: %s",
                  bad[i].domain, err.msg);
  }
}
END_TEST

START_TEST(both_on_either) {
  static const int64_t x[3] = {4, 1, 5}, y[3] = {2, 0, 3};
  cap_graph *l, *r;
  cap_agreement a;
  iso_error err = {0};
  ck_assert_int_eq(one("x", x, 3, "{'range':[0,9]}", &l, &err), ISO_OK);
  ck_assert_int_eq(one("x", y, 3, "null", &r, &err), ISO_OK);
  ck_assert_int_eq(cap_agree(l, r, NULL, 0, &a, &err), ISO_OK);
  ck_assert(l->n_sets == 2 && r->n_sets == 2 && a.n_captured == 2 && a.n_notes == 2);
  for (int64_t i = 0; i < 3; i++)
    ck_assert(at(l, 0, i) == x[i] && at(r, 0, i) == x[i] && at(l, 1, i) == y[i] &&
              at(r, 1, i) == y[i]);
  ck_assert(r->node[0].domain && r->node[0].domain == l->node[0].domain);
  ck_assert_int_eq(a.note[0].kind, RULE_ASSUMES_INPUT);
  ck_assert_int_eq(a.note[1].kind, RULE_ASSUMES_RANGE);
  cap_free(l);
  cap_free(r);
}
END_TEST

START_TEST(sets_outside_are_left_out) {
  static const int64_t x[3] = {4, 1, 5}, y[3] = {2, 0, 3};
  cap_graph *l, *r;
  cap_agreement a;
  iso_error err = {0};
  ck_assert_int_eq(one("x", x, 3, "{'exclude':[0]}", &l, &err), ISO_OK);
  ck_assert_int_eq(one("x", y, 3, "null", &r, &err), ISO_OK);
  ck_assert_int_eq(cap_agree(l, r, NULL, 0, &a, &err), ISO_OK);
  ck_assert(l->n_sets == 1 && at(r, 0, 0) == 4);
  cap_free(l);
  cap_free(r);
  ck_assert_int_eq(one("x", x, 3, "{'exclude':[0]}", &l, &err), ISO_OK);
  ck_assert_int_eq(one("x", y, 3, "{'exclude':[4]}", &r, &err), ISO_OK);
  ck_assert_int_eq(cap_agree(l, r, NULL, 0, &a, &err), ISO_USAGE);
  cap_free(l);
  cap_free(r);
}
END_TEST

START_TEST(sets_are_drawn_of_what_is_kept) {
  static const int64_t x[4] = {1, 1, 1, 0};
  cap_graph *l, *r;
  cap_agreement a;
  iso_error err = {0};
  bool other = false;
  ck_assert_int_eq(one("m", x, 4, "{'mask':'right'}", &l, &err), ISO_OK);
  ck_assert_int_eq(one("m", x, 4, "null", &r, &err), ISO_OK);
  ck_assert_int_eq(cap_agree(l, r, NULL, 3, &a, &err), ISO_OK);
  ck_assert(a.n_captured == 1 && l->n_sets > 3 && l->n_sets == r->n_sets);
  for (size_t s = 0; s < l->n_sets; s++) {
    ck_assert(rule_domain_admits(l->node[0].domain, l->input[s], NULL, 0));
    ck_assert(rule_tensor_same(l->input[s], r->input[s]));
    other |= !rule_tensor_same(l->input[s], l->input[0]);
  }
  ck_assert(other);
  cap_free(l);
  cap_free(r);
}
END_TEST

/* A rank has the first half of the left's input, and says what that half may be. */
static void agree_on_half(const int64_t *x, const char *domain, cap_graph **l, cap_graph **r) {
  cap_agreement a;
  iso_error err = {0};
  ck_assert_int_eq(one("x", x, 4, "null", l, &err), ISO_OK);
  ck_assert_int_eq(one("rank0.x", x, 2, domain, r, &err), ISO_OK);
  ck_assert_int_eq(cap_agree(*l, *r, NULL, 3, &a, &err), ISO_OK);
  ck_assert(a.n_captured == 1 && (*l)->n_sets > 3 && (*l)->n_sets == (*r)->n_sets);
}

START_TEST(parts_are_drawn_inside_their_own_domains) {
  static const int64_t x[4] = {0, 0, 5, 5};
  cap_graph *l, *r;
  bool other = false;
  agree_on_half(x, "{'range':[0,3]}", &l, &r);
  for (size_t s = 0; s < l->n_sets; s++) {
    ck_assert(rule_domain_admits(r->node[0].domain, r->input[s], NULL, 0));
    for (int64_t i = 0; i < 4; i++) ck_assert_int_eq(at(l, s, i), i < 2 ? at(r, s, i) : x[i]);
    other |= at(r, s, 0) != at(r, s, 1);
  }
  ck_assert(other);
  cap_free(l);
  cap_free(r);
}
END_TEST

START_TEST(positions_of_a_whole_stay_consecutive) {
  static const int64_t x[4] = {0, 1, 2, 3};
  cap_graph *l, *r;
  bool other = false;
  agree_on_half(x, "{'range':[0,9]}", &l, &r);
  for (size_t s = 0; s < l->n_sets; s++) {
    for (int64_t i = 0; i < 4; i++) ck_assert_int_eq(at(l, s, i), at(r, s, 0) + i);
    ck_assert_int_eq(at(r, s, 1), at(r, s, 0) + 1);
    other |= at(r, s, 0) != 0;
  }
  ck_assert(other);
  cap_free(l);
  cap_free(r);
}
END_TEST

/* Differences of elements leave int64 here. */
START_TEST(ends_of_integers) {
  static const int64_t x[4] = {INT64_MIN, INT64_MAX, -2, INT64_MAX},
                       y[4] = {INT64_MAX, INT64_MIN, 3, 0};
  cap_graph *l, *r;
  cap_agreement a;
  iso_error err = {0};
  ck_assert_int_eq(one("x", x, 4, "{'range':[{'float':'-inf'},{'float':'inf'}]}", &l, &err),
                   ISO_OK);
  ck_assert_int_eq(one("x", y, 4, "null", &r, &err), ISO_OK);
  ck_assert_int_eq(cap_agree(l, r, NULL, 0, &a, &err), ISO_OK);
  ck_assert(l->n_sets == 2 && at(r, 0, 0) == at(l, 0, 0));
  cap_free(l);
  cap_free(r);
}
END_TEST

/* One has ones for the zeros of the other: both run on either's, or each on its own. */
START_TEST(opposed_under_one_name) {
  static const int64_t x[5] = {1, 0, 0, 1, 1}, y[5] = {0, 1, 1, 0, 0}, z[5] = {0, 1, 1, 0, 1};
  for (unsigned opposed = 0; opposed < 4; opposed++)
    for (int is = 0; is < 2; is++) { /* `z` is not the opposite */
      const cap_spoken said = {.opposed = opposed};
      const bool swaps = is && opposed % 2;
      cap_graph *l, *r;
      cap_agreement a;
      iso_error err = {0};
      ck_assert_int_eq(one("m", x, 5, "null", &l, &err), ISO_OK);
      ck_assert_int_eq(one("m", is ? y : z, 5, "null", &r, &err), ISO_OK);
      ck_assert_int_eq(cap_agree(l, r, &said, 3, &a, &err), ISO_OK);
      ck_assert(a.n_doubts == (size_t)is && (a.doubt != NULL) == is);
      ck_assert_uint_eq(a.n_captured, swaps ? 1 : 2);
      for (size_t set = 0; set < l->n_sets; set++)
        for (int64_t i = 0; i < 5; i++) {
          const int64_t own = at(l, set, i);
          ck_assert_int_eq(at(r, set, i), swaps ? 1 - own : own);
        }
      cap_free(l);
      cap_free(r);
    }
}
END_TEST

/* Where nothing was padded the opposite of ones alone is zeros alone; one number is no opposite. */
START_TEST(opposed_all_over) {
  static const int64_t x[5] = {1, 1, 1, 1, 1}, y[5] = {0}, z[5] = {0, 0, 2, 0, 0};
  static const struct {
    const int64_t *right;
    int64_t n;
    bool is;
  } of[] = {{y, 5, true}, {y, 1, false}, {x, 5, false}, {z, 5, false}};
  for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
    cap_graph *l, *r;
    cap_agreement a;
    iso_error err = {0};
    ck_assert_int_eq(one("m", x, of[k].n, "null", &l, &err), ISO_OK);
    ck_assert_int_eq(one("m", of[k].right, of[k].n, "null", &r, &err), ISO_OK);
    ck_assert_int_eq(cap_agree(l, r, NULL, 3, &a, &err), ISO_OK);
    ck_assert_msg(a.n_doubts == (size_t)of[k].is, "case %zu", k);
    cap_free(l);
    cap_free(r);
  }
}
END_TEST

/* Frees both. Returns: whether memory ended, at allocation `n`. */
static bool agree_fails_or_is_whole(cap_graph *l, cap_graph *r, long n) {
  const cap_spoken said = {.opposed = 1};
  cap_agreement a;
  iso_error err = {0};
  fail_arm(n);
  const iso_code c = cap_agree(l, r, &said, 3, &a, &err);
  const bool ended = fail_disarm();
  HOLDS(c == (ended ? ISO_NOMEM : ISO_OK));
  cap_free(l);
  cap_free(r);
  return ended;
}

START_TEST(memory_ends) {
  static const int64_t x[4] = {1, 1, 0, 0}, y[4] = {1, 1, 1, 0};
  bool ended = true;
  for (long n = 0; ended; n++) {
    cap_graph *l = NULL, *r = NULL;
    iso_error err = {0};
    ck_assert_int_eq(one("m", x, 4, "{'mask':'right'}", &l, &err), ISO_OK);
    ck_assert_int_eq(one("m", y, 4, "{'range':[0,1]}", &r, &err), ISO_OK);
    ended = agree_fails_or_is_whole(l, r, n);
  }
}
END_TEST

START_TEST(memory_ends_where_parts_are_drawn) {
  static const int64_t x[4] = {0, 0, 5, 5};
  bool ended = true;
  for (long n = 0; ended; n++) {
    cap_graph *l = NULL, *r = NULL;
    iso_error err = {0};
    ck_assert_int_eq(one("x", x, 4, "null", &l, &err), ISO_OK);
    ck_assert_int_eq(one("rank0.x", x, 2, "{'range':[0,3]}", &r, &err), ISO_OK);
    ended = agree_fails_or_is_whole(l, r, n);
  }
}
END_TEST

START_TEST(memory_ends_where_inputs_are_opposed) {
  static const int64_t x[5] = {1, 0, 0, 1, 1}, y[5] = {0, 1, 1, 0, 0};
  bool ended = true;
  for (long n = 0; ended; n++) {
    cap_graph *l = NULL, *r = NULL;
    iso_error err = {0};
    ck_assert_int_eq(one("m", x, 5, "null", &l, &err), ISO_OK);
    ck_assert_int_eq(one("m", y, 5, "null", &r, &err), ISO_OK);
    ended = agree_fails_or_is_whole(l, r, n);
  }
}
END_TEST

START_TEST(memory_ends_where_looks_are_drawn) {
  static const int64_t x[4] = {1, 0, 1, 1};
  bool ended = true;
  for (long n = 0; ended; n++) {
    cap_graph *l = NULL, *r = NULL;
    iso_error err = {0};
    ck_assert_int_eq(one("m", x, 4, "null", &l, &err), ISO_OK);
    ck_assert_int_eq(one("m", x, 4, "null", &r, &err), ISO_OK);
    ended = agree_fails_or_is_whole(l, r, n);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("captures that agree");
  TCase *t = tcase_create("agree");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, domains_that_are_wrong);
  tcase_add_test(t, both_on_either);
  tcase_add_test(t, sets_outside_are_left_out);
  tcase_add_test(t, sets_are_drawn_of_what_is_kept);
  tcase_add_test(t, parts_are_drawn_inside_their_own_domains);
  tcase_add_test(t, positions_of_a_whole_stay_consecutive);
  tcase_add_test(t, ends_of_integers);
  tcase_add_test(t, opposed_under_one_name);
  tcase_add_test(t, opposed_all_over);
  tcase_add_test(t, memory_ends);
  tcase_add_test(t, memory_ends_where_parts_are_drawn);
  tcase_add_test(t, memory_ends_where_inputs_are_opposed);
  tcase_add_test(t, memory_ends_where_looks_are_drawn);
  suite_add_tcase(s, t);
  return run_suite(s);
}
