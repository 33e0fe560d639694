/* The placements that the outputs have to have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"

/* "logits_rank2": the length of "logits", and the rank. Returns: 0 where it is not of that form. */
static size_t stem_of(const char *name, uint32_t *rank) {
  const char *at = NULL;
  for (const char *s = strstr(name, "_rank"); s; s = strstr(s + 1, "_rank")) at = s;
  if (!at || at == name || at[5] < '0' || at[5] > '9') return 0;
  char *end;
  const unsigned long r = strtoul(at + 5, &end, 10);
  if (*end || r >= PLC_RANKS) return 0;
  *rank = (uint32_t)r;
  return (size_t)(at - name);
}

static const cap_result *named(const plc *x, const char *name, size_t n) {
  for (size_t i = 0; i < x->g->n_results; i++)
    if (strlen(x->g->result[i].name) == n && strncmp(x->g->result[i].name, name, n) == 0)
      return &x->g->result[i];
  return NULL;
}

static uint32_t lowest(uint64_t ranks) { return (uint32_t)__builtin_ctzll(ranks ? ranks : 1); }

/* The nodes of an output on all ranks: those named after it, else those of its step. Returns: how
 * many are named. */
static uint32_t nodes_of(plc *x, const cap_result *o, uint32_t *node) {
  const size_t n = strlen(o->name);
  uint32_t siblings = 0, rank, least = PLC_RANKS;
  for (uint32_t r = 0; r < x->mesh.n; r++) node[r] = PLC_NONE;
  for (size_t i = 0; i < x->g->n_results; i++) {
    const cap_result *s = &x->g->result[i];
    if (stem_of(s->name, &rank) != n || strncmp(s->name, o->name, n) != 0 || rank >= x->mesh.n)
      continue;
    node[rank] = s->node;
    if (rank < least) least = rank;
    siblings++;
  }
  const plc_tuple *step = x->tuple[x->step_of[o->node]];
  const uint64_t ranks = x->ranks_of[o->node];
  /* The first rank has the bare name, also for an output that another rank computed. */
  rank = lowest(ranks) < least ? lowest(ranks) : 0;
  if (node[rank] == PLC_NONE) node[rank] = o->node;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (node[r] == PLC_NONE) node[r] = ranks >> r & 1 ? o->node : step->node[r];
  return siblings;
}

/* Other ranks give their parts of the same tensor, under names of their own. */
static bool given_in_parts(const plc *x, const cap_result *o, const uint32_t *node) {
  for (size_t i = 0; i < x->g->n_results; i++)
    for (uint32_t r = 0; r < x->mesh.n; r++)
      if (x->g->result[i].node == node[r] && node[r] != o->node) return true;
  return false;
}

static bool everywhere(const plc *x, const uint32_t *node) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (node[r] == PLC_NONE) return false;
  return true;
}

static uint32_t leaf_named(const plc *x, const char *name) {
  for (size_t i = 0; i < x->n_tuples; i++)
    if (x->tuple[i]->leaf && strcmp(plc_name(x, x->tuple[i]), name) == 0) return (uint32_t)i;
  return PLC_NONE;
}

void plc_outputs(plc *x) {
  uint32_t rank, node[PLC_RANKS];
  x->output = iso_arena_alloc(&x->steps, (x->g->n_results + 1) * sizeof *x->output);
  if (!plc_need(x, x->output)) return;
  for (size_t i = 0; i < x->g->n_results && !plc_failed(x); i++) {
    const cap_result *o = &x->g->result[i];
    const size_t stem = stem_of(o->name, &rank);
    if (stem && named(x, o->name, stem)) continue;
    plc_output *out = &x->output[x->n_outputs];
    *out = (plc_output){.name = o->name, .place = plc_replica(), .leaf = PLC_NONE};
    const bool replicas = nodes_of(x, o, node) > 0;
    const plc_line *said = plc_line_for(x, o->name, true);
    out->declared =
        said ? !said->varies : replicas || (everywhere(x, node) && !given_in_parts(x, o, node));
    out->gradient = strncmp(o->name, "grad.", 5) == 0;
    if (!said && !replicas && !everywhere(x, node) && !given_in_parts(x, o, node)) {
      out->alone = true;
      for (uint32_t r = 0; r < x->mesh.n; r++)
        if (node[r] == PLC_NONE) node[r] = o->node;
    }
    if (said) out->place = said->place;
    else if (out->gradient) out->leaf = leaf_named(x, o->name + 5);
    else if (strncmp(o->name, "updated.", 8) == 0) out->leaf = leaf_named(x, o->name + 8);
    if ((out->tuple = plc_intern(x, node)) == PLC_NONE) return;
    x->n_outputs++;
  }
}

plc_place plc_wanted(const plc *x, const plc_output *o) {
  if (o->leaf == PLC_NONE || x->tuple[o->leaf]->state != PLC_PLACED) return o->place;
  return x->tuple[o->leaf]->place[0];
}

bool plc_output_holds(plc *x, const plc_output *o) {
  plc_tuple *t = x->tuple[o->tuple];
  const plc_place want = plc_wanted(x, o);
  rule_tensor *each[PLC_RANKS];
  if (!t->whole || !t->whole[0]) return false;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    plc_locals(x, t, d, 0, each);
    if (!plc_holds(x, each, t->whole[d], &want, t->floor)) return false;
  }
  return true;
}

bool plc_unequal(plc *x, const plc_output *o) {
  const plc_tuple *t = x->tuple[o->tuple];
  const plc_place p = plc_replica(), want = plc_wanted(x, o);
  rule_tensor *each[PLC_RANKS];
  if (!plc_is_replica(x, &want)) return false;
  plc_locals(x, t, 0, 0, each);
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (!each[r]) return false;
  rule_tensor *one = plc_combine(x, each, &p, t->floor);
  const bool unequal = !one && !plc_failed(x);
  rule_tensor_unref(one);
  return unequal;
}
