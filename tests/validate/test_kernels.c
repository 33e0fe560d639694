/* The reference kernels against their definitions, written out as loops over doubles (needs
 * libtorch). */
#include "tests/validate/engine_test.h"

static double at(const rule_tensor *t, int64_t i) { return rule_tensor_get(t, i); }

static void unref_all(rule_tensor **x) {
  for (int i = 0; i < 6; i++) rule_tensor_unref(x[i]);
}

/* ---- attention ---- */

enum { TOKENS = 6, HEADS = 4, KV_HEADS = 2, SIZE = 3 };

typedef struct attention {
  double scale, cap; /* cap 0: none */
  int window;        /* 0: none */
  bool alibi, causal;
} attention;

static const double slopes[HEADS] = {0.5, 0.25, 0.125, 0.0625};

static void naive_attention(const attention *a, const rule_tensor *q, const rule_tensor *k,
                            const rule_tensor *v, double *out) {
  for (int i = 0; i < TOKENS; i++)
    for (int h = 0; h < HEADS; h++) {
      int g = h / (HEADS / KV_HEADS);
      double weight[TOKENS], total = 0;
      for (int j = 0; j < TOKENS; j++) {
        double s = 0;
        for (int d = 0; d < SIZE; d++)
          s += at(q, (i * HEADS + h) * SIZE + d) * at(k, (j * KV_HEADS + g) * SIZE + d);
        s *= a->scale;
        if (a->cap != 0) s = a->cap * tanh(s / a->cap);
        if (a->alibi) s += slopes[h] * (j - i);
        bool hidden = (a->causal && j > i) || (a->window && j <= i - a->window);
        total += weight[j] = hidden ? 0 : exp(s);
      }
      for (int d = 0; d < SIZE; d++) {
        double sum = 0;
        for (int j = 0; j < TOKENS; j++)
          sum += weight[j] / total * at(v, (j * KV_HEADS + g) * SIZE + d);
        out[(i * HEADS + h) * SIZE + d] = sum;
      }
    }
}

/* `bits` chooses the features. */
static void check_attention(int bits) {
  attention a = {.scale = 0.7,
                 .cap = bits & 1 ? 1.5 : 0,
                 .window = bits & 2 ? 3 : 0,
                 .alibi = (bits & 4) != 0,
                 .causal = (bits & 8) != 0};
  rule_tensor *x[6] = {normal(1, RULE_F64, SHAPE(TOKENS, HEADS * SIZE)),
                       normal(2, RULE_F64, SHAPE(TOKENS, KV_HEADS * SIZE)),
                       normal(3, RULE_F64, SHAPE(TOKENS, KV_HEADS, SIZE))};
  if (bits & 16) {
    rule_tensor *by_head = NULL;
    iso_error err;
    rule_shape s = SHAPE(TOKENS, HEADS, SIZE);
    ck_assert(rule_tensor_reshape(x[0], &s, &by_head, &err) == ISO_OK);
    rule_tensor_unref(x[0]);
    x[0] = by_head;
  }
  char text[512], window[16] = "none", cap[16] = "none";
  if (a.window) snprintf(window, sizeof window, "%d", a.window);
  if (a.cap != 0) snprintf(cap, sizeof cap, "%g", a.cap);
  snprintf(text, sizeof text,
           "(vllm::unified_attention%s.isomer x0 x1 x2 :num_heads 4 :num_kv_heads 2 :head_size 3 "
           ":scale 0.7 "
           ":sliding_window %s :logits_soft_cap %s :alibi_slopes %s :causal %s)",
           bits & 16 ? "_with_output" : "", window, cap,
           a.alibi ? "(list 0.5 0.25 0.125 0.0625)" : "none", a.causal ? "true" : "false");
  double want[TOKENS * HEADS * SIZE];
  naive_attention(&a, x[0], x[1], x[2], want);
  rule_tensor *y = eval(text, x, 0);
  ck_assert(rule_shape_eq(&y->shape, &x[0]->shape));
  close_to(y, want, TOKENS * HEADS * SIZE, 1e-13);
  rule_tensor_unref(y);
  unref_all(x);
}

START_TEST(attention_by_definition) {
  for (int bits = 0; bits < 32; bits++) check_attention(bits);
}
END_TEST

