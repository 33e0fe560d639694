/* Several ranks in one graph.
 *
 * A collective is one e-node over all ranks' tensors, and every rank reads that e-node: replicas
 * are joined by congruence and by leaves of equal value, and nothing else in synth/ needs to know
 * of ranks. Only outputs need care: each rank gives its own, "NAME" the first and "NAME_rank<r>"
 * the others, and every one of them must equal its counterpart. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* The length of NAME in "NAME_rank<r>", 0 where the name is not of that form. */
static size_t stem_length(const char *name) {
  const size_t n = strlen(name);
  size_t i = n;
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  return i < n && i > 5 && memcmp(name + i - 5, "_rank", 5) == 0 ? i - 5 : 0;
}

/* The output whose replica on another rank output `k` is; `k` itself where it is none. */
static size_t head_of(const synth_graph *g, size_t k) {
  const size_t n = stem_length(g->output[k].name);
  for (size_t i = 0; n && i < g->n_outputs; i++)
    if (strncmp(g->output[i].name, g->output[k].name, n) == 0 && g->output[i].name[n] == 0)
      return i;
  return k;
}

static size_t count_heads(const synth_graph *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_outputs; i++) n += head_of(g, i) == i;
  return n;
}

/* The `nth` output that is no replica; outputs are counted from 0. */
static size_t nth_head(const synth_graph *g, size_t nth) {
  size_t i = 0;
  while (head_of(g, i) != i || nth-- > 0) i++;
  return i;
}

static int64_t find_output(const synth_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_outputs; i++)
    if (strcmp(g->output[i].name, name) == 0) return (int64_t)i;
  return -1;
}

/* Output `h` and its replicas, in the order of the graph. Returns: how many. */
static size_t replicas(const synth_graph *g, size_t h, size_t *out) {
  size_t n = 0;
  out[n++] = h;
  for (size_t i = 0; i < g->n_outputs; i++)
    if (i != h && head_of(g, i) == h) out[n++] = i;
  return n;
}

/* Which head of the right each head of the left belongs to: the one of its name, and the remaining
 * ones in order. `taken`: by output of the right. */
static void partners(const synth_graph *l, const synth_graph *r, size_t heads, size_t *of,
                     bool *taken) {
  for (size_t k = 0; k < heads; k++) {
    const int64_t j = find_output(r, l->output[nth_head(l, k)].name);
    const bool named = j >= 0 && head_of(r, (size_t)j) == (size_t)j && !taken[j];
    of[k] = named ? (size_t)j : SIZE_MAX;
    if (named) taken[j] = true;
  }
  for (size_t k = 0, next = 0; k < heads; k++) {
    if (of[k] != SIZE_MAX) continue;
    while (taken[nth_head(r, next)]) next++;
    taken[of[k] = nth_head(r, next)] = true;
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

iso_code st_pair_outputs(const synth_graph *left, const synth_graph *right, iso_arena *arena,
                         synth_graph pair[2], iso_error *err) {
  const size_t heads = count_heads(left), all = left->n_outputs + right->n_outputs;
  if (heads != count_heads(right))
    return iso_fail(err, ISO_USAGE, "%s has %zu outputs and %s has %zu: they cannot be paired",
                    left->path, left->n_outputs, right->path, right->n_outputs);
  pairs p = {iso_arena_alloc(arena, (all + 1) * sizeof *p.left),
             iso_arena_alloc(arena, (all + 1) * sizeof *p.right), 0};
  size_t *of = calloc(all + 1, sizeof *of), *partner = calloc(heads + 1, sizeof *partner);
  bool *taken = calloc(all + 1, 1);
  const iso_code c = p.left && p.right && of && partner && taken ? ISO_OK : nomem(err);
  if (!c) partners(left, right, heads, partner, taken);
  for (size_t k = 0; k < heads && !c; k++) {
    const size_t i = nth_head(left, k), j = partner[k];
    const size_t n_l = replicas(left, i, of), n_r = replicas(right, j, of + n_l);
    pair_replicas(&p, left, of, n_l, right, of + n_l, n_r);
  }
  free(of);
  free(partner);
  free(taken);
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
