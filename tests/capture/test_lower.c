/* Lowering: one spelling for calls that PyTorch lets one write in several ways, and nothing dropped
 * that an operator depends on. */
#include "tests/capture/capture_test.h"

static rule_schemas *schemas;

static void setup(void) {
  ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK);
  ck_assert_int_eq(rule_schemas_add(schemas, "my::rope(Tensor x, int dim=-1) -> Tensor", NULL),
                   ISO_OK);
  ck_assert_int_eq(
      rule_schemas_add(
          schemas, "my::k(Tensor(a!) out, Tensor x, str mode, str layer_name, float eps=0.5) -> ()",
          NULL),
      ISO_OK);
  ck_assert_int_eq(
      rule_schemas_add(
          schemas, "my::k.isomer(Tensor x, str mode, *, float scale, int? window) -> Tensor", NULL),
      ISO_OK);
  ck_assert_int_eq(rule_schemas_add(schemas, "my::layer(Tensor x, str layer_name) -> Tensor", NULL),
                   ISO_OK);
}
static void teardown(void) { rule_schemas_free(schemas); }

/* x: [2, 3, 4]; y: [4]; s: a scalar; m: [2, 3] of int64; z: [0]. Then the node in hand. */
#define LEAF(name, shape, dtype) \
  "{'id':'" name "','op':'input','name':'" name "','outputs':[{'shape':" shape ",'dtype':'" dtype \
  "'}]},"
#define HEAD \
  "{'format':'isomer-capture','version':1,'nodes':[" LEAF("x", "[2,3,4]", "float32") \
      LEAF("y", "[4]", "float32") LEAF("s", "[]", "float32") LEAF("m", "[2,3]", "int64") \
          LEAF("z", "[0]", "float32")
#define OUT(shape) ",'outputs':[{'shape':" shape ",'dtype':'float32'}]"
#define ANY OUT("[2,3,4]")

static iso_code parse(const char *node, cap_graph **g, iso_error *err) {
  char json[4096];
  snprintf(json, sizeof json, HEAD "{'id':'n',%s}],'outputs':[{'name':'o','ref':'x'}]}", node);
  char *text = quotes(json);
  iso_code code = cap_parse((cap_text){text, strlen(text)}, "dir", NULL, schemas, g, err);
  free(text);
  return code;
}

static void check_lowered(const char *node, const char *want) {
  static const char *const vars[] = {"x", "y", "s", "m", "z"};
  cap_graph *g = NULL;
  iso_error err;
  ck_assert_msg(parse(node, &g, &err) == ISO_OK, "%s: %s", node, err.msg);
  const rule_term *call = g->node[5].call;
  char *have = rule_term_print(call, schemas, vars), *text = quotes(want);
  ck_assert_msg(strcmp(have, text) == 0, "%s: is %s, not %s", node, have, text);
  const rule_schema *s = rule_schemas_find(schemas, call->u.s);
  if (s != NULL)
    ck_assert_uint_ge(call->n,
                      s->n_args); /* complete, although printed without trailing defaults */
  free(have);
  free(text);
  cap_free(g);
}

static void refuse(const char *node, const char *part) {
  cap_graph *g = NULL;
  iso_error err = {0};
  ck_assert_msg(parse(node, &g, &err) != ISO_OK, "accepted what is wrong: %s", part);
  check_message(&err, "dir/graph.json: node \"n\": ", part);
  ck_assert_ptr_null(g);
}

typedef struct lowered {
  const char *node, *want;
} lowered;

