/* Parameters that were computed when a model was loaded: every computation folded into a weight or
 * a bias is found as a term that gives its values, and for numbers that come of no computation none
 * is found. */
#include "tests/synth/small_graphs.h"
#include "tests/support/suite.h"

enum { ROWS = 5, COLUMNS = 4, RANK = 2 };

/* ---- terms, computed plainly ---- */

static double number_of(const char *op, double x, double y) {
  if (strcmp(op, "aten::add.Tensor") == 0) return x + y;
  if (strcmp(op, "aten::sub.Tensor") == 0) return x - y;
  if (strcmp(op, "aten::mul.Tensor") == 0) return x * y;
  if (strcmp(op, "aten::neg") == 0) return -x;
  if (strcmp(op, "aten::exp") == 0) return exp(x);
  if (strcmp(op, "aten::sqrt") == 0) return sqrt(x);
  if (strcmp(op, "aten::rsqrt") == 0) return 1 / sqrt(x);
  if (strcmp(op, "aten::reciprocal") == 0) return 1 / x;
  ck_abort_msg("%s", op);
}

static rule_tensor *elementwise(const char *op, const rule_tensor *x, const rule_tensor *y) {
  rule_shape s;
  ck_assert(broadcast(&x->shape, &y->shape, &s));
  rule_tensor *r = keep(make(s));
  for (int64_t i = 0; i < r->numel; i++)
    rule_tensor_set(r, i,
                    number_of(op, rule_tensor_get(x, broadcast_at(&s, i, &x->shape)),
                              rule_tensor_get(y, broadcast_at(&s, i, &y->shape))));
  return r;
}

static rule_tensor *product(const rule_tensor *a, const rule_tensor *b) {
  const int64_t n = a->shape.dim[1], columns = b->shape.rank > 1 ? b->shape.dim[1] : 1;
  rule_tensor *r =
      keep(make(b->shape.rank > 1 ? SHAPE(a->shape.dim[0], columns) : SHAPE(a->shape.dim[0])));
  for (int64_t i = 0; i < r->numel; i++) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
      sum +=
          rule_tensor_get(a, i / columns * n + j) * rule_tensor_get(b, j * columns + i % columns);
    rule_tensor_set(r, i, sum);
  }
  return r;
}

static rule_tensor *value_of(const rule_term *t, rule_tensor *const *leaf) {
  if (t->kind == RULE_VAR) return leaf[t->u.i];
  if (t->kind != RULE_OP) return keep(operand(t, NULL));
  if (strcmp(t->u.s, "node") == 0) return leaf[t->child[0]->u.i];
  rule_tensor *x = value_of(t->child[0], leaf);
  if (strcmp(t->u.s, "aten::t") == 0) return keep(transposed(x, 0, 1));
  if (strcmp(t->u.s, "aten::reshape") == 0) return keep(reshaped(x, list_shape(t->child[1])));
  rule_tensor *y = t->n > 1 ? value_of(t->child[1], leaf) : x;
  return strcmp(t->u.s, "aten::matmul") == 0 ? product(x, y) : elementwise(t->u.s, x, y);
}

/* ---- a model before it is loaded ---- */

/* y = (linear(x * s, w, b) - m) * r + z, and an adapter of low rank beside it. */
enum { X, S, W, B, M, R, Z, LOW, HIGH, LEAVES };
static rule_tensor *given[MAX_NODES];

static rule_tensor *stored(uint64_t seed, rule_shape shape, bool positive_) {
  rule_tensor *t = noise(seed, shape, 0, 1);
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    rule_tensor_set(t, i, (float)(positive_ ? 0.2 + fabs(x) : x));
  }
  return t;
}

static uint32_t step(graph *g, const char *op_name, uint32_t a, uint32_t b, int64_t third) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  const rule_term *arg[] = {v(a), v(b), third < 0 ? NULL : v((uint32_t)third)};
  n->kind = SYNTH_OP;
  n->op = op_name;
  n->call = rule_op(&w.arena, op_name, arg, third < 0 ? 2 : 3);
  return i;
}

