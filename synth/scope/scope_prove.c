/* Equalities that the oracle is asked to prove for all sizes: constants as the terms that compute
 * them, and steps whose rule does not say what it holds for in a way that sizes can be put in. */
#include <stdlib.h>
#include <string.h>

#include "rules/sizes.h"
#include "synth/scope/scope_int.h"

enum { MOST_CALLS = 120 };

typedef struct writing {
  scoping *z;
  iso_arena *a;
  const uint32_t *cut;
  uint32_t n_cut;
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
  for (uint32_t k = 0; k < d->rank; k++) {
    if (!(dim[k] = size_of(w, &d->of[k]))) return NULL;
    use(w, dim[k], w->shape);
  }
  rule_variable *v = &w->var[w->n_vars];
  *v = (rule_variable){.name = iso_arena_printf(w->a, "tensor%u", w->n_vars),
                       .n_dims = d->rank,
                       .dim = dim};
  rule_variable_set_dtype(v, dtype);
  w->var_of[w->n_vars] = root;
  return v->name ? rule_var(w->a, w->n_vars++) : NULL;
}

static bool is_cut(const writing *w, uint32_t t) {
  const uint32_t root = scope_root(w->z, t);
  for (uint32_t i = 0; i < w->n_cut; i++)
    if (w->cut[i] != SCOPE_NONE && scope_root(w->z, w->z->of[w->cut[i]]) == root) return true;
  return false;
}

static const rule_term *term(writing *w, uint32_t t) {
  if (is_cut(w, t)) return variable(w, t);
  if (!w->z->call[t]) {
    const size_t n_left = w->z->s->graph[LEFT]->n_nodes;
    const int side = t >= n_left;
    if (w->z->s->graph[side]->node[t - (side ? n_left : 0)].kind == SYNTH_INPUT)
      return refuse(w, "it depends on an input's values");
    return variable(w, t);
  }
  if (!w->z->sized[t]) return refuse(w, "the sizes of an operator are not known");
  if (++w->n_calls > MOST_CALLS) return refuse(w, "it is too large to be proved at once");
  return written(w, w->z->sized[t]);
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

/* The symbols that it speaks of: integers within their ranges. */
static bool declare(writing *w, rule *r) {
  const size_t n = w->z->s->graph[LEFT]->n_symbols;
  rule_attribute *attr = iso_arena_alloc(w->a, (n + 1) * sizeof *attr);
  const rule_term **where = iso_arena_alloc(w->a, (2 * n + 1) * sizeof *where);
  if (!attr || !where) return false;
  for (size_t i = 0; i < n; i++) {
    const size_atom *x = &w->z->space.atom[w->z->symbol[LEFT][i].is.of[0].of[0]];
    if (!w->used[i]) continue;
    if (!w->shape[i]) attr[r->n_attrs++] = (rule_attribute){w->z->symbol[LEFT][i].name, 'i'};
    const rule_term *low[2] = {x->as, rule_int(w->a, x->min)},
                    *high[2] = {x->as, rule_int(w->a, x->max)};
    if (!(where[r->n_where++] = rule_expr(w->a, ">=", low, 2))) return false;
    if (x->max < INT64_MAX && !(where[r->n_where++] = rule_expr(w->a, "<=", high, 2))) return false;
  }
  r->attr = attr;
  r->where = where;
  return true;
}

static iso_code decide(writing *w, rule *r, bool *proved) {
  scoping *z = w->z;
  rule_verdict v = {0};
  rule_tensor **example = calloc(r->n_vars + 1, sizeof *example);
  iso_code c = example && rule_share(w->a, r) ? ISO_OK : scope_no_memory(z);
  if (!c) c = z->s->oracle->decide(z->s->oracle->ctx, r, example, &v, z->err);
  free(example);
  *proved = !c && v.status == RULE_PROVED && !(v.rests_on & RULE_RESTS_ON_NUMBERS);
  if (!c && !*proved) {
    const char *text = rule_status_name(v.status);
    z->wrong = iso_arena_printf(&z->s->res->arena, "for all sizes it is %s%s%s", text,
                                v.reason[0] ? ": " : "", v.reason);
    if (!z->wrong) return scope_no_memory(z);
  }
  return c;
}

iso_code scope_prove(scoping *z, uint32_t a, uint32_t b, const uint32_t *cut, uint32_t n_cut,
                  bool *proved) {
  enum { MOST_VARIABLES = 32 };
  iso_arena arena;
  iso_arena_init(&arena);
  rule_variable var[MOST_VARIABLES];
  uint32_t var_of[MOST_VARIABLES];
  writing w = {.z = z,
               .a = &arena,
               .cut = cut,
               .n_cut = n_cut,
               .var = var,
               .var_of = var_of,
               .cap_vars = MOST_VARIABLES,
               .fine = true};
  rule r = {.name = "sizes", .var = var};
  *proved = false;
  w.used = iso_arena_alloc(&arena, z->s->graph[LEFT]->n_symbols + 1);
  w.shape = iso_arena_alloc(&arena, z->s->graph[LEFT]->n_symbols + 1);
  iso_code c = w.used && w.shape ? ISO_OK : scope_no_memory(z);
  if (!c) r.lhs = term(&w, a);
  if (!c && r.lhs) r.rhs = term(&w, b);
  r.n_vars = w.n_vars;
  if (!c && w.fine && !(r.lhs && r.rhs && declare(&w, &r))) c = scope_no_memory(z);
  if (!c && w.fine) c = decide(&w, &r, proved);
  iso_arena_fini(&arena);
  return c;
}
