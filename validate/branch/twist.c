/* Attributes where they matter: for every pair of them samples where they are equal, opposite, and
 * in either order, and for each one where it is zero, negative, huge, tiny, whole and a half. They
 * are taken in turn, as far as the conditions let them. */
#include <math.h>
#include <stdlib.h>

#include "validate/sample/instance_int.h"

enum { MAX_ATTRS = 12, PAIRED = 6, OF_REALS = 8, OF_INTEGERS = 6 };

static bool is_attribute(const val_name *n) {
  return n->set && !n->hidden && n->role != 'e' && (n->kind == 'f' || n->kind == 'i');
}

static double value_of(const val_name *n) { return n->kind == 'f' ? n->f : (double)n->i; }

static void give(val_name *n, double v) {
  if (n->kind == 'f') n->f = v;
  else n->i = (int64_t)v;
}

static void exchange(val_name *a, val_name *b) {
  const double x = value_of(a);
  give(a, value_of(b));
  give(b, x);
}

static void twist_pair(val_name *a, val_name *b, unsigned how) {
  const double x = value_of(a), y = value_of(b);
  switch (how) {
  case 1:
    if (x > y) exchange(a, b);
    break;
  case 3:
    if (x < y) exchange(a, b);
    break;
  case 5: give(b, -x); break;
  default: give(b, x); break;
  }
}

static void twist_real(val_name *n, unsigned how) {
  const double v = n->f;
  switch (how) {
  case 0: n->f = v > 0 ? -v : v < 0 ? v - 1 : -1; break;
  case 1: n->f = 0; break;
  case 2: n->f = copysign(1e6, v); break;
  case 3: n->f = copysign(1e-6, v); break;
  case 4: n->f = 1; break;
  case 5: n->f = -1; break;
  case 6: n->f = nearbyint(3 * v); break;
  default: n->f = nearbyint(3 * v) + 0.5; break;
  }
}

static void twist_integer(val_name *n, unsigned how) {
  const int64_t v = n->i;
  switch (how) {
  case 0: n->i = -v; break;
  case 1: n->i = 0; break;
  case 2: n->i = -1 - llabs(v) % 4; break;
  case 3: n->i = v + 5; break;
  case 4: n->i = -v - 5; break;
  default: n->i = v + 1; break;
  }
}

/* The pair that is number `k`, of n. */
static void pair_at(uint32_t n, unsigned k, uint32_t *i, uint32_t *j) {
  for (*i = 0; *i + 1 < n; ++*i) {
    const unsigned in_row = n - 1 - *i;
    if (k < in_row) break;
    k -= in_row;
  }
  *j = *i + 1 + k;
}

bool val_twist(val_problem *p) {
  val_name *at[MAX_ATTRS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_names && n < MAX_ATTRS; i++)
    if (is_attribute(&p->name[i])) at[n++] = &p->name[i];
  const unsigned pairs = PAIRED * (n * (n - (n > 0)) / 2), turn = p->turn++;
  unsigned alone = 0;
  for (uint32_t i = 0; i < n; i++) alone += at[i]->kind == 'f' ? OF_REALS : OF_INTEGERS;
  /* One in three as it was drawn; pairs and single ones in turn. */
  unsigned k = turn / 3;
  if (n == 0 || turn % 3 == 0) return false;
  if (turn % 3 == 1 && pairs) {
    uint32_t i, j;
    k %= pairs;
    pair_at(n, k / PAIRED, &i, &j);
    if (at[i]->kind != at[j]->kind) return false;
    twist_pair(at[i], at[j], k % PAIRED);
    return val_names_hold(p);
  }
  k = (pairs ? k : turn - k - 1) % alone;
  for (uint32_t i = 0; i < n; i++) {
    const unsigned own = at[i]->kind == 'f' ? OF_REALS : OF_INTEGERS;
    if (k < own) {
      if (at[i]->kind == 'f') twist_real(at[i], k);
      else twist_integer(at[i], k);
      break;
    }
    k -= own;
  }
  return val_names_hold(p);
}
