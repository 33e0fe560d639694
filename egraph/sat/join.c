/* A pattern joined as relations: a search turns to it when its program passes many rows for few
 * matches.
 *
 * Each atom becomes a table of the rows of its operator, a column per register. Where the tables
 * form a tree, rows without a partner are taken out from the leaves to the root and back
 * (Yannakakis, Algorithms for acyclic database schemes, VLDB 1981), so that every start below ends
 * in a match. Then registers are set one after another, each to a value on which all tables that
 * have it agree: sorted columns, intersected by leaps (Veldhuizen, Leapfrog triejoin, ICDT 2014).
 * That takes no longer than there could be matches, by the sizes of the tables (Zhang et al.,
 * Relational e-matching, POPL 2022). */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

enum { STOP_EVERY = 1 << 12, DIGIT = 11 };

typedef struct table {
  const egi_atom *atom;
  uint32_t *row; /* `width` words each: the columns, then ROW_FRESH or 0 */
  size_t n, cap;
  uint32_t width, n_col;
  uint32_t col[EGI_JOIN_VARS], from[EGI_JOIN_VARS]; /* variable; child, or EG_NONE: the class */
  uint64_t vars;
  uint32_t order[EGI_JOIN_VARS]; /* columns as they are sorted */
  size_t lo, hi;                 /* rows that agree with what is set */
} table;

/* Registers that the join sets, in the order in which it does. */
typedef struct variable {
  uint32_t reg, n;
  uint32_t table[EGI_JOIN_ATOMS], col[EGI_JOIN_ATOMS];
} variable;

typedef struct join {
  const egi_join *ask;
  table *t;
  uint32_t n_t;
  uint32_t reg[EGI_JOIN_VARS]; /* of each variable */
  uint32_t n_reg;
  variable *var; /* by depth */
  uint32_t n_var;
  uint32_t parent[EGI_JOIN_ATOMS], removed[EGI_JOIN_ATOMS]; /* ears, leaves first */
  uint32_t n_removed, sequence[EGI_JOIN_ATOMS];
  size_t n_steps;
  bool empty, no_memory;
} join;

/* ---- tables ---- */

static uint32_t variable_of(join *j, uint32_t reg) {
  uint32_t i = 0;
  while (i < j->n_reg && j->reg[i] != reg) i++;
  if (i == j->n_reg) j->reg[j->n_reg++] = reg;
  return i;
}

static void add_column(join *j, table *t, uint32_t reg, uint32_t from) {
  if (j->ask->q->ground[reg]) return;
  const uint32_t v = variable_of(j, reg);
  if (t->vars >> v & 1) return; /* it occurs twice: rows are asked for that */
  t->col[t->n_col] = v;
  t->from[t->n_col++] = from;
  t->vars |= UINT64_C(1) << v;
}

/* Does a register have to be known beside its own atom? */
static bool wanted(const egi_query *q, uint32_t reg, const egi_atom *own) {
  if (reg < q->n_vars || reg == q->root) return true;
  for (size_t i = q->n_ground; i < q->n_atoms; i++) {
    const egi_atom *a = &q->atom[i];
    if (a != own && a->cls == reg) return true;
    for (uint32_t k = 0; k < a->n; k++)
      if (a->kid[k] == reg) return true;
  }
  return false;
}

static void shape(join *j, table *t, const egi_atom *a) {
  t->atom = a;
  for (uint32_t k = 0; k < a->n; k++) add_column(j, t, a->kid[k], k);
  if (wanted(j->ask->q, a->cls, a)) add_column(j, t, a->cls, EG_NONE);
  t->width = t->n_col + 1;
}

