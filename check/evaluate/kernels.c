/* Attention, and the kernels of rules/kernels.def, by their documentation. */
#include <string.h>

#include "check/evaluate/evaluate_int.h"

/* ---- attention ---- */

typedef struct attention {
  const ball *q, *k, *v; /* rows of one head: row i of q is at q + i * q_row */
  int64_t q_row, k_row, v_row, queries, keys, size, out_size;
  ball scale, cap,
      slope; /* cap: 0, or scores are cap * tanh(score / cap); slope: times key - query is added */
  bool causal;
  int64_t window;        /* 0: none; else so many keys up to the query's place */
  const ev_tensor *mask; /* of one row for each query, from mask_at on; NULL */
  int64_t mask_at;
} attention;

static bool hidden(const attention *a, int64_t i, int64_t j) {
  return (a->causal && j > i) || (a->window > 0 && j <= i - a->window);
}

static ball score(const attention *a, int64_t i, int64_t j) {
  ball s = ball_exact(0);
  if (hidden(a, i, j)) return ball_exact(-INFINITY);
  for (int64_t d = 0; d < a->size; d++)
    s = ball_add(s, ball_mul(a->q[i * a->q_row + d], a->k[j * a->k_row + d]));
  s = ball_mul(s, a->scale);
  if (a->cap.mid != 0) s = ball_mul(a->cap, ball_tanh(ball_div(s, a->cap)));
  if (a->slope.mid != 0) s = ball_add(s, ball_mul(a->slope, ball_exact((long double)(j - i))));
  if (!a->mask) return s;
  const ball m = a->mask->v[a->mask_at + i * a->keys + j];
  if (a->mask->kind != 'b') return ball_add(s, m);
  return !ball_known(m) ? m : m.mid != 0 ? s : ball_exact(-INFINITY);
}

/* Rows of `out` are `out_row` apart. `row`: room for the keys. */
static void attend(const attention *a, ball *row, ball *out, int64_t out_row) {
  for (int64_t i = 0; i < a->queries; i++) {
    for (int64_t j = 0; j < a->keys; j++) row[j] = score(a, i, j);
    ev_softmax_row(row, a->keys, 1);
    for (int64_t d = 0; d < a->out_size; d++) {
      ball s = ball_exact(0);
      for (int64_t j = 0; j < a->keys; j++)
        s = ball_add(s, ball_mul(row[j], a->v[j * a->v_row + d]));
      out[i * out_row + d] = s;
    }
  }
}

static bool spend(ev *e, const attention *a, int64_t heads) {
  const double work =
      (double)heads * (double)a->queries * (double)a->keys * (double)(a->size + a->out_size + 4);
  return work <= (double)e->limit ? ev_spend(e, (int64_t)work)
                                  : ev_fail(e, "it is too large") != NULL;
}

static ball default_scale(int64_t size) { return ball_about(1 / sqrtl((long double)size)); }

/* Heads of keys and values, each for as many of the query's. */
static const ev_tensor *shared_heads(ev *e, const ev_tensor *t, int64_t heads) {
  const uint32_t d = t && t->rank > 2 ? t->rank - 3 : 0;
  if (!t || t->rank < 3 || t->dim[d] == 0 || heads % t->dim[d])
    return ev_fail(e, "shapes do not fit");
  ev_tensor *index = ev_new(e, 'i', 1, &heads);
  for (int64_t i = 0; index && i < heads; i++)
    index->v[i] = ball_exact((long double)(i / (heads / t->dim[d])));
  return ev_rows_of(e, t, d, index);
}

/* The dimensions before the last two are broadcast among the three. */
static bool batches(ev *e, const ev_tensor **q, const ev_tensor **k, const ev_tensor **v) {
  return ev_broadcast(e, q, k, 2) && ev_broadcast(e, k, v, 2) && ev_broadcast(e, q, k, 2);
}

