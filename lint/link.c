/* Which rank runs which program, who is in which group, and the event of each wait. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/check.h"

/* ---- the mesh: ranks are numbered with the last axis fastest ---- */

static void coordinates(const lint_trace *t, int64_t rank, int64_t *at) {
  for (size_t i = t->n_axes; i-- > 0;) {
    at[i] = rank % t->axis[i].size;
    rank /= t->axis[i].size;
  }
}

static int64_t rank_at(const lint_trace *t, const int64_t *at) {
  int64_t rank = 0;
  for (size_t i = 0; i < t->n_axes; i++) rank = rank * t->axis[i].size + at[i];
  return rank;
}

/* Offsets go around. */
int64_t lint_peer_rank(const lint_trace *t, const lint_proc *p, int32_t peer) {
  if (peer >= 0) return peer < t->world ? peer : -1;
  if (peer == LINT_NO_PEER) return -1;
  int64_t at[LINT_MAX_AXES];
  const lint_offset *o = &t->offset[-2 - peer];
  coordinates(t, p->rank, at);
  for (size_t i = 0; i < t->n_axes; i++) {
    const int64_t n = t->axis[i].size;
    at[i] = ((at[i] + o->by[i]) % n + n) % n;
  }
  return rank_at(t, at);
}

int64_t lint_distance(const lint_trace *t, int64_t from, int64_t to) {
  int64_t a[LINT_MAX_AXES], b[LINT_MAX_AXES];
  coordinates(t, from, a);
  coordinates(t, to, b);
  for (size_t i = 0; i < t->n_axes; i++) a[i] = (b[i] - a[i] + t->axis[i].size) % t->axis[i].size;
  return rank_at(t, a);
}

/* ---- groups ---- */

uint32_t lint_group_of(const lint_proc *p, const lint_event *e) {
  return e->group == LINT_NONE ? 0 : p->group[e->group];
}

/* Adds a group of these ranks, to which its members' reference `ref` refers (LINT_NONE: the
 * world). */
static iso_code add_group(lint_check *c, uint32_t name, uint32_t ref, const int64_t *rank,
                          size_t n) {
  lint_trace *t = c->t;
  if (!iso_grow(t->group, t->cap_groups, t->n_groups + 1)) return lint_no_memory(c->err);
  lint_group *g = &t->group[t->n_groups];
  *g = (lint_group){.name = name,
                    .size = n,
                    .by_axes = ref != LINT_NONE && t->ref[ref].axes,
                    .member = malloc((n + 1) * sizeof *g->member)};
  if (!g->member) return lint_no_memory(c->err);
  t->n_groups++;
  bool *in = calloc(t->n_procs + 1, sizeof *in);
  if (!in) return lint_no_memory(c->err);
  for (size_t i = 0; i < n; i++) in[t->proc_of[rank[i]]] = true;
  for (uint32_t p = 0; p < t->n_procs; p++) {
    if (!in[p]) continue;
    g->member[g->n++] = p;
    if (ref != LINT_NONE) t->proc[p].group[ref] = (uint32_t)t->n_groups - 1;
  }
  free(in);
  return ISO_OK;
}

/* The groups of ranks that differ in these axes only: those of the procs' ranks. Where one stands
 * for many, their groups have members of the same classes. */
static iso_code groups_of_axes(lint_check *c, uint32_t ref) {
  lint_trace *t = c->t;
  const lint_group_ref *g = &t->ref[ref];
  int64_t *rank = malloc(((size_t)t->world + 1) * sizeof *rank), at[LINT_MAX_AXES];
  if (!rank) return lint_no_memory(c->err);
  iso_code code = ISO_OK;
  for (uint32_t p = 0; !code && p < t->n_procs; p++) {
    if (t->proc[p].group[ref] != LINT_NONE) continue;
    coordinates(t, t->proc[p].rank, at);
    for (size_t i = 0; i < t->n_axes; i++)
      if (g->axes >> i & 1) at[i] = 0;
    size_t n = 0;
    for (bool more = true; more;) {
      rank[n++] = rank_at(t, at);
      more = false;
      for (size_t i = t->n_axes; i-- > 0 && !more;) {
        if (!(g->axes >> i & 1)) continue;
        more = ++at[i] < t->axis[i].size;
        if (!more) at[i] = 0;
      }
    }
    code = add_group(c, g->name, ref, rank, n);
  }
  free(rank);
  return code;
}

