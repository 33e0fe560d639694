/* Hash tables from words to ids: e-nodes by key (the hashcons) and symbols by name.
 *
 * Slots hold an id and 32 bits of the hash; the words stay with their owner. Removal shifts the
 * entries behind it back (Knuth, TAOCP 3, 6.4, algorithm R), so there are no tombstones, and
 * removing then inserting needs no memory: rebuild relies on that. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/graph/graph_int.h"

bool egi_table_reserve(egi_table *t) {
  if (2 * (t->n + 1) <= t->n_slots) return true;
  size_t n_slots = t->n_slots ? 2 * t->n_slots : 16;
  if (n_slots > SIZE_MAX / sizeof(egi_slot)) return false;
  egi_table wide = {malloc(n_slots * sizeof(egi_slot)), 0, n_slots};
  if (!wide.slot) return false;
  memset(wide.slot, 0xff, n_slots * sizeof(egi_slot)); /* EG_NONE */
  for (size_t i = 0; i < t->n_slots; i++)
    if (t->slot[i].id != EG_NONE) egi_table_insert(&wide, t->slot[i].hash, t->slot[i].id);
  free(t->slot);
  *t = wide;
  return true;
}

void egi_table_insert(egi_table *t, uint32_t hash, uint32_t id) {
  const size_t mask = t->n_slots - 1;
  size_t i = hash & mask;
  while (t->slot[i].id != EG_NONE) i = (i + 1) & mask;
  t->slot[i] = (egi_slot){hash, id};
  t->n++;
}

void egi_table_remove(egi_table *t, uint32_t hash, uint32_t id) {
  const size_t mask = t->n_slots - 1;
  size_t hole = hash & mask;
  while (t->slot[hole].id != id) {
    assert(t->slot[hole].id != EG_NONE);
    hole = (hole + 1) & mask;
  }
  for (size_t i = (hole + 1) & mask; t->slot[i].id != EG_NONE; i = (i + 1) & mask)
    if (((i - t->slot[i].hash) & mask) >=
        ((i - hole) & mask)) { /* its home is not behind the hole */
      t->slot[hole] = t->slot[i];
      hole = i;
    }
  t->slot[hole].id = EG_NONE;
  t->n--;
}

uint32_t egi_key_hash(const uint32_t *key, size_t n_words) {
  return (uint32_t)iso_hash(key, n_words * sizeof *key, 0);
}

uint32_t egi_hashcons_find(const eg_graph *g, const uint32_t *key, size_t n_words, uint32_t hash) {
  const egi_table *t = &g->hashcons;
  if (!t->n_slots) return EG_NONE;
  const size_t mask = t->n_slots - 1;
  for (size_t i = hash & mask; t->slot[i].id != EG_NONE; i = (i + 1) & mask) {
    if (t->slot[i].hash != hash) continue;
    const egi_node *e = &g->node[t->slot[i].id];
    if (e->arity + (size_t)1 == n_words && !memcmp(g->key + e->key, key, n_words * sizeof *key))
      return t->slot[i].id;
  }
  return EG_NONE;
}

uint32_t egi_symbol_find(const eg_graph *g, const char *name, size_t n, uint32_t hash) {
  const egi_table *t = &g->symbols;
  if (!t->n_slots) return EG_NONE;
  const size_t mask = t->n_slots - 1;
  for (size_t i = hash & mask; t->slot[i].id != EG_NONE; i = (i + 1) & mask) {
    const egi_symbol *s = &g->symbol[t->slot[i].id];
    if (t->slot[i].hash == hash && s->n == n && (n == 0 || !memcmp(s->name, name, n)))
      return t->slot[i].id;
  }
  return EG_NONE;
}
