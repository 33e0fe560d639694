/* Ranges that integer inputs are drawn from, held against all values: none in them makes an index
 * leave its table, whatever the others are, and where one end is moved on some index does. */
#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SEEDS = 600, MOST_INPUTS = 3, CAPTURED = 2, MOST_STEPS = 4, MOST_READS = 2 };

/* An index as it is computed: of one input, and further ones added. */
typedef struct step {
  enum { PLUS, MINUS, TIMES, DIVIDED, AT_LEAST, AT_MOST, MODULO, PLUS_INPUT, STEPS } kind;
  int64_t by; /* the number, or the input */
} step;

typedef struct look_up {
  step step[MOST_STEPS];
  int n_steps, first, n_inputs; /* inputs first to first + n_inputs - 1, each once */
  int64_t rows;
  bool from_end;
} look_up;

typedef struct program {
  int n_inputs, n_reads;
  int64_t captured[MOST_INPUTS][CAPTURED];
  look_up read[MOST_READS];
} program;

static int64_t of_step(const step *s, int64_t i, const int64_t *x) {
  switch (s->kind) {
  case PLUS: return i + s->by;
  case MINUS: return i - s->by;
  case TIMES: return i * s->by;
  case DIVIDED: return i / s->by - (i % s->by < 0);
  case AT_LEAST: return i > s->by ? i : s->by;
  case AT_MOST: return i < s->by ? i : s->by;
  case MODULO: return (i % s->by + s->by) % s->by;
  default: return i + x[s->by];
  }
}

static int64_t index_of(const look_up *r, const int64_t *x) {
  int64_t i = x[r->first];
  for (int k = 0; k < r->n_steps; k++) i = of_step(&r->step[k], i, x);
  return i;
}

static bool is_inside(const look_up *r, const int64_t *x) {
  const int64_t i = index_of(r, x);
  return i >= (r->from_end ? -r->rows : 0) && i < r->rows;
}

/* ---- programs at random ---- */

static int64_t between(iso_rng *rng, int64_t low, int64_t high) {
  return low + (int64_t)iso_rng_below(rng, (uint64_t)(high - low + 1));
}

/* `linear`: of sums and multiples alone. */
static look_up draw_look_up(iso_rng *rng, int n_inputs, bool linear) {
  look_up r = {.rows = between(rng, 2, 24), .from_end = iso_rng_below(rng, 4) == 0};
  r.first = (int)iso_rng_below(rng, (uint64_t)n_inputs);
  r.n_inputs = 1;
  r.n_steps = (int)iso_rng_below(rng, MOST_STEPS + 1);
  for (int k = 0; k < r.n_steps; k++) {
    step *s = &r.step[k];
    s->kind = (int)iso_rng_below(rng, STEPS);
    if (linear && s->kind != TIMES && s->kind != PLUS_INPUT) s->kind %= 2;
    s->by = between(rng, 1, 4);
    if (s->kind == AT_LEAST) s->by = between(rng, 0, 2);
    if (s->kind == AT_MOST || s->kind == MODULO) s->by = between(rng, 2, 30);
    if (s->kind != PLUS_INPUT) continue;
    s->by = r.first + r.n_inputs;
    if (s->by < n_inputs) r.n_inputs++;
    else *s = (step){PLUS, 1};
  }
  return r;
}

static program draw(iso_rng *rng, bool linear) {
  program p = {.n_inputs = 1 + (int)iso_rng_below(rng, MOST_INPUTS),
               .n_reads = 1 + (int)iso_rng_below(rng, MOST_READS)};
  for (int i = 0; i < p.n_inputs; i++)
    for (int k = 0; k < CAPTURED; k++) p.captured[i][k] = between(rng, 0, 4);
  for (int k = 0; k < p.n_reads; k++) p.read[k] = draw_look_up(rng, p.n_inputs, linear);
  return p;
}

/* ---- the same as a graph ---- */

