/* A run as a picture: when each event begins and ends under the deciding model. An event without
 * cost gets a short time, so that it can be seen, and after its predecessor. */
#include <stdlib.h>
#include <string.h>

#include "lint/checks/progress.h"

enum { MOST_EVENTS = 4000000 };

/* A tenth of the smallest cost; 1 where nothing costs anything. */
static double tick_of(const lint_trace *t) {
  double least = 0;
  for (uint32_t i = 0; i < t->n_procs; i++) {
    const lint_program *g = t->proc[i].prog;
    for (size_t k = 0; k < g->n; k++) {
      const double cost = lint_cost_of(g, &g->event[k]);
      if (cost > 0 && (least == 0 || cost < least)) least = cost;
    }
  }
  return least > 0 ? least / 10 : 1;
}

/* The events' names, each once. */
typedef struct words {
  lint_check *c;
  uint32_t *index; /* of a name in the trace: a word, plus 1 */
  size_t cap;
} words;

static bool word_of(words *w, lint_at at, uint32_t *out) {
  char text[LINT_TEXT];
  lint_trace *t = w->c->t;
  uint32_t id;
  lint_name_of(t, at, text, sizeof text);
  if (!lint_intern(&t->names, &t->arena, text, strlen(text), &id)) return false;
  if (id >= w->cap) {
    const size_t cap = 2 * (size_t)id + 64;
    uint32_t *index = realloc(w->index, cap * sizeof *index);
    const char **word = realloc(w->c->word, cap * sizeof *word);
    if (index) w->index = index;
    if (word) w->c->word = word;
    if (!index || !word) return false;
    memset(index + w->cap, 0, (cap - w->cap) * sizeof *index);
    w->cap = cap;
  }
  if (!w->index[id]) {
    const char *kept = iso_arena_strdup(w->c->arena, text);
    if (!kept) return false;
    w->c->word[w->c->n_words++] = kept;
    w->index[id] = (uint32_t)w->c->n_words;
  }
  *out = w->index[id] - 1;
  return true;
}

/* The line that stands still at an event; NULL: none does. */
static const lint_line *stands_at(const lint_run_state *s, uint32_t proc, uint32_t i) {
  const lint_run_proc *p = &s->proc[proc];
  for (uint32_t k = 0; k < p->n_lines; k++) {
    const lint_line *l = &s->line[p->first_line + k];
    if (lint_line_event(s, l) == i) return l;
  }
  return NULL;
}

static bool draw_lane(words *w, const lint_run_state *s, uint32_t proc) {
  const lint_proc *p = &s->t->proc[proc];
  const lint_program *g = p->prog;
  lint_lane *lane = &w->c->lane[proc];
  lint_bar *bar = iso_arena_alloc(w->c->arena, (g->n + 1) * sizeof *bar);
  *lane = (lint_lane){.rank = p->rank, .n_ranks = p->n_ranks, .bar = bar};
  for (uint32_t i = 0; bar && i < g->n; i++) {
    const lint_event *e = &g->event[i];
    const lint_state *state = &s->proc[proc].state[i];
    if (e->op == LINT_OP_BATCH || e->flags & LINT_IMPLIED) continue;
    const lint_line *still = state->seen < 0 ? stands_at(s, proc, i) : NULL;
    if (state->seen < 0 && !still) {
      lane->n_never++;
      continue;
    }
    lint_bar *b = &bar[lane->n++];
    *b = (lint_bar){.start = still ? still->time : state->seen,
                    .end = state->done,
                    .position = e->position,
                    .meet = p->meet[i],
                    .op = e->op};
    if (!still && lint_op_classify((lint_op)e->op) < LINT_P2P)
      b->start -= lint_cost_of(g, e) + s->tick;
    if (!word_of(w, (lint_at){proc, i}, &b->name)) return false;
  }
  return bar != NULL;
}

iso_code lint_draw(lint_check *c, lint_model decides) {
  size_t events = 0;
  for (uint32_t i = 0; i < c->t->n_procs; i++) events += c->t->proc[i].prog->n;
  if (events > MOST_EVENTS) return ISO_OK;
  words w = {.c = c};
  lint_run_state s = {.t = c->t, .model = decides, .tick = tick_of(c->t)};
  iso_code code = lint_run_model(&s, c->err);
  if (!code) c->lane = iso_arena_alloc(c->arena, (c->t->n_procs + 1) * sizeof *c->lane);
  bool ok = c->lane != NULL;
  for (uint32_t i = 0; !code && ok && i < c->t->n_procs; i++) ok = draw_lane(&w, &s, i);
  if (!code && !ok) code = lint_no_memory(c->err);
  lint_run_fini(&s);
  free(w.index);
  const char **kept = code ? NULL : iso_arena_alloc(c->arena, (c->n_words + 1) * sizeof *kept);
  if (!code && !kept) code = lint_no_memory(c->err);
  if (kept) memcpy(kept, c->word, c->n_words * sizeof *kept);
  free(c->word);
  c->word = kept;
  return code;
}
