/* E-graphs: terms up to equality, with congruence. First `eg_graph`, which remembers every e-node
 * and reason; then `eg_sat`, compact and fast, for equality saturation; its own page is below,
 * under "equality saturation".
 *
 * Ideas and terms
 *   symbol       an interned operator name; a literal is a symbol without children. The library
 *                attaches no meaning.
 *   e-node       a symbol applied to e-classes. `eg_node` names one as it was added, and never
 *                changes.
 *   e-class      a set of e-nodes that are equal. `eg_class` ids go stale when classes merge:
 *                compare after `eg_find`.
 *   merge        states that two classes are equal, with a reason (`eg_why`); congruence is
 *                restored by `eg_rebuild` (deferred: Willsey et al., egg, POPL 2021, section 3).
 *   analysis     data per class, with a join, given by callbacks.
 *   explanation  why two e-nodes are equal: a chain of steps, each a reason given to a merge or a
 *                congruence (Nieuwenhuis and Oliveras, Proof-producing congruence closure, RTA
 *                2005). `eg_proof_check` replays one and shares no code with the engine.
 *
 * Ids are dense: e-node i is the i-th that was added, and class i is the class that was made for
 * e-node i. So an original child, a class id, also names the e-node that was meant; a canonical
 * class contains the e-node of its id. Of two classes that merge, the one with more parents stays,
 * the one with the smaller id where they have as many. Same calls, same results, down to ids and
 * the order of steps.
 *
 * No global state: several graphs may live in several threads, but one graph serves one thread at a
 * time: the getters shorten paths and sort lists. Ids given to a function must come from the same
 * graph. Nothing here knows of tensors.
 *
 * Example (tests/egraph/example.c):
 *
 *   // Three and five applications of f to x give x back. Is f(x) = x, and why?
 *   #include <stdio.h>
 *   #include <stdlib.h>
 *
 *   #include "egraph/egraph.h"
 *
 *   int main(void) {
 *     eg_graph *g = NULL;
 *     eg_symbol x, f;
 *     eg_node n[6]; // n[k] is f applied k times to x
 *     eg_step *step = NULL;
 *     size_t n_steps = 0;
 *     bool ok = false;
 *     iso_error err = {0};
 *     if (eg_new(NULL, &g, &err)) goto done;
 *     if (eg_intern(g, "x", 1, &x, &err) || eg_intern(g, "f", 1, &f, &err)) goto done;
 *     if (eg_add(g, x, NULL, 0, &n[0], &err)) goto done;
 *     for (int k = 1; k < 6; k++) {
 *       eg_class child = eg_class_of(g, n[k - 1]);
 *       if (eg_add(g, f, &child, 1, &n[k], &err)) goto done;
 *     }
 *     // Reasons are the caller's numbers: here kind 1, and which of the two equations.
 *     if (eg_merge(g, n[3], n[0], (eg_why){1, 3}, &err)) goto done;
 *     if (eg_merge(g, n[5], n[0], (eg_why){1, 5}, &err)) goto done;
 *     if (eg_rebuild(g, &err)) goto done; // congruence finds the rest
 *
 *     printf("f(x) = x: %s\n", eg_equal(g, n[1], n[0]) ? "yes" : "no");
 *     if (eg_explain(g, n[1], n[0], &step, &n_steps, &err)) goto done;
 *     for (size_t i = 0; i < n_steps; i++)
 *       printf("f^%u(x) = f^%u(x) by %s\n", step[i].from.i, step[i].to.i,
 *              step[i].why.kind == EG_WHY_CONGRUENCE ? "congruence" : "an equation");
 *     if (eg_proof_check(g, step, n_steps, n[1], n[0], NULL, NULL, &ok, NULL, &err)) goto done;
 *     printf("the proof %s\n", ok ? "holds" : "does not hold");
 *   done:
 *     if (err.code) fprintf(stderr, "%s\n", err.msg);
 *     free(step);
 *     eg_free(g);
 *     return ok ? 0 : 1;
 *   }
 */
#ifndef EGRAPH_EGRAPH_H
#define EGRAPH_EGRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "egraph/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct eg_graph eg_graph;
typedef struct eg_class {
  uint32_t i;
} eg_class;
typedef struct eg_node {
  uint32_t i;
} eg_node;
typedef struct eg_symbol {
  uint32_t i;
} eg_symbol;
#define EG_NONE UINT32_MAX

