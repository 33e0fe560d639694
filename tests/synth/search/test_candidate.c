/* Candidates as rules: their names say what they are about, and each is decided once. */
#include "synth/search/search_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 200 };

static builder b;

/* ---- stated ---- */

static void begin(void) {
  begin_terms();
  b = (builder){.s = &st};
}

static eg_node variable(rule_tensor *t, bool is_leaf, bool konst) {
  const eg_node e = add_leaf(t);
  st.rec[e.i].leaf = is_leaf;
  st.rec[e.i].konst = konst;
  b.used[b.n_vars] = 3;
  b.var[b.n_vars++] = eg_class_of(st.g, e);
  return e;
}

static const rule_term *call(const char *op, const rule_term *x, const rule_term *y) {
  return call_of(op, (const rule_term *const[5]){x, y});
}

static bool stated(const rule_term *l, const rule_term *r, rule *out, rule_tensor **example) {
  return fr_rule(&st, &b, l, r, out, example);
}

/* The letters of a variable's name: of a parameter's matrix w, of its vector b, of other numbers x,
 * y and z, of integers, masks and complex numbers i, m and c. */
static const char *letters_of(rule_dtype dtype, uint32_t rank, bool is_leaf, bool konst) {
  if (dtype == RULE_BOOL) return "m";
  if (rule_dtype_is_complex(dtype)) return "c";
  if (!rule_dtype_is_float(dtype)) return "i";
  return !is_leaf || konst ? "xyz" : rank >= 2 ? "w" : "b";
}

START_TEST(variables_have_names_of_their_own_by_what_they_are) {
  static const rule_dtype dtypes[] = {RULE_F64, RULE_F64,  RULE_F32, RULE_I64,
                                      RULE_I32, RULE_BOOL, RULE_C128};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin();
    iso_rng rng = iso_rng_new(seed, 91);
    const size_t n = 1 + iso_rng_below(&rng, 20);
    for (size_t i = 0; i < n; i++) {
      rule_shape s = {.rank = (uint32_t)iso_rng_below(&rng, 4)};
      for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = 1 + (int64_t)iso_rng_below(&rng, 3);
      variable(keep(make_as(dtypes[iso_rng_below(&rng, 7)], s)), iso_rng_below(&rng, 2),
               iso_rng_below(&rng, 4) == 0);
    }
    rule r;
    rule_tensor *example[RULE_MAX_VARS];
    ck_assert(stated(v(0), v(0), &r, example));
    ck_assert_uint_eq(r.n_vars, n);
    for (uint32_t i = 0; i < n; i++) {
      const rec *q = &st.rec[node[i].i];
      const char *letters = letters_of(q->val[0]->dtype, q->shape.rank, q->leaf, q->konst);
      ck_assert_msg(strchr(letters, r.var[i].name[0]) != NULL, "%s", r.var[i].name);
      for (uint32_t j = 0; j < i; j++) ck_assert_str_ne(r.var[i].name, r.var[j].name);
      ck_assert_uint_eq(r.var[i].n_dims, q->shape.rank);
      for (uint32_t d = 0; d < q->shape.rank; d++)
        ck_assert_int_eq(r.var[i].dim[d]->u.i, q->shape.dim[d]);
      ck_assert(rule_variable_takes(&r.var[i], q->val[0]->dtype));
      ck_assert_ptr_eq(example[i], q->val[0]);
    }
    end_state();
  }
}
END_TEST

START_TEST(a_variable_without_elements_has_no_rule) {
  for (int64_t n = 0; n < 2; n++) {
    begin();
    rule r;
    rule_tensor *example[RULE_MAX_VARS];
    variable(keep(make(SHAPE(2, n))), false, false);
    ck_assert_int_eq(stated(v(0), v(0), &r, example), n);
    end_state();
  }
}
END_TEST

/* After the operators that compute, and layouts only where nothing else tells the sides apart. */
START_TEST(a_rule_is_named_after_both_sides) {
  begin();
  variable(noise(1, SHAPE(2, 2), 0, 1), false, false);
  const rule_term *x = v(0), *neg = call("aten::neg", x, NULL), *relu = call("aten::relu", x, NULL);
  const rule_term *turn[5] = {neg, num(0), num(1)}, *turn_x[5] = {x, num(0), num(1)};
  const rule_term *turned = call_of("aten::transpose.int", turn),
                  *moved = call_of("aten::transpose.int", turn_x);
  const struct {
    const rule_term *l, *r;
    const char *name;
  } of[] = {{neg, relu, "neg-relu"},
            {call("aten::add.Tensor", x, x), call("aten::mul.Tensor", x, num(2)), "add-mul"},
            {turned, relu, "neg-relu"},
            {neg, call("aten::neg", x, NULL), "neg"},
            {neg, turned, "neg-transpose"},
            {turned, neg, "neg-transpose"},
            {moved, moved, "transpose"},
            {moved, x, "transpose-id"},
            {x, neg, "id-neg"}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    rule r;
    rule_tensor *example[RULE_MAX_VARS];
    ck_assert(stated(of[i].l, of[i].r, &r, example));
    ck_assert_str_eq(r.name, of[i].name);
    ck_assert(r.lhs == of[i].l && r.rhs == of[i].r);
  }
  end_state();
}
END_TEST

