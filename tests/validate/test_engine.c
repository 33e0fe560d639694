/* Calls and terms through the shim (needs libtorch). */
#include <unistd.h>

#include "egraph/base/rng.h"
#include "tests/validate/engine_test.h"

static iso_code call(const rule_term *t, rule_tensor *const *bind, unsigned flags,
                     rule_tensor **out, size_t cap, size_t *n, iso_error *err) {
  return val_call(engine, t, bind, flags, out, cap, n, err);
}

START_TEST(it_says_what_it_is) {
  const char *version = NULL;
  char *schema = NULL;
  iso_error err;
  ck_assert_msg(val_torch_version(engine, &version, &err) == ISO_OK, "%s", err.msg);
  ck_assert(version[0] >= '2');
  ck_assert(val_torch_schema(engine, "aten::mm", &schema, &err) == ISO_OK);
  ck_assert_str_eq(schema, "aten::mm(Tensor self, Tensor mat2) -> Tensor");
  free(schema);
  ck_assert(val_torch_schema(engine, "aten::no_such", &schema, &err) == ISO_OK && !schema);
}
END_TEST

START_TEST(literals_become_what_the_schema_wants) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(2, 3))};
  rule_tensor *y =
      eval("(aten::add.Tensor x0 2.5 :alpha 2)", x, 0); /* a number for a tensor does not promote */
  ck_assert_int_eq(y->dtype, RULE_F32);
  close_to(y, (double[]){5, 6, 7, 8, 9, 10}, 6, 0);
  rule_tensor_unref(y);
  y = eval("(aten::sum.dim_IntList x0 (list 1) true :dtype float64)", x, 0);
  ck_assert(y->dtype == RULE_F64 && y->shape.rank == 2);
  close_to(y, (double[]){3, 12}, 2, 0);
  rule_tensor_unref(y);
  y = eval("(aten::cat (list x0 (aten::neg x0)) 1)", x, 0);
  close_to(y, (double[]){0, 1, 2, 0, -1, -2, 3, 4, 5, -3, -4, -5}, 12, 0);
  rule_tensor_unref(y);
  y = eval("(aten::gelu x0 :approximate \"tanh\")", x, VAL_FLOAT64);
  ck_assert_double_eq_tol(rule_tensor_get(y, 1), 0.84119199060827, 1e-12);
  rule_tensor_unref(y);
  rule_tensor_unref(x[0]);
}
END_TEST

START_TEST(an_int_stands_for_a_list_of_equal_ones) {
  rule_tensor *x = counting(RULE_F32, SHAPE(1, 1, 4, 4)), *out[2];
  const rule_term *args[] = {rule_var(&arena, 0), rule_int(&arena, 2)};
  size_t n = 0;
  iso_error err;
  iso_code code = call(rule_op(&arena, "aten::max_pool2d", args, 2), &x, 0, out, 2, &n, &err);
  ck_assert_msg(code == ISO_OK, "%s", err.msg);
  ck_assert_uint_eq(n, 1);
  close_to(out[0], (double[]){5, 7, 13, 15}, 4, 0);
  rule_tensor_unref(out[0]);
  rule_tensor_unref(x);
}
END_TEST

START_TEST(lists_of_optional_tensors) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(2, 3)), counting(RULE_I64, SHAPE(2))};
  rule_tensor *y = eval("(aten::index.Tensor x0 (list none x1))", x, 0);
  close_to(y, (double[]){0, 1, 3, 4}, 4, 0);
  rule_tensor_unref(y);
  rule_tensor_unref(x[0]);
  rule_tensor_unref(x[1]);
}
END_TEST

