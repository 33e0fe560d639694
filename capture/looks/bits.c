/* What zeros and ones look like: rows of a mask, one of several, or a structure; and drawing. */
#include "capture/looks/bits.h"

#include <stdlib.h>
#include <string.h>

/* The elements of the free dimensions alone: blocks of `q` rows of `n`. */
typedef struct grid {
  char *at;
  int64_t blocks, q, n;
} grid;

typedef struct part { /* some rows and columns of a block */
  const char *at;
  int64_t stride, q, n;
} part;

static char bit(part p, int64_t i, int64_t j) { return p.at[i * p.stride + j]; }

static part block(const grid *g, int64_t b) {
  return (part){g->at + b * g->q * g->n, g->n, g->q, g->n};
}

/* ---- which dimensions are free ---- */

static bool varies_along(const rule_tensor *t, uint32_t d) {
  int64_t stride = 1;
  for (uint32_t k = d + 1; k < t->shape.rank; k++) stride *= t->shape.dim[k];
  for (int64_t i = 0; i < t->numel; i++) {
    const bool first = i / stride % t->shape.dim[d] == 0;
    if (!first && rule_tensor_get_int(t, i) != rule_tensor_get_int(t, i - stride)) return true;
  }
  return false;
}

/* Rows of a batch differ from one another though they were captured equal; what else repeats was
 * expanded. */
static void find_dimensions(const rule_tensor *const *set, size_t n, looks_bits *x) {
  const rule_shape *s = &set[0]->shape;
  for (uint32_t d = 0; d < s->rank; d++)
    for (size_t k = 0; k < n && !(x->free >> d & 1); k++)
      if (varies_along(set[k], d)) x->free |= 1u << d;
  for (uint32_t d = 0; d < s->rank; d++)
    if (x->free >> d & 1) x->row = d;
  if (x->free && x->row > 0 && s->dim[0] > 1 && s->dim[0] != s->dim[x->row]) x->free |= 1;
}

static bool new_grid(const looks_bits *x, const rule_shape *s, grid *g) {
  int64_t size = 1;
  g->n = s->dim[x->row];
  g->q = 1;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (!(x->free >> d & 1)) continue;
    size *= s->dim[d];
    if (d < x->row) g->q = s->dim[d];
  }
  g->blocks = size / (g->q * g->n);
  return (g->at = calloc((size_t)size + 1, 1)) != NULL;
}

/* The place in the grid of element `i` of a tensor. */
static int64_t place(const looks_bits *x, const rule_shape *s, int64_t i) {
  int64_t at = 0, stride = 1;
  for (uint32_t d = s->rank; d-- > 0; i /= s->dim[d]) {
    if (!(x->free >> d & 1)) continue;
    at += stride * (i % s->dim[d]);
    stride *= s->dim[d];
  }
  return at;
}

static void read_grid(const looks_bits *x, const rule_tensor *t, const grid *g) {
  for (int64_t i = 0; i < t->numel; i++)
    g->at[place(x, &t->shape, i)] = rule_tensor_get_int(t, i) != 0;
}

/* ---- structures over two dimensions ---- */

static bool all_in_row(part p, int64_t i, char x) {
  for (int64_t j = 0; j < p.n; j++)
    if (bit(p, i, j) != x) return false;
  return true;
}

static bool all_in_column(part p, int64_t j, char x) {
  for (int64_t i = 0; i < p.q; i++)
    if (bit(p, i, j) != x) return false;
  return true;
}

/* Without rows and columns that padding has emptied, and without those of sinks, which all see. */
static part without_borders(part p) {
  while (p.q && (all_in_row(p, 0, 0) || all_in_row(p, 0, 1))) p.at += p.stride, p.q--;
  while (p.q && all_in_row(p, p.q - 1, 0)) p.q--;
  while (p.q && p.n && (all_in_column(p, 0, 0) || all_in_column(p, 0, 1))) p.at++, p.n--;
  while (p.q && p.n && all_in_column(p, p.n - 1, 0)) p.n--;
  return p;
}

/* The same along each diagonal, and not everywhere: causal, a window, several tokens behind a
 * cache. */
static bool is_band(part p) {
  bool differs = false;
  if (p.q < 3 || p.n < 2) return false;
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < p.n; j++) {
      if (i && j && bit(p, i, j) != bit(p, i - 1, j - 1)) return false;
      differs |= i && bit(p, i, j) != bit(p, i - 1, j);
    }
  return differs;
}

