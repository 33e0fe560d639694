/* Does the differential test notice a wrong definition (needs libtorch)? Each place where a
 * definition combines expressions is made wrong in turn (mutate.h): some sample must then differ
 * from libtorch, too few be left that have a value, or one be lost where sizes are names. A mutant
 * that goes unnoticed must be listed below, with the reason why it means the same. */
#include <stdlib.h>

#include "tests/validate/prove_diff.h"

enum { MAX_SITES = 20000, MAX_MUTANTS = 4096 };

/* Mutants that mean the same: so many of an operation on the line with this text. */
static const struct {
  const char *file, *line, *what;
  int n;
  const char *why;
} same[] = {
    {"unary", "plus = sx_ite", "sx_int", 1, "from 20 on log(1 + e^x) is x up to rounding"},
    {"unary", "plus = sx_ite", "sx_lt", 1, "at 20 log(1 + e^x) is x up to rounding"},
    {"unary", "of a sine", "sx_powi", 1,
     "beyond 1 the arc has no value either, and below all powers are below 1"},
    {"unary", "case LEAKY_RELU", "sx_lt", 1, "at 0 both branches are 0"},
    {"unary", "sx_mul(c, p[1], x), y)", "sx_lt", 1, "at 0 both branches are 0"},
    {"unary", "x), x, y);", "sx_lt", 1, "at 0 both branches are 0"},
    {"slice", "sx_lt(c, v, c->zero)", "sx_lt", 1,
     "a bound of 0 after counting from the end is 0 either way"},
    {"slice", "sx_le(c, v, n)", "sx_le", 1, "a bound equal to the size is the size either way"},
    {"slice", "sx_lt(c, c->zero, *step)", "sx_lt", 2,
     "a division by a step of 0 has no value; a slice from its end has length 0 either way"},
    {"slice", "sc_derived(c, \"share\"", "sx_mul", 1,
     "the name of an unknown, which must only tell it from others"},
    {"slice", "sc_derived(c, \"share\"", "sx_add", 1,
     "the name of an unknown, which must only tell it from others"},
    {"slice", "sx_mul(c, n, u), sx_int(c, r)", "sx_add", 1,
     "a rest counted down from one multiple is another counted up from the one before"},
    {"slice", "sx_mul(c, n, u), sx_int(c, r)", "sx_eq", 1,
     "only the equation in it is taken, as a choice"},
    {"slice", "!share(c, x->dim[d], step", "sx_lt", 1,
     "a size is shared among no parts: refused there too"},
    {"layout", "sx_lt(c, shift, c->zero)", "sx_lt", 1, "a shift by the whole size is one by 0"},
    {"layout", "if (holds) shift = sx_add", "sx_add", 1,
     "a shift counts up to multiples of the size"},
    {"layout", "sx_le(c, c->zero, shift)", "sx_le", 1, "a shift of 0 is 0 after the remainder too"},
    {"layout", "sx_lt(c, shift, x->dim[d])", "sx_lt", 1, "a shift by the whole size is one by 0"},
    {"cat", "sx_gt0(c, sx_sub(c, size, at))", "sx_sub", 1, "a part that is asked for as it stands"},
    {"layout", "sx_lt(c, c->zero, rest)", "sx_lt", 1, "nothing is a multiple of a size of 0"},
    {"order", "over_sum ? sx_neg(c, sx_inv(c, m)) : m", "sx_inv", 1,
     "an even number of steps, each of which turns the order around"},
    {"order", "r = sx_add(c, r, sx_scale(c, q, m))", "sx_scale", 1,
     "a body is made simple twice, in an odd number of steps, each of which turns the order "
     "around"},
    {"order", "r = sx_add(c, r, sx_scale(c, q, m))", "sx_add", 1,
     "a body is made simple twice, in an odd number of steps, each of which turns the order "
     "around"},
    {"composite", "sx_mul(c, scale, x), below)", "sx_lt", 1, "at 0 both branches are 0"},
    {"composite", "sx_lt(c, c->zero, i->dim[d])", "sx_lt", 1, "of no elements none is the largest"},
    {"elementwise", "sx_lt(c, c->zero, y) == c->yes", "sx_lt", 1, "a quotient by 0 has no value"},
    {"pick", "at[2] = {sx_int", "sx_int", 2, "numbers that are not in order traps.rules has"},
    {"pick", "sx_le(c, pt_at(c, of", "sx_le", 1, "numbers of which two are equal are in no call"},
    {"composite", "sx_lt(c, x, c->one)", "sx_lt", 1,
     "at 1 the logarithm is infinite, which is no value either"},
    {"composite", "sx_add(c, x, l), c->zero)", "sx_lt", 1, "at the bound both branches are 0"},
    {"composite", "sx_sub(c, x, l), below)", "sx_lt", 1, "at the bound both branches are 0"},
    {"composite", "sx_eq(c, x, c->zero), pt_at", "sx_lt", 1, "0 was another case before"},
    {"composite", "x, sx_mul(c, pt_at(c, t->in[1], idx), x)", "sx_lt", 1,
     "at 0 both branches are 0"},
    {"composite", "sx_le(c, x->dim[0], x->dim[1])", "sx_le", 1,
     "of two equal sizes either is the less"},
    {"fill", "sx_lt(c, off, c->zero)", "sx_lt", 2, "an offset of 0 goes either way"},
    {"fill", "sx_le(c, c->zero, size), sx_lt(c, c->zero, step)", "sx_lt", 1,
     "a division by a step of 0 has no value"},
    {"fill", "sx_lt(c, c->zero, step), &up", "sx_lt", 1, "a division by a step of 0 has no value"},
    {"fill", "sx_le(c, h, w)", "sx_le", 1, "of two equal sizes either is the less"},
    {"fill", "sx_lt(c, c->zero, n)", "sx_lt", 1, "a length of 0 is 0 either way"},
    {"reduce", "sx_lt(c, c->zero, x->dim[k])", "sx_lt", 1, "of no elements there is no mean"},
    {"window", "sx_lt(c, c->zero, w->stride[i])", "sx_lt", 1,
     "a division by a stride of 0 has no value"},
    {"window", "w.size[i])", "sx_lt", 1, "the count of a window of no elements has no inverse"},
    {"window", "*over = sx_sub", "sx_sub", 2,
     "what is added behind the last window is not looked into"},
    {"window", "sx_lt(c, c->zero, *over)", "sx_lt", 2,
     "without a window there is no element; nothing over is 0 either way"},
    {"window", "sc_decide(c, sx_lt(c, pad[k], c->zero)", "sx_lt", 1,
     "padding by 0 cuts off and adds nothing"},
    {"window", "sx_lt(c, c->zero, stride)", "sx_lt", 1, "a division by a stride of 0 has no value"},
    {"window", "sx_lt(c, c->zero, groups)", "sx_lt", 1, "nothing is a multiple of 0"},
    {"index", "sc_decide(c, sx_lt(c, c->zero, smoothing)", "sx_lt", 1, "a share of 0 is none"},
    {"index", "sx_or(c, sx_not(c, inside)", "sx_not", 1,
     "samples name each place once, within or not"},
    {"kernels", "sx_lt(c, c->zero, head)", "sx_lt", 1,
     "a head is at least as wide as the table, whose size is not 0"},
    {"kernels", "sx_sub(c, idx[2], idx[1])", "sx_sub", 1,
     "a softmax does not see what is added to a whole row"},
    {"kernels", "sx_lt(c, c->zero, window)", "sx_lt", 1, "a window of 0 was another case before"},
    {"kernels", "sx_lt(c, c->zero, heads)", "sx_lt", 3,
     "widths, which are positive, are multiples of these"},
    {"kernels", "sx_lt(c, c->zero, heads)", "sx_and", 2,
     "widths, which are positive, are products of two of these, so that none is negative alone"},
    {"views", "for (uint32_t k = 1; k < x->rank; k++)", "sx_lt", 1,
     "what is enlarged from nothing has no elements, and that libtorch refuses it is not held"},
    {"views", "sx_lt(c, c->zero, size[k])", "sx_lt", 1,
     "what is enlarged to nothing has no elements, and that libtorch refuses it is not held"},
};
enum { N_SAME = sizeof same / sizeof *same };
static int met[N_SAME];

