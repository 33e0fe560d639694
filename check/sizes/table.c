/* Two tables of positions, one computed and one stored: each is the first places of what it is at
 * the largest size, and these are compared by value, as constants are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/sizes/sizes_int.h"

uint32_t chk_chain_captured(const chk_chain *z, uint32_t t) {
  const chk_state *k = z->k;
  for (uint32_t i = 0; i < k->n_terms && !k->term[t].node; i++)
    if (k->term[i].node && k->term[i].call && z->sized[i] &&
        chk_chain_root(z, i) == chk_chain_root(z, t))
      return i;
  return t;
}

static bool is_symbol(const chk_chain *z, const chk_sum *x, uint32_t *atom) {
  for (size_t i = 0; i < z->k->graph[LEFT]->n_symbols; i++) {
    if (!chk_sum_equal(x, &z->symbol[i])) continue;
    for (*atom = 0; !x->of[0].power[*atom];) ++*atom;
    return true;
  }
  return false;
}

/* The symbol that a shape speaks of, and where; the other dimensions are numbers. */
static bool read_shape(const chk_chain *z, const chk_dims *d, chk_table *out) {
  bool some = false;
  int64_t number;
  *out = (chk_table){.rank = d->rank};
  for (uint32_t i = 0; i < d->rank; i++) {
    const chk_sum *x = &d->of[i];
    if (chk_sum_is_number(x, &number)) continue;
    uint32_t atom;
    if (!is_symbol(z, x, &atom) || (some && out->atom != atom)) return false;
    out->atom = atom;
    out->along[i] = some = true;
  }
  out->most = some ? z->atoms.of[out->atom].max : INT64_MAX;
  return out->most < INT64_MAX;
}

static bool constant(chk_chain *z, uint32_t t, bool *seen);

static bool constant_below(chk_chain *z, const rule_term *x, bool *seen) {
  if (x->kind == RULE_VAR) return constant(z, (uint32_t)x->u.i, seen);
  for (uint32_t i = 0; i < x->n; i++)
    if (!constant_below(z, x->child[i], seen)) return false;
  return true;
}

/* Whether nothing below is an input or a parameter. `seen`: terms that are looked at, or were. */
static bool constant(chk_chain *z, uint32_t t, bool *seen) {
  const chk_state *k = z->k;
  t = chk_chain_captured(z, t);
  if (seen[t]) return true;
  seen[t] = true;
  if (k->term[t].call) return constant_below(z, k->term[t].call, seen);
  const cap_node *n = k->term[t].node;
  return z->fixed[t] && !k->here.unpinned[t] && n->kind != CAP_INPUT &&
         (n->kind != CAP_PARAMETER || !rule_dtype_is_inexact(n->value->dtype));
}

/* As constants of the captured sizes, and zeros have one sign. */
static bool equal(const rule_tensor *a, const rule_tensor *b) {
  if (chk_constants_differ(a, b)) return false;
  for (int64_t i = 0; rule_dtype_is_float(a->dtype) && i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x == 0 && signbit(x) != signbit(y)) return false;
  }
  return true;
}

iso_code chk_chain_tables(chk_chain *z, uint32_t a, uint32_t b, bool *yes) {
  const chk_dims *d = chk_dims_of(z, a) ? chk_dims_of(z, a) : chk_dims_of(z, b);
  const uint32_t both[2] = {a, b};
  rule_tensor *v[2] = {NULL, NULL};
  chk_table table;
  *yes = false;
  z->wrong = "they are no tables of one symbol";
  if (!d || !read_shape(z, d, &table)) return ISO_OK;
  bool *seen = calloc(z->k->n_terms + 1, 1);
  if (!seen) return chk_nomem(z->k);
  bool fine = constant(z, a, seen) && constant(z, b, seen);
  free(seen);
  iso_code c = ISO_OK;
  for (int i = 0; i < 2 && !c && fine; i++) c = chk_chain_places(z, both[i], &table, &fine);
  if (!c && fine) c = chk_chain_run_table(z, both, &table, v);
  *yes = !c && v[0] && v[1] && equal(v[0], v[1]);
  if (!c && fine && !*yes) z->wrong = "their values at the largest size differ";
  for (int i = 0; i < 2; i++) rule_tensor_unref(v[i]);
  return c;
}
