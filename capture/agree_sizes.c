/* Two captures at other sizes than they were captured at: which sizes of the right go with those of
 * the left, and inputs of these sizes.
 *
 * An input that has its captured sizes keeps its values. Of others, values that are an affine
 * function of their place (positions, all one number) go on as they do, and those that depend on
 * the difference of the last two places alone (triangles, bands) do, too. All other values are
 * drawn from the numbers that were captured. Integers that may mean a size, and for which no domain
 * says what else they may be, cannot be made: then nothing is looked at. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agree_int.h"

static iso_code no_memory(const agree *a) { return iso_fail(a->err, ISO_NOMEM, "out of memory"); }

/* ---- which inputs are one ---- */

typedef struct partner {
  int64_t of; /* the left input; -1: none */
  bool turned;
  uint32_t at[RULE_MAX_RANK]; /* where turned: the left's dimension for each */
} partner;

static partner partner_of(const agree *a, size_t j) {
  partner p = {.of = -1};
  for (size_t i = 0; i < a->n; i++) {
    if (a->in[i].side == RIGHT || !agree_equal(a, i, j)) continue;
    const bool same = strcmp(agree_node(a, i)->name, agree_node(a, j)->name) == 0;
    if (p.of < 0 || same) p.of = (int64_t)i;
    if (same) return p;
  }
  for (size_t i = 0; i < a->n && p.of < 0; i++)
    if (a->in[i].side == LEFT && agree_rearranged(a, i, j, p.at)) {
      p.of = (int64_t)i;
      p.turned = true;
    }
  return p;
}

/* ---- sizes of the right ---- */

typedef struct relating {
  const cap_graph *left, *right;
  const int64_t *value; /* of the left's symbols */
  int64_t *out;         /* of the right's */
  bool *known;
} relating;

static const char *written(const cap_node *n, uint32_t d) {
  return n->size != NULL ? n->size[d] : NULL;
}

/* Dimension `d` of the left's input is dimension `e` of the right's. */
static iso_code relate_dimension(const agree *a, const relating *r, const cap_node *x, uint32_t d,
                                 const cap_node *y, uint32_t e) {
  const char *l = written(x, d), *s = written(y, e);
  const cap_scope scope = {.symbol = r->left->symbol, .n = r->left->n_symbols, .value = r->value};
  int64_t size = x->output[0].shape.dim[d];
  if (l != NULL) {
    const iso_code c = cap_evaluate(l, false, &scope, &size, a->err);
    if (c) return c;
  }
  for (size_t k = 0; s != NULL && k < r->right->n_symbols; k++)
    if (strcmp(r->right->symbol[k].name, s) == 0 && !r->known[k]) {
      r->out[k] = size;
      r->known[k] = true;
      return ISO_OK;
    }
  const cap_scope other = {.symbol = r->right->symbol, .n = r->right->n_symbols, .value = r->out};
  int64_t have = y->output[0].shape.dim[e];
  const iso_code c = s != NULL ? cap_evaluate(s, false, &other, &have, a->err) : ISO_OK;
  if (c || have == size) return c;
  return iso_fail(a->err, ISO_USAGE,
                  "%.60s of one capture is %" PRId64 " long where %.60s of the other is %" PRId64,
                  x->name, size, y->name, have);
}

static iso_code relate_input(const agree *a, const relating *r, size_t j) {
  const partner p = partner_of(a, j);
  if (p.of < 0) return ISO_OK;
  const cap_node *x = agree_node(a, (size_t)p.of), *y = agree_node(a, j);
  const rule_shape *xs = &x->output[0].shape, *ys = &y->output[0].shape;
  uint32_t d = 0, e = 0;
  for (; p.turned && e < ys->rank; e++) {
    const iso_code c = relate_dimension(a, r, x, p.at[e], y, e);
    if (c) return c;
  }
  /* Dimensions that are 1 and stay 1 may be missing on either side. */
  while (!p.turned && (d < xs->rank || e < ys->rank)) {
    const bool skip_x = d < xs->rank && xs->dim[d] == 1 && !written(x, d);
    const bool skip_y = e < ys->rank && ys->dim[e] == 1 && !written(y, e);
    iso_code c = ISO_OK;
    if (skip_x && !(e < ys->rank && ys->dim[e] == 1)) d++;
    else if (skip_y && !(d < xs->rank && xs->dim[d] == 1)) e++;
    else if (d == xs->rank || e == ys->rank) break;
    else c = relate_dimension(a, r, x, d++, y, e++);
    if (c) return c;
  }
  return ISO_OK;
}

