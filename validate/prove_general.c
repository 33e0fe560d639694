/* A rule with literal sizes made general: sizes, and the attributes that go with them, become names as far as the proof
 * still holds.
 *
 * Equal sizes get one name, and so do equal integers in attributes that are no dimension, index or flag; a size that is the
 * product of two others is written as that product. A float that is 1/sqrt(a size) becomes an attribute with that as its
 * condition, other floats become attributes. What then is not proved is taken back: first the products, then the floats,
 * then one size after the other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/prove_int.h"

enum { MAX_VALUES = 24, MAX_TRIES = 40, MAX_NEW_CONDITIONS = 2 * MAX_VALUES };

typedef struct general {
  const rule *r;
  rule_schemas *schemas;
  iso_arena *a;
  int64_t value[MAX_VALUES]; /* sizes, in increasing order */
  bool named[MAX_VALUES], dim[MAX_VALUES]; /* dim: of a variable, not of an attribute alone */
  size_t n;
  double real[MAX_VALUES];
  bool open[MAX_VALUES];
  size_t n_real;
  bool products, multiples;
} general;

static void note_size(general *g, int64_t v, bool of_variable) {
  size_t i = 0;
  if (v < 2) return;
  while (i < g->n && g->value[i] < v) i++;
  if ((i < g->n && g->value[i] == v) || g->n == MAX_VALUES) return;
  memmove(g->value + i + 1, g->value + i, (g->n - i) * sizeof *g->value);
  memmove(g->dim + i + 1, g->dim + i, (g->n - i) * sizeof *g->dim);
  g->value[i] = v;
  g->dim[i] = of_variable;
  g->n++;
}

static size_t find_size(const general *g, int64_t v) {
  for (size_t i = 0; i < g->n; i++)
    if (g->value[i] == v) return i;
  return g->n;
}

/* Integers of this argument are sizes, lengths and counts, not places. */
static bool counts(const rule_arg *arg) {
  static const char *const places[] = {"dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "start_dim", "end_dim", "source", "destination",
                                       "index", "dimension", "diagonal", "offset", "correction", "step", "stride", "dilation", "padding", "groups"};
  if (arg->type != RULE_ARG_INT && arg->type != RULE_ARG_INTS) return false;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!strcmp(arg->name, places[i])) return false;
  return true;
}

static bool floats(const rule_arg *arg) { return arg->type == RULE_ARG_FLOAT || arg->type == RULE_ARG_SCALAR; }

static void note_call(general *g, const rule_term *t) {
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(g->schemas, t->u.s) : NULL;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *k = t->child[i];
    const rule_arg *arg = s && i < s->n_args ? &s->arg[i] : NULL;
    if (k->kind == RULE_OP || (k->kind == RULE_LIST && !(arg && counts(arg)))) note_call(g, k);
    for (uint32_t j = 0; arg && counts(arg) && j < (k->kind == RULE_LIST ? k->n : 1); j++) {
      const rule_term *v = k->kind == RULE_LIST ? k->child[j] : k;
      if (v->kind == RULE_INT && v->u.i < (1 << 30)) note_size(g, v->u.i, false);
    }
    if (arg && floats(arg) && k->kind == RULE_FLOAT && isfinite(k->u.f) && fabs(k->u.f) > 0 && g->n_real < MAX_VALUES) {
      bool seen = false;
      for (size_t j = 0; j < g->n_real; j++) seen |= !(g->real[j] < k->u.f) && !(g->real[j] > k->u.f);
      if (!seen) g->real[g->n_real++] = k->u.f;
    }
  }
}

static const rule_term *name_of(general *g, char prefix, size_t i) {
  char name[32];
  snprintf(name, sizeof name, "%s%zu", prefix == 'n' ? "size" : "value", i);
  return rule_name(g->a, name);
}