/* Whether registers that occur twice, or are known, have the row's values. */
static bool row_fits(const egi_join *ask, const egi_atom *a, uint32_t row) {
  const eg_sat *s = ask->s;
  const bool *known = ask->q->ground;
  const uint32_t *w = s->w + row;
  for (uint32_t k = 0; k < a->n; k++) {
    const uint32_t kid = w[ROW_KIDS + 2 * k];
    if (known[a->kid[k]] && ask->reg[a->kid[k]] != kid) return false;
    for (uint32_t i = 0; i < k; i++)
      if (a->kid[i] == a->kid[k] && w[ROW_KIDS + 2 * i] != kid) return false;
  }
  bool asked = known[a->cls];
  for (uint32_t k = 0; k < a->n; k++) asked = asked || a->kid[k] == a->cls;
  if (!asked) return true;
  const uint32_t c = egi_row_class(s, row);
  if (known[a->cls] && ask->reg[a->cls] != c) return false;
  for (uint32_t k = 0; k < a->n; k++)
    if (a->kid[k] == a->cls && w[ROW_KIDS + 2 * k] != c) return false;
  return true;
}

/* Of the atom that a search for new matches starts from the fresh rows, of those before it the
 * others. */
static bool load(join *j, table *t, size_t at) {
  const egi_join *ask = j->ask;
  const eg_sat *s = ask->s;
  const egi_op *op = &s->op[t->atom->op];
  const bool start = ask->fresh && at == ask->start, old = ask->fresh && at < ask->start;
  const uint32_t *row = start ? op->fresh : op->row;
  const uint32_t mask = ROW_DEAD | ROW_HIDDEN | (old ? ROW_FRESH : 0);
  for (size_t i = 0, n = start ? op->n_fresh : op->n_row; i < n; i++) {
    const uint32_t *w = s->w + row[i];
    if ((w[ROW_HEAD] & mask) || !row_fits(ask, t->atom, row[i])) continue;
    if (!egi_grow(t->row, t->cap, (t->n + 1) * t->width)) return false;
    uint32_t *out = t->row + t->n++ * t->width;
    for (uint32_t c = 0; c < t->n_col; c++)
      out[c] = t->from[c] == EG_NONE ? egi_row_class(s, row[i]) : w[ROW_KIDS + 2 * t->from[c]];
    out[t->n_col] = w[ROW_HEAD] & ROW_FRESH;
  }
  return true;
}

/* ---- the tree, and rows without a partner ---- */

/* A table is an ear if one other table has all the variables that it shares with any other.
 * Removing ears ends with one table (the join is acyclic), or with a cyclic core. */
static void find_ears(join *j, bool *gone) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < j->n_t && j->n_removed + 1 < j->n_t; i++) {
      uint64_t others = 0;
      for (uint32_t k = 0; k < j->n_t; k++) others |= k == i || gone[k] ? 0 : j->t[k].vars;
      const uint64_t shared = j->t[i].vars & others;
      for (uint32_t k = 0; k < j->n_t && !gone[i]; k++) {
        if (k == i || gone[k] || (shared & ~j->t[k].vars)) continue;
        gone[i] = again = true;
        j->parent[i] = k;
        j->removed[j->n_removed++] = i;
      }
    }
  }
}

static uint32_t column_of(const table *t, uint32_t v) {
  uint32_t c = 0;
  while (t->col[c] != v) c++;
  return c;
}

/* How many values a column has. */
static size_t count_values(const table *t, uint32_t c, uint32_t *seen, uint32_t stamp) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) {
    uint32_t *at = &seen[t->row[i * t->width + c]];
    n += *at != stamp;
    *at = stamp;
  }
  return n;
}

/* Rows of a table, on average, for the known variables: by its column with most values. */
static double fan_out(const join *j, uint32_t i, uint64_t known, const uint32_t *values) {
  const table *t = &j->t[i];
  double most = 1;
  for (uint32_t c = 0; c < t->n_col; c++)
    if ((known >> t->col[c] & 1) && values[i * EGI_JOIN_VARS + c] > most)
      most = values[i * EGI_JOIN_VARS + c];
  return (double)t->n / most;
}

/* The core from its smallest table on, connected, each time the table that adds least; then the
 * ears from the last that was removed: so parents come first. Returns: false without memory. */
