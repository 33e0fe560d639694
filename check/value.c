/* What the checker computes: relations of leaves and constants by value, and examples for the
 * rules' variables.
 *
 * Leaves are compared as they were captured, bit for bit. Constants are computed in captured
 * dtypes, one value for each class of terms known to be equal: where two tables differ by 2 ulp,
 * both sides go on with one of them, so that what is computed from them can be compared in turn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MAX_CALL = 1024, MAX_OUT = 64, MAX_CONSTANT_DEPTH = 2000, MAX_SCALE = 1 << 28 };

static const double output_tol =
    1e-6; /* by slice; tables that differ in their last places are one value by then */

static void drop(chk_values *v) {
  for (size_t i = 0; i < v->n; i++) rule_tensor_unref(v->v[i]);
  free(v->v);
  *v = (chk_values){0};
}

static iso_code keep(chk_state *k, rule_tensor *const *t, size_t n, chk_values *out) {
  rule_tensor **v = calloc(n + 1, sizeof *v);
  if (!v) return chk_nomem(k);
  for (size_t i = 0; i < n; i++) v[i] = rule_tensor_ref(t[i]);
  *out = (chk_values){v, n};
  return ISO_OK;
}

void chk_free_values(chk_state *k) {
  for (size_t i = 0; i < k->n_terms; i++) {
    if (k->konst) drop(&k->konst[i]);
    if (k->real) drop(&k->real[i]);
  }
  free(k->konst);
  free(k->real);
  free(k->open);
  free(k->open_on);
  k->konst = k->real = NULL;
  k->open = k->open_on = NULL;
}

static iso_code keep_constant(chk_state *k, uint32_t leaf) {
  rule_tensor *v = chk_captured(k, leaf, k->set);
  return keep(k, &v, 1, &k->konst[leaf]);
}

iso_code chk_set_constant(chk_state *k, uint32_t term, rule_tensor *v) {
  drop(&k->konst[term]);
  return keep(k, &v, 1, &k->konst[term]);
}

/* The certificate's own calls spell what captures compute in other ways: some times as much, and
 * not without end. */
static double most_elements(const chk_state *k) {
  enum { LEAST = 1 << 26, TIMES = 32 };
  double sum = 0;
  for (size_t i = 0; i < k->n_terms; i++)
    for (size_t o = 0; k->term[i].node && o < k->term[i].node->n_outputs; o++) {
      const rule_shape *s = &k->term[i].node->output[o].shape;
      double n = 1;
      for (uint32_t d = 0; d < s->rank; d++) n *= (double)s->dim[d];
      sum += n;
    }
  return fmax(LEAST, TIMES * sum);
}

iso_code chk_begin_values(chk_state *k) {
  iso_code c = ISO_OK;
  chk_free_values(k);
  free(k->up);
  k->own = 0;
  k->most = most_elements(k);
  k->konst = calloc(k->n_terms + 1, sizeof *k->konst);
  k->real = calloc(k->n_terms + 1, sizeof *k->real);
  k->up = malloc((k->n_terms + 1) * sizeof *k->up);
  k->open = calloc(k->n_terms + 1, sizeof *k->open);
  k->open_on = calloc(k->n_terms + 1, sizeof *k->open_on);
  k->n_asked = 0;
  if (!k->konst || !k->real || !k->up || !k->open || !k->open_on) return chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms && !c; i++) {
    const cap_node *n = k->term[i].node;
    k->up[i] = i;
    if (!n || n->kind == CAP_OP || n->kind == CAP_INPUT) continue;
    if (!k->unpinned[i] && (n->kind != CAP_PARAMETER || !rule_dtype_is_float(n->value->dtype)))
      c = keep_constant(k, i);
  }
  for (size_t i = 0; i < k->n_fixed && !c; i++)
    if (!k->konst[k->fixed[i]].v) c = keep_constant(k, k->fixed[i]);
  return c;
}

/* ---- one call ---- */

typedef struct local {
  const rule_term *call; /* RULE_VAR i is var[i] */
  uint32_t var[MAX_CALL];
  uint32_t n;
} local;

