/* Meshes and placements in words: what is printed is read as it was, names are matched as a naive
 * matcher matches them, and the rest is refused with its line. */
#include <stdio.h>

#include "tests/lint/placement/ranks.h"
#include "tests/support/suite.h"

enum { SEEDS = 800 };

/* ---- meshes ---- */

START_TEST(a_mesh_has_the_axes_that_are_written) {
  static const struct {
    const char *text;
    uint32_t n_axes, size[4], n; /* no axes: it is refused */
  } of[] = {{"dp=2", 1, {2}, 2},
            {"dp=2,tp=4", 2, {2, 4}, 8},
            {" dp = 2 , tp = 4 ", 2, {2, 4}, 8},
            {"a=1,b=2,c=4,d=8", 4, {1, 2, 4, 8}, 64},
            {"a=65", 0, {0}, 0},
            {"a=8,b=9", 0, {0}, 0},
            {"a=1,b=1,c=1,d=1,e=1", 0, {0}, 0},
            {"a=2,a=2", 0, {0}, 0},
            {"a=0", 0, {0}, 0},
            {"a=-2", 0, {0}, 0},
            {"a=2,", 0, {0}, 0},
            {"a=2 b=2", 0, {0}, 0},
            {"a", 0, {0}, 0},
            {"=2", 0, {0}, 0},
            {"", 0, {0}, 0}};
  for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
    iso_arena a;
    plc_mesh m;
    iso_arena_init(&a);
    err = (iso_error){0};
    const iso_code c = plc_mesh_parse(&a, of[k].text, &m, &err);
    ck_assert_msg((c == ISO_OK) == (of[k].n_axes > 0), "\"%s\"", of[k].text);
    ck_assert((c == ISO_OK) == (err.msg[0] == 0) && !strchr(err.msg, '\n'));
    for (uint32_t i = 0; i < of[k].n_axes; i++) ck_assert_uint_eq(m.size[i], of[k].size[i]);
    ck_assert(c || (m.n_axes == of[k].n_axes && m.n == of[k].n));
    iso_arena_fini(&a);
  }
}
END_TEST

/* The last axis is the fastest. */
START_TEST(ranks_count_along_the_last_axis_first) {
  begin("a=2,b=3,c=4");
  uint32_t rank = 0;
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t j = 0; j < 3; j++)
      for (uint32_t k = 0; k < 4; k++, rank++) {
        ck_assert_uint_eq(plc_along(&ranks.mesh, rank, 0), i);
        ck_assert_uint_eq(plc_along(&ranks.mesh, rank, 1), j);
        ck_assert_uint_eq(plc_along(&ranks.mesh, rank, 2), k);
      }
  ck_assert_uint_eq(plc_stride(&ranks.mesh, 0), 12);
  end();
}
END_TEST

/* ---- placements ---- */

static plc_one draw_one(iso_rng *rng) {
  plc_one o = {.kind = (plc_kind)iso_rng_below(rng, 3)};
  if (o.kind == PLC_P) o.reduce = (plc_reduce)iso_rng_below(rng, 3);
  if (o.kind != PLC_S) return o;
  o.dim = (uint32_t)iso_rng_below(rng, RULE_MAX_RANK);
  const uint64_t how = iso_rng_below(rng, 3);
  if (how) o.blocks = 2 + (uint32_t)iso_rng_below(rng, how == 1 ? PLC_BLOCKS - 1 : PLC_SHARES - 1);
  for (uint32_t i = 0; how == 2 && i < o.blocks; i++)
    o.share[i] = (uint8_t)(1 + iso_rng_below(rng, 255));
  return o;
}