/* A reason for a merge. `kind` is the caller's, any value but EG_WHY_CONGRUENCE; `data` is the
 * caller's index. */
typedef struct eg_why {
  uint32_t kind;
  uint32_t data;
} eg_why;
enum { EG_WHY_CONGRUENCE = 0, EG_WHY_GIVEN = UINT32_MAX };

/* Data per class. All may be NULL. Data is an opaque pointer, NULL for none. `make` and `join` only
 * read the graph: they may not add, merge or rebuild. They have no way to fail: keep an error in
 * `ctx` and return NULL or `into`. */
typedef struct eg_analysis {
  void *ctx;
  /* The data of a class that was just made for `node`. At rebuild also for a `node` whose child was
   * merged or has new data: the result is then joined into the data of node's class. */
  void *(*make)(void *ctx, eg_graph *g, eg_node node);
  /* `from` merges into `into`: return the data of the union; takes over both. Sets *changed where
   * the result differs from `into`, so that parents are looked at again. Called where both are
   * there; data joined with none stays as it is. NULL: `into` stays, `from` is freed. The join must
   * not go up for ever, or a rebuild does not end. */
  void *(*join)(void *ctx, eg_graph *g, eg_class cls, void *into, void *from, bool *changed);
  /* Called at rebuild, congruence restored, for a class whose data changed or was made (repair):
   * may add, merge and set data, but not rebuild. An error ends the rebuild, and the class is still
   * due at the next. */
  iso_code (*repair)(void *ctx, eg_graph *g, eg_class cls, void *data, iso_error *err);
  void (*free)(void *ctx, void *data);
} eg_analysis;

/* Owns: the caller frees. `analysis` may be NULL and is copied. */
ISO_MUST_USE iso_code eg_new(const eg_analysis *analysis, eg_graph **out, iso_error *err);
void eg_free(eg_graph *g);

/* Intern a name of `n` bytes, any bytes. Errors: ISO_NOMEM, ISO_LIMIT. */
ISO_MUST_USE iso_code eg_intern(eg_graph *g, const char *name, size_t n, eg_symbol *out,
                                iso_error *err);
size_t eg_count_symbols(const eg_graph *g); /* eg_symbol ids are 0 .. this - 1 */
/* Borrowed until eg_free. NUL-terminated. */
const char *eg_symbol_name(const eg_graph *g, eg_symbol s);

/* Add an e-node. An equal one (same symbol, children in the same classes) is found, not added
 * again. Returns: the e-node, whose class eg_class_of gives; one that was found may have been added
 * with other children, equal to these. Errors: ISO_NOMEM, and ISO_LIMIT where 32-bit ids run out;
 * then `g` is unchanged. */
ISO_MUST_USE iso_code eg_add(eg_graph *g, eg_symbol op, const eg_class *child, size_t n,
                             eg_node *out, iso_error *err);
/* State that the classes of e-nodes `a` and `b` are equal because of `why`. Parents are not
 * repaired until eg_rebuild: in between congruences may be missed, but nothing false is found.
 * Errors: ISO_NOMEM, and then `g` is unchanged. */
ISO_MUST_USE iso_code eg_merge(eg_graph *g, eg_node a, eg_node b, eg_why why, iso_error *err);
/* Add a term without variables, an s-expression of `n` bytes in the syntax of patterns (below).
 * Unlike an e-node of eg_add the one that comes is always spelled as the text is, so that
 * explanations speak of this term; it may be congruent to others. Errors: also ISO_FORMAT; some of
 * its e-nodes may have been added. */
ISO_MUST_USE iso_code eg_add_term(eg_graph *g, const char *text, size_t n, eg_node *out,
                                  iso_error *err);
/* Restore congruence and run repairs, to a fixed point. Errors: ISO_NOMEM, or the code of a repair;
 * the graph is then as between a merge and its rebuild, and calling again continues. Cost:
 * proportional to the changes. */
ISO_MUST_USE iso_code eg_rebuild(eg_graph *g, iso_error *err);

eg_class eg_find(const eg_graph *g, eg_class c);
eg_class eg_class_of(const eg_graph *g, eg_node n); /* canonical */
bool eg_equal(const eg_graph *g, eg_node a, eg_node b);
void *eg_data(const eg_graph *g, eg_class c); /* borrowed */
void eg_set_data(eg_graph *g, eg_class c,
                 void *data); /* frees the old data unless it is the same pointer;
                                parents are looked at again at the next rebuild */

