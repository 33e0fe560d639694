/* What inputs of zeros and ones look like, others that look so, and when a difference on these
 * counts. */
#include "capture/looks/bits.h"
#include "capture/looks/laws.h"

#include "tests/capture/loading_test.h"
#include "tests/support/suite.h"

enum { FORMS = 64 };

/* A tensor of rows "1100/1000". Owns: the caller unrefs. */
static rule_tensor *bits(const char *rows, rule_dtype dtype) {
  const int64_t n = (int64_t)strcspn(rows, "/"), q = ((int64_t)strlen(rows) + 1) / (n + 1);
  const rule_shape s = {.rank = 2, .dim = {q, n}};
  rule_tensor *t = NULL;
  ck_assert_int_eq(rule_tensor_new(dtype, &s, &t, NULL), ISO_OK);
  for (int64_t i = 0; i < q * n; i++)
    rule_tensor_set_int(t, i, rows[i / n * (n + 1) + i % n] == '1');
  return t;
}

/* Ones in row `i`. */
static int64_t ones(const rule_tensor *t, int64_t i) {
  int64_t n = 0;
  for (int64_t j = 0; j < t->shape.dim[1]; j++)
    n += rule_tensor_get_int(t, i * t->shape.dim[1] + j);
  return n;
}

static looks_bits look(const char *rows) {
  rule_tensor *t = bits(rows, RULE_I64);
  const rule_tensor *set[] = {t};
  looks_bits x;
  ck_assert(looks_at_bits(set, 1, &x));
  rule_tensor_unref(t);
  return x;
}

