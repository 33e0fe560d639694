/* Values of e-nodes on every draw, computed from their children's classes.
 *
 * Values are kept per e-node and looked up per class (the oldest valued member stands for the
 * class), so that after two constants were related both sides go on with one of the two values. The
 * values of large parameters come and go: dropped ones are computed again on demand. */
#include "synth/constants/constants.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/run_int.h"
#include "synth/leaves/leaves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- evaluation ---- */

typedef struct call_builder {
  const rule_term *term;
  eg_node dep[MAX_CHILDREN]; /* RULE_VAR i stands for this valued e-node */
  uint32_t n;
} call_builder;

/* The argument of class `c`; a constant's is the member that stood there, if that has a value: in
 * captured dtypes the others may have another one. */
static const rule_term *build_arg(state *s, call_builder *b, eg_class c, eg_node as, iso_arena *a) {
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++) {
    const rule_term *lit = st_literal(s, m[i]);
    if (lit) return lit;
  }
  for (size_t i = 0; i < n; i++)
    if (st_is_list(s, m[i])) {
      const size_t k = eg_node_arity(s->g, m[i]);
      const eg_node list = m[i];
      const rule_term **child = iso_arena_alloc(a, (k + 1) * sizeof *child);
      if (!child) return NULL;
      for (size_t j = 0; j < k; j++)
        child[j] = build_arg(s, b, eg_node_child(s->g, list, j),
                             (eg_node){eg_node_original(s->g, list, j).i}, a);
      return rule_list(a, child, k);
    }
  const eg_node rep =
      s->rec[as.i].valued && s->rec[as.i].cval && s->rec[as.i].tensor ? as : st_rep(s, c);
  if (rep.i == EG_NONE || b->n == MAX_CHILDREN) return NULL;
  b->dep[b->n] = rep;
  return rule_var(a, b->n++);
}

static iso_code store(state *s, eg_node e, rule_tensor **out, size_t n, size_t draw, bool last,
                      iso_error *err) {
  rec *r = &s->rec[e.i];
  if (!r->val) {
    r->val = calloc(s->n_draws * (n ? n : 1), sizeof *r->val);
    if (!r->val) return nomem(err);
    r->n_out = n;
  }
  if (n != r->n_out) return iso_fail(err, ISO_INTERNAL, "%zu results, %zu before", n, r->n_out);
  for (size_t k = 0; k < n; k++) r->val[draw * n + k] = rule_tensor_ref(out[k]);
  if (last) {
    r->valued = true;
    if (n) r->shape = r->val[0]->shape;
  }
  return ISO_OK;
}

static void drop(rule_tensor **t, size_t n) {
  for (size_t i = 0; i < n; i++) rule_tensor_unref(t[i]);
}

/* Dtypes that are one where floats are real numbers, and are computed in float64. */
static bool same_numbers(rule_dtype a, rule_dtype b) {
  return (rule_dtype_is_float(a) && rule_dtype_is_float(b)) ||
         (rule_dtype_is_complex(a) && rule_dtype_is_complex(b));
}

/* drawn: on other values than the captured ones, on which the graph is as it says. */
static iso_code check_output(state *s, eg_node e, rule_tensor *const *out, size_t n_out, bool drawn,
                             iso_error *err) {
  for (int side = 0; side < 2; side++) {
    int32_t i = s->rec[e.i].node[side];
    if (i < 0) continue;
    const synth_node *n = &s->graph[side]->node[i];
    if (n->n_outputs != n_out)
      return iso_fail(err, ISO_FORMAT, "%zu outputs in the graph, its operator gives %zu",
                      n->n_outputs, n_out);
    const rule_tensor *t = out[0];
    if (n->n_outputs == 1 && !rule_shape_eq(&n->shape, &t->shape)) {
      char a[128], b[128];
      rule_shape_print(&n->shape, a, sizeof a);
      rule_shape_print(&t->shape, b, sizeof b);
      if (drawn)
        return iso_fail(err, ISO_FORMAT,
                        "its output is %s as captured and %s for other values of inputs: tensors "
                        "whose sizes depend on values are not compared",
                        a, b);
      return iso_fail(err, ISO_FORMAT, "output is %s in the graph, its operator gives %s", a, b);
    }
    if (n->n_outputs == 1 && n->dtype != t->dtype && !same_numbers(n->dtype, t->dtype))
      return iso_fail(err, ISO_FORMAT, "output is %s in the graph, its operator gives %s",
                      rule_dtype_name(n->dtype), rule_dtype_name(t->dtype));
  }
  return ISO_OK;
}

