/* Congruence closure, slow and obviously right: an oracle for the e-graph. Terms have the ids of
 * the e-nodes. */
#ifndef TESTS_SUPPORT_NAIVE_H
#define TESTS_SUPPORT_NAIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAIVE_MAX_TERMS = 256, NAIVE_MAX_ARITY = 4 };

typedef struct naive {
  size_t n;
  struct {
    uint32_t symbol, arity, child[NAIVE_MAX_ARITY];
  } term[NAIVE_MAX_TERMS];
  uint32_t block[NAIVE_MAX_TERMS]; /* equal terms have equal numbers: the least id among them */
} naive;

uint32_t naive_add(naive *s, uint32_t symbol, const uint32_t *child,
                   size_t n);                                 /* always a new term */
bool naive_congruent(const naive *s, uint32_t a, uint32_t b); /* same symbol, equal children */
void naive_merge(naive *s, uint32_t a, uint32_t b);           /* without closing */
void naive_close(naive *s);                                   /* until no congruence is missing */
size_t naive_count_blocks(const naive *s);
size_t naive_count_nodes(const naive *s); /* different ones up to congruence */
bool naive_is_parent(const naive *s, uint32_t term, uint32_t block);

#endif