/* ---- decided ---- */

enum { DIFFERENT_RULES = 6 };

static struct {
  rule_status says[DIFFERENT_RULES]; /* of -x = x * k, by k */
  size_t asked[DIFFERENT_RULES], all;
  unsigned rests_on;
} decider;

/* -x = x * k, of which x is [2, size]. */
static rule candidate(int64_t size, int64_t k) {
  rule_variable *x = iso_arena_alloc(&w.arena, sizeof *x);
  const rule_term **dim = iso_arena_alloc(&w.arena, 2 * sizeof *dim);
  dim[0] = num(2), dim[1] = num(size);
  *x = (rule_variable){.name = "x", .kind = 'f', .n_dims = 2, .dim = dim};
  return (rule){.name = "scaled",
                .n_vars = 1,
                .var = x,
                .lhs = call("aten::neg", v(0), NULL),
                .rhs = call("aten::mul.Tensor", v(0), num(k))};
}

static int64_t factor_of(const rule *r) { return r->rhs->child[1]->u.i; }

static iso_code decide(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out,
                       iso_error *e) {
  (void)ctx, (void)example, (void)e;
  decider.asked[factor_of(r)]++;
  decider.all++;
  *out = (rule_verdict){.status = decider.says[factor_of(r)], .rests_on = decider.rests_on};
  return ISO_OK;
}

static void begin_deciding(void) {
  begin();
  oracle.decide = decide;
  memset(&decider, 0, sizeof decider);
}

static size_t decide_one(const rule *r, rule_status want, bool want_fresh) {
  rule_tensor *example[1] = {NULL};
  fr_decision as = {.fresh = !want_fresh};
  ck_assert(fr_decide(&st, r, example, false, &as, &err) == ISO_OK);
  ck_assert_int_eq(as.v.status, want);
  ck_assert_int_eq(as.fresh, want_fresh);
  ck_assert(!as.open);
  return as.index;
}

START_TEST(a_candidate_is_decided_once_and_kept_where_it_holds) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_deciding();
    iso_rng rng = iso_rng_new(seed, 92);
    static const rule_status any[] = {RULE_UNKNOWN, RULE_REFUTED, RULE_TESTED, RULE_PROVED};
    size_t kept = 0, given_up = 0;
    for (int k = 0; k < DIFFERENT_RULES; k++) decider.says[k] = any[iso_rng_below(&rng, 4)];
    for (int i = 0; i < 20; i++) {
      const uint64_t k = iso_rng_below(&rng, DIFFERENT_RULES);
      const rule r = candidate(3, (int64_t)k);
      const bool holds = decider.says[k] >= RULE_TESTED, first = decider.asked[k] == 0;
      const size_t index = decide_one(&r, decider.says[k], first);
      ck_assert_uint_eq(decider.asked[k], 1);
      ck_assert(holds == (index != SIZE_MAX));
      kept += first && holds;
      given_up += first && !holds;
      if (!holds) continue;
      ck_assert_int_eq(factor_of(rule_set_at(st.rules.set, index)), (int64_t)k);
      ck_assert_int_eq(st.rules.info[index].verdict.status, decider.says[k]);
    }
    ck_assert_uint_eq(rule_set_count(st.rules.set), kept);
    ck_assert_uint_eq(result.n_synthesised, kept);
    ck_assert_uint_eq(result.n_refuted, given_up);
    end_state();
  }
}
END_TEST

START_TEST(without_reuse_each_is_decided_anew) {
  begin_deciding();
  w.options.disable = SYNTH_REUSE;
  decider.says[1] = RULE_PROVED;
  const rule r = candidate(3, 1);
  for (int i = 0; i < 3; i++) ck_assert_uint_eq(decide_one(&r, RULE_PROVED, true), 0);
  ck_assert_uint_eq(decider.all, 3);
  ck_assert_uint_eq(rule_set_count(st.rules.set), 1);
  end_state();
}
END_TEST

/* What a proof reads as minus infinity does not count where numbers come near. */
START_TEST(a_proof_that_reads_masks_counts_where_nothing_is_near_them) {
  for (int near = 0; near < 2; near++)
    for (int reads = 0; reads < 2; reads++) {
      begin_deciding();
      st.masks.near = near;
      decider.says[1] = RULE_PROVED;
      decider.rests_on = reads ? RULE_RESTS_ON_MASKS : 0;
      const rule r = candidate(3, 1);
      const bool counts = !(near && reads);
      const size_t index = decide_one(&r, counts ? RULE_PROVED : RULE_UNKNOWN, true);
      ck_assert(counts == (index != SIZE_MAX));
      end_state();
    }
}
END_TEST