void st_forget(state *s, eg_node n) {
  rec *r = &s->rec[n.i];
  for (size_t k = 0; r->val && k < s->n_draws * r->n_out; k++) rule_tensor_unref(r->val[k]);
  for (size_t k = 0; r->cval && k < s->n_kept * r->n_out; k++) rule_tensor_unref(r->cval[k]);
  free(r->val);
  free(r->cval);
  r->val = r->cval = NULL;
  r->valued = false;
}

static bool all_within(const rule_tensor *t, double x, double by) {
  if (t->dtype != RULE_F64) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (!(fabs(rule_tensor_get(t, i) - x) <= by * fabs(x))) return false;
  return true;
}

/* Whether the call gives `narrow` of its operands as they were captured, so that nothing but how
 * these are read tells the two apart. 1 - 0.999 ** 4 in float32 has lost as many digits as cancel,
 * and the power is read with all of its digits. */
static iso_code follows_operands(state *s, eg_node e, call_builder *b, size_t set,
                                 const rule_tensor *narrow, bool *yes, iso_error *err) {
  rule_tensor *bind[MAX_CHILDREN], *out[MAX_OUT];
  bool read = false;
  size_t n = 0;
  iso_code c = ISO_OK;
  *yes = false;
  if (!st_op_rounds(st_operator(s, e))) return ISO_OK;
  uint32_t made = 0;
  for (; made < b->n && !c; made += !c) {
    const rec *q = &s->rec[b->dep[made].i];
    c = rule_tensor_to_float64(q->cval[set * q->n_out], &bind[made], err);
    const rule_tensor *v = c ? NULL : st_val(s, b->dep[made], set);
    read |= v && !rule_tensor_same(v, bind[made]);
  }
  if (!c && read) c = s->oracle->call(s->oracle->ctx, b->term, bind, true, out, MAX_OUT, &n, err);
  *yes = !c && n == 1 &&
         all_within(out[0], rule_tensor_get(narrow, 0), 2 * rule_dtype_unit(narrow->dtype, 1));
  drop(out, n);
  drop(bind, made);
  return c;
}

/* One number, filled in: 1/sqrt(12) held in float32 stands for the real number. Where the same call
 * in float64 gives it within 2 ulp of the captured dtype, that is the value meant (assumption
 * `literal`); so it is where operands that are read so move it further. */
static iso_code read_literal(state *s, eg_node e, call_builder *b, size_t set, rule_tensor **wide,
                             const rule_tensor *narrow, iso_error *err) {
  static const double FURTHER = 0x1p-6;
  if (!rule_dtype_is_float(narrow->dtype) || narrow->dtype == RULE_F64 || narrow->numel < 1 ||
      s->rec[e.i].multi)
    return ISO_OK;
  const double x = rule_tensor_get(narrow, 0), by = 2 * rule_dtype_unit(narrow->dtype, 1);
  for (int64_t i = 1; i < narrow->numel; i++)
    if (rule_tensor_get(narrow, i) != x) return ISO_OK;
  rule_tensor *bind[MAX_CHILDREN], *out[MAX_OUT];
  for (uint32_t i = 0; i < b->n; i++) bind[i] = st_val(s, b->dep[i], set);
  size_t n;
  iso_code c = s->oracle->call(s->oracle->ctx, b->term, bind, true, out, MAX_OUT, &n, err);
  if (c) return c;
  const bool one = n == 1 && out[0]->numel == narrow->numel;
  bool close = one && all_within(out[0], x, by);
  if (one && !close && narrow->dtype == RULE_F32 && all_within(out[0], x, FURTHER))
    c = follows_operands(s, e, b, set, narrow, &close, err);
  if (!c && close && rule_tensor_get(out[0], 0) != x) {
    char text[256];
    const double real = rule_tensor_get(out[0], 0);
    rule_tensor_unref(*wide);
    *wide = rule_tensor_ref(out[0]);
    snprintf(text, sizeof text, "%s holds %.9g and is read as %.17g", st_any_id(s, e), x, real);
    if (!st_assume(s, RULE_ASSUMES_LITERAL, e, e, NULL, text)) c = nomem(err);
  }
  drop(out, n);
  return c;
}

