/* The rule language: examples, round trips, malformed text, cuts at every byte; sets of rules. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egraph/base/rng.h"
#include "rules/rules.h"
#include "tests/support/suite.h"

static const char examples[] =
    "(rule linear-addmm (var a f (N K)) (var c f (K M)) (var b f (M))\n"
    "  (lhs (aten::linear a (aten::transpose.int c 0 1) b)) (rhs (aten::addmm b a c)) (where))\n"
    "(rule split-chunk (var x f (I N)) ; a comment (with parentheses\n"
    "  (lhs (getitem (aten::split.Tensor x S 1) 1)) (rhs (getitem (aten::chunk x 3 1) 1)) (where "
    "(= (* 3 S) N)))\n"
    "(rule block-matmul (var a f (N K)) (var b f (N L)) (var c f (K M)) (var d f (L M))\n"
    "  (lhs (aten::mm (aten::cat (list a b) 1) (aten::cat (list c d) 0)))\n"
    "  (rhs (aten::add.Tensor (aten::mm a c) (aten::mm b d))) (where))\n"
    "(rule no-linear-addmm (var a f (N K)) (var c f (K K)) (var b f (K))\n"
    "  (lhs (aten::linear a c b)) (rhs (aten::addmm b a c)) (where))\n"
    "(rule no-gelu (var x f _) (lhs (aten::gelu x :approximate \"tanh\")) (rhs (aten::gelu x)) "
    "(where))\n"
    "(rule all (evidence tested \"these ranks\") (lhs (aten::mul.Tensor (aten::permute x p) s))\n"
    "  (rhs (aten::add.Tensor (aten::index.Tensor q (list none i)) (aten::sum.dim_IntList q (list "
    "1 -2) true\n"
    "    :dtype float64) :alpha (+ 1 (- K) (* 2 D))))\n"
    "  (var x f (... K _ 4)) (var q c (N _ (* 2 D))) (var i i _) (var m b ()) (attr s float) (attr "
    "p ints) (attr t int)\n"
    "  (where (in i 0 (- N 1)) (= (* (* s s) D) 1) (or (divides 2 K) (not (= (mod K 3) (/ N 2)))) "
    "(in t -1 N)\n"
    "    (and (!= N 1.5) (< 1 K)))\n"
    "  (float unsafe) (literals read) (relative-to vllm::unified_attention aten::gelu))\n";

static rule_set *parse(const char *text) {
  rule_set *s = NULL;
  iso_error err = {0};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "t", &s, &err) == ISO_OK, "%s", err.msg);
  return s;
}

/* One rule's text with all the rest at hand. */
static rule_set *parse_sides(const char *lhs) {
  char text[1024];
  snprintf(text, sizeof text,
           "(rule r (var x f (N K)) (var y f (N K)) (var i i _) (attr p ints) (lhs %s) (rhs x))",
           lhs);
  return parse(text);
}

static char *print_all(const rule_set *s) {
  char *all = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&all, &n);
  for (size_t i = 0; i < rule_set_count(s); i++) {
    char *text = rule_print(rule_set_at(s, i));
    fputs(text, f);
    free(text);
  }
  fclose(f);
  return all;
}

START_TEST(examples_round_trip) {
  rule_set *a = parse(examples);
  ck_assert_uint_eq(rule_set_count(a), 6);
  char *text = print_all(a);
  rule_set *b = parse(text);
  char *again = print_all(b);
  ck_assert_str_eq(text, again);
  for (size_t i = 0; i < rule_set_count(a); i++) {
    const rule *x = rule_set_at(a, i), *y = rule_set_at(b, i);
    ck_assert_str_eq(x->name, y->name);
    ck_assert(rule_term_eq(x->lhs, y->lhs) && rule_term_eq(x->rhs, y->rhs));
    ck_assert(x->n_where == y->n_where && x->claimed == y->claimed && x->scope == y->scope);
    for (uint32_t k = 0; k < x->n_where; k++) ck_assert(rule_term_eq(x->where[k], y->where[k]));
  }
  free(text);
  free(again);
  rule_set_free(a);
  rule_set_free(b);
}
END_TEST

