/* Whether the relations of leaves agree with one another. Each of them holds by value, and values
 * that were captured say too much: norms are all ones, biases all zeros, and any two such
 * parameters, or any two slices of one, are equal. So beside its value a relation keeps
 *
 *   names    a leaf whose namesake on the other side has its value is that namesake, and no other
 *            leaf and no layout of leaves;
 *   sides    a leaf is not a layout of leaves of its own side;
 *   freedom  no relation, and no two together, make an element of a leaf equal to another element
 *            of it;
 *   kinds    parameters have any value, so a leaf in one relation with a floating parameter is no
 *            constant.
 *
 * Different leaves of one side may become one, in whole or in part (embeddings that are tied, rows
 * of padding): that is listed as an assumption. */
#include <stdlib.h>
#include <string.h>

#include "check/unrun/unrun.h"
#include "egraph/base/vec.h"

static const char *name_of(const chk_term *t) {
  return t->node->name ? t->node->name : t->node->id;
}

/* Where the ranks of one model are in one graph, "rank<r>.NAME" is rank r's NAME. */
static const char *stem(const char *name, long *rank) {
  char *end;
  *rank = -1;
  if (strncmp(name, "rank", 4) != 0 || name[4] < '0' || name[4] > '9') return name;
  const long r = strtol(name + 4, &end, 10);
  if (*end != '.') return name;
  *rank = r;
  return end + 1;
}

static bool namesakes(const chk_term *a, const chk_term *b) {
  long r;
  return strcmp(stem(name_of(a), &r), stem(name_of(b), &r)) == 0;
}

static const rule_tensor *first_value(const chk_state *k, uint32_t leaf) {
  return chk_captured(k, leaf, 0);
}

/* ---- the leaves of a step ---- */

typedef struct below {
  uint32_t *leaf, *stamp; /* stamp, by term: the last walk that met it */
  size_t n, cap;
  uint32_t walk;
} below;

static iso_code collect(chk_state *k, below *x, uint32_t term);

static iso_code collect_arguments(chk_state *k, below *x, const rule_term *t) {
  iso_code c = t->kind == RULE_VAR ? collect(k, x, (uint32_t)t->u.i) : ISO_OK;
  for (uint32_t i = 0; i < t->n && !c; i++) c = collect_arguments(k, x, t->child[i]);
  return c;
}

/* A layout of leaves is not deep; a deep one is refused by some step. */
static iso_code collect(chk_state *k, below *x, uint32_t term) {
  const chk_term *t = &k->term[term];
  if (x->stamp[term] == x->walk || t->depth > CHK_LAYOUT_DEPTH) return ISO_OK;
  x->stamp[term] = x->walk;
  if (t->call) return collect_arguments(k, x, t->call);
  if (!iso_grow(x->leaf, x->cap, x->n + 1)) return chk_nomem(k);
  x->leaf[x->n++] = term;
  return ISO_OK;
}

static iso_code leaves_of(chk_state *k, below *x, uint32_t term) {
  if (!x->stamp && !(x->stamp = calloc(k->n_terms + 1, sizeof *x->stamp))) return chk_nomem(k);
  x->n = 0;
  x->walk++;
  return collect(k, x, term);
}

static void below_free(below *x) {
  free(x->leaf);
  free(x->stamp);
}

/* ---- kinds ---- */

static bool is_free(const chk_state *k, uint32_t leaf) {
  const cap_node *n = k->term[leaf].node;
  return k->here.unpinned[leaf] || chk_is_weight(n);
}

/* Returns: whether it was pinned. */
static bool unpin_leaf(chk_state *k, uint32_t leaf) {
  if (k->term[leaf].node->kind == CAP_INPUT || is_free(k, leaf)) return false;
  return k->here.unpinned[leaf] = true;
}

/* Until nothing changes: a leaf related to a floating parameter counts as one. */
static iso_code unpin(chk_state *k, below *x) {
  iso_code c = ISO_OK;
  for (bool moved = true; moved && !c;) {
    moved = false;
    for (size_t i = 0; i < k->cert.n_steps && !c; i++) {
      const chk_step *s = &k->cert.step[i];
      if (s->kind != CHK_LEAF || k->term[s->a].call || (c = leaves_of(k, x, s->b))) continue;
      bool any = is_free(k, s->a);
      for (size_t j = 0; j < x->n; j++) any |= is_free(k, x->leaf[j]);
      if (!any) continue;
      moved |= unpin_leaf(k, s->a);
      for (size_t j = 0; j < x->n; j++) moved |= unpin_leaf(k, x->leaf[j]);
    }
  }
  return c;
}

