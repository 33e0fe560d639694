/* Races: two uses of a buffer, one of them a write, that nothing orders.
 *
 * On one rank the order is that of its *lanes*: streams, and on NCCL the queue of each group, whose
 * operations end one after the other. An operation begins after those that its stream held when it
 * was posted, and after its queue; a wait brings its end into a stream. A lane's clock says how far
 * it knows every other lane, so that "happens before" is one comparison. All that orders stands
 * earlier in the list: one pass suffices. Where the host waits (gloo, mpi), there is one stream and
 * every operation is a lane of its own, known to have ended or not.
 *
 * Source: the happens-before relation of Lamport; vector clocks of Fidge and Mattern. */
#include "lint/checks/races.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

/* A use that later ones are held against. */
typedef struct use {
  int64_t at, end;
  uint32_t event;
  uint32_t lane, time; /* when the lane has passed `time`, the use is over */
  uint32_t next;       /* of the same buffer, plus 1 */
  bool writes, frees, by_op, was_read;
} use;

typedef struct racer {
  lint_check *c;
  lint_at first; /* its proc */
  const lint_program *prog;
  bool host;                /* the host waits: no streams, no queues */
  uint32_t *stream, *group; /* names of the streams' lanes; groups of the queues' lanes */
  size_t n_streams, n_groups, cap_streams, cap_groups, n_lanes;
  uint32_t *clock;    /* lanes by lanes: what each knows of each */
  uint32_t *posted;   /* of each operation with a handle, plus 1: a row of `snapshot` */
  uint32_t *snapshot; /* what its lane knew when it was posted */
  size_t n_snapshots, cap_snapshot;
  uint32_t *lane_of, *time_of; /* of each operation */
  bool *ended;                 /* host: of each operation */
  bool *waited, *told, *lost;  /* of each event: somebody waits for it; it was told, as lost */
  uint32_t *told_by;           /* of each lane: the last event, plus 1, that was told beside it */
  use *use;
  size_t n_uses, cap_uses;
  uint32_t free_use;   /* plus 1 */
  uint32_t *first_use; /* of each name: plus 1 */
  bool *was_read;      /* of each name: somebody reads it */
  uint32_t blind;      /* behind the last computation of which nothing is known: it may read all */
} racer;

static uint32_t *clock_of(const racer *r, size_t lane) { return r->clock + lane * r->n_lanes; }

static void join(uint32_t *a, const uint32_t *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (b[i] > a[i]) a[i] = b[i];
}

/* ---- lanes ---- */

static size_t stream_lane(const racer *r, uint32_t stream) {
  size_t i = 0;
  while (i + 1 < r->n_streams && r->stream[i] != stream) i++;
  return i;
}

static size_t queue_lane(const racer *r, uint32_t group) {
  size_t i = 0;
  while (i + 1 < r->n_groups && r->group[i] != group) i++;
  return r->n_streams + i;
}

static bool add(uint32_t **list, size_t *n, size_t *cap, uint32_t x) {
  for (size_t i = 0; i < *n; i++)
    if ((*list)[i] == x) return true;
  if (!iso_grow_bytes((void **)list, cap, *n + 1, sizeof **list)) return false;
  (*list)[(*n)++] = x;
  return true;
}

static const lint_proc *proc_of(const racer *r) { return &r->c->t->proc[r->first.proc]; }

static bool make_lanes(racer *r) {
  bool ok = add(&r->stream, &r->n_streams, &r->cap_streams, 0);
  for (size_t i = 0; ok && !r->host && i < r->prog->n; i++) {
    const lint_event *e = &r->prog->event[i];
    ok = add(&r->stream, &r->n_streams, &r->cap_streams, e->stream);
    if (ok && e->op == LINT_OP_STREAM_WAIT)
      ok = add(&r->stream, &r->n_streams, &r->cap_streams, e->link);
    if (ok && lint_op_classify(e->op) >= LINT_P2P)
      ok = add(&r->group, &r->n_groups, &r->cap_groups, lint_group_of(proc_of(r), e));
  }
  r->n_lanes = r->n_streams + r->n_groups;
  r->told_by = calloc(r->n_lanes + 1, sizeof *r->told_by);
  return ok && r->told_by && (r->clock = calloc(r->n_lanes * r->n_lanes + 1, sizeof *r->clock));
}

/* ---- findings ---- */

