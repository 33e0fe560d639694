/* Private to synth/scope/: a chain that is justified again. */
#ifndef SYNTH_SCOPE_SCOPE_INT_H
#define SYNTH_SCOPE_SCOPE_INT_H

#include "synth/scope/sizes.h"
#include "synth/comparison.h"

enum { SCOPE_NONE = UINT32_MAX, SCOPE_NAMES = 64, SCOPE_SPARE = 16 };

/* Facts that no proof may rest on: they were seen at the captured sizes alone. */
#define SCOPE_RESTS (RULE_RESTS_ON_NUMBERS | RULE_RESTS_ON_MASKS)

typedef struct scope_dims {
  const size_sum *of; /* NULL: not known */
  uint32_t rank;
} scope_dims;

typedef struct scope_symbol { /* a symbol of one side, as a sum over atoms */
  const char *name;
  size_sum is;
  bool known;
} scope_symbol;

typedef struct scope_table { /* what depends on one symbol alone */
  uint32_t atom;             /* the symbol */
  int64_t most;              /* its largest value */
  uint32_t rank;
  bool along[RULE_MAX_RANK]; /* dimensions that it is */
} scope_table;

/* Whether calls of which nothing says their sizes have the numbers that they have: over tensors
 * that no size changes, or all. */
typedef enum scope_guess { SCOPE_GUESS_NONE, SCOPE_GUESS_FIXED, SCOPE_GUESS_ALL } scope_guess;

/* Terms are the left graph's nodes, the right one's, the certificate's own calls, and some for
 * questions of ours.
 *
 * Invariant: terms that `up` has joined are equal, and have one shape, for all sizes of the
 * scope. */
typedef struct scoping {
  state *s;
  const synth_certificate *cert;
  size_space space;
  scope_symbol *symbol[2];
  size_t n_terms;
  uint32_t n_spare;        /* of the last terms, that are in use */
  const uint32_t *of;      /* by term of the certificate: it here */
  const rule_term **call;  /* over terms, as it is read; NULL: a leaf */
  const rule_term **sized; /* the same with sizes as they are; NULL: a leaf, or not known yet */
  uint32_t *chosen;        /* of scope_rule_step, while it looks */
  bool *captured;          /* its sizes are the capture's, and nobody may choose them */
  bool *fixed;             /* of scope_is_fixed, while it looks */
  scope_dims *dim;
  uint32_t *up;
  scope_guess guess;
  bool choose;            /* a rule's step may say what sizes are that nothing else gives */
  bool loose;             /* literals that are no integers were compared elsewhere */
  bool asked;             /* the oracle was */
  bool shared;            /* and proved it over all that both sides are made of */
  synth_sized_step taken; /* the justification of the last step */
  const char *wrong; /* why the last step was not justified: static, or in the result's arena */
  iso_error *err;
} scoping;

/* ---- scope_terms.c ---- */
iso_code scope_no_memory(scoping *z);
uint32_t scope_root(const scoping *z, uint32_t t);
/* Takes over: two terms are one. Returns: false where their shapes are two. */
bool scope_join(scoping *z, uint32_t a, uint32_t b);
const scope_dims *scope_dims_of(const scoping *z, uint32_t t);
bool scope_is_size(const rule_term *t);
/* A size over the left's symbols. */
bool scope_size(scoping *z, const rule_term *t, size_sum *out);
bool scope_same_size(scoping *z, const rule_term *a, const rule_term *b);
/* Terms, sizes and dimensions of both captures. */
iso_code scope_read_captures(scoping *z);
/* Whether two arguments are joined so far; their literals were compared. */
bool scope_alike(scoping *z, const rule_term *a, const rule_term *b);
/* `call` with the sizes of `like`. Returns: NULL where their arguments are not alike. */
const rule_term *scope_lift(scoping *z, const rule_term *call, const rule_term *like);
/* A view, with the sizes that its operand's dimensions give: of neighbours that it joins, or takes
 * as they are, beside dimensions of 1. Returns: NULL where it is another one. */
const rule_term *scope_reshaped(scoping *z, const rule_term *call);
/* Chooses the sizes of a constant that only the certificate has, where it is one with a term of
 * shape `d`: one number throughout, a triangle of it, or parts one behind the other. */
void scope_size_constant(scoping *z, uint32_t t, const scope_dims *d);
/* Whether nothing about it depends on the symbols, nor on inputs. */
bool scope_is_fixed(scoping *z, uint32_t t);

/* ---- scope_rules.c ---- */
bool scope_rule_step(scoping *z, const synth_cert_step *x);

/* ---- scope_record.c ---- */
/* The chain for all sizes, into the certificate: n steps in the order in which they were taken. */
iso_code scope_record(scoping *z, const synth_sized_step *step, size_t n);

/* ---- scope_prove.c ---- */
/* Whether the oracle proves for all sizes that two terms are one. `cut`: terms that stand for any
 * tensor. */
iso_code scope_prove(scoping *z, uint32_t a, uint32_t b, const uint32_t *cut, uint32_t n_cut,
                     bool *proved);

/* Whether it proves that a term, for all values of a table's symbol, is the first places of what it
 * is at the largest one. */
iso_code scope_prove_places(scoping *z, uint32_t t, const scope_table *table, bool *proved);

/* ---- scope_table.c ---- */
/* Whether two constants are equal at the largest value of the one symbol that they depend on, and
 * at each other value the first places of what they are there: tables of positions, one computed
 * and one stored. Returns: in `tried` whether asking again later is in vain. */
iso_code scope_tables(scoping *z, uint32_t a, uint32_t b, bool *tried, bool *equal);

/* ---- scope_run.c ---- */
/* The captured call that a call of the certificate's own is one with, or it itself. */
uint32_t scope_captured(const scoping *z, uint32_t t);
/* Two terms at the largest value of a table's symbol, as captured calls compute them. Returns: NULL
 * in both where one is not defined, or too large, or a cast of the certificate's own rounds. Owns:
 * caller unrefs. */
iso_code scope_run_table(scoping *z, const uint32_t t[2], const scope_table *table,
                         rule_tensor *out[2]);
/* Whether the terms of these steps are defined at some other sizes, and have their shapes there.
 * Returns: in `at` one that is not. */
iso_code scope_run(scoping *z, const bool *step, bool *fine, uint32_t *at);

/* ---- scope_masks.c ---- */
/* Whether each row that masks are read in keeps an element at all sizes. Returns: in `where` the
 * operator of which that is not shown. */
iso_code scope_masks(scoping *z, bool *kept, const char **where);

#endif
