/* Loads the calls of both sides, and makes each side one graph. */
#include "capture/calls/calls.h"

#include <stdlib.h>
#include <string.h>

#include "capture/calls/calls_int.h"

typedef struct loading {
  const calls_side *side;
  const cap_options *o;
  const calls_sizes *at;
  rule_schemas *schemas;
  chain *captured; /* of both sides */
  iso_error *err;
} loading;

static iso_code no_memory(const chain *x) { return cap_no_memory(x->err); }

/* Room for lines about outputs and inputs, and places for nodes and outputs. */
static iso_code open(chain *x) {
  size_t lines = 1;
  for (size_t k = 0; k < x->n; k++) {
    const cap_graph *g = x->g[k];
    lines += g->n_results + g->n_nodes;
    x->to[k] = malloc((g->n_nodes + 1) * sizeof *x->to[k]);
    x->used[k] = calloc(g->n_results + 1, 1);
    if (!x->to[k] || !x->used[k]) return no_memory(x);
    for (size_t i = 0; i < g->n_nodes; i++) x->to[k][i] = CALLS_NOWHERE;
    if (!x->moved && g->n_sets != x->g[0]->n_sets)
      return iso_fail(x->err, ISO_USAGE, "%s has %zu sets of inputs, and %s %zu", g->path,
                      g->n_sets, x->g[0]->path, x->g[0]->n_sets);
  }
  x->said = iso_arena_alloc(x->a, lines * sizeof *x->said);
  return x->said ? ISO_OK : no_memory(x);
}

static void close(chain *x) {
  for (size_t k = 0; k < x->n; k++) {
    free(x->to[k]);
    free(x->used[k]);
    free(x->size[k]);
  }
  for (size_t i = 0; i < x->n_made; i++) rule_tensor_unref(x->made[i]);
  free(x->made);
  free(x->node);
  cap_names_fini(&x->ids);
  cap_names_fini(&x->inputs);
  cap_names_fini(&x->weights);
}

/* Gathers the facts that captures note beside their nodes, over all calls. */
static iso_code gather(chain *x) {
  cap_graph *g = x->g[0];
  size_t n[4] = {0};
  for (size_t k = 0; k < x->n; k++) {
    n[0] += x->g[k]->n_written, n[1] += x->g[k]->n_no_tensors, n[2] += x->g[k]->n_reads;
    n[3] += k > 0;
  }
  const char **written = iso_arena_alloc(x->a, (n[0] + 1) * sizeof *written),
             **read = iso_arena_alloc(x->a, (n[2] + 1) * sizeof *read),
             **then = iso_arena_alloc(x->a, (n[3] + 1) * sizeof *then);
  cap_no_tensor *no_tensor = iso_arena_alloc(x->a, (n[1] + 1) * sizeof *no_tensor);
  if (!written || !read || !then || !no_tensor) return no_memory(x);
  memset(n, 0, sizeof n);
  for (size_t k = 0; k < x->n; k++) {
    const cap_graph *from = x->g[k];
    for (size_t i = 0; i < from->n_written; i++) written[n[0]++] = from->written[i];
    for (size_t i = 0; i < from->n_reads; i++) read[n[2]++] = from->read[i];
    for (size_t i = 0; i < from->n_no_tensors; i++) {
      no_tensor[n[1]] = from->no_tensor[i];
      if (!(no_tensor[n[1]++].output = calls_later(x, k, from->no_tensor[i].output)))
        return no_memory(x);
    }
    if (k) then[n[3]++] = from->path;
  }
  g->written = written, g->n_written = n[0];
  g->no_tensor = no_tensor, g->n_no_tensors = n[1];
  g->read = read, g->n_reads = n[2];
  g->then = then, g->n_then = n[3];
  g->said = x->said, g->n_said = x->n_said;
  if (x->scale) return calls_give_symbols(x, g);
  g->n_symbols = g->n_guards = g->n_numbers = 0;
  return ISO_OK;
}

/* The first call's graph becomes that of all, and holds the others. */
static iso_code compose(chain *x) {
  cap_graph *g = x->g[0];
  impl *m = g->impl;
  iso_code c = open(x);
  if (!c) c = calls_add_nodes(x);
  if (!c) c = calls_add_results(x);
  if (!c) c = gather(x);
  cap_graph **after = c ? NULL : calloc(x->n, sizeof *after);
  if (!c && !after) c = no_memory(x);
  if (!c) c = cap_replace_nodes(g, x->node, x->n_nodes, x->err);
  if (!c) c = cap_set_results(g, x->result, x->n_results, x->err);
  if (c) return free(after), c;
  cap_tensors_close(m->trace);
  m->trace = NULL;
  for (size_t k = 1; k < x->n; k++) after[k - 1] = x->g[k], x->g[k] = NULL;
  m->after = after;
  return ISO_OK;
}

