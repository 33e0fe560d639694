/* Results whose order is open are followed rightly (needs libtorch): what is said of a call's
 * result is held against libtorch, on operands whose rows were given other orders. */
#include "capture/orders/orders.h"
#include "egraph/base/rng.h"
#include "rules/operators.h"
#include "tests/validate/engine_test.h"

enum { SEEDS = 600, MOST_NODES = 24, ORDERS = 4, MOST_OUT = 4, TRIES = 60 };

static cap_graph g;
static cap_node node[MOST_NODES];
static cap_output output[MOST_NODES][MOST_OUT];
static along state_of[MOST_NODES];
/* By order, the first of which is as drawn; of each node its results. */
static rule_tensor *value[ORDERS][MOST_NODES][MOST_OUT];
static rule_shape rows; /* of the call whose order is open */
static uint32_t permuted;
static int64_t place[ORDERS][64][4]; /* by order and row: which element comes where */

/* ---- orders of rows ---- */

/* The number of a row: of an element of a tensor of that shape, in which the rows' dimensions lie
 * at `at`; in `k` its place in the row. */
static int64_t row_of(const rule_shape *s, const uint8_t *at, int64_t i, int64_t *k) {
  int64_t c[RULE_MAX_RANK] = {0}, row = 0;
  for (uint32_t d = s->rank; d-- > 0; i /= s->dim[d]) c[d] = i % s->dim[d];
  for (uint32_t r = 0; r < rows.rank; r++)
    if (r != permuted) row = row * rows.dim[r] + c[at[r]];
  *k = c[at[permuted]];
  return row;
}

/* The element that comes to `i` in that order. */
static int64_t comes_from(const rule_shape *s, const uint8_t *at, int64_t i, int order) {
  int64_t k, stride = 1;
  const int64_t row = row_of(s, at, i, &k);
  for (uint32_t d = at[permuted] + 1u; d < s->rank; d++) stride *= s->dim[d];
  return i + (place[order][row][k] - k) * stride;
}

static void draw_orders(iso_rng *rng) {
  for (int o = 0; o < ORDERS; o++)
    for (int row = 0; row < 64; row++)
      for (int64_t k = 0; k < rows.dim[permuted]; k++) {
        const int64_t j = o ? (int64_t)iso_rng_below(rng, (uint64_t)k + 1) : k;
        place[o][row][k] = place[o][row][j];
        place[o][row][j] = k;
      }
}

/* ---- graphs ---- */

/* `front`: how many dimensions stand before those of the rows. */
static void add_leaf(rule_dtype dtype, rule_shape s, bool depends, uint32_t front, iso_rng *rng) {
  const size_t i = g.n_nodes++;
  const uint64_t most = (uint64_t)rows.dim[rows.rank - 1];
  rule_tensor *t = counting(dtype, s);
  for (int64_t e = 0; e < t->numel; e++)
    rule_tensor_set(t, e,
                    dtype == RULE_F64 ? iso_rng_normal(rng) : (double)iso_rng_below(rng, most));
  state_of[i] = (along){.depends = depends};
  for (uint32_t r = 0; r < rows.rank; r++) state_of[i].at[r] = (uint8_t)(r + front);
  for (int o = 0; o < ORDERS; o++) {
    value[o][i][0] = counting(dtype, s);
    for (int64_t e = 0; e < t->numel; e++)
      rule_tensor_set(value[o][i][0], e,
                      rule_tensor_get(t, depends ? comes_from(&s, state_of[i].at, e, o) : e));
  }
  rule_tensor_unref(t);
  output[i][0] = (cap_output){s, dtype};
  node[i] = (cap_node){.kind = CAP_INPUT, .n_outputs = 1, .output = output[i]};
}