static const rule_term *localise(local *l, const rule_term *t, iso_arena *a) {
  if (t->kind == RULE_VAR) {
    if (l->n == MAX_CALL) return NULL;
    l->var[l->n] = (uint32_t)t->u.i;
    return rule_var(a, l->n++);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = localise(l, t->child[i], a))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

/* Sizes that no capture has: a changed certificate must not make the machine run out of memory. */
static bool oversized(const rule_term *t) {
  double product = 1;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *x = t->child[i];
    if (x->kind == RULE_INT && t->kind == RULE_LIST) product *= fmax(1, fabs((double)x->u.i));
    if (x->kind == RULE_INT && t->kind == RULE_OP && !rule_is_overload(t->u.s, OP_SLICE) &&
        fabs((double)x->u.i) > MAX_SCALE)
      return true;
    if (x->kind == RULE_LIST && oversized(x)) return true;
  }
  return product > MAX_SCALE;
}

/* Term `t` on the given values of its arguments. Returns: `out` empty where it cannot be run
 * (settled). */
static iso_code call(chk_state *k, uint32_t t, const local *l, rule_tensor *const *bind,
                     bool float64, chk_values *out) {
  rule_tensor *result[MAX_OUT];
  size_t n = 0;
  iso_error why = {0};
  *out = (chk_values){0};
  const char *name = k->term[t].node ? k->term[t].node->id : l->call->u.s;
  if (!k->oracle) return chk_settle(k, CHK_REFUSED, "nothing here can run \"%s\"", name);
  if (!k->term[t].node && oversized(l->call))
    return chk_settle(k, CHK_REFUSED, "\"%s\" has sizes past all bounds", name);
  iso_code c = k->oracle->call(k->oracle->ctx, l->call, bind, float64, result, MAX_OUT, &n, &why);
  if (c == ISO_NOMEM) return chk_nomem(k);
  if (c == ISO_DEVICE) return iso_fail(k->err, c, "\"%s\" cannot be run: %s", name, why.msg);
  if (c) return chk_settle(k, CHK_REFUSED, "\"%s\" cannot be run: %s", name, why.msg);
  c = keep(k, result, n, out);
  for (size_t i = 0; i < n; i++) {
    if (!k->term[t].node) k->own += (double)result[i]->numel;
    rule_tensor_unref(result[i]);
  }
  return c || k->own <= k->most ? c
                                : chk_settle(k, CHK_REFUSED,
                                             "\"%s\" and other calls of the certificate's own make "
                                             "more than any capture needs",
                                             name);
}

static bool unspecified(const rule_term *t) { return rule_operator_of(t->u.s)->unspecified; }

static bool is_getitem(const rule_term *t) {
  return rule_is_getitem(t->u.s) && t->n == 2 && t->child[0]->kind == RULE_VAR &&
         t->child[1]->kind == RULE_INT;
}

/* Output `t->child[1]` of `from`. */
static iso_code project(chk_state *k, const rule_term *t, const chk_values *from, chk_values *out) {
  const int64_t i = t->child[1]->u.i;
  *out = (chk_values){0};
  if (i < 0 || (size_t)i >= from->n)
    return chk_settle(k, CHK_REFUSED, "there is no output %lld", (long long)i);
  return keep(k, &from->v[i], 1, out);
}

/* ---- constants ---- */

/* Operators that move, select or make elements and round nothing. What ends in "." or "_" is a
 * beginning. */
bool chk_rounds_nothing(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return (o->moves && !o->accumulates) || o->choice == RULE_CHOICE_COMPARE ||
         o->choice == RULE_CHOICE_LOGIC || rule_is_overload(op, OP_NEG) ||
         rule_is_overload(op, OP_COMPLEX);
}

static bool is_cast(const char *op) { return rule_operator_of(op)->cast; }

/* Computed among integers and truth values alone, or a cast that changes no number. `bind`: what it
 * was computed from. */
