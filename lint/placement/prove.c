/* Placements as rules: the operator of the shards is the shard of the operator.
 *
 * The left side puts the ranks' results together, the right side is the whole operator on the
 * operands put together. Variables are the ranks' operands. Where an operand is varying, its own
 * operator becomes a part of both sides, down to placed tensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/placement/placement_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum {
  MOST_VARS = 96,
  MOST_TERMS = 400,
  MOST_SENT = 4000,
  MOST_DEEPER = 2,
  LEVELS = 3 * (MOST_DEEPER + 1) + 1
};

typedef struct known { /* rules that were decided */
  char *text;
  rule_status status;
  char reason[160];
} known;

typedef struct builder {
  plc *x;
  iso_arena *a;
  const plc_tuple *root;
  uint32_t k;      /* which of its tensors */
  uint32_t deeper; /* levels of placed operands that are taken apart, too */
  bool parts;      /* integers are taken down to parts of leaves alone */
  bool has_parts;  /* there are such */
  bool literal;    /* equal numbers are written out, and stand for no others */
  bool has_fills;  /* there are such */
  bool leaves;     /* both sides are taken down to leaves alone */
  rule_variable var[MOST_VARS];
  rule_tensor *example[MOST_VARS];
  uint64_t key[MOST_VARS]; /* tuple and rank */
  uint32_t n_vars, n_terms;
  uint32_t axes; /* along which some operand is no replica */
  bool fails;
} builder;

static const rule_term *fail(builder *b) {
  b->fails = true;
  return NULL;
}

/* A tensor that messages made is written over leaves, on each rank. */
static uint32_t most_terms(const builder *b) { return b->leaves ? MOST_SENT : MOST_TERMS; }

static const rule_term *apply(builder *b, const char *op, const rule_term *const *arg, size_t n) {
  const rule_term *out = NULL;
  iso_error err;
  if (b->fails || ++b->n_terms > most_terms(b)) return fail(b);
  const iso_code c = rule_call(b->a, b->x->schemas, op, arg, n, &out, &err);
  return c ? fail(b) : out;
}

/* ---- the ranks' tensors, put together ---- */

static const rule_term *sizes(builder *b, const int64_t *dim, uint32_t n) {
  const rule_term *each[RULE_MAX_RANK + 2];
  for (uint32_t i = 0; i < n; i++) each[i] = rule_int(b->a, dim[i]);
  return rule_list(b->a, each, n);
}

/* A dimension split into its blocks and the places in one. */
static const rule_term *apart(builder *b, const rule_term *t, const rule_shape *s, uint32_t d,
                              uint32_t blocks) {
  int64_t dim[RULE_MAX_RANK + 1] = {0};
  for (uint32_t i = 0, k = 0; i < s->rank; i++) {
    if (i == d) dim[k++] = blocks;
    dim[k++] = i == d ? s->dim[i] / blocks : s->dim[i];
  }
  const rule_term *arg[2] = {t, sizes(b, dim, s->rank + 1)};
  return apply(b, OP_RESHAPE, arg, 2);
}

/* The same where blocks are of several sizes: block by block the share of each rank. */
static const rule_term *join_shares(builder *b, const plc_one *o, const rule_term *const *t,
                                    uint32_t n, const rule_shape *each) {
  const rule_term *part[PLC_SHARES * PLC_RANKS];
  uint32_t made = 0;
  for (uint32_t k = 0; k < o->blocks; k++)
    for (uint32_t i = 0; i < n && !b->fails; i++) {
      int64_t size[PLC_BLOCKS], from = 0;
      if (!plc_sections(o, each[i].dim[o->dim], size)) return fail(b);
      for (uint32_t j = 0; j < k; j++) from += size[j];
      const rule_term *arg[4] = {t[i], rule_int(b->a, o->dim), rule_int(b->a, from),
                                 rule_int(b->a, from + size[k])};
      part[made++] = apply(b, OP_SLICE_TENSOR, arg, 4);
    }
  const rule_term *arg[2] = {rule_list(b->a, part, made), rule_int(b->a, o->dim)};
  return b->fails ? NULL : apply(b, OP_CAT, arg, 2);
}

