/* What rules/operators.def says of where results come from is true of what libtorch gives, on
 * samples of all calls by which the prover's definitions are tested (needs libtorch). */
#include "rules/operators.h"
#include "tests/validate/prove_diff.h"

enum { TIMES = 6, MOST = 4096 };

/* Beside those calls: what the prover's tests have only within others. */
static const call more[] = {{X, "(aten::alias x)", false},
                            {X, "(aten::clone x)", false},
                            {X, "(aten::contiguous x)", false},
                            {X, "(aten::angle x)", false},
                            {X, "(aten::conj x)", false},
                            {X, "(aten::real x)", false},
                            {X, "(aten::isfinite x)", false},
                            {X, "(aten::isinf x)", false},
                            {X, "(aten::isneginf x)", false},
                            {X, "(aten::isposinf x)", false},
                            {X, "(aten::logical_not x)", false},
                            {X, "(aten::signbit x)", false},
                            {X, "(aten::median x)", false},
                            {X, "(aten::nanmedian x)", false},
                            {X, "(getitem (aten::cummax x 0) 0)", false},
                            {X, "(getitem (aten::cummin x 0) 0)", false},
                            {X, "(getitem (aten::kthvalue x 1 0 false) 0)", false},
                            {X, "(getitem (aten::mode x 0 false) 0)", false}};

static const char *const left_out[] = {
    "adaptive_max_pool2d",
    "bucketize",
    "complex",
    "equal",
    "gather",
    "getitem",
    "imag",
    "masked_select",
    "masked_scatter",
    "nonzero",
    "polar",
    "scalar_tensor",
    "searchsorted",
    "view_as_complex",
    "unique",
    "view.dtype",
    "view_as_real"}; /* of what samples here do not have, or sizes of theirs */

static bool is_left_out(const char *name) {
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (strcmp(left_out[i], name) == 0) return true;
  return false;
}

typedef struct run {
  const rule *r;
  const rule_term *call; /* behind the choice of a result */
  const rule_operator *o;
  const sample *s;
} run;

static bool is_flat(const rule_term *t) {
  for (uint32_t i = 0; i < t->n; i++)
    if (t->child[i]->kind == RULE_OP || !is_flat(t->child[i])) return false;
  return true;
}

/* ---- numbers that a call is given ---- */

typedef struct pool {
  double x[MOST];
  size_t n;
} pool;

static void add(pool *p, double x) {
  if (p->n < MOST) p->x[p->n++] = x;
}

static void add_tensor(pool *p, const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++) add(p, rule_tensor_get(t, i));
}

static void gather(pool *p, const run *k, const rule_term *t) {
  if (t->kind == RULE_VAR) add_tensor(p, k->s->v.bind[t->u.i]);
  if (t->kind == RULE_FLOAT) add(p, t->u.f);
  if (t->kind == RULE_INT || t->kind == RULE_BOOLEAN) add(p, (double)t->u.i);
  for (uint32_t i = 0; i < t->n; i++) gather(p, k, t->child[i]);
}

static bool holds(const pool *p, double x) {
  for (size_t i = 0; i < p->n; i++)
    if (p->x[i] == x) return true;
  return false;
}

/* ---- facts ---- */

/* A number that was given, its negative, or a whole one. */
static bool only_exact(const run *k, const pool *given) {
  for (int64_t i = 0; i < k->s->want->numel; i++) {
    const double y = rule_tensor_get(k->s->want, i);
    if (!isnan(y) && y != nearbyint(y) && !holds(given, y) && !holds(given, -y)) return false;
  }
  return true;
}

/* A number that was given, or one that fills: 0 or 1. */
static bool only_moved(const run *k, const pool *given) {
  for (int64_t i = 0; i < k->s->want->numel; i++) {
    const double y = rule_tensor_get(k->s->want, i);
    if (!isnan(y) && y != 0 && y != 1 && !holds(given, y)) return false;
  }
  return true;
}

static const rule_tensor *first_operand(const run *k) {
  const rule_term *t = k->call->n ? k->call->child[0] : NULL;
  return t && t->kind == RULE_VAR ? k->s->v.bind[t->u.i] : NULL;
}

/* All numbers of `a` are numbers of `b`. */
static bool within(const rule_tensor *a, const rule_tensor *b) {
  pool p = {.n = 0};
  add_tensor(&p, b);
  for (int64_t i = 0; i < a->numel; i++)
    if (!holds(&p, rule_tensor_get(a, i))) return false;
  return true;
}

static bool same(const rule_tensor *a, const rule_tensor *b) {
  bool equal = rule_shape_eq(&a->shape, &b->shape);
  for (int64_t i = 0; i < a->numel && equal; i++)
    equal = rule_tensor_get(a, i) == rule_tensor_get(b, i);
  return equal;
}

static rule_tensor *again(const run *k, uint32_t var, rule_tensor *with) {
  rule_tensor *bind[8], *out = NULL;
  iso_error err;
  for (uint32_t i = 0; i < k->r->n_vars; i++) bind[i] = i == var ? with : k->s->v.bind[i];
  return val_eval(engine, k->r->lhs, bind, VAL_FLOAT64, &out, &err) == ISO_OK ? out : NULL;
}