static bool put_in_sequence(join *j, bool *gone) {
  uint32_t *seen = calloc(j->ask->s->n_cls + 1, sizeof *seen), stamp = 0, n = 0;
  uint32_t *values = calloc((size_t)j->n_t * EGI_JOIN_VARS, sizeof *values);
  uint64_t known = 0;
  for (uint32_t i = 0; seen && values && i < j->n_t && j->n_removed + 1 < j->n_t; i++)
    for (uint32_t c = 0; !gone[i] && c < j->t[i].n_col; c++)
      values[i * EGI_JOIN_VARS + c] = (uint32_t)count_values(&j->t[i], c, seen, ++stamp);
  for (; seen && values && n < j->n_t - j->n_removed; n++) {
    uint32_t best = j->n_t;
    double least = 0;
    bool touched = false;
    for (uint32_t i = 0; i < j->n_t; i++) {
      if (gone[i]) continue;
      const bool touches = j->t[i].vars & known;
      const double adds = fan_out(j, i, known, values);
      if (best < j->n_t && (touches < touched || (touches == touched && adds >= least))) continue;
      best = i, least = adds, touched = touches;
    }
    gone[best] = true;
    known |= j->t[best].vars;
    j->sequence[n] = best;
  }
  for (uint32_t i = j->n_removed; i-- > 0;) j->sequence[n++] = j->removed[i];
  const bool ok = seen && values;
  free(seen);
  free(values);
  return ok;
}

typedef struct key {
  uint32_t n, a[EGI_JOIN_VARS], b[EGI_JOIN_VARS];
} key;

static size_t hash_of(const uint32_t *row, const uint32_t *col, uint32_t n) {
  uint64_t h = egi_mix_op(n);
  for (uint32_t k = 0; k < n; k++) h = egi_mix(h, row[col[k]]);
  return egi_mix_end(h);
}
static bool same_key(const key *x, const uint32_t *a, const uint32_t *b, const uint32_t *of_b) {
  for (uint32_t k = 0; k < x->n; k++)
    if (a[of_b[k]] != b[x->b[k]]) return false;
  return true;
}

/* Only rows of `a` stay whose shared columns `b` has as well. */
static bool semijoin(table *a, const table *b) {
  key x = {0};
  for (uint32_t c = 0; c < a->n_col; c++)
    if (b->vars >> a->col[c] & 1) x.a[x.n] = c, x.b[x.n++] = column_of(b, a->col[c]);
  size_t cells = 16, kept = 0;
  while (cells < 2 * b->n) cells *= 2;
  uint32_t *cell = calloc(cells, sizeof *cell); /* a row of b and one; 0: free */
  if (!cell) return false;
  for (size_t i = 0; i < b->n; i++) {
    const uint32_t *row = b->row + i * b->width;
    size_t at = hash_of(row, x.b, x.n) & (cells - 1);
    while (cell[at] && !same_key(&x, row, b->row + (cell[at] - 1) * (size_t)b->width, x.b))
      at = (at + 1) & (cells - 1);
    cell[at] = (uint32_t)i + 1;
  }
  for (size_t i = 0; i < a->n; i++) {
    const uint32_t *row = a->row + i * a->width;
    size_t at = hash_of(row, x.a, x.n) & (cells - 1);
    while (cell[at] && !same_key(&x, row, b->row + (cell[at] - 1) * (size_t)b->width, x.a))
      at = (at + 1) & (cells - 1);
    if (cell[at]) memmove(a->row + kept++ * a->width, row, a->width * sizeof *row);
  }
  a->n = kept;
  free(cell);
  return true;
}

static bool reduce(join *j) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < j->n_removed; i++)
    ok = semijoin(&j->t[j->parent[j->removed[i]]], &j->t[j->removed[i]]);
  for (uint32_t i = j->n_removed; ok && i-- > 0;)
    ok = semijoin(&j->t[j->removed[i]], &j->t[j->parent[j->removed[i]]]);
  for (uint32_t i = 0; i < j->n_t; i++) j->empty = j->empty || !j->t[i].n;
  return ok;
}

