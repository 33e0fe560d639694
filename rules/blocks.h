/* Private to rules/: memory of large tensors. A block that is let go is kept for the next tensor of its size, up to a fixed amount of all:
 * layers repeat their sizes, and pages from the kernel are cleared one by one, which takes longer than to fill them. */
#ifndef RULES_BLOCKS_H
#define RULES_BLOCKS_H

#include <stddef.h>

/* Bytes from which on it is worth while. */
enum { BLOCKS_FROM = 32 << 20 };
/* A block of `bytes`, with whatever stands in it; NULL: no memory. */
void *blocks_take(size_t bytes);
/* Let go what blocks_take gave for as many bytes. */
void blocks_give(void *data, size_t bytes);

#endif
