/* Running one captured graph by itself: node after node as captured, nothing taken from the other
 * side but the values of related constants. A verdict of "different" rests on values computed here,
 * not in the e-graph.
 *
 * With `noise`, every rounding step is disturbed by a relative error of that size (stochastic
 * arithmetic: Vignes, "A stochastic arithmetic for reliable scientific computation", 1993): how far
 * the outputs move tells how far two ways to write one function may be apart. */
#include "rules/operators.h"
#include "synth/joint/run_int.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

bool st_op_rounds(const char *op) { return !rule_operator_of(op)->exact; }

/* Operators that add many products: cancellation happens inside, so that their arguments are
 * disturbed as well. So are those of operators that nobody knows. */
static bool contracts(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return !o->exact && !o->elementwise;
}

/* Operators whose result has few digits only where nothing was rounded: operands that were rounded
 * have been disturbed and have many digits. */
static bool shows_rounding(const char *op) {
  const rule_arithmetic a = rule_operator_of(op)->arithmetic;
  return (a >= RULE_ARITHMETIC_ADD && a <= RULE_ARITHMETIC_MUL) || a == RULE_ARITHMETIC_SQUARE;
}

/* Whether some argument of the call holds a number from `low` up to, and not with, `high` (absolute
 * values). */
static bool holds_between(const rule_term *t, rule_tensor *const *bind, double low, double high) {
  for (uint32_t k = 0; k < t->n; k++)
    if (holds_between(t->child[k], bind, low, high)) return true;
  const rule_tensor *v = t->kind == RULE_VAR ? bind[t->u.i] : NULL;
  if (!v || (v->dtype != RULE_F64 && v->dtype != RULE_C128)) return false;
  enum { BLOCK = 1024 }; /* looked at as a whole, which is faster than one by one */
  const double *x = v->data;
  bool any = false;
  for (int64_t at = 0, n = v->dtype == RULE_C128 ? 2 * v->numel : v->numel; at < n && !any;
       at += BLOCK)
    for (int64_t i = at; i < n && i < at + BLOCK; i++)
      any |= (fabs(x[i]) >= low) & (fabs(x[i]) < high);
  return any;
}

static bool holds_tiny(const rule_term *t, rule_tensor *const *bind) {
  return holds_between(t, bind, DBL_TRUE_MIN, 1e-100);
}

/* Whether infinities among the results are those of 1/0 and the like, and not of numbers that
 * became too large. */
static bool at_pole(const rule_term *call, rule_tensor *const *bind) {
  return rule_operator_of(call->u.s)->pole && !holds_tiny(call, bind) &&
         !holds_between(call, bind, 1e100, INFINITY) && holds_between(call, bind, 0, DBL_TRUE_MIN);
}

/* Whether a result is 0, or so small that it may become 0. */
static bool any_faint(rule_tensor *const *v, size_t n) {
  for (size_t k = 0; k < n; k++) {
    const double *x = v[k]->data;
    const bool real = v[k]->dtype == RULE_F64 || v[k]->dtype == RULE_C128;
    for (int64_t i = 0, m = v[k]->dtype == RULE_C128 ? 2 * v[k]->numel : v[k]->numel; real && i < m;
         i++)
      if (fabs(x[i]) < DBL_MIN) return true;
  }
  return false;
}

/* Whether a zero among the results may be a small number that underflowed: an exponential, or
 * something of tiny numbers. Else it is 0. */
static bool may_underflow(const rule_term *call, rule_tensor *const *bind) {
  return !rule_is_aten(call->u.s) || rule_operator_of(call->u.s)->underflows ||
         holds_tiny(call, bind);
}

/* Whether sums of these numbers, and of products of two, are not rounded in any order: they are a
 * few times one number. */
