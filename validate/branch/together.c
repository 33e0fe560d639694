/* Whether conditions that an operator brings together were seen in all four cases. Samples in which
 * each of two is met alone show nothing of both together. An impossible case is proved to be
 * impossible. */
#include "validate/branch/meet_int.h"

#include <string.h>

#include "rules/operators.h"
#include "validate/branch/choice_int.h"

enum { ROOTS = 6, CASES = 4 };

/* The conditions that reach an operator element by element. */
typedef struct roots {
  const rule_term *at[ROOTS];
  size_t n;
} roots;

typedef struct finder {
  const rule *r;
  iso_arena *arena;
  val_pair *pair;
  size_t n;
} finder;

static bool elementwise(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->elementwise || o->cast;
}

/* Operators that move truth values as they move numbers. */
static bool moves(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->rearranges || o->part;
}

static bool varies(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (varies(t->child[i])) return true;
  return false;
}

static bool contains(const rule_term *in, const rule_term *t) {
  if (rule_term_eq(in, t)) return true;
  for (uint32_t i = 0; i < in->n; i++)
    if (contains(in->child[i], t)) return true;
  return false;
}

static void add_root(roots *r, const rule_term *t) {
  for (size_t i = 0; i < r->n; i++)
    if (rule_term_eq(r->at[i], t)) return;
  if (r->n < ROOTS) r->at[r->n++] = t;
}

static void add_pair(finder *f, const rule_term *a, const rule_term *b) {
  if (rule_term_eq(a, b) || f->n == VAL_PAIRS) return;
  for (size_t i = 0; i < f->n; i++)
    if ((rule_term_eq(f->pair[i].one, a) && rule_term_eq(f->pair[i].other, b)) ||
        (rule_term_eq(f->pair[i].one, b) && rule_term_eq(f->pair[i].other, a)))
      return;
  f->pair[f->n++] = (val_pair){.one = a, .other = b};
}

/* The same move of a condition. */
static const rule_term *moved(finder *f, const rule_term *call, const rule_term *root) {
  const rule_term **child = iso_arena_alloc(f->arena, (call->n + 1) * sizeof *child);
  if (!child) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[0] = root;
  return rule_op(f->arena, call->u.s, child, call->n);
}

/* Returns: false where memory ran out. */
static bool find(finder *f, const rule_term *t, const rule_term *other, roots *out) {
  roots child[4];
  const bool each = t->kind == RULE_OP && elementwise(t->u.s),
             move = t->kind == RULE_OP && moves(t->u.s);
  out->n = 0;
  if (t->kind == RULE_VAR && f->r->var[t->u.i].kind == 'b') add_root(out, t);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return true;
  for (uint32_t i = 0; i < t->n; i++) {
    roots more;
    roots *here = i < 4 ? &child[i] : &more;
    if (!find(f, t->child[i], other, here)) return false;
    for (size_t k = 0; k < here->n && i < 4; k++) {
      const rule_term *root = move && i == 0 ? moved(f, t, here->at[k]) : here->at[k];
      if (!root) return false;
      if (each || (move && i == 0)) add_root(out, root);
    }
  }
  if (t->kind == RULE_OP && rule_operator_of(t->u.s)->choice == RULE_CHOICE_COMPARE && varies(t)) {
    out->n = 0;
    add_root(out, t);
    return true;
  }
  if (!each || contains(other, t)) return true;
  for (uint32_t i = 0; i < t->n && i < 4; i++)
    for (uint32_t k = i + 1; k < t->n && k < 4; k++)
      for (size_t a = 0; a < child[i].n; a++)
        for (size_t b = 0; b < child[k].n; b++) add_pair(f, child[i].at[a], child[k].at[b]);
  return true;
}

