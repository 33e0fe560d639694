/* Types of tensors that nobody has run: dtype and shape, learned by calling its
 * operator once on tensors of ones. Each operator is called once for arguments of the same types.
 */
#include "synth/saturate/saturate_int.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"

struct sat_entry {
  const void *key;
  size_t n;
  const sat_type *type;
};

/* Where a key is, or would be. Requires: the table is not full. */
static struct sat_entry *place(const sat_table *t, const void *key, size_t n) {
  size_t i = iso_hash(key, n, 0) & (t->cap - 1);
  while (t->at[i].key && (t->at[i].n != n || memcmp(t->at[i].key, key, n) != 0))
    i = (i + 1) & (t->cap - 1);
  return &t->at[i];
}

/* The entry of a key, which is new where its `key` is NULL. Returns: NULL when there is no memory.
 */
static struct sat_entry *entry(sat_table *t, const void *key, size_t n) {
  if (2 * (t->n + 1) > t->cap) {
    sat_table more = {.cap = t->cap ? 2 * t->cap : 256, .n = t->n};
    if (!(more.at = calloc(more.cap, sizeof *more.at))) return NULL;
    for (size_t i = 0; i < t->cap; i++)
      if (t->at[i].key) *place(&more, t->at[i].key, t->at[i].n) = t->at[i];
    free(t->at);
    *t = more;
  }
  return place(t, key, n);
}

static bool fill(sat_types *x, sat_table *t, struct sat_entry *e, const void *key, size_t n,
                 const sat_type *type) {
  void *copy = iso_arena_alloc(&x->arena, n);
  if (!copy) return x->starved = true, false;
  memcpy(copy, key, n);
  *e = (struct sat_entry){copy, n, type};
  t->n++;
  return true;
}

void sat_types_free(sat_types *x) {
  free(x->types.at);
  free(x->calls.at);
  iso_arena_fini(&x->arena);
}

/* The type with this content. */
static const sat_type *intern(sat_types *x, const sat_type *t, const void *key, size_t n) {
  struct sat_entry *e = entry(&x->types, key, n);
  if (!e) return x->starved = true, NULL;
  if (e->key) return e->type;
  sat_type *copy = iso_arena_alloc(&x->arena, sizeof *copy);
  if (!copy) return x->starved = true, NULL;
  *copy = *t;
  return fill(x, &x->types, e, key, n, copy) ? copy : NULL;
}

const sat_type *sat_literal(sat_types *x, const rule_term *t) {
  const uintptr_t key[2] = {SAT_LITERAL, (uintptr_t)t};
  return intern(x, &(sat_type){.kind = SAT_LITERAL, .literal = t}, key, sizeof key);
}

const sat_type *sat_tensor(sat_types *x, rule_dtype dtype, const rule_shape *shape) {
  int64_t key[3 + RULE_MAX_RANK] = {SAT_TENSOR, dtype, shape->rank};
  memcpy(key + 3, shape->dim, shape->rank * sizeof *key);
  rule_shape own = {.rank = shape->rank};
  memcpy(own.dim, shape->dim, shape->rank * sizeof *own.dim);
  return intern(x, &(sat_type){.kind = SAT_TENSOR, .dtype = dtype, .shape = own}, key,
                (3 + shape->rank) * sizeof *key);
}

static const sat_type *several(sat_types *x, sat_kind kind, const sat_type *const *of, size_t n,
                               const rule_term *literal) {
  const sat_type **key = iso_arena_alloc(&x->arena, (n + 1) * sizeof *key);
  if (!key) return x->starved = true, NULL;
  memcpy(key + 1, of, n * sizeof *key);
  const uintptr_t tag = kind;
  memcpy(key, &tag, sizeof tag);
  return intern(x, &(sat_type){.kind = kind, .n = n, .of = key + 1, .literal = literal}, key,
                (n + 1) * sizeof *key);
}

const sat_type *sat_list(sat_types *x, const sat_type *const *of, size_t n) {
  const rule_term **child = iso_arena_alloc(&x->arena, (n + 1) * sizeof *child);
  bool literal = child != NULL;
  for (size_t i = 0; i < n && literal; i++) literal = (child[i] = of[i]->literal) != NULL;
  const rule_term *t = literal ? rule_list(&x->arena, child, (uint32_t)n) : NULL;
  if (!child || (literal && !t)) return x->starved = true, NULL;
  return several(x, SAT_LIST, of, n, t);
}