static bool sums_exactly(const rule_tensor *t) {
  enum { BITS = 15, MOST = 1 << 20 }; /* and 20 for as many terms: 50 of 53 */
  double most = 0;
  if ((t->dtype != RULE_F64 && !st_is_narrow(t)) || t->numel > MOST) return false;
  for (int64_t i = 0; i < t->numel; i++) most = fmax(most, fabs(rule_tensor_get(t, i)));
  if (!(most > 0) || !isfinite(most)) return !(most > 0);
  const double unit = ldexp(1, ilogb(most) - BITS + 1);
  for (int64_t i = 0; i < t->numel; i++) {
    const double n = rule_tensor_get(t, i) / unit;
    if (n != nearbyint(n)) return false;
  }
  return true;
}

/* Whether a call adds up numbers, or products of two, without any rounding. A sum over two tensors
 * does not count: large numbers of one may swallow small ones of the other. */
static bool adds_exactly(const rule_term *t, rule_tensor *const *bind) {
  const rule_operator *o = rule_operator_of(t->u.s);
  uint32_t n = 0;
  if (!o->algebraic || !(o->sums || o->product) || o->norm || o->power) return false;
  for (uint32_t k = 0; k < t->n; k++) {
    const rule_term *a = t->child[k];
    for (uint32_t j = 0; a->kind == RULE_LIST && j < a->n; j++)
      if (a->child[j]->kind == RULE_VAR) return false;
    if (a->kind != RULE_VAR) continue;
    if (!bind[a->u.i] || !sums_exactly(bind[a->u.i])) return false;
    n++;
  }
  return n == 1 || (n == 2 && o->product);
}

bool st_term_uses(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t k = 0; k < t->n; k++)
    if (st_term_uses(t->child[k], flag)) return true;
  return false;
}

void st_term_mark(const rule_term *t, bool *flag) {
  if (t->kind == RULE_VAR) flag[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) st_term_mark(t->child[k], flag);
}

/* Whether a term that relates leaves reads a node of `side`; one of literals alone ties to nothing.
 */
static bool reads_side(const state *s, eg_class e, int side, int depth) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, e, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return true;
  for (size_t i = 0; i < n && depth > 0; i++) {
    if (s->rec[m[i].i].node[LEFT] >= 0 || s->rec[m[i].i].node[RIGHT] >= 0) continue;
    for (size_t k = 0; k < eg_node_arity(s->g, m[i]); k++)
      if (reads_side(s, eg_node_child(s->g, m[i], k), side, depth - 1)) return true;
  }
  return false;
}

static void count_uses(const rule_term *t, uint32_t *uses) {
  if (t->kind == RULE_VAR) uses[t->u.i]++;
  for (uint32_t k = 0; k < t->n; k++) count_uses(t->child[k], uses);
}

static void drop(rule_tensor **v, size_t n) {
  for (size_t k = 0; k < n; k++) {
    rule_tensor_unref(v[k]);
    v[k] = NULL;
  }
}

void st_run_free(st_run *r) {
  if (r->value)
    for (size_t i = 0; i < r->n; i++)
      if (r->value[i].v) {
        drop(r->value[i].v, r->value[i].n);
        free(r->value[i].v);
      }
  free(r->value);
  *r = (st_run){.failed = -1};
}

static void release(const rule_term *t, uint32_t *uses, st_run *r, size_t n) {
  if (t->kind == RULE_VAR && --uses[t->u.i] == 0)
    for (size_t k = 0; k < n; k++) drop(r[k].value[t->u.i].v, r[k].value[t->u.i].n);
  for (uint32_t k = 0; k < t->n; k++) release(t->child[k], uses, r, n);
}

static iso_code keep(st_run *r, size_t i, rule_tensor *const *v, size_t n, iso_error *err) {
  if (!(r->value[i].v = calloc(n + 1, sizeof *r->value[i].v))) return nomem(err);
  r->value[i].n = n;
  for (size_t k = 0; k < n; k++) r->value[i].v[k] = rule_tensor_ref(v[k]);
  return ISO_OK;
}

/* Takes over `v`. */
static iso_code keep_own(st_run *r, size_t i, rule_tensor *v, iso_error *err) {
  const iso_code c = keep(r, i, &v, 1, err);
  rule_tensor_unref(v);
  return c;
}

static void arguments(const rule_term *t, const st_run *r, rule_tensor **bind) {
  if (t->kind == RULE_VAR) bind[t->u.i] = r->value[t->u.i].n ? r->value[t->u.i].v[0] : NULL;
  for (uint32_t k = 0; k < t->n; k++) arguments(t->child[k], r, bind);
}

