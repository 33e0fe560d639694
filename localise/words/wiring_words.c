/* Where the two roots are wired otherwise, in words: an operand that is another tensor, a step or a
 * module that one side leaves out, two steps in the other order, rows that are shifted. Unlike a
 * change that is tried until it mends something (mutate.c), all of it is read off the graphs: every
 * tensor that is named has its value on both sides. */
#include "localise/words/wiring.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 64 }; /* operators that are looked at, of each side */

const synth_node *lo_node(const parting *p, int side, int64_t i) {
  return &p->s->graph[side]->node[i];
}

/* Arguments agree: tensors by their values. */
static bool same_argument(const parting *p, const rule_term *a, const rule_term *b) {
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind == RULE_VAR) {
    const rule_tensor *x = lo_value(p, LEFT, (uint32_t)a->u.i),
                      *y = lo_value(p, RIGHT, (uint32_t)b->u.i);
    return x && y && lo_agree(p, x, y);
  }
  if (a->n == 0) return rule_term_eq(a, b);
  for (uint32_t k = 0; k < a->n; k++)
    if (!same_argument(p, a->child[k], b->child[k])) return false;
  return true;
}

/* The one argument in which two calls of an operator differ, which is a tensor; -1: not so. */
int64_t lo_one_apart(const parting *p, int64_t l, int64_t r) {
  const synth_node *x = lo_node(p, LEFT, l), *y = lo_node(p, RIGHT, r);
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP || strcmp(x->call->u.s, y->call->u.s) != 0 ||
      x->call->n != y->call->n)
    return -1;
  int64_t found = -1;
  for (uint32_t k = 0; k < x->call->n; k++) {
    const rule_term *a = x->call->child[k], *b = y->call->child[k];
    if (same_argument(p, a, b)) continue;
    if (found >= 0 || a->kind != RULE_VAR || b->kind != RULE_VAR) return -1;
    found = k;
  }
  return found;
}

uint32_t lo_operand(const parting *p, int side, int64_t node, int64_t k) {
  return (uint32_t)lo_node(p, side, node)->call->child[k]->u.i;
}

/* The operator that made a tensor, behind operators that only pass it on. */
uint32_t lo_maker(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  while (g->node[i].kind == SYNTH_OP && !rule_is_getitem(g->node[i].op) &&
         lo_passes_on(p, side, i) && g->node[i].call->n &&
         g->node[i].call->child[0]->kind == RULE_VAR)
    i = (uint32_t)g->node[i].call->child[0]->u.i;
  return i;
}

/* A tensor as a reader knows it: a leaf's name, an operator with its module. */
const char *lo_named(const parting *p, int side, uint32_t i) {
  iso_arena *a = &p->s->res->arena;
  const synth_graph *g = p->s->graph[side];
  const synth_node *n = &g->node[i];
  if (n->kind != SYNTH_OP || !rule_is_getitem(n->op)) return lo_called(a, g, i);
  return iso_arena_printf(a, "part %lld of %s", (long long)n->call->child[1]->u.i,
                          lo_called(a, g, (uint32_t)n->call->child[0]->u.i));
}

/* The operator that made the left's tensor that a right one is; -1: there is none. */
static int64_t left_twin(const parting *p, uint32_t right) {
  const rule_tensor *v = lo_value(p, RIGHT, right);
  for (uint32_t i = 0; v && i < p->s->graph[LEFT]->n_nodes; i++) {
    const rule_tensor *x = lo_value(p, LEFT, i);
    if (x && lo_agree(p, x, v)) return lo_maker(p, LEFT, i);
  }
  return -1;
}

/* Two names that tell two tensors apart: both of the left graph, where it has both. */
static void names(const parting *p, const uint32_t at[2], const char *name[2]) {
  const int64_t twin = left_twin(p, lo_maker(p, RIGHT, at[RIGHT]));
  name[LEFT] = lo_named(p, LEFT, lo_maker(p, LEFT, at[LEFT]));
  name[RIGHT] = twin >= 0 ? lo_named(p, LEFT, (uint32_t)twin)
                          : lo_named(p, RIGHT, lo_maker(p, RIGHT, at[RIGHT]));
  if (name[LEFT] && name[RIGHT] && strcmp(name[LEFT], name[RIGHT]) == 0)
    for (int side = 0; side < 2; side++) name[side] = lo_named(p, side, at[side]);
}

