/* Captures: a good one loads with its values, and each way of being malformed is an error that
 * names file, node and reason. */
#include "tests/capture/loading_test.h"

/* ---- captures on disk ---- */

#define X "{'id':'x','op':'input','name':'x','outputs':[{'shape':[2,3],'dtype':'float32'}]}"
#define W \
  "{'id':'w','op':'parameter','name':'fc.weight','outputs':[{'shape':[4,3],'dtype':'float32'}]}"
#define OUT32 "'outputs':[{'shape':[2,3],'dtype':'float32'}]"
#define RELU(id, of) "{'id':'" id "','op':'aten::relu','args':[{'ref':'" of "'}]," OUT32 "}"
#define CHUNK \
  "{'id':'c','op':'aten::chunk','args':[{'ref':'x'},2,0],'outputs':[{'shape':[1,3],'dtype':'" \
  "float32'},{'shape':[1,3],'dtype':'float32'}]}"
#define GETITEM(index, shape) \
  "{'id':'g','op':'getitem','args':[{'ref':'c'}," index "],'outputs':[{'shape':" shape \
  ",'dtype':'float32'}]}"
#define GRAPH(nodes, outputs) \
  "{'format':'isomer-capture','version':1,'nodes':[" nodes "],'outputs':" outputs "}"
#define RESULT(id) "[{'name':'y','ref':'" id "'}]"

static void save(const char *file, const char *name, rule_dtype dtype, uint32_t rank, int64_t a,
                 int64_t b, double first) {
  rule_tensor *t = NULL;
  rule_shape s = {.rank = rank, .dim = {a, b}};
  iso_error err;
  ck_assert_int_eq(rule_tensor_new(dtype, &s, &t, NULL), ISO_OK);
  if (t->numel > 0) rule_tensor_set(t, 0, first);
  cap_named_tensor named = {name, t};
  ck_assert_msg(cap_tensors_save(in_tmp(file), &named, name != NULL ? 1 : 0, &err) == ISO_OK, "%s",
                err.msg);
  rule_tensor_unref(t);
}

static void write_graph(const char *json) {
  char *text = quotes(json);
  write_bytes("graph.json", text, strlen(text));
  free(text);
}

/* A capture with these nodes, an input x of [2, 3] and a weight of [4, 3]. */
static void make(const char *json) {
  write_graph(json);
  save("weights.safetensors", "fc.weight", RULE_F32, 2, 4, 3, 7);
  save("inputs.safetensors", "x", RULE_F32, 2, 2, 3, 1);
}

static void refuse(const char *file, const char *part) {
  cap_graph *g = NULL;
  iso_error err = {0};
  iso_code code = cap_load(tmp_dir, schemas, &g, &err);
  ck_assert_msg(code != ISO_OK, "accepted what is wrong: %s", part);
  ck_assert_int_eq(code, err.code);
  check_message(&err, in_tmp(file), part);
  ck_assert_int_ne(cap_load(tmp_dir, schemas, &g, NULL), ISO_OK);
  ck_assert_ptr_null(g);
}

static cap_graph *load(void) {
  cap_graph *g = NULL;
  iso_error err;
  ck_assert_msg(cap_load(tmp_dir, schemas, &g, &err) == ISO_OK, "%s", err.msg);
  return g;
}

/* ---- what loads ---- */

