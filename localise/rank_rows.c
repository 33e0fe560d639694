/* With several ranks: a rank's rows of a product, in an order of its own. Columns are matched by
 * their sums first and by all of their elements then. */
#include "localise/alignment.h"
#include "rules/operators.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>

typedef struct column {
  double sum, size; /* of its elements, of their magnitudes */
  const rule_tensor *of;
  int64_t at;
} column;

static int by_sum(const void *a, const void *b) {
  const column *x = a, *y = b;
  return (x->sum > y->sum) - (x->sum < y->sum);
}

static int64_t width(const rule_tensor *t) { return t->shape.dim[t->shape.rank - 1]; }

static void note_columns(const rule_tensor *t, column *c) {
  const int64_t n = width(t);
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    c[i % n].sum += x;
    c[i % n].size += fabs(x);
    c[i % n].of = t;
    c[i % n].at = i % n;
  }
}

static bool same_column(const column *a, const column *b) {
  const int64_t na = width(a->of), nb = width(b->of);
  for (int64_t r = 0; r < a->of->numel / na; r++)
    if (!(fabs(rule_tensor_get(a->of, r * na + a->at) - rule_tensor_get(b->of, r * nb + b->at)) <=
          1e-9 * a->size))
      return false;
  return true;
}

/* Every column of `v` is one of the tensors `w`, which have as many rows. */
static bool columns_occur(const rule_tensor *v, const rule_tensor *const *w, size_t n_w) {
  int64_t m = 0, n = width(v);
  for (size_t k = 0; k < n_w; k++) {
    if (v->numel / n != w[k]->numel / width(w[k])) return false;
    m += width(w[k]);
  }
  if (n < 2 || m < n) return false;
  column *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)m, sizeof *b), *end = b;
  bool all = a && b;
  if (all) note_columns(v, a);
  for (size_t k = 0; k < n_w && all; end += width(w[k++])) note_columns(w[k], end);
  if (all) qsort(b, (size_t)m, sizeof *b, by_sum);
  for (int64_t i = 0; i < n && all; i++) {
    int64_t lo = 0, hi = m;
    const double slack = 1e-9 * (a[i].size + 1e-300);
    while (lo < hi) {
      const int64_t mid = lo + (hi - lo) / 2;
      if (b[mid].sum < a[i].sum - slack) lo = mid + 1;
      else hi = mid;
    }
    bool found = false;
    for (; lo < m && b[lo].sum <= a[i].sum + slack && !found; lo++)
      found = same_column(&a[i], &b[lo]);
    all = found;
  }
  free(a);
  free(b);
  return all;
}

const rule_tensor *lo_product(const parting *p, int side, uint32_t i) {
  const synth_node *n = &p->s->graph[side]->node[i];
  const rule_tensor *v = n->kind == SYNTH_OP ? lo_value(p, side, i) : NULL;
  if (!v || v->shape.rank < 2 || !rule_dtype_is_float(v->dtype) || v->numel == 0) return NULL;
  return rule_operator_of(n->op)->product ? v : NULL;
}

enum { MAX_PEERS = 64 };

bool lo_selected(const parting *p, int side, uint32_t i) {
  const state *s = p->s;
  const rule_tensor *v = s->ranks.n_peers == 0 || p->gap ? NULL : lo_product(p, side, i),
                    *w[MAX_PEERS];
  for (uint32_t k = 0; k < s->graph[!side]->n_nodes && v; k++)
    if ((w[0] = lo_product(p, !side, k)) && columns_occur(v, w, 1)) return true;
  for (size_t k = 0; k < s->ranks.n_peers && v; k++) {
    const peers *q = &s->ranks.peers[k];
    bool all = q->side != side && !q->pieces && q->n <= MAX_PEERS;
    for (uint32_t r = 0; r < q->n && all; r++)
      all = (w[r] = lo_product(p, !side, q->node[r])) != NULL;
    if (all && columns_occur(v, w, q->n)) return true;
  }
  return false;
}
