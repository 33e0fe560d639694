/* Two captures at other sizes: which sizes of the right go with the left's, the inputs made for
 * them, and failure of every allocation. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include "tests/capture/capture_test.h"
#include "tests/support/suite.h"

#define HOLDS(cond) \
  do { \
    if (!(cond)) fail_disarm(), ck_abort_msg("%s", #cond); \
  } while (0)

static rule_schemas *schemas;

static void setup(void) {
  tmp_setup();
  ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK);
}
static void teardown(void) {
  rule_schemas_free(schemas);
  tmp_teardown();
}

/* An input of int64 of rank 1 or 2, its sizes as JSON, and its value at a place. */
typedef struct in {
  const char *name, *sizes;
  int64_t rank, n, m;
  int64_t (*at)(int64_t i, int64_t j);
  const char *domain; /* or "" */
} in;

enum { B = 2, T = 5 };
static int64_t position(int64_t i, int64_t j) { return (void)i, j; }
static int64_t one(int64_t i, int64_t j) { return (void)i, (void)j, 1; }
static int64_t triangle(int64_t i, int64_t j) { return j <= i; }
static int64_t band(int64_t i, int64_t j) { return j <= i && i - j < 3; }
static int64_t token(int64_t i, int64_t j) { return 100 + (7 * i + 3 * j) % 11; }
static int64_t token_turned(int64_t i, int64_t j) { return token(j, i); }
static int64_t length(int64_t i, int64_t j) { return (void)i, (void)j, T; }

/* Write a capture whose output is the sum of its inputs (that it could not be run is no matter). */
static void write_capture(const char *symbols, const in *x, size_t n) {
  char json[4096];
  size_t at =
      (size_t)snprintf(json, sizeof json,
                       "{'format':'isomer-capture','version':2,'symbols':[%s],'nodes':[", symbols);
  cap_named_tensor named[8];
  for (size_t k = 0; k < n; k++) {
    at += (size_t)snprintf(json + at, sizeof json - at,
                           "{'id':'%s','op':'input','name':'%s',%s"
                           "'outputs':[{'shape':[%s],'dtype':'int64'}]},",
                           x[k].name, x[k].name, x[k].domain, x[k].sizes);
    rule_tensor *t = NULL;
    const rule_shape s = {.rank = (uint32_t)x[k].rank, .dim = {x[k].n, x[k].m}};
    ck_assert_int_eq(rule_tensor_new(RULE_I64, &s, &t, NULL), ISO_OK);
    const int64_t row = x[k].rank > 1 ? x[k].m : x[k].n;
    for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, (double)x[k].at(i / row, i % row));
    named[k] = (cap_named_tensor){x[k].name, t};
  }
  at += (size_t)snprintf(json + at, sizeof json - at, "{'id':'y','op':'test::all','args':[");
  for (size_t k = 0; k < n; k++)
    at += (size_t)snprintf(json + at, sizeof json - at, "%s{'ref':'%s'}", k ? "," : "", x[k].name);
  snprintf(json + at, sizeof json - at,
           "],'outputs':[{'shape':[],'dtype':'int64'}]}],'outputs':[{'name':'y','ref':'y'}]}");
  char *text = quotes(json);
  write_bytes("graph.json", text, strlen(text));
  free(text);
  ck_assert_int_eq(cap_tensors_save(in_tmp("inputs.safetensors"), named, n, NULL), ISO_OK);
  ck_assert_int_eq(cap_tensors_save(in_tmp("weights.safetensors"), named, 0, NULL), ISO_OK);
  for (size_t k = 0; k < n; k++) rule_tensor_unref((rule_tensor *)(uintptr_t)named[k].tensor);
}

#define SYMBOLS "{'name':'B','min':1,'max':9,'value':2},{'name':'T','min':1,'max':99,'value':5}"
#define OTHERS "{'name':'S','min':1,'max':99,'value':5},{'name':'C','min':1,'max':9,'value':2}"
#define LENGTHS "'domain':{'range':[1,{'size':'T'}]},"

