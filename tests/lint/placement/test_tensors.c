/* Tensors that ranks hold, cut and put together, against parts that are made element by element. */
#include "tests/lint/placement/ranks.h"
#include "tests/support/suite.h"

enum { SEEDS = 600 };

static void shapes_of(rule_tensor *const *each, rule_shape *out) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) out[r] = each[r]->shape;
}

/* Where sums are cut in any way, they are cut right and not each the whole. */
START_TEST(a_cut_tensor_is_what_the_ranks_hold) {
  size_t sums = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    begin_at_random(&rng);
    rule_shape s, shape[PLC_RANKS];
    plc_place p = draw_place(&rng, false, &s);
    rule_tensor *each[PLC_RANKS], *out[PLC_RANKS], *whole = noise(&rng, s);
    if (iso_rng_below(&rng, 3) == 0) p.scale = 2;
    make_parts(&rng, whole, &p, each);
    shapes_of(each, shape);
    ck_assert(plc_cut(&ranks, whole, &p, shape, seed, out));
    for (uint32_t r = 0; r < ranks.mesh.n; r++) keep(out[r]);
    ck_assert_msg(are_parts(out, whole, &p), "seed %d: %s", (int)seed,
                  plc_print(&ranks, &p, &report));
    for (uint32_t r = 0; r < ranks.mesh.n && plc_has(&ranks, &p, PLC_P); r++)
      ck_assert(!equal(out[r], part_of(whole, &p, r), p.scale)), sums++;
    end();
  }
  ck_assert_uint_gt(sums, 100);
}
END_TEST

START_TEST(parts_together_are_the_whole) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    begin_at_random(&rng);
    rule_shape s, shape[PLC_RANKS];
    plc_place p = draw_place(&rng, false, &s);
    rule_tensor *each[PLC_RANKS], *whole = noise(&rng, s);
    if (iso_rng_below(&rng, 3) == 0) p.scale = 3;
    make_parts(&rng, whole, &p, each);
    shapes_of(each, shape);
    ck_assert(plc_shapes_fit(&ranks, shape, &p, &s));
    rule_tensor *t = plc_combine(&ranks, each, &p, 0);
    ck_assert_msg(t && equal(keep(t), whole, p.scale), "seed %d: %s", (int)seed,
                  plc_print(&ranks, &p, &report));
    ck_assert(plc_holds(&ranks, each, whole, &p, 0));
    end();
  }
}
END_TEST

/* A number that is off in one rank's tensor, or a scale, is found. */
START_TEST(parts_of_another_whole_do_not_hold) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 3);
    begin_at_random(&rng);
    rule_shape s;
    plc_place p = draw_place(&rng, false, &s);
    rule_tensor *each[PLC_RANKS], *whole = noise(&rng, s);
    make_parts(&rng, whole, &p, each);
    rule_tensor *t = each[iso_rng_below(&rng, ranks.mesh.n)];
    const int64_t i = (int64_t)iso_rng_below(&rng, (uint64_t)t->numel);
    const double x = rule_tensor_get(t, i);
    rule_tensor_set(t, i, x + 1e-6);
    ck_assert(!plc_holds(&ranks, each, whole, &p, 0));
    ck_assert(plc_holds(&ranks, each, whole, &p, 1e-5)); /* below the floor */
    rule_tensor_set(t, i, x);
    p.scale = 2;
    ck_assert(!plc_holds(&ranks, each, whole, &p, 0));
    end();
  }
}
END_TEST

START_TEST(shapes_that_do_not_add_up_do_not_fit) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 4);
    begin_at_random(&rng);
    rule_shape s, shape[PLC_RANKS];
    const plc_place p = draw_place(&rng, true, &s);
    rule_tensor *each[PLC_RANKS], *whole = noise(&rng, s);
    make_parts(&rng, whole, &p, each);
    shapes_of(each, shape);
    const uint32_t d = (uint32_t)iso_rng_below(&rng, s.rank);
    s.dim[d]++;
    ck_assert(!plc_shapes_fit(&ranks, shape, &p, &s));
    s.dim[d]--;
    ck_assert(plc_shapes_fit(&ranks, shape, &p, &s));
    s.rank--;
    ck_assert(!plc_shapes_fit(&ranks, shape, &p, &s));
    end();
  }
}
END_TEST

