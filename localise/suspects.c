/* Which operator of a divergence is at fault: the one whose change mends it, or the constant that
 * the other side does not have. */
#include "localise/alignment.h"
#include "localise/localise_int.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SUSPECTS = 80, MAX_READERS = 4 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* The region, and the nodes that it reads, looking through constants and operators that only pass
 * values on; then their operands, `levels` deep. Owns: malloc'ed. */
static bool *around(const parting *p, int side, const uint32_t *node, size_t n, int levels) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  uint8_t *read = calloc(g->n_nodes + 1, 1); /* how many levels away from the region, plus 1 */
  bool *args = calloc(g->n_nodes + 1, 1);
  if (flag && read && args) {
    for (size_t i = 0; i < n; i++) flag[node[i]] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
      if (g->node[i].kind != SYNTH_OP || s->map[side][i].i == EG_NONE) continue;
      int far = flag[i] ? 0 : read[i];
      if (!flag[i] && !read[i]) continue;
      if (!flag[i] && (s->rec[s->map[side][i].i].konst || lo_passes_on(p, side, (uint32_t)i)))
        far--;
      if (far > levels) continue;
      flag[i] = true;
      memset(args, 0, g->n_nodes);
      st_term_mark(g->node[i].call, args);
      for (size_t k = 0; k < i; k++)
        if (args[k] && (!read[k] || read[k] > far + 1)) read[k] = (uint8_t)(far + 1);
    }
  }
  free(read);
  free(args);
  return flag;
}

/* An operator that only passes a value on is not where it went wrong: the operator above that made
 * it, if the other side has no such value; else `node`. */
static uint32_t maker(const parting *p, int side, uint32_t node) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t at = node; lo_passes(g, at);) {
    const rule_term *call = g->node[at].call;
    if (call->n == 0 || call->child[0]->kind != RULE_VAR) return node;
    at = (uint32_t)call->child[0]->u.i;
    if (g->node[at].kind != SYNTH_OP || !lo_value(p, side, at) || lo_occurs(p, side, at))
      return node;
    if (!lo_passes(g, at)) return at;
  }
  return node;
}

enum { MAX_LONE = 40 };

/* The nearest operators that the region is computed from and that have no counterpart: their
 * results may equal a tensor of another place by chance (zeros, a residual alone), so that the
 * region really begins before them. Only those not in `wide`. Owns: malloc'ed. */
static bool *find_lone(const parting *p, int side, const bool *own, const bool *wide) {
  const synth_graph *g = p->s->graph[side];
  bool *above = calloc(g->n_nodes + 1, 1), *flag = calloc(g->n_nodes + 1, 1);
  if (!above || !flag || !own || !wide) {
    free(above);
    free(flag);
    return NULL;
  }
  size_t n = 0;
  for (size_t i = g->n_nodes; i-- > 0 && n < MAX_LONE;) {
    if (g->node[i].kind != SYNTH_OP || !(own[i] || above[i]) || p->s->map[side][i].i == EG_NONE)
      continue;
    st_term_mark(g->node[i].call, above);
    if (own[i] || wide[i] || lo_passes(g, (uint32_t)i) || g->node[i].n_outputs != 1 ||
        lo_matched(p, side, (uint32_t)i))
      continue;
    flag[i] = true;
    n++;
  }
  free(above);
  return flag;
}

static bool integer_constant(const state *s, int side, uint32_t i) {
  const rule_dtype t = s->graph[side]->node[i].dtype;
  return s->rec[s->map[side][i].i].konst && !rule_dtype_is_float(t) && !rule_dtype_is_complex(t);
}

/* The counterpart of `node` on the other side, whose value should be `v`: a node of the region,
 * else one of the same operator. */
static int64_t counterpart(const parting *p, int side, uint32_t node, const bool *other,
                           const rule_tensor *v) {
  const synth_graph *g = p->s->graph[!side];
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = g->n_nodes; i-- > 0;) {
      const rule_tensor *w =
          g->node[i].kind == SYNTH_OP || !pass ? lo_value(p, !side, (uint32_t)i) : NULL;
      if (!w || (pass ? strcmp(g->node[i].op, p->s->graph[side]->node[node].op) != 0 : !other[i]))
        continue;
      if (lo_agree(p, v, w) &&
          !(side == RIGHT && !pass && g->node[i].kind == SYNTH_OP && lo_transparent(g->node[i].op)))
        return (int64_t)i;
    }
  return -1;
}

