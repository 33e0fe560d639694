/* The effect in floating point of a rule that is true over the reals: exact, rounding or unsafe.
 *
 * Both sides run on samples at extreme magnitudes. Where one side overflows, is NaN, or is further
 * off than any change of its inputs by rounding explains while the other is not, the rule is
 * unsafe; where they never differ in a bit it is exact. Functions that libraries round by an
 * element's place (a vector's body or its rest), and sums, are exact only where both sides have the
 * same calls of them: whether some sample shows a difference is chance. A sum taken in another
 * order is rounding: both orders are exact for inputs that are one rounding away (backward stable),
 * which a naive softmax or (x + 1e12) - 1e12 is not. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/oracle_int.h"
#include "rules/operators.h"
#include "validate/sample/sample_int.h"

enum { INSTANCES = 6, EXTREMES = 26, OPPOSITES = 14, SHAKES = 3, MORE_SHAKES = 8 };

/* `common` is the variable's own magnitude. Products, exponentials and differences leave the range
 * or lose everything on some of them. */
static double extreme(iso_rng *rng, unsigned kind, double common) {
  /* No product or sum of a few comes close to the range's end: there the order of a sum alone would
   * decide. */
  static const double far[] = {1e-290, 1e-160, 1e-30, 1e-8, 1, 1e4, 1e8, 1e16, 1e160, 1e290};
  const double z = iso_rng_normal(rng), sign = iso_rng_below(rng, 2) ? 1 : -1;
  switch (kind) {
  case 0: return z;
  case 1: return z * 1e-9;
  case 2: return z * 1e-200;
  case 3: return z * 1e200;
  case 4: return sign * far[iso_rng_below(rng, 10)];
  case 5: return common + z * 1e-6 * fabs(common); /* close together, far from 0 */
  case 6: return z * 800;
  case 7: return 40 + fabs(z);
  case 8: return -40 - fabs(z);
  case 9: return fabs(z) * 1e5;
  case 10: return sign * 1e290;
  case 11: return fabs(z) * 1e-160;
  case 12: return z * 1e6;
  case 13: return 800 + z;
  default: return sign * common; /* opposites, which cancel wholly */
  }
}

typedef struct seen {
  bool ran, differs, unsafe;
} seen;

static int64_t n_numbers(const rule_tensor *t) {
  return t->dtype == RULE_C128 ? 2 * t->numel : t->dtype == RULE_F64 ? t->numel : 0;
}

/* One to four roundings, up or down: if all moved by the same, a sum that cancels would not
 * move. */
static double shaken(iso_rng *rng, double x) {
  const double steps = 1 + (double)iso_rng_below(rng, 4);
  return x * (1 + (iso_rng_below(rng, 2) ? steps : -steps) * DBL_EPSILON);
}

