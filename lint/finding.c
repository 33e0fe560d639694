/* Findings: their words, how events are called in them, their order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/check.h"

static const struct {
  const char *word;
  bool error;
} kinds[] = {
#define LINT_KIND(id, word, error) {word, error},
#include "lint/kinds.def"
#undef LINT_KIND
};

const char *lint_kind_word(lint_kind k) { return kinds[k].word; }

static const char *const models[LINT_MODELS] = {"buffered", "rendezvous", "stream", "serial"};

const char *lint_model_word(lint_model m) { return models[m]; }

int lint_model_named(const char *word) {
  for (int i = 0; i < LINT_MODELS; i++)
    if (strcmp(models[i], word) == 0) return i;
  return -1;
}

/* ---- how an event is called ---- */

/* In a table, tags are directions: 0 forward, 1 backward. */
static void action_name(const lint_event *e, char *buf, size_t cap) {
  const bool p2p = lint_op_classify(e->op) == LINT_P2P;
  const char *word = !p2p                    ? lint_op_word(e->op)
                     : e->op == LINT_OP_SEND ? (e->tag ? "SEND_B" : "SEND_F")
                                             : (e->tag ? "RECV_B" : "RECV_F");
  if (e->mb >= 0) snprintf(buf, cap, "%d%s%d", e->stage, word, e->mb);
  else snprintf(buf, cap, "%d%s", e->stage, word);
}

static void event_name(const lint_trace *t, const lint_proc *p, const lint_event *e, char *buf,
                       size_t cap) {
  const char *word = lint_op_word(e->op);
  if (e->extra && p->prog->extra[e->extra].name)
    snprintf(buf, cap, "%s", lint_text(t, p->prog->extra[e->extra].name));
  else if (lint_op_classify(e->op) == LINT_P2P)
    snprintf(buf, cap, "%s %s %lld", word, e->op == LINT_OP_SEND ? "to" : "from",
             (long long)lint_peer_rank(t, p, e->peer));
  else if (lint_op_classify(e->op) == LINT_COLLECTIVE && e->group != LINT_NONE)
    snprintf(buf, cap, "%s in %s", word, lint_text(t, t->ref[e->group].name));
  else if (e->op == LINT_OP_WAIT) snprintf(buf, cap, "wait %s", lint_text(t, e->handle));
  else if (e->stage >= 0) action_name(e, buf, cap);
  else if (e->n_access && (e->op == LINT_OP_ALLOC || e->op == LINT_OP_FREE))
    snprintf(buf, cap, "%s %s", word, lint_text(t, p->prog->access[e->access].buffer));
  else snprintf(buf, cap, "%s", word);
}

void lint_name_of(const lint_trace *t, lint_at at, char *buf, size_t cap) {
  const lint_event *e = lint_event_at(t, at);
  if (t->form == LINT_TABLE || t->form == LINT_TABLE_COMMS) action_name(e, buf, cap);
  else event_name(t, &t->proc[at.proc], e, buf, cap);
}

void lint_where(const lint_trace *t, lint_at at, char *buf, size_t cap) {
  char name[128];
  lint_name_of(t, at, name, sizeof name);
  snprintf(buf, cap, "rank %u event %u (%s)", t->proc[at.proc].rank, lint_event_at(t, at)->position,
           name);
}

/* ---- the list ---- */

static int by_rank(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static bool fill_events(lint_check *c, lint_finding *f, const lint_at *at, size_t n) {
  lint_place *place = iso_arena_alloc(c->arena, (n + 1) * sizeof *place);
  uint32_t *rank = iso_arena_alloc(c->arena, (n + 1) * sizeof *rank);
  if (!place || !rank) return false;
  for (size_t i = 0; i < n; i++) {
    rank[i] = c->t->proc[at[i].proc].rank;
    if (at[i].event == LINT_NONE) continue;
    place[f->n_events++] =
        (lint_place){.rank = rank[i], .position = lint_event_at(c->t, at[i])->position};
  }
  qsort(rank, n, sizeof *rank, by_rank);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || rank[i] != rank[i - 1]) rank[f->n_ranks++] = rank[i];
  f->rank = rank;
  f->event = place;
  return true;
}

