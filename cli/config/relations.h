/* --relations FILE: a user's statements about how two captures belong together. A line each; "#"
 * starts a comment:
 *
 *     output LEFT = EXPR       the left output equals this of right outputs; several lines: each
 *     output LEFT = none       it is left out; output none = RIGHT leaves a right one out
 *     input LEFT = EXPR        a left input is this of right inputs; several lines: all of them
 *     leaf LEFT = EXPR         the same for parameters, buffers and constants
 *     leaf LEFT = none         it is related to nothing
 *     leaf LEFT = ARITHMETIC   it was computed from right leaves when the model was loaded
 *     leaf ARITHMETIC = RIGHT  a right leaf was computed so from left ones
 *     leaf LEFT != RIGHT       it is not made of this one
 *     right EXPR = EXPR        two expressions of right leaves are equal
 *     input NAME range 0 63 exclude 0 2 distinct sorted mask left
 *                              what the values of an input of either side may be
 *
 * EXPR is a name, t(x), transpose(x, 0, 1), permute(x, [1, 0]), reshape(x, [2, 3]), unsqueeze(x,
 * 0), squeeze(x, 0), slice(x, dim, from, to), cat([x, y], dim) and, for outputs, sum([x, y]) or
 * add(x, y) (partial results of ranks). ARITHMETIC has mul(x, y), add, sub, div, matmul, neg(x),
 * exp, sqrt, rsqrt, reciprocal, numbers, and node(ID): what an operator computes of leaves. Names
 * with other characters than letters, digits and
 * "._/:$-" are in double quotes. docs/relations.md is the manual.
 *
 * Three steps: the file is read (relations_load), relations that it leaves open may be inferred and
 * read as further lines (relations_add), and in the end the graphs' results are changed
 * (relations_apply). */
#ifndef CLI_CONFIG_RELATIONS_H
#define CLI_CONFIG_RELATIONS_H

#include "capture/capture.h"
#include "rules/replicas.h"
#include "synth/synth.h"

/* output LEFT = EXPR */
typedef struct relations_line {
  uint32_t left;         /* result of the left graph as it was loaded */
  const rule_term *term; /* RULE_VAR i: result i of the right graph as it was loaded; NULL: its
                            shapes do not fit, and no error was asked for */
  cap_output what;
  const char *text, *where;
  bool inferred;
} relations_line;

/* The first line that speaks of a result; NULL: none. */
typedef struct relations_spoken {
  const char *where;
  bool left_out, inferred; /* inferred: left out by a line that no user wrote */
} relations_spoken;

typedef struct relations {
  synth_given *given; /* of leaves, for synth_options */
  size_t n_given, cap_given;
  relations_line *output;
  size_t n_outputs, cap_outputs;
  cap_typed_call *call; /* of lines about outputs, and of folds */
  size_t n_calls, cap_calls;
  relations_spoken *left, *right; /* by result as loaded */
  const cap_result *result[2];    /* the results as loaded */
  size_t n_results[2];
  rule_replicas replicas[2]; /* of these */
  const char **noted;        /* outputs that are left out, in words */
  size_t n_noted, cap_noted;
  unsigned opposed; /* for cap_agree: no line says it */
  bool refines; /* a line that no user wrote may leave out a right result: the left's are asked for
                 */
  const char **relation; /* by right result, once applied: the given relation, NULL: none */
  iso_arena arena;
} relations;

/* Read the file (NULL: none). The graphs stay as they are, but for the domains of inputs. With
 * `misfits` a line about outputs whose shapes do not fit the captures is no error. Owns:
 * relations_free, also after an error. Errors: ISO_IO; ISO_FORMAT and ISO_USAGE with file and line;
 * ISO_NOMEM. */
ISO_MUST_USE iso_code relations_load(const char *path, bool misfits, cap_graph *left,
                                     cap_graph *right, relations *out, iso_error *err);
/* A line that no user wrote, about outputs: "output LEFT = EXPR". */
ISO_MUST_USE iso_code relations_add(relations *r, const char *line, cap_graph *left,
                                    cap_graph *right, iso_error *err);
/* Memory of the model that the right's step alone writes, as a running mean. A plan has states of
 * its own, but such a buffer is the model's (docs/training.md), and no refinement leaves it out. */
bool relations_is_model_memory(const char *output);
/* Whether lines that no user wrote keep to names: an output that has a namesake, or ranks' parts of
 * its name, is made of nothing else, nobody else of these, and each is used once. What they leave
 * out has no namesake, is no memory of the model, and lines speak of all outputs of the left.
 * Errors: ISO_FORMAT. */
