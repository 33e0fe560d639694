/* The rule with names in place of sizes and floats: where they stand, how a size is written by
 * others, conditions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/exec/engine_int.h"
#include "validate/prove/generalise.h"
#include "validate/prove/generalise_int.h"
#include "validate/tensor/tensor.h"

enum { MAX_TIMES = 16 /* parts, mostly: a rank holds one */, LONG_ROW = 5 };

static bool note_unit(general *g, int64_t v) {
  if (g->n_units == MAX_UNITS) return false;
  g->at[g->n_units++] = (unit){v, MAX_VALUES};
  return true;
}

static size_t find_size(const general *g, int64_t v) {
  for (size_t i = 0; i < g->n; i++)
    if (g->value[i] == v) return i;
  return g->n;
}

static void note_float(general *g, double f) {
  bool seen = !isfinite(f) || !(fabs(f) > 0) || sc_mask_literal(f) || g->n_real == MAX_VALUES;
  for (size_t j = 0; j < g->n_real && !seen; j++) seen = !(g->real[j] < f) && !(g->real[j] > f);
  if (!seen) g->real[g->n_real++] = f;
}

static const rule_term *name_of(general *g, char prefix, size_t i) {
  char name[32];
  snprintf(name, sizeof name, "%s%zu", prefix == 'n' ? "size" : "value", i);
  return rule_name(g->a, name);
}

static bool in_attribute(const general *g, size_t size) {
  for (size_t k = g->n_dims; k < g->n_units; k++)
    if (g->at[k].size == size) return true;
  return false;
}

bool gn_in_long_row(const general *g, int64_t number, int64_t v) {
  int64_t n = 1;
  if (number % v) return false;
  while (find_size(g, (n + 1) * v) < g->n) n++;
  return n >= LONG_ROW && number / v <= n;
}

const rule_term *gn_size_term(general *g, size_t at) {
  const int64_t v = g->value[at];
  for (int64_t times = 2; times <= MAX_TIMES && g->multiples && !g->plain[at]; times++) {
    const size_t i = v % times ? g->n : find_size(g, v / times);
    if (i == g->n || !g->named[i] || (v / times < 3 && !gn_in_long_row(g, v, v / times))) continue;
    return rule_expr(g->a, "*", (const rule_term *[]){rule_int(g->a, times), gn_size_term(g, i)},
                     2);
  }
  for (size_t i = 0; i < 2 * g->n && g->products && !g->plain[at] && v > 3; i++) {
    /* Heads and their size stand in attributes; their products are sizes of tensors. */
    const bool any = i >= g->n;
    const size_t j = i % g->n;
    const int64_t p = g->value[j];
    if (p * p > v || v % p || !g->named[j] || !(any || in_attribute(g, j))) continue;
    const size_t k = find_size(g, v / p);
    if (k == g->n || !g->named[k] || !(any || in_attribute(g, k))) continue;
    return rule_expr(g->a, "*", (const rule_term *[]){name_of(g, 'n', j), name_of(g, 'n', k)}, 2);
  }
  return g->named[at] ? name_of(g, 'n', at) : rule_int(g->a, v);
}

/* The term for the next place of a size: noted while there are no units, else as they say. */
static const rule_term *next_unit(general *g, const rule_term *t) {
  const bool sized = t->kind == RULE_INT && t->u.i > 1 && t->u.i < (1 << 30);
  if (!sized) return t;
  if (g->next >= MAX_UNITS) return g->crowded = true, t;
  const size_t i = g->next++;
  if (i >= g->n_units && !note_unit(g, t->u.i)) return t;
  if (g->by) return g->by[i] ? rule_int(g->a, t->u.i + g->by[i]) : t;
  return g->at[i].size < g->n ? gn_size_term(g, g->at[i].size) : t;
}

static void note_whole(general *g, int64_t v) {
  for (size_t k = 0; k < g->n_whole; k++)
    if (g->whole[k] == v) return;
  if (g->n_whole < MAX_VALUES) g->whole[g->n_whole++] = v;
}

bool gn_is_operand(const general *g, int64_t v) {
  for (size_t k = 0; k < g->n_whole; k++)
    if (g->whole[k] == v) return true;
  return false;
}

/* A number that is no size: one below a size, where it is taken for that; else as it stands. */
static const rule_term *last_place(general *g, const rule_term *t) {
  note_whole(g, t->u.i);
  const size_t i = t->u.i > 0 && t->u.i < INT64_MAX ? find_size(g, t->u.i + 1) : g->n;
  if (i == g->n || !g->named[i]) return t;
  g->n_lasts++;
  if (!g->lasts || g->by) return t;
  return rule_expr(g->a, "-", (const rule_term *[]){gn_size_term(g, i), rule_int(g->a, 1)}, 2);
}

static const rule_term *in_list(general *g, const rule_term *t);

static const rule_term *rewritten(general *g, const rule_term *t, const rule_arg *arg) {
  if (t->kind == RULE_OP || (t->kind == RULE_LIST && !(arg && sc_counts(arg))))
    return in_list(g, t);
  if (arg && sc_counts(arg) && t->kind == RULE_INT) return next_unit(g, t);
  if (arg && sc_counts(arg) && t->kind == RULE_LIST) {
    const rule_term *c[RULE_MAX_RANK];
    if (t->n > RULE_MAX_RANK) return t;
    for (uint32_t i = 0; i < t->n; i++) c[i] = next_unit(g, t->child[i]);
    return rule_list(g->a, c, t->n);
  }
  if (arg && arg->type == RULE_ARG_SCALAR && t->kind == RULE_INT) return last_place(g, t);
  if (arg && sc_takes_floats(arg) && t->kind == RULE_FLOAT) {
    note_float(g, t->u.f);
    for (size_t j = 0; j < g->n_real; j++)
      if (g->open[j] && !(g->real[j] < t->u.f) && !(g->real[j] > t->u.f)) return name_of(g, 'a', j);
  }
  return t;
}

