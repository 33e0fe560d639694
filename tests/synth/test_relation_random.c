/* Relations by value, of random layouts: a relation is found, and it evaluates to the target, bit
 * for bit. */
#include "tests/synth/relation_world.h"
#include "tests/support/suite.h"

enum { RANDOM_SETS = 400 };

static int64_t below(world *w, int64_t n) { return (int64_t)iso_rng_below(&w->rng, (uint64_t)n); }

/* A slice of a random source, perhaps transposed, with `len` columns. */
static rule_tensor *random_part(world *w, int64_t cols, bool whole) {
  for (;;) {
    rule_tensor *s = w->src[below(w, (int64_t)w->n)];
    bool turn = below(w, 2) == 0;
    if (s->shape.rank != 2 || s->shape.dim[turn ? 0 : 1] != cols) continue;
    rule_tensor *x = turn ? turned(s) : op_reshape(s, s->shape);
    if (whole) return x;
    int64_t a = below(w, x->shape.dim[0]), b = a + 1 + below(w, x->shape.dim[0] - a);
    return after_slice(x, 0, a, b);
  }
}

/* cat of 1 to 5 (slices of) (transposes of) sources, then perhaps transposed or reshaped: always a
 * relation. */
START_TEST(random_covers) {
  world w;
  setup(&w, 1000 + (uint64_t)_i);
  rule_dtype dtype = (rule_dtype[]){RULE_F32, RULE_F16, RULE_F64, RULE_C128}[below(&w, 4)];
  int64_t side[] = {6 + below(&w, 4), 12, 17};
  add(&w, NULL, noise(&w, dtype, SHAPE(side[0], side[0])));
  for (int i = 0; i < 6; i++)
    add(&w, NULL, noise(&w, dtype, SHAPE(side[below(&w, 3)], side[below(&w, 3)])));
  for (int k = 0; k < 8; k++) {
    rule_tensor *part[5];
    size_t n = 1 + (size_t)below(&w, 5);
    for (size_t i = 0; i < n; i++) part[i] = random_part(&w, side[0], below(&w, 3) == 0);
    rule_tensor *t = after_cat(part, n, 0);
    int64_t rows = t->shape.dim[0];
    switch (below(&w, 4)) {
    case 0: t = after_permute(t, (int64_t[]){1, 0}); break;
    case 1: t = after_reshape(t, SHAPE(1, rows, side[0])); break;
    case 2:
      if (rows % 2 == 0) t = after_reshape(t, SHAPE(2, rows / 2, side[0]));
      break;
    default: break;
    }
    expect(&w, t, NULL, 0);
  }
  teardown(&w);
}
END_TEST

/* reshape, permutation, reshape of one source: always a relation when one dimension is factored. */
START_TEST(random_permutations) {
  world w;
  setup(&w, 2000 + (uint64_t)_i);
  int64_t a = 2 + below(&w, 4), b = 2 + below(&w, 4), c = 1 + below(&w, 4), k = 1 + below(&w, 7);
  bool first = below(&w, 2) == 0;
  add(&w, NULL, noise(&w, RULE_F32, first ? SHAPE(a * b * c, k) : SHAPE(k, a * b * c)));
  rule_tensor *t = op_reshape(w.src[0], first ? SHAPE(a, b, c, k) : SHAPE(k, a, b, c));
  int64_t p[4] = {0, 1, 2, 3};
  for (int64_t i = 3; i > 0; i--) {
    int64_t j = below(&w, i + 1), x = p[i];
    p[i] = p[j], p[j] = x;
  }
  t = after_permute(t, p);
  expect(&w, op_reshape(t, SHAPE(t->numel)), NULL, 0);
  expect(&w,
         op_reshape(t, SHAPE(t->shape.dim[0] * t->shape.dim[1], t->shape.dim[2] * t->shape.dim[3])),
         NULL, 0);
  expect(&w, t, NULL, 0);
  teardown(&w);
}
END_TEST

/* Some heads of some matrices, one below the other or each apart, and turned round: a loader's
 * work on what is multiplied before it is known which head asks. Always a relation. */
START_TEST(random_turned_heads) {
  world w;
  setup(&w, 4000 + (uint64_t)_i);
  const int64_t heads = 2 + below(&w, 3), k = 2 + below(&w, 5), v = 2 + below(&w, 5),
                cols = 5 + below(&w, 4);
  const bool first = below(&w, 2) == 0;
  add(&w, NULL, noise(&w, RULE_F32, SHAPE(heads * (k + v), cols)));
  add(&w, NULL, noise(&w, RULE_F32, SHAPE(cols, heads * v)));
  rule_tensor *t = op_reshape(w.src[0], SHAPE(heads, k + v, cols));
  t = after_slice(t, 1, first ? 0 : k, first ? k : k + v);
  int64_t p[3] = {0, 1, 2};
  for (int64_t i = 2; i > 0; i--) {
    const int64_t j = below(&w, i + 1), x = p[i];
    p[i] = p[j], p[j] = x;
  }
  expect(&w, after_permute(t, p), NULL, 0);
  teardown(&w);
}
END_TEST

/* Any layout operators in any order: a relation found is exact. */
START_TEST(random_nestings) {
  world w;
  setup(&w, 3000 + (uint64_t)_i);
  for (int i = 0; i < 4; i++)
    add(&w, NULL, noise(&w, RULE_U8, SHAPE(2 + below(&w, 9), 4, 2 + below(&w, 3))));
  for (int i = 0; i < 4; i++) add(&w, NULL, noise(&w, RULE_U8, SHAPE(4 + below(&w, 3) * 4, 8)));
  rule_tensor *t = rule_tensor_ref(w.src[below(&w, (int64_t)w.n)]);
  for (int k = 0; k < 4; k++) {
    rule_shape s = t->shape;
    uint32_t d = (uint32_t)below(&w, s.rank);
    int64_t p[RULE_MAX_RANK], lo = below(&w, s.dim[d]);
    for (uint32_t i = 0; i < s.rank; i++) p[i] = (i + d) % s.rank;
    switch (below(&w, 4)) {
    case 0: t = after_slice(t, d, lo, lo + 1 + below(&w, s.dim[d] - lo)); break;
    case 1: t = after_permute(t, p); break;
    case 2: t = after_cat((rule_tensor *[]){t, rule_tensor_ref(t)}, 2, d); break;
    default: t = after_reshape(t, SHAPE(t->numel / s.dim[s.rank - 1], s.dim[s.rank - 1])); break;
    }
    relate(&w, t, NULL);
  }
  rule_tensor_unref(t);
  teardown(&w);
}
END_TEST

int main(void) {
  Suite *s = suite_create("relation_random");
  TCase *c = tcase_create("relation_random");
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, random_covers, 0, RANDOM_SETS);
  tcase_add_loop_test(c, random_permutations, 0, RANDOM_SETS);
  tcase_add_loop_test(c, random_turned_heads, 0, RANDOM_SETS);
  tcase_add_loop_test(c, random_nestings, 0, RANDOM_SETS);
  suite_add_tcase(s, c);
  return run_suite(s);
}
