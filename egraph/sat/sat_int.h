/* Private to egraph/: the compact e-graph behind eg_sat.
 *
 * A row is an e-node: a run of words in one arena, named by the word at which it starts.
 *
 *     NEXT the next row of its e-class, 0 after the last
 *     CLASS  its e-class, canonical or not
 *     HEAD   IS_HEAD, flags, operator; the only word of a row with its highest bit set
 *     then for each child the pair
 *     CHILD  an e-class
 *     LINK   the next place where that class is a child
 *
 * A place is the word of a CHILD; its row is found by walking back to the next head. Lists need no
 * memory of their own, so neither a merge nor a rebuild can fail for want of it, and adding a row
 * touches nothing but the row and the records of its classes.
 *
 * Invariants between rebuilds (checked by eg_sat_check)
 *   S1  the table holds exactly the rows that are not dead, each under the hash of the children
 *       that it has.
 *   S2  the children of a row that is not dead are canonical, and no two such rows are equal.
 *   S3  a row that is neither dead nor hidden is in the list of its class; the place of each child
 *       of a row that is not dead is in the list of that child's class.
 *   S4  a class that is not canonical has no rows and no places.
 *
 * Before a rebuild S2 to S4 may be broken for rows and classes that a `dirty` class reaches. */
#ifndef EGRAPH_SAT_SAT_INT_H
#define EGRAPH_SAT_SAT_INT_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <string.h>

#include "egraph/base/arena.h"
#include "egraph/base/big.h"
#include "egraph/egraph.h"

enum { ROW_NEXT, ROW_CLASS, ROW_HEAD, ROW_KIDS };
#define ROW_IS_HEAD 0x80000000u
#define ROW_DEAD 0x40000000u   /* equal to another row */
#define ROW_FRESH 0x20000000u  /* new or changed since the last search that marked */
#define ROW_HIDDEN 0x10000000u /* pruned: in the table, in no class */
#define ROW_OP 0x0fffffffu
#define ROW_MAX 0x7ffffff0u /* words in the arena */

/* A class. Places and rows are below 2^31, so 0 and EG_NONE are free: word 0 is not used. */
typedef struct egi_cls {
  uint32_t rows;       /* the first row, or 0 */
  uint32_t places;     /* the first place, or 0 */
  uint32_t weight;     /* rows and places */
  uint16_t has, above; /* bits of the operators that rows, and rows with a place, may have: no row
                          has an operator whose bit is 0 */
} egi_cls;

typedef struct egi_op {
  const char *name;
  size_t n_name;
  uint32_t arity, n_rows; /* rows in classes */
  uint16_t bit;           /* of those with children, in turn */
  uint32_t slot;          /* the first of as many numbers as it has children */
  uint32_t used;          /* bits of the ways in which programs come to its rows */
  uint32_t leaf;          /* the row where the arity is 0; 0 before it is added */
  uint32_t *row; /* rows in order of the arena, dead ones too, up to `indexed` of the graph */
  size_t n_row, cap_row;
  uint32_t *fresh; /* the rows that were marked fresh at the last search */
  size_t n_fresh, cap_fresh;
} egi_op;

/* Down from a class; up from the k-th child, the last bit being that of all from there on. */
enum { EGI_USED_DOWN = 1 };
static inline uint32_t egi_used_up(uint32_t k) { return 2u << (k < 30 ? k : 30); }

/* One cache line: see table.c. With less than EGI_NEAR of them, looking up waits for nothing. */
enum { EGI_BUCKET = 12, EGI_FULL = 10, EGI_NEAR = 1 << 12 };
typedef struct egi_bucket {
  uint8_t tag[EGI_BUCKET]; /* of each row's hash; 0: free */
  uint32_t passed;         /* rows that belong before or here and are further on */
  uint32_t row[EGI_BUCKET];
} egi_bucket;

/* Words of the arena from a row on, up to another one. */
typedef struct egi_span {
  size_t from, to;
} egi_span;

