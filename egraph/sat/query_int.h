/* Private to egraph/: patterns, the programs they compile to, and matches. */
#ifndef EGRAPH_SAT_QUERY_INT_H
#define EGRAPH_SAT_QUERY_INT_H

#include <pthread.h>

#include "egraph/sat/sat_int.h"

/* Children before parents. */
typedef struct egi_term {
  uint32_t sym; /* a variable's number or an operator */
  uint32_t kid; /* where its children start in `kid` of the pattern */
  uint32_t n;
  bool is_var, ground;
} egi_term;

struct eg_pattern {
  egi_term *term;
  size_t n_terms, cap_terms;
  uint32_t *kid;
  size_t n_kids, cap_kids;
  char **var;
  size_t n_vars, cap_vars;
  uint32_t *root; /* terms whose classes the parts are; none where the pattern is a variable */
  size_t n_roots, cap_roots;
  struct egi_part {
    uint32_t var; /* the name of the class; EG_NONE: it has none */
    uint32_t end; /* of its roots, which start where those of the part before end */
  } * part;       /* classes, one at least */
  size_t n_parts, cap_parts;
  uint32_t root_var; /* of the first part */
  struct egi_query *query;
};

/* Parse into `p`, which has variables already where it is a right side; then no others are allowed.
 */
ISO_MUST_USE iso_code egi_pattern_read(eg_sat *s, const char *text, size_t n, bool new_vars,
                                       eg_pattern *p, iso_error *err);
void egi_pattern_fini(eg_pattern *p);

/* ---- programs ---- */

/* An operator application of the pattern. Registers hold classes: variables first, then one per
 * term. */
typedef struct egi_atom {
  uint32_t op, n, cls;
  const uint32_t *kid; /* registers */
  bool ground;
} egi_atom;

enum egi_kind {
  EGI_SCAN,    /* every row of an operator */
  EGI_DOWN,    /* rows in a class that is known */
  EGI_UP,      /* rows with a child that is known */
  EGI_LOOKUP,  /* the row whose children are all known */
  EGI_CLASSES, /* every class */
  EGI_YIELD
};
/* How a child of a row is treated: its class is put into a register, or compared with it. */
typedef struct egi_bind {
  uint32_t reg, at; /* at: the how many-th child */
} egi_bind;
typedef struct egi_ins {
  enum egi_kind kind;
  bool cls_known, old; /* old: rows that are not fresh */
  bool plain;   /* class and children are the root and variables that are set here, or known */
  uint16_t bit; /* of the operator */
  /* Where the next row is one in the class of a child that this row sets: that child, and the bit
   * of the next operator. A row whose child has no such row is passed before anything is bound.
   * Bit 0: any may go on. */
  uint16_t next_bit;
  uint32_t next_at;
  uint32_t want, mask; /* a row fits if its head under the mask is this */
  uint32_t n, cls;
  uint32_t slot; /* of the operator in flat copies */
  uint32_t n_from, n_compare, n_set, n_again;
  const egi_bind *from;        /* up: children that are known before this row */
  const egi_bind *compare;     /* the same of all kinds; none where it is how the row was found */
  const egi_bind *set, *again; /* again: compared with registers that this row has set */
  const uint32_t *kid;         /* registers of all children */
} egi_ins;

typedef struct egi_program {
  egi_ins *ins; /* NULL: not built */
} egi_program;

typedef struct egi_query {
  eg_sat *s;
  size_t n_vars, n_regs, n_atoms, n_ground;
  uint32_t root;      /* register */
  uint32_t most_kids; /* of an atom */
  bool scans;         /* some program scans all rows of an operator not only where it starts */
  egi_atom *atom;     /* ground ones first, children before parents */
  bool *ground;       /* by register: the class of a ground atom */
  /* Two per atom: starting there over all rows, and starting there over fresh rows with those of
   * atoms before it not fresh, so that each match with a fresh row is found once. Ground atoms
   * start from their class. Those of one term are built when they are first run, where it is
   * long or many patterns are added (egi_program_of). */
  egi_program *program;
  /* Words of rows that a program may pass in vain before the atoms are joined (join.c): so often
   * those of the operators' rows, and these. Patience 0: they are joined at once. */
  size_t patience, least;
  bool whole;  /* not to be cut: its parts were unsure once */
  bool single; /* one application to different variables: a row matches or not whatever its classes
                  are, and one that only changed matched before */
  iso_arena mem;
} egi_query;
#define EGI_NEVER SIZE_MAX
enum { EGI_PATIENT = 64 }; /* where it is one term */

