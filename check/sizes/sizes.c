/* The chain of a scope: every step is justified again with symbols in place of numbers, in the
 * order that the certificate gives, from nothing that is not there yet. */
#include "check/sizes/sizes.h"

#include <stdlib.h>
#include <string.h>

#include "check/sizes/sizes_int.h"
#include "rules/operators.h"

/* ---- steps ---- */

static bool same(chk_chain *z, uint32_t a, uint32_t b, bool loose) {
  if (!z->sized[a] || !z->sized[b])
    return z->wrong = "the sizes of an operator are not known", false;
  z->wrong = "their arguments are not one at all sizes";
  return chk_chain_alike(z, z->sized[a], z->sized[b], loose);
}

static bool no_integer(const rule_term *t) {
  if (chk_is_size(t)) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!no_integer(t->child[i])) return false;
  return true;
}

static bool elements(const chk_dims *d, chk_sum *out) {
  *out = (chk_sum){.n = 1, .of = {{.by = 1}}};
  for (uint32_t i = 0; i < d->rank; i++)
    if (!chk_sum_times(out, &d->of[i], out)) return false;
  return true;
}

/* Whether `to` is `from` and, at place `at`, a dimension of one. */
static bool one_more(const chk_dims *to, const chk_dims *from, const rule_term *at) {
  const chk_sum one = {.n = 1, .of = {{.by = 1}}};
  if (at->kind != RULE_INT || to->rank != from->rank + 1) return false;
  const int64_t place = at->u.i + (at->u.i < 0 ? to->rank : 0);
  bool same = place >= 0 && place < to->rank && chk_sum_equal(&to->of[place], &one);
  for (uint32_t i = 0; same && i < to->rank; i++)
    if (i != place) same = chk_sum_equal(&to->of[i], &from->of[i - (i > place)]);
  return same;
}

/* A leaf as all elements of another leaf, in their order. */
static bool is_view(chk_chain *z, uint32_t leaf, uint32_t view) {
  const rule_term *call = z->sized[view];
  const chk_dims *to = chk_dims_of(z, leaf), *from;
  chk_sum x, y;
  if (!to || call->n != 2) return false;
  if (call->child[0]->kind != RULE_VAR || z->k->term[call->child[0]->u.i].call) return false;
  from = chk_dims_of(z, (uint32_t)call->child[0]->u.i);
  if (from && rule_adds_dimension(call->u.s)) return one_more(to, from, call->child[1]);
  if (!from || !rule_operator_of(call->u.s)->sizes) return false;
  if (call->child[1]->kind != RULE_LIST || call->child[1]->n != to->rank) return false;
  for (uint32_t i = 0; i < to->rank; i++)
    if (!chk_size_of(z, call->child[1]->child[i], &x) || !chk_sum_equal(&x, &to->of[i]))
      return false;
  return elements(from, &x) && elements(to, &y) && chk_sum_equal(&x, &y);
}

/* A step that makes leaves one by value: their shapes must agree at all sizes. Terms that do not
 * depend on sizes or inputs were compared by value already. */
static bool leaves(chk_chain *z, uint32_t a, uint32_t b) {
  z->wrong = "the shape of a leaf is not known";
  if (z->fixed[a] && z->fixed[b]) return true;
  if (!z->k->term[a].call && !z->k->term[b].call) return z->dim[a].of && z->dim[b].of;
  z->wrong = "how an input is made of others is shown at the captured sizes alone";
  return z->dim[a].of && z->sized[b] && (no_integer(z->sized[b]) || is_view(z, a, b));
}

static iso_code justified(chk_chain *z, const chk_sizes_step *by, bool *yes) {
  chk_state *k = z->k;
  const chk_step *x = &k->cert.step[by->step];
  const bool proved = by->how != CHK_SIZES_PLAIN, fixed = z->fixed[x->a] && z->fixed[x->b];
  *yes = false;
  if (by->how == CHK_SIZES_TABLE && x->kind == CHK_VALUE)
    return chk_chain_tables(z, x->a, x->b, yes);
  if (by->how != CHK_SIZES_TABLE && proved && (x->kind == CHK_RULE || x->kind == CHK_VALUE)) {
    const uint32_t n = x->kind == CHK_RULE ? rule_set_at(k->rules.rule[x->rule], 0)->n_vars : 0;
    return chk_chain_prove(z, x->a, x->b, k->cert.var + x->first_var, n,
                           by->how == CHK_SIZES_SHARED, yes);
  }
  z->wrong = "it is of no kind that holds at all sizes";
  if (proved) return ISO_OK;
  if (x->kind == CHK_RULE) *yes = chk_chain_instance(z, x, by);
  else if (x->kind == CHK_SAME) *yes = same(z, x->a, x->b, false);
  else if (x->kind == CHK_LEAF) *yes = leaves(z, x->a, x->b);
  else if (x->kind == CHK_VALUE) *yes = fixed;
  else if (x->kind == CHK_ROUNDING) *yes = fixed || same(z, x->a, x->b, true);
  return ISO_OK;
}