static const ev_tensor *all_heads(ev *e, const ev_tensor *q, const ev_tensor *k, const ev_tensor *v,
                                  const ev_tensor *mask, attention *a) {
  const uint32_t r = q->rank;
  int64_t dim[RULE_MAX_RANK], heads = 1;
  memcpy(dim, q->dim, sizeof dim);
  for (uint32_t d = 0; d + 2 < r; d++) heads *= q->dim[d];
  a->queries = q->dim[r - 2], a->size = a->q_row = a->k_row = q->dim[r - 1];
  a->keys = k->dim[r - 2], a->out_size = a->v_row = v->dim[r - 1];
  if (k->dim[r - 1] != a->size || v->dim[r - 2] != a->keys) return ev_fail(e, "shapes do not fit");
  dim[r - 1] = a->keys;
  if (mask && !(a->mask = ev_expand(e, mask, r, dim))) return NULL;
  dim[r - 1] = a->out_size;
  ball *row = spend(e, a, heads) ? ev_take(e, a->keys, sizeof *row) : NULL;
  ev_tensor *out = row ? ev_new(e, 'f', r, dim) : NULL;
  for (int64_t h = 0; out && h < heads; h++) {
    a->q = q->v + h * a->queries * a->size, a->k = k->v + h * a->keys * a->size,
    a->v = v->v + h * a->keys * a->out_size;
    a->mask_at = h * a->queries * a->keys;
    attend(a, row, out->v + h * a->queries * a->out_size, a->out_size);
  }
  return out;
}

/* (query, key, value, mask, dropout, causal, scale, grouped heads) */
static const ev_tensor *sdpa(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *q = ev_arg(e, t, 0), *k = ev_arg(e, t, 1), *v = ev_arg(e, t, 2), *mask = NULL;
  attention a = {.cap = ball_exact(0), .slope = ball_exact(0)};
  ball drop;
  if (!q || !k || !v || !ev_number(e, t, 4, &drop)) return NULL;
  if (drop.mid != 0) return ev_fail(e, "it draws random numbers");
  if (q->rank < 2 || k->rank < 2 || v->rank < 2) return ev_fail(e, "shapes do not fit");
  if (!ev_none(t, 3) && !(mask = ev_arg(e, t, 3))) return NULL;
  a.causal = ev_flag(e, t, 5);
  const bool grouped = ev_flag(e, t, 7);
  if (e->why) return NULL;
  if (a.causal && mask) return ev_fail(e, "a mask beside a causal one");
  a.scale = default_scale(q->dim[q->rank - 1]);
  if (!ev_none(t, 6) && !ev_number(e, t, 6, &a.scale)) return NULL;
  if (grouped && q->rank > 2) {
    k = shared_heads(e, k, q->dim[q->rank - 3]);
    v = shared_heads(e, v, q->dim[q->rank - 3]);
  }
  return batches(e, &q, &k, &v) ? all_heads(e, q, k, v, mask, &a) : NULL;
}

/* [tokens, heads * size] or [tokens, heads, size]. */
static bool by_heads(const ev_tensor *x, int64_t tokens, int64_t heads, int64_t size) {
  if (x->rank == 3)
    return x->dim[0] == tokens && x->dim[1] == heads && (size < 0 || x->dim[2] == size);
  return x->rank == 2 && x->dim[0] == tokens && x->dim[1] % heads == 0 &&
         (size < 0 || x->dim[1] == heads * size);
}

static bool slope_of(ev *e, const rule_term *t, int64_t heads, int64_t h, ball *out) {
  *out = ball_exact(0);
  if (ev_none(t, 9)) return true;
  const rule_term *l = t->child[9];
  if (l->kind != RULE_LIST || l->n != (uint64_t)heads)
    return ev_fail(e, "not a slope for each head") != NULL;
  return ev_number(e, l, (uint32_t)h, out);
}

/* (query, key, value, heads, heads of keys, head size, scale, window, cap, slopes, causal) over the
 * tokens of one sequence. */