static void begin(uint64_t seed, iso_rng *rng) {
  *rng = iso_rng_new(seed, 81);
  g = (cap_graph){.schemas = schemas, .node = node, .n_sets = 1};
  rows = (rule_shape){.rank = 1 + (uint32_t)iso_rng_below(rng, 3)};
  for (uint32_t d = 0; d < rows.rank; d++) rows.dim[d] = 1 + (int64_t)iso_rng_below(rng, 4);
  permuted = (uint32_t)iso_rng_below(rng, rows.rank);
  draw_orders(rng);
  const int64_t last = rows.dim[rows.rank - 1];
  rule_shape level = rows, more = {.rank = rows.rank + 2};
  level.dim[permuted] = 1;
  more.dim[0] = 2;
  more.dim[more.rank - 1] = 3;
  memcpy(more.dim + 1, rows.dim, rows.rank * sizeof *rows.dim);
  add_leaf(RULE_F64, rows, true, 0, rng);
  add_leaf(RULE_I64, rows, true, 0, rng);
  add_leaf(RULE_F64, more, true, 1, rng);
  add_leaf(RULE_F64, rows, false, 0, rng);
  add_leaf(RULE_F64, level, false, 0, rng);
  add_leaf(RULE_F64, SHAPE(last, 3), false, 0, rng);
  add_leaf(RULE_F64, SHAPE(last), false, 0, rng);
  add_leaf(RULE_F64, SHAPE(3, last), false, 0, rng);
  add_leaf(RULE_F64, SHAPE(2, 3, last), false, 0, rng);
  add_leaf(RULE_I64, SHAPE(2), false, 0, rng);
}

static void end(void) {
  for (int o = 0; o < ORDERS; o++)
    for (size_t i = 0; i < g.n_nodes; i++)
      for (size_t k = 0; k < node[i].n_outputs; k++) rule_tensor_unref(value[o][i][k]);
}

/* +: some of the calls have to be followed. "result": one of a node's that gives several. Capital
 * letters are drawn: A, B a node; D, E a dimension of A; N a
 * small number; K whether dimensions are kept; S sizes that A's elements fill; L A's own sizes with
 * one in front. */
static const char *const calls[] = {"+(aten::add.Tensor A B)",
                                    "+(aten::mul.Tensor A B)",
                                    "+(aten::div.Tensor A 2.0)",
                                    "+(aten::where.self B A A)",
                                    "+(aten::eq.Tensor A B)",
                                    "+(aten::neg A)",
                                    "+(aten::relu A)",
                                    "+(aten::clone A)",
                                    "+(aten::sum A)",
                                    "+(aten::sum.dim_IntList A (list D) K)",
                                    "+(aten::sum.dim_IntList A (list D E) K)",
                                    "(aten::sum.dim_IntList A (list) K)",
                                    "+(aten::mean.dim A (list D) K)",
                                    "+(aten::prod.dim_int A D K)",
                                    "+(aten::amax A (list D) K)",
                                    "+(aten::logsumexp A (list D) K)",
                                    "+(aten::any.dim A D K)",
                                    "(aten::argmax A D K)",
                                    "(aten::var.correction A (list D))",
                                    "(aten::cumsum A D)",
                                    "+(aten::softmax.int A D)",
                                    "(aten::log_softmax.int A D)",
                                    "+(aten::linear A B)",
                                    "+(aten::matmul A B)",
                                    "(aten::mm A B)",
                                    "+(aten::bmm A B)",
                                    "+(aten::reshape A (list S))",
                                    "+(aten::view A (list S))",
                                    "+(aten::expand A (list L))",
                                    "+(aten::unsqueeze A D)",
                                    "+(aten::squeeze.dim A D)",
                                    "(aten::transpose.int A D E)",
                                    "+(aten::slice.Tensor A D 0 N)",
                                    "+(aten::slice.Tensor A D N)",
                                    "+(aten::select.int A D 0)",
                                    "+(aten::narrow A D 0 N)",
                                    "(getitem (aten::unbind.int A D) 0)",
                                    "(getitem (aten::split.Tensor A N D) 0)",
                                    "(getitem (aten::chunk A N D) 0)",
                                    "(getitem (aten::topk A N D true true) 0)",
                                    "(getitem (aten::sort A D) 0)",
                                    "+result",
                                    "(aten::diagonal A 0 D E)",
                                    "(aten::flip A (list D))",
                                    "(aten::roll A (list N) (list D))",
                                    "(aten::tril A)",
                                    "(aten::cat (list A B) D)",
                                    "(aten::stack (list A B) D)",
                                    "(aten::layer_norm A (list N))",
                                    "(aten::embedding A B)",
                                    "+(aten::index_select A D B)",
                                    "+(aten::index.Tensor A (list B))",
                                    "+(aten::index.Tensor A (list none B))",
                                    "(aten::index.Tensor A (list B none B))",
                                    "+(aten::gather A D B)"};
enum { N_CALLS = sizeof calls / sizeof *calls };

static const rule_shape *shape_at(size_t i) { return &output[i][0].shape; }

