/* Where masks go in a graph: forward, which tensors have masks, and in which elements; backward,
 * whether all paths from them end where masks vanish.
 *
 * Elements are found by running a call on zeros and ones: 1 for a mask and for elements that have
 * one in them, 0 for all other numbers. An operator that moves, selects or adds numbers then gives
 * a nonzero element exactly where its result has a mask in it. */
#include "rules/masks.h"
#include "rules/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 64, MAX_TENSORS = 512 };

struct rule_masks {
  const rule_mask_node *node;
  size_t n;
  bool half, any;
  rule_tensor *
      *at;      /* by node: float64, 1 where there is a mask; NULL: none, or not followed so far */
  bool *has;    /* by node */
  bool *source; /* by node: a known value whose masks are its own */
  bool *beside; /* by node */
  size_t leak;  /* a node where masks do not vanish; n: there is none */
};

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

bool rule_is_mask(rule_dtype dtype, double x) {
  if (dtype == RULE_F16) return x == RULE_MASK_F16;
  return rule_dtype_is_float(dtype) && isfinite(x) && x <= -0.5 * 3.3895313892515355e38;
}

/* ---- operators ---- */

/* Operators that move their first operand, fill with an argument, or weigh rows, by the table. */
static const rule_mask_op moves = {.role = RULE_MASK_PASSES, .masks = 1},
                          fills[] = {{.role = RULE_MASK_PASSES, .masks = 1},
                                     {.role = RULE_MASK_PASSES, .masks = 2},
                                     {.role = RULE_MASK_PASSES, .masks = 4}},
                          weighs = {.role = RULE_MASK_ROWS, .masks = 1, .dim = 1};

const rule_mask_op *rule_mask_op_of(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  if (o->mask.role != RULE_MASK_STOPS) return &o->mask;
  if (o->weighs && o->axis == 1) return &weighs;
  if (o->draws || (o->choice != RULE_CHOICE_NONE && o->choice != RULE_CHOICE_CAST)) return NULL;
  if (o->fills && o->fill) return &fills[o->fill - 1];
  return o->identity || o->rearranges || o->part || o->joins || o->cast ? &moves : NULL;
}

static bool is_one(const rule_term *t) {
  return (t->kind == RULE_INT && t->u.i == 1) || (t->kind == RULE_FLOAT && t->u.f == 1);
}

/* ---- which elements ---- */

static bool follows(const rule_masks *m, rule_dtype dtype) {
  return m->half == (dtype == RULE_F16);
}

static bool is_mask_literal(const rule_masks *m, size_t i, const rule_term *t) {
  return t->kind == RULE_FLOAT && follows(m, m->node[i].dtype) &&
         rule_is_mask(m->node[i].dtype, t->u.f);
}

static bool reads_masks(const rule_masks *m, const rule_term *t) {
  if (t->kind == RULE_VAR) return m->has[t->u.i];
  for (uint32_t k = 0; k < t->n; k++)
    if (reads_masks(m, t->child[k])) return true;
  return false;
}

/* A tensor with 1 at the elements of `from` for which `mask` is true. NULL in `out`: there are
 * none. */
static iso_code marks(const rule_tensor *from, bool (*mask)(rule_dtype, double), rule_tensor **out,
                      iso_error *err) {
  *out = NULL;
  for (int64_t e = 0; e < from->numel; e++) {
    if (!mask(from->dtype, rule_tensor_get(from, e))) continue;
    iso_code c = *out ? ISO_OK : rule_tensor_new(RULE_F64, &from->shape, out, err);
    if (c) return c;
    rule_tensor_set(*out, e, 1);
  }
  return ISO_OK;
}

/* A cast keeps float16's number. */
static bool is_any_mask(rule_dtype dtype, double x) {
  return x == RULE_MASK_F16 || rule_is_mask(dtype, x);
}
static bool is_positive(rule_dtype dtype, double x) {
  (void)dtype;
  return x > 0;
}

typedef struct trial {
  const rule_masks *m;
  rule_tensor *bind[MAX_TENSORS], *own[MAX_TENSORS];
  uint32_t n, n_own;
  iso_arena arena;
  bool fails;
  iso_code code;
  iso_error *err;
} trial;

/* The argument that a call is tried with. `number`: its numbers stand for values and not for sizes.
 */