eg_symbol eg_node_symbol(const eg_graph *g, eg_node n);
size_t eg_node_arity(const eg_graph *g, eg_node n);
eg_class eg_node_child(const eg_graph *g, eg_node n, size_t k);    /* canonical */
eg_class eg_node_original(const eg_graph *g, eg_node n, size_t k); /* as it was added */

/* The term as it was added. Owns: free(*out). Errors: ISO_NOMEM, ISO_LIMIT over 2^26 characters. */
ISO_MUST_USE iso_code eg_node_text(const eg_graph *g, eg_node n, char **out, iso_error *err);

size_t eg_count_nodes(const eg_graph *g);   /* different canonical e-nodes; exact when rebuilt */
size_t eg_count_classes(const eg_graph *g); /* live classes */
size_t eg_count_added(const eg_graph *g);   /* e-nodes ever added; eg_node ids are 0 .. this - 1 */
/* The e-nodes of a class (all that were added, congruent ones included), in order of their ids.
 * Borrowed until the next add, merge or rebuild. */
size_t eg_class_nodes(const eg_graph *g, eg_class c, const eg_node **out);
/* The e-nodes with a child in this class (congruent ones included), each once, in order of ids.
 * Borrowed likewise. */
size_t eg_class_parents(eg_graph *g, eg_class c, const eg_node **out);

/* ---- explanations ---- */

typedef struct eg_step {
  eg_node from, to; /* two e-nodes made equal by this step */
  eg_why why; /* kind EG_WHY_CONGRUENCE: same symbol, children equal pairwise by earlier proofs */
} eg_step;

/* A proof that e-nodes `a` and `b` are equal: all steps needed, congruences' premises before their
 * use, each once; the last chain runs from a to b. A step of that chain which a congruence needs
 * stands before it, already in the chain's direction; so a step may run against the merge it comes
 * from. No step can be left out. Owns: free(*out), NULL or not where *n is 0. Errors: ISO_USAGE
 * where they are not equal; ISO_NOMEM. Cost: close to linear in the lengths of the paths in the
 * proof forest, and n log n for the order. */
ISO_MUST_USE iso_code eg_explain(eg_graph *g, eg_node a, eg_node b, eg_step **out, size_t *n,
                                 iso_error *err);
/* Replay a proof: every congruence step's children must be equal by the steps before it, every
 * other step must be accepted by `accept` (NULL: any), and a = b must follow. Uses the e-nodes'
 * original terms only; trusts neither union-find nor hashcons of the engine. Returns: in `ok`
 * whether it holds, and in `why_not` (borrowed static text, may be NULL) the reason. */
ISO_MUST_USE iso_code eg_proof_check(const eg_graph *g, const eg_step *step, size_t n, eg_node a,
                                     eg_node b, bool (*accept)(void *ctx, const eg_step *s),
                                     void *ctx, bool *ok, const char **why_not, iso_error *err);

/* ---- checks and pictures ---- */

/* The full invariant check (slow): hashcons canonical, congruence closed, parents complete,
 * union-find sound. Requires: rebuilt. Errors: ISO_INTERNAL with what is broken. */
ISO_MUST_USE iso_code eg_check(eg_graph *g, iso_error *err);
/* Graphviz: a cluster per class. Returns false on a write error. */
bool eg_dot(eg_graph *g, FILE *f);

