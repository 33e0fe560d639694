/* Constants: what has neither parameters nor values of inputs below it (rotary tables, masks,
 * positions). They are evaluated in their captured dtypes, where two frameworks agree to 2 ulp,
 * related by those values, and never redrawn. */
#include "synth/constants/rounding.h"
#include "rules/names.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static double epsilon(rule_dtype d) {
  switch (d) {
  case RULE_F64: return 0x1p-52;
  case RULE_F32: return 0x1p-23;
  case RULE_F16: return 0x1p-10;
  case RULE_BF16: return 0x1p-7;
  default: return 0;
  }
}

/* Equal, or results of two computations that round differently: 2 ulp, and only in float32 and
 * float64, where that cannot be a value of its own, and only for tables: one number filled in is
 * what it is. `signs`: 0 and -0 are two. */
static bool same_constant(const rule_tensor *a, const rule_tensor *b, bool signs) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return false;
  const bool fa = rule_dtype_is_float(a->dtype), fb = rule_dtype_is_float(b->dtype);
  if (fa != fb || (!fa && a->dtype != b->dtype)) return false;
  if (!fa) return rule_tensor_same_bytes(a, b);
  const bool rounds = a->dtype == b->dtype && (a->dtype == RULE_F32 || a->dtype == RULE_F64) &&
                      rule_tensor_varies(a);
  const double eps = rounds ? 2 * epsilon(a->dtype) : 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (isnan(x) || isnan(y) || (signs && signbit(x) != signbit(y))) return false;
    if (x == y) continue;
    if (!isfinite(x) || !isfinite(y)) return false;
    if (!(fabs(x - y) <= eps * fmax(fabs(x), fabs(y)))) return false;
  }
  return true;
}

static bool signs_count(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE &&
          rule_reads_zero_sign(s->graph[side]->node[i].call))
        return true;
  return false;
}

/* On every set. */
static bool same_constants(const state *s, eg_node a, eg_node b) {
  const rec *x = &s->rec[a.i], *y = &s->rec[b.i];
  for (size_t set = 0; set < s->n_kept; set++)
    if (!same_constant(x->cval[set * x->n_out], y->cval[set * y->n_out], s->signs)) return false;
  return true;
}

/* Bit for bit. */
static bool identical_constants(const state *s, eg_node a, eg_node b) {
  const rec *x = &s->rec[a.i], *y = &s->rec[b.i];
  for (size_t set = 0; set < s->n_kept; set++)
    if (!rule_tensor_same(x->cval[set * x->n_out], y->cval[set * y->n_out])) return false;
  return true;
}

static iso_code note_constant(state *s, eg_node l, eg_node r, const char *relation,
                              iso_error *err) {
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

/* Two that agree to 2 ulp, as same_constants has it: equal, or apart by nothing but rounding. That
 * is noted. `relation`: what `b` is, NULL: itself. */
static iso_code note_agreement(state *s, eg_node a, eg_node b, const char *relation, bool *fine,
                               iso_error *err) {
  *fine = true;
  if (equal_constants(s, a, b)) return note_constant(s, a, b, relation, err);
  rx_fit fit;
  iso_code c = rx_explained(s, a, b, &fit, err);
  *fine = fit == RX_YES;
  return c || !*fine ? c : st_note_rounded(s, a, b, relation, err);
}

/* The real or the imaginary part of a constant, as relate_parts adds it. */
static bool is_part(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  if (!r->konst || r->node[LEFT] >= 0 || r->node[RIGHT] >= 0) return false;
  const char *op = eg_symbol_name(s->g, eg_node_symbol(s->g, e));
  return strcmp(op, OP_REAL) == 0 || strcmp(op, OP_IMAG) == 0;
}

/* One of a class's members is of that side, or a part of what is. */
bool st_constant_on(state *s, eg_node e, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0 ||
        (is_part(s, m[i]) && st_constant_on(s, st_rep(s, eg_node_child(s->g, m[i], 0)), side)))
      return true;
  return false;
}

bool st_feeds_values(state *s, eg_node e) {
  const eg_node *p, *m;
  const size_t members = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < members; i++)
    if (is_part(s, m[i])) return true; /* parts are made of what feeds values */
  const size_t n = eg_class_parents(s->g, eg_class_of(s->g, e), &p);
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[p[i].i];
    if (r->konst) continue;
    if (r->tensor || r->multi) return true;
    if (st_feeds_values(s, p[i])) return true; /* a list */
  }
  return false;
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

/* Two inputs that were captured with the same values are two inputs all the same. */
static bool two_inputs(state *s, eg_node a, eg_node b) {
  return holds_input(s, a) && holds_input(s, b);
}

/* Merge constants that may differ by 2 ulp of a captured dtype: more than float64's tolerance, so
 * that one value goes first. */
