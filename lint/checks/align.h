/* Alignment of two sequences, each of which may lack elements of the other. */
#ifndef LINT_ALIGN_H
#define LINT_ALIGN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether element i of the left may be paired with element k of the right. */
typedef bool lint_fits(const void *with, size_t i, size_t k);

typedef enum lint_side { LINT_BOTH, LINT_LEFT_ONLY, LINT_RIGHT_ONLY } lint_side;

/* The next step at (i, k): the choice after which most of the following elements fit, within a
 * window. Two elements that fit are paired. Two that do not are paired where a missing element on
 * neither side explains it. `left` and `right` are the lengths. Cost: O(window) where they do not
 * fit, else O(1). */
lint_side lint_align(lint_fits *fits, const void *with, size_t i, size_t left, size_t k,
                     size_t right);

#endif
