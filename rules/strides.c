/* What of a graph lies in memory row by row. Captures tell shapes, not strides: an operator that
 * reads memory as such (as_strided) has a meaning where these follow from the graph. Views in
 * another order, and all that is computed elementwise of them, do not lie so. */
#include <string.h>

#include "rules/rules_int.h"

bool rule_reads_memory(const rule_term *call) {
  static const char *const readers[] = {"as_strided", "as_strided_copy", "as_strided_scatter",
                                        NULL};
  return call->kind == RULE_OP && rule_is_one_of(call->u.s, readers);
}

static bool operands_dense(const rule_term *t, const bool *dense) {
  if (t->kind == RULE_VAR) return dense[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!operands_dense(t->child[i], dense)) return false;
  return true;
}

static bool names_a_format(const rule_term *t) {
  if (t->kind == RULE_STRING && strstr(t->u.s, "channels_last")) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (names_a_format(t->child[i])) return true;
  return false;
}

bool rule_gives_dense(const rule_term *call, const bool *dense) {
  static const char *const makes[] = {
      "contiguous",   "mm",     "addmm", "bmm",   "baddbmm", "linear", "embedding",
      "index_select", "arange", "full",  "zeros", "ones",    NULL};
  static const char *const moves[] = {"t",
                                      "numpy_T",
                                      "mT",
                                      "mH",
                                      "adjoint",
                                      "transpose",
                                      "swapaxes",
                                      "swapdims",
                                      "permute",
                                      "movedim",
                                      "moveaxis",
                                      "slice",
                                      "narrow",
                                      "select",
                                      "unbind",
                                      "diagonal",
                                      "split",
                                      "split_with_sizes",
                                      "chunk",
                                      "tensor_split",
                                      "unsafe_split",
                                      "unsafe_chunk",
                                      "unsafe_split_with_sizes",
                                      "expand",
                                      "expand_as",
                                      "broadcast_to",
                                      "unfold",
                                      "as_strided",
                                      "real",
                                      "imag",
                                      NULL};
  if (names_a_format(call)) return false;
  if (rule_is_one_of(call->u.s, makes)) return true;
  return !rule_is_one_of(call->u.s, moves) && strncmp(call->u.s, "aten::conv", 10) != 0 &&
         operands_dense(call, dense);
}