/* The terms of `n` neighbours along an axis; *shape is one's, and then theirs together. */
static const rule_term *join(builder *b, const plc_one *o, const rule_term *const *t, uint32_t n,
                             rule_shape *shape, const rule_shape *each) {
  const uint32_t blocks = plc_blocks(o);
  const rule_term *part[PLC_RANKS] = {0};
  if (o->kind == PLC_R) return t[0];
  if (o->kind == PLC_P) {
    static const char *const op[] = {OP_ADD_TENSOR, OP_MAXIMUM, OP_MINIMUM, OP_ADD_TENSOR};
    const bool squares = o->reduce == PLC_NORM;
    const rule_term *out = NULL;
    for (uint32_t i = 0; i < n && !b->fails; i++) {
      const rule_term *both[2] = {t[i], t[i]};
      const rule_term *one = squares ? apply(b, OP_MUL_TENSOR, both, 2) : t[i];
      const rule_term *arg[2] = {out, one};
      out = i ? apply(b, op[o->reduce], arg, 2) : one;
    }
    return squares ? apply(b, OP_SQRT, &out, 1) : out;
  }
  shape->dim[o->dim] = 0;
  if (plc_shared(o)) {
    for (uint32_t i = 0; i < n; i++) shape->dim[o->dim] += each[i].dim[o->dim];
    return join_shares(b, o, t, n, each);
  }
  for (uint32_t i = 0; i < n && !b->fails; i++) {
    part[i] = blocks > 1 ? apart(b, t[i], &each[i], o->dim, blocks) : t[i];
    shape->dim[o->dim] += each[i].dim[o->dim];
  }
  if (b->fails) return NULL;
  const rule_term *arg[2] = {rule_list(b->a, part, n),
                             rule_int(b->a, o->dim + (blocks > 1 ? 1 : 0))};
  const rule_term *out = apply(b, OP_CAT, arg, 2);
  if (blocks == 1 || b->fails) return out;
  const rule_term *view[2] = {out, sizes(b, shape->dim, shape->rank)};
  return apply(b, OP_RESHAPE, view, 2);
}

typedef const rule_term *(*leaf_term)(builder *b, const plc_tuple *t, uint32_t rank);

/* The tensor that the ranks from `rank` on hold together along axes from `axis` on. */
static const rule_term *together(builder *b, const plc_tuple *t, uint32_t k, uint32_t rank,
                                 uint32_t axis, leaf_term f, rule_shape *shape) {
  const plc_mesh *m = &b->x->mesh;
  const rule_term *part[PLC_RANKS] = {0};
  rule_shape each[PLC_RANKS] = {0};
  rule_tensor *local[PLC_RANKS];
  if (b->fails) return NULL;
  if (axis == m->n_axes) {
    plc_locals(b->x, t, 0, k, local);
    if (!local[rank]) return fail(b);
    *shape = local[rank]->shape;
    return f(b, t, rank);
  }
  const plc_one *o = &t->place[k].axis[axis];
  const uint32_t n = o->kind == PLC_R ? 1 : m->size[axis];
  for (uint32_t i = 0; i < n; i++)
    part[i] = together(b, t, k, rank + i * plc_stride(m, axis), axis + 1, f, &each[i]);
  *shape = each[0];
  return b->fails ? NULL : join(b, o, part, n, shape, each);
}

/* ---- operands ---- */

/* The leaf of which a tensor has numbers, in some layout; NULL: it is none. */
static const plc_tuple *leaf_of(const plc *x, const plc_tuple *t) {
  while (!t->leaf) {
    if (t->mixed || t->collective || t->n_args != 1 || t->node[0] == PLC_NONE) return NULL;
    const rule_operator *o = rule_operator_of(plc_node(x, t->node[0])->op);
    if (!o->rearranges && !o->part) return NULL;
    t = x->tuple[t->arg[0]];
  }
  return t;
}

