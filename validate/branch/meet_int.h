/* Private to validate/: samples in which rare events happen together. */
#ifndef VALIDATE_MEET_INT_H
#define VALIDATE_MEET_INT_H

#include "validate/oracle_int.h"
#include "validate/sample/sample_int.h"

/* ---- conditions (meet.c) ---- */

enum { VAL_POOL = 12 };

/* Numbers of one variable, each of which answers the rule's comparisons in another way. */
typedef struct val_pool {
  double at[VAL_POOL];
  size_t n;
} val_pool;
/* Of each variable of the instance `r`, found on the sample `bind`, whose tensors it replaces and
 * puts back. `n_conditions`: the comparisons that read a variable,
 * and the variables that are conditions themselves. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_pools(val_engine *e, const rule *r, const val_domain *domain,
                                rule_tensor **bind, val_pool *out, size_t *n_conditions,
                                iso_error *err);
/* Overwrite the variables with numbers of their pools. `turn` even: all combinations one after
 * another, element by element; odd: at random. */
void val_meet_fill(const rule *r, const val_pool *pool, unsigned turn, iso_rng *rng,
                   rule_tensor **bind);

/* ---- places and counts (crowd.c) ---- */

enum { VAL_CROWD_WAYS = 8, VAL_CROWDS = 3 * VAL_CROWD_WAYS };
/* Overwrite integers with few different ones, neighbours, and the ends of their ranges, and rows of
 * truth values with as many true ones as narrow integers hold. Returns: false where `r` has no such
 * variable. */
bool val_crowd_fill(const rule *r, const val_domain *domain, unsigned turn, iso_rng *rng,
                    rule_tensor **bind);

/* ---- all integers (each.c) ---- */

/* The numbers that a variable may have, where it is bounded only through arithmetic (a table that
 * is read by i / 3): found by running both sides on `bind`, whose tensors it replaces and puts
 * back. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_reach(val_engine *e, const rule *r, rule_tensor **bind,
                                val_domain *domain, iso_error *err);
/* How many samples show each integer of every variable of bounded range, at most `most`; 0: there
 * is none. */
unsigned val_each_turns(const rule *r, const val_domain *domain, rule_tensor *const *bind,
                        unsigned most);
/* Overwrite those variables with the next of their integers, or with some of each stretch where
 * `turns` samples cannot show all. */
void val_each_fill(const rule *r, const val_domain *domain, unsigned turn, unsigned turns,
                   iso_rng *rng, rule_tensor **bind);

/* ---- fills (fill.c) ---- */

enum { VAL_FILLS = 6, VAL_FILL_TURNS = 9 };
/* Literals that compete with values: below an operator that takes the largest, orders, bounds, or
 * weighs by exponentials; masks too. Returns: how many. */
size_t val_fill_literals(const rule *r, double out[VAL_FILLS]);
/* Overwrite the numbers with ones near the literal `l` and beyond it, so that either wins. */
void val_fill_around(const rule *r, const val_domain *domain, double l, unsigned turn, iso_rng *rng,
                     rule_tensor **bind);

/* ---- whether they were seen together (together.c) ---- */

/* Two conditions that an operator brings together, and which of the four cases samples showed. */
typedef struct val_pair {
  const rule_term *one, *other;
  uint8_t seen; /* bit 0: neither, 1: one, 2: the other, 3: both */
} val_pair;
enum { VAL_PAIRS = 24 };
/* The pairs of the instance `r`, but for those that meet in a term of both sides; new terms live in
 * `a`. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_pairs_of(const rule *r, iso_arena *a, val_pair *out, size_t *n,
                                   iso_error *err);
/* Notes which combinations the sample shows. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_pairs_note(val_engine *e, val_pair *pair, size_t n,
                                     rule_tensor *const *bind, iso_error *err);
/* Whether a case of some pair was neither seen nor proved impossible. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_pairs_gap(val_engine *e, const rule *r, const val_pair *pair, size_t n,
                                    bool *gap, iso_error *err);

/* ---- all of it (rare.c) ---- */

/* Somebody who weighs samples, which are drawn by `rng`: sets `*agree` where the sides do, `*stop`
 * where no more are wanted. */
typedef struct val_watcher {
  iso_code (*weigh)(void *ctx, const rule *r, rule_tensor **bind, bool *agree, bool *stop,
                    iso_error *err);
  void *ctx;
  iso_rng *rng;
  unsigned share; /* samples are dear: one in so many */
} val_watcher;
/* Show `who` such samples of the instance `r`. `*gap`: two conditions were not seen together, nor
 * apart. Errors: ISO_NOMEM, and those of `weigh`. */
ISO_MUST_USE iso_code val_rare(val_engine *e, const rule *r, rule_tensor *const *example,
                               const val_watcher *who, bool *gap, iso_error *err);

/* The range of an integer variable: its rule's, its table's, its type's. */
void val_variable_range(const rule *r, uint32_t v, const val_domain *d, rule_dtype type,
                        double *low, double *high);

#endif