/* ---- names and sides ---- */

/* Whether the other side has a leaf of this one's name, shape and values. */
static bool has_namesake(const chk_state *k, uint32_t leaf) {
  const chk_term *t = &k->term[leaf];
  const cap_graph *other = k->graph[1 - t->side];
  const bool input = t->node->kind == CAP_INPUT;
  const uint32_t base = t->side == LEFT ? (uint32_t)k->graph[LEFT]->n_nodes : 0;
  for (uint32_t i = 0; i < other->n_nodes; i++) {
    const chk_term *u = &k->term[base + i];
    if (u->call || (u->node->kind == CAP_INPUT) != input || !namesakes(t, u)) continue;
    bool same = true;
    for (size_t s = 0; s < (input ? other->n_sets : 1) && s < k->graph[t->side]->n_sets && same;
         s++)
      same = chk_captured(k, leaf, s) && chk_captured(k, base + i, s) &&
             !chk_leaves_differ(chk_captured(k, leaf, s), chk_captured(k, base + i, s), input);
    if (same) return true;
  }
  return false;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Most of a leaf's numbers are different ones: no tensor has them by chance. Zeros, ones and masks
 * are told apart by their names alone. */
static iso_code many_numbers(chk_state *k, uint32_t leaf, bool *many) {
  enum { LOOKED_AT = 4096 };
  const rule_tensor *t = chk_captured(k, leaf, 0);
  const int64_t step = t->numel / LOOKED_AT + 1;
  size_t n = 0, distinct = 0;
  double *v = malloc(((size_t)(t->numel / step) + 2) * sizeof *v);
  if (!v) return chk_nomem(k);
  for (int64_t i = 0; i < t->numel; i += step) v[n++] = rule_tensor_get(t, i);
  qsort(v, n, sizeof *v, by_value);
  for (size_t i = 0; i < n; i++) distinct += i == 0 || v[i] != v[i - 1];
  free(v);
  *many = distinct > 1 && 2 * distinct >= n;
  return ISO_OK;
}

static iso_code check_names(chk_state *k, below *x, const chk_step *s, size_t step) {
  const chk_term *a = &k->term[s->a], *b = &k->term[s->b];
  if (a->call) return ISO_OK; /* refused where it is taken */
  if (a->node->kind != CAP_INPUT && !is_free(k, s->a)) return ISO_OK; /* one value in any case */
  if (b->call) {
    iso_code c = leaves_of(k, x, s->b);
    for (size_t i = 0; i < x->n && !c; i++)
      if (k->term[x->leaf[i]].side == a->side)
        return chk_settle(k, CHK_REFUSED,
                          "step %zu: %s is said to be a layout of leaves of its own side", step,
                          name_of(a));
    if (c || k->o->given_leaves || !has_namesake(k, s->a)) return c;
    /* A copy may stand beside the whole that it is a part of. */
    bool part = false;
    if (a->node->kind != CAP_INPUT && (c = many_numbers(k, s->a, &part))) return c;
    if (part) return ISO_OK;
    return chk_settle(k, CHK_REFUSED,
                      "step %zu: %s has its value as %s on the other side, and is said to be a "
                      "layout of something",
                      step, name_of(a), name_of(a));
  }
  if (k->o->given_leaves || namesakes(a, b) || !has_namesake(k, s->a) || !has_namesake(k, s->b))
    return ISO_OK;
  return chk_settle(
      k, CHK_REFUSED,
      "step %zu: %s and %s each have their value under their own name on the other side", step,
      name_of(a), name_of(b));
}

iso_code chk_relations(chk_state *k) {
  below x = {0};
  iso_code c =
      (k->here.unpinned = calloc(k->n_terms + 1, sizeof *k->here.unpinned)) ? ISO_OK : chk_nomem(k);
  if (!c) c = unpin(k, &x);
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++)
    if (k->cert.step[i].kind == CHK_LEAF && !(k->o->unrun && chk_of_weights(k, &k->cert.step[i])))
      c = check_names(k, &x, &k->cert.step[i], i);
  below_free(&x);
  return c || !k->o->unrun || chk_settled(k) ? c : chk_unrun_relations(k);
}

/* ---- freedom: elements by number, equal ones in one class ---- */

