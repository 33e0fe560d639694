/* Masks read as minus infinity: drawn masks held against a plain search of their rows; every way
 * that a mask may take through a capture; the reading of a term then; and numbers beside it. */
#include <check.h>
#include <float.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

enum { ROWS = 3, COLUMNS = 4 };

/* ---- operators beside the small ones ---- */

static rule_tensor *filled(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *x = bind[call->child[0]->u.i], *where = bind[call->child[1]->u.i];
  rule_tensor *r = make(x->shape);
  for (int64_t i = 0; i < r->numel; i++)
    rule_tensor_set(
        r, i, rule_tensor_get(where, i) != 0 ? number(call->child[2]) : rule_tensor_get(x, i));
  return r;
}

/* parameters: those of rule_oracle.call. */
static iso_code masks_run(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                          rule_tensor **out, size_t cap, size_t *n_out, iso_error *e) {
  if (strcmp(call->u.s, "aten::masked_fill.Scalar") != 0)
    return small_run(ctx, call, bind, float64, out, cap, n_out, e);
  *n_out = 1;
  out[0] = filled(call, bind);
  return ISO_OK;
}
static const rule_oracle masks_oracle = {.call = masks_run, .compare = small_compare};

/* ---- captures with a mask ---- */

/* Numbers that are masks of their dtype. */
static const double least[] = {-65504, -FLT_MAX, -FLT_MAX / 2, -1.7e38, -0x1.fep127, -DBL_MAX};
static const rule_dtype least_of[] = {RULE_F16, RULE_F32, RULE_F32, RULE_BF16, RULE_BF16, RULE_F64};
enum { KINDS = sizeof least / sizeof *least };

static rule_tensor *mask_of(rule_dtype d, double hidden, const bool *hides) {
  rule_tensor *t = keep(make_as(d, SHAPE(ROWS, COLUMNS)));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, hides[i] ? hidden : 0);
  return t;
}
static const bool one_each[ROWS * COLUMNS] = {true,  false, false, false, false, true,
                                              false, false, false, false, true,  false};

static uint32_t weigh(int s, uint32_t scores, int64_t dim, rule_dtype d) {
  const rule_term *arg[] = {v(scores), num(dim), rule_none(&report.arena)};
  return shaped(s, rule_op(&report.arena, "aten::softmax.int", arg, 3), d, SHAPE(ROWS, COLUMNS));
}
static uint32_t over(int s, const char *name, uint32_t x, const rule_term *y, rule_dtype d) {
  const rule_term *arg[] = {v(x), y};
  return shaped(s, rule_op(&report.arena, name, arg, y ? 2 : 1), d, SHAPE(ROWS, COLUMNS));
}

/* The scores and the mask, added. Returns: the sum, node 2. */
static uint32_t masked(int s, cap_kind kind, rule_tensor *mask, rule_dtype d) {
  leaf(s, CAP_INPUT, "scores", keep(make_as(d, SHAPE(ROWS, COLUMNS))));
  leaf(s, kind, "mask", mask);
  return shaped(s, CALL("aten::add.Tensor", v(0), v(1), num(1)), d, SHAPE(ROWS, COLUMNS));
}

static void ask(uint32_t y) {
  k.oracle = &masks_oracle;
  leaf(RIGHT, CAP_INPUT, "scores", side[LEFT].node[0].value);
  result(LEFT, "y", y);
  result(RIGHT, "y", 0);
  add_captures();
  begin();
}

/* Whether the masks of this kind may be read. */
static bool taken(int kind) {
  k.mask.reads[kind] = true;
  const bool fine = accepted(chk_find_masks(&k));
  ck_assert_uint_eq(k.used.n, fine);
  if (fine) ck_assert_int_eq(k.used.assumption[0].kind, RULE_ASSUMES_LITERAL);
  return fine;
}

/* ---- rows ---- */

static bool each_keeps_one(const bool *hides, bool along_rows) {
  for (int i = 0; i < (along_rows ? ROWS : COLUMNS); i++) {
    bool keeps = false;
    for (int j = 0; j < (along_rows ? COLUMNS : ROWS); j++)
      keeps |= !hides[along_rows ? i * COLUMNS + j : j * COLUMNS + i];
    if (!keeps) return false;
  }
  return true;
}

