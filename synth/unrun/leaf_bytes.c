/* Parameters as they lie in the files of two checkpoints: which are one, which are put together of
 * others, and how those differ that should be one. Files are mapped and read in order; pages that
 * were read are given back now and then, so that memory holds a few tensors at a time. */
#include "synth/unrun/unrun.h"
#include "synth/joint/joint.h"
#include "rules/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static size_t bytes_of(const rule_tensor *t) {
  return (size_t)t->numel * rule_dtype_size(t->dtype);
}

void st_read_soon(const void *from, size_t n) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)from / page * page;
  (void)posix_madvise((void *)at, n + ((uintptr_t)from - at), POSIX_MADV_WILLNEED);
}

/* Whether `n` bytes are equal; hands mapped memory back after each large part. Where the first ones
 * are, the rest is asked for before it is looked at: so the disk reads on meanwhile. */
static bool same(state *s, const char *a, const char *b, size_t n) {
  enum { FIRST = 1 << 12, PART = 1 << 26 };
  if (memcmp(a, b, n < FIRST ? n : FIRST) != 0) return false;
  for (size_t at = 0, soon = 0; at < n; at += PART) {
    const size_t m = n - at < PART ? n - at : PART;
    for (; n > FIRST && soon < n && soon <= at + PART; soon += PART) {
      const size_t next = n - soon < PART ? n - soon : PART;
      st_read_soon(a + soon, next);
      st_read_soon(b + soon, next);
    }
    if (memcmp(a + at, b + at, m) != 0) return false;
    if (m == PART && s->o->idle) s->o->idle(s->o->ctx);
  }
  return true;
}

bool st_same_bytes(state *s, const rule_tensor *a, const rule_tensor *b) {
  return a->dtype == b->dtype && rule_shape_eq(&a->shape, &b->shape) &&
         same(s, a->data, b->data, bytes_of(a));
}

/* ---- rows below rows ---- */

bool st_unjoined(const state *s, int side, size_t i) {
  const eg_node *m;
  return eg_class_nodes(s->g, eg_class_of(s->g, s->map[side][i]), &m) == 1;
}

static bool free_parameter(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  return n->kind == SYNTH_PARAMETER && n->value[0] && n->shape.rank > 0 && n->value[0]->numel &&
         st_unjoined(s, side, i);
}

/* Whether the rows of `part` stand in `whole` from byte `at` on. */
static bool stands_at(state *s, const rule_tensor *whole, size_t at, const rule_tensor *part) {
  if (whole->dtype != part->dtype || whole->shape.rank != part->shape.rank) return false;
  for (uint32_t d = 1; d < whole->shape.rank; d++)
    if (whole->shape.dim[d] != part->shape.dim[d]) return false;
  return at + bytes_of(part) <= bytes_of(whole) &&
         same(s, (const char *)whole->data + at, part->data, bytes_of(part));
}

enum { MAX_PARTS = 64 };

/* The parameters of the other side that a leaf is made of, in order. Returns: how many; 0 where it
 * is not, or where a part could be several. */
static size_t parts_of(state *s, int side, size_t i, size_t part[MAX_PARTS]) {
  const rule_tensor *whole = s->graph[side]->node[i].value[0];
  const synth_graph *other = s->graph[!side];
  size_t n = 0, at = 0;
  while (at < bytes_of(whole)) {
    size_t found = other->n_nodes;
    for (size_t k = 0; k < other->n_nodes; k++) {
      if (!free_parameter(s, !side, k) || !stands_at(s, whole, at, other->node[k].value[0]))
        continue;
      if (found < other->n_nodes) return 0;
      found = k;
    }
    if (found == other->n_nodes || n == MAX_PARTS) return 0;
    part[n++] = found;
    at += bytes_of(other->node[found].value[0]);
  }
  return n;
}

