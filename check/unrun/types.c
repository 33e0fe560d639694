/* Kinds and shapes of terms of which nothing is run. A captured node's are the capture's; a call of
 * the certificate's own is of the type that a captured call of this operator has whose arguments
 * are of the same types, else that of the call on tensors of ones, where these are small. */
#include <stdlib.h>
#include <string.h>

#include "check/unrun/unrun.h"
#include "check/value_int.h"
#include "egraph/base/vec.h"
#include "rules/names.h"

/* Limit on the elements of a call's operands. */
enum { MOST_ELEMENTS = 1 << 22 };

typedef struct type { /* of a tensor; n of a term's are its outputs */
  rule_dtype dtype;
  rule_shape shape;
} type;

typedef struct typing {
  chk_state *k;
  type *of; /* known types, each once */
  size_t n, cap;
  uint32_t (*at)[2]; /* by term: its first type and how many; none: not known */
  uint32_t *list;    /* types of terms, one term's after another's */
  size_t n_list, cap_list;
  struct called {
    const rule_term *call; /* RULE_VAR i stands for a tensor of type i */
    uint32_t at[2];
  } * called;
  size_t n_called, cap_called;
} typing;

/* Floating numbers of all widths are real numbers. */
static rule_dtype widened(rule_dtype d) {
  return rule_dtype_is_float(d) ? RULE_F64 : rule_dtype_is_complex(d) ? RULE_C128 : d;
}

static iso_code add_type(typing *x, rule_dtype dtype, const rule_shape *shape) {
  type t = {widened(dtype), *shape};
  size_t i = 0;
  while (i < x->n && !(x->of[i].dtype == t.dtype && rule_shape_eq(&x->of[i].shape, &t.shape))) i++;
  if (i == x->n) {
    if (!iso_grow(x->of, x->cap, x->n + 1)) return chk_nomem(x->k);
    x->of[x->n++] = t;
  }
  if (!iso_grow(x->list, x->cap_list, x->n_list + 1)) return chk_nomem(x->k);
  x->list[x->n_list++] = (uint32_t)i;
  return ISO_OK;
}

static iso_code type_captured(typing *x, uint32_t t) {
  const cap_node *n = x->k->term[t].node;
  iso_code c = ISO_OK;
  x->at[t][0] = (uint32_t)x->n_list;
  for (size_t i = 0; i < n->n_outputs && !c; i++)
    c = add_type(x, n->output[i].dtype, &n->output[i].shape);
  x->at[t][1] = (uint32_t)n->n_outputs;
  return c;
}

