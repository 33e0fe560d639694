/* Outputs of a certificate: a list that pairs each with its counterpart is accepted, and no forgery
 * of it; and which graphs are functions of free leaves. */
#include <check.h>
#include <stdio.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

/* ---- pairs of outputs ---- */

enum { MOST_HEADS = 3, MOST_RANKS = 2 };

/* Outputs by head and rank; on the right perhaps in another order, and with sizes 1 besides. */
typedef struct drawn {
  size_t n_heads, ranks[2];
  bool named;     /* both sides use the same names, */
  size_t renamed; /* but for this head; n_heads: none */
  uint32_t node[2][MOST_HEADS][MOST_RANKS];
  const char *name[2][MOST_HEADS][MOST_RANKS];
} drawn;

static uint32_t leaf_of(int s, iso_rng *rng, rule_shape shape) {
  return leaf(s, CAP_PARAMETER, iso_arena_printf(&report.arena, "p%zu", side[s].g.n_nodes),
              noise(rng, shape));
}

static void draw_side(int s, drawn *d, iso_rng *rng) {
  const size_t first = d->named ? iso_rng_below(rng, d->n_heads) : 0;
  for (size_t i = 0; i < d->n_heads; i++) {
    const size_t h = s == RIGHT ? (first + i) % d->n_heads : i;
    for (size_t r = 0; r < d->ranks[s]; r++) {
      const bool same = !s || (d->named && h != d->renamed);
      const char *name = iso_arena_printf(&report.arena, same ? "y%zu" : "z%zu", h);
      if (r) name = iso_arena_printf(&report.arena, "%s_rank%zu", name, r);
      d->name[s][h][r] = name;
      d->node[s][h][r] = leaf_of(s, rng, SHAPE(2, 3 + (int64_t)h));
      result(s, name, d->node[s][h][r]);
    }
  }
}

/* The term for output `t` of the right, perhaps through sizes 1 that come and go. */
static uint32_t wrapped(uint32_t t, iso_rng *rng) {
  const uint64_t d = iso_rng_below(rng, 3);
  if (iso_rng_below(rng, 2)) return t;
  t = own(CALL("aten::unsqueeze", v(t), num((int64_t)d)));
  return own(CALL("aten::squeeze.dim", v(t), num((int64_t)d)));
}

static drawn draw(iso_rng *rng) {
  drawn d = {.n_heads = 1 + iso_rng_below(rng, MOST_HEADS), .named = iso_rng_below(rng, 2) == 0};
  d.renamed = iso_rng_below(rng, d.n_heads + 1);
  for (int s = 0; s < 2; s++) d.ranks[s] = 1 + iso_rng_below(rng, MOST_RANKS);
  for (int s = 0; s < 2; s++) draw_side(s, &d, rng);
  add_captures();
  begin();
  for (size_t h = 0; h < d.n_heads; h++) {
    const size_t most = d.ranks[0] > d.ranks[1] ? d.ranks[0] : d.ranks[1];
    for (size_t r = 0; r < most; r++) {
      const size_t l = r < d.ranks[0] ? r : 0, q = r < d.ranks[1] ? r : 0;
      add_output(d.name[0][h][l], d.name[1][h][q], d.node[0][h][l],
                 wrapped(at(RIGHT, d.node[1][h][q]), rng));
    }
  }
  for (size_t i = 0; i < k.cert.n_outputs; i++) unite(output[i].a, output[i].b);
  return d;
}

static size_t n_forged;

static void refuses(const char *what) {
  ck_assert_msg(!accepted(chk_outputs(&k)), "taken though %s", what);
  n_forged++;
}

static void forge_list(void) {
  const size_t n = k.cert.n_outputs;
  for (size_t i = 0; i < n; i++) {
    const chk_output was = output[i], last = output[n - 1];
    output[i] = last;
    k.cert.n_outputs--;
    refuses("an output is left out");
    output[i] = was;
    k.cert.n_outputs++;
    output[n] = was;
    k.cert.n_outputs++;
    refuses("an output is listed twice");
    k.cert.n_outputs--;
    output[i].left = "nobody";
    refuses("there is no such output");
    output[i] = was;
  }
}

static void forge_terms(void) {
  for (size_t i = 0; i < k.cert.n_outputs; i++) {
    const chk_output was = output[i];
    for (uint32_t t = 0; t < side[0].g.n_nodes + side[1].g.n_nodes; t++) {
      output[i].a = t;
      if (t != was.a) refuses("the first term is another one");
      output[i].a = was.a;
      output[i].b = t;
      uint32_t below = was.b;
      while (term[below].call) below = (uint32_t)term[below].call->child[0]->u.i;
      if (t != below) refuses("the second term is another one");
      output[i].b = was.b;
    }
    output[i].b = own(CALL("aten::neg", v(was.b)));
    k.here.up[output[i].b] = chk_root(&k, was.a);
    refuses("the second term is computed from the output");
    output[i].b = own(CALL("aten::unsqueeze", v(was.b), num(0)));
    k.here.up[output[i].b] = chk_root(&k, was.a);
    refuses("the second term has another shape");
    output[i] = was;
  }
}

/* Without one of the joins: they make a forest, so that its pair is then apart. */
static void forge_joins(void) {
  for (size_t i = 0; i < k.cert.n_outputs; i++) {
    part_all();
    for (size_t j = 0; j < k.cert.n_outputs; j++)
      if (j != i) unite(output[j].a, output[j].b);
    refuses("its terms are not joined");
  }
}

