/* Questions of localisation about two graphs: whether a value occurs on the other side, how two
 * tensors differ, which layer is unlike its siblings. Each against a plain search, or with a truth
 * known by construction. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

/* ---- shapes ---- */

/* A shape of rank 0 to 3 over 1, 2, 3, by number. */
static rule_shape numbered(int code) {
  rule_shape s = {0};
  for (; code; code /= 4)
    if (code % 4) s.dim[s.rank++] = code % 4;
  return s;
}

static rule_shape without_ones(const rule_shape *s) {
  rule_shape t = {0};
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->dim[i] != 1) t.dim[t.rank++] = s->dim[i];
  return t;
}

START_TEST(shapes_are_compared_but_for_sizes_1) {
  for (int a = 0; a < 64; a++)
    for (int b = 0; b < 64; b++) {
      const rule_shape x = numbered(a), y = numbered(b), q = without_ones(&x), r = without_ones(&y);
      ck_assert_int_eq(lo_same_but_ones(&x, &y), rule_shape_eq(&q, &r));
    }
}
END_TEST

/* ---- values of the other side ---- */

typedef enum seen { AS_IT_IS, IN_ANOTHER_LAYOUT, WITH_A_SIZE_1, OTHERWISE, SEEN_KINDS } seen;

/* The value as the other side has it; OTHERWISE: with one number changed. */
static rule_tensor *as_seen(const rule_tensor *t, seen how, iso_rng *rng) {
  if (how == IN_ANOTHER_LAYOUT) return keep(transposed(t, 0, 1));
  if (how == WITH_A_SIZE_1) return keep(reshaped(t, SHAPE(t->shape.dim[0], 1, t->shape.dim[1])));
  rule_tensor *r = keep(reshaped(t, t->shape));
  const int64_t i = (int64_t)iso_rng_below(rng, (uint64_t)t->numel);
  if (how == OTHERWISE) rule_tensor_set(r, i, rule_tensor_get(r, i) + 0.5);
  return r;
}

/* Whether the features of side `side` that are measured are those of `numel` elements; 0: none. */
static bool measured_alone(int side, int64_t numel) {
  for (size_t k = 0; k < p.n_feature[side]; k++)
    if (p.by_size[side][k].measured != (p.by_size[side][k].numel == numel)) return false;
  return true;
}

START_TEST(a_value_occurs_where_the_other_side_has_it) {
  enum { VALUES = 9 };
  for (uint64_t seed = 0; seed < 300; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    seen how[VALUES];
    uint32_t order[VALUES];
    begin();
    for (uint32_t i = 0; i < VALUES; i++) {
      order[i] = i;
      const uint32_t j = (uint32_t)iso_rng_below(&rng, i + 1);
      order[i] = order[j], order[j] = i;
      rule_tensor *t = noise(64 * seed + i, SHAPE(2 + 2 * (int64_t)iso_rng_below(&rng, 2), 3), 0,
                             pow(10, (double)iso_rng_below(&rng, 7) - 3));
      leaf(&w.l, SYNTH_PARAMETER, "v", t, t);
    }
    for (uint32_t k = 0; k < VALUES; k++) {
      how[order[k]] = (seen)iso_rng_below(&rng, SEEN_KINDS);
      rule_tensor *t = as_seen(w.l.value[order[k]][0], how[order[k]], &rng);
      leaf(&w.r, SYNTH_PARAMETER, "v", t, t);
    }
    for (uint32_t i = 0; i < VALUES; i++) place(LEFT, i), place(RIGHT, i);
    for (int side = 0; side < 2; side++) ck_assert(lo_index(&p, side, &err) == ISO_OK);
    ck_assert(measured_alone(RIGHT, 0)); /* a size that nobody asks for costs nothing */
    (void)lo_occurs(&p, LEFT, 0);
    ck_assert(measured_alone(RIGHT, lo_value(&p, LEFT, 0)->numel));
    for (uint32_t k = 0; k < VALUES; k++) {
      ck_assert_msg(lo_occurs(&p, LEFT, order[k]) == (how[order[k]] != OTHERWISE),
                    "seed %d, value %u: %d", (int)seed, order[k], how[order[k]]);
      ck_assert_int_eq(lo_occurs(&p, RIGHT, k), how[order[k]] != OTHERWISE);
    }
    end();
  }
}
END_TEST

