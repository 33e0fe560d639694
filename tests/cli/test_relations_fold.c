/* Lines that say how a parameter was computed when its model was loaded: told apart from other
 * lines, computed as they are written, held against the captured numbers, and taken into the graph
 * that has the parameter. */
#include "capture/capture_int.h"
#include "cli/config/relations_int.h"
#include "tests/support/small_operators.h"
#include "tests/support/suite.h"

enum { SEEDS = 10, SIZE = 3 };

static rule_schemas *schemas;
static cap_graph *graph[2];
static relations_folded folded;
static iso_error err;

/* Runs the operators of small_operators.h. parameters: those of rule_oracle.call. */
static iso_code run_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                         rule_tensor **out, size_t cap, size_t *n, iso_error *e) {
  (void)ctx, (void)float64, (void)cap;
  out[0] = run_op(call, bind);
  *n = 1;
  return out[0] ? ISO_OK : iso_fail(e, ISO_UNSUPPORTED, "%s cannot run", call->u.s);
}

static const rule_oracle oracle = {.call = run_call, .compare = small_compare};

/* Parameters of SIZE numbers in float32; the last one is the output. */
static cap_graph *graph_of(const char *const *names, size_t n, float (*values)[SIZE]) {
  const rule_shape shape = SHAPE(SIZE);
  char *text = NULL;
  size_t size;
  cap_graph *g = NULL;
  FILE *f = open_memstream(&text, &size);
  fputs("{\"format\":\"isomer-capture\",\"version\":1,\"nodes\":[", f);
  for (size_t i = 0; i < n; i++)
    fprintf(f,
            "%s{\"id\":\"%s\",\"op\":\"parameter\",\"name\":\"%s\",\"outputs\":[{\"shape\":[%d],"
            "\"dtype\":\"float32\"}]}",
            i ? "," : "", names[i], names[i], SIZE);
  fprintf(f, "],\"outputs\":[{\"name\":\"y\",\"ref\":\"%s\"}]}", names[n - 1]);
  fclose(f);
  ck_assert_msg(cap_parse((cap_text){text, strlen(text)}, "graph", NULL, schemas, &g, &err) ==
                    ISO_OK,
                "%s", err.msg);
  free(text);
  impl *m = g->impl;
  ck_assert((m->weight = calloc(n + 1, sizeof *m->weight)) != NULL);
  ck_assert((g->input = m->input = calloc(n + 1, sizeof *m->input)) != NULL);
  for (size_t i = 0; i < n; i++) {
    ck_assert(rule_tensor_new(RULE_F32, &shape, &m->weight[i], &err) == ISO_OK);
    for (int64_t e = 0; e < SIZE; e++) rule_tensor_set(m->weight[i], e, values[i][e]);
  }
  cap_show_values(g);
  return g;
}

/* The right has a, b and c; the left has what was made of them, w. */
static float a[SIZE], b[SIZE], c[SIZE];

static void begin(uint64_t seed, float (*of)(int i)) {
  static const char *const left[] = {"w"}, *const right[] = {"a", "b", "c"};
  float values[3][SIZE], made[1][SIZE];
  iso_rng rng = iso_rng_new(seed, 1);
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < SIZE; i++) values[k][i] = (float)(1.5 + fabs(iso_rng_normal(&rng)));
  memcpy(a, values[0], sizeof a);
  memcpy(b, values[1], sizeof b);
  memcpy(c, values[2], sizeof c);
  for (int i = 0; i < SIZE; i++) made[0][i] = of(i);
  ck_assert(rule_schemas_new(&schemas, &err) == ISO_OK);
  graph[LEFT] = graph_of(left, 1, made);
  graph[RIGHT] = graph_of(right, 3, values);
  folded = (relations_folded){0};
  iso_arena_init(&folded.arena);
}

static void end(void) {
  relations_folded_free(&folded);
  for (int side = 0; side < 2; side++) cap_free(graph[side]);
  rule_schemas_free(schemas);
}

static iso_code fold(const char *line) {
  return relations_fold(line, "file:1", false, graph, &oracle, &folded, &err);
}

static float product(int i) { return a[i] * b[i]; }
static float sum(int i) { return a[i] + b[i]; }
static float nested(int i) { return (a[i] + b[i]) * c[i]; }
static float quotient(int i) { return a[i] / b[i]; }
static float scaled(int i) { return 3 * a[i]; }
static float raised(int i) { return a[i] + 1; }
static float negative(int i) { return -a[i]; }

static const struct {
  float (*of)(int);
  const char *line; /* that says so */
} cases[] = {{product, "leaf w = mul(a, b)"},        {sum, "leaf w = add(a, b)"},
             {nested, "leaf w = mul(add(a, b), c)"}, {quotient, "leaf w = div(a, b)"},
             {scaled, "leaf w = mul(a, 3)"},         {raised, "leaf w = add(a, 1)"},
             {negative, "leaf w = neg(a)"}};
enum { CASES = sizeof cases / sizeof *cases };

/* A line is taken where its numbers are the parameter's, and where they are another computation's
 * it is not. */
