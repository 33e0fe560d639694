/* How far the outputs move because of constants that differ by rounding: the graph is run with each
 * as it was on the one side, and as it was on the other, at the captured inputs and parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules/operators.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/refute/refute.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MOST_MEASURED = 32 };

/* The captured node of the class of either e-node, and the side that it is of. */
static bool captured_node(const state *s, const st_rounded *r, int *side, uint32_t *node) {
  if (r->call) return *side = r->side, *node = r->captured, true;
  for (int k = 0; k < 2; k++)
    for (*side = 0; *side < 2; ++*side) {
      const int32_t at = s->rec[r->node[k].i].node[*side];
      if (at >= 0) return *node = (uint32_t)at, true;
    }
  return false;
}

typedef struct moved {
  int side;
  uint32_t at; /* a node */
  rule_tensor *v;
  const rule_term *call;
} moved;

/* Whether a node makes a truth value or a whole number of constants alone: if it jumps, it differs
 * on all inputs, even where the outputs at the captured ones agree. */
static bool decides(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  if (n->kind != SYNTH_OP || e.i == EG_NONE || !s->rec[e.i].konst || n->n_outputs != 1)
    return false;
  switch (rule_operator_of(n->op)->choice) {
  case RULE_CHOICE_FLOOR:
  case RULE_CHOICE_CEIL:
  case RULE_CHOICE_TRUNC:
  case RULE_CHOICE_ROUND:
  case RULE_CHOICE_SIGN:
  case RULE_CHOICE_QUOTIENT:
  case RULE_CHOICE_UNSEEN: return true;
  default: return !rule_dtype_is_float(n->dtype) && !rule_dtype_is_complex(n->dtype);
  }
}

/* The outputs of a side where its node has the value `v`, or is called as it was captured. After
 * them come, by node, the deciding values. */
static iso_code outputs_with(state *s, const moved *m, const st_run *from, rule_tensor **out,
                             iso_error *err) {
  const int side = m->side;
  const uint32_t at = m->at;
  const synth_graph *g = s->graph[side];
  bool *again = calloc(g->n_nodes + 1, 1);
  rule_tensor **value = calloc(g->n_nodes + 1, sizeof *value);
  const rule_term **calls = calloc(g->n_nodes + 1, sizeof *calls);
  iso_code c = again && value && calls ? ISO_OK : nomem(err);
  if (!c) value[at] = m->v, calls[at] = m->call, again[at] = true;
  for (size_t i = at + 1; i < g->n_nodes && !c; i++)
    again[i] = g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE &&
               st_term_uses(g->node[i].call, again);
  const st_carry with = {.from = from, .again = again, .value = value, .call = calls};
  for (size_t o = 0; o < g->n_outputs && !c; o++) {
    const uint32_t goal = g->output[o].node;
    if (again[goal]) c = st_run_to(s, side, &with, goal, &out[o], NULL, err);
  }
  for (uint32_t i = at + 1; i < g->n_nodes && !c; i++)
    if (again[i] && decides(s, side, i))
      c = st_run_to(s, side, &with, i, &out[g->n_outputs + i], NULL, err);
  free(again);
  free(value);
  free(calls);
  return c;
}

/* The consequence: how far the outputs move, and a node that jumps, NULL: none does. */
typedef struct effect {
  double by;
  const char *jumps;
} effect;

