/* Where a hang starts, by the dumps of the ranks' recorders.
 *
 * In each group the collectives of equal number are held against each other, up to the first that a
 * member lacks while others wait in it. A member that lacks it may itself wait in another group:
 * then the cause is in that group. Following this ends at a rank that never came, or in a cycle. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/checks/collective.h"
#include "lint/recorder/recorder.h"

enum { SHOWN = 64 };

/* Something that waits: a collective of a group, or a message. */
typedef struct pending {
  lint_at at;              /* of one that waits */
  uint32_t *waits, *lacks; /* procs */
  size_t n_waits, n_lacks, cap_waits, cap_lacks;
  bool message, explained; /* explained: it waits for what waits elsewhere */
  bool is_start;
} pending;

typedef struct dumps {
  lint_check *c;
  uint32_t *cursor; /* of each proc: the next event to look at */
  lint_at *there;   /* scratch */
  pending *item;
  size_t n, cap;
  lint_at in_flight; /* what all have begun and not all have ended; event LINT_NONE: nothing */
} dumps;

static const lint_program *prog(const dumps *d, uint32_t p) { return d->c->t->proc[p].prog; }

static bool is_collective(const lint_event *e) {
  return lint_op_classify(e->op) == LINT_COLLECTIVE;
}

static bool in_group(const dumps *d, uint32_t p, uint32_t i, uint32_t g) {
  return lint_group_of(&d->c->t->proc[p], &prog(d, p)->event[i]) == g;
}

static bool add(uint32_t **list, size_t *n, size_t *cap, uint32_t x) {
  if (!iso_grow_bytes((void **)list, cap, *n + 1, sizeof **list)) return false;
  (*list)[(*n)++] = x;
  return true;
}

/* ---- collectives ---- */

/* The next collective of the group from `number` on, LINT_NONE where there is none. */
static uint32_t at_number(dumps *d, uint32_t p, uint32_t g, int32_t number) {
  const lint_program *a = prog(d, p);
  uint32_t *i = &d->cursor[p];
  while (*i < a->n &&
         !(is_collective(&a->event[*i]) && in_group(d, p, *i, g) && a->event[*i].mb >= number))
    ++*i;
  return *i < a->n ? *i : LINT_NONE;
}

/* From which number on all that were given have the collectives of a group: recorders keep the last
 * ones only. */
static int32_t first_number(dumps *d, const lint_group *g, uint32_t id) {
  int32_t first = 0;
  for (size_t i = 0; i < g->n; i++) {
    const lint_program *a = prog(d, g->member[i]);
    const uint32_t k = at_number(d, g->member[i], id, 0);
    if (a->first_record > 0 && k != LINT_NONE && a->event[k].mb > first) first = a->event[k].mb;
  }
  return first;
}

static lint_kind misfit(const dumps *d, lint_at a, lint_at b) {
  const lint_kind k = lint_collective_misfit(d->c->t, a, b);
  /* The reduction is not recorded; its place holds the operation's word. */
  return k == LINT_REDUCE_MISMATCH ? LINT_COLLECTIVE_MISMATCH : k;
}

/* Hold those of one number against each other. `told`: they do not fit. */
static iso_code compare(dumps *d, const lint_group *g, size_t n, bool *told) {
  const lint_at *at = d->there;
  size_t best = 0, votes = 0;
  for (size_t i = 0; i < n; i++) {
    if (votes == 0) best = i;
    if (votes == 0 || misfit(d, at[best], at[i]) == LINT_KINDS) votes++;
    else votes--;
  }
  size_t meant = 0;
  while (votes && misfit(d, at[best], at[meant]) != LINT_KINDS) meant++;
  iso_code c = ISO_OK;
  for (size_t i = 0; !c && i < n; i++) {
    char a[LINT_TEXT], b[LINT_TEXT];
    lint_kind k;
    const char *own = g->size == n ? lint_own_fault(d->c->t, g, at[i], &k) : NULL;
    lint_where(d->c->t, at[i], a, sizeof a);
    if (own) {
      c = lint_found(d->c, k, &at[i], 1, NULL, "%s: %s", a, own);
    } else if ((k = misfit(d, at[meant], at[i])) != LINT_KINDS) {
      const lint_at both[2] = {at[i], at[meant]};
      lint_where(d->c->t, at[meant], b, sizeof b);
      c = lint_found(d->c, k, both, 2, NULL, "%s meets %s, and they do not fit (%s)", a, b,
                     lint_kind_word(k));
    } else {
      continue;
    }
    *told = true;
  }
  return c;
}

