/* Tests of capture/looks/structures.h: which structures sizes tell, and which a batch. */
#include <check.h>
#include <string.h>

#include "capture/looks/bits.h"
#include "capture/looks/structures.h"
#include "tests/support/suite.h"

enum { MOST = 64 };

/* Rows as "10/11". */
static looks_part part(const char *rows, char *at) {
  looks_part p = {.at = at, .q = 1};
  for (; *rows; rows++) {
    if (*rows == '/') p.q++;
    else *at++ = *rows == '1';
  }
  p.n = p.stride = (at - p.at) / p.q;
  return p;
}

START_TEST(which_sizes_tell) {
  static const struct {
    const char *rows;
    bool regular;
  } some[] = {{"100000/110000/111000/111100/111110/111111", true},
              {"100000/110000/011000/001100/000110/000011", true},
              {"100/110/111/111", true},
              {"111000/111000/111000/111100/111110/111111", true}, /* a prefix */
              {"111000/111000/111000/000111/000111/000111", true}, /* chunks */
              {"000111/000111/000111/111000/111000/111000", true},
              {"11110/11110/11110/11110/00001", true}, /* the last one is shorter */
              {"100000/110000/111000/000100/000110/000111", true},
              {"010000/011000/011100/011110/011111/000000", true},  /* borders */
              {"100000/110000/101000/101100/101110/100011", false}, /* a tree */
              {"110000/110000/001111/001111/001111/001111", false}, /* segments */
              {"001111/001111/110000/110000/110000/110000", false},
              {"100000/110000/001000/001100/001110/001111", false},
              {"010000/101000/010100/001010/000101/000010", false}, /* neighbours */
              {"100000/010000/001000/000100/000010/000001", true}};
  char at[MOST];
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    const looks_part p = part(some[i].rows, at);
    ck_assert_msg(looks_structure(p, false) > 0, "%s", some[i].rows);
    ck_assert_msg(looks_regular(p, false) == some[i].regular, "%s", some[i].rows);
  }
}
END_TEST

/* What has no structure is not one that sizes tell. */
START_TEST(none) {
  char at[MOST];
  const looks_part p = part("0110/1001/0100/1101", at);
  ck_assert(looks_structure(p, false) == 0 && !looks_regular(p, false));
}
END_TEST

int main(void) {
  Suite *s = suite_create("structures");
  TCase *t = tcase_create("structures");
  tcase_add_test(t, which_sizes_tell);
  tcase_add_test(t, none);
  suite_add_tcase(s, t);
  return run_suite(s);
}