static iso_code merge_constants(state *s, eg_node a, eg_node b, iso_error *err) {
  rec *keep = &s->rec[a.i], *r = &s->rec[b.i];
  s->inexact |=
      keep->cval && r->cval &&
      keep->cval[0]->dtype != r->cval[0]->dtype; /* what is made of them rounds to either dtype */
  for (size_t d = 0; d < s->n_draws && keep->val[0]->dtype == r->val[0]->dtype; d++) {
    if (r->val[d] == keep->val[d]) continue;
    s->inexact |= !s->oracle->compare(s->oracle->ctx, keep->val[d], r->val[d], 0).equal;
    rule_tensor_unref(r->val[d]);
    r->val[d] = rule_tensor_ref(keep->val[d]);
  }
  return st_merge(s, a, b, WHY_VALUE, (uint32_t)(s->n_assume - 1), err);
}

/* ---- layouts of constants that agree up to rounding ----
 * The relation engine compares bits. Values of all constants at hand that are within 2 ulp of one
 * another are given one representative first; what comes out is checked against the true values. */

typedef struct snap {
  double *v;
  size_t n;
} snap;

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bool snap_add(snap *s, size_t *cap, const rule_tensor *t) {
  if (!iso_grow(s->v, *cap, s->n + (size_t)t->numel)) return false;
  for (int64_t i = 0; i < t->numel; i++) s->v[s->n++] = rule_tensor_get(t, i);
  return true;
}

static double snapped(const snap *s, double x) {
  size_t lo = 0, hi = s->n;
  while (lo + 1 < hi) { /* the last entry <= x */
    const size_t mid = (lo + hi) / 2;
    if (s->v[mid] <= x) lo = mid;
    else hi = mid;
  }
  return s->v[lo];
}

/* Keep the first of each run of neighbours within 2 ulp. */
static void snap_finish(snap *s, double eps) {
  if (!s->n) return;
  qsort(s->v, s->n, sizeof *s->v, by_value);
  size_t n = 1;
  double last = s->v[0];
  for (size_t i = 1; i < s->n; i++) {
    const double x = s->v[i];
    const bool near = x == last || fabs(x - last) <= 2 * eps * fmax(fabs(x), fabs(last));
    last = x;
    if (!near) s->v[n++] = x;
  }
  s->n = n;
}

static iso_code snap_copy(const snap *s, const rule_tensor *t, rule_tensor **out, iso_error *err) {
  iso_code c = rule_tensor_new(t->dtype, &t->shape, out, err);
  for (int64_t i = 0; i < t->numel && !c; i++)
    rule_tensor_set(*out, i, snapped(s, rule_tensor_get(t, i)));
  return c;
}

/* How often each element of the last dimension is repeated in place: 1 if it is not. */
static int64_t run_length(const rule_tensor *t) {
  const int64_t last = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  for (int64_t k = last; k > 1; k--) {
    if (last % k) continue;
    bool runs = true;
    for (int64_t i = 0; i < t->numel && runs; i++)
      runs = rule_tensor_get(t, i) == rule_tensor_get(t, i - i % k);
    if (runs) return k;
  }
  return 1;
}

/* A table of interleaved pairs (cos, cos, ...): its distinct elements are related, and repeated in
 * place. */
iso_code st_relate_repeated(state *s, synth_index *x, const rule_tensor *t, synth_relation *rel,
                            iso_error *err) {
  const int64_t k = run_length(t);
  if (k == 1 || t->numel == k) return ISO_OK;
  rule_shape shape = t->shape;
  shape.dim[shape.rank - 1] /= k;
  rule_tensor *once;
  iso_code c = rule_tensor_new(t->dtype, &shape, &once, err);
  if (c) return c;
  for (int64_t i = 0; i < once->numel; i++) rule_tensor_set(once, i, rule_tensor_get(t, i * k));
  c = synth_relate(x, once, NULL, &s->arena, rel, err);
  rule_tensor_unref(once);
  if (c || !rel->term) return c;
  const rule_term *arg[3] = {rel->term, rule_int(&s->arena, k),
                             rule_int(&s->arena, shape.rank - 1)},
                  *out;
  rel->term = NULL;
  if (!arg[1] || !arg[2]) return nomem(err);
  if (!(c = rule_call(&s->arena, s->schemas, OP_REPEAT_INTERLEAVE_SELF_INT, arg, 3, &out, err)))
    rel->term = out;
  return c;
}

/* What it was related to, and other layouts of that, needs no relation the other way round. */
iso_code st_mark_related(state *s, const eg_node *all, size_t n, const rule_term *term, int side,
                         bool *related, iso_error *err) {
  bool *used = calloc(n + 1, 1);
  if (!used) return nomem(err);
  st_term_mark(term, used);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n && !related[i]; k++) {
      const rule_tensor *a = s->rec[all[i].i].cval[0], *b = s->rec[all[k].i].cval[0];
      related[i] =
          used[k] && (i == k || (st_constant_on(s, all[i], !side) && rule_tensor_same_bytes(a, b)));
    }
  free(used);
  return ISO_OK;
}

