/* Rows of a constant of one side that are constants of the other side beside one another.
 *
 * Ranks that pass keys round a ring hold tiles of a table of the whole, e.g. of distances that are
 * added to scores. Many of them have the same numbers, and then each is related to the first tile
 * of the table that has these. A rule of one rank's rows with the table itself as a variable would
 * read another rank's tile, and hold for this table alone. With the rows as their tiles it holds
 * for any. */
#include "rules/names.h"
#include "synth/constants/constants.h"
#include "synth/constants/constants_int.h"
#include "synth/joint/joint.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { LARGEST = 1 << 20, MOST_TILES = 64 };

/* A table (its last two dimensions), cut as often along its rows as along its columns. */
typedef struct cut {
  int64_t before, rows, columns, height, width; /* matrices; of each; of a tile */
  uint32_t d;                                   /* dimension of the rows */
  int64_t n;                                    /* tiles beside one another */
} cut;

static bool cut_like(const rule_shape *whole, const rule_shape *tile, cut *out) {
  if (whole->rank < 2 || tile->rank != whole->rank) return false;
  *out = (cut){.before = 1, .d = whole->rank - 2};
  for (uint32_t i = 0; i < out->d; i++) {
    if (whole->dim[i] != tile->dim[i]) return false;
    out->before *= whole->dim[i];
  }
  out->rows = whole->dim[out->d], out->columns = whole->dim[out->d + 1];
  out->height = tile->dim[out->d], out->width = tile->dim[out->d + 1];
  if (out->height < 1 || out->width < 1 || out->rows % out->height || out->columns % out->width)
    return false;
  out->n = out->rows / out->height;
  return out->n >= 2 && out->n <= MOST_TILES && out->columns / out->width == out->n;
}

/* Whether `t` is the tile at (row, column) of `whole`. */
static bool tile_is(const rule_tensor *whole, const cut *g, int64_t row, int64_t column,
                    const rule_tensor *t) {
  int64_t at = 0;
  for (int64_t b = 0; b < g->before; b++)
    for (int64_t i = 0; i < g->height; i++) {
      const int64_t from = (b * g->rows + row * g->height + i) * g->columns + column * g->width;
      for (int64_t j = 0; j < g->width; j++)
        if (rule_tensor_get(whole, from + j) != rule_tensor_get(t, at++)) return false;
    }
  return true;
}

/* A constant of `side` that may be a tile, or a table of them. */
static bool may_be(state *s, eg_node e, int side) {
  const rule_tensor *t = s->rec[e.i].cval[0];
  return st_constant_on(s, e, side) && rule_dtype_is_float(t->dtype) && t->numel <= LARGEST;
}

/* Row `row` of table `e` joins `tile[0 .. g->n)` beside one another. */
static iso_code join_row(state *s, eg_node e, const cut *g, int64_t row, const eg_node *tile,
                         iso_error *err) {
  iso_arena *a = &s->arena;
  const rule_term *part[MOST_TILES], *cat[2],
      *var = rule_var(a, 0),
      *rows = var ? rule_slice(a, var, g->d, row * g->height, (row + 1) * g->height) : NULL, *put;
  const char *name[MOST_TILES];
  for (int64_t k = 0; k < g->n; k++) {
    if (!(part[k] = rule_var(a, (uint32_t)k))) return nomem(err);
    name[k] = st_any_id(s, tile[k]);
  }
  cat[0] = rule_list(a, part, (uint32_t)g->n);
  cat[1] = rule_int(a, g->d + 1);
  if (!rows || !cat[0] || !cat[1] || !(put = rule_op(a, OP_CAT, cat, 2))) return nomem(err);
  eg_node of, made;
  iso_code c = st_add_term(s, rows, &e, &of, err);
  if (!c) c = st_value(s, of, err);
  if (!c) c = st_add_term(s, put, tile, &made, err);
  if (!c) c = st_value(s, made, err);
  if (c || eg_equal(s->g, of, made) || !cn_identical(s, of, made)) return c;
  char *text = rule_term_print(put, s->schemas, name);
  c = text ? cn_note(s, of, made, text, err) : nomem(err);
  free(text);
  return c ? c : cn_merge(s, of, made, err);
}

/* The rows of all[k] of which each tile is among the constants at hand of the other side, cut as
 * all[like] is one. */
static iso_code relate_rows(state *s, const cn_list *at, size_t k, size_t like, int side,
                            iso_error *err) {
  const rule_tensor *whole = s->rec[at->all[k].i].cval[0];
  eg_node tile[MOST_TILES];
  iso_code c = ISO_OK;
  cut g;
  if (!cut_like(&whole->shape, &s->rec[at->all[like].i].shape, &g)) return ISO_OK;
  for (int64_t row = 0; row < g.n && !c; row++) {
    bool all = true;
    for (int64_t column = 0; column < g.n && all; column++) {
      bool found = false;
      for (size_t i = 0; i < at->n && !found; i++) {
        const rule_tensor *t = s->rec[at->all[i].i].cval[0];
        found = may_be(s, at->all[i], !side) && t->dtype == whole->dtype &&
                rule_shape_eq(&t->shape, &s->rec[at->all[like].i].shape) &&
                tile_is(whole, &g, row, column, t);
        if (found) tile[column] = at->all[i];
      }
      all = found;
    }
    if (all) c = join_row(s, at->all[k], &g, row, tile, err);
  }
  return c;
}

iso_code cn_relate_tiled(state *s, const cn_list *at, size_t k, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++) {
    if (!may_be(s, at->all[k], side) || st_constant_on(s, at->all[k], !side)) continue;
    for (size_t i = 0; i < at->n && !c; i++) {
      const rule_shape *shape = &s->rec[at->all[i].i].shape;
      bool seen = !may_be(s, at->all[i], !side);
      for (size_t j = 0; j < i && !seen; j++)
        seen = may_be(s, at->all[j], !side) && rule_shape_eq(&s->rec[at->all[j].i].shape, shape);
      if (!seen) c = relate_rows(s, at, k, i, side, err);
    }
  }
  return c;
}
