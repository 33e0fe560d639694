/* Dumps of all ranks as one trace. */
#include "lint/recorder/recorder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egraph/base/vec.h"

enum { MAX_RANK = 1 << 20 };

iso_code lint_dump_intern(lint_dump *d, const char *s, size_t n, uint32_t *id) {
  return lint_intern(&d->t->names, &d->t->arena, s, n, id) ? ISO_OK : lint_no_memory(d->err);
}

/* ---- groups ---- */

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* "[0, 1]" to ranks. Returns: false where it is no such list. */
static iso_code members_of(lint_dump *d, const char *s, lint_group_ref *g) {
  int64_t *rank = NULL;
  size_t n = 0, cap = 0;
  while (*s) {
    if (!isdigit((unsigned char)*s)) {
      s++;
      continue;
    }
    char *end;
    const long long v = strtoll(s, &end, 10);
    if (!iso_grow(rank, cap, n + 1)) {
      free(rank);
      return lint_no_memory(d->err);
    }
    rank[n++] = v < MAX_RANK ? v : MAX_RANK;
    s = end;
    if (v >= MAX_RANK) {
      free(rank);
      return iso_fail(d->err, ISO_FORMAT, "%s: a group has a rank %lld", d->path, v);
    }
  }
  /* A rank's place in a group is that in ascending order. */
  if (n) qsort(rank, n, sizeof *rank, by_value);
  int64_t *kept = iso_arena_alloc(&d->t->arena, (n + 1) * sizeof *kept);
  if (kept && n) memcpy(kept, rank, n * sizeof *rank);
  free(rank);
  g->rank = kept;
  g->n_ranks = n;
  g->defined = true;
  return kept ? ISO_OK : lint_no_memory(d->err);
}

/* Groups of one name and other members are other groups. */
iso_code lint_dump_group(lint_dump *d, const char *name, size_t n, const char *ranks,
                         size_t n_ranks) {
  uint32_t id, key;
  iso_code c = lint_dump_intern(d, name, n, &id);
  char *text = iso_arena_printf(&d->t->arena, "%.*s %.*s", (int)n, name, (int)n_ranks, ranks);
  if (!c && !text) c = lint_no_memory(d->err);
  if (!c) c = lint_dump_intern(d, text, strlen(text), &key);
  if (c) return c;
  if (!iso_grow_bytes((void **)&d->group, &d->cap_groups, d->n_groups + 1, sizeof *d->group))
    return lint_no_memory(d->err);
  d->group[d->n_groups].name = id;
  d->group[d->n_groups].ref = LINT_NONE;
  d->group[d->n_groups++].key = key;
  return ISO_OK;
}

/* The reference of a group as a dump calls it. One that the dump does not list has no members. */
static iso_code refer(lint_dump *d, uint32_t name, uint32_t *ref) {
  lint_trace *t = d->t;
  size_t k = 0;
  while (k < d->n_groups && d->group[k].name != name) k++;
  if (k < d->n_groups && d->group[k].ref != LINT_NONE) {
    *ref = d->group[k].ref;
    return ISO_OK;
  }
  const uint32_t key = k < d->n_groups ? d->group[k].key : LINT_NONE;
  for (*ref = 0; *ref < t->n_refs; ++*ref)
    if (t->ref[*ref].axes == key && (key != LINT_NONE || t->ref[*ref].name == name)) break;
  if (k < d->n_groups) d->group[k].ref = *ref;
  if (*ref < t->n_refs) return ISO_OK;
  if (!iso_grow(t->ref, t->cap_refs, t->n_refs + 1)) return lint_no_memory(d->err);
  t->ref[t->n_refs] = (lint_group_ref){.name = name, .axes = key};
  const char *list = strchr(key == LINT_NONE ? "" : lint_text(t, key), '[');
  return members_of(d, list ? list : "", &t->ref[t->n_refs++]);
}

/* ---- entries ---- */

/* The operation of "nccl:send 0->1", and its peer among the group's ranks. */
static lint_op op_of(const char *word, int64_t *peer) {
  const char *name = strchr(word, ':');
  char plain[64];
  *peer = -1;
  name = name ? name + 1 : word;
  snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, " "), name);
  const lint_op op = lint_op_named(plain);
  long long a = 0, b = 0;
  if (op == LINT_OP_SEND && sscanf(name, "send %lld->%lld", &a, &b) == 2) *peer = b;
  if (op == LINT_OP_RECV && sscanf(name, "recv %lld<-%lld", &a, &b) == 2) *peer = b;
  /* Of the others, a word of its own is all that is known. */
  return op == LINT_OPS || lint_op_classify(op) < LINT_P2P ? LINT_OP_GATHER : op;
}

