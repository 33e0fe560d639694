/* Refining a frontier that validation refuted: which of its variables depend on others, in the
 * graphs, and how they are expressed by those. */
#include "synth/search/frontier.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

bool fr_shared(state *s, uint32_t c) {
  const eg_node rep = st_rep(s, (eg_class){c});
  return rep.i != EG_NONE && s->rec[rep.i].tensor;
}

static bool lays_out(const char *op, const rule_operator *o) {
  if (rule_is_overload(op, OP_T)) return false;
  return o->identity || (o->relates && (o->rearranges || o->part)) || rule_is_getitem(op);
}

/* Rules are named after other operators than these, and after a transposed matrix, which says more
 * than the other layouts do. */
bool fr_layout_op(const char *op) { return lays_out(op, rule_operator_of(op)); }

bool fr_moves_op(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->rearranges || o->part || lays_out(op, o);
}

/* The classes that captured nodes of one side compute `c` from, by class id; a leaf's are those of
 * its definition. */
static void sources(state *s, const cone *k, uint32_t c, int side, bool inside, uint8_t *seen) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++) inside |= s->rec[m[i].i].leaf && !s->rec[m[i].i].atom;
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    const bool auxiliary = st_made(r);
    if (r->node[side] < 0 && !(auxiliary && (inside || !r->tensor))) continue;
    for (size_t a = 0; a < eg_node_arity(s->g, m[i]); a++) {
      const uint32_t d = eg_node_child(s->g, m[i], a).i;
      if (!k->in[d] || seen[d]) continue;
      seen[d] = 1;
      sources(s, k, d, side, inside, seen);
    }
  }
}

enum { LAYOUT_DEPTH = 6 };

/* Searches for layouts of one class after another. */
typedef struct layouts {
  state *s;
  const cone *k;
  uint32_t *vain; /* by class id: number of the search times 8, and how deep was looked in vain */
  uint32_t search;
} layouts;

static bool constant_class(state *s, uint32_t c) {
  const eg_node rep = st_rep(s, (eg_class){c});
  return rep.i != EG_NONE && s->rec[rep.i].konst;
}

/* A class that is a layout of another, by auxiliary nodes and captured layouts: the classes on the
 * way, `c` included, are put into `path`. */
static bool on_the_way(layouts *x, uint32_t c, uint32_t of, int depth, opening *path) {
  state *s = x->s;
  const cone *k = x->k;
  const uint32_t looked = 8 * x->search + (uint32_t)depth;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m),
               room = sizeof path->cls / sizeof *path->cls;
  if (c == of) return true;
  if (x->vain[c] >= looked && x->vain[c] / 8 == x->search) return false;
  for (size_t i = 0; i < n && depth > 0 && path->n < room; i++) {
    const rec *r = &s->rec[m[i].i];
    if (!(r->tensor || st_is_list(s, m[i])) || (!st_made(r) && !fr_layout_op(st_operator(s, m[i]))))
      continue;
    for (size_t a = 0; a < eg_node_arity(s->g, m[i]); a++) {
      const uint32_t d = eg_node_child(s->g, m[i], a).i;
      if (!k->in[d] || !on_the_way(x, d, of, depth - 1, path) || path->n == room) continue;
      bool seen = !k->cut[c] && !constant_class(s, c);
      for (size_t j = 0; j < path->n && !seen; j++) seen = path->cls[j] == c;
      if (!seen) path->cls[path->n++] = c;
      return true;
    }
  }
  x->vain[c] = looked;
  return false;
}

static bool layout_of(layouts *x, uint32_t c, uint32_t of, opening *path) {
  x->search++;
  return on_the_way(x, c, of, LAYOUT_DEPTH, path);
}

static bool holds(const opening *o, uint32_t c) {
  for (size_t i = 0; i < o->n; i++)
    if (o->cls[i] == c) return true;
  return false;
}

/* Other ways to read the classes path[from..]: other constants on which the frontier
 * is cut, and which `of` is not. */
