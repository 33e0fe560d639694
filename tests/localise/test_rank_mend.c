/* A collective that does something else than it should, or is missing, is found by the change that
 * would mend the outputs: each fault is planted, and said in words. */
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
  no_node_behind();
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

/* The output is right in the values carried on, and nothing else became wrong. */
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

/* Nothing of the rank left out is read any more, its operands included; or something is. */
/* The first sum could as well be a mean: the second one takes the same tensor from every rank. */
START_TEST(a_sum_that_is_summed_once_more_is_named) {
  for (uint64_t seed = 0; seed < 24; seed++) {
    const drawn q = draw(seed);
    uint32_t list[MAX_RANKS];
    start(q.n);
    left_side(seed, false, false, q.known);
    right_parts(q.known);
    const uint32_t sum = collective(&w.r, "dist::all_reduce", k.part, q.n, word("sum"));
    for (uint32_t r = 0; r < q.n; r++) list[r] = sum;
    right_ends(collective(&w.r, "dist::all_reduce", list, q.n, word("sum")));
    peers_of(k.part, false);
    mend();
    run_mend();
    says(text("\"%s\" takes the ranks' tensors more than once, as \"%s\"", id(k.collective),
              id(sum)));
    is_mended(k.collective, q.known);
    finish();
  }
}
END_TEST

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
    peers_of(seed / 2 % 2 ? k.part : k.other, false);
    peers_of(seed / 2 % 2 ? k.other : k.part, false);
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
    if (why == 1) peers_of(k.part, false), st.ranks.n_peers = 1; /* beyond the end there is none */
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

/* A rank's tensor is missing and was never computed, since an input of its own leads to it. */
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

/* ---- collectives of several results ---- */

enum { ROWS = 12 };

/* The reduction of the ranks' tensors, scattered: `n` pieces along the first dimension. Owns. */
static void scattered(const rule_term *call, rule_tensor *const *bind, rule_tensor **out) {
  const uint32_t n = call->child[0]->n;
  rule_tensor *all = reduced(call->child[0], call->child[1]->u.s, bind);
  for (uint32_t r = 0; r < n; r++) {
    out[r] = make(SHAPE(ROWS / n, 2));
    for (int64_t i = 0; i < out[r]->numel; i++)
      rule_tensor_set(out[r], i, rule_tensor_get(all, r * out[r]->numel + i));
  }
  rule_tensor_unref(all);
}

/* parameters: those of rule_oracle.call. */
static iso_code several(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                        rule_tensor **out, size_t cap, size_t *n_out, iso_error *e) {
  if (strcmp(call->u.s, "dist::reduce_scatter") != 0)
    return small_call(ctx, call, bind, float64, out, cap, n_out, e);
  scattered(call, bind, out);
  *n_out = call->child[0]->n;
  return ISO_OK;
}

static rule_tensor *given[MAX_RANKS]; /* what reduce_scatter gives the ranks */

/* The ranks' inputs, reduced and scattered, and a node for each piece; `right`: the pieces of a
 * sum. Owns. */
static uint32_t scatter(uint64_t seed, const char *how, uint32_t *piece, rule_tensor **right) {
  uint32_t x[MAX_RANKS], at;
  for (uint32_t r = 0; r < k.n; r++) noise(MAX_RANKS * seed + r, SHAPE(ROWS, 2), 0, 1);
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t r = 0; r < k.n; r++) x[r] = input(&w.r, w.tensor[r]);
  for (uint32_t r = 0; r < k.n; r++) bind[x[r]] = w.tensor[r];
  const rule_term *list[MAX_RANKS], *arg[3];
  for (uint32_t r = 0; r < k.n; r++) list[r] = v(x[r]);
  arg[0] = rule_list(&w.arena, list, k.n), arg[1] = word(how), arg[2] = num(0);
  synth_node *s = new_node(&w.r, &at);
  ck_assert(rule_call(&w.arena, w.schemas, "dist::reduce_scatter", arg, 3, &s->call, &err) ==
            ISO_OK);
  s->kind = SYNTH_OP, s->op = s->call->u.s, s->n_outputs = k.n;
  scattered(s->call, bind, given);
  arg[1] = word("sum");
  scattered(rule_op(&w.arena, s->op, arg, 3), bind, right);
  for (uint32_t r = 0; r < k.n; r++) {
    synth_node *g = new_node(&w.r, &piece[r]);
    const rule_term *take[2] = {v(at), num(r)};
    g->kind = SYNTH_OP, g->op = "getitem", g->call = rule_op(&w.arena, "getitem", take, 2);
    w.r.value[piece[r]][0] = keep(given[r]);
    g->shape = given[r]->shape;
  }
  oracle.call = several;
  return at;
}

/* Both sides' outputs are made of `whole`, which the left has as a leaf. */
static void ends_of(rule_tensor *is, uint32_t whole) {
  for (uint32_t r = 0; r < k.n; r++) input(&w.l, w.tensor[r]);
  k.whole = weight(&w.l, "whole", keep(is));
  k.collective = whole;
  output(&w.l, "y", ended(&w.l, k.whole, 1));
  output(&w.l, "z", 0);
  output(&w.r, "y", ended(&w.r, whole, 1));
  output(&w.r, "z", 0);
}

