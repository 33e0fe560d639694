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

/* The variable of one pattern alone that is computed last, of those that are cut. SIZE_MAX: none.
 */
static size_t last_of_one(const builder *b) {
  size_t found = SIZE_MAX;
  double last = -1;
  for (size_t i = 0; i < b->n_vars; i++) {
    const double at = b->used[i] != 3 && b->k->cut[b->var[i].i] ? fr_place(b->s, b->var[i].i) : -1;
    if (at > last) last = at, found = i;
  }
  return found;
}

bool fr_narrow_patterns(builder *b, eg_node u, eg_node t) {
  enum { DISTINCT = 1200 };
  state *s = b->s;
  for (;;) {
    const rule_term *l, *r;
    fr_costs(s, b->k);
    if (!fr_build(b, u, t, &l, &r) || b->distinct > DISTINCT) return false;
    const size_t i = last_of_one(b);
    if (i == SIZE_MAX) return true;
    const uint32_t of = s->ranks.n_peers ? st_peers_in(s, b->var[i]) : UINT32_MAX;
    b->k->cut[b->var[i].i] = 0;
    for (size_t j = 0; j < b->n_vars && of != UINT32_MAX; j++)
      if (b->used[j] != 3 && st_peers_in(s, b->var[j]) == of) b->k->cut[b->var[j].i] = 0;
  }
}