START_TEST(printed_as_expected) {
  rule_set *a = parse(
      "(rule r (rhs (aten::add.Tensor x (aten::relu x) :alpha 2)) (lhs (aten::mul.Scalar x 3.0))\n"
      "(evidence proved \"all shapes\") (var x f (... N (* 2 N) _)))");
  char *text = rule_print(rule_set_at(a, 0));
  ck_assert_str_eq(text,
                   "(rule r\n  (var x f (... N (* 2 N) _))\n  (lhs (aten::mul.Scalar x 3.0))\n"
                   "  (rhs (aten::add.Tensor x (aten::relu x) :alpha 2))\n  (where)\n"
                   "  (evidence proved \"all shapes\"))\n");
  free(text);
  text = rule_side_print(rule_set_at(a, 0), true);
  ck_assert_str_eq(text, "(aten::add.Tensor x (aten::relu x) :alpha 2)");
  free(text);
  rule_set_free(a);
}
END_TEST

START_TEST(everything_is_read) {
  rule_set *s = parse(examples);
  const rule *r = rule_set_at(s, 5);
  ck_assert(r->n_vars == 4 && r->n_attrs == 3 && r->n_where == 4 && r->n_relative == 2);
  ck_assert(r->var[0].leading && r->var[0].n_dims == 3 && r->var[0].dim[1]->kind == RULE_NONE);
  ck_assert(r->var[2].any_shape && r->var[2].kind == 'i' && r->var[2].low->u.i == 0);
  ck_assert(r->var[2].high->kind == RULE_EXPR);
  ck_assert(r->var[3].n_dims == 0 && !r->var[3].any_shape && r->var[3].kind == 'b');
  ck_assert(r->attr[1].kind == 'l' && r->attr[2].kind == 'i');
  ck_assert(r->claimed == RULE_TESTED && r->scope == RULE_THESE_RANKS);
  ck_assert_str_eq(r->float_class, "unsafe");
  ck_assert_str_eq(r->relative_to[1], "aten::gelu");
  ck_assert(r->lhs->child[0]->child[1]->kind == RULE_NAME); /* p: declared a list */
  const rule *m = rule_set_at(s, 2);
  ck_assert(m->lhs->child[0]->child[0]->kind == RULE_LIST);
  rule_set_free(s);
}
END_TEST

/* Rules about integers of two widths are two rules. */
START_TEST(integers_have_a_width) {
  static const char *const kinds[] = {"i", "i32", "i16", "i8", "u8"};
  static const rule_dtype dtypes[] = {RULE_I64, RULE_I32, RULE_I16, RULE_I8, RULE_U8};
  char text[640] = "";
  for (size_t i = 0; i < 5; i++) {
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at,
             "(rule r%zu (var n %s (N)) (lhs (aten::neg (aten::neg n))) (rhs (aten::clone n)))\n",
             i, kinds[i]);
  }
  rule_set *s = parse(text);
  ck_assert_uint_eq(rule_set_count(s), 5);
  for (size_t i = 0; i < 5; i++) {
    const rule_variable *v = &rule_set_at(s, i)->var[0];
    ck_assert_str_eq(rule_variable_kind(v), kinds[i]);
    ck_assert(rule_variable_dtype(v) == dtypes[i]);
    for (size_t k = 0; k < 5; k++) ck_assert(rule_variable_takes(v, dtypes[k]) == (i == k));
    ck_assert(!rule_variable_takes(v, RULE_F32) && !rule_variable_takes(v, RULE_BOOL));
    char *printed = rule_print(rule_set_at(s, i));
    rule_set *again = parse(printed);
    ck_assert(rule_set_at(again, 0)->var[0].narrow == v->narrow);
    rule_set_free(again);
    free(printed);
  }
  rule_set_free(s);
}
END_TEST

