/* Where two tensors differ, coarsely enough to be looked at. */
#include "localise/localise_int.h"

#include <math.h>

static int64_t steps(int64_t n, int64_t cells) { return n <= cells ? 1 : (n + cells - 1) / cells; }

/* INFINITY where one is a number and the other is not. */
static double apart(double x, double y) {
  if (x == y || (isnan(x) && isnan(y))) return 0;
  return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

iso_code lo_picture(state *s, const rule_tensor *x, const rule_tensor *y, const synth_picture **out,
                    iso_error *err) {
  *out = NULL;
  const int64_t columns = x->shape.rank ? x->shape.dim[x->shape.rank - 1] : 1;
  if (x->numel == 0 || x->numel != y->numel || rule_dtype_is_complex(x->dtype)) return ISO_OK;
  synth_picture *p = iso_arena_alloc(&s->res->arena, sizeof *p);
  if (!p) return iso_fail(err, ISO_NOMEM, "out of memory");
  *p = (synth_picture){.n_rows = x->numel / columns, .n_columns = columns, .index = -1};
  p->row_step = steps(p->n_rows, SYNTH_PICTURE_ROWS);
  p->column_step = steps(columns, SYNTH_PICTURE_COLUMNS);
  p->rows = (uint32_t)((p->n_rows + p->row_step - 1) / p->row_step);
  p->columns = (uint32_t)((columns + p->column_step - 1) / p->column_step);
  float *cell = iso_arena_alloc(&s->res->arena, (size_t)p->rows * p->columns * sizeof *cell);
  if (!cell) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < (size_t)p->rows * p->columns; i++) cell[i] = 0;
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = fabs(rule_tensor_get(x, i));
    if (isfinite(v)) p->largest = fmax(p->largest, v);
  }
  double most = 0;
  for (int64_t i = 0; i < x->numel; i++) {
    const double a = rule_tensor_get(x, i), b = rule_tensor_get(y, i), d = apart(a, b);
    if (d > 1e-9 * p->largest) p->n_differ++;
    if (d > most) most = d, p->index = i, p->left = a, p->right = b;
    float *c = &cell[(i / columns / p->row_step) * p->columns + i % columns / p->column_step];
    if (d > (double)*c) *c = (float)d;
  }
  p->cell = cell;
  if (p->n_differ) *out = p;
  return ISO_OK;
}
