/* Every definition of the prover against the operator itself (needs libtorch), in float64, on small random shapes. */
#include "tests/validate/engine_test.h"
#include "validate/prove_int.h"

/* $A..$D are sizes of 0 to 4, $P..$S of 1 to 4, $i..$k integers of -3 to 4. Variables: "i" holds indices 0 and 1, "n"
 * other integers, "p" positive numbers, "d" numbers that all differ. */
typedef struct call {
  const char *vars, *text;
} call;

#define X "(var x f ($A $B))"
#define XY "(var x f ($A $B)) (var y f ($C $B))"
#define X3 "(var x f ($A $B $C))"
#define QKV "(var q f (2 4 $P $Q)) (var k f (2 2 $R $Q)) (var v f (2 2 $R $S))"

static const call calls[] = {
#include "tests/validate/prove_calls.inc"
};

typedef struct values {
  rule_tensor *bind[8];
} values;

static double value_of(void *ctx, uint32_t var, const int64_t *idx) {
  const rule_tensor *t = ((const values *)ctx)->bind[var];
  int64_t at = 0;
  for (uint32_t k = 0; k < t->shape.rank; k++) {
    if (idx[k] < 0 || idx[k] >= t->shape.dim[k]) return 12345.678; /* must not matter */
    at = at * t->shape.dim[k] + idx[k];
  }
  return rule_tensor_get(t, at);
}

static void fill_in(const char *from, char *to, size_t cap, const int64_t *number) {
  size_t n = 0;
  for (; *from && n + 16 < cap; from++) {
    if (*from == '$') n += (size_t)snprintf(to + n, cap - n, "%d", (int)number[(unsigned char)*++from]);
    else to[n++] = *from;
  }
  to[n] = 0;
}

static void draw_numbers(iso_rng *rng, int64_t *number) {
  static const int64_t sizes[] = {0, 1, 1, 2, 2, 3, 3, 4};
  for (int c = 'A'; c <= 'D'; c++) number[c] = sizes[iso_rng_below(rng, 8)];
  for (int c = 'P'; c <= 'S'; c++) number[c] = sizes[1 + iso_rng_below(rng, 7)];
  for (int c = 'i'; c <= 'k'; c++) number[c] = (int64_t)iso_rng_below(rng, 8) - 3;
  if (iso_rng_below(rng, 2)) number['C'] = number['A'];
  if (iso_rng_below(rng, 4) == 0) number['C'] = 1;
}

static rule_tensor *draw_value(iso_rng *rng, const rule_variable *v, double large) {
  const double edges[] = {0, 1, -1, 0.5, large, 3, -3, 6};
  rule_shape s = {.rank = v->n_dims};
  rule_tensor *t = NULL;
  iso_error err;
  for (uint32_t k = 0; k < v->n_dims; k++) s.dim[k] = v->dim[k]->u.i;
  ck_assert(rule_tensor_new(v->kind == 'f' ? RULE_F64 : v->kind == 'b' ? RULE_BOOL : RULE_I64, &s, &t, &err) == ISO_OK);
  const bool edge = iso_rng_below(rng, 4) == 0;
  for (int64_t i = 0; i < t->numel; i++) {
    double x = iso_rng_normal(rng);
    if (edge) x = edges[iso_rng_below(rng, 8)];
    if (v->kind != 'f') x = (double)iso_rng_below(rng, 2);
    if (v->name[0] == 'n') x = (double)iso_rng_below(rng, 9) - 4;
    if (v->name[0] == 'd') x = iso_rng_normal(rng);
    if (v->name[0] == 'p') x = fabs(x) + 0.1371; /* no quotient of edges is whole */
    rule_tensor_set(t, i, x);
  }
  return t;
}

/* Returns: 1 where both have a value, and they agree; 0 where one has none. */
static int try_once(const call *k, iso_rng *rng) {
  char vars[500], body[2000], text[5000], reason[200] = "";
  int64_t number[256] = {0};
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  draw_numbers(rng, number);
  fill_in(k->vars, vars, sizeof vars, number);
  fill_in(k->text, body, sizeof body, number);
  snprintf(text, sizeof text, "(rule r %s (lhs %s) (rhs %s))", vars, body, body);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s: %s", err.msg, text);
  const rule *r = rule_set_at(set, 0);
  values v = {{NULL}};
  for (uint32_t i = 0; i < r->n_vars; i++) v.bind[i] = draw_value(rng, &r->var[i], strstr(k->text, "softplus") ? 20.5 : 2.5);
  rule_tensor *want = NULL;
  rule_shape shape;
  char kind = 0;
  double *got = NULL;
  const bool ran = val_eval(engine, r->lhs, v.bind, VAL_FLOAT64, &want, &err) == ISO_OK;
  const bool defined = sc_values(r, schemas, value_of, &v, &shape, &kind, &got, reason);
  if (ran && defined) {
    char a[100], b[100];
    ck_assert_msg(rule_shape_eq(&shape, &want->shape), "%s and %s: %s", rule_shape_print(&shape, a, sizeof a),
                  rule_shape_print(&want->shape, b, sizeof b), text);
    const char is = rule_dtype_is_float(want->dtype) ? 'f' : want->dtype == RULE_BOOL ? 'b' : 'i';
    ck_assert_msg(is == kind, "kind %c and %c: %s", kind, is, text);
    for (int64_t i = 0; i < want->numel; i++) {
      const double x = got[i], y = rule_tensor_get(want, i);
      if (isnan(y) || (isinf(y) && y > 0)) continue; /* not defined there */
      ck_assert_msg(isinf(y) ? x == y : fabs(x - y) <= 1e-9 * (1 + fabs(y)), "element %d is %.17g instead of %.17g: %s", (int)i, x, y, text);
    }
  }
  if (getenv("DIFF_VERBOSE") && ran != defined) fprintf(stderr, "%s, %s: %s\n", ran ? "ran" : err.msg, defined ? "defined" : reason, text);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(v.bind[i]);
  rule_tensor_unref(want);
  rule_set_free(set);
  free(got);
  /* Refusing what runs is no error, only a gap. */
  return ran && defined;
}

START_TEST(definitions_are_what_operators_do) {
  const call *k = &calls[_i];
  int good = 0;
  for (int seed = 0; seed < 16; seed++) {
    iso_rng rng = iso_rng_new((uint64_t)seed, (uint64_t)_i);
    good += try_once(k, &rng);
  }
  ck_assert_msg(good >= 3, "only %d samples of %s", good, k->text);
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_diff");
  TCase *t = tcase_create("prove_diff");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, definitions_are_what_operators_do, 0, (int)(sizeof calls / sizeof *calls));
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  /* One process: starting libtorch for each call would take minutes. */
  srunner_set_fork_status(r, CK_NOFORK);
  iso_error err;
  if (rule_schemas_new(&schemas, &err) != ISO_OK || val_new(NULL, schemas, &engine, &err) != ISO_OK) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  srunner_run_all(r, CK_ENV);
  engine_teardown();
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
