/* Tiles: a rank's part of the rows of a tensor, and of these a part of the columns.
 *
 * Keys and values go round a ring, and at each step a rank computes the scores of its rows with the
 * columns of another rank, and their gradients. No tensor of the whole is the peers' of one step
 * put together: they stand along a diagonal. A gradient of a key adds up products of tiles over all
 * steps of all ranks, and as one rule it would hold every step of every rank. So each tile is
 * joined with the columns of the rows that its rank has, which rows.c makes by the whole's own
 * steps: a rule of one rank's steps. What is computed from tiles is a rule of products then. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* What became of a tensor that is looked up. */
enum { TILE_NEW, TILE_VAIN, TILE_JOINED };

/* ---- an index of tiles by moments ---- */

enum { LARGEST = 1 << 22 }; /* elements of a tensor whose tiles are looked at */

typedef struct st_tile {
  eg_node of;
  uint32_t row, column;
  double moment[4];
  eg_node joined, rows; /* with this, as columns of these rows; EG_NONE: not yet */
  int64_t by;           /* times, that is */
} st_tile;

static int by_squares(const void *pa, const void *pb) {
  const st_tile *a = pa, *b = pb;
  if (a->moment[2] != b->moment[2]) return a->moment[2] < b->moment[2] ? -1 : 1;
  if (a->of.i != b->of.i) return a->of.i < b->of.i ? -1 : 1;
  return a->row != b->row ? (a->row < b->row ? -1 : 1) : a->column < b->column ? -1 : 1;
}

/* How a matrix (the last two dimensions) is cut `n` times along both. */
typedef struct grid {
  int64_t before, rows, columns, height, width; /* of the whole; of a tile */
  uint32_t d;                                   /* dimension of the rows */
} grid;

static bool cut_in(const rule_shape *shape, uint32_t n, grid *out) {
  if (shape->rank < 2) return false;
  out->d = shape->rank - 2;
  out->rows = shape->dim[out->d];
  out->columns = shape->dim[out->d + 1];
  if (out->rows < n || out->columns < n || out->rows % n || out->columns % n) return false;
  out->before = 1;
  for (uint32_t i = 0; i < out->d; i++) out->before *= shape->dim[i];
  out->height = out->rows / n;
  out->width = out->columns / n;
  return true;
}

/* The place of an element of tile (row, column). */
static int64_t place(const grid *g, uint32_t row, uint32_t column, int64_t b, int64_t i,
                     int64_t j) {
  return (b * g->rows + row * g->height + i) * g->columns + column * g->width + j;
}

/* The tile as a tensor. NULL: no memory. */
static rule_tensor *tile_of(const rule_tensor *v, const grid *g, uint32_t row, uint32_t column) {
  rule_shape shape = v->shape;
  rule_tensor *out;
  iso_error ignored;
  shape.dim[g->d] = g->height;
  shape.dim[g->d + 1] = g->width;
  if (rule_tensor_new(v->dtype, &shape, &out, &ignored)) return NULL;
  int64_t at = 0;
  for (int64_t b = 0; b < g->before; b++)
    for (int64_t i = 0; i < g->height; i++)
      for (int64_t j = 0; j < g->width; j++)
        rule_tensor_set(out, at++, rule_tensor_get(v, place(g, row, column, b, i, j)));
  return out;
}

static iso_code add_tiles(state *s, eg_node e, uint32_t n, iso_error *err) {
  st_tiles *x = &s->ranks.tiles;
  grid g;
  if (!cut_in(&s->rec[e.i].shape, n, &g) || st_numel(s, e) > LARGEST) return ISO_OK;
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  if (!v) return st_lost(&s->values, err);
  if (!rule_dtype_is_float(v->dtype)) return ISO_OK;
  for (uint32_t row = 0; row < n; row++)
    for (uint32_t column = 0; column < n; column++) {
      rule_tensor *t = tile_of(v, &g, row, column);
      st_tile tile = {.of = e, .row = row, .column = column, .joined = {EG_NONE}};
      if (!t) return nomem(err);
      st_moments(t, tile.moment);
      rule_tensor_unref(t);
      if (!(tile.moment[1] > 0)) continue; /* it is 0, or masked, and says nothing */
      if (!iso_grow(x->of, x->cap, x->n + 1)) return nomem(err);
      x->of[x->n++] = tile;
    }
  return ISO_OK;
}

