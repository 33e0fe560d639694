/* Every definition of the prover against the operator itself (needs libtorch), in float64, on small
 * random shapes. */
#include <unistd.h>

#include "tests/validate/prove_odd.h"
#include "validate/sample/sample_int.h"

/* With DIFF_FIRST the first thing wrong ends the program: that is all that mutants_text.py asks. */
static bool fine(bool yes) {
  if (!yes && getenv("DIFF_FIRST")) _exit(1);
  return yes;
}

START_TEST(definitions_are_what_operators_do) {
  const call *k = &calls[_i];
  int good = 0, named = 0, open = 0;
  for (int seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = rng_of(k, (uint64_t)seed);
    char why[300] = "";
    sample s;
    ck_assert_msg(sample_take(&s, k, &rng, true), "no rule: %s", s.text);
    const outcome o = sample_compare(&s, why);
    ck_assert_msg(fine(o != OTHER), "%s: %s", why, s.text);
    good += o == SAME;
    named += s.reaches;
    open += s.open && some_value(s.want);
    sample_free(&s);
  }
  ck_assert_msg(fine(k->less || named >= open), "with names for sizes only %d of %d samples of %s",
                named, open, k->text);
  ck_assert_msg(fine(good >= LEAST_GOOD), "only %d samples of %s", good, k->text);
}
END_TEST

enum { ODD_SEEDS = 60 };

START_TEST(what_operators_refuse_has_no_value) {
  const call *k = &calls[_i];
  const char *more =
      getenv("ODD"); /* how many, for a campaign, which goes on after what is wrong */
  int wrong = 0;
  for (int seed = 0; seed < (more ? atoi(more) : ODD_SEEDS); seed++) {
    iso_rng rng = rng_of(k, (uint64_t)seed);
    char why[300] = "";
    odd_call odd;
    sample s;
    if (!make_odd(k, &rng, &odd) ||
        !sample_take(&s, &(call){odd.vars, odd.text, false}, &rng, false))
      continue;
    if (odd_compare(&s, why) == OTHER && wrong++ == 0) fprintf(stderr, "%s: %s\n", why, s.text);
    sample_free(&s);
    if (wrong && !more) break;
  }
  ck_assert_msg(fine(wrong == 0), "%d changed calls of %s", wrong, k->text);
}
END_TEST

/* Calls that some slip in a definition would let pass. */
START_TEST(refused_calls_have_no_value) {
  const call *k = &refusals[_i];
  for (int seed = 0; seed < 6; seed++) {
    iso_rng rng = rng_of(k, (uint64_t)seed);
    char why[300] = "";
    sample s;
    ck_assert_msg(sample_take(&s, k, &rng, false), "no rule: %s", k->text);
    ck_assert_msg(fine(!s.want), "libtorch does not refuse %s", s.text);
    ck_assert_msg(fine(odd_compare(&s, why) != OTHER), "%s: %s", why, s.text);
    sample_free(&s);
  }
}
END_TEST

/* `text` with a term that has no definition in each place of the variable `name`. */
static void without(const char *text, const char *name, char *out, size_t cap) {
  size_t n = 0;
  for (const char *p = text; *p && n + 32 < cap; p++) {
    const size_t l = strlen(name);
    const bool here =
        p > text && p[-1] == ' ' && !strncmp(p, name, l) && (p[l] == ' ' || p[l] == ')');
    if (here) n += (size_t)snprintf(out + n, cap - n, "(aten::lgamma %s)", name), p += l - 1;
    else out[n++] = *p;
  }
  out[n] = 0;
}

/* An operator without a definition gives none. */
START_TEST(unknown_operands_stay_unknown) {
  const call *k = &calls[_i];
  for (const char *v = strstr(k->vars, "(var "); v; v = strstr(v + 1, "(var ")) {
    char name[8] = "", text[2000];
    sc_numbers got;
    sample s;
    iso_rng rng = rng_of(k, 0);
    sscanf(v, "(var %7s", name);
    without(k->text, name, text, sizeof text);
    if (!strcmp(text, k->text) || !sample_take(&s, &(call){k->vars, text, false}, &rng, false))
      continue;
    const bool defined = sc_values(rule_set_at(s.set, 0), schemas,
                                   &(sc_point){.value_of = value_of, .ctx = &s.v}, &got);
    ck_assert_msg(fine(!defined), "defined: %s", s.text);
    free(got.value);
    sample_free(&s);
  }
}
END_TEST

