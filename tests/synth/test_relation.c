/* Relations by value: a relation found evaluates to the target, bit for bit; for a target that is
 * no layout of the sources none is found. One kind of relation each. */
#include "tests/synth/relation_world.h"
#include "tests/support/suite.h"

/* ---- one relation each ---- */

START_TEST(whole_tensors) {
  world w;
  setup(&w, 1);
  uint32_t a = add(&w, "a", noise(&w, RULE_F32, SHAPE(6, 8)));
  uint32_t b = add(&w, "b", noise(&w, RULE_BF16, SHAPE(2, 3, 4)));
  w.src[w.n++] = NULL;
  expect(&w, rule_tensor_ref(w.src[a]), NULL, 0);
  ck_assert(is_var(w.got.term, a) && !w.got.tied);
  expect(&w, turned(w.src[a]), NULL, 1);
  ck_assert_str_eq(w.got.term->u.s, "aten::transpose.int");
  expect(&w, op_reshape(w.src[a], SHAPE(6, 1, 8)), NULL, 1);
  ck_assert_str_eq(w.got.term->u.s, "aten::unsqueeze");
  ck_assert_int_eq(w.got.term->child[1]->u.i, 1);
  expect(&w, op_reshape(w.src[a], SHAPE(4, 12)), NULL, 1);
  ck_assert_str_eq(w.got.term->u.s, "aten::reshape");
  expect(&w, op_reshape(w.src[b], SHAPE(24)), NULL, 1);
  expect(&w, op_permute(w.src[b], (int64_t[]){2, 0, 1}), NULL, 1);
  ck_assert_str_eq(w.got.term->u.s, "aten::permute");
  teardown(&w);
}
END_TEST

START_TEST(interleaved_heads) {
  enum { H = 4, D = 6, K = 10 };
  world w;
  setup(&w, 2);
  uint32_t f = add(&w, "query_key_value.weight", noise(&w, RULE_F32, SHAPE(H * 3 * D, K)));
  uint32_t b = add(&w, "query_key_value.bias", noise(&w, RULE_F32, SHAPE(H * 3 * D)));
  rule_tensor *t = after_permute(op_reshape(w.src[f], SHAPE(H, 3, D, K)), (int64_t[]){1, 0, 2, 3});
  t = after_reshape(t, SHAPE(3 * H * D, K));
  expect(&w, rule_tensor_ref(t), NULL, 3);
  ck_assert_uint_eq(count_ops(w.got.term, "aten::permute"), 1);
  expect(&w, turned(t), NULL, 3);
  expect(&w, op_slice(t, 0, H * D, 2 * H * D), "k_proj.weight", 0); /* all of k: strided rows */
  ck_assert_uint_eq(count_ops(w.got.term, "aten::cat"), 0);
  rule_tensor_unref(t);
  t = after_permute(op_reshape(w.src[b], SHAPE(H, 3, D)), (int64_t[]){1, 0, 2});
  expect(&w, after_reshape(t, SHAPE(3 * H * D)), NULL, 3);
  teardown(&w);
}
END_TEST

