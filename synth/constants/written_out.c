/* Constants as terms without leaves, for rules that hold for these numbers and not for all: causal
 * triangles, consecutive integers, one number, short lists, zeros and ones by their runs, masks
 * that hide.
 *
 * Invariant: a constant joins such a term only where the term's value is its own, bit for bit
 * (float16's triangles as they are in float64). */
#include "synth/constants/constants_int.h"
#include "rules/operators.h"
#include "rules/names.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

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

/* Whether they are equal as read in float64, where the least numbers of a float16 mask and of a
 * float32 mask are one. */
static bool same_reading(state *s, eg_node a, eg_node b) {
  for (size_t set = 0; set < s->n_kept; set++)
    if (!s->oracle->compare(s->oracle->ctx, st_val(s, a, set), st_val(s, b, set), 0).equal)
      return false;
  return true;
}

iso_code cn_relate_triangle(state *s, eg_node e, iso_error *err) {
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
  if (half ? !same_reading(s, def, e) : !cn_identical(s, def, e)) return ISO_OK;
  char *text = rule_term_print(term, s->schemas, NULL);
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  c = cn_note(s, left ? e : def, left ? def : e, text, err);
  free(text);
  return c ? c : cn_merge(s, e, def, err);
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

/* Integers whose number depends on numbers: places, by how often each is repeated. No rule speaks
 * of operators that make such. */
static bool of_lengths(const state *s, eg_node e) {
  for (int side = 0; side < 2; side++) {
    const int32_t i = s->rec[e.i].node[side];
    const synth_node *n = i >= 0 ? &s->graph[side]->node[i] : NULL;
    if (n && n->kind == SYNTH_OP && s->rec[e.i].cval[0]->dtype == RULE_I64 &&
        rule_operator_of(n->call->u.s)->lengths)
      return !from_input(s, e);
  }
  return false;
}

static bool listed_dtype(const rule_tensor *t) {
  return t->dtype == RULE_I64 || t->dtype == RULE_BOOL;
}

iso_code cn_relate_numbers(state *s, eg_node e, iso_error *err) {
  const rule_tensor *t = s->rec[e.i].cval[0];
  if (s->rec[e.i].def != EG_NONE) return ISO_OK; /* it is another number, which was rounded */
  if (t->numel < 1 || !(listed_dtype(t) || rule_dtype_is_float(t->dtype)) ||
      !(s->rec[e.i].leaf || one_number(s, e) || of_lengths(s, e)))
    return ISO_OK;
  const rule_term *term = numbers_term(s, t, input_leaf(s, e));
  if (!term) return ISO_OK;
  eg_node def;
  iso_code c = st_add_term(s, term, NULL, &def, err);
  if (!c) c = st_value(s, def, err);
  if (c) return c;
  if (eg_equal(s->g, e, def) || !s->rec[def.i].cval || !cn_identical(s, def, e) ||
      cn_two_inputs(s, e, def))
    return ISO_OK;
  /* One that took the value of another within 2 ulp is not that number any more. */
  if (!s->rec[e.i].leaf && !rule_tensor_same(s->rec[def.i].val[0], s->rec[e.i].val[0]))
    return ISO_OK;
  char *text = rule_term_print(term, s->schemas, NULL);
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  c = cn_note(s, left ? e : def, left ? def : e, text, err);
  free(text);
  return c ? c : st_merge(s, e, def, WHY_VALUE, (uint32_t)(s->assumed.n - 1), err);
}

/* Zeros and ones by their runs: the numbers themselves, for rules that hold where no row is masked
 * wholly. */
static const rule_term *runs_term(state *s, const rule_tensor *t) {
  iso_arena *a = &s->arena;
  const rule_term *run[MAX_LISTED], *dim[RULE_MAX_RANK] = {NULL}, *out;
  uint32_t n = 0;
  for (int64_t from = 0, to; from < t->numel; from = to) {
    const double v = rule_tensor_get(t, from);
    for (to = from + 1; to < t->numel && rule_tensor_get(t, to) == v;) to++;
    const rule_term *length = rule_int(a, to - from), *value = number_term(a, t, from);
    if (n == MAX_LISTED || !length || !value ||
        !(run[n++] = st_fill_term(s, rule_list(a, &length, 1), value, t->dtype)))
      return NULL;
  }
  for (uint32_t i = 0; i < t->shape.rank; i++)
    if (!(dim[i] = rule_int(a, t->shape.dim[i]))) return NULL;
  const rule_term *shape = rule_list(a, dim, t->shape.rank);
  if (n == 1) return shape ? st_fill_term(s, shape, number_term(a, t, 0), t->dtype) : NULL;
  const rule_term *cat[2] = {rule_list(a, run, n), rule_int(a, 0)}, *view[2] = {NULL, shape};
  iso_error ignored;
  if (!cat[0] || !cat[1] || !shape || rule_call(a, s->schemas, OP_CAT, cat, 2, &view[0], &ignored))
    return NULL;
  return t->shape.rank == 1                                              ? view[0]
         : rule_call(a, s->schemas, OP_RESHAPE, view, 2, &out, &ignored) ? NULL
                                                                         : out;
}

static bool flags(const rule_tensor *t) {
  if (t->numel < 2 || !(rule_dtype_is_int(t->dtype) || rule_dtype_is_float(t->dtype))) return false;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!(x == 0 && !signbit(x)) && x != 1) return false;
  }
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

iso_code cn_relate_flags(state *s, eg_node e, iso_error *err) {
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
    ISO_CHECK(cn_identical(s, def, e));
    const char *name = st_any_id(s, e);
    char *text = rule_term_print(term[k], s->schemas, &name);
    const bool left = s->rec[e.i].node[LEFT] >= 0;
    c = cn_note(s, left ? e : def, left ? def : e, text, err);
    free(text);
    if (!c) c = st_merge(s, e, def, WHY_VALUE, (uint32_t)(s->assumed.n - 1), err);
    if (c) return c;
  }
  return ISO_OK;
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

iso_code cn_relate_hiding(state *s, eg_node e, eg_node *all, size_t *n, iso_error *err) {
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
  if (!c) c = cn_join_equal(s, all, n, b, err);
  if (!c) c = st_add_term(s, term, &b, &def, err);
  if (!c) c = st_value(s, def, err);
  if (c || eg_equal(s->g, e, def) || !cn_identical(s, def, e)) return c;
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  c = cn_note(s, left ? e : def, left ? def : e, NULL, err);
  return c ? c : st_merge(s, e, def, WHY_VALUE, (uint32_t)(s->assumed.n - 1), err);
}
