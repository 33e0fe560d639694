/* Shared by the checks: the trace, and the findings as they come. */
#ifndef LINT_CHECK_H
#define LINT_CHECK_H

#include "lint/trace.h"

enum { LINT_TEXT = 512 };

/* Events of one rank that a finding says are in the wrong order. Their consequences are no further
 * findings. */
typedef struct lint_disorder {
  uint32_t proc, low, high;
} lint_disorder;

typedef struct lint_check {
  lint_trace *t;
  lint_options o;
  iso_error *err;
  iso_arena *arena; /* of the report */
  lint_finding *finding;
  size_t n, cap;
  lint_disorder *disorder;
  size_t n_disorders, cap_disorders;
  lint_progress progress[LINT_MODELS];
  const char *undecided; /* why, or NULL; it lives for ever */
  double makespan, busy; /* under the deciding model; makespan -1: it hangs */
  uint32_t *peak;        /* of each proc */
  lint_lane *lane;       /* of each proc, where a picture is wanted */
  const char **word;
  size_t n_words;
} lint_check;

static inline const lint_event *lint_event_at(const lint_trace *t, lint_at at) {
  return &t->proc[at.proc].prog->event[at.event];
}

/* ---- finding.c ---- */

/* A finding at `at`, its own event first; of an event LINT_NONE only the rank counts. `mend` is
 * copied, or NULL. */
ISO_MUST_USE iso_code lint_found(lint_check *c, lint_kind kind, const lint_at *at, size_t n,
                                 const char *mend, const char *fmt, ...) ISO_PRINTF(6, 7);
/* "2SEND_F0", "send to 3"; cut where it is too long. */
void lint_name_of(const lint_trace *t, lint_at at, char *buf, size_t cap);
/* "rank 1 event 14 (2SEND_F0)" */
void lint_where(const lint_trace *t, lint_at at, char *buf, size_t cap);
/* `at` and `other`, of one rank, are in the wrong order. */
ISO_MUST_USE iso_code lint_disordered(lint_check *c, lint_at at, lint_at other);
/* Whether a finding says that this event is out of order. */
bool lint_is_disordered(const lint_check *c, lint_at at);
/* Whether `from` is such an event, and `behind` comes after it. */
bool lint_follows_disorder(const lint_check *c, lint_at from, lint_at behind);
/* By first event, then kind; duplicates go. */
void lint_findings_sort(lint_check *c);

/* ---- lint.c ---- */

/* An empty report, and the arena of its texts. Owns: lint_free. Returns: NULL without memory. */
lint_report *lint_report_new(iso_arena **arena);
/* The report owns the malloc'ed findings. */
void lint_report_take(lint_report *r, lint_finding *finding, size_t n);

/* ---- link.c ---- */

/* Classes of ranks that go through the same states, numbered by their lowest ranks (classes.c). */
ISO_MUST_USE iso_code lint_classes(lint_check *c, uint32_t *class_of, size_t *n);
/* Who runs which program, groups and waits. */
ISO_MUST_USE iso_code lint_link(lint_check *c);
/* The rank that an event names. Returns: -1 where it is outside of the world. */
int64_t lint_peer_rank(const lint_trace *t, const lint_proc *p, int32_t peer);
/* The first rank of a rank's group along axes, and its place in that (classes.c). */
int64_t lint_first_of(const lint_trace *t, int64_t rank, uint32_t axes, int64_t *place);
/* How far `to` is from `from` on the mesh, as a number; 0 where there is none. */
int64_t lint_distance(const lint_trace *t, int64_t from, int64_t to);
/* The group of an event on a proc, an index into t->group; LINT_NONE: the rank is no member. */
uint32_t lint_group_of(const lint_proc *p, const lint_event *e);
/* A new meeting of `n` events. */
ISO_MUST_USE iso_code lint_meeting(lint_check *c, const lint_at *at, size_t n, bool faulty);

/* ---- the checks, in the order in which they run ---- */

ISO_MUST_USE iso_code lint_hint_values(lint_check *c);                        /* values.c */
ISO_MUST_USE iso_code lint_check_schedule(lint_check *c);                     /* schedule.c */
ISO_MUST_USE iso_code lint_match_messages(lint_check *c);                     /* match.c */
ISO_MUST_USE iso_code lint_match_collectives(lint_check *c);                  /* collective.c */
ISO_MUST_USE iso_code lint_check_races(lint_check *c);                        /* races.c */
ISO_MUST_USE iso_code lint_check_values(lint_check *c);                       /* values.c */
ISO_MUST_USE iso_code lint_check_handles(lint_check *c);                      /* handles.c */
ISO_MUST_USE iso_code lint_check_progress(lint_check *c, lint_model decides); /* hang.c */
ISO_MUST_USE iso_code lint_check_peak(lint_check *c);                         /* schedule.c */
/* Fill lanes, words (timeline.c). */
ISO_MUST_USE iso_code lint_draw(lint_check *c, lint_model decides);

#endif