static bool holds_nan(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (isnan(rule_tensor_get(t, i))) return true;
  return false;
}

static bool holds_inf(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (isinf(rule_tensor_get(t, i))) return true;
  return false;
}

static bool infinite_argument(const rule_term *t, const st_run *r) {
  if (t->kind == RULE_FLOAT) return isinf(t->u.f);
  if (t->kind == RULE_VAR) {
    const rule_tensor *v = r->value[t->u.i].n ? r->value[t->u.i].v[0] : NULL;
    return v && rule_dtype_is_float(v->dtype) && (holds_inf(v) || holds_nan(v));
  }
  for (uint32_t k = 0; k < t->n; k++)
    if (infinite_argument(t->child[k], r)) return true;
  return false;
}

typedef struct running {
  state *s;
  double noise;
  iso_rng *rng;
  st_run *r;
  rule_tensor **bind; /* room for an operand of each node */
  st_wide *wide;      /* of the node that is run */
  bool bounds;        /* overflow is noted */
  st_signs signs;     /* of zeros that are computed */
  st_order order;     /* of equal numbers, where that is left open */
} running;

static bool reads_beyond(const rule_term *t, const st_run *r) {
  bool any = t->kind == RULE_VAR && r->value[t->u.i].beyond;
  for (uint32_t k = 0; k < t->n && !any; k++) any = reads_beyond(t->child[k], r);
  return any;
}

/* Whether the results of a call, whose operands are bound, overflowed, or are made of such. */
static bool is_beyond(const running *w, const rule_term *call, rule_tensor *const *out, size_t n) {
  bool infinite = false;
  if (reads_beyond(call, w->r)) return true;
  for (size_t k = 0; k < n; k++)
    infinite |= rule_dtype_is_float(out[k]->dtype) && holds_inf(out[k]);
  return infinite && !infinite_argument(call, w->r) && !at_pole(call, w->bind);
}

/* Binds the arguments of a call of constants, in float64 as they are read. False: not all are
 * constants, or one is held in a narrow dtype, where the rounded number is the constant: sqrt(48)
 * is 6.9375 there. */
static bool constant_arguments(const state *s, int side, const rule_term *t, rule_tensor **bind) {
  if (t->kind == RULE_VAR) {
    const eg_node e = s->map[side][t->u.i];
    const rec *q = e.i == EG_NONE ? NULL : &s->rec[e.i];
    const rule_dtype of = s->graph[side]->node[t->u.i].dtype;
    if (!q || !q->konst || !q->valued || q->n_out != 1 || of == RULE_F16 || of == RULE_BF16)
      return false;
    bind[t->u.i] = q->val[s->witness.set];
  }
  for (uint32_t k = 0; k < t->n; k++)
    if (!constant_arguments(s, side, t->child[k], bind)) return false;
  return true;
}

static bool arguments_moved(const rule_term *t, const st_run *r, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR)
    return r->value[t->u.i].n == 1 && !rule_tensor_same(r->value[t->u.i].v[0], bind[t->u.i]);
  for (uint32_t k = 0; k < t->n; k++)
    if (arguments_moved(t->child[k], r, bind)) return true;
  return false;
}

/* One number that a call makes of constants moves as these were disturbed: 1 - beta by as much as
 * beta, which is far where few digits are left. Tables have relations of their own
 * (synth/constants/rounding.c). Added to `v`. */