START_TEST(a_capture_loads) {
  make("{'format':'isomer-capture','version':1,'model':'toy','framework':'f','framework_version':'"
       "1','torch_version':null,"
       "'more':[1],'metadata':{'deep':{}},'nodes':[" X "," W "," CHUNK
       "," GETITEM("1", "[1,3]") ","
                                 "{'id':'r','op':'aten::relu','args':[{'ref':'g'}],'kwargs':{},'"
                                 "scope':'fc','source':'m.py:3','colour':'red',"
                                 "'outputs':[{'shape':[1,3],'dtype':'float32'}]}],'outputs':[{'"
                                 "name':'y','ref':'r'},{'name':'z','ref':'x'}]}");
  save("inputs.1.safetensors", "x", RULE_F32, 2, 2, 3, 2);
  save("inputs.2.safetensors", "x", RULE_F32, 2, 2, 3, 3);
  cap_graph *g = load();
  ck_assert_str_eq(g->path, tmp_dir);
  ck_assert_str_eq(g->model, "toy");
  ck_assert_str_eq(g->framework_version, "1");
  ck_assert_str_eq(g->torch_version, "");
  ck_assert_uint_eq(g->n_nodes, 5);
  ck_assert_int_eq(g->node[0].kind, CAP_INPUT);
  ck_assert_int_eq(g->node[1].kind, CAP_PARAMETER);
  ck_assert_str_eq(g->node[1].name, "fc.weight");
  ck_assert_ptr_null(g->node[1].call);
  ck_assert_double_eq(rule_tensor_get(g->node[1].value, 0), 7);
  ck_assert_int_eq(g->node[2].kind, CAP_OP);
  ck_assert_uint_eq(g->node[2].n_outputs, 2);
  ck_assert_ptr_null(g->node[2].value);
  ck_assert_str_eq(g->node[3].call->u.s, "getitem");
  ck_assert_int_eq(g->node[3].call->child[0]->u.i, 2);
  ck_assert_int_eq(g->node[3].call->child[1]->u.i, 1);
  ck_assert_str_eq(g->node[4].scope, "fc");
  ck_assert_str_eq(g->node[4].source, "m.py:3");
  ck_assert_str_eq(g->node[0].scope, "");
  ck_assert_uint_eq(g->n_results, 2);
  ck_assert_uint_eq(g->result[0].node, 4);
  ck_assert_str_eq(g->result[1].name, "z");
  ck_assert_uint_eq(g->n_sets, 3);
  for (size_t s = 0; s < 3; s++) {
    ck_assert_double_eq(rule_tensor_get(g->input[s * g->n_nodes], 0), (double)s + 1);
    for (size_t i = 1; i < g->n_nodes; i++) ck_assert_ptr_null(g->input[s * g->n_nodes + i]);
  }
  ck_assert_ptr_eq(g->node[0].value, g->input[0]);
  ck_assert(!cap_has_trace(g));
  rule_tensor *t = NULL;
  ck_assert_int_eq(cap_trace(g, 4, 0, &t, NULL), ISO_OK);
  ck_assert_ptr_null(t);
  rule_tensor *w = rule_tensor_ref(g->node[1].value);
  cap_free(g);
  ck_assert_double_eq(rule_tensor_get(w, 0), 7); /* lives on */
  rule_tensor_unref(w);
}
END_TEST

START_TEST(traces) {
  make(GRAPH(X "," CHUNK "," GETITEM("0", "[1,3]"), RESULT("g")));
  save("trace.safetensors", "c.1", RULE_F32, 2, 1, 3, 5);
  cap_graph *g = load();
  ck_assert(cap_has_trace(g));
  rule_tensor *t = NULL;
  ck_assert_int_eq(cap_trace(g, 1, 1, &t, NULL), ISO_OK);
  ck_assert_ptr_nonnull(t);
  ck_assert_double_eq(rule_tensor_get(t, 0), 5);
  rule_tensor_unref(t);
  ck_assert_int_eq(cap_trace(g, 1, 0, &t, NULL), ISO_OK);
  ck_assert_ptr_null(t);
  ck_assert_int_eq(cap_trace(g, 2, 0, &t, NULL), ISO_OK);
  ck_assert_ptr_null(t);
  cap_free(g);
  save("trace.safetensors", "g", RULE_F32, 2, 3, 1, 5);
  g = load();
  iso_error err;
  ck_assert_int_eq(cap_trace(g, 2, 0, &t, &err), ISO_FORMAT);
  check_message(&err, in_tmp("trace.safetensors"),
                "node \"g\": output 0 is recorded as float32 [3, 1]");
  cap_free(g);
  write_bytes("trace.safetensors", "damaged", 7);
  refuse("trace.safetensors", "too few");
}
END_TEST

