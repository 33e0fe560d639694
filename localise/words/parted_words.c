/* Two tensors that are made of one by views and parts, and of other parts of it: which operators
 * each side takes it apart by, with the bounds of the parts. */
#include "localise/words/wiring.h"
#include "rules/names.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

/* Whether node i is only a view, a copy or a part of what it reads, or one of several results. */
static bool takes_apart(const synth_graph *g, int64_t i) {
  const synth_node *n = &g->node[i];
  return n->kind == SYNTH_OP && (lo_lays_out(n->op) || lo_passes(g, (uint32_t)i) ||
                                 lo_takes_part(n->op) || n->n_outputs > 1);
}

/* The first tensor that views and parts make of what node `at` gives and that the other side does
 * not have, in whatever order; -1: there is none. */
static int64_t odd_part(const parting *p, int side, int64_t at) {
  while (takes_apart(p->s->graph[side], at)) {
    if (lo_value(p, side, (uint32_t)at) && !lo_occurs(p, side, (uint32_t)at)) return at;
    const int64_t next = lo_consumer(p->s, side, (uint32_t)at);
    if (next == at) break;
    at = next;
  }
  return -1;
}

static lo_chain chain_of(const synth_graph *g, int64_t at) {
  lo_chain c = {.node = {(uint32_t)at}, .n = 1};
  while (c.n < LO_CHAIN && takes_apart(g, at) && g->node[at].call->n &&
         g->node[at].call->child[0]->kind == RULE_VAR)
    c.node[c.n++] = (uint32_t)(at = g->node[at].call->child[0]->u.i);
  return c;
}

/* What a call is told beside its tensors, as far as its schema would not say the same. */
static const char *told(const parting *p, const synth_node *n) {
  iso_arena *const a = &p->s->res->arena;
  const rule_schema *sc = rule_schemas_find(p->s->schemas, n->call->u.s);
  const char *words = "";
  for (uint32_t k = 0; sc && words && k < n->call->n && k < sc->n_args; k++) {
    const rule_term *t = n->call->child[k];
    if (t->kind != RULE_INT || (sc->arg[k].deflt && rule_term_eq(t, sc->arg[k].deflt))) continue;
    words = iso_arena_printf(a, "%s%s%s %lld", words, *words ? ", " : "", sc->arg[k].name,
                             (long long)t->u.i);
  }
  return words && *words ? iso_arena_printf(a, " (%s)", words) : words;
}

/* The operators that make the first tensor of a chain of the one at `to`. */
static const char *by(const parting *p, int side, const lo_chain *c, size_t to) {
  iso_arena *const a = &p->s->res->arena;
  const char *words = "";
  for (size_t k = to; words && k-- > 0;) {
    const synth_node *n = &p->s->graph[side]->node[c->node[k]];
    const char *const op = lo_short_name(a, n->op);
    if (!op || rule_is_getitem(n->op) || rule_operator_of(n->op)->identity) continue;
    const char *const args = lo_takes_part(n->op) ? told(p, n) : "";
    words = args ? iso_arena_printf(a, "%s%s%s%s", words, *words ? ", " : "", op, args) : NULL;
  }
  return words;
}

const char *lo_parted_otherwise(const parting *p, int64_t l, int64_t r) {
  const int64_t odd[2] = {odd_part(p, LEFT, l), odd_part(p, RIGHT, r)};
  size_t at[2];
  if (odd[LEFT] < 0 || odd[RIGHT] < 0) return NULL;
  const lo_chain c[2] = {chain_of(p->s->graph[LEFT], odd[LEFT]),
                         chain_of(p->s->graph[RIGHT], odd[RIGHT])};
  if (!lo_meet(p, c, at)) return NULL;
  const char *const left = by(p, LEFT, &c[LEFT], at[LEFT]), *const right =
                                                                by(p, RIGHT, &c[RIGHT], at[RIGHT]);
  if (!left || !right || !*left || !*right) return NULL;
  return iso_arena_printf(&p->s->res->arena,
                          "%s is taken apart otherwise: by %s on the left, by %s on the right",
                          lo_named(p, LEFT, c[LEFT].node[at[LEFT]]), left, right);
}