static bool exact_here(const local *l, rule_tensor *const *bind, const chk_values *out) {
  bool whole = true;
  for (uint32_t i = 0; i < l->n; i++)
    whole &= rule_dtype_is_int(bind[i]->dtype) || bind[i]->dtype == RULE_BOOL;
  for (size_t i = 0; i < out->n; i++)
    whole &= rule_dtype_is_int(out->v[i]->dtype) || out->v[i]->dtype == RULE_BOOL;
  if (whole) return true;
  if (!is_cast(l->call->u.s) || l->n < 1 || out->n != 1 || bind[0]->numel != out->v[0]->numel ||
      !rule_dtype_is_float(out->v[0]->dtype))
    return false;
  for (int64_t i = 0; i < out->v[0]->numel; i++) {
    const double x = rule_tensor_get(bind[0], i), y = rule_tensor_get(out->v[0], i);
    if (!(x == y) && !(isnan(x) && isnan(y))) return false;
  }
  return true;
}

static iso_code run_constant(chk_state *k, uint32_t t, int depth, chk_values *out, uint32_t *on) {
  const rule_term *term = k->term[t].call;
  rule_tensor *bind[MAX_CALL];
  const chk_values *arg;
  iso_arena a;
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  *out = (chk_values){0};
  *on = CHK_NONE;
  iso_arena_init(&a);
  if (!c && !(l->call = localise(l, term, &a))) c = chk_nomem(k);
  for (uint32_t i = 0; !c && i < l->n; i++) {
    c = chk_constant(k, l->var[i], depth + 1, &arg, on);
    if (c || !arg) goto done;
    if (is_getitem(term)) {
      c = project(k, term, arg, out);
      goto done;
    }
    if (arg->n < 1) {
      c = chk_settle(k, CHK_REFUSED, "an operator without outputs is an argument");
      goto done;
    }
    bind[i] = arg->v[0];
  }
  if (!c && unspecified(term))
    c = chk_settle(k, CHK_REFUSED, "a constant is memory that is left unspecified");
  else if (!c) c = call(k, t, l, bind, false, out);
  if (!c && out->v && !k->term[t].node && !chk_rounds_nothing(term->u.s) &&
      !exact_here(l, bind, out)) {
    drop(out);
    c = chk_settle(k, CHK_REFUSED,
                   "a constant is computed by \"%s\", which rounds, and which no capture computes",
                   term->u.s);
  }
done:
  iso_arena_fini(&a);
  free(l);
  return c;
}

/* Arguments at the same place: equal by the steps so far, or constants of one value bit for bit. */
static iso_code same_constant_argument(chk_state *k, const rule_term *a, const rule_term *b,
                                       int depth, bool *same) {
  iso_code c = ISO_OK;
  *same = false;
  if (a->kind == RULE_VAR && b->kind == RULE_VAR &&
      chk_root(k, (uint32_t)a->u.i) != chk_root(k, (uint32_t)b->u.i)) {
    const chk_values *x, *y = NULL;
    uint32_t on;
    if (!(c = chk_constant(k, (uint32_t)a->u.i, depth + 1, &x, &on)) && x)
      c = chk_constant(k, (uint32_t)b->u.i, depth + 1, &y, &on);
    if (c || chk_settled(k) || !y || x->n != y->n) return c;
    *same = true;
    for (size_t i = 0; i < x->n; i++) *same &= rule_tensor_same(x->v[i], y->v[i]);
    return ISO_OK;
  }
  if (a->kind != RULE_LIST || b->kind != RULE_LIST || a->n != b->n) {
    *same = chk_same_argument(k, a, b);
    return ISO_OK;
  }
  *same = true;
  for (uint32_t i = 0; i < a->n && *same && !c; i++)
    c = same_constant_argument(k, a->child[i], b->child[i], depth, same);
  return c;
}

/* The captured call that is the certificate's own call `t`. */
static iso_code captured_alike(chk_state *k, uint32_t t, int depth, uint32_t *out) {
  const rule_term *a = k->term[t].call;
  *out = t;
  for (uint32_t i = 0; i < k->n_terms && k->term[i].node && *out == t && !chk_settled(k); i++) {
    const rule_term *b = k->term[i].call;
    bool alike = b && b->n == a->n && strcmp(a->u.s, b->u.s) == 0;
    for (uint32_t n = 0; alike && n < a->n; n++) {
      const iso_code c = same_constant_argument(k, a->child[n], b->child[n], depth, &alike);
      if (c) return c;
    }
    if (alike) *out = i;
  }
  return ISO_OK;
}