static const rule_term *trial_argument(trial *t, size_t node, const rule_term *x, bool number,
                                       bool chooses) {
  if (x->kind == RULE_LIST) {
    const rule_term *child[MAX_ARGS];
    if (x->n > MAX_ARGS) return t->fails = true, x;
    for (uint32_t k = 0; k < x->n; k++)
      if (!(child[k] = trial_argument(t, node, x->child[k], false, chooses))) return NULL;
    return rule_list(&t->arena, child, x->n);
  }
  if (is_mask_literal(t->m, node, x)) return rule_float(&t->arena, 1);
  if (x->kind != RULE_VAR)
    return number && (x->kind == RULE_FLOAT || x->kind == RULE_INT) ? rule_float(&t->arena, 0) : x;
  const rule_mask_node *v = &t->m->node[x->u.i];
  if (t->n == MAX_TENSORS || (chooses && !v->fixed)) return t->fails = true, x;
  if (chooses) t->bind[t->n] = v->fixed;
  else if (t->m->at[x->u.i]) t->bind[t->n] = t->m->at[x->u.i];
  else if ((t->code = rule_tensor_new(RULE_F64, v->shape, &t->own[t->n_own], t->err))) return NULL;
  else t->bind[t->n] = t->own[t->n_own++];
  return rule_var(&t->arena, t->n++);
}

static const rule_term *trial_call(trial *t, size_t node, const rule_mask_op *op) {
  const rule_term *call = t->m->node[node].call, *child[MAX_ARGS];
  if (call->n > MAX_ARGS) return t->fails = true, call;
  for (uint32_t k = 0; k < call->n; k++)
    if (!(child[k] = trial_argument(t, node, call->child[k], (op->numbers | op->masks) >> k & 1,
                                    op->chooses >> k & 1)))
      return NULL;
  return rule_op(&t->arena, call->u.s, child, call->n);
}

/* Run the call on zeros and ones. NULL in `out` where it is not one that can be followed. */
static iso_code try_call(const rule_masks *m, const rule_oracle *oracle, size_t node,
                         const rule_mask_op *op, rule_tensor **out, iso_error *err) {
  trial *t = calloc(1, sizeof *t);
  if (!t) return nomem(err);
  t->m = m;
  t->err = err;
  iso_arena_init(&t->arena);
  rule_tensor *got[1] = {NULL};
  size_t n_got = 0;
  *out = NULL;
  const rule_term *call = trial_call(t, node, op);
  iso_code c = t->code ? t->code : call ? ISO_OK : nomem(err);
  if (!c && !t->fails) {
    iso_error why;
    c = oracle->call(oracle->ctx, call, t->bind, true, got, 1, &n_got, &why);
    if (c == ISO_NOMEM) c = nomem(err);
    else if (!c && n_got == 1 && rule_shape_eq(&got[0]->shape, m->node[node].shape))
      c = marks(got[0], is_positive, out, err);
    else c = ISO_OK;
    for (size_t k = 0; k < n_got; k++) rule_tensor_unref(got[k]);
  }
  for (uint32_t k = 0; k < t->n_own; k++) rule_tensor_unref(t->own[k]);
  iso_arena_fini(&t->arena);
  free(t);
  return c;
}

static bool writes_mask(const rule_masks *m, size_t i, const rule_mask_op *op) {
  const rule_term *call = m->node[i].call;
  for (uint32_t k = 0; k < call->n && k < 32; k++)
    if ((op->masks >> k & 1) && is_mask_literal(m, i, call->child[k])) return true;
  return false;
}

static bool same_marks(const rule_tensor *a, const rule_tensor *b) {
  return a && b ? rule_tensor_same(a, b) : a == b;
}

/* Masks in the known value of a call that has some among its arguments: they must be where it moved
 * them, and still be the number. Where a call only writes masks itself, the value says where they
 * are, however it treats masks. */
static iso_code made_masks(rule_masks *m, const rule_oracle *oracle, size_t i,
                           const rule_mask_op *op, iso_error *err) {
  const rule_mask_node *n = &m->node[i];
  const bool read = reads_masks(m, n->call);
  rule_tensor *put = NULL;
  iso_code c = try_call(m, oracle, i, op, &put, err);
  if (!c) c = marks(n->fixed, is_any_mask, &m->at[i], err);
  const bool same = same_marks(put, m->at[i]);
  m->has[i] = m->at[i] || (read && put);
  m->source[i] = !read && !same && m->at[i];
  rule_tensor_unref(put);
  if (same || !read) return c;
  rule_tensor_unref(m->at[i]);
  m->at[i] = NULL; /* they are lost: a leak */
  return c;
}

