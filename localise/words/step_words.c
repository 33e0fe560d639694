/* Steps that one side leaves out, in words: an operator, a module, a layer whose parameters it does
 * not read. They are read off the graphs, as in wiring_words.c. */
#include "localise/words/wiring.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

/* The module of both: the common beginning of their scopes, in whole names. Returns: its length. */
static size_t shared_scope(const char *a, size_t n, const char *b) {
  size_t i = 0, whole = 0;
  while (i < n && b[i] && a[i] == b[i]) {
    i++;
    if ((i == n || a[i] == '.') && (b[i] == 0 || b[i] == '.')) whole = i;
  }
  return whole;
}

/* The argument of a step that is the tensor v, of outside of the region; -1: none. */
static int64_t begins_at(const parting *p, int side, const synth_node *n, const rule_tensor *v) {
  for (uint32_t k = 0; k < n->call->n; k++) {
    const rule_term *t = n->call->child[k];
    const rule_tensor *x = t->kind == RULE_VAR && !lo_in_region(p, side, (uint32_t)t->u.i)
                               ? lo_value(p, side, (uint32_t)t->u.i)
                               : NULL;
    if (x && lo_agree(p, x, v)) return k;
  }
  return -1;
}

/* Fills `q` with the steps that lead from a tensor of value `v` to the tensor `end` of `side`.
 * Those are counted that v goes through, not those that other tensors go through beside it. Owns:
 * q->in. */
void lo_find_steps(const parting *p, int side, uint32_t end, const rule_tensor *v, lo_steps *q) {
  const synth_graph *g = p->s->graph[side];
  *q = (lo_steps){.in = calloc(g->n_nodes + 1, 1), .last = -1, .kept = -1};
  bool *through = calloc(g->n_nodes + 1, 1);
  if (!q->in || !through) { /* then less is said */
    free(q->in);
    free(through);
    q->in = NULL;
    return;
  }
  const char *scope = NULL;
  size_t length = 0;
  q->in[end] = true;
  for (int64_t i = end; i >= 0; i--)
    if ((q->in[i] = q->in[i] && g->node[i].kind == SYNTH_OP && lo_in_region(p, side, (uint32_t)i)))
      st_term_mark(g->node[i].call, q->in);
  for (uint32_t i = 0; i <= end; i++) {
    const synth_node *n = &g->node[i];
    const int64_t kept = q->in[i] ? begins_at(p, side, n, v) : -1;
    if (!q->in[i]) continue;
    q->all += !lo_passes(g, i);
    if (!(through[i] = kept >= 0 || st_term_uses(n->call, through))) continue;
    q->begins |= kept >= 0;
    if (lo_passes(g, i)) continue;
    q->n++;
    q->last = i;
    q->kept = kept;
    const char *const own = n->scope ? n->scope : "";
    length = scope ? shared_scope(scope, length, own) : strlen(own);
    if (!scope) scope = own;
  }
  free(through);
  q->module = length ? iso_arena_strndup(&p->s->res->arena, scope, length) : NULL;
}

static bool within(const char *scope, const char *module) {
  const size_t n = strlen(module);
  return scope && strncmp(scope, module, n) == 0 && (scope[n] == 0 || scope[n] == '.');
}

/* The steps are all that their module does, but for constants. */
static bool whole_module(const parting *p, int side, const lo_steps *q) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t i = 0; i < g->n_nodes && q->module; i++)
    if (g->node[i].kind == SYNTH_OP && p->s->map[side][i].i != EG_NONE &&
        !p->s->rec[p->s->map[side][i].i].konst && !q->in[i] && !lo_passes(g, i) &&
        within(g->node[i].scope, q->module))
      return false;
  return q->module != NULL;
}

/* Some operator of the region is of the module. */
static bool has_module(const parting *p, int side, const char *module) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && lo_in_region(p, side, i) && within(g->node[i].scope, module))
      return true;
  return false;
}

static const char *on_side(int side) { return side == LEFT ? "left" : "right"; }

/* A module that side `with` applies and the other one does not, or only behind the module that its
 * root is of. */
static const char *module_left_out(const parting *p, int with, const lo_steps *q,
                                   int64_t other_root) {
  iso_arena *a = &p->s->res->arena;
  const char *const module = q->module, *const there = lo_node(p, !with, other_root)->scope;
  if (!has_module(p, !with, module)) {
    const char *op = q->n == 1 ? lo_short_name(a, lo_node(p, with, q->last)->op) : NULL;
    return iso_arena_printf(a, "on the %s %s%s%s%s is applied, and on the %s it is not",
                            on_side(with), module, op ? " (" : "", op ? op : "", op ? ")" : "",
                            on_side(!with));
  }
  if (!there || !*there || within(there, module) || within(module, there) ||
      !has_module(p, with, there))
    return NULL;
  return iso_arena_printf(a, "on the %s %s is applied before %s, and on the %s after it",
                          on_side(with), module, there, on_side(!with));
}