START_TEST(a_mask_is_read_where_every_row_keeps_a_number) {
  static const int64_t dims[] = {-1, 1, 0, -2};
  size_t n_taken = 0, n_refused = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    bool hides[ROWS * COLUMNS], any = false;
    for (int i = 0; i < ROWS * COLUMNS; i++) any |= hides[i] = iso_rng_below(&rng, 3) > seed % 2;
    const size_t kind = seed % KINDS, dim = seed / KINDS % 4;
    const rule_dtype d = least_of[kind];
    setup();
    const uint32_t sum = masked(LEFT, CAP_BUFFER, mask_of(d, least[kind], hides), d);
    ask(weigh(LEFT, sum, dims[dim], d));
    const bool fine = any && each_keeps_one(hides, dim < 2);
    ck_assert_msg(taken(kind == 0 ? CHK_MASK_HALF : CHK_MASK_OTHER) == fine, "seed %d: %s",
                  (int)seed, report.reason);
    for (int64_t i = 0; fine && i < ROWS * COLUMNS; i++)
      ck_assert_double_eq(rule_tensor_get(k.here.konst[1].v[0], i), hides[i] ? -INFINITY : 0);
    if (fine) ck_assert(rule_term_eq(k.term[sum].call, side[LEFT].node[sum].call));
    n_taken += fine;
    n_refused += !fine;
    teardown();
  }
  ck_assert(n_taken > 500 && n_refused > 500);
}
END_TEST

/* Masks of another kind than the certificate says, and numbers that are no masks, are none. */
START_TEST(only_masks_of_the_kind_that_is_said_are_read) {
  for (size_t i = 0; i < KINDS; i++)
    for (int none = 0; none < 2; none++)
      for (int kind = 0; kind < CHK_MASK_KINDS; kind++) {
        const double x = none ? (i == 0 ? -65472 : -1.6e38) : least[i];
        const rule_dtype d = least_of[i];
        setup();
        ask(weigh(LEFT, masked(LEFT, CAP_BUFFER, mask_of(d, x, one_each), d), -1, d));
        ck_assert_msg(taken(kind) == (!none && (i == 0) == (kind == CHK_MASK_HALF)), "%zu, %d, %d",
                      i, none, kind);
        teardown();
      }
}
END_TEST

/* A mask that is drawn hides no known elements: one of inputs that are not kept, of parameters, or
 * of leaves that are parameters on the other side. */
START_TEST(a_mask_has_to_stay_as_it_was_captured) {
  static const cap_kind kinds[] = {CAP_BUFFER, CAP_CONSTANT, CAP_PARAMETER,
                                   CAP_INPUT,  CAP_INPUT,    CAP_BUFFER};
  for (size_t i = 0; i < 6; i++) {
    setup();
    ask(weigh(LEFT, masked(LEFT, kinds[i], mask_of(RULE_F32, -FLT_MAX, one_each), RULE_F32), -1,
              RULE_F32));
    if (i == 4) fixed[k.cert.n_fixed++] = 1;
    if (i == 5) k.here.unpinned[1] = true;
    ck_assert_msg(taken(CHK_MASK_OTHER) == (i < 2 || i == 4), "%zu: %s", i, report.reason);
    teardown();
  }
}
END_TEST

/* ---- ways ---- */

