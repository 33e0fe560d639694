/* One run of a trace under a progress model.
 *
 * A *line* is a sequence of events that run in order: a rank where the host waits (buffered,
 * rendezvous), a stream of a rank where streams wait (stream, serial). A *unit* is an operation, or
 * a batch of them, which starts as one. Under the queue models a unit starts when it heads its
 * queue. Times are the earliest possible ones; they do not depend on the order in which the run
 * goes about them. */
#ifndef LINT_PROGRESS_H
#define LINT_PROGRESS_H

#include "lint/check.h"

typedef struct lint_line {
  uint32_t proc, stream; /* stream: a name */
  uint32_t at, end;      /* into the proc's order */
  double time;
  uint32_t waits;   /* the next line that waits for the same thing, plus 1 */
  uint32_t waiters; /* lines that wait for this one's streams, the first plus 1 */
  bool queued;
} lint_line;

typedef struct lint_queue {
  uint32_t group; /* LINT_NONE: of all groups */
  uint32_t *unit; /* events, in order */
  uint32_t n, cap, head;
  double free; /* when the last one ended */
} lint_queue;

/* Of an event. */
typedef struct lint_state {
  double seen, done; /* when it was posted or passed, when it ended; -1: not yet */
  uint32_t waiter;   /* the line that waits for its end, plus 1 */
  uint32_t left;     /* of a batch: operations that have not ended */
} lint_state;

typedef struct lint_run_proc {
  uint32_t *order; /* of events, by line; NULL: as they come */
  uint32_t first_line, n_lines;
  lint_queue *queue;
  uint32_t n_queues, cap_queues;
  lint_state *state; /* of each event */
} lint_run_proc;

/* A change to try: on `proc`, event `from` is moved before (or after) event `to`. */
typedef struct lint_move {
  uint32_t proc, from, to;
  bool behind;
} lint_move;

typedef struct lint_start {
  lint_at unit;
  double time;
} lint_start;

typedef struct lint_run_state {
  const lint_trace *t;
  lint_model model;
  bool lenient; /* an operation without a partner ends by itself */
  double tick;  /* time of every event beyond its cost: for a picture */
  const lint_move *move;
  lint_run_proc *proc;
  lint_line *line;
  size_t n_lines, cap_lines;
  uint32_t *arrived; /* of each meeting */
  double *time;      /* of each meeting: the last arrival */
  uint32_t *ready;   /* lines that may go on */
  size_t n_ready, cap_ready;
  lint_start *start;
  size_t n_start, cap_start;
  double makespan, busy;
  bool hangs, no_memory;
} lint_run_state;

/* Owns: lint_run_fini, also after an error. */
ISO_MUST_USE iso_code lint_run_model(lint_run_state *s, iso_error *err);
void lint_run_fini(lint_run_state *s);
/* The event at which a line is, LINT_NONE at its end. */
uint32_t lint_line_event(const lint_run_state *s, const lint_line *l);
/* The unit of an operation: its batch, or itself. */
uint32_t lint_unit_of(const lint_event *e, uint32_t i);
/* The queue of a unit; NULL where the model has none for it. */
lint_queue *lint_queue_of(const lint_run_state *s, lint_at unit);
/* The cost of an event. */
double lint_cost_of(const lint_program *g, const lint_event *e);
/* The line of an event. */
lint_line *lint_line_of(const lint_run_state *s, lint_at at);

#endif
