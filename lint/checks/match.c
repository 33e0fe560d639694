/* Who meets whom: sends and receives.
 *
 * A channel holds the messages from one rank to another, in one group and with one tag; on NCCL
 * tags do not part them. The k-th send of a channel meets its k-th receive. Where a message lacks
 * its other side, the two sequences are aligned, so that one lack is one finding and not all that
 * follow. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/table.h"
#include "egraph/base/vec.h"
#include "lint/checks/align.h"
#include "lint/check.h"
#include "lint/checks/match.h"

typedef struct ends {
  uint32_t src, dst, group;
  int32_t tag, distance; /* distance: of ranks, as classes may have messages to themselves */
} ends;

typedef struct channel {
  ends ends;
  size_t n[2], first[2]; /* of sends and of receives: their number, and where they begin */
  uint32_t id;
  UT_hash_handle hh;
} channel;

typedef struct matcher {
  lint_check *c;
  channel **chan; /* in the arena */
  size_t n_chans, cap_chans;
  channel *table; /* by their ends */
  iso_arena arena;
  uint32_t *chan_of; /* of each operation, in order of procs and events */
  size_t n_ops, cap_ops;
  lint_at *at; /* by channel: its sends, then its receives */
  lint_lost *lost;
  size_t n_lost, cap_lost;
} matcher;

/* ---- channels ---- */

static bool find_channel(matcher *m, const ends *key, uint32_t *out) {
  channel *h;
  HASH_FIND(hh, m->table, key, sizeof *key, h);
  if (!h) {
    if (!iso_grow(m->chan, m->cap_chans, m->n_chans + 1) ||
        !(h = iso_arena_alloc(&m->arena, sizeof *h)))
      return false;
    *h = (channel){.ends = *key, .id = (uint32_t)m->n_chans};
    HASH_ADD(hh, m->table, ends, sizeof h->ends, h);
    if (!h->hh.tbl) return false;
    m->chan[m->n_chans++] = h;
  }
  *out = h->id;
  return true;
}

static bool tags_matter(const lint_trace *t) {
  return t->form == LINT_EVENTS && t->backend != LINT_NCCL;
}

/* A message without a channel is told; its other side, which then has none either, need not be. */
static iso_code remember(matcher *m, lint_at at, bool sends) {
  if (!iso_grow(m->lost, m->cap_lost, m->n_lost + 1)) return lint_no_memory(m->c->err);
  m->lost[m->n_lost++] = (lint_lost){.at = at,
                                     .src = sends ? at.proc : LINT_NONE,
                                     .dst = sends ? LINT_NONE : at.proc,
                                     .told = true};
  return ISO_OK;
}

/* The channel of an operation. Returns: false where it has none, which is a finding. */
static iso_code place(matcher *m, lint_at at, bool *has) {
  const lint_trace *t = m->c->t;
  const lint_proc *p = &t->proc[at.proc];
  const lint_event *e = &p->prog->event[at.event];
  const int64_t peer = lint_peer_rank(t, p, e->peer);
  char where[LINT_TEXT];
  uint32_t id;
  *has = false;
  if (peer < 0) {
    lint_where(t, at, where, sizeof where);
    iso_code c = lint_found(m->c, LINT_OUT_OF_RANGE, &at, 1, NULL,
                            "%s has a peer outside of the world", where);
    if (!c) c = lint_meeting(m->c, &at, 1, true);
    return c ? c : remember(m, at, e->op == LINT_OP_SEND);
  }
  const uint32_t g = lint_group_of(p, e);
  if (g == LINT_NONE) {
    lint_where(t, at, where, sizeof where);
    iso_code c = lint_found(m->c, LINT_GROUP_MISMATCH, &at, 1, NULL,
                            "%s uses a group of which its rank is no member", where);
    if (!c) c = lint_meeting(m->c, &at, 1, true);
    return c ? c : remember(m, at, e->op == LINT_OP_SEND);
  }
  const bool sends = e->op == LINT_OP_SEND, shares = t->n_procs < t->n_ranks;
  const uint32_t other = t->proc_of[peer];
  const ends key = {.src = sends ? at.proc : other,
                    .dst = sends ? other : at.proc,
                    .group = g,
                    .tag = tags_matter(t) ? e->tag : 0,
                    .distance = shares ? (int32_t)(sends ? lint_distance(t, p->rank, peer)
                                                         : lint_distance(t, peer, p->rank))
                                       : 0};
  if (!find_channel(m, &key, &id) || !iso_grow(m->chan_of, m->cap_ops, m->n_ops + 1))
    return lint_no_memory(m->c->err);
  m->chan[id]->n[!sends]++;
  m->chan_of[m->n_ops++] = id;
  *has = true;
  return ISO_OK;
}

