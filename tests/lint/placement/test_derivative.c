/* A gradient is held against how the loss moves with its leaf: any number of times that it is, for
 * leaves and gradients in shards, replicas and parts of sums. */
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { DATA = 0, LEAF, PRODUCT, SUM, REDUCED, GRAD, N_TUPLES, SEEDS = 40 };

static rule_tensor **many[MOST_TUPLES * PLC_RANKS];
static plc_output loss;

/* The product of two tensors of one shape; the sum of all elements; and of the ranks' tensors.
 * parameters: those of rule_oracle.call. */
static iso_code run_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                         rule_tensor **result, size_t cap, size_t *n, iso_error *e) {
  (void)ctx, (void)float64, (void)cap;
  const rule_term *first = call->child[0];
  const bool sums = strcmp(call->u.s, "aten::sum") == 0;
  const rule_tensor *x = bind[first->kind == RULE_LIST ? first->child[0]->u.i : first->u.i];
  const rule_shape s = sums ? (rule_shape){0} : x->shape;
  const iso_code c = rule_tensor_new(RULE_F64, &s, result, e);
  *n = 1;
  for (int64_t i = 0; !c && i < x->numel; i++) {
    double v = rule_tensor_get(x, i);
    if (sums) v = v * v * v + (i ? rule_tensor_get(*result, 0) : 0);
    else if (first->kind == RULE_LIST)
      for (uint32_t r = 1; r < first->n; r++) v += rule_tensor_get(bind[first->child[r]->u.i], i);
    else v *= rule_tensor_get(bind[call->child[1]->u.i], i);
    rule_tensor_set(*result, sums ? 0 : i, v);
  }
  return c;
}

static const rule_oracle oracle = {.call = run_call};

/* The loss is the sum of the cubes of x w: over the ranks' shards of both, added up, or over
 * replicas of both. Its gradient by w is 3 x^3 w^2, here `times` that. */
static void begin_loss(iso_rng *rng, bool shards, double times, plc_kind how) {
  rule_tensor *whole[2], *each[2][PLC_RANKS], *grad;
  begin_tuples("a=2", N_TUPLES);
  ranks.oracle = &oracle;
  ranks.seed = 7;
  ranks.many[1] = many;
  memset(many, 0, sizeof many);
  graph.n_nodes = N_TUPLES * ranks.mesh.n;
  const rule_shape s = SHAPE(4, 3);
  plc_place cut = plc_replica(), part = plc_replica();
  if (shards) cut.axis[0] = (plc_one){.kind = PLC_S};
  for (int k = 0; k < 2; k++) {
    whole[k] = noise(rng, s);
    make_parts(rng, whole[k], &cut, each[k]);
    place[k] = cut;
    wholes[k][1] = whole[k];
    tuple[k].leaf = true;
  }
  grad = make(s);
  for (int64_t i = 0; i < grad->numel; i++)
    rule_tensor_set(grad, i,
                    times * 3 * pow(rule_tensor_get(whole[0], i), 3) *
                        pow(rule_tensor_get(whole[1], i), 2));
  if (how != PLC_R) part.axis[0] = (plc_one){.kind = how};
  place[GRAD] = part;
  rule_tensor *own[PLC_RANKS];
  make_parts(rng, grad, &part, own);
  reads(PRODUCT, "aten::mul.Tensor", (uint32_t[]){DATA, LEAF}, 2, NULL, 0);
  reads(SUM, "aten::sum", (uint32_t[]){PRODUCT}, 1, NULL, 0);
  meets(REDUCED, "dist::all_reduce", SUM, NULL, 0);
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    node[at[LEAF][r]].kind = CAP_PARAMETER;
    node[at[DATA][r]].kind = CAP_INPUT;
    value[1][at[DATA][r]] = each[0][r];
    value[1][at[LEAF][r]] = each[1][r];
  }
  loss = (plc_output){.name = "loss", .tuple = shards ? REDUCED : SUM, .declared = true};
  ranks.output = &loss;
  ranks.n_outputs = 1;
  for (uint32_t r = 0; r < ranks.mesh.n; r++) value[1][at[GRAD][r]] = own[r];
}