static iso_code add_entry(lint_dump *d, lint_program *p, size_t i) {
  lint_trace *t = d->t;
  const lint_entry *x = &d->entry[i];
  uint32_t ref;
  int64_t peer;
  iso_code c = refer(d, x->group, &ref);
  if (c) return c;
  const lint_op op = op_of(lint_text(t, x->word), &peer);
  lint_event *e = lint_push(p, op, (uint32_t)i);
  if (!e) return lint_no_memory(d->err);
  e->group = ref;
  e->mb = x->seq < INT32_MAX ? (int32_t)x->seq : INT32_MAX;
  e->tag = (int32_t)x->state;
  e->reduce = x->word;
  e->numel = x->numel;
  e->out_numel = x->out_numel;
  e->dtype = x->dtype;
  const lint_group_ref *g = &t->ref[ref];
  if (peer >= 0 && (size_t)peer < g->n_ranks) e->peer = (int32_t)g->rank[peer];
  lint_extra *more = lint_extras(p, e);
  if (!more) return lint_no_memory(d->err);
  more->source = x->source;
  more->name = x->word;
  return ISO_OK;
}

/* ---- files ---- */

/* The digits at the end of a file's name, before its extension. */
static int64_t rank_of(const char *path) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  const char *dot = strrchr(base, '.');
  const char *end =
      dot && dot > base && !isdigit((unsigned char)dot[1]) ? dot : base + strlen(base);
  const char *p = end;
  while (p > base && isdigit((unsigned char)p[-1])) p--;
  if (p == end) return -1;
  const long long v = strtoll(p, NULL, 10);
  return v < MAX_RANK ? v : -1;
}

static iso_code read_one(lint_trace *t, const char *path, int64_t rank, iso_error *err) {
  lint_dump d = {.t = t, .path = path, .err = err, .rank = rank};
  unsigned char first = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, &first, 1);
  const int why = errno;
  if (fd >= 0) close(fd);
  if (n < 0) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(why));
  iso_code c = first == 0x80 ? lint_dump_read_pickle(&d) : lint_dump_read_json(&d);
  lint_program *p = &t->program[rank];
  for (size_t i = 0; !c && i < d.n_entries; i++) c = add_entry(&d, p, i);
  if (!c && d.n_entries) p->first_record = d.entry[0].record;
  p->is_there = !c;
  free(d.group);
  free(d.entry);
  return c;
}

/* Ranks by their names, or where these say nothing in the order given. */
static iso_code find_ranks(const char *const *path, size_t n, int64_t *rank, iso_error *err) {
  bool named = true;
  for (size_t i = 0; i < n; i++) named &= (rank[i] = rank_of(path[i])) >= 0;
  for (size_t i = 0; !named && i < n; i++) rank[i] = (int64_t)i;
  bool *seen = calloc(MAX_RANK, sizeof *seen);
  if (!seen) return lint_no_memory(err);
  iso_code c = ISO_OK;
  for (size_t i = 0; !c && i < n; i++) {
    if (seen[rank[i]])
      c = iso_fail(err, ISO_USAGE, "%s: a second dump of rank %" PRId64, path[i], rank[i]);
    seen[rank[i]] = true;
  }
  free(seen);
  return c;
}

iso_code lint_read_dumps(lint_trace *t, const char *const *path, size_t n, iso_error *err) {
  int64_t *rank = malloc((n + 1) * sizeof *rank), last = -1;
  t->form = LINT_RECORDER;
  t->backend = LINT_NCCL;
  if (!rank) return lint_no_memory(err);
  iso_code c = find_ranks(path, n, rank, err);
  for (size_t i = 0; !c && i < n; i++)
    if (rank[i] > last) last = rank[i];
  t->world = last + 1;
  if (!c && !iso_grow(t->program, t->cap_programs, (size_t)t->world + 1)) c = lint_no_memory(err);
  if (!c) t->n_programs = (size_t)t->world;
  for (size_t i = 0; !c && i < n; i++) c = read_one(t, path[i], rank[i], err);
  /* Members without a dump are ranks too. */
  for (size_t i = 0; !c && i < t->n_refs; i++)
    for (size_t k = 0; k < t->ref[i].n_ranks; k++)
      if (t->ref[i].rank[k] >= t->world) t->world = t->ref[i].rank[k] + 1;
  for (size_t i = 0; i < t->n_refs; i++) t->ref[i].axes = 0;
  if (!c && (!iso_grow(t->program, t->cap_programs, (size_t)t->world + 1) ||
             !iso_grow(t->run_by, t->cap_ranks, (size_t)t->world + 1)))
    c = lint_no_memory(err);
  if (!c) {
    t->n_programs = t->n_ranks = (size_t)t->world;
    for (uint32_t i = 0; i < t->n_ranks; i++) t->run_by[i] = i;
  }
  free(rank);
  return c;
}
