/* Equal parts of terms as one part. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/table.h"
#include "rules/memo.h"

/* A subterm, keyed by kind, children (each shared already) and value. */
typedef struct part {
  const rule_term *term;
  UT_hash_handle hh;
  char key[];
} part;

typedef struct sharing {
  iso_arena *a;
  iso_arena own; /* of parts */
  part *table;
  rule_memo done; /* terms that have been through here */
} sharing;

static bool has_text(const rule_term *t) {
  return t->kind == RULE_OP || t->kind == RULE_STRING || t->kind == RULE_NAME ||
         t->kind == RULE_EXPR;
}

/* The key of a term whose children are shared already, in memory of the parts. NULL: no memory. */
static part *keyed(sharing *s, const rule_term *t, size_t *n) {
  const bool plain = t->kind != RULE_LIST && t->kind != RULE_NONE;
  const void *value = has_text(t) ? (const void *)t->u.s : &t->u.i;
  const size_t size = has_text(t) ? strlen(t->u.s) + 1
                      : plain     ? sizeof t->u.i
                                  : 0,
               children = t->n * sizeof *t->child;
  const uint32_t head[2] = {(uint32_t)t->kind, t->n};
  *n = sizeof head + children + size;
  part *p = iso_arena_alloc(&s->own, sizeof *p + *n);
  if (!p) return NULL;
  char *to = mempcpy(p->key, head, sizeof head);
  if (children) to = mempcpy(to, t->child, children);
  memcpy(to, value, size);
  return p;
}

/* The one term that is t, which comes in where there is none yet. NULL: no memory. */
static const rule_term *the_one(sharing *s, const rule_term *t) {
  size_t n;
  part *p = keyed(s, t, &n), *had;
  if (!p) return NULL;
  HASH_FIND(hh, s->table, p->key, n, had);
  if (had) return had->term;
  rule_term *copy = iso_arena_alloc(s->a, sizeof *copy);
  const rule_term **child = t->n ? iso_arena_alloc(s->a, t->n * sizeof *child) : NULL;
  if (!copy || (t->n && !child)) return NULL;
  *copy = *t;
  if (t->n) memcpy(child, t->child, t->n * sizeof *child), copy->child = child;
  p->term = copy;
  HASH_ADD(hh, s->table, key, n, p);
  return p->hh.tbl ? copy : NULL;
}

static const rule_term *shared(sharing *s, const rule_term *t) {
  enum { SMALL = 16 };
  const rule_term *before = t->n ? rule_memo_find(&s->done, t, NULL) : NULL;
  if (before) return before;
  const rule_term *small[SMALL], **child = t->n <= SMALL ? small : malloc(t->n * sizeof *child);
  rule_term with = *t;
  bool ok = child != NULL;
  for (uint32_t i = 0; i < t->n && ok; i++) ok = (child[i] = shared(s, t->child[i])) != NULL;
  with.child = t->n ? child : t->child;
  const rule_term *r = ok ? the_one(s, &with) : NULL;
  if (child != small) free(child);
  return r && (t->n == 0 || rule_memo_put(&s->done, t, NULL, r)) ? r : NULL;
}

bool rule_share(iso_arena *a, rule *r) {
  sharing s = {.a = a};
  const rule_term *lhs = shared(&s, r->lhs), *rhs = lhs ? shared(&s, r->rhs) : NULL;
  HASH_CLEAR(hh, s.table);
  iso_arena_fini(&s.own);
  rule_memo_free(&s.done);
  if (rhs) r->lhs = lhs, r->rhs = rhs;
  return rhs != NULL;
}