/* ---- another operand ---- */

/* The tensors in which two calls differ, one of each; `k`: which argument of the left. The factors
 * of a product and what a sum adds may stand in either order. */
static bool operands_apart(const parting *p, int64_t l, int64_t r, int64_t *k, uint32_t at[2]) {
  const synth_node *x = lo_node(p, LEFT, l), *y = lo_node(p, RIGHT, r);
  int64_t other = *k = lo_one_apart(p, l, r);
  if (*k < 0 && x->kind == SYNTH_OP && y->kind == SYNTH_OP && strcmp(x->op, y->op) == 0 &&
      x->call->n == y->call->n && x->call->n >= 2) {
    const rule_arithmetic step = rule_operator_of(x->op)->arithmetic;
    const rule_term *const *a = x->call->child, *const *b = y->call->child;
    bool fits = step == RULE_ARITHMETIC_MUL || step == RULE_ARITHMETIC_ADD;
    for (uint32_t i = 2; i < x->call->n && fits; i++) /* a factor of what is added */
      fits = a[i]->kind == RULE_INT && a[i]->u.i == 1 && rule_term_eq(a[i], b[i]);
    for (int64_t i = 0; i < 2 && fits && *k < 0; i++)
      if (a[i]->kind == RULE_VAR && b[1 - i]->kind == RULE_VAR &&
          same_argument(p, a[1 - i], b[i]) && !same_argument(p, a[i], b[1 - i]))
        *k = i, other = 1 - i;
  }
  if (*k < 0) return false;
  at[LEFT] = lo_operand(p, LEFT, l, *k);
  at[RIGHT] = lo_operand(p, RIGHT, r, other);
  return true;
}

/* Some call of the region reads y on the left where its counterpart on the right reads x. */
static bool other_way_about(const parting *p, const int64_t at[2], const rule_tensor *x,
                            const rule_tensor *y) {
  const synth_graph *l = p->s->graph[LEFT], *r = p->s->graph[RIGHT];
  size_t n_left = 0;
  for (int64_t i = 0; i < (int64_t)l->n_nodes && n_left < MAX_PAIRS; i++) {
    if (i == at[LEFT] || !lo_in_region(p, LEFT, (uint32_t)i) || l->node[i].kind != SYNTH_OP)
      continue;
    n_left++;
    size_t n_right = 0;
    for (int64_t j = 0; j < (int64_t)r->n_nodes && n_right < MAX_PAIRS; j++) {
      if (j == at[RIGHT] || !lo_in_region(p, RIGHT, (uint32_t)j) || r->node[j].kind != SYNTH_OP)
        continue;
      n_right++;
      const rule_term *a = l->node[i].call, *b = r->node[j].call;
      if (strcmp(a->u.s, b->u.s) != 0 || a->n != b->n) continue;
      for (uint32_t k = 0; k < a->n; k++) {
        if (a->child[k]->kind != RULE_VAR || b->child[k]->kind != RULE_VAR) continue;
        const rule_tensor *v = lo_value(p, LEFT, (uint32_t)a->child[k]->u.i),
                          *w = lo_value(p, RIGHT, (uint32_t)b->child[k]->u.i);
        if (v && w && lo_agree(p, v, y) && lo_agree(p, w, x)) return true;
      }
    }
  }
  return false;
}

/* Places that are all moved by one distance. */
static bool shifted(const rule_tensor *x, const rule_tensor *y, int64_t *by) {
  if (rule_dtype_is_float(x->dtype) || rule_dtype_is_float(y->dtype) || x->dtype == RULE_BOOL ||
      y->dtype == RULE_BOOL || x->numel != y->numel || x->numel == 0)
    return false;
  *by = rule_tensor_get_int(y, 0) - rule_tensor_get_int(x, 0);
  for (int64_t i = 1; i < x->numel; i++)
    if (rule_tensor_get_int(y, i) - rule_tensor_get_int(x, i) != *by) return false;
  return *by != 0;
}

