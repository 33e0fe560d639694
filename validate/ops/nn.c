/* Definitions for the symbolic prover: contractions and attention. */
#include <stdio.h>
#include <string.h>

#include "validate/ops/ops.h"

/* ---- contractions ---- */

/* a [batch..., M, K] or [batch..., K] with b [batch..., K, N] or [K]; t->k: rank of the batch,
 * whether a and b are vectors. */
static sx matmul_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const pt_tensor *a = t->in[0], *b = t->in[1];
  const uint32_t batch = (uint32_t)t->k[0];
  const bool va = t->k[1], vb = t->k[2];
  sx x[RULE_MAX_RANK], y[RULE_MAX_RANK];
  const sx k = sc_index(c, a->dim[a->rank - 1]);
  const uint32_t ma = a->rank - (va ? 1 : 2), mb = b->rank - (vb ? 1 : 2);
  for (uint32_t i = 0; i < ma; i++) x[i] = a->dim[i] == c->one ? c->zero : idx[batch - ma + i];
  for (uint32_t i = 0; i < mb; i++) y[i] = b->dim[i] == c->one ? c->zero : idx[batch - mb + i];
  if (!va) x[ma] = idx[batch];
  x[a->rank - 1] = k;
  y[mb] = k;
  if (!vb) y[mb + 1] = idx[t->rank - 1];
  return sx_sum(c, k, sx_mul(c, pt_at(c, a, x), pt_at(c, b, y)));
}

const pt_tensor *pt_matmul(sc *c, const pt_tensor *a, const pt_tensor *b) {
  if (!a || !b || a->rank == 0 || b->rank == 0 || a->kind != b->kind || a->kind == 'b') return NULL;
  const bool va = a->rank == 1, vb = b->rank == 1;
  if ((vb && b->lead) || (va && a->lead && (b->rank != 2 || b->lead) && !vb)) {
    sc_fail(c, "a product of open dimensions");
    return NULL;
  }
  if (!sc_require_eq(c, a->dim[a->rank - 1], b->dim[vb ? 0 : b->rank - 2])) return NULL;
  pt_tensor p = {.rank = a->rank - (va ? 1 : 2), .lead = a->lead},
            q = {.rank = b->rank - (vb ? 1 : 2), .lead = b->lead};
  memcpy(p.dim, a->dim, sizeof p.dim);
  memcpy(q.dim, b->dim, sizeof q.dim);
  pt_tensor *t = pt_new(c, a->kind, matmul_elem);
  if (!t) return NULL;
  /* Sizes that differ are made equal, or 1, by a case split, so that what is left is one or the
   * other by name. */
  if (!pt_broadcast(c, (const pt_tensor *[]){&p, &q}, 2, t->dim, &t->rank, &t->lead)) return NULL;
  t->in[0] = a;
  t->in[1] = b;
  t->k[0] = (int32_t)t->rank;
  t->k[1] = va;
  t->k[2] = vb;
  if (!va) t->dim[t->rank++] = a->dim[a->rank - 2];
  if (!vb) t->dim[t->rank++] = b->dim[b->rank - 1];
  return t;
}

enum { MM, BMM, MATMUL, MV, DOT, OUTER, VDOT };

static const pt_value *define_matmul(pt_args *a, int which) {
  static const uint32_t rank_of[][2] = {{2, 2}, {3, 3}, {0, 0}, {2, 1}, {1, 1}, {1, 1}, {1, 1}};
  static const char *const second[] = {"mat2", "mat2", "other", "vec", "tensor", "vec2", "other"};
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, second[which]);
  if (!x || !y) return NULL;
  if (which != MATMUL &&
      (x->rank != rank_of[which][0] || y->rank != rank_of[which][1] || x->lead || y->lead))
    return NULL;
  if (which == BMM && !sc_require_eq(c, x->dim[0], y->dim[0])) return NULL;
  if (which == OUTER) return pt_one(c, pt_times(c, pt_unsqueeze(c, x, 1), pt_unsqueeze(c, y, 0)));
  return pt_one(c, pt_matmul(c, x, y));
}

enum { ADDMM, BADDBMM, ADDMV, ADDBMM };