const sat_type *sat_multi(sat_types *x, const sat_type *const *of, size_t n) {
  return several(x, SAT_MULTI, of, n, NULL);
}

/* ---- operators ---- */

typedef struct trial {
  sat_types *x;
  iso_arena arena;
  rule_tensor *bind[MAX_CHILDREN];
  uint32_t n;
} trial;

/* A tensor of ones, which are an index, a divisor and a truth value. */
static const rule_term *sample(trial *t, const sat_type *type) {
  int64_t numel = 1;
  iso_error err;
  for (uint32_t d = 0; d < type->shape.rank; d++)
    if (__builtin_mul_overflow(numel, type->shape.dim[d], &numel)) return NULL;
  if (t->n == MAX_CHILDREN || numel > t->x->elements_left) return NULL;
  t->x->elements_left -= numel;
  if (rule_tensor_new(type->dtype, &type->shape, &t->bind[t->n], &err)) return NULL;
  for (int64_t i = 0; i < numel; i++) rule_tensor_set(t->bind[t->n], i, 1);
  return rule_var(&t->arena, t->n++);
}

static const rule_term *argument(trial *t, const sat_type *type) {
  if (type->literal) return type->literal;
  if (type->kind == SAT_TENSOR) return sample(t, type);
  if (type->kind != SAT_LIST) return NULL;
  const rule_term **child = iso_arena_alloc(&t->arena, (type->n + 1) * sizeof *child);
  for (size_t i = 0; i < type->n && child; i++)
    if (!(child[i] = argument(t, type->of[i]))) return NULL;
  return child ? rule_list(&t->arena, child, (uint32_t)type->n) : NULL;
}

static const sat_type *run(sat_types *x, const char *op, const sat_type *const *arg, size_t n) {
  trial t = {.x = x};
  const sat_type *result[MAX_OUT], *type = NULL;
  rule_tensor *out[MAX_OUT];
  size_t n_out = 0;
  iso_error err;
  const rule_term **child = iso_arena_alloc(&t.arena, (n + 1) * sizeof *child);
  bool fine = child != NULL;
  for (size_t i = 0; i < n && fine; i++) fine = (child[i] = argument(&t, arg[i])) != NULL;
  const rule_term *call = fine ? rule_op(&t.arena, op, child, (uint32_t)n) : NULL;
  const rule_oracle *o = x->s->oracle;
  if (call && !o->call(o->ctx, call, t.bind, true, out, MAX_OUT, &n_out, &err)) {
    for (size_t k = 0; k < n_out; k++) {
      result[k] = sat_tensor(x, out[k]->dtype, &out[k]->shape);
      fine &= result[k] != NULL;
      rule_tensor_unref(out[k]);
    }
    const rule_schema *d = rule_schemas_find(x->s->schemas, op);
    const bool several_out = d ? rule_schema_outputs(d) != 1 : n_out != 1;
    if (fine) type = several_out ? sat_multi(x, result, n_out) : n_out ? result[0] : NULL;
  }
  for (uint32_t i = 0; i < t.n; i++) rule_tensor_unref(t.bind[i]);
  iso_arena_fini(&t.arena);
  return type;
}

static const sat_type *project(const sat_type *const *arg, size_t n) {
  if (n != 2 || arg[0]->kind != SAT_MULTI || !arg[1]->literal) return NULL;
  const rule_term *k = arg[1]->literal;
  return k->kind == RULE_INT && k->u.i >= 0 && (size_t)k->u.i < arg[0]->n ? arg[0]->of[k->u.i]
                                                                          : NULL;
}

const sat_type *sat_result(sat_types *x, const char *op, const sat_type *const *arg, size_t n) {
  if (rule_is_getitem(op)) return project(arg, n);
  uintptr_t key[MAX_CHILDREN + 1] = {(uintptr_t)op};
  if (n > MAX_CHILDREN) return NULL;
  for (size_t i = 0; i < n; i++) key[i + 1] = (uintptr_t)arg[i];
  const size_t bytes = (n + 1) * sizeof *key;
  struct sat_entry *e = entry(&x->calls, key, bytes);
  if (!e) return x->starved = true, NULL;
  if (e->key) return e->type;
  const sat_type *type = run(x, op, arg, n);
  e = entry(&x->calls, key, bytes);
  if (!e || !fill(x, &x->calls, e, key, bytes, type)) return x->starved = true, NULL;
  return type;
}
