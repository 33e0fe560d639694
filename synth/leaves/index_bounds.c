/* The ranges of integer inputs: the rows of the tables that they index, and what their domains say.
 */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Every element of the result is an element of the first argument. */
static bool moves_elements(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->identity || o->rearranges || o->part || o->cast;
}

/* The rows of a table less those at the end that are zero: padding of a vocabulary to a size that
 * divides well. */
static int64_t used_rows(const synth_node *table, int64_t dim) {
  const int64_t rows = table->shape.dim[dim];
  if (table->kind == SYNTH_OP || dim != 0 || table->shape.rank < 2 || rows < 1) return rows;
  const rule_tensor *t = table->value[0];
  int64_t last = t->numel;
  while (last > 0 && rule_tensor_get(t, last - 1) == 0) last--;
  return last == 0 ? rows : (last - 1) / (t->numel / rows) + 1;
}

static bool all_below(const synth_graph *g, size_t i, int64_t limit) {
  for (size_t set = 0; set < g->n_sets; set++)
    for (int64_t k = 0; k < g->node[i].value[set]->numel; k++)
      if (rule_tensor_get_int(g->node[i].value[set], k) >= limit) return false;
  return true;
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

/* The rows of the smallest table that node `i` of `side` indexes, as it is: behind arithmetic and
 * masks (shards of a vocabulary) the table's rows say nothing. Padding rows do not count where the
 * captured values do without them. In `all`: with them. `live`: the operators that count, where
 * they are not in the e-graph yet; else NULL. `wraps` is set where an operator reads that would
 * count a negative index from the end. */
int64_t st_index_rows(const state *s, int side, size_t i, const bool *live, int64_t *all,
                      bool *wraps) {
  const synth_graph *g = s->graph[side];
  bool *flow = calloc(g->n_nodes + 1, 1);
  int64_t limit = INT64_MAX;
  *all = INT64_MAX;
  if (!flow) return limit;
  flow[i] = true;
  for (size_t j = i + 1; j < g->n_nodes; j++) {
    const synth_node *n = &g->node[j];
    if (n->kind != SYNTH_OP || !(live ? live[j] : s->map[side][j].i != EG_NONE)) continue;
    const rule_term *t = n->call, *table, *index;
    int64_t dim;
    if (reads_rows(t, &table, &dim, &index) && flow[index->u.i]) {
      const rule_shape *sh = &g->node[table->u.i].shape;
      if (dim < 0 || dim >= (int64_t)sh->rank) continue;
      const int64_t used = used_rows(&g->node[table->u.i], dim);
      if (sh->dim[dim] < *all) *all = sh->dim[dim];
      if (used < limit) limit = used;
      if (wraps && strcmp(t->u.s, OP_INDEX_TENSOR) == 0) *wraps = true;
      continue;
    }
    if (rule_dtype_is_int(n->dtype) && n->n_outputs == 1 && t->n && moves_elements(t->u.s) &&
        st_term_uses(t->child[0], flow))
      flow[j] = true;
  }
  free(flow);
  return limit != INT64_MAX && all_below(g, i, limit) ? limit : *all;
}

/* Inputs defined by others are layouts of them: one limit for all value-carrying integer inputs is
 * safe. In `matters`: whether a rule may hold within it only, as there is padding or what is
 * negative is read from the end. */
int64_t st_index_limit(const state *s, bool *matters) {
  bool wraps = false;
  int64_t limit = INT64_MAX, least = INT64_MAX;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_INPUT || !rule_dtype_is_int(n->value[0]->dtype) ||
          s->rec[s->map[side][i].i].konst)
        continue;
      int64_t all;
      const int64_t l = st_index_rows(s, side, i, NULL, &all, &wraps);
      if (l < limit) limit = l;
      if (all < least) least = all;
    }
  if (matters) *matters = limit < least || wraps;
  return limit;
}

/* Ids that one side looks up in a smaller table than the other lie within the smaller one. */
static iso_code note_smaller_tables(state *s, iso_error *err) {
  const synth_graph *g[2] = {s->graph[LEFT], s->graph[RIGHT]};
  for (size_t l = 0; l < g[LEFT]->n_nodes; l++)
    for (size_t r = 0; r < g[RIGHT]->n_nodes; r++) {
      const eg_node e[2] = {s->map[LEFT][l], s->map[RIGHT][r]};
      if (g[LEFT]->node[l].kind != SYNTH_INPUT || g[RIGHT]->node[r].kind != SYNTH_INPUT ||
          !rule_dtype_is_int(g[LEFT]->node[l].dtype) || s->rec[e[LEFT].i].konst ||
          !eg_equal(s->g, e[LEFT], e[RIGHT]))
        continue;
      int64_t rows[2];
      st_index_rows(s, LEFT, l, NULL, &rows[LEFT], NULL);
      st_index_rows(s, RIGHT, r, NULL, &rows[RIGHT], NULL);
      const int64_t least = rows[LEFT] < rows[RIGHT] ? rows[LEFT] : rows[RIGHT];
      if (rows[LEFT] == rows[RIGHT] || rows[LEFT] == INT64_MAX || rows[RIGHT] == INT64_MAX)
        continue;
      const char *text = iso_arena_printf(
          &s->arena, "%s lies below %lld, the rows of the smaller table that it indexes",
          g[LEFT]->node[l].name, (long long)least);
      if (!text || !st_assume(s, RULE_ASSUMES_INPUT, e[LEFT], e[RIGHT], NULL, text))
        return nomem(err);
    }
  return ISO_OK;
}

/* Token ids lie below the padding of every table: the input as a term that cannot leave that range,
 * for rules that hold there only (one side reads a padding row where another's masks give zero, or
 * the last row for -1). */
iso_code st_bound_indices(state *s, iso_error *err) {
  bool matters;
  const int64_t limit = st_index_limit(s, &matters);
  eg_node done = {EG_NONE};
  const iso_code noted = note_smaller_tables(s, err);
  if (noted) return noted;
  for (int side = 0; side < 2 && matters; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      const eg_node e = s->map[side][i];
      int64_t all;
      if (n->kind != SYNTH_INPUT || !rule_dtype_is_int(n->value[0]->dtype) || s->rec[e.i].konst ||
          (done.i != EG_NONE && eg_equal(s->g, done, e)) ||
          st_index_rows(s, side, i, NULL, &all, NULL) == INT64_MAX)
        continue;
      if (done.i != EG_NONE)
        return ISO_OK; /* two independent inputs of ids: the first alone is given a range */
      done = e;
      const rule_term *arg[3] = {rule_var(&s->arena, 0), rule_int(&s->arena, 0),
                                 rule_int(&s->arena, limit - 1)},
                      *term;
      if (!arg[0] || !arg[1] || !arg[2] ||
          rule_call(&s->arena, s->schemas, OP_CLAMP, arg, 3, &term, err))
        return nomem(err);
      const char *text =
          iso_arena_printf(&s->arena,
                           "%s's %s lies from 0 to %lld: no row of padding is meant, and no index "
                           "counts from the end",
                           side == LEFT ? "left" : "right", n->name, (long long)limit - 1);
      const iso_code c = st_bound_leaf(s, side, i, term, RULE_ASSUMES_INPUT, text, err);
      if (c) return c;
    }
  return ISO_OK;
}