/* An operation that an earlier check has not settled. */
static bool is_open(const lint_proc *p, uint32_t i) {
  return lint_op_classify(p->prog->event[i].op) == LINT_P2P && p->meet[i] == LINT_NONE;
}

static iso_code collect(matcher *m) {
  const lint_trace *t = m->c->t;
  for (uint32_t p = 0; p < t->n_procs; p++)
    for (uint32_t i = 0; i < t->proc[p].prog->n; i++) {
      bool has = false;
      if (!is_open(&t->proc[p], i)) continue;
      const iso_code c = place(m, (lint_at){p, i}, &has);
      if (c) return c;
    }
  if (!(m->at = malloc((m->n_ops + 1) * sizeof *m->at))) return lint_no_memory(m->c->err);
  size_t at = 0;
  for (size_t i = 0; i < m->n_chans; i++)
    for (int k = 0; k < 2; k++) {
      m->chan[i]->first[k] = at;
      at += m->chan[i]->n[k];
      m->chan[i]->n[k] = 0;
    }
  size_t op = 0;
  for (uint32_t p = 0; p < t->n_procs; p++)
    for (uint32_t i = 0; i < t->proc[p].prog->n; i++) {
      if (!is_open(&t->proc[p], i)) continue;
      channel *h = m->chan[m->chan_of[op++]];
      const int k = t->proc[p].prog->event[i].op != LINT_OP_SEND;
      m->at[h->first[k] + h->n[k]++] = (lint_at){p, i};
    }
  return ISO_OK;
}

/* ---- does a send fit a receive? ---- */

/* The value that a message is said to carry: that which a send "needs" or a receive "makes"; else
 * the one that its neighbours on its rank declare (values.c). */
static uint32_t message_value(const lint_proc *p, const lint_event *e) {
  const lint_access_kind kind = e->op == LINT_OP_SEND ? LINT_NEEDS : LINT_MAKES;
  for (size_t i = 0; i < e->n_access; i++)
    if (p->prog->access[e->access + i].kind == kind) return p->prog->access[e->access + i].value;
  return p->prog->hint ? p->prog->hint[e - p->prog->event] : 0;
}

static bool both_differ(int64_t a, int64_t b, int64_t unknown) {
  return a != unknown && b != unknown && a != b;
}

/* Returns: LINT_KINDS where they fit. */
static lint_kind misfit(const lint_trace *t, lint_at s, lint_at r) {
  const lint_event *a = lint_event_at(t, s), *b = lint_event_at(t, r);
  if (t->form != LINT_EVENTS) {
    const bool fits =
        a->tag == b->tag && a->mb == b->mb && b->stage == (a->tag ? a->stage - 1 : a->stage + 1);
    return fits ? LINT_KINDS : LINT_VALUE_MISMATCH;
  }
  const int64_t received = b->out_numel >= 0 ? b->out_numel : b->numel;
  if (both_differ(a->numel, received, -1)) return LINT_SIZE_MISMATCH;
  if (both_differ(a->dtype, b->dtype, 0)) return LINT_DTYPE_MISMATCH;
  const uint32_t v = message_value(&t->proc[s.proc], a), w = message_value(&t->proc[r.proc], b);
  if (both_differ(v, w, 0) || both_differ(a->mb, b->mb, LINT_NO_INDEX)) return LINT_VALUE_MISMATCH;
  return LINT_KINDS;
}

typedef struct sides {
  const lint_trace *t;
  const lint_at *send, *recv;
} sides;

static bool fits(const void *with, size_t i, size_t k) {
  const sides *s = with;
  return misfit(s->t, s->send[i], s->recv[k]) == LINT_KINDS;
}

