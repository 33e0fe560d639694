/* Names of a rule bound to numbers (substitution.h).
 *
 * Expressions and conditions are looked at when everything else has matched. A name that occurs in
 * expressions only is solved for where it is the last one open in an equation that is linear in it.
 * Everything is then evaluated exactly; a float literal satisfies an equation between reals where
 * it is the double that the number asked for is read as, within rounding. */
#include "synth/search/substitution.h"

#include <math.h>
#include <string.h>

/* A literal that stands for 1/sqrt(n) is within an ulp of it; the square and the products round
 * again. */
static const double reading_tol = 1e-15;

void names_init(names *n, iso_arena *arena) {
  n->arena = arena;
  n->at = (names_mark){0};
}

static const rule_term *find(const names *n, const char *name) {
  for (uint32_t i = 0; i < n->at.n; i++)
    if (strcmp(n->name[i], name) == 0) return n->value[i];
  return NULL;
}

bool names_same(const names *a, const names *b) {
  if (a->at.n != b->at.n) return false;
  for (uint32_t i = 0; i < a->at.n; i++) {
    const rule_term *v = find(b, a->name[i]);
    if (!v || !rule_term_eq(a->value[i], v)) return false;
  }
  return true;
}

/* Sizes and attributes are numbers, or lists of integers. */
static bool is_value(const rule_term *v) {
  if (v->kind != RULE_LIST)
    return v->kind == RULE_INT || (v->kind == RULE_FLOAT && isfinite(v->u.f));
  for (uint32_t i = 0; i < v->n; i++)
    if (v->child[i]->kind != RULE_INT) return false;
  return true;
}

static bool bind_name(names *n, const char *name, const rule_term *v) {
  const rule_term *was = find(n, name);
  if (was) return rule_term_eq(was, v);
  if (!is_value(v) || n->at.n == NAMES_MAX) return false;
  n->name[n->at.n] = name;
  n->value[n->at.n++] = v;
  return true;
}

typedef struct trial { /* the names, and one more */
  const names *n;
  const char *name;
  int64_t value;
} trial;

static bool value_of(const void *ctx, const char *name, rule_term *out) {
  const trial *t = ctx;
  const rule_term *v = find(t->n, name);
  if (!v && t->name && strcmp(t->name, name) == 0) {
    *out = (rule_term){.kind = RULE_INT, .u.i = t->value};
    return true;
  }
  if (!v || v->kind == RULE_LIST) return false;
  *out = (rule_term){.kind = v->kind, .u = v->u};
  return true;
}

static bool expect(names *n, const rule_term *t, int64_t v) {
  const trial bound = {n, NULL, 0};
  const rule_values at = {value_of, &bound, reading_tol};
  int64_t x;
  if (rule_size_at(t, &at, &x))
    return x == v; /* every name in it is bound: known now, which spares the matcher other ways */
  if (n->at.n_expr == NAMES_MAX_EXPR) return false;
  n->expr[n->at.n_expr] = t;
  n->expr_value[n->at.n_expr++] = v;
  return true;
}

bool names_bind(names *n, const rule_term *t, const rule_term *v) {
  if (t->kind == RULE_NAME) return bind_name(n, t->u.s, v);
  if (t->kind == RULE_EXPR) return v->kind == RULE_INT && expect(n, t, v->u.i);
  return rule_term_eq(t, v);
}

bool names_bind_shape(names *n, const rule_variable *d, const rule_shape *shape) {
  for (uint32_t k = 0; k < shape->rank; k++)
    if (shape->dim[k] < 1) return false; /* rules speak of sizes from 1 on */
  if (d->any_shape) return true;
  if (d->leading ? shape->rank < d->n_dims : shape->rank != d->n_dims) return false;
  const uint32_t off = shape->rank - d->n_dims;
  for (uint32_t k = 0; k < d->n_dims; k++) {
    const rule_term *t = d->dim[k], *v;
    if (t->kind == RULE_NONE) continue;
    if (t->kind == RULE_INT && t->u.i != shape->dim[off + k]) return false;
    if (t->kind != RULE_INT &&
        (!(v = rule_int(n->arena, shape->dim[off + k])) || !names_bind(n, t, v)))
      return false;
  }
  return true;
}

/* ---- what has to hold ---- */

static const char *open_name(const names *n, const rule_term *t, bool *several) {
  const char *open = NULL;
  if (t->kind == RULE_NAME) return find(n, t->u.s) ? NULL : t->u.s;
  for (uint32_t i = 0; i < t->n; i++) {
    const char *x = open_name(n, t->child[i], several);
    if (x && open && strcmp(x, open) != 0) *several = true;
    if (x) open = x;
  }
  return open;
}

/* The residue of an equation at a value of its open name. */
static bool residue(const names *n, const rule_term *a, const rule_term *b, int64_t rhs,
                    const char *name, int64_t x, int64_t *out) {
  const trial t = {n, name, x};
  const rule_values v = {value_of, &t, 0};
  int64_t l;
  return rule_size_at(a, &v, &l) && (!b || rule_size_at(b, &v, &rhs)) &&
         !__builtin_sub_overflow(l, rhs, out);
}

