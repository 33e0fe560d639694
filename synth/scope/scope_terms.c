/* Terms with their sizes as the captures write them. A captured call's sizes are given. Those of a
 * call that only the certificate has are chosen: as an equal call has them, or as a rule asks for.
 * The choice is free, since each step is then checked against it. */
#include <string.h>

#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/scope/scope_int.h"

iso_code scope_no_memory(scoping *z) { return iso_fail(z->err, ISO_NOMEM, "out of memory"); }

uint32_t scope_root(const scoping *z, uint32_t t) {
  while (z->up[t] != t) t = z->up[t] = z->up[z->up[t]];
  return t;
}

const scope_dims *scope_dims_of(const scoping *z, uint32_t t) {
  const scope_dims *d = &z->dim[scope_root(z, t)];
  return d->of ? d : NULL;
}

bool scope_join(scoping *z, uint32_t a, uint32_t b) {
  a = scope_root(z, a), b = scope_root(z, b);
  if (a == b) return true;
  const scope_dims *x = &z->dim[a], *y = &z->dim[b];
  if (x->of && y->of) {
    bool same = x->rank == y->rank;
    for (uint32_t d = 0; d < x->rank && same; d++) same = size_equal(&x->of[d], &y->of[d]);
    if (!same) return false;
  }
  if (!y->of) z->dim[b] = *x;
  z->up[a] = b;
  return true;
}

/* ---- sizes ---- */

bool scope_is_size(const rule_term *t) {
  return t->kind == RULE_INT || t->kind == RULE_NAME || t->kind == RULE_EXPR;
}

typedef struct side_names {
  const scoping *z;
  int side;
} side_names;

static bool value_of(const void *ctx, const char *name, size_sum *out) {
  const side_names *n = ctx;
  const size_t count = n->z->s->graph[n->side]->n_symbols;
  for (size_t i = 0; i < count; i++) {
    const scope_symbol *x = &n->z->symbol[n->side][i];
    if (strcmp(x->name, name) == 0) return *out = x->is, x->known;
  }
  return false;
}

static bool size_of(scoping *z, int side, const rule_term *t, size_sum *out) {
  const side_names of = {z, side};
  const size_names names = {value_of, &of};
  return size_read(&z->space, t, &names, out);
}

bool scope_size(scoping *z, const rule_term *t, size_sum *out) { return size_of(z, LEFT, t, out); }

bool scope_same_size(scoping *z, const rule_term *a, const rule_term *b) {
  size_sum x, y;
  return scope_is_size(a) && scope_is_size(b) && scope_size(z, a, &x) && scope_size(z, b, &y) &&
         size_equal(&x, &y);
}

/* ---- calls ---- */

bool scope_alike(scoping *z, const rule_term *a, const rule_term *b) {
  if (a->kind == RULE_VAR && b->kind == RULE_VAR)
    return scope_root(z, (uint32_t)a->u.i) == scope_root(z, (uint32_t)b->u.i);
  if (scope_is_size(a) && scope_is_size(b)) return scope_same_size(z, a, b);
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind == RULE_FLOAT && z->loose) return true;
  if (a->kind != RULE_OP && a->kind != RULE_LIST) return rule_term_eq(a, b);
  if (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0) return false;
  for (uint32_t k = 0; k < a->n; k++)
    if (!scope_alike(z, a->child[k], b->child[k])) return false;
  return true;
}

static const rule_term *with_children(scoping *z, const rule_term *t,
                                      const rule_term *const *child) {
  return t->kind == RULE_OP ? rule_op(&z->s->arena, t->u.s, child, t->n)
                            : rule_list(&z->s->arena, child, t->n);
}