#define ATTENTION(heads, kv, size, window) \
  "(vllm::unified_attention.isomer x0 x1 x2 :num_heads " heads " :num_kv_heads " kv \
  " :head_size " size " :scale 1.0 " \
  ":sliding_window " window " :logits_soft_cap none :alibi_slopes none :causal true)"

START_TEST(attention_checks_its_arguments) {
  rule_tensor *x[6] = {normal(1, RULE_F32, SHAPE(TOKENS, 12)),
                       normal(2, RULE_F32, SHAPE(TOKENS, 6)),
                       normal(3, RULE_F32, SHAPE(TOKENS, 6))};
  rule_tensor_unref(eval(ATTENTION("4", "2", "3", "none"), x, 0));
  const char *const bad[] = {ATTENTION("4", "2", "6", "none"), ATTENTION("3", "2", "4", "none"),
                             ATTENTION("4", "4", "3", "none"), ATTENTION("4", "0", "3", "none"),
                             ATTENTION("4", "2", "3", "-1")};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_int_eq(eval_fails(bad[i], x, 0).code, ISO_TORCH);
  rule_tensor_unref(x[1]);
  x[1] = normal(2, RULE_F32, SHAPE(TOKENS - 1, 6));
  ck_assert_int_eq(eval_fails(ATTENTION("4", "2", "3", "none"), x, 0).code, ISO_TORCH);
  unref_all(x);
}
END_TEST

/* ---- norms and positions ---- */

START_TEST(norms_by_definition) {
  rule_tensor *x[6] = {normal(1, RULE_F64, SHAPE(3, 5)), normal(2, RULE_F64, SHAPE(3, 5)),
                       normal(3, RULE_F64, SHAPE(5))};
  double want[15], sum[15];
  for (int fused = 0; fused < 2; fused++) {
    for (int t = 0; t < 3; t++) {
      double squares = 0;
      for (int i = 0; i < 5; i++) {
        sum[5 * t + i] = at(x[0], 5 * t + i) + (fused ? at(x[1], 5 * t + i) : 0);
        squares += sum[5 * t + i] * sum[5 * t + i];
      }
      for (int i = 0; i < 5; i++)
        want[5 * t + i] = sum[5 * t + i] / sqrt(squares / 5 + 0.01) * at(x[2], i);
    }
    rule_tensor *y = eval(fused ? "(getitem (_C::fused_add_rms_norm.isomer x0 x1 x2 0.01) 0)"
                                : "(_C::rms_norm.isomer x0 x2 0.01)",
                          x, 0);
    close_to(y, want, 15, 1e-14);
    rule_tensor_unref(y);
  }
  rule_tensor *y = eval("(getitem (_C::fused_add_rms_norm.isomer x0 x1 x2 0.01) 1)", x, 0);
  close_to(y, sum, 15, 0);
  rule_tensor_unref(y);
  ck_assert_int_eq(eval_fails("(_C::rms_norm.isomer x0 x1 0.01)", x, 0).code, ISO_TORCH);
  ck_assert_int_eq(
      eval_fails("(getitem (_C::fused_add_rms_norm.isomer x0 x2 x2 0.01) 0)", x, 0).code,
      ISO_TORCH);
  unref_all(x);
}
END_TEST

