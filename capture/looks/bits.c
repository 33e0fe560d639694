/* What zeros and ones look like: rows of a mask, one of several, or a structure; and drawing. */
#include "capture/looks/bits.h"
#include "capture/looks/structures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The elements of the free dimensions alone: blocks of `q` rows of `n`. */
typedef struct grid {
  char *at;
  int64_t blocks, q, n;
} grid;

static looks_part block(const grid *g, int64_t b) {
  return (looks_part){g->at + b * g->q * g->n, g->n, g->q, g->n};
}

/* ---- which dimensions are free ---- */

static bool varies_along(const rule_tensor *t, uint32_t d) {
  int64_t stride = 1;
  for (uint32_t k = d + 1; k < t->shape.rank; k++) stride *= t->shape.dim[k];
  for (int64_t i = 0; i < t->numel; i++) {
    const bool first = i / stride % t->shape.dim[d] == 0;
    if (!first && rule_tensor_get(t, i) != rule_tensor_get(t, i - stride)) return true;
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
    if (d != x->row) g->q = s->dim[d];
  }
  g->blocks = size / (g->q * g->n);
  return (g->at = calloc((size_t)size + 1, 1)) != NULL;
}

/* The place in the grid of element `i` of a tensor. Rows lie together there. */
static int64_t place(const looks_bits *x, const rule_shape *s, int64_t i) {
  int64_t at = 0, stride = s->dim[x->row];
  for (uint32_t d = s->rank; d-- > 0; i /= s->dim[d]) {
    if (!(x->free >> d & 1)) continue;
    at += (d == x->row ? 1 : stride) * (i % s->dim[d]);
    if (d != x->row) stride *= s->dim[d];
  }
  return at;
}

static void read_grid(const looks_bits *x, const rule_tensor *t, const grid *g) {
  for (int64_t i = 0; i < t->numel; i++) g->at[place(x, &t->shape, i)] = rule_tensor_get(t, i) != 0;
}

/* ---- what all rows have in common ---- */

typedef struct common { /* of all rows, or blocks, on all sets */
  bool left, right;     /* no row falls, none rises */
  bool one, one_of;     /* one 1 in each row, in each column */
  bool at_most_one;     /* no row has two */
  bool twice;           /* some column has two */
  bool falls, rises;    /* no column rises, none falls */
  bool first, last;     /* all rows have a 1 there */
  bool empty, full;     /* some row is so */
  bool structure;       /* of each block that is not one number everywhere */
  bool regular;         /* and of each one that sizes tell */
  double bits;          /* how much speaks for it */
  bool symmetric, diagonal, hollow, any_block;
  bool differ;         /* two rows do */
  bool rising;         /* the first 1 of a row is never before that of the row before */
  bool turned;         /* the same of columns */
  bool places;         /* every row begins with 0, and no 1 follows another */
  int64_t least, most; /* ones of a row */
  int64_t rows;
  char *row;      /* those that are not the same, up to SOME_ROWS */
  int64_t others; /* how many these are */
} common;

enum { SOME_ROWS = 64 }; /* more tell no more */

/* Equal rows tell as much as one of them. */
static void keep_row(const char *row, int64_t n, common *c) {
  bool known = c->others == SOME_ROWS;
  for (int64_t k = 0; k < c->others && !known; k++)
    known = memcmp(c->row + k * n, row, (size_t)n) == 0;
  if (!known) memcpy(c->row + c->others++ * n, row, (size_t)n);
}

static void look_at_row(looks_part p, int64_t i, common *c) {
  int64_t ones = 0;
  for (int64_t j = 0; j < p.n; j++) {
    ones += looks_bit(p, i, j);
    c->left &= j == 0 || looks_bit(p, i, j) >= looks_bit(p, i, j - 1);
    c->right &= j == 0 || looks_bit(p, i, j) <= looks_bit(p, i, j - 1);
  }
  for (int64_t j = 0; j < p.n; j++)
    c->places &= !looks_bit(p, i, j) || (j > 0 && !looks_bit(p, i, j - 1));
  c->one &= ones == 1;
  c->at_most_one &= ones <= 1;
  c->first &= looks_bit(p, i, 0) == 1;
  c->last &= looks_bit(p, i, p.n - 1) == 1;
  c->empty |= ones == 0;
  c->full |= ones == p.n;
  for (int64_t j = 0; j < p.n && i; j++) c->differ |= looks_bit(p, i, j) != looks_bit(p, i - 1, j);
  c->least = c->rows && c->least < ones ? c->least : ones;
  c->most = c->most > ones ? c->most : ones;
  c->rows++;
  keep_row(p.at + i * p.stride, p.n, c);
}

