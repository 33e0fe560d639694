/* What one operator makes of tensors that are permuted along a dimension. Which numbers an element
 * of its result is computed of is known by its facts (rules/operators.def). */
#include <string.h>

#include "capture/orders/orders.h"
#include "rules/operators.h"

typedef struct step {
  const followed *f;
  const cap_node *node;
  const rule_term *call;
  const rule_shape *shape; /* of the result */
  along *out;
} step;

static const cap_node *node_of(const step *s, const rule_term *t) { return &s->f->g->node[t->u.i]; }
static const rule_shape *shape_of(const step *s, const rule_term *t) {
  return &node_of(s, t)->output[0].shape;
}
static const along *along_of(const step *s, const rule_term *t) { return &s->f->node[t->u.i]; }

static bool depends(const step *s, const rule_term *t) {
  if (t->kind == RULE_VAR) return along_of(s, t)->depends;
  for (uint32_t k = 0; k < t->n; k++)
    if (depends(s, t->child[k])) return true;
  return false;
}

/* Whether no argument but `k` is permuted, and that one is a tensor. */
static bool alone(const step *s, uint32_t k) {
  for (uint32_t i = 0; i < s->call->n; i++)
    if (i != k && depends(s, s->call->child[i])) return false;
  return k < s->call->n && s->call->child[k]->kind == RULE_VAR;
}

/* ---- sizes, for all values of the symbols ---- */

static bool is_one(const step *s, const cap_node *v, uint32_t d) {
  if (v->output[0].shape.dim[d] != 1) return false;
  if (v->dim) return v->dim[d]->kind == RULE_INT;
  return s->f->g->n_symbols == 0 || (v->kind != CAP_OP && (!v->size || !v->size[d]));
}

static bool one_size(const step *s, const cap_node *v, uint32_t i, const cap_node *w, uint32_t j) {
  if (v->dim && w->dim) return rule_term_eq(v->dim[i], w->dim[j]);
  return s->f->g->n_symbols == 0 && v->output[0].shape.dim[i] == w->output[0].shape.dim[j];
}

/* ---- forms of operators ---- */

/* As the operand `t`, its dimensions from `from` on moved by `by`. */
static void moved(const step *s, const rule_term *t, uint32_t from, int by) {
  *s->out = *along_of(s, t);
  for (uint32_t r = 0; r < s->f->rank; r++)
    if (s->out->at[r] >= from) s->out->at[r] = (uint8_t)(s->out->at[r] + by);
}

/* The dimension of the call's results that lies at `d`; their rank: none. */
static uint32_t dimension_of(const step *s, const along *a, int64_t d) {
  uint32_t r = 0;
  while (r < s->f->rank && a->at[r] != d) r++;
  return r;
}

/* Joins what a permuted operand of a call that broadcasts says of the result's dimensions. */
static bool joined(const step *s, const rule_term *t, bool *first) {
  const along *a = along_of(s, t);
  along here = {.depends = true};
  const uint32_t rank = shape_of(s, t)->rank;
  if (rank > s->shape->rank) return false;
  for (uint32_t r = 0; r < s->f->rank; r++) {
    here.at[r] = (uint8_t)(a->at[r] + s->shape->rank - rank);
    if (!one_size(s, node_of(s, t), a->at[r], s->node, here.at[r])) return false;
  }
  if (!*first && memcmp(here.at, s->out->at, s->f->rank)) return false;
  *first = false;
  *s->out = here;
  return true;
}

/* Whether an operand that is not permuted is the same along the result's permuted dimension. */
static bool level(const step *s, const rule_term *t) {
  const int64_t d = (int64_t)s->out->at[s->f->permuted] + shape_of(s, t)->rank - s->shape->rank;
  return d < 0 || is_one(s, node_of(s, t), (uint32_t)d);
}

