/* For tests that run operators: tensors from numbers, terms from text, one engine per test. */
#ifndef TESTS_VALIDATE_ENGINE_TEST_H
#define TESTS_VALIDATE_ENGINE_TEST_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/support/shapes.h"
#include "validate/validate.h"

static rule_schemas *schemas;
static val_engine *engine;
static iso_arena arena;

static inline void engine_setup(void) {
  iso_error err;
  iso_arena_init(&arena);
  ck_assert(rule_schemas_new(&schemas, &err) == ISO_OK);
  ck_assert_msg(val_new(NULL, schemas, &engine, &err) == ISO_OK, "%s", err.msg);
}

static inline void engine_teardown(void) {
  val_free(engine);
  rule_schemas_free(schemas);
  iso_arena_fini(&arena);
}

/* The suite in this process, with one engine for all of its tests: starting libtorch for each would
 * take minutes. */
static inline int run_suite_with_engine(Suite *s) {
  iso_error err;
  iso_arena_init(&arena);
  if (rule_schemas_new(&schemas, &err) != ISO_OK ||
      val_new(NULL, schemas, &engine, &err) != ISO_OK) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  const int status = run_suite_here(s);
  engine_teardown();
  return status;
}

/* Elements 0, 1, 2, ... */
static inline rule_tensor *counting(rule_dtype d, rule_shape s) {
  rule_tensor *t = NULL;
  iso_error err;
  ck_assert_msg(rule_tensor_new(d, &s, &t, &err) == ISO_OK, "%s", err.msg);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, (double)i);
  return t;
}

static inline rule_tensor *normal(uint64_t seed, rule_dtype d, rule_shape s) {
  rule_tensor *t = counting(d, s);
  iso_rng rng = iso_rng_new(seed, 0);
  val_sample_normal(&rng, t, 0, 1);
  return t;
}

/* A term in the rule language over the variables x0 to x<n - 1>. */
static inline const rule_term *term_over(uint32_t n, const char *text) {
  char rule_text[4096], *p = rule_text;
  p += sprintf(p, "(rule t ");
  for (uint32_t i = 0; i < n && i < 100; i++) p += sprintf(p, "(var x%u f _) ", i);
  snprintf(p, (size_t)(rule_text + sizeof rule_text - p), "(lhs %s) (rhs x0))", text);
  rule_set *set = NULL;
  iso_error err;
  ck_assert_msg(rule_set_parse(rule_text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  const rule *r = rule_set_at(set, 0);
  /* Variables are numbered as declared; those that do not occur keep their number. */
  const rule_term *t = rule_term_copy(&arena, r->lhs);
  ck_assert_uint_eq(r->n_vars, n);
  rule_set_free(set);
  return t;
}
static inline const rule_term *term(const char *text) { return term_over(6, text); }

static inline rule_tensor *eval(const char *text, rule_tensor *const *bind, unsigned flags) {
  rule_tensor *out = NULL;
  iso_error err;
  ck_assert_msg(val_eval(engine, term(text), bind, flags, &out, &err) == ISO_OK, "%s: %s", text,
                err.msg);
  return out;
}

/* The code and the message of an evaluation that must fail. */
static inline iso_error eval_fails(const char *text, rule_tensor *const *bind, unsigned flags) {
  rule_tensor *out = NULL;
  iso_error err = {0};
  iso_code code = val_eval(engine, term(text), bind, flags, &out, &err);
  ck_assert_msg(code != ISO_OK && code == err.code && err.msg[0] && !strchr(err.msg, '\n'),
                "%s: %d, \"%s\"", text, code, err.msg);
  return err;
}

static inline void close_to(const rule_tensor *got, const double *want, int64_t n, double tol) {
  ck_assert_int_eq(got->numel, n);
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(fabs(rule_tensor_get(got, i) - want[i]) <= tol,
                  "element %d is %.17g, expected %.17g", (int)i, rule_tensor_get(got, i), want[i]);
}

#endif