static iso_code add_movement(const running *w, int side, const rule_term *call, rule_tensor *v,
                             iso_error *err) {
  state *s = w->s;
  rule_tensor *out[2][MAX_OUT];
  size_t n[2] = {0, 0};
  if (v->dtype != RULE_F64 || rule_is_getitem(call->u.s) ||
      !constant_arguments(s, side, call, w->bind) || !arguments_moved(call, w->r, w->bind))
    return ISO_OK;
  iso_code c = s->oracle->call(s->oracle->ctx, call, w->bind, true, out[0], MAX_OUT, &n[0], err);
  arguments(call, w->r, w->bind);
  if (!c) c = s->oracle->call(s->oracle->ctx, call, w->bind, true, out[1], MAX_OUT, &n[1], err);
  const bool alike = !c && n[0] == 1 && n[1] == 1 && out[0][0]->dtype == RULE_F64 &&
                     out[1][0]->dtype == RULE_F64 && out[0][0]->numel == v->numel &&
                     out[1][0]->numel == v->numel;
  for (int64_t k = 0; alike && k < v->numel; k++) {
    const double by = rule_tensor_get(out[1][0], k) - rule_tensor_get(out[0][0], k);
    if (isfinite(by)) rule_tensor_set(v, k, rule_tensor_get(v, k) + by);
  }
  for (int k = 0; k < 2; k++) drop(out[k], n[k]);
  return c;
}

/* A constant that no relation ties to the other side, disturbed by half a unit in the last place of
 * its captured dtype; a parameter, which may be a result of several roundings, by two units.
 * Numbers with few digits are taken to be exact. Owns: the caller unrefs. */
static iso_code as_stored(const running *w, int side, size_t i, rule_tensor *v, rule_tensor **out,
                          iso_error *err) {
  state *s = w->s;
  const eg_node e = s->map[side][i];
  const synth_node *node = &s->graph[side]->node[i];
  const rule_dtype captured = node->dtype;
  const bool exact = rule_dtype_digits(captured) == 53 || rule_dtype_size(captured) == 1;
  const double half = exact ? 0 : rule_dtype_unit(captured, 1) / 2;
  const double eps = s->rec[e.i].lonely ? 4 * half : half;
  const double digits = captured == RULE_F32 ? 0x1p15 : captured == RULE_F16 ? 0x1p7 : 0x1p5;
  enum { DEPTH = 8 };
  const bool carries = node->kind == SYNTH_OP && !rule_tensor_varies(v);
  *out = rule_tensor_ref(v);
  if ((eps == 0 && !carries) || (v->dtype != RULE_F64 && v->dtype != RULE_C128) ||
      reads_side(s, eg_class_of(s->g, e), !side, DEPTH))
    return ISO_OK;
  rule_tensor_unref(*out);
  iso_code c = st_disturbed(v, &(st_disturbing){.noise = eps, .whole = true}, w->rng, out, err);
  for (int64_t k = 0; k < v->numel && !c && v->dtype == RULE_F64; k++) {
    const double x = rule_tensor_get(v, k);
    if (st_few_digits(x, digits)) rule_tensor_set(*out, k, x);
  }
  if (!c && carries) c = add_movement(w, side, node->call, *out, err);
  return c;
}

/* As `x`, with 0 and 1 for what a disturbance has moved past them. */
static iso_code within_unit(const rule_tensor *x, rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new(x->dtype, &x->shape, out, err);
  for (int64_t i = 0; !c && i < x->numel; i++) {
    const double v = rule_tensor_get(x, i);
    rule_tensor_set(*out, i, v < 0 ? 0 : v > 1 ? 1 : v);
  }
  return c;
}

/* What is computed as x (1 - 1) has the rounding of that 1: an error of the size of x. */
static void add_absolutely(const running *w, const rule_term *call, rule_tensor *v) {
  const rule_term *a = call->n ? call->child[0] : NULL;
  const rule_tensor *x = a && a->kind == RULE_VAR ? w->bind[a->u.i] : NULL;
  if (!x || v->dtype != RULE_F64 || x->dtype != RULE_F64 || x->numel != v->numel) return;
  for (int64_t i = 0; i < v->numel; i++) {
    const double size = fabs(((const double *)x->data)[i]);
    if (size < 1e30) ((double *)v->data)[i] += w->noise * size * st_up_or_down(w->rng, false);
  }
}

typedef struct own_tensors { /* what stands in the place of a call's operands */
  rule_tensor *of[MAX_CHILDREN], *rows[2];
  size_t n, n_rows;
} own_tensors;

/* The call's operands as rounding may have left them (`all`), and where it takes them; not variable
 * `but`. Owns: in `own` the `*n` that are others than before; the caller unrefs. */