/* Element by element, with operands broadcast. */
static bool element_by_element(const step *s) {
  bool first = true;
  for (uint32_t k = 0; k < s->call->n; k++) {
    const rule_term *t = s->call->child[k];
    if (t->kind == RULE_VAR ? depends(s, t) && !joined(s, t, &first) : depends(s, t)) return false;
  }
  for (uint32_t k = 0; k < s->call->n; k++) {
    const rule_term *t = s->call->child[k];
    if (t->kind == RULE_VAR && !depends(s, t) && !level(s, t)) return false;
  }
  return !first;
}

/* The argument `name`; NULL: the operator has none. */
static const rule_term *argument(const step *s, const char *name) {
  const rule_schema *schema = rule_schemas_find(s->f->g->schemas, s->call->u.s);
  const size_t k = schema ? cap_find_arg(schema, name) : CAP_NO_INDEX;
  return k < s->call->n ? s->call->child[k] : NULL;
}

/* The dimensions in a list, or one; none given: all. An empty list is all to some operators, and
 * none to others. */
static bool among(const rule_term *dims, int64_t d, bool *known) {
  if (!dims || dims->kind == RULE_NONE) return true;
  const bool list = dims->kind == RULE_LIST;
  *known = *known && (!list || dims->n > 0);
  bool found = false;
  for (uint32_t k = 0; k < (list ? dims->n : 1); k++) {
    const rule_term *t = list ? dims->child[k] : dims;
    *known = *known && t->kind == RULE_INT && t->u.i >= 0;
    found |= t->kind == RULE_INT && t->u.i == d;
  }
  return found;
}

/* Numbers along some dimensions become one, whatever their order. */
static bool reduced(const step *s) {
  if (!alone(s, 0) || !rule_schemas_find(s->f->g->schemas, s->call->u.s)) return false;
  const rule_term *t = s->call->child[0], *dims = argument(s, "dim");
  const along *a = along_of(s, t);
  const uint32_t rank = shape_of(s, t)->rank;
  bool known = true;
  if (among(dims, a->at[s->f->permuted], &known)) return *s->out = (along){0}, known;
  *s->out = *a;
  for (uint32_t r = 0; r < s->f->rank; r++) {
    if (among(dims, a->at[r], &known)) return false;
    for (uint32_t d = 0; d < a->at[r] && s->shape->rank < rank; d++)
      s->out->at[r] = (uint8_t)(s->out->at[r] - among(dims, d, &known));
  }
  return known;
}

/* Each row along a dimension by itself. */
static bool by_rows(const step *s, const rule_term *dim) {
  if (!alone(s, 0) || !dim || dim->kind != RULE_INT || dim->u.i < 0) return false;
  *s->out = *along_of(s, s->call->child[0]);
  const uint32_t r = dimension_of(s, s->out, dim->u.i);
  return r == s->f->rank || r == s->f->permuted;
}

/* The last dimension becomes another one. */
static bool last_alone(const step *s) {
  if (!alone(s, 0)) return false;
  *s->out = *along_of(s, s->call->child[0]);
  return dimension_of(s, s->out, (int64_t)shape_of(s, s->call->child[0])->rank - 1) == s->f->rank;
}

/* Products of matrices, broadcast over the dimensions in front of them. What is permuted stands in
 * front of them, or is the left's rows or the right's columns, of which the other one has none. */
static bool product(const step *s) {
  if (s->call->n < 2 || s->shape->rank < 2) return false;
  for (uint32_t k = 2; k < s->call->n; k++)
    if (depends(s, s->call->child[k])) return false;
  bool first = true;
  for (uint32_t k = 0; k < 2; k++) {
    const rule_term *t = s->call->child[k];
    if (t->kind != RULE_VAR || shape_of(s, t)->rank < 2) return false;
    const int64_t contracted = (int64_t)shape_of(s, t)->rank - 1 - k;
    if (depends(s, t) &&
        (dimension_of(s, along_of(s, t), contracted) < s->f->rank || !joined(s, t, &first)))
      return false;
  }
  for (uint32_t k = 0; k < 2 && s->out->at[s->f->permuted] + 2u < s->shape->rank; k++)
    if (!depends(s, s->call->child[k]) && !level(s, s->call->child[k])) return false;
  return !first;
}

