/* The files that a capture rests on, by content: SHA-256 against known digests. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check/check.h"
#include "tests/support/suite.h"

/* The digest of a capture whose only file holds a text so many times. */
static void expect(const char *text, size_t times, const char *want) {
  char dir[] = "/tmp/test_files_XXXXXX", path[64];
  iso_arena a = {0};
  const chk_file *file;
  size_t n;
  iso_error err = {0};
  ck_assert_ptr_nonnull(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/graph.json", dir);
  FILE *f = fopen(path, "wb");
  ck_assert_ptr_nonnull(f);
  for (size_t i = 0; i < times; i++) fputs(text, f);
  fclose(f);
  ck_assert_int_eq(chk_files(&(cap_graph){.path = dir}, NULL, 0, &a, &file, &n, &err), ISO_OK);
  unlink(path);
  rmdir(dir);
  ck_assert_uint_eq(n, 1);
  ck_assert_str_eq(file[0].digest, want);
  iso_arena_fini(&a);
}

/* FIPS 180-4's examples. */
START_TEST(known_digests) {
  expect("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  expect("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(files_of_a_capture) {
  iso_arena a = {0};
  const chk_file *file;
  size_t n;
  iso_error err = {0};
  ck_assert_int_eq(
      chk_files(&(cap_graph){.path = "models/gpt2-2l/vllm"}, NULL, 0, &a, &file, &n, &err), ISO_OK);
  ck_assert_uint_eq(n, 3);
  ck_assert_str_eq(file[0].name, "graph.json");
  for (size_t i = 0; i < n; i++) ck_assert_uint_eq(strlen(file[i].digest), 64);
  ck_assert_int_eq(
      chk_files(&(cap_graph){.path = "models/no-such-capture"}, NULL, 0, &a, &file, &n, &err),
      ISO_OK);
  ck_assert_uint_eq(n, 0);
  iso_arena_fini(&a);
}
END_TEST

int main(void) {
  Suite *s = suite_create("files");
  TCase *t = tcase_create("files");
  tcase_add_test(t, known_digests);
  tcase_add_test(t, files_of_a_capture);
  suite_add_tcase(s, t);
  return run_suite(s);
}