iso_code chk_captured_alike(chk_state *k, uint32_t t, uint32_t *out) {
  k->n_asked++;
  return captured_alike(k, t, 0, out);
}

/* What captures compute is rounded as they compute it. A call of the certificate's own must round
 * nothing, else x + 1e10 - 1e10 would be whatever is left of x. */
iso_code chk_constant(chk_state *k, uint32_t t, int depth, const chk_values **out, uint32_t *on) {
  const uint32_t r = chk_root(k, t);
  *on = CHK_NONE;
  *out = k->konst[r].v ? &k->konst[r] : NULL;
  if (*out) return ISO_OK;
  if (!k->term[t].call) {
    *on = t;
    return ISO_OK;
  }
  if (depth > MAX_CONSTANT_DEPTH)
    return chk_settle(k, CHK_REFUSED, "a constant is computed too deep");
  if (depth == 0) k->n_asked++;
  if (k->open[t] == k->n_asked) {
    *on = k->open_on[t];
    return ISO_OK;
  }
  const uint32_t asked = t;
  chk_values v;
  iso_code c = ISO_OK;
  if (!k->term[t].node && !chk_rounds_nothing(k->term[t].call->u.s))
    c = captured_alike(k, t, depth, &t);
  if (c || chk_settled(k)) return c;
  c = run_constant(k, t, depth, &v, on);
  if (c) return c;
  if (!v.v) {
    k->open[asked] = k->n_asked;
    k->open_on[asked] = *on;
    return ISO_OK;
  }
  k->konst[r] = v;
  *out = &k->konst[r];
  return ISO_OK;
}

static double epsilon(rule_dtype d) {
  return d == RULE_F64 ? 0x1p-52 : d == RULE_F32 ? 0x1p-23 : 0;
}

static bool varied(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get(t, i) != rule_tensor_get(t, 0)) return true;
  return false;
}

static bool same_bytes(const rule_tensor *a, const rule_tensor *b) {
  return a->numel == 0 ||
         memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) == 0;
}

/* NULL if the two are one constant: equal, or tables of one dtype that were computed twice, to 2
 * ulp. `signs`: 0 and -0 are two. */
static const char *constants_differ(const rule_tensor *a, const rule_tensor *b, bool signs) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return "they have different shapes";
  const bool fa = rule_dtype_is_float(a->dtype);
  if (fa != rule_dtype_is_float(b->dtype) || (!fa && a->dtype != b->dtype) ||
      rule_dtype_is_complex(a->dtype))
    return "they have different dtypes";
  if (!fa) return same_bytes(a, b) ? NULL : "their values differ";
  const double eps = a->dtype == b->dtype && varied(a) ? 2 * epsilon(a->dtype) : 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (signs && signbit(x) != signbit(y)) return "their zeros have different signs";
    if (x == y) continue;
    if (!isfinite(x) || !isfinite(y) || !(fabs(x - y) <= eps * fmax(fabs(x), fabs(y))))
      return "their values differ";
  }
  return NULL;
}

static const char *shown(const chk_state *k, uint32_t t) {
  const chk_term *x = &k->term[t];
  return !x->node ? x->call->u.s : x->node->name ? x->node->name : x->node->id;
}

static const char *side_of(const chk_state *k, uint32_t t) {
  return !k->term[t].node ? "a term's" : k->term[t].side == LEFT ? "left's" : "right's";
}

static iso_code depends(chk_state *k, size_t step, uint32_t on) {
  if (chk_settled(k)) return ISO_OK;
  return chk_settle(k, CHK_REFUSED, "step %zu: it depends on %s %s, which is no constant", step,
                    side_of(k, on), shown(k, on));
}

/* Whether something reads signs of zeros. */
static bool signs_count(const chk_state *k) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < k->graph[side]->n_nodes; i++) {
      const rule_term *call = k->graph[side]->node[i].call;
      if (call && rule_reads_zero_sign(call)) return true;
    }
  return false;
}

