/* Leaves of the ranks as leaves of one: the same on all ranks, or parts along a dimension.
 *
 * The other graph's leaf of the same name decides: ranks whose leaf has its shape have the whole.
 * Where some of the ranks become one, the members of a team may hold it in parts among them. A leaf
 * held in parts is defined by these, and so needs no reason; that leaves of one captured value are
 * always equal is an assumption, and noted. */
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

rule_tensor *roles_value(const roles_work *x, uint32_t r, uint32_t leaf, size_t set) {
  return cap_role_value(x->g, roles_image(x, r, leaf), r, set);
}

static size_t n_sets(const roles_work *x, const cap_node *n) {
  return n->kind == CAP_INPUT ? x->g->n_sets : 1;
}

static bool all_same(const roles_work *x, uint32_t j) {
  const cap_node *n = &x->g->node[x->leaf[j]];
  for (uint32_t r = 1; r < x->n_ranks; r++)
    for (size_t set = 0; set < n_sets(x, n); set++)
      if (!rule_tensor_same(roles_value(x, 0, x->leaf[j], set), roles_value(x, r, x->leaf[j], set)))
        return false;
  return true;
}

/* How many tensors of the one shape tile one of the other; 0: none do. */
static uint64_t tiles(const rule_shape *whole, const rule_shape *own) {
  uint64_t n = 1;
  if (whole->rank != own->rank) return 0;
  for (uint32_t d = 0; d < own->rank; d++) {
    if (whole->dim[d] == own->dim[d]) continue;
    if (own->dim[d] < 1 || whole->dim[d] % own->dim[d]) return 0;
    n *= (uint64_t)(whole->dim[d] / own->dim[d]);
    if (n > UINT32_MAX) return 0;
  }
  return n;
}

