/* Values: whether buffers hold the values that their readers need.
 *
 * "makes" gives the value of a buffer after an event, "needs" the value that it must have. A
 * message carries the value of the sender's buffer, so that a receive's value is that of its
 * matching send: a reference, followed when it is asked for. A value that nobody declares is
 * unknown, and fits everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/checks/races.h"

enum { UNKNOWN = 0, FROM = 1u << 31 }; /* a value's name, or FROM and the index of a receive */

typedef struct holds {
  uint32_t value;
  uint32_t event; /* that wrote it, or LINT_NONE */
} holds;

typedef struct values {
  lint_check *c;
  holds *buffer;      /* of each name, on one rank */
  uint32_t **carries; /* of each proc, each event: what its send carries */
  lint_at *recv;      /* by index: receives whose value is their send's */
  size_t n_recv;
} values;

static uint32_t resolve(const values *v, uint32_t x) {
  for (size_t hops = 0; x & FROM; hops++) {
    if (hops > v->n_recv) return UNKNOWN; /* messages in a circle carry nothing */
    const lint_at r = v->recv[x & ~(uint32_t)FROM];
    const uint32_t id = v->c->t->proc[r.proc].meet[r.event];
    const lint_meet *m = id == LINT_NONE ? NULL : &v->c->t->meet[id];
    if (!m || m->n != 2 || m->faulty) return UNKNOWN;
    lint_at s = v->c->t->member[m->first];
    if (lint_event_at(v->c->t, s)->op != LINT_OP_SEND) s = v->c->t->member[m->first + 1];
    x = v->carries[s.proc][s.event];
  }
  return x;
}

static uint32_t value_of(const lint_program *p, const lint_event *e, lint_access_kind k,
                         uint32_t buffer) {
  for (uint32_t i = 0; i < e->n_access; i++) {
    const lint_access *a = &p->access[e->access + i];
    if (a->kind == k && (!buffer || a->buffer == buffer)) return a->value;
  }
  return UNKNOWN;
}

/* Whether match.c compared a receive's value with its reader's need. */
static bool is_compared(const values *v, lint_at r) {
  const lint_trace *t = v->c->t;
  const lint_program *p = t->proc[r.proc].prog;
  const uint32_t id = t->proc[r.proc].meet[r.event];
  if (!p->hint || !p->hint[r.event]) return false;
  if (id == LINT_NONE || t->meet[id].faulty) return true; /* what comes is told, or unknown */
  lint_at s = t->member[t->meet[id].first];
  if (lint_event_at(t, s)->op != LINT_OP_SEND) s = t->member[t->meet[id].first + 1];
  const lint_program *q = t->proc[s.proc].prog;
  return value_of(q, &q->event[s.event], LINT_NEEDS, 0) || (q->hint && q->hint[s.event]);
}

/* The contents of the buffers that an event writes, after it. */
static void write_all(values *v, lint_at at) {
  const lint_proc *p = &v->c->t->proc[at.proc];
  const lint_event *e = &p->prog->event[at.event];
  for (uint32_t i = 0; i < e->n_access; i++) {
    lint_touch t[LINT_TOUCHES];
    const lint_access *a = &p->prog->access[e->access + i];
    const size_t n = lint_touches(v->c->t, p, e, a, t);
    if (a->kind == LINT_MAKES || !n || !t[n - 1].writes) continue;
    holds h = {value_of(p->prog, e, LINT_MAKES, a->buffer), at.event};
    /* A message that brings something else than its reader needs was told (match.c). */
    if (e->op == LINT_OP_RECV && h.value == UNKNOWN && is_compared(v, at))
      h.value = p->prog->hint[at.event];
    if (e->op == LINT_OP_RECV && h.value == UNKNOWN && a->end == INT64_MAX) {
      v->recv[v->n_recv] = at;
      h.value = FROM | (uint32_t)v->n_recv++;
    }
    v->buffer[a->buffer] = h;
  }
  for (uint32_t i = 0; i < e->n_access; i++) {
    const lint_access *a = &p->prog->access[e->access + i];
    if (a->kind == LINT_MAKES) v->buffer[a->buffer] = (holds){a->value, at.event};
  }
}

/* The buffer that a send reads. */
static uint32_t sent_buffer(const lint_program *p, const lint_event *e) {
  for (uint32_t i = 0; i < e->n_access; i++) {
    const lint_access *a = &p->access[e->access + i];
    if (a->kind == LINT_BUFFER && a->at == 0 && a->end == INT64_MAX) return a->buffer;
  }
  return 0;
}

