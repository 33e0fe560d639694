/* Whether every team's graph is the first's; where all ranks become one a team is a rank.
 *
 * The two are walked from their results to their leaves, and each node of the first gets an image
 * in the other: the same operator, the same literals, operands that are images. A collective that
 * is its own image is one in which all teams meet, and its operand r is the image of its first. Any
 * other is within a team, and has an image as operators have. No name decides but that of leaves.
 *
 * A collective may be its own image although the teams bring it different things: the first team
 * the squares of what all have, and the others nothing. Then it is common: no team's own, but an
 * operator on certain ranks' tensors, which may read what the teams have from their meetings, and
 * no leaf of a rank. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "capture/roles/roles_int.h"
#include "egraph/base/hash.h"
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

/* A leaf of the first team, and of team `r` the one of the same name and member; or one that all
 * read. */
static bool same_leaf(const roles_work *x, uint32_t node, uint32_t image, uint32_t r) {
  const cap_node *a = &x->g->node[node], *b = &x->g->node[image];
  const char *name[2] = {NULL, NULL};
  const int64_t first = roles_rank_of(a->name, &name[0]), own = roles_rank_of(b->name, &name[1]);
  if (first < 0) return node == image;
  return a->kind == b->kind && roles_team_of(x, (uint32_t)first) == 0 &&
         own == roles_rank(x, r, roles_member(x, (uint32_t)first)) &&
         strcmp(name[0], name[1]) == 0 && cap_same_outputs(a, b) &&
         rule_domain_same(a->domain, b->domain);
}

/* All teams meet in the node, one member of each or all of them, and the operand of team `r` is the
 * image of the first's. */
static bool same_collective(roles_work *x, uint32_t node, uint32_t image, uint32_t r) {
  const rule_term *call = x->g->node[node].call, *list = call->n ? call->child[0] : NULL;
  if (node != image || !list || list->kind != RULE_LIST) return false;
  if (list->n != x->n_ranks && list->n != x->n_all) return false;
  const bool every = list->n == x->n_all;
  for (uint32_t m = 0; m < (every ? roles_n_team(x) : 1); m++) {
    const rule_term *first = list->child[every ? roles_rank(x, 0, m) : 0],
                    *own = list->child[every ? roles_rank(x, r, m) : r];
    if (first->kind != RULE_VAR || own->kind != RULE_VAR) return false;
    if (!give(x, (uint32_t)first->u.i, (uint32_t)own->u.i)) return false;
  }
  return true;
}

/* Result 0 of a collective that has one for each team, and result r. */
bool roles_is_share(const roles_work *x, const cap_node *n) {
  return rule_is_getitem(n->op) && n->call->child[0]->kind == RULE_VAR &&
         x->meets[n->call->child[0]->u.i];
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
  if (x->common[node] && !x->meets[node] && node == image && cap_role_joins(a)) return true;
  if (!a->call || !b->call) return !a->call && !b->call && same_leaf(x, node, image, r);
  if (a->reordered != b->reordered || !cap_same_outputs(a, b)) return false;
  if (x->meets[node]) return same_collective(x, node, image, r);
  if (roles_is_share(x, a)) return roles_is_share(x, b) && same_share(x, node, image, r);
  return same_term(x, a->call, b->call);
}

/* ---- what is common ---- */

/* A hash of a term, the ranks of its leaves and of its shares aside. */
static uint64_t form_of(const roles_work *x, const uint64_t *form, const rule_term *t) {
  uint64_t h = iso_hash(&t->kind, sizeof t->kind, t->n);
  if (t->kind == RULE_VAR) return form[t->u.i];
  if (t->kind == RULE_OP && rule_is_getitem(t->u.s) && t->child[0]->kind == RULE_VAR &&
      cap_role_joins(&x->g->node[t->child[0]->u.i]))
    return form[t->child[0]->u.i];
  if (t->kind == RULE_OP || t->kind == RULE_STRING) h = iso_hash(t->u.s, strlen(t->u.s), h);
  if (t->kind == RULE_INT) h = iso_hash(&t->u.i, sizeof t->u.i, h);
  for (uint32_t i = 0; i < t->n; i++) {
    const uint64_t both[2] = {h, form_of(x, form, t->child[i])};
    h = iso_hash(both, sizeof both, 0);
  }
  return h;
}

/* By node. It chooses between two readings of a collective, each of which is then shown. */
static iso_code find_forms(roles_work *x) {
  x->form = calloc(x->g->n_nodes + 1, sizeof *x->form);
  for (size_t i = 0; i < x->g->n_nodes && x->form; i++) {
    const cap_node *n = &x->g->node[i];
    const char *rest = n->name;
    if (!n->call) roles_rank_of(n->name, &rest);
    x->form[i] = n->call ? form_of(x, x->form, n->call)
                 : rest  ? iso_hash(rest, strlen(rest), 0)
                         : i;
  }
  return x->form ? ISO_OK : roles_nomem(x);
}

/* Whether each team brings to the collective of all ranks what the first does. */
static bool brings_alike(const roles_work *x, uint32_t node) {
  const rule_term *call = x->g->node[node].call, *list = call->n ? call->child[0] : NULL;
  if (!list || list->kind != RULE_LIST || list->n != x->n_all) return true;
  for (uint32_t r = 0; r < x->n_all; r++) {
    const rule_term *own = list->child[r],
                    *first = list->child[roles_rank(x, 0, roles_member(x, r))];
    if (own->kind != RULE_VAR || first->kind != RULE_VAR ||
        x->form[own->u.i] != x->form[first->u.i])
      return false;
  }
  return true;
}

