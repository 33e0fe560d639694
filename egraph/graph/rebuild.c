/* Congruence restored from the worklist, and the queues behind it (Willsey et al., egg, POPL 2021,
 * section 3).
 *
 * Keys first, then data, then repairs: a callback sees congruence restored. Each item leaves its
 * queue in the step that handles it, so a rebuild that ran out of memory can be called again and
 * goes on where it stopped. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/graph/graph_int.h"

void egi_queue_init(egi_queue *q) { *q = (egi_queue){.head = EG_NONE, .tail = EG_NONE}; }

bool egi_queue_reserve(egi_queue *q, size_t n) {
  const size_t old = q->cap;
  if (!iso_grow(q->link, q->cap, n)) return false;
  if (q->cap > old) memset(q->link + old, 0xff, (q->cap - old) * sizeof *q->link); /* EG_NONE */
  return true;
}

void egi_queue_push(egi_queue *q, uint32_t id) {
  if (q->link[id] != EG_NONE) return;
  q->link[id] = id;
  if (q->head == EG_NONE) q->head = id;
  else q->link[q->tail] = id;
  q->tail = id;
}

static uint32_t queue_pop(egi_queue *q) {
  const uint32_t id = q->head;
  q->head = q->link[id] == id ? EG_NONE : q->link[id];
  q->link[id] = EG_NONE;
  return id;
}

/* Bring the key of the first stale e-node up to date. Returns: false when there is no memory, and
 * then it stays first. */
static bool restore_first(eg_graph *g) {
  const uint32_t p = g->stale.head;
  egi_node *e = &g->node[p];
  uint32_t *old = g->key + e->key, *key = g->words;
  const size_t n_words = (size_t)e->arity + 1;
  bool same = true;
  key[0] = old[0];
  for (size_t k = 1; k < n_words; k++) {
    key[k] = egi_find(g, old[k]);
    same = same && key[k] == old[k];
  }
  if (e->twin || same) {
    queue_pop(&g->stale);
    return true;
  }
  const uint32_t hash = egi_key_hash(key, n_words), q = egi_hashcons_find(g, key, n_words, hash);
  const bool merge = q != EG_NONE && egi_find(g, p) != egi_find(g, q);
  if (merge && !egi_union_reserve(g, p, q)) return false;

  queue_pop(&g->stale);
  egi_table_remove(&g->hashcons, egi_key_hash(old, n_words), p);
  if (q == EG_NONE) {
    memcpy(old, key, n_words * sizeof *key);
    egi_table_insert(&g->hashcons, hash, p);
  } else {
    /* q's key is made of canonical ids, so the two are congruent now, whether or not q is queued
     * itself. */
    e->twin = true;
  }
  if (merge) egi_union(g, p, q, (eg_why){EG_WHY_CONGRUENCE, 0});
  return true;
}

iso_code eg_rebuild(eg_graph *g, iso_error *err) {
  for (;;) {
    if (g->stale.head != EG_NONE) {
      if (!restore_first(g))
        return iso_fail(err, ISO_NOMEM, "out of memory while restoring congruence");
    } else if (g->look.head != EG_NONE) {
      egi_data_look(g, queue_pop(&g->look));
    } else if (g->repair.head != EG_NONE) {
      iso_code code = egi_data_repair(g, queue_pop(&g->repair), err);
      if (code) return code;
    } else {
      return ISO_OK;
    }
  }
}