static lint_kind kind_of(const use *old, const lint_touch *now, bool frees) {
  if (old->frees) return LINT_USE_AFTER_FREE;
  if (frees) return LINT_FREE_IN_FLIGHT;
  if (old->writes) return now->writes ? LINT_TWO_WRITERS : LINT_READ_IN_FLIGHT;
  return LINT_WRITE_IN_FLIGHT;
}

static const char *sentence(lint_kind k) {
  switch (k) {
  case LINT_USE_AFTER_FREE: return "uses a buffer that was freed";
  case LINT_FREE_IN_FLIGHT: return "frees a buffer that is in use";
  case LINT_TWO_WRITERS: return "writes a buffer that is being written";
  case LINT_READ_IN_FLIGHT: return "reads a buffer that is being written";
  case LINT_LOST_RESULT: return "overwrites a result that nobody has read";
  default: return "writes a buffer that is being read";
  }
}

/* Whether this is reported already. An operation in flight lacks one wait, whoever meets it first;
 * all the operations of one lane that an event meets lack one wait, too. A lost result is no race,
 * and is counted apart. */
static bool is_told(racer *r, lint_kind k, uint32_t now, const use *old, uint32_t waited_for) {
  if (k == LINT_LOST_RESULT) {
    const bool before = r->lost[old->event] || r->told[old->event];
    r->lost[old->event] = true;
    return before;
  }
  const bool by_lane = !r->host && r->told_by[old->lane] == now + 1;
  const bool before = by_lane || r->told[old->event] || r->told[waited_for];
  r->told[old->event] |= k != LINT_USE_AFTER_FREE;
  r->told[waited_for] |= k != LINT_USE_AFTER_FREE;
  if (!r->host && !before) r->told_by[old->lane] = now + 1;
  return before;
}

/* An operation that nobody ever waits for is told as that (handles.c). */
static iso_code tell(racer *r, lint_kind k, uint32_t now, const use *old, uint32_t buffer) {
  /* In a batch without handles of its operations, the batch's is waited for. */
  const lint_event *e = &r->prog->event[old->event];
  if (e->flags & LINT_IN_BATCH && !e->handle) e = &r->prog->event[e->link];
  const uint32_t waited_for = (uint32_t)(e - r->prog->event);
  const bool in_flight = old->by_op && e->handle;
  if (in_flight && !r->waited[waited_for] && k != LINT_LOST_RESULT) return ISO_OK;
  if (is_told(r, k, now, old, waited_for)) return ISO_OK;
  char a[LINT_TEXT], b[LINT_TEXT], mend[LINT_TEXT];
  const lint_at at[2] = {{r->first.proc, now}, {r->first.proc, old->event}};
  lint_where(r->c->t, at[0], a, sizeof a);
  lint_where(r->c->t, at[1], b, sizeof b);
  snprintf(mend, sizeof mend, "wait for %s before it, on its own stream",
           in_flight ? lint_text(r->c->t, e->handle) : "that stream");
  const bool mends = k != LINT_USE_AFTER_FREE && k != LINT_LOST_RESULT;
  return lint_found(r->c, k, at, 2, mends ? mend : NULL, "%s %s: %s, by %s", a, sentence(k),
                    lint_text(r->c->t, buffer), b);
}

/* ---- uses ---- */

/* Whether a use is over for one that knows `clock`. */
static bool is_over(const racer *r, const use *u, const uint32_t *clock) {
  if (r->host) return !u->by_op || r->ended[u->event];
  return clock[u->lane] >= u->time;
}

static bool put_use(racer *r, uint32_t buffer, const use *u) {
  uint32_t i = r->free_use;
  if (i) r->free_use = r->use[i - 1].next;
  else {
    if (!iso_grow(r->use, r->cap_uses, r->n_uses + 1)) return false;
    i = (uint32_t)++r->n_uses;
  }
  r->use[i - 1] = *u;
  r->use[i - 1].next = r->first_use[buffer];
  r->first_use[buffer] = i;
  return true;
}

