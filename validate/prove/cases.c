/* The symbolic prover's decision: names, conditions, cases; every case in which both sides are
 * defined must be proved.
 *
 * A case is a list of hypotheses (a condition and whether it holds). Equations are solved for a
 * size or attribute where that is possible, the rest are facts. Evaluation starts again in each
 * case; where it needs to know more (do these sizes agree, is one of them 1) it names a condition,
 * and both its values are tried. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove/prove_int.h"
#include "validate/prove/z3_lazy.h"

enum { MAX_CASES = 400, MAX_SOLVED = 40 };

typedef struct cases {
  sc *c;
  sc_guess guess[SC_MAX_GUESSES];
  size_t n;
  int seen;        /* cases tried */
  bool some_model; /* one of them had sizes that meet it, and both sides were defined */
  const struct point
      *at; /* only the case that these numbers meet, its left side in numbers; NULL: all, proved */
  char why[200];
} cases;

static bool meets(cases *k);
static bool in_numbers(cases *k, const pt_tensor *t);

/* ---- names ---- */

static bool declared(const sc *c, const char *name) {
  for (size_t i = 0; i < c->n_syms; i++)
    if (c->sym[i].role != 'x' && !strcmp(c->sym[i].name, name)) return true;
  return false;
}

static void declare(sc *c, const char *name, char role, unsigned flags) {
  if (declared(c, name)) return;
  const size_t at = c->n_syms;
  if (role == 's') flags |= S_INT | S_POS | S_NONNEG | S_NONZERO;
  sc_symbol(c, name, role, flags);
  if (c->failed) return;
  if (role == 's' || (flags & (S_INT | S_NONNEG)) == (S_INT | S_NONNEG))
    c->sym[at].has_low = true, c->sym[at].low = (flags & S_POS) != 0;
}

static void names_of(sc *c, const rule_term *t, char role, unsigned flags) {
  if (t->kind == RULE_NAME) declare(c, t->u.s, role, flags);
  if (t->kind == RULE_EXPR)
    for (uint32_t i = 0; i < t->n; i++) names_of(c, t->child[i], role, flags);
}

/* The signs that condition `t`, or a part of what it joins by `and`, gives to a name outright. */
static unsigned sign_from(const rule_term *t, const char *name) {
  unsigned f = 0;
  if (t->kind != RULE_EXPR) return f;
  if (!strcmp(t->u.s, "and"))
    for (uint32_t i = 0; i < t->n; i++) f |= sign_from(t->child[i], name);
  if (t->n != 2) return f;
  const rule_term *a = t->child[0], *b = t->child[1];
  const bool left = a->kind == RULE_NAME && !strcmp(a->u.s, name),
             right = b->kind == RULE_NAME && !strcmp(b->u.s, name);
  const rule_term *v = left ? b : a;
  if (left == right || (v->kind != RULE_INT && v->kind != RULE_FLOAT)) return f;
  const double k = v->kind == RULE_INT ? (double)v->u.i : v->u.f;
  const bool less = !strcmp(t->u.s, "<"), more = !strcmp(t->u.s, ">"), le = !strcmp(t->u.s, "<="),
             ge = !strcmp(t->u.s, ">=");
  const bool strict = left ? more : less, weak = left ? ge : le;
  if ((strict && k >= 0) || (weak && k > 0)) f |= S_POS | S_NONNEG | S_NONZERO;
  if (weak && k >= 0) f |= S_NONNEG;
  if (!strcmp(t->u.s, "!=") && !(k < 0) && !(k > 0)) f |= S_NONZERO;
  return f;
}

/* Signs that the conditions give to a name outright: part of its nodes from the start. */
static unsigned signs(const sc *c, const char *name) {
  unsigned f = 0;
  for (uint32_t i = 0; i < c->r->n_where; i++) f |= sign_from(c->r->where[i], name);
  return f;
}

static void names_in_calls(sc *c, const rule_term *t, bool integers) {
  if (t->kind != RULE_OP) {
    if (t->kind == RULE_LIST)
      for (uint32_t i = 0; i < t->n; i++) names_in_calls(c, t->child[i], integers);
    return;
  }
  const rule_schema *s = rule_schemas_find(c->schemas, t->u.s);
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *k = t->child[i];
    const rule_arg_type type = s && i < s->n_args ? s->arg[i].type : RULE_ARG_TENSOR;
    const bool whole = type == RULE_ARG_INT || type == RULE_ARG_INTS;
    const uint32_t n = k->kind == RULE_LIST ? k->n : 1;
    for (uint32_t j = 0; j < n; j++) {
      const rule_term *e = k->kind == RULE_LIST ? k->child[j] : k;
      if (e->kind == RULE_OP || e->kind == RULE_LIST) names_in_calls(c, e, integers);
      else if (whole == integers && e->kind == RULE_NAME)
        declare(c, e->u.s, 'a', (whole ? S_INT : 0u) | signs(c, e->u.s));
      else if (e->kind == RULE_EXPR && integers) names_of(c, e, 'a', S_INT);
    }
  }
}

