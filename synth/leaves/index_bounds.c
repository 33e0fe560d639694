/* The ranges of integer inputs: the rows of the tables that they index, and what their domains say.
 */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Every element of the result is an element of the first argument. */
static bool moves_elements(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->identity || o->rearranges || o->part || o->cast;
}

/* The arguments of a call that reads rows of a table: the table, the dimension along which it is
 * read, and the tensor of indices. Returns: false where it is none, or reads by more than one
 * tensor. */
static bool reads_rows(const rule_term *t, const rule_term **table, int64_t *dim,
                       const rule_term **index) {
  const bool rows = strcmp(t->u.s, OP_EMBEDDING) == 0,
             select = strcmp(t->u.s, OP_INDEX_SELECT) == 0;
  *dim = 0;
  *table = t->n ? t->child[0] : NULL;
  if (rows || select) {
    *index = t->child[rows ? 1 : 2];
    if (select) *dim = t->child[1]->u.i;
  } else {
    if (strcmp(t->u.s, OP_INDEX_TENSOR) != 0 || t->n < 2 || t->child[1]->kind != RULE_LIST)
      return false;
    const rule_term *list = t->child[1];
    while (*dim < list->n && list->child[*dim]->kind == RULE_NONE) ++*dim;
    if (*dim + 1 != list->n) return false;
    *index = list->child[*dim];
  }
  return (*table)->kind == RULE_VAR && (*index)->kind == RULE_VAR;
}

/* Whether it is the classes that a loss is told. */
static bool reads_classes(const rule_term *t, const rule_term **index) {
  const rule_operator *o = rule_operator_of(t->u.s);
  if (o->ends != RULE_ENDS_CLASSES || o->index >= t->n) return false;
  *index = t->child[o->index];
  return (*index)->kind == RULE_VAR;
}

bool st_chooses_rows(const state *s, int side, size_t i, const bool *live) {
  const synth_graph *g = s->graph[side];
  bool *flow = calloc(g->n_nodes + 1, 1), found = false;
  if (!flow) return false;
  flow[i] = true;
  for (size_t j = i + 1; j < g->n_nodes && !found; j++) {
    const synth_node *n = &g->node[j];
    if (n->kind != SYNTH_OP || !live[j]) continue;
    const rule_term *t = n->call, *table, *index;
    int64_t dim;
    if ((reads_rows(t, &table, &dim, &index) || reads_classes(t, &index)) && flow[index->u.i])
      found = true;
    else if (rule_dtype_is_int(n->dtype) && n->n_outputs == 1 && t->n && moves_elements(t->u.s) &&
             st_term_uses(t->child[0], flow))
      flow[j] = true;
  }
  free(flow);
  return found;
}

const st_range *st_range_of(const state *s, int side, size_t i) {
  static const st_range none;
  return s->leaves.range[side] ? &s->leaves.range[side][i] : &none;
}

/* Ids that one side looks up in a smaller table than the other lie within the smaller one. */
static iso_code note_smaller_tables(state *s, iso_error *err) {
  const synth_graph *g = s->graph[LEFT];
  for (size_t l = 0; l < g->n_nodes; l++) {
    const int64_t *end = st_range_of(s, LEFT, l)->end;
    if (g->node[l].kind != SYNTH_INPUT || end[LEFT] == end[RIGHT] || end[LEFT] == INT64_MAX ||
        end[RIGHT] == INT64_MAX)
      continue;
    const eg_node e = s->map[LEFT][l];
    const char *text = iso_arena_printf(
        &s->arena, "%s lies below %lld, the rows of the smaller table that it indexes",
        g->node[l].name, (long long)(end[LEFT] < end[RIGHT] ? end[LEFT] : end[RIGHT]));
    if (!text || !st_assume(s, RULE_ASSUMES_INPUT, e, e, NULL, text)) return nomem(err);
  }
  return ISO_OK;
}

static iso_code bound_by_range(state *s, int side, size_t i, iso_error *err) {
  const st_range *r = st_range_of(s, side, i);
  const rule_term *arg[3] = {rule_var(&s->arena, 0), rule_int(&s->arena, r->low),
                             rule_int(&s->arena, r->high - 1)},
                  *term;
  if (!arg[0] || !arg[1] || !arg[2] ||
      rule_call(&s->arena, s->schemas, OP_CLAMP, arg, 3, &term, err))
    return nomem(err);
  const char *text = iso_arena_printf(&s->arena,
                                      "%s's %s lies from %lld to %lld: no row of padding is meant, "
                                      "and no index counts from the end",
                                      side == LEFT ? "left" : "right", s->graph[side]->node[i].name,
                                      (long long)r->low, (long long)r->high - 1);
  return st_bound_leaf(s, side, i, term, RULE_ASSUMES_INPUT, text, err);
}

/* Ids lie below the padding of every table that they index: the input as a term that cannot leave
 * that range, for rules that hold there only (one side reads a padding row where another's masks
 * give zero, or the last row for -1). An input that is made of others, or that they are made of, is
 * given no second range. */
iso_code st_bound_indices(state *s, iso_error *err) {
  uint64_t done = 0;
  iso_code c = note_smaller_tables(s, err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const st_range *r = st_range_of(s, side, i);
      if (s->graph[side]->node[i].kind != SYNTH_INPUT || !r->matters || r->low < 0 ||
          (r->of & done) || st_bound_of(s, s->map[side][i]))
        continue;
      done |= r->of;
      c = bound_by_range(s, side, i, err);
    }
  return c;
}
