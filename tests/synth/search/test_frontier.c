/* Cones, cuts, patterns and matches in the joint e-graph, against naive searches over the same
 * classes: random terms with equal forms joined, so that classes have several members and cycles.
 */
#include "synth/search/expand.h"
#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 300, LEAVES = 3, GROWN = 7 };
static const double NO_PATTERN = 1e9;

/* ---- a joint e-graph of random terms ---- */

static void join(eg_node a, eg_node b) {
  ck_assert(eg_merge(st.g, a, b, (eg_why){WHY_VALUE, 0}, &err) == ISO_OK);
}

/* Equal forms are joined: sums and products the other way about, and terms with two signs. */
static void grow(uint64_t seed) {
  static const char *const ops[] = {"aten::add.Tensor", "aten::mul.Tensor", "aten::neg",
                                    "aten::relu"};
  iso_rng rng = iso_rng_new(seed, 11);
  for (int i = 0; i < LEAVES; i++) add_leaf(noise(seed * LEAVES + (uint64_t)i, SHAPE(2, 2), 0, 1));
  for (int i = 0; i < GROWN; i++) {
    const size_t k = iso_rng_below(&rng, 4), a = iso_rng_below(&rng, n_made),
                 b = iso_rng_below(&rng, n_made);
    const bool two = k < 2;
    const eg_node e = add_op(ops[k], a, b, two);
    const size_t at = n_made - 1;
    if (two && iso_rng_below(&rng, 2)) join(e, add_op(ops[k], b, a, true));
    if (iso_rng_below(&rng, 4) == 0) {
      add_op("aten::neg", at, 0, false);
      join(e, add_op("aten::neg", n_made - 1, 0, false));
    }
  }
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
}

static void begin(uint64_t seed) {
  begin_terms();
  grow(seed);
}

static uint32_t class_of(eg_node e) { return eg_class_of(st.g, e).i; }

static size_t members(uint32_t c, const eg_node **m) {
  return eg_class_nodes(st.g, (eg_class){c}, m);
}

/* ---- cones ---- */

static cone new_cone(void) {
  cone k;
  ck_assert(fr_cone_new(&k, eg_count_added(st.g)));
  return k;
}

/* Depth first below `e`, not through `stop`, nor below classes that are cut. */
static void below(eg_node e, uint32_t stop, const uint8_t *cut, bool *in) {
  for (size_t a = 0; a < eg_node_arity(st.g, e); a++) {
    const uint32_t c = eg_node_child(st.g, e, a).i;
    const eg_node *m;
    if (in[c] || fr_literal_class(&st, c)) continue;
    in[c] = true;
    for (size_t i = 0, n = members(c, &m); i < n && c != stop && !(cut && cut[c]); i++)
      below(m[i], stop, cut, in);
  }
}

START_TEST(a_cone_has_what_its_root_is_computed_from) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    const eg_node root = node[seed % n_made];
    cone k = new_cone();
    bool in[256] = {false};
    ck_assert(fr_explore(&st, &k, root, root, 1, &err) == ISO_OK);
    in[class_of(root)] = true;
    below(root, class_of(root), NULL, in);
    size_t n = 0;
    for (uint32_t c = 0; c < eg_count_added(st.g); c++) {
      ck_assert_msg(in[c] == (k.in[c] == 1), "seed %d: class %u", (int)seed, c);
      n += in[c];
    }
    ck_assert_uint_eq(k.n, n);
    ck_assert_uint_eq(k.cls[0], class_of(root));
    fr_cone_free(&k);
    end_state();
  }
}
END_TEST

/* ---- costs ---- */

/* The size of an e-node's pattern from those of the classes below it. */
static double naive_node(const cone *k, eg_node e, const double *cost) {
  if (st.rec[e.i].leaf) return 1;
  double sum = 1;
  for (size_t a = 0; a < eg_node_arity(st.g, e); a++) {
    const uint32_t c = eg_node_child(st.g, e, a).i;
    sum += k->in[c] ? cost[c] : fr_literal_class(&st, c) ? 0 : NO_PATTERN;
  }
  return sum < NO_PATTERN ? sum : NO_PATTERN;
}

