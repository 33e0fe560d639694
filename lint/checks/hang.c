/* Does it hang, and why: the runs under all progress models, and the cycle of the deciding one.
 *
 * An operation that stands still waits for another: the other side's, which has operations
 * before it there, or one that is ahead in its queue. Followed from one to the next this comes
 * back to where it was, since an operation that waits for nothing goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/checks/progress.h"

enum { MAX_HOPS = 4096, SHOWN = 12, TRIES = 12, TRY_EVENTS = 300000 };

/* `from` stands still for `awaited`, which cannot come before `next` has gone on. */
typedef struct hop {
  lint_at from, awaited, next;
} hop;

static bool same(lint_at a, lint_at b) { return a.proc == b.proc && a.event == b.event; }

/* The operation that keeps `at` back on its own rank: its line's event, or the head of its queue.
 */
static bool obstacle(const lint_run_state *s, lint_at at, lint_at *out) {
  const lint_run_proc *p = &s->proc[at.proc];
  const lint_event *e = lint_event_at(s->t, at);
  const lint_at unit = {at.proc, lint_unit_of(e, at.event)};
  if (p->state[unit.event].seen < 0) {
    const uint32_t i = lint_line_event(s, lint_line_of(s, unit));
    if (i == LINT_NONE || i == unit.event) return false;
    *out = (lint_at){at.proc, i};
    return true;
  }
  const lint_queue *q = lint_queue_of(s, unit);
  if (!q || q->head == q->n || q->unit[q->head] == unit.event) return false;
  *out = (lint_at){at.proc, q->unit[q->head]};
  return true;
}

/* The member of an operation's meeting that keeps it: one that has not started. */
static bool missing_side(const lint_run_state *s, lint_at op, lint_at *side, lint_at *before) {
  const uint32_t id = s->t->proc[op.proc].meet[op.event];
  if (id == LINT_NONE) return false;
  const lint_meet *m = &s->t->meet[id];
  for (uint32_t i = 0; i < m->n; i++) {
    *side = s->t->member[m->first + i];
    if (!same(*side, op) && obstacle(s, *side, before)) return true;
  }
  return false;
}

/* From an operation that hangs to the one that it waits for. */
static bool follow(const lint_run_state *s, lint_at at, hop *h) {
  const lint_event *e = lint_event_at(s->t, at);
  h->from = h->awaited = at;
  if (e->op == LINT_OP_WAIT && e->link != LINT_NONE) {
    at.event = e->link;
    h->awaited = at;
    e = lint_event_at(s->t, at);
  } else if (e->op == LINT_OP_STREAM_WAIT) {
    for (uint32_t k = 0; k < s->proc[at.proc].n_lines; k++) {
      const lint_line *l = &s->line[s->proc[at.proc].first_line + k];
      const uint32_t i = lint_line_event(s, l);
      if (l->stream != e->link || i == LINT_NONE) continue;
      h->next = (lint_at){at.proc, i};
      return true;
    }
    return false;
  }
  if (obstacle(s, at, &h->next)) return true;
  const lint_at unit = {at.proc, lint_unit_of(e, at.event)};
  const lint_event *u = lint_event_at(s->t, unit);
  if (u->op != LINT_OP_BATCH) return missing_side(s, unit, &h->awaited, &h->next);
  for (uint32_t i = 1; i <= u->link; i++) {
    const lint_at op = {unit.proc, unit.event + i};
    if (s->proc[op.proc].state[op.event].done < 0 && missing_side(s, op, &h->awaited, &h->next))
      return true;
  }
  return false;
}

/* Hops from a line that stands still until one comes again. Returns: the number of the cycle's, of
 * which the first is in `h`; 0 where there is none. */
static size_t find_cycle(const lint_run_state *s, hop *h) {
  for (size_t k = 0; k < s->n_lines; k++) {
    const lint_line *l = &s->line[k];
    if (l->at == l->end) continue;
    lint_at at = {l->proc, lint_line_event(s, l)};
    size_t n = 0;
    while (n < MAX_HOPS && follow(s, at, &h[n])) {
      at = h[n].next;
      for (size_t i = 0; i <= n; i++) {
        if (!same(h[i].from, at)) continue;
        memmove(h, h + i, (n + 1 - i) * sizeof *h);
        return n + 1 - i;
      }
      n++;
    }
  }
  return 0;
}

static void reverse(hop *h, size_t n) {
  for (size_t i = 0; i < n / 2; i++) {
    const hop x = h[i];
    h[i] = h[n - 1 - i];
    h[n - 1 - i] = x;
  }
}

