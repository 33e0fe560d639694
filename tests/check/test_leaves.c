/* Relations of leaves: by value one by one, and their joint consequences, compared with plain
 * searches over elements, names and ranges. */
#include <check.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

/* ---- layouts at random ---- */

static uint64_t below(iso_rng *rng, uint64_t n) { return iso_rng_below(rng, n); }

static rule_shape random_shape(iso_rng *rng) {
  const int64_t a = 1 + (int64_t)below(rng, 3), b = 1 + (int64_t)below(rng, 3);
  return below(rng, 4) ? SHAPE(a, b) : SHAPE(a * b);
}

/* Term `t`, of shape `s`, moved about a little. Returns: the term; `s` is then its shape. */
static uint32_t random_layout(iso_rng *rng, uint32_t t, rule_shape *s) {
  const uint32_t d = (uint32_t)below(rng, s->rank);
  const int64_t size = s->dim[d];
  switch (below(rng, 5)) {
  case 0:
    if (s->rank < 2) return t;
    *s = SHAPE(s->dim[1], s->dim[0]);
    return own(CALL("aten::transpose.int", v(t), num(0), num(1)));
  case 1: {
    *s = s->rank == 1 ? SHAPE(1, s->dim[0]) : SHAPE(s->dim[0] * s->dim[1]);
    return own(CALL("aten::reshape", v(t), sizes(s->dim, s->rank)));
  }
  case 2: {
    const int64_t from = (int64_t)below(rng, (uint64_t)size), by = 1 + (int64_t)below(rng, 2);
    s->dim[d] = (size - from + by - 1) / by;
    return own(CALL("aten::slice.Tensor", v(t), num(d), num(from), num(size), num(by)));
  }
  case 3: {
    const rule_term *part[] = {v(t), v(t)};
    s->dim[d] *= 2;
    return own(CALL("aten::cat", rule_list(&report.arena, part, 2), num(d)));
  }
  default: return t;
  }
}

static uint32_t random_nest(iso_rng *rng, uint32_t t, rule_shape *s) {
  for (uint64_t n = below(rng, 4); n-- > 0;) t = random_layout(rng, t, s);
  return t;
}

/* The value of a term where leaf i has value[i]. Owns. */
static rule_tensor *value_of(uint32_t t, rule_tensor *const *value) {
  if (!term[t].call) return rule_tensor_ref(value[t]);
  rule_tensor *bind[MAX_TERMS] = {NULL};
  const rule_term *arg = term[t].call->child[0], *const *list = arg->child;
  const uint32_t n = arg->kind == RULE_LIST ? arg->n : 1;
  for (uint32_t i = 0; i < n; i++) {
    const size_t id = (size_t)(arg->kind == RULE_LIST ? list[i] : arg)->u.i;
    if (!bind[id]) bind[id] = value_of((uint32_t)id, value);
  }
  rule_tensor *r = run_op(term[t].call, bind);
  ck_assert_ptr_nonnull(r);
  for (size_t i = 0; i < MAX_TERMS; i++) rule_tensor_unref(bind[i]);
  return r;
}

/* ---- one relation ---- */

static bool same_leaves(uint32_t a, uint32_t b) { return accepted(chk_same_leaves(&k, a, b, 0)); }

/* A leaf on the left that has `value`, and the layout `b` of the right leaf. */
static bool takes(cap_kind kind, rule_tensor *value, uint32_t b) {
  cap_node *n = &side[LEFT].node[0];
  n->kind = kind;
  n->value = side[LEFT].input[0] = value;
  return same_leaves(0, b);
}

static rule_tensor *changed(const rule_tensor *t, rule_dtype dtype, rule_shape s, int64_t at) {
  rule_tensor *r = keep(make_as(dtype, s));
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    rule_tensor_set(r, i, i == at ? nextafter(x, INFINITY) : x);
  }
  return r;
}

static rule_shape turned(const rule_shape *s) {
  return s->rank == 1 ? SHAPE(1, s->dim[0]) : SHAPE(s->dim[0] * s->dim[1]);
}