bool mutant_here(int site, const char *file, int line, const char *what);

static int wrong = -1; /* the site that is wrong now */
static struct {
  const char *file, *what;
  int line;
} place[MAX_SITES];
static int mutant_of[MAX_SITES], n_mutants; /* sites by the order in which they were first passed */
static uint64_t passes[N_CALLS][MAX_MUTANTS]; /* by which samples of a call each is passed */
static int running[2];                        /* the call, and its sample */
static sample samples[N_CALLS][SEEDS];
static struct { /* before anything is wrong */
  bool reached;
  outcome o;
} right[N_CALLS][SEEDS];

bool mutant_here(int site, const char *file, int line, const char *what) {
  if (site < 0 || site >= MAX_SITES) abort();
  if (wrong >= 0) return site == wrong;
  if (!place[site].file) mutant_of[site] = n_mutants++;
  if (n_mutants > MAX_MUTANTS) abort();
  place[site].file = file;
  place[site].line = line;
  place[site].what = what;
  passes[running[0]][mutant_of[site]] |= UINT64_C(1) << running[1];
  return false;
}

/* Whether the samples from `first` on to `end` notice the mutation: those that do not pass the
 * place are unchanged. `good`: how many have the value that libtorch has. */
static bool samples_notice(int k, int first, int end, int *good) {
  char why[300];
  for (int s = first; s < end; s++) {
    outcome o = right[k][s].o;
    if (passes[k][mutant_of[wrong]] >> s & 1) {
      o = sample_compare(&samples[k][s], why);
      if (o == OTHER || (right[k][s].reached && !samples[k][s].reaches)) return true;
    }
    *good += o == SAME;
  }
  return false;
}

