/* Allocation failure at every n: loading a capture or an archive and reading, printing and saving
 * rules. Each time ISO_NOMEM comes back, nothing leaks, and no file is left half-written. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include "tests/capture/capture_test.h"
#include "tests/support/suite.h"

/* Check's assertions allocate even where they hold. */
#define HOLDS(cond) \
  do { \
    if (!(cond)) fail_disarm(), ck_abort_msg("%s", #cond); \
  } while (0)

static char *text;

static void setup(void) {
  tmp_setup();
  text =
      quotes("{'format':'isomer-capture','version':1,'nodes':["
             "{'id':'x','op':'input','name':'x','outputs':[{'shape':[2,4],'dtype':'float32'}]},"
             "{'id':'w','op':'parameter','name':'w','outputs':[{'shape':[2,4],'dtype':'float32'}]},"
             "{'id':'l','op':'aten::linear','args':[{'ref':'x'},{'ref':'w'}],'outputs':[{'shape':["
             "2,2],'dtype':'float32'}]},"
             "{'id':'s','op':'aten::split.Tensor','args':[{'ref':'l'},1,-1],'outputs':[{'shape':[2,"
             "1],'dtype':'float32'},"
             "{'shape':[2,1],'dtype':'float32'}]},"
             "{'id':'g','op':'getitem','args':[{'ref':'s'},1],'outputs':[{'shape':[2,1],'dtype':'"
             "float32'}]},"
             "{'id':'c','op':'aten::cat','args':[[{'ref':'g'},{'ref':'g'}],1],'outputs':[{'shape':["
             "2,2],'dtype':'float32'}]},"
             "{'id':'k','op':'vllm::other','args':[{'ref':'c'},'layer.0'],'attributes':{'scale':0."
             "25,'window':null},"
             "'outputs':[{'shape':[2,2],'dtype':'float32'}]}],'outputs':[{'name':'y','ref':'k'}]}");
  write_bytes("graph.json", text, strlen(text));
  for (int i = 0; i < 3; i++) {
    rule_tensor *t = NULL;
    rule_shape s = {.rank = 2, .dim = {2, i == 2 ? 2 : 4}};
    ck_assert_int_eq(rule_tensor_new(RULE_F32, &s, &t, NULL), ISO_OK);
    cap_named_tensor named = {i == 0 ? "w" : i == 1 ? "x" : "l", t};
    ck_assert_int_eq(cap_tensors_save(in_tmp(i == 0   ? "weights.safetensors"
                                             : i == 1 ? "inputs.safetensors"
                                                      : "trace.safetensors"),
                                      &named, 1, NULL),
                     ISO_OK);
    rule_tensor_unref(t);
  }
}
static void teardown(void) {
  free(text);
  tmp_teardown();
}

static iso_code load(iso_error *err) {
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  rule_tensor *t = NULL;
  iso_code c = rule_schemas_new(&schemas, err);
  if (!c) c = cap_load(tmp_dir, schemas, &g, err);
  if (!c) c = cap_trace(g, 2, 0, &t, err);
  if (!c) HOLDS(t != NULL);
  rule_tensor_unref(t);
  cap_free(g);
  rule_schemas_free(schemas);
  return c;
}

static iso_code load_archive(iso_error *err) {
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  iso_code c = rule_schemas_new(&schemas, err);
  if (!c) c = cap_load("tests/fuzz/corpus/pt2/generation-1", schemas, &g, err);
  cap_free(g);
  rule_schemas_free(schemas);
  return c;
}

static iso_code load_at_sizes(iso_error *err) {
  static const char *const graph =
      "{\"format\":\"isomer-capture\",\"version\":2,\"symbols\":[{\"name\":\"T\",\"min\":1,"
      "\"max\":9,\"value\":4},{\"name\":\"B\",\"min\":1,\"value\":2}],\"guards\":[\"T<9\"],"
      "\"nodes\":[{\"id\":\"x\",\"op\":\"input\",\"name\":\"x\",\"domain\":{\"range\":[0,"
      "{\"size\":\"T\"}]},\"outputs\":[{\"shape\":[\"B\",\"T\"],\"dtype\":\"int64\"}]},"
      "{\"id\":\"v\",\"op\":\"aten::view\",\"args\":[{\"ref\":\"x\"},[{\"size\":\"B*T + 5 - 5"
      "\"}]],\"outputs\":[{\"shape\":[\"B*T\"],\"dtype\":\"int64\"}]}],"
      "\"outputs\":[{\"name\":\"y\",\"ref\":\"v\"}]}";
  const cap_size at[2] = {{"T", 3}, {"B", 7}};
  const cap_options o = {.size = at, .n_sizes = 2};
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  iso_code c = rule_schemas_new(&schemas, err);
  if (!c) c = cap_parse((cap_text){graph, strlen(graph)}, "dir", &o, schemas, &g, err);
  if (!c) HOLDS(g->node[1].output[0].shape.dim[0] == 21 && g->n_numbers == 2);
  cap_free(g);
  rule_schemas_free(schemas);
  return c;
}

static const char rules[] =
    "(rule linear-addmm (var a f (N K)) (var c f (K M)) (var b f (M))\n"
    " (lhs (aten::linear a (aten::transpose.int c 0 1) b)) (rhs (aten::addmm b a c))\n"
    " (where (>= N 1) (= (* 3 S) N)) (evidence proved \"all shapes\"))\n"
    "(rule parts (var x f (... 4)) (lhs (getitem (aten::split.Tensor x 2 -1) 0)) (rhs "
    "(aten::slice.Tensor x -1 0 2)))\n";

static iso_code read_rules(iso_error *err) {
  rule_set *s = NULL;
  iso_code c = rule_set_parse(rules, sizeof rules - 1, "r.rules", &s, err);
  if (!c) {
    char *printed = rule_print(rule_set_at(s, 0));
    if (!printed) c = iso_fail(err, ISO_NOMEM, "out of memory");
    free(printed);
  }
  if (!c) c = rule_set_save(s, in_tmp("saved.rules"), err);
  rule_set_free(s);
  return c;
}

static void every_allocation(iso_code (*run)(iso_error *), long least, const char *output) {
  iso_error err = {0};
  ck_assert_msg(run(&err) == ISO_OK, "%s", err.msg);
  if (output) ck_assert_int_eq(unlink(in_tmp(output)), 0);
  const size_t files = files_in_tmp();
  long n = 0;
  for (bool failed = true; failed; n++) {
    const long live = fail_live;
    err = (iso_error){0};
    fail_arm(n);
    const iso_code c = run(&err);
    failed = fail_disarm();
    const long leaked = fail_live - live; /* before the assertions, which allocate */
    if (failed) {
      ck_assert_msg(c == ISO_NOMEM, "allocation %ld: code %d: %s", n, (int)c, err.msg);
      ck_assert_msg(c == ISO_OK || (err.msg[0] && !strchr(err.msg, '\n')), "allocation %ld: \"%s\"",
                    n, err.msg);
    } else {
      ck_assert_msg(c == ISO_OK, "%s", err.msg);
    }
    ck_assert_msg(leaked == 0, "%ld blocks leak with allocation %ld: %s", leaked, n, err.msg);
    if (output && c == ISO_OK) ck_assert_int_eq(unlink(in_tmp(output)), 0);
    ck_assert_msg(files_in_tmp() == files, "a file is left with allocation %ld", n);
  }
  ck_assert_int_gt(n, least);
}

START_TEST(loading) { every_allocation(load, 30, NULL); }
END_TEST
START_TEST(sizes) { every_allocation(load_at_sizes, 20, NULL); }
END_TEST
START_TEST(archives) { every_allocation(load_archive, 100, NULL); }
END_TEST
START_TEST(rule_files) { every_allocation(read_rules, 20, "saved.rules"); }
END_TEST

int main(void) {
  Suite *s = suite_create("capture out of memory");
  TCase *t = tcase_create("oom");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, loading);
  tcase_add_test(t, sizes);
  tcase_add_test(t, archives);
  tcase_add_test(t, rule_files);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