/* Row i of y is row i + by of x, for all that both have. */
static bool rows_moved(const rule_tensor *x, const rule_tensor *y, int64_t by) {
  const int64_t width = x->shape.dim[1], from = by < 0 ? -by : 0,
                to = by < 0 ? y->shape.dim[0] : y->shape.dim[0] - by;
  if (to - from < 2 || to + by > x->shape.dim[0]) return false;
  for (int64_t i = from * width; i < to * width; i++)
    if (rule_tensor_get(y, i) != rule_tensor_get(x, i + by * width)) return false;
  return true;
}

const char *lo_rows_moved(const parting *p, const char *name, const rule_tensor *x,
                          const rule_tensor *y) {
  enum { FAR = 8 };
  if (!x || !y || x->shape.rank != 2 || !rule_shape_eq(&x->shape, &y->shape) ||
      !rule_dtype_is_float(x->dtype) || !rule_dtype_is_float(y->dtype))
    return NULL;
  for (int64_t by = 1; by <= FAR; by++)
    for (int turned = 0; turned < 2; turned++)
      if (rows_moved(x, y, turned ? -by : by))
        return iso_arena_printf(&p->s->res->arena,
                                "rows of %s on the right are the left's %lld position%s %s", name,
                                (long long)by, by == 1 ? "" : "s", turned ? "earlier" : "further");
  return NULL;
}

static const char *rows(const parting *p, int64_t l, const rule_tensor *x, const rule_tensor *y) {
  int64_t by = 0;
  if (!rule_operator_of(lo_node(p, LEFT, l)->op)->table) return NULL;
  if (!shifted(x, y, &by))
    return lo_rows_moved(p, lo_named(p, LEFT, lo_operand(p, LEFT, l, 0)), x, y);
  return iso_arena_printf(&p->s->res->arena,
                          "the right reads rows that are %lld %s than the left's",
                          (long long)(by < 0 ? -by : by), by < 0 ? "earlier" : "further");
}

/* ---- masks ---- */

static bool is_hiding(double x) { return x < -1e30; }

static bool hides(const rule_tensor *t) {
  bool any = false;
  for (int64_t i = 0; i < t->numel && !any; i++) any = is_hiding(rule_tensor_get(t, i));
  return any;
}

/* Which places operand k of a call hides: 1: those where it is true; 0: those where it is false, or
 * far below zero; -1: it is no mask. The operand after a selecting truth value is the one that is
 * chosen where it is true. */
static int hides_where(const parting *p, int64_t l, uint32_t k, const rule_tensor *x) {
  const rule_term *call = lo_node(p, LEFT, l)->call;
  const rule_operator *o = rule_operator_of(call->u.s);
  if (x->dtype != RULE_BOOL) return rule_dtype_is_float(x->dtype) && hides(x) ? 0 : -1;
  if (o->mask.factors) return 0; /* attention: true places are seen */
  if (o->choice != RULE_CHOICE_SELECT || k + 1 >= call->n) return -1;
  const rule_term *t = call->child[k + 1];
  const rule_tensor *v = t->kind == RULE_VAR ? lo_value(p, LEFT, (uint32_t)t->u.i) : NULL;
  return v ? hides(v) : t->kind == RULE_FLOAT && is_hiding(t->u.f);
}

