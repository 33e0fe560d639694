/* Where two regions end: the pair of tensors, one of each side, that should be one. The left value
 * replaces the right one; where its readers then have counterparts, the regions end there. Small
 * regions first: pairs in diagonal order, counted from the roots. Where several operators were
 * given another tensor, which the other side has too, that one ends a region of its own: nothing is
 * in it. */
#include "localise/alignment.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_RUNS = 24,
  AT_LEAST = 10000,
  FAR = 24
}; /* runs to the outputs on suspicion; work of looks at what is near; operators */

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Live nodes that depend on `root`, itself included. Owns: malloc'ed. */
static bool *downstream(const parting *p, int side, int64_t root) {
  const synth_graph *g = p->s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  if (!flag) return NULL;
  flag[root] = true;
  for (size_t i = (size_t)root + 1; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && p->s->map[side][i].i != EG_NONE &&
        st_term_uses(g->node[i].call, flag))
      flag[i] = true;
  return flag;
}

static int64_t last_use(const parting *p, int side, uint32_t i, const int64_t *last) {
  const synth_graph *g = p->s->graph[side];
  for (size_t o = 0; o < g->n_outputs; o++)
    if (g->output[o].node == i) return (int64_t)g->n_nodes;
  return last[i];
}

static void note_uses(const rule_term *t, int64_t by, int64_t *last) {
  if (t->kind == RULE_VAR) last[t->u.i] = by;
  for (uint32_t k = 0; k < t->n; k++) note_uses(t->child[k], by, last);
}

/* Nodes through which all paths from `root` within the region pass; `after`: the nodes that depend
 * on it. */
static iso_code bottlenecks(const parting *p, int side, int64_t root, const bool *after, bool *out,
                            iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  int64_t *last = calloc(g->n_nodes + 1, sizeof *last), furthest = root;
  if (!last) return nomem(err);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && p->s->map[side][i].i != EG_NONE && lo_in_region(p, side, i))
      note_uses(g->node[i].call, i, last);
  for (uint32_t i = (uint32_t)root; i < g->n_nodes; i++) {
    if (!after[i] || !lo_in_region(p, side, i)) continue;
    out[i] = furthest <= (int64_t)i;
    /* A table or mask of several layers ties nothing together. */
    if (i != root && (g->node[i].kind != SYNTH_OP || p->s->rec[p->s->map[side][i].i].konst))
      continue;
    if (i == root && g->node[i].kind == SYNTH_OP && p->s->rec[p->s->map[side][i].i].konst) continue;
    const int64_t use = last_use(p, side, i, last);
    if (use > furthest) furthest = use;
  }
  free(last);
  return ISO_OK;
}

/* ---- what reads a tensor ---- */

/* The first operators of the region that make something of a tensor. */
typedef struct readers {
  bool *via;     /* the node, and what only passes it on, whole or in parts */
  bool *several; /* operators that read it and are looked at in parts: those with several outputs,
                    fused products */
  bool *behind;  /* all that depends on it */
  bool *needed;  /* see needed_for */
  uint32_t *use;
  size_t n, n_near; /* the first ones are near it: little of what is behind it is between */
  bool others;      /* operators that are not of the region read it too */
} readers;

static void readers_free(readers *r) {
  free(r->via);
  free(r->several);
  free(r->behind);
  free(r->needed);
  free(r->use);
}

/* The operators behind the node that `use` is computed from. Returns: how many operators that is.
 */
static size_t needed_for(const synth_graph *g, readers *r, uint32_t node, uint32_t use) {
  size_t n = 0;
  memset(r->needed, 0, g->n_nodes);
  r->needed[use] = true;
  for (uint32_t i = use; i > node; i--) {
    r->needed[i] &= r->behind[i];
    n += r->needed[i];
    if (r->needed[i]) st_term_mark(g->node[i].call, r->needed);
  }
  memset(r->needed, 0, (size_t)node + 1);
  return n;
}

/* A product of which everything takes a part: the other side may have several products in its
 * place. */
