/* Is a pipeline's schedule complete and in order? Every stage computes every microbatch forward
 * once, and backward once, whole or in two parts, and all on one rank.
 *
 * Ranks that send to each other are one pipeline; replicas of it are checked each by itself. */
#include "lint/pipeline/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { MAX_CELLS = 1 << 24, MANY = 32 /* microbatches missing by one mistake */ };

static bool is_compute(const lint_event *e) { return e->op >= LINT_OP_F && e->op <= LINT_OP_B; }

static bool is_numbered(const lint_event *e) {
  return is_compute(e) && e->stage >= 0 && e->mb >= 0;
}

static bool in_range(const lint_trace *t, const lint_event *e) {
  return e->stage < t->stages && e->mb < t->microbatches;
}

/* ---- pipelines: connected by messages ---- */

static uint32_t root_of(uint32_t *up, uint32_t i) {
  while (up[i] != i) i = up[i] = up[up[i]];
  return i;
}

static int by_pair(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void join(uint32_t *up, uint32_t i, uint32_t k) {
  const uint32_t a = root_of(up, i), b = root_of(up, k);
  up[a < b ? b : a] = a < b ? a : b;
}

/* Two that name each other are of one pipeline. Who is named without naming back may be named by
 * mistake: that counts only for one that nobody else is tied to. */
static iso_code connect(lint_check *c, uint32_t *up) {
  const lint_trace *t = c->t;
  uint64_t *pair = NULL;
  size_t n = 0, cap = 0;
  iso_code code = ISO_OK;
  for (uint32_t i = 0; i < t->n_procs; i++) up[i] = t->form == LINT_EVENTS ? i : 0;
  for (uint32_t i = 0; !code && t->form == LINT_EVENTS && i < t->n_procs; i++) {
    int32_t last = LINT_NO_PEER;
    for (size_t k = 0; !code && k < t->proc[i].prog->n; k++) {
      const lint_event *e = &t->proc[i].prog->event[k];
      if (lint_op_classify(e->op) != LINT_P2P || e->peer == last) continue;
      last = e->peer;
      const int64_t peer = lint_peer_rank(t, &t->proc[i], e->peer);
      if (peer < 0) continue;
      if (!iso_grow(pair, cap, n + 1)) code = lint_no_memory(c->err);
      else pair[n++] = (uint64_t)i << 32 | t->proc_of[peer];
    }
  }
  if (n) qsort(pair, n, sizeof *pair, by_pair);
  for (int mutual = 1; !code && mutual >= 0; mutual--)
    for (size_t k = 0; k < n; k++) {
      const uint64_t back = pair[k] << 32 | pair[k] >> 32;
      const uint32_t a = (uint32_t)(pair[k] >> 32), b = (uint32_t)pair[k];
      const bool both = bsearch(&back, pair, n, sizeof *pair, by_pair) != NULL;
      if (mutual ? both : root_of(up, a) == a && root_of(up, b) == b) join(up, a, b);
    }
  free(pair);
  return code;
}

/* ---- filling the cells ---- */

/* LINT_SLOTS: this operation has no cell. Directions of messages are known of tables only. */
static lint_slot slot_of(const lint_trace *t, const lint_event *e) {
  if (e->flags & LINT_IMPLIED || e->mb < 0 || e->stage < 0) return LINT_SLOTS;
  switch (e->op) {
  case LINT_OP_F: return LINT_SLOT_F;
  case LINT_OP_I: return LINT_SLOT_I;
  case LINT_OP_W: return LINT_SLOT_W;
  case LINT_OP_B: return LINT_SLOT_B;
  case LINT_OP_SEND:
    return t->form == LINT_EVENTS ? LINT_SLOTS : e->tag ? LINT_SEND_B : LINT_SEND_F;
  case LINT_OP_RECV:
    return t->form == LINT_EVENTS ? LINT_SLOTS : e->tag ? LINT_RECV_B : LINT_RECV_F;
  default: return LINT_SLOTS;
  }
}

static iso_code vote(lint_pipeline *p) {
  const lint_trace *t = p->c->t;
  uint32_t *votes = calloc((size_t)t->stages + 1, sizeof *votes);
  if (!votes) return lint_no_memory(p->c->err);
  for (size_t i = 0; i < p->n_procs; i++)
    for (size_t k = 0; k < t->proc[p->proc[i]].prog->n; k++) {
      const lint_event *e = &t->proc[p->proc[i]].prog->event[k];
      if (!is_compute(e) || !in_range(t, e)) continue;
      p->has_backward |= e->op != LINT_OP_F;
      if (votes[e->stage] == 0) p->owner[e->stage] = p->proc[i];
      if (p->owner[e->stage] == p->proc[i]) votes[e->stage]++;
      else votes[e->stage]--;
    }
  free(votes);
  return ISO_OK;
}

/* Remembers an event that is in a wrong place: it may be the one missing elsewhere. */
static iso_code stray(lint_pipeline *p, lint_at at) {
  if (!is_compute(lint_event_at(p->c->t, at))) return ISO_OK;
  if (!iso_grow(p->stray, p->cap_strays, p->n_strays + 1)) return lint_no_memory(p->c->err);
  p->stray[p->n_strays++] = (lint_stray){at, p->c->n};
  return ISO_OK;
}

/* The one event astray that would be this one if its stage, its microbatch or its rank were right:
 * then that one's finding is enough, and nothing else is missing. */
static bool is_astray(lint_pipeline *p, int64_t stage, int64_t mb, const char *word) {
  for (size_t i = 0; i < p->n_strays; i++) {
    const lint_event *e = lint_event_at(p->c->t, p->stray[i].at);
    const bool forward = e->op == LINT_OP_F;
    const bool same_op =
        *word == 'B' ? !forward && e->op != LINT_OP_W : strcmp(lint_op_word(e->op), word) == 0;
    if (!same_op || (e->stage != stage && e->mb != mb)) continue;
    char *mend = iso_arena_printf(p->c->arena, "it should be %" PRId64 "%s%" PRId64, stage,
                                  lint_op_word(e->op), mb);
    if (mend) p->c->finding[p->stray[i].finding].mend = mend;
    p->stray[i] = p->stray[--p->n_strays];
    return true;
  }
  return false;
}

static iso_code out_of_range(lint_pipeline *p, lint_at at) {
  const lint_trace *t = p->c->t;
  const lint_event *e = lint_event_at(t, at);
  char where[LINT_TEXT];
  lint_where(t, at, where, sizeof where);
  iso_code c = stray(p, at);
  if (!c && lint_op_classify(e->op) >= LINT_P2P) c = lint_meeting(p->c, &at, 1, true);
  if (c) return c;
  if (e->stage >= t->stages)
    return lint_found(p->c, LINT_OUT_OF_RANGE, &at, 1, NULL, "%s: there are %" PRId64 " stages",
                      where, t->stages);
  return lint_found(p->c, LINT_OUT_OF_RANGE, &at, 1, NULL, "%s: there are %" PRId64 " microbatches",
                    where, t->microbatches);
}

static iso_code twice(lint_pipeline *p, lint_slot s, lint_at at, lint_at first) {
  char a[LINT_TEXT], b[LINT_TEXT];
  const lint_at both[2] = {at, first};
  lint_where(p->c->t, at, a, sizeof a);
  lint_where(p->c->t, first, b, sizeof b);
  iso_code c = s >= LINT_SEND_F ? lint_meeting(p->c, &at, 1, true) : stray(p, at);
  if (c) return c;
  return lint_found(p->c, s >= LINT_SEND_F ? LINT_DUPLICATE_COMM : LINT_DUPLICATE_COMPUTE, both, 2,
                    "remove one of them", "%s is there already: %s", a, b);
}

/* A stage on another rank than where most of it is. */
static iso_code elsewhere(lint_pipeline *p, lint_at at, int32_t stage) {
  char a[LINT_TEXT];
  lint_where(p->c->t, at, a, sizeof a);
  const iso_code c = lint_disordered(p->c, at, at);
  if (c) return c;
  return lint_found(p->c, LINT_STAGE_ON_TWO_RANKS, &at, 1, NULL, "%s: stage %d is on rank %u", a,
                    stage, p->c->t->proc[p->owner[stage]].rank);
}

static iso_code fill(lint_pipeline *p, lint_at at) {
  const lint_trace *t = p->c->t;
  const lint_event *e = lint_event_at(t, at);
  const lint_slot s = slot_of(t, e);
  if (s == LINT_SLOTS) {
    const bool shards = e->op >= LINT_OP_UNSHARD && e->op <= LINT_OP_REDUCE_GRAD;
    return shards && e->stage >= t->stages ? out_of_range(p, at) : ISO_OK;
  }
  if (!in_range(t, e)) return out_of_range(p, at);
  lint_at *x = &lint_cell_of(p, e->stage, e->mb)->at[s];
  if (lint_has(*x)) return twice(p, s, at, *x);
  *x = at;
  const uint32_t owner = p->owner[e->stage];
  return owner == LINT_NONE || owner == at.proc ? ISO_OK : elsewhere(p, at, e->stage);
}

/* ---- what is in the cells ---- */

static bool before(lint_at a, lint_at b) { return a.proc == b.proc && a.event < b.event; }

static iso_code out_of_order(lint_pipeline *p, lint_kind k, lint_at early, lint_at needs) {
  char a[LINT_TEXT], b[LINT_TEXT];
  const lint_at both[2] = {early, needs};
  lint_where(p->c->t, early, a, sizeof a);
  lint_where(p->c->t, needs, b, sizeof b);
  const iso_code c = lint_disordered(p->c, early, needs);
  if (c) return c;
  return lint_found(p->c, k, both, 2, NULL, "%s comes before %s, whose result it needs", a, b);
}

/* A missing event, shown at an event of the same cell. */
static iso_code missing(lint_pipeline *p, const lint_cell *x, lint_kind k, int64_t stage,
                        int64_t mb, const char *word) {
  char where[LINT_TEXT] = "", mend[LINT_TEXT];
  lint_at at = {p->owner[stage], LINT_NONE};
  if (k == LINT_MISSING_WEIGHT_GRAD) at = x->at[LINT_SLOT_I];
  for (int s = 0; s < LINT_SLOTS && !lint_has(at); s++)
    if (lint_has(x->at[s])) at = x->at[s];
  if (lint_has(at)) lint_where(p->c->t, at, where, sizeof where);
  snprintf(mend, sizeof mend, "on rank %u, insert %" PRId64 "%s%" PRId64,
           p->c->t->proc[p->owner[stage]].rank, stage, word, mb);
  return lint_found(p->c, k, &at, 1, mend, "%" PRId64 "%s%" PRId64 " is missing%s%s", stage, word,
                    mb, *where ? ", beside " : "", where);
}

static iso_code check_cell(lint_pipeline *p, int64_t stage, int64_t mb) {
  const lint_cell *x = lint_cell_of(p, stage, mb);
  const lint_at f = x->at[LINT_SLOT_F], i = x->at[LINT_SLOT_I], w = x->at[LINT_SLOT_W],
                b = x->at[LINT_SLOT_B];
  iso_code c = ISO_OK;
  if (!lint_has(f) && !is_astray(p, stage, mb, "F"))
    c = missing(p, x, LINT_MISSING_MICROBATCH, stage, mb, "F");
  if (c || !p->has_backward) return c;
  const char *word = lint_has(w) ? "I" : "B";
  if (!lint_has(b) && !lint_has(i) && !is_astray(p, stage, mb, word))
    c = missing(p, x, LINT_MISSING_MICROBATCH, stage, mb, word);
  else if (!lint_has(b) && lint_has(i) && !lint_has(w) && !is_astray(p, stage, mb, "W"))
    c = missing(p, x, LINT_MISSING_WEIGHT_GRAD, stage, mb, "W");
  if (!c && lint_has(b) && (lint_has(i) || lint_has(w)))
    c = twice(p, LINT_SLOT_I, lint_has(i) ? i : w, b);
  if (!c && lint_has(b) && before(b, f)) c = out_of_order(p, LINT_BACKWARD_BEFORE_FORWARD, b, f);
  if (!c && lint_has(i) && before(i, f)) c = out_of_order(p, LINT_BACKWARD_BEFORE_FORWARD, i, f);
  if (!c && lint_has(w) && before(w, i)) c = out_of_order(p, LINT_WEIGHT_BEFORE_INPUT, w, i);
  return c;
}

/* How many microbatches from `mb` on a stage has not begun. */
static int64_t left_out(const lint_pipeline *p, int64_t stage, int64_t mb) {
  int64_t n = 0;
  for (; mb + n < p->c->t->microbatches; n++)
    for (int s = 0; s < LINT_SLOTS; s++)
      if (lint_has(lint_cell_of(p, stage, mb + n)->at[s])) return n;
  return n;
}

/* Many that are missing one behind the other are one mistake. */
static iso_code missing_many(lint_pipeline *p, int64_t stage, int64_t mb, int64_t n) {
  const lint_at at = {p->owner[stage], LINT_NONE};
  return lint_found(p->c, LINT_MISSING_MICROBATCH, &at, 1, NULL,
                    "%" PRId64 "F%" PRId64 " to %" PRId64 "F%" PRId64 "%s are missing: there are "
                    "%" PRId64 " microbatches",
                    stage, mb, stage, mb + n - 1, p->has_backward ? ", and their backward," : "",
                    p->c->t->microbatches);
}

static iso_code check_stages(lint_pipeline *p) {
  const lint_trace *t = p->c->t;
  iso_code c = ISO_OK;
  for (int64_t s = 0; !c && s < t->stages; s++) {
    if (p->owner[s] == LINT_NONE) {
      const lint_at at = {p->proc[0], LINT_NONE};
      c = lint_found(p->c, LINT_MISSING_MICROBATCH, &at, 1, NULL,
                     "stage %" PRId64 " computes nothing", s);
      continue;
    }
    for (int64_t m = 0, n; !c && m < t->microbatches; m += n) {
      n = left_out(p, s, m);
      if (n >= MANY) c = missing_many(p, s, m, n);
      else c = check_cell(p, s, m), n = 1;
    }
  }
  return c;
}

/* The last stage waits for no other: one that turns forward and backward does a microbatch's
 * backward behind its forward. Where it always does another forward between the two, as stages do
 * that wait for the next one, a table of computations may lack rows. */
static void check_end(lint_pipeline *p) {
  const lint_trace *t = p->c->t;
  const int64_t last = t->stages - 1;
  const lint_program *g = p->owner[last] == LINT_NONE ? NULL : t->proc[p->owner[last]].prog;
  int64_t held = 0, left = 0, turns = 0;
  if (t->form != LINT_TABLE || p->c->o.stages >= 0 || !g || p->c->undecided) return;
  for (size_t k = 0; k < g->n; k++)
    left += g->event[k].op == LINT_OP_F && g->event[k].stage == last;
  for (size_t k = 0; k < g->n; k++) {
    const lint_event *e = &g->event[k];
    if (e->stage != last || !is_compute(e) || e->op == LINT_OP_W) continue;
    if (e->op == LINT_OP_F) {
      held++, left--;
      continue;
    }
    if (left > 0 && (held < 2 || e->flags & LINT_OVERLAPS)) return;
    turns += left > 0;
    held--;
  }
  if (turns)
    p->c->undecided = "the table's last stage keeps microbatches as one does that waits for the "
                      "next stage: rows may be missing; say --stages";
}

/* ---- a pipeline ---- */

static iso_code check_pipeline(lint_pipeline *p) {
  const lint_trace *t = p->c->t;
  if (t->stages > MAX_CELLS / t->microbatches)
    return iso_fail(p->c->err, ISO_LIMIT, "%s: the pipeline is too large", t->path);
  const size_t n = (size_t)(t->stages * t->microbatches);
  p->cell = malloc(n * sizeof *p->cell);
  p->owner = malloc((size_t)t->stages * sizeof *p->owner);
  iso_code c = p->cell && p->owner ? ISO_OK : lint_no_memory(p->c->err);
  if (!c) {
    memset(p->cell, 0xFF, n * sizeof *p->cell);
    memset(p->owner, 0xFF, (size_t)t->stages * sizeof *p->owner);
    c = vote(p);
  }
  bool computes = false;
  for (size_t i = 0; i < p->n_procs; i++)
    for (size_t k = 0; !computes && k < t->proc[p->proc[i]].prog->n; k++)
      computes = is_numbered(&t->proc[p->proc[i]].prog->event[k]);
  for (size_t i = 0; !c && computes && i < p->n_procs; i++)
    for (uint32_t k = 0; !c && k < t->proc[p->proc[i]].prog->n; k++)
      c = fill(p, (lint_at){p->proc[i], k});
  if (!c && computes) c = check_stages(p);
  if (!c && computes) check_end(p);
  if (!c && computes) c = lint_check_sharding(p);
  if (!c && computes && t->form != LINT_EVENTS) c = lint_check_table_messages(p);
  free(p->stray);
  free(p->cell);
  free(p->owner);
  return c;
}

iso_code lint_check_schedule(lint_check *c) {
  const lint_trace *t = c->t;
  if (t->stages < 1 || t->microbatches < 1) return ISO_OK;
  uint32_t *up = malloc((t->n_procs + 1) * sizeof *up);
  uint32_t *member = malloc((t->n_procs + 1) * sizeof *member);
  iso_code code = up && member ? connect(c, up) : lint_no_memory(c->err);
  for (uint32_t i = 0; !code && i < t->n_procs; i++) {
    if (root_of(up, i) != i) continue;
    lint_pipeline p = {.c = c, .proc = member};
    for (uint32_t k = i; k < t->n_procs; k++)
      if (root_of(up, k) == i) member[p.n_procs++] = k;
    code = check_pipeline(&p);
  }
  free(up);
  free(member);
  return code;
}

/* ---- activations ---- */

/* A forward pass keeps the activations that its weights' gradient needs, up to B or W. */
iso_code lint_check_peak(lint_check *c) {
  const lint_trace *t = c->t;
  if (!(c->peak = iso_arena_alloc(c->arena, (t->n_procs + 1) * sizeof *c->peak)))
    return lint_no_memory(c->err);
  for (uint32_t i = 0; i < t->n_procs; i++) {
    int64_t held = 0, most = 0;
    lint_at first = {i, LINT_NONE};
    for (uint32_t k = 0; k < t->proc[i].prog->n; k++) {
      const lint_event *e = &t->proc[i].prog->event[k];
      held += e->op == LINT_OP_F;
      held -= e->op == LINT_OP_B || e->op == LINT_OP_W;
      if (held > most) most = held;
      if (c->o.max_in_flight >= 0 && held > c->o.max_in_flight && !lint_has(first)) first.event = k;
    }
    c->peak[i] = (uint32_t)most;
    if (!lint_has(first)) continue;
    char a[LINT_TEXT];
    lint_where(t, first, a, sizeof a);
    const iso_code code =
        lint_found(c, LINT_OUT_OF_RANGE, &first, 1, NULL,
                   "%s: the rank holds %" PRId64 " activations at most, more than %" PRId64, a,
                   most, c->o.max_in_flight);
    if (code) return code;
  }
  return ISO_OK;
}