START_TEST(float64_reaches_everything) {
  rule_tensor *x[6] = {counting(RULE_BF16, SHAPE(3)), counting(RULE_I64, SHAPE(3)),
                       counting(RULE_C64, SHAPE(2))};
  const struct {
    const char *text;
    rule_dtype captured, wide;
  } c[] = {{"(aten::relu x0)", RULE_BF16, RULE_F64},
           {"(aten::to.dtype x0 float16)", RULE_F16, RULE_F64},
           {"(aten::to.dtype x0 int32)", RULE_I32, RULE_I32},
           {"(aten::neg x1)", RULE_I64, RULE_I64},
           {"(aten::div.Tensor x1 2)", RULE_F32, RULE_F64},   /* the default dtype */
           {"(aten::full (list 2) 0.5)", RULE_F32, RULE_F64}, /* and again */
           {"(aten::neg x2)", RULE_C64, RULE_C128}};
  for (int round = 0; round < 2; round++) /* the default dtype is put back */
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
      rule_tensor *y = eval(c[i].text, x, 0), *z = eval(c[i].text, x, VAL_FLOAT64);
      ck_assert_msg(y->dtype == c[i].captured, "%s gives %s", c[i].text, rule_dtype_name(y->dtype));
      ck_assert_msg(z->dtype == c[i].wide, "%s gives %s", c[i].text, rule_dtype_name(z->dtype));
      rule_tensor_unref(y);
      rule_tensor_unref(z);
    }
  ck_assert_int_eq(eval_fails("(aten::view.dtype x0 int16)", x, VAL_FLOAT64).code, ISO_UNSUPPORTED);
  rule_tensor *bits = eval("(aten::view.dtype x0 int16)", x, 0);
  ck_assert_int_eq(rule_tensor_get_int(bits, 1), 0x3f80);
  rule_tensor_unref(bits);
  for (int i = 0; i < 3; i++) rule_tensor_unref(x[i]);
}
END_TEST

START_TEST(several_results) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(2, 5))}, *out[3];
  rule_tensor *y = eval("(getitem (aten::split.Tensor x0 2 1) 2)", x, 0);
  close_to(y, (double[]){4, 9}, 2, 0);
  rule_tensor_unref(y);
  ck_assert_int_eq(eval_fails("(getitem (aten::split.Tensor x0 2 1) 3)", x, 0).code, ISO_USAGE);
  size_t n = 0;
  iso_error err;
  const rule_term *split = term("(getitem (aten::split.Tensor x0 2 1) 0)")->child[0];
  ck_assert_int_eq(val_eval(engine, split, x, 0, &y, &err), ISO_USAGE); /* which one? */
  ck_assert_int_eq(call(split, x, 0, out, 2, &n, &err), ISO_RANGE);
  ck_assert_uint_eq(x[0]->refs, 1);
  ck_assert_int_eq(call(split, x, 0, out, 3, &n, &err), ISO_OK);
  ck_assert_uint_eq(n, 3);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(out[i]);
  ck_assert_uint_eq(x[0]->refs, 1);
  rule_tensor_unref(x[0]);
}
END_TEST

START_TEST(what_is_written_is_a_copy) {
  rule_tensor *x = counting(RULE_F32, SHAPE(3)), *out[4];
  const rule_term *args[] = {rule_var(&arena, 0), rule_int(&arena, 10)};
  size_t n = 0;
  iso_error err;
  ck_assert_int_eq(call(rule_op(&arena, "aten::add_.Tensor", args, 2), &x, 0, out, 4, &n, &err),
                   ISO_OK);
  ck_assert_uint_eq(n, 2); /* its own result, and the argument's new value */
  for (size_t i = 0; i < 2; i++) {
    close_to(out[i], (double[]){10, 11, 12}, 3, 0);
    rule_tensor_unref(out[i]);
  }
  close_to(x, (double[]){0, 1, 2}, 3, 0);
  rule_tensor_unref(x);
}
END_TEST

START_TEST(a_view_outlives_its_base) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(2, 3))};
  rule_tensor *y = eval("(aten::view x0 (list 6))", x, 0),
              *z = eval("(aten::transpose.int x0 0 1)", x, 0);
  ck_assert_ptr_eq(y->data, x[0]->data); /* nothing was copied */
  rule_tensor_unref(x[0]);
  close_to(y, (double[]){0, 1, 2, 3, 4, 5}, 6, 0);
  close_to(z, (double[]){0, 3, 1, 4, 2, 5}, 6, 0); /* row-major again */
  rule_tensor_unref(y);
  rule_tensor_unref(z);
}
END_TEST