/* Grouped: for each of KV heads G query heads, a key head and a value head. */
START_TEST(grouped_heads) {
  enum { KV = 5, G = 3, D = 4, K = 9 };
  world w;
  setup(&w, 3);
  add(&w, "qkv.weight", noise(&w, RULE_F32, SHAPE(KV * (G + 2) * D, K)));
  rule_tensor *g = op_reshape(w.src[0], SHAPE(KV, G + 2, D, K));
  rule_tensor *part[3] = {after_reshape(op_slice(g, 1, 0, G), SHAPE(KV * G * D, K)),
                          after_reshape(op_slice(g, 1, G, G + 1), SHAPE(KV * D, K)),
                          after_reshape(op_slice(g, 1, G + 1, G + 2), SHAPE(KV * D, K))};
  for (int i = 0; i < 3; i++) {
    expect(&w, rule_tensor_ref(part[i]), NULL, 3);
    ck_assert_uint_eq(count_ops(w.got.term, "aten::slice.Tensor"), 1);
  }
  expect(&w, op_cat(part, 3, 0), NULL, 10);
  expect(&w, turned(part[0]), NULL, 0);
  teardown(&w);
  rule_tensor_unref(g);

  /* and back: the grouped tensor from its parts */
  world v;
  setup(&v, 3);
  add(&v, "q", part[0]);
  add(&v, "k", part[1]);
  add(&v, "v", part[2]);
  rule_tensor *x[3] = {op_reshape(part[0], SHAPE(KV, G, D, K)),
                       op_reshape(part[1], SHAPE(KV, 1, D, K)),
                       op_reshape(part[2], SHAPE(KV, 1, D, K))};
  expect(&v, after_reshape(after_cat(x, 3, 1), SHAPE(KV * (G + 2) * D, K)), NULL, 5);
  ck_assert(!v.got.tied);
  teardown(&v);
}
END_TEST

START_TEST(slices) {
  world w;
  setup(&w, 4);
  add(&w, NULL, noise(&w, RULE_F32, SHAPE(20, 13)));
  add(&w, NULL, noise(&w, RULE_I64, SHAPE(3, 5, 7)));
  add(&w, NULL, noise(&w, RULE_F64, SHAPE(50)));
  expect(&w, op_slice(w.src[0], 0, 3, 11), NULL, 1);
  expect(&w, op_slice(w.src[0], 1, 3, 11), NULL, 1);
  expect(&w, after_slice(turned(w.src[0]), 0, 3, 11), NULL, 2);
  expect(&w, after_slice(turned(w.src[0]), 1, 0, 20), NULL, 1);
  expect(&w, after_slice(op_slice(w.src[0], 0, 3, 11), 1, 2, 9), NULL, 2);
  expect(&w, after_permute(after_slice(op_slice(w.src[0], 0, 3, 11), 1, 2, 9), (int64_t[]){1, 0}),
         NULL, 3);
  for (uint32_t d = 0; d < 3; d++) expect(&w, op_slice(w.src[1], d, 1, 3), NULL, 1);
  expect(&w, after_reshape(op_slice(w.src[1], 0, 1, 2), SHAPE(5, 7)), NULL, 2);
  expect(&w, op_slice(w.src[2], 0, 7, 19), NULL, 1);
  expect(&w, after_reshape(op_slice(w.src[2], 0, 7, 19), SHAPE(1, 12)), NULL, 2);
  expect(&w, after_reshape(op_slice(w.src[0], 0, 4, 5), SHAPE(13)), NULL, 2);
  teardown(&w);
}
END_TEST

START_TEST(fused_projections) {
  world w;
  setup(&w, 5);
  uint32_t q =
      add(&w, "model.layers.0.self_attn.q_proj.weight", noise(&w, RULE_F32, SHAPE(48, 32)));
  uint32_t k =
      add(&w, "model.layers.0.self_attn.k_proj.weight", noise(&w, RULE_F32, SHAPE(24, 32)));
  uint32_t v =
      add(&w, "model.layers.0.self_attn.v_proj.weight", noise(&w, RULE_F32, SHAPE(24, 32)));
  rule_tensor *f = op_cat((rule_tensor *[]){w.src[q], w.src[k], w.src[v]}, 3, 0);
  expect(&w, rule_tensor_ref(f), "model.layers.0.self_attn.qkv_proj.weight", 1);
  ck_assert(!w.got.tied);
  expect(&w, turned(f), NULL, 4); /* cat along 1 of three transposes */
  /* one of two ranks: half of each */
  rule_tensor *half[3] = {op_slice(w.src[q], 0, 24, 48), op_slice(w.src[k], 0, 12, 24),
                          op_slice(w.src[v], 0, 12, 24)};
  expect(&w, after_cat(half, 3, 0), NULL, 4);
  /* three dimensions from matrices: a stack */
  expect(&w, after_reshape(op_cat((rule_tensor *[]){w.src[k], w.src[v]}, 2, 0), SHAPE(2, 24, 32)),
         NULL, 2);
  rule_tensor_unref(f);
  teardown(&w);
}
END_TEST

