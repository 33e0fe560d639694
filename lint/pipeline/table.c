/* Pipeline tables as torch.distributed.pipelining writes them (_dump_csv): a row for each rank, an
 * action in each cell. Torch's runtime posts sends and receives and waits for a receive where its
 * stage computes, so a table becomes events with such waits. A table of computations alone gets
 * messages that stand for the dependencies. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egraph/base/vec.h"
#include "lint/trace.h"

enum { MAX_INDEX = 1 << 20, MAX_BYTES = 1 << 28 };

typedef struct action {
  uint32_t rank, position;
  int32_t stage, mb;
  uint8_t op, backward, overlaps; /* backward: the direction of a message */
} action;

typedef struct reader {
  lint_trace *t;
  const char *path, *at, *end;
  iso_error *err;
  uint32_t rank, position;
  action *act;
  size_t n, cap;
  uint32_t *owner; /* of each stage: the rank of most of its computations */
} reader;

static iso_code wrong(reader *r, const char *what, const char *cell, size_t n) {
  return iso_fail(r->err, ISO_FORMAT, "%s:%u: column %u: %s: %.*s", r->path, r->rank + 1,
                  r->position + 1, what, n > 80 ? 80 : (int)n, cell);
}

/* ---- cells ---- */

static const struct {
  const char *word;
  uint8_t op, backward, has_mb;
} words[] = {
    {"F", LINT_OP_F, 0, 1},
    {"I", LINT_OP_I, 0, 1},
    {"W", LINT_OP_W, 0, 1},
    {"B", LINT_OP_B, 0, 1},
    {"SEND_F", LINT_OP_SEND, 0, 1},
    {"RECV_F", LINT_OP_RECV, 0, 1},
    {"SEND_B", LINT_OP_SEND, 1, 1},
    {"RECV_B", LINT_OP_RECV, 1, 1},
    {"UNSHARD", LINT_OP_UNSHARD, 0, 0},
    {"RESHARD", LINT_OP_RESHARD, 0, 0},
    {"REDUCE_GRAD", LINT_OP_REDUCE_GRAD, 0, 0},
};

static const char *index_at(const char *p, const char *end, int32_t *out) {
  int64_t v = 0;
  const char *q = p;
  for (; q < end && isdigit((unsigned char)*q) && v < MAX_INDEX; q++) v = 10 * v + (*q - '0');
  *out = (int32_t)v;
  return q > p && v < MAX_INDEX ? q : NULL;
}

/* "2SEND_F0" */
static iso_code read_action(reader *r, const char *p, const char *end, bool overlaps) {
  action a = {.rank = r->rank, .position = r->position, .mb = LINT_NO_INDEX, .overlaps = overlaps};
  const char *word = index_at(p, end, &a.stage), *q = word;
  if (!word) return wrong(r, "an action begins with its stage", p, (size_t)(end - p));
  while (q < end && (isupper((unsigned char)*q) || *q == '_')) q++;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i].word) != (size_t)(q - word) ||
        memcmp(words[i].word, word, (size_t)(q - word)) != 0)
      continue;
    a.op = words[i].op;
    a.backward = words[i].backward;
    if (words[i].has_mb && !(q = index_at(q, end, &a.mb)))
      return wrong(r, "an action ends with its microbatch", p, (size_t)(end - p));
    if (q != end) break;
    if (!iso_grow(r->act, r->cap, r->n + 1)) return lint_no_memory(r->err);
    r->act[r->n++] = a;
    return ISO_OK;
  }
  return wrong(r, "no action", p, (size_t)(end - p));
}

static void trim(const char **p, const char **end) {
  while (*p < *end && (**p == ' ' || **p == '"')) ++*p;
  while (*end > *p && ((*end)[-1] == ' ' || (*end)[-1] == '"')) --*end;
}

/* "(1F3;6B0)OVERLAP_F_B" is two actions. */
static iso_code read_cell(reader *r, const char *p, const char *end) {
  trim(&p, &end);
  if (p == end) return ISO_OK;
  if (*p != '(') return read_action(r, p, end, false);
  const char *close = memchr(p, ')', (size_t)(end - p));
  static const char overlap[] = "OVERLAP_F_B";
  if (!close || (size_t)(end - close - 1) != sizeof overlap - 1 ||
      memcmp(close + 1, overlap, sizeof overlap - 1) != 0)
    return wrong(r, "no action", p, (size_t)(end - p));
  iso_code c = ISO_OK;
  size_t n = 0;
  for (const char *q = p + 1; !c && q <= close; n++) {
    const char *stop = memchr(q, ';', (size_t)(close - q)), *begin = q;
    if (!stop) stop = close;
    q = stop + 1;
    trim(&begin, &stop);
    if (begin < stop) c = read_action(r, begin, stop, true);
    else c = wrong(r, "an empty action", p, (size_t)(end - p));
    if (!c && lint_op_classify(r->act[r->n - 1].op) != LINT_WORK)
      c = wrong(r, "only computations overlap", p, (size_t)(end - p));
  }
  return c;
}

