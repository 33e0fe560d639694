/* The rules of a set that are proved in this run. */
#ifndef CLI_RULES_PROVED_H
#define CLI_RULES_PROVED_H

#include "cli/rules/check.h"

/* Proves each rule by `workers` processes, whatever evidence it claims. Owns: the caller frees
 * `*kept`, the rules that are proved with the evidence found here, and decrefs `*refused`, {name:
 * why} in the order of the set. */
ISO_MUST_USE iso_code rules_proved(const rule_set *set, size_t workers, double limit_s,
                                   const val_options *o, rule_set **kept, json_t **refused,
                                   iso_error *err);

#endif