/* A leaf that was given other values than it should have: nothing else reads it. */
static bool faulty_leaf(const parting *p, int side, int64_t leaf, uint32_t reader) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  bool only = flag && leaf >= 0 && g->node[leaf].kind == SYNTH_PARAMETER &&
              !lo_joined(p, side, (uint32_t)leaf);
  if (only) flag[leaf] = true;
  for (uint32_t i = 0; i < g->n_nodes && only; i++)
    only = i == reader || g->node[i].kind != SYNTH_OP || s->map[side][i].i == EG_NONE ||
           !st_term_uses(g->node[i].call, flag);
  free(flag);
  return only;
}

/* Operators of modules that differ in numbers only: the same place in another layer; or nothing is
 * known of either. */
static bool same_place(const synth_node *a, const synth_node *b) {
  const char *x = a->scope ? a->scope : "",
             *y = b->scope ? b->scope : "", *const digits = "0123456789";
  while (*x && *y) {
    const size_t nx = strspn(x, digits), ny = strspn(y, digits);
    if ((nx > 0) != (ny > 0) || (nx == 0 && *x != *y)) return false;
    x += nx ? nx : 1, y += ny ? ny : 1;
  }
  return a->kind == SYNTH_OP && b->kind == SYNTH_OP && *x == *y &&
         ((!a->scope && !b->scope) ||
          strcmp(a->scope ? a->scope : "", b->scope ? b->scope : "") != 0);
}

/* Whether a change of `node` would spoil a node that has a counterpart and does not lead to the
 * goal: `to_goal` are the goal's ancestors. */
static bool spoils(const parting *p, int side, uint32_t node, const bool *to_goal, bool *flag) {
  const synth_graph *g = p->s->graph[side];
  memset(flag, 0, g->n_nodes + 1);
  flag[node] = true;
  for (uint32_t i = node + 1; i < g->n_nodes; i++) {
    if (g->node[i].kind != SYNTH_OP || p->s->map[side][i].i == EG_NONE ||
        !st_term_uses(g->node[i].call, flag))
      continue;
    if (lo_passes(g, i)) flag[i] = true;
    else if (!to_goal[i] && lo_matched(p, side, i)) return true;
  }
  return false;
}

/* Suspects from `first` on that are right, and that others read rightly, are none. Returns: how
 * many are left. */
static size_t drop_right(const parting *p, int side, uint32_t goal, uint32_t *suspect, size_t n,
                         iso_code *c, iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  bool *to_goal = calloc(g->n_nodes + 1, 1), *flag = calloc(g->n_nodes + 1, 1);
  size_t left = 0;
  if (!to_goal || !flag) *c = nomem(err);
  else {
    to_goal[goal] = true;
    for (size_t i = goal + 1; i-- > 0;)
      if (to_goal[i] && g->node[i].kind == SYNTH_OP) st_term_mark(g->node[i].call, to_goal);
    for (size_t k = 0; k < n; k++)
      if (!lo_matched(p, side, suspect[k]) || !spoils(p, side, suspect[k], to_goal, flag))
        suspect[left++] = suspect[k];
  }
  free(to_goal);
  free(flag);
  return left;
}

/* One side of a divergence before its operators are varied. */
typedef struct place {
  int side;
  bool *own, *wide, *other,
      *lone;      /* the region; what it reads, with it; the other side's region; see find_lone */
  int64_t odd;    /* where it departs from its sibling, -1 */
  uint32_t model; /* the sibling's operator there */
} place;

static void place_free(place *q) {
  free(q->own);
  free(q->wide);
  free(q->other);
  free(q->lone);
}

