/* Where captures may be undefined, and which operators see it: drawn terms compared with their
 * values at poles; the numbers that are tried as poles; and the evidence that a certificate may
 * then claim. */
#include <check.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

static const rule_term *real(double x) { return rule_float(&report.arena, x); }
static uint32_t of(const char *name, const rule_term *a, const rule_term *b, rule_dtype d) {
  const rule_term *arg[] = {a, b};
  return shaped(LEFT, rule_op(&report.arena, name, arg, b ? 2 : 1), d, SHAPE(3));
}

/* The right side is x alone; the certificate claims that `y` of the left one equals it. */
static chk_poles poles_of(uint32_t y) {
  chk_poles p;
  rule_tensor *x = side[LEFT].node[0].value;
  leaf(RIGHT, CAP_INPUT, "x", x);
  result(LEFT, "y", y);
  result(RIGHT, "y", 0);
  add_captures();
  begin();
  add_output("y", "y", y, at(RIGHT, 0));
  ck_assert(chk_poles_of(&k, &p) == ISO_OK);
  return p;
}

static uint32_t input(void) { return leaf(LEFT, CAP_INPUT, "x", keep(make(SHAPE(3)))); }
static rule_tensor *three(double a, double b, double c) {
  rule_tensor *t = keep(make(SHAPE(3)));
  const double x[] = {a, b, c};
  for (int i = 0; i < 3; i++) rule_tensor_set(t, i, x[i]);
  return t;
}

/* ---- against numbers ---- */

enum { TERMS = 5, TRIES = 60 };

/* A term over x, a constant and numbers. Returns: its node. */
static uint32_t draw_term(iso_rng *rng, uint32_t last) {
  for (int i = 0; i < TERMS; i++) {
    const uint32_t other = (uint32_t)iso_rng_below(rng, side[LEFT].g.n_nodes);
    const double number[] = {0, 1, -1, 2, 0.5};
    const rule_term *a = v(last),
                    *b = iso_rng_below(rng, 3) ? v(other) : real(number[iso_rng_below(rng, 5)]);
    switch (iso_rng_below(rng, 5)) {
    case 0: last = op(LEFT, CALL("aten::add.Tensor", a, b)); break;
    case 1: last = op(LEFT, CALL("aten::mul.Tensor", a, b)); break;
    case 2: last = op(LEFT, CALL("aten::div.Tensor", a, b)); break;
    case 3: last = op(LEFT, CALL("aten::relu", a)); break;
    default: last = op(LEFT, CALL("aten::neg", a));
    }
  }
  return last;
}

/* Whether some x, at numbers that are poles of such terms or beside them, makes it no number. */
static bool undefined_somewhere(uint32_t y, iso_rng *rng) {
  static const double at_poles[] = {0, 1, -1, 2, -2, 0.5, -0.5, 3};
  bool found = false;
  for (int n = 0; n < TRIES && !found; n++) {
    rule_tensor *value[MAX_NODES] = {make(SHAPE(3)), rule_tensor_ref(side[LEFT].node[1].value)};
    for (int64_t i = 0; i < 3; i++)
      rule_tensor_set(value[0], i,
                      iso_rng_below(rng, 3) ? at_poles[iso_rng_below(rng, 8)]
                                            : iso_rng_normal(rng));
    for (uint32_t i = 2; i <= y; i++) value[i] = run_op(side[LEFT].node[i].call, value);
    for (int64_t i = 0; i < 3; i++) found |= !isfinite(rule_tensor_get(value[y], i));
    for (uint32_t i = 0; i <= y; i++) rule_tensor_unref(value[i]);
  }
  return found;
}

/* The constant has numbers of one kind: none is 0; none is below 0; any. */
static rule_tensor *constant(iso_rng *rng, uint64_t kind) {
  const double z = iso_rng_below(rng, 2) ? 0 : 1.5;
  return kind == 0   ? three(1, -2, 0.5)
         : kind == 1 ? three(z, 2, 0.25)
         : kind == 2 ? three(3, 1, 2)
                     : three(-1, z, 2);
}