/* Two masks of one shape: how many places one shows that the other hides. */
static const char *other_mask(const parting *p, int64_t l, uint32_t k, const rule_tensor *x,
                              const rule_tensor *y) {
  const int of = hides_where(p, l, k, x);
  int64_t more = 0, fewer = 0;
  if (of < 0 || x->dtype != y->dtype || x->numel != y->numel) return NULL;
  for (int64_t i = 0; i < x->numel; i++) {
    const double a = rule_tensor_get(x, i), b = rule_tensor_get(y, i);
    const bool bools = x->dtype == RULE_BOOL, left = bools ? (a != 0) == (of == 1) : is_hiding(a),
               right = bools ? (b != 0) == (of == 1) : is_hiding(b);
    more += left && !right;
    fewer += right && !left;
  }
  iso_arena *const a = &p->s->res->arena;
  const char *const shows = iso_arena_printf(
      a, "the right's mask shows %lld places that the left's hides", (long long)more);
  if (fewer == 0) return more ? shows : NULL;
  return iso_arena_printf(a, "%s%s%lld places that the left's shows",
                          more ? shows : "the right's mask", more ? ", and hides " : " hides ",
                          (long long)fewer);
}

/* An optional tensor, as a bias, that one of two calls has and the other has not. */
static const char *argument_left_out(const parting *p, int64_t l, int64_t r) {
  const synth_node *x = lo_node(p, LEFT, l), *y = lo_node(p, RIGHT, r);
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP || strcmp(x->call->u.s, y->call->u.s) != 0 ||
      x->call->n != y->call->n)
    return NULL;
  const rule_schema *sc = rule_schemas_find(p->s->schemas, x->call->u.s);
  int64_t found = -1;
  for (uint32_t k = 0; k < x->call->n; k++) {
    const rule_term *a = x->call->child[k], *b = y->call->child[k];
    if (same_argument(p, a, b)) continue;
    if (found >= 0 || !((a->kind == RULE_VAR && b->kind == RULE_NONE) ||
                        (a->kind == RULE_NONE && b->kind == RULE_VAR)))
      return NULL;
    found = k;
  }
  if (found < 0 || !sc || found >= (int64_t)sc->n_args) return NULL;
  const int with = x->call->child[found]->kind == RULE_VAR ? LEFT : RIGHT;
  return iso_arena_printf(
      &p->s->res->arena, "on the %s the %s of %s is %s, and on the %s it has none",
      with == LEFT ? "left" : "right", sc->arg[found].name, lo_short_name(&p->s->res->arena, x->op),
      lo_named(p, with, lo_operand(p, with, with == LEFT ? l : r, found)),
      with == LEFT ? "right" : "left");
}

/* Two different operators, on operands that both sides have, whose results the roots read. */
static const char *other_operator(const parting *p, int64_t l, int64_t r) {
  const synth_node *x = lo_node(p, LEFT, l), *y = lo_node(p, RIGHT, r);
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP || strcmp(x->op, y->op) == 0 || !x->call->n ||
      !y->call->n || x->call->child[0]->kind != RULE_VAR ||
      !same_argument(p, x->call->child[0], y->call->child[0]))
    return NULL;
  return iso_arena_printf(&p->s->res->arena, "%s is %s on the left and %s on the right",
                          lo_called(&p->s->res->arena, p->s->graph[LEFT], (uint32_t)l), x->op,
                          y->op);
}

/* Two calls that read the parameters of one module and of another: the weight of a norm, and its
 * bias. */
static const char *other_parameters(const parting *p, int64_t l, int64_t r) {
  const synth_node *x = lo_node(p, LEFT, l), *y = lo_node(p, RIGHT, r);
  const char *module[2] = {NULL, NULL};
  size_t length[2] = {0, 0}, n = 0;
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP || strcmp(x->call->u.s, y->call->u.s) != 0 ||
      x->call->n != y->call->n)
    return NULL;
  for (uint32_t k = 0; k < x->call->n; k++) {
    const rule_term *const t[2] = {x->call->child[k], y->call->child[k]};
    if (same_argument(p, t[LEFT], t[RIGHT])) continue;
    for (int side = 0; side < 2; side++) {
      const synth_node *of = t[side]->kind == RULE_VAR ? lo_node(p, side, t[side]->u.i) : NULL;
      const char *dot = of && of->kind == SYNTH_PARAMETER ? strrchr(of->name, '.') : NULL;
      if (!dot) return NULL;
      const size_t to = (size_t)(dot - of->name);
      if (module[side] && (to != length[side] || strncmp(module[side], of->name, to) != 0))
        return NULL;
      module[side] = of->name;
      length[side] = to;
    }
    n++;
  }
  if (n < 2 || (length[0] == length[1] && strncmp(module[LEFT], module[RIGHT], length[LEFT]) == 0))
    return NULL;
  return iso_arena_printf(&p->s->res->arena,
                          "the right reads the parameters of %.*s where the left reads those of "
                          "%.*s",
                          (int)length[RIGHT], module[RIGHT], (int)length[LEFT], module[LEFT]);
}

