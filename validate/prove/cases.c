/* The symbolic prover's decision by cases; every case in which both sides are defined must be
 * proved.
 *
 * A case is a list of hypotheses (a condition and whether it holds). Equations are solved for a
 * size or attribute where that is possible, the rest are facts. Evaluation starts again in each
 * case; where it needs to know more (do these sizes agree, is one of them 1) it names a condition,
 * and both its values are tried. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/ops/ops.h"
#include "validate/prove/cases_int.h"
#include "validate/prove/z3_lazy.h"

enum { MAX_CASES = 400 };

typedef enum standing { CONTRADICTION, FINE, SOLVED, OPEN } standing;

static sx restated(sc *c, sc_guess g) {
  sx_map map[SC_MAX_GUESSES];
  for (size_t k = 0; k < c->here.n_bound_sizes; k++)
    map[k] = (sx_map){c->here.bound_size[k].from, c->here.bound_size[k].to};
  sx x = sc_node(c, X_ITE, (uint32_t[3]){g.cond, c->yes, c->no}, 3);
  if (c->here.n_bound_sizes) x = sx_subst(c, x, map, c->here.n_bound_sizes);
  else if (sc_op(c, g.cond) == X_LT) x = sx_lt(c, sc_word(c, g.cond, 0), c->zero);
  return g.holds ? x : sx_not(c, x);
}

/* Whether a guess of this case decides the condition. */
static bool guessed(sc_cases *k, sx g, bool *holds) {
  for (size_t i = 0; i < k->n; i++) {
    const sx x = restated(k->c, k->guess[i]);
    if (sx_top_guard(k->c, x) != g) continue;
    if (sc_word(k->c, x, 1) == k->c->yes && sc_word(k->c, x, 2) == k->c->no)
      return *holds = true, true;
    if (sc_word(k->c, x, 1) == k->c->no && sc_word(k->c, x, 2) == k->c->yes)
      return *holds = false, true;
  }
  return false;
}

/* Let a condition hold. SOLVED: a name was bound, and everything is to be read again. */
static standing hold(sc_cases *k, sx cond, bool facts) {
  sc *c = k->c;
  while (!c->fault.failed) {
    if (cond == c->yes) return FINE;
    if (cond == c->no) return CONTRADICTION;
    const sx g = sx_top_guard(c, cond), x = sc_word(c, cond, 1), y = sc_word(c, cond, 2);
    bool holds, known = false;
    for (size_t i = 0; i < c->here.n_path && !known; i++)
      if (c->here.path[i].cond == g) known = true, holds = c->here.path[i].holds;
    if (!known && !facts && x != c->no && y != c->no) known = guessed(k, g, &holds);
    if (!known && x != c->no && y != c->no) {
      if (!facts) return FINE; /* its turn comes */
      c->here.choice[0] = (sc_guess){g, true};
      c->here.choice[1] = (sc_guess){g, false};
      c->here.n_choices = 2;
      return OPEN;
    }
    if (!known) {
      holds = y == c->no;
      const sx p = sc_op(c, g) == X_EQ || sc_op(c, g) == X_LT ? sc_word(c, g, 0) : c->zero;
      if (holds && sc_op(c, g) == X_EQ && !facts && sc_solve(c, p)) return SOLVED;
      if (sc_op(c, g) == X_LT && !facts && sc_has(c, p, S_INT)) {
        const sx f = holds ? sx_sub(c, c->minus_one, p) : p;
        if (sc_bounded_below(c, f) || sc_bounded_above(c, f)) return SOLVED;
      }
      if (facts && !sc_assume(c, g, holds)) return c->fault.failed ? OPEN : CONTRADICTION;
    }
    cond = holds ? x : y;
  }
  return OPEN;
}