static size_t any_node(iso_rng *rng, bool several) {
  size_t i = 0;
  for (int k = 0; k < 50; k++) {
    i = iso_rng_below(rng, g.n_nodes);
    /* Half of the time a permuted one. */
    if ((node[i].n_outputs > 1) == several && (state_of[i].depends || k % 2)) return i;
  }
  return several ? 0 : i;
}

/* The sizes with 1s put in or left out, or two of them joined, or one taken apart. */
static char *write_sizes(char *p, iso_rng *rng, const rule_shape *s, bool expand) {
  int64_t dim[2 * RULE_MAX_RANK];
  uint32_t n = 0;
  if (expand) dim[n++] = 2;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (!expand && iso_rng_below(rng, 5) == 0) dim[n++] = 1;
    if (!expand && s->dim[d] == 1 && iso_rng_below(rng, 2)) continue;
    if (!expand && s->dim[d] == 4 && iso_rng_below(rng, 3) == 0) dim[n++] = 2, dim[n++] = 2;
    else if (!expand && n && iso_rng_below(rng, 5) == 0) dim[n - 1] *= s->dim[d];
    else dim[n++] = s->dim[d];
  }
  if (!expand && n > 1 && iso_rng_below(rng, 6) == 0) { /* the same elements in other rows */
    const int64_t first = dim[0];
    dim[0] = dim[n - 1];
    dim[n - 1] = first;
  }
  for (uint32_t d = 0; d < n; d++) p += sprintf(p, "%s%d", d ? " " : "", (int)dim[d]);
  return p;
}

static const rule_term *draw_call(iso_rng *rng, const char *pattern) {
  char text[512], *p = text;
  if (strcmp(pattern, "result") == 0) {
    const rule_term *arg[2] = {rule_var(&arena, (uint32_t)any_node(rng, true)),
                               rule_int(&arena, (int64_t)iso_rng_below(rng, 3))};
    return rule_op(&arena, "getitem", arg, 2);
  }
  const size_t a = any_node(rng, false);
  const uint64_t rank = shape_at(a)->rank;
  for (const char *c = pattern; *c; c++) {
    const bool letter = *c >= 'A' && *c <= 'Z' && (c[-1] == ' ' || c[-1] == '(');
    if (!letter) *p++ = *c;
    else if (*c == 'A') p += sprintf(p, "x%d", (int)a);
    else if (*c == 'B') p += sprintf(p, "x%d", (int)any_node(rng, false));
    else if (*c == 'D' || *c == 'E') p += sprintf(p, "%d", (int)iso_rng_below(rng, rank + !rank));
    else if (*c == 'N') p += sprintf(p, "%d", (int)iso_rng_below(rng, 4));
    else if (*c == 'K') p += sprintf(p, "%s", iso_rng_below(rng, 2) ? "true" : "false");
    else p = write_sizes(p, rng, shape_at(a), *c == 'L');
  }
  *p = 0;
  const rule_term *t = term_over(MOST_NODES, text), *call;
  iso_error err;
  if (rule_is_getitem(t->u.s)) t = t->child[0]; /* one of several results has to be taken */
  return rule_call(&arena, schemas, t->u.s, t->child, t->n, &call, &err) == ISO_OK ? call : NULL;
}

/* Whether libtorch, or getitem, gives something in each order. */
static bool runs(const rule_term *call, size_t i, size_t *n) {
  iso_error err;
  for (int o = 0; o < ORDERS; o++) {
    rule_tensor *bind[MOST_NODES], *out[64];
    for (size_t k = 0; k < i; k++) bind[k] = value[o][k][0];
    size_t n_out = 0;
    if (rule_is_getitem(call->u.s)) {
      const size_t from = (size_t)call->child[0]->u.i, k = (size_t)call->child[1]->u.i;
      if (node[from].n_outputs < 2 || k >= node[from].n_outputs) return false;
      out[n_out++] = rule_tensor_ref(value[o][from][k]);
    } else if (val_call(engine, call, bind, VAL_FLOAT64, out, 64, &n_out, &err)) n_out = 0;
    const bool fits = n_out > 0 && n_out <= MOST_OUT && out[0]->numel > 0;
    for (size_t k = 0; k < n_out; k++)
      if (fits) value[o][i][k] = out[k];
      else rule_tensor_unref(out[k]);
    *n = n_out;
    if (fits) continue;
    ck_assert_msg(o == 0, "%s runs in some orders alone", call->u.s);
    return false;
  }
  return true;
}

