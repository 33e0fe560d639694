/* Explanations from the proof forest (Nieuwenhuis and Oliveras, Proof-producing congruence closure,
 * RTA 2005, section 3).
 *
 * Each e-class is a tree over its e-nodes whose edges are the merges that built it, and the path
 * between two e-nodes is why they are equal. A path never changes once its ends are connected
 * (turning a tree round keeps its edges), so the premises of a congruence are connected by edges
 * older than its own: sorted by age, premises come before their use. Edges already taken are
 * skipped through a union-find of their own, as the paper has it, so that a proof costs about its
 * length times the alternation of two walks, however often its premises overlap. */
#include <stdlib.h>

#include "egraph/base/vec.h"
#include "egraph/graph/graph_int.h"

/* An edge is named by its lower end, and `age` is its id. */
typedef struct taken {
  uint64_t age;
  uint32_t low;
  bool up; /* the chain from a to b walks it towards the root */
} taken;

typedef struct run {
  eg_graph *g;
  uint64_t call;          /* stamp of this call */
  taken *chain, *premise; /* the path from a to b in order; all that congruences need */
  size_t n_chain, cap_chain, n_premise, cap_premise;
} run;

/* The top of the part around x whose edges are all taken. */
static uint32_t highest(run *r, uint32_t x) {
  egi_mark *m = r->g->mark;
  while (m[x].call == r->call) {
    const uint32_t up = m[x].skip;
    if (m[up].call == r->call) m[x].skip = m[up].skip;
    x = m[x].skip;
  }
  return x;
}

static uint32_t above(run *r, uint32_t x) {
  const uint32_t up = r->g->node[x].proof_up;
  return up == EG_NONE ? EG_NONE : highest(r, up);
}

/* The lowest e-node above both, on taken-away paths: two walks in turn, until one meets the other's
 * trace. */
static uint32_t meet(run *r, uint32_t x, uint32_t y) {
  egi_mark *m = r->g->mark;
  const uint64_t sx = ++r->g->stamp, sy = ++r->g->stamp;
  x = highest(r, x);
  y = highest(r, y);
  for (;;) {
    ISO_CHECK(x != EG_NONE || y != EG_NONE); /* equal e-nodes are in one tree */
    if (x != EG_NONE) {
      if (m[x].seen == sy) return x;
      m[x].seen = sx;
      x = above(r, x);
    }
    if (y != EG_NONE) {
      if (m[y].seen == sx) return y;
      m[y].seen = sy;
      y = above(r, y);
    }
  }
}

static bool push(taken **list, size_t *n, size_t *cap, const eg_graph *g, uint32_t low, bool up) {
  if (!iso_grow(*list, *cap, *n + 1)) return false;
  (*list)[(*n)++] = (taken){g->node[low].proof_edge, low, up};
  return true;
}

/* The path from a to b: up from a, then down to b, which is found upwards and turned round. */
static bool take_chain(run *r, uint32_t a, uint32_t b) {
  const eg_graph *g = r->g;
  const uint32_t top = meet(r, a, b);
  for (; a != top; a = g->node[a].proof_up)
    if (!push(&r->chain, &r->n_chain, &r->cap_chain, g, a, true)) return false;
  const size_t turn = r->n_chain;
  for (; b != top; b = g->node[b].proof_up)
    if (!push(&r->chain, &r->n_chain, &r->cap_chain, g, b, false)) return false;
  for (size_t i = turn, j = r->n_chain; i + 1 < j; i++) {
    taken t = r->chain[i];
    r->chain[i] = r->chain[--j];
    r->chain[j] = t;
  }
  return true;
}

/* Take the edges of the path between x and y that are not taken yet. */
static bool take_path(run *r, uint32_t x, uint32_t y) {
  const uint32_t top = meet(r, x, y), end[2] = {x, y};
  for (int k = 0; k < 2; k++)
    for (uint32_t i = highest(r, end[k]); i != top; i = highest(r, i)) {
      if (!push(&r->premise, &r->n_premise, &r->cap_premise, r->g, i, true)) return false;
      r->g->mark[i].call = r->call;
      r->g->mark[i].skip = r->g->node[i].proof_up;
    }
  return true;
}

static bool take_premises(run *r, uint64_t age) {
  const eg_graph *g = r->g;
  const egi_edge *e = &g->edge[age];
  if (e->why.kind != EG_WHY_CONGRUENCE) return true;
  const egi_node *p = &g->node[e->from], *q = &g->node[e->to];
  for (uint32_t k = 0; k < p->arity; k++) {
    const uint32_t x = g->original[p->key - e->from + k], y = g->original[q->key - e->to + k];
    if (x != y && !take_path(r, x, y)) return false;
  }
  return true;
}

static int by_age(const void *a, const void *b) {
  uint64_t x = ((const taken *)a)->age, y = ((const taken *)b)->age;
  return (x > y) - (x < y);
}

/* Along the chain a step runs its way; elsewhere, as the merge was stated. */
static eg_step step_of(const eg_graph *g, const taken *t, bool in_chain) {
  const egi_edge *e = &g->edge[t->age];
  if (!in_chain) return (eg_step){{e->from}, {e->to}, e->why};
  const uint32_t up = g->node[t->low].proof_up;
  return (eg_step){{t->up ? t->low : up}, {t->up ? up : t->low}, e->why};
}

/* First the premises of congruences, oldest first; then the rest of the chain. */
static eg_step *write_steps(run *r, size_t *n) {
  eg_graph *g = r->g;
  eg_step *out = calloc(r->n_premise + r->n_chain + 1, sizeof *out);
  if (!out) return NULL;
  if (r->n_premise) qsort(r->premise, r->n_premise, sizeof *r->premise, by_age);
  for (size_t i = 0; i < r->n_chain; i++)
    g->mark[r->chain[i].low].chain = 2 * r->call + r->chain[i].up;
  *n = 0;
  for (size_t i = 0; i < r->n_premise; i++) {
    taken *t = &r->premise[i];
    const uint64_t c = g->mark[t->low].chain;
    t->up = c & 1;
    out[(*n)++] = step_of(g, t, c / 2 == r->call);
  }
  for (size_t i = 0; i < r->n_chain; i++)
    if (g->mark[r->chain[i].low].call != r->call) out[(*n)++] = step_of(g, &r->chain[i], true);
  return out;
}

iso_code eg_explain(eg_graph *g, eg_node a, eg_node b, eg_step **out, size_t *n, iso_error *err) {
  if (!eg_equal(g, a, b))
    return iso_fail(err, ISO_USAGE, "e-nodes %u and %u are not equal", a.i, b.i);
  if (!iso_grow(g->mark, g->cap_mark, g->n_nodes))
    return iso_fail(err, ISO_NOMEM, "out of memory for an explanation");
  run r = {.g = g, .call = ++g->stamp};
  eg_step *step = NULL;
  size_t n_steps = 0;
  bool ok = take_chain(&r, a.i, b.i);
  for (size_t i = 0; ok && i < r.n_chain; i++) ok = take_premises(&r, r.chain[i].age);
  for (size_t i = 0; ok && i < r.n_premise; i++) ok = take_premises(&r, r.premise[i].age);
  if (ok) step = write_steps(&r, &n_steps);
  free(r.chain);
  free(r.premise);
  if (!step) return iso_fail(err, ISO_NOMEM, "out of memory for an explanation");
  *out = step;
  *n = n_steps;
  return ISO_OK;
}