static iso_code relate_one(state *s, eg_node target, int side, const eg_node *all, size_t n,
                           bool smaller, bool *related, size_t self, iso_error *err) {
  const rule_tensor *t = s->rec[target.i].cval[0];
  rule_tensor **src = calloc(n + 1, sizeof *src), *copy = NULL;
  if (!src) return nomem(err);
  snap sn = {0};
  size_t cap = 0;
  bool fine = true, finite = true;
  const double eps = epsilon(t->dtype);
  for (size_t i = 0; i < n; i++) {
    rule_tensor *v = s->rec[all[i].i].cval[0];
    if (st_constant_on(s, all[i], !side) && v->dtype == t->dtype && v->numel > 1 &&
        (!smaller || v->numel < t->numel) && rule_tensor_varies(v) &&
        !eg_equal(s->g, all[i], target)) {
      /* One source for what is the same but for sizes 1 and grouping: the first is nearest to a
       * leaf. */
      bool dup = false;
      for (size_t k = 0; k < i && !dup; k++) dup = src[k] && rule_tensor_same_bytes(src[k], v);
      if (dup) continue;
      src[i] = rule_tensor_ref(v);
      fine = fine && snap_add(&sn, &cap, v);
    }
  }
  fine = fine && snap_add(&sn, &cap, t);
  for (size_t i = 0; i < sn.n; i++) finite &= isfinite(sn.v[i]) != 0;
  iso_code c = fine ? ISO_OK : nomem(err);
  if (!c && eps > 0 && finite) {
    snap_finish(&sn, eps);
    for (size_t i = 0; i < n && !c; i++) {
      if (!src[i]) continue;
      rule_tensor_unref(src[i]);
      src[i] = NULL;
      c = snap_copy(&sn, s->rec[all[i].i].cval[0], &src[i], err);
    }
    if (!c) c = snap_copy(&sn, t, &copy, err);
  }
  synth_index *x = NULL;
  synth_relation rel = {0};
  if (!c) c = synth_index_new(src, NULL, n, s->schemas, &x, err);
  if (!c) c = st_relate_repeated(s, x, copy ? copy : t, &rel, err);
  if (!c && !rel.term) c = synth_relate(x, copy ? copy : t, NULL, &s->arena, &rel, err);
  synth_index_free(x);
  rule_tensor_unref(copy);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(src[i]);
  free(src);
  free(sn.v);
  if (c || !rel.term) return c;
  eg_node def;
  if ((c = st_add_term(s, rel.term, all, &def, err)) || (c = st_value(s, def, err))) return c;
  if (!s->rec[def.i].cval || !same_constants(s, def, target)) return ISO_OK;
  const char **names = calloc(n + 1, sizeof *names);
  if (!names) return nomem(err);
  for (size_t i = 0; i < n; i++) names[i] = st_any_id(s, all[i]);
  char *text = rule_term_print(rel.term, s->schemas, names);
  free(names);
  bool agree;
  c = note_agreement(s, side == LEFT ? target : def, side == RIGHT ? target : def, text, &agree,
                     err);
  free(text);
  if (c || !agree) return c;
  c = merge_constants(s, target, def, err);
  s->rec[target.i].def = def.i;
  related[self] = true;
  return st_mark_related(s, all, n, rel.term, side, related, err);
}

/* Every class of constants takes one value, computed from its children's: the related term's where
 * there is one (so that what it was related to and everything above agree), else the oldest
 * member's. */
static iso_code refresh_class(state *s, eg_class cls, uint8_t *mark, iso_error *err) {
  if (mark[cls.i]) return ISO_OK;
  mark[cls.i] = 1;
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, cls, &m);
  if (n == 0) return ISO_OK;
  eg_node pick = m[0];
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].def != EG_NONE) pick.i = s->rec[m[i].i].def;
  for (size_t k = 0; k < eg_node_arity(s->g, pick); k++) {
    iso_code c = refresh_class(s, eg_node_child(s->g, pick, k), mark, err);
    if (c) return c;
  }
  rec *r = &s->rec[pick.i];
  if (!r->konst || !r->valued || !(r->tensor || r->multi)) return ISO_OK;
  if (!r->leaf) {
    st_forget(s, pick);
    iso_code c = st_value(s, pick, err);
    if (c) return c;
  }
  n = eg_class_nodes(s->g, cls, &m);
  for (size_t i = 0; i < n; i++) {
    rec *q = &s->rec[m[i].i];
    r = &s->rec[pick.i];
    if (m[i].i == pick.i || !q->valued || q->n_out != r->n_out || !q->cval || !r->cval) continue;
    for (size_t k = 0; k < q->n_out * s->n_draws; k++) {
      rule_tensor_unref(q->val[k]);
      q->val[k] = rule_tensor_ref(r->val[k]);
    }
    /* One of another dtype keeps its own value: what is made of it expects that dtype. */
    for (size_t k = 0; k < q->n_out * s->n_kept; k++) {
      if (q->cval[k]->dtype != r->cval[k]->dtype) continue;
      rule_tensor_unref(q->cval[k]);
      q->cval[k] = rule_tensor_ref(r->cval[k]);
    }
  }
  return ISO_OK;
}

