/* Safetensors files: a u64 length, a JSON header, raw little-endian tensors.
 *
 * The header is trusted in nothing: its length is checked against the file before anything is read,
 * every tensor's bytes against its shape and dtype, and the tensors must tile the data without
 * overlap or hole, as the format asks (https://github.com/huggingface/safetensors, "Format").
 * Tensors are views of the mapping, which is counted and unmapped with the last of them; only a
 * misaligned one is copied. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture_int.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors are mapped as they lie in the file");

enum { MAX_HEADER = 100000000 }; /* bytes; the format's own limit */

typedef struct entry {
  const char *name; /* in the header's JSON */
  rule_dtype dtype;
  rule_shape shape;
  size_t begin, end; /* from the start of the data */
} entry;

struct cap_tensors {
  char *path;
  cap_bytes *map;
  json_t *header;
  size_t data; /* where the data begins in the file */
  size_t n;
  entry *entry;
  cap_names names;
};

static const struct {
  const char *name;
  rule_dtype dtype;
} dtypes[] = {
    {"F64", RULE_F64},          {"F32", RULE_F32},        {"F16", RULE_F16}, {"BF16", RULE_BF16},
    {"F8_E4M3", RULE_F8E4M3FN}, {"F8_E5M2", RULE_F8E5M2}, {"C64", RULE_C64}, {"I64", RULE_I64},
    {"I32", RULE_I32},          {"I16", RULE_I16},        {"I8", RULE_I8},   {"U8", RULE_U8},
    {"BOOL", RULE_BOOL},
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- the header ---- */

static iso_code parse_dtype(const json_t *v, rule_dtype *out, iso_error *err) {
  const char *s = json_string_value(v);
  if (s == NULL) return iso_fail(err, ISO_FORMAT, "has no dtype");
  for (size_t i = 0; i < N_DTYPES; i++)
    if (strcmp(dtypes[i].name, s) == 0) {
      *out = dtypes[i].dtype;
      return ISO_OK;
    }
  return iso_fail(err, ISO_FORMAT, "unknown dtype \"%.40s\"", s);
}

static iso_code parse_shape(const json_t *v, rule_shape *out, iso_error *err) {
  if (!json_is_array(v)) return iso_fail(err, ISO_FORMAT, "has no shape");
  if (json_array_size(v) > RULE_MAX_RANK)
    return iso_fail(err, ISO_RANGE, "rank %zu is above %d", json_array_size(v), RULE_MAX_RANK);
  out->rank = (uint32_t)json_array_size(v);
  for (uint32_t i = 0; i < out->rank; i++) {
    const json_t *d = json_array_get(v, i);
    if (!json_is_integer(d))
      return iso_fail(err, ISO_FORMAT, "dimension %" PRIu32 " is not an integer", i);
    out->dim[i] = json_integer_value(d);
  }
  return ISO_OK;
}

static iso_code parse_offsets(const json_t *v, size_t room, entry *e, iso_error *err) {
  const json_t *b = json_array_get(v, 0), *d = json_array_get(v, 1);
  if (json_array_size(v) != 2 || !json_is_integer(b) || !json_is_integer(d))
    return iso_fail(err, ISO_FORMAT, "data_offsets is not a pair of integers");
  json_int_t begin = json_integer_value(b), end = json_integer_value(d);
  if (begin < 0 || end < begin)
    return iso_fail(err, ISO_FORMAT, "data_offsets [%lld, %lld] are not in order", (long long)begin,
                    (long long)end);
  if ((uint64_t)end > room)
    return iso_fail(err, ISO_FORMAT,
                    "ends at byte %lld of %zu bytes of data (is the file truncated?)",
                    (long long)end, room);
  e->begin = (size_t)begin;
  e->end = (size_t)end;
  return ISO_OK;
}

static iso_code parse_entry(const json_t *v, size_t room, entry *e, iso_error *err) {
  if (!json_is_object(v)) return iso_fail(err, ISO_FORMAT, "is not described by an object");
  iso_code code;
  if ((code = parse_dtype(json_object_get(v, "dtype"), &e->dtype, err)) != ISO_OK) return code;
  if ((code = parse_shape(json_object_get(v, "shape"), &e->shape, err)) != ISO_OK) return code;
  if ((code = parse_offsets(json_object_get(v, "data_offsets"), room, e, err)) != ISO_OK)
    return code;
  int64_t numel, bytes;
  if ((code = rule_shape_numel(&e->shape, &numel, err)) != ISO_OK) return code;
  if (__builtin_mul_overflow(numel, (int64_t)rule_dtype_size(e->dtype), &bytes) ||
      (uint64_t)bytes != e->end - e->begin) {
    char shape[128];
    return iso_fail(err, ISO_FORMAT, "%s of %s does not take the %zu bytes given",
                    rule_shape_print(&e->shape, shape, sizeof shape), rule_dtype_name(e->dtype),
                    e->end - e->begin);
  }
  return ISO_OK;
}

static int by_offset(const void *pa, const void *pb) {
  const entry *a = *(const entry *const *)pa, *b = *(const entry *const *)pb;
  if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
  return a->end < b->end ? -1 : a->end > b->end;
}

/* The tensors must cover the data exactly: a hole could hide bytes, an overlap make two tensors
 * one. */
static iso_code check_tiling(const cap_tensors *t, size_t room, iso_error *err) {
  const entry **order = malloc((t->n > 0 ? t->n : 1) * sizeof *order);
  if (order == NULL) return no_memory(err);
  for (size_t i = 0; i < t->n; i++) order[i] = &t->entry[i];
  qsort(order, t->n, sizeof *order, by_offset);
  size_t at = 0;
  iso_code code = ISO_OK;
  for (size_t i = 0; i < t->n && code == ISO_OK; i++) {
    if (order[i]->begin < at)
      code = iso_fail(err, ISO_FORMAT, "tensor \"%.120s\": overlaps the one before it",
                      order[i]->name);
    else if (order[i]->begin > at)
      code = iso_fail(err, ISO_FORMAT, "tensor \"%.120s\": there is a hole of %zu bytes before it",
                      order[i]->name, order[i]->begin - at);
    at = order[i]->end;
  }
  if (code == ISO_OK && at != room)
    code = iso_fail(err, ISO_FORMAT, "%zu bytes of data belong to no tensor", room - at);
  free(order);
  return code;
}

static iso_code parse_header(cap_tensors *t, size_t room, iso_error *err) {
  t->entry = calloc(json_object_size(t->header) + 1, sizeof *t->entry);
  if (t->entry == NULL) return no_memory(err);
  const char *name;
  json_t *v;
  json_object_foreach(t->header, name, v) {
    if (strcmp(name, "__metadata__") == 0) {
      if (!json_is_object(v)) return iso_fail(err, ISO_FORMAT, "__metadata__ is not an object");
      continue;
    }
    entry *e = &t->entry[t->n];
    e->name = name;
    iso_code code = parse_entry(v, room, e, err);
    if (code != ISO_OK) {
      iso_prefix(err, "tensor \"%.120s\": ", name);
      return code;
    }
    if (!cap_names_add(&t->names, name, t->n)) return no_memory(err);
    t->n++;
  }
  return check_tiling(t, room, err);
}

static iso_code index_mapping(cap_tensors *t, iso_error *err) {
  if (t->map->n < 8)
    return iso_fail(err, ISO_FORMAT, "%zu bytes are too few for a safetensors file", t->map->n);
  uint64_t length;
  memcpy(&length, t->map->at, 8);
  if (length > t->map->n - 8)
    return iso_fail(err, ISO_FORMAT, "a header of %" PRIu64 " bytes in a file of %zu", length,
                    t->map->n);
  if (length > MAX_HEADER)
    return iso_fail(err, ISO_LIMIT, "a header of %" PRIu64 " bytes is too large", length);
  const char *text = (const char *)t->map->at + 8;
  if (length == 0 || text[0] != '{')
    return iso_fail(err, ISO_FORMAT, "the header does not begin with {");
  json_error_t je;
  t->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &je);
  if (t->header == NULL)
    return cap_json_no_memory(&je) ? no_memory(err)
                                   : iso_fail(err, ISO_FORMAT, "header: %s", je.text);
  t->data = 8 + (size_t)length;
  return parse_header(t, t->map->n - t->data, err);
}

