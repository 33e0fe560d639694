/* Leaves that a step says are equal: one is a layout of leaves of the other side, with their
 * captured values. leaves.c has what the layouts imply together. */
#include "check/value_int.h"
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/names.h"
#include "rules/operators.h"

/* ---- leaves ---- */

static bool moves_elements(const char *op) { return rule_operator_of(op)->relates; }

/* Evaluates a layout of leaves, with the value that `leaf` gives for each. */
static iso_code layout(chk_state *k, uint32_t t, size_t step, int depth, chk_leaf_value leaf,
                       void *ctx, rule_tensor **out) {
  const chk_term *term = &k->term[t];
  *out = NULL;
  if (!term->call) return leaf(k, ctx, t, out);
  if (depth > CHK_LAYOUT_DEPTH || !moves_elements(term->call->u.s))
    return chk_settle(k, CHK_REFUSED, "step %zu: \"%s\" is no layout of leaves", step,
                      term->call->u.s);
  rule_tensor *bind[MAX_CALL] = {0};
  iso_arena a;
  chk_values v = {0};
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  uint32_t n = 0;
  iso_arena_init(&a);
  if (!c && !(l->call = chk_local_call(l, term->call, &a))) c = chk_nomem(k);
  for (; !c && n < l->n && !chk_settled(k); n++)
    c = layout(k, l->var[n], step, depth + 1, leaf, ctx, &bind[n]);
  if (!c && !chk_settled(k)) c = chk_call(k, t, l, bind, false, &v);
  if (!c && v.n == 1) *out = rule_tensor_ref(v.v[0]);
  else if (!c) c = chk_settle(k, CHK_REFUSED, "step %zu: it has no value", step);
  for (uint32_t i = 0; i < n; i++) rule_tensor_unref(bind[i]);
  chk_drop_values(&v);
  iso_arena_fini(&a);
  free(l);
  return c;
}

iso_code chk_layout(chk_state *k, uint32_t t, size_t step, chk_leaf_value leaf, void *ctx,
                    rule_tensor **out) {
  return layout(k, t, step, 0, leaf, ctx, out);
}

typedef struct leaves {
  bool input; /* inputs are related to inputs, all else to all else */
  size_t set, step;
} leaves;

static iso_code captured(chk_state *k, void *ctx, uint32_t leaf, rule_tensor **out) {
  const leaves *x = ctx;
  if ((k->term[leaf].node->kind == CAP_INPUT) != x->input)
    return chk_settle(k, CHK_REFUSED, "step %zu: an input and a parameter are two things", x->step);
  rule_tensor *v = chk_captured(k, leaf, x->set);
  if (!v)
    return chk_settle(k, CHK_REFUSED, "step %zu: %s %s has no values", x->step,
                      chk_side_of(k, leaf), chk_name_of(k, leaf));
  *out = rule_tensor_ref(v);
  return ISO_OK;
}

const char *chk_leaves_differ(const rule_tensor *a, const rule_tensor *b, bool inputs) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return "they have different shapes";
  if (a->dtype == b->dtype) return chk_same_bytes(a, b) ? NULL : "their values differ";
  if (inputs || !rule_dtype_is_float(a->dtype) || !rule_dtype_is_float(b->dtype))
    return "they have different dtypes";
  for (int64_t i = 0; i < a->numel; i++) /* the same numbers, stored in two floating dtypes */
    if (!(rule_tensor_get(a, i) == rule_tensor_get(b, i))) return "their values differ";
  return NULL;
}

/* A term in the rule language over the captures' names. Terms share their arguments, so that as
 * text they may be long without end: past `room` calls it is cut. Returns: NULL when there is no
 * memory. */
const char *chk_spelled(chk_state *k, uint32_t id, int *room) {
  const chk_term *t = &k->term[id];
  if (t->node) return chk_name_of(k, id);
  if (--*room < 0) return "...";
  const char **name = calloc(id + 1, sizeof *name);
  bool fine = name != NULL;
  const rule_term *todo[256];
  size_t n = 0;
  todo[n++] = t->call;
  while (n && fine) {
    const rule_term *x = todo[--n];
    if (x->kind == RULE_VAR)
      fine = name[x->u.i] || (name[x->u.i] = chk_spelled(k, (uint32_t)x->u.i, room)) != NULL;
    for (uint32_t i = 0; i < x->n && fine; i++) {
      if (n == sizeof todo / sizeof *todo) { /* a list too long to be read */
        free(name);
        return "...";
      }
      todo[n++] = x->child[i];
    }
  }
  char *text = fine ? rule_term_print(t->call, k->schemas, name) : NULL;
  const char *kept = text ? iso_arena_strdup(k->arena, text) : NULL;
  free(text);
  free(name);
  return kept;
}

