/* Extraction: the cheapest term per class by tree cost.
 *
 * Tree costs go up from the leaves through the places of each class that became cheaper, until
 * nothing does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/extract/extract_int.h"
#include "egraph/graph/text_int.h"

double egi_tree_cost(const eg_extract *x, uint32_t row, double *child) {
  const uint32_t op = egi_row_op(x->s, row), n = x->s->op[op].arity;
  double sum = 1;
  for (uint32_t k = 0; k < n; k++) {
    child[k] = x->best[egi_row_child(x->s, row, k)];
    if (child[k] == HUGE_VAL) return HUGE_VAL;
    sum += child[k];
  }
  return x->cost.tree ? x->cost.tree(x->cost.ctx, x->s, (eg_row){row}, child, n) : sum;
}

double egi_node_cost(const eg_extract *x, uint32_t row) {
  return x->cost.node ? x->cost.node(x->cost.ctx, x->s, (eg_row){row}) : 1;
}

/* Returns: whether the row made its class cheaper. Of equal ones the first stays. */
static bool offer(eg_extract *x, uint32_t row, double *child) {
  const uint32_t c = egi_row_class(x->s, row);
  const double cost = egi_tree_cost(x, row, child);
  if (!(cost < x->best[c])) return false;
  x->best[c] = cost;
  x->choice[c] = row;
  return true;
}

static iso_code go_up(eg_extract *x, iso_error *err) {
  const eg_sat *s = x->s;
  double *child = malloc((s->max_arity + 1) * sizeof *child);
  uint32_t *queue = malloc((s->n_cls + 1) * sizeof *queue);
  bool *queued = calloc(s->n_cls + 1, sizeof *queued);
  size_t head = 0, n = 0;
  const size_t size = s->n_cls + 1;
  if (!child || !queue || !queued) {
    free(child), free(queue), free(queued);
    return iso_fail(err, ISO_NOMEM, "out of memory for an extraction");
  }
  for (size_t i = 0; i < s->n_ops; i++) {
    const uint32_t leaf = s->op[i].leaf;
    if (leaf && egi_row_shown(s->w[leaf + ROW_HEAD]) && offer(x, leaf, child) &&
        !queued[egi_row_class(s, leaf)]) {
      queued[egi_row_class(s, leaf)] = true;
      queue[n++] = egi_row_class(s, leaf);
    }
  }
  for (; n > 0; n--, head = (head + 1) % size) {
    const uint32_t c = queue[head];
    queued[c] = false;
    for (uint32_t p = s->cls[c].places; p; p = s->w[p + 1]) {
      const uint32_t row = egi_place_row(s->w, p);
      if (!egi_row_shown(s->w[row + ROW_HEAD]) || !offer(x, row, child)) continue;
      const uint32_t up = egi_row_class(s, row);
      if (queued[up]) continue;
      queued[up] = true;
      queue[(head + n) % size] = up;
      n++;
    }
  }
  free(child), free(queue), free(queued);
  return ISO_OK;
}

iso_code eg_extract_new(const eg_sat *s, const eg_cost *cost, eg_extract **out, iso_error *err) {
  if (s->n_dirty) return iso_fail(err, ISO_USAGE, "extraction needs a rebuilt e-graph");
  eg_extract *x = calloc(1, sizeof *x);
  if (!x) return iso_fail(err, ISO_NOMEM, "out of memory for an extraction");
  x->s = s;
  if (cost) x->cost = *cost;
  x->best = malloc((s->n_cls + 1) * sizeof *x->best);
  x->choice = calloc(s->n_cls + 1, sizeof *x->choice);
  x->mark = calloc(s->n_cls + 1, sizeof *x->mark);
  iso_code code = x->best && x->choice && x->mark
                      ? ISO_OK
                      : iso_fail(err, ISO_NOMEM, "out of memory for an extraction");
  for (size_t c = 0; !code && c < s->n_cls; c++) x->best[c] = HUGE_VAL;
  if (!code) code = go_up(x, err);
  if (code) {
    eg_extract_free(x);
    return code;
  }
  *out = x;
  return ISO_OK;
}

void eg_extract_free(eg_extract *x) {
  if (!x) return;
  free(x->best);
  free(x->choice);
  free(x->mark);
  free(x->stack);
  free(x);
}

double eg_extract_cost(const eg_extract *x, eg_class c) { return x->best[egi_sat_find(x->s, c.i)]; }
eg_row eg_extract_row(const eg_extract *x, eg_class c) {
  return (eg_row){x->choice[egi_sat_find(x->s, c.i)]};
}
/* The sum over classes reached from `root` by the choices; HUGE_VAL where they run in a circle.
 * Walks depth first: a class is marked 2 * stamp while it is open and 2 * stamp + 1 when it is
 * done. */
static bool dag_cost(eg_extract *x, uint32_t root, double *out) {
  const eg_sat *s = x->s;
  const uint32_t open = 2 * ++x->stamp, closed = open + 1;
  size_t n = 0;
  *out = 0;
  if (!iso_grow(x->stack, x->cap_stack, 1)) return false;
  x->stack[n++] = root;
  while (n > 0) {
    const uint32_t c = x->stack[n - 1], row = x->choice[c];
    if (x->mark[c] == open || x->mark[c] == closed) {
      x->mark[c] = closed;
      n--;
      continue;
    }
    if (!row) {
      *out = HUGE_VAL;
      return true;
    }
    x->mark[c] = open;
    *out += egi_node_cost(x, row);
    const uint32_t arity = s->op[egi_row_op(s, row)].arity;
    if (!iso_grow(x->stack, x->cap_stack, n + arity)) return false;
    for (uint32_t k = 0; k < arity; k++) {
      const uint32_t child = egi_row_child(s, row, k);
      if (x->mark[child] == open) {
        *out = HUGE_VAL;
        return true;
      }
      if (x->mark[child] != closed) x->stack[n++] = child;
    }
  }
  return true;
}

iso_code eg_extract_dag_cost(const eg_extract *x, eg_class c, double *out, iso_error *err) {
  return dag_cost((eg_extract *)(uintptr_t)x, egi_sat_find(x->s, c.i), out)
             ? ISO_OK
             : iso_fail(err, ISO_NOMEM, "out of memory for a cost");
}

/* Words on the stack: a class to print, or EG_NONE for a closing parenthesis. */
iso_code eg_extract_text(const eg_extract *x, eg_class c, char **out, iso_error *err) {
  const eg_sat *s = x->s;
  uint32_t *stack = NULL;
  size_t n = 0, cap = 0;
  egi_text t = {0};
  const uint32_t root = egi_sat_find(s, c.i);
  if (!x->choice[root]) return iso_fail(err, ISO_USAGE, "a class without a finite term");
  bool ok = iso_grow(stack, cap, 1);
  if (ok) stack[n++] = root;
  while (ok && n > 0) {
    const uint32_t at = stack[--n];
    if (at == EG_NONE) {
      ok = egi_text_put(&t, ")", 1);
      continue;
    }
    const egi_op *op = &s->op[egi_row_op(s, x->choice[at])];
    ok = (!t.n || egi_text_put(&t, " ", 1)) && (!op->arity || egi_text_put(&t, "(", 1)) &&
         egi_text_put(&t, op->name, op->n_name) && iso_grow(stack, cap, n + op->arity + 1);
    if (!ok || !op->arity) continue;
    stack[n++] = EG_NONE;
    for (uint32_t k = op->arity; k-- > 0;) stack[n++] = egi_row_child(s, x->choice[at], k);
  }
  free(stack);
  return egi_text_done(&t, ok, out, err);
}
