/* A frontier's two patterns: the terms between the roots and the cut, with variables for the
 * classes that are cut. Where a term expands another member of a class than the one that stood
 * there, their equality is a premise. */
#include "synth/search/search_int.h"
#include "synth/search/frontier.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <string.h>

static const rule_term *build_class(builder *b, uint32_t c, eg_node as);

static bool need(builder *b, eg_node x, eg_node y) {
  if (x.i == y.i) return true;
  if (!iso_grow(b->prem, b->cap_prem, b->n_prem + 1)) return false;
  b->prem[b->n_prem++] = (premise){x, y};
  return true;
}

static const rule_term *build_node(builder *b, eg_node e) {
  state *s = b->s;
  const rule_term *lit = st_literal(s, e);
  if (lit) return lit;
  const size_t n = eg_node_arity(s->g, e);
  b->distinct++;
  if (b->depth > 200) return NULL;
  const rule_term **child = iso_arena_alloc(&s->arena, (n + 1) * sizeof *child);
  if (!child) return NULL;
  b->depth++;
  for (size_t a = 0; a < n; a++)
    if (!(child[a] = build_class(b, eg_node_child(s->g, e, a).i,
                                 (eg_node){eg_node_original(s->g, e, a).i})))
      return NULL;
  b->depth--;
  const char *op = st_operator(s, e);
  return strcmp(op, "#list") == 0 ? rule_list(&s->arena, child, n)
                                  : rule_op(&s->arena, op, child, n);
}

static const rule_term *make_var(builder *b, uint32_t c, eg_node as) {
  for (size_t i = 0; i < b->n_vars; i++)
    if (b->var[i].i == c) {
      b->used[i] |= b->side;
      if (!need(b, b->var_as[i], as)) return NULL;
      return rule_var(&b->s->arena, (uint32_t)i);
    }
  if (b->n_vars == RULE_MAX_VARS) return NULL;
  b->var[b->n_vars] = (eg_class){c};
  b->var_as[b->n_vars] = as;
  b->used[b->n_vars] = b->side;
  return rule_var(&b->s->arena, (uint32_t)b->n_vars++);
}

static const rule_term *build_class(builder *b, uint32_t c, eg_node as) {
  if (!b->k->in[c]) return fr_literal_class(b->s, c);
  if (b->k->cut[c]) return make_var(b, c, as);
  const eg_node e = {b->k->best[c]};
  if (e.i == EG_NONE || !need(b, as, e)) return NULL;
  if (b->memo[c]) return b->memo[c];
  return b->memo[c] = b->s->rec[e.i].leaf ? make_var(b, c, e) : build_node(b, e);
}

static const rule_term *build_root(builder *b, eg_node root) {
  const uint32_t c = eg_class_of(b->s->g, root).i;
  memset(b->memo, 0, eg_count_added(b->s->g) * sizeof *b->memo);
  if (b->k->cut[c] || b->s->rec[root.i].leaf) return make_var(b, c, root);
  return build_node(b, root);
}

bool fr_build(builder *b, eg_node u, eg_node t, const rule_term **l, const rule_term **r) {
  b->n_vars = 0;
  b->n_prem = 0;
  b->depth = 0;
  b->distinct = 0;
  b->side = 1;
  *l = build_root(b, u);
  b->side = 2;
  *r = *l ? build_root(b, t) : NULL;
  return *r != NULL;
}

/* Whether both patterns have another part of the tensor that variable `i` is a part of: one of them
 * does without this part (a rank's keys that a mask hides), and both would only have it where they
 * computed all from its first beginning. */
static bool is_left_out(const builder *b, size_t i) {
  for (size_t j = 0; j < b->n_vars && b->s->ranks.tiling; j++)
    if (b->used[j] == 3 && st_are_peers(b->s, b->var[i], b->var[j])) return true;
  return false;
}

/* The variable of one pattern alone that is computed last, of those that are cut. SIZE_MAX: none.
 */