static iso_code disturb_operands(const running *w, const rule_term *call, bool all, int64_t but,
                                 rule_tensor **own, size_t *n, iso_error *err) {
  const uint32_t unit = rule_operator_of(call->u.s)->unit;
  const st_disturbing how = {.noise = w->noise};
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && *n < MAX_CHILDREN; k++) {
    const rule_term *a = call->child[k];
    const bool bounded = k < 32 && (unit >> k & 1);
    if (a->kind != RULE_VAR || a->u.i == but || !w->bind[a->u.i] || !(all || bounded)) continue;
    if (bounded) c = within_unit(w->bind[a->u.i], &own[*n], err);
    else c = st_disturbed(w->bind[a->u.i], &how, w->rng, &own[*n], err);
    if (!c) w->bind[a->u.i] = own[(*n)++];
  }
  return c;
}

/* The operator's results of the operands that are bound. `all`: these are disturbed. Owns: what is
 * in `own` as well; the caller unrefs. */
static iso_code call_op(const running *w, const rule_term *call, bool all, own_tensors *own,
                        rule_tensor **out, size_t *n_out, iso_error *err) {
  state *s = w->s;
  rule_tensor **bind = w->bind;
  int64_t matrix = st_matrix_of(call);
  if (matrix >= 0 && !(st_is_narrow(bind[matrix]) && st_is_matrix(&bind[matrix]->shape)))
    matrix = -1;
  iso_code c = st_few_rows(call, bind, own->rows, &own->n_rows, err);
  if (!c && !all && matrix < 0) c = st_widen_operands(call, w->wide, s->o->threads, bind, err);
  if (!c && w->noise > 0) c = disturb_operands(w, call, all, matrix, own->of, &own->n, err);
  if (c || matrix < 0)
    return c ? c : s->oracle->call(s->oracle->ctx, call, bind, true, out, MAX_OUT, n_out, err);
  const rule_shape *shape = &bind[matrix]->shape;
  st_stored stored = {bind[matrix], all ? w->noise : 0, w->rng};
  const st_matrix_rows rows = {shape->dim[0], shape->dim[1], st_stored_rows, &stored};
  c = st_call_by_rows(s, call, bind, &rows, &out[0], err);
  *n_out = !c;
  return c;
}

static iso_code run_op(const running *w, const synth_node *n, size_t i, iso_error *err) {
  state *s = w->s;
  st_run *r = w->r;
  rule_tensor **bind = w->bind;
  const double noise = w->noise;
  rule_tensor *out[MAX_OUT];
  own_tensors own = {.n = 0};
  size_t n_out = 0;
  iso_code c = ISO_OK;
  if (rule_is_getitem(n->call->u.s)) {
    const st_value_list *from = &r->value[n->call->child[0]->u.i];
    const int64_t k = n->call->child[1]->u.i;
    if (k < 0 || (size_t)k >= from->n)
      return iso_fail(err, ISO_FORMAT, "there is no output %lld", (long long)k);
    return keep(r, i, &from->v[k], 1, err);
  }
  arguments(n->call, r, bind);
  const bool exact = noise > 0 && contracts(n->op) && adds_exactly(n->call, bind),
             all = noise > 0 && contracts(n->op) && !exact;
  c = call_op(w, n->call, all, &own, out, &n_out, err);
  if (!c && w->order) c = st_order_otherwise(s, n->call, bind, w->order, out, n_out, err);
  const bool rounds = st_op_rounds(n->op), signs = w->signs && !rule_operator_of(n->op)->moves;
  if (!c && noise > 0 && (rounds || signs)) {
    const bool faint = rounds && any_faint(out, n_out) && may_underflow(n->call, bind),
               shows = exact || shows_rounding(n->op);
    const st_disturbing how = {.noise = rounds ? noise : 0,
                               .but_short = shows,
                               .least = exact   ? INFINITY
                                        : shows ? st_least_operand(n->call, bind)
                                                : 0,
                               .faint = faint,
                               .signs = signs ? w->signs : ST_ZEROS_KEPT};
    for (size_t k = 0; k < n_out && !c; k++) {
      rule_tensor *d;
      if ((c = st_disturbed(out[k], &how, w->rng, &d, err))) break;
      if (rule_operator_of(n->call->u.s)->cancels) add_absolutely(w, n->call, d);
      rule_tensor_unref(out[k]);
      out[k] = d;
    }
  }
  const bool beyond = !c && w->bounds && is_beyond(w, n->call, out, n_out);
  if (!c) c = keep(r, i, out, n_out, err);
  r->value[i].beyond = beyond;
  r->overflow |= beyond;
  drop(out, n_out);
  drop(own.of, own.n);
  drop(own.rows, own.n_rows);
  return c;
}