START_TEST(a_leaf_is_a_layout_that_has_its_value_and_no_other) {
  for (uint64_t seed = 0; seed < 400; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    rule_shape s = random_shape(&rng);
    setup();
    rule_tensor *x = keep(make(s)), *bind[2] = {NULL};
    for (int64_t i = 0; i < x->numel; i++) rule_tensor_set(x, i, (double)below(&rng, 9) - 4.5);
    leaf(LEFT, CAP_PARAMETER, "a", x);
    leaf(RIGHT, CAP_PARAMETER, "b", x);
    add_captures();
    const uint32_t b = random_nest(&rng, 1, &s);
    begin();
    bind[1] = x;
    rule_tensor *value = keep(value_of(b, bind));
    const int64_t any = (int64_t)below(&rng, (uint64_t)value->numel);
    ck_assert_msg(takes(CAP_PARAMETER, value, b), "seed %d: %s", (int)seed, report.reason);
    ck_assert_uint_eq(k.used.n, 1);
    ck_assert_int_eq(k.used.assumption[0].kind, RULE_ASSUMES_LEAF);
    ck_assert(takes(CAP_PARAMETER, changed(value, RULE_F32, s, -1), b));
    ck_assert(!takes(CAP_PARAMETER, changed(value, RULE_F64, s, any), b));
    ck_assert(!takes(CAP_PARAMETER, changed(value, RULE_I64, s, -1), b));
    ck_assert(!takes(CAP_PARAMETER, changed(value, RULE_F64, turned(&s), -1), b));
    ck_assert(!takes(CAP_INPUT, value, b));
    teardown();
  }
}
END_TEST

/* 0 and -0 are one number for a sum, and two for a quotient. */
START_TEST(signs_of_zeros_count_where_something_reads_them) {
  for (int divides = 0; divides < 2; divides++) {
    setup();
    rule_tensor *zero = keep(make(SHAPE(3))), *minus = keep(make(SHAPE(3)));
    for (int64_t i = 0; i < 3; i++) rule_tensor_set(minus, i, -0.0);
    const uint32_t x = leaf(LEFT, CAP_PARAMETER, "a", zero);
    op(LEFT, divides ? CALL("aten::div.Tensor", num(1), v(x)) : CALL("aten::relu", v(x)));
    leaf(RIGHT, CAP_PARAMETER, "a", minus);
    add_captures();
    begin();
    ck_assert(same_leaves(0, 2));
    ck_assert_int_eq(accepted(chk_zeros(&k)), !divides);
    teardown();
  }
}
END_TEST

/* ---- elements ---- */

/* Elements by number, leaf by leaf, and which are equal: one colour each. */
enum { N_LEAVES = 6, MAX_ELEMENTS = 128 };
static int64_t base_of[N_LEAVES + 1];
static uint32_t colour[MAX_ELEMENTS];

static rule_tensor *own_numbers(const rule_tensor *of, int64_t base) {
  rule_tensor *r = make(of->shape);
  for (int64_t i = 0; i < r->numel; i++) rule_tensor_set(r, i, (double)(base + i));
  return r;
}

/* The colours that the relations leave, by going through all elements for each pair. */
static void colour_elements(void) {
  rule_tensor *number[N_LEAVES] = {NULL};
  base_of[0] = 0;
  for (uint32_t i = 0; i < N_LEAVES; i++) {
    number[i] = own_numbers(term[i].node->value, base_of[i]);
    base_of[i + 1] = base_of[i] + number[i]->numel;
  }
  ck_assert_int_le(base_of[N_LEAVES], MAX_ELEMENTS);
  for (uint32_t e = 0; e < base_of[N_LEAVES]; e++) colour[e] = e;
  for (size_t s = 0; s < k.cert.n_steps; s++) {
    rule_tensor *of = value_of(step[s].b, number);
    for (int64_t i = 0; i < of->numel; i++) {
      const uint32_t from = colour[base_of[step[s].a] + i],
                     to = colour[(int64_t)rule_tensor_get(of, i)];
      for (uint32_t e = 0; e < base_of[N_LEAVES]; e++)
        if (colour[e] == from) colour[e] = to;
    }
    rule_tensor_unref(of);
  }
  for (uint32_t i = 0; i < N_LEAVES; i++) rule_tensor_unref(number[i]);
}