/* Tensors of as many elements agree where they are equal one by one; of other shapes, where they
 * have the same elements. Integers are no floats. */
START_TEST(values_agree_by_elements_or_by_what_no_order_changes) {
  for (uint64_t seed = 0; seed < 100; seed++) {
    begin();
    rule_tensor *x = noise(seed, SHAPE(3, 4), 0, 1), *same = keep(reshaped(x, SHAPE(3, 1, 4))),
                *flat = keep(reshaped(x, SHAPE(12))), *turned = keep(transposed(x, 0, 1)),
                *off = keep(reshaped(x, x->shape)), *moved = keep(reshaped(x, SHAPE(3, 4))),
                *part = noise(seed, SHAPE(3, 3), 0, 1), *whole = keep(make_as(RULE_I64, x->shape));
    rule_tensor_set(off, (int64_t)(seed % 12), rule_tensor_get(x, (int64_t)(seed % 12)) + 1e-3);
    rule_tensor_set(moved, 0, rule_tensor_get(x, 1));
    rule_tensor_set(moved, 1, rule_tensor_get(x, 0));
    for (int64_t i = 0; i < 12; i++) rule_tensor_set(whole, i, rule_tensor_get(x, i));
    ck_assert(lo_agree(&p, x, same) && lo_agree(&p, x, flat) && lo_agree(&p, x, turned));
    ck_assert(!lo_agree(&p, x, off) && !lo_agree(&p, flat, off) && !lo_agree(&p, turned, off));
    ck_assert(!lo_agree(&p, x, moved) && lo_agree(&p, flat, moved));
    ck_assert(!lo_agree(&p, x, part) && !lo_agree(&p, x, whole) && !lo_agree(&p, whole, x));
    end();
  }
}
END_TEST

/* ---- counterparts ---- */

/* Left x, w, x + w; right the same, of which these pairs are one class. */
static void two_sums(bool leaves, bool sums) {
  begin();
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(4, 3), 0, 1);
  for (int side = 0; side < 2; side++) {
    graph *g = graph_of(side);
    add(g, input(g, x), weight(g, "w", b));
  }
  place_all();
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < 2; i++) st.rec[st.map[side][i].i].atom = true;
  for (uint32_t i = 0; leaves && i < 2; i++) unite(i, i);
  if (sums) unite(2, 2);
}

START_TEST(a_node_is_matched_where_it_was_joined_and_is_as_it_was) {
  for (int joined = 0; joined < 2; joined++)
    for (int moved = 0; moved < 2; moved++)
      for (int side = 0; side < 2; side++) {
        two_sums(true, joined);
        moved_on[2] = moved;
        ck_assert_int_eq(lo_joined(&p, side, 2), side == LEFT ? joined && !moved : joined);
        ck_assert_int_eq(lo_matched(&p, side, 2), joined && !moved);
        end();
      }
}
END_TEST

/* Behind a reference that was carried on, values are compared as they are. */
START_TEST(values_are_compared_once_a_reference_was_carried_on) {
  for (int carried = 0; carried < 2; carried++)
    for (int other = 0; other < 2; other++) {
      two_sums(true, false);
      moved_on[st.graph[RIGHT]->n_nodes] = carried;
      if (other) rule_tensor_set(w.r.value[2][0], 0, 9);
      for (int side = 0; side < 2; side++) ck_assert(lo_index(&p, side, &err) == ISO_OK);
      for (int side = 0; side < 2; side++)
        ck_assert_int_eq(lo_matched(&p, side, 2), carried && !other);
      end();
    }
}
END_TEST

START_TEST(what_a_rank_should_hold_counts_beside_what_was_joined) {
  static const struct {
    uint8_t part;
    bool fine;
  } c[] = {{PART_RIGHT, true}, {PART_WRONG, false}, {0, false}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int gap = 0; gap < 2; gap++) {
      two_sums(true, false);
      st.ranks.part[RIGHT][2] = c[i].part;
      p.gap = gap;
      ck_assert_int_eq(lo_matched(&p, RIGHT, 2), c[i].fine && !gap);
      end();
    }
}
END_TEST