/* Moving one element of an operand of the result's shape moves that element of the result alone. */
static bool by_elements(const run *k, iso_rng *rng) {
  bool good = true;
  for (uint32_t v = 0; v < k->r->n_vars && good; v++) {
    const rule_tensor *x = k->s->v.bind[v];
    rule_tensor *moved = NULL;
    iso_error err;
    if (k->r->var[v].kind != 'f' || x->numel == 0) continue;
    if (!rule_shape_eq(&x->shape, &k->s->want->shape)) continue;
    ck_assert(rule_tensor_new(x->dtype, &x->shape, &moved, &err) == ISO_OK);
    const int64_t at = (int64_t)iso_rng_below(rng, (uint64_t)x->numel);
    for (int64_t i = 0; i < x->numel; i++) {
      const double was = rule_tensor_get(x, i);
      rule_tensor_set(moved, i, i == at ? was * 1.25 + 0.25 : was);
    }
    rule_tensor *y = again(k, v, moved);
    for (int64_t i = 0; y && i < y->numel; i++) {
      const double a = rule_tensor_get(y, i), b = rule_tensor_get(k->s->want, i);
      good &= i == at || a == b || (isnan(a) && isnan(b));
    }
    rule_tensor_unref(y);
    rule_tensor_unref(moved);
  }
  return good;
}

/* Asked to add what falls on one place; or paddings of which libtorch leaves some unwritten. */
static bool asks_otherwise(const run *k) {
  bool asks = false;
  for (uint32_t i = 0; i < k->call->n; i++) {
    const rule_term *t = k->call->child[i];
    asks |= k->o->accumulates && t->kind == RULE_BOOLEAN && t->u.i;
    asks |= t->kind == RULE_STRING && strcmp(t->u.s, "circular") == 0;
  }
  return asks;
}

/* Which fact of its line a call does not keep to, NULL: none. */
static const char *wrong_fact(const run *k, iso_rng *rng) {
  const rule_tensor *want = k->s->want, *x = first_operand(k);
  const rule_operator *o = k->o;
  pool given = {.n = 0};
  gather(&given, k, k->call);
  if (rule_dtype_is_complex(want->dtype) || (x && rule_dtype_is_complex(x->dtype))) return NULL;
  if (o->unspecified || asks_otherwise(k)) return NULL;
  if (o->exact && given.n < MOST && !only_exact(k, &given)) return "exact";
  if (o->moves && !o->fills && given.n < MOST && !only_moved(k, &given)) return "moves";
  if (x && o->part && !within(want, x)) return "part";
  if (x && o->rearranges && !(within(want, x) && (want->numel == 0 || within(x, want))))
    return "rearranges";
  if (x && o->identity && !same(want, x)) return "identity";
  if (o->elementwise && !by_elements(k, rng)) return "elementwise";
  for (int64_t i = 0; i < want->numel && o->positive; i++)
    if (!(rule_tensor_get(want, i) > 0)) return "positive";
  return NULL;
}

enum { MOST_LINES = 1000 };
static bool seen[MOST_LINES];

static bool has_fact(const rule_operator *o) { return o->exact || o->elementwise || o->positive; }

/* Returns: how many facts of the call are wrong. */
static int look_at(const call *c, uint64_t stream, int *looked) {
  int n_wrong = 0;
  size_t n;
  const rule_operator *lines = rule_operators(&n);
  for (uint64_t time = 0; time < TIMES; time++) {
    iso_rng rng = iso_rng_new(time, stream);
    sample s;
    if (!sample_take(&s, c, &rng, false)) continue;
    run k = {.r = rule_set_at(s.set, 0), .s = &s};
    k.call = k.r->lhs;
    while (k.call->kind == RULE_OP && rule_is_getitem(k.call->u.s)) k.call = k.call->child[0];
    if (s.want && k.call->kind == RULE_OP && is_flat(k.call)) {
      k.o = rule_operator_of(k.call->u.s);
      const char *wrong = wrong_fact(&k, &rng);
      *looked += has_fact(k.o);
      if (k.o->name) seen[k.o - lines] = true;
      if (wrong) fprintf(stderr, "%s is not true of %s\n", wrong, s.text);
      n_wrong += wrong != NULL;
    }
    sample_free(&s);
  }
  return n_wrong;
}

START_TEST(facts_are_true_of_what_libtorch_gives) {
  int looked = 0, n_wrong = 0;
  size_t n;
  const rule_operator *line = rule_operators(&n);
  ck_assert_uint_le(n, MOST_LINES);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    n_wrong += look_at(&calls[i], i, &looked);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) n_wrong += look_at(&more[i], i, &looked);
  for (size_t i = 0; i < n; i++) {
    const bool shown = !has_fact(&line[i]) || line[i].choice == RULE_CHOICE_UNLISTED || seen[i];
    if (shown != is_left_out(line[i].name)) continue;
    fprintf(stderr, shown ? "%s is shown: it is not to be left out\n" : "no call shows %s\n",
            line[i].name);
    n_wrong++;
  }
  ck_assert_int_eq(n_wrong, 0);
  ck_assert_int_gt(looked, 1500);
}
END_TEST

int main(void) {
  Suite *s = suite_create("facts");
  TCase *t = tcase_create("facts");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, facts_are_true_of_what_libtorch_gives);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  iso_error err;
  if (rule_schemas_new(&schemas, &err) || val_new(NULL, schemas, &engine, &err)) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  srunner_run_all(r, CK_ENV);
  engine_teardown();
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
