/* For tests that load captures: a folder of their own, and the operators' schemas. */
#ifndef TESTS_CAPTURE_LOADING_TEST_H
#define TESTS_CAPTURE_LOADING_TEST_H

#include "tests/capture/capture_test.h"

static rule_schemas *schemas;

static inline void setup(void) {
  tmp_setup();
  ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK);
}
static inline void teardown(void) {
  rule_schemas_free(schemas);
  tmp_teardown();
}

#endif
