/* The ranks at one place along an axis, as a program of their own.
 *
 * Where the whole program cannot be read, as where ranks take the parts that they would have along
 * another axis, one group of it often can. Collectives with ranks outside the group are left out,
 * and the tensors that the group gives to them become its outputs. Nothing declares how those must
 * be placed, so that only unplaced steps are found. */
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"

/* ---- which nodes are left ---- */

static bool reads_what_is_left(const plc *w, const rule_term *t) {
  if (t->kind == RULE_VAR) return w->ranks_of[t->u.i] != 0;
  for (uint32_t i = 0; i < t->n; i++)
    if (!reads_what_is_left(w, t->child[i])) return false;
  return true;
}

/* Of ranks by bits, those of the group by their places in it. */
static uint64_t in_group(const plc *w, uint64_t ranks) {
  uint64_t out = 0;
  for (uint32_t k = 0; k < w->mesh.n; k++) out |= (ranks >> w->rank_at[k] & 1) << k;
  return out;
}

static void leave(const plc *x, plc *w) {
  uint64_t group = 0;
  for (uint32_t k = 0; k < w->mesh.n; k++) group |= UINT64_C(1) << w->rank_at[k];
  for (size_t i = 0; i < x->g->n_nodes; i++) {
    const cap_node *n = plc_node(x, (uint32_t)i);
    const bool beyond = plc_group_list(n) && (x->ranks_of[i] & ~group);
    const bool left = n->kind != CAP_OP || (!beyond && reads_what_is_left(w, n->call));
    w->ranks_of[i] = left ? in_group(w, x->ranks_of[i]) : 0;
  }
}

/* ---- its placements ---- */

static plc_place without_axis(const plc_place *p, uint32_t axis) {
  plc_place out = *p;
  memmove(out.axis + axis, out.axis + axis + 1, (PLC_AXES - 1 - axis) * sizeof *out.axis);
  out.axis[PLC_AXES - 1] = (plc_one){.kind = PLC_R};
  return out;
}

/* Whether the placement along the axis also determines how other axes cut. */
static bool is_tied(const plc_place *p, uint32_t axis) {
  if (p->axis[axis].kind == PLC_P) return true; /* a group has no whole */
  for (uint32_t a = 0; a < PLC_AXES; a++)
    if (a != axis && p->axis[a].kind == PLC_S && p->axis[axis].kind == PLC_S &&
        p->axis[a].dim == p->axis[axis].dim && plc_blocks(&p->axis[a]) > 1)
      return true;
  return false;
}

/* Returns: false where they cannot be said of a group. */
static bool take_lines(const plc *x, plc *w, uint32_t axis) {
  w->line = iso_arena_alloc(x->keep, (x->n_lines + 1) * sizeof *w->line);
  if (!plc_need(w, w->line)) return false;
  for (size_t i = 0; i < x->n_lines; i++) {
    if (is_tied(&x->line[i].place, axis)) return false;
    w->line[i] = x->line[i];
    w->line[i].place = without_axis(&x->line[i].place, axis);
  }
  w->n_lines = x->n_lines;
  return true;
}

static void take_mesh(const plc *x, plc *w, uint32_t axis, uint32_t at) {
  w->mesh = (plc_mesh){.n_axes = x->mesh.n_axes - 1};
  for (uint32_t a = 0, k = 0; a < x->mesh.n_axes; a++) {
    if (a == axis) continue;
    w->mesh.size[k] = x->mesh.size[a];
    w->mesh.name[k++] = x->mesh.name[a];
  }
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (plc_along(&x->mesh, r, axis) == at) w->rank_at[w->mesh.n++] = r;
}

/* ---- its outputs ---- */

/* A tuple of the whole program as the group has it. Returns: false where some of it is left out. */
static bool of_group(const plc *w, const plc_tuple *t, uint32_t *node) {
  for (uint32_t k = 0; k < w->mesh.n; k++) {
    node[k] = t->node[w->rank_at[k]];
    if (node[k] == PLC_NONE || !(w->ranks_of[node[k]] >> k & 1)) return false;
  }
  return true;
}

static void add_output(plc *w, const plc_tuple *t) {
  uint32_t node[PLC_RANKS];
  if (plc_failed(w) || !of_group(w, t, node)) return;
  const uint32_t id = plc_intern(w, node);
  if (id == PLC_NONE) return;
  w->output[w->n_outputs++] =
      (plc_output){.name = "", .tuple = id, .place = plc_replica(), .leaf = PLC_NONE};
}

static void find_outputs(const plc *x, plc *w) {
  uint32_t node[PLC_RANKS];
  w->output = iso_arena_alloc(&w->steps, (x->n_tuples + x->n_outputs + 1) * sizeof *w->output);
  if (!plc_need(w, w->output)) return;
  for (size_t i = 0; i < x->n_outputs; i++) add_output(w, x->tuple[x->output[i].tuple]);
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *t = x->tuple[i];
    if (t->collective && t->n_args && !of_group(w, t, node)) add_output(w, x->tuple[t->arg[0]]);
  }
}

/* ---- looking ---- */

/* The first step at which ranks take parts that are none of the whole; NULL: there is none. */
static const plc_tuple *first_apart(const plc *x) {
  const plc_tuple *first = NULL;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *t = x->tuple[i];
    if (t->differs && t->state == PLC_VARYING && (!first || t->order < first->order)) first = t;
  }
  return first;
}

/* Where ranks take parts by their places along one axis of two, they were meant to by the other. */
static const char *mend_of(plc *x, const plc_tuple *first, uint32_t axis) {
  if (x->mesh.n_axes != 2) return NULL;
  return iso_arena_printf(x->keep, "have %s take parts by the place along %s", plc_say(x, first),
                          x->mesh.name[1 - axis]);
}

static void look(plc *x, const plc_tuple *first, uint32_t axis, uint32_t at) {
  uint32_t node[PLC_RANKS];
  plc w = {.g = x->g,
           .schemas = x->schemas,
           .oracle = x->oracle,
           .seed = x->seed,
           .keep = x->keep,
           .err = x->err};
  take_mesh(x, &w, axis, at);
  w.among =
      iso_arena_printf(x->keep, "among the ranks at place %u of %s: ", at, x->mesh.name[axis]);
  w.among_mend = mend_of(x, first, axis);
  if (plc_need(&w, w.among) && take_lines(x, &w, axis) && plc_start(&w)) {
    leave(x, &w);
    plc_find_steps(&w);
    find_outputs(x, &w);
    w.among_from = of_group(&w, first, node) ? plc_intern(&w, node) : PLC_NONE;
    if (!plc_failed(&w) && w.among_from != PLC_NONE) plc_judge_steps(&w);
  }
  if (w.steps.failed || w.run.failed) plc_need(&w, NULL);
  if (plc_failed(&w)) x->code = w.code;
  if (!plc_failed(x) && w.n_findings) {
    free(x->finding);
    x->finding = w.finding;
    x->n_findings = w.n_findings;
    x->cap_findings = w.cap_findings;
    w.finding = NULL;
  }
  free(w.finding);
  plc_finish(&w);
}

void plc_judge_within(plc *x) {
  const plc_tuple *first = first_apart(x);
  for (uint32_t a = 0; a < x->mesh.n_axes && x->mesh.n_axes > 1; a++)
    for (uint32_t at = 0; at < x->mesh.size[a]; at++) {
      if (!first || plc_failed(x) || x->n_findings) return;
      if (x->mesh.size[a] < x->mesh.n) look(x, first, a, at);
    }
}