static void mend_scattered(uint32_t at) {
  mend();
  p.run[RIGHT].value[at] = (st_value_list){.v = given, .n = k.n};
}

/* All pieces of a wrong reduction are mended together, whichever is read. */
START_TEST(a_reduction_of_several_results_is_named) {
  static const char *const how[] = {"avg", "max", "min"};
  for (uint64_t seed = 0; seed < 18; seed++) {
    uint32_t piece[MAX_RANKS];
    rule_tensor *right[MAX_RANKS];
    start(2 + (uint32_t)(seed / 3 % 3));
    const uint32_t at = scatter(seed, how[seed % 3], piece, right), last = k.n - 1;
    ends_of(rule_tensor_ref(right[last]), piece[last]);
    for (uint32_t r = 0; r < k.n; r++) rule_tensor_unref(right[r]);
    peers_of(piece, false);
    mend_scattered(at);
    run_mend();
    says(text("on the right op is \"%s\", and would have to be \"sum\"", how[seed % 3]));
    ck_assert_int_eq(k.d.right, at);
    ck_assert(small_compare(NULL, w.l.value[w.l.out[0].node][0],
                            k.end.next.value[w.r.out[0].node].v[0], 1e-9)
                  .equal);
    finish();
  }
}
END_TEST

/* The value of a piece that nothing reads any more is taken from the call that makes it. */
START_TEST(a_piece_that_another_stands_for_is_named) {
  for (uint64_t seed = 0; seed < 18; seed++) {
    uint32_t piece[MAX_RANKS], list[MAX_RANKS];
    rule_tensor *right[MAX_RANKS];
    start(2 + (uint32_t)(seed / 3 % 3));
    const uint32_t gone = (uint32_t)(seed % k.n), twice = (gone + 1) % k.n;
    const uint32_t at = scatter(seed, "sum", piece, right);
    rule_tensor *total = make(right[0]->shape);
    for (uint32_t r = 0; r < k.n; r++)
      for (int64_t i = 0; i < total->numel; i++)
        rule_tensor_set(total, i, rule_tensor_get(total, i) + rule_tensor_get(right[r], i));
    memcpy(list, piece, sizeof list);
    list[gone] = piece[twice];
    ends_of(total, collective(&w.r, "dist::all_reduce", list, k.n, word("sum")));
    for (uint32_t r = 0; r < k.n; r++) rule_tensor_unref(right[r]);
    peers_of(k.other, false);
    mend_scattered(at);
    st.ranks.peers[0].n = 1; /* of another step, of which nothing is told here */
    forget(piece[gone]);
    run_mend();
    says(text("\"%s\" takes \"%s\" twice, and \"%s\" of rank %u not at all", id(k.collective),
              id(piece[twice]), id(piece[gone]), twice > gone ? twice : gone));
    is_mended(k.collective, true);
    finish();
  }
}
END_TEST

/* A rank that sends in place of another is named by its number. */
START_TEST(another_source_of_a_broadcast_is_named) {
  for (uint64_t seed = 0; seed < 24; seed++) {
    start(3 + (uint32_t)(seed % 2));
    const uint32_t from = 1, should = seed / 2 % 2 ? k.n - 1 : 0;
    rule_tensor *is[MAX_RANKS];
    for (uint32_t r = 0; r < k.n; r++) is[r] = noise(MAX_RANKS * seed + r, SHAPE(3, 2), 0, 1);
    right_parts(false);
    rule_tensor *sent = make(is[0]->shape); /* parts are -x */
    for (int64_t i = 0; i < sent->numel; i++)
      rule_tensor_set(sent, i, -rule_tensor_get(is[should], i));
    ends_of(sent, collective(&w.r, "dist::broadcast", k.part, k.n, num(from)));
    peers_of(k.other, false);
    mend();
    run_mend();
    says(text("on the right src is %u, and would have to be %u", from, should));
    is_mended(k.collective, true);
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
  tcase_add_test(t, a_sum_that_is_summed_once_more_is_named);
  tcase_add_test(t, a_rank_that_another_stands_for_is_named);
  tcase_add_test(t, a_tensor_of_another_step_is_named);
  tcase_add_test(t, another_order_of_the_ranks_is_named);
  tcase_add_test(t, a_collective_that_is_missing_is_named);
  tcase_add_test(t, another_fault_is_no_collective_s);
  tcase_add_test(t, a_reduction_of_several_results_is_named);
  tcase_add_test(t, a_piece_that_another_stands_for_is_named);
  tcase_add_test(t, another_source_of_a_broadcast_is_named);
  tcase_add_test(t, only_several_ranks_and_their_region_are_looked_at);
  tcase_add_test(t, a_rank_that_nothing_reads_is_named);
  suite_add_tcase(s, t);
  return run_suite(s);
}
