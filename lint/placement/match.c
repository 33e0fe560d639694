/* Placements by value: the ranks' tensors compared with the whole, on every draw. */
#include <math.h>

#include "lint/placement/placement_int.h"

enum { MOST_BLOCKS = 64 };

void plc_locals(const plc *x, const plc_tuple *t, uint32_t draw, uint32_t k, rule_tensor **out) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const uint32_t i = t->node[r];
    out[r] = i == PLC_NONE                    ? NULL
             : plc_node(x, i)->n_outputs == 1 ? x->value[draw][i]
             : x->many[draw][i]               ? x->many[draw][i][k]
                                              : NULL;
  }
}

static double product(const rule_tensor *a, const rule_tensor *b) {
  double sum = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double v = rule_tensor_get(a, i) * rule_tensor_get(b, i);
    if (isfinite(v)) sum += v;
  }
  return sum;
}

/* How many times the whole the parts are: a number of ranks, or one through that. 0: neither. */
static double scale_of(plc *x, rule_tensor *const *each, const rule_tensor *whole,
                       const plc_place *p, double floor) {
  rule_tensor *t = plc_combine(x, each, p, floor);
  double found = 0;
  if (t && rule_dtype_is_float(t->dtype) && rule_shape_eq(&t->shape, &whole->shape)) {
    const double by = product(t, whole) / product(whole, whole);
    for (uint32_t i = 0; i < 9 && !found; i++) {
      double say = 1;
      for (uint32_t a = 0, e = i; a < x->mesh.n_axes && a < 2; a++, e /= 3)
        say *= e % 3 == 1 ? x->mesh.size[a] : e % 3 == 2 ? 1.0 / x->mesh.size[a] : 1;
      if (say != 1 && fabs(by - say) < 1e-9 * say) found = say;
    }
  }
  rule_tensor_unref(t);
  return found;
}

typedef struct matching {
  plc *x;
  plc_tuple *t;
  uint32_t k, axes;
  bool extremes;       /* the largest or smallest of parts is tried */
  bool norms;          /* so are parts whose squares add up */
  bool nothing;        /* numbers are 0 but for rounding */
  bool scaled, blocks; /* other scales than 1, shards of blocks are tried */
  plc_place *out;
} matching;

static bool holds_everywhere(matching *m) {
  rule_tensor *each[PLC_RANKS];
  for (uint32_t d = 0; d < PLC_DRAWS && m->t->whole[d * m->t->n_out + m->k]; d++) {
    const rule_tensor *whole = m->t->whole[d * m->t->n_out + m->k];
    rule_shape shape[PLC_RANKS];
    plc_locals(m->x, m->t, d, m->k, each);
    if (!plc_shapes(m->x, each, shape)) return false;
    if (!plc_shapes_fit(m->x, shape, m->out, &whole->shape)) return false;
    if (d == 0 && m->scaled && !(m->out->scale = scale_of(m->x, each, whole, m->out, m->t->floor)))
      return false;
    if (!plc_holds(m->x, each, whole, m->out, m->t->floor)) return false;
  }
  return true;
}

static bool match_axis(matching *m, uint32_t axis);

/* Equal parts of a sum are replicas of another scale. */
static bool equal_along(const matching *m, uint32_t axis) {
  rule_tensor *each[PLC_RANKS];
  const uint32_t step = plc_stride(&m->x->mesh, axis);
  plc_locals(m->x, m->t, 0, m->k, each);
  for (uint32_t r = 0; r < m->x->mesh.n; r++) {
    if (!plc_along(&m->x->mesh, r, axis)) continue;
    const rule_tensor *a = each[r], *b = each[r - step];
    if (!a || !b || (a != b && !plc_near(a, b, 1, 0, m->t->floor))) return false;
  }
  return true;
}