static bool call_notices(int k) {
  int good = 0;
  return samples_notice(k, 0, SEEDS, &good) || good < LEAST_GOOD;
}

/* A few samples of every call first: most mutants are noticed by one of them. */
static bool some_call_notices(void) {
  enum { FEW = 4 };
  int ignored = 0;
  for (int all = 0; all < 2; all++)
    for (int k = 0; k < N_CALLS; k++)
      if (passes[k][mutant_of[wrong]] &&
          (all ? call_notices(k) : samples_notice(k, 0, FEW, &ignored)))
        return true;
  return false;
}

/* The samples of a call as they are before anything is wrong. */
static void take_samples(int k) {
  int good = 0;
  char why[300] = "";
  running[0] = k;
  for (int s = 0; s < SEEDS; s++) {
    iso_rng rng = rng_of(&calls[k], (uint64_t)s);
    running[1] = s;
    ck_assert_msg(sample_take(&samples[k][s], &calls[k], &rng, true), "no rule: %s",
                  samples[k][s].text);
    right[k][s].o = sample_compare(&samples[k][s], why);
    right[k][s].reached = samples[k][s].reaches;
    ck_assert_msg(right[k][s].o != OTHER, "%s: %s", calls[k].text, why);
    good += right[k][s].o == SAME;
  }
  ck_assert_msg(good >= LEAST_GOOD, "%s", calls[k].text);
}
_Static_assert(SEEDS <= 64, "a bit for each sample");

/* The statement around a line of a file, on one line. */
static void statement_at(const char *file, int line, char *out, size_t room) {
  char text[500];
  FILE *f = fopen(file, "r");
  ck_assert_msg(f != NULL, "%s is not here", file);
  out[0] = '\0';
  bool ended = true;
  for (int i = 1; fgets(text, sizeof text, f); i++) {
    text[strcspn(text, "\n")] = '\0';
    if (ended && i <= line) out[0] = '\0';
    const char *from = text + strspn(text, " ");
    const size_t at = strlen(out);
    snprintf(out + at, room - at, "%s%s", at ? " " : "", from);
    const size_t n = strlen(text);
    ended = n == 0 || strchr(";{}:/", text[n - 1]) != NULL;
    if (ended && i >= line) break;
  }
  fclose(f);
}

/* Whether the mutant at this place is one of those that mean the same. */
static bool means_the_same(int site) {
  char statement[2000], of[100];
  statement_at(place[site].file, place[site].line, statement, sizeof statement);
  for (int i = 0; i < N_SAME; i++) {
    snprintf(of, sizeof of, "ops/%s.c", same[i].file);
    if (strstr(place[site].file, of) && strstr(statement, same[i].line) &&
        !strcmp(place[site].what, same[i].what))
      return met[i]++ < same[i].n;
  }
  return false;
}

START_TEST(wrong_definitions_are_noticed) {
  int n = 0, caught = 0, equal = 0;
  for (int k = 0; k < N_CALLS; k++) take_samples(k);
  for (wrong = 0; wrong < MAX_SITES; wrong++) {
    if (!place[wrong].file) continue;
    const bool noticed = some_call_notices();
    n++;
    caught += noticed;
    if (noticed) continue;
    if (means_the_same(wrong)) equal++;
    else
      fprintf(stderr, "%s:%d: %s can be wrong\n", place[wrong].file, place[wrong].line,
              place[wrong].what);
  }
  wrong = -1;
  for (int k = 0; k < N_CALLS; k++)
    for (int s = 0; s < SEEDS; s++) sample_free(&samples[k][s]);
  printf("%d of %d mutants are caught, %d mean the same\n", caught, n, equal);
  for (int i = 0; i < N_SAME; i++)
    ck_assert_msg(met[i], "no longer there: %s in %s", same[i].line, same[i].file);
  ck_assert_msg(n > 400 && caught + equal == n, "%d of %d mutants are caught, %d mean the same",
                caught, n, equal);
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_mutants");
  TCase *t = tcase_create("prove_mutants");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, wrong_definitions_are_noticed);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
