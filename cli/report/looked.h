/* Other sizes than the captured ones at which a pair was compared. */
#ifndef CLI_REPORT_LOOKED_H
#define CLI_REPORT_LOOKED_H

#include <jansson.h>
#include <stdio.h>

#include "capture/capture.h"
#include "synth/synth.h"

typedef struct looked_at {
  const int64_t *value; /* of the left's symbols */
  const char *text;     /* "T = 33, B = 2" */
  bool compared;
  synth_verdict verdict; /* where compared */
  const char *why;       /* else, or where undecided: the reason */
} looked_at;

/* Owns: looked_free. All texts are in the arena. */
typedef struct looked {
  bool asked;       /* a graph has symbols, and looking was not switched off */
  size_t n_symbols; /* as captured: the left's */
  cap_symbol *symbol;
  looked_at *of;
  size_t n, cap;
  const char *none;  /* why nothing was looked at; NULL: something was, or nothing is to be */
  const char *first; /* the smallest sizes that show the difference which decides; else NULL */
  const char *scope; /* the sizes that the verdict is for, "1 <= T <= 4096, B >= 1"; NULL: the
                        captured ones */
  const char *const *held; /* reasons why it does not hold for all sizes; the result's */
  size_t n_held;
  iso_arena arena;
} looked;

void looked_free(looked *l);
/* Writes the scope of the result. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code looked_scope(looked *l, const synth_scope *s, iso_error *err);
/* "1 <= T <= 4096". Returns: NULL without memory. */
const char *looked_range(iso_arena *a, const char *name, int64_t min, int64_t max);
void looked_text(const looked *l, FILE *f);
/* The report's "scope". NULL: there is no memory. */
json_t *looked_json(const looked *l);

#endif