/* Whether something can tell 0 from -0 in a leaf. */
static iso_code zero_sign_matters(chk_state *k, uint32_t leaf, bool *matters) {
  const cap_graph *g = k->graph[k->term[leaf].side];
  bool *carries = calloc(g->n_nodes + 1, 1);
  if (!carries) return chk_nomem(k);
  carries[k->term[leaf].index] = true;
  *matters = false;
  for (size_t i = 0; i < g->n_nodes && !*matters; i++)
    *matters = rule_zero_sign_matters(g->node[i].call, carries, i);
  free(carries);
  return ISO_OK;
}

/* Whether two leaves are equal but for signs of zeros, at which nothing looks. */
static iso_code same_but_zeros(chk_state *k, uint32_t a, uint32_t b, const rule_tensor *x,
                               const rule_tensor *y, bool *same) {
  bool matters[2] = {false, false};
  *same = k->term[b].node != NULL && rule_tensor_same_numbers(x, y);
  iso_code c = *same ? zero_sign_matters(k, a, &matters[0]) : ISO_OK;
  if (!c && *same) c = zero_sign_matters(k, b, &matters[1]);
  *same = *same && !matters[0] && !matters[1];
  return c;
}

iso_code chk_same_constants(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const chk_values *x, *y;
  uint32_t on;
  iso_code c = chk_constant(k, a, 0, &x, &on);
  if (c || !x) return c ? c : depends(k, step, on);
  c = chk_constant(k, b, 0, &y, &on);
  if (c || !y) return c ? c : depends(k, step, on);
  if (x->n != 1 || y->n != 1)
    return chk_settle(k, CHK_REFUSED, "step %zu: an operator with several outputs has no value",
                      step);
  const char *why = constants_differ(x->v[0], y->v[0], signs_count(k));
  if (why)
    return chk_settle(k, CHK_REFUSED, "step %zu: %s %s and %s %s: %s", step, side_of(k, a),
                      shown(k, a), side_of(k, b), shown(k, b), why);
  return chk_assume(k, RULE_ASSUMES_VALUE,
                    iso_arena_printf(k->arena, "%s %s and %s %s have the same captured value",
                                     side_of(k, a), shown(k, a), side_of(k, b), shown(k, b)));
}

/* ---- leaves ---- */

static bool moves_elements(const char *op) { return rule_operator_of(op)->relates; }

/* A layout of leaves at what `leaf` gives for each of them. */
static iso_code layout(chk_state *k, uint32_t t, size_t step, int depth, chk_leaf_value leaf,
                       void *ctx, rule_tensor **out) {
  const chk_term *term = &k->term[t];
  *out = NULL;
  if (!term->call) return leaf(k, ctx, t, out);
  if (depth > CHK_LAYOUT_DEPTH || !moves_elements(term->call->u.s))
    return chk_settle(k, CHK_REFUSED, "step %zu: \"%s\" is no layout of leaves", step,
                      term->call->u.s);
  rule_tensor *bind[MAX_CALL] = {0};
  iso_arena a;
  chk_values v = {0};
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  uint32_t n = 0;
  iso_arena_init(&a);
  if (!c && !(l->call = localise(l, term->call, &a))) c = chk_nomem(k);
  for (; !c && n < l->n && !chk_settled(k); n++)
    c = layout(k, l->var[n], step, depth + 1, leaf, ctx, &bind[n]);
  if (!c && !chk_settled(k)) c = call(k, t, l, bind, false, &v);
  if (!c && v.n == 1) *out = rule_tensor_ref(v.v[0]);
  else if (!c) c = chk_settle(k, CHK_REFUSED, "step %zu: it has no value", step);
  for (uint32_t i = 0; i < n; i++) rule_tensor_unref(bind[i]);
  drop(&v);
  iso_arena_fini(&a);
  free(l);
  return c;
}

iso_code chk_layout(chk_state *k, uint32_t t, size_t step, chk_leaf_value leaf, void *ctx,
                    rule_tensor **out) {
  return layout(k, t, step, 0, leaf, ctx, out);
}

