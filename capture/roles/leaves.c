/* Leaves of the ranks as leaves of one: the same on all ranks, or parts along a dimension.
 *
 * The other graph's leaf of the same name says which: of its shape each rank has the whole. Parts
 * are the definition of what they are parts of, and so need no reason; that all have one value is
 * taken for all values, and noted. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "capture/roles/roles_int.h"

static const cap_node *namesake(const roles_work *x, const char *name) {
  const cap_graph *w = x->q->whole;
  for (size_t i = 0; i < w->n_nodes; i++)
    if (w->node[i].name && strcmp(w->node[i].name, name) == 0) return &w->node[i];
  return NULL;
}

static rule_tensor *value_of(const roles_work *x, uint32_t node, size_t set) {
  const cap_graph *g = x->g;
  return g->node[node].kind == CAP_INPUT ? g->input[set * g->n_nodes + node] : g->node[node].value;
}

static size_t n_sets(const roles_work *x, const cap_node *n) {
  return n->kind == CAP_INPUT ? x->g->n_sets : 1;
}

static uint32_t held_by(const roles_work *x, uint32_t r, uint32_t j) {
  return roles_image(x, r, x->leaf[j]);
}

static bool all_same(const roles_work *x, uint32_t j) {
  const cap_node *n = &x->g->node[x->leaf[j]];
  for (uint32_t r = 1; r < x->n_ranks; r++)
    for (size_t set = 0; set < n_sets(x, n); set++)
      if (!rule_tensor_same(value_of(x, x->leaf[j], set), value_of(x, held_by(x, r, j), set)))
        return false;
  return true;
}

/* The dimension that ranks share; RULE_MAX_RANK: there is none. */
static uint32_t shared_dim(const rule_shape *whole, const rule_shape *own, uint32_t n) {
  uint32_t found = RULE_MAX_RANK;
  for (uint32_t d = 0; whole->rank == own->rank && d < own->rank; d++) {
    if (whole->dim[d] == own->dim[d]) continue;
    if (found != RULE_MAX_RANK || own->dim[d] < 1 || whole->dim[d] / n != own->dim[d] ||
        whole->dim[d] % n)
      return RULE_MAX_RANK;
    found = d;
  }
  return found;
}

iso_code roles_join(roles_work *x, rule_tensor *const *theirs, uint32_t dim, rule_tensor **out) {
  const rule_tensor *first = theirs[0];
  rule_shape shape = first->shape;
  size_t inner = rule_dtype_size(first->dtype), outer = 1;
  for (uint32_t d = dim; d < shape.rank; d++) inner *= (size_t)shape.dim[d];
  for (uint32_t d = 0; d < dim; d++) outer *= (size_t)shape.dim[d];
  shape.dim[dim] *= x->n_ranks;
  const iso_code c = rule_tensor_new(first->dtype, &shape, out, x->err);
  for (uint32_t r = 0; r < x->n_ranks && !c; r++)
    for (size_t o = 0; o < outer; o++)
      memcpy((char *)(*out)->data + (o * x->n_ranks + r) * inner,
             (const char *)theirs[r]->data + o * inner, inner);
  return c;
}

static iso_code join(roles_work *x, uint32_t j, uint32_t dim, size_t set, rule_tensor **out) {
  rule_tensor **theirs = calloc(x->n_ranks, sizeof *theirs);
  for (uint32_t r = 0; theirs && r < x->n_ranks; r++)
    theirs[r] = value_of(x, held_by(x, r, j), set);
  const iso_code c = theirs ? roles_join(x, theirs, dim, out) : roles_nomem(x);
  free(theirs);
  return c;
}

static void range_of(const cap_node *n, roles_place *p) {
  const rule_domain *d = n->domain;
  const double most = 1e15; /* beyond, a double is no integer */
  if (!d || !rule_dtype_is_int(n->output[0].dtype) || !(d->low > -most) || !(d->high < most))
    return;
  p->ranged = true, p->low = (int64_t)d->low, p->high = (int64_t)d->high;
}

static iso_code note(roles_work *x, const char ***line, const char *text) {
  if (!text) return roles_nomem(x);
  (*line)[x->out->n_notes++] = text;
  return ISO_OK;
}