static const rule_term *node_by(const rule_term *t, rule_dtype dtype) {
  uint32_t i;
  synth_node *n = new_node(&w.l, &i);
  n->kind = SYNTH_OP;
  n->op = t->u.s;
  n->call = t;
  n->dtype = dtype;
  add_atom(LEFT, i);
  return v(i);
}

static const rule_term *integers(const char *op, const rule_term *a, const rule_term *b) {
  return node_by(call_of(op, (const rule_term *const[5]){a, b}), RULE_I64);
}

static const rule_term *built(const step *s, const rule_term *x) {
  static const char *const op[] = {
      [PLUS] = "aten::add.Tensor",         [MINUS] = "aten::sub.Tensor",
      [TIMES] = "aten::mul.Tensor",        [DIVIDED] = "aten::floor_divide.Scalar",
      [AT_LEAST] = "aten::clamp_min",      [AT_MOST] = "aten::clamp_max",
      [MODULO] = "aten::remainder.Scalar", [PLUS_INPUT] = "aten::add.Tensor"};
  return integers(op[s->kind], x, s->kind == PLUS_INPUT ? v((uint32_t)s->by) : num(s->by));
}

static void build_look_up(const look_up *r) {
  rule_tensor *rows = constant(SHAPE(r->rows, 2), 1);
  const uint32_t table = weight(&w.l, "table", rows);
  const rule_term *x = v((uint32_t)r->first);
  add_atom(LEFT, table);
  st.rec[st.map[LEFT][table].i].leaf = true;
  for (int k = 0; k < r->n_steps; k++) x = built(&r->step[k], x);
  const rule_term *list = rule_list(&w.arena, &x, 1), *arg[5] = {v(table), r->from_end ? list : x};
  node_by(call_of(r->from_end ? "aten::index.Tensor" : "aten::embedding", arg), RULE_F64);
}

static void build(const program *p) {
  begin_state();
  for (int i = 0; i < p->n_inputs; i++) {
    rule_tensor *t = keep(make_as(RULE_I64, SHAPE(CAPTURED)));
    for (int k = 0; k < CAPTURED; k++) rule_tensor_set(t, k, (double)p->captured[i][k]);
    const uint32_t at = input(&w.l, t);
    w.l.node[at].dtype = RULE_I64;
    add_atom(LEFT, at);
    st.rec[st.map[LEFT][at].i].leaf = st.rec[st.map[LEFT][at].i].atom = true;
  }
  for (int k = 0; k < p->n_reads; k++) build_look_up(&p->read[k]);
  for (int side = 0; side < 2; side++)
    ck_assert((st.leaves.kept[side] = calloc(MAX_NODES, 1)) != NULL);
  ck_assert_msg(st_find_ranges(&st, &err) == ISO_OK, "%s", err.msg);
}

static void end(void) {
  for (int side = 0; side < 2; side++) free(st.leaves.kept[side]), free(st.leaves.range[side]);
  end_state();
}

/* ---- what is known of them ---- */

/* The values of an input: of its range, or those that were captured. */
typedef struct values {
  int64_t low, high; /* both inside */
  bool told;
} values;

static values values_of(const program *p, int i) {
  const st_range *r = &st.leaves.range[LEFT][i];
  const int64_t a = p->captured[i][0], b = p->captured[i][1];
  if (r->told && !st.leaves.kept[LEFT][i]) return (values){r->low, r->high - 1, true};
  return (values){a < b ? a : b, a < b ? b : a, false};
}

/* Whether some values of the look-up's inputs lead outside; `fixed` is at `at`. */
static bool leaves_table(const look_up *r, const values *of, int fixed, int64_t at) {
  int64_t x[MOST_INPUTS], low[MOST_INPUTS], high[MOST_INPUTS];
  for (int k = 0; k < r->n_inputs; k++) {
    const int i = r->first + k;
    low[i] = x[i] = i == fixed ? at : of[i].low;
    high[i] = i == fixed ? at : of[i].high;
  }
  for (;;) {
    int k = 0;
    if (!is_inside(r, x)) return true;
    while (k < r->n_inputs && x[r->first + k] == high[r->first + k]) {
      x[r->first + k] = low[r->first + k];
      k++;
    }
    if (k == r->n_inputs) return false;
    x[r->first + k]++;
  }
}