/* A receive brings the value that is needed of its buffer next, before another is written there.
 */
static void hint_receives(const lint_trace *t, const lint_proc *p, uint32_t *next) {
  for (size_t i = p->prog->n; i-- > 0;) {
    const lint_event *e = &p->prog->event[i];
    for (uint32_t k = 0; k < e->n_access; k++) {
      lint_touch touch[LINT_TOUCHES];
      const lint_access *a = &p->prog->access[e->access + k];
      const size_t n = lint_touches(t, p, e, a, touch);
      if (e->op == LINT_OP_RECV && n && touch[n - 1].writes && a->end == INT64_MAX)
        p->prog->hint[i] = next[a->buffer];
      if (n && touch[n - 1].writes) next[a->buffer] = UNKNOWN;
    }
    for (uint32_t k = 0; k < e->n_access; k++) {
      const lint_access *a = &p->prog->access[e->access + k];
      if (a->kind == LINT_NEEDS) next[a->buffer] = a->value;
    }
  }
}

/* A send carries the value that was made in its buffer last. */
static void hint_sends(const lint_trace *t, const lint_proc *p, uint32_t *last) {
  for (size_t i = 0; i < p->prog->n; i++) {
    const lint_event *e = &p->prog->event[i];
    const uint32_t b = e->op == LINT_OP_SEND ? sent_buffer(p->prog, e) : 0;
    if (b) p->prog->hint[i] = last[b];
    for (uint32_t k = 0; k < e->n_access; k++) {
      lint_touch touch[LINT_TOUCHES];
      const lint_access *a = &p->prog->access[e->access + k];
      const size_t n = lint_touches(t, p, e, a, touch);
      if (n && touch[n - 1].writes && a->kind != LINT_MAKES) last[a->buffer] = UNKNOWN;
    }
    for (uint32_t k = 0; k < e->n_access; k++) {
      const lint_access *a = &p->prog->access[e->access + k];
      if (a->kind == LINT_MAKES) last[a->buffer] = a->value;
    }
  }
}

static bool names_values(const lint_program *p) {
  for (size_t i = 0; i < p->n_access; i++)
    if (p->access[i].kind == LINT_NEEDS || p->access[i].kind == LINT_MAKES) return true;
  return false;
}

iso_code lint_hint_values(lint_check *c) {
  lint_trace *t = c->t;
  const size_t bytes = (t->names.n + 1) * sizeof(uint32_t);
  uint32_t *by_name = malloc(bytes);
  if (!by_name) return lint_no_memory(c->err);
  for (size_t i = 0; i < t->n_procs; i++) {
    lint_program *p = &t->program[t->proc[i].prog - t->program];
    if (p->hint || !names_values(p)) continue;
    if (!(p->hint = calloc(p->n + 1, sizeof *p->hint))) {
      free(by_name);
      return lint_no_memory(c->err);
    }
    memset(by_name, 0, bytes);
    hint_receives(t, &t->proc[i], by_name);
    memset(by_name, 0, bytes);
    hint_sends(t, &t->proc[i], by_name);
  }
  free(by_name);
  return ISO_OK;
}

/* The value that a send carries: its buffer's; where that is not known, the one it is said to need.
 */
static uint32_t carried(const values *v, const lint_program *p, const lint_event *e) {
  const uint32_t b = sent_buffer(p, e);
  const uint32_t x = b ? v->buffer[b].value : UNKNOWN;
  return x != UNKNOWN ? x : value_of(p, e, LINT_NEEDS, 0);
}

/* First without looking at needs, so that every send's value is known when it is asked for. */
static iso_code note_proc(values *v, uint32_t proc) {
  const lint_trace *t = v->c->t;
  const lint_program *p = t->proc[proc].prog;
  v->carries[proc] = calloc(p->n + 1, sizeof **v->carries);
  if (!v->carries[proc]) return lint_no_memory(v->c->err);
  memset(v->buffer, 0, (t->names.n + 1) * sizeof *v->buffer);
  for (uint32_t i = 0; i < p->n; i++) {
    if (p->event[i].op == LINT_OP_SEND) v->carries[proc][i] = carried(v, p, &p->event[i]);
    write_all(v, (lint_at){proc, i});
  }
  return ISO_OK;
}

