/* --relations FILE: what a user says of how two captures belong together. A line each; "#" starts a
 * comment:
 *
 *     output LEFT = EXPR      the left output equals this, of right outputs, instead of the right
 * one of its name output LEFT = none      it is left out; output none = RIGHT leaves a right one
 * out input LEFT = EXPR       a left input is this of right inputs;  leaf LEFT = EXPR  the same for
 * parameters, buffers and constants leaf LEFT = none        it is related to nothing;  leaf LEFT !=
 * RIGHT  not made of this one input NAME range 0 63 exclude 0 2 distinct sorted mask left    what
 * the values of an input of either side may be
 *
 * EXPR is a name, t(x), transpose(x, 0, 1), permute(x, [1, 0]), reshape(x, [2, 3]), unsqueeze(x,
 * 0), squeeze(x, 0), slice(x, dim, from, to), cat([x, y], dim) and, for outputs, add(x, y) (partial
 * results of ranks). Names with other characters than letters, digits and "._/:$-" are in double
 * quotes. docs/relations.md is the manual. */
#ifndef CLI_CONFIG_RELATIONS_H
#define CLI_CONFIG_RELATIONS_H

#include "capture/capture.h"
#include "synth/synth.h"

typedef struct relations {
  synth_given *given; /* of leaves, for synth_options */
  size_t n_given, cap_given;
  const char **noted; /* outputs that are left out, in words */
  size_t n_noted, cap_noted;
  const char *
      *relation; /* by right result, as the graph has them now: what was given, NULL: nothing */
  iso_arena arena;
} relations;

/* Read the file and change both graphs' results as it says: they pair by name then, and what an
 * output is of several or in another layout stands behind the right graph as nodes of its own.
 * Owns: relations_free, also after an error. Errors: ISO_IO; ISO_FORMAT and ISO_USAGE with file and
 * line; ISO_NOMEM. */
ISO_MUST_USE iso_code relations_load(const char *path, cap_graph *left, cap_graph *right,
                                     relations *out, iso_error *err);
void relations_free(relations *r);

/* cap_agree with what the file says of inputs. */
ISO_MUST_USE iso_code relations_agree(const relations *r, cap_graph *left, cap_graph *right,
                                      uint64_t seed, cap_agreement *out, iso_error *err);

/* Private to relations*.c: whether a clause of a domain begins here; and the clauses up to the end
 * of the line, for an input. */
bool relations_domain_begins(const char *at);
ISO_MUST_USE iso_code relations_domain(const char **at, const char *where, cap_graph *g,
                                       uint32_t node, iso_error *err);

#endif