START_TEST(what_rows_look_like) {
  static const struct {
    const char *rows;
    looks_kind kind;
  } some[] = {{"1111/1111", LOOKS_KEPT},
              {"0000/0000", LOOKS_KEPT},
              {"1110/1100", LOOKS_RIGHT},
              {"0111/0011", LOOKS_LEFT},
              {"1111/0011", LOOKS_LEFT},
              {"1010/0110", LOOKS_ANY},
              {"10100", LOOKS_ANY},
              {"0100/0010", LOOKS_ONE_EACH},
              {"1001/0110", LOOKS_ONE_OF},
              {"1000/1100/1110/1111", LOOKS_KEPT},
              {"1111/0111/0011/0001", LOOKS_KEPT},
              {"1100/1110/0111/0011", LOOKS_KEPT},
              {"110000/110000/001100/001100/000011/000011", LOOKS_KEPT},
              {"001111/001111/110011/110011/111100/111100", LOOKS_KEPT},
              {"1110000/1110000/1110000/1111000/1111100/1111110/1111111", LOOKS_KEPT},
              {"10000000/11000000/11100000/11110000/00001000/00001100/00001110/00001111",
               LOOKS_KEPT}, /* chunks */
              {"11000/11100/11111", LOOKS_RIGHT}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    ck_assert_msg(look(some[i].rows).kind == some[i].kind, "%s: %d", some[i].rows,
                  (int)look(some[i].rows).kind);
}
END_TEST

/* Small batches look like triangles, steps and blocks by chance, and the first choices of one like
 * an identity: these are drawn as rows, and are doubtful. */
START_TEST(structures_by_chance) {
  static const struct {
    const char *rows;
    looks_kind kind;
  } some[] = {{"100/110/111", LOOKS_RIGHT},
              {"111/011/001", LOOKS_LEFT},
              {"1100/1100/1110/1111", LOOKS_RIGHT}, /* a prefix */
              {"11100/11110/11111", LOOKS_RIGHT},   /* steps, in a batch */
              {"111000000/111100000/111110000", LOOKS_RIGHT},
              {"111000000/111100000/111110000/111111000", LOOKS_RIGHT},
              {"1000/1100/1010/1011", LOOKS_ANY}, /* a tree */
              {"1101/1011/1110/1111", LOOKS_ANY}, /* a triangle of ones */
              {"1100/1100/0011/0011", LOOKS_ANY}, /* blocks */
              {"100/010/001", LOOKS_ONE_EACH},
              {"100000/010000/001000/000100/000010/000001", LOOKS_ONE_EACH}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    const looks_bits x = look(some[i].rows);
    ck_assert_msg(x.kind == some[i].kind && x.structure && x.doubtful, "%s: %d", some[i].rows,
                  (int)x.kind);
  }
}
END_TEST

/* What rows have in common, and few of them by chance: it is drawn so, and wider without it. */
START_TEST(habits_of_rows) {
  static const struct {
    const char *rows;
    bool few, first, last;
    int64_t count;
  } some[] = {{"10", true, false, false, 0},
              {"110", true, false, false, 0},
              {"10/11", true, false, false, 0},
              {"1110", true, false, false, 0},
              {"110000/111000", true, false, false, 0},
              {"1110000/1100000/1111110", false, false, false, 0},
              {"1110000/1110000/1110000", true, false, false, 0}, /* one row tells as much */
              {"00000100000000000", false, false, false, 0},
              {"1001010", false, true, false, 0},
              {"1001010/1100000/1010001", false, true, false, 0},
              {"0101/1001", false, false, true, 0},
              {"10100/01001/00110", false, false, false, 2},
              {"10100/10100/10100", false, true, false, 0},
              {"10100/01001", false, false, false, 0},
              {"10100/01001/00111", false, false, false, 0}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    looks_bits x = look(some[i].rows), wide = x;
    rule_tensor *t = bits(some[i].rows, RULE_U8);
    const int64_t n = t->shape.dim[1];
    bool other = false;
    const bool few = x.by_chance >> LOOKS_ORDER & 1;
    ck_assert_msg(few == some[i].few && x.first == some[i].first && x.last == some[i].last &&
                      x.count == some[i].count,
                  "%s", some[i].rows);
    const bool wider = looks_widen(&wide);
    ck_assert(wider || !(few || x.first || x.last || x.count));
    for (unsigned form = 0; form < 2 * FORMS; form++) {
      const bool all = form >= FORMS;
      iso_rng rng = iso_rng_new(9, form);
      ck_assert(looks_draw_bits(all ? &wide : &x, form % FORMS, &rng, t));
      for (int64_t k = 0; k < t->shape.dim[0]; k++) {
        const bool keeps = (rule_tensor_get_int(t, k * n) == 1 || !x.first) &&
                           (rule_tensor_get_int(t, k * n + n - 1) == 1 || !x.last) &&
                           (ones(t, k) == x.count || !x.count);
        ck_assert(keeps || all);
        ck_assert(ones(t, k) > 0 && (all || x.full || ones(t, k) < n));
        other |= !keeps || (few && rule_tensor_get_int(t, k * n) == 0);
      }
    }
    ck_assert_msg(other || !(few || x.first || x.last || x.count), "%s", some[i].rows);
    rule_tensor_unref(t);
  }
}
END_TEST

/* What so few squares have in common by chance, and along which dimensions so few values repeat. */
START_TEST(what_is_so_by_chance) {
  enum {
    ORDER = 1 << LOOKS_ORDER,
    REPEATS = 1 << LOOKS_REPEATS,
    DISTINCT = 1 << LOOKS_DISTINCT,
    SYMMETRIC = 1 << LOOKS_SYMMETRIC,
    DIAGONAL = 1 << LOOKS_DIAGONAL,
    HOLLOW = 1 << LOOKS_HOLLOW,
    EITHER = 1 << LOOKS_EITHER
  };
  static const struct {
    const char *rows;
    unsigned by_chance;
  } some[] = {{"010/101/010", SYMMETRIC | HOLLOW | EITHER},
              {"0110/1001/1000/0100", SYMMETRIC | HOLLOW | EITHER},
              {"0101/0010/1100/0110", HOLLOW | EITHER},
              {"101/110/011", DIAGONAL | EITHER},
              {"011010/100101/100110/011001/101001/010110", HOLLOW | EITHER},
              {"0010000/1000000/0000100", DISTINCT},
              {"1010/0101", ORDER},
              {"1100/1100/1100/1100", REPEATS | ORDER | EITHER}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    looks_bits x = look(some[i].rows);
    const unsigned got = x.by_chance;
    rule_tensor *t = bits(some[i].rows, RULE_I64);
    const rule_tensor *const set[] = {t};
    unsigned lost = 0;
    ck_assert_msg(got == some[i].by_chance, "%s: %x", some[i].rows, got);
    ck_assert(looks_widen(&x) == (got != 0));
    for (unsigned form = 0; form < 4 * FORMS; form++) {
      iso_rng rng = iso_rng_new(3, form);
      looks_bits now;
      ck_assert(looks_draw_bits(&x, form, &rng, t) && looks_at_bits(set, 1, &now));
      lost |= now.kind != LOOKS_KEPT && now.kind != look(some[i].rows).kind ? ORDER : 0;
      lost |= now.free == 3 ? REPEATS : 0;
      lost |= now.distinct ? 0 : DISTINCT;
      lost |= (now.symmetric ? 0 : SYMMETRIC) | (now.diagonal ? 0 : DIAGONAL) |
              (now.hollow ? 0 : HOLLOW) | EITHER;
    }
    ck_assert_msg((lost & got) == got, "%s: %x", some[i].rows, lost);
    rule_tensor_unref(t);
  }
}
END_TEST

/* A mask whose sequences go along columns that are equal: of any column once it is widened. */
START_TEST(columns_that_repeat) {
  rule_tensor *t = bits("111/111/111/111/000/000/000", RULE_I64);
  const rule_tensor *const set[] = {t};
  looks_bits x;
  bool apart = false;
  ck_assert(looks_at_bits(set, 1, &x) && x.row == 0 && x.by_chance >> LOOKS_REPEATS & 1);
  x.by_chance &= ~(1u << LOOKS_ORDER); /* as if there were more */
  ck_assert(looks_widen(&x) && x.kind == LOOKS_RIGHT);
  for (unsigned form = 0; form < FORMS; form++) {
    iso_rng rng = iso_rng_new(5, form);
    ck_assert(looks_draw_bits(&x, form, &rng, t));
    for (int64_t k = 0; k < 21; k++) {
      ck_assert(k < 3 || rule_tensor_get_int(t, k) <= rule_tensor_get_int(t, k - 3));
      apart |= k % 3 && rule_tensor_get_int(t, k) != rule_tensor_get_int(t, k - 1);
    }
  }
  ck_assert(apart);
  rule_tensor_unref(t);
}
END_TEST

/* What has its order across rows, too, may be no mask of rows, as rows of which some have one 1. */
START_TEST(what_may_be_otherwise) {
  static const struct {
    const char *rows;
    bool doubtful;
  } some[] = {{"11/10/10", true},        /* a sequence along columns */
              {"111/110/010", true},     /* the same, of which no row is padded */
              {"1110/1100", false},      /* two rows of a batch */
              {"1100/1111/1000", false}, /* three, of any length */
              {"1010/0110/1100", false}, {"0101/0100", true}, /* positions that begin again */
              {"0100/0000/1000", true},                       /* a choice that some have not made */
              {"0100/0010/1000", false}};                     /* which is a look of its own */
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    ck_assert_msg(look(some[i].rows).doubtful == some[i].doubtful, "%s", some[i].rows);
  const rule_shape s = {.rank = 3, .dim = {2, 2, 4}}; /* pictures of other sizes */
  static const char in[] = "1110111011000000";
  rule_tensor *t = NULL;
  looks_bits x;
  ck_assert_int_eq(rule_tensor_new(RULE_BOOL, &s, &t, NULL), ISO_OK);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set_int(t, i, in[i] == '1');
  ck_assert(looks_at_bits((const rule_tensor *const[]){t}, 1, &x) && x.doubtful);
  rule_tensor_unref(t);
}
END_TEST

/* Of long rows few forms are drawn: both ends of the numbers of ones are among the first. */
START_TEST(ends_come_first) {
  const looks_bits x = look("1110000000000000/1100000000000000");
  unsigned seen = 0;
  for (unsigned form = 0; form < 6; form++) {
    rule_tensor *t = bits("1110000000000000/1100000000000000", RULE_I64);
    iso_rng rng = iso_rng_new(3, form);
    int64_t n = 0;
    ck_assert(looks_draw_bits(&x, form, &rng, t));
    for (int64_t j = 0; j < 16; j++) n += rule_tensor_get_int(t, j);
    seen |= 1u << n;
    rule_tensor_unref(t);
  }
  ck_assert(seen >> 1 & 1 && seen >> 15 & 1);
}
END_TEST

/* Draws look as what they were drawn from, whatever the dtype: a row keeps a 1, and has zeros where
 * all captured ones have; all numbers of ones come. */
START_TEST(draws_look_so) {
  static const char *const rows[] = {"1110/1100", "0111/0011", "1111/0011", "1010/0110",
                                     "0100/0010", "1001/0110", "1010/0000", "0110/1001/1000/0100"};
  static const rule_dtype dtype[] = {RULE_I64, RULE_BOOL, RULE_U8};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const looks_bits x = look(rows[i]);
    rule_tensor *t = bits(rows[i], dtype[i % 3]);
    unsigned counts = 0;
    if (x.kind == LOOKS_KEPT) rule_tensor_unref(t);
    for (unsigned form = 0; form < FORMS && x.kind != LOOKS_KEPT; form++) {
      iso_rng rng = iso_rng_new(7, form);
      const rule_tensor *set[] = {t};
      ck_assert(looks_draw_bits(&x, form, &rng, t));
      for (int64_t k = 0; k < t->shape.dim[0] && x.kind != LOOKS_ONE_OF; k++) {
        ck_assert(ones(t, k) > 0 || x.empty);
        ck_assert(ones(t, k) < 4 || x.full);
        ck_assert(ones(t, k) == 1 || x.kind != LOOKS_ONE_EACH);
        counts |= 1u << ones(t, k);
      }
      looks_bits now;
      ck_assert(looks_at_bits(set, 1, &now));
      if (x.kind == LOOKS_LEFT || x.kind == LOOKS_RIGHT)
        ck_assert(now.kind == x.kind || now.kind == LOOKS_KEPT);
      ck_assert(now.symmetric || !x.symmetric || now.kind != LOOKS_ANY);
    }
    if (x.kind == LOOKS_ANY || x.kind == LOOKS_RIGHT) ck_assert_uint_eq(counts & 0xe, 0xe);
    if (x.kind != LOOKS_KEPT) rule_tensor_unref(t);
  }
}
END_TEST