/* Takes over `map`. */
static iso_code open_mapping(cap_bytes *map, const char *path, cap_tensors **out, iso_error *err) {
  cap_tensors *t = calloc(1, sizeof *t);
  if (t == NULL) {
    cap_bytes_unref(map);
    return no_memory(err);
  }
  t->map = map;
  t->path = strdup(path);
  iso_code code = t->path == NULL ? no_memory(err) : index_mapping(t, err);
  if (code == ISO_OK) *out = t;
  else cap_tensors_close(t);
  return code;
}

iso_code cap_tensors_open(const char *path, cap_tensors **out, iso_error *err) {
  cap_bytes *map = NULL;
  iso_code code = cap_bytes_open(path, &map, err);
  if (code == ISO_OK) code = open_mapping(map, path, out, err);
  if (code != ISO_OK) iso_prefix(err, "%s: ", path);
  return code;
}

iso_code cap_tensors_from(const void *bytes, size_t n, const char *path, cap_tensors **out,
                          iso_error *err) {
  cap_bytes *map = NULL;
  iso_code code = cap_bytes_copy(bytes, n, &map, err);
  if (code == ISO_OK) code = open_mapping(map, path, out, err);
  if (code != ISO_OK) iso_prefix(err, "%s: ", path);
  return code;
}

