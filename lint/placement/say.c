/* Findings in words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/check.h"
#include "lint/placement/placement_int.h"

static uint32_t first_rank(const plc *x, const plc_tuple *t) {
  uint32_t r = 0;
  while (r + 1 < x->mesh.n && t->node[r] == PLC_NONE) r++;
  return r;
}

const char *plc_say(plc *x, const plc_tuple *t) {
  const cap_node *n = plc_node(x, t->node[first_rank(x, t)]);
  const char *op = strstr(n->op, "::");
  const char *s = t->leaf ? iso_arena_printf(x->keep, "%s", plc_name(x, t))
                          : iso_arena_printf(x->keep, "%s (%s)", n->id, op ? op + 2 : n->op);
  return s ? s : "?";
}

void plc_found(plc *x, lint_kind kind, const plc_tuple *t, const char *mend, const char *fmt, ...) {
  char text[2 * LINT_TEXT];
  va_list ap;
  for (size_t i = 0; i < x->n_findings; i++) /* one fault of one place may be seen twice */
    if (strcmp(x->finding[i].node[0].id, plc_node(x, t->node[first_rank(x, t)])->id) == 0) return;
  if (x->among) mend = x->among_mend;
  va_start(ap, fmt);
  const int said = x->among ? snprintf(text, sizeof text, "%s", x->among) : 0;
  vsnprintf(text + said, sizeof text - (size_t)said, fmt, ap);
  va_end(ap);
  lint_node *node = iso_arena_alloc(x->keep, x->mesh.n * sizeof *node);
  uint32_t *rank = iso_arena_alloc(x->keep, x->mesh.n * sizeof *rank);
  if (!plc_need(x, node) || !plc_need(x, rank)) return;
  lint_finding f = {.kind = kind, .error = true, .rank = rank, .node = node};
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    if (t->node[r] == PLC_NONE) continue;
    const char *id = iso_arena_strdup(x->keep, plc_node(x, t->node[r])->id);
    if (!plc_need(x, id)) return;
    node[f.n_nodes++] = (lint_node){.rank = x->rank_at[r], .id = id};
    rank[f.n_ranks++] = x->rank_at[r];
  }
  const cap_node *n = plc_node(x, t->node[first_rank(x, t)]);
  f.text = iso_arena_strdup(x->keep, text);
  f.name = iso_arena_strdup(x->keep, n->kind == CAP_OP ? n->op : n->name);
  f.source = n->source && *n->source ? iso_arena_strdup(x->keep, n->source) : NULL;
  f.mend = mend ? iso_arena_strdup(x->keep, mend) : NULL;
  if (!f.text || !f.name || !iso_grow(x->finding, x->cap_findings, x->n_findings + 1))
    plc_need(x, NULL);
  else x->finding[x->n_findings++] = f;
}
