/* Lines of relations files that give an input's domain say what each of their clauses says: held
 * against every small tensor of integers, clause by clause. What is no clause is refused with the
 * line that it stands in. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "cli/config/relations.h"
#include "tests/support/suite.h"

enum { SEEDS = 300, SIZE = 3, REACH = 4, SPAN = 2 * REACH + 1, ALL = SPAN * SPAN * SPAN, MOST = 8 };

static rule_schemas *schemas;
static cap_graph *g;

static void begin(const char *dtype) {
  char json[400];
  iso_error err;
  snprintf(json, sizeof json,
           "{\"format\":\"isomer-capture\",\"version\":1,\"nodes\":[{\"id\":\"x\",\"op\":\"input\","
           "\"name\":\"x\",\"outputs\":[{\"shape\":[%d],\"dtype\":\"%s\"}]}],"
           "\"outputs\":[{\"name\":\"y\",\"ref\":\"x\"}]}",
           SIZE, dtype);
  ck_assert(rule_schemas_new(&schemas, &err) == ISO_OK);
  ck_assert_msg(cap_parse((cap_text){json, strlen(json)}, "left", NULL, schemas, &g, &err) ==
                    ISO_OK,
                "%s", err.msg);
  g->n_sets = 0; /* nothing was captured */
}

static void end(void) {
  cap_free(g);
  rule_schemas_free(schemas);
}

/* ---- what a clause says of three numbers ---- */

typedef struct clause {
  enum { RANGE, EXCLUDE, DISTINCT, SORTED, MASK, KINDS } kind;
  double low, high;
  int number[2], n;
  enum { ANY, LEFT_FIRST, RIGHT_FIRST } form;
} clause;

static bool holds_of_number(const clause *c, double x) {
  if (c->kind == RANGE) return x >= c->low && x <= c->high;
  for (int k = 0; c->kind == EXCLUDE && k < c->n; k++)
    if (x == c->number[k]) return false;
  return c->kind != MASK || x == 0 || x == 1;
}

static bool holds(const clause *c, const double *x) {
  for (int i = 0; i < SIZE; i++)
    if (!holds_of_number(c, x[i])) return false;
  if (c->kind == DISTINCT) return x[0] != x[1] && x[1] != x[2] && x[0] != x[2];
  if (c->kind == SORTED) return x[0] <= x[1] && x[1] <= x[2];
  if (c->kind != MASK) return true;
  const bool up = x[0] <= x[1] && x[1] <= x[2], down = x[0] >= x[1] && x[1] >= x[2];
  return x[0] + x[1] + x[2] > 0 && (c->form != LEFT_FIRST || up) &&
         (c->form != RIGHT_FIRST || down);
}

/* ---- the same as a line ---- */

static double between(iso_rng *rng, int low, int high) {
  return low + (double)iso_rng_below(rng, (uint64_t)(high - low) + 1);
}

static clause draw(iso_rng *rng) {
  clause c = {.kind = (int)iso_rng_below(rng, KINDS + 2) % KINDS, .n = 2};
  const double half = iso_rng_below(rng, 4) ? 0 : 0.5;
  c.low = iso_rng_below(rng, 5) ? between(rng, -REACH, 1) - half : -INFINITY;
  c.high = iso_rng_below(rng, 5) ? between(rng, -1, REACH) + half : INFINITY;
  for (int k = 0; k < 2; k++) c.number[k] = (int)between(rng, -REACH, REACH);
  if (iso_rng_below(rng, 2)) c.n = 1;
  c.form = (int)iso_rng_below(rng, 3);
  return c;
}

static void write(const clause *c, iso_rng *rng, char *line) {
  static const char *const blanks[] = {" ", ", ", "\t", " , ,"}, *const forms[3][2] = {
                                                                     {"", "any"},
                                                                     {"left", "left"},
                                                                     {"right", "right"}};
  const char *b = blanks[iso_rng_below(rng, 4)];
  char *at = line + strlen(line);
  if (*line) at += sprintf(at, "%s", b);
  if (c->kind == RANGE) sprintf(at, "range %g%s%g", c->low, b, c->high);
  else if (c->kind == EXCLUDE && c->n == 1) sprintf(at, "exclude %d", c->number[0]);
  else if (c->kind == EXCLUDE) sprintf(at, "exclude %d%s%d", c->number[0], b, c->number[1]);
  else if (c->kind == MASK) sprintf(at, "mask%s%s", b, forms[c->form][iso_rng_below(rng, 2)]);
  else sprintf(at, "%s", c->kind == SORTED ? "sorted" : "distinct");
}

