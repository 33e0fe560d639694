/* The cone of an e-node: the classes from which it is computed, nearest first; and the smallest
 * pattern of each class under the cut at hand.
 *
 * Invariant: `cost` and `best` are those of the cut that `costs` was called for last; a class whose
 * cost is infinite has no pattern. */
#include "synth/search/search_int.h"
#include "synth/search/frontier.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static const double INFINITE = 1e9;

bool fr_cone_new(cone *k, size_t n) {
  *k = (cone){.cls = calloc(2 * CONE_WIDE, sizeof *k->cls),
              .in = calloc(n, 1),
              .cost = calloc(n, sizeof *k->cost),
              .best = calloc(n, sizeof *k->best),
              .cut = calloc(n, 1),
              .opened = calloc(n, 1),
              .seen = calloc(n, 1),
              .queue = calloc(2 * CONE_WIDE, sizeof *k->queue)};
  return k->cls && k->in && k->cost && k->best && k->cut && k->opened && k->seen && k->queue;
}

void fr_cone_free(cone *k) {
  void *const owned[] = {k->cls,  k->in,    k->cost, k->best,      k->cut,    k->opened,
                         k->seen, k->queue, k->way,  k->first_way, k->operand};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

const rule_term *fr_literal_class(state *s, uint32_t c) {
  const eg_node *m;
  return eg_class_nodes(s->g, (eg_class){c}, &m) ? st_literal(s, m[0]) : NULL;
}

/* The position of a captured node in each graph: its operands have earlier ones. */
typedef struct place {
  uint32_t before[2];
} place;

/* Whether an e-node may come before `p`; then `p` becomes the bound for its operands. Classes hold
 * equal tensors of several places (two masks that are empty, two layers' zeros): to go on from a
 * later one would lead round in a circle. */
static bool earlier(const rec *r, place *p) {
  bool any = st_made(r);
  for (int side = 0; side < 2; side++)
    any |= r->node[side] >= 0 && (uint32_t)r->node[side] < p->before[side];
  for (int side = 0; side < 2; side++)
    if (r->node[side] >= 0 && (uint32_t)r->node[side] < p->before[side])
      p->before[side] = (uint32_t)r->node[side];
  return any;
}

static bool widen(place *p, const place *q) {
  bool wider = false;
  for (int side = 0; side < 2; side++)
    if (q->before[side] > p->before[side]) p->before[side] = q->before[side], wider = true;
  return wider;
}

typedef struct walk {
  state *s;
  cone *k;
  uint8_t bit;
  place *at;       /* by class id */
  uint8_t *queued; /* by class id */
  uint32_t *queue; /* a ring */
  size_t head, n, found, most;
} walk;

enum { RING = 4096 };

/* `near`: it comes before all that is queued. */
static void enter(walk *w, uint32_t c, const place *p, bool near) {
  cone *k = w->k;
  if (!(k->in[c] & w->bit)) {
    if (w->found == w->most) {
      k->full = true;
      return;
    }
    w->found++;
    if (!k->in[c]) k->cls[k->n++] = c;
    k->in[c] |= w->bit;
    w->at[c] = *p;
  } else if (!widen(&w->at[c], p)) return;
  if (w->queued[c] || w->n == RING) return;
  w->queued[c] = 1;
  if (near) w->head = (w->head + RING - 1) % RING;
  w->queue[(w->head + (near ? 0 : w->n)) % RING] = c;
  w->n++;
}

/* While ranks are joined: calls of neither graph, which put their parts together, or are steps on
 * tensors that were put together. */
static bool is_glue(const state *s, eg_node e) { return s->ranks.linking && st_made(&s->rec[e.i]); }

/* While ranks are joined, calls that put their parts together count as no step, or the cones of
 * many ranks would end before they meet in these. Steps on tensors that were put together count, or
 * a cone would go down all layers by them before it holds a call's other operand. */
static bool lays_together(state *s, eg_node e) {
  if (!is_glue(s, e) || s->rec[e.i].leaf) return false;
  const char *op = st_operator(s, e);
  return st_is_list(s, e) || fr_layout_op(op) || st_calls(s, e, OP_CAT) || rule_is_collective(op);
}

/* While a rule without ranks is looked for: a tensor put together of their parts is known as a
 * whole, by steps on whole tensors. */
static bool of_parts(const state *s, eg_node e) {
  if (!s->ranks.whole || s->rec[e.i].leaf) return false;
  if (!rule_is_collective(st_operator(s, e)) && !(is_glue(s, e) && st_calls(s, e, OP_CAT)))
    return false;
  const eg_node list = {eg_node_original(s->g, e, 0).i};
  bool differ = false;
  for (size_t a = 1; a < eg_node_arity(s->g, list); a++)
    differ |= eg_node_child(s->g, list, a).i != eg_node_child(s->g, list, 0).i;
  return differ;
}

/* The last captured node of each side that `e` is made of, UINT32_MAX on a side without. The search
 * goes down only through e-nodes of neither graph, which are a few steps deep. */
static void made_of(const state *s, eg_node e, int depth, place *p) {
  enum { DEEP = 8 };
  const rec *r = &s->rec[e.i];
  for (int side = 0; side < 2; side++)
    if (r->node[side] >= 0 &&
        (p->before[side] == UINT32_MAX || (uint32_t)r->node[side] > p->before[side]))
      p->before[side] = (uint32_t)r->node[side];
  if (!st_made(r) || depth == DEEP) return;
  for (size_t a = 0; a < eg_node_arity(s->g, e); a++)
    made_of(s, (eg_node){eg_node_original(s->g, e, a).i}, depth + 1, p);
}

/* Where the walk from one root begins. Nodes of the other root's graph that come after that root
 * are no part of a rule about the two. */
static place beginning(const state *s, eg_node root, eg_node other) {
  place own = {{UINT32_MAX, UINT32_MAX}}, p = own;
  made_of(s, root, 0, &own);
  made_of(s, other, 0, &p);
  for (int side = 0; side < 2; side++)
    if (own.before[side] != UINT32_MAX) p.before[side] = UINT32_MAX;
  return p;
}

iso_code fr_explore(state *s, cone *k, eg_node root, eg_node other, uint8_t bit, iso_error *err) {
  const size_t n = eg_count_added(s->g);
  walk w = {.s = s,
            .k = k,
            .bit = bit,
            .most = s->ranks.wide ? CONE_WIDE : CONE_MAX,
            .at = malloc(n * sizeof *w.at),
            .queued = calloc(n, 1),
            .queue = calloc(RING, sizeof *w.queue)};
  iso_code code = w.at && w.queued && w.queue ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  const place start = beginning(s, root, other);
  bool first = true;
  if (!code) enter(&w, eg_class_of(s->g, root).i, &start, false);
  while (!code && w.n) {
    const uint32_t c = w.queue[w.head];
    w.head = (w.head + 1) % RING;
    w.n--;
    w.queued[c] = 0;
    const eg_node *m;
    const size_t cnt = eg_class_nodes(s->g, (eg_class){c}, &m);
    for (size_t i = 0; i < cnt; i++) {
      if (first && m[i].i != root.i && !s->rec[m[i].i].leaf)
        continue; /* the root is this e-node, not its class */
      place p = w.at[c];
      if ((!earlier(&s->rec[m[i].i], &p) && !first) || of_parts(s, m[i])) continue;
      for (size_t a = 0; a < eg_node_arity(s->g, m[i]); a++) {
        const uint32_t d = eg_node_child(s->g, m[i], a).i;
        if (!fr_literal_class(s, d)) enter(&w, d, &p, lays_together(s, m[i]));
      }
    }
    first = false;
  }
  free(w.at);
  free(w.queued);
  free(w.queue);
  return code;
}

/* Whether a captured input is in it. */
static bool input_class(state *s, eg_class c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) {
      const int32_t k = s->rec[m[i].i].node[side];
      if (k >= 0 && s->graph[side]->node[k].kind == SYNTH_INPUT) return true;
    }
  return false;
}

