/* Whether samples show what a variable does. tanh(log(x + 1e9)) is one number for all that float64
 * tells, and a rule that says so holds on every sample, with as many digits as are looked at. So a
 * rule is tested only where each function that may be flat was seen to move with each variable that
 * moves its operand, and the sides to move alike. The other side may have the function, too:
 * f = tanh(x + 1e5) is -1 or 1 on all samples, where f is f * f * f. Whether the side moves says
 * less: the variable may stand in it a second time, or what is left of a sum is what its rounding
 * leaves. */
#include <math.h>

#include "rules/operators.h"
#include "validate/ladder/ladder.h"

/* Good samples in which variables are moved; later ones only where one has been lost. */
enum { LOOKED = 4 };

static const double ROUNDING = 8 * 0x1p-52;

/* Whether the numbers of the variable count in the term, not only its shape. */
static bool reads(const rule_term *t, uint32_t v) {
  if (t->kind == RULE_VAR) return (uint32_t)t->u.i == v;
  const rule_operator *o = t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
  if (o && o->fills) return false;
  const bool first = o && (o->identity || o->rearranges || o->part || o->cast);
  for (uint32_t i = 0; i < t->n && (i == 0 || !first); i++)
    if (reads(t->child[i], v)) return true;
  return false;
}

/* Calls of functions that may be flat, in order: the same for all sizes of a rule. More than there
 * is room for are counted, too. */
static void collect(const rule_term *t, const rule_term **flat, size_t *n) {
  const rule_operator *o = t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
  for (uint32_t i = 0; i < t->n; i++) collect(t->child[i], flat, n);
  if (!o || !o->elementwise || !o->transcendental) return;
  if (*n < VAL_FLATS) flat[*n] = t;
  ++*n;
}

/* Ways to move numbers: by little, first by a few of their last places, further out, each by a
 * factor of its own, further in, where functions are defined that are not everywhere, or in reverse
 * and with the other sign. */
typedef enum way { LEAST, LESS, MORE, NEAR, OUT, IN, TURNED, WAYS } way;

static iso_code move(const rule_tensor *x, way how, iso_rng *rng, rule_tensor **out,
                     iso_error *err) {
  const iso_code c = rule_tensor_new(RULE_F64, &x->shape, out, err);
  static const double BY[WAYS] = {0x1p-50, 0x1p-40, 0x1p-30, 0x1p-20, 0.5, -0.5, 0.5};
  for (int64_t i = 0; !c && i < x->numel; i++) {
    const double y = rule_tensor_get(x, how == TURNED ? x->numel - 1 - i : i);
    rule_tensor_set(*out, i, y * (how == TURNED ? -1 : 1) * (1 + BY[how] * iso_rng_uniform(rng)));
  }
  return c;
}

/* The largest difference, relative to the numbers that differ. */
static double difference(const rule_tensor *a, const rule_tensor *b) {
  double most = 0;
  for (int64_t i = 0; a->dtype == b->dtype && a->numel == b->numel && i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (isfinite(x) && isfinite(y) && x != y)
      most = fmax(most, fabs(x - y) / fmax(fabs(x), fabs(y)));
  }
  return most;
}

static void drop(rule_tensor *side[2]) {
  for (int d = 0; d < 2; d++) {
    rule_tensor_unref(side[d]);
    side[d] = NULL;
  }
}

static iso_code run_sides(val_ladder *l, const rule *r, rule_tensor *const *bind,
                          rule_tensor *side[2], iso_error *err) {
  iso_code c = val_eval(l->e, r->lhs, bind, VAL_FLOAT64, &side[0], err);
  return c ? c : val_eval(l->e, r->rhs, bind, VAL_FLOAT64, &side[1], err);
}

typedef enum moved { STILL, ALIKE, APART } moved;

/* Whether both sides move by as much, or by no more than rounding: that of float64, and what is
 * seen of it where they were not moved. */
static moved sides_moved(rule_tensor *const was[2], rule_tensor *const is[2]) {
  const int64_t n = was[0]->numel;
  double most = 0, noise = 0, by = 0, apart = 0;
  for (int d = 0; d < 2; d++)
    if (was[d]->numel != n || is[d]->numel != n || rule_dtype_is_complex(was[d]->dtype))
      return ALIKE;
  for (int64_t i = 0; i < n; i++) {
    const double x = rule_tensor_get(was[0], i), y = rule_tensor_get(was[1], i),
                 dx = rule_tensor_get(is[0], i) - x, dy = rule_tensor_get(is[1], i) - y;
    if (!isfinite(dx) || !isfinite(dy)) continue;
    most = fmax(most, fabs(x));
    noise = fmax(noise, fabs(x - y));
    by = fmax(by, fmax(fabs(dx), fabs(dy)));
    apart = fmax(apart, fabs(dx - dy));
  }
  const double rounding = 1e-13 * most + 16 * noise;
  return by <= rounding ? STILL : apart <= 1e-2 * by + rounding ? ALIKE : APART;
}