static iso_code refresh_constants(state *s, iso_error *err) {
  uint8_t *mark = calloc(s->n_rec + 1, 1);
  if (!mark) return nomem(err);
  iso_code c = ISO_OK;
  const size_t n = s->n_rec, before = s->n_assume;
  for (uint32_t i = 0; i < n && !c; i++)
    if (s->rec[i].konst && s->rec[i].valued)
      c = refresh_class(s, eg_class_of(s->g, (eg_node){i}), mark, err);
  s->n_assume = before; /* literals were noted the first time */
  free(mark);
  return c;
}

/* ---- causal masks ----
 * A mask that came out of a table, a comparison of positions or a chain of either is a triangle all
 * the same: as a term without leaves it can stand in a rule that holds for this mask and not for
 * every mask (a row that is masked wholly is where two attentions differ). */

typedef enum triangle { NO_TRIANGLE, LOWER_TRUE, UPPER_TRUE, UPPER_LOW } triangle;

static triangle triangle_of(const rule_tensor *t, double *low) {
  const rule_shape *sh = &t->shape;
  if (sh->rank < 2 || sh->dim[sh->rank - 1] != sh->dim[sh->rank - 2] || sh->dim[sh->rank - 1] < 2)
    return NO_TRIANGLE;
  const int64_t n = sh->dim[sh->rank - 1];
  const bool is_bool = t->dtype == RULE_BOOL;
  if (!is_bool && !rule_dtype_is_float(t->dtype)) return NO_TRIANGLE;
  const double corner = rule_tensor_get(t, n - 1), diagonal = rule_tensor_get(t, 0);
  if (is_bool ? corner == diagonal : !(corner < -1e30 && diagonal == 0)) return NO_TRIANGLE;
  for (int64_t i = 0; i < t->numel; i++)
    if (rule_tensor_get(t, i) != (i % n > i / n % n ? corner : diagonal)) return NO_TRIANGLE;
  *low = corner;
  return is_bool ? (diagonal != 0 ? LOWER_TRUE : UPPER_TRUE) : UPPER_LOW;
}

static const rule_term *triangle_term(state *s, const rule_tensor *t, triangle kind, double low) {
  iso_arena *a = &s->arena;
  const rule_term *dim[RULE_MAX_RANK], *made, *out;
  for (uint32_t i = 0; i < t->shape.rank; i++) dim[i] = rule_int(a, t->shape.dim[i]);
  const rule_term *dtype = rule_dtype_term(a, t->dtype),
                  *fill = kind == UPPER_LOW ? rule_float(a, low) : rule_bool(a, true);
  const rule_term *full[3] = {rule_list(a, dim, t->shape.rank), fill, dtype};
  iso_error ignored;
  if (!full[0] || !fill || !dtype || rule_call(a, s->schemas, OP_FULL, full, 3, &made, &ignored))
    return NULL;
  const rule_term *cut[2] = {made, rule_int(a, kind == LOWER_TRUE ? 0 : 1)};
  if (!cut[1] ||
      rule_call(a, s->schemas, kind == LOWER_TRUE ? OP_TRIL : OP_TRIU, cut, 2, &out, &ignored))
    return NULL;
  return out;
}

/* As they are read in float64, where a float16 mask's least number is what float32's is. */
static bool same_reading(state *s, eg_node a, eg_node b) {
  for (size_t set = 0; set < s->n_kept; set++)
    if (!s->oracle->compare(s->oracle->ctx, st_val(s, a, set), st_val(s, b, set), 0).equal)
      return false;
  return true;
}

static iso_code relate_triangle(state *s, eg_node e, iso_error *err) {
  /* Of float16 as it is in float64. */
  const rule_tensor *t = s->rec[e.i].cval[0];
  const bool half = t->dtype == RULE_F16;
  if (half) t = st_val(s, e, 0);
  double low = 0;
  const triangle kind = triangle_of(t, &low);
  if (kind == NO_TRIANGLE || !st_feeds_values(s, e)) return ISO_OK;
  const rule_term *term = triangle_term(s, t, kind, low);
  if (!term) return ISO_OK;
  eg_node def;
  iso_code c = st_add_term(s, term, NULL, &def, err);
  if (!c) c = st_value(s, def, err);
  if (c) return c;
  if (eg_equal(s->g, e, def) || !s->rec[def.i].cval) return ISO_OK;
  if (half ? !same_reading(s, def, e) : !identical_constants(s, def, e)) return ISO_OK;
  char *text = rule_term_print(term, s->schemas, NULL);
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  c = note_constant(s, left ? e : def, left ? def : e, text, err);
  free(text);
  return c ? c : merge_constants(s, e, def, err);
}