static bool class_written_out(state *s, eg_class c, const asked *above);

bool fr_numbers_of(state *s, eg_node e, const asked *above) {
  const rec *r = &s->rec[e.i];
  if (!r->konst || !r->tensor || r->leaf || !st_made(r)) return false;
  const bool table = st_calls(s, e, OP_RESHAPE);
  for (size_t a = 0; a < eg_node_arity(s->g, e); a++) {
    const eg_class c = eg_node_child(s->g, e, a);
    const eg_node d = st_rep(s, c);
    if (d.i == EG_NONE || !s->rec[d.i].tensor) continue;
    if (!table || input_class(s, eg_class_of(s->g, e)) || !class_written_out(s, c, above))
      return false;
  }
  return true;
}

static bool class_written_out(state *s, eg_class c, const asked *above) {
  const asked here = {eg_find(s->g, c), above};
  for (const asked *k = above; k; k = k->above)
    if (k->c.i == here.c.i) return false;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (fr_numbers_of(s, m[i], &here)) return true;
  return false;
}

bool fr_written_out(state *s, eg_class c) { return class_written_out(s, c, NULL); }

uint32_t fr_view_of_part(state *s, const cone *k, uint32_t c) {
  const eg_node *m;
  const size_t n = s->ranks.linking ? eg_class_nodes(s->g, (eg_class){c}, &m) : 0;
  uint32_t part = EG_NONE;
  for (size_t i = 0; i < n; i++) {
    if (!is_glue(s, m[i]) || s->rec[m[i].i].leaf || eg_node_arity(s->g, m[i]) == 0) return EG_NONE;
    const uint32_t of = eg_node_child(s->g, m[i], 0).i;
    if (fr_layout_op(st_operator(s, m[i])) && k->in[of] == 3 && fr_shared(s, of)) part = of;
  }
  return part;
}

