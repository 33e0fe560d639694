/* Tensors that ranks hold in parts, joined with whole tensors of the other graph, an operator at a
 * time.
 *
 * Where the peers' values, put together or added, are a tensor of the other graph, the term that
 * does so becomes a node, and a rule has to join the two, as any two tensors of equal value. Peers
 * are taken in the order of the graph, so that their operands are joined when their turn comes, and
 * the rule is one of a single operator: of it on the whole, and on each part. That rule is of no
 * layer and of no rank, and serves all.
 *
 * Ranks of two groups at once are taken a group at a time: each group of one kind makes up a tensor
 * as one rank of the other kind would hold it, and these are joined as ranks of one kind are. So a
 * rule is of one kind of parts, however many kinds there are. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Returns: false where the peers cannot be put together. */
static bool distinct(state *s, const peers *p, st_parts *out) {
  out->n = 0;
  out->pieces = p->pieces;
  for (uint32_t r = 0; r < p->n; r++) {
    const eg_node e = s->map[p->side][p->node[r]];
    const rec *q = &s->rec[e.i];
    if (!q->tensor || !q->valued || q->konst || st_numel(s, e) == 0) return false;
    bool seen = false;
    for (uint32_t k = 0; k < out->n && !seen; k++) seen = eg_equal(s->g, out->of[k], e);
    if (!seen) out->of[out->n++] = e;
  }
  for (uint32_t k = 0; k < out->n; k++) {
    const rule_tensor *v = out->value[k] = st_val(s, out->of[k], s->n_draws - 1);
    if (!v || v->dtype != out->value[0]->dtype) return false;
  }
  return out->n > 1;
}

/* Moments of the sum. Returns: false where there is none. */
static bool moments_of_sum(const st_parts *p, double out[4]) {
  rule_tensor *sum = NULL;
  iso_error ignored;
  if (!rule_dtype_is_float(p->value[0]->dtype)) return false;
  for (uint32_t k = 1; k < p->n; k++)
    if (!rule_shape_eq(&p->value[0]->shape, &p->value[k]->shape)) return false;
  if (rule_tensor_new(RULE_F64, &p->value[0]->shape, &sum, &ignored)) return false;
  for (int64_t i = 0; i < sum->numel; i++) {
    double x = 0;
    for (uint32_t k = 0; k < p->n; k++) x += rule_tensor_get(p->value[k], i);
    rule_tensor_set(sum, i, x);
  }
  st_moments(sum, out);
  rule_tensor_unref(sum);
  return true;
}

/* The whole, or that divided by a number of peers: where groups of them make the parts, there may
 * be fewer parts than micro-batches that a gradient is the mean of. */
static iso_code find_fitting(state *s, peers *p, st_parts *of, bool any_terms, iso_error *err) {
  double all[4], sum[4];
  const int64_t numel = st_moments_of_all(of, all);
  const bool adds = moments_of_sum(of, sum);
  st_sought x = {.side = p->side, .any_terms = any_terms};
  iso_code c = ISO_OK;
  const int64_t end = rule_dtype_is_float(of->value[0]->dtype) ? INT64_MAX : 2;
  for (int64_t by = 1; by < end && !c && !x.met; by = st_next_times(s, p->n, by)) {
    of->by = by;
    of->scale = 1.0 / (double)of->by;
    x.numel = numel;
    st_scale_moments(all, of->scale, x.moment);
    c = st_join_cut(s, of, &x, err);
    if (!c && !x.met && adds) {
      st_scale_moments(sum, of->scale, x.moment);
      c = st_join_sum(s, of, &x, err);
    }
    if (x.met) p->whole = of->by == 1 ? x.at : st_undivided(s, x.at, of->by);
  }
  p->met = x.met;
  return c;
}

/* `last`: nothing else is tried behind it, so that parts that cancel may be of any terms. */
static iso_code find_whole(state *s, peers *p, st_parts *of, bool last, iso_error *err) {
  const iso_code c = find_fitting(s, p, of, false, err);
  const bool again = last && !p->met && s->rec[of->of[0].i].cancels;
  return c || !again ? c : find_fitting(s, p, of, true, err);
}

