/* The one definition of each operator that there is, a file of definitions for each kind
 * (README.md). A definition gives the result's sizes, its element at any index, and under which
 * conditions it has one (sc_require: on sizes; sc_defined_if: on values). From it come the proof,
 * the obligation (smt/), and the shapes and numbers that the differential test holds against
 * libtorch (sc_values). Where sizes are numbers they are sizes like others. */
#ifndef VALIDATE_OPS_H
#define VALIDATE_OPS_H

#include "validate/tensor/tensor.h"

/* The results of a call. NULL: failed, or not modelled with these arguments. */
typedef const pt_value *(*pt_define)(pt_args *a, int which);
typedef struct pt_definition {
  const char *name;
  pt_define f;
  int which; /* handed to `f`, which defines several operators */
} pt_definition;
/* The definition of an operator, by its whole name ("aten::add.Tensor"), in one file each. */
bool pt_define_elementwise(const char *name, pt_definition *out);
bool pt_define_unary(const char *name, pt_definition *out);
bool pt_define_layout(const char *name, pt_definition *out);
bool pt_define_views(const char *name, pt_definition *out);
bool pt_define_pick(const char *name, pt_definition *out);
bool pt_define_slice(const char *name, pt_definition *out);
bool pt_define_cat(const char *name, pt_definition *out);
bool pt_define_fill(const char *name, pt_definition *out);
bool pt_define_reduce(const char *name, pt_definition *out);
bool pt_define_nn(const char *name, pt_definition *out);
bool pt_define_window(const char *name, pt_definition *out);
bool pt_define_index(const char *name, pt_definition *out);
bool pt_define_backward(const char *name, pt_definition *out);
bool pt_define_order(const char *name, pt_definition *out);
bool pt_define_dist(const char *name, pt_definition *out);
bool pt_define_composite(const char *name, pt_definition *out);
bool pt_define_kernel(const char *name, pt_definition *out);
bool pt_define_written(const char *name, pt_definition *out);
/* Whichever of these defines it, or the operator that it is a copying or a special form of. */
bool pt_define_any(const char *name, pt_definition *out);

/* ---- helpers that definitions share ---- */
/* NULL, and false, as in tensor.h. Dimensions are counted from the front. */
/* Whether it is `base`, or an overload of it. */
bool pt_named(const char *full, const char *base);
/* The entry of a table for an operator of aten; names in tables are without "aten::". */
bool pt_find(const pt_definition *entry, size_t n, const char *name, pt_definition *out);
pt_tensor *pt_like(sc *c, const pt_tensor *x, char kind,
                   pt_elem f); /* x's shape, x its first input */
const pt_tensor *pt_cast(sc *c, const pt_tensor *x, rule_dtype d); /* elements alone */
/* Integers of another width (narrow.c): the same, where each fits. Other tensors stay as they
 * are. */
const pt_tensor *pt_typed(sc *c, const pt_tensor *t, rule_dtype d);
/* x, an integer that `d` holds; fails where it may not. */
sx pt_fitting(sc *c, sx x, rule_dtype d);
/* The results of a call with their integer types. */
const pt_value *pt_typed_results(pt_args *a, const pt_value *v);
/* The same numbers as another kind; floats do not become integers. */
const pt_tensor *pt_kind(sc *c, const pt_tensor *t, char kind);
/* `t` repeated along sizes of 1 and new dimensions in front; to these sizes. */
const pt_tensor *pt_expand(sc *c, const pt_tensor *t, const sx *dim, uint32_t rank, uint64_t lead);
/* The sizes that `n` tensors broadcast to. */
bool pt_broadcast(sc *c, const pt_tensor *const *t, size_t n, sx *dim, uint32_t *rank,
                  uint64_t *lead);