/* Round by round: the patterns of at most so many levels. */
static void naive_costs(const cone *k, double *cost) {
  double next[256];
  for (size_t c = 0; c < 256; c++) cost[c] = NO_PATTERN;
  for (size_t round = 0; round <= k->n; round++) {
    memcpy(next, cost, sizeof next);
    for (size_t i = 0; i < k->n; i++) {
      const uint32_t c = k->cls[i];
      const eg_node *m;
      const size_t n = members(c, &m);
      if (k->cut[c]) next[c] = 1;
      for (size_t j = 0; j < n && !k->cut[c] && k->opened[c] != SHUT; j++)
        next[c] = fmin(next[c], naive_node(k, m[j], cost));
    }
    memcpy(cost, next, sizeof next);
  }
}

static void cut_some(cone *k, iso_rng *rng) {
  for (size_t i = 0; i < k->n; i++) {
    k->cut[k->cls[i]] = iso_rng_below(rng, 3) == 0;
    if (!k->cut[k->cls[i]] && iso_rng_below(rng, 12) == 0) k->opened[k->cls[i]] = SHUT;
  }
}

START_TEST(costs_are_those_of_the_smallest_patterns) {
  size_t finite = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    iso_rng rng = iso_rng_new(seed, 5);
    cone k = new_cone();
    double want[256];
    ck_assert_uint_lt(eg_count_added(st.g), 256);
    ck_assert(fr_explore(&st, &k, node[n_made - 1], node[n_made - 1], 1, &err) == ISO_OK);
    ck_assert(fr_cone_ways(&st, &k, &err) == ISO_OK);
    cut_some(&k, &rng);
    fr_costs(&st, &k);
    naive_costs(&k, want);
    for (size_t i = 0; i < k.n; i++) {
      const uint32_t c = k.cls[i];
      ck_assert_msg(fabs(k.cost[c] - want[c]) < 1e-6, "seed %d: class %u costs %g, not %g",
                    (int)seed, c, k.cost[c], want[c]);
      ck_assert((k.best[c] == EG_NONE) == (k.cut[c] || want[c] >= NO_PATTERN));
      finite += want[c] < NO_PATTERN;
    }
    fr_cone_free(&k);
    end_state();
  }
  ck_assert_uint_gt(finite, 1000);
}
END_TEST

/* ---- cuts ---- */

static void both_cones(cone *k, eg_node u, eg_node t) {
  ck_assert(fr_explore(&st, k, u, t, 1, &err) == ISO_OK);
  ck_assert(fr_explore(&st, k, t, u, 2, &err) == ISO_OK);
  ck_assert(fr_cone_ways(&st, k, &err) == ISO_OK);
}

/* Every class that is still cut is met by both roots before another cut; where that was so from
 * the beginning nothing changes. */
START_TEST(narrow_cuts_are_met_by_both_sides) {
  size_t dropped = 0, kept = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    const eg_node u = node[n_made - 1], t = node[n_made / 2];
    cone k = new_cone();
    uint8_t before[256], after[256];
    both_cones(&k, u, t);
    for (size_t i = 0; i < k.n; i++) k.cut[k.cls[i]] = k.in[k.cls[i]] == 3;
    memcpy(before, k.cut, eg_count_added(st.g));
    fr_narrow(&st, &k, u, t);
    memcpy(after, k.cut, eg_count_added(st.g));
    bool left[256] = {false}, right[256] = {false};
    below(u, EG_NONE, after, left);
    below(t, EG_NONE, after, right);
    for (uint32_t c = 0; c < eg_count_added(st.g); c++) {
      ck_assert_msg(!after[c] || (left[c] && right[c]), "seed %d: class %u", (int)seed, c);
      ck_assert(!after[c] || before[c]);
      dropped += before[c] && !after[c];
      kept += after[c];
    }
    fr_narrow(&st, &k, u, t);
    ck_assert_int_eq(memcmp(after, k.cut, eg_count_added(st.g)), 0);
    fr_cone_free(&k);
    end_state();
  }
  ck_assert_uint_gt(dropped, 100);
  ck_assert_uint_gt(kept, 100);
}
END_TEST