/* `late`: of many such patterns few ever match, so that programs are built when they are run. */
ISO_MUST_USE iso_code egi_query_new(eg_sat *s, const eg_pattern *p, bool late, egi_query **out,
                                    iso_error *err);
/* The instructions of a program. Returns: NULL when there is no memory. */
const egi_ins *egi_program_of(egi_query *q, size_t start, bool fresh);
void egi_query_free(egi_query *q);

/* ---- words.c ---- */

typedef struct egi_chunk {
  struct egi_chunk *next;
  size_t n, cap, bytes;
  uint32_t word[];
} egi_chunk;
typedef struct egi_words {
  egi_chunk *first, *last;
  egi_chunk *spare; /* empty, to be used next; NULL: none */
  size_t at;        /* how far the first is read */
  uint32_t *joined; /* records of several chunks, side by side */
  size_t cap_joined;
  size_t bytes;   /* of all but the spare */
  bool read_once; /* chunks that were read should be freed soon */
} egi_words;
typedef struct egi_mark {
  egi_chunk *chunk;
  size_t n;
} egi_mark;

/* Words after the end that may be written over. */
enum { EGI_SLACK = 8 };
/* Room for `n` words or more at the end. Returns: NULL without memory. Words written there count
 * only once egi_words_close is called. */
uint32_t *egi_words_open(egi_words *x, size_t n, uint32_t **end);
static inline void egi_words_close(egi_words *x, const uint32_t *to) {
  x->last->n = (size_t)(to - x->last->word);
}
/* The next `max` records of `stride` words, or as many as there are, contiguous and in the order of
 * writing, across the ends of chunks. Valid until the next call. Returns: in `n` how many; 0: no
 * more. Requires: records are read by the strides by which they were written. */
const uint32_t *egi_words_take(egi_words *x, size_t stride, size_t max, size_t *n);
egi_mark egi_words_mark(const egi_words *x);
void egi_words_rewind(egi_words *x,
                      egi_mark to); /* drops words put since. Requires: nothing taken since */
void egi_words_append(egi_words *x, egi_words *from); /* appends its chunks; then it is empty */
void egi_words_clear(egi_words *x);
void egi_words_free(egi_words *x);

/* ---- matches ---- */

/* Long lists copied flat, see flat.c. */
enum { EGI_OF_CLASS, EGI_ABOVE };
enum { EGI_LONG = 16 }; /* weight of a class whose lists are copied */
typedef struct egi_member {
  uint32_t row, tag, arity; /* tag: twice the slot, plus one where fresh */
} egi_member;
typedef struct egi_run {
  size_t n, at;               /* words, and where the next one goes */
  size_t width, n_rows, mask; /* of both runs of a slot, in the first: words of a row, rows so far,
                                 where bits say which are fresh */
} egi_run;
typedef struct egi_flat_cell {
  uint32_t list;  /* twice the class, plus the side */
  uint32_t *copy; /* NULL: free */
} egi_flat_cell;
typedef struct egi_flat_table { /* open addressing */
  struct egi_flat_table *older; /* other threads may still look into it */
  size_t n_cells;
  egi_flat_cell cell[];
} egi_flat_table;
typedef struct egi_flat {
  egi_flat_table *table; /* NULL: nothing is copied */
  size_t n_used;
  pthread_mutex_t *lock; /* whoever copies holds it; NULL: there is one thread */
  egi_words mem;
  egi_member *member; /* scratch: of one list */
  size_t n_member, cap_member;
  egi_run *run;      /* scratch, by tag */
  uint32_t *slot;    /* scratch: those that a list has */
  uint32_t *settled; /* scratch: rows of a slot */
  size_t cap_settled;
  uint32_t *late; /* lists with dead rows, copied while threads read them */
  size_t n_late, cap_late;
  size_t n_seen;
  uint32_t n_slots;
  unsigned depth;
  uint64_t made_at;     /* the graph's version whose lists are copied */
  uint64_t unmarked_at; /* that at which all marks were last taken off */
  bool fresh;           /* marks tell fresh rows */
  bool order;           /* copies say in which order fresh rows and others stand in a list */
  bool off;             /* some copies are incomplete: until the next search, lists are walked */
} egi_flat;
/* Before searches of the same graph. `again`: others may follow that find it as it is. */
void egi_flat_begin(eg_sat *s, bool fresh, bool again);
void egi_flat_end(eg_sat *s);
/* Several threads search from here on, until they are done: then dead rows leave the lists, as they
 * do where one thread copies. If their matches are not kept, the copies are dropped, and no list
 * changes. */
