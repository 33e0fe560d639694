/* A collective that does something else than it should, or is missing, is found by what would mend
 * the outputs: each fault is planted, and said in words. */
#include <stdarg.h>

#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

enum { MAX_RANKS = 4 };

typedef struct ranks {
  uint32_t n, part[MAX_RANKS], other[MAX_RANKS]; /* the right nodes of two steps, by rank */
  uint32_t collective;
  uint32_t whole; /* the left node that the collective should give */
  synth_divergence d;
  lo_ending end;
  bool touched[MAX_NODES + 1];
  uint32_t right_of[2];
} ranks;

static ranks k;

static uint32_t collective(graph *g, const char *name, const uint32_t *node, uint32_t n,
                           const rule_term *how) {
  const rule_term *list[MAX_RANKS + 1];
  for (uint32_t i = 0; i < n; i++) list[i] = v(node[i]);
  return op(g, name, rule_list(&w.arena, list, n), how, NULL);
}

static const rule_term *word(const char *how) { return rule_string(&w.arena, how); }

static void peers_of(uint32_t *node, bool pieces) {
  static peers all[2];
  all[st.ranks.n_peers] = (peers){.side = RIGHT, .n = k.n, .node = node, .pieces = pieces};
  st.ranks.peers = all;
  st.ranks.n_peers++;
}

static uint32_t ended(graph *g, uint32_t x, double sign) {
  return relu(g, mul(g, x, weight(g, "c", constant(SHAPE(1), 3 * sign))));
}

/* The sum of the ranks' parts, or the parts beside one another, and the output made of it. `known`:
 * the left has that tensor itself; else its
 * negative. */
static void left_side(uint64_t seed, bool gather, bool mean, bool known) {
  uint32_t part[MAX_RANKS], sum = 0;
  for (uint32_t r = 0; r < k.n; r++) noise(MAX_RANKS * seed + r, SHAPE(3, 2), 0, 1);
  for (uint32_t r = 0; r < k.n; r++) {
    const uint32_t x = input(&w.l, w.tensor[r]);
    part[r] = known ? neg(&w.l, x) : x;
    sum = r ? add(&w.l, sum, part[r]) : part[r];
  }
  if (gather) sum = collective(&w.l, "aten::cat", part, k.n, num(0));
  if (mean)
    sum = op(&w.l, "aten::div.Tensor", v(sum), v(weight(&w.l, "n", constant(SHAPE(1), k.n))), NULL);
  k.whole = sum;
  output(&w.l, "y", ended(&w.l, sum, known ? 1 : -1));
  output(&w.l, "z", part[0]);
}

static void right_parts(bool known) {
  uint32_t x[MAX_RANKS];
  for (uint32_t r = 0; r < k.n; r++) x[r] = input(&w.r, w.tensor[r]);
  const uint32_t twice = weight(&w.r, "2", constant(SHAPE(1), 2)),
                 half = weight(&w.r, "-1/2", constant(SHAPE(1), -0.5));
  for (uint32_t r = 0; r < k.n; r++) k.part[r] = mul(&w.r, mul(&w.r, x[r], twice), half);
  for (uint32_t r = 0; r < k.n; r++) k.other[r] = relu(&w.r, x[r]);
  k.collective = known ? k.part[0] : x[0]; /* until there is one: what z is */
}

static void right_ends(uint32_t whole) {
  const uint32_t z = k.collective;
  k.collective = whole;
  output(&w.r, "y", ended(&w.r, whole, 1));
  output(&w.r, "z", z);
}

static void start(uint32_t n) {
  begin();
  k = (ranks){.n = n, .right_of = {0, 1}, .d = {.left = -1, .right = -1}};
  k.end.touched = k.touched;
  st.right_of = k.right_of;
}

