/* Operators that do nothing but compare numbers and hand some of them on, or say where they stand:
 * sorted rows, places of the largest, medians, boundaries. Where all numbers that are given can be
 * told apart, libtorch does it on their ranks; where two intervals overlap, it is open. */
#include "rules/operators.h"
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double first_rank = 0x1p41;

static bool orders(const rule_operator *o) {
  return o->exact && !o->reduces &&
         (o->choice == RULE_CHOICE_ORDER || o->choice == RULE_CHOICE_EXTREME ||
          o->choice == RULE_CHOICE_BUCKET);
}

/* Numbers are compared with numbers alone: no literal among them, and no integers. */
static bool of_numbers(const vp_call *k, const rule_operator *o) {
  for (size_t i = 0; i < k->n; i++)
    if (!k->in[i]->x || rule_dtype_is_complex(k->in[i]->dtype)) return false;
  for (uint32_t i = 0; i < k->call->n; i++)
    if (k->call->child[i]->kind == RULE_FLOAT) return false;
  if (o->choice == RULE_CHOICE_BUCKET) return k->n == 2 && k->call->child[1]->kind == RULE_VAR;
  return k->n > 0;
}

typedef struct ranked {
  const vn *x;
  int64_t at; /* among all that are given */
} ranked;

static int by_size(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  const int c = mpfr_cmp(&x->x->lo, &y->x->lo);
  return c ? c : mpfr_cmp(&x->x->hi, &y->x->hi);
}

/* By rank, the number; and by place among all that are given, the rank. NULL: stopped. */
static const vn **sorted(vp *v, const vp_call *k, int64_t n, int64_t *rank) {
  ranked *all = vp_take(v, ((size_t)n + 1) * sizeof *all);
  const vn **number = vp_take(v, ((size_t)n + 1) * sizeof *number);
  int64_t at = 0, r = -1;
  if (!all || !number || !vp_go(v, n)) return NULL;
  for (size_t i = 0; i < k->n; i++)
    for (int64_t j = 0; j < k->in[i]->n; j++, at++) all[at] = (ranked){&k->in[i]->x[j], at};
  qsort(all, (size_t)n, sizeof *all, by_size);
  for (int64_t i = 0; i < n; i++) {
    const int c = i ? vn_compare(all[i - 1].x, all[i].x) : -1;
    if (c == 2) return v->open = true, NULL;
    if (c != 0) number[++r] = all[i].x;
    rank[all[i].at] = r;
  }
  return number;
}

static rule_tensor *as_ranks(vp *v, const vp_tensor *t, const int64_t *rank) {
  rule_tensor *x = NULL;
  iso_error local;
  if (rule_tensor_new(RULE_F64, &t->shape, &x, &local) != ISO_OK) return v->no_memory = true, NULL;
  for (int64_t i = 0; i < t->n; i++) ((double *)x->data)[i] = first_rank + (double)rank[i];
  return x;
}

static const vp_tensor *numbers_of(vp *v, rule_tensor *got, const vn **number, int64_t n) {
  if (!rule_dtype_is_float(got->dtype)) return vp_given(v, got);
  vp_tensor *t = vp_new(v, RULE_F64, &got->shape);
  for (int64_t i = 0; t && i < t->n && vp_go(v, 1); i++) {
    const double r = rule_tensor_get(got, i) - first_rank;
    if (!(r >= 0 && r < (double)n) || fabs(r - nearbyint(r)) > 0) return v->lacks = true, NULL;
    vn_set(&t->x[i], number[(int64_t)r]);
  }
  return t;
}

bool vp_by_ranks(vp *v, const vp_call *k, const vp_tensor **out) {
  enum { MOST = 64 };
  rule_tensor *bind[MOST] = {NULL}, *got[MOST];
  int64_t n = 0, at = 0;
  size_t n_got = 0;
  iso_error local = {0};
  const rule_operator *o = rule_operator_of(k->call->u.s);
  if (!orders(o) || !of_numbers(k, o) || k->n_got > MOST) return false;
  for (size_t i = 0; i < k->n; i++) n += k->in[i]->n;
  int64_t *rank = vp_take(v, ((size_t)n + 1) * sizeof *rank);
  const vn **number = rank ? sorted(v, k, n, rank) : NULL;
  if (!number) return false;
  bool ok = true;
  for (size_t i = 0; i < k->n && ok; at += k->in[i++]->n)
    ok = (bind[i] = as_ranks(v, k->in[i], rank + at)) != NULL;
  if (ok && val_call(v->e, k->call, bind, VAL_FLOAT64, got, MOST, &n_got, &local) != ISO_OK) {
    n_got = 0;
    v->no_memory |= local.code == ISO_NOMEM;
  }
  for (size_t i = 0; i < n_got && i < k->n_got; i++) out[i] = numbers_of(v, got[i], number, n);
  for (size_t i = 0; i < n_got; i++) rule_tensor_unref(got[i]);
  for (size_t i = 0; i < k->n; i++) rule_tensor_unref(bind[i]);
  return n_got > 0 && out[0] != NULL;
}
#endif
