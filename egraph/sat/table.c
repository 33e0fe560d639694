/* The table of rows: buckets of one cache line, twelve rows each, filled to five sixths.
 *
 * A bucket has eight bits of each row's hash, compared all at once, so a probe is one miss, a probe
 * that finds nothing hardly ever touches the arena, and a row costs six to thirteen bytes. Where a
 * bucket was full a row goes to the next one, and each bucket that it passed counts it, so that a
 * probe stops where nothing passed and removal leaves no tombstones (Bronson and Shi, Facebook's
 * F14, 2019). Hashes are not kept: growing takes them from the arena, read from front to back, and
 * so needs no second table. */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/sat_int.h"

/* Small tables grow by more, as rows are put in anew each time. */
enum { AHEAD = 16, FIRST = 32, SMALL = 1 << 11 };

/* All rows of the arena that are alive; of a far table some hashes ahead, so that misses overlap.
 */
static void refill(eg_sat *s) {
  const size_t mask = s->n_buckets - 1;
  const bool near = s->n_buckets < EGI_NEAR;
  uint32_t row[AHEAD], hash[AHEAD];
  size_t n = 0;
  for (size_t r = 1; r < s->n_w;) {
    const uint32_t *w = s->w + r, op = w[ROW_HEAD] & ROW_OP, arity = s->op[op].arity,
                   at = (uint32_t)r;
    r += egi_row_words(arity);
    if (w[ROW_HEAD] & ROW_DEAD) continue;
    uint64_t h = egi_mix_op(op);
    for (uint32_t k = 0; k < arity; k++) h = egi_mix(h, w[ROW_KIDS + 2 * k]);
    if (near) {
      egi_bucket_put(s->bucket, mask, at, egi_mix_end(h));
      continue;
    }
    const size_t k = n++ % AHEAD;
    if (n > AHEAD) egi_bucket_put(s->bucket, mask, row[k], hash[k]);
    row[k] = at;
    hash[k] = egi_mix_end(h);
    __builtin_prefetch(&s->bucket[hash[k] & mask], 1);
  }
  for (size_t k = 0; k < n && k < AHEAD; k++) egi_bucket_put(s->bucket, mask, row[k], hash[k]);
}

bool egi_table_grow(eg_sat *s, size_t n) {
  const size_t need = s->n_rows + n;
  size_t buckets = s->n_buckets ? s->n_buckets : FIRST;
  if (need <= s->n_buckets * EGI_FULL) return true;
  while (need > buckets * EGI_FULL) {
    if (buckets > SIZE_MAX / 4 / sizeof(egi_bucket)) return false;
    buckets *= buckets < SMALL ? 4 : 2;
  }
  const size_t bytes = buckets * sizeof(egi_bucket);
  const size_t room = bytes < EGI_LARGE ? bytes + EGI_LINE : bytes;
  if (!egi_grow_used(s->bucket_mem, s->cap_bucket, 0, room, true)) return false;
  s->bucket = (egi_bucket *)(void *)(s->bucket_mem + (-(uintptr_t)s->bucket_mem & (EGI_LINE - 1)));
  s->n_buckets = buckets;
  memset(s->bucket, 0, buckets * sizeof(egi_bucket));
  refill(s);
  return true;
}

uint32_t egi_row_find(const eg_sat *s, uint32_t op, const uint32_t *child, uint32_t n,
                      uint32_t hash) {
  return s->n_buckets ? egi_row_find_in(s, op, child, n, hash) : 0;
}

/* The bucket with a row; `slot` is where in it. Where `pass` is set, buckets on the way count one
 * row less. */
static egi_bucket *locate(eg_sat *s, uint32_t row, uint32_t hash, int *slot, bool pass) {
  const size_t mask = s->n_buckets - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    egi_bucket *b = &s->bucket[i];
    for (uint32_t m = egi_bucket_match(b, egi_tag(hash)); m; m &= m - 1)
      if (b->row[ *slot = __builtin_ctz(m)] == row) return b;
    ISO_CHECK(b->passed);
    if (pass) b->passed--;
  }
}

void egi_row_remove(eg_sat *s, uint32_t row, uint32_t hash) {
  int slot;
  locate(s, row, hash, &slot, true)->tag[slot] = 0;
  s->n_rows--;
}

void egi_row_replace(eg_sat *s, uint32_t row, uint32_t by, uint32_t hash) {
  int slot;
  egi_bucket *b = locate(s, row, hash, &slot, false);
  b->row[slot] = by;
}

size_t egi_table_count(const eg_sat *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_buckets; i++)
    for (int k = 0; k < EGI_BUCKET; k++) n += s->bucket[i].tag[k] != 0;
  return n;
}