static void before_loading(uint64_t seed) {
  static const char *const name[] = {"x", "s", "w", "b", "m", "r", "z", "low", "high"};
  const rule_shape shape[] = {SHAPE(3, COLUMNS), SHAPE(COLUMNS),    SHAPE(ROWS, COLUMNS),
                              SHAPE(ROWS),       SHAPE(ROWS),       SHAPE(ROWS),
                              SHAPE(ROWS),       SHAPE(ROWS, RANK), SHAPE(RANK, COLUMNS)};
  for (uint32_t i = 0; i < LEAVES; i++) {
    rule_tensor *t = stored(16 * seed + i, shape[i], i == S || i == R);
    leaf(&w.l, i == X ? SYNTH_INPUT : SYNTH_PARAMETER, name[i], t, t);
    given[i] = i == X ? NULL : t;
  }
  const uint32_t h = step(&w.l, "aten::mul.Tensor", X, S, -1),
                 y = step(&w.l, "aten::linear", h, W, B),
                 centred = step(&w.l, "aten::sub.Tensor", y, M, -1),
                 scaled = step(&w.l, "aten::mul.Tensor", centred, R, -1),
                 moved = step(&w.l, "aten::add.Tensor", scaled, Z, -1);
  const uint32_t low = step(&w.l, "aten::linear", h, HIGH, -1),
                 high = step(&w.l, "aten::linear", low, LOW, -1);
  step(&w.l, "aten::add.Tensor", moved, high, -1);
}

/* ---- folds ---- */

typedef enum kind { NUMBER, TURNED, BY_COLUMN, BY_INVERSE, BY_ROW, MERGED, KINDS } kind;

static const rule_term *two(const char *op_name, const rule_term *a, const rule_term *b) {
  const rule_term *arg[] = {a, b};
  return rule_op(&w.arena, op_name, arg, 2);
}
static const rule_term *one(const char *op_name, const rule_term *a) {
  return rule_op(&w.arena, op_name, &a, 1);
}
static const rule_term *times(const rule_term *a, const rule_term *b) {
  return two("aten::mul.Tensor", a, b);
}
static const rule_term *as_column(const rule_term *t) {
  const rule_term *size[] = {num(ROWS), num(1)};
  return two("aten::reshape", t, rule_list(&w.arena, size, 2));
}

static const rule_term *weight_of(kind as, iso_rng *rng) {
  static const double numbers[] = {0.125, -3, 0.35, 0.5};
  const rule_term *c = rule_float(&w.arena, numbers[iso_rng_below(rng, 4)]);
  switch (as) {
  case NUMBER: return times(v(W), c);
  case TURNED: return times(one("aten::t", v(W)), c);
  case BY_COLUMN: return times(v(W), v(S));
  case BY_INVERSE: return times(v(W), one("aten::reciprocal", v(S)));
  case BY_ROW: return times(v(W), as_column(v(R)));
  default: return two("aten::add.Tensor", v(W), times(two("aten::matmul", v(LOW), v(HIGH)), c));
  }
}

/* The bias that a normalisation by rows leaves. */
static const rule_term *bias_of(void) {
  return two("aten::add.Tensor", times(two("aten::sub.Tensor", v(B), v(M)), v(R)), v(Z));
}

/* The values of a term as a file has them, one of them perhaps another number. */
static rule_tensor *loaded(const rule_term *t, int64_t wrong) {
  const rule_tensor *x = value_of(t, given);
  rule_tensor *r = keep(make_as(RULE_F32, x->shape));
  for (int64_t i = 0; i < x->numel; i++)
    rule_tensor_set(r, i, rule_tensor_get(x, i) * (i == wrong ? 1.001 : 1));
  return r;
}

static synth_folds found(const uint32_t *node, size_t n) {
  static const rule_tensor *none[MAX_NODES];
  const synth_graph *graphs[2] = {&w.l.g, &w.r.g};
  rule_tensor *const *value[2] = {given, (rule_tensor *const *)none};
  struct synth_leaf_ref open[2];
  synth_folds f;
  iso_error err;
  for (size_t i = 0; i < n; i++) open[i] = (struct synth_leaf_ref){true, node[i]};
  ck_assert(synth_find_folds(graphs, value, open, n, &w.arena, &f, &err) == ISO_OK);
  return f;
}

