/* Parts of a sum that are read otherwise than as a sum are found, and the output that tells; what
 * adds them up, before or after steps that keep sums, is right. */
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { X = 0, W, PART, NEXT, LAST, N_TUPLES, SIZE = 3 };

static rule_tensor **many[MOST_TUPLES * PLC_RANKS];
static plc_output out;

/* Element-wise steps, sums of ranks, and products of square matrices. parameters: those of
 * rule_oracle.call. */
static iso_code run_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                         rule_tensor **result, size_t cap, size_t *n, iso_error *e) {
  (void)ctx, (void)float64, (void)cap;
  const rule_term *first = call->child[0];
  const rule_tensor *x = bind[first->kind == RULE_LIST ? first->child[0]->u.i : first->u.i];
  const iso_code c = rule_tensor_new(RULE_F64, &x->shape, result, e);
  *n = 1;
  for (int64_t i = 0; !c && i < x->numel; i++) {
    double v = rule_tensor_get(x, i);
    if (strcmp(call->u.s, "aten::neg") == 0) v = -v;
    if (strcmp(call->u.s, "aten::relu") == 0) v = fmax(v, 0);
    for (uint32_t r = 1; first->kind == RULE_LIST && r < first->n; r++)
      v += rule_tensor_get(bind[first->child[r]->u.i], i);
    if (strcmp(call->u.s, "aten::mm") == 0) {
      const rule_tensor *y = bind[call->child[1]->u.i];
      v = 0;
      for (int64_t k = 0; k < SIZE; k++)
        v += rule_tensor_get(x, i / SIZE * SIZE + k) * rule_tensor_get(y, k * SIZE + i % SIZE);
    }
    rule_tensor_set(*result, i, v);
  }
  return c;
}

static const rule_oracle oracle = {.call = run_call};

/* A product of shards, which is a part of a sum on each rank; two steps behind it, of which the
 * last is the output. */
static void begin_parts(void) {
  begin_tuples("a=2", N_TUPLES);
  ranks.oracle = &oracle;
  ranks.seed = 7;
  out = (plc_output){.name = "y", .tuple = LAST, .declared = true, .place = plc_replica()};
  ranks.output = &out;
  ranks.n_outputs = 1;
  graph.n_nodes = N_TUPLES * ranks.mesh.n;
  for (uint32_t k = 0; k < N_TUPLES; k++) set_shape(k, SHAPE(SIZE, SIZE));
  tuple[W].leaf = true;
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    node[at[W][r]].kind = CAP_PARAMETER;
    for (uint32_t k = 0; k < N_TUPLES; k++)
      node[at[k][r]].id = iso_arena_printf(&terms, "r%u_%u", r, k);
  }
  place[X].axis[0] = (plc_one){.kind = PLC_S, .dim = 1};
  place[W].axis[0] = (plc_one){.kind = PLC_S};
  place[PART].axis[0] = (plc_one){.kind = PLC_P};
  reads(PART, "aten::mm", (uint32_t[]){X, W}, 2, NULL, 0);
}

/* All nodes on the draw that is looked at. */
static void run_all(void) {
  iso_rng rng = iso_rng_new(11, 1);
  for (uint32_t i = 0; i < graph.n_nodes; i++) {
    many[i] = NULL;
    if (node[i].kind != CAP_OP) value[1][i] = noise(&rng, SHAPE(SIZE, SIZE));
    else {
      size_t n;
      ck_assert(run_call(NULL, node[i].call, value[1], true, &value[1][i], 1, &n, &err) == ISO_OK);
      keep(value[1][i]);
    }
  }
  ranks.many[1] = many;
}

/* The step that is found, or N_TUPLES. */
static uint32_t found(void) {
  uint32_t k = N_TUPLES;
  plc_blame_summands(&ranks);
  ck_assert(!plc_failed(&ranks));
  ck_assert_uint_le(ranks.n_findings, 1);
  if (ranks.n_findings) {
    const lint_finding *f = &ranks.finding[0];
    ck_assert_msg(strstr(f->text, "output y depends on how"), "%s", f->text);
    ck_assert_msg(strstr(f->mend, "all_reduce"), "%s", f->mend);
    k = (uint32_t)(strrchr(f->node[0].id, '_')[1] - '0');
  }
  free(ranks.finding);
  return k;
}

static void step(uint32_t k, const char *op, uint32_t of) {
  if (strncmp(op, "dist", 4) == 0) meets(k, op, of, NULL, 0);
  else reads(k, op, (uint32_t[]){of}, 1, NULL, 0);
}

START_TEST(parts_that_are_no_summands_any_more_are_found) {
  static const struct {
    const char *next, *last;
    bool wrong;
  } cases[] = {{"dist::all_reduce", "aten::relu", false},
               {"aten::neg", "dist::all_reduce", false},
               {"aten::alias", "dist::all_reduce", false},
               {"aten::relu", "dist::all_reduce", true},
               {"aten::neg", "aten::relu", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin_parts();
    step(NEXT, cases[i].next, PART);
    step(LAST, cases[i].last, NEXT);
    run_all();
    const uint32_t at_step = found();
    ck_assert_msg(at_step == (cases[i].wrong ? PART : N_TUPLES), "%u %s %s", at_step, cases[i].next,
                  cases[i].last);
    end_tuples();
  }
}
END_TEST

/* It says something of parts alone that can be any, and of outputs that have to be placed. */
START_TEST(parts_that_may_not_be_any_say_nothing) {
  for (int k = 0; k < 8; k++) {
    begin_parts();
    step(NEXT, "aten::relu", PART);
    step(LAST, "dist::all_reduce", NEXT);
    if (k == 1) place[PART].axis[0].reduce = PLC_MAX;
    if (k == 2) tuple[PART].state = PLC_VARYING;
    if (k == 3) out.declared = false;
    if (k == 4) reads(PART, "aten::neg", (uint32_t[]){X}, 1, NULL, 0);
    if (k == 5) meets(LAST, "dist::all_reduce", X, NULL, 0); /* the output is another one's */
    run_all();
    if (k == 6) rule_tensor_set(value[1][at[PART][1]], 4, 0); /* by construction, perhaps */
    if (k == 7) place[X] = place[W] = plc_replica();
    ck_assert_msg(found() == (k == 0 || k == 7 ? PART : N_TUPLES), "%d", k);
    end_tuples();
  }
}
END_TEST

/* A shard that something else reads, too, is no longer any. */
START_TEST(operands_are_read_for_nothing_else) {
  for (int k = 0; k < 3; k++) {
    begin_parts();
    step(NEXT, "aten::relu", PART);
    step(LAST, "dist::all_reduce", NEXT);
    if (k) reads(LAST, "aten::add", (uint32_t[]){NEXT, X}, 2, NULL, 0); /* it, or a replica */
    if (k == 2) place[X] = plc_replica();
    run_all();
    ck_assert_msg(found() == (k == 1 ? N_TUPLES : PART), "%d", k);
    end_tuples();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("summands");
  TCase *t = tcase_create("summands");
  tcase_add_test(t, parts_that_are_no_summands_any_more_are_found);
  tcase_add_test(t, parts_that_may_not_be_any_say_nothing);
  tcase_add_test(t, operands_are_read_for_nothing_else);
  suite_add_tcase(s, t);
  return run_suite(s);
}
