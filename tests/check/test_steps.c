/* Steps of certificates: an application of a rule is taken exactly where it is, literally, the
 * rule's sides; a congruence where the arguments are equal by the steps before. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "tests/support/suite.h"

enum { MOST_TERMS = 1000, MOST_NAMES = 96, SPARE = 2 };

/* A certificate of one application, made from its rule. */
static chk_state k;
static chk_report report;
static iso_arena arena;
static iso_error err;
static chk_term term[MOST_TERMS];
static uint32_t var[64], up[MOST_TERMS];
static chk_name name[MOST_NAMES];
static chk_step step;
static const rule *the_rule;
static rule_set *set;
static bool open; /* something has no value at these sizes */

static const rule_term *value_of_name(const char *text) {
  for (size_t i = 0; i < k.cert.n_names; i++)
    if (strcmp(name[i].name, text) == 0) return name[i].value;
  return NULL;
}

static bool look_up(const void *ctx, const char *text, rule_term *out) {
  const rule_term *v = value_of_name(text);
  (void)ctx;
  if (v) *out = (rule_term){.kind = v->kind, .u = v->u};
  return v != NULL;
}

static void draw_names(const rule_term *t, iso_rng *rng) {
  for (uint32_t i = 0; i < t->n; i++) draw_names(t->child[i], rng);
  if (t->kind != RULE_NAME || value_of_name(t->u.s)) return;
  char kind = 'i';
  for (uint32_t i = 0; i < the_rule->n_attrs; i++)
    if (strcmp(the_rule->attr[i].name, t->u.s) == 0) kind = the_rule->attr[i].kind;
  const rule_term *v = kind == 'f' ? rule_float(&arena, iso_rng_normal(rng))
                                   : rule_int(&arena, 1 + (int64_t)iso_rng_below(rng, 9));
  open |= kind == 'l';
  ck_assert_uint_lt(k.cert.n_names, MOST_NAMES);
  name[k.cert.n_names++] = (chk_name){t->u.s, v};
}

/* A side with its variables, names and expressions replaced; each call is a term by itself. */
static const rule_term *put(const rule_term *t) {
  const rule_values values = {look_up, NULL, 0};
  const rule_term *child[64];
  int64_t size = 0;
  switch (t->kind) {
  case RULE_VAR: return rule_var(&arena, var[t->u.i]);
  case RULE_NAME: return value_of_name(t->u.s);
  case RULE_EXPR: open |= !rule_size_at(t, &values, &size); return rule_int(&arena, size);
  case RULE_OP:
  case RULE_LIST: break;
  default: return t;
  }
  ck_assert_uint_lt(t->n, 64);
  for (uint32_t i = 0; i < t->n; i++) child[i] = put(t->child[i]);
  if (t->kind == RULE_LIST) return rule_list(&arena, child, t->n);
  ck_assert_uint_lt(k.n_terms, MOST_TERMS);
  term[k.n_terms].call = rule_op(&arena, t->u.s, child, t->n);
  return rule_var(&arena, (uint32_t)k.n_terms++);
}

/* Returns: false where the rule has parts that are not drawn here: conditions, ranges, lists. */
static bool apply(const rule *r, uint64_t seed) {
  static bool read[1];
  iso_rng rng = iso_rng_new(seed, 1);
  iso_arena_init(&arena);
  memset(term, 0, sizeof term);
  report = (chk_report){0};
  the_rule = r;
  open = r->n_where > 0;
  k = (chk_state){.term = term,
                  .rules.rule = &set,
                  .rules.read = read,
                  .rules.n = 1,
                  .cert.var = var,
                  .cert.name = name,
                  .here.up = up,
                  .report = &report,
                  .arena = &arena,
                  .n_terms = r->n_vars + SPARE,
                  .err = &err};
  for (uint32_t i = 0; i < r->n_vars; i++) {
    var[i] = i;
    open |= r->var[i].low || r->var[i].high;
    for (uint32_t d = 0; d < r->var[i].n_dims; d++) draw_names(r->var[i].dim[d], &rng);
  }
  draw_names(r->lhs, &rng);
  draw_names(r->rhs, &rng);
  const rule_term *a = put(r->lhs), *b = put(r->rhs);
  for (uint32_t i = 0; i < k.n_terms; i++) up[i] = i;
  step = (chk_step){.kind = CHK_RULE,
                    .a = (uint32_t)a->u.i,
                    .b = (uint32_t)b->u.i,
                    .n_names = (uint32_t)k.cert.n_names};
  return !open;
}

static bool taken(void) {
  report = (chk_report){0};
  ck_assert(chk_instance(&k, &step, 0) == ISO_OK);
  return report.outcome == CHK_HOLDS;
}

static rule_set *only(const rule *r) {
  rule_set *s = NULL;
  size_t at;
  bool fresh;
  ck_assert(rule_set_new(&s, &err) == ISO_OK && rule_set_add(s, r, &at, &fresh, &err) == ISO_OK);
  return s;
}

/* ---- forgeries ---- */

/* The term with one part changed, the `*at`-th: an integer, a float, a variable. NULL: it has no
 * such part. */
