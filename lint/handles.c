/* Handles: what is posted is waited for, once, and after it was posted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check.h"

typedef struct handles {
  lint_check *c;
  uint32_t proc;
  uint32_t *wait; /* of each event: the first wait for it, or LINT_NONE */
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

/* Whether a later operation of the same queue is waited for: then this one has ended too. */
static bool is_implied(const handles *h, uint32_t i) {
  const lint_program *p = h->c->t->proc[h->proc].prog;
  const lint_event *e = &p->event[i];
  if (h->c->t->backend != LINT_NCCL) return false;
  for (uint32_t k = i + 1; k < p->n; k++) {
    const lint_event *f = &p->event[k];
    if (lint_op_classify(f->op) < LINT_P2P || f->group != e->group) continue;
    if (!f->handle || h->wait[k] != LINT_NONE) return true;
  }
  return false;
}

static iso_code unwaited(const handles *h, uint32_t i) {
  const lint_event *e = &h->c->t->proc[h->proc].prog->event[i];
  if (is_implied(h, i))
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
  handles h = {.c = c, .wait = malloc((most + 1) * sizeof *h.wait)};
  bool *told = calloc(t->n_programs + 1, sizeof *told);
  iso_code code = h.wait && told ? ISO_OK : lint_no_memory(c->err);
  for (uint32_t i = 0; !code && i < t->n_procs; i++) {
    const size_t k = (size_t)(t->proc[i].prog - t->program);
    if (told[k]) continue;
    told[k] = true;
    h.proc = i;
    code = check_proc(&h);
  }
  free(h.wait);
  free(told);
  return code;
}
