/* Whether an operator's choice shows in the value of its side of a rule. The side is evaluated
 * again with the other choice wherever the operator took the branch, in all such elements at once:
 * the result of an operator with the other convention (a mutant of mutation testing: DeMillo,
 * Lipton and Sayward, 1978). Where the value does not move, agreement shows nothing of the
 * branch. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "validate/branch/choice_int.h"
#include "validate/branch/cover_int.h"

static const double visible = 1e-6;       /* of the number that moved */
static const double above_rounding = 1e4; /* eps of the largest intermediate value */

iso_code val_slip_apply(const val_slip *s, const rule_term *call, rule_tensor *const *bind,
                        size_t n, rule_tensor **out, size_t n_out, iso_error *err) {
  rule_tensor *now = NULL;
  const size_t which = val_shown_result(call, out, n_out);
  iso_code c = n_out ? rule_tensor_new(out[which]->dtype, &out[which]->shape, &now, err) : ISO_OK;
  if (c) {
    for (size_t k = 0; k < n_out; k++) rule_tensor_unref(out[k]);
    return c;
  }
  if (!now) return ISO_OK;
  now->coarse = out[which]->coarse;
  const val_site site = val_site_of(call, bind, n, out[which]);
  for (int64_t i = 0; i < now->numel; i++) {
    double y = rule_tensor_get(out[which], i), other;
    if (s->bit ? val_site_slip(&site, s->bit, i, &other) : i == s->index && (other = y == 0, true))
      y = other;
    rule_tensor_set(now, i, y);
  }
  rule_tensor_unref(out[which]);
  out[which] = now;
  return ISO_OK;
}

static bool number_moved(double x, double y, double tol, double magnitude) {
  if (x == y || (isnan(x) && isnan(y))) return false;
  const double d = fabs(x - y);
  return !isfinite(d) ||
         (d > tol * fmax(fabs(x), fabs(y)) && d > above_rounding * DBL_EPSILON * magnitude);
}

static bool value_moved(const rule_tensor *a, const rule_tensor *b, double magnitude) {
  if (a->dtype != b->dtype || !rule_shape_eq(&a->shape, &b->shape)) return true;
  const double tol = fmax(visible, 4 * fmax(a->coarse, b->coarse));
  if (a->dtype == RULE_C128) {
    const double *x = a->data, *y = b->data;
    for (int64_t i = 0; i < 2 * a->numel; i++)
      if (number_moved(x[i], y[i], tol, magnitude)) return true;
    return false;
  }
  for (int64_t i = 0; i < a->numel; i++)
    if (rule_dtype_is_float(a->dtype)
            ? number_moved(rule_tensor_get(a, i), rule_tensor_get(b, i), tol, magnitude)
            : rule_tensor_get_int(a, i) != rule_tensor_get_int(b, i))
      return true;
  return false;
}

/* The cost of an evaluation: a call, and its elements, of which those of the variables give an
 * idea.
 */
static int64_t cost_of(const val_probe *p, const rule_tensor *out) {
  return (int64_t)p->n_run * 1000 + 4 * out->numel;
}

static iso_code slip_moves(val_engine *e, const val_shown *side, const val_slip *slip, bool *moved,
                           int64_t *work, iso_error *err) {
  val_probe p = {.slip = slip};
  rule_tensor *x = NULL;
  iso_error local;
  const iso_code c = val_eval_probe(e, side->term, side->bind, &p, &x, &local);
  if (c == ISO_NOMEM) return iso_fail(err, c, "out of memory");
  *moved = c || value_moved(side->plain, x, p.magnitude); /* what fails by it shows it, too */
  *work -= cost_of(&p, side->plain);
  rule_tensor_unref(x);
  return ISO_OK;
}

iso_code val_observe_one(val_engine *e, const val_shown *side, size_t at, int64_t index,
                         bool *moved, int64_t *work, iso_error *err) {
  const val_slip slip = {.at = at, .index = index};
  return slip_moves(e, side, &slip, moved, work, err);
}

iso_code val_observe(val_engine *e, const val_shown *side, const val_cover *all,
                     const val_cover *other, val_cover *c, int64_t *work, iso_error *err) {
  iso_code code = ISO_OK;
  for (size_t i = 0; i < c->n && !code; i++) {
    val_covered *o = &c->op[i];
    const val_covered *before = val_cover_at(all, o);
    const uint16_t ask =
        o->taken & (before ? (uint16_t)~before->seen : UINT16_MAX) & val_cover_sought(o, other);
    for (unsigned b = 0; b < VAL_BITS && !code && *work > 0; b++) {
      if (!(ask >> b & 1)) continue;
      const val_slip slip = {.at = o->at, .bit = (uint16_t)(1U << b)};
      bool moved = false;
      code = slip_moves(e, side, &slip, &moved, work, err);
      if (moved) o->seen |= slip.bit;
    }
    const bool shows = (o->seen | (before ? before->seen : 0)) & VAL_SOME;
    o->n_tied += o->orders && (ask & VAL_EDGE) && !(o->seen & VAL_EDGE) && shows;
  }
  return code;
}
