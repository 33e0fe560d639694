/* Graphs of version 3: all ranks take the same steps, each on its own leaves, and collectives are
 * of all of them. */
#include "tests/capture/loading_test.h"

#define F(shape) "{'shape':" shape ",'dtype':'float32'}"
#define LEAF(kind, name) \
  "{'id':'" name "','op':'" kind "','name':'" name "','outputs':[" F("[2,3]") "]}"
#define OP(id, op, args, shape) \
  "{'id':'" id "','op':'" op "','args':[" args "],'outputs':[" F(shape) "]}"
#define LEAVES LEAF("input", "x") "," LEAF("parameter", "w")
#define MUL OP("m", "aten::mul.Tensor", "{'ref':'x'},{'ref':'w'}", "[2,3]")
#define SUM OP("s", "dist::all_reduce", "[{'ref':'m'}],'sum'", "[2,3]")
#define PART OP("p", "dist::reduce_scatter", "[{'ref':'m'}],'sum',0", "[1,3]")
#define NEG OP("n", "aten::neg", "{'ref':'p'}", "[1,3]")
#define Y "[{'name':'y','ref':'s'},{'name':'z','ref':'n'}]"
#define GRAPH(roles, nodes, outputs) \
  "{'format':'isomer-capture','version':3," roles "'nodes':[" nodes "],'outputs':" outputs "}"
#define ROLES(ranks, own) "'roles':{'ranks':" ranks ",'own':" own "},"
#define ALL LEAVES "," MUL "," SUM "," PART "," NEG

static iso_code parse(const char *json, cap_graph **g, iso_error *err) {
  char *text = quotes(json);
  const iso_code c = cap_parse((cap_text){text, strlen(text)}, "roles", NULL, schemas, g, err);
  free(text);
  return c;
}

static void write_tensors(const char *file, const char *const *name, const double *first,
                          size_t n) {
  cap_named_tensor named[4];
  rule_tensor *own[4];
  const rule_shape s = {.rank = 2, .dim = {2, 3}};
  for (size_t i = 0; i < n; i++) {
    rule_tensor *t = NULL;
    ck_assert_int_eq(rule_tensor_new(RULE_F32, &s, &t, NULL), ISO_OK);
    rule_tensor_set(t, 0, first[i]);
    named[i] = (cap_named_tensor){name[i], own[i] = t};
  }
  ck_assert_int_eq(cap_tensors_save(in_tmp(file), named, n, NULL), ISO_OK);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(own[i]);
}

static void make(void) {
  char *text = quotes(GRAPH(ROLES("2", "['x']"), ALL, Y));
  write_bytes("graph.json", text, strlen(text));
  free(text);
  const char *weight[] = {"w"}, *input[] = {"rank0.x", "rank1.x"};
  write_tensors("weights.safetensors", weight, (double[]){7}, 1);
  write_tensors("inputs.safetensors", input, (double[]){1, 2}, 2);
}

static uint32_t named(const cap_graph *g, const char *id) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (strcmp(g->node[i].id, id) == 0) return i;
  ck_abort_msg("there is no %s", id);
  return 0;
}

static int64_t child(const cap_graph *g, const char *id, uint32_t k) {
  return g->node[named(g, id)].call->child[k]->u.i;
}