/* Tiles of the tensors that the ranks' other side has alone. */
static iso_code index_tiles(state *s, int side, uint32_t n, iso_error *err) {
  st_tiles *x = &s->ranks.tiles;
  iso_code c = ISO_OK;
  x->n = 0;
  x->n_parts = n;
  x->side = side;
  const size_t n_nodes = s->graph[!side]->n_nodes + 1;
  free(x->tried);
  free(x->seen);
  x->tried = calloc(n_nodes, sizeof *x->tried);
  x->seen = calloc(n_nodes, sizeof *x->seen);
  if (!x->tried || !x->seen) return nomem(err);
  for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
    const eg_node e = s->map[side][i];
    if (e.i == EG_NONE) continue;
    const rec *r = &s->rec[e.i];
    if (!r->tensor || !r->valued || r->konst || r->leaf || r->multi || st_has_side(s, e, !side))
      continue;
    c = add_tiles(s, e, n, err);
  }
  if (!c) qsort(x->of, x->n, sizeof *x->of, by_squares);
  return c;
}

void st_free_tiles(state *s) {
  free(s->ranks.tiles.of);
  free(s->ranks.tiles.tried);
  free(s->ranks.tiles.seen);
  free(s->ranks.tiles.row);
  for (int side = 0; side < 2; side++) free(s->ranks.tiles.row_at[side]);
  s->ranks.tiles = (st_tiles){0};
}

/* ---- joining ---- */

/* Whether it is `by` times the tile. */
static bool is_tile(state *s, const rule_tensor *v, const st_tile *t, double by) {
  const rule_tensor *whole = st_val(s, t->of, s->n_draws - 1);
  grid g;
  if (!whole || !cut_in(&whole->shape, s->ranks.tiles.n_parts, &g)) return false;
  if (v->shape.rank != whole->shape.rank || v->shape.dim[g.d] != g.height ||
      v->shape.dim[g.d + 1] != g.width || v->numel != g.before * g.height * g.width)
    return false;
  int64_t at = 0;
  for (int64_t b = 0; b < g.before; b++)
    for (int64_t i = 0; i < g.height; i++)
      for (int64_t j = 0; j < g.width; j++) {
        const double x = rule_tensor_get(v, at++),
                     y = by * rule_tensor_get(whole, place(&g, t->row, t->column, b, i, j));
        if (!st_near_element(x, y)) return false;
      }
  return true;
}

static const rule_term *times(state *s, const rule_term *t, int64_t by) {
  iso_error ignored;
  const rule_term *arg[2] = {t, rule_float(&s->arena, (double)by)}, *out;
  if (by == 1 || !t) return t;
  return arg[1] && rule_call(&s->arena, s->schemas, OP_MUL_TENSOR, arg, 2, &out, &ignored) == ISO_OK
             ? out
             : NULL;
}

/* The whole's own steps on the rows of each rank: rules of rows, not of the tiles they are made of.
 */
static iso_code rows_of(state *s, const st_tile *t, uint32_t d, eg_node *part, bool *there,
                        iso_error *err) {
  const bool was = s->ranks.tiling;
  s->ranks.tiling = false;
  const iso_code c = st_rows_of(s, t->of, s->ranks.tiles.n_parts, d, part, there, err);
  s->ranks.tiling = was;
  return c;
}

/* Returns: in `tried` TILE_JOINED or TILE_VAIN, or what stood there, where what the rows are
 * computed from is not joined yet. */
static iso_code join_tile(state *s, eg_node e, st_tile *t, int64_t by, uint8_t *tried,
                          iso_error *err) {
  eg_node part[MAX_RANKS], aux;
  grid g;
  bool there, done;
  cut_in(&s->rec[t->of.i].shape, s->ranks.tiles.n_parts, &g);
  iso_code c = rows_of(s, t, g.d, part, &there, err);
  if (c || !there) return c;
  iso_arena *a = &s->arena;
  const rule_term *v = rule_var(a, 0),
                  *cut =
                      v ? rule_slice(a, v, g.d + 1, t->column * g.width, (t->column + 1) * g.width)
                        : NULL,
                  *term = cut ? times(s, cut, by) : NULL;
  if (!term) return nomem(err);
  c = st_add_term(s, term, &part[t->row], &aux, err);
  if (!c) c = st_value(s, aux, err);
  if (c || !st_values_equal(s, e, aux)) return c;
  s->ranks.wide = true;
  c = st_prove(s, e, aux, &done, err);
  s->ranks.wide = false;
  *tried = done ? TILE_JOINED : TILE_VAIN;
  if (!c && done) t->joined = e, t->rows = part[t->row], t->by = by;
  return c ? c : eg_rebuild(s->g, err);
}