static iso_code tell(values *v, lint_at at, uint32_t writer, uint32_t buffer, uint32_t has,
                     uint32_t needs) {
  char a[LINT_TEXT];
  const lint_trace *t = v->c->t;
  const lint_at both[2] = {at, {at.proc, writer}};
  lint_where(t, at, a, sizeof a);
  return lint_found(v->c, LINT_VALUE_MISMATCH, both, writer == LINT_NONE ? 1 : 2, NULL,
                    "%s needs %s in %s, which holds %s", a, lint_text(t, needs),
                    lint_text(t, buffer), lint_text(t, has));
}

static iso_code check_needs(values *v, lint_at at) {
  const lint_program *p = v->c->t->proc[at.proc].prog;
  const lint_event *e = &p->event[at.event];
  for (uint32_t i = 0; i < e->n_access; i++) {
    const lint_access *a = &p->access[e->access + i];
    if (a->kind != LINT_NEEDS) continue;
    holds *h = &v->buffer[a->buffer];
    const uint32_t has = resolve(v, h->value);
    if (has == UNKNOWN || has == a->value) continue;
    const iso_code c = tell(v, at, h->event, a->buffer, has, a->value);
    if (c) return c;
    h->value = a->value; /* what follows is held against what was meant */
  }
  return ISO_OK;
}

/* A receive whose "makes" differs from the value that arrives. A send that "needs" a value was
 * checked against that in match.c. */
static iso_code check_received(values *v, lint_at at) {
  const lint_trace *t = v->c->t;
  const lint_program *p = t->proc[at.proc].prog;
  const uint32_t makes = value_of(p, &p->event[at.event], LINT_MAKES, 0);
  const uint32_t id = t->proc[at.proc].meet[at.event];
  if (makes == UNKNOWN || id == LINT_NONE || t->meet[id].faulty) return ISO_OK;
  lint_at s = t->member[t->meet[id].first];
  if (lint_event_at(t, s)->op != LINT_OP_SEND) s = t->member[t->meet[id].first + 1];
  const lint_event *e = lint_event_at(t, s);
  const uint32_t comes = resolve(v, v->carries[s.proc][s.event]);
  if (value_of(t->proc[s.proc].prog, e, LINT_NEEDS, 0) || comes == UNKNOWN || comes == makes)
    return ISO_OK;
  char a[LINT_TEXT], b[LINT_TEXT];
  const lint_at both[2] = {at, s};
  lint_where(t, at, a, sizeof a);
  lint_where(t, s, b, sizeof b);
  return lint_found(v->c, LINT_VALUE_MISMATCH, both, 2, NULL, "%s receives %s from %s, not %s", a,
                    lint_text(t, comes), b, lint_text(t, makes));
}

static iso_code check_proc(values *v, uint32_t proc) {
  const lint_trace *t = v->c->t;
  const lint_program *p = t->proc[proc].prog;
  memset(v->buffer, 0, (t->names.n + 1) * sizeof *v->buffer);
  iso_code c = ISO_OK;
  for (uint32_t i = 0; !c && i < p->n; i++) {
    const lint_at at = {proc, i};
    c = check_needs(v, at);
    if (!c && p->event[i].op == LINT_OP_RECV) c = check_received(v, at);
    write_all(v, at);
  }
  return c;
}

iso_code lint_check_values(lint_check *c) {
  const lint_trace *t = c->t;
  size_t n = 0;
  bool any = false;
  if (t->form != LINT_EVENTS) return ISO_OK;
  for (size_t i = 0; i < t->n_procs; i++) {
    for (size_t k = 0; k < t->proc[i].prog->n_access && !any; k++)
      any = t->proc[i].prog->access[k].kind == LINT_NEEDS;
    for (size_t k = 0; k < t->proc[i].prog->n; k++)
      n += t->proc[i].prog->event[k].op == LINT_OP_RECV;
  }
  if (!any) return ISO_OK;
  values v = {.c = c,
              .buffer = malloc((t->names.n + 1) * sizeof *v.buffer),
              .carries = calloc(t->n_procs + 1, sizeof *v.carries),
              .recv = malloc((2 * n + 1) * sizeof *v.recv)};
  iso_code code = v.buffer && v.carries && v.recv ? ISO_OK : lint_no_memory(c->err);
  for (uint32_t i = 0; !code && i < t->n_procs; i++) code = note_proc(&v, i);
  for (uint32_t i = 0; !code && i < t->n_procs; i++) code = check_proc(&v, i);
  for (uint32_t i = 0; v.carries && i < t->n_procs; i++) free(v.carries[i]);
  free(v.buffer);
  free(v.carries);
  free(v.recv);
  return code;
}
