/* Equalities that the oracle is asked to prove for all sizes: constants as the terms that compute
 * them, and steps whose rule does not state its sizes in a form into which symbols can be put. */
#include <stdlib.h>
#include <string.h>

#include "synth/scope/sizes.h"
#include "rules/names.h"
#include "synth/scope/scope_int.h"

enum { MOST_CALLS = 120 };

typedef struct writing {
  scoping *z;
  iso_arena *a;
  const uint32_t *cut;
  uint32_t n_cut;
  const bool
      *shared; /* by root: both sides have it, so that it may be anything; NULL: looked into */
  const rule_term **made; /* by term: as it is written */
  rule_variable *var;
  uint32_t *var_of; /* roots */
  uint32_t n_vars, cap_vars, n_calls;
  bool *used, *shape; /* by the left's symbols: they stand there, and in a shape */
  bool fine;
} writing;

static const rule_term *written(writing *w, const rule_term *t);

static const rule_term *refuse(writing *w, const char *why) {
  w->z->wrong = why;
  w->fine = false;
  return NULL;
}

static void use(const writing *w, const rule_term *t, bool *used) {
  const size_t n = w->z->s->graph[LEFT]->n_symbols;
  for (size_t i = 0; i < n && t->kind == RULE_NAME; i++)
    used[i] |= strcmp(w->z->symbol[LEFT][i].name, t->u.s) == 0;
  for (uint32_t k = 0; k < t->n; k++) use(w, t->child[k], used);
}

static const rule_term *size_of(writing *w, const size_sum *x) {
  if (!size_is_polynomial(&w->z->space, x)) return refuse(w, "a size of it is no polynomial");
  const rule_term *t = size_term(&w->z->space, x);
  if (t) use(w, t, w->used);
  return t;
}

/* The dtype of a term that a captured node is equal to. */
static bool dtype_of(const scoping *z, uint32_t t, rule_dtype *out) {
  const synth_graph *const *g = z->s->graph;
  const size_t n_left = g[LEFT]->n_nodes, n_right = g[RIGHT]->n_nodes;
  const uint32_t root = scope_root(z, t);
  for (size_t i = 0; i < n_left + n_right; i++) {
    if (scope_root(z, (uint32_t)i) != root) continue;
    const synth_node *n = i < n_left ? &g[LEFT]->node[i] : &g[RIGHT]->node[i - n_left];
    if (n->n_outputs != 1) continue;
    return *out = n->dtype, true;
  }
  return false;
}

static const rule_term *variable(writing *w, uint32_t t) {
  const scope_dims *d = scope_dims_of(w->z, t);
  const uint32_t root = scope_root(w->z, t);
  rule_dtype dtype;
  for (uint32_t i = 0; i < w->n_vars; i++)
    if (w->var_of[i] == root) return rule_var(w->a, i);
  if (!d || !dtype_of(w->z, t, &dtype)) return refuse(w, "a tensor's shape is not known");
  if (w->n_vars == w->cap_vars) return refuse(w, "it is over too many tensors");
  const rule_term **dim = iso_arena_alloc(w->a, (d->rank + 1) * sizeof *dim);
  if (!dim) return NULL;
  const size_sum zero = {0};
  for (uint32_t k = 0; k < d->rank; k++) {
    if (!size_at_least(&w->z->space, &d->of[k], &zero, 1)) return refuse(w, "a size may be 0");
    if (!(dim[k] = size_of(w, &d->of[k]))) return NULL;
    use(w, dim[k], w->shape);
  }
  rule_variable *v = &w->var[w->n_vars];
  *v = (rule_variable){
      .name = iso_arena_printf(w->a, "tensor%u", w->n_vars), .n_dims = d->rank, .dim = dim};
  rule_variable_set_dtype(v, dtype);
  w->var_of[w->n_vars] = root;
  return v->name ? rule_var(w->a, w->n_vars++) : NULL;
}

static bool is_cut(const writing *w, uint32_t t) {
  const uint32_t root = scope_root(w->z, t);
  if (w->shared && w->shared[root]) return true;
  for (uint32_t i = 0; i < w->n_cut; i++)
    if (w->cut[i] != SCOPE_NONE && scope_root(w->z, w->z->of[w->cut[i]]) == root) return true;
  return false;
}

/* The one number that all elements of a constant are. */
static const rule_term *number_of(iso_arena *a, const rule_tensor *x) {
  enum { MOST_ELEMENTS = 1 << 16 };
  if (!x || x->numel == 0 || x->numel > MOST_ELEMENTS) return NULL;
  const double first = rule_tensor_get(x, 0);
  for (int64_t k = 0; k < x->numel; k++) {
    const double other = rule_tensor_get(x, k);
    if (memcmp(&first, &other, sizeof first) != 0) return NULL;
  }
  if (rule_dtype_is_int(x->dtype)) return rule_int(a, rule_tensor_get_int(x, 0));
  if (x->dtype == RULE_BOOL) return rule_bool(a, first > 0);
  return first - first == 0 ? rule_float(a, first) : NULL;
}

