/* Dense tensors: reference counts, shapes, and exact conversions between the storage formats and
 * double.
 *
 * Small floating formats are decoded exactly (every value is a double) and encoded with one
 * rounding, to nearest with ties to even, straight from the double: going through float first would
 * round twice. Overflow gives infinity where the format has one, NaN in float8_e4m3fn, as in
 * PyTorch. */
#include "rules/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/parallel.h"
#include "egraph/base/wide.h"

static const struct {
  const char *name;
  uint8_t size;
  uint8_t digits; /* of floats: binary ones of normal numbers */
  int16_t least;  /* the exponent of the least normal number */
  double largest;
} dtypes[RULE_DTYPE_COUNT] = {
    [RULE_F64] = {"float64", 8, 53, -1022, 0x1.fffffffffffffp1023},
    [RULE_F32] = {"float32", 4, 24, -126, 0x1.fffffep127},
    [RULE_F16] = {"float16", 2, 11, -14, 65504},
    [RULE_BF16] = {"bfloat16", 2, 8, -126, 0x1.fep127},
    [RULE_F8E4M3FN] = {"float8_e4m3fn", 1, 4, -6, 448},
    [RULE_F8E5M2] = {"float8_e5m2", 1, 3, -14, 57344},
    [RULE_C64] = {"complex64", 8, 24, -126, 0x1.fffffep127},
    [RULE_C128] = {"complex128", 16, 53, -1022, 0x1.fffffffffffffp1023},
    [RULE_I64] = {.name = "int64", .size = 8},
    [RULE_I32] = {.name = "int32", .size = 4},
    [RULE_I16] = {.name = "int16", .size = 2},
    [RULE_I8] = {.name = "int8", .size = 1},
    [RULE_U8] = {.name = "uint8", .size = 1},
    [RULE_BOOL] = {.name = "bool", .size = 1},
};

const char *rule_dtype_name(rule_dtype d) { return dtypes[d].name; }

bool rule_dtype_find(const char *name, rule_dtype *out) {
  for (int d = 0; d < RULE_DTYPE_COUNT; d++)
    if (strcmp(dtypes[d].name, name) == 0) {
      *out = (rule_dtype)d;
      return true;
    }
  return false;
}

size_t rule_dtype_size(rule_dtype d) { return dtypes[d].size; }
bool rule_dtype_is_float(rule_dtype d) { return d <= RULE_F8E5M2; }
bool rule_dtype_is_complex(rule_dtype d) { return d == RULE_C64 || d == RULE_C128; }
bool rule_dtype_is_inexact(rule_dtype d) {
  return rule_dtype_is_float(d) || rule_dtype_is_complex(d);
}
bool rule_dtype_is_int(rule_dtype d) { return d >= RULE_I64 && d <= RULE_U8; }

int rule_dtype_digits(rule_dtype d) { return dtypes[d].digits; }
double rule_dtype_largest(rule_dtype d) { return dtypes[d].largest; }

double rule_dtype_unit(rule_dtype d, double x) {
  int e;
  if (!dtypes[d].digits) return 0;
  frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
  return ldexp(1, (x != 0 && e - 1 > dtypes[d].least ? e - 1 : dtypes[d].least) + 1 -
                      dtypes[d].digits);
}

double rule_dtype_round(rule_dtype d, double x) {
  const double unit = rule_dtype_unit(d, x);
  if (!isfinite(x) || dtypes[d].digits == 53 || unit == 0) return x;
  const double y = nearbyint(x / unit) * unit;
  return fabs(y) > dtypes[d].largest ? copysign(INFINITY, x) : y;
}

/* ---- shapes ---- */