START_TEST(rotary_by_definition) {
  enum { T = 3, D = 6, WIDTH = 4, ROWS = 5 };
  const int64_t row[T] = {4, 0, 2};
  for (int neox = 0; neox < 2; neox++) {
    rule_tensor *x[6] = {counting(RULE_I64, SHAPE(T)), normal(1, RULE_F64, SHAPE(T, 2 * D)),
                         normal(2, RULE_F64, SHAPE(T, D)), normal(3, RULE_F64, SHAPE(ROWS, WIDTH))};
    for (int t = 0; t < T; t++) rule_tensor_set(x[0], t, (double)row[t]);
    char text[200];
    for (int k = 0; k < 2; k++) { /* query, key */
      int heads = 2 - k;
      double want[T * 2 * D];
      for (int t = 0; t < T; t++)
        for (int h = 0; h < heads; h++) {
          int base = (t * heads + h) * D;
          for (int i = 0; i < D; i++) want[base + i] = at(x[1 + k], base + i);
          for (int i = 0; i < WIDTH / 2; i++) {
            int first = base + (neox ? i : 2 * i),
                second = base + (neox ? i + WIDTH / 2 : 2 * i + 1);
            double c = at(x[3], row[t] * WIDTH + i), s = at(x[3], row[t] * WIDTH + WIDTH / 2 + i);
            double a = at(x[1 + k], first), b = at(x[1 + k], second);
            want[first] = a * c - b * s;
            want[second] = b * c + a * s;
          }
        }
      snprintf(text, sizeof text, "(getitem (_C::rotary_embedding.isomer x0 x1 x2 6 x3 %s) %d)",
               neox ? "true" : "false", k);
      rule_tensor *y = eval(text, x, 0);
      close_to(y, want, T * heads * D, 1e-14);
      rule_tensor_unref(y);
    }
    rule_tensor_unref(eval("(getitem (_C::rotary_embedding.isomer x0 x1 none 6 x3 true) 0)", x, 0));
    /* Rows that the table does not have: past its end, and before its begin. */
    const double out_of_range[] = {ROWS, -1};
    for (int i = 0; i < 2; i++) {
      rule_tensor_set(x[0], 1, out_of_range[i]);
      ck_assert_int_eq(
          eval_fails("(getitem (_C::rotary_embedding.isomer x0 x1 x2 6 x3 true) 0)", x, 0).code,
          ISO_TORCH);
    }
    rule_tensor_set(x[0], 1, 0);
    ck_assert_int_eq(
        eval_fails("(getitem (_C::rotary_embedding.isomer x0 x1 x2 3 x3 true) 0)", x, 0).code,
        ISO_TORCH);
    ck_assert_int_eq(
        eval_fails("(getitem (_C::rotary_embedding.isomer x0 x1 x2 5 x3 true) 0)", x, 0).code,
        ISO_TORCH);
    unref_all(x);
  }
}
END_TEST

/* ---- activations ---- */

static double silu(double x) { return x / (1 + exp(-x)); }
static double gelu(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double gelu_quick(double x) { return x / (1 + exp(-1.702 * x)); }

START_TEST(activations_by_definition) {
  const struct {
    const char *op;
    double (*f)(double);
    bool gated;
  } c[] = {{"silu_and_mul", silu, true},           {"gelu_and_mul", gelu, true},
           {"gelu_tanh_and_mul", gelu_tanh, true}, {"gelu_new", gelu_tanh, false},
           {"gelu_fast", gelu_tanh, false},        {"gelu_quick", gelu_quick, false}};
  rule_tensor *x[6] = {normal(1, RULE_F64, SHAPE(2, 6)), normal(1, RULE_F64, SHAPE(2, 5))};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    char text[100];
    double want[12];
    for (int t = 0; t < 2; t++)
      for (int k = 0; k < (c[i].gated ? 3 : 6); k++)
        want[t * (c[i].gated ? 3 : 6) + k] =
            c[i].f(at(x[0], 6 * t + k)) * (c[i].gated ? at(x[0], 6 * t + 3 + k) : 1);
    snprintf(text, sizeof text, "(_C::%s.isomer x0)", c[i].op);
    rule_tensor *y = eval(text, x, 0);
    close_to(y, want, c[i].gated ? 6 : 12, 1e-14);
    rule_tensor_unref(y);
    snprintf(text, sizeof text, "(_C::%s.isomer x1)", c[i].op);
    if (c[i].gated) ck_assert_int_eq(eval_fails(text, x, 0).code, ISO_TORCH);
    else rule_tensor_unref(eval(text, x, 0));
  }
  unref_all(x);
}
END_TEST

/* ---- experts ---- */

