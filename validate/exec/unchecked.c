/* Checks that libtorch does not make of its gradients' operands, of integers that say where to
 * read, nor of a quotient that a processor cannot hold. A call is checked by its place in the
 * schema, since only these few are concerned. */
#include "validate/exec/unchecked.h"

#include <string.h>

static const rule_tensor *operand(const rule_term *call, rule_tensor *const *bind, uint32_t k) {
  return k < call->n && call->child[k]->kind == RULE_VAR ? bind[call->child[k]->u.i] : NULL;
}

static bool alike(const rule_tensor *a, const rule_tensor *b) {
  return a && b && rule_shape_eq(&a->shape, &b->shape);
}

static bool below(const rule_tensor *index, int64_t size, int64_t besides) {
  if (!rule_dtype_is_int(index->dtype)) return false;
  for (int64_t i = 0; i < index->numel; i++) {
    const int64_t x = rule_tensor_get_int(index, i);
    if (x != besides && (x < 0 || x >= size)) return false;
  }
  return true;
}

/* grad_output, indices, num_weights */
static const char *embedding(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *g = operand(call, bind, 0), *i = operand(call, bind, 1);
  if (!g || !i || call->child[2]->kind != RULE_INT) return NULL;
  if (g->shape.rank == 0 || g->numel != i->numel * g->shape.dim[g->shape.rank - 1])
    return "the gradient has other rows than there are indices";
  return below(i, call->child[2]->u.i, 0) ? NULL : "index out of range: it names no row";
}

/* grad_output, self, target, weight, reduction, ignore_index */
static const char *nll(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *x = operand(call, bind, 1), *y = operand(call, bind, 2);
  if (!x || !y || call->child[5]->kind != RULE_INT) return NULL;
  if (x->shape.rank == 0) return "there are no classes";
  const int64_t classes = x->shape.dim[x->shape.rank - 1];
  if (x->numel != y->numel * classes) return "there are other labels than samples";
  return below(y, classes, call->child[5]->u.i) ? NULL : "Class values are out of range";
}

/* grad_out, input, normalized_shape, mean, rstd, weight, bias */
static const char *layer_norm(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *g = operand(call, bind, 0), *x = operand(call, bind, 1),
                    *m = operand(call, bind, 3), *r = operand(call, bind, 4);
  int64_t inner = 1;
  for (uint32_t k = 0; k < call->child[2]->n; k++)
    inner *= call->child[2]->child[k]->kind == RULE_INT ? call->child[2]->child[k]->u.i : 0;
  if (!alike(g, x)) return "the gradient has another shape than the input";
  if (!m || !r || m->numel * inner != x->numel || r->numel * inner != x->numel)
    return "there are other means than rows";
  for (uint32_t k = 5; k < 7; k++) {
    const rule_tensor *w = operand(call, bind, k);
    if (w && w->numel != inner) return "a weight has another size than what is normalised";
  }
  return NULL;
}

/* grad_out, query, key, value, out, logsumexp */
static const char *attention(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *x[6];
  for (uint32_t i = 0; i < 6; i++)
    if (!(x[i] = operand(call, bind, i))) return NULL;
  const rule_shape *q = &x[1]->shape, *k = &x[2]->shape, *sums = &x[5]->shape;
  if (q->rank != 4 || k->rank != 4 || sums->rank != 3) return "an attention has four dimensions";
  if (!alike(x[0], x[1]) || !alike(x[4], x[1]) || !alike(x[3], x[2]))
    return "the gradient has another shape than the result";
  const bool grouped = k->dim[1] > 0 ? q->dim[1] % k->dim[1] == 0 : q->dim[1] == 0;
  if (q->dim[0] != k->dim[0] || !grouped || q->dim[3] != k->dim[3])
    return "query and key have other heads";
  for (uint32_t d = 0; d < 3; d++)
    if (sums->dim[d] != q->dim[d]) return "there are other sums than rows";
  return NULL;
}

/* query, key, value: heads of keys are shared by as many of the queries each. */
static const char *attends(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *q = operand(call, bind, 0), *k = operand(call, bind, 1),
                    *v = operand(call, bind, 2);
  if (!q || !k || !v) return NULL;
  const int64_t *a = q->shape.dim, *b = k->shape.dim;
  if (q->shape.rank != 4 || k->shape.rank != 4 || !alike(k, v))
    return "an attention has four dimensions, and as many keys as values";
  return a[0] == b[0] && a[3] == b[3] && b[1] > 0 && a[1] % b[1] == 0 && a[1] >= b[1]
             ? NULL
             : "keys fit no queries";
}

static const char *softmax(const rule_term *call, rule_tensor *const *bind) {
  return alike(operand(call, bind, 0), operand(call, bind, 1))
             ? NULL
             : "the gradient has another shape than the result";
}

static bool has(const rule_tensor *t, int64_t what) {
  for (int64_t i = 0; rule_dtype_is_int(t->dtype) && i < t->numel; i++)
    if (rule_tensor_get_int(t, i) == what) return true;
  return false;
}

/* self, other, rounding_mode */
static const char *quotient(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *x = operand(call, bind, 0), *y = operand(call, bind, 1);
  const rule_term *by = call->child[1];
  if (!x || !(y ? has(y, -1) : by->kind == RULE_INT && by->u.i == -1)) return NULL;
  const bool least = has(x, INT64_MIN) || (x->dtype != RULE_I64 && has(x, INT32_MIN));
  return least ? "the least integer has no opposite" : NULL;
}

/* v, g, dim: the first and the last dimension have kernels of their own, which take g to have a
 * number for each of their places. */
