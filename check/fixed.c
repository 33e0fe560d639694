/* Which inputs may be kept as they were captured: those whose values have a visible structure, and
 * positions that one side computes with and the other looks up in a table computed beforehand. Few
 * integers have a structure by chance: both captures are run on others, too. */
#include "check/check_int.h"
#include "rules/operators.h"

#include <math.h>
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

/* ---- the classes of a loss ---- */

static void mark(const rule_term *t, bool *flag) {
  if (t->kind == RULE_VAR) flag[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark(t->child[i], flag);
}

/* Whether a loss that counts is told them, as they are or in another dtype or layout. `flow` and
 * `live` are all false. */
static bool told(const cap_graph *g, size_t input, bool *flow, bool *live) {
  for (size_t i = 0; i < g->n_results; i++) live[g->result[i].node] = true;
  for (size_t i = g->n_nodes; i-- > 0;)
    if (live[i] && g->node[i].call) mark(g->node[i].call, live);
  flow[input] = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *call = g->node[i].call;
    if (!live[i] || !call || !refers(call, flow)) continue;
    const rule_operator *o = rule_operator_of(call->u.s);
    if (o->ends == RULE_ENDS_CLASSES && o->index < call->n && refers(call->child[o->index], flow))
      return true;
    flow[i] = (o->identity || o->cast || o->moves) && rule_dtype_is_int(g->node[i].output[0].dtype);
  }
  return false;
}

/* The target classes of a loss may be any. `kept`: what comes of a mask comes of it alone. */
static iso_code are_classes(chk_state *k, uint32_t input, bool *yes) {
  const chk_term *t = &k->term[input];
  const cap_graph *g = k->graph[t->side];
  const rule_domain *d = t->node->domain;
  *yes = rule_dtype_is_int(t->node->value->dtype) && !(d && rule_domain_is_joint(d));
  for (size_t set = 0; set < chk_n_sets(k) && t->node->kept; set++) {
    const rule_tensor *v = chk_captured(k, input, set);
    for (int64_t i = 0; i < v->numel && *yes; i++)
      *yes = rule_tensor_get_int(v, i) == 0 || rule_tensor_get_int(v, i) == 1;
  }
  if (!*yes) return ISO_OK;
  bool *flow = calloc(2 * g->n_nodes + 1, 1);
  if (!flow) return chk_nomem(k);
  *yes = told(g, t->index, flow, flow + g->n_nodes);
  free(flow);
  return ISO_OK;
}

iso_code chk_may_be_fixed(chk_state *k, uint32_t input, bool *yes) {
  const cap_node *n = k->term[input].node;
  bool classes = false;
  const iso_code c = n->kind == CAP_INPUT ? are_classes(k, input, &classes) : ISO_OK;
  if (c) return c;
  *yes = n->kind == CAP_INPUT && !classes && structured(k, input);
  if (*yes || n->kind != CAP_INPUT || !rule_dtype_is_int(n->value->dtype)) return ISO_OK;
  return looked_up(k, input, yes);
}

/* ---- what so few are by chance ---- */

enum { DRAWS = 8 };

/* The most rows, or classes, that some call chooses among by integers that come of the input. 0: it
 * chooses none. `flow` is all false. */
static int64_t most_rows(const cap_graph *g, size_t input, bool *flow) {
  int64_t most = 0;
  flow[input] = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *n = &g->node[i];
    if (!n->call || !refers(n->call, flow)) continue;
    const rule_operator *o = rule_operator_of(n->call->u.s);
    const rule_term *table = n->call->n ? n->call->child[0] : NULL;
    const bool chooses = (o->table || o->ends != RULE_ENDS_NOWHERE) && o->index < n->call->n &&
                         refers(n->call->child[o->index], flow);
    if (chooses && table->kind == RULE_VAR && g->node[table->u.i].n_outputs) {
      const rule_shape *shape = &g->node[table->u.i].output[0].shape;
      for (uint32_t d = 0; d < shape->rank; d++) most = shape->dim[d] > most ? shape->dim[d] : most;
    }
    flow[i] |= n->n_outputs && rule_dtype_is_int(n->output[0].dtype);
  }
  return most;
}

/* How unlikely the captured integers are among others. One number is none, unless ones are a mask.
 * Any may be the first one, unless each is the place that it is at. */
static double bits_of(const chk_state *k, uint32_t input, int64_t rows) {
  enum { ANY_NUMBER = 16 };
  const bool choose = rows > 0;
  double bits = 0;
  for (size_t set = 0; set < chk_n_sets(k); set++) {
    const rule_tensor *t = chk_captured(k, input, set);
    bool same = true, small = true, again = false, places = true;
    for (int64_t i = 0; i < t->numel; i++) {
      places &= rule_tensor_get_int(t, i) == i;
      same &= rule_tensor_get_int(t, i) == rule_tensor_get_int(t, 0);
      small &= rule_tensor_get_int(t, i) == 0 || rule_tensor_get_int(t, i) == 1;
    }
    for (size_t j = 0; j < set; j++) again |= rule_tensor_same_bytes(t, chk_captured(k, input, j));
    if (again || (same && (choose || rule_tensor_get_int(t, 0) != 1))) continue;
    const double all = (double)(choose ? rows : ANY_NUMBER);
    bits += (double)(t->numel - !places) * fmax(0, log2(small && !same ? all / 2 : all));
  }
  return bits;
}