static const pt_value *define_addmm(pt_args *a, int which) {
  static const char *const names[][2] = {{"mat1", "mat2"}, {"batch1", "batch2"}, {"mat", "vec"}};
  sc *c = a->c;
  const pt_tensor *bias = pt_arg_tensor(a, "self"), *x = pt_arg_tensor(a, names[which][0]),
                  *y = pt_arg_tensor(a, names[which][1]);
  const uint32_t rank = which == BADDBMM ? 3 : 2, rank2 = which == ADDMV ? 1 : rank;
  char k1 = 'i', k2 = 'i';
  if (!bias || !x || !y || x->rank != rank || y->rank != rank2 || x->lead || y->lead || bias->lead)
    return NULL;
  if (which == BADDBMM && !sc_require_eq(c, x->dim[0], y->dim[0])) return NULL;
  const sx beta = pt_arg_scalar(a, "beta", &k1), alpha = pt_arg_scalar(a, "alpha", &k2);
  const pt_tensor *r = pt_matmul(c, x, y);
  if (!r || r->kind != bias->kind || k1 == 'b' || k2 == 'b' ||
      (r->kind == 'i' && (k1 == 'f' || k2 == 'f')))
    return NULL;
  bias = pt_expand(c, bias, r->dim, r->rank, 0);
  return pt_one(c, pt_combine(c, beta, bias, alpha, r));
}

static const pt_value *define_linear(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input"), *w = pt_arg_tensor(a, "weight"),
                  *b = pt_arg(a, "bias") ? pt_arg_tensor(a, "bias") : NULL;
  if (!x || !w || x->rank == 0 || w->rank != 2 || w->lead || c->fault.failed ||
      (b && (b->rank > 1 || b->lead)))
    return NULL;
  const pt_tensor *r = pt_matmul(c, x, pt_transpose(c, w, 0, 1));
  if (!r || !b) return pt_one(c, r);
  if (b->kind != r->kind) return NULL;
  return pt_one(c, pt_combine(c, c->one, r, c->one, pt_expand(c, b, r->dim, r->rank, r->lead)));
}

/* ---- einsum ---- */

static sx einsum_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[256] = {0}, k[16];
  size_t n = 0;
  const char *text = t->text, *arrow = strstr(text, "->");
  for (const char *p = arrow + 2; *p; p++) at[(unsigned char)*p] = idx[p - arrow - 2];
  sx r = c->one;
  const char *p = text;
  for (size_t i = 0; i < t->n_list; i++, p++) {
    sx in[RULE_MAX_RANK];
    for (uint32_t j = 0; *p != ',' && p != arrow; p++, j++) {
      sx *slot = &at[(unsigned char)*p];
      if (*p <= '9' && sx_same(c, t->list[i]->dim[j], c->one)) {
        in[j] = c->zero;
        continue;
      }
      if (!*slot) {
        if (n == 16) {
          sc_fail(c, "an einsum over too many indices");
          return c->zero;
        }
        *slot = k[n++] = sc_index(c, t->list[i]->dim[j]);
      }
      in[j] = *slot;
    }
    r = sx_mul(c, r, pt_at(c, t->list[i], in));
  }
  while (n > 0) r = sx_sum(c, k[--n], r);
  return r;
}

/* How many letters an operand's part of the equation has. */
static uint32_t letters_of(const char *p) {
  uint32_t n = 0;
  for (; *p && *p != ',' && strncmp(p, "->", 2); p++) n += *p != ' ' && *p != '.';
  return n;
}

/* The most dimensions that "..." stands for; digits are the names of them, the last one's 9.
 * UINT32_MAX: not modelled. */
static uint32_t unnamed(const char *p, const pt_tensor *const *list, size_t n) {
  uint32_t most = 0;
  for (size_t i = 0; i < n; i++) {
    const char *end = p + strcspn(p, ",-"), *dots = strchr(p, '.');
    const uint32_t named = letters_of(p);
    if (dots && dots < end && (!list[i] || list[i]->rank < named || list[i]->rank - named > 9))
      return UINT32_MAX;
    if (dots && dots < end && list[i]->rank - named > most) most = list[i]->rank - named;
    p = *end == ',' ? end + 1 : end;
  }
  return most;
}

/* The equation without blanks, with its result, "..." written out; NULL where it is not modelled.
 */
static char *equation(sc *c, const char *from, const pt_tensor *const *list, size_t n) {
  const uint32_t most = unnamed(from, list, n);
  char *to = sc_take(c, 12 * (strlen(from) + 4) + 64), *w = to;
  bool result = false;
  size_t i = 0;
  if (!to || most == UINT32_MAX) return NULL;
  for (const char *part = from; *from; from++) {
    if (*from == '>') result = true;
    if (*from == ',' && !result) i++;
    if (*from == ',' || *from == '>') part = from + 1;
    if (*from >= '0' && *from <= '9') return NULL;
    if (*from == '.') {
      if (strncmp(from, "...", 3) || i >= n) return NULL;
      for (uint32_t k = result ? most : list[i]->rank - letters_of(part); k > 0; k--)
        *w++ = (char)('9' + 1 - k);
      from += 2;
    } else if (*from != ' ') {
      *w++ = *from;
    }
  }
  if (strstr(to, "->")) return to;
  /* The dimensions without a letter, then letters that occur once, in alphabetical order. */
  char *end = w;
  *w++ = '-', *w++ = '>';
  for (uint32_t k = most; k > 0; k--) *w++ = (char)('9' + 1 - k);
  for (int l = 'A'; l <= 'z'; l++) {
    int times = 0;
    for (const char *p = to; p < end; p++) times += *p == l;
    if (times == 1) *w++ = (char)l;
  }
  return to;
}