static bool is_fill(const builder *b, const plc_tuple *t) {
  const rule_tensor *v = t->whole && t->n_out == 1 ? t->whole[0] : NULL;
  return t->konst && t->state == PLC_PLACED && v && v->numel && rule_dtype_is_float(v->dtype) &&
         !rule_tensor_varies(v) && t->place[0].scale == 1 && !plc_has(b->x, &t->place[0], PLC_P);
}

static bool is_cut(builder *b, const plc_tuple *t, uint32_t depth) {
  if (t == b->root) return false;
  if (t->leaf) return true;
  if (b->leaves) return false;
  b->has_fills |= is_fill(b, t);
  if (b->literal && is_fill(b, t)) return false;
  if (t->several) return false; /* its results are tensors */
  const rule_tensor *v = t->whole && t->n_out == 1 ? t->whole[0] : NULL;
  if (t->state != PLC_PLACED || !v || depth <= b->deeper || t->evidence < RULE_TESTED) return false;
  if (!rule_dtype_is_int(v->dtype) || !t->n_args) return true;
  if (t->konst && b->deeper == 0 && !b->parts)
    return true; /* positions, and what is made of them */
  /* Integers are taken down to leaves, whose possible values are declared. */
  const bool part = leaf_of(b->x, t) != NULL;
  b->has_parts |= part;
  return part && b->parts;
}

/* The range of an integer leaf: the declared one, else from 0 to the largest that was captured. Of
 * a constant it is that of its numbers. */
static void say_range(builder *b, const plc_tuple *t) {
  int64_t low = 0, high = 0;
  if (leaf_of(b->x, t)) t = leaf_of(b->x, t);
  for (uint32_t r = 0; r < b->x->mesh.n; r++) {
    if (t->node[r] == PLC_NONE) continue;
    const rule_domain *d = plc_node(b->x, t->node[r])->domain;
    const rule_tensor *v = b->x->value[0][t->node[r]];
    const bool said = d && isfinite(d->low) && isfinite(d->high);
    if (said && d->low < (double)low) low = (int64_t)d->low;
    if (said && d->high > (double)high) high = (int64_t)d->high;
    for (int64_t i = 0; !said && v && i < v->numel; i++) {
      const int64_t n = rule_tensor_get_int(v, i);
      if (n < low) low = n;
      if (n > high) high = n;
    }
  }
  b->var[b->n_vars].low = rule_int(b->a, low);
  b->var[b->n_vars].high = rule_int(b->a, high + 1);
}

/* Equal numbers are shards along any axis: which axis a reader takes them for does not show. They
 * are one number, of any shape. */
static const rule_term *filled(builder *b, const plc_tuple *t, const rule_tensor *like) {
  const uint64_t key = (uint64_t)t->id << 32 | PLC_RANKS;
  uint32_t i = 0;
  while (i < b->n_vars && b->key[i] != key) i++;
  if (i == MOST_VARS) return fail(b);
  if (i == b->n_vars) {
    const char *name = iso_arena_printf(b->a, "x%u", i);
    if (!name) return fail(b);
    b->var[i] = (rule_variable){.name = name};
    rule_variable_set_dtype(&b->var[i], like->dtype);
    b->key[i] = key;
    b->n_vars++;
  }
  const rule_term *arg[2] = {rule_var(b->a, i), sizes(b, like->shape.dim, like->shape.rank)};
  return like->shape.rank ? apply(b, OP_EXPAND, arg, 2) : arg[0];
}