/* operator: how a constant is written. A leaf: any tensor, or the number that a constant is filled
 * with. */
static const rule_term *leaf(writing *w, uint32_t t) {
  state *s = w->z->s;
  const size_t n_left = s->graph[LEFT]->n_nodes;
  const int side = t >= n_left;
  const size_t i = t - (side ? n_left : 0);
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  if (n->kind == SYNTH_INPUT) return refuse(w, "it depends on an input's values");
  const bool constant = n->kind != SYNTH_PARAMETER && e.i != EG_NONE && s->rec[e.i].konst;
  const rule_term *x = constant && n->value ? number_of(w->a, n->value[0]) : NULL;
  const rule_term *dim[RULE_MAX_RANK], *arg[3] = {NULL, x, rule_dtype_term(w->a, n->dtype)}, *call;
  if (!x) return variable(w, t);
  for (uint32_t d = 0; d < n->shape.rank; d++) dim[d] = rule_int(w->a, n->shape.dim[d]);
  arg[0] = rule_list(w->a, dim, n->shape.rank);
  iso_error ignored;
  return rule_call(w->a, s->schemas, OP_FULL, arg, 3, &call, &ignored) ? NULL : call;
}

static const rule_term *term(writing *w, uint32_t t) {
  if (w->made[t]) return w->made[t];
  if (is_cut(w, t)) return w->made[t] = variable(w, t);
  if (!w->z->call[t]) return w->made[t] = leaf(w, t);
  if (!w->z->sized[t]) return refuse(w, "the sizes of an operator are not known");
  if (++w->n_calls > MOST_CALLS) return refuse(w, "it is too large to be proved at once");
  return w->made[t] = written(w, w->z->sized[t]);
}

