/* Every operator that the prover defines stands in rules/operators.def, and says there if it
 * chooses or jumps (needs libtorch): numbers are moved along lines through samples of all calls of
 * prove_calls.inc, and where a result jumps or has a kink, an operator of the call must say so. */
#include "tests/validate/prove_diff.h"
#include "validate/ops/ops.h"
#include "validate/branch/choice_int.h"

/* ---- the table ---- */

static const char *const signatures[] = {
#define S(text) text,
#include "rules/kernels.def"
#include "rules/schemas.def"
#undef S
};

static bool defined(const char *op) {
  pt_definition d;
  return pt_define_any(op, &d);
}

START_TEST(every_definition_is_listed) {
  int found = 0;
  for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(signatures[i], "("), signatures[i]);
    if (strncmp(name, "dist::", 6) == 0 || !defined(name)) continue;
    found++;
    ck_assert_msg(rule_operator_of(name)->choice > RULE_CHOICE_SMOOTH,
                  "%s has a definition and no line in rules/operators.def", name);
  }
  ck_assert_int_gt(found, 350);
}
END_TEST

static bool is_called(const char *op) {
  const size_t n = strcspn(op, ".");
  for (size_t i = 0; i < N_CALLS; i++)
    for (const char *p = calls[i].text; (p = strchr(p, '(')) != NULL; p++)
      if (strncmp(p + 1, op, n) == 0 && (p[n + 1] == ' ' || p[n + 1] == '.')) return true;
  return false;
}

START_TEST(every_definition_has_a_call) {
  int missing = 0;
  for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(signatures[i], "("), signatures[i]);
    /* Of other names, of small integers, and of experts (test_kernels.c). */
    const bool other = strncmp(name, "aten::special_", 14) == 0 || strstr(name, "_copy") != NULL ||
                       strcmp(name, "aten::_int_mm") == 0 || strstr(name, "_fused_experts") != NULL;
    if (other || !defined(name) || is_called(name)) continue;
    fprintf(stderr, "no call of %s\n", name);
    missing++;
  }
  ck_assert_int_eq(missing, 0);
}
END_TEST

START_TEST(names_are_found) {
  ck_assert_int_eq(rule_operator_of("aten::gt.Scalar")->choice, RULE_CHOICE_COMPARE);
  ck_assert_int_eq(rule_operator_of("aten::special_round")->choice, RULE_CHOICE_ROUND);
  ck_assert_int_eq(rule_operator_of("aten::view_copy")->choice, RULE_CHOICE_NONE);
  ck_assert_int_eq(rule_operator_of("_C::silu_and_mul.isomer")->choice, RULE_CHOICE_NONE);
  ck_assert_int_eq(rule_operator_of("mine::gt")->choice, RULE_CHOICE_UNLISTED);
  ck_assert_int_eq(rule_operator_of("aten::gtx")->choice, RULE_CHOICE_UNLISTED);
}
END_TEST

/* ---- scanning ---- */

enum { POINTS = 97, LINES = 2, STEPS = 34, FINER = 7, ZOOM = 8 };

typedef struct scan {
  const rule *r;
  rule_tensor *base[8], *bind[8];
  double *step[8];
} scan;

static rule_tensor *value_at(scan *s, double t) {
  rule_tensor *out = NULL;
  iso_error err;
  for (uint32_t v = 0; v < s->r->n_vars; v++) {
    if (s->r->var[v].kind != 'f') continue;
    for (int64_t i = 0; i < s->bind[v]->numel; i++) {
      const double x = rule_tensor_get(s->base[v], i), d = t * s->step[v][i];
      /* A value that has to be positive stays so. */
      rule_tensor_set(s->bind[v], i, s->r->var[v].name[0] == 'p' ? x * exp(d / 4) : x + d);
    }
  }
  return val_eval(engine, s->r->lhs, s->bind, VAL_FLOAT64, &out, &err) == ISO_OK ? out : NULL;
}

static double number_at(scan *s, double t, int64_t i) {
  rule_tensor *x = value_at(s, t);
  const double y = x && i < x->numel ? rule_tensor_get(x, i) : (double)NAN;
  rule_tensor_unref(x);
  return y;
}

/* Whether the difference between `a` and `b` stays however near they are brought together. */
static bool jumps(scan *s, double a, double b, int64_t i) {
  double ya = number_at(s, a, i), yb = number_at(s, b, i);
  const double first = fabs(yb - ya);
  for (int k = 0; k < STEPS; k++) {
    const double m = (a + b) / 2, y = number_at(s, m, i);
    if (fabs(y - ya) > fabs(yb - y)) b = m, yb = y;
    else a = m, ya = y;
  }
  const double left = fabs(yb - ya), size = fmax(fabs(ya), fabs(yb));
  return isfinite(first) && size < 1e5 && left > 1e-5 * (1 + size) && left < 4 * first;
}

/* Whether the slope changes at a point: its change stays however small the steps are. */
static bool bends(scan *s, double at, double h, int64_t i) {
  double bend = 0, slope = 0;
  for (int k = 0; k < FINER; k++) {
    double best = -1, where = at;
    for (int j = -ZOOM; j <= ZOOM; j++) {
      const double t = at + h * j / ZOOM, x = number_at(s, t - h / ZOOM, i), y = number_at(s, t, i),
                   z = number_at(s, t + h / ZOOM, i);
      const double d = fabs(z - 2 * y + x);
      if (!(fabs(y) < 1e4)) return false;
      if (d > best) best = d, where = t, slope = fabs(z - x);
    }
    at = where;
    h /= ZOOM;
    bend = best / h;
    slope /= 2 * h;
  }
  return bend > 1e-2 * fmax(1, slope) && isfinite(bend);
}

