/* Extraction by DAG cost, where a shared e-node is paid once: laying out the classes that the roots
 * reach, and changing one choice after another. Uses of a class are counted, so that a change
 * touches only classes that it uses more or less. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/extract/extract_int.h"

enum { MAX_SWEEPS = 8 };

/* ---- laying out ---- */

typedef struct layout {
  egi_dag *d;
  uint32_t *index; /* per e-class: its number, EG_NONE before it is reached */
  double *child;   /* scratch */
  size_t cap_cls, cap_first, cap_of, cap_row, cap_cost, cap_at, cap_kid;
  size_t n_kid;
} layout;

static int by_number(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Children of a row, each once, in order, behind the last of `kid`. Returns: false without memory.
 */
static bool put_kids(layout *l, uint32_t row, size_t *n) {
  egi_dag *d = l->d;
  const eg_sat *s = d->x->s;
  const uint32_t arity = s->op[egi_row_op(s, row)].arity;
  if (!iso_grow(d->kid, l->cap_kid, l->n_kid + arity + 1)) return false;
  uint32_t *kid = d->kid + l->n_kid;
  for (uint32_t k = 0; k < arity; k++) kid[k] = egi_row_child(s, row, k);
  if (arity > 1) qsort(kid, arity, sizeof *kid, by_number);
  *n = 0;
  for (uint32_t k = 0; k < arity; k++)
    if (!k || kid[k] != kid[*n - 1]) kid[(*n)++] = kid[k];
  return true;
}

static bool is_part(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
  size_t i = 0;
  for (size_t k = 0; i < n_a && k < n_b && b[k] <= a[i]; k++) i += b[k] == a[i];
  return i == n_a;
}

/* Does an e-node of the class that is there cost no more, with no other children? */
static bool is_beaten(layout *l, uint32_t first, double cost, const uint32_t *kid, size_t n) {
  const egi_dag *d = l->d;
  for (uint32_t m = first; m < d->n_node; m++)
    if (d->cost[m] <= cost && is_part(d->kid + d->at[m], d->at[m + 1] - d->at[m], kid, n))
      return true;
  return false;
}

static bool may_choose(layout *l, uint32_t row, uint32_t c) {
  const eg_extract *x = l->d->x;
  for (uint32_t k = 0; k < x->s->op[egi_row_op(x->s, row)].arity; k++)
    if (egi_row_child(x->s, row, k) == c) return false;
  return egi_row_shown(x->s->w[row + ROW_HEAD]) && egi_tree_cost(x, row, l->child) != HUGE_VAL;
}

static bool add_node(layout *l, uint32_t row, uint32_t c) {
  egi_dag *d = l->d;
  const uint32_t m = d->n_node;
  size_t n;
  if (!put_kids(l, row, &n)) return false;
  const double cost = egi_node_cost(d->x, row);
  if (is_beaten(l, d->first[c], cost, d->kid + l->n_kid, n)) return true;
  if (!iso_grow(d->of, l->cap_of, m + 1u) || !iso_grow(d->row, l->cap_row, m + 1u) ||
      !iso_grow(d->cost, l->cap_cost, m + 1u) || !iso_grow(d->at, l->cap_at, m + 2u))
    return false;
  d->of[m] = c;
  d->row[m] = row;
  d->cost[m] = cost;
  d->at[m] = (uint32_t)l->n_kid;
  d->at[m + 1] = (uint32_t)(l->n_kid += n);
  d->n_node++;
  return true;
}

static bool reach(layout *l, uint32_t cls) {
  egi_dag *d = l->d;
  if (l->index[cls] != EG_NONE) return true;
  if (!iso_grow(d->cls, l->cap_cls, d->n_cls + 1u)) return false;
  l->index[cls] = d->n_cls;
  d->cls[d->n_cls++] = cls;
  return true;
}

/* The cheapest first, so that later classes do not beat earlier ones, except at equal cost. */
static bool add_class(layout *l, uint32_t c) {
  egi_dag *d = l->d;
  const eg_sat *s = d->x->s;
  const uint32_t cls = d->cls[c];
  if (!iso_grow(d->first, l->cap_first, c + 2u)) return false;
  d->first[c] = d->n_node;
  bool ok = add_node(l, d->x->choice[cls], c);
  for (uint32_t r = s->cls[cls].rows; ok && r; r = s->w[r + ROW_NEXT])
    if (r != d->x->choice[cls] && may_choose(l, r, cls)) ok = add_node(l, r, c);
  d->first[c + 1] = d->n_node;
  for (uint32_t m = d->first[c]; ok && m < d->n_node; m++)
    for (uint32_t k = d->at[m]; ok && k < d->at[m + 1]; k++) ok = reach(l, d->kid[k]);
  return ok;
}

/* ---- strongly connected classes (Tarjan, Depth-first search and linear graph algorithms, 1972) */

typedef struct scc {
  egi_dag *d;
  uint32_t *low, *number, *open, *path,
      *next; /* next: the child to look at, by class on the path */
  uint32_t n_seen, n_open, n_path;
} scc;

static void enter(scc *t, uint32_t c) {
  t->low[c] = t->number[c] = ++t->n_seen;
  t->open[t->n_open++] = t->path[t->n_path++] = c;
  t->next[c] = t->d->at[t->d->first[c]];
}

static void leave(scc *t, uint32_t c) {
  uint32_t *component = t->d->component, size = 0, top;
  t->n_path--;
  if (t->n_path) {
    const uint32_t up = t->path[t->n_path - 1];
    if (t->low[c] < t->low[up]) t->low[up] = t->low[c];
  }
  if (t->low[c] != t->number[c]) return;
  do {
    top = t->open[--t->n_open];
    component[top] = c;
    t->number[top] = EG_NONE; /* done */
    size++;
  } while (top != c);
  if (size == 1) component[c] = EG_NONE;
}

static bool find_components(egi_dag *d) {
  const size_t n = d->n_cls + 1u;
  uint32_t *mem = calloc(5 * n, sizeof *mem);
  scc t = {d, mem, mem + n, mem + 2 * n, mem + 3 * n, mem + 4 * n, 0, 0, 0};
  d->component = malloc(n * sizeof *d->component);
  for (uint32_t c = 0; mem && d->component && c < d->n_cls; c++) {
    if (t.number[c]) continue;
    enter(&t, c);
    while (t.n_path) {
      const uint32_t at = t.path[t.n_path - 1];
      if (t.next[at] == d->at[d->first[at + 1]]) {
        leave(&t, at);
        continue;
      }
      const uint32_t kid = d->kid[t.next[at]++];
      if (!t.number[kid]) enter(&t, kid);
      else if (t.number[kid] != EG_NONE && t.number[kid] < t.low[at]) t.low[at] = t.number[kid];
    }
  }
  const bool ok = mem && d->component;
  free(mem);
  return ok;
}

static void dag_fini(egi_dag *d) {
  void *owned[] = {d->cls,       d->first, d->of,     d->row,  d->cost, d->at,   d->kid,
                   d->component, d->root,  d->choice, d->uses, d->mark, d->stack};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

/* ---- how often classes are used ---- */

/* Counts one more use of the children of an e-node, and of the classes that they need and that were
 * not used before. */
static void acquire(egi_dag *d, uint32_t node) {
  size_t n = 0;
  d->stack[n++] = node;
  while (n > 0) {
    const uint32_t m = d->stack[--n];
    d->total += d->cost[m];
    egi_dag_spend(d, 1 + d->at[m + 1] - d->at[m]);
    for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++)
      if (d->uses[d->kid[k]]++ == 0) d->stack[n++] = d->choice[d->kid[k]];
  }
}
static void release(egi_dag *d, uint32_t node) {
  size_t n = 0;
  d->stack[n++] = node;
  while (n > 0) {
    const uint32_t m = d->stack[--n];
    d->total -= d->cost[m];
    egi_dag_spend(d, 1 + d->at[m + 1] - d->at[m]);
    for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++)
      if (--d->uses[d->kid[k]] == 0) d->stack[n++] = d->choice[d->kid[k]];
  }
}

