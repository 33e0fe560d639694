/* A table from strings to indices: node ids and tensor names. Linear probing, at most half full,
 * never shrinks. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "egraph/base/hash.h"

static size_t slot_of(const cap_names *t, const char *key) {
  size_t i = (size_t)iso_hash(key, strlen(key), 0) & (t->cap - 1);
  while (t->key[i] != NULL && strcmp(t->key[i], key) != 0) i = (i + 1) & (t->cap - 1);
  return i;
}

static bool resize(cap_names *t, size_t cap) {
  cap_names fresh = {calloc(cap, sizeof *fresh.key), calloc(cap, sizeof *fresh.index), cap, t->n};
  if (fresh.key == NULL || fresh.index == NULL) {
    cap_names_fini(&fresh);
    return false;
  }
  for (size_t i = 0; i < t->cap; i++)
    if (t->key[i] != NULL) {
      size_t j = slot_of(&fresh, t->key[i]);
      fresh.key[j] = t->key[i];
      fresh.index[j] = t->index[i];
    }
  cap_names_fini(t);
  *t = fresh;
  return true;
}

size_t cap_names_find(const cap_names *t, const char *key) {
  if (t->cap == 0) return CAP_NO_INDEX;
  size_t i = slot_of(t, key);
  return t->key[i] != NULL ? t->index[i] : CAP_NO_INDEX;
}

bool cap_names_add(cap_names *t, const char *key, size_t index) {
  if (2 * (t->n + 1) > t->cap && !resize(t, t->cap > 0 ? 2 * t->cap : 16)) return false;
  size_t i = slot_of(t, key);
  t->key[i] = key;
  t->index[i] = index;
  t->n++;
  return true;
}

void cap_names_fini(cap_names *t) {
  free(t->key);
  free(t->index);
  memset(t, 0, sizeof *t);
}