/* Hold `now` against the uses of its buffer; those that it supersedes go. */
static iso_code hold_against(racer *r, const lint_touch *now, const use *as, const uint32_t *clock,
                             bool frees) {
  uint32_t *link = &r->first_use[now->buffer];
  iso_code c = ISO_OK;
  while (!c && *link) {
    use *old = &r->use[*link - 1];
    const bool overlaps = old->at < now->end && now->at < old->end;
    const bool over = is_over(r, old, clock);
    if (overlaps && old->event != as->event &&
        (old->frees || (!over && (old->writes || now->writes))))
      c = tell(r, kind_of(old, now, frees), as->event, old, now->buffer);
    if (overlaps && !now->writes) old->was_read = true;
    const bool covered = now->at <= old->at && old->end <= now->end;
    if (!c && covered && over && old->writes && now->writes && old->by_op && !old->was_read &&
        as->by_op && !frees && r->was_read[now->buffer] && old->event != as->event &&
        old->event >= r->blind)
      c = tell(r, LINT_LOST_RESULT, as->event, old, now->buffer);
    if (covered && (old->frees || (over && (now->writes || !old->writes)))) {
      const uint32_t gone = *link;
      *link = old->next;
      old->next = r->free_use;
      r->free_use = gone;
    } else {
      link = &old->next;
    }
  }
  return c;
}

static bool is_faulty(const racer *r, uint32_t i) {
  const uint32_t id = proc_of(r)->meet[i];
  return id != LINT_NONE && r->c->t->meet[id].faulty;
}

static iso_code touch_all(racer *r, uint32_t i, uint32_t lane, uint32_t time,
                          const uint32_t *clock) {
  const lint_event *e = &r->prog->event[i];
  const bool by_op = lint_op_classify(e->op) >= LINT_P2P;
  for (uint32_t k = 0; k < e->n_access; k++) {
    lint_touch t[LINT_TOUCHES];
    const lint_access *a = &r->prog->access[e->access + k];
    const bool frees = e->op == LINT_OP_FREE;
    size_t n = lint_touches(r->c->t, proc_of(r), e, a, t);
    if (e->op == LINT_OP_FREE || e->op == LINT_OP_ALLOC)
      t[0].buffer = a->buffer, t[0].at = 0, t[0].end = INT64_MAX, t[0].writes = true, n = 1;
    for (size_t j = 0; j < n; j++) {
      if (by_op && is_faulty(r, i)) continue; /* what it should be was told */
      use u = {.at = t[j].at,
               .end = t[j].end,
               .event = i,
               .lane = lane,
               .time = time,
               .writes = t[j].writes,
               .frees = frees,
               .by_op = by_op};
      if (e->op == LINT_OP_ALLOC) {
        r->first_use[a->buffer] = 0; /* a new one of the same name */
        continue;
      }
      const iso_code c = hold_against(r, &t[j], &u, clock, frees);
      if (c) return c;
      if (!put_use(r, a->buffer, &u)) return lint_no_memory(r->c->err);
    }
  }
  return ISO_OK;
}

/* ---- events ---- */

/* Keeps the clock of lane `lane`, for those who wait for event `i`. */
static bool keep(racer *r, uint32_t i, size_t lane) {
  const size_t n = r->n_lanes;
  if (!iso_grow(r->snapshot, r->cap_snapshot, (r->n_snapshots + 1) * n)) return false;
  memcpy(r->snapshot + r->n_snapshots * n, clock_of(r, lane), n * sizeof *r->snapshot);
  r->posted[i] = (uint32_t)++r->n_snapshots;
  return true;
}

/* An operation, or the batch of it: [i, i + n) are its events. */
static iso_code on_unit(racer *r, uint32_t i, uint32_t n) {
  const lint_event *e = &r->prog->event[i];
  const bool blocks = !e->handle;
  const uint32_t from = e->op == LINT_OP_BATCH ? i + 1 : i;
  if (from == i + n) return ISO_OK;
  iso_code c = ISO_OK;
  const size_t s = r->host ? 0 : stream_lane(r, e->stream);
  size_t lane = s;
  if (!r->host) {
    lane = queue_lane(r, lint_group_of(proc_of(r), &r->prog->event[from]));
    join(clock_of(r, lane), clock_of(r, s), r->n_lanes);
  }
  const uint32_t time = i + 1; /* of the lane: positions in the list grow along every lane */
  for (uint32_t k = from; !c && k < i + n; k++)
    c = touch_all(r, k, (uint32_t)lane, time, clock_of(r, lane));
  if (c) return c;
  if (r->host) {
    for (uint32_t k = i; k < i + n; k++) r->ended[k] |= blocks && !r->prog->event[k].handle;
    return ISO_OK;
  }
  clock_of(r, lane)[lane] = time;
  if (blocks) join(clock_of(r, s), clock_of(r, lane), r->n_lanes);
  for (uint32_t k = i; k < i + n; k++)
    if (r->prog->event[k].handle && !keep(r, k, lane)) return lint_no_memory(r->c->err);
  return ISO_OK;
}