/* Above the diagonal, or below it, is `x` alone: what sees no later token, a tree say. */
static bool is_triangle(part p, char x) {
  bool above = true, below = true;
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < p.n; j++) {
      above &= j <= i || bit(p, i, j) == x;
      below &= j >= i || bit(p, i, j) == x;
    }
  return above || below;
}

static bool is_symmetric(part p) {
  for (int64_t i = 0; i < p.q; i++)
    for (int64_t j = 0; j < i; j++)
      if (bit(p, i, j) != bit(p, j, i)) return false;
  return true;
}

/* Rows that have `x` in one column have it in the same ones: sequences packed into one. Each is
 * held against the row of its first one. */
static bool are_blocks(part p, char x) {
  if (!is_symmetric(p)) return false;
  for (int64_t i = 0; i < p.q; i++) {
    int64_t k = 0;
    while (k < p.n && bit(p, i, k) != x) k++;
    for (int64_t j = 0; k < p.n && j < p.n; j++)
      if (bit(p, i, j) != bit(p, k, j)) return false;
  }
  return true;
}

/* Each row begins with `x`, up to the diagonal at least and no less than the row before: a prefix
 * that all see. */
static bool is_prefix(part p, char x) {
  int64_t last = 0;
  for (int64_t i = 0; i < p.q; i++) {
    int64_t n = 0;
    while (n < p.n && bit(p, i, n) == x) n++;
    for (int64_t j = n; j < p.n; j++)
      if (bit(p, i, j) == x) return false;
    if (n < last || n <= i) return false;
    last = n;
  }
  return true;
}

static bool is_square(part p) { return p.q == p.n && p.n >= 3; }

/* `batch`: its rows may be those of a batch, whose padding makes steps by chance. */
static bool has_structure(part p, bool batch) {
  const part inner = batch ? p : without_borders(p);
  if (is_band(p) || is_band(inner)) return true;
  for (char x = 0; x < 2; x++) {
    if (is_square(p) && (is_triangle(p, x) || are_blocks(p, x) || is_prefix(p, x))) return true;
    if (is_square(inner) && (is_triangle(inner, x) || are_blocks(inner, x))) return true;
  }
  return false;
}

/* ---- what all rows have in common ---- */

typedef struct common { /* of all rows, or blocks, on all sets */
  bool left, right;     /* no row falls, none rises */
  bool one, one_of;     /* one 1 in each row, in each column */
  bool at_most_one;     /* no row has two */
  bool twice;           /* some column has two */
  bool falls, rises;    /* no column rises, none falls */
  bool first, last;     /* rows of one 1 have it there */
  bool empty, full;     /* some row is so */
  bool structure;       /* of each block that is not one number everywhere */
  bool symmetric, diagonal, hollow, any_block;
  int64_t rows;
} common;

static void look_at_row(part p, int64_t i, common *c) {
  int64_t ones = 0;
  for (int64_t j = 0; j < p.n; j++) {
    ones += bit(p, i, j);
    c->left &= j == 0 || bit(p, i, j) >= bit(p, i, j - 1);
    c->right &= j == 0 || bit(p, i, j) <= bit(p, i, j - 1);
  }
  c->one &= ones == 1;
  c->at_most_one &= ones <= 1;
  c->first &= bit(p, i, 0) == 1;
  c->last &= bit(p, i, p.n - 1) == 1;
  c->empty |= ones == 0;
  c->full |= ones == p.n;
  c->rows++;
}

static void look_at_block(part p, bool batch, common *c) {
  bool same = true;
  for (int64_t i = 0; i < p.q; i++) look_at_row(p, i, c);
  for (int64_t j = 0; j < p.n; j++) {
    int64_t ones = 0;
    for (int64_t i = 0; i < p.q; i++) {
      ones += bit(p, i, j), same &= bit(p, i, j) == bit(p, 0, 0);
      c->falls &= i == 0 || bit(p, i, j) <= bit(p, i - 1, j);
      c->rises &= i == 0 || bit(p, i, j) >= bit(p, i - 1, j);
    }
    c->one_of &= ones == 1;
    c->twice |= ones > 1;
  }
  c->symmetric &= is_square(p) && is_symmetric(p);
  for (int64_t i = 0; i < p.q; i++) {
    c->diagonal &= is_square(p) && bit(p, i, i) == 1;
    c->hollow &= is_square(p) && bit(p, i, i) == 0;
  }
  if (same) return;
  c->any_block = true;
  c->structure &= has_structure(p, batch);
}