/* Every right node is in the region but for leaves. */
static void mend(void) {
  place_all();
  for (uint32_t i = 0; i < w.r.g.n_nodes; i++) p.seen[RIGHT][i] = w.r.node[i].kind == SYNTH_OP;
  ck_assert(lo_index(&p, LEFT, &err) == ISO_OK);
}
static void run_mend(void) {
  ck_assert_msg(lo_mend_ranks(&p, &k.d, &k.end, &err) == ISO_OK, "%s", err.msg);
}
static void finish(void) {
  st_run_free(&k.end.next);
  st.ranks.n_peers = 0;
  end();
}

static void says(const char *want) {
  ck_assert_msg(k.end.repaired, "of %u ranks: nothing is said, not %s", k.n, want);
  ck_assert_ptr_nonnull(k.d.hint);
  ck_assert_str_eq(k.d.hint, want);
}
static void says_nothing(void) {
  ck_assert(!k.end.repaired && !k.d.hint && !k.end.next.value);
  ck_assert(k.d.left == -1 && k.d.right == -1);
}

/* The output is right in what was carried on, and nothing else became wrong. */
static void is_mended(int64_t at, bool known) {
  ck_assert_int_eq(k.d.right, at);
  ck_assert_int_eq(k.d.left, known ? (int64_t)k.whole : -1);
  ck_assert_int_eq(k.end.exit[RIGHT], known ? at : -1);
  ck_assert_int_eq(k.end.exit[LEFT], known ? (int64_t)k.whole : -1);
  for (size_t o = 0; o < 2; o++)
    ck_assert(small_compare(NULL, w.l.value[w.l.out[o].node][0],
                            k.end.next.value[w.r.out[o].node].v[0], 1e-9)
                  .equal);
  for (uint32_t i = 0; i < w.r.g.n_nodes; i++) ck_assert(k.touched[i]);
}

static const char *id(uint32_t i) { return w.r.node[i].id; }
static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text(const char *format, ...) {
  static char out[300];
  va_list args;
  va_start(args, format);
  vsnprintf(out, sizeof out, format, args);
  va_end(args);
  return out;
}

/* Nothing reads it, and it has no value. */
static void forget(uint32_t i) {
  st.map[RIGHT][i].i = EG_NONE;
  p.run[RIGHT].value[i] = (st_value_list){0};
}

/* ---- each fault ---- */

typedef struct drawn {
  uint32_t n, r; /* ranks; the one at which it is */
  bool known;
  uint64_t seed;
} drawn;

static drawn draw(uint64_t seed) {
  return (drawn){2 + (uint32_t)(seed / 2 % 3), (uint32_t)(seed / 6 % (2 + seed / 2 % 3)), seed % 2,
                 seed};
}

START_TEST(another_reduction_is_named) {
  static const char *const how[] = {"sum", "avg", "max", "min"};
  for (uint64_t seed = 0; seed < 48; seed++) {
    const drawn q = draw(seed);
    const char *is = how[1 + seed / 6 % 3], *should = how[0];
    start(q.n);
    left_side(seed, false, false, q.known);
    right_parts(q.known);
    if (seed % 5 == 0) { /* the mean, where the left has that */
      finish();
      start(q.n);
      left_side(seed, false, true, q.known);
      right_parts(q.known);
      is = how[0], should = how[1];
    }
    right_ends(collective(&w.r, "dist::all_reduce", k.part, q.n, word(is)));
    peers_of(k.part, false);
    mend();
    run_mend();
    says(text("on the right op is \"%s\", and would have to be \"%s\"", is, should));
    is_mended(k.collective, q.known);
    finish();
  }
}
END_TEST

START_TEST(a_tensor_that_is_added_twice_is_named) {
  for (uint64_t seed = 0; seed < 36; seed++) {
    const drawn q = draw(seed);
    uint32_t list[MAX_RANKS + 1];
    start(q.n);
    left_side(seed, false, false, q.known);
    right_parts(q.known);
    memcpy(list, k.part, sizeof k.part);
    list[q.n] = k.part[q.r];
    right_ends(collective(&w.r, "dist::all_reduce", list, q.n + 1, word("sum")));
    peers_of(k.part, false);
    mend();
    run_mend();
    says(text("\"%s\" takes the ranks' tensors more than once, as \"%s\"", id(k.collective),
              id(k.part[q.r])));
    is_mended(k.collective, q.known);
    finish();
  }
}
END_TEST

