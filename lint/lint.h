/* Schedules and communication of one distributed program, checked without a reference.
 *
 * A *trace* has a list of events for each rank: computations, sends, receives, collectives, waits.
 * It is read from a pipeline table of torch.distributed.pipelining or from events in JSON
 * (docs/events.md), which are told apart by their content. Nothing is executed.
 *
 * Messages are matched first: no receive names "any source", so who meets whom is a fact of the
 * program, and one run under each *progress model* decides whether it hangs:
 *
 *   buffered     a send needs no receiver
 *   rendezvous   a send ends when its receive is posted (gloo, MPI_Ssend)
 *   stream NCCL: a group's operations on one rank form a queue, a batch starts as one
 *   serial       as stream, with one queue for all groups of a rank
 *
 * A *finding* is a fault with its events. Consequences of a fault are not listed: where a rank
 * hangs because a message is missing, the finding is the missing message. */
#ifndef LINT_LINT_H
#define LINT_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egraph/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lint_model { LINT_BUFFERED, LINT_RENDEZVOUS, LINT_STREAM, LINT_SERIAL } lint_model;
enum { LINT_MODELS = 4 };

typedef enum lint_kind {
#define LINT_KIND(id, word, error) LINT_##id,
#include "lint/kinds.def"
#undef LINT_KIND
  LINT_KINDS
} lint_kind;

typedef struct lint_place {
  uint32_t rank, position; /* the event's index in its rank's list; in a table, the column */
} lint_place;

typedef struct lint_node { /* of a capture */
  uint32_t rank;
  const char *id;
} lint_node;

typedef struct lint_finding {
  lint_kind kind;
  bool error;           /* else a warning */
  const uint32_t *rank; /* ascending */
  size_t n_ranks;
  const lint_place *event; /* where it is, then the other side, then the rest of a cycle */
  size_t n_events;
  const lint_node *node; /* of a capture: the tensor that it is at, on each rank */
  size_t n_nodes;
  const char *text;   /* the fault, in a sentence */
  const char *name;   /* of the first event: "2SEND_F0" */
  const char *source; /* "file:line" of the first event, or NULL */
  const char *mend;   /* the one change that mends it, or NULL */
  size_t n_cycle;     /* of a deadlock: so many of its events wait for the next one, in a circle */
} lint_finding;

typedef enum lint_progress { LINT_UNKNOWN, LINT_RUNS, LINT_HANGS } lint_progress;

typedef struct lint_options {
  int64_t stages, microbatches; /* -1: those of the input */
  int64_t max_in_flight;        /* activations a rank may hold; -1: any number */
  int model;                    /* a lint_model; -1: the backend's, or LINT_STREAM */
  bool timeline;                /* lint_report.lane is wanted */
} lint_options;

/* An event as a picture has it: from when it is posted to when it has ended. */
typedef struct lint_bar {
  double start, end; /* end -1: never */
  uint32_t position; /* in its rank's list */
  uint32_t name;     /* an index into lint_report.word */
  uint32_t meet;     /* events of one number complete together; UINT32_MAX: it meets nobody */
  uint8_t op;        /* lint_op_name */
} lint_bar;

typedef struct lint_lane {
  uint32_t rank, n_ranks; /* the lowest that it stands for, and how many */
  const lint_bar *bar;    /* in the order of the list, as far as the rank comes */
  size_t n, n_never;      /* n_never: those that it never comes to */
} lint_lane;

/* The parts of one tensor that the ranks of a capture hold (lint/placement/placement.h). */
typedef struct lint_placed {
  uint32_t rank; /* the first that has it */
  const char *id, *op;
  const char *place;    /* "S(0)", or "varying" */
  const char *evidence; /* "proved", "tested", "mended"; NULL: none */
  const char *why;      /* it is varying; else NULL */
} lint_placed;

typedef struct lint_report {
  const lint_finding *finding; /* errors and warnings, by first event */
  size_t n_findings, n_errors, n_warnings;
  const char *undecided; /* why, or NULL */
  lint_progress progress[LINT_MODELS];
  lint_model decides;
  double makespan;          /* under the deciding model; -1: it hangs */
  double bubble;            /* the share of ranks' time without computation */
  const uint32_t *peak;     /* activations held at once, of each rank */
  size_t n_ranks, n_events; /* of a capture: its nodes */
  const lint_lane
      *lane; /* under the deciding model, events without cost taking a little; NULL: not drawn */
  const char *const *word;
  size_t n_lanes, n_words;
  bool capture;
  const lint_placed *placed;
  size_t n_placed;
} lint_report;

lint_options lint_options_default(void);
/* "send", and so on; NULL beyond the last one. */
const char *lint_op_name(unsigned op);
/* "deadlock", and so on. */
const char *lint_kind_word(lint_kind k);
const char *lint_model_word(lint_model m);
/* Returns: a lint_model, or -1. */
int lint_model_named(const char *word);

/* Check the trace that `n` files hold together: one table, one file of events.
 * Owns: lint_free.   Errors: ISO_IO, ISO_FORMAT with file and line; ISO_NOMEM. */
ISO_MUST_USE iso_code lint_run(const char *const *path, size_t n, const lint_options *o,
                               lint_report **out, iso_error *err);
void lint_free(lint_report *r);

#ifdef __cplusplus
}
#endif
#endif
