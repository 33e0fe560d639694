/* Parts of a tensor: cut along a dimension, inside of one, in other orders; and shapes that calls
 * say. Each is held against the elements one by one. */
#include "rules/names.h"
#include "synth/search/parts.h"
#include "tests/support/suite.h"
#include "tests/synth/small_graphs.h"

enum { SEEDS = 600 };

/* Dimensions of their own sizes, of which the one that is cut is a multiple of `n`. */
static rule_shape draw_shape(iso_rng *rng, uint32_t *d, int64_t n) {
  rule_shape s = {.rank = 1 + (uint32_t)iso_rng_below(rng, 3)};
  for (uint32_t k = 0; k < s.rank; k++) s.dim[k] = 1 + (int64_t)iso_rng_below(rng, 3);
  *d = (uint32_t)iso_rng_below(rng, s.rank);
  s.dim[*d] *= n;
  return s;
}

/* All numbers differ. */
static rule_tensor *whole_of(rule_shape s) {
  rule_tensor *t = keep(make(s));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, sin((double)(i + 1)));
  return t;
}

/* Row-major places and back. */
static void place(const rule_shape *s, int64_t i, int64_t *at) {
  for (uint32_t d = s->rank; d-- > 0; i /= s->dim[d]) at[d] = i % s->dim[d];
}
static int64_t index_of(const rule_shape *s, const int64_t *at) {
  int64_t i = 0;
  for (uint32_t d = 0; d < s->rank; d++) i = i * s->dim[d] + at[d];
  return i;
}

/* Rows `from` to `to` along `d`. */
static rule_tensor *rows(const rule_tensor *t, uint32_t d, int64_t from, int64_t to) {
  rule_shape s = t->shape;
  s.dim[d] = to - from;
  rule_tensor *r = keep(make(s));
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t at[RULE_MAX_RANK];
    place(&s, i, at);
    at[d] += from;
    rule_tensor_set(r, i, rule_tensor_get(t, index_of(&t->shape, at)));
  }
  return r;
}

/* Parts along `d`, equal or not. */
static st_parts cut(iso_rng *rng, const rule_tensor *t, uint32_t d, uint32_t n, bool equal) {
  st_parts p = {.n = n, .by = 1, .scale = 1};
  int64_t from = 0;
  for (uint32_t k = 0; k < n; k++) {
    const int64_t left = t->shape.dim[d] - from, room = left - (n - k - 1);
    const int64_t own = k + 1 == n ? left
                        : equal    ? t->shape.dim[d] / n
                                   : 1 + (int64_t)iso_rng_below(rng, (uint64_t)room);
    p.of[k].i = 100 + k;
    p.value[k] = rows(t, d, from, from + own);
    from += own;
  }
  return p;
}

static void exchange(st_parts *p, uint32_t a, uint32_t b) {
  const eg_node of = p->of[a];
  const rule_tensor *value = p->value[a];
  p->of[a] = p->of[b], p->value[a] = p->value[b];
  p->of[b] = of, p->value[b] = value;
}

static rule_tensor *joined_along(const st_parts *p, uint32_t d) {
  rule_tensor *t = NULL;
  iso_error err;
  ck_assert(st_concatenated(p, d, &t, &err) == ISO_OK);
  return t ? keep(t) : NULL;
}

static bool same(const rule_tensor *a, const rule_tensor *b, double by) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return false;
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i) - by * rule_tensor_get(b, i)) > 1e-12) return false;
  return true;
}

START_TEST(parts_along_a_dimension_are_told_and_joined) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    const uint32_t n = 2 + (uint32_t)iso_rng_below(&rng, 3);
    uint32_t d, found;
    setup();
    const rule_tensor *t = whole_of(draw_shape(&rng, &d, n));
    st_parts p = cut(&rng, t, d, n, seed % 2);
    ck_assert(st_is_cut(t, &p));
    ck_assert(st_is_cut_along(t, &p, &found));
    ck_assert(same(joined_along(&p, found), t, 1));
    ck_assert(same(joined_along(&p, d), t, 1));
    /* In another order they are cut, and not along it. */
    const uint32_t a = (uint32_t)iso_rng_below(&rng, n - 1), b = n - 1;
    exchange(&p, a, b);
    ck_assert(st_is_cut(t, &p));
    ck_assert(!st_is_cut_along(t, &p, &found));
    teardown();
  }
}
END_TEST

/* Of parts that are so many times too large, the whole is theirs divided by that. */
START_TEST(parts_may_be_a_multiple) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    uint32_t d, found;
    setup();
    const rule_tensor *t = whole_of(draw_shape(&rng, &d, 2));
    rule_tensor *large = keep(make(t->shape));
    for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(large, i, 4 * rule_tensor_get(t, i));
    st_parts p = cut(&rng, large, d, 2, true);
    ck_assert(!st_is_cut(t, &p) && !st_is_cut_along(t, &p, &found));
    p.by = 4, p.scale = 0.25;
    ck_assert(st_is_cut(t, &p) && st_is_cut_along(t, &p, &found));
    ck_assert(same(joined_along(&p, d), t, 1));
    teardown();
  }
}
END_TEST

