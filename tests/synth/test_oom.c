/* needs libtorch. Allocation failure at every n while two small captures are loaded and compared,
 * with libtorch loaded: each time ISO_NOMEM comes back, or the comparison went on without the
 * memory and its verdict is not a stronger one. Failures are those of the program's own calls;
 * libtorch's throw, and a few of those are let fail too. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "localise/localise.h"
#include "synth/synth.h"
#include "validate/validate.h"
#include "tests/support/suite.h"

enum { EVERY = 400, SAMPLES = 1200 }; /* each of the first; then evenly spread ones */

static char dir[2][64];
static rule_schemas *schemas;
static val_engine *engine;

static const char *const graph[2] = {
    "{'format':'isomer-capture','version':1,'nodes':["
    "{'id':'x','op':'input','name':'x','outputs':[{'shape':[3,4],'dtype':'float32'}]},"
    "{'id':'w','op':'parameter','name':'w','outputs':[{'shape':[5,4],'dtype':'float32'}]},"
    "{'id':'l','op':'aten::linear','args':[{'ref':'x'},{'ref':'w'}],'outputs':[{'shape':[3,5],'"
    "dtype':'float32'}]},"
    "{'id':'r','op':'aten::relu','args':[{'ref':'l'}],'outputs':[{'shape':[3,5],'dtype':'float32'}]"
    "}],"
    "'outputs':[{'name':'y','ref':'r'}]}",
    "{'format':'isomer-capture','version':1,'nodes':["
    "{'id':'x','op':'input','name':'x','outputs':[{'shape':[3,4],'dtype':'float32'}]},"
    "{'id':'w','op':'parameter','name':'wt','outputs':[{'shape':[4,5],'dtype':'float32'}]},"
    "{'id':'m','op':'aten::mm','args':[{'ref':'x'},{'ref':'w'}],'outputs':[{'shape':[3,5],'dtype':'"
    "float32'}]},"
    "{'id':'c','op':'aten::clamp_min','args':[{'ref':'m'},0],'outputs':[{'shape':[3,5],'dtype':'"
    "float32'}]}],"
    "'outputs':[{'name':'y','ref':'c'}]}"};

/* The same for any number of rows, and a constant of as many beside them. */
static const char *const sized[2] = {
    "{'format':'isomer-capture','version':2,'symbols':[{'name':'T','min':2,'value':3}],"
    "'guards':[],'nodes':["
    "{'id':'x','op':'input','name':'x','outputs':[{'shape':['T',4],'dtype':'float32'}]},"
    "{'id':'w','op':'parameter','name':'w','outputs':[{'shape':[5,4],'dtype':'float32'}]},"
    "{'id':'l','op':'aten::linear','args':[{'ref':'x'},{'ref':'w'}],'outputs':[{'shape':['T',5],'"
    "dtype':'float32'}]},"
    "{'id':'r','op':'aten::relu','args':[{'ref':'l'}],'outputs':[{'shape':['T',5],'dtype':"
    "'float32'}]},"
    "{'id':'a','op':'aten::arange','args':[{'size':'T'}],'outputs':[{'shape':['T'],'dtype':'int64'"
    "}]},"
    "{'id':'u','op':'aten::unsqueeze','args':[{'ref':'a'},1],'outputs':[{'shape':['T',1],'dtype':"
    "'int64'}]},"
    "{'id':'s','op':'aten::add.Tensor','args':[{'ref':'r'},{'ref':'u'}],'outputs':[{'shape':['T',5]"
    ",'dtype':'float32'}]}],'outputs':[{'name':'y','ref':'s'}]}",
    "{'format':'isomer-capture','version':2,'symbols':[{'name':'T','min':1,'value':3}],"
    "'guards':[],'nodes':["
    "{'id':'x','op':'input','name':'x','outputs':[{'shape':['T',4],'dtype':'float32'}]},"
    "{'id':'w','op':'parameter','name':'wt','outputs':[{'shape':[4,5],'dtype':'float32'}]},"
    "{'id':'m','op':'aten::mm','args':[{'ref':'x'},{'ref':'w'}],'outputs':[{'shape':['T',5],'dtype'"
    ":'float32'}]},"
    "{'id':'c','op':'aten::clamp_min','args':[{'ref':'m'},0],'outputs':[{'shape':['T',5],'dtype':"
    "'float32'}]},"
    "{'id':'a','op':'aten::arange.start','args':[0,{'size':'T'}],'outputs':[{'shape':['T'],'dtype':"
    "'int64'}]},"
    "{'id':'u','op':'aten::view','args':[{'ref':'a'},[{'size':'T'},1]],'outputs':[{'shape':['T',1],"
    "'dtype':'int64'}]},"
    "{'id':'s','op':'aten::add.Tensor','args':[{'ref':'c'},{'ref':'u'}],'outputs':[{'shape':['T',5]"
    ",'dtype':'float32'}]}],'outputs':[{'name':'y','ref':'s'}]}"};