static const in left[] = {
    {"ids", "'B','T'", 2, B, T, token, ""}, {"positions", "'B','T'", 2, B, T, position, ""},
    {"ones", "'B','T'", 2, B, T, one, ""},  {"triangle", "'T','T'", 2, T, T, triangle, ""},
    {"band", "'T','T'", 2, T, T, band, ""}, {"lengths", "'B'", 1, B, 1, length, LENGTHS}};
static const in right[] = {{"tokens", "'S','C'", 2, T, B, token_turned, ""},
                           {"pos", "'C','S'", 2, B, T, position, ""},
                           {"ones", "'C','S'", 2, B, T, one, ""},
                           {"mask", "'S','S'", 2, T, T, triangle, ""},
                           {"near", "'S','S'", 2, T, T, band, ""}};

typedef struct moved {
  cap_graph *from[2], *to[2];
  int64_t sizes[2];
} moved;

static void drop(moved *m) {
  for (int side = 0; side < 2; side++) cap_free(m->from[side]), cap_free(m->to[side]);
}

/* The captures that are written, at b and t. `b` 0: only as captured. */
static iso_code load(int side, int64_t b, int64_t t, moved *m, iso_error *err) {
  const char *const names[2][2] = {{"B", "T"}, {"C", "S"}};
  const cap_size size[2] = {{names[side][0], b}, {names[side][1], t}};
  const cap_options o = {.size = size, .n_sizes = 2};
  const iso_code c = cap_load(tmp_dir, schemas, &m->from[side], err);
  return c ? c : cap_load_with(tmp_dir, &o, schemas, &m->to[side], err);
}

static rule_tensor *value(const moved *m, int side, const char *name) {
  for (size_t i = 0; i < m->to[side]->n_nodes; i++)
    if (m->to[side]->node[i].name && strcmp(m->to[side]->node[i].name, name) == 0)
      return m->to[side]->input[i];
  return NULL;
}

static void holds(const rule_tensor *x, int64_t n, int64_t m, int64_t (*at)(int64_t, int64_t)) {
  ck_assert_int_eq(x->shape.dim[0], n);
  ck_assert_int_eq(x->shape.dim[1], m);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < m; j++) ck_assert_int_eq(rule_tensor_get_int(x, i * m + j), at(i, j));
}

START_TEST(inputs_go_on_as_they_do) {
  static const int64_t at[][2] = {{1, 1}, {2, 3}, {2, 9}, {4, 5}, {7, 30}};
  for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
    const int64_t b = at[k][0], t = at[k][1];
    moved m = {0};
    iso_error err = {0};
    write_capture(SYMBOLS, left, 6);
    ck_assert_msg(load(0, b, t, &m, &err) == ISO_OK, "%s", err.msg);
    write_capture(OTHERS, right, 5);
    ck_assert_msg(load(1, b, t, &m, &err) == ISO_OK, "%s", err.msg);
    ck_assert_int_eq(cap_relate_sizes(m.from[0], m.from[1], at[k], m.sizes, &err), ISO_OK);
    ck_assert_int_eq(m.sizes[0], t); /* S */
    ck_assert_int_eq(m.sizes[1], b); /* C */
    const cap_graph *const from[2] = {m.from[0], m.from[1]};
    ck_assert_msg(cap_move_inputs(from, m.to, 3, &err) == ISO_OK, "%s", err.msg);
    holds(value(&m, 0, "positions"), b, t, position);
    holds(value(&m, 1, "pos"), b, t, position);
    holds(value(&m, 0, "ones"), b, t, one);
    holds(value(&m, 1, "ones"), b, t, one);
    holds(value(&m, 0, "triangle"), t, t, triangle);
    holds(value(&m, 1, "mask"), t, t, triangle);
    holds(value(&m, 0, "band"), t, t, band);
    holds(value(&m, 1, "near"), t, t, band);
    const rule_tensor *ids = value(&m, 0, "ids"), *tokens = value(&m, 1, "tokens");
    for (int64_t i = 0; i < b; i++)
      for (int64_t j = 0; j < t; j++) {
        const int64_t x = rule_tensor_get_int(ids, i * t + j);
        ck_assert(x >= 100 && x <= 110);
        ck_assert_int_eq(x, rule_tensor_get_int(tokens, j * b + i));
      }
    const rule_tensor *n = value(&m, 0, "lengths");
    for (int64_t i = 0; i < b; i++) {
      ck_assert(rule_tensor_get_int(n, i) >= 1);
      ck_assert(rule_tensor_get_int(n, i) <= t);
    }
    drop(&m);
  }
}
END_TEST

