/* Operators on tensors of intervals: their arguments, and which file's function a name stands for.
 * Shapes are libtorch's own. */
#include "validate/precise/ops_int.h"

#ifdef VAL_HAS_MPFR
#include <string.h>

const rule_term *vp_arg(const vp_call *k, const char *name) {
  for (uint32_t i = 0; k->schema && i < k->schema->n_args && i < k->call->n; i++)
    if (strcmp(k->schema->arg[i].name, name) == 0) return k->call->child[i];
  return NULL;
}

const vp_tensor *vp_arg_tensor(const vp_call *k, const char *name) {
  const rule_term *t = vp_arg(k, name);
  return t && t->kind == RULE_VAR ? k->in[t->u.i] : NULL;
}

bool vp_number_of(const rule_term *t, double *out) {
  if (!t || (t->kind != RULE_INT && t->kind != RULE_FLOAT && t->kind != RULE_BOOLEAN)) return false;
  *out = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
  return true;
}

bool vp_flag(const vp_call *k, const char *name, bool if_none) {
  const rule_term *t = vp_arg(k, name);
  return t && t->kind == RULE_BOOLEAN ? t->u.i != 0 : if_none;
}

void vp_element(vp *v, const vp_tensor *t, int64_t i, vn *out) {
  if (t->x) vn_set(out, &t->x[i]);
  else vn_int(v, out, rule_tensor_get_int(t->plain, i));
}

vn *vp_new_number(vp *v) {
  const vp_tensor *t = vp_new(v, RULE_F64, &(rule_shape){0});
  return t ? t->x : NULL;
}

bool vp_literal(vp *v, const rule_term *t, vn **out) {
  double d;
  if (!vp_number_of(t, &d) || !(*out = vp_new_number(v))) return false;
  if (t->kind == RULE_FLOAT) vn_literal(v, *out, d);
  else vn_int(v, *out, t->u.i);
  return true;
}

bool vp_operand_of(vp *v, const vp_call *k, const rule_term *a, const rule_shape *to,
                   vp_operand *o) {
  *o = (vp_operand){0};
  if (!a) return false;
  if (a->kind != RULE_VAR) return vp_literal(v, a, &o->number);
  o->t = k->in[a->u.i];
  const rule_shape *s = &o->t->shape;
  if (s->rank > to->rank) return false;
  int64_t stride = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    const uint32_t at = d + to->rank - s->rank;
    if (s->dim[d] != to->dim[at] && s->dim[d] != 1) return false;
    o->stride[at] = s->dim[d] == 1 ? 0 : stride;
    stride *= s->dim[d];
  }
  return true;
}

void vp_operand_get(vp *v, const vp_operand *o, const rule_shape *to, int64_t i, vn *out) {
  int64_t at = 0;
  if (!o->t) {
    vn_set(out, o->number);
    return;
  }
  for (uint32_t d = to->rank; d-- > 0; i /= to->dim[d]) at += i % to->dim[d] * o->stride[d];
  vp_element(v, o->t, at, out);
}

vp_tensor *vp_result(vp *v, const vp_call *k) {
  return vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
}

const vp_tensor *vp_operand_at(const vp_call *k, uint32_t i) {
  return i < k->call->n && k->call->child[i]->kind == RULE_VAR ? k->in[k->call->child[i]->u.i]
                                                               : NULL;
}

/* ---- by name ---- */

typedef const vp_tensor *(*compute)(vp *v, const vp_call *k);

static compute find(const char *name) {
  static const struct {
    const char *name;
    compute f;
  } table[] = {{"add", vp_sum_or_difference},
               {"sub", vp_sum_or_difference},
               {"subtract", vp_sum_or_difference},
               {"rsub", vp_sum_or_difference},
               {"div", vp_quotient},
               {"divide", vp_quotient},
               {"true_divide", vp_quotient},
               {"gelu", vp_gelu},
               {"clamp", vp_clamp},
               {"clip", vp_clamp},
               {"clamp_min", vp_clamp},
               {"clamp_max", vp_clamp},
               {"hardtanh", vp_clamp},
               {"addcmul", vp_addc},
               {"addcdiv", vp_addc},
               {"lerp", vp_lerp},
               {"mm", vp_contraction},
               {"bmm", vp_contraction},
               {"matmul", vp_contraction},
               {"mv", vp_contraction},
               {"dot", vp_contraction},
               {"linear", vp_contraction},
               {"outer", vp_contraction},
               {"ger", vp_contraction},
               {"addmm", vp_added_product},
               {"baddbmm", vp_added_product},
               {"addmv", vp_added_product},
               {"sum", vp_reduction},
               {"mean", vp_reduction},
               {"prod", vp_reduction},
               {"amax", vp_reduction},
               {"amin", vp_reduction},
               {"var", vp_reduction},
               {"std", vp_reduction},
               {"norm", vp_reduction},
               {"linalg_vector_norm", vp_reduction},
               {"logsumexp", vp_reduction},
               {"softmax", vp_softmax},
               {"_softmax", vp_softmax},
               {"log_softmax", vp_softmax},
               {"_log_softmax", vp_softmax},
               {"cumsum", vp_running},
               {"cumprod", vp_running},
               {"layer_norm", vp_layer_norm},
               {"rms_norm", vp_layer_norm},
               {"scaled_dot_product_attention", vp_attention}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, name) == 0) return table[i].f;
  return NULL;
}

/* The comparison that the operator is: two letters. */
static const char *comparison(const char *name) {
  static const char *const names[][2] = {
      {"eq", "eq"},         {"ne", "ne"},      {"lt", "lt"},           {"le", "le"},
      {"gt", "gt"},         {"ge", "ge"},      {"not_equal", "ne"},    {"less", "lt"},
      {"less_equal", "le"}, {"greater", "gt"}, {"greater_equal", "ge"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i][0], name) == 0) return names[i][1];
  return NULL;
}

const vp_tensor *vp_compute(vp *v, const vp_call *k, bool *known) {
  int cost = 1;
  const vn_unary one = vn_unary_find(k->name, &cost);
  const char *compares = comparison(k->name);
  for (size_t i = 0; i < k->n + 1; i++) {
    const rule_dtype d = i < k->n ? k->in[i]->dtype : k->got[0]->dtype;
    if (rule_dtype_is_complex(d)) return vp_compute_complex(v, k, known);
  }
  *known = true;
  if (compares && k->call->n == 2) return vp_compared(v, k, compares);
  if (!rule_dtype_is_float(k->got[0]->dtype)) return *known = false, NULL;
  if (one && k->call->n == 1) return vp_unary(v, k, one, cost);
  const vp_tensor *out;
  if (vp_activation(v, k, &out)) return out;
  const compute f = find(k->name);
  if (f) return f(v, k);
  /* max and min of a dimension, of all, or of two tensors */
  const bool extreme = strcmp(k->name, "max") == 0 || strcmp(k->name, "min") == 0;
  if (extreme && vp_arg(k, "other"))
    return vp_binary(v, k, vp_arg(k, "self"), vp_arg(k, "other"),
                     k->name[1] == 'a' ? vn_max : vn_min, 1);
  if (extreme) return vp_reduction(v, k);
  const vn_binary two = vn_binary_find(k->name, &cost);
  if (two && k->call->n == 2)
    return vp_binary(v, k, k->call->child[0], k->call->child[1], two, cost);
  *known = false;
  return NULL;
}
#endif
