/* The facts of rules/operators.def hold for libtorch's results (needs libtorch). Each fact is asked
 * of all operators, on samples of the calls by which the prover's definitions are tested: a fact
 * that stands in a line must hold on all of them, and one that does not stand there must fail on
 * some. So a line that is wrong at one place is noticed, and the test counts at how many. */
#include "tests/validate/facts_seen.h"

/* ---- the facts ---- */

typedef struct fact {
  const char *name;
  bool (*claims)(const rule_operator *o);
  void (*set)(rule_operator *o, bool on);
  seen (*see)(const run *k);
  /* Where the fact is not claimed some sample must show that it does not hold; unless this says
   * that something stronger is claimed. NULL: a fact that may be left out. */
  bool (*spares)(const rule_operator *o);
} fact;

#define FACT(f) \
  static bool claims_##f(const rule_operator *o) { return o->f; } \
  static void set_##f(rule_operator *o, bool on) { o->f = on; }
FACT(exact)
FACT(widens)
FACT(moves)
FACT(rearranges)
FACT(broadcasts)
FACT(identity)
FACT(part)
FACT(fills)
FACT(elementwise)
FACT(positive)
FACT(nonnegative)
FACT(keeps_sign)
FACT(same_sign)
FACT(pole)
FACT(signed_pole)
FACT(reads_zero_sign)
FACT(drops_zero_sign)
FACT(observes)
FACT(makes_undefined)
FACT(no_overflow)
FACT(exact_at_0)
FACT(exact_at_1)

static bool never_spares(const rule_operator *o) { return (void)o, false; }
static bool is_layout(const rule_operator *o) {
  return o->identity || o->rearranges || o->part || o->joins || o->fills || o->cast || o->table;
}
/* Places are int64 whatever is counted, and literals, indices and dtypes are given as such. */
static bool makes_places(const rule_operator *o) {
  return o->places || o->cast || o->fills || o->joins || o->table || o->index;
}
static bool is_whole(const rule_operator *o) { return o->choice == RULE_CHOICE_QUOTIENT; }
static bool has_sign(const rule_operator *o) { return o->positive || o->keeps_sign || o->exact; }
static bool has_some_sign(const rule_operator *o) { return has_sign(o) || o->nonnegative; }
static bool tells_undefined(const rule_operator *o) {
  return o->choice == RULE_CHOICE_COMPARE || o->sees_undefined;
}
/* On samples some of these give their operand as it is. */
static bool is_same_already(const rule_operator *o) {
  return o->elementwise || (o->exact && !o->rearranges);
}
static bool has_pole_already(const rule_operator *o) { return o->pole; }

