/* Sizes as expressions: random ones against a naive oracle, ill-formed ones, and captures whose
 * shapes and arguments are written with symbols, read at several of their values. */
#include "egraph/base/rng.h"
#include "tests/capture/capture_test.h"

/* ---- expressions ---- */

static const cap_symbol symbols[] = {{"T", 0, 100, 7, 7}, {"B", 1, 9, 2, 3}, {"_n2", 0, 50, 4, 5}};
static const cap_scope scope = {.symbol = symbols, .n = 3};

typedef struct text {
  char at[4096];
  size_t n;
} text;

static void put(text *t, iso_rng *r, const char *s) {
  if (iso_rng_below(r, 3) == 0) t->at[t->n++] = ' ';
  t->n += (size_t)sprintf(t->at + t->n, "%s", s);
  if (iso_rng_below(r, 3) == 0) t->at[t->n++] = ' ';
}

static __int128 down(__int128 x, __int128 y) {
  __int128 q = x / y;
  while (q * y > x && y > 0) q--;
  while (q * y < x && y < 0) q--;
  return q;
}

/* A random size as text, every operand in parentheses where it is no primary, and its value by the
 * definition. Returns: false where it divides by 0 or leaves 64 bits. */
static bool size_of(iso_rng *r, int depth, text *t, __int128 *out) {
  static const char *const op[] = {"+", "-", "*", "//", "%", "min", "max", "-"};
  const uint64_t k = depth ? iso_rng_below(r, 8) : 8;
  if (k == 8 || iso_rng_below(r, 6) == 0) {
    const uint64_t leaf = iso_rng_below(r, 4);
    char number[32];
    *out = leaf < 3 ? symbols[leaf].now : (__int128)iso_rng_below(r, 1u << iso_rng_below(r, 31));
    snprintf(number, sizeof number, "%lld", (long long)*out);
    put(t, r, leaf < 3 ? symbols[leaf].name : number);
    return true;
  }
  const bool called = k == 5 || k == 6;
  __int128 x = 0, y = 0;
  bool ok = true;
  if (called || k == 7) put(t, r, op[k]);
  put(t, r, "(");
  if (k != 7) ok = size_of(r, depth - 1, t, &x);
  if (k != 7) put(t, r, called ? "," : ")");
  if (!called && k != 7) put(t, r, op[k]), put(t, r, "(");
  ok = size_of(r, depth - 1, t, &y) && ok;
  put(t, r, ")");
  if ((k == 3 || k == 4) && y == 0) return false;
  *out = k == 0                ? x + y
         : k == 1 || k == 7    ? x - y
         : k == 2              ? x * y
         : k == 3              ? down(x, y)
         : k == 4              ? x - y * down(x, y)
         : (x < y) == (k == 5) ? x
                               : y;
  return ok && *out >= INT64_MIN && *out <= INT64_MAX;
}

START_TEST(random_sizes) {
  iso_rng r = iso_rng_new(1, 0);
  int wrong = 0;
  for (int i = 0; i < 20000; i++) {
    text t = {.n = 0};
    __int128 want = 0;
    int64_t got;
    iso_error err = {0};
    const bool good = size_of(&r, (int)iso_rng_below(&r, 5), &t, &want);
    const iso_code c = cap_evaluate(t.at, false, &scope, &got, &err);
    ck_assert_msg((c == ISO_OK) == good, "%s: %s", t.at, err.msg);
    ck_assert_msg(!good || got == (int64_t)want, "%s is %lld, not %lld", t.at, (long long)want,
                  (long long)got);
    wrong += !good;
  }
  ck_assert_int_gt(wrong, 100); /* errors are drawn, too */
}
END_TEST