void sc_declare_names(sc *c) {
  const rule *r = c->r, *whole = c->look && c->look->of ? c->look->of : r;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t k = 0; k < r->var[i].n_dims; k++) {
      names_of(c, r->var[i].dim[k], 's', 0);
      char *name = r->var[i].dim[k]->kind == RULE_NONE ? malloc(32) : NULL;
      if (name) {
        snprintf(name, 32, "size %u %u", i, k); /* no name that a rule can give */
        if (c->n_owned == 256) sc_fail(c, "too many names"), free(name);
        else c->owned[c->n_owned++] = name, declare(c, name, 's', 0);
      }
    }
  for (uint32_t i = 0; i < r->n_attrs; i++) {
    if (r->attr[i].kind == 'l') continue;
    declare(c, r->attr[i].name, 'a',
            (r->attr[i].kind == 'i' ? S_INT : 0u) | signs(c, r->attr[i].name));
  }
  for (int integers = 1; integers >= 0; integers--) {
    names_in_calls(c, whole->lhs, integers);
    names_in_calls(c, whole->rhs, integers);
  }
  for (uint32_t i = 0; i < r->n_where; i++) {
    const rule_term *t = r->where[i];
    for (uint32_t k = 0; k < t->n; k++) names_of(c, t->child[k], 'a', S_INT);
  }
}

/* ---- conditions ---- */

/* The place of a condition among all parts of the rule's conditions, counted from the outside in:
 * equal for one term only. */
static bool count_to(const rule_term *t, const rule_term *at, unsigned *place) {
  ++*place;
  if (t == at) return true;
  for (uint32_t i = 0; t->kind == RULE_EXPR && i < t->n; i++)
    if (count_to(t->child[i], at, place)) return true;
  return false;
}

/* b divides a, where that is asked for outright: a = b * something. */
static sx multiple(sc *c, const rule_term *at, sx a, sx b) {
  char name[40];
  unsigned place = 0;
  bool found = false;
  for (uint32_t i = 0; i < c->r->n_where && !found; i++)
    found = count_to(c->r->where[i], at, &place);
  ISO_CHECK(found); /* two quotients under one name would be taken for equal */
  snprintf(name, sizeof name, "quotient %u", place);
  for (size_t i = 0; i < c->n_syms; i++)
    if (c->sym[i].role == 'q' && !strcmp(c->sym[i].name, name)) {
      sx_map map[SC_MAX_GUESSES];
      for (size_t k = 0; k < c->n_bound_sizes; k++)
        map[k] = (sx_map){c->bound_size[k].from, c->bound_size[k].to};
      const sx q = sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
      return sx_eq(c, a,
                   sx_mul(c, b, c->n_bound_sizes ? sx_subst(c, q, map, c->n_bound_sizes) : q));
    }
  char *copy = strdup(name);
  if (!copy) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return c->no;
  }
  if (c->n_owned == 256) {
    free(copy);
    sc_fail(c, "too many names");
    return c->no;
  }
  c->owned[c->n_owned++] = copy;
  const bool pos = sc_has(c, a, S_POS) && sc_has(c, b, S_POS);
  const size_t sym = c->n_syms;
  const sx q = sc_symbol(c, copy, 'q', S_INT | (pos ? S_POS | S_NONNEG | S_NONZERO : 0u));
  if (!c->failed && pos) c->sym[sym].has_low = true, c->sym[sym].low = 1;
  return sx_eq(c, a, sx_mul(c, b, q));
}

static sx condition(sc *c, const rule_term *t, bool outright) {
  if (c->failed) return c->no;
  const char *op = t->kind == RULE_EXPR ? t->u.s : "";
  if (!strcmp(op, "and") || !strcmp(op, "or")) {
    sx r = *op == 'a' ? c->yes : c->no;
    for (uint32_t i = 0; i < t->n; i++) {
      const sx x = condition(c, t->child[i], outright && *op == 'a');
      r = *op == 'a' ? sx_and(c, r, x) : sx_or(c, r, x);
    }
    return r;
  }
  if (!strcmp(op, "not")) return sx_not(c, condition(c, t->child[0], false));
  if (t->kind == RULE_BOOLEAN) return t->u.i ? c->yes : c->no;
  if (t->n < 2) {
    sc_fail(c, "a condition that is not understood");
    return c->no;
  }
  const rule_term *l = t->child[0], *r = t->child[1];
  const bool mod = !strcmp(op, "=") && l->kind == RULE_EXPR && !strcmp(l->u.s, "mod") &&
                   r->kind == RULE_INT && r->u.i == 0;
  if (outright && mod) return multiple(c, t, sc_size(c, l->child[0]), sc_size(c, l->child[1]));
  const sx a = sc_size(c, l), b = sc_size(c, r);
  if (!strcmp(op, "divides"))
    return outright ? multiple(c, t, b, a) : sx_eq(c, sx_mod(c, b, a), c->zero);
  if (!strcmp(op, "in")) return sx_and(c, sx_le(c, b, a), sx_lt(c, a, sc_size(c, t->child[2])));
  if (!strcmp(op, "=")) return sx_eq(c, a, b);
  if (!strcmp(op, "!=")) return sx_not(c, sx_eq(c, a, b));
  if (!strcmp(op, "<")) return sx_lt(c, a, b);
  if (!strcmp(op, "<=")) return sx_le(c, a, b);
  if (!strcmp(op, ">")) return sx_lt(c, b, a);
  if (!strcmp(op, ">=")) return sx_le(c, b, a);
  sc_fail(c, "a condition %.40s", op);
  return c->no;
}

