/* Helpers of the tests of capture/: a temporary directory, files in it, and checks of error
 * messages. JSON in these tests is written with ' for ". */
#ifndef TESTS_CAPTURE_CAPTURE_TEST_H
#define TESTS_CAPTURE_CAPTURE_TEST_H

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture_int.h"

static char tmp_dir[64];

static inline void tmp_setup(void) {
  strcpy(tmp_dir, "/tmp/isomer-capture-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(tmp_dir));
}

static inline void tmp_teardown(void) {
  DIR *d = opendir(tmp_dir);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      ck_assert_int_eq(unlinkat(dirfd(d), e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0), 0);
  closedir(d);
  ck_assert_int_eq(rmdir(tmp_dir), 0);
}

/* Paths live in one of four buffers, so that a few are valid at once. */
static inline const char *in_tmp(const char *name) {
  static char path[4][256];
  static int k;
  k = (k + 1) % 4;
  snprintf(path[k], sizeof path[k], "%s/%s", tmp_dir, name);
  return path[k];
}

static inline void write_bytes(const char *name, const void *bytes, size_t n) {
  FILE *f = fopen(in_tmp(name), "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
  ck_assert_int_eq(fclose(f), 0);
}

/* Owns: the caller frees. */
static inline char *quotes(const char *s) {
  char *t = strdup(s);
  ck_assert_ptr_nonnull(t);
  for (char *p = t; *p != '\0'; p++)
    if (*p == '\'') *p = '"';
  return t;
}

static inline size_t files_in_tmp(void) {
  size_t n = 0;
  DIR *d = opendir(tmp_dir);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static inline void check_message(const iso_error *err, const char *path, const char *part) {
  ck_assert_msg(strncmp(err->msg, path, strlen(path)) == 0, "\"%s\" does not begin with %s",
                err->msg, path);
  ck_assert_msg(strstr(err->msg, part) != NULL, "\"%s\" does not say \"%s\"", err->msg, part);
}

static inline int run_case(const char *name, TCase *c) {
  Suite *s = suite_create(name);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