/* Bind the one open name of a = b (or of a = rhs) where that is linear in it. */
static void solve(names *n, const rule_term *a, const rule_term *b, int64_t rhs) {
  bool several = false;
  const char *name = open_name(n, a, &several), *other = b ? open_name(n, b, &several) : NULL;
  if (several || (name && other && strcmp(name, other) != 0)) return;
  if (!name) name = other;
  int64_t f0, f1, slope, x, left;
  if (!name || !residue(n, a, b, rhs, name, 0, &f0) || !residue(n, a, b, rhs, name, 1, &f1)) return;
  if (__builtin_sub_overflow(f0, f1, &slope) || slope == 0 || f0 % slope) return;
  x = f0 / slope;
  const rule_term *v = rule_int(n->arena, x);
  if (v && residue(n, a, b, rhs, name, x, &left) && left == 0) bind_name(n, name, v);
}

static void solve_condition(names *n, const rule_term *t) {
  if (t->kind != RULE_EXPR) return;
  for (uint32_t i = 0; strcmp(t->u.s, "and") == 0 && i < t->n; i++) solve_condition(n, t->child[i]);
  if (strcmp(t->u.s, "=") == 0 && t->n == 2) solve(n, t->child[0], t->child[1], 0);
}

static void solve_all(names *n, const rule *r) {
  for (uint32_t before = UINT32_MAX; before != n->at.n;) {
    before = n->at.n;
    for (uint32_t i = 0; i < n->at.n_expr; i++) solve(n, n->expr[i], NULL, n->expr_value[i]);
    for (uint32_t i = 0; i < r->n_where; i++) solve_condition(n, r->where[i]);
  }
}

/* Sizes are at least 1, also those that only an expression gives. */
static bool sizes_are(const names *n, const rule_term *t) {
  const rule_term *v = t->kind == RULE_NAME ? find(n, t->u.s) : NULL;
  if (t->kind == RULE_NAME && !(v && v->kind == RULE_INT && v->u.i >= 1)) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!sizes_are(n, t->child[i])) return false;
  return true;
}

bool names_hold(names *n, const rule *r) {
  solve_all(n, r);
  const trial none = {n, NULL, 0};
  const rule_values v = {value_of, &none, reading_tol};
  for (uint32_t i = 0; i < n->at.n_expr; i++) {
    int64_t x;
    if (!rule_size_at(n->expr[i], &v, &x) || x != n->expr_value[i]) return false;
  }
  for (uint32_t i = 0; i < r->n_where; i++)
    if (rule_condition_at(r->where[i], &v) != RULE_TRUE) return false;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t k = 0; k < r->var[i].n_dims; k++)
      if (r->var[i].dim[k]->kind != RULE_NONE && !sizes_are(n, r->var[i].dim[k])) return false;
  return true;
}

bool names_strict(const names *n, const rule *r) {
  for (uint32_t i = 0; i < n->at.n; i++) {
    char kind = 'i';
    for (uint32_t k = 0; k < r->n_attrs; k++)
      if (strcmp(r->attr[k].name, n->name[i]) == 0) kind = r->attr[k].kind;
    if (n->value[i]->kind != (kind == 'f' ? RULE_FLOAT : kind == 'l' ? RULE_LIST : RULE_INT))
      return false;
  }
  return true;
}

bool names_exact(const names *n, const rule *r) {
  const trial none = {n, NULL, 0};
  const rule_values v = {value_of, &none, -1};
  for (uint32_t i = 0; i < r->n_where; i++)
    if (rule_condition_at(r->where[i], &v) != RULE_TRUE) return false;
  return true;
}

const rule_term *names_put(const names *n, const rule_term *t, iso_arena *a) {
  if (t->kind == RULE_NAME) return find(n, t->u.s);
  if (t->kind == RULE_EXPR) {
    const trial none = {n, NULL, 0};
    const rule_values v = {value_of, &none, 0};
    int64_t x;
    return rule_size_at(t, &v, &x) ? rule_int(a, x) : NULL;
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **c = iso_arena_alloc(a, (t->n + 1) * sizeof *c);
  for (uint32_t i = 0; i < t->n && c; i++)
    if (!(c[i] = names_put(n, t->child[i], a))) return NULL;
  return !c ? NULL : t->kind == RULE_OP ? rule_op(a, t->u.s, c, t->n) : rule_list(a, c, t->n);
}

static bool cover_term(names *n, const rule_term *g, const rule_term *t) {
  if (g->kind != RULE_OP && g->kind != RULE_LIST) return names_bind(n, g, t);
  if (g->kind != t->kind || g->n != t->n || (g->kind == RULE_OP && strcmp(g->u.s, t->u.s) != 0))
    return false;
  for (uint32_t i = 0; i < g->n; i++)
    if (!cover_term(n, g->child[i], t->child[i])) return false;
  return true;
}

bool names_of(const rule *general, const rule *r, iso_arena *arena, names *n) {
  names_init(n, arena);
  if (general->n_vars != r->n_vars) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    rule_shape shape = {.rank = r->var[i].n_dims};
    for (uint32_t k = 0; k < shape.rank; k++) shape.dim[k] = r->var[i].dim[k]->u.i;
    if (general->var[i].kind != r->var[i].kind || !names_bind_shape(n, &general->var[i], &shape))
      return false;
  }
  return cover_term(n, general->lhs, r->lhs) && cover_term(n, general->rhs, r->rhs) &&
         names_hold(n, general) && names_strict(n, general);
}

bool names_cover(const rule *general, const rule *r, iso_arena *arena, bool *exact) {
  names n;
  if (!names_of(general, r, arena, &n)) return false;
  *exact = names_exact(&n, general);
  return true;
}