static bool share(uint32_t a, uint32_t b) {
  for (int64_t i = base_of[a]; i < base_of[a + 1]; i++)
    for (int64_t j = base_of[b]; j < base_of[b + 1]; j++)
      if (i != j && colour[i] == colour[j]) return true;
  return false;
}

/* Leaves that are one by plain relations have one number. */
static void join_plain(uint32_t plain[N_LEAVES]) {
  for (uint32_t i = 0; i < N_LEAVES; i++) plain[i] = i;
  for (size_t s = 0; s < k.cert.n_steps; s++) {
    if (term[step[s].b].call) continue;
    const uint32_t from = plain[step[s].a], to = plain[step[s].b];
    for (uint32_t i = 0; i < N_LEAVES; i++)
      if (plain[i] == from) plain[i] = to;
  }
}

/* Three leaves a side. Each step says that one is a layout of one of the other side. */
static void random_relations(iso_rng *rng) {
  static const char *const names[] = {"a", "b", "c", "u", "v", "w"};
  for (uint32_t i = 0; i < N_LEAVES; i++)
    leaf(i < 3 ? LEFT : RIGHT, CAP_PARAMETER, names[i], noise(rng, random_shape(rng)));
  add_captures();
  for (int tries = 0; tries < 12 && k.cert.n_steps < 4; tries++) {
    const uint32_t a = (uint32_t)below(rng, N_LEAVES),
                   of = (uint32_t)below(rng, 3) + (a < 3 ? 3 : 0);
    rule_shape s = term[of].node->value->shape;
    const uint32_t b = random_nest(rng, of, &s);
    if (rule_shape_eq(&s, &term[a].node->value->shape)) add_step(CHK_LEAF, a, b);
  }
}

/* No element of a leaf may become another one of it; all else is taken over. */
START_TEST(elements_of_one_leaf_stay_apart) {
  size_t n_refused = 0, n_taken = 0, n_shared = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    setup();
    random_relations(&rng);
    begin();
    colour_elements();
    chk_elements e;
    ck_assert(accepted(chk_elements_new(&k, INT64_MAX, &e)));
    for (uint32_t a = 0; a < N_LEAVES; a++)
      for (uint32_t b = 0; b < N_LEAVES; b++)
        for (int64_t i = base_of[a]; i < base_of[a + 1]; i++)
          for (int64_t j = base_of[b]; j < base_of[b + 1]; j++)
            ck_assert_msg((chk_element(&e, a, i - base_of[a]) ==
                           chk_element(&e, b, j - base_of[b])) == (colour[i] == colour[j]),
                          "seed %d", (int)seed);
    chk_elements_free(&e);
    bool one = false, other = false;
    uint32_t plain[N_LEAVES];
    join_plain(plain);
    for (uint32_t a = 0; a < N_LEAVES; a++) {
      one |= share(a, a);
      for (uint32_t b = 0; b < a; b++)
        other |= a / 3 == b / 3 && plain[a] != plain[b] && share(a, b);
    }
    const bool fine = accepted(chk_free_elements(&k));
    ck_assert_msg(fine == !one, "seed %d: %s", (int)seed, report.reason);
    if (fine) ck_assert_msg((k.used.n > 0) == other, "seed %d", (int)seed);
    n_refused += !fine;
    n_taken += fine && k.cert.n_steps > 1;
    n_shared += fine && k.used.n > 0;
    teardown();
  }
  ck_assert_uint_gt(n_refused, 200);
  ck_assert_uint_gt(n_taken, 300);
  ck_assert_uint_gt(n_shared, 30);
}
END_TEST

/* Two parts of one side that overlap in the other's leaf are one there: an assumption, but for
 * parts of two ranks. */
