/* Questions of the generalisation about arguments and terms. */
#ifndef VALIDATE_PROVE_GENERALISE_H
#define VALIDATE_PROVE_GENERALISE_H

#include "rules/rules.h"

/* Whether integers of this argument are sizes, lengths or counts, and not places. */
bool sc_counts(const rule_arg *arg);
bool sc_takes_floats(const rule_arg *arg);
/* The bound below which integers are unchanged by the narrowest cast in the term; 0: it has no cast
 * to fewer than 64 bits. */
int64_t sc_narrow_limit(const rule_term *t);

#endif
