/* needs libtorch: checks many certificates against two captures in one process, for
 * tests/cli/certificates.py.
 *
 *     checker LEFT RIGHT [--trust-rules | --liar] < paths
 *
 * A line "outcome reason" for each, outcome as `isomer check` exits. --liar: a prover that proves
 * every rule, and a writer whose obligations z3 answers for every rule. */
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "validate/validate.h"

static iso_code believe(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out,
                        iso_error *err) {
  (void)ctx, (void)r, (void)example, (void)err;
  *out = (rule_verdict){.status = RULE_PROVED, .scope = RULE_ALL_SHAPES};
  return ISO_OK;
}

static iso_code answer(void *ctx, const rule *r, size_t *n, char *why, iso_error *err) {
  (void)ctx, (void)r, (void)why, (void)err;
  *n = 1;
  return ISO_OK;
}

int main(int argc, char **argv) {
  iso_error err = {0};
  rule_schemas *schemas = NULL;
  cap_graph *graph[2] = {NULL, NULL};
  val_engine *engine = NULL;
  const val_options val = val_options_default();
  const chk_options options = {.trust_rules = argc > 3 && strcmp(argv[3], "--trust-rules") == 0};
  const bool liar = argc > 3 && strcmp(argv[3], "--liar") == 0;
  char path[4096];
  iso_code c = argc < 3 ? iso_fail(&err, ISO_USAGE, "two captures are needed")
                        : rule_schemas_new(&schemas, &err);
  for (int i = 0; i < 2 && !c; i++) c = cap_load(argv[i + 1], schemas, &graph[i], &err);
  if (!c) c = val_new(&val, schemas, &engine, &err);
  while (!c && fgets(path, sizeof path, stdin)) {
    chk_report report;
    rule_oracle oracle = val_oracle(engine);
    if (liar) oracle.decide = believe, oracle.certify = answer;
    path[strcspn(path, "\n")] = 0;
    c = chk_check(path, graph[0], graph[1], schemas, &oracle, &options, &report, &err);
    if (!c) printf("%d %s\n", (int)report.outcome, report.reason);
    fflush(stdout);
    chk_report_free(&report);
  }
  if (c) fprintf(stderr, "%s\n", err.msg);
  val_free(engine);
  cap_free(graph[0]);
  cap_free(graph[1]);
  rule_schemas_free(schemas);
  return c ? 2 : 0;
}
