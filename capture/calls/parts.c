/* Which tensors of several calls are one: state that one call hands to the next, and what the other
 * side reads or gives as one tensor. */
#include <string.h>

#include "capture/calls/calls_int.h"

int64_t calls_result(const cap_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_results; i++)
    if (strcmp(g->result[i].name, name) == 0) return (int64_t)i;
  return -1;
}

int64_t calls_input(const cap_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == CAP_INPUT && strcmp(g->node[i].name, name) == 0) return (int64_t)i;
  return -1;
}

bool calls_source(const chain *x, size_t k, const char *name, size_t *call, size_t *result) {
  while (k-- > 0) {
    const int64_t r = calls_result(x->g[k], name);
    if (r < 0) continue;
    *call = k, *result = (size_t)r;
    return true;
  }
  return false;
}

const char *calls_later(const chain *x, size_t k, const char *name) {
  return k == 0   ? name
         : k == 1 ? iso_arena_printf(x->a, "then.%s", name)
                  : iso_arena_printf(x->a, "then%zu.%s", k, name);
}

/* ---- parts of one tensor ---- */

/* As it was captured: what parts are of a whole at other sizes is no matter of these. */
static const rule_shape *shape_of(const chain *x, const calls_parts *p, size_t i) {
  return &x->captured[p->call[i]]->node[p->node[i]].output[0].shape;
}

/* Whether the shapes are one but for dimension `d`. */
static bool beside(const rule_shape *a, const rule_shape *b, uint32_t d) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (i != d && a->dim[i] != b->dim[i]) return false;
  return true;
}

static calls_way along(const chain *x, const calls_parts *p, const rule_shape *whole, uint32_t d) {
  int64_t sum = 0, last = 0;
  bool grows = true;
  for (size_t i = 0; i < p->n; i++) {
    const rule_shape *s = shape_of(x, p, i);
    if (!beside(s, whole, d)) return CALLS_APART;
    grows &= s->dim[d] >= last;
    last = s->dim[d];
    sum += last;
  }
  return sum == whole->dim[d]             ? CALLS_BEHIND
         : grows && last == whole->dim[d] ? CALLS_GROWING
                                          : CALLS_APART;
}

/* The other side's node with as many dimensions as the parts have, leading ones are no matter.
 * Returns: its captured shape. */
static rule_shape match_rank(const chain *x, calls_parts *p, uint32_t node, uint32_t rank) {
  const rule_shape *was = &x->other_captured->node[node].output[0].shape;
  const cap_node *n = &x->other->node[node];
  uint32_t less = 0;
  for (; was->rank - less > rank && was->dim[less] == 1; less++)
    p->loose |= n->dim && n->dim[less]->kind != RULE_INT;
  const uint32_t kept = was->rank - less, more = rank > kept ? rank - kept : 0;
  rule_shape out = {.rank = kept + more};
  p->whole.rank = kept + more;
  for (uint32_t d = 0; d < kept + more; d++) {
    const uint32_t from = d - more + less;
    out.dim[d] = d < more ? 1 : was->dim[from];
    p->whole.dim[d] = d < more ? 1 : n->output[0].shape.dim[from];
    p->text[d] = d < more || !n->size ? NULL : n->size[from];
    p->dim[d] = d < more ? x->one : n->dim ? n->dim[from] : NULL;
  }
  return out;
}

void calls_settle_way(const chain *x, calls_parts *p, uint32_t node) {
  const rule_shape whole = match_rank(x, p, node, shape_of(x, p, 0)->rank);
  bool same = true;
  for (size_t i = 0; i < p->n; i++) same &= rule_shape_eq(shape_of(x, p, i), &whole);
  p->last_alone = rule_shape_eq(shape_of(x, p, p->n - 1), &whole);
  p->way = same ? CALLS_SAME : CALLS_APART;
  for (uint32_t d = 0; d < whole.rank && p->way == CALLS_APART; d++) {
    p->way = along(x, p, &whole, d);
    p->along = d;
  }
}

/* Whether all but the last dimension are 1, at all sizes. */
static bool in_a_row(const chain *x, const cap_node *n) {
  const rule_shape *s = &n->output[0].shape;
  for (uint32_t d = 0; d + 1 < s->rank; d++)
    if (s->dim[d] != 1 || (x->scale && n->dim[d]->kind != RULE_INT)) return false;
  return s->rank > 0;
}

/* Whether the captured values go up by one, from part to part too. The first part alone tells that
 * they are places: two numbers may follow each other by chance. */
static bool goes_up(const chain *x, const calls_parts *p) {
  for (size_t set = 0; set < x->captured[0]->n_sets; set++) {
    int64_t next = 0;
    for (size_t i = 0; i < p->n; i++) {
      const cap_graph *g = x->captured[p->call[i]];
      const rule_tensor *t = g->input[set * g->n_nodes + p->node[i]];
      if (!t || !rule_dtype_is_int(t->dtype) || t->numel < (i ? 1 : 2)) return false;
      for (int64_t k = 0; k < t->numel; k++) {
        const int64_t v = rule_tensor_get_int(t, k);
        if ((i || k) && v != next) return false;
        if (v == INT64_MAX) return false;
        next = v + 1;
      }
    }
  }
  return true;
}

iso_code calls_settle_places(chain *x, calls_parts *p) {
  const cap_node *first = &x->g[p->call[0]]->node[p->node[0]];
  const uint32_t rank = first->output[0].shape.rank;
  p->way = CALLS_APART;
  for (size_t i = 0; i < p->n; i++) {
    const cap_node *n = &x->g[p->call[i]]->node[p->node[i]];
    if (n->output[0].shape.rank != rank || n->output[0].dtype != first->output[0].dtype ||
        !in_a_row(x, n))
      return ISO_OK;
  }
  if (!goes_up(x, p)) return ISO_OK;
  p->way = CALLS_BEHIND, p->along = rank - 1;
  p->whole = first->output[0].shape;
  p->whole.dim[p->along] = 0;
  for (uint32_t d = 0; d < rank; d++) p->dim[d] = x->one;
  const rule_term *sum = rule_int(x->a, 0);
  for (size_t i = 0; i < p->n && sum; i++) {
    const cap_node *n = &x->g[p->call[i]]->node[p->node[i]];
    p->whole.dim[p->along] += n->output[0].shape.dim[p->along];
    if (!x->scale) continue;
    const rule_term *own = calls_translate(x, p->call[i], n->dim[p->along]);
    sum = own ? calls_sum(x, sum, own) : NULL;
  }
  if (!sum) return cap_no_memory(x->err);
  p->dim[p->along] = sum;
  if (!x->scale || sum->kind == RULE_INT) return ISO_OK;
  p->text[p->along] = calls_size_text(x, sum);
  return p->text[p->along] ? ISO_OK : cap_no_memory(x->err);
}

calls_parts calls_inputs(const chain *x, const char *name) {
  calls_parts p = {.name = name};
  size_t call, result;
  for (size_t k = 0; k < x->n; k++) {
    const int64_t i = calls_input(x->g[k], name);
    if (i < 0 || calls_source(x, k, name, &call, &result)) continue;
    p.call[p.n] = (uint32_t)k;
    p.node[p.n++] = (uint32_t)i;
  }
  return p;
}

calls_parts calls_outputs(const chain *x, const char *name) {
  calls_parts p = {.name = name};
  for (size_t k = 0; k < x->n; k++) {
    const int64_t r = calls_result(x->g[k], name);
    if (r < 0 || x->used[k][r]) continue;
    p.call[p.n] = (uint32_t)k;
    p.node[p.n++] = x->g[k]->result[r].node;
  }
  return p;
}