/* The heads of q and k with every second line first, as one side keeps them that rotates halves,
 * fused with v as it is. */
START_TEST(fused_and_turned) {
  enum { K = 24 };
  world w;
  setup(&w, 6);
  uint32_t q = add(&w, "q_proj.weight", noise(&w, RULE_F32, SHAPE(4 * 16, K)));
  uint32_t k = add(&w, "k_proj.weight", noise(&w, RULE_F32, SHAPE(2 * 16, K)));
  uint32_t v = add(&w, "v_proj.weight", noise(&w, RULE_F32, SHAPE(2 * 16, K)));
  for (int64_t parts = 2; parts <= 8; parts *= 2) {
    rule_tensor *turn[3] = {after_permute(op_reshape(w.src[q], SHAPE(4, 16 / parts, parts, K)),
                                          (int64_t[]){0, 2, 1, 3}),
                            after_permute(op_reshape(w.src[k], SHAPE(2, 16 / parts, parts, K)),
                                          (int64_t[]){0, 2, 1, 3}),
                            rule_tensor_ref(w.src[v])};
    for (int i = 0; i < 2; i++) turn[i] = after_reshape(turn[i], SHAPE(i ? 32 : 64, K));
    rule_tensor *f = op_cat(turn, 3, 0);
    expect(&w, rule_tensor_ref(f), "qkv_proj.weight", 7);
    ck_assert_uint_eq(count_ops(w.got.term, "aten::permute"), 2);
    expect(&w, op_slice(f, 0, 16, 112), "qkv_proj.weight", 9); /* whole heads of it */
    rule_tensor_unref(f);
    for (int i = 0; i < 3; i++) rule_tensor_unref(turn[i]);
  }
  teardown(&w);
}
END_TEST

/* Rotary tables: [1, 7, 12] from a cache [40, 12] of cos and sin. */
START_TEST(constant_tables) {
  world w;
  setup(&w, 6);
  add(&w, "cos_sin_cache", noise(&w, RULE_F32, SHAPE(40, 12)));
  for (int64_t r0 = 0; r0 < 6; r0 += 5)
    for (int64_t c0 = 0; c0 < 12; c0 += 6) {
      rule_tensor *rows = op_slice(w.src[0], 0, r0, r0 + 7);
      rule_tensor *c = op_slice(rows, 1, c0, c0 + 6);
      rule_tensor *t = op_cat((rule_tensor *[]){c, c}, 2, 1);
      expect(&w, rule_tensor_ref(t), NULL,
             5); /* cat, two slices of columns, each of the slice of rows */
      expect(&w, op_reshape(t, SHAPE(1, 7, 12)), NULL, 6);
      ck_assert_str_eq(w.got.term->u.s, "aten::unsqueeze");
      expect(&w, turned(t), NULL, 0);
      expect(&w, rule_tensor_ref(c), NULL, 2);
      rule_tensor_unref(t);
      rule_tensor_unref(c);
      rule_tensor_unref(rows);
    }
  teardown(&w);
  setup(&w, 7);
  uint32_t c = add(&w, "cos", noise(&w, RULE_F32, SHAPE(7, 6)));
  rule_tensor *t = op_cat((rule_tensor *[]){w.src[c], w.src[c]}, 2, 1);
  expect(&w, op_reshape(t, SHAPE(1, 7, 12)), NULL, 2);
  rule_tensor_unref(t);
  teardown(&w);
}
END_TEST

/* ---- ties ---- */