static void share_operands(roles_work *x, const rule_term *t) {
  if (t->kind == RULE_VAR) x->common[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) share_operands(x, t->child[i]);
}

/* Operands of a common node are common, too, but for results of the teams' collectives. */
static bool find_common(roles_work *x, uint32_t node) {
  const cap_node *n = &x->g->node[node];
  const char *rest;
  if (!x->common[node] || x->meets[node]) return true;
  if (n->call) share_operands(x, n->call);
  return n->call || roles_rank_of(n->name, &rest) < 0;
}

/* Whether the two teams are told by one collective, of which another team's is the image. */
static void find_meeting(roles_work *x, uint32_t node) {
  const uint32_t image = x->image[node];
  const cap_node *n = &x->g->node[node], *other = &x->g->node[image];
  if (image == node && cap_role_joins(n)) {
    if (brings_alike(x, node)) x->meets[node] = true;
    else x->common[node] = true;
  }
  if (!n->call || !other->call || !rule_is_getitem(n->op) || !rule_is_getitem(other->op) ||
      n->call->child[0]->kind != RULE_VAR ||
      !rule_term_eq(n->call->child[0], other->call->child[0]))
    return;
  const uint32_t from = (uint32_t)n->call->child[0]->u.i;
  if (cap_role_joins(&x->g->node[from])) x->meets[from] = true;
}

static bool same_results(roles_work *x, uint32_t team) {
  for (uint32_t j = 0; j < x->n_own; j++)
    if (!give(x, roles_result_of(x, j, 0)->node, roles_result_of(x, j, team)->node)) return false;
  return true;
}

/* The nodes of the first team that its results need. */
static iso_code find_needed(roles_work *x) {
  const size_t n = x->g->n_nodes;
  x->needed = calloc(n + 1, 1);
  x->leaf = calloc(n + 1, sizeof *x->leaf);
  x->at = calloc(n + 1, sizeof *x->at);
  x->order = calloc(n + 1, sizeof *x->order);
  if (!x->needed || !x->leaf || !x->at || !x->order) return roles_nomem(x);
  for (uint32_t i = 0; i < n; i++) {
    x->needed[i] = x->image[i] != ROLES_NONE || x->common[i];
    if (!x->needed[i]) continue;
    if (!x->g->node[i].call) x->leaf[x->n_leaves++] = i;
    x->order[i] = x->n_needed;
    x->at[x->n_needed++] = i;
  }
  if (x->once) return ISO_OK;
  x->images = calloc((size_t)x->n_needed * x->n_ranks + 1, sizeof *x->images);
  return x->images ? ISO_OK : roles_nomem(x);
}

static iso_code same_team(roles_work *x, uint32_t r, bool finds) {
  const size_t n = x->g->n_nodes;
  for (size_t i = 0; i < n; i++) x->image[i] = ROLES_NONE;
  if (!same_results(x, r))
    return roles_refuse(x, "rank %u gives other outputs than rank 0", r * x->stride);
  for (size_t i = n; i-- > 0;) {
    if (finds && x->image[i] != ROLES_NONE) find_meeting(x, (uint32_t)i);
    if (finds && !find_common(x, (uint32_t)i))
      return roles_refuse(x, "%s is one rank's alone", x->g->node[i].id);
    if (x->image[i] == ROLES_NONE) continue;
    if (!same_node(x, (uint32_t)i, r))
      return roles_refuse(x, "%s is another on rank %u", x->g->node[i].id, r * x->stride);
  }
  return ISO_OK;
}

static void mark(roles_work *x, const rule_term *t) {
  if (t->kind == RULE_VAR) x->image[t->u.i] = (uint32_t)t->u.i;
  for (uint32_t i = 0; i < t->n; i++) mark(x, t->child[i]);
}

/* The graph is every rank's: a node is its own image on each. */
static iso_code one_program(roles_work *x) {
  const cap_graph *g = x->g;
  for (size_t i = 0; i < g->n_nodes; i++) x->image[i] = ROLES_NONE;
  for (size_t j = 0; j < g->n_results; j++) x->image[g->result[j].node] = g->result[j].node;
  for (size_t i = g->n_nodes; i-- > 0;) {
    x->meets[i] = cap_role_joins(&g->node[i]);
    if (x->image[i] != ROLES_NONE && g->node[i].call) mark(x, g->node[i].call);
  }
  return find_needed(x);
}

iso_code roles_same(roles_work *x) {
  x->meets = calloc(x->g->n_nodes + 1, 1);
  x->common = calloc(x->g->n_nodes + 1, 1);
  iso_code c = x->meets && x->common ? roles_own_results(x) : roles_nomem(x);
  if (x->once && !c && !roles_refused(x)) return one_program(x);
  if (!c && !roles_refused(x)) c = find_forms(x);
  if (!c && !roles_refused(x)) c = same_team(x, 1, true);
  for (uint32_t r = 0; r < x->n_ranks && !c && !roles_refused(x); r++) {
    c = same_team(x, r, false);
    if (!c && !roles_refused(x) && r == 0) c = find_needed(x);
    for (uint32_t k = 0; k < x->n_needed && !c && !roles_refused(x); k++)
      x->images[(size_t)r * x->n_needed + k] =
          x->image[x->at[k]] == ROLES_NONE ? x->at[k] : x->image[x->at[k]];
  }
  return c;
}