/* ==== equality saturation ====
 *
 * `eg_sat` is a second e-graph, for growing by rewrites: compact and fast, where eg_graph keeps
 * every e-node as it was added. Its e-classes are named by `eg_class`, its e-nodes are values: an
 * operator and child classes. A class id stays valid for ever (compare after eg_sat_find); a cursor
 * over e-nodes (`eg_row`) is valid until the next change. It can keep a log from which
 * eg_sat_replay makes an eg_graph with the reason of every equality, for explanations that
 * eg_proof_check checks; where none is asked for nothing is kept. The two do not share ids.
 *
 * Patterns are s-expressions: `?x` is a variable, `(f ?x 0)` an operator f with two children, any
 * other atom a leaf. An operator is identified by its name and its number of children. Atoms end at
 * white space, parentheses, `;` and `"`; one that is a whole term also at a comma after it.
 *
 * One iteration of eg_sat_run: every rule is searched on the same, rebuilt e-graph; then the
 * matches of each rule are applied in order, the right side built with hash-consing and merged with
 * the class that matched; then one rebuild.
 *
 * Example, egg's tutorial in C (tests/egraph/example_sat.c):
 *
 *   #include <stdio.h>
 *   #include <stdlib.h>
 *   #include <string.h>
 *
 *   #include "egraph/egraph.h"
 *
 *   int main(void) {
 *     static const eg_rule rules[] = {
 *         {.name = "commute-add", .lhs = "(+ ?x ?y)", .rhs = "(+ ?y ?x)"},
 *         {.name = "commute-mul", .lhs = "(* ?x ?y)", .rhs = "(* ?y ?x)"},
 *         {.name = "add-0", .lhs = "(+ ?x 0)", .rhs = "?x"},
 *         {.name = "mul-1", .lhs = "(* ?x 1)", .rhs = "?x"},
 *     };
 *     const char *term = "(+ 0 (* 1 foo))";
 *     const eg_run_options options = eg_run_options_default(); // iterations, e-nodes, memory
 *     eg_run_report report;
 *     eg_sat *s = NULL;
 *     eg_rules *r = NULL;
 *     eg_extract *best = NULL;
 *     eg_class root;
 *     char *text = NULL;
 *     iso_error err = {0};
 *     iso_code c = eg_sat_new(NULL, &s, &err);
 *     if (!c) c = eg_sat_add_term(s, term, strlen(term), &root, &err);
 *     if (!c) c = eg_rules_new(s, &r, &err);
 *     for (size_t i = 0; !c && i < sizeof rules / sizeof *rules; i++)
 *       c = eg_rules_add(r, &rules[i], &err);
 *     if (!c) c = eg_sat_run(s, r, &options, &report, &err);
 *     if (!c) c = eg_extract_new(s, NULL, &best, &err);
 *     if (!c) c = eg_extract_text(best, root, &text, &err);
 *     if (!c)
 *       printf("%s simplifies to %s, of cost %g: %s\n", term, text, eg_extract_cost(best, root),
 *              eg_stop_name(report.stop));
 *     else fprintf(stderr, "%s\n", err.msg);
 *     free(text);
 *     eg_extract_free(best);
 *     eg_rules_free(r);
 *     eg_sat_free(s);
 *     return c != 0;
 *   }
 */

typedef struct eg_sat eg_sat;
typedef struct eg_op {
  uint32_t i;
} eg_op; /* an operator: a name with a number of children */
typedef struct eg_row {
  uint32_t i;
} eg_row; /* a cursor */

enum { EG_INTO_CHANGED = 1, EG_FROM_DIFFERS = 2 };

/* Data per class: `size` bytes, zeroed before `make`. Callbacks may read the graph, but change
 * nothing, but for repair. They have no way to fail but repair: keep an error in `ctx`. */
typedef struct eg_sat_analysis {
  void *ctx;
  size_t size;
  /* The data of an e-node, from the data of its children. */
  void (*make)(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n, void *data);
  /* Join `from` into `into`. Returns: EG_INTO_CHANGED where the result differs from the old `into`,
   * EG_FROM_DIFFERS where it differs from `from`; parents are then visited again. `from` is not
   * used afterwards (free its memory). Repeated joins must reach a fixed point. */
  unsigned (*join)(void *ctx, const eg_sat *s, void *into, void *from);
  /* Called after a class was made or changed: may add, merge, prune, not rebuild. May be NULL. */
  iso_code (*repair)(void *ctx, eg_sat *s, eg_class c, iso_error *err);
  void (*free)(void *ctx, void *data); /* may be NULL */
} eg_sat_analysis;

typedef struct eg_sat_options {
  eg_sat_analysis analysis; /* make NULL: none */
  bool log;                 /* keep a log, as eg_sat_replay needs */
} eg_sat_options;

/* Owns: the caller frees. `options` may be NULL and is copied. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code eg_sat_new(const eg_sat_options *options, eg_sat **out, iso_error *err);
void eg_sat_free(eg_sat *s);

/* The operator of `n` bytes of name with `arity` children. Errors: ISO_NOMEM, ISO_LIMIT. */
ISO_MUST_USE iso_code eg_sat_op(eg_sat *s, const char *name, size_t n, size_t arity, eg_op *out,
                                iso_error *err);
const char *eg_sat_op_name(const eg_sat *s,
                           eg_op op); /* borrowed until eg_sat_free, NUL-terminated */