/* `again`: the block before was this one. */
static void look_at_block(looks_part p, bool batch, bool again, common *c) {
  bool same = true;
  for (int64_t i = 0; i < p.q; i++) look_at_row(p, i, c);
  for (int64_t j = 0; j < p.n; j++) {
    int64_t ones = 0;
    for (int64_t i = 0; i < p.q; i++) {
      ones += looks_bit(p, i, j), same &= looks_bit(p, i, j) == looks_bit(p, 0, 0);
      c->falls &= i == 0 || looks_bit(p, i, j) <= looks_bit(p, i - 1, j);
      c->rises &= i == 0 || looks_bit(p, i, j) >= looks_bit(p, i - 1, j);
    }
    c->one_of &= ones == 1;
    c->twice |= ones > 1;
  }
  c->symmetric &= looks_square(p) && looks_symmetric(p);
  for (int64_t i = 0; i < p.q; i++) {
    c->diagonal &= looks_square(p) && looks_bit(p, i, i) == 1;
    c->hollow &= looks_square(p) && looks_bit(p, i, i) == 0;
  }
  if (same) return;
  const double bits = looks_structure(p, batch);
  c->any_block = true;
  c->structure &= bits > 0;
  c->regular &= bits > 0 && looks_regular(p, batch);
  if (!again) c->bits += bits;
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

/* Integers 0, 1, 0, 1 may be positions that begin again. */
static bool may_be_places(const common *c, looks_kind kind) {
  return kind == LOOKS_ANY && c->places;
}

/* Choices that never go back are those of a path, or of sorted elements. */
static bool may_be_path(const common *c, const grid *g, looks_kind kind) {
  enum { CHOICES = 3 }; /* are in order by chance */
  return (kind == LOOKS_ONE_EACH && c->rising && c->differ && g->q > CHOICES) ||
         (kind == LOOKS_ONE_OF && c->turned && g->n > CHOICES);
}

/* ---- how much speaks for what they have in common ---- */

/* The part of the elements of rows that are ones. */
static double ones_of(const common *c, const grid *g) {
  int64_t ones = 0;
  for (int64_t i = 0; i < c->others * g->n; i++) ones += c->row[i];
  return (double)ones / (double)(c->others * g->n);
}

/* In bits: how unlikely it is of any zeros and ones. */
static double bits_of_kind(const common *c, const grid *g, looks_kind kind) {
  const double q = (double)g->q, n = (double)g->n, rows = (double)c->others;
  switch (kind) {
  case LOOKS_LEFT:
  case LOOKS_RIGHT: return rows * (n - log2(n + 1));
  case LOOKS_ONE_EACH: return rows * (n - log2(n));
  case LOOKS_ONE_OF: return rows / q * n * (q - log2(q));
  default: return INFINITY;
  }
}

/* How much another one of the kind tells. */
static double bits_of_values(const common *c, const grid *g, looks_kind kind) {
  const double q = (double)g->q, n = (double)g->n, rows = (double)c->others, d = ones_of(c, g);
  switch (kind) {
  case LOOKS_LEFT:
  case LOOKS_RIGHT: return rows * log2(n + 1);
  case LOOKS_ONE_EACH: return rows * log2(n);
  case LOOKS_ONE_OF: return rows / q * n * log2(q);
  default: return rows * n * -log2(d * d + (1 - d) * (1 - d));
  }
}

/* One 1 in each row, and never in the same column. */
static double bits_of_distinct(const grid *g) {
  const double q = (double)g->q, n = (double)g->n;
  return q * log2(n) - (lgamma(n + 1) - lgamma(n - q + 1)) / log(2);
}

/* Of squares. Each set tells, of blocks the first. */
static double bits_of_square(const common *c, const grid *g, looks_property what) {
  const double n = (double)g->n, d = ones_of(c, g), squares = (double)c->others / n;
  if (what == LOOKS_SYMMETRIC) return squares * n * (n - 1) / 2 * -log2(d * d + (1 - d) * (1 - d));
  return squares * n * -log2(what == LOOKS_DIAGONAL ? d : 1 - d);
}

enum { SURE = 12 }; /* bits */

/* Marks what so few values may have in common by chance. That all rows have a 1 in one place, or as
 * many ones, or that none is full is a habit at best. */
static void weigh(const common *c, const grid *g, looks_bits *x) {
  const struct {
    looks_property what;
    bool has;
    double bits;
  } all[] = {
      {LOOKS_ORDER, x->kind != LOOKS_ANY, bits_of_kind(c, g, x->kind)},
      {LOOKS_DISTINCT, x->distinct, bits_of_distinct(g)},
      {LOOKS_SYMMETRIC, x->symmetric, bits_of_square(c, g, LOOKS_SYMMETRIC)},
      {LOOKS_DIAGONAL, x->diagonal, bits_of_square(c, g, LOOKS_DIAGONAL)},
      {LOOKS_HOLLOW, x->hollow, bits_of_square(c, g, LOOKS_HOLLOW)},
      {LOOKS_COUNT, x->count > 0, 0},
      {LOOKS_FIRST, x->first, 0},
      {LOOKS_LAST, x->last, 0},
      {LOOKS_EITHER, x->either, 0},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].has && all[i].bits < SURE) x->by_chance |= 1u << all[i].what;
}