/* A tensor without elements differs in nothing. */
START_TEST(nothing_is_matched_with_nothing) {
  two_sums(false, false);
  rule_tensor *none = keep(make(SHAPE(0, 3)));
  p.run[LEFT].value[2] = (st_value_list){.v = &none, .n = 1};
  ck_assert(lo_matched(&p, LEFT, 2) && !lo_matched(&p, RIGHT, 2));
  p.run[LEFT].value[2].n = 0; /* nor is there a value of several results */
  ck_assert(!lo_value(&p, LEFT, 2) && lo_value(&p, RIGHT, 2) == w.r.value[2][0]);
  end();
}
END_TEST

START_TEST(a_leaf_is_explained_where_it_is_tied_to_the_other_side) {
  for (int joined = 0; joined < 2; joined++)
    for (int wrong = 0; wrong < 2; wrong++)
      for (int gap = 0; gap < 2; gap++) {
        two_sums(joined, false);
        int32_t replica[2][MAX_NODES];
        memset(replica, -1, sizeof replica);
        for (int side = 0; side < 2; side++) {
          st.leaves.replica[side] = replica[side];
          st.ranks.part[side][1] = wrong ? PART_WRONG : 0;
        }
        p.gap = gap;
        for (int side = 0; side < 2; side++) {
          ck_assert_int_eq(lo_leaf_explained(&p, side, 0), joined);
          ck_assert_int_eq(lo_leaf_explained(&p, side, 1), joined && !(wrong && !gap));
        }
        st.rec[st.map[LEFT][0].i].konst = true; /* written out in the graph */
        ck_assert(lo_leaf_explained(&p, LEFT, 0));
        end();
      }
}
END_TEST

/* ---- constants ---- */

/* `steps` terms of ours, one over the other, over node `i` of a side. Returns: the last. */
static eg_node over(int side, uint32_t i, int steps) {
  eg_node e = st.map[side][i];
  for (; steps > 0; steps--) {
    const rule_term *arg = v(0), *call = rule_op(&w.arena, "aten::neg", &arg, 1);
    ck_assert(st_add_term(&st, call, &e, &e, &err) == ISO_OK);
    st.rec[e.i].konst = true;
  }
  return e;
}

/* Terms of ours lead from the left constant down to the right one, or up to it, in so many steps;
 * or the last of them is a node of its own graph. */
START_TEST(constants_are_tied_by_terms_of_ours_that_are_few) {
  for (int steps = 0; steps < 9; steps++)
    for (int up = 0; up < 2; up++)
      for (int own = 0; own < 2; own++) {
        two_sums(false, false);
        const eg_node last = over(up ? LEFT : RIGHT, 1, steps);
        if (own && steps) st.rec[last.i].node[LEFT] = 2;
        ck_assert(eg_merge(st.g, last, st.map[up ? RIGHT : LEFT][1], (eg_why){1, 0}, &err) ==
                  ISO_OK);
        ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
        const bool tied = steps <= 6 && !(own && steps);
        ck_assert_msg(lo_constant_tied(&st, st.map[LEFT][1], RIGHT) == tied, "%d, %d, %d", steps,
                      up, own);
        ck_assert(lo_constant_tied(&st, st.map[LEFT][1], LEFT));
        ck_assert(!lo_constant_tied(&st, st.map[LEFT][0], RIGHT));
        end();
      }
}
END_TEST

/* A term of ours in its class or over it relates a constant; so does another one with its value. */
START_TEST(constants_are_related_by_a_term_of_ours) {
  for (int how = 0; how < 6; how++) {
    two_sums(false, false);
    const eg_node mine = over(RIGHT, how == 1 ? 1 : 0, 1), e = st.map[RIGHT][1];
    if (how == 2) ck_assert(eg_merge(st.g, mine, e, (eg_why){1, 0}, &err) == ISO_OK);
    if (how == 3) st.rec[mine.i].konst = false;
    if (how >= 4) { /* the values of two constants: alike, or apart in one number */
      rule_tensor_set(w.r.value[0][0], 3, how == 4 ? rule_tensor_get(w.r.value[1][0], 3) : 9);
      for (int64_t i = 0; i < 12; i++)
        if (i != 3) rule_tensor_set(w.r.value[0][0], i, rule_tensor_get(w.r.value[1][0], i));
    }
    for (uint32_t i = 0; i < 2; i++) {
      rec *r = &st.rec[st.map[RIGHT][i].i];
      r->konst = r->tensor = r->valued = true;
      r->n_out = 1;
      r->val = malloc(sizeof *r->val);
      r->val[0] = rule_tensor_ref(w.r.value[i][0]);
    }
    ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
    ck_assert_msg(lo_constant_related(&st, e) == (how == 1 || how == 2 || how == 4), "%d", how);
    end();
  }
}
END_TEST

