/* Where two graphs part whose outputs differ: the smallest regions, the operator at fault, and the
 * one change that mends it. A comparison asks for it when its verdict stands (synth/synth.h, option
 * `localiser`), so that nothing found here enters a rule, a merge or a verdict.
 *
 * Source: Zeller, Yesterday, my program worked. Today, it does not. Why? (ESEC/FSE 1999), for
 * changes that are tried until a difference goes away. */
#ifndef LOCALISE_LOCALISE_H
#define LOCALISE_LOCALISE_H

#include "synth/synth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns: the localiser for synth_options; static. */
const synth_localiser *localise_parts(void);

#ifdef __cplusplus
}
#endif
#endif
