/* Programs of a few steps that ranks run together, as text and as a capture with values. */
#ifndef TESTS_LINT_PLACEMENT_SMALL_PROGRAMS_H
#define TESTS_LINT_PLACEMENT_SMALL_PROGRAMS_H

#include "capture/capture_int.h"
#include "lint/placement/placement.h"
#include "tests/validate/engine_test.h"

enum { MOST_NODES = 80, MOST_STEPS = 12, MOST_LEAVES = 8 };

/* What a step reads of a rank's own has R for the rank. @ and & are 0 and 2, or 2 and 4, by the
 * rank's place in its group of two; < and > the same by the place of the group; ~ is the group's
 * second rank, whose first one is <. */
typedef struct step {
  const char *id; /* "h": r0_h and r1_h; once for all where it begins with "all", for each group of
                     two where it begins with "two" */
  const char *call;
  const char *shape;
} step;

/* Who holds the same numbers: nobody, all, ranks at one place of their groups of two, each group.
 */
typedef enum held { OWN, SAME, BY_PLACE, BY_GROUP } held;

typedef struct leaf {
  const char *name;
  const char *shape;
  held held;
} leaf;

typedef struct program {
  const char *what;
  leaf leaf[MOST_LEAVES];
  step step[MOST_STEPS];
  const char *output; /* a step */
  const char *wrong,
      *say; /* the step at which the fault is, and what is said; NULL: there is none */
} program;

/* The arguments of steps: what they read is a rank's own where it begins with rR_. */
#define OF(op, a) "'op':'aten::" op "','args':[{'ref':'" a "'}]"
#define MM(a, b) "'op':'aten::mm','args':[{'ref':'" a "'},{'ref':'" b "'}]"
#define BOTH(op, a, b) "'op':'aten::" op "','args':[{'ref':'" a "'},{'ref':'" b "'}]"
#define COLUMNS(a, from, to) "'op':'aten::slice.Tensor','args':[{'ref':'" a "'},1," from "," to "]"
#define REDUCED(of, how) \
  "'op':'dist::all_reduce','args':[[{'ref':'r0_" of "'},{'ref':'r1_" of "'}],'" how "']"
#define GATHERED(a, b) "'op':'dist::all_gather','args':[[{'ref':'" a "'},{'ref':'" b "'}],1]"

static inline bool is_once(const char *id) { return strncmp(id, "all", 3) == 0; }
static inline bool is_twos(const char *id) { return strncmp(id, "two", 3) == 0; }

static inline void put_text(FILE *f, const char *text, uint32_t rank) {
  for (const char *p = text; *p; p++) {
    const char *token = strchr("R@&<>~", *p);
    const uint32_t value[] = {rank,         rank % 2 * 2,     rank % 2 * 2 + 2,
                              rank / 2 * 2, rank / 2 * 2 + 2, rank / 2 * 2 + 1};
    if (token) fprintf(f, "%u", value[token - "R@&<>~"]);
    else fputc(*p, f);
  }
}

/* A step's name on a rank. */
static inline void put_id(FILE *f, const char *id, uint32_t rank) {
  if (is_twos(id)) fprintf(f, "g%u_%s", rank / 2, id);
  else if (is_once(id)) fputs(id, f);
  else fprintf(f, "r%u_%s", rank, id);
}

static inline void put_step(FILE *f, const step *s, uint32_t rank) {
  fputs(",{'id':'", f);
  put_id(f, s->id, rank);
  fputs("',", f);
  put_text(f, s->call, rank);
  fprintf(f, ",'outputs':[{'shape':%s,'dtype':'float32'}]}", s->shape);
}