/* One number that is another one, a part twice, a part that is missing. */
START_TEST(what_is_no_cut_is_none) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 3);
    const uint32_t n = 2 + (uint32_t)iso_rng_below(&rng, 3), k = (uint32_t)iso_rng_below(&rng, n);
    uint32_t d, found;
    setup();
    const rule_tensor *t = whole_of(draw_shape(&rng, &d, n));
    st_parts p = cut(&rng, t, d, n, true);
    const rule_tensor *was = p.value[k];
    rule_tensor *other = keep(reshaped(was, was->shape));
    const int64_t i = (int64_t)iso_rng_below(&rng, (uint64_t)other->numel);
    rule_tensor_set(other, i, rule_tensor_get(was, i) + 1e-3);
    p.value[k] = other;
    ck_assert(!st_is_cut(t, &p) && !st_is_cut_along(t, &p, &found));
    p.value[k] = p.value[(k + 1) % n];
    ck_assert(!st_is_cut(t, &p) && !st_is_cut_along(t, &p, &found));
    p.value[k] = was;
    p.n--;
    ck_assert(!st_is_cut(t, &p) && !st_is_cut_along(t, &p, &found));
    teardown();
  }
}
END_TEST

/* Each rank has its heads of every row of a batch, both in one dimension. */
START_TEST(parts_inside_of_a_dimension_are_a_cut) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    iso_rng rng = iso_rng_new(seed, 4);
    const int64_t batch = 2 + (int64_t)iso_rng_below(&rng, 2), heads = 2, width = 3;
    const uint32_t n = 2;
    uint32_t found;
    setup();
    const rule_tensor *t = whole_of(SHAPE(batch, heads * n, width)),
                      *flat = keep(reshaped(t, SHAPE(batch * heads * n, width)));
    st_parts p = cut(&rng, t, 1, n, true);
    for (uint32_t k = 0; k < n; k++)
      p.value[k] = keep(reshaped(p.value[k], SHAPE(batch * heads, width)));
    ck_assert(st_is_cut(flat, &p));
    ck_assert(!st_is_cut_along(flat, &p, &found));
    ck_assert(!same(joined_along(&p, 0), flat, 1));
    teardown();
  }
}
END_TEST

START_TEST(parts_of_other_sizes_have_no_concatenation) {
  setup();
  st_parts p = {.n = 2, .by = 1, .scale = 1};
  p.value[0] = whole_of(SHAPE(2, 3));
  p.value[1] = whole_of(SHAPE(2, 4));
  ck_assert_ptr_null(joined_along(&p, 0));
  ck_assert_ptr_nonnull(joined_along(&p, 1));
  p.value[1] = whole_of(SHAPE(2, 3, 1));
  ck_assert_ptr_null(joined_along(&p, 0));
  teardown();
}
END_TEST

/* ---- shapes that a call says ---- */

static const rule_term *sizes(int64_t a, int64_t b) {
  const rule_term *d[2] = {num(a), num(b)};
  return rule_list(&w.arena, d, 2);
}

/* A list of sizes, deep inside too, or a number of classes; no number that happens to be one. */
START_TEST(a_shape_is_said_as_sizes_or_as_a_count) {
  setup();
  const rule_shape from = SHAPE(6, 4), to = SHAPE(3, 4), other = SHAPE(4, 6), few = SHAPE(5, 4);
  const rule_term *view =
                      rule_op(&w.arena, OP_RESHAPE, (const rule_term *[]){v(0), sizes(6, 4)}, 2),
                  *deep = rule_op(&w.arena, "aten::neg", &view, 1),
                  *count =
                      rule_op(&w.arena, "aten::one_hot", (const rule_term *[]){v(0), num(6)}, 2),
                  *plus = rule_op(&w.arena, OP_ADD_SCALAR,
                                  (const rule_term *[]){v(0), num(6), num(1)}, 3);
  const rule_term *says[] = {view, deep, count};
  for (int k = 0; k < 3; k++) {
    ck_assert(st_says_shape(says[k], &from));
    const rule_term *now = st_with_shape(&w.arena, says[k], &from, &to);
    ck_assert(st_says_shape(now, &to) && !st_says_shape(now, &from));
    ck_assert(rule_term_eq(st_with_shape(&w.arena, now, &to, &from), says[k]));
    ck_assert(rule_term_eq(st_with_shape(&w.arena, says[k], &other, &to), says[k]));
  }
  /* Rows, and the row that is left out. */
  const rule_term *arg[5] = {v(0), v(1), num(5), num(6), rule_bool(&w.arena, false)},
                  *backward = rule_op(&w.arena, "aten::embedding_dense_backward", arg, 5);
  ck_assert(!st_says_shape(backward, &from) && st_says_shape(backward, &few));
  ck_assert(!st_says_shape(view, &other) && !st_says_shape(plus, &from));
  ck_assert(rule_term_eq(st_with_shape(&w.arena, plus, &from, &to), plus));
  teardown();
}
END_TEST

int main(void) {
  Suite *s = suite_create("parts");
  TCase *t = tcase_create("parts");
  tcase_add_test(t, parts_along_a_dimension_are_told_and_joined);
  tcase_add_test(t, parts_may_be_a_multiple);
  tcase_add_test(t, what_is_no_cut_is_none);
  tcase_add_test(t, parts_inside_of_a_dimension_are_a_cut);
  tcase_add_test(t, parts_of_other_sizes_have_no_concatenation);
  tcase_add_test(t, a_shape_is_said_as_sizes_or_as_a_count);
  suite_add_tcase(s, t);
  return run_suite(s);
}
