/* Outputs of several ranks, by their names: against a search through all of them. */
#include "rules/replicas.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_at(const void *names, size_t i) {
  const char *const *n = names;
  return n[i];
}

START_TEST(the_stem_is_what_stands_before_a_rank) {
  ck_assert_uint_eq(rule_replica_stem("loss_rank12"), 4);
  ck_assert_uint_eq(rule_replica_stem("a_rank1_rank2"), 7);
  ck_assert_uint_eq(rule_replica_stem("loss"), 0);
  ck_assert_uint_eq(rule_replica_stem("loss_rank"), 0);
  ck_assert_uint_eq(rule_replica_stem("_rank3"), 0);
  ck_assert_uint_eq(rule_replica_stem("loss_rank3x"), 0);
  ck_assert_uint_eq(rule_replica_stem("loss.rank3"), 0);
  ck_assert_uint_eq(rule_replica_stem("3"), 0);
  ck_assert_uint_eq(rule_replica_stem(""), 0);
}
END_TEST

/* The first output of that name. */
static size_t sought(const char *const *name, size_t n, const char *text, size_t length) {
  for (size_t i = 0; i < n; i++)
    if (strlen(name[i]) == length && strncmp(name[i], text, length) == 0) return i;
  return RULE_NO_OUTPUT;
}

static void holds(const char *const *name, size_t n) {
  rule_replicas r;
  iso_error err;
  ck_assert_int_eq(rule_replicas_init(&r, n, name_at, name, &err), ISO_OK);
  for (size_t i = 0; i < n; i++) {
    const size_t stem = rule_replica_stem(name[i]);
    const size_t head = stem ? sought(name, n, name[i], stem) : RULE_NO_OUTPUT;
    ck_assert_uint_eq(r.head[i], head == RULE_NO_OUTPUT ? i : head);
    ck_assert_uint_eq(rule_replicas_find(&r, name[i]), sought(name, n, name[i], strlen(name[i])));
  }
  for (size_t h = 0; h < n; h++) {
    size_t at = r.first[h];
    for (size_t i = 0; i < n; i++)
      if (r.head[i] == h && i != h) {
        ck_assert_uint_eq(at, i);
        at = r.next[at];
      }
    ck_assert_uint_eq(at, RULE_NO_OUTPUT);
  }
  ck_assert_uint_eq(rule_replicas_find(&r, "nothing"), RULE_NO_OUTPUT);
  rule_replicas_fini(&r);
}

START_TEST(replicas_are_chained_in_the_graph_s_order) {
  static const char *const name[] = {"w_rank2", "w", "b", "w_rank1", "b_rank1", "w10", "x_rank1"};
  rule_replicas r;
  iso_error err;
  ck_assert_int_eq(rule_replicas_init(&r, 7, name_at, name, &err), ISO_OK);
  ck_assert_uint_eq(r.first[1], 0);
  ck_assert_uint_eq(r.next[0], 3);
  ck_assert_uint_eq(r.next[3], RULE_NO_OUTPUT);
  ck_assert_uint_eq(r.first[2], 4);
  ck_assert_uint_eq(r.head[6], 6);
  ck_assert_uint_eq(r.first[5], RULE_NO_OUTPUT);
  rule_replicas_fini(&r);
  holds(name, 7);
  holds(name, 0);
}
END_TEST

START_TEST(drawn_names_have_the_heads_that_a_search_finds) {
  static const char *const stem[] = {"w", "w1", "w_rank", "w_rank1", "a.b", "loss"};
  char text[64][24];
  const char *name[64];
  srand(7);
  for (int round = 0; round < 300; round++) {
    const size_t n = (size_t)rand() % 64;
    for (size_t i = 0; i < n; i++) {
      const char *s = stem[rand() % 6];
      if (rand() % 3) snprintf(text[i], sizeof text[i], "%s_rank%d", s, rand() % 5);
      else snprintf(text[i], sizeof text[i], "%s", s);
      name[i] = text[i];
    }
    holds(name, n);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("replicas");
  TCase *t = tcase_create("replicas");
  tcase_add_test(t, the_stem_is_what_stands_before_a_rank);
  tcase_add_test(t, replicas_are_chained_in_the_graph_s_order);
  tcase_add_test(t, drawn_names_have_the_heads_that_a_search_finds);
  suite_add_tcase(s, t);
  return run_suite(s);
}
