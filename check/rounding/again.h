/* Private to check/rounding/: a constant computed again in float64 from captured values, in one of
 * the ways in which a table may have been made. */
#ifndef CHECK_ROUNDING_AGAIN_H
#define CHECK_ROUNDING_AGAIN_H

#include "check/check_int.h"

/* How a constant may have been computed where it was stored. All zero: in float64. */
typedef struct ag_way {
  uint64_t noise;   /* 0: none */
  unsigned formula; /* 1 to CHK_FORMULAS: progressions are computed by it */
  int digits;       /* that results of calls first <= i < last are rounded to, in their order */
  uint32_t first, last;
  bool captured; /* captured calls have the values that they were captured with */
} ag_way;

/* Facts of a constant beside its value. */
typedef struct ag_held {
  bool stored;    /* something below is stored in few digits, */
  bool rounds;    /* or computed by a call that rounds */
  int digits;     /* this few */
  uint32_t calls; /* that it takes */
} ag_held;

/* Term `id`, computed so. Owns: the caller unrefs; NULL in `out`: it has none (settled). `of` may
 * be NULL. */
iso_code ag_run(chk_state *k, uint32_t id, const ag_way *how, size_t step, ag_held *of,
                rule_tensor **out);
/* How far the elements of `id` move under noise, added to `spread`. */
iso_code ag_add_spread(chk_state *k, uint32_t id, const rule_tensor *exact, size_t step,
                       double *spread);
/* The unit in the last place of `x` with so many digits. */
double ag_unit(double x, int digits);
bool ag_has_digits(double x, int digits);
/* Whether `x` has so many decimal digits that a narrow dtype made it and nobody wrote it. */
bool ag_many_digits(double x);
/* Whether the term is a literal of a capture that the certificate turned into a tensor. */
bool ag_is_written(const chk_term *t);

/* ---- company.c ---- */
typedef enum ag_fit {
  AG_APART,    /* further apart than noise moves them */
  AG_ALONE,    /* hardly any other element is off as an element is */
  AG_TOGETHER, /* elements are off together, as rounding before the last step makes them */
  AG_CLEAN     /* no element is off */
} ag_fit;
/* Whether elements are apart by no more than `reach` times how far noise moves them, and by `own`
 * times their size. Each is held by its own size, since a large one excuses no other. */
bool ag_agree(const rule_tensor *a, const rule_tensor *b, const double *spread, double reach,
              double own);
/* Compares a table, stored with `digits` binary digits, with the computed one. `spread`: how far
 * noise moves each element. */
iso_code ag_compare(chk_state *k, const rule_tensor *stored, const rule_tensor *made,
                    const double *spread, int digits, ag_fit *fit);

/* ---- factor.c ---- */
/* Whether a table that is stored with so few digits is the computed one times a number, or plus
 * one, that hides in each element. Returns: in `yes`. */
iso_code ag_is_scaled(chk_state *k, const rule_tensor *stored, const rule_tensor *made, int digits,
                      bool *yes);

#endif
