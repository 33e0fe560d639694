/* Tensors that several ranks hold a part of each.
 *
 * Peers are the nodes that stand for the same step on each rank, or on each piece of a batch: found
 * from the collectives, the replicated outputs and what joins pieces (a concatenation, a sum of
 * results of one operator) backwards, in lockstep while the operators are the same, and from the
 * ranks in the nodes' names. That they are peers is a proposal only. Where the concatenation or the
 * sum of the peers' values is a tensor of the other graph, the concatenation (the sum) becomes a
 * node, and a rule has to join the two, as any two tensors of equal value.
 *
 * A block between two tensors that both graphs hold whole is tried in one piece first (a
 * feed-forward block against its two halves and their sum is one rule); only where that fails is it
 * taken apart at its shards. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/parts/parts.h"
#include "synth/parts/propose.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- proposing ---- */

static bool live(const state *s, int side, uint32_t node) {
  return s->map[side][node].i != EG_NONE;
}

/* The same tensor on all ranks is no news; neither are tensors of different kinds. */
static bool plausible(const state *s, int side, const uint32_t *node, uint32_t n) {
  if (n < 2 || n > MAX_RANKS) return false;
  const synth_node *a = &s->graph[side]->node[node[0]];
  bool differ = false;
  for (uint32_t r = 0; r < n; r++) {
    const synth_node *b = &s->graph[side]->node[node[r]];
    if (!live(s, side, node[r]) || b->kind != a->kind || b->n_outputs != a->n_outputs ||
        b->dtype != a->dtype || b->shape.rank != a->shape.rank)
      return false;
    differ |= node[r] != node[0];
  }
  return differ;
}

void st_propose(st_proposing *t, const uint32_t *node, uint32_t n) {
  state *s = t->s;
  if (t->code || !plausible(s, t->side, node, n)) return;
  const peers *known = st_peers_of(s, t->side, node, n);
  if (known && known->pieces && !t->pieces) {
    s->ranks.peers[known - s->ranks.peers].pieces = false;
    s->ranks.say[t->side].n_peers = 0;
    t->again = true;
  }
  if (known || t->known) return;
  uint32_t *copy = iso_arena_alloc(&s->arena, n * sizeof *copy);
  if (!copy || !iso_grow(s->ranks.peers, s->ranks.cap_peers, s->ranks.n_peers + 1)) {
    t->code = ISO_NOMEM;
    return;
  }
  memcpy(copy, node, n * sizeof *copy);
  s->ranks.peers[s->ranks.n_peers] = (peers){.side = t->side,
                                             .n = n,
                                             .node = copy,
                                             .pieces = t->pieces,
                                             .whole = {EG_NONE},
                                             .next = s->ranks.first_peers[t->side][node[0]]};
  s->ranks.first_peers[t->side][node[0]] = (uint32_t)s->ranks.n_peers++;
}

/* The terms of all ranks are walked together. */
static void follow_terms(st_proposing *t, const rule_term *const *term, uint32_t n) {
  uint32_t node[MAX_RANKS];
  for (uint32_t r = 0; r < n; r++) {
    if (term[r]->kind != term[0]->kind || term[r]->n != term[0]->n) return;
    if (term[r]->kind == RULE_OP && strcmp(term[r]->u.s, term[0]->u.s) != 0) return;
    if (term[r]->kind == RULE_VAR) node[r] = (uint32_t)term[r]->u.i;
  }
  if (term[0]->kind == RULE_VAR) {
    st_propose(t, node, n);
    return;
  }
  for (uint32_t k = 0; k < term[0]->n; k++) {
    const rule_term *child[MAX_RANKS];
    for (uint32_t r = 0; r < n; r++) child[r] = term[r]->child[k];
    follow_terms(t, child, n);
  }
}

static const char *operator_of(const st_proposing *t, uint32_t i) {
  const synth_node *n = &t->s->graph[t->side]->node[i];
  return n->kind == SYNTH_OP ? n->call->u.s : "";
}

enum { DEEP = 6 }; /* operators that only move numbers */

/* A result of `op` whose numbers are in those of a term, moved, and that is not `but`; what was
 * joined last comes first. UINT32_MAX: none. */
