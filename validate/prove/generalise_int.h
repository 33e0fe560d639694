/* A rule that is made general: the places of its sizes and floats, which of them go together, and
 * the rule with names in place of them (generalise_write.c). */
#ifndef VALIDATE_PROVE_GENERALISE_INT_H
#define VALIDATE_PROVE_GENERALISE_INT_H

#include "rules/memo.h"
#include "rules/rules.h"

enum { MAX_VALUES = 24, MAX_UNITS = 256, MAX_NEW_CONDITIONS = 3 * MAX_VALUES };

/* A place where a size occurs: dimensions of variables in order, then integers of attributes as
 * `rewritten` meets them. */
typedef struct unit {
  int64_t value;
  size_t size; /* index into g->value */
} unit;

/* Conditions on a float that is any number. */
typedef enum needs {
  AS_A_SIZE /* the power of a size that it is, where it is one; and positive */,
  POSITIVE,
  NOTHING
} needs;

typedef struct general {
  const rule *r;
  rule_schemas *schemas;
  iso_arena *a;
  unit at[MAX_UNITS];
  size_t n_units, n_dims,
      next; /* the first n_dims are of variables; next: the one that is rewritten next */
  int64_t value[MAX_VALUES]; /* sizes that go together, in increasing order */
  bool named[MAX_VALUES];
  bool plain[MAX_VALUES]; /* neither a product nor a multiple */
  size_t n;
  const int64_t *by; /* by unit: how much its number is changed; NULL: none is, names are put */
  double real[MAX_VALUES];
  bool open[MAX_VALUES];
  needs need[MAX_VALUES]; /* by float: the condition on it */
  size_t n_real;
  int64_t whole[MAX_VALUES]; /* integers that are operands: bounds of indices, mostly */
  size_t n_whole;
  bool any_shape, products, multiples;
  bool lasts; /* a number one below a size is its last place: the bound of a clamp of indices */
  size_t n_lasts;
  int64_t limit;          /* of integers that casts make narrow; 0: there are none */
  bool below[MAX_VALUES]; /* the size is, as a condition */
  bool crowded;   /* there are more units: some sizes would be names, and others of them numbers */
  rule_memo made; /* of parts with several occurrences, whose sizes are one */
} general;

/* Powers of sizes that scales are: f^up = size, or f^down size = 1. */
struct power {
  int up, down;
};

/* The size that a float is a power of, by index; g->n where it is none. */
size_t gn_size_of_float(const general *g, double f, struct power *as);
/* The number is one of a row v, 2v, 3v ... of sizes that is too long for chance: ends of equal
 * parts, which are multiples of v together or not at all. */
bool gn_in_long_row(const general *g, int64_t number, int64_t v);
/* The size of index `at` as the product of two, as a few times another, as a name, or as a
 * literal. */
const rule_term *gn_size_term(general *g, size_t at);
/* The number is an integer operand as well. */
bool gn_is_operand(const general *g, int64_t v);
/* The rule with the names of `g`. The first call notes the numbers that could be names. Returns:
 * false without memory. */
bool gn_write(general *g, rule *out);

#endif