/* What was expanded stays so, and a batch's rows do not stay equal. */
START_TEST(dimensions_that_repeat) {
  const rule_shape s = {.rank = 4, .dim = {2, 1, 3, 5}};
  rule_tensor *t = NULL;
  ck_assert_int_eq(rule_tensor_new(RULE_I64, &s, &t, NULL), ISO_OK);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set_int(t, i, i % 5 == 1 || i % 5 == 3);
  const rule_tensor *set[] = {t};
  looks_bits x;
  bool apart = false;
  ck_assert(looks_at_bits(set, 1, &x));
  ck_assert_int_eq(x.kind, LOOKS_ANY);
  for (unsigned form = 0; form < FORMS; form++) {
    iso_rng rng = iso_rng_new(1, form);
    ck_assert(looks_draw_bits(&x, form, &rng, t));
    for (int64_t i = 0; i < t->numel; i++)
      ck_assert_int_eq(rule_tensor_get_int(t, i), rule_tensor_get_int(t, i / 15 * 15 + i % 5));
    for (int64_t i = 0; i < 5; i++)
      apart |= rule_tensor_get_int(t, i) != rule_tensor_get_int(t, 15 + i);
  }
  ck_assert(apart);
  rule_tensor_unref(t);
}
END_TEST

/* What comes of a mask by a law comes of another mask by it; other numbers come of none. */
START_TEST(what_comes_of_a_mask) {
  static const struct {
    const char *rows;
    int64_t n, value[8], then[8]; /* of the rows, and of "0110/0100" */
    bool none;
  } some[] = {{"1110/1000", 2, {3, 1}, {2, 1}, false},
              {"1110/1000", 2, {2, 0}, {1, 0}, false},
              {"0110/0011", 2, {1, 2}, {1, 1}, false},
              {"0110/1101", 2, {2, 3}, {2, 1}, false},
              {"0110/1101", 2, {2, 1}, {2, 3}, false}, /* zeros */
              {"1110/1000", 3, {0, 3, 4}, {0, 2, 3}, false},
              {"1110/1000", 1, {4}, {3}, false},
              {"1110/1100", 1, {3}, {2}, false},
              {"0111/0001", 8, {0, 1, 2, 3, 0, 0, 0, 1}, {0, 1, 2, 2, 0, 1, 1, 1}, false},
              {"0111/0001", 8, {-1, 0, 1, 2, -1, -1, -1, 0}, {-1, 0, 1, 1, -1, 0, 0, 0}, false},
              {"0111/0001", 8, {0, 0, 1, 2, 0, 0, 0, 0}, {0, 0, 1, 1, 0, 0, 0, 0}, false},
              {"1110/1000", 8, {0, 1, 2, 0, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 0}, false},
              {"1110/1000", 8, {0, 1, 2, 1, 0, 1, 1, 1}, {1, 0, 1, 1, 1, 0, 1, 1}, false},
              {"1100/1000", 8, {2, 3, 1, 1, 2, 1, 1, 1}, {1, 2, 3, 1, 1, 2, 1, 1}, false},
              {"1100/1000", 8, {0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 2, 3, 0, 1, 2, 3}, false},
              {"1110/1000", 2, {5, 1}, {0}, true},
              {"1110/1000", 8, {5, 1, 2, 0, 7, 0, 0, 0}, {0}, true},
              {"1110/1000", 1, {9}, {0}, true}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    const rule_shape s = {.rank = 1, .dim = {some[i].n}};
    rule_tensor *base = bits(some[i].rows, i % 2 ? RULE_F32 : RULE_BOOL), *v,
                *other = bits("0110/0100", RULE_I64);
    looks_law law;
    int64_t got[8];
    ck_assert_int_eq(rule_tensor_new(RULE_I32, &s, &v, NULL), ISO_OK);
    for (int64_t k = 0; k < some[i].n; k++) rule_tensor_set_int(v, k, some[i].value[k]);
    ck_assert(looks_find_law((const rule_tensor *const[]){base}, (const rule_tensor *const[]){v}, 1,
                             (looks_law){0}, &law));
    ck_assert_msg((law.number == 0) == some[i].none, "%zu", i);
    if (law.number) looks_apply_law(law, other, got);
    for (int64_t k = 0; k < some[i].n && law.number; k++)
      ck_assert_msg(got[k] == some[i].then[k], "%zu at %d: %d", i, (int)k, (int)got[k]);
    rule_tensor_unref(base);
    rule_tensor_unref(other);
    rule_tensor_unref(v);
  }
}
END_TEST

