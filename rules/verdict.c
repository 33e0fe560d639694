/* The one place where how a rule was shown becomes words. */
#include <stdio.h>

#include "rules/rules.h"

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
  snprintf(text, RULE_METHOD_TEXT, "%s%s%s%s%s%s%s%s%s", how[v->method],
           v->rests_on & RULE_RESTS_IN_PARTS ? ", in parts" : "",
           v->rests_on & (RULE_RESTS_ON_LITERALS | RULE_RESTS_ON_MASKS) ? ", literals read" : "",
           v->rests_on & RULE_RESTS_ON_TIES ? ", ties open" : "",
           v->rests_on & RULE_RESTS_ON_ORDER ? ", unsorted in order" : "",
           v->rests_on & RULE_RESTS_ON_WHOLE ? ", integers that do not wrap" : "",
           v->rests_on & RULE_RESTS_ON_NUMBERS ? ", where all parts are numbers" : "",
           v->n_relative ? ", relative to " : "",
           named           ? v->relative_to
           : v->n_relative ? "kernels"
                           : "");
  return text;
}
