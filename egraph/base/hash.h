/* The one place that includes xxHash. Cold tables are uthash's (table.h), hot ones open
 * addressing. */
#ifndef EGRAPH_BASE_HASH_H
#define EGRAPH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XXH3-64 of `n` bytes. Equal bytes and seed give equal hashes on every machine. */
uint64_t iso_hash(const void *p, size_t n, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
