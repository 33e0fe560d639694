/* Long lists in groups by operator.
 *
 * A class with thousands of rows, or of places above it, may have few of the operator that a pattern asks for. The
 * first time that a search comes to such a list it is relinked so that each operator's members are side by side, and the
 * first of each group is noted; from then on only the group is walked, and what was pushed in front of the list since.
 * When that has become much, the list is grouped again. Nobody walks a list while it is relinked: that is decided by
 * the weight of its class, which no search changes, so it happens when a search first comes to it. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/query_int.h"

enum { MAX_GROUPS = 64, MAX_GARBAGE = 1 << 16 };

void egi_groups_reset(egi_groups *g) {
  if (g->n_cells) memset(g->cell, 0xff, g->n_cells * sizeof *g->cell);
  g->n_used = g->n_group = g->n_garbage = 0;
}

void egi_groups_fini(egi_groups *g) {
  free(g->cell);
  free(g->group);
  *g = (egi_groups){0};
}

static egi_group_cell *find(const egi_groups *g, uint32_t list) {
  const size_t mask = g->n_cells - 1;
  size_t i = (size_t)((list * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
  while (g->cell[i].list != EG_NONE && g->cell[i].list != list) i = (i + 1) & mask;
  return &g->cell[i];
}

static bool reserve(egi_groups *g) {
  if (!iso_grow(g->group, g->cap_group, g->n_group + MAX_GROUPS + 1)) return false;
  if (2 * (g->n_used + 1) <= g->n_cells) return true;
  egi_groups old = *g;
  g->n_cells = g->n_cells ? 2 * g->n_cells : 256;
  g->cell = malloc(g->n_cells * sizeof *g->cell);
  if (!g->cell) {
    *g = old;
    return false;
  }
  memset(g->cell, 0xff, g->n_cells * sizeof *g->cell);
  for (size_t i = 0; i < old.n_cells; i++)
    if (old.cell[i].list != EG_NONE) *find(g, old.cell[i].list) = old.cell[i];
  free(old.cell);
  return true;
}

/* Relink the list and note its groups behind the others. Leaves are one group, which nobody asks for.
 * Returns: how many; 0 where there are more than MAX_GROUPS or none, and then it has to be walked. */
static uint32_t group(eg_sat *s, egi_groups *g, uint32_t *first, bool places) {
  const uint32_t link = places ? 1 : ROW_NEXT;
  uint32_t *w = s->w, tail[MAX_GROUPS], n = 0;
  egi_group *out = g->group + g->n_group;
  bool too_many = false;
  for (uint32_t at = *first; at;) {
    const uint32_t next = w[at + link], row = places ? egi_place_row(w, at) : at, head = w[row + ROW_HEAD];
    if (places ? !(head & ROW_DEAD) : egi_row_shown(head)) {
      const uint32_t op = s->op[head & ROW_OP].arity ? head & ROW_OP : EG_NONE - 1;
      uint32_t i = 0;
      while (i < n && out[i].op != op) i++;
      if (i == MAX_GROUPS) {
        too_many = true;
        i--;
      } else if (i == n) {
        out[n] = (egi_group){op, at};
        tail[n++] = at;
      }
      w[tail[i] + link] = at;
      tail[i] = at;
    }
    at = next;
  }
  *first = n ? out[0].first : 0;
  for (uint32_t i = 0; i < n; i++) w[tail[i] + link] = i + 1 < n ? out[i + 1].first : 0;
  return too_many ? 0 : n;
}

/* When a search comes to a list for the first time: would walking what is in front of the groups, as often as the last
 * search came, cost more than grouping? */
static bool stale(const eg_sat *s, const egi_groups *g, egi_group_cell *c) {
  if (c->search == g->search) {
    c->visits++;
    return false;
  }
  const uint64_t now = s->cls[c->list / 2].weight, visits = c->visits;
  c->search = g->search;
  c->visits = 1;
  return now > c->weight && visits * (now - c->weight) > now;
}

uint32_t egi_group_first(eg_sat *s, egi_groups *g, uint32_t c, bool places, uint32_t op, uint32_t *from) {
  uint32_t *first = places ? &s->cls[c].places : &s->cls[c].rows;
  const uint32_t list = 2 * c + places;
  egi_group_cell *cell = g->n_cells ? find(g, list) : NULL;
  if (!cell || cell->list == EG_NONE || stale(s, g, cell)) {
    if (g->off || !reserve(g)) {
      g->off = true; /* for good, so that what is walked is not relinked later */
      return *from = 0;
    }
    cell = find(g, list);
    if (cell->list == EG_NONE) g->n_used++;
    else g->n_garbage += cell->n;
    const uint32_t n = group(s, g, first, places);
    *cell = (egi_group_cell){.list = list, .at = (uint32_t)g->n_group, .n = n, .first = n ? *first : 0,
                             .weight = s->cls[c].weight, .search = g->search, .visits = 1};
    g->n_group += n;
  }
  *from = cell->first;
  for (const egi_group *x = g->group + cell->at, *end = x + cell->n; x < end; x++)
    if (x->op == op) return x->first;
  return 0;
}

void egi_group_forget(egi_groups *g, uint32_t c) {
  egi_group_cell *cell = g->n_cells ? find(g, 2 * c) : NULL;
  if (!cell || cell->list == EG_NONE) return;
  g->n_garbage += cell->n;
  cell->n = cell->first = 0;
}

/* Before a search: notes that nobody needs any more are thrown away with the others. */
void egi_groups_tidy(egi_groups *g) {
  g->search++;
  if (g->n_garbage > MAX_GARBAGE && g->n_garbage > g->n_group / 2) egi_groups_reset(g);
}