size_t eg_sat_op_arity(const eg_sat *s, eg_op op);
size_t eg_sat_count_ops(const eg_sat *s); /* eg_op ids are 0 .. this - 1 */

/* Add an e-node, or find the class of an equal one. It has as many children as its operator takes.
 * Errors: ISO_NOMEM, ISO_LIMIT (2^31 words of e-nodes), and those of a repair. */
ISO_MUST_USE iso_code eg_sat_add(eg_sat *s, eg_op op, const eg_class *child, eg_class *out,
                                 iso_error *err);
/* Add a term without variables, in the syntax of patterns; `n` bytes. Errors: also ISO_FORMAT. */
ISO_MUST_USE iso_code eg_sat_add_term(eg_sat *s, const char *text, size_t n, eg_class *out,
                                      iso_error *err);
/* State that two classes are equal. The reason goes to the log. Fails by a repair or the log. */
ISO_MUST_USE iso_code eg_sat_merge(eg_sat *s, eg_class a, eg_class b, eg_why why, iso_error *err);
/* Many at once, one after another as by the two above, but without waiting for memory in between.
 * The i-th e-node goes to made[first + i]; its children are named by where they are in `made`,
 * those before it among them. On an error those before the one that failed are done. */
typedef struct eg_addition {
  eg_op op;
  const uint32_t *child;
} eg_addition;
ISO_MUST_USE iso_code eg_sat_add_all(eg_sat *s, const eg_addition *a, size_t n, eg_class *made,
                                     size_t first, iso_error *err);
typedef struct eg_equation {
  eg_class a, b;
} eg_equation;
ISO_MUST_USE iso_code eg_sat_merge_all(eg_sat *s, const eg_equation *e, size_t n, eg_why why,
                                       iso_error *err);
/* Restore congruence and bring data up to date. Errors: those of repairs; calling again continues.
 * Cost: proportional to the changes. Without an analysis it cannot fail. */
ISO_MUST_USE iso_code eg_sat_rebuild(eg_sat *s, iso_error *err);
/* Take the e-nodes with children out of a class: they are no longer counted, iterated or matched,
 * but adding one again still gives this class. */
void eg_sat_prune(eg_sat *s, eg_class c);

eg_class eg_sat_find(const eg_sat *s, eg_class c);
/* The class of an e-node, if it is there. */
bool eg_sat_lookup(const eg_sat *s, eg_op op, const eg_class *child, eg_class *out);
/* The class of a term without variables, if it is there; nothing but its operators is added.
 * Errors: ISO_FORMAT, ISO_NOMEM. */
ISO_MUST_USE iso_code eg_sat_lookup_term(eg_sat *s, const char *text, size_t n, bool *found,
                                         eg_class *out, iso_error *err);
void *eg_sat_data(const eg_sat *s, eg_class c); /* borrowed until the next change */
size_t eg_sat_count_nodes(
    const eg_sat *s); /* different canonical e-nodes in classes; exact when rebuilt */
size_t eg_sat_count_classes(const eg_sat *s); /* live classes */
size_t eg_sat_count_ids(const eg_sat *s); /* classes ever made; eg_class ids are 0 .. this - 1, and
                                           * those that eg_sat_find gives back are live */
size_t eg_sat_mem_bytes(const eg_sat *s); /* bytes of its arrays */
uint64_t eg_sat_version(const eg_sat *s); /* goes up with every change */

/* The e-nodes of a class, one after another: `for (r = eg_sat_first(s, c); r.i; r = eg_sat_next(s,
 * r))`. */
eg_row eg_sat_first(const eg_sat *s, eg_class c);
eg_row eg_sat_next(const eg_sat *s, eg_row r);
eg_op eg_sat_row_op(const eg_sat *s, eg_row r);
eg_class eg_sat_row_class(const eg_sat *s, eg_row r);           /* canonical */
eg_class eg_sat_row_child(const eg_sat *s, eg_row r, size_t k); /* canonical */

/* ---- patterns and rules ---- */

/* A pattern; or several terms that must match in one class, which may have a name: `?v = (f ?a) =
 * (g ?b)`; or several classes, with a comma after each but the last: `?v = (f ?a), ?w = (g ?a ?b)`.
 * A match is in the class of the first; those that have a name are bound like other variables.
 * Operators and variables are interned. */
typedef struct eg_pattern eg_pattern;
ISO_MUST_USE iso_code eg_pattern_parse(eg_sat *s, const char *text, size_t n, eg_pattern **out,
                                       iso_error *err);
