/* Parts of a tensor: cut along a dimension, inside of one, in other orders, each held against the
 * elements one by one; the rules that join them; and shapes that calls say. */
#include "rules/names.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

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

/* ---- the rule that joins them ---- */

static bool computes(const rule_term *t) {
  bool any = t->kind == RULE_OP && strcmp(t->u.s, "aten::neg") == 0;
  for (uint32_t k = 0; k < t->n; k++) any |= computes(t->child[k]);
  return any;
}

/* parameters: those of rule_oracle.decide. */
static iso_code decide(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out,
                       iso_error *e) {
  const iso_code c = small_decide(ctx, r, example, out, e);
  if (out->status == RULE_TESTED) out->status = RULE_PROVED;
  return c;
}

static size_t add_slice(size_t x, uint32_t d, int64_t from, int64_t to) {
  const rule_term *arg[5] = {v((uint32_t)x), num(d), num(from), num(to), num(1)};
  add_made(call_of("aten::slice.Tensor", arg));
  return n_made - 1;
}

/* The other graph computes the same tensor in steps of its own. `known`: the two are joined, but
 * for a dimension of one row, before its parts are. Returns: whether a rule has those steps. */
static bool says_how(uint64_t seed, bool known) {
  iso_rng rng = iso_rng_new(seed, 5);
  const int64_t rows = 1 + (int64_t)iso_rng_below(&rng, 3), columns = 4;
  bool met = false, any = false;
  begin_terms();
  oracle.decide = decide;
  add_leaf(noise(iso_rng_next(&rng), SHAPE(rows, columns), 0, 1));
  const size_t own = (add_op("aten::neg", 0, 0, false), n_made - 1);
  size_t x = 0;
  for (int k = 0; k < 3; k++) add_op("aten::neg", x, 0, false), x = n_made - 1;
  add_made(rule_op(&w.arena, "aten::unsqueeze", (const rule_term *[]){v((uint32_t)x), num(0)}, 2));
  const size_t whole = n_made - 1;
  add_made(
      rule_op(&w.arena, "aten::unsqueeze", (const rule_term *[]){v((uint32_t)own), num(0)}, 2));
  if (known) {
    ck_assert(st_merge(&st, node[whole], node[n_made - 1], WHY_VALUE, 0, &err) == ISO_OK);
    ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
  }
  st_parts p = {.n = 2, .by = 1, .scale = 1, .pieces = true};
  for (uint32_t k = 0; k < 2; k++) {
    p.of[k] = node[add_slice(own, 1, 2 * k, 2 * k + 2)];
    p.value[k] = st_val(&st, p.of[k], 0);
  }
  ck_assert(st_join_whole(&st, &p, node[whole], &met, &err) == ISO_OK && met);
  ck_assert_uint_gt(rule_set_count(st.rules.set), 0);
  for (size_t i = 0; i < rule_set_count(st.rules.set); i++) {
    const rule *r = rule_set_at(st.rules.set, i);
    any |= computes(r->lhs) || computes(r->rhs);
  }
  end_state();
  return any;
}

START_TEST(parts_of_what_is_known_are_joined_by_how_it_is_cut) {
  for (uint64_t seed = 0; seed < SEEDS / 20; seed++) {
    ck_assert_msg(!says_how(seed, true), "seed %d", (int)seed);
    ck_assert_msg(says_how(seed, false), "seed %d", (int)seed);
  }
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

/* `scale` times 1, 2, 3, 4, less the same: 0, of terms that add up to 20 times `scale`. */
static eg_node cancelled(double scale) {
  const rule_term *of[2];
  for (int k = 0; k < 2; k++) {
    rule_tensor *t = keep(make(SHAPE(4)));
    for (int64_t i = 0; i < 4; i++) rule_tensor_set(t, i, (k ? -scale : scale) * (double)(i + 1));
    of[k] = v((uint32_t)n_made);
    add_leaf(t);
  }
  const rule_term *arg[5] = {rule_list(&w.arena, of, 2), rule_string(&w.arena, "sum")};
  return add_made(call_of(OP_DIST_ALL_REDUCE, arg));
}

/* All are 0: those are taken that add up as much as the parts do, or so many times less. */
START_TEST(wholes_that_cancel_are_told_by_their_terms) {
  begin_terms();
  eg_node found[MOST_WHOLES], whole[3];
  const double scale[3] = {3, 1.5, 5};
  for (int32_t k = 0; k < 3; k++) {
    whole[k] = cancelled(scale[k]);
    st.rec[whole[k].i].node[LEFT] = k;
    ck_assert(st_visit(&st, whole[k], &err) == ISO_OK);
  }
  st_parts p = {.n = 2, .of = {cancelled(1), cancelled(2)}, .by = 1, .scale = 1};
  for (uint32_t k = 0; k < 2; k++) p.value[k] = st_val(&st, p.of[k], 0);
  st_sought x = {.side = RIGHT, .numel = 4};
  ck_assert_uint_eq(st_wholes(&st, &p, &x, found), 1);
  ck_assert_uint_eq(found[0].i, whole[0].i);
  p.by = 2;
  ck_assert_uint_eq(st_wholes(&st, &p, &x, found), 1);
  ck_assert_uint_eq(found[0].i, whole[1].i);
  p.by = 7;
  ck_assert_uint_eq(st_wholes(&st, &p, &x, found), 0);
  x.any_terms = true;
  ck_assert_uint_eq(st_wholes(&st, &p, &x, found), 3);
  end_state();
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
  tcase_add_test(t, parts_of_what_is_known_are_joined_by_how_it_is_cut);
  tcase_add_test(t, a_shape_is_said_as_sizes_or_as_a_count);
  tcase_add_test(t, wholes_that_cancel_are_told_by_their_terms);
  suite_add_tcase(s, t);
  return run_suite(s);
}