/* The product that a tensor is a part of, where the other side does not have it: a weight of
 * several is in another order; -1: it is none. */
static int64_t part_of_product(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  while (g->node[i].kind == SYNTH_OP && !lo_product(p, side, i)) {
    const rule_term *call = g->node[i].call;
    if (!(rule_is_getitem(call->u.s) || lo_takes_part(call->u.s) || lo_passes(g, i)) || !call->n ||
        call->child[0]->kind != RULE_VAR)
      return -1;
    i = (uint32_t)call->child[0]->u.i;
  }
  return g->node[i].kind == SYNTH_OP && !lo_occurs(p, side, i) ? (int64_t)i : -1;
}

static bool is_called(const parting *p, int side, uint32_t i, const char *name) {
  return strcmp(name, lo_called(&p->s->res->arena, p->s->graph[side], i)) == 0;
}

/* Both sides read the leaf of one name, and the right's has the values of another one, `of`, which
 * the right has, too: else one leaf is read in both places. */
static bool own_leaf(const parting *p, const uint32_t at[2], const char *of) {
  const synth_graph *g = p->s->graph[RIGHT];
  const synth_node *l = lo_node(p, LEFT, lo_maker(p, LEFT, at[LEFT])),
                   *r = lo_node(p, RIGHT, lo_maker(p, RIGHT, at[RIGHT]));
  if (l->kind != SYNTH_PARAMETER || r->kind != SYNTH_PARAMETER || strcmp(l->name, r->name) != 0 ||
      is_called(p, RIGHT, lo_maker(p, RIGHT, at[RIGHT]), of))
    return false;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_PARAMETER && is_called(p, RIGHT, (uint32_t)i, of)) return true;
  return false;
}

/* Whether argument k of right node r is made by the same step of the same other arguments. */
static bool taken_again(const parting *p, int64_t r, int64_t k, uint32_t operand) {
  const synth_node *n = lo_node(p, RIGHT, (uint32_t)r),
                   *m = lo_node(p, RIGHT, lo_maker(p, RIGHT, operand));
  if (n->kind != SYNTH_OP || m->kind != SYNTH_OP || n == m || strcmp(n->op, m->op) != 0 ||
      n->call->n != m->call->n)
    return false;
  for (uint32_t i = 0; i < n->call->n; i++)
    if (i != k && !rule_term_eq(n->call->child[i], m->call->child[i])) return false;
  return true;
}

/* What is found beside the words. */
typedef struct finding {
  bool mask;       /* the operands are masks */
  int64_t product; /* the right one whose weight holds the exchanged parts, -1 */
  int64_t
      step[2]; /* by side: the step in which they part, of a layout or of a constant; -1: none */
} finding;

/* Of two calls, or, where the operand in which they differ is made by two calls of one operator
 * itself, of those. */
