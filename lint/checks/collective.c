/* Collectives: the k-th of a group on one rank meets the k-th on every other.
 *
 * Where members do not agree, the sequence that most of them have is taken as meant, and the others
 * are aligned with it: each collective that one lacks, has too many, or calls differently is a
 * finding. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/checks/align.h"
#include "lint/checks/collective.h"

/* The collectives of one member of a group, in order. */
typedef struct queue {
  lint_at *at;
  size_t n, next;
  bool swapped; /* the next one was told with the one before it */
} queue;

typedef struct meeting {
  lint_check *c;
  const lint_group *g;
  queue *q;       /* of each member */
  bool strict;    /* the lengths differ, so that names help to align */
  lint_at *there; /* scratch: who takes part */
  lint_collective_lost *lost;
} meeting;

/* ---- do two fit? ---- */

static const lint_extra *extra_of(const lint_trace *t, lint_at at) {
  const lint_event *e = lint_event_at(t, at);
  return e->extra ? &t->proc[at.proc].prog->extra[e->extra] : NULL;
}

static bool differ(int64_t a, int64_t b, int64_t unknown) {
  return a != unknown && b != unknown && a != b;
}

/* Members of these may have parts of different sizes. */
static bool may_be_uneven(const lint_trace *t, lint_at at) {
  const lint_op op = lint_event_at(t, at)->op;
  const lint_extra *x = extra_of(t, at);
  return op == LINT_OP_ALL_TO_ALL || op == LINT_OP_GATHER || op == LINT_OP_SCATTER ||
         (x && (x->n_in != LINT_NONE || x->n_out != LINT_NONE));
}

lint_kind lint_collective_misfit(const lint_trace *t, lint_at s, lint_at r) {
  const lint_event *a = lint_event_at(t, s), *b = lint_event_at(t, r);
  if (a->op != b->op) return LINT_COLLECTIVE_MISMATCH;
  if (differ(a->reduce, b->reduce, 0)) return LINT_REDUCE_MISMATCH;
  const lint_extra *x = extra_of(t, s), *y = extra_of(t, r);
  if (x && y && differ(x->root, y->root, -1)) return LINT_ROOT_MISMATCH;
  if (differ(a->dtype, b->dtype, 0)) return LINT_DTYPE_MISMATCH;
  if (may_be_uneven(t, s) || may_be_uneven(t, r)) return LINT_KINDS;
  if (differ(a->numel, b->numel, -1)) return LINT_SIZE_MISMATCH;
  /* Results of inputs that agree are held against these (sizes.c). */
  const bool known = a->numel >= 0 && b->numel >= 0;
  return !known && differ(a->out_numel, b->out_numel, -1) ? LINT_SIZE_MISMATCH : LINT_KINDS;
}

static uint32_t buffer_of(const lint_trace *t, lint_at at) {
  const lint_event *e = lint_event_at(t, at);
  return e->n_access ? t->proc[at.proc].prog->access[e->access].buffer : 0;
}

/* Names do not have to agree, but calls of one name belong together. */
static bool same_names(const lint_trace *t, lint_at s, lint_at r) {
  const lint_extra *x = extra_of(t, s), *y = extra_of(t, r);
  if (differ(buffer_of(t, s), buffer_of(t, r), 0)) return false;
  return !x || !y || (!differ(x->name, y->name, 0) && !differ(x->source, y->source, 0));
}

typedef struct pair {
  const lint_trace *t;
  const queue *left, *right;
  bool strict;
} pair;

static bool fits(const void *with, size_t i, size_t k) {
  const pair *p = with;
  const lint_at a = p->left->at[i], b = p->right->at[k];
  return lint_collective_misfit(p->t, a, b) == LINT_KINDS && (!p->strict || same_names(p->t, a, b));
}

/* ---- one meeting ---- */

/* The member whose next collective most of the others have too (Boyer and Moore's vote). */
static size_t reference(const meeting *m) {
  size_t best = SIZE_MAX, votes = 0;
  for (size_t i = 0; i < m->g->n; i++) {
    const queue *q = &m->q[i];
    if (q->next == q->n) continue;
    if (votes == 0) best = i, votes = 1;
    else {
      const pair p = {m->c->t, &m->q[best], q, m->strict};
      if (fits(&p, m->q[best].next, q->next)) votes++;
      else votes--;
    }
  }
  if (best == SIZE_MAX) return best;
  /* The lowest rank that does so too; without a majority, the lowest. */
  for (size_t i = 0; i < m->g->n; i++) {
    const pair p = {m->c->t, &m->q[best], &m->q[i], m->strict};
    if (m->q[i].next < m->q[i].n && (!votes || fits(&p, m->q[best].next, m->q[i].next))) return i;
  }
  return best;
}