/* A value that cannot be made is refused. */
START_TEST(what_may_be_a_size_is_refused) {
  static const in bare[] = {{"ids", "'B','T'", 2, B, T, token, ""},
                            {"lengths", "'B'", 1, B, 1, length, ""}};
  moved m = {0};
  iso_error err = {0};
  for (int64_t t = 4; t <= 6; t++) {
    for (int side = 0; side < 2; side++) {
      write_capture(SYMBOLS, bare, 2);
      const cap_size size[1] = {{"T", t}};
      const cap_options o = {.size = size, .n_sizes = 1};
      ck_assert_int_eq(cap_load(tmp_dir, schemas, &m.from[side], &err), ISO_OK);
      ck_assert_int_eq(cap_load_with(tmp_dir, &o, schemas, &m.to[side], &err), ISO_OK);
    }
    const cap_graph *const from[2] = {m.from[0], m.from[1]};
    const iso_code c = cap_move_inputs(from, m.to, 3, &err);
    if (t == T) ck_assert_int_eq(c, ISO_OK);
    else {
      ck_assert_int_eq(c, ISO_USAGE);
      ck_assert_ptr_nonnull(strstr(err.msg, "lengths may mean a size"));
    }
    drop(&m);
  }
}
END_TEST

START_TEST(sizes_that_one_side_fixes) {
  static const in fixed[] = {{"ids", "'B',5", 2, B, T, token, ""}};
  const int64_t value[2] = {2, 6};
  int64_t out[2];
  moved m = {0};
  iso_error err = {0};
  write_capture(SYMBOLS, left, 1);
  ck_assert_int_eq(cap_load(tmp_dir, schemas, &m.from[0], &err), ISO_OK);
  write_capture(SYMBOLS, fixed, 1);
  ck_assert_int_eq(cap_load(tmp_dir, schemas, &m.from[1], &err), ISO_OK);
  ck_assert_int_eq(cap_relate_sizes(m.from[0], m.from[1], value, out, &err), ISO_USAGE);
  ck_assert_ptr_nonnull(strstr(err.msg, "6 long where ids of the other is 5"));
  drop(&m);
}
END_TEST

START_TEST(out_of_memory) {
  write_capture(SYMBOLS, left, 6);
  long n = 0;
  for (bool failed = true; failed; n++) {
    const long live = fail_live;
    moved m = {0};
    iso_error err = {0};
    fail_arm(n);
    iso_code c = load(0, 3, 7, &m, &err);
    const cap_size size[2] = {{"B", 3}, {"T", 7}};
    const cap_options o = {.size = size, .n_sizes = 2};
    if (!c) c = cap_load(tmp_dir, schemas, &m.from[1], &err);
    if (!c) c = cap_load_with(tmp_dir, &o, schemas, &m.to[1], &err);
    const int64_t at[2] = {3, 7};
    if (!c) c = cap_relate_sizes(m.from[0], m.from[1], at, m.sizes, &err);
    const cap_graph *const from[2] = {m.from[0], m.from[1]};
    if (!c) c = cap_move_inputs(from, m.to, 3, &err);
    drop(&m);
    failed = fail_disarm();
    const long leaked = fail_live - live;
    ck_assert_msg(c == (failed ? ISO_NOMEM : ISO_OK), "allocation %ld: %d %s", n, (int)c, err.msg);
    ck_assert_msg(leaked == 0, "%ld blocks leak with allocation %ld", leaked, n);
  }
  ck_assert_int_gt(n, 60);
}
END_TEST

int main(void) {
  Suite *s = suite_create("inputs at other sizes");
  TCase *t = tcase_create("move");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, inputs_go_on_as_they_do);
  tcase_add_test(t, what_may_be_a_size_is_refused);
  tcase_add_test(t, sizes_that_one_side_fixes);
  tcase_add_test(t, out_of_memory);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