START_TEST(sizes_of_zero_and_none) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(0, 3)), counting(RULE_F32, shape_of(0, NULL))};
  rule_tensor *y = eval("(aten::sum.dim_IntList x0 (list 0))", x, 0),
              *z = eval("(aten::cos x1)", x, 0);
  close_to(y, (double[]){0, 0, 0}, 3, 0);
  ck_assert(z->shape.rank == 0 && rule_tensor_get(z, 0) == 1);
  rule_tensor *e = eval("(aten::relu x0)", x, 0);
  ck_assert(e->numel == 0 && e->shape.rank == 2);
  rule_tensor_unref(e);
  rule_tensor_unref(y);
  rule_tensor_unref(z);
  rule_tensor_unref(x[0]);
  rule_tensor_unref(x[1]);
}
END_TEST

START_TEST(unspecified_contents_are_nan) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(64))};
  const char *const text[] = {"(aten::empty.memory_format (list 4))", "(aten::empty_like x0)"};
  for (int i = 0; i < 2; i++) {
    rule_tensor *y = eval(text[i], x, 0);
    for (int64_t k = 0; k < y->numel; k++) ck_assert(isnan(rule_tensor_get(y, k)));
    rule_tensor_unref(y);
  }
  rule_tensor *y = eval("(aten::empty.memory_format (list 4) :dtype int64)", x, 0);
  ck_assert(rule_tensor_get_int(y, 3) > 1 << 30);
  rule_tensor_unref(y);
  rule_tensor_unref(x[0]);
}
END_TEST

START_TEST(errors_are_one_line) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(2, 3)), counting(RULE_I64, SHAPE(2)), NULL};
  iso_error e = eval_fails("(aten::mm x0 x0)", x, 0);
  ck_assert_int_eq(e.code, ISO_TORCH);
  ck_assert_msg(strncmp(e.msg, "aten::mm: ", 10) == 0, "%s", e.msg);
  ck_assert_int_eq(eval_fails("(aten::index_select x0 0 (aten::add.Tensor x1 5))", x, 0).code,
                   ISO_TORCH); /* out of range */
  ck_assert_int_eq(eval_fails("(aten::relu x2)", x, 0).code, ISO_USAGE);
  rule_tensor *out[1];
  size_t n = 0;
  iso_error err;
  const rule_term *v = rule_var(&arena, 0), *word = rule_string(&arena, "word");
  ck_assert_int_eq(call(rule_op(&arena, "aten::no_such", &v, 1), x, 0, out, 1, &n, &err),
                   ISO_UNSUPPORTED);
  ck_assert_int_eq(call(rule_op(&arena, "relu", &v, 1), x, 0, out, 1, &n, &err), ISO_UNSUPPORTED);
  ck_assert_int_eq(call(rule_op(&arena, "aten::relu", &word, 1), x, 0, out, 1, &n, &err),
                   ISO_TORCH);
  ck_assert_msg(strstr(err.msg, "argument self") != NULL, "%s", err.msg);
  const rule_term *many[] = {v, v, v, v, v};
  ck_assert_int_eq(call(rule_op(&arena, "aten::relu", many, 5), x, 0, out, 1, &n, &err),
                   ISO_UNSUPPORTED);
  ck_assert_int_eq(call(rule_op(&arena, "aten::mm", many, 1), x, 0, out, 1, &n, &err),
                   ISO_TORCH); /* one is missing */
  ck_assert_int_eq(call(v, x, 0, out, 1, &n, &err), ISO_USAGE);
  ck_assert_uint_eq(x[0]->refs, 1);
  rule_tensor_unref(x[0]);
  rule_tensor_unref(x[1]);
}
END_TEST

/* Views of other elements than there are do not come to libtorch, where aten::view_copy does: that
 * says the same of them. */
