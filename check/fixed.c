/* Which inputs may be kept as they were captured: those whose values have a visible structure, and
 * positions that one side computes with and the other looks up in a table computed beforehand. */
#include "check/check_int.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

/* Positions (consecutive integers), masks, one number everywhere. */
static bool plain(const rule_tensor *t) {
  bool steps = true, same = true, bits = true;
  for (int64_t i = 0; i < t->numel; i++) {
    const int64_t v = rule_tensor_get_int(t, i), before = i ? rule_tensor_get_int(t, i - 1) : v - 1;
    steps &= v - before == 1;
    same &= i == 0 || v == before;
    bits &= v == 0 || v == 1;
  }
  if (t->numel == 1) return rule_tensor_get_int(t, 0) == 0;
  return steps || same || bits;
}

/* In every row, bounds of sequences (0 first, never falling) or positions that begin again at 0;
 * behind padding of one number. */
static bool of_sequences(const rule_tensor *t) {
  const int64_t row = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  bool adds_up = row > 2, restarts = row > 3;
  for (int64_t from = 0; row > 0 && from < t->numel; from += row) {
    const int64_t first = rule_tensor_get_int(t, from),
                  last = rule_tensor_get_int(t, from + row - 1);
    int64_t steps = 0;
    bool padding = first == 0 || first == 1;
    adds_up &= first == 0 && last > 0;
    restarts &= padding;
    for (int64_t i = from + 1; i < from + row; i++) {
      const int64_t x = rule_tensor_get_int(t, i), before = rule_tensor_get_int(t, i - 1);
      padding &= x == before;
      adds_up &= x >= before;
      restarts &= x == before + 1 || x == 0 || padding;
      steps += x == before + 1;
    }
    restarts &= 2 * steps >= row;
  }
  return t->numel > 0 && (adds_up || restarts);
}

static bool structured(const chk_state *k, uint32_t input) {
  const rule_tensor *t = k->term[input].node->value;
  const rule_domain *d = k->term[input].node->domain;
  if (k->term[input].node->kept || (d && rule_domain_is_joint(d))) return true;
  if (rule_dtype_is_inexact(t->dtype)) return t->numel == 0;
  if (!rule_dtype_is_int(t->dtype)) return true;
  return plain(t) || (!d && of_sequences(t));
}

/* ---- positions that are computed with here and looked up there ---- */

/* How the integers of an input are used on its side. */
typedef struct use {
  bool counts;   /* they become floating numbers */
  bool looks_up; /* they index a table of constants */
  bool chooses;  /* they index another one, of parameters say */
} use;

static bool refers(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (refers(t->child[i], flag)) return true;
  return false;
}

static bool refers_only(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!refers_only(t->child[i], flag)) return false;
  return true;
}

/* The argument of a call that indexes its first one; NULL: it takes none. */
static const rule_term *indices(const rule_term *call) {
  const uint32_t at = rule_operator_of(call->u.s)->table;
  return at && at < call->n ? call->child[at] : NULL;
}

/* `flow`: integers that come of the input; `konst`: nodes that depend on neither inputs nor
 * floating parameters. Both have room for the graph's nodes, and are all false. */
static use follow(const cap_graph *g, size_t input, bool *flow, bool *konst) {
  use u = {0};
  flow[input] = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *n = &g->node[i];
    if (!n->call) {
      const bool real = n->value && rule_dtype_is_inexact(n->value->dtype);
      konst[i] = n->kind != CAP_INPUT && !(n->kind == CAP_PARAMETER && real);
      continue;
    }
    konst[i] = refers_only(n->call, konst);
    if (!refers(n->call, flow) || n->n_outputs == 0) continue;
    const rule_term *by = indices(n->call), *table = n->call->child[0];
    const rule_dtype d = n->output[0].dtype;
    if (by && refers(by, flow) && table->kind == RULE_VAR && !flow[table->u.i] &&
        rule_dtype_is_float(d))
      *(konst[table->u.i] ? &u.looks_up : &u.chooses) = true;
    else if (rule_dtype_is_float(d)) u.counts = true;
    else flow[i] |= rule_dtype_is_int(d);
  }
  return u;
}

static iso_code use_of(chk_state *k, uint32_t input, use *out) {
  const cap_graph *g = k->graph[k->term[input].side];
  bool *flow = calloc(2 * g->n_nodes + 1, 1);
  if (!flow) return chk_nomem(k);
  *out = follow(g, k->term[input].index, flow, flow + g->n_nodes);
  free(flow);
  return ISO_OK;
}

static bool same_integers(const chk_state *k, uint32_t a, uint32_t b) {
  for (size_t set = 0; set < k->graph[LEFT]->n_sets && set < k->graph[RIGHT]->n_sets; set++) {
    const rule_tensor *x = chk_captured(k, a, set), *y = chk_captured(k, b, set);
    if (x->numel != y->numel) return false;
    for (int64_t i = 0; i < x->numel; i++)
      if (rule_tensor_get_int(x, i) != rule_tensor_get_int(y, i)) return false;
  }
  return true;
}

/* Whether an input is a position that its side, or the other one, finds in a table, where the other
 * one computes: the table is rounded as it was stored, and nothing tells how for other positions.
 * An input that chooses rows of parameters is a token, and stays free. */
static iso_code looked_up(chk_state *k, uint32_t input, bool *yes) {
  use mine, its;
  iso_code c = use_of(k, input, &mine);
  *yes = false;
  for (size_t i = 0; i < k->cert.n_fixed && !c && !*yes && !mine.chooses; i++) {
    const uint32_t other = k->cert.fixed[i];
    const chk_term *t = &k->term[other];
    if (t->side == k->term[input].side || t->node->kind != CAP_INPUT ||
        !rule_dtype_is_int(t->node->value->dtype) || !same_integers(k, input, other))
      continue;
    c = use_of(k, other, &its);
    *yes = !c && !its.chooses && ((mine.counts && its.looks_up) || (mine.looks_up && its.counts));
  }
  return c;
}

iso_code chk_may_be_fixed(chk_state *k, uint32_t input, bool *yes) {
  const cap_node *n = k->term[input].node;
  *yes = n->kind == CAP_INPUT && structured(k, input);
  if (*yes || n->kind != CAP_INPUT || !rule_dtype_is_int(n->value->dtype)) return ISO_OK;
  return looked_up(k, input, yes);
}