static bool only_in_parts(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  bool parts = false, all = rule_operator_of(g->node[i].op)->product;
  bool *flag = all ? calloc(g->n_nodes + 1, 1) : NULL;
  if (flag) flag[i] = true;
  for (uint32_t k = i + 1; k < g->n_nodes && flag && all; k++) {
    if (g->node[k].kind != SYNTH_OP || p->s->map[side][k].i == EG_NONE ||
        !st_term_uses(g->node[k].call, flag))
      continue;
    if (lo_takes_part(g->node[k].op)) parts = true;
    else all = flag[k] = lo_passes(g, k);
  }
  free(flag);
  return all && parts;
}

static iso_code find_readers(const parting *p, int side, uint32_t node, readers *r,
                             iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  *r = (readers){.via = calloc(g->n_nodes + 1, 1),
                 .several = calloc(g->n_nodes + 1, 1),
                 .behind = downstream(p, side, node),
                 .needed = calloc(g->n_nodes + 1, 1),
                 .use = calloc(g->n_nodes + 1, sizeof *r->use)};
  if (!r->via || !r->several || !r->behind || !r->needed || !r->use) return nomem(err);
  r->via[node] = true;
  for (uint32_t i = node + 1; i < g->n_nodes; i++) {
    if (g->node[i].kind != SYNTH_OP || p->s->map[side][i].i == EG_NONE) continue;
    const bool inside = lo_in_region(p, side, i);
    if (inside && st_term_uses(g->node[i].call, r->several)) {
      if (lo_passes(g, i) && !rule_is_getitem(g->node[i].op)) r->several[i] = true;
      else if (g->node[i].n_outputs != 1) r->several[i] = true;
      else r->use[r->n++] = i;
    } else if (!st_term_uses(g->node[i].call, r->via)) continue;
    else if (lo_passes_on(p, side, i) || lo_takes_part(g->node[i].op)) r->via[i] = true;
    else if (!inside) r->others = true;
    else if (g->node[i].n_outputs != 1 || only_in_parts(p, side, i)) r->several[i] = true;
    else r->use[r->n++] = i;
  }
  for (size_t k = 0; k < r->n; k++) {
    if (needed_for(g, r, node, r->use[k]) > FAR) continue;
    const uint32_t near = r->use[k];
    r->use[k] = r->use[r->n_near];
    r->use[r->n_near++] = near;
  }
  return ISO_OK;
}

/* ---- trying ---- */

typedef struct exits {
  const parting *p;
  uint32_t *node[2]; /* the region behind the roots, in order */
  size_t n[2];
  bool *narrow[2]; /* by node: bottlenecks */
  int64_t at[2];
  st_run *next;
  bool *touched;
  size_t work, most;
  int runs;
} exits;

/* The left value, in the shape of the right node. Owns: the caller unrefs. */
static iso_code carried(const parting *p, uint32_t a, uint32_t b, rule_tensor **out,
                        iso_error *err) {
  const rule_tensor *x = lo_value(p, LEFT, a), *y = lo_value(p, RIGHT, b);
  iso_code c = rule_tensor_new(x->dtype, &y->shape, out, err);
  if (!c) memcpy((*out)->data, x->data, (size_t)x->numel * rule_dtype_size(x->dtype));
  return c;
}

/* Whether the readers of b would have counterparts, were b's value `instead[b]`: only these
 * operators are run.
 */
static iso_code near_alike(exits *x, uint32_t b, readers *r, rule_tensor **instead, bool *alike,
                           iso_error *err) {
  const parting *p = x->p;
  iso_code c = ISO_OK;
  *alike = r->n_near > 0 && x->work < x->most;
  for (size_t k = 0; k < r->n_near && *alike && !c; k++) {
    rule_tensor *v = NULL;
    (void)needed_for(p->s->graph[RIGHT], r, b, r->use[k]);
    const st_carry with = {.from = &p->run[RIGHT], .again = r->needed, .value = instead};
    c = st_run_to(p->s, RIGHT, &with, r->use[k], &v, &x->work, err);
    *alike = !c && lo_has(p, LEFT, v);
    rule_tensor_unref(v);
    if (c != ISO_NOMEM) c = ISO_OK;
  }
  return c;
}

