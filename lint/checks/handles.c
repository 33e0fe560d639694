/* Handles: each operation that is posted is waited for, once, and after it was posted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check.h"

typedef struct handles {
  lint_check *c;
  uint32_t proc;
  uint32_t *wait; /* of each event: the first wait for it, or LINT_NONE */
  bool *implied;  /* of each event: a later one of its queue is waited for */
  bool *ends;     /* scratch, of each group */
} handles;

static iso_code tell(const handles *h, lint_kind k, uint32_t i, uint32_t other, const char *mend,
                     const char *what) {
  char a[LINT_TEXT], b[LINT_TEXT];
  const lint_at at[2] = {{h->proc, i}, {h->proc, other}};
  lint_where(h->c->t, at[0], a, sizeof a);
  if (other == LINT_NONE) return lint_found(h->c, k, at, 1, mend, "%s %s", a, what);
  lint_where(h->c->t, at[1], b, sizeof b);
  return lint_found(h->c, k, at, 2, mend, "%s %s: %s", a, what, b);
}

/* A wait that finds nothing posted: its post comes later, or never. */
static iso_code bare_wait(const handles *h, uint32_t i) {
  const lint_program *p = h->c->t->proc[h->proc].prog;
  uint32_t k = i + 1;
  while (k < p->n && (p->event[k].handle != p->event[i].handle || p->event[k].op == LINT_OP_WAIT))
    k++;
  if (k < p->n) h->wait[k] = i;
  if (k < p->n)
    return tell(h, LINT_WAIT_BEFORE_POST, i, k, "move the wait behind it",
                "waits for what is posted only later");
  return tell(h, LINT_WAIT_BEFORE_POST, i, LINT_NONE, NULL, "waits for a handle that nothing has");
}

/* Operations of which a later one of the same queue is waited for: then they have ended too. */
static void find_implied(handles *h) {
  const lint_trace *t = h->c->t;
  const lint_program *p = t->proc[h->proc].prog;
  for (size_t i = 0; i <= t->n_refs; i++) h->ends[i] = false;
  for (uint32_t i = (uint32_t)p->n; i-- > 0;) {
    const lint_event *e = &p->event[i];
    h->implied[i] = false;
    if (lint_op_classify(e->op) < LINT_P2P) continue;
    bool *ends = &h->ends[e->group == LINT_NONE ? t->n_refs : e->group];
    const uint32_t unit = e->flags & LINT_IN_BATCH ? e->link : i;
    h->implied[i] = *ends;
    *ends |= !p->event[unit].handle || h->wait[i] != LINT_NONE || h->wait[unit] != LINT_NONE;
  }
}

static iso_code unwaited(const handles *h, uint32_t i) {
  const lint_event *e = &h->c->t->proc[h->proc].prog->event[i];
  if (h->c->t->backend == LINT_NCCL && h->implied[i])
    return tell(h, LINT_UNWAITED_IMPLIED, i, LINT_NONE, NULL,
                "is never waited for, but a later operation of its queue is");
  if (e->op == LINT_OP_SEND)
    return tell(h, LINT_UNWAITED_SEND, i, LINT_NONE, NULL, "is never waited for");
  return tell(h, LINT_UNWAITED, i, LINT_NONE, "wait for it", "is never waited for");
}

static bool posts(const lint_event *e) {
  return e->handle && (lint_op_classify(e->op) >= LINT_P2P || e->op == LINT_OP_BATCH);
}

static iso_code check_proc(handles *h) {
  const lint_program *p = h->c->t->proc[h->proc].prog;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < p->n; i++) h->wait[i] = LINT_NONE;
  for (uint32_t i = 0; !c && i < p->n; i++) {
    const lint_event *e = &p->event[i];
    if (e->op != LINT_OP_WAIT || e->flags & LINT_IMPLIED) continue;
    if (e->link == LINT_NONE) c = bare_wait(h, i);
    else if (h->wait[e->link] != LINT_NONE)
      c = tell(h, LINT_DOUBLE_WAIT, i, h->wait[e->link], "remove it", "waits a second time");
    else h->wait[e->link] = i;
  }
  if (!c) find_implied(h);
  for (uint32_t i = 0; !c && i < p->n; i++)
    if (posts(&p->event[i]) && h->wait[i] == LINT_NONE) c = unwaited(h, i);
  return c;
}

/* Ranks that share a program share its handles: one of them stands for all. */
iso_code lint_check_handles(lint_check *c) {
  const lint_trace *t = c->t;
  if (t->form != LINT_EVENTS) return ISO_OK;
  size_t most = 0;
  for (size_t i = 0; i < t->n_programs; i++)
    if (t->program[i].n > most) most = t->program[i].n;
  handles h = {.c = c,
               .wait = malloc((most + 1) * sizeof *h.wait),
               .implied = malloc((most + 1) * sizeof *h.implied),
               .ends = malloc((t->n_refs + 1) * sizeof *h.ends)};
  bool *told = calloc(t->n_programs + 1, sizeof *told);
  iso_code code = h.wait && h.implied && h.ends && told ? ISO_OK : lint_no_memory(c->err);
  for (uint32_t i = 0; !code && i < t->n_procs; i++) {
    const size_t k = (size_t)(t->proc[i].prog - t->program);
    if (told[k]) continue;
    told[k] = true;
    h.proc = i;
    code = check_proc(&h);
  }
  free(h.wait);
  free(h.implied);
  free(h.ends);
  free(told);
  return code;
}
