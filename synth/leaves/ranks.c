/* Several ranks in one graph.
 *
 * A collective is one e-node over all ranks' tensors, and every rank reads that e-node: replicas
 * are joined by congruence and by leaves of equal value, and nothing else in synth/ needs to know
 * of ranks. Only outputs need care: each rank gives its own, "NAME" the first and "NAME_rank<r>"
 * the others, and every one of them must equal its counterpart. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "rules/replicas.h"
#include "synth/leaves/leaves.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static const char *name_at(const void *outputs, size_t i) {
  const synth_output *o = outputs;
  return o[i].name;
}

/* The outputs that are no replicas, in order. */
static size_t heads_of(const rule_replicas *r, size_t *out) {
  size_t n = 0;
  for (size_t i = 0; i < r->n; i++)
    if (r->head[i] == i) out[n++] = i;
  return n;
}

/* Output `h` and its replicas, in the order of the graph. Returns: how many. */
static size_t replicas(const rule_replicas *r, size_t h, size_t *out) {
  size_t n = 0;
  out[n++] = h;
  for (size_t i = r->first[h]; i != RULE_NO_OUTPUT; i = r->next[i]) out[n++] = i;
  return n;
}

/* Which head of the right each head of the left belongs to: the one of its name, and the remaining
 * ones in order. `taken`: by output of the right. */
static void partners(const synth_graph *l, const rule_replicas *r, const size_t *left,
                     const size_t *right, size_t heads, size_t *of, bool *taken) {
  for (size_t k = 0; k < heads; k++) {
    const size_t j = rule_replicas_find(r, l->output[left[k]].name);
    const bool named = j != RULE_NO_OUTPUT && r->head[j] == j && !taken[j];
    of[k] = named ? j : RULE_NO_OUTPUT;
    if (named) taken[j] = true;
  }
  for (size_t k = 0, next = 0; k < heads; k++) {
    if (of[k] != RULE_NO_OUTPUT) continue;
    while (taken[right[next]]) next++;
    taken[of[k] = right[next]] = true;
  }
}

typedef struct pairs {
  synth_output *left, *right;
  size_t n;
} pairs;

static void pair_up(pairs *p, const synth_graph *l, size_t i, const synth_graph *r, size_t j) {
  p->left[p->n] = l->output[i];
  p->right[p->n++] = r->output[j];
}

/* As many replicas on both sides: rank by rank. Else all of them equal the other side's first. */
static void pair_replicas(pairs *p, const synth_graph *l, const size_t *of_l, size_t n_l,
                          const synth_graph *r, const size_t *of_r, size_t n_r) {
  if (n_l == n_r) {
    for (size_t k = 0; k < n_l; k++) pair_up(p, l, of_l[k], r, of_r[k]);
    return;
  }
  for (size_t k = 0; k < n_r; k++) pair_up(p, l, of_l[0], r, of_r[k]);
  for (size_t k = 1; k < n_l; k++) pair_up(p, l, of_l[k], r, of_r[0]);
}

static iso_code pair_heads(pairs *p, const synth_graph *left, const synth_graph *right,
                           const rule_replicas names[2], iso_error *err) {
  const size_t n_l = left->n_outputs, n_r = right->n_outputs;
  size_t *of = calloc(n_l + n_r + 2, sizeof *of), *partner = calloc(n_l + 1, sizeof *partner),
         *head[2] = {calloc(n_l + 1, sizeof *of), calloc(n_r + 1, sizeof *of)};
  bool *taken = calloc(n_r + 1, 1);
  iso_code c = of && partner && head[LEFT] && head[RIGHT] && taken ? ISO_OK : nomem(err);
  const size_t n = c ? 0 : heads_of(&names[LEFT], head[LEFT]);
  if (!c && n != heads_of(&names[RIGHT], head[RIGHT]))
    c = iso_fail(err, ISO_USAGE, "%s has %zu outputs and %s has %zu: they cannot be paired",
                 left->path, n_l, right->path, n_r);
  if (!c) partners(left, &names[RIGHT], head[LEFT], head[RIGHT], n, partner, taken);
  for (size_t k = 0; k < n && !c; k++) {
    const size_t m = replicas(&names[LEFT], head[LEFT][k], of);
    pair_replicas(p, left, of, m, right, of + m, replicas(&names[RIGHT], partner[k], of + m));
  }
  free(of);
  free(partner);
  free(head[LEFT]);
  free(head[RIGHT]);
  free(taken);
  return c;
}

iso_code st_pair_outputs(const synth_graph *left, const synth_graph *right, iso_arena *arena,
                         synth_graph pair[2], iso_error *err) {
  const size_t all = left->n_outputs + right->n_outputs;
  pairs p = {iso_arena_alloc(arena, (all + 1) * sizeof *p.left),
             iso_arena_alloc(arena, (all + 1) * sizeof *p.right), 0};
  rule_replicas names[2] = {{0}};
  iso_code c = p.left && p.right ? ISO_OK : nomem(err);
  if (!c) c = rule_replicas_init(&names[LEFT], left->n_outputs, name_at, left->output, err);
  if (!c) c = rule_replicas_init(&names[RIGHT], right->n_outputs, name_at, right->output, err);
  if (!c) c = pair_heads(&p, left, right, names, err);
  rule_replicas_fini(&names[LEFT]);
  rule_replicas_fini(&names[RIGHT]);
  if (c) return c;
  pair[LEFT] = *left;
  pair[RIGHT] = *right;
  pair[LEFT].output = p.left;
  pair[RIGHT].output = p.right;
  pair[LEFT].n_outputs = pair[RIGHT].n_outputs = p.n;
  return ISO_OK;
}

