/* Which operator of a region it was: a planted fault is found by the change that mends it, and a
 * constant that the other side does not have by where it is first computed. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

enum { STEPS = 6, LEAVES = 3 };

typedef enum fault { ATTRIBUTE, OPERATOR, OPERAND, ADDED, LEFT_OUT, FAULTS } fault;

static bool touched[MAX_NODES + 1], settled[2][MAX_NODES + 1];
static uint32_t region[2][MAX_NODES];
static uint32_t right_of[1];

/* A row of sums and products with `a` and `b` in turn; at step `at` the fault, -1: none. Returns:
 * the node nearest to it. */
static uint32_t row(graph *g, uint64_t seed, fault how, int at) {
  iso_rng rng = iso_rng_new(seed, 9);
  uint32_t last = input(g, w.tensor[0]), found = 0;
  const uint32_t b[2] = {weight(g, "a", w.tensor[1]), weight(g, "b", w.tensor[2])};
  for (int i = 0; i < STEPS; i++) {
    const bool here = i == at;
    bool sum = iso_rng_below(&rng, 2) || (i == (int)(seed % STEPS) && how == ATTRIBUTE);
    uint32_t other = b[i % 2];
    if (here && how == LEFT_OUT) {
      found = last;
      continue;
    }
    if (here && how == OPERATOR) sum = !sum;
    if (here && how == OPERAND) other = b[1 - i % 2];
    if (here && how == ADDED) last = found = neg(g, last);
    last = !sum                       ? mul(g, last, other)
           : here && how == ATTRIBUTE ? op(g, "aten::add.Tensor", v(last), v(other), num(3))
                                      : add(g, last, other);
    if (here && how != ADDED) found = last;
  }
  output(g, "y", last);
  return found;
}

typedef struct parted {
  synth_divergence d;
  lo_ending end;
  uint32_t at;
} parted;

/* Both sides, of which `side` has the fault; the region is from there to the end. */
static parted part(uint64_t seed, fault how, int side) {
  const int step = (int)(seed % STEPS);
  begin();
  for (uint64_t i = 0; i < LEAVES; i++) noise(3 * seed + i, i ? SHAPE(3) : SHAPE(4, 3), 0, 1);
  parted q = {.d = {.left = -1, .right = -1}, .end = {.touched = touched}};
  row(graph_of(!side), seed, how, -1);
  q.at = row(graph_of(side), seed, how, step);
  place_all();
  no_node_behind();
  st.right_of = right_of;
  st.work_left = SIZE_MAX / 2;
  memset(touched, 0, sizeof touched);
  for (int k = 0; k < 2; k++) {
    const synth_graph *g = &graph_of(k)->g;
    size_t n = 0;
    p.settled[k] = settled[k];
    for (uint32_t i = LEAVES + (uint32_t)step; i < g->n_nodes; i++)
      region[k][n++] = i, p.seen[k][i] = 1;
    if (n == 0) region[k][n++] = (uint32_t)g->n_nodes - 1;
    *(k ? &q.d.right_region : &q.d.left_region) = region[k];
    *(k ? &q.d.n_right_region : &q.d.n_left_region) = n;
    q.end.exit[k] = g->output[0].node;
    ck_assert(lo_index(&p, k, &err) == ISO_OK);
  }
  return q;
}
static void over(parted *q) {
  st_run_free(&q->end.next);
  end();
}

static bool agree(const rule_tensor *a, const rule_tensor *b) {
  return small_compare(NULL, a, b, 1e-9).equal;
}
static const rule_tensor *outcome(int side) {
  return graph_of(side)->value[graph_of(side)->out[0].node][0];
}

static void explain(parted *q, lo_search what, bool left, bool right) {
  const bool sides[2] = {left, right};
  ck_assert_msg(lo_explain_by_repair(&p, what, sides, &q->d, &q->end, &err) == ISO_OK, "%s",
                err.msg);
}

