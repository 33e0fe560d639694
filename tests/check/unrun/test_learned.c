/* Relations that were learned of a small pair, said of names with other numbers: each number of a
 * name stands for one number, wherever it is. */
#include <stdio.h>

#include "check/unrun/unrun.h"
#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

enum { SEEDS = 400, MOST_LEARNED = 4 };

static chk_related learned[MOST_LEARNED];

static const char *copied(const char *s) { return iso_arena_strdup(&report.arena, s); }

/* Learned: leaf `name` of `side` is this term over the other side's leaves. */
static void learn(int on, const char *name, const rule_term *t, const char *const *of, size_t n) {
  const char **names = iso_arena_alloc(&report.arena, (n + 1) * sizeof *names);
  for (size_t i = 0; i < n; i++) names[i] = copied(of[i]);
  learned[options.n_learned++] = (chk_related){
      .right = on == RIGHT, .leaf = copied(name), .term = t, .name = names, .n_names = n};
  options.learned = learned;
}

static uint32_t parameter(int on, const char *name) {
  return leaf(on, CAP_PARAMETER, copied(name), keep(make(SHAPE(2, 2))));
}

/* Whether the left's `name` may be the term over the right's leaves of these names. */
static bool said(const char *name, const rule_term *t, const char *const *of, size_t n) {
  k.n_terms = 0;
  for (int on = 0; on < 2; on++) side[on].g.n_nodes = 0;
  parameter(LEFT, name);
  for (size_t i = 0; i < n; i++) parameter(RIGHT, of[i]);
  add_captures();
  const uint32_t b = t->kind == RULE_VAR ? at(RIGHT, (uint32_t)t->u.i) : own(rebased(t, 1));
  return chk_was_learned(&k, 0, b);
}

/* ---- names at random ---- */

/* "layers.0.experts.1.w0": words and numbers by their places, numbers out of a few. */
typedef struct name {
  int number[3];
  size_t n;
  char letter;
} name;

static const char *written(const name *x, const int *as) {
  char text[64], *p = text;
  for (size_t i = 0; i < x->n; i++)
    p += sprintf(p, "%s%d", i ? ".e" : "layers.", as ? as[x->number[i]] : x->number[i]);
  sprintf(p, ".%c", x->letter);
  return copied(text);
}

enum { NUMBERS = 4 };

static name draw_name(iso_rng *rng, char letter, const name *among) {
  name x = {.n = 1 + iso_rng_below(rng, 3), .letter = letter};
  for (size_t i = 0; i < x.n; i++)
    x.number[i] =
        among ? among->number[iso_rng_below(rng, among->n)] : (int)iso_rng_below(rng, NUMBERS);
  return x;
}

static const rule_term *of_two(const char *op, int64_t d) {
  const rule_term *two[2] = {v(0), v(1)};
  return CALL(op, rule_list(&report.arena, two, 2), num(d));
}

START_TEST(a_relation_is_said_of_other_numbers_put_in_everywhere) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    setup();
    const name whole = draw_name(&rng, 'q', NULL), a = draw_name(&rng, 'a', &whole),
               b = draw_name(&rng, 'b', &whole);
    const char *from[2] = {written(&a, NULL), written(&b, NULL)};
    learn(LEFT, written(&whole, NULL), of_two("aten::cat", 0), from, 2);
    int as[NUMBERS], other[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) as[i] = other[i] = (int)iso_rng_below(&rng, 30);
    const char *leaf = written(&whole, as), *to[2] = {written(&a, as), written(&b, as)};
    ck_assert_msg(said(leaf, of_two("aten::cat", 0), to, 2), "%s = %s, %s", leaf, to[0], to[1]);
    /* One number of a part is another one. */
    other[b.number[iso_rng_below(&rng, b.n)]] += 1;
    const char *wrong[2] = {to[0], written(&b, other)};
    ck_assert_msg(!said(leaf, of_two("aten::cat", 0), wrong, 2), "%s = %s, %s", leaf, wrong[0],
                  wrong[1]);
    const char *turned[2] = {to[1], to[0]};
    ck_assert(!said(leaf, of_two("aten::cat", 0), turned, 2));
    ck_assert(!said(leaf, v(0), to, 1));
    ck_assert(!said(leaf, of_two("aten::cat", 1), to, 2));
    ck_assert(!said(leaf, of_two("aten::stack", 0), to, 2));
    teardown();
  }
}
END_TEST

/* ---- by hand ---- */

static bool said_of(const char *leaf, const char *of) { return said(leaf, v(0), &of, 1); }
static void learn_one(const char *leaf, const char *of) { learn(LEFT, leaf, v(0), &of, 1); }

START_TEST(a_number_that_the_leaf_does_not_have_stays) {
  setup();
  learn_one("layers.0.q", "blocks.0.part1.q");
  ck_assert(said_of("layers.7.q", "blocks.7.part1.q"));
  ck_assert(!said_of("layers.7.q", "blocks.7.part2.q"));
  ck_assert(!said_of("layers.7.q", "blocks.0.part1.q"));
  ck_assert(!said_of("layers.7.k", "blocks.7.part1.q"));
  ck_assert(!said_of("layers.7.q.more", "blocks.7.part1.q"));
  ck_assert(!said_of("layers.7.q", "blocks.7.part1.q2"));
  teardown();
}
END_TEST

/* Numbers are their digits: 07 is not 7. */
START_TEST(a_number_is_as_it_is_written) {
  setup();
  learn_one("w0", "u0");
  ck_assert(said_of("w07", "u07") && !said_of("w07", "u7") && !said_of("w12", "u1"));
  ck_assert(!said_of("w1", "u12") && !said_of("wx", "ux") && !said_of("w", "u"));
  ck_assert(said_of("w123456789012345", "u123456789012345"));
  ck_assert(!said_of("w1234567890123456", "u1234567890123456")); /* too long to be one */
  teardown();
}
END_TEST

START_TEST(what_was_learned_of_the_other_side_says_nothing) {
  for (int on = 0; on < 2; on++) {
    const char *of = "u0";
    setup();
    learn(on, "w0", v(0), &of, 1);
    ck_assert_int_eq(said_of("w1", "u1"), on == LEFT);
    teardown();
  }
}
END_TEST

/* Names that were learned as they are stand for themselves; of others, all that are as near have to
 * say it. */
START_TEST(the_nearest_that_were_learned_have_to_say_it) {
  setup();
  ck_assert(!said_of("w1", "a")); /* nothing was learned */
  learn_one("w1", "a");
  learn_one("w3", "b");
  ck_assert(said_of("w1", "a") && said_of("w3", "b"));
  ck_assert(!said_of("w3", "a") && !said_of("w1", "b"));
  ck_assert(!said_of("w5", "a") && !said_of("w5", "b"));
  learn_one("x0.y0", "z0");
  learn_one("x1.y0", "z0");
  ck_assert(said_of("x5.y0", "z0") && !said_of("x5.y0", "z5")); /* the first does not fit */
  ck_assert(said_of("x5.y5", "z5") && !said_of("x5.y5", "z0")); /* it is nearer */
  teardown();
}
END_TEST

int main(void) {
  Suite *s = suite_create("learned");
  TCase *t = tcase_create("learned");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_relation_is_said_of_other_numbers_put_in_everywhere);
  tcase_add_test(t, a_number_that_the_leaf_does_not_have_stays);
  tcase_add_test(t, a_number_is_as_it_is_written);
  tcase_add_test(t, what_was_learned_of_the_other_side_says_nothing);
  tcase_add_test(t, the_nearest_that_were_learned_have_to_say_it);
  suite_add_tcase(s, t);
  return run_suite(s);
}
