/* The one place where kinds of assumptions have names. */
#include "rules/assumption.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *name;
  bool weakens;
  const char *meaning;
} of[RULE_ASSUMPTIONS] = {
    [RULE_ASSUMES_LEAF] = {"leaf", false, "a parameter or buffer is one of the other side"},
    [RULE_ASSUMES_INPUT] = {"input", true, "an input keeps, or shares, what was captured of it"},
    [RULE_ASSUMES_VALUE] = {"value", false, "two constants are one by their captured values"},
    [RULE_ASSUMES_RANGE] = {"range", true, "an input lies within what was said that it may be"},
    [RULE_ASSUMES_GUARD] = {"guard", true, "a number that a program read out of a tensor stays it"},
    [RULE_ASSUMES_ROUNDING] = {"rounding", true, "two constants are one but for rounding"},
    [RULE_ASSUMES_LITERAL] = {"literal", true, "a float literal is the number it stands for"},
    [RULE_ASSUMES_SHAPE] = {"shape", true, "sizes and branches are the captured ones"},
    [RULE_ASSUMES_DTYPE] = {"dtype", true, "roundings of floating dtypes are left out"},
    [RULE_ASSUMES_DEFINITION] = {"definition", true, "a kernel, or an output, is as it is said"},
    [RULE_ASSUMES_TIES] = {"ties", true, "an order among equal elements is left open"},
    [RULE_ASSUMES_ORDER] = {"order", true,
                            "the order of a sum, or of unsorted results, is left open"},
    [RULE_ASSUMES_RULES] = {"rules", true, "rules hold as the certificate says"},
};

const char *rule_assumption_name(rule_assumption kind) { return of[kind].name; }

const char *rule_assumption_meaning(rule_assumption kind) { return of[kind].meaning; }

bool rule_assumption_weakens(rule_assumption kind) { return of[kind].weakens; }

bool rule_assumption_parse(const char *name, rule_assumption *out) {
  for (int i = 0; i < RULE_ASSUMPTIONS; i++)
    if (strcmp(of[i].name, name) == 0) return *out = (rule_assumption)i, true;
  return false;
}

bool rule_relative_of(iso_arena *arena, const char *op, rule_relative *out) {
  static const char taken[] = ".isomer";
  const size_t n = strlen(op), k = sizeof taken - 1;
  const bool with = n > k && strcmp(op + n - k, taken) == 0;
  *out = (rule_relative){RULE_ASSUMES_DEFINITION,
                         with ? iso_arena_printf(arena, "%.*s", (int)(n - k), op) : op};
  return out->what != NULL;
}

const char *rule_relative_print(iso_arena *arena, rule_relative r) {
  return iso_arena_printf(arena, "%s means what its reference kernel computes", r.what);
}