static iso_code open_agree(agree *a, const cap_graph *left, const cap_graph *right,
                           cap_agreement *out, iso_error *err) {
  *out = (cap_agreement){0};
  *a = (agree){.graph = {(cap_graph *)(uintptr_t)left, (cap_graph *)(uintptr_t)right}, /* read */
               .out = out,
               .err = err,
               .sets = left->n_sets < right->n_sets ? left->n_sets : right->n_sets};
  a->in = calloc(left->n_nodes + right->n_nodes + 1, sizeof *a->in);
  if (!a->in) return no_memory(a);
  iso_code c = agree_collect(a, LEFT);
  return c ? c : agree_collect(a, RIGHT);
}

iso_code cap_relate_sizes(const cap_graph *left, const cap_graph *right, const int64_t *value,
                          int64_t *out, iso_error *err) {
  agree a;
  cap_agreement agreed;
  relating r = {left, right, value, out, calloc(right->n_symbols + 1, sizeof(bool))};
  iso_code c = open_agree(&a, left, right, &agreed, err);
  if (!c && !r.known) c = no_memory(&a);
  for (size_t k = 0; k < right->n_symbols && !c; k++) {
    out[k] = right->symbol[k].value;
    for (size_t i = 0; i < left->n_symbols; i++)
      if (strcmp(left->symbol[i].name, right->symbol[k].name) == 0) out[k] = value[i];
  }
  for (size_t j = 0; j < a.n && !c; j++)
    if (a.in[j].side == RIGHT) c = relate_input(&a, &r, j);
  free(r.known);
  agree_fini(&a);
  return c;
}

/* ---- values ---- */

static void places(const rule_shape *s, int64_t index, int64_t *at) {
  for (uint32_t d = s->rank; d-- > 0; index /= s->dim[d]) at[d] = index % s->dim[d];
}

/* x[i, j, ...] = c + a i + b j + ...: in `by` the a, b, ...; false: it is not. */
static bool affine(const rule_tensor *t, double *first, double *by) {
  int64_t at[RULE_MAX_RANK], stride = 1;
  if (t->numel == 0) return false;
  *first = rule_tensor_get(t, 0);
  for (uint32_t d = t->shape.rank; d-- > 0; stride *= t->shape.dim[d])
    by[d] = t->shape.dim[d] > 1 ? rule_tensor_get(t, stride) - *first : 0;
  for (int64_t k = 0; k < t->numel; k++) {
    double x = *first;
    places(&t->shape, k, at);
    for (uint32_t d = 0; d < t->shape.rank; d++) x += by[d] * (double)at[d];
    if (x != rule_tensor_get(t, k)) return false;
  }
  return true;
}

/* The value at the last two places i, j is that of `t` at another pair with the same j - i. */
static double on_diagonal(const rule_tensor *t, int64_t i, int64_t j) {
  const int64_t n = t->shape.dim[t->shape.rank - 2], m = t->shape.dim[t->shape.rank - 1];
  int64_t by = j - i;
  by = by > m - 1 ? m - 1 : by < 1 - n ? 1 - n : by;
  return rule_tensor_get(t, by >= 0 ? by : -by * m);
}

static bool banded(const rule_tensor *t) {
  const uint32_t rank = t->shape.rank;
  int64_t at[RULE_MAX_RANK];
  if (rank < 2 || t->numel == 0 || t->shape.dim[rank - 1] < 2 || t->shape.dim[rank - 2] < 2)
    return false;
  for (int64_t k = 0; k < t->numel; k++) {
    places(&t->shape, k, at);
    if (rule_tensor_get(t, k) != on_diagonal(t, at[rank - 2], at[rank - 1])) return false;
  }
  return true;
}

