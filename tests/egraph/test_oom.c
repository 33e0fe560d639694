/* Fails the n-th allocation for n = 0, 1, 2, ... until a whole run succeeds. Each time an error
 * comes back, the graph can be used on once there is memory again, and nothing leaks. */
#include "tests/support/failalloc.h"

#include <check.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "tests/support/suite.h"

enum { N_CALLS = 60, MAX_NODES = 400 };

typedef struct counts {
  long made, freed;
} counts;

static void *make(void *ctx, eg_graph *g, eg_node n) {
  (void)g;
  int *p = malloc(sizeof *p);
  if (!p) return NULL;
  *p = (int)n.i;
  ((counts *)ctx)->made++;
  return p;
}
static void drop(void *ctx, void *data) {
  ((counts *)ctx)->freed++;
  free(data);
}
static void *join(void *ctx, eg_graph *g, eg_class c, void *into, void *from, bool *changed) {
  (void)g, (void)c;
  *changed = *(int *)from < *(int *)into;
  drop(ctx, *changed ? into : from);
  return *changed ? from : into;
}
static iso_code repair(void *ctx, eg_graph *g, eg_class c, void *data, iso_error *err) {
  (void)ctx, (void)data;
  eg_symbol s;
  eg_node n;
  iso_code code = eg_intern(g, "u", 1, &s, err);
  if (code) return code;
  /* Only low classes get a new parent, or there would be no end. */
  if (c.i > 6) return ISO_OK;
  return eg_add(g, s, &c, 1, &n, err);
}

/* Check's own assertions allocate even where they hold. */
#define HOLDS(cond) \
  do { \
    if (!(cond)) fail_disarm(), ck_abort_msg("%s", #cond); \
  } while (0)

/* Make one call, and where it is refused for want of memory, see that it changed nothing and make
 * it again. Later failures in the same run do not happen: one allocation fails per run. */
#define TRY(call) \
  do { \
    const size_t was_ = g ? eg_count_added(g) : 0, cls_ = g ? eg_count_classes(g) : 0; \
    iso_code code_ = (call); \
    if (code_) { \
      HOLDS(code_ == ISO_NOMEM); \
      HOLDS(fail_happened &&err.code == ISO_NOMEM && err.msg[0]); \
      if (g && atomic) HOLDS(eg_count_added(g) == was_ && eg_count_classes(g) == cls_); \
      HOLDS((call) == ISO_OK); \
    } \
  } while (0)

/* Returns: a sum that tells runs apart. */
static uint64_t run_trace(bool with_data) {
  counts c = {0};
  const eg_analysis a = {&c, make, join, repair, drop};
  eg_graph *g = NULL;
  iso_error err = {0};
  bool atomic = true, ok = false;
  uint64_t sum = 0;
  iso_rng rng = iso_rng_new(7, with_data);
  eg_symbol s[4];
  eg_node node[MAX_NODES], n;
  eg_step *step;
  size_t n_steps, n_nodes = 0;
  TRY(eg_new(with_data ? &a : NULL, &g, &err));
  for (int i = 0; i < 4; i++) TRY(eg_intern(g, (char[]){(char)('a' + i)}, 1, &s[i], &err));
  for (int i = 0; i < N_CALLS; i++) {
    eg_class child[3];
    size_t arity = n_nodes ? (size_t)iso_rng_below(&rng, 4) : 0;
    for (size_t k = 0; k < arity; k++)
      child[k] = eg_class_of(g, node[iso_rng_below(&rng, n_nodes)]);
    eg_symbol op = s[iso_rng_below(&rng, 4)];
    TRY(eg_add(g, op, child, arity, &n, &err));
    node[n_nodes++] = n;
    if (i % 3 == 0) {
      eg_node x = node[iso_rng_below(&rng, n_nodes)], y = node[iso_rng_below(&rng, n_nodes)];
      TRY(eg_merge(g, x, y, (eg_why){1, (uint32_t)i}, &err));
    }
    atomic = false;
    if (i % 10 == 9) TRY(eg_rebuild(g, &err));
    atomic = true;
  }
  atomic = false;
  TRY(eg_rebuild(g, &err));
  atomic = true;
  TRY(eg_check(g, &err));
  for (size_t i = 1; i < n_nodes; i++)
    if (eg_equal(g, node[0], node[i])) {
      TRY(eg_explain(g, node[0], node[i], &step, &n_steps, &err));
      TRY(eg_proof_check(g, step, n_steps, node[0], node[i], NULL, NULL, &ok, NULL, &err));
      HOLDS(ok);
      for (size_t k = 0; k < n_steps; k++) sum = sum * 31 + step[k].from.i * 7 + step[k].to.i;
      free(step);
    }
  sum = sum * 31 + eg_count_added(g);
  sum = sum * 31 + eg_count_classes(g);
  sum = sum * 31 + eg_count_nodes(g);
  for (size_t i = 0; i < n_nodes; i++) sum = sum * 31 + eg_class_of(g, node[i]).i;
  eg_free(g);
  HOLDS(c.made == c.freed);
  return sum;
}

static void every_allocation(bool with_data) {
  const uint64_t want = run_trace(with_data);
  long n = 0;
  for (bool failed = true; failed; n++) {
    const long live = fail_live;
    fail_arm(n);
    const uint64_t sum = run_trace(with_data);
    failed = fail_disarm();
    ck_assert_msg(fail_live == live, "leak with allocation %ld", n);
    /* Data that could not be made is missing, which the joins may show; without data nothing is
     * lost. */
    if (!with_data) ck_assert_msg(sum == want, "other result with allocation %ld", n);
  }
  ck_assert_int_gt(n, 50);
}

START_TEST(plain) { every_allocation(false); }
END_TEST
START_TEST(with_analysis) { every_allocation(true); }
END_TEST

int main(void) {
  Suite *s = suite_create("egraph out of memory");
  TCase *t = tcase_create("oom");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, plain);
  tcase_add_test(t, with_analysis);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
