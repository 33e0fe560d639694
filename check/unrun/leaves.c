/* Parameters of graphs that are not run. Their names say which are one; with a checkpoint their
 * bytes are compared as well, and decide. */
#include <stdlib.h>
#include <string.h>

#include "check/unrun/unrun.h"
#include "check/value_int.h"
#include "rules/names.h"

static bool is_weight(const chk_state *k, uint32_t t) {
  return !k->term[t].call && k->term[t].node && k->term[t].node->kind == CAP_PARAMETER;
}

bool chk_of_weights(const chk_state *k, const chk_step *x) { return is_weight(k, x->a); }

/* ---- together ---- */

static uint32_t top(uint32_t *up, uint32_t i) {
  while (up[i] != i) i = up[i] = up[up[i]];
  return i;
}

/* Whether a step's leaf meets each leaf of its term for the first time. */
static bool joins_new(const chk_state *k, uint32_t *up, uint32_t leaf, const rule_term *t,
                      int depth) {
  if (t->kind == RULE_VAR) {
    const uint32_t id = (uint32_t)t->u.i;
    if (k->term[id].call)
      return depth < CHK_LAYOUT_DEPTH && joins_new(k, up, leaf, k->term[id].call, depth + 1);
    const uint32_t a = top(up, leaf), b = top(up, id);
    up[a] = b;
    return a != b;
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!joins_new(k, up, leaf, t->child[i], depth)) return false;
  return true;
}

iso_code chk_unrun_relations(chk_state *k) {
  uint32_t *up = malloc((k->n_terms + 1) * sizeof *up);
  iso_code c = up ? ISO_OK : chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms && !c; i++) up[i] = i;
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++) {
    const chk_step *x = &k->cert.step[i];
    const rule_term b = {.kind = RULE_VAR, .u = {.i = x->b}};
    if (x->kind == CHK_LEAF && !joins_new(k, up, x->a, &b, 0))
      c = chk_settle(k, CHK_REFUSED, "step %zu: %s %s is related to a leaf twice", i,
                     chk_side_of(k, x->a), chk_name_of(k, x->a));
  }
  free(up);
  return c;
}

/* ---- a layout ---- */

/* A relation of leaves: a layout that concatenates leaves of one side along a dimension and may
 * permute dimensions. */
typedef struct layout {
  const chk_state *k;
  int side;       /* whose leaves it is of */
  bool valued;    /* all of them have values */
  uint32_t first; /* one of them */
  size_t n;
  bool learned; /* as the pair that was learned from has it */
} layout;

static bool integer(const rule_term *t, int64_t *out) {
  return t->kind == RULE_INT && (*out = t->u.i, true);
}

/* A dimension, of `rank` ones, that a call names. */
static bool dimension(const rule_term *t, uint32_t rank, uint32_t *out) {
  int64_t d;
  if (!integer(t, &d)) return false;
  if (d < 0) d += rank;
  *out = (uint32_t)d;
  return d >= 0 && d < rank;
}

bool chk_turned(const rule_term *t, uint32_t rank, uint32_t from[RULE_MAX_RANK]) {
  uint32_t k[2] = {0, 1}, seen = 0;
  if (strcmp(t->u.s, OP_PERMUTE) == 0) {
    if (t->n != 2 || t->child[1]->kind != RULE_LIST || t->child[1]->n != rank) return false;
    for (uint32_t d = 0; d < rank; d++) {
      if (!dimension(t->child[1]->child[d], rank, &from[d]) || seen & 1u << from[d]) return false;
      seen |= 1u << from[d];
    }
    return true;
  }
  if (strcmp(t->u.s, OP_TRANSPOSE_INT) == 0) {
    if (t->n != 3 || !dimension(t->child[1], rank, &k[0]) || !dimension(t->child[2], rank, &k[1]))
      return false;
  } else if (strcmp(t->u.s, OP_T) != 0 || rank != 2) {
    return false;
  }
  for (uint32_t d = 0; d < rank; d++) from[d] = d == k[0] ? k[1] : d == k[1] ? k[0] : d;
  return true;
}

static bool shape_of(layout *l, uint32_t t, rule_shape *out, rule_dtype *dtype, int depth);

static bool shape_beside(layout *l, const rule_term *call, rule_shape *out, rule_dtype *dtype,
                         int depth) {
  int64_t dim;
  if (call->n != 2 || call->child[0]->kind != RULE_LIST || call->child[0]->n == 0 ||
      !integer(call->child[1], &dim) || dim < 0)
    return false;
  for (uint32_t i = 0; i < call->child[0]->n; i++) {
    const rule_term *part = call->child[0]->child[i];
    rule_shape one;
    rule_dtype type;
    if (part->kind != RULE_VAR || !shape_of(l, (uint32_t)part->u.i, &one, &type, depth) ||
        dim >= one.rank)
      return false;
    if (i == 0) {
      *out = one, *dtype = type;
      continue;
    }
    if (type != *dtype || one.rank != out->rank) return false;
    for (uint32_t d = 0; d < one.rank; d++)
      if (d != dim && one.dim[d] != out->dim[d]) return false;
    out->dim[dim] += one.dim[dim];
  }
  return true;
}

