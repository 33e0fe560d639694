/* Micro-batches: parts of one input, and what is computed from each.
 *
 * Results of ranks from several micro-batches are a grid. A micro-batch of one graph may be the
 * rows of several ranks of the other, or of several smaller micro-batches there. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/parts/parts.h"
#include "synth/parts/propose.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

/* The first peers of `n` that node `i` begins, pieces or ranks; NULL: none. */
static const peers *begun_by(const st_proposing *t, uint32_t i, uint32_t n, bool pieces) {
  const st_ranks *ranks = &t->s->ranks;
  for (uint32_t p = ranks->first_peers[t->side][i]; p != UINT32_MAX; p = ranks->peers[p].next)
    if (ranks->peers[p].pieces == pieces && (n == 0 || ranks->peers[p].n == n))
      return &ranks->peers[p];
  return NULL;
}

/* Whether `n` pieces that begin with node `i` are known, none of them twice. */
static bool has_grid(const st_proposing *t, uint32_t i, uint32_t n) {
  const st_ranks *ranks = &t->s->ranks;
  for (uint32_t p = ranks->first_peers[t->side][i]; p != UINT32_MAX; p = ranks->peers[p].next) {
    const peers *q = &ranks->peers[p];
    bool apart = q->pieces && q->n == n;
    for (uint32_t k = 1; k < n && apart; k++) apart = q->node[k] != i;
    if (apart) return true;
  }
  return false;
}

/* An operator that takes a part of its operand, or lays it out otherwise: of a batch that is seen
 * as the ranks' rows a micro-batch is a part along the second dimension. */
static bool parts_or_turns(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return rule_is_getitem(op) || o->part || o->rearranges;
}

/* The input that the node is a part of; UINT32_MAX: it is none. */
static uint32_t input_of(const state *s, int side, uint32_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  while (n->kind == SYNTH_OP && n->call->n && n->call->child[0]->kind == RULE_VAR &&
         parts_or_turns(n->call->u.s)) {
    i = (uint32_t)n->call->child[0]->u.i;
    n = &s->graph[side]->node[i];
  }
  return n->kind == SYNTH_INPUT ? i : UINT32_MAX;
}

static bool of_batch(const st_proposing *t, const bool *batch, const rule_term *const *term,
                     uint32_t n) {
  uint32_t node[MAX_RANKS];
  for (uint32_t r = 0; r < n; r++) {
    if (term[r]->kind != term[0]->kind || term[r]->n != term[0]->n) return false;
    if (term[r]->kind == RULE_VAR) node[r] = (uint32_t)term[r]->u.i;
  }
  if (term[0]->kind == RULE_VAR) {
    const peers *p = st_peers_of(t->s, t->side, node, n);
    return p && batch[p - t->s->ranks.peers];
  }
  for (uint32_t k = 0; k < term[0]->n; k++) {
    const rule_term *child[MAX_RANKS];
    for (uint32_t r = 0; r < n; r++) child[r] = term[r]->child[k];
    if (of_batch(t, batch, child, n)) return true;
  }
  return false;
}

/* Whether the peers are parts of one input, or results of one operator on such parts. */
static bool is_batch(const st_proposing *t, const bool *batch, const peers *p) {
  const synth_node *node = t->s->graph[t->side]->node;
  const uint32_t input = input_of(t->s, t->side, p->node[0]);
  const rule_term *call[MAX_RANKS];
  bool parts = input != UINT32_MAX;
  for (uint32_t k = 0; k < p->n; k++) {
    parts &= input_of(t->s, t->side, p->node[k]) == input && node[p->node[k]].kind == SYNTH_OP;
    call[k] = node[p->node[k]].call;
    if (node[p->node[k]].kind != SYNTH_OP || strcmp(call[k]->u.s, call[0]->u.s) != 0) return false;
  }
  return parts || of_batch(t, batch, call, p->n);
}

/* How many parts of one input the peers are; 0: something else. */
static uint32_t parts_of_input(const state *s, const peers *p) {
  const uint32_t input = input_of(s, p->side, p->node[0]);
  bool parts = p->pieces && input != UINT32_MAX && input != p->node[0];
  for (uint32_t k = 1; k < p->n && parts; k++) parts = input_of(s, p->side, p->node[k]) == input;
  return parts ? p->n : 0;
}

/* What all peers of a side tell is asked for each of them. */
static const st_peers_say *all_say(state *s, int side) {
  st_peers_say *x = &s->ranks.say[side];
  if (x->n_peers == s->ranks.n_peers) return x;
  *x = (st_peers_say){.n_peers = s->ranks.n_peers};
  for (size_t i = 0; i < s->ranks.n_peers; i++) {
    const peers *p = &s->ranks.peers[i];
    if (p->side != side) continue;
    const uint32_t parts = parts_of_input(s, p);
    if (!p->pieces && p->n > x->most) x->most = p->n;
    if (parts && (!x->batches || parts < x->batches)) x->batches = parts;
  }
  return x;
}

uint32_t st_n_batches(state *s, int side) { return all_say(s, side)->batches; }

uint32_t st_most_ranks(state *s, int side) { return all_say(s, side)->most; }

void st_propose_grids(st_proposing *t) {
  const st_ranks *ranks = &t->s->ranks;
  const size_t n_peers = ranks->n_peers;
  bool *batch = calloc(n_peers + 1, 1);
  if (!batch) t->code = ISO_NOMEM;
  for (bool more = batch != NULL; more;) {
    more = false;
    for (size_t i = n_peers; i-- > 0;) {
      const peers *p = &ranks->peers[i];
      if (p->side != t->side || !p->pieces || batch[i] || !is_batch(t, batch, p)) continue;
      more = batch[i] = true;
    }
  }
  t->known = false;
  t->pieces = true;
  for (size_t i = 0; i < n_peers && !t->code; i++) {
    const peers p = ranks->peers[i];
    uint32_t node[MAX_RANKS], n = 0, each = 0;
    if (!batch[i]) continue;
    for (uint32_t k = 0; k < p.n; k++) {
      const peers *of = begun_by(t, p.node[k], each, false);
      if (!of || n + of->n > MAX_RANKS) break;
      each = of->n;
      memcpy(node + n, of->node, each * sizeof *node);
      n += each;
    }
    if (each && n == p.n * each && !has_grid(t, node[0], n)) st_propose(t, node, n);
  }
  free(batch);
}

bool st_propose_groups(state *s, int side) {
  st_proposing t = {.s = s, .side = side};
  const size_t n_peers = s->ranks.n_peers;
  const uint32_t groups = st_n_batches(s, !side);
  for (size_t i = 0; i < n_peers && groups > 1; i++) {
    const peers p = s->ranks.peers[i];
    const uint32_t each = p.n / groups;
    if (p.side != side || p.n % groups != 0 || each < 2) continue;
    t.pieces = p.pieces;
    for (uint32_t k = 0; k < 2 * groups; k++) {
      uint32_t node[MAX_RANKS];
      for (uint32_t j = 0; j < each; j++)
        node[j] = p.node[k < groups ? k * each + j : j * groups + k - groups];
      st_propose(&t, node, each);
    }
  }
  return t.code == ISO_OK;
}