static iso_code link_groups(lint_check *c) {
  lint_trace *t = c->t;
  int64_t *all = malloc(((size_t)t->world + 1) * sizeof *all);
  if (!all) return lint_no_memory(c->err);
  for (int64_t i = 0; i < t->world; i++) all[i] = i;
  iso_code code = add_group(c, 0, LINT_NONE, all, (size_t)t->world);
  free(all);
  for (uint32_t i = 0; !code && i < t->n_refs; i++)
    code = t->ref[i].defined ? add_group(c, t->ref[i].name, i, t->ref[i].rank, t->ref[i].n_ranks)
                             : groups_of_axes(c, i);
  return code;
}

/* ---- procs and waits ---- */

/* Beyond so many events of all procs together it is not gone on, where ranks share programs. */
enum { MAX_SHARED_EVENTS = 16 << 20 };

static bool are_shared(const lint_trace *t) { return t->n_programs < t->n_ranks; }

/* A proc for each rank, or for each class of ranks that cannot be told apart. */
static iso_code find_procs(lint_check *c) {
  lint_trace *t = c->t;
  t->n_procs = t->n_ranks;
  for (uint32_t i = 0; i < t->n_ranks; i++) t->proc_of[i] = i;
  if (!are_shared(t)) return ISO_OK;
  const iso_code code = lint_classes(c, t->proc_of, &t->n_procs);
  size_t events = 0;
  for (size_t i = 0; i < t->n_procs && !code; i++) {
    size_t rank = 0;
    while (t->proc_of[rank] != i) rank++;
    events += t->program[t->run_by[rank]].n;
  }
  if (!code && events > MAX_SHARED_EVENTS && t->n_procs > t->n_programs)
    c->undecided = "ranks that share a program are not shown to be alike";
  return code;
}

static iso_code link_procs(lint_check *c) {
  lint_trace *t = c->t;
  t->proc = calloc(t->n_ranks + 1, sizeof *t->proc);
  t->proc_of = malloc((t->n_ranks + 1) * sizeof *t->proc_of);
  if (!t->proc || !t->proc_of) return lint_no_memory(c->err);
  const iso_code code = find_procs(c);
  if (code || c->undecided) return code;
  for (uint32_t i = 0; i < t->n_ranks; i++) {
    lint_proc *p = &t->proc[t->proc_of[i]];
    if (p->n_ranks++) continue;
    p->prog = &t->program[t->run_by[i]];
    p->rank = i;
    p->group = malloc((t->n_refs + 1) * sizeof *p->group);
    p->meet = malloc((p->prog->n + 1) * sizeof *p->meet);
    if (!p->group || !p->meet) return lint_no_memory(c->err);
    memset(p->group, 0xFF, t->n_refs * sizeof *p->group);
    memset(p->meet, 0xFF, p->prog->n * sizeof *p->meet);
  }
  return ISO_OK;
}

/* A wait waits for the last operation before it that was posted with its handle. */
static void link_waits(lint_program *p, uint32_t *last) {
  for (uint32_t i = 0; i < p->n; i++) {
    lint_event *e = &p->event[i];
    if (!e->handle) continue;
    if (e->op == LINT_OP_WAIT) e->link = last[e->handle];
    else last[e->handle] = i;
  }
  for (uint32_t i = 0; i < p->n; i++)
    if (p->event[i].handle) last[p->event[i].handle] = LINT_NONE;
}

iso_code lint_link(lint_check *c) {
  lint_trace *t = c->t;
  iso_code code = link_procs(c);
  if (code || c->undecided) return code;
  if (!code) code = link_groups(c);
  if (code || t->form != LINT_EVENTS) return code;
  uint32_t *last = malloc((t->names.n + 1) * sizeof *last);
  if (!last) return lint_no_memory(c->err);
  memset(last, 0xFF, (t->names.n + 1) * sizeof *last);
  for (size_t i = 0; i < t->n_programs; i++) link_waits(&t->program[i], last);
  free(last);
  return ISO_OK;
}

iso_code lint_meeting(lint_check *c, const lint_at *at, size_t n, bool faulty) {
  lint_trace *t = c->t;
  if (t->n_meets >= LINT_NONE || !iso_grow(t->meet, t->cap_meets, t->n_meets + 1) ||
      !iso_grow(t->member, t->cap_members, t->n_members + n))
    return lint_no_memory(c->err);
  t->meet[t->n_meets] = (lint_meet){.first = t->n_members, .n = (uint32_t)n, .faulty = faulty};
  memcpy(t->member + t->n_members, at, n * sizeof *at);
  for (size_t i = 0; i < n; i++) t->proc[at[i].proc].meet[at[i].event] = (uint32_t)t->n_meets;
  t->n_members += n;
  t->n_meets++;
  return ISO_OK;
}
