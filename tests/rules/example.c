/* The example at the top of rules/rules.h. */
#include <stdio.h>
#include <stdlib.h>

#include "rules/rules.h"

int main(void) {
  const char *text = "(rule r (var x f _) (lhs (aten::relu x))"
                     " (rhs (aten::relu (aten::relu x))))";
  rule_set *set = NULL;
  iso_error err;
  if (rule_set_parse(text, SIZE_MAX, "example", &set, &err) == ISO_OK) {
    char *printed = rule_print(rule_set_at(set, 0));
    puts(printed);
    free(printed);
  }
  rule_set_free(set);
  return set == NULL;
}
