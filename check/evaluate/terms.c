/* Terms of a rule's side as tensors of balls: arguments, literals, and the function that defines
 * each operator. */
#include <stdlib.h>
#include <string.h>

#include "check/evaluate/evaluate_int.h"
#include "rules/masks.h"

void *ev_fail(ev *e, const char *why) {
  if (!e->why) e->why = why;
  return NULL;
}

bool ev_spend(ev *e, int64_t work) {
  if (work < 0 || work > e->limit - e->work) return ev_fail(e, "it is too large") != NULL;
  e->work += work;
  return true;
}

void *ev_take(ev *e, int64_t n, size_t size) {
  if (!ev_spend(e, n)) return NULL;
  void *p = iso_arena_alloc(&e->arena, ((size_t)n + 1) * size);
  if (!p) e->nomem = true;
  return p ? p : ev_fail(e, "out of memory");
}

ev_tensor *ev_new(ev *e, char kind, uint32_t rank, const int64_t *dim) {
  if (rank > RULE_MAX_RANK) return ev_fail(e, "too many dimensions");
  ev_tensor *t = ev_take(e, 1, sizeof *t);
  if (!t) return NULL;
  t->kind = kind;
  t->rank = rank;
  t->n = 1;
  for (uint32_t d = 0; d < rank; d++) {
    t->dim[d] = dim[d];
    if (dim[d] < 0 || dim[d] > e->limit || (t->n *= dim[d]) > e->limit)
      return ev_fail(e, "it is too large");
  }
  t->v = ev_take(e, t->n, sizeof *t->v);
  return t->v ? t : NULL;
}

const ev_tensor *ev_shaped(ev *e, const ev_tensor *t, uint32_t rank, const int64_t *dim) {
  if (!t || rank > RULE_MAX_RANK) return NULL;
  ev_tensor *s = ev_take(e, 1, sizeof *s);
  int64_t n = 1;
  if (!s) return NULL;
  *s = *t;
  s->rank = rank;
  for (uint32_t d = 0; d < rank; d++) {
    s->dim[d] = dim[d];
    if (dim[d] < 0 || dim[d] > e->limit || (n *= dim[d]) > e->limit) n = -1;
    if (n < 0) break;
  }
  return n == t->n ? s : ev_fail(e, "shapes do not fit");
}

void ev_strides(const ev_tensor *t, int64_t *stride) {
  int64_t s = 1;
  for (uint32_t d = t->rank; d-- > 0; s *= t->dim[d]) stride[d] = s;
}

const ev_tensor *ev_strided(ev *e, const ev_tensor *t, uint32_t rank, const int64_t *dim,
                            const int64_t *stride, int64_t offset) {
  ev_tensor *r = t ? ev_new(e, t->kind, rank, dim) : NULL;
  int64_t at[RULE_MAX_RANK] = {0}, from = offset;
  for (int64_t i = 0; r && i < r->n; i++) {
    r->v[i] = t->v[from];
    for (uint32_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++at[d] < dim[d]) break;
      from -= at[d] * stride[d];
      at[d] = 0;
    }
  }
  return r;
}

const ev_tensor *ev_scalar(ev *e, ball v, char kind) {
  ev_tensor *t = ev_new(e, kind, 0, NULL);
  if (t) t->v[0] = v;
  return t;
}

/* ---- literals ---- */

bool ev_none(const rule_term *t, uint32_t i) { return i >= t->n || t->child[i]->kind == RULE_NONE; }

static bool is_mask(double x) { return rule_is_mask(RULE_F16, x) || rule_is_mask(RULE_F32, x); }

/* Rounded from a root of a small fraction: such literals are read as the roots that they stand for.
 * A threshold that is none stays the double that it is, so that both sides of it are seen. */
static bool is_root(double x) {
  const double square = x * x;
  for (int b = 1; b <= 64; b++)
    for (int inverse = 0; inverse < 2; inverse++) {
      const double n = inverse ? b / square : square * b;
      if (n >= 1 && n < 0x1p24 && fabs(n - nearbyint(n)) <= 0x1p-48 * n) return true;
    }
  return false;
}

static ball real(const ev *e, double x) {
  if (e->masks && is_mask(x)) return ball_exact(-INFINITY);
  if (x == INFINITY || isnan(x)) return ball_unknown();
  const bool as_is =
      isinf(x) || x * 1024 == nearbyint(x * 1024) || !(e->rounded || (e->reading && is_root(x)));
  return as_is ? ball_exact(x) : ball_about(x);
}

