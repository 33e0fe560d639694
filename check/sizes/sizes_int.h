/* Private to check/sizes/: a chain that is replayed with symbols in place of numbers. */
#ifndef CHECK_SIZES_SIZES_INT_H
#define CHECK_SIZES_SIZES_INT_H

#include "check/sizes/sizes.h"
#include "check/sizes/sums.h"

/* Facts that no proof may rest on: they were seen at the captured sizes alone. */
#define CHK_SIZES_REST (RULE_RESTS_ON_NUMBERS | RULE_RESTS_ON_MASKS)

typedef struct chk_table { /* what depends on one symbol alone */
  uint32_t atom;           /* the symbol */
  int64_t most;            /* its largest value */
  uint32_t rank;
  bool along[RULE_MAX_RANK]; /* dimensions that it is */
} chk_table;

typedef struct chk_dims {
  const chk_sum *of; /* NULL: not known */
  uint32_t rank;
} chk_dims;

/* Terms are those of chk_state.
 *
 * Invariant: terms that `up` has joined are equal, and have one shape, for all sizes that are
 * claimed. */
typedef struct chk_chain {
  chk_state *k;
  chk_atoms atoms;
  chk_sum *symbol;         /* by the left's symbols */
  const rule_term **right; /* by the right's: the left's size that it is; NULL: not known */
  const rule_term **sized; /* by term: its call with sizes; NULL: a leaf, or not known */
  chk_dims *dim;           /* by root */
  uint32_t *up;
  bool *fixed; /* by term: nothing of it depends on symbols or inputs */
  const char *wrong;
} chk_chain;

static inline uint32_t chk_chain_root(const chk_chain *z, uint32_t t) {
  while (z->up[t] != t) t = z->up[t] = z->up[z->up[t]];
  return t;
}

/* ---- terms.c ---- */
bool chk_is_size(const rule_term *t);
bool chk_size_of(chk_chain *z, const rule_term *t, chk_sum *out);
const chk_dims *chk_dims_of(const chk_chain *z, uint32_t t); /* NULL: not known */
/* Terms, sizes and dimensions of the captures, and the certificate's calls. */
iso_code chk_chain_read(chk_chain *z);
/* Takes over: two terms are one. Returns: false where their shapes are two. */
bool chk_chain_join(chk_chain *z, uint32_t a, uint32_t b);
/* Whether two arguments are one by the steps so far. `loose`: whatever their floats are. */
bool chk_chain_alike(chk_chain *z, const rule_term *a, const rule_term *b, bool loose);

/* Whether the call with sizes, or a size, is that of the certificate at the captured sizes. */
bool chk_chain_is_captured(chk_chain *z, const rule_term *sized, const rule_term *call);

/* ---- instance.c ---- */
/* Whether the two terms of step `x` are its rule's sides with `names` for sizes. */
bool chk_chain_instance(chk_chain *z, const chk_step *x, const chk_sizes_step *by);

/* ---- prove.c ---- */
/* Whether the oracle proves for all sizes that two terms are one. `cut`: n terms that stand for any
 * tensor, as do those that both are made of where `shared` is set. */
iso_code chk_chain_prove(chk_chain *z, uint32_t a, uint32_t b, const uint32_t *cut, uint32_t n_cut,
                         bool shared, bool *proved);
/* Whether it proves that the diagonal of term `t`, a square of `size` in its last two dimensions,
 * is kept: zeros where it is a mask of numbers; else truth values that are all false there, or all
 * true (`complement`). */
iso_code chk_chain_diagonal(chk_chain *z, uint32_t t, const chk_sum *size, bool number,
                            bool complement, bool *proved);

/* Whether it proves that a term is, for all values of a table's symbol, the first places of what it
 * is at the largest one. */
iso_code chk_chain_places(chk_chain *z, uint32_t t, const chk_table *table, bool *proved);

/* ---- table.c ---- */
/* The captured call that a call of the certificate's own is one with at all sizes, or it itself. */
uint32_t chk_chain_captured(const chk_chain *z, uint32_t t);
/* Whether two constants that depend on one symbol alone are equal at its largest value, and at all
 * others the first places of that. */
iso_code chk_chain_tables(chk_chain *z, uint32_t a, uint32_t b, bool *yes);

/* ---- masks.c ---- */
/* Whether each row that masks are read in keeps an element at all sizes. Returns: in `where` the
 * operator of which that is not shown. */
iso_code chk_chain_masks(chk_chain *z, bool *kept, const char **where);

/* ---- run.c ---- */
/* Whether all terms that steps speak of are defined at other sizes, and have their shapes there.
 * Returns: in `at` one that is not. */
iso_code chk_chain_run(chk_chain *z, bool *fine, uint32_t *at);
/* Two terms at the largest value of a table's symbol, as captured calls compute them. Returns: NULL
 * in both where that cannot be done, or a call of the certificate's own rounds. Owns: caller
 * unrefs. */
iso_code chk_chain_run_table(chk_chain *z, const uint32_t t[2], const chk_table *table,
                             rule_tensor *out[2]);

#endif
