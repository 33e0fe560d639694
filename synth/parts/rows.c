/* Steps that one graph takes as a whole, spread over the ranks: each of them as the same step on
 * the ranks' parts.
 *
 * Where ranks compute their part in another way than the whole does (a softmax over blocks that go
 * round a ring, with a running maximum and sum), the whole and the parts are no rule of one
 * operator, and one rule of all ranks' ways grows with the square of their number. But the steps of
 * the whole keep to the rows that ranks have: a step on the rows of a rank is a tensor of neither
 * graph, and that these together are the whole is a rule of that operator. One rule remains for
 * each rank: its rows as the whole's steps compute them equal those that it computes itself. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/search/frontier.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <string.h>

enum { DEEP = 12, MOST_STEPS = 32, MOST_OPERANDS = 6 };

/* A tensor and the parts that make it up. */
typedef struct spread_step {
  eg_node whole;
  uint32_t d;
  eg_node part[MAX_RANKS];
  bool there; /* it has parts */
} spread_step;

typedef struct spreading {
  state *s;
  uint32_t n;   /* parts */
  bool columns; /* parts along the last dimension are taken, too */
  spread_step step[MOST_STEPS];
  uint32_t n_steps;
} spreading;

/* A call, and how its operands are cut. */
typedef struct operands {
  const rule_term *call; /* over RULE_VAR k, operand k */
  eg_node of[MOST_OPERANDS];
  const spread_step *cut[MOST_OPERANDS]; /* NULL: it has no parts */
  uint32_t n;
  bool unfit; /* it has too many, or such as are no tensors */
} operands;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Whether parts of `e` along `d` are not to be taken. */
static bool is_column(const spreading *x, eg_node e, uint32_t d) {
  const uint32_t rank = x->s->rec[e.i].shape.rank;
  return !x->columns && rank > 1 && d == rank - 1;
}

/* The concatenation of so many parts as which ranks joined `e` with theirs. */
static bool known_parts(const spreading *x, eg_node e, spread_step *out) {
  state *s = x->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++) {
    if (!st_made(&s->rec[m[i].i]) || s->rec[m[i].i].leaf || !st_calls(s, m[i], OP_CAT)) continue;
    const eg_node list = {eg_node_original(s->g, m[i], 0).i};
    const rule_term *d = st_literal(s, (eg_node){eg_node_original(s->g, m[i], 1).i});
    if (eg_node_arity(s->g, list) != x->n || !d || d->kind != RULE_INT) continue;
    out->d = (uint32_t)d->u.i;
    if (is_column(x, e, out->d)) continue;
    for (uint32_t k = 0; k < x->n; k++) out->part[k].i = eg_node_original(s->g, list, k).i;
    return out->there = true;
  }
  return false;
}

/* The member of its class that is a number of times less than what ranks hold in parts: a gradient
 * that each rank has of its own loss alone, where the whole's is of the mean. Else `e` itself. */
static eg_node as_divided(const spreading *x, eg_node e) {
  state *s = x->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++) {
    spread_step ignored;
    if (!st_made(&s->rec[m[i].i]) || s->rec[m[i].i].leaf || !st_calls(s, m[i], OP_DIV_TENSOR))
      continue;
    if (known_parts(x, (eg_node){eg_node_original(s->g, m[i], 0).i}, &ignored)) return m[i];
  }
  return e;
}

/* The call of an e-node with its operands numbered. NULL: no memory. */
static const rule_term *numbered(const spreading *x, eg_node e, bool root, operands *o) {
  state *s = x->s;
  iso_arena *a = &s->arena;
  const rule_term *child[RULE_MAX_VARS], *literal = st_literal(s, e);
  const size_t n = eg_node_arity(s->g, e);
  if (literal) return literal;
  if (!root && !st_is_list(s, e)) {
    if (!s->rec[e.i].tensor || o->n == MOST_OPERANDS) return o->unfit = true, rule_var(a, 0);
    o->of[o->n] = e;
    return rule_var(a, o->n++);
  }
  if (n > RULE_MAX_VARS) return o->unfit = true, rule_var(a, 0);
  for (uint32_t k = 0; k < n; k++)
    if (!(child[k] = numbered(x, (eg_node){eg_node_original(s->g, e, k).i}, false, o))) return NULL;
  return st_is_list(s, e) ? rule_list(a, child, (uint32_t)n)
                          : rule_op(a, st_operator(s, e), child, (uint32_t)n);
}

/* One step of one result that computes, and puts nothing together. */
static bool is_step(state *s, eg_node e) {
  const char *op = st_operator(s, e);
  const rec *r = &s->rec[e.i];
  return r->tensor && r->valued && !r->leaf && !r->konst && eg_node_arity(s->g, e) > 0 &&
         !st_calls(s, e, OP_CAT) && !rule_is_collective(op) && !rule_is_getitem(op);
}