static uint32_t moved_into(const st_proposing *t, const rule_term *x, const char *op, uint32_t but,
                           int deep) {
  if (x->kind == RULE_VAR) {
    const uint32_t i = (uint32_t)x->u.i;
    const synth_node *n = &t->s->graph[t->side]->node[i];
    if (n->kind != SYNTH_OP) return UINT32_MAX;
    if (i != but && strcmp(n->call->u.s, op) == 0) return i;
    const rule_operator *o = rule_operator_of(n->call->u.s);
    const bool moves = o->moves || o->joins || o->identity || o->rearranges || o->part;
    return moves && deep > 0 ? moved_into(t, n->call, op, but, deep - 1) : UINT32_MAX;
  }
  uint32_t found = UINT32_MAX;
  for (uint32_t k = x->n; k-- > 0 && found == UINT32_MAX;)
    found = moved_into(t, x->child[k], op, but, deep);
  return found;
}

/* The tensor that the node copies: an alias, a part that is the whole, the one part of a whole. */
static uint32_t behind_copies(const st_proposing *t, uint32_t i) {
  const synth_node *g = t->s->graph[t->side]->node;
  while (g[i].kind == SYNTH_OP && g[i].call->n > 0) {
    const rule_operator *o = rule_operator_of(g[i].call->u.s);
    const rule_term *of = g[i].call->child[0];
    if (o->joins && of->kind == RULE_LIST && of->n == 1) of = of->child[0];
    else if (!o->identity && !o->part) break;
    if (of->kind != RULE_VAR || !rule_shape_eq(&g[of->u.i].shape, &g[i].shape)) break;
    i = (uint32_t)of->u.i;
  }
  return i;
}

/* One rank copies what another has as it is, or puts it behind what it had before: then what it
 * copies is the peer. */
static void look_behind(st_proposing *t, const uint32_t *of, uint32_t n) {
  const synth_node *g = t->s->graph[t->side]->node;
  uint32_t under[MAX_RANKS];
  for (uint32_t r = 0; r < n; r++) under[r] = behind_copies(t, of[r]);
  st_propose(t, under, n);
  for (uint32_t a = 0; a < n; a++) {
    uint32_t node[MAX_RANKS];
    bool other = false, found = g[of[a]].kind == SYNTH_OP;
    for (uint32_t r = 0; r < n && found; r++) {
      node[r] = of[r];
      if (strcmp(operator_of(t, of[r]), operator_of(t, of[a])) == 0) continue;
      const rule_term self = {.kind = RULE_VAR, .u.i = of[r]};
      node[r] = moved_into(t, &self, operator_of(t, of[a]), of[a], DEEP);
      other = true;
      found = node[r] != UINT32_MAX;
    }
    if (found && other) st_propose(t, node, n);
  }
}

/* What the collectives that are pieces' peers take, of all of them: each piece is of several ranks
 * then, which have no name in common. */
static void follow_collectives(st_proposing *t, const rule_term *const *call, uint32_t n) {
  uint32_t node[MAX_RANKS], all = 0, distinct = 0;
  if (n == 0 || !rule_is_collective(call[0]->u.s)) return;
  for (uint32_t r = 0; r < n; r++) {
    const rule_term *list = call[r]->child[0];
    bool seen = list->kind != RULE_LIST || strcmp(call[r]->u.s, call[0]->u.s) != 0;
    for (uint32_t q = 0; q < r && !seen; q++) seen = rule_term_eq(call[q], call[r]);
    if (seen) continue;
    if (all + list->n > MAX_RANKS) return;
    for (uint32_t k = 0; k < list->n; k++) {
      if (list->child[k]->kind != RULE_VAR) return;
      node[all++] = (uint32_t)list->child[k]->u.i;
    }
    distinct++;
  }
  if (distinct > 1) st_propose(t, node, all);
}

