/* uthash as this program uses it: with iso_hash, and without its exit where memory runs out. There
 * an element is not added, and its `hh.tbl` is NULL. For tables that are not hot. */
#ifndef EGRAPH_BASE_TABLE_H
#define EGRAPH_BASE_TABLE_H

#include "egraph/base/hash.h"

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, n, out) ((out) = (unsigned)iso_hash((key), (n), 0))
#include <uthash.h>

#endif