static int64_t far(int64_t a, int64_t b) { return a < b ? b - a : a - b; }

/* Whether the mended right node has the value of the left node that is named beside it. */
static int partnered(const parted *q) {
  if (q->d.left < 0 || q->d.right < 0) return 0;
  ck_assert(agree(w.l.value[q->d.left][0], q->end.next.value[q->d.right].v[0]));
  return 1;
}

START_TEST(a_planted_fault_is_mended) {
  int n = 0, exact = 0, odd = 0, rights = 0, partners = 0;
  for (uint64_t seed = 0; seed < 36; seed++)
    for (int side = 0; side < 2; side++) {
      parted q = part(seed, (fault)_i, side);
      if (agree(outcome(LEFT), outcome(RIGHT))) {
        over(&q);
        continue;
      }
      n++;
      explain(&q, LO_ANY, true, true);
      ck_assert_msg(q.end.repaired && q.d.hint, "seed %d", (int)seed);
      if (!strncmp(q.d.hint, "unlike ", 7)) { /* steps of a row are alike, and one is not */
        ck_assert(!q.end.next.value);
        odd++;
        over(&q);
        continue;
      }
      ck_assert(!strncmp(q.d.hint, "on the right ", 13) || !strncmp(q.d.hint, "on the left ", 12));
      const bool of_right = !strncmp(q.d.hint, "on the right ", 13);
      /* The mended value on the right is carried on, and gives the left's output. */
      ck_assert(of_right == (q.end.next.value != NULL));
      if (of_right) {
        ck_assert(agree(outcome(LEFT), q.end.next.value[w.r.out[0].node].v[0]));
        ck_assert(touched[q.d.right >= 0 ? w.r.out[0].node : 0]);
        for (uint32_t i = 0; i < LEAVES; i++) ck_assert(!touched[i]);
        ck_assert_uint_gt(p.n_changes + (_i != ATTRIBUTE), 0);
        rights++;
        if (_i < ADDED) partners += partnered(&q);
      }
      const int64_t at = of_right ? q.d.right : q.d.left, want = LEAVES + (int64_t)(seed % STEPS);
      exact += far(at, want) <= 1 || far(side ? q.d.right : q.d.left, q.at) <= 1;
      over(&q);
    }
  ck_assert_int_gt(n, 30);
  ck_assert_msg(100 * (exact + odd) >= 85 * n && 10 * odd < n,
                "of %d %d are at the fault or next to it, %d in a step unlike others", n, exact,
                odd);
  ck_assert_msg(_i >= ADDED || 100 * partners >= 85 * rights, "%d of %d have a counterpart",
                partners, rights);
}
END_TEST

/* The region may begin after the fault: earlier nodes without a counterpart are tried as well, and
 * nodes that nobody reads are not run. */
START_TEST(a_fault_above_the_region_is_mended) {
  int exact = 0, of = 0;
  for (uint64_t seed = 0; seed < 36; seed++)
    for (int side = 0; side < 2; side++)
      for (size_t n = 1; n < 4; n++) {
        parted q = part(seed, OPERATOR, side);
        const uint32_t end_of[2] = {(uint32_t)w.l.g.n_nodes - 1, (uint32_t)w.r.g.n_nodes - 1};
        for (int k = 0; k < 2; k++) {
          memset(p.seen[k], 0, MAX_NODES);
          for (uint32_t i = 0; i < n; i++) region[k][i] = end_of[k] + 1 - (uint32_t)n + i;
          for (uint32_t i = 0; i < n; i++) p.seen[k][region[k][i]] = 1;
        }
        q.d.n_left_region = q.d.n_right_region = n;
        for (uint32_t i = 0; i < q.at; i++) unite(i, i);
        const uint32_t unread = neg(&w.r, side == RIGHT ? q.at : end_of[RIGHT]);
        st.map[RIGHT][unread].i = EG_NONE;
        explain(&q, LO_ANY, side == LEFT, side == RIGHT);
        ck_assert_msg(q.end.repaired && q.d.hint, "seed %d", (int)seed);
        of++;
        exact += (side ? q.d.right : q.d.left) == q.at;
        ck_assert(!touched[unread]);
        ck_assert(!touched[0] && !touched[1] && !touched[2]);
        over(&q);
      }
  ck_assert_msg(100 * exact >= 90 * of, "of %d %d are at the fault", of, exact);
}
END_TEST