static iso_code read_rows(reader *r) {
  while (r->at < r->end) {
    const char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *end = line ? line : r->end;
    const char *next = line ? line + 1 : r->end;
    if (end > r->at && end[-1] == '\r') end--;
    if (r->rank == MAX_INDEX) return iso_fail(r->err, ISO_FORMAT, "%s: too many rows", r->path);
    r->position = 0;
    for (const char *p = r->at; p <= end; r->position++) {
      const char *comma = memchr(p, ',', (size_t)(end - p));
      if (!comma) comma = end;
      const iso_code c = read_cell(r, p, comma);
      if (c) return c;
      p = comma + 1;
    }
    r->rank++;
    r->at = next;
  }
  if (r->n == 0) return iso_fail(r->err, ISO_FORMAT, "%s: a table without actions", r->path);
  return ISO_OK;
}

/* ---- how large the pipeline is, and who has which stage ---- */

static int by_size(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The last index up to which no more are left out than are there: one that is mistyped is far from
 * the others. `apart`: how often those behind it occur. */
static int32_t without_gaps(const uint32_t *count, int32_t max, size_t n, uint32_t *apart) {
  *apart = 0;
  for (int32_t i = max; i >= 0; i--) {
    if (!count[i]) continue;
    if ((size_t)i + 1 <= 2 * n) return i;
    *apart += count[i];
    n--;
  }
  *apart = 0;
  return max;
}

/* One more than the last index, where a wrong one is not taken for a pipeline that is longer: at
 * the end it must occur at least half as often as the others usually do. */
static iso_code extent(reader *r, bool of_stages, int64_t *out) {
  int32_t max = 0;
  for (size_t i = 0; i < r->n; i++) {
    const int32_t v = of_stages ? r->act[i].stage : r->act[i].mb;
    if (v > max) max = v;
  }
  uint32_t *count = calloc((size_t)max + 1, sizeof *count);
  uint32_t *sorted = calloc((size_t)max + 1, sizeof *sorted);
  if (count && sorted) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
      if (lint_op_classify(r->act[i].op) == LINT_WORK)
        count[of_stages ? r->act[i].stage : r->act[i].mb]++;
    for (int32_t i = 0; i <= max; i++)
      if (count[i]) sorted[n++] = count[i];
    qsort(sorted, n, sizeof *sorted, by_size);
    uint32_t apart;
    max = without_gaps(count, max, n, &apart);
    const uint64_t most = n ? sorted[n / 2] : 0;
    while (max > 0 && 2 * ((uint64_t)count[max] + apart) <= most && count[max] < most) max--;
    *out = max + 1;
  }
  free(count);
  free(sorted);
  return count && sorted ? ISO_OK : lint_no_memory(r->err);
}

/* The rank of most of a stage's computations (Boyer and Moore's vote). */
static iso_code find_owners(reader *r) {
  const size_t n = (size_t)r->t->stages;
  uint32_t *votes = calloc(n, sizeof *votes);
  r->owner = malloc(n * sizeof *r->owner);
  if (!votes || !r->owner) {
    free(votes);
    return lint_no_memory(r->err);
  }
  memset(r->owner, 0xFF, n * sizeof *r->owner);
  for (size_t i = 0; i < r->n; i++) {
    const action *a = &r->act[i];
    if (lint_op_classify(a->op) != LINT_WORK || (size_t)a->stage >= n) continue;
    if (votes[a->stage] == 0) r->owner[a->stage] = a->rank;
    if (r->owner[a->stage] == a->rank) votes[a->stage]++;
    else votes[a->stage]--;
  }
  free(votes);
  return ISO_OK;
}

/* ---- events ---- */

static uint32_t owner_of(const reader *r, int64_t stage) {
  return stage >= 0 && stage < r->t->stages ? r->owner[stage] : LINT_NONE;
}

static lint_event *push(reader *r, const action *a, lint_op op, uint8_t flags) {
  lint_event *e = lint_push(&r->t->program[a->rank], op, a->position);
  if (!e) return NULL;
  e->flags = flags;
  e->stage = a->stage;
  e->mb = a->mb;
  e->tag = a->backward;
  return e;
}