static void follow(st_proposing *t) {
  const synth_node *node = t->s->graph[t->side]->node;
  for (; t->todo < t->s->ranks.n_peers && !t->code; t->todo++) {
    const peers *p = &t->s->ranks.peers[t->todo];
    const rule_term *call[MAX_RANKS];
    if (node[p->node[0]].kind != SYNTH_OP || (t->shared && p->node[0] == p->node[1])) continue;
    for (uint32_t r = 0; r < p->n; r++) call[r] = node[p->node[r]].call;
    t->pieces = p->pieces;
    const uint32_t *const node_of = p->node; /* as `p` moves */
    const uint32_t n = p->n;
    follow_terms(t, call, n);
    if (t->pieces) follow_collectives(t, call, n);
    look_behind(t, node_of, n);
  }
}

/* Operands of several ranks' peers are several ranks', too. */
static void follow_ranks(st_proposing *t, size_t first) {
  t->known = true;
  t->pieces = false;
  do {
    const synth_node *node = t->s->graph[t->side]->node;
    t->again = false;
    for (size_t i = first; i < t->s->ranks.n_peers; i++) {
      const peers *p = &t->s->ranks.peers[i];
      const rule_term *call[MAX_RANKS];
      if (p->pieces || node[p->node[0]].kind != SYNTH_OP) continue;
      for (uint32_t r = 0; r < p->n; r++) call[r] = node[p->node[r]].call;
      follow_terms(t, call, p->n);
    }
  } while (t->again);
}

/* The tensors that a collective takes, one of each rank; or the pieces that a concatenation joins,
 * results of one operator. */
static void propose_list(st_proposing *t, const synth_node *n) {
  uint32_t node[MAX_RANKS];
  if (n->kind != SYNTH_OP || n->call->n == 0) return;
  const bool pieces = strcmp(n->call->u.s, OP_CAT) == 0;
  if (!pieces && !rule_is_collective(n->call->u.s)) return;
  const rule_term *list = n->call->child[0];
  if (list->kind != RULE_LIST || list->n > MAX_RANKS) return;
  for (uint32_t r = 0; r < list->n; r++) {
    if (list->child[r]->kind != RULE_VAR) return;
    node[r] = (uint32_t)list->child[r]->u.i;
    if (pieces && strcmp(operator_of(t, node[r]), operator_of(t, node[0])) != 0) return;
  }
  t->pieces = pieces;
  st_propose(t, node, list->n);
  t->pieces = false;
}

/* The summands of the sum at node `i`: results of one operator, each of a piece, or of a rank's
 * piece. Sums on the way are flagged: they are of fewer pieces. */
static void propose_sum(st_proposing *t, uint32_t i) {
  bool *inner = t->s->ranks.inner[t->side];
  uint32_t node[MAX_RANKS], each;
  const uint32_t n = inner[i] ? 0 : st_summands(t->s->graph[t->side], i, inner, node, &each);
  t->pieces = true;
  for (uint32_t k = 0; k < n; k += each) st_propose(t, node + k, each);
  t->pieces = false;
}

/* "r<rank>_<rest>". Returns: the rest, NULL where the name is not of that form. */
static const char *rank_of(const char *id, uint32_t *rank) {
  char *end;
  if (id[0] != 'r' || id[1] < '0' || id[1] > '9') return NULL;
  const unsigned long r = strtoul(id + 1, &end, 10);
  if (*end != '_' || r >= MAX_RANKS) return NULL;
  *rank = (uint32_t)r;
  return end + 1;
}

typedef struct named {
  const char *rest;
  uint32_t rank, node;
} named;

static int by_name(const void *pa, const void *pb) {
  const named *a = pa, *b = pb;
  const int c = strcmp(a->rest, b->rest);
  return c                    ? c
         : a->rank != b->rank ? (a->rank < b->rank ? -1 : 1)
         : a->node < b->node  ? -1
                              : a->node > b->node;
}

/* Ranks that hold leaves of mostly the same names, as a number for each rank: those of another
 * stage of a pipeline have others, and a name for another step. */