static const char *other_operand(const parting *p, int64_t l, int64_t r, finding *found) {
  bool behind = false;
  uint32_t at[2];
  for (int64_t k; operands_apart(p, l, r, &k, at); behind = true) {
    iso_arena *a = &p->s->res->arena;
    const rule_tensor *x = lo_value(p, LEFT, at[LEFT]), *y = lo_value(p, RIGHT, at[RIGHT]);
    if (!x || !y || x->numel < 2) return NULL;
    const char *name[2], *apart = rows(p, l, x, y);
    if (!apart) found->mask = (apart = other_mask(p, l, (uint32_t)k, x, y)) != NULL;
    if (!apart) apart = lo_other_layout(p, at, found->step);
    if (apart) return apart;
    if (lo_occurs(p, RIGHT, at[RIGHT])) {
      names(p, at, name);
      const bool exchanged =
          lo_occurs(p, LEFT, at[LEFT]) && other_way_about(p, (int64_t[2]){l, r}, x, y);
      const int64_t of = exchanged ? part_of_product(p, RIGHT, at[RIGHT]) : -1;
      found->product = of;
      if (exchanged)
        return iso_arena_printf(a, "%s and %s are exchanged%s%s", name[LEFT], name[RIGHT],
                                of < 0 ? "" : " in ",
                                of < 0 ? "" : lo_named(p, RIGHT, (uint32_t)of));
      if (own_leaf(p, at, name[RIGHT]))
        return iso_arena_printf(a, "%s on the right has the values of %s", name[LEFT], name[RIGHT]);
      if (taken_again(p, r, k, at[RIGHT]))
        return iso_arena_printf(a, "%s is taken twice: \"%s\" takes its result again", name[RIGHT],
                                lo_node(p, RIGHT, (uint32_t)r)->id);
      return iso_arena_printf(a, "the right reads %s where the left reads %s", name[RIGHT],
                              name[LEFT]);
    }
    l = lo_maker(p, LEFT, at[LEFT]);
    r = lo_maker(p, RIGHT, at[RIGHT]);
  }
  if (behind) {
    const char *const other = other_operator(p, l, r);
    if (other) found->step[LEFT] = l, found->step[RIGHT] = r;
    return other;
  }
  const char *const words = argument_left_out(p, l, r);
  return words ? words : other_parameters(p, l, r);
}

/* ---- two steps in the other order ---- */

/* A call of the region of `side` that is like the other side's root but for one operand, which is
 * made of the result of `from`; -1: none. */
static int64_t same_step_behind(const parting *p, int side, uint32_t from, int64_t other_root) {
  const synth_graph *g = p->s->graph[side];
  for (int64_t i = from + 1; i < (int64_t)g->n_nodes; i++) {
    if (g->node[i].kind != SYNTH_OP || !lo_in_region(p, side, (uint32_t)i)) continue;
    const int64_t pair[2] = {side == LEFT ? i : other_root, side == LEFT ? other_root : i};
    const int64_t k = lo_one_apart(p, pair[LEFT], pair[RIGHT]);
    if (k >= 0 && lo_maker(p, side, lo_operand(p, side, i, k)) == from) return i;
  }
  return -1;
}

static const char *other_order(const parting *p, const int64_t root[2]) {
  const synth_node *l = lo_node(p, LEFT, root[LEFT]), *r = lo_node(p, RIGHT, root[RIGHT]);
  if (strcmp(l->op, r->op) == 0 || lo_passes(p->s->graph[LEFT], (uint32_t)root[LEFT]) ||
      lo_passes(p->s->graph[RIGHT], (uint32_t)root[RIGHT]))
    return NULL;
  const int64_t then = same_step_behind(p, LEFT, (uint32_t)root[LEFT], root[RIGHT]),
                there = same_step_behind(p, RIGHT, (uint32_t)root[RIGHT], root[LEFT]);
  if (then < 0 || there < 0) return NULL;
  const int64_t k = lo_one_apart(p, root[LEFT], there);
  const char *subject, *done;
  if (k < 0) return NULL;
  lo_step_in_words(p->s, p->s->graph[LEFT], l->call, (uint32_t)k, &subject, &done);
  return iso_arena_printf(&p->s->res->arena,
                          "on the left %s is %s before %s, and on the right after it", subject,
                          done, lo_short_name(&p->s->res->arena, r->op));
}

/* ---- all of it ---- */

/* The first operator that acts on a leaf, looking through operators that only pass it on; any other
 * operator itself. */
