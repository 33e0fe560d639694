/* Whether samples show what a number of a rule does. A clamp at 3.01 in place of 3, or 1e-3 added
 * before a comparison, moves a truth value in few samples or in none, and a rule that says that it
 * moves none holds on all of them. So a rule is tested only where each side, with one of its
 * numbers changed, is another function by the same kinds of samples: with twice the number, and
 * with the other side's number that is nearest. */
#include <math.h>
#include <stdlib.h>

#include "rules/rules.h"
#include "validate/ladder/ladder.h"

enum { MOST_CALLS = 24 };

/* Numbers of this size mask, and what is covered moves with none of them. */
static const double mask = 1e4;

static bool number(const rule_term *t, double *v) {
  *v = t->kind == RULE_FLOAT ? t->u.f : t->kind == RULE_INT ? (double)t->u.i : NAN;
  return fabs(*v) < mask;
}

/* Whether argument `k` is a number that an operator computes with: no size, dimension or place. */
static bool computes(rule_schemas *schemas, const rule_term *call, uint32_t k, double *v) {
  const rule_schema *s = rule_schemas_find(schemas, call->u.s);
  if (!s || k >= s->n_args || !number(call->child[k], v)) return false;
  if (call->child[k]->kind == RULE_FLOAT) return true;
  return s->arg[k].type == RULE_ARG_SCALAR && fabs(*v) >= 2;
}

static bool holds(const rule_term *t, const rule_term *part) {
  if (rule_term_eq(t, part)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (holds(t->child[i], part)) return true;
  return false;
}

/* Calls of `t` with numbers, each once; what the other side has as it is needs no sample. */
static void collect(rule_schemas *schemas, const rule_term *t, const rule_term *other,
                    const rule_term **call, size_t *n) {
  double v;
  bool any = false, seen = false;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return;
  for (uint32_t k = 0; t->kind == RULE_OP && k < t->n; k++) any |= computes(schemas, t, k, &v);
  for (size_t i = 0; i < *n && any; i++) seen |= rule_term_eq(call[i], t);
  if (any && !seen && *n < MOST_CALLS && !holds(other, t)) call[(*n)++] = t;
  for (uint32_t k = 0; k < t->n; k++) collect(schemas, t->child[k], other, call, n);
}

/* The number of `t` nearest to v and within half of it, or what was found before. */
static void nearest(rule_schemas *schemas, const rule_term *t, double v, double *best) {
  double w;
  for (uint32_t k = 0; k < t->n; k++) {
    if (t->kind == RULE_OP && computes(schemas, t, k, &w) && w != v && fabs(w - v) <= fabs(v) / 2 &&
        !(fabs(*best - v) <= fabs(w - v)))
      *best = w;
    nearest(schemas, t->child[k], v, best);
  }
}

static const rule_term *replaced(iso_arena *a, const rule_term *t, const rule_term *from,
                                 const rule_term *to) {
  if (rule_term_eq(t, from)) return to;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < t->n; k++)
    if (!(child[k] = replaced(a, t->child[k], from, to))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_LIST ? rule_list(a, child, t->n) : rule_op(a, t->u.s, child, t->n);
}

/* `side` with another number in argument `k` of its calls that are `call`. */
static const rule_term *changed(iso_arena *a, const rule_term *side, const rule_term *call,
                                uint32_t k, double v) {
  const rule_term **child = iso_arena_alloc(a, (call->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t i = 0; i < call->n; i++) child[i] = call->child[i];
  const bool whole = call->child[k]->kind == RULE_INT && v == trunc(v);
  child[k] = whole ? rule_int(a, (int64_t)v) : rule_float(a, v);
  const rule_term *to = child[k] ? rule_op(a, call->u.s, child, call->n) : NULL;
  return to ? replaced(a, side, call, to) : NULL;
}

iso_code val_literal_twin(iso_arena *a, rule_schemas *schemas, const rule *r, size_t which,
                          val_twin *out, iso_error *err) {
  for (int s = 0; s < 2; s++) {
    const rule_term *side = s ? r->rhs : r->lhs, *other = s ? r->lhs : r->rhs;
    const rule_term *call[MOST_CALLS];
    size_t n = 0;
    collect(schemas, side, other, call, &n);
    for (size_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < call[i]->n; k++) {
        double v, near = NAN;
        if (!computes(schemas, call[i], k, &v)) continue;
        /* Beside integers samples are drawn that lie next to it. Beside floats its own twins are
         * left out, too, since a term does not say its dtype: it is a twin of the other side's. */
        if (call[i]->child[k]->kind == RULE_INT) continue;
        nearest(schemas, other, v, &near);
        for (int twice = 0; twice < 2; twice++) {
          const double to = !twice ? near : v == 0 ? 0.5 : 2 * v;
          if (isnan(to) || which-- > 0) continue;
          *out = (val_twin){*r, v, true};
          out->r.lhs = side;
          out->r.rhs = changed(a, side, call[i], k, to);
          return out->r.rhs ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
        }
      }
  }
  out->found = false;
  return ISO_OK;
}
