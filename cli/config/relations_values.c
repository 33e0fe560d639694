/* Values of terms over leaves. */
#include "cli/config/relations_int.h"
#include "egraph/base/hash.h"
#include "rules/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_BOUND = 512 };

typedef struct evaluation {
  const cap_graph *g;
  const rule_oracle *oracle;
  rule_tensor **value;    /* by node */
  relfile_change *change; /* NULL: none */
  iso_arena arena;
  iso_error *err;
} evaluation;

typedef struct bound { /* tensors that stand for the variables of one call */
  rule_tensor *at[MAX_BOUND];
  uint32_t n;
} bound;

/* An argument with its tensors numbered into `b`. */
static iso_code bind(evaluation *x, const rule_term *t, bound *b, const rule_term **out) {
  iso_code c = ISO_OK;
  *out = t;
  if (t->kind == RULE_VAR || t->kind == RULE_OP) {
    if (b->n == MAX_BOUND) return iso_fail(x->err, ISO_LIMIT, "too many tensors in one call");
    c = relfile_changed(x->g, t, x->value, x->oracle, x->change, &b->at[b->n], x->err);
    if (!c) *out = rule_var(&x->arena, b->n++);
  } else if (t->kind == RULE_LIST) {
    const rule_term **child = iso_arena_alloc(&x->arena, (t->n + 1) * sizeof *child);
    c = child ? ISO_OK : nomem(x->err);
    for (uint32_t i = 0; i < t->n && !c; i++) c = bind(x, t->child[i], b, &child[i]);
    if (!c) *out = rule_list(&x->arena, child, t->n);
  }
  return c ? c : *out ? ISO_OK : nomem(x->err);
}

/* A number that arithmetic computes with, and no size or place. */
static bool is_number(const rule_term *call, uint32_t i) {
  const rule_term *t = call->child[i];
  return (t->kind == RULE_FLOAT || t->kind == RULE_INT) && relfile_arithmetic_word(call->u.s);
}

static const rule_term *changed_number(evaluation *x, const rule_term *t) {
  relfile_change *to = x->change;
  const double was = t->kind == RULE_INT ? (double)t->u.i : t->u.f;
  double now = to->numbers++ == to->number ? was * (1 + to->by) : was;
  if (to->as) {
    rule_tensor_set(to->as, 0, now);
    now = rule_tensor_get(to->as, 0);
  }
  return now == was ? t : rule_float(&x->arena, now);
}

/* Each number up or down by a rounding. Numbers with the same digits are rounded alike, wherever
 * they stand. */
iso_code relfile_disturb(const rule_tensor *v, relfile_change *to, rule_tensor **out,
                         iso_error *err) {
  const uint64_t how = iso_rng_next(to->rng);
  const iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t i = 0; i < v->numel && !c; i++) {
    int exponent;
    const double x = rule_tensor_get(v, i), digits = frexp(fabs(x), &exponent);
    const bool up = iso_hash(&digits, sizeof digits, how) & 1;
    rule_tensor_set(*out, i, x * (up ? 1 + to->by : 1 - to->by));
  }
  return c;
}

iso_code relfile_scaled(const rule_tensor *v, double by, rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t i = 0; i < v->numel && !c; i++) rule_tensor_set(*out, i, rule_tensor_get(v, i) * by);
  return c;
}

/* The result of one call. */
static iso_code call(evaluation *x, const rule_term *t, bound *b, rule_tensor **out) {
  size_t n = 0;
  iso_code c = x->oracle->call(x->oracle->ctx, t, b->at, true, out, 1, &n, x->err);
  const bool floating =
      !c && rule_dtype_is_float((*out)->dtype) && !rule_dtype_is_complex((*out)->dtype);
  if (c || !floating || !x->change || !x->change->rng) return c;
  rule_tensor *exact = *out;
  *out = NULL;
  c = relfile_disturb(exact, x->change, out, x->err);
  rule_tensor_unref(exact);
  return c;
}

iso_code relfile_changed(const cap_graph *g, const rule_term *t, rule_tensor **value,
                         const rule_oracle *oracle, relfile_change *change, rule_tensor **out,
                         iso_error *err) {
  if (t->kind == RULE_VAR && value[t->u.i]) return *out = rule_tensor_ref(value[t->u.i]), ISO_OK;
  if (t->kind == RULE_VAR)
    return iso_fail(err, ISO_USAGE, "\"%.80s\" depends on inputs", g->node[t->u.i].id);
  evaluation x = {.g = g, .oracle = oracle, .value = value, .change = change, .err = err};
  iso_arena_init(&x.arena);
  bound *b = calloc(1, sizeof *b);
  const rule_term **child = iso_arena_alloc(&x.arena, (t->n + 1) * sizeof *child);
  iso_code c = b && child ? ISO_OK : nomem(err);
  for (uint32_t i = 0; i < t->n && !c; i++) {
    c = bind(&x, t->child[i], b, &child[i]);
    if (!c && change && is_number(t, i) && !(child[i] = changed_number(&x, t->child[i])))
      c = nomem(err);
  }
  const rule_term *now = c ? NULL : rule_op(&x.arena, t->u.s, child, t->n);
  if (!c) c = now ? call(&x, now, b, out) : nomem(err);
  for (uint32_t i = 0; b && i < b->n; i++) rule_tensor_unref(b->at[i]);
  free(b);
  iso_arena_fini(&x.arena);
  return c;
}

iso_code relfile_value(const cap_graph *g, const rule_term *t, rule_tensor **value,
                       const rule_oracle *oracle, rule_tensor **out, iso_error *err) {
  return relfile_changed(g, t, value, oracle, NULL, out, err);
}

static bool all_known(const rule_term *t, rule_tensor *const *value) {
  if (t->kind == RULE_VAR) return value[t->u.i] != NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!all_known(t->child[i], value)) return false;
  return true;
}

iso_code relations_values(const cap_graph *g, const bool *only, const rule_oracle *oracle,
                          rule_tensor ***out, iso_error *err) {
  rule_tensor **value = *out = calloc(g->n_nodes + 1, sizeof *value);
  iso_code c = value ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const cap_node *n = &g->node[i];
    if ((only && !only[i]) || n->kind == CAP_INPUT) continue;
    if (n->kind != CAP_OP) c = rule_tensor_to_float64(n->value, &value[i], err);
    else if (n->n_outputs == 1 && all_known(n->call, value) && !rule_draws(g->schemas, n->call)) {
      iso_error ignored;
      /* A node that cannot be run has no value; the comparison says why. */
      c = relfile_value(g, n->call, value, oracle, &value[i], &ignored);
      if (c == ISO_NOMEM) nomem(err);
      else if (c) c = ISO_OK, value[i] = NULL;
    }
  }
  return c;
}