iso_code rule_shape_numel(const rule_shape *s, int64_t *out, iso_error *err) {
  if (s->rank > RULE_MAX_RANK)
    return iso_fail(err, ISO_RANGE, "rank %" PRIu32 " is above %d", s->rank, RULE_MAX_RANK);
  int64_t bytes = 8; /* of the sizes that are not 0, so that a 0 hides nothing */
  bool empty = false;
  for (uint32_t i = 0; i < s->rank; i++) {
    if (s->dim[i] < 0)
      return iso_fail(err, ISO_RANGE, "dimension %" PRIu32 " has negative size %" PRId64, i,
                      s->dim[i]);
    if (s->dim[i] == 0) empty = true;
    else if (__builtin_mul_overflow(bytes, s->dim[i], &bytes))
      return iso_fail(err, ISO_RANGE, "too many elements at dimension %" PRIu32, i);
  }
  *out = empty ? 0 : bytes / 8;
  return ISO_OK;
}

bool rule_shape_eq(const rule_shape *a, const rule_shape *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

char *rule_shape_print(const rule_shape *s, char *buf, size_t n) {
  if (n == 0) return buf;
  char text[RULE_MAX_RANK * 22 + 8];
  size_t len = 1;
  text[0] = '[';
  for (uint32_t i = 0; i < s->rank && i < RULE_MAX_RANK; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRId64, i ? ", " : "", s->dim[i]);
  text[len++] = ']';
  text[len] = '\0';
  if (len >= n) len = n - 1;
  memcpy(buf, text, len);
  buf[len] = '\0';
  return buf;
}

/* ---- life ---- */

static iso_code sizes_of(rule_dtype dtype, const rule_shape *shape, int64_t *numel, int64_t *bytes,
                         iso_error *err) {
  const iso_code code = rule_shape_numel(shape, numel, err);
  if (code != ISO_OK) return code;
  if (__builtin_mul_overflow(*numel, (int64_t)rule_dtype_size(dtype), bytes))
    return iso_fail(err, ISO_RANGE, "a tensor of %" PRId64 " elements of %s is too large", *numel,
                    rule_dtype_name(dtype));
  return ISO_OK;
}

iso_code rule_tensor_wrap(rule_dtype dtype, const rule_shape *shape, void *data, void *owner,
                          void (*release)(void *), rule_tensor **out, iso_error *err) {
  static max_align_t empty[1];
  int64_t numel, bytes;
  iso_code code = sizes_of(dtype, shape, &numel, &bytes, err);
  if (code != ISO_OK) return code;
  rule_tensor *t = calloc(1, sizeof *t);
  if (t == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  t->dtype = dtype;
  t->shape.rank =
      shape->rank; /* the sizes behind the rank stay 0: shapes compare and hash by content */
  memcpy(t->shape.dim, shape->dim, shape->rank * sizeof shape->dim[0]);
  t->numel = numel;
  t->data = data ? data : empty; /* libtorch gives a tensor without elements no memory */
  t->refs = 1;
  t->owner = owner;
  t->release = release;
  *out = t;
  return ISO_OK;
}

typedef struct block {
  void *data;
  size_t bytes;
} block;

static void release_block(void *owner) {
  block *b = owner;
  rule_memory_give(b->data, b->bytes);
  free(b);
}

static iso_code new_large(rule_dtype dtype, const rule_shape *shape, size_t bytes,
                          rule_tensor **out, iso_error *err) {
  block *b = malloc(sizeof *b);
  void *data = b ? rule_memory_take(bytes) : NULL;
  if (data == NULL) {
    free(b);
    return iso_fail(err, ISO_NOMEM, "out of memory for %zu bytes of %s", bytes,
                    rule_dtype_name(dtype));
  }
  *b = (block){data, bytes};
  iso_code code = rule_tensor_wrap(dtype, shape, data, b, release_block, out, err);
  if (code != ISO_OK) release_block(b);
  return code;
}

iso_code rule_tensor_new_unset(rule_dtype dtype, const rule_shape *shape, rule_tensor **out,
                               iso_error *err) {
  int64_t numel, bytes;
  iso_code code = sizes_of(dtype, shape, &numel, &bytes, err);
  if (code != ISO_OK) return code;
  if (bytes >= RULE_MEMORY_FROM) return new_large(dtype, shape, (size_t)bytes, out, err);
  void *data = malloc(bytes > 0 ? (size_t)bytes : 1);
  if (data == NULL)
    return iso_fail(err, ISO_NOMEM, "out of memory for %" PRId64 " elements of %s", numel,
                    rule_dtype_name(dtype));
  code = rule_tensor_wrap(dtype, shape, data, data, free, out, err);
  if (code != ISO_OK) free(data);
  return code;
}

iso_code rule_tensor_new(rule_dtype dtype, const rule_shape *shape, rule_tensor **out,
                         iso_error *err) {
  iso_code code = rule_tensor_new_unset(dtype, shape, out, err);
  if (code == ISO_OK) memset((*out)->data, 0, (size_t)(*out)->numel * rule_dtype_size(dtype));
  return code;
}

rule_tensor *rule_tensor_ref(rule_tensor *t) {
  if (t != NULL) t->refs++;
  return t;
}

bool rule_tensor_same_bytes(const rule_tensor *a, const rule_tensor *b) {
  return a->dtype == b->dtype && a->numel == b->numel &&
         (a->data == b->data ||
          memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) == 0);
}

bool rule_tensor_same(const rule_tensor *a, const rule_tensor *b) {
  return rule_shape_eq(&a->shape, &b->shape) && rule_tensor_same_bytes(a, b);
}

bool rule_tensor_varies(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get(t, i) != rule_tensor_get(t, 0)) return true;
  return false;
}