struct eg_sat {
  uint32_t *w; /* the arena of rows */
  size_t n_w, cap_w;
  egi_bucket *bucket; /* aligned, in bucket_mem */
  unsigned char *bucket_mem;
  size_t cap_bucket;
  size_t n_buckets, n_rows; /* buckets: 0 or a power of two; rows in the table */
  size_t n_hidden, n_dead;  /* hidden rows; words of dead rows */
  uint32_t
      *up; /* union-find: itself where canonical; apart from cls, as most look at nothing else */
  size_t cap_up;
  egi_cls *cls;
  size_t n_cls, cap_cls, n_merged;
  size_t room_words,
      room_classes; /* how far to fill without asking: the arena, and all arrays by class */
  uint32_t
      *dirty; /* classes that merged away and whose places are not repaired; room for all classes */
  size_t n_dirty, cap_dirty;
  bool track;  /* mark rows that change */
  bool lost;   /* a mark was lost for want of memory: the next search has to look at everything */
  bool marked; /* there may be marks */
  bool listed; /* `fresh` and those of the operators have all rows with a mark */
  uint32_t *fresh; /* rows marked since the last search */
  size_t n_fresh, cap_fresh;
  size_t indexed; /* words of the arena that the operators' lists cover */
  size_t seen;    /* words of the arena before which only rows in `fresh` are marked */
  egi_span *span; /* of a run, moved as the rows are */
  size_t n_span;
  uint64_t n_unions, n_added; /* since eg_sat_new */
  iso_arena names;
  egi_op *op;
  size_t n_ops, cap_op;
  uint32_t *op_cell;
  size_t n_inner; /* operators with children */
  size_t n_op_cells;
  eg_sat_analysis analysis;
  unsigned char *data; /* analysis.size bytes per class */
  size_t cap_data;
  /* Classes whose parents are to be looked at, and classes that are to be repaired: chains through
   * links by class. A link is EG_NONE where the class is not chained, and points to itself at the
   * end. */
  uint32_t look, repair, *look_next, *repair_next;
  size_t cap_look, cap_repair;
  void *scratch;  /* data of one class */
  eg_class *kids; /* as many as the largest arity, for callbacks */
  uint32_t *args; /* likewise, for building rows */
  uint32_t max_arity;
  struct egi_flat *flat; /* scratch of searches */
  uint32_t n_slots;
  struct egi_log *log; /* for explanations; NULL: none is kept */
};

/* ---- rows.c ---- */

/* One step without asking: most ids are canonical or one step away, in no order that a branch could
 * foretell. Requires: no other thread looks, or shortens paths. */
static inline uint32_t egi_sat_find(const eg_sat *s, uint32_t c) {
  uint32_t *up = s->up, p = up[c];
  if (up[p] == p) return p;
  while (up[c] != c) c = up[c] = up[up[c]];
  return c;
}
/* The same where threads search, or callers read the graph in threads of their own. They shorten
 * paths side by side: whatever one of them reads leads to the same end. An atomic load is an
 * instruction of its own, so the loops that change the graph do without. */