/* Carrying on made the rest meet: every reader of b has a counterpart now, or the outputs agree. */
static bool helped(const parting *q, const readers *r) {
  bool all = r->n_near > 0;
  for (size_t k = 0; k < r->n_near && all; k++) all = lo_occurs(q, RIGHT, r->use[k]);
  return all || !lo_any_output_apart(q);
}

/* Carry the value of `a` on in the place of `b`: whether that is where the regions end. */
static iso_code try_exit(exits *x, uint32_t a, uint32_t b, readers *r, iso_error *err) {
  parting q = *x->p;
  const size_t n = q.s->graph[RIGHT]->n_nodes;
  bool alike = false;
  rule_tensor **instead = calloc(n + 1, sizeof *instead);
  iso_code c = instead ? carried(x->p, a, b, &instead[b], err) : nomem(err);
  q.by_size[RIGHT] = NULL;
  q.run[RIGHT] = (st_run){0};
  if (!c) c = near_alike(x, b, r, instead, &alike, err);
  if (!c && (alike || x->runs-- > 0)) {
    const st_carry with = {.from = &x->p->run[RIGHT], .again = r->behind, .value = instead};
    c = st_run_graph(q.s, RIGHT, NULL, &(st_run_how){.keep_all = true, .with = &with},
                     &q.run[RIGHT], err);
    if (!c && helped(&q, r)) {
      st_run_free(x->next);
      x->at[LEFT] = a, x->at[RIGHT] = b;
      memcpy(x->touched, r->behind, n);
      *x->next = q.run[RIGHT];
    } else if (!c) st_run_free(&q.run[RIGHT]);
  }
  if (instead) rule_tensor_unref(instead[b]);
  free(instead);
  return c == ISO_NOMEM ? c : ISO_OK;
}

static bool may_end(const exits *x, uint32_t a, uint32_t b) {
  const rule_tensor *l = lo_value(x->p, LEFT, a), *r = lo_value(x->p, RIGHT, b);
  return l && r && l->dtype == r->dtype && lo_same_but_ones(&l->shape, &r->shape);
}

static bool ordinary(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (!isfinite(rule_tensor_get(t, i))) return false;
  return true;
}

static iso_code try_pair(exits *x, uint32_t a, uint32_t b, iso_error *err) {
  readers r = {0};
  iso_code c = find_readers(x->p, RIGHT, b, &r, err);
  if (!c) c = try_exit(x, a, b, &r, err);
  readers_free(&r);
  return c;
}

/* Pairs of nodes whose shapes are alike, in diagonal order; `narrow`: of bottlenecks, else of
 * others. */
static iso_code try_exits(exits *x, bool narrow, iso_error *err) {
  uint32_t *node[2] = {NULL, NULL};
  size_t n[2] = {0, 0};
  iso_code c = ISO_OK;
  x->runs = MAX_RUNS;
  for (int side = 0; side < 2 && !c; side++) {
    if (!(node[side] = calloc(x->n[side] + 1, sizeof *node[side]))) c = nomem(err);
    for (size_t i = 0; i < x->n[side] && !c; i++)
      if (!narrow || x->narrow[side][x->node[side][i]]) node[side][n[side]++] = x->node[side][i];
  }
  for (size_t sum = 0; !c && sum < n[LEFT] + n[RIGHT]; sum++)
    for (size_t j = sum < n[LEFT] ? 0 : sum - n[LEFT] + 1; !c && j <= sum && j < n[RIGHT]; j++) {
      const uint32_t a = node[LEFT][sum - j], b = node[RIGHT][j];
      if (x->at[LEFT] >= 0 || (x->runs <= 0 && x->work >= x->most)) break;
      if (may_end(x, a, b) && (narrow || !x->narrow[LEFT][a] || !x->narrow[RIGHT][b]))
        c = try_pair(x, a, b, err);
    }
  free(node[LEFT]);
  free(node[RIGHT]);
  return c;
}

