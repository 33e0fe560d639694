/* Which nodes are one tensor of the program, on each rank.
 *
 * A rank's operators in their order are its program. Programs of two ranks are aligned by their
 * operators' names, so that one that only some ranks have shifts nothing; a collective stands in
 * the program of each of its members. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_ALIGNED = 4096 /* operators of a rank between which differences are looked for */ };

const char *plc_leaf_name(const char *name, uint32_t *rank) {
  char *end;
  if (strncmp(name, "rank", 4) != 0 || name[4] < '0' || name[4] > '9') return NULL;
  const unsigned long r = strtoul(name + 4, &end, 10);
  if (*end != '.' || r >= PLC_RANKS || !end[1]) return NULL;
  *rank = (uint32_t)r;
  return end + 1;
}

bool plc_node_rank(const cap_node *n, uint32_t *rank) {
  const char *id = n->id;
  char *end;
  if (id[0] != 'r' || id[1] < '0' || id[1] > '9') return false;
  const unsigned long r = strtoul(id + 1, &end, 10);
  if (*end != '_' || r >= PLC_RANKS) return false;
  *rank = (uint32_t)r;
  return true;
}

const rule_term *plc_group_list(const cap_node *n) {
  if (!n->call || !rule_is_collective(n->call->u.s) || n->call->n == 0) return NULL;
  const rule_term *list = n->call->child[0];
  if (list->kind != RULE_LIST || list->n == 0) return NULL;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->child[i]->kind != RULE_VAR) return NULL;
  return list;
}

/* ---- who holds what ---- */

static uint64_t everybody(const plc *x) {
  return x->mesh.n == 64 ? UINT64_MAX : (UINT64_C(1) << x->mesh.n) - 1;
}

static uint64_t readers_of(const plc *x, const rule_term *t) {
  uint64_t all = everybody(x), out = all;
  if (t->kind == RULE_VAR) return x->ranks_of[t->u.i];
  for (uint32_t i = 0; i < t->n; i++) {
    const uint64_t m = readers_of(x, t->child[i]);
    if (m != all) out = out == all ? m : out & m ? out & m : out | m;
  }
  return out;
}

static uint64_t nth_bit(uint64_t m, uint32_t n) {
  while (n-- > 0) m &= m - 1;
  return m & (~m + 1);
}

/* Of the ranks that hold an operand, which one its name says that it is of. PLC_NONE: it says none.
 */
static uint32_t named_place(const plc *x, size_t i) {
  const rule_term *list = plc_group_list(plc_node(x, (uint32_t)i));
  uint32_t rank;
  if (!plc_node_rank(plc_node(x, (uint32_t)i), &rank)) return PLC_NONE;
  for (uint32_t k = 0; k < list->n; k++) {
    const uint64_t m = x->ranks_of[list->child[k]->u.i];
    if (m >> rank & 1) return (uint32_t)__builtin_popcountll(m & ((UINT64_C(1) << rank) - 1));
  }
  return PLC_NONE;
}

/* How many collectives are like node `i`, and which of them it is: by names, where these tell all
 * apart, else by how many are before it. */
static uint32_t alike(const plc *x, size_t i, uint32_t *which) {
  const uint32_t named = named_place(x, i);
  uint64_t taken = 0;
  uint32_t n = 0, before = 0;
  bool told = true;
  for (size_t k = 0; k < x->g->n_nodes; k++) {
    const cap_node *o = &x->g->node[k];
    if (k == i) before = n;
    if (!o->call || !rule_term_eq(o->call, x->g->node[i].call)) continue;
    const uint32_t place = named_place(x, k);
    told &= place != PLC_NONE && !(taken >> place & 1);
    if (told) taken |= UINT64_C(1) << place;
    n++;
  }
  *which = told ? named : before;
  return n;
}

/* A collective's k-th tensor is of the k-th of its ranks. Where several ranks hold each tensor, as
 * across groups that have reduced it, as many collectives meet, each of one rank of each. */
