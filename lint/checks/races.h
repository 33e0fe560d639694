/* Shared by the files about buffers: the buffers that an event touches. */
#ifndef LINT_RACES_H
#define LINT_RACES_H

#include "lint/check.h"

/* A buffer, or a part of it, that an event reads or writes. */
typedef struct lint_touch {
  uint32_t buffer;
  int64_t at, end;
  bool writes;
} lint_touch;

enum { LINT_TOUCHES = 2 };

/* The touches of access `a` of `e`. Returns: how many, 0 to 2: in place, a buffer is read and
 * written. `rank` tells a broadcast's root from the others. */
size_t lint_touches(const lint_trace *t, const lint_proc *p, const lint_event *e,
                    const lint_access *a, lint_touch *out);

#endif