/* ---- operators of a row that are unlike those of another ---- */

enum { ROW = 5 };

/* Two rows of one graph, of which the second has another operator at step `odd`; -1: none. Each sum
 * has an operand of its own, by which siblings at other steps are told apart. Returns: the last
 * node. `step`: the rows' nodes. */
static uint32_t rows(graph *g, int odd, const char *const scope[2], uint32_t step[2][ROW]) {
  const uint32_t x[2] = {input(g, w.tensor[0]), input(g, w.tensor[1])},
                 a = weight(g, "a", w.tensor[2]);
  uint32_t last = 0;
  for (int k = 0; k < 2; k++) {
    uint32_t beside = last = x[k];
    for (int i = 0; i < ROW; i++) {
      beside = mul(g, beside, a);
      last = k && i == odd ? relu(g, last) : i % 2 ? neg(g, last) : add(g, last, beside);
      step[k][i] = last;
      g->node[last].scope = scope[k];
    }
  }
  output(g, "y", last);
  return last;
}

/* Where no change can be tried it is the operator unlike its sibling's, within the region and in
 * another layer: names of modules that differ in numbers only, or in none. */
START_TEST(an_operator_unlike_its_sibling_is_named) {
  static const struct {
    const char *scope[2];
    bool named;
  } of[] = {{{NULL, NULL}, true},
            {{"layers.0.mlp", "layers.1.mlp"}, true},
            {{"layers.9.mlp.4", "layers.10.mlp.5"}, true},
            {{"layers.0.mlp", "layers.0.mlp"}, false},
            {{"layers.0.mlp", "layers.1.attn"}, false},
            {{"layers.0.mlp", "layers.1.mlp.act"}, false},
            {{"layers.0.mlp", "layers.x.mlp"}, false},
            {{"layers.0", NULL}, false}};
  for (size_t k = 0; k < sizeof of / sizeof *of; k++)
    for (int side = 0; side < 2; side++)
      for (int odd = 0; odd < ROW - 1; odd++)
        for (int from = 0; from < ROW; from++) {
          uint32_t step[2][ROW], last[2];
          begin();
          for (uint64_t i = 0; i < LEAVES; i++) noise(9 + i, i == 2 ? SHAPE(3) : SHAPE(4, 3), 1, 1);
          last[!side] = rows(graph_of(!side), -1, of[k].scope, step);
          last[side] = rows(graph_of(side), odd, of[k].scope, step);
          place_all();
          no_node_behind();
          st.right_of = right_of;
          parted q = {.d = {.left = -1, .right = -1},
                      .end = {.touched = touched, .exit = {last[LEFT], last[RIGHT]}}};
          size_t n = 0;
          for (uint32_t i = step[1][from] - 1; i <= step[1][ROW - 1]; i++) region[side][n++] = i;
          *(side ? &q.d.right_region : &q.d.left_region) = region[side];
          *(side ? &q.d.n_right_region : &q.d.n_left_region) = n;
          p.settled[LEFT] = settled[LEFT], p.settled[RIGHT] = settled[RIGHT];
          ck_assert(lo_index(&p, LEFT, &err) == ISO_OK && lo_index(&p, RIGHT, &err) == ISO_OK);
          explain(&q, LO_ANY, side == LEFT, side == RIGHT);
          const bool named = of[k].named && from <= odd;
          ck_assert_int_eq(q.end.repaired, named);
          ck_assert_int_eq(side ? q.d.right : q.d.left, named ? (int64_t)step[1][odd] : -1);
          ck_assert_int_eq(side ? q.d.left : q.d.right, -1);
          const char *in = of[k].scope[0] ? of[k].scope[0] : "the same graph";
          if (named && from == 0)
            ck_assert_str_eq(q.d.hint,
                             iso_arena_printf(&w.arena, "unlike \"%s\" (%s), its counterpart in %s",
                                              graph_of(side)->node[step[0][odd]].id,
                                              graph_of(side)->node[step[0][odd]].op, in));
          over(&q);
        }
}
END_TEST