static const ev_tensor *unified(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *q = ev_arg(e, t, 0), *k = ev_arg(e, t, 1), *v = ev_arg(e, t, 2);
  int64_t heads, kv, size;
  attention a = {.cap = ball_exact(0)};
  if (!q || !k || !v || !ev_int(e, t, 3, &heads) || !ev_int(e, t, 4, &kv) ||
      !ev_int(e, t, 5, &size) || !ev_number(e, t, 6, &a.scale))
    return NULL;
  if (!ev_none(t, 7) && !ev_int(e, t, 7, &a.window)) return NULL;
  if (!ev_none(t, 8) && !ev_number(e, t, 8, &a.cap)) return NULL;
  a.causal = ev_flag(e, t, 10);
  const int64_t n = q->dim[0];
  bool fits = heads > 0 && kv > 0 && size > 0 && heads % kv == 0 && a.window >= 0;
  fits = fits && by_heads(q, n, heads, size) && by_heads(k, n, kv, size) && by_heads(v, n, kv, -1);
  if (e->why || !fits) return ev_fail(e, "shapes do not fit");
  a.queries = a.keys = n, a.size = size, a.out_size = n > 0 ? v->n / (n * kv) : 0;
  a.q_row = heads * size, a.k_row = kv * size, a.v_row = kv * a.out_size;
  const int64_t whole = heads * a.out_size, dim[] = {n, q->rank == 3 ? heads : whole, a.out_size};
  ball *row = spend(e, &a, heads) ? ev_take(e, n, sizeof *row) : NULL;
  ev_tensor *out = row ? ev_new(e, 'f', q->rank, dim) : NULL;
  for (int64_t h = 0; out && h < heads; h++) {
    const int64_t of = h / (heads / kv);
    if (!slope_of(e, t, heads, h, &a.slope)) return NULL;
    a.q = q->v + h * size, a.k = k->v + of * size, a.v = v->v + of * a.out_size;
    attend(&a, row, out->v + h * a.out_size, whole);
  }
  return out;
}

/* ---- norms, activations ---- */

static const ev_tensor *rms(ev *e, const ev_tensor *x, const rule_term *t, uint32_t weight) {
  const ev_tensor *w = ev_arg(e, t, weight);
  ball eps;
  if (!x || !w || !ev_number(e, t, weight + 1, &eps)) return NULL;
  if (x->rank == 0 || w->rank != 1 || w->dim[0] != x->dim[x->rank - 1])
    return ev_fail(e, "shapes do not fit");
  return ev_zip(e, ev_normed(e, x, w->dim[0], eps, false), w, 'f', ball_mul);
}

static const ev_tensor *rms_norm(ev *e, const rule_term *t, int which) {
  (void)which;
  return rms(e, ev_arg(e, t, 0), t, 1);
}

static const ev_tensor *gated(ev *e, const rule_term *t, int which) {
  static ball (*const gate[])(ball) = {ball_silu, ball_gelu, ball_gelu_tanh};
  const ev_tensor *x = ev_arg(e, t, 0);
  if (!x) return NULL;
  if (x->rank == 0 || x->dim[x->rank - 1] % 2) return ev_fail(e, "shapes do not fit");
  const uint32_t d = x->rank - 1;
  const int64_t half = x->dim[d] / 2;
  const ev_tensor *a = ev_slice(e, x, d, 0, half, 1), *b = ev_slice(e, x, d, half, 2 * half, 1);
  return ev_zip(e, ev_map(e, a, 'f', gate[which]), b, 'f', ball_mul);
}

static bool pair(ev *e, const ev_tensor *a, const ev_tensor *b, ev_list *out) {
  if (!a || !b || !(out->t = ev_take(e, 2, sizeof *out->t))) return false;
  out->t[0] = a, out->t[1] = b, out->n = 2;
  return true;
}

static bool added_norm(ev *e, const rule_term *t, ev_list *out) {
  const ev_tensor *x = ev_arg(e, t, 0), *y = ev_arg(e, t, 1);
  if (!x || !y) return false;
  if (x->rank != y->rank || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) != 0)
    return ev_fail(e, "shapes do not fit") != NULL;
  const ev_tensor *sum = ev_zip(e, x, y, 'f', ball_add);
  return pair(e, rms(e, sum, t, 2), sum, out);
}

static bool layer_norm(ev *e, const rule_term *t, ev_list *out) {
  const rule_term same = {
      .kind = RULE_OP, .n = t->n, .child = t->child, .u = {.s = "aten::layer_norm"}};
  const ev_tensor *x = ev_eval(e, &same); /* its first five arguments are these */
  if (!x || !(out->t = ev_take(e, 1, sizeof *out->t))) return false;
  out->t[0] = x, out->n = 1;
  return true;
}

