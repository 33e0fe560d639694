/* The checker's arithmetic of sizes, drawn: statements about sums (equal, at least, a number) are
 * compared with their values at every point of a box of the symbols' ranges, and so are their
 * printed forms. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "check/sizes/sums.h"
#include "egraph/base/rng.h"
#include "tests/support/suite.h"

enum { SYMBOLS = 3, BOX = 7 };

static iso_arena a;
static chk_atoms atoms, fresh;
static chk_sum symbol[SYMBOLS];
static const char *const name[] = {"T", "B", "n"};
static const int64_t least[] = {1, 2, 0}, most[] = {INT64_MAX, 5, INT64_MAX};

static void setup(void) {
  iso_arena_init(&a);
  fresh = (chk_atoms){0};
  for (int i = 0; i < SYMBOLS; i++)
    ck_assert(chk_atom_symbol(&fresh, name[i], least[i], most[i], &symbol[i]));
}
static void teardown(void) { iso_arena_fini(&a); }

static const chk_sum *sum_of(const void *ctx, const char *s) {
  (void)ctx;
  for (int i = 0; i < SYMBOLS; i++)
    if (strcmp(name[i], s) == 0) return &symbol[i];
  return NULL;
}
static const chk_meaning names = {sum_of, NULL};

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

/* The value of an expression, by the definitions of docs/capture-format.md. */
static int64_t at(const rule_term *t, const int64_t *value) {
  if (t->kind == RULE_INT) return t->u.i;
  for (int i = 0; t->kind == RULE_NAME; i++)
    if (strcmp(name[i], t->u.s) == 0) return value[i];
  int64_t x = at(t->child[0], value);
  for (uint32_t i = 1; i < t->n; i++) {
    const int64_t y = at(t->child[i], value);
    const char *op = t->u.s;
    int64_t down = strstr("//%", op) ? x / y : 0, place = x < 0 ? x + y : x;
    if (strstr("//%", op) && x % y < 0) down--;
    if (strcmp(op, "+") == 0) x += y;
    else if (strcmp(op, "-") == 0) x -= y;
    else if (strcmp(op, "*") == 0) x *= y;
    else if (strcmp(op, "//") == 0) x = down;
    else if (strcmp(op, "%") == 0) x -= y * down;
    else if (strcmp(op, "min") == 0) x = x < y ? x : y;
    else if (strcmp(op, "max") == 0) x = x > y ? x : y;
    else if (strcmp(op, "wrap") == 0) x = place;
    else x = place < 0 ? 0 : place > y ? y : place;
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

START_TEST(what_is_said_holds) {
  iso_rng r = iso_rng_new(23, 0);
  size_t read = 0, above = 0, same = 0, printed = 0;
  for (int k = 0; k < 3000; k++) {
    const rule_term *t[2] = {drawn(&r, 3), drawn(&r, 2)};
    const int64_t by = (int64_t)iso_rng_below(&r, 5) - 2;
    int64_t value[CHK_ATOMS] = {0}, number, x, y;
    chk_sum s[2];
    atoms = fresh;
    if (!chk_sum_read(&atoms, t[0], &names, &s[0]) || !chk_sum_read(&atoms, t[1], &names, &s[1]))
      continue;
    const bool equal = chk_sum_equal(&s[0], &s[1]), fixed = chk_sum_is_number(&s[0], &number),
               more = chk_sum_at_least(&atoms, &s[0], &s[1], by);
    const rule_term *as = chk_sum_term(&atoms, &s[0], &a);
    read++, above += more, same += equal, printed += as != NULL;
    memcpy(value, least, sizeof least);
    do {
      const bool fine = chk_sum_at(&atoms, &s[0], value, &x) &&
                        chk_sum_at(&atoms, &s[1], value, &y) && x == at(t[0], value) &&
                        y == at(t[1], value) && (!equal || x == y) && (!more || x >= y + by) &&
                        (!fixed || x == number) && (!as || at(as, value) == x);
      if (!fine) ck_abort_msg("draw %d", k);
    } while (next(value));
  }
  ck_assert_uint_gt(read, 1500);
  ck_assert_uint_gt(above, 80);
  ck_assert_uint_gt(same, 15);
  ck_assert_uint_gt(printed, 700);
}
END_TEST

/* Products and numbers that do not fit are not said, and never wrong. */
START_TEST(what_is_too_large_is_not_said) {
  const rule_term *t = rule_name(&a, "T"), *big = rule_int(&a, INT64_MAX), *two[2] = {big, t},
                  *x = rule_expr(&a, "*", two, 2);
  chk_sum s;
  atoms = fresh;
  ck_assert(chk_sum_read(&atoms, x, &names, &s));
  two[0] = two[1] = x;
  ck_assert(!chk_sum_read(&atoms, rule_expr(&a, "*", two, 2), &names, &s));
  ck_assert(!chk_sum_read(&atoms, rule_expr(&a, "+", two, 2), &names, &s));
  const rule_term *power = t;
  for (int i = 0; i < CHK_DEGREE; i++) {
    const rule_term *by[2] = {power, t};
    power = rule_expr(&a, "*", by, 2);
  }
  ck_assert(!chk_sum_read(&atoms, power, &names, &s));
}
END_TEST

int main(void) {
  Suite *s = suite_create("check, sizes");
  TCase *t = tcase_create("sums");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, what_is_said_holds);
  tcase_add_test(t, what_is_too_large_is_not_said);
  suite_add_tcase(s, t);
  return run_suite(s);
}