/* Joins the peers' parts with the whole: as a step on it, or as values tell. Where a rank's
 * call says its own shape, the whole's may stand in more than one way: one that the other graph has
 * is taken. */
static iso_code link_parts(state *s, peers *p, st_parts *of, bool last, iso_error *err) {
  of->by = 1;
  of->scale = 1;
  iso_code c = st_lift(s, p, of, false, err);
  if (!c && p->whole.i == EG_NONE) c = st_lift_collective(s, p, of, err);
  const bool resized = p->whole.i == EG_NONE;
  if (!c && resized) c = st_lift(s, p, of, true, err);
  if (c || p->whole.i == EG_NONE) return c ? c : find_whole(s, p, of, last, err);
  const eg_node lifted = p->whole;
  const int64_t end = rule_dtype_is_float(of->value[0]->dtype) ? INT64_MAX : 2;
  bool found = st_has_side(s, lifted, !p->side);
  for (int any = 0; any < (last && s->rec[lifted.i].cancels ? 2 : 1); any++)
    for (int64_t by = 1; by < end && !found && !c; by = st_next_times(s, p->n, by))
      c = st_join_lifted(s, p->side, lifted, by, any == 1, &found, err);
  p->whole = (eg_node){EG_NONE};
  if (!c && !found) c = find_whole(s, p, of, last, err);
  if (!resized || p->whole.i == EG_NONE) p->whole = lifted;
  p->met = true;
  return c;
}

static iso_code link(state *s, peers *p, iso_error *err);

/* The tensor that a group of the peers makes up as one. `guesses`: or may. */
static iso_code whole_of_group(state *s, const peers *p, const uint32_t *node, uint32_t n,
                               bool guesses, eg_node *out, iso_error *err) {
  const eg_node first = s->map[p->side][node[0]];
  const peers *q = st_peers_of(s, p->side, node, n);
  bool same = true;
  for (uint32_t r = 1; r < n; r++) same &= eg_equal(s->g, s->map[p->side][node[r]], first);
  *out = same ? first : (eg_node){EG_NONE};
  if (same || !q) return ISO_OK;
  peers *some = &s->ranks.peers[q - s->ranks.peers];
  const iso_code c = some->linked ? ISO_OK : link(s, some, err);
  if (!c && (some->met || guesses)) *out = some->whole;
  return c;
}

/* Ranks of two groups at once: each group of the first kind makes up a tensor as one rank of the
 * other would hold it. Returns: in `out` these, none where a group makes up no tensor. */
static iso_code as_groups(state *s, const peers *p, uint32_t each, bool apart, bool guesses,
                          st_parts *out, iso_error *err) {
  const uint32_t groups = p->n / each;
  iso_code c = ISO_OK;
  *out = (st_parts){.by = 1, .scale = 1, .pieces = p->pieces};
  for (uint32_t k = 0; k < groups && !c; k++) {
    uint32_t node[MAX_RANKS];
    eg_node whole;
    for (uint32_t i = 0; i < each; i++) node[i] = p->node[apart ? i * groups + k : k * each + i];
    c = whole_of_group(s, p, node, each, guesses, &whole, err);
    if (c || whole.i == EG_NONE || !s->rec[whole.i].tensor || !s->rec[whole.i].valued) break;
    if (!(out->value[k] = st_val(s, whole, s->n_draws - 1))) return st_lost(&s->values, err);
    if (out->value[k]->dtype != out->value[0]->dtype) break;
    out->of[k] = whole;
    out->n = k + 1;
  }
  if (out->n < groups) out->n = 0;
  for (uint32_t k = 1; k < out->n; k++)
    if (eg_equal(s->g, out->of[k], out->of[0])) out->n = 0;
  return c;
}

