/* Private to synth/: the sizes and attributes that a rule leaves open, bound to numbers as a rule
 * is matched. */
#ifndef SYNTH_SEARCH_SUBSTITUTION_H
#define SYNTH_SEARCH_SUBSTITUTION_H

#include "rules/rules.h"

enum { NAMES_MAX = 96, NAMES_MAX_EXPR = 128 };

/* Counts to take a failed alternative back to. */
typedef struct names_mark {
  uint32_t n, n_expr;
} names_mark;

typedef struct names {
  iso_arena *arena; /* of the numbers made here */
  names_mark at;
  const char *name[NAMES_MAX];
  const rule_term *value[NAMES_MAX];     /* INT, finite FLOAT, or a LIST of INT */
  const rule_term *expr[NAMES_MAX_EXPR]; /* expressions that must have these values, */
  int64_t expr_value[NAMES_MAX_EXPR];    /* once all names in it have theirs */
} names;

void names_init(names *n, iso_arena *arena);
static inline names_mark names_here(const names *n) { return n->at; }
static inline void names_back(names *n, names_mark to) { n->at = to; }

/* Matches `t`, a literal, name or expression of a rule, with the literal `v`. Returns: false where
 * it cannot. */
bool names_bind(names *n, const rule_term *t, const rule_term *v);
/* A variable of the rule is bound to a tensor of this shape. */
bool names_bind_shape(names *n, const rule_variable *d, const rule_shape *shape);
/* Whether expressions and conditions hold; names that follow from the others are bound first. */
bool names_hold(names *n, const rule *r);
/* Whether every name has a value of the kind that the rule's proof speaks of: a declared real is a
 * float, an undeclared name is an integer. Requires: names_hold. */
bool names_strict(const names *n, const rule *r);
/* Whether its conditions hold of the doubles as they are, and not only of the numbers that they
 * stand for. Requires: names_hold. */
bool names_exact(const names *n, const rule *r);
/* Whether both give the same names the same values. */
bool names_same(const names *a, const names *b);
/* The term with the names' values; NULL where one has none, or there is no memory. */
const rule_term *names_put(const names *n, const rule_term *t, iso_arena *a);
/* Whether the rule `r`, all of whose sizes are numbers, is `general` at some values of its names,
 * which are in `n` then. */
bool names_of(const rule *general, const rule *r, iso_arena *arena, names *n);
/* The same; in `exact`, whether names_exact. */
bool names_cover(const rule *general, const rule *r, iso_arena *arena, bool *exact);

#endif