static bool same_numbers(const chk_state *k, uint32_t a, uint32_t b) {
  for (size_t set = 0; set < chk_n_sets(k); set++) {
    const rule_tensor *x = chk_captured(k, a, set), *y = chk_captured(k, b, set);
    if (x->numel != y->numel) return false;
    for (int64_t i = 0; i < x->numel; i++)
      if (rule_tensor_get(x, i) != rule_tensor_get(y, i)) return false;
  }
  return true;
}

/* The input of the other side of which `t` is its rank's part, or `t`. */
static uint32_t whole_of(const chk_state *k, uint32_t t) {
  const chk_term *x = &k->term[t];
  const uint32_t base = x->side == LEFT ? (uint32_t)k->graph[LEFT]->n_nodes : 0;
  return x->node->part_of ? base + x->node->part_of - 1 : t;
}

/* Whether a fixed leaf is one with the input `whole`, or a part of it: what has the same numbers is
 * one with it. */
static bool goes_with(const chk_state *k, uint32_t whole, uint32_t leaf) {
  const cap_node *n = k->term[leaf].node, *all = k->term[whole].node;
  if (n->kind != CAP_INPUT) return false;
  const uint32_t own = whole_of(k, leaf);
  if (own == whole) return true;
  return rule_dtype_is_int(all->value->dtype)
             ? rule_dtype_is_int(n->value->dtype) && same_integers(k, whole, own)
             : rule_dtype_is_float(n->value->dtype) && same_numbers(k, whole, own);
}

/* `input` is no part of another one. */
static iso_code may_be_chance(chk_state *k, uint32_t input, bool *yes) {
  enum { SURE = 12 }; /* bits */
  const cap_node *n = k->term[input].node;
  int64_t rows = 0;
  *yes = n && n->kind == CAP_INPUT && !n->domain && n->by_chance &&
         rule_dtype_is_float(n->value->dtype);
  if (*yes || !n || n->kind != CAP_INPUT || n->domain || !rule_dtype_is_int(n->value->dtype) ||
      n->value->numel == 0 || n->value->dtype == RULE_BOOL)
    return ISO_OK;
  for (size_t i = 0; i < k->cert.n_fixed; i++) {
    const chk_term *t = &k->term[k->cert.fixed[i]];
    if (!goes_with(k, input, k->cert.fixed[i])) continue;
    if (t->node->domain) return ISO_OK;
    const cap_graph *g = k->graph[t->side];
    bool *flow = calloc(g->n_nodes + 1, 1);
    if (!flow) return chk_nomem(k);
    const int64_t its = most_rows(g, t->index, flow);
    rows = its > rows ? its : rows;
    free(flow);
  }
  *yes = n->by_chance || ((rows > 0 || !n->kept) && bits_of(k, input, rows) < SURE);
  return ISO_OK;
}

/* What stands beside the numbers that something is compared with or bound by, then these: those
 * above come first. Returns: how many. */
static size_t compared_with(const chk_state *k, int64_t *out, size_t most) {
  enum { FURTHEST = 1 << 16 };
  static const int64_t beside[] = {1, -1, 0};
  size_t n = 0;
  for (size_t b = 0; b < sizeof beside / sizeof *beside; b++)
    for (uint32_t i = 0; i < k->n_terms; i++) {
      const rule_term *call = k->term[i].call;
      const rule_choice choice = call ? rule_operator_of(call->u.s)->choice : RULE_CHOICE_NONE;
      if (choice != RULE_CHOICE_COMPARE && choice != RULE_CHOICE_BOUND) continue;
      for (uint32_t j = 1; j < call->n; j++) {
        const int64_t x = call->child[j]->kind == RULE_INT ? call->child[j]->u.i + beside[b] : -1;
        if (x >= 0 && x <= FURTHEST && n < most) out[n++] = x;
      }
    }
  return n;
}

/* Floats that a mask gives by chance: near and far. */
static void draw_floats(rule_tensor *own, iso_rng *rng) {
  enum { FURTHEST = 1 << 16 };
  for (int64_t i = 0; i < own->numel; i++)
    rule_tensor_set(own, i, pow(FURTHEST, iso_rng_uniform(rng)));
}

/* Other integers: those captured, and by `nth` more and more above these and below, but none below
 * 0 where none was captured; and on each second draw some beside what numbers are compared with. */
