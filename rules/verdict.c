/* The one place where how a rule was shown becomes words. */
#include <stdio.h>

#include "rules/rules.h"

const rule_rest rule_rests[RULE_N_RESTS] = {
    {RULE_RESTS_IN_PARTS, "in parts"},
    {RULE_RESTS_ON_LITERALS | RULE_RESTS_ON_MASKS, "literals read"},
    {RULE_RESTS_ON_TIES, "ties open"},
    {RULE_RESTS_ON_ORDER, "unsorted in order"},
    {RULE_RESTS_ON_WHOLE, "integers that do not wrap"},
    {RULE_RESTS_ON_NUMBERS, "where all parts are numbers"}};

const char *rule_verdict_method(const rule_verdict *v, char text[RULE_METHOD_TEXT]) {
  static const char *const how[] = {[RULE_BY_NOTHING] = "",
                                    [RULE_BY_ELEMENT] = "generic element",
                                    [RULE_BY_CASES] = "cases, z3",
                                    [RULE_BY_TESTS] = "random tests"};
  if (v->method == RULE_BY_TESTS && v->within > 0) {
    snprintf(text, RULE_METHOD_TEXT, "%s within %g: a kernel computes in few bits", how[v->method],
             v->within);
    return text;
  }
  const bool named = v->n_relative == 1 && v->relative_to[0];
  size_t at = (size_t)snprintf(text, RULE_METHOD_TEXT, "%s", how[v->method]);
  for (size_t i = 0; i < RULE_N_RESTS; i++)
    if (v->rests_on & rule_rests[i].bits)
      at += (size_t)snprintf(text + at, RULE_METHOD_TEXT - at, ", %s", rule_rests[i].text);
  if (v->n_relative)
    snprintf(text + at, RULE_METHOD_TEXT - at, ", relative to %s",
             named ? v->relative_to : "kernels");
  return text;
}