iso_code val_pairs_of(const rule *r, iso_arena *a, val_pair *out, size_t *n, iso_error *err) {
  finder f = {.r = r, .arena = a, .pair = out};
  roots top;
  const bool ok = find(&f, r->lhs, r->rhs, &top) && find(&f, r->rhs, r->lhs, &top);
  *n = f.n;
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* The case of a pair as a term: each of them, or its opposite, and both of that.
 * operator: terms of truth values are written with these. */
static iso_code case_of(val_engine *e, iso_arena *a, const val_pair *p, int which,
                        const rule_term **out, iso_error *err) {
  const rule_term *arg[2] = {p->one, p->other};
  iso_code c = ISO_OK;
  for (int k = 0; k < 2 && !c; k++)
    if (!(which >> k & 1))
      c = rule_call(a, val_engine_schemas(e), "aten::logical_not", &arg[k], 1, &arg[k], err);
  return c ? c : rule_call(a, val_engine_schemas(e), "aten::logical_and", arg, 2, out, err);
}

static iso_code note_case(val_engine *e, val_pair *p, int which, rule_tensor *const *bind,
                          iso_error *err) {
  iso_arena a = {0};
  const rule_term *t = NULL;
  rule_tensor *x = NULL;
  iso_error local;
  iso_code c = case_of(e, &a, p, which, &t, &local);
  if (!c) c = val_eval(e, t, bind, VAL_FLOAT64, &x, &local);
  /* Values that cannot be brought together so meet in no sample, and are not asked for. */
  if (c && c != ISO_NOMEM) p->seen = (1 << CASES) - 1;
  for (int64_t i = 0; !c && i < x->numel; i++)
    if (((const uint8_t *)x->data)[i]) {
      p->seen |= (uint8_t)(1U << which);
      break;
    }
  rule_tensor_unref(x);
  iso_arena_fini(&a);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* All cases at once, of two conditions of one shape. Returns: in `told` whether they are such. */
static iso_code note_cases(val_engine *e, val_pair *p, rule_tensor *const *bind, bool *told,
                           iso_error *err) {
  rule_tensor *x = NULL, *y = NULL;
  iso_error local;
  iso_code c = val_eval(e, p->one, bind, VAL_FLOAT64, &x, &local);
  if (!c) c = val_eval(e, p->other, bind, VAL_FLOAT64, &y, &local);
  *told =
      !c && x->dtype == RULE_BOOL && y->dtype == RULE_BOOL && rule_shape_eq(&x->shape, &y->shape);
  for (int64_t i = 0; *told && i < x->numel; i++) {
    const bool one = ((const uint8_t *)x->data)[i], other = ((const uint8_t *)y->data)[i];
    p->seen |= (uint8_t)(1U << (one + 2 * other));
  }
  rule_tensor_unref(x);
  rule_tensor_unref(y);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

iso_code val_pairs_note(val_engine *e, val_pair *pair, size_t n, rule_tensor *const *bind,
                        iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n && !c; i++) {
    bool told = false;
    if (pair[i].seen == (1 << CASES) - 1) continue;
    c = note_cases(e, &pair[i], bind, &told, err);
    for (int which = 0; which < CASES && !c && !told; which++)
      if (!(pair[i].seen >> which & 1)) c = note_case(e, &pair[i], which, bind, err);
  }
  return c;
}

/* Whether the case is proved to be impossible. operator: the condition is written with these. */
static iso_code impossible(val_engine *e, const rule *r, const val_pair *p, int which, bool *yes,
                           iso_error *err) {
  iso_arena a = {0};
  rule never = *r;
  rule_verdict v = {0};
  const rule_term *arg[2];
  *yes = false;
  iso_code c = case_of(e, &a, p, which, &arg[0], err);
  if (!c) {
    never.lhs = arg[0];
    c = rule_call(&a, val_engine_schemas(e), "aten::logical_not", arg, 1, &arg[1], err);
  }
  if (!c) c = rule_call(&a, val_engine_schemas(e), "aten::logical_and", arg, 2, &never.rhs, err);
  if (!c) c = val_prove(&never, val_engine_schemas(e), val_engine_options(e), &v, err);
  *yes = !c && v.status == RULE_PROVED;
  iso_arena_fini(&a);
  return c;
}

iso_code val_pairs_gap(val_engine *e, const rule *r, const val_pair *pair, size_t n, bool *gap,
                       iso_error *err) {
  iso_code c = ISO_OK;
  *gap = false;
  for (size_t i = 0; i < n && !*gap; i++)
    for (int which = 0; which < CASES && !c && !*gap; which++) {
      bool yes = false;
      if (pair[i].seen >> which & 1) continue;
      c = impossible(e, r, &pair[i], which, &yes, err);
      *gap = !c && !yes;
    }
  return c;
}