START_TEST(each_rank_has_its_own) {
  cap_graph *g = NULL;
  iso_error err;
  make();
  ck_assert_msg(cap_load(tmp_dir, schemas, &g, &err) == ISO_OK, "%s", err.msg);
  /* Two leaves and two operators on each rank, two collectives, and two shares. */
  ck_assert_uint_eq(g->n_nodes, 12);
  const uint32_t x[2] = {named(g, "r0_x"), named(g, "r1_x")}, w1 = named(g, "r1_w");
  ck_assert_str_eq(g->node[x[1]].name, "rank1.x");
  ck_assert_double_eq(rule_tensor_get(g->node[x[0]].value, 0), 1);
  ck_assert_double_eq(rule_tensor_get(g->node[x[1]].value, 0), 2);
  ck_assert_ptr_eq(g->input[x[1]], g->node[x[1]].value);
  ck_assert_str_eq(g->node[w1].name, "rank1.w");
  ck_assert_double_eq(rule_tensor_get(g->node[w1].value, 0), 7);
  ck_assert_int_eq(child(g, "r1_m", 0), x[1]);
  ck_assert_int_eq(child(g, "r1_m", 1), w1);
  const rule_term *all = g->node[named(g, "all_s")].call->child[0];
  ck_assert_uint_eq(all->n, 2);
  ck_assert_int_eq(all->child[0]->u.i, named(g, "r0_m"));
  ck_assert_int_eq(all->child[1]->u.i, named(g, "r1_m"));
  ck_assert_uint_eq(g->node[named(g, "all_p")].n_outputs, 2);
  ck_assert_int_eq(child(g, "r1_p", 0), named(g, "all_p"));
  ck_assert_int_eq(child(g, "r1_p", 1), 1);
  ck_assert_int_eq(child(g, "r1_n", 0), named(g, "r1_p"));
  cap_free(g);
}
END_TEST

START_TEST(each_rank_gives_its_own) {
  cap_graph *g = NULL;
  iso_error err;
  make();
  ck_assert_msg(cap_load(tmp_dir, schemas, &g, &err) == ISO_OK, "%s", err.msg);
  const char *name[] = {"y", "z", "y_rank1", "z_rank1"}, *id[] = {"all_s", "r0_n", "all_s", "r1_n"};
  ck_assert_uint_eq(g->n_results, 4);
  for (size_t i = 0; i < 4; i++) {
    ck_assert_str_eq(g->result[i].name, name[i]);
    ck_assert_uint_eq(g->result[i].node, named(g, id[i]));
  }
  cap_free(g);
}
END_TEST

