/* Arguments of a call by the schema's names. */
#include <string.h>

#include "validate/tensor/tensor.h"

const rule_term *pt_arg(pt_args *a, const char *name) {
  for (size_t i = 0; i < a->schema->n_args; i++)
    if (!strcmp(a->schema->arg[i].name, name))
      return a->t->child[i]->kind == RULE_NONE ? NULL : a->t->child[i];
  return NULL;
}

const pt_tensor *pt_arg_tensor(pt_args *a, const char *name) {
  const rule_term *t = pt_arg(a, name);
  return t ? pt_eval_tensor(a->c, t) : NULL;
}

sx pt_arg_size(pt_args *a, const char *name, int64_t if_none) {
  const rule_term *t = pt_arg(a, name);
  return t ? sc_size(a->c, t) : sx_int(a->c, if_none);
}

bool pt_arg_flag(pt_args *a, const char *name, bool if_none) {
  const rule_term *t = pt_arg(a, name);
  if (!t) return if_none;
  if (t->kind == RULE_BOOLEAN || t->kind == RULE_INT) return t->u.i != 0;
  sc_fail(a->c, "a flag that is not literal");
  return if_none;
}

bool pt_arg_is(pt_args *a, const char *name, const char *text) {
  const rule_term *t = pt_arg(a, name);
  return t && t->kind == RULE_STRING && !strcmp(t->u.s, text);
}

bool pt_arg_dtype(pt_args *a, const char *name, rule_dtype *out) {
  const rule_term *t = pt_arg(a, name);
  if (!t || t->kind != RULE_DTYPE) return false;
  *out = (rule_dtype)t->u.i;
  return true;
}

sx pt_arg_scalar(pt_args *a, const char *name, char *kind) {
  const rule_term *t = pt_arg(a, name);
  if (!t) {
    sc_fail(a->c, "%s without %s", a->schema->name, name);
    return a->c->zero;
  }
  return pt_scalar(a->c, t, kind);
}

/* An integer known by number; where it is a name, its value is asked for by cases within `low` and
 * `high`. */
static bool number_within(sc *c, sx x, int64_t low, int64_t high, int64_t *out) {
  if (sx_is_int(c, x, out)) return true;
  for (int64_t v = low; v < high && !c->fault.failed; v++) {
    bool holds;
    if (!sc_decide(c, sx_eq(c, x, sx_int(c, v)), &holds)) return false;
    if (holds) return *out = v, true;
  }
  if (!c->fault.failed) {
    c->fault.undefined = true;
    sc_fail(c, "a dimension out of range");
  }
  return false;
}

bool pt_int(sc *c, sx x, int64_t *out) {
  if (sx_is_int(c, x, out)) return true;
  sc_fail(c, "a number that is not literal");
  return false;
}

bool pt_dim(sc *c, const rule_term *t, const pt_tensor *x, uint32_t extra, uint32_t *out) {
  int64_t d, r = (int64_t)x->rank + extra;
  const bool open = x->lead != 0;
  if (!open && r == 0) r = 1; /* a 0-dim tensor takes dimensions 0 and -1 */
  if (!number_within(c, sc_size(c, t), -r, open ? 0 : r, &d)) return false;
  if (d < -r || d >= (open ? 0 : r)) {
    if (!open && !c->fault.failed) c->fault.undefined = true;
    sc_fail(c, "a dimension out of range");
    return false;
  }
  *out = (uint32_t)(d < 0 ? d + r : d);
  return true;
}

bool pt_arg_dim(pt_args *a, const char *name, int64_t if_none, const pt_tensor *x, uint32_t *out) {
  const rule_term *t = pt_arg(a, name), n = {.kind = RULE_INT, .u.i = if_none};
  return pt_dim(a->c, t ? t : &n, x, 0, out);
}

bool pt_arg_dims(pt_args *a, const char *name, const pt_tensor *x, uint32_t *out, uint32_t *n) {
  const rule_term *t = pt_arg(a, name);
  *n = 0;
  if (!t) return false;
  const uint32_t count = t->kind == RULE_LIST ? t->n : 1;
  if (count > RULE_MAX_RANK) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!pt_dim(a->c, t->kind == RULE_LIST ? t->child[i] : t, x, 0, &out[(*n)++])) return false;
  return true;
}

bool pt_arg_sizes(pt_args *a, const char *name, sx *out, uint32_t *n) {
  const rule_term *t = pt_arg(a, name);
  *n = 0;
  if (!t) return false;
  if (t->kind != RULE_LIST) {
    out[(*n)++] = sc_size(a->c, t);
    return !a->c->fault.failed;
  }
  if (t->n > RULE_MAX_RANK) return false;
  for (uint32_t i = 0; i < t->n; i++) out[(*n)++] = sc_size(a->c, t->child[i]);
  return !a->c->fault.failed;
}

bool pt_arg_each(pt_args *a, const char *name, uint32_t n, sx if_none, sx *out) {
  sx v[RULE_MAX_RANK];
  uint32_t m = 0;
  const rule_term *t = pt_arg(a, name);
  for (uint32_t i = 0; i < n; i++) out[i] = if_none;
  if (!t || (t->kind == RULE_LIST && t->n == 0)) return true;
  if (!pt_arg_sizes(a, name, v, &m) || (m != n && m != 1)) return false;
  for (uint32_t i = 0; i < n; i++) out[i] = v[m == 1 ? 0 : i];
  return true;
}

bool pt_arg_list(pt_args *a, const char *name, const pt_tensor *const **out, size_t *n) {
  sc *c = a->c;
  const rule_term *t = pt_arg(a, name);
  if (!t) return false;
  if (t->kind == RULE_OP) {
    const pt_value *v = pt_eval(c, t);
    if (!v || !v->several) return false;
    if (!v->t) { /* as many pieces as there are: only where that is a number */
      const sx size = v->base->dim[v->dim];
      int64_t k;
      if (!sx_is_int(c, sx_div(c, sx_add(c, size, sx_sub(c, v->step, c->one)), v->step), &k) ||
          k > 64 || k < 1) {
        sc_fail(c, "a list of unknown length");
        return false;
      }
      const pt_tensor **list = sc_take(c, (size_t)k * sizeof *list);
      for (int64_t i = 0; list && i < k; i++)
        if (!(list[i] = pt_piece(c, v, (size_t)i))) return false;
      *out = list;
      *n = (size_t)k;
      return list != NULL;
    }
    *out = v->t;
    *n = v->n;
    return true;
  }
  if (t->kind != RULE_LIST) return false;
  const pt_tensor **list = sc_take(c, (t->n + 1) * sizeof *list);
  for (uint32_t i = 0; list && i < t->n; i++) {
    list[i] = t->child[i]->kind == RULE_NONE ? NULL : pt_eval_tensor(c, t->child[i]);
    if (!list[i] && t->child[i]->kind != RULE_NONE) return false;
  }
  *out = list;
  *n = t->n;
  return list != NULL;
}
