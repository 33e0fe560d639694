/* What comes of a mask: a small family, since a mask of few elements gives most small numbers by
 * some formula. */
#include "capture/looks/laws.h"

#include <math.h>
#include <stdlib.h>

typedef enum per { ROW, ELEMENT, BOUND, WHOLE } per;

enum {
  NONE,
  COUNT,
  LAST_INDEX,
  FIRST,
  LAST,
  TOTAL,
  MOST,
  BOUNDS,
  SO_FAR,
  INDEX,
  INDEX_FROM_0,
  INDEX_ELSE_0,
  INDEX_ELSE_1,
  SO_FAR_ELSE_0,
  SO_FAR_ELSE_1,
  PLACE,
  N_LAWS
};

static const struct {
  per per;
  const char *before, *after; /* "ones" or "zeros" */
} law_of[N_LAWS] = {
    [COUNT] = {ROW, "how many ", " each row has"},
    [LAST_INDEX] = {ROW, "one less than how many ", " each row has"},
    [FIRST] = {ROW, "the place of the first of the ", " of each row"},
    [LAST] = {ROW, "the place of the last of the ", " of each row"},
    [TOTAL] = {WHOLE, "how many ", " there are"},
    [MOST] = {WHOLE, "how many ", " a row has at most"},
    [BOUNDS] = {BOUND, "the bounds of what the ", " of each row leave"},
    [SO_FAR] = {ELEMENT, "the ", " counted along each row"},
    [INDEX] = {ELEMENT, "the ", " counted along each row from 0"},
    [INDEX_FROM_0] = {ELEMENT, "the ", " counted along each row from 0, 0 before them"},
    [INDEX_ELSE_0] = {ELEMENT, "the ", " counted along each row from 0, 0 elsewhere"},
    [INDEX_ELSE_1] = {ELEMENT, "the ", " counted along each row from 0, 1 elsewhere"},
    [SO_FAR_ELSE_0] = {ELEMENT, "the ", " counted along each row, 0 elsewhere"},
    [SO_FAR_ELSE_1] = {ELEMENT, "the ", " counted along each row from 2, 1 elsewhere"},
    [PLACE] = {ELEMENT, "the place of each of its zeros and ", " along the row"},
};

/* ---- what they give ---- */

typedef struct row {
  const rule_tensor *t;
  int64_t from, n;
  bool zeros;
} row;

static bool bit(row r, int64_t j) { return (rule_tensor_get(r.t, r.from + j) != 0) != r.zeros; }

static int64_t of_row(int law, row r) {
  int64_t ones = 0, first = 0, last = 0;
  for (int64_t j = 0; j < r.n; j++) {
    if (!bit(r, j)) continue;
    if (ones++ == 0) first = j;
    last = j;
  }
  return law == FIRST ? first : law == LAST ? last : law == LAST_INDEX ? ones - 1 : ones;
}

static int64_t of_element(int law, bool one, int64_t so_far, int64_t place) {
  switch (law) {
  case PLACE: return place;
  case INDEX: return so_far - 1;
  case INDEX_FROM_0: return so_far > 0 ? so_far - 1 : 0;
  case INDEX_ELSE_0: return one ? so_far - 1 : 0;
  case INDEX_ELSE_1: return one ? so_far - 1 : 1;
  case SO_FAR_ELSE_0: return one ? so_far : 0;
  case SO_FAR_ELSE_1: return one ? so_far + 1 : 1;
  default: return so_far;
  }
}

static int64_t length_of_row(const rule_tensor *base) {
  return base->shape.rank ? base->shape.dim[base->shape.rank - 1] : 1;
}

static void give_elements(int law, row r, int64_t *out) {
  for (int64_t j = 0, so_far = 0; j < r.n; j++) {
    so_far += bit(r, j);
    out[r.from + j] = of_element(law, bit(r, j), so_far, j);
  }
}

void looks_apply_law(looks_law law, const rule_tensor *base, int64_t *out) {
  const int64_t n = length_of_row(base);
  int64_t total = 0, most = 0;
  if (law_of[law.number].per == BOUND) out[0] = 0;
  for (int64_t from = 0, i = 0; n > 0 && from < base->numel; from += n, i++) {
    const row r = {base, from, n, law.zeros};
    const int64_t x = of_row(law.number, r);
    total += x;
    most = x > most ? x : most;
    switch (law_of[law.number].per) {
    case ROW: out[i] = x; break;
    case BOUND: out[i + 1] = total; break;
    case ELEMENT: give_elements(law.number, r, out); break;
    case WHOLE: break;
    }
  }
  if (law_of[law.number].per == WHOLE) out[0] = law.number == MOST ? most : total;
}

/* ---- which it is ---- */

/* One number is some count of most masks: only what is usual counts. */
static bool fits(looks_law law, const rule_tensor *base, const rule_tensor *value) {
  const int64_t n = length_of_row(base), rows = n > 0 ? base->numel / n : 0;
  if (law.zeros && law.number == PLACE) return false;
  if (value->numel == 1 && (law.number == FIRST || law.number == LAST)) return false;
  switch (law_of[law.number].per) {
  case ROW: return value->numel == rows;
  case BOUND: return value->numel == rows + 1 && rows > 1;
  case WHOLE: return value->numel == 1;
  case ELEMENT: return value->numel == base->numel && rows < base->numel;
  }
  return false;
}

static bool gives(looks_law law, const rule_tensor *base, const rule_tensor *value, int64_t *own) {
  looks_apply_law(law, base, own);
  for (int64_t i = 0; i < value->numel; i++)
    if ((double)own[i] != rule_tensor_get(value, i)) return false;
  return true;
}

static bool is_behind(looks_law law, looks_law after) {
  return law.zeros != after.zeros ? law.zeros : law.number > after.number;
}

bool looks_find_law(const rule_tensor *const *base, const rule_tensor *const *value, size_t n,
                    looks_law after, looks_law *out) {
  int64_t most = 0;
  for (size_t set = 0; set < n; set++) most = value[set]->numel > most ? value[set]->numel : most;
  int64_t *own = malloc(((size_t)most + 1) * sizeof *own);
  *out = (looks_law){NONE, false};
  if (!own) return false;
  for (int zeros = 0; zeros < 2 && n; zeros++)
    for (int k = NONE + 1; k < N_LAWS && out->number == NONE; k++) {
      const looks_law law = {k, zeros};
      size_t set = 0;
      if (!is_behind(law, after)) continue;
      while (set < n && fits(law, base[set], value[set]) && gives(law, base[set], value[set], own))
        set++;
      if (set == n) *out = law;
    }
  free(own);
  return true;
}

double looks_law_bits(looks_law law, const rule_tensor *base) {
  const int64_t n = length_of_row(base), rows = n > 0 ? base->numel / n : 0;
  const double each = log2((double)n + 1);
  switch (law_of[law.number].per) {
  case ROW:
  case BOUND: return (double)rows * each;
  case ELEMENT: return (double)base->numel * each / 2; /* they rise along a row anyway */
  case WHOLE: return law.number == MOST ? each : log2((double)base->numel + 1);
  }
  return 0;
}

const char *looks_law_words(looks_law law, iso_arena *arena) {
  return iso_arena_printf(arena, "%s%s%s", law_of[law.number].before, law.zeros ? "zeros" : "ones",
                          law_of[law.number].after);
}
