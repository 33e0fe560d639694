/* libz3, loaded where a proof first needs it: most commands never do, and mapping it is the larger
 * part of their start. The functions of its C API are called as `z3.mk_add(...)` for Z3_mk_add. */
#ifndef VALIDATE_Z3_LAZY_H
#define VALIDATE_Z3_LAZY_H

#include <stdbool.h>
#include <stdint.h>

#include <z3.h>

/* Laid out by hand: clang-format moves each line further to the right. */
/* clang-format off */
#define VAL_Z3_FUNCTIONS(F) \
  F(del_config) F(del_context) F(eval_smtlib2_string) F(get_error_code) F(get_numeral_double) \
  F(get_numeral_int64) F(get_sort) F(get_sort_kind) F(get_version) F(mk_add) F(mk_and) \
  F(mk_config) F(mk_const) F(mk_context) F(mk_div) F(mk_eq) F(mk_false) F(mk_fresh_const) \
  F(mk_ge) F(mk_gt) F(mk_iff) F(mk_implies) F(mk_int) F(mk_int2real) F(mk_int64) F(mk_int_sort) \
  F(mk_ite) F(mk_le) F(mk_lt) F(mk_mod) F(mk_mul) F(mk_not) F(mk_numeral) F(mk_or) F(mk_params) \
  F(mk_real_sort) F(mk_simple_solver) F(mk_solver) F(mk_string_symbol) F(mk_sub) F(mk_true) \
  F(mk_unary_minus) F(model_dec_ref) F(model_eval) F(model_inc_ref) F(params_dec_ref) \
  F(params_inc_ref) F(params_set_uint) F(set_error_handler) F(simplify) F(solver_assert) \
  F(solver_check) F(solver_dec_ref) F(solver_get_model) F(solver_get_reason_unknown) \
  F(solver_inc_ref) F(solver_pop) F(solver_push) F(solver_set_params)
/* clang-format on */

typedef struct val_z3 {
#define VAL_Z3_MEMBER(name) __typeof__(Z3_##name) *name;
  VAL_Z3_FUNCTIONS(VAL_Z3_MEMBER)
#undef VAL_Z3_MEMBER
} val_z3;

/* The library's functions. Requires: a context was made. */
extern val_z3 z3;

/* A context of its own whose errors are looked up, not reported. Returns: NULL without the library
 * or without memory. Owns: z3.del_context. */
Z3_context val_z3_context(void);

/* Bound each of the solver's answers by `rlimit`, which alone decides. A Z3 that does not keep to
 * it is ended by a clock after ten minutes: see val_z3_overran. */
void val_z3_limit(Z3_context z, Z3_solver s, uint64_t rlimit);
/* Whether the clock ended the last answer. Then there is none: a caller fails, and does not go on
 * as after an `unknown`. */
bool val_z3_overran(Z3_context z, Z3_solver s);
/* Z3's printed answer to an SMT-LIB text, within `rlimit` for each of its checks. NULL: without the
 * library or without memory. `overran`: the clock ended it, and the printed answer does not count.
 * Owns: free. */
char *val_z3_answers(const char *text, uint64_t rlimit, bool *overran);
#define VAL_Z3_OVERRAN "Z3 did not keep to its limit for ten minutes"

#endif
