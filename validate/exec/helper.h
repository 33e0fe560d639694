/* A process that runs operators which only Python can call. Private to validate/; see helper.c. */
#ifndef VALIDATE_HELPER_H
#define VALIDATE_HELPER_H

#include "rules/rules.h"

typedef struct helper helper;
/* Nothing is started yet. `command` is given to sh. Returns: NULL when there is no memory. */
helper *helper_new(const char *command);
void helper_free(helper *h); /* ends the process */
/* As val_call. Errors: ISO_UNSUPPORTED where the helper knows no such operator, or cannot be
 * started (again); ISO_TORCH where the operator fails, ends the process or takes too long: the next
 * call starts a new one. */
ISO_MUST_USE iso_code helper_call(helper *h, const rule_term *call, rule_tensor *const *bind,
                                  bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                                  iso_error *err);

#endif
