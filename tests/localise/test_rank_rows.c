/* A rank's product has some of another product's columns, in an order of its own: each is found,
 * whichever tensor holds it, and a column that is another one is not. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

enum { SEEDS = 300, ROWS = 3, MOST = 4, RANKS = 2 };

static rule_tensor *own[RANKS], *taken;
static uint32_t node_of[RANKS], at;
static peers both;

static uint32_t product(graph *g, rule_tensor *t) {
  const uint32_t i = input(g, t);
  g->node[i].kind = SYNTH_OP;
  g->node[i].op = "aten::mm";
  return i;
}

static void copy_column(const rule_tensor *from, int64_t a, rule_tensor *to, int64_t b) {
  for (int64_t r = 0; r < ROWS; r++)
    rule_tensor_set(to, r * to->shape.dim[1] + b,
                    rule_tensor_get(from, r * from->shape.dim[1] + a));
}

/* Both ranks' products on the right, and a product on the left of some of their columns. `of_one`:
 * of the first rank's alone, which is no peer then. */
static void begin_columns(uint64_t seed, bool of_one) {
  iso_rng rng = iso_rng_new(seed, 1);
  int64_t all[RANKS * MOST], m = 0, width[RANKS];
  begin();
  for (int k = 0; k < RANKS; k++) {
    width[k] = 2 + (int64_t)iso_rng_below(&rng, MOST - 1);
    own[k] = noise(seed * 3 + (uint64_t)k, SHAPE(ROWS, width[k]), 0, 1);
    node_of[k] = product(&w.r, own[k]);
  }
  const int64_t most = of_one ? width[0] : width[0] + width[1];
  for (m = 0; m < most; m++) {
    const int64_t k = (int64_t)iso_rng_below(&rng, (uint64_t)m + 1);
    all[m] = all[k];
    all[k] = m;
  }
  const int64_t n = 2 + (int64_t)iso_rng_below(&rng, (uint64_t)(most - 1));
  taken = keep(make(SHAPE(ROWS, n)));
  for (int64_t i = 0; i < n; i++) {
    const int k = all[i] >= width[0];
    copy_column(own[k], k ? all[i] - width[0] : all[i], taken, i);
  }
  at = product(&w.l, taken);
  both = (peers){.side = RIGHT, .n = of_one ? 1 : RANKS, .node = node_of};
  st.ranks.peers = &both;
  st.ranks.n_peers = 1;
  place_all();
}

static void end_columns(void) {
  st.ranks.peers = NULL;
  end();
}

START_TEST(columns_of_ranks_are_found_in_any_order) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_columns(seed, seed % 2);
    ck_assert_msg(lo_selected(&p, LEFT, at), "seed %d", (int)seed);
    end_columns();
  }
}
END_TEST

START_TEST(another_column_is_not_found) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_columns(seed, seed % 2);
    const int64_t i = (int64_t)(seed % (uint64_t)taken->numel);
    const int64_t n = taken->shape.dim[1];
    if (seed % 3) rule_tensor_set(taken, i, rule_tensor_get(taken, i) + 1e-3);
    else { /* the same sum, of other elements */
      rule_tensor_set(taken, i % n, rule_tensor_get(taken, i % n) + 1e-3);
      rule_tensor_set(taken, n + i % n, rule_tensor_get(taken, n + i % n) - 1e-3);
    }
    ck_assert_msg(!lo_selected(&p, LEFT, at), "seed %d", (int)seed);
    end_columns();
  }
}
END_TEST

/* Of products of other graphs' ranks alone, and not where these are one rank's pieces. */
START_TEST(only_peers_products_are_looked_at) {
  for (int k = 0; k < 8; k++) {
    begin_columns(4, false);
    if (k == 1) st.ranks.n_peers = 0;
    if (k == 2) both.pieces = true;
    if (k == 3) both.side = LEFT;
    if (k == 4) w.r.node[node_of[1]].op = "aten::add.Tensor";
    if (k == 5) w.l.node[at].op = "aten::add.Tensor";
    if (k == 6) p.run[RIGHT].value[node_of[1]].n = 0;
    if (k == 7) both.n = 1;
    ck_assert_msg(lo_selected(&p, LEFT, at) == (k == 0), "%d", k);
    end_columns();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("rank_rows");
  TCase *t = tcase_create("rank_rows");
  tcase_add_test(t, columns_of_ranks_are_found_in_any_order);
  tcase_add_test(t, another_column_is_not_found);
  tcase_add_test(t, only_peers_products_are_looked_at);
  suite_add_tcase(s, t);
  return run_suite(s);
}