/* ---- of two captures ---- */

static void save(const char *file, const char *const *name, rule_tensor *const *t, size_t n) {
  cap_named_tensor named[4];
  for (size_t i = 0; i < n; i++) named[i] = (cap_named_tensor){name[i], t[i]};
  ck_assert_int_eq(cap_tensors_save(in_tmp(file), named, n, NULL), ISO_OK);
}

/* A capture that gives back its inputs. Takes `t`. */
static cap_graph *given(const char *const *name, rule_tensor **t, size_t n) {
  char nodes[1024] = "", outputs[512] = "", text[2048];
  cap_graph *g = NULL;
  for (size_t i = 0; i < n; i++) {
    snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes),
             "%s{'id':'n%zu','op':'input','name':'%s','outputs':[{'shape':[%d,%d],'dtype':'%s'}]}",
             i ? "," : "", i, name[i], (int)t[i]->shape.dim[0], (int)t[i]->shape.dim[1],
             rule_dtype_name(t[i]->dtype));
    snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs),
             "%s{'name':'y%zu','ref':'n%zu'}", i ? "," : "", i, i);
  }
  snprintf(text, sizeof text, "{'format':'isomer-capture','version':1,'nodes':[%s],'outputs':[%s]}",
           nodes, outputs);
  char *json = quotes(text);
  write_bytes("graph.json", json, strlen(json));
  free(json);
  save("weights.safetensors", NULL, NULL, 0);
  save("inputs.safetensors", name, t, n);
  ck_assert_int_eq(cap_load(tmp_dir, schemas, &g, NULL), ISO_OK);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(t[i]);
  return g;
}

