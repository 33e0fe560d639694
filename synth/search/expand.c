/* What is queued below a frontier: with which classes opened, shut or read, and in which order. */
#include "synth/search/expand.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/search/search.h"

#include <stdlib.h>

/* To this a pattern may grow, written out, where much of it stands in several places, as in a
 * loop's states. */
enum { SHARED_MAX = 40 };
/* And to this one whose patterns have the same variables, of ranks that give one another tensors.
 * Where few variables are one side's alone a smaller pattern is as good, and of more places. */
static const double NARROW_MAX = 20000;
enum { MANY_APART = 12 };
static const double VARIABLE_COST = 4;

static void set_cut(cone *k, const uint8_t *base, const opening *o) {
  for (size_t i = 0; i < k->n; i++) k->cut[k->cls[i]] = base[k->cls[i]];
  for (size_t i = 0; i < k->n; i++) k->opened[k->cls[i]] = 0;
  for (size_t i = 0; i < o->n; i++) {
    k->cut[o->cls[i]] = 0;
    k->opened[o->cls[i]] = o->how[i];
  }
}

bool fr_same_opening(const opening *a, const opening *b) {
  if (a->n != b->n || a->narrow != b->narrow) return false;
  for (size_t i = 0; i < a->n; i++) {
    bool found = false;
    for (size_t j = 0; j < b->n; j++) found |= a->cls[i] == b->cls[j] && a->how[i] == b->how[j];
    if (!found) return false;
  }
  return true;
}

static void open_one(opening *o, uint32_t c) {
  for (size_t i = 0; i < o->n; i++)
    if (o->cls[i] == c && o->how[i] == OPEN) return;
  if (o->n == sizeof o->cls / sizeof *o->cls) return;
  o->how[o->n] = OPEN;
  o->cls[o->n++] = c;
}

void fr_open_peers(const search *q, opening *o, size_t first) {
  const builder *b = q->b;
  const size_t n = q->s->ranks.linking ? o->n : 0;
  for (size_t i = first; i < n; i++) {
    const uint32_t of = o->how[i] == OPEN ? st_peers_in(q->s, (eg_class){o->cls[i]}) : UINT32_MAX;
    for (size_t k = 0; k < b->n_vars && of != UINT32_MAX; k++)
      if (q->base[b->var[k].i] && st_peers_in(q->s, b->var[k]) == of) open_one(o, b->var[k].i);
  }
}

bool fr_open_cut(search *q, builder *b, const opening *o) {
  set_cut(q->k, q->base, o);
  if (o->narrow == MET) fr_narrow(q->s, q->k, q->u, q->t);
  if (o->narrow == SAME) return fr_narrow_patterns(b, q->u, q->t);
  fr_costs(q->s, q->k);
  return true;
}

void fr_push(search *q, builder *b, const opening *from, const uint32_t *extra, size_t n_extra,
             uint8_t how, double favour) {
  state *s = q->s;
  if (q->n == QUEUE_MAX || from->n + n_extra > sizeof from->cls / sizeof *from->cls) return;
  opening o = *from;
  for (size_t i = 0; i < n_extra; i++) {
    o.how[o.n] = how;
    o.cls[o.n++] = extra[i];
  }
  fr_open_peers(q, &o, from->n);
  for (size_t i = 0; i < q->n; i++)
    if (fr_same_opening(&q->queue[i], &o)) return;
  if (!fr_open_cut(q, b, &o)) return;
  o.size = fr_root_cost(s, q->k, q->u) + fr_root_cost(s, q->k, q->t);
  /* A class that ranks share stands in the pattern of each. */
  const bool shared = s->search.large_patterns || s->ranks.wide;
  const double most = (shared ? SHARED_MAX : 2) * (double)s->o->max_pattern;
  o.large = o.size > (favour >= 0 ? 2 * most : most);
  if (o.large && !(o.narrow == SAME && o.size < NARROW_MAX)) return;
  /* A variable that is computed from another one may have any value in a rule, but not in the
   * graphs: openings that leave fewer variables go first. */
  const rule_term *l, *r;
  if (!fr_build(b, q->u, q->t, &l, &r)) return;
  o.large |= b->distinct > 2 * s->o->max_pattern;
  if (o.large && o.narrow != SAME) return;
  o.size += VARIABLE_COST * (double)b->n_vars;
  if (favour >= 0 && o.size > favour) o.size = favour;
  q->queue[q->n++] = o;
}