START_TEST(what_gives_no_number_somewhere_is_found_and_what_sees_it) {
  size_t n_undefined = 0, n_defined = 0;
  for (uint64_t seed = 0; seed < 4000; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    setup();
    input();
    leaf(LEFT, CAP_BUFFER, "c", constant(&rng, seed % 4));
    const uint32_t y = draw_term(&rng, 0);
    const bool undefined = undefined_somewhere(y, &rng), looks = seed % 3 == 0;
    const chk_poles p = poles_of(looks ? of("aten::isnan", v(y), NULL, RULE_BOOL) : y);
    if (undefined) ck_assert_msg(looks ? p.seen : p.apart, "seed %d", (int)seed);
    if (!looks) ck_assert_msg(!p.seen, "seed %d: nothing looks", (int)seed);
    if (looks) ck_assert_msg(!p.apart, "seed %d: true or false is defined", (int)seed);
    n_undefined += undefined;
    n_defined += looks ? !p.seen : !p.apart;
    teardown();
  }
  ck_assert_msg(n_undefined > 1000 && n_defined > 800, "%zu, %zu", n_undefined, n_defined);
}
END_TEST

/* ---- leaves ---- */

/* Whether 1 / leaf, and the root of it, may be no number. */
static bool undefined_over(cap_kind kind, rule_tensor *t, const char *name) {
  setup();
  input();
  leaf(LEFT, kind, "c", keep(t));
  const uint32_t y = strcmp(name, "aten::sqrt") == 0 ? of(name, v(1), NULL, RULE_F64)
                                                     : op(LEFT, CALL(name, v(0), v(1)));
  const bool apart = poles_of(y).apart;
  teardown();
  return apart;
}
static rule_tensor *filled(rule_dtype d, double a, double b) {
  rule_tensor *t = make_as(d, SHAPE(3));
  for (int64_t i = 0; i < 3; i++) rule_tensor_set(t, i, i == 1 ? b : a);
  return t;
}

START_TEST(constants_have_the_signs_of_their_numbers) {
  static const struct {
    double a, b;
    bool divides, has_root, adds;
  } c[] = {{1, 2, true, true, true},
           {-1, 2, true, false, true},
           {0, 2, false, true, true},
           {1, 0, false, true, true},
           {-1, 0, false, false, true},
           {1, NAN, false, false, false},
           {INFINITY, 1, false, false, false},
           {1, -INFINITY, false, false, true}}; /* a mask may be added */
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    const rule_dtype d = RULE_F64;
    const char *div = "aten::div.Tensor", *root = "aten::sqrt", *add = "aten::add.Tensor";
    ck_assert_msg(undefined_over(CAP_BUFFER, filled(d, c[i].a, c[i].b), div) != c[i].divides,
                  "div %zu", i);
    ck_assert_msg(undefined_over(CAP_BUFFER, filled(d, c[i].a, c[i].b), root) != c[i].has_root,
                  "sqrt %zu", i);
    ck_assert_msg(undefined_over(CAP_BUFFER, filled(d, c[i].a, c[i].b), add) != c[i].adds,
                  "add %zu", i);
    /* Of a parameter and an input nothing is known. */
    for (int kind = 0; kind < 2; kind++) {
      const cap_kind leaf_kind = kind ? CAP_INPUT : CAP_PARAMETER;
      ck_assert(undefined_over(leaf_kind, filled(d, 1, 2), div));
      ck_assert(undefined_over(leaf_kind, filled(d, 1, 2), root));
      ck_assert(!undefined_over(leaf_kind, filled(d, 1, 2), add));
    }
  }
  ck_assert(!undefined_over(CAP_INPUT, filled(RULE_BOOL, 0, 1), "aten::sqrt"));
  ck_assert(undefined_over(CAP_INPUT, filled(RULE_BOOL, 1, 1), "aten::div.Tensor"));
}
END_TEST

/* ---- what sees it ---- */

/* y = x / x behind `look`, whose result is of this dtype, then perhaps unused. */
static chk_poles seen_by(const char *look, rule_dtype d, bool used) {
  setup();
  input();
  const uint32_t q = of("aten::div.Tensor", v(0), v(0), RULE_F64), y = of(look, v(q), NULL, d);
  const chk_poles p = poles_of(used ? y : q);
  teardown();
  return p;
}

START_TEST(only_what_looks_at_numbers_and_is_needed_sees) {
  static const char *const look[] = {"aten::isnan", "aten::isinf", "aten::isfinite", "aten::argmax",
                                     "aten::nan_to_num"},
                           *const pass[] = {"aten::neg", "aten::exp", "aten::alias", "aten::relu"};
  for (size_t i = 0; i < sizeof look / sizeof *look; i++) {
    const rule_dtype d = i < 3 ? RULE_BOOL : i == 3 ? RULE_I64 : RULE_F64;
    ck_assert_msg(seen_by(look[i], d, true).seen, "%s", look[i]);
    ck_assert_msg(!seen_by(look[i], d, false).seen, "%s, unused", look[i]);
  }
  for (size_t i = 0; i < sizeof pass / sizeof *pass; i++) {
    const chk_poles p = seen_by(pass[i], RULE_F64, true);
    ck_assert_msg(!p.seen && p.apart, "%s", pass[i]);
  }
  /* Whole numbers and truth values are always defined: a call that makes one of NaN sees it. */
  ck_assert(seen_by("aten::neg", RULE_I64, true).seen);
  ck_assert(!seen_by("aten::neg", RULE_I64, true).apart);
  ck_assert(!seen_by("aten::neg", RULE_C64, true).seen);
}
END_TEST

