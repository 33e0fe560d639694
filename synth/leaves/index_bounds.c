/* The ranges of integer inputs: the rows of the tables that they index, and their domains. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* How the integers of an input come to be those of a node. */
typedef enum flow {
  FLOW_NONE,
  FLOW_WHOLE,
  FLOW_PART /* some of them */
} flow;

static flow of_term(const rule_term *t, const uint8_t *flow_of) {
  if (t->kind == RULE_VAR) return (flow)flow_of[t->u.i];
  flow most = FLOW_NONE;
  for (uint32_t k = 0; k < t->n; k++) {
    const flow f = of_term(t->child[k], flow_of);
    if (f > most) most = f;
  }
  return most;
}

/* The flow through a call that computes new integers from them, element by element and without
 * other inputs. The ends of sequences are row numbers, too, less one and but for the first. An
 * integer computed from a part of them is no sign of rows, nor is one computed from two of them,
 * which may be a length. */
static flow computed(const rule_term *t, const uint8_t *flow_of) {
  size_t n = 0;
  for (uint32_t k = 0; k < t->n; k++) n += of_term(t->child[k], flow_of) != FLOW_NONE;
  return n == 1 && of_term(t, flow_of) == FLOW_WHOLE ? FLOW_WHOLE : FLOW_NONE;
}

static flow flow_to(const rule_term *t, const uint8_t *flow_of) {
  const rule_operator *o = rule_operator_of(t->u.s);
  const flow f = of_term(t, flow_of);
  if (f == FLOW_NONE) return f;
  if (o->part) return FLOW_PART;
  if (o->identity || o->cast || o->moves || o->choice == RULE_CHOICE_BOUND) return f;
  return o->arithmetic ? computed(t, flow_of) : FLOW_NONE;
}

/* The rows that a call chooses by integers that come of an input. Where numbers are written into
 * rows, the same row may not come twice: that is no choice of any rows. */
static st_rows chosen(const rule_term *t, const uint8_t *flow_of) {
  const rule_operator *o = rule_operator_of(t->u.s);
  if (o->ends == RULE_ENDS_NOWHERE || o->index >= t->n ||
      of_term(t->child[o->index], flow_of) == FLOW_NONE)
    return ST_ROWS_NONE;
  if (o->ends == RULE_ENDS_CLASSES) return ST_ROWS_CLASSES;
  return o->table || o->ends == RULE_ENDS_COUNT ? ST_ROWS_READ : ST_ROWS_NONE;
}

/* Of how many rows, or classes, a call chooses. */
static int64_t rows_of(const synth_graph *g, const rule_term *call) {
  const rule_term *t = call->n ? call->child[0] : call;
  if (t->kind != RULE_VAR) return 0;
  const rule_shape *shape = &g->node[t->u.i].shape;
  const bool classes = rule_operator_of(call->u.s)->ends == RULE_ENDS_CLASSES;
  return shape->rank == 0 ? 0 : shape->dim[classes && shape->rank > 1];
}

st_rows st_chooses_rows(const state *s, int side, size_t i, const bool *live) {
  int64_t rows = 0;
  return st_chooses_among(s, side, i, live, &rows);
}

st_rows st_chooses_among(const state *s, int side, size_t i, const bool *live, int64_t *rows) {
  const synth_graph *g = s->graph[side];
  uint8_t *flow_of = calloc(g->n_nodes + 1, 1);
  st_rows most = ST_ROWS_NONE;
  *rows = 0;
  if (!flow_of) return most;
  flow_of[i] = FLOW_WHOLE;
  for (size_t j = i + 1; j < g->n_nodes && most != ST_ROWS_CLASSES; j++) {
    const synth_node *n = &g->node[j];
    if (n->kind != SYNTH_OP || !live[j]) continue;
    const st_rows r = chosen(n->call, flow_of);
    if (r > most) most = r;
    const int64_t among = r != ST_ROWS_NONE ? rows_of(g, n->call) : 0;
    if (among > 0 && (*rows == 0 || among < *rows)) *rows = among;
    if (rule_dtype_is_int(n->dtype) && n->n_outputs == 1)
      flow_of[j] = (uint8_t)flow_to(n->call, flow_of);
  }
  free(flow_of);
  return most;
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
