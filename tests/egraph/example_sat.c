/* The tutorial of egg: rules of arithmetic simplify a term, and the engine says how it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/egraph.h"

int main(void) {
  static const eg_rule rules[] = {
      {.name = "commute-add", .lhs = "(+ ?x ?y)", .rhs = "(+ ?y ?x)"},
      {.name = "commute-mul", .lhs = "(* ?x ?y)", .rhs = "(* ?y ?x)"},
      {.name = "add-0", .lhs = "(+ ?x 0)", .rhs = "?x"},
      {.name = "mul-1", .lhs = "(* ?x 1)", .rhs = "?x"},
  };
  const char *term = "(+ 0 (* 1 foo))";
  const eg_run_options options = eg_run_options_default(); // iterations, e-nodes, memory
  eg_run_report report;
  eg_sat *s = NULL;
  eg_rules *r = NULL;
  eg_extract *best = NULL;
  eg_class root;
  char *text = NULL;
  iso_error err = {0};
  iso_code c = eg_sat_new(NULL, &s, &err);
  if (!c) c = eg_sat_add_term(s, term, strlen(term), &root, &err);
  if (!c) c = eg_rules_new(s, &r, &err);
  for (size_t i = 0; !c && i < sizeof rules / sizeof *rules; i++)
    c = eg_rules_add(r, &rules[i], &err);
  if (!c) c = eg_sat_run(s, r, &options, &report, &err);
  if (!c) c = eg_extract_new(s, NULL, &best, &err);
  if (!c) c = eg_extract_text(best, root, &text, &err);
  if (!c)
    printf("%s simplifies to %s, of cost %g: %s\n", term, text, eg_extract_cost(best, root),
           eg_stop_name(report.stop));
  else fprintf(stderr, "%s\n", err.msg);
  free(text);
  eg_extract_free(best);
  eg_rules_free(r);
  eg_sat_free(s);
  return c != 0;
}
