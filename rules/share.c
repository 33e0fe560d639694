/* Equal parts of terms as one part. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "rules/rules.h"

typedef struct table {
  iso_arena *a;
  const rule_term **slot; /* open addressing; order never shows */
  uint64_t *hash;
  size_t cap, n;
} table;

/* Of a term whose children are shared already. */
static uint64_t hash_of(const rule_term *t) {
  const bool named =
      t->kind == RULE_OP || t->kind == RULE_STRING || t->kind == RULE_NAME || t->kind == RULE_EXPR;
  uint64_t h = iso_hash(&t->kind, sizeof t->kind, t->n);
  if (named) h = iso_hash(t->u.s, strlen(t->u.s), h);
  else if (t->kind != RULE_LIST && t->kind != RULE_NONE) h = iso_hash(&t->u.i, sizeof t->u.i, h);
  return t->n ? iso_hash(t->child, t->n * sizeof *t->child, h) : h;
}

static bool grow(table *s) {
  const table old = *s;
  s->cap = old.cap ? 2 * old.cap : 256;
  s->slot = calloc(s->cap, sizeof *s->slot);
  s->hash = calloc(s->cap, sizeof *s->hash);
  for (size_t i = 0; i < old.cap && s->slot && s->hash; i++) {
    if (!old.slot[i]) continue;
    size_t k = old.hash[i] & (s->cap - 1);
    while (s->slot[k]) k = (k + 1) & (s->cap - 1);
    s->slot[k] = old.slot[i], s->hash[k] = old.hash[i];
  }
  free(old.slot);
  free(old.hash);
  return s->slot && s->hash;
}

/* The one term that is t, which comes in where there is none yet. NULL: no memory. */
static const rule_term *the_one(table *s, const rule_term *t) {
  if (2 * (s->n + 1) > s->cap && !grow(s)) return NULL;
  const uint64_t h = hash_of(t);
  size_t k = h & (s->cap - 1);
  for (; s->slot[k]; k = (k + 1) & (s->cap - 1))
    if (s->hash[k] == h && rule_term_eq(s->slot[k], t)) return s->slot[k];
  rule_term *copy = iso_arena_alloc(s->a, sizeof *copy);
  const rule_term **child = t->n ? iso_arena_alloc(s->a, t->n * sizeof *child) : NULL;
  if (!copy || (t->n && !child)) return NULL;
  *copy = *t;
  if (t->n) memcpy(child, t->child, t->n * sizeof *child), copy->child = child;
  s->slot[k] = copy, s->hash[k] = h;
  s->n++;
  return copy;
}

static const rule_term *shared(table *s, const rule_term *t) {
  enum { SMALL = 16 };
  const rule_term *small[SMALL], **child = t->n <= SMALL ? small : malloc(t->n * sizeof *child);
  rule_term with = *t;
  bool ok = child != NULL;
  for (uint32_t i = 0; i < t->n && ok; i++) ok = (child[i] = shared(s, t->child[i])) != NULL;
  with.child = t->n ? child : t->child;
  const rule_term *r = ok ? the_one(s, &with) : NULL;
  if (child != small) free(child);
  return r;
}

bool rule_share(iso_arena *a, rule *r) {
  table s = {.a = a};
  const rule_term *lhs = shared(&s, r->lhs), *rhs = lhs ? shared(&s, r->rhs) : NULL;
  free(s.slot);
  free(s.hash);
  if (rhs) r->lhs = lhs, r->rhs = rhs;
  return rhs != NULL;
}