START_TEST(precedence) {
  static const struct {
    const char *text;
    int64_t value;
  } all[] = {{"2*T + 1", 15},
             {"1 + 2*T", 15},
             {"T - B - 1", 3},
             {"T - (B - 1)", 5},
             {"100 // T // 2", 7},
             {"-T // 2", -4},
             {"-T % 4", 1},
             {"T % -4", -1},
             {"- -T", 7},
             {"T*B % 4 + 1", 2},
             {"max(T, B, 12)", 12},
             {"min(max(T, 9), B*B)", 9},
             {"T == 7", 1},
             {"not T == 7", 0},
             {"not not (T < 7)", 0},
             {"T < 5 or B == 3 and T > 9", 0},
             {"(T < 5 or B == 3) and T > 6", 1},
             {"T + 1 >= 8 and T != 8 and B <= 3", 1},
             {"T % 4 == 3 or T // 0 == 1 - 1", -1}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int64_t got = -1;
    iso_error err = {0};
    const bool good = cap_evaluate(all[i].text, true, &scope, &got, &err) == ISO_OK;
    if (i + 1 == sizeof all / sizeof *all) ck_assert(!good); /* both sides are evaluated */
    else
      ck_assert_msg(good && got == all[i].value, "%s: %lld %s", all[i].text, (long long)got,
                    err.msg);
  }
}
END_TEST

START_TEST(ill_formed) {
  static const char *const all[][2] = {{"", "ends too early"},
                                       {"T +", "ends too early"},
                                       {"2T", "left over"},
                                       {"T T", "left over"},
                                       {"T / 2", "left over"},
                                       {"(T", "not closed"},
                                       {"min(T)", "two sizes"},
                                       {"min T", "stand before"},
                                       {"min", "stand before"},
                                       {"S + 1", "no symbol \"S\""},
                                       {"Tx", "no symbol \"Tx\""},
                                       {"minimum(1, 2)", "no symbol \"minimum\""},
                                       {"or", "a size is expected"},
                                       {"T // (B - 3)", "divides by 0"},
                                       {"T % 0", "divides by 0"},
                                       {"9223372036854775808", "too large"},
                                       {"9223372036854775807 + 1", "too large"},
                                       {"(-9223372036854775807 - 1) // -1", "too large"},
                                       {"3037000500 * 3037000500", "too large"},
                                       {"T < 8", "left over"},
                                       {"(T < 8)", "not closed"},
                                       {"#", "a size is expected"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int64_t got;
    iso_error err = {0};
    ck_assert_msg(cap_evaluate(all[i][0], false, &scope, &got, &err) == ISO_FORMAT, "%s",
                  all[i][0]);
    ck_assert_msg(strstr(err.msg, all[i][1]) != NULL, "\"%s\" does not say \"%s\"", err.msg,
                  all[i][1]);
  }
  char deep[400];
  memset(deep, '(', 200), strcpy(deep + 200, "T");
  int64_t got;
  iso_error err = {0};
  ck_assert_int_eq(cap_evaluate(deep, false, &scope, &got, &err), ISO_FORMAT);
  ck_assert_ptr_nonnull(strstr(err.msg, "too deeply"));
  memset(deep, '-', 200);
  ck_assert_int_eq(cap_evaluate(deep, false, &scope, &got, &err), ISO_FORMAT);
}
END_TEST

START_TEST(numbers_are_noted_once) {
  cap_numbers noted = {0};
  const cap_scope s = {.symbol = symbols, .n = 3, .numbers = &noted};
  int64_t got;
  ck_assert_int_eq(cap_evaluate("T % 16 + 3 < 16 or T == 4096", true, &s, &got, NULL), ISO_OK);
  ck_assert_uint_eq(noted.n, 3);
  ck_assert_int_eq(noted.at[0], 16);
  ck_assert_int_eq(noted.at[1], 3);
  ck_assert_int_eq(noted.at[2], 4096);
  free(noted.at);
}
END_TEST

/* ---- captures ---- */

static rule_schemas *schemas;

static void setup(void) { ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK); }
static void teardown(void) { rule_schemas_free(schemas); }