static void count_uses(egi_dag *d) {
  memset(d->uses, 0, d->n_cls * sizeof *d->uses);
  d->total = 0;
  for (uint32_t i = 0; i < d->n_root; i++)
    if (d->uses[d->root[i]]++ == 0) acquire(d, d->choice[d->root[i]]);
}

bool egi_dag_circle(egi_dag *d, uint32_t node) {
  const uint32_t c = d->of[node], component = d->component[c];
  size_t n = 0;
  if (component == EG_NONE) return false;
  d->stamp++;
  d->stack[n++] = node;
  while (n > 0) {
    const uint32_t m = d->stack[--n];
    for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++) {
      const uint32_t kid = d->kid[k];
      if (kid == c) return true;
      if (d->component[kid] != component || d->mark[kid] == d->stamp) continue;
      d->mark[kid] = d->stamp;
      if (d->choice[kid] != EG_NONE) d->stack[n++] = d->choice[kid];
    }
    egi_dag_spend(d, 1 + d->at[m + 1] - d->at[m]);
  }
  return false;
}

/* ---- one choice after another ---- */

static void change(egi_dag *d, uint32_t c, uint32_t node) {
  const uint32_t old = d->choice[c];
  d->choice[c] = node;
  acquire(d, node);
  release(d, old);
}