/* Of the rank left out nothing is read any more, what it is computed from included; or something
 * is. */
START_TEST(a_rank_that_another_stands_for_is_named) {
  for (uint64_t seed = 0; seed < 36; seed++)
    for (int alive = 0; alive < 2; alive++) {
      const drawn q = draw(seed);
      const uint32_t gone = q.r, twice = (q.r + 1) % q.n;
      uint32_t list[MAX_RANKS];
      start(q.n);
      left_side(seed, false, false, q.known);
      right_parts(q.known);
      const bool unread = !alive && !(q.known && gone == 0);
      memcpy(list, k.part, sizeof list);
      list[gone] = k.part[twice];
      right_ends(collective(&w.r, "dist::all_reduce", list, q.n, word("sum")));
      peers_of(k.other, false);
      mend();
      if (unread) forget(k.part[gone] - 1), forget(k.part[gone]);
      run_mend();
      /* From the last place on: which of the two is the other rank's is the first that mends. */
      const uint32_t at = twice > gone ? twice : gone;
      says(text("\"%s\" takes \"%s\" twice, and \"%s\" of rank %u not at all", id(k.collective),
                id(k.part[twice]), id(k.part[gone]), at));
      is_mended(k.collective, q.known);
      finish();
    }
}
END_TEST

START_TEST(a_tensor_of_another_step_is_named) {
  for (uint64_t seed = 0; seed < 36; seed++) {
    const drawn q = draw(seed);
    uint32_t list[MAX_RANKS];
    start(q.n);
    left_side(seed, false, false, q.known);
    right_parts(q.known);
    memcpy(list, k.part, sizeof list);
    list[q.r] = k.other[q.r];
    right_ends(collective(&w.r, "dist::all_reduce", list, q.n, word("sum")));
    peers_of(k.other, false);
    peers_of(k.part, false);
    mend();
    run_mend();
    says(text("\"%s\" takes \"%s\" where \"%s\" of rank %u should stand", id(k.collective),
              id(k.other[q.r]), id(k.part[q.r]), q.r));
    is_mended(k.collective, q.known);
    finish();
  }
}
END_TEST

START_TEST(another_order_of_the_ranks_is_named) {
  for (uint64_t seed = 0; seed < 36; seed++) {
    const drawn q = draw(seed);
    uint32_t list[MAX_RANKS];
    start(q.n);
    left_side(seed, true, false, q.known);
    right_parts(q.known);
    for (uint32_t r = 0; r < q.n; r++) list[r] = k.part[q.n - 1 - r];
    right_ends(collective(&w.r, "dist::all_gather", list, q.n, num(0)));
    peers_of(k.other, false);
    mend();
    run_mend();
    says(text("\"%s\" takes the ranks' tensors in another order than theirs", id(k.collective)));
    is_mended(k.collective, q.known);
    finish();
  }
}
END_TEST

START_TEST(a_collective_that_is_missing_is_named) {
  for (uint64_t seed = 0; seed < 48; seed++) {
    const drawn q = draw(seed);
    const bool mean = seed / 6 % 2;
    const char *of = mean ? "mean" : "sum";
    start(q.n);
    left_side(seed, false, mean, q.known);
    right_parts(q.known);
    const uint32_t z = k.collective;
    const uint32_t own = add(&w.r, k.part[q.r], weight(&w.r, "0", constant(SHAPE(1), 0)));
    k.collective = own;
    output(&w.r, "y", ended(&w.r, own, 1));
    output(&w.r, "z", q.known ? op(&w.r, "aten::alias", v(z), NULL, NULL) : z);
    peers_of(k.part, false);
    mend();
    if (q.known) { /* z would be spoilt: it reads the rank's part before the sum */
      run_mend();
      says_nothing();
      w.r.out[1].node = 0, w.l.out[1].node = 0;
    }
    run_mend();
    const char *whole = q.known ? text("`%s` is the %s of the ranks'", w.l.node[k.whole].id, of)
                                : text("the ranks hold a %s's parts of", of);
    const char *head = iso_arena_strdup(&w.arena, whole);
    says(text("%s `%s`, ..., and no rank adds them up before it goes on: an all_reduce is missing "
              "here",
              head, id(k.part[0])));
    is_mended(k.collective, q.known);
    finish();
  }
}
END_TEST