static const rule_term *variable(builder *b, const plc_tuple *t, uint32_t rank) {
  const plc *x = b->x;
  uint32_t of = rank;
  rule_tensor *local[PLC_RANKS];
  for (uint32_t a = 0; a < x->mesh.n_axes && t->state == PLC_PLACED; a++) {
    if (t->place[0].axis[a].kind == PLC_R)
      of -= plc_along(&x->mesh, of, a) * plc_stride(&x->mesh, a);
    else b->axes |= UINT32_C(1) << a;
  }
  const uint64_t key = (uint64_t)t->id << 32 | of;
  for (uint32_t i = 0; i < b->n_vars; i++)
    if (b->key[i] == key) return rule_var(b->a, i);
  plc_locals(x, t, 0, 0, local);
  if (b->n_vars == MOST_VARS || !local[of]) return fail(b);
  if (is_fill(b, t)) return filled(b, t, local[of]);
  const rule_tensor *v = local[of];
  const rule_term **dim = iso_arena_alloc(b->a, (v->shape.rank + 1) * sizeof *dim);
  const char *name = iso_arena_printf(b->a, "x%u", b->n_vars);
  if (!dim || !name) return fail(b);
  for (uint32_t i = 0; i < v->shape.rank; i++) {
    if (v->shape.dim[i] < 1) return fail(b);
    dim[i] = rule_int(b->a, v->shape.dim[i]);
  }
  b->var[b->n_vars] = (rule_variable){.name = name, .n_dims = v->shape.rank, .dim = dim};
  rule_variable_set_dtype(&b->var[b->n_vars], v->dtype);
  if ((leaf_of(x, t) || t->konst) && b->var[b->n_vars].kind == 'i') say_range(b, t);
  b->example[b->n_vars] = local[of];
  b->key[b->n_vars] = key;
  return rule_var(b->a, b->n_vars++);
}

static const rule_term *whole_of(builder *b, const plc_tuple *t, uint32_t depth);
static const rule_term *local_of(builder *b, const plc_tuple *t, uint32_t rank, uint32_t depth);

typedef struct filling { /* of a call's variables, in their order */
  builder *b;
  const plc_tuple *t;
  uint32_t rank, depth;
  bool whole;
} filling;

/* Which argument of the tuple a rank's operand is. */
static uint32_t argument_of(const filling *f, uint32_t node) {
  for (uint32_t i = 0; i < f->t->n_args; i++)
    if (f->b->x->tuple[f->t->arg[i]]->node[f->rank] == node) return i;
  return PLC_NONE;
}

/* `c` with `inner` for its variables. */
static const rule_term *put_in(builder *b, const rule_term *c, const rule_term *inner) {
  if (c->kind == RULE_VAR) return inner;
  if (c->kind != RULE_OP && c->kind != RULE_LIST) return c;
  const rule_term **child = iso_arena_alloc(b->a, (c->n + 1) * sizeof *child);
  if (!child || ++b->n_terms > most_terms(b)) return fail(b);
  for (uint32_t i = 0; i < c->n; i++)
    if (!(child[i] = put_in(b, c->child[i], inner))) return fail(b);
  return c->kind == RULE_LIST ? rule_list(b->a, child, c->n) : rule_op(b->a, c->u.s, child, c->n);
}

/* A constant that is larger where it is made. */
static const rule_term *regrown_of(builder *b, plc_tuple *t, const plc_variant *v) {
  const rule_term *call = plc_whole_call(b->x, t, t->n_args ? &t->variant : v, b->a);
  if (!call || !t->n_args) return call ? call : fail(b);
  const rule_term *inner = regrown_of(b, b->x->tuple[t->arg[0]], v);
  return inner ? put_in(b, call, inner) : NULL;
}

/* Whether it is the constant that the root has larger, or an operand of that. */
static bool is_regrown(const builder *b, const plc_tuple *t) {
  if (b->root->regrown == PLC_NONE) return false;
  const plc_tuple *o = b->x->tuple[b->root->arg[b->root->regrown]];
  while (o != t && o->n_args) o = b->x->tuple[o->arg[0]];
  return o == t;
}

