/* Tensors as every stage passes them on: a dtype, a shape, row-major bytes, and somebody who owns
 * them.
 *
 * Captured weights are views of a mapped file, results of operators are views of libtorch's
 * storage; nobody copies to read. A tensor is immutable once another part of the program has seen
 * it, and counted: `rule_tensor_ref` and `rule_tensor_unref` (not atomic: one thread at a time).
 * Always dense and row-major: an operator's strided result is made contiguous where it leaves the
 * shim, because strides are not part of the function that two captures compute. */
#ifndef RULES_TENSOR_H
#define RULES_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "egraph/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rule_dtype {
  RULE_F64,
  RULE_F32,
  RULE_F16,
  RULE_BF16,
  RULE_F8E4M3FN,
  RULE_F8E5M2,
  RULE_C64,
  RULE_C128,
  RULE_I64,
  RULE_I32,
  RULE_I16,
  RULE_I8,
  RULE_U8,
  RULE_BOOL,
  RULE_DTYPE_COUNT
} rule_dtype;

enum { RULE_MAX_RANK = 16 };

typedef struct rule_shape {
  uint32_t rank;
  int64_t dim[RULE_MAX_RANK]; /* each >= 0 */
} rule_shape;

typedef struct rule_tensor {
  rule_dtype dtype;
  rule_shape shape;
  int64_t numel; /* product of the sizes, 1 for rank 0 */
  double coarse; /* 0, or how far it may be off, relative to its row's largest number: some operator
                  * on the way computes in a narrower dtype than float64 only */
  void *data;    /* numel * item size bytes, row-major, aligned to the item (8 for complex64) */
  uint32_t refs; /* private: see rule_tensor_ref */
  void *owner;   /* private: handed to `release` */
  void (*release)(void *owner); /* private: may be NULL */
} rule_tensor;

/* PyTorch's bare name, e.g. "float32". Static. */
const char *rule_dtype_name(rule_dtype d);
/* Returns: false when `name` is no dtype's (also accepts none of PyTorch's aliases: "float" is not
 * one). */
bool rule_dtype_find(const char *name, rule_dtype *out);
/* Unit: bytes. */
size_t rule_dtype_size(rule_dtype d);
bool rule_dtype_is_float(rule_dtype d); /* float64 .. float8: real floating */
bool rule_dtype_is_complex(rule_dtype d);
bool rule_dtype_is_inexact(rule_dtype d); /* either of the two */
bool rule_dtype_is_int(rule_dtype d);     /* int64 .. uint8, not bool */

/* ---- what floats hold; of complex numbers, each of the two; of others 0 ---- */

/* Binary digits, the leading one too. float16: 11. */
int rule_dtype_digits(rule_dtype d);
double rule_dtype_largest(rule_dtype d);
/* The distance of the numbers about `x`: rounding moves `x` by half of it. About 0 that of the
 * least numbers. */
double rule_dtype_unit(rule_dtype d, double x);
/* The nearest number, ties to even, or an infinity; `x` itself in a dtype without floats. */
double rule_dtype_round(rule_dtype d, double x);

/* Returns: in `out` the number of elements (1 for rank 0). Errors: ISO_RANGE where the product, or
 * the product in bytes of 8, overflows int64 (sizes after a 0 are checked too), or a size is
 * negative. */
ISO_MUST_USE iso_code rule_shape_numel(const rule_shape *s, int64_t *out, iso_error *err);
bool rule_shape_eq(const rule_shape *a, const rule_shape *b);
/* "[2, 3]" into `buf`, cut if it does not fit. Returns buf. */
char *rule_shape_print(const rule_shape *s, char *buf, size_t n);

/* A tensor of zero bytes of its own. Owns: the caller has the one reference. */
ISO_MUST_USE iso_code rule_tensor_new(rule_dtype dtype, const rule_shape *shape, rule_tensor **out,
                                      iso_error *err);
