/* The example at the top of rules/rules.h. */
#include <stdio.h>
#include <stdlib.h>

#include "rules/rules.h"

int main(void) {
  rule_set *set = NULL;
  iso_error err;
  if (rule_set_parse("(rule r (var x f _) (lhs (aten::relu x)) (rhs (aten::relu (aten::relu x))))",
                     SIZE_MAX, "example", &set, &err) == ISO_OK) {
    char *text = rule_print(rule_set_at(set, 0));
    puts(text);
    free(text);
  }
  rule_set_free(set);
  return set == NULL;
}