static const rule_term *written(writing *w, const rule_term *t) {
  size_sum x;
  if (t->kind == RULE_VAR) return term(w, (uint32_t)t->u.i);
  if (scope_is_size(t))
    return scope_size(w->z, t, &x) ? size_of(w, &x) : refuse(w, "a size of it is not known");
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(w->a, (t->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < t->n; k++)
    if (!(child[k] = written(w, t->child[k]))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP ? rule_op(w->a, t->u.s, child, t->n) : rule_list(w->a, child, t->n);
}

/* A symbol that is in no shape of a variable: a tensor that is as long, as what it is a size of is.
 */
static bool measured(writing *w, size_t i) {
  const size_atom *x = &w->z->space.atom[w->z->symbol[LEFT][i].is.of[0].of[0]];
  const rule_term **dim = iso_arena_alloc(w->a, sizeof *dim);
  if (w->n_vars == w->cap_vars) return refuse(w, "it is over too many tensors") != NULL;
  rule_variable *v = &w->var[w->n_vars];
  *v = (rule_variable){
      .name = iso_arena_printf(w->a, "tensor%u", w->n_vars), .n_dims = 1, .dim = dim};
  rule_variable_set_dtype(v, RULE_F32);
  if (!dim || !v->name) return false;
  dim[0] = x->as;
  w->n_vars++;
  return true;
}

/* The symbols that it speaks of: sizes within their ranges. */
static bool declare(writing *w, rule *r) {
  const size_t n = w->z->s->graph[LEFT]->n_symbols;
  const rule_term **where = iso_arena_alloc(w->a, (2 * n + 1) * sizeof *where);
  if (!where) return false;
  for (size_t i = 0; i < n; i++) {
    const size_atom *x = &w->z->space.atom[w->z->symbol[LEFT][i].is.of[0].of[0]];
    if (!w->used[i]) continue;
    if (x->min < 1) return refuse(w, "a size may be 0") != NULL;
    if (!w->shape[i] && !measured(w, i)) return false;
    const rule_term *low[2] = {x->as, rule_int(w->a, x->min)},
                    *high[2] = {x->as, rule_int(w->a, x->max)};
    if (!(where[r->n_where++] = rule_expr(w->a, ">=", low, 2))) return false;
    if (x->max < INT64_MAX && !(where[r->n_where++] = rule_expr(w->a, "<=", high, 2))) return false;
  }
  r->where = where;
  r->n_vars = w->n_vars;
  return true;
}

static iso_code decide(writing *w, rule *r, bool *proved) {
  scoping *z = w->z;
  rule_verdict v = {0};
  rule_tensor **example = calloc(r->n_vars + 1, sizeof *example);
  iso_code c = example && rule_share(w->a, r) ? ISO_OK : scope_no_memory(z);
  z->asked = true;
  if (!c) c = z->s->oracle->decide(z->s->oracle->ctx, r, example, &v, z->err);
  free(example);
  *proved = !c && v.status == RULE_PROVED && !(v.rests_on & SCOPE_RESTS);
  if (!c && !*proved) {
    const char *text = rule_status_name(v.status);
    z->wrong = iso_arena_printf(&z->s->res->arena, "for all sizes it is %s%s%s", text,
                                v.reason[0] ? ": " : "", v.reason);
    if (!z->wrong) return scope_no_memory(z);
  }
  return c;
}

/* A term with a number for a symbol. */
static const rule_term *at_number(iso_arena *a, const rule_term *t, const char *name, int64_t x) {
  if (t->kind == RULE_NAME && strcmp(t->u.s, name) == 0) return rule_int(a, x);
  if (t->kind != RULE_OP && t->kind != RULE_LIST && t->kind != RULE_EXPR) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < t->n; k++)
    if (!(child[k] = at_number(a, t->child[k], name, x))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP     ? rule_op(a, t->u.s, child, t->n)
         : t->kind == RULE_LIST ? rule_list(a, child, t->n)
                                : rule_expr(a, t->u.s, child, t->n);
}

/* `t`, computed at the symbol's largest value, and of that the first places along each dimension
 * that the symbol is. operator: how the first places are written. */
static const rule_term *first_places(writing *w, const rule_term *t, const scope_table *of) {
  const size_t n = w->z->s->graph[LEFT]->n_symbols;
  const rule_term *symbol = w->z->space.atom[of->atom].as;
  for (size_t i = 0; i < n; i++)
    if (w->shape[i] || (w->used[i] && strcmp(w->z->symbol[LEFT][i].name, symbol->u.s) != 0))
      return refuse(w, "it depends on several symbols");
  t = at_number(w->a, t, symbol->u.s, of->most);
  for (uint32_t d = 0; t && d < of->rank; d++) {
    const rule_term *arg[5] = {t, rule_int(w->a, d), rule_int(w->a, 0), symbol, rule_int(w->a, 1)};
    iso_error ignored;
    if (of->along[d] && rule_call(w->a, w->z->s->schemas, OP_SLICE_TENSOR, arg, 5, &t, &ignored))
      return NULL;
  }
  return t;
}

/* One question, with the terms of `w` for variables: whether a is b; or, where a table is given,
 * whether a is the first places of what it is at the largest size. */
static iso_code ask(writing *w, uint32_t a, uint32_t b, const scope_table *table, bool *proved) {
  enum { MOST_VARIABLES = 32 };
  scoping *z = w->z;
  iso_arena arena;
  iso_arena_init(&arena);
  rule_variable var[MOST_VARIABLES];
  uint32_t var_of[MOST_VARIABLES];
  const size_t n = z->s->graph[LEFT]->n_symbols + 1;
  rule r = {.name = "sizes", .var = var};
  w->a = &arena;
  w->var = var;
  w->var_of = var_of;
  w->cap_vars = MOST_VARIABLES;
  w->fine = true;
  w->used = iso_arena_alloc(&arena, n);
  w->shape = iso_arena_alloc(&arena, n);
  w->made = iso_arena_alloc(&arena, z->n_terms * sizeof *w->made);
  iso_code c = w->used && w->shape && w->made ? ISO_OK : scope_no_memory(z);
  if (!c) r.lhs = term(w, a);
  if (!c && r.lhs) r.rhs = table ? first_places(w, r.lhs, table) : term(w, b);
  if (!c && w->fine && !(r.lhs && r.rhs && declare(w, &r)) && w->fine) c = scope_no_memory(z);
  if (!c && w->fine) c = decide(w, &r, proved);
  iso_arena_fini(&arena);
  return c;
}

/* Marks the roots of a term and of what is below it. `seen`: terms that were looked at. */
static void reach(const scoping *z, const rule_term *t, bool *mark, bool *seen) {
  if (t->kind == RULE_VAR) {
    const uint32_t x = (uint32_t)t->u.i;
    if (seen[x]) return;
    seen[x] = mark[scope_root(z, x)] = true;
    if (z->call[x]) reach(z, z->call[x], mark, seen);
  }
  for (uint32_t k = 0; k < t->n; k++) reach(z, t->child[k], mark, seen);
}

iso_code scope_prove(scoping *z, uint32_t a, uint32_t b, const uint32_t *cut, uint32_t n_cut,
                     bool *proved) {
  bool *both = calloc(3 * z->n_terms + 1, 1), *other = both + z->n_terms;
  const rule_term *top[2] = {rule_var(&z->s->arena, a), rule_var(&z->s->arena, b)};
  *proved = false;
  if (!both || !top[0] || !top[1]) {
    free(both);
    return scope_no_memory(z);
  }
  reach(z, top[0], both, other + z->n_terms);
  memset(other + z->n_terms, 0, z->n_terms);
  reach(z, top[1], other, other + z->n_terms);
  bool some = false;
  for (size_t i = 0; i < z->n_terms; i++) some |= both[i] = both[i] && other[i];
  writing w = {.z = z, .cut = cut, .n_cut = n_cut, .shared = both};
  iso_code c = some ? ask(&w, a, b, NULL, proved) : ISO_OK;
  z->shared = *proved;
  w = (writing){.z = z, .cut = cut, .n_cut = n_cut};
  z->asked = *proved;
  if (!c && !*proved) c = ask(&w, a, b, NULL, proved);
  free(both);
  return c;
}

iso_code scope_prove_places(scoping *z, uint32_t t, const scope_table *table, bool *proved) {
  writing w = {.z = z};
  *proved = false;
  return ask(&w, t, t, table, proved);
}