static int64_t of_set(const cap_graph *g, size_t set, size_t node, int64_t i) {
  return rule_tensor_get_int(g->input[set * g->n_nodes + node], i);
}

/* Two rows by which padding is no chance, and the same with ones for zeros. */
#define PADDED "1111111110000000/1111111111111111"
#define PADS "0000000001111111/0000000000000000"

/* A mask that both have, and one that has ones for the other's zeros: one set has one mask. */
START_TEST(both_have_the_mask) {
  for (int swapped = 0; swapped < 2; swapped++) {
    static const char *const name[2][1] = {{"m"}, {"gone"}};
    rule_tensor *a = bits(PADDED, RULE_I64),
                *b = bits(swapped ? PADS : PADDED, swapped ? RULE_BOOL : RULE_I64);
    cap_graph *l = given(name[0], &a, 1), *r = given(name[swapped], &b, 1);
    cap_agreement out;
    bool other = false;
    ck_assert_int_eq(cap_agree(l, r, NULL, 3, &out, NULL), ISO_OK);
    ck_assert(out.n_captured == 1 && out.n_said == 1 && out.n_sure > 6 && !out.unsure);
    ck_assert(l->n_sets == out.n_sure && r->n_sets == out.n_sure &&
              out.n_notes == 1 + (size_t)swapped);
    for (size_t s = 0; s < l->n_sets; s++)
      for (int64_t i = 0; i < 32; i++) {
        ck_assert_int_eq(of_set(l, s, 0, i), of_set(r, s, 0, i) ^ swapped);
        other |= of_set(l, s, 0, i) != of_set(l, 0, 0, i);
      }
    ck_assert(other);
    cap_free(l);
    cap_free(r);
  }
}
END_TEST

