/* The messages of a table: a result that another rank needs is sent once, behind its computation,
 * and received once, before the computation that needs it.
 *
 * Here too the waits that torch's runtime does by itself are tied to their receives. */
#include <inttypes.h>
#include <stdio.h>

#include "lint/pipeline/schedule.h"

/* A message from stage `from` to stage `to`. */
typedef struct edge {
  int64_t from, to, mb;
  lint_at producer, consumer, send, recv;
} edge;

static edge edge_of(const lint_pipeline *p, int64_t from, int64_t mb, bool backward) {
  edge x = {.from = from, .to = backward ? from - 1 : from + 1, .mb = mb};
  const lint_cell *a = lint_cell_of(p, x.from, mb), *b = lint_cell_of(p, x.to, mb);
  x.producer = backward ? lint_backward(a) : a->at[LINT_SLOT_F];
  x.consumer = backward ? lint_backward(b) : b->at[LINT_SLOT_F];
  x.send = a->at[backward ? LINT_SEND_B : LINT_SEND_F];
  x.recv = b->at[backward ? LINT_RECV_B : LINT_RECV_F];
  return x;
}

static iso_code drop(lint_pipeline *p, lint_at at) {
  if (!lint_has(at) || p->c->t->proc[at.proc].meet[at.event] != LINT_NONE) return ISO_OK;
  return lint_meeting(p->c, &at, 1, true);
}

static iso_code drop_both(lint_pipeline *p, const edge *x) {
  const iso_code c = drop(p, x->send);
  return c ? c : drop(p, x->recv);
}

/* Returns: "1RECV_F0", as it would be called. */
static const char *wanted(const edge *x, bool sends, char *buf, size_t cap) {
  snprintf(buf, cap, "%" PRId64 "%s_%s%" PRId64, sends ? x->from : x->to, sends ? "SEND" : "RECV",
           x->to > x->from ? "F" : "B", x->mb);
  return buf;
}

/* A side of the message is not there. It is shown at the computation beside which it belongs. */
static iso_code one_side(lint_pipeline *p, const edge *x, bool send_missing) {
  const lint_trace *t = p->c->t;
  char a[LINT_TEXT], b[LINT_TEXT], name[64], mend[LINT_TEXT];
  const lint_at beside = send_missing ? x->producer : x->consumer;
  const lint_at other = send_missing ? x->recv : x->send;
  const lint_at at[2] = {beside, lint_has(other) ? other : x->producer};
  lint_where(t, beside, a, sizeof a);
  lint_where(t, at[1], b, sizeof b);
  wanted(x, send_missing, name, sizeof name);
  snprintf(mend, sizeof mend, "on rank %u, insert %s %s event %u", t->proc[beside.proc].rank, name,
           send_missing ? "behind" : "before", lint_event_at(t, beside)->position);
  const iso_code c = drop_both(p, x);
  if (c) return c;
  if (!lint_has(other))
    return lint_found(p->c, LINT_MISSING_COMM, at, 2, NULL, "nothing brings %s the result of %s", a,
                      b);
  return lint_found(p->c, LINT_MISSING_COMM, at, 2, mend,
                    "%s is missing at %s; its other side is %s", name, a, b);
}

static iso_code in_place(lint_pipeline *p, const edge *x) {
  char a[LINT_TEXT], b[LINT_TEXT];
  iso_code c = ISO_OK;
  if (x->recv.proc == x->consumer.proc && x->recv.event > x->consumer.event &&
      !lint_is_disordered(p->c, x->consumer)) {
    const lint_at at[2] = {x->recv, x->consumer};
    lint_where(p->c->t, at[0], a, sizeof a);
    lint_where(p->c->t, at[1], b, sizeof b);
    if ((c = lint_disordered(p->c, at[0], at[1]))) return c;
    c = lint_found(p->c, LINT_WAIT_BEFORE_POST, at, 2, "post it before",
                   "%s comes behind %s, which waits for it", a, b);
  }
  if (!c && x->send.proc == x->producer.proc && x->send.event < x->producer.event &&
      !lint_is_disordered(p->c, x->producer)) {
    const lint_at at[2] = {x->send, x->producer};
    lint_where(p->c->t, at[0], a, sizeof a);
    lint_where(p->c->t, at[1], b, sizeof b);
    if ((c = lint_disordered(p->c, at[0], at[1]))) return c;
    c = lint_found(p->c, LINT_VALUE_MISMATCH, at, 2, "send it behind",
                   "%s sends what %s has not computed yet", a, b);
  }
  return c;
}

/* A stage's neighbour on its own rank gets its result without a message. */
static iso_code needless(lint_pipeline *p, const edge *x) {
  const lint_at at[2] = {lint_has(x->send) ? x->send : x->recv, x->recv};
  if (!lint_has(at[0])) return ISO_OK;
  char a[LINT_TEXT];
  lint_where(p->c->t, at[0], a, sizeof a);
  const iso_code c = drop_both(p, x);
  if (c) return c;
  return lint_found(p->c, LINT_DUPLICATE_COMM, at, lint_has(x->send) && lint_has(x->recv) ? 2 : 1,
                    "remove it", "%s is needless: both stages are on this rank", a);
}