bool calls_add(calls_side side[2], const char *left, const char *right) {
  const char *const path[2] = {left, right};
  for (int s = 0; s < 2; s++) {
    if (strcmp(path[s], "-") == 0) continue;
    if (side[s].n == CALLS_MOST) return false;
    side[s].then[side[s].n++] = path[s];
  }
  return true;
}

/* Loads the calls of side `s`. `at`: the sizes of each call's symbols; NULL: as captured. */
static iso_code load_side(const loading *l, int s, cap_size *const *at, chain *x) {
  const calls_side *side = &l->side[s];
  cap_options own = *l->o;
  iso_code c = ISO_OK;
  own.keep_role = l->o->keep_role && s == 1 && !side->n; /* the ranks of the right side */
  for (size_t k = 0; k <= side->n && !c; k++) {
    own.size = at ? at[k] : NULL;
    own.n_sizes = !at ? 0 : side->n ? l->captured[s].g[k]->n_symbols : l->at[s].n;
    c = cap_load_with(k ? side->then[k - 1] : side->first, &own, l->schemas, &x->g[k], l->err);
  }
  x->n = side->n + 1;
  x->moved = at != NULL;
  return c;
}

/* Links a side to the other one, and reads the symbols of its sizes. */
static iso_code open_side(const loading *l, int s, chain x[2]) {
  chain *own = &x[s];
  const chain *other = &x[!s];
  const bool one = l->side[!s].n == 0;
  own->other_last = other->g[l->side[!s].n];
  own->other = one ? other->g[0] : NULL;
  own->other_captured = one ? l->captured[!s].g[0] : NULL;
  for (size_t k = 0; k < own->n; k++) own->captured[k] = l->captured[s].g[k];
  own->a = &own->g[0]->arena;
  own->err = l->err;
  own->one = rule_int(own->a, 1);
  if (!own->one) return no_memory(own);
  return l->side[s].n ? calls_settle_sizes(own) : ISO_OK;
}

/* The sizes of each call of a side, where those of all are asked for. Owns: free() each. */
static iso_code sizes_of_calls(const loading *l, int s, cap_size **out) {
  chain *x = &l->captured[s];
  const calls_sizes *at = &l->at[s];
  iso_code c = ISO_OK;
  if (l->side[s].n && !x->scale)
    return iso_fail(l->err, ISO_USAGE, "%s: the sizes of its calls are those captured",
                    x->g[0]->path);
  for (size_t k = 0; k <= l->side[s].n && !c; k++) {
    const bool several = l->side[s].n > 0;
    out[k] = calloc((several ? x->g[k]->n_symbols : at->n) + 1, sizeof *out[k]);
    if (!out[k]) return cap_no_memory(l->err);
    if (several) c = calls_size_at(x, k, at->size, at->n, out[k]);
    else if (at->n) memcpy(out[k], at->size, at->n * sizeof *at->size);
  }
  return c;
}

/* The same at other sizes. */
static iso_code load_moved(const loading *l, chain x[2]) {
  iso_code c = ISO_OK;
  for (int s = 0; s < 2 && !c; s++) {
    cap_size *size[CALLS_ALL] = {NULL};
    c = sizes_of_calls(l, s, size);
    if (!c) c = load_side(l, s, size, &x[s]);
    for (size_t k = 0; k < CALLS_ALL; k++) free(size[k]);
  }
  for (int s = 0; s < 2 && !c; s++) c = open_side(l, s, x);
  return c;
}

static void free_graphs(chain *x) {
  for (size_t k = 0; k < CALLS_ALL; k++) cap_free(x->g[k]);
}

/* parameters: those of cap_load_with, of two sides. */
iso_code calls_load(const calls_side side[2], const cap_options *o, const calls_sizes at[2],
                    rule_schemas *schemas, cap_graph *out[2], iso_error *err) {
  chain captured[2] = {{.n = 0}}, moved[2] = {{.n = 0}}, *x = at ? moved : captured;
  const loading l = {side, o, at, schemas, captured, err};
  iso_code c = ISO_OK;
  if (side[0].n && side[1].n && side[0].n != side[1].n)
    return iso_fail(err, ISO_USAGE, "%zu calls on the left and %zu on the right: one, or as many",
                    side[0].n + 1, side[1].n + 1);
  const bool known = !at || side[0].n || side[1].n; /* else nobody asks for the captured ones */
  for (int s = 0; s < 2 && !c && known; s++) c = load_side(&l, s, NULL, &captured[s]);
  for (int s = 0; s < 2 && !c && known; s++) c = open_side(&l, s, captured);
  if (!c && at) c = load_moved(&l, moved);
  for (int s = 0; s < 2 && !c; s++)
    if (side[s].n) c = compose(&x[s]);
  for (int s = 0; s < 2; s++) {
    out[s] = c ? NULL : x[s].g[0];
    if (!c) x[s].g[0] = NULL;
    close(&captured[s]);
    close(&moved[s]);
    free_graphs(&captured[s]);
    free_graphs(&moved[s]);
  }
  return c;
}