/* Whether what was captured is inside, each input with any of its own values. */
static bool fits_captured(const program *p) {
  values of[MOST_INPUTS];
  bool all = true;
  for (int i = 0; i < p->n_inputs; i++) {
    const int64_t a = p->captured[i][0], b = p->captured[i][1];
    of[i] = (values){a < b ? a : b, a < b ? b : a, false};
  }
  for (int k = 0; k < p->n_reads; k++) all &= !leaves_table(&p->read[k], of, -1, 0);
  return all;
}

static bool reads(const look_up *r, int i) { return i >= r->first && i < r->first + r->n_inputs; }

START_TEST(no_value_in_its_range_leaves_a_table) {
  int told = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 5);
    const program p = draw(&rng, seed % 2);
    if (!fits_captured(&p)) continue;
    values of[MOST_INPUTS];
    build(&p);
    for (int i = 0; i < p.n_inputs; i++) {
      of[i] = values_of(&p, i);
      told += of[i].told;
      for (int k = 0; k < CAPTURED && of[i].told; k++)
        ck_assert(of[i].low <= p.captured[i][k] && p.captured[i][k] <= of[i].high);
    }
    for (int k = 0; k < p.n_reads; k++)
      ck_assert_msg(!leaves_table(&p.read[k], of, -1, 0), "seed %d, table %d", (int)seed, k);
    end();
  }
  ck_assert_int_gt(told, SEEDS / 4);
}
END_TEST

/* Of sums and multiples the range is as wide as the tables admit. */
START_TEST(one_value_further_on_leaves_a_table) {
  int seen = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 6);
    const program p = draw(&rng, true);
    if (!fits_captured(&p)) continue;
    values of[MOST_INPUTS];
    build(&p);
    for (int i = 0; i < p.n_inputs; i++) of[i] = values_of(&p, i);
    for (int i = 0; i < p.n_inputs; i++) {
      bool above = false, below = false, read = false;
      for (int k = 0; k < p.n_reads; k++) {
        if (!reads(&p.read[k], i)) continue;
        read = true;
        above |= leaves_table(&p.read[k], of, i, of[i].high + 1);
        below |= p.read[k].from_end || leaves_table(&p.read[k], of, i, of[i].low - 1);
      }
      ck_assert_msg(read == of[i].told, "seed %d: input %d is %sread", (int)seed, i,
                    read ? "" : "not ");
      ck_assert_msg(!read || above, "seed %d: input %d may be %d", (int)seed, i,
                    (int)of[i].high + 1);
      /* Negative numbers go no further than the others; counted from the end they may be left out.
       */
      ck_assert_msg(!read || below || of[i].low <= -of[i].high, "seed %d: input %d may be %d",
                    (int)seed, i, (int)of[i].low - 1);
      seen += read;
    }
    end();
  }
  ck_assert_int_gt(seen, SEEDS / 2);
}
END_TEST

/* Captured values that go together, where others would leave the table: they are kept. */
START_TEST(inputs_that_may_leave_a_table_keep_their_values) {
  int n = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 7);
    program p = draw(&rng, true);
    p.n_reads = 1;
    if (fits_captured(&p)) continue;
    build(&p);
    for (int i = 0; i < p.n_inputs; i++)
      ck_assert_msg(st.leaves.kept[LEFT][i] == reads(&p.read[0], i), "seed %d: input %d", (int)seed,
                    i);
    n++;
    end();
  }
  ck_assert_int_gt(n, SEEDS / 20);
}
END_TEST

int main(void) {
  Suite *s = suite_create("integer_ranges");
  TCase *t = tcase_create("integer_ranges");
  tcase_add_test(t, no_value_in_its_range_leaves_a_table);
  tcase_add_test(t, one_value_further_on_leaves_a_table);
  tcase_add_test(t, inputs_that_may_leave_a_table_keep_their_values);
  suite_add_tcase(s, t);
  return run_suite(s);
}