/* ---- one way to cut the operands ---- */

/* The operand of part `k`: its part, the rows of a constant that stand beside the part's, or the
 * whole. `by`: the operand that is cut. NULL: no memory. */
static eg_node operand_of(const spreading *x, const operands *o, unsigned cut,
                          const spread_step *by, uint32_t i, uint32_t k, const rule_term **t) {
  state *s = x->s;
  const rec *r = &s->rec[o->of[i].i], *w = &s->rec[by->whole.i];
  *t = rule_var(&s->arena, i);
  if (cut >> i & 1) return o->cut[i]->part[k];
  const uint32_t behind = w->shape.rank - by->d; /* dimensions from the cut one on */
  if (!*t || !r->konst || r->shape.rank < behind) return o->of[i];
  const uint32_t d = r->shape.rank - behind;
  if (r->shape.dim[d] != w->shape.dim[by->d] || r->shape.dim[d] < 2) return o->of[i];
  int64_t from = 0;
  for (uint32_t j = 0; j < k; j++) from += s->rec[by->part[j].i].shape.dim[by->d];
  *t = rule_slice(&s->arena, *t, d, from, from + s->rec[by->part[k].i].shape.dim[by->d]);
  return o->of[i];
}

static const rule_term *with_operands(iso_arena *a, const rule_term *t,
                                      const rule_term *const *operand) {
  const rule_term *child[RULE_MAX_VARS];
  if (t->kind == RULE_VAR) return operand[t->u.i];
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  for (uint32_t k = 0; k < t->n; k++)
    if (!(child[k] = with_operands(a, t->child[k], operand))) return NULL;
  return t->kind == RULE_LIST ? rule_list(a, child, t->n) : rule_op(a, t->u.s, child, t->n);
}

/* A way to make the step on each part. */
typedef struct attempt {
  const operands *o;
  unsigned cut;          /* which operands are */
  const spread_step *by; /* the first of these */
  const rule_shape *all; /* of the whole, where the call says it, */
  uint32_t d;            /* and is to say a part's, which is smaller along this */
} attempt;

/* The call with a part's shape where it has the whole's. NULL: no memory. */
static const rule_term *resized(const spreading *x, const attempt *w, uint32_t k) {
  const rec *part = &x->s->rec[w->by->part[k].i], *all = &x->s->rec[w->by->whole.i];
  if (!w->all) return w->o->call;
  rule_shape own = *w->all;
  own.dim[w->d] = own.dim[w->d] * part->shape.dim[w->by->d] / all->shape.dim[w->by->d];
  return st_with_shape(&x->s->arena, w->o->call, w->all, &own);
}

/* The step on each part. Returns: in `made` whether all can be made. */
static iso_code make_parts(const spreading *x, const attempt *w, st_parts *out, bool *made,
                           iso_error *err) {
  const operands *o = w->o;
  state *s = x->s;
  *out = (st_parts){.n = x->n, .by = 1, .scale = 1};
  *made = false;
  for (uint32_t k = 0; k < x->n; k++) {
    const rule_term *operand[MOST_OPERANDS];
    eg_node bind[MOST_OPERANDS];
    for (uint32_t i = 0; i < o->n; i++) {
      bind[i] = operand_of(x, o, w->cut, w->by, i, k, &operand[i]);
      if (!operand[i]) return nomem(err);
    }
    const rule_term *call = resized(x, w, k),
                    *t = call ? with_operands(&s->arena, call, operand) : NULL;
    if (!t) return nomem(err);
    iso_code c = st_add_term(s, t, bind, &out->of[k], err);
    if (!c) c = st_value(s, out->of[k], err);
    if (c == ISO_TORCH) return ISO_OK; /* sizes that are the whole's own */
    if (c) return c;
    if (!(out->value[k] = st_val(s, out->of[k], s->n_draws - 1))) return st_lost(&s->values, err);
  }
  *made = true;
  return ISO_OK;
}

/* Whether the parts that this way gives are `e`, as a rule says. */
static iso_code try_one(spreading *x, eg_node e, const attempt *w, spread_step *out,
                        iso_error *err) {
  state *s = x->s;
  st_parts p;
  bool made, done = false;
  iso_code c = make_parts(x, w, &p, &made, err);
  if (c || !made) return c;
  const rule_tensor *whole = st_val(s, e, s->n_draws - 1);
  if (!whole) return st_lost(&s->values, err);
  if (!st_is_cut_along(whole, &p, &out->d) || is_column(x, e, out->d)) return ISO_OK;
  const rule_term *t = st_joined(&s->arena, &p, NULL, out->d);
  eg_node aux;
  if (!t) return nomem(err);
  c = st_add_term(s, t, p.of, &aux, err);
  if (!c) c = st_value(s, aux, err);
  if (!c && st_values_equal(s, e, aux)) c = st_prove(s, e, aux, &done, err);
  memcpy(out->part, p.of, sizeof out->part);
  out->there = done;
  return c;
}

