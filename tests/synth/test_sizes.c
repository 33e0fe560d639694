/* Sizes over symbols, drawn: all statements about them (equal, at least, a number) are compared
 * with their values at every point of a box of the symbols' ranges, and printed forms are read
 * again. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "synth/scope/sizes.h"
#include "tests/support/suite.h"

enum { SYMBOLS = 3, BOX = 7 };

static iso_arena a;
static size_space *space;
static size_sum symbol[SYMBOLS];
static const char *const name[] = {"T", "B", "n"};
static const int64_t least[] = {1, 2, 0}, most[] = {INT64_MAX, 5, INT64_MAX};

static void setup(void) {
  iso_arena_init(&a);
  space = calloc(1, sizeof *space);
  space->arena = &a;
  for (int i = 0; i < SYMBOLS; i++)
    ck_assert(size_symbol(space, name[i], least[i], most[i], &symbol[i]));
}
static void teardown(void) {
  iso_arena_fini(&a);
  free(space);
}

static bool value_of(const void *ctx, const char *s, size_sum *out) {
  (void)ctx;
  for (int i = 0; i < SYMBOLS; i++)
    if (strcmp(name[i], s) == 0) return *out = symbol[i], true;
  return false;
}
static const size_names names = {value_of, NULL};

static const rule_term *drawn(iso_rng *r, int depth) {
  static const char *const op[] = {"+", "-", "*", "//", "%", "min", "max", "bound", "wrap"};
  const uint64_t k = iso_rng_below(r, 9);
  if (depth == 0 || iso_rng_below(r, 4) == 0)
    return iso_rng_below(r, 2) ? rule_name(&a, name[iso_rng_below(r, SYMBOLS)])
                               : rule_int(&a, (int64_t)iso_rng_below(r, 12) - 3);
  const rule_term *child[2] = {drawn(r, depth - 1), drawn(r, depth - 1)};
  if (k == 3 || k == 4) child[1] = rule_int(&a, (int64_t)iso_rng_below(r, 6) + 1);
  if (k > 6) child[1] = rule_name(&a, name[iso_rng_below(r, 2)]); /* a size */
  return rule_expr(&a, op[k], child, 2);
}

static int64_t floor_of(int64_t x, int64_t y) { return x / y - (x % y < 0); }

static int64_t at(const rule_term *t, const int64_t *value) {
  if (t->kind == RULE_INT) return t->u.i;
  if (t->kind == RULE_NAME) {
    int i = 0;
    while (strcmp(name[i], t->u.s) != 0) i++;
    return value[i];
  }
  int64_t x = at(t->child[0], value);
  if (t->n == 1) return -x;
  for (uint32_t i = 1; i < t->n; i++) {
    const int64_t y = at(t->child[i], value), place = x < 0 ? x + y : x;
    const char *op = t->u.s;
    x = !strcmp(op, "+")      ? x + y
        : !strcmp(op, "-")    ? x - y
        : !strcmp(op, "*")    ? x * y
        : !strcmp(op, "//")   ? floor_of(x, y)
        : !strcmp(op, "%")    ? x - y * floor_of(x, y)
        : !strcmp(op, "min")  ? (x < y ? x : y)
        : !strcmp(op, "max")  ? (x > y ? x : y)
        : !strcmp(op, "wrap") ? place
        : place < 0           ? 0
        : place > y           ? y
                              : place;
  }
  return x;
}

/* The next point of the box. */
static bool next(int64_t *value) {
  for (int i = 0; i < SYMBOLS; i++) {
    const int64_t end = most[i] < least[i] + BOX ? most[i] : least[i] + BOX;
    if (value[i] < end) return value[i]++, true;
    value[i] = least[i];
  }
  return false;
}

static void first(int64_t *value) { memcpy(value, least, sizeof least); }

START_TEST(what_is_said_holds) {
  iso_rng r = iso_rng_new(11, 0);
  int64_t value[SYMBOLS], number;
  size_t said = 0, read = 0, same = 0;
  for (int k = 0; k < 4000; k++) {
    const rule_term *t[2] = {drawn(&r, 3), drawn(&r, 2)};
    size_sum x[2];
    space->n = SYMBOLS;
    if (!size_read(space, t[0], &names, &x[0]) || !size_read(space, t[1], &names, &x[1])) continue;
    read++;
    const int64_t by = (int64_t)iso_rng_below(&r, 5) - 2;
    const bool equal = size_equal(&x[0], &x[1]), above = size_at_least(space, &x[0], &x[1], by),
               fixed = size_is_number(&x[0], &number);
    const rule_term *printed = size_term(space, &x[0]);
    said += above;
    same += equal;
    first(value);
    do {
      const int64_t l = at(t[0], value), m = at(t[1], value);
      ck_assert(!equal || l == m);
      ck_assert(!above || l >= m + by);
      ck_assert(!fixed || l == number);
      ck_assert_int_eq(at(printed, value), l);
    } while (next(value));
  }
  ck_assert_uint_gt(read, 2000);
  ck_assert_uint_gt(said, 100);
  ck_assert_uint_gt(same, 20);
}
END_TEST

/* "T*B + T - 1", as it is read. */
static size_sum read(const rule_term *t) {
  size_sum x;
  ck_assert(size_read(space, t, &names, &x));
  return x;
}

static const rule_term *two(const char *op, const rule_term *x, const rule_term *y) {
  const rule_term *child[2] = {x, y};
  return rule_expr(&a, op, child, 2);
}

START_TEST(what_has_to_be_seen) {
  const rule_term *t = rule_name(&a, "T"), *b = rule_name(&a, "B"), *one = rule_int(&a, 1);
  const size_sum zero = size_number(0), tb = read(two("*", t, b)), bt = read(two("*", b, t)),
                 less = read(two("-", t, one)), product = read(two("-", two("*", t, b), t));
  ck_assert(size_equal(&tb, &bt));
  ck_assert(size_at_least(space, &less, &zero, 0));
  ck_assert(!size_at_least(space, &less, &zero, 1));   /* T may be 1 */
  ck_assert(size_at_least(space, &product, &zero, 1)); /* B is 2 at least */
  const size_sum room = read(two("-", rule_int(&a, 5), b)),
                 end = read(two("bound", rule_int(&a, INT64_MAX), t)),
                 last = read(two("wrap", rule_int(&a, -1), t)), size = read(t);
  ck_assert(size_at_least(space, &room, &zero, 0)); /* B is 5 at most */
  ck_assert(size_equal(&end, &size));
  ck_assert(size_equal(&last, &less));
  size_sum none;
  ck_assert(!size_read(space, two("wrap", two("-", t, rule_int(&a, 3)), t), &names, &none));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("synth/sizes");
  TCase *t = tcase_create("sizes");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, what_is_said_holds);
  tcase_add_test(t, what_has_to_be_seen);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
