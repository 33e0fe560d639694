/* What a capture rests on, by content: SHA-256 against known digests. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "check/sha256.h"

/* With the processor's instructions where it has them, and without. */
static void expect_with(bool instructions, const char *text, size_t times, size_t piece,
                        const char *want) {
  chk_sha256 s;
  char got[CHK_DIGEST];
  const size_t len = strlen(text), n = len * times;
  char *all = malloc(n + 1);
  ck_assert_ptr_nonnull(all);
  for (size_t i = 0; i < times; i++) memcpy(all + i * len, text, len);
  chk_sha256_init(&s);
  s.instructions &= instructions;
  for (size_t i = 0; i < n; i += piece) chk_sha256_add(&s, all + i, n - i < piece ? n - i : piece);
  chk_sha256_hex(&s, got);
  ck_assert_str_eq(got, want);
  free(all);
}

static void expect(const char *text, size_t times, size_t piece, const char *want) {
  expect_with(true, text, times, piece, want);
  expect_with(false, text, times, piece, want);
}

/* FIPS 180-4's examples, in pieces of each size. */
START_TEST(known_digests) {
  const size_t piece = (size_t)_i + 1;
  expect("", 1, piece, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect("abc", 1, piece, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, piece,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  expect("a", 100000, piece, "6d1cf22d7cc09b085dfc25ee1a1f3ae0265804c607bc2074ad253bcc82fd81ee");
}
END_TEST

START_TEST(files_of_a_capture) {
  iso_arena a = {0};
  const chk_file *file;
  size_t n;
  iso_error err = {0};
  ck_assert_int_eq(chk_files("models/gpt2-2l/vllm", NULL, 0, &a, &file, &n, &err), ISO_OK);
  ck_assert_uint_eq(n, 3);
  ck_assert_str_eq(file[0].name, "graph.json");
  for (size_t i = 0; i < n; i++) ck_assert_uint_eq(strlen(file[i].digest), 64);
  ck_assert_int_eq(chk_files("models/no-such-capture", NULL, 0, &a, &file, &n, &err), ISO_OK);
  ck_assert_uint_eq(n, 0);
  iso_arena_fini(&a);
}
END_TEST

int main(void) {
  Suite *s = suite_create("files");
  TCase *t = tcase_create("files");
  tcase_add_loop_test(t, known_digests, 0, 130);
  tcase_add_test(t, files_of_a_capture);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? 1 : 0;
}