static uint64_t members(const plc *x, size_t i, const rule_term *list) {
  uint64_t out = 0, first = x->ranks_of[list->child[0]->u.i], picked = 0;
  uint32_t which = 0, n = 0;
  bool same = true, apart = true;
  if (list->n == x->mesh.n) return everybody(x);
  for (uint32_t k = 0; k < list->n; k++) {
    const uint64_t m = x->ranks_of[list->child[k]->u.i];
    same &= m == first;
    apart &= !(out & m) && __builtin_popcountll(m) == __builtin_popcountll(first);
    out |= m;
  }
  /* Replicas that a collective gave have its members. */
  if (same && __builtin_popcountll(first) == (int)list->n) return first;
  if (apart && first & (first - 1)) n = alike(x, i, &which);
  if (!n || (int)n != __builtin_popcountll(first)) return out;
  for (uint32_t k = 0; k < list->n; k++) picked |= nth_bit(x->ranks_of[list->child[k]->u.i], which);
  return picked;
}

/* The rank whose part of a collective is at `place`. */
static uint32_t member_at(uint64_t ranks, uint32_t place) {
  for (uint32_t r = 0; r < 64; r++)
    if (ranks >> r & 1 && place-- == 0) return r;
  return PLC_NONE;
}

static void find_ranks(plc *x) {
  for (size_t i = 0; i < x->g->n_nodes; i++) {
    const cap_node *n = &x->g->node[i];
    const rule_term *list = plc_group_list(n);
    uint32_t rank;
    if (n->kind != CAP_OP)
      x->ranks_of[i] = plc_leaf_name(n->name, &rank) ? UINT64_C(1) << rank : everybody(x);
    else if (list) x->ranks_of[i] = members(x, i, list);
    else if (rule_is_getitem(n->op)) {
      const uint32_t of = (uint32_t)n->call->child[0]->u.i;
      const uint32_t k = (uint32_t)n->call->child[1]->u.i;
      const rule_term *from = plc_group_list(plc_node(x, of));
      x->ranks_of[i] = x->ranks_of[of];
      if (from && (rank = member_at(x->ranks_of[of], k)) != PLC_NONE)
        x->ranks_of[i] = UINT64_C(1) << rank;
    } else if (plc_node_rank(n, &rank) && rank < x->mesh.n) x->ranks_of[i] = UINT64_C(1) << rank;
    else x->ranks_of[i] = readers_of(x, n->call);
  }
}

/* ---- tuples ---- */

static plc_tuple *new_tuple(plc *x) {
  if (plc_failed(x)) return NULL;
  uint32_t *node = iso_arena_alloc(&x->steps, x->mesh.n * sizeof *node);
  plc_tuple *t = iso_arena_alloc(&x->steps, sizeof *t);
  if (!iso_grow(x->tuple, x->cap_tuples, x->n_tuples + 1)) plc_need(x, NULL);
  if (!plc_need(x, node) || !plc_need(x, t) || plc_failed(x)) return NULL;
  x->tuple[x->n_tuples] = t;
  *t = (plc_tuple){.node = node,
                   .id = (uint32_t)x->n_tuples++,
                   .regrown = PLC_NONE,
                   .stands_for = PLC_NONE,
                   .guess = PLC_NONE,
                   .n_out = 1};
  for (uint32_t r = 0; r < x->mesh.n; r++) node[r] = PLC_NONE;
  return t;
}

static void put(plc *x, plc_tuple *t, uint32_t rank, uint32_t node) {
  if (x->step_of[node] != PLC_NONE && x->step_of[node] != t->id) return; /* of another step */
  t->node[rank] = node;
  x->step_of[node] = t->id;
  t->collective |= plc_group_list(plc_node(x, node)) != NULL;
  /* The tensors of a collective are its ranks' parts of one. */
  t->n_out = t->collective ? 1 : (uint32_t)plc_node(x, node)->n_outputs;
  t->leaf |= plc_node(x, node)->kind != CAP_OP;
}

static bool agrees(const plc *x, const plc_tuple *t, const uint32_t *node) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (node[r] != PLC_NONE && node[r] != t->node[r]) return false;
  return true;
}