static const lowered cases[] = {
    /* values by the schema's type */
    {"'op':'aten::add.Tensor','args':[{'ref':'x'},{'ref':'y'}]" ANY, "(aten::add.Tensor x y)"},
    {"'op':'aten::add.Tensor','args':[{'ref':'x'}],'kwargs':{'alpha':2,'other':{'ref':'y'}}" ANY,
     "(aten::add.Tensor x y :alpha 2)"},
    {"'op':'aten::add.Tensor','args':[{'ref':'x'},1.0]" ANY, "(aten::add.Tensor x 1.0)"},
    {"'op':'aten::add.Tensor','args':[{'ref':'x'},1]" ANY, "(aten::add.Tensor x 1)"},
    {"'op':'aten::mul.Scalar','args':[{'ref':'x'},2]" ANY, "(aten::mul.Scalar x 2)"},
    {"'op':'aten::mul.Scalar','args':[{'ref':'x'},{'float':'-inf'}]" ANY,
     "(aten::mul.Scalar x -inf)"},
    {"'op':'aten::dropout','args':[{'ref':'x'},0,false]" ANY, "(aten::dropout x 0.0 false)"},
    {"'op':'aten::layer_norm','args':[{'ref':'x'},[4],null,{'ref':'y'}],'kwargs':{'eps':1}" ANY,
     "(aten::layer_norm x (list 4) none y 1.0)"},
    {"'op':'aten::to.dtype','args':[{'ref':'x'},{'dtype':'float64'},true]" ANY,
     "(aten::to.dtype x float64)"},
    {"'op':'aten::to.dtype_layout','args':[{'ref':'x'}],'kwargs':{'dtype':{'dtype':'bfloat16'},'"
     "layout':{'layout':'strided'},"
     "'device':{'device':'cpu'},'pin_memory':false,'non_blocking':true,'memory_format':{'memory_"
     "format':'contiguous'}}" ANY,
     "(aten::to.dtype_layout x :dtype bfloat16)"},
    {"'op':'aten::cat','args':[[{'ref':'x'},{'ref':'x'}]]" OUT("[4,3,4]"),
     "(aten::cat (list x x))"},
    /* dimensions */
    {"'op':'aten::softmax.int','args':[{'ref':'x'},-1]" ANY, "(aten::softmax.int x 2)"},
    {"'op':'aten::softmax.int','args':[{'ref':'s'},-1]" OUT("[]"), "(aten::softmax.int s 0)"},
    {"'op':'aten::transpose.int','args':[{'ref':'x'},-2,-1]" OUT("[2,4,3]"),
     "(aten::transpose.int x 1 2)"},
    {"'op':'aten::permute','args':[{'ref':'x'},[-1,0,-2]]" OUT("[4,2,3]"),
     "(aten::permute x (list 2 0 1))"},
    {"'op':'aten::mean.dim','args':[{'ref':'x'},-1,true]" OUT("[2,3,1]"),
     "(aten::mean.dim x (list 2) true)"},
    {"'op':'aten::mean.dim','args':[{'ref':'x'},[-1,0]]" OUT("[3]"),
     "(aten::mean.dim x (list 2 0))"},
    {"'op':'aten::mean.dim','args':[{'ref':'x'},null]" OUT("[]"), "(aten::mean.dim x none)"},
    {"'op':'aten::unsqueeze','args':[{'ref':'x'},-1]" OUT("[2,3,4,1]"), "(aten::unsqueeze x 3)"},
    {"'op':'aten::stack','args':[[{'ref':'y'},{'ref':'y'}],-1]" OUT("[4,2]"),
     "(aten::stack (list y y) 1)"},
    {"'op':'aten::cat','args':[[{'ref':'x'},{'ref':'x'}],-1]" OUT("[2,3,8]"),
     "(aten::cat (list x x) 2)"},
    {"'op':'aten::flatten.using_ints','args':[{'ref':'x'},-2]" OUT("[2,12]"),
     "(aten::flatten.using_ints x 1 2)"},
    {"'op':'aten::layer_norm','args':[{'ref':'x'},[4]]" ANY, "(aten::layer_norm x (list 4))"},
    {"'op':'aten::cosine_similarity','args':[{'ref':'y'},{'ref':'x'},-1]" OUT("[2,3]"),
     "(aten::cosine_similarity y x 2)"},
    {"'op':'aten::softmax.int','args':[{'ref':'x'},-4]" ANY,
     "(aten::softmax.int x -4)"}, /* libtorch will say so */
    {"'op':'aten::embedding','args':[{'ref':'x'},{'ref':'m'},-1]" ANY, "(aten::embedding x m)"},
    {"'op':'my::rope','args':[{'ref':'x'}]" ANY,
     "(my::rope x)"}, /* `dim` may be anything outside PyTorch */
    {"'op':'dist::all_gather','args':[[{'ref':'x'},{'ref':'x'}],-1]" OUT("[2,3,8]"),
     "(dist::all_gather (list x x) 2)"},
    {"'op':'dist::all_reduce','args':[[{'ref':'x'},{'ref':'x'}],'sum']" ANY,
     "(dist::all_reduce (list x x) 'sum')"},
    {"'op':'aten::select.int','args':[{'ref':'x'},-2,-1]" OUT("[2,4]"), "(aten::select.int x 1 2)"},
    /* sizes */
    {"'op':'aten::view','args':[{'ref':'x'},[-1,4]]" OUT("[6,4]"), "(aten::view x (list 6 4))"},
    {"'op':'aten::reshape','args':[{'ref':'x'},[2,-1]]" OUT("[2,12]"),
     "(aten::reshape x (list 2 12))"},
    {"'op':'aten::expand','args':[{'ref':'y'},[5,-1]]" OUT("[5,4]"), "(aten::expand y (list 5 4))"},
    {"'op':'aten::view','args':[{'ref':'s'},[]]" OUT("[]"), "(aten::view s (list))"},
    {"'op':'aten::view.dtype','args':[{'ref':'x'},{'dtype':'int32'}]" ANY,
     "(aten::view.dtype x int32)"},
    /* slices */
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'}]" ANY, "(aten::slice.Tensor x 0 0 2)"},
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'},-1,null,9223372036854775807]" ANY,
     "(aten::slice.Tensor x 2 0 4)"},
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'},2,-3,-1]" OUT("[2,3,2]"),
     "(aten::slice.Tensor x 2 1 3)"},
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'},2,-9,2]" OUT("[2,3,2]"),
     "(aten::slice.Tensor x 2 0 2)"},
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'},2,3,1]" OUT("[2,3,0]"),
     "(aten::slice.Tensor x 2 3 3)"},
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'},1,0,3,2]" OUT("[2,2,4]"),
     "(aten::slice.Tensor x 1 0 3 2)"},
    {"'op':'aten::slice.Tensor','args':[{'ref':'x'},1,-9223372036854775808,3]" ANY,
     "(aten::slice.Tensor x 1 0 3)"},
    /* operators without a schema: as written, keyword arguments by name and in its order */
    {"'op':'my::op','args':[{'ref':'x'},[1,true]],'kwargs':{'b':null,'a':2.0}" ANY,
     "(my::op x (list 1 true) (list 'a' 2.0) (list 'b' none))"},
    {"'op':'my::op','args':[{'ref':'x'}],'kwargs':{'layer_name':'l0'},'attributes':{'n':1,'e':{'"
     "float':'inf'}}" ANY,
     "(my::op x (list (list 'e' inf) (list 'n' 1)))"},
    /* kernels */
    {"'op':'my::k','kwargs':{'out':{'ref':'x'},'x':{'ref':'x'},'mode':'a','layer_name':'l0'},'"
     "attributes':{'scale':1,'window':null},"
     "'functionalized':{'returns':0,'writes':['out']}" ANY,
     "(my::k.isomer x 'a' :scale 1.0 :window none)"},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0',0.5],'attributes':{'scale':2.5,'window'"
     ":3},"
     "'functionalized':{'returns':0,'writes':['out']}" ANY,
     "(my::k.isomer x 'a' :scale 2.5 :window 3)"},
    /* ... whose overload has no place for an argument or an attribute, or lacks a value */
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0',0.25],'attributes':{'scale':2.5,'"
     "window':3},"
     "'functionalized':{'returns':0,'writes':['out']}" ANY,
     "(my::k y x 'a' none 0.25 (list (list 'scale' 2.5) (list 'window' 3)))"},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0'],'attributes':{'scale':2.5,'window':3,'"
     "cap':1},"
     "'functionalized':{'returns':0,'writes':['out']}" ANY,
     "(my::k y x 'a' none 0.5 (list (list 'cap' 1) (list 'scale' 2.5) (list 'window' 3)))"},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0'],'attributes':{'scale':2.5},"
     "'functionalized':{'returns':0,'writes':['out']}" ANY,
     "(my::k y x 'a' none 0.5 (list (list 'scale' 2.5)))"},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0'],'functionalized':{'returns':0,'writes'"
     ":['out']}" ANY,
     "(my::k y x 'a' 'l0')"},
    {"'op':'my::layer','args':[{'ref':'x'},'l0'],'attributes':{'heads':2}" ANY,
     "(my::layer x none (list (list 'heads' 2)))"},
    {"'op':'my::layer','args':[{'ref':'x'},'l0']" ANY, "(my::layer x 'l0')"},
    /* an empty operand of one dimension is left out of a concatenation */
    {"'op':'aten::cat','args':[[{'ref':'z'},{'ref':'x'},{'ref':'z'}],-2]" ANY,
     "(aten::cat (list x) 1)"},
    {"'op':'aten::cat','args':[[{'ref':'z'},{'ref':'y'}]]" OUT("[4]"), "(aten::cat (list y))"},
    {"'op':'aten::cat','args':[[{'ref':'z'},{'ref':'z'}]]" OUT("[0]"), "(aten::cat (list z z))"},
    {"'op':'aten::cat','args':[[{'ref':'z'},{'ref':'m'}]]" OUT("[2,3]"), "(aten::cat (list z m))"},
    {"'op':'aten::stack','args':[[{'ref':'z'},{'ref':'z'}]]" OUT("[2,0]"),
     "(aten::stack (list z z))"},
    {"'op':'_C::silu_and_mul','kwargs':{'out':{'ref':'y'},'input':{'ref':'x'}},'functionalized':{'"
     "returns':0,'writes':['out']}" OUT("[2,3,2]"),
     "(_C::silu_and_mul.isomer x)"},
    {"'op':'_moe_C::topk_softmax','args':[{'ref':'m'},{'ref':'m'},{'ref':'m'},{'ref':'x'}],'"
     "functionalized':{'returns':0,"
     "'writes':['topk_weights','topk_indices','token_expert_indices']},'outputs':[{'shape':[2,3],'"
     "dtype':'float32'},"
     "{'shape':[2,3],'dtype':'int32'},{'shape':[2,3],'dtype':'int32'}]",
     "(_moe_C::topk_softmax.isomer x :topk 3)"},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