/* Where no rule joined two nodes, a term of ours between them is as good. */
START_TEST(where_values_are_not_looked_at_a_term_of_ours_matches) {
  for (int steps = 0; steps < 3; steps++)
    for (int up = 0; up < 2; up++)
      for (int gap = 0; gap < 2; gap++) {
        two_sums(false, false);
        const eg_node last = over(up ? LEFT : RIGHT, 2, steps);
        if (steps)
          ck_assert(eg_merge(st.g, last, st.map[up ? RIGHT : LEFT][2], (eg_why){1, 0}, &err) ==
                    ISO_OK);
        ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
        p.gap = gap;
        for (int side = 0; side < 2; side++)
          ck_assert_msg(lo_matched(&p, side, 2) == (gap && steps == 1), "%d, %d, %d", steps, up,
                        gap);
        end();
      }
}
END_TEST

/* ---- groups ---- */

/* Nodes that were equal on every draw are one where they are equal here, too. */
START_TEST(a_group_joins_what_is_equal_here) {
  for (int equal = 0; equal < 2; equal++)
    for (int gap = 0; gap < 2; gap++)
      for (int moved = 0; moved < 2; moved++) {
        two_sums(false, false);
        eg_node member[] = {st.map[LEFT][0], st.map[LEFT][2], st.map[RIGHT][2]};
        group g = {.member = member, .n = 3};
        for (int k = 0; k < 3; k++) st.rec[member[k].i].group = 0;
        for (int side = 0; side < 2; side++)
          for (uint32_t i = 0; i < 2; i++)
            if (side == RIGHT || i == 1) st.rec[st.map[side][i].i].group = -1;
        st.groups.of = &g;
        if (!equal) rule_tensor_set(w.r.value[2][0], 0, 9);
        p.gap = gap;
        moved_on[2] = moved;
        ck_assert_int_eq(lo_joined(&p, LEFT, 2), equal && !gap && !moved);
        ck_assert_int_eq(lo_joined(&p, RIGHT, 2), equal && !gap);
        ck_assert(!lo_joined(&p, LEFT, 1) && !lo_joined(&p, RIGHT, 1));
        st.groups.of = NULL;
        end();
      }
}
END_TEST

/* ---- operators that make no value ---- */

START_TEST(operators_that_pass_values_on_are_known_by_name) {
  static const struct {
    const char *name;
    bool transparent, part;
  } c[] = {{"aten::alias", true, false},         {"aten::reshape", true, false},
           {"aten::transpose.int", true, false}, {"aten::_to_copy", true, false},
           {"aten::add.Tensor", false, false},   {"aten::relu", false, false},
           {"aten::slice.Tensor", false, true},  {"aten::select.int", false, true},
           {"aten::embedding", false, true},     {"aten::mm", false, false}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    ck_assert_msg(lo_transparent(c[i].name) == c[i].transparent, "%s", c[i].name);
    ck_assert_msg(lo_takes_part(c[i].name) == c[i].part, "%s", c[i].name);
  }
}
END_TEST

/* A cast passes numbers on only among floats. */
START_TEST(a_cast_to_integers_is_an_operator) {
  static const rule_dtype dtypes[] = {RULE_F64, RULE_F16, RULE_I64, RULE_I32, RULE_BOOL, RULE_C64};
  for (size_t i = 0; i < 6; i++)
    for (size_t j = 0; j < 6; j++) {
      begin();
      const uint32_t x = input(&w.l, noise(1, SHAPE(3), 0, 1)),
                     y = op(&w.l, "aten::alias", v(x), NULL, NULL);
      const rule_term *arg = v(x);
      w.l.node[x].dtype = dtypes[i];
      w.l.node[y].dtype = dtypes[j];
      w.l.node[y].op = "aten::_to_copy";
      w.l.node[y].call = rule_op(&w.arena, "aten::_to_copy", &arg, 1);
      ck_assert_msg(lo_passes(&w.l.g, y) == (i == j || (i < 2 && j < 2)), "%zu to %zu", i, j);
      end();
    }
}
END_TEST