uint32_t plc_intern(plc *x, const uint32_t *node) {
  uint32_t first = 0;
  while (first < x->mesh.n && node[first] == PLC_NONE) first++;
  if (first == x->mesh.n) return PLC_NONE;
  const uint32_t step = x->step_of[node[first]];
  if (step != PLC_NONE && agrees(x, x->tuple[step], node)) return step;
  for (size_t i = x->n_tuples; i-- > 0 && x->tuple[i]->mixed;)
    if (memcmp(x->tuple[i]->node, node, x->mesh.n * sizeof *node) == 0) return (uint32_t)i;
  plc_tuple *t = new_tuple(x);
  if (!t) return PLC_NONE;
  memcpy(t->node, node, x->mesh.n * sizeof *node);
  t->mixed = true;
  t->n_out = (uint32_t)plc_node(x, node[first])->n_outputs;
  return t->id;
}

/* Leaves of one name are one tensor. */
static void leaf_steps(plc *x) {
  for (size_t i = 0; i < x->g->n_nodes && !plc_failed(x); i++) {
    const cap_node *n = &x->g->node[i];
    uint32_t rank = 0, other;
    const char *name = n->kind == CAP_OP ? NULL : plc_leaf_name(n->name, &rank);
    plc_tuple *t = NULL;
    if (n->kind == CAP_OP || !x->ranks_of[i]) continue;
    if (name) rank = (uint32_t)__builtin_ctzll(x->ranks_of[i]);
    for (size_t k = 0; name && k < x->n_tuples && !t; k++) {
      plc_tuple *u = x->tuple[k];
      uint32_t r = 0;
      while (u->node[r] == PLC_NONE) r++;
      const char *known = plc_leaf_name(plc_node(x, u->node[r])->name, &other);
      if (known && strcmp(known, name) == 0 && u->node[rank] == PLC_NONE) t = u;
    }
    if (!t && !(t = new_tuple(x))) return;
    if (name) put(x, t, rank, (uint32_t)i);
    for (uint32_t r = 0; r < x->mesh.n && !name; r++) put(x, t, r, (uint32_t)i);
  }
}

/* ---- aligning ---- */

typedef struct program {
  uint32_t *node, n;
} program;

/* An id without its rank; of a collective, that of its first tensor. */
static const char *rest_of(const plc *x, uint32_t i) {
  uint32_t rank;
  const rule_term *list = plc_group_list(plc_node(x, i));
  const cap_node *n = list ? plc_node(x, (uint32_t)list->child[0]->u.i) : plc_node(x, i);
  return n->kind == CAP_OP && plc_node_rank(n, &rank) ? strchr(n->id, '_') : NULL;
}

/* The first leaf that only some ranks have and that a node depends on, such as an optimizer's state
 * of which each rank has a part; PLC_NONE: there is none. Results of collectives count as
 * common. */
static uint32_t own_leaf(const plc *x, const uint32_t *own, const rule_term *t) {
  uint32_t first = t->kind == RULE_VAR ? own[t->u.i] : PLC_NONE;
  for (uint32_t i = 0; i < t->n; i++) {
    const uint32_t other = own_leaf(x, own, t->child[i]);
    if (other < first) first = other;
  }
  return first;
}

static void find_own(plc *x, uint32_t *own) {
  for (size_t i = 0; i < x->g->n_nodes; i++) {
    const cap_node *n = &x->g->node[i];
    own[i] = PLC_NONE;
    if (n->kind == CAP_OP && !plc_group_list(n)) own[i] = own_leaf(x, own, n->call);
    if (n->kind == CAP_OP || x->step_of[i] == PLC_NONE) continue;
    for (uint32_t r = 0; r < x->mesh.n; r++)
      if (x->tuple[x->step_of[i]]->node[r] == PLC_NONE) own[i] = x->step_of[i];
  }
}

/* Whether two calls read leaves of other names at one place. Constants have numbers for names. */
static bool other_leaves(const plc *x, const rule_term *s, const rule_term *t) {
  if (s->kind == RULE_VAR && t->kind == RULE_VAR) {
    const cap_node *a = plc_node(x, (uint32_t)s->u.i), *b = plc_node(x, (uint32_t)t->u.i);
    const bool named = (a->kind == CAP_PARAMETER || a->kind == CAP_INPUT) &&
                       (b->kind == CAP_PARAMETER || b->kind == CAP_INPUT);
    return named && x->step_of[s->u.i] != x->step_of[t->u.i];
  }
  for (uint32_t i = 0; i < s->n && i < t->n; i++)
    if (other_leaves(x, s->child[i], t->child[i])) return true;
  return false;
}

