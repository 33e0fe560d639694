/* Structures of zeros and ones over two dimensions, and how unlikely each is by chance. */
#include "capture/looks/structures.h"

#include <math.h>

/* ---- which there are ---- */

static bool all_in_row(looks_part p, int64_t i, char x) {
  for (int64_t j = 0; j < p.n; j++)
    if (looks_bit(p, i, j) != x) return false;
  return true;
}

static bool all_in_column(looks_part p, int64_t j, char x) {
  for (int64_t i = 0; i < p.q; i++)
    if (looks_bit(p, i, j) != x) return false;
  return true;
}

/* Without rows and columns that padding has emptied, and without those of sinks, which all see. */
static looks_part without_borders(looks_part p) {
  while (p.q && (all_in_row(p, 0, 0) || all_in_row(p, 0, 1))) p.at += p.stride, p.q--;
  while (p.q && all_in_row(p, p.q - 1, 0)) p.q--;
  while (p.q && p.n && (all_in_column(p, 0, 0) || all_in_column(p, 0, 1))) p.at++, p.n--;
  while (p.q && p.n && all_in_column(p, p.n - 1, 0)) p.n--;
  return p;
}

/* The same along each diagonal, and not everywhere: causal, a window, several tokens behind a
 * cache. */
static bool is_band(looks_part p) {
  bool differs = false;
  if (p.q < 3 || p.n < 2) return false;
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < p.n; j++) {
      if (i && j && looks_bit(p, i, j) != looks_bit(p, i - 1, j - 1)) return false;
      differs |= i && looks_bit(p, i, j) != looks_bit(p, i - 1, j);
    }
  return differs;
}

/* Whether no row has another number between two `x`. */
static bool is_contiguous(looks_part p, char x) {
  for (int64_t i = 0; i < p.q; i++) {
    int64_t ends = 0;
    for (int64_t j = 0; j < p.n; j++)
      ends += looks_bit(p, i, j) == x && (j + 1 == p.n || looks_bit(p, i, j + 1) != x);
    if (ends > 1) return false;
  }
  return true;
}

/* Whether each element sees itself, and what it sees has no gap. Neighbours of a path have one, and
 * so has what only they are left out of. Where ones are what is seen a gap may be dilation. */
static bool may_see(looks_part p) {
  return p.q != p.n || looks_bit(p, 0, 0) == 1 || is_contiguous(p, 0) || is_contiguous(p, 1);
}

/* Above the diagonal, or below it, is `x` alone: what sees no later token, a tree say. */
static bool is_triangle(looks_part p, char x) {
  bool above = true, below = true;
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < p.n; j++) {
      above &= j <= i || looks_bit(p, i, j) == x;
      below &= j >= i || looks_bit(p, i, j) == x;
    }
  return above || below;
}

bool looks_symmetric(looks_part p) {
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < i; j++)
      if (looks_bit(p, i, j) != looks_bit(p, j, i)) return false;
  return true;
}

/* Rows that have `x` in one column have it in the same ones: sequences packed into one. Each is
 * held against the row of its first one. */
static bool are_blocks(looks_part p, char x) {
  if (!looks_symmetric(p)) return false;
  for (int64_t i = 0; i < p.q; i++) {
    int64_t k = 0;
    while (k < p.n && looks_bit(p, i, k) != x) k++;
    for (int64_t j = 0; k < p.n && j < p.n; j++)
      if (looks_bit(p, i, j) != looks_bit(p, k, j)) return false;
  }
  return true;
}

/* Blocks of one size but for the last, also where the later of each are left out for the earlier.
 */
static bool are_chunks(looks_part p, char x) {
  int64_t size = 0;
  while (size < p.q && looks_bit(p, size, 0) == x) size++;
  for (int64_t i = 0; i < p.q && size; i++)
    for (int64_t j = 0; j <= i; j++)
      if ((looks_bit(p, i, j) == x) != (i / size == j / size)) return false;
  return size > 0;
}

/* Each row begins with `x`, up to the diagonal at least and no less than the row before: a prefix
 * that all see. */
static bool is_prefix(looks_part p, char x) {
  int64_t last = 0;
  for (int64_t i = 0; i < p.q; i++) {
    int64_t n = 0;
    while (n < p.n && looks_bit(p, i, n) == x) n++;
    for (int64_t j = n; j < p.n; j++)
      if (looks_bit(p, i, j) == x) return false;
    if (n < last || n <= i) return false;
    last = n;
  }
  return true;
}

/* ---- how unlikely they are ---- */

/* The part of the elements that are `x`; `off`: of those off the diagonal. */
static double density(looks_part p, char x, bool off) {
  double all = 0, some = 0;
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < p.n; j++) {
      if (off && i == j) continue;
      all++;
      some += looks_bit(p, i, j) == x;
    }
  return all > 0 ? some / all : 0;
}

static double entropy(double d) {
  return d > 0 && d < 1 ? -d * log2(d) - (1 - d) * log2(1 - d) : 0;
}

