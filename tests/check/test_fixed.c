/* Which inputs may be kept as they were captured: integers with a structure, compared with a plain
 * search for the structure; and positions that one side computes with and the other looks up. */
#include <check.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

/* Both sides have the input alone. */
static bool may_be_fixed(rule_tensor *t, const rule_domain *d) {
  bool yes = false;
  setup();
  for (int s = 0; s < 2; s++) {
    result(s, "y", leaf(s, CAP_INPUT, "x", s ? t : keep(t)));
    side[s].node[0].domain = d;
  }
  add_captures();
  fixed[0] = 0, fixed[1] = 1;
  k.cert.n_fixed = 2;
  ck_assert(chk_may_be_fixed(&k, 0, &yes) == ISO_OK);
  teardown();
  return yes;
}

static rule_tensor *integers(const int64_t *x, int64_t n) {
  rule_tensor *t = make_as(RULE_I64, SHAPE(n));
  for (int64_t i = 0; i < n; i++) rule_tensor_set(t, i, (double)x[i]);
  return t;
}
#define INTEGERS(...) \
  integers((int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

START_TEST(values_with_a_structure_may_be_kept) {
  ck_assert(may_be_fixed(INTEGERS(0, 1, 2, 3), NULL));
  ck_assert(may_be_fixed(INTEGERS(7, 8, 9), NULL));
  ck_assert(may_be_fixed(INTEGERS(5, 5, 5), NULL));
  ck_assert(may_be_fixed(INTEGERS(1, 0, 0, 1), NULL));
  ck_assert(may_be_fixed(INTEGERS(0), NULL));
  ck_assert(may_be_fixed(INTEGERS(0, 3, 7, 12), NULL));        /* bounds of sequences */
  ck_assert(may_be_fixed(INTEGERS(0, 1, 2, 0, 1, 2), NULL));   /* packed sequences */
  ck_assert(may_be_fixed(make_as(RULE_BOOL, SHAPE(4)), NULL)); /* a mask */
  ck_assert(may_be_fixed(make(SHAPE(0)), NULL));               /* nothing to keep */
}
END_TEST

/* Tokens at random have none, nor has any tensor of floats. */
START_TEST(tokens_and_floats_stay_free) {
  for (uint64_t seed = 0; seed < 2000; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    rule_tensor *t = make_as(RULE_I64, SHAPE(6 + (int64_t)iso_rng_below(&rng, 6)));
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, 2 + (double)iso_rng_below(&rng, 50));
    ck_assert_msg(!may_be_fixed(t, NULL), "seed %d", (int)seed);
  }
  ck_assert(!may_be_fixed(make(SHAPE(4)), NULL));
  ck_assert(!may_be_fixed(INTEGERS(7), NULL));
  ck_assert(!may_be_fixed(INTEGERS(0, 3, 1), NULL));
  ck_assert(!may_be_fixed(INTEGERS(1, 3, 7, 12), NULL));
}
END_TEST

/* ---- against a plain search ---- */

/* Whether the row is a start, then padding or sequences, each of which counts from 0. */
static bool restarts(const int64_t *x, int64_t n) {
  int64_t padding = 1, steps = 0;
  if (n < 4 || x[0] < 0 || x[0] > 1) return false;
  while (padding < n && x[padding] == x[0]) padding++;
  for (int64_t i = padding; i < n; i++)
    if (x[i] != 0 && x[i] != x[i - 1] + 1) return false;
  for (int64_t i = 1; i < n; i++) steps += x[i] - x[i - 1] == 1;
  return 2 * steps >= n;
}

static bool adds_up(const int64_t *x, int64_t n) {
  for (int64_t i = 1; i < n; i++)
    if (x[i] < x[i - 1]) return false;
  return n > 2 && x[0] == 0 && x[n - 1] != 0;
}

static bool is_structured(const int64_t *x, int64_t rows, int64_t row, bool limited) {
  const int64_t n = rows * row;
  bool run = true, one = true, bits = true, bounds = true, packed = true;
  for (int64_t i = 0; i < n; i++) {
    run &= x[i] == x[0] + i;
    one &= x[i] == x[0];
    bits &= x[i] == 0 || x[i] == 1;
  }
  if (n == 1) return x[0] == 0;
  for (int64_t r = 0; r < rows; r++) {
    bounds &= adds_up(x + r * row, row);
    packed &= restarts(x + r * row, row);
  }
  return run || one || bits || (!limited && (bounds || packed));
}

/* Rows of one of the structures, at most two numbers of which are changed. */
static void draw_rows(iso_rng *rng, int64_t *x, int64_t rows, int64_t row) {
  const uint64_t kind = iso_rng_below(rng, 5);
  const int64_t from = (int64_t)iso_rng_below(rng, 3);
  for (int64_t i = 0; i < rows * row; i++) {
    const int64_t at = i % row, before = at ? x[i - 1] : 0;
    const uint64_t r = iso_rng_below(rng, 4);
    x[i] = kind == 0   ? from + i
           : kind == 1 ? from
           : kind == 2 ? (int64_t)r % 2
           : kind == 3 ? (at ? before + (int64_t)r : 0)
           : r == 0    ? 0
                       : (at ? before + 1 : (int64_t)r % 2);
  }
  for (uint64_t c = iso_rng_below(rng, 3); c > 0; c--)
    x[iso_rng_below(rng, (uint64_t)(rows * row))] = (int64_t)iso_rng_below(rng, 4);
}

START_TEST(integers_have_a_structure_where_a_plain_search_finds_one) {
  size_t n_yes = 0, n_no = 0, n_limited = 0;
  for (uint64_t seed = 0; seed < 20000; seed++) {
    iso_rng rng = iso_rng_new(seed, 3);
    const int64_t rows = 1 + (int64_t)iso_rng_below(&rng, 3),
                  row = 1 + (int64_t)iso_rng_below(&rng, 6);
    int64_t x[18];
    draw_rows(&rng, x, rows, row);
    rule_domain d = rule_domain_all("x");
    d.low = 0;
    for (int limited = 0; limited < 2; limited++) {
      rule_tensor *t = make_as(RULE_I64, SHAPE(rows, row));
      for (int64_t i = 0; i < rows * row; i++) rule_tensor_set(t, i, (double)x[i]);
      const bool yes = is_structured(x, rows, row, limited);
      ck_assert_msg(may_be_fixed(t, limited ? &d : NULL) == yes, "seed %d, limited %d: %d",
                    (int)seed, limited, yes);
      n_yes += yes;
      n_no += !yes;
    }
    n_limited += is_structured(x, rows, row, false) != is_structured(x, rows, row, true);
  }
  ck_assert_msg(n_yes > 8000 && n_no > 8000 && n_limited > 1000, "%zu, %zu, %zu", n_yes, n_no,
                n_limited);
}
END_TEST

/* A domain that relates elements keeps an input; one that only bounds each element does not. */
START_TEST(inputs_with_a_joint_domain_may_be_kept) {
  rule_domain d = rule_domain_all("x");
  d.low = 2;
  ck_assert(!may_be_fixed(INTEGERS(7, 3, 9), &d));
  d.sorted = true;
  ck_assert(may_be_fixed(INTEGERS(3, 7, 9), &d));
}
END_TEST

/* ---- positions that are computed with here and looked up there ---- */

/* The use that a side makes of its integer input. */
enum { NOTHING, COUNTS, LOOKS_UP, LOOKS_UP_MADE, LOOKS_UP_SHIFTED, CHOOSES, CHOOSES_MADE, USES };

static void use_input(int s, int how, iso_rng *rng) {
  const bool chooses = how == CHOOSES || how == CHOOSES_MADE;
  uint32_t by = 0,
           t = leaf(s, chooses ? CAP_PARAMETER : CAP_BUFFER, "table", noise(rng, SHAPE(12, 2)));
  if (how == NOTHING) return;
  if (how == COUNTS) {
    const rule_term *arg[] = {v(0), rule_float(&report.arena, 0.5)};
    shaped(s, rule_op(&report.arena, "aten::mul.Scalar", arg, 2), RULE_F64, SHAPE(3));
    return;
  }
  if (how == LOOKS_UP_MADE || how == CHOOSES_MADE)
    t = shaped(s, CALL("aten::neg", v(t)), RULE_F64, SHAPE(12, 2));
  if (how == LOOKS_UP_SHIFTED) {
    const rule_term *arg[] = {v(0), num(2), num(1)};
    by = shaped(s, rule_op(&report.arena, "aten::add.Scalar", arg, 3), RULE_I64, SHAPE(3));
  }
  shaped(s, CALL("aten::embedding", v(t), v(by)), RULE_F64, SHAPE(3, 2));
}

/* Positions that have no structure of their own. `apart`: in which way the sides' inputs are not
 * one: not at all, another number on the first set or on the second, another one kept. */
enum { ONE, FIRST_SET, SECOND_SET, LONGER, NOT_KEPT, APARTS };

static bool kept_where(int left, int right, int apart, bool ask_right) {
  bool yes = false;
  setup();
  iso_rng rng = iso_rng_new(1, 4);
  rule_tensor *x = keep(INTEGERS(4, 2, 9)), *z = keep(INTEGERS(4, 3, 9)),
              *more = keep(INTEGERS(4, 2, 9, 3));
  for (int s = 0; s < 2; s++) {
    leaf(s, CAP_INPUT, "x", s && apart == FIRST_SET ? z : s && apart == LONGER ? more : x);
    use_input(s, s ? right : left, &rng);
  }
  rule_tensor *set[2][2 * MAX_NODES] = {{NULL}};
  for (int s = 0; s < 2; s++) {
    side[s].g.n_sets = 2;
    side[s].g.input = set[s];
    set[s][0] = set[s][side[s].g.n_nodes] = side[s].node[0].value;
  }
  if (apart == SECOND_SET) set[RIGHT][side[RIGHT].g.n_nodes] = z;
  add_captures();
  if (apart != NOT_KEPT || ask_right) fixed[k.cert.n_fixed++] = at(ask_right ? RIGHT : LEFT, 0);
  if (apart != NOT_KEPT) fixed[k.cert.n_fixed++] = at(ask_right ? LEFT : RIGHT, 0);
  ck_assert(chk_may_be_fixed(&k, at(ask_right ? RIGHT : LEFT, 0), &yes) == ISO_OK);
  teardown();
  return yes;
}

START_TEST(positions_that_are_counted_here_and_looked_up_there_may_be_kept) {
  for (int left = 0; left < USES; left++)
    for (int right = 0; right < USES; right++)
      for (int apart = 0; apart < APARTS; apart++)
        for (int ask_right = 0; ask_right < 2; ask_right++) {
          const bool counts = left == COUNTS || right == COUNTS,
                     looks = (left >= LOOKS_UP && left <= LOOKS_UP_SHIFTED) ||
                             (right >= LOOKS_UP && right <= LOOKS_UP_SHIFTED);
          ck_assert_msg(kept_where(left, right, apart, ask_right) ==
                            (counts && looks && apart == ONE),
                        "left %d, right %d, apart %d, %d", left, right, apart, ask_right);
        }
}
END_TEST

/* A second use of the input decides where it chooses rows of a parameter: it is a token. */
START_TEST(tokens_stay_free_where_they_are_counted_too) {
  for (int token = -1; token < 2; token++) {
    bool yes = false;
    setup();
    iso_rng rng = iso_rng_new(1, 5);
    rule_tensor *x = keep(INTEGERS(4, 2, 9));
    for (int s = 0; s < 2; s++) {
      leaf(s, CAP_INPUT, "x", x);
      use_input(s, s ? LOOKS_UP : COUNTS, &rng);
      if (s == token) use_input(s, CHOOSES, &rng);
      fixed[k.cert.n_fixed++] = (uint32_t)(s ? side[LEFT].g.n_nodes : 0);
    }
    add_captures();
    for (int s = 0; s < 2; s++) {
      ck_assert(chk_may_be_fixed(&k, at(s, 0), &yes) == ISO_OK);
      ck_assert_msg(yes == (token < 0), "token on %d, side %d", token, s);
    }
    /* A parameter is no input, for any values. */
    ck_assert(chk_may_be_fixed(&k, at(RIGHT, 1), &yes) == ISO_OK && !yes);
    teardown();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("fixed");
  TCase *t = tcase_create("fixed");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, values_with_a_structure_may_be_kept);
  tcase_add_test(t, tokens_and_floats_stay_free);
  tcase_add_test(t, integers_have_a_structure_where_a_plain_search_finds_one);
  tcase_add_test(t, inputs_with_a_joint_domain_may_be_kept);
  tcase_add_test(t, positions_that_are_counted_here_and_looked_up_there_may_be_kept);
  tcase_add_test(t, tokens_stay_free_where_they_are_counted_too);
  suite_add_tcase(s, t);
  return run_suite(s);
}