/* How likely two nodes are one step: 0, not at all. */
static uint32_t closeness(const plc *x, const uint32_t *own, uint32_t a, uint32_t b) {
  const cap_node *p = plc_node(x, a), *q = plc_node(x, b);
  if (a == b) return 3;
  if (own[a] != own[b] && own[a] != PLC_NONE && own[b] != PLC_NONE) return 0;
  if (!plc_group_list(p) && other_leaves(x, p->call, q->call)) return 0;
  if (strcmp(p->op, q->op) != 0 || p->call->n != q->call->n || p->n_outputs != q->n_outputs)
    return 0;
  const char *s = rest_of(x, a), *t = rest_of(x, b);
  if (s && t && strcmp(s, t) == 0) return 3;
  return rule_shape_eq(&p->output[0].shape, &q->output[0].shape) ? 2 : 1;
}

static bool has(const plc *x, size_t i, uint32_t rank) {
  return x->g->node[i].kind == CAP_OP && x->ranks_of[i] >> rank & 1;
}

/* The operand of a rank in a collective, or the collective of which `i` is a part; else PLC_NONE.
 */
static uint32_t follows(const plc *x, uint32_t i, uint32_t rank) {
  const cap_node *n = plc_node(x, i);
  const rule_term *list = plc_group_list(n);
  if (list) {
    const uint64_t below = x->ranks_of[i] & ((UINT64_C(1) << rank) - 1);
    const uint32_t place = (uint32_t)__builtin_popcountll(below);
    return place < list->n ? (uint32_t)list->child[place]->u.i : PLC_NONE;
  }
  const bool part =
      rule_is_getitem(n->op) && plc_group_list(plc_node(x, (uint32_t)n->call->child[0]->u.i));
  return part ? (uint32_t)n->call->child[0]->u.i : PLC_NONE;
}

typedef struct ordering {
  uint32_t *first, *next; /* by node: those that follow it */
  uint32_t *stack;        /* of nodes that are next, each level's after what follows it */
} ordering;

/* The nodes of a list, each with all that follows it. */
static void put_in_order(ordering *o, uint32_t head, program *out) {
  uint32_t depth = 0;
  for (uint32_t i = head; i != PLC_NONE;) {
    out->node[out->n++] = i;
    if (o->next[i] != PLC_NONE) o->stack[depth++] = o->next[i];
    i = o->first[i];
    if (i == PLC_NONE && depth) i = o->stack[--depth];
  }
}

/* When ranks meet, they may be at other places of their programs: a collective comes after the
 * tensor that the rank gives to it, for each rank. Those of leaves come first. */
static program program_of(plc *x, uint32_t rank) {
  const size_t n = x->g->n_nodes;
  program p = {.node = iso_arena_alloc(&x->steps, (n + 1) * sizeof *p.node)};
  uint32_t *all = malloc(3 * (n + 1) * sizeof *all), *first = all;
  if (plc_need(x, p.node) && plc_need(x, all)) {
    uint32_t *next = all + n + 1;
    ordering o = {first, next, next + n + 1};
    memset(all, 0xff, 2 * (n + 1) * sizeof *all);
    for (uint32_t i = (uint32_t)n; i-- > 0;) {
      const uint32_t of = has(x, i, rank) ? follows(x, i, rank) : PLC_NONE;
      const uint32_t at = of == PLC_NONE || has(x, of, rank) ? of : (uint32_t)n;
      if (of == PLC_NONE) continue;
      next[i] = first[at];
      first[at] = i;
    }
    put_in_order(&o, first[n], &p);
    for (uint32_t i = 0; i < n; i++)
      if (has(x, i, rank) && follows(x, i, rank) == PLC_NONE) put_in_order(&o, i, &p);
  }
  free(all);
  return p;
}

/* The closest common subsequence of the steps between ends that surely belong together: by[i] is
 * the place in b of a's i-th, or PLC_NONE. */
