/* What localisation asks of two graphs: whether a value occurs on the other side, how two tensors
 * differ, which layer is unlike its siblings. Each against a plain search, or with a truth known by
 * construction. */
#include "localise/alignment.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

static parting p;

static void begin(void) {
  begin_state();
  p = (parting){.s = &st};
  for (int side = 0; side < 2; side++) {
    p.run[side].value = calloc(MAX_NODES, sizeof *p.run[side].value);
    ck_assert_ptr_nonnull(p.run[side].value);
  }
}

static void end(void) {
  for (int side = 0; side < 2; side++) {
    free(p.run[side].value);
    free(p.by_size[side]);
  }
  end_state();
}

/* The node's e-node, equal to no other one, and its value in the run. */
static void place(int side, uint32_t i) {
  add_atom(side, i);
  p.run[side].value[i] = (st_value_list){&graph_of(side)->value[i][0], 1};
}

/* ---- shapes ---- */

/* A shape of rank 0 to 3 over 1, 2, 3, by number. */
static rule_shape numbered(int code) {
  rule_shape s = {0};
  for (; code; code /= 4)
    if (code % 4) s.dim[s.rank++] = code % 4;
  return s;
}

static rule_shape without_ones(const rule_shape *s) {
  rule_shape t = {0};
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->dim[i] != 1) t.dim[t.rank++] = s->dim[i];
  return t;
}

START_TEST(shapes_are_compared_but_for_sizes_1) {
  for (int a = 0; a < 64; a++)
    for (int b = 0; b < 64; b++) {
      const rule_shape x = numbered(a), y = numbered(b), q = without_ones(&x), r = without_ones(&y);
      ck_assert_int_eq(lo_same_but_ones(&x, &y), rule_shape_eq(&q, &r));
    }
}
END_TEST

/* ---- values of the other side ---- */

typedef enum seen { AS_IT_IS, IN_ANOTHER_LAYOUT, WITH_A_SIZE_1, OTHERWISE, SEEN_KINDS } seen;

/* The value as the other side has it; OTHERWISE: with one number changed. */
static rule_tensor *as_seen(const rule_tensor *t, seen how, iso_rng *rng) {
  if (how == IN_ANOTHER_LAYOUT) return keep(transposed(t, 0, 1));
  if (how == WITH_A_SIZE_1) return keep(reshaped(t, SHAPE(t->shape.dim[0], 1, t->shape.dim[1])));
  rule_tensor *r = keep(reshaped(t, t->shape));
  const int64_t i = (int64_t)iso_rng_below(rng, (uint64_t)t->numel);
  if (how == OTHERWISE) rule_tensor_set(r, i, rule_tensor_get(r, i) + 0.5);
  return r;
}

START_TEST(a_value_occurs_where_the_other_side_has_it) {
  enum { VALUES = 9 };
  for (uint64_t seed = 0; seed < 300; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    seen how[VALUES];
    uint32_t order[VALUES];
    begin();
    for (uint32_t i = 0; i < VALUES; i++) {
      order[i] = i;
      const uint32_t j = (uint32_t)iso_rng_below(&rng, i + 1);
      order[i] = order[j], order[j] = i;
      rule_tensor *t = noise(64 * seed + i, SHAPE(2 + 2 * (int64_t)iso_rng_below(&rng, 2), 3), 0,
                             pow(10, (double)iso_rng_below(&rng, 7) - 3));
      leaf(&w.l, SYNTH_PARAMETER, "v", t, t);
    }
    for (uint32_t k = 0; k < VALUES; k++) {
      how[order[k]] = (seen)iso_rng_below(&rng, SEEN_KINDS);
      rule_tensor *t = as_seen(w.l.value[order[k]][0], how[order[k]], &rng);
      leaf(&w.r, SYNTH_PARAMETER, "v", t, t);
    }
    for (uint32_t i = 0; i < VALUES; i++) place(LEFT, i), place(RIGHT, i);
    for (int side = 0; side < 2; side++) ck_assert(lo_index(&p, side, &err) == ISO_OK);
    for (uint32_t k = 0; k < VALUES; k++) {
      ck_assert_msg(lo_occurs(&p, LEFT, order[k]) == (how[order[k]] != OTHERWISE),
                    "seed %d, value %u: %d", (int)seed, order[k], how[order[k]]);
      ck_assert_int_eq(lo_occurs(&p, RIGHT, k), how[order[k]] != OTHERWISE);
    }
    end();
  }
}
END_TEST