static void write_graphs(const char *const text[2]) {
  for (int side = 0; side < 2; side++) {
    char path[256];
    snprintf(path, sizeof path, "%s/graph.json", dir[side]);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (const char *p = text[side]; *p; p++) fputc(*p == '\'' ? '"' : *p, f);
    ck_assert_int_eq(fclose(f), 0);
  }
}

static void save(int side, const char *file, const char *name, int64_t rows, int64_t cols,
                 bool turned) {
  char path[256];
  rule_tensor *t = NULL;
  rule_shape s = {.rank = 2, .dim = {rows, cols}};
  ck_assert_int_eq(rule_tensor_new(RULE_F32, &s, &t, NULL), ISO_OK);
  for (int64_t i = 0; i < t->numel; i++) { /* the same matrix on both sides, turned on one */
    const int64_t r = turned ? i % cols : i / cols, c = turned ? i / cols : i % cols,
                  k = 7 * r + 3 * c;
    rule_tensor_set(t, i, (double)((k * 37 + r * c * 11) % 23 - 11) / 8);
  }
  cap_named_tensor named = {name, t};
  snprintf(path, sizeof path, "%s/%s", dir[side], file);
  ck_assert_int_eq(cap_tensors_save(path, &named, 1, NULL), ISO_OK);
  rule_tensor_unref(t);
}

static void setup(void) {
  for (int side = 0; side < 2; side++) {
    strcpy(dir[side], "/tmp/isomer-oom-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir[side]));
    save(side, "inputs.safetensors", "x", 3, 4, false);
  }
  write_graphs(graph);
  save(0, "weights.safetensors", "w", 5, 4, false);
  save(1, "weights.safetensors", "wt", 4, 5, true);
  ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK);
  val_options o = val_options_default();
  ck_assert_int_eq(val_new(&o, schemas, &engine, NULL), ISO_OK);
  const char *version;
  ck_assert_int_eq(val_torch_version(engine, &version, NULL), ISO_OK);
}

static void teardown(void) {
  val_free(engine);
  rule_schemas_free(schemas);
  static const char *const file[] = {"graph.json", "inputs.safetensors", "weights.safetensors"};
  for (int side = 0; side < 2; side++) {
    char path[256];
    for (int i = 0; i < 3; i++) {
      snprintf(path, sizeof path, "%s/%s", dir[side], file[i]);
      unlink(path);
    }
    rmdir(dir[side]);
  }
}

static void nodes_of(const cap_graph *c, synth_node *node, synth_output *output,
                     synth_symbol *symbol, synth_graph *g) {
  for (size_t i = 0; i < c->n_nodes; i++) {
    const cap_node *n = &c->node[i];
    node[i] = (synth_node){.id = n->id,
                           .name = n->name,
                           .op = n->op,
                           .scope = n->scope,
                           .source = n->source,
                           .call = n->call,
                           .kind = n->kind == CAP_INPUT       ? SYNTH_INPUT
                                   : n->kind == CAP_PARAMETER ? SYNTH_PARAMETER
                                                              : SYNTH_OP,
                           .n_outputs = n->n_outputs,
                           .shape = n->output[0].shape,
                           .dtype = n->output[0].dtype,
                           .value = &c->node[i].value,
                           .dim = n->dim,
                           .sized = n->sized};
  }
  for (size_t i = 0; i < c->n_symbols; i++)
    symbol[i] = (synth_symbol){c->symbol[i].name, c->symbol[i].min, c->symbol[i].max};
  output[0] = (synth_output){.name = c->result[0].name, .node = c->result[0].node};
  *g = (synth_graph){.path = c->path,
                     .n_nodes = c->n_nodes,
                     .node = node,
                     .n_outputs = 1,
                     .output = output,
                     .n_sets = 1,
                     .n_symbols = c->n_symbols,
                     .symbol = symbol};
}

/* ---- saturation: relu is a threshold, and a threshold clamps ---- */

static rule_set *steps; /* NULL: the search finds what it needs */
static rule_oracle asked;
static bool for_all;   /* the last comparison was for all sizes */
static bool saturated; /* the last comparison that came to a verdict */

/* Rules that the search proposes are too hard; given ones are decided as they are. */
static iso_code given_only(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out,
                           iso_error *err) {
  if (strncmp(r->name, "given", 5) == 0) return asked.decide(ctx, r, example, out, err);
  *out = (rule_verdict){.status = RULE_UNKNOWN};
  return ISO_OK;
}