static inline uint32_t egi_up(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline uint32_t egi_shared_find(const eg_sat *s, uint32_t c) {
  uint32_t *up = s->up, p = egi_up(&up[c]);
  if (egi_up(&up[p]) == p) return p;
  while ((p = egi_up(&up[c])) != c) {
    p = egi_up(&up[p]);
    __atomic_store_n(&up[c], p, __ATOMIC_RELAXED);
    c = p;
  }
  return c;
}
static inline uint32_t egi_row_class(const eg_sat *s, uint32_t row) {
  return egi_shared_find(s, s->w[row + ROW_CLASS]);
}
static inline uint32_t egi_row_op(const eg_sat *s, uint32_t row) {
  return s->w[row + ROW_HEAD] & ROW_OP;
}
static inline uint32_t egi_row_child(const eg_sat *s, uint32_t row, uint32_t k) {
  return s->w[row + ROW_KIDS + 2 * k];
}
static inline size_t egi_row_words(uint32_t arity) { return ROW_KIDS + 2 * (size_t)arity; }
static inline bool egi_row_shown(uint32_t head) { return !(head & (ROW_DEAD | ROW_HIDDEN)); }
static inline uint32_t egi_place_row(const uint32_t *w, uint32_t place) {
  uint32_t at = place - 1;
  while (!(w[at] & ROW_IS_HEAD)) at -= 2;
  return at - ROW_HEAD;
}

/* The hash of an operator with children, taken in turn: products folded, whose high half depends on
 * all bits. */
static inline uint64_t egi_mix_op(uint32_t op) {
  return (uint64_t)op << 32 ^ UINT64_C(0xD6E8FEB86659FD93);
}
static inline uint64_t egi_mix(uint64_t h, uint32_t word) {
  const unsigned __int128 p = (unsigned __int128)(h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}
static inline uint32_t egi_mix_end(uint64_t h) { return (uint32_t)(h ^ h >> 32); }

static inline uint8_t egi_tag(uint32_t hash) { return (uint8_t)((hash >> 24) + !(hash >> 24)); }
/* Which slots have the tag: a bit each. */
static inline uint32_t egi_bucket_match(const egi_bucket *b, uint8_t tag) {
#ifdef __SSE2__
  const __m128i all = _mm_loadu_si128((const __m128i *)(const void *)b->tag);
  return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8((char)tag))) &
         ((1u << EGI_BUCKET) - 1);
#else
  uint32_t m = 0;
  for (int k = 0; k < EGI_BUCKET; k++) m |= (uint32_t)(b->tag[k] == tag) << k;
  return m;
#endif
}

/* Room for so many more rows of an arity, classes and places in the table. */
bool egi_rows_grow(eg_sat *s, size_t n, uint32_t arity);
static inline bool egi_rows_reserve(eg_sat *s, size_t n, uint32_t arity) {
  return (s->n_w + n * egi_row_words(arity) < s->room_words && s->n_cls + n <= s->room_classes &&
          s->n_rows + n <= s->n_buckets * EGI_FULL) ||
         egi_rows_grow(s, n, arity);
}
uint32_t egi_row_hash(const eg_sat *s, uint32_t row);
static inline bool egi_row_is(const eg_sat *s, uint32_t row, uint32_t op, const uint32_t *child,
                              uint32_t n) {
  const uint32_t *w = s->w + row;
  if ((w[ROW_HEAD] & ROW_OP) != op)
    return false; /* it may have fewer children, and be the last of the arena */
  bool same = true;
  for (uint32_t k = 0; k < n; k++) same &= w[ROW_KIDS + 2 * k] == child[k];
  return same;
}
/* Inlined where the arity is known. Requires: a table. */
static inline uint32_t egi_row_find_in(const eg_sat *s, uint32_t op, const uint32_t *child,
                                       uint32_t n, uint32_t hash) {
  const size_t mask = s->n_buckets - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const egi_bucket *b = &s->bucket[i];
    for (uint32_t m = egi_bucket_match(b, egi_tag(hash)); m; m &= m - 1) {
      const uint32_t row = b->row[__builtin_ctz(m)];
      if (egi_row_is(s, row, op, child, n)) return row;
    }
    if (!b->passed) return 0;
  }
}
/* The row that is equal, 0 if there is none. */
uint32_t egi_row_find(const eg_sat *s, uint32_t op, const uint32_t *child, uint32_t n,
                      uint32_t hash);
static inline void egi_bucket_put(egi_bucket *bucket, size_t mask, uint32_t row, uint32_t hash) {
  size_t i = hash & mask;
  uint32_t free_slots;
  while (!(free_slots = egi_bucket_match(&bucket[i], 0))) {
    bucket[i].passed++;
    i = (i + 1) & mask;
  }
  const int k = __builtin_ctz(free_slots);
  bucket[i].tag[k] = egi_tag(hash);
  bucket[i].row[k] = row;
}
static inline void egi_row_insert(eg_sat *s, uint32_t row, uint32_t hash) {
  egi_bucket_put(s->bucket, s->n_buckets - 1, row, hash);
  s->n_rows++;
}
static inline uint32_t egi_class_new(eg_sat *s) {
  const uint32_t c = (uint32_t)s->n_cls++;
  s->up[c] = c;
  s->cls[c] = (egi_cls){0};
  if (s->analysis.make) {
    memset(s->data + c * s->analysis.size, 0, s->analysis.size);
    s->look_next[c] = s->repair_next[c] = EG_NONE;
  }
  return c;
}
/* A new row in class `c`, or in a class of its own where `c` is EG_NONE. Children are canonical, no
 * equal row is there. Requires: reserved. */
