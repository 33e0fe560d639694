/* Relations of leaves that a user gave. A relation is a claim about values, so it is checked
 * against the captured ones before anything rests on it. It then replaces the choice among leaves
 * of equal values, or a relation that should not be used. */
#include "synth/leaves/leaves.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_BOUND = 512 };

typedef struct bound { /* tensors that stand for the variables of one call */
  rule_tensor *at[MAX_BOUND];
  uint32_t n;
} bound;

/* An argument with its tensors numbered into `b`. */
static iso_code bind(state *s, rule_tensor *const *leaf, const rule_term *t, bound *b,
                     const rule_term **out, iso_error *err) {
  if (t->kind == RULE_VAR || t->kind == RULE_OP) {
    if (b->n == MAX_BOUND) return iso_fail(err, ISO_LIMIT, "too many tensors in one relation");
    const iso_code c = st_term_over(s, t, leaf, &b->at[b->n], err);
    if (c) return c;
    *out = rule_var(&s->arena, b->n++);
  } else if (t->kind == RULE_LIST) {
    const rule_term **child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
    iso_code c = child ? ISO_OK : nomem(err);
    for (uint32_t i = 0; i < t->n && !c; i++) c = bind(s, leaf, t->child[i], b, &child[i], err);
    if (c) return c;
    *out = rule_list(&s->arena, child, t->n);
  } else *out = t;
  return *out ? ISO_OK : nomem(err);
}

iso_code st_term_over(state *s, const rule_term *t, rule_tensor *const *leaf, rule_tensor **out,
                      iso_error *err) {
  if (t->kind == RULE_VAR) return *out = rule_tensor_ref(leaf[t->u.i]), ISO_OK;
  bound *b = calloc(1, sizeof *b);
  const rule_term **child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
  iso_code c = b && child ? ISO_OK : nomem(err);
  size_t n_out = 0;
  for (uint32_t i = 0; i < t->n && !c; i++) c = bind(s, leaf, t->child[i], b, &child[i], err);
  const rule_term *call = c ? NULL : rule_op(&s->arena, t->u.s, child, t->n);
  if (!c)
    c = call ? s->oracle->call(s->oracle->ctx, call, b->at, false, out, 1, &n_out, err)
             : nomem(err);
  for (uint32_t i = 0; b && i < b->n; i++) rule_tensor_unref(b->at[i]);
  free(b);
  return c;
}

iso_code st_value_over(state *s, int side, const rule_term *t, size_t set, rule_tensor **out,
                       iso_error *err) {
  const synth_graph *g = s->graph[side];
  rule_tensor **leaf = calloc(g->n_nodes + 1, sizeof *leaf);
  if (!leaf) return nomem(err);
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind != SYNTH_OP)
      leaf[i] = g->node[i].value[g->node[i].kind == SYNTH_INPUT ? set : 0];
  const iso_code c = st_term_over(s, t, leaf, out, err);
  free(leaf);
  return c;
}

static bool is_number(const rule_tensor *t) { return !rule_dtype_is_complex(t->dtype); }

/* The first element at which two tensors of one shape differ as numbers, -1: none. */
static int64_t first_difference(const rule_tensor *a, const rule_tensor *b) {
  if (rule_tensor_same(a, b)) return -1;
  const bool ints = rule_dtype_is_int(a->dtype) && rule_dtype_is_int(b->dtype);
  for (int64_t i = 0; i < a->numel; i++) {
    if (ints ? rule_tensor_get_int(a, i) == rule_tensor_get_int(b, i)
             : rule_tensor_get(a, i) == rule_tensor_get(b, i))
      continue;
    if (!ints && isnan(rule_tensor_get(a, i)) && isnan(rule_tensor_get(b, i))) continue;
    return i;
  }
  return -1;
}

