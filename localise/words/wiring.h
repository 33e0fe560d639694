/* Private to wiring_words.c, layout_words.c, parted_words.c and step_words.c: queries on the two
 * graphs that they ask. */
#ifndef LOCALISE_WORDS_WIRING_H
#define LOCALISE_WORDS_WIRING_H

#include "localise/alignment.h"

/* ---- wiring_words.c ---- */
const synth_node *lo_node(const parting *p, int side, int64_t i);
/* The one argument in which two calls of an operator (left, right) differ, which is a tensor; -1:
 * not so. */
int64_t lo_one_apart(const parting *p, int64_t l, int64_t r);
/* Argument k of a call, a tensor. */
uint32_t lo_operand(const parting *p, int side, int64_t node, int64_t k);
/* The operator that made a tensor, looking through operators that only pass it on. */
uint32_t lo_maker(const parting *p, int side, uint32_t i);
/* A tensor as a reader knows it: a leaf's name, an operator with its module. */
const char *lo_named(const parting *p, int side, uint32_t i);

/* ---- layout_words.c ---- */
/* Operators that lay the elements of a tensor out otherwise. */
bool lo_lays_out(const char *op);
/* A tensor and those that it is made of, one behind the other. */
enum { LO_CHAIN = 24 };
typedef struct lo_chain {
  uint32_t node[LO_CHAIN];
  size_t n;
} lo_chain;
/* The last tensor that both chains have; in `meet` its place in each. */
bool lo_meet(const parting *p, const lo_chain c[2], size_t meet[2]);
/* Words for two operands (left, right) that hold the same elements in another order. In `step`, by
 * side: the first step towards the operand that the other side does not take; as it was where there
 * is none, or where another operator reads what is made of it. */
const char *lo_other_layout(const parting *p, const uint32_t at[2], int64_t step[2]);

/* ---- step_words.c ---- */
/* The tensors within the region that a tensor of it is computed from. */
typedef struct lo_steps {
  bool *in;     /* by node */
  size_t n;     /* that the tensor they begin at goes through, and that do not only pass it on */
  size_t all;   /* the same, with those that are beside it */
  int64_t last; /* of those that it goes through */
  int64_t kept; /* its argument that is the tensor they begin at, -1 */
  bool begins;  /* some step reads that tensor */
  const char *module; /* whose forward all of them are part of; NULL: of no one module */
} lo_steps;

/* Fills `q` with the steps that lead from a tensor of value `v` to the tensor `end` of `side`.
 * Owns: q->in, NULL where there is no memory. */
void lo_find_steps(const parting *p, int side, uint32_t end, const rule_tensor *v, lo_steps *q);
/* Words for a step that side `without` lacks: its root reads a tensor, and the same operator of the
 * other side reads what the step made of it. Its place, in `d`, is the tensor after which it is
 * missing. `any`: several steps too that are no whole module. */
const char *lo_steps_besides(const parting *p, const int64_t root[2], int without, bool any,
                             synth_divergence *d);
/* A module of several that one side reads no parameter of, while it has others of the module around
 * it: a layer that is left out. `root`: one of them is a parameter of it. */
const char *lo_module_unread(const parting *p, const int64_t root[2]);

#endif