/* The `k`-th tensor of numbers from -REACH to REACH. */
static void numbers(int k, double *x) {
  for (int i = 0; i < SIZE; i++, k /= SPAN) x[i] = k % SPAN - REACH;
}

static bool all_hold(const clause *c, int n, const double *x) {
  for (int i = 0; i < n; i++)
    if (!holds(&c[i], x)) return false;
  return true;
}

static void compare(const clause *c, int n, const char *line, iso_code code) {
  rule_tensor *t = NULL;
  iso_error err;
  int inside = 0;
  ck_assert(rule_tensor_new(RULE_I64, &(rule_shape){1, {SIZE}}, &t, &err) == ISO_OK);
  for (int k = 0; k < ALL; k++) {
    double x[SIZE];
    numbers(k, x);
    const bool want = all_hold(c, n, x);
    inside += want;
    for (int i = 0; i < SIZE; i++) rule_tensor_set(t, i, x[i]);
    if (code == ISO_OK)
      ck_assert_msg(want == rule_domain_admits(g->node[0].domain, t, NULL, 0),
                    "%g, %g, %g is %s: %s", x[0], x[1], x[2], want ? "inside" : "outside", line);
  }
  /* Nothing is inside of what was refused. */
  ck_assert_msg(code == ISO_OK || inside == 0, "%d tensors are inside: %s", inside, line);
  rule_tensor_unref(t);
}

/* All clauses in one line, or in two, of which the second is read within the first. */
START_TEST(a_line_says_what_its_clauses_say) {
  static int taken, refused;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1 + (uint64_t)_i);
    clause c[4];
    const int n = 1 + (int)iso_rng_below(&rng, 4), first = _i ? 1 + n / 2 : n;
    char line[2][400] = {"", ""}, both[1600];
    iso_error err = {0};
    begin("int64");
    for (int i = 0; i < n; i++) {
      c[i] = draw(&rng);
      write(&c[i], &rng, line[i >= first]);
    }
    iso_code code = ISO_OK;
    for (int k = 0; k < 2 && !code; k++) {
      const char *at = line[k];
      if (*at) code = relations_domain(&at, "file:3", g, 0, &err);
      ck_assert(code || !*at);
    }
    snprintf(both, sizeof both, "%s | %s: %s", line[0], line[1], code ? err.msg : "");
    compare(c, n, both, code);
    ck_assert_msg(!code || strstr(err.msg, "file:3"), "%s", err.msg);
    taken += code == ISO_OK;
    refused += code != ISO_OK;
    end();
  }
  ck_assert_int_gt(taken, SEEDS / 2);
  ck_assert_int_gt(refused, 10);
}
END_TEST

static const char *const malformed[] = {"range",
                                        "range 1",
                                        "range 1 x",
                                        "range nan 1",
                                        "range 1 1e999",
                                        "range 0 9007199254740993",
                                        "range 0 3x",
                                        "exclude",
                                        "exclude distinct",
                                        "distinct x",
                                        "sortedly",
                                        "mask left maskright",
                                        "sorted range 1",
                                        "range 1 2 3",
                                        "range 3 2",
                                        "range 0.25 0.75",
                                        "range 0 1 exclude 0 1",
                                        "range 0 1 distinct",
                                        "range 2 3 mask"};

START_TEST(what_is_no_domain_is_refused) {
  iso_error err = {0};
  begin("int64");
  const char *at = malformed[_i];
  const iso_code code = relations_domain(&at, "file:7", g, 0, &err);
  ck_assert_msg(code == ISO_FORMAT, "taken: %s", malformed[_i]);
  ck_assert_msg(strncmp(err.msg, "file:7: ", 8) == 0, "%s", err.msg);
  ck_assert_ptr_null(g->node[0].domain);
  end();
}
END_TEST

/* Words begin a clause as whole words alone. */
START_TEST(clauses_begin_with_their_words) {
  static const char *const yes[] = {"range 1 2", " , sorted", "mask", "\tdistinct,", "exclude"},
                           *const no[] = {"", "ranges 1", "sorted_x", "3", "left", "Mask"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) ck_assert(relations_domain_begins(yes[i]));
  for (size_t i = 0; i < sizeof no / sizeof *no; i++) ck_assert(!relations_domain_begins(no[i]));
}
END_TEST

int main(void) {
  Suite *s = suite_create("relations_domain");
  TCase *c = tcase_create("relations_domain");
  tcase_add_loop_test(c, a_line_says_what_its_clauses_say, 0, 2);
  tcase_add_loop_test(c, what_is_no_domain_is_refused, 0,
                      (int)(sizeof malformed / sizeof *malformed));
  tcase_add_test(c, clauses_begin_with_their_words);
  suite_add_tcase(s, c);
  return run_suite(s);
}
