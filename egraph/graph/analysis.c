/* Data per class: made, joined, brought up to the parents, repaired (Willsey et al., egg, POPL
 * 2021, section 4).
 *
 * NULL is the bottom of the join: joining with it calls nothing. Callbacks never see a class that
 * is not canonical. */
#include "egraph/graph/graph_int.h"

static void drop(eg_graph *g, void *data) {
  if (data && g->analysis.free) g->analysis.free(g->analysis.ctx, data);
}

/* In order of ids and not of the list: the order of joins must not depend on who walked the list
 * before. */
static void look_at_parents(eg_graph *g, uint32_t cls) {
  if (!g->analysis.make) return;
  egi_list *parents = &g->cls[cls].parents;
  const eg_node *p = egi_list_sort(parents);
  for (uint32_t i = 0; i < parents->n; i++)
    if (!g->node[p[i].i].twin) egi_queue_push(&g->look, p[i].i);
}

static void data_changed(eg_graph *g, uint32_t cls) {
  if (g->analysis.repair) egi_queue_push(&g->repair, cls);
  look_at_parents(g, cls);
}

void egi_data_make(eg_graph *g, uint32_t node) {
  if (!g->analysis.make) return;
  void *data = g->analysis.make(g->analysis.ctx, g, (eg_node){node});
  g->cls[node].data = data;
  if (data && g->analysis.repair) egi_queue_push(&g->repair, node);
}

static void data_join(eg_graph *g, uint32_t cls, void *from) {
  void *into = g->cls[cls].data;
  bool changed = false;
  if (!from) return;
  if (!into) {
    g->cls[cls].data = from;
    changed = true;
  } else if (g->analysis.join) {
    void *data = g->analysis.join(g->analysis.ctx, g, (eg_class){cls}, into, from, &changed);
    g->cls[cls].data = data;
  } else {
    drop(g, from);
  }
  if (changed) data_changed(g, cls);
}

void egi_data_merge(eg_graph *g, uint32_t kept, uint32_t gone) {
  void *from = g->cls[gone].data;
  g->cls[gone].data = NULL;
  data_join(g, kept, from);
  if (g->analysis.repair && g->repair.link[gone] != EG_NONE) egi_queue_push(&g->repair, kept);
}

void egi_data_look(eg_graph *g, uint32_t node) {
  if (g->node[node].twin) return;
  void *data = g->analysis.make(g->analysis.ctx, g, (eg_node){node});
  data_join(g, egi_find(g, node), data);
}

iso_code egi_data_repair(eg_graph *g, uint32_t cls, iso_error *err) {
  if (g->up[cls] != cls)
    return ISO_OK; /* merged while it waited: the class that stayed waits too */
  iso_code code = g->analysis.repair(g->analysis.ctx, g, (eg_class){cls}, g->cls[cls].data, err);
  if (code) egi_queue_push(&g->repair, egi_find(g, cls));
  return code;
}

void *eg_data(const eg_graph *g, eg_class c) { return g->cls[egi_find(g, c.i)].data; }

void eg_set_data(eg_graph *g, eg_class c, void *data) {
  const uint32_t root = egi_find(g, c.i);
  void *old = g->cls[root].data;
  g->cls[root].data = data;
  if (old != data) drop(g, old);
  look_at_parents(g, root);
}
