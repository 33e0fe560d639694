#include "cli/report/check_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/report/looked.h"

/* How many rules were shown in which way. */
typedef struct tally {
  size_t by_z3, evaluated, only_run;
} tally;

static bool only_run(const chk_shown *s) {
  return s->how != CHK_BY_TRUST && s->how != CHK_BY_Z3 && s->n_sizes == 0;
}

static tally count(const chk_report *r) {
  tally n = {0};
  for (size_t i = 0; i < r->n_rules && r->shown; i++) {
    n.by_z3 += r->shown[i].how == CHK_BY_Z3;
    n.evaluated += r->shown[i].n_sizes > 0;
    n.only_run += only_run(&r->shown[i]);
  }
  return n;
}

/* ---- text ---- */

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void rule_text(const chk_shown *s, uint64_t seed, FILE *f) {
  fprintf(f, "  %s: ", s->rule);
  if (s->how == CHK_BY_Z3)
    fprintf(f, "%zu obligation%s answered by z3%s", s->n_obligations, plural(s->n_obligations),
            s->at_steps ? ", at the sizes of its steps" : "");
  else if (s->how == CHK_BY_PROVER)
    fprintf(f, "run again by the prover, without obligation: %s", s->why);
  else if (s->how == CHK_BY_TESTS) fprintf(f, "tested again, seed %" PRIu64, seed);
  else fputs("trusted", f);
  if (s->defined_at_steps)
    fputs("; of the sizes of its steps, since at others one side alone may be no number", f);
  if (s->n_sizes) fprintf(f, "; evaluated at %zu size%s", s->n_sizes, plural(s->n_sizes));
  else if (s->how != CHK_BY_TRUST) fprintf(f, "; not evaluated: %s", s->not_evaluated);
  fprintf(f, "; step%s %s\n", strchr(s->steps, ',') ? "s" : "", s->steps);
}

const char *check_report_scope(const chk_report *r, iso_arena *a) {
  const char *text = "";
  for (size_t i = 0; i < r->n_symbols && text; i++) {
    const cap_symbol *s = &r->symbol[i];
    const char *range = looked_range(a, s->name, s->min, s->max);
    text = range ? iso_arena_printf(a, "%s%s%s", text, i ? ", " : "", range) : NULL;
  }
  return text;
}

void check_report_text(const chk_report *r, uint64_t seed, FILE *f) {
  const tally n = count(r);
  fprintf(f, "steps %zu, rules %zu, outputs %zu\n\n", r->n_steps, r->n_rules, r->n_outputs);
  for (size_t i = 0; i < r->n_relations; i++) fprintf(f, "%s\n", r->relation[i]);
  if (r->n_relations) fputc('\n', f);
  fprintf(f, "rules (%zu: z3 answered for %zu, evaluated independently %zu, only re-run %zu):\n",
          r->n_rules, n.by_z3, n.evaluated, n.only_run);
  for (size_t i = 0; i < r->n_rules; i++) rule_text(&r->shown[i], seed, f);
  fprintf(f, "\nassumes (%zu):\n", r->n_assumptions);
  for (size_t i = 0; i < r->n_assumptions; i++)
    fprintf(f, "  %s: %s\n", rule_assumption_name(r->assumption[i].kind), r->assumption[i].text);
  fputc('\n', f);
}

/* ---- JSON ---- */

static json_t *rule_json(const chk_shown *s) {
  static const char *const how[] = {[CHK_BY_TRUST] = "trusted",
                                    [CHK_BY_TESTS] = "tested",
                                    [CHK_BY_PROVER] = "prover",
                                    [CHK_BY_Z3] = "z3"};
  return json_pack("{ss ss sI sI sb sb ss ss ss}", "rule", s->rule, "by", how[s->how],
                   "obligations", (json_int_t)s->n_obligations, "evaluated_sizes",
                   (json_int_t)s->n_sizes, "only_re_run", only_run(s), "only_at_steps",
                   s->defined_at_steps, "no_obligation", s->why, "not_evaluated", s->not_evaluated,
                   "steps", s->steps);
}

/* Puts `item` behind `list`, and takes it. */
static bool add(json_t *list, json_t *item) { return json_array_append_new(list, item) == 0; }

char *check_report_json(const chk_report *r) {
  static const char *const outcome[] = {[CHK_HOLDS] = "holds",
                                        [CHK_REFUSED] = "refused",
                                        [CHK_MALFORMED] = "malformed",
                                        [CHK_UNPROVED] = "not proved again"};
  const bool holds = r->outcome == CHK_HOLDS;
  const tally n = count(r);
  iso_arena a;
  iso_arena_init(&a);
  const char *scope = r->symbol ? check_report_scope(r, &a) : NULL;
  json_t *rules = json_array(), *assumes = json_array(), *relations = json_array();
  bool fine = rules && assumes && relations;
  for (size_t i = 0; holds && i < r->n_relations; i++)
    fine = fine && add(relations, json_string(r->relation[i]));
  for (size_t i = 0; holds && i < r->n_rules; i++)
    fine = fine && add(rules, rule_json(&r->shown[i]));
  for (size_t i = 0; holds && i < r->n_assumptions; i++)
    fine = fine &&
           add(assumes, json_pack("{ss ss}", "kind", rule_assumption_name(r->assumption[i].kind),
                                  "text", r->assumption[i].text));
  json_t *doc =
      json_pack("{ss ss ss* ss* ss* sI sI s{sI sI sI sI} so* so* so*}", "format", "isomer-check",
                "outcome", outcome[r->outcome], "reason", holds ? NULL : r->reason, "evidence",
                holds ? rule_status_name(r->evidence) : NULL, "sizes", holds ? scope : NULL,
                "steps", (json_int_t)r->n_steps, "outputs", (json_int_t)r->n_outputs, "counts",
                "rules", (json_int_t)r->n_rules, "z3", (json_int_t)n.by_z3, "evaluated",
                (json_int_t)n.evaluated, "only_re_run", (json_int_t)n.only_run, "rules", rules,
                "assumptions", assumes, "relations", relations);
  char *text = fine && doc ? json_dumps(doc, JSON_INDENT(1)) : NULL;
  json_decref(doc);
  iso_arena_fini(&a);
  return text;
}