typedef struct leaves {
  bool input; /* inputs are related to inputs, all else to all else */
  size_t set, step;
} leaves;

static iso_code captured(chk_state *k, void *ctx, uint32_t leaf, rule_tensor **out) {
  const leaves *x = ctx;
  if ((k->term[leaf].node->kind == CAP_INPUT) != x->input)
    return chk_settle(k, CHK_REFUSED, "step %zu: an input and a parameter are two things", x->step);
  *out = rule_tensor_ref(chk_captured(k, leaf, x->set));
  return ISO_OK;
}

const char *chk_leaves_differ(const rule_tensor *a, const rule_tensor *b, bool inputs) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return "they have different shapes";
  if (a->dtype == b->dtype) return same_bytes(a, b) ? NULL : "their values differ";
  if (inputs || !rule_dtype_is_float(a->dtype) || !rule_dtype_is_float(b->dtype))
    return "they have different dtypes";
  for (int64_t i = 0; i < a->numel; i++) /* the same numbers, stored in two floating dtypes */
    if (!(rule_tensor_get(a, i) == rule_tensor_get(b, i))) return "their values differ";
  return NULL;
}

/* A term in the rule language over the captures' names. Terms share their arguments, so that as
 * text they may be long without end: past `room` calls it is cut. Returns: NULL when there is no
 * memory. */
const char *chk_spelled(chk_state *k, uint32_t id, int *room) {
  const chk_term *t = &k->term[id];
  if (t->node) return shown(k, id);
  if (--*room < 0) return "...";
  const char **name = calloc(id + 1, sizeof *name);
  bool fine = name != NULL;
  const rule_term *todo[256];
  size_t n = 0;
  todo[n++] = t->call;
  while (n && fine) {
    const rule_term *x = todo[--n];
    if (x->kind == RULE_VAR)
      fine = name[x->u.i] || (name[x->u.i] = chk_spelled(k, (uint32_t)x->u.i, room)) != NULL;
    for (uint32_t i = 0; i < x->n && fine; i++) {
      if (n == sizeof todo / sizeof *todo) { /* a list too long to be read */
        free(name);
        return "...";
      }
      todo[n++] = x->child[i];
    }
  }
  char *text = fine ? rule_term_print(t->call, k->schemas, name) : NULL;
  const char *kept = text ? iso_arena_strdup(k->arena, text) : NULL;
  free(text);
  free(name);
  return kept;
}

iso_code chk_same_leaves(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  if (k->term[a].call)
    return chk_settle(k, CHK_REFUSED, "step %zu: the first term is no leaf", step);
  leaves x = {.input = k->term[a].node->kind == CAP_INPUT, .set = k->set, .step = step};
  iso_code c = ISO_OK;
  if (x.input || k->set == 0) { /* all else is the same on each set */
    rule_tensor *v;
    c = chk_layout(k, b, step, captured, &x, &v);
    if (c || !v) return c;
    const char *why = chk_leaves_differ(chk_captured(k, a, x.set), v, x.input);
    bool same = false;
    if (why) c = same_but_zeros(k, a, b, chk_captured(k, a, x.set), v, &same);
    rule_tensor_unref(v);
    if (c) return c;
    if (why && !same)
      c = chk_settle(k, CHK_REFUSED, "step %zu: %s %s and %s %s: %s", step, side_of(k, a),
                     shown(k, a), side_of(k, b), shown(k, b), why);
  }
  if (c || chk_settled(k)) return c;
  const chk_values *v;
  uint32_t on;
  /* What is a layout of constants is one. */
  if (k->term[b].call && !k->konst[chk_root(k, a)].v) c = chk_constant(k, b, 0, &v, &on);
  if (c) return c;
  int room = 256;
  const char *what = chk_spelled(k, b, &room);
  if (!what) return chk_nomem(k);
  /* Ones and zeros are equal in any order, and to any other ones and zeros. */
  const rule_tensor *value = chk_captured(k, a, 0);
  const char *choice = value->numel > 1 && !varied(value) && !chk_namesakes(k, a, b)
                           ? ", which is one number everywhere"
                           : "";
  return chk_assume(k, RULE_ASSUMES_LEAF,
                    k->term[b].node
                        ? iso_arena_printf(k->arena, "%s %s is %s %s by value%s", side_of(k, a),
                                           shown(k, a), side_of(k, b), what, choice)
                        : iso_arena_printf(k->arena, "%s %s is %s by value%s", side_of(k, a),
                                           shown(k, a), what, choice));
}