START_TEST(routing_breaks_ties_downwards) {
  rule_tensor *x[6] = {counting(RULE_F64, SHAPE(2, 4))};
  const double logit[] = {1, 3, 3, 0, 2, 2, 2, 2};
  for (int i = 0; i < 8; i++) rule_tensor_set(x[0], i, logit[i]);
  rule_tensor *w = eval("(getitem (_moe_C::topk_softmax.isomer x0 :topk 2) 0)", x, 0);
  rule_tensor *id = eval("(getitem (_moe_C::topk_softmax.isomer x0 :topk 2) 1)", x, 0);
  rule_tensor *place = eval("(getitem (_moe_C::topk_softmax.isomer x0 :topk 2) 2)", x, 0);
  double p = exp(3) / (exp(1) + 2 * exp(3) + 1);
  close_to(w, (double[]){p, p, 0.25, 0.25}, 4, 1e-15);
  close_to(id, (double[]){1, 2, 0, 1}, 4, 0);
  close_to(place, (double[]){0, 2, 1, 3}, 4, 0);
  ck_assert_int_eq(id->dtype, RULE_I32);
  ck_assert_int_eq(eval_fails("(getitem (_moe_C::topk_softmax.isomer x0 :topk 5) 0)", x, 0).code,
                   ISO_TORCH);
  rule_tensor_unref(w);
  rule_tensor_unref(id);
  rule_tensor_unref(place);
  unref_all(x);
}
END_TEST

START_TEST(experts_by_definition) {
  enum { T = 3, K = 4, N = 2, E = 3, TOP = 2 };
  rule_tensor *x[6] = {normal(1, RULE_F64, SHAPE(T, K)), normal(2, RULE_F64, SHAPE(E, 2 * N, K)),
                       normal(3, RULE_F64, SHAPE(E, K, N)), normal(4, RULE_F64, SHAPE(T, TOP)),
                       counting(RULE_I32, SHAPE(T, TOP))};
  for (int i = 0; i < T * TOP; i++) rule_tensor_set(x[4], i, (i * 2) % E);
  double want[T * K] = {0};
  for (int t = 0; t < T; t++)
    for (int s = 0; s < TOP; s++) {
      int64_t e = rule_tensor_get_int(x[4], t * TOP + s);
      double h[2 * N] = {0};
      for (int n = 0; n < 2 * N; n++)
        for (int k = 0; k < K; k++) h[n] += at(x[1], (e * 2 * N + n) * K + k) * at(x[0], t * K + k);
      for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
          want[t * K + k] +=
              at(x[3], t * TOP + s) * at(x[2], (e * K + k) * N + n) * silu(h[n]) * h[N + n];
    }
  rule_tensor *y = eval("(vllm::outplace_fused_experts.isomer x0 x1 x2 x3 x4)", x, 0);
  close_to(y, want, T * K, 1e-13);
  rule_tensor_unref(y);
  y = eval("(vllm::inplace_fused_experts.isomer x0 x1 x2 x3 x4 \"silu\")", x, 0);
  close_to(y, want, T * K, 1e-13);
  rule_tensor_unref(y);
  rule_tensor_unref(eval("(vllm::inplace_fused_experts.isomer x0 x1 x2 x3 x4 \"gelu\")", x, 0));
  ck_assert_int_eq(
      eval_fails("(vllm::inplace_fused_experts.isomer x0 x1 x2 x3 x4 \"relu\")", x, 0).code,
      ISO_TORCH);
  ck_assert_int_eq(eval_fails("(vllm::outplace_fused_experts.isomer x0 x1 x1 x3 x4)", x, 0).code,
                   ISO_TORCH);
  rule_tensor_set(x[4], 3, E);
  ck_assert_int_eq(eval_fails("(vllm::outplace_fused_experts.isomer x0 x1 x2 x3 x4)", x, 0).code,
                   ISO_TORCH);
  unref_all(x);
}
END_TEST

/* ---- collectives ---- */