static const char given_rules[] =
    "(rule given-linear (var x f (A B)) (var w f (C B)) (lhs (aten::linear x w))"
    " (rhs (aten::mm x (aten::transpose.int w 0 1))))"
    "(rule given-threshold (var x f (A B)) (lhs (aten::relu x)) (rhs (aten::threshold x 0 0)))"
    "(rule given-clamp (var x f (A B)) (lhs (aten::threshold x 0 0)) (rhs (aten::clamp_min x 0)))";

/* Returns: in `verdict` the verdict, where one came out. */
static iso_code run(synth_verdict *verdict, rule_status *evidence, iso_error *err) {
  cap_graph *g[2] = {NULL, NULL};
  synth_result *r = NULL;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) c = cap_load(dir[side], schemas, &g[side], err);
  if (!c) {
    synth_node node[2][8];
    synth_output output[2][1];
    synth_graph view[2];
    synth_symbol symbol[2][1];
    for (int side = 0; side < 2; side++)
      nodes_of(g[side], node[side], output[side], symbol[side], &view[side]);
    rule_oracle oracle = val_oracle(engine);
    if (steps) {
      asked = oracle;
      oracle.decide = given_only;
      oracle.generalise = oracle.glance = NULL;
    }
    synth_options o = synth_options_default();
    o.localiser = localise_parts();
    o.certificate = o.scope = g[0]->n_symbols > 0;
    c = synth_compare(&view[0], &view[1], steps, &oracle, schemas, &o, &r, err);
  }
  if (!c) {
    *verdict = r->verdict;
    *evidence = r->evidence;
    saturated = r->n_saturated > 0;
    for_all = r->scope.all;
  }
  synth_result_free(r);
  cap_free(g[0]);
  cap_free(g[1]);
  return c;
}

static void fail_each(long samples) {
  synth_verdict verdict = SYNTH_UNDECIDED, got;
  rule_status evidence = RULE_UNKNOWN, weaker;
  iso_error err = {0};
  for (int i = 0; i < 2; i++) /* once more: what libtorch keeps is there then */
    ck_assert_msg(run(&verdict, &evidence, &err) == ISO_OK, "%s", err.msg);
  ck_assert_int_eq(verdict, SYNTH_EQUIVALENT);
  fail_arm(1000000000);
  ck_assert_int_eq(run(&verdict, &evidence, &err), ISO_OK);
  const long calls = 1000000000 - fail_after;
  fail_disarm();
  ck_assert_int_gt(calls, 100);
  const long step = calls > EVERY + samples ? (calls - EVERY) / samples + 1 : 1;
  size_t stopped = 0, went_on = 0;
  for (long n = 0; n < calls; n += n < EVERY ? 1 : step) {
    err = (iso_error){0};
    got = SYNTH_UNDECIDED;
    weaker = RULE_UNKNOWN;
    fail_arm(n);
    const iso_code c = run(&got, &weaker, &err);
    fail_disarm();
    if (c) {
      stopped++;
      ck_assert_msg(c == ISO_NOMEM, "allocation %ld of %ld: code %d: %s", n, calls, (int)c,
                    err.msg);
      ck_assert_msg(err.msg[0] && !strchr(err.msg, '\n'), "allocation %ld: \"%s\"", n, err.msg);
    } else {
      went_on++;
      ck_assert_msg(got != SYNTH_DIFFERENT, "allocation %ld of %ld: different", n, calls);
      ck_assert_msg(got != SYNTH_EQUIVALENT || weaker <= evidence,
                    "allocation %ld: stronger evidence", n);
    }
  }
  printf("%ld allocations, each of the first %d and every %ld-th: %zu stopped, %zu went on\n",
         calls, EVERY, step, stopped, went_on);
  ck_assert_msg(run(&got, &weaker, &err) == ISO_OK && got == verdict && weaker == evidence,
                "another verdict afterwards");
}

START_TEST(comparing) { fail_each(SAMPLES); }
END_TEST

START_TEST(saturating) {
  iso_error err = {0};
  ck_assert_msg(rule_set_parse(given_rules, SIZE_MAX, "given", &steps, &err) == ISO_OK, "%s",
                err.msg);
  fail_each(SAMPLES);
  ck_assert(saturated);
  rule_set_free(steps);
  steps = NULL;
}
END_TEST

/* The chain is justified again with symbols: the verdict is for all sizes, or none comes out. */
START_TEST(for_all_sizes) {
  write_graphs(sized);
  fail_each(SAMPLES);
  ck_assert(for_all);
  write_graphs(graph);
}
END_TEST

int main(void) {
  Suite *s = suite_create("compare out of memory");
  TCase *t = tcase_create("oom");
  tcase_set_timeout(t, 300);
  tcase_add_unchecked_fixture(t, setup, teardown);
  tcase_add_test(t, comparing);
  tcase_add_test(t, saturating);
  tcase_add_test(t, for_all_sizes);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