bool pt_same_index(sc *c, sx p, sx q) {
  if (sx_same(c, p, q)) return true;
  const sx equal = sx_eq(c, p, q);
  if (!sc_require(c, sx_or(c, equal, sx_or(c, sx_eq(c, p, c->one), sx_eq(c, q, c->one)))))
    return false;
  return sc_require_modelled(c, equal, "a sum over an index that broadcasts");
}

/* Two sizes of a dimension without a letter: equal, or one of them is 1. */
static bool broadcast_size(sc *c, sx *s, sx d) {
  bool same, one;
  if (!*s || *s == c->one) return *s = d, true;
  if (d == c->one || sx_same(c, *s, d)) return true;
  if (!sc_decide(c, sx_eq(c, *s, d), &same) || same) return !c->fault.failed;
  if (!sc_decide(c, sx_eq(c, d, c->one), &one) || one) return !c->fault.failed;
  return sc_require(c, sx_eq(c, *s, c->one)) ? *s = d, true : false;
}

static const pt_value *define_einsum(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const rule_term *e = pt_arg(a, "equation");
  const pt_tensor *const *list;
  size_t n;
  sx size[256] = {0};
  if (!e || e->kind != RULE_STRING || !pt_arg_list(a, "tensors", &list, &n) || n == 0) return NULL;
  for (size_t i = 0; i < n; i++)
    if (!list[i] || list[i]->lead || list[i]->kind != 'f') return NULL;
  char *text = equation(c, e->u.s, list, n), *arrow = text ? strstr(text, "->") : NULL;
  if (!arrow) return NULL;
  const char *p = text;
  for (size_t i = 0; i < n; i++, p++) {
    uint32_t j = 0;
    for (; *p != ',' && p != arrow; p++, j++) {
      sx *s = &size[(unsigned char)*p];
      if (j >= list[i]->rank) return NULL;
      if (*p <= '9') { /* broadcast */
        if (!broadcast_size(c, s, list[i]->dim[j])) return NULL;
        continue;
      }
      if (*s && !pt_same_index(c, *s, list[i]->dim[j])) return NULL;
      *s = list[i]->dim[j];
    }
    if (j != list[i]->rank || (i + 1 < n) != (*p == ',')) return NULL;
  }
  pt_tensor *t = pt_new(c, 'f', einsum_elem);
  if (!t) return NULL;
  for (p = arrow + 2; *p; p++) {
    if (!size[(unsigned char)*p] || t->rank == RULE_MAX_RANK || strchr(p + 1, *p)) return NULL;
    t->dim[t->rank++] = size[(unsigned char)*p];
  }
  t->text = text;
  t->list = list;
  t->n_list = n;
  return pt_one(c, t);
}

/* ---- attention ---- */

static sx causal_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, sx_le(c, idx[t->rank - 1], idx[t->rank - 2]), pt_at(c, t->in[0], idx),
                c->neginf);
}
static sx hide_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, pt_at(c, t->in[1], idx), pt_at(c, t->in[0], idx), c->neginf);
}

/* scale q k^T + mask; q [..., T, D], k [..., S, D]; scale 0 is 1/sqrt(D). */
const pt_tensor *pt_scores(sc *c, const pt_tensor *q, const pt_tensor *k, sx scale,
                           const pt_tensor *mask) {
  if (!scale) scale = sx_inv(c, sx_sqrt(c, q->dim[q->rank - 1]));
  const pt_tensor *s = pt_matmul(c, q, pt_transpose(c, k, k->rank - 2, k->rank - 1));
  s = s ? pt_times(c, s, pt_scalar_tensor(c, scale, 'f')) : NULL;
  if (!s || !mask) return s;
  mask = pt_expand(c, mask, s->dim, s->rank, s->lead);
  if (!mask || mask->kind == 'i') return NULL;
  if (mask->kind != 'b') return pt_combine(c, c->one, s, c->one, mask);
  pt_tensor *h = pt_like(c, s, 'f', hide_elem);
  if (h) h->in[1] = mask;
  return h;
}

/* softmax(scale q k^T, masked) v; v [..., S, E]. */
static const pt_tensor *pt_attention(sc *c, const pt_tensor *q, const pt_tensor *k,
                                     const pt_tensor *v, sx scale, bool causal,
                                     const pt_tensor *mask) {
  if (!q || !k || !v || q->rank < 2 || k->rank < 2 || v->rank < 2 || q->kind != 'f' ||
      k->kind != 'f' || v->kind != 'f')
    return NULL;
  const pt_tensor *s = pt_scores(c, q, k, scale, mask);
  if (s && causal) s = pt_like(c, s, 'f', causal_elem);
  return s ? pt_matmul(c, pt_softmax(c, s, s->rank - 1, true), v) : NULL;
}