/* ---- what is right ---- */

/* One side reads x + a, the other x * a in its place, which a sum outside of the region may read
 * rightly: then that is not the fault. */
START_TEST(what_others_read_rightly_is_not_changed) {
  for (int side = 0; side < 2; side++)
    for (int read = 0; read < 4; read++) { /* by nobody, rightly, towards the end, wrongly */
      begin();
      rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *a = noise(2, SHAPE(3), 0, 1);
      uint32_t at[2], end_of[2], sum[2];
      for (int k = 0; k < 2; k++) {
        graph *g = graph_of(k);
        const uint32_t lx = input(g, x), la = weight(g, "a", a),
                       none = weight(g, "0", constant(SHAPE(3), 0));
        at[k] = mul(g, lx, la);
        sum[k] = read ? neg(g, at[k]) : lx;
        const uint32_t top = k == side ? at[k] : add(g, lx, la);
        end_of[k] = relu(g, read == 2 ? add(g, top, mul(g, sum[k], none)) : top);
        output(g, "y", end_of[k]);
      }
      place_all();
      no_node_behind();
      st.right_of = right_of;
      st.work_left = SIZE_MAX / 2;
      parted q = {.d = {.left = -1, .right = -1},
                  .end = {.touched = touched, .exit = {end_of[LEFT], end_of[RIGHT]}}};
      for (int k = 0; k < 2; k++) {
        p.settled[k] = settled[k];
        region[k][0] = end_of[k];
        *(k ? &q.d.right_region : &q.d.left_region) = region[k];
        *(k ? &q.d.n_right_region : &q.d.n_left_region) = 1;
        p.seen[k][end_of[k]] = 1;
        ck_assert(lo_index(&p, k, &err) == ISO_OK);
      }
      for (uint32_t i = 0; i <= at[LEFT]; i++) unite(i, i);
      if (read == 1 || read == 2) unite(sum[LEFT], sum[RIGHT]);
      explain(&q, LO_ANY, side == LEFT, side == RIGHT);
      const int64_t named = side ? q.d.right : q.d.left;
      ck_assert_msg((named == at[side]) == (read != 1), "side %d read %d: %d is named (%s)", side,
                    read, (int)named, q.d.hint ? q.d.hint : "");
      over(&q);
    }
}
END_TEST

/* Values that are carried on already stay where more of them have a counterpart. */
START_TEST(the_nearer_values_are_carried_on) {
  bool none[MAX_NODES + 1] = {false};
  rule_tensor *as_is[MAX_NODES + 1] = {NULL};
  for (uint64_t seed = 0; seed < 12; seed++)
    for (int better = 0; better < 2; better++) {
      parted q = part(seed, ATTRIBUTE, RIGHT);
      const st_carry with = {.from = &p.run[RIGHT], .again = none, .value = as_is};
      const st_run_how how = {.keep_all = true, .with = &with};
      st_run *next = &q.end.next;
      const uint32_t last = w.r.out[0].node;
      for (uint32_t i = LEAVES; i <= last; i++) as_is[i] = better ? w.l.value[i][0] : NULL;
      ck_assert(st_run_graph(&st, RIGHT, NULL, &how, next, &err) == ISO_OK);
      explain(&q, LO_ANY, false, true);
      ck_assert(q.end.repaired);
      if (strncmp(q.d.hint, "unlike ", 7))
        ck_assert_msg(agree(outcome(LEFT), next->value[last].v[0]), "seed %d better %d: %s %d %d",
                      (int)seed, better, q.d.hint, (int)q.d.right, (int)q.at);
      over(&q);
    }
}
END_TEST