START_TEST(calls) { check_lowered(cases[_i].node, cases[_i].want); }
END_TEST

static const lowered wrong[] = {
    {"'op':'aten::relu','args':[]" ANY, "argument \"self\" of aten::relu is missing"},
    {"'op':'aten::relu'" ANY, "argument \"self\" of aten::relu is missing"},
    {"'op':'aten::relu','args':[{'ref':'x'},{'ref':'x'}]" ANY,
     "aten::relu takes at most 1 positional arguments, given are 2"},
    {"'op':'aten::add.Tensor','args':[{'ref':'x'},{'ref':'x'},1]" ANY,
     "takes at most 2 positional"},
    {"'op':'aten::relu','args':[{'ref':'x'}],'kwargs':{'inplace':true}" ANY,
     "aten::relu has no argument \"inplace\""},
    {"'op':'aten::relu','args':[{'ref':'x'}],'kwargs':{'self':{'ref':'x'}}" ANY,
     "argument \"self\" is given twice"},
    {"'op':'aten::relu','args':['x']" ANY, "argument \"self\" is a tensor, given is a string"},
    {"'op':'aten::relu','args':[null]" ANY, "argument \"self\" is a tensor, given is none"},
    {"'op':'aten::relu','args':[[{'ref':'x'}]]" ANY,
     "argument \"self\" is a tensor, given is a list"},
    {"'op':'aten::cat','args':[{'ref':'x'}]" ANY,
     "argument \"tensors\" is a list of tensors, given is a tensor"},
    {"'op':'aten::cat','args':[[{'ref':'x'},'x']]" ANY, "argument \"tensors\""},
    {"'op':'aten::softmax.int','args':[{'ref':'x'},1.0]" ANY,
     "argument \"dim\" is an int, given is a float"},
    {"'op':'aten::softmax.int','args':[{'ref':'x'},true]" ANY,
     "argument \"dim\" is an int, given is a bool"},
    {"'op':'aten::softmax.int','args':[{'ref':'x'},{'ref':'x'}]" ANY,
     "argument \"dim\" is an int, given is a tensor"},
    {"'op':'aten::softmax.int','args':[{'ref':'x'},0,'float']" ANY,
     "argument \"dtype\" is a dtype, given is a string"},
    {"'op':'aten::dropout','args':[{'ref':'x'},'p',false]" ANY, "argument \"p\" is a float"},
    {"'op':'aten::dropout','args':[{'ref':'x'},0.1,0]" ANY,
     "argument \"train\" is a bool, given is an int"},
    {"'op':'aten::permute','args':[{'ref':'x'},[0,1.5]]" ANY,
     "argument \"dims\" is a list of ints"},
    {"'op':'aten::permute','args':[{'ref':'x'},0]" ANY,
     "argument \"dims\" is a list of ints, given is an int"},
    {"'op':'aten::to.dtype_layout','args':[{'ref':'x'}],'kwargs':{'device':{'ref':'x'}}" ANY,
     "argument \"device\""},
    {"'op':'aten::relu','args':[{'ref':'x'}],'outputs':[{'shape':[1],'dtype':'bool'},{'shape':[1],'"
     "dtype':'bool'}]",
     "aten::relu returns 1 tensors, the node has 2 outputs"},
    {"'op':'aten::view','args':[{'ref':'x'},[6,4]]" ANY, "asks for 2 dimensions, its output has 3"},
    {"'op':'aten::view','args':[{'ref':'x'},[4,-1]]" OUT("[6,4]"),
     "asks for size 4 at dimension 0, its output has 6"},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0']" ANY,
     "writes to its arguments, and the node is not functionalized"},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0'],'functionalized':{'returns':0,'writes'"
     ":['x']}" ANY,
     "my::k does not write to \"x\""},
    {"'op':'my::k','args':[{'ref':'y'},{'ref':'x'},'a','l0'],'attributes':{'scale':'big','window':"
     "null},"
     "'functionalized':{'returns':0,'writes':['out']}" ANY,
     "argument \"scale\" is a float, given is a string"},
};
enum { N_WRONG = sizeof wrong / sizeof wrong[0] };

START_TEST(calls_against_the_schema) { refuse(wrong[_i].node, wrong[_i].want); }
END_TEST

/* Every leading part of a name must be told apart. */
START_TEST(many_names) {
  enum { N = 5000 };
  static char key[N][16];
  cap_names t = {0};
  ck_assert_uint_eq(cap_names_find(&t, "n0"), CAP_NO_INDEX);
  for (size_t i = 0; i < N; i++) {
    snprintf(key[i], sizeof key[i], "n%zu", i);
    ck_assert(cap_names_add(&t, key[i], i));
  }
  for (size_t i = 0; i < N; i++) ck_assert_uint_eq(cap_names_find(&t, key[i]), i);
  ck_assert_uint_eq(cap_names_find(&t, "n"), CAP_NO_INDEX);
  ck_assert_uint_eq(cap_names_find(&t, "n5000"), CAP_NO_INDEX);
  cap_names_fini(&t);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("lower");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, calls, 0, N_CASES);
  tcase_add_loop_test(c, calls_against_the_schema, 0, N_WRONG);
  tcase_add_test(c, many_names);
  return run_case("lower", c);
}
