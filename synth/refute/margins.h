/* Private to synth/refute/: two outputs, how far disturbed roundings move them, and whether they
 * differ by more. */
#ifndef SYNTH_REFUTE_MARGINS_H
#define SYNTH_REFUTE_MARGINS_H

#include "synth/refute/refute_int.h"

enum {
  NOISE_RUNS = 4,
  STORAGE_RUN = 3, /* the last one disturbs constants as their storage rounds them */
  ORDERS = 2       /* up and down */
};

/* One output on both sides. */
typedef struct st_outputs {
  const rule_tensor *base[2];             /* flat alike */
  const rule_tensor *run[2][NOISE_RUNS];  /* with rounding disturbed */
  const rule_tensor *wide[2][NOISE_RUNS]; /* and disturbed much more; NULL: it was not */
  const rule_tensor *order[2][ORDERS]; /* with open orders taken otherwise; NULL: they were not */
  bool pairs;                          /* they are complex numbers (in_reals) */
} st_outputs;

/* Values of complex outputs, as seen by in_reals. */
typedef struct st_reals {
  rule_tensor base[2], run[2][NOISE_RUNS], wide[2][NOISE_RUNS], order[2][ORDERS];
} st_reals;

/* Complex outputs become real and imaginary parts in turn, which borrow their values. */
void st_in_reals(st_outputs *o, st_reals *room);
/* How far runs [from, to) move number `i`, at most. */
double st_moved(const rule_tensor *base, const rule_tensor *const *run, int from, int to,
                int64_t i);
/* Whether the sides differ by more than the margin, and by how much. */
bool st_beyond_rounding(const st_outputs *o, st_margin sc, rule_diff *d);

/* ---- storage.c ---- */
/* The left's output `output` and its counterpart, which differ beyond the margin. Further runs are
 * on `leaf`, from streams behind `streams` on. */
typedef struct st_storage {
  rule_tensor **const *leaf;
  const st_outputs *at;
  size_t output;
  st_margin margin;
  uint64_t streams;
} st_storage;

/* Whether they do not differ where constants are disturbed in more ways. */
iso_code st_moved_by_storage(state *s, const st_storage *x, bool *yes, iso_error *err);

#endif