/* A leaf whose masks the e-graph reads as others. */
static iso_code keep_captured(state *s, const synth_node *n, st_run *r, size_t i, iso_error *err) {
  rule_tensor *v;
  iso_code c =
      rule_tensor_to_float64(n->value[n->kind == SYNTH_INPUT ? s->witness.set : 0], &v, err);
  return c ? c : keep_own(r, i, v, err);
}

static iso_code run_node(const running *w, int side, size_t i, rule_tensor *const *leaf,
                         const st_run_how *how, iso_error *err) {
  state *s = w->s;
  st_run *r = w->r;
  const st_carry *with = how->with;
  const synth_node *n = &s->graph[side]->node[i];
  const rec *q = &s->rec[s->map[side][i].i];
  const bool masked = st_masked(s, side, i), stored = how->noise == ST_STORAGE;
  rule_tensor *v = NULL;
  if (with && with->value[i]) return keep(r, i, &with->value[i], 1, err);
  if (with && !with->again[i])
    return keep(r, i, with->from->value[i].v, with->from->value[i].n, err);
  if (n->kind != SYNTH_OP && masked && !how->anew) return keep_captured(s, n, r, i, err);
  const bool constant = stored && q->konst && q->valued && q->n_out == 1 && !masked,
             lonely = stored && s->leaves.lonely_both && q->lonely && n->kind == SYNTH_PARAMETER;
  if (constant || lonely) {
    rule_tensor *as = constant ? q->val[s->witness.set] : leaf[i];
    const iso_code c = as_stored(w, side, i, as, &v, err);
    return c ? c : keep_own(r, i, v, err);
  }
  if (n->kind != SYNTH_OP) return keep(r, i, &leaf[i], 1, err);
  if (q->konst && q->valued && !with && !masked && !how->anew)
    return keep(r, i, q->val + s->witness.set * q->n_out, q->n_out, err);
  return run_op(w, n, i, err);
}

/* Of values that are read by operators and outputs. NULL: no memory. */
static uint32_t *count_all_uses(const state *s, int side) {
  const synth_graph *g = s->graph[side];
  uint32_t *uses = calloc(g->n_nodes + 1, sizeof *uses);
  for (size_t i = 0; uses && i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE)
      count_uses(g->node[i].call, uses);
  for (size_t k = 0; uses && k < g->n_outputs; k++) uses[g->output[k].node]++;
  return uses;
}

