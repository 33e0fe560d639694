/* Messages without another side. A send and a receive that differ in one thing, tag, group or peer,
 * were meant for each other: that is one finding, and it says the one thing. */
#include "lint/checks/match.h"

#include <stdio.h>

enum { MANY = 4096 }; /* beyond, each is told alone: looking for partners is quadratic */

static bool sends(const lint_check *c, const lint_lost *l) {
  return lint_event_at(c->t, l->at)->op == LINT_OP_SEND;
}

/* The kind of the one difference, in order of how little it is; LINT_KINDS where there is more. */
static lint_kind one_difference(const lint_check *c, const lint_lost *s, const lint_lost *r) {
  const bool tag = s->tag == r->tag, group = s->group == r->group;
  const bool src = s->src == r->src, dst = s->dst == r->dst;
  const lint_event *a = lint_event_at(c->t, s->at), *b = lint_event_at(c->t, r->at);
  const bool size = a->numel < 0 || b->numel < 0 || a->numel == b->numel;
  if (src && dst && group && !tag) return LINT_TAG_MISMATCH;
  if (src && dst && !group && tag) return LINT_GROUP_MISMATCH;
  if (group && tag && size && src != dst) return LINT_WRONG_PEER;
  return LINT_KINDS;
}

static iso_code tell_pair(lint_check *c, lint_lost *s, lint_lost *r, lint_kind k) {
  char a[LINT_TEXT], b[LINT_TEXT], mend[LINT_TEXT] = "";
  lint_at at[2] = {s->at, r->at};
  const lint_event *x = lint_event_at(c->t, s->at), *y = lint_event_at(c->t, r->at);
  lint_where(c->t, s->at, a, sizeof a);
  lint_where(c->t, r->at, b, sizeof b);
  s->told = r->told = true;
  if (k == LINT_TAG_MISMATCH)
    return lint_found(c, k, at, 2, NULL, "%s has tag %d and %s has tag %d", a, x->tag, b, y->tag);
  if (k == LINT_GROUP_MISMATCH)
    return lint_found(c, k, at, 2, NULL, "%s and %s are in different groups", a, b);
  /* Same source: the send names another peer than the one that waits for it. */
  if (s->src == r->src) snprintf(mend, sizeof mend, "send to rank %u", c->t->proc[r->dst].rank);
  else {
    snprintf(mend, sizeof mend, "receive from rank %u", c->t->proc[s->src].rank);
    at[0] = r->at, at[1] = s->at;
  }
  return lint_found(c, k, at, 2, mend, "%s and %s miss each other by their peers", a, b);
}

/* Of two kinds at hand the smaller difference goes first. */
static iso_code pair_up(lint_check *c, lint_lost *lost, size_t n, lint_kind k) {
  iso_code code = ISO_OK;
  for (size_t i = 0; !code && i < n; i++) {
    if (lost[i].told || !sends(c, &lost[i])) continue;
    for (size_t j = 0; !code && j < n && !lost[i].told; j++)
      if (!lost[j].told && !sends(c, &lost[j]) && one_difference(c, &lost[i], &lost[j]) == k)
        code = tell_pair(c, &lost[i], &lost[j], k);
  }
  return code;
}

/* The other sides of messages that went nowhere and are told. */
static void forgive(const lint_check *c, lint_lost *lost, size_t n) {
  for (size_t i = 0; i < n; i++) {
    lint_lost *x = &lost[i];
    if (x->src != LINT_NONE && x->dst != LINT_NONE) continue;
    for (size_t k = 0; k < n; k++) {
      lint_lost *y = &lost[k];
      const bool fits =
          sends(c, x) ? !sends(c, y) && y->src == x->src : sends(c, y) && y->dst == x->dst;
      if (y->told || !fits) continue;
      y->told = true;
      break;
    }
  }
}

iso_code lint_report_lost(lint_check *c, lint_lost *lost, size_t n) {
  static const lint_kind order[] = {LINT_TAG_MISMATCH, LINT_GROUP_MISMATCH, LINT_WRONG_PEER};
  iso_code code = ISO_OK;
  if (n <= MANY) forgive(c, lost, n);
  for (size_t i = 0; !code && n <= MANY && i < 3; i++) code = pair_up(c, lost, n, order[i]);
  for (size_t i = 0; !code && i < n; i++) {
    if (lost[i].told) continue;
    char a[LINT_TEXT];
    const bool s = sends(c, &lost[i]);
    lint_where(c->t, lost[i].at, a, sizeof a);
    code = lint_found(c, s ? LINT_UNMATCHED_SEND : LINT_UNMATCHED_RECV, &lost[i].at, 1, NULL,
                      s ? "%s sends what rank %u never receives"
                        : "%s receives what rank %u never sends",
                      a, c->t->proc[s ? lost[i].dst : lost[i].src].rank);
  }
  return code;
}