static iso_code agrees(const synth_given *g, const char *name, const rule_tensor *a,
                       const rule_tensor *b, iso_error *err) {
  char x[128], y[128];
  if (!rule_shape_eq(&a->shape, &b->shape))
    return iso_fail(err, ISO_USAGE, "%s: \"%.80s\" is %s, what it should be equal to is %s",
                    g->where, name, rule_shape_print(&a->shape, x, sizeof x),
                    rule_shape_print(&b->shape, y, sizeof y));
  if (a->dtype != b->dtype && !(rule_dtype_is_float(a->dtype) && rule_dtype_is_float(b->dtype)))
    return iso_fail(err, ISO_USAGE, "%s: \"%.80s\" is %s, what it should be equal to is %s",
                    g->where, name, rule_dtype_name(a->dtype), rule_dtype_name(b->dtype));
  if (!is_number(a))
    return rule_tensor_same(a, b)
               ? ISO_OK
               : iso_fail(err, ISO_USAGE, "%s: \"%.80s\" has other values", g->where, name);
  const int64_t i = first_difference(a, b);
  if (i < 0) return ISO_OK;
  return iso_fail(
      err, ISO_USAGE,
      "%s: \"%.80s\" has other values: element %lld (row-major) is %.9g, and should be %.9g",
      g->where, name, (long long)i, rule_tensor_get(a, i), rule_tensor_get(b, i));
}

/* Two expressions of right leaves, on every set. */
static iso_code hold_right(state *s, const synth_given *g, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t set = 0; set < s->n_sets && !c; set++) {
    rule_tensor *a = NULL, *b = NULL;
    c = st_value_over(s, RIGHT, g->equals, set, &a, err);
    if (!c) c = st_value_over(s, RIGHT, g->term, set, &b, err);
    if (!c) c = agrees(g, "what stands before =", a, b, err);
    rule_tensor_unref(a);
    rule_tensor_unref(b);
  }
  return c;
}

static iso_code hold(state *s, const synth_given *g, iso_error *err) {
  const synth_node *n = &s->graph[LEFT]->node[g->left];
  const size_t sets = n->kind == SYNTH_INPUT ? s->n_sets : 1;
  iso_code c = ISO_OK;
  for (size_t set = 0; set < sets && !c; set++) {
    rule_tensor *v = NULL;
    c = st_value_over(s, RIGHT, g->term, set, &v, err);
    if (c) return iso_prefix(err, "%s: ", g->where);
    c = agrees(g, n->name, n->value[set], v, err);
    rule_tensor_unref(v);
  }
  return c;
}

uint32_t st_whole_leaf(const state *s, const synth_given *g) {
  const rule_term *t = g->term;
  while (t->kind == RULE_OP && t->n &&
         (t->child[0]->kind == RULE_OP || t->child[0]->kind == RULE_VAR))
    t = t->child[0];
  if (t->kind != RULE_VAR || s->graph[RIGHT]->node[t->u.i].value[0]->numel !=
                                 s->graph[LEFT]->node[g->left].value[0]->numel)
    return UINT32_MAX;
  return (uint32_t)t->u.i;
}

/* The first other line that relates the same left leaf; NULL: there is none. */
static const char *other_line(const state *s, size_t i) {
  for (size_t k = 0; k < s->o->n_given; k++) {
    const synth_given *g = &s->o->given[k];
    if (k != i && !g->equals && !g->forbid && g->term && g->left == s->o->given[i].left)
      return g->where;
  }
  return NULL;
}

iso_code st_take_given(state *s, synth_relation *of, iso_error *err) {
  for (int side = 0; side < 2; side++) {
    const size_t n = s->graph[side]->n_nodes + 1;
    if (!(s->leaves.settled[side] = calloc(n, 1)) || !(s->leaves.written[side] = calloc(n, 1)) ||
        !(s->leaves.kept[side] = calloc(n, 1)))
      return nomem(err);
  }
  iso_code c = ISO_OK;
  for (size_t i = 0; i < s->o->n_given && !c; i++) {
    const synth_given *g = &s->o->given[i];
    if (g->equals) c = hold_right(s, g, err);
    else if (g->term && !g->forbid) {
      c = hold(s, g, err);
      if (c == ISO_USAGE && other_line(s, i)) c = iso_prefix(err, "%s and ", other_line(s, i));
    } else if (!g->term) s->leaves.settled[LEFT][g->left] = true;
  }
  return c ? c : st_take_families(s, of, err);
}

bool st_forbidden(const state *s, int side, size_t i, size_t source) {
  const size_t l = side == LEFT ? i : source, r = side == LEFT ? source : i;
  for (size_t k = 0; k < s->o->n_given; k++) {
    const synth_given *g = &s->o->given[k];
    if (g->forbid && g->left == l && (size_t)g->term->u.i == r) return true;
  }
  return false;
}