static iso_code look(const parting *p, int side, bool integers, const int64_t exit[2],
                     const synth_divergence *d, place *q, iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  const uint32_t *own = side == LEFT ? d->left_region : d->right_region,
                 *other = side == LEFT ? d->right_region : d->left_region;
  const size_t n_own = side == LEFT ? d->n_left_region : d->n_right_region,
               n_other = side == LEFT ? d->n_right_region : d->n_left_region;
  bool *stop = calloc(g->n_nodes + 1, 1);
  *q = (place){.side = side,
               .own = around(p, side, own, n_own, 0),
               .wide = around(p, side, own, n_own, 3),
               .other = around(p, !side, other, n_other, 0),
               .odd = -1};
  q->lone = find_lone(p, side, q->own, q->wide);
  iso_code c = stop && q->own && q->wide && q->other && q->lone ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) stop[i] = !q->own[i];
  if (!c && !integers && exit[side] >= 0)
    q->odd = lo_odd_one_out(p->s, side, (uint32_t)exit[side], stop, &q->model);
  free(stop);
  return c;
}

/* The reader of the one operator that departs may be wrong as well: several of its arguments
 * are others. */
static iso_code readers(const parting *p, const place *q, uint32_t *suspect, size_t *count,
                        iso_error *err) {
  const synth_graph *g = p->s->graph[q->side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  if (!flag) return nomem(err);
  flag[q->odd] = true;
  for (uint32_t i = (uint32_t)q->odd + 1; i < g->n_nodes && count[0] < MAX_READERS; i++)
    if (q->own[i] && g->node[i].kind == SYNTH_OP && st_term_uses(g->node[i].call, flag))
      suspect[count[0]++] = i;
  free(flag);
  return ISO_OK;
}

/* The nodes to vary, phase after phase. */
static iso_code find_suspects(const parting *p, const place *q, bool integers, lo_repair_task *task,
                              uint32_t *suspect, iso_error *err) {
  const state *s = p->s;
  const synth_graph *g = s->graph[q->side];
  iso_code c = ISO_OK;
  size_t n = 0, *count = task->n_suspects;
  if (q->odd >= 0) suspect[n++] = (uint32_t)q->odd, count[0] = 1;
  if (task->changes == LO_TWIN) return readers(p, q, suspect, count, err);
  for (uint32_t i = 0; i < g->n_nodes && count[1] < MAX_SUSPECTS; i++)
    if (q->own[i] && (!integers || integer_constant(s, q->side, i))) suspect[n++] = i, count[1]++;
  for (uint32_t i = 0; i < g->n_nodes && count[2] < MAX_SUSPECTS; i++)
    if (q->wide[i] && !q->own[i] && (!integers || integer_constant(s, q->side, i)))
      suspect[n + count[2]++] = i;
  n += count[2] = drop_right(p, q->side, task->goal, suspect + n, count[2], &c, err);
  for (uint32_t i = 0; i < g->n_nodes && !integers; i++)
    if (q->lone[i]) suspect[n++] = i, count[3]++;
  return c;
}

/* How many of the right values have a counterpart. */
static size_t met(const parting *p, const st_run *r) {
  const synth_graph *g = p->s->graph[RIGHT];
  size_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    n += g->node[i].kind == SYNTH_OP && r->value[i].n == 1 && !lo_passes(g, i) &&
         lo_has(p, LEFT, r->value[i].v[0]);
  return n;
}

/* The repaired values of the right graph, into end->next, unless the values carried on there are
 * nearer to the left. A constant computed anew is not rounded as its storage is: its readers take
 * the reference instead, where that was carried on. */
static iso_code carry_repair(const parting *p, const lo_repair_result *r, lo_ending *end,
                             iso_error *err) {
  state *s = p->s;
  const synth_graph *g = s->graph[RIGHT];
  st_run *next = &end->next;
  if (s->rec[s->map[RIGHT][r->node].i].konst && next->value) return ISO_OK;
  bool *again = calloc(g->n_nodes + 1, 1);
  const st_carry with = {.from = &p->run[RIGHT], .again = again, .value = r->instead};
  if (!again) return nomem(err);
  for (size_t i = 0; i < g->n_nodes; i++)
    again[i] = r->instead[i] || (g->node[i].kind == SYNTH_OP && s->map[RIGHT][i].i != EG_NONE &&
                                 st_term_uses(g->node[i].call, again));
  st_run repaired;
  if (!st_run_graph(s, RIGHT, NULL, &(st_run_how){.keep_all = true, .with = &with}, &repaired,
                    err)) {
    if (next->value && met(p, next) > met(p, &repaired)) st_run_free(&repaired);
    else {
      st_run_free(next);
      *next = repaired;
      memcpy(end->touched, again, g->n_nodes);
    }
  }
  free(again);
  return ISO_OK;
}

/* A leaf of the right (read by the node of that name) does not hold what a leaf of the left does.
 */
static const char *other_leaf(const parting *p, uint32_t l, uint32_t r, const char *reader) {
  const char *const left = p->s->graph[LEFT]->node[l].name, *const right =
                                                                p->s->graph[RIGHT]->node[r].name;
  const rule_tensor *x = lo_value(p, LEFT, l), *y = lo_value(p, RIGHT, r);
  const bool one = strcmp(left, right) == 0;
  const char *const words = one ? lo_leaf_changed(p, right, x, y) : lo_rows_moved(p, right, x, y);
  if (words) return words;
  return iso_arena_printf(&p->s->res->arena,
                          "%s does not have the values of %s; first used by \"%s\"", right,
                          one ? "the left's" : left, reader);
}

/* A change on one side. */
static iso_code explain_side(parting *p, const place *q, bool integers, lo_changes changes,
                             synth_divergence *d, lo_ending *end, iso_error *err) {
  state *s = p->s;
  const int side = q->side;
  const synth_graph *g = s->graph[side];
  uint32_t suspect[2 * MAX_SUSPECTS + MAX_LONE + 1];
  int64_t goal[2] = {end->exit[LEFT], end->exit[RIGHT]};
  lo_repair_result r = {0};
  lo_apart_at(p, goal);
  lo_repair_task task = {.side = side,
                         .run = &p->run[side],
                         .other_run = &p->run[!side],
                         .suspect = suspect,
                         .other_region = q->other,
                         .changes = changes,
                         .goal = (uint32_t)goal[side],
                         .want = goal[!side] < 0 ? NULL : lo_value(p, !side, (uint32_t)goal[!side]),
                         .earlier = p->change,
                         .n_earlier = p->n_changes,
                         .settled = p->settled[side]};
  if (!task.want || (changes == LO_TWIN && q->odd < 0)) return ISO_OK;
  iso_code c = find_suspects(p, q, integers, &task, suspect, err);
  if (!c) c = lo_repair(s, &task, &r, err);
  end->repaired = r.found;
  if (!r.found) return c;
  lo_remember(p, &r.change);
  *(side == LEFT ? &d->left : &d->right) = maker(p, side, r.node);
  d->hint =
      iso_arena_printf(&s->res->arena, "on the %s %s", side == LEFT ? "left" : "right", r.what);
  const int64_t partner = r.missing >= 0 || !r.instead[r.node]
                              ? r.missing
                              : counterpart(p, side, r.node, q->other, r.instead[r.node]);
  if (partner >= 0) *(side == LEFT ? &d->right : &d->left) = partner;
  if (side == RIGHT && r.leaf >= 0 && faulty_leaf(p, side, r.operand, r.node)) {
    d->left = r.leaf;
    d->right = r.operand;
    d->hint = other_leaf(p, (uint32_t)r.leaf, (uint32_t)r.operand, g->node[r.node].id);
  }
  if (side == RIGHT && !c) c = carry_repair(p, &r, end, err);
  for (size_t i = 0; i < g->n_nodes; i++) rule_tensor_unref(r.instead[i]);
  free(r.instead);
  return c;
}

/* No change mends it: the operator in which a layer is unlike its sibling. */
static void point_at_odd(const parting *p, const place *q, synth_divergence *d, bool *found) {
  state *s = p->s;
  const synth_graph *g = s->graph[q->side];
  if (*found || q->odd < 0 || p->odd_rank[q->side] ||
      !same_place(&g->node[q->odd], &g->node[q->model]))
    return;
  *found = true;
  *(q->side == LEFT ? &d->left : &d->right) = q->odd;
  d->hint =
      iso_arena_printf(&s->res->arena, "unlike \"%s\" (%s), its counterpart in %s",
                       g->node[q->model].id, g->node[q->model].op,
                       g->node[q->model].scope && *g->node[q->model].scope ? g->node[q->model].scope
                                                                           : "the same graph");
}

/* The change is of one side alone, and the other is the one whose layers are not alike: the fault
 * is there, and the change is its mirror image on this side. */
static void point_at_partner(const parting *p, const place at[2], int side, const int64_t before[2],
                             synth_divergence *d) {
  const place *q = &at[!side];
  int64_t *partner = side == LEFT ? &d->right : &d->left;
  if (*partner == before[!side] && at[side].odd < 0 && q->odd >= 0 &&
      same_place(&p->s->graph[!side]->node[q->odd], &p->s->graph[!side]->node[q->model]))
    *partner = q->odd;
}

iso_code lo_explain_by_repair(parting *p, lo_search what, const bool sides[2], synth_divergence *d,
                              lo_ending *end, iso_error *err) {
  const lo_changes one = what == LO_OPTIONAL_ONE ? LO_OPTIONAL : LO_WITHOUT;
  const bool narrow = what == LO_OPTIONAL_ONE || what == LO_WITHOUT_ONE,
             integers = what == LO_INTEGERS || what == LO_OF_INTEGERS;
  const lo_changes first = narrow     ? one
                           : integers ? LO_ODD
                                      : LO_TWIN,
                   last = narrow                   ? one
                          : what == LO_OF_INTEGERS ? LO_OF_ONE
                                                   : LO_LOOSE;
  place at[2] = {{.odd = -1}, {.odd = -1}};
  iso_code c = ISO_OK;
  bool *found = &end->repaired;
  *found = false;
  for (int side = 0; side < 2 && !c; side++)
    if (sides[side]) c = look(p, side, integers, end->exit, d, &at[side], err);
  for (lo_changes changes = first; changes <= last && !c; changes++) {
    /* Where the layers of one side are alike and those of the other are not, that is where it is.
     */
    if (changes == LO_LOOSE)
      for (int side = RIGHT; side >= LEFT; side--)
        if (at[!side].odd < 0) point_at_odd(p, &at[side], d, found);
    for (int side = RIGHT; side >= LEFT && !c && !*found; side--) {
      if (!sides[side]) continue;
      const int64_t before[2] = {d->left, d->right};
      c = explain_side(p, &at[side], integers, changes, d, end, err);
      if (!c && *found) point_at_partner(p, at, side, before, d);
      if (!c && changes == LO_LOOSE) point_at_odd(p, &at[side], d, found);
    }
  }
  for (int side = 0; side < 2; side++) place_free(&at[side]);
  return c;
}

iso_code lo_explain_mask(parting *p, synth_divergence *d, lo_ending *end, iso_error *err) {
  static const bool both[2] = {true, true};
  const char *const places = d->hint;
  const iso_code c = lo_explain_by_repair(p, LO_OF_INTEGERS, both, d, end, err);
  if (!c && end->repaired) d->hint = iso_arena_printf(&p->s->res->arena, "%s; %s", d->hint, places);
  return c;
}

/* ---- constants ---- */

/* Whether it is tied to the other side, or a view of a node that is. */
static bool table_related(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  for (;;) {
    const rule_term *call = g->node[i].kind == SYNTH_OP ? g->node[i].call : NULL;
    if (lo_joined(p, side, i) || lo_constant_related(p->s, p->s->map[side][i])) return true;
    if (!call || !lo_passes(g, i) || call->n == 0 || call->child[0]->kind != RULE_VAR ||
        g->node[call->child[0]->u.i].kind != SYNTH_OP)
      return false;
    i = (uint32_t)call->child[0]->u.i;
  }
}

static bool odd_table(const parting *p, int side, uint32_t i) {
  const state *s = p->s;
  const synth_node *d = &s->graph[side]->node[i];
  const rule_tensor *v = lo_value(p, side, i);
  return s->rec[s->map[side][i].i].konst && rule_dtype_is_float(d->dtype) && d->n_outputs == 1 &&
         v && v->numel > 1 && !table_related(p, side, i);
}

/* Whether it has no counterpart although its numbers may be known: then the fault may be in its
 * operands. */
static bool lone_table(const parting *p, int side, uint32_t i) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  while (g->node[i].kind == SYNTH_OP && lo_transparent(g->node[i].op) && g->node[i].call->n &&
         g->node[i].call->child[0]->kind == RULE_VAR)
    i = (uint32_t)g->node[i].call->child[0]->u.i; /* positions that are made numbers are whole still
                                                   */
  const synth_node *d = &g->node[i];
  const eg_node e = s->map[side][i];
  const rule_tensor *v = lo_value(p, side, i);
  return e.i != EG_NONE && s->rec[e.i].konst && rule_dtype_is_float(d->dtype) &&
         d->n_outputs == 1 && v && v->numel > 1 && !lo_joined(p, side, i) &&
         !lo_constant_tied(s, e, !side);
}