/* Dimensions along which so few values repeat by chance. What columns and squares have in common
 * is lost where one of them comes between a block's rows. */
static void weigh_repeats(const common *c, const grid *g, const rule_shape *s, looks_bits *x) {
  if (x->kind == LOOKS_KEPT) return;
  const double each = bits_of_values(c, g, x->kind);
  uint32_t rows = 0;
  for (uint32_t d = 0; d < s->rank; d++)
    if (x->free >> d & 1 && d != x->row) rows = d;
  for (uint32_t d = 0; d < s->rank; d++)
    if (!(x->free >> d & 1) && s->dim[d] > 1 && (double)(s->dim[d] - 1) * each < SURE)
      x->repeats |= 1u << d;
  if (!x->repeats) return;
  x->by_chance |= 1u << LOOKS_REPEATS;
  if (x->repeats >> rows < 2) return;
  x->by_chance |= (unsigned)(x->kind == LOOKS_ONE_OF) << LOOKS_ORDER |
                  (unsigned)x->distinct << LOOKS_DISTINCT |
                  (unsigned)x->symmetric << LOOKS_SYMMETRIC |
                  (unsigned)x->diagonal << LOOKS_DIAGONAL | (unsigned)x->hollow << LOOKS_HOLLOW;
}

/* Of rows in no order: what all of them have, and others may have not. */
static void find_habits(const common *c, looks_bits *x) {
  enum { ROWS = 3 }; /* have one number of ones by chance */
  if (x->kind != LOOKS_ANY || x->symmetric || x->diagonal || x->hollow) return;
  x->first = c->first;
  x->last = c->last;
  if (c->least == c->most && c->most > 1 && c->rows >= ROWS && c->differ) x->count = c->most;
}

static void choose(const common *c, const grid *g, double needed, looks_bits *x) {
  enum { CHANCE = 4 }; /* columns of two rows that hold one 1 each by chance */
  if (!c->any_block || (c->regular && c->bits >= needed)) return;
  if (c->one && g->n >= 2) choose_one_each(c, g, x);
  else if (c->right || c->left) x->kind = c->right ? LOOKS_RIGHT : LOOKS_LEFT;
  else if (c->one_of && (g->q >= 3 || (g->q == 2 && g->n >= CHANCE))) x->kind = LOOKS_ONE_OF;
  else x->kind = LOOKS_ANY;
  x->symmetric = c->symmetric;
  x->diagonal = c->diagonal;
  x->hollow = c->hollow;
  x->empty = c->empty;
  x->full = c->full;
  x->structure = c->structure;
  x->data = c->structure && c->bits >= needed;
  x->doubtful |= x->structure || may_be_path(c, g, x->kind) || may_be_places(c, x->kind);
  const bool chosen = x->kind == LOOKS_ONE_EACH || x->kind == LOOKS_ONE_OF;
  x->doubtful |= !chosen && may_be_otherwise(c, g);
  x->either = !c->full && !c->empty && !chosen;
  find_habits(c, x);
  weigh(c, g, x);
}

/* How much must speak for a structure. Rows that are a batch are rows of a mask rather, and a
 * tensor that has dimensions before them is attention's. */
static double bits_needed(const grid *g, const rule_shape *s, const looks_bits *x) {
  const double batch = 16, square = 8, attention = 6;
  if (g->q != s->dim[0] || g->blocks != 1 || !(x->free & 1)) return attention;
  return g->q == g->n ? square : batch;
}

/* Whether the first ones of rows, or of columns where `turned`, are in order. */
static bool in_order(looks_part p, bool turned) {
  const int64_t n = turned ? p.n : p.q, m = turned ? p.q : p.n;
  for (int64_t i = 0, last = 0; i < n; i++) {
    int64_t at = 0;
    while (at < m && !(turned ? looks_bit(p, at, i) : looks_bit(p, i, at))) at++;
    if (at < last) return false;
    last = at;
  }
  return true;
}