iso_code chk_same_leaves(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  if (k->term[a].call)
    return chk_settle(k, CHK_REFUSED, "step %zu: the first term is no leaf", step);
  leaves x = {.input = k->term[a].node->kind == CAP_INPUT, .set = k->here.set, .step = step};
  if (!chk_captured(k, a, x.set))
    return chk_settle(k, CHK_REFUSED, "step %zu: %s %s has no values", step, chk_side_of(k, a),
                      chk_name_of(k, a));
  iso_code c = ISO_OK;
  if (x.input || k->here.set == 0) { /* all else is the same on each set */
    rule_tensor *v;
    c = chk_layout(k, b, step, captured, &x, &v);
    if (c || !v) return c;
    const char *why = chk_leaves_differ(chk_captured(k, a, x.set), v, x.input);
    bool same = false;
    const rule_tensor *own = chk_captured(k, a, x.set);
    if (why) same = k->term[b].node && rule_tensor_same_numbers(own, v);
    if (same) c = chk_zeros_joined(k, a, own, v);
    rule_tensor_unref(v);
    if (c) return c;
    if (why && !same)
      c = chk_settle(k, CHK_REFUSED, "step %zu: %s %s and %s %s: %s", step, chk_side_of(k, a),
                     chk_name_of(k, a), chk_side_of(k, b), chk_name_of(k, b), why);
  }
  if (c || chk_settled(k)) return c;
  const chk_values *v;
  uint32_t on;
  /* A layout of constants is a constant. */
  if (k->term[b].call && !k->here.konst[chk_root(k, a)].v) c = chk_constant(k, b, 0, &v, &on);
  if (c) return c;
  int room = 256;
  const char *what = chk_spelled(k, b, &room);
  if (!what) return chk_nomem(k);
  /* Ones and zeros are equal in any order, and to any other ones and zeros. */
  const rule_tensor *value = chk_captured(k, a, 0);
  const char *choice = value->numel > 1 && !chk_varied(value) && !chk_namesakes(k, a, b)
                           ? ", which is one number everywhere"
                           : "";
  return chk_assume(k, RULE_ASSUMES_LEAF,
                    k->term[b].node
                        ? iso_arena_printf(k->arena, "%s %s is %s %s by value%s", chk_side_of(k, a),
                                           chk_name_of(k, a), chk_side_of(k, b), what, choice)
                        : iso_arena_printf(k->arena, "%s %s is %s by value%s", chk_side_of(k, a),
                                           chk_name_of(k, a), what, choice));
}

iso_code chk_bounded(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const rule_term *t = k->term[b].call;
  bool inside;
  iso_code c = chk_stays_inside(k, a, b, &inside);
  if (c || inside || chk_settled(k)) return c;
  if (k->term[a].call || k->term[a].node->kind != CAP_INPUT ||
      !rule_dtype_is_int(k->term[a].node->value->dtype))
    return chk_settle(k, CHK_REFUSED, "step %zu: what is bounded is no input of integers", step);
  if (!t || strcmp(t->u.s, OP_CLAMP) != 0 || t->n != 3 || t->child[0]->kind != RULE_VAR ||
      t->child[0]->u.i != a || t->child[1]->kind != RULE_INT || t->child[2]->kind != RULE_INT)
    return chk_settle(k, CHK_REFUSED, "step %zu: it is not the input clamped to a range", step);
  bool covers;
  c = chk_covers_table(k, a, t->child[2]->u.i, &covers);
  if (c) return c;
  if (!covers || t->child[1]->u.i > 0)
    return chk_settle(k, CHK_REFUSED,
                      "step %zu: the range leaves out rows of a table that are not padding", step);
  for (size_t s = 0; s < k->graph[k->term[a].side]->n_sets; s++) {
    const rule_tensor *v = chk_captured(k, a, s);
    for (int64_t i = 0; i < v->numel; i++)
      if (rule_tensor_get_int(v, i) < t->child[1]->u.i ||
          rule_tensor_get_int(v, i) > t->child[2]->u.i)
        return chk_settle(k, CHK_REFUSED, "step %zu: %s %s has values outside of the range", step,
                          chk_side_of(k, a), chk_name_of(k, a));
  }
  return chk_assume(k, RULE_ASSUMES_INPUT,
                    iso_arena_printf(k->arena, "%s %s stays within %lld and %lld",
                                     chk_side_of(k, a), chk_name_of(k, a),
                                     (long long)t->child[1]->u.i, (long long)t->child[2]->u.i));
}