START_TEST(odd_but_right) {
  static const char *const json[] = {
      GRAPH(X, RESULT("x")),
      GRAPH(X ",{'id':'r','op':'aten::relu','args':[{'ref':'x'}],'kwargs':null," OUT32 "}",
            RESULT("r")),
      GRAPH("{'id':'b','op':'aten::ones','args':[[0,4]],'outputs':[{'shape':[0,4],'dtype':'float32'"
            "}]}",
            RESULT("b")),
      /* an operator that nobody knows */
      GRAPH(X ",{'id':'r','op':'my::op.out','args':[{'ref':'x'},[1,[2.5,null]],'s'],'kwargs':{'a':{"
              "'device':'cpu'}}," OUT32 "}",
            RESULT("r")),
      /* a list of one: both the node and its only item can be meant */
      GRAPH(X ",{'id':'c','op':'aten::chunk','args':[{'ref':'x'},1],'outputs':[{'shape':[2,3],'"
              "dtype':'float32'}]}," GETITEM("0", "[2,3]"),
            RESULT("g")),
      /* unused nodes of several outputs */
      GRAPH(X "," CHUNK, RESULT("x")),
  };
  for (size_t i = 0; i < sizeof json / sizeof json[0]; i++) {
    make(json[i]);
    cap_free(load());
  }
}
END_TEST

/* ---- what does not ---- */