/* The call as it is, and with a part's shape in place of the whole's. */
static iso_code try_cut(spreading *x, eg_node e, const operands *o, unsigned cut, spread_step *out,
                        iso_error *err) {
  const rule_shape *shape = &x->s->rec[e.i].shape;
  attempt w = {.o = o, .cut = cut, .by = o->cut[__builtin_ctz(cut)]};
  if (!st_says_shape(o->call, shape)) return try_one(x, e, &w, out, err);
  iso_code c = ISO_OK;
  w.all = shape;
  for (w.d = 0; w.d < shape->rank && !c && !out->there; w.d++)
    if (shape->dim[w.d] >= x->n) c = try_one(x, e, &w, out, err);
  return c;
}

/* ---- the steps of the whole ---- */

static iso_code spread(spreading *x, eg_node e, int depth, const spread_step **out, iso_error *err);

/* By the parts of its operands: those of one alone, or of several at once. */
static iso_code by_operands(spreading *x, eg_node e, int depth, spread_step *out, iso_error *err) {
  state *s = x->s;
  operands o = {.n = 0};
  iso_code c = ISO_OK;
  if (!is_step(s, e) || depth == DEEP) return ISO_OK;
  if (!(o.call = numbered(x, e, true, &o))) return nomem(err);
  unsigned have = 0;
  for (uint32_t i = 0; i < o.n && !c && !o.unfit; i++) {
    if (s->rec[o.of[i].i].konst) continue;
    c = spread(x, o.of[i], depth + 1, &o.cut[i], err);
    if (o.cut[i]) have |= 1u << i;
  }
  if (o.unfit) return c;
  for (unsigned size = 1; size <= o.n; size++)
    for (unsigned cut = 1; cut <= have && !c && !out->there; cut++)
      if ((cut & have) == cut && (unsigned)__builtin_popcount(cut) == size)
        c = try_cut(x, e, &o, cut, out, err);
  return c;
}

/* Returns: in `out` the parts of `e`; NULL: it has none. */
static iso_code spread(spreading *x, eg_node e, int depth, const spread_step **out,
                       iso_error *err) {
  state *s = x->s;
  *out = NULL;
  for (uint32_t i = 0; i < x->n_steps; i++)
    if (eg_equal(s->g, x->step[i].whole, e)) {
      if (x->step[i].there) *out = &x->step[i];
      return ISO_OK;
    }
  spread_step now = {.whole = e};
  iso_code c =
      known_parts(x, e, &now) ? ISO_OK : by_operands(x, as_divided(x, e), depth, &now, err);
  if (c || x->n_steps == MOST_STEPS) return c;
  x->step[x->n_steps++] = now;
  if (now.there) *out = &x->step[x->n_steps - 1];
  return ISO_OK;
}

/* Rows first by steps on rows alone: a product of rows with columns that ranks hold in parts, too,
 * is cut along either. */
iso_code st_rows_of(state *s, eg_node whole, uint32_t n, uint32_t d, eg_node *part, bool *there,
                    iso_error *err) {
  spreading *x = iso_arena_alloc(&s->arena, sizeof *x);
  iso_code c = ISO_OK;
  if (!x) return nomem(err);
  *there = false;
  for (int columns = d + 1 == s->rec[whole.i].shape.rank; columns < 2 && !c && !*there; columns++) {
    spread_step made = {.whole = whole};
    *x = (spreading){.s = s, .n = n, .columns = columns == 1};
    c = by_operands(x, whole, 0, &made, err);
    *there = !c && made.there && made.d == d;
    if (*there) memcpy(part, made.part, n * sizeof *part);
  }
  return c;
}

iso_code st_join_rows(state *s, const st_parts *p, eg_node whole, uint32_t d, iso_error *err) {
  eg_node part[MAX_RANKS];
  bool there;
  iso_code c = st_rows_of(s, whole, p->n, d, part, &there, err);
  if (c || !there) return c;
  s->ranks.wide = true; /* what a rank's steps share stands in the pattern often */
  for (uint32_t k = 0; k < p->n && !c; k++) {
    bool done = false;
    if (rule_shape_eq(&s->rec[part[k].i].shape, &s->rec[p->of[k].i].shape) &&
        st_values_equal(s, part[k], p->of[k]))
      c = st_prove(s, part[k], p->of[k], &done, err);
    if (!done) break;
  }
  s->ranks.wide = false;
  return c ? c : eg_rebuild(s->g, err);
}