/* The size v as a few times another variable's, as the product of two, as a name, or as it stands. */
static const rule_term *size_term(general *g, int64_t v) {
  const size_t at = find_size(g, v);
  for (int64_t times = 2; times <= 4 && g->multiples && v > 0 && v < (1 << 30); times++) {
    const size_t i = v % times ? g->n : find_size(g, v / times);
    if (i == g->n || !g->dim[i] || !g->named[i] || v / times <= 4) continue;
    return rule_expr(g->a, "*", (const rule_term *[]){rule_int(g->a, times), size_term(g, v / times)}, 2);
  }
  for (size_t i = 0; i < g->n && g->products && v > 3; i++) {
    const int64_t p = g->value[i];
    if (p * p > v || v % p || !g->named[i]) continue;
    const size_t k = find_size(g, v / p);
    if (k == g->n || !g->named[k]) continue;
    return rule_expr(g->a, "*", (const rule_term *[]){name_of(g, 'n', i), name_of(g, 'n', k)}, 2);
  }
  return at < g->n && g->named[at] ? name_of(g, 'n', at) : rule_int(g->a, v);
}

static const rule_term *in_list(general *g, const rule_term *t);

static const rule_term *rewritten(general *g, const rule_term *t, const rule_arg *arg) {
  if (t->kind == RULE_OP || (t->kind == RULE_LIST && !(arg && counts(arg)))) return in_list(g, t);
  if (arg && counts(arg) && t->kind == RULE_INT) return size_term(g, t->u.i);
  if (arg && counts(arg) && t->kind == RULE_LIST) {
    const rule_term *c[RULE_MAX_RANK];
    if (t->n > RULE_MAX_RANK) return t;
    for (uint32_t i = 0; i < t->n; i++) c[i] = t->child[i]->kind == RULE_INT ? size_term(g, t->child[i]->u.i) : t->child[i];
    return rule_list(g->a, c, t->n);
  }
  if (arg && floats(arg) && t->kind == RULE_FLOAT)
    for (size_t j = 0; j < g->n_real; j++)
      if (g->open[j] && !(g->real[j] < t->u.f) && !(g->real[j] > t->u.f)) return name_of(g, 'a', j);
  return t;
}

static const rule_term *in_list(general *g, const rule_term *t) {
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(g->schemas, t->u.s) : NULL;
  const rule_term **c = iso_arena_alloc(g->a, (t->n + 1) * sizeof *c);
  if (!c || t->kind == RULE_VAR) return c ? t : NULL;
  const bool getitem = t->kind == RULE_OP && !strcmp(t->u.s, "getitem");
  for (uint32_t i = 0; i < t->n; i++) {
    c[i] = getitem && i ? t->child[i] : rewritten(g, t->child[i], s && i < s->n_args ? &s->arg[i] : NULL);
    if (!c[i]) return NULL;
  }
  return t->kind == RULE_OP ? rule_op(g->a, t->u.s, c, t->n) : t->kind == RULE_LIST ? rule_list(g->a, c, t->n) : t;
}

/* Conditions of float attributes: 1/sqrt of a size, or positive. */
static uint32_t conditions(general *g, const rule_term **where) {
  uint32_t n = 0;
  for (size_t j = 0; j < g->n_real; j++) {
    const double f = g->real[j], down = nearbyint(1 / (f * f));
    if (!g->open[j] || f < 0) continue;
    const rule_term *s = name_of(g, 'a', j), *zero = rule_int(g->a, 0);
    where[n++] = rule_expr(g->a, ">", (const rule_term *[]){s, zero}, 2);
    const bool root = down >= 2 && fabs(f - 1 / sqrt(down)) <= 2e-16 * f;
    const size_t k = root ? find_size(g, (int64_t)down) : g->n;
    if (k == g->n) continue;
    const rule_term *square = rule_expr(g->a, "*", (const rule_term *[]){s, s}, 2);
    const rule_term *product = rule_expr(g->a, "*", (const rule_term *[]){square, size_term(g, (int64_t)down)}, 2);
    where[n++] = rule_expr(g->a, "=", (const rule_term *[]){product, rule_int(g->a, 1)}, 2);
  }
  return n;
}