/* A number by itself, or by its name. `kind` of it. */
static bool literal(ev *e, const rule_term *x, ball *out, char *kind) {
  rule_term v = *x;
  int64_t i;
  if (x->kind == RULE_NAME && !e->values->value(e->values->ctx, x->u.s, &v)) return false;
  if (x->kind == RULE_EXPR && rule_size_at(x, e->values, &i))
    v = (rule_term){.kind = RULE_INT, .u = {.i = i}};
  else if (x->kind == RULE_EXPR)
    v = (rule_term){.kind = RULE_FLOAT, .u = {.f = rule_number_at(x, e->values)}};
  if (v.kind != RULE_INT && v.kind != RULE_FLOAT && v.kind != RULE_BOOLEAN) return false;
  *kind = v.kind == RULE_INT ? 'i' : v.kind == RULE_FLOAT ? 'f' : 'b';
  *out = v.kind == RULE_FLOAT ? real(e, v.u.f) : ball_exact((long double)v.u.i);
  const bool tied = x->kind == RULE_NAME && e->reading && e->r->n_where > 0; /* by a condition */
  if (v.kind == RULE_FLOAT && isfinite(out->mid) && (x->kind == RULE_EXPR || tied))
    *out = ball_about(v.u.f);
  return true;
}

bool ev_number(ev *e, const rule_term *t, uint32_t i, ball *out) {
  char kind;
  return (i < t->n && literal(e, t->child[i], out, &kind)) ||
         ev_fail(e, "an argument is no number") != NULL;
}

bool ev_int(ev *e, const rule_term *t, uint32_t i, int64_t *out) {
  if (i < t->n && t->child[i]->kind == RULE_INT) return *out = t->child[i]->u.i, true;
  const bool open = i < t->n && (t->child[i]->kind == RULE_NAME || t->child[i]->kind == RULE_EXPR);
  return (open && rule_size_at(t->child[i], e->values, out)) ||
         ev_fail(e, "an argument is no integer") != NULL;
}

bool ev_ints(ev *e, const rule_term *t, uint32_t i, int64_t *out, uint32_t *n) {
  const rule_term *l = i < t->n ? t->child[i] : NULL;
  if (l && l->kind == RULE_NAME) l = e->list ? e->list(e->values->ctx, l->u.s) : NULL;
  if (!l || l->kind != RULE_LIST || l->n > EV_MAX_LIST)
    return ev_fail(e, "an argument is no list of integers") != NULL;
  for (*n = 0; *n < l->n; ++*n)
    if (!ev_int(e, l, *n, &out[*n])) return false;
  return true;
}

bool ev_flag(ev *e, const rule_term *t, uint32_t i) {
  if (i < t->n && t->child[i]->kind == RULE_BOOLEAN) return t->child[i]->u.i != 0;
  ev_fail(e, "an argument is no truth value");
  return false;
}

bool ev_wrap(ev *e, int64_t d, uint32_t rank, uint32_t *out) {
  const int64_t n = rank ? rank : 1;
  if (d < -n || d >= n) return ev_fail(e, "there is no such dimension") != NULL;
  *out = (uint32_t)(d < 0 ? d + n : d);
  return true;
}

bool ev_dim(ev *e, const rule_term *t, uint32_t i, uint32_t rank, uint32_t *out) {
  int64_t d;
  return ev_int(e, t, i, &d) && ev_wrap(e, d, rank, out);
}

const ev_tensor *ev_arg(ev *e, const rule_term *t, uint32_t i) {
  ball v;
  char kind;
  if (i >= t->n) return ev_fail(e, "an argument is missing");
  const rule_term *x = t->child[i];
  if (x->kind == RULE_VAR || x->kind == RULE_OP) return ev_eval(e, x);
  return literal(e, x, &v, &kind) ? ev_scalar(e, v, kind) : ev_fail(e, "an argument is no tensor");
}

/* ---- calls ---- */

static const ev_op *defined(const char *name) {
  const ev_op *const tables[] = {ev_layouts, ev_elementwise, ev_sums, ev_windows, ev_kernels};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    for (const ev_op *op = tables[i]; op->name; op++)
      if (strcmp(op->name, name) == 0) return op;
  return NULL;
}

static const ev_tensor *projected(ev *e, const rule_term *t) {
  ev_list l;
  int64_t k;
  if (t->n != 2 || t->child[0]->kind != RULE_OP || !ev_int(e, t, 1, &k))
    return ev_fail(e, "a result of nothing");
  if (!ev_parts(e, t->child[0], &l) && (e->why || !ev_kernel_parts(e, t->child[0], &l)))
    return ev_fail(e, t->child[0]->u.s);
  return k >= 0 && (size_t)k < l.n ? l.t[k] : ev_fail(e, "there is no such result");
}

const ev_tensor *ev_eval(ev *e, const rule_term *t) {
  if (e->why) return NULL;
  if (t->kind == RULE_VAR) return e->var[t->u.i];
  if (t->kind != RULE_OP) return ev_fail(e, "a side is no tensor");
  if (strcmp(t->u.s, "getitem") == 0) return projected(e, t);
  const ev_op *op = defined(t->u.s);
  return op ? op->f(e, t, op->which) : ev_fail(e, t->u.s);
}

bool ev_eval_list(ev *e, const rule_term *t, ev_list *out) {
  *out = (ev_list){0};
  if (t->kind != RULE_LIST || t->n > EV_MAX_LIST)
    return ev_fail(e, "an argument is no list of tensors") != NULL;
  if (!(out->t = ev_take(e, t->n, sizeof *out->t))) return false;
  for (; out->n < t->n; out->n++)
    if (!(out->t[out->n] = ev_arg(e, t, (uint32_t)out->n))) return false;
  return out->n > 0;
}
