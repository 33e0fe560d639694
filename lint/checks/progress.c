/* The runs of progress.h.
 *
 * No receive takes "any source", so an event that can happen does happen, in any order: a line goes
 * on until it must wait, and an event that ends wakes the lines that wait for it. A line that still
 * waits at the end hangs under every schedule. */
#include "lint/checks/progress.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { AHEAD = 12 };

static bool has_queues(const lint_run_state *s) { return s->model >= LINT_STREAM; }

uint32_t lint_unit_of(const lint_event *e, uint32_t i) {
  return e->flags & LINT_IN_BATCH ? e->link : i;
}

static const lint_program *prog_of(const lint_run_state *s, uint32_t proc) {
  return s->t->proc[proc].prog;
}

/* ---- lines ---- */

lint_line *lint_line_of(const lint_run_state *s, lint_at at) {
  const lint_run_proc *p = &s->proc[at.proc];
  const uint32_t stream = lint_event_at(s->t, at)->stream;
  uint32_t k = 0;
  while (k + 1 < p->n_lines && s->line[p->first_line + k].stream != stream) k++;
  return &s->line[p->first_line + k];
}

uint32_t lint_line_event(const lint_run_state *s, const lint_line *l) {
  if (l->at == l->end) return LINT_NONE;
  const uint32_t *order = s->proc[l->proc].order;
  return order ? order[l->at] : l->at;
}

static bool add_line(lint_run_state *s, uint32_t proc, uint32_t stream) {
  if (!iso_grow(s->line, s->cap_lines, s->n_lines + 1)) return false;
  s->line[s->n_lines++] = (lint_line){.proc = proc, .stream = stream};
  s->proc[proc].n_lines++;
  return true;
}

/* The events of a proc in list order, with the move that is tried. */
static void list_order(const lint_run_state *s, uint32_t proc, uint32_t *order) {
  const lint_move *m = s->move;
  const uint32_t n = (uint32_t)prog_of(s, proc)->n;
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!m || m->proc != proc) {
      order[k++] = i;
      continue;
    }
    if (i == m->to && !m->behind) order[k++] = m->from;
    if (i != m->from) order[k++] = i;
    if (i == m->to && m->behind) order[k++] = m->from;
  }
}

/* A line for each stream under the queue models, else one. */
static bool make_lines(lint_run_state *s, uint32_t proc) {
  const lint_program *g = prog_of(s, proc);
  lint_run_proc *p = &s->proc[proc];
  const uint32_t n = (uint32_t)g->n;
  p->first_line = (uint32_t)s->n_lines;
  if (!add_line(s, proc, 0)) return false;
  for (uint32_t i = 0; has_queues(s) && i < n; i++) {
    uint32_t k = 0;
    while (k < p->n_lines && s->line[p->first_line + k].stream != g->event[i].stream) k++;
    if (k == p->n_lines && !add_line(s, proc, g->event[i].stream)) return false;
  }
  lint_line *l = &s->line[p->first_line];
  l[0].end = n;
  if (p->n_lines == 1 && !(s->move && s->move->proc == proc)) return true;
  uint32_t *list = malloc((n + 1) * sizeof *list);
  p->order = malloc((n + 1) * sizeof *p->order);
  if (list && p->order) {
    list_order(s, proc, list);
    uint32_t at = 0;
    for (uint32_t k = 0; k < p->n_lines; k++) {
      l[k].at = at;
      for (uint32_t i = 0; i < n; i++)
        if (p->n_lines == 1 || g->event[list[i]].stream == l[k].stream) p->order[at++] = list[i];
      l[k].end = at;
    }
  }
  free(list);
  return list && p->order;
}

/* ---- queues ---- */

static uint32_t queue_group(const lint_run_state *s, lint_at unit) {
  const lint_event *e = lint_event_at(s->t, unit);
  if (e->op == LINT_OP_BATCH) e++;
  return s->model == LINT_SERIAL ? LINT_NONE : lint_group_of(&s->t->proc[unit.proc], e);
}

