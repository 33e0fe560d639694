/* Where the two roots are wired otherwise, in words: an operand that is another tensor, a step or a
 * module that one side leaves out, two steps in the other order, rows that are shifted. Unlike a
 * change that is tried until it mends something (mutate.c), all of it is read off the graphs: every
 * tensor that is named has its value on both sides. */
#include "localise/alignment.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 64 }; /* operators that are looked at, of each side */

static const synth_node *node_of(const parting *p, int side, int64_t i) {
  return &p->s->graph[side]->node[i];
}

/* Arguments agree: tensors by their values. */
static bool agree(const parting *p, const rule_term *a, const rule_term *b) {
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind == RULE_VAR) {
    const rule_tensor *x = lo_value(p, LEFT, (uint32_t)a->u.i),
                      *y = lo_value(p, RIGHT, (uint32_t)b->u.i);
    return x && y && lo_agree(p, x, y);
  }
  if (a->n == 0) return rule_term_eq(a, b);
  for (uint32_t k = 0; k < a->n; k++)
    if (!agree(p, a->child[k], b->child[k])) return false;
  return true;
}

/* The one argument in which two calls of an operator differ, which is a tensor; -1: not so. */
static int64_t one_apart(const parting *p, int64_t l, int64_t r) {
  const synth_node *x = node_of(p, LEFT, l), *y = node_of(p, RIGHT, r);
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP || strcmp(x->call->u.s, y->call->u.s) != 0 ||
      x->call->n != y->call->n)
    return -1;
  int64_t found = -1;
  for (uint32_t k = 0; k < x->call->n; k++) {
    const rule_term *a = x->call->child[k], *b = y->call->child[k];
    if (agree(p, a, b)) continue;
    if (found >= 0 || a->kind != RULE_VAR || b->kind != RULE_VAR) return -1;
    found = k;
  }
  return found;
}

static uint32_t operand(const parting *p, int side, int64_t node, int64_t k) {
  return (uint32_t)node_of(p, side, node)->call->child[k]->u.i;
}

/* The operator that made a tensor, behind operators that only pass it on. */
static uint32_t maker(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  while (g->node[i].kind == SYNTH_OP && !rule_is_getitem(g->node[i].op) &&
         lo_passes_on(p, side, i) && g->node[i].call->n &&
         g->node[i].call->child[0]->kind == RULE_VAR)
    i = (uint32_t)g->node[i].call->child[0]->u.i;
  return i;
}

/* A tensor as a reader knows it: a leaf's name, an operator with its module. */
static const char *called(const parting *p, int side, uint32_t i) {
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
    if (x && lo_agree(p, x, v)) return maker(p, LEFT, i);
  }
  return -1;
}

/* Two names that tell two tensors apart: both of the left graph, where it has both. */
static void names(const parting *p, const uint32_t at[2], const char *name[2]) {
  const int64_t twin = left_twin(p, maker(p, RIGHT, at[RIGHT]));
  name[LEFT] = called(p, LEFT, maker(p, LEFT, at[LEFT]));
  name[RIGHT] =
      twin >= 0 ? called(p, LEFT, (uint32_t)twin) : called(p, RIGHT, maker(p, RIGHT, at[RIGHT]));
  if (name[LEFT] && name[RIGHT] && strcmp(name[LEFT], name[RIGHT]) == 0)
    for (int side = 0; side < 2; side++) name[side] = called(p, side, at[side]);
}

/* ---- another operand ---- */

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