/* Rows that do not divide: the first ranks have more. */
START_TEST(uneven_shards_lie_one_behind_the_other) {
  begin("a=3");
  plc_place p = plc_replica();
  p.axis[0] = (plc_one){.kind = PLC_S};
  iso_rng rng = iso_rng_new(1, 5);
  rule_tensor *whole = noise(&rng, SHAPE(5, 2)), *out[PLC_RANKS];
  const rule_shape shape[3] = {SHAPE(2, 2), SHAPE(2, 2), SHAPE(1, 2)};
  ck_assert(plc_cut(&ranks, whole, &p, shape, 0, out));
  for (int64_t i = 0; i < 10; i++)
    ck_assert(rule_tensor_get(out[i / 4], i % 4) == rule_tensor_get(whole, i));
  rule_tensor *t = plc_combine(&ranks, out, &p, 0);
  ck_assert(equal(keep(t), whole, 1));
  const rule_shape short_of[3] = {SHAPE(2, 2), SHAPE(1, 2), SHAPE(1, 2)};
  rule_tensor *none[PLC_RANKS];
  ck_assert(!plc_cut(&ranks, whole, &p, short_of, 0, none));
  for (int r = 0; r < 3; r++) {
    ck_assert_ptr_null(none[r]);
    keep(out[r]);
  }
  end();
}
END_TEST

START_TEST(the_largest_the_smallest_and_the_norm_of_parts) {
  static const struct {
    plc_reduce how;
    double whole;
  } of[] = {{PLC_SUM, 1}, {PLC_MAX, 4}, {PLC_MIN, -3}, {PLC_NORM, 5}};
  for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
    begin("a=2");
    plc_place p = plc_replica();
    p.axis[0] = (plc_one){.kind = PLC_P, .reduce = of[k].how};
    rule_tensor *each[2] = {make(SHAPE(1)), make(SHAPE(1))};
    rule_tensor_set(each[0], 0, 4);
    rule_tensor_set(each[1], 0, -3);
    rule_tensor *t = plc_combine(&ranks, each, &p, 0);
    ck_assert(t && fabs(rule_tensor_get(keep(t), 0) - of[k].whole) < 1e-12);
    end();
  }
}
END_TEST

/* Replicas that differ are no whole. */
START_TEST(replicas_are_all_the_same) {
  for (int differs = 0; differs < 2; differs++) {
    begin("a=2,b=2");
    const plc_place p = plc_replica();
    iso_rng rng = iso_rng_new(1, 6);
    rule_tensor *whole = noise(&rng, SHAPE(3)), *each[4];
    make_parts(&rng, whole, &p, each);
    if (differs) rule_tensor_set(each[3], 2, 7);
    rule_tensor *t = plc_combine(&ranks, each, &p, 0);
    ck_assert((t == NULL) == differs);
    if (t) keep(t);
    end();
  }
}
END_TEST

/* No number is near one, an infinity or a mask is only near itself. */
START_TEST(what_is_no_number_is_near_itself_alone) {
  static const double odd[] = {1, NAN, INFINITY, -INFINITY, 2e30, 3e30};
  begin("a=2");
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 6; k++) {
      rule_tensor *a = make(SHAPE(1)), *b = make(SHAPE(1));
      rule_tensor_set(a, 0, odd[i]);
      rule_tensor_set(b, 0, odd[k]);
      ck_assert_int_eq(plc_near(a, b, 1, 0, 0.5), i == k);
    }
  end();
}
END_TEST

START_TEST(blocks_share_a_size_that_they_divide) {
  static const struct {
    plc_one of;
    int64_t size, want[3];
    uint32_t n;
  } cases[] = {{{.blocks = 0}, 5, {5}, 1},
               {{.blocks = 3}, 6, {2, 2, 2}, 3},
               {{.blocks = 3}, 7, {0}, 0},
               {{.blocks = 2, .share = {2, 1}}, 9, {6, 3}, 2},
               {{.blocks = 3, .share = {2, 1, 1}}, 8, {4, 2, 2}, 3},
               {{.blocks = 2, .share = {2, 1}}, 8, {0}, 0}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    int64_t out[PLC_BLOCKS];
    ck_assert_uint_eq(plc_sections(&cases[k].of, cases[k].size, out), cases[k].n);
    for (uint32_t i = 0; i < cases[k].n; i++) ck_assert_int_eq(out[i], cases[k].want[i]);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("tensors");
  TCase *t = tcase_create("tensors");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_cut_tensor_is_what_the_ranks_hold);
  tcase_add_test(t, parts_together_are_the_whole);
  tcase_add_test(t, parts_of_another_whole_do_not_hold);
  tcase_add_test(t, shapes_that_do_not_add_up_do_not_fit);
  tcase_add_test(t, uneven_shards_lie_one_behind_the_other);
  tcase_add_test(t, the_largest_the_smallest_and_the_norm_of_parts);
  tcase_add_test(t, replicas_are_all_the_same);
  tcase_add_test(t, what_is_no_number_is_near_itself_alone);
  tcase_add_test(t, blocks_share_a_size_that_they_divide);
  suite_add_tcase(s, t);
  return run_suite(s);
}
