/* What the generalisation of a rule asks of arguments and terms. */
#ifndef VALIDATE_PROVE_GENERALISE_H
#define VALIDATE_PROVE_GENERALISE_H

#include "rules/rules.h"

/* Integers of this argument are sizes, lengths and counts, not places. */
bool sc_counts(const rule_arg *arg);
bool sc_takes_floats(const rule_arg *arg);
/* What integers must be below to stay what they are in the narrowest type that a call of the term
 * casts to; 0: it casts to none in fewer than 64 bits. */
int64_t sc_narrow_limit(const rule_term *t);

#endif