static inline __attribute__((always_inline)) uint32_t egi_row_append_in(eg_sat *s, uint32_t op,
                                                                        const uint32_t *child,
                                                                        uint32_t n, uint32_t hash,
                                                                        uint32_t c) {
  const uint32_t row = (uint32_t)s->n_w;
  egi_op *o = &s->op[op];
  const uint16_t bit = o->bit;
  uint32_t *w = s->w;
  s->n_w += egi_row_words(n);
  if (c == EG_NONE) c = egi_class_new(s);
  w[row + ROW_CLASS] = c;
  /* An appended row is known to be fresh by where it lies: only changed rows need the list. */
  w[row + ROW_HEAD] = op | ROW_IS_HEAD | (s->track ? ROW_FRESH : 0);
  egi_cls *cls = s->cls;
  w[row + ROW_NEXT] = cls[c].rows;
  cls[c].rows = row;
  cls[c].weight++;
  cls[c].has |= bit;
  for (uint32_t k = 0; k < n; k++) {
    egi_cls *kid = &cls[child[k]];
    const uint32_t place = row + ROW_KIDS + 2 * k;
    w[place] = child[k];
    w[place + 1] = kid->places;
    kid->places = place;
    kid->weight++;
    kid->above |= bit;
  }
  egi_row_insert(s, row, hash);
  o->n_rows++;
  if (n == 0) o->leaf = row;
  s->n_added++;
  return row;
}
/* Not inlined: in a loop that mostly finds rows, it would take the registers. */
uint32_t egi_row_append(eg_sat *s, uint32_t op, const uint32_t *child, uint32_t n, uint32_t hash,
                        uint32_t c);
void egi_row_remove(eg_sat *s, uint32_t row, uint32_t hash);
void egi_row_replace(eg_sat *s, uint32_t row, uint32_t by, uint32_t hash); /* by an equal one */
bool egi_table_grow(eg_sat *s, size_t n); /* room for so many more rows */
size_t egi_table_count(const eg_sat *s);
/* Its row dies: it leaves the counts; lists drop it when they are walked. The caller has taken it
 * from the table. */
void egi_row_kill(eg_sat *s, uint32_t row);
void egi_row_mark(eg_sat *s, uint32_t row);

/* ---- flat.c ---- */
/* Lists that searches copied go: the graph is about to change, or to rest. During a search nothing
 * happens. */
void egi_flat_drop(eg_sat *s);

/* ---- compact.c ---- */
/* Dead rows out of the arena: rows are elsewhere then. Nothing where there is no memory for it.
 * Requires: rebuilt. */
void egi_compact(eg_sat *s);

/* ---- rebuild.c ---- */
/* Which of two canonical classes goes when they merge: the one with the shorter lists. */
static inline uint32_t egi_gone(const eg_sat *s, uint32_t a, uint32_t b) {
  const uint32_t of_a = s->cls[a].weight, of_b = s->cls[b].weight;
  return of_a > of_b || (of_a == of_b && a < b) ? b : a;
}
/* Merge two canonical, different classes, and their data. Returns: the one that stays. */
uint32_t egi_sat_union(eg_sat *s, uint32_t a, uint32_t b);
/* Congruence only. */
void egi_sat_close(eg_sat *s);

/* ---- analysis.c; nothing where there is no analysis ---- */
void egi_sat_data_new(eg_sat *s, uint32_t row); /* of a row's class, which was made for it */
void egi_sat_data_row(eg_sat *s,
                      uint32_t row); /* of a row that was put into a class that was there */
void egi_sat_data_union(eg_sat *s, uint32_t kept, uint32_t gone);
ISO_MUST_USE iso_code egi_sat_repair_all(eg_sat *s, iso_error *err);
void egi_sat_look_all(eg_sat *s);

#endif
