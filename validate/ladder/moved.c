/* Whether samples show what a variable does. tanh(log(x + 1e9)) is one number for all that float64
 * tells, and a rule that says so holds on every sample, with as many digits as are looked at. So a
 * rule is tested only where each function that may be flat, and that the other side does not have,
 * was seen to move with each variable that moves its operand. Whether the side moves says less: the
 * variable may stand in it a second time, or what is left of a sum is what its rounding leaves. */
#include <math.h>

#include "rules/operators.h"
#include "validate/ladder/ladder.h"

/* Good samples in which variables are moved; later ones only where one has been lost. */
enum { LOOKED = 4 };

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

static bool contains(const rule_term *t, const rule_term *part) {
  if (rule_term_eq(t, part)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (contains(t->child[i], part)) return true;
  return false;
}

/* Calls of functions that may be flat, in order, but for those that the other side has. More than
 * there is room for are counted, too. */
static void collect(const rule_term *t, const rule_term *other, const rule_term **flat, size_t *n) {
  const rule_operator *o = t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
  for (uint32_t i = 0; i < t->n; i++) collect(t->child[i], other, flat, n);
  if (!o || !o->elementwise || !o->transcendental || contains(other, t)) return;
  if (*n < VAL_FLATS) flat[*n] = t;
  ++*n;
}

/* Ways to move numbers: further out, each by a factor of its own, further in, where functions are
 * defined that are not everywhere, or in reverse and with the other sign. */
typedef enum way { OUT, IN, TURNED, WAYS } way;

static iso_code move(const rule_tensor *x, way how, iso_rng *rng, rule_tensor **out,
                     iso_error *err) {
  const iso_code c = rule_tensor_new(RULE_F64, &x->shape, out, err);
  const double by = how == IN ? -0.5 : 0.5;
  for (int64_t i = 0; !c && i < x->numel; i++) {
    const double y = rule_tensor_get(x, how == TURNED ? x->numel - 1 - i : i);
    rule_tensor_set(*out, i, y * (how == TURNED ? -1 : 1) * (1 + by * iso_rng_uniform(rng)));
  }
  return c;
}

/* By more than its last places; what is a truth value or an integer, at all. */
static bool differ(const rule_tensor *a, const rule_tensor *b) {
  bool yes = false;
  for (int64_t i = 0; a->dtype == b->dtype && a->numel == b->numel && i < a->numel && !yes; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    yes = isfinite(x) && isfinite(y) && fabs(x - y) > 8 * 0x1p-52 * fmax(fabs(x), fabs(y));
  }
  return yes;
}

/* Whether the value of the term moves with the variable. */
static iso_code moves(val_ladder *l, const rule_term *t, rule_tensor **bind, uint32_t v, bool *yes,
                      iso_error *err) {
  rule_tensor *was = bind[v], *plain = NULL;
  iso_rng rng = l->rng; /* of its own: samples are the same with it and without */
  iso_error local;
  iso_code c = val_eval(l->e, t, bind, VAL_FLOAT64, &plain, &local);
  *yes = false;
  for (way how = OUT; how < WAYS && !c && !*yes; how++) {
    rule_tensor *y = NULL;
    if ((c = move(was, how, &rng, &bind[v], &local))) break;
    c = val_eval(l->e, t, bind, VAL_FLOAT64, &y, &local);
    *yes = !c && (rule_dtype_is_complex(y->dtype) || differ(plain, y));
    rule_tensor_unref(y);
    rule_tensor_unref(bind[v]);
  }
  bind[v] = was;
  rule_tensor_unref(plain);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* A variable that cancels in the operand is no loss. One that was lost is so until it moves the
 * call: where it was lost is not looked for again. */
static iso_code look(val_ladder *l, const rule_term *call, rule_tensor **bind, uint32_t v,
                     uint8_t *seen, iso_error *err) {
  bool after = false, before = false;
  iso_code c = moves(l, call, bind, v, &after, err);
  for (uint32_t i = 0; i < call->n && !c && !after && !before && *seen != VAL_LOST; i++)
    if (reads(call->child[i], v)) c = moves(l, call->child[i], bind, v, &before, err);
  if (after) *seen = VAL_MOVED;
  else if (before) *seen = VAL_LOST;
  return c;
}

iso_code val_note_moved(val_ladder *l, const rule *r, rule_tensor *const *bind, iso_error *err) {
  rule_tensor *own[RULE_MAX_VARS];
  iso_code c = ISO_OK;
  for (uint32_t v = 0; v < r->n_vars; v++) own[v] = bind[v];
  for (int side = 0; side < 2; side++) {
    const rule_term *flat[VAL_FLATS];
    size_t n = 0;
    collect(side ? r->rhs : r->lhs, side ? r->lhs : r->rhs, flat, &n);
    for (size_t i = 0; i < n && i < VAL_FLATS; i++)
      for (uint32_t v = 0; v < r->n_vars && !c; v++) {
        uint8_t *seen = &l->seen[side][i][v];
        const bool open = *seen != VAL_MOVED && (l->looked < LOOKED || *seen == VAL_LOST),
                   numbers = own[v] && own[v]->dtype == RULE_F64 && own[v]->numel > 0;
        if (open && numbers && reads(flat[i], v)) c = look(l, flat[i], own, v, seen, err);
      }
  }
  l->looked++;
  return c;
}

const char *val_unmoved(const val_ladder *l) {
  for (int side = 0; side < 2; side++) {
    const rule_term *flat[VAL_FLATS];
    size_t n = 0;
    collect(side ? l->r->rhs : l->r->lhs, side ? l->r->lhs : l->r->rhs, flat, &n);
    for (size_t i = 0; i < n && i < VAL_FLATS; i++)
      for (uint32_t v = 0; v < l->r->n_vars; v++)
        if (l->seen[side][i][v] == VAL_LOST) return l->r->var[v].name;
    if (n > VAL_FLATS) return "each of many functions";
  }
  return NULL;
}