/* The shape of term `t` over parameters of the side. Returns: false where it is no such layout. */
static bool shape_of(layout *l, uint32_t t, rule_shape *out, rule_dtype *dtype, int depth) {
  const chk_term *x = &l->k->term[t];
  const rule_term *call = x->call;
  rule_shape was;
  uint32_t from[RULE_MAX_RANK];
  if (depth > CHK_LAYOUT_DEPTH) return false;
  if (!call) {
    if (!is_weight(l->k, t) || x->side != l->side) return false;
    *out = x->node->output[0].shape, *dtype = x->node->output[0].dtype;
    if (l->n++ == 0) l->first = t;
    l->valued &= x->node->value != NULL;
    return true;
  }
  if (x->node) return false;
  if (strcmp(call->u.s, OP_CAT) == 0) return shape_beside(l, call, out, dtype, depth + 1);
  if (call->n == 0 || call->child[0]->kind != RULE_VAR ||
      !shape_of(l, (uint32_t)call->child[0]->u.i, &was, dtype, depth + 1) ||
      !chk_turned(call, was.rank, from))
    return false;
  *out = was;
  for (uint32_t d = 0; d < was.rank; d++) out->dim[d] = was.dim[from[d]];
  return true;
}

/* ---- one relation ---- */

static bool namesakes(const chk_state *k, uint32_t a, uint32_t b) {
  return strcmp(chk_name_of(k, a), chk_name_of(k, b)) == 0;
}

/* The other side's parameter of this one's name; CHK_NONE. */
static uint32_t namesake(const chk_state *k, uint32_t leaf) {
  const int other = !k->term[leaf].side;
  const uint32_t base = other == RIGHT ? (uint32_t)k->graph[LEFT]->n_nodes : 0;
  for (uint32_t i = 0; i < k->graph[other]->n_nodes; i++)
    if (is_weight(k, base + i) && namesakes(k, leaf, base + i)) return base + i;
  return CHK_NONE;
}

/* Whether another parameter of the other side has the bytes of leaf `t`. */
static bool has_double(const chk_state *k, uint32_t t) {
  const rule_tensor *v = k->term[t].node->value;
  const int side = k->term[t].side;
  const uint32_t base = side == RIGHT ? (uint32_t)k->graph[LEFT]->n_nodes : 0;
  for (uint32_t i = base; i < base + k->graph[side]->n_nodes; i++) {
    if (i == t || !is_weight(k, i) || !k->term[i].node->value) continue;
    const rule_tensor *w = k->term[i].node->value;
    if (w->dtype == v->dtype && rule_shape_eq(&w->shape, &v->shape) && chk_same_bytes(w, v))
      return true;
  }
  return false;
}

static bool any_double(const chk_state *k, const rule_term *t) {
  if (t->kind == RULE_VAR)
    return k->term[t->u.i].call ? any_double(k, k->term[t->u.i].call)
                                : has_double(k, (uint32_t)t->u.i);
  for (uint32_t i = 0; i < t->n; i++)
    if (any_double(k, t->child[i])) return true;
  return false;
}

static iso_code as_stored(chk_state *k, void *ctx, uint32_t leaf, rule_tensor **out) {
  (void)ctx;
  *out = rule_tensor_ref(k->term[leaf].node->value);
  return ISO_OK;
}

/* Bytes of both, where both have them. */
static iso_code compare_bytes(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  rule_tensor *v = NULL;
  iso_code c = chk_layout(k, b, step, as_stored, NULL, &v);
  if (!c && v && !chk_same_bytes(k->term[a].node->value, v))
    c = chk_settle(k, CHK_REFUSED, "step %zu: %s %s: its values differ", step, chk_side_of(k, a),
                   chk_name_of(k, a));
  rule_tensor_unref(v);
  return c;
}

/* Nothing but a name, a relation that was learned, or bytes that no other leaf has says which leaf
 * is which. */
static iso_code find_reason(chk_state *k, uint32_t a, uint32_t b, layout *l, size_t step) {
  const uint32_t own = namesake(k, a);
  const rule_term whole = {.kind = RULE_VAR, .u = {.i = b}};
  const bool valued = l->valued && k->term[a].node->value;
  if (own == b) return ISO_OK;
  l->learned = chk_was_learned(k, a, b);
  if (l->learned) return ISO_OK;
  const bool named = own != CHK_NONE || (!k->term[b].call && namesake(k, b) != CHK_NONE);
  if (valued && !named && !any_double(k, &whole)) return ISO_OK;
  return chk_settle(k, k->o->n_learned ? CHK_REFUSED : CHK_UNPROVED,
                    "step %zu: that %s %s is %s %s is neither said by their names nor by bytes%s",
                    step, chk_side_of(k, a), chk_name_of(k, a),
                    k->term[b].call ? "a layout of" : "the other side's", chk_name_of(k, l->first),
                    k->o->n_learned ? "" : "; --learn gives the pair that it was learned from");
}

iso_code chk_unrun_leaf(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const cap_node *n = k->term[a].node;
  layout l = {.k = k, .side = !k->term[a].side, .valued = true};
  rule_shape shape;
  rule_dtype dtype;
  if (!shape_of(&l, b, &shape, &dtype, 0))
    return chk_settle(k, CHK_REFUSED, "step %zu: %s %s is no layout of the other side's parameters",
                      step, chk_side_of(k, a), chk_name_of(k, a));
  if (dtype != n->output[0].dtype || !rule_shape_eq(&shape, &n->output[0].shape))
    return chk_settle(k, CHK_REFUSED, "step %zu: %s %s has another shape or dtype", step,
                      chk_side_of(k, a), chk_name_of(k, a));
  const bool valued = l.valued && n->value;
  iso_code c = find_reason(k, a, b, &l, step);
  if (!c && !chk_settled(k) && valued) c = compare_bytes(k, a, b, step);
  if (c || chk_settled(k)) return c;
  int room = 256;
  const char *what = chk_spelled(k, b, &room);
  if (!what) return chk_nomem(k);
  return chk_assume(k, RULE_ASSUMES_LEAF,
                    iso_arena_printf(k->arena, "%s %s is %s%s, %s", chk_side_of(k, a),
                                     chk_name_of(k, a), what,
                                     l.learned ? " as of the pair that was learned from" : "",
                                     valued ? "byte for byte" : "by name, not compared"));
}
