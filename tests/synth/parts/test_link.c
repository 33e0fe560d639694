/* Ranks' parts are joined with the whole from the leaves up: steps that ranks repeat, in any number
 * and depth; and nothing where a rank does something else. */
#include "rules/names.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SEEDS = 24, MOST_PARTS = 4, STEPS = 3, LINEAR = 2, KINDS };

static uint32_t n_ranks;
/* How the ranks' parts are the whole: one after another, or summands. */
typedef enum way { ROWS, SUM, WAYS } way;
static way how;

/* Sizes that do not fit are libtorch's to refuse. parameters: those of rule_oracle.call. */
static iso_code run_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                         rule_tensor **out, size_t cap, size_t *n_out, iso_error *e) {
  const iso_code c = small_call(ctx, call, bind, float64, out, cap, n_out, e);
  return c == ISO_UNSUPPORTED ? ISO_TORCH : c;
}

static void begin(uint64_t seed, way in) {
  begin_state();
  oracle.call = run_call;
  oracle.decide = small_decide;
  ck_assert(rule_set_new(&st.rules.set, &err) == ISO_OK);
  ck_assert(rule_set_new(&st.rules.tried, &err) == ISO_OK);
  how = in;
  n_ranks = 2 + (uint32_t)(seed % (MOST_PARTS - 1));
}

static void end(void) {
  st_free_links(&st);
  for (int k = 0; k < 2; k++) {
    free(st.ranks.first_peers[k]);
    free(st.ranks.peers_at[k]);
  }
  free(st.ranks.peers);
  end_state();
}

/* The captured node in the joint e-graph, by its call or as an atom, with its values. */
static void enter(int side, uint32_t i) {
  const synth_node *n = &graph_of(side)->node[i];
  eg_node *e = &st.map[side][i];
  if (n->kind == SYNTH_OP) {
    ck_assert(st_add_term(&st, n->call, st.map[side], e, &err) == ISO_OK);
    ck_assert(st_value(&st, *e, &err) == ISO_OK);
  } else {
    ck_assert(st_add_atom(&st, iso_arena_printf(&w.arena, "#%d.%u", side, i), &n->shape, e, &err) ==
              ISO_OK);
    rec *r = &st.rec[e->i];
    ck_assert((r->val = calloc(st.n_draws, sizeof *r->val)) != NULL);
    for (size_t d = 0; d < st.n_draws; d++) r->val[d] = rule_tensor_ref(n->value[0]);
    r->n_out = 1;
    r->valued = r->leaf = true;
  }
  if (st.rec[e->i].node[side] < 0) st.rec[e->i].node[side] = (int32_t)i;
}

static uint32_t repeat(graph *g, uint64_t kind, uint32_t x) {
  return kind == 0 ? neg(g, x) : kind == 1 ? add(g, x, x) : relu(g, x);
}

/* The whole of these nodes of the right, as the inputs are its input. */
static eg_node whole_of(const uint32_t *part) {
  const rule_term *item[MOST_PARTS];
  eg_node e;
  for (uint32_t r = 0; r < n_ranks; r++) item[r] = v(part[r]);
  const rule_term *arg[5] = {rule_list(&w.arena, item, n_ranks),
                             how == SUM ? rule_string(&w.arena, "sum") : num(0)};
  const rule_term *t = call_of(how == SUM ? OP_DIST_ALL_REDUCE : OP_CAT, arg);
  ck_assert(st_add_term(&st, t, st.map[RIGHT], &e, &err) == ISO_OK);
  ck_assert(st_value(&st, e, &err) == ISO_OK);
  return e;
}

/* Its element that is element `i` of a rank's part of 2 by 3. */
static int64_t place_of(uint32_t r, int64_t i) { return how == SUM ? i : 6 * r + i; }

/* The same steps on both sides. `odd`: the last rank does something else in the first step. In `y`
 * and `part`: the results. */
