/* Rule synthesis: the abstraction frontiers that two e-classes share (Emerge, section 3.3 and 4.2).
 *
 * A frontier is a set of classes at which both sides are cut; the terms above are the pattern, and
 * each cut class becomes a variable. Cutting at every class that both cones contain gives the
 * coarsest shared frontier. Where validation refutes the rule, a class used by it is opened (taken
 * out of the set) and the pattern grows on both sides alike: a best-first search by total pattern
 * size. */
#include "synth/search/expand.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WASTED = 512, FURTHER = 8 };

/* A search over the same cone that queues nothing: its queue is full. */
static search without_queue(const search *q) {
  search alone = *q;
  alone.queue = NULL;
  alone.n = QUEUE_MAX;
  alone.home = NULL;
  return alone;
}

/* Each side reads a parameter or an input that the other does not: so does every frontier further
 * down. */
static bool reads_apart(const search *q) {
  const builder *b = q->b;
  unsigned only = 0;
  for (size_t i = 0; i < b->n_vars; i++) {
    const rec *r = &q->s->rec[b->var_as[i].i];
    if (!q->k->cut[b->var[i].i] && r->leaf && r->atom && !r->konst && b->used[i] != 3)
      only |= b->used[i];
  }
  return only == 3;
}

/* Queue the frontiers below every one in the queue, and below those. */
static void enumerate(search *q) {
  for (size_t i = 0; i < q->n; i++) {
    const opening o = q->queue[i];
    fr_expand_again(q, &o);
  }
}

/* Queues the frontiers below `o`, and `o` again, behind them: a rule that a glance leaves open
 * takes many samples, and is worth less than one that is proved. Returns: false where there is no
 * room; then nothing says that it waits. */
static bool wait(search *q, const opening *o) {
  search *at = q->home;
  if (at == q && !reads_apart(q)) fr_expand(q, o, false);
  if (at->n == QUEUE_MAX) return (void)fr_open_cut(q, q->b, o), false;
  for (size_t i = 0; i < at->n; i++)
    if (at->queue[i].waits && fr_same_opening(&at->queue[i], o)) return true;
  at->queue[at->n] = *o;
  at->queue[at->n++].waits = true;
  return true;
}

static iso_code try_opening(search *q, const opening *o, bool *fresh, bool *done, iso_error *err) {
  state *s = q->s;
  builder *b = q->b;
  *fresh = false;
  const rule_term *l, *r;
  if (!fr_open_cut(q, b, o) || !fr_build(b, q->u, q->t, &l, &r)) return ISO_OK;
  if (l->kind == RULE_VAR && r->kind == RULE_VAR) return ISO_OK;
  rule cand;
  rule_tensor *example[RULE_MAX_VARS];
  if (!fr_rule(s, b, l, r, &cand, example)) return ISO_OK;
  const bool at_once = o->narrow == SAME && o->large && o->n == 0;
  const bool glance = !o->waits && !q->taken && q->home && !st_without(s, SYNTH_LAZY);
  fr_decision as;
  iso_code c = fr_decide(s, &cand, example, glance, &as, err);
  *fresh = as.fresh;
  if (!c && as.open && !at_once && (q->brief || o->large || wait(q, o))) return ISO_OK;
  if (!c && as.open) c = fr_decide(s, &cand, example, false, &as, err);
  if (c) return c;
  q->unknown += as.fresh && as.v.status == RULE_UNKNOWN;
  const bool tested = as.index != SIZE_MAX && as.v.status == RULE_TESTED && !s->o->require_proved;
  if (tested && !q->weak->taken) {
    if (!q->weak->there) q->weak->of = *o;
    s->rules.info[as.index].passed_over |= !s->rules.info[as.index].uses;
    q->weak->there = true;
  } else if (as.index != SIZE_MAX && (tested || st_usable(s, as.index))) {
    s->rules.info[as.index].passed_over = false;
    *done = true;
    const st_use use = {.rule = as.index,
                        .from = q->u,
                        .to = q->t,
                        .prem = b->prem,
                        .n_prem = b->n_prem,
                        .as = &cand,
                        .var = b->var_as};
    return st_record_application(s, &use, err);
  }
  const bool refuted = as.v.status == RULE_REFUTED, below = refuted || !o->waits;
  if (below && !st_without(s, SYNTH_LAZY) && !q->zeros && !reads_apart(q)) fr_expand(q, o, refuted);
  return ISO_OK;
}