/* A mask that the other side has twice, in another dtype: one draw for all three, on either side;
 * and further ones, on which a difference is not sure, where the second goes its own way. */
START_TEST(one_has_it_twice) {
  static const char *const name[2][2] = {{"m"}, {"keys", "queries"}};
  for (int side = 0; side < 2; side++) {
    rule_tensor *a = bits(PADDED, RULE_I64),
                *b[2] = {bits(PADDED, RULE_BOOL), bits(PADS, RULE_BOOL)};
    cap_graph *one = given(name[0], &a, 1), *two = given(name[1], b, 2);
    cap_graph *l = side ? two : one, *r = side ? one : two;
    cap_agreement out;
    bool other = false, apart = false;
    ck_assert_int_eq(cap_agree(l, r, NULL, 3, &out, NULL), ISO_OK);
    ck_assert(out.n_said == 1 && out.n_sure > 6 && out.n_sure < l->n_sets && out.n_notes == 3);
    ck_assert_ptr_nonnull(strstr(out.unsure, "(input queries mask any)"));
    for (size_t s = 0; s < l->n_sets; s++)
      for (int64_t i = 0; i < 32; i++) {
        ck_assert_int_eq(of_set(one, s, 0, i), of_set(two, s, 0, i));
        const bool same = of_set(one, s, 0, i) == 1 - of_set(two, s, 1, i);
        ck_assert(same || s >= out.n_sure);
        apart |= !same;
        other |= of_set(one, s, 0, i) != of_set(one, 0, 0, i);
      }
    ck_assert(other && apart);
    cap_free(l);
    cap_free(r);
  }
}
END_TEST

