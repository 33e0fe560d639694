/* Operators that find places by comparing numbers, and leave it open which of equal ones comes
 * first (topk, sort): a kernel's choice in a tie is no part of their meaning. Here they are run
 * with each number replaced by its rank, equal ones ranked by position, upwards or downwards: a
 * tensor that depends on a kernel's choice differs in one of the two. */
#include <math.h>
#include <stdlib.h>

#include "rules/operators.h"
#include "synth/joint/joint.h"

typedef struct placed {
  double v;
  int64_t at; /* below 0: counted from the end, so that later ones come first */
} placed;

static int by_value_then_place(const void *a, const void *b) {
  const placed *x = a, *y = b;
  return x->v != y->v ? (x->v > y->v) - (x->v < y->v) : (x->at > y->at) - (x->at < y->at);
}

/* Owns: the caller frees `sorted`, and unrefs `ranks`; both NULL where the numbers have no order
 * that float64 can hold. */
static iso_code ranks_of(const rule_tensor *x, st_order order, placed **sorted, rule_tensor **ranks,
                         iso_error *err) {
  const double most = 0x1p53;
  *sorted = NULL;
  *ranks = NULL;
  if (rule_dtype_is_complex(x->dtype)) return ISO_OK;
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = rule_tensor_get(x, i);
    if (isnan(v) || (!rule_dtype_is_float(x->dtype) && fabs(v) >= most)) return ISO_OK;
  }
  iso_code c = rule_tensor_new(RULE_F64, &x->shape, ranks, err);
  if (!c && !(*sorted = calloc((size_t)x->numel + 1, sizeof **sorted)))
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (c) return c;
  for (int64_t i = 0; i < x->numel; i++)
    (*sorted)[i] = (placed){rule_tensor_get(x, i), order == ST_ORDER_UP ? i : -1 - i};
  qsort(*sorted, (size_t)x->numel, sizeof **sorted, by_value_then_place);
  for (int64_t r = 0; r < x->numel; r++) {
    const int64_t at = (*sorted)[r].at;
    rule_tensor_set(*ranks, at < 0 ? -1 - at : at, (double)r);
  }
  return ISO_OK;
}

/* Numbers again, of ranks, where they are those of `like`: an operator that counts equal numbers
 * makes others of ranks. */
static iso_code numbers_of(const rule_tensor *ranks, const placed *sorted, int64_t n,
                           const rule_tensor *like, rule_tensor **out, bool *same, iso_error *err) {
  iso_code c = rule_tensor_new(like->dtype, &like->shape, out, err);
  for (int64_t i = 0; i < ranks->numel && !c && *same; i++) {
    const double r = rule_tensor_get(ranks, i);
    *same = r >= 0 && r < (double)n && sorted[(int64_t)r].v == rule_tensor_get(like, i);
    if (*same) rule_tensor_set(*out, i, sorted[(int64_t)r].v);
  }
  return c;
}

/* Takes the results of ranks over in `out`, where all of them can be read. */
static iso_code take_over(rule_tensor *const *by_rank, const placed *sorted, int64_t numbers,
                          rule_tensor **out, size_t n, iso_error *err) {
  rule_tensor *now[MAX_OUT] = {NULL};
  bool same = true;
  iso_code c = ISO_OK;
  for (size_t k = 0; k < n && !c && same; k++) {
    same = rule_shape_eq(&by_rank[k]->shape, &out[k]->shape);
    if (same && by_rank[k]->dtype == RULE_F64)
      c = numbers_of(by_rank[k], sorted, numbers, out[k], &now[k], &same, err);
    else if (same) now[k] = rule_tensor_ref(by_rank[k]);
  }
  for (size_t k = 0; k < n; k++) {
    if (c || !same) rule_tensor_unref(now[k]);
    else rule_tensor_unref(out[k]), out[k] = now[k];
  }
  return c;
}

iso_code st_order_otherwise(state *s, const rule_term *call, rule_tensor **bind, st_order order,
                            rule_tensor **out, size_t n, iso_error *err) {
  const rule_term *of = call->n ? call->child[0] : NULL;
  if (!rule_leaves_ties(call) || of->kind != RULE_VAR || !bind[of->u.i]) return ISO_OK;
  rule_tensor *x = bind[of->u.i], *ranks, *by_rank[MAX_OUT];
  placed *sorted;
  size_t n_rank = 0;
  iso_error local;
  iso_code c = ranks_of(x, order, &sorted, &ranks, err);
  if (!c && ranks) {
    bind[of->u.i] = ranks;
    c = s->oracle->call(s->oracle->ctx, call, bind, true, by_rank, MAX_OUT, &n_rank, &local);
    if (c && c != ISO_NOMEM) c = ISO_OK, n_rank = 0; /* it takes no numbers of that kind */
    else if (c) iso_fail(err, c, "%s", local.msg);
    bind[of->u.i] = x;
  }
  if (!c && n_rank == n) c = take_over(by_rank, sorted, x->numel, out, n, err);
  for (size_t k = 0; k < n_rank; k++) rule_tensor_unref(by_rank[k]);
  rule_tensor_unref(ranks);
  free(sorted);
  return c;
}

/* Whether the places of `a` come before those of `b`, where they first differ. */
static bool earlier(rule_tensor *const *a, rule_tensor *const *b, size_t n) {
  for (size_t k = 0; k < n; k++)
    for (int64_t i = 0; rule_dtype_is_int(a[k]->dtype) && i < a[k]->numel; i++) {
      const int64_t x = rule_tensor_get_int(a[k], i), y = rule_tensor_get_int(b[k], i);
      if (x != y) return x < y;
    }
  return false;
}

iso_code st_order_first(state *s, const rule_term *call, rule_tensor **bind, rule_tensor **out,
                        size_t n, iso_error *err) {
  rule_tensor *down[MAX_OUT];
  if (!rule_leaves_ties(call)) return ISO_OK;
  for (size_t k = 0; k < n; k++) down[k] = rule_tensor_ref(out[k]);
  iso_code c = st_order_otherwise(s, call, bind, ST_ORDER_UP, out, n, err);
  if (!c) c = st_order_otherwise(s, call, bind, ST_ORDER_DOWN, down, n, err);
  const bool swap = !c && earlier(down, out, n);
  for (size_t k = 0; k < n; k++) {
    rule_tensor *const other = swap ? out[k] : down[k];
    if (swap) out[k] = down[k];
    rule_tensor_unref(other);
  }
  return c;
}
