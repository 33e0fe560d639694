/* Private to frontier.c, refine_deps.c and refine_tied.c: the search for a rule's frontier, and
 * dependencies among its variables. */
#ifndef SYNTH_SEARCH_FRONTIER_H
#define SYNTH_SEARCH_FRONTIER_H

#include "synth/comparison.h"

enum { OPEN = 1, SHUT = 2, READ = 3 };
enum { MET = 1, SAME = 2 };

typedef enum fr_kind { FR_CALL, FR_PUT_TOGETHER, FR_LEAF, FR_LITERAL } fr_kind;

/* An e-node by which a class of a cone can have a pattern, with all that no cut changes. */
typedef struct fr_way {
  eg_node e;
  fr_kind kind;
  double own;        /* its size without its operands */
  uint32_t first, n; /* of cone.operand: the classes of its operands that are no literals */
} fr_way;

typedef struct cone {
  uint32_t *cls; /* canonical class ids, in order of discovery */
  size_t n;
  uint8_t *in;     /* by class id: bit 1 reachable from u, bit 2 from t */
  double *cost;    /* by class id: size of the smallest pattern under the current cut */
  uint32_t *best;  /* by class id: the e-node of that pattern */
  uint8_t *cut;    /* by class id: part of the frontier set */
  uint8_t *opened; /* by class id: OPEN: was part of it, and must be expanded now; SHUT: may not
                    * occur at all; READ: its captured numbers are neither written out nor a
                    * variable of their own, it is computed from something */
  uint8_t *seen;   /* of a walk, by class id; */
  uint32_t *queue; /* and its classes */
  bool full;       /* classes were left out, since they are many */
  fr_way *way;
  uint32_t *first_way; /* by place in cls, and one behind the last */
  uint32_t *operand;   /* canonical class ids */
  size_t n_ways, cap_ways, n_operands, cap_operands;
} cone;

typedef struct opening { /* a search state: the classes opened so far */
  uint32_t cls[96];
  uint8_t how[96];
  size_t n;
  double size;
  uint8_t narrow; /* MET: cut only at classes that both sides reach; SAME: at those that stand in
                     both patterns */
  bool large;     /* a pattern of another kind would not be tried */
  bool waits;     /* a glance left its rule open */
  bool first;     /* it is tried before others */
  bool rest;      /* it was refuted, and what is below it is not queued wholly */
} opening;

typedef struct builder {
  state *s;
  cone *k;
  eg_class var[RULE_MAX_VARS];
  uint8_t used[RULE_MAX_VARS]; /* bit 1: in the left pattern, bit 2: in the right one */
  eg_node var_as[RULE_MAX_VARS];
  premise *prem; /* equalities that the pattern relies on: the member expanded is equal to the one
                    that was there */
  size_t n_prem, cap_prem;
  size_t n_vars;
  uint8_t side;
  size_t depth;
  size_t distinct; /* operators of both patterns, where one with several occurrences counts once on
                      a side */
  const rule_term **memo; /* by class id, per side */
} builder;

/* Classes to be opened, or cut, together. */
typedef struct fr_classes {
  uint32_t cls[96];
  size_t n;
} fr_classes;

/* ---- cone.c ---- */
/* Adds a class, once; those that there is no room for are left out. */
void fr_also(fr_classes *c, uint32_t cls);
/* The classes from `c` down to inputs that cannot leave their range, by operators that move their
 * elements. Returns: whether that is all that it reads. */
bool fr_down_to_bound(state *s, const cone *k, uint32_t c, fr_classes *out);
/* The operands of concatenations of which `c` takes a part, by operators that move elements. */
void fr_parts_beside(state *s, uint32_t c, fr_classes *out);

/* Whether a class stands for a tensor and may be cut. */
bool fr_shared(state *s, uint32_t c);
/* An operator that moves elements and computes nothing. */
bool fr_layout_op(const char *op);
/* The same, or one that gives a list of them, whether relations are written with it or not. */
bool fr_moves_op(const char *op);

/* Whether a class has a constant's numbers as a term without leaves. */
bool fr_written_out(state *s, eg_class c);

/* ---- refine_deps.c ---- */
/* Which variables are computed from others of the same rule (freedom that the graphs do not give),
 * and which others are computed from. `near`: leaves out variables that are data and computed from
 * constants alone among these: the data that one layer's rotation or mask reads would else count as
 * computed from the tables of the next layer's. `aside`: classes that the former would be read from
 * otherwise. `open->first`: among these are constants that are layouts of others. Returns: false
 * when there is no memory. */
bool fr_dependencies(state *s, const cone *k, const builder *b, bool near, opening *open,
                     opening *shut, opening *aside);
/* The classes to open next where a candidate fails because of its `tied` variables (refine_tied.c):
 * those computed from others of them, and those of which neither is said. Returns: false when there
 * is no memory. */
bool fr_tied_open(state *s, const cone *k, const builder *b, const bool *tied, opening *open);

/* ---- refine_tied.c ---- */
/* Which variables of a candidate that was refuted the graphs tie: given other values, while the
 * rest keep theirs, each of these parts the two sides. In `tied`, by variable; none where that
 * cannot be told (values too large, an operator that fails). */
iso_code fr_tied(state *s, const builder *b, const rule_term *l, const rule_term *r, bool *tied,
                 iso_error *err);

#endif