/* ---- positions ---- */

/* Each head of each token turned by the angle of its place: `row` has cosines, then sines. */
static const ev_tensor *turned(ev *e, const ev_tensor *x, const ev_tensor *places,
                               const ev_tensor *row, int64_t size, bool halves) {
  const int64_t tokens = places->n, width = row->dim[1] / 2;
  ev_tensor *r = x && ev_spend(e, 8 * x->n) ? ev_new(e, 'f', x->rank, x->dim) : NULL;
  bool fits = r && size > 0 && tokens > 0 && x->rank >= places->rank &&
              x->n % (tokens * size) == 0 && 2 * width <= size;
  for (uint32_t d = 0; fits && d < places->rank; d++) fits = x->dim[d] == places->dim[d];
  if (!fits) return ev_fail(e, "shapes do not fit");
  const int64_t heads = x->n / (tokens * size);
  for (int64_t i = 0; i < x->n; i++) r->v[i] = x->v[i];
  for (int64_t i = 0; i < tokens * heads; i++)
    for (int64_t k = 0; k < width; k++) {
      const ball c = row->v[i / heads * 2 * width + k],
                 s = row->v[i / heads * 2 * width + width + k];
      const int64_t p = i * size + (halves ? k : 2 * k),
                    q = i * size + (halves ? k + width : 2 * k + 1);
      r->v[p] = ball_sub(ball_mul(x->v[p], c), ball_mul(x->v[q], s));
      r->v[q] = ball_add(ball_mul(x->v[q], c), ball_mul(x->v[p], s));
    }
  return r;
}

/* (positions, query, key, head size, table, halves) */
static bool rotary(ev *e, const rule_term *t, ev_list *out) {
  const ev_tensor *at = ev_arg(e, t, 0), *q = ev_arg(e, t, 1),
                  *k = ev_none(t, 2) ? NULL : ev_arg(e, t, 2), *table = ev_arg(e, t, 4);
  int64_t size;
  const bool halves = ev_flag(e, t, 5);
  if (e->why || !ev_int(e, t, 3, &size)) return false;
  if (table->rank != 2 || table->dim[1] % 2) return ev_fail(e, "shapes do not fit") != NULL;
  const ev_tensor *flat = ev_shaped(e, at, 1, &at->n), *row = ev_rows_of(e, table, 0, flat);
  if (!row) return false;
  const ev_tensor *other =
      k ? turned(e, k, at, row, size, halves) : ev_new(e, 'f', 1, (int64_t[]){0});
  return pair(e, turned(e, q, at, row, size, halves), other, out);
}

/* ---- collectives ---- */

/* Collectives are of tensors of one shape; of others they are undefined. */
static bool of_one_shape(ev *e, const ev_list *l) {
  const ev_tensor *r = l->t[0];
  for (size_t i = 1; i < l->n; i++)
    if (l->t[i]->rank != r->rank || memcmp(l->t[i]->dim, r->dim, r->rank * sizeof *r->dim) != 0)
      return ev_fail(e, "shapes do not fit") != NULL;
  return true;
}

/* The ranks' tensors as one. */
static const ev_tensor *total(ev *e, const rule_term *t) {
  ev_list l;
  const char *op = t->n > 1 && t->child[1]->kind == RULE_STRING ? t->child[1]->u.s : "";
  const bool max = !strcmp(op, "max"), min = !strcmp(op, "min"), mean = !strcmp(op, "avg");
  if (!max && !min && !mean && strcmp(op, "sum") != 0) return ev_fail(e, t->u.s);
  if (!ev_eval_list(e, t->child[0], &l) || !of_one_shape(e, &l)) return NULL;
  const ev_tensor *r = l.t[0];
  for (size_t i = 1; r && i < l.n; i++)
    r = ev_zip(e, r, l.t[i], r->kind, max ? ball_max : min ? ball_min : ball_add);
  return r && mean ? ev_zip(e, r, ev_scalar(e, ball_exact((long double)l.n), 'f'), 'f', ball_div)
                   : r;
}

static const ev_tensor *all_reduce(ev *e, const rule_term *t, int which) {
  (void)which;
  return total(e, t);
}