/* ---- patterns ---- */

static double size_of(const rule_term *t) {
  if (t->kind == RULE_VAR) return 1;
  double sum = t->kind == RULE_OP ? 1 : 0;
  for (uint32_t i = 0; i < t->n; i++) sum += size_of(t->child[i]);
  return sum;
}

static bool gives(const rule_term *t, rule_tensor *const *bind, eg_node root) {
  rule_tensor *y = run_term(t, bind);
  const bool equal = y && small_compare(NULL, y, st_val(&st, root, 0), 1e-9).equal;
  rule_tensor_unref(y);
  return equal;
}

/* Both patterns, run on the values of the classes that they are cut at, give the roots' values;
 * they are as large as their cost says, and their variables are cut classes and leaves, each
 * once. */
START_TEST(patterns_give_their_roots) {
  size_t n_built = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    iso_rng rng = iso_rng_new(seed, 6);
    const eg_node u = node[n_made - 1], t = node[iso_rng_below(&rng, n_made)];
    cone k = new_cone();
    builder b = {.s = &st, .k = &k, .memo = calloc(eg_count_added(st.g), sizeof *b.memo)};
    const rule_term *l, *r;
    ck_assert(b.memo != NULL);
    both_cones(&k, u, t);
    cut_some(&k, &rng);
    k.cut[class_of(u)] = k.cut[class_of(t)] = 0;
    k.opened[class_of(u)] = k.opened[class_of(t)] = 0;
    fr_costs(&st, &k);
    const double left = fr_root_cost(&st, &k, u), right = fr_root_cost(&st, &k, t);
    const bool built = fr_build(&b, u, t, &l, &r);
    ck_assert_msg(built == (left < NO_PATTERN && right < NO_PATTERN), "seed %d", (int)seed);
    if (built) {
      rule_tensor *bind[RULE_MAX_VARS];
      for (size_t i = 0; i < b.n_vars; i++) {
        const eg_node rep = st_rep(&st, b.var[i]);
        bind[i] = st_val(&st, rep, 0);
        bool is_leaf = false;
        const eg_node *m;
        for (size_t j = 0, n = members(b.var[i].i, &m); j < n; j++) is_leaf |= st.rec[m[j].i].leaf;
        ck_assert(k.cut[b.var[i].i] || is_leaf);
        for (size_t j = 0; j < i; j++) ck_assert(b.var[j].i != b.var[i].i);
      }
      ck_assert_msg(gives(l, bind, u) && gives(r, bind, t), "seed %d", (int)seed);
      ck_assert(fabs(size_of(l) - left) < 1e-6 && fabs(size_of(r) - right) < 1e-6);
      n_built++;
    }
    free(b.memo);
    free(b.prem);
    fr_cone_free(&k);
    end_state();
  }
  ck_assert_uint_gt(n_built, 100);
}
END_TEST

/* Whether both patterns have each variable that is cut. */
static bool same_variables(const builder *b) {
  for (size_t i = 0; i < b->n_vars; i++)
    if (b->used[i] != 3 && b->k->cut[b->var[i].i]) return false;
  return true;
}

/* Cuts of one pattern alone are removed until there are none; where there were none nothing
 * changes, and what is left was cut before. */