/* The sum of scores and mask after a step, and then into a call that ends the mask or does not. */
START_TEST(a_mask_is_followed_to_where_it_vanishes) {
  static const struct {
    const char *way, *end;
    bool fine;
  } c[] = {{NULL, "softmax", true},          {NULL, "aten::exp", true},
           {NULL, "aten::sigmoid", false},   {NULL, NULL, false},
           {NULL, "aten::relu", false},      {NULL, "aten::isinf", false},
           {"aten::alias", "softmax", true}, {"aten::alias", "aten::exp", true},
           {"aten::alias", NULL, false},     {"aten::neg", "softmax", false},
           {"aten::relu", "softmax", false}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int beside = 0; beside < 3; beside++) {
      setup();
      uint32_t y = masked(LEFT, CAP_BUFFER, mask_of(RULE_F32, -FLT_MAX, one_each), RULE_F32);
      const uint32_t sum = y;
      if (c[i].way) y = over(LEFT, c[i].way, y, NULL, RULE_F32);
      if (c[i].end)
        y = strcmp(c[i].end, "softmax") == 0 ? weigh(LEFT, y, -1, RULE_F32)
                                             : over(LEFT, c[i].end, y, NULL, RULE_F32);
      /* Another use counts where an output needs it. */
      const uint32_t more = over(LEFT, "aten::neg", sum, NULL, RULE_F32);
      if (beside == 2) result(LEFT, "more", more);
      if (beside == 1) result(LEFT, "again", y);
      ask(y);
      ck_assert_msg(taken(CHK_MASK_OTHER) == (c[i].fine && beside < 2), "%s, %s, %d: %s", c[i].way,
                    c[i].end, beside, report.reason);
      teardown();
    }
}
END_TEST

/* A factor other than 1 moves a mask; a call that cannot be run is not followed. */
START_TEST(what_changes_a_mask_is_refused) {
  for (int factor = 0; factor < 4; factor++) {
    setup();
    leaf(LEFT, CAP_INPUT, "scores", keep(make_as(RULE_F32, SHAPE(ROWS, COLUMNS))));
    leaf(LEFT, CAP_BUFFER, "mask", mask_of(RULE_F32, -FLT_MAX, one_each));
    const uint32_t sum = shaped(LEFT, CALL("aten::add.Tensor", v(0), v(1), num(factor)), RULE_F32,
                                SHAPE(ROWS, COLUMNS));
    ask(weigh(LEFT, sum, -1, RULE_F32));
    ck_assert_msg(taken(CHK_MASK_OTHER) == (factor == 1), "%d: %s", factor, report.reason);
    teardown();
  }
  setup();
  const uint32_t sum = masked(LEFT, CAP_BUFFER, mask_of(RULE_F32, -FLT_MAX, one_each), RULE_F32);
  ask(weigh(LEFT, over(LEFT, "aten::tril", sum, num(0), RULE_F32), -1, RULE_F32));
  ck_assert(!taken(CHK_MASK_OTHER));
  teardown();
}
END_TEST

/* ---- literals ---- */

/* A call that writes a mask is read as one that writes minus infinity, on each set anew. */
START_TEST(a_call_that_writes_a_mask_is_read_as_writing_infinity) {
  for (size_t kind = 0; kind < KINDS; kind++)
    for (int all = 0; all < 2; all++) {
      const rule_dtype d = least_of[kind];
      bool hides[ROWS * COLUMNS];
      for (int i = 0; i < ROWS * COLUMNS; i++) hides[i] = all ? i < COLUMNS : one_each[i];
      setup();
      leaf(LEFT, CAP_INPUT, "scores", keep(make_as(d, SHAPE(ROWS, COLUMNS))));
      leaf(LEFT, CAP_BUFFER, "where", mask_of(RULE_BOOL, 1, hides));
      const rule_term *arg[] = {v(0), v(1), rule_float(&report.arena, least[kind])};
      const uint32_t y = shaped(LEFT, rule_op(&report.arena, "aten::masked_fill.Scalar", arg, 3), d,
                                SHAPE(ROWS, COLUMNS));
      ask(weigh(LEFT, y, -1, d));
      for (int turn = 0; turn < 2; turn++) {
        k.used.n = 0;
        ck_assert_msg(taken(kind == 0 ? CHK_MASK_HALF : CHK_MASK_OTHER) == !all, "%zu: %s", kind,
                      report.reason);
        if (all) break;
        ck_assert(k.term[y].call->child[2]->u.f == -INFINITY);
        ck_assert(rule_term_eq(k.term[y].call->child[0], arg[0]));
        ck_assert(k.mask.unread[y]->child[2]->u.f == least[kind]);
      }
      teardown();
    }
}
END_TEST

/* ---- masks that constants are computed to ---- */

