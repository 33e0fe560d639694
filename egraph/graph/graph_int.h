/* Private to egraph/: the engine's data.
 *
 * An e-class id is the id of the e-node for which the class was made; e-node i is made together
 * with class i. So one id space serves union-find, proof forest and class table, and an original
 * child names the e-node it meant.
 *
 * Invariants (checked by eg_check)
 *   I1  an e-node that is not `twin` is in the hashcons under the words of its key; a twin is not.
 *   I2  the key of an e-node that is neither twin nor queued in `stale` has canonical children
 *       only.
 *   I3  no two keys in the hashcons are equal.
 *   I4  an e-node with a canonical child c is in the parent list of c.
 *   I5  an e-class is exactly one tree of the proof forest; each merge of two classes added one
 *       edge.
 *   I6  the premises of a congruence edge are connected by edges with smaller ids.
 *
 * A merge takes all its room beforehand (egi_union_reserve), so it either happens as a whole or not
 * at all. */
#ifndef EGRAPH_GRAPH_GRAPH_INT_H
#define EGRAPH_GRAPH_GRAPH_INT_H

#include "egraph/base/arena.h"
#include "egraph/egraph.h"

/* A set of e-nodes: up to two in place, more in malloc'ed memory. */
typedef struct egi_list {
  union {
    eg_node few[2];
    eg_node *many;
  } at;
  uint32_t n, cap; /* cap 0: in place */
  uint32_t sorted; /* the first so many are in ascending order, each once */
} egi_list;

/* Open addressing with linear probing, at most half full; id EG_NONE is a free slot. Never walked
 * in slot order. */
typedef struct egi_slot {
  uint32_t hash, id;
} egi_slot;
typedef struct egi_table {
  egi_slot *slot;
  size_t n, n_slots; /* n_slots: 0 or a power of two */
} egi_table;

/* First in, first out, through links by id, so that a push needs no memory. A link is EG_NONE where
 * the id is not queued, and points to itself at the end. */
typedef struct egi_queue {
  uint32_t *link;
  size_t cap;
  uint32_t head, tail;
} egi_queue;

typedef struct egi_symbol {
  const char *name;
  size_t n;
} egi_symbol;

typedef struct egi_node {
  uint32_t key;      /* where its words start in `key`: the symbol, then the children as hashed */
  uint32_t arity;    /* its original children start at key - id in `original` */
  uint32_t proof_up; /* towards the root of its proof tree, EG_NONE at the root */
  uint32_t proof_edge;
  bool twin; /* congruent to an e-node in the hashcons; for good, as classes never split */
} egi_node;

/* Valid at canonical ids only. */
typedef struct egi_class {
  egi_list nodes, parents;
  void *data;
  uint32_t
      weight; /* length of `parents` with repetitions: independent of when the list was sorted */
} egi_class;

/* In order of time. */
typedef struct egi_edge {
  uint32_t from, to;
  eg_why why;
} egi_edge;

/* Scratch of explain.c, per e-node; valid where its stamp is current, so that no call has to clear
 * it. */
typedef struct egi_mark {
  uint64_t call, seen, chain;
  uint32_t skip;
} egi_mark;

struct eg_graph {
  eg_analysis analysis;
  iso_arena names;
  egi_symbol *symbol;
  size_t n_symbols, cap_symbol;
  egi_table symbols, hashcons;
  egi_node *node;
  size_t n_nodes, cap_node;
  uint32_t *up; /* union-find: a canonical id points to itself */
  size_t cap_up;
  egi_class *cls;
  size_t cap_cls;
  uint32_t *key, *original;
  size_t n_key, cap_key, cap_original;
  egi_edge *edge;
  size_t n_edges, cap_edge;
  egi_queue stale;  /* e-nodes whose key may have a child that is no longer canonical */
  egi_queue look;   /* e-nodes with a child whose data changed */
  egi_queue repair; /* e-classes whose data changed */
  uint32_t *words;  /* scratch: a key */
  size_t cap_words;
  egi_mark *mark;
  size_t cap_mark;
  uint64_t stamp;
};

/* node_list.c */
bool egi_list_reserve(egi_list *l, size_t n);
void egi_list_push(egi_list *l, uint32_t node); /* Requires: reserved */
eg_node *egi_list_items(egi_list *l);
eg_node *egi_list_sort(egi_list *l); /* ascending, each once; needs no memory */
bool egi_list_join_reserve(egi_list *a, egi_list *b);
void egi_list_join(
    egi_list *into,
    egi_list *from); /* Requires: reserved. Empties `from`. Cost: the shorter's length */
void egi_list_fini(egi_list *l);

/* hashcons.c */
bool egi_table_reserve(egi_table *t); /* for one more */
void egi_table_insert(egi_table *t, uint32_t hash, uint32_t id);
void egi_table_remove(egi_table *t, uint32_t hash, uint32_t id);
uint32_t egi_key_hash(const uint32_t *key, size_t n_words);
/* The e-node with this key (symbol, then children), EG_NONE if there is none. */
uint32_t egi_hashcons_find(const eg_graph *g, const uint32_t *key, size_t n_words, uint32_t hash);
uint32_t egi_symbol_find(const eg_graph *g, const char *name, size_t n, uint32_t hash);

/* unionfind.c */
uint32_t egi_find(const eg_graph *g, uint32_t x);
bool egi_union_reserve(eg_graph *g, uint32_t a, uint32_t b);
/* Merge the classes of two e-nodes. Requires: reserved, and the classes are different. */
void egi_union(eg_graph *g, uint32_t a, uint32_t b, eg_why why);

/* rebuild.c */
void egi_queue_init(egi_queue *q);
bool egi_queue_reserve(egi_queue *q, size_t n);
void egi_queue_push(egi_queue *q, uint32_t id);

/* analysis.c. `data` and `from` are taken over. */
void egi_data_make(eg_graph *g, uint32_t node);
void egi_data_merge(eg_graph *g, uint32_t kept, uint32_t gone);
void egi_data_look(eg_graph *g, uint32_t node);
iso_code egi_data_repair(eg_graph *g, uint32_t cls, iso_error *err);

#endif