/* ---- pictures ---- */

static int64_t least_step(int64_t n, int64_t cells) {
  int64_t step = 1;
  while ((n + step - 1) / step > cells) step++;
  return step;
}

static double apart(double x, double y) {
  if (x == y || (isnan(x) && isnan(y))) return 0;
  return isfinite(x) && isfinite(y) ? fabs(x - y) : (double)INFINITY;
}

/* Each cell has the largest difference of its elements. */
static void check_picture(const synth_picture *q, const rule_tensor *x, const rule_tensor *y) {
  const int64_t columns = x->shape.dim[x->shape.rank - 1], rows = x->numel / columns;
  double worst = 0, largest = 0;
  int64_t n_differ = 0;
  ck_assert_int_eq(q->row_step, least_step(rows, SYNTH_PICTURE_ROWS));
  ck_assert_int_eq(q->column_step, least_step(columns, SYNTH_PICTURE_COLUMNS));
  for (int64_t i = 0; i < x->numel; i++) {
    const double a = fabs(rule_tensor_get(x, i));
    if (isfinite(a)) largest = fmax(largest, a);
    worst = fmax(worst, apart(rule_tensor_get(x, i), rule_tensor_get(y, i)));
  }
  for (int64_t i = 0; i < x->numel; i++)
    n_differ += apart(rule_tensor_get(x, i), rule_tensor_get(y, i)) > 1e-9 * largest;
  ck_assert_int_eq(q->n_differ, n_differ);
  ck_assert(apart(rule_tensor_get(x, q->index), rule_tensor_get(y, q->index)) == worst);
  for (int64_t r = 0; r < q->rows; r++)
    for (int64_t c = 0; c < q->columns; c++) {
      double most = 0;
      for (int64_t i = r * q->row_step; i < (r + 1) * q->row_step && i < rows; i++)
        for (int64_t j = c * q->column_step; j < (c + 1) * q->column_step && j < columns; j++)
          most = fmax(most, apart(rule_tensor_get(x, i * columns + j),
                                  rule_tensor_get(y, i * columns + j)));
      ck_assert(q->cell[r * q->columns + c] == (float)most);
    }
}

START_TEST(a_picture_has_the_largest_difference_of_each_cell) {
  static const double odd[] = {NAN, (double)INFINITY, -(double)INFINITY};
  size_t n_seen = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    begin();
    rule_tensor *x = noise(seed,
                           SHAPE(1 + (int64_t)iso_rng_below(&rng, 130),
                                 1 + (int64_t)iso_rng_below(&rng, 130)),
                           0, 1),
                *y = keep(reshaped(x, x->shape));
    for (uint64_t n = iso_rng_below(&rng, 6); n-- > 0;) {
      const int64_t i = (int64_t)iso_rng_below(&rng, (uint64_t)x->numel);
      rule_tensor_set(n % 2 ? x : y, i,
                      iso_rng_below(&rng, 3) ? iso_rng_normal(&rng) : odd[iso_rng_below(&rng, 3)]);
    }
    const synth_picture *q = NULL;
    ck_assert(lo_picture(&st, x, y, &q, &err) == ISO_OK);
    bool differs = false;
    for (int64_t i = 0; i < x->numel; i++)
      differs |= apart(rule_tensor_get(x, i), rule_tensor_get(y, i)) > 0;
    ck_assert_int_eq(q != NULL, differs);
    if (q) check_picture(q, x, y), n_seen++;
    end();
  }
  ck_assert_uint_gt(n_seen, 30);
}
END_TEST