/* It begins at its lowest rank and event. */
static void rotate(const lint_trace *t, hop *h, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; i++) {
    const lint_at a = h[i].from, b = h[best].from;
    if (t->proc[a.proc].rank < t->proc[b.proc].rank || (a.proc == b.proc && a.event < b.event))
      best = i;
  }
  reverse(h, best);
  reverse(h + best, n - best);
  reverse(h, n);
}

/* ---- one change that mends it ---- */

static bool touches(const lint_program *p, const lint_event *e, const lint_event *f) {
  if (e->handle && e->handle == f->handle) return true;
  for (size_t i = 0; i < e->n_access; i++)
    for (size_t k = 0; k < f->n_access; k++) {
      const lint_access *a = &p->access[e->access + i], *b = &p->access[f->access + k];
      if (a->buffer == b->buffer && a->at < b->end && b->at < a->end) return true;
    }
  return false;
}

/* A computation of its stage makes the value that a table's send carries; the value that a receive
 * brings is used by one. */
static bool depends(const lint_trace *t, uint32_t proc, uint32_t i, uint32_t k) {
  const lint_program *p = t->proc[proc].prog;
  const lint_event *e = &p->event[i], *f = &p->event[k];
  if (t->form != LINT_EVENTS)
    return e->stage == f->stage && e->mb == f->mb &&
           (lint_op_classify(e->op) == LINT_WORK || lint_op_classify(f->op) == LINT_WORK ||
            e->op == LINT_OP_WAIT || f->op == LINT_OP_WAIT);
  if (lint_op_classify(e->op) >= LINT_P2P && lint_op_classify(f->op) >= LINT_P2P &&
      e->op == f->op && e->group == f->group && e->peer == f->peer)
    return true; /* who meets whom would change */
  return touches(p, e, f);
}

static bool may_move(const lint_trace *t, const lint_move *m) {
  const lint_event *e = &t->proc[m->proc].prog->event[m->from];
  const lint_event *f = &t->proc[m->proc].prog->event[m->to];
  if (lint_op_classify(e->op) < LINT_P2P || (e->flags | f->flags) & LINT_IN_BATCH) return false;
  if (f->op == LINT_OP_BATCH || e->flags & LINT_IMPLIED) return false;
  const uint32_t low = m->from < m->to ? m->from : m->to;
  const uint32_t high = m->from < m->to ? m->to : m->from;
  for (uint32_t i = low; i <= high; i++)
    if (i != m->from && depends(t, m->proc, m->from, i)) return false;
  return true;
}

static iso_code try_move(const lint_check *c, const lint_move *m, lint_model model, bool *mends) {
  *mends = false;
  if (!may_move(c->t, m)) return ISO_OK;
  lint_run_state s = {.t = c->t, .model = model, .lenient = true, .move = m};
  const iso_code code = lint_run_model(&s, c->err);
  *mends = !code && !s.hangs;
  lint_run_fini(&s);
  return code;
}

/* An event that is awaited moves before the one that holds it up, or that one behind it. */
static iso_code find_mend(const lint_check *c, const hop *h, size_t n, lint_model model, char *buf,
                          size_t cap) {
  size_t events = 0;
  for (uint32_t i = 0; i < c->t->n_procs; i++) events += c->t->proc[i].prog->n;
  *buf = '\0';
  for (size_t i = 0; i < n && i < TRIES && events <= TRY_EVENTS; i++) {
    const lint_at a = h[i].awaited, b = h[i].next;
    if (a.proc != b.proc || a.event == b.event) continue;
    for (int behind = 0; behind < 2; behind++) {
      const lint_move m = {a.proc, behind ? b.event : a.event, behind ? a.event : b.event,
                           behind != 0};
      bool mends;
      const iso_code code = try_move(c, &m, model, &mends);
      if (code) return code;
      if (!mends) continue;
      char x[160], y[160];
      lint_name_of(c->t, (lint_at){m.proc, m.from}, x, sizeof x);
      lint_name_of(c->t, (lint_at){m.proc, m.to}, y, sizeof y);
      snprintf(buf, cap, "on rank %u, move %s (event %u) %s %s (event %u)", c->t->proc[m.proc].rank,
               x, lint_event_at(c->t, (lint_at){m.proc, m.from})->position,
               behind ? "behind" : "before", y,
               lint_event_at(c->t, (lint_at){m.proc, m.to})->position);
      return ISO_OK;
    }
  }
  return ISO_OK;
}

