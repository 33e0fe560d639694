/* From a capture of several ranks to a report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check.h"
#include "lint/placement/placement_int.h"
#include "rules/operators.h"

static uint32_t count_ranks(const cap_graph *g) {
  uint32_t n = 0, r;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *list = plc_group_list(&g->node[i]);
    if (list && list->n > n) n = list->n;
    if (g->node[i].kind != CAP_OP && plc_leaf_name(g->node[i].name, &r) && r >= n) n = r + 1;
    if (plc_node_rank(&g->node[i], &r) && r >= n) n = r + 1;
  }
  return n;
}

static void read_mesh(plc *x, const lint_placement_options *o) {
  const uint32_t n = count_ranks(x->g);
  const char *text = o->mesh ? o->mesh : x->g->mesh;
  if (n < 2) {
    x->code =
        iso_fail(x->err, ISO_USAGE, "%s: a capture of one rank has no placements", x->g->path);
    return;
  }
  if (n > PLC_RANKS) {
    x->code = iso_fail(x->err, ISO_LIMIT, "%s: more than %d ranks", x->g->path, PLC_RANKS);
    return;
  }
  x->mesh.n = n;
  for (uint32_t r = 0; r < n; r++) x->rank_at[r] = r;
  if (!text || (!o->mesh && !*text)) {
    plc_mesh_guess(x);
    return;
  }
  x->code = plc_mesh_parse(x->keep, text, &x->mesh, x->err);
  if (!x->code && x->mesh.n != n)
    x->code = iso_fail(x->err, ISO_USAGE, "%s: the capture has %u ranks, the mesh \"%.80s\" %u",
                       x->g->path, n, text, x->mesh.n);
}

static void read_lines(plc *x, const lint_placement_options *o) {
  if (x->g->placements && !plc_lines_parse(x, x->g->placements, x->g->path) && o->placements)
    x->code = plc_lines_parse(x, o->placements, o->file);
}

/* A line that speaks of nothing is a slip of the pen. */
static void check_lines(plc *x) {
  for (size_t i = 0; i < x->n_lines && !plc_failed(x); i++)
    if (!x->line[i].used && !strchr(x->line[i].name, '*') && !plc_overridden(x, i))
      x->code = iso_fail(x->err, ISO_USAGE,
                         "%s: no %s is called \"%.100s\", of which a placement "
                         "speaks",
                         x->g->path, x->line[i].output ? "output" : "leaf", x->line[i].name);
}

bool plc_start(plc *x) {
  const size_t n = x->g->n_nodes + 1;
  x->ranks_of = calloc(n, sizeof *x->ranks_of);
  x->step_of = malloc(n * sizeof *x->step_of);
  if (x->step_of) memset(x->step_of, 0xff, n * sizeof *x->step_of);
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    x->value[d] = calloc(n, sizeof *x->value[d]);
    x->many[d] = calloc(n, sizeof *x->many[d]);
    plc_need(x, x->value[d]);
    plc_need(x, x->many[d]);
  }
  return plc_need(x, x->ranks_of) && plc_need(x, x->step_of) && !plc_failed(x);
}

void plc_finish(plc *x) {
  plc_clear(x);
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    free(x->value[d]);
    free(x->many[d]);
  }
  free(x->ranks_of);
  free(x->step_of);
  free(x->tuple);
  free(x->guess);
  iso_arena_fini(&x->steps);
  iso_arena_fini(&x->run);
}

/* ---- the report ---- */

static const char *evidence(const plc_tuple *t) {
  return t->evidence == RULE_PROVED ? "proved" : t->evidence == RULE_TESTED ? "tested" : NULL;
}

static void list_placed(plc *x, lint_report *r) {
  lint_placed *all = iso_arena_alloc(x->keep, (x->n_tuples + 1) * sizeof *all);
  if (!plc_need(x, all)) return;
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++) {
    const plc_tuple *t = x->tuple[i];
    uint32_t rank = 0;
    if (t->mixed || t->n_out != 1 || t->state == PLC_NEW) continue;
    while (t->node[rank] == PLC_NONE) rank++;
    const cap_node *n = plc_node(x, t->node[rank]);
    const bool placed = t->state == PLC_PLACED;
    lint_placed *p = &all[r->n_placed++];
    *p = (lint_placed){.rank = rank,
                       .id = iso_arena_strdup(x->keep, n->id),
                       .op = iso_arena_strdup(x->keep, n->kind == CAP_OP ? n->op : n->name),
                       .place = placed ? plc_print(x, &t->place[0], x->keep) : "varying",
                       .evidence = placed ? t->mended ? "mended" : evidence(t) : NULL,
                       .why = placed || !t->why ? NULL : iso_arena_strdup(x->keep, t->why)};
    plc_need(x, p->id);
    plc_need(x, p->op);
  }
  r->placed = all;
}

iso_code lint_capture(const cap_graph *g, const lint_placement_options *o, rule_schemas *schemas,
                      const rule_oracle *oracle, lint_report **out, iso_error *err) {
  iso_error own = {0};
  iso_arena *arena = NULL;
  lint_report *r = lint_report_new(&arena);
  if (!r) return iso_fail(err, ISO_NOMEM, "out of memory");
  plc x = {.g = g,
           .schemas = schemas,
           .oracle = oracle,
           .seed = o->seed,
           .keep = arena,
           .err = err ? err : &own};
  read_mesh(&x, o);
  if (!plc_failed(&x)) read_lines(&x, o);
  if (!plc_failed(&x) && plc_start(&x)) plc_find_steps(&x);
  if (!plc_failed(&x)) plc_outputs(&x);
  if (!plc_failed(&x)) plc_judge(&x);
  if (!plc_failed(&x) && x.undecided && !x.n_findings) plc_judge_within(&x);
  if (!plc_failed(&x)) check_lines(&x);
  if (!plc_failed(&x)) list_placed(&x, r);
  if (arena->failed || x.steps.failed || x.run.failed) plc_need(&x, NULL);
  r->capture = true;
  r->n_ranks = x.mesh.n;
  r->n_events = g->n_nodes;
  r->undecided = x.undecided;
  r->makespan = -1;
  lint_report_take(r, x.finding, x.n_findings);
  plc_finish(&x);
  if (x.code) lint_free(r);
  else *out = r;
  return x.code;
}