lint_queue *lint_queue_of(const lint_run_state *s, lint_at unit) {
  const lint_run_proc *p = &s->proc[unit.proc];
  if (!has_queues(s) || lint_event_at(s->t, unit)->flags & LINT_IMPLIED) return NULL;
  const uint32_t group = queue_group(s, unit);
  for (uint32_t i = 0; i < p->n_queues; i++)
    if (p->queue[i].group == group) return &p->queue[i];
  return NULL;
}

static bool is_unit(const lint_event *e) {
  if (e->op == LINT_OP_BATCH) return e->link > 0;
  return lint_op_classify(e->op) >= LINT_P2P && !(e->flags & LINT_IN_BATCH);
}

static bool enqueue(lint_run_state *s, lint_at unit) {
  lint_run_proc *p = &s->proc[unit.proc];
  lint_queue *q = lint_queue_of(s, unit);
  if (!q) {
    size_t cap = p->cap_queues;
    if (!iso_grow(p->queue, cap, p->n_queues + 1)) return false;
    p->cap_queues = (uint32_t)cap;
    q = &p->queue[p->n_queues++];
    *q = (lint_queue){.group = queue_group(s, unit)};
  }
  size_t cap = q->cap;
  if (!iso_grow(q->unit, cap, q->n + 1)) return false;
  q->cap = (uint32_t)cap;
  q->unit[q->n++] = unit.event;
  return true;
}

/* The host posts in the order of the list, even while streams wait. */
static bool make_queues(lint_run_state *s, uint32_t proc) {
  const lint_program *g = prog_of(s, proc);
  uint32_t *list = NULL;
  bool ok = true;
  if (s->move && s->move->proc == proc) {
    if (!(list = malloc((g->n + 1) * sizeof *list))) return false;
    list_order(s, proc, list);
  }
  for (uint32_t k = 0; ok && k < g->n; k++) {
    const uint32_t i = list ? list[k] : k;
    const lint_event *e = &g->event[i];
    if (is_unit(e) && !(e->flags & LINT_IMPLIED)) ok = enqueue(s, (lint_at){proc, i});
  }
  free(list);
  return ok;
}

/* ---- what ends, and who waits for it ---- */

static void wake(lint_run_state *s, uint32_t line) {
  lint_line *l = &s->line[line];
  if (l->queued) return;
  l->queued = true;
  if (!iso_grow(s->ready, s->cap_ready, s->n_ready + 1)) s->no_memory = true;
  else s->ready[s->n_ready++] = line;
}

static void wake_all(lint_run_state *s, uint32_t *first) {
  uint32_t i = *first;
  *first = 0;
  while (i) {
    const uint32_t next = s->line[i - 1].waits;
    s->line[i - 1].waits = 0;
    wake(s, i - 1);
    i = next;
  }
}

static void plan_start(lint_run_state *s, lint_at unit, double time) {
  if (!iso_grow(s->start, s->cap_start, s->n_start + 1)) s->no_memory = true;
  else s->start[s->n_start++] = (lint_start){unit, time};
}

static void end_unit(lint_run_state *s, lint_at unit, double time) {
  lint_queue *q = lint_queue_of(s, unit);
  if (time > s->makespan) s->makespan = time;
  if (!q) return;
  q->free = time;
  if (++q->head == q->n) return;
  const lint_at next = {unit.proc, q->unit[q->head]};
  const double posted = s->proc[unit.proc].state[next.event].seen;
  if (posted >= 0) plan_start(s, next, posted > time ? posted : time);
}

static void end_op(lint_run_state *s, lint_at at, double time) {
  lint_run_proc *p = &s->proc[at.proc];
  if (p->state[at.event].done >= 0) return; /* a buffered send, which ended when it started */
  const lint_event *e = lint_event_at(s->t, at);
  p->state[at.event].done = time;
  wake_all(s, &p->state[at.event].waiter);
  if (!(e->flags & LINT_IN_BATCH)) {
    end_unit(s, at, time);
    return;
  }
  const lint_at unit = {at.proc, e->link};
  if (--p->state[unit.event].left > 0) return;
  for (uint32_t i = 1; i <= lint_event_at(s->t, unit)->link; i++)
    if (p->state[unit.event + i].done > time) time = p->state[unit.event + i].done;
  p->state[unit.event].done = time;
  wake_all(s, &p->state[unit.event].waiter);
  end_unit(s, unit, time);
}