/* ---- the finding ---- */

static void describe(const lint_trace *t, const hop *h, size_t n, char *buf, size_t cap) {
  size_t at = 0;
  for (size_t i = 0; i < n && i < SHOWN && at < cap; i++) {
    char a[LINT_TEXT], b[LINT_TEXT];
    lint_where(t, h[i].from, a, sizeof a);
    lint_where(t, h[i].awaited, b, sizeof b);
    int k = snprintf(buf + at, cap - at, "%s%s waits", i ? "; " : "", a);
    at += k > 0 ? (size_t)k : 0;
    if (at >= cap) break;
    if (same(h[i].from, h[i].awaited)) k = snprintf(buf + at, cap - at, " its turn");
    else k = snprintf(buf + at, cap - at, " for %s", b);
    at += k > 0 ? (size_t)k : 0;
    lint_where(t, h[i].next, a, sizeof a);
    if (at < cap && !same(h[i].awaited, h[i].next)) {
      k = snprintf(buf + at, cap - at, ", which stands behind %s", a);
      at += k > 0 ? (size_t)k : 0;
    }
  }
  if (n > SHOWN && at < cap) snprintf(buf + at, cap - at, "; and %zu more", n - SHOWN);
}

/* Whether one of its hops is there only because two events are in the wrong order. */
static bool follows_from_disorder(const lint_check *c, const hop *h, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (lint_follows_disorder(c, h[i].from, h[(i + n - 1) % n].awaited)) return true;
  return false;
}

static iso_code report_cycle(lint_check *c, const lint_run_state *s) {
  char text[4 * LINT_TEXT], mend[LINT_TEXT];
  hop *h = malloc((MAX_HOPS + 1) * sizeof *h);
  lint_at *at = malloc((2 * MAX_HOPS + 2) * sizeof *at);
  iso_code code = h && at ? ISO_OK : lint_no_memory(c->err);
  size_t n = code ? 0 : find_cycle(s, h), k = 0;
  if (!code && n == 0) {
    /* Nothing stands in a circle, yet something stands still: an operation that nobody awaits. */
    for (size_t i = 0; k == 0 && i < s->n_lines; i++)
      if (s->line[i].at < s->line[i].end)
        at[k++] = (lint_at){s->line[i].proc, lint_line_event(s, &s->line[i])};
    code =
        lint_found(c, LINT_DEADLOCK, at, k, NULL, "it hangs under %s", lint_model_word(s->model));
  } else if (!code && follows_from_disorder(c, h, n)) {
    code = ISO_OK;
  } else if (!code) {
    rotate(c->t, h, n);
    for (size_t i = 0; i < n; i++) at[k++] = h[i].from;
    for (size_t i = 0; i < n; i++)
      if (!same(h[i].from, h[i].awaited)) at[k++] = h[i].awaited;
    describe(c->t, h, n, text, sizeof text);
    code = find_mend(c, h, n, s->model, mend, sizeof mend);
    if (!code)
      code = lint_found(c, LINT_DEADLOCK, at, k, *mend ? mend : NULL, "%s (under %s)", text,
                        lint_model_word(s->model));
    if (!code) c->finding[c->n - 1].n_cycle = n;
  }
  free(h);
  free(at);
  return code;
}

/* A hang that a missing event explains is told already. */
static iso_code run_lenient(lint_check *c, lint_model model) {
  lint_run_state s = {.t = c->t, .model = model, .lenient = true};
  iso_code code = lint_run_model(&s, c->err);
  if (!code && s.hangs) code = report_cycle(c, &s);
  lint_run_fini(&s);
  return code;
}

iso_code lint_check_progress(lint_check *c, lint_model decides) {
  iso_code code = ISO_OK;
  bool faulty = false;
  for (size_t i = 0; i < c->t->n_meets; i++) faulty |= c->t->meet[i].faulty;
  for (int m = 0; !code && m < LINT_MODELS; m++) {
    lint_run_state s = {.t = c->t, .model = (lint_model)m};
    code = lint_run_model(&s, c->err);
    if (!code) {
      c->progress[m] = s.hangs ? LINT_HANGS : LINT_RUNS;
      if (m == (int)decides) {
        c->makespan = s.hangs ? -1 : s.makespan;
        c->busy = s.busy;
        if (s.hangs) code = faulty ? run_lenient(c, decides) : report_cycle(c, &s);
      }
    }
    lint_run_fini(&s);
  }
  return code;
}
