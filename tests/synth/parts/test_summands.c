/* The summands of a tensor are found in any order of sums, multiples and collectives. There are
 * none where results of two operators are added. */
#include <check.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "synth/parts/parts.h"
#include "tests/support/suite.h"

enum { MAX_NODES = 512, CASES = 500 };

typedef struct drawn {
  iso_arena arena;
  iso_rng rng;
  synth_node node[MAX_NODES];
  synth_graph graph;
  uint32_t sums, collectives; /* in all */
} drawn;

static uint32_t add_node(drawn *d, const rule_term *call, uint32_t rank) {
  ck_assert_uint_lt(d->graph.n_nodes, MAX_NODES);
  d->node[d->graph.n_nodes] = (synth_node){.kind = call ? SYNTH_OP : SYNTH_INPUT,
                                           .call = call,
                                           .n_outputs = 1,
                                           .shape = {.rank = rank},
                                           .dtype = RULE_F32};
  return (uint32_t)d->graph.n_nodes++;
}

static uint32_t call_of(drawn *d, const char *op, const rule_term *a, const rule_term *b) {
  const rule_term *arg[2] = {a, b};
  return add_node(d, rule_op(&d->arena, op, arg, 2), 1);
}

static const rule_term *var(drawn *d, uint32_t i) { return rule_var(&d->arena, i); }

static uint32_t atom(drawn *d, const char *op) {
  return call_of(d, op, var(d, 0), rule_int(&d->arena, (int64_t)d->graph.n_nodes));
}

/* A sum of these nodes, nested in some way. */
static uint32_t draw_sum(drawn *d, const uint32_t *of, uint32_t n) {
  iso_arena *a = &d->arena;
  uint32_t made;
  if (n == 1) made = of[0];
  else if (iso_rng_below(&d->rng, 2)) {
    const uint32_t cut = 1 + (uint32_t)iso_rng_below(&d->rng, n - 1);
    const uint32_t l = draw_sum(d, of, cut), r = draw_sum(d, of + cut, n - cut);
    made = call_of(d, "aten::add.Tensor", var(d, l), var(d, r));
    d->sums++;
  } else {
    /* The first is on every rank, as a tensor reduced before is. */
    const bool again = n > 2 && iso_rng_below(&d->rng, 2);
    const rule_term *list[2];
    const uint32_t cut = 1 + (uint32_t)iso_rng_below(&d->rng, n - 1);
    const uint32_t shared = again ? draw_sum(d, of, 1) : 0;
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t x = draw_sum(d, k ? of + cut : of, k ? n - cut : cut);
      if (again) x = call_of(d, "aten::add.Tensor", var(d, shared), var(d, x)), d->sums++;
      list[k] = var(d, x);
    }
    const char *how = iso_rng_below(&d->rng, 2) ? "sum" : "avg";
    made = call_of(d, "dist::all_reduce", rule_list(a, list, 2), rule_string(a, how));
    d->sums++, d->collectives++;
  }
  if (n > 1 && iso_rng_below(&d->rng, 2) == 0) return made;
  return iso_rng_below(&d->rng, 2)
             ? call_of(d, "aten::mul.Tensor", var(d, made), rule_float(a, 0.5))
             : call_of(d, "aten::div.Tensor", var(d, made), var(d, 1));
}

static void begin(drawn *d, uint64_t seed) {
  *d = (drawn){.graph = {.node = d->node}};
  iso_arena_init(&d->arena);
  d->rng = iso_rng_new(seed, 0);
  d->graph.node = d->node;
  (void)add_node(d, NULL, 1);
  (void)add_node(d, NULL, 0); /* one number */
}

/* The root has to be a sum: a multiple of one is looked at where it is added. */
static uint32_t root_of(drawn *d, const uint32_t *of, uint32_t n) {
  const uint32_t rest = draw_sum(d, of + 1, n - 1);
  return call_of(d, "aten::add.Tensor", var(d, of[0]), var(d, rest));
}