static const char *rows(const parting *p, int64_t l, const rule_tensor *x, const rule_tensor *y) {
  int64_t by = 0;
  if (!rule_operator_of(node_of(p, LEFT, l)->op)->table || !shifted(x, y, &by)) return NULL;
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

/* Operand k of a call hides places: 1 those where it is true, 0 those where it is false, or far
 * below zero; -1: it is no mask. What is chosen where a truth value is true stands behind it. */
static int hides_where(const parting *p, int64_t l, uint32_t k, const rule_tensor *x) {
  const rule_term *call = node_of(p, LEFT, l)->call;
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

/* Two operators of what both sides have, which the roots read. */
static const char *other_operator(const parting *p, int64_t l, int64_t r) {
  const synth_node *x = node_of(p, LEFT, l), *y = node_of(p, RIGHT, r);
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP || strcmp(x->op, y->op) == 0 || !x->call->n ||
      !y->call->n || x->call->child[0]->kind != RULE_VAR ||
      !agree(p, x->call->child[0], y->call->child[0]))
    return NULL;
  return iso_arena_printf(&p->s->res->arena, "%s is %s on the left and %s on the right",
                          lo_called(&p->s->res->arena, p->s->graph[LEFT], (uint32_t)l), x->op,
                          y->op);
}

/* Of two calls, or, where the operand in which they differ is made by two calls of one operator
 * itself, of those. */
static const char *other_operand(const parting *p, int64_t l, int64_t r) {
  bool behind = false;
  for (int64_t k; (k = one_apart(p, l, r)) >= 0; behind = true) {
    iso_arena *a = &p->s->res->arena;
    const uint32_t at[2] = {operand(p, LEFT, l, k), operand(p, RIGHT, r, k)};
    const rule_tensor *x = lo_value(p, LEFT, at[LEFT]), *y = lo_value(p, RIGHT, at[RIGHT]);
    if (!x || !y || x->numel < 2) return NULL;
    const char *name[2], *apart = rows(p, l, x, y);
    if (!apart) apart = other_mask(p, l, (uint32_t)k, x, y);
    if (apart) return apart;
    if (lo_occurs(p, RIGHT, at[RIGHT])) {
      names(p, at, name);
      if (lo_occurs(p, LEFT, at[LEFT]) && other_way_about(p, (int64_t[2]){l, r}, x, y))
        return iso_arena_printf(a, "%s and %s are exchanged", name[LEFT], name[RIGHT]);
      return iso_arena_printf(a, "the right reads %s where the left reads %s", name[RIGHT],
                              name[LEFT]);
    }
    l = maker(p, LEFT, at[LEFT]);
    r = maker(p, RIGHT, at[RIGHT]);
  }
  return behind ? other_operator(p, l, r) : NULL;
}

/* ---- steps that one side leaves out ---- */

/* The tensors within the region that a tensor of it is computed from. */
typedef struct steps {
  bool *in;           /* by node */
  size_t n;           /* that do more than pass a value on */
  int64_t only;       /* one of them */
  int64_t kept;       /* its argument that is the tensor they begin at, -1 */
  bool begins;        /* some step reads that tensor */
  const char *module; /* whose forward all of them are part of; NULL: of no one module */
} steps;

/* The module of both: what their scopes begin with, in whole names. Returns: its length. */
static size_t shared_scope(const char *a, size_t n, const char *b) {
  size_t i = 0, whole = 0;
  while (i < n && b[i] && a[i] == b[i]) {
    i++;
    if ((i == n || a[i] == '.') && (b[i] == 0 || b[i] == '.')) whole = i;
  }
  return whole;
}

/* Fills `q` for the tensor `end` of `side`; v: what they are to begin at. Owns: q->in. */
static void find_steps(const parting *p, int side, uint32_t end, const rule_tensor *v, steps *q) {
  const synth_graph *g = p->s->graph[side];
  *q = (steps){.in = calloc(g->n_nodes + 1, 1), .only = -1, .kept = -1};
  if (!q->in) return; /* then less is said */
  const char *scope = NULL;
  size_t length = 0;
  q->in[end] = true;
  for (int64_t i = end; i >= 0; i--) {
    const synth_node *n = &g->node[i];
    if (!(q->in[i] = q->in[i] && n->kind == SYNTH_OP && lo_in_region(p, side, (uint32_t)i)))
      continue;
    st_term_mark(n->call, q->in);
    int64_t kept = -1;
    for (uint32_t k = 0; k < n->call->n && kept < 0; k++) {
      const rule_term *t = n->call->child[k];
      const rule_tensor *x = t->kind == RULE_VAR && !lo_in_region(p, side, (uint32_t)t->u.i)
                                 ? lo_value(p, side, (uint32_t)t->u.i)
                                 : NULL;
      if (x && lo_agree(p, x, v)) kept = k;
    }
    q->begins |= kept >= 0;
    if (lo_passes(g, (uint32_t)i)) continue;
    q->n++;
    q->only = i;
    q->kept = kept;
    length = scope ? shared_scope(scope, length, n->scope ? n->scope : "")
                   : strlen(n->scope ? n->scope : "");
    if (!scope) scope = n->scope ? n->scope : "";
  }
  q->module = length ? iso_arena_strndup(&p->s->res->arena, scope, length) : NULL;
}

static bool within(const char *scope, const char *module) {
  const size_t n = strlen(module);
  return scope && strncmp(scope, module, n) == 0 && (scope[n] == 0 || scope[n] == '.');
}

/* The steps are all that their module does. */
static bool whole_module(const parting *p, int side, const steps *q) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t i = 0; i < g->n_nodes && q->module; i++)
    if (g->node[i].kind == SYNTH_OP && lo_in_region(p, side, i) && !q->in[i] && !lo_passes(g, i) &&
        within(g->node[i].scope, q->module))
      return false;
  return q->module != NULL;
}