static void align(plc *x, const uint32_t *own, const program *a, const program *b, uint32_t *by) {
  uint32_t lo = 0, tail = 0;
  for (uint32_t i = 0; i < a->n; i++) by[i] = PLC_NONE;
  while (lo < a->n && lo < b->n && closeness(x, own, a->node[lo], b->node[lo]) == 3)
    by[lo] = lo, lo++;
  while (tail < a->n - lo && tail < b->n - lo &&
         closeness(x, own, a->node[a->n - 1 - tail], b->node[b->n - 1 - tail]) == 3) {
    by[a->n - 1 - tail] = b->n - 1 - tail;
    tail++;
  }
  const uint32_t na = a->n - lo - tail, nb = b->n - lo - tail, w = nb + 1;
  if (na == 0 || nb == 0 || na > MOST_ALIGNED || nb > MOST_ALIGNED) return;
  uint16_t *best = calloc((size_t)(na + 1) * w, sizeof *best);
  if (!plc_need(x, best)) return;
  for (uint32_t i = na; i-- > 0;)
    for (uint32_t k = nb; k-- > 0;) {
      const uint16_t down = best[(i + 1) * w + k], right = best[i * w + k + 1];
      const uint32_t close = closeness(x, own, a->node[lo + i], b->node[lo + k]);
      const uint32_t both = close ? best[(i + 1) * w + k + 1] + close : 0;
      best[i * w + k] = (uint16_t)(both > down && both > right ? both
                                   : down > right              ? down
                                                               : right);
    }
  for (uint32_t i = 0, k = 0; i < na && k < nb;) {
    const uint32_t close = closeness(x, own, a->node[lo + i], b->node[lo + k]);
    if (close && best[i * w + k] == best[(i + 1) * w + k + 1] + close) {
      by[lo + i++] = lo + k;
      k++;
    } else if (best[(i + 1) * w + k] >= best[i * w + k + 1]) i++;
    else k++;
  }
  free(best);
}

/* A call that a rank has beside the first's program is of steps that may have other ranks, too. */
static void rest_steps(plc *x, const program *all) {
  for (uint32_t r = 1; r < x->mesh.n && !plc_failed(x); r++)
    for (uint32_t i = 0; i < all[r].n; i++) {
      if (x->step_of[all[r].node[i]] != PLC_NONE) continue;
      plc_tuple *t = new_tuple(x);
      if (!t) return;
      for (uint32_t s = 0; s < x->mesh.n; s++)
        if (x->ranks_of[all[r].node[i]] >> s & 1) put(x, t, s, all[r].node[i]);
    }
}

/* Along which axes the ranks of a collective meet. */
static void find_axes(plc *x, plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n && t->collective; r++)
    for (uint32_t q = 0; q < r && t->node[r] != PLC_NONE; q++)
      for (uint32_t a = 0; a < x->mesh.n_axes && x->ranks_of[t->node[r]] >> q & 1; a++)
        if (plc_along(&x->mesh, r, a) != plc_along(&x->mesh, q, a)) t->axes |= UINT32_C(1) << a;
}

void plc_find_steps(plc *x) {
  program all[PLC_RANKS] = {{0}};
  uint32_t *by[PLC_RANKS] = {0};
  uint32_t *own = iso_arena_alloc(&x->steps, (x->g->n_nodes + 1) * sizeof *own);
  if (!x->among) find_ranks(x);
  leaf_steps(x);
  if (plc_need(x, own) && !plc_failed(x)) find_own(x, own);
  for (uint32_t r = 0; r < x->mesh.n && !plc_failed(x); r++) {
    all[r] = program_of(x, r);
    by[r] = iso_arena_alloc(&x->steps, (all[0].n + 1) * sizeof *by[r]);
    if (plc_need(x, by[r]) && !plc_failed(x)) align(x, own, &all[0], &all[r], by[r]);
  }
  for (uint32_t i = 0; i < all[0].n && !plc_failed(x); i++) {
    if (x->step_of[all[0].node[i]] != PLC_NONE) continue;
    plc_tuple *t = new_tuple(x);
    for (uint32_t r = 0; t && r < x->mesh.n; r++)
      if (by[r][i] != PLC_NONE) put(x, t, r, all[r].node[by[r][i]]);
    for (uint32_t r = 1; t && r < x->mesh.n; r++) /* one collective, wherever a rank has it */
      if (t->node[r] == PLC_NONE && t->collective && x->ranks_of[all[0].node[i]] >> r & 1)
        put(x, t, r, all[0].node[i]);
  }
  rest_steps(x, all);
  for (size_t i = 0; i < x->n_tuples; i++) find_axes(x, x->tuple[i]);
}