/* While ranks are joined: whether `e` puts tensors together. */
static bool gathers(const state *s, eg_node e) {
  return is_glue(s, e) && (st_calls(s, e, OP_CAT) || rule_is_collective(st_operator(s, e)));
}

/* Whether one number fills it. */
static bool is_fill(state *s, uint32_t c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++)
    if (!s->rec[m[i].i].leaf && rule_operator_of(st_operator(s, m[i]))->fills) return true;
  return false;
}

/* Whether it is one of the tiles that a ring's weights are. */
static bool is_weights(state *s, eg_node e) {
  const st_tiles *x = &s->ranks.tiles;
  for (size_t i = 0; i < x->n_rows; i++)
    for (uint32_t k = 0; k < x->row[i].n; k++)
      if (eg_equal(s->g, x->row[i].tile[k], e)) return true;
  return false;
}

/* While tiles are joined: whether `e` masks weights that both cones hold without the mask. */
static bool masks_tile(state *s, const cone *k, eg_node e) {
  return s->ranks.tiling && is_glue(s, e) && !s->rec[e.i].leaf &&
         st_calls(s, e, OP_MASKED_FILL_SCALAR) && k->in[eg_node_child(s->g, e, 0).i] == 3 &&
         is_weights(s, e);
}

bool fr_masked_tile(state *s, const cone *k, uint32_t c) {
  const eg_node *m;
  const size_t n = s->ranks.tiling ? eg_class_nodes(s->g, (eg_class){c}, &m) : 0;
  for (size_t i = 0; i < n; i++)
    if (masks_tile(s, k, m[i])) return true;
  return false;
}

static bool put_together(state *s, const cone *k, eg_node e, int depth);

/* Whether a class is put together of parts that both sides have: rows, of tiles. */
static bool of_tiles(state *s, const cone *k, uint32_t c, int depth) {
  enum { DEEP = 4 };
  const eg_node *m;
  const size_t n = depth < DEEP ? eg_class_nodes(s->g, (eg_class){c}, &m) : 0;
  for (size_t i = 0; i < n; i++) {
    if (s->rec[m[i].i].leaf || eg_node_arity(s->g, m[i]) == 0) continue;
    if (gathers(s, m[i]) && put_together(s, k, m[i], depth + 1)) return true;
    if (is_glue(s, m[i]) && st_calls(s, m[i], OP_DIV_TENSOR) && /* of a scaled loss */
        of_tiles(s, k, eg_node_child(s->g, m[i], 0).i, depth + 1))
      return true;
  }
  return false;
}

/* While ranks are joined: a concatenation of parts that both sides have, or that are fills, belongs
 * into a rule of one operator, for any number of parts; so does a mask on what both have. */
static bool put_together(state *s, const cone *k, eg_node e, int depth) {
  if (!gathers(s, e)) return k->cut[eg_node_child(s->g, e, 0).i];
  const eg_node list = {eg_node_original(s->g, e, 0).i};
  bool any = false;
  for (size_t a = 0; a < eg_node_arity(s->g, list); a++) {
    const uint32_t c = eg_node_child(s->g, list, a).i, part = fr_view_of_part(s, k, c);
    const bool there =
        k->cut[part == EG_NONE ? c : part] || fr_masked_tile(s, k, c) || of_tiles(s, k, c, depth);
    if (!there && (s->rec[e.i].konst || !is_fill(s, c))) return false;
    any |= there;
  }
  return any;
}