/* A value that is known has its masks where they are, and they are its own where no call that is
 * followed put them there. */
static iso_code known_masks(rule_masks *m, const rule_oracle *oracle, size_t i, iso_error *err) {
  const rule_mask_node *n = &m->node[i];
  if (!rule_dtype_is_float(n->fixed->dtype)) return ISO_OK;
  const bool call = n->call && n->call->kind == RULE_OP, reads = call && reads_masks(m, n->call);
  const rule_mask_op *op = call ? rule_mask_op_of(n->call->u.s) : NULL;
  const bool passes = op && op->role == RULE_MASK_PASSES;
  if (passes && (reads || writes_mask(m, i, op))) return made_masks(m, oracle, i, op, err);
  if (reads || !follows(m, n->dtype)) return ISO_OK;
  iso_code c = marks(n->fixed, rule_is_mask, &m->at[i], err);
  m->has[i] = m->source[i] = m->at[i] != NULL;
  return c;
}

/* The masks of a call's result; one that cannot be followed is found backward. */
static iso_code follow(rule_masks *m, const rule_oracle *oracle, size_t i, iso_error *err) {
  const rule_mask_node *n = &m->node[i];
  if (n->fixed) return known_masks(m, oracle, i, err);
  const rule_mask_op *op =
      n->call && n->call->kind == RULE_OP ? rule_mask_op_of(n->call->u.s) : NULL;
  if (!op || op->role != RULE_MASK_PASSES || !rule_dtype_is_float(n->dtype)) return ISO_OK;
  if (!writes_mask(m, i, op) && !reads_masks(m, n->call)) return ISO_OK;
  m->has[i] = true;
  return try_call(m, oracle, i, op, &m->at[i], err);
}

/* ---- where they end ---- */

typedef bool hides(double x);
static bool is_marked(double x) { return x > 0; }
static bool is_far_below(double x) { return x <= -RULE_MASK_HIDES; }

/* Whether each row along `dim` keeps an element. */
static bool rows_keep(const rule_tensor *at, int64_t dim, hides *hidden) {
  const int64_t rank = at->shape.rank;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return false;
  int64_t inner = 1, size = at->shape.dim[dim];
  for (int64_t d = dim + 1; d < rank; d++) inner *= at->shape.dim[d];
  for (int64_t row = 0; size > 0 && row < at->numel / size; row++) {
    const int64_t first = row / inner * size * inner + row % inner;
    int64_t k = 0;
    while (k < size && hidden(rule_tensor_get(at, first + k * inner))) k++;
    if (k == size) return false;
  }
  return size > 0;
}

/* Over several dimensions at once: enough that rows along one of them keep one. */
static bool all_rows_keep(const rule_tensor *at, const rule_term *call, uint32_t arg,
                          hides *hidden) {
  if (arg == 0) return rows_keep(at, -1, hidden);
  const rule_term *dim = arg < call->n ? call->child[arg] : NULL;
  if (dim && dim->kind == RULE_INT) return rows_keep(at, dim->u.i, hidden);
  for (uint32_t k = 0; dim && dim->kind == RULE_LIST && k < dim->n; k++)
    if (dim->child[k]->kind == RULE_INT && rows_keep(at, dim->child[k]->u.i, hidden)) return true;
  return false;
}

/* Whether masks of node `v` come to a good end in argument `k` of node `i`, or go on there. */
static bool takes(const rule_masks *m, size_t i, uint32_t k, size_t v) {
  const rule_term *call = m->node[i].call;
  const rule_mask_op *op = call->kind == RULE_OP && k < 32 ? rule_mask_op_of(call->u.s) : NULL;
  if (!op || !(op->masks >> k & 1) || !m->at[v]) return false;
  if (op->one && (op->one >= call->n || !is_one(call->child[op->one]))) return false;
  if (op->role == RULE_MASK_PASSES)
    return m->has[i] ? m->at[i] != NULL : m->node[i].fixed && rule_dtype_is_float(m->node[i].dtype);
  return op->role == RULE_MASK_ALL || all_rows_keep(m->at[v], call, op->dim, is_marked);
}