/* Whether the value of the term moves with the variable. */
static iso_code moves(val_ladder *l, const rule_term *t, rule_tensor **bind, uint32_t v, bool *yes,
                      iso_error *err) {
  rule_tensor *const at = bind[v];
  rule_tensor *plain = NULL;
  iso_rng rng = l->rng; /* of its own: samples are the same with it and without */
  iso_error local;
  iso_code c = val_eval(l->e, t, bind, VAL_FLOAT64, &plain, &local);
  *yes = false;
  for (way how = OUT; how < WAYS && !c && !*yes; how++) {
    rule_tensor *y = NULL;
    if ((c = move(at, how, &rng, &bind[v], &local))) break;
    c = val_eval(l->e, t, bind, VAL_FLOAT64, &y, &local);
    *yes = !c && (rule_dtype_is_complex(y->dtype) || difference(plain, y) > ROUNDING);
    rule_tensor_unref(y);
    rule_tensor_unref(bind[v]);
  }
  bind[v] = at;
  rule_tensor_unref(plain);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* Whether the call moves with the variable, and the sides, where they move, alike: by little, since
 * from one flat end of a function to the other it moves, too, and what lies between is not seen. */
static iso_code moves_alike(val_ladder *l, const rule_term *call, const rule *r, rule_tensor **bind,
                            uint32_t v, bool *yes, iso_error *err) {
  static const double SEEN = 1e-9, LITTLE = 1e-3; /* where the sides stand still */
  rule_tensor *const at = bind[v];
  rule_tensor *plain = NULL, *was[2] = {NULL, NULL}, *is[2] = {NULL, NULL};
  iso_rng rng = l->rng;
  iso_error local;
  iso_code c = val_eval(l->e, call, bind, VAL_FLOAT64, &plain, &local);
  if (!c) c = run_sides(l, r, bind, was, &local);
  *yes = false;
  moved sides = STILL;
  for (way how = LEAST; how < WAYS && !c && sides == STILL; how++) {
    rule_tensor *y = NULL;
    if ((c = move(at, how, &rng, &bind[v], &local))) break;
    c = val_eval(l->e, call, bind, VAL_FLOAT64, &y, &local);
    const double by = c ? 0 : rule_dtype_is_complex(y->dtype) ? LITTLE : difference(plain, y);
    if (by > ROUNDING && (how <= NEAR || by <= LITTLE)) {
      if (!(c = run_sides(l, r, bind, is, &local))) sides = sides_moved(was, is);
      *yes |= by >= SEEN && by <= LITTLE;
    }
    drop(is);
    rule_tensor_unref(y);
    rule_tensor_unref(bind[v]);
  }
  *yes = sides == ALIKE || (sides == STILL && *yes);
  bind[v] = at;
  drop(was);
  rule_tensor_unref(plain);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* A variable that cancels in the operand is no loss. One that was lost is so until it moves the
 * call: where it was lost is not looked for again. */
static iso_code look(val_ladder *l, const rule_term *call, const rule *r, rule_tensor **bind,
                     uint32_t v, uint8_t *seen, iso_error *err) {
  bool after = false, before = false;
  iso_code c = moves_alike(l, call, r, bind, v, &after, err);
  for (uint32_t i = 0; i < call->n && !c && !after && !before && *seen != VAL_LOST; i++)
    if (reads(call->child[i], v)) c = moves(l, call->child[i], bind, v, &before, err);
  if (after) *seen = VAL_MOVED;
  else if (before) *seen = VAL_LOST;
  return c;
}

iso_code val_note_moved(val_ladder *l, const rule *r, rule_tensor *const *bind, iso_error *err) {
  rule_tensor *own[RULE_MAX_VARS];
  const rule_term *flat[VAL_FLATS];
  iso_code c = ISO_OK;
  size_t n = 0;
  for (uint32_t v = 0; v < r->n_vars; v++) own[v] = bind[v];
  collect(r->lhs, flat, &n);
  collect(r->rhs, flat, &n);
  for (size_t i = 0; i < n && i < VAL_FLATS; i++)
    for (uint32_t v = 0; v < r->n_vars && !c; v++) {
      uint8_t *seen = &l->seen[i][v];
      const bool open = *seen != VAL_MOVED && (l->looked < LOOKED || *seen == VAL_LOST),
                 numbers = own[v] && own[v]->dtype == RULE_F64 && own[v]->numel > 0;
      if (open && numbers && reads(flat[i], v)) c = look(l, flat[i], r, own, v, seen, err);
    }
  l->looked++;
  return c;
}

const char *val_unmoved(const val_ladder *l) {
  const rule_term *flat[VAL_FLATS];
  size_t n = 0;
  collect(l->r->lhs, flat, &n);
  collect(l->r->rhs, flat, &n);
  for (size_t i = 0; i < n && i < VAL_FLATS; i++)
    for (uint32_t v = 0; v < l->r->n_vars; v++)
      if (l->seen[i][v] == VAL_LOST) return l->r->var[v].name;
  return n > VAL_FLATS ? "each of many functions" : NULL;
}