static const char *left_out(const parting *p, int with, const steps *q, int64_t reader) {
  iso_arena *a = &p->s->res->arena;
  const char *const on = with == LEFT ? "left" : "right", *const off =
                                                              with == LEFT ? "right" : "left";
  if (!q->begins || q->n == 0) return NULL;
  if (q->n == 1 && q->kept >= 0) {
    const char *subject, *done;
    const rule_term *call = node_of(p, with, q->only)->call;
    if (rule_operator_of(call->u.s)->cast) return NULL; /* what it drops says more */
    lo_step_in_words(p->s, p->s->graph[with], call, (uint32_t)q->kept, &subject, &done);
    return iso_arena_printf(a, "on the %s %s is %s, and on the %s it is not", on, subject, done,
                            off);
  }
  if (!whole_module(p, with, q) || within(node_of(p, with, reader)->scope, q->module)) return NULL;
  return iso_arena_printf(a, "on the %s %s is applied, and on the %s it is not", on, q->module,
                          off);
}

/* Whether the next step on two tensors is the same, so that the two stand for one another. */
static bool goes_on_alike(const parting *p, int64_t l, int64_t r) {
  const int64_t a = lo_consumer(p->s, LEFT, (uint32_t)l), b = lo_consumer(p->s, RIGHT, (uint32_t)r);
  if (a == l || b == r) return (a == l) == (b == r);
  return strcmp(node_of(p, LEFT, a)->op, node_of(p, RIGHT, b)->op) == 0;
}

/* Words for a step that side `without` lacks: its root reads a tensor, and the same operator of the
 * other side reads what the step made of it. Its place is the tensor behind which it is missing. */
static const char *steps_besides(const parting *p, const int64_t root[2], int without,
                                 synth_divergence *d) {
  const int with = !without;
  const synth_graph *g = p->s->graph[with];
  const char *words = NULL;
  for (int64_t i = 0; i < (int64_t)g->n_nodes && !words; i++) {
    if (!lo_in_region(p, with, (uint32_t)i) || g->node[i].kind != SYNTH_OP) continue;
    const int64_t pair[2] = {with == LEFT ? i : root[LEFT], with == LEFT ? root[RIGHT] : i};
    const int64_t k = one_apart(p, pair[LEFT], pair[RIGHT]);
    if (k < 0 || !goes_on_alike(p, pair[LEFT], pair[RIGHT])) continue;
    const uint32_t made = operand(p, with, i, k), from = operand(p, without, root[without], k);
    const rule_tensor *v = lo_value(p, without, from);
    if (!v || !lo_in_region(p, with, made) || !lo_occurs(p, without, from)) continue;
    steps q;
    find_steps(p, with, made, v, &q);
    if (q.in) words = left_out(p, with, &q, i);
    if (words && q.n == 1 && node_of(p, without, from)->kind == SYNTH_OP)
      *(without == LEFT ? &d->left : &d->right) = from;
    free(q.in);
  }
  return words;
}