/* A mask on side `s`, as calls on constants make it: turned from its negative; moved; added to. */
enum { TURNED, MOVED, ADDED, LOST, MADES };

static uint32_t made(int s, int how) {
  const rule_dtype d = RULE_F64;
  leaf(s, CAP_INPUT, "scores", keep(make_as(d, SHAPE(ROWS, COLUMNS))));
  leaf(s, CAP_BUFFER, "m", mask_of(d, how == TURNED ? 3e38 : -3e38, one_each));
  if (how == TURNED || how == MOVED)
    return over(s, how == TURNED ? "aten::neg" : "aten::alias", 1, NULL, d);
  leaf(s, CAP_BUFFER, "zeros", keep(make_as(d, SHAPE(ROWS, COLUMNS))));
  /* Half of it, once more, is none that the call has put there. */
  for (int64_t i = 0; how == LOST && i < ROWS * COLUMNS; i++)
    rule_tensor_set(side[s].node[2].value, i, one_each[i] ? 2e38 : 0);
  return shaped(s, CALL("aten::add.Tensor", v(1), v(2), num(1)), d, SHAPE(ROWS, COLUMNS));
}

START_TEST(what_constants_give_is_read_by_its_value_where_no_call_says_it) {
  for (int how = 0; how < MADES; how++)
    for (int s = 0; s < 2; s++)
      for (int drawn = 0; drawn < 2; drawn++) {
        setup();
        k.oracle = &masks_oracle;
        const uint32_t m = made(s, how);
        if (drawn) side[s].node[1].kind = CAP_PARAMETER;
        const uint32_t sum =
            shaped(s, CALL("aten::add.Tensor", v(0), v(m), num(1)), RULE_F64, SHAPE(ROWS, COLUMNS));
        result(s, "y", weigh(s, sum, -1, RULE_F64));
        result(!s, "y", leaf(!s, CAP_INPUT, "scores", side[s].node[0].value));
        add_captures();
        begin();
        const rule_term *before = k.term[at(s, m)].call;
        ck_assert_msg(taken(CHK_MASK_OTHER) == (!drawn && how != LOST), "%d, %d, %d: %s", how, s,
                      drawn, report.reason);
        if (how == LOST && !drawn)
          ck_assert_ptr_nonnull(strstr(report.reason, s == LEFT ? "left's" : "right's"));
        if (!drawn && how == TURNED) {
          ck_assert_str_eq(k.term[at(s, m)].call->u.s, "isomer::mask");
          ck_assert_int_eq(k.term[at(s, m)].call->child[0]->u.i, at(s, m));
          for (int64_t i = 0; i < ROWS * COLUMNS; i++)
            ck_assert_double_eq(fabs(rule_tensor_get(k.here.konst[at(s, m)].v[0], i)),
                                one_each[i] ? INFINITY : 0);
        } else {
          ck_assert_ptr_eq(k.term[at(s, m)].call, before);
        }
        teardown();
      }
}
END_TEST

/* ---- numbers beside ---- */

/* Numbers as large as `most` beside a mask that the certificate, or a rule of it, reads. */
static bool far_enough(size_t kind, double most, bool rule_reads, bool *near) {
  const rule_dtype d = least_of[kind];
  rule_set *set = NULL;
  setup();
  if (rule_reads) {
    static const char text[] =
        "(rule a (var x f (3)) (lhs (aten::add.Scalar x -3.4e38 1)) (rhs x))";
    ck_assert_msg(rule_set_parse(text, SIZE_MAX, "rule", &set, &err) == ISO_OK, "%s", err.msg);
    k.rules.rule = &set;
    k.rules.n = 1;
  }
  ask(weigh(LEFT, masked(LEFT, CAP_BUFFER, mask_of(d, least[kind], one_each), d), -1, d));
  k.mask.reads[kind == 0 ? CHK_MASK_HALF : CHK_MASK_OTHER] = !rule_reads;
  ck_assert(accepted(chk_find_masks(&k)));
  rule_tensor *x = make(SHAPE(ROWS, COLUMNS));
  rule_tensor_set(x, 5, most);
  k.here.real[0].v = calloc(1, sizeof *k.here.real[0].v);
  k.here.real[0].v[0] = x;
  k.here.real[0].n = 1;
  const bool fine = accepted(chk_near_masks(&k));
  *near = k.mask.near;
  teardown();
  rule_set_free(set);
  return fine;
}