START_TEST(a_result_that_is_an_operand_is_passed_on) {
  begin();
  const uint32_t x = input(&w.l, positive(1, SHAPE(3), 1)), y = relu(&w.l, x), z = neg(&w.l, x),
                 r = op(&w.l, "aten::alias", v(z), NULL, NULL);
  place_all();
  ck_assert(lo_passes_on(&p, LEFT, y) && !lo_passes_on(&p, LEFT, z) && lo_passes_on(&p, LEFT, r));
  end();
}
END_TEST

/* ---- outputs ---- */

/* Outputs of both sides are paired the other way round, and differ in this one by so much. */
START_TEST(outputs_that_differ_are_found_as_they_are_paired) {
  for (int apart_at = -1; apart_at < 2; apart_at++)
    for (int excused = 0; excused < 2; excused++)
      for (int gap = 0; gap < 2; gap++) {
        synth_pair pair[2] = {{.equivalent = true}, {.equivalent = true}};
        uint32_t other[2] = {1, 0};
        begin();
        for (int side = 0; side < 2; side++)
          for (uint64_t i = 0; i < 2; i++)
            output(graph_of(side), "y",
                   input(graph_of(side), noise(side ? 1 - i : i, SHAPE(4), 0, 1)));
        place_all();
        st.right_of = other;
        result.pair = pair;
        p.gap = gap;
        if (apart_at >= 0) {
          rule_tensor *x = w.l.value[apart_at][0];
          rule_tensor_set(x, 2, rule_tensor_get(x, 2) + 0.25);
          slack[apart_at] = excused ? 0.3 : 0.2;
          pair[1 - apart_at].equivalent = false; /* rules say another one than values */
        }
        const int found = apart_at < 0 || (excused && !gap) ? -1 : gap ? 1 - apart_at : apart_at;
        int64_t at[2] = {-1, -1};
        lo_apart_at(&p, at);
        for (int o = 0; o < 2; o++) ck_assert_int_eq(lo_output_apart(&p, (size_t)o), o == found);
        ck_assert_int_eq(lo_any_output_apart(&p), found >= 0);
        ck_assert_int_eq(at[LEFT], found);
        ck_assert_int_eq(at[RIGHT], found < 0 ? -1 : 1 - found);
        result.pair = NULL;
        st.right_of = NULL;
        end();
      }
}
END_TEST

/* A large number that is added and taken away again makes roundings of an output large; a change of
 * sign alone moves it by its last places. `wrong`: the other output differs besides. */
START_TEST(roundings_excuse_an_output_as_far_as_they_move_it) {
  for (int wrong = 0; wrong < 2; wrong++)
    for (int gap = 0; gap < 2; gap++) {
      uint32_t same[2] = {0, 1};
      begin();
      rule_tensor *x = positive(3, SHAPE(4), 1);
      for (int side = 0; side < 2; side++) {
        graph *g = graph_of(side);
        const uint32_t in = input(g, x), big = weight(g, "b", constant(SHAPE(1), 1e9)),
                       less = weight(g, "c", constant(SHAPE(1), -1e9));
        output(g, "y", add(g, add(g, in, big), less));
        output(g, "z", side && wrong ? add(g, in, in) : neg(g, neg(g, in)));
      }
      place_all();
      st.right_of = same;
      p.gap = gap;
      p.slack = NULL;
      ck_assert_msg(lo_find_slack(&p, &err) == ISO_OK, "%s", err.msg);
      const bool moved = wrong && !gap;
      ck_assert_msg(moved ? p.slack[0] > 1e-7 && p.slack[0] < 1e-2 : p.slack[0] == 0, "%g",
                    p.slack[0]);
      ck_assert_msg(moved ? p.slack[1] < 1e-10 : p.slack[1] == 0, "%g", p.slack[1]);
      free(p.slack);
      st.right_of = NULL;
      end();
    }
}
END_TEST

/* ---- pictures ---- */

static int64_t least_step(int64_t n, int64_t cells) {
  int64_t step = 1;
  while ((n + step - 1) / step > cells) step++;
  return step;
}