/* ---- sorted columns ---- */

/* First the variables that tables share, each table's after those of earlier tables; then those of
 * one table alone, which do not decide whether a start can be completed. */
static void order_variables(join *j) {
  uint64_t once = 0, more = 0, done = 0;
  for (uint32_t i = 0; i < j->n_t; i++) more |= once & j->t[i].vars, once |= j->t[i].vars;
  for (int own = 0; own < 2; own++)
    for (uint32_t i = 0; i < j->n_t; i++) {
      const table *t = &j->t[j->sequence[i]];
      for (uint32_t c = 0; c < t->n_col; c++) {
        const uint64_t bit = UINT64_C(1) << t->col[c];
        if ((done & bit) || own != !(more & bit)) continue;
        done |= bit;
        variable *v = &j->var[j->n_var++];
        *v = (variable){.reg = j->reg[t->col[c]]};
        for (uint32_t k = 0; k < j->n_t; k++)
          if (j->t[k].vars & bit)
            v->table[v->n] = k, v->col[v->n++] = column_of(&j->t[k], t->col[c]);
      }
    }
  uint32_t depth[EGI_JOIN_ATOMS] = {0};
  for (uint32_t d = 0; d < j->n_var; d++)
    for (uint32_t k = 0; k < j->var[d].n; k++) {
      const uint32_t i = j->var[d].table[k];
      j->t[i].order[depth[i]++] = j->var[d].col[k];
    }
}

/* By one column, rows that are equal there in the order that they have: digit by digit. */
static void sort_column(table *t, uint32_t **spare, uint32_t c) {
  uint32_t all = 0;
  for (size_t i = 0; i < t->n; i++) all |= t->row[i * t->width + c];
  for (unsigned shift = 0; shift < 32 && all >> shift; shift += DIGIT) {
    size_t start[(1 << DIGIT) + 1] = {0};
    const uint32_t mask = (1 << DIGIT) - 1;
    for (size_t i = 0; i < t->n; i++) start[(t->row[i * t->width + c] >> shift & mask) + 1]++;
    for (uint32_t d = 0; d < mask; d++) start[d + 1] += start[d];
    for (size_t i = 0; i < t->n; i++) {
      const uint32_t *row = t->row + i * t->width;
      memcpy(*spare + start[row[c] >> shift & mask]++ * t->width, row, t->width * sizeof *row);
    }
    uint32_t *sorted = *spare;
    *spare = t->row;
    t->row = sorted;
  }
}

static bool sort(table *t) {
  const size_t words = t->cap;
  uint32_t *spare = NULL;
  size_t cap = 0;
  if (!egi_grow(spare, cap, words)) return false;
  const size_t own = t->cap;
  uint32_t *was = t->row;
  for (uint32_t d = t->n_col; d-- > 0;) sort_column(t, &spare, t->order[d]);
  if (t->row != was) t->cap = cap, cap = own;
  egi_grown_free(spare, cap);
  t->lo = 0;
  t->hi = t->n;
  return true;
}

/* ---- leaps ---- */

/* From `lo` on, before `hi`, the first row with `least` or more in a column: twice as far each
 * time, then halving. */
static size_t seek(const table *t, uint32_t c, size_t lo, size_t hi, uint32_t least) {
  const uint32_t *word = t->row + c;
  const size_t width = t->width;
  if (lo == hi || word[lo * width] >= least) return lo;
  size_t step = 1;
  while (step < hi - lo && word[(lo + step) * width] < least) lo += step, step *= 2;
  size_t end = step < hi - lo ? lo + step : hi; /* the row at lo is less, that at end is not */
  while (end - lo > 1) {
    const size_t mid = lo + (end - lo) / 2;
    if (word[mid * width] < least) lo = mid;
    else end = mid;
  }
  return end;
}

/* The next value that all tables of a variable have, from `x` on: their rows from `at` on. Returns:
 * false where there is none. */