iso_code lint_found(lint_check *c, lint_kind kind, const lint_at *at, size_t n, const char *mend,
                    const char *fmt, ...) {
  char text[4 * LINT_TEXT], name[128];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  lint_finding f = {.kind = kind, .error = kinds[kind].error};
  if (!iso_grow(c->finding, c->cap, c->n + 1) || !fill_events(c, &f, at, n) ||
      !(f.text = iso_arena_strdup(c->arena, text)))
    return lint_no_memory(c->err);
  if (mend && !(f.mend = iso_arena_strdup(c->arena, mend))) return lint_no_memory(c->err);
  if (n && at[0].event != LINT_NONE) {
    const lint_event *e = lint_event_at(c->t, at[0]);
    const lint_program *p = c->t->proc[at[0].proc].prog;
    lint_name_of(c->t, at[0], name, sizeof name);
    if (!(f.name = iso_arena_strdup(c->arena, name))) return lint_no_memory(c->err);
    if (e->extra && p->extra[e->extra].source &&
        !(f.source = iso_arena_strdup(c->arena, lint_text(c->t, p->extra[e->extra].source))))
      return lint_no_memory(c->err);
  }
  c->finding[c->n++] = f;
  return ISO_OK;
}

static int by_number(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_place(const void *a, const void *b) {
  const lint_finding *x = a, *y = b;
  int d = x->error != y->error ? (x->error ? -1 : 1) : 0;
  if (!d) d = by_number(x->n_events > 0, y->n_events > 0);
  if (!d && x->n_events) d = by_number(x->event[0].rank, y->event[0].rank);
  if (!d && x->n_events) d = by_number(x->event[0].position, y->event[0].position);
  if (!d) d = by_number(x->kind, y->kind);
  return d ? d : strcmp(x->text, y->text);
}

iso_code lint_disordered(lint_check *c, lint_at at, lint_at other) {
  if (!iso_grow(c->disorder, c->cap_disorders, c->n_disorders + 1)) return lint_no_memory(c->err);
  const bool up = at.event < other.event;
  c->disorder[c->n_disorders++] =
      (lint_disorder){at.proc, up ? at.event : other.event, up ? other.event : at.event};
  return ISO_OK;
}

bool lint_is_disordered(const lint_check *c, lint_at at) {
  for (size_t i = 0; i < c->n_disorders; i++) {
    const lint_disorder *d = &c->disorder[i];
    if (d->proc == at.proc && (at.event == d->low || at.event == d->high)) return true;
  }
  return false;
}

bool lint_follows_disorder(const lint_check *c, lint_at from, lint_at behind) {
  for (size_t i = 0; i < c->n_disorders; i++) {
    const lint_disorder *d = &c->disorder[i];
    /* The earlier one's needs are waited for right before it. */
    if (d->proc == from.proc && from.event + 2 >= d->low && from.event <= d->high &&
        behind.proc == d->proc && behind.event >= d->low)
      return true;
  }
  return false;
}

static bool same_event(const lint_finding *x, const lint_finding *y, size_t i) {
  return x->event[i].rank == y->event[i].rank && x->event[i].position == y->event[i].position;
}

/* One fault of one event may be seen from several sides. Races of one event with different events
 * are different faults: each lacks a wait of its own. */
static bool same_fault(const lint_finding *x, const lint_finding *y) {
  if (x->kind != y->kind || !x->n_events || !y->n_events) return by_place(x, y) == 0;
  const bool races = x->kind == LINT_READ_IN_FLIGHT || x->kind == LINT_WRITE_IN_FLIGHT ||
                     x->kind == LINT_TWO_WRITERS;
  if (races && x->n_events > 1 && y->n_events > 1 && !same_event(x, y, 1)) return false;
  return same_event(x, y, 0);
}

void lint_findings_sort(lint_check *c) {
  if (c->n < 2) return;
  qsort(c->finding, c->n, sizeof *c->finding, by_place);
  size_t n = 1;
  for (size_t i = 1; i < c->n; i++)
    if (!same_fault(&c->finding[i], &c->finding[n - 1])) c->finding[n++] = c->finding[i];
  c->n = n;
}