/* The tile at a place of the same tensor. NULL: it is 0. */
static const st_tile *beside(const st_tiles *x, const st_tile *t, uint32_t column) {
  for (size_t i = 0; i < x->n; i++)
    if (x->of[i].of.i == t->of.i && x->of[i].row == t->row && x->of[i].column == column)
      return &x->of[i];
  return NULL;
}

/* A tile that is 0. NULL: no memory. */
static const rule_term *nothing(state *s, eg_node rows, uint32_t n) {
  iso_arena *a = &s->arena;
  const rule_shape *shape = &s->rec[rows.i].shape;
  const rule_term *dim[RULE_MAX_RANK], *arg[2], *out;
  iso_error ignored;
  for (uint32_t i = 0; i < shape->rank; i++)
    if (!(dim[i] = rule_int(a, i + 1 < shape->rank ? shape->dim[i] : shape->dim[i] / n)))
      return NULL;
  arg[0] = rule_list(a, dim, shape->rank);
  arg[1] = rule_float(a, 0);
  return arg[0] && arg[1] && rule_call(a, s->schemas, OP_FULL, arg, 2, &out, &ignored) == ISO_OK
             ? out
             : NULL;
}

/* Once all tiles of a row are joined, the row is these beside one another, and 0 where there is
 * none: so no mask is in the rule of what is computed from it. */
static iso_code join_row(state *s, const st_tile *t, iso_error *err) {
  const st_tiles *x = &s->ranks.tiles;
  iso_arena *a = &s->arena;
  const rule_term *part[MAX_RANKS], *arg[2];
  eg_node bind[MAX_RANKS], aux;
  uint32_t n = 0;
  for (uint32_t k = 0; k < x->n_parts; k++) {
    const st_tile *of = beside(x, t, k);
    if (of && (of->joined.i == EG_NONE || of->by != t->by)) return ISO_OK;
    if (of) bind[n] = of->joined;
    if (!(part[k] = of ? rule_var(a, n++) : nothing(s, t->rows, x->n_parts))) return nomem(err);
  }
  arg[0] = rule_list(a, part, x->n_parts);
  arg[1] = rule_int(a, s->rec[t->rows.i].shape.rank - 1);
  const rule_term *row = arg[0] && arg[1] ? rule_op(a, OP_CAT, arg, 2) : NULL,
                  *term = st_divided(s, row, t->by);
  bool done;
  if (!term) return nomem(err);
  iso_code c = st_add_term(s, term, bind, &aux, err);
  if (!c) c = st_value(s, aux, err);
  if (c || !st_values_equal(s, t->rows, aux)) return c;
  s->ranks.wide = true; /* what the tiles share stands in the pattern of each */
  c = st_prove(s, t->rows, aux, &done, err);
  s->ranks.wide = false;
  return c ? c : eg_rebuild(s->g, err);
}