static iso_code movement(state *s, const st_rounded *r, int side, uint32_t at, const st_run *base,
                         effect *out, iso_error *err) {
  const size_t n_outputs = s->graph[side]->n_outputs, n = n_outputs + s->graph[side]->n_nodes;
  rule_tensor **one = calloc(n + 1, sizeof *one), **two = calloc(n + 1, sizeof *two);
  iso_code c = one && two ? ISO_OK : nomem(err);
  const rule_term *own = r->call ? s->graph[side]->node[at].call : NULL;
  *out = (effect){0};
  if (!c) c = outputs_with(s, &(moved){side, at, r->value[0], own}, base, one, err);
  if (!c) c = outputs_with(s, &(moved){side, at, r->value[1], r->call}, base, two, err);
  for (size_t o = 0; o < n && !c; o++)
    if (one[o] && two[o] && one[o]->numel == two[o]->numel) {
      const double by = s->oracle->compare(s->oracle->ctx, one[o], two[o], 0).max_rel;
      if (o < n_outputs && !(by <= out->by)) out->by = by; /* also what is no number */
      if (o >= n_outputs && by > 0) out->jumps = s->graph[side]->node[o - n_outputs].id;
    }
  for (size_t o = 0; o < n && one && two; o++) {
    rule_tensor_unref(one[o]);
    rule_tensor_unref(two[o]);
  }
  free(one);
  free(two);
  return c;
}

/* How far apart the constants are, relative. */
static double difference(const state *s, const st_rounded *r) {
  if (!r->value[0] || !r->value[1] || r->value[0]->numel != r->value[1]->numel) return INFINITY;
  return s->oracle->compare(s->oracle->ctx, r->value[0], r->value[1], 0).max_rel;
}

static iso_code say(state *s, const st_rounded *r, double by, bool measured, iso_error *err) {
  synth_assumption *a = &s->assumed.of[r->assumption];
  a->text = measured
                ? iso_arena_printf(&s->arena,
                                   "%s: the outputs move by up to %.3g (relative) because of it",
                                   a->text, by)
                : iso_arena_printf(&s->arena,
                                   "%s: how far the outputs move because of it was not measured",
                                   a->text);
  return a->text ? ISO_OK : nomem(err);
}

/* A difference of constants that rounding explains moves outputs by little: a move by a quarter is
 * another function, and so is a move by far more than the constants differ, as where a floor reads
 * them. A move that is NaN is unknown. */
static iso_code doubt(state *s, const st_rounded *r, const effect *of, iso_error *err) {
  const double amplified = 1e5, /* a position times a frequency, and what follows */
      most = fmin(0.25, amplified * difference(s, r));
  const char *text = s->assumed.of[r->assumption].text;
  if ((of->by <= most && !of->jumps) || s->constants.doubtful) return ISO_OK;
  if (of->jumps)
    s->constants.doubtful = iso_arena_printf(&s->arena, "%s, and %s jumps", text, of->jumps);
  else
    s->constants.doubtful = iso_arena_printf(
        &s->arena,
        "%s, and the outputs move by %.3g (relative) because of it, which no rounding explains",
        text, of->by);
  return s->constants.doubtful ? ISO_OK : nomem(err);
}

iso_code st_measure_rounding(state *s, iso_error *err) {
  st_run base[2] = {0};
  bool ran[2] = {false, false};
  iso_code c = ISO_OK;
  if (s->constants.measured) return ISO_OK;
  s->constants.measured = true;
  const size_t set = s->witness.set;
  for (size_t i = 0; i < s->constants.n_rounded && !c; i++) {
    int side;
    uint32_t at;
    effect of = {0};
    bool measured =
        i < MOST_MEASURED && !s->stopped && captured_node(s, &s->constants.rounded[i], &side, &at);
    iso_error ignored;
    if (measured && !ran[side]) {
      if ((c = st_run_captured(s, side, &base[side], &ignored)) && c != ISO_NOMEM)
        c = ISO_OK, measured = false;
      ran[side] = measured;
    }
    if (measured && !c &&
        (c = movement(s, &s->constants.rounded[i], side, at, &base[side], &of, &ignored)) &&
        c != ISO_NOMEM)
      c = ISO_OK, measured = false;
    if (c) c = nomem(err);
    else if (measured) c = doubt(s, &s->constants.rounded[i], &of, err);
    if (!c) c = say(s, &s->constants.rounded[i], of.by, measured, err);
  }
  for (int side = 0; side < 2; side++)
    if (ran[side]) st_run_free(&base[side]);
  s->witness.set = set;
  return c;
}
