/* Case splits: a condition that evaluation needs is looked up in the case at hand; where it is
 * open, both its values are asked for, and evaluation stops. */
#include "validate/tensor/tensor.h"

static void ask(sc *c, sx guard) {
  if (c->fault.failed) return;
  c->here.choice[0] = (sc_guess){guard, true};
  c->here.choice[1] = (sc_guess){guard, false};
  c->here.n_choices = 2;
  sc_fail(c, "a case split");
}

/* Whether the case decides the condition. */
static bool known(const sc *c, sx guard, bool *out) {
  for (size_t i = 0; i < c->here.n_path; i++)
    if (c->here.path[i].cond == guard) return *out = c->here.path[i].holds, true;
  return false;
}

bool sc_decide(sc *c, sx cond, bool *out) {
  while (!c->fault.failed) {
    bool holds;
    if (cond == c->yes || cond == c->no) return *out = cond == c->yes, true;
    const sx g = sx_top_guard(c, cond);
    if (!known(c, g, &holds)) {
      ask(c, g);
      return false;
    }
    cond = sx_cofactor(c, cond, g, holds);
  }
  return false;
}

bool sc_require(sc *c, sx cond) {
  bool holds = false;
  if (!sc_decide(c, cond, &holds)) return false;
  if (holds) return true;
  c->fault.undefined = true;
  sc_fail(c, "a side that is not defined");
  return false;
}

bool sc_require_modelled(sc *c, sx cond, const char *otherwise) {
  bool holds = false;
  if (!sc_decide(c, cond, &holds)) return false;
  if (!holds) sc_fail(c, "%s", otherwise);
  return holds;
}

bool sc_require_eq(sc *c, sx p, sx q) { return sx_same(c, p, q) || sc_require(c, sx_eq(c, p, q)); }

bool sc_multiple(sc *c, sx a, sx b, sx *out) {
  int64_t x, y;
  if (c->fault.failed) return false; /* for a reason that need not be that there is no value */
  if (sx_divides(c, b, a, out)) return true;
  if (sx_is_int(c, a, &x) && sx_is_int(c, b, &y)) {
    c->fault.undefined = true;
    sc_fail(c, "a size that is no multiple of another");
    return false;
  }
  const sx u = sc_derived(c, "times", sx_add(c, a, sx_mul(c, b, sc_symbol_named(c, "per"))), 1);
  if (c->fault.failed) return false;
  const sx eq = sx_eq(c, a, sx_mul(c, b, u)), g = sx_top_guard(c, eq);
  bool gone;
  if (!g || known(c, g, &gone) || !sc_has(c, a, S_POS) || !sc_has(c, b, S_POS)) {
    sc_fail(c, "a size that is not known to be a multiple of another");
    return false;
  }
  c->here.choice[0] = (sc_guess){g, true};
  c->here.n_choices = 1;
  sc_fail(c, "a case split");
  return false;
}

void pt_join_leads(sc *c, uint64_t a, uint64_t b) {
  for (int i = 0; i < 64; i++)
    if ((a | b) >> i & 1) c->ranges.lead_of[i] |= a | b;
}

void sc_defined_if(sc *c, sx cond) {
  if (c->fault.failed || cond == c->yes) return;
  for (size_t i = 0; i < c->here.n_domain; i++)
    if (c->here.domain[i] == cond) return;
  if (c->here.n_domain < SC_MAX_FACTS) c->here.domain[c->here.n_domain++] = cond;
}