bool fr_tiled_row(state *s, const cone *k, uint32_t c) {
  const eg_node *m;
  const size_t n = s->ranks.tiling ? eg_class_nodes(s->g, (eg_class){c}, &m) : 0;
  for (size_t i = 0; i < n; i++) {
    if (s->rec[m[i].i].leaf || !is_glue(s, m[i])) continue;
    if (st_calls(s, m[i], OP_DIV_TENSOR) || /* tiles of a scaled loss; a product of tiles */
        rule_operator_of(st_operator(s, m[i]))->contracts == RULE_CONTRACTS_MATRICES) {
      const uint32_t of = eg_node_child(s->g, m[i], 0).i;
      if (of != c && k->in[of] && (fr_tiled_row(s, k, of) || fr_masked_tile(s, k, of))) return true;
    }
    if (!st_calls(s, m[i], OP_CAT)) continue;
    const eg_node list = {eg_node_original(s->g, m[i], 0).i};
    const rule_term *d = st_literal(s, (eg_node){eg_node_original(s->g, m[i], 1).i});
    bool both = d && d->kind == RULE_INT && d->u.i > 0 && d->u.i == s->rec[m[i].i].shape.rank - 1;
    for (size_t a = 0; a < eg_node_arity(s->g, list) && both; a++) {
      const uint32_t part = eg_node_child(s->g, list, a).i;
      both = k->in[part] == 3 || is_fill(s, part);
    }
    if (both) return true;
  }
  return false;
}

/* A constant is known without the parts that it is put together of. */
static bool parts_of_constant(state *s, eg_node e) {
  const eg_node *m;
  if (!is_glue(s, e) || s->rec[e.i].konst || s->rec[e.i].leaf) return false;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].konst) return true;
  return false;
}

/* ---- what a pattern costs ---- */

/* Returns: false where `e` has no pattern under any cut. Its operands are behind those of the
 * cone. */
static bool way_of(state *s, cone *k, eg_node e, fr_way *out) {
  const rec *r = &s->rec[e.i];
  *out = (fr_way){.e = e, .kind = FR_LITERAL, .first = (uint32_t)k->n_operands};
  if (st_literal(s, e)) return true;
  out->kind = FR_LEAF;
  out->own = r->konst ? 4 : 1;
  if (r->leaf) return r->atom;
  if (of_parts(s, e) || parts_of_constant(s, e)) return false;
  const char *op = st_operator(s, e);
  out->kind = gathers(s, e) || masks_tile(s, k, e) ? FR_PUT_TOGETHER : FR_CALL;
  out->own = strcmp(op, "#list") == 0 || rule_is_getitem(op) ? 0.01 : 1;
  /* A value that a graph computes is more general than a constant's layout that was read off its
   * values. */
  if (r->konst && st_made(r)) out->own += 0.5;
  for (size_t a = 0; a < eg_node_arity(s->g, e); a++) {
    const uint32_t d = eg_node_child(s->g, e, a).i;
    if (k->in[d]) k->operand[out->first + out->n++] = d;
    else if (!fr_literal_class(s, d)) return false;
  }
  return true;
}

iso_code fr_cone_ways(state *s, cone *k, iso_error *err) {
  k->n_ways = k->n_operands = 0;
  if (!(k->first_way = calloc(k->n + 1, sizeof *k->first_way)))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < k->n; i++) {
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, (eg_class){k->cls[i]}, &m);
    if (!iso_grow(k->way, k->cap_ways, k->n_ways + n))
      return iso_fail(err, ISO_NOMEM, "out of memory");
    for (size_t j = 0; j < n; j++) {
      const size_t most = k->n_operands + eg_node_arity(s->g, m[j]);
      if (!iso_grow(k->operand, k->cap_operands, most))
        return iso_fail(err, ISO_NOMEM, "out of memory");
      if (!way_of(s, k, m[j], &k->way[k->n_ways])) continue;
      k->n_operands += k->way[k->n_ways++].n;
    }
    k->first_way[i + 1] = (uint32_t)k->n_ways;
  }
  return ISO_OK;
}

/* The size of a class's pattern by one of its ways, under the cut at hand. */
static double cost_by(state *s, const cone *k, uint32_t c, const fr_way *w) {
  if (w->kind == FR_LITERAL) return 0;
  /* A constant's leaf that only one side reads is useless as a variable: any other form of the
   * terms above it is better. */
  if (w->kind == FR_LEAF) return k->opened[c] ? INFINITE : w->own;
  if (k->opened[c] == READ && fr_numbers_of(s, w->e, NULL)) return INFINITE;
  double sum = w->own;
  for (uint32_t a = 0; a < w->n && sum < INFINITE; a++) sum += k->cost[k->operand[w->first + a]];
  return w->kind == FR_PUT_TOGETHER && sum < INFINITE && put_together(s, k, w->e, 0) ? 0.5 : sum;
}