void cap_tensors_close(cap_tensors *t) {
  if (t == NULL) return;
  cap_names_fini(&t->names);
  free(t->entry);
  json_decref(t->header);
  cap_bytes_unref(t->map);
  free(t->path);
  free(t);
}

size_t cap_tensors_count(const cap_tensors *t) { return t->n; }
const char *cap_tensors_name(const cap_tensors *t, size_t i) { return t->entry[i].name; }

/* ---- tensors ---- */

static iso_code view_entry(cap_tensors *t, const entry *e, rule_tensor **out, iso_error *err) {
  unsigned char *p = t->map->at + t->data + e->begin;
  size_t bytes = e->end - e->begin;
  if (e->dtype == RULE_BOOL)
    for (size_t i = 0; i < bytes; i++)
      if (p[i] > 1) return iso_fail(err, ISO_FORMAT, "byte %d at element %zu is no bool", p[i], i);
  if ((uintptr_t)p % rule_dtype_size(e->dtype) == 0) {
    t->map->refs++;
    iso_code code = rule_tensor_wrap(e->dtype, &e->shape, p, t->map, cap_bytes_unref, out, err);
    if (code != ISO_OK) t->map->refs--;
    return code;
  }
  iso_code code = rule_tensor_new(e->dtype, &e->shape, out, err);
  if (code == ISO_OK && bytes > 0) memcpy((*out)->data, p, bytes);
  return code;
}

iso_code cap_tensors_get(cap_tensors *t, const char *name, rule_tensor **out, iso_error *err) {
  size_t i = cap_names_find(&t->names, name);
  if (i == CAP_NO_INDEX) {
    *out = NULL;
    return ISO_OK;
  }
  iso_code code = view_entry(t, &t->entry[i], out, err);
  if (code != ISO_OK) iso_prefix(err, "%s: tensor \"%.120s\": ", t->path, name);
  return code;
}

/* ---- writing ---- */

typedef struct piece {
  const cap_named_tensor *t;
  size_t bytes, begin;
} piece;

static int by_size_of_item(const void *pa, const void *pb) {
  const piece *a = *(const piece *const *)pa, *b = *(const piece *const *)pb;
  size_t sa = rule_dtype_size(a->t->tensor->dtype), sb = rule_dtype_size(b->t->tensor->dtype);
  if (sa != sb) return sa > sb ? -1 : 1;
  return a < b ? -1 : a > b;
}

static const char *file_dtype(rule_dtype d) {
  for (size_t i = 0; i < N_DTYPES; i++)
    if (dtypes[i].dtype == d) return dtypes[i].name;
  return NULL;
}

/* One entry of the header; names that are no UTF-8 fail in jansson. */
static iso_code describe(json_t *header, const piece *p, iso_error *err) {
  const rule_tensor *x = p->t->tensor;
  const char *dtype = file_dtype(x->dtype), *name = p->t->name;
  if (dtype == NULL)
    return iso_fail(err, ISO_UNSUPPORTED, "tensor \"%.120s\": safetensors has no %s", name,
                    rule_dtype_name(x->dtype));
  if (strcmp(name, "__metadata__") == 0 || json_object_get(header, name) != NULL)
    return iso_fail(err, ISO_USAGE, "tensor \"%.120s\": the name is taken", name);
  json_t *shape = json_array();
  for (uint32_t i = 0; i < x->shape.rank; i++)
    json_array_append_new(shape, json_integer(x->shape.dim[i]));
  json_t *e = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                        (json_int_t)p->begin, (json_int_t)(p->begin + p->bytes));
  if (e == NULL) return no_memory(err);
  if (json_object_set_new(header, name, e) != 0)
    return iso_fail(err, ISO_USAGE, "tensor \"%.120s\": the name is not UTF-8, or out of memory",
                    name);
  return ISO_OK;
}