/* Spellings of one call are one term. */
START_TEST(one_call_one_term) {
  static const char *const same[][2] = {
      {"(aten::gelu x)", "(aten::gelu x :approximate \"none\")"},
      {"(aten::gelu x)", "(aten::gelu :self x)"},
      {"(aten::add.Tensor x y)", "(aten::add.Tensor x y :alpha 1)"},
      {"(aten::add.Tensor x y)", "(aten::add.Tensor :other y :self x)"},
      {"(aten::mean.dim x K)", "(aten::mean.dim x (list K))"},
      {"(aten::mean.dim x D)", "(aten::mean.dim x (list D) false)"},
      {"(aten::layer_norm x (list K) none none 1)", "(aten::layer_norm x (list K) none none 1.0)"},
      {"(aten::to.dtype x float32 true)",
       "(aten::to.dtype x float32 :memory_format contiguous_format)"},
      {"(aten::arange 3 :device cpu)", "(aten::arange 3)"},
      {"(aten::max_pool2d x 2 (list 2 2))", "(aten::max_pool2d x (list 2 2) 2 0)"},
      {"(aten::pow.Tensor_Scalar x +2)", "(aten::pow.Tensor_Scalar x 2)"},
      {"(aten::mul.Tensor x 5.e-1)", "(aten::mul.Tensor x .5)"}};
  rule_set *a = parse_sides(same[_i][0]), *b = parse_sides(same[_i][1]);
  ck_assert(rule_term_eq(rule_set_at(a, 0)->lhs, rule_set_at(b, 0)->lhs));
  rule_set_free(a);
  rule_set_free(b);
}
END_TEST

static const char *const bad_sides[] = {"",
                                        "z",
                                        "1",
                                        "none",
                                        "\"x\"",
                                        "(list x)",
                                        "()",
                                        "(x)",
                                        "((x))",
                                        "(aten::relu)",
                                        "(aten::relu x y)",
                                        "(aten::relu z)",
                                        "(aten::relu 1)",
                                        "(aten::relu none)",
                                        "(aten::relu (list x))",
                                        "(aten::no x)",
                                        "(aten::relu x :self y)",
                                        "(aten::relu :self)",
                                        "(aten::relu :nope x)",
                                        "(aten::add.Tensor :self x y)",
                                        "(aten::add.Tensor x y 1)",
                                        "(aten::add.Tensor x y :alpha 1 :alpha 1)",
                                        "(aten::cat x)",
                                        "(aten::cat (list 1 x))",
                                        "(aten::chunk x 2)",
                                        "(aten::relu (aten::chunk x 2))",
                                        "(aten::cat (list (aten::topk x 2)))",
                                        "(getitem x 0)",
                                        "(getitem (aten::relu x) 0)",
                                        "(getitem (aten::topk x 2) 2)",
                                        "(getitem (aten::topk x 2) -1)",
                                        "(getitem (aten::topk x 2) K)",
                                        "(getitem (aten::topk x 2))",
                                        "(aten::to.dtype x float33)",
                                        "(aten::softmax.int x 0.5)",
                                        "(aten::softmax.int x p)",
                                        "(aten::softmax.int x (/ K 2))",
                                        "(aten::softmax.int x (* 2 x))",
                                        "(aten::softmax.int x (* 2 0.5))",
                                        "(aten::softmax.int x 99999999999999999999)",
                                        "(aten::mul.Tensor x 1e999)",
                                        "(aten::mul.Tensor x 1x)",
                                        "(aten::mul.Tensor x 0x1p3)",
                                        "(aten::mul.Tensor x 1-2)",
                                        "(aten::mean.dim x (list p))",
                                        "(aten::mean.dim x (list (list 1)))",
                                        "(aten::permute x K)",
                                        "(aten::permute x 0)",
                                        "(aten::sum x :keepdim true)",
                                        "(aten::mean.dim x 1 maybe)",
                                        "(aten::gelu x :approximate tanh)",
                                        "(aten::gelu x :approximate \"\\q\")",
                                        "(aten::gelu x :approximate \"\\x0\")",
                                        "(aten::relu x) x",
                                        "(aten::relu x",
                                        "(aten::relu x))",
                                        "(aten::mul.Tensor x (+ 1))",
                                        "(aten::mul.Tensor x (=))",
                                        "(aten::mul.Tensor x _)",
                                        "(aten::mul.Tensor x ...)",
                                        "(aten::add.Tensor 1 2)"};

START_TEST(malformed_sides) {
  for (size_t i = 0; i < sizeof bad_sides / sizeof *bad_sides; i++) {
    char text[512];
    rule_set *s = NULL;
    iso_error err = {0};
    snprintf(text, sizeof text,
             "\n(rule r (var x f (N K)) (var y f (N K)) (attr p ints)\n (lhs %s) (rhs x))",
             bad_sides[i]);
    const iso_code code = rule_set_parse(text, SIZE_MAX, "file.rules", &s, &err);
    ck_assert_msg(code == ISO_FORMAT && s == NULL, "accepted: %s", bad_sides[i]);
    ck_assert_msg(strncmp(err.msg, "file.rules:3: ", 14) == 0 ||
                      strncmp(err.msg, "file.rules:2: ", 14) == 0,
                  "%s", err.msg);
  }
}
END_TEST

