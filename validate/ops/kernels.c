/* Declared definitions of operators outside PyTorch (rules/kernels.def), made of those of
 * PyTorch's. */
#include <string.h>

#include "validate/ops/ops.h"

static const pt_value *kernel_rms_norm(pt_args *a, int added) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input"), *w = pt_arg_tensor(a, "weight"),
                  *r = added ? pt_arg_tensor(a, "residual") : NULL;
  char kind;
  if (!x || !w || x->kind != 'f' || w->kind != 'f' || x->rank == 0 || w->rank != 1 || w->lead ||
      c->fault.failed)
    return NULL;
  const sx eps = pt_arg_scalar(a, "epsilon", &kind);
  if (!sc_require_eq(c, w->dim[0], x->dim[x->rank - 1])) return NULL;
  if (added) {
    if (!r || r->rank != x->rank || r->lead != x->lead) return NULL;
    for (uint32_t k = 0; k < x->rank; k++)
      if (!sc_require_eq(c, r->dim[k], x->dim[k])) return NULL;
    x = pt_combine(c, c->one, x, c->one, r);
  }
  const pt_tensor *y = pt_times(c, pt_rms(c, x, eps), w);
  if (!y || !x) return NULL;
  return added ? pt_list(c, (const pt_tensor *[]){y, x}, 2) : pt_one(c, y);
}

/* ---- activations ---- */

static sx gelu_quick(sc *c, sx x) {
  return sx_mul(c, x, sx_sigmoid(c, sx_mul(c, sx_double(c, 1.702), x)));
}

enum { SILU_AND_MUL, GELU_AND_MUL, GELU_TANH_AND_MUL, GELU_NEW, GELU_QUICK };

static const pt_value *kernel_activation(pt_args *a, int which) {
  static sx (*const f[])(sc * c, sx x) = {sx_silu, sx_gelu, sx_gelu_tanh, sx_gelu_tanh, gelu_quick};
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input");
  sx half;
  if (!x || x->kind != 'f') return NULL;
  if (which > GELU_TANH_AND_MUL) return pt_one(c, pt_unary(c, x, f[which]));
  if (x->rank == 0 || !sc_multiple(c, x->dim[x->rank - 1], sx_int(c, 2), &half)) return NULL;
  const uint32_t d = x->rank - 1;
  return pt_one(c, pt_times(c, pt_unary(c, pt_slice(c, x, d, c->zero, half, c->one), f[which]),
                            pt_slice(c, x, d, half, half, c->one)));
}

/* ---- positions ---- */

/* x [T, H, D] turned by table [rows, 2 half] at in[1] [T]: p[0] is half; which: neox. */
static sx rotate_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx half = t->p[0], d = idx[2], row = pt_at(c, t->in[1], idx), two = sx_int(c, 2);
  const sx pair = t->which ? 0 : sx_div(c, d, two);
  const sx second =
      t->which ? sx_le(c, half, d) : sx_eq(c, sx_sub(c, d, sx_mul(c, two, pair)), c->one);
  sx r[2];
  for (int k = 0; k < 2; k++) {
    /* The element's own place among the pairs if it is the first (k = 0) or second of one. */
    const sx j = t->which ? (k ? sx_sub(c, d, half) : d) : pair;
    const sx other = t->which ? (k ? sx_sub(c, d, half) : sx_add(c, d, half))
                              : (k ? sx_sub(c, d, c->one) : sx_add(c, d, c->one));
    const sx own = pt_at(c, t->in[0], idx),
             far = pt_at(c, t->in[0], (sx[3]){idx[0], idx[1], other});
    const sx cosine = pt_at(c, t->in[2], (sx[2]){row, j}),
             sine = pt_at(c, t->in[2], (sx[2]){row, sx_add(c, half, j)});
    r[k] = sx_add(c, sx_mul(c, own, cosine),
                  sx_scale(c, k ? PV_ONE_Q : PV_MINUS_Q, sx_mul(c, far, sine)));
  }
  const sx turned = sx_ite(c, second, r[1], r[0]);
  return sx_ite(c, sx_lt(c, d, sx_mul(c, two, half)), turned, pt_at(c, t->in[0], idx));
}

