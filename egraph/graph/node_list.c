/* Sets of e-nodes as lists: appended to without order, put in order when somebody looks.
 *
 * Joining appends the shorter to the longer, so an e-node moves at most log2(n) times. A list
 * remembers how far it is in order; sorting then sorts the rest and merges the two, which costs
 * little more than the walk that follows it. */
#include <stdlib.h>
#include <string.h>

#include "egraph/graph/graph_int.h"

enum { IN_PLACE = 2 };

static size_t room(const egi_list *l) { return l->cap ? l->cap : IN_PLACE; }

eg_node *egi_list_items(egi_list *l) { return l->cap ? l->at.many : l->at.few; }

bool egi_list_reserve(egi_list *l, size_t n) {
  if (n <= room(l)) return true;
  size_t cap = 2 * room(l);
  while (cap < n) cap *= 2;
  if (cap > UINT32_MAX) return false;
  eg_node *p = realloc(l->cap ? l->at.many : NULL, cap * sizeof *p);
  if (!p) return false;
  if (!l->cap) memcpy(p, l->at.few, sizeof l->at.few);
  l->at.many = p;
  l->cap = (uint32_t)cap;
  return true;
}

void egi_list_push(egi_list *l, uint32_t node) {
  eg_node *p = egi_list_items(l);
  if (l->sorted == l->n && (l->n == 0 || p[l->n - 1].i < node)) l->sorted++;
  p[l->n++] = (eg_node){node};
}

static int by_id(const void *a, const void *b) {
  uint32_t x = ((const eg_node *)a)->i, y = ((const eg_node *)b)->i;
  return (x > y) - (x < y);
}

/* Merge the ordered p[0, m) and p[m, n) from the back. Returns: false where there is no memory for
 * the second part. */
static bool merge_tail(eg_node *p, size_t m, size_t n) {
  eg_node *tail = malloc((n - m) * sizeof *tail);
  if (!tail) return false;
  memcpy(tail, p + m, (n - m) * sizeof *tail);
  for (size_t t = n - m, i = m, to = n; t > 0;)
    p[--to] = i > 0 && p[i - 1].i > tail[t - 1].i ? p[--i] : tail[--t];
  free(tail);
  return true;
}

eg_node *egi_list_sort(egi_list *l) {
  eg_node *p = egi_list_items(l);
  if (l->sorted == l->n) return p;
  qsort(p + l->sorted, l->n - l->sorted, sizeof *p, by_id);
  if (l->sorted > 0 && !merge_tail(p, l->sorted, l->n)) qsort(p, l->n, sizeof *p, by_id);
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->n; i++)
    if (n == 0 || p[n - 1].i != p[i].i) p[n++] = p[i];
  l->n = l->sorted = n;
  return p;
}

bool egi_list_join_reserve(egi_list *a, egi_list *b) {
  return egi_list_reserve(a->n >= b->n ? a : b, (size_t)a->n + b->n);
}

/* Sorting may have made a list shorter since room was taken, so room decides before length. */
void egi_list_join(egi_list *into, egi_list *from) {
  const size_t n = (size_t)into->n + from->n;
  if (room(into) < n || (from->n > into->n && room(from) >= n)) {
    egi_list t = *into;
    *into = *from;
    *from = t;
  }
  const eg_node *p = egi_list_items(from);
  for (uint32_t i = 0; i < from->n; i++) egi_list_push(into, p[i].i);
  egi_list_fini(from);
}

void egi_list_fini(egi_list *l) {
  if (l->cap) free(l->at.many);
  *l = (egi_list){0};
}