const rule_term *st_fill_term(state *s, const rule_term *shape, const rule_term *number,
                              rule_dtype dtype) {
  const rule_term *arg[3] = {shape, number, rule_dtype_term(&s->arena, dtype)}, *out;
  iso_error ignored;
  return arg[0] && arg[1] && arg[2] &&
                 !rule_call(&s->arena, s->schemas, OP_FULL, arg, 3, &out, &ignored)
             ? out
             : NULL;
}

enum { MAX_LISTED = 64 };

static const rule_term *number_term(iso_arena *a, const rule_tensor *t, int64_t i) {
  return rule_dtype_is_float(t->dtype) ? rule_float(a, rule_tensor_get(t, i))
                                       : rule_int(a, rule_tensor_get_int(t, i));
}

/* A few numbers of their own, e.g. slopes by head, slots of a cache, which places are seen: in
 * order, by their runs. */
static const rule_term *list_term(state *s, const rule_tensor *t) {
  iso_arena *a = &s->arena;
  const rule_term *part[MAX_LISTED], *dim[RULE_MAX_RANK] = {NULL}, *out;
  size_t n = 0;
  for (int64_t from = 0, to; from < t->numel; from = to) {
    for (to = from + 1; to < t->numel && rule_tensor_get(t, to) == rule_tensor_get(t, from);) to++;
    const rule_term *length = rule_int(a, to - from);
    if (!length ||
        !(part[n++] = st_fill_term(s, rule_list(a, &length, 1), number_term(a, t, from), t->dtype)))
      return NULL;
  }
  const rule_term *arg[2] = {rule_list(a, part, n), rule_int(a, 0)};
  iso_error ignored;
  if (!arg[0] || !arg[1] || rule_call(a, s->schemas, OP_CAT, arg, 2, &out, &ignored)) return NULL;
  if (t->shape.rank == 1) return out;
  for (uint32_t i = 0; i < t->shape.rank; i++)
    if (!(dim[i] = rule_int(a, t->shape.dim[i]))) return NULL;
  const rule_term *view[2] = {out, rule_list(a, dim, t->shape.rank)};
  return view[1] && !rule_call(a, s->schemas, OP_RESHAPE, view, 2, &out, &ignored) ? out : NULL;
}

/* first, first + 1, ... along the one dimension that is not of size 1. */
static const rule_term *steps_term(state *s, const rule_tensor *t, int64_t first) {
  iso_arena *a = &s->arena;
  const rule_term *bound[2] = {rule_int(a, first), rule_int(a, first + t->numel)}, *out;
  iso_error ignored;
  if (!bound[0] || !bound[1] || rule_call(a, s->schemas, OP_ARANGE_START, bound, 2, &out, &ignored))
    return NULL;
  for (uint32_t d = 0, rank = 1; d < t->shape.rank && rank < t->shape.rank; d++) {
    if (t->shape.dim[d] != 1) continue;
    const rule_term *arg[2] = {out, rule_int(a, d)};
    if (!arg[1] || rule_call(a, s->schemas, OP_UNSQUEEZE, arg, 2, &out, &ignored)) return NULL;
    rank++;
  }
  return out;
}

static bool one_long_dim(const rule_shape *sh) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < sh->rank; d++) n += sh->dim[d] != 1;
  return n == 1;
}

/* The numbers that a leaf holds as a term: consecutive integers (positions), one number (which row
 * is taken, a scale), or a short list; an input that is one number everywhere is so by chance. */
static const rule_term *numbers_term(state *s, const rule_tensor *t, bool input) {
  iso_arena *a = &s->arena;
  const bool whole = t->dtype == RULE_I64;
  const int64_t first = whole ? rule_tensor_get_int(t, 0) : 0;
  bool steps = whole && t->numel > 1 && one_long_dim(&t->shape);
  for (int64_t i = 1; steps && i < t->numel; i++) steps = rule_tensor_get_int(t, i) == first + i;
  const rule_term *dim[RULE_MAX_RANK];
  if (steps) return steps_term(s, t, first);
  if (!input && rule_tensor_varies(t) && t->shape.rank >= 1 && t->numel <= MAX_LISTED)
    return list_term(s, t);
  if (rule_tensor_varies(t) || input) return NULL;
  for (uint32_t i = 0; i < t->shape.rank; i++) dim[i] = rule_int(a, t->shape.dim[i]);
  return st_fill_term(s, rule_list(a, dim, t->shape.rank), number_term(a, t, 0), t->dtype);
}

static bool input_leaf(const state *s, eg_node e) {
  for (int side = 0; side < 2; side++) {
    const int32_t i = s->rec[e.i].node[side];
    if (i >= 0 && s->graph[side]->node[i].kind == SYNTH_INPUT) return true;
  }
  return false;
}

/* Whether an input's captured value is below. Children come before their parents. */
static bool from_input(const state *s, eg_node e) {
  uint8_t *below = calloc((size_t)e.i + 1, 1);
  bool out = !below;
  if (below) below[e.i] = 1;
  for (uint32_t k = e.i + 1; k-- > 0 && !out;) {
    if (!below[k]) continue;
    out = input_leaf(s, (eg_node){k});
    const size_t n = eg_node_arity(s->g, (eg_node){k});
    for (size_t i = 0; i < n; i++) below[eg_node_original(s->g, (eg_node){k}, i).i] = 1;
  }
  free(below);
  return out;
}