iso_code chk_bounded(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const rule_term *t = k->term[b].call;
  bool inside;
  iso_code c = chk_stays_inside(k, a, b, &inside);
  if (c) return c;
  if (inside) return chk_assume(k, RULE_ASSUMES_RANGE, chk_domain_text(k, a));
  if (k->term[a].call || k->term[a].node->kind != CAP_INPUT ||
      !rule_dtype_is_int(k->term[a].node->value->dtype))
    return chk_settle(k, CHK_REFUSED, "step %zu: what is bounded is no input of integers", step);
  if (!t || strcmp(t->u.s, OP_CLAMP) != 0 || t->n != 3 || t->child[0]->kind != RULE_VAR ||
      t->child[0]->u.i != a || t->child[1]->kind != RULE_INT || t->child[2]->kind != RULE_INT)
    return chk_settle(k, CHK_REFUSED, "step %zu: it is not the input clamped to a range", step);
  bool covers;
  c = chk_covers_table(k, a, t->child[2]->u.i, &covers);
  if (c) return c;
  if (!covers || t->child[1]->u.i > 0)
    return chk_settle(k, CHK_REFUSED,
                      "step %zu: the range leaves out rows of a table that are not padding", step);
  for (size_t s = 0; s < k->graph[k->term[a].side]->n_sets; s++) {
    const rule_tensor *v = chk_captured(k, a, s);
    for (int64_t i = 0; i < v->numel; i++)
      if (rule_tensor_get_int(v, i) < t->child[1]->u.i ||
          rule_tensor_get_int(v, i) > t->child[2]->u.i)
        return chk_settle(k, CHK_REFUSED, "step %zu: %s %s has values outside of the range", step,
                          side_of(k, a), shown(k, a));
  }
  return chk_assume(k, RULE_ASSUMES_INPUT,
                    iso_arena_printf(k->arena, "%s %s stays within %lld and %lld", side_of(k, a),
                                     shown(k, a), (long long)t->child[1]->u.i,
                                     (long long)t->child[2]->u.i));
}

/* ---- running what the variables stand for, and the outputs ---- */

static void mark_below(const rule_term *t, bool *mark) {
  if (t->kind == RULE_VAR) mark[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_below(t->child[i], mark);
}

void chk_mark_below(chk_state *k, bool *need) {
  for (uint32_t i = (uint32_t)k->n_terms; i-- > 0;)
    if (need[i] && k->term[i].call && !k->konst[chk_root(k, i)].v)
      mark_below(k->term[i].call, need);
}

static iso_code widen(chk_state *k, uint32_t id, const chk_values *from) {
  rule_tensor **v = calloc(from->n + 1, sizeof *v);
  if (!v) return chk_nomem(k);
  k->real[id] = (chk_values){v, from->n};
  for (size_t i = 0; i < from->n; i++) {
    iso_code c = rule_tensor_to_float64(from->v[i], &v[i], k->err);
    if (c) return c;
  }
  return ISO_OK;
}

iso_code chk_run_term(chk_state *k, uint32_t id) {
  const chk_values *fixed = &k->konst[chk_root(k, id)];
  const rule_term *term = k->term[id].call;
  drop(&k->real[id]);
  if (fixed->v) return widen(k, id, fixed);
  if (!term) {
    rule_tensor *v = k->drawn && k->drawn[id] ? k->drawn[id] : chk_captured(k, id, k->set);
    return widen(k, id, &(chk_values){&v, 1});
  }
  rule_tensor *bind[MAX_CALL];
  iso_arena a;
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  iso_arena_init(&a);
  if (!c && !(l->call = localise(l, term, &a))) c = chk_nomem(k);
  for (uint32_t i = 0; !c && i < l->n; i++) {
    const chk_values *arg = &k->real[l->var[i]];
    if (arg->n < 1) c = chk_settle(k, CHK_REFUSED, "an operator without outputs is an argument");
    if (!c && chk_settled(k)) goto done;
    bind[i] = arg->v[0];
  }
  if (!c && is_getitem(term)) c = project(k, term, &k->real[l->var[0]], &k->real[id]);
  else if (!c) c = call(k, id, l, bind, true, &k->real[id]);
done:
  iso_arena_fini(&a);
  free(l);
  return c;
}

/* Memory that nothing wrote yet: `fill` everywhere. */
static iso_code fill_memory(chk_values *x, double fill, iso_error *err) {
  for (size_t i = 0; i < x->n; i++) {
    rule_tensor *t;
    iso_code c = rule_tensor_new(x->v[i]->dtype, &x->v[i]->shape, &t, err);
    if (c) return c;
    for (int64_t e = 0; e < t->numel; e++) rule_tensor_set(t, e, fill);
    rule_tensor_unref(x->v[i]);
    x->v[i] = t;
  }
  return ISO_OK;
}

static iso_code run_needed(chk_state *k, const bool *need, bool filled, bool *empty) {
  enum { FILL = 3 }; /* the first time it is what operators are run with: NaN */
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < k->n_terms && !c && !chk_settled(k); i++) {
    if (!need[i]) continue;
    c = chk_run_term(k, i);
    if (!k->term[i].call || !unspecified(k->term[i].call)) continue;
    *empty = true;
    if (!c && filled) c = fill_memory(&k->real[i], FILL, k->err);
  }
  return c;
}