/* `seen`: of the classes that are seen alone. */
static void relax(state *s, cone *k, bool seen) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = k->n; i-- > 0;) {
      const uint32_t c = k->cls[i];
      if (k->cut[c] || k->opened[c] == SHUT || (seen && !k->seen[c])) continue;
      for (uint32_t j = k->first_way[i]; j < k->first_way[i + 1]; j++) {
        const double x = cost_by(s, k, c, &k->way[j]);
        if (x < k->cost[c] - 1e-9) {
          k->cost[c] = x;
          k->best[c] = k->way[j].e.i;
          changed = true;
        }
      }
    }
  }
}

void fr_costs(state *s, cone *k) {
  for (size_t i = 0; i < k->n; i++) {
    k->cost[k->cls[i]] = k->cut[k->cls[i]] ? 1 : INFINITE;
    k->best[k->cls[i]] = EG_NONE;
  }
  relax(s, k, false);
}

/* Whether the pattern of class `i` of the cone holds one that is seen. */
static bool rests_on_seen(const cone *k, size_t i) {
  for (uint32_t j = k->first_way[i]; j < k->first_way[i + 1]; j++) {
    if (k->way[j].e.i != k->best[k->cls[i]]) continue;
    for (uint32_t a = 0; a < k->way[j].n; a++)
      if (k->seen[k->operand[k->way[j].first + a]]) return true;
  }
  return false;
}

void fr_costs_without(state *s, cone *k, const uint32_t *of, size_t n) {
  memset(k->seen, 0, eg_count_added(s->g));
  for (size_t i = 0; i < n; i++) k->seen[of[i]] = 1, k->cut[of[i]] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = k->n; i-- > 0;) {
      const uint32_t c = k->cls[i];
      if (!k->seen[c] && !k->cut[c] && k->best[c] != EG_NONE && rests_on_seen(k, i))
        k->seen[c] = 1, changed = true;
    }
  }
  for (size_t i = 0; i < k->n; i++)
    if (k->seen[k->cls[i]]) k->cost[k->cls[i]] = INFINITE, k->best[k->cls[i]] = EG_NONE;
  relax(s, k, true);
}

double fr_root_cost(state *s, cone *k, eg_node root) {
  const uint32_t c = eg_class_of(s->g, root).i;
  size_t i = 0;
  if (k->cut[c]) return 1;
  while (i < k->n && k->cls[i] != c) i++;
  for (uint32_t j = i < k->n ? k->first_way[i] : 0; i < k->n && j < k->first_way[i + 1]; j++)
    if (k->way[j].e.i == root.i) return cost_by(s, k, c, &k->way[j]);
  return INFINITE;
}

/* ---- what both sides can be cut at ---- */

static void reach_below(state *s, cone *k, eg_node e, uint8_t bit, size_t *n) {
  for (size_t a = 0; a < eg_node_arity(s->g, e); a++) {
    const uint32_t d = eg_node_child(s->g, e, a).i;
    if (k->seen[d] || !(k->in[d] & bit)) continue;
    k->seen[d] = 1;
    k->queue[(*n)++] = d;
  }
}

/* The classes that the pattern of `root` can hold, into k->seen: the walk ends at cut ones. */
static void reach(state *s, cone *k, eg_node root, uint8_t bit) {
  size_t n = 0;
  memset(k->seen, 0, eg_count_added(s->g));
  reach_below(s, k, root, bit, &n);
  for (size_t i = 0; i < n; i++) {
    const uint32_t c = k->queue[i];
    const eg_node *m;
    const size_t n_nodes = eg_class_nodes(s->g, (eg_class){c}, &m);
    if (k->cut[c] || k->opened[c] == SHUT) continue;
    for (size_t j = 0; j < n_nodes; j++) reach_below(s, k, m[j], bit, &n);
  }
}

void fr_narrow(state *s, cone *k, eg_node u, eg_node t) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint8_t bit = 2; bit > 0; bit--) {
      reach(s, k, bit == 2 ? t : u, bit);
      for (size_t i = 0; i < k->n; i++)
        if (k->cut[k->cls[i]] && !k->seen[k->cls[i]]) k->cut[k->cls[i]] = 0, changed = true;
    }
  }
}