void eg_pattern_free(eg_pattern *p);
/* Variables in order of first occurrence. Borrowed. */
size_t eg_pattern_count_vars(const eg_pattern *p);
const char *eg_pattern_var(const eg_pattern *p, size_t k); /* with its question mark */

/* Add an instance; `var` in the order of the pattern's variables. Where the pattern has several
 * terms, the first. Errors: as eg_sat_add. */
ISO_MUST_USE iso_code eg_sat_build(eg_sat *s, const eg_pattern *p, const eg_class *var,
                                   eg_class *out, iso_error *err);

/* Call `each` for every match, a class and the substitution of the variables, each pair once. It
 * returns false to stop, and must not change the graph. Where the pattern has several classes, all
 * matches are found before the first call. Requires: rebuilt. In `n`: the number of calls. */
ISO_MUST_USE iso_code eg_sat_match(eg_sat *s, const eg_pattern *p,
                                   bool (*each)(void *ctx, eg_class root, const eg_class *var),
                                   void *ctx, size_t *n, iso_error *err);

/* A rewrite. Members that are not used are zero. `var` of a callback is in the order of first
 * occurrence in lhs. Matches of a rule that has neither condition nor apply are applied many at a
 * time: merges, and repairs of an analysis, follow each batch. */
typedef struct eg_rule {
  const char *name, *lhs, *rhs; /* texts; rhs NULL where `apply` is there */
  /* On the right side `T` goes into the class that matched, `?v = T` into that of ?v, `?v = ?w`
   * merges two; a comma between several of them. */
  bool both; /* also from right to left, as a rule of its own, "-rev" appended to its name; none of
                the callbacks below */
  void *ctx;
  /* Tested in the search, on the rebuilt e-graph; may not change it. */
  bool (*guard)(void *ctx, const eg_sat *s, const eg_class *var);
  bool guard_stays_false; /* a match that it refused once it refuses for ever: only then may old
                             matches be skipped */
  /* Tested just before the application, on the graph as earlier applications left it; may add. */
  iso_code (*condition)(void *ctx, eg_sat *s, const eg_class *var, bool *holds, iso_error *err);
  /* In place of rhs: may add terms, and merge `root` (named as at the search) with them. */
  iso_code (*apply)(void *ctx, eg_sat *s, eg_class root, const eg_class *var, iso_error *err);
  bool never_done; /* as long as it matches, the run does not count as saturated (egg's
                      multi-patterns) */
  /* Under backoff: its own first threshold and ban; 0: the run's. SIZE_MAX matches: no ban. */
  size_t match_limit, ban_length;
} eg_rule;

typedef struct eg_rules eg_rules;
ISO_MUST_USE iso_code eg_rules_new(eg_sat *s, eg_rules **out, iso_error *err);
void eg_rules_free(eg_rules *r);
/* Texts are copied. Errors: ISO_FORMAT, also for a variable of rhs that lhs does not have. */
ISO_MUST_USE iso_code eg_rules_add(eg_rules *r, const eg_rule *rule, iso_error *err);
size_t eg_rules_count(const eg_rules *r);
const char *eg_rules_name(const eg_rules *r, size_t k); /* borrowed */

typedef enum eg_stop {
  EG_SATURATED,
  EG_ITERATION_LIMIT,
  EG_NODE_LIMIT,
  EG_TIME_LIMIT,
  EG_MEMORY_LIMIT,
  EG_STOPPED
} eg_stop;
const char *eg_stop_name(eg_stop stop); /* "saturated", "iteration-limit", ... */

/* The work of a rule in an iteration. Its e-nodes are those that its matches added. */
typedef struct eg_rule_iteration {
  size_t matches, nodes;
  double search_s, apply_s; /* Unit: seconds */
} eg_rule_iteration;
typedef struct eg_iteration {
  size_t nodes, classes; /* after it */
  size_t matches;        /* found by its search; the incremental search leaves most old ones out */
  const size_t *rule_matches;          /* per rule; NULL for iteration 0 */
  const eg_rule_iteration *rule;       /* the same in full; NULL unless `by_rule` asks for it */
  double search_s, apply_s, rebuild_s; /* Unit: seconds */
} eg_iteration;

/* A scheduler of the caller's. Iterations are counted from 0, rules as they were added. As under
 * backoff, every search finds all matches. */