/* The header's text, padded so that the data behind it is aligned to 8. Owns: *out is malloc'ed. */
static iso_code header_text(const piece *p, size_t n, char **out, size_t *len, iso_error *err) {
  json_t *header = json_object();
  iso_code code = header != NULL ? ISO_OK : no_memory(err);
  for (size_t i = 0; i < n && code == ISO_OK; i++) code = describe(header, &p[i], err);
  char *text = code == ISO_OK ? json_dumps(header, JSON_COMPACT) : NULL;
  json_decref(header);
  if (code != ISO_OK) return code;
  size_t used = text != NULL ? strlen(text) : 0, padded = (used + 7) / 8 * 8;
  char *whole = text != NULL && padded <= MAX_HEADER ? malloc(padded + 1) : NULL;
  if (whole != NULL) {
    memset(whole, ' ', padded);
    memcpy(whole, text, used);
  }
  free(text);
  if (whole == NULL)
    return padded > MAX_HEADER ? iso_fail(err, ISO_LIMIT, "the header is too large")
                               : no_memory(err);
  *out = whole;
  *len = padded;
  return ISO_OK;
}

static iso_code write_all(int fd, const void *bytes, size_t n, iso_error *err) {
  const char *p = bytes;
  while (n > 0) {
    ssize_t k = write(fd, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0)
      return iso_fail(err, ISO_IO, "%s", k < 0 ? strerror(errno) : "nothing could be written");
    p += k;
    n -= (size_t)k;
  }
  return ISO_OK;
}

static iso_code write_file(int fd, piece *const *order, size_t n, const char *text, size_t len,
                           bool sync, iso_error *err) {
  uint64_t length = len;
  iso_code code = write_all(fd, &length, 8, err);
  if (code == ISO_OK) code = write_all(fd, text, len, err);
  for (size_t i = 0; i < n && code == ISO_OK; i++)
    code = write_all(fd, order[i]->t->tensor->data, order[i]->bytes, err);
  if (code == ISO_OK && sync && fsync(fd) != 0) code = iso_fail(err, ISO_IO, "%s", strerror(errno));
  return code;
}

/* A new file beside `path`. Owns: *out is malloc'ed. */
static iso_code open_temporary(const char *path, char **out, int *fd, iso_error *err) {
  size_t n = strlen(path) + 48;
  char *name = malloc(n);
  if (name == NULL) return no_memory(err);
  for (int k = 0; k < 100; k++) {
    snprintf(name, n, "%s.%ld.%d.tmp", path, (long)getpid(), k);
    *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd >= 0) {
      *out = name;
      return ISO_OK;
    }
    if (errno != EEXIST) break;
  }
  iso_code code = iso_fail(err, ISO_IO, "cannot create a file there: %s", strerror(errno));
  free(name);
  return code;
}

/* A device or a pipe is written as it is: a file in its place would be a file of that name. */
static iso_code save_straight(const char *path, piece *const *order, size_t n, const char *text,
                              size_t len, iso_error *err) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return iso_fail(err, ISO_IO, "%s", strerror(errno));
  iso_code code = write_file(fd, order, n, text, len, false, err);
  if (close(fd) != 0 && code == ISO_OK) code = iso_fail(err, ISO_IO, "%s", strerror(errno));
  return code;
}

static iso_code save_pieces(const char *path, piece *const *order, size_t n, const char *text,
                            size_t len, iso_error *err) {
  char *temporary = NULL;
  int fd = -1;
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
    return save_straight(path, order, n, text, len, err);
  iso_code code = open_temporary(path, &temporary, &fd, err);
  if (code != ISO_OK) return code;
  code = write_file(fd, order, n, text, len, true, err);
  if (close(fd) != 0 && code == ISO_OK) code = iso_fail(err, ISO_IO, "%s", strerror(errno));
  if (code == ISO_OK && rename(temporary, path) != 0)
    code = iso_fail(err, ISO_IO, "%s", strerror(errno));
  if (code != ISO_OK) unlink(temporary);
  free(temporary);
  return code;
}

iso_code cap_tensors_save(const char *path, const cap_named_tensor *t, size_t n, iso_error *err) {
  piece *p = calloc(n + 1, sizeof *p), **order = calloc(n + 1, sizeof *order);
  char *text = NULL;
  size_t len = 0, at = 0;
  iso_code code = p != NULL && order != NULL ? ISO_OK : no_memory(err);
  if (code != ISO_OK) goto done;
  for (size_t i = 0; i < n; i++) {
    p[i].t = &t[i];
    p[i].bytes = (size_t)t[i].tensor->numel * rule_dtype_size(t[i].tensor->dtype);
    order[i] = &p[i];
  }
  /* Large items first: every tensor is then aligned to its item, and reading it back needs no copy.
   */
  qsort(order, n, sizeof *order, by_size_of_item);
  for (size_t i = 0; i < n; i++) {
    order[i]->begin = at;
    at += order[i]->bytes;
  }
  code = header_text(p, n, &text, &len, err);
  if (code == ISO_OK) code = save_pieces(path, order, n, text, len, err);
done:
  free(text);
  free(order);
  free(p);
  if (code != ISO_OK) iso_prefix(err, "%s: ", path);
  return code;
}
