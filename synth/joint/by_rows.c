/* Products with a large matrix that is stored in few bits, or is a function of the seed: a few of
 * its rows at a time are made, which stay in the cache. A vocabulary in float64 takes a gigabyte,
 * and clearing its pages takes longer than the product. */
#include "rules/names.h"
#include "synth/joint/run_int.h"
#include "synth/leaves/leaves.h"

#include <string.h>

int64_t st_matrix_of(const rule_term *call) {
  if (strcmp(call->u.s, OP_LINEAR) != 0 || call->n < 2 || call->child[0]->kind != RULE_VAR ||
      call->child[1]->kind != RULE_VAR || call->child[0]->u.i == call->child[1]->u.i)
    return -1;
  for (uint32_t k = 2; k < call->n; k++)
    if (call->child[k]->kind != RULE_NONE) return -1;
  return call->child[1]->u.i;
}

bool st_is_matrix(const rule_shape *shape) {
  enum { LARGE = 1 << 22 }; /* smaller ones are made as a whole, in blocks that are kept */
  return shape->rank == 2 && shape->dim[1] > 0 && shape->dim[0] * shape->dim[1] >= LARGE;
}

/* Columns `from` on of the results. */
static void put_columns(rule_tensor *to, const rule_tensor *part, int64_t from) {
  const int64_t n = part->shape.dim[part->shape.rank - 1], all = to->shape.dim[to->shape.rank - 1];
  const double *x = part->data;
  double *y = to->data;
  for (int64_t i = 0; i < part->numel / n; i++)
    memcpy(y + i * all + from, x + i * n, (size_t)n * sizeof *x);
}

iso_code st_call_by_rows(state *s, const rule_term *call, rule_tensor **bind,
                         const st_matrix_rows *rows, rule_tensor **out, iso_error *err) {
  enum { BLOCK = 1 << 17 }; /* elements: a mebibyte */
  const int64_t matrix = st_matrix_of(call), all = rows->n,
                most = rows->width < BLOCK ? BLOCK / rows->width : 1;
  rule_tensor *was = bind[matrix];
  iso_code c = ISO_OK;
  *out = NULL;
  for (int64_t at = 0; at < all && !c; at += most) {
    const int64_t n = all - at < most ? all - at : most;
    rule_tensor *part = NULL, *result[MAX_OUT];
    size_t n_out = 0;
    if ((c = rows->give(rows->ctx, at, n, &part, err))) break;
    bind[matrix] = part;
    c = s->oracle->call(s->oracle->ctx, call, bind, true, result, MAX_OUT, &n_out, err);
    rule_tensor_unref(part);
    if (c) break;
    ISO_CHECK(n_out == 1 && result[0]->dtype == RULE_F64 && result[0]->shape.rank > 0);
    rule_shape shape = result[0]->shape;
    shape.dim[shape.rank - 1] = all;
    if (!*out) c = rule_tensor_new_unset(RULE_F64, &shape, out, err);
    if (!c) put_columns(*out, result[0], at);
    rule_tensor_unref(result[0]);
  }
  bind[matrix] = was;
  if (c) rule_tensor_unref(*out), *out = NULL;
  return c;
}

static void keep_it(void *owner) { (void)owner; }

iso_code st_stored_rows(void *ctx, int64_t from, int64_t n, rule_tensor **out, iso_error *err) {
  const st_stored *of = ctx;
  const rule_tensor *t = of->matrix;
  const rule_shape shape = {2, {n, t->shape.dim[1]}};
  const int64_t first = from * shape.dim[1];
  rule_tensor *part;
  iso_code c = ISO_OK;
  if (!(of->noise > 0)) {
    c = rule_tensor_new_unset(RULE_F64, &shape, out, err);
    if (!c) rule_tensor_widen(t, first, n * shape.dim[1], (*out)->data);
    return c;
  }
  void *data = (char *)t->data + (size_t)first * rule_dtype_size(t->dtype);
  if ((c = rule_tensor_wrap(t->dtype, &shape, data, NULL, keep_it, &part, err))) return c;
  c = st_disturbed(part, &(st_disturbing){.noise = of->noise}, of->rng, out, err);
  rule_tensor_unref(part);
  return c;
}

typedef struct drawn { /* the rows of an atom on a draw */
  state *s;
  eg_node e;
  size_t draw;
} drawn;

static iso_code drawn_rows(void *ctx, int64_t from, int64_t n, rule_tensor **out, iso_error *err) {
  const drawn *of = ctx;
  const rule_shape shape = {1, {n}};
  rule_tensor *row;
  iso_code c = rule_tensor_new_unset(RULE_I64, &shape, &row, err);
  if (c) return c;
  for (int64_t k = 0; k < n; k++) rule_tensor_set_int(row, k, from + k);
  c = st_draw_rows(of->s, of->e, of->draw, row, out, err);
  rule_tensor_unref(row);
  return c;
}

iso_code st_call_with_drawn(state *s, const rule_term *call, rule_tensor **bind, eg_node matrix,
                            size_t draw, rule_tensor **out, iso_error *err) {
  const rule_shape *shape = &s->rec[matrix.i].shape;
  drawn of = {s, matrix, draw};
  const st_matrix_rows rows = {shape->dim[0], shape->dim[1], drawn_rows, &of};
  return st_call_by_rows(s, call, bind, &rows, out, err);
}