static inline char *text_of(const program *p, uint32_t n_ranks) {
  char *text = NULL;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  fprintf(f, "{'format':'isomer-capture','version':1,'nodes':[");
  for (uint32_t r = 0; r < n_ranks; r++)
    for (const leaf *l = p->leaf; l->name; l++)
      fprintf(f,
              "%s{'id':'r%u_%s','op':'parameter','name':'rank%u.%s','outputs':[{'shape':%s,"
              "'dtype':'float32'}]}",
              r || l > p->leaf ? "," : "", r, l->name, r, l->name, l->shape);
  for (const step *s = p->step; s->id; s++)
    for (uint32_t r = 0; r < (is_once(s->id) ? 1 : n_ranks); r += is_twos(s->id) ? 2 : 1)
      put_step(f, s, r);
  fprintf(f, "],'outputs':[");
  for (uint32_t r = 0; r < n_ranks; r++) {
    if (r) fprintf(f, ",{'name':'y_rank%u','ref':'", r);
    else fputs("{'name':'y','ref':'", f);
    put_id(f, p->output, r);
    fputs("'}", f);
  }
  fprintf(f, "]}");
  fclose(f);
  for (char *c = text; *c; c++)
    if (*c == '\'') *c = '"';
  return text;
}

static inline void give_values(const program *p, cap_graph *g, rule_tensor **value) {
  ck_assert_uint_lt(g->n_nodes, MOST_NODES);
  for (size_t i = 0; i < g->n_nodes; i++) {
    cap_node *n = (cap_node *)(uintptr_t)&g->node[i];
    if (n->kind == CAP_OP) continue;
    const leaf *l = p->leaf;
    while (strcmp(l->name, strchr(n->name, '.') + 1) != 0) l++;
    const uint64_t rank = (uint64_t)(n->id[1] - '0'), all = 1000 + 2 * (uint64_t)(l - p->leaf);
    const uint64_t seed[] = {i, all, all + rank % 2, all + rank / 2};
    n->value = value[i] = normal(seed[l->held], RULE_F32, n->output[0].shape);
  }
}

/* The capture of a program; its values are in `value`, to be released. */
static inline cap_graph *capture_of(const program *p, uint32_t n_ranks, rule_tensor **value) {
  cap_graph *g = NULL;
  iso_error err = {0};
  char *text = text_of(p, n_ranks);
  ck_assert_msg(cap_parse((cap_text){text, strlen(text)}, "program", NULL, schemas, &g, &err) ==
                    ISO_OK,
                "%s: %s", p->what, err.msg);
  give_values(p, g, value);
  free(text);
  return g;
}

static inline bool is_at(const lint_finding *f, const char *id) {
  for (size_t i = 0; i < f->n_nodes; i++) {
    const char *own = f->node[i].id;
    if (!is_once(id)) own = strchr(own, '_') ? strchr(own, '_') + 1 : own;
    if (strcmp(own, id) != 0) return false;
  }
  return f->n_nodes > 0;
}

/* What is found in a program must be its fault, and nothing else. `o` has placements and mesh. */
static inline void judge_program(const program *p, uint32_t n_ranks,
                                 const lint_placement_options *o) {
  const rule_oracle oracle = val_oracle(engine);
  rule_tensor *value[MOST_NODES] = {NULL};
  lint_report *report = NULL;
  iso_error err = {0};
  cap_graph *g = capture_of(p, n_ranks, value);
  ck_assert_msg(lint_capture(g, o, schemas, &oracle, &report, &err) == ISO_OK, "%s: %s", p->what,
                err.msg);
  const lint_finding *f = report->n_findings ? &report->finding[0] : NULL;
  if (getenv("SAY") && f) printf("%s: %s | %s | %s\n", p->what, f->node[0].id, f->text, f->mend);
  ck_assert_msg(f || report->undecided == NULL, "%s: %s", p->what, report->undecided);
  ck_assert_msg(report->n_findings == (p->wrong ? 1 : 0), "%s: %d findings: %s", p->what,
                (int)report->n_findings, f ? f->text : "");
  if (p->wrong) {
    ck_assert_msg(is_at(f, p->wrong), "%s: found at %s: %s", p->what, f->node[0].id, f->text);
    ck_assert_msg(strstr(f->text, p->say) || (f->mend && strstr(f->mend, p->say)), "%s: %s: %s",
                  p->what, f->text, f->mend ? f->mend : "");
  }
  lint_free(report);
  cap_free(g);
  for (size_t i = 0; i < MOST_NODES; i++) rule_tensor_unref(value[i]);
}

#endif