sx sc_condition(sc *c, const rule_term *t) { return condition(c, t, true); }

/* ---- equations ---- */

static bool bind(sc *c, sx sym, sx to) {
  if (c->n_bound_sizes >= MAX_SOLVED || c->failed) return false;
  const sx_map map = {sym, to};
  for (size_t i = 0; i < c->n_bound_sizes; i++)
    c->bound_size[i].to = sx_subst(c, c->bound_size[i].to, &map, 1);
  c->bound_size[c->n_bound_sizes].from = sym;
  c->bound_size[c->n_bound_sizes++].to = to;
  return !c->failed;
}

static int negatives(const sc *c, sx p) {
  int k = 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    k += pv_q_sign(&c->q, q) < 0;
  }
  return k;
}

static bool is_name(const sc *c, sx m) {
  return sc_op(c, m) == X_SYM && strchr("saq", c->sym[sc_word(c, m, 0)].role) != NULL;
}

/* sym = -b / a from a sym + b = 0, a = +-1, or a number that is not 0 for a real attribute. */
static bool solve_linear(sc *c, sx p) {
  sx best = 0, to = 0;
  int least = 1000;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->failed; i++) {
    uint32_t q, e;
    sx m, s, a, b;
    sx_term(c, p, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &s, &e);
      if (!is_name(c, s) || !sx_linear(c, p, s, &a, &b)) continue;
      const bool whole = sc_has(c, s, S_INT), unit = a == c->one || a == c->minus_one;
      sx v;
      if (unit) v = a == c->one ? sx_neg(c, b) : b;
      else if (!whole && sc_has(c, a, S_NONZERO)) v = sx_neg(c, sx_mul(c, b, sx_inv(c, a)));
      else continue;
      if (whole && !sc_has(c, v, S_INT)) continue;
      const int cost = 4 * negatives(c, v) + (c->sym[sc_word(c, s, 0)].role == 's');
      if (cost < least) least = cost, best = s, to = v;
    }
  }
  return best && bind(c, best, to);
}

/* Two terms: a S = b T with numbers; s^k m = n with s > 0; a product of sizes that is 1. */
static bool solve_two(sc *c, sx p) {
  uint32_t q[2], e;
  sx m[2], s;
  int64_t k, a, b;
  if (sx_terms(c, p) != 2) return false;
  sx_term(c, p, 0, &q[0], &m[0]);
  sx_term(c, p, 1, &q[1], &m[1]);
  for (int i = 0; i < 2; i++) {
    if (m[1 - i] != c->one || !sc_has(c, p, S_INT) || pv_q_mul(&c->q, q[i], PV_MINUS_Q) != q[1 - i])
      continue;
    if (sx_factors(c, m[i]) < 2) continue;
    sx_factor(c, m[i], 0, &s, &e);
    if (is_name(c, s) && sc_has(c, m[i], S_POS)) return bind(c, s, c->one);
  }
  if (is_name(c, m[0]) && is_name(c, m[1]) && sc_has(c, m[0], S_INT | S_POS) &&
      sc_has(c, m[1], S_INT | S_POS) && pv_q_is_int(&c->q, q[0], &a) &&
      pv_q_is_int(&c->q, q[1], &b) && (a > 0) != (b > 0)) {
    const sx u = sc_derived(c, "common part", p, 1);
    return bind(c, m[0], sx_mul(c, sx_int(c, b < 0 ? -b : b), u)) &&
           bind(c, m[1], sx_mul(c, sx_int(c, a < 0 ? -a : a), u));
  }
  for (int i = 0; i < 2; i++)
    for (size_t j = 0, l = sx_factors(c, m[i]); j < l; j++) {
      sx_factor(c, m[i], j, &s, &e);
      if (!is_name(c, s) || sc_has(c, s, S_INT) || !sc_has(c, s, S_POS) ||
          !pv_q_is_int(&c->q, e, &k) || k == 0)
        continue;
      if (sx_occurs(c, s, m[1 - i])) continue;
      const sx rest = sx_mul(c, m[i], sx_powi(c, s, -k));
      const sx v =
          sx_neg(c, sx_mul(c, sx_scale(c, q[1 - i], m[1 - i]), sx_inv(c, sx_scale(c, q[i], rest))));
      if (!sc_has(c, v, S_POS)) continue;
      return bind(c, s, sx_pow(c, v, pv_q_pow(&c->q, pv_q_int(&c->q, k), -1)));
    }
  return false;
}

static bool solve(sc *c, sx p) { return solve_linear(c, p) || solve_two(c, p); }

/* f >= 0 says that an integer attribute is at least k >= 0: it gives way to a symbol of which that
 * is known. */