static void detours(state *s, const cone *k, const opening *path, size_t from, uint32_t of,
                    opening *aside) {
  for (size_t i = from; i < path->n; i++) {
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, (eg_class){path->cls[i]}, &m);
    for (size_t j = 0; j < n; j++)
      for (size_t a = 0; a < eg_node_arity(s->g, m[j]); a++) {
        const uint32_t d = eg_node_child(s->g, m[j], a).i;
        if (d != of && k->in[d] && constant_class(s, d) && !holds(path, d) && !holds(aside, d) &&
            aside->n < sizeof aside->cls / sizeof *aside->cls)
          aside->cls[aside->n++] = d;
      }
  }
}

/* Two constants that are layouts of a third: the classes on the ways to it are put into `path`. */
static bool layouts_of_one(layouts *x, uint32_t a, uint32_t b, opening *path, opening *aside) {
  state *s = x->s;
  const cone *k = x->k;
  for (size_t i = 0; i < k->n; i++) {
    const uint32_t d = k->cls[i];
    opening both = *path;
    if (d == a || d == b || !fr_shared(s, d) || !constant_class(s, d) ||
        !layout_of(x, a, d, &both) || !layout_of(x, b, d, &both))
      continue;
    detours(s, k, &both, path->n, d, aside);
    *path = both;
    return true;
  }
  return false;
}

bool fr_dependencies(state *s, const cone *k, const builder *b, bool near, opening *open,
                     opening *shut, opening *aside) {
  uint8_t *seen = malloc(eg_count_added(s->g) + 1);
  layouts x = {s, k, calloc(eg_count_added(s->g) + 1, sizeof *x.vain), 0};
  bool below[RULE_MAX_VARS] = {false};
  size_t by[RULE_MAX_VARS]; /* the variable that it is made of, or a layout of */
  if (!seen || !x.vain) return free(seen), free(x.vain), false;
  for (size_t i = 0; i < b->n_vars; i++) {
    bool found = false;
    by[i] = SIZE_MAX;
    for (int side = 0; side < 2; side++) {
      memset(seen, 0, eg_count_added(s->g) + 1);
      sources(s, k, b->var[i].i, side, false, seen);
      for (size_t j = 0; j < b->n_vars; j++)
        if (j != i && seen[b->var[j].i] &&
            !(near && constant_class(s, b->var[j].i) && !constant_class(s, b->var[i].i)))
          found = below[j] = true, by[i] = j;
    }
    if (found && k->cut[b->var[i].i] && open->n < sizeof open->cls / sizeof *open->cls)
      open->cls[open->n++] = b->var[i].i;
    const size_t from = open->n;
    for (size_t j = 0; j < b->n_vars && !found; j++)
      if (j != i && (j > i || by[j] != i) &&
          (found = layout_of(&x, b->var[i].i, b->var[j].i, open))) {
        by[i] = j;
        open->first |= constant_class(s, b->var[i].i);
        detours(s, k, open, from, b->var[j].i, aside);
      }
    for (size_t j = 0; j < i && !found && constant_class(s, b->var[i].i); j++)
      if (constant_class(s, b->var[j].i))
        found = layouts_of_one(&x, b->var[i].i, b->var[j].i, open, aside);
  }
  for (size_t i = 0; i < b->n_vars; i++)
    if (below[i]) shut->cls[shut->n++] = b->var[i].i;
  free(seen);
  free(x.vain);
  return true;
}

bool fr_tied_open(state *s, const cone *k, const builder *b, const bool *tied, opening *open) {
  uint8_t *seen = malloc(eg_count_added(s->g) + 1);
  bool below[RULE_MAX_VARS] = {false}, above[RULE_MAX_VARS] = {false};
  if (!seen) return false;
  for (size_t i = 0; i < b->n_vars; i++)
    for (int side = 0; side < 2 && tied[i]; side++) {
      memset(seen, 0, eg_count_added(s->g) + 1);
      sources(s, k, b->var[i].i, side, false, seen);
      for (size_t j = 0; j < b->n_vars; j++)
        if (j != i && tied[j] && seen[b->var[j].i]) above[i] = below[j] = true;
    }
  for (size_t i = 0; i < b->n_vars; i++)
    if (tied[i] && (k->cut[b->var[i].i] || fr_written_out(s, b->var[i])) &&
        (above[i] || !below[i]) && open->n < sizeof open->cls / sizeof *open->cls) {
      open->how[open->n] = OPEN;
      open->cls[open->n++] = b->var[i].i;
    }
  free(seen);
  return true;
}