/* ---- where nothing may be said ---- */

START_TEST(another_fault_is_no_collective_s) {
  for (uint64_t seed = 0; seed < 36; seed++) {
    const drawn q = draw(seed);
    start(q.n);
    left_side(seed, false, false, q.known);
    right_parts(q.known);
    right_ends(neg(&w.r, collective(&w.r, "dist::all_reduce", k.part, q.n, word("sum"))));
    peers_of(k.part, false);
    mend();
    run_mend();
    says_nothing();
    finish();
  }
}
END_TEST

/* Outside of the region, of one rank alone, and where outputs agree and no rule joined them. */
START_TEST(only_several_ranks_and_their_region_are_looked_at) {
  for (int why = 0; why < 4; why++) {
    start(3);
    left_side(1, false, false, true);
    right_parts(true);
    right_ends(collective(&w.r, "dist::all_reduce", k.part, 3, word("max")));
    peers_of(k.part, why == 1);
    mend();
    if (why == 0) p.seen[RIGHT][k.collective] = 3;
    if (why == 2) p.gap = true;
    synth_pair same[2] = {{.equivalent = true}, {.equivalent = true}};
    result.pair = same;
    run_mend();
    if (why == 3) is_mended(k.collective, true);
    else says_nothing();
    finish();
  }
}
END_TEST

/* What stands for a rank was never computed, as an input of its own is behind it. */
START_TEST(a_rank_that_nothing_reads_is_named) {
  for (uint64_t seed = 0; seed < 12; seed++) {
    const drawn q = draw(seed);
    uint32_t list[MAX_RANKS];
    start(q.n);
    left_side(seed, false, false, true);
    right_parts(true);
    const uint32_t gone = 1, lost = k.part[gone];
    memcpy(list, k.part, sizeof list);
    list[gone] = k.part[0];
    right_ends(collective(&w.r, "dist::all_reduce", list, q.n, word("sum")));
    peers_of(k.other, false);
    mend();
    forget(gone), forget(lost - 1), forget(lost), forget(k.other[gone]);
    st.ranks.peers[0].n = 1;
    run_mend();
    says(text("\"%s\" takes \"%s\" twice, and nothing reads \"%s\"", id(k.collective),
              id(k.part[0]), id(lost)));
    ck_assert_int_eq(k.d.right, k.collective);
    ck_assert(k.d.left == -1 && k.end.exit[LEFT] == -1 && k.end.exit[RIGHT] == -1);
    finish();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("rank_mend");
  TCase *t = tcase_create("rank_mend");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, another_reduction_is_named);
  tcase_add_test(t, a_tensor_that_is_added_twice_is_named);
  tcase_add_test(t, a_rank_that_another_stands_for_is_named);
  tcase_add_test(t, a_tensor_of_another_step_is_named);
  tcase_add_test(t, another_order_of_the_ranks_is_named);
  tcase_add_test(t, a_collective_that_is_missing_is_named);
  tcase_add_test(t, another_fault_is_no_collective_s);
  tcase_add_test(t, only_several_ranks_and_their_region_are_looked_at);
  tcase_add_test(t, a_rank_that_nothing_reads_is_named);
  suite_add_tcase(s, t);
  return run_suite(s);
}
