/* Private to check/redrawn.c and check/redrawn_values.c: how leaves are drawn again. */
#ifndef CHECK_REDRAWN_INT_H
#define CHECK_REDRAWN_INT_H

#include "check/check_int.h"
#include "egraph/base/rng.h"

typedef enum how {
  CAPTURED,
  ZEROS,
  ZERO_ROW,
  TIES,
  HALVES,
  NORMAL,
  POSITIVE,
  NEGATIVE,
  ANY,
  AT_EDGES,
  LARGE
} how; /* ANY: each leaf as one of those before */

typedef struct kind {
  how input, parameter;
  double scale; /* of parameters */
} kind;

enum { CHK_SMALL = 1 << 16 }; /* elements of a leaf */

typedef struct look {
  chk_elements elements;
  double *value; /* by class of elements: what is drawn */
  bool *is_drawn;
  bool *need;    /* by term */
  bool *excused; /* by output: a difference of it that rounding explains is listed */
  chk_edges *edges;
  size_t number;          /* of the draw */
  bool few;               /* only small leaves are drawn */
  bool overflow, outside; /* outside: of a domain */
  chk_poles poles;
  bool at_poles; /* inputs are drawn there, draw `pole` */
  size_t pole;
  bool large;     /* inputs are so large that products overflow */
  iso_rng *shake; /* NULL, or each operator's rounding is disturbed */
} look;

/* Draw a leaf's elements that no other leaf has yet; integers are some that were captured. */
void chk_draw_elements(chk_state *k, look *x, uint32_t leaf, const kind *as, iso_rng *rng);
/* The drawn values as tensors in k->here.drawn, each times 1 + noise. */
iso_code chk_put_drawn(chk_state *k, look *x, size_t number, double noise, iso_rng *rng);

#endif