/* All runs of a node before the next one: an operand that is made for it is made once. */
iso_code st_run_together(state *s, int side, rule_tensor *const *leaf, const st_run_how *how,
                         size_t n_runs, st_run *r, iso_error *err) {
  const synth_graph *g = s->graph[side];
  running w[ST_TOGETHER];
  iso_rng rng[ST_TOGETHER];
  st_wide wide = {.n = 0};
  int64_t failed = -1;
  ISO_CHECK(n_runs <= ST_TOGETHER);
  uint32_t *uses = count_all_uses(s, side);
  rule_tensor **bind = calloc(g->n_nodes + 1, sizeof *bind);
  iso_code c = uses && bind ? ISO_OK : nomem(err);
  for (size_t k = 0; k < n_runs; k++) {
    r[k] =
        (st_run){.value = calloc(g->n_nodes + 1, sizeof *r->value), .n = g->n_nodes, .failed = -1};
    if (!r[k].value && !c) c = nomem(err);
    rng[k] = iso_rng_new(s->o->seed, how[k].stream);
    w[k] = (running){.s = s,
                     .noise = how[k].noise,
                     .rng = &rng[k],
                     .r = &r[k],
                     .bind = bind,
                     .wide = &wide,
                     .bounds = !how[k].with && how[k].noise == 0,
                     .signs = how[k].signs,
                     .order = how[k].order};
  }
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    if (s->map[side][i].i == EG_NONE || uses[i] == 0) continue;
    for (size_t k = 0; k < n_runs && !c; k++) c = run_node(&w[k], side, i, leaf, &how[k], err);
    st_wide_free(&wide);
    if (c) iso_prefix(err, "%s: node \"%s\" (%s): ", g->path, n->id, n->op ? n->op : "leaf");
    if (c) failed = (int64_t)i;
    if (!c && !how->keep_all && n->kind == SYNTH_OP) release(n->call, uses, r, n_runs);
  }
  free(uses);
  free(bind);
  for (size_t k = 0; k < n_runs; k++) {
    if (c) st_run_free(&r[k]);
    r[k].failed = failed;
  }
  return c;
}

iso_code st_run_graph(state *s, int side, rule_tensor *const *leaf, const st_run_how *how,
                      st_run *r, iso_error *err) {
  return st_run_together(s, side, leaf, how, 1, r, err);
}

/* Values that were released again count as nothing. */
static size_t elements_of(const st_run *r, uint64_t i) {
  size_t n = 0;
  for (size_t k = 0; k < r->value[i].n; k++)
    if (r->value[i].v[k]) n += (size_t)r->value[i].v[k]->numel;
  return n;
}

static size_t elements(const rule_term *t, const st_run *r) {
  size_t n = t->kind == RULE_VAR ? elements_of(r, (uint64_t)t->u.i) : 0;
  for (uint32_t k = 0; k < t->n; k++) n += elements(t->child[k], r);
  return n;
}

size_t st_work(const rule_term *call, const st_run *r, uint32_t i) {
  enum {
    A_CALL = 4096
  }; /* elements that are read or written in the time that a call takes by itself */
  return 1 + (elements(call, r) + elements_of(r, i)) / A_CALL;
}

/* Values of nodes that are not run again are borrowed: a try costs its own calls alone. */
iso_code st_run_to(state *s, int side, const st_carry *with, uint32_t goal, rule_tensor **out,
                   size_t *work, iso_error *err) {
  const synth_graph *g = s->graph[side];
  st_run r = {.value = malloc((g->n_nodes + 1) * sizeof *r.value), .n = g->n_nodes, .failed = -1};
  rule_tensor **bind = calloc(g->n_nodes + 1, sizeof *bind);
  iso_rng rng = iso_rng_new(s->o->seed, 0);
  iso_code c = r.value && bind ? ISO_OK : nomem(err);
  st_wide wide = {.n = 0};
  const running w = {.s = s, .rng = &rng, .r = &r, .bind = bind, .wide = &wide};
  uint32_t end = 0;
  if (!c) memcpy(r.value, with->from->value, g->n_nodes * sizeof *r.value);
  for (uint32_t i = 0; i <= goal && !c; i++) {
    if (!with->value[i] && !with->again[i]) continue;
    end = i + 1;
    r.value[i] = (st_value_list){0};
    synth_node n = g->node[i];
    if (with->call && with->call[i]) n.call = with->call[i];
    c = with->value[i] ? keep(&r, i, &with->value[i], 1, err) : run_op(&w, &n, i, err);
    st_wide_free(&wide);
    if (!c && work && !with->value[i]) *work += st_work(n.call, &r, i);
  }
  if (!c && r.value[goal].n != 1)
    c = iso_fail(err, ISO_RANGE, "node \"%s\" has no single value", g->node[goal].id);
  if (!c) *out = rule_tensor_ref(r.value[goal].v[0]);
  for (uint32_t i = 0; i < end; i++)
    if ((with->value[i] || with->again[i]) && r.value[i].v) {
      drop(r.value[i].v, r.value[i].n);
      free(r.value[i].v);
    }
  free(r.value);
  free(bind);
  return c;
}
