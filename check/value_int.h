/* Private to check/: one call of a certificate's term, run. */
#ifndef CHECK_VALUE_INT_H
#define CHECK_VALUE_INT_H

#include "check/check_int.h"

enum { MAX_CALL = 1024, MAX_OUT = 64, MAX_CONSTANT_DEPTH = 2000, MAX_SCALE = 1 << 28 };

typedef struct local {
  const rule_term *call; /* RULE_VAR i is var[i] */
  uint32_t var[MAX_CALL];
  uint32_t n;
} local;

/* ---- value.c ---- */
void chk_drop_values(chk_values *v);
const rule_term *chk_local_call(local *l, const rule_term *t, iso_arena *a);
/* Term `t` on the given values of its arguments. Returns: `out` empty where it cannot be run
 * (settled). */
iso_code chk_call(chk_state *k, uint32_t t, const local *l, rule_tensor *const *bind, bool float64,
                  chk_values *out);
bool chk_unspecified(const rule_term *t);
bool chk_is_getitem(const rule_term *t);
/* Output `t->child[1]` of `from`. */
iso_code chk_project(chk_state *k, const rule_term *t, const chk_values *from, chk_values *out);

/* ---- constants.c ---- */
bool chk_varied(const rule_tensor *t);
bool chk_same_bytes(const rule_tensor *a, const rule_tensor *b);
const char *chk_name_of(const chk_state *k, uint32_t t);
const char *chk_side_of(const chk_state *k, uint32_t t);

#endif