static double apart(double x, double y) {
  if (x == y || (isnan(x) && isnan(y))) return 0;
  return isfinite(x) && isfinite(y) ? fabs(x - y) : (double)INFINITY;
}

/* Each cell has the largest difference of its elements. */
static void check_picture(const synth_picture *q, const rule_tensor *x, const rule_tensor *y) {
  const int64_t columns = x->shape.dim[x->shape.rank - 1], rows = x->numel / columns;
  double worst = 0, largest = 0;
  int64_t n_differ = 0;
  ck_assert_int_eq(q->row_step, least_step(rows, SYNTH_PICTURE_ROWS));
  ck_assert_int_eq(q->column_step, least_step(columns, SYNTH_PICTURE_COLUMNS));
  for (int64_t i = 0; i < x->numel; i++) {
    const double a = fabs(rule_tensor_get(x, i));
    if (isfinite(a)) largest = fmax(largest, a);
    worst = fmax(worst, apart(rule_tensor_get(x, i), rule_tensor_get(y, i)));
  }
  for (int64_t i = 0; i < x->numel; i++)
    n_differ += apart(rule_tensor_get(x, i), rule_tensor_get(y, i)) > 1e-9 * largest;
  ck_assert_int_eq(q->n_differ, n_differ);
  ck_assert(apart(rule_tensor_get(x, q->index), rule_tensor_get(y, q->index)) == worst);
  for (int64_t r = 0; r < q->rows; r++)
    for (int64_t c = 0; c < q->columns; c++) {
      double most = 0;
      for (int64_t i = r * q->row_step; i < (r + 1) * q->row_step && i < rows; i++)
        for (int64_t j = c * q->column_step; j < (c + 1) * q->column_step && j < columns; j++)
          most = fmax(most, apart(rule_tensor_get(x, i * columns + j),
                                  rule_tensor_get(y, i * columns + j)));
      ck_assert(q->cell[r * q->columns + c] == (float)most);
    }
}

START_TEST(a_picture_has_the_largest_difference_of_each_cell) {
  static const double odd[] = {NAN, (double)INFINITY, -(double)INFINITY};
  size_t n_seen = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    begin();
    rule_tensor *x = noise(seed,
                           SHAPE(1 + (int64_t)iso_rng_below(&rng, 130),
                                 1 + (int64_t)iso_rng_below(&rng, 130)),
                           0, 1),
                *y = keep(reshaped(x, x->shape));
    for (uint64_t n = iso_rng_below(&rng, 6); n-- > 0;) {
      const int64_t i = (int64_t)iso_rng_below(&rng, (uint64_t)x->numel);
      rule_tensor_set(n % 2 ? x : y, i,
                      iso_rng_below(&rng, 3) ? iso_rng_normal(&rng) : odd[iso_rng_below(&rng, 3)]);
    }
    const synth_picture *q = NULL;
    ck_assert(lo_picture(&st, x, y, &q, &err) == ISO_OK);
    bool differs = false;
    for (int64_t i = 0; i < x->numel; i++)
      differs |= apart(rule_tensor_get(x, i), rule_tensor_get(y, i)) > 0;
    ck_assert_int_eq(q != NULL, differs);
    if (q) check_picture(q, x, y), n_seen++;
    end();
  }
  ck_assert_uint_gt(n_seen, 30);
}
END_TEST

/* ---- layers ---- */

enum { LAYERS = 3, STEPS = 5 };

static uint32_t shaped_as(uint32_t x, rule_shape s) {
  const rule_term *size[] = {num(s.dim[0]), s.rank > 1 ? num(s.dim[1]) : NULL};
  return op(&w.l, "aten::reshape", v(x), rule_list(&w.arena, size, s.rank), NULL);
}

/* One layer over its input; its weight is a leaf. Step `changed` is another operator. Returns: its
 * last node, in `at` its steps. */