static standing all_hold(sc_cases *k, bool facts) {
  sc *c = k->c;
  c->here.n_facts = c->here.n_path = 0;
  for (size_t i = 0; i < c->here.n_bound_sizes && facts; i++) {
    const sx_sym *s = &c->store.sym[sc_word(c, c->here.bound_size[i].from, 0)];
    if (!s->has_low) continue;
    const sx f = sx_sub(c, c->here.bound_size[i].to, sx_int(c, s->low));
    if (sx_ge0(c, f)) continue;
    if (sx_ge0(c, sx_sub(c, c->minus_one, f))) return CONTRADICTION;
    if (c->here.n_facts < SC_MAX_FACTS) c->here.fact[c->here.n_facts++] = f;
  }
  for (int part = 0; part < 2; part++) {
    /* As facts the guesses come first: they say which part of a condition holds. */
    const bool guesses = (part == 0) == facts;
    for (size_t i = 0; i < (guesses ? k->n : c->r->n_where); i++) {
      const standing s =
          hold(k, guesses ? restated(c, k->guess[i]) : sc_condition(c, c->r->where[i]), facts);
      if (s != FINE) return s;
    }
  }
  return c->fault.failed ? OPEN : FINE;
}

static standing set_up(sc_cases *k) {
  sc *c = k->c;
  c->here.n_bound_sizes = c->terms.n_memo = c->terms.n_elems = c->here.n_choices =
      c->here.n_domain = 0;
  c->fault.failed = c->fault.undefined = false;
  c->budget.depth = c->budget.ge_depth = 0;
  c->fault.reason[0] = 0;
  memset(c->ranges.lead_of, 0, sizeof c->ranges.lead_of);
  c->parts.n_joins = c->parts.n_places = c->parts.at_place = 0;
  memset(c->ranges.table_size, 0, sizeof c->ranges.table_size);
  memset(c->ranges.end_size, 0, sizeof c->ranges.end_size);
  memset(c->ranges.class_size, 0, sizeof c->ranges.class_size);
  c->here.residues = 1;
  if (c->terms.cap_elems) {
    free(c->terms.elems);
    c->terms.elems = NULL;
    c->terms.cap_elems = 0;
  }
  iso_arena_fini(&c->arena);
  standing s = SOLVED;
  for (int i = 0; i < SC_MAX_SOLVED && s == SOLVED; i++) s = all_hold(k, false);
  return s == FINE ? all_hold(k, true) : s;
}

static uint64_t joined(const sc *c, uint64_t lead) {
  for (bool grew = true; grew;) {
    grew = false;
    for (int i = 0; i < 64; i++)
      if (c->ranges.lead_of[i] & lead && (c->ranges.lead_of[i] | lead) != lead)
        lead |= c->ranges.lead_of[i], grew = true;
  }
  return lead;
}

/* b with a's sizes, where it is a part. NULL: failed. */
static const pt_tensor *laid_out_as(sc *c, const pt_tensor *b, const pt_tensor *a) {
  if (a->lead || b->lead || a->wrapped || b->wrapped || a->kind != 'f' || b->kind != 'f') {
    sc_fail(c, "a part that is not cut out");
    return NULL;
  }
  bool same = a->rank == b->rank;
  for (uint32_t i = 0; i < a->rank && same; i++) same = sx_same(c, a->dim[i], b->dim[i]);
  return same ? b : pt_reshape(c, b, a->dim, a->rank);
}

/* Whether an element of t, as the definitions give it, may be minus infinity. */
static void note_masked(sc *c, const pt_tensor *t, const sx *idx) {
  c->reading.plain = true;
  c->used.masked |= (sc_flags(c, pt_at(c, t, idx)) & S_MASKED) != 0;
  c->reading.plain = false;
}

/* Whether both sides have one rank, one kind and one size everywhere. */
static bool same_shape(sc *c, const pt_tensor *a, const pt_tensor *b) {
  if (a->rank != b->rank || joined(c, a->lead) != joined(c, b->lead)) {
    sc_fail(c, "the sides have different ranks");
    return false;
  }
  if (a->kind != b->kind) {
    sc_fail(c, "dtypes differ in kind: %c and %c", a->kind, b->kind);
    return false;
  }
  if (a->narrow != b->narrow) {
    sc_fail(c, "the sides are integers of different widths");
    return false;
  }
  for (uint32_t i = 0; i < a->rank; i++) {
    bool same = sx_same(c, a->dim[i], b->dim[i]);
    if (!same && !sc_decide(c, sx_eq(c, a->dim[i], b->dim[i]), &same)) return false;
    if (!same) {
      char *left = sx_print(c, a->dim[i]), *right = sx_print(c, b->dim[i]);
      sc_fail(c, "the sides may differ in size at dimension %u: %.60s and %.60s", (unsigned)i,
              left ? left : "?", right ? right : "?");
      free(left);
      free(right);
      return false;
    }
  }
  return true;
}

