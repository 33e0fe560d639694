/* Calls that follow one another, as one graph: a prompt, then a token with the cache.
 *
 * An input of a later call that has the name of an output of an earlier one is that output, of the
 * last call before it that has one: the two are state, and no longer inputs and outputs. Leaves of
 * one name and value are one leaf. What else is there twice keeps its name in the first call, and
 * is "then.NAME" in the second, "then2.NAME" in the third.
 *
 * Where the other side does in one call what this one does in several, an input of one name in both
 * is one: each call reads its part, one behind the other along the dimension whose sizes add up, or
 * each the beginning (a mask that grows), or all of it. Outputs of one name are joined in the same
 * way; where the last one alone has the other side's shape it is the output, and earlier ones are
 * left out. State behind the last call that the other side does not give is left out as well. What
 * is left out and what is joined is listed (cap_what_is_left_out). */
#ifndef CAPTURE_CALLS_CALLS_H
#define CAPTURE_CALLS_CALLS_H

#include "capture/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CALLS_MOST = 16 };

typedef struct calls_side {
  const char *first;            /* capture */
  const char *then[CALLS_MOST]; /* captures of the calls behind it, in their order */
  size_t n;                     /* of these */
} calls_side;

/* One more call of each side; "-": that side has none. Returns: false where there are too many. */
bool calls_add(calls_side side[2], const char *left, const char *right);

/* Sizes of a side's symbols: of a side of several calls those that its graph has. */
typedef struct calls_sizes {
  const cap_size *size;
  size_t n;
} calls_sizes;

/* Loads both sides as cap_load_with does. `at`: other sizes than those captured, of both sides;
 * NULL: none. Symbols of several calls become those of one graph, where what they hand on and read
 * in parts says how; else all sizes are those captured. Errors: those of cap_load_with; ISO_USAGE
 * where calls do not follow one another. */
ISO_MUST_USE iso_code calls_load(const calls_side side[2], const cap_options *o,
                                 const calls_sizes at[2], rule_schemas *schemas, cap_graph *out[2],
                                 iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