static iso_code tell_misfit(meeting *m, lint_at wrong, lint_at meant, lint_kind k, bool swapped) {
  char a[LINT_TEXT], b[LINT_TEXT], why[2 * LINT_TEXT];
  const lint_trace *t = m->c->t;
  const lint_event *x = lint_event_at(t, wrong), *y = lint_event_at(t, meant);
  const lint_extra *ex = extra_of(t, wrong), *ey = extra_of(t, meant);
  lint_where(t, wrong, a, sizeof a);
  lint_where(t, meant, b, sizeof b);
  const lint_at at[2] = {wrong, meant};
  switch (k) {
  case LINT_REDUCE_MISMATCH:
    snprintf(why, sizeof why, "%s and %s", lint_text(t, x->reduce), lint_text(t, y->reduce));
    break;
  case LINT_ROOT_MISMATCH:
    snprintf(why, sizeof why, "root %" PRId64 " and root %" PRId64, ex->root, ey->root);
    break;
  case LINT_DTYPE_MISMATCH:
    snprintf(why, sizeof why, "%s and %s", lint_text(t, x->dtype), lint_text(t, y->dtype));
    break;
  case LINT_SIZE_MISMATCH:
    if (x->numel != y->numel)
      snprintf(why, sizeof why, "%" PRId64 " and %" PRId64 " elements", x->numel, y->numel);
    else
      snprintf(why, sizeof why, "results of %" PRId64 " and %" PRId64 " elements", x->out_numel,
               y->out_numel);
    break;
  default: snprintf(why, sizeof why, "%s and %s", lint_op_word(x->op), lint_op_word(y->op));
  }
  return lint_found(m->c, k, at, 2, swapped ? "exchange it with the group's next collective" : NULL,
                    "%s meets %s: %s", a, b, why);
}

/* Whether this member has its next two in the other order. */
static bool is_swapped(const meeting *m, const queue *ref, const queue *q) {
  const pair p = {m->c->t, ref, q, m->strict};
  return ref->next + 1 < ref->n && q->next + 1 < q->n && fits(&p, ref->next, q->next + 1) &&
         fits(&p, ref->next + 1, q->next);
}

/* Bring member `i` to the reference's next collective. `takes_part`: it has one for it. */
static iso_code advance(meeting *m, size_t r, size_t i, bool *takes_part, bool *faulty) {
  queue *ref = &m->q[r], *q = &m->q[i];
  const pair p = {m->c->t, ref, q, m->strict};
  *takes_part = true;
  if (q->swapped) {
    q->swapped = false;
    *faulty = true;
    return ISO_OK;
  }
  for (;;) {
    const bool swapped = q->next < q->n && !fits(&p, ref->next, q->next) && is_swapped(m, ref, q);
    const lint_side side =
        swapped ? LINT_BOTH : lint_align(fits, &p, ref->next, ref->n, q->next, q->n);
    if (side == LINT_LEFT_ONLY) {
      *takes_part = false;
      *faulty = true;
      return lint_collective_lose(m->lost, ref->at[ref->next], m->g->member[i], true);
    }
    if (side == LINT_BOTH) {
      const lint_kind k = lint_collective_misfit(p.t, ref->at[ref->next], q->at[q->next]);
      if (k == LINT_KINDS) return ISO_OK;
      q->swapped = swapped;
      *faulty |= k == LINT_COLLECTIVE_MISMATCH;
      lint_kind own;
      if (k == LINT_SIZE_MISMATCH && (lint_own_fault(p.t, m->g, ref->at[ref->next], &own) ||
                                      lint_own_fault(p.t, m->g, q->at[q->next], &own)))
        return ISO_OK; /* told of the one that is wrong by itself */
      return tell_misfit(m, q->at[q->next], ref->at[ref->next], k, swapped);
    }
    const lint_at extra = q->at[q->next++];
    iso_code c = lint_meeting(m->c, &extra, 1, true);
    /* Of two members, one has it too often or the other too seldom: nobody knows. */
    const bool two = m->g->n == 2;
    if (!c) c = lint_collective_lose(m->lost, extra, m->g->member[two ? r : i], two);
    if (c) return c;
  }
}

/* Everybody's next one fits: the usual case. */
static bool all_fit(const meeting *m) {
  const queue *first = &m->q[0];
  if (first->next == first->n || first->swapped) return false;
  for (size_t i = 1; i < m->g->n; i++) {
    const pair p = {m->c->t, first, &m->q[i], m->strict};
    if (m->q[i].next == m->q[i].n || m->q[i].swapped || !fits(&p, first->next, m->q[i].next))
      return false;
  }
  return true;
}

