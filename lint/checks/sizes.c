/* Collectives that lack a member, and the sizes of those that have all. */
#include <inttypes.h>
#include <stdio.h>

#include "egraph/base/vec.h"
#include "lint/checks/collective.h"

/* ---- what was lost ---- */

iso_code lint_collective_lose(lint_collective_lost *l, lint_at at, uint32_t proc, bool missing) {
  if (!iso_grow(l->item, l->cap, l->n + 1)) return lint_no_memory(l->c->err);
  l->item[l->n++] = (lint_collective_lost_item){.at = at, .proc = proc, .missing = missing};
  return ISO_OK;
}

enum { MANY = 4096, SHOWN = 64 };

static bool same(lint_at a, lint_at b) { return a.proc == b.proc && a.event == b.event; }

/* A rank lacks it in one group and calls it in another. */
static iso_code join(lint_collective_lost *l, size_t miss, size_t other) {
  char a[LINT_TEXT], b[LINT_TEXT];
  const lint_at at[2] = {l->item[other].at, l->item[miss].at};
  lint_where(l->c->t, at[0], a, sizeof a);
  lint_where(l->c->t, at[1], b, sizeof b);
  for (size_t i = 0; i < l->n; i++)
    if (same(l->item[i].at, at[0]) || i == miss) l->item[i].told = true;
  return lint_found(l->c, LINT_GROUP_MISMATCH, at, 2, NULL,
                    "%s is in another group than %s, which waits for it", a, b);
}

/* All ranks that lack one collective are in one finding. */
static iso_code tell(lint_collective_lost *l, size_t i) {
  const lint_trace *t = l->c->t;
  lint_at at[SHOWN + 1] = {l->item[i].at};
  size_t n = 1;
  char a[LINT_TEXT];
  lint_where(t, l->item[i].at, a, sizeof a);
  if (l->item[i].outside)
    return lint_found(l->c, LINT_GROUP_MISMATCH, at, 1, NULL,
                      "%s uses a group of which its rank is no member", a);
  if (!l->item[i].missing)
    return lint_found(l->c, LINT_MISSING_COLLECTIVE, at, 1, "remove it",
                      "%s has no counterpart on the other ranks of its group", a);
  for (size_t k = i; k < l->n; k++) {
    lint_collective_lost_item *x = &l->item[k];
    if (!x->missing || x->told || !same(x->at, at[0])) continue;
    x->told = true;
    if (n <= SHOWN) at[n++] = (lint_at){x->proc, LINT_NONE};
  }
  return lint_found(l->c, LINT_MISSING_COLLECTIVE, at, n, NULL,
                    "%s is never joined by rank %u%s of its group", a, t->proc[at[1].proc].rank,
                    n > 2 ? " and others" : "");
}

iso_code lint_collective_report(lint_collective_lost *l) {
  iso_code c = ISO_OK;
  for (size_t i = 0; !c && i < l->n && l->n <= MANY; i++)
    for (size_t k = 0; !c && k < l->n && l->item[i].missing && !l->item[i].told; k++) {
      const lint_collective_lost_item *x = &l->item[k];
      if (!x->told && x->at.proc == l->item[i].proc &&
          lint_event_at(l->c->t, x->at)->group != lint_event_at(l->c->t, l->item[i].at)->group &&
          lint_collective_misfit(l->c->t, l->item[i].at, x->at) == LINT_KINDS)
        c = join(l, i, k);
    }
  for (size_t i = 0; !c && i < l->n; i++)
    if (!l->item[i].told) c = tell(l, i);
  return c;
}

/* ---- sizes ---- */

static const lint_extra *extra_of(const lint_trace *t, lint_at at) {
  const lint_event *e = lint_event_at(t, at);
  return e->extra ? &t->proc[at.proc].prog->extra[e->extra] : NULL;
}

static int64_t sum(const int64_t *v, uint32_t n) {
  int64_t s = 0;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_add_overflow(s, v[i], &s)) return INT64_MAX;
  return s;
}