/* Indices that are taken apart by division become two, in both elements. */
static void split_indices(sc *c, sx *x, sx *y) {
  sx s, d, q;
  for (int i = 0;
       i < 24 && !c->fault.failed && (sx_apart(c, *x, &s, &d) || sx_apart(c, *y, &s, &d)); i++) {
    if (!sx_divides(c, d, c->store.sym[sc_word(c, s, 0)].high, &q)) break;
    const sx_map map = {s, sx_add(c, sx_mul(c, sc_index(c, q), d), sc_index(c, d))};
    *x = sx_subst(c, *x, &map, 1);
    *y = sx_subst(c, *y, &map, 1);
  }
}

/* The elements place by place, along an index of few places that quotients have and do not take
 * apart: the first 5 of 3 blocks of 2. What was said before stays said where that shows nothing. */
static bool equal_by_place(sc *c, const sx *idx, uint32_t rank, sx x, sx y) {
  enum { MOST = 16 };
  const size_t n_choices = c->here.n_choices, facts = c->here.n_facts;
  int64_t n = 0;
  uint32_t d = 0;
  for (; d < rank; d++)
    if (sc_op(c, idx[d]) == X_SYM && sx_is_int(c, c->store.sym[sc_word(c, idx[d], 0)].high, &n) &&
        n > 1 && n <= MOST && (sx_divided(c, x, idx[d]) || sx_divided(c, y, idx[d])))
      break;
  if (d == rank || c->fault.no_memory || c->fault.overran) return false;
  char reason[sizeof c->fault.reason];
  memcpy(reason, c->fault.reason, sizeof reason);
  const bool failed = c->fault.failed;
  c->fault.failed = false;
  bool same = true;
  for (int64_t i = 0; i < n && same; i++) {
    const sx_map at = {idx[d], sx_int(c, i)};
    same = sc_equal(c, sx_subst(c, x, &at, 1), sx_subst(c, y, &at, 1)) && !c->fault.failed;
    c->here.n_facts = facts;
  }
  c->here.n_choices = same ? 0 : n_choices;
  if (same || c->fault.no_memory || c->fault.overran) return same;
  c->fault.failed = failed;
  memcpy(c->fault.reason, reason, sizeof reason);
  return false;
}

static bool compare(sc_cases *k, const pt_tensor *a, const pt_tensor *b) {
  sc *c = k->c;
  sx idx[RULE_MAX_RANK];
  if (c->look && c->look->part) b = laid_out_as(c, b, a);
  if (!b) return false;
  if (!same_shape(c, a, b)) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (sx_ge0(c, sx_neg(c, a->dim[i]))) return !c->fault.failed; /* no elements */
  for (uint32_t i = 0; i < a->rank; i++) {
    const sx f = sx_sub(c, a->dim[i], c->one);
    if (!sx_ge0(c, f) && c->here.n_facts < SC_MAX_FACTS)
      c->here.fact[c->here.n_facts++] = f; /* an empty result has no elements */
    idx[i] = sc_index(c, a->dim[i]);
  }
  if (c->look && c->look->one_term) return note_masked(c, a, idx), !c->fault.failed;
  if (c->look && c->look->of && sc_differ_in_numbers(c, a, b)) {
    sc_fail(c, "the elements differ in numbers");
    return false;
  }
  sx x = pt_at(c, a, idx), y = pt_at(c, b, idx);
  if (c->look && c->look->filled) return sc_note_sizes(c), !c->fault.failed;
  c->used.masked |= ((sc_flags(c, x) | sc_flags(c, y)) & S_MASKED) != 0;
  split_indices(c, &x, &y);
  if (c->fault.failed) return false;
  const size_t facts = c->here.n_facts;
  bool same = sc_equal(c, x, y);
  c->here.n_facts = facts;
  same = same || equal_by_place(c, idx, a->rank, x, y);
  if (c->obligations && !c->fault.no_memory && (same || c->obligations->unchecked)) {
    c->fault.failed = false;
    sc_write_obligation(c, a, b, idx);
    c->fault.failed = false;
  }
  if (same) return true;
  sc_fail(c, "the elements differ in normal form");
  return false;
}

