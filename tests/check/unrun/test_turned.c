/* Calls that only move dimensions are known (needs libtorch), and where they move them is what
 * libtorch does. */
#include "check/unrun/unrun.h"
#include "egraph/base/rng.h"
#include "tests/validate/engine_test.h"

enum { SEEDS = 1500, MOST_RANK = 4 };

/* A dimension from the front or from the end, now and then one that is none. */
static int64_t any_dimension(iso_rng *rng, uint32_t rank) {
  return (int64_t)iso_rng_below(rng, 2 * rank + 2) - (int64_t)rank - 1;
}

static const rule_term *draw_call(iso_rng *rng, uint32_t rank, bool *moves) {
  char list[64] = "", text[160];
  const int kind = (int)iso_rng_below(rng, 6);
  uint32_t order[MOST_RANK];
  *moves = kind < 3;
  for (uint32_t d = 0; d < rank; d++) {
    const uint32_t k = (uint32_t)iso_rng_below(rng, d + 1);
    order[d] = order[k];
    order[k] = d;
  }
  const bool repeats = iso_rng_below(rng, 6) == 0;
  for (uint32_t d = 0; d < rank; d++) {
    const int64_t at = order[repeats ? 0 : d];
    snprintf(list + strlen(list), sizeof list - strlen(list), " %d",
             (int)(iso_rng_below(rng, 2) ? at : at - (int64_t)rank));
  }
  if (kind == 0) snprintf(text, sizeof text, "(aten::permute x0 (list%s))", list);
  if (kind == 1)
    snprintf(text, sizeof text, "(aten::transpose.int x0 %d %d)", (int)any_dimension(rng, rank),
             (int)any_dimension(rng, rank));
  if (kind == 2) snprintf(text, sizeof text, "(aten::t x0)");
  if (kind == 3) snprintf(text, sizeof text, "(aten::flip x0 (list 0))");
  if (kind == 4) snprintf(text, sizeof text, "(aten::alias x0)");
  if (kind == 5) snprintf(text, sizeof text, "(aten::neg x0)");
  return term(text);
}

/* The element of x that stands at `i` in the result. */
static int64_t comes_from(const rule_tensor *x, const rule_tensor *y, const uint32_t *from,
                          int64_t i) {
  int64_t at[RULE_MAX_RANK] = {0}, place = 0;
  for (uint32_t d = y->shape.rank; d-- > 0; i /= y->shape.dim[d]) at[from[d]] = i % y->shape.dim[d];
  for (uint32_t d = 0; d < x->shape.rank; d++) place = place * x->shape.dim[d] + at[d];
  return place;
}

START_TEST(dimensions_are_moved_as_libtorch_moves_them) {
  size_t n_moved = 0, n_refused = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    rule_shape s = {.rank = 1 + (uint32_t)iso_rng_below(&rng, MOST_RANK)};
    for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = 1 + (int64_t)iso_rng_below(&rng, 3);
    bool moves;
    const rule_term *call = draw_call(&rng, s.rank, &moves);
    rule_tensor *x = counting(RULE_F64, s), *bind[6] = {x}, *y = NULL;
    uint32_t from[RULE_MAX_RANK];
    iso_error err;
    const bool runs = val_eval(engine, call, bind, VAL_FLOAT64, &y, &err) == ISO_OK,
               turned = chk_turned(call, s.rank, from);
    const bool plain = strcmp(call->u.s, "aten::t") == 0; /* only of matrices */
    ck_assert_msg(turned == (moves && runs && (!plain || s.rank == 2)), "seed %d: %s of rank %u",
                  (int)seed, call->u.s, s.rank);
    for (uint32_t d = 0; d < s.rank && turned; d++)
      ck_assert_int_eq(y->shape.dim[d], s.dim[from[d]]);
    for (int64_t i = 0; turned && i < y->numel; i++)
      ck_assert_msg(rule_tensor_get(y, i) == (double)comes_from(x, y, from, i), "seed %d",
                    (int)seed);
    n_moved += turned;
    n_refused += !turned;
    rule_tensor_unref(x);
    rule_tensor_unref(y);
  }
  ck_assert(n_moved > 200 && n_refused > 200);
}
END_TEST

int main(void) {
  Suite *s = suite_create("turned");
  TCase *t = tcase_create("turned");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, dimensions_are_moved_as_libtorch_moves_them);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
