/* Assumptions of an equality beside its rules, by kind. The table in assumption.c is the one place
 * where kinds have names and meanings: everywhere else they are values of this type, and the
 * subject of a kind is a field beside it. */
#ifndef RULES_ASSUMPTION_H
#define RULES_ASSUMPTION_H

#include <stdbool.h>

#include "egraph/base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rule_assumption {
  RULE_ASSUMES_LEAF,
  RULE_ASSUMES_INPUT,
  RULE_ASSUMES_VALUE,
  RULE_ASSUMES_RANGE,
  RULE_ASSUMES_GUARD,
  RULE_ASSUMES_ROUNDING,
  RULE_ASSUMES_LITERAL,
  RULE_ASSUMES_SHAPE,
  RULE_ASSUMES_DTYPE,
  RULE_ASSUMES_DEFINITION,
  RULE_ASSUMES_TIES,
  RULE_ASSUMES_ORDER,
  RULE_ASSUMES_RULES,
  RULE_ASSUMPTIONS /* how many there are */
} rule_assumption;

/* The kind's name, one word. Static. */
const char *rule_assumption_name(rule_assumption kind);
/* The assumption in a line. Static. */
const char *rule_assumption_meaning(rule_assumption kind);
/* Whether the assumption restricts the claim to less than the captured functions: to fewer inputs,
 * sizes or orders, to results up to their last digits, or to a kernel by its definition.
 * Assumptions that do not weaken it say which tensors of the two sides are one. */
bool rule_assumption_weakens(rule_assumption kind);
/* The kind of that name. Returns: false where there is none. */
bool rule_assumption_parse(const char *name, rule_assumption *out);

/* A kernel that an equality, or a rule, is relative to: that of an operator outside PyTorch, whose
 * meaning is taken to be that of its reference kernel or its definition. */
typedef struct rule_relative {
  rule_assumption kind; /* RULE_ASSUMES_DEFINITION */
  const char *what;     /* the operator, as captures name it; NULL: nothing */
} rule_relative;

/* The kernel that a call of `op` rests on. An overload that takes captured attributes is not part
 * of the name, which is from `arena`. Returns: false where there is no memory. */
bool rule_relative_of(iso_arena *arena, const char *op, rule_relative *out);
/* The assumption in words, from `arena`. Returns: NULL where there is no memory. */
const char *rule_relative_print(iso_arena *arena, rule_relative r);

#ifdef __cplusplus
}
#endif
#endif