static uint32_t add_layer(uint64_t seed, uint32_t input_node, int changed, uint32_t at[STEPS]) {
  iso_rng rng = iso_rng_new(seed, 3);
  rule_tensor *b = noise(seed + w.l.g.n_nodes, SHAPE(4, 3), 0, 1);
  const uint32_t own = weight(&w.l, "b", b);
  uint32_t last = input_node;
  for (int i = 0; i < STEPS; i++) {
    uint64_t kind = i == 0 ? 0 : iso_rng_below(&rng, 4);
    const uint64_t back = iso_rng_below(&rng, (uint64_t)i + 2);
    const uint32_t other = i == 0 || back > (uint64_t)i ? own
                           : back == 0                  ? input_node
                                                        : at[back - 1];
    if (i == changed) kind ^= 1;
    last = kind == 0   ? add(&w.l, last, other)
           : kind == 1 ? mul(&w.l, last, other)
           : kind == 2 ? relu(&w.l, last)
                       : neg(&w.l, last);
    at[i] = last;
  }
  return shaped_as(last, SHAPE(12));
}

/* A step in the middle of one of three equal layers is another one: it is found, and a sibling of
 * it; where the layers are alike, nothing is. */
START_TEST(the_layer_that_is_unlike_its_siblings_is_found) {
  size_t n_found = 0, n_said = 0, n = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    const int layer = (int)(seed % LAYERS), changed = (int)(seed / LAYERS % STEPS) - 1;
    begin();
    uint32_t at[LAYERS][STEPS], out[LAYERS], model = 0,
                                             last = input(&w.l, noise(seed, SHAPE(12), 0, 1));
    for (int i = 0; i < LAYERS; i++)
      last = out[i] =
          add_layer(seed, shaped_as(last, SHAPE(4, 3)), i == layer ? changed : -1, at[i]);
    for (uint32_t i = 0; i < w.l.g.n_nodes; i++) place(LEFT, i);
    bool stop[MAX_NODES];
    memset(stop, true, sizeof stop);
    for (int i = 0; i < STEPS; i++) stop[at[layer][i]] = false;
    stop[out[layer]] = false;
    const int64_t odd = lo_odd_one_out(&st, LEFT, out[layer], stop, &model);
    if (changed < 0) ck_assert_int_eq(odd, -1);
    if (odd >= 0) { /* the step of another layer in the same place */
      const int64_t place_in_layer = odd - at[layer][0];
      bool sibling = false;
      for (int i = 0; i < LAYERS; i++) sibling |= i != layer && model == at[i][0] + place_in_layer;
      ck_assert_msg(sibling, "seed %d: %u for %d", (int)seed, model, (int)odd);
    }
    n += changed >= 0;
    n_said += odd >= 0;
    n_found += changed >= 0 && odd == at[layer][changed];
    end();
  }
  ck_assert_msg(100 * n_found > 80 * n, "of %zu %zu are found, %zu said", n, n_found, n_said);
}
END_TEST

int main(void) {
  Suite *s = suite_create("alignment");
  TCase *t = tcase_create("alignment");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, shapes_are_compared_but_for_sizes_1);
  tcase_add_test(t, a_value_occurs_where_the_other_side_has_it);
  tcase_add_test(t, values_agree_by_elements_or_by_what_no_order_changes);
  tcase_add_test(t, a_node_is_matched_where_it_was_joined_and_is_as_it_was);
  tcase_add_test(t, values_are_compared_once_a_reference_was_carried_on);
  tcase_add_test(t, what_a_rank_should_hold_counts_beside_what_was_joined);
  tcase_add_test(t, nothing_is_matched_with_nothing);
  tcase_add_test(t, a_leaf_is_explained_where_it_is_tied_to_the_other_side);
  tcase_add_test(t, constants_are_tied_by_terms_of_ours_that_are_few);
  tcase_add_test(t, constants_are_related_by_a_term_of_ours);
  tcase_add_test(t, where_values_are_not_looked_at_a_term_of_ours_matches);
  tcase_add_test(t, a_group_joins_what_is_equal_here);
  tcase_add_test(t, operators_that_pass_values_on_are_known_by_name);
  tcase_add_test(t, a_cast_to_integers_is_an_operator);
  tcase_add_test(t, a_result_that_is_an_operand_is_passed_on);
  tcase_add_test(t, outputs_that_differ_are_found_as_they_are_paired);
  tcase_add_test(t, roundings_excuse_an_output_as_far_as_they_move_it);
  tcase_add_test(t, a_picture_has_the_largest_difference_of_each_cell);
  tcase_add_test(t, the_layer_that_is_unlike_its_siblings_is_found);
  suite_add_tcase(s, t);
  return run_suite(s);
}
