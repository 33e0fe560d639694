/* Draws for a search: leaves at other scales and signs, at the graphs' literals, at poles. A class
 * of leaves has one value, and leaves defined by others are computed from theirs. */
#include <math.h>
#include <stdlib.h>

#include "synth/leaves/leaves.h"
#include "synth/refute/refute_int.h"

typedef enum how {
  AS_CAPTURED,
  NORMAL,
  POSITIVE,
  NEGATIVE,
  TIES,
  HALVES,
  AT_LITERALS,
  ROWS,
  OUTLIERS,
  ZERO_ROW,
  ZEROS,
  N_HOW
} how;

typedef struct kind {
  how input;
  double input_scale;
  how matrix;
  double matrix_scale;
  how vector;
  double vector_scale;
} kind;

static const kind kinds[ST_DRAW_KINDS] = {{NORMAL, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {NORMAL, 64, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {NORMAL, 1.0 / 64, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {NEGATIVE, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {POSITIVE, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {TIES, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {AT_LITERALS, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {NORMAL, 1e4, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {NORMAL, 1, NORMAL, 4, NORMAL, 1},
                                          {NORMAL, 1, NORMAL, 16, NORMAL, 1},
                                          {NORMAL, 1, NORMAL, 1.0 / 64, AS_CAPTURED, 1},
                                          {NORMAL, 1, NORMAL, 1.0 / 1024, NORMAL, 1},
                                          {NORMAL, 1, NORMAL, 1, NORMAL, 8},
                                          {NORMAL, 1, NEGATIVE, 1, NEGATIVE, 1},
                                          {NORMAL, 1, POSITIVE, 1, POSITIVE, 1},
                                          {ROWS, 1, NORMAL, 1, NORMAL, 1},
                                          {OUTLIERS, 1, OUTLIERS, 1, NORMAL, 1},
                                          {NORMAL, 1, AT_LITERALS, 1, NORMAL, 1},
                                          {NORMAL, 1e6, NORMAL, 1e3, NORMAL, 1},
                                          {TIES, 1, TIES, 1, TIES, 1},
                                          {HALVES, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {ZERO_ROW, 1, AS_CAPTURED, 1, AS_CAPTURED, 1},
                                          {POSITIVE, 64, POSITIVE, 64, POSITIVE, 64},
                                          {NEGATIVE, 64, NEGATIVE, 64, NEGATIVE, 64},
                                          {ZEROS, 1, AS_CAPTURED, 1, AS_CAPTURED, 1}};

/* Where products are of one sign everywhere, and some of their factors are negative; behind these
 * each leaf has a sign of its own. */
enum { FIXED_SIGNS = 2 };
static const kind signs[FIXED_SIGNS] = {{POSITIVE, 1, NEGATIVE, 1, NEGATIVE, 1},
                                        {NEGATIVE, 1, POSITIVE, 1, NEGATIVE, 1}};

static kind signs_of(size_t k, iso_rng *rng) {
  if (k < FIXED_SIGNS) return signs[k];
  const how m = iso_rng_below(rng, 2) ? POSITIVE : NEGATIVE;
  return (kind){m, 1, m, 1, m, 1};
}

void st_collect_literals(st_drawing *h, const rule_term *t) {
  if ((t->kind == RULE_FLOAT && isfinite(t->u.f)) || (t->kind == RULE_INT && llabs(t->u.i) > 2)) {
    const double x = t->kind == RULE_FLOAT ? fabs(t->u.f) : fabs((double)t->u.i);
    bool seen = x == 0 || x > 1e12;
    for (size_t i = 0; i < h->n_literal; i++) seen |= h->literal[i] == x;
    if (!seen && h->n_literal < ST_LITERALS) h->literal[h->n_literal++] = x;
  }
  for (uint32_t i = 0; i < t->n; i++) st_collect_literals(h, t->child[i]);
}

static double draw_one(const st_drawing *h, iso_rng *rng, how m, double mean, double dev,
                       double row) {
  const double z = iso_rng_normal(rng);
  switch (m) {
  case POSITIVE: return fabs(mean + dev * z) + dev * 0.05;
  case NEGATIVE: return -fabs(mean + dev * z) - dev * 0.05;
  case TIES: return (double)iso_rng_below(rng, 5) - 2;
  case HALVES: return 0.5 * ((double)iso_rng_below(rng, 13) - 6);
  case AT_LITERALS: {
    static const double step[] = {1, 1 + 1e-3, 1 - 1e-3, 0, 2, 0.5};
    if (h->n_literal == 0) return mean + dev * z;
    const double v = h->literal[iso_rng_below(rng, h->n_literal)] * step[iso_rng_below(rng, 6)];
    return iso_rng_below(rng, 2) ? v : -v;
  }
  case ROWS: return row;
  case ZEROS: return 0;
  case OUTLIERS: return iso_rng_below(rng, 8) == 0 ? 1e3 * dev * z : mean + dev * z;
  default: return mean + dev * z;
  }
}

/* Zeros of one sign, of both, and among other numbers. */
static iso_code draw_zeros(size_t k, const rule_tensor *v, iso_rng *rng, rule_tensor **out,
                           iso_error *err) {
  const iso_code c = rule_tensor_new(RULE_F64, &v->shape, out, err);
  for (int64_t i = 0; !c && i < v->numel; i++) {
    const double z = iso_rng_normal(rng), zero = k == 0 || iso_rng_below(rng, 2) ? -0.0 : 0.0;
    ((double *)(*out)->data)[i] = k >= 2 && iso_rng_below(rng, 2) ? z : zero;
  }
  return c;
}

/* Of ordinary numbers. Returns: the mean. */
static double spread_of(const rule_tensor *v, double *dev) {
  double sum = 0, squares = 0, n = 0;
  for (int64_t i = 0; i < v->numel; i++)
    if (st_ordinary(rule_tensor_get(v, i))) sum += rule_tensor_get(v, i), n++;
  const double mean = n > 0 ? sum / n : 0;
  for (int64_t i = 0; i < v->numel; i++) {
    const double by = rule_tensor_get(v, i) - mean;
    if (st_ordinary(by)) squares += by * by;
  }
  *dev = n > 0 ? sqrt(squares / n) : 0;
  return mean;
}

static iso_code draw_float(st_drawing *h, const synth_node *n, iso_rng *rng, rule_tensor **out,
                           iso_error *err) {
  rule_tensor *v = n->value[0];
  const bool input = n->kind == SYNTH_INPUT, matrix = v->shape.rank >= 2;
  if (h->poles && (input || (!matrix && h->k >= h->poles->n && h->k % 2))) {
    iso_code c = rule_tensor_new(RULE_F64, &v->shape, out, err);
    if (!c) st_poles_fill(h->poles, h->k, h->plain, rng, (st_within){-INFINITY, INFINITY}, *out);
    return c;
  }
  if (h->large && (input || h->k % 4 == 3)) return st_draw_large(h->k, v, rng, out, err);
  if (h->poles || h->large) return rule_tensor_to_float64(v, out, err);
  if (h->k >= ST_ZERO_SIGNS_DRAW)
    return input ? draw_zeros(h->k - ST_ZERO_SIGNS_DRAW, v, rng, out, err)
                 : rule_tensor_to_float64(v, out, err);
  const bool sign = h->k >= ST_SIGNS_DRAW;
  const kind k = sign ? signs_of(h->k - ST_SIGNS_DRAW, rng) : kinds[h->k % ST_DRAW_KINDS];
  how m = input ? k.input : matrix ? k.matrix : k.vector;
  double scale = input ? k.input_scale : matrix ? k.matrix_scale : k.vector_scale;
  if (h->k >= ST_DRAW_KINDS && !sign) {
    static const double scales[] = {1.0 / 64, 0.25, 1, 1, 4, 64};
    m = (how)iso_rng_below(rng, N_HOW);
    scale = scales[iso_rng_below(rng, 6)];
  }
  if (m == AS_CAPTURED) return rule_tensor_to_float64(v, out, err);
  double dev;
  const double mean = spread_of(v, &dev);
  if (!(dev > 1e-6 * fabs(mean)) || dev < 1e-12 || !isfinite(dev)) dev = 0.1;
  if (!input && !matrix && dev < 0.5 * fabs(mean)) dev = 0.5 * fabs(mean);
  iso_code c = rule_tensor_new(RULE_F64, &v->shape, out, err);
  const int64_t last =
      v->shape.rank && v->shape.dim[v->shape.rank - 1] > 0 ? v->shape.dim[v->shape.rank - 1] : 1;
  double row = 0;
  for (int64_t i = 0; i < v->numel && !c; i++) {
    if (i % last == 0) row = mean + dev * iso_rng_normal(rng);
    ((double *)(*out)->data)[i] =
        m == ZERO_ROW && i < last ? 0 : scale * draw_one(h, rng, m, mean, dev, row);
  }
  /* Each third draw hides nothing. */
  if (!c && h->k % 3 < 2) st_put_masks(v, h->k, 0, v->numel, (*out)->data);
  return c;
}

static iso_code draw_int(st_drawing *h, int side, size_t leaf, iso_rng *rng, rule_tensor **out,
                         iso_error *err) {
  const rule_tensor *v = h->s->graph[side]->node[leaf].value[0];
  static const int64_t edges[] = {0, 1, 127, 128, 255, 256, 257, 32767, 32768, 65535, 16777217};
  int64_t low, high;
  const st_range *r = st_interval(h->s, side, leaf, &low, &high);
  const bool open = !r->told;
  if (open && h->k % 4 == 3) low = -8, high = 9;
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  if (c) return c;
  if (h->poles) {
    const bool truth = v->dtype == RULE_BOOL;
    const st_within in = {truth ? 0 : (double)low, truth ? 2 : (double)high};
    st_poles_fill(h->poles, h->k, h->plain, rng, in, *out);
    return ISO_OK;
  }
  int64_t edge[64];
  /* Of a range that nothing tells the small numbers in turn with those that graphs compare with. */
  const bool compared = h->k % 4 == 3 && (!open || h->k / 4 % 2);
  const size_t n_edges =
      compared ? st_integer_edges(h->s, open ? INT64_MIN : low, open ? INT64_MAX : high, edge,
                                  sizeof edge / sizeof *edge)
               : 0;
  const uint64_t width = high > low ? (uint64_t)(high - low) : 1;
  int64_t x = low + (int64_t)iso_rng_below(rng, width);
  for (int64_t i = 0; i < v->numel; i++) {
    if (h->k % 4 != 1) x = low + (int64_t)iso_rng_below(rng, width); /* 1: one value everywhere */
    if (h->k % 4 == 2 && !open) x = iso_rng_below(rng, 2) ? low : high - 1;
    if (h->k % 4 == 2 && open)
      x = edges[iso_rng_below(rng, v->dtype == RULE_I64 || v->dtype == RULE_I32 ? 11 : 3)] *
          (iso_rng_below(rng, 2) ? 1 : -1);
    if (n_edges) x = edge[(h->k / 4 * (size_t)v->numel + (size_t)i) % n_edges]; /* each in turn */
    if (r->has_none && iso_rng_below(rng, 4) == 0) x = r->none;
    rule_tensor_set_int(*out, i, x);
  }
  return ISO_OK;
}

/* Over the plane at several sizes; where leaves take poles, some elements are 0, or lie on the
 * axes, where functions have their cuts. */
static iso_code draw_complex(const st_drawing *h, const synth_node *n, iso_rng *rng,
                             rule_tensor **out, iso_error *err) {
  static const double sizes[] = {1, 8, 1.0 / 8, 64, 1.0 / 64};
  const double size = sizes[h->k % (sizeof sizes / sizeof *sizes)];
  const iso_code c = st_draw_plane(n->value[0], size, rng, out, err);
  double *x = c ? NULL : (*out)->data;
  for (int64_t i = 0; !c && h->k % 3 == 1 && i < (*out)->numel; i++) {
    const uint64_t axis = iso_rng_below(rng, 4);
    if (axis == 0 || axis == 2) x[2 * i] = 0;
    if (axis == 1 || axis == 2) x[2 * i + 1] = 0;
  }
  return c;
}

typedef struct binder {
  st_drawing *h;
  rule_tensor *at[MAX_CHILDREN];
  uint32_t n;
  iso_arena arena;
} binder;

static iso_code class_value(st_drawing *h, eg_class cls, rule_tensor **out, iso_error *err);

/* An argument of a definition: a literal, a list, or a variable for a class's value. NULL: an
 * error, in `c`. */
static const rule_term *argument(binder *b, eg_class cls, iso_code *c, iso_error *err) {
  state *s = b->h->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  for (size_t i = 0; i < n; i++) {
    const rule_term *lit = st_literal(s, m[i]);
    if (lit) return lit;
    if (!st_is_list(s, m[i])) continue;
    const eg_node list = m[i];
    const size_t k = eg_node_arity(s->g, list);
    const rule_term **child = iso_arena_alloc(&b->arena, (k + 1) * sizeof *child);
    for (size_t j = 0; j < k && child && !*c; j++)
      if (!(child[j] = argument(b, eg_node_child(s->g, list, j), c, err))) return NULL;
    return child && !*c ? rule_list(&b->arena, child, k) : NULL;
  }
  if (b->n == MAX_CHILDREN || (*c = class_value(b->h, cls, &b->at[b->n], err))) return NULL;
  return rule_var(&b->arena, b->n++);
}

static iso_code defined_value(st_drawing *h, eg_node e, rule_tensor **out, iso_error *err) {
  state *s = h->s;
  binder *b = calloc(1, sizeof *b);
  if (!b) return st_no_memory(err);
  b->h = h;
  iso_arena_init(&b->arena);
  const size_t n = eg_node_arity(s->g, e);
  const rule_term **child = iso_arena_alloc(&b->arena, (n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : st_no_memory(err);
  for (size_t i = 0; i < n && !c; i++)
    if (!(child[i] = argument(b, eg_node_child(s->g, e, i), &c, err)) && !c) c = st_no_memory(err);
  const rule_term *t = c ? NULL : rule_op(&b->arena, st_operator(s, e), child, n);
  size_t n_out = 0;
  if (!c && !t) c = st_no_memory(err);
  if (!c) c = s->oracle->call(s->oracle->ctx, t, b->at, true, out, 1, &n_out, err);
  iso_arena_fini(&b->arena);
  free(b);
  return c;
}

/* Where either side has parameters that the other lacks, some may have been computed from others
 * while they were loaded (a norm folded into a weight). Zeros and ones do not show which parameters
 * belong together: they stay as captured too. */
static bool stays(const state *s, const rec *r, const synth_node *n) {
  return r->lonely || (s->leaves.lonely_both && n->kind != SYNTH_INPUT && !st_generic(n->value[0]));
}

/* The value on this draw of a class of leaves and of the layouts that tie them; borrowed. */
static iso_code class_value(st_drawing *h, eg_class cls, rule_tensor **out, iso_error *err) {
  state *s = h->s;
  if ((*out = h->of[cls.i])) return ISO_OK;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  eg_node def = {EG_NONE}, atom = {EG_NONE}, captured = {EG_NONE};
  bool konst = false;
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    if (r->konst && r->valued) konst = true, def = m[i];
    else if (!konst && !r->leaf && st_made(r) && def.i == EG_NONE) def = m[i];
    if (r->leaf && r->atom && atom.i == EG_NONE) atom = m[i];
    if (!r->leaf && r->tensor && m[i].i < captured.i) captured = m[i];
  }
  /* A graph may itself compute the part of a leaf that the other one's is made of: leaves were
   * related before, so it is the oldest. */
  if (def.i == EG_NONE) def = captured;
  iso_code c = ISO_OK;
  rule_tensor *v = NULL;
  if (konst) v = rule_tensor_ref(st_val(s, def, s->witness.set)); /* constants stay */
  else if (atom.i != EG_NONE) {
    const rec *r = &s->rec[atom.i];
    const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
    const size_t leaf = (size_t)r->node[side];
    const synth_node *nd = &s->graph[side]->node[leaf];
    /* At poles every other draw gives all leaves the same numbers: x - y is one, too. */
    h->plain = h->poles && st_poles_plain(h->poles, h->k, cls.i);
    const uint64_t own = h->poles && h->k % 4 < 2 && !h->plain ? 0 : atom.i;
    iso_rng rng = iso_rng_new(s->o->seed ^ UINT64_C(0x77697475), own * 64 + h->k);
    const rule_dtype dtype = nd->value[0]->dtype;
    if (stays(s, r, nd) || (h->large && !rule_dtype_is_float(dtype)))
      c = (v = rule_tensor_ref(st_val(s, atom, 0))) ? ISO_OK : st_lost(&s->values, err);
    else if (rule_dtype_is_complex(dtype)) c = draw_complex(h, nd, &rng, &v, err);
    else
      c = rule_dtype_is_float(dtype) ? draw_float(h, nd, &rng, &v, err)
                                     : draw_int(h, side, leaf, &rng, &v, err);
    if (!c && !stays(s, r, nd)) c = st_fit(s, side, leaf, h->k, &rng, &v, err);
  } else {
    ISO_CHECK(def.i != EG_NONE);
    c = defined_value(h, def, &v, err);
  }
  if (!c) *out = h->of[cls.i] = v;
  return c;
}

iso_code st_draw_all(st_drawing *h, rule_tensor **leaf[2], iso_error *err) {
  state *s = h->s;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      if (s->graph[side]->node[i].kind != SYNTH_OP)
        c = class_value(h, eg_class_of(s->g, s->map[side][i]), &leaf[side][i], err);
  return c;
}

void st_forget_draw(st_drawing *h) {
  for (size_t i = 0; i < h->s->n_rec; i++) {
    rule_tensor_unref(h->of[i]);
    h->of[i] = NULL;
  }
}

void st_preset(st_drawing *h, eg_node e, rule_tensor *v) {
  rule_tensor **at = &h->of[eg_class_of(h->s->g, e).i];
  rule_tensor_unref(*at);
  *at = rule_tensor_ref(v);
}

iso_code st_leaves_as_loaded(state *s, size_t d, rule_tensor **leaf[2], iso_error *err) {
  st_drawing h = {.s = s, .of = calloc(s->n_rec + 1, sizeof *h.of)};
  iso_code c = st_new_leaves(s, leaf) && h.of ? ISO_OK : st_no_memory(err);
  s->witness.set = st_kept_set(s, d);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP) continue;
      const rec *r = &s->rec[s->map[side][i].i];
      if (!r->atom || r->konst) continue;
      rule_tensor *v = st_val(s, s->map[side][i], stays(s, r, n) ? 0 : d);
      if (v) st_preset(&h, s->map[side][i], v);
      else c = st_lost(&s->values, err);
    }
  if (!c) c = st_draw_all(&h, leaf, err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; leaf[side] && i < s->graph[side]->n_nodes; i++)
      (void)rule_tensor_ref(leaf[side][i]);
  for (size_t i = 0; h.of && i < s->n_rec; i++) rule_tensor_unref(h.of[i]);
  free(h.of);
  return c;
}