typedef struct eg_scheduler {
  void *ctx;
  /* How many matches a rule may have in this iteration: where it has more, its search ends and none
   * is applied. 0: it is not searched. SIZE_MAX: any number. NULL: the same. */
  size_t (*limit)(void *ctx, const eg_sat *s, size_t iteration, size_t rule);
  /* How many matches its search found; above the limit where that was exceeded. May be NULL. */
  void (*found)(void *ctx, size_t iteration, size_t rule, size_t n_matches);
  /* Asked after an iteration that changed nothing: is that the end? NULL: yes. */
  bool (*may_stop)(void *ctx, size_t iteration);
} eg_scheduler;

typedef struct eg_run_options {
  enum { EG_SIMPLE, EG_BACKOFF, EG_OWN } scheduler;
  size_t match_limit,
      ban_length;   /* backoff: first threshold and ban (1000, 5); both double with each ban */
  eg_scheduler own; /* for EG_OWN */
  size_t iteration_limit; /* 0: none, as for the other limits */
  size_t node_limit;      /* looked at between rules and between batches of matches */
  size_t work_limit;      /* rows and guards of a search: with more, its rule is left out */
  double time_limit_s;    /* this and the next also while rules are searched: nothing is applied */
  size_t mem_limit_bytes; /* of eg_sat_mem_bytes and the matches */
  bool full_search;       /* find all matches in every iteration (backoff always does) */
  unsigned jobs; /* threads that search; 0: one. The same comes out, unless time or memory ends */
  size_t grain;  /* rows that one is worth; 0: 2048. Callbacks run in the thread that called */
  bool by_rule;  /* tell of each rule in full, which takes two looks at the clock */
  void *ctx;
  /* Called after iteration 0 (the start) and each later one, on the rebuilt graph. May match,
   * extract, add and merge; the run then rebuilds. Returning false stops the run. May be NULL. */
  bool (*each)(void *ctx, eg_sat *s, size_t iteration, const eg_iteration *it);
} eg_run_options;
/* Where a run ends that nothing else ends; the report says which it was. No clock decides. */
#define EG_DEFAULT_ITERATIONS ((size_t)30)
#define EG_DEFAULT_NODES ((size_t)1000000)
#define EG_DEFAULT_MEM_BYTES ((size_t)1 << 30)
eg_run_options eg_run_options_default(void); /* simple, with these limits, no limit of time */

typedef struct eg_run_report {
  eg_stop stop;
  size_t iterations;
  /* Where a limit stopped it, the rule that exploded: the one in whose search it was, with the
   * matches that it had found, else the one with most new e-nodes in the last iteration. SIZE_MAX:
   * no limit stopped it. */
  size_t culprit;
  size_t culprit_nodes, culprit_matches, n_left_out; /* the last: rules, by the limit of work */
} eg_run_report;

/* Saturate. Rebuilds first. The graph is rebuilt when it returns ISO_OK, also where a limit stopped
 * it. Source: Willsey et al., egg, POPL 2021; de Moura and Bjorner, Efficient E-matching for SMT
 * solvers, CADE 2007. Errors: ISO_NOMEM and those of callbacks; the graph can be rebuilt and used
 * on. */
ISO_MUST_USE iso_code eg_sat_run(eg_sat *s, eg_rules *r, const eg_run_options *options,
                                 eg_run_report *out, iso_error *err);

/* ---- extraction ---- */

typedef struct eg_extract eg_extract;
typedef struct eg_cost {
  void *ctx;
  /* The cost of a term from its topmost e-node and the costs of its `n` children; more than each of
   * them, HUGE_VAL where it may not be chosen. NULL: one more than their sum, the term's size. */
  double (*tree)(void *ctx, const eg_sat *s, eg_row row, const double *child, size_t n);
  /* For DAG cost, where a shared e-node is paid once: the cost of an e-node without its children,
   * positive. NULL: 1. */
  double (*node)(void *ctx, const eg_sat *s, eg_row row);
} eg_cost;

/* The cheapest term of every class by tree cost. `cost` may be NULL. Requires: rebuilt; and the
 * graph stays as it is while the result is used. Owns: eg_extract_free. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code eg_extract_new(const eg_sat *s, const eg_cost *cost, eg_extract **out,
                                     iso_error *err);
void eg_extract_free(eg_extract *x);
/* Make the DAG cost of the term chosen for `c` smaller, by changing one choice after another while
 * that helps: never worse than the start. Choices for other classes may change. Errors: ISO_NOMEM.
 */
