/* Relations that make up the left outputs, inferred or given: in reports, as lines of a relations
 * file, and checked against a user's expectation. */
#ifndef CLI_REPORT_REFINEMENT_H
#define CLI_REPORT_REFINEMENT_H

#include <stdio.h>

#include "egraph/base/arena.h"
#include "egraph/base/error.h"

/* One relation of an output; those of one output are adjacent, the simplest first. */
typedef struct refined {
  const char *output;     /* borrowed */
  const char *relation;   /* NULL: none was found */
  bool clean;             /* it rearranges the right outputs, or adds up the ranks' tensors */
  bool inferred;          /* and not given */
  const char *surprising; /* why, NULL: it is not */
  const char *where;      /* the meaning of right outputs in it, in words; NULL: themselves */
} refined;

typedef struct refinement {
  refined *of;
  size_t n, cap;
  const char **left_out; /* right outputs that nothing is made of, and no user spoke of */
  size_t n_left_out, cap_left_out;
  const char *extra; /* the first of them that is not expected to be left out; borrowed */
  const char **fold; /* lines about parameters that were computed when a model was loaded */
  size_t n_folds;
  const char
      *unexpected; /* why it is not the expected relation; NULL: it is, or none was expected */
  iso_arena arena;
} refinement;

ISO_MUST_USE iso_code refinement_add(refinement *r, refined x, iso_error *err);
void refinement_free(refinement *r);

/* The relations as lines of a relations file; with `inferred` those alone that no user gave.
 * Owns: malloc'ed; NULL when there is no memory. */
char *refinement_lines(const refinement *r, bool inferred);
void refinement_text(const refinement *r, FILE *f);

#endif