/* A variable that is computed from others of the same rule is opened, or they are. */
static void expand_dependencies(search *q, const opening *o, builder *work) {
  for (int near = 1; near >= 0; near--) { /* what is the same both times is queued once */
    opening dep = {.n = 0}, base_of = {.n = 0}, aside = {.n = 0}, straight = *o;
    if (!fr_dependencies(q->s, q->k, q->b, near, &dep, &base_of, &aside)) break;
    for (size_t i = 0; i < aside.n && straight.n < sizeof o->cls / sizeof *o->cls; i++)
      straight.how[straight.n] = SHUT, straight.cls[straight.n++] = aside.cls[i];
    const double size = o->size - (dep.first ? 2 * VARIABLE_COST : 0);
    if (aside.n) fr_push(q, work, &straight, dep.cls, dep.n, OPEN, size);
    if (base_of.n) fr_push(q, work, o, base_of.cls, base_of.n, SHUT, o->size);
    if (dep.n) fr_push(q, work, o, dep.cls, dep.n, OPEN, size);
  }
}

bool fr_is_constant(state *s, uint32_t c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].konst) return true;
  return false;
}

/* Constants of the cone that are cut, where a pattern uses one; `near`: those that it uses alone.
 */
static void cut_constants(const search *q, bool near, fr_classes *out) {
  state *s = q->s;
  const cone *k = q->k;
  for (size_t i = 0; i < q->b->n_vars; i++) /* these first: there may be more than there is room */
    if (k->cut[q->b->var[i].i] && fr_is_constant(s, q->b->var[i].i)) fr_also(out, q->b->var[i].i);
  const bool used = out->n > 0 && !near;
  for (size_t i = 0; i < k->n && used; i++) {
    const uint32_t cl = k->cls[i];
    if (k->cut[cl] && fr_is_constant(s, cl)) fr_also(out, cl);
  }
}

/* Whether both sides read all that is no constant. */
static bool all_but_constants(const search *q) {
  const builder *b = q->b;
  for (size_t i = 0; i < b->n_vars; i++)
    if (b->used[i] != 3 && q->k->cut[b->var[i].i] && !fr_is_constant(q->s, b->var[i].i))
      return false;
  return true;
}

/* Constants that only hold as they are: `ground`, all of them at once, down to terms without
 * leaves; then leaves of constants as their numbers, too. An input is one of these where one side
 * alone reads it: the other may have numbers that were computed from it. */
static void expand_constants(search *q, const opening *o, builder *work, fr_classes *ground) {
  const builder *b = q->b;
  const double next = all_but_constants(q) ? VARIABLE_COST : 0;
  if (ground->n) fr_push(q, work, o, ground->cls, ground->n, OPEN, o->size - next);
  const size_t n_cut = ground->n;
  for (size_t i = 0; i < b->n_vars; i++) {
    const bool alone = b->used[i] != 3 && q->s->rec[b->var_as[i].i].konst;
    if (!q->k->cut[b->var[i].i] && (alone || fr_written_out(q->s, b->var[i])))
      fr_also(ground, b->var[i].i);
  }
  if (ground->n > n_cut) fr_push(q, work, o, ground->cls, ground->n, OPEN, -1);
}

/* One side reads a constant and the other one has its numbers: both read it. */
static void expand_numbers(search *q, const opening *o, builder *work) {
  const cone *k = q->k;
  fr_classes written = {.n = 0};
  for (size_t i = 0; i < k->n; i++) {
    const uint32_t cl = k->cls[i];
    if (!k->cut[cl] && !k->opened[cl] && k->best[cl] != EG_NONE &&
        fr_numbers_of(q->s, (eg_node){k->best[cl]}, NULL))
      fr_also(&written, cl);
  }
  if (written.n) fr_push(q, work, o, written.cls, written.n, READ, o->size);
}

/* Integers that lie in a range are no integers at all: all that are known to, at once. Returns:
 * whether there is one more frontier in the queue. */
static bool expand_bounded(search *q, const opening *o, builder *work) {
  fr_classes open = {.n = 0};
  const size_t before = q->n;
  for (size_t i = 0; i < q->b->n_vars; i++)
    if (q->k->cut[q->b->var[i].i] && rule_dtype_is_int(st_dtype(q->s, q->b->var_as[i])))
      (void)fr_down_to_bound(q->s, q->k, q->b->var[i].i, &open);
  if (open.n) fr_push(q, work, o, open.cls, open.n, OPEN, o->size);
  return q->n > before;
}

