/* How a parameter of the right differs from the left's of the same name: a checkpoint that was
 * converted wrongly says so by what became of its numbers. */
#include <math.h>

#include "localise/alignment.h"

static bool same_number(double x, double y) { return x == y || (isnan(x) && isnan(y)); }

static bool is_transposed(const rule_tensor *x, const rule_tensor *y) {
  if (x->shape.rank != 2 || x->shape.dim[0] != x->shape.dim[1]) return false;
  const int64_t n = x->shape.dim[0];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      if (!same_number(rule_tensor_get(y, i * n + j), rule_tensor_get(x, j * n + i))) return false;
  return n > 1;
}

/* The other way about along dimension d. */
static bool is_reversed(const rule_tensor *x, const rule_tensor *y, uint32_t d) {
  int64_t within = 1;
  for (uint32_t k = d + 1; k < x->shape.rank; k++) within *= x->shape.dim[k];
  const int64_t n = x->shape.dim[d];
  for (int64_t i = 0; i < x->numel; i++) {
    const int64_t at = i / within % n;
    if (!same_number(rule_tensor_get(y, i), rule_tensor_get(x, i + (n - 1 - 2 * at) * within)))
      return false;
  }
  return n > 1;
}

static bool is_rounded(const rule_tensor *x, const rule_tensor *y, rule_dtype to) {
  for (int64_t i = 0; i < x->numel; i++)
    if (!same_number(rule_tensor_get(y, i), rule_dtype_round(to, rule_tensor_get(x, i))))
      return false;
  return true;
}

static bool is_zero(const rule_tensor *y) {
  for (int64_t i = 0; i < y->numel; i++)
    if (rule_tensor_get(y, i) != 0) return false;
  return true;
}

/* What became of x as a whole; `d`: along which dimension. */
static const char *as_a_whole(const rule_tensor *x, const rule_tensor *y, uint32_t *d) {
  if (is_zero(y)) return "is 0 on the right";
  if (is_transposed(x, y)) return "is transposed on the right";
  for (*d = 0; *d < x->shape.rank; ++*d)
    if (is_reversed(x, y, *d)) return "is reversed on the right, along dimension";
  if (is_rounded(x, y, RULE_BF16)) return "is rounded to bfloat16 on the right";
  return is_rounded(x, y, RULE_F16) ? "is rounded to float16 on the right" : NULL;
}

/* "in 3 of 64 elements, the first at [0, 5]" */
static const char *in_some(iso_arena *a, const rule_tensor *x, const rule_tensor *y) {
  int64_t n = 0, first = -1;
  for (int64_t i = 0; i < x->numel; i++)
    if (!same_number(rule_tensor_get(x, i), rule_tensor_get(y, i))) {
      if (first < 0) first = i;
      n++;
    }
  if (n == 0) return NULL;
  if (n == x->numel) return "";
  const char *at = "";
  for (uint32_t d = x->shape.rank; d-- > 0; first /= x->shape.dim[d])
    at = iso_arena_printf(a, "%lld%s%s", (long long)(first % x->shape.dim[d]), *at ? ", " : "", at);
  return iso_arena_printf(a, " in %lld of %lld elements, the first at [%s]", (long long)n,
                          (long long)x->numel, at);
}

const char *lo_leaf_changed(const parting *p, const char *name, const rule_tensor *x,
                            const rule_tensor *y) {
  iso_arena *a = &p->s->res->arena;
  if (!x || !y || !rule_shape_eq(&x->shape, &y->shape) || !rule_dtype_is_float(x->dtype) ||
      !rule_dtype_is_float(y->dtype) || x->numel < 2)
    return NULL;
  const char *const some = in_some(a, x, y);
  if (!some) return NULL;
  const char *const moved = lo_rows_moved(p, name, x, y);
  if (moved) return moved;
  uint32_t d = x->shape.rank;
  const char *const whole = as_a_whole(x, y, &d);
  if (whole && d < x->shape.rank) return iso_arena_printf(a, "%s %s %u", name, whole, d);
  if (whole) return iso_arena_printf(a, "%s %s", name, whole);
  return iso_arena_printf(a, "%s has other values on the right%s", name, some);
}

/* Whether a leaf is read by nothing, and is another rank's of the same name. */
static bool is_unread_twin(const parting *p, uint32_t leaf, uint32_t other) {
  const synth_node *a = &p->s->graph[RIGHT]->node[leaf], *b = &p->s->graph[RIGHT]->node[other];
  return a != b && a->kind == SYNTH_INPUT && a->name && b->name &&
         lo_consumer(p->s, RIGHT, leaf) == leaf && synth_same_stem(a->name, b->name);
}

const char *lo_unread_instead(const parting *p, const synth_node *r) {
  const synth_graph *g = p->s->graph[RIGHT];
  for (uint32_t k = 0; r->kind == SYNTH_OP && k < r->call->n; k++) {
    const rule_term *t = r->call->child[k];
    if (t->kind != RULE_VAR || g->node[t->u.i].kind != SYNTH_INPUT) continue;
    for (uint32_t i = 0; i < g->n_nodes; i++)
      if (is_unread_twin(p, i, (uint32_t)t->u.i))
        return iso_arena_printf(&p->s->res->arena,
                                "nothing on the right reads `%s`: `%s` is read in its place",
                                g->node[i].name, g->node[t->u.i].name);
  }
  return NULL;
}