void rule_tensor_unref(rule_tensor *t) {
  if (t == NULL || --t->refs > 0) return;
  if (t->release != NULL) t->release(t->owner);
  free(t);
}

static void release_tensor(void *owner) { rule_tensor_unref(owner); }

iso_code rule_tensor_reshape(rule_tensor *t, const rule_shape *shape, rule_tensor **out,
                             iso_error *err) {
  int64_t numel;
  iso_code code = rule_shape_numel(shape, &numel, err);
  if (code != ISO_OK) return code;
  if (numel != t->numel) {
    char from[128], to[128];
    return iso_fail(err, ISO_USAGE, "a tensor of shape %s has no shape %s",
                    rule_shape_print(&t->shape, from, sizeof from),
                    rule_shape_print(shape, to, sizeof to));
  }
  /* Views of views all keep the storage's owner, so that chains of them do not grow. */
  rule_tensor *base = t->release == release_tensor ? t->owner : t;
  code = rule_tensor_wrap(t->dtype, shape, t->data, base, release_tensor, out, err);
  if (code != ISO_OK) return code;
  (*out)->coarse = t->coarse;
  rule_tensor_ref(base);
  return ISO_OK;
}

/* ---- elements ---- */

/* The value of a format of 1 sign bit, `ebits` exponent bits and `mbits` mantissa bits; `finite`:
 * no infinities, and NaN is all ones (float8_e4m3fn). */
static double decode(uint32_t bits, int ebits, int mbits, bool finite) {
  const int bias = (1 << (ebits - 1)) - 1;
  const uint32_t mant = bits & ((1u << mbits) - 1u);
  const int exp = (int)((bits >> mbits) & ((1u << ebits) - 1u));
  const double sign = (bits >> (ebits + mbits)) & 1u ? -1.0 : 1.0;
  const bool top = exp == (1 << ebits) - 1;
  if (top && finite && mant == (1u << mbits) - 1u) return copysign((double)NAN, sign);
  if (top && !finite) return mant == 0 ? sign * (double)INFINITY : copysign((double)NAN, sign);
  if (exp == 0) return sign * ldexp((double)mant, 1 - bias - mbits);
  return sign * ldexp((double)(mant | 1u << mbits), exp - bias - mbits);
}

