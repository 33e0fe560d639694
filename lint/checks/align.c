#include "lint/checks/align.h"

enum { WINDOW = 24, SHIFT = 4 };

/* How many fit in a row from (i, k) on. */
static size_t run(lint_fits *fits, const void *with, size_t i, size_t left, size_t k,
                  size_t right) {
  size_t n = 0;
  while (n < WINDOW && i + n < left && k + n < right && fits(with, i + n, k + n)) n++;
  /* To have reached both ends together is as good as a full window. */
  return i + n == left && k + n == right ? WINDOW : n;
}

lint_side lint_align(lint_fits *fits, const void *with, size_t i, size_t left, size_t k,
                     size_t right) {
  if (i == left) return LINT_RIGHT_ONLY;
  if (k == right) return LINT_LEFT_ONLY;
  if (fits(with, i, k)) return LINT_BOTH;
  size_t best = run(fits, with, i + 1, left, k + 1, right);
  /* Both wrong goes before one missing only where the lengths leave no need for that. */
  lint_side side = LINT_BOTH;
  for (size_t d = 1; d <= SHIFT; d++) {
    const size_t extra = i + d <= left ? run(fits, with, i + d, left, k, right) : 0;
    const size_t missing = k + d <= right ? run(fits, with, i, left, k + d, right) : 0;
    if (extra > best || (extra == best && extra && d == 1 && left - i > right - k)) {
      best = extra;
      side = LINT_LEFT_ONLY;
    }
    if (missing > best || (missing == best && missing && d == 1 && right - k > left - i)) {
      best = missing;
      side = LINT_RIGHT_ONLY;
    }
  }
  return side;
}
