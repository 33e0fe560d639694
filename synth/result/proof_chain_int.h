/* Private to proof_chain.c and proof_terms.c: a certificate while it is written. */
#ifndef SYNTH_RESULT_PROOF_CHAIN_INT_H
#define SYNTH_RESULT_PROOF_CHAIN_INT_H

#include "synth/comparison.h"

enum { NONE = UINT32_MAX };

typedef struct writer {
  state *s;
  synth_cert_term *term; /* captured nodes of the left, of the right, then calls */
  uint32_t *up;          /* by term: equal so far */
  size_t n_terms, cap_terms, cap_up;
  uint32_t *table; /* calls by content: id + 1, 0 empty */
  size_t n_table;
  const rule_term **arg; /* by e-node: it as an argument: VAR, LIST or literal */
  synth_cert_step *step;
  size_t n_steps, cap_steps;
  bool *linked[2];
  const char *missing; /* why there is no certificate */
  iso_error *err;
} writer;

/* ---- rule_instance.c ---- */
const rule_term *pc_renumber(iso_arena *a, const rule_term *t, const uint32_t *to);

/* ---- proof_terms.c ---- */
iso_code pc_nomem(writer *w);
uint32_t pc_root(writer *w, uint32_t i);
uint32_t pc_captured(const writer *w, int side, size_t node);
bool pc_enlarge(writer *w);
iso_code pc_push(writer *w, synth_cert_term t);
/* The number of a call over terms. */
iso_code pc_call(writer *w, const rule_term *t, uint32_t *out);
/* A captured call over the terms of its side's nodes. NULL when there is no memory. */
const rule_term *pc_over_terms(writer *w, int side, const rule_term *t);
const rule_term *pc_as_read(writer *w, int side, size_t node);
/* An e-node as an argument. Its original children are older, and were done before. */
iso_code pc_name_node(writer *w, eg_node e);
uint32_t pc_term_of(const writer *w, eg_node e);

#endif