static const pt_tensor *rotated(sc *c, const pt_tensor *x, const pt_tensor *p,
                                const pt_tensor *cache, sx head, sx half, bool neox) {
  sx heads;
  if (!x || x->lead || x->rank < 2 || x->kind != 'f') return NULL;
  const sx rest = sx_prod_dims(c, x->dim + 1, x->rank - 1);
  if (!sc_require_eq(c, x->dim[0], p->dim[0]) || !sc_multiple(c, rest, head, &heads)) return NULL;
  const pt_tensor *y = pt_reshape(c, x, (sx[3]){x->dim[0], heads, head}, 3);
  pt_tensor *t = y ? pt_like(c, y, 'f', rotate_elem) : NULL;
  if (!t) return NULL;
  t->in[1] = p;
  t->in[2] = cache;
  t->p[0] = half;
  t->which = neox;
  return pt_reshape(c, t, x->dim, x->rank);
}

static const pt_value *kernel_rotary(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *p = pt_arg_tensor(a, "positions"), *q = pt_arg_tensor(a, "query"),
                  *k = pt_arg_tensor(a, "key"), *cache = pt_arg_tensor(a, "cos_sin_cache");
  const sx head = pt_arg_size(a, "head_size", 0);
  const bool neox = pt_arg_flag(a, "is_neox", false);
  sx half;
  if (!p || !q || !k || !cache || c->fault.failed || p->rank != 1 || p->lead || p->kind != 'i' ||
      cache->rank != 2 || cache->lead || cache->kind != 'f')
    return NULL;
  if (!sc_require(c, sx_lt(c, c->zero, head)) ||
      !sc_multiple(c, cache->dim[1], sx_int(c, 2), &half))
    return NULL;
  if (!sc_require(c, sx_le(c, cache->dim[1], head))) return NULL;
  pt_bound_index(c, p, cache->dim[0]);
  const pt_tensor *t[2] = {rotated(c, q, p, cache, head, half, neox),
                           rotated(c, k, p, cache, head, half, neox)};
  return t[0] && t[1] ? pt_list(c, t, 2) : NULL;
}

/* ---- attention ---- */

/* x [T, heads d] or [T, heads, d] as [heads, T, d]; `*d` 0: whatever it is. */
static const pt_tensor *by_head(sc *c, const pt_tensor *x, sx heads, sx *d) {
  static const uint32_t order[3] = {1, 0, 2};
  if (!x || x->lead || (x->rank != 2 && x->rank != 3) || x->kind != 'f') return NULL;
  sx width = x->dim[x->rank - 1];
  if (x->rank == 3 ? !sc_require_eq(c, x->dim[1], heads) : !sc_multiple(c, width, heads, &width))
    return NULL;
  if (*d && !sc_require_eq(c, width, *d)) return NULL;
  if (!*d) *d = width;
  const pt_tensor *y = pt_reshape(c, x, (sx[3]){x->dim[0], heads, *d}, 3);
  return y ? pt_permute(c, y, order) : NULL;
}

/* Scores [H, T, T], capped at p[0], then less p[1 + head] times the distance, and hidden beyond a
 * window of p[...]. */
static sx capped_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_mul(c, t->p[0], sx_tanh(c, sx_mul(c, pt_at(c, t->in[0], idx), sx_inv(c, t->p[0]))));
}
static sx sloped_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx slope = c->zero;
  for (int32_t h = t->which; h-- > 0;)
    slope = h + 1 == t->which ? t->many[h]
                              : sx_ite(c, sx_eq(c, idx[0], sx_int(c, h)), t->many[h], slope);
  return sx_add(c, pt_at(c, t->in[0], idx), sx_mul(c, slope, sx_sub(c, idx[2], idx[1])));
}
static sx windowed_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, sx_le(c, idx[2], sx_sub(c, idx[1], t->p[0])), c->neginf,
                pt_at(c, t->in[0], idx));
}
static sx causal_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, sx_le(c, idx[2], idx[1]), pt_at(c, t->in[0], idx), c->neginf);
}

static const pt_tensor *sloped(pt_args *a, const pt_tensor *s, sx heads) {
  sc *c = a->c;
  const rule_term *list = pt_arg(a, "alibi_slopes");
  if (!list || !s) return s;
  pt_tensor *t = pt_like(c, s, 'f', sloped_elem);
  sx *slope = list->kind == RULE_LIST ? sc_take(c, (list->n + 1) * sizeof *slope) : NULL;
  if (!t || !slope || list->n > INT32_MAX || !sc_require_eq(c, heads, sx_int(c, list->n)))
    return NULL;
  for (uint32_t i = 0; i < list->n; i++) {
    char kind;
    slope[i] = pt_scalar(c, list->child[i], &kind);
  }
  t->many = slope;
  t->which = (int)list->n;
  return t;
}