/* The same for a caller who fills it: its bytes are not set, and may be those of a freed tensor. */
ISO_MUST_USE iso_code rule_tensor_new_unset(rule_dtype dtype, const rule_shape *shape,
                                            rule_tensor **out, iso_error *err);
/* A view of memory that `release(owner)` gives back when the last reference goes. On error
 * `release` is not called. */
ISO_MUST_USE iso_code rule_tensor_wrap(rule_dtype dtype, const rule_shape *shape, void *data,
                                       void *owner, void (*release)(void *), rule_tensor **out,
                                       iso_error *err);
rule_tensor *rule_tensor_ref(rule_tensor *t); /* Returns t; NULL stays NULL */
void rule_tensor_unref(rule_tensor *t);       /* NULL is fine */
/* Another shape over the same bytes (keeps a reference to `t`). Requires: same number of elements.
 */
ISO_MUST_USE iso_code rule_tensor_reshape(rule_tensor *t, const rule_shape *shape,
                                          rule_tensor **out, iso_error *err);

/* ---- memory of large tensors ----
 * A block that is let go is kept for the next tensor of its size: layers repeat their sizes, and
 * pages from the kernel are cleared one by one, which takes longer than to fill them. One store for
 * the process, which threads share. */

/* Bytes from which on it is worth while: smaller ones come from the heap, which keeps its pages. */
enum { RULE_MEMORY_FROM = 1 << 20 };
/* A block of `bytes`, not set, aligned to 64; NULL: there is no memory, even after kept blocks were
 * given up. */
void *rule_memory_take(size_t bytes);
/* Gives back a block of rule_memory_take, with the size that was asked for. NULL is fine. */
void rule_memory_give(void *data, size_t bytes);
/* From now on keep at most so many bytes in all (1.25 GiB without this call); blocks beyond that go
 * back to the system at once. 0: keep nothing. */
void rule_memory_keep(size_t bytes);
/* Bytes that are kept and nobody uses. */
size_t rule_memory_kept(void);

/* The same dtype, number of elements and bytes: NaNs compare by their bits, and 0 is not -0. */
bool rule_tensor_same_bytes(const rule_tensor *a, const rule_tensor *b);
/* And the same shape. */
bool rule_tensor_same(const rule_tensor *a, const rule_tensor *b);
/* Whether both have one floating dtype and shape, and equal numbers: 0 and -0 are one. */
bool rule_tensor_same_numbers(const rule_tensor *a, const rule_tensor *b);
/* Whether no element is 0 in one and -0 in the other, as far as they are floats of as many
 * elements.
 */
bool rule_tensor_same_zeros(const rule_tensor *a, const rule_tensor *b);

/* Not one number everywhere (complex: by the real parts). */
bool rule_tensor_varies(const rule_tensor *t);
/* Element `i` (row-major) as double: integers and bool exactly up to 2^53, the real part of complex
 * numbers. */
double rule_tensor_get(const rule_tensor *t, int64_t i);
/* Element `i` as int64: of an integer or bool tensor. */
int64_t rule_tensor_get_int(const rule_tensor *t, int64_t i);
/* Store element `i`, rounded to the dtype (complex: imaginary part 0). Requires: `t` is owned, not
 * a view of a file. */
void rule_tensor_set(rule_tensor *t, int64_t i, double v);
/* The same with all digits; a narrow integer type wraps. */
void rule_tensor_set_int(rule_tensor *t, int64_t i, int64_t v);
/* The same values in float64 where the dtype is floating (complex128 where complex), else `t`
 * itself. Owns: the caller has one reference to *out. */
ISO_MUST_USE iso_code rule_tensor_to_float64(rule_tensor *t, rule_tensor **out, iso_error *err);
/* The same, in at most so many threads where the tensor is large. */
ISO_MUST_USE iso_code rule_tensor_to_float64_in(rule_tensor *t, unsigned threads, rule_tensor **out,
                                                iso_error *err);
/* Elements [from, from + n) of a real tensor in float64. */
void rule_tensor_widen(const rule_tensor *t, int64_t from, int64_t n, double *to);

#ifdef __cplusplus
}
#endif
#endif