static void look_at_set(const grid *g, bool batch, bool again, common *c) {
  const size_t size = (size_t)(g->q * g->n);
  for (int64_t b = 0; b < g->blocks; b++) {
    const char *at = g->at + (size_t)b * size;
    c->rising &= in_order(block(g, b), false);
    c->turned &= in_order(block(g, b), true);
    look_at_block(block(g, b), batch, again || (b && memcmp(at, at - size, size) == 0), c);
  }
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
              .regular = true,
              .rising = true,
              .turned = true,
              .places = n > 0 && rule_dtype_is_int(set[0]->dtype),
              .symmetric = true,
              .diagonal = true,
              .hollow = true};
  *x = (looks_bits){.kind = LOOKS_KEPT};
  if (n == 0 || set[0]->numel == 0) return true;
  find_dimensions(set, n, x);
  if (!x->free) return true;
  if (!new_grid(x, &set[0]->shape, &g)) return false;
  if (!(c.row = malloc((size_t)(SOME_ROWS * g.n) + 1))) {
    free(g.at);
    return false;
  }
  const bool batch = g.q == set[0]->shape.dim[0] && g.q != g.n && g.blocks == 1 && x->free & 1;
  for (size_t k = 0; k < n; k++) {
    read_grid(x, set[k], &g);
    look_at_set(&g, batch, k && rule_tensor_same_bytes(set[k], set[k - 1]), &c);
  }
  choose(&c, &g, bits_needed(&g, &set[0]->shape, x), x);
  weigh_repeats(&c, &g, &set[0]->shape, x);
  free(c.row);
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
 * in turn, since few forms are drawn of long rows; else any, or one of those asked for. */
static int64_t how_many(const looks_bits *x, int64_t n, unsigned turn, bool in_turn, iso_rng *rng) {
  const int64_t least = x->empty ? 0 : 1, most = x->full ? n : n - 1, span = most - least + 1;
  if (span < 1) return least;
  if (!in_turn && x->n_counts && turn % 2 == 0) {
    const int64_t k = x->counts[turn / 2 % x->n_counts];
    if (k >= least && k <= most) return k;
  }
  if (!in_turn) return least + below(rng, span);
  const int64_t at = (int64_t)(turn % (uint64_t)span);
  return at % 2 ? least + at / 2 : most - at / 2;
}

/* A row has the habits of those captured, and stays without them a row that is not full. */
static void keep_habits(const looks_bits *x, iso_rng *rng, char *row, int64_t n) {
  if (x->count > 0 && x->count <= n) scatter_ones(row, n, x->count, rng);
  if (x->first) row[0] = 1;
  if (x->last) row[n - 1] = 1;
  if (x->full || !(x->first || x->last) || memchr(row, 0, (size_t)n)) return;
  const int64_t from = x->first, to = n - x->last;
  if (to > from) row[from + below(rng, to - from)] = 0;
}

/* Rows without any order: a number of ones in turn, a hole or an only 1 that goes from place to
 * place, and any. */
static void draw_any(const looks_bits *x, unsigned form, iso_rng *rng, char *row, int64_t n) {
  const unsigned way = form % 4, turn = form / 4;
  const int64_t at = (int64_t)(turn % (uint64_t)n);
  const int64_t ones = how_many(x, n, way == 3 ? 2 * turn : way == 1 ? turn : 1, way == 1, rng);
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
      keep_habits(x, rng, row, g->n);
      continue;
    }
    const unsigned turn = form % 2 ? form / 2 : form / 2 + 2 * (unsigned)i; /* rows differ */
    const int64_t ones = how_many(x, g->n, turn, form % 2, rng);
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

bool looks_widen(looks_bits *x) {
  const unsigned what = x->by_chance;
  x->full |= (what & (1u << LOOKS_ORDER | 1u << LOOKS_EITHER)) != 0;
  if (what >> LOOKS_ORDER & 1) x->kind = LOOKS_ANY;
  if (what >> LOOKS_REPEATS & 1) x->free |= x->repeats;
  x->distinct &= !(what >> LOOKS_DISTINCT & 1);
  x->symmetric &= !(what >> LOOKS_SYMMETRIC & 1);
  x->diagonal &= !(what >> LOOKS_DIAGONAL & 1);
  x->hollow &= !(what >> LOOKS_HOLLOW & 1);
  x->first &= !(what >> LOOKS_FIRST & 1);
  x->last &= !(what >> LOOKS_LAST & 1);
  if (what >> LOOKS_COUNT & 1) x->count = 0;
  return what != 0;
}

const char *looks_say_bits(const looks_bits *x) {
  switch (x->kind) {
  case LOOKS_LEFT: return "a mask of zeros and ones, padded on the left";
  case LOOKS_RIGHT: return "a mask of zeros and ones, padded on the right";
  case LOOKS_ONE_EACH: return "zeros with one 1 in each row";
  case LOOKS_ONE_OF: return "zeros with one 1 in each column";
  case LOOKS_ANY:
    return x->symmetric   ? "any zeros and ones that are the same across the diagonal"
           : x->count > 0 ? "zeros with as many ones in each row"
           : x->first     ? x->last ? "any zeros and ones, the first and the last of each row 1"
                                    : "any zeros and ones, the first of each row 1"
           : x->last      ? "any zeros and ones, the last of each row 1"
                          : "any zeros and ones";
  case LOOKS_KEPT: break;
  }
  return "what it is";
}