/* The same numbers in the same order, in a shape in which the permuted dimension and the rows stand
 * behind the same sizes as before. */
static bool reshaped(const step *s) {
  if (!alone(s, 0)) return false;
  const rule_term *t = s->call->child[0];
  const cap_node *from = node_of(s, t);
  *s->out = (along){.depends = true};
  for (uint32_t r = 0; r < s->f->rank; r++) {
    uint32_t i = 0, j = 0;
    const uint32_t d = along_of(s, t)->at[r];
    for (;; i++, j++) {
      while (i < d && is_one(s, from, i)) i++;
      while (j < s->shape->rank && is_one(s, s->node, j) && !(i == d && is_one(s, from, d))) j++;
      if (j == s->shape->rank || !one_size(s, from, i, s->node, j)) return false;
      if (i == d) break;
    }
    s->out->at[r] = (uint8_t)j;
  }
  return true;
}

/* A part along a dimension, which stays or goes. */
static bool part(const step *s) {
  const rule_term *dim = argument(s, "dim");
  if (!alone(s, 0) || !dim || dim->kind != RULE_INT || dim->u.i < 0) return false;
  const rule_term *t = s->call->child[0];
  const uint32_t rank = shape_of(s, t)->rank;
  if (dimension_of(s, along_of(s, t), dim->u.i) < s->f->rank || s->shape->rank + 1 < rank ||
      s->shape->rank > rank)
    return false;
  moved(s, t, (uint32_t)dim->u.i, (int)s->shape->rank - (int)rank);
  return true;
}

/* Rows of a table, by permuted places. */
static bool looked_up(const step *s, const rule_operator *o) {
  const rule_term *list = o->index < s->call->n ? s->call->child[o->index] : NULL, *t = list;
  if (!list || depends(s, s->call->child[0])) return false;
  uint32_t before = 0;
  if (list->kind == RULE_LIST) {
    while (before < list->n && list->child[before]->kind == RULE_NONE) before++;
    if (before + 1 != list->n) return false;
    t = list->child[before];
  } else if (!alone(s, o->index)) return false;
  if (t->kind != RULE_VAR || !rule_dtype_is_int(node_of(s, t)->output[0].dtype)) return false;
  const rule_shape *table = shape_of(s, s->call->child[0]), *places = shape_of(s, t);
  switch (o->ends) {
  case RULE_ENDS_ROWS:
  case RULE_ENDS_EACH:
    if (s->shape->rank + 1 != table->rank + places->rank) return false;
    moved(s, t, 0, (int)before);
    return true;
  case RULE_ENDS_ALONG: { /* each row of places in its own row of the table */
    const rule_term *dim = argument(s, "dim");
    *s->out = *along_of(s, t);
    return dim && dim->kind == RULE_INT && dim->u.i == s->out->at[s->f->permuted] &&
           places->rank == table->rank && rule_shape_eq(s->shape, places);
  }
  default: return false;
  }
}

bool along_follow(const followed *f, uint32_t i, along *out) {
  const cap_node *v = &f->g->node[i];
  const rule_operator *o = rule_operator_of(v->call->u.s);
  const step s = {f, v, v->call, &v->output[0].shape, out};
  *out = (along){0};
  if (rule_is_getitem(v->call->u.s)) return moved(&s, v->call->child[0], 0, 0), true;
  if (o->part) return part(&s);
  if (v->n_outputs != 1) return false;
  if (rule_keeps_places(v->call->u.s)) return element_by_element(&s);
  if (o->reduces) return reduced(&s);
  if (o->weighs && o->axis) return by_rows(&s, v->call->child[o->axis]);
  if (o->contracts == RULE_CONTRACTS_LAST) return last_alone(&s);
  if (o->contracts == RULE_CONTRACTS_MATRICES) return product(&s);
  if (o->rearranges && o->undo == RULE_UNDONE_BY_RESHAPE) return reshaped(&s);
  if (o->table && o->moves) return looked_up(&s, o);
  return false;
}