#define ROW(f, see, spares) \
  { #f, claims_##f, set_##f, see, spares }
static const fact facts[] = {ROW(exact, is_exact, is_whole),
                             ROW(widens, is_widened, makes_places),
                             ROW(moves, is_moved, NULL),
                             ROW(rearranges, is_rearranged, NULL),
                             ROW(broadcasts, is_broadcast, is_same_already),
                             ROW(identity, is_identity, NULL),
                             ROW(part, is_part, NULL),
                             ROW(fills, is_filled, tells_undefined),
                             ROW(elementwise, is_by_elements, is_layout),
                             ROW(positive, is_positive, has_some_sign),
                             ROW(nonnegative, is_nonnegative, has_sign),
                             ROW(keeps_sign, keeps_sign, NULL),
                             ROW(same_sign, has_same_sign, NULL),
                             ROW(pole, has_pole, never_spares),
                             ROW(signed_pole, has_signed_pole, never_spares),
                             ROW(reads_zero_sign, reads_zero_sign, never_spares),
                             ROW(drops_zero_sign, drops_zero_sign, NULL),
                             ROW(observes, observes, never_spares),
                             ROW(makes_undefined, makes_undefined, has_pole_already),
                             ROW(no_overflow, no_overflow, NULL),
                             ROW(exact_at_0, is_short_at_0, NULL),
                             ROW(exact_at_1, is_short_at_1, NULL)};
enum { N_FACTS = sizeof facts / sizeof *facts, MOST_LINES = 1000 };

/* The samples' answers, by line of the table. */
typedef struct shown {
  int holds[N_FACTS], fails[N_FACTS];
  int steps, samples_of_steps; /* bits: it is that step on all of them */
  char first[N_FACTS][160];    /* where a fact failed first */
} shown;
static shown all[MOST_LINES];

/* Facts that hold only for some of the line's calls, or for some values of an argument. */
static bool sometimes(const fact *f) {
  return strcmp(f->name, "pole") == 0 || strcmp(f->name, "signed_pole") == 0 ||
         strcmp(f->name, "reads_zero_sign") == 0 || strcmp(f->name, "observes") == 0 ||
         strcmp(f->name, "makes_undefined") == 0;
}

/* Facts that real numbers, or these calls, do not show. */
static const struct {
  const char *op, *of, *why;
} unseen[] = {{"angle", "nonnegative", "of complex numbers it may be below 0"},
              {"angle", "reads_zero_sign", "of complex numbers"},
              {"pow", "observes", "a power of 0 and of 1 depends on no operand"},
              {"dist::all_gather", "exact", "between ranks"},
              {"dist::all_reduce", "elementwise", "between ranks"}};

static bool is_unseen(const rule_operator *o, const char *name) {
  for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
    if (strcmp(unseen[i].op, o->name) == 0 && strcmp(unseen[i].of, name) == 0) return true;
  return false;
}

/* A line's fault in that fact. NULL: none that samples show. */
static const char *wrong_in(const rule_operator *o, const shown *s, size_t f) {
  const bool claims = facts[f].claims(o), asked = s->holds[f] + s->fails[f] > 0;
  if (!asked || is_unseen(o, facts[f].name)) return NULL;
  if (sometimes(&facts[f])) {
    if (claims && s->holds[f] == 0) return "never holds";
    if (!claims && facts[f].spares && !facts[f].spares(o) && s->holds[f]) return "holds somewhere";
    return NULL;
  }
  if (claims) return s->fails[f] ? "does not hold" : NULL;
  return facts[f].spares && !facts[f].spares(o) && s->fails[f] == 0 && s->holds[f] > 3
             ? "always holds"
             : NULL;
}

static bool wrong_step(const rule_operator *o, const shown *s) {
  if (s->samples_of_steps == 0) return false;
  return o->arithmetic ? !(s->steps >> o->arithmetic & 1)
                       : s->steps != 0 && o->elementwise && !is_layout(o) && !o->exact;
}

static bool is_flat(const rule_term *t) {
  for (uint32_t i = 0; i < t->n; i++)
    if (t->child[i]->kind == RULE_OP || !is_flat(t->child[i])) return false;
  return true;
}

/* Whether the call adds elements of one place, or pads in a way that libtorch leaves partly
 * unwritten. */
static bool asks_otherwise(const run *k) {
  bool asks = k->o->unspecified;
  for (uint32_t i = 0; i < k->call->n; i++) {
    const rule_term *t = k->call->child[i];
    asks |= k->o->accumulates && t->kind == RULE_BOOLEAN && t->u.i;
    asks |= t->kind == RULE_STRING && strcmp(t->u.s, "circular") == 0;
  }
  return asks;
}

static bool is_complex(const run *k) {
  bool any = rule_dtype_is_complex(k->s->want->dtype);
  for (uint32_t v = 0; v < k->r->n_vars; v++) any |= rule_dtype_is_complex(k->s->v.bind[v]->dtype);
  return any;
}

static void look(const run *k) {
  size_t n;
  shown *s = &all[k->o - rule_operators(&n)];
  for (size_t f = 0; f < N_FACTS; f++) {
    if (k->second && facts[f].see != observes) continue;
    const seen was = facts[f].see(k);
    s->holds[f] += was == HOLDS;
    if (was == FAILS && s->fails[f]++ == 0)
      snprintf(s->first[f], sizeof s->first[f], "%.159s", k->s->text);
  }
  const int steps = k->second ? -1 : steps_of(k);
  if (steps >= 0) s->steps = s->samples_of_steps++ ? s->steps & steps : steps;
}

static void look_at(const call *c) {
  for (uint64_t time = 0; time < TIMES; time++) {
    iso_rng rng = rng_of(c, time);
    sample s;
    if (!sample_take(&s, c, &rng, false)) continue;
    run k = {.r = rule_set_at(s.set, 0), .s = &s};
    k.call = k.r->lhs;
    k.second = rule_is_getitem(k.call->u.s) && k.call->child[1]->u.i > 0;
    while (k.call->kind == RULE_OP && rule_is_getitem(k.call->u.s)) k.call = k.call->child[0];
    k.o = rule_operator_of(k.call->u.s);
    if (s.want && k.call->kind == RULE_OP && is_flat(k.call) && *k.o->name && !asks_otherwise(&k) &&
        !is_complex(&k))
      look(&k);
    sample_free(&s);
  }
}

static void look_at_all(void) {
  static bool done = false;
  if (done) return;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) look_at(&calls[i]);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) look_at(&more[i]);
  done = true;
}