START_TEST(a_placement_that_is_printed_is_read_as_it_was) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 21);
    begin_at_random(&rng);
    plc_place p = plc_replica();
    for (uint32_t a = 0; a < ranks.mesh.n_axes; a++) p.axis[a] = draw_one(&rng);
    /* A mean: the sum is as many times the whole as there are ranks. */
    if (p.axis[0].kind == PLC_P && p.axis[0].reduce == PLC_SUM && seed % 2)
      p.scale = ranks.mesh.size[0];
    const char *line = iso_arena_printf(&report, "x = %s", plc_print(&ranks, &p, &report));
    ck_assert_msg(plc_lines_parse(&ranks, line, "file") == ISO_OK, "%s: %s", line, err.msg);
    const plc_line *read = plc_line_for(&ranks, "x", false);
    ck_assert(read && !read->varies);
    ck_assert_msg(plc_same(&ranks, &p, &read->place), "seed %d: %s is read as %s", (int)seed, line,
                  plc_print(&ranks, &read->place, &report));
    end();
  }
}
END_TEST

START_TEST(placements_that_differ_are_not_the_same) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 22);
    begin_at_random(&rng);
    plc_place p = plc_replica(), q = plc_replica();
    bool replica = true, same = true;
    for (uint32_t a = 0; a < ranks.mesh.n_axes; a++) {
      p.axis[a] = draw_one(&rng);
      q.axis[a] = iso_rng_below(&rng, 4) ? p.axis[a] : draw_one(&rng);
      if (q.axis[a].share[0] && iso_rng_below(&rng, 2)) q.axis[a].share[1] ^= 1;
      replica &= p.axis[a].kind == PLC_R;
      same &= memcmp(&p.axis[a], &q.axis[a], sizeof p.axis[a]) == 0;
    }
    ck_assert_int_eq(plc_same(&ranks, &p, &q), same);
    ck_assert_int_eq(plc_is_replica(&ranks, &p), replica);
    ck_assert_int_eq(plc_is_replica(&ranks, &p),
                     !plc_has(&ranks, &p, PLC_S) && !plc_has(&ranks, &p, PLC_P));
    q.scale = 2;
    ck_assert(!plc_same(&ranks, &p, &q));
    end();
  }
}
END_TEST

/* An axis may be called as a placement is. */
START_TEST(words_of_placements_are_names_of_axes) {
  static const struct {
    const char *line, *is; /* NULL: each rank has its own */
  } of[] = {{"x = V S(1), R P(sum)", "V S(1), R P(sum)"},
            {"x = R, S(0)", "V R, R S(0)"},
            {"x = R S(0)", "V R, R S(0)"},
            {"x = R R", "V R, R R"},
            {"x = V\tR", "V R, R R"},
            {"x = V", NULL},
            {"x = V # own", NULL}};
  for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
    begin("V=2,R=2");
    ck_assert_msg(plc_lines_parse(&ranks, of[k].line, "file") == ISO_OK, "%s", err.msg);
    ck_assert_int_eq(ranks.line[0].varies, !of[k].is);
    if (of[k].is) ck_assert_str_eq(plc_print(&ranks, &ranks.line[0].place, &report), of[k].is);
    end();
  }
}
END_TEST

/* On a mesh of two axes. */
START_TEST(a_line_that_is_no_placement_is_refused_with_its_number) {
  static const char *const good[] = {"x = R",           "x = S(0)",        "x = S(0), P(sum)",
                                     "x = b S(1)",      "x = b R, a S(0)", "output y = V",
                                     "x = a R # why",   "a = b = P(avg)",  "x = S(0:2), R",
                                     "x = S(0:2+1), R", "x = S(0:64)",     "x = S(0:255+1)"},
                           *const bad[] = {"x",         "x =",         "= R",
                                           "x = S",     "x = S(0",     "x = S(-1)",
                                           "x = P(or)", "x = R, R, R", "x = c R",
                                           "x = R R",   "x = S(0:0)",  "x = S(0:2+0)",
                                           "x = R, V",  "x = b R, R",  "x = S(0:1+1+1+1+1)",
                                           "x = S(99)", "x = S(0:65)", "x = S(0:256+1)"};
  for (size_t i = 0; i < sizeof good / sizeof *good + sizeof bad / sizeof *bad; i++) {
    const size_t n = sizeof good / sizeof *good;
    const char *line = i < n ? good[i] : bad[i - n];
    begin("a=2,b=2");
    const char *text = iso_arena_printf(&report, "# first\n\n%s\n", line);
    const iso_code c = plc_lines_parse(&ranks, text, "file");
    ck_assert_msg((c == ISO_OK) == (i < n), "\"%s\"", line);
    if (c) ck_assert_msg(strncmp(err.msg, "file:3: ", 8) == 0, "%s", err.msg);
    end();
  }
}
END_TEST