static const char *const bad_clauses[] = {
    "rule",
    ")",
    "\"rule\"",
    "(rule)",
    "(rule r)",
    "(rule (r))",
    "(rules r)",
    "(rule r (lhs x) (rhs x))",
    "(rule r (var x f _) (lhs x))",
    "(rule r (var x f _) (rhs x))",
    "(rule r (var x f _) (lhs x) (rhs x) (lhs x))",
    "(rule r (var x f _) (lhs x x) (rhs x))",
    "(rule r (var x f _) (lhs x) (rhs x) (nope))",
    "(rule r (var x f _) (lhs x) (rhs x) nope)",
    "(rule r (var x f) (lhs x) (rhs x))",
    "(rule r (var x g _) (lhs x) (rhs x))",
    "(rule r (var x f N) (lhs x) (rhs x))",
    "(rule r (var 1 f _) (lhs x) (rhs x))",
    "(rule r (var none f _) (lhs x) (rhs x))",
    "(rule r (var x f _) (var x f _) (lhs x) (rhs x))",
    "(rule r (var x f (-1)) (lhs x) (rhs x))",
    "(rule r (var x f (1.5)) (lhs x) (rhs x))",
    "(rule r (var x f (N ...)) (lhs x) (rhs x))",
    "(rule r (var x f ((/ N 2))) (lhs x) (rhs x))",
    "(rule r (var x f (x)) (lhs x) (rhs x))",
    "(rule r (var x f (N)) (var N f _) (lhs x) (rhs x))",
    "(rule r (var x f (\"N\")) (lhs x) (rhs x))",
    "(rule r (var x f (1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1)) (lhs x) (rhs x))",
    "(rule r (var x f (N)) (attr N float) (lhs x) (rhs x))",
    "(rule r (attr s int) (attr s int) (lhs x) (rhs x))",
    "(rule r (var x f _) (attr x int) (lhs x) (rhs x))",
    "(rule r (var x f _) (attr s str) (lhs x) (rhs x))",
    "(rule r (var x f _) (attr s) (lhs x) (rhs x))",
    "(rule r (var x f _) (lhs x) (rhs x) (where N))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (+ 1 2)))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (= N)))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (= x 1)))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (not 1)))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (= (= 1 1) 1)))",
    "(rule r (var x f _) (lhs x) (rhs x) (where ()))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (in x 0 2)))",
    "(rule r (var x f _) (lhs x) (rhs x) (in y 0 2))",
    "(rule r (var x i _) (lhs x) (rhs x) (in x 0))",
    "(rule r (var x i _) (lhs x) (rhs x) (in x 0 1) (in x 0 1))",
    "(rule r (var x f _) (lhs x) (rhs x) (where) (where))",
    "(rule r (var x f _) (lhs x) (rhs x) (where (and)))",
    "(rule r (var x f _) (lhs x) (rhs x) (evidence))",
    "(rule r (var x f _) (lhs x) (rhs x) (evidence sure))",
    "(rule r (var x f _) (lhs x) (rhs x) (evidence proved \"some shapes\"))",
    "(rule r (var x f _) (lhs x) (rhs x) (evidence proved all))",
    "(rule r (var x f _) (lhs x) (rhs x) (float))",
    "(rule r (var x f _) (lhs x) (rhs x) (float fine))",
    "(rule r (var x f _) (lhs x) (rhs x) (literals))",
    "(rule r (var x f _) (lhs x) (rhs x) (literals written))",
    "(rule r (var x f _) (lhs x) (rhs x) (literals read) (literals read))",
    "(rule r (var x f _) (lhs x) (rhs x) (relative-to (a)))"};

START_TEST(malformed_clauses) {
  for (size_t i = 0; i < sizeof bad_clauses / sizeof *bad_clauses; i++) {
    rule_set *s = NULL;
    iso_error err = {0};
    ck_assert_msg(rule_set_parse(bad_clauses[i], SIZE_MAX, "f", &s, &err) == ISO_FORMAT,
                  "accepted: %s", bad_clauses[i]);
    ck_assert_msg(strncmp(err.msg, "f:1: ", 5) == 0, "%s", err.msg);
  }
}
END_TEST