/* in[0] scores, k[0] whether they are causal: the logarithm of the sum of their exponentials. */
static sx weight_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const sx k = at[t->rank] = sc_index(c, t->in[0]->dim[t->rank]);
  sx v = sx_exp(c, pt_at(c, t->in[0], at));
  if (t->k[0]) v = sx_ite(c, sx_le(c, k, idx[t->rank - 1]), v, c->zero);
  return sx_log(c, sx_sum(c, k, v));
}

/* The output, and the log-sums for the backward pass, where no mask may hide a whole row. */
static const pt_value *with_weights(sc *c, const pt_tensor *out, const pt_tensor *scores,
                                    bool causal) {
  pt_tensor *t = scores && out ? pt_like(c, scores, 'f', weight_elem) : NULL;
  if (!t) return NULL;
  t->rank--;
  t->k[0] = causal;
  return pt_list(c, (const pt_tensor *[]){out, t}, 2);
}

/* Grouped heads: each of k's stands for as many of q's. */
const pt_tensor *pt_grouped(sc *c, const pt_tensor *k, sx heads) {
  sx times;
  if (!k || k->rank < 3) return NULL;
  const uint32_t d = k->rank - 3;
  if (k->dim[d] == heads) return k;
  return sc_multiple(c, heads, k->dim[d], &times) ? pt_repeat_each(c, k, d, times) : NULL;
}

/* `flash`: a form of it that takes four dimensions and broadcasts nothing. */
static const pt_value *define_sdpa(pt_args *a, int flash) {
  sc *c = a->c;
  const pt_tensor *q = pt_arg_tensor(a, "query"), *k = pt_arg_tensor(a, "key"),
                  *v = pt_arg_tensor(a, "value"),
                  *mask = pt_arg(a, "attn_mask") ? pt_arg_tensor(a, "attn_mask") : NULL;
  char kind;
  if (!q || !k || !v) return NULL;
  const sx scale = pt_arg(a, "scale") ? pt_arg_scalar(a, "scale", &kind) : 0;
  if (pt_arg(a, "dropout_p") && pt_arg_scalar(a, "dropout_p", &kind) != c->zero) return NULL;
  const bool causal = pt_arg_flag(a, "is_causal", false);
  if (causal && mask) return NULL;
  if (flash) {
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || (mask && mask->kind != 'f')) return NULL;
    for (uint32_t d = 0; d < 4; d++)
      if (!sc_require_eq(c, k->dim[d], v->dim[d]) ||
          ((d == 0 || d == 3) && !sc_require_eq(c, q->dim[d], k->dim[d])))
        return NULL;
  }
  if (flash || pt_arg_flag(a, "enable_gqa", false)) {
    if (q->rank < 3) return NULL;
    k = pt_grouped(c, k, q->dim[q->rank - 3]);
    v = pt_grouped(c, v, q->dim[q->rank - 3]);
    if (!k || !v) return NULL;
  }
  const pt_tensor *o = pt_attention(c, q, k, v, scale, causal, mask);
  if (!flash) return pt_one(c, o);
  return mask ? pt_list(c, &o, 1) : with_weights(c, o, pt_scores(c, q, k, scale, NULL), causal);
}

static sx silu_gate(sc *c, sx x) { return sx_sigmoid(c, x); }

static const pt_value *define_glu(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d;
  sx half;
  if (!x || x->kind != 'f' || x->rank == 0 || !pt_arg_dim(a, "dim", -1, x, &d) ||
      !sc_multiple(c, x->dim[d], sx_int(c, 2), &half))
    return NULL;
  return pt_one(c, pt_times(c, pt_slice(c, x, d, c->zero, half, c->one),
                            pt_unary(c, pt_slice(c, x, d, half, half, c->one), silu_gate)));
}

static const pt_definition table[] = {
    {"mm", define_matmul, MM},
    {"bmm", define_matmul, BMM},
    {"matmul", define_matmul, MATMUL},
    {"mv", define_matmul, MV},
    {"dot", define_matmul, DOT},
    {"vdot", define_matmul, VDOT},
    {"outer", define_matmul, OUTER},
    {"ger", define_matmul, OUTER},
    {"addmm", define_addmm, ADDMM},
    {"baddbmm", define_addmm, BADDBMM},
    {"addmv", define_addmm, ADDMV},
    {"linear", define_linear, 0},
    {"einsum", define_einsum, 0},
    {"scaled_dot_product_attention", define_sdpa, false},
    {"_scaled_dot_product_flash_attention_for_cpu", define_sdpa, true},
    {"glu", define_glu, 0},
};

bool pt_define_nn(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