static void forge_pairs(const drawn *d) {
  if (d->n_heads < 2) return;
  chk_output *a = &output[0], *b = &output[k.cert.n_outputs - 1];
  const chk_output was[2] = {*a, *b};
  a->right = was[1].right, a->b = was[1].b;
  b->right = was[0].right, b->b = was[0].b;
  unite(a->a, b->a);
  refuses("two outputs are exchanged");
  *a = was[0], *b = was[1];
}

START_TEST(outputs_are_paired_once_each_and_no_other_way) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    setup();
    const drawn d = draw(&rng);
    ck_assert_msg(accepted(chk_outputs(&k)), "seed %d: %s", (int)seed, report.reason);
    forge_list();
    forge_terms();
    forge_pairs(&d);
    forge_joins();
    teardown();
  }
  ck_assert_uint_gt(n_forged, 5000);
}
END_TEST

static rule_tensor *integers(const int64_t *x, int64_t n) {
  rule_tensor *t = make_as(RULE_I64, SHAPE(n));
  for (int64_t i = 0; i < n; i++) rule_tensor_set(t, i, (double)x[i]);
  return t;
}
#define INTEGERS(...) \
  integers((int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* ---- graphs that are no functions of free leaves ---- */

enum { NEITHER, ON_LEFT, ON_RIGHT, BOTH };

/* y of a table at ids, or of an operator over it; both sides are one, but for where
 * the ids are kept. */
static bool function_taken(const char *name, int kept_on, bool other_input) {
  setup();
  for (int s = 0; s < 2; s++) {
    iso_rng rng = iso_rng_new(1, 3);
    const uint32_t x = leaf(s, CAP_INPUT, "ids", keep(INTEGERS(0, 1, 2))),
                   w = leaf(s, CAP_PARAMETER, "table", noise(&rng, SHAPE(5, 2))),
                   y = shaped(s, CALL("aten::embedding", v(w), v(x)), RULE_F64, SHAPE(3, 2));
    uint32_t last = y;
    if (other_input) {
      const uint32_t z = leaf(s, CAP_INPUT, "z", noise(&rng, SHAPE(3, 2)));
      last = shaped(s, CALL("aten::mul.Tensor", v(y), v(z)), RULE_F64, SHAPE(3, 2));
    }
    const rule_term *arg = v(last);
    if (name) last = shaped(s, rule_op(&report.arena, name, &arg, 1), RULE_F64, SHAPE(3, 2));
    result(s, "y", last);
  }
  add_captures();
  for (int s = 0; s < 2; s++)
    if (kept_on & (1 << s)) fixed[k.cert.n_fixed++] = at(s, 0);
  begin();
  const bool fine = accepted(chk_fixed_inputs(&k));
  teardown();
  return fine;
}

START_TEST(what_writes_draws_or_has_no_input_is_refused) {
  ck_assert(function_taken(NULL, NEITHER, false));
  ck_assert(function_taken("aten::relu", NEITHER, false));
  ck_assert(function_taken("aten::neg", BOTH, true));
  ck_assert(!function_taken(NULL, BOTH, false)); /* the one input that chooses rows */
  ck_assert(!function_taken(NULL, ON_LEFT, false) && !function_taken(NULL, ON_RIGHT, false));
  ck_assert(function_taken(NULL, ON_LEFT, true) && function_taken(NULL, ON_RIGHT, true));
  ck_assert(!function_taken("aten::relu_", NEITHER, false));
  ck_assert(!function_taken("aten::neg_", BOTH, true));
  ck_assert(!function_taken("aten::rand_like", NEITHER, false));
  ck_assert(!function_taken("aten::bernoulli", NEITHER, true));
}
END_TEST

/* Both sides read the memory of one leaf, which lies row by row or not. */
static bool memory_taken(bool left_strided, bool right_strided) {
  setup();
  for (int s = 0; s < 2; s++) {
    iso_rng rng = iso_rng_new(1, 4);
    const uint32_t x = leaf(s, CAP_INPUT, "x", noise(&rng, SHAPE(3, 2)));
    side[s].node[x].reordered = s == LEFT ? left_strided : right_strided;
    const rule_term *read =
        CALL("aten::as_strided", v(x), sizes((int64_t[]){6}, 1), sizes((int64_t[]){1}, 1));
    result(s, "y", shaped(s, read, RULE_F64, SHAPE(6)));
  }
  add_captures();
  begin();
  const bool fine = accepted(chk_fixed_inputs(&k));
  teardown();
  return fine;
}

START_TEST(memory_is_read_of_what_lies_row_by_row_alone) {
  ck_assert(memory_taken(false, false));
  ck_assert(!memory_taken(true, false));
  ck_assert(!memory_taken(false, true));
  ck_assert(!memory_taken(true, true));
}
END_TEST

int main(void) {
  Suite *s = suite_create("outputs");
  TCase *t = tcase_create("outputs");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, outputs_are_paired_once_each_and_no_other_way);
  tcase_add_test(t, what_writes_draws_or_has_no_input_is_refused);
  tcase_add_test(t, memory_is_read_of_what_lies_row_by_row_alone);
  suite_add_tcase(s, t);
  return run_suite(s);
}