/* A call that the certificate makes up is in no capture. */
START_TEST(terms_of_the_certificate_see_nothing) {
  setup();
  input();
  const uint32_t q = of("aten::div.Tensor", v(0), v(0), RULE_F64);
  leaf(RIGHT, CAP_INPUT, "x", side[LEFT].node[0].value);
  add_captures();
  const rule_term *arg = v(q);
  const uint32_t mine = own(rule_op(&report.arena, "aten::isnan", &arg, 1));
  begin();
  add_output("y", "y", mine, at(RIGHT, 0));
  chk_poles p;
  ck_assert(chk_poles_of(&k, &p) == ISO_OK && !p.seen);
  teardown();
}
END_TEST

/* ---- numbers that are tried ---- */

static bool tried(const chk_poles *p, double x) {
  for (size_t i = 0; i < p->n; i++)
    if (p->value[i] == x) return true;
  return false;
}
static bool all_tried(const chk_poles *p, double x) { return tried(p, x) && tried(p, -x); }

START_TEST(numbers_beside_operands_are_tried) {
  static const struct {
    const char *name;
    bool tried;
  } c[] = {{"aten::add.Scalar", true},  {"aten::sub.Scalar", true},
           {"aten::rsub.Scalar", true}, {"aten::gt.Scalar", true},
           {"aten::eq.Scalar", true},   {"aten::clamp_min", true},
           {"aten::mul.Scalar", false}, {"aten::div.Scalar", false},
           {"aten::clamp_max", false},  {"aten::pow.Tensor_Scalar", false}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int how = 0; how < 4; how++) {
      setup();
      input();
      const rule_term *n = how == 0 ? real(7.25) : how == 1 ? num(7) : how == 2 ? v(1) : v(2);
      leaf(LEFT, CAP_BUFFER, "c", keep(make((rule_shape){0})));
      rule_tensor_set(side[LEFT].node[1].value, 0, 7.5);
      leaf(LEFT, CAP_INPUT, "n", side[LEFT].node[1].value); /* what is drawn is no number */
      const chk_poles p = poles_of(of(c[i].name, v(0), n, RULE_F64));
      const double x = how == 0 ? 7.25 : how == 1 ? 7 : 7.5;
      ck_assert_msg(tried(&p, x) == (c[i].tried && how < 3), "%s, %d", c[i].name, how);
      ck_assert_msg(how >= 2 || all_tried(&p, x) == c[i].tried, "%s, %d", c[i].name, how);
      ck_assert(tried(&p, 0) && all_tried(&p, 1));
      ck_assert_uint_eq(p.n, 3 + (size_t)(c[i].tried ? how < 2 ? 2 : how == 2 : 0));
      teardown();
    }
}
END_TEST

START_TEST(numbers_are_tried_once_and_not_without_end) {
  setup();
  input();
  uint32_t y = 0;
  for (int i = 0; i < 20; i++) {
    const double x = i == 0 ? INFINITY : i == 1 ? 1e12 : i == 2 ? -1 : i == 3 ? 9e11 : i / 2 + 10;
    y = of("aten::add.Scalar", v(y), real(x), RULE_F64);
  }
  const chk_poles p = poles_of(y);
  ck_assert(all_tried(&p, 9e11) && !tried(&p, 1e12) && !tried(&p, INFINITY) && all_tried(&p, 12));
  ck_assert_uint_eq(p.n, 3 + 2 + 2 * 8);
  teardown();
  setup();
  input();
  for (y = 0; side[LEFT].g.n_nodes < MAX_NODES - 1;)
    y = of("aten::add.Scalar", v(y), num((int64_t)side[LEFT].g.n_nodes + 5), RULE_F64);
  ck_assert_uint_eq(poles_of(y).n, CHK_POLES);
  teardown();
}
END_TEST

/* ---- what a certificate may say ---- */

static const char *made_by; /* the operator whose result may be no number, or too large for one */
static chk_kind applied;    /* the certificate's one step */

/* That result, which is looked at, and a certificate that says so much, of a rule that was shown so
 * well. */