static void start_op(lint_run_state *s, lint_at at, double time) {
  const lint_event *e = lint_event_at(s->t, at);
  const uint32_t id = s->t->proc[at.proc].meet[at.event];
  const lint_meet *m = id == LINT_NONE ? NULL : &s->t->meet[id];
  const double tick = e->flags & LINT_IMPLIED ? 0 : s->tick;
  if (!m || (m->faulty && s->lenient)) {
    end_op(s, at, time + tick);
    return;
  }
  if (e->op == LINT_OP_SEND && (s->model == LINT_BUFFERED || e->flags & LINT_IMPLIED))
    end_op(s, at, time + tick);
  if (m->faulty) return;
  if (time > s->time[id]) s->time[id] = time;
  if (++s->arrived[id] < m->n) return;
  for (uint32_t i = 0; i < m->n; i++) end_op(s, s->t->member[m->first + i], s->time[id] + tick);
}

static void start_unit(lint_run_state *s, lint_at unit, double time) {
  const lint_event *e = lint_event_at(s->t, unit);
  if (e->op != LINT_OP_BATCH) {
    start_op(s, unit, time);
    return;
  }
  for (uint32_t i = 1; i <= e->link; i++) start_op(s, (lint_at){unit.proc, unit.event + i}, time);
}

/* ---- lines go on ---- */

static void post(lint_run_state *s, lint_at unit, double time) {
  lint_run_proc *p = &s->proc[unit.proc];
  const lint_event *e = lint_event_at(s->t, unit);
  p->state[unit.event].seen = time;
  if (e->op == LINT_OP_BATCH) {
    p->state[unit.event].left = e->link;
    for (uint32_t i = 1; i <= e->link; i++) p->state[unit.event + i].seen = time;
  }
  const lint_queue *q = lint_queue_of(s, unit);
  if (!q) plan_start(s, unit, time);
  else if (q->unit[q->head] == unit.event) plan_start(s, unit, time > q->free ? time : q->free);
}

static void wait_on(lint_run_state *s, uint32_t *first, lint_line *l) {
  l->waits = *first;
  *first = (uint32_t)(l - s->line) + 1;
}

double lint_cost_of(const lint_program *g, const lint_event *e) {
  if (e->extra && g->extra[e->extra].cost >= 0) return g->extra[e->extra].cost;
  if (e->op == LINT_OP_B) return 2;
  return e->op == LINT_OP_F || e->op == LINT_OP_I || e->op == LINT_OP_W ? 1 : 0;
}

/* A line may go past a wait for another stream when that has passed all that stands before it. */
static bool pass_stream_wait(lint_run_state *s, lint_line *l, uint32_t i, const lint_event *e) {
  if (!has_queues(s)) return true;
  const lint_run_proc *p = &s->proc[l->proc];
  for (uint32_t k = 0; k < p->n_lines; k++) {
    lint_line *on = &s->line[p->first_line + k];
    if (on->stream != e->link || on == l) continue;
    const uint32_t next = lint_line_event(s, on);
    if (next < i) {
      wait_on(s, &on->waiters, l);
      return false;
    }
    /* The last that it passed before `i`, found backwards from where it is now. */
    uint32_t at = on->at;
    while (at > 0 && p->order[at - 1] > i && s->line[p->first_line + k].end > at - 1) at--;
    const uint32_t last = at > 0 ? p->order[at - 1] : LINT_NONE;
    if (last != LINT_NONE && prog_of(s, l->proc)->event[last].stream == on->stream) {
      const lint_event *x = &prog_of(s, l->proc)->event[last];
      const double t = is_unit(x) && !x->handle ? p->state[last].done : p->state[last].seen;
      if (t > l->time) l->time = t;
    }
  }
  return true;
}