START_TEST(what_leaves_share_is_listed_for_each_rank) {
  for (int ranks = 0; ranks < 2; ranks++)
    for (int64_t second = 0; second <= 3; second++) {
      setup();
      iso_rng rng = iso_rng_new(1, 3);
      leaf(LEFT, CAP_PARAMETER, ranks ? "rank0.w" : "a", noise(&rng, SHAPE(3)));
      leaf(LEFT, CAP_PARAMETER, ranks ? "rank1.w" : "b", noise(&rng, SHAPE(3)));
      leaf(RIGHT, CAP_PARAMETER, "w", noise(&rng, SHAPE(6)));
      add_captures();
      for (uint32_t i = 0; i < 2; i++) {
        const int64_t from = i ? second : 0;
        add_step(CHK_LEAF, i,
                 own(CALL("aten::slice.Tensor", v(2), num(0), num(from), num(from + 3), num(1))));
      }
      begin();
      ck_assert(accepted(chk_free_elements(&k)));
      ck_assert_uint_eq(k.used.n, !ranks && second < 3);
      teardown();
    }
}
END_TEST

/* ---- names ---- */

/* Four square leaves: left x and y, right x and y, or z in place of the right y. Their values are
 * ones, or many numbers of seed 1 or 2. */
typedef struct named {
  int value[4];
  bool z;
} named;

static rule_tensor *square(int value) {
  iso_rng rng = iso_rng_new((uint64_t)value, 5);
  if (value) return noise(&rng, SHAPE(2, 2));
  rule_tensor *t = keep(make(SHAPE(2, 2)));
  for (int64_t i = 0; i < 4; i++) rule_tensor_set(t, i, 1);
  return t;
}

static bool has_own_name(const named *n, int i) {
  if (n->z && i % 2 == 1) return false;
  return n->value[i] == n->value[(i + 2) % 4];
}

static bool relation_taken(const named *n, uint32_t a, uint32_t b, bool turn, bool given) {
  static const char *const name[] = {"x", "y", "x", "y"};
  setup();
  for (int i = 0; i < 4; i++)
    leaf(i / 2, CAP_PARAMETER, n->z && i == 3 ? "z" : name[i], square(n->value[i]));
  add_captures();
  options.given_leaves = given;
  add_step(CHK_LEAF, a, turn ? own(CALL("aten::t", v(b))) : b);
  const bool fine = accepted(chk_relations(&k));
  teardown();
  return fine;
}

START_TEST(a_leaf_that_has_its_value_under_its_name_is_no_other_leaf) {
  size_t n_taken = 0, n_refused = 0;
  for (int code = 0; code < 81 * 2; code++) {
    named n = {.z = code / 81};
    for (int i = 0, c = code; i < 4; i++, c /= 3) n.value[i] = c % 3;
    for (uint32_t a = 0; a < 4; a++)
      for (uint32_t b = 0; b < 4; b++)
        for (int turn = 0; turn < 2; turn++) {
          const bool same_side = a / 2 == b / 2, namesake = a % 2 == b % 2 && !(n.z && a % 2);
          const bool crossed = !namesake && has_own_name(&n, (int)a) && has_own_name(&n, (int)b),
                     part = has_own_name(&n, (int)a) && n.value[a] == 0;
          if (a == b || (!turn && same_side)) continue;
          const bool want = turn ? !same_side && !part : !crossed;
          ck_assert_msg(relation_taken(&n, a, b, turn, false) == want, "%d: %u of %u%s", code, a, b,
                        turn ? ", turned" : "");
          /* Where a user gave relations of leaves, names do not count. */
          ck_assert_int_eq(relation_taken(&n, a, b, turn, true), !turn || !same_side);
          n_taken += want;
          n_refused += !want;
        }
  }
  ck_assert_uint_gt(n_taken, 500);
  ck_assert_uint_gt(n_refused, 500);
}
END_TEST

/* A buffer that is related to a parameter of floats may have any value, too, and so may leaves
 * related to it. */