/* ---- layers ---- */

enum { LAYERS = 3, STEPS = 5 };

static uint32_t shaped_as(uint32_t x, rule_shape s) {
  const rule_term *size[] = {num(s.dim[0]), s.rank > 1 ? num(s.dim[1]) : NULL};
  return op(&w.l, "aten::reshape", v(x), rule_list(&w.arena, size, s.rank), NULL);
}

/* One layer over its input; its weight is a leaf. Step `changed` is another operator. Returns: its
 * last node, in `at` its steps. */
static uint32_t add_layer(uint64_t seed, uint32_t input_node, int changed, uint32_t at[STEPS]) {
  iso_rng rng = iso_rng_new(seed, 3);
  rule_tensor *b = noise(seed + w.l.g.n_nodes, SHAPE(4, 3), 0, 1);
  const uint32_t own = weight(&w.l, "b", b);
  uint32_t last = input_node;
  for (int i = 0; i < STEPS; i++) {
    uint64_t kind = i == 0 ? 0 : iso_rng_below(&rng, 4);
    const uint64_t back = iso_rng_below(&rng, (uint64_t)i + 2);
    const uint32_t other = i == 0 || back > (uint64_t)i ? own
                           : back == 0                  ? input_node
                                                        : at[back - 1];
    if (i == changed) kind ^= 1;
    last = kind == 0   ? add(&w.l, last, other)
           : kind == 1 ? mul(&w.l, last, other)
           : kind == 2 ? relu(&w.l, last)
                       : neg(&w.l, last);
    at[i] = last;
  }
  return shaped_as(last, SHAPE(12));
}

/* A step in the middle of one of three equal layers is another one: it is found, and a sibling of
 * it; where the layers are alike, nothing is. */
START_TEST(the_layer_that_is_unlike_its_siblings_is_found) {
  size_t n_found = 0, n_said = 0, n = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    const int layer = (int)(seed % LAYERS), changed = (int)(seed / LAYERS % STEPS) - 1;
    begin();
    uint32_t at[LAYERS][STEPS], out[LAYERS], model = 0,
                                             last = input(&w.l, noise(seed, SHAPE(12), 0, 1));
    for (int i = 0; i < LAYERS; i++)
      last = out[i] =
          add_layer(seed, shaped_as(last, SHAPE(4, 3)), i == layer ? changed : -1, at[i]);
    for (uint32_t i = 0; i < w.l.g.n_nodes; i++) place(LEFT, i);
    bool stop[MAX_NODES];
    memset(stop, true, sizeof stop);
    for (int i = 0; i < STEPS; i++) stop[at[layer][i]] = false;
    stop[out[layer]] = false;
    const int64_t odd = lo_odd_one_out(&st, LEFT, out[layer], stop, &model);
    if (changed < 0) ck_assert_int_eq(odd, -1);
    if (odd >= 0) { /* the step of another layer in the same place */
      const int64_t place_in_layer = odd - at[layer][0];
      bool sibling = false;
      for (int i = 0; i < LAYERS; i++) sibling |= i != layer && model == at[i][0] + place_in_layer;
      ck_assert_msg(sibling, "seed %d: %u for %d", (int)seed, model, (int)odd);
    }
    n += changed >= 0;
    n_said += odd >= 0;
    n_found += changed >= 0 && odd == at[layer][changed];
    end();
  }
  ck_assert_msg(100 * n_found > 80 * n, "of %zu %zu are found, %zu said", n, n_found, n_said);
}
END_TEST

int main(void) {
  Suite *s = suite_create("alignment");
  TCase *t = tcase_create("alignment");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, shapes_are_compared_but_for_sizes_1);
  tcase_add_test(t, a_value_occurs_where_the_other_side_has_it);
  tcase_add_test(t, a_picture_has_the_largest_difference_of_each_cell);
  tcase_add_test(t, the_layer_that_is_unlike_its_siblings_is_found);
  suite_add_tcase(s, t);
  return run_suite(s);
}