static const ev_tensor *all_gather(ev *e, const rule_term *t, int which) {
  (void)which;
  ev_list l;
  uint32_t d;
  if (!ev_eval_list(e, t->child[0], &l)) return NULL;
  return ev_dim(e, t, 1, l.t[0]->rank, &d) ? ev_cat(e, &l, d) : NULL;
}

static bool reduce_scatter(ev *e, const rule_term *t, ev_list *out) {
  const ev_tensor *all = total(e, t);
  uint32_t d;
  if (!all || !ev_dim(e, t, 2, all->rank, &d)) return false;
  const int64_t n = t->child[0]->n;
  if (all->rank == 0 || all->dim[d] % n || !(out->t = ev_take(e, n, sizeof *out->t)))
    return ev_fail(e, "shapes do not fit") != NULL;
  const int64_t part = all->dim[d] / n;
  for (; (int64_t)out->n < n; out->n++)
    if (!(out->t[out->n] =
              ev_slice(e, all, d, (int64_t)out->n * part, ((int64_t)out->n + 1) * part, 1)))
      return false;
  return true;
}

static bool all_to_all(ev *e, const rule_term *t, ev_list *out) {
  ev_list l, part;
  uint32_t split, cat;
  if (!ev_eval_list(e, t->child[0], &l) || !of_one_shape(e, &l)) return false;
  const int64_t n = (int64_t)l.n;
  if (!ev_dim(e, t, 1, l.t[0]->rank, &split) || !ev_dim(e, t, 2, l.t[0]->rank, &cat)) return false;
  if (l.t[0]->rank == 0 || l.t[0]->dim[split] % n || !(out->t = ev_take(e, n, sizeof *out->t)) ||
      !(part.t = ev_take(e, n, sizeof *part.t)))
    return ev_fail(e, "shapes do not fit") != NULL;
  const int64_t step = l.t[0]->dim[split] / n;
  part.n = l.n;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t r = 0; r < n; r++)
      if (!(part.t[r] = ev_slice(e, l.t[r], split, k * step, (k + 1) * step, 1))) return false;
    if (!(out->t[out->n++] = ev_cat(e, &part, cat))) return false;
  }
  return true;
}

static const ev_tensor *broadcast(ev *e, const rule_term *t, int which) {
  ev_list l;
  (void)which;
  if (!ev_eval_list(e, t->child[0], &l) || !of_one_shape(e, &l)) return NULL;
  const int64_t src = t->child[1]->kind == RULE_INT ? t->child[1]->u.i : -1;
  return src >= 0 && src < (int64_t)l.n ? l.t[src] : ev_fail(e, "there is no such rank");
}

static const ev_tensor *receive(ev *e, const rule_term *t, int which) {
  (void)which;
  return ev_eval(e, t->child[0]);
}

bool ev_kernel_parts(ev *e, const rule_term *t, ev_list *out) {
  *out = (ev_list){0};
  if (!strcmp(t->u.s, "_C::fused_add_rms_norm.isomer")) return added_norm(e, t, out);
  if (!strcmp(t->u.s, "_C::rotary_embedding.isomer")) return rotary(e, t, out);
  if (!strcmp(t->u.s, "aten::native_layer_norm")) return layer_norm(e, t, out);
  if (!strcmp(t->u.s, "dist::reduce_scatter")) return reduce_scatter(e, t, out);
  if (!strcmp(t->u.s, "dist::all_to_all")) return all_to_all(e, t, out);
  return false;
}

const ev_op ev_kernels[] = {{"aten::scaled_dot_product_attention", sdpa, 0},
                            {"vllm::unified_attention.isomer", unified, 0},
                            {"vllm::unified_attention_with_output.isomer", unified, 0},
                            {"_C::rms_norm.isomer", rms_norm, 0},
                            {"_C::silu_and_mul.isomer", gated, 0},
                            {"_C::gelu_and_mul.isomer", gated, 1},
                            {"_C::gelu_tanh_and_mul.isomer", gated, 2},
                            {"dist::all_reduce", all_reduce, 0},
                            {"dist::all_gather", all_gather, 0},
                            {"dist::broadcast", broadcast, 0},
                            {"dist::receive", receive, 0},
                            {NULL, NULL, 0}};
