/* Which tensors of ranks are their part of one of the other graph: cuts, sums, copies and wrong
 * parts whose truth is known by how they were made. */
#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { MOST_PARTS = 4, DECOYS = 3 };

static st_run run[2];
static peers group_of_ranks;
static uint32_t rank_node[MOST_PARTS];

static void begin(void) {
  begin_state();
  for (int side = 0; side < 2; side++) {
    run[side] = (st_run){.value = calloc(MAX_NODES, sizeof *run[side].value)};
    ck_assert_ptr_nonnull(run[side].value);
  }
  group_of_ranks = (peers){.node = rank_node};
  st.ranks.peers = &group_of_ranks;
  st.ranks.n_peers = 1;
}

static void end(void) {
  for (int side = 0; side < 2; side++) free(run[side].value);
  end_state();
}

/* A node that has this value in the run: a step, or a leaf. */
static uint32_t node_of(int side, rule_tensor *t, bool is_leaf) {
  graph *g = graph_of(side);
  const uint32_t i = leaf(g, SYNTH_PARAMETER, "p", t, t);
  if (!is_leaf) g->node[i].kind = SYNTH_OP;
  g->node[i].dtype = t->dtype;
  add_atom(side, i);
  run[side].value[i] = (st_value_list){.v = &g->value[i][0], .n = 1};
  return i;
}

/* ---- ranks by construction ---- */

typedef enum made { CUT, SHARED, COPIES, SUM, MEAN, UNRELATED, KINDS } made;

typedef struct drawn {
  made kind;
  int side; /* of the ranks */
  uint32_t n, whole;
  bool is_leaf;
} drawn;

static rule_tensor *whole_tensor(iso_rng *rng, uint32_t n) {
  const int64_t a = (int64_t)n * (1 + (int64_t)iso_rng_below(rng, 2)),
                b = (int64_t)n * (1 + (int64_t)iso_rng_below(rng, 3));
  return noise(iso_rng_below(rng, 1u << 30), SHAPE(a, b), 0, 1);
}

/* Part k of n along d, some of them turned: a rank's part may be in another layout. */
static rule_tensor *part_of(const rule_tensor *t, uint32_t d, uint32_t n, uint32_t k, double times,
                            bool turn) {
  rule_shape s = t->shape;
  s.dim[d] /= n;
  rule_tensor *p = keep(strided(t, d, s.dim[d] * k, 1, s));
  for (int64_t i = 0; i < p->numel; i++) rule_tensor_set(p, i, times * rule_tensor_get(p, i));
  return turn ? keep(transposed(p, 0, 1)) : p;
}

/* Summands at random, the last of which makes the sum right. */
static void add_summands(drawn *d, iso_rng *rng, const rule_tensor *whole) {
  rule_tensor *rest = keep(make(whole->shape));
  for (int64_t i = 0; i < rest->numel; i++) rule_tensor_set(rest, i, rule_tensor_get(whole, i));
  for (uint32_t r = 0; r < d->n; r++) {
    rule_tensor *own =
        r + 1 == d->n ? rest : noise(iso_rng_below(rng, 1u << 30), whole->shape, 0, 1);
    for (int64_t i = 0; i < rest->numel && r + 1 < d->n; i++)
      rule_tensor_set(rest, i, rule_tensor_get(rest, i) - rule_tensor_get(own, i));
    rank_node[r] = node_of(d->side, own, d->is_leaf);
  }
}

static drawn draw(iso_rng *rng, made kind) {
  drawn d = {.kind = kind, .side = (int)iso_rng_below(rng, 2)};
  d.n = kind == SHARED ? 4 : 2 + (uint32_t)iso_rng_below(rng, MOST_PARTS - 1);
  d.is_leaf = kind != SUM && kind != MEAN && iso_rng_below(rng, 2);
  const uint32_t along = (uint32_t)iso_rng_below(rng, 2);
  const bool turn = iso_rng_below(rng, 2);
  rule_tensor *whole = whole_tensor(rng, d.n);
  for (int i = 0; i < DECOYS; i++) node_of(!d.side, whole_tensor(rng, d.n), d.is_leaf);
  d.whole = node_of(!d.side, whole, d.is_leaf);
  for (uint32_t r = 0; r < d.n && kind != SUM; r++) {
    const uint32_t parts = kind == SHARED ? 2 : kind == COPIES ? 1 : d.n;
    rule_tensor *own = kind == UNRELATED ? noise(iso_rng_below(rng, 1u << 30), SHAPE(2, 3), 0, 1)
                                         : part_of(whole, along, parts, r * parts / d.n,
                                                   kind == MEAN ? d.n : 1, turn);
    rank_node[r] = node_of(d.side, own, d.is_leaf);
  }
  if (kind == SUM) add_summands(&d, rng, whole);
  group_of_ranks.side = d.side;
  group_of_ranks.n = d.n;
  return d;
}