/* A factor or a summand that is computed and comes out as one number, e.g. a scale by position that
 * is 1 for so few of them. */
static bool one_number(state *s, eg_node e) {
  const rule_tensor *t = s->rec[e.i].cval[0];
  return rule_dtype_is_float(t->dtype) && !rule_tensor_varies(t) && st_feeds_values(s, e) &&
         !from_input(s, e);
}

static bool listed_dtype(const rule_tensor *t) {
  return t->dtype == RULE_I64 || t->dtype == RULE_BOOL;
}

/* For rules that hold for these numbers only. */
static iso_code relate_numbers(state *s, eg_node e, iso_error *err) {
  const rule_tensor *t = s->rec[e.i].cval[0];
  if (s->rec[e.i].def != EG_NONE) return ISO_OK; /* it is another number, which was rounded */
  if (t->numel < 1 || !(listed_dtype(t) || rule_dtype_is_float(t->dtype)) ||
      !(s->rec[e.i].leaf || one_number(s, e)))
    return ISO_OK;
  const rule_term *term = numbers_term(s, t, input_leaf(s, e));
  if (!term) return ISO_OK;
  eg_node def;
  iso_code c = st_add_term(s, term, NULL, &def, err);
  if (!c) c = st_value(s, def, err);
  if (c) return c;
  if (eg_equal(s->g, e, def) || !s->rec[def.i].cval || !identical_constants(s, def, e) ||
      two_inputs(s, e, def))
    return ISO_OK;
  /* One that took the value of another within 2 ulp is not that number any more. */
  if (!s->rec[e.i].leaf && !rule_tensor_same(s->rec[def.i].val[0], s->rec[e.i].val[0]))
    return ISO_OK;
  char *text = rule_term_print(term, s->schemas, NULL);
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  c = note_constant(s, left ? e : def, left ? def : e, text, err);
  free(text);
  return c ? c : st_merge(s, e, def, WHY_VALUE, (uint32_t)(s->n_assume - 1), err);
}

/* Zeros and ones by their runs: the numbers themselves, for rules that hold where no row is masked
 * wholly. */
static const rule_term *runs_term(state *s, const rule_tensor *t) {
  iso_arena *a = &s->arena;
  const rule_term *run[MAX_LISTED], *dim[RULE_MAX_RANK] = {NULL}, *out;
  uint32_t n = 0;
  for (int64_t from = 0, to; from < t->numel; from = to) {
    const int64_t v = rule_tensor_get_int(t, from);
    for (to = from + 1; to < t->numel && rule_tensor_get_int(t, to) == v;) to++;
    const rule_term *length = rule_int(a, to - from), *value = rule_int(a, v);
    if (n == MAX_LISTED || !length || !value ||
        !(run[n++] = st_fill_term(s, rule_list(a, &length, 1), value, t->dtype)))
      return NULL;
  }
  for (uint32_t i = 0; i < t->shape.rank; i++)
    if (!(dim[i] = rule_int(a, t->shape.dim[i]))) return NULL;
  const rule_term *shape = rule_list(a, dim, t->shape.rank);
  if (n == 1)
    return shape ? st_fill_term(s, shape, rule_int(a, rule_tensor_get_int(t, 0)), t->dtype) : NULL;
  const rule_term *cat[2] = {rule_list(a, run, n), rule_int(a, 0)}, *view[2] = {NULL, shape};
  iso_error ignored;
  if (!cat[0] || !cat[1] || !shape || rule_call(a, s->schemas, OP_CAT, cat, 2, &view[0], &ignored))
    return NULL;
  return t->shape.rank == 1                                              ? view[0]
         : rule_call(a, s->schemas, OP_RESHAPE, view, 2, &out, &ignored) ? NULL
                                                                         : out;
}