/* Shards of each of several blocks: heads that were merged with the batch before them. */
static bool match_blocks(matching *m, uint32_t axis) {
  const rule_shape *whole = &m->t->whole[m->k]->shape;
  for (uint32_t d = 0; d < whole->rank; d++)
    for (uint32_t b = 2; b <= MOST_BLOCKS && b * m->x->mesh.size[axis] <= whole->dim[d]; b++) {
      if (whole->dim[d] % (b * m->x->mesh.size[axis])) continue;
      m->out->axis[axis] = (plc_one){.kind = PLC_S, .dim = d, .blocks = b};
      if (match_axis(m, axis + 1)) return true;
    }
  return false;
}

/* Shards of unequal blocks come from those of operands, along any dimension. */
static bool match_shares(matching *m, uint32_t axis) {
  const rule_shape *whole = &m->t->whole[m->k]->shape;
  for (uint32_t i = 0; i < m->t->n_args; i++) {
    const plc_tuple *o = m->x->tuple[m->t->arg[i]];
    if (o->state != PLC_PLACED || !plc_shared(&o->place[0].axis[axis])) continue;
    for (uint32_t d = 0; d < whole->rank; d++) {
      m->out->axis[axis] = o->place[0].axis[axis];
      m->out->axis[axis].dim = d;
      if (match_axis(m, axis + 1)) return true;
    }
  }
  return false;
}

static bool match_axis(matching *m, uint32_t axis) {
  if (axis == m->x->mesh.n_axes) return holds_everywhere(m);
  plc_one *o = &m->out->axis[axis];
  /* Of what is 0 but for rounding: parts are the more cautious reading. */
  if (m->nothing && m->axes >> axis & 1) {
    *o = (plc_one){.kind = PLC_P};
    if (match_axis(m, axis + 1)) return true;
  }
  *o = (plc_one){.kind = PLC_R};
  if (match_axis(m, axis + 1)) return true;
  if (!(m->axes >> axis & 1)) return false;
  const uint32_t rank = m->t->whole[m->k]->shape.rank;
  for (uint32_t d = 0; d < rank; d++) {
    *o = (plc_one){.kind = PLC_S, .dim = d};
    if (match_axis(m, axis + 1)) return true;
  }
  const bool equal = equal_along(m, axis);
  for (uint32_t i = PLC_SUM; i <= PLC_NORM; i++) {
    if (i == PLC_NORM ? !m->norms : equal || (i && !m->extremes)) continue;
    *o = (plc_one){.kind = PLC_P, .reduce = (plc_reduce)i};
    if (match_axis(m, axis + 1)) return true;
  }
  return m->blocks && (match_shares(m, axis) || match_blocks(m, axis));
}

/* Of replicas nothing becomes the largest of parts. */
static bool reads_parts(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state != PLC_PLACED) return true;
    for (uint32_t k = 0; k < o->n_out; k++)
      if (!plc_is_replica(x, &o->place[k])) return true;
  }
  return false;
}

/* The scale of its operands: a tensor of zeros has any. */
static double given_scale(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state == PLC_PLACED && o->place[0].scale != 1) return o->place[0].scale;
  }
  return 1;
}

bool plc_match_with(plc *x, plc_tuple *t, uint32_t k, uint32_t axes, bool blocks, plc_place *out) {
  for (int scaled = 0; scaled < 2; scaled++) {
    matching m = {
        .x = x, .t = t, .k = k, .axes = axes, .scaled = scaled, .blocks = blocks, .out = out};
    m.extremes = reads_parts(x, t) && t->whole[k]->dtype != RULE_BOOL;
    m.norms = !scaled && rule_dtype_is_float(t->whole[k]->dtype) &&
              (reads_parts(x, t) || (!t->leaf && !t->mixed && plc_counts_ranks(x, t)));
    m.nothing = t->floor > 0 && plc_largest(t->whole[k]) < t->floor;
    *out = plc_replica();
    if (m.nothing) out->scale = given_scale(x, t);
    if (match_axis(&m, 0)) return true;
  }
  return false;
}

bool plc_match(plc *x, plc_tuple *t, uint32_t k, uint32_t axes, plc_place *out) {
  return plc_match_with(x, t, k, axes, false, out) || plc_match_with(x, t, k, axes, true, out);
}