/* ---- made general ---- */

static struct {
  rule general;
  rule_status says;
} maker;

/* parameters: those of rule_oracle.generalise. */
static iso_code generalise(void *ctx, const rule *r, rule_tensor *const *example, iso_arena *a,
                           rule *general, rule_verdict *out, iso_error *e) {
  (void)ctx, (void)r, (void)example, (void)a, (void)e;
  *general = maker.general;
  *out = (rule_verdict){.status = maker.says};
  return ISO_OK;
}

/* ---- a glance ---- */

/* What a glance leaves open costs nothing as long as nobody decides it, and is then decided as if
 * nobody had looked; what a glance tells is not asked about again. */
START_TEST(a_glance_tells_or_leaves_it_open) {
  static const rule_status any[] = {RULE_UNKNOWN, RULE_REFUTED, RULE_PROVED};
  rule_tensor *example[1] = {NULL};
  for (size_t k = 0; k < sizeof any / sizeof *any; k++) {
    begin_deciding();
    const rule r = candidate(3, 1);
    const bool open = any[k] == RULE_UNKNOWN;
    fr_decision as;
    oracle.glance = generalise;
    maker.general = r;
    maker.says = any[k];
    ck_assert(fr_decide(&st, &r, example, true, &as, &err) == ISO_OK);
    ck_assert(as.open == open && as.fresh && as.v.status == any[k] && decider.all == 0);
    ck_assert(fr_decide(&st, &r, example, true, &as, &err) == ISO_OK);
    ck_assert(as.open == open && !as.fresh && decider.all == 0);
    ck_assert_uint_eq(result.n_refuted, any[k] == RULE_REFUTED);
    decider.says[1] = RULE_TESTED;
    const size_t index = decide_one(&r, open ? RULE_TESTED : any[k], open);
    ck_assert_uint_eq(index, decide_one(&r, open ? RULE_TESTED : any[k], false));
    ck_assert_uint_eq(decider.all, open);
    end_state();
  }
}
END_TEST

START_TEST(nobody_to_ask_for_a_glance_is_a_decision) {
  begin_deciding();
  const rule r = candidate(3, 1);
  rule_tensor *example[1] = {NULL};
  fr_decision as;
  decider.says[1] = RULE_TESTED;
  ck_assert(fr_decide(&st, &r, example, true, &as, &err) == ISO_OK);
  ck_assert(!as.open && as.fresh && as.v.status == RULE_TESTED && decider.all == 1);
  end_state();
}
END_TEST

/* A rule that does not explain the place it comes from is of no use: then the candidate is decided
 * as it is. */
START_TEST(a_general_rule_is_kept_where_it_covers_the_candidate) {
  for (int covers = 0; covers < 2; covers++) {
    begin_deciding();
    oracle.generalise = generalise;
    maker.says = RULE_PROVED;
    maker.general = candidate(3, 1);
    ((const rule_term **)(uintptr_t)maker.general.var[0].dim)[1] =
        covers ? rule_name(&w.arena, "N") : num(4);
    decider.says[1] = RULE_TESTED;
    const rule r = candidate(3, 1);
    const size_t index = decide_one(&r, covers ? RULE_PROVED : RULE_TESTED, true);
    ck_assert_uint_eq(decider.all, !covers);
    const rule_term *size = rule_set_at(st.rules.set, index)->var[0].dim[1];
    ck_assert(covers ? size->kind == RULE_NAME : size->u.i == 3);
    end_state();
  }
}
END_TEST

/* One that was not proved is not asked about again. */
START_TEST(what_cannot_be_proved_in_general_is_what_it_is) {
  begin_deciding();
  oracle.generalise = generalise;
  maker.general = candidate(3, 1);
  maker.says = RULE_REFUTED;
  const rule r = candidate(3, 1);
  ck_assert_uint_eq(decide_one(&r, RULE_REFUTED, true), SIZE_MAX);
  ck_assert_uint_eq(decider.all, 0);
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("candidate");
  TCase *t = tcase_create("candidate");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, variables_have_names_of_their_own_by_what_they_are);
  tcase_add_test(t, a_variable_without_elements_has_no_rule);
  tcase_add_test(t, a_rule_is_named_after_both_sides);
  tcase_add_test(t, a_candidate_is_decided_once_and_kept_where_it_holds);
  tcase_add_test(t, without_reuse_each_is_decided_anew);
  tcase_add_test(t, a_proof_that_reads_masks_counts_where_nothing_is_near_them);
  tcase_add_test(t, a_glance_tells_or_leaves_it_open);
  tcase_add_test(t, nobody_to_ask_for_a_glance_is_a_decision);
  tcase_add_test(t, a_general_rule_is_kept_where_it_covers_the_candidate);
  tcase_add_test(t, what_cannot_be_proved_in_general_is_what_it_is);
  suite_add_tcase(s, t);
  return run_suite(s);
}
