#include "rules/memo.h"

#include "egraph/base/table.h"

typedef struct place {
  const rule_term *term;
  const void *with;
} place;

typedef struct rule_memo_entry {
  place at;
  const rule_term *result;
  UT_hash_handle hh;
} entry;

const rule_term *rule_memo_find(const rule_memo *m, const rule_term *t, const void *with) {
  const place at = {t, with};
  entry *e;
  HASH_FIND(hh, m->entry, &at, sizeof at, e);
  return e ? e->result : NULL;
}

bool rule_memo_put(rule_memo *m, const rule_term *t, const void *with, const rule_term *result) {
  entry *e = iso_arena_alloc(&m->arena, sizeof *e);
  if (!e) return false;
  *e = (entry){.at = {t, with}, .result = result};
  HASH_ADD(hh, m->entry, at, sizeof e->at, e);
  return e->hh.tbl != NULL;
}

void rule_memo_free(rule_memo *m) {
  HASH_CLEAR(hh, m->entry);
  iso_arena_fini(&m->arena);
}