bool rule_mask_hides_row(const rule_term *call, uint32_t k, const rule_tensor *v) {
  const rule_mask_op *op = call->kind == RULE_OP && k < 32 ? rule_mask_op_of(call->u.s) : NULL;
  const bool rows = op && (op->role == RULE_MASK_ROWS || op->role == RULE_MASK_REDUCED);
  return rows && op->masks >> k & 1 && v->numel && !all_rows_keep(v, call, op->dim, is_far_below);
}

static bool argument_takes(const rule_masks *m, size_t i, uint32_t k, const rule_term *t) {
  if (t->kind == RULE_VAR) return !m->has[t->u.i] || takes(m, i, k, (size_t)t->u.i);
  for (uint32_t j = 0; j < t->n; j++)
    if (!argument_takes(m, i, k, t->child[j])) return false;
  return true;
}

static bool leaks(const rule_masks *m, size_t i) {
  const rule_mask_node *n = &m->node[i];
  if (m->has[i] && (n->output || !m->at[i])) return true;
  for (uint32_t k = 0; n->call && k < n->call->n; k++)
    if (!argument_takes(m, i, k, n->call->child[k])) return true;
  return false;
}

/* ---- numbers beside them ---- */

static void mark_beside(rule_masks *m, const rule_term *t) {
  if (t->kind == RULE_VAR && !m->has[t->u.i]) m->beside[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) mark_beside(m, t->child[k]);
}

/* The arguments of node `i` whose numbers are added to masks or chosen beside them; of attention,
 * those of the scores. */
static unsigned beside_in(const rule_masks *m, size_t i, bool *product) {
  const rule_mask_node *n = &m->node[i];
  const rule_mask_op *op =
      n->fixed || !n->call || n->call->kind != RULE_OP ? NULL : rule_mask_op_of(n->call->u.s);
  *product = op && op->factors && reads_masks(m, n->call);
  return *product ? op->factors : op && m->has[i] ? op->numbers | op->masks : 0;
}

static void note_beside(rule_masks *m, size_t i) {
  bool product;
  const unsigned bits = beside_in(m, i, &product);
  for (uint32_t k = 0; bits && k < m->node[i].call->n && k < 32; k++)
    if (bits >> k & 1) mark_beside(m, m->node[i].call->child[k]);
}

static double known_bound(const rule_masks *m, size_t i) {
  const rule_tensor *v = m->node[i].fixed;
  double most = 0;
  for (int64_t e = 0; e < v->numel; e++) {
    const double x = fabs(rule_tensor_get(v, e));
    if (!m->at[i] || rule_tensor_get(m->at[i], e) > 0 || (isinf(x) && !m->half)) continue;
    if (!(x <= most)) most = isnan(x) ? INFINITY : x;
  }
  return most;
}

typedef struct beside {
  const rule_masks *m;
  const double *bound;
  double (*largest)(void *ctx, size_t i);
  void *ctx;
} beside;

/* The sum over the arguments bounds a call that adds them, and all the more one that chooses among
 * them. */
static double argument_bound(const beside *b, size_t i, const rule_term *t) {
  if (t->kind == RULE_VAR)
    return b->m->has[t->u.i] ? b->bound[t->u.i] : b->largest(b->ctx, (size_t)t->u.i);
  if (t->kind == RULE_FLOAT)
    return is_mask_literal(b->m, i, t) || (isinf(t->u.f) && !b->m->half) ? 0 : fabs(t->u.f);
  double sum = t->kind == RULE_INT ? fabs((double)t->u.i) : 0;
  for (uint32_t k = 0; k < t->n; k++) sum += argument_bound(b, i, t->child[k]);
  return sum;
}

static double sum_bound(const beside *b, size_t i, unsigned bits) {
  const rule_term *call = b->m->node[i].call;
  double sum = 0;
  for (uint32_t k = 0; k < call->n && k < 32; k++)
    if (bits >> k & 1) sum += argument_bound(b, i, call->child[k]);
  return sum;
}

/* Scalar products of rows: as many products as a row has elements. A scale is at most 1, or the
 * last argument that is a number. */