static iso_code take_steps(chk_chain *z) {
  chk_state *k = z->k;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < k->cert.sizes->n_steps && !c && !chk_settled(k); i++) {
    const chk_sizes_step *by = &k->cert.sizes->step[i];
    const chk_step *x = &k->cert.step[by->step];
    bool yes;
    c = justified(z, by, &yes);
    if (c) return c;
    if (!yes || !chk_chain_join(z, x->a, x->b))
      return chk_settle(k, CHK_REFUSED, "its scope does not follow at step %u: %s", by->step,
                        z->wrong);
  }
  return c;
}

/* ---- the whole ---- */

static iso_code check_whole(chk_chain *z) {
  chk_state *k = z->k;
  const char *where = "";
  bool fine = true;
  uint32_t at = 0;
  for (size_t i = 0; i < k->cert.n_outputs; i++)
    if (chk_chain_root(z, k->cert.output[i].a) != chk_chain_root(z, k->cert.output[i].b))
      return chk_settle(k, CHK_REFUSED, "its scope does not follow: output %s is not joined",
                        k->cert.output[i].left);
  iso_code c = chk_chain_masks(z, &fine, &where);
  if (!c && !fine)
    return chk_settle(k, CHK_REFUSED,
                      "its scope does not follow: masks are read as minus infinity, and at %s it "
                      "is not shown that each row keeps an element",
                      where);
  if (!c) c = chk_chain_run(z, &fine, &at);
  if (c || fine) return c;
  const chk_term *t = &k->term[at];
  return chk_settle(k, CHK_REFUSED,
                    "its scope does not follow: %s is not defined at other sizes, no number, or of "
                    "another shape",
                    t->node ? t->node->id : t->call->u.s);
}

static iso_code start(chk_chain *z) {
  chk_state *k = z->k;
  const size_t n = k->n_terms + 1;
  iso_arena *a = k->arena;
  z->symbol = iso_arena_alloc(a, (k->graph[LEFT]->n_symbols + 1) * sizeof *z->symbol);
  z->right = iso_arena_alloc(a, (k->graph[RIGHT]->n_symbols + 1) * sizeof *z->right);
  z->sized = iso_arena_alloc(a, n * sizeof *z->sized);
  z->dim = iso_arena_alloc(a, n * sizeof *z->dim);
  z->up = iso_arena_alloc(a, n * sizeof *z->up);
  z->fixed = iso_arena_alloc(a, n * sizeof *z->fixed);
  if (!z->symbol || !z->right || !z->sized || !z->dim || !z->up || !z->fixed) return chk_nomem(k);
  for (uint32_t i = 0; i < n; i++) z->up[i] = i;
  return chk_chain_read(z);
}

static iso_code publish(chk_state *k) {
  const size_t n = k->cert.sizes->n_symbols;
  k->report->n_symbols = n;
  k->report->symbol = k->cert.sizes->symbol;
  return ISO_OK;
}

iso_code chk_sizes_check(chk_state *k) {
  if (!k->cert.sizes || k->o->trust_rules) return ISO_OK;
  if (!k->oracle) return chk_settle(k, CHK_REFUSED, "its scope cannot be shown without an oracle");
  if (k->cert.n_fixed)
    return chk_settle(k, CHK_REFUSED, "its scope is for inputs that keep their captured values");
  for (int side = 0; side < 2; side++)
    if (k->graph[side]->n_guards)
      return chk_settle(k, CHK_REFUSED,
                        "its scope has sizes that a guard of the %s capture may leave out (%s)",
                        side == LEFT ? "left" : "right", k->graph[side]->guard[0]);
  chk_chain *z = calloc(1, sizeof *z);
  if (!z) return chk_nomem(k);
  z->k = k;
  iso_code c = start(z);
  if (!c && !chk_settled(k)) c = take_steps(z);
  if (!c && !chk_settled(k)) c = check_whole(z);
  if (!c && !chk_settled(k)) c = publish(k);
  free(z);
  return c;
}