/* Leaf i of `side` is a concatenation of leaves of the other one, or one of them. */
static iso_code join_parts(state *s, int side, size_t i, const size_t *part, size_t n,
                           iso_error *err) {
  const rule_term *var[MAX_PARTS], *term;
  eg_node def;
  for (size_t k = 0; k < n; k++)
    if (!(var[k] = rule_var(&s->arena, (uint32_t)part[k]))) return nomem(err);
  const rule_term *arg[2] = {rule_list(&s->arena, var, (uint32_t)n), rule_int(&s->arena, 0)};
  term = n == 1 ? var[0] : arg[0] && arg[1] ? rule_op(&s->arena, OP_CAT, arg, 2) : NULL;
  iso_code c = term ? st_add_term(s, term, s->map[!side], &def, err) : nomem(err);
  if (c) return c;
  const char *text =
      iso_arena_printf(&s->arena, "%s's %s is %s of the other side, byte for byte, from %s on",
                       side == LEFT ? "left" : "right", s->graph[side]->node[i].name,
                       n == 1 ? "one" : "rows", s->graph[!side]->node[part[0]].name);
  const eg_node none = {EG_NONE}, e = s->map[side][i];
  if (!text || !st_assume(s, RULE_ASSUMES_LEAF, side == LEFT ? e : none, side == RIGHT ? e : none,
                          NULL, text))
    return nomem(err);
  return st_merge(s, e, def, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
}

static bool has_namesake(const state *s, int side, size_t i) {
  const synth_graph *other = s->graph[!side];
  for (size_t k = 0; k < other->n_nodes; k++)
    if (other->node[k].kind == SYNTH_PARAMETER &&
        strcmp(other->node[k].name, s->graph[side]->node[i].name) == 0)
      return true;
  return false;
}

iso_code st_join_stacked(state *s, int side, const bool *const live[2], iso_error *err) {
  size_t part[MAX_PARTS];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
    if (!live[side][i] || !free_parameter(s, side, i) || has_namesake(s, side, i)) continue;
    const size_t n = parts_of(s, side, i, part);
    if (n) c = join_parts(s, side, i, part, n, err);
  }
  return c;
}

/* ---- what differs ---- */

static bool transposed(const rule_tensor *a, const rule_tensor *b) {
  const size_t size = rule_dtype_size(a->dtype);
  const char *x = a->data, *y = b->data;
  if (a->shape.rank != 2 || a->shape.dim[0] != b->shape.dim[1] ||
      a->shape.dim[1] != b->shape.dim[0])
    return false;
  const size_t rows = (size_t)a->shape.dim[0], columns = (size_t)a->shape.dim[1];
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++)
      if (memcmp(x + (i * columns + j) * size, y + (j * rows + i) * size, size) != 0) return false;
  return true;
}

static const char *rows_that_differ(state *s, const char *name, const rule_tensor *a,
                                    const rule_tensor *b) {
  const size_t rows = a->shape.rank ? (size_t)a->shape.dim[0] : 1, row = bytes_of(a) / rows;
  size_t n = 0, first = 0;
  for (size_t i = 0; i < rows; i++)
    if (memcmp((const char *)a->data + i * row, (const char *)b->data + i * row, row) != 0)
      if (n++ == 0) first = i;
  return iso_arena_printf(&s->res->arena, "%s (%zu of %zu rows, the first is %zu)", name, n, rows,
                          first);
}

/* The rows of `part` that differ from those of `whole` from byte `at` on; all where it cannot stand
 * there. */
static size_t rows_apart(const rule_tensor *whole, size_t at, const rule_tensor *part,
                         size_t *first) {
  const size_t rows = (size_t)part->shape.dim[0], row = bytes_of(part) / rows;
  size_t n = 0;
  if (part->dtype != whole->dtype || part->shape.rank != whole->shape.rank ||
      bytes_of(whole) / (size_t)whole->shape.dim[0] != row || at + bytes_of(part) > bytes_of(whole))
    return rows;
  for (size_t i = 0; i < rows; i++)
    if (memcmp((const char *)whole->data + at + i * row, (const char *)part->data + i * row, row))
      if (n++ == 0) *first = i;
  return n;
}

/* A fused leaf that is no leaves below one another: the first of its parts that is nearly one. */
static const char *part_that_differs(state *s, size_t r) {
  const synth_graph *L = s->graph[LEFT];
  const synth_node *n = &s->graph[RIGHT]->node[r];
  const rule_tensor *whole = n->value[0];
  for (size_t at = 0; at < bytes_of(whole);) {
    size_t best = L->n_nodes, first = 0, least = SIZE_MAX;
    for (size_t k = 0; k < L->n_nodes && least > 0; k++) {
      size_t i = 0;
      if (!free_parameter(s, LEFT, k) || has_namesake(s, LEFT, k)) continue;
      const size_t apart = rows_apart(whole, at, L->node[k].value[0], &i);
      if (apart < (size_t)L->node[k].shape.dim[0] && apart < least)
        least = apart, best = k, first = i;
    }
    if (best == L->n_nodes) return NULL;
    const rule_tensor *part = L->node[best].value[0];
    if (least > 0)
      return iso_arena_printf(&s->res->arena,
                              "%s, at left's %s (%zu of %lld rows, the first is %zu)", n->name,
                              L->node[best].name, least, (long long)part->shape.dim[0], first);
    at += bytes_of(part);
  }
  return NULL;
}

