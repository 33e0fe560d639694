/* Placements in a capture of several ranks, checked without a reference.
 *
 * The ranks' program is read as the program that one rank alone would run: collectives are
 * identities, shards that leaves are declared to be are whole leaves, a literal that grows from
 * rank to rank covers all of them. That *whole* program gives each tensor a value, of which the
 * ranks hold
 *
 *   R            a replica on each rank
 *   S(dim)       a shard each: their concatenation along `dim` is the whole
 *   P(op)        a part each: their sum, largest or smallest is the whole; P(avg) their mean
 *   varying      neither, and why
 *
 * Values propose: the ranks and the whole program are run on the same leaves, drawn several times.
 * Then a rule, "the operator of the shards is the shard of the operator", decides; it is proved or
 * refuted by the same oracle as in a comparison. No operator is looked up for this.
 *
 * An output that is not placed as declared is a fault. Its location is the first tensor on the way
 * to it that has no placement. The fault is then mended in the values and the steps after it are
 * run again, so that its consequences are no findings. */
#ifndef LINT_PLACEMENT_PLACEMENT_H
#define LINT_PLACEMENT_PLACEMENT_H

#include "capture/capture.h"
#include "lint/lint.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lint_placement_options {
  const char *mesh;       /* "dp=2,tp=4", the last axis the fastest; NULL: the capture's */
  const char *placements; /* text of a placements file, see docs/placements.md; NULL: none */
  const char *file;       /* its name, for errors */
  uint64_t seed;
} lint_placement_options;

/* Owns: lint_free. Errors: ISO_USAGE where mesh or placements do not fit the capture; ISO_FORMAT
 * with file and line; ISO_NOMEM; ISO_DEVICE. */
ISO_MUST_USE iso_code lint_capture(const cap_graph *g, const lint_placement_options *o,
                                   rule_schemas *schemas, const rule_oracle *oracle,
                                   lint_report **out, iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
