/* Many e-nodes and equations at once against one after another: the same ids, small tables and
 * tables that no cache holds. */
#include <check.h>
#include <stdlib.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "tests/egraph/sat_api.h"
#include "tests/support/suite.h"

enum { LEAVES = 50, N_OPS = 4 };

typedef struct side {
  eg_sat *s;
  eg_class *made;
} side;

static void begin(side *x, size_t n, eg_op *leaf, eg_op *op) {
  x->s = graph(false);
  x->made = malloc(n * sizeof *x->made);
  for (int i = 0; i < LEAVES; i++) {
    const char name[2] = {(char)('0' + i), 0};
    ck_assert_int_eq(eg_sat_op(x->s, name, 1, 0, &leaf[i], NULL), ISO_OK);
  }
  for (int i = 0; i < N_OPS; i++)
    ck_assert_int_eq(eg_sat_op(x->s, "fghk" + i, 1, (size_t)i + 1, &op[i], NULL), ISO_OK);
}

/* Children lie anywhere before, often just before: in the same batch, not there when it is asked
 * for ahead. */
static void draw(iso_rng *r, size_t i, const eg_op *leaf, const eg_op *op, eg_addition *a,
                 uint32_t *kid) {
  if (i < LEAVES) {
    *a = (eg_addition){leaf[i], NULL};
    return;
  }
  const size_t n = iso_rng_below(r, N_OPS);
  const bool near = iso_rng_below(r, 3) == 0;
  for (size_t k = 0; k <= n; k++)
    kid[k] = (uint32_t)(near && i > 20 ? i - 1 - iso_rng_below(r, 20) : iso_rng_below(r, i));
  *a = (eg_addition){op[n], kid};
}

static void expect_same(const side *x, const side *y, size_t n) {
  iso_error err;
  ck_assert_msg(!eg_sat_check(x->s, &err), "%s", err.msg);
  ck_assert_uint_eq(eg_sat_count_nodes(x->s), eg_sat_count_nodes(y->s));
  ck_assert_uint_eq(eg_sat_count_classes(x->s), eg_sat_count_classes(y->s));
  for (size_t i = 0; i < n; i++)
    ck_assert_uint_eq(eg_sat_find(x->s, x->made[i]).i, eg_sat_find(y->s, y->made[i]).i);
}

static void both_ways(uint64_t seed, size_t n, size_t block) {
  iso_rng r = iso_rng_new(seed, 3);
  eg_op leaf[LEAVES], op[N_OPS];
  side x, y;
  eg_addition *a = malloc(n * sizeof *a);
  uint32_t(*kid)[N_OPS] = malloc(n * sizeof *kid);
  eg_equation *e = malloc(n * sizeof *e);
  begin(&x, n, leaf, op);
  begin(&y, n, leaf, op);
  for (size_t i = 0; i < n; i++) draw(&r, i, leaf, op, &a[i], kid[i]);
  for (size_t i = 0; i < n; i += block) {
    const size_t k = n - i < block ? n - i : block;
    ck_assert_int_eq(eg_sat_add_all(x.s, a + i, k, x.made, i, NULL), ISO_OK);
  }
  for (size_t i = 0; i < n; i++) {
    eg_class child[N_OPS];
    for (size_t k = 0; k < eg_sat_op_arity(y.s, a[i].op); k++) child[k] = y.made[a[i].child[k]];
    ck_assert_int_eq(eg_sat_add(y.s, a[i].op, child, &y.made[i], NULL), ISO_OK);
  }
  expect_same(&x, &y, n);
  for (size_t i = 0; i < n / 8; i++)
    e[i] = (eg_equation){x.made[iso_rng_below(&r, n)], x.made[iso_rng_below(&r, n)]};
  ck_assert_int_eq(eg_sat_merge_all(x.s, e, n / 8, (eg_why){1, 0}, NULL), ISO_OK);
  for (size_t i = 0; i < n / 8; i++)
    ck_assert_int_eq(eg_sat_merge(y.s, e[i].a, e[i].b, (eg_why){1, 0}, NULL), ISO_OK);
  ck_assert(!eg_sat_rebuild(x.s, NULL) && !eg_sat_rebuild(y.s, NULL));
  expect_same(&x, &y, n);
  free(a), free(kid), free(e), free(x.made), free(y.made);
  eg_sat_free(x.s);
  eg_sat_free(y.s);
}

START_TEST(small_ones) {
  both_ways((uint64_t)_i, LEAVES + 1 + (size_t)_i * 13, 1 + (size_t)_i % 9);
}
END_TEST
START_TEST(large_ones) { both_ways(7 + (uint64_t)_i, 400000, _i ? 100000 : 33); }
END_TEST

int main(void) {
  Suite *suite = suite_create("sat_bulk");
  TCase *t = tcase_create("bulk");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, small_ones, 0, 100);
  tcase_add_loop_test(t, large_ones, 0, 2);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