static int64_t acting(const parting *p, int side, int64_t at) {
  const synth_graph *g = p->s->graph[side];
  while (g->node[at].kind != SYNTH_OP || lo_passes(g, (uint32_t)at)) {
    const int64_t next = lo_consumer(p->s, side, (uint32_t)at);
    if (next == at) break;
    at = next;
  }
  return at;
}

/* Whether the tensor that the product of `side` multiplies is computed from the one that the other
 * side's product multiplies: then `side` has additional steps. */
static bool made_of_other(const parting *p, const int64_t pair[2], int side) {
  const rule_tensor *v = lo_value(p, !side, lo_operand(p, !side, pair[!side], 0));
  lo_steps q = {0};
  if (v) lo_find_steps(p, side, lo_operand(p, side, pair[side], 0), v, &q);
  free(q.in);
  return q.begins;
}

/* A product with a weight that both sides have, of another tensor. The two products need not be the
 * roots, where one side leaves out all operators that lead to the other's tensor. */
static const char *product_of_another(const parting *p, int64_t root, int side, synth_divergence *d,
                                      finding *found) {
  const synth_graph *o = p->s->graph[!side];
  const synth_node *n = lo_node(p, side, root);
  if (n->kind != SYNTH_OP || !lo_product(p, side, (uint32_t)root)) return NULL;
  int64_t twin = -1;
  for (int64_t i = 0; i < (int64_t)o->n_nodes; i++) {
    if (o->node[i].kind != SYNTH_OP || p->s->map[!side][i].i == EG_NONE) continue;
    const int64_t pair[2] = {side == LEFT ? root : i, side == LEFT ? i : root};
    if (lo_one_apart(p, pair[LEFT], pair[RIGHT]) != 0) continue;
    if (twin >= 0) return NULL; /* a weight that several products read */
    twin = i;
  }
  if (twin < 0) return NULL;
  const int64_t pair[2] = {side == LEFT ? root : twin, side == LEFT ? twin : root};
  if (made_of_other(p, pair, LEFT) || made_of_other(p, pair, RIGHT)) return NULL;
  const char *words = other_operand(p, pair[LEFT], pair[RIGHT], found);
  if (words) d->left = pair[LEFT], d->right = pair[RIGHT];
  return words;
}

const char *lo_wiring_hint(const parting *p, const int64_t root[2], synth_divergence *d,
                           bool *mask) {
  const bool leaf[2] = {lo_node(p, LEFT, root[LEFT])->kind != SYNTH_OP,
                        lo_node(p, RIGHT, root[RIGHT])->kind != SYNTH_OP};
  const char *words = NULL;
  finding found = {false, -1, {-1, -1}};
  *mask = false;
  if (p->gap || (leaf[LEFT] && leaf[RIGHT])) return NULL;
  const bool both = !leaf[LEFT] && !leaf[RIGHT];
  if (both) words = other_order(p, root);
  for (int side = RIGHT; side >= LEFT && !words; side--)
    if (!leaf[side]) words = lo_steps_besides(p, root, side, false, d);
  if (!words && both) words = other_operand(p, root[LEFT], root[RIGHT], &found);
  if (!words) words = lo_module_unread(p, root);
  const int64_t acts[2] = {acting(p, LEFT, root[LEFT]), acting(p, RIGHT, root[RIGHT])};
  for (int side = RIGHT; side >= LEFT && !words && both; side--)
    words = lo_steps_besides(p, acts, side, false, d);
  if (!words && (words = other_operand(p, acts[LEFT], acts[RIGHT], &found)) && both)
    d->left = acts[LEFT], d->right = acts[RIGHT];
  for (int side = RIGHT; side >= LEFT && !words && both; side--)
    words = lo_steps_besides(p, root, side, true, d);
  for (int side = RIGHT; side >= LEFT && !words; side--)
    words = product_of_another(p, root[side], side, d, &found);
  *mask = found.mask;
  if (words && found.product >= 0) d->right = found.product;
  if (words && found.step[LEFT] >= 0) d->left = found.step[LEFT];
  if (words && found.step[RIGHT] >= 0) d->right = found.step[RIGHT];
  return words;
}