/* Tensors with a counterpart that several operators of the region read, and no others: one that was
 * put in another's place may be among them. */
static iso_code find_shared(const parting *p, int side, uint32_t *node, size_t *n, iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  bool *read = calloc(g->n_nodes + 1, 1);
  iso_code c = read ? ISO_OK : nomem(err);
  for (uint32_t i = 0; i < g->n_nodes && !c; i++)
    if (lo_in_region(p, side, i) && g->node[i].kind == SYNTH_OP)
      st_term_mark(g->node[i].call, read);
  for (uint32_t i = 0; i < g->n_nodes && !c; i++) {
    if (!read[i] || g->node[i].kind != SYNTH_OP || lo_in_region(p, side, i) ||
        p->s->rec[p->s->map[side][i].i].konst)
      continue;
    readers r = {0};
    c = find_readers(p, side, i, &r, err);
    if (!c && r.n > 1 && !r.others) node[(*n)++] = i;
    readers_free(&r);
  }
  free(read);
  return c;
}

/* How many operators of the region stand before where it ends on `side`. */
static size_t before(const exits *x, int side) {
  size_t n = 0;
  while (n < x->n[side] && x->node[side][n] < x->at[side]) n++;
  return n;
}

/* A tensor of the region of `side`, one of the first `most` there, belongs where the other side
 * reads a shared one. */
static iso_code try_shared(exits *x, int side, size_t most, bool *found, iso_error *err) {
  uint32_t *shared = calloc(x->p->s->graph[!side]->n_nodes + 1, sizeof *shared);
  const int64_t was = x->at[side];
  size_t n = 0;
  iso_code c = shared ? find_shared(x->p, !side, shared, &n, err) : nomem(err);
  x->runs = 0;
  for (size_t i = 0; i < x->n[side] && i < most && !c; i++)
    for (size_t k = 0; k < n && !c && x->at[side] == was; k++) {
      const uint32_t own = x->node[side][i], a = side == LEFT ? own : shared[k],
                     b = side == LEFT ? shared[k] : own;
      if (x->narrow[side][own] && may_end(x, a, b) && ordinary(lo_value(x->p, LEFT, a)))
        c = try_pair(x, a, b, err);
    }
  free(shared);
  *found = x->at[side] != was;
  return c;
}

/* A region that ends far off may be an artefact: one tensor in another's place, near by, is the
 * simpler explanation. */
static iso_code try_nearer(exits *x, iso_error *err) {
  enum { NEARER = 4 };
  size_t most = SIZE_MAX;
  bool found = false;
  iso_code c = ISO_OK;
  if (x->at[LEFT] >= 0) most = (before(x, LEFT) + before(x, RIGHT)) / NEARER;
  for (int side = RIGHT; side >= LEFT && !c && !found; side--)
    c = try_shared(x, side, most, &found, err);
  return c;
}

iso_code lo_leave(const parting *p, const int64_t first[2], lo_ending *end, iso_error *err) {
  exits x = {.p = p,
             .at = {-1, -1},
             .next = &end->next,
             .touched = end->touched,
             .most = AT_LEAST + p->a_run / 2};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    const size_t n = p->s->graph[side]->n_nodes;
    bool *after = downstream(p, side, first[side]);
    x.narrow[side] = calloc(n + 1, 1);
    x.node[side] = calloc(n + 1, sizeof *x.node[side]);
    c = after && x.narrow[side] && x.node[side]
            ? bottlenecks(p, side, first[side], after, x.narrow[side], err)
            : nomem(err);
    for (uint32_t i = 0; i < n && !c; i++)
      if (after[i] && lo_in_region(p, side, i)) x.node[side][x.n[side]++] = i;
    free(after);
  }
  for (int pass = 0; pass < 2 && !c && x.at[LEFT] < 0; pass++) c = try_exits(&x, pass == 0, err);
  if (!c) c = try_nearer(&x, err);
  for (int side = 0; side < 2; side++) {
    end->exit[side] = x.at[side];
    free(x.narrow[side]);
    free(x.node[side]);
  }
  return c;
}
