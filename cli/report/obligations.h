/* Whether z3 answers an obligation of each rule that an equality rests on: then it is certified. */
#ifndef CLI_REPORT_OBLIGATIONS_H
#define CLI_REPORT_OBLIGATIONS_H

#include "synth/synth.h"
#include "validate/validate.h"

typedef struct obligations {
  bool asked;
  size_t n_rules;
  uint32_t *n; /* by rule of the result: obligations that z3 answered; 0: none, or the rule is not
                  on the chain */
  char (*why)[200]; /* and why there is none; "" elsewhere */
} obligations;

/* Has z3 answer the obligations of each rule on the chain of an equivalence, and raises its
 * evidence to certified where it answers all. `required`: where it does not, the verdict is
 * undecided, with the reason. Owns: obligations_free, also after an error. */
ISO_MUST_USE iso_code obligations_ask(synth_result *r, rule_schemas *schemas, const val_options *o,
                                      bool required, obligations *out, iso_error *err);
void obligations_free(obligations *k);

#endif