static bool flags(const rule_tensor *t) {
  if (t->numel < 2 || !rule_dtype_is_int(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if ((uint64_t)rule_tensor_get_int(t, i) > 1) return false;
  return true;
}

/* m = to(m != 0) */
static const rule_term *truth_term(state *s, rule_dtype dtype) {
  iso_arena *a = &s->arena;
  const rule_term *ne[2] = {rule_var(a, 0), rule_int(a, 0)},
                  *to[2] = {NULL, rule_dtype_term(a, dtype)}, *out;
  iso_error ignored;
  if (!ne[0] || !ne[1] || !to[1] || rule_call(a, s->schemas, OP_NE_SCALAR, ne, 2, &to[0], &ignored))
    return NULL;
  return rule_call(a, s->schemas, OP_TO_DTYPE, to, 2, &out, &ignored) ? NULL : out;
}

/* An input of zeros and ones (which tokens are padding) is one of truth values: a rule that
 * compares it with 0 on one side and subtracts it from 1 on the other holds for those, and for no
 * other integers. Where it is the same on every set, it is its numbers, too. */
static iso_code relate_flags(state *s, eg_node e, iso_error *err) {
  bool all = input_leaf(s, e), same = true;
  for (size_t set = 0; set < s->n_kept && all; set++) {
    all = flags(s->rec[e.i].cval[set]);
    same &= rule_tensor_same(s->rec[e.i].cval[0], s->rec[e.i].cval[set]);
  }
  if (!all) return ISO_OK;
  const rule_term *term[2] = {truth_term(s, s->rec[e.i].cval[0]->dtype),
                              same ? runs_term(s, s->rec[e.i].cval[0]) : NULL};
  for (int k = 0; k < 2; k++) {
    eg_node def;
    if (!term[k]) continue;
    iso_code c = st_add_term(s, term[k], &e, &def, err);
    if (!c) c = st_value(s, def, err);
    if (c) return c;
    if (eg_equal(s->g, e, def)) continue;
    ISO_CHECK(identical_constants(s, def, e));
    const char *name = st_any_id(s, e);
    char *text = rule_term_print(term[k], s->schemas, &name);
    const bool left = s->rec[e.i].node[LEFT] >= 0;
    c = note_constant(s, left ? e : def, left ? def : e, text, err);
    free(text);
    if (!c) c = st_merge(s, e, def, WHY_VALUE, (uint32_t)(s->n_assume - 1), err);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- complex numbers ----
 * One side rotates by a table of complex numbers and the other one by cosines and sines: the parts
 * are constants like any other, and the whole is put together from them. */

static iso_code add_call(state *s, const char *op, const eg_node *arg, size_t n, eg_node *out,
                         iso_error *err) {
  const rule_term *var[2], *call;
  for (size_t i = 0; i < n; i++)
    if (!(var[i] = rule_var(&s->arena, (uint32_t)i))) return nomem(err);
  iso_code c = rule_call(&s->arena, s->schemas, op, var, n, &call, err);
  if (!c) c = st_add_term(s, call, arg, out, err);
  return c ? c : st_value(s, *out, err);
}

/* Returns: in `part` the real and the imaginary part of `e`. */
static iso_code relate_parts(state *s, eg_node e, eg_node part[2], iso_error *err) {
  eg_node whole;
  iso_code c = add_call(s, OP_REAL, &e, 1, &part[0], err);
  if (!c) c = add_call(s, OP_IMAG, &e, 1, &part[1], err);
  if (!c) c = add_call(s, OP_COMPLEX, part, 2, &whole, err);
  if (c || eg_equal(s->g, e, whole)) return c;
  ISO_CHECK(identical_constants(s, e, whole));
  if (s->rec[e.i].leaf) s->rec[part[0].i].def = part[0].i, s->rec[part[1].i].def = part[1].i;
  else s->rec[whole.i].def = whole.i;
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  const char *id = st_any_id(s, e),
             *text = iso_arena_printf(&s->arena,
                                      "(" OP_COMPLEX " (" OP_REAL " %s) (" OP_IMAG " %s))", id, id);
  if (!text) return nomem(err);
  c = note_constant(s, left ? e : whole, left ? whole : e, text, err);
  return c ? c : merge_constants(s, e, whole, err);
}

/* `e` joins the class of one of all[0 .. n) that has the same value, or becomes the next of them.
 */
static iso_code join_equal(state *s, eg_node *all, size_t *n, eg_node e, iso_error *err) {
  iso_code c = ISO_OK;
  bool joined = false;
  for (size_t k = 0; k < *n && !c && !joined; k++) {
    const rec *q = &s->rec[all[k].i], *r = &s->rec[e.i];
    joined = eg_equal(s->g, all[k], e);
    if (joined || q->cval[0]->numel != r->cval[0]->numel || !same_constants(s, all[k], e) ||
        two_inputs(s, all[k], e))
      continue;
    const bool left_first = q->node[LEFT] >= 0;
    bool fine;
    if ((c = note_agreement(s, left_first ? all[k] : e, left_first ? e : all[k], NULL, &fine, err)))
      break;
    if (!fine) continue;
    c = merge_constants(s, all[k], e, err);
    joined = true;
  }
  if (!c && !joined) all[(*n)++] = e;
  return c;
}

/* 0 and minus infinity alone, and both. */
static bool hides(const rule_tensor *t) {
  bool zero = false, low = false;
  if (!rule_dtype_is_float(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (x != 0 && x != -INFINITY) return false;
    *(x == 0 ? &zero : &low) = true;
  }
  return zero && low;
}

/* masked_fill(zeros, b, -inf), where `b` is RULE_VAR 0. */
static const rule_term *hiding_term(state *s, const rule_tensor *t) {
  iso_arena *a = &s->arena;
  const rule_term *dim[RULE_MAX_RANK], *out;
  for (uint32_t i = 0; i < t->shape.rank; i++) dim[i] = rule_int(a, t->shape.dim[i]);
  const rule_term *zeros[2] = {rule_list(a, dim, t->shape.rank), rule_dtype_term(a, t->dtype)};
  const rule_term *fill[3] = {NULL, rule_var(a, 0), rule_float(a, -INFINITY)};
  iso_error ignored;
  if (!zeros[0] || !zeros[1] || !fill[1] || !fill[2]) return NULL;
  if (rule_call(a, s->schemas, OP_ZEROS, zeros, 2, &fill[0], &ignored)) return NULL;
  return rule_call(a, s->schemas, OP_MASKED_FILL_SCALAR, fill, 3, &out, &ignored) ? NULL : out;
}

/* A stored mask that is added is one that chooses: by truth values that the other side may have. */
static iso_code relate_hiding(state *s, eg_node e, eg_node *all, size_t *n, iso_error *err) {
  const rule_tensor *t = s->rec[e.i].cval[0];
  if (!s->rec[e.i].leaf || (st_has_side(s, e, LEFT) && st_has_side(s, e, RIGHT)) || !hides(t) ||
      !st_feeds_values(s, e))
    return ISO_OK;
  const rule_term *eq[2] = {rule_var(&s->arena, 0), rule_float(&s->arena, -INFINITY)}, *which,
                  *term = hiding_term(s, t);
  if (!eq[0] || !eq[1] || !term) return nomem(err);
  eg_node b, def;
  iso_code c = rule_call(&s->arena, s->schemas, OP_EQ_SCALAR, eq, 2, &which, err);
  if (!c) c = st_add_term(s, which, &e, &b, err);
  if (!c) c = st_value(s, b, err);
  if (!c) c = join_equal(s, all, n, b, err);
  if (!c) c = st_add_term(s, term, &b, &def, err);
  if (!c) c = st_value(s, def, err);
  if (c || eg_equal(s->g, e, def) || !identical_constants(s, def, e)) return c;
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  c = note_constant(s, left ? e : def, left ? def : e, NULL, err);
  return c ? c : st_merge(s, e, def, WHY_VALUE, (uint32_t)(s->n_assume - 1), err);
}

iso_code st_relate_constants(state *s, iso_error *err) {
  s->signs = signs_count(s);
  eg_node *all = calloc(4 * s->n_rec + 1, sizeof *all); /* complex ones and their parts; masks */
  size_t n = 0;
  iso_code c = all ? ISO_OK : nomem(err);
  const size_t n_rec = s->n_rec;
  for (uint32_t i = 0; i < n_rec && !c; i++) {
    const eg_node e = {i};
    rec *r = &s->rec[i];
    if (!r->konst || !(r->tensor || r->multi) || (r->node[0] < 0 && r->node[1] < 0)) continue;
    if ((c = st_value(s, e, err))) {
      const int side = s->rec[i].node[0] >= 0 ? LEFT : RIGHT;
      iso_prefix(err, "%s: node \"%s\": ", s->graph[side]->path, st_any_id(s, e));
      break;
    }
    r = &s->rec[i];
    if (!r->tensor) continue;
    ISO_CHECK(r->cval);
    c = join_equal(s, all, &n, e, err);
  }
  for (size_t k = 0, whole = n; k < whole && !c; k++) {
    if (!rule_dtype_is_complex(s->rec[all[k].i].cval[0]->dtype) || !st_feeds_values(s, all[k]))
      continue;
    eg_node part[2];
    c = relate_parts(s, all[k], part, err);
    for (int i = 0; i < 2 && !c; i++) c = join_equal(s, all, &n, part[i], err);
  }
  if (!c) c = st_relate_literals(s, all, n, err);
  for (size_t k = 0, whole = n; k < whole && !c; k++) c = relate_hiding(s, all[k], all, &n, err);
  for (size_t k = 0; k < n && !c; k++) {
    c = relate_triangle(s, all[k], err);
    if (!c) c = relate_numbers(s, all[k], err);
    if (!c) c = relate_flags(s, all[k], err);
  }
  bool *related = calloc(n + 1, 1);
  if (!related && !c) c = nomem(err);
  for (int smaller = 1; smaller >= 0 && !c; smaller--)
    for (size_t k = 0; k < n && !c; k++) {
      const rule_tensor *t = s->rec[all[k].i].cval[0];
      const bool l = st_constant_on(s, all[k], LEFT), r = st_constant_on(s, all[k], RIGHT);
      if (related[k] || (l && r) || t->dtype == RULE_BOOL || t->numel < 2 ||
          !rule_tensor_varies(t) || !st_feeds_values(s, all[k]))
        continue;
      c = relate_one(s, all[k], l ? LEFT : RIGHT, all, n, smaller == 1, related, k, err);
    }
  if (!c) c = st_relate_rounded(s, all, n, related, err);
  free(related);
  free(all);
  if (!c && s->inexact) c = refresh_constants(s, err);
  return c;
}