START_TEST(a_line_is_taken_where_the_numbers_say_so) {
  for (uint64_t seed = 0; seed < SEEDS; seed++)
    for (int k = 0; k < CASES; k++)
      for (int j = 0; j < CASES; j++) {
        begin(seed, cases[k].of);
        const iso_code code = fold(cases[j].line);
        ck_assert_msg((code == ISO_OK) == (j == k), "%s of numbers of %s: %s", cases[j].line,
                      cases[k].line, code ? err.msg : "taken");
        if (code) {
          ck_assert_int_eq(code, ISO_USAGE);
          ck_assert_msg(strncmp(err.msg, "file:1: ", 8) == 0, "%s", err.msg);
          ck_assert_uint_eq(folded.n, 0);
        }
        end();
      }
}
END_TEST

/* The left computes its output of copies of the right's parameters then, and has the captured one
 * no more. */
START_TEST(the_graph_computes_the_parameter_then) {
  begin(1, nested);
  ck_assert_msg(fold(cases[2].line) == ISO_OK, "%s", err.msg);
  const cap_graph *g = graph[LEFT];
  rule_tensor *value[16] = {NULL};
  ck_assert_uint_eq(g->n_nodes, 3 + 2);
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == CAP_OP) value[i] = run_op(g->node[i].call, value);
    else value[i] = rule_tensor_ref(g->node[i].value);
  for (int i = 0; i < SIZE; i++)
    ck_assert_double_eq_tol(rule_tensor_get(value[g->result[0].node], i), nested(i), 1e-6);
  for (size_t i = 0; i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  ck_assert_uint_eq(folded.n, 1);
  ck_assert_msg(strstr(folded.note[0].text, "left's w is mul(add(a, b), c) of the right's"), "%s",
                folded.note[0].text);
  ck_assert_uint_eq(graph[RIGHT]->n_nodes, 3);
  end();
}
END_TEST

START_TEST(bad_lines_are_refused_with_their_place) {
  static const char *const lines[][2] = {
      {"leaf w = mul(a, x)", "x"},
      {"leaf x = mul(a, b)", "x"},
      {"leaf w = mul(a)", "\",\""},
      {"leaf w = mul(a, b) c", "stands behind"},
      {"leaf w = node(a)", "no operator"},
      {"leaf w = matmul(a, b)", "do not fit"},
      {"leaf w = reshape(mul(a, b), [3, 1])", "what it should be equal to is [3, 1]"}};
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    begin(1, product);
    ck_assert_msg(fold(lines[k][0]) != ISO_OK, "%s", lines[k][0]);
    ck_assert_msg(strncmp(err.msg, "file:1", 6) == 0 && strstr(err.msg, lines[k][1]), "%s: %s",
                  lines[k][0], err.msg);
    ck_assert_uint_eq(graph[LEFT]->n_nodes, 1);
    end();
  }
}
END_TEST

/* A right parameter that was made of left ones stands behind "=". */
START_TEST(either_side_may_have_the_parameter) {
  begin(1, product);
  cap_graph *g = graph[LEFT];
  graph[LEFT] = graph[RIGHT];
  graph[RIGHT] = g;
  ck_assert_msg(fold("leaf mul(a, b) = w") == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(graph[RIGHT]->n_nodes, 2 + 1);
  ck_assert_uint_eq(graph[LEFT]->n_nodes, 3);
  ck_assert_msg(strstr(folded.note[0].text, "right's w is mul(a, b) of the left's"), "%s",
                folded.note[0].text);
  end();
}
END_TEST

START_TEST(lines_with_arithmetic_are_told_from_others) {
  static const struct {
    const char *line;
    bool is;
  } lines[] = {{"leaf w = mul(a, b)", true},    {"  leaf w = neg (a)", true},
               {"leaf mul(a, b) = w", true},    {"leaf w = t(neg(a))", true},
               {"leaf w = node(n)", true},      {"leaf w = a", false},
               {"leaf w = t(a)", false},        {"leaf w = none", false},
               {"output y = add(a, b)", false}, {"leafs w = mul(a, b)", false},
               {"leaf \"mul(a\" = b", false},   {"leaf w = a # mul(a, b)", false},
               {"leaf w = mulled(a)", false},   {"leaf \"w = mul(a, b)", false},
               {"leaf w = mul", false},         {"", false}};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    ck_assert_msg(relations_is_fold(lines[i].line) == lines[i].is, "%s", lines[i].line);
  /* Each word stands for one operator, and back. */
  static const char *const words[] = {"mul",  "add",   "sub",  "div",        "matmul", "neg", "exp",
                                      "sqrt", "rsqrt", "node", "reciprocal", "cat",    "t"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    ck_assert_int_eq(relfile_is_arithmetic(words[i]), i < 11);
  ck_assert_str_eq(relfile_arithmetic_word("aten::mul.Tensor"), "mul");
  ck_assert_ptr_null(relfile_arithmetic_word("aten::cat"));
}
END_TEST

int main(void) {
  Suite *s = suite_create("relations_fold");
  TCase *t = tcase_create("relations_fold");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_line_is_taken_where_the_numbers_say_so);
  tcase_add_test(t, the_graph_computes_the_parameter_then);
  tcase_add_test(t, bad_lines_are_refused_with_their_place);
  tcase_add_test(t, either_side_may_have_the_parameter);
  tcase_add_test(t, lines_with_arithmetic_are_told_from_others);
  suite_add_tcase(s, t);
  return run_suite(s);
}