static bool bounded_below(sc *c, sx f) {
  for (size_t i = 0, n = sx_terms(c, f); i < n && n <= 2; i++) {
    uint32_t q;
    sx m, a, b;
    int64_t k;
    sx_term(c, f, i, &q, &m);
    if (!is_name(c, m) || !sc_has(c, m, S_INT) || !sx_linear(c, f, m, &a, &b) || a != c->one ||
        !sx_is_int(c, b, &k) || k > 0)
      continue;
    const sx_sym s = c->sym[sc_word(c, m, 0)];
    if (s.role == 's' || (s.has_low && s.low >= -k)) continue;
    return bind(c, m, sc_derived(c, s.name, m, -k));
  }
  return false;
}

/* f >= 0 says that an integer attribute is at most k <= 0: minus a symbol of which its least value
 * is known. */
static bool bounded_above(sc *c, sx f) {
  uint32_t q;
  sx m, a, b;
  int64_t k;
  for (size_t i = 0, n = sx_terms(c, f); i < n && n <= 2; i++) {
    sx_term(c, f, i, &q, &m);
    if (!is_name(c, m) || !sc_has(c, m, S_INT) || !sx_linear(c, f, m, &a, &b) ||
        a != c->minus_one || !sx_is_int(c, b, &k) || k > 0)
      continue;
    const sx_sym s = c->sym[sc_word(c, m, 0)];
    if (s.role == 's' || s.has_low) continue;
    return bind(c, m, sx_neg(c, sc_derived(c, s.name, m, -k)));
  }
  return false;
}

/* ---- the hypotheses of a case ---- */

typedef enum standing { CONTRADICTION, FINE, SOLVED, OPEN } standing;

static sx restated(sc *c, sc_guess g) {
  sx_map map[SC_MAX_GUESSES];
  for (size_t k = 0; k < c->n_bound_sizes; k++)
    map[k] = (sx_map){c->bound_size[k].from, c->bound_size[k].to};
  sx x = sc_node(c, X_ITE, (uint32_t[3]){g.cond, c->yes, c->no}, 3);
  if (c->n_bound_sizes) x = sx_subst(c, x, map, c->n_bound_sizes);
  else if (sc_op(c, g.cond) == X_LT) x = sx_lt(c, sc_word(c, g.cond, 0), c->zero);
  return g.holds ? x : sx_not(c, x);
}

/* Whether a guess of this case says what the condition is. */
static bool guessed(cases *k, sx g, bool *holds) {
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
static standing hold(cases *k, sx cond, bool facts) {
  sc *c = k->c;
  while (!c->failed) {
    if (cond == c->yes) return FINE;
    if (cond == c->no) return CONTRADICTION;
    const sx g = sx_top_guard(c, cond), x = sc_word(c, cond, 1), y = sc_word(c, cond, 2);
    bool holds, known = false;
    for (size_t i = 0; i < c->n_path && !known; i++)
      if (c->path[i].cond == g) known = true, holds = c->path[i].holds;
    if (!known && !facts && x != c->no && y != c->no) known = guessed(k, g, &holds);
    if (!known && x != c->no && y != c->no) {
      if (!facts) return FINE; /* its turn comes */
      c->choice[0] = (sc_guess){g, true};
      c->choice[1] = (sc_guess){g, false};
      c->n_choices = 2;
      return OPEN;
    }
    if (!known) {
      holds = y == c->no;
      const sx p = sc_op(c, g) == X_EQ || sc_op(c, g) == X_LT ? sc_word(c, g, 0) : c->zero;
      if (holds && sc_op(c, g) == X_EQ && !facts && solve(c, p)) return SOLVED;
      if (sc_op(c, g) == X_LT && !facts && sc_has(c, p, S_INT)) {
        const sx f = holds ? sx_sub(c, c->minus_one, p) : p;
        if (bounded_below(c, f) || bounded_above(c, f)) return SOLVED;
      }
      if (facts && !sc_assume(c, g, holds)) return c->failed ? OPEN : CONTRADICTION;
    }
    cond = holds ? x : y;
  }
  return OPEN;
}

static standing all_hold(cases *k, bool facts) {
  sc *c = k->c;
  c->n_facts = c->n_path = 0;
  for (size_t i = 0; i < c->n_bound_sizes && facts; i++) {
    const sx_sym *s = &c->sym[sc_word(c, c->bound_size[i].from, 0)];
    if (!s->has_low) continue;
    const sx f = sx_sub(c, c->bound_size[i].to, sx_int(c, s->low));
    if (sx_ge0(c, f)) continue;
    if (sx_ge0(c, sx_sub(c, c->minus_one, f))) return CONTRADICTION;
    if (c->n_facts < SC_MAX_FACTS) c->fact[c->n_facts++] = f;
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
  return c->failed ? OPEN : FINE;
}

static standing set_up(cases *k) {
  sc *c = k->c;
  c->n_bound_sizes = c->n_memo = c->n_elems = c->n_choices = c->n_domain = 0;
  c->failed = c->undefined = false;
  c->depth = c->ge_depth = 0;
  c->reason[0] = 0;
  memset(c->lead_of, 0, sizeof c->lead_of);
  c->n_joins = c->n_within = c->n_places = c->at_place = 0;
  memset(c->table_size, 0, sizeof c->table_size);
  c->residues = 1;
  if (c->cap_elems) {
    free(c->elems);
    c->elems = NULL;
    c->cap_elems = 0;
  }
  iso_arena_fini(&c->arena);
  standing s = SOLVED;
  for (int i = 0; i < MAX_SOLVED && s == SOLVED; i++) s = all_hold(k, false);
  return s == FINE ? all_hold(k, true) : s;
}

/* ---- models ---- */

static double one(void *ctx, uint32_t var, const int64_t *idx) {
  (void)ctx, (void)var, (void)idx;
  return 1;
}

/* Whether every function's argument lies in its domain where all elements are 1. */
static bool domain_holds(sc *c, const double *v) {
  bool holds = true;
  if (!c->value_of) c->value_of = one;
  for (size_t i = 0; i < c->n_domain && holds; i++) holds = sc_number(c, c->domain[i], v) > 0;
  if (c->value_of == one) c->value_of = NULL;
  return holds;
}

bool sc_model(sc *c, double *v) {
  static const int least[] = {1, 2, 3, 4, 6, 8, 5, 7, 9, 12, 16};
  uint64_t state = 12345;
  bool found = false;
  for (int round = 0; round < 4000 && !found; round++) {
    for (size_t i = 0; i < c->n_syms; i++) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const int pick = round < 11 ? least[round] : least[(state >> 33) % 11];
      const bool whole = c->sym[i].flags & S_INT;
      v[i] = pick;
      if (c->sym[i].role == 'a' && round >= 11 && !(c->sym[i].flags & S_POS))
        v[i] = (double)((int64_t)((state >> 40) % 13) - 4);
      if (!whole && round >= 11 && (state >> 20) % 2) v[i] = v[i] / 4;
    }
    found = true;
    for (size_t i = 0; i < c->n_facts && found; i++) found = sc_number(c, c->fact[i], v) >= 0;
    for (size_t i = 0; i < c->n_path && found; i++) {
      const sx g = c->path[i].cond;
      if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) continue;
      const double p = sc_number(c, sc_word(c, g, 0), v);
      found = (sc_op(c, g) == X_LT ? p < 0 : fabs(p) < 1e-9) == c->path[i].holds;
    }
  }
  return found;
}