static size_t last_of_one(const builder *b) {
  size_t found = SIZE_MAX;
  double last = -1;
  for (size_t i = 0; i < b->n_vars; i++) {
    const double at = b->used[i] != 3 && b->k->cut[b->var[i].i] ? fr_place(b->s, b->var[i].i) : -1;
    if (at > last && !is_left_out(b, i)) last = at, found = i;
  }
  return found;
}

/* Whether a class is a layout of class `of`. */
static bool lies_as(const builder *b, uint32_t c, uint32_t of) {
  const eg_node *m;
  const size_t n = eg_class_nodes(b->s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++)
    if (!b->s->rec[m[i].i].leaf && eg_node_arity(b->s->g, m[i]) > 0 &&
        eg_node_child(b->s->g, m[i], 0).i == of && fr_layout_op(st_operator(b->s, m[i])))
      return true;
  return false;
}

/* Whether class `c`, as the search made it, is put together of variables of pattern `other` alone.
 */
static bool is_made_of(const builder *b, uint32_t c, unsigned other, int depth) {
  enum { DEEP = 3 }; /* a multiple of a list put together */
  state *s = b->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++) {
    if (!st_made(&s->rec[m[i].i]) || s->rec[m[i].i].leaf) continue;
    for (size_t a = 0; a < eg_node_arity(s->g, m[i]); a++) {
      const uint32_t of = eg_node_child(s->g, m[i], a).i;
      for (size_t j = 0; j < b->n_vars; j++)
        if (b->var[j].i == of && b->used[j] == other && b->k->cut[of]) return true;
      if (depth < DEEP && is_made_of(b, of, other, depth + 1)) return true;
    }
  }
  return false;
}

/* What is opened next: a tensor that ranks hold in parts, where the other pattern has these. Where
 * another variable is a layout of that one, both patterns have it once the other one is opened. */
static size_t next_of_one(const builder *b) {
  const size_t i = last_of_one(b);
  for (size_t j = 0; j < b->n_vars && i != SIZE_MAX && b->s->ranks.tiling; j++)
    if (b->used[j] != 3 && b->k->cut[b->var[j].i] && is_made_of(b, b->var[j].i, 3u - b->used[j], 0))
      return j;
  for (size_t j = 0; j < b->n_vars && i != SIZE_MAX; j++)
    if (j != i && b->k->cut[b->var[j].i] && lies_as(b, b->var[j].i, b->var[i].i) &&
        !lies_as(b, b->var[i].i, b->var[j].i))
      return j;
  return i;
}

/* The variables of both patterns, without the patterns: one is made for each step of a cut, and
 * they would be kept as long as the comparison. False: they cannot be built. */
static bool build_variables(builder *b, eg_node u, eg_node t) {
  state *s = b->s;
  const rule_term *l, *r;
  const iso_arena was = s->arena;
  iso_arena_init(&s->arena);
  const bool ok = fr_build(b, u, t, &l, &r);
  iso_arena_fini(&s->arena);
  s->arena = was;
  return ok;
}

bool fr_narrow_patterns(builder *b, eg_node u, eg_node t) {
  enum { DISTINCT = 1200 };
  state *s = b->s;
  fr_costs(s, b->k);
  for (;;) {
    uint32_t open[RULE_MAX_VARS];
    size_t n = 0;
    if (!build_variables(b, u, t) || b->distinct > DISTINCT) return false;
    const size_t i = next_of_one(b);
    if (i == SIZE_MAX) return true;
    const uint32_t of = s->ranks.n_peers ? st_peers_in(s, b->var[i]) : UINT32_MAX;
    for (size_t j = 0; j < b->n_vars; j++)
      if (j == i || (of != UINT32_MAX && b->used[j] == b->used[i] && b->k->cut[b->var[j].i] &&
                     st_peers_in(s, b->var[j]) == of))
        open[n++] = b->var[j].i;
    fr_costs_without(s, b->k, open, n);
  }
}