static const rule_term *fill(filling *f, const rule_term *c) {
  builder *b = f->b;
  if (b->fails) return NULL;
  if (c->kind == RULE_VAR) {
    const uint32_t i = f->whole ? (uint32_t)c->u.i : argument_of(f, (uint32_t)c->u.i);
    if (i == PLC_NONE) return fail(b);
    const plc_tuple *o = b->x->tuple[f->t->arg[i]];
    if (i == f->t->regrown && f->whole)
      return regrown_of(b, b->x->tuple[f->t->arg[i]], &f->t->regrow);
    return f->whole ? whole_of(b, o, f->depth + 1) : local_of(b, o, f->rank, f->depth + 1);
  }
  if (c->kind != RULE_OP && c->kind != RULE_LIST) return c;
  const rule_term **child = iso_arena_alloc(b->a, (c->n + 1) * sizeof *child);
  if (!child || ++b->n_terms > most_terms(b)) return fail(b);
  for (uint32_t i = 0; i < c->n; i++)
    if (!(child[i] = fill(f, c->child[i]))) return fail(b);
  return c->kind == RULE_LIST ? rule_list(b->a, child, c->n) : rule_op(b->a, c->u.s, child, c->n);
}

/* A collective of the ranks that have node `i`, on their tensors of its operand. */
static const rule_term *group_of(builder *b, const plc_tuple *t, uint32_t i, uint32_t depth) {
  const rule_term *call = plc_node(b->x, i)->call, *each[PLC_RANKS];
  const rule_term **child = iso_arena_alloc(b->a, (call->n + 1) * sizeof *child);
  const plc_tuple *o = b->x->tuple[t->arg[0]];
  uint32_t n = 0;
  if (!child) return fail(b);
  for (uint32_t r = 0; r < b->x->mesh.n && !b->fails; r++)
    if (b->x->ranks_of[i] >> r & 1) each[n++] = local_of(b, o, r, depth + 1);
  if (b->fails || n != call->child[0]->n) return fail(b);
  for (uint32_t k = 1; k < call->n; k++) child[k] = call->child[k];
  child[0] = rule_list(b->a, each, n);
  return rule_op(b->a, call->u.s, child, call->n);
}

static const rule_term *local_of(builder *b, const plc_tuple *t, uint32_t rank, uint32_t depth) {
  const uint32_t i = t->node[rank];
  if (b->fails || i == PLC_NONE) return fail(b);
  if (!is_regrown(b, t) && is_cut(b, t, depth)) return variable(b, t, rank);
  if (t->differs || t->state != PLC_PLACED) b->axes = UINT32_MAX;
  if (t->mixed) { /* what another rank computed, where this one has no such step */
    const plc_tuple *step = b->x->tuple[b->x->step_of[i]];
    for (uint32_t r = 0; r < b->x->mesh.n && step->node[rank] != i; r++)
      if (step->node[r] == i) rank = r;
    return local_of(b, step, rank, depth);
  }
  if (t->collective) return group_of(b, t, i, depth);
  filling f = {.b = b, .t = t, .rank = rank, .depth = depth};
  return fill(&f, plc_node(b->x, i)->call);
}

static const rule_term *cut_local(builder *b, const plc_tuple *t, uint32_t rank) {
  return variable(b, t, rank);
}

static const rule_term *root_local(builder *b, const plc_tuple *t, uint32_t rank) {
  const rule_term *pick[2] = {local_of(b, t, rank, 0), rule_int(b->a, b->k)};
  return b->fails || t->n_out == 1 ? pick[0] : rule_op(b->a, "getitem", pick, 2);
}

static const rule_term *scaled(builder *b, const char *op, const rule_term *t, double by) {
  const rule_term *arg[2] = {t, rule_float(b->a, by)};
  return by == 1 || b->fails ? t : apply(b, op, arg, 2);
}

