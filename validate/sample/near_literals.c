/* Rules of which samples show nothing: their sides differ in literals that samples cannot tell
 * apart, 1e-9 beside 2e-9, 0.999999 beside 1, or in the operands that they read. */
#include <math.h>
#include <string.h>

#include "rules/operators.h"
#include "validate/oracle_int.h"

static bool near_neutral(double v) {
  return (v != 0 && fabs(v) < 1e-6) || (v != 1 && fabs(fabs(v) - 1) < 1e-6);
}

static void neutral_literals(const rule_term *t, double *v, size_t *n, size_t cap) {
  if (t->kind == RULE_FLOAT && near_neutral(t->u.f)) {
    bool seen = false;
    for (size_t i = 0; i < *n; i++) seen |= v[i] == t->u.f;
    if (!seen && *n < cap) v[(*n)++] = t->u.f;
  }
  for (uint32_t i = 0; i < t->n; i++) neutral_literals(t->child[i], v, n, cap);
}

static bool subset(const double *a, size_t n, const double *b, size_t m) {
  for (size_t i = 0; i < n; i++) {
    bool in = false;
    for (size_t j = 0; j < m; j++) in |= a[i] == b[j];
    if (!in) return false;
  }
  return true;
}

/* ---- numbers that are almost results of others ---- */

enum { NUMBERS = 24, MOST_Q = 16, MOST_P = 64 };

static void all_numbers(const rule_term *t, double *v, size_t *n) {
  const double x = t->kind == RULE_FLOAT ? fabs(t->u.f)
                   : t->kind == RULE_INT ? fabs((double)t->u.i)
                                         : 0;
  bool seen = !(x > 0) || !(x < 1e30);
  for (size_t i = 0; i < *n; i++) seen |= v[i] == x;
  if (!seen && *n < NUMBERS) v[(*n)++] = x;
  for (uint32_t i = 0; i < t->n; i++) all_numbers(t->child[i], v, n);
}

/* Whether the two miss a simple ratio by more than the rounding of a few literals, and by less than
 * samples show. */
static bool almost(double v, double w) {
  const double rounding = 3 * 0x1p-52, shown = 1e-10;
  for (int q = 1; q <= MOST_Q; q++) {
    const double p = nearbyint(v / w * q), apart = p > 0 ? fabs(v / w * q / p - 1) : 1;
    if (p > MOST_P) return false;
    if (apart < shown) return apart > rounding;
  }
  return false;
}

static bool has(const double *v, size_t n, double x) {
  for (size_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* A float on one side alone that is almost another number of the rule, a product or a small
 * multiple of these. */
static bool almost_others(const rule *r) {
  double own[2][NUMBERS], all[NUMBERS];
  size_t n[2] = {0, 0}, n_all = 0;
  all_numbers(r->lhs, own[0], &n[0]);
  all_numbers(r->rhs, own[1], &n[1]);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < n[side] && n_all < NUMBERS; i++)
      if (!has(all, n_all, own[side][i])) all[n_all++] = own[side][i];
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < n[side]; i++) {
      const double v = own[side][i];
      if (has(own[!side], n[!side], v)) continue;
      if (almost(v, 1)) return true;
      for (size_t j = 0; j < n_all; j++)
        if (almost(v, all[j])) return true;
      for (size_t j = 0; j < n_all; j++)
        for (size_t k = j; k < n_all; k++)
          if (all[j] != v && all[k] != v && almost(v, all[j] * all[k])) return true;
    }
  return false;
}

/* Equal but for numbers. */
static bool same_but_numbers(const rule_term *a, const rule_term *b) {
  const bool na = a->kind == RULE_FLOAT || a->kind == RULE_INT,
             nb = b->kind == RULE_FLOAT || b->kind == RULE_INT;
  if (na && nb) return a->kind == RULE_FLOAT || b->kind == RULE_FLOAT || a->u.i == b->u.i;
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0) return false;
  if (a->kind != RULE_OP && a->kind != RULE_LIST) return rule_term_eq(a, b);
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_but_numbers(a->child[i], b->child[i])) return false;
  return true;
}

bool val_rests_on_literals(const rule *r) {
  double a[16], b[16];
  size_t n = 0, m = 0;
  if (same_but_numbers(r->lhs, r->rhs) && !rule_term_eq(r->lhs, r->rhs)) return true;
  if (almost_others(r)) return true;
  neutral_literals(r->lhs, a, &n, 16);
  neutral_literals(r->rhs, b, &m, 16);
  return !subset(a, n, b, m) || !subset(b, m, a, n);
}

static void note_variables(const rule_term *t, unsigned side, unsigned *sides) {
  if (t->kind == RULE_VAR) sides[t->u.i] |= side;
  for (uint32_t i = 0; i < t->n; i++) note_variables(t->child[i], side, sides);
}

bool val_reads_apart(const rule *r) {
  unsigned sides[RULE_MAX_VARS] = {0}, only = 0;
  note_variables(r->lhs, 1, sides);
  note_variables(r->rhs, 2, sides);
  for (uint32_t i = 0; i < r->n_vars; i++) only |= sides[i] == 3 ? 0 : sides[i];
  return only == 3;
}

static bool contains(const rule_term *t, const rule_term *part) {
  if (rule_term_eq(t, part)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (contains(t->child[i], part)) return true;
  return false;
}

/* Kernels of a user are run as they are: nobody but the user can look at them. */
static const char *unlooked(const rule_term *t, const rule_term *other) {
  if (contains(other, t)) return NULL;
  if (t->kind == RULE_OP && rule_is_aten(t->u.s)) {
    const rule_choice how = rule_operator_of(t->u.s)->choice;
    if (how == RULE_CHOICE_UNLISTED || how == RULE_CHOICE_UNSEEN) return t->u.s;
  }
  const char *name = NULL;
  for (uint32_t i = 0; i < t->n && !name; i++) name = unlooked(t->child[i], other);
  return name;
}

const char *val_unlooked(const rule *r) {
  const char *name = unlooked(r->lhs, r->rhs);
  return name ? name : unlooked(r->rhs, r->lhs);
}
