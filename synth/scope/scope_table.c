/* Tables of positions. One side computes the cosine of arange(T) times some numbers, and the other
 * one looks T rows of a stored table up: nothing proves of a stored table what it is. But each is
 * the first T rows of what it is at the largest T, which is proved of the terms that compute them,
 * and there the two are compared as they were at the captured sizes, by value. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/constants/constants.h"
#include "synth/scope/scope_int.h"

/* The symbol that a shape speaks of, and where; the other dimensions are numbers. */
static bool read_shape(const scoping *z, const scope_dims *d, scope_table *out) {
  bool some = false;
  int64_t number;
  *out = (scope_table){.rank = d->rank};
  for (uint32_t i = 0; i < d->rank; i++) {
    const size_sum *x = &d->of[i];
    if (size_is_number(x, &number)) continue;
    if (x->n != 1 || x->of[0].by != 1 || x->of[0].n != 1) return false;
    const uint32_t atom = x->of[0].of[0];
    if (z->space.atom[atom].as->kind != RULE_NAME || (some && out->atom != atom)) return false;
    out->atom = atom;
    out->along[i] = some = true;
  }
  out->most = some ? z->space.atom[out->atom].max : INT64_MAX;
  return out->most < INT64_MAX;
}

/* Whether a call of the certificate's own rounds nothing, or no more than its result shows: nobody
 * computes it so. */
static bool moves(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return rule_is_getitem(op) || o->cast || (o->moves && !o->accumulates);
}

/* Whether a term is made of nothing but constants. `seen`: terms that are. */
static bool constant(scoping *z, uint32_t t, bool *seen);

static bool constant_below(scoping *z, const rule_term *x, bool *seen) {
  if (x->kind == RULE_VAR) return constant(z, (uint32_t)x->u.i, seen);
  for (uint32_t k = 0; k < x->n; k++)
    if (!constant_below(z, x->child[k], seen)) return false;
  return true;
}

static bool constant(scoping *z, uint32_t t, bool *seen) {
  t = scope_captured(z, t);
  if (seen[t]) return true;
  if (z->call[t])
    return seen[t] =
               (z->captured[t] || moves(z->call[t]->u.s)) && constant_below(z, z->call[t], seen);
  const size_t n_left = z->s->graph[LEFT]->n_nodes;
  const int side = t >= n_left;
  const size_t i = t - (side ? n_left : 0);
  const synth_node *n = &z->s->graph[side]->node[i];
  const eg_node e = z->s->map[side][i];
  const bool kept = n->kind != SYNTH_INPUT && n->kind != SYNTH_PARAMETER && n->value && n->value[0];
  return seen[t] = kept && e.i != EG_NONE && z->s->rec[e.i].konst && scope_is_fixed(z, t);
}

/* Equal as constants are, and zeros of one sign: something may tell these apart. */
static bool same(const rule_tensor *a, const rule_tensor *b) {
  if (!st_same_constant(a, b)) return false;
  for (int64_t i = 0; rule_dtype_is_float(a->dtype) && i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x == 0 && signbit(x) != signbit(y)) return false;
  }
  return true;
}

iso_code scope_tables(scoping *z, uint32_t a, uint32_t b, bool *tried, bool *equal) {
  const scope_dims *d = scope_dims_of(z, a) ? scope_dims_of(z, a) : scope_dims_of(z, b);
  const uint32_t both[2] = {a, b};
  rule_tensor *v[2] = {NULL, NULL};
  scope_table table;
  *equal = false;
  if (!d || !read_shape(z, d, &table)) return ISO_OK;
  bool *seen = calloc(z->n_terms, 1);
  if (!seen) return scope_no_memory(z);
  const bool kept = constant(z, a, seen) && constant(z, b, seen);
  free(seen);
  bool fine = *tried = kept;
  iso_code c = ISO_OK;
  for (int k = 0; k < 2 && !c && fine; k++) c = scope_prove_places(z, both[k], &table, &fine);
  if (!c && fine) c = scope_run_table(z, both, &table, v);
  *equal = !c && v[0] && v[1] && same(v[0], v[1]);
  if (!c && fine && !*equal) z->wrong = "their values at the largest size differ";
  for (int k = 0; k < 2; k++) rule_tensor_unref(v[k]);
  return c;
}