#define T_SYMBOL "{'name':'T','min':1,'max':16,'value':4}"
#define GRAPH(symbols, guards, shape, end, out) \
  "{'format':'isomer-capture','version':2,'symbols':[" symbols "],'guards':[" guards "],'nodes':[" \
  "{'id':'x','op':'input','name':'x','domain':{'range':[0,{'size':'T - 1'}]}," \
  "'outputs':[{'shape':" shape ",'dtype':'float32'}]}," \
  "{'id':'s','op':'aten::slice.Tensor','args':[{'ref':'x'},1,0," end "]," \
  "'outputs':[{'shape':" out ",'dtype':'float32'}]}," \
  "{'id':'v','op':'aten::view','args':[{'ref':'s'},[-1,{'size':'T//2'}]]," \
  "'outputs':[{'shape':[3,'T//2'],'dtype':'float32'}]}],'outputs':[{'name':'y','ref':'v'}]}"
#define GOOD GRAPH(T_SYMBOL, "'T % 2 == 0'", "[3,'T']", "{'size':'T//2'}", "[3,'T//2']")

static iso_code parse(const char *json, int64_t at, cap_graph **g, iso_error *err) {
  const cap_size size = {"T", at};
  const cap_options o = {.size = &size, .n_sizes = at >= 0};
  char *s = quotes(json);
  *g = NULL;
  const iso_code c = cap_parse((cap_text){s, strlen(s)}, "dir", &o, schemas, g, err);
  free(s);
  return c;
}

START_TEST(captures_are_read_at_sizes) {
  for (int64_t t = -1; t <= 16; t++) {
    cap_graph *g;
    iso_error err = {0};
    const iso_code c = parse(GOOD, t, &g, &err);
    const int64_t now = t < 0 ? 4 : t;
    if (t >= 0 && (t < 1 || t % 2)) {
      ck_assert_int_eq(c, ISO_RANGE);
      check_message(&err, "dir/graph.json: ", t < 1 ? "symbol T: 0" : "does not hold at T = ");
      continue;
    }
    ck_assert_msg(c == ISO_OK, "%s", err.msg);
    ck_assert_int_eq(g->node[0].output[0].shape.dim[0], 3);
    ck_assert_int_eq(g->node[0].output[0].shape.dim[1], now);
    ck_assert_ptr_null(g->node[0].size[0]);
    ck_assert_str_eq(g->node[0].size[1], "T");
    ck_assert_double_eq(g->node[0].domain->high, (double)now - 1);
    ck_assert_int_eq(g->node[1].call->child[3]->u.i, now / 2);
    ck_assert_int_eq(g->node[2].call->child[1]->child[1]->u.i, now / 2);
    ck_assert_uint_eq(g->n_symbols, 1);
    ck_assert_int_eq(g->symbol[0].value, 4);
    ck_assert_int_eq(g->symbol[0].now, now);
    ck_assert(cap_is_moved(g) == (now != 4));
    cap_free(g);
  }
}
END_TEST

START_TEST(captures_admit_sizes) {
  cap_graph *g;
  ck_assert_int_eq(parse(GOOD, -1, &g, NULL), ISO_OK);
  const char *broken;
  for (int64_t t = 0; t < 20; t++) {
    ck_assert_int_eq(cap_admits(g, &t, &broken, NULL), ISO_OK);
    if (t < 1 || t > 16) ck_assert_str_eq(broken, "T");
    else if (t % 2) ck_assert_str_eq(broken, "T % 2 == 0");
    else ck_assert_ptr_null(broken);
  }
  cap_free(g);
}
END_TEST