/* Bounds of sequences may have been computed from the mask; positions from 0 on, and a mask that
 * one side alone has, are nothing to draw it with. */
START_TEST(what_may_hang_on_it) {
  static const char *const name[] = {"m", "p"};
  for (int from = 0; from < 2; from++) {
    cap_graph *side[2];
    cap_agreement out;
    for (int k = 0; k < 2; k++) {
      rule_tensor *t[2] = {bits(PADDED, RULE_I64), bits(PADS, RULE_I64)};
      for (int64_t i = 0; i < 32; i++) rule_tensor_set_int(t[1], i, from ? i % 16 * 2 : i);
      side[k] = given(name, t, 2);
    }
    ck_assert_int_eq(cap_agree(side[0], side[1], NULL, 3, &out, NULL), ISO_OK);
    ck_assert((out.n_sure == out.n_said) == from && !out.unsure == !from);
    ck_assert(!from ||
              (strstr(out.unsure, "p, which may hang") && strstr(out.unsure, "mask right")));
    ck_assert(side[0]->n_sets > 6);
    cap_free(side[0]);
    cap_free(side[1]);
  }
  rule_tensor *m = bits(PADDED, RULE_I64), *x = bits("1111/1111", RULE_F32);
  cap_graph *l = given(name, &m, 1), *r = given(name + 1, &x, 1);
  cap_agreement out;
  ck_assert_int_eq(cap_agree(l, r, NULL, 3, &out, NULL), ISO_OK);
  ck_assert_uint_eq(l->n_sets, 1);
  cap_free(l);
  cap_free(r);
}
END_TEST

/* Lengths that one side alone has are drawn with the mask that the other alone has. */
START_TEST(lengths_of_the_mask) {
  static const char *const name[] = {"lengths", "m"};
  rule_tensor *a, *b = bits("111/000/110/100", RULE_I64);
  const rule_shape s = {.rank = 2, .dim = {4, 1}};
  ck_assert_int_eq(rule_tensor_new(RULE_I32, &s, &a, NULL), ISO_OK);
  for (int64_t i = 0; i < 4; i++) rule_tensor_set_int(a, i, ones(b, i));
  cap_graph *l = given(name, &a, 1), *r = given(name + 1, &b, 1);
  cap_agreement out;
  unsigned counts = 0;
  ck_assert_int_eq(cap_agree(l, r, NULL, 3, &out, NULL), ISO_OK);
  ck_assert(out.n_said == 1 && l->n_sets > 6 && l->node[0].kept && r->node[0].kept);
  bool apart = false;
  for (size_t k = 0; k < l->n_sets; k++)
    for (int64_t i = 0; i < 4; i++) {
      const bool same = of_set(l, k, 0, i) == ones(r->input[k], i);
      ck_assert(same || k >= out.n_sure); /* so few may be lengths by chance */
      apart |= !same;
      counts |= 1u << of_set(l, k, 0, i);
    }
  ck_assert_uint_eq(counts, 0xf);
  ck_assert(apart && strstr(out.unsure, "by chance"));
  cap_free(l);
  cap_free(r);
}
END_TEST

/* Ids that are one number exactly where the mask hides them are so wherever it is drawn. */
START_TEST(ids_follow_the_mask) {
  static const char *const name[] = {"m", "ids"};
  cap_graph *side[2];
  cap_agreement out;
  bool other = false;
  for (int k = 0; k < 2; k++) {
    rule_tensor *t[2] = {bits("1110/1000", k ? RULE_BOOL : RULE_I64), bits("0000/0000", RULE_I32)};
    static const int64_t ids[] = {5, 7, 5, -100, 9, -100, -100, -100};
    for (int64_t i = 0; i < 8; i++) rule_tensor_set_int(t[1], i, ids[i]);
    side[k] = given(name, t, 2);
  }
  ck_assert_int_eq(cap_agree(side[0], side[1], NULL, 3, &out, NULL), ISO_OK);
  ck_assert(side[0]->n_sets > 6 && !side[0]->node[1].kept);
  for (size_t s = 0; s < side[0]->n_sets; s++)
    for (int64_t i = 0; i < 8; i++) {
      ck_assert((of_set(side[0], s, 0, i) == 0) == (of_set(side[0], s, 1, i) == -100));
      ck_assert_int_eq(of_set(side[0], s, 1, i), of_set(side[1], s, 1, i));
      ck_assert_int_eq(of_set(side[0], s, 0, i), of_set(side[1], s, 0, i));
      other |= of_set(side[0], s, 1, i) != of_set(side[0], 0, 1, i);
    }
  ck_assert(other);
  for (int k = 0; k < 2; k++) cap_free(side[k]);
}
END_TEST

