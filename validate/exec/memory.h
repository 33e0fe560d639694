/* Memory of libtorch's tensors on the CPU: large blocks are the program's own, which keeps them
 * from one call to the next. C++, private to the shim. */
#ifndef VALIDATE_MEMORY_H
#define VALIDATE_MEMORY_H

#include "validate/exec/shim.h"

namespace memory {

/* From here on blocks of RULE_MEMORY_FROM bytes and more come from `hooks`. Once in a process;
 * later calls change nothing. */
void keep_large(const shim_hooks &hooks);

} // namespace memory

#endif