/* ---- leaves ---- */

/* The rest behind "rank<r>." in a leaf's name; NULL where the name is not of that form. */
static const char *leaf_rank(const char *name, unsigned long *rank) {
  char *end;
  if (!name || strncmp(name, "rank", 4) != 0 || name[4] < '0' || name[4] > '9') return NULL;
  *rank = strtoul(name + 4, &end, 10);
  return *end == '.' ? end + 1 : NULL;
}

/* A constant leaf may be a shard as well as a replica: its values do not say. */
/* The leaf of the lowest rank that leaf `i` repeats, -1 if none. */
static int32_t original(const synth_graph *g, size_t i) {
  unsigned long rank, other;
  const synth_node *n = &g->node[i];
  const char *rest = leaf_rank(n->name, &rank);
  int32_t best = -1;
  for (size_t k = 0; rest && rank > 0 && k < g->n_nodes; k++) {
    const synth_node *m = &g->node[k];
    const char *mine = m->kind == n->kind ? leaf_rank(m->name, &other) : NULL;
    if (mine && other < rank && strcmp(rest, mine) == 0 &&
        rule_tensor_same(n->value[0], m->value[0]) && rule_tensor_varies(n->value[0])) {
      rank = other;
      best = (int32_t)k;
    }
  }
  return best;
}

iso_code st_join_replicas(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    if (!(s->leaves.replica[side] = malloc((g->n_nodes + 1) * sizeof(int32_t)))) return nomem(err);
    for (size_t i = 0; i < g->n_nodes; i++) {
      const int32_t first = s->leaves.replica[side][i] =
          g->node[i].kind == SYNTH_PARAMETER ? original(g, i) : -1;
      if (first < 0) continue;
      const eg_node a = s->map[side][i], b = s->map[side][first];
      const char *text =
          iso_arena_printf(&s->arena, "%s's %s repeats %s", side == LEFT ? "left" : "right",
                           g->node[i].name, g->node[first].name);
      if (!text || !st_assume(s, RULE_ASSUMES_LEAF, side == LEFT ? a : none,
                              side == RIGHT ? a : none, g->node[first].name, text))
        return nomem(err);
      iso_code c = st_merge(s, a, b, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
      if (c) return c;
    }
  }
  return ISO_OK;
}

size_t st_root_leaf(size_t *parent, size_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

void st_tie_leaves(size_t *parent, size_t leaf, const rule_term *t, size_t offset) {
  if (t->kind == RULE_VAR)
    parent[st_root_leaf(parent, leaf)] = st_root_leaf(parent, (size_t)t->u.i + offset);
  for (uint32_t i = 0; i < t->n; i++) st_tie_leaves(parent, leaf, t->child[i], offset);
}

bool *st_repeating(const state *s, synth_relation *const of[2]) {
  const size_t n_left = s->graph[LEFT]->n_nodes, n = n_left + s->graph[RIGHT]->n_nodes;
  size_t *parent = calloc(n + 1, sizeof *parent);
  int64_t *excess =
      calloc(n + 1, sizeof *excess); /* elements of the left less those of the right */
  bool *open = calloc(n + 1, 1), *out = calloc(n_left + 1, 1);
  if (parent && excess && open && out) {
    for (size_t i = 0; i < n; i++) parent[i] = i;
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
        if (of[side][i].term)
          st_tie_leaves(parent, i + (side == RIGHT ? n_left : 0), of[side][i].term,
                        side == RIGHT ? 0 : n_left);
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
        const synth_node *node = &s->graph[side]->node[i];
        if (node->kind == SYNTH_OP || s->leaves.replica[side][i] >= 0 || s->leaves.unread[side][i])
          continue; /* a copy that nothing reads is no shard */
        const size_t root = st_root_leaf(parent, i + (side == RIGHT ? n_left : 0));
        excess[root] += (side == LEFT ? 1 : -1) * node->value[0]->numel;
        if (side == LEFT && !of[side][i].term) open[root] = true;
      }
    for (size_t i = 0; i < n_left; i++)
      out[i] =
          of[LEFT][i].term && excess[st_root_leaf(parent, i)] > 0 && !open[st_root_leaf(parent, i)];
  } else {
    free(out);
    out = NULL;
  }
  free(parent);
  free(excess);
  free(open);
  return out;
}

/* ---- where parts end ---- */

static bool compares(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->choice == RULE_CHOICE_COMPARE || o->choice == RULE_CHOICE_BOUND ||
         rule_is_overload(op, OP_SUB);
}

size_t st_integer_edges(const state *s, int64_t low, int64_t high, int64_t *out, size_t cap) {
  size_t n = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *node = &s->graph[side]->node[i];
      if (node->kind != SYNTH_OP || s->map[side][i].i == EG_NONE || !compares(node->call->u.s) ||
          node->call->child[0]->kind != RULE_VAR ||
          !rule_dtype_is_int(s->graph[side]->node[node->call->child[0]->u.i].dtype))
        continue;
      for (uint32_t k = 1; k < node->call->n; k++)
        for (int64_t step = -1; step <= 1 && node->call->child[k]->kind == RULE_INT; step++) {
          const int64_t x = node->call->child[k]->u.i + step;
          bool seen = x < low || x >= high;
          for (size_t j = 0; j < n && !seen; j++) seen = out[j] == x;
          if (!seen && n < cap) out[n++] = x;
        }
    }
  return n;
}
