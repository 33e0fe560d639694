/* Two layers of a model on two ranks, by hand (needs libtorch): a program that is right has no
 * finding, and one slip in it is found at the tensor where it was made. */
#include "capture/capture_int.h"
#include "lint/placement/placement.h"
#include "tests/validate/engine_test.h"

enum { MOST = 40, RANKS = 2 };

/* A program as its nodes; what a step reads of a rank's own has R for the rank. */
typedef struct step {
  const char *id; /* "h": r0_h and r1_h; all together where it begins with "all" */
  const char *call;
  const char *shape;
} step;

typedef struct program {
  const char *what;
  step step[12];
  const char *output; /* a step */
  const char *wrong,
      *say; /* the step at which the fault is, and what is said; NULL: there is none */
} program;

/* x, two matrices, the first cut by columns and the second by rows, and a bias c. */
#define MM(a, b) "'op':'aten::mm','args':[{'ref':'" a "'},{'ref':'" b "'}]"
#define H \
  { "h", MM("rR_x", "rR_w"), "[4,4]" }
#define O \
  { "o", MM("rR_h", "rR_v"), "[4,3]" }
#define REDUCED(of, how) \
  "'op':'dist::all_reduce','args':[[{'ref':'r0_" of "'},{'ref':'r1_" of "'}],'" how "']"
#define S \
  { "all_s", REDUCED("o", "sum"), "[4,3]" }
#define OF(op, a) "'op':'aten::" op "','args':[{'ref':'" a "'}]"
#define GATHERED(a, b) "'op':'dist::all_gather','args':[[{'ref':'" a "'},{'ref':'" b "'}],1]"

#define ADDED(a) "'op':'aten::add.Tensor','args':[{'ref':'" a "'},{'ref':'rR_c'}]"

static const program programs[] = {
    {"a bias that is added behind the sum",
     {H, O, S, {"y", ADDED("all_s"), "[4,3]"}},
     "y",
     NULL,
     NULL},
    {"a sum of both ranks' parts", {H, O, S}, "all_s", NULL, NULL},
    {"a function of the shards before, and of the sum after",
     {{"h", MM("rR_x", "rR_w"), "[4,4]"},
      {"g", OF("relu", "rR_h"), "[4,4]"},
      {"o", MM("rR_g", "rR_v"), "[4,3]"},
      S,
      {"y", OF("tanh", "all_s"), "[4,3]"}},
     "y",
     NULL,
     NULL},
    {"shards that are gathered",
     {H, {"all_g", GATHERED("r0_h", "r1_h"), "[4,8]"}},
     "all_g",
     NULL,
     NULL},
    /* slips */
    {"parts of a sum that nobody adds up", {H, O}, "o", "o", "all_reduce"},
    {"a function of the parts in place of the sum",
     {H, O, {"g", OF("relu", "rR_o"), "[4,3]"}, {"all_s", REDUCED("g", "sum"), "[4,3]"}},
     "all_s",
     "g",
     "all_reduce"},
    {"a mean in place of a sum",
     {H, O, {"all_s", REDUCED("o", "avg"), "[4,3]"}},
     "all_s",
     "all_s",
     "sum"},
    {"a sum that is added up once more",
     {H, O, S, {"t", OF("neg", "all_s"), "[4,3]"}, {"all_t", REDUCED("t", "sum"), "[4,3]"}},
     "all_t",
     "all_t",
     "2"},
    {"shards that are gathered in another order",
     {H, {"all_g", GATHERED("r1_h", "r0_h"), "[4,8]"}},
     "all_g",
     "all_g",
     "order"},
    {"a bias that each rank adds before the sum",
     {H, O, {"b", ADDED("rR_o"), "[4,3]"}, {"all_s", REDUCED("b", "sum"), "[4,3]"}},
     "all_s",
     "b",
     "2 times"},
    {"the largest of both parts",
     {H, O, {"all_s", REDUCED("o", "max"), "[4,3]"}},
     "all_s",
     "all_s",
     "sum"},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static void write_step(FILE *f, const step *s, const char *rank) {
  fprintf(f, ",{'id':'");
  if (strncmp(s->id, "all", 3) != 0) fprintf(f, "r%s_", rank);
  fprintf(f, "%s',", s->id);
  for (const char *p = s->call; *p; p++)
    if (*p == 'R') fputs(rank, f);
    else fputc(*p, f);
  fprintf(f, ",'outputs':[{'shape':%s,'dtype':'float32'}]}", s->shape);
}

static void write_leaf(FILE *f, const char *name, const char *shape, const char *rank) {
  fprintf(f,
          "%s{'id':'r%s_%s','op':'parameter','name':'rank%s.%s','outputs':[{'shape':%s,'dtype':"
          "'float32'}]}",
          *name == 'x' && *rank == '0' ? "" : ",", rank, name, rank, name, shape);
}

static char *text_of(const program *p) {
  static const char *const ranks[RANKS] = {"0", "1"};
  char *text = NULL;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  const bool together = strncmp(p->output, "all", 3) == 0;
  fprintf(f, "{'format':'isomer-capture','version':1,'nodes':[");
  for (int r = 0; r < RANKS; r++) {
    write_leaf(f, "x", "[4,6]", ranks[r]);
    write_leaf(f, "w", "[6,4]", ranks[r]);
    write_leaf(f, "v", "[4,3]", ranks[r]);
    write_leaf(f, "c", "[3]", ranks[r]);
  }
  for (const step *s = p->step; s->id; s++)
    for (int r = 0; r < (strncmp(s->id, "all", 3) ? RANKS : 1); r++) write_step(f, s, ranks[r]);
  fprintf(f, "],'outputs':[");
  for (int r = 0; r < RANKS; r++)
    fprintf(f, "%s{'name':'y%s','ref':'%s%s'}", r ? "," : "", r ? "_rank1" : "",
            together ? ""
            : r      ? "r1_"
                     : "r0_",
            p->output);
  fprintf(f, "]}");
  fclose(f);
  for (char *c = text; *c; c++)
    if (*c == '\'') *c = '"';
  return text;
}

/* x and c are the same on both ranks. */
static void give_values(cap_graph *g, rule_tensor **value) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    cap_node *n = (cap_node *)(uintptr_t)&g->node[i];
    if (n->kind == CAP_OP) continue;
    const char *name = strchr(n->name, '.') + 1;
    value[i] = normal(strchr("xc", *name) ? (uint64_t)*name : i, RULE_F32, n->output[0].shape);
    n->value = value[i];
  }
}