static pending *new_pending(dumps *d, lint_at at, bool message) {
  if (!iso_grow(d->item, d->cap, d->n + 1)) return NULL;
  d->item[d->n] = (pending){.at = at, .message = message};
  return &d->item[d->n++];
}

/* One number of a group. `more`: to go on with the next. */
static iso_code one_number(dumps *d, const lint_group *g, uint32_t id, int32_t number, bool *more) {
  size_t n = 0, lacking = 0;
  bool later = false, told = false, all_ended = true;
  for (size_t i = 0; i < g->n; i++) {
    const uint32_t p = g->member[i], k = at_number(d, p, id, number);
    if (k != LINT_NONE && prog(d, p)->event[k].mb == number) {
      d->there[n++] = (lint_at){p, k};
      all_ended &= prog(d, p)->event[k].tag == LINT_COMPLETED;
    } else {
      lacking += k == LINT_NONE && prog(d, p)->is_there;
    }
    later |= k != LINT_NONE;
  }
  *more = later;
  if (n == 0) return ISO_OK;
  iso_code c = compare(d, g, n, &told);
  *more = later && !told;
  if (c || told || all_ended) return c;
  if (lacking == 0) {
    if (d->in_flight.event == LINT_NONE) d->in_flight = d->there[0];
    return ISO_OK;
  }
  *more = false;
  pending *x = new_pending(d, d->there[0], false);
  bool ok = x != NULL;
  for (size_t i = 0; ok && i < n; i++)
    if (lint_event_at(d->c->t, d->there[i])->tag != LINT_COMPLETED)
      ok = add(&x->waits, &x->n_waits, &x->cap_waits, d->there[i].proc);
  for (size_t i = 0; ok && i < g->n; i++) {
    const uint32_t p = g->member[i];
    if (prog(d, p)->is_there && at_number(d, p, id, number) == LINT_NONE)
      ok = add(&x->lacks, &x->n_lacks, &x->cap_lacks, p);
  }
  return ok ? ISO_OK : lint_no_memory(d->c->err);
}

static iso_code check_group(dumps *d, uint32_t id) {
  const lint_group *g = &d->c->t->group[id];
  for (size_t i = 0; i < g->n; i++) d->cursor[g->member[i]] = 0;
  bool more = true;
  iso_code c = ISO_OK;
  for (int32_t number = first_number(d, g, id); !c && more;) {
    c = one_number(d, g, id, number, &more);
    /* On to the least number that anybody has next. */
    int32_t next = INT32_MAX;
    for (size_t i = 0; i < g->n; i++) {
      const uint32_t k = at_number(d, g->member[i], id, number + 1);
      if (k != LINT_NONE && prog(d, g->member[i])->event[k].mb < next)
        next = prog(d, g->member[i])->event[k].mb;
    }
    more &= next < INT32_MAX;
    number = next;
  }
  return c;
}

/* ---- messages ---- */

static uint32_t next_message(const dumps *d, uint32_t p, lint_op op, uint32_t peer, uint32_t g,
                             uint32_t from) {
  const lint_program *a = prog(d, p);
  while (from < a->n && !(a->event[from].op == op && a->event[from].peer == (int32_t)peer &&
                          in_group(d, p, from, g)))
    from++;
  return from;
}