/* Of what the search made: behind all that it is made of. */
static double computed_at(const state *s, uint32_t c, int depth) {
  enum { DEEP = 12 };
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  double last = 0;
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) {
      const int32_t node = s->rec[m[i].i].node[side];
      const double at = node < 0 ? 0 : (double)node / (double)s->graph[side]->n_nodes;
      if (at > last) last = at;
    }
  for (size_t i = 0; i < n && last == 0 && depth < DEEP; i++)
    for (size_t a = 0; a < eg_node_arity(s->g, m[i]); a++) {
      const double at = computed_at(s, eg_node_child(s->g, m[i], a).i, depth + 1) + 1e-9;
      if (at > last) last = at;
    }
  return last;
}

double fr_place(const state *s, uint32_t c) { return computed_at(s, c, 0); }

/* ---- which classes are opened, or cut, together ---- */

void fr_also(fr_classes *c, uint32_t cls) {
  for (size_t i = 0; i < c->n; i++)
    if (c->cls[i] == cls) return;
  if (c->n < sizeof c->cls / sizeof *c->cls) c->cls[c->n++] = cls;
}

static bool down_to_bound(state *s, const cone *k, uint32_t c, int depth, int *work,
                          fr_classes *out);

/* Whether the source of an e-node's integers is bounded: of a concatenation, all that it joins. */
static bool reads_bounded(state *s, const cone *k, eg_node e, int depth, int *work,
                          fr_classes *out) {
  const char *op = st_operator(s, e);
  const bool list = strcmp(op, "#list") == 0;
  const size_t n = eg_node_arity(s->g, e);
  if (s->rec[e.i].leaf || n == 0 || !(list || fr_moves_op(op) || rule_is_overload(op, OP_CAT)))
    return false;
  for (size_t a = 0; a < (list ? n : 1); a++) {
    const uint32_t below = eg_node_child(s->g, e, a).i;
    if (!k->in[below] || !down_to_bound(s, k, below, depth + 1, work, out)) return false;
  }
  return true;
}

/* The classes from `c` down to inputs that cannot leave their range, by operators that move their
 * elements. Returns: whether that is all that it reads. `work`: how many more classes are asked. */
static bool down_to_bound(state *s, const cone *k, uint32_t c, int depth, int *work,
                          fr_classes *out) {
  enum { DEEP = 10 };
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  if (n == 0 || depth == DEEP || (*work)-- <= 0) return false;
  const size_t before = out->n;
  fr_also(out, c);
  if (st_bound_of(s, m[0])) return true;
  for (size_t i = 0; i < n; i++) {
    const size_t here = out->n;
    if (reads_bounded(s, k, m[i], depth, work, out)) return true;
    out->n = here;
  }
  out->n = before;
  return false;
}

bool fr_down_to_bound(state *s, const cone *k, uint32_t c, fr_classes *out) {
  enum { MOST_ASKED = 400 };
  return down_to_bound(s, k, c, 0, &(int){MOST_ASKED}, out);
}

enum { BESIDE_DEEP = 4 };

/* The operands of concatenations of which `c` takes a part, by operators that move elements.
 * `walked`: the classes that were looked at as deep as this. */
static void parts_beside(state *s, uint32_t c, int depth, fr_classes *walked, fr_classes *out) {
  const eg_node *m;
  const size_t before = walked[depth].n,
               n = depth < BESIDE_DEEP ? eg_class_nodes(s->g, (eg_class){c}, &m) : 0;
  fr_also(&walked[depth], c);
  if (walked[depth].n == before) return;
  for (size_t i = 0; i < n; i++) {
    if (s->rec[m[i].i].leaf || eg_node_arity(s->g, m[i]) == 0) continue;
    const char *op = st_operator(s, m[i]);
    if (fr_moves_op(op)) parts_beside(s, eg_node_child(s->g, m[i], 0).i, depth + 1, walked, out);
    if (depth == 0 || !rule_is_overload(op, OP_CAT)) continue;
    const eg_node list = {eg_node_original(s->g, m[i], 0).i};
    for (size_t a = 0; a < eg_node_arity(s->g, list); a++)
      fr_also(out, eg_node_child(s->g, list, a).i);
  }
}

void fr_parts_beside(state *s, uint32_t c, fr_classes *out) {
  fr_classes walked[BESIDE_DEEP + 1] = {{.n = 0}};
  parts_beside(s, c, 0, walked, out);
}