START_TEST(nesting_is_bounded) {
  for (int depth = 150; depth <= 100000; depth += depth == 150 ? 100 : 99750) {
    char *text = malloc((size_t)depth * 14 + 100), *p = text;
    p += sprintf(p, "(rule r (var x f _) (rhs x) (lhs ");
    for (int i = 0; i < depth; i++) p += sprintf(p, "(aten::relu ");
    p += sprintf(p, "x");
    for (int i = 0; i < depth + 2; i++) *p++ = ')';
    *p = '\0';
    rule_set *s = NULL;
    iso_error err = {0};
    const iso_code code = rule_set_parse(text, SIZE_MAX, "f", &s, &err);
    if (depth == 150) ck_assert_msg(code == ISO_OK, "%s", err.msg);
    else ck_assert_msg(code == ISO_FORMAT && strstr(err.msg, "nested") != NULL, "%s", err.msg);
    rule_set_free(s);
    free(text);
  }
}
END_TEST

START_TEST(any_bytes) {
  rule_set *s = NULL;
  iso_error err = {0};
  ck_assert_int_eq(rule_set_parse("", 0, "f", &s, &err), ISO_OK);
  ck_assert_uint_eq(rule_set_count(s), 0);
  rule_set_free(s);
  ck_assert_int_eq(rule_set_parse("\n(rule\0", 7, "f", &s, &err), ISO_FORMAT);
  ck_assert_str_eq(err.msg, "f:2: a NUL byte in the text");
  iso_rng rng = iso_rng_new(7, 0);
  for (int round = 0; round < 2000; round++) {
    /* Exact room, so that a read past the end is seen. */
    char *text = malloc(sizeof examples);
    memcpy(text, examples, sizeof examples - 1);
    for (int k = 0; k < 3; k++)
      text[iso_rng_below(&rng, sizeof examples - 1)] =
          "()\"; \n:_.xN19-\xff\\"[iso_rng_below(&rng, 16)];
    if (rule_set_parse(text, sizeof examples - 1, "f", &s, &err) == ISO_OK) {
      char *printed = print_all(s);
      rule_set *again = parse(printed);
      ck_assert_uint_eq(rule_set_count(again), rule_set_count(s));
      rule_set_free(again);
      rule_set_free(s);
      free(printed);
    } else {
      ck_assert_int_eq(err.code, ISO_FORMAT);
    }
    free(text);
  }
}
END_TEST

/* A cut is an error unless it falls between rules. */
START_TEST(truncations) {
  const size_t n = sizeof examples - 1;
  size_t accepted = 0;
  for (size_t k = 0; k < n; k++) {
    char *cut = malloc(k + 1);
    memcpy(cut, examples, k);
    rule_set *s = NULL;
    iso_error err = {0};
    if (rule_set_parse(cut, k, "f", &s, &err) == ISO_OK) accepted++;
    else ck_assert_msg(err.code == ISO_FORMAT && strncmp(err.msg, "f:", 2) == 0, "%s", err.msg);
    rule_set_free(s);
    free(cut);
  }
  ck_assert_uint_eq(
      accepted,
      2 * 6); /* nothing; behind each rule, before and after the newline but for the last */
}
END_TEST

/* ---- sets ---- */