static bool holds_leaf(state *s, uint32_t c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].leaf) return true;
  return false;
}

/* The search without the restriction to classes that both sides depend on: frontiers are cut
 * anywhere, validation finds out that one is not shared, and it moves down a step on either side.
 * It ends at the shared frontier with which the restricted search begins. */
static iso_code try_unshared(const search *q, bool *done, iso_error *err) {
  state *s = q->s;
  const cone *k = q->k;
  const builder *b = q->b;
  uint8_t *wide = calloc(eg_count_added(s->g), 1);
  if (!wide) return iso_fail(err, ISO_NOMEM, "out of memory");
  const uint32_t cu = eg_class_of(s->g, q->u).i, ct = eg_class_of(s->g, q->t).i;
  for (size_t i = 0; i < k->n; i++) {
    const uint32_t c = k->cls[i];
    wide[c] = q->base[c] || (c != cu && c != ct && fr_shared(s, c) && !holds_leaf(s, c));
  }
  search alone = without_queue(q);
  alone.base = wide;
  const opening whole = {.n = 0};
  iso_code c = ISO_OK;
  for (bool moved = true; moved && !c && !*done && !st_stopped(s);) {
    alone.b->n_vars = 0;
    bool fresh;
    c = try_opening(&alone, &whole, &fresh, done, err);
    moved = false;
    for (size_t i = 0; i < b->n_vars; i++)
      if (k->cut[b->var[i].i] && !q->base[b->var[i].i]) moved = true, wide[b->var[i].i] = 0;
  }
  free(wide);
  return c;
}

/* From the coarsest frontier on, opens at once all classes that the values show to be tied: one way
 * down, where best-first has tried many. */
static iso_code try_tied(search *q, bool *done, iso_error *err) {
  enum { STEPS = 12 };
  state *s = q->s;
  search alone = without_queue(q);
  alone.home = q;
  opening o = {.n = 0};
  iso_code c = ISO_OK;
  for (int step = 0; step < STEPS && !c && !*done && !st_stopped(s); step++) {
    const rule_term *l, *r;
    bool tied[RULE_MAX_VARS], fresh;
    const size_t n = o.n;
    if (!fr_open_cut(&alone, q->b, &o) || !fr_build(q->b, q->u, q->t, &l, &r)) break;
    if (!(c = fr_tied(s, q->b, l, r, tied, err)) && !fr_tied_open(s, q->k, q->b, tied, &o))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
    if (c || o.n == n) break;
    fr_open_peers(&alone, &o, n);
    c = try_opening(&alone, &o, &fresh, done, err);
  }
  return c;
}

/* Whether both cones hold classes that earlier candidates left open: such a candidate mostly fails
 * the same way, and gets fewer tries where many were in vain. */
static bool holds_open(state *s, const cone *k, uint32_t cu, uint32_t ct) {
  uint8_t open = 0;
  for (size_t i = 0; i < k->n && open != 3; i++) {
    const uint32_t c = k->cls[i];
    const eg_node *m;
    const size_t n = c == cu || c == ct ? 0 : eg_class_nodes(s->g, (eg_class){c}, &m);
    for (size_t j = 0; j < n; j++)
      if (s->rec[m[j].i].open) open |= k->in[c];
  }
  return open == 3;
}

/* What is tried first, narrow cuts before others, and then what waits until that was, come before
 * all others. */
static double key(const opening *o) {
  if (!o->first) return o->size;
  return o->rest ? -1 : o->narrow ? -3 : -2;
}