ISO_MUST_USE iso_code eg_extract_dag(eg_extract *x, eg_class c, iso_error *err);
/* The same for several classes together, with shared e-nodes paid once. Then a search for the best
 * choices (NP-hard), limited to `work` steps and by no clock. 0: no search. */
typedef struct eg_dag {
  double cost;  /* of the current choice */
  double bound; /* no choice costs less; 0 without a search */
  bool optimal; /* the search came to its end: nothing costs less, by more than 1e-9 of it */
} eg_dag;
/* Errors: ISO_USAGE for a class without a finite term, ISO_NOMEM. */
ISO_MUST_USE iso_code eg_extract_dag_all(eg_extract *x, const eg_class *root, size_t n_roots,
                                         size_t work, eg_dag *out, iso_error *err);
/* The e-node chosen for a class; row 0 where it has no finite term. */
eg_row eg_extract_row(const eg_extract *x, eg_class c);
double eg_extract_cost(const eg_extract *x,
                       eg_class c); /* by tree cost, HUGE_VAL where a class has no finite term */
ISO_MUST_USE iso_code eg_extract_dag_cost(const eg_extract *x, eg_class c, double *out,
                                          iso_error *err);
/* The chosen term as text. Owns: free(*out). Errors: ISO_USAGE where there is none, ISO_LIMIT over
 * 2^26 characters. */
ISO_MUST_USE iso_code eg_extract_text(const eg_extract *x, eg_class c, char **out, iso_error *err);

/* ---- explanations of equalities found by eg_sat ---- */

/* An eg_graph in which everything in the log holds again, rebuilt: every rule application that had
 * an effect is instantiated from the rule's texts and merged, with why.kind EG_WHY_RULE + its
 * rule's number and why.data the number of the application; other merges keep their reasons.
 * `rules` are those of the runs since eg_sat_new, one set. Returns: in `out` the graph (eg_free),
 * in `node`, unless NULL, for each class id of `s` the e-node of the term for which that class was
 * made (free). Requires: options.log. Errors: ISO_USAGE without a log, ISO_NOMEM, ISO_LIMIT. */
enum { EG_WHY_RULE = 1 << 20 };
ISO_MUST_USE iso_code eg_sat_replay(const eg_sat *s, const eg_rules *rules, eg_graph **out,
                                    eg_node **node, iso_error *err);

/* For eg_proof_check: is a step that names a rule an instance of its sides? Read from the rules'
 * texts, by a reader and a matcher of its own, over e-nodes' original children. Guards and
 * conditions are not asked again. All other steps, and those of rules with several terms or
 * classes, or with the name of a class within a term of the right side, of which a step does not
 * say enough, are put to `other`; NULL refuses them:
 *
 *     eg_rule_check check = {g, rules, NULL, NULL};
 *     eg_proof_check(g, step, n, a, b, eg_rule_check_step, &check, &ok, &why_not, &err) */
typedef struct eg_rule_check {
  const eg_graph *g;
  const eg_rules *rules;
  bool (*other)(void *ctx, const eg_step *step);
  void *ctx;
} eg_rule_check;
bool eg_rule_check_step(void *check, const eg_step *step);

/* ---- other formats ---- */

/* egraph-serialize JSON, as the extraction gym and visualisers read it: nodes with op, children,
 * eclass and cost, and root_eclasses. Costs: of `cost->node`, else 1. False on a write error. */
bool eg_sat_write_json(const eg_sat *s, const eg_cost *cost, const eg_class *root, size_t n_roots,
                       FILE *f);
/* Read it into an empty graph and rebuild it. Root classes, where `root` is not NULL: free(*root).
 * Where `cost` is not NULL, the cost of each e-node, (*cost)[row.i] for an eg_row of this graph as
 * it is now: free(*cost). Errors: ISO_FORMAT, also for a class without a finite term; ISO_NOMEM. */
ISO_MUST_USE iso_code eg_sat_read_json(eg_sat *s, const char *text, size_t n, eg_class **root,
                                       size_t *n_roots, double **cost, iso_error *err);
/* Graphviz: a cluster per class. Returns false on a write error. */
bool eg_sat_dot(const eg_sat *s, FILE *f);

/* The full invariant check (slow). Requires: rebuilt. Errors: ISO_INTERNAL with what is broken. */
ISO_MUST_USE iso_code eg_sat_check(eg_sat *s, iso_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
