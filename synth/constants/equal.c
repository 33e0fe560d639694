/* When two constants are one: equal in their captured dtypes, or apart by no more than the rounding
 * of two computations of one number; and the values after a merge of two.
 *
 * Invariant: a merge is noted as an assumption before it is made, and points at it. */
#include "synth/constants/constants_int.h"
#include "synth/constants/constants.h"
#include "synth/constants/rounding.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdio.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

double cn_epsilon(rule_dtype d) {
  return rule_dtype_is_float(d) && rule_dtype_size(d) > 1 ? rule_dtype_unit(d, 1) : 0;
}

/* Equal, or results of two computations that round differently: 2 ulp, and only in float32 and
 * float64, where 2 ulp cannot be meant as another value, and only for tables: a single number is
 * exact. 0 and -0 are one. */
bool st_same_constant(const rule_tensor *a, const rule_tensor *b) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return false;
  const bool fa = rule_dtype_is_float(a->dtype), fb = rule_dtype_is_float(b->dtype);
  if (fa != fb || (!fa && a->dtype != b->dtype)) return false;
  if (!fa) return rule_tensor_same_bytes(a, b);
  const bool rounds = a->dtype == b->dtype && (a->dtype == RULE_F32 || a->dtype == RULE_F64) &&
                      rule_tensor_varies(a) && rule_tensor_varies(b);
  const double eps = rounds ? 2 * cn_epsilon(a->dtype) : 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (isnan(x) || isnan(y)) return false;
    if (x == y) continue;
    if (!isfinite(x) || !isfinite(y)) return false;
    if (!(fabs(x - y) <= eps * fmax(fabs(x), fabs(y)))) return false;
  }
  return true;
}

bool cn_alike(const state *s, eg_node a, eg_node b) {
  const rec *x = &s->rec[a.i], *y = &s->rec[b.i];
  for (size_t set = 0; set < s->n_kept; set++)
    if (!st_same_constant(x->cval[set * x->n_out], y->cval[set * y->n_out])) return false;
  return !st_zeros_told(s, a, b);
}

bool cn_identical(const state *s, eg_node a, eg_node b) {
  const rec *x = &s->rec[a.i], *y = &s->rec[b.i];
  for (size_t set = 0; set < s->n_kept; set++)
    if (!rule_tensor_same(x->cval[set * x->n_out], y->cval[set * y->n_out])) return false;
  return true;
}

iso_code cn_note(state *s, eg_node l, eg_node r, const char *relation, iso_error *err) {
  char text[512];
  const bool input = s->rec[l.i].leaf || s->rec[r.i].leaf;
  snprintf(text, sizeof text, "%s and %s have the same captured value%s%s", st_any_id(s, l),
           st_any_id(s, r), relation ? " up to layout: " : "", relation ? relation : "");
  if (!st_assume(s, input ? RULE_ASSUMES_INPUT : RULE_ASSUMES_VALUE, l, r, relation, text))
    return nomem(err);
  return ISO_OK;
}

/* The same numbers. */
static bool equal_constants(const state *s, eg_node a, eg_node b) {
  const rec *x = &s->rec[a.i], *y = &s->rec[b.i];
  for (size_t set = 0; set < s->n_kept; set++) {
    const rule_tensor *p = x->cval[set * x->n_out], *q = y->cval[set * y->n_out];
    if (!rule_dtype_is_float(p->dtype)) continue;
    for (int64_t i = 0; i < p->numel; i++)
      if (!(rule_tensor_get(p, i) == rule_tensor_get(q, i))) return false;
  }
  return true;
}

iso_code cn_note_agreement(state *s, eg_node a, eg_node b, const char *relation, bool *fine,
                           iso_error *err) {
  *fine = true;
  if (equal_constants(s, a, b)) return cn_note(s, a, b, relation, err);
  rx_fit fit;
  iso_code c = rx_explained(s, a, b, &fit, err);
  *fine = fit == RX_YES;
  return c || !*fine ? c : st_note_rounded(s, a, b, relation, err);
}

static bool holds_input(state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) {
      const int32_t k = s->rec[m[i].i].node[side];
      if (k >= 0 && s->graph[side]->node[k].kind == SYNTH_INPUT) return true;
    }
  return false;
}

bool cn_two_inputs(state *s, eg_node a, eg_node b) {
  return holds_input(s, a) && holds_input(s, b);
}

iso_code cn_merge(state *s, eg_node a, eg_node b, iso_error *err) {
  rec *keep = &s->rec[a.i], *r = &s->rec[b.i];
  s->constants.inexact |=
      keep->cval && r->cval &&
      keep->cval[0]->dtype != r->cval[0]->dtype; /* what is made of them rounds to either dtype */
  for (size_t d = 0; d < s->n_draws && keep->val[0]->dtype == r->val[0]->dtype; d++) {
    if (r->val[d] == keep->val[d]) continue;
    s->constants.inexact |= !s->oracle->compare(s->oracle->ctx, keep->val[d], r->val[d], 0).equal;
    rule_tensor_unref(r->val[d]);
    r->val[d] = rule_tensor_ref(keep->val[d]);
  }
  return st_merge(s, a, b, WHY_VALUE, (uint32_t)(s->assumed.n - 1), err);
}
