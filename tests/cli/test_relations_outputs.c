/* Which outputs are compared, by the lines of a relations file: those that lines speak of as they
 * say, the others by name, else in order, and ranks' replicas with their heads. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/capture_int.h"
#include "cli/config/relations.h"
#include "tests/support/suite.h"

static rule_schemas *schemas;
static cap_graph *graph[2];

/* A graph whose outputs are its leaves, by these names, one blank between. */
static cap_graph *graph_of(const char *names) {
  char *text = NULL, *list = strdup(names);
  size_t size;
  iso_error err;
  cap_graph *g = NULL;
  FILE *f = open_memstream(&text, &size);
  for (int pass = 0; pass < 2; pass++) {
    strcpy(list, names);
    fputs(pass ? "],\"outputs\":[" : "{\"format\":\"isomer-capture\",\"version\":1,\"nodes\":[", f);
    for (char *at = strtok(list, " "); at; at = strtok(NULL, " ")) {
      if (at != list) fputc(',', f);
      if (pass) fprintf(f, "{\"name\":\"%s\",\"ref\":\"%s\"}", at, at);
      else
        fprintf(f,
                "{\"id\":\"%s\",\"op\":\"parameter\",\"name\":\"%s\",\"outputs\":[{\"shape\":[2,3],"
                "\"dtype\":\"float32\"}]}",
                at, at);
    }
  }
  fputs("]}", f);
  fclose(f);
  ck_assert_msg(cap_parse((cap_text){text, strlen(text)}, "graph", NULL, schemas, &g, &err) ==
                    ISO_OK,
                "%s", err.msg);
  /* No tensors were read. */
  ck_assert((((impl *)g->impl)->weight = calloc(g->n_nodes + 1, sizeof(rule_tensor *))) != NULL);
  free(text);
  free(list);
  return g;
}

static iso_code apply(const char *lines, relations *r, iso_error *err) {
  char path[64];
  const int fd = memfd_create("relations", MFD_CLOEXEC);
  ck_assert(fd >= 0 && write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines));
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  iso_code c = relations_load(path, false, graph[0], graph[1], r, err);
  close(fd);
  return c ? c : relations_apply(r, graph[0], graph[1], err);
}

/* "NAME=NODE ...", each result of a graph and the node that it is. */
static const char *results_of(const cap_graph *g, char *buf, size_t cap) {
  size_t n = 0;
  buf[0] = 0;
  for (size_t i = 0; i < g->n_results; i++)
    n += (size_t)snprintf(buf + n, cap - n, "%s%s=%s", i ? " " : "", g->result[i].name,
                          g->node[g->result[i].node].kind == CAP_OP
                              ? g->node[g->result[i].node].call->u.s
                              : g->node[g->result[i].node].id);
  return buf;
}

static const struct {
  const char *names[2], *lines, *want[2]; /* want[0] NULL: the error says want[1] */
} cases[] = {
    /* Without lines about outputs nothing changes. */
    {{"a b", "b a"}, "# none\n", {"a=a b=b", "b=b a=a"}},
    /* By name, whatever the order; in order, where one has another name. */
    {{"a b c", "c b a"}, "output a = a\n", {"a=a b=b c=c", "a=a b=b c=c"}},
    {{"a b c", "p q r"}, "output a = q\n", {"a=a b=b c=c", "a=q b=p c=r"}},
    {{"a b c", "c q r"}, "output a = q\n", {"a=a b=b c=c", "a=q b=c c=r"}},
    {{"a b", "p q"}, "output b = p\noutput a = q\n", {"a=a b=b", "a=q b=p"}},
    /* Put together: a node behind the right graph. */
    {{"a b", "p q b"}, "output a = add(p, q)\n", {"a=a b=b", "a=dist::all_reduce b=b"}},
    {{"a", "p q"},
     "output a = transpose(cat([p, q], 0), 0, 1)\n",
     {NULL, "should be equal to is [3, 4]"}},
    /* Several lines are several ranks'. */
    {{"a b", "p q b"}, "output a = p\noutput a = q\n", {"a=a b=b", "a=p a_rank1=q b=b"}},
    {{"a a_rank1", "p q r"}, "output a = p\noutput a = q\n", {NULL, "one line"}},
    /* Replicas go with their heads. */
    {{"a b c", "a a_rank1 b b_rank1 p"},
     "output c = p\n",
     {"a=a b=b c=c", "a=a a_rank1=a_rank1 b=b b_rank1=b_rank1 c=p"}},
    {{"a b", "x x_rank1 p"}, "output b = p\n", {"a=a b=b", "a=x a_rank1=x_rank1 b=p"}},
    {{"a a_rank1 c", "a a_rank1 p"},
     "output c = p\n",
     {"a=a a_rank1=a_rank1 c=c", "a=a a_rank1=a_rank1 c=p"}},
    /* A replica whose head has a line is an output of its own. */
    {{"a b c", "x x_rank1 y y_rank1"},
     "output a = x\n",
     {"a=a b=b c=c", "a=x b=x_rank1 c=y c_rank1=y_rank1"}},
    /* Left out, on one side or with its partner. */
    {{"a b c", "b c"}, "output a = none\n", {"b=b c=c", "b=b c=c"}},
    {{"a b", "p q"}, "output b = none\noutput a = q\n", {NULL, "leave 0 outputs of graph and 1"}},
    {{"a", "p"}, "output a = none\n", {NULL, "leave 0 outputs"}},
    /* What is left does not fit. */
    {{"a b c", "p q"}, "output a = p\n", {NULL, "leave 2 outputs of graph and 1 of graph"}},
    {{"a b", "p"}, "output a = p\n", {NULL, "leave 1 outputs of graph and 0 of graph"}},
};

START_TEST(outputs_are_paired_as_lines_names_and_order_say) {
  char got[2][500];
  relations r;
  iso_error err = {0};
  ck_assert(rule_schemas_new(&schemas, &err) == ISO_OK);
  for (int side = 0; side < 2; side++) graph[side] = graph_of(cases[_i].names[side]);
  const iso_code c = apply(cases[_i].lines, &r, &err);
  if (cases[_i].want[0]) {
    ck_assert_msg(c == ISO_OK, "%s: %s", cases[_i].lines, err.msg);
    for (int side = 0; side < 2; side++)
      ck_assert_str_eq(results_of(graph[side], got[side], sizeof got[side]), cases[_i].want[side]);
  } else {
    ck_assert_msg(c != ISO_OK && strstr(err.msg, cases[_i].want[1]), "%s: %s", cases[_i].lines,
                  c ? err.msg : "taken");
  }
  relations_free(&r);
  for (int side = 0; side < 2; side++) cap_free(graph[side]);
  rule_schemas_free(schemas);
}
END_TEST

int main(void) {
  Suite *s = suite_create("relations_outputs");
  TCase *c = tcase_create("relations_outputs");
  tcase_add_loop_test(c, outputs_are_paired_as_lines_names_and_order_say, 0,
                      (int)(sizeof cases / sizeof *cases));
  suite_add_tcase(s, c);
  return run_suite(s);
}