static const rule_term *forged(const rule_term *t, size_t *at, uint32_t spare) {
  const rule_term *child[64];
  const bool part = t->kind == RULE_INT || t->kind == RULE_FLOAT || t->kind == RULE_VAR;
  if (part && (*at)-- == 0)
    return t->kind == RULE_INT     ? rule_int(&arena, t->u.i + 1)
           : t->kind == RULE_FLOAT ? rule_float(&arena, nextafter(t->u.f, INFINITY))
                                   : rule_var(&arena, spare);
  bool changed = false;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *c = changed ? NULL : forged(t->child[i], at, spare);
    child[i] = c ? c : t->child[i];
    changed |= c != NULL;
  }
  if (!changed) return NULL;
  return t->kind == RULE_OP ? rule_op(&arena, t->u.s, child, t->n) : rule_list(&arena, child, t->n);
}

static size_t n_forged;

static void refuses(const char *what) {
  ck_assert_msg(!taken(), "%s: taken though %s is changed", the_rule->name, what);
  n_forged++;
}

/* Each part of each call, its operator, its number of arguments. */
static void forge_calls(void) {
  const uint32_t first = the_rule->n_vars + SPARE, spare = the_rule->n_vars;
  for (uint32_t i = first; i < k.n_terms; i++) {
    const rule_term *call = term[i].call;
    for (size_t n = 0;; n++) {
      size_t at = n;
      if (!(term[i].call = forged(call, &at, spare))) break;
      refuses("a part of a call");
    }
    term[i].call = rule_op(&arena, "aten::sinc", call->child, call->n);
    refuses("an operator");
    if (call->n) {
      term[i].call = rule_op(&arena, call->u.s, call->child, call->n - 1);
      refuses("the number of arguments");
    }
    term[i].call = NULL;
    refuses("a call into a leaf");
    term[i].call = call;
  }
}

static void forge_step(void) {
  const chk_step was = step;
  step.a = step.b = the_rule->n_vars;
  refuses("both terms");
  step = was;
  for (uint32_t i = 0; i < the_rule->n_vars; i++) {
    var[i] = the_rule->n_vars + 1;
    refuses("a variable's term");
    var[i] = i;
  }
  for (size_t i = 0; i < k.cert.n_names; i++) {
    const rule_term *v = name[i].value;
    name[i].value =
        v->kind == RULE_FLOAT ? rule_int(&arena, 2) : rule_float(&arena, (double)v->u.i);
    refuses("the kind of a name's value");
    name[i].value = v;
  }
  name[k.cert.n_names] = (chk_name){"nobody", rule_int(&arena, 1)};
  step.n_names++;
  refuses("the number of names");
  step = was;
}

START_TEST(a_rule_is_taken_literally_and_no_forgery_of_it) {
  rule_set *all = NULL;
  size_t n_applied = 0;
  ck_assert(rule_set_load("rules/core.rules", &all, &err) == ISO_OK);
  for (size_t i = 0; i < rule_set_count(all); i++) {
    const rule *r = rule_set_at(all, i);
    set = only(r);
    if (apply(rule_set_at(set, 0), i)) {
      ck_assert_msg(taken(), "%s: %s", r->name, report.reason);
      n_applied++;
      forge_calls();
      forge_step();
      ck_assert_msg(taken(), "%s: %s", r->name, report.reason);
    }
    iso_arena_fini(&arena);
    rule_set_free(set);
  }
  rule_set_free(all);
  ck_assert_uint_gt(n_applied, 150);
  ck_assert_uint_gt(n_forged, 10000);
}
END_TEST

/* ---- conditions ---- */

static const char *const conditions[] = {"(= N M)",         "(< N M)",
                                         "(divides 2 N)",   "(or (= N 3) (> M 4))",
                                         "(= (mod N 3) 1)", "(= (* N N) (+ M 2))"};

/* The same in C. */
static bool holds(size_t which, int64_t n, int64_t m) {
  switch (which) {
  case 0: return n == m;
  case 1: return n < m;
  case 2: return n % 2 == 0;
  case 3: return n == 3 || m > 4;
  case 4: return n % 3 == 1;
  default: return n * n == m + 2;
  }
}

START_TEST(conditions_hold_at_the_step) {
  char text[300];
  snprintf(text, sizeof text,
           "(rule r (var x f (N M)) (lhs (aten::view x (list N M))) (rhs (aten::reshape x (list N "
           "M))) (where %s))",
           conditions[_i]);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  (void)apply(rule_set_at(set, 0), 1);
  for (int64_t n = 0; n <= 6; n++)
    for (int64_t m = 0; m <= 6; m++) {
      const rule_term *size[] = {rule_int(&arena, n), rule_int(&arena, m)};
      for (size_t i = 0; i < 2; i++) name[i].value = size[strcmp(name[i].name, "N") == 0 ? 0 : 1];
      const rule_term *arg[] = {rule_var(&arena, 0), rule_list(&arena, size, 2)};
      term[step.a].call = rule_op(&arena, "aten::view", arg, 2);
      term[step.b].call = rule_op(&arena, "aten::reshape", arg, 2);
      const bool want = n > 0 && m > 0 && holds((size_t)_i, n, m);
      ck_assert_msg(taken() == want, "%s at %d, %d", conditions[_i], (int)n, (int)m);
    }
  iso_arena_fini(&arena);
  rule_set_free(set);
}
END_TEST