const rule_term *scope_lift(scoping *z, const rule_term *call, const rule_term *like) {
  if (call->kind == RULE_INT) return scope_is_size(like) ? like : NULL;
  if (call->kind == RULE_VAR) return scope_alike(z, call, like) ? call : NULL;
  if (call->kind != like->kind || call->n != like->n) return NULL;
  if (call->kind != RULE_OP && call->kind != RULE_LIST)
    return rule_term_eq(call, like) || (z->loose && call->kind == RULE_FLOAT) ? call : NULL;
  const rule_term **child = iso_arena_alloc(&z->s->arena, (call->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < call->n; k++)
    if (!(child[k] = scope_lift(z, call->child[k], like->child[k]))) return NULL;
  return child ? with_children(z, call, child) : NULL;
}

/* A captured call as it is read, over terms, with the sizes of `sized`, the call as it was written:
 * literals may be read as others, sizes may not. */
static const rule_term *written(scoping *z, int side, const rule_term *read,
                                const rule_term *sized) {
  iso_arena *a = &z->s->arena;
  size_sum x;
  if (read->kind == RULE_VAR)
    return rule_var(a, (uint32_t)read->u.i +
                           (side == RIGHT ? (uint32_t)z->s->graph[LEFT]->n_nodes : 0));
  if (read->kind == RULE_INT)
    return scope_is_size(sized) && size_of(z, side, sized, &x) ? size_term(&z->space, &x) : NULL;
  if (sized->kind == RULE_NAME || sized->kind == RULE_EXPR) return NULL; /* a float of a size */
  if (read->kind != RULE_OP && read->kind != RULE_LIST) return read;
  if (sized->kind != read->kind || sized->n != read->n ||
      (read->kind == RULE_OP && strcmp(read->u.s, sized->u.s) != 0))
    return NULL;
  const rule_term **child = iso_arena_alloc(a, (read->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < read->n; k++)
    if (!(child[k] = written(z, side, read->child[k], sized->child[k]))) return NULL;
  return child ? with_children(z, read, child) : NULL;
}

/* Whether a view has the sizes that its call asks for: else the capture is none at other sizes. */
static bool has_sizes_asked_for(scoping *z, uint32_t t) {
  const rule_term *call = z->sized[t];
  const scope_dims *d = scope_dims_of(z, t);
  if (!rule_operator_of(call->u.s)->sizes || call->n < 2 || call->child[1]->kind != RULE_LIST)
    return true;
  const rule_term *size = call->child[1];
  size_sum x;
  bool same = d && d->rank == size->n;
  for (uint32_t k = 0; k < size->n && same; k++)
    same = scope_size(z, size->child[k], &x) && size_equal(&x, &d->of[k]);
  return same;
}

static iso_code read_dims(scoping *z, int side, uint32_t t, const synth_node *n) {
  size_sum *of = iso_arena_alloc(&z->s->arena, (n->shape.rank + 1) * sizeof *of);
  if (!of) return scope_no_memory(z);
  if (!n->dim || n->n_outputs != 1) return ISO_OK;
  for (uint32_t d = 0; d < n->shape.rank; d++)
    if (!size_of(z, side, n->dim[d], &of[d])) return ISO_OK;
  z->dim[t] = (scope_dims){of, n->shape.rank};
  return ISO_OK;
}

static const rule_term *over_terms(scoping *z, const rule_term *t, const uint32_t *of) {
  if (t->kind == RULE_VAR) return rule_var(&z->s->arena, of[t->u.i]);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(&z->s->arena, (t->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < t->n; k++)
    if (!(child[k] = over_terms(z, t->child[k], of))) return NULL;
  return child ? with_children(z, t, child) : NULL;
}

static bool has_integer(const rule_term *t) {
  bool any = t->kind == RULE_INT;
  for (uint32_t k = 0; k < t->n && !any; k++) any = has_integer(t->child[k]);
  return any;
}

/* A captured node as term `t`; `of`: the terms of its side's nodes. */
static iso_code read_node(scoping *z, int side, size_t i, uint32_t t, const uint32_t *of) {
  const synth_node *n = &z->s->graph[side]->node[i];
  z->captured[t] = true;
  const iso_code c = read_dims(z, side, t, n);
  if (c || n->kind != SYNTH_OP) return c;
  const rule_term *read = st_read_call(z->s, side, i, &z->s->arena);
  if (!read || !(z->call[t] = over_terms(z, read, of))) return scope_no_memory(z);
  if (n->sized) z->sized[t] = written(z, side, read, n->sized);
  if (z->sized[t] && !has_sizes_asked_for(z, t)) z->sized[t] = NULL;
  return ISO_OK;
}

iso_code scope_read_captures(scoping *z) {
  state *s = z->s;
  uint32_t t = 0;
  for (int side = 0; side < 2; side++) {
    const size_t n = s->graph[side]->n_nodes;
    uint32_t *own = iso_arena_alloc(&s->arena, (n + 1) * sizeof *own);
    if (!own) return scope_no_memory(z);
    for (size_t i = 0; i < n; i++) own[i] = t + (uint32_t)i;
    for (size_t i = 0; i < n; i++, t++) {
      const iso_code c = read_node(z, side, i, t, own);
      if (c) return c;
    }
  }
  uint32_t *of = iso_arena_alloc(&s->arena, (z->cert->n_terms + 1) * sizeof *of);
  if (!of) return scope_no_memory(z);
  for (size_t i = 0; i < z->cert->n_terms; i++) {
    const synth_cert_term *x = &z->cert->term[i];
    of[i] = x->call ? t++ : x->node + (x->right ? (uint32_t)s->graph[LEFT]->n_nodes : 0);
    if (x->call && !(z->call[of[i]] = over_terms(z, x->call, of))) return scope_no_memory(z);
    if (x->call && !has_integer(x->call)) z->sized[of[i]] = z->call[of[i]];
  }
  z->of = of;
  return ISO_OK;
}

/* The shape that a captured term of the class has at the captured sizes; NULL: there is none. */
static const rule_shape *captured_shape(const scoping *z, uint32_t t) {
  const synth_graph *const *g = z->s->graph;
  const size_t n_left = g[LEFT]->n_nodes;
  for (uint32_t i = 0; i < n_left + g[RIGHT]->n_nodes; i++) {
    if (scope_root(z, i) != scope_root(z, t)) continue;
    const synth_node *n = i < n_left ? &g[LEFT]->node[i] : &g[RIGHT]->node[i - n_left];
    if (n->n_outputs == 1) return &n->shape;
  }
  return NULL;
}

static const rule_term *joined_by(scoping *z, const char *op, const rule_term *const *x,
                                  uint32_t n) {
  return n == 1 ? x[0] : rule_expr(&z->s->arena, op, x, n);
}

/* The sizes that dimensions `to` of a view have, which hold the elements that its operand's
 * dimensions `from` hold: one of them takes all, the others are 1; or no size changes any.
 * Returns: false where they are others. */
static bool regrouped(scoping *z, const size_sum *from, uint32_t n, const rule_term *const *to,
                      uint32_t m, const rule_term **out) {
  const rule_term *factor[RULE_MAX_RANK];
  uint32_t wide = 0, last = 0;
  int64_t number;
  bool fixed = true;
  for (uint32_t d = 0; d < m; d++) {
    out[d] = to[d];
    if (to[d]->u.i != 1) wide++, last = d;
  }
  for (uint32_t d = 0; d < n; d++) {
    fixed &= size_is_number(&from[d], &number);
    if (!(factor[d] = size_term(&z->space, &from[d]))) return false;
  }
  if (fixed || n == 0) return true;
  if (wide > 1 || m == 0) return false;
  out[last] = joined_by(z, "*", factor, n);
  return out[last] != NULL;
}

const rule_term *scope_reshaped(scoping *z, const rule_term *call) {
  const rule_term *size[RULE_MAX_RANK], *child[2];
  if (call->n != 2 || call->child[0]->kind != RULE_VAR || call->child[1]->kind != RULE_LIST)
    return NULL;
  const scope_dims *from = scope_dims_of(z, (uint32_t)call->child[0]->u.i);
  const rule_shape *shape = captured_shape(z, (uint32_t)call->child[0]->u.i);
  const rule_term *to = call->child[1];
  if (!from || !shape || shape->rank != from->rank || to->n > RULE_MAX_RANK) return NULL;
  for (uint32_t d = 0; d < to->n; d++)
    if (to->child[d]->kind != RULE_INT || to->child[d]->u.i < 1) return NULL;
  for (uint32_t i = 0, j = 0; i < from->rank || j < to->n;) {
    const uint32_t first = i, other = j;
    int64_t have = 1, want = 1;
    do {
      if (have <= want && i < from->rank) have *= shape->dim[i++];
      else if (j < to->n) want *= to->child[j++]->u.i;
      else return NULL;
    } while (have != want || (i == first && i < from->rank) || (j == other && j < to->n));
    if (!regrouped(z, from->of + first, i - first, to->child + other, j - other, size + other))
      return NULL;
  }
  child[0] = call->child[0];
  child[1] = rule_list(&z->s->arena, size, to->n);
  return child[1] ? with_children(z, call, child) : NULL;
}

/* How many elements a term has, as a size. Returns: NULL where its sizes are not known. */
static const rule_term *elements(scoping *z, uint32_t t) {
  const scope_dims *d = scope_dims_of(z, t);
  const rule_term *call = z->sized[t], *list = NULL;
  const rule_term *one = rule_int(&z->s->arena, 1), *dim[RULE_MAX_RANK];
  if (d) {
    for (uint32_t i = 0; i < d->rank; i++)
      if (!(dim[i] = size_term(&z->space, &d->of[i]))) return NULL;
    return d->rank ? joined_by(z, "*", dim, d->rank) : one;
  }
  if (!call || call->n == 0) return NULL;
  if (rule_operator_of(call->u.s)->sizes) list = call->n == 2 ? call->child[1] : NULL;
  else if (strcmp(call->u.s, OP_CAT) == 0) list = call->child[0];
  if (!list || list->kind != RULE_LIST) return NULL;
  if (list != call->child[0]) return list->n ? joined_by(z, "*", list->child, list->n) : one;
  const rule_term **part = iso_arena_alloc(&z->s->arena, list->n * sizeof *part);
  for (uint32_t k = 0; part && k < list->n; k++)
    if (list->child[k]->kind != RULE_VAR || !(part[k] = elements(z, (uint32_t)list->child[k]->u.i)))
      return NULL;
  return part && list->n ? joined_by(z, "+", part, list->n) : NULL;
}

/* `call` with the sizes `d` for its argument `at`. */
static const rule_term *of_shape(scoping *z, const rule_term *call, uint32_t at,
                                 const scope_dims *d) {
  const rule_term *size[RULE_MAX_RANK];
  const rule_term **child = iso_arena_alloc(&z->s->arena, call->n * sizeof *child);
  if (!child || call->child[at]->kind != RULE_LIST || call->child[at]->n != d->rank) return NULL;
  for (uint32_t i = 0; i < d->rank; i++)
    if (!(size[i] = size_term(&z->space, &d->of[i]))) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[at] = rule_list(&z->s->arena, size, d->rank);
  return child[at] ? with_children(z, call, child) : NULL;
}

/* The operands of a view: parts that lie one behind the other, and tensors with a shape. */
static void size_parts(scoping *z, uint32_t t) {
  const rule_term *call = z->call[t];
  if (!call || z->sized[t] || z->captured[t] || call->n == 0) return;
  if (rule_operator_of(call->u.s)->sizes) {
    z->sized[t] = scope_reshaped(z, call);
    return;
  }
  if (strcmp(call->u.s, OP_CAT) != 0 || call->child[0]->kind != RULE_LIST) return;
  for (uint32_t k = 0; k < call->child[0]->n; k++) {
    if (call->child[0]->child[k]->kind != RULE_VAR) return;
    const uint32_t part = (uint32_t)call->child[0]->child[k]->u.i;
    size_parts(z, part);
    if (z->call[part] && !z->sized[part]) return;
  }
  z->sized[t] = call; /* its integer is a dimension */
}

/* A view, which has as many elements as what it is of. */
static void size_view(scoping *z, uint32_t t, const scope_dims *d) {
  const rule_term *call = z->call[t];
  const uint32_t of = (uint32_t)call->child[0]->u.i;
  size_parts(z, of);
  const rule_term *all = elements(z, of), *view = of_shape(z, call, 1, d), *asked;
  if (!all || !view) return;
  z->sized[t] = view;
  asked = elements(z, t);
  if (!asked || !scope_same_size(z, all, asked)) z->sized[t] = NULL;
}

void scope_size_constant(scoping *z, uint32_t t, const scope_dims *d) {
  const rule_term *call = z->call[t], *first = call && call->n ? call->child[0] : NULL;
  if (!first || !d || z->sized[t] || z->captured[t]) return;
  if (first->kind == RULE_LIST && strcmp(call->u.s, OP_FULL) == 0)
    z->sized[t] = of_shape(z, call, 0, d);
  if (first->kind != RULE_VAR) return;
  if (strcmp(call->u.s, OP_TRIL) == 0 || strcmp(call->u.s, OP_TRIU) == 0) {
    scope_size_constant(z, (uint32_t)first->u.i, d);
    if (z->sized[first->u.i]) z->sized[t] = call; /* its integer is a diagonal */
  } else if (rule_operator_of(call->u.s)->sizes && call->n == 2) size_view(z, t, d);
}

/* ---- what no size changes ---- */

static bool fixed_term(scoping *z, uint32_t t);

static bool numbers_only(scoping *z, const rule_term *t) {
  size_sum x;
  int64_t number;
  if (t->kind == RULE_VAR) return fixed_term(z, (uint32_t)t->u.i);
  if (scope_is_size(t)) return scope_size(z, t, &x) && size_is_number(&x, &number);
  for (uint32_t k = 0; k < t->n; k++)
    if (!numbers_only(z, t->child[k])) return false;
  return true;
}

static bool fixed_leaf(const scoping *z, uint32_t t) {
  const size_t n_left = z->s->graph[LEFT]->n_nodes;
  const int side = t >= n_left;
  const synth_node *n = &z->s->graph[side]->node[t - (side ? n_left : 0)];
  if (n->kind == SYNTH_INPUT || !n->dim) return false;
  for (uint32_t d = 0; d < n->shape.rank; d++)
    if (n->dim[d]->kind != RULE_INT) return false;
  return true;
}

static bool fixed_term(scoping *z, uint32_t t) {
  if (z->fixed[t]) return true;
  if (z->call[t] ? !z->sized[t] || !numbers_only(z, z->sized[t]) : !fixed_leaf(z, t)) return false;
  return z->fixed[t] = true;
}

bool scope_is_fixed(scoping *z, uint32_t t) {
  memset(z->fixed, 0, z->n_terms * sizeof *z->fixed);
  return fixed_term(z, t);
}