/* Of one side alone its own operators are changed, and d tells of that side. */
START_TEST(only_the_sides_that_are_asked_for_are_changed) {
  int exact = 0;
  for (uint64_t seed = 0; seed < 24; seed++)
    for (int side = 0; side < 2; side++) {
      parted q = part(seed, ATTRIBUTE, side);
      explain(&q, LO_ANY, side == LEFT, side == RIGHT);
      ck_assert(q.end.repaired && q.d.hint);
      ck_assert(!strncmp(q.d.hint, side ? "on the right" : "on the left", side ? 12 : 11));
      exact += (side ? q.d.right : q.d.left) == q.at && strstr(q.d.hint, "alpha is 3");
      over(&q);
      q = part(seed, ATTRIBUTE, side);
      explain(&q, LO_ANY, false, false);
      ck_assert(!q.end.repaired && !q.d.hint && q.d.left == -1 && q.d.right == -1);
      over(&q);
    }
  ck_assert_int_ge(exact, 40);
}
END_TEST

/* A narrow search finds an operator too many, and no other fault. */
START_TEST(an_operator_too_many_is_all_that_a_narrow_search_finds) {
  for (uint64_t seed = 0; seed < 24; seed++)
    for (int side = 0; side < 2; side++)
      for (fault how = ATTRIBUTE; how < FAULTS; how++) {
        parted q = part(seed, how, side);
        if (agree(outcome(LEFT), outcome(RIGHT))) {
          over(&q);
          continue;
        }
        explain(&q, LO_WITHOUT_ONE, side == LEFT, side == RIGHT);
        if (how == ADDED) {
          ck_assert(q.end.repaired);
          ck_assert_int_eq(side ? q.d.right : q.d.left, q.at);
        } else ck_assert_msg(!q.end.repaired || how != LEFT_OUT, "%s", q.d.hint);
        over(&q);
        q = part(seed, how, side);
        explain(&q, LO_INTEGERS, true, true); /* there are no integers */
        ck_assert(!q.end.repaired);
        over(&q);
      }
}
END_TEST

/* Regions that end nowhere, or in tensors that agree already, explain nothing. */
START_TEST(without_an_end_nothing_is_tried) {
  for (int side = 0; side < 2; side++) {
    parted q = part(3, OPERATOR, RIGHT);
    rule_tensor *none = NULL;
    p.run[side].value[q.end.exit[side]].n = 0;
    explain(&q, LO_ANY, side == RIGHT, side == LEFT);
    ck_assert(!q.end.repaired && !q.d.hint && !none);
    over(&q);
  }
}
END_TEST

/* ---- leaves ---- */

/* The right has its own values for a leaf, which nothing else reads, or something does, or
 * something that no output depends on; or it is no parameter. */
