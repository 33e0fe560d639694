/* Parts that nobody holds: a micro-batch's rows, or a rank's, of which no summand is added up. */
#include "localise/alignment.h"
#include "rules/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part of a tensor that another one is, times any one number: a mean over fewer rows makes
 * gradients larger. */
typedef struct cut {
  uint32_t dim;
  int64_t from, size;
} cut;

static int64_t largest_at(const rule_tensor *t) {
  int64_t at = -1;
  double most = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = fabs(rule_tensor_get(t, i));
    if (isfinite(x) && x > most) most = x, at = i;
  }
  return at;
}

/* Whether `own` is, times a number, the part of `whole` that begins at `from`. */
static bool lies_at(const rule_tensor *whole, const rule_tensor *own, uint32_t d, int64_t from,
                    int64_t large) {
  int64_t inner = 1;
  for (uint32_t k = d + 1; k < own->shape.rank; k++) inner *= own->shape.dim[k];
  const int64_t run = own->shape.dim[d] * inner, step = whole->shape.dim[d] * inner;
  const double x = rule_tensor_get(own, large),
               y = rule_tensor_get(whole, large / run * step + from * inner + large % run);
  if (y == 0 || !isfinite(y)) return false;
  for (int64_t i = 0; i < own->numel; i++) {
    const double a = rule_tensor_get(own, i) / x,
                 b = rule_tensor_get(whole, i / run * step + from * inner + i % run) / y;
    if (!(fabs(a - b) <= 1e-9)) return false;
  }
  return true;
}

static bool find_cut(const rule_tensor *whole, const rule_tensor *own, cut *out) {
  uint32_t n = 0, d = 0;
  if (!whole || !own || !rule_dtype_is_float(whole->dtype) || !rule_dtype_is_float(own->dtype) ||
      whole->shape.rank != own->shape.rank)
    return false;
  for (uint32_t k = 0; k < own->shape.rank; k++)
    if (own->shape.dim[k] != whole->shape.dim[k]) d = k, n++;
  const int64_t size = n == 1 ? own->shape.dim[d] : 0, large = size > 0 ? largest_at(own) : -1;
  for (int64_t from = 0; large >= 0 && from + size <= whole->shape.dim[d]; from++)
    if (lies_at(whole, own, d, from, large)) return *out = (cut){d, from, size}, true;
  return false;
}

/* The places along dimension `d` of which a node like the right root holds something, in `there`.
 */
static void mark_held(const parting *p, const int64_t root[2], uint32_t d, bool *there) {
  const synth_graph *g = p->s->graph[RIGHT];
  const rule_tensor *whole = lo_value(p, LEFT, (uint32_t)root[LEFT]);
  for (uint32_t j = 0; j < g->n_nodes; j++) {
    cut c;
    if (g->node[j].kind != SYNTH_OP || strcmp(g->node[j].op, g->node[root[RIGHT]].op) != 0 ||
        !find_cut(whole, lo_value(p, RIGHT, j), &c) || c.dim != d)
      continue;
    for (int64_t i = 0; i < c.size; i++) there[c.from + i] = true;
  }
}

/* "0 to 4 and 8 to 12"; a fifth stretch and those behind it are not said. NULL: no memory. */
static const char *stretches(iso_arena *a, const bool *there, int64_t n) {
  const char *text = "";
  int64_t from = 0;
  for (int said = 0; from < n && said < 4 && text;) {
    int64_t to = from;
    while (to < n && there[to] == there[from]) to++;
    if (there[from])
      text = iso_arena_printf(a, "%s%s%lld to %lld", text, said++ ? " and " : "", (long long)from,
                              (long long)to);
    from = to;
  }
  return text;
}

static bool reads(const rule_term *t, uint32_t node) {
  bool any = t->kind == RULE_VAR && t->u.i == node;
  for (uint32_t k = 0; k < t->n && !any; k++) any = reads(t->child[k], node);
  return any;
}