/* A call with types in place of its arguments. NULL in `out`: one is not known. */
static iso_code over_types(typing *x, const rule_term *t, const rule_term **out) {
  *out = NULL;
  if (t->kind == RULE_VAR) {
    if (x->at[t->u.i][1] < 1) return ISO_OK;
    *out = rule_var(x->k->arena, x->list[x->at[t->u.i][0]]);
    return *out ? ISO_OK : chk_nomem(x->k);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return *out = t, ISO_OK;
  const rule_term **child = iso_arena_alloc(x->k->arena, (t->n + 1) * sizeof *child);
  if (!child) return chk_nomem(x->k);
  for (uint32_t i = 0; i < t->n; i++) {
    const iso_code c = over_types(x, t->child[i], &child[i]);
    if (c || !child[i]) return c;
  }
  *out = t->kind == RULE_OP ? rule_op(x->k->arena, t->u.s, child, t->n)
                            : rule_list(x->k->arena, child, t->n);
  return *out ? ISO_OK : chk_nomem(x->k);
}

/* A tensor of ones, which are an index, a divisor and a truth value. */
static iso_code ones(typing *x, uint32_t which, int64_t *left, rule_tensor **out) {
  const type *t = &x->of[which];
  int64_t numel = 1;
  *out = NULL;
  for (uint32_t d = 0; d < t->shape.rank; d++)
    if (__builtin_mul_overflow(numel, t->shape.dim[d], &numel)) return ISO_OK;
  if (numel > *left) return ISO_OK;
  *left -= numel;
  const iso_code c = rule_tensor_new(t->dtype, &t->shape, out, x->k->err);
  for (int64_t i = 0; i < numel && !c; i++) rule_tensor_set(*out, i, 1);
  return c;
}

/* Runs call `local` over types `l->var`, and keeps its result. */
static iso_code run(typing *x, const local *l, struct called *out) {
  chk_state *k = x->k;
  rule_tensor *bind[MAX_CALL] = {0}, *result[MAX_OUT];
  int64_t left = MOST_ELEMENTS;
  size_t n = 0;
  uint32_t made = 0;
  iso_error ignored;
  iso_code c = ISO_OK;
  bool fine = k->oracle != NULL;
  for (; made < l->n && fine && !c; made++) {
    c = ones(x, l->var[made], &left, &bind[made]);
    fine = bind[made] != NULL;
  }
  if (!c && fine) {
    const iso_code ran =
        k->oracle->call(k->oracle->ctx, l->call, bind, true, result, MAX_OUT, &n, &ignored);
    if (ran == ISO_NOMEM) c = chk_nomem(k);
    if (ran) n = 0;
  }
  out->at[0] = (uint32_t)x->n_list;
  for (size_t i = 0; i < n && !c; i++) c = add_type(x, result[i]->dtype, &result[i]->shape);
  out->at[1] = (uint32_t)(x->n_list - out->at[0]);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(result[i]);
  for (uint32_t i = 0; i < made; i++) rule_tensor_unref(bind[i]);
  return c;
}

/* The call of these types that is known; NULL: none is. */
static const struct called *find(const typing *x, const rule_term *typed) {
  for (size_t i = 0; i < x->n_called; i++)
    if (rule_term_eq(x->called[i].call, typed)) return &x->called[i];
  return NULL;
}

static iso_code remember(typing *x, const struct called *new) {
  if (!iso_grow(x->called, x->cap_called, x->n_called + 1)) return chk_nomem(x->k);
  x->called[x->n_called++] = *new;
  return ISO_OK;
}

/* The types that captured calls of these types give. */
static iso_code learn(typing *x, uint32_t t) {
  const rule_term *typed;
  if (!x->k->term[t].call || x->at[t][1] == 0) return ISO_OK;
  const iso_code c = over_types(x, x->k->term[t].call, &typed);
  if (c || !typed || find(x, typed)) return c;
  return remember(x, &(struct called){typed, {x->at[t][0], x->at[t][1]}});
}

/* The type of calls that put leaves beside one another, or in another order of dimensions: these
 * may be too large to be made. */
static bool laid_out(const typing *x, const rule_term *typed, type *t) {
  const rule_term *from = typed->n ? typed->child[0] : NULL;
  if (from && from->kind == RULE_VAR) {
    uint32_t order[RULE_MAX_RANK];
    const type *was = &x->of[from->u.i];
    if (!chk_turned(typed, was->shape.rank, order)) return false;
    *t = *was;
    for (uint32_t d = 0; d < was->shape.rank; d++) t->shape.dim[d] = was->shape.dim[order[d]];
    return true;
  }
  if (strcmp(typed->u.s, OP_CAT) != 0 || typed->n != 2 || from->kind != RULE_LIST || from->n == 0 ||
      typed->child[1]->kind != RULE_INT)
    return false;
  const int64_t d = typed->child[1]->u.i;
  for (uint32_t i = 0; i < from->n; i++) {
    if (from->child[i]->kind != RULE_VAR) return false;
    type one = x->of[from->child[i]->u.i];
    if (d < 0 || d >= one.shape.rank) return false;
    if (i == 0) {
      *t = one;
      continue;
    }
    const int64_t n = one.shape.dim[d];
    one.shape.dim[d] = t->shape.dim[d];
    if (one.dtype != t->dtype || !rule_shape_eq(&one.shape, &t->shape)) return false;
    t->shape.dim[d] += n;
  }
  return true;
}

static iso_code lay_out(typing *x, const rule_term *typed, struct called *out) {
  type t;
  out->at[1] = 0;
  if (!laid_out(x, typed, &t)) return ISO_OK;
  out->at[0] = (uint32_t)x->n_list;
  out->at[1] = 1;
  return add_type(x, t.dtype, &t.shape);
}

static iso_code type_call(typing *x, uint32_t t) {
  const rule_term *call = x->k->term[t].call, *typed;
  if (chk_is_getitem(call)) {
    const uint32_t *from = x->at[call->child[0]->u.i];
    const int64_t i = call->child[1]->u.i;
    if (i >= 0 && i < (int64_t)from[1]) x->at[t][0] = from[0] + (uint32_t)i, x->at[t][1] = 1;
    return ISO_OK;
  }
  iso_code c = over_types(x, call, &typed);
  if (c || !typed) return c;
  const struct called *known = find(x, typed);
  struct called new = {.call = typed};
  if (known) return memcpy(x->at[t], known->at, sizeof *x->at), ISO_OK;
  iso_arena a;
  local *l = calloc(1, sizeof *l);
  iso_arena_init(&a);
  if (!l || !(l->call = chk_local_call(l, typed, &a))) c = chk_nomem(x->k);
  if (!c) c = lay_out(x, typed, &new);
  if (!c && !new.at[1]) c = run(x, l, &new);
  iso_arena_fini(&a);
  free(l);
  if (!c) c = remember(x, &new);
  memcpy(x->at[t], new.at, sizeof *x->at);
  return c;
}

static iso_code check_variables(typing *x, const chk_step *step, size_t at) {
  chk_state *k = x->k;
  const rule *r = rule_set_at(k->rules.rule[step->rule], 0);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const uint32_t id = k->cert.var[step->first_var + i];
    if (id == CHK_NONE) continue;
    const uint32_t *known = x->at[id];
    if (known[1] == 0)
      return chk_settle(k, CHK_UNPROVED,
                        "step %zu: variable %s of rule %s stands for a tensor whose shape only a "
                        "run can tell",
                        at, r->var[i].name, r->name);
    const type *t = &x->of[x->list[known[0]]];
    if (known[1] != 1 || !chk_variable_fits(k, step, &r->var[i], t->dtype, &t->shape))
      return chk_settle(
          k, CHK_REFUSED,
          "step %zu: variable %s of rule %s stands for a tensor of another kind or shape", at,
          r->var[i].name, r->name);
  }
  return ISO_OK;
}

iso_code chk_unrun_variables(chk_state *k) {
  typing x = {.k = k, .at = calloc(k->n_terms + 1, sizeof *x.at)};
  iso_code c = x.at ? ISO_OK : chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms && !c; i++) {
    if (!k->term[i].node) c = type_call(&x, i);
    else if (!(c = type_captured(&x, i))) c = learn(&x, i);
  }
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++)
    if (k->cert.step[i].kind == CHK_RULE) c = check_variables(&x, &k->cert.step[i], i);
  free(x.at);
  free(x.of);
  free(x.list);
  free(x.called);
  return c;
}