typedef struct found {
  bool jump, bend;
  bool silent; /* and no operator says so */
} found;

/* The element and the interval that change most, by differences and by second differences. */
static void look(scan *s, rule_tensor *const *y, found *f) {
  const double h = 2.0 / (POINTS - 1);
  for (int64_t i = 0; i < y[0]->numel && i < 4; i++) {
    int step = -1, bend = -1;
    double most = 0, most_bent = 0;
    for (int k = 0; k + 1 < POINTS; k++) {
      const double a = rule_tensor_get(y[k], i), b = rule_tensor_get(y[k + 1], i);
      if (fabs(b - a) > most) most = fabs(b - a), step = k;
      if (k == 0) continue;
      const double d = fabs(b - 2 * a + rule_tensor_get(y[k - 1], i));
      if (d > most_bent) most_bent = d, bend = k;
    }
    if (step >= 0 && !f->jump) f->jump = jumps(s, -1 + step * h, -1 + (step + 1) * h, i);
    if (bend >= 0 && !f->jump && !f->bend) f->bend = bends(s, -1 + bend * h, h, i);
  }
}

static void scan_line(scan *s, iso_rng *rng, found *f) {
  rule_tensor *y[POINTS];
  bool all = true;
  for (uint32_t v = 0; v < s->r->n_vars; v++)
    for (int64_t i = 0; i < s->bind[v]->numel; i++) s->step[v][i] = 5 * iso_rng_normal(rng);
  for (int k = 0; k < POINTS; k++) {
    y[k] = value_at(s, -1 + 2.0 * k / (POINTS - 1));
    all &= y[k] && y[k]->numel == (y[0] ? y[0]->numel : 0) && !rule_dtype_is_complex(y[k]->dtype);
  }
  if (all) look(s, y, f);
  for (int k = 0; k < POINTS; k++) rule_tensor_unref(y[k]);
}

/* Whether an operator of the term says that it jumps, or chooses. */
static bool says(const rule_term *t, bool jump) {
  bool yes = false;
  if (t->kind == RULE_OP) {
    const rule_choice c = rule_operator_of(t->u.s)->choice;
    const bool steady = c == RULE_CHOICE_NONE || c == RULE_CHOICE_WEIGHT ||
                        (jump && (c == RULE_CHOICE_EXTREME || c == RULE_CHOICE_BOUND ||
                                  c == RULE_CHOICE_DISTANCE || c == RULE_CHOICE_END));
    yes = !steady;
  }
  for (uint32_t i = 0; i < t->n; i++) yes |= says(t->child[i], jump);
  return yes;
}

static void scan_call(const call *k, iso_rng *rng, found *f) {
  sample taken;
  if (!sample_take(&taken, k, rng, false)) return;
  scan s = {.r = rule_set_at(taken.set, 0)};
  iso_error err;
  for (uint32_t v = 0; v < s.r->n_vars; v++) {
    const rule_tensor *x = s.base[v] = taken.v.bind[v];
    s.bind[v] = rule_tensor_ref(taken.v.bind[v]);
    s.step[v] = calloc((size_t)x->numel + 1, sizeof(double));
    ck_assert(s.step[v]);
    if (s.r->var[v].kind != 'f') continue;
    rule_tensor_unref(s.bind[v]);
    ck_assert(rule_tensor_new(x->dtype, &x->shape, &s.bind[v], &err) == ISO_OK);
  }
  if (taken.want) scan_line(&s, rng, f);
  for (uint32_t v = 0; v < s.r->n_vars; v++) rule_tensor_unref(s.bind[v]), free(s.step[v]);
  const bool silent = f->jump ? !says(s.r->lhs, true) : f->bend && !says(s.r->lhs, false);
  if (silent)
    fprintf(stderr, "%s %s, and no operator says so\n", k->text, f->jump ? "jumps" : "has a kink");
  f->silent |= silent;
  sample_free(&taken);
}

/* Of those that choose, the scan finds most: it would find another one. */
START_TEST(what_jumps_says_so) {
  int n_jump = 0, n_bend = 0, n_silent = 0;
  for (int k = 0; k < N_CALLS; k++) {
    found f = {false, false, false};
    for (int line = 0; line < LINES && !f.silent; line++) {
      iso_rng rng = rng_of(&calls[k], (uint64_t)line);
      scan_call(&calls[k], &rng, &f);
    }
    n_jump += f.jump;
    n_bend += f.bend;
    n_silent += f.silent;
  }
  ck_assert_int_eq(n_silent, 0);
  ck_assert_int_gt(n_jump, 60);
  ck_assert_int_gt(n_bend, 60);
}
END_TEST

int main(void) {
  Suite *s = suite_create("choice");
  TCase *t = tcase_create("choice");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, every_definition_has_a_call);
  tcase_add_test(t, names_are_found);
  tcase_add_test(t, every_definition_is_listed);
  tcase_add_test(t, what_jumps_says_so);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