static const struct {
  const char *json, *part;
} malformed[] = {
    {"", "line 1"},
    {"{", "line 1"},
    {"[1]", "not a JSON object"},
    {"{'format':'isomer-capture','format':'isomer-capture'}", "duplicate"},
    {"{'a':'\xff'}", "UTF-8"},
    {"{'a':'\\u0000'}", "\\u0000"},
    {"{'format':'other','version':1}", "\"format\""},
    {"{'version':1}", "\"format\""},
    {"{'format':'isomer-capture'}", "\"version\""},
    {"{'format':'isomer-capture','version':4,'nodes':[],'outputs':[]}", "version 4"},
    {"{'format':'isomer-capture','version':1.0,'nodes':[],'outputs':[]}", "\"version\""},
    {"{'format':'isomer-capture','version':1,'model':3}", "\"model\" is not a string"},
    {"{'format':'isomer-capture','version':1}", "\"nodes\""},
    {"{'format':'isomer-capture','version':1,'nodes':[" X "]}", "no outputs"},
    {GRAPH(X, "[]"), "no outputs"},
    {GRAPH(X, "[{'name':'y'}]"), "output 0 of the graph: a reference"},
    {GRAPH(X, "[{'ref':'x'}]"), "output 0 of the graph: has no \"name\""},
    {GRAPH(X, "['x']"), "output 0 of the graph"},
    {GRAPH(X, RESULT("nobody")), "refers to \"nobody\""},
    {GRAPH(X, "[{'name':'y','ref':'x'},{'name':'y','ref':'x'}]"),
     "output 1 of the graph: the name \"y\" is taken"},
    {GRAPH(X "," CHUNK, RESULT("c")),
     "output 0 of the graph: refers to \"c\", which has 2 outputs"},
    {GRAPH("3", RESULT("x")), "node 0: is not an object"},
    {GRAPH(X ",{'op':'aten::relu'}", RESULT("x")), "node 1: has no \"id\""},
    {GRAPH("{'id':''}", RESULT("x")), "node 0: has no \"id\""},
    {GRAPH("{'id':7}", RESULT("x")), "node 0: has no \"id\""},
    {GRAPH("{'id':'q'}", RESULT("x")), "node \"q\": has no \"op\""},
    {GRAPH("{'id':'q','op':'relu'," OUT32 "}", RESULT("q")), "node \"q\": op \"relu\""},
    {GRAPH("{'id':'q','op':'a::b c'," OUT32 "}", RESULT("q")), "node \"q\": op \"a::b c\""},
    {GRAPH("{'id':'q','op':'::b'," OUT32 "}", RESULT("q")), "node \"q\": op \"::b\""},
    {GRAPH(X "," X, RESULT("x")), "node \"x\": the name \"x\" is taken"},
    {GRAPH(X "," RELU("a", "x") "," RELU("a", "x"), RESULT("a")),
     "node \"a\": the id \"a\" is taken"},
    {GRAPH(X ",{'id':'w','op':'input','name':'x','outputs':[{'shape':[2,3],'dtype':'float32'}]}",
           RESULT("x")),
     "node \"w\": the name \"x\""},
    {GRAPH("{'id':'x','op':'input'," OUT32 "}", RESULT("x")), "node \"x\": has no \"name\""},
    {GRAPH("{'id':'x','op':'input','name':'x','args':[1]," OUT32 "}", RESULT("x")),
     "node \"x\": a leaf with arguments"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[],'dtype':'bool'},{'shape':[],'"
           "dtype':'bool'}]}",
           RESULT("x")),
     "node \"x\": a leaf with 2"},
    {GRAPH(X "," RELU("a", "b") "," RELU("b", "x"), RESULT("b")),
     "node \"a\": refers to \"b\", which is no node before it"},
    {GRAPH(X "," RELU("a", "a"), RESULT("a")), "node \"a\": refers to \"a\""},
    {GRAPH(X "," RELU("a", "nobody"), RESULT("a")), "node \"a\": refers to \"nobody\""},
    {GRAPH(X "," CHUNK "," RELU("a", "c"), RESULT("a")),
     "node \"a\": refers to \"c\", which has 2 outputs, without getitem"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[]}", RESULT("x")),
     "node \"x\": has no outputs"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[3]}", RESULT("x")),
     "node \"x\": output 0: has no shape"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[1]}]}", RESULT("x")),
     "output 0: has no dtype"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[1],'dtype':'float'}]}",
           RESULT("x")),
     "unknown dtype \"float\""},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[1,-1],'dtype':'bool'}]}",
           RESULT("x")),
     "dimension 1 has negative size -1"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[4611686018427387904],'dtype':'"
           "bool'}]}",
           RESULT("x")),
     "output 0: too many elements"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[4294967296,4294967296],'dtype':'"
           "bool'}]}",
           RESULT("x")),
     "output 0: too many elements"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':['2'],'dtype':'bool'}]}",
           RESULT("x")),
     "dimension 0 is not an integer"},
    {GRAPH("{'id':'x','op':'input','name':'x','outputs':[{'shape':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
           "1],'dtype':'bool'}]}",
           RESULT("x")),
     "has rank 17"},
    {GRAPH(X "," CHUNK "," GETITEM("2", "[1,3]"), RESULT("g")),
     "node \"g\": takes output 2 of \"c\", which has 2"},
    {GRAPH(X "," CHUNK "," GETITEM("-1", "[1,3]"), RESULT("g")), "node \"g\": takes output -1"},
    {GRAPH(X "," CHUNK "," GETITEM("'0'", "[1,3]"), RESULT("g")), "node \"g\": getitem takes"},
    {GRAPH(X "," CHUNK "," GETITEM("0", "[3,1]"), RESULT("g")),
     "node \"g\": is float32 [3, 1], output 0 of \"c\" is float32 [1, 3]"},
    {GRAPH(X ",{'id':'g','op':'getitem','args':[{'ref':'x'},0]," OUT32 "}", RESULT("g")),
     "node \"g\": takes an output of \"x\", which is no operator"},
    {GRAPH(X ",{'id':'g','op':'getitem','args':[7,0]," OUT32 "}", RESULT("g")),
     "node \"g\": a reference"},
    {GRAPH(X ",{'id':'r','op':'aten::relu','args':{}," OUT32 "}", RESULT("r")),
     "node \"r\": \"args\" is not an array"},
    {GRAPH(X ",{'id':'r','op':'aten::relu','kwargs':[]," OUT32 "}", RESULT("r")),
     "node \"r\": \"kwargs\" is not an object"},
    {GRAPH(X ",{'id':'r','op':'aten::relu','args':[{'complex':'1j'}]," OUT32 "}", RESULT("r")),
     "node \"r\": unknown object {\"complex\"}"},
    {GRAPH(X ",{'id':'r','op':'aten::relu','args':[{}]," OUT32 "}", RESULT("r")),
     "node \"r\": an object"},
    {GRAPH(X ",{'id':'r','op':'aten::relu','args':[{'ref':'x','dtype':'bool'}]," OUT32 "}",
           RESULT("r")),
     "node \"r\": an object"},
    {GRAPH(X ",{'id':'r','op':'my::op','args':[{'ref':3}]," OUT32 "}", RESULT("r")),
     "node \"r\": {\"ref\"} among"},
    {GRAPH(X ",{'id':'r','op':'my::op','args':[{'float':'1e9'}]," OUT32 "}", RESULT("r")),
     "node \"r\": unknown float \"1e9\""},
    {GRAPH(X ",{'id':'r','op':'my::op','args':[[{'dtype':'half'}]]," OUT32 "}", RESULT("r")),
     "node \"r\": unknown dtype \"half\""},
    {GRAPH(X ",{'id':'r','op':'my::op','attributes':{'a':{'ref':'x'}}," OUT32 "}", RESULT("r")),
     "node \"r\": attribute \"a\" is a tensor"},
    {GRAPH(X ",{'id':'r','op':'my::op','attributes':[]," OUT32 "}", RESULT("r")),
     "node \"r\": \"attributes\""},
    {GRAPH(X ",{'id':'r','op':'my::op','functionalized':{'returns':-1,'writes':[]}," OUT32 "}",
           RESULT("r")),
     "node \"r\": functionalized"},
    {GRAPH(X ",{'id':'r','op':'my::op','functionalized':{'returns':0,'writes':[0]}," OUT32 "}",
           RESULT("r")),
     "node \"r\": functionalized"},
    {GRAPH(X ",{'id':'r','op':'my::op','functionalized':{'returns':1,'writes':['a']}," OUT32 "}",
           RESULT("r")),
     "node \"r\": has 1 outputs, functionalized says 2"},
};
enum { N_MALFORMED = sizeof malformed / sizeof malformed[0] };