START_TEST(kept_it_is_one_program) {
  cap_graph *g = NULL;
  iso_error err;
  const cap_options kept = {.keep_role = true};
  make();
  ck_assert_msg(cap_load_with(tmp_dir, &kept, schemas, &g, &err) == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(cap_role_ranks(g), 2);
  ck_assert_uint_eq(g->n_nodes, 6);
  ck_assert_uint_eq(g->n_results, 2);
  const uint32_t x = named(g, "x"), w = named(g, "w");
  ck_assert_double_eq(rule_tensor_get(g->node[x].value, 0), 1);
  for (uint32_t r = 0; r < 2; r++) {
    ck_assert_double_eq(rule_tensor_get(cap_role_value(g, x, r, 0), 0), 1 + r);
    ck_assert_double_eq(rule_tensor_get(cap_role_value(g, w, r, 0), 0), 7);
  }
  cap_free(g);
}
END_TEST

START_TEST(kept_its_tensors_are_there) {
  cap_graph *g = NULL;
  iso_error err = {0};
  const cap_options kept = {.keep_role = true};
  make();
  const char *input[] = {"rank0.x", "x"};
  write_tensors("inputs.safetensors", input, (double[]){1, 2}, 2);
  ck_assert_int_eq(cap_load_with(tmp_dir, &kept, schemas, &g, &err), ISO_FORMAT);
  check_message(&err, in_tmp("inputs.safetensors"), "rank1.x");
  ck_assert_ptr_null(g);
}
END_TEST

/* Leaves of their own in another order than they are stored in, inputs among parameters, and
 * several input sets: each value says whose it is. */
START_TEST(every_rank_and_set_has_its_own_value) {
  cap_graph *g = NULL;
  iso_error err;
  const cap_options kept = {.keep_role = true};
  char *text = quotes(GRAPH(ROLES("2", "['v','b','a']"),
                            LEAF("input", "a") "," LEAF("parameter", "w") "," LEAF(
                                "input", "s") "," LEAF("parameter", "v") "," LEAF("input", "b"),
                            "[{'name':'y','ref':'a'}]"));
  write_bytes("graph.json", text, strlen(text));
  free(text);
  const char *weight[] = {"rank1.v", "w", "rank0.v"},
             *input[] = {"rank1.b", "rank0.a", "s", "rank1.a"}, *more[] = {"rank0.b"};
  write_tensors("weights.safetensors", weight, (double[]){31, 40, 30}, 3);
  cap_named_tensor all[5];
  for (int set = 0; set < 2; set++) {
    const double first[] = {11, 20, 50, 21, 10};
    for (int i = 0; i < 5; i++) {
      rule_tensor *t = NULL;
      ck_assert_int_eq(rule_tensor_new(RULE_F32, &(rule_shape){2, {2, 3}}, &t, NULL), ISO_OK);
      rule_tensor_set(t, 0, first[i] + 100 * set);
      all[i] = (cap_named_tensor){i < 4 ? input[i] : more[0], t};
    }
    const char *file = set ? "inputs.1.safetensors" : "inputs.safetensors";
    ck_assert_int_eq(cap_tensors_save(in_tmp(file), all, 5, NULL), ISO_OK);
    for (int i = 0; i < 5; i++) rule_tensor_unref((rule_tensor *)(uintptr_t)all[i].tensor);
  }
  ck_assert_msg(cap_load_with(tmp_dir, &kept, schemas, &g, &err) == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(g->n_sets, 2);
  for (uint32_t r = 0; r < 2; r++) {
    ck_assert_double_eq(rule_tensor_get(cap_role_value(g, named(g, "v"), r, 0), 0), 30 + r);
    for (uint32_t set = 0; set < 2; set++) {
      const double by = 100 * set;
      ck_assert_double_eq(rule_tensor_get(cap_role_value(g, named(g, "b"), r, set), 0),
                          10 + r + by);
      ck_assert_double_eq(rule_tensor_get(cap_role_value(g, named(g, "a"), r, set), 0),
                          20 + r + by);
      ck_assert_double_eq(rule_tensor_get(cap_role_value(g, named(g, "s"), r, set), 0), 50 + by);
      ck_assert_double_eq(rule_tensor_get(cap_role_value(g, named(g, "w"), r, set), 0), 40);
    }
  }
  unlink(in_tmp("inputs.1.safetensors"));
  cap_free(g);
}
END_TEST

/* Weights that are not there are no rank's: the graph is that of all ranks then. */
START_TEST(without_weights_it_is_not_kept) {
  cap_graph *g = NULL;
  iso_error err;
  const cap_options kept = {.keep_role = true, .no_weights = true};
  make();
  char *text = quotes(GRAPH(ROLES("2", "['w']"), ALL, Y));
  write_bytes("graph.json", text, strlen(text));
  free(text);
  const char *input[] = {"x"};
  write_tensors("inputs.safetensors", input, (double[]){1}, 1);
  ck_assert_msg(cap_load_with(tmp_dir, &kept, schemas, &g, &err) == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(cap_role_ranks(g), 0);
  ck_assert_ptr_null(g->node[named(g, "r1_w")].value);
  ck_assert_double_eq(rule_tensor_get(g->node[named(g, "r1_x")].value, 0), 1);
  cap_free(g);
}
END_TEST

/* Names that no rank's output has are nobody's but the first's. */
START_TEST(outputs_that_look_like_a_ranks_are_its_own) {
  static const char *const fine[] = {"y_rank",   "y_rank0", "y_rank01", "y_rank 1",
                                     "y_rank+1", "y_rank2", "y_rank1_", "q_rank1"};
  cap_graph *g = NULL;
  iso_error err;
  char json[2000];
  snprintf(json, sizeof json,
           GRAPH(ROLES("2", "[]"), ALL, "[{'name':'y','ref':'s'},{'name':'%s','ref':'n'}]"),
           fine[_i]);
  ck_assert_msg(parse(json, &g, &err) == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(g->n_results, 4);
  for (size_t i = 0; i < 4; i++)
    for (size_t k = 0; k < i; k++) ck_assert_str_ne(g->result[i].name, g->result[k].name);
  cap_free(g);
}
END_TEST

static const struct {
  const char *json, *says;
} malformed[] = {
    {GRAPH("", ALL, Y), "\"roles\" has no \"ranks\""},
    {GRAPH("'roles':3,", ALL, Y), "\"roles\" has no \"ranks\""},
    {GRAPH(ROLES("1", "[]"), ALL, Y), "\"roles\" has no \"ranks\""},
    {GRAPH(ROLES("-4", "[]"), ALL, Y), "\"roles\" has no \"ranks\""},
    {GRAPH(ROLES("2.0", "[]"), ALL, Y), "\"roles\" has no \"ranks\""},
    {GRAPH(ROLES("65537", "[]"), ALL, Y), "\"roles\" has no \"ranks\""},
    {GRAPH(ROLES("2", "{}"), ALL, Y), "\"own\", a list"},
    {GRAPH("'roles':{'ranks':2},", ALL, Y), "\"own\", a list"},
    {GRAPH(ROLES("2", "['m']"), ALL, Y), "\"m\", which is no leaf"},
    {GRAPH(ROLES("2", "[3]"), ALL, Y), "which is no leaf"},
    {GRAPH(ROLES("2", "[]"), LEAF("input", "rank1.x"), "[{'name':'y','ref':'rank1.x'}]"),
     "is one rank's leaf"},
    {GRAPH(ROLES("2", "[]"),
           LEAVES "," OP("s", "dist::all_reduce", "[{'ref':'x'},{'ref':'w'}],'sum'", "[2,3]"),
           "[{'name':'y','ref':'s'}]"),
     "names one tensor"},
    {GRAPH(ROLES("2", "[]"), LEAVES "," OP("s", "dist::all_reduce", "[],'sum'", "[2,3]"),
           "[{'name':'y','ref':'s'}]"),
     "names one tensor"},
    {GRAPH(ROLES("2", "[]"), LEAVES "," OP("s", "dist::broadcast", "[{'ref':'x'}],0", "[2,3]"),
           "[{'name':'y','ref':'s'}]"),
     "is no operator of a role"},
    {GRAPH(ROLES("2", "[]"), ALL, "[{'name':'y','ref':'s'},{'name':'y_rank1','ref':'n'}]"),
     "two outputs are called \"y_rank1\""},
};
enum { N_MALFORMED = sizeof malformed / sizeof *malformed };

START_TEST(malformed_roles) {
  cap_graph *g = NULL;
  iso_error err = {0};
  const iso_code c = parse(malformed[_i].json, &g, &err);
  ck_assert_msg(c == ISO_FORMAT, "accepted what is wrong: %s", malformed[_i].says);
  check_message(&err, "roles/graph.json", malformed[_i].says);
  ck_assert_ptr_null(g);
}
END_TEST

START_TEST(missing_tensors) {
  cap_graph *g = NULL;
  iso_error err = {0};
  make();
  const char *input[] = {"rank0.x", "x"};
  write_tensors("inputs.safetensors", input, (double[]){1, 2}, 2);
  ck_assert_int_eq(cap_load(tmp_dir, schemas, &g, &err), ISO_FORMAT);
  check_message(&err, in_tmp("inputs.safetensors"), "rank1.x");
}
END_TEST

int main(void) {
  TCase *c = tcase_create("roles");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, each_rank_has_its_own);
  tcase_add_test(c, each_rank_gives_its_own);
  tcase_add_test(c, kept_it_is_one_program);
  tcase_add_test(c, kept_its_tensors_are_there);
  tcase_add_test(c, every_rank_and_set_has_its_own_value);
  tcase_add_test(c, without_weights_it_is_not_kept);
  tcase_add_loop_test(c, outputs_that_look_like_a_ranks_are_its_own, 0, 8);
  tcase_add_loop_test(c, malformed_roles, 0, N_MALFORMED);
  tcase_add_test(c, missing_tensors);
  return run_case("roles", c);
}