/* The first reader of a node in the region; -1: none. */
static int64_t next_in_region(const parting *p, int side, int64_t node) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t i = (uint32_t)node + 1; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && lo_in_region(p, side, i) &&
        reads(g->node[i].call, (uint32_t)node))
      return i;
  return -1;
}

static bool is_elementwise(const parting *p, int side, int64_t i) {
  return rule_operator_of(p->s->graph[side]->node[i].op)->elementwise;
}

/* The first steps of both regions of which the right one is no part of the left one, though what
 * they read is: of one shape they add it up, unless they repeat it beside another operand. Returns:
 * whether there are such. */
static bool find_adding(const parting *p, const int64_t root[2], int64_t adds[2]) {
  for (int side = 0; side < 2; side++) {
    if (p->s->graph[side]->node[root[side]].kind != SYNTH_OP) return false;
    adds[side] = root[side];
  }
  bool any = false;
  for (cut c; find_cut(lo_value(p, LEFT, (uint32_t)adds[LEFT]),
                       lo_value(p, RIGHT, (uint32_t)adds[RIGHT]), &c);
       any = true)
    for (int side = 0; side < 2; side++)
      if ((adds[side] = next_in_region(p, side, adds[side])) < 0) return false;
  const rule_tensor *l = any ? lo_value(p, LEFT, (uint32_t)adds[LEFT]) : NULL,
                    *r = any ? lo_value(p, RIGHT, (uint32_t)adds[RIGHT]) : NULL;
  return l && r && rule_shape_eq(&l->shape, &r->shape) && !is_elementwise(p, LEFT, adds[LEFT]) &&
         !is_elementwise(p, RIGHT, adds[RIGHT]);
}

/* The parts of one operand of the steps that add up, which the right has: in words; "": it has all,
 * or no part of it. NULL: no memory. */
static const char *parts_there(const parting *p, const int64_t at[2]) {
  cut c;
  if (!find_cut(lo_value(p, LEFT, (uint32_t)at[LEFT]), lo_value(p, RIGHT, (uint32_t)at[RIGHT]), &c))
    return "";
  const int64_t n = lo_value(p, LEFT, (uint32_t)at[LEFT])->shape.dim[c.dim];
  bool *there = calloc((size_t)n + 1, 1), all = true;
  if (!there) return NULL;
  mark_held(p, at, c.dim, there);
  for (int64_t i = 0; i < n; i++) all &= there[i];
  const char *which = all ? "" : stretches(&p->s->res->arena, there, n);
  free(there);
  return which && *which ? iso_arena_printf(&p->s->res->arena, "of `%s` only %s along dimension %u",
                                            p->s->graph[LEFT]->node[at[LEFT]].id, which, c.dim)
                         : which;
}

iso_code lo_left_out(const parting *p, const int64_t root[2], synth_divergence *d, iso_error *err) {
  int64_t adds[2];
  if (p->gap || !find_adding(p, root, adds)) return ISO_OK;
  const rule_term *l = p->s->graph[LEFT]->node[adds[LEFT]].call,
                  *r = p->s->graph[RIGHT]->node[adds[RIGHT]].call;
  const char *which = "";
  for (uint32_t k = 0; k < l->n && k < r->n && which && !*which; k++)
    if (l->child[k]->kind == RULE_VAR && r->child[k]->kind == RULE_VAR)
      which = parts_there(p, (int64_t[2]){(int64_t)l->child[k]->u.i, (int64_t)r->child[k]->u.i});
  if (!which) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!*which) return ISO_OK;
  d->left = adds[LEFT];
  d->right = adds[RIGHT];
  d->hint = iso_arena_printf(&p->s->res->arena,
                             "%s are added up in `%s`: the right leaves out the others", which,
                             p->s->graph[RIGHT]->node[adds[RIGHT]].id);
  return d->hint ? lo_measure(p, adds, d, err) : iso_fail(err, ISO_NOMEM, "out of memory");
}