/* `guesses`: a whole is guessed for tensors that groups are guessed to have. */
static iso_code link_groups(state *s, peers *p, bool guesses, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t each = p->n / 2; each >= 2 && !c && p->whole.i == EG_NONE && !p->met; each--)
    for (int apart = 0; apart < 2 && p->n % each == 0 && !c && !p->met; apart++) {
      st_parts of;
      if (p->whole.i != EG_NONE) break;
      c = as_groups(s, p, each, apart == 1, guesses, &of, err);
      if (c || of.n < 2) continue;
      c = guesses ? st_guess_whole(s, p, &of, err) : link_parts(s, p, &of, false, err);
    }
  return c;
}

/* Whether these are some of the summands of a sum, or of what is put together: of a piece alone the
 * other graph has no whole, and where all are 0 any would do. */
static bool is_some(const state *s, const peers *p) {
  const st_links *x = &s->ranks.links;
  const int32_t at = s->rec[s->map[p->side][p->node[0]].i].node[p->side];
  bool some = s->ranks.inner[p->side][p->node[0]];
  for (uint32_t k = at < 0 ? 0 : x->first[p->side][at];
       at >= 0 && k < x->first[p->side][at + 1] && !some; k++) {
    const peers *q = &s->ranks.peers[x->peer[p->side][k]];
    for (uint32_t a = 0; a < q->n && q->pieces && !some; a++) {
      some = true;
      for (uint32_t b = 0; b < p->n && some; b++) some = q->node[a] != p->node[b];
    }
  }
  return some;
}

static iso_code link_distinct(state *s, peers *p, st_parts *of, iso_error *err) {
  const bool groups = of->n == p->n;
  iso_code c = groups ? link_groups(s, p, false, err) : ISO_OK;
  if (!c && !p->met) c = link_parts(s, p, of, !is_some(s, p), err);
  if (c || p->met) return c;
  of->by = 1;
  of->scale = 1;
  c = st_guess_whole(s, p, of, err);
  return !c && groups && p->whole.i == EG_NONE ? link_groups(s, p, true, err) : c;
}

static iso_code link(state *s, peers *p, iso_error *err) {
  st_parts of;
  p->linked = true;
  bool known = true;
  for (uint32_t r = 0; r < p->n; r++)
    known &= st_has_side(s, s->map[p->side][p->node[r]], !p->side);
  if (known || !distinct(s, p, &of)) return ISO_OK;
  const bool was = s->ranks.tiling;
  bool any;
  iso_code c = st_join_tiles(s, p, &any, err);
  s->ranks.tiling |= any;
  if (!c) c = link_distinct(s, p, &of, err);
  s->ranks.tiling = was;
  return c;
}

/* ---- the peers below two tensors ---- */

/* The peers of each captured node, of equal calls at the first one. */
static bool index_peers(state *s) {
  st_links *x = &s->ranks.links;
  for (int side = 0; side < 2; side++) {
    const size_t n = s->graph[side]->n_nodes;
    x->mark[side] = calloc(n + 1, sizeof *x->mark[side]);
    x->first[side] = calloc(n + 2, sizeof *x->first[side]);
    if (!x->mark[side] || !x->first[side]) return false;
  }
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < s->ranks.n_peers; i++) {
      const peers *p = &s->ranks.peers[i];
      x->n_of[p->side] += pass == 1;
      for (uint32_t r = 0; r < p->n; r++) {
        const int32_t at = s->rec[s->map[p->side][p->node[r]].i].node[p->side];
        uint32_t *first = x->first[p->side];
        if (at < 0) continue;
        if (pass == 0) first[at]++;
        else x->peer[p->side][--first[at]] = (uint32_t)i;
      }
    }
    for (int side = 0; side < 2 && pass == 0; side++) {
      const size_t n = s->graph[side]->n_nodes;
      for (size_t i = 1; i <= n; i++) x->first[side][i] += x->first[side][i - 1];
      if (!(x->peer[side] = calloc((size_t)x->first[side][n] + 1, sizeof *x->peer[side])))
        return false;
    }
  }
  x->below = calloc(s->ranks.n_peers + 1, sizeof *x->below);
  x->stamped = calloc(s->ranks.n_peers + 1, sizeof *x->stamped);
  return x->below && x->stamped;
}

