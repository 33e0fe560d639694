/* Safetensors files: a written file reads back, views outlive the file, and no malformed file gets
 * through. */
#include "tests/capture/capture_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM = 4096 };

/* A file of this header and n bytes 0, 1, 2, ... of data. Returns its size. */
static size_t make_file(unsigned char *out, const char *header, size_t n) {
  char *text = quotes(header);
  uint64_t length = strlen(text);
  ck_assert_uint_le(8 + length + n, ROOM);
  memcpy(out, &length, 8);
  memcpy(out + 8, text, length);
  for (size_t i = 0; i < n; i++) out[8 + length + i] = (unsigned char)i;
  free(text);
  return 8 + length + n;
}

static void refuse_bytes(const void *bytes, size_t n, const char *part) {
  cap_tensors *t = NULL;
  iso_error err = {0};
  write_bytes("x", bytes, n);
  ck_assert_msg(cap_tensors_open(in_tmp("x"), &t, &err) != ISO_OK, "accepted what is wrong: %s",
                part);
  check_message(&err, in_tmp("x: "), part);
  unsigned char *fit = malloc(n > 0 ? n : 1); /* so that reading past the end is seen */
  memcpy(fit, bytes, n);
  ck_assert_int_ne(cap_tensors_from(fit, n, "mem", &t, &err), ISO_OK);
  check_message(&err, "mem: ", part);
  ck_assert_int_ne(cap_tensors_from(fit, n, "mem", &t, NULL), ISO_OK);
  ck_assert_ptr_null(t);
  free(fit);
}

static const struct {
  const char *header;
  size_t n;
  const char *part;
} malformed[] = {
    {"[]", 0, "does not begin with {"},
    {" {}", 0, "does not begin with {"},
    {"{", 0, "header: "},
    {"{} x", 0, "header: "},
    {"{'a\xff':1}", 0, "header: "},
    {"{'a':1}", 0, "tensor \"a\": is not described"},
    {"{'__metadata__':1}", 0, "__metadata__"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]},'a':{'dtype':'U8','shape':[1],'data_"
     "offsets':[1,2]}}",
     2, "duplicate"},
    {"{'a':{'dtype':'U8','dtype':'I8','shape':[1],'data_offsets':[0,1]}}", 1, "duplicate"},
    {"{'a':{'shape':[1],'data_offsets':[0,1]}}", 1, "has no dtype"},
    {"{'a':{'dtype':7,'shape':[1],'data_offsets':[0,1]}}", 1, "has no dtype"},
    {"{'a':{'dtype':'F128','shape':[1],'data_offsets':[0,16]}}", 16, "unknown dtype \"F128\""},
    {"{'a':{'dtype':'f32','shape':[1],'data_offsets':[0,4]}}", 4, "unknown dtype"},
    {"{'a':{'dtype':'U8','data_offsets':[0,1]}}", 1, "has no shape"},
    {"{'a':{'dtype':'U8','shape':1,'data_offsets':[0,1]}}", 1, "has no shape"},
    {"{'a':{'dtype':'U8','shape':[1.0],'data_offsets':[0,1]}}", 1, "dimension 0"},
    {"{'a':{'dtype':'U8','shape':[-1],'data_offsets':[0,1]}}", 1, "negative"},
    {"{'a':{'dtype':'U8','shape':[-1,-1],'data_offsets':[0,1]}}", 1, "negative"},
    {"{'a':{'dtype':'U8','shape':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],'data_offsets':[0,1]}}", 1,
     "rank 17"},
    {"{'a':{'dtype':'U8','shape':[4611686018427387904],'data_offsets':[0,1]}}", 1,
     "too many elements"},
    {"{'a':{'dtype':'F64','shape':[2305843009213693952],'data_offsets':[0,8]}}", 8,
     "too many elements"},
    {"{'a':{'dtype':'U8','shape':[4294967296,4294967296],'data_offsets':[0,0]}}", 0,
     "too many elements"},
    {"{'a':{'dtype':'U8','shape':[0,4294967296,4294967296],'data_offsets':[0,0]}}", 0,
     "too many elements"},
    {"{'a':{'dtype':'U8','shape':[99999999999999999999],'data_offsets':[0,1]}}", 1, "header: "},
    {"{'a':{'dtype':'U8','shape':[1]}}", 1, "data_offsets"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[0]}}", 1, "data_offsets"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1,2]}}", 1, "data_offsets"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':['0','1']}}", 1, "data_offsets"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[1,0]}}", 1, "not in order"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[-1,0]}}", 1, "not in order"},
    {"{'a':{'dtype':'U8','shape':[2],'data_offsets':[0,2]}}", 1, "truncated"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[9223372036854775806,9223372036854775807]}}", 1,
     "truncated"},
    {"{'a':{'dtype':'F32','shape':[2],'data_offsets':[0,4]}}", 4, "does not take the 4 bytes"},
    {"{'a':{'dtype':'F32','shape':[],'data_offsets':[0,8]}}", 8, "does not take the 8 bytes"},
    {"{'a':{'dtype':'F32','shape':[0],'data_offsets':[0,4]}}", 4, "does not take the 4 bytes"},
    {"{'a':{'dtype':'U8','shape':[2],'data_offsets':[0,2]},'b':{'dtype':'U8','shape':[2],'data_"
     "offsets':[1,3]}}",
     3, "overlaps"},
    {"{'a':{'dtype':'U8','shape':[2],'data_offsets':[0,2]},'b':{'dtype':'U8','shape':[2],'data_"
     "offsets':[0,2]}}",
     2, "overlaps"},
    {"{'a':{'dtype':'U8','shape':[2],'data_offsets':[0,2]},'b':{'dtype':'U8','shape':[0],'data_"
     "offsets':[1,1]}}",
     2, "overlaps"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]},'b':{'dtype':'U8','shape':[1],'data_"
     "offsets':[2,3]}}",
     3, "hole of 1 bytes"},
    {"{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}}", 3, "2 bytes of data"},
    {"{}", 1, "1 bytes of data"},
};
enum { N_MALFORMED = sizeof malformed / sizeof malformed[0] };

