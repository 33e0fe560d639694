/* The scope of a certificate: its chain with symbols in place of numbers, replayed. The certificate
 * gives the order of the steps, the sizes of its own calls and of rules' names, and which steps the
 * oracle proves. The checker derives the rest. */
#ifndef CHECK_SIZES_SIZES_H
#define CHECK_SIZES_SIZES_H

#include "check/check_int.h"

typedef enum chk_sizes_how {
  CHK_SIZES_PLAIN,  /* as its kind says */
  CHK_SIZES_PROVED, /* by the oracle, over the rule's variables, or the leaves */
  CHK_SIZES_SHARED, /* the same, over all that both sides are made of */
  CHK_SIZES_TABLE   /* by value at the largest size, of which each is proved to be the first places
                     */
} chk_sizes_how;

typedef struct chk_sizes_step {
  uint32_t step;
  chk_sizes_how how;
  uint32_t first_name, n_names; /* in cert.name: sizes as INT, NAME or EXPR */
} chk_sizes_step;

typedef struct chk_sizes_call {
  uint32_t term;
  const rule_term *call; /* with sizes */
} chk_sizes_call;

struct chk_sizes {
  size_t n_symbols, n_calls, n_steps;
  cap_symbol *symbol; /* name, min and max */
  chk_sizes_call *call;
  chk_sizes_step *step;
};

/* Settles where the certificate's scope is more than follows. Behind chk_rules. */
iso_code chk_sizes_check(chk_state *k);

#endif