bool st_are_peers(const state *s, eg_class a, eg_class b) {
  const st_links *x = &s->ranks.links;
  const eg_node *m;
  const size_t n = x->below ? eg_class_nodes(s->g, a, &m) : 0;
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) {
      const int32_t at = s->rec[m[i].i].node[side];
      if (at < 0) continue;
      for (uint32_t k = x->first[side][at]; k < x->first[side][at + 1]; k++) {
        const peers *p = &s->ranks.peers[x->peer[side][k]];
        for (uint32_t r = 0; r < p->n; r++)
          if (eg_class_of(s->g, s->map[side][p->node[r]]).i == b.i) return true;
      }
    }
  return false;
}

void st_free_links(state *s) {
  st_links *x = &s->ranks.links;
  st_free_tiles(s);
  for (int side = 0; side < 2; side++) {
    free(s->ranks.scaled[side]);
    s->ranks.scaled[side] = NULL;
    free(x->mark[side]);
    free(x->first[side]);
    free(x->peer[side]);
  }
  free(x->below);
  free(x->stamped);
  free(x->seen);
  free(x->whole);
  *x = (st_links){0};
}

/* Marks the captured nodes of `e`, and collects their peers. `linked`: whether all of these were
 * linked before. Returns: whether they were, and there are some: what is below them was looked at
 * then. */
static bool mark_nodes(state *s, eg_node e, bool *linked) {
  st_links *x = &s->ranks.links;
  bool any = false;
  *linked = true;
  for (int side = 0; side < 2; side++) {
    const int32_t at = s->rec[e.i].node[side];
    if (at < 0) continue;
    x->mark[side][at] = x->stamp;
    for (uint32_t k = x->first[side][at]; k < x->first[side][at + 1]; k++) {
      const uint32_t p = x->peer[side][k];
      any = true;
      if (s->ranks.peers[p].linked) continue;
      *linked = false;
      if (x->stamped[p] == x->stamp) continue;
      x->stamped[p] = x->stamp;
      x->below[x->n_below++] = p;
    }
  }
  return any && *linked;
}

/* Whether the other graph holds tensors of a class: as one, or as its ranks' parts, where the side
 * that has them as one has no ranks to link below. */
static bool held_by_both(const state *s, const eg_node *m, size_t n) {
  const st_links *x = &s->ranks.links;
  bool side[2] = {false, false}, whole[2] = {false, false};
  for (size_t i = 0; i < n; i++)
    for (int d = 0; d < 2; d++) {
      side[d] |= s->rec[m[i].i].node[d] >= 0;
      whole[d] |= m[i].i < x->cap_whole && x->whole[m[i].i] == 1 + d;
    }
  for (int d = 0; d < 2; d++) side[d] |= whole[d] && x->n_of[!d] == 0;
  return side[LEFT] && side[RIGHT];
}

/* Marks the captured nodes below `e` that the other graph does not hold. Returns: whether all peers
 * there were linked before. Then nothing below is walked again: its marks tell nothing of peers
 * that are still to be linked, and without this each of a deep model's outputs would walk all
 * layers. A node on a cycle counts as not done. */
static bool cone(state *s, eg_node e) {
  st_links *x = &s->ranks.links;
  if (x->seen[e.i].stamp == x->stamp || x->seen[e.i].done) return x->seen[e.i].done;
  x->seen[e.i].stamp = x->stamp;
  bool done = true;
  if (mark_nodes(s, e, &done)) return x->seen[e.i].done = true;
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_class ch = eg_node_child(s->g, e, k);
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, ch, &m);
    if (held_by_both(s, m, n)) continue;
    for (size_t i = 0; i < n; i++) done &= cone(s, m[i]);
  }
  return x->seen[e.i].done = done;
}