/* A root is a rank; in a group of axes, which several have, it is a place in the group. */
static bool is_member(const lint_trace *t, const lint_group *g, int64_t root) {
  if (g->by_axes) return root < (int64_t)g->size;
  for (size_t i = 0; root < t->world && i < g->n; i++)
    if (g->member[i] == t->proc_of[root]) return true;
  return false;
}

/* Whether a result has the size that the input and the group's size ask for. */
static bool result_fits(const lint_event *e, int64_t n) {
  int64_t whole;
  switch (e->op) {
  case LINT_OP_ALL_REDUCE:
  case LINT_OP_ALL_TO_ALL: return e->out_numel == e->numel;
  case LINT_OP_ALL_GATHER:
    return !__builtin_mul_overflow(e->numel, n, &whole) && whole == e->out_numel;
  case LINT_OP_REDUCE_SCATTER:
    return !__builtin_mul_overflow(e->out_numel, n, &whole) && whole == e->numel;
  default: return true;
  }
}

const char *lint_own_fault(const lint_trace *t, const lint_group *g, lint_at at, lint_kind *kind) {
  const lint_event *e = lint_event_at(t, at);
  const lint_extra *x = extra_of(t, at);
  const bool in = x && x->n_in != LINT_NONE, out = x && x->n_out != LINT_NONE;
  *kind = LINT_SPLIT_MISMATCH;
  if ((in && x->n_in != g->size) || (out && x->n_out != g->size))
    return "it has not as many splits as the group has ranks";
  if (in && e->numel >= 0 && sum(x->in_split, x->n_in) != e->numel)
    return "the input splits do not add up to the input";
  if (out && e->out_numel >= 0 && sum(x->out_split, x->n_out) != e->out_numel)
    return "the output splits do not add up to the result";
  *kind = LINT_ROOT_MISMATCH;
  if (x && x->root >= 0 && !is_member(t, g, x->root)) return "the root is outside of the group";
  *kind = LINT_SIZE_MISMATCH;
  if (e->numel < 0 || e->out_numel < 0 || in || out || result_fits(e, (int64_t)g->size))
    return NULL;
  return "input and result do not fit the group's size";
}

static iso_code own_sizes(lint_check *c, const lint_group *g, lint_at at) {
  char where[LINT_TEXT];
  lint_kind k;
  const char *why = lint_own_fault(c->t, g, at, &k);
  if (!why) return ISO_OK;
  lint_where(c->t, at, where, sizeof where);
  return lint_found(c, k, &at, 1, NULL, "%s: %s", where, why);
}

/* k receives from i as much as i sends to k. */
static iso_code cross_splits(lint_check *c, const lint_group *g, const lint_at *at, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      const lint_extra *x = extra_of(c->t, at[i]), *y = extra_of(c->t, at[k]);
      lint_kind kind;
      if (!x || !y || x->n_in != n || y->n_out != n || x->in_split[k] == y->out_split[i]) continue;
      if (lint_own_fault(c->t, g, at[i], &kind) || lint_own_fault(c->t, g, at[k], &kind)) continue;
      char a[LINT_TEXT], b[LINT_TEXT];
      const lint_at both[2] = {at[i], at[k]};
      lint_where(c->t, at[i], a, sizeof a);
      lint_where(c->t, at[k], b, sizeof b);
      return lint_found(c, LINT_SPLIT_MISMATCH, both, 2, NULL,
                        "%s sends %" PRId64 " elements to %s, which expects %" PRId64, a,
                        x->in_split[k], b, y->out_split[i]);
    }
  return ISO_OK;
}

iso_code lint_check_sizes(lint_check *c, const lint_group *g, const lint_at *at, size_t n) {
  iso_code code = ISO_OK;
  for (size_t i = 0; !code && i < n; i++) {
    const lint_event *e = lint_event_at(c->t, at[i]);
    if (e->extra || (e->numel >= 0 && e->out_numel >= 0)) code = own_sizes(c, g, at[i]);
  }
  const bool splits = lint_event_at(c->t, at[0])->op == LINT_OP_ALL_TO_ALL && g->size == n;
  return !code && splits && lint_event_at(c->t, at[0])->extra ? cross_splits(c, g, at, n) : code;
}