/* Whether the operator reads without checking; or bounds a number computed from the index and
 * another operand. */
static bool unchecked_index(const char *text) {
  return strstr(text, "take_along_dim") || strstr(text, "rotary_embedding") ||
         strstr(text, "i j (aten::add");
}

/* Whether libtorch takes the sample with all elements of a variable `x`. */
static bool takes(const sample *s, uint32_t var, int64_t x, const char **refusal) {
  static iso_error err;
  rule_tensor *bind[8], *own = NULL, *out = NULL;
  const rule *r = rule_set_at(s->set, 0);
  memcpy(bind, s->v.bind, sizeof bind);
  ck_assert(rule_tensor_new(RULE_I64, &bind[var]->shape, &own, &err) == ISO_OK);
  for (int64_t i = 0; i < own->numel; i++) rule_tensor_set(own, i, (double)x);
  bind[var] = own;
  const bool yes = val_eval(engine, r->lhs, bind, VAL_FLOAT64, &out, &err) == ISO_OK;
  *refusal = err.msg;
  if (yes) rule_tensor_unref(out);
  rule_tensor_unref(own);
  return yes;
}

/* Ranges of indices in the definitions, against the operators: the ends of the range are accepted,
 * numbers beyond are refused, and an integer variable without a bound may be any number. Samples
 * are drawn from there (validate/sample/index_ranges.c). */
START_TEST(indices_are_bounded_as_operators_bound_them) {
  const call *k = &calls[_i];
  for (int seed = 0; seed < 12; seed++) {
    iso_rng rng = rng_of(k, (uint64_t)seed);
    iso_error err = {ISO_OK, ""};
    val_domain domain[8];
    sample s;
    ck_assert_msg(sample_take(&s, k, &rng, false), "no rule: %s", k->text);
    const rule *r = rule_set_at(s.set, 0);
    ck_assert(val_domains(engine, schemas, r, s.v.bind, domain, &err) == ISO_OK);
    for (uint32_t v = 0; v < r->n_vars && s.want; v++) {
      const char *refusal = "";
      if (r->var[v].kind != 'i' || s.v.bind[v]->numel == 0 || unchecked_index(k->text)) continue;
      const val_domain *d = &domain[v];
      if (d->size == INT64_MAX && d->behind == INT64_MAX) {
        ck_assert_msg(fine(takes(&s, v, 1000003, &refusal) || !strstr(refusal, "out of")),
                      "%s: nothing is said of an index: %s", refusal, s.text);
        continue;
      }
      if (d->size == INT64_MAX) continue; /* of what is computed from it */
      const int64_t last = d->size - 1, first = d->from_end ? -d->size : 0;
      ck_assert_msg(fine(takes(&s, v, last, &refusal)), "%d: %s: %s", (int)last, refusal, s.text);
      ck_assert_msg(fine(takes(&s, v, first, &refusal)), "%d: %s: %s", (int)first, refusal, s.text);
      ck_assert_msg(fine(!takes(&s, v, last + 1, &refusal)), "%d is taken: %s", (int)last + 1,
                    s.text);
      ck_assert_msg(
          fine((d->has_besides && d->besides == first - 1) || !takes(&s, v, first - 1, &refusal)),
          "%d is taken: %s", (int)first - 1, s.text);
      if (d->has_besides)
        ck_assert_msg(fine(takes(&s, v, d->besides, &refusal)), "%d: %s: %s", (int)d->besides,
                      refusal, s.text);
    }
    sample_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_diff");
  TCase *t = tcase_create("prove_diff");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, definitions_are_what_operators_do, 0, N_CALLS);
  tcase_add_loop_test(t, what_operators_refuse_has_no_value, 0, N_CALLS);
  tcase_add_loop_test(t, unknown_operands_stay_unknown, 0, N_CALLS);
  tcase_add_loop_test(t, indices_are_bounded_as_operators_bound_them, 0, N_CALLS);
  tcase_add_loop_test(t, refused_calls_have_no_value, 0, (int)(sizeof refusals / sizeof *refusals));
  suite_add_tcase(s, t);
  /* One process: starting libtorch for each call would take minutes. */
  return run_suite_with_engine(s);
}