/* The messages from `src` to `dst` in a group: the k-th meets the k-th. */
static iso_code check_channel(dumps *d, uint32_t src, uint32_t dst, uint32_t g) {
  const lint_trace *t = d->c->t;
  const lint_program *a = prog(d, src), *b = prog(d, dst);
  if (!a->is_there || !b->is_there || a->first_record > 0 || b->first_record > 0) return ISO_OK;
  for (uint32_t i = 0, k = 0;; i++, k++) {
    i = next_message(d, src, LINT_OP_SEND, t->proc[dst].rank, g, i);
    k = next_message(d, dst, LINT_OP_RECV, t->proc[src].rank, g, k);
    if (i == a->n && k == b->n) return ISO_OK;
    const lint_at s = {src, i}, r = {dst, k};
    if (i == a->n || k == b->n) {
      const lint_at at = i < a->n ? s : r;
      if (lint_event_at(t, at)->tag == LINT_COMPLETED) continue;
      pending *x = new_pending(d, at, true);
      return x && add(&x->waits, &x->n_waits, &x->cap_waits, at.proc) &&
                     add(&x->lacks, &x->n_lacks, &x->cap_lacks, at.proc == src ? dst : src)
                 ? ISO_OK
                 : lint_no_memory(d->c->err);
    }
    const int64_t n = a->event[i].numel, m = b->event[k].out_numel;
    if (n < 0 || m < 0 || n == m) continue;
    char x[LINT_TEXT], y[LINT_TEXT];
    const lint_at both[2] = {r, s};
    lint_where(t, r, x, sizeof x);
    lint_where(t, s, y, sizeof y);
    return lint_found(d->c, LINT_SIZE_MISMATCH, both, 2, NULL,
                      "%s receives %" PRId64 " elements, %s sends %" PRId64, x, m, y, n);
  }
}

/* Each channel is looked at once, from its first message. */
static iso_code check_messages(dumps *d) {
  const lint_trace *t = d->c->t;
  iso_code c = ISO_OK;
  for (uint32_t p = 0; !c && p < t->n_procs; p++)
    for (uint32_t i = 0; !c && i < prog(d, p)->n; i++) {
      const lint_event *e = &prog(d, p)->event[i];
      if (lint_op_classify(e->op) != LINT_P2P || e->peer < 0 || e->peer >= t->world) continue;
      const uint32_t q = t->proc_of[e->peer], g = lint_group_of(&t->proc[p], e);
      const bool sends = e->op == LINT_OP_SEND;
      if (next_message(d, p, (lint_op)e->op, (uint32_t)e->peer, g, 0) != i) continue;
      /* A receive's channel is the sender's, if that has sent anything. */
      const lint_program *other = prog(d, q);
      if (!sends && next_message(d, q, LINT_OP_SEND, t->proc[p].rank, g, 0) < other->n) continue;
      c = sends ? check_channel(d, p, q, g) : check_channel(d, q, p, g);
    }
  return c;
}

/* ---- where it starts ---- */

/* The pending thing that a proc waits in, SIZE_MAX where it waits in none. */
static size_t waits_in(const dumps *d, uint32_t p, size_t but) {
  for (size_t i = 0; i < d->n; i++)
    for (size_t k = 0; i != but && k < d->item[i].n_waits; k++)
      if (d->item[i].waits[k] == p) return i;
  return SIZE_MAX;
}

/* All that waits for one rank that itself waits for nothing is one finding. */
static iso_code tell_start(dumps *d, uint32_t missing) {
  const lint_trace *t = d->c->t;
  lint_at at[SHOWN + 1];
  const pending *first = NULL;
  size_t n = 0;
  for (size_t i = 0; i < d->n && n < SHOWN; i++)
    for (size_t k = 0; k < d->item[i].n_lacks; k++) {
      const pending *x = &d->item[i];
      if (x->lacks[k] != missing) continue;
      at[n++] = x->at;
      /* Its least number says most about where the rank is. */
      if (first && lint_event_at(t, first->at)->position <= lint_event_at(t, x->at)->position)
        break;
      first = x;
      at[n - 1] = at[0];
      at[0] = x->at;
      break;
    }
  at[n++] = (lint_at){missing, LINT_NONE};
  char where[LINT_TEXT];
  const lint_event *e = lint_event_at(t, first->at);
  const uint32_t rank = t->proc[missing].rank;
  lint_where(t, first->at, where, sizeof where);
  if (first->message)
    return lint_found(d->c, e->op == LINT_OP_SEND ? LINT_UNMATCHED_SEND : LINT_UNMATCHED_RECV, at,
                      n, NULL, "the hang starts at rank %u: %s waits for it", rank, where);
  return lint_found(d->c, LINT_MISSING_COLLECTIVE, at, n, NULL,
                    "the hang starts at rank %u, which never came to collective %d of group %s: %s "
                    "waits for it",
                    rank, e->mb, lint_text(t, t->ref[e->group].name), where);
}