/* Returns: false where the line must wait at its event. */
static bool step(lint_run_state *s, lint_line *l) {
  const uint32_t i = lint_line_event(s, l);
  const lint_program *g = prog_of(s, l->proc);
  const lint_event *e = &g->event[i];
  lint_run_proc *p = &s->proc[l->proc];
  if (i + AHEAD < g->n) { /* lines take turns, and what is next of this one left the cache */
    __builtin_prefetch(e + AHEAD);
    __builtin_prefetch(&p->state[i + AHEAD], 1);
  }
  if (e->flags & LINT_IN_BATCH) return true; /* its batch posts it */
  if (is_unit(e)) {
    if (p->state[i].seen < 0) post(s, (lint_at){l->proc, i}, l->time);
    if (e->handle) return true;
    if (p->state[i].done < 0) {
      wait_on(s, &p->state[i].waiter, l);
      return false;
    }
    if (p->state[i].done > l->time) l->time = p->state[i].done;
    return true;
  }
  if (e->op == LINT_OP_WAIT && e->link != LINT_NONE) {
    if (p->state[e->link].done < 0) {
      wait_on(s, &p->state[e->link].waiter, l);
      return false;
    }
    if (p->state[e->link].done > l->time) l->time = p->state[e->link].done;
  } else if (e->op == LINT_OP_STREAM_WAIT && !pass_stream_wait(s, l, i, e)) {
    return false;
  }
  const double cost = lint_cost_of(g, e);
  l->time += cost + (e->flags & LINT_IMPLIED ? 0 : s->tick);
  s->busy += cost * s->t->proc[l->proc].n_ranks;
  p->state[i].seen = p->state[i].done = l->time;
  if (p->state[i].waiter) wake_all(s, &p->state[i].waiter);
  return true;
}

static void advance(lint_run_state *s, uint32_t line) {
  lint_line *l = &s->line[line];
  l->queued = false;
  while (l->at < l->end && !s->no_memory && step(s, l)) l->at++;
  if (l->time > s->makespan) s->makespan = l->time;
  wake_all(s, &l->waiters);
}

/* ---- the run ---- */

static bool prepare_proc(lint_run_state *s, uint32_t i) {
  const size_t n = prog_of(s, i)->n;
  lint_run_proc *p = &s->proc[i];
  p->state = malloc((n + 1) * sizeof *p->state);
  if (!p->state) return false;
  for (size_t k = 0; k < n; k++) p->state[k] = (lint_state){.seen = -1, .done = -1};
  return make_lines(s, i) && (!has_queues(s) || make_queues(s, i));
}

static bool prepare(lint_run_state *s) {
  s->proc = calloc(s->t->n_procs + 1, sizeof *s->proc);
  s->arrived = calloc(s->t->n_meets + 1, sizeof *s->arrived);
  s->time = calloc(s->t->n_meets + 1, sizeof *s->time);
  if (!s->proc || !s->arrived || !s->time) return false;
  for (uint32_t i = 0; i < s->t->n_procs; i++)
    if (!prepare_proc(s, i)) return false;
  for (size_t i = s->n_lines; i-- > 0;) wake(s, (uint32_t)i);
  return !s->no_memory;
}

/* Something was posted and never ended, or a line stands still. */
static bool stands_still(const lint_run_state *s) {
  for (size_t i = 0; i < s->n_lines; i++)
    if (s->line[i].at < s->line[i].end) return true;
  for (uint32_t i = 0; i < s->t->n_procs; i++) {
    const lint_program *g = prog_of(s, i);
    for (uint32_t k = 0; k < g->n; k++)
      if (is_unit(&g->event[k]) && s->proc[i].state[k].done < 0) return true;
  }
  return false;
}

iso_code lint_run_model(lint_run_state *s, iso_error *err) {
  if (!prepare(s)) return lint_no_memory(err);
  while (!s->no_memory && (s->n_ready || s->n_start)) {
    if (s->n_start) {
      const lint_start x = s->start[--s->n_start];
      start_unit(s, x.unit, x.time);
    } else {
      advance(s, s->ready[--s->n_ready]);
    }
  }
  if (s->no_memory) return lint_no_memory(err);
  s->hangs = stands_still(s);
  return ISO_OK;
}

void lint_run_fini(lint_run_state *s) {
  for (uint32_t i = 0; s->proc && i < s->t->n_procs; i++) {
    lint_run_proc *p = &s->proc[i];
    for (uint32_t k = 0; k < p->n_queues; k++) free(p->queue[k].unit);
    free(p->order);
    free(p->queue);
    free(p->state);
  }
  free(s->proc);
  free(s->line);
  free(s->arrived);
  free(s->time);
  free(s->ready);
  free(s->start);
}
