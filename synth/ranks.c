/* Several ranks in one graph.
 *
 * A collective is one e-node over all ranks' tensors, and what a rank reads of it is that e-node: replicas are joined by
 * congruence and by leaves of equal value, and nothing else in synth/ needs to know of ranks. What is left is the outputs:
 * each rank gives its own, "NAME" the first and "NAME_rank<r>" the others, and every one of them must equal its counterpart. */
#include "synth/synth_int.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* The length of NAME in "NAME_rank<r>", 0 where the name is not of that form. */
static size_t stem_length(const char *name) {
  const size_t n = strlen(name);
  size_t i = n;
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  return i < n && i > 5 && memcmp(name + i - 5, "_rank", 5) == 0 ? i - 5 : 0;
}

/* The output whose replica on another rank output `k` is; `k` itself where it is none. */
static size_t head_of(const synth_graph *g, size_t k) {
  const size_t n = stem_length(g->output[k].name);
  for (size_t i = 0; n && i < g->n_outputs; i++)
    if (strncmp(g->output[i].name, g->output[k].name, n) == 0 && g->output[i].name[n] == 0) return i;
  return k;
}

static size_t count_heads(const synth_graph *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_outputs; i++) n += head_of(g, i) == i;
  return n;
}

/* The `nth` output that is no replica; outputs are counted from 0. */
static size_t nth_head(const synth_graph *g, size_t nth) {
  size_t i = 0;
  while (head_of(g, i) != i || nth-- > 0) i++;
  return i;
}

static int64_t find_output(const synth_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_outputs; i++)
    if (strcmp(g->output[i].name, name) == 0) return (int64_t)i;
  return -1;
}

/* Output `h` and its replicas, in the order of the graph. Returns: how many. */
static size_t replicas(const synth_graph *g, size_t h, size_t *out) {
  size_t n = 0;
  out[n++] = h;
  for (size_t i = 0; i < g->n_outputs; i++)
    if (i != h && head_of(g, i) == h) out[n++] = i;
  return n;
}

typedef struct pairs {
  synth_output *left, *right;
  size_t n;
} pairs;

static void pair_up(pairs *p, const synth_graph *l, size_t i, const synth_graph *r, size_t j) {
  p->left[p->n] = l->output[i];
  p->right[p->n++] = r->output[j];
}

/* As many replicas on both sides: rank by rank. Else all of them equal the other side's first. */
static void pair_replicas(pairs *p, const synth_graph *l, const size_t *of_l, size_t n_l, const synth_graph *r, const size_t *of_r,
                          size_t n_r) {
  if (n_l == n_r) {
    for (size_t k = 0; k < n_l; k++) pair_up(p, l, of_l[k], r, of_r[k]);
    return;
  }
  for (size_t k = 0; k < n_r; k++) pair_up(p, l, of_l[0], r, of_r[k]);
  for (size_t k = 1; k < n_l; k++) pair_up(p, l, of_l[k], r, of_r[0]);
}

iso_code st_pair_outputs(const synth_graph *left, const synth_graph *right, iso_arena *arena, synth_graph pair[2], iso_error *err) {
  const size_t heads = count_heads(left), all = left->n_outputs + right->n_outputs;
  if (heads != count_heads(right))
    return iso_fail(err, ISO_USAGE, "%s has %zu outputs and %s has %zu: they cannot be paired", left->path, left->n_outputs,
                    right->path, right->n_outputs);
  pairs p = {iso_arena_alloc(arena, (all + 1) * sizeof *p.left), iso_arena_alloc(arena, (all + 1) * sizeof *p.right), 0};
  size_t *of = calloc(all + 1, sizeof *of);
  if (!p.left || !p.right || !of) {
    free(of);
    return nomem(err);
  }
  bool by_name = true;
  for (size_t k = 0; k < heads && by_name; k++) {
    const int64_t j = find_output(right, left->output[nth_head(left, k)].name);
    by_name = j >= 0 && head_of(right, (size_t)j) == (size_t)j;
  }
  for (size_t k = 0; k < heads; k++) {
    const size_t i = nth_head(left, k), j = by_name ? (size_t)find_output(right, left->output[i].name) : nth_head(right, k);
    const size_t n_l = replicas(left, i, of), n_r = replicas(right, j, of + n_l);
    pair_replicas(&p, left, of, n_l, right, of + n_l, n_r);
  }
  free(of);
  pair[LEFT] = *left;
  pair[RIGHT] = *right;
  pair[LEFT].output = p.left;
  pair[RIGHT].output = p.right;
  pair[LEFT].n_outputs = pair[RIGHT].n_outputs = p.n;
  return ISO_OK;
}