/* The nearest value, ties to even, in such a format. */
static uint32_t encode(double v, int ebits, int mbits, bool finite) {
  const int emin = 2 - (1 << (ebits - 1)); /* of the normal numbers */
  const uint32_t sign = signbit(v) ? 1u << (ebits + mbits) : 0u;
  const uint32_t inf = finite ? (1u << (ebits + mbits)) - 1u : ((1u << ebits) - 1u) << mbits;
  if (isnan(v)) return sign | (finite ? inf : inf | 1u << (mbits - 1));
  if (isinf(v)) return sign | inf;
  if (v == 0) return sign;
  int e;
  const double a = fabs(v);
  (void)frexp(a, &e); /* a in [2^(e-1), 2^e) */
  const int q = e - 1 > emin ? e - 1 : emin;
  /* In units of the last place: below 2^(mbits+1), exactly scaled. The hidden bit, or the carry out
   * of rounding, adds itself to the exponent field. */
  const double ulps = nearbyint(ldexp(a, mbits - q));
  const uint32_t code = ((uint32_t)(q - emin) << mbits) + (uint32_t)ulps;
  return sign | (code < inf ? code : inf);
}

static double from_bf16(uint16_t b) {
  const uint32_t bits = (uint32_t)b << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

static double from_f16(uint16_t h) {
  const uint32_t exp = (uint32_t)(h >> 10) & 31u;
  if (exp == 0 || exp == 31) return decode(h, 5, 10, false);
  const uint64_t bits =
      (uint64_t)(h & 0x8000u) << 48 | (uint64_t)(exp + 1008u) << 52 | (uint64_t)(h & 0x3ffu) << 42;
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

double rule_tensor_get(const rule_tensor *t, int64_t i) {
  switch (t->dtype) {
  case RULE_F64: return ((const double *)t->data)[i];
  case RULE_F32: return (double)((const float *)t->data)[i];
  case RULE_F16: return from_f16(((const uint16_t *)t->data)[i]);
  case RULE_BF16: return from_bf16(((const uint16_t *)t->data)[i]);
  case RULE_F8E4M3FN: return decode(((const uint8_t *)t->data)[i], 4, 3, true);
  case RULE_F8E5M2: return decode(((const uint8_t *)t->data)[i], 5, 2, false);
  case RULE_C64: return (double)((const float *)t->data)[2 * i];
  case RULE_C128: return ((const double *)t->data)[2 * i];
  default: return (double)rule_tensor_get_int(t, i);
  }
}

int64_t rule_tensor_get_int(const rule_tensor *t, int64_t i) {
  switch (t->dtype) {
  case RULE_I64: return ((const int64_t *)t->data)[i];
  case RULE_I32: return ((const int32_t *)t->data)[i];
  case RULE_I16: return ((const int16_t *)t->data)[i];
  case RULE_I8: return ((const int8_t *)t->data)[i];
  case RULE_U8: return ((const uint8_t *)t->data)[i];
  case RULE_BOOL: return ((const uint8_t *)t->data)[i] != 0;
  default: ISO_CHECK(t->dtype >= RULE_I64 && t->dtype <= RULE_BOOL); return 0;
  }
}

/* Towards zero, as a cast does; NaN becomes 0, and a number that int64 cannot hold becomes its
 * nearest end. */
static int64_t to_int(double v) {
  if (isnan(v)) return 0;
  if (v >= 9223372036854775808.0) return INT64_MAX;
  if (v <= -9223372036854775808.0) return INT64_MIN;
  return (int64_t)v;
}

void rule_tensor_set(rule_tensor *t, int64_t i, double v) {
  switch (t->dtype) {
  case RULE_F64: ((double *)t->data)[i] = v; break;
  case RULE_F32: ((float *)t->data)[i] = (float)v; break;
  case RULE_F16: ((uint16_t *)t->data)[i] = (uint16_t)encode(v, 5, 10, false); break;
  case RULE_BF16: ((uint16_t *)t->data)[i] = (uint16_t)encode(v, 8, 7, false); break;
  case RULE_F8E4M3FN: ((uint8_t *)t->data)[i] = (uint8_t)encode(v, 4, 3, true); break;
  case RULE_F8E5M2: ((uint8_t *)t->data)[i] = (uint8_t)encode(v, 5, 2, false); break;
  case RULE_C64:
    ((float *)t->data)[2 * i] = (float)v;
    ((float *)t->data)[2 * i + 1] = 0;
    break;
  case RULE_C128:
    ((double *)t->data)[2 * i] = v;
    ((double *)t->data)[2 * i + 1] = 0;
    break;
  case RULE_I64: ((int64_t *)t->data)[i] = to_int(v); break;
  /* The narrow integers wrap, as PyTorch's casts do. */
  case RULE_I32: ((int32_t *)t->data)[i] = (int32_t)(uint32_t)to_int(v); break;
  case RULE_I16: ((int16_t *)t->data)[i] = (int16_t)(uint16_t)to_int(v); break;
  case RULE_I8: ((int8_t *)t->data)[i] = (int8_t)(uint8_t)to_int(v); break;
  case RULE_U8: ((uint8_t *)t->data)[i] = (uint8_t)to_int(v); break;
  case RULE_BOOL: ((uint8_t *)t->data)[i] = v != 0; break;
  case RULE_DTYPE_COUNT: break;
  }
}

void rule_tensor_set_int(rule_tensor *t, int64_t i, int64_t v) {
  switch (t->dtype) {
  case RULE_I64: ((int64_t *)t->data)[i] = v; break;
  case RULE_I32: ((int32_t *)t->data)[i] = (int32_t)(uint32_t)v; break;
  case RULE_I16: ((int16_t *)t->data)[i] = (int16_t)(uint16_t)v; break;
  case RULE_I8: ((int8_t *)t->data)[i] = (int8_t)(uint8_t)v; break;
  case RULE_U8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
  default: rule_tensor_set(t, i, (double)v);
  }
}

ISO_WIDE static void widen_floats(const float *s, double *d, int64_t n) {
  enum { BLOCK = 64 }; /* of one length: compilers turn it into vectors */
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK)
    for (int64_t k = 0; k < BLOCK; k++) d[i + k] = (double)s[i + k];
  for (; i < n; i++) d[i] = (double)s[i];
}

typedef struct widening {
  const rule_tensor *from;
  rule_tensor *to;
} widening;

void rule_tensor_widen(const rule_tensor *t, int64_t from, int64_t n, double *to) {
  if (t->dtype == RULE_F32) widen_floats((const float *)t->data + from, to, n);
  else if (t->dtype == RULE_BF16)
    for (int64_t i = 0; i < n; i++) to[i] = from_bf16(((const uint16_t *)t->data)[from + i]);
  else if (t->dtype == RULE_F16)
    for (int64_t i = 0; i < n; i++) to[i] = from_f16(((const uint16_t *)t->data)[from + i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = rule_tensor_get(t, from + i);
}

static void widen_part(void *ctx, int64_t from, int64_t to) {
  const widening *w = ctx;
  const rule_tensor *t = w->from;
  double *d = w->to->data;
  if (t->dtype == RULE_C64)
    widen_floats((const float *)t->data + 2 * from, d + 2 * from, 2 * (to - from));
  else rule_tensor_widen(t, from, to - from, d + from);
}

iso_code rule_tensor_to_float64_in(rule_tensor *t, unsigned threads, rule_tensor **out,
                                   iso_error *err) {
  const bool complex = t->dtype == RULE_C64;
  if (!complex && (!rule_dtype_is_float(t->dtype) || t->dtype == RULE_F64)) {
    *out = rule_tensor_ref(t);
    return ISO_OK;
  }
  rule_tensor *r;
  iso_code code = rule_tensor_new_unset(complex ? RULE_C128 : RULE_F64, &t->shape, &r, err);
  if (code != ISO_OK) return code;
  widening w = {t, r};
  iso_parallel(threads, t->numel, 1, widen_part, &w);
  *out = r;
  return ISO_OK;
}

iso_code rule_tensor_to_float64(rule_tensor *t, rule_tensor **out, iso_error *err) {
  return rule_tensor_to_float64_in(t, 1, out, err);
}