/* A constant's value on kept set `set`, and on the draws that have that set's. */
static iso_code constant_on(state *s, eg_node e, call_builder *b, size_t set, iso_error *err) {
  rule_tensor *bind[MAX_CHILDREN], *out[MAX_OUT], *wide[MAX_OUT];
  for (uint32_t i = 0; i < b->n; i++) {
    const rec *q = &s->rec[b->dep[i].i];
    bind[i] = q->cval[set * q->n_out];
  }
  size_t n, n_wide = 0;
  iso_code c = s->oracle->call(s->oracle->ctx, b->term, bind, false, out, MAX_OUT, &n, err);
  if (c) return c;
  rec *r = &s->rec[e.i];
  if (!r->cval) {
    r->cval = calloc(s->n_kept * (n ? n : 1), sizeof *r->cval);
    r->n_out = n;
  }
  if (!r->cval || n != r->n_out) {
    drop(out, n);
    return r->cval ? iso_fail(err, ISO_INTERNAL, "%zu results, %zu before", n, r->n_out)
                   : nomem(err);
  }
  if (n) memcpy(r->cval + set * n, out, n * sizeof *out);
  while (n_wide < n && !c && !(c = rule_tensor_to_float64(out[n_wide], &wide[n_wide], err)))
    n_wide++;
  if (!c) c = check_output(s, e, out, n, false, err);
  if (!c && n == 1) c = read_literal(s, e, b, set, &wide[0], out[0], err);
  for (size_t d = 0; d < s->n_draws && !c; d++)
    if (st_kept_set(s, d) == set) c = store(s, e, wide, n, d, set == 0, err);
  drop(wide, n_wide);
  return c;
}

/* The first set goes last: then the node has all its values. */
static iso_code eval_constant(state *s, eg_node e, call_builder *b, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t set = s->n_kept; set-- > 0 && !c;) c = constant_on(s, e, b, set, err);
  return c;
}

/* ---- values that come and go ---- The parameters of a real model in float64, on every draw, are
 * gigabytes. Values that depend on parameters alone are computed on demand, a draw at a time, and
 * dropped in that order: each is a function of the seed and of the captured values, and can be
 * computed again. */

enum { LARGE = 1 << 17, HELD_BYTES = 1 << 28 };

bool st_large(const rule_shape *shape) {
  int64_t n = 1;
  for (uint32_t d = 0; d < shape->rank; d++)
    if (__builtin_mul_overflow(n, shape->dim[d], &n)) return true;
  return n >= LARGE;
}

bool st_spare(const state *s, eg_node n) {
  const rec *r = &s->rec[n.i];
  return r->param && r->valued && !r->multi && r->n_out == 1 && st_large(&r->shape);
}

eg_node st_home(const state *s, eg_node n) {
  while (s->rec[n.i].from != EG_NONE) n.i = s->rec[n.i].from;
  return n;
}

rule_dtype st_dtype(const state *s, eg_node n) {
  if (s->rec[n.i].typed) return s->rec[n.i].dtype;
  n = st_home(s, n);
  return st_spare(s, n) ? RULE_F64 : s->rec[n.i].val[0]->dtype;
}

int64_t st_numel(const state *s, eg_node n) {
  n = st_home(s, n);
  const rec *r = &s->rec[n.i];
  if (!st_spare(s, n)) return r->val[0]->numel;
  int64_t all = 1;
  for (uint32_t d = 0; d < r->shape.rank; d++) all *= r->shape.dim[d];
  return all;
}

iso_code st_lost(const st_values *v, iso_error *err) {
  if (err) *err = v->lost_why;
  return v->lost;
}

