/* The prover. A rule's sides are evaluated to tensors (validate/tensor/) and asked for their
 * element at the same fresh index symbols. The rule is proved if the two elements are equal in
 * normal form (validate/expr/), by cases over the conditions in it, or in Z3. Whether sizes agree
 * is decided by cases: where it matters, sc_require asks for a split, and every case must be proved
 * (cases.c). */
#ifndef VALIDATE_PROVE_H
#define VALIDATE_PROVE_H

#include "validate/tensor/tensor.h"

/* A term that is taken for an unknown tensor, variable `var` of the rule: it was shown to be `as`,
 * up to layout, which is the same one. */
typedef struct sc_cut {
  const rule_term *term, *as;
  uint32_t var;
  bool piece; /* `as` is a chunk of the variable */
} sc_cut;

/* The sizes of a term's value, in one model of the rule's assumptions. */
typedef struct sc_noted {
  const rule_term *t;
  uint32_t rank;
  double dim[RULE_MAX_RANK], numel;
  bool known;
} sc_noted;

/* Why a rule that says nothing is not proved. */
#define SC_NOWHERE "no sizes were found for which the conditions hold and both sides are defined"

/* The means of a proof that its verdict names. */
typedef struct sc_used {
  bool literal, z3, ties, unsorted, parts, whole;
} sc_used;

/* One way to look at a rule. */
struct sc_look {
  bool read_literals, mask_frames; /* as in struct sc */
  int64_t max_work;
  const sc_cut *cut; /* (parts.c) */
  size_t n_cuts;
  uint32_t n_own; /* variables that are not for cuts; where there are such */
  sc_used used;   /* by the proofs of the cuts */
  bool part;      /* the sides may differ in layout */
  const rule *
      of; /* with `part`, NULL or the rule: nothing is shown but where both its sides are defined */
  bool chunk;    /* the left side is a chunk of the part to cut out: it must compute something */
  bool one_term; /* the sides are one term: nothing is shown but that it has a value */
  int filled; /* not 0: nothing is shown but that both sides are defined where each variable is one
                  number, 1 or another one */
  sc_noted *noted; /* with `filled`: terms of which the sizes are wanted; where there are such */
  size_t n_noted;
};

/* Facts that an attempt found out. */
typedef struct sc_sight {
  bool has_frames, readable; /* as in struct sc */
  bool masked;               /* an element may be minus infinity */
  int64_t work;
  sc_used used;
} sc_sight;

/* z3's answer to a text of this hash. */
typedef struct sc_answer {
  uint64_t hash;
  char said[24];
} sc_answer;

/* The obligations of a proof, one text per case (obligation.c). */
enum { SC_MAX_OBLIGATIONS = 64, SC_MAX_ANSWERS = 512 };
struct sc_obligations {
  char *text[SC_MAX_OBLIGATIONS];
  size_t n;
  bool some; /* one of them is of a case that some sizes meet */
  bool
      unchecked; /* also obligations of rules that are not proved, and not shown to z3: for tests */
  char why[200]; /* not empty: there is none */
  sc_answer answer[SC_MAX_ANSWERS]; /* about this rule, in all ways that it is looked at */
  size_t n_answers;
  size_t given_up; /* answers of them that are `unknown` */
  bool is_long;    /* the last that was asked and not answered as it should be */
};

/* ---- comparing (equal.c, z3.c, model.c) ---- */

bool sc_equal(sc *c, sx a, sx b); /* under the facts and the path */
bool sc_z3_equal(sc *c, sx a, sx b);
bool sc_z3_possible(sc *c, const sc_guess *g, size_t n); /* false: known to be contradictory */
void sc_z3_close(sc *c);
/* Do the facts and hypotheses have a model with small sizes? */
bool sc_has_model(
    sc *c, bool *defined); /* defined (may be NULL): the functions of the domain facts are, there */
bool sc_model(sc *c, double *v); /* by symbol */

/* ---- obligations (obligation.c) ---- */

/* The obligation of this case into c->obligations, or why there is none. */
void sc_write_obligation(sc *c, const pt_tensor *a, const pt_tensor *b, const sx *idx);

/* ---- one attempt, and the answer (attempt.c, generalise.c, parts.c, prove.c) ---- */

void sc_declare_names(sc *c); /* of the rule's sizes and attributes (names.c) */
/* The value of a term, `v` by its definition: the unknown tensor where the term is cut, else
 * `v`. */
const pt_value *sc_cut_value(sc *c, const rule_term *t, const pt_value *v);
/* The sizes that look->noted asks for, of the terms that have a value here. */
void sc_note_sizes(sc *c);
/* Whether a and b, of the same sizes, have other numbers at some element, for some values of the
 * free symbols. This proves nothing: it spares bringing unequal terms to normal form. */
bool sc_differ_in_numbers(sc *c, const pt_tensor *a, const pt_tensor *b);
/* A question to the prover. */
typedef struct sc_asked {
  const rule *r;
  rule_schemas *schemas;
  const val_options *o;
} sc_asked;
/* One attempt at a rule, looked at in one way. Returns: in `out` whether it is proved. Errors:
 * ISO_NOMEM; ISO_LIMIT where Z3 overran. */
ISO_MUST_USE iso_code sc_attempt(const sc_asked *q, const sc_look *look,
                                 sc_obligations *obligations, sc_sight *sight, rule_verdict *out,
                                 iso_error *err);
/* The work that an answer may take with these options. */
int64_t sc_budget(const val_options *o);
void sc_forget_obligations(sc_obligations *k);
/* Prove a rule for all sizes that it leaves open. `read_literals`: see pt_literal. `sight` (may be
 * NULL): whether that, or else its opposite, could have had another answer; and the work of all
 * attempts. */
ISO_MUST_USE iso_code sc_prove(const sc_asked *q, bool read_literals, sc_obligations *obligations,
                               rule_verdict *out, sc_sight *sight, iso_error *err);
/* val_prove, and the work that it was. */
ISO_MUST_USE iso_code sc_prove_read(const rule *r, rule_schemas *schemas, const val_options *o,
                                    rule_verdict *out, int64_t *work, iso_error *err);

/* ---- for tests: definitions as numbers (values.c) ---- */

/* Numbers at which definitions are looked at: of a rule's sizes and integer attributes, and of its
 * variables' elements. */
typedef struct sc_point {
  size_t n;
  const char *const *name;
  const int64_t *value;
  double (*value_of)(void *ctx, uint32_t var, const int64_t *idx);
  void *ctx;
  bool machine; /* integers wrap, as in proofs; else they are whole numbers without end */
} sc_point;
/* Their results. */
typedef struct sc_numbers {
  rule_shape shape;
  char kind;
  rule_dtype integers; /* of kind 'i': their type */
  double *value;       /* NaN where a function's argument is not in its domain. Owns: malloc'ed */
  bool undefined;      /* false: the definitions say that there is no value */
  char reason[200];    /* false: why there are none */
} sc_numbers;
/* The left side of a rule, element by element from its definitions, by the case of a proof that the
 * numbers meet. Returns: false where the definitions do not cover it. */
bool sc_values(const rule *r, rule_schemas *schemas, const sc_point *at, sc_numbers *out);

#endif