START_TEST(names_break_ties) {
  world w;
  setup(&w, 8);
  rule_tensor *same_w = noise(&w, RULE_F32, SHAPE(8, 4));
  add(&w, "lm_head.weight", same_w);
  uint32_t e = add(&w, "model.embed_tokens.weight", rule_tensor_ref(same_w));
  expect(&w, rule_tensor_ref(same_w), "embed_tokens.weight", 0);
  ck_assert(is_var(w.got.term, e) && w.got.tied);
  expect(&w, rule_tensor_ref(same_w), NULL, 0);
  ck_assert(is_var(w.got.term, 0) && w.got.tied);
  teardown(&w);

  setup(&w, 9);
  const char *norm[] = {"model.layers.0.input_layernorm.weight",
                        "model.layers.0.post_attention_layernorm.weight",
                        "model.layers.1.input_layernorm.weight",
                        "model.layers.1.post_attention_layernorm.weight", "model.norm.weight"};
  for (int i = 0; i < 5; i++) add(&w, norm[i], filled(SHAPE(48), 1.0));
  for (int i = 0; i < 5; i++) {
    expect(&w, filled(SHAPE(48), 1.0), norm[i], 0);
    ck_assert(is_var(w.got.term, i) && w.got.tied);
  }
  expect(&w, filled(SHAPE(48), 1.0), "layers.1.input_layernorm.weight", 0);
  ck_assert(is_var(w.got.term, 2));
  expect_none(&w, filled(SHAPE(48), 2.0));
  expect(&w, filled(SHAPE(30), 1.0), NULL, 1);
  teardown(&w);
}
END_TEST

START_TEST(zero_biases) {
  world w;
  setup(&w, 10);
  const char *name[] = {"layers.0.mlp.up_proj.bias",      "layers.0.self_attn.q_proj.bias",
                        "layers.0.self_attn.k_proj.bias", "layers.0.self_attn.v_proj.bias",
                        "layers.1.mlp.up_proj.bias",      "layers.1.self_attn.q_proj.bias",
                        "layers.1.self_attn.k_proj.bias", "layers.1.self_attn.v_proj.bias"};
  int64_t size[] = {96, 48, 24, 24, 96, 48, 24, 24};
  for (int i = 0; i < 8; i++) add(&w, name[i], filled(SHAPE(size[i]), 0.0));
  expect(&w, filled(SHAPE(96), 0.0), "model.layers.1.self_attn.qkv_proj.bias", 1);
  ck_assert(w.got.tied && mentions(w.got.term, 5) && mentions(w.got.term, 6) &&
            mentions(w.got.term, 7));
  expect(&w, filled(SHAPE(96), 0.0), "model.layers.1.mlp.up_proj.bias", 0);
  ck_assert(is_var(w.got.term, 4));
  expect(&w, filled(SHAPE(96), 0.0), NULL, 0);
  ck_assert(is_var(w.got.term, 0));
  expect_none(&w, filled(SHAPE(96), -0.0));
  teardown(&w);

  /* a random q, a zero k, a random v: the stretch of zeros goes by name */
  setup(&w, 11);
  uint32_t q = add(&w, "layers.1.q_proj.bias", noise(&w, RULE_F32, SHAPE(48)));
  add(&w, "layers.0.k_proj.bias", filled(SHAPE(24), 0.0));
  uint32_t k = add(&w, "layers.1.k_proj.bias", filled(SHAPE(24), 0.0));
  uint32_t v = add(&w, "layers.1.v_proj.bias", noise(&w, RULE_F32, SHAPE(24)));
  expect(&w, op_cat((rule_tensor *[]){w.src[q], w.src[k], w.src[v]}, 3, 0),
         "layers.1.qkv_proj.bias", 1);
  ck_assert(mentions(w.got.term, k) && w.got.tied);
  teardown(&w);
}
END_TEST

/* ---- what is none ---- */

