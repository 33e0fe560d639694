/* An e-graph: terms up to equality, with congruence.
 *
 * Ideas and terms
 *   symbol   an interned operator name; a literal is a symbol without children. The library attaches no meaning.
 *   e-node   a symbol applied to e-classes. `eg_node` names one as it was added, and never changes.
 *   e-class  a set of e-nodes that are equal. `eg_class` ids go stale when classes merge: compare after `eg_find`.
 *   merge    states that two classes are equal, with a reason (`eg_why`); congruence is restored by `eg_rebuild`
 *            (deferred: Willsey et al., egg, POPL 2021, section 3).
 *   analysis data per class, with a join, given by callbacks.
 *   explanation  why two e-nodes are equal: a chain of steps, each a reason given to a merge or a congruence
 *            (Nieuwenhuis and Oliveras, Proof-producing congruence closure, RTA 2005). `eg_proof_check` replays one
 *            and shares no code with the engine.
 *
 * Ids are dense: e-node i is the i-th that was added, and class i is the class that was made for e-node i. So an
 * original child, a class id, also names the e-node that was meant; a canonical class contains the e-node of its id.
 * Of two classes that merge, the one with more parents stays, the one with the smaller id where they have as many.
 * Same calls, same results, down to ids and the order of steps.
 *
 * No global state: several graphs may live in several threads, but one graph serves one thread at a time: the getters
 * shorten paths and sort lists. Ids given to a function must come from the same graph. Nothing here knows of tensors.
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
 *     eg_node n[6];  // n[k] is f applied k times to x
 *     eg_step *step = NULL;
 *     size_t n_steps = 0;
 *     bool ok = false;
 *     iso_error err = {0};
 *     if (eg_new(NULL, &g, &err) || eg_intern(g, "x", 1, &x, &err) || eg_intern(g, "f", 1, &f, &err)) goto done;
 *     if (eg_add(g, x, NULL, 0, &n[0], &err)) goto done;
 *     for (int k = 1; k < 6; k++) {
 *       eg_class child = eg_class_of(g, n[k - 1]);
 *       if (eg_add(g, f, &child, 1, &n[k], &err)) goto done;
 *     }
 *     // Reasons are the caller's numbers: here kind 1, and which of the two equations.
 *     if (eg_merge(g, n[3], n[0], (eg_why){1, 3}, &err)) goto done;
 *     if (eg_merge(g, n[5], n[0], (eg_why){1, 5}, &err)) goto done;
 *     if (eg_rebuild(g, &err)) goto done;  // congruence finds the rest
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

typedef struct eg_graph eg_graph;
typedef struct eg_class { uint32_t i; } eg_class;
typedef struct eg_node { uint32_t i; } eg_node;
typedef struct eg_symbol { uint32_t i; } eg_symbol;
#define EG_NONE UINT32_MAX

/* A reason for a merge. `kind` is the caller's, any value but EG_WHY_CONGRUENCE; `data` is the caller's index. */
typedef struct eg_why { uint32_t kind; uint32_t data; } eg_why;
enum { EG_WHY_CONGRUENCE = 0 };

/* Data per class. All may be NULL. Data is an opaque pointer, NULL for none. `make` and `join` only read the graph:
 * they may not add, merge or rebuild. They have no way to fail: keep an error in `ctx` and return NULL or `into`. */
typedef struct eg_analysis {
  void *ctx;
  /* Data of a class that was just made for `node`; also, at rebuild, what `node` gives now that the data of a child
   * changed or its class merged, which is then joined into the data of node's class. */
  void *(*make)(void *ctx, eg_graph *g, eg_node node);
  /* `from` merges into `into`: return the data of the union; takes over both. Sets *changed where the result differs
   * from `into`, so that parents are looked at again. Called where both are there; data joined with none stays as it
   * is. NULL: `into` stays, `from` is freed. The join must not go up for ever, or a rebuild does not end. */
  void *(*join)(void *ctx, eg_graph *g, eg_class cls, void *into, void *from, bool *changed);
  /* Called at rebuild, congruence restored, for a class whose data changed or was made (repair): may add, merge and
   * set data, but not rebuild. An error ends the rebuild, and the class is still due at the next. */
  iso_code (*repair)(void *ctx, eg_graph *g, eg_class cls, void *data, iso_error *err);
  void (*free)(void *ctx, void *data);
} eg_analysis;

/* Owns: the caller frees. `analysis` may be NULL and is copied. */
ISO_MUST_USE iso_code eg_new(const eg_analysis *analysis, eg_graph **out, iso_error *err);
void eg_free(eg_graph *g);

/* Intern a name of `n` bytes, any bytes. Errors: ISO_NOMEM, ISO_LIMIT. */
ISO_MUST_USE iso_code eg_intern(eg_graph *g, const char *name, size_t n, eg_symbol *out, iso_error *err);
/* Borrowed until eg_free. NUL-terminated. */
const char *eg_symbol_name(const eg_graph *g, eg_symbol s);

