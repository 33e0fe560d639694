/* A loop over many numbers in several threads. Each part writes places of its own, or adds
 * integers: the result depends neither on the number of threads nor on their order. */
#ifndef EGRAPH_BASE_PARALLEL_H
#define EGRAPH_BASE_PARALLEL_H

#include <stdint.h>

/* Call f(ctx, from, to) on parts of 0 .. n - 1 that make up the whole, `threads` of them at most,
 * one in the caller's thread; all have ended when it returns. `each`: elements that are read or
 * written for one of the n; where all are few, or threads are not to be had, the caller's thread
 * does everything. f must not fail, and must not write what another part reads. */
void iso_parallel(unsigned threads, int64_t n, int64_t each,
                  void (*f)(void *ctx, int64_t from, int64_t to), void *ctx);

/* Processors that this process may run on, at least 1. */
unsigned iso_processors(void);

#endif
