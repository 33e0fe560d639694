/* Private to replay.c and draw.c: runs of the ranks themselves, and the comparison with their
 * places. */
#ifndef CAPTURE_ROLES_REPLAY_INT_H
#define CAPTURE_ROLES_REPLAY_INT_H

#include "capture/roles/roles_int.h"

enum { ROLES_DRAWS = 2 };

/* A value for every leaf of the new graph, in float64, at its place in `out`: those of a captured
 * set, or drawn inside the domains. Owns: the caller unrefs. */
iso_code roles_captured(roles_work *x, size_t set, rule_tensor **out);
iso_code roles_drawn(roles_work *x, unsigned number, rule_tensor **out);
/* Rank `r`'s part of a tensor that is shared along `dim`. Owns: the caller unrefs. */
iso_code roles_cut(roles_work *x, const rule_tensor *whole, uint32_t dim, uint32_t r,
                   rule_tensor **out);

#endif
