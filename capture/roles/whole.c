/* The graph of one: operators on the ranks' tensors, put together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "capture/capture_int.h"
#include "capture/roles/roles_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MOST_RESULTS = 64, LOOK_BACK = 12 };

static iso_code add(roles_work *x, const rule_term *t, uint32_t like, uint32_t *at);

static iso_code argument(roles_work *x, const rule_term *t, uint32_t like, const rule_term **out) {
  iso_arena *a = &x->g->arena;
  if (t->kind == RULE_OP) {
    uint32_t at;
    const iso_code c = add(x, t, like, &at);
    *out = c ? NULL : rule_var(a, at);
    return c || *out ? c : roles_nomem(x);
  }
  if (t->kind != RULE_LIST) *out = rule_term_copy(a, t);
  else {
    const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
    iso_code c = child ? ISO_OK : roles_nomem(x);
    for (uint32_t i = 0; i < t->n && !c; i++) c = argument(x, t->child[i], like, &child[i]);
    if (c) return c;
    *out = rule_list(a, child, t->n);
  }
  return *out ? ISO_OK : roles_nomem(x);
}

/* Computes its values at the captured leaves, for its shapes. */
static iso_code run(roles_work *x, const rule_term *t, roles_new *m) {
  rule_tensor *out[MOST_RESULTS] = {NULL};
  if (rule_is_getitem(t->u.s)) {
    const roles_new *from = &x->made[t->child[0]->u.i];
    const size_t k = (size_t)t->child[1]->u.i;
    if (k >= from->n_values || !from->value[k])
      return roles_refuse(x, "%s has no such result", from->as.id);
    out[0] = rule_tensor_ref(from->value[k]);
    m->n_values = 1;
  } else {
    rule_tensor **bind = calloc(x->n_made + 1, sizeof *bind);
    if (!bind) return roles_nomem(x);
    for (size_t i = 0; i < x->n_made; i++) bind[i] = x->made[i].value[0];
    const rule_oracle *o = x->q->oracle;
    const iso_code c = o->call(o->ctx, t, bind, false, out, MOST_RESULTS, &m->n_values, x->err);
    free(bind);
    if (c == ISO_NOMEM || c == ISO_DEVICE) return c;
    if (c) return roles_refuse(x, "%s cannot be run on what the ranks have together", t->u.s);
  }
  m->value = calloc(m->n_values + 1, sizeof *m->value);
  for (size_t k = 0; k < m->n_values; k++)
    if (m->value) m->value[k] = out[k];
    else rule_tensor_unref(out[k]);
  return m->value ? ISO_OK : roles_nomem(x);
}

/* One that was made a moment ago: several results of one call. */
static bool is_made(const roles_work *x, const rule_term *t, uint32_t *at) {
  for (size_t k = x->n_made; k-- > 0 && k + LOOK_BACK >= x->n_made;)
    if (x->made[k].as.call && rule_term_eq(x->made[k].as.call, t)) {
      *at = (uint32_t)k;
      return true;
    }
  return false;
}

static iso_code describe(roles_work *x, const rule_term *t, uint32_t like, roles_new *m) {
  const cap_node *old = &x->g->node[like];
  iso_arena *a = &x->g->arena;
  cap_output *what = iso_arena_alloc(a, (m->n_values + 1) * sizeof *what);
  const char *id = iso_arena_printf(a, "%s.whole%zu", old->id, x->n_made);
  if (!what || !id) return roles_nomem(x);
  for (size_t k = 0; k < m->n_values; k++)
    what[k] = m->value[k] ? (cap_output){m->value[k]->shape, m->value[k]->dtype}
                          : (cap_output){{.rank = 1}, RULE_F32}; /* not asked for */
  m->as = cap_operator_node(id, t, what, m->n_values);
  m->as.reordered = old->reordered;
  m->as.scope = old->scope;
  m->as.source = old->source;
  m->as.caller = old->caller;
  return ISO_OK;
}

static iso_code add(roles_work *x, const rule_term *t, uint32_t like, uint32_t *at) {
  iso_arena *a = &x->g->arena;
  if (t->kind == RULE_VAR) {
    *at = (uint32_t)t->u.i;
    return ISO_OK;
  }
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : roles_nomem(x);
  for (uint32_t i = 0; i < t->n && !c; i++) c = argument(x, t->child[i], like, &child[i]);
  const rule_term *own = c || roles_refused(x) ? NULL : rule_op(a, t->u.s, child, t->n);
  if (c || roles_refused(x)) {
    *at = 0;
    return c;
  }
  if (!own) return roles_nomem(x);
  if (is_made(x, own, at)) return ISO_OK;
  if (!iso_grow(x->made, x->cap_made, x->n_made + 1)) return roles_nomem(x);
  roles_new *m = &x->made[x->n_made];
  *m = (roles_new){0};
  c = run(x, own, m);
  *at = (uint32_t)x->n_made;
  if (!m->value) return c;
  x->n_made++;
  return c ? c : describe(x, own, like, m);
}