/* A message of stage `a->stage`, to its neighbour or from it. */
static bool push_message(reader *r, const action *a, lint_op op, bool backward, uint8_t flags) {
  const bool up = (op == LINT_OP_SEND) != backward; /* to or from the next stage */
  const uint32_t peer = owner_of(r, a->stage + (up ? 1 : -1));
  lint_event *e = push(r, a, op, flags);
  if (!e) return false;
  e->tag = backward;
  e->peer = peer == LINT_NONE ? LINT_NO_PEER : (int32_t)peer;
  /* torch posts what a table says and goes on */
  if (!(flags & LINT_IMPLIED)) e->handle = 1;
  return true;
}

/* The stage whose result a computation needs, -1 where it needs none. */
static int64_t source_stage(const reader *r, const action *a) {
  if (a->op == LINT_OP_F) return a->stage - 1;
  if (a->op == LINT_OP_W || a->stage + 1 >= r->t->stages) return -1;
  return a->stage + 1;
}

/* A computation after the wait for its input; without messages in the table, between messages of
 * its own. */
static bool push_work(reader *r, const action *a) {
  const uint8_t flags = a->overlaps ? LINT_OVERLAPS : 0;
  const bool backward = a->op != LINT_OP_F;
  const int64_t from = source_stage(r, a);
  const uint32_t source = owner_of(r, from);
  if (from >= 0 && source != LINT_NONE) {
    lint_event *e;
    if (source == a->rank || r->t->form == LINT_TABLE_COMMS) {
      if (!(e = push(r, a, LINT_OP_WAIT, LINT_IMPLIED))) return false;
      e->tag = backward;
    } else if (!push_message(r, a, LINT_OP_RECV, backward, LINT_IMPLIED)) {
      return false;
    }
  }
  if (!push(r, a, a->op, flags)) return false;
  if (r->t->form == LINT_TABLE_COMMS || a->op == LINT_OP_W) return true;
  const uint32_t to = owner_of(r, a->stage + (backward ? -1 : 1));
  return to == LINT_NONE || to == a->rank ||
         push_message(r, a, LINT_OP_SEND, backward, LINT_IMPLIED);
}

static iso_code make_events(reader *r) {
  lint_trace *t = r->t;
  t->world = r->rank;
  t->n_ranks = r->rank;
  if (!iso_grow(t->program, t->cap_programs, t->n_ranks + 1) ||
      !iso_grow(t->run_by, t->cap_ranks, t->n_ranks + 1))
    return lint_no_memory(r->err);
  t->n_programs = t->n_ranks;
  for (uint32_t i = 0; i < t->n_ranks; i++) t->run_by[i] = i;
  t->form = LINT_TABLE;
  for (size_t i = 0; i < r->n; i++)
    if (lint_op_classify(r->act[i].op) == LINT_P2P) t->form = LINT_TABLE_COMMS;
  for (size_t i = 0; i < r->n; i++) {
    const action *a = &r->act[i];
    const lint_op_class class = lint_op_classify(a->op);
    const bool ok = class == LINT_WORK  ? push_work(r, a)
                    : class == LINT_P2P ? push_message(r, a, a->op, a->backward, 0)
                                        : push(r, a, a->op, 0) != NULL;
    if (!ok) return lint_no_memory(r->err);
  }
  return ISO_OK;
}

/* ---- the file ---- */

static iso_code read_all(const char *path, char **out, size_t *n, iso_error *err) {
  char *text = NULL;
  size_t cap = 0, len = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  ssize_t k = 1;
  while (k > 0 && len < MAX_BYTES) {
    if (!iso_grow(text, cap, len + (1 << 16))) break;
    k = read(fd, text + len, cap - len);
    if (k > 0) len += (size_t)k;
  }
  const int why = errno;
  close(fd);
  *out = text;
  *n = len;
  if (k < 0) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(why));
  if (k > 0 && len >= MAX_BYTES) return iso_fail(err, ISO_FORMAT, "%s: too large", path);
  return k > 0 ? lint_no_memory(err) : ISO_OK;
}

iso_code lint_read_table(lint_trace *t, const char *path, const lint_options *o, iso_error *err) {
  reader r = {.t = t, .path = path, .err = err};
  char *text = NULL;
  size_t n = 0;
  uint32_t id;
  iso_code c = read_all(path, &text, &n, err);
  if (!c) {
    r.at = text;
    r.end = text + n;
    c = read_rows(&r);
  }
  t->may_be_cut = n && text[n - 1] != '\n' && (o->stages < 0 || o->microbatches < 0);
  t->stages = o->stages;
  t->microbatches = o->microbatches;
  if (!c && t->stages < 0) c = extent(&r, true, &t->stages);
  if (!c && t->microbatches < 0) c = extent(&r, false, &t->microbatches);
  if (!c && !lint_intern(&t->names, &t->arena, "posted", 6, &id)) c = lint_no_memory(err);
  if (!c) c = find_owners(&r);
  if (!c) c = make_events(&r);
  free(text);
  free(r.act);
  free(r.owner);
  return c;
}
