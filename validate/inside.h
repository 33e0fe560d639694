/* Private to validate/: integers that a rule reads between two bounds alone. */
#ifndef VALIDATE_INSIDE_H
#define VALIDATE_INSIDE_H

#include "rules/rules.h"

/* The rule with clamp(i, LOW, HIGH) as an integer variable of that range, for each i that occurs so
 * and in no other way: it holds exactly if `r` does, since clamp takes all of these values and no
 * others. Its variables are numbered as those of `r`. Returns: false where there is none, or no
 * memory. */
bool val_inside(iso_arena *a, const rule *r, rule *out);
/* Puts the clamps back into a rule that val_inside made and that was generalised since. Returns:
 * false where there is no memory. */
bool val_outside(iso_arena *a, rule_schemas *s, rule *r);

#endif