static uint32_t first_of(chk_elements *e, uint32_t leaf) {
  while (e->first[leaf] != leaf) leaf = e->first[leaf] = e->first[e->first[leaf]];
  return leaf;
}

static uint32_t element(chk_elements *e, uint32_t i) {
  while (e->up[i] != i) i = e->up[i] = e->up[e->up[i]];
  return i;
}

int64_t chk_element(chk_elements *e, uint32_t leaf, int64_t i) {
  const int64_t base = e->base[first_of(e, leaf)];
  return base < 0 ? -1 : (int64_t)element(e, (uint32_t)(base + i));
}

bool chk_has_elements(chk_elements *e, uint32_t leaf) { return e->base[first_of(e, leaf)] >= 0; }

bool chk_leaf_is_free(chk_state *k, uint32_t leaf) {
  const chk_term *t = &k->term[leaf];
  if (!t->node || t->call) return false;
  return t->node->kind == CAP_INPUT ? !k->here.konst[chk_root(k, leaf)].v : is_free(k, leaf);
}

/* Pinned leaves have one value, so that no step about them moves anything. */
static bool moves(chk_state *k, const chk_step *s) {
  return s->kind == CHK_LEAF && chk_leaf_is_free(k, s->a);
}

/* A leaf's base until it is numbered, and for good where it is kept out. */
enum { NO_BASE = -1, KEPT_OUT = -2 };

static void number_leaf(const chk_state *k, chk_elements *e, uint32_t leaf, int64_t most) {
  const uint32_t f = first_of(e, leaf);
  if (e->base[f] != NO_BASE || first_value(k, f)->numel > most) return;
  e->base[f] = (int64_t)e->n;
  e->n += (size_t)first_value(k, f)->numel;
}

/* The leaves of a layout relation get numbers, or none where only others are asked for. */
static void number_layout(const chk_state *k, chk_elements *e, const below *x, uint32_t a,
                          int64_t most) {
  const bool in = most == 0 || most == INT64_MAX;
  if (in) number_leaf(k, e, a, INT64_MAX);
  else e->base[first_of(e, a)] = KEPT_OUT;
  for (size_t j = 0; j < x->n; j++)
    if (in) number_leaf(k, e, x->leaf[j], INT64_MAX);
    else e->base[first_of(e, x->leaf[j])] = KEPT_OUT;
}

static iso_code number_all(chk_state *k, chk_elements *e, below *x, int64_t most) {
  iso_code c = ISO_OK;
  e->first = malloc((k->n_terms + 1) * sizeof *e->first);
  e->base = malloc((k->n_terms + 1) * sizeof *e->base);
  if (!e->first || !e->base) return chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms; i++) e->first[i] = i, e->base[i] = NO_BASE;
  for (size_t i = 0; i < k->cert.n_steps; i++)
    if (moves(k, &k->cert.step[i]) && !k->term[k->cert.step[i].b].call)
      e->first[first_of(e, k->cert.step[i].a)] = first_of(e, k->cert.step[i].b);
  for (size_t i = 0; i < k->cert.n_steps && !c; i++) {
    if (!moves(k, &k->cert.step[i]) || !k->term[k->cert.step[i].b].call) continue;
    c = leaves_of(k, x, k->cert.step[i].b);
    number_layout(k, e, x, k->cert.step[i].a, most);
  }
  for (uint32_t i = 0; i < k->n_terms && !c && most; i++)
    if (chk_leaf_is_free(k, i)) number_leaf(k, e, i, most);
  return c;
}

static iso_code numbered(chk_state *k, void *ctx, uint32_t leaf, rule_tensor **out) {
  chk_elements *e = ctx;
  const rule_tensor *v = first_value(k, leaf);
  iso_code c = rule_tensor_new(RULE_I64, &v->shape, out, k->err);
  int64_t *id = c ? NULL : (*out)->data;
  for (int64_t i = 0; !c && i < v->numel; i++) id[i] = e->base[first_of(e, leaf)] + i;
  return c;
}

static iso_code join_elements(chk_state *k, chk_elements *e, const chk_step *s, size_t step) {
  rule_tensor *id;
  iso_code c = chk_layout(k, s->b, step, numbered, e, &id);
  if (c || !id) return c;
  const int64_t *p = id->data, base = e->base[first_of(e, s->a)];
  for (int64_t i = 0; i < id->numel; i++) {
    const uint32_t a = element(e, (uint32_t)(base + i)), b = element(e, (uint32_t)p[i]);
    if (a < b) e->up[b] = a;
    else e->up[a] = b;
  }
  rule_tensor_unref(id);
  return ISO_OK;
}