/* ---- congruence ---- */

static bool same_by(const uint32_t *of, const rule_term *a, const rule_term *b) {
  if (a->kind == RULE_VAR && b->kind == RULE_VAR) return of[a->u.i] == of[b->u.i];
  if (a->kind != b->kind || a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_by(of, a->child[i], b->child[i])) return false;
  return a->kind == RULE_LIST || a->u.i == b->u.i;
}

static const rule_term *argument(iso_rng *rng, int depth) {
  const rule_term *child[2];
  const uint64_t what = iso_rng_below(rng, depth ? 3 : 2);
  if (what == 0) return rule_int(&arena, (int64_t)iso_rng_below(rng, 2));
  if (what == 1) return rule_var(&arena, (uint32_t)iso_rng_below(rng, 8));
  const size_t n = iso_rng_below(rng, 3);
  for (size_t i = 0; i < n; i++) child[i] = argument(rng, depth - 1);
  return rule_list(&arena, child, (uint32_t)n);
}

/* Arguments are the same where the steps joined their terms: against a table of colours. */
START_TEST(arguments_are_equal_by_the_steps_before) {
  size_t equal = 0, apart = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    uint32_t colour[8];
    iso_arena_init(&arena);
    k = (chk_state){.here.up = up};
    for (uint32_t i = 0; i < 8; i++) up[i] = colour[i] = i;
    for (uint64_t n = iso_rng_below(&rng, 8); n-- > 0;) {
      const uint32_t a = (uint32_t)iso_rng_below(&rng, 8), b = (uint32_t)iso_rng_below(&rng, 8),
                     from = colour[a], to = colour[b];
      up[chk_root(&k, a)] = chk_root(&k, b);
      for (uint32_t i = 0; i < 8; i++)
        if (colour[i] == from) colour[i] = to;
    }
    const rule_term *a = argument(&rng, 2), *b = argument(&rng, 2);
    const bool want = same_by(colour, a, b);
    ck_assert_msg(chk_same_argument(&k, a, b) == want, "seed %d", (int)seed);
    equal += want;
    apart += !want;
    iso_arena_fini(&arena);
  }
  ck_assert_uint_gt(equal, 300);
  ck_assert_uint_gt(apart, 300);
}
END_TEST

/* ---- what variables stand for ---- */

static void stands_for(rule_dtype dtype, const int64_t *dim, uint32_t rank, bool want) {
  rule_shape s = {.rank = rank};
  rule_tensor *t = NULL;
  memcpy(s.dim, dim, rank * sizeof *dim);
  ck_assert(rule_tensor_new(dtype, &s, &t, &err) == ISO_OK);
  chk_values real[1] = {{&t, 1}};
  k.here.real = real;
  k.cert.step = &step;
  k.cert.n_steps = 1;
  report = (chk_report){0};
  ck_assert(chk_variables(&k) == ISO_OK);
  ck_assert_msg((report.outcome == CHK_HOLDS) == want, "rank %u: %s", rank, report.reason);
  rule_tensor_unref(t);
}

START_TEST(variables_have_the_kind_and_shape_that_they_are_declared) {
  static const char text[] =
      "(rule r (var x f (N (* 2 N))) (lhs (aten::neg x)) (rhs (aten::mul.Tensor "
      "x -1)))";
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  ck_assert(apply(rule_set_at(set, 0), 1) && k.cert.n_names == 1);
  name[0].value = rule_int(&arena, 3);
  stands_for(RULE_F64, (int64_t[]){3, 6}, 2, true);
  stands_for(RULE_F16, (int64_t[]){3, 6}, 2, true);
  stands_for(RULE_I64, (int64_t[]){3, 6}, 2, false);
  stands_for(RULE_BOOL, (int64_t[]){3, 6}, 2, false);
  stands_for(RULE_F64, (int64_t[]){3, 5}, 2, false);
  stands_for(RULE_F64, (int64_t[]){4, 6}, 2, false);
  stands_for(RULE_F64, (int64_t[]){6, 3}, 2, false);
  stands_for(RULE_F64, (int64_t[]){1, 3, 6}, 3, false);
  stands_for(RULE_F64, (int64_t[]){18}, 1, false);
  iso_arena_fini(&arena);
  rule_set_free(set);
}
END_TEST

int main(void) {
  Suite *s = suite_create("steps");
  TCase *t = tcase_create("steps");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_rule_is_taken_literally_and_no_forgery_of_it);
  tcase_add_loop_test(t, conditions_hold_at_the_step, 0, sizeof conditions / sizeof *conditions);
  tcase_add_test(t, arguments_are_equal_by_the_steps_before);
  tcase_add_test(t, variables_have_the_kind_and_shape_that_they_are_declared);
  suite_add_tcase(s, t);
  return run_suite(s);
}
