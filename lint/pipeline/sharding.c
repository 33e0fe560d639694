/* Unshard, reshard and the reduction of gradients, where a table has them: a stage computes while
 * it is unsharded, and its gradients are reduced once, behind its last backward. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/pipeline/schedule.h"

typedef struct stage_state {
  bool unsharded, told;
  lint_at unshard, reshard, reduce, last_backward;
} stage_state;

typedef struct shards {
  lint_pipeline *p;
  bool shards, reduces; /* the table has such actions at all */
  stage_state *stage;
} shards;

static iso_code tell(shards *s, lint_kind k, lint_at at, lint_at other, const char *mend,
                     const char *what) {
  char a[LINT_TEXT], b[LINT_TEXT];
  const lint_at both[2] = {at, other};
  lint_where(s->p->c->t, at, a, sizeof a);
  if (!lint_has(other)) return lint_found(s->p->c, k, both, 1, mend, "%s: %s", a, what);
  lint_where(s->p->c->t, other, b, sizeof b);
  return lint_found(s->p->c, k, both, 2, mend, "%s: %s, see %s", a, what, b);
}

static iso_code on_unshard(shards *s, stage_state *x, lint_at at) {
  const lint_at first = x->unshard;
  const bool twice = x->unsharded && !x->told;
  x->unsharded = true;
  x->unshard = at;
  if (!twice) return ISO_OK;
  x->told = true;
  return tell(s, LINT_DOUBLE_UNSHARD, at, first, NULL, "the stage is unsharded already");
}

static iso_code on_reshard(shards *s, stage_state *x, lint_at at) {
  const lint_at first = x->reshard;
  const bool needless = !x->unsharded && !x->told;
  x->unsharded = false;
  x->reshard = at;
  if (!needless) return ISO_OK;
  x->told = true;
  return tell(s, LINT_RESHARDED, at, first, NULL, "the stage is sharded already");
}

static iso_code on_compute(shards *s, stage_state *x, lint_at at) {
  const lint_op op = lint_event_at(s->p->c->t, at)->op;
  if (op == LINT_OP_B || op == LINT_OP_W) {
    x->last_backward = at;
    if (lint_has(x->reduce)) {
      const lint_at early = x->reduce;
      x->reduce = (lint_at){0, LINT_NONE};
      x->told = true;
      return tell(s, LINT_REDUCE_GRAD_EARLY, early, at, "move it behind the stage's last backward",
                  "gradients are still to come");
    }
  }
  if (!s->shards || x->unsharded || x->told) return ISO_OK;
  x->told = true;
  return tell(s, LINT_RESHARDED, at, x->reshard, NULL, "the stage is sharded while it computes");
}

static iso_code on_reduce(shards *s, stage_state *x, lint_at at) {
  const lint_at first = x->reduce;
  x->reduce = at;
  if (!lint_has(first)) return ISO_OK;
  return tell(s, LINT_DUPLICATE_REDUCE_GRAD, at, first, "remove one of them",
              "gradients are reduced already");
}

static iso_code each(shards *s, lint_at at) {
  const lint_trace *t = s->p->c->t;
  const lint_event *e = lint_event_at(t, at);
  if (e->stage < 0 || e->stage >= t->stages || s->p->owner[e->stage] != at.proc) return ISO_OK;
  stage_state *x = &s->stage[e->stage];
  switch (e->op) {
  case LINT_OP_UNSHARD: return on_unshard(s, x, at);
  case LINT_OP_RESHARD: return on_reshard(s, x, at);
  case LINT_OP_REDUCE_GRAD: return on_reduce(s, x, at);
  case LINT_OP_F:
  case LINT_OP_I:
  case LINT_OP_W:
  case LINT_OP_B: return on_compute(s, x, at);
  default: return ISO_OK;
  }
}

/* Left unsharded, a stage is unsharded twice in the next step. */
static iso_code at_end(shards *s, stage_state *x) {
  iso_code c = ISO_OK;
  if (s->shards && x->unsharded && !x->told)
    c = tell(s, LINT_DOUBLE_UNSHARD, x->unshard, (lint_at){0, LINT_NONE}, NULL,
             "the stage is never resharded, and the next step unshards it again");
  if (!c && s->reduces && lint_has(x->last_backward) && !lint_has(x->reduce) && !x->told)
    c = tell(s, LINT_MISSING_REDUCE_GRAD, x->last_backward, (lint_at){0, LINT_NONE}, NULL,
             "the stage's gradients are never reduced");
  return c;
}

iso_code lint_check_sharding(lint_pipeline *p) {
  const lint_trace *t = p->c->t;
  shards s = {.p = p, .stage = malloc((size_t)t->stages * sizeof *s.stage)};
  if (!s.stage) return lint_no_memory(p->c->err);
  const lint_at none = {0, LINT_NONE};
  for (int64_t i = 0; i < t->stages; i++)
    s.stage[i] =
        (stage_state){.unshard = none, .reshard = none, .reduce = none, .last_backward = none};
  for (size_t i = 0; i < p->n_procs; i++)
    for (size_t k = 0; k < t->proc[p->proc[i]].prog->n; k++) {
      const uint8_t op = t->proc[p->proc[i]].prog->event[k].op;
      s.shards |= op == LINT_OP_UNSHARD || op == LINT_OP_RESHARD;
      s.reduces |= op == LINT_OP_REDUCE_GRAD;
    }
  iso_code c = ISO_OK;
  for (size_t i = 0; !c && (s.shards || s.reduces) && i < p->n_procs; i++)
    for (uint32_t k = 0; !c && k < t->proc[p->proc[i]].prog->n; k++)
      c = each(&s, (lint_at){p->proc[i], k});
  for (int64_t i = 0; !c && i < t->stages; i++) c = at_end(&s, &s.stage[i]);
  free(s.stage);
  return c;
}
