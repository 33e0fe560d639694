/* Integers of narrow types (needs libtorch): every call by which the prover's definitions are
 * tested, with integers of each type in place of its numbers, has the type and the numbers that
 * libtorch gives, or no definition. */
#include "rules/operators.h"
#include "tests/validate/prove_diff.h"

enum { TIMES = 6 };

static int same_types, same_narrow;

/* `vars` with these kinds in place of floats and of integers that are no indices: of the first
 * variable, and of the others. */
static void retype(const char *vars, const char *kind, const char *others, char *out, size_t cap) {
  size_t n = 0;
  bool first = true;
  for (const char *p = vars; *p && n + 8 < cap; p++) {
    const bool var = !strncmp(p, "(var ", 5);
    const char *name = p + 5, *is = var ? strchr(name, ' ') : NULL;
    if (var && *name != 'i' && strchr("fi", is[1]) && is[2] == ' ') {
      n += (size_t)snprintf(out + n, cap - n, "(var %.*s %s", (int)(is - name), name,
                            first ? kind : others);
      p = is + 1;
      first = false;
    } else {
      out[n++] = *p;
    }
  }
  out[n] = 0;
}

/* Whole numbers tie, and which of equal ones comes first is left open. */
static bool ties(const rule_term *t) {
  bool any = t->kind == RULE_OP && rule_leaves_ties(t);
  for (uint32_t i = 0; i < t->n; i++) any |= ties(t->child[i]);
  return any;
}

static const char *wrong_type(const sample *s, const sc_numbers *got, char *why) {
  const rule_tensor *want = s->want;
  if (got->kind == 'i' && got->integers != want->dtype) {
    snprintf(why, 300, "%s, and libtorch gives %s", rule_dtype_name(got->integers),
             rule_dtype_name(want->dtype));
    return why;
  }
  /* Floats that integers become are float32 there, whose digits are not asked for. */
  if (got->kind == 'f' || ties(rule_set_at(s->set, 0)->lhs)) return NULL;
  return same_values(want, &got->shape, got->kind, got->value, false, why) == OTHER ? why : NULL;
}

static bool look_at(const call *k, iso_rng *rng) {
  char why[300] = "";
  sc_numbers got;
  sample s;
  if (!sample_take(&s, k, rng, false)) return true;
  const sc_point at = {.value_of = value_of, .ctx = &s.v, .machine = true};
  const bool defined = sc_values(rule_set_at(s.set, 0), schemas, &at, &got);
  const char *wrong = defined && s.want ? wrong_type(&s, &got, why) : NULL;
  if (wrong) fprintf(stderr, "%s: %s\n", wrong, s.text);
  same_types += defined && s.want && !wrong && got.kind == 'i';
  same_narrow += defined && s.want && !wrong && got.kind == 'i' && got.integers != RULE_I64;
  free(got.value);
  sample_free(&s);
  return !wrong;
}

START_TEST(integers_have_libtorchs_type_and_wrap_as_there) {
  static const char *const kinds[] = {"i", "i32", "i16", "i8", "u8"};
  const call *k = &calls[_i];
  int wrong = 0;
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    const char *const others[] = {kinds[kind], "i", "i8"};
    for (int o = 0; o < (strstr(k->vars + 1, "(var ") ? 3 : 1); o++) {
      char vars[500];
      retype(k->vars, kinds[kind], others[o], vars, sizeof vars);
      const call typed = {vars, k->text, false};
      for (int time = 0; time < TIMES; time++) {
        iso_rng rng = rng_of(&typed, (uint64_t)time);
        if (!look_at(&typed, &rng)) wrong++, time = TIMES;
      }
    }
  }
  ck_assert_int_eq(wrong, 0);
}
END_TEST

/* A prover that defines nothing would pass. */
START_TEST(many_types_are_seen) {
  printf("%d integers, %d of narrow types\n", same_types, same_narrow);
  ck_assert_msg(same_types > 3000 && same_narrow > 1000, "%d integers, %d of narrow types",
                same_types, same_narrow);
}
END_TEST

int main(void) {
  Suite *s = suite_create("integer_types");
  TCase *t = tcase_create("integer_types");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, integers_have_libtorchs_type_and_wrap_as_there, 0, N_CALLS);
  tcase_add_test(t, many_types_are_seen);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