/* The smallest that was not expanded, of those that wait or of the others, the first of these;
 * q->n: none. */
static size_t smallest(const search *q, bool waits) {
  size_t best = q->n;
  for (size_t i = q->done; i < q->n; i++)
    if (q->queue[i].waits == waits &&
        (best == q->n || key(&q->queue[i]) < key(&q->queue[best]) - 1e-9))
      best = i;
  return best;
}

/* Those that wait have their turn after FURTHER others; not where there is a weak one already, as
 * they are no better. `looking`: whether the others may be tried still. */
static size_t next(const search *q, bool looking) {
  const size_t other = looking ? smallest(q, false) : q->n,
               waiting = q->weak->there ? q->n : smallest(q, true);
  return waiting < q->n && (other == q->n || q->looked >= FURTHER) ? waiting : other;
}

/* Best first, `most` candidates that have to be validated; rules that were decided before cost
 * nothing. */
static iso_code try_queue(search *q, size_t most, size_t *tries, bool *done, iso_error *err) {
  enum { MOST_UNKNOWN = 2 };
  const size_t patience = most / 8; /* mostly the first few are enough */
  bool directed = q->zeros || q->brief || st_without(q->s, SYNTH_LAZY);
  iso_code c = ISO_OK;
  while (!*done && !c && !st_stopped(q->s)) {
    const size_t best = next(q, *tries < most);
    if (*tries >= most && best == q->n) break;
    if ((*tries == patience || best == q->n) && *tries && !directed) {
      directed = true;
      if ((c = try_tied(q, done, err)) || *done) break;
    }
    if (best == q->n) break;
    const opening o = q->queue[best];
    q->queue[best] = q->queue[q->done];
    q->queue[q->done++] = o;
    if (o.rest) {
      fr_expand_again(q, &o);
      continue;
    }
    bool fresh;
    const bool first = !q->weak->there;
    c = try_opening(q, &o, &fresh, done, err);
    if (!o.waits) *tries += fresh;
    q->looked = o.waits ? 0 : q->looked + (fresh && smallest(q, true) < q->n);
    /* What is equal to its operand since the others are as good as nothing: whether they are is no
     * other question further down. */
    if (q->taken && q->unknown >= MOST_UNKNOWN) break;
    if (first && q->weak->there && o.waits) break; /* others were looked at before it */
    if (first && q->weak->there && *tries + FURTHER < most) most = *tries + FURTHER;
  }
  if (c || *done || !q->weak->there) return c;
  q->weak->taken = true;
  bool fresh;
  return try_opening(q, &q->weak->of, &fresh, done, err);
}

static bool has_child(const state *s, eg_node of, uint32_t c) {
  for (size_t k = 0; k < eg_node_arity(s->g, of); k++)
    if (eg_node_child(s->g, of, k).i == c) return true;
  return false;
}

/* Whether one of `of`'s calls takes `e`: both have the same values where that call changes nothing,
 * as a clamp of numbers within its bounds, or a sum with what cancels. */
static bool takes(state *s, eg_node of, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, of), &m);
  const uint32_t c = eg_class_of(s->g, e).i;
  for (size_t i = 0; i < n; i++) {
    if (has_child(s, m[i], c)) return true;
    for (uint32_t k = 0; k < eg_node_arity(s->g, m[i]); k++) {
      const eg_node own = {eg_node_original(s->g, m[i], k).i};
      if (st_is_list(s, own) && has_child(s, own, c)) return true;
    }
  }
  return false;
}

/* Where `t` takes one part of a concatenation, and that is `u`, the others may be anything. */
static void cut_beside(const search *q, uint32_t cu, uint32_t ct, uint8_t *base) {
  fr_classes part = {.n = 0};
  fr_parts_beside(q->s, ct, &part);
  bool there = false;
  for (size_t i = 0; i < part.n; i++) there |= part.cls[i] == cu;
  for (size_t i = 0; i < part.n && there; i++)
    if (q->k->in[part.cls[i]] && part.cls[i] != ct) base[part.cls[i]] = 1;
}

