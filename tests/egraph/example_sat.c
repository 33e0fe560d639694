// Is (a * 2) / 2 = a? Rules for division and multiplication say so.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/egraph.h"

int main(void) {
  static const eg_rule rules[] = {
      {.name = "associate", .lhs = "(/ (* ?x ?y) ?z)", .rhs = "(* ?x (/ ?y ?z))"},
      {.name = "cancel", .lhs = "(/ 2 2)", .rhs = "1"},
      {.name = "unit", .lhs = "(* ?x 1)", .rhs = "?x"},
  };
  const char *term = "(/ (* a 2) 2)";
  eg_sat *s = NULL;
  eg_rules *r = NULL;
  eg_extract *best = NULL;
  eg_class c;
  char *text = NULL;
  iso_error err = {0};
  eg_run_report report;
  eg_run_options options = eg_run_options_default();
  options.node_limit = 1000;
  if (eg_sat_new(NULL, &s, &err)) goto done;
  if (eg_sat_add_term(s, term, strlen(term), &c, &err)) goto done;
  if (eg_rules_new(s, &r, &err)) goto done;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (eg_rules_add(r, &rules[i], &err)) goto done;
  if (eg_sat_run(s, r, &options, &report, &err)) goto done;
  if (eg_extract_new(s, NULL, &best, &err) || eg_extract_text(best, c, &text, &err)) goto done;
  printf("%s = %s, %s after %zu iterations\n", term, text, eg_stop_name(report.stop),
         report.iterations);
done:
  if (err.code) fprintf(stderr, "%s\n", err.msg);
  free(text);
  eg_extract_free(best);
  eg_rules_free(r);
  eg_sat_free(s);
  return err.code != 0;
}