static void find_stages(const synth_graph *g, const named *all, size_t n, uint32_t *stage) {
  uint32_t own[MAX_RANKS] = {0};
  uint16_t both[MAX_RANKS][MAX_RANKS] = {{0}};
  for (size_t i = 0, k; i < n; i += k) {
    for (k = 1; i + k < n && strcmp(all[i].rest, all[i + k].rest) == 0;) k++;
    for (size_t a = i; a < i + k && g->node[all[i].node].kind != SYNTH_OP; a++) {
      own[all[a].rank]++;
      for (size_t b = i; b < i + k; b++) both[all[a].rank][all[b].rank]++;
    }
  }
  for (uint32_t a = 0; a < MAX_RANKS; a++) stage[a] = own[a] ? a : 0;
  for (uint32_t a = 0; a < MAX_RANKS; a++)
    for (uint32_t b = 0; b < a; b++) {
      const uint32_t least = own[a] < own[b] ? own[a] : own[b], was = stage[a];
      if (least == 0 || 2u * both[a][b] < least || stage[b] == was) continue;
      for (uint32_t r = 0; r < MAX_RANKS; r++)
        if (stage[r] == was) stage[r] = stage[b];
    }
}

/* Nodes of one name, of each stage by themselves. */
static void propose_stages(st_proposing *t, const named *all, size_t n, const uint32_t *stage) {
  for (size_t i = 0; i < n; i++) {
    uint32_t node[MAX_RANKS], k = 0;
    size_t first = 0;
    while (stage[all[first].rank] != stage[all[i].rank]) first++;
    for (size_t j = i; j < n && first == i; j++)
      if (stage[all[j].rank] == stage[all[i].rank]) node[k++] = all[j].node;
    if (k > 1) st_propose(t, node, k);
  }
}

static void propose_named(st_proposing *t) {
  const synth_graph *g = t->s->graph[t->side];
  named *all = calloc(g->n_nodes + 1, sizeof *all);
  uint32_t stage[MAX_RANKS];
  size_t n = 0;
  if (!all) {
    t->code = ISO_NOMEM;
    return;
  }
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    all[n].node = i;
    if (live(t->s, t->side, i) && (all[n].rest = rank_of(g->node[i].id, &all[n].rank))) n++;
  }
  if (n) qsort(all, n, sizeof *all, by_name);
  find_stages(g, all, n, stage);
  for (size_t i = 0, k; i < n; i += k) {
    for (k = 1; i + k < n && strcmp(all[i].rest, all[i + k].rest) == 0 && k < MAX_RANKS;) k++;
    if (k > 1) propose_stages(t, all + i, k, stage);
  }
  free(all);
}

/* The tensor that a node takes a part of, or the node. */
static uint32_t taken_from(const synth_graph *g, uint32_t i) {
  const synth_node *n = &g->node[i];
  if (n->kind != SYNTH_OP || !rule_operator_of(n->call->u.s)->part) return i;
  const rule_term *of = n->call->child[0];
  return of->kind == RULE_VAR ? (uint32_t)of->u.i : i;
}

/* Outputs that are replicas of one of the other side, or parts of one tensor there, stand beside
 * one another in the list. */
static void propose_outputs(st_proposing *t) {
  const synth_graph *g = t->s->graph[t->side], *other = t->s->graph[!t->side];
  uint32_t node[MAX_RANKS];
  for (size_t i = 0, k; i < g->n_outputs; i += k) {
    const uint32_t of = taken_from(other, other->output[i].node);
    for (k = 0; i + k < g->n_outputs && k < MAX_RANKS &&
                taken_from(other, other->output[i + k].node) == of;
         k++)
      node[k] = g->output[i + k].node;
    st_propose(t, node, (uint32_t)k);
  }
}

static int by_last_node(const void *pa, const void *pb) {
  const peers *a = pa, *b = pb;
  return a->last != b->last ? (a->last < b->last ? -1 : 1)
         : a->n != b->n     ? (a->n < b->n ? 1 : -1)
                            : memcmp(a->node, b->node, a->n * sizeof *a->node);
}

/* The peers by the node of the first rank. */
static void chain(state *s) {
  for (size_t i = 0; i < s->ranks.n_peers; i++)
    s->ranks.first_peers[s->ranks.peers[i].side][s->ranks.peers[i].node[0]] = UINT32_MAX;
  for (size_t i = 0; i < s->ranks.n_peers; i++) {
    uint32_t *first = &s->ranks.first_peers[s->ranks.peers[i].side][s->ranks.peers[i].node[0]];
    s->ranks.peers[i].next = *first;
    *first = (uint32_t)i;
  }
}