/* Add an e-node. An equal one (same symbol, children in the same classes) is found, not added again.
 * Returns: the e-node, whose class eg_class_of gives; one that was found may have been added with other children, equal
 * to these. Errors: ISO_NOMEM, and ISO_LIMIT where 32-bit ids run out; then `g` is unchanged. */
ISO_MUST_USE iso_code eg_add(eg_graph *g, eg_symbol op, const eg_class *child, size_t n, eg_node *out, iso_error *err);
/* State that the classes of e-nodes `a` and `b` are equal because of `why`. Parents are not repaired until eg_rebuild:
 * in between congruences may be missed, but nothing false is found. Errors: ISO_NOMEM, and then `g` is unchanged. */
ISO_MUST_USE iso_code eg_merge(eg_graph *g, eg_node a, eg_node b, eg_why why, iso_error *err);
/* Restore congruence and run repairs, to a fixed point. Errors: ISO_NOMEM, or what a repair returned; the graph is
 * then as between a merge and its rebuild, and calling again goes on. Cost: proportional to what changed. */
ISO_MUST_USE iso_code eg_rebuild(eg_graph *g, iso_error *err);

eg_class eg_find(const eg_graph *g, eg_class c);
eg_class eg_class_of(const eg_graph *g, eg_node n); /* canonical */
bool eg_equal(const eg_graph *g, eg_node a, eg_node b);
void *eg_data(const eg_graph *g, eg_class c);               /* borrowed */
void eg_set_data(eg_graph *g, eg_class c, void *data);      /* frees the old data unless it is the same pointer;
                                                              parents are looked at again at the next rebuild */

eg_symbol eg_node_symbol(const eg_graph *g, eg_node n);
size_t eg_node_arity(const eg_graph *g, eg_node n);
eg_class eg_node_child(const eg_graph *g, eg_node n, size_t k); /* canonical */
eg_class eg_node_original(const eg_graph *g, eg_node n, size_t k); /* as it was added */

size_t eg_count_nodes(const eg_graph *g);   /* different canonical e-nodes; exact when rebuilt */
size_t eg_count_classes(const eg_graph *g); /* live classes */
size_t eg_count_added(const eg_graph *g);   /* e-nodes ever added; eg_node ids are 0 .. this - 1 */
/* The e-nodes of a class (all that were added, congruent ones included), in order of their ids. Borrowed until the
 * next add, merge or rebuild. */
size_t eg_class_nodes(const eg_graph *g, eg_class c, const eg_node **out);
/* The e-nodes with a child in this class (congruent ones included), each once, in order of ids. Borrowed likewise. */
size_t eg_class_parents(eg_graph *g, eg_class c, const eg_node **out);

/* ---- explanations ---- */

typedef struct eg_step {
  eg_node from, to;   /* two e-nodes made equal by this step */
  eg_why why;         /* kind EG_WHY_CONGRUENCE: same symbol, children equal pairwise by earlier proofs */
} eg_step;

/* A proof that e-nodes `a` and `b` are equal: all steps needed, congruences' premises before their use, each once;
 * the last chain runs from a to b. A step of that chain which a congruence needs stands before it, already in the
 * chain's direction; so a step may run against the merge it comes from. No step can be left out.
 * Owns: free(*out), NULL or not where *n is 0. Errors: ISO_USAGE where they are not equal; ISO_NOMEM.
 * Cost: close to linear in the lengths of the paths in the proof forest, and n log n for the order. */
ISO_MUST_USE iso_code eg_explain(eg_graph *g, eg_node a, eg_node b, eg_step **out, size_t *n, iso_error *err);
/* Replay a proof: every congruence step's children must be equal by the steps before it, every other step must be
 * accepted by `accept` (NULL: any), and a = b must follow. Uses the e-nodes' original terms only; trusts neither
 * union-find nor hashcons of the engine. Returns: in `ok` whether it holds, and in `why_not` (borrowed static text,
 * may be NULL) the reason. */
ISO_MUST_USE iso_code eg_proof_check(const eg_graph *g, const eg_step *step, size_t n, eg_node a, eg_node b,
                                     bool (*accept)(void *ctx, const eg_step *s), void *ctx, bool *ok,
                                     const char **why_not, iso_error *err);

/* ---- checks and pictures ---- */

/* The full invariant check (slow): hashcons canonical, congruence closed, parents complete, union-find sound.
 * Requires: rebuilt. Errors: ISO_INTERNAL with what is broken. */
ISO_MUST_USE iso_code eg_check(eg_graph *g, iso_error *err);
/* Graphviz: a cluster per class. Returns false on a write error. */
bool eg_dot(eg_graph *g, FILE *f);

#ifdef __cplusplus
}
#endif
#endif