static bool weighed(const char *text, bool looks, rule_status says, rule_status shown, bool last,
                    rule_status *out) {
  rule_set *set;
  setup();
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "rule", &set, &err) == ISO_OK, "%s", err.msg);
  input();
  const uint32_t q = of(made_by, v(0), NULL, RULE_F64);
  k.rules.rule = &set;
  k.rules.n = 1;
  (void)poles_of(looks ? of("aten::nan_to_num", v(q), NULL, RULE_F64) : q);
  add_step(applied, 0, 0);
  k.cert.evidence = says;
  report.evidence = shown;
  const bool fine = accepted(chk_weigh_undefined(&k, last));
  *out = report.evidence;
  teardown();
  rule_set_free(set);
  return fine;
}

START_TEST(rules_that_see_what_may_be_no_number_are_tested_there) {
  static const char sees[] = "(rule a (var x f (3)) (lhs (aten::nan_to_num x)) (rhs x))",
                    right[] =
                        "(rule a (var x f (3)) (lhs (aten::alias x)) (rhs (aten::nan_to_num x)))",
                    none[] = "(rule a (var x f (3)) (lhs (aten::neg (aten::neg x))) (rhs x))";
  rule_status out;
  made_by = "aten::sqrt";
  applied = CHK_RULE;
  for (int side_of = 0; side_of < 2; side_of++) {
    const char *text = side_of ? right : sees;
    ck_assert(weighed(text, true, RULE_TESTED, RULE_PROVED, false, &out) && out == RULE_TESTED);
    ck_assert(weighed(text, true, RULE_TESTED, RULE_PROVED, true, &out) && out == RULE_TESTED);
    ck_assert(weighed(text, true, RULE_PROVED, RULE_PROVED, false, &out) && out == RULE_PROVED);
    ck_assert(!weighed(text, true, RULE_PROVED, RULE_PROVED, true, &out));
    ck_assert(weighed(text, true, RULE_PROVED, RULE_TESTED, true, &out) && out == RULE_TESTED);
    ck_assert(weighed(text, false, RULE_PROVED, RULE_PROVED, true, &out) && out == RULE_PROVED);
  }
  ck_assert(weighed(none, true, RULE_PROVED, RULE_PROVED, true, &out) && out == RULE_PROVED);
  /* No rule sees an overflow: where an operator does, a proved rule counts as tested. */
  made_by = "aten::exp";
  ck_assert(weighed(none, true, RULE_TESTED, RULE_PROVED, true, &out) && out == RULE_TESTED);
  ck_assert(!weighed(none, true, RULE_PROVED, RULE_PROVED, true, &out));
  ck_assert(weighed(none, false, RULE_PROVED, RULE_PROVED, true, &out) && out == RULE_PROVED);
  applied = CHK_SAME;
  ck_assert(weighed(none, true, RULE_PROVED, RULE_PROVED, true, &out) && out == RULE_PROVED);
}
END_TEST

/* An operator that tells infinities from numbers, on an operand that may have overflowed. */
START_TEST(what_tells_an_overflow_is_found) {
  static const struct {
    const char *of, *look;
    bool told;
  } c[] = {{"aten::exp", "aten::isinf", true},     {"aten::exp", "aten::isfinite", true},
           {"aten::exp", "aten::neg", false},      {"aten::sqrt", "aten::isinf", false},
           {"aten::neg", "aten::isinf", false},    {"aten::abs", "aten::nan_to_num", false},
           {"aten::exp", "aten::nan_to_num", true}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int used = 0; used < 2; used++) {
      setup();
      input();
      const uint32_t q = of(c[i].of, v(0), NULL, RULE_F64), y = of(c[i].look, v(q), NULL, RULE_F64);
      ck_assert_msg(poles_of(used ? y : q).told == (c[i].told && used), "%zu, %d", i, used);
      teardown();
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("undefined");
  TCase *t = tcase_create("undefined");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, what_gives_no_number_somewhere_is_found_and_what_sees_it);
  tcase_add_test(t, constants_have_the_signs_of_their_numbers);
  tcase_add_test(t, only_what_looks_at_numbers_and_is_needed_sees);
  tcase_add_test(t, terms_of_the_certificate_see_nothing);
  tcase_add_test(t, numbers_beside_operands_are_tried);
  tcase_add_test(t, numbers_are_tried_once_and_not_without_end);
  tcase_add_test(t, rules_that_see_what_may_be_no_number_are_tested_there);
  tcase_add_test(t, what_tells_an_overflow_is_found);
  suite_add_tcase(s, t);
  return run_suite(s);
}
