/* The result of a comparison, with the chain that explains it. */
#ifndef SYNTH_RESULT_RESULT_H
#define SYNTH_RESULT_RESULT_H

#include "synth/comparison.h"

/* ---- explain.c ---- */
/* The checked chain from `a` to `b`, added to the result's steps; `weakest` falls to the evidence
 * of its weakest rule. */
iso_code st_explain(state *s, eg_node a, eg_node b, rule_status *weakest, iso_error *err);

/* ---- rematch.c ---- */
/* Whether the application literally is its rule: sides, substitution, conditions, shapes. Returns:
 * in `why` (static) where it is not; in `need` the equalities that it relies on (Owns: free). */
iso_code st_rematch(state *s, const application *a, premise **need, size_t *n, const char **why,
                    iso_error *err);
/* Every class holds one value, one shape, one dtype: congruence merges included. Errors:
 * ISO_INTERNAL. */
iso_code st_check_classes(state *s, iso_error *err);
/* The assumptions that do not come with one merge: captured inputs, casts, kernels, ties, literals.
 */
iso_code st_assume_all(state *s, iso_error *err);

/* ---- result.c ---- */
iso_code st_publish(state *s, bool *const live[2], iso_error *err);

/* ---- proof_chain.c ---- */
/* How a rule was applied, found while the e-graph is as it was matched: before the merge. `as`: at
 * given sizes. */
iso_code st_note_instance(state *s, application *a, const rule *as, const eg_node *var,
                          iso_error *err);
/* Output i of the left graph equals aux[i], which is relation[i] (RULE_VAR i: node i of the right
 * graph). Into s->res->certificate. */
iso_code st_certify(state *s, const eg_node *aux, const rule_term *const *relation, iso_error *err);

/* ---- node_classes.c ---- */
/* Which nodes ended in one class, up to layout, and by which reason. Requires: the result lists the
 * unexplained nodes. */
iso_code st_publish_classes(state *s, iso_error *err);
/* The classes that rule `index` joined something in. Requires: st_publish_classes. */
iso_code st_rule_classes(state *s, size_t index, synth_rule_use *use, iso_error *err);

#endif
