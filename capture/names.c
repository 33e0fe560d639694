/* A table from strings to indices: node ids and tensor names. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "egraph/base/table.h"

struct cap_name {
  const char *key;
  size_t index;
  UT_hash_handle hh;
};

static cap_name *find(const cap_names *t, const char *key) {
  cap_name *e;
  HASH_FIND_STR(t->first, key, e);
  return e;
}

size_t cap_names_find(const cap_names *t, const char *key) {
  const cap_name *e = find(t, key);
  return e ? e->index : CAP_NO_INDEX;
}

bool cap_names_add(cap_names *t, const char *key, size_t index) {
  cap_name *e = calloc(1, sizeof *e);
  if (!e) return false;
  e->key = key;
  e->index = index;
  HASH_ADD_KEYPTR(hh, t->first, e->key, strlen(e->key), e);
  if (e->hh.tbl) return true;
  free(e);
  return false;
}

void cap_names_fini(cap_names *t) {
  cap_name *e, *next;
  HASH_ITER(hh, t->first, e, next) {
    HASH_DEL(t->first, e);
    free(e);
  }
}