/* Walks up from a constant through nodes without a counterpart, to the leaf if that has none
 * itself: frequencies of another base. The choice of a table's rows is not followed. */
static int64_t first_lone(const parting *p, int side, int64_t from) {
  const synth_graph *g = p->s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  for (bool more = flag != NULL; more;) {
    more = false;
    if (g->node[from].kind != SYNTH_OP || rule_operator_of(g->node[from].call->u.s)->table) break;
    memset(flag, 0, g->n_nodes);
    st_term_mark(g->node[from].call, flag);
    for (int64_t k = from; k-- > 0 && !more;)
      if (flag[k] && lone_table(p, side, (uint32_t)k)) from = k, more = true;
  }
  free(flag);
  return from;
}

/* A mask that is added. */
static bool hides(const rule_tensor *v) {
  for (int64_t i = 0; i < v->numel; i++)
    if (rule_tensor_get(v, i) < -1e30) return true;
  return false;
}

/* A constant that the region reads as it is and that the other side does not have: the first
 * operator that computes it, -1 if there is none. */
static int64_t odd_constant(const parting *p, int side, const uint32_t *node, size_t n, bool masks,
                            iso_code *c, iso_error *err) {
  state *s = p->s;
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  int64_t found = -1;
  if (!flag) *c = nomem(err);
  bool any = false; /* what is read first: a later one may be the other side's in other words */
  for (size_t i = 0; i < n && flag && !any; i++) {
    if (g->node[node[i]].kind != SYNTH_OP) continue;
    if (s->rec[s->map[side][node[i]].i].konst) flag[node[i]] = true;
    else st_term_mark(g->node[node[i]].call, flag);
    for (size_t k = 0; k < g->n_nodes; k++)
      any |= flag[k] = flag[k] && odd_table(p, side, (uint32_t)k) &&
                       (masks || !hides(lo_value(p, side, (uint32_t)k)));
  }
  for (size_t i = g->n_nodes; flag && i-- > 0;) {
    if (!flag[i] || g->node[i].kind != SYNTH_OP) continue;
    found = (int64_t)i;
    st_term_mark(g->node[i].call, flag);
    for (size_t k = 0; k < i; k++) flag[k] = flag[k] && odd_table(p, side, (uint32_t)k);
  }
  free(flag);
  while (found >= 0) { /* what took a part of a table is not what made it */
    const rule_term *call = g->node[found].call;
    const bool part = lo_transparent(call->u.s) || rule_operator_of(call->u.s)->part;
    if (!part || call->n == 0 || call->child[0]->kind != RULE_VAR ||
        g->node[call->child[0]->u.i].kind != SYNTH_OP)
      break;
    found = call->child[0]->u.i;
  }
  return found < 0 ? found : first_lone(p, side, found);
}

/* Masks last: many ways to hide later positions are one. */
int64_t lo_odd_constant(const parting *p, int side, const uint32_t *node, size_t n, iso_code *c,
                        iso_error *err) {
  const int64_t table = odd_constant(p, side, node, n, false, c, err);
  return table >= 0 || *c ? table : odd_constant(p, side, node, n, true, c, err);
}