/* What is said of a result is so in every order. */
static void holds(size_t i, const along *a, const char *say) {
  const rule_tensor *first = value[0][i][0];
  for (uint32_t r = 0; r < rows.rank && a->depends; r++)
    ck_assert_msg(a->at[r] < first->shape.rank && first->shape.dim[a->at[r]] == rows.dim[r], "%s",
                  say);
  for (int o = 1; o < ORDERS; o++)
    for (int64_t e = 0; e < first->numel; e++) {
      const int64_t from = a->depends ? comes_from(&first->shape, a->at, e, o) : e;
      const double x = rule_tensor_get(value[o][i][0], e), y = rule_tensor_get(first, from);
      ck_assert_msg(fabs(x - y) <= 1e-9 * (1 + fabs(y)) || (isnan(x) && isnan(y)),
                    "%s: element %d is %g, not %g", say, (int)e, x, y);
    }
}

static bool reads_permuted(const rule_term *t) {
  if (t->kind == RULE_VAR) return state_of[t->u.i].depends;
  bool any = false;
  for (uint32_t k = 0; k < t->n; k++) any |= reads_permuted(t->child[k]);
  return any;
}

static size_t followed_of[N_CALLS], asked_of[N_CALLS];

/* Adds a node for the call where it runs and is followed, or reads nothing that is permuted. */
static void try_call(size_t which, iso_rng *rng, uint64_t seed) {
  const size_t i = g.n_nodes;
  const rule_term *call = draw_call(rng, calls[which] + (calls[which][0] == '+'));
  size_t n = 0;
  if (!call || !runs(call, i, &n)) return;
  node[i] = (cap_node){
      .kind = CAP_OP, .op = call->u.s, .call = call, .n_outputs = n, .output = output[i]};
  for (size_t k = 0; k < n; k++)
    output[i][k] = (cap_output){value[0][i][k]->shape, value[0][i][k]->dtype};
  const followed f = {&g, rows.rank, permuted, state_of};
  const bool asked = reads_permuted(call);
  along a = {0};
  const bool taken = asked && along_follow(&f, (uint32_t)i, &a);
  char *text = rule_term_print(call, schemas, NULL), say[600];
  snprintf(say, sizeof say, "seed %d: %s, rank %u, dimension %u", (int)seed, text, rows.rank,
           permuted);
  free(text);
  if (taken && n == 1) holds(i, &a, say);
  asked_of[which] += asked;
  followed_of[which] += taken && n == 1;
  state_of[i] = a;
  g.n_nodes++;
  if (!asked || taken) return;
  for (int o = 0; o < ORDERS; o++)
    for (size_t k = 0; k < n; k++) rule_tensor_unref(value[o][i][k]);
  g.n_nodes--;
}

/* Of a few, the call that was asked of least often. */
static size_t draw_which(iso_rng *rng) {
  size_t which = iso_rng_below(rng, N_CALLS);
  for (int k = 0; k < 3; k++) {
    const size_t other = iso_rng_below(rng, N_CALLS);
    if (asked_of[other] < asked_of[which]) which = other;
  }
  return which;
}

START_TEST(what_is_said_of_a_result_holds_in_every_order) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng;
    begin(seed, &rng);
    for (int k = 0; k < TRIES && g.n_nodes < MOST_NODES; k++)
      try_call(draw_which(&rng), &rng, seed);
    end();
  }
  for (size_t k = 0; k < N_CALLS; k++)
    ck_assert_msg(followed_of[k] > 0 || calls[k][0] != '+', "%s", calls[k]);
}
END_TEST

/* ---- graphs ---- */

static uint32_t step(const char *text, rule_shape s, rule_dtype dtype, size_t n) {
  const uint32_t i = (uint32_t)g.n_nodes++;
  const rule_term *t = term_over(MOST_NODES, text), *call;
  iso_error err;
  ck_assert(rule_call(&arena, schemas, t->child[0]->u.s, t->child[0]->child, t->child[0]->n, &call,
                      &err) == ISO_OK);
  for (size_t k = 0; k < n; k++) output[i][k] = (cap_output){s, k ? RULE_I64 : dtype};
  node[i] = (cap_node){
      .kind = CAP_OP, .op = call->u.s, .call = call, .n_outputs = n, .output = output[i]};
  return i;
}