START_TEST(what_is_wrong_is_said) {
  static const char *const all[][2] = {
      {GRAPH("{'name':'T','min':1,'value':4}", "'T < 4'", "[3,'T']", "2", "[3,2]"),
       "guard \"T < 4\" does not hold at T = 4"},
      {GRAPH("{'name':'T','min':1,'value':4}", "'S < 4'", "[3,'T']", "2", "[3,2]"),
       "no symbol \"S\""},
      {GRAPH("{'name':'T','min':1,'max':3,'value':4}", "", "[3,'T']", "2", "[3,2]"),
       "symbol T: 4 is not within 1 and 3"},
      {GRAPH("{'name':'T','min':-1,'value':4}", "", "[3,'T']", "2", "[3,2]"), "below 0"},
      {GRAPH("{'name':'T','min':1.5,'value':4}", "", "[3,'T']", "2", "[3,2]"), "not an integer"},
      {GRAPH("{'name':'min','min':1,'value':4}", "", "[3,'T']", "2", "[3,2]"), "has no name"},
      {GRAPH(T_SYMBOL "," T_SYMBOL, "", "[3,'T']", "2", "[3,2]"), "there twice"},
      {GRAPH(T_SYMBOL, "3", "[3,'T']", "2", "[3,2]"), "a guard is not a string"},
      {GRAPH(T_SYMBOL, "", "[3,'T - 5']", "2", "[3,2]"), "node \"x\": size \"T - 5\" is -1"},
      {GRAPH(T_SYMBOL, "", "[3,'T //']", "2", "[3,2]"), "node \"x\": size \"T //\": it ends"},
      {GRAPH(T_SYMBOL, "", "[3,'T']", "{'size':2}", "[3,2]"), "node \"s\": {\"size\"} is not"},
      {GRAPH(T_SYMBOL, "", "[3,'T']", "{'size':'Q'}", "[3,2]"), "node \"s\": size \"Q\""},
      {GRAPH(T_SYMBOL, "", "[3,'T']", "2", "[3,'T*9223372036854775807']"), "too large"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    cap_graph *g;
    iso_error err = {0};
    ck_assert_msg(parse(all[i][0], -1, &g, &err) != ISO_OK, "%s", all[i][1]);
    check_message(&err, "dir/graph.json: ", all[i][1]);
  }
  cap_graph *g;
  iso_error err = {0};
  ck_assert_int_eq(parse(GOOD, 17, &g, &err), ISO_RANGE);
  char *old = strdup(GOOD), *at = strstr(old, "'version':2");
  at[strlen("'version':")] = '1';
  ck_assert_int_eq(parse(old, 4, &g, &err), ISO_USAGE);
  ck_assert_int_eq(parse(old, -1, &g, &err), ISO_FORMAT); /* version 1 has no such objects */
  free(old);
}
END_TEST

/* ---- sizes as they are written ---- */

/* A size at T = t, with the places that lower.c makes. */
static int64_t written_at(const rule_term *x, int64_t t) {
  if (x->kind == RULE_INT) return x->u.i;
  if (x->kind == RULE_NAME) return t;
  const int64_t a = written_at(x->child[0], t), b = x->n > 1 ? written_at(x->child[1], t) : 0;
  const char *op = x->u.s;
  const int64_t place = a < 0 ? a + b : a;
  if (!strcmp(op, "+")) return a + b;
  if (!strcmp(op, "-")) return x->n > 1 ? a - b : -a;
  if (!strcmp(op, "*")) return a * b;
  if (!strcmp(op, "//")) return (int64_t)down(a, b);
  if (!strcmp(op, "%")) return a - b * (int64_t)down(a, b);
  if (!strcmp(op, "min")) return a < b ? a : b;
  if (!strcmp(op, "max")) return a > b ? a : b;
  if (!strcmp(op, "wrap")) return place;
  ck_assert_str_eq(op, "bound");
  return place < 0 ? 0 : place > b ? b : place;
}

/* `sized` at T = t is `call`. */
static void check_sized(const char *id, const rule_term *sized, const rule_term *call, int64_t t) {
  if (call->kind == RULE_INT) {
    ck_assert(sized->kind == RULE_INT || sized->kind == RULE_NAME || sized->kind == RULE_EXPR);
    ck_assert_msg(written_at(sized, t) == call->u.i, "%s at %lld: %lld, not %lld", id, (long long)t,
                  (long long)written_at(sized, t), (long long)call->u.i);
    return;
  }
  ck_assert_msg(sized->kind == call->kind && sized->n == call->n, "%s", id);
  if (call->kind != RULE_OP && call->kind != RULE_LIST) ck_assert(rule_term_eq(sized, call));
  for (uint32_t k = 0; k < call->n; k++) check_sized(id, sized->child[k], call->child[k], t);
}

static void put_node(text *t, int id, const char *op, const char *args, const char *shape) {
  t->n += (size_t)sprintf(t->at + t->n,
                          ",{'id':'n%d','op':'aten::%s','args':[%s],'outputs':[{'shape':%s,"
                          "'dtype':'float32'}]}",
                          id, op, args, shape);
}

START_TEST(sizes_stay_as_they_are_written) {
  static const char *const place[] = {"null",
                                      "0",
                                      "3",
                                      "20",
                                      "9223372036854775807",
                                      "-1",
                                      "-7",
                                      "{'size':'T-2'}",
                                      "-20",
                                      "{'size':'T//2'}",
                                      "{'size':'-T'}",
                                      "{'size':'2*T + 1'}"};
  static const char *const other[][3] = {
      {"view", "{'ref':'x'},[-1,{'size':'3*T'}]", "[1,'3*T']"},
      {"view", "{'ref':'x'},[{'size':'T'},-1]", "['T',3]"},
      {"expand", "{'ref':'x'},[2,-1,{'size':'T'}]", "[2,3,'T']"},
      {"select.int", "{'ref':'x'},1,-1", "[3]"},
      {"select.int", "{'ref':'x'},-1,{'size':'T - 1'}", "[3]"},
      {"transpose.int", "{'ref':'x'},-1,-2", "['T',3]"},
      {"arange", "{'size':'T % 5 + 1'}", "['T % 5 + 1']"},
      {"add.Scalar", "{'ref':'x'},{'size':'T'}", "[3,'T']"},
      {"full", "[{'size':'max(T, 5)'},2],1.5", "['max(T, 5)',2]"}};
  enum { PLACES = sizeof place / sizeof *place, OTHERS = sizeof other / sizeof *other };
  static text json;
  char args[200];
  int n = 0;
  json.n = (size_t)sprintf(json.at,
                           "{'format':'isomer-capture','version':2,'symbols':[" T_SYMBOL
                           "],'nodes':[{'id':'x','op':'input','name':'x','outputs':[{'shape':[3,"
                           "'T'],'dtype':'float32'}]}");
  iso_rng r = iso_rng_new(3, 0);
  for (int k = 0; k < 16; k++) {
    snprintf(args, sizeof args, "{'ref':'x'},-1,%s,%s", place[iso_rng_below(&r, PLACES)],
             place[iso_rng_below(&r, PLACES)]);
    put_node(&json, n++, "slice.Tensor", args, "[3,'T']");
  }
  for (int k = 0; k < OTHERS; k++) put_node(&json, n++, other[k][0], other[k][1], other[k][2]);
  ck_assert_uint_lt((size_t)sprintf(json.at + json.n, "],'outputs':[{'name':'y','ref':'x'}]}") +
                        json.n,
                    sizeof json.at);
  cap_graph *g, *at;
  iso_error err = {0};
  ck_assert_msg(parse(json.at, -1, &g, &err) == ISO_OK, "%s", err.msg);
  for (int64_t t = 1; t <= 16; t++) {
    ck_assert_msg(parse(json.at, t, &at, &err) == ISO_OK, "%s", err.msg);
    for (size_t i = 0; i < g->n_nodes; i++) {
      const rule_shape *s = &at->node[i].output[0].shape;
      for (uint32_t d = 0; d < s->rank; d++)
        ck_assert_int_eq(written_at(g->node[i].dim[d], t), s->dim[d]);
      if (i) check_sized(g->node[i].id, g->node[i].sized, at->node[i].call, t);
    }
    cap_free(at);
  }
  cap_free(g);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("sizes");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, random_sizes);
  tcase_add_test(c, precedence);
  tcase_add_test(c, ill_formed);
  tcase_add_test(c, numbers_are_noted_once);
  tcase_add_test(c, captures_are_read_at_sizes);
  tcase_add_test(c, captures_admit_sizes);
  tcase_add_test(c, what_is_wrong_is_said);
  tcase_add_test(c, sizes_stay_as_they_are_written);
  return run_case("sizes", c);
}