START_TEST(collectives_by_definition) {
  rule_tensor *x[6] = {counting(RULE_F32, SHAPE(2, 2)), normal(1, RULE_F32, SHAPE(2, 2)),
                       normal(1, RULE_F32, SHAPE(2, 3)), counting(RULE_F32, SHAPE(0, 2))};
  rule_tensor *y = eval("(dist::all_reduce (list x0 x1 x0) \"sum\")", x, 0);
  for (int64_t i = 0; i < 4; i++)
    ck_assert_double_eq_tol(at(y, i), 2 * (double)i + at(x[1], i), 1e-6);
  rule_tensor_unref(y);
  y = eval("(dist::all_gather (list x0 x1) 1)", x, 0);
  close_to(y, (double[]){0, 1, at(x[1], 0), at(x[1], 1), 2, 3, at(x[1], 2), at(x[1], 3)}, 8, 0);
  rule_tensor_unref(y);
  y = eval("(dist::all_gather (list x0 x2) 1)", x, 0); /* parts of other sizes */
  ck_assert_int_eq(y->shape.dim[1], 5);
  rule_tensor_unref(y);
  /* Of nothing each rank has a part, too. */
  y = eval("(getitem (dist::all_to_all (list x3 x3 x3) 0 1) 2)", x, 0);
  ck_assert_int_eq(y->shape.dim[1], 6);
  rule_tensor_unref(y);
  y = eval("(getitem (dist::reduce_scatter (list x3 x3 x3) \"sum\" 0) 2)", x, 0);
  ck_assert_int_eq(y->shape.dim[1], 2);
  rule_tensor_unref(y);
  const char *const bad[] = {
      "(dist::all_reduce (list x0 x2) \"sum\")", "(dist::all_reduce (list x0 x1) \"xor\")",
      "(dist::all_gather (list x0 x2) 0)", "(dist::all_gather (list x0 x1) 2)"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_int_eq(eval_fails(bad[i], x, 0).code, ISO_TORCH);
  unref_all(x);
}
END_TEST

/* ---- all of them ---- */

/* libtorch's idea of each kernel's arguments is the table's. */
START_TEST(schemas_are_those_of_the_table) {
  static const char *const name[] = {"vllm::unified_attention.isomer",
                                     "vllm::unified_attention_with_output.isomer",
                                     "vllm::outplace_fused_experts.isomer",
                                     "vllm::inplace_fused_experts.isomer",
                                     "_C::rms_norm.isomer",
                                     "_C::fused_add_rms_norm.isomer",
                                     "_C::rotary_embedding.isomer",
                                     "_C::silu_and_mul.isomer",
                                     "_C::gelu_and_mul.isomer",
                                     "_C::gelu_tanh_and_mul.isomer",
                                     "_C::gelu_new.isomer",
                                     "_C::gelu_fast.isomer",
                                     "_C::gelu_quick.isomer",
                                     "_moe_C::topk_softmax.isomer",
                                     "dist::all_reduce",
                                     "dist::all_gather"};
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    iso_error err;
    char *text = NULL, renamed[1024];
    ck_assert_msg(val_torch_schema(engine, name[i], &text, &err) == ISO_OK && text,
                  "%s is not there", name[i]);
    const rule_schema *ours = rule_schemas_find(schemas, name[i]), *theirs = NULL;
    ck_assert_msg(ours != NULL, "%s is not in the table", name[i]);
    snprintf(renamed, sizeof renamed, "test%s", text); /* another namespace */
    ck_assert_msg(rule_schemas_add(schemas, renamed, &err) == ISO_OK, "%s", err.msg);
    snprintf(renamed, sizeof renamed, "test%s", name[i]);
    theirs = rule_schemas_find(schemas, renamed);
    ck_assert(theirs && ours->n_args == theirs->n_args && ours->n_returns == theirs->n_returns &&
              !theirs->writes);
    for (size_t k = 0; k < ours->n_args; k++) {
      const rule_arg *a = &ours->arg[k], *b = &theirs->arg[k];
      ck_assert_str_eq(a->name, b->name);
      ck_assert(a->type == b->type && a->optional == b->optional && a->kwarg_only == b->kwarg_only);
      ck_assert(a->deflt == b->deflt || (a->deflt && b->deflt && rule_term_eq(a->deflt, b->deflt)));
    }
    free(text);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("kernels");
  TCase *c = tcase_create("kernels");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, engine_setup, engine_teardown);
  tcase_add_test(c, attention_by_definition);
  tcase_add_test(c, attention_checks_its_arguments);
  tcase_add_test(c, norms_by_definition);
  tcase_add_test(c, rotary_by_definition);
  tcase_add_test(c, activations_by_definition);
  tcase_add_test(c, routing_breaks_ties_downwards);
  tcase_add_test(c, experts_by_definition);
  tcase_add_test(c, collectives_by_definition);
  tcase_add_test(c, schemas_are_those_of_the_table);
  suite_add_tcase(s, c);
  return run_suite(s);
}
