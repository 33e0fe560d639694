/* Counted bytes: mapped files, memory and parts of both, and tensors over them.
 *
 * Whoever holds a tensor over some bytes holds the bytes, so a mapping goes with its last user. A
 * strided tensor is checked to lie within its storage before anything is read, by its largest
 * reach: strides are not negative, so no element lies below the offset. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture_int.h"

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

void cap_bytes_unref(void *owner) {
  cap_bytes *b = owner;
  if (b == NULL || --b->refs > 0) return;
  if (b->whole != NULL) cap_bytes_unref(b->whole);
  else if (b->mapped > 0) munmap(b->at, b->mapped);
  else free(b->at);
  free(b);
}

cap_bytes *cap_bytes_ref(cap_bytes *b) {
  b->refs++;
  return b;
}

iso_code cap_bytes_new(size_t n, cap_bytes **out, iso_error *err) {
  cap_bytes *b = calloc(1, sizeof *b);
  unsigned char *p = calloc(n > 0 ? n : 1, 1);
  if (b == NULL || p == NULL) {
    free(b);
    free(p);
    return no_memory(err);
  }
  *b = (cap_bytes){.at = p, .n = n, .refs = 1};
  *out = b;
  return ISO_OK;
}

iso_code cap_bytes_copy(const void *bytes, size_t n, cap_bytes **out, iso_error *err) {
  iso_code code = cap_bytes_new(n, out, err);
  if (code == ISO_OK && n > 0) memcpy((*out)->at, bytes, n);
  return code;
}

iso_code cap_bytes_part(cap_bytes *whole, size_t begin, size_t n, cap_bytes **out, iso_error *err) {
  cap_bytes *b = calloc(1, sizeof *b);
  if (b == NULL) return no_memory(err);
  *b = (cap_bytes){.at = whole->at + begin, .n = n, .refs = 1, .whole = cap_bytes_ref(whole)};
  *out = b;
  return ISO_OK;
}

iso_code cap_bytes_open(const char *path, cap_bytes **out, iso_error *err) {
  /* Not blocking: a FIFO in place of the file must give an error, not wait for a writer. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return iso_fail(err, ISO_IO, "%s", strerror(errno));
  struct stat st;
  iso_code code = ISO_OK;
  if (fstat(fd, &st) != 0) code = iso_fail(err, ISO_IO, "%s", strerror(errno));
  else if (!S_ISREG(st.st_mode)) code = iso_fail(err, ISO_IO, "not a regular file");
  else if (st.st_size == 0) code = cap_bytes_new(0, out, err);
  else {
    cap_bytes *b = calloc(1, sizeof *b);
    void *p = b != NULL ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (b == NULL) code = no_memory(err);
    else if (p == MAP_FAILED) code = iso_fail(err, ISO_IO, "cannot map: %s", strerror(errno));
    else
      *b = (cap_bytes){.at = p, .n = (size_t)st.st_size, .refs = 1, .mapped = (size_t)st.st_size};
    if (code == ISO_OK) *out = b;
    else free(b);
  }
  close(fd);
  return code;
}

void cap_bytes_idle(const rule_tensor *t) {
  if (t == NULL || t->release != cap_bytes_unref) return;
  const cap_bytes *b = t->owner;
  while (b->whole != NULL) b = b->whole;
  if (b->mapped > 0)
    (void)madvise(
        b->at, b->mapped,
        MADV_DONTNEED); /* a private mapping that nobody wrote to: read again when touched */
}

/* ---- tensors ---- */

static bool is_dense(const rule_shape *s, const int64_t *stride) {
  int64_t next = 1;
  for (uint32_t k = s->rank; k-- > 0;) {
    if (s->dim[k] != 1 && stride[k] != next) return false;
    next *= s->dim[k];
  }
  return true;
}

/* The bytes of the storage that the tensor needs: up to its furthest element. */
static iso_code reach(rule_dtype dtype, const rule_shape *s, const int64_t *stride, int64_t offset,
                      uint64_t *out, iso_error *err) {
  int64_t last = offset, step;
  if (offset < 0) return iso_fail(err, ISO_FORMAT, "its offset %" PRId64 " is negative", offset);
  for (uint32_t k = 0; k < s->rank; k++) {
    if (stride[k] < 0)
      return iso_fail(err, ISO_FORMAT, "stride %" PRId64 " is negative", stride[k]);
    if (__builtin_mul_overflow(s->dim[k] - 1, stride[k], &step) ||
        __builtin_add_overflow(last, step, &last))
      return iso_fail(err, ISO_RANGE, "its strides are too large");
  }
  if (__builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, (int64_t)rule_dtype_size(dtype), &last))
    return iso_fail(err, ISO_RANGE, "its strides are too large");
  *out = (uint64_t)last;
  return ISO_OK;
}

static void gather(const rule_shape *s, const int64_t *stride, size_t item,
                   const unsigned char *from, unsigned char *to, int64_t numel) {
  int64_t at[RULE_MAX_RANK] = {0}, place = 0;
  for (int64_t i = 0; i < numel; i++) {
    memcpy(to + (size_t)i * item, from + (size_t)place * item, item);
    for (uint32_t k = s->rank; k-- > 0;) {
      place += stride[k];
      if (++at[k] < s->dim[k]) break;
      place -= stride[k] * s->dim[k];
      at[k] = 0;
    }
  }
}

static iso_code check_bools(const rule_tensor *t, iso_error *err) {
  const unsigned char *p = t->data;
  for (int64_t i = 0; i < t->numel; i++)
    if (p[i] > 1)
      return iso_fail(err, ISO_FORMAT, "byte %d at element %" PRId64 " is no bool", p[i], i);
  return ISO_OK;
}

iso_code cap_bytes_view(cap_bytes *storage, const cap_strided *view, uint64_t *budget,
                        rule_tensor **out, iso_error *err) {
  const rule_dtype dtype = view->dtype;
  const rule_shape *shape = view->shape;
  const int64_t *stride = view->stride, offset = view->offset;
  int64_t numel;
  uint64_t need = 0;
  rule_tensor *t = NULL;
  const size_t item = rule_dtype_size(dtype);
  iso_code code = rule_shape_numel(shape, &numel, err);
  if (code == ISO_OK && numel > 0) code = reach(dtype, shape, stride, offset, &need, err);
  if (code != ISO_OK) return code;
  if (need > storage->n)
    return iso_fail(err, ISO_FORMAT, "it reaches to byte %" PRIu64 " of a storage of %zu", need,
                    storage->n);
  unsigned char *p = storage->at + (numel > 0 ? (size_t)offset * item : 0);
  if (numel > 0 && is_dense(shape, stride) && (uintptr_t)p % (item > 8 ? 8 : item) == 0) {
    code = rule_tensor_wrap(dtype, shape, p, cap_bytes_ref(storage), cap_bytes_unref, &t, err);
    if (code != ISO_OK) cap_bytes_unref(storage);
  } else {
    if ((uint64_t)numel * item > *budget)
      return iso_fail(err, ISO_LIMIT,
                      "unpacked, the file takes more memory than a file of its size may");
    *budget -= (uint64_t)numel * item;
    code = rule_tensor_new(dtype, shape, &t, err);
    if (code == ISO_OK && numel > 0) gather(shape, stride, item, p, t->data, numel);
  }
  if (code == ISO_OK && dtype == RULE_BOOL) code = check_bools(t, err);
  if (code == ISO_OK) *out = t;
  else rule_tensor_unref(t);
  return code;
}