/* Beside outputs that differ, integers and truth values may be equal by chance: what is chosen
 * stays while the scores move a little. Patterns would grow to all that lies below. So would those
 * of what is made of tensors that were tried in vain. */
static bool by_chance(const search *q, uint32_t cu, uint32_t ct) {
  const rule_dtype d = st_dtype(q->s, q->u);
  return q->s->search.parted &&
         (rule_dtype_is_int(d) || d == RULE_BOOL || holds_open(q->s, q->k, cu, ct));
}

static iso_code search_rule(search *q, uint8_t *base, bool *done, iso_error *err) {
  state *s = q->s;
  cone *k = q->k;
  iso_code c;
  if ((c = fr_explore(s, k, q->u, q->t, 1, err)) || (c = fr_explore(s, k, q->t, q->u, 2, err)) ||
      (c = fr_cone_ways(s, k, err)))
    return c;
  const uint32_t cu = eg_class_of(s->g, q->u).i, ct = eg_class_of(s->g, q->t).i;
  const bool fill = fr_is_constant(s, ct) && !fr_is_constant(s, cu);
  for (size_t i = 0; i < k->n; i++) {
    const uint32_t cl = k->cls[i];
    /* The two roots are cut only where the other side contains them: an identity x <=> f(x). But
     * where `t` is a fill, `u` may be cut anywhere below its root: it is that whatever is there. */
    const bool both = k->in[cl] == 3, below = fill && cl != cu && !fr_is_constant(s, cl);
    if ((both || below) && fr_shared(s, cl) && !(cl == cu && cl == ct) &&
        fr_view_of_part(s, k, cl) == EG_NONE && !fr_tiled_row(s, k, cl) &&
        !fr_masked_tile(s, k, cl))
      base[cl] = 1;
  }
  cut_beside(q, cu, ct, base);
  cut_beside(q, ct, cu, base);
  /* Each is computed from the other, by a way back: one of them is a variable. */
  if (base[cu] && base[ct] && cu != ct) base[cu] = 0;
  q->taken = takes(s, q->u, q->t) || takes(s, q->t, q->u);
  const bool many = (s->search.n_wasted < MOST_WASTED || !holds_open(s, k, cu, ct)) && !q->taken;
  q->brief = s->search.briefly || by_chance(q, cu, ct);
  const size_t most = s->o->max_tries / (q->brief ? 8 : many ? 1 : 4);
  size_t tries = 0;
  const opening none = {.n = 0};
  fr_push(q, q->b, &none, NULL, 0, OPEN, -1);
  s->ranks.cut_short = k->full && q->n == 0;
  if (st_without(s, SYNTH_REACHABLE)) c = try_unshared(q, done, err);
  if (st_without(s, SYNTH_LAZY)) enumerate(q);
  if (!c) c = try_queue(q, most, &tries, done, err);
  if (!*done && !s->search.briefly)
    s->search.n_wasted += tries, s->rec[q->u.i].open = s->rec[q->t.i].open = true;
  return c;
}

iso_code st_synthesise(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  *done = false;
  const size_t n = eg_count_added(s->g);
  cone k;
  const bool coned = fr_cone_new(&k, n);
  uint8_t *base = calloc(n, 1);
  builder b = {.s = s, .k = &k, .memo = calloc(n, sizeof *b.memo)};
  weak w = {.there = false};
  search q = {.s = s,
              .weak = &w,
              .u = u,
              .t = t,
              .k = &k,
              .base = base,
              .b = &b,
              .zeros = s->rec[u.i].cancels && s->rec[t.i].cancels,
              .queue = calloc(QUEUE_MAX, sizeof *q.queue)};
  q.home = &q;
  iso_code c = coned && base && b.memo && q.queue ? search_rule(&q, base, done, err)
                                                  : iso_fail(err, ISO_NOMEM, "out of memory");
  fr_cone_free(&k);
  free(base);
  free(b.memo);
  free(b.prem);
  free(q.queue);
  return c;
}
