/* Steps of a whole, spread over the rows of ranks: each part is the step on the part's rows, their
 * concatenation is joined with the whole by rules of single operators, and what does not keep to
 * rows has no parts. */
#include "rules/names.h"
#include "synth/parts/parts.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 60, RANKS = 3, COLUMNS = 2 };

static int64_t own_rows[RANKS];
static uint32_t n_parts;
static int64_t n_rows;

static const rule_term *of(size_t i) { return v((uint32_t)i); }

/* Sizes that do not fit are libtorch's to refuse. parameters: those of rule_oracle.call. */
static iso_code run_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                         rule_tensor **out, size_t cap, size_t *n_out, iso_error *e) {
  const iso_code c = small_call(ctx, call, bind, float64, out, cap, n_out, e);
  return c == ISO_UNSUPPORTED ? ISO_TORCH : c;
}

/* Rows of so many ranks, put together. Returns: its place in node[]. */
static size_t begin(iso_rng *rng) {
  const rule_term *part[RANKS];
  begin_terms();
  oracle.call = run_call;
  oracle.decide = small_decide;
  n_parts = 2 + (uint32_t)iso_rng_below(rng, RANKS - 1);
  n_rows = 0;
  for (uint32_t k = 0; k < n_parts; k++) {
    n_rows += own_rows[k] = 1 + (int64_t)iso_rng_below(rng, 3);
    add_leaf(noise(iso_rng_next(rng), SHAPE(own_rows[k], COLUMNS), 0, 1));
    part[k] = of(k);
  }
  const rule_term *arg[5] = {rule_list(&w.arena, part, n_parts), num(0)};
  add_made(call_of(OP_CAT, arg));
  return n_made - 1;
}

/* A constant with a number for each row, or of one row for all. */
static size_t add_constant(iso_rng *rng, bool each) {
  const eg_node e = add_leaf(noise(iso_rng_next(rng), SHAPE(each ? n_rows : 1, COLUMNS), 0, 1));
  rec *r = &st.rec[e.i];
  r->konst = true;
  ck_assert((r->cval = calloc(st.n_kept, sizeof *r->cval)) != NULL);
  r->cval[0] = rule_tensor_ref(r->val[0]);
  return n_made - 1;
}

static size_t add_step(iso_rng *rng, size_t x) {
  const uint64_t kind = iso_rng_below(rng, 5);
  const bool plus = iso_rng_below(rng, 2);
  if (kind == 0) add_op("aten::neg", x, 0, false);
  if (kind == 1) add_op("aten::relu", x, 0, false);
  if (kind == 2) add_op(plus ? OP_ADD_TENSOR : OP_MUL_TENSOR, x, x, true);
  if (kind > 2) add_op(plus ? OP_ADD_TENSOR : OP_MUL_TENSOR, x, add_constant(rng, kind == 4), true);
  return n_made - 1;
}

static bool spread(size_t whole, uint32_t n, uint32_t d, eg_node *part) {
  bool there;
  ck_assert_msg(st_rows_of(&st, node[whole], n, d, part, &there, &err) == ISO_OK, "%s", err.msg);
  return there;
}

/* Each part is the whole's rows, and together they are joined with it. */
static void are_its_rows(size_t whole, const eg_node *part) {
  const rule_tensor *all = st_val(&st, node[whole], 0);
  const rule_term *list[RANKS];
  int64_t from = 0;
  eg_node joined;
  bool ok = true;
  for (uint32_t k = 0; k < n_parts; k++) {
    const rule_tensor *own = st_val(&st, part[k], 0);
    ck_assert_int_eq(own->numel, own_rows[k] * COLUMNS);
    for (int64_t i = 0; i < own->numel; i++)
      ck_assert_double_eq_tol(rule_tensor_get(own, i), rule_tensor_get(all, from + i), 1e-12);
    from += own->numel;
    list[k] = of(k);
  }
  const rule_term *arg[5] = {rule_list(&w.arena, list, n_parts), num(0)};
  ck_assert(st_add_valued(&st, call_of(OP_CAT, arg), part, &joined, &ok, &err) == ISO_OK && ok);
  ck_assert(eg_equal(st.g, joined, node[whole]));
}

START_TEST(steps_that_keep_to_rows_are_spread) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    eg_node part[MAX_RANKS];
    size_t x = begin(&rng);
    const int steps = 1 + (int)iso_rng_below(&rng, 4);
    for (int k = 0; k < steps; k++) x = add_step(&rng, x);
    ck_assert_msg(spread(x, n_parts, 0, part), "seed %d", (int)seed);
    are_its_rows(x, part);
    ck_assert_uint_gt(w.oracle.n_decided, 0);
    /* They are so many, and along that dimension. */
    ck_assert(!spread(x, n_parts + 1, 0, part) && !spread(x, n_parts, 1, part));
    end_state();
  }
}
END_TEST

/* In another order of dimensions they are columns. */
START_TEST(rows_that_are_turned_are_columns) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    eg_node part[MAX_RANKS];
    const size_t x = add_step(&rng, begin(&rng));
    const rule_term *arg[5] = {of(x)};
    add_made(call_of("aten::t", arg));
    ck_assert(spread(n_made - 1, n_parts, 1, part));
    ck_assert(!spread(n_made - 1, n_parts, 0, part));
    for (uint32_t k = 0; k < n_parts; k++)
      ck_assert_int_eq(st_val(&st, part[k], 0)->shape.dim[1], own_rows[k]);
    end_state();
  }
}
END_TEST

/* A tensor that is not put together of parts, and one whose rule does not hold. */
START_TEST(what_has_no_parts_is_not_spread) {
  iso_rng rng = iso_rng_new(1, 3);
  eg_node part[MAX_RANKS];
  size_t x = begin(&rng);
  add_leaf(noise(5, SHAPE(n_rows, COLUMNS), 0, 1));
  const size_t alone = n_made - 1, y = add_step(&rng, alone);
  ck_assert(!spread(y, n_parts, 0, part));
  w.oracle.judge = JUDGE_UNKNOWN;
  x = add_step(&rng, x);
  ck_assert(!spread(x, n_parts, 0, part));
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("rows");
  TCase *t = tcase_create("rows");
  tcase_add_test(t, steps_that_keep_to_rows_are_spread);
  tcase_add_test(t, rows_that_are_turned_are_columns);
  tcase_add_test(t, what_has_no_parts_is_not_spread);
  suite_add_tcase(s, t);
  return run_suite(s);
}