START_TEST(a_gradient_is_so_many_times_the_derivative) {
  static const double times[] = {1, 2, 0.5, -1, 0.25};
  static const plc_kind how[] = {PLC_R, PLC_S, PLC_P};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    const double by = times[seed % 5];
    begin_loss(&rng, _i, by, how[seed % 3]);
    const double found = plc_gradient_scale(&ranks, &loss, &tuple[LEAF], &tuple[GRAD]);
    ck_assert_msg(fabs(found - by) < 1e-4 * fabs(by), "seed %d: %g, %g", (int)seed, found, by);
    end_tuples();
  }
}
END_TEST

/* Nothing is said of a leaf that is parts of a sum, or not placed, nor of another tensor's shape.
 */
START_TEST(what_is_no_gradient_of_the_leaf_says_nothing) {
  for (int k = 0; k < 4; k++) {
    iso_rng rng = iso_rng_new(3, 1);
    begin_loss(&rng, false, 1, PLC_R);
    if (k == 1) place[LEAF].axis[0] = (plc_one){.kind = PLC_P};
    if (k == 2) tuple[LEAF].state = PLC_VARYING;
    if (k == 3)
      for (uint32_t r = 0; r < 2; r++) value[1][at[GRAD][r]] = noise(&rng, SHAPE(2, 3));
    const double found = plc_gradient_scale(&ranks, &loss, &tuple[LEAF], &tuple[GRAD]);
    ck_assert_msg((found != 0) == (k == 0), "%d: %g", k, found);
    end_tuples();
  }
}
END_TEST

START_TEST(the_loss_is_the_output_of_that_name) {
  for (int k = 0; k < 4; k++) {
    iso_rng rng = iso_rng_new(3, 1);
    begin_loss(&rng, false, 1, PLC_R);
    if (k == 1) loss.name = "losses";
    if (k == 2) at[SUM][0] = PLC_NONE;
    if (k == 3) output[at[SUM][0]].dtype = RULE_I64;
    ck_assert_msg(plc_loss(&ranks) == (k ? NULL : &loss), "%d", k);
    end_tuples();
  }
}
END_TEST

/* A gradient times a number that was computed was clipped; times a literal, or divided from it, it
 * was not. */
START_TEST(factors_that_are_computed_are_taken_off) {
  for (int k = 0; k < 7; k++) {
    iso_rng rng = iso_rng_new(3, 1);
    begin_loss(&rng, false, 1, PLC_R);
    tuple[SUM].whole[0] = make((rule_shape){0});
    reads(GRAD, k == 1 ? "aten::div.Tensor" : "aten::mul.Tensor",
          k == 2 || k == 3 ? (uint32_t[]){SUM, PRODUCT} : (uint32_t[]){PRODUCT, SUM}, 2, NULL, 0);
    tuple[GRAD].collective = false;
    if (k == 3) reads(GRAD, "aten::div.Tensor", (uint32_t[]){SUM, PRODUCT}, 2, NULL, 0);
    if (k == 4) tuple[SUM].konst = true;
    if (k == 5) place[SUM].axis[0] = (plc_one){.kind = PLC_P};
    if (k == 6) tuple[SUM].whole[0] = make(SHAPE(2));
    reads(PRODUCT, "aten::neg", (uint32_t[]){LEAF}, 1, NULL, 0);
    ck_assert_msg(plc_unclipped(&ranks, &tuple[GRAD]) == (k < 3 ? &tuple[PRODUCT] : NULL), "%d", k);
    end_tuples();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("derivative");
  TCase *t = tcase_create("derivative");
  tcase_add_loop_test(t, a_gradient_is_so_many_times_the_derivative, 0, 2);
  tcase_add_test(t, what_is_no_gradient_of_the_leaf_says_nothing);
  tcase_add_test(t, the_loss_is_the_output_of_that_name);
  tcase_add_test(t, factors_that_are_computed_are_taken_off);
  suite_add_tcase(s, t);
  return run_suite(s);
}