START_TEST(a_leaf_with_other_values_is_named_where_nothing_else_reads_it) {
  for (int elsewhere = 0; elsewhere < 4; elsewhere++) {
    begin();
    rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *good = noise(2, SHAPE(3), 0, 1),
                *bad = noise(3, SHAPE(3), 0, 1);
    const uint32_t lx = input(&w.l, x), lw = weight(&w.l, "w", good);
    output(&w.l, "y", mul(&w.l, lx, lw));
    const uint32_t rx = input(&w.r, x), rw = weight(&w.r, "v", bad), at = mul(&w.r, rx, rw);
    output(&w.r, "y", at);
    const uint32_t reader = elsewhere ? neg(&w.r, rw) : rw;
    if (elsewhere) neg(&w.l, lw);
    if (elsewhere == 3) w.r.node[rw].kind = SYNTH_INPUT;
    place_all();
    no_node_behind();
    if (elsewhere > 1) st.map[RIGHT][reader].i = EG_NONE;
    st.right_of = right_of;
    st.work_left = SIZE_MAX / 2;
    region[LEFT][0] = region[RIGHT][0] = 2;
    for (int k = 0; k < 2; k++) {
      p.settled[k] = settled[k];
      p.seen[k][2] = 1;
      ck_assert(lo_index(&p, k, &err) == ISO_OK);
    }
    unite(lx, rx);
    parted q = {.d = {.left = -1,
                      .right = -1,
                      .left_region = region[LEFT],
                      .right_region = region[RIGHT],
                      .n_left_region = 1,
                      .n_right_region = 1},
                .end = {.touched = touched, .exit = {2, 2}}};
    explain(&q, LO_ANY, true, true);
    ck_assert(q.end.repaired && q.d.hint);
    if (elsewhere % 2 == 0) {
      ck_assert_str_eq(q.d.hint, "v does not have the values of w; first used by \"r2\"");
      ck_assert_int_eq(q.d.left, lw);
      ck_assert_int_eq(q.d.right, rw);
    } else {
      ck_assert(!strstr(q.d.hint, "does not have the values"));
      ck_assert_int_eq(q.d.right, at);
    }
    over(&q);
  }
}
END_TEST

/* ---- constants ---- */

enum { CHAIN = 5 };

/* On `side` a row of constants `table[0]` to `table[n - 1]`, each computed from the one before it,
 * the first `shared` joined with the other side's; then `reader` multiplies by the last one. */
static uint32_t constants(int side, size_t n, size_t shared, bool mask, uint32_t *table) {
  graph *g = graph_of(side), *h = graph_of(!side);
  const uint32_t x = input(g, noise(1, SHAPE(4, 3), 0, 1));
  input(h, w.tensor[0]);
  const rule_term *size[] = {num(3)};
  for (size_t i = 0; i < n; i++) {
    const rule_term *value = rule_float(&w.arena, mask ? -1e32 : 2);
    table[i] = i ? add(g, table[i - 1], table[i - 1])
                 : op(g, "aten::full", rule_list(&w.arena, size, 1), value,
                      rule_dtype_term(&w.arena, RULE_F64));
    neg(h, 0);
  }
  const uint32_t reader = mul(g, x, table[n - 1]);
  place_all();
  no_node_behind();
  for (size_t i = 0; i < n; i++) st.rec[st.map[side][table[i]].i].konst = true;
  for (size_t i = 0; i < shared; i++)
    unite(side ? 1 + (uint32_t)i : table[i], side ? table[i] : 1 + (uint32_t)i);
  return reader;
}

static int64_t odd(int side, uint32_t reader) {
  iso_code c = ISO_OK;
  const int64_t at = lo_odd_constant(&p, side, &reader, 1, &c, &err);
  ck_assert(c == ISO_OK);
  return at;
}

START_TEST(the_first_constant_that_the_other_side_does_not_have_is_found) {
  for (int side = 0; side < 2; side++)
    for (size_t n = 1; n <= CHAIN; n++)
      for (size_t shared = 0; shared <= n; shared++)
        for (int mask = 0; mask < 2; mask++) {
          uint32_t table[CHAIN];
          begin();
          const uint32_t reader = constants(side, n, shared, mask, table);
          const int64_t want = shared < n ? (int64_t)table[shared] : -1;
          ck_assert_int_eq(odd(side, reader), want);
          ck_assert_int_eq(odd(side, table[n - 1]), want); /* it may be of the region itself */
          ck_assert_int_eq(odd(side, 0), -1);              /* a leaf is no operator */
          end();
        }
}
END_TEST

