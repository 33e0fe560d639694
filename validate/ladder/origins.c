/* Where a rule's parts stop being numbers: a divisor that may be 0, the root of a number that may
 * be negative. A proof cancels such a part, and samples tell whether the sides differ there only if
 * one of them meets it. By chance none has a sum that is 1. */
#include <math.h>

#include "validate/ladder/ladder.h"

enum { ORIGINS = 32, INSTANCES = 4 };

typedef struct origin {
  const rule_term *term; /* of the rule */
  const rule_term *here; /* of the instance; NULL: it has none */
  bool sure;             /* at every instance so far it is a number where its operands are */
  bool met;              /* it was no number on some sample */
} origin;

typedef struct origins {
  origin at[ORIGINS];
  size_t n;
  bool full; /* there are more */
} origins;

/* Whether nothing shows that the term is a number wherever its operands are. */
static bool is_origin(const rule_term *t) {
  if (t->kind != RULE_OP || !rule_fact_of(t, NULL).undefined) return false;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_fact f = rule_fact_of(t->child[i], NULL);
    if (f.undefined || f.masked) return false;
  }
  return true;
}

static bool holds(const rule_term *t, const rule_term *part) {
  if (t == part || rule_term_eq(t, part)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (holds(t->child[i], part)) return true;
  return false;
}

/* Collects the terms that may be undefined. A term that occurs on the other side too makes both
 * undefined, and is left out. */
static void find(const rule_term *t, const rule_term *other, origins *o) {
  for (uint32_t i = 0; i < t->n; i++) find(t->child[i], other, o);
  if (!is_origin(t) || holds(other, t)) return;
  for (size_t i = 0; i < o->n; i++)
    if (rule_term_eq(o->at[i].term, t)) return;
  if (o->n < ORIGINS) o->at[o->n++] = (origin){.term = t, .sure = true};
  else o->full = true;
}

/* The instance's terms for those of the rule: there a name is a number, with a sign. */
static void place(const rule_term *t, const rule_term *here, origins *o) {
  if (t->kind != here->kind || t->n != here->n) return;
  for (uint32_t i = 0; i < t->n; i++) place(t->child[i], here->child[i], o);
  for (size_t i = 0; i < o->n; i++)
    if (o->at[i].term == t) o->at[i].here = here;
}

static bool any_undefined(const rule_tensor *v) {
  for (int64_t i = 0; i < v->numel; i++)
    if (!isfinite(rule_tensor_get(v, i))) return true;
  return false;
}

/* One sample. A term that does not run shows nothing. */
static iso_code look(val_ladder *l, const rule *r, unsigned kind, origins *o, iso_error *err) {
  const val_trying how = {&l->rng, val_engine_options(l->e)->rel_tol, true, true};
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  val_trial t = {0};
  iso_code c = val_sample(l->e, r, l->example, &l->rng, kind, bind, err);
  if (!c) c = val_try(l->e, r, bind, &how, &t, err);
  l->apart |= !c && t.apart;
  for (size_t i = 0; i < o->n && !c && t.outcome != VAL_FAILED; i++) {
    rule_tensor *v = NULL;
    val_probe p = {0};
    iso_error local;
    if (o->at[i].met || o->at[i].sure || !o->at[i].here) continue;
    c = val_eval_probe(l->e, o->at[i].here, bind, &p, &v, &local);
    o->at[i].met = !c && p.pole && any_undefined(v); /* and not past the largest number */
    rule_tensor_unref(v);
    c = c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
  }
  val_trial_fini(&t);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return c == ISO_NOMEM ? c : ISO_OK;
}

static bool all_met(const origins *o) {
  for (size_t i = 0; i < o->n; i++)
    if (!o->at[i].met && !o->at[i].sure) return false;
  return !o->full;
}

static iso_code look_at(val_ladder *l, const rule *r, origins *o, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < o->n; i++) o->at[i].here = NULL;
  place(l->r->lhs, r->lhs, o);
  place(l->r->rhs, r->rhs, o);
  for (size_t i = 0; i < o->n; i++) o->at[i].sure &= o->at[i].here && !is_origin(o->at[i].here);
  for (unsigned k = 0; k < VAL_KINDS && !c && !l->apart && !all_met(o); k++)
    c = look(l, r, k, o, err);
  for (unsigned k = 0; k <= r->n_vars && !c && !l->apart && !all_met(o); k++)
    c = look(l, r, VAL_POLE + k, o, err);
  return c;
}

iso_code val_seek_origins(val_ladder *l, iso_error *err) {
  origins o = {0};
  iso_code c = ISO_OK;
  find(l->r->lhs, l->r->rhs, &o);
  find(l->r->rhs, l->r->lhs, &o);
  if (!l->problem.open) c = look_at(l, l->r, &o, err);
  for (int i = 0; i < INSTANCES && l->problem.open && o.n && !c && !l->apart; i++) {
    iso_arena a = {0};
    val_found at;
    l->problem.roomy = false, l->problem.max_size = 3;
    c = val_find_instance(l->e, &l->problem, &l->rng, &a, &at, err);
    if (!c && at.found) c = look_at(l, &at.r, &o, err);
    if (!c && !at.found) l->apart = true;
    iso_arena_fini(&a);
  }
  l->apart |= !c && !all_met(&o);
  return c;
}
