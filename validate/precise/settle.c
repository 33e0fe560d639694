/* A sample's answer in float64, settled by many digits where these are to be had (precise.c), else
 * by whether sums lost an operand. */
#include <math.h>

#include "validate/oracle_int.h"
#include "validate/precise/precise_int.h"

/* Minus infinity, or the least number of float32, bfloat16 or float64 in its place. */
static bool is_mask(double v) { return !(v >= -1.79e308) || (v > -3.41e38 && v < -3.38e38); }

static bool has_mask(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return is_mask(t->u.f);
  for (uint32_t i = 0; i < t->n; i++)
    if (has_mask(t->child[i])) return true;
  return false;
}

/* A mask is no number that things are meant to be added to. */
static bool masked(const rule *r, rule_tensor *const *bind) {
  if (has_mask(r->lhs) || has_mask(r->rhs)) return true;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    if (!bind[v] || bind[v]->dtype != RULE_F64) continue;
    for (int64_t i = 0; i < bind[v]->numel; i++)
      if (is_mask(((const double *)bind[v]->data)[i])) return true;
  }
  return false;
}

/* Whether a sample has a number other than 0: where all are 0, products, powers of 1 and the like
 * agree for any other factors. */
static bool nonzero(const rule *r, rule_tensor *const *bind) {
  bool any_float = false;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    if (!bind[v] || bind[v]->dtype != RULE_F64) continue;
    any_float = true;
    for (int64_t i = 0; i < bind[v]->numel; i++)
      if (((const double *)bind[v]->data)[i] != 0) return true;
  }
  return !any_float;
}

/* Whether a sum of one side lost an operand that the other's did not, or a function is flat where
 * it lies (`functions`: these alone). Returns: in `known`, whether both sides could be looked at.
 */
static iso_code losses_differ(val_engine *e, const rule *r, rule_tensor *const *bind,
                              bool functions, bool *apart, bool *known, iso_error *err) {
  val_absorbed lost[2] = {{.functions = functions}, {.functions = functions}};
  iso_error local;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    val_probe p = {.absorbed = &lost[side]};
    rule_tensor *x = NULL;
    c = val_eval_probe(e, side ? r->rhs : r->lhs, bind, &p, &x, &local);
    rule_tensor_unref(x);
  }
  *known = !c;
  *apart = !c && val_absorbed_apart(&lost[0], &lost[1]);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* Without many digits: a sample counts where no side lost an operand that the other did not. */
static iso_code by_losses(val_engine *e, const rule *r, rule_tensor *const *bind, val_trial *t,
                          iso_error *err) {
  bool apart, known;
  const iso_code c = losses_differ(e, r, bind, false, &apart, &known, err);
  if (c || !known) return c;
  t->sure = !apart;
  if (apart) t->outcome = VAL_BLIND;
  return ISO_OK;
}

iso_code val_trial_settle(val_engine *e, const rule *r, rule_tensor *const *bind, bool all,
                          val_trial *t, iso_error *err) {
  val_precise p;
  const bool differs = t->outcome == VAL_DIFFER && t->what == 'v',
             blind = t->outcome == VAL_BLIND && t->lhs && t->lhs->numel > 0;
  if (!differs && !(all && (blind || t->outcome == VAL_AGREE))) return ISO_OK;
  if (differs && t->gross) { /* no rounding, unless a sum lost what it was to add */
    bool apart, known;
    const iso_code c = losses_differ(e, r, bind, false, &apart, &known, err);
    if (c || !apart) return c;
  }
  if (masked(r, bind)) {
    t->sure = true;
    return ISO_OK;
  }
  iso_code c = val_precise_sides(e, r, bind, &p, err);
  if (c) return c;
  /* The room that a literal's last digits leave open hides an operand that is smaller than these.
   * And no digits are enough for functions that are flat. */
  if (!differs && p.answer == VAL_PRECISE_SAME) {
    bool apart, known;
    c = losses_differ(e, r, bind, !p.by_literals, &apart, &known, err);
    if (!c && (apart || !known)) t->outcome = VAL_BLIND;
    if (c || t->outcome == VAL_BLIND) return c;
  }
  if (p.answer == VAL_PRECISE_LACKS)
    return t->outcome == VAL_BLIND ? ISO_OK : by_losses(e, r, bind, t, err);
  /* float64 took another branch than the numbers do: it met no threshold. */
  if (t->outcome != VAL_AGREE || p.answer != VAL_PRECISE_SAME) {
    t->cover[0].n = t->cover[1].n = 0;
    t->unmet = true;
  }
  if (p.answer == VAL_PRECISE_SAME) {
    t->outcome = VAL_AGREE;
    t->sure = nonzero(r, bind);
    t->soft = false;
  } else if (p.answer == VAL_PRECISE_APART) {
    t->outcome = VAL_DIFFER;
    t->what = 'v';
    t->index = p.index;
    t->abs = p.abs;
    t->rel = p.rel;
    t->soft = false;
  } else if (t->outcome == VAL_AGREE || p.jump) { /* or rounding decided a comparison */
    t->outcome = VAL_BLIND;
  } else if (differs) { /* more digits than there are may be what a sum lost */
    return by_losses(e, r, bind, t, err);
  }
  return ISO_OK;
}

iso_code val_same_numbers(void *engine, const rule_program side[2], rule_numbers *out,
                          iso_error *err) {
  val_precise p;
  const iso_code c = val_precise_programs(engine, side, &p, err);
  if (!c && p.close) p.answer = VAL_PRECISE_SAME;
  if (!c && p.lost && p.answer != VAL_PRECISE_SAME) {
    *out = RULE_NUMBERS_LOST;
    return c;
  }
  const bool settled = p.answer == VAL_PRECISE_SAME || p.answer == VAL_PRECISE_APART;
  if (!c && p.jump && !settled) {
    *out = RULE_NUMBERS_JUMP;
    return c;
  }
  switch (p.answer) {
  case VAL_PRECISE_SAME: *out = RULE_NUMBERS_SAME; break;
  case VAL_PRECISE_APART: *out = RULE_NUMBERS_APART; break;
  case VAL_PRECISE_OPEN: *out = RULE_NUMBERS_OPEN; break;
  default: *out = RULE_NUMBERS_UNKNOWN; break;
  }
  return c;
}