START_TEST(facts_are_true_of_what_libtorch_gives) {
  int n_wrong = 0;
  size_t n;
  const rule_operator *line = rule_operators(&n);
  ck_assert_uint_le(n, MOST_LINES);
  look_at_all();
  for (size_t i = 0; i < n; i++) {
    for (size_t f = 0; f < N_FACTS; f++) {
      const char *wrong = wrong_in(&line[i], &all[i], f);
      if (wrong)
        fprintf(stderr, "%s %s of %s (%d of %d) %s\n", facts[f].name, wrong, line[i].name,
                all[i].holds[f], all[i].holds[f] + all[i].fails[f], all[i].first[f]);
      n_wrong += wrong != NULL;
    }
    if (wrong_step(&line[i], &all[i])) {
      fprintf(stderr, "arithmetic of %s is %x\n", line[i].name, (unsigned)all[i].steps);
      n_wrong++;
    }
  }
  ck_assert_int_eq(n_wrong, 0);
}
END_TEST

static bool any_sample(const shown *s) {
  for (size_t f = 0; f < N_FACTS; f++)
    if (s->holds[f] + s->fails[f] > 0) return true;
  return false;
}

typedef struct count {
  int turned, noticed, unasked;
} count;

/* A fact of all lines with samples turned around, one line at a time: claimed facts are left out,
 * and others are made up. */
static void turn_around(size_t f, count c[2]) {
  size_t n;
  const rule_operator *line = rule_operators(&n);
  for (size_t i = 0; i < n; i++) {
    rule_operator o = line[i];
    const bool claims = facts[f].claims(&o), asked_here = all[i].holds[f] + all[i].fails[f] > 0;
    if (!any_sample(&all[i])) continue;
    facts[f].set(&o, !claims);
    c[claims].turned++;
    c[claims].noticed += wrong_in(&o, &all[i], f) != NULL;
    c[claims].unasked += !asked_here;
  }
}

static void print_count(const char *name, const count c[2]) {
  printf("%-16s left out %4d, noticed %4d; made up %4d, noticed %4d, true %4d, not asked %4d\n",
         name, c[1].turned, c[1].noticed, c[0].turned, c[0].noticed,
         c[0].turned - c[0].noticed - c[0].unasked, c[0].unasked);
}

/* A change that is not noticed where it is asked for is true as far as samples show. */
START_TEST(a_wrong_fact_is_noticed) {
  count whole[2] = {{0}};
  look_at_all();
  for (size_t f = 0; f < N_FACTS; f++) {
    count here[2] = {{0}};
    turn_around(f, here);
    print_count(facts[f].name, here);
    for (int k = 0; k < 2; k++) {
      whole[k].turned += here[k].turned;
      whole[k].noticed += here[k].noticed;
      whole[k].unasked += here[k].unasked;
    }
  }
  print_count("all", whole);
  ck_assert_int_gt(10 * whole[0].noticed, 7 * whole[0].turned);
  ck_assert_int_lt(10 * whole[0].unasked, whole[0].turned);
}
END_TEST

int main(void) {
  Suite *s = suite_create("facts");
  TCase *t = tcase_create("facts");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, facts_are_true_of_what_libtorch_gives);
  tcase_add_test(t, a_wrong_fact_is_noticed);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
