/* Integers lie within their spans (needs libtorch): random graphs of integers, run on leaves that
 * lie within theirs. */
#include "synth/leaves/integer_spans.h"
#include "tests/validate/engine_test.h"

enum { SEEDS = 700, OPS = 10, LEAVES = 5, MOST_NODES = LEAVES + 2 * OPS, DRAWS = 3, SIZE = 4 };
/* Leaves: two of integers, a truth value, a table of floats, one of integers. */
enum { X, Y, TRUTH, TABLE, INTEGERS };

static synth_node node[MOST_NODES];
static synth_graph g;
static eg_node at[MOST_NODES]; /* all are in the e-graph */
static state st = {.graph = {&g, &g}, .map = {at, at}};
static rule_tensor *value[DRAWS][MOST_NODES];
static st_span leaf_span[LEAVES];

static int64_t between(iso_rng *rng, int64_t low, int64_t high) {
  return low + (int64_t)iso_rng_below(rng, (uint64_t)(high - low + 1));
}

static st_span told(int64_t low, int64_t high) {
  return (st_span){.low = low, .high = high, .told = true};
}

static void add_leaf(rule_dtype dtype, rule_shape s, iso_rng *rng) {
  const size_t i = g.n_nodes++;
  const int64_t low = between(rng, -9, 9);
  leaf_span[i] = dtype == RULE_BOOL ? told(0, 1) : told(low, low + between(rng, 0, 9));
  for (int d = 0; d < DRAWS; d++) {
    value[d][i] = counting(dtype, s);
    for (int64_t k = 0; k < value[d][i]->numel; k++)
      rule_tensor_set(value[d][i], k, (double)between(rng, leaf_span[i].low, leaf_span[i].high));
  }
  node[i] = (synth_node){
      .kind = SYNTH_INPUT, .n_outputs = 1, .shape = s, .dtype = dtype, .value = &value[0][i]};
}

static void begin(iso_rng *rng) {
  g = (synth_graph){.node = node, .n_sets = 1};
  for (int i = 0; i < MOST_NODES; i++) at[i].i = 0;
  add_leaf(RULE_I64, SHAPE(SIZE), rng);
  add_leaf(RULE_I64, SHAPE(SIZE), rng);
  add_leaf(RULE_BOOL, SHAPE(SIZE), rng);
  add_leaf(RULE_F64, SHAPE(SIZE, 2), rng);
  add_leaf(RULE_I64, SHAPE(SIZE), rng);
}

static void end(void) {
  for (int d = 0; d < DRAWS; d++)
    for (size_t i = 0; i < g.n_nodes; i++) rule_tensor_unref(value[d][i]);
}

/* +: of some of these something has to be told. A, B: nodes of integers; M: one of truth values; N:
 * a number; P: one above 0. */