static bool gives(const rule_term *t, const rule_tensor *want) {
  const rule_tensor *x = value_of(t, given);
  return rule_shape_eq(&x->shape, &want->shape) && small_compare(NULL, want, x, 1e-6).equal;
}

static void begin(uint64_t seed) {
  setup();
  memset(given, 0, sizeof given);
  before_loading(seed);
}

START_TEST(a_weight_that_was_computed_is_found) {
  for (uint64_t seed = 0; seed < 40; seed++)
    for (int wrong = 0; wrong < 2; wrong++) {
      iso_rng rng = iso_rng_new(seed, 2);
      begin(seed);
      const rule_term *how = weight_of((kind)_i, &rng);
      rule_tensor *t = loaded(how, wrong ? (int64_t)iso_rng_below(&rng, ROWS * COLUMNS) : -1);
      const uint32_t x = input(&w.r, noise(seed, SHAPE(3, COLUMNS), 0, 1)),
                     folded = weight(&w.r, "weight", t);
      w.r.node[folded].dtype = RULE_F32;
      step(&w.r, "aten::linear", x, folded, -1);
      const synth_folds f = found(&folded, 1);
      ck_assert_msg(f.n == !wrong, "kind %d, seed %d, %s", _i, (int)seed,
                    wrong ? "found though wrong" : "not found");
      if (f.n) {
        ck_assert(f.of[0].right && f.of[0].leaf == folded);
        ck_assert_msg(gives(f.of[0].term, t), "kind %d, seed %d: %s", _i, (int)seed,
                      rule_term_print(f.of[0].term, NULL, NULL));
      }
      teardown();
    }
}
END_TEST

START_TEST(a_bias_is_found_by_what_its_weight_was_multiplied_by) {
  for (uint64_t seed = 0; seed < 40; seed++)
    for (int wrong = 0; wrong < 2; wrong++) {
      iso_rng rng = iso_rng_new(seed, 3);
      begin(seed);
      rule_tensor *t = loaded(weight_of(BY_ROW, &rng), -1),
                  *b = loaded(bias_of(), wrong ? (int64_t)iso_rng_below(&rng, ROWS) : -1);
      const uint32_t x = input(&w.r, noise(seed, SHAPE(3, COLUMNS), 0, 1));
      const uint32_t folded[] = {weight(&w.r, "weight", t), weight(&w.r, "bias", b)};
      for (int i = 0; i < 2; i++) w.r.node[folded[i]].dtype = RULE_F32;
      step(&w.r, "aten::linear", x, folded[0], folded[1]);
      const synth_folds f = found(folded, 2);
      ck_assert_msg(f.n == (wrong ? 1 : 2), "seed %d: %zu found", (int)seed, f.n);
      ck_assert(gives(f.of[0].term, t));
      if (!wrong) ck_assert(gives(f.of[1].term, b));
      teardown();
    }
}
END_TEST

/* Ones and zeros, and numbers of nobody's, are nobody's fold. */
START_TEST(other_numbers_are_no_fold) {
  for (uint64_t seed = 0; seed < 40; seed++)
    for (int ones_ = 0; ones_ < 2; ones_++) {
      begin(seed);
      rule_tensor *t = ones_ ? constant(SHAPE(ROWS, COLUMNS), 1)
                             : stored(1000 + seed, SHAPE(ROWS, COLUMNS), false);
      const uint32_t x = input(&w.r, noise(seed, SHAPE(3, COLUMNS), 0, 1)),
                     other = weight(&w.r, "weight", t);
      step(&w.r, "aten::linear", x, other, -1);
      ck_assert_uint_eq(found(&other, 1).n, 0);
      teardown();
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("folds");
  TCase *t = tcase_create("folds");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_weight_that_was_computed_is_found, 0, KINDS);
  tcase_add_test(t, a_bias_is_found_by_what_its_weight_was_multiplied_by);
  tcase_add_test(t, other_numbers_are_no_fold);
  suite_add_tcase(s, t);
  return run_suite(s);
}