/* Of one 1 in each row: beginnings and ends are padding as well as a choice. */
static void choose_one_each(const common *c, const grid *g, looks_bits *x) {
  x->kind = LOOKS_ONE_EACH;
  x->distinct = !c->twice && g->q >= 3;
  if (!c->first && !c->last) return;
  x->kind = c->first ? LOOKS_RIGHT : LOOKS_LEFT;
  x->doubtful = true;
}

/* Rows may be elements of a sequence that goes along columns, of rectangles, or of a choice of
 * which some have none: what has its order across rows, too, may be no mask of rows. */
static bool may_be_otherwise(const common *c, const grid *g) {
  const bool across = (g->q >= 3 || (g->q == 2 && g->blocks > 1)) && (c->falls || c->rises);
  return across || (c->at_most_one && c->empty);
}

static void choose(const common *c, const grid *g, looks_bits *x) {
  enum { CHANCE = 4 }; /* columns of two rows that hold one 1 each by chance */
  if (!c->any_block || c->structure) return;
  if (c->one && g->n >= 2) choose_one_each(c, g, x);
  else if (c->right || c->left) x->kind = c->right ? LOOKS_RIGHT : LOOKS_LEFT;
  else if (c->one_of && (g->q >= 3 || (g->q == 2 && g->n >= CHANCE))) x->kind = LOOKS_ONE_OF;
  else x->kind = LOOKS_ANY;
  x->symmetric = c->symmetric;
  x->diagonal = c->diagonal;
  x->hollow = c->hollow;
  x->empty = c->empty;
  x->full = c->full;
  x->doubtful |= x->kind != LOOKS_ONE_EACH && x->kind != LOOKS_ONE_OF && may_be_otherwise(c, g);
  x->either = !c->full && !c->empty && x->kind != LOOKS_ONE_EACH && x->kind != LOOKS_ONE_OF;
}

bool looks_at_bits(const rule_tensor *const *set, size_t n, looks_bits *out) {
  looks_bits *x = out;
  grid g;
  common c = {.left = true,
              .right = true,
              .one = true,
              .one_of = true,
              .at_most_one = true,
              .falls = true,
              .rises = true,
              .first = true,
              .last = true,
              .structure = true,
              .symmetric = true,
              .diagonal = true,
              .hollow = true};
  *x = (looks_bits){.kind = LOOKS_KEPT};
  if (n == 0 || set[0]->numel == 0) return true;
  find_dimensions(set, n, x);
  if (!x->free) return true;
  if (!new_grid(x, &set[0]->shape, &g)) return false;
  const bool batch = g.q == set[0]->shape.dim[0] && g.q != g.n && g.blocks == 1 && x->free & 1;
  for (size_t k = 0; k < n; k++) {
    read_grid(x, set[k], &g);
    for (int64_t b = 0; b < g.blocks; b++) look_at_block(block(&g, b), batch, &c);
  }
  choose(&c, &g, x);
  free(g.at);
  return true;
}

/* ---- drawing ---- */

static int64_t below(iso_rng *rng, int64_t n) {
  return n > 0 ? (int64_t)iso_rng_below(rng, (uint64_t)n) : 0;
}

/* `ones` of them at random places. */
static void scatter_ones(char *row, int64_t n, int64_t ones, iso_rng *rng) {
  for (int64_t j = 0, left = ones; j < n; j++) {
    row[j] = below(rng, n - j) < left;
    left -= row[j];
  }
}

/* How many ones: in every other form one number of them after the other in all rows, from both ends
 * in turn, since few forms are drawn of long rows. */
static int64_t how_many(const looks_bits *x, int64_t n, unsigned turn, bool in_turn, iso_rng *rng) {
  const int64_t least = x->empty ? 0 : 1, most = x->full ? n : n - 1, span = most - least + 1;
  if (span < 1) return least;
  if (!in_turn) return least + below(rng, span);
  const int64_t at = (int64_t)(turn % (uint64_t)span);
  return at % 2 ? least + at / 2 : most - at / 2;
}

/* Rows without any order: a number of ones in turn, a hole or an only 1 that goes from place to
 * place, and any. */