static iso_code check_edge(lint_pipeline *p, const edge *x) {
  const uint32_t from = p->owner[x->from], to = p->owner[x->to];
  if (from == LINT_NONE || to == LINT_NONE || !lint_has(x->producer) || !lint_has(x->consumer) ||
      x->producer.proc != from || x->consumer.proc != to ||
      (lint_has(x->send) && x->send.proc != from) || (lint_has(x->recv) && x->recv.proc != to))
    return drop_both(p, x); /* what is wrong was told */
  if (from == to) return needless(p, x);
  if (!lint_has(x->send)) return one_side(p, x, true);
  if (!lint_has(x->recv)) return one_side(p, x, false);
  return in_place(p, x);
}

/* A table of computations alone: its messages stand for dependencies, and are matched by the tensor
 * that they carry. */
static iso_code tie_implied(lint_pipeline *p, lint_at at, const lint_event *e) {
  const bool backward = e->tag != 0;
  const edge x = edge_of(p, e->stage, e->mb, backward);
  if (!lint_has(x.consumer) || !lint_has(x.producer) || x.producer.proc != at.proc)
    return lint_meeting(p->c, &at, 1, true);
  const lint_at recv = {x.consumer.proc, x.consumer.event - 1};
  const lint_event *r = lint_event_at(p->c->t, recv);
  if (x.consumer.event == 0 || r->op != LINT_OP_RECV || !(r->flags & LINT_IMPLIED) ||
      p->c->t->proc[recv.proc].meet[recv.event] != LINT_NONE || at.event != x.producer.event + 1)
    return lint_meeting(p->c, &at, 1, true);
  const lint_at both[2] = {at, recv};
  return lint_meeting(p->c, both, 2, false);
}

/* The wait before a computation: for its receive, or for a computation of its own rank. */
static void tie_wait(const lint_pipeline *p, lint_at at, lint_event *e) {
  const bool backward = e->tag != 0;
  const int64_t from = backward ? e->stage + 1 : e->stage - 1;
  if (from < 0 || from >= p->c->t->stages) return;
  const edge x = edge_of(p, from, e->mb, backward);
  if (lint_has(x.recv) && x.recv.proc == at.proc && x.recv.event < at.event) e->link = x.recv.event;
  else if (lint_has(x.producer) && x.producer.proc == at.proc) e->link = x.producer.event;
}

static iso_code tie(lint_pipeline *p, bool receives) {
  lint_trace *t = p->c->t;
  iso_code c = ISO_OK;
  for (size_t i = 0; !c && i < p->n_procs; i++)
    for (uint32_t k = 0; !c && k < t->proc[p->proc[i]].prog->n; k++) {
      lint_event *e = &t->program[t->run_by[p->proc[i]]].event[k];
      const lint_at at = {p->proc[i], k};
      if (!(e->flags & LINT_IMPLIED) || e->stage >= t->stages || e->mb >= t->microbatches) {
        if (e->flags & LINT_IMPLIED && receives && e->op != LINT_OP_WAIT) c = drop(p, at);
      } else if (receives) {
        if (e->op == LINT_OP_RECV) c = drop(p, at); /* nobody sends what it stands for */
      } else if (e->op == LINT_OP_WAIT) {
        tie_wait(p, at, e);
      } else if (e->op == LINT_OP_SEND) {
        c = tie_implied(p, at, e);
      }
    }
  return c;
}

iso_code lint_check_table_messages(lint_pipeline *p) {
  const lint_trace *t = p->c->t;
  iso_code c = tie(p, false);
  if (!c) c = tie(p, true);
  if (c || t->form == LINT_TABLE) return c;
  for (int64_t s = 0; !c && s < t->stages; s++)
    for (int64_t m = 0; !c && m < t->microbatches; m++) {
      const lint_cell *x = lint_cell_of(p, s, m);
      if (s + 1 < t->stages) {
        const edge e = edge_of(p, s, m, false);
        c = check_edge(p, &e);
      }
      if (!c && s > 0 && p->has_backward) {
        const edge e = edge_of(p, s, m, true);
        c = check_edge(p, &e);
      }
      const lint_at odd[4] = {s + 1 == t->stages ? x->at[LINT_SEND_F] : (lint_at){0, LINT_NONE},
                              s + 1 == t->stages ? x->at[LINT_RECV_B] : (lint_at){0, LINT_NONE},
                              s == 0 ? x->at[LINT_RECV_F] : (lint_at){0, LINT_NONE},
                              s == 0 ? x->at[LINT_SEND_B] : (lint_at){0, LINT_NONE}};
      for (int i = 0; !c && i < 4; i++) {
        char a[LINT_TEXT];
        if (!lint_has(odd[i])) continue;
        lint_where(t, odd[i], a, sizeof a);
        c = drop(p, odd[i]);
        if (!c)
          c = lint_found(p->c, LINT_OUT_OF_RANGE, &odd[i], 1, "remove it",
                         "%s: there is no stage on its other side", a);
      }
    }
  return c;
}