static void make_programs(iso_rng *rng, bool odd, uint32_t *y, uint32_t *part) {
  uint64_t kind[STEPS];
  rule_tensor *own[MOST_PARTS];
  const uint32_t steps = 1 + (uint32_t)iso_rng_below(rng, STEPS);
  rule_tensor *all = constant(how == SUM ? SHAPE(2, 3) : SHAPE(2 * n_ranks, 3), 0);
  for (uint32_t r = 0; r < n_ranks; r++) {
    own[r] = noise(iso_rng_next(rng), SHAPE(2, 3), 0, 1);
    for (int64_t i = 0; i < 6; i++)
      rule_tensor_set(all, place_of(r, i),
                      rule_tensor_get(all, place_of(r, i)) + rule_tensor_get(own[r], i));
  }
  for (uint32_t s = 0; s < steps; s++) kind[s] = iso_rng_below(rng, how == SUM ? LINEAR : KINDS);
  *y = input(&w.l, all);
  for (uint32_t r = 0; r < n_ranks; r++) part[r] = input(&w.r, own[r]);
  for (uint32_t s = 0; s < steps; s++) {
    *y = repeat(&w.l, kind[s], *y);
    for (uint32_t r = 0; r < n_ranks; r++)
      part[r] = odd && s == 0 && r + 1 == n_ranks ? repeat(&w.r, (kind[s] + 1) % KINDS, part[r])
                                                  : repeat(&w.r, kind[s], part[r]);
  }
}

/* Both programs in the joint e-graph, with the relation of the inputs. Returns: where the ranks'
 * results meet. */
static eg_node enter_all(const uint32_t *part) {
  uint32_t inputs[MOST_PARTS];
  for (uint32_t r = 0; r < n_ranks; r++) inputs[r] = r;
  const rule_term *item[MOST_PARTS];
  for (uint32_t r = 0; r < n_ranks; r++) item[r] = v(part[r]);
  const uint32_t last =
      op(&w.r, OP_DIST_ALL_GATHER, rule_list(&w.arena, item, n_ranks), num(0), NULL);
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < graph_of(side)->g.n_nodes; i++) enter(side, i);
  ck_assert(st_merge(&st, st.map[LEFT][0], whole_of(inputs), WHY_VALUE, 0, &err) == ISO_OK);
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
  for (uint32_t i = 0; i < w.l.g.n_nodes; i++) /* values find the whole of leaves there */
    ck_assert(st_visit(&st, st.map[LEFT][i], &err) == ISO_OK);
  ck_assert_msg(st_find_peers(&st, &err) == ISO_OK, "%s", err.msg);
  ck_assert(st.ranks.n_peers > 0);
  return st.map[RIGHT][last];
}

/* Whether the left's tensor is made up of the parts. */
static bool is_together(eg_node y, const uint32_t *part) {
  return eg_equal(st.g, y, whole_of(part));
}

static bool link_both(eg_node y, eg_node z) {
  bool any;
  ck_assert_msg(st_link_shards(&st, y, z, &any, &err) == ISO_OK, "%s", err.msg);
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
  ck_assert(!st.ranks.linking);
  return any;
}

START_TEST(steps_that_ranks_repeat_are_joined_with_the_whole) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    uint32_t y, part[MOST_PARTS];
    begin(seed, (way)_i);
    make_programs(&rng, false, &y, part);
    const eg_node z = enter_all(part);
    ck_assert_msg(link_both(st.map[LEFT][y], z), "seed %d", (int)seed);
    ck_assert_msg(is_together(st.map[LEFT][y], part), "seed %d", (int)seed);
    for (size_t i = 0; i < st.ranks.n_peers; i++) ck_assert(st.ranks.peers[i].linked);
    /* What was linked is not looked at again. */
    const size_t asked = w.oracle.n_decided;
    link_both(st.map[LEFT][y], z);
    ck_assert_uint_eq(w.oracle.n_decided, asked);
    end();
  }
}
END_TEST

START_TEST(ranks_that_do_something_else_are_not_joined) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    uint32_t y, part[MOST_PARTS];
    begin(seed, (way)_i);
    make_programs(&rng, true, &y, part);
    const eg_node z = enter_all(part);
    link_both(st.map[LEFT][y], z);
    ck_assert_msg(!is_together(st.map[LEFT][y], part), "seed %d", (int)seed);
    end();
  }
}
END_TEST

/* By value they are one; no rule says so. */
START_TEST(nothing_is_joined_without_a_rule) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 3);
    uint32_t y, part[MOST_PARTS];
    begin(seed, (way)_i);
    w.oracle.judge = JUDGE_UNKNOWN;
    make_programs(&rng, false, &y, part);
    const eg_node z = enter_all(part);
    link_both(st.map[LEFT][y], z);
    ck_assert_msg(!is_together(st.map[LEFT][y], part), "seed %d", (int)seed);
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("link");
  TCase *t = tcase_create("link");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, steps_that_ranks_repeat_are_joined_with_the_whole, 0, WAYS);
  tcase_add_loop_test(t, ranks_that_do_something_else_are_not_joined, 0, WAYS);
  tcase_add_loop_test(t, nothing_is_joined_without_a_rule, 0, WAYS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