const pt_tensor *pt_transpose(sc *c, const pt_tensor *t, uint32_t a, uint32_t b);
/* Dimension i of the result is dimension order[i]. */
const pt_tensor *pt_permute(sc *c, const pt_tensor *t, const uint32_t *order);
/* To these sizes, none of them -1, row-major. */
const pt_tensor *pt_reshape(sc *c, const pt_tensor *t, const sx *dim, uint32_t rank);
const pt_tensor *pt_matmul(sc *c, const pt_tensor *a, const pt_tensor *b); /* as aten::matmul */
/* Sizes of one index of an einsum: equal, or one is 1, which is not modelled. */
bool pt_same_index(sc *c, sx p, sx q);
/* Elements start, start + step, ... along `d`, `n` of them; the one at `at`, without `d`. */
const pt_tensor *pt_slice(sc *c, const pt_tensor *t, uint32_t d, sx start, sx n, sx step);
const pt_tensor *pt_drop(sc *c, const pt_tensor *t, uint32_t d, sx at);
/* A tensor that pt_drop made, as the slice of size 1 along `d` that it is; NULL: it is none. */
const pt_tensor *pt_undropped(sc *c, const pt_tensor *t, uint32_t d);
const pt_tensor *pt_cat(sc *c, const pt_tensor *const *t, size_t n, uint32_t d);
const pt_tensor *pt_combine(sc *c, sx p, const pt_tensor *a, sx q,
                            const pt_tensor *b); /* p a + q b, broadcast */
const pt_tensor *pt_times(sc *c, const pt_tensor *a, const pt_tensor *b);
/* scale q k^T + mask, of the last two dimensions; scale 0: 1 over the root of the last size. */
const pt_tensor *pt_scores(sc *c, const pt_tensor *q, const pt_tensor *k, sx scale,
                           const pt_tensor *mask);
/* A slice's start, length and step, from the arguments start, end and step. */
bool pt_slice_bounds(pt_args *a, const pt_tensor *x, uint32_t d, sx *start, sx *n, sx *step);
const pt_tensor *pt_flatten(sc *c, const pt_tensor *t, uint32_t from, uint32_t to);
const pt_tensor *pt_unsqueeze(sc *c, const pt_tensor *t, uint32_t d);
const pt_tensor *pt_pad(sc *c, const pt_tensor *t, uint32_t d, sx left, sx right, sx value);
/* Padding with x's own elements ("reflect", "replicate", "circular") by the sizes of the argument
 * `name`. */
const pt_tensor *pt_mirror(pt_args *a, const char *name, const pt_tensor *x, const char *mode);
/* Zeros before and after x along d, as a convolution pads: see mask_frames. */
const pt_tensor *pt_frame(sc *c, const pt_tensor *x, uint32_t d, sx before, sx behind);
/* A table of this size is read or written at `index`, whose values are in [0, size). A proof's
 * knowledge of indices, and the ranges from which samples draw them (index_ranges.c), come from
 * these calls: every definition that takes an index makes one. */
void pt_bound_index(sc *c, const pt_tensor *index, sx size);
/* The same where others have a value too: from -size on, counted from the end; or `besides`, a
 * number that names no row (0: none). */
void pt_bound_index_else(sc *c, const pt_tensor *index, sx size, bool from_end, sx besides);
/* An index that may count from the end of `size`, from 0 on; its bound is told. */
const pt_tensor *pt_from_end(sc *c, const pt_tensor *index, sx size);
const pt_tensor *pt_unary(sc *c, const pt_tensor *x, sx (*f)(sc *c, sx x));
const pt_tensor *pt_repeat_each(sc *c, const pt_tensor *x, uint32_t d, sx times);
const pt_tensor *pt_softmax(sc *c, const pt_tensor *x, uint32_t d, bool safe);
const pt_tensor *pt_rms(sc *c, const pt_tensor *x,
                        sx eps); /* x / sqrt(mean x^2 + eps) over the last dimension */
const pt_tensor *pt_grouped(sc *c, const pt_tensor *k, sx heads);
sx pt_reciprocal(sc *c, sx x); /* defined where x is not 0 */
sx sx_sigmoid(sc *c, sx x);
sx sx_tanh(sc *c, sx x);
sx sx_silu(sc *c, sx x);
sx sx_gelu(sc *c, sx x);
sx sx_gelu_tanh(sc *c, sx x);
sx sx_prod_dims(sc *c, const sx *d, uint32_t n);

#endif