/* ---- what does not fit ---- */

static const char *difference(const lint_trace *t, lint_at s, lint_at r, lint_kind k, char *buf,
                              size_t cap) {
  const lint_event *a = lint_event_at(t, s), *b = lint_event_at(t, r);
  if (k == LINT_SIZE_MISMATCH)
    snprintf(buf, cap, "%" PRId64 " elements are sent and %" PRId64 " received", a->numel,
             b->out_numel >= 0 ? b->out_numel : b->numel);
  else if (k == LINT_DTYPE_MISMATCH)
    snprintf(buf, cap, "%s is sent and %s received", lint_text(t, a->dtype),
             lint_text(t, b->dtype));
  else if (t->form != LINT_EVENTS) snprintf(buf, cap, "messages of one peer come in order");
  else if (both_differ(a->mb, b->mb, LINT_NO_INDEX))
    snprintf(buf, cap, "microbatch %d is sent and %d expected", a->mb, b->mb);
  else
    snprintf(buf, cap, "%s is sent and %s expected",
             lint_text(t, message_value(&t->proc[s.proc], a)),
             lint_text(t, message_value(&t->proc[r.proc], b)));
  return buf;
}

/* The reader of a receive's buffer, where its value is known only from this reader's "needs". */
static lint_at reader_of(const lint_trace *t, lint_at r) {
  const lint_program *p = t->proc[r.proc].prog;
  const uint32_t value = p->hint ? p->hint[r.event] : 0;
  lint_at at = {r.proc, r.event + 1};
  for (; value && at.event < p->n; at.event++) {
    const lint_event *e = &p->event[at.event];
    for (uint32_t i = 0; i < e->n_access; i++)
      if (p->access[e->access + i].kind == LINT_NEEDS && p->access[e->access + i].value == value)
        return at;
  }
  return (lint_at){r.proc, LINT_NONE};
}

static iso_code report_pair(matcher *m, lint_at s, lint_at r, lint_kind k, const char *mend) {
  char a[LINT_TEXT], b[LINT_TEXT], why[LINT_TEXT];
  const lint_at none = {r.proc, LINT_NONE};
  const lint_at at[3] = {r, s, k == LINT_VALUE_MISMATCH ? reader_of(m->c->t, r) : none};
  lint_where(m->c->t, r, a, sizeof a);
  lint_where(m->c->t, s, b, sizeof b);
  difference(m->c->t, s, r, k, why, sizeof why);
  return lint_found(m->c, k, at, 3, mend, "%s receives what %s sends: %s", a, b, why);
}

/* Pairs that do not fit, of one channel. Where they would fit in another order, that is one fault.
 */
static iso_code report_misfits(matcher *m, const lint_at *pair, size_t n) {
  const lint_trace *t = m->c->t;
  enum { MANY = 256 };
  for (size_t i = 0; i < 2 * n; i++)
    if (lint_is_disordered(m->c, pair[i])) return ISO_OK;
  bool permuted = n > 1 && n <= MANY;
  bool used[MANY] = {false};
  size_t partner = 0;
  for (size_t i = 0; permuted && i < n; i++) {
    size_t k = 0;
    while (k < n && (used[k] || misfit(t, pair[2 * i], pair[2 * k + 1]) != LINT_KINDS)) k++;
    permuted = k < n;
    if (!permuted) break;
    used[k] = true;
    if (i == 0) partner = k;
  }
  iso_code c = ISO_OK;
  if (permuted || n > MANY) {
    char mend[LINT_TEXT] = "", a[200], b[200];
    lint_where(t, pair[1], a, sizeof a);
    lint_where(t, pair[2 * partner + 1], b, sizeof b);
    if (n == 2) snprintf(mend, sizeof mend, "exchange %s and %s", a, b);
    return report_pair(m, pair[0], pair[1], misfit(t, pair[0], pair[1]), *mend ? mend : NULL);
  }
  for (size_t i = 0; !c && i < n; i++)
    c = report_pair(m, pair[2 * i], pair[2 * i + 1], misfit(t, pair[2 * i], pair[2 * i + 1]), NULL);
  return c;
}