bool sc_has_model(sc *c, bool *defined) {
  double *v = calloc(c->n_syms + 1, sizeof *v);
  const bool found = v && sc_model(c, v);
  if (defined) *defined = found && domain_holds(c, v);
  free(v);
  return found;
}

/* ---- one case ---- */

static uint64_t joined(const sc *c, uint64_t lead) {
  for (bool grew = true; grew;) {
    grew = false;
    for (int i = 0; i < 64; i++)
      if (c->lead_of[i] & lead && (c->lead_of[i] | lead) != lead)
        lead |= c->lead_of[i], grew = true;
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
  c->plain = true;
  c->masked |= (sc_flags(c, pt_at(c, t, idx)) & S_MASKED) != 0;
  c->plain = false;
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
  for (int i = 0; i < 24 && !c->failed && (sx_apart(c, *x, &s, &d) || sx_apart(c, *y, &s, &d));
       i++) {
    if (!sx_divides(c, d, c->sym[sc_word(c, s, 0)].high, &q)) break;
    const sx_map map = {s, sx_add(c, sx_mul(c, sc_index(c, q), d), sc_index(c, d))};
    *x = sx_subst(c, *x, &map, 1);
    *y = sx_subst(c, *y, &map, 1);
  }
}

static bool compare(cases *k, const pt_tensor *a, const pt_tensor *b) {
  sc *c = k->c;
  sx idx[RULE_MAX_RANK];
  if (c->look && c->look->part) b = laid_out_as(c, b, a);
  if (!b) return false;
  if (!same_shape(c, a, b)) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (sx_ge0(c, sx_neg(c, a->dim[i]))) return !c->failed; /* no elements */
  for (uint32_t i = 0; i < a->rank; i++) {
    const sx f = sx_sub(c, a->dim[i], c->one);
    if (!sx_ge0(c, f) && c->n_facts < SC_MAX_FACTS)
      c->fact[c->n_facts++] = f; /* an empty result has no elements */
    idx[i] = sc_index(c, a->dim[i]);
  }
  if (c->look && c->look->one_term) return note_masked(c, a, idx), !c->failed;
  if (c->look && c->look->of && sc_differ_in_numbers(c, a, b)) {
    sc_fail(c, "the elements differ in numbers");
    return false;
  }
  sx x = pt_at(c, a, idx), y = pt_at(c, b, idx);
  if (c->look && c->look->witness) return sc_note_sizes(c), !c->failed;
  c->masked |= ((sc_flags(c, x) | sc_flags(c, y)) & S_MASKED) != 0;
  split_indices(c, &x, &y);
  if (c->failed) return false;
  const size_t facts = c->n_facts;
  const bool same = sc_equal(c, x, y);
  c->n_facts = facts;
  if (c->certify && !c->no_memory && (same || c->certify->unchecked)) {
    c->failed = false;
    sc_certify(c, a, b, idx);
    c->failed = false;
  }
  if (same) return true;
  sc_fail(c, "the elements differ in normal form");
  return false;
}

/* The left side is not modelled in this case, which matters only where the right one has a value.
 * Returns: whether it has none; else what the left side left stays, or the right one asks for a
 * split. */
static bool other_undefined(cases *k) {
  sc *c = k->c;
  char reason[sizeof c->reason];
  memcpy(reason, c->reason, sizeof reason);
  if (set_up(k) != FINE) return false;
  pt_eval_tensor(c, c->r->rhs);
  if (c->undefined && c->n_choices == 0) return true;
  if (c->n_choices == 0) memcpy(c->reason, reason, sizeof reason);
  return false;
}

/* What the sizes are where both sides of the rule are defined of which this is a part. */
static bool whole_has_sizes(sc *c) {
  const rule *of = c->look ? c->look->of : NULL;
  bool open = false;
  for (size_t i = 0; i < c->n_syms; i++) open |= c->sym[i].role == 's';
  return !of || !open || (pt_eval(c, of->lhs) && pt_eval(c, of->rhs));
}

static bool prove_case(cases *k) {
  sc *c = k->c;
  if (++k->seen > MAX_CASES) {
    snprintf(k->why, sizeof k->why, "more than %d cases", (int)MAX_CASES);
    return false;
  }
  const standing s = set_up(k);
  if (s == CONTRADICTION && !c->failed) return true;
  bool ok = false;
  if (k->at && !meets(k)) return true;
  if (s == FINE && k->at) {
    const pt_tensor *a = pt_eval_tensor(c, c->r->lhs);
    if (a && !c->failed && in_numbers(k, a)) return true;
  } else if (s == FINE) {
    const pt_tensor *a = whole_has_sizes(c) ? pt_eval_tensor(c, c->r->lhs) : NULL;
    const pt_tensor *b = a ? pt_eval_tensor(c, c->r->rhs) : NULL;
    if (a && b && !c->failed) ok = compare(k, a, b);
    bool defined = false;
    if (ok && !k->some_model && sc_has_model(c, &defined)) {
      sc_guess g[SC_MAX_FACTS];
      for (size_t i = 0; i < c->n_domain; i++) g[i] = (sc_guess){c->domain[i], true};
      k->some_model =
          defined || (!c->look->witness && (c->n_domain < 2 || sc_z3_possible(c, g, c->n_domain)));
    }
    if (ok) return true;
    if (c->undefined && c->n_choices == 0 && !k->at) return true; /* nothing to show */
    if (!a && !c->no_memory && c->n_choices == 0 && !c->undefined && other_undefined(k))
      return true;
  }
  if (c->n_choices == 0 || c->no_memory || c->overran || c->work > c->max_work) {
    snprintf(k->why, sizeof k->why, "%s", c->reason[0] ? c->reason : "no reason");
    return false;
  }
  const size_t n = c->n_choices, at = k->n;
  sc_guess choice[SC_MAX_CHOICES];
  memcpy(choice, c->choice, n * sizeof *choice);
  if (k->n + 1 >= 30) {
    snprintf(k->why, sizeof k->why, "too many cases within cases");
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    k->guess[k->n++] = choice[i];
    ok = prove_case(k);
    k->n = at;
    if (!ok) return false;
  }
  return true;
}

/* ---- the answer ---- */

static void say(rule_verdict *out, const char *why) {
  *out = (rule_verdict){.status = RULE_UNKNOWN};
  snprintf(out->reason, sizeof out->reason, "%s", why);
}

static void describe(const sc *c, rule_verdict *out) {
  bool open = false, named = c->r->n_attrs > 0;
  for (uint32_t i = 0; i < c->r->n_vars; i++) {
    const rule_variable *v = &c->r->var[i];
    open |= v->any_shape || v->leading;
    for (uint32_t k = 0; k < v->n_dims; k++) named |= v->dim[k]->kind != RULE_INT;
  }
  *out = (rule_verdict){.status = RULE_PROVED,
                        .scope = open    ? RULE_ALL_SHAPES
                                 : named ? RULE_THESE_RANKS
                                         : RULE_THESE_SHAPES};
  out->method = c->used_z3 ? RULE_BY_CASES : RULE_BY_ELEMENT;
  out->rests_on = (c->literal ? RULE_RESTS_ON_LITERALS : 0u) |
                  (c->masks ? RULE_RESTS_ON_MASKS : 0u) | (c->in_parts ? RULE_RESTS_IN_PARTS : 0u) |
                  (c->ties ? RULE_RESTS_ON_TIES : 0u) | (c->unsorted ? RULE_RESTS_ON_ORDER : 0u);
  out->n_relative = (uint32_t)c->n_relative;
  if (c->n_relative && strlen(c->relative[0]) < sizeof out->relative_to)
    snprintf(out->relative_to, sizeof out->relative_to, "%s", c->relative[0]);
  size_t at = 0;
  for (size_t i = 0; i < c->n_relative && at < sizeof out->reason; i++) {
    const int n = snprintf(out->reason + at, sizeof out->reason - at, "%s%s",
                           i ? ", " : "relative to ", c->relative[i]);
    at += n > 0 ? (size_t)n : 0;
  }
}

void sc_forget_certificates(sc_certificate *k) {
  for (size_t i = 0; k && i < k->n; i++) free(k->text[i]);
  if (k) k->n = 0, k->some = false, k->why[0] = 0;
}

int64_t sc_budget(const val_options *o) {
  return o->z3_rlimit < SC_MAX_WORK / 8 ? SC_LEAST_WORK + 8 * (int64_t)o->z3_rlimit : SC_MAX_WORK;
}

static void begin(sc *c, const sc_look *look, const val_options *o, sc_certificate *certify) {
  c->look = look;
  c->read_literals = look->read_literals;
  c->read_masks = look->read_literals && sc_only_masks(c->r);
  c->mask_frames = look->mask_frames;
  c->rlimit = o->z3_rlimit;
  c->max_work = look->max_work;
  c->certify = certify;
  c->literal = look->used.literal;
  c->used_z3 = look->used.z3;
  c->ties = look->used.ties;
  c->unsorted = look->used.unsorted;
  c->in_parts = look->used.parts;
}

static void look_back(const sc *c, sc_sight *sight) {
  sight->has_frames = c->has_frames;
  sight->readable |= c->readable || sc_only_masks(c->r);
  sight->masked = c->masked;
  sight->work = c->work;
  sight->used = (sc_used){c->literal, c->used_z3, c->ties, c->unsorted, c->in_parts};
}

iso_code sc_attempt(const rule *r, rule_schemas *schemas, const val_options *o, const sc_look *look,
                    sc_certificate *certify, sc_sight *sight, rule_verdict *out, iso_error *err) {
  sc *c = calloc(1, sizeof *c);
  cases *k = calloc(1, sizeof *k);
  bool ok = c && k && sc_init(c, r, schemas, o), memory = ok, overran = false;
  if (ok) {
    begin(c, look, o, certify);
    k->c = c;
    sc_declare_names(c);
    ok = !c->failed && prove_case(k);
    memory = !c->no_memory;
    overran = c->overran;
    if (ok && !k->some_model) {
      ok = false;
      snprintf(k->why, sizeof k->why,
               "no sizes were found for which the conditions hold and both sides are defined");
    }
    if (ok) describe(c, out);
    else say(out, k->why[0] ? k->why : c->reason);
    look_back(c, sight);
  }
  if (c) sc_fini(c);
  free(c);
  free(k);
  if (overran) return iso_fail(err, ISO_LIMIT, "%s on rule %s", VAL_Z3_OVERRAN, r->name);
  return memory ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* ---- for tests: a case in numbers ---- */

typedef struct point {
  const sc_point *given;
  rule_shape *shape;
  char *kind;
  double **out;
} point;

enum { LEAST_UNKNOWN = -4, MOST_UNKNOWN = 64, MAX_UNKNOWN = 3 };

/* The numbers of the names that are given; the rest 0. */
static double *numbers_given(const sc *c, const sc_point *p) {
  double *v = calloc(c->n_syms + 1, sizeof *v);
  for (size_t i = 0; v && i < c->n_syms; i++)
    for (size_t k = 0; k < p->n && strchr("sa", c->sym[i].role); k++)
      if (!strcmp(c->sym[i].name, p->name[k])) v[i] = (double)p->value[k];
  return v;
}

static double off_by(cases *k, size_t bound, const double *v) {
  return fabs(sc_number(k->c, k->c->bound_size[bound].to, v) -
              v[sc_word(k->c, k->c->bound_size[bound].from, 0)]);
}

static bool agrees(cases *k, const double *v) {
  sc *c = k->c;
  for (size_t i = 0; i < c->n_bound_sizes;
       i++) /* names that others gave way to keep their least value */
    for (size_t q = 0; q < c->n_syms; q++)
      if (c->sym[q].role == 'q' && c->sym[q].has_low && v[q] < (double)c->sym[q].low &&
          sx_occurs(c, sc_node(c, X_SYM, &(uint32_t){(uint32_t)q}, 1), c->bound_size[i].to))
        return false;
  for (size_t i = 0; i < c->n_bound_sizes; i++)
    if (off_by(k, i, v) > 1e-9) return false;
  for (size_t i = 0; i < k->n; i++)
    if ((sc_number(c, k->guess[i].cond, v) > 0) != k->guess[i].holds) return false;
  return true;
}

/* Unknown numbers that one equation alone gives. Returns: how many of them are left. */
static size_t solve_in_numbers(cases *k, double *v, size_t *unknown, size_t n) {
  sc *c = k->c;
  for (size_t b = 0; b < c->n_bound_sizes; b++) {
    size_t at = n, times = 0;
    for (size_t i = 0; i < n; i++) {
      const sx x = sc_node(c, X_SYM, &(uint32_t){(uint32_t)unknown[i]}, 1);
      if (c->bound_size[b].from == x || sx_occurs(c, x, c->bound_size[b].to)) at = i, times++;
    }
    if (times != 1) continue;
    double u = LEAST_UNKNOWN;
    for (v[unknown[at]] = u; u <= 8 * MOST_UNKNOWN && off_by(k, b, v) > 1e-9;) v[unknown[at]] = ++u;
    unknown[at] = unknown[--n];
    b = SIZE_MAX; /* from the first again */
  }
  return n;
}

/* Whether the numbers given meet the case, with some numbers for what was derived from them; then
 * in v. */
static bool settle(cases *k, double *v) {
  sc *c = k->c;
  size_t unknown[64], n = 0;
  for (size_t i = 0; i < c->n_syms; i++) {
    bool occurs = false;
    const sx x = c->sym[i].role == 'q' ? sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1) : 0;
    for (size_t b = 0; x && b < c->n_bound_sizes && !occurs; b++)
      occurs = c->bound_size[b].from == x || sx_occurs(c, x, c->bound_size[b].to);
    for (size_t g = 0; x && g < k->n && !occurs; g++) occurs = sx_occurs(c, x, k->guess[g].cond);
    if (occurs && n == sizeof unknown / sizeof *unknown) return false;
    if (occurs) unknown[n++] = i;
  }
  n = solve_in_numbers(k, v, unknown, n);
  if (n > MAX_UNKNOWN) return false;
  for (size_t i = 0; i < n; i++) v[unknown[i]] = LEAST_UNKNOWN;
  for (;;) {
    if (agrees(k, v)) return true;
    size_t i = 0;
    while (i < n && v[unknown[i]] == MOST_UNKNOWN) v[unknown[i++]] = LEAST_UNKNOWN;
    if (i == n) return false;
    v[unknown[i]]++;
  }
}

static bool meets(cases *k) {
  double *v = numbers_given(k->c, k->at->given);
  const bool yes = v && settle(k, v);
  free(v);
  return yes;
}

/* Where a function's argument lies outside of its domain at this element: its conditions on inner
 * indices are left out. */
static bool outside(sc *c, const sx *idx, uint32_t rank, const double *v) {
  for (size_t i = 0; i < c->n_domain; i++) {
    bool inner = false;
    for (size_t s = 0; s < c->n_syms && !inner; s++) {
      if (c->sym[s].role != 'x') continue;
      const sx x = sc_node(c, X_SYM, &(uint32_t){(uint32_t)s}, 1);
      bool own = false;
      for (uint32_t d = 0; d < rank; d++) own |= idx[d] == x;
      inner = !own && sx_occurs(c, x, c->domain[i]);
    }
    if (!inner && !(sc_number(c, c->domain[i], v) > 0)) return true;
  }
  return false;
}

static bool in_numbers(cases *k, const pt_tensor *t) {
  sc *c = k->c;
  rule_shape *shape = k->at->shape;
  sx idx[RULE_MAX_RANK];
  int64_t n = 1;
  for (uint32_t i = 0; i < t->rank; i++) idx[i] = sc_index(c, t->dim[i]);
  const sx x = pt_at(c, t, idx);
  double *v = c->failed ? NULL : numbers_given(c, k->at->given), *got = NULL;
  bool ok = v && settle(k, v);
  *shape = (rule_shape){.rank = t->rank};
  for (uint32_t i = 0; i < t->rank && ok; i++) {
    shape->dim[i] = llround(sc_number(c, t->dim[i], v));
    ok = !__builtin_mul_overflow(n, shape->dim[i] < 0 ? 0 : shape->dim[i], &n);
  }
  got = ok ? calloc((size_t)n + 1, sizeof *got) : NULL;
  for (int64_t e = 0; e < n && got; e++) {
    int64_t rest = e;
    for (uint32_t i = shape->rank; i-- > 0; rest /= shape->dim[i])
      if (idx[i] != c->zero) v[sc_word(c, idx[i], 0)] = (double)(rest % shape->dim[i]);
    got[e] = outside(c, idx, t->rank, v) ? NAN : sc_number(c, x, v);
  }
  if (got) *k->at->kind = t->kind;
  free(*k->at->out);
  *k->at->out = got;
  free(v);
  return got != NULL;
}

bool sc_values(const rule *r, rule_schemas *schemas, const sc_point *at, rule_shape *shape,
               char *kind, double **out, bool *undefined, char *reason) {
  sc *c = calloc(1, sizeof *c);
  cases *k = calloc(1, sizeof *k);
  *out = NULL;
  *undefined = false;
  snprintf(reason, 200, "out of memory");
  if (c && k && sc_init(c, r, schemas, NULL)) {
    c->max_work = 4 * SC_MAX_WORK; /* a test waits */
    c->value_of = at->value_of;
    c->value_ctx = at->ctx;
    k->c = c;
    k->at = &(point){at, shape, kind, out};
    sc_declare_names(c);
    if (!c->failed) prove_case(k);
    const bool no_case = !c->failed && !k->why[0] && !*out;
    *undefined = (c->undefined || no_case) && !*out;
    snprintf(reason, 200, "%s",
             k->why[0] ? k->why
             : no_case ? "no case has these numbers"
                       : c->reason);
  }
  if (c) sc_fini(c);
  free(c);
  free(k);
  return *out != NULL;
}