START_TEST(views_that_do_not_fit_are_refused_in_the_same_words) {
  static const char *const ops[] = {"aten::view", "aten::reshape", "aten::_unsafe_view"};
  int n_refused = 0;
  for (uint64_t seed = 0; seed < 300; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    const rule_term *size[4];
    rule_shape s = {.rank = (uint32_t)iso_rng_below(&rng, 4)};
    const uint32_t n_sizes = (uint32_t)iso_rng_below(&rng, 5);
    for (uint32_t i = 0; i < s.rank; i++) s.dim[i] = (int64_t)iso_rng_below(&rng, 4);
    for (uint32_t i = 0; i < n_sizes; i++)
      size[i] = rule_int(&arena, (int64_t)iso_rng_below(&rng, 5) - (iso_rng_below(&rng, 9) == 0));
    rule_tensor *x = counting(RULE_F64, s), *out[2] = {NULL};
    const rule_term *args[] = {rule_var(&arena, 0), rule_list(&arena, size, n_sizes)};
    iso_error err[2] = {{0}};
    size_t n = 0;
    const iso_code c = call(rule_op(&arena, "aten::view_copy", args, 2), &x, 0, out, 1, &n, err);
    for (int k = 0; k < 3; k++) {
      err[1] = (iso_error){0};
      ck_assert_int_eq(call(rule_op(&arena, ops[k], args, 2), &x, 0, out + 1, 1, &n, err + 1), c);
      if (c)
        ck_assert_msg(strcmp(strchr(err[0].msg, ' '), strchr(err[1].msg, ' ')) == 0, "%s; %s",
                      err[0].msg, err[1].msg);
      else rule_tensor_unref(out[1]);
    }
    n_refused += c != ISO_OK;
    if (!c) rule_tensor_unref(out[0]);
    rule_tensor_unref(x);
  }
  ck_assert(n_refused > 100 && n_refused < 290);
}
END_TEST

START_TEST(shared_subterms_run_once) {
  const rule_term *size = rule_int(&arena, 100), *list = rule_list(&arena, &size, 1),
                  *random = NULL, *other = NULL;
  iso_error err;
  ck_assert(rule_call(&arena, schemas, "aten::rand", &list, 1, &random, &err) == ISO_OK);
  other = rule_term_copy(&arena, random);
  for (int shared = 0; shared < 2; shared++) {
    const rule_term *pair[] = {random, shared ? random : other}, *difference = NULL;
    ck_assert(rule_call(&arena, schemas, "aten::sub.Tensor", pair, 2, &difference, &err) == ISO_OK);
    rule_tensor *y = NULL;
    ck_assert_msg(val_eval(engine, difference, NULL, 0, &y, &err) == ISO_OK, "%s", err.msg);
    double most = 0;
    for (int64_t i = 0; i < y->numel; i++) most = fmax(most, fabs(rule_tensor_get(y, i)));
    ck_assert(shared ? most == 0 : most > 0);
    rule_tensor_unref(y);
  }
}
END_TEST

START_TEST(deep_terms_end_in_an_error) {
  rule_tensor *x = counting(RULE_F32, SHAPE(2)), *y = NULL;
  const rule_term *t = rule_var(&arena, 0);
  iso_error err;
  for (int i = 0; i < 5000; i++) t = rule_op(&arena, "aten::relu", &t, 1);
  ck_assert_msg(val_eval(engine, t, &x, 0, &y, &err) == ISO_OK, "%s", err.msg);
  close_to(y, (double[]){0, 1}, 2, 0);
  rule_tensor_unref(y);
  for (int i = 0; i < 100000; i++) t = rule_op(&arena, "aten::relu", &t, 1);
  ck_assert_int_eq(val_eval(engine, t, &x, 0, &y, &err), ISO_LIMIT);
  rule_tensor_unref(x);
}
END_TEST

