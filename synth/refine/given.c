/* The order in which ranks were given the parts of a leaf. Outputs may be put together in an order
 * other than that of neighbours only where the ranks got a leaf in that order: else ranks that
 * changed places would pass for a mesh. */
#include "synth/joint/joint.h"
#include "synth/loop.h"
#include "synth/refine/refine.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool is_leaf(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  return n->kind != SYNTH_OP && n->name && s->map[side][i].i != EG_NONE;
}

/* The right graph's leaf of the name that the rank of an output has; NULL: it has none. An output
 * without a rank's number is the first rank's that has one of that name: of a later stage that is
 * not rank 0. */
static rule_tensor *part_of(state *s, const char *name, const char *output, size_t draw) {
  const synth_graph *g = s->graph[RIGHT];
  const char *stem;
  unsigned long of, rank, least = ULONG_MAX;
  const bool first = synth_stem(output, &stem, &of) == strlen(output);
  rule_tensor *found = NULL;
  for (size_t i = 0; i < g->n_nodes; i++) {
    if (!is_leaf(s, RIGHT, i) || !synth_same_stem(g->node[i].name, name)) continue;
    synth_stem(g->node[i].name, &stem, &rank);
    if (first ? rank >= least : rank != of) continue;
    least = rank;
    found = st_val(s, s->map[RIGHT][i], draw);
  }
  return found;
}

/* Every output that the term reads, replaced by its rank's part of the leaf. Returns: whether all
 * ranks have one. */
static bool parts(const st_refiner *x, const rule_term *t, const char *name, rule_tensor **value) {
  if (t->kind == RULE_VAR) {
    const char *output = x->s->graph[RIGHT]->output[t->u.i].name;
    return (value[t->u.i] = part_of(x->s, name, output, x->n_draws - 1)) != NULL;
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!parts(x, t->child[i], name, value)) return false;
  return true;
}

/* Whether the parts have the shapes of the outputs in whose place they are. */
static bool same_shapes(const st_refiner *x, size_t n, rule_tensor *const *value) {
  for (uint32_t k = 0; k < n; k++)
    if (value[k] && !rule_shape_eq(&value[k]->shape, &st_right_value(x, k, 0)->shape)) return false;
  return true;
}

iso_code st_given_so(const st_refiner *x, const rule_term *t, const rule_shape *want, bool *yes,
                     iso_error *err) {
  state *s = x->s;
  const synth_graph *g = s->graph[LEFT];
  const size_t n = s->graph[RIGHT]->n_outputs;
  rule_tensor **value = malloc((n + 1) * sizeof *value);
  iso_code c = value ? ISO_OK : nomem(err);
  *yes = false;
  for (size_t i = 0; i < g->n_nodes && !c && !*yes; i++) {
    if (!is_leaf(s, LEFT, i)) continue;
    rule_tensor *whole = st_val(s, s->map[LEFT][i], x->n_draws - 1);
    if (!whole || !rule_shape_eq(&whole->shape, want)) continue;
    memset(value, 0, (n + 1) * sizeof *value);
    if (!parts(x, t, g->node[i].name, value) || !same_shapes(x, n, value)) continue;
    const st_refiner given = {
        .s = s, .arena = x->arena, .n_draws = 1, .left = &whole, .right = value};
    c = st_holds(&given, 0, t, yes, NULL, err);
  }
  free(value);
  return c;
}