/* All peers are marked, but for those that the other graph holds, too. */
static bool below(state *s, const peers *p) {
  const st_links *x = &s->ranks.links;
  uint32_t marked = 0, shared = 0;
  for (uint32_t r = 0; r < p->n; r++) {
    const eg_node e = s->map[p->side][p->node[r]];
    const int32_t first = s->rec[e.i].node[p->side]; /* equal calls are one e-node */
    if (first >= 0 && x->mark[p->side][first] == x->stamp) marked++;
    else shared += st_has_side(s, e, !p->side);
  }
  return marked > 0 && marked + shared == p->n;
}

static int by_number(const void *pa, const void *pb) {
  const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
  return a < b ? -1 : a > b;
}

/* ---- what is below two tensors ---- */

/* Marks what is below all peers of a captured node. */
static void cones_of_peers(state *s, int side, uint32_t at) {
  const st_links *x = &s->ranks.links;
  for (uint32_t k = x->first[side][at]; k < x->first[side][at + 1]; k++) {
    const peers *p = &s->ranks.peers[x->peer[side][k]];
    for (uint32_t r = 0; r < p->n; r++) cone(s, s->map[side][p->node[r]]);
  }
}

/* Of an output that is a rank's part of a tensor, or has to equal one, the other ranks' parts are
 * marked, too, as they would be below that tensor. */
static void cones_of_outputs(state *s, eg_node e) {
  for (int deep = 0; deep < 4 && st_made(&s->rec[e.i]) && eg_node_arity(s->g, e) > 0; deep++)
    e = (eg_node){eg_node_original(s->g, e, 0).i}; /* another layout of it */
  for (int side = 0; side < 2; side++) {
    const int32_t at = s->rec[e.i].node[side];
    for (size_t i = 0; i < s->graph[side]->n_outputs && at >= 0; i++)
      for (int d = 0; d < 2 && s->graph[side]->output[i].node == (uint32_t)at; d++)
        if (i < s->graph[d]->n_outputs) cones_of_peers(s, d, s->graph[d]->output[i].node);
  }
}

iso_code st_link_shards(state *s, eg_node u, eg_node t, bool *any, iso_error *err) {
  st_links *x = &s->ranks.links;
  *any = false;
  if (s->ranks.linking || !s->ranks.n_peers) return ISO_OK;
  if (!x->below) {
    if (!index_peers(s)) return nomem(err);
    for (int side = 0; side < 2 && !s->ranks.by_steps; side++) {
      iso_code c = st_join_running(s, side, err);
      if (c) return c;
    }
  }
  if (!s->ranks.n_times) st_find_times(s);
  /* Micro-batches of one graph and ranks of the other one may be the same rows, each tensor of one
   * so many times the other's: sums over all of them are rules of these then. */
  if (x->n_of[LEFT] && x->n_of[RIGHT]) {
    iso_code c = st_join_twins(s, u, t, any, err);
    if (c || eg_equal(s->g, u, t)) return c;
  }
  if (!iso_grow(x->seen, x->cap_seen, s->n_rec + 1)) return nomem(err);
  x->stamp++;
  x->n_below = 0;
  cone(s, u);
  cone(s, t);
  cones_of_outputs(s, u);
  cones_of_outputs(s, t);
  qsort(x->below, x->n_below, sizeof *x->below, by_number);
  iso_code c = ISO_OK;
  s->ranks.linking = true;
  for (size_t i = 0; i < x->n_below && !c; i++) {
    peers *p = &s->ranks.peers[x->below[i]];
    if (p->linked || !below(s, p)) continue;
    c = link(s, p, err);
    *any |= p->met;
  }
  for (size_t i = 0; i < x->n_below && !c; i++) {
    const peers *p = &s->ranks.peers[x->below[i]];
    if (!p->met || p->whole.i == EG_NONE) continue;
    if (!iso_grow(x->whole, x->cap_whole, (size_t)p->whole.i + 1)) c = nomem(err);
    else x->whole[p->whole.i] = (uint8_t)(1 + p->side);
  }
  s->ranks.linking = false;
  return c;
}
