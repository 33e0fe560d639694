/* Private to check/redrawn.c, check/redrawn_values.c and check/cancelled.c: how leaves are drawn
 * again. */
#ifndef CHECK_REDRAWN_INT_H
#define CHECK_REDRAWN_INT_H

#include <math.h>

#include "check/check_int.h"
#include "egraph/base/rng.h"
#include "rules/masks.h"

typedef enum draw_how {
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
} draw_how; /* ANY: each leaf as one of those before */

typedef struct draw_kind {
  draw_how input, parameter;
  double scale; /* of parameters */
} draw_kind;

enum { CHK_SMALL = 1 << 16 }; /* elements of a leaf */

/* Whether a number hides what it is added to. */
static inline bool chk_hides(double x) { return !(fabs(x) < RULE_MASK_HIDES); }

typedef struct look {
  chk_elements elements;
  double *value; /* by class of elements: what is drawn */
  bool *is_drawn;
  bool *need;    /* by term */
  bool *excused; /* by output: a difference of it that rounding explains is listed */
  chk_edges *edges;
  size_t number;          /* of the draw */
  bool few;               /* only small leaves are drawn */
  bool masks;             /* inputs hold masks, and no row is hidden wholly as captured */
  bool overflow, outside; /* outside: of a domain */
  chk_poles poles;
  bool at_poles; /* inputs are drawn there, draw `pole` */
  size_t pole;
  bool large;              /* inputs are so large that products overflow */
  iso_rng *shake;          /* NULL, or each operator's rounding is disturbed */
  bool vanishes;           /* results that are far smaller than `beside` become 0 */
  rule_tensor **beside[2]; /* NULL, or by term: its value where inputs are a little different */
} look;

/* Draw a leaf's elements that no other leaf has yet; integers are some that were captured. */
void chk_draw_elements(chk_state *k, look *x, uint32_t leaf, const draw_kind *as, iso_rng *rng);
/* The drawn values as tensors in k->here.drawn, each times 1 + noise. */
iso_code chk_put_drawn(chk_state *k, look *x, size_t number, double noise, iso_rng *rng);

/* Runs both captures on what is drawn. Returns: in `done` whether all could be run. */
iso_code chk_run_drawn(chk_state *k, look *x, bool *done);
/* Draws, and runs. */
iso_code chk_draw(chk_state *k, look *x, const draw_kind *as, size_t number, iso_rng *rng,
                  bool *done);

/* ---- cancelled.c ---- */
/* A result that is far smaller than beside there becomes 0. */
iso_code chk_vanish(chk_state *k, const look *x, uint32_t id);
/* Refused where a divisor is 0 between two draws and an output is a number on one side alone. */
iso_code chk_cancelled(chk_state *k, look *x);

#endif