static bool agree(const join *j, const variable *v, size_t *at, const size_t *hi, uint32_t *x) {
  for (uint32_t k = 0, agreed = 0; agreed < v->n; k = k + 1 < v->n ? k + 1 : 0) {
    const table *t = &j->t[v->table[k]];
    at[k] = seek(t, v->col[k], at[k], hi[k], *x);
    if (at[k] == hi[k]) return false;
    const uint32_t y = t->row[at[k] * t->width + v->col[k]];
    agreed = y == *x ? agreed + 1 : 1;
    *x = y;
  }
  return true;
}

static bool found(join *j) {
  uint32_t fresh = 0;
  for (uint32_t i = 0; i < j->n_t; i++)
    fresh |= j->t[i].row[j->t[i].lo * j->t[i].width + j->t[i].n_col];
  return j->ask->found(j->ask->ctx, fresh);
}

/* Returns: false to stop. */
static bool walk(join *j, uint32_t depth) {
  if (depth == j->n_var) return found(j);
  const variable *v = &j->var[depth];
  size_t lo[EGI_JOIN_ATOMS], at[EGI_JOIN_ATOMS], hi[EGI_JOIN_ATOMS];
  for (uint32_t k = 0; k < v->n; k++) {
    lo[k] = at[k] = j->t[v->table[k]].lo;
    hi[k] = j->t[v->table[k]].hi;
  }
  bool on = true;
  for (uint32_t x = 0; on && agree(j, v, at, hi, &x); x++) {
    if (++j->n_steps % STOP_EVERY == 0 && j->ask->over(j->ask->ctx)) return false;
    j->ask->reg[v->reg] = x;
    for (uint32_t k = 0; k < v->n; k++) {
      table *t = &j->t[v->table[k]];
      t->lo = at[k];
      t->hi = at[k] = seek(t, v->col[k], at[k], hi[k], x + 1);
    }
    on = walk(j, depth + 1);
  }
  for (uint32_t k = 0; k < v->n; k++) {
    j->t[v->table[k]].lo = lo[k];
    j->t[v->table[k]].hi = hi[k];
  }
  return on;
}

/* Returns: false without memory. */
static bool prepare(join *j) {
  const egi_query *q = j->ask->q;
  bool gone[EGI_JOIN_ATOMS] = {0};
  if (!egi_index(j->ask->s)) return false;
  for (size_t i = q->n_ground; i < q->n_atoms; i++) shape(j, &j->t[j->n_t++], &q->atom[i]);
  for (uint32_t i = 0; i < j->n_t && !j->empty; i++) {
    if (!load(j, &j->t[i], q->n_ground + i)) return false;
    j->empty = !j->t[i].n;
  }
  if (j->empty) return true;
  find_ears(j, gone);
  if (!put_in_sequence(j, gone) || !reduce(j) || !(j->var = calloc(j->n_reg + 1, sizeof *j->var)))
    return false;
  order_variables(j);
  for (uint32_t i = 0; i < j->n_t && !j->empty; i++)
    if (!sort(&j->t[i])) return false;
  return true;
}

bool egi_join_run(const egi_join *ask) {
  join j = {.ask = ask};
  j.t = calloc(ask->q->n_atoms - ask->q->n_ground, sizeof *j.t);
  const bool ok = j.t && prepare(&j);
  if (ok && !j.empty) (void)walk(&j, 0);
  for (uint32_t i = 0; i < j.n_t; i++) egi_grown_free(j.t[i].row, j.t[i].cap);
  free(j.t);
  free(j.var);
  return ok;
}

bool egi_join_can(const egi_query *q) {
  const size_t n = q->n_atoms - q->n_ground;
  if (n < 2 || n > EGI_JOIN_ATOMS) return false;
  size_t most = 0; /* registers, those that occur twice counted twice */
  for (size_t i = q->n_ground; i < q->n_atoms; i++) most += 1 + q->atom[i].n;
  return most <= EGI_JOIN_VARS;
}