START_TEST(narrow_cuts_stand_in_both_patterns) {
  size_t narrowed = 0, kept = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    const eg_node u = node[n_made - 1], t = node[n_made / 2];
    cone k = new_cone();
    builder b = {.s = &st, .k = &k, .memo = calloc(eg_count_added(st.g), sizeof *b.memo)};
    const rule_term *l, *r;
    uint8_t before[256];
    ck_assert(b.memo != NULL);
    both_cones(&k, u, t);
    for (size_t i = 0; i < k.n; i++) k.cut[k.cls[i]] = k.in[k.cls[i]] == 3;
    k.cut[class_of(u)] = k.cut[class_of(t)] = 0;
    memcpy(before, k.cut, eg_count_added(st.g));
    fr_costs(&st, &k);
    const bool was = fr_build(&b, u, t, &l, &r), same = was && same_variables(&b);
    if (fr_narrow_patterns(&b, u, t)) {
      ck_assert(was && fr_build(&b, u, t, &l, &r) && same_variables(&b));
      bool less = false;
      for (uint32_t c = 0; c < eg_count_added(st.g); c++) {
        ck_assert(!k.cut[c] || before[c]);
        less |= before[c] && !k.cut[c];
        kept += k.cut[c];
      }
      ck_assert_msg(less == !same, "seed %d", (int)seed);
      narrowed += less;
    }
    free(b.memo);
    free(b.prem);
    fr_cone_free(&k);
    end_state();
  }
  ck_assert_uint_gt(narrowed, 20);
  ck_assert_uint_gt(kept, 100);
}
END_TEST

/* ---- matches ---- */

static const char *const rules[] = {
    "(rule r (var x f (A B)) (var y f (A B)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
    "x)))",
    "(rule r (var x f (A B)) (lhs (aten::neg (aten::neg x))) (rhs x))",
    "(rule r (var x f (A B)) (lhs (aten::relu (aten::relu x))) (rhs (aten::relu x)))",
    "(rule r (var x f (A B)) (var y f (A B)) (lhs (aten::mul.Tensor (aten::neg x) y)) (rhs "
    "(aten::neg (aten::mul.Tensor x y))))",
    "(rule r (var x f (A B)) (var y f (A B)) (var z f (A B)) (lhs (aten::add.Tensor "
    "(aten::mul.Tensor x y) z)) (rhs (aten::add.Tensor z (aten::mul.Tensor y x))))",
    "(rule r (var x f (A B)) (lhs (aten::add.Tensor x x)) (rhs (aten::add.Tensor x x)))"};
enum { N_RULES = sizeof rules / sizeof *rules };

/* Whether a class holds the term with these classes for its variables. */
static bool contains(uint32_t c, const rule_term *t, const uint32_t *var) {
  if (t->kind == RULE_VAR) return var[t->u.i] == c;
  const rule_term *literal = fr_literal_class(&st, c);
  if (t->kind != RULE_OP) return literal && rule_term_eq(literal, t);
  const eg_node *m;
  for (size_t i = 0, n = members(c, &m); i < n; i++) {
    bool fits = eg_node_arity(st.g, m[i]) == t->n &&
                strcmp(eg_symbol_name(st.g, eg_node_symbol(st.g, m[i])), t->u.s) == 0;
    for (uint32_t k = 0; k < t->n && fits; k++)
      fits = contains(eg_node_child(st.g, m[i], k).i, t->child[k], var);
    if (fits) return true;
  }
  return false;
}

/* Every substitution of classes for variables is tried. */
static bool naive_match(const rule *r, uint32_t a, uint32_t b) {
  uint32_t cls[MOST], var[3], n = 0;
  for (size_t i = 0; i < n_made; i++) {
    bool seen = false;
    for (uint32_t j = 0; j < n; j++) seen |= cls[j] == class_of(node[i]);
    if (!seen) cls[n++] = class_of(node[i]);
  }
  size_t all = 1;
  for (uint32_t i = 0; i < r->n_vars; i++) all *= n;
  for (size_t code = 0; code < all; code++) {
    size_t rest = code;
    for (uint32_t i = 0; i < r->n_vars; i++, rest /= n) var[i] = cls[rest % n];
    if (contains(a, r->lhs, var) && contains(b, r->rhs, var)) return true;
  }
  return false;
}