/* The left side is not modelled in this case, which matters only where the right one has a value.
 * Returns: whether it has none; else the left side's failure stays, or the right one asks for a
 * split. */
static bool other_undefined(sc_cases *k) {
  sc *c = k->c;
  char reason[sizeof c->fault.reason];
  memcpy(reason, c->fault.reason, sizeof reason);
  if (set_up(k) != FINE) return false;
  pt_eval_tensor(c, c->r->rhs);
  if (c->fault.undefined && c->here.n_choices == 0) return true;
  if (c->here.n_choices == 0) memcpy(c->fault.reason, reason, sizeof reason);
  return false;
}

/* Sizes at which both sides of the rule are defined of which this is a part. */
static bool whole_has_sizes(sc *c) {
  const rule *of = c->look ? c->look->of : NULL;
  bool open = false;
  for (size_t i = 0; i < c->store.n_syms; i++) open |= c->store.sym[i].role == 's';
  return !of || !open || (pt_eval(c, of->lhs) && pt_eval(c, of->rhs));
}

bool sc_prove_case(sc_cases *k) {
  sc *c = k->c;
  if (++k->seen > MAX_CASES) {
    snprintf(k->why, sizeof k->why, "more than %d cases", (int)MAX_CASES);
    return false;
  }
  const standing s = set_up(k);
  if (s == CONTRADICTION && !c->fault.failed) return true;
  bool ok = false;
  if (k->at && !sc_case_meets(k)) return true;
  if (s == FINE && k->at) {
    const pt_tensor *a = pt_eval_tensor(c, c->r->lhs);
    if (a && !c->fault.failed && sc_case_in_numbers(k, a)) return true;
  } else if (s == FINE) {
    const pt_tensor *a = whole_has_sizes(c) ? pt_eval_tensor(c, c->r->lhs) : NULL;
    const pt_tensor *b = a ? pt_eval_tensor(c, c->r->rhs) : NULL;
    if (a && b && !c->fault.failed) ok = compare(k, a, b);
    bool defined = false;
    if (ok && !k->some_model && sc_has_model(c, &defined)) {
      sc_guess g[SC_MAX_FACTS];
      for (size_t i = 0; i < c->here.n_domain; i++) g[i] = (sc_guess){c->here.domain[i], true};
      k->some_model = defined || (!c->look->filled &&
                                  (c->here.n_domain < 2 || sc_z3_possible(c, g, c->here.n_domain)));
    }
    if (ok) return true;
    if (c->fault.undefined && c->here.n_choices == 0 && !k->at) return true; /* nothing to show */
    if (!a && !c->fault.no_memory && c->here.n_choices == 0 && !c->fault.undefined &&
        other_undefined(k))
      return true;
  }
  if (c->here.n_choices == 0 || c->fault.no_memory || c->fault.overran ||
      c->budget.work > c->budget.max_work) {
    snprintf(k->why, sizeof k->why, "%s", c->fault.reason[0] ? c->fault.reason : "no reason");
    return false;
  }
  const size_t n = c->here.n_choices, at = k->n;
  sc_guess choice[SC_MAX_CHOICES];
  memcpy(choice, c->here.choice, n * sizeof *choice);
  if (k->n + 1 >= 30) {
    snprintf(k->why, sizeof k->why, "too many cases within cases");
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    k->guess[k->n++] = choice[i];
    ok = sc_prove_case(k);
    k->n = at;
    if (!ok) return false;
  }
  return true;
}
