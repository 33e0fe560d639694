/* The same fault in several places: a bound on queries, keys and values, a threshold for each
 * choice. None of them alone mends it. */
#include "localise/mutate.h"
#include "rules/names.h"
#include "localise/localise_int.h"

#include <string.h>

enum { MAX_ALIKE = 32 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Whether it is the same operator with the same attributes, over any tensors. */
static bool alike(const synth_node *a, const synth_node *b) {
  if (a->kind != SYNTH_OP || b->kind != SYNTH_OP || strcmp(a->call->u.s, b->call->u.s) != 0 ||
      a->call->n != b->call->n)
    return false;
  if (a->dtype != b->dtype || a->n_outputs != b->n_outputs) return false;
  for (uint32_t k = 0; k < a->call->n; k++) {
    const rule_term *x = a->call->child[k], *y = b->call->child[k];
    if (x->kind != y->kind || (rp_is_attribute(x) && !rule_term_eq(x, y)) ||
        (x->kind == RULE_LIST && x->n != y->n))
      return false;
  }
  return true;
}

/* The change, of a call like those that it is for; NULL: no memory. */
static const rule_term *changed(repair *r, const rule_term *call, const lo_change *g) {
  if (g->to) return rp_with_child(r, call, g->k, g->to);
  const rule_term *arg[1] = {call->child[g->k]};
  return rule_op(&r->arena, OP_ALIAS, arg, 1);
}

/* Whether a node is one that `g` changes, and is another one afterwards as far as its shape tells.
 */
static bool applies(const repair *r, uint32_t i, const lo_change *g) {
  const synth_node *n = &r->g->node[i];
  const rule_tensor *v = n->kind == SYNTH_OP ? rp_value(r->task->run, i) : NULL;
  if (!v || !r->to_goal[i] || strcmp(n->call->u.s, g->op) != 0 || g->k >= n->call->n) return false;
  const rule_term *a = n->call->child[g->k];
  if (g->to) return rule_term_eq(a, g->from);
  const rule_tensor *x = a->kind == RULE_VAR ? rp_value(r->task->run, (uint32_t)a->u.i) : NULL;
  return x && rule_shape_eq(&x->shape, &v->shape) && x->dtype == v->dtype &&
         !rule_tensor_same(x, v);
}

/* Names the change, of nodes in their order. */
static const char *in_words(repair *r, const uint32_t *node, size_t n, const lo_change *g) {
  iso_arena *a = &r->s->res->arena;
  const rule_term *call = r->g->node[node[0]].call;
  const char *what = !g->to ? rp_too_much(r, call, g->k)
                            : iso_arena_printf(a, "%s is %s, and would have to be %s",
                                               rp_argument_name(r, call, g->k), rp_show(r, g->from),
                                               rp_show(r, g->to));
  for (size_t i = 1; i < n && what; i++)
    what = iso_arena_printf(a, "%s%s \"%s\"", what, i == 1 ? "; the same at" : ",",
                            r->g->node[node[i]].id);
  return what;
}

/* All of them at once. Requires: `node` in order. */
static iso_code try_all(repair *r, const uint32_t *node, size_t n, const lo_change *g,
                        iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n && !c; i++)
    if (!(r->call[node[i]] = changed(r, r->g->node[node[i]].call, g))) c = nomem(err);
  if (!c) c = rp_try_calls(r, node[0], err);
  memset(r->call, 0, r->g->n_nodes * sizeof *r->call);
  if (c || !r->found) return c;
  r->what = in_words(r, node, n, g);
  r->change = *g;
  return ISO_OK;
}

/* Suspects of the first phases that `g` changes, in order; `like` (-1: any): as that node is. */
static size_t collect(const repair *r, const lo_change *g, int64_t like, int phases,
                      uint32_t *out) {
  size_t n = 0, n_suspects = 0;
  for (int p = 0; p < phases; p++) n_suspects += r->task->n_suspects[p];
  for (size_t k = 0; k < n_suspects && n < MAX_ALIKE; k++) {
    const uint32_t i = r->task->suspect[k];
    if (!applies(r, i, g) || (like >= 0 && !alike(&r->g->node[like], &r->g->node[i]))) continue;
    size_t at = n;
    while (at > 0 && out[at - 1] > i) at--;
    if (at > 0 && out[at - 1] == i) continue;
    memmove(&out[at + 1], &out[at], (n - at) * sizeof *out);
    out[at] = i;
    n++;
  }
  return n;
}

/* Those of the region and near it, all at once; then with those before it, an earlier layer's
 * perhaps. */
static iso_code try_groups(repair *r, int64_t like, const lo_change *g, iso_error *err) {
  uint32_t node[MAX_ALIKE];
  size_t before = 1;
  iso_code c = ISO_OK;
  for (int phases = LO_PHASES - 1; phases <= LO_PHASES && !c && !r->found; phases++) {
    const size_t n = collect(r, g, like, phases, node);
    if (n > before && (like < 0 || node[0] == like)) c = try_all(r, node, n, g, err);
    before = n > before ? n : before;
  }
  return c;
}

iso_code rp_earlier(repair *r, const lo_change *change, iso_error *err) {
  uint32_t node[MAX_ALIKE];
  const size_t n = collect(r, change, -1, LO_PHASES, node);
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n && !c && !r->found; i++) c = try_all(r, &node[i], 1, change, err);
  return c || r->found ? c : try_groups(r, -1, change, err);
}

iso_code rp_alike(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    lo_change g = {.op = call->u.s, .k = k};
    if (call->child[k]->kind == RULE_VAR) c = try_groups(r, n, &g, err);
    if (!rp_can_vary(call->child[k])) continue;
    const rule_term *pool[RP_MAX_POOL];
    const size_t n_pool = rp_attribute_pool(r, call, k, pool);
    g.from = call->child[k];
    for (size_t q = 0; q < n_pool && !c && !r->found; q++) {
      g.to = pool[q];
      c = try_groups(r, n, &g, err);
    }
  }
  return c;
}