static const pt_tensor *windowed(pt_args *a, const pt_tensor *s) {
  sc *c = a->c;
  const sx window = pt_arg_size(a, "sliding_window", 0);
  bool all;
  if (!s || !sc_decide(c, sx_eq(c, window, c->zero), &all)) return NULL;
  if (all) return s;
  pt_tensor *t =
      sc_require(c, sx_lt(c, c->zero, window)) ? pt_like(c, s, 'f', windowed_elem) : NULL;
  if (t) t->p[0] = window;
  return t;
}

static const pt_tensor *capped(pt_args *a, const pt_tensor *s) {
  sc *c = a->c;
  char kind;
  bool none;
  if (!pt_arg(a, "logits_soft_cap") || !s) return s;
  const sx cap = pt_arg_scalar(a, "logits_soft_cap", &kind);
  if (!sc_decide(c, sx_eq(c, cap, c->zero), &none)) return NULL;
  pt_tensor *t = none ? NULL : pt_like(c, s, 'f', capped_elem);
  if (t) t->p[0] = cap;
  return none ? s : t;
}

/* Attention over one sequence: query [T, H D] or [T, H, D], key [T, G D] or [T, G, D], value [T, G
 * E] or [T, G, E]; top-left causal. */
static const pt_value *kernel_attention(pt_args *a, int which) {
  (void)which;
  static const uint32_t order[3] = {1, 0, 2};
  sc *c = a->c;
  const pt_tensor *q = pt_arg_tensor(a, "query"), *k = pt_arg_tensor(a, "key"),
                  *v = pt_arg_tensor(a, "value");
  const sx heads = pt_arg_size(a, "num_heads", 0), groups = pt_arg_size(a, "num_kv_heads", 0);
  sx d = pt_arg_size(a, "head_size", 0), e = 0;
  char kind;
  if (!q || !k || !v || c->fault.failed || q->rank < 2 || k->rank < 2 || v->rank < 2) return NULL;
  if (!sc_require(c, sx_and(c, sx_lt(c, c->zero, heads),
                            sx_and(c, sx_lt(c, c->zero, groups), sx_lt(c, c->zero, d)))))
    return NULL;
  const sx scale = pt_arg_scalar(a, "scale", &kind);
  if (!sc_require_eq(c, k->dim[0], q->dim[0]) || !sc_require_eq(c, v->dim[0], q->dim[0]))
    return NULL;
  const bool flat = q->rank == 2;
  const pt_tensor *x = by_head(c, q, heads, &d),
                  *y = pt_grouped(c, by_head(c, k, groups, &d), heads),
                  *z = pt_grouped(c, by_head(c, v, groups, &e), heads);
  const pt_tensor *s = x && y && z ? pt_times(c, pt_matmul(c, x, pt_transpose(c, y, 1, 2)),
                                              pt_scalar_tensor(c, scale, 'f'))
                                   : NULL;
  s = windowed(a, sloped(a, capped(a, s), heads));
  if (s && pt_arg_flag(a, "causal", false)) s = pt_like(c, s, 'f', causal_elem);
  const pt_tensor *o = s ? pt_matmul(c, pt_softmax(c, s, 2, true), z) : NULL;
  o = o ? pt_permute(c, o, order) : NULL;
  if (!o || !flat) return o ? pt_one(c, o) : NULL;
  return pt_one(c, pt_reshape(c, o, (sx[2]){o->dim[0], sx_mul(c, heads, e)}, 2));
}

static const pt_definition table[] = {
    {"_C::rms_norm.isomer", kernel_rms_norm, 0},
    {"_C::fused_add_rms_norm.isomer", kernel_rms_norm, 1},
    {"_C::rotary_embedding.isomer", kernel_rotary, 0},
    {"_C::silu_and_mul.isomer", kernel_activation, SILU_AND_MUL},
    {"_C::gelu_and_mul.isomer", kernel_activation, GELU_AND_MUL},
    {"_C::gelu_tanh_and_mul.isomer", kernel_activation, GELU_TANH_AND_MUL},
    {"_C::gelu_new.isomer", kernel_activation, GELU_NEW},
    {"_C::gelu_quick.isomer", kernel_activation, GELU_QUICK},
    {"vllm::unified_attention.isomer", kernel_attention, 0},
    {"vllm::unified_attention_with_output.isomer", kernel_attention, 0},
};

bool pt_define_kernel(const char *name, pt_definition *out) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(name, table[i].name)) return *out = table[i], true;
  return false;
}