/* The digits of the first number in a name, which is a layer's; NULL: it has none. */
static const char *number_in(const char *name, size_t *n) {
  static const char digits[] = "0123456789";
  const char *at = strpbrk(name, digits);
  *n = at ? strspn(at, digits) : 0;
  return at;
}

static bool same_number(const char *a, const char *b) {
  size_t n, m;
  const char *x = number_in(a, &n), *y = number_in(b, &m);
  return !x || !y || (n == m && memcmp(x, y, n) == 0);
}

/* The parameter of `side` that class `c` is. NULL: none. */
static const synth_node *parameter_in(const state *s, int side, eg_class c) {
  for (size_t k = 0; k < s->graph[side]->n_nodes; k++) {
    const synth_node *n = &s->graph[side]->node[k];
    if (n->kind == SYNTH_PARAMETER && eg_class_of(s->g, s->map[side][k]).i == c.i) return n;
  }
  return NULL;
}

/* Of the leaves of the other side that leaf `i` is, or whose rows it has, the first with the number
 * of another layer. NULL: all have its own, or it has a namesake. */
static const synth_node *of_another_layer(state *s, int side, size_t i) {
  const char *name = s->graph[side]->node[i].name;
  const eg_class own = eg_class_of(s->g, s->map[side][i]);
  const eg_node *m;
  if (has_namesake(s, side, i)) return NULL;
  const synth_node *part = parameter_in(s, !side, own);
  if (part) return same_number(name, part->name) ? NULL : part;
  const size_t n = eg_class_nodes(s->g, own, &m);
  for (size_t k = 0; k < n; k++) {
    const eg_node e = m[k];
    if (!st_calls(s, e, OP_CAT) || eg_node_arity(s->g, e) == 0) continue;
    const eg_node *of;
    const size_t lists = eg_class_nodes(s->g, eg_node_child(s->g, e, 0), &of);
    for (size_t j = 0; j < lists; j++)
      for (size_t c = 0; st_is_list(s, of[j]) && c < eg_node_arity(s->g, of[j]); c++) {
        part = parameter_in(s, !side, eg_node_child(s->g, of[j], c));
        if (part && !same_number(name, part->name)) return part;
      }
  }
  return NULL;
}

iso_code st_leaf_misplaced(state *s, int side, size_t i, const char **out, iso_error *err) {
  static const char *const sides[2] = {"left's", "right's"};
  const synth_node *n = &s->graph[side]->node[i], *of = NULL;
  *out = NULL;
  if (n->kind == SYNTH_PARAMETER && n->value[0] && !st_unjoined(s, side, i))
    of = of_another_layer(s, side, i);
  if (of && !(*out = iso_arena_printf(&s->res->arena, "%s has the rows of %s %s", n->name,
                                      sides[!side], of->name)))
    return nomem(err);
  return ISO_OK;
}

iso_code st_leaf_differs(state *s, size_t r, const char **out, iso_error *err) {
  const synth_graph *L = s->graph[LEFT];
  const synth_node *n = &s->graph[RIGHT]->node[r], *l = NULL, *is = NULL;
  *out = NULL;
  if (n->kind != SYNTH_PARAMETER || !n->value[0] || !n->value[0]->numel ||
      !st_unjoined(s, RIGHT, r))
    return ISO_OK;
  for (size_t k = 0; k < L->n_nodes; k++)
    if (L->node[k].kind == SYNTH_PARAMETER && strcmp(L->node[k].name, n->name) == 0)
      l = &L->node[k];
  const rule_tensor *b = n->value[0], *a = l ? l->value[0] : NULL;
  if (!l && free_parameter(s, RIGHT, r)) *out = part_that_differs(s, r);
  if (!a || st_same_bytes(s, a, b)) return ISO_OK;
  for (size_t k = 0; k < L->n_nodes && !is; k++)
    if (L->node[k].kind == SYNTH_PARAMETER && L->node[k].value[0] &&
        st_same_bytes(s, L->node[k].value[0], b))
      is = &L->node[k];
  const bool alike = a->dtype == b->dtype && rule_shape_eq(&a->shape, &b->shape);
  if (is) *out = iso_arena_printf(&s->res->arena, "%s is left's %s", n->name, is->name);
  else if (a->dtype == b->dtype && transposed(a, b))
    *out = iso_arena_printf(&s->res->arena, "%s is transposed", n->name);
  else if (alike) *out = rows_that_differ(s, n->name, a, b);
  else *out = iso_arena_printf(&s->res->arena, "%s has another shape or dtype", n->name);
  if (s->o->idle) s->o->idle(s->o->ctx);
  return *out ? ISO_OK : nomem(err);
}