ISO_MUST_USE iso_code relations_check_names(const relations *r, iso_error *err);
/* Changes both graphs' results as the lines say, so that they pair by name. An output that is made
 * of several results, or of one in another layout, is computed by nodes that are appended to the
 * right graph. */
ISO_MUST_USE iso_code relations_apply(relations *r, cap_graph *left, cap_graph *right,
                                      iso_error *err);
/* Adds a line about a part that is left out; `text` lives as long as `o`. Returns: false without
 * memory. */
bool relations_note(relations *o, const char *text);
void relations_free(relations *r);

/* ---- relations_fold.c: parameters that were computed when a model was loaded ----
 * Lines about leaves that have arithmetic are taken before all others: each changes the graph that
 * has the parameter, so that it computes it from copies of the other's leaves (cap_fold_leaf). */

/* Whether a line of the file is one. */
bool relations_is_fold(const char *line);
typedef struct relations_folded { /* the assumptions that the lines taken so far make */
  cap_note *note;
  size_t n, cap;
  iso_arena arena;
} relations_folded;
/* Take one line. It is held against the captured values: elements must agree up to the rounding of
 * the parameter's dtype. With `inferred` no user wrote it: then a parameter must have many
 * different numbers. Errors: ISO_FORMAT and ISO_USAGE, the message beginning with `where`. */
ISO_MUST_USE iso_code relations_fold(const char *line, const char *where, bool inferred,
                                     cap_graph *graph[2], const rule_oracle *oracle,
                                     relations_folded *out, iso_error *err);
/* All such lines of the file (NULL: none). */
ISO_MUST_USE iso_code relations_fold_file(const char *path, cap_graph *graph[2],
                                          const rule_oracle *oracle, relations_folded *out,
                                          iso_error *err);
/* They are notes of the agreement, too. */
ISO_MUST_USE iso_code relations_note_folds(const relations_folded *f, cap_agreement *a,
                                           iso_error *err);
void relations_folded_free(relations_folded *f);

/* A term over a graph, and the values of the nodes that it is computed from (relations_values). */
typedef struct relations_held {
  const cap_graph *g;
  const rule_term *term;
  rule_tensor *const *value;
  const rule_oracle *oracle;
} relations_held;
/* Whether a stored tensor may be the result of the term, whose value is `v`, computed in the
 * tensor's dtype: each element may be off by as much as the roundings that led to it, and all of
 * them together not as if a number or an operand of the term were another. Returns: in `off` the
 * distance, relative to the largest element. */
ISO_MUST_USE iso_code relations_rounded(const relations_held *h, const rule_tensor *stored,
                                        const rule_tensor *v, bool *fine, double *off,
                                        iso_error *err);
/* Values that a graph computes of leaves other than inputs, in float64, by node: NULL where it
 * depends on inputs, or has several outputs. `only` (or NULL: all) flags the nodes that are asked
 * for. Owns: the caller unrefs and frees. */
ISO_MUST_USE iso_code relations_values(const cap_graph *g, const bool *only,
                                       const rule_oracle *oracle, rule_tensor ***out,
                                       iso_error *err);

/* cap_agree, with the file's lines about inputs. */
ISO_MUST_USE iso_code relations_agree(const relations *r, cap_graph *left, cap_graph *right,
                                      uint64_t seed, cap_agreement *out, iso_error *err);

/* Which left results no line speaks of, and pairing as always would not do for: their number is not
 * the right's, or shapes differ. In `all`: any of which no line speaks. Returns: whether there are
 * some; in `open`, by left result. */
bool relations_open(const relations *r, const cap_graph *left, const cap_graph *right, bool all,
                    bool *open);
/* Whether as many results are left on both sides as no line speaks of. */
bool relations_fit(const relations *r);
/* Leaves out a left result of which nothing is known, with the right result that it would pair
 * with. Returns: false without memory. */
bool relations_leave_out(relations *r, size_t left);
/* Leaves out a right result of which no line speaks. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code relations_leave_out_right(relations *r, size_t right, iso_error *err);
/* A term over right results (`name`: of each) in the syntax above. Owns: the arena. Returns: NULL
 * when there is no memory, or the term has other operators. */
const char *relations_print(iso_arena *a, const rule_term *t, const char *const *name);
/* Whether a term adds no right result to itself: then it puts an output together from parts. */
bool relations_clean(const rule_term *t);
/* `s` as a relations file has it: in quotes where it needs them. */
const char *relations_name(iso_arena *a, const char *s);

/* Private to relations*.c: whether a clause of a domain begins here; and the clauses up to the end
 * of the line, for an input. */
bool relations_domain_begins(const char *at);
ISO_MUST_USE iso_code relations_domain(const char **at, const char *where, cap_graph *g,
                                       uint32_t node, iso_error *err);

#endif
