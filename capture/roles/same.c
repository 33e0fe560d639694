/* Whether every rank's graph is the first's.
 *
 * The two are walked from their results to their leaves, and each node of the first gets an image
 * in the other: the same operator, the same literals, operands that are images. A collective has
 * all ranks, and its operand r is the image of its first. No name decides but that of leaves. */
#include <stdlib.h>
#include <string.h>

#include "capture/roles/roles_int.h"
#include "rules/operators.h"

int64_t roles_rank_of(const char *name, const char **rest) {
  enum { WORD = 4, MOST = 1 << 24 };
  if (!name || strncmp(name, "rank", WORD) != 0) return -1;
  int64_t r = 0;
  const char *s = name + WORD;
  if (*s == '0' && s[1] != '.') return -1;
  for (; *s >= '0' && *s <= '9' && r < MOST; s++) r = 10 * r + (*s - '0');
  if (s == name + WORD || *s != '.') return -1;
  *rest = s + 1;
  return r;
}

bool roles_is_collective(const cap_node *n) {
  return n->call && n->call->kind == RULE_OP && rule_operator_of(n->call->u.s)->collective;
}

/* ---- images ---- */

static bool give(roles_work *x, uint32_t node, uint32_t image) {
  if (x->image[node] == ROLES_NONE) x->image[node] = image;
  return x->image[node] == image;
}

static bool same_term(roles_work *x, const rule_term *a, const rule_term *b) {
  if (a->kind != b->kind) return false;
  if (a->kind == RULE_VAR) return give(x, (uint32_t)a->u.i, (uint32_t)b->u.i);
  if (a->kind != RULE_OP && a->kind != RULE_LIST) return rule_term_eq(a, b);
  if (a->n != b->n || (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0)) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_term(x, a->child[i], b->child[i])) return false;
  return true;
}

/* A leaf of the first rank, and of rank `r` the one of the same name; or one that all read. */
static bool same_leaf(const roles_work *x, uint32_t node, uint32_t image, uint32_t r) {
  const cap_node *a = &x->g->node[node], *b = &x->g->node[image];
  const char *name[2] = {NULL, NULL};
  if (roles_rank_of(a->name, &name[0]) < 0) return node == image;
  return a->kind == b->kind && roles_rank_of(a->name, &name[0]) == 0 &&
         roles_rank_of(b->name, &name[1]) == (int64_t)r && strcmp(name[0], name[1]) == 0 &&
         cap_same_outputs(a, b) && rule_domain_same(a->domain, b->domain);
}

/* All ranks meet in the node, and the operand of rank `r` is the image of the first's. */
static bool same_collective(roles_work *x, uint32_t node, uint32_t image, uint32_t r) {
  const rule_term *call = x->g->node[node].call, *list = call->n ? call->child[0] : NULL;
  if (node != image || !list || list->kind != RULE_LIST || list->n != x->n_ranks) return false;
  if (list->child[0]->kind != RULE_VAR || list->child[r]->kind != RULE_VAR) return false;
  return give(x, (uint32_t)list->child[0]->u.i, (uint32_t)list->child[r]->u.i);
}

/* Result 0 of a collective that has one for each rank, and result r. */
static bool is_share(const roles_work *x, const cap_node *n) {
  return rule_is_getitem(n->op) && n->call->child[0]->kind == RULE_VAR &&
         roles_is_collective(&x->g->node[n->call->child[0]->u.i]);
}

static bool same_share(roles_work *x, uint32_t node, uint32_t image, uint32_t r) {
  const rule_term *a = x->g->node[node].call, *b = x->g->node[image].call;
  return a->child[1]->u.i == 0 && b->child[1]->u.i == (int64_t)r &&
         a->child[0]->u.i == b->child[0]->u.i &&
         give(x, (uint32_t)a->child[0]->u.i, (uint32_t)b->child[0]->u.i);
}

static bool same_node(roles_work *x, uint32_t node, uint32_t r) {
  const uint32_t image = x->image[node];
  const cap_node *a = &x->g->node[node], *b = &x->g->node[image];
  if (!a->call || !b->call) return !a->call && !b->call && same_leaf(x, node, image, r);
  if (a->reordered != b->reordered || !cap_same_outputs(a, b)) return false;
  if (roles_is_collective(a)) return same_collective(x, node, image, r);
  if (is_share(x, a)) return is_share(x, b) && same_share(x, node, image, r);
  return same_term(x, a->call, b->call);
}

/* Result `j` of rank `r`: rank after rank, or each name on all ranks. */
static const cap_result *result_of(const roles_work *x, uint32_t j, uint32_t r) {
  return &x->g->result[x->by_name ? j * x->n_ranks + r : r * x->n_own + j];
}

static bool is_called(roles_work *x, const cap_result *own, const cap_result *first, uint32_t r) {
  const char *want = iso_arena_printf(&x->out->arena, "%s_rank%u", first->name, r);
  return want && strcmp(own->name, want) == 0;
}

/* Rank `r`'s results are called as the first's, with its number behind. */
static bool same_results(roles_work *x, uint32_t r) {
  for (uint32_t j = 0; j < x->n_own; j++) {
    const cap_result *a = result_of(x, j, 0), *b = result_of(x, j, r);
    if ((r && !is_called(x, b, a, r)) || !give(x, a->node, b->node)) return false;
  }
  return true;
}

/* Of the first rank itself: what is needed of it. */
static iso_code find_needed(roles_work *x) {
  const size_t n = x->g->n_nodes;
  x->needed = calloc(n + 1, 1);
  x->leaf = calloc(n + 1, sizeof *x->leaf);
  x->at = calloc(n + 1, sizeof *x->at);
  x->order = calloc(n + 1, sizeof *x->order);
  if (!x->needed || !x->leaf || !x->at || !x->order) return roles_nomem(x);
  for (uint32_t i = 0; i < n; i++) {
    x->needed[i] = x->image[i] != ROLES_NONE;
    if (!x->needed[i]) continue;
    if (!x->g->node[i].call) x->leaf[x->n_leaves++] = i;
    x->order[i] = x->n_needed;
    x->at[x->n_needed++] = i;
  }
  x->images = calloc((size_t)x->n_needed * x->n_ranks + 1, sizeof *x->images);
  return x->images ? ISO_OK : roles_nomem(x);
}

iso_code roles_same(roles_work *x) {
  const size_t n = x->g->n_nodes;
  iso_code c = ISO_OK;
  x->n_own = (uint32_t)(x->g->n_results / x->n_ranks);
  if (x->n_own * (size_t)x->n_ranks != x->g->n_results || !x->n_own)
    return roles_refuse(x, "not all ranks give the same outputs");
  x->by_name = is_called(x, &x->g->result[1], &x->g->result[0], 1);
  for (uint32_t r = 0; r < x->n_ranks && !c; r++) {
    for (size_t i = 0; i < n; i++) x->image[i] = ROLES_NONE;
    if (!same_results(x, r)) return roles_refuse(x, "rank %u gives other outputs than rank 0", r);
    for (size_t i = n; i-- > 0;)
      if (x->image[i] != ROLES_NONE && !same_node(x, (uint32_t)i, r))
        return roles_refuse(x, "%s is another on rank %u", x->g->node[i].id, r);
    if (r == 0) c = find_needed(x);
    for (uint32_t k = 0; k < x->n_needed && !c; k++)
      x->images[(size_t)r * x->n_needed + k] = x->image[x->at[k]];
  }
  return c;
}