/* ---- names ---- */

static bool naive_fits(const char *pattern, const char *name) {
  if (!*pattern) return !*name;
  if (*pattern != '*') return *pattern == *name && naive_fits(pattern + 1, name + 1);
  for (;; name++) {
    if (naive_fits(pattern + 1, name)) return true;
    if (!*name) return false;
  }
}

static void draw_word(iso_rng *rng, char *out, size_t n, bool stars) {
  size_t i = 0;
  for (; i < n; i++)
    out[i] = stars && iso_rng_below(rng, 3) == 0 ? '*' : "ab"[iso_rng_below(rng, 2)];
  out[i] = 0;
}

/* The last line that fits speaks of a name; lines before it are overridden. */
START_TEST(a_star_is_any_part_of_a_name_and_the_last_line_counts) {
  size_t hits = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 23);
    char pattern[4][8], name[8], text[128] = "";
    int want = -1;
    begin("a=2");
    draw_word(&rng, name, 1 + iso_rng_below(&rng, 5), false);
    for (int k = 0; k < 4; k++) {
      draw_word(&rng, pattern[k], 1 + iso_rng_below(&rng, 5), true);
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s = R\n",
               k % 2 ? "output " : "", pattern[k]);
      if (k % 2 == 0 && naive_fits(pattern[k], name)) want = k;
    }
    ck_assert(plc_lines_parse(&ranks, text, "file") == ISO_OK);
    const plc_line *line = plc_line_for(&ranks, name, false);
    ck_assert_msg(line == (want < 0 ? NULL : &ranks.line[want]), "seed %d: %s in %s", (int)seed,
                  name, text);
    ck_assert(want < 0 || line->used);
    ck_assert_int_eq(plc_overridden(&ranks, 0), naive_fits(pattern[2], pattern[0]));
    ck_assert(!plc_overridden(&ranks, 2) && !plc_overridden(&ranks, 3));
    hits += want >= 0;
    end();
  }
  ck_assert_uint_gt(hits, SEEDS / 10);
}
END_TEST

/* ---- numbers of ranks ---- */

START_TEST(a_number_near_a_product_of_axes_is_that) {
  begin("a=2,b=3");
  static const double is[] = {1, 2, 3, 6, 0.5, 1.0 / 3, 1.5, 4, 9, 36, 2.0 / 9};
  for (size_t k = 0; k < sizeof is / sizeof *is; k++)
    for (int off = -1; off <= 1; off++)
      ck_assert_msg(fabs(plc_size_near(&ranks, is[k] * (1 + off * 5e-4)) - is[k]) < 1e-12, "%g",
                    is[k]);
  ck_assert(plc_size_near(&ranks, 5) == 0 && plc_size_near(&ranks, 1.005) == 0);
  end();
}
END_TEST

int main(void) {
  Suite *s = suite_create("mesh");
  TCase *t = tcase_create("mesh");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_mesh_has_the_axes_that_are_written);
  tcase_add_test(t, ranks_count_along_the_last_axis_first);
  tcase_add_test(t, a_placement_that_is_printed_is_read_as_it_was);
  tcase_add_test(t, placements_that_differ_are_not_the_same);
  tcase_add_test(t, words_of_placements_are_names_of_axes);
  tcase_add_test(t, a_line_that_is_no_placement_is_refused_with_its_number);
  tcase_add_test(t, a_star_is_any_part_of_a_name_and_the_last_line_counts);
  tcase_add_test(t, a_number_near_a_product_of_axes_is_that);
  suite_add_tcase(s, t);
  return run_suite(s);
}
