/* Shared by the files about pipeline schedules. */
#ifndef LINT_SCHEDULE_H
#define LINT_SCHEDULE_H

#include "lint/check.h"

/* The events of one stage and microbatch. */
typedef enum lint_slot {
  LINT_SLOT_F,
  LINT_SLOT_I,
  LINT_SLOT_W,
  LINT_SLOT_B,
  LINT_SEND_F,
  LINT_RECV_F,
  LINT_SEND_B,
  LINT_RECV_B,
  LINT_SLOTS
} lint_slot;

typedef struct lint_cell {
  lint_at at[LINT_SLOTS]; /* event LINT_NONE: there is none */
} lint_cell;

/* An event that is where it should not be, and its finding. */
typedef struct lint_stray {
  lint_at at;
  size_t finding;
} lint_stray;

/* One pipeline: ranks that send to each other. */
typedef struct lint_pipeline {
  lint_check *c;
  const uint32_t *proc;
  size_t n_procs;
  lint_cell *cell; /* stages by microbatches */
  uint32_t *owner; /* of each stage: the proc of most of its computations, or LINT_NONE */
  bool has_backward;
  lint_stray *stray;
  size_t n_strays, cap_strays;
} lint_pipeline;

static inline bool lint_has(lint_at a) { return a.event != LINT_NONE; }
static inline lint_cell *lint_cell_of(const lint_pipeline *p, int64_t stage, int64_t mb) {
  return &p->cell[(size_t)(stage * p->c->t->microbatches + mb)];
}
/* The input gradient: B, or I. */
static inline lint_at lint_backward(const lint_cell *x) {
  return lint_has(x->at[LINT_SLOT_B]) ? x->at[LINT_SLOT_B] : x->at[LINT_SLOT_I];
}

/* Messages of a table: each that is needed is there once, in its place (messages.c). */
ISO_MUST_USE iso_code lint_check_table_messages(lint_pipeline *p);
/* Unshard, reshard, reduction of gradients (sharding.c). */
ISO_MUST_USE iso_code lint_check_sharding(lint_pipeline *p);

#endif