static const rule_term *in_list(general *g, const rule_term *t) {
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(g->schemas, t->u.s) : NULL;
  if (t->kind == RULE_VAR) return t;
  const rule_term *made = rule_memo_find(&g->made, t, NULL);
  if (made) return made;
  const rule_term **c = iso_arena_alloc(g->a, (t->n + 1) * sizeof *c);
  if (!c) return NULL;
  const bool getitem = t->kind == RULE_OP && !strcmp(t->u.s, "getitem");
  for (uint32_t i = 0; i < t->n; i++) {
    c[i] = getitem && i ? t->child[i]
                        : rewritten(g, t->child[i], s && i < s->n_args ? &s->arg[i] : NULL);
    if (!c[i]) return NULL;
  }
  made = t->kind == RULE_OP     ? rule_op(g->a, t->u.s, c, t->n)
         : t->kind == RULE_LIST ? rule_list(g->a, c, t->n)
                                : t;
  return made && rule_memo_put(&g->made, t, NULL, made) ? made : NULL;
}

/* Powers of sizes that scales are: f^up = size, or f^down size = 1. */
static const struct power powers[] = {{0, 2}, {2, 0}, {0, 4}, {0, 1}};

size_t gn_size_of_float(const general *g, double f, struct power *as) {
  for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
    *as = powers[k];
    const double v = nearbyint(as->up ? pow(f, as->up) : 1 / pow(f, as->down));
    if (!(v >= 2) || v > 1e9 ||
        fabs(f - (as->up ? pow(v, 1.0 / as->up) : 1 / pow(v, 1.0 / as->down))) > 4e-16 * f)
      continue;
    const size_t i = find_size(g, (int64_t)v);
    if (i < g->n && g->named[i]) return i;
  }
  return g->n;
}

static const rule_term *times(general *g, const rule_term *x, const rule_term *y) {
  return rule_expr(g->a, "*", (const rule_term *[]){x, y}, 2);
}

/* x^n, n at least 1. */
static const rule_term *to_the(general *g, const rule_term *x, int n) {
  const rule_term *r = x;
  for (int i = 1; i < n; i++) r = times(g, r, x);
  return r;
}

/* Conditions of float attributes: the power of a size that each equals, and positive. Conditions of
 * sizes: they, and so the places in them, fit into the narrow integers that the rule casts to. */
static uint32_t conditions(general *g, const rule_term **where) {
  uint32_t n = 0;
  for (size_t i = 0; i < g->n; i++) {
    const rule_term *s = g->below[i] && g->named[i] ? gn_size_term(g, i) : NULL;
    if (!s || s->kind != RULE_NAME) continue;
    where[n++] = rule_expr(g->a, "<", (const rule_term *[]){s, rule_int(g->a, g->limit)}, 2);
  }
  for (size_t j = 0; j < g->n_real; j++) {
    const double f = g->real[j];
    struct power p;
    if (!g->open[j] || f < 0 || g->need[j] == NOTHING) continue;
    const rule_term *s = name_of(g, 'a', j);
    where[n++] = rule_expr(g->a, ">", (const rule_term *[]){s, rule_int(g->a, 0)}, 2);
    const size_t k = g->need[j] == AS_A_SIZE ? gn_size_of_float(g, f, &p) : g->n;
    if (k == g->n) continue;
    const rule_term *size = gn_size_term(g, k),
                    *l = p.up ? to_the(g, s, p.up) : times(g, to_the(g, s, p.down), size);
    where[n++] = rule_expr(g->a, "=", (const rule_term *[]){l, p.up ? size : rule_int(g->a, 1)}, 2);
  }
  return n;
}

bool gn_write(general *g, rule *out) {
  const rule *r = g->r;
  rule_variable *var = iso_arena_alloc(g->a, (r->n_vars + 1) * sizeof *var);
  rule_attribute *attr = iso_arena_alloc(g->a, (g->n_real + 1) * sizeof *attr);
  const rule_term **where = iso_arena_alloc(g->a, MAX_NEW_CONDITIONS * sizeof *where);
  if (!var || !attr || !where) return false;
  *out = *r;
  g->next = g->n_lasts = 0;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_term **dim = iso_arena_alloc(g->a, (r->var[i].n_dims + 1) * sizeof *dim);
    if (!dim) return false;
    var[i] = r->var[i];
    for (uint32_t k = 0; k < r->var[i].n_dims; k++)
      if (!(dim[k] = next_unit(g, r->var[i].dim[k]))) return false;
    var[i].dim = dim;
    if (g->any_shape) var[i].any_shape = true, var[i].n_dims = 0;
  }
  if (g->n_dims == 0) g->n_dims = g->next;
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
  g->made = (rule_memo){0};
  out->lhs = in_list(g, r->lhs);
  out->rhs = in_list(g, r->rhs);
  rule_memo_free(&g->made);
  return out->lhs && out->rhs;
}