/* A step that gives each number several times: its reader may do so by itself, as products do that
 * broadcast. */
static bool copies(const parting *p, int side, int64_t i) {
  const synth_node *n = lo_node(p, side, i);
  const rule_operator *o = rule_operator_of(n->op);
  const rule_tensor *x = lo_value(p, side, (uint32_t)i),
                    *of = n->call->n && n->call->child[0]->kind == RULE_VAR
                              ? lo_value(p, side, (uint32_t)n->call->child[0]->u.i)
                              : NULL;
  return (o->broadcasts || o->joins) && x && of && x->numel > of->numel;
}

static size_t in_region(const parting *p, int side, const char *op) {
  const synth_graph *g = p->s->graph[side];
  size_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    n += g->node[i].kind == SYNTH_OP && strcmp(g->node[i].op, op) == 0 && lo_in_region(p, side, i);
  return n;
}

/* The other side takes such a step, too, at another place. */
static bool moved(const parting *p, int side, int64_t i) {
  const char *const op = lo_node(p, side, i)->op;
  return in_region(p, LEFT, op) == in_region(p, RIGHT, op);
}

static const char *left_out(const parting *p, int with, const lo_steps *q, int64_t reader,
                            int64_t other_root) {
  enum { FEW = 2 }; /* with what it reads besides, as a mean or a row of a table */
  iso_arena *a = &p->s->res->arena;
  if (!q->begins || q->n == 0) return NULL;
  const bool whole =
      whole_module(p, with, q) && !within(lo_node(p, with, reader)->scope, q->module);
  if (q->kept >= 0 && q->all <= FEW) { /* the last step reads what they begin at itself */
    const char *subject, *done;
    const rule_term *call = lo_node(p, with, q->last)->call;
    const rule_operator *o = rule_operator_of(call->u.s);
    if (o->cast) return NULL; /* what it drops says more */
    if (copies(p, with, q->last)) return NULL;
    if (o->arithmetic == RULE_ARITHMETIC_NONE && moved(p, with, q->last)) return NULL;
    if (whole && o->arithmetic == RULE_ARITHMETIC_NONE)
      return module_left_out(p, with, q, other_root);
    lo_step_in_words(p->s, p->s->graph[with], call, (uint32_t)q->kept, &subject, &done);
    return iso_arena_printf(a, "on the %s %s is %s, and on the %s it is not", on_side(with),
                            subject, done, on_side(!with));
  }
  return whole ? module_left_out(p, with, q, other_root) : NULL;
}

/* Whether the next step on two tensors is the same, so that the two stand for one another. */
static bool goes_on_alike(const parting *p, int64_t l, int64_t r) {
  const int64_t a = lo_consumer(p->s, LEFT, (uint32_t)l), b = lo_consumer(p->s, RIGHT, (uint32_t)r);
  if (a == l || b == r) return (a == l) == (b == r);
  return strcmp(lo_node(p, LEFT, a)->op, lo_node(p, RIGHT, b)->op) == 0;
}

/* The module that an operator outside of the region is of, where the steps are of another one. */
static const char *other_module(const parting *p, int side, const rule_term *t, const lo_steps *q) {
  const synth_node *n =
      t->kind == RULE_VAR ? lo_node(p, side, lo_maker(p, side, (uint32_t)t->u.i)) : NULL;
  const char *const scope = n && n->kind == SYNTH_OP ? n->scope : NULL;
  return scope && *scope && q->module && !within(scope, q->module) && !within(q->module, scope)
             ? scope
             : NULL;
}

/* Steps that are no whole module, as a rotation: their operators, and the module whose results they
 * take in. Without one a change that mends the outputs says more. */
static const char *steps_left_out(const parting *p, int with, const lo_steps *q, uint32_t from,
                                  const rule_tensor *v) {
  enum { FEW = 4 }; /* operators that are named */
  iso_arena *a = &p->s->res->arena;
  const synth_graph *g = p->s->graph[with];
  const char *ops = "", *module = NULL, *last = "";
  size_t named = 0;
  if (!q->begins || q->n < 2) return NULL;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (!q->in[i] || lo_passes(g, i)) continue;
    const char *const op = lo_short_name(a, g->node[i].op);
    if (op && strcmp(op, last) != 0 && named++ < FEW)
      ops = iso_arena_printf(a, "%s%s%s", ops, *ops ? ", " : "", op);
    last = op ? op : last;
    for (uint32_t k = 0; k < g->node[i].call->n && !module; k++) {
      const rule_term *t = g->node[i].call->child[k];
      const rule_tensor *x = t->kind == RULE_VAR ? lo_value(p, with, (uint32_t)t->u.i) : NULL;
      if (x && !lo_in_region(p, with, (uint32_t)t->u.i) && !lo_agree(p, x, v))
        module = other_module(p, with, t, q);
    }
  }
  if (!module) return NULL;
  return iso_arena_printf(a,
                          "on the %s %s goes through %s%s with the results of %s before it is "
                          "read, and on the %s it does not",
                          on_side(with), lo_named(p, !with, lo_maker(p, !with, from)), ops,
                          named > FEW ? ", ..." : "", module, on_side(!with));
}