/* Mark the elements of `leaf`; in `other` 1 + a leaf of the group that has some of them. Each mark
 * is the last leaf's: a leaf that meets its own has one element twice, whoever had it before.
 * Returns whether that is so. */
static bool claim(const chk_state *k, chk_elements *e, uint32_t *owner, uint32_t leaf,
                  uint32_t *other) {
  const int64_t base = e->base[first_of(e, leaf)], n = first_value(k, leaf)->numel;
  *other = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t *o = &owner[element(e, (uint32_t)(base + i))];
    if (*o == leaf + 1) return true;
    if (*o) *other = *o;
    *o = leaf + 1;
  }
  return false;
}

static long rank_of(const chk_term *t) {
  long r;
  stem(name_of(t), &r);
  return r;
}

/* The leaves of one side and rank, from `from` on. `owner`, by element: 1 + the last leaf of the
 * group that has it. */
static iso_code check_group(chk_state *k, chk_elements *e, uint32_t *owner, uint32_t from,
                            bool *done) {
  iso_code c = ISO_OK;
  memset(owner, 0, e->n * sizeof *owner);
  for (uint32_t i = from; i < k->n_terms && !c; i++) {
    const chk_term *t = &k->term[i];
    uint32_t other;
    if (done[i] || !t->node || t->call || e->base[first_of(e, i)] < 0 ||
        t->side != k->term[from].side || rank_of(t) != rank_of(&k->term[from]))
      continue;
    done[i] = true;
    const char *side = t->side == LEFT ? "left's" : "right's";
    bool whole = false; /* the same leaf twice by plain relations: listed where classes are */
    for (uint32_t j = from; j < i && !whole; j++)
      whole = done[j] && first_of(e, j) == first_of(e, i) && k->term[j].side == t->side &&
              rank_of(&k->term[j]) == rank_of(t);
    if (whole) continue;
    if (claim(k, e, owner, i, &other))
      return chk_settle(k, CHK_REFUSED,
                        "the relations of leaves make elements of %s %s equal to each other", side,
                        name_of(t));
    if (other)
      c = chk_assume(
          k, RULE_ASSUMES_LEAF,
          iso_arena_printf(
              k->arena,
              "%s %s and %s, which have captured values in common, are taken as one there", side,
              name_of(&k->term[other - 1]), name_of(t)));
  }
  return c;
}

iso_code chk_elements_new(chk_state *k, int64_t most, chk_elements *e) {
  below x = {0};
  *e = (chk_elements){0};
  iso_code c = number_all(k, e, &x, most);
  below_free(&x);
  if (c || !e->n || e->n >= UINT32_MAX) return c;
  if (!(e->up = malloc(e->n * sizeof *e->up))) return chk_nomem(k);
  for (size_t i = 0; i < e->n; i++) e->up[i] = (uint32_t)i;
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++)
    if (moves(k, &k->cert.step[i]) && k->term[k->cert.step[i].b].call &&
        chk_has_elements(e, k->cert.step[i].a))
      c = join_elements(k, e, &k->cert.step[i], i);
  return c;
}

void chk_elements_free(chk_elements *e) {
  free(e->first);
  free(e->base);
  free(e->up);
  *e = (chk_elements){0};
}

iso_code chk_free_elements(chk_state *k) {
  chk_elements e;
  uint32_t *owner = NULL;
  bool *done = calloc(k->n_terms + 1, sizeof *done);
  iso_code c = chk_elements_new(k, 0, &e);
  if (!c && !done) c = chk_nomem(k);
  if (!c && e.n >= UINT32_MAX)
    c = chk_assume(k, RULE_ASSUMES_LEAF,
                   "whether relations of leaves make elements of one equal was not looked at: "
                   "there are too many");
  else if (!c && e.n && !(owner = malloc(e.n * sizeof *owner))) c = chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms && !c && owner && !chk_settled(k); i++)
    if (!done[i] && k->term[i].node && !k->term[i].call && e.base[first_of(&e, i)] >= 0)
      c = check_group(k, &e, owner, i, done);
  chk_elements_free(&e);
  free(owner);
  free(done);
  return c;
}

/* Whether relation (a, b) says which leaf it is by its name. */
bool chk_namesakes(const chk_state *k, uint32_t a, uint32_t b) {
  return !k->term[b].call && namesakes(&k->term[a], &k->term[b]);
}
