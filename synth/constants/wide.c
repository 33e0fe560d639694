/* Constants that one side alone computes in float32 (rsqrt(var + eps) over buffers), while the
 * other side has the same number inside of an operator, or after a product, where everything is
 * float64: there they are made in float64, too, as an assumption of kind `rounding`. Runs after the
 * relations by value, on constants that these leave without a counterpart. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/constants/constants.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Who it is of: a leaf, a relation or the other side in its class gives it a value of its own. */
static bool of_one_side(const state *s, eg_class cls, eg_node *oldest) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  bool on[2] = {false, false};
  *oldest = (eg_node){EG_NONE};
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    if (r->leaf || r->def != EG_NONE || !r->konst || !r->valued ||
        (r->node[LEFT] < 0 && r->node[RIGHT] < 0))
      return false;
    for (int side = 0; side < 2; side++) on[side] |= r->node[side] >= 0;
    if (m[i].i < oldest->i) *oldest = m[i];
  }
  return n > 0 && on[LEFT] != on[RIGHT];
}

/* Narrower numbers count as exact: models were trained with them. */
static bool in_float32(const rec *r) {
  bool all = r->cval && r->n_out > 0;
  for (size_t k = 0; all && k < r->n_out; k++)
    all = r->cval[k]->dtype == RULE_F32 || r->cval[k]->dtype == RULE_F64;
  return all;
}

/* No more than computing in float32 explains; where digits cancel, the numbers stay as captured. */
static bool near_captured(const rule_tensor *a, const rule_tensor *b) {
  double most = 0;
  if (a->dtype != RULE_F64 || b->dtype != RULE_F64 || !rule_shape_eq(&a->shape, &b->shape))
    return false;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i);
    if (fabs(x) < 1e30) most = fmax(most, fabs(x));
  }
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x == y || (isnan(x) && isnan(y))) continue;
    if (!(fabs(x - y) <= 0x1p-17 * most)) return false; /* 64 units */
  }
  return true;
}

static bool same_numbers(const rule_tensor *a, const rule_tensor *b) {
  return a->dtype == b->dtype && rule_shape_eq(&a->shape, &b->shape) &&
         rule_tensor_same_bytes(a, b);
}

static void let_go(rule_tensor **v, size_t n) {
  for (size_t i = 0; i < n; i++) rule_tensor_unref(v[i]);
}

/* Output k of an operator with several results. */
static iso_code project(state *s, eg_node e, size_t d, rule_tensor **out, size_t *n,
                        iso_error *err) {
  const eg_node from = st_rep(s, eg_node_child(s->g, e, 0));
  const eg_node *m;
  const size_t n_m = eg_class_nodes(s->g, eg_node_child(s->g, e, 1), &m);
  int64_t k = -1;
  for (size_t i = 0; i < n_m; i++)
    if (st_literal(s, m[i]) && st_literal(s, m[i])->kind == RULE_INT) k = st_literal(s, m[i])->u.i;
  if (from.i == EG_NONE || k < 0 || (size_t)k >= s->rec[from.i].n_out)
    return iso_fail(err, ISO_FORMAT, "there is no output %lld", (long long)k);
  const rec *f = &s->rec[from.i];
  out[0] = rule_tensor_ref(f->val[d * f->n_out + (size_t)k]);
  *n = 1;
  return ISO_OK;
}

static iso_code call_wide(state *s, eg_node e, size_t d, rule_tensor **out, size_t *n,
                          iso_error *err) {
  if (rule_is_getitem(st_operator(s, e))) return project(s, e, d, out, n, err);
  return st_call_again(s, e, d, out, n, err);
}

/* Values on all draws, n_out to each, as they are or as float64 makes them. */
static iso_code all_wide(state *s, eg_node e, rule_tensor **wide, bool *moves, iso_error *err) {
  const rec *r = &s->rec[e.i];
  const size_t n_out = r->n_out;
  bool near = true;
  *moves = false;
  for (size_t d = 0; d < s->n_draws && near; d++) {
    rule_tensor *out[MAX_OUT];
    size_t n = 0;
    iso_code c = call_wide(s, e, d, out, &n, err);
    if (c) return c;
    near = n == n_out;
    r = &s->rec[e.i];
    for (size_t k = 0; k < n && near; k++) {
      near = near_captured(r->val[d * n_out + k], out[k]);
      *moves |= !same_numbers(r->val[d * n_out + k], out[k]);
      wide[d * n_out + k] = rule_tensor_ref(out[k]);
    }
    let_go(out, n);
  }
  *moves &= near;
  return ISO_OK;
}