START_TEST(all_are_found) {
  for (uint64_t seed = 0; seed < CASES; seed++) {
    drawn d;
    uint32_t of[12], found[MAX_RANKS], each;
    bool inner[MAX_NODES] = {false};
    begin(&d, seed);
    const uint32_t n = 2 + (uint32_t)iso_rng_below(&d.rng, 11);
    for (uint32_t k = 0; k < n; k++) of[k] = atom(&d, "aten::mm");
    const uint32_t root = root_of(&d, of, n);
    ck_assert_uint_eq(st_summands(&d.graph, root, inner, found, &each), n);
    for (uint32_t k = 0; k < n; k++) {
      bool there = false;
      for (uint32_t j = 0; j < n; j++) there |= found[j] == of[k];
      ck_assert(there && !inner[of[k]]);
    }
    ck_assert(!inner[root]);
    iso_arena_fini(&d.arena);
  }
}
END_TEST

START_TEST(one_of_another_operator_is_none) {
  for (uint64_t seed = 0; seed < CASES; seed++) {
    drawn d;
    uint32_t of[12], found[MAX_RANKS], each;
    bool inner[MAX_NODES] = {false};
    begin(&d, seed);
    const uint32_t n = 2 + (uint32_t)iso_rng_below(&d.rng, 11),
                   odd = (uint32_t)iso_rng_below(&d.rng, n);
    for (uint32_t k = 0; k < n; k++) of[k] = atom(&d, k == odd ? "aten::exp" : "aten::mm");
    const uint32_t root = root_of(&d, of, n);
    ck_assert_uint_eq(st_summands(&d.graph, root, inner, found, &each), 0);
    for (uint32_t k = 0; k < MAX_NODES; k++) ck_assert(!inner[k]);
    iso_arena_fini(&d.arena);
  }
}
END_TEST

/* As a tied weight's gradients are: they stand beside one another, by operator. */
START_TEST(equally_many_of_two_operators_are_found) {
  for (uint64_t seed = 0; seed < CASES; seed++) {
    drawn d;
    uint32_t of[12], found[MAX_RANKS], each;
    bool inner[MAX_NODES] = {false};
    begin(&d, seed);
    const uint32_t n = 4 + 2 * (uint32_t)iso_rng_below(&d.rng, 5);
    for (uint32_t k = 0; k < n; k++) of[k] = atom(&d, k % 2 ? "aten::exp" : "aten::mm");
    for (uint32_t k = n; k > 1; k--) {
      const uint32_t at = (uint32_t)iso_rng_below(&d.rng, k), other = of[k - 1];
      of[k - 1] = of[at];
      of[at] = other;
    }
    const uint32_t root = root_of(&d, of, n);
    ck_assert_uint_eq(st_summands(&d.graph, root, inner, found, &each), n);
    ck_assert_uint_eq(each, n / 2);
    for (uint32_t k = 0; k < n; k++)
      ck_assert_str_eq(d.node[found[k]].call->u.s, d.node[found[k - k % each]].call->u.s);
    ck_assert_str_ne(d.node[found[0]].call->u.s, d.node[found[each]].call->u.s);
    iso_arena_fini(&d.arena);
  }
}
END_TEST

/* A single collective is no chain of summands, neither a sum of its ranks' tensors nor their
 * largest. */
START_TEST(collectives_alone) {
  drawn d;
  uint32_t found[MAX_RANKS], each;
  bool inner[MAX_NODES] = {false};
  begin(&d, 1);
  iso_arena *a = &d.arena;
  const rule_term *list[2] = {var(&d, atom(&d, "aten::mm")), var(&d, atom(&d, "aten::mm"))};
  const rule_term *both = rule_list(a, list, 2);
  const uint32_t sum = call_of(&d, "dist::all_reduce", both, rule_string(a, "sum")),
                 max = call_of(&d, "dist::all_reduce", both, rule_string(a, "max"));
  ck_assert_uint_eq(st_summands(&d.graph, sum, inner, found, &each), 0);
  ck_assert_uint_eq(st_summands(&d.graph, max, inner, found, &each), 0);
  iso_arena_fini(&d.arena);
}
END_TEST

int main(void) {
  Suite *s = suite_create("summands");
  TCase *t = tcase_create("summands");
  tcase_add_test(t, all_are_found);
  tcase_add_test(t, one_of_another_operator_is_none);
  tcase_add_test(t, equally_many_of_two_operators_are_found);
  tcase_add_test(t, collectives_alone);
  suite_add_tcase(s, t);
  return run_suite(s);
}