/* A step that takes a part has its reader work on that part alone: the side that works in parts
 * leaves nothing out, and the other one neither. */
static bool in_parts(const parting *p, const int64_t pair[2]) {
  const rule_tensor *x = lo_value(p, LEFT, (uint32_t)pair[LEFT]),
                    *y = lo_value(p, RIGHT, (uint32_t)pair[RIGHT]);
  return x && y && x->numel != y->numel;
}

/* Words for a step that side `without` lacks: its root reads a tensor, and the same operator of the
 * other side reads the step's result on it. Its place is the tensor after which it is missing. */
const char *lo_steps_besides(const parting *p, const int64_t root[2], int without, bool any,
                             synth_divergence *d) {
  const int with = !without;
  const synth_graph *g = p->s->graph[with];
  const char *words = NULL;
  for (int64_t i = 0; i < (int64_t)g->n_nodes && !words; i++) {
    if (!lo_in_region(p, with, (uint32_t)i) || g->node[i].kind != SYNTH_OP) continue;
    const int64_t pair[2] = {with == LEFT ? i : root[LEFT], with == LEFT ? root[RIGHT] : i};
    const int64_t k = lo_one_apart(p, pair[LEFT], pair[RIGHT]);
    if (k < 0 || in_parts(p, pair) || !goes_on_alike(p, pair[LEFT], pair[RIGHT])) continue;
    const uint32_t made = lo_operand(p, with, i, k),
                   from = lo_operand(p, without, root[without], k);
    const rule_tensor *v = lo_value(p, without, from);
    if (!v || !lo_in_region(p, with, made) || !lo_occurs(p, without, from)) continue;
    lo_steps q;
    lo_find_steps(p, with, made, v, &q);
    if (q.in) words = left_out(p, with, &q, i, root[without]);
    if (q.in && !words && any) words = steps_left_out(p, with, &q, from, v);
    if (words && q.n == 1 && lo_node(p, without, from)->kind == SYNTH_OP)
      *(without == LEFT ? &d->left : &d->right) = from;
    free(q.in);
  }
  return words;
}

/* ---- a module whose parameters the other side does not read ---- */

/* Parameters of `module` that a side reads; in `parts`: of how many of its modules, counted up to
 * two; in `explained`: some parameter has a counterpart. */
static size_t parameters_of(const parting *p, int side, const char *module, size_t *parts,
                            bool *explained) {
  const synth_graph *g = p->s->graph[side];
  const size_t length = strlen(module) + 1;
  const char *first = NULL;
  size_t n = 0, first_n = 0;
  *parts = 0;
  *explained = false;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const char *const name = g->node[i].name;
    if (g->node[i].kind != SYNTH_PARAMETER || p->s->map[side][i].i == EG_NONE ||
        !within(name, module))
      continue;
    n++;
    *explained |= lo_leaf_explained(p, side, i);
    const char *const rest = name + length;
    const size_t part = strchr(rest, '.') ? strcspn(rest, ".") : 0;
    if (!first) first = rest, first_n = part, *parts = 1;
    else if (part != first_n || strncmp(rest, first, part) != 0) *parts = 2;
  }
  return n;
}

/* A module of several that one side reads no parameter of, while it has others of the module around
 * it: a layer that is left out. */
const char *lo_module_unread(const parting *p, const int64_t root[2]) {
  iso_arena *a = &p->s->res->arena;
  for (int side = LEFT; side <= RIGHT; side++) {
    const synth_node *n = lo_node(p, side, root[side]);
    if (n->kind != SYNTH_PARAMETER || !n->name) continue;
    char *module = iso_arena_strdup(a, n->name), *dot;
    while (module && (dot = strrchr(module, '.'))) {
      char *around = (*dot = 0, strrchr(module, '.'));
      size_t parts, there;
      bool explained, other;
      if (parameters_of(p, !side, module, &there, &other) > 0) break;
      parameters_of(p, side, module, &parts, &explained);
      if (explained) break;
      if (!around || parts < 2) continue;
      const char *const outer = iso_arena_strndup(a, module, (size_t)(around - module));
      if (outer && parameters_of(p, !side, outer, &there, &other) > 0)
        return iso_arena_printf(a, "on the %s %s is applied, and on the %s it is not",
                                on_side(side), module, on_side(!side));
    }
  }
  return NULL;
}

const char *lo_without_step(const parting *p, int without, const int64_t exit[2]) {
  const int with = !without;
  const rule_tensor *v = lo_value(p, without, (uint32_t)exit[without]);
  const int64_t reader = lo_consumer(p->s, with, (uint32_t)exit[with]);
  const char *words = NULL;
  lo_steps q;
  if (!v) return NULL;
  lo_find_steps(p, with, (uint32_t)exit[with], v, &q);
  if (q.in) words = left_out(p, with, &q, reader, exit[without]);
  free(q.in);
  return words;
}
