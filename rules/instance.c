/* A rule at values of its names: the sizes and attributes with which a chain uses it. */
#include <string.h>

#include "rules/rules.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static const rule_term *value_of(const rule_assignment *v, const char *name) {
  for (uint32_t i = 0; i < v->n; i++)
    if (strcmp(v->name[i], name) == 0) return v->value[i];
  return NULL;
}

static bool number_of(const void *ctx, const char *name, rule_term *out) {
  const rule_term *t = value_of(ctx, name);
  if (!t || (t->kind != RULE_INT && t->kind != RULE_FLOAT)) return false;
  *out = *t;
  return true;
}

static rule_values read_by(const rule_assignment *v) {
  return (rule_values){number_of, v, v->within > 0 ? v->within : -1};
}

/* NULL without memory, or where a name has no value; then `whole` is false. */
static const rule_term *at_values(iso_arena *a, const rule_term *t, const rule_assignment *v,
                                  bool *whole) {
  const rule_values numbers = read_by(v);
  int64_t size;
  if (t->kind == RULE_NAME || t->kind == RULE_EXPR) {
    const rule_term *x = t->kind == RULE_NAME               ? value_of(v, t->u.s)
                         : rule_size_at(t, &numbers, &size) ? rule_int(a, size)
                                                            : NULL;
    *whole &= x != NULL;
    return x;
  }
  if (t->n == 0) return t;
  const rule_term **child = iso_arena_alloc(a, t->n * sizeof *child);
  if (!child) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = at_values(a, t->child[i], v, whole))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

static const rule_variable *variables_at(iso_arena *a, const rule *r, const rule_assignment *v,
                                         bool *whole) {
  rule_variable *var = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *var);
  if (!var) return NULL;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    var[i] = r->var[i];
    const rule_term **dim = iso_arena_alloc(a, (var[i].n_dims + 1) * sizeof *dim);
    if (!dim) return NULL;
    for (uint32_t d = 0; d < var[i].n_dims; d++)
      if (!(dim[d] = at_values(a, r->var[i].dim[d], v, whole))) return NULL;
    var[i].dim = dim;
    *whole &= !var[i].low && !var[i].high;
  }
  return var;
}

iso_code rule_at(const rule *r, const rule_assignment *v, iso_arena *a, rule *out, bool *whole,
                 iso_error *err) {
  const rule_values numbers = read_by(v);
  *whole = true;
  *out = *r;
  for (uint32_t i = 0; i < r->n_where; i++)
    *whole &= rule_condition_at(r->where[i], &numbers) == RULE_TRUE;
  if (*whole) out->var = variables_at(a, r, v, whole);
  if (*whole && out->var) out->lhs = at_values(a, r->lhs, v, whole);
  if (*whole && out->var && out->lhs) out->rhs = at_values(a, r->rhs, v, whole);
  if (!*whole) return ISO_OK;
  if (!out->var || !out->lhs || !out->rhs) return nomem(err);
  out->n_attrs = out->n_where = 0;
  return rule_share(a, out) ? ISO_OK : nomem(err);
}
