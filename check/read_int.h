/* Private to the readers of a certificate's JSON: read.c, sizes/read.c. */
#ifndef CHECK_READ_INT_H
#define CHECK_READ_INT_H

#include <jansson.h>

#include "check/check_int.h"

typedef struct chk_reader {
  chk_state *k;
  uint32_t *by_id[2]; /* nodes in the order of their ids */
  uint32_t depth;     /* of the term being read: its deepest argument */
  bool sizes;         /* {"size": "2*T"} is an argument */
} chk_reader;

/* An argument, or all of a list. Returns: NULL in `out` where it is none. */
iso_code chk_read_argument(chk_reader *r, const json_t *j, int nesting, const rule_term **out);
iso_code chk_read_list(chk_reader *r, const json_t *j, int nesting, const rule_term ***out);
/* The term of this number of the certificate. */
bool chk_read_number(const chk_state *k, const json_t *j, uint32_t *out);

/* ---- sizes/read.c ---- */
/* The scope, after the steps. NULL: there is none. */
iso_code chk_read_sizes(chk_reader *r, const json_t *j);

#endif