static const rule_term *whole_of(builder *b, const plc_tuple *t, uint32_t depth) {
  if (b->fails) return NULL;
  if (t->leaf && t->state != PLC_PLACED) { /* of some ranks only: the first's */
    uint32_t r = 0;
    while (t->node[r] == PLC_NONE) r++;
    return t->state == PLC_VARYING ? variable(b, t, r) : fail(b);
  }
  if (is_cut(b, t, depth) && is_fill(b, t)) return filled(b, t, t->whole[0]);
  if (is_cut(b, t, depth)) {
    rule_shape shape;
    const rule_term *x = together(b, t, 0, 0, 0, cut_local, &shape);
    return b->fails ? NULL : scaled(b, OP_DIV_TENSOR, x, t->place[0].scale);
  }
  if (t->stands_for != PLC_NONE) return whole_of(b, b->x->tuple[t->stands_for], depth + 1);
  if (t->collective || t->mixed) {
    const plc_tuple *o = b->x->tuple[t->arg[t->mixed ? t->from : 0]];
    return whole_of(b, o, depth + (t->collective ? 1 : 0));
  }
  if (t->apart) return whole_of(b, b->x->tuple[b->x->tuple[t->arg[0]]->arg[0]], depth + 1);
  if (plc_takes_part(b->x, t)) return whole_of(b, b->x->tuple[t->arg[0]], depth + 1);
  filling f = {.b = b, .t = t, .depth = depth, .whole = true};
  plc_tuple *own = b->x->tuple[t->id];
  const rule_term *call = plc_whole_call(b->x, own, &t->variant, b->a);
  return call ? fill(&f, call) : fail(b);
}

/* ---- deciding ---- */

typedef struct prover {
  plc *x;
  known *all;
  size_t n, cap;
  bool has_parts; /* the last rule would be another one, with integers that are parts of leaves */
  bool has_fills; /* the same with equal numbers as they are */
  char reason[160];
} prover;

static rule_status decide(prover *p, const rule *r, rule_tensor **example) {
  plc *x = p->x;
  char *text = rule_print(r);
  rule_verdict v = {0};
  if (!plc_need(x, text)) return RULE_UNKNOWN;
  for (size_t i = 0; i < p->n; i++)
    if (strcmp(p->all[i].text, text) == 0) {
      free(text);
      memcpy(p->reason, p->all[i].reason, sizeof p->reason);
      return p->all[i].status;
    }
  x->code = x->oracle->decide(x->oracle->ctx, r, example, &v, x->err);
  snprintf(p->reason, sizeof p->reason, "%.150s", v.reason);
  if (!plc_failed(x) && !iso_grow(p->all, p->cap, p->n + 1)) plc_need(x, NULL);
  if (plc_failed(x)) {
    free(text);
    return RULE_UNKNOWN;
  }
  p->all[p->n] = (known){.text = text, .status = v.status};
  memcpy(p->all[p->n++].reason, p->reason, sizeof p->reason);
  return v.status;
}

/* The rule of tensor `k`, for the ranks from `base` on. `level`: how much is taken apart, first
 * down to leaves, then to parts of them, then to literals. Where messages meet, both sides have to
 * end at the same tensors: at last they end at leaves alone. */
static rule_status show_from(prover *p, plc_tuple *t, uint32_t k, uint32_t base, uint32_t level,
                             uint32_t *axes) {
  iso_arena arena;
  iso_arena_init(&arena);
  builder *b = calloc(1, sizeof *b);
  rule_status s = RULE_UNKNOWN;
  rule_shape shape;
  if (plc_need(p->x, b)) {
    *b = (builder){.x = p->x, .a = &arena, .root = t, .k = k};
    b->deeper = level % (MOST_DEEPER + 1);
    b->parts = level / (MOST_DEEPER + 1) == 1;
    b->literal = level / (MOST_DEEPER + 1) == 2;
    b->leaves = level / (MOST_DEEPER + 1) == 3;
    const rule_term *l = together(b, t, k, base, 0, root_local, &shape);
    const rule_term *r = b->fails ? NULL : whole_of(b, t, 0);
    if (!b->fails && t->n_out > 1) {
      const rule_term *pick[2] = {r, rule_int(&arena, k)};
      r = rule_op(&arena, "getitem", pick, 2);
    }
    if (!b->fails) r = scaled(b, OP_MUL_TENSOR, r, t->place[k].scale);
    if (!b->fails && !arena.failed && rule_term_eq(l, r)) s = RULE_PROVED;
    else if (!b->fails && !arena.failed) {
      const rule shown = {
          .name = "placement", .n_vars = b->n_vars, .var = b->var, .lhs = l, .rhs = r};
      s = decide(p, &shown, b->example);
    } else snprintf(p->reason, sizeof p->reason, "the rule is too large, or of no known form");
    *axes = b->axes;
    p->has_parts = b->has_parts;
    p->has_fills = b->has_fills;
  }
  if (arena.failed) plc_need(p->x, NULL);
  free(b);
  iso_arena_fini(&arena);
  return s;
}