START_TEST(malformed_graphs) {
  make(malformed[_i].json);
  refuse("graph.json: ", malformed[_i].part);
}
END_TEST

static const char *const whole =
    GRAPH(X "," W "," CHUNK "," GETITEM("0", "[1,3]") "," RELU("a", "x"), RESULT("a"));

START_TEST(every_prefix_is_refused) {
  make(whole);
  cap_free(load());
  char *text = quotes(whole);
  for (size_t n = strlen(text) - 1; n > 0; n -= n > 40 ? 7 : 1) {
    write_bytes("graph.json", text, n);
    refuse("graph.json: ", "line 1");
  }
  free(text);
}
END_TEST

static void write_nested(const char *begin, size_t depth, char open, char close, const char *end) {
  size_t b = strlen(begin), e = strlen(end);
  char *text = malloc(b + 2 * depth + e);
  memcpy(text, begin, b);
  memset(text + b, open, depth);
  memset(text + b + depth, close, depth);
  memcpy(text + b + 2 * depth, end, e);
  for (size_t i = 0; i < b + 2 * depth + e; i++)
    if (text[i] == '\'') text[i] = '"';
  write_bytes("graph.json", text, b + 2 * depth + e);
  free(text);
}

START_TEST(deep_nesting) {
  make(whole);
  static const char *const begin =
      "{'format':'isomer-capture','version':1,'nodes':[{'id':'r','op':'my::op','args':[";
  static const char *const end = "]," OUT32 "}],'outputs':" RESULT("r") "}";
  write_nested(begin, 60, '[', ']', end);
  cap_free(load());
  write_nested(begin, 100, '[', ']', end);
  refuse("graph.json: ", "node \"r\": its arguments are nested too deeply");
  write_nested(begin, 1000000, '[', ']', end);
  refuse("graph.json: ", "depth");
  write_nested("", 1000000, '[', ']', "");
  refuse("graph.json: ", "depth");
}
END_TEST

START_TEST(long_texts_are_cut) {
  char json[4000], id[2001];
  memset(id, 'i', 2000);
  id[2000] = '\0';
  snprintf(json, sizeof json, GRAPH("{'id':'%s','op':'relu'," OUT32 "}", "[]"), id);
  make(json);
  refuse("graph.json: ", "is neither a leaf nor namespace::name");
}
END_TEST