static void draw_integers(const chk_state *k, const rule_tensor *was, size_t nth, rule_tensor *own,
                          iso_rng *rng) {
  int64_t low = rule_tensor_get_int(was, 0), high = low, edge[64];
  for (int64_t i = 0; i < was->numel; i++) {
    const int64_t x = rule_tensor_get_int(was, i);
    low = x < low ? x : low, high = x > high ? x : high;
  }
  const int64_t further = 1 + (int64_t)nth, down = low < 0 ? 0 : low < further ? low : further;
  const uint64_t span = (uint64_t)(high - low) + 1 + (uint64_t)(further + down);
  const size_t n_edges = nth % 2 ? compared_with(k, edge, sizeof edge / sizeof *edge) : 0;
  for (int64_t i = 0; i < own->numel; i++) {
    const uint64_t turn = (uint64_t)i + nth / 2 * (uint64_t)own->numel;
    rule_tensor_set_int(
        own, i, n_edges ? edge[turn % n_edges] : low - down + (int64_t)iso_rng_below(rng, span));
  }
}

/* Element `i` of rank's part `n` of a whole, there. */
static int64_t place_in_whole(const cap_node *n, const rule_shape *whole, int64_t i) {
  const rule_shape *own = &n->output[0].shape;
  int64_t row = 1;
  for (uint32_t d = n->part_dim + 1; d < own->rank; d++) row *= own->dim[d];
  const int64_t part = own->dim[n->part_dim] * row, outer = i / part;
  return outer * whole->dim[n->part_dim] * row + n->part_from * row + i % part;
}

/* What leaf `t` is where the whole that it goes with is `own`. */
static iso_code put(chk_state *k, uint32_t t, const rule_tensor *own) {
  const cap_node *n = k->term[t].node;
  const cap_output *o = &n->output[0];
  const bool whole = rule_dtype_is_int(o->dtype);
  if (k->here.other[t]) return ISO_OK;
  const iso_code c = rule_tensor_new(o->dtype, &o->shape, &k->here.other[t], k->err);
  for (int64_t i = 0; !c && i < k->here.other[t]->numel; i++) {
    const int64_t from = n->part_of ? place_in_whole(n, &own->shape, i) : i;
    if (whole) rule_tensor_set_int(k->here.other[t], i, rule_tensor_get_int(own, from));
    else rule_tensor_set(k->here.other[t], i, rule_tensor_get(own, from));
  }
  return c;
}

/* Other numbers for `input` and all that goes with it. */
static iso_code draw_others(chk_state *k, uint32_t input, size_t nth) {
  const rule_tensor *was = chk_captured(k, input, 0);
  iso_rng rng = iso_rng_new(UINT64_C(0x6368616e6365) + k->o->seed, nth * k->n_terms + input);
  rule_tensor *own;
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &own, k->err);
  if (c) return c;
  if (rule_dtype_is_int(was->dtype)) draw_integers(k, was, nth, own, &rng);
  else draw_floats(own, &rng);
  for (size_t i = 0; i < k->cert.n_fixed && !c; i++)
    if (goes_with(k, input, k->cert.fixed[i])) c = put(k, k->cert.fixed[i], own);
  rule_tensor_unref(own);
  return c;
}

static void drop_others(chk_state *k) {
  for (size_t i = 0; i < k->n_terms; i++) {
    rule_tensor_unref(k->here.other[i]);
    k->here.other[i] = NULL;
  }
}

/* Which of the fixed leaves are such, or parts of one. Returns: in `any` whether one is. */
static iso_code find_chance(chk_state *k, bool *chance, bool *any) {
  iso_code c = ISO_OK;
  *any = false;
  for (size_t i = 0; i < k->cert.n_fixed && !c; i++) {
    c = may_be_chance(k, whole_of(k, k->cert.fixed[i]), &chance[i]);
    *any |= chance[i];
  }
  return c;
}

iso_code chk_run_chance(chk_state *k) {
  bool *need = calloc(k->n_terms + 1, 1), *chance = calloc(k->cert.n_fixed + 1, 1);
  bool done = false, hides, any = false;
  k->here.other = calloc(k->n_terms + 1, sizeof(rule_tensor *));
  iso_code c = need && chance && k->here.other ? ISO_OK : chk_nomem(k);
  k->here.set = 0;
  if (!c) c = find_chance(k, chance, &any);
  for (size_t nth = 0; nth < DRAWS && any && !c && !chk_settled(k); nth++) {
    for (size_t i = 0; i < k->cert.n_fixed && !c; i++)
      if (chance[i]) c = draw_others(k, whole_of(k, k->cert.fixed[i]), nth);
    if (!c) c = chk_run_set(k, need, &done, &hides);
    if (!c && done && !hides)
      c = chk_agree_clearly(k, need,
                            "other integers than it was captured with, and so few look like what "
                            "they are by chance");
    drop_others(k);
  }
  free(k->here.other);
  k->here.other = NULL;
  free(chance);
  free(need);
  return c;
}