static rule_status weaker(rule_status a, rule_status b) { return a < b ? a : b; }

/* Replicas along an axis are each shown, where more than replicas goes into them. */
static rule_status show(prover *p, plc_tuple *t, uint32_t k, uint32_t level) {
  const plc_mesh *m = &p->x->mesh;
  uint32_t axes = 0, ignored;
  rule_status s = show_from(p, t, k, 0, level, &axes);
  for (uint32_t r = 1; r < m->n && s >= RULE_TESTED && !plc_failed(p->x); r++) {
    bool needed = t->node[r] != t->node[0];
    for (uint32_t a = 0; a < m->n_axes; a++)
      if (plc_along(m, r, a)) needed &= t->place[k].axis[a].kind == PLC_R && (axes >> a & 1);
    if (needed) s = weaker(s, show_from(p, t, k, r, level, &ignored));
  }
  return s;
}

static bool trivial(const plc *x, const plc_tuple *t) {
  bool same = !t->differs && t->variant.n == 0 && t->regrown == PLC_NONE && !t->mixed &&
              t->stands_for == PLC_NONE;
  for (uint32_t k = 0; k < t->n_out; k++) same &= t->place[k].scale == 1;
  for (uint32_t i = 0; i < t->n_args && same; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    same = o->state == PLC_PLACED;
    for (uint32_t k = 0; k < o->n_out && same; k++)
      same = plc_is_replica(x, &o->place[k]) && o->place[k].scale == 1;
  }
  for (uint32_t r = 0; r < x->mesh.n; r++) same &= t->node[r] != PLC_NONE;
  return same && !t->collective;
}

static void settle_evidence(prover *p, plc_tuple *t) {
  plc *x = p->x;
  if (t->leaf || t->mended || t->state != PLC_PLACED || trivial(x, t) || t->constant) {
    t->evidence = RULE_PROVED;
    return;
  }
  if (t->several) { /* each of its results stands for itself */
    t->evidence = RULE_PROVED;
    return;
  }
  t->evidence = RULE_PROVED;
  for (uint32_t k = 0; k < t->n_out && !plc_failed(x); k++) {
    rule_status s = RULE_UNKNOWN;
    p->has_parts = p->has_fills = false;
    for (uint32_t i = 0; i < LEVELS && s < RULE_TESTED && !plc_failed(x); i++) {
      const uint32_t how = i / (MOST_DEEPER + 1);
      const bool fits[] = {true, p->has_parts, p->has_fills, t->by_messages};
      if (fits[how]) s = show(p, t, k, i);
    }
    t->evidence = weaker(t->evidence, s);
  }
  if (t->evidence < RULE_TESTED) t->why = iso_arena_strdup(&x->run, p->reason);
}

static void walk(prover *p, plc_tuple *t) {
  if (t->shown || plc_failed(p->x)) return;
  t->shown = true;
  for (uint32_t i = 0; i < t->n_args; i++) walk(p, p->x->tuple[t->arg[i]]);
  settle_evidence(p, t);
}

void plc_prove(plc *x) {
  prover p = {.x = x};
  for (size_t i = 0; i < x->n_tuples; i++) x->tuple[i]->evidence = RULE_UNKNOWN;
  for (size_t i = 0; i < x->n_outputs; i++) walk(&p, x->tuple[x->output[i].tuple]);
  for (size_t i = 0; i < p.n; i++) free(p.all[i].text);
  free(p.all);
}
