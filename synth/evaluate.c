/* Values of every live e-node, left graph first. Of models with large parameters both graphs go in
 * step, so that a parameter which is let go is made again once and not once for each graph. */
#include "synth/loop.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Elements of the large parameters that an e-node reads: those that are let go and made again. */
static int64_t spare_elements(state *s, eg_node e) {
  int64_t n = 0;
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_node *m;
    const size_t n_members = eg_class_nodes(s->g, eg_node_child(s->g, e, k), &m);
    bool spare = false;
    for (size_t i = 0; i < n_members && !spare; i++)
      spare = s->rec[m[i].i].leaf && s->rec[m[i].i].param && st_large(&s->rec[m[i].i].shape);
    for (size_t i = 0; i < n_members && spare; i++)
      if (s->rec[m[i].i].leaf) {
        int64_t all = 1;
        for (uint32_t d = 0; d < s->rec[m[i].i].shape.rank; d++) all *= s->rec[m[i].i].shape.dim[d];
        n += all;
        break;
      }
  }
  return n;
}

/* Every live e-node, left graph first; of models with large parameters both in step with the
 * parameters that they have read, so that these are made once and not once for each graph. Owns:
 * free(). */
static uint32_t *order_of(state *s, size_t *n_order) {
  uint32_t *order = malloc((s->n_rec + 1) * sizeof *order);
  int64_t *read = calloc(s->n_rec + 1, sizeof *read), all[2] = {0};
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_rec && order && read; i++) {
    const rec *r = &s->rec[i];
    if (r->valued || !(r->tensor || r->multi) || st_made(r)) continue;
    order[n++] = i;
    read[i] = all[r->node[LEFT] < 0] += spare_elements(s, (eg_node){i});
  }
  if (order && read && all[0] && all[1]) {
    uint32_t *merged = malloc((n + 1) * sizeof *merged);
    size_t at[2] = {0};
    for (size_t k = 0; k < n && merged; k++) {
      for (int side = 0; side < 2; side++)
        while (at[side] < n && (s->rec[order[at[side]]].node[LEFT] < 0) != side) at[side]++;
      const int side =
          at[LEFT] == n || (at[RIGHT] < n && read[order[at[RIGHT]]] < read[order[at[LEFT]]]);
      merged[k] = order[at[side]++];
    }
    free(order);
    order = merged;
  }
  if (!read) {
    free(order);
    order = NULL;
  }
  free(read);
  *n_order = n;
  return order;
}

iso_code st_evaluate(state *s, iso_error *err) {
  size_t n_order = 0;
  uint32_t *order = order_of(s, &n_order);
  iso_code code = order ? ISO_OK : nomem(err);
  for (size_t k = 0; k < n_order && !code; k++) {
    const uint32_t i = order[k];
    const rec *r = &s->rec[i];
    if (r->valued) continue;
    const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
    const synth_node *n = &s->graph[side]->node[r->node[side]];
    if ((code = st_value(s, (eg_node){i}, err)))
      iso_prefix(err, "%s: node \"%s\" (%s): ", s->graph[side]->path, n->id, n->op);
    if (s->o->progress && k % 64 == 0) s->o->progress(s->o->ctx, "execute", k, n_order);
    if (st_stopped(s)) break;
  }
  free(order);
  return code;
}