/* Of which peers each node is one. */
static bool place(state *s) {
  for (int side = 0; side < 2; side++) {
    const size_t n = s->graph[side]->n_nodes + 1;
    if (!(s->ranks.peers_at[side] = malloc(n * sizeof(uint32_t)))) return false;
    memset(s->ranks.peers_at[side], 0xff, n * sizeof(uint32_t));
  }
  for (size_t i = 0; i < s->ranks.n_peers; i++) {
    const peers *p = &s->ranks.peers[i];
    for (uint32_t r = 0; r < p->n; r++) s->ranks.peers_at[p->side][p->node[r]] = (uint32_t)i;
  }
  return true;
}

uint32_t st_peers_in(const state *s, eg_class of) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, of, &m);
  uint32_t found = UINT32_MAX;
  for (size_t i = 0; i < n && found == UINT32_MAX; i++)
    for (int side = 0; side < 2 && found == UINT32_MAX; side++)
      if (s->rec[m[i].i].node[side] >= 0)
        found = s->ranks.peers_at[side][s->rec[m[i].i].node[side]];
  return found;
}

const peers *st_peers_of(const state *s, int side, const uint32_t *node, uint32_t n) {
  const st_ranks *ranks = &s->ranks;
  for (uint32_t p = ranks->first_peers[side][node[0]]; p != UINT32_MAX; p = ranks->peers[p].next)
    if (ranks->peers[p].n == n && memcmp(ranks->peers[p].node, node, n * sizeof *node) == 0)
      return &ranks->peers[p];
  return NULL;
}

bool st_has_collective(const state *s, int side) {
  const synth_graph *g = s->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && rule_operator_of(g->node[i].call->u.s)->collective)
      return true;
  return false;
}

iso_code st_find_peers(state *s, iso_error *err) {
  st_find_norms(s);
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    const size_t first = s->ranks.n_peers;
    st_proposing t = {.s = s, .side = side, .todo = first};
    if (!(s->ranks.first_peers[side] = malloc((g->n_nodes + 1) * sizeof(uint32_t))))
      return nomem(err);
    memset(s->ranks.first_peers[side], 0xff, (g->n_nodes + 1) * sizeof(uint32_t));
    if (!(s->ranks.inner[side] = calloc(g->n_nodes + 1, 1))) return nomem(err);
    for (uint32_t i = 0; i < g->n_nodes; i++)
      if (live(s, side, i)) propose_list(&t, &g->node[i]);
    for (uint32_t i = (uint32_t)g->n_nodes; i-- > 0;)
      if (live(s, side, i)) propose_sum(&t, i);
    propose_outputs(&t);
    follow(&t);
    t.pieces = false;
    propose_named(&t);
    t.shared = true;
    follow(&t);
    follow_ranks(&t, first);
    st_propose_grids(&t);
    if (t.code) return nomem(err);
  }
  for (int side = 0; side < 2; side++)
    if (!st_propose_groups(s, side)) return nomem(err);
  size_t n[2] = {0, 0};
  for (size_t i = 0; i < s->ranks.n_peers; i++) n[s->ranks.peers[i].side]++;
  /* Experts one by one are peers, too, and no ranks. */
  bool *const collective = s->ranks.collective;
  for (int side = 0; side < 2; side++) collective[side] = st_has_collective(s, side);
  const bool exchanged =
      n[LEFT] > n[RIGHT] && !collective[RIGHT] && (collective[LEFT] || n[RIGHT] == 0);
  s->ranks.whole_side = exchanged ? RIGHT : LEFT;
  for (size_t i = 0; i < s->ranks.n_peers; i++)
    for (uint32_t r = 0; r < s->ranks.peers[i].n; r++)
      if (s->ranks.peers[i].node[r] > s->ranks.peers[i].last)
        s->ranks.peers[i].last = s->ranks.peers[i].node[r];
  /* In the order of the graphs: tensors put together from others come after them. */
  if (s->ranks.n_peers)
    qsort(s->ranks.peers, s->ranks.n_peers, sizeof *s->ranks.peers, by_last_node);
  chain(s);
  return place(s) ? ISO_OK : nomem(err);
}