/* The tensor at another shape. */
static void extend(const rule_tensor *t, iso_rng *rng, rule_tensor *out) {
  double first, by[RULE_MAX_RANK];
  int64_t at[RULE_MAX_RANK];
  const uint32_t rank = out->shape.rank;
  const bool line = affine(t, &first, by), band = !line && banded(t);
  for (int64_t k = 0; k < out->numel; k++) {
    double x = 0;
    places(&out->shape, k, at);
    if (line) {
      x = first;
      for (uint32_t d = 0; d < rank; d++) x += by[d] * (double)at[d];
    } else if (band) x = on_diagonal(t, at[rank - 2], at[rank - 1]);
    else if (t->numel) x = rule_tensor_get(t, (int64_t)iso_rng_below(rng, (uint64_t)t->numel));
    rule_tensor_set(out, k, x);
  }
}

/* Whether an integer of the tensor may be a size that changes: it is one, or the last place in it.
 * Ones and twos are too common to say so. */
static bool means_size(const cap_graph *to, const rule_tensor *t) {
  for (size_t i = 0; i < to->n_symbols; i++) {
    const cap_symbol *s = &to->symbol[i];
    for (int64_t k = 0; k < t->numel && s->now != s->value && s->value > 3; k++) {
      const double x = rule_tensor_get(t, k);
      if (x == (double)s->value || x == (double)s->value - 1) return true;
    }
  }
  return false;
}

static bool constant(const rule_tensor *t) {
  for (int64_t k = 1; k < t->numel; k++)
    if (rule_tensor_get(t, k) != rule_tensor_get(t, 0)) return false;
  return true;
}

static bool descends(const rule_tensor *t) {
  double first, by[RULE_MAX_RANK];
  if (!affine(t, &first, by)) return false;
  for (uint32_t d = 0; d < t->shape.rank; d++)
    if (by[d] < 0) return true;
  return false;
}

/* The value of input `x` of a graph as captured, for input `n` of the same graph `g` at other
 * sizes. Owns: the caller unrefs. */
static iso_code move_value(agree *a, const cap_graph *g, const cap_node *n, rule_tensor *x,
                           iso_rng *rng, rule_tensor **out) {
  const rule_shape *shape = &n->output[0].shape;
  const bool same = rule_shape_eq(shape, &x->shape);
  const bool whole = rule_dtype_is_int(x->dtype);
  if (!n->domain && whole && ((same || constant(x)) ? means_size(g, x) : descends(x)))
    return iso_fail(a->err, ISO_USAGE,
                    "the numbers in %.60s may mean a size; a domain would say what they may be",
                    n->name);
  if (same && (!n->domain || rule_domain_admits(n->domain, x, NULL, 0))) {
    *out = rule_tensor_ref(x);
    return ISO_OK;
  }
  iso_code c = rule_tensor_new(n->output[0].dtype, shape, out, a->err);
  if (c) return c;
  extend(x, rng, *out);
  if (!n->domain || rule_domain_admits(n->domain, *out, NULL, 0)) return ISO_OK;
  double low = INFINITY, high = -INFINITY;
  for (int64_t k = 0; k < x->numel; k++) {
    low = fmin(low, rule_tensor_get(x, k));
    high = fmax(high, rule_tensor_get(x, k));
  }
  if (rule_domain_fit(n->domain, low, high, 0, rng, *out)) return ISO_OK;
  rule_tensor_unref(*out);
  *out = NULL;
  return iso_fail(a->err, ISO_USAGE, "no value of %.60s was found that is inside its domain",
                  n->name);
}

/* `x` in the shape and dtype of `n`, its dimensions turned. Owns: the caller unrefs. */
static iso_code turn(agree *a, const partner *p, rule_tensor *x, const cap_node *n,
                     rule_tensor **out) {
  const rule_shape *shape = &n->output[0].shape;
  int64_t at[RULE_MAX_RANK], from;
  if (!p->turned) return agree_as_input(a, x, n, out);
  iso_code c = rule_tensor_new(n->output[0].dtype, shape, out, a->err);
  for (int64_t k = 0; !c && k < (*out)->numel; k++) {
    int64_t stride = 1, own[RULE_MAX_RANK] = {0};
    places(shape, k, at);
    for (uint32_t d = 0; d < shape->rank; d++) own[p->at[d]] = at[d];
    from = 0;
    for (uint32_t d = x->shape.rank; d-- > 0; stride *= x->shape.dim[d]) from += own[d] * stride;
    rule_tensor_set(*out, k, rule_tensor_get(x, from));
  }
  return c;
}