static double score_bound(const beside *b, size_t i, unsigned bits) {
  const rule_term *call = b->m->node[i].call;
  double product = 1;
  for (uint32_t k = 0; k < call->n; k++) {
    const rule_term *x = call->child[k];
    if (x->kind == RULE_FLOAT) product *= fmax(1, fabs(x->u.f));
    if (k >= 32 || !(bits >> k & 1)) continue;
    if (x->kind != RULE_VAR) return INFINITY;
    const rule_shape *s = b->m->node[x->u.i].shape;
    product *= argument_bound(b, i, x) * sqrt(s->rank ? (double)s->dim[s->rank - 1] : 1);
  }
  return product;
}

iso_code rule_masks_bound(const rule_masks *m, double (*largest)(void *ctx, size_t i), void *ctx,
                          double *out, iso_error *err) {
  double *bound = calloc(m->n + 1, sizeof *bound);
  if (!bound) return nomem(err);
  const beside b = {m, bound, largest, ctx};
  *out = 0;
  for (size_t i = 0; i < m->n; i++) {
    bool product;
    const unsigned bits = m->node[i].live ? beside_in(m, i, &product) : 0;
    if (m->has[i] && m->node[i].fixed) bound[i] = known_bound(m, i);
    if (bits) bound[i] = product ? score_bound(&b, i, bits) : sum_bound(&b, i, bits);
    if (!(bound[i] <= *out)) *out = isnan(bound[i]) ? INFINITY : bound[i];
  }
  free(bound);
  return ISO_OK;
}

/* ---- the whole ---- */

iso_code rule_masks_new(const rule_oracle *oracle, const rule_mask_node *node, size_t n, bool half,
                        rule_masks **out, iso_error *err) {
  rule_masks *m = calloc(1, sizeof *m);
  if (!m) return nomem(err);
  *m = (rule_masks){.node = node, .n = n, .half = half, .leak = n};
  m->at = calloc(n + 1, sizeof *m->at);
  m->has = calloc(n + 1, sizeof *m->has);
  m->beside = calloc(n + 1, sizeof *m->beside);
  m->source = calloc(n + 1, sizeof *m->source);
  iso_code c = m->at && m->has && m->beside && m->source ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++)
    if (node[i].live) c = follow(m, oracle, i, err);
  for (size_t i = 0; i < n && !c; i++) {
    if (!node[i].live) continue;
    m->any |= m->has[i];
    note_beside(m, i);
    if (m->leak == n && leaks(m, i)) m->leak = i;
  }
  if (c) rule_masks_free(m);
  else *out = m;
  return c;
}

void rule_masks_free(rule_masks *m) {
  if (!m) return;
  for (size_t i = 0; m->at && i < m->n; i++) rule_tensor_unref(m->at[i]);
  free(m->at);
  free(m->has);
  free(m->beside);
  free(m->source);
  free(m);
}

bool rule_masks_any(const rule_masks *m) { return m->any; }
bool rule_masks_at(const rule_masks *m, size_t i) { return m->has[i]; }
bool rule_masks_vanish(const rule_masks *m, size_t *where) {
  if (where) *where = m->leak;
  return m->leak == m->n;
}

const rule_term *rule_masks_read(const rule_masks *m, size_t i, iso_arena *a) {
  const rule_term *call = m->node[i].call, *child[MAX_ARGS];
  const rule_mask_op *op = m->has[i] && call && !m->source[i] ? rule_mask_op_of(call->u.s) : NULL;
  if (!op || call->n > MAX_ARGS || !writes_mask(m, i, op)) return call;
  for (uint32_t k = 0; k < call->n; k++) {
    const bool mask = (op->masks >> k & 1) && is_mask_literal(m, i, call->child[k]);
    if (!(child[k] = mask ? rule_float(a, -INFINITY) : call->child[k])) return NULL;
  }
  return rule_op(a, call->u.s, child, call->n);
}

bool rule_masks_source(const rule_masks *m, size_t i) { return m->source[i]; }

iso_code rule_masks_value(const rule_masks *m, size_t i, rule_tensor **out, iso_error *err) {
  const rule_tensor *v = m->node[i].fixed;
  iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t e = 0; e < v->numel && !c; e++)
    rule_tensor_set(*out, e, rule_tensor_get(m->at[i], e) > 0 ? -INFINITY : rule_tensor_get(v, e));
  return c;
}
