/* Numbers of rows that a rank counts from the first row that it has of a table.
 *
 * What the whole number of such a row is follows from the values: wherever a rank has the row, its
 * number is the whole one less where the rank's rows begin. Of rows that it lacks the rank's number
 * means nothing, and what it reads there has to be left out. */
#include "lint/placement/placement_int.h"

static int64_t rows_of(const plc *x, const plc_tuple *table, uint32_t rank, uint32_t dim) {
  return plc_node(x, table->node[rank])->output[0].shape.dim[dim];
}

/* Where the rows of a rank begin. */
static int64_t first_row(const plc *x, const plc_tuple *table, uint32_t rank, uint32_t axis) {
  const uint32_t at = plc_along(&x->mesh, rank, axis), step = plc_stride(&x->mesh, axis);
  int64_t from = 0;
  for (uint32_t k = 0; k < at; k++)
    from += rows_of(x, table, rank - (at - k) * step, table->place[0].axis[axis].dim);
  return from;
}

/* Whether the numbers of a rank are the whole ones, less `from`, where the rank has the row.
 * Returns: how many these are; -1: they are not. */
static int64_t counted_from(const rule_tensor *own, const rule_tensor *all, int64_t from,
                            int64_t rows) {
  int64_t n = 0;
  for (int64_t i = 0; i < own->numel; i++) {
    const int64_t v = rule_tensor_get_int(all, i);
    if (v < from || v >= from + rows) continue;
    if (rule_tensor_get_int(own, i) != v - from) return -1;
    n++;
  }
  return n;
}

/* The same on all ranks and draws, numbers themselves being cut along other axes as `p` says. */
static bool counts_own(plc *x, const plc_tuple *table, const plc_tuple *v, uint32_t axis,
                       const plc_place *p) {
  rule_tensor *own[PLC_RANKS], *all[PLC_RANKS];
  rule_shape shape[PLC_RANKS];
  const uint32_t dim = table->place[0].axis[axis].dim;
  int64_t seen = 0;
  bool is = true;
  for (uint32_t d = 0; d < PLC_DRAWS && is; d++) {
    plc_locals(x, v, d, 0, own);
    if (!v->whole[d] || !plc_shapes(x, own, shape)) return false;
    if (!plc_cut(x, v->whole[d], p, shape, 0, all)) return false;
    for (uint32_t r = 0; r < x->mesh.n; r++) {
      const int64_t n =
          is ? counted_from(own[r], all[r], first_row(x, table, r, axis), rows_of(x, table, r, dim))
             : 0;
      is &= n >= 0;
      if (plc_along(&x->mesh, r, axis)) seen += n; /* the first rank counts as the whole does */
      rule_tensor_unref(all[r]);
    }
  }
  return is && seen > 0;
}

static bool is_numbers(const plc_tuple *t) {
  return t->n_out == 1 && t->whole && t->whole[0] && rule_dtype_is_int(t->whole[0]->dtype);
}

/* The axis along which a tensor is cut in one way; PLC_NONE: it is not. */
static uint32_t cut_axis(const plc *x, const plc_tuple *t) {
  uint32_t axis = PLC_NONE;
  if (t->state != PLC_PLACED || t->n_out != 1 || t->place[0].scale != 1) return PLC_NONE;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) return PLC_NONE;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
    const plc_one *o = &t->place[0].axis[a];
    if (o->kind == PLC_R) continue;
    if (o->kind != PLC_S || plc_blocks(o) > 1 || axis != PLC_NONE) return PLC_NONE;
    axis = a;
  }
  return axis;
}

const plc_tuple *plc_own_rows(plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args && !t->mixed && !t->collective; i++) {
    const plc_tuple *table = x->tuple[t->arg[i]];
    const uint32_t axis = cut_axis(x, table);
    for (uint32_t k = 0; k < t->n_args && axis != PLC_NONE; k++) {
      const plc_tuple *v = x->tuple[t->arg[k]];
      if (k == i || v->state != PLC_VARYING || !is_numbers(v)) continue;
      const uint32_t ways = v->whole[0]->shape.rank + 1;
      for (uint32_t w = 0; w < ways * x->mesh.n_axes && !plc_failed(x); w++) {
        plc_place p = plc_replica();
        if (w % ways && w / ways == axis) continue;
        if (w % ways) p.axis[w / ways] = (plc_one){.kind = PLC_S, .dim = w % ways - 1};
        if (counts_own(x, table, v, axis, &p)) return table;
      }
    }
  }
  return NULL;
}

bool plc_is_number(const plc_tuple *t) {
  return t->n_out == 1 && t->whole && t->whole[0] && !rule_dtype_is_float(t->whole[0]->dtype);
}

void plc_blame_rows(plc *x, const plc_tuple *t, const plc_tuple *table) {
  plc_found(x, LINT_BAD_PLACEMENT, t, "set to 0 what is read for rows that the rank lacks",
            "%s reads rows of %s, which is %s, by numbers that are counted from the rank's first "
            "row: for rows of other ranks it reads some of its own, and they are not left out",
            plc_say(x, t), plc_say(x, table), plc_print(x, &table->place[0], x->keep));
}