/* Numbers, truth values and single elements are no tables; nor are nodes that are not constant. */
START_TEST(what_is_no_table_is_not_odd) {
  for (int why = 0; why < 5; why++) {
    uint32_t table[CHAIN];
    begin();
    const uint32_t reader = constants(RIGHT, 3, 0, false, table);
    rule_tensor *one = constant(SHAPE(1), 2);
    for (int i = 0; i < 3; i++) {
      synth_node *n = &w.r.node[table[i]];
      if (why == 1) n->dtype = RULE_I64;
      if (why == 2) n->n_outputs = 2;
      if (why == 3) st.rec[st.map[RIGHT][table[i]].i].konst = false;
      if (why == 4) p.run[RIGHT].value[table[i]] = (st_value_list){.v = &one, .n = 1};
    }
    ck_assert_int_eq(odd(RIGHT, reader), why ? -1 : (int64_t)table[0]);
    end();
  }
}
END_TEST

/* Of a mask and another table the other one is meant; of two tables the one that is read first; and
 * a part of a table stands for the table. */
START_TEST(of_several_constants_the_one_that_is_meant_is_found) {
  for (int first = 0; first < 2; first++) {
    uint32_t table[2], node[2];
    begin();
    const rule_term *size[] = {num(6)};
    const uint32_t x = input(&w.r, noise(1, SHAPE(4, 3), 0, 1));
    input(&w.l, w.tensor[0]);
    for (int k = 0; k < 2; k++) {
      table[k] = op(&w.r, "aten::full", rule_list(&w.arena, size, 1),
                    rule_float(&w.arena, k ? -1e32 : 2), rule_dtype_term(&w.arena, RULE_F64));
      const uint32_t flat = op(&w.r, "aten::reshape", v(table[k]),
                               rule_list(&w.arena, (const rule_term *[]){num(2), num(3)}, 2), NULL);
      node[k] = op(&w.r, "aten::reshape", v(flat),
                   rule_list(&w.arena, (const rule_term *[]){num(2), num(1), num(3)}, 3), NULL);
    }
    const uint32_t reader[2] = {neg(&w.r, add(&w.r, node[first], x)) - 1,
                                neg(&w.r, add(&w.r, node[!first], x)) - 1};
    place_all();
    no_node_behind();
    for (int k = 0; k < 2; k++)
      for (uint32_t i = table[k]; i <= node[k]; i++) st.rec[st.map[RIGHT][i].i].konst = true;
    iso_code c = ISO_OK;
    ck_assert_int_eq(lo_odd_constant(&p, RIGHT, reader, 2, &c, &err), table[0]);
    ck_assert_int_eq(lo_odd_constant(&p, RIGHT, &reader[first ? 0 : 1], 1, &c, &err), table[1]);
    ck_assert_int_eq(lo_odd_constant(&p, RIGHT, reader, 0, &c, &err), -1);
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("suspects");
  TCase *t = tcase_create("suspects");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_planted_fault_is_mended, 0, FAULTS);
  tcase_add_test(t, a_fault_above_the_region_is_mended);
  tcase_add_test(t, an_operator_unlike_its_sibling_is_named);
  tcase_add_test(t, what_others_read_rightly_is_not_changed);
  tcase_add_test(t, the_nearer_values_are_carried_on);
  tcase_add_test(t, only_the_sides_that_are_asked_for_are_changed);
  tcase_add_test(t, an_operator_too_many_is_all_that_a_narrow_search_finds);
  tcase_add_test(t, without_an_end_nothing_is_tried);
  tcase_add_test(t, a_leaf_with_other_values_is_named_where_nothing_else_reads_it);
  tcase_add_test(t, the_first_constant_that_the_other_side_does_not_have_is_found);
  tcase_add_test(t, what_is_no_table_is_not_odd);
  tcase_add_test(t, of_several_constants_the_one_that_is_meant_is_found);
  suite_add_tcase(s, t);
  return run_suite(s);
}
