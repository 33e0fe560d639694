/* Whether two captures are one graph. */
#ifndef CLI_REPORT_SAME_GRAPH_H
#define CLI_REPORT_SAME_GRAPH_H

#include "capture/capture.h"

/* Where the outputs, in order, are the same operators of the same arguments, down to leaves of the
 * same kinds, shapes and dtypes. A comparison of two such captures speaks of their leaves alone: a
 * setting that was meant to make a difference (which attention, which kernel) made none. Sets
 * *out. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code same_graph(const cap_graph *left, const cap_graph *right, bool *out,
                                 iso_error *err);

#endif