START_TEST(missing_files) {
  refuse("graph.json: ", "No such file");
  write_graph(GRAPH(X, RESULT("x")));
  refuse("weights.safetensors: ", "No such file");
  save("weights.safetensors", NULL, RULE_F32, 0, 0, 0, 0);
  refuse("inputs.safetensors: ", "No such file");
  save("inputs.safetensors", "x", RULE_F32, 2, 2, 3, 0);
  cap_free(load());
  ck_assert_int_eq(unlink(in_tmp("graph.json")), 0);
  ck_assert_int_eq(mkdir(in_tmp("graph.json"), 0700), 0);
  refuse("graph.json: ", "not a regular file");
  ck_assert_int_eq(rmdir(in_tmp("graph.json")), 0);
  ck_assert_int_eq(mkfifo(in_tmp("graph.json"), 0600), 0);
  refuse("graph.json: ", "not a regular file");
  ck_assert_int_eq(unlink(in_tmp("graph.json")), 0);
  write_graph(GRAPH(X, RESULT("x")));
  ck_assert_int_eq(chmod(in_tmp("graph.json"), 0), 0);
  if (geteuid() != 0) refuse("graph.json: ", "Permission denied");
}
END_TEST

START_TEST(wrong_tensors) {
  make(GRAPH(X "," W, RESULT("x")));
  save("weights.safetensors", "fc.bias", RULE_F32, 2, 4, 3, 0);
  refuse("weights.safetensors: ", "node \"w\": there is no tensor \"fc.weight\"");
  save("weights.safetensors", "fc.weight", RULE_F32, 2, 3, 4, 0);
  refuse("weights.safetensors: ",
         "node \"w\": tensor \"fc.weight\" is float32 [3, 4], the graph says float32 [4, 3]");
  save("weights.safetensors", "fc.weight", RULE_I32, 2, 4, 3, 0);
  refuse("weights.safetensors: ", "is int32 [4, 3]");
  save("weights.safetensors", "fc.weight", RULE_F32, 2, 4, 3, 0);
  save("inputs.safetensors", "y", RULE_F32, 2, 2, 3, 0);
  refuse("inputs.safetensors: ", "node \"x\": there is no tensor \"x\"");
  save("inputs.safetensors", "x", RULE_F32, 2, 2, 3, 0);
  save("inputs.1.safetensors", "x", RULE_F32, 2, 2, 4, 0);
  refuse("inputs.1.safetensors: ", "node \"x\": tensor \"x\" is float32 [2, 4]");
  write_bytes("inputs.1.safetensors", "damaged files", 13);
  refuse("inputs.1.safetensors: ", "a header of");
}
END_TEST

/* ---- the captures in the tree ---- */

static size_t load_below(const char *dir, int depth) {
  size_t n = 0;
  DIR *d = opendir(dir);
  if (d == NULL) return 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    char path[1024];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    if (depth > 0) n += load_below(path, depth - 1);
    if (strcmp(e->d_name, "graph.json") != 0) continue;
    cap_graph *g = NULL;
    iso_error err;
    ck_assert_msg(cap_load(dir, schemas, &g, &err) == ISO_OK, "%s", err.msg);
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t k = 0; k < g->node[i].n_outputs; k++) {
        rule_tensor *t = NULL;
        ck_assert_msg(cap_trace(g, (uint32_t)i, k, &t, &err) == ISO_OK, "%s", err.msg);
        rule_tensor_unref(t);
      }
    cap_free(g);
    n++;
  }
  closedir(d);
  return n;
}

START_TEST(captures_in_the_tree_load) {
  load_below("models", 3);
  load_below("tests/pairs", 3);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("graph");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 60);
  tcase_add_test(c, a_capture_loads);
  tcase_add_test(c, traces);
  tcase_add_test(c, odd_but_right);
  tcase_add_loop_test(c, malformed_graphs, 0, N_MALFORMED);
  tcase_add_test(c, every_prefix_is_refused);
  tcase_add_test(c, deep_nesting);
  tcase_add_test(c, long_texts_are_cut);
  tcase_add_test(c, missing_files);
  tcase_add_test(c, wrong_tensors);
  tcase_add_test(c, captures_in_the_tree_load);
  return run_case("graph", c);
}