static const rule_tensor *value_at(const chk_state *k, uint32_t t) {
  return k->real[t].n == 1 ? k->real[t].v[0] : NULL;
}

/* A chain of true steps joins what is one value: whatever was overlooked, outputs that differ where
 * they were captured are not equal. */
static iso_code outputs_agree(chk_state *k, rule_tensor *const *before) {
  for (size_t i = 0; i < k->n_outputs; i++) {
    const chk_output *o = &k->output[i];
    const rule_tensor *a = value_at(k, o->a), *b = value_at(k, o->b);
    if (!a || !b || a->numel != b->numel)
      return chk_settle(k, CHK_REFUSED, "outputs %s and %s have no one value each", o->left,
                        o->right);
    if (before && !k->oracle->compare(k->oracle->ctx, before[i], a, output_tol).equal)
      return chk_settle(k, CHK_REFUSED, "output %s depends on memory that is left unspecified",
                        o->left);
    const rule_diff d = k->oracle->compare(k->oracle->ctx, a, b, output_tol);
    if (!d.equal)
      return chk_settle(k, CHK_REFUSED,
                        "outputs %s and %s differ by %.3g (relative) on the captured inputs",
                        o->left, o->right, d.max_rel);
  }
  return ISO_OK;
}

iso_code chk_run(chk_state *k) {
  bool *need = calloc(k->n_terms + 1, 1), empty = false;
  rule_tensor **before = calloc(k->n_outputs + 1, sizeof *before);
  iso_code c = need && before ? ISO_OK : chk_nomem(k);
  for (size_t i = 0; i < k->n_vars && !c; i++)
    if (k->var[i] != CHK_NONE) need[k->var[i]] = true;
  for (size_t i = 0; i < k->n_outputs && !c; i++)
    need[k->output[i].a] = need[k->output[i].b] = true;
  if (!c) chk_mark_below(k, need);
  if (!c) c = run_needed(k, need, false, &empty);
  if (!c && !chk_settled(k)) c = outputs_agree(k, NULL);
  for (size_t i = 0; i < k->n_outputs && !c && !chk_settled(k) && empty; i++)
    before[i] = rule_tensor_ref(k->real[k->output[i].a].v[0]);
  if (!c && !chk_settled(k) && empty && !(c = run_needed(k, need, true, &empty)) && !chk_settled(k))
    c = outputs_agree(k, before);
  for (size_t i = 0; before && i < k->n_outputs; i++) rule_tensor_unref(before[i]);
  free(before);
  free(need);
  return c;
}