static const char *weight_norm(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *v = operand(call, bind, 0), *g = operand(call, bind, 1);
  if (!v || !g || call->child[2]->kind != RULE_INT) return NULL;
  const int64_t rank = v->shape.rank, dim = call->child[2]->u.i;
  if (dim != 0 && dim != rank - 1) return NULL;
  return rank > 0 && g->numel == v->shape.dim[dim] ? NULL : "there are other lengths than rows";
}

/* Integers from 0 to `most`, which do not fall along a row. */
static bool rising(const rule_tensor *t, int64_t most) {
  const int64_t row = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  if (!below(t, most + 1, 0)) return false;
  for (int64_t i = 1; i < t->numel; i++)
    if (i % row && rule_tensor_get_int(t, i) < rule_tensor_get_int(t, i - 1)) return false;
  return true;
}

/* weight, indices, offsets; behind them include_last_offset, the end of the last bag */
static const char *bags(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *w = operand(call, bind, 0), *i = operand(call, bind, 1),
                    *from = operand(call, bind, 2);
  if (!w || !i || !from) return NULL;
  if (w->shape.rank != 2 || !below(i, w->shape.dim[0], 0))
    return "index out of range: it names no row";
  const bool ends = call->n > 7 && call->child[7]->kind == RULE_BOOLEAN && call->child[7]->u.i != 0;
  if (from->numel < (ends ? 2 : 1)) return "there are no bags";
  return rising(from, i->numel) ? NULL : "a bag begins where there is no index";
}

/* log_probs, targets, input_lengths, target_lengths */
static const char *alignments(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *p = operand(call, bind, 0), *y = operand(call, bind, 1),
                    *in = operand(call, bind, 2), *out = operand(call, bind, 3);
  if (!p || !y || !in || !out) return NULL;
  if (p->shape.rank < 2) return "there are no classes";
  const int64_t batch = p->shape.rank > 2 ? p->shape.dim[1] : 1;
  if (!below(y, p->shape.dim[p->shape.rank - 1], 0)) return "a label is no class";
  if (in->numel != batch || out->numel != batch) return "there are other lengths than sequences";
  if (!below(in, p->shape.dim[0] + 1, 0)) return "a sequence is longer than the numbers given";
  const bool rows = y->shape.rank == 2;
  if (rows && y->shape.dim[0] != batch) return "there are other labels than sequences";
  int64_t left = rows ? y->shape.dim[1] : y->numel;
  if (!below(out, left + 1, 0)) return "there are fewer labels than a length says";
  for (int64_t k = 0; !rows && k < out->numel; k++) left -= rule_tensor_get_int(out, k);
  return left >= 0 ? NULL : "there are fewer labels than the lengths say";
}

/* input, weight, bias, mean, variance, whether it trains */
static const char *batch_norm(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *x = operand(call, bind, 0);
  if (!x) return NULL;
  if (x->shape.rank < 2) return "there are no channels";
  for (uint32_t k = 1; k < 5; k++) {
    const rule_tensor *w = operand(call, bind, k);
    if (w && w->numel != x->shape.dim[1]) return "a weight has another size than the channels";
  }
  const bool trains = call->child[5]->kind == RULE_BOOLEAN && call->child[5]->u.i;
  const bool known = operand(call, bind, 3) && operand(call, bind, 4);
  return trains || known ? NULL : "there are no statistics to normalise by";
}

/* data, reduce, lengths, indices, offsets, axis */
static const char *segments(const rule_term *call, rule_tensor *const *bind) {
  const rule_tensor *x = operand(call, bind, 0), *n = operand(call, bind, 2),
                    *from = operand(call, bind, 4);
  const int64_t axis = call->n > 5 && call->child[5]->kind == RULE_INT ? call->child[5]->u.i : 0;
  if (!x || axis < 0 || axis >= x->shape.rank) return NULL;
  const int64_t all = x->shape.dim[axis];
  if (from && !rising(from, all)) return "a segment begins where there is nothing";
  if (!n) return NULL;
  const int64_t row = n->shape.rank ? n->shape.dim[n->shape.rank - 1] : 1;
  if (!below(n, all + 1, 0)) return "a segment is longer than all there is";
  for (int64_t i = 0, sum = 0; i < n->numel; i++) {
    sum = (i % row ? sum : 0) + rule_tensor_get_int(n, i);
    if (sum > all) return "the segments are longer than all there is";
  }
  return NULL;
}

/* operator: the kernels that check nothing; the check that each would need is above. */
const char *val_unfit(const rule_term *call, rule_tensor *const *bind) {
  static const struct {
    const char *op;
    const char *(*unfit)(const rule_term *call, rule_tensor *const *bind);
  } all[] = {{"aten::div.Tensor_mode", quotient},
             {"aten::div.Scalar_mode", quotient},
             {"aten::_weight_norm", weight_norm},
             {"aten::_weight_norm_interface", weight_norm},
             {"aten::embedding_dense_backward", embedding},
             {"aten::embedding_bag", bags},
             {"aten::embedding_bag.padding_idx", bags},
             {"aten::_embedding_bag", bags},
             {"aten::_embedding_bag_forward_only", bags},
             {"aten::_ctc_loss.Tensor", alignments},
             {"aten::ctc_loss.Tensor", alignments},
             {"aten::segment_reduce", segments},
             {"aten::native_batch_norm", batch_norm},
             {"aten::nll_loss_backward", nll},
             {"aten::native_layer_norm_backward", layer_norm},
             {"aten::_scaled_dot_product_flash_attention_for_cpu", attends},
             {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention},
             {"aten::_softmax_backward_data", softmax},
             {"aten::_log_softmax_backward_data", softmax}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(call->u.s, all[i].op)) return all[i].unfit(call, bind);
  return NULL;
}