static const char *const calls[] = {
    "+(aten::add.Tensor A B)",
    "(aten::add.Tensor A B :alpha 3)",
    "+(aten::add.Tensor A N)",
    "+(aten::sub.Tensor A B)",
    "+(aten::sub.Tensor A N)",
    "+(aten::rsub.Scalar A N)",
    "+(aten::rsub.Tensor A B)",
    "+(aten::mul.Tensor A B)",
    "+(aten::mul.Tensor A N)",
    "+(aten::mul.Tensor A M)",
    "+(aten::neg A)",
    "(aten::abs A)",
    "(aten::square A)",
    "+(aten::where.self M A B)",
    "+(aten::masked_fill.Scalar A M N)",
    "+(aten::clamp A N P)",
    "+(aten::clamp A none P)",
    "+(aten::clamp_min A N)",
    "+(aten::clamp_max A N)",
    "+(aten::maximum A B)",
    "+(aten::minimum A B)",
    "+(aten::floor_divide A B)",
    "+(aten::floor_divide.Scalar A P)",
    "+(aten::div.Tensor_mode A B :rounding_mode \"floor\")",
    "+(aten::div.Scalar_mode A P :rounding_mode \"floor\")",
    "(aten::div.Scalar_mode A P :rounding_mode \"trunc\")",
    "+(aten::remainder.Scalar A P)",
    "+(aten::remainder.Scalar A N)",
    "+(aten::remainder.Tensor A B)",
    "+(aten::fmod.Scalar A P)",
    "+(aten::fmod.Tensor A B)",
    "+(aten::slice.Tensor A 0 1 3)",
    "+(aten::cat (list A B) 0)",
    "(aten::flip A (list 0))",
    "(aten::roll A (list 1) (list 0))",
    "+(aten::expand A (list 2 -1))",
    "(getitem (aten::sort A 0) 0)",
    "(getitem (aten::sort A 0) 1)",
    "(getitem (aten::max.dim A 0) 1)",
    "(getitem (aten::topk A 2 0) 1)",
    "(aten::cumsum A 0)",
    "(aten::sum A)",
    "(aten::argmax A 0)",
    "(aten::sign A)",
    "(aten::bitwise_and.Tensor A B)",
    "+(aten::_to_copy A :dtype int32)",
    "+(aten::_to_copy A :dtype uint8)",
    "+(aten::_to_copy M :dtype int64)",
    "+(aten::full_like A N)",
    "(aten::zeros_like A)",
    "(aten::ones_like A)",
    "+(aten::arange P)",
    "+(aten::arange.start N P)",
    "(aten::arange.start_step N P 2)",
    "+(aten::full (list 4) N)",
    "+(aten::zeros (list 4) :dtype int64)",
    "+(aten::index.Tensor A (list B))",
    "+(aten::gather A 0 B)",
    "+(aten::index_select A 0 B)",
    "(aten::lt.Tensor A B)",
    "(aten::eq.Scalar A N)",
    "(aten::logical_not M)",
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static size_t any_node(iso_rng *rng, bool truth) {
  for (int k = 0; k < 60; k++) {
    const size_t i = iso_rng_below(rng, g.n_nodes);
    if (truth ? node[i].dtype == RULE_BOOL : rule_dtype_is_int(node[i].dtype)) return i;
  }
  return truth ? TRUTH : X;
}

static const rule_term *draw_term(iso_rng *rng, const char *pattern) {
  char text[256], *p = text;
  for (const char *c = pattern; *c; c++) switch (*c) {
    case 'A':
    case 'B': p += sprintf(p, "x%d", (int)any_node(rng, false)); break;
    case 'M': p += sprintf(p, "x%d", (int)any_node(rng, true)); break;
    case 'N': p += sprintf(p, "%d", (int)between(rng, -6, 6)); break;
    case 'P': p += sprintf(p, "%d", (int)between(rng, 1, 7)); break;
    default: *p++ = *c;
    }
  *p = 0;
  return term_over(MOST_NODES, text);
}

/* Adds a node of this dtype, shape and call. */
static void add_step(const rule_term *call, size_t n_out, const rule_tensor *like) {
  node[g.n_nodes++] = (synth_node){.kind = SYNTH_OP,
                                   .op = call->u.s,
                                   .call = call,
                                   .n_outputs = n_out,
                                   .shape = like->shape,
                                   .dtype = like->dtype};
}

/* The call, and getitem of it where it gives several, where libtorch takes its operands. */
static void try_call(iso_rng *rng, const char *pattern) {
  iso_error err;
  const rule_term *t = draw_term(rng, pattern), *call;
  const bool item = rule_is_getitem(t->u.s);
  const rule_term *own = item ? t->child[0] : t;
  if (rule_call(&arena, schemas, own->u.s, own->child, own->n, &call, &err)) return;
  if (g.n_nodes + 1 + item > LEAVES + OPS) return;
  rule_tensor *made[DRAWS];
  const rule_term *whole =
      item ? rule_op(&arena, "getitem", (const rule_term *[]){call, t->child[1]}, 2) : call;
  for (int d = 0; d < DRAWS; d++)
    if (val_eval(engine, whole, value[d], VAL_FLOAT64, &made[d], &err)) {
      while (d-- > 0) rule_tensor_unref(made[d]);
      return;
    }
  if (item) { /* of a node of several results the first is what its dtype says */
    for (int d = 0; d < DRAWS; d++) value[d][g.n_nodes] = rule_tensor_ref(value[d][X]);
    add_step(call, 2, value[0][X]);
    whole =
        rule_op(&arena, "getitem",
                (const rule_term *[]){rule_var(&arena, (uint32_t)g.n_nodes - 1), t->child[1]}, 2);
  }
  for (int d = 0; d < DRAWS; d++) value[d][g.n_nodes] = made[d];
  add_step(whole, 1, made[0]);
}

/* Each node of integers chooses rows, so that none is left out. */
static void read_all(void) {
  const size_t n = g.n_nodes;
  for (size_t i = LEAVES; i < n; i++) {
    if (!rule_dtype_is_int(node[i].dtype) || node[i].n_outputs != 1) continue;
    const rule_term *arg[2] = {rule_var(&arena, TABLE), rule_var(&arena, (uint32_t)i)}, *call;
    iso_error err;
    ck_assert(rule_call(&arena, schemas, "aten::embedding", arg, 2, &call, &err) == ISO_OK);
    for (int d = 0; d < DRAWS; d++) value[d][g.n_nodes] = rule_tensor_ref(value[d][TABLE]);
    add_step(call, 1, value[0][TABLE]);
  }
}

static st_walk walk_from(const st_span *span) {
  st_walk walk;
  iso_error err;
  ck_assert(st_walk_new(&st, LEFT, &walk, &err) == ISO_OK);
  memcpy(walk.span, span, LEAVES * sizeof *span);
  st_walk_evaluate(&walk);
  return walk;
}

static size_t n_told[N_CALLS];

static void draw_graph(iso_rng *rng, size_t which[MOST_NODES]) {
  begin(rng);
  for (int k = 0; k < 4 * OPS; k++) {
    const size_t c = iso_rng_below(rng, N_CALLS), before = g.n_nodes;
    try_call(rng, calls[c] + (calls[c][0] == '+'));
    for (size_t i = before; i < g.n_nodes; i++) which[i] = c;
  }
  read_all();
}

START_TEST(integers_lie_within_their_spans) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 101);
    size_t which[MOST_NODES];
    draw_graph(&rng, which);
    st_walk walk = walk_from(leaf_span);
    for (size_t i = LEAVES; i < g.n_nodes; i++) {
      const st_span *s = &walk.span[i];
      if (node[i].n_outputs != 1 || !walk.needed[i] || !rule_dtype_is_int(node[i].dtype)) continue;
      n_told[which[i]] += s->told;
      for (int d = 0; d < DRAWS && s->told; d++)
        for (int64_t k = 0; k < value[d][i]->numel; k++) {
          const double x = rule_tensor_get(value[d][i], k);
          ck_assert_msg(x >= (double)s->low && x <= (double)s->high,
                        "seed %d: %s gives %g, not from %d to %d", (int)seed, calls[which[i]], x,
                        (int)s->low, (int)s->high);
        }
    }
    st_walk_free(&walk);
    end();
  }
  for (size_t k = 0; k < N_CALLS; k++)
    ck_assert_msg(n_told[k] > 0 || calls[k][0] != '+', "%s", calls[k]);
}
END_TEST