/* How far each number of a side moves when its inputs move by roundings. */
static iso_code sensitivity(val_engine *e, const val_shown *side, uint32_t n_vars, int shakes,
                            iso_rng *rng, double *moved, iso_error *err) {
  rule_tensor *const *bind = side->bind;
  const rule_tensor *plain = side->plain;
  iso_code c = ISO_OK;
  for (int k = 0; k < shakes && !c; k++) {
    rule_tensor *b[RULE_MAX_VARS] = {NULL}, *x = NULL;
    for (uint32_t i = 0; i < n_vars && !c; i++) {
      if (bind[i]->dtype != RULE_F64) {
        b[i] = rule_tensor_ref(bind[i]);
        continue;
      }
      c = rule_tensor_new(RULE_F64, &bind[i]->shape, &b[i], err);
      for (int64_t j = 0; !c && j < bind[i]->numel; j++)
        ((double *)b[i]->data)[j] = shaken(rng, ((const double *)bind[i]->data)[j]);
    }
    iso_error local;
    const iso_code ran = c ? c : val_eval(e, side->term, b, VAL_FLOAT64, &x, &local);
    for (int64_t i = 0; !ran && x->numel == plain->numel && i < n_numbers(plain); i++) {
      const double d = fabs(((const double *)x->data)[i] - ((const double *)plain->data)[i]);
      if (d > moved[i]) moved[i] = d;
    }
    rule_tensor_unref(x);
    for (uint32_t i = 0; i < n_vars; i++) rule_tensor_unref(b[i]);
    if (ran == ISO_NOMEM) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  return c;
}

/* Both finite and different: rounding, or more than that? */
static iso_code judge(val_engine *e, uint32_t n_vars, const val_shown side[2], iso_rng *rng,
                      seen *s, iso_error *err) {
  const rule_tensor *a = side[0].plain, *b = side[1].plain;
  const int64_t n = n_numbers(a);
  double *moved = calloc(2 * (size_t)n + 1, sizeof *moved);
  if (moved == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  bool far = true;
  iso_code c = ISO_OK;
  for (int shakes = SHAKES; far && shakes <= MORE_SHAKES && !c;
       shakes += MORE_SHAKES - SHAKES) { /* few might all leave a cancelled sum where it is */
    c = sensitivity(e, &side[0], n_vars, shakes, rng, moved, err);
    if (!c) c = sensitivity(e, &side[1], n_vars, shakes, rng, moved + n, err);
    far = false;
    for (int64_t i = 0; i < n && !c; i++) {
      const double x = ((const double *)a->data)[i], y = ((const double *)b->data)[i];
      far |=
          fabs(x - y) > 64 * fmin(moved[i], moved[n + i]) + 1e-13 * fmax(fabs(x), fabs(y)) + 1e-300;
    }
  }
  s->unsafe |= far && !c;
  free(moved);
  return c;
}

static iso_code look(val_engine *e, const rule *r, rule_tensor *const *bind, iso_rng *rng, seen *s,
                     iso_error *err) {
  rule_tensor *a = NULL, *b = NULL;
  iso_error local;
  iso_code c = val_eval(e, r->lhs, bind, VAL_FLOAT64, &a, &local);
  if (!c) c = val_eval(e, r->rhs, bind, VAL_FLOAT64, &b, &local);
  if (c || a->numel != b->numel || a->dtype != b->dtype) goto done;
  s->ran = true;
  bool differs = false;
  for (int64_t i = 0; i < n_numbers(a); i++) {
    const double x = ((const double *)a->data)[i], y = ((const double *)b->data)[i];
    if (x == y || (isnan(x) && isnan(y))) continue;
    s->differs = true;
    if (isfinite(x) && isfinite(y)) differs = true;
    else if (isfinite(x) || isfinite(y))
      s->unsafe = true; /* one of them left the range, or is NaN */
  }
  if (n_numbers(a) == 0)
    for (int64_t i = 0; i < a->numel; i++)
      if (rule_tensor_get_int(a, i) != rule_tensor_get_int(b, i))
        s->differs = s->unsafe = true; /* decided otherwise */
  if (differs && !s->unsafe) {
    const val_shown side[2] = {{r->lhs, bind, a}, {r->rhs, bind, b}};
    c = judge(e, r->n_vars, side, rng, s, err);
    rule_tensor_unref(a);
    rule_tensor_unref(b);
    return c;
  }
done:
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* Which variables are large where opposites meet, and which small: all choices for the first four
 * in turn, by `turn`. */
static bool is_large(iso_rng *rng, unsigned turn, uint32_t var) {
  return var < 4 ? turn / 2 >> var & 1 : iso_rng_below(rng, 2);
}

/* `turn`: of the first one where opposites meet. */
static iso_code look_at_instance(val_engine *e, const rule *r, unsigned turn, iso_rng *rng, seen *s,
                                 iso_error *err) {
  iso_code c = ISO_OK;
  for (unsigned k = 0; k < EXTREMES && !s->unsafe && !c; k++) {
    rule_tensor *bind[RULE_MAX_VARS] = {NULL};
    iso_error local;
    c = val_sample(e, r, NULL, rng, VAL_PLAIN, bind, &local);
    if (c) return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
    const unsigned at = turn + (k < OPPOSITES ? 0 : k - OPPOSITES);
    const double near = iso_rng_normal(rng) * 1e7, large = at % 2 ? 1e290 : 1e8;
    for (uint32_t i = 0; i < r->n_vars; i++) {
      const double common = k < OPPOSITES ? near : is_large(rng, at, i) ? large : 1 / large;
      for (int64_t j = 0; r->var[i].kind == 'f' && j < bind[i]->numel; j++)
        ((double *)bind[i]->data)[j] = extreme(rng, k, common);
    }
    c = look(e, r, bind, rng, s, err);
    for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  }
  return c;
}

/* Operators whose elements are not correctly rounded: how they are may depend on where an element
 * stands, and on the sizes. */
static bool rounds_by_place(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->transcendental || o->sums;
}

static bool contains(const rule_term *in, const rule_term *t) {
  if (rule_term_eq(in, t)) return true;
  for (uint32_t i = 0; i < in->n; i++)
    if (contains(in->child[i], t)) return true;
  return false;
}

/* A call of such an operator that the other side does not have. */
static bool rounds_elsewhere(const rule_term *t, const rule_term *other) {
  if (t->kind == RULE_OP && rounds_by_place(t->u.s) && !contains(other, t)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (rounds_elsewhere(t->child[i], other)) return true;
  return false;
}

static iso_code class_of(val_engine *e, const rule *r, const char **out, iso_error *err) {
  val_problem p;
  seen s = {0};
  *out = NULL;
  iso_code c = val_problem_init(&p, r, val_engine_schemas(e), err);
  if (c == ISO_UNSUPPORTED) c = ISO_OK;
  iso_rng rng = iso_rng_new(val_engine_options(e)->seed, 77);
  for (int i = 0; i < (p.open ? INSTANCES : INSTANCES / 2) && !s.unsafe && !c; i++) {
    iso_arena a = {0};
    val_found at = {.r = *r, .found = true};
    p.roomy = i % 3 == 1; /* what overflows a row shows nothing in one of a single element */
    if (p.open) c = val_find_instance(e, &p, &rng, &a, &at, err);
    if (!c && at.found)
      c = look_at_instance(e, &at.r, (unsigned)(i * (EXTREMES - OPPOSITES)), &rng, &s, err);
    iso_arena_fini(&a);
  }
  val_problem_fini(&p);
  bool floats = false;
  for (uint32_t i = 0; i < r->n_vars; i++) floats |= r->var[i].kind == 'f';
  s.differs = s.differs ||
              (floats && (rounds_elsewhere(r->lhs, r->rhs) || rounds_elsewhere(r->rhs, r->lhs)));
  if (!c && s.ran) *out = s.unsafe ? "unsafe" : s.differs ? "rounding" : "exact";
  return c;
}

iso_code val_float_class(val_engine *e, const rule *r, const char **out, iso_error *err) {
  iso_arena a = {0};
  rule once = *r;
  const iso_code c = rule_share(&a, &once) ? class_of(e, &once, out, err)
                                           : iso_fail(err, ISO_NOMEM, "out of memory");
  iso_arena_fini(&a);
  return c;
}
