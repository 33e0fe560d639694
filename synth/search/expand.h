/* Private to frontier.c and expand.c: the search for one rule, and what is queued below a frontier.
 */
#ifndef SYNTH_SEARCH_EXPAND_H
#define SYNTH_SEARCH_EXPAND_H

#include "synth/search/search_int.h"

enum { QUEUE_MAX = 256 };

/* The first frontier whose rule is only tested. It is used where a few further ones have none that
 * is proved. */
typedef struct weak {
  opening of;
  bool there, taken;
} weak;

/* The search for one rule u = t. */
typedef struct search {
  state *s;
  eg_node u, t;
  cone *k;
  const uint8_t *base; /* by class id: cut unless it was opened */
  builder *b;          /* the patterns of the opening that was built last */
  opening *queue;
  size_t n, done; /* queue[0 .. done) were expanded */
  weak *weak;
  size_t looked;       /* others, since some wait */
  size_t unknown;      /* of the candidates: neither shown nor refuted */
  bool brief;          /* few frontiers are tried */
  bool taken;          /* one of the two is an operand of the other */
  struct search *home; /* where what a glance leaves open waits, while nothing else is queued */
  bool zeros; /* both are 0, since sums cancel, which says nothing for a rule: where the coarsest
                 frontier has none, those below have none either */
} search;

/* The cut of an opening, and with it the sizes of patterns. `b` is overwritten. Returns: false
 * where it has none. */
bool fr_open_cut(search *q, builder *b, const opening *o);
/* Queues `from` with more classes opened (or shut, or read: `how`). `favour`: its size at most, so
 * that it comes before larger ones, and it may be twice as large; negative: as it is. `b` is
 * overwritten. */
void fr_push(search *q, builder *b, const opening *from, const uint32_t *extra, size_t n_extra,
             uint8_t how, double favour);
bool fr_same_opening(const opening *a, const opening *b);
/* While ranks are joined, one step of all ranks is opened at once: a rule treats every rank alike,
 * and opening rank after rank would try as many rules in vain. `first`: from which class on of the
 * opening; the others are variables of the pattern at hand. */
void fr_open_peers(const search *q, opening *o, size_t first);
bool fr_is_constant(state *s, uint32_t c);
/* Queues the frontiers one step below `o`, whose patterns are in q->b: with that opened which one
 * side only depends on, all at once and one by one; then any class that both use. `refuted`: a
 * counterexample says that something was cut too high. */
void fr_expand(search *q, const opening *o, bool refuted);
/* The same for one that was refuted, whose patterns are built again. */
void fr_expand_again(search *q, const opening *o);

#endif