START_TEST(duplicates_up_to_names) {
  rule_set *s = parse(
      "(rule a (var x f (N K)) (var y f (K)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
      "x)) (where (= N 2)))"
      "(rule b (var q f (B)) (var p f (A B)) (lhs (aten::add.Tensor p q)) (rhs (aten::add.Tensor q "
      "p)) (where (= A 2)))"
      "(rule c (var x f (N K)) (var y f (K)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
      "x)) (where (= K 2)))"
      "(rule d (var x f (N K)) (var y f (N)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
      "x)) (where (= N 2)))"
      "(rule e (var x f (N K)) (var y i (K)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor y "
      "x)) (where (= N 2)))"
      "(rule a (var x f (N K)) (var y f (K)) (lhs (aten::add.Tensor y x)) (rhs (aten::add.Tensor x "
      "x)) (where (= N 2)))"
      "(rule f (var x f _) (attr s int) (lhs (aten::mul.Scalar x s)) (rhs (aten::mul.Scalar x s)))"
      "(rule f (var x f _) (attr s float) (lhs (aten::mul.Scalar x s)) (rhs (aten::mul.Scalar x "
      "s)))"
      "(rule f (var x f _) (lhs (aten::mul.Scalar x 1)) (rhs (aten::mul.Scalar x 1)))"
      "(rule f (var x f _) (lhs (aten::mul.Scalar x 1.0)) (rhs (aten::mul.Scalar x 1.0)))"
      "(rule f (var x f _) (lhs (aten::mul.Scalar x true)) (rhs (aten::mul.Scalar x true)))");
  const char *want[] = {"a", "c", "d", "e", "a-2", "f", "f-2", "f-3", "f-4", "f-5"};
  ck_assert_uint_eq(rule_set_count(s), 10);
  for (size_t i = 0; i < 10; i++) ck_assert_str_eq(rule_set_at(s, i)->name, want[i]);
  size_t index = 99;
  bool fresh = true;
  const rule *third = rule_set_at(s, 3);
  ck_assert_int_eq(rule_set_add(s, third, &index, &fresh, NULL), ISO_OK);
  ck_assert(index == 3 && !fresh);
  rule_set_evidence(s, 3, RULE_PROVED, RULE_ALL_SHAPES);
  ck_assert(third->claimed == RULE_PROVED && third->scope == RULE_ALL_SHAPES);
  rule_set_free(s);
}
END_TEST

START_TEST(many_rules_and_odd_names) {
  rule_set *s;
  iso_arena a = {0};
  ck_assert_int_eq(rule_set_new(&s, NULL), ISO_OK);
  const rule_variable x = {.name = "x", .kind = 'f', .any_shape = true};
  rule first = {0};
  for (int i = 0; i < 1000; i++) {
    const rule_term *arg[] = {rule_var(&a, 0), rule_int(&a, i)};
    rule r = {.name = "odd (name;\n",
              .n_vars = 1,
              .var = &x,
              .lhs = rule_op(&a, "my::op", arg, 2),
              .rhs = arg[0]};
    size_t index;
    bool fresh;
    ck_assert_int_eq(rule_set_add(s, &r, &index, &fresh, NULL), ISO_OK);
    ck_assert(fresh && index == (size_t)i);
    if (i == 0) first = r;
  }
  const rule *kept = rule_set_at(s, 0);
  ck_assert_str_eq(kept->name, "odd--name--");
  ck_assert(rule_term_eq(kept->lhs, first.lhs));
  iso_arena_fini(&a); /* the set has copies */
  ck_assert_str_eq(rule_set_at(s, 9)->lhs->u.s, "my::op");
  for (size_t i = 1; i < 1000; i++)
    ck_assert_str_ne(rule_set_at(s, i)->name, rule_set_at(s, i - 1)->name);
  rule_set_free(s);
}
END_TEST

START_TEST(files) {
  char path[] = "/tmp/isomer-rules-XXXXXX";
  const int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  close(fd);
  rule_set *a = parse(examples), *b = NULL;
  iso_error err;
  ck_assert_int_eq(rule_set_save(a, path, &err), ISO_OK);
  ck_assert_int_eq(rule_set_load(path, &b, &err), ISO_OK);
  char *x = print_all(a), *y = print_all(b);
  ck_assert_str_eq(x, y);
  free(x);
  free(y);
  rule_set_free(b);
  unlink(path);
  ck_assert_int_eq(rule_set_load(path, &b, &err), ISO_IO);
  ck_assert_ptr_nonnull(strstr(err.msg, path));
  ck_assert_int_eq(rule_set_save(a, "/nowhere/at/all.rules", &err), ISO_IO);
  rule_set_free(a);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rules/parse");
  TCase *t = tcase_create("parse");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, examples_round_trip);
  tcase_add_test(t, printed_as_expected);
  tcase_add_test(t, everything_is_read);
  tcase_add_test(t, integers_have_a_width);
  tcase_add_loop_test(t, one_call_one_term, 0, 12);
  tcase_add_test(t, malformed_sides);
  tcase_add_test(t, malformed_clauses);
  tcase_add_test(t, nesting_is_bounded);
  tcase_add_test(t, any_bytes);
  tcase_add_test(t, truncations);
  tcase_add_test(t, duplicates_up_to_names);
  tcase_add_test(t, many_rules_and_odd_names);
  tcase_add_test(t, files);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