static iso_code meet(meeting *m, size_t n, bool faulty) {
  iso_code c = lint_meeting(m->c, m->there, n, faulty);
  if (!c && !faulty) c = lint_check_sizes(m->c, m->g, m->there, n);
  return c;
}

static iso_code match_group(meeting *m) {
  for (;;) {
    size_t n = 0;
    bool faulty = false;
    iso_code c = ISO_OK;
    if (all_fit(m)) {
      for (; n < m->g->n; n++) m->there[n] = m->q[n].at[m->q[n].next++];
      if ((c = meet(m, n, false))) return c;
      continue;
    }
    const size_t r = reference(m);
    if (r == SIZE_MAX) return ISO_OK;
    const lint_at own = m->q[r].at[m->q[r].next];
    m->q[r].swapped = false;
    for (size_t i = 0; !c && i < m->g->n; i++) {
      bool takes_part = true;
      if (i != r) c = advance(m, r, i, &takes_part, &faulty);
      if (!c && takes_part) m->there[n++] = i == r ? own : m->q[i].at[m->q[i].next++];
    }
    m->q[r].next++;
    if (!c) c = meet(m, n, faulty);
    if (c) return c;
  }
}

/* ---- the groups ---- */

/* The place of a proc among a group's members. */
static size_t member_index(const lint_group *g, uint32_t proc) {
  size_t low = 0, high = g->n;
  while (high - low > 1) {
    const size_t mid = (low + high) / 2;
    if (g->member[mid] <= proc) low = mid;
    else high = mid;
  }
  return low;
}

typedef struct sorter {
  lint_check *c;
  size_t *first; /* of each group: its first queue */
  queue *q;
  size_t n_queues;
  lint_at *at;
  lint_collective_lost *lost;
} sorter;

/* Calls that a rank makes in a group of others are findings here. */
static iso_code each(sorter *s, bool fill) {
  const lint_trace *t = s->c->t;
  for (uint32_t p = 0; p < t->n_procs; p++)
    for (uint32_t i = 0; i < t->proc[p].prog->n; i++) {
      const lint_event *e = &t->proc[p].prog->event[i];
      if (lint_op_classify(e->op) != LINT_COLLECTIVE || t->proc[p].meet[i] != LINT_NONE) continue;
      const uint32_t g = lint_group_of(&t->proc[p], e);
      const lint_at at = {p, i};
      if (g == LINT_NONE) {
        iso_code c = lint_meeting(s->c, &at, 1, true);
        if (!c) c = lint_collective_lose(s->lost, at, p, false);
        if (!c) s->lost->item[s->lost->n - 1].outside = true;
        if (c) return c;
        continue;
      }
      queue *q = &s->q[s->first[g] + member_index(&t->group[g], p)];
      if (fill) q->at[q->n] = at;
      q->n++;
    }
  return ISO_OK;
}

static iso_code sort_collectives(sorter *s) {
  const lint_trace *t = s->c->t;
  s->first = malloc((t->n_groups + 1) * sizeof *s->first);
  for (size_t i = 0; s->first && i < t->n_groups; i++) {
    s->first[i] = s->n_queues;
    s->n_queues += t->group[i].n;
  }
  s->q = calloc(s->n_queues + 1, sizeof *s->q);
  if (!s->first || !s->q) return lint_no_memory(s->c->err);
  iso_code c = each(s, false);
  if (c) return c;
  size_t n = 0;
  for (size_t i = 0; i < s->n_queues; i++) n += s->q[i].n;
  if (!(s->at = malloc((n + 1) * sizeof *s->at))) return lint_no_memory(s->c->err);
  n = 0;
  for (size_t i = 0; i < s->n_queues; i++) {
    s->q[i].at = s->at + n;
    n += s->q[i].n;
    s->q[i].n = 0;
  }
  return each(s, true);
}

iso_code lint_match_collectives(lint_check *c) {
  const lint_trace *t = c->t;
  lint_collective_lost lost = {.c = c};
  sorter s = {.c = c, .lost = &lost};
  lint_at *there = malloc((t->n_procs + 1) * sizeof *there);
  iso_code code = there ? sort_collectives(&s) : lint_no_memory(c->err);
  for (size_t i = 0; !code && i < t->n_groups; i++) {
    meeting m = {.c = c, .g = &t->group[i], .q = s.q + s.first[i], .there = there, .lost = &lost};
    for (size_t k = 1; k < m.g->n; k++) m.strict |= m.q[k].n != m.q[0].n;
    code = match_group(&m);
  }
  if (!code) code = lint_collective_report(&lost);
  free(lost.item);
  free(there);
  free(s.first);
  free(s.q);
  free(s.at);
  return code;
}