static void replace(state *s, eg_node e, rule_tensor *const *wide) {
  rec *r = &s->rec[e.i];
  for (size_t k = 0; k < s->n_draws * r->n_out; k++) {
    rule_tensor *old = r->val[k];
    r->val[k] = rule_tensor_ref(wide[k]);
    rule_tensor_unref(old);
  }
}

iso_code st_widen(state *s, eg_node e, bool *moved, iso_error *err) {
  const rec *r = &s->rec[e.i];
  if (moved) *moved = false;
  if (!r->konst || !r->valued || r->leaf || !in_float32(r)) return ISO_OK;
  const size_t all = s->n_draws * r->n_out;
  rule_tensor **wide = calloc(all + 1, sizeof *wide);
  bool moves = false;
  iso_code c = wide ? all_wide(s, e, wide, &moves, err) : nomem(err);
  if (!c && moves) replace(s, e, wide);
  if (!c && moved) *moved = moves;
  if (wide) let_go(wide, all);
  free(wide);
  return c;
}

/* The other members of its class share its value. */
static void share(state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    if (m[i].i != e.i && r->n_out == s->rec[e.i].n_out && in_float32(r))
      replace(s, m[i], s->rec[e.i].val);
  }
}

static iso_code note(state *s, eg_node e, rule_tensor *before, iso_error *err) {
  const char *text = iso_arena_printf(&s->arena, "%s is computed in float64", st_any_id(s, e));
  if (!text || !st_assume(s, RULE_ASSUMES_ROUNDING, e, e, NULL, text)) return nomem(err);
  if (!iso_grow(s->constants.rounded, s->constants.cap_rounded, s->constants.n_rounded + 1))
    return nomem(err);
  s->constants.rounded[s->constants.n_rounded++] =
      (st_rounded){.assumption = s->assumed.n - 1,
                   .node = {e, e},
                   .value = {rule_tensor_ref(before), rule_tensor_ref(st_val(s, e, 0))}};
  return ISO_OK;
}

static iso_code widen_class(state *s, eg_class cls, uint8_t *mark, iso_error *err) {
  eg_node e;
  if (mark[cls.i]) return ISO_OK;
  mark[cls.i] = 1;
  if (!of_one_side(s, cls, &e)) {
    const eg_node *m; /* a list, whose members may be */
    if (eg_class_nodes(s->g, cls, &m) == 0 || !st_is_list(s, m[0])) return ISO_OK;
    e = m[0];
  }
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    iso_code c = widen_class(s, eg_node_child(s->g, e, k), mark, err);
    if (c) return c;
  }
  rec *r = &s->rec[e.i];
  if (st_is_list(s, e) || !(r->tensor || r->multi) || !in_float32(r)) return ISO_OK;
  rule_tensor *before = r->n_out == 1 ? rule_tensor_ref(r->val[0]) : NULL;
  bool moved;
  iso_code c = st_widen(s, e, &moved, err);
  if (!c && moved) share(s, e);
  if (!c && moved && before && st_feeds_values(s, e)) c = note(s, e, before, err);
  rule_tensor_unref(before);
  return c;
}

/* Whether that would move anything. */
static bool rounds_alone(const state *s, eg_node e) {
  eg_node oldest;
  const rec *r = &s->rec[e.i];
  if (!r->konst || !r->valued || r->leaf || !in_float32(r) || r->cval[0]->dtype == RULE_F64)
    return false;
  return st_op_rounds(st_operator(s, e)) && of_one_side(s, eg_class_of(s->g, e), &oldest);
}

iso_code st_widen_constants(state *s, iso_error *err) {
  const size_t n = s->n_rec;
  for (uint32_t i = 0; i < n && !s->constants.narrowed; i++)
    s->constants.narrowed = rounds_alone(s, (eg_node){i});
  if (!s->constants.widen || !s->constants.narrowed) return ISO_OK;
  uint8_t *mark = calloc(n + 1, 1);
  iso_code c = mark ? ISO_OK : nomem(err);
  for (uint32_t i = 0; i < n && !c; i++)
    if (s->rec[i].konst && s->rec[i].valued)
      c = widen_class(s, eg_class_of(s->g, (eg_node){i}), mark, err);
  free(mark);
  s->constants.wide = true;
  return c;
}