static void draw_any(const looks_bits *x, unsigned form, iso_rng *rng, char *row, int64_t n) {
  const unsigned way = form % 4, turn = form / 4;
  const int64_t at = (int64_t)(turn % (uint64_t)n);
  const int64_t ones = how_many(x, n, turn, way == 1, rng);
  scatter_ones(row, n, ones, rng);
  const bool hole = turn / (uint64_t)n % 2 == 0;
  if (way != 2 || n < 2) return;
  memset(row, hole, (size_t)n);
  row[at] = !hole;
}

/* Which rows of a block have their 1 where; distinct ones are the first of a random order. */
static bool draw_one_each(const looks_bits *x, unsigned form, iso_rng *rng, const grid *g,
                          char *at) {
  int64_t *order = malloc(((size_t)g->n + 1) * sizeof *order);
  if (!order) return false;
  for (int64_t j = 0; j < g->n; j++) order[j] = j;
  for (int64_t i = 0; i < g->q; i++) {
    const int64_t k = x->distinct && i < g->n ? i + below(rng, g->n - i) : below(rng, g->n);
    const int64_t all = (int64_t)(form / 2 % (uint64_t)g->n); /* of all rows */
    int64_t j = order[k];
    if (x->distinct && i < g->n) order[k] = order[i], order[i] = j;
    else if (form % 2) j = all;
    for (int64_t m = 0; m < g->n; m++) at[i * g->n + m] = m == j;
  }
  free(order);
  return true;
}

/* What squares have in common. A row that has lost its last 1 gets the next one. */
static void square_up(const looks_bits *x, int64_t n, char *at) {
  for (int64_t i = 0; i < n; i++) {
    if (x->diagonal || x->hollow) at[i * n + i] = x->diagonal;
    for (int64_t j = 0; j < i && x->symmetric; j++) at[i * n + j] = at[j * n + i];
  }
  for (int64_t i = 0; i < n && !x->empty; i++) {
    const int64_t next = (i + 1) % n;
    if (memchr(at + i * n, 1, (size_t)n)) continue;
    at[i * n + next] = 1;
    if (x->symmetric) at[next * n + i] = 1;
  }
}

static void draw_rows(const looks_bits *x, unsigned form, iso_rng *rng, const grid *g, char *at) {
  for (int64_t i = 0; i < g->q; i++) {
    char *row = at + i * g->n;
    if (x->kind == LOOKS_ANY) {
      draw_any(x, form, rng, row, g->n);
      continue;
    }
    const int64_t ones = how_many(x, g->n, form / 2, form % 2, rng);
    for (int64_t j = 0; j < g->n; j++)
      row[j] = x->kind == LOOKS_RIGHT ? j < ones : j >= g->n - ones;
  }
  if (x->kind == LOOKS_ANY && (x->symmetric || x->diagonal || x->hollow)) square_up(x, g->n, at);
}

static void draw_one_of(iso_rng *rng, const grid *g, char *at) {
  for (int64_t j = 0; j < g->n; j++) {
    const int64_t of = below(rng, g->q);
    for (int64_t i = 0; i < g->q; i++) at[i * g->n + j] = i == of;
  }
}

bool looks_draw_bits(const looks_bits *x, unsigned form, iso_rng *rng, rule_tensor *t) {
  grid g;
  if (!new_grid(x, &t->shape, &g)) return false;
  bool ok = true;
  for (int64_t b = 0; b < g.blocks && ok; b++) {
    char *at = g.at + b * g.q * g.n;
    if (x->kind == LOOKS_ONE_EACH) ok = draw_one_each(x, form, rng, &g, at);
    else if (x->kind == LOOKS_ONE_OF) draw_one_of(rng, &g, at);
    else draw_rows(x, form, rng, &g, at);
  }
  for (int64_t i = 0; i < t->numel && ok; i++)
    rule_tensor_set_int(t, i, g.at[place(x, &t->shape, i)]);
  free(g.at);
  return ok;
}

const char *looks_say_bits(const looks_bits *x) {
  switch (x->kind) {
  case LOOKS_LEFT: return "a mask of zeros and ones, padded on the left";
  case LOOKS_RIGHT: return "a mask of zeros and ones, padded on the right";
  case LOOKS_ONE_EACH: return "zeros with one 1 in each row";
  case LOOKS_ONE_OF: return "zeros with one 1 in each column";
  case LOOKS_ANY:
    return x->symmetric ? "any zeros and ones that are the same across the diagonal"
                        : "any zeros and ones";
  case LOOKS_KEPT: break;
  }
  return "what it is";
}