START_TEST(what_is_related_to_a_parameter_is_no_constant) {
  for (int to_parameter = 0; to_parameter < 2; to_parameter++) {
    setup();
    iso_rng rng = iso_rng_new(1, 6);
    rule_tensor *x = noise(&rng, SHAPE(2, 2));
    leaf(LEFT, CAP_BUFFER, "a", x);
    leaf(LEFT, CAP_BUFFER, "b", x);
    leaf(RIGHT, CAP_BUFFER, "c", x);
    leaf(RIGHT, to_parameter ? CAP_PARAMETER : CAP_BUFFER, "d", x);
    leaf(RIGHT, CAP_BUFFER, "e", x);
    add_captures();
    add_step(CHK_LEAF, 0, own(CALL("aten::t", v(2))));
    add_step(CHK_LEAF, 2, 1);
    add_step(CHK_LEAF, 3, own(CALL("aten::t", v(1))));
    begin();
    for (uint32_t i = 0; i < 5; i++) {
      const bool is_free = to_parameter && i < 4;
      ck_assert_int_eq(chk_leaf_is_free(&k, i), is_free);
      ck_assert_int_eq(k.here.konst[i].v != NULL, !is_free);
    }
    teardown();
  }
}
END_TEST

/* ---- ranges ---- */

enum { ROWS = 5 };

/* How rows of a table are looked up. */
typedef enum read_by { EMBEDDING, SELECTED, OF_A_VIEW, COLUMNS, READERS } read_by;

static const rule_term *reader(read_by how, int s, uint32_t table, uint32_t ids) {
  if (how == EMBEDDING) return CALL("aten::embedding", v(table), v(ids));
  if (how == OF_A_VIEW)
    ids = shaped(s, CALL("aten::unsqueeze", v(ids), num(0)), RULE_I64, SHAPE(1, 3));
  if (how == OF_A_VIEW) return CALL("aten::embedding", v(table), v(ids));
  return CALL("aten::index_select", v(table), num(how == COLUMNS), v(ids));
}

/* A table whose last rows are zeros, and ids up to `most`, clamped to low .. high. */
static bool range_taken(read_by how, int64_t padding, int64_t most, int64_t low, int64_t high) {
  setup();
  rule_tensor *table = keep(make(SHAPE(ROWS, 2))), *ids = keep(make_as(RULE_I64, SHAPE(3)));
  for (int64_t i = 0; i < 2 * (ROWS - padding); i++) rule_tensor_set(table, i, (double)i + 1);
  for (int64_t i = 0; i < 3; i++) rule_tensor_set(ids, i, i == 1 ? (double)most : 0);
  for (int s = 0; s < 2; s++) {
    const uint32_t x = leaf(s, CAP_INPUT, "ids", ids), t = leaf(s, CAP_PARAMETER, "table", table);
    result(s, "y", shaped(s, reader(how, s, t, x), RULE_F64, SHAPE(3, 2)));
  }
  add_captures();
  const uint32_t b = own(CALL("aten::clamp", v(0), num(low), num(high)));
  begin();
  const bool fine = accepted(chk_bounded(&k, 0, b, 0));
  teardown();
  return fine;
}

START_TEST(a_range_of_ids_leaves_out_rows_of_zeros_alone) {
  size_t n_taken = 0;
  for (int64_t padding = 0; padding < ROWS; padding++)
    for (int64_t most = 0; most < ROWS; most++)
      for (int64_t low = -1; low <= 1; low++)
        for (int64_t high = 0; high <= ROWS; high++) {
          /* All of the columns, of which none is padding, or all rows that are no zeros. */
          const int64_t last = _i == COLUMNS ? 1 : ROWS - padding - 1;
          const bool want = low <= 0 && high >= last && most <= high;
          ck_assert_msg(range_taken((read_by)_i, padding, most, low, high) == want,
                        "%d rows of zeros, ids up to %d, within %d and %d", (int)padding, (int)most,
                        (int)low, (int)high);
          n_taken += want;
        }
  ck_assert(n_taken > 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("leaves");
  TCase *t = tcase_create("leaves");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_leaf_is_a_layout_that_has_its_value_and_no_other);
  tcase_add_test(t, signs_of_zeros_count_where_something_reads_them);
  tcase_add_test(t, elements_of_one_leaf_stay_apart);
  tcase_add_test(t, what_leaves_share_is_listed_for_each_rank);
  tcase_add_test(t, a_leaf_that_has_its_value_under_its_name_is_no_other_leaf);
  tcase_add_test(t, what_is_related_to_a_parameter_is_no_constant);
  tcase_add_loop_test(t, a_range_of_ids_leaves_out_rows_of_zeros_alone, 0, READERS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
