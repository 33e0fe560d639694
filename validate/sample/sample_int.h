/* Private to validate/: seeded samples for one rule. */
#ifndef VALIDATE_SAMPLE_INT_H
#define VALIDATE_SAMPLE_INT_H

#include "validate/validate.h"

enum {
  VAL_KINDS = 12,     /* kinds of float values that each rule is sampled with once */
  VAL_ALL_KINDS = 16, /* with those that only some domains ask for */
  VAL_ENDS = 10,      /* that of integers near where 64 bits end */
  VAL_SPREAD = 64,    /* from here on: numbers of one magnitude, another for each, 1e-2 .. 1e16 */
  VAL_SPREADS = 32,
  VAL_SEAM = 128, /* from here on: numbers on which sums, means and quotients by the rule's literals
                     are exact: where operators jump */
  VAL_SEAMS = 16,
  VAL_SMALL = 256, /* from here on: of the size of the rule's least literal */
  VAL_SMALLS = 4,
  VAL_POLE = 512,   /* zeros here and there; VAL_POLE + 1 + i: variable i is zero everywhere */
  VAL_AXES = 1024,  /* complex numbers on the axes, where cuts lie; floats are plain */
  VAL_ALIKE = 2048, /* from here on: all integers at one place where a type ends, or 1 below, which
                       a float may take for one number; floats are plain */
  VAL_ALIKES = 14,
  VAL_MIXED = 1 << 20,
  VAL_AT = 7,       /* at the rule's literals, and a step to either side */
  VAL_POSITIVE = 3, /* away from zero */
  VAL_NEGATIVE = 6,
  VAL_PLAIN = 0 /* the kind that most operators are defined on */
};

/* Draw a sample of the kind `k` % VAL_ALL_KINDS, or VAL_SPREAD + 0 .. VAL_SPREADS - 1, or VAL_SEAM
 * or VAL_SMALL + as many, VAL_ALIKE + 0 .. VAL_ALIKES - 1, or VAL_POLE and up to VAL_POLE +
 * r->n_vars (with VAL_MIXED: each float variable of its own kind) into `bind` (one tensor per
 * variable; caller unrefs). Errors: ISO_UNSUPPORTED where a shape is symbolic. */
ISO_MUST_USE iso_code val_sample(val_engine *e, const rule *r, rule_tensor *const *example,
                                 iso_rng *rng, unsigned k, rule_tensor **bind, iso_error *err);

/* The range of an integer variable, as the definitions of the operators that take it as an index
 * say (index_ranges.c). */
typedef struct val_domain {
  int64_t size; /* its values are in [0, size), or in [-size, size) if `from_end`; INT64_MAX: not
                   bounded */
  bool from_end;
  int64_t behind; /* the least bound on numbers computed from it, too */
  bool behind_from_end;
  bool has_besides;
  int64_t besides; /* a value that is no index and is allowed too */
  bool reached;    /* val_reach found `low` and `high`: both sides run from the one to below the
                      other, and not beyond */
  int64_t low, high;
} val_domain;
/* The domain of each variable, at the sizes of the instance `r` of a rule. A term without a
 * definition is run on `bind`, which has a tensor for each variable (NULL: it stays open). Errors:
 * ISO_NOMEM. */
ISO_MUST_USE iso_code val_domains(val_engine *e, rule_schemas *schemas, const rule *r,
                                  rule_tensor *const *bind, val_domain *out, iso_error *err);

/* Complex numbers over the plane (complex.c), by kind. */
void val_fill_complex(iso_rng *rng, rule_tensor *t, unsigned k);
/* And on the axes, with zeros of both signs. */
void val_fill_axes(iso_rng *rng, rule_tensor *t);

/* Whether the rule has integers and casts. */
bool val_casts_integers(const rule *r);

/* Whether some literal of the rule is so small that samples at other magnitudes do not show it. */
bool val_has_eps(const rule *r);

/* How many samples reach every integer at and beside a literal of the rule, 0 where it has no
 * integer variables. */
unsigned val_samples_wanted(const rule *r);

#endif