static bool hold(state *s, eg_node n, size_t draw) {
  if (!iso_grow(s->values.held, s->values.cap_held, s->values.n_held + 1)) return false;
  s->values.held[s->values.n_held++] = (held){n, draw};
  s->values.held_bytes += (size_t)s->rec[n.i].val[draw]->numel * sizeof(double);
  return true;
}

void st_trim(state *s) {
  while (!s->values.making && s->values.held_bytes > HELD_BYTES &&
         s->values.first_held < s->values.n_held) {
    const held h = s->values.held[s->values.first_held++];
    rule_tensor **t = &s->rec[h.node.i].val[h.draw];
    s->values.held_bytes -= (size_t)(*t)->numel * sizeof(double);
    rule_tensor_unref(*t);
    *t = NULL;
  }
  if (s->values.first_held == s->values.n_held) s->values.first_held = s->values.n_held = 0;
}

static iso_code evaluate_draw(state *s, eg_node e, const call_builder *b, size_t d,
                              rule_tensor **out, size_t *n_out, iso_error *err);
static iso_code build_call(state *s, eg_node e, call_builder *b, iso_arena *scratch,
                           iso_error *err);
static iso_code value_children(state *s, eg_node e, iso_error *err);

iso_code st_call_again(state *s, eg_node e, size_t d, rule_tensor **out, size_t *n,
                       iso_error *err) {
  iso_arena scratch;
  iso_arena_init(&scratch);
  call_builder *b = malloc(sizeof *b);
  iso_code c = b ? value_children(s, e, err) : nomem(err);
  if (!c) c = build_call(s, e, b, &scratch, err);
  if (!c) c = evaluate_draw(s, e, b, d, out, n, err);
  iso_arena_fini(&scratch);
  free(b);
  return c;
}

static iso_code call_again(state *s, eg_node e, size_t d, rule_tensor **out, iso_error *err) {
  rule_tensor *all[MAX_OUT];
  size_t n = 0;
  iso_code c = st_call_again(s, e, d, all, &n, err);
  if (!c &&
      (n != 1 || all[0]->dtype != RULE_F64 || !rule_shape_eq(&all[0]->shape, &s->rec[e.i].shape))) {
    drop(all, n);
    c = iso_fail(err, ISO_INTERNAL, "\"%s\" gives another tensor when it is made again",
                 st_any_id(s, e));
  }
  if (!c) *out = all[0];
  return c;
}

rule_tensor *st_val(state *s, eg_node n, size_t draw) {
  enum { DEEPEST = 1000 };
  n = st_home(s, n);
  if (!st_spare(s, n)) return s->rec[n.i].val[draw * s->rec[n.i].n_out];
  if (draw < s->n_sets || s->rec[n.i].lonely) draw = 0;
  if (s->rec[n.i].val[draw]) return s->rec[n.i].val[draw];
  if (s->values.lost) return NULL;
  rule_tensor *made = NULL;
  s->values.making++;
  if (s->values.making > DEEPEST)
    s->values.lost =
        iso_fail(&s->values.lost_why, ISO_INTERNAL, "\"%s\" is made of itself", st_any_id(s, n));
  else if (s->rec[n.i].leaf) s->values.lost = st_draw_atom(s, n, draw, &made, &s->values.lost_why);
  else s->values.lost = call_again(s, n, draw, &made, &s->values.lost_why);
  s->values.making--;
  if (s->values.lost) return NULL;
  s->rec[n.i].val[draw] = made;
  if (!hold(s, n, draw)) s->values.lost = nomem(&s->values.lost_why);
  return s->values.lost ? NULL : made;
}

/* On all draws. */
static bool is_zero(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  for (size_t d = 0; d < s->n_draws; d++)
    for (int64_t i = 0; i < r->val[d]->numel; i++)
      if (rule_tensor_get(r->val[d], i) != 0) return false;
  return true;
}

