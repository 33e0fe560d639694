/* What an input of zeros and ones looks like, and others that look so.
 *
 * Captured zeros and ones say little: a mask that happens to keep two elements of each row makes a
 * mean out of a sum by 2. So values are drawn that a caller could as well have given, as far as
 * their looks tell what these are. What is the shape of attention, a triangle, a band, blocks, is
 * the captured branch, and is left alone, as ones everywhere are. */
#ifndef CAPTURE_LOOKS_BITS_H
#define CAPTURE_LOOKS_BITS_H

#include "egraph/base/rng.h"
#include "rules/tensor.h"

typedef enum looks_kind {
  LOOKS_KEPT,     /* one number everywhere, or a structure over two dimensions */
  LOOKS_LEFT,     /* in every row zeros come first: padding on the left */
  LOOKS_RIGHT,    /* ones come first: padding on the right */
  LOOKS_ONE_EACH, /* one 1 in every row */
  LOOKS_ONE_OF,   /* one 1 in every column: which row a column belongs to */
  LOOKS_ANY
} looks_kind;

/* What captured values have in common and draws keep. */
typedef enum looks_property {
  LOOKS_ORDER, /* the kind */
  LOOKS_REPEATS,
  LOOKS_DISTINCT,
  LOOKS_SYMMETRIC,
  LOOKS_DIAGONAL,
  LOOKS_HOLLOW,
  LOOKS_COUNT,
  LOOKS_FIRST,
  LOOKS_LAST,
  LOOKS_EITHER,
  LOOKS_FRACTION, /* of floats: none are between 0 and 1. Set by who knows what they are */
  N_LOOKS
} looks_property;

typedef struct looks_bits {
  looks_kind kind;
  bool doubtful;         /* it may as well be of another kind, which has less values */
  bool structure;        /* namely one over two dimensions, which it is by chance, too */
  bool data;             /* or not by chance, but segments of a batch or a tree say */
  bool distinct;         /* LOOKS_ONE_EACH: no column has two */
  bool symmetric;        /* LOOKS_ANY, of squares: so they are */
  bool diagonal, hollow; /* which have ones only on the diagonal, or zeros only */
  bool empty, full;      /* a row may have no 1; it may have nothing else */
  bool either;           /* whether ones or zeros are what is left out is not known */
  unsigned by_chance;    /* a bit for each looks_property that they have by chance, too */
  unsigned repeats;      /* a bit for each dimension along which they repeat by chance, too */
  bool first, last;      /* LOOKS_ANY: each row has a 1 there */
  int64_t count;         /* LOOKS_ANY: of ones in each row, 0: any */
  unsigned free;         /* a bit for each dimension that is drawn; along others it repeats */
  uint32_t row;          /* the dimension of a row, the last that varied */
  const int64_t *counts; /* numbers of ones that draws are to have, too: of who draws */
  size_t n_counts;
} looks_bits;

/* `set`: the values of one input on `n` input sets, all of one shape, zeros and ones. Returns:
 * false where there is no memory. */
bool looks_at_bits(const rule_tensor *const *set, size_t n, looks_bits *out);

/* Others that look so, in `t`. `form` is counted through by the caller: with it the ones of a row
 * become one more, and go from place to place. Returns: false where there is no memory. */
bool looks_draw_bits(const looks_bits *x, unsigned form, iso_rng *rng, rule_tensor *t);

/* Makes `x` what the captured values look like if they have less in common than they seem to.
 * Returns: whether that is more. */
bool looks_widen(looks_bits *x);

/* In words: "a mask of zeros and ones, padded on the right". */
const char *looks_say_bits(const looks_bits *x);

#endif