static iso_code lose(matcher *m, lint_at at, const channel *h) {
  if (!iso_grow(m->lost, m->cap_lost, m->n_lost + 1)) return lint_no_memory(m->c->err);
  m->lost[m->n_lost++] = (lint_lost){
      .at = at, .src = h->ends.src, .dst = h->ends.dst, .group = h->ends.group, .tag = h->ends.tag};
  return lint_meeting(m->c, &at, 1, true);
}

static int by_number(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* NCCL has no tags. Where those of a channel would pair its messages in another order than that in
 * which they come, each receive gets what was meant for another one. */
static iso_code report_crossed(matcher *m, const channel *h) {
  const lint_trace *t = m->c->t;
  const lint_at *send = m->at + h->first[0], *recv = m->at + h->first[1];
  const size_t n = h->n[0];
  size_t n_crossed = 0, first = 0;
  if (t->form != LINT_EVENTS || tags_matter(t) || n != h->n[1]) return ISO_OK;
  int32_t *tag[2] = {malloc(n * sizeof **tag), malloc(n * sizeof **tag)};
  iso_code c = tag[0] && tag[1] ? ISO_OK : lint_no_memory(m->c->err);
  for (size_t i = 0; !c && i < n; i++) {
    const int32_t sent = lint_event_at(t, send[i])->tag, due = lint_event_at(t, recv[i])->tag;
    if (sent == due) continue;
    if (n_crossed == 0) first = i;
    tag[0][n_crossed] = sent;
    tag[1][n_crossed++] = due;
  }
  for (int k = 0; !c && n_crossed && k < 2; k++)
    qsort(tag[k], n_crossed, sizeof *tag[k], by_number);
  if (!c && n_crossed && memcmp(tag[0], tag[1], n_crossed * sizeof **tag) == 0) {
    const lint_at at[2] = {recv[first], send[first]};
    char a[LINT_TEXT], b[LINT_TEXT];
    lint_where(t, at[0], a, sizeof a);
    lint_where(t, at[1], b, sizeof b);
    c = lint_found(m->c, LINT_TAG_MISMATCH, at, 2, NULL,
                   "%s has tag %d and receives what %s sends with tag %d: on NCCL messages come in "
                   "order, whatever their tags",
                   a, lint_event_at(t, at[0])->tag, b, lint_event_at(t, at[1])->tag);
  }
  free(tag[0]);
  free(tag[1]);
  return c;
}

static iso_code match_channel(matcher *m, const channel *h) {
  const sides s = {m->c->t, m->at + h->first[0], m->at + h->first[1]};
  const size_t left = h->n[0], right = h->n[1];
  lint_at *wrong = NULL;
  size_t n_wrong = 0, cap = 0, i = 0, k = 0;
  iso_code c = ISO_OK;
  while (!c && (i < left || k < right)) {
    /* As many on both sides: nothing is missing, even if some do not fit. */
    const lint_side side = left == right ? LINT_BOTH : lint_align(fits, &s, i, left, k, right);
    if (side == LINT_LEFT_ONLY) {
      c = lose(m, s.send[i++], h);
    } else if (side == LINT_RIGHT_ONLY) {
      c = lose(m, s.recv[k++], h);
    } else {
      const lint_at pair[2] = {s.send[i], s.recv[k]};
      c = lint_meeting(m->c, pair, 2, false);
      if (!c && !fits(&s, i, k)) {
        if (!iso_grow(wrong, cap, n_wrong + 2)) c = lint_no_memory(m->c->err);
        else wrong[n_wrong++] = pair[0], wrong[n_wrong++] = pair[1];
      }
      i++, k++;
    }
  }
  if (!c) c = n_wrong ? report_misfits(m, wrong, n_wrong / 2) : report_crossed(m, h);
  free(wrong);
  return c;
}

iso_code lint_match_messages(lint_check *c) {
  matcher m = {.c = c};
  iso_code code = collect(&m);
  for (size_t i = 0; !code && i < m.n_chans; i++) code = match_channel(&m, m.chan[i]);
  if (!code) code = lint_report_lost(c, m.lost, m.n_lost);
  free(m.chan);
  HASH_CLEAR(hh, m.table);
  iso_arena_fini(&m.arena);
  free(m.chan_of);
  free(m.at);
  free(m.lost);
  return code;
}