/* getitem projects the stored results of its argument. */
static iso_code eval_getitem(state *s, eg_node e, iso_error *err) {
  eg_class from = eg_node_child(s->g, e, 0);
  const eg_node *m;
  size_t cnt = eg_class_nodes(s->g, eg_node_child(s->g, e, 1), &m);
  int64_t k = -1;
  for (size_t i = 0; i < cnt; i++)
    if (st_literal(s, m[i]) && st_literal(s, m[i])->kind == RULE_INT) k = st_literal(s, m[i])->u.i;
  eg_node src = st_rep(s, from);
  if (src.i == EG_NONE || k < 0 || (size_t)k >= s->rec[src.i].n_out)
    return iso_fail(err, ISO_FORMAT, "there is no output %lld", (long long)k);
  const rec *f = &s->rec[src.i];
  iso_code c = ISO_OK;
  if (f->cval) {
    rec *r = &s->rec[e.i];
    if (!(r->cval = calloc(s->n_kept, sizeof *r->cval))) return nomem(err);
    for (size_t set = 0; set < s->n_kept; set++)
      r->cval[set] = rule_tensor_ref(f->cval[set * f->n_out + (size_t)k]);
  }
  for (size_t d = 0; d < s->n_draws && !c; d++)
    c = store(s, e, &f->val[d * f->n_out + (size_t)k], 1, d, d + 1 == s->n_draws, err);
  if (!c && f->cancels && s->rec[e.i].tensor && !st_spare(s, e))
    s->rec[e.i].cancels = is_zero(s, e);
  if (f->n_out == 1 || strcmp(st_operator(s, src), OP_DIST_ALL_REDUCE) == 0)
    s->rec[e.i].terms = f->terms; /* each of several results is all of it */
  else if (strcmp(st_operator(s, src), OP_DIST_REDUCE_SCATTER) == 0)
    s->rec[e.i].terms = f->terms / (double)f->n_out; /* each is a part, all of them are all of it */
  s->rec[e.i].rests = f->rests;
  return c;
}

/* Auxiliary terms: arguments first, also those in lists. */
static iso_code value_children(state *s, eg_node e, iso_error *err) {
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_class ch = eg_node_child(s->g, e, k);
    if (st_rep(s, ch).i != EG_NONE) continue;
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, ch, &m);
    ISO_CHECK(n > 0);
    if (st_literal(s, m[0])) continue;
    iso_code c = st_is_list(s, m[0])   ? value_children(s, m[0], err)
                 : s->rec[m[0].i].leaf ? ISO_OK
                                       : st_value(s, m[0], err);
    if (c) return c;
  }
  return ISO_OK;
}

static iso_code build_call(state *s, eg_node e, call_builder *b, iso_arena *scratch,
                           iso_error *err) {
  b->n = 0;
  const size_t n = eg_node_arity(s->g, e);
  const rule_term **child = iso_arena_alloc(scratch, (n + 1) * sizeof *child);
  if (!child) return nomem(err);
  for (size_t i = 0; i < n; i++)
    if (!(child[i] = build_arg(s, b, eg_node_child(s->g, e, i),
                               (eg_node){eg_node_original(s->g, e, i).i}, scratch)))
      return scratch->failed ? nomem(err)
                             : iso_fail(err, ISO_INTERNAL, "argument %zu has no value", i);
  return (b->term = rule_op(scratch, st_operator(s, e), child, n)) ? ISO_OK : nomem(err);
}

/* Which of a look-up's arguments is a large table that is not there, of which few rows are read;
 * then `ids` is the other one. -1: none. */
static int64_t absent_table(state *s, const call_builder *b, size_t d, rule_tensor **ids) {
  const rule_term *t = b->term;
  if (strcmp(t->u.s, OP_EMBEDDING) != 0 || t->n < 2 || t->child[0]->kind != RULE_VAR ||
      t->child[1]->kind != RULE_VAR)
    return -1;
  const eg_node table = st_home(s, b->dep[t->child[0]->u.i]);
  const rec *r = &s->rec[table.i];
  if (t->child[0]->u.i == t->child[1]->u.i || !st_spare(s, table) || !r->leaf || r->shape.rank != 2)
    return -1;
  if (r->val[d < s->n_sets || r->lonely ? 0 : d] ||
      !(*ids = st_val(s, b->dep[t->child[1]->u.i], d)))
    return -1;
  if (!rule_dtype_is_int((*ids)->dtype) || (*ids)->numel > r->shape.dim[0] / 4) return -1;
  for (int64_t i = 0; i < (*ids)->numel; i++) {
    const int64_t at = rule_tensor_get_int(*ids, i);
    if (at < 0 || at >= r->shape.dim[0]) return -1; /* libtorch is to say so */
  }
  return t->child[0]->u.i;
}