START_TEST(numbers_beside_a_mask_have_to_be_far_from_it) {
  bool near;
  for (size_t kind = 0; kind < KINDS; kind++) {
    const double most = kind == 0 ? 65504.0 / 4 : 1e30;
    for (int sign = -1; sign < 2; sign += 2) {
      ck_assert(far_enough(kind, sign * most, false, &near) && !near);
      ck_assert(!far_enough(kind, sign * most * 1.01, false, &near));
    }
    ck_assert(!far_enough(kind, NAN, false, &near));
    if (kind == 0) { /* infinities are masks of their own beside other dtypes' alone */
      ck_assert(!far_enough(kind, -INFINITY, false, &near));
      continue;
    }
    ck_assert(far_enough(kind, -INFINITY, false, &near));
    ck_assert(far_enough(kind, most, true, &near) && !near);
    ck_assert(far_enough(kind, most * 1.01, true, &near) && near);
  }
}
END_TEST

/* Numbers of the mask's own tensor stand beside its masks, too. */
START_TEST(numbers_of_the_mask_itself_have_to_be_far_from_it) {
  static const double number[] = {1e30, 1.01e30, -1.01e30, -INFINITY, NAN};
  for (size_t n = 0; n < sizeof number / sizeof *number; n++)
    for (int64_t i = 0; i < ROWS * COLUMNS; i += 11) {
      setup();
      rule_tensor *mask = mask_of(RULE_F64, -DBL_MAX, one_each);
      rule_tensor_set(mask, i ? i : 1, number[n]);
      ask(weigh(LEFT, masked(LEFT, CAP_BUFFER, mask, RULE_F64), -1, RULE_F64));
      ck_assert(taken(CHK_MASK_OTHER));
      k.here.real[0].v = calloc(1, sizeof *k.here.real[0].v);
      k.here.real[0].v[0] = make(SHAPE(ROWS, COLUMNS));
      k.here.real[0].n = 1;
      ck_assert_msg(accepted(chk_near_masks(&k)) == (n == 0 || n == 3), "%zu", n);
      teardown();
    }
}
END_TEST

/* Nothing is looked for where neither the certificate nor a rule of it reads masks. */
START_TEST(captures_are_left_alone_where_nothing_reads_masks) {
  setup();
  ask(weigh(LEFT, masked(LEFT, CAP_BUFFER, mask_of(RULE_F32, -FLT_MAX, one_each), RULE_F32), -1,
            RULE_F32));
  ck_assert(accepted(chk_find_masks(&k)) && accepted(chk_near_masks(&k)));
  ck_assert(!k.mask.found && !k.mask.unread && k.used.n == 0 && !k.mask.near);
  ck_assert(rule_tensor_get(k.here.konst[1].v[0], 0) == (double)-FLT_MAX);
  teardown();
}
END_TEST

int main(void) {
  Suite *s = suite_create("masks");
  TCase *t = tcase_create("masks");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_mask_is_read_where_every_row_keeps_a_number);
  tcase_add_test(t, only_masks_of_the_kind_that_is_said_are_read);
  tcase_add_test(t, a_mask_has_to_stay_as_it_was_captured);
  tcase_add_test(t, a_mask_is_followed_to_where_it_vanishes);
  tcase_add_test(t, what_changes_a_mask_is_refused);
  tcase_add_test(t, a_call_that_writes_a_mask_is_read_as_writing_infinity);
  tcase_add_test(t, what_constants_give_is_read_by_its_value_where_no_call_says_it);
  tcase_add_test(t, numbers_beside_a_mask_have_to_be_far_from_it);
  tcase_add_test(t, numbers_of_the_mask_itself_have_to_be_far_from_it);
  tcase_add_test(t, captures_are_left_alone_where_nothing_reads_masks);
  suite_add_tcase(s, t);
  return run_suite(s);
}