/* The circle that `from` leads into. */
static iso_code tell_circle(dumps *d, size_t from) {
  char text[3 * LINT_TEXT], where[LINT_TEXT];
  lint_at at[SHOWN];
  size_t n = 0, len = 0, i = from;
  for (size_t k = 0; k < d->n; k++) i = waits_in(d, d->item[i].lacks[0], i); /* into the circle */
  const size_t first = i;
  do {
    pending *x = &d->item[i];
    x->explained = true;
    if (n < SHOWN) at[n++] = x->at;
    lint_where(d->c->t, x->at, where, sizeof where);
    if (len + 1 < sizeof text) {
      const int k = snprintf(text + len, sizeof text - len, "%s%s waits for rank %u",
                             n > 1 ? "; " : "", where, d->c->t->proc[x->lacks[0]].rank);
      len += k > 0 ? (size_t)k : 0;
    }
    i = waits_in(d, x->lacks[0], i);
  } while (i != first && i != SIZE_MAX);
  return lint_found(d->c, LINT_DEADLOCK, at, n, NULL, "%s", text);
}

static iso_code find_starts(dumps *d) {
  bool *told = calloc(d->c->t->n_procs + 1, sizeof *told);
  if (!told) return lint_no_memory(d->c->err);
  iso_code c = ISO_OK;
  for (size_t i = 0; i < d->n; i++)
    for (size_t k = 0; !c && k < d->item[i].n_lacks; k++) {
      const uint32_t p = d->item[i].lacks[k];
      if (waits_in(d, p, i) != SIZE_MAX) continue;
      d->item[i].is_start = true;
      if (!told[p]) c = tell_start(d, p);
      told[p] = true;
    }
  free(told);
  /* A wait for an event that starts somewhere is explained by it. */
  for (size_t i = 0; i < d->n; i++) d->item[i].explained = d->item[i].is_start;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < d->n; i++)
      for (size_t k = 0; k < d->item[i].n_lacks && !d->item[i].explained; k++) {
        const size_t on = waits_in(d, d->item[i].lacks[k], i);
        if (!d->item[on].explained) continue;
        d->item[i].explained = changed = true;
      }
  }
  for (size_t i = 0; !c && i < d->n; i++) {
    if (d->item[i].explained) continue;
    c = tell_circle(d, i);
    d->item[i].explained = true;
    for (size_t k = 0; k < d->n; k++) d->item[k].explained = true; /* one circle is enough */
  }
  return c;
}

/* ---- all of it ---- */

static iso_code say(lint_check *c, char *text) {
  if (!text) return lint_no_memory(c->err);
  if (!c->undecided) c->undecided = text;
  return ISO_OK;
}

/* Facts that the dumps leave out. */
static iso_code gaps(dumps *d) {
  lint_check *c = d->c;
  const lint_trace *t = c->t;
  iso_code code = ISO_OK;
  for (uint32_t i = 0; !code && i < t->n_procs; i++)
    if (!prog(d, i)->is_there)
      code = say(c, iso_arena_printf(c->arena, "the dump of rank %u is missing", i));
  for (size_t i = 0; !code && i < t->n_refs; i++)
    if (t->ref[i].n_ranks == 0)
      code = say(c, iso_arena_printf(
                        c->arena, "group \"%s\" has no members in the dumps, as gloo writes them",
                        lint_text(t, t->ref[i].name)));
  if (code || c->n || d->in_flight.event == LINT_NONE) return code;
  char where[LINT_TEXT];
  lint_where(t, d->in_flight, where, sizeof where);
  return say(c, iso_arena_printf(c->arena, "%s has begun on all of its ranks and not ended on all",
                                 where));
}

iso_code lint_check_dumps(lint_check *c) {
  const lint_trace *t = c->t;
  dumps d = {.c = c, .in_flight = {0, LINT_NONE}};
  d.cursor = calloc(t->n_procs + 1, sizeof *d.cursor);
  d.there = malloc((t->n_procs + 1) * sizeof *d.there);
  iso_code code = d.cursor && d.there ? ISO_OK : lint_no_memory(c->err);
  /* The first group is the world, in which dumps record nothing. */
  for (uint32_t i = 1; !code && i < t->n_groups; i++) code = check_group(&d, i);
  if (!code) code = check_messages(&d);
  if (!code) code = find_starts(&d);
  if (!code) code = gaps(&d);
  for (size_t i = 0; i < d.n; i++) {
    free(d.item[i].waits);
    free(d.item[i].lacks);
  }
  free(d.item);
  free(d.cursor);
  free(d.there);
  return code;
}