void egi_flat_share(eg_sat *s, pthread_mutex_t *lock);
void egi_flat_unshare(eg_sat *s, bool keep);
void egi_flat_fini(egi_flat *f);
/* A copy: how many slots, rounded up to EGI_SLOTS; the slots; for each of them where its rows are,
 * how many words of them are not fresh, how many are, and where it says in which order both stand
 * in the list; the rows. NULL: the list is to be walked. Requires: begun. */
enum { EGI_SLOTS = 4, EGI_SLOT_WORDS = 4 };
const uint32_t *egi_flat_new(eg_sat *s, uint32_t list);
/* A cell is filled last with the copy, so that who finds that finds all of it. */
static inline egi_flat_cell *egi_flat_cell_of(egi_flat_table *t, uint32_t list) {
  const size_t mask = t->n_cells - 1;
  size_t i = (size_t)((list * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
  while (__atomic_load_n(&t->cell[i].copy, __ATOMIC_ACQUIRE) && t->cell[i].list != list)
    i = (i + 1) & mask;
  return &t->cell[i];
}
static inline const uint32_t *egi_flat_copy(eg_sat *s, uint32_t side, uint32_t c) {
  const egi_flat *f = s->flat;
  const uint32_t list = 2 * c + side;
  if (__atomic_load_n(&f->off, __ATOMIC_ACQUIRE)) return NULL;
  egi_flat_table *t = __atomic_load_n(&f->table, __ATOMIC_ACQUIRE);
  const uint32_t *copy =
      t ? __atomic_load_n(&egi_flat_cell_of(t, list)->copy, __ATOMIC_ACQUIRE) : NULL;
  return copy ? copy : egi_flat_new(s, list);
}
/* The rows of a slot: words of those that are not fresh, and of all. No branch asks which slot it
 * is. */
static inline const uint32_t *egi_flat_rows(const uint32_t *copy, uint32_t slot, uint32_t *n_old,
                                            uint32_t *n) {
  const uint32_t n_slots = copy[0], *slots = copy + 1;
  uint32_t at = n_slots; /* after the last one: none */
  for (uint32_t i = 0; i < n_slots; i += EGI_SLOTS)
    for (uint32_t k = 0; k < EGI_SLOTS; k++) at = slots[i + k] == slot ? i + k : at;
  const uint32_t *run = slots + n_slots + EGI_SLOT_WORDS * at;
  *n_old = run[1];
  *n = run[1] + run[2];
  return copy + run[0];
}

/* Of a run. */
typedef struct egi_limits {
  size_t nodes, mem_bytes;
  double deadline_s;      /* by egi_now; 0: none */
  const egi_words *found; /* matches count as memory too */
  size_t others;          /* of one thread of several: other memory when they began; 0: look */
  eg_stop stop;
  bool reached;
} egi_limits;
double egi_now(void);
bool egi_limits_check(eg_sat *s, egi_limits *l);
bool egi_limits_search(eg_sat *s,
                       egi_limits *l); /* of time and memory only: a search adds nothing */

/* A part of a search: a range of the rows from which the search starts at an atom. Where it passes
 * half as many rows in vain as the whole search may, it stops and is unsure: it cannot know whether
 * the whole would be given up for a join. */
typedef struct egi_slice {
  size_t start, from, to;
} egi_slice;

typedef struct egi_sink {
  egi_words *store; /* NULL: not stored. Root class, then variables: so many words each */
  size_t stride;
  bool (*each)(void *ctx, eg_class root, const eg_class *var);
  bool (*guard)(void *ctx, const eg_sat *s, const eg_class *var);
  void *ctx, *guard_ctx;
  size_t limit;           /* stop after so many */
  size_t work;            /* of rows passed from one start, in words, and no more; 0: any */
  egi_limits *limits;     /* NULL: none */
  const egi_slice *slice; /* NULL: all of it */
  egi_span own;           /* of a single query: rows there make no new match */
  size_t n, n_stored;
  size_t passed;            /* of a slice: words of rows */
  bool unsure;              /* of a slice: its matches must not be used */
  bool no_memory, too_much; /* too_much: it would have been more */
} egi_sink;

/* A match is new if it has a fresh row, or is a class not below `first_new_class`. */
enum egi_wanted {
  EGI_ALL,
  EGI_NEW,      /* nothing else is looked for */
  EGI_STORE_NEW /* all are found, old ones only counted */
};
/* Requires: rebuilt, and indexed; for new ones, marks. */
ISO_MUST_USE iso_code egi_search(eg_sat *s, egi_query *q, enum egi_wanted wanted,
                                 uint32_t first_new_class, egi_sink *sink, iso_error *err);
/* Tells each match once all are found, since a callback cannot be taken back. */
ISO_MUST_USE iso_code egi_search_and_tell(eg_sat *s, egi_query *q, egi_sink *sink, iso_error *err);
/* Where a search for all matches starts; past the last atom where there is none, since a ground
 * term is missing. Returns: false where it cannot be shared, as some program is not built yet. */
bool egi_search_plan(eg_sat *s, egi_query *q, bool fresh, size_t *start);

/* ---- search.c ---- */

/* A search that threads share, and its result. */
typedef struct egi_wish {
  egi_query *query; /* NULL: none */
  enum egi_wanted wanted;
  size_t start;         /* as planned */
  size_t stride, limit; /* as of a sink */
  egi_span own;
  size_t n, n_stored;
  egi_words found;
  bool done; /* false: it is to be searched by one thread */
  double seconds;
} egi_wish;
typedef struct egi_team {
  eg_sat *s;
  unsigned threads;
  size_t grain; /* rows that a part starts from, at least */
  uint32_t first_new_class;
  const egi_limits *limits;
} egi_team;
/* Search for all wishes in parallel. A wish that is `done` has the matches of egi_search, in its
 * order, and the graph is left as egi_search leaves it. Where there is little to do, a limit is
 * near, memory is short or the outcome of some part is unsure, no wish is done. */
void egi_search_shared(const egi_team *team, egi_wish *wish, size_t n);
/* Brings the operators' lists of rows up to date. Returns: false without memory. */
bool egi_index(eg_sat *s);
/* Lists of fresh rows. Returns: false if some are not known, or without memory: search everything
 * then. */
bool egi_index_fresh(eg_sat *s);
/* All marks off. */
void egi_unmark(eg_sat *s);

/* ---- join.c ---- */

enum { EGI_JOIN_ATOMS = 32, EGI_JOIN_VARS = 64 };
/* A search as a join of its atoms. */
typedef struct egi_join {
  eg_sat *s;
  const egi_query *q;
  uint32_t *reg; /* those of ground atoms are set; each match sets the others that are asked for */
  /* With `fresh`: only fresh rows of the atom `start`, and only old ones of the atoms before it. */
  size_t start;
  bool fresh;
  bool (*found)(void *ctx, uint32_t fresh); /* not 0: some row is. Returns: false to stop */
  bool (*over)(void *ctx);                  /* asked now and then: is a limit reached? */
  void *ctx;
} egi_join;
bool egi_join_can(const egi_query *q);
/* Requires: it can; rebuilt, for fresh rows lists of them. Returns: false without memory. */
bool egi_join_run(const egi_join *ask);

/* ---- applying ---- */

typedef struct egi_rule {
  eg_rule user; /* texts copied */
  eg_pattern lhs, rhs;
  egi_query *query;
  size_t stride; /* words of a match */
  size_t n_found, n_stored,
      n_made; /* matches of the last search; matches to apply; e-nodes that applying them added */
  size_t n_banned, banned_until;
  size_t applied_until; /* before this iteration all its matches were applied */
  bool several;  /* the right side names other classes than the one that matched, or has several
                    terms */
  bool skip_old; /* matches without a fresh row need no second application */
  bool turns;    /* applied to what it made, it gives what it was applied to */
  bool left_out; /* of this run: its search would be too much work */
} egi_rule;

struct eg_rules {
  eg_sat *s;
  egi_rule *rule;
  size_t n, cap;
  size_t *counts; /* per rule, for reports */
  size_t cap_counts;
  egi_span *made; /* per rule that turns: rows that it made when it was applied last */
  size_t cap_made;
  egi_words found;         /* by the last search, rule after rule */
  struct egi_batch *batch; /* room for the largest right side */
};

/* Apply the matches of one rule, which are used up. Stops between batches where a limit is reached.
 */
ISO_MUST_USE iso_code egi_apply(eg_sat *s, eg_rules *r, size_t k, egi_limits *limits,
                                iso_error *err);
bool egi_batch_reserve(eg_rules *r, const eg_pattern *rhs);
void egi_batch_free(struct egi_batch *b);

#endif