START_TEST(magnitudes_of_what_is_between) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(3))}, *y = NULL;
  double m = -1;
  iso_error err;
  const rule_term *t = term("(aten::sub.Tensor (aten::add.Tensor x0 1000) 1000)");
  ck_assert(val_eval_magnitude(engine, t, x, VAL_FLOAT64, &y, &m, &err) == ISO_OK);
  ck_assert_double_eq(m, 1002);
  rule_tensor_unref(y);
  t = term("(aten::mul.Tensor (aten::mul.Tensor x0 1e30) 0)"); /* masks do not count */
  ck_assert(val_eval_magnitude(engine, t, x, VAL_FLOAT64, &y, &m, &err) == ISO_OK);
  ck_assert_double_eq(m, 0);
  rule_tensor_unref(y);
  y = eval("x0", x, VAL_FLOAT64); /* a variable alone */
  ck_assert(y->dtype == RULE_F64 && y->numel == 3);
  rule_tensor_unref(y);
  rule_tensor_unref(x[0]);
}
END_TEST

START_TEST(without_the_shim_it_says_so) {
  const char *version = NULL;
  iso_error err;
  setenv("ISOMER_SHIM_DIR", "/nonexistent", 1);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(val_torch_version(engine, &version, &err), ISO_UNSUPPORTED);
    ck_assert(strstr(err.msg, "without libtorch") != NULL);
  }
}
END_TEST

/* An engine with one library of operators, loaded. */
static iso_code with_library(const char *path, iso_error *err) {
  val_options o = val_options_default();
  o.ops = &path;
  o.n_ops = 1;
  val_engine *e = NULL;
  const char *version = NULL;
  iso_code code = val_new(&o, schemas, &e, err);
  if (code == ISO_OK) code = val_torch_version(e, &version, err);
  val_free(e);
  return code;
}

START_TEST(libraries_that_do_not_load) {
  char dir[] = "/tmp/isomer-test-XXXXXX", path[64], command[256];
  iso_error err;
  ck_assert(with_library("/nonexistent/lib.so", &err) == ISO_IO);
  ck_assert(mkdtemp(dir) != NULL);
  snprintf(path, sizeof path, "%s/lib.so", dir);
  FILE *f = fopen(path, "w");
  ck_assert(f && fputs("no library", f) >= 0 && fclose(f) == 0);
  ck_assert(with_library(path, &err) == ISO_IO);
  /* One that aborts from a constructor must not take the program with it. */
  snprintf(command, sizeof command,
           "printf '%%s' '#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { "
           "abort(); }' | "
           "cc -shared -fPIC -xc - -o %s 2>/dev/null",
           path);
  if (system(command) == 0) {
    ck_assert_int_eq(with_library(path, &err), ISO_USAGE);
    ck_assert_msg(strstr(err.msg, "aborts when loaded") && strstr(err.msg, path), "%s", err.msg);
  }
  unlink(path);
  rmdir(dir);
}
END_TEST

int main(void) {
  Suite *s = suite_create("engine");
  TCase *c = tcase_create("engine");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, engine_setup, engine_teardown);
  tcase_add_test(c, it_says_what_it_is);
  tcase_add_test(c, literals_become_what_the_schema_wants);
  tcase_add_test(c, an_int_stands_for_a_list_of_equal_ones);
  tcase_add_test(c, lists_of_optional_tensors);
  tcase_add_test(c, float64_reaches_everything);
  tcase_add_test(c, several_results);
  tcase_add_test(c, what_is_written_is_a_copy);
  tcase_add_test(c, a_view_outlives_its_base);
  tcase_add_test(c, sizes_of_zero_and_none);
  tcase_add_test(c, unspecified_contents_are_nan);
  tcase_add_test(c, errors_are_one_line);
  tcase_add_test(c, views_that_do_not_fit_are_refused_in_the_same_words);
  tcase_add_test(c, shared_subterms_run_once);
  tcase_add_test(c, deep_terms_end_in_an_error);
  tcase_add_test(c, magnitudes_of_what_is_between);
  tcase_add_test(c, without_the_shim_it_says_so);
  tcase_add_test(c, libraries_that_do_not_load);
  suite_add_tcase(s, c);
  return run_suite(s);
}
