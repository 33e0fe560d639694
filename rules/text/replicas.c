/* Which outputs belong together, by their names. Models of many layers on many ranks have tens of
 * thousands of them: names are sorted once, and sought by halving. */
#include "rules/replicas.h"

#include <stdlib.h>
#include <string.h>

size_t rule_replica_stem(const char *name) {
  static const char mark[] = "_rank";
  const size_t n = strlen(name), m = sizeof mark - 1;
  size_t i = n;
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  return i < n && i > m && memcmp(name + i - m, mark, m) == 0 ? i - m : 0;
}

typedef struct named {
  const char *name;
  size_t at;
} named;

static int by_name(const void *pa, const void *pb) {
  const named *a = pa, *b = pb;
  const int c = strcmp(a->name, b->name);
  return c ? c : a->at < b->at ? -1 : a->at > b->at;
}

/* How the first `n` characters of `text`, as a text, compare with `name`. */
static int compare_stem(const char *text, size_t n, const char *name) {
  const int c = strncmp(text, name, n);
  return c ? c : name[n] ? -1 : 0;
}

static size_t find(const rule_replicas *r, const char *text, size_t n) {
  size_t low = 0, high = r->n;
  while (low < high) {
    const size_t mid = low + (high - low) / 2;
    if (compare_stem(text, n, r->name[r->sorted[mid]]) > 0) low = mid + 1;
    else high = mid;
  }
  const bool found = low < r->n && compare_stem(text, n, r->name[r->sorted[low]]) == 0;
  return found ? r->sorted[low] : RULE_NO_OUTPUT;
}

static void chain(rule_replicas *r) {
  for (size_t i = 0; i < r->n; i++) {
    const size_t stem = rule_replica_stem(r->name[i]);
    const size_t head = stem ? find(r, r->name[i], stem) : RULE_NO_OUTPUT;
    r->head[i] = head == RULE_NO_OUTPUT ? i : head;
    r->first[i] = r->next[i] = RULE_NO_OUTPUT;
  }
  for (size_t i = r->n; i-- > 0;) {
    const size_t head = r->head[i];
    if (head == i) continue;
    r->next[i] = r->first[head];
    r->first[head] = i;
  }
}

iso_code rule_replicas_init(rule_replicas *r, size_t n,
                            const char *(*name_at)(const void *outputs, size_t i),
                            const void *outputs, iso_error *err) {
  *r = (rule_replicas){.n = n,
                       .name = calloc(n + 1, sizeof *r->name),
                       .head = calloc(n + 1, sizeof *r->head),
                       .first = calloc(n + 1, sizeof *r->first),
                       .next = calloc(n + 1, sizeof *r->next),
                       .sorted = calloc(n + 1, sizeof *r->sorted)};
  named *of = calloc(n + 1, sizeof *of);
  const bool fine = r->name && r->head && r->first && r->next && r->sorted && of;
  for (size_t i = 0; i < n && fine; i++) {
    r->name[i] = name_at(outputs, i);
    of[i] = (named){r->name[i], i};
  }
  if (fine) qsort(of, n, sizeof *of, by_name);
  for (size_t i = 0; i < n && fine; i++) r->sorted[i] = of[i].at;
  if (fine) chain(r);
  free(of);
  return fine ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

size_t rule_replicas_find(const rule_replicas *r, const char *name) {
  return find(r, name, strlen(name));
}

void rule_replicas_fini(rule_replicas *r) {
  free(r->name);
  free(r->head);
  free(r->first);
  free(r->next);
  free(r->sorted);
  *r = (rule_replicas){0};
}
