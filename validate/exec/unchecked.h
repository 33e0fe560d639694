/* Private to validate/: operators that libtorch runs without asking whether their operands fit. */
#ifndef VALIDATE_EXEC_UNCHECKED_H
#define VALIDATE_EXEC_UNCHECKED_H

#include "rules/rules.h"

/* Whether the call would read or write beside its operands: gradients' kernels trust the arguments
 * that autograd passes. Returns: in words the operand that does not fit, NULL where all do. */
const char *val_unfit(const rule_term *call, rule_tensor *const *bind);

#endif