/* The first of the tiles whose squares may add up to this. */
static size_t first_near(const st_tiles *x, double squares) {
  size_t low = 0, high = x->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (x->of[middle].moment[2] < squares * (1 - 1e-7)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The tile that a tensor is. NULL: none. */
static st_tile *tile_at(state *s, eg_node e) {
  st_tiles *x = &s->ranks.tiles;
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  double m[4];
  if (!v) return NULL;
  st_moments(v, m);
  for (size_t i = first_near(x, m[2]); i < x->n && x->of[i].moment[2] <= m[2] * (1 + 1e-7); i++)
    if (st_near_within(m, x->of[i].moment, 1e-7) && is_tile(s, v, &x->of[i], 1)) return &x->of[i];
  return NULL;
}

/* Tiles that a rank's steps are known to have made, as a row of a tensor of the other side: the row
 * is these beside one another, a rule for each rank. */
static iso_code join_given(state *s, st_tile_row *row, iso_error *err) {
  st_tiles *x = &s->ranks.tiles;
  st_tile *at[MAX_RANKS];
  eg_node part[MAX_RANKS];
  grid g;
  bool there;
  at[0] = tile_at(s, row->tile[0]);
  for (uint32_t k = 0; k < row->n; k++) {
    at[k] = tile_at(s, row->tile[k]);
    if (!at[0] || !at[k] || at[k]->of.i != at[0]->of.i || at[k]->row != at[0]->row) return ISO_OK;
  }
  cut_in(&s->rec[at[0]->of.i].shape, x->n_parts, &g);
  iso_code c = rows_of(s, at[0], g.d, part, &there, err);
  if (c || !there) return c;
  row->joined = true;
  for (uint32_t k = 0; k < row->n; k++) {
    at[k]->joined = row->tile[k];
    at[k]->rows = part[at[k]->row];
    at[k]->by = 1;
  }
  return join_row(s, at[0], err);
}

/* First those that the same operator computes. */
static iso_code look_up(state *s, eg_node e, int64_t by, bool alike, uint8_t *tried,
                        iso_error *err) {
  st_tiles *x = &s->ranks.tiles;
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  double all[4], m[4];
  iso_code c = ISO_OK;
  if (!v) return st_lost(&s->values, err);
  st_moments(v, all);
  st_scale_moments(all, 1.0 / (double)by, m);
  if (!(m[1] > 0)) return ISO_OK;
  for (size_t i = first_near(x, m[2]); i < x->n && !c && *tried != TILE_JOINED; i++) {
    st_tile *t = &x->of[i];
    if (t->moment[2] > m[2] * (1 + 1e-7)) break;
    if (st_calls(s, t->of, st_operator(s, e)) != alike || !st_near_within(m, t->moment, 1e-7) ||
        !is_tile(s, v, t, (double)by))
      continue;
    c = join_tile(s, e, t, by, tried, err);
    if (!c && *tried == TILE_JOINED) c = join_row(s, t, err);
  }
  return c;
}

/* ---- products that are added up ---- */

typedef struct walk {
  state *s;
  const synth_graph *g;
  int side;
  uint32_t n;
  bool any; /* a tile is joined */
} walk;

static bool is_number(const walk *w, const rule_term *t) {
  if (t->kind == RULE_VAR) return w->g->node[t->u.i].shape.rank == 0;
  return t->kind == RULE_INT || t->kind == RULE_FLOAT;
}

/* Looks up an operand of a product, or what it is a layout of. */
static iso_code operand(walk *w, const rule_term *t, iso_error *err) {
  state *s = w->s;
  iso_code c = ISO_OK;
  while (t->kind == RULE_VAR) {
    const uint32_t i = (uint32_t)t->u.i;
    const synth_node *n = &w->g->node[i];
    const eg_node e = s->map[w->side][i];
    uint8_t *tried = &s->ranks.tiles.tried[i];
    if (n->kind != SYNTH_OP || e.i == EG_NONE) break;
    const rec *r = &s->rec[e.i];
    if (!r->tensor || !r->valued || r->konst || st_has_side(s, e, !w->side)) break;
    for (int other = 0; other < 2; other++)
      for (int64_t by = 1; by < INT64_MAX && !c && *tried == TILE_NEW;
           by = st_next_times(s, w->n, by))
        c = look_up(s, e, by, other == 0, tried, err);
    w->any |= *tried == TILE_JOINED;
    if (c || *tried != TILE_NEW || !rule_operator_of(n->call->u.s)->moves) break;
    t = n->call->child[0];
  }
  return c;
}

/* The row of tiles from which node `i` is computed, by steps that keep or move elements. NULL: none
 * is known. */
static st_tile_row *row_of(const walk *w, uint32_t i, int depth) {
  enum { DEEP = 5 };
  st_tiles *x = &w->s->ranks.tiles;
  const synth_node *n = &w->g->node[i];
  const uint32_t at = x->row_at[w->side] ? x->row_at[w->side][i] : 0;
  if (at) return &x->row[at - 1];
  if (n->kind != SYNTH_OP || depth == DEEP) return NULL;
  const rule_operator *o = rule_operator_of(n->call->u.s);
  if (depth > 0 && !o->elementwise && !o->moves) return NULL;
  st_tile_row *row = NULL;
  for (uint32_t k = 0; k < n->call->n && !row; k++)
    if (n->call->child[k]->kind == RULE_VAR)
      row = row_of(w, (uint32_t)n->call->child[k]->u.i, depth + 1);
  return row;
}

/* Joins the row of tiles that a product takes one of. */
static iso_code join_row_of(walk *w, uint32_t product, iso_error *err) {
  st_tile_row *row = row_of(w, product, 0);
  const iso_code c = row && !row->joined ? join_given(w->s, row, err) : ISO_OK;
  w->any |= row && row->joined;
  return c;
}

/* A tensor times or through a number. */
static bool is_scaled(const walk *w, const rule_term *call) {
  const rule_operator *o = rule_operator_of(call->u.s);
  return (o->arithmetic == RULE_ARITHMETIC_MUL || o->arithmetic == RULE_ARITHMETIC_DIV) &&
         call->n > 1 && is_number(w, call->child[1]);
}

/* Goes down through sums, multiples and layouts to the products. */
static iso_code visit(walk *w, const rule_term *t, bool sum, int depth, iso_error *err) {
  enum { DEEP = 4 * MAX_RANKS };
  st_tiles *x = &w->s->ranks.tiles;
  if (t->kind != RULE_VAR || depth == DEEP) return ISO_OK;
  const synth_node *n = &w->g->node[t->u.i];
  if (n->kind != SYNTH_OP || x->seen[t->u.i] == x->stamp) return ISO_OK;
  x->seen[t->u.i] = x->stamp;
  const rule_operator *o = rule_operator_of(n->call->u.s);
  const rule_term *const *arg = n->call->child;
  const bool added = o->arithmetic == RULE_ARITHMETIC_ADD,
             product = o->contracts == RULE_CONTRACTS_MATRICES && sum,
             scaled = is_scaled(w, n->call);
  const bool end = x->row_at[w->side] && x->row_at[w->side][t->u.i];
  iso_code c = product || end ? join_row_of(w, (uint32_t)t->u.i, err) : ISO_OK;
  if (!added && !scaled && !o->moves && !product) return c;
  const uint32_t most = added || product ? 2 : 1;
  for (uint32_t k = 0; k < n->call->n && k < most && !c; k++)
    c = product ? operand(w, arg[k], err) : visit(w, arg[k], sum || added, depth + 1, err);
  return c;
}

/* Whether a rank adds products up: then one that has a single one takes it for a sum, too. */
static bool adds_up(const walk *w, uint32_t i, int depth) {
  enum { DEEP = 8 };
  const synth_node *n = &w->g->node[i];
  if (n->kind != SYNTH_OP || depth == DEEP) return false;
  const rule_operator *o = rule_operator_of(n->call->u.s);
  const rule_term *of = n->call->child[0];
  if (o->arithmetic == RULE_ARITHMETIC_ADD) return true;
  return of->kind == RULE_VAR && (o->moves || is_scaled(w, n->call)) &&
         adds_up(w, (uint32_t)of->u.i, depth + 1);
}

iso_code st_join_tiles(state *s, const peers *p, bool *any, iso_error *err) {
  st_tiles *x = &s->ranks.tiles;
  walk w = {s, s->graph[p->side], p->side, p->n, false};
  iso_code c = ISO_OK;
  *any = false;
  /* Results of a ring may be known as what a relation joins, not as those of ranks. */
  if (p->pieces && !s->ranks.running) return ISO_OK;
  if (p->n < 2 || p->n < st_most_ranks(s, p->side)) return ISO_OK;
  if (x->n_parts != p->n || x->side == p->side) c = index_tiles(s, !p->side, p->n, err);
  const bool was = s->ranks.tiling;
  s->ranks.tiling = true;
  x->stamp++;
  bool sum = false;
  for (uint32_t r = 0; r < p->n; r++) sum |= adds_up(&w, p->node[r], 0);
  for (uint32_t r = 0; r < p->n && !c && x->n > 0; r++)
    c = visit(&w, rule_var(&s->arena, p->node[r]), sum, 0, err);
  s->ranks.tiling = was;
  *any = w.any;
  return c;
}