/* Lengths of padding, all on one side. */
static bool are_lengths(looks_part p) {
  bool falls = true, rises = true;
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 1; j < p.n; j++) {
      falls &= looks_bit(p, i, j) <= looks_bit(p, i, j - 1);
      rises &= looks_bit(p, i, j) >= looks_bit(p, i, j - 1);
    }
  return falls || rises;
}

static bool chooses_one(looks_part p) {
  for (int64_t i = 0; i < p.q; i++) {
    int64_t ones = 0;
    for (int64_t j = 0; j < p.n; j++) ones += looks_bit(p, i, j);
    if (ones > 1) return false;
  }
  return true;
}

/* Ones on the diagonal alone, or zeros. The first choices that come to mind look so, too. */
static bool is_identity(looks_part p) {
  const char one = looks_bit(p, 0, 0);
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < p.n; j++)
      if ((looks_bit(p, i, j) == one) != (i == j)) return false;
  return true;
}

/* Lengths that grow by one: each but the first follows from it; and it, too, where they end with a
 * full row, or begin with an empty one. */
static double bits_of_band(looks_part p) {
  const double choice = log2((double)p.n), d = density(p, 1, false);
  int64_t full = 0, empty = 0;
  for (int64_t i = 0; i < p.q; i++) full += all_in_row(p, i, 1), empty += all_in_row(p, i, 0);
  const bool ends = full + empty == 1;
  if (are_lengths(p)) return (double)(p.q - !ends) * choice;
  if (chooses_one(p)) return (double)(p.q - 1) * choice;
  return (double)((p.q - 1) * (p.n - 1)) * -log2(d * d + (1 - d) * (1 - d));
}

static double bits_of_triangle(looks_part p, char x) {
  const double n = (double)p.n;
  const double two = 2; /* above or below, of ones or zeros */
  if (are_lengths(p)) return n * log2(n) - lgamma(n + 1) / log(2);
  return n * (n - 1) / 2 * -log2(density(p, x, false)) - two;
}

/* In how many ways `n` are divided into blocks, as a logarithm: Bell's numbers by their triangle.
 */
static double log2_divisions(int64_t n) {
  enum { MOST = 64 };
  double row[MOST] = {1};
  if (n > MOST) return (double)n * log2((double)n); /* more than there are */
  for (int64_t k = 1; k < n; k++) {
    double last = row[k - 1];
    for (int64_t j = 0; j <= k; j++) {
      const double was = row[j], next = last;
      row[j] = next;
      last = next + was;
    }
  }
  return log2(row[n - 1]);
}

static double bits_of_blocks(looks_part p, char x) {
  const double n = (double)p.n, symmetric = 3; /* as one square in eight is anyway */
  const double ways = is_contiguous(p, x) ? n - 1 : log2_divisions(p.n);
  return n * (n - 1) / 2 * entropy(density(p, 1, true)) + symmetric - ways;
}

/* Lengths that never fall and reach the diagonal: Catalan's numbers are how many. */
static double bits_of_prefix(looks_part p) {
  const double n = (double)p.n;
  return n * log2(n) - (lgamma(2 * n + 1) - lgamma(n + 1) - lgamma(n + 2)) / log(2);
}

enum { LITTLE = 1 };

static double bits_of_regular(looks_part p, bool whole) {
  double most = 0;
  if (p.q < 1 || p.n < 1) return 0;
  if (is_identity(p)) return p.q >= 3 ? LITTLE : 0;
  if (is_band(p) && may_see(p)) most = fmax(LITTLE, bits_of_band(p));
  for (char x = 0; x < 2 && looks_square(p); x++) {
    if (are_chunks(p, x) && are_blocks(p, x)) most = fmax(fmax(most, LITTLE), bits_of_blocks(p, x));
    if (are_chunks(p, x) && is_triangle(p, !x))
      most = fmax(fmax(most, LITTLE), bits_of_triangle(p, !x));
    if (whole && is_prefix(p, x)) most = fmax(fmax(most, LITTLE), bits_of_prefix(p));
  }
  return most;
}

static double bits_of(looks_part p, bool whole) {
  double most = bits_of_regular(p, whole);
  if (p.q < 1 || p.n < 1 || is_identity(p)) return most;
  if (is_band(p)) most = fmax(most, LITTLE);
  for (char x = 0; x < 2 && looks_square(p); x++) {
    if (is_triangle(p, x)) most = fmax(fmax(most, LITTLE), bits_of_triangle(p, x));
    if (are_blocks(p, x)) most = fmax(fmax(most, LITTLE), bits_of_blocks(p, x));
  }
  return most;
}

double looks_structure(looks_part p, bool batch) {
  const double whole = bits_of(p, true);
  return batch ? whole : fmax(whole, bits_of(without_borders(p), false));
}

bool looks_regular(looks_part p, bool batch) {
  return bits_of_regular(p, true) > 0 || (!batch && bits_of_regular(without_borders(p), false) > 0);
}
