/* Workload files: rules, start terms and runs for eg_sat in one text, as s-expressions.
 *
 *     (workload (name NAME) (language TAG) (analysis none|const-fold|lambda)
 *       (rules (rule NAME LHS RHS [(when GUARD...)] [(if COND...)])
 *              (multi-rule NAME "LHS" "RHS")
 *              ...)
 *       (start (term T) (let $name T) (union T T) ...)
 *       (measure (run (scheduler simple|backoff) (iteration-limit K) (node-limit none|K)) ...)
 *       ...)
 *     (congruence-closure (case (random M SEED D) ...) (case (mirror M SEED) ...) ...)
 *
 * `;` starts a comment, "..." is one atom without escapes. Lists with other heads are left alone.
 * Guards, conditions and analyses get their meaning from the reader: they are handed over as
 * they stand. */
#ifndef EGRAPH_WORKLOAD_H
#define EGRAPH_WORKLOAD_H

#include "egraph/egraph.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A list or an atom; `text` is its text in the source, for a list with its parentheses, for a
 * quoted atom without its quotes. */
typedef struct eg_sexp {
  const char *text;
  size_t n;
  bool is_list, quoted;
  const struct eg_sexp *first, *next; /* of its children; the next one in its parent */
} eg_sexp;

typedef struct eg_workload_rule {
  const char *name;
  const char *lhs, *rhs; /* texts for eg_rule */
  bool multi;
  const eg_sexp *lhs_at, *rhs_at;
  const eg_sexp *when, *cond; /* the lists `(when ...)`, `(if ...)`; NULL if there is none */
} eg_workload_rule;

typedef struct eg_workload_run {
  bool backoff;
  size_t iteration_limit, node_limit; /* 0: none */
} eg_workload_run;

typedef struct eg_workload_case {
  bool mirror;
  uint64_t terms, seed, divisor; /* divisor 0 for a mirror; else at least 1 */
} eg_workload_case;

typedef struct eg_workload {
  bool closure; /* congruence closure: only the cases are there */
  const char *name, *language, *analysis;
  const eg_sexp *start; /* its items, one after another */
  const eg_workload_rule *rule;
  const eg_workload_run *run;
  const eg_workload_case *at;
  size_t n_rules, n_runs, n_cases;
  struct eg_workload_memory *mem;
} eg_workload;

/* Read a text of `n` bytes, which is copied. `file` goes in front of messages. Owns:
 * eg_workload_free. Errors: ISO_FORMAT with the line; ISO_NOMEM. */
ISO_MUST_USE iso_code eg_workload_parse(const char *text, size_t n, const char *file,
                                        eg_workload **out, iso_error *err);
void eg_workload_free(eg_workload *w);

/* Does the atom read so? */
bool eg_sexp_is(const eg_sexp *e, const char *text);

/* Add the start items to an empty e-graph and rebuild it. Returns: in `root`, unless NULL, the
 * class of each item, of a union its first term, in order; room for eg_workload_count_starts.
 * Errors: ISO_FORMAT and those of eg_sat. */
ISO_MUST_USE iso_code eg_workload_start(const eg_workload *w, eg_sat *s, eg_class *root,
                                        iso_error *err);
size_t eg_workload_count_starts(const eg_workload *w);
/* Congruence closure of a case: add all terms to the empty `s`, rebuild, then the unions in so many
 * batches with a rebuild after each. Returns: a checksum of which terms are equal, and the cost of
 * adding, merging and rebuilding, without that of drawing the terms. Errors: ISO_NOMEM,
 * ISO_LIMIT. */
typedef struct eg_closure_cost {
  double seconds, cpu_seconds; /* on the clock, and of the processor */
} eg_closure_cost;
ISO_MUST_USE iso_code eg_workload_close(const eg_workload_case *c, size_t batches, eg_sat *s,
                                        uint64_t *checksum, eg_closure_cost *cost, iso_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