/* Whether the tensor is one of the tiles of the other, byte by byte. */
static bool is_tile(const rule_tensor *whole, const rule_tensor *own) {
  uint64_t n = tiles(&whole->shape, &own->shape);
  const size_t size = rule_dtype_size(own->dtype);
  bool found = false;
  if (whole->dtype != own->dtype || !own->numel) return false;
  for (uint64_t k = 0; k < n && !found; k++) {
    found = true;
    for (int64_t i = 0; i < own->numel && found; i++) {
      int64_t at = 0, step = 1, rest = i;
      uint64_t tile = k;
      for (uint32_t d = own->shape.rank; d-- > 0;) {
        const int64_t many = whole->shape.dim[d] / own->shape.dim[d];
        at += step *
              ((int64_t)(tile % (uint64_t)many) * own->shape.dim[d] + rest % own->shape.dim[d]);
        tile /= (uint64_t)many;
        rest /= own->shape.dim[d];
        step *= whole->shape.dim[d];
      }
      found = memcmp((const char *)whole->data + (size_t)at * size,
                     (const char *)own->data + (size_t)i * size, size) == 0;
    }
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
    theirs[r] = roles_value(x, r, x->leaf[j], set);
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

/* The ranks, as ranks are called where those before have become one. */
static iso_code say(roles_work *x, uint32_t j, const char *name, const roles_place *p) {
  iso_arena *a = &x->out->arena;
  const char *rest;
  const char *own = x->g->node[x->leaf[j]].name;
  const uint32_t first = x->once ? 0 : (uint32_t)roles_rank_of(own, &rest);
  const uint32_t second = first + x->stride, last = first + (x->n_ranks - 1) * x->stride;
  const char *every = x->stride > 1 ? iso_arena_printf(a, ", every %u ranks,", x->stride) : "";
  if (!every) return roles_nomem(x);
  const char *text =
      p->kind == ROLES_SAME
          ? iso_arena_printf(a, "right's rank%u.%s to rank%u.%s%s repeat rank%u.%s", second, name,
                             last, name, every, first, name)
          : iso_arena_printf(a, "right's rank%u.%s to rank%u.%s%s are parts along dimension %u",
                             first, name, last, name, every, p->dim);
  if (!text) return roles_nomem(x);
  x->note[x->n_notes++] = text;
  return ISO_OK;
}

/* Whether the members of a team may hold the other graph's leaf among them: it is so many tiles. */
static bool held_in_team(const roles_work *x, const cap_node *whole, uint64_t n) {
  return whole && n && roles_n_team(x) % n == 0;
}

/* Whether ranks may have other values of it than those that were captured, which no leaf of the
 * other graph says to be one. */
static bool may_differ(const roles_work *x, const cap_node *n, const cap_node *whole) {
  return (n->kind == CAP_INPUT || n->kind == CAP_PARAMETER) &&
         !(whole && held_in_team(x, whole, tiles(&whole->output[0].shape, &n->output[0].shape)));
}

/* Whether ranks may share the leaf along the dimension. Members of a team may hold parts of a leaf
 * together: then the leaf is a part of the other graph's by its value. */
static iso_code may_share(roles_work *x, uint32_t j, const cap_node *whole, uint32_t d, bool *yes) {
  const rule_shape *own = &x->g->node[x->leaf[j]].output[0].shape, *all = &whole->output[0].shape;
  const uint64_t n = tiles(all, own);
  rule_tensor *mine = NULL;
  *yes = n && n % x->n_ranks == 0 && own->dim[d] > 0 &&
         all->dim[d] / own->dim[d] % x->n_ranks == 0 && held_in_team(x, whole, n / x->n_ranks);
  if (!*yes || n == x->n_ranks) return ISO_OK;
  const iso_code c = join(x, j, d, 0, &mine);
  *yes = !c && whole->value && is_tile(whole->value, mine);
  rule_tensor_unref(mine);
  return c;
}

/* The dimension that ranks share; RULE_MAX_RANK: there is none. */
static iso_code shared_dim(roles_work *x, uint32_t j, const cap_node *whole, uint32_t *dim) {
  const rule_shape *own = &x->g->node[x->leaf[j]].output[0].shape;
  iso_code c = ISO_OK;
  bool yes = false;
  *dim = RULE_MAX_RANK;
  for (uint32_t d = 0; d < own->rank && !c && !yes; d++) {
    c = may_share(x, j, whole, d, &yes);
    if (yes) *dim = d;
  }
  return c;
}

/* How the ranks share leaf `j`; `own`: each has one of its own. */
static iso_code decide(roles_work *x, uint32_t j, const char *name, bool own, roles_place *p) {
  const cap_node *n = &x->g->node[x->leaf[j]], *whole = namesake(x, name);
  uint32_t d = RULE_MAX_RANK;
  iso_code c = ISO_OK;
  for (uint32_t r = 0; r < x->n_ranks; r++)
    if (!roles_value(x, r, x->leaf[j], 0)) return roles_refuse(x, "%s has no value", name);
  const bool may_be_one = !may_differ(x, n, whole) && all_same(x, j);
  if (whole && own && !(may_be_one && roles_n_team(x) > 1)) c = shared_dim(x, j, whole, &d);
  if (c) return c;
  *p = (roles_place){.kind = d < RULE_MAX_RANK ? ROLES_PART : ROLES_SAME, .dim = d};
  range_of(n, p);
  if (p->kind == ROLES_SAME && own && may_differ(x, n, whole))
    return roles_refuse(x, "%s is no leaf of the other capture, of its shape", name);
  if (p->kind == ROLES_SAME && !may_be_one && !all_same(x, j))
    return roles_refuse(x, "%s is not the same on all ranks, and no part of one tensor", name);
  if (p->kind == ROLES_PART && n->domain && rule_domain_is_joint(n->domain))
    return roles_refuse(x, "the domain of %s speaks of all its elements", name);
  return ISO_OK;
}

/* A part of one rank of a team keeps its number there. */
static const char *name_in_team(const roles_work *x, const char *name) {
  const char *rest = name;
  const int64_t r = roles_rank_of(name, &rest);
  if (r < 0 || roles_n_team(x) == 1) return rest;
  return iso_arena_printf(&x->g->arena, "rank%u.%s", roles_member(x, (uint32_t)r), rest);
}

static iso_code add(roles_work *x, uint32_t j, roles_place *p) {
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
  if (!(m->as.name = name_in_team(x, n->name))) return roles_nomem(x);
  iso_code c = ISO_OK;
  for (size_t set = 0; set < sets && !c; set++)
    if (p->kind == ROLES_SAME) m->value[set] = rule_tensor_ref(roles_value(x, 0, x->leaf[j], set));
    else c = join(x, j, p->dim, set, &m->value[set]);
  return c;
}

iso_code roles_leaves(roles_work *x) {
  x->note = iso_arena_alloc(&x->out->arena, (x->n_leaves + 1) * sizeof *x->note);
  iso_code c = x->note ? ISO_OK : roles_nomem(x);
  for (uint32_t j = 0; j < x->n_leaves && !c; j++) {
    const char *name = x->g->node[x->leaf[j]].name;
    roles_place *p = &x->place[x->leaf[j]];
    const bool own = roles_rank_of(name, &name) >= 0 || x->once;
    c = decide(x, j, name, own, p);
    if (c || roles_refused(x)) return c;
    c = add(x, j, p);
    if (!c && own) c = say(x, j, name, p);
  }
  return c;
}