static void mark(void) { ck_assert(st_mark_parts(&st, run, &err) == ISO_OK); }

static const char *const names[] = {"cut", "shared", "copies", "sum", "mean", "unrelated"};

START_TEST(what_ranks_hold_rightly_is_marked) {
  for (uint64_t seed = 0; seed < 120; seed++) {
    iso_rng rng = iso_rng_new(seed, (uint64_t)_i);
    begin();
    const drawn d = draw(&rng, (made)_i);
    mark();
    const uint8_t want = d.kind == UNRELATED ? 0 : PART_RIGHT;
    for (uint32_t r = 0; r < d.n; r++)
      ck_assert_msg(st.ranks.part[d.side][rank_node[r]] == want, "%s, seed %d, rank %u of %u",
                    names[_i], (int)seed, r, d.n);
    /* The tensor that all ranks hold together is right, too. */
    const bool whole = d.kind == CUT || d.kind == SHARED || d.kind == COPIES;
    for (uint32_t i = 0; i < graph_of(!d.side)->g.n_nodes; i++)
      ck_assert_int_eq(st.ranks.part[!d.side][i], whole && i == d.whole ? PART_RIGHT : 0);
    end();
  }
}
END_TEST

/* One rank has numbers of its own: it is wrong where the others hold their parts, and nobody is
 * marked where all of them make a sum. */
START_TEST(the_rank_that_holds_something_else_is_marked) {
  for (uint64_t seed = 0; seed < 120; seed++) {
    iso_rng rng = iso_rng_new(seed, 100 + (uint64_t)_i);
    begin();
    const drawn d = draw(&rng, (made)_i);
    const uint32_t wrong = (uint32_t)iso_rng_below(&rng, d.n);
    rule_tensor *own = graph_of(d.side)->value[rank_node[wrong]][0];
    for (int64_t i = 0; i < own->numel; i++) rule_tensor_set(own, i, iso_rng_normal(&rng));
    mark();
    for (uint32_t r = 0; r < d.n; r++) {
      const uint8_t want = d.kind == SUM ? 0 : r == wrong ? PART_WRONG : PART_RIGHT;
      ck_assert_msg(st.ranks.part[d.side][rank_node[r]] == want, "%s, seed %d, rank %u of %u: %d",
                    names[_i], (int)seed, r, d.n, st.ranks.part[d.side][rank_node[r]]);
    }
    ck_assert_int_eq(st.ranks.part[!d.side][d.whole], 0);
    end();
  }
}
END_TEST

/* Parts in the wrong order: those that came to the wrong place are marked. */
START_TEST(parts_that_changed_places_are_marked) {
  for (uint64_t seed = 0; seed < 120; seed++) {
    iso_rng rng = iso_rng_new(seed, 200);
    begin();
    drawn d = draw(&rng, CUT);
    if (d.n > 2) {
      const uint32_t first = rank_node[0];
      rank_node[0] = rank_node[1];
      rank_node[1] = first;
      mark();
      for (uint32_t r = 0; r < d.n; r++)
        ck_assert_int_eq(st.ranks.part[d.side][rank_node[r]], r < 2 ? PART_WRONG : PART_RIGHT);
    }
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("mark_parts");
  TCase *t = tcase_create("mark_parts");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, what_ranks_hold_rightly_is_marked, 0, KINDS);
  tcase_add_loop_test(t, the_rank_that_holds_something_else_is_marked, 0, UNRELATED);
  tcase_add_test(t, parts_that_changed_places_are_marked);
  suite_add_tcase(s, t);
  return run_suite(s);
}