iso_code roles_make(roles_work *x, const rule_term *t, uint32_t like, uint32_t *at) {
  return add(x, t, like, at);
}

iso_code roles_multiply(roles_work *x, uint32_t node) {
  roles_place *p = &x->place[node];
  iso_arena *a = &x->g->arena;
  const rule_term *arg[2] = {rule_var(a, p->at), rule_int(a, x->n_ranks)}, *t;
  iso_code c = rule_call(a, x->g->schemas, OP_MUL_SCALAR, arg, 2, &t, x->err);
  if (!c) c = roles_make(x, t, node, &p->at);
  p->times = false;
  return c;
}

/* Rules hold of numbers: where the whole is none, ranks may have another thing each. */
static bool all_numbers(const rule_tensor *t) {
  for (int64_t i = 0; rule_dtype_is_inexact(t->dtype) && i < t->numel; i++)
    if (!isfinite(rule_tensor_get(t, i))) return false;
  return true;
}

/* Its words from an earlier time that ranks became one; NULL: none. */
static const char *said_before(const roles_work *x, const cap_result *old) {
  for (size_t i = 0; i < x->out->n_parts; i++)
    if (strcmp(x->out->parts[i].output, old->name) == 0) return x->out->parts[i].said;
  return NULL;
}

static const char *said_of(roles_work *x, const cap_result *old, uint32_t dim) {
  const char *one = said_before(x, old);
  return iso_arena_printf(&x->out->arena, "cat of %s of %u ranks, dim %u", one ? one : old->name,
                          x->n_ranks, dim);
}

/* An output is what each rank has, or what they have parts of. */
static iso_code take_result(roles_work *x, uint32_t j) {
  const cap_result *old = roles_result_of(x, j, 0);
  roles_place *p = &x->place[old->node];
  iso_code c = ISO_OK;
  if (p->kind != ROLES_SAME && p->kind != ROLES_PART)
    return roles_refuse(x, "what %s is of the ranks' tensors", old->name);
  if (p->kind == ROLES_PART && !x->q->parts)
    return roles_refuse(x, "the ranks have parts of %s", old->name);
  if (!all_numbers(x->made[p->at].value[0]))
    return roles_refuse(x, "%s is no number everywhere", old->name);
  if (p->times) c = roles_multiply(x, old->node);
  x->result[j] = (cap_result){x->own_name[j], p->at};
  x->said[j] = p->kind == ROLES_PART ? said_of(x, old, p->dim) : said_before(x, old);
  return c || (x->result[j].name && (p->kind != ROLES_PART || x->said[j])) ? c : roles_nomem(x);
}

iso_code roles_results(roles_work *x) {
  x->result = iso_arena_alloc(&x->out->arena, (x->n_own + 1) * sizeof *x->result);
  x->said = iso_arena_alloc(&x->out->arena, (x->n_own + 1) * sizeof *x->said);
  iso_code c = x->result && x->said ? ISO_OK : roles_nomem(x);
  for (uint32_t j = 0; j < x->n_own && !c && !roles_refused(x); j++) c = take_result(x, j);
  return c;
}

static iso_code list_parts(roles_work *x) {
  roles_result *out = x->out;
  roles_parts *parts = iso_arena_alloc(&out->arena, (x->n_own + 1) * sizeof *parts);
  if (!parts) return roles_nomem(x);
  out->n_parts = 0;
  for (uint32_t j = 0; j < x->n_own; j++)
    if (x->said[j]) parts[out->n_parts++] = (roles_parts){x->result[j].name, x->said[j]};
  out->parts = parts;
  return ISO_OK;
}

iso_code roles_replace(roles_work *x) {
  cap_new_node *node = calloc(x->n_made + 1, sizeof *node);
  if (!node) return roles_nomem(x);
  for (size_t i = 0; i < x->n_made; i++) node[i] = (cap_new_node){x->made[i].as, x->made[i].value};
  iso_code c = cap_replace_nodes(x->g, node, x->n_made, x->err);
  if (!c) c = cap_set_results(x->g, x->result, x->n_own, x->err);
  free(node);
  return c ? c : list_parts(x);
}