static uint32_t one(const char *text, rule_shape s, rule_dtype dtype) {
  char wrapped[256];
  snprintf(wrapped, sizeof wrapped, "(aten::alias %s)", text);
  return step(wrapped, s, dtype, 1);
}

static uint32_t result_of(uint32_t i, int k) {
  const rule_term *arg[2] = {rule_var(&arena, i), rule_int(&arena, k)};
  output[g.n_nodes][0] = output[i][k];
  node[g.n_nodes] = (cap_node){.kind = CAP_OP,
                               .op = "getitem",
                               .call = rule_op(&arena, "getitem", arg, 2),
                               .n_outputs = 1,
                               .output = output[g.n_nodes]};
  return (uint32_t)g.n_nodes++;
}

/* A choice of three of each row of x0, and of x1 at the places chosen; x1 is other numbers. */
static const struct {
  const char *say, *of[2]; /* steps 5 and 6, on 3 (values) and 4 (places) */
  int64_t rank;            /* of step 5 */
  bool unseen;             /* with the last of these as the output */
} programs[] = {
    {"the values", {NULL, NULL}, 0, false},
    {"their sum", {"(aten::sum.dim_IntList x3 (list 1))", NULL}, 1, true},
    {"their sums over the rows", {"(aten::sum.dim_IntList x3 (list 0))", NULL}, 1, false},
    {"their largest", {"(aten::amax x3 (list 1))", NULL}, 1, true},
    {"running sums", {"(aten::cumsum x3 1)", NULL}, 2, false},
    {"the sum of x1 there",
     {"(aten::gather x1 1 x4)", "(aten::sum.dim_IntList x5 (list 1))"},
     2,
     true},
    {"x1 there", {"(aten::gather x1 1 x4)", "(aten::neg x5)"}, 2, false},
    {"the sum of products", {"(aten::gather x1 1 x4)", "(aten::mul.Tensor x5 x3)"}, 2, false},
    {"the first column", {"(aten::select.int x3 1 0)", NULL}, 1, false},
    {"the sum of the shares",
     {"(aten::softmax.int x3 1)", "(aten::sum.dim_IntList x5 (list 1))"},
     2,
     true}};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

/* Reads the program; whether its call sorts then. */
static bool sorts(size_t which, bool sorted, bool more) {
  char topk[64];
  g = (cap_graph){.schemas = schemas, .node = node, .n_sets = 1};
  rows = SHAPE(2, 5);
  iso_arena_init(&g.arena);
  iso_rng rng = iso_rng_new(1, 82);
  permuted = 1;
  draw_orders(&rng);
  for (int k = 0; k < 2; k++) add_leaf(RULE_F64, SHAPE(2, 5), false, 0, &rng);
  snprintf(topk, sizeof topk, "(getitem (aten::topk x0 3 1 true %s) 0)", sorted ? "true" : "false");
  uint32_t last = step(topk, SHAPE(2, 3), RULE_F64, 2);
  const uint32_t call = last;
  const uint32_t values = last = result_of(call, 0);
  result_of(call, 1);
  for (int k = 0; k < 2; k++) {
    const bool summed = k == 1 && programs[which].unseen;
    if (programs[which].of[k])
      last = one(programs[which].of[k],
                 (k ? summed : programs[which].rank == 1) ? SHAPE(2) : SHAPE(2, 3), RULE_F64);
  }
  const cap_result result[2] = {{"y", last}, {"z", values}};
  g.result = result;
  g.n_results = more ? 2 : 1;
  iso_error err;
  ck_assert(cap_sort_unseen(&g, &err) == ISO_OK);
  const bool yes = node[call].call->child[4]->u.i;
  iso_arena_fini(&g.arena);
  g.n_nodes = 2;
  end();
  return yes;
}

START_TEST(a_call_is_read_as_one_that_sorts_where_no_output_sees_the_order) {
  for (size_t k = 0; k < N_PROGRAMS; k++) {
    ck_assert_msg(sorts(k, false, false) == programs[k].unseen, "%s", programs[k].say);
    ck_assert_msg(!sorts(k, false, true), "%s, and the values", programs[k].say);
    ck_assert(sorts(k, true, true));
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("orders");
  TCase *t = tcase_create("orders");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, what_is_said_of_a_result_holds_in_every_order);
  tcase_add_test(t, a_call_is_read_as_one_that_sorts_where_no_output_sees_the_order);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