static void on_wait(racer *r, const lint_event *e) {
  if (e->link == LINT_NONE) return;
  const lint_event *f = &r->prog->event[e->link];
  if (r->host) {
    r->ended[e->link] = true;
    for (uint32_t k = 1; f->op == LINT_OP_BATCH && k <= f->link; k++) r->ended[e->link + k] = true;
  } else if (r->posted[e->link]) {
    join(clock_of(r, stream_lane(r, e->stream)),
         r->snapshot + (r->posted[e->link] - 1) * r->n_lanes, r->n_lanes);
  }
}

static iso_code on_event(racer *r, uint32_t i) {
  const lint_event *e = &r->prog->event[i];
  if (e->flags & LINT_IN_BATCH) return ISO_OK;
  if (e->op == LINT_OP_BATCH) return on_unit(r, i, 1 + e->link);
  if (lint_op_classify(e->op) >= LINT_P2P) return on_unit(r, i, 1);
  const size_t s = r->host ? 0 : stream_lane(r, e->stream);
  if (e->op == LINT_OP_WAIT) on_wait(r, e);
  else if (e->op == LINT_OP_STREAM_WAIT && !r->host)
    join(clock_of(r, s), clock_of(r, stream_lane(r, e->link)), r->n_lanes);
  if (lint_op_classify(e->op) == LINT_WORK && e->n_access == 0) r->blind = i + 1;
  const iso_code c = touch_all(r, i, (uint32_t)s, i + 1, clock_of(r, s));
  clock_of(r, s)[s] = i + 1;
  return c;
}

/* ---- a program ---- */

static void look_ahead(racer *r) {
  for (uint32_t i = 0; i < r->prog->n; i++) {
    const lint_event *e = &r->prog->event[i];
    if (e->op == LINT_OP_WAIT && e->link != LINT_NONE) {
      const lint_event *f = &r->prog->event[e->link];
      r->waited[e->link] = true;
      for (uint32_t k = 1; f->op == LINT_OP_BATCH && k <= f->link; k++)
        r->waited[e->link + k] = true;
    }
    for (uint32_t k = 0; k < e->n_access; k++) {
      lint_touch t[LINT_TOUCHES];
      const lint_access *a = &r->prog->access[e->access + k];
      if (lint_touches(r->c->t, proc_of(r), e, a, t) && !t[0].writes) r->was_read[a->buffer] = true;
    }
  }
}

static iso_code check_proc(racer *r) {
  const size_t n = r->prog->n;
  bool any = false;
  for (size_t i = 0; i < n && !any; i++) any = r->prog->event[i].n_access > 0;
  if (!any) return ISO_OK;
  r->posted = calloc(n + 1, sizeof *r->posted);
  r->ended = calloc(n + 1, sizeof *r->ended);
  r->waited = calloc(n + 1, sizeof *r->waited);
  r->told = calloc(n + 1, sizeof *r->told);
  r->lost = calloc(n + 1, sizeof *r->lost);
  r->first_use = calloc(r->c->t->names.n + 1, sizeof *r->first_use);
  r->was_read = calloc(r->c->t->names.n + 1, sizeof *r->was_read);
  iso_code c = ISO_OK;
  if (!r->posted || !r->ended || !r->waited || !r->told || !r->lost || !r->first_use ||
      !r->was_read || !make_lanes(r))
    c = lint_no_memory(r->c->err);
  if (!c) look_ahead(r);
  for (uint32_t i = 0; !c && i < n; i++) c = on_event(r, i);
  free(r->posted);
  free(r->ended);
  free(r->waited);
  free(r->told);
  free(r->lost);
  free(r->told_by);
  free(r->first_use);
  free(r->was_read);
  free(r->stream);
  free(r->group);
  free(r->clock);
  free(r->snapshot);
  free(r->use);
  return c;
}

iso_code lint_check_races(lint_check *c) {
  const lint_trace *t = c->t;
  if (t->form != LINT_EVENTS) return ISO_OK;
  iso_code code = ISO_OK;
  /* For each proc: of two that run one program, one may be the root of a collective. */
  for (uint32_t i = 0; !code && i < t->n_procs; i++) {
    racer r = {.c = c,
               .first = {i, 0},
               .prog = t->proc[i].prog,
               .host = t->backend == LINT_GLOO || t->backend == LINT_MPI};
    code = check_proc(&r);
  }
  return code;
}