/* Cut only at what both sides reach, or where ranks give one another tensors, at what stands in
 * both patterns. */
static void expand_narrow(search *q, const opening *o, builder *work, size_t n_one) {
  opening narrow = *o;
  if (!n_one || o->n > 0 || o->narrow) return;
  narrow.narrow = MET;
  fr_push(q, work, &narrow, NULL, 0, OPEN, o->size);
  narrow.narrow = SAME;
  const bool *gives = q->s->ranks.collective;
  if ((n_one >= MANY_APART || q->s->ranks.tiling) && (gives[LEFT] || gives[RIGHT]))
    fr_push(q, work, &narrow, NULL, 0, OPEN, 0);
}

/* Whether a class holds constant truth values, or numbers that are added to hide others. */
static bool is_mask(state *s, uint32_t c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  const rule_tensor *t = NULL;
  for (size_t i = 0; i < n && !t; i++)
    if (s->rec[m[i].i].konst && s->rec[m[i].i].cval) t = s->rec[m[i].i].cval[0];
  bool low = false;
  for (int64_t i = 0; t && rule_dtype_is_float(t->dtype) && i < t->numel && !low; i++)
    low = rule_tensor_get(t, i) < -1e30;
  return low || (t && t->dtype == RULE_BOOL);
}

/* The masks among classes. */
static void keep_masks(const search *q, fr_classes *x) {
  size_t n = 0;
  for (size_t i = 0; i < x->n; i++)
    if (is_mask(q->s, x->cls[i])) x->cls[n++] = x->cls[i];
  x->n = n;
}

/* Of a ring, each rank has some of the masks: those that a pattern uses are opened before anything
 * else. Below the coarsest frontier mostly that is a rule, or with tiles the narrow cut: the others
 * are priced once these were tried. Returns: whether they wait. */
static bool expand_ring(search *q, const opening *o, builder *work, size_t n_one) {
  const size_t before = q->n;
  const bool tiling = q->s->ranks.tiling, coarsest = o->n == 0 && o->narrow != MET && !o->rest;
  fr_classes masks = {.n = 0};
  if (!tiling && !coarsest) return false;
  if (tiling && coarsest) expand_narrow(q, o, work, n_one);
  cut_constants(q, true, &masks);
  keep_masks(q, &masks);
  if (masks.n) fr_push(q, work, o, masks.cls, masks.n, OPEN, o->size);
  if (!coarsest) return false;
  for (size_t i = before; i < q->n; i++) q->queue[i].first = q->queue[i].narrow != MET;
  if (q->n == before || q->n == QUEUE_MAX) return false;
  q->queue[q->n] = *o;
  q->queue[q->n].rest = q->queue[q->n].first = true;
  q->n++;
  return true;
}

void fr_expand(search *q, const opening *o, bool refuted) {
  const builder *b = q->b;
  uint32_t one[RULE_MAX_VARS], both[RULE_MAX_VARS];
  size_t n_one = 0, n_both = 0;
  for (size_t i = 0; i < b->n_vars; i++) {
    const uint32_t cl = b->var[i].i;
    if (!q->k->cut[cl]) continue; /* an atom: nothing below */
    if (b->used[i] == 3) both[n_both++] = cl;
    else one[n_one++] = cl;
  }
  builder work = {.s = q->s, .k = q->k, .memo = b->memo};
  fr_classes ground = {.n = 0};
  const st_ranks *ranks = &q->s->ranks;
  if (refuted && ranks->linking && ranks->running && expand_ring(q, o, &work, n_one))
    return free(work.prem);
  cut_constants(q, false, &ground);
  if (refuted) expand_dependencies(q, o, &work);
  expand_constants(q, o, &work, &ground);
  if (refuted && n_one) expand_numbers(q, o, &work);
  if (q->s->leaves.n_bound) (void)expand_bounded(q, o, &work);
  if (refuted) expand_narrow(q, o, &work, n_one);
  if (n_one > 1) fr_push(q, &work, o, one, n_one, OPEN, -1);
  for (size_t i = 0; i < n_one; i++) fr_push(q, &work, o, &one[i], 1, OPEN, -1);
  for (size_t i = 0; i < n_both; i++) fr_push(q, &work, o, &both[i], 1, OPEN, -1);
  free(work.prem);
}

void fr_expand_again(search *q, const opening *o) {
  const rule_term *l, *r;
  if (fr_open_cut(q, q->b, o) && fr_build(q->b, q->u, q->t, &l, &r)) fr_expand(q, o, true);
}