static void know(const char *text) {
  rule_set_free(st.rules.set);
  st.rules.set = parse(text);
  ck_assert(iso_grow(st.rules.info, st.rules.cap_info, 1));
  st.rules.info[0] = (rule_info){.verdict = {.status = RULE_TESTED}};
}

/* Both sides of the rule over some of the e-nodes, which makes it match somewhere. */
static void plant(const rule *r, uint64_t seed) {
  iso_rng rng = iso_rng_new(seed, 7);
  eg_node var[3];
  bool ok = true;
  for (uint32_t i = 0; i < r->n_vars; i++) var[i] = node[iso_rng_below(&rng, n_made)];
  for (int side = 0; side < 2; side++, n_made++) {
    ck_assert_uint_lt(n_made, MOST);
    ck_assert(st_add_valued(&st, side ? r->rhs : r->lhs, var, &node[n_made], &ok, &err) == ISO_OK);
    ck_assert(ok);
  }
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
}

/* In either direction, between any two e-nodes that are apart; and e-nodes that it joins have one
 * value. */
START_TEST(a_rule_is_applied_exactly_where_it_matches) {
  size_t n_applied = 0, n_not = 0;
  for (uint64_t seed = 0; seed < (_i == 4 ? 15 : 60); seed++) {
    begin(seed);
    know(rules[_i]);
    const rule *r = rule_set_at(st.rules.set, 0);
    if (seed % 2) plant(r, seed);
    for (size_t i = 0; i < n_made; i++)
      for (size_t k = 0; k < n_made; k++) {
        const eg_node u = node[i], t = node[k];
        bool done;
        if (eg_equal(st.g, u, t)) continue;
        const uint32_t a = class_of(u), b = class_of(t);
        const bool want = naive_match(r, a, b) || naive_match(r, b, a);
        ck_assert(st_apply_rules(&st, u, t, &done, &err) == ISO_OK);
        ck_assert_msg(done == want, "seed %d: %d and %d are %sjoined", (int)seed, (int)i, (int)k,
                      done ? "" : "not ");
        n_applied += done;
        n_not += !done;
        if (!done) continue;
        ck_assert(small_compare(NULL, st_val(&st, u, 0), st_val(&st, t, 0), 1e-9).equal);
        ck_assert(eg_rebuild(st.g, &err) == ISO_OK && eg_equal(st.g, u, t));
      }
    end_state();
  }
  ck_assert_uint_gt(n_not, 100);
  ck_assert(n_applied > 5 || _i == 5);
}
END_TEST

/* ---- what is queued ---- */

START_TEST(an_opening_is_known_whatever_its_order) {
  const opening a = {.cls = {3, 5}, .how = {OPEN, SHUT}, .n = 2},
                b = {.cls = {5, 3}, .how = {SHUT, OPEN}, .n = 2},
                other = {.cls = {5, 3}, .how = {OPEN, OPEN}, .n = 2},
                more = {.cls = {5, 3, 4}, .how = {SHUT, OPEN, OPEN}, .n = 3};
  opening narrow = a;
  narrow.narrow = SAME;
  ck_assert(fr_same_opening(&a, &b) && fr_same_opening(&b, &a));
  ck_assert(!fr_same_opening(&a, &other) && !fr_same_opening(&a, &more));
  ck_assert(!fr_same_opening(&a, &narrow));
}
END_TEST

int main(void) {
  Suite *s = suite_create("frontier");
  TCase *t = tcase_create("frontier");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, a_cone_has_what_its_root_is_computed_from);
  tcase_add_test(t, costs_are_those_of_the_smallest_patterns);
  tcase_add_test(t, narrow_cuts_are_met_by_both_sides);
  tcase_add_test(t, narrow_cuts_stand_in_both_patterns);
  tcase_add_test(t, patterns_give_their_roots);
  tcase_add_test(t, an_opening_is_known_whatever_its_order);
  tcase_add_loop_test(t, a_rule_is_applied_exactly_where_it_matches, 0, N_RULES);
  suite_add_tcase(s, t);
  return run_suite(s);
}