typedef struct absent { /* a table without a value of its own, and the rows that are asked for */
  int64_t table;
  rule_tensor *ids;
} absent;

/* The look-up in a table of just those rows. */
static iso_code look_up(state *s, const call_builder *b, size_t d, absent from, rule_tensor **out,
                        size_t *n_out, iso_error *err) {
  const int64_t table = from.table;
  rule_tensor *ids = from.ids;
  const eg_node e = st_home(s, b->dep[table]);
  rule_tensor *bind[MAX_CHILDREN], *rows = NULL, *place = NULL;
  iso_code c = st_draw_rows(s, e, s->rec[e.i].lonely ? 0 : d, ids, &rows, err);
  if (!c) c = rule_tensor_new(ids->dtype, &ids->shape, &place, err);
  for (int64_t i = 0; i < ids->numel && !c; i++) rule_tensor_set(place, i, (double)i);
  for (uint32_t i = 0; i < b->n && !c; i++) {
    bind[i] = i == table ? rows : i == b->term->child[1]->u.i ? place : st_val(s, b->dep[i], d);
    if (!bind[i]) c = st_lost(&s->values, err);
  }
  if (!c) c = s->oracle->call(s->oracle->ctx, b->term, bind, true, out, MAX_OUT, n_out, err);
  rule_tensor_unref(rows);
  rule_tensor_unref(place);
  return c;
}

/* The matrix of a product that is not there. */
static int64_t absent_matrix(const state *s, const call_builder *b, size_t d) {
  const int64_t i = st_matrix_of(b->term);
  if (i < 0) return -1;
  const eg_node e = st_home(s, b->dep[i]);
  const rec *r = &s->rec[e.i];
  const bool there = st_spare(s, e) && r->val[d < s->n_sets || r->lonely ? 0 : d];
  return st_spare(s, e) && r->leaf && !there && st_is_matrix(&r->shape) ? i : -1;
}

static iso_code evaluate_draw(state *s, eg_node e, const call_builder *b, size_t d,
                              rule_tensor **out, size_t *n_out, iso_error *err) {
  rule_tensor *bind[MAX_CHILDREN], *ids = NULL;
  const int64_t table = absent_table(s, b, d, &ids), matrix = absent_matrix(s, b, d);
  for (uint32_t i = 0; i < b->n && table < 0; i++) {
    bind[i] = i == matrix ? NULL : st_val(s, b->dep[i], d);
    if (!bind[i] && i != matrix) return st_lost(&s->values, err);
  }
  iso_code c;
  if (table >= 0) c = look_up(s, b, d, (absent){table, ids}, out, n_out, err);
  else if (matrix >= 0) {
    const eg_node from = st_home(s, b->dep[matrix]);
    c = st_call_with_drawn(s, b->term, bind, from, s->rec[from.i].lonely ? 0 : d, &out[0], err);
    *n_out = !c;
  } else c = s->oracle->call(s->oracle->ctx, b->term, bind, true, out, MAX_OUT, n_out, err);
  if (c) return c;
  if (table < 0 && matrix < 0) c = st_order_first(s, b->term, bind, out, *n_out, err);
  if (!c) c = check_output(s, e, out, *n_out, s->n_sets && d >= s->n_sets, err);
  if (c) drop(out, *n_out);
  return c;
}

/* A small part of a large parameter, and a view of it, would keep all of it. */
static iso_code keep_apart(rule_tensor **t, iso_error *err) {
  if (st_large(&(*t)->shape)) return ISO_OK;
  rule_tensor *copy;
  iso_code c = rule_tensor_new((*t)->dtype, &(*t)->shape, &copy, err);
  if (c) return c;
  memcpy(copy->data, (*t)->data, (size_t)(*t)->numel * rule_dtype_size((*t)->dtype));
  rule_tensor_unref(*t);
  *t = copy;
  return ISO_OK;
}