START_TEST(spans_grow_with_those_of_the_leaves) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 102);
    size_t which[MOST_NODES];
    draw_graph(&rng, which);
    st_span larger[LEAVES];
    for (int i = 0; i < LEAVES; i++) {
      larger[i] = leaf_span[i];
      larger[i].low -= between(&rng, 0, 3);
      larger[i].high += between(&rng, 0, 3);
    }
    st_walk small = walk_from(leaf_span), large = walk_from(larger);
    for (size_t i = LEAVES; i < g.n_nodes; i++) {
      const st_span *s = &small.span[i], *l = &large.span[i];
      if (!l->told) continue;
      ck_assert_msg(s->told && l->low <= s->low && s->high <= l->high, "seed %d: %s", (int)seed,
                    node[i].op);
    }
    st_walk_free(&small);
    st_walk_free(&large);
    end();
  }
}
END_TEST

/* ---- readings ---- */

/* Of a table [SIZE, 2] whose last row is zero. */
static const struct {
  const char *call;
  int64_t rows, used;
  bool wraps, has_none;
} readings[] = {{"(aten::embedding x3 x0)", SIZE, SIZE - 1, false, false},
                {"(aten::index.Tensor x3 (list x0))", SIZE, SIZE - 1, true, false},
                {"(aten::index.Tensor x3 (list none x0))", 2, 2, true, false},
                {"(aten::index_select x3 0 x0)", SIZE, SIZE - 1, false, false},
                {"(aten::index_select x3 -1 x0)", 2, 2, false, false},
                {"(aten::gather x3 1 x0)", 2, 2, false, false},
                {"(aten::one_hot x0 7)", 7, 7, false, false},
                {"(aten::cross_entropy_loss x3 x0)", 2, 2, false, true}};

START_TEST(rows_are_those_of_the_table_less_padding) {
  for (size_t k = 0; k < sizeof readings / sizeof *readings; k++)
    for (int all_zero = 0; all_zero < 2; all_zero++) {
      iso_rng rng = iso_rng_new(k, 103);
      iso_error err;
      begin(&rng);
      rule_tensor *t = value[0][TABLE];
      for (int64_t i = 0; i < t->numel; i++)
        rule_tensor_set(t, i, all_zero || i >= t->numel - 2 ? 0 : 1 + (double)i);
      const rule_term *own = term_over(MOST_NODES, readings[k].call), *call;
      ck_assert(rule_call(&arena, schemas, own->u.s, own->child, own->n, &call, &err) == ISO_OK);
      value[0][g.n_nodes] = rule_tensor_ref(t);
      value[1][g.n_nodes] = value[2][g.n_nodes] = NULL;
      add_step(call, 1, t);
      st_walk walk = walk_from(leaf_span);
      ck_assert_uint_eq(walk.n_read, 1);
      const st_look_up *r = &walk.read[0];
      ck_assert_uint_eq(r->index, X);
      ck_assert_int_eq(r->rows, readings[k].rows);
      ck_assert_int_eq(r->used, all_zero ? readings[k].rows : readings[k].used);
      ck_assert(r->wraps == readings[k].wraps && r->has_none == readings[k].has_none);
      ck_assert(!r->has_none || r->none == -100);
      ck_assert(walk.needed[X] && !walk.needed[Y]);
      st_walk_free(&walk);
      end();
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("integer_spans");
  TCase *t = tcase_create("integer_spans");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, integers_lie_within_their_spans);
  tcase_add_test(t, spans_grow_with_those_of_the_leaves);
  tcase_add_test(t, rows_are_those_of_the_table_less_padding);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