static iso_code say(roles_work *x, const char ***line, const char *name, const roles_place *p) {
  iso_arena *a = &x->out->arena;
  return note(x, line,
              p->kind == ROLES_SAME
                  ? iso_arena_printf(a, "right's rank1.%s to rank%u.%s repeat rank0.%s", name,
                                     x->n_ranks - 1, name, name)
                  : iso_arena_printf(a,
                                     "right's rank0.%s to rank%u.%s are parts along dimension %u",
                                     name, x->n_ranks - 1, name, p->dim));
}

/* Whether ranks may have other values of it than those that were captured, which no leaf of the
 * other graph says to be one. */
static bool may_differ(const cap_node *n, const cap_node *whole) {
  return (n->kind == CAP_INPUT || n->kind == CAP_PARAMETER) &&
         !(whole && rule_shape_eq(&whole->output[0].shape, &n->output[0].shape));
}

/* How the ranks share leaf `j`; `own`: each has one of its own. */
static iso_code decide(roles_work *x, uint32_t j, const char *name, bool own, roles_place *p) {
  const cap_node *n = &x->g->node[x->leaf[j]], *whole = namesake(x, name);
  const uint32_t d = whole && own
                         ? shared_dim(&whole->output[0].shape, &n->output[0].shape, x->n_ranks)
                         : RULE_MAX_RANK;
  for (uint32_t r = 0; r < x->n_ranks; r++)
    if (!value_of(x, held_by(x, r, j), 0)) return roles_refuse(x, "%s has no value", name);
  *p = (roles_place){.kind = d < RULE_MAX_RANK ? ROLES_PART : ROLES_SAME, .dim = d};
  range_of(n, p);
  if (p->kind == ROLES_SAME && own && may_differ(n, whole))
    return roles_refuse(x, "%s is no leaf of the other capture, of its shape", name);
  if (p->kind == ROLES_SAME && !all_same(x, j))
    return roles_refuse(x, "%s is not the same on all ranks, and no part of one tensor", name);
  if (p->kind == ROLES_PART && n->domain && rule_domain_is_joint(n->domain))
    return roles_refuse(x, "the domain of %s speaks of all its elements", name);
  return ISO_OK;
}

static iso_code add(roles_work *x, uint32_t j, const char *name, roles_place *p) {
  const cap_node *n = &x->g->node[x->leaf[j]];
  const size_t sets = n_sets(x, n);
  cap_output *what = iso_arena_alloc(&x->g->arena, sizeof *what);
  if (!what || !iso_grow(x->made, x->cap_made, x->n_made + 1)) return roles_nomem(x);
  roles_new *m = &x->made[x->n_made];
  *m = (roles_new){.as = *n, .value = calloc(sets, sizeof *m->value), .n_values = sets};
  p->at = (uint32_t)x->n_made++;
  if (!m->value) return roles_nomem(x);
  *what = n->output[0];
  if (p->kind == ROLES_PART) what->shape.dim[p->dim] *= x->n_ranks;
  m->as.output = what;
  m->as.name = name;
  iso_code c = ISO_OK;
  for (size_t set = 0; set < sets && !c; set++)
    if (p->kind == ROLES_SAME) m->value[set] = rule_tensor_ref(value_of(x, x->leaf[j], set));
    else c = join(x, j, p->dim, set, &m->value[set]);
  return c;
}

iso_code roles_leaves(roles_work *x) {
  const char **line = iso_arena_alloc(&x->out->arena, (x->n_leaves + 1) * sizeof *line);
  iso_code c = line ? ISO_OK : roles_nomem(x);
  for (uint32_t j = 0; j < x->n_leaves && !c; j++) {
    const char *name = x->g->node[x->leaf[j]].name;
    roles_place *p = &x->place[x->leaf[j]];
    const bool own = roles_rank_of(name, &name) >= 0;
    c = decide(x, j, name, own, p);
    if (c || roles_refused(x)) return c;
    c = add(x, j, name, p);
    if (!c && own) c = say(x, &line, name, p);
  }
  x->out->note = line;
  return c;
}
