/* Private to synth/: constants that rounding tells apart. */
#ifndef SYNTH_CONSTANTS_ROUNDING_H
#define SYNTH_CONSTANTS_ROUNDING_H

#include "synth/constants/precision.h"

typedef enum rx_fit {
  RX_NO,
  RX_NEAR, /* too far apart for any known way to compute the two, and too near for a mistake */
  RX_YES
} rx_fit;

/* Whether rounding explains that two constants of one shape differ. */
iso_code rx_explained(state *s, eg_node a, eg_node b, rx_fit *fit, iso_error *err);

/* Whether elements of a table, stored in a narrow dtype, are off one way: no rounding to nearest
 * is. */
typedef enum rx_drift {
  RX_STAYS,
  RX_DRIFTS,
  RX_DRIFTS_FAR /* by a factor, and no rounding of one goes so far */
} rx_drift;
iso_code rx_drifts(const rule_tensor *stored, const rule_tensor *made, rule_dtype in, rx_drift *how,
                   iso_error *err);

/* Notes that two constants are taken to be one although they differ by rounding; `relation`: in
 * words the one that is a layout of captured constants, or NULL. */
iso_code st_note_rounded(state *s, eg_node l, eg_node r, const char *relation, iso_error *err);

#endif