START_TEST(no_relation) {
  world w;
  setup(&w, 12);
  add(&w, NULL, noise(&w, RULE_F32, SHAPE(16, 12)));
  add(&w, NULL, noise(&w, RULE_F32, SHAPE(8, 12)));
  rule_tensor *all = op_cat(w.src, 2, 0);
  expect(&w, rule_tensor_ref(all), NULL, 1);
  for (int64_t i = 0; i < all->numel; i += 7) {
    rule_tensor *t = op_reshape(all, all->shape);
    ((unsigned char *)t->data)[i * 4 + 1] ^= 0x10;
    expect_none(&w, turned(t));
    expect_none(&w, t);
  }
  rule_tensor_unref(all);
  rule_tensor *bits = make(RULE_I32, SHAPE(16, 12)); /* same bytes, another dtype */
  memcpy(bits->data, w.src[0]->data, 16 * 12 * 4);
  expect_none(&w, bits);
  teardown(&w);
}
END_TEST

START_TEST(signs_and_nans) {
  world w;
  setup(&w, 13);
  rule_tensor *t = filled(SHAPE(2, 4), 1.0);
  rule_tensor_set(t, 1, 0.0);
  rule_tensor_set(t, 2, (double)NAN);
  rule_tensor_set(t, 5, 3.0);
  add(&w, NULL, t);
  expect(&w, turned(t), NULL, 1);
  rule_tensor *u = op_reshape(t, t->shape);
  rule_tensor_set(u, 1, -0.0);
  expect_none(&w, u);
  teardown(&w);
}
END_TEST

START_TEST(empty_tensors) {
  world w;
  setup(&w, 14);
  expect_none(&w, filled(SHAPE(3), 1.0)); /* no sources at all */
  teardown(&w);
  setup(&w, 14);
  add(&w, NULL, filled(SHAPE(3), 1.0));
  uint32_t e = add(&w, NULL, make(RULE_F32, SHAPE(0, 4)));
  add(&w, NULL, filled(shape_of(0, NULL), 5.0));
  expect(&w, make(RULE_F32, SHAPE(0, 4)), NULL, 0);
  ck_assert(is_var(w.got.term, e) && !w.got.tied);
  expect_none(&w, make(RULE_F32, SHAPE(4, 0)));
  expect_none(&w, make(RULE_F32, SHAPE(0)));
  expect(&w, filled(shape_of(0, NULL), 5.0), NULL, 0);
  expect(&w, filled(SHAPE(1, 1), 5.0), NULL, 1);
  expect_none(&w, filled(shape_of(0, NULL), 6.0));
  expect(&w, filled(SHAPE(1), 1.0), NULL, 1);
  teardown(&w);
}
END_TEST

/* Tables of few different rows: many candidates everywhere, and still exact and quick. */
START_TEST(repetitive_values) {
  world w;
  setup(&w, 15);
  for (int k = 0; k < 4; k++) {
    rule_tensor *t = make(RULE_BOOL, SHAPE(300, 40));
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, (double)((i / 40 * (k + 1) + i % 40) % 3 == 0));
    add(&w, NULL, t);
  }
  add(&w, NULL, filled(SHAPE(4000), 1.0));
  expect(&w, op_slice(w.src[1], 0, 17, 200), NULL, 0);
  expect(&w, op_slice(w.src[2], 1, 5, 23), NULL, 0);
  expect(&w, filled(SHAPE(3999), 1.0), NULL, 1);
  rule_tensor *r = op_slice(w.src[3], 0, 0, 100);
  rule_tensor_set(r, 777, 1.0 - rule_tensor_get(r, 777));
  relate(&w, r, NULL);
  rule_tensor_unref(r);
  teardown(&w);
}
END_TEST

int main(void) {
  Suite *s = suite_create("relation");
  TCase *c = tcase_create("relation");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, whole_tensors);
  tcase_add_test(c, interleaved_heads);
  tcase_add_test(c, grouped_heads);
  tcase_add_test(c, slices);
  tcase_add_test(c, fused_projections);
  tcase_add_test(c, fused_and_turned);
  tcase_add_test(c, constant_tables);
  tcase_add_test(c, names_break_ties);
  tcase_add_test(c, zero_biases);
  tcase_add_test(c, no_relation);
  tcase_add_test(c, signs_and_nans);
  tcase_add_test(c, empty_tensors);
  tcase_add_test(c, repetitive_values);
  suite_add_tcase(s, c);
  return run_suite(s);
}