static int64_t named(const cap_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == CAP_INPUT && strcmp(g->node[i].name, name) == 0) return (int64_t)i;
  return -1;
}

/* One input of `to`, in one set; its value lands in `all` of its side. */
static iso_code move_one(agree *a, cap_graph *const to[2], rule_tensor **const all[2], size_t set,
                         size_t i, uint64_t seed) {
  const int side = a->in[i].side;
  const int64_t at = named(to[side], agree_node(a, i)->name);
  if (at < 0) return ISO_OK;
  const cap_node *n = &to[side]->node[at];
  rule_tensor **slot = &all[side][set * to[side]->n_nodes + (size_t)at];
  const partner p = side == RIGHT ? partner_of(a, i) : (partner){.of = -1};
  iso_rng rng = iso_rng_new(seed ^ UINT64_C(0x73697a6573), i * a->sets + set);
  if (p.of < 0) {
    const bool same = rule_shape_eq(&agree_value(a, i, set)->shape, &n->output[0].shape);
    if (side == RIGHT && !same)
      return iso_fail(a->err, ISO_USAGE, "%.60s is no one input of the other capture", n->name);
    return move_value(a, to[side], n, agree_value(a, i, set), &rng, slot);
  }
  const int64_t from = named(to[LEFT], agree_node(a, (size_t)p.of)->name);
  rule_tensor *x = from >= 0 ? all[LEFT][set * to[LEFT]->n_nodes + (size_t)from] : NULL;
  if (!x) return iso_fail(a->err, ISO_USAGE, "%.60s has no counterpart", n->name);
  int64_t numel;
  iso_code c = rule_shape_numel(&n->output[0].shape, &numel, a->err);
  if (!c && numel != x->numel)
    c = iso_fail(a->err, ISO_USAGE, "%.60s is of other sizes in the other capture", n->name);
  return c ? c : turn(a, &p, x, n, slot);
}

/* Inputs that no output needs have values, too. */
static iso_code fill_rest(agree *a, const cap_graph *from, cap_graph *to, rule_tensor **all) {
  for (size_t k = 0; k < a->sets * to->n_nodes; k++) {
    const cap_node *n = &to->node[k % to->n_nodes];
    if (n->kind != CAP_INPUT || all[k]) continue;
    const int64_t at = named(from, n->name);
    rule_tensor *x = at >= 0 ? from->input[(k / to->n_nodes) * from->n_nodes + (size_t)at] : NULL;
    iso_code c = ISO_OK;
    if (x && rule_shape_eq(&x->shape, &n->output[0].shape)) all[k] = rule_tensor_ref(x);
    else c = rule_tensor_new(n->output[0].dtype, &n->output[0].shape, &all[k], a->err);
    if (c) return c;
  }
  return ISO_OK;
}

iso_code cap_move_inputs(const cap_graph *const from[2], cap_graph *const to[2], uint64_t seed,
                         iso_error *err) {
  agree a;
  cap_agreement agreed;
  rule_tensor **all[2] = {NULL, NULL};
  iso_code c = open_agree(&a, from[LEFT], from[RIGHT], &agreed, err);
  for (int side = 0; side < 2 && !c; side++)
    if (!(all[side] = calloc(a.sets * to[side]->n_nodes + 1, sizeof *all[side]))) c = no_memory(&a);
  for (size_t set = 0; set < a.sets && !c; set++)
    for (size_t i = 0; i < a.n && !c; i++) c = move_one(&a, to, all, set, i, seed);
  for (int side = 0; side < 2 && !c; side++) c = fill_rest(&a, from[side], to[side], all[side]);
  for (int side = 0; side < 2; side++) {
    if (!c) cap_replace_inputs(to[side], all[side], a.sets);
    for (size_t k = 0; c && all[side] && k < a.sets * to[side]->n_nodes; k++)
      rule_tensor_unref(all[side][k]);
    if (c) free(all[side]);
  }
  agree_fini(&a);
  return c;
}