static bool make(general *g, rule *out) {
  const rule *r = g->r;
  rule_variable *var = iso_arena_alloc(g->a, (r->n_vars + 1) * sizeof *var);
  rule_attribute *attr = iso_arena_alloc(g->a, (g->n_real + 1) * sizeof *attr);
  const rule_term **where = iso_arena_alloc(g->a, MAX_NEW_CONDITIONS * sizeof *where);
  if (!var || !attr || !where) return false;
  *out = *r;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_term **dim = iso_arena_alloc(g->a, (r->var[i].n_dims + 1) * sizeof *dim);
    if (!dim) return false;
    var[i] = r->var[i];
    for (uint32_t k = 0; k < r->var[i].n_dims; k++)
      if (!(dim[k] = size_term(g, r->var[i].dim[k]->u.i))) return false;
    var[i].dim = dim;
  }
  out->var = var;
  out->n_attrs = 0;
  for (size_t j = 0; j < g->n_real; j++) {
    if (!g->open[j]) continue;
    const rule_term *n = name_of(g, 'a', j);
    if (!n) return false;
    attr[out->n_attrs++] = (rule_attribute){n->u.s, 'f'};
  }
  out->attr = attr;
  out->n_where = conditions(g, where);
  out->where = where;
  for (uint32_t i = 0; i < out->n_where; i++)
    if (!where[i]) return false;
  out->lhs = in_list(g, r->lhs);
  out->rhs = in_list(g, r->rhs);
  return out->lhs && out->rhs;
}

/* What to give up next. Returns: false where nothing is left to. */
static bool give_up(general *g) {
  if (g->multiples) return g->multiples = false, true;
  if (g->products) return g->products = false, true;
  for (size_t j = g->n_real; j-- > 0;)
    if (g->open[j]) return g->open[j] = false, true;
  for (size_t i = 0; i < g->n; i++)
    if (g->named[i]) return g->named[i] = false, true;
  return false;
}

static bool usable(const rule *r) {
  if (r->n_where || r->n_attrs || r->n_vars > 64) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (r->var[i].any_shape || r->var[i].leading || r->var[i].low || r->var[i].high) return false;
    for (uint32_t k = 0; k < r->var[i].n_dims; k++)
      if (r->var[i].dim[k]->kind != RULE_INT) return false;
  }
  return true;
}

iso_code val_generalise(const rule *r, rule_schemas *schemas, uint64_t z3_rlimit, iso_arena *a, rule *out, rule_verdict *verdict, iso_error *err) {
  general g = {.r = r, .schemas = schemas, .a = a, .products = true, .multiples = true};
  *out = *r;
  *verdict = (rule_verdict){.status = RULE_UNKNOWN};
  snprintf(verdict->reason, sizeof verdict->reason, "the rule's sizes are not all numbers");
  if (!usable(r)) return ISO_OK;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t k = 0; k < r->var[i].n_dims; k++) note_size(&g, r->var[i].dim[k]->u.i, true);
  note_call(&g, r->lhs);
  note_call(&g, r->rhs);
  memset(g.named, 1, g.n * sizeof *g.named);
  memset(g.open, 1, g.n_real * sizeof *g.open);
  bool left = g.n > 0 || g.n_real > 0, single = false;
  size_t next = 0;
  for (int i = 0; i < MAX_TRIES && left; i++) {
    rule try;
    if (!make(&g, &try)) return iso_fail(err, ISO_NOMEM, "out of memory");
    const iso_code code = val_prove(&try, schemas, z3_rlimit, verdict, err);
    if (code != ISO_OK) return code;
    if (verdict->status == RULE_PROVED) {
      *out = try;
      return ISO_OK;
    }
    /* One size at a time first, the others named; then all of them, from the smallest on. */
    if (!g.products && !g.multiples && !single) {
      bool floats_open = false;
      for (size_t j = 0; j < g.n_real; j++) floats_open |= g.open[j];
      single = !floats_open;
    }
    if (single && next <= g.n) {
      memset(g.named, 1, g.n * sizeof *g.named);
      if (next < g.n) g.named[next] = false;
      next++;
      continue;
    }
    left = give_up(&g);
  }
  return ISO_OK;
}