/* Floats that are zeros and ones alone, some of both, are such; where a graph has no other numbers
 * it is a function of them. */
START_TEST(floats_may_be_flags) {
  static const char *const name[] = {"m", "x"};
  for (int alone = 0; alone < 2; alone++) {
    cap_graph *side[2];
    cap_agreement out;
    for (int k = 0; k < 2; k++) {
      rule_tensor *t[2] = {bits("1011/0110", RULE_F32), bits("1000/0000", RULE_F32)};
      rule_tensor_set(t[1], 1, 0.5);
      side[k] = given(name, t, alone ? 1 : 2);
      if (alone) rule_tensor_unref(t[1]);
    }
    ck_assert_int_eq(cap_agree(side[0], side[1], NULL, 3, &out, NULL), ISO_OK);
    ck_assert((side[0]->n_sets > 6) == !alone && side[0]->node[0].kept == !alone);
    ck_assert(alone || !side[0]->node[1].kept);
    for (size_t s = 0; s < side[0]->n_sets; s++)
      ck_assert(rule_tensor_same_bytes(side[0]->input[s * side[0]->n_nodes],
                                       side[1]->input[s * side[1]->n_nodes]));
    for (int k = 0; k < 2; k++) cap_free(side[k]);
  }
}
END_TEST

/* Where no row was captured full, or empty, ones may be what is left out. */
START_TEST(which_is_left_out) {
  static const char *const name[] = {"m"};
  rule_tensor *a = bits("1110/1100", RULE_I64), *b = bits("1110/1100", RULE_I64);
  cap_graph *l = given(name, &a, 1), *r = given(name, &b, 1);
  cap_agreement out;
  bool full = false;
  ck_assert_int_eq(cap_agree(l, r, NULL, 3, &out, NULL), ISO_OK);
  ck_assert(out.unsure && out.n_sure > out.n_said && out.n_sure < l->n_sets);
  for (size_t s = 0; s < l->n_sets; s++)
    for (int64_t i = 0; i < 2; i++) {
      const bool all = ones(l->input[s], i) == 4;
      ck_assert(!all || s >= out.n_sure);
      full |= all;
    }
  ck_assert(full);
  cap_free(l);
  cap_free(r);
}
END_TEST

int main(void) {
  Suite *s = suite_create("looks");
  TCase *t = tcase_create("looks");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, what_rows_look_like);
  tcase_add_test(t, structures_by_chance);
  tcase_add_test(t, habits_of_rows);
  tcase_add_test(t, what_is_so_by_chance);
  tcase_add_test(t, columns_that_repeat);
  tcase_add_test(t, what_may_be_otherwise);
  tcase_add_test(t, ends_come_first);
  tcase_add_test(t, draws_look_so);
  tcase_add_test(t, dimensions_that_repeat);
  tcase_add_test(t, what_comes_of_a_mask);
  tcase_add_test(t, both_have_the_mask);
  tcase_add_test(t, one_has_it_twice);
  tcase_add_test(t, what_may_hang_on_it);
  tcase_add_test(t, lengths_of_the_mask);
  tcase_add_test(t, ids_follow_the_mask);
  tcase_add_test(t, floats_may_be_flags);
  tcase_add_test(t, which_is_left_out);
  suite_add_tcase(s, t);
  return run_suite(s);
}