/* Every other e-node of a class. Returns: whether one of them is better. */
static bool improve(egi_dag *d, uint32_t c) {
  bool better = false;
  for (uint32_t m = d->first[c]; m < d->first[c + 1] && d->work; m++) {
    const uint32_t old = d->choice[c];
    const double before = d->total;
    if (m == old || egi_dag_circle(d, m)) continue;
    change(d, c, m);
    if (d->total < before - 1e-9 * before) {
      better = true;
    } else {
      change(d, c, old);
      d->total = before;
    }
  }
  return better;
}

/* From the leaves up, as classes were reached from the roots down. */
static void descend(egi_dag *d) {
  bool better = true;
  for (int sweep = 0; better && sweep < MAX_SWEEPS; sweep++) {
    better = false;
    for (uint32_t c = d->n_cls; c-- > 0;)
      if (d->uses[c] && d->first[c + 1] - d->first[c] > 1) better = improve(d, c) || better;
  }
  count_uses(d); /* no rounding of many sums */
}

/* ---- the whole ---- */

static bool lay_out(egi_dag *d, layout *l, const eg_class *root, size_t n) {
  const eg_sat *s = d->x->s;
  l->index = malloc((s->n_cls + 1) * sizeof *l->index);
  l->child = malloc((s->max_arity + 1) * sizeof *l->child);
  d->root = malloc((n + 1) * sizeof *d->root);
  if (!l->index || !l->child || !d->root) return false;
  memset(l->index, 0xff, (s->n_cls + 1) * sizeof *l->index);
  for (size_t i = 0; i < n; i++) {
    const uint32_t before = d->n_cls;
    if (!reach(l, egi_shared_find(s, root[i].i))) return false;
    if (d->n_cls > before) d->root[d->n_root++] = before;
  }
  for (uint32_t c = 0; c < d->n_cls; c++)
    if (!add_class(l, c)) return false;
  for (size_t k = 0; k < l->n_kid; k++) d->kid[k] = l->index[d->kid[k]];
  d->choice = malloc((d->n_cls + 1) * sizeof *d->choice);
  d->uses = calloc(d->n_cls + 1u, sizeof *d->uses);
  d->mark = calloc(d->n_cls + 1u, sizeof *d->mark);
  d->stack = malloc((d->n_cls + 2u) * sizeof *d->stack);
  if (!d->choice || !d->uses || !d->mark || !d->stack) return false;
  for (uint32_t c = 0; c < d->n_cls; c++) d->choice[c] = d->first[c]; /* by tree cost */
  return !d->n_cls || find_components(d);
}

iso_code eg_extract_dag_all(eg_extract *x, const eg_class *root, size_t n, size_t work, eg_dag *out,
                            iso_error *err) {
  egi_dag d = {.x = x, .work = SIZE_MAX};
  layout l = {.d = &d};
  for (size_t i = 0; i < n; i++)
    if (!x->choice[egi_shared_find(x->s, root[i].i)])
      return iso_fail(err, ISO_USAGE, "a class without a finite term");
  const bool ok = lay_out(&d, &l, root, n);
  iso_code code = ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory for an extraction");
  *out = (eg_dag){0};
  if (!code) {
    count_uses(&d);
    d.work = work ? work : SIZE_MAX;
    descend(&d);
  }
  if (!code && work) {
    d.work = work;
    code = egi_dag_search(&d, &out->bound, &out->optimal, err);
  }
  if (!code) {
    count_uses(&d);
    out->cost = d.total;
    if (out->optimal || out->bound > d.total) out->bound = d.total;
    for (uint32_t c = 0; c < d.n_cls; c++) x->choice[d.cls[c]] = d.row[d.choice[c]];
  }
  free(l.index);
  free(l.child);
  dag_fini(&d);
  return code;
}

iso_code eg_extract_dag(eg_extract *x, eg_class root, iso_error *err) {
  eg_dag out;
  if (!x->choice[egi_shared_find(x->s, root.i)]) return ISO_OK;
  return eg_extract_dag_all(x, &root, 1, 0, &out, err);
}