static bool is_at(const lint_finding *f, const char *id) {
  for (size_t i = 0; i < f->n_nodes; i++) {
    const char *own = f->node[i].id;
    if (strncmp(id, "all", 3) != 0) own = strchr(own, '_') ? strchr(own, '_') + 1 : own;
    if (strcmp(own, id) != 0) return false;
  }
  return f->n_nodes > 0;
}

START_TEST(a_slip_is_found_where_it_was_made) {
  const program *p = &programs[_i];
  const lint_placement_options o = {
      .placements = "x = R\nw = S(1)\nv = S(0)\nc = R\noutput y = R\n", .file = "lines", .seed = 3};
  const rule_oracle oracle = val_oracle(engine);
  rule_tensor *value[MOST] = {NULL};
  lint_report *report = NULL;
  cap_graph *g = NULL;
  iso_error err = {0};
  char *text = text_of(p);
  ck_assert_msg(cap_parse((cap_text){text, strlen(text)}, "program", NULL, schemas, &g, &err) ==
                    ISO_OK,
                "%s: %s", p->what, err.msg);
  give_values(g, value);
  ck_assert_msg(lint_capture(g, &o, schemas, &oracle, &report, &err) == ISO_OK, "%s: %s", p->what,
                err.msg);
  const lint_finding *f = report->n_findings ? &report->finding[0] : NULL;
  ck_assert_msg(report->undecided == NULL, "%s: %s", p->what, report->undecided);
  if (getenv("SAY") && f) printf("%s: %s | %s | %s\n", p->what, f->node[0].id, f->text, f->mend);
  ck_assert_msg(report->n_findings == (p->wrong ? 1 : 0), "%s: %d findings: %s", p->what,
                (int)report->n_findings, f ? f->text : "");
  if (p->wrong) {
    ck_assert_msg(is_at(f, p->wrong), "%s: found at %s: %s", p->what, f->node[0].id, f->text);
    ck_assert_msg(strstr(f->text, p->say) || (f->mend && strstr(f->mend, p->say)), "%s: %s: %s",
                  p->what, f->text, f->mend ? f->mend : "");
  }
  lint_free(report);
  cap_free(g);
  for (size_t i = 0; i < MOST; i++) rule_tensor_unref(value[i]);
  free(text);
}
END_TEST

int main(void) {
  Suite *s = suite_create("small_programs");
  TCase *t = tcase_create("small_programs");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_slip_is_found_where_it_was_made, 0, PROGRAMS);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