static iso_code cancels_on(state *s, const call_builder *b, size_t d, const rule_tensor *out,
                           st_sum *as, iso_error *err) {
  rule_tensor *bind[MAX_CHILDREN];
  *as = (st_sum){false, 0};
  if (!st_adds(b->term)) return ISO_OK;
  for (uint32_t i = 0; i < b->n; i++)
    if (!(bind[i] = st_val(s, b->dep[i], d))) return st_lost(&s->values, err);
  return st_cancels(s, b->term, bind, b->n, out, as, err);
}

static iso_code make_zero(state *s, eg_node e, iso_error *err) {
  rec *r = &s->rec[e.i];
  iso_code c = ISO_OK;
  for (size_t d = 0; d < s->n_draws && !c; d++) {
    rule_tensor *zero;
    if ((c = rule_tensor_new(r->val[d]->dtype, &r->shape, &zero, err))) break;
    rule_tensor_unref(r->val[d]);
    r->val[d] = zero;
  }
  r->cancels = !c;
  return c;
}

/* A node made of such a sum, and 0 itself: another layout of it. One of several results is asked
 * for each of them by itself. */
static bool is_of_cancelled(const state *s, eg_node e, const call_builder *b) {
  bool any = false;
  for (uint32_t i = 0; i < b->n; i++) any |= s->rec[b->dep[i].i].cancels;
  return any && (s->rec[e.i].multi || is_zero(s, e));
}

static bool rests(const state *s, eg_node e, const call_builder *b) {
  bool any = s->rec[e.i].cancels;
  for (uint32_t i = 0; i < b->n; i++) any |= s->rec[b->dep[i].i].rests;
  return any;
}

iso_code st_value(state *s, eg_node e, iso_error *err) {
  if (s->rec[e.i].valued) return ISO_OK;
  ISO_CHECK(!s->rec[e.i].leaf);
  if (s->unrun && !s->rec[e.i].konst)
    return iso_fail(err, ISO_INTERNAL, "\"%s\" was about to be run", st_any_id(s, e));
  iso_code early = value_children(s, e, err);
  if (early) return early;
  if (rule_is_getitem(st_operator(s, e))) return eval_getitem(s, e, err);
  call_builder *b = malloc(sizeof *b);
  if (!b) return nomem(err);
  iso_arena scratch;
  iso_arena_init(&scratch);
  iso_code c = build_call(s, e, b, &scratch, err);
  bool cancels = !s->rec[e.i].konst && !s->rec[e.i].multi;
  st_sum as = {false, 0};
  if (!c && s->rec[e.i].konst) {
    c = eval_constant(s, e, b, err);
    if (!c && s->constants.wide) c = st_widen(s, e, NULL, err);
  } else
    for (size_t d = 0; d < s->n_draws && !c; d++) {
      rule_tensor *out[MAX_OUT];
      size_t n_out;
      if ((c = evaluate_draw(s, e, b, d, out, &n_out, err))) break;
      const bool param =
          s->rec[e.i].param && !s->rec[e.i].multi && n_out == 1 && out[0]->dtype == RULE_F64;
      const bool later =
          param && st_large(&out[0]->shape); /* the other draws when they are asked for */
      if (param) c = keep_apart(&out[0], err);
      if (!c) c = store(s, e, out, n_out, d, later || d + 1 == s->n_draws, err);
      cancels &= !param && n_out == 1;
      if (!c && cancels) c = cancels_on(s, b, d, out[0], &as, err);
      cancels &= as.cancels;
      drop(out, n_out);
      if (!c && later && !hold(s, e, 0)) c = nomem(err);
      st_trim(s);
      if (later) break;
      s->rec[e.i].param &= param;
    }
  if (!c && cancels) c = make_zero(s, e, err);
  else if (!c && (s->rec[e.i].multi || (s->rec[e.i].tensor && !st_spare(s, e))))
    s->rec[e.i].cancels = is_of_cancelled(s, e, b);
  if (!c && s->rec[e.i].cancels)
    s->rec[e.i].terms = as.terms + st_terms_of(s, b->term, b->dep, b->n);
  s->rec[e.i].rests = rests(s, e, b);
  iso_arena_fini(&scratch);
  free(b);
  return c;
}