START_TEST(malformed_headers) {
  unsigned char bytes[ROOM];
  size_t n = make_file(bytes, malformed[_i].header, malformed[_i].n);
  refuse_bytes(bytes, n, malformed[_i].part);
}
END_TEST

START_TEST(absurd_lengths) {
  static const uint64_t length[] = {
      3, 9, (uint64_t)1 << 31, (uint64_t)1 << 32, (uint64_t)1 << 62, UINT64_MAX - 7, UINT64_MAX};
  for (size_t i = 0; i < sizeof length / sizeof length[0]; i++) {
    unsigned char bytes[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    memcpy(bytes, &length[i], 8);
    refuse_bytes(bytes, sizeof bytes, "a header of");
  }
  unsigned char none[8] = {0};
  refuse_bytes(none, 8, "does not begin with {");
}
END_TEST

static const char *const good =
    "{'__metadata__':{'format':'pt'},'a':{'dtype':'F32','shape':[2,1],'data_offsets':[0,8]},"
    "'b':{'dtype':'I16','shape':[],'data_offsets':[8,10]},"
    "'none':{'dtype':'F64','shape':[0,3],'data_offsets':[10,10]}} ";

START_TEST(every_prefix_is_refused) {
  unsigned char bytes[ROOM];
  size_t n = make_file(bytes, good, 10);
  for (size_t k = 0; k < n; k++) refuse_bytes(bytes, k, "");
}
END_TEST

START_TEST(one_bit_off_never_crashes) {
  unsigned char bytes[ROOM];
  size_t n = make_file(bytes, good, 10);
  for (size_t bit = 0; bit < 8 * n; bit++) {
    cap_tensors *t = NULL;
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    if (cap_tensors_from(bytes, n, "mem", &t, NULL) == ISO_OK) {
      for (size_t i = 0; i < cap_tensors_count(t); i++) {
        rule_tensor *x = NULL;
        if (cap_tensors_get(t, cap_tensors_name(t, i), &x, NULL) == ISO_OK)
          for (int64_t e = 0; e < x->numel; e++) rule_tensor_get(x, e);
        rule_tensor_unref(x);
      }
      cap_tensors_close(t);
    }
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}
END_TEST

static rule_tensor *get(cap_tensors *t, const char *name) {
  rule_tensor *x = NULL;
  iso_error err;
  ck_assert_msg(cap_tensors_get(t, name, &x, &err) == ISO_OK, "%s", err.msg);
  return x;
}

START_TEST(reads_in_the_headers_order) {
  unsigned char bytes[ROOM];
  write_bytes("x", bytes, make_file(bytes, good, 10));
  cap_tensors *t = NULL;
  ck_assert_int_eq(cap_tensors_open(in_tmp("x"), &t, NULL), ISO_OK);
  ck_assert_uint_eq(cap_tensors_count(t), 3);
  ck_assert_str_eq(cap_tensors_name(t, 0), "a");
  ck_assert_str_eq(cap_tensors_name(t, 1), "b");
  ck_assert_str_eq(cap_tensors_name(t, 2), "none");
  ck_assert_ptr_null(get(t, "c"));
  ck_assert_ptr_null(get(t, "__metadata__"));
  rule_tensor *a = get(t, "a"), *b = get(t, "b"), *none = get(t, "none");
  cap_tensors_close(t); /* tensors outlive it */
  ck_assert_uint_eq(a->shape.rank, 2);
  ck_assert_int_eq(a->shape.dim[0], 2);
  ck_assert_mem_eq(a->data, "\0\1\2\3\4\5\6\7", 8);
  ck_assert_int_eq(rule_tensor_get_int(b, 0), 0x0908);
  ck_assert_int_eq(none->numel, 0);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  rule_tensor_unref(none);
}
END_TEST

START_TEST(misaligned_tensors_are_copied) {
  for (int pad = 0; pad < 8; pad++) {
    char header[128];
    unsigned char bytes[ROOM];
    snprintf(header, sizeof header, "{'a':{'dtype':'F64','shape':[2],'data_offsets':[0,16]}}%*s",
             pad, "");
    write_bytes("x", bytes, make_file(bytes, header, 16));
    cap_tensors *t = NULL;
    ck_assert_int_eq(cap_tensors_open(in_tmp("x"), &t, NULL), ISO_OK);
    rule_tensor *a = get(t, "a");
    cap_tensors_close(t);
    ck_assert_uint_eq((uintptr_t)a->data % 8, 0);
    ck_assert_mem_eq(a->data, "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16);
    rule_tensor_unref(a);
  }
}
END_TEST

START_TEST(bools_are_0_or_1) {
  unsigned char bytes[ROOM];
  size_t n = make_file(bytes,
                       "{'a':{'dtype':'BOOL','shape':[2],'data_offsets':[0,2]},"
                       "'b':{'dtype':'BOOL','shape':[3],'data_offsets':[2,5]}}",
                       5);
  cap_tensors *t = NULL;
  iso_error err;
  ck_assert_int_eq(cap_tensors_from(bytes, n, "mem", &t, &err), ISO_OK);
  rule_tensor *a = get(t, "a"), *b = NULL;
  ck_assert_int_eq(rule_tensor_get_int(a, 1), 1);
  ck_assert_int_eq(cap_tensors_get(t, "b", &b, &err), ISO_FORMAT);
  check_message(&err, "mem: tensor \"b\": ", "byte 2 at element 0 is no bool");
  ck_assert_ptr_null(b);
  rule_tensor_unref(a);
  cap_tensors_close(t);
}
END_TEST

static void refuse_path(const char *path, const char *part) {
  cap_tensors *t = NULL;
  iso_error err;
  ck_assert_int_eq(cap_tensors_open(path, &t, &err), ISO_IO);
  check_message(&err, path, part);
}

START_TEST(files_that_cannot_be_read) {
  refuse_path(in_tmp("missing"), "No such file");
  refuse_path(tmp_dir, "not a regular file");
  ck_assert_int_eq(mkfifo(in_tmp("fifo"), 0600), 0);
  refuse_path(in_tmp("fifo"), "not a regular file");
  write_bytes("secret", "x", 1);
  ck_assert_int_eq(chmod(in_tmp("secret"), 0), 0);
  if (geteuid() != 0) refuse_path(in_tmp("secret"), "Permission denied");
}
END_TEST

/* ---- writing ---- */

static rule_tensor *counting(rule_dtype dtype, uint32_t rank, int64_t a, int64_t b) {
  rule_tensor *t = NULL;
  rule_shape s = {.rank = rank, .dim = {a, b}};
  ck_assert_int_eq(rule_tensor_new(dtype, &s, &t, NULL), ISO_OK);
  unsigned char *p = t->data;
  for (size_t i = 0; i < (size_t)t->numel * rule_dtype_size(dtype); i++)
    p[i] = (unsigned char)(dtype == RULE_BOOL ? i % 2 : i * 37 + 5);
  return t;
}

START_TEST(what_is_saved_reads_back) {
  cap_named_tensor named[RULE_DTYPE_COUNT];
  rule_tensor *own[RULE_DTYPE_COUNT];
  size_t n = 0;
  for (int d = 0; d < RULE_DTYPE_COUNT; d++) {
    if (d == RULE_C128) continue;
    own[n] = counting((rule_dtype)d, (uint32_t)d % 3, d % 5, 3);
    named[n] = (cap_named_tensor){rule_dtype_name((rule_dtype)d), own[n]};
    n++;
  }
  iso_error err;
  ck_assert_msg(cap_tensors_save(in_tmp("x"), named, n, &err) == ISO_OK, "%s", err.msg);
  ck_assert_int_eq(cap_tensors_save(in_tmp("x"), named, n, &err), ISO_OK); /* over the old one */
  ck_assert_uint_eq(files_in_tmp(), 1);
  cap_tensors *t = NULL;
  ck_assert_msg(cap_tensors_open(in_tmp("x"), &t, &err) == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(cap_tensors_count(t), n);
  for (size_t i = 0; i < n; i++) {
    ck_assert_str_eq(cap_tensors_name(t, i), named[i].name);
    rule_tensor *x = get(t, named[i].name);
    ck_assert_int_eq(x->dtype, own[i]->dtype);
    ck_assert(rule_shape_eq(&x->shape, &own[i]->shape));
    ck_assert_ptr_ne(x->owner, x->data); /* a view: nothing had to be copied */
    if (x->numel > 0)
      ck_assert_mem_eq(x->data, own[i]->data, (size_t)x->numel * rule_dtype_size(x->dtype));
    rule_tensor_unref(x);
    rule_tensor_unref(own[i]);
  }
  cap_tensors_close(t);
}
END_TEST

/* A path that is no file is written to, and stays as it is. */
START_TEST(a_pipe_stays_a_pipe) {
  const char *path = in_tmp("pipe");
  struct stat st;
  iso_error err = {0};
  char got[64];
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  const int fd = open(path, O_RDWR | O_NONBLOCK);
  ck_assert_int_ge(fd, 0);
  ck_assert_msg(cap_tensors_save(path, NULL, 0, &err) == ISO_OK, "%s", err.msg);
  ck_assert(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
  ck_assert_int_ge(read(fd, got, sizeof got), 10);
  close(fd);
  unlink(path);
  ck_assert_int_ne(cap_tensors_save(in_tmp(""), NULL, 0, &err), ISO_OK); /* a folder */
}
END_TEST

START_TEST(no_tensors_at_all) {
  cap_tensors *t = NULL;
  ck_assert_int_eq(cap_tensors_save(in_tmp("x"), NULL, 0, NULL), ISO_OK);
  ck_assert_int_eq(cap_tensors_open(in_tmp("x"), &t, NULL), ISO_OK);
  ck_assert_uint_eq(cap_tensors_count(t), 0);
  ck_assert_ptr_null(get(t, ""));
  cap_tensors_close(t);
}
END_TEST

static void refuse_save(const char *path, const cap_named_tensor *t, size_t n, iso_code code,
                        const char *part) {
  iso_error err;
  size_t before = files_in_tmp();
  ck_assert_int_eq(cap_tensors_save(path, t, n, &err), code);
  check_message(&err, path, part);
  ck_assert_uint_eq(files_in_tmp(), before); /* nothing is left behind */
}

START_TEST(what_cannot_be_saved) {
  rule_tensor *x = counting(RULE_F32, 1, 2, 0), *c = counting(RULE_C128, 1, 2, 0);
  cap_named_tensor twice[] = {{"a", x}, {"a", x}}, complex128 = {"a", c},
                   metadata = {"__metadata__", x};
  cap_named_tensor latin1 = {"\xe9", x};
  refuse_save(in_tmp("x"), twice, 2, ISO_USAGE, "tensor \"a\": the name is taken");
  refuse_save(in_tmp("x"), &complex128, 1, ISO_UNSUPPORTED, "no complex128");
  refuse_save(in_tmp("x"), &metadata, 1, ISO_USAGE, "the name is taken");
  refuse_save(in_tmp("x"), &latin1, 1, ISO_USAGE, "UTF-8");
  refuse_save(in_tmp("no/x"), twice, 1, ISO_IO, "No such file");
  ck_assert_int_eq(mkdir(in_tmp("taken"), 0700), 0);
  refuse_save(in_tmp("taken"), twice, 1, ISO_IO, "");
  refuse_save("/dev/full/x", twice, 1, ISO_IO, "");
  rule_tensor_unref(x);
  rule_tensor_unref(c);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("safetensors");
  tcase_add_checked_fixture(c, tmp_setup, tmp_teardown);
  tcase_add_loop_test(c, malformed_headers, 0, N_MALFORMED);
  tcase_add_test(c, absurd_lengths);
  tcase_add_test(c, every_prefix_is_refused);
  tcase_add_test(c, one_bit_off_never_crashes);
  tcase_add_test(c, reads_in_the_headers_order);
  tcase_add_test(c, misaligned_tensors_are_copied);
  tcase_add_test(c, bools_are_0_or_1);
  tcase_add_test(c, files_that_cannot_be_read);
  tcase_add_test(c, what_is_saved_reads_back);
  tcase_add_test(c, a_pipe_stays_a_pipe);
  tcase_add_test(c, no_tensors_at_all);
  tcase_add_test(c, what_cannot_be_saved);
  return run_case("safetensors", c);
}