/* ---- two steps in the other order ---- */

/* A call of the region of `side` that is as the other side's root but for one operand, which is
 * made of what `from` gives; -1: none. */
static int64_t same_step_behind(const parting *p, int side, uint32_t from, int64_t other_root) {
  const synth_graph *g = p->s->graph[side];
  for (int64_t i = from + 1; i < (int64_t)g->n_nodes; i++) {
    if (g->node[i].kind != SYNTH_OP || !lo_in_region(p, side, (uint32_t)i)) continue;
    const int64_t pair[2] = {side == LEFT ? i : other_root, side == LEFT ? other_root : i};
    const int64_t k = one_apart(p, pair[LEFT], pair[RIGHT]);
    if (k >= 0 && maker(p, side, operand(p, side, i, k)) == from) return i;
  }
  return -1;
}

static const char *other_order(const parting *p, const int64_t root[2]) {
  const synth_node *l = node_of(p, LEFT, root[LEFT]), *r = node_of(p, RIGHT, root[RIGHT]);
  if (strcmp(l->op, r->op) == 0 || lo_passes(p->s->graph[LEFT], (uint32_t)root[LEFT]) ||
      lo_passes(p->s->graph[RIGHT], (uint32_t)root[RIGHT]))
    return NULL;
  const int64_t then = same_step_behind(p, LEFT, (uint32_t)root[LEFT], root[RIGHT]),
                there = same_step_behind(p, RIGHT, (uint32_t)root[RIGHT], root[LEFT]);
  if (then < 0 || there < 0) return NULL;
  const int64_t k = one_apart(p, root[LEFT], there);
  const char *subject, *done;
  if (k < 0) return NULL;
  lo_step_in_words(p->s, p->s->graph[LEFT], l->call, (uint32_t)k, &subject, &done);
  return iso_arena_printf(&p->s->res->arena,
                          "on the left %s is %s before %s, and on the right after it", subject,
                          done, lo_short_name(&p->s->res->arena, r->op));
}

/* ---- all of it ---- */

/* The first operator that does something to what a leaf, or an operator that only passes it on,
 * gives; any other operator itself. */
static int64_t acting(const parting *p, int side, int64_t at) {
  const synth_graph *g = p->s->graph[side];
  while (g->node[at].kind != SYNTH_OP || lo_passes(g, (uint32_t)at)) {
    const int64_t next = lo_consumer(p->s, side, (uint32_t)at);
    if (next == at) break;
    at = next;
  }
  return at;
}

const char *lo_wiring_hint(const parting *p, const int64_t root[2], synth_divergence *d) {
  const bool leaf[2] = {node_of(p, LEFT, root[LEFT])->kind != SYNTH_OP,
                        node_of(p, RIGHT, root[RIGHT])->kind != SYNTH_OP};
  const char *words = NULL;
  if (p->gap || (leaf[LEFT] && leaf[RIGHT])) return NULL;
  if (!leaf[LEFT] && !leaf[RIGHT]) {
    words = other_order(p, root);
    if (!words) words = steps_besides(p, root, RIGHT, d);
    if (!words) words = steps_besides(p, root, LEFT, d);
    if (!words) words = other_operand(p, root[LEFT], root[RIGHT]);
  }
  return words ? words
               : other_operand(p, acting(p, LEFT, root[LEFT]), acting(p, RIGHT, root[RIGHT]));
}
