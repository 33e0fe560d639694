/* Where two graphs part: on the draw that shows the outputs different, walk back from them, through
 * nodes without a counterpart of equal value on the other side, to the first operators all of whose
 * arguments have one. Then the reference's value replaces the faulty one and the right graph runs
 * on: a remaining difference is a divergence of its own. Nothing found here enters a rule or a
 * merge. */
#include "localise/alignment.h"
#include "localise/localise.h"
#include "synth/joint/joint.h"
#include "synth/refute/refute.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DIVERGENCES = 64 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- walking back ---- */

static bool visit(parting *p, int side, uint32_t i);

static bool reads_operator(const synth_graph *g, const rule_term *t) {
  return t->n && t->child[0]->kind == RULE_VAR && g->node[t->child[0]->u.i].kind == SYNTH_OP;
}

static bool visit_args(parting *p, int side, const rule_term *t) {
  bool open = false;
  if (t->kind == RULE_VAR) return visit(p, side, (uint32_t)t->u.i);
  for (uint32_t k = 0; k < t->n; k++) open |= visit_args(p, side, t->child[k]);
  return open;
}

/* Returns: whether node i has no counterpart (belongs to the region). */
static bool visit(parting *p, int side, uint32_t i) {
  state *s = p->s;
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  if (p->seen[side][i]) return p->seen[side][i] != 3;
  p->seen[side][i] = 3; /* has a counterpart */
  if (p->sound[side][i]) return false;
  if (n->kind == SYNTH_OP && n->n_outputs == 1 && lo_matched(p, side, i)) return false;
  if (n->kind != SYNTH_OP && lo_leaf_explained(p, side, i)) return false;
  if (s->rec[e.i].konst && (n->dtype == RULE_BOOL || n->n_outputs != 1)) return false;
  p->seen[side][i] = 1;
  /* A constant is where it parts from the other side: what it is computed from need not occur
   * there. */
  const bool end = n->kind != SYNTH_OP ||
                   (s->rec[e.i].konst &&
                    !(lo_passes(s->graph[side], i) && reads_operator(s->graph[side], n->call)));
  if (end || !visit_args(p, side, n->call))
    p->seen[side][i] =
        !end && s->ranks.part[side][i] != PART_WRONG && lo_selected(p, side, i) ? 3 : 2;
  return p->seen[side][i] != 3;
}

static bool same_numbers(const rule_term *a, const rule_term *b) {
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->n == 0 && a->kind != RULE_VAR && !rule_term_eq(a, b)) return false;
  for (uint32_t k = 0; k < a->n; k++)
    if (!same_numbers(a->child[k], b->child[k])) return false;
  return true;
}

/* The ranks do the same, each to its own tensors: no offset of a rank's is in it, which may be none
 * on the first. */
static bool done_alike(const synth_graph *g, const peers *q) {
  const synth_node *a = &g->node[q->node[0]];
  for (uint32_t r = 1; r < q->n && a->kind == SYNTH_OP; r++)
    if (!same_numbers(a->call, g->node[q->node[r]].call)) return false;
  return true;
}

/* Other ranks hold their part there, or have a counterpart, and this one does not. */
static bool odd_rank(const parting *p, int side, uint32_t i) {
  const state *s = p->s;
  if (s->ranks.part[side][i] == PART_WRONG) return true;
  for (size_t k = 0; k < s->ranks.n_peers; k++) {
    const peers *q = &s->ranks.peers[k];
    bool own = false, right = q->side == side && !q->pieces && done_alike(s->graph[side], q);
    for (uint32_t r = 0; r < q->n && right; r++) {
      own |= q->node[r] == i;
      right = q->node[r] == i || p->seen[side][q->node[r]] == 3;
    }
    if (own && right) return true;
  }
  return false;
}

/* A product of a tensor and a weight that both sides have, where the other side lacks the product:
 * the weight is not the one that it is taken for. Other roots may be steps of a computation that
 * the other side writes in fewer. */
static bool lacks_product(const parting *p, int side, uint32_t i) {
  const synth_graph *g = p->s->graph[side];
  const rule_term *call = g->node[i].kind == SYNTH_OP ? g->node[i].call : NULL;
  if (!call || call->n < 2 || call->child[1]->kind != RULE_VAR || !lo_product(p, side, i))
    return false;
  uint32_t w = (uint32_t)call->child[1]->u.i;
  while (g->node[w].kind == SYNTH_OP && lo_passes(g, w) && g->node[w].call->n &&
         g->node[w].call->child[0]->kind == RULE_VAR)
    w = (uint32_t)g->node[w].call->child[0]->u.i;
  return g->node[w].kind == SYNTH_PARAMETER;
}

/* ---- the first place ---- */

typedef struct stretch {
  bool *aside; /* by node: only passes on what both sides have, or is the same whatever is given: it
                  stands where it is read */
  uint32_t *place; /* where that is; of others, the node itself */
  uint32_t *last;  /* reader within the region */
} stretch;

/* Every argument of the region that a term has is aside. */
static bool reads_aside(const parting *p, int side, const rule_term *t, const bool *aside) {
  bool all = t->kind != RULE_VAR || !lo_in_region(p, side, (uint32_t)t->u.i) || aside[t->u.i];
  for (uint32_t k = 0; k < t->n && all; k++) all = reads_aside(p, side, t->child[k], aside);
  return all;
}

static void put_before(const rule_term *t, uint32_t at, const stretch *x) {
  if (t->kind == RULE_VAR && x->aside[t->u.i] && at < x->place[t->u.i]) x->place[t->u.i] = at;
  for (uint32_t k = 0; k < t->n; k++) put_before(t->child[k], at, x);
}

static void note_last(const rule_term *t, uint32_t by, uint32_t *last) {
  if (t->kind == RULE_VAR) last[t->u.i] = by;
  for (uint32_t k = 0; k < t->n; k++) note_last(t->child[k], by, last);
}

static void find_places(const parting *p, int side, stretch *x) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    x->aside[i] =
        lo_in_region(p, side, i) && (n->kind != SYNTH_OP || p->s->rec[p->s->map[side][i].i].konst ||
                                     (lo_passes(g, i) && reads_aside(p, side, n->call, x->aside)));
    x->place[i] = x->aside[i] ? UINT32_MAX : i;
  }
  for (uint32_t i = (uint32_t)g->n_nodes; i-- > 0;)
    if (lo_in_region(p, side, i) && g->node[i].kind == SYNTH_OP)
      put_before(g->node[i].call, x->place[i], x);
}

/* Where the roots end that have to do with the first one: there, all that was computed in the
 * region goes through one tensor. Roots behind it are faults of their own. */
static uint32_t first_stretch(const parting *p, int side, stretch *x) {
  const synth_graph *g = p->s->graph[side];
  uint32_t first = UINT32_MAX, furthest = 0;
  find_places(p, side, x);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (!lo_in_region(p, side, i)) continue;
    if (g->node[i].kind == SYNTH_OP) note_last(g->node[i].call, i, x->last);
    if (p->seen[side][i] == 2 && x->place[i] < first) first = x->place[i];
  }
  for (uint32_t i = first; i < g->n_nodes; i++) {
    if (!lo_in_region(p, side, i) || x->aside[i]) continue;
    if (x->last[i] > furthest) furthest = x->last[i];
    if (furthest <= i + 1 || i + 1 >= g->n_nodes) return i;
  }
  return UINT32_MAX;
}

/* The first root read by an operator that other ranks have right, and this one does not; -1:
 * none. */
static int64_t read_by_odd(const parting *p, int side) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (p->s->ranks.part[side][i] != PART_WRONG || !lo_in_region(p, side, i) ||
        g->node[i].kind != SYNTH_OP)
      continue;
    for (uint32_t k = 0; k < g->node[i].call->n; k++) {
      const rule_term *t = g->node[i].call->child[k];
      if (t->kind == RULE_VAR && p->seen[side][t->u.i] == 2) return t->u.i;
    }
  }
  return -1;
}

/* The earliest root of the first stretch: first one that other ranks have right, then an operand of
 * such a one, a product, any; a transparent one, or a constant, only where nothing else is
 * there. */
static int64_t earliest(parting *p, int side, const uint32_t *place, uint32_t end) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  p->odd_rank[side] = false;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (p->seen[side][i] == 2 && !(g->node[i].kind == SYNTH_OP && lo_passes(g, i)) &&
        odd_rank(p, side, i)) {
      p->odd_rank[side] = true;
      return i;
    }
  const int64_t read = read_by_odd(p, side);
  if (read >= 0) return read;
  for (int strict = 3; strict >= 0; strict--) {
    int64_t best = -1;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      if (p->seen[side][i] != 2 || place[i] > end) continue;
      const bool leaf = g->node[i].kind != SYNTH_OP;
      if (strict == 3 && !leaf && !lacks_product(p, side, i)) continue;
      if (strict >= 1 && !leaf && lo_passes(g, i)) continue;
      if (strict >= 2 && s->rec[s->map[side][i].i].konst) continue;
      if (best < 0 || place[i] < place[best]) best = i;
    }
    if (best >= 0 && !(strict == 3 && g->node[best].kind != SYNTH_OP)) return best;
  }
  return -1;
}

static iso_code pick(parting *p, int side, int64_t *root, iso_error *err) {
  const size_t n = p->s->graph[side]->n_nodes + 1;
  stretch x = {.aside = calloc(n, 1),
               .place = calloc(n, sizeof *x.place),
               .last = calloc(n, sizeof *x.last)};
  const iso_code c = x.aside && x.place && x.last ? ISO_OK : nomem(err);
  if (!c) {
    const uint32_t end = first_stretch(p, side, &x);
    *root = earliest(p, side, x.place, end);
  }
  free(x.aside);
  free(x.place);
  free(x.last);
  return c;
}

/* ---- all of them ---- */

/* Region nodes between the root and the exit (to the outputs where there is none). */
static uint32_t *region(const parting *p, int side, int64_t exit, size_t *n) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  const uint8_t *seen = p->seen[side];
  uint32_t *r = iso_arena_alloc(&s->res->arena, (g->n_nodes + 1) * sizeof *r);
  bool *flag = calloc(g->n_nodes + 1, 1);
  *n = 0;
  if (!r || !flag) {
    free(flag);
    return NULL;
  }
  if (exit < 0) memset(flag, 1, g->n_nodes);
  else {
    flag[exit] = true;
    for (size_t i = (size_t)exit + 1; i-- > 0;)
      if (flag[i] && (seen[i] == 1 || seen[i] == 2) && g->node[i].kind == SYNTH_OP)
        st_term_mark(g->node[i].call, flag);
  }
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (flag[i] && (seen[i] == 1 || seen[i] == 2)) r[(*n)++] = i;
  free(flag);
  return r;
}

/* The first reader of a leaf does more than put it in: without the leaf something would be left of
 * it. */
static bool does_more(const state *s, int side, uint32_t leaf) {
  const synth_node *n = &s->graph[side]->node[lo_consumer(s, side, leaf)];
  if (n->kind != SYNTH_OP) return false;
  const rule_arithmetic step = rule_operator_of(n->op)->arithmetic;
  return step != RULE_ARITHMETIC_MUL && step != RULE_ARITHMETIC_ADD &&
         step != RULE_ARITHMETIC_SUB && step != RULE_ARITHMETIC_DIV;
}

static bool reads_value(const parting *p, int side, const rule_term *t, const rule_tensor *v) {
  if (t->kind == RULE_VAR) {
    const uint32_t i = (uint32_t)t->u.i;
    const synth_node *n = &p->s->graph[side]->node[i];
    const rule_tensor *x = lo_value(p, side, i);
    return (x && lo_agree(p, x, v)) || (n->kind == SYNTH_OP && lo_passes(p->s->graph[side], i) &&
                                        reads_value(p, side, n->call, v));
  }
  for (uint32_t k = 0; k < t->n; k++)
    if (reads_value(p, side, t->child[k], v)) return true;
  return false;
}

/* The reader of a leaf that only `side` has is missing on the other side: its other operand is read
 * there by another operator. Names it. */
static bool missing_there(const parting *p, int side, const int64_t root[2], synth_divergence *d) {
  const state *s = p->s;
  const int64_t at = lo_consumer(s, side, (uint32_t)root[side]);
  const synth_node *n = &s->graph[side]->node[at], *o = &s->graph[!side]->node[root[!side]];
  if (n->kind != SYNTH_OP || strcmp(n->op, o->op) == 0 || n->call->n == 0 ||
      n->call->child[0]->kind != RULE_VAR || n->call->child[0]->u.i == root[side])
    return false;
  const rule_tensor *v = lo_value(p, side, (uint32_t)n->call->child[0]->u.i),
                    *out = lo_value(p, side, (uint32_t)at);
  if (!v || !out || !rule_shape_eq(&v->shape, &out->shape) || !reads_value(p, !side, o->call, v))
    return false;
  *(side == LEFT ? &d->left : &d->right) = at;
  d->hint =
      iso_arena_printf(&s->res->arena, "the %s has no %s here: no leaf there has the values of %s",
                       side == LEFT ? "right" : "left", lo_short_name(&s->res->arena, n->op),
                       s->graph[side]->node[root[side]].name);
  return true;
}

/* One side reads another tensor where its region ends: which. */
static void put_there(const parting *p, const int64_t exit[2], synth_divergence *d) {
  const int side = lo_in_region(p, LEFT, (uint32_t)exit[LEFT]) ? RIGHT : LEFT;
  d->left = exit[LEFT];
  d->right = exit[RIGHT];
  if ((d->hint = lo_without_step(p, side, exit))) return;
  d->hint = iso_arena_printf(
      &p->s->res->arena, "what reads \"%s\" on the %s would have to read what \"%s\" is on the %s",
      p->s->graph[side]->node[exit[side]].id, side == LEFT ? "left" : "right",
      p->s->graph[!side]->node[exit[!side]].id, side == LEFT ? "right" : "left");
}

/* On the witness: a decision may be wrong and come out as it should there. */
static bool shows(const parting *p, const int64_t end[2]) {
  const rule_tensor *l = lo_value(p, LEFT, (uint32_t)end[LEFT]),
                    *r = lo_value(p, RIGHT, (uint32_t)end[RIGHT]);
  return !l || !r || !p->s->oracle->compare(p->s->oracle->ctx, l, r, p->s->o->rel_tol).equal;
}

/* One divergence while it is described. */
typedef struct description {
  const int64_t *root; /* by side: where the region begins */
  synth_divergence *d;
  lo_ending end;
  bool moved;          /* one side reads another tensor where its region ends: d is there now */
  bool leaf[2];        /* the root is a leaf */
  bool wired;          /* told already: the roots are wired otherwise */
  bool mask;           /* by no more than how many places another mask hides */
  bool plain;          /* told already: by a leaf, by an attribute, or because it moved */
  int64_t constant[2]; /* the first operator of one that the other side does not have; -1: none */
} description;

/* Returns: whether that explains the difference of the roots. */
static bool name_wiring(const parting *p, const int64_t root[2], synth_divergence *d, bool *mask) {
  const synth_node *l = &p->s->graph[LEFT]->node[root[LEFT]],
                   *r = &p->s->graph[RIGHT]->node[root[RIGHT]];
  const char *words = lo_attribute_apart(p, l, r) < 0 ? lo_wiring_hint(p, root, d, mask) : NULL;
  if (words) d->hint = words;
  return words != NULL;
}

/* How far the roots differ, where the regions end, and the nodes in them. */
static iso_code find_regions(parting *p, description *x, iso_error *err) {
  synth_divergence *d = x->d;
  const int64_t *root = x->root, *exit = x->end.exit;
  d->hint = lo_hint(p, d, lo_value(p, LEFT, (uint32_t)root[LEFT]),
                    lo_value(p, RIGHT, (uint32_t)root[RIGHT]));
  iso_code c = lo_measure(p, root, d, err);
  if (!c) c = lo_mend_ranks(p, d, &x->end, err);
  p->mended |= x->end.repaired;
  if (!c && !p->gap && !x->end.repaired) c = lo_leave(p, root, &x->end, err);
  x->moved = !x->end.repaired && exit[LEFT] >= 0 &&
             !(lo_in_region(p, LEFT, (uint32_t)exit[LEFT]) &&
               lo_in_region(p, RIGHT, (uint32_t)exit[RIGHT]));
  if (x->moved) put_there(p, exit, d);
  if (!x->end.repaired) x->wired = name_wiring(p, root, d, &x->mask);
  if (!c && exit[LEFT] >= 0 && (x->moved || x->end.repaired || d->max_abs == 0))
    c = lo_measure(p, exit, d, err);
  if (!c && !(d->left_region = region(p, LEFT, exit[LEFT], &d->n_left_region))) c = nomem(err);
  if (!c && !(d->right_region = region(p, RIGHT, exit[RIGHT], &d->n_right_region))) c = nomem(err);
  return c;
}

/* Of the roots: leaves, one attribute apart, or made of constants that only one side has. */
static iso_code look_at_roots(parting *p, description *x, iso_error *err) {
  const state *s = p->s;
  const synth_divergence *d = x->d;
  const synth_node *l = &s->graph[LEFT]->node[x->root[LEFT]],
                   *r = &s->graph[RIGHT]->node[x->root[RIGHT]];
  /* A leaf that only one side lacks may be of an operator that the other side does without. */
  x->leaf[LEFT] = l->kind != SYNTH_OP;
  x->leaf[RIGHT] = r->kind != SYNTH_OP;
  const bool told = x->leaf[LEFT] || x->leaf[RIGHT] || x->moved;
  const int64_t attribute = told ? -1 : lo_attribute_apart(p, l, r);
  x->plain = told || attribute >= 0;
  if (attribute >= 0)
    lo_remember(p, &(lo_change){.side = RIGHT,
                                .op = r->call->u.s,
                                .k = (uint32_t)attribute,
                                .from = r->call->child[attribute],
                                .to = l->call->child[attribute]});
  iso_code c = ISO_OK;
  if (p->gap || x->plain) return c;
  x->constant[LEFT] = lo_odd_constant(p, LEFT, d->left_region, d->n_left_region, &c, err);
  x->constant[RIGHT] = lo_odd_constant(p, RIGHT, d->right_region, d->n_right_region, &c, err);
  return c;
}

/* Either side has a constant that the other does not have: the two are the divergence. */
static void name_constants(const parting *p, const int64_t constant[2], synth_divergence *d) {
  const state *s = p->s;
  const rule_tensor *a = lo_value(p, LEFT, (uint32_t)constant[LEFT]),
                    *b = lo_value(p, RIGHT, (uint32_t)constant[RIGHT]);
  d->left = constant[LEFT];
  d->right = constant[RIGHT];
  if (!(d->hint = a && b ? lo_value_hint(p, a, b) : NULL))
    d->hint = iso_arena_printf(&s->res->arena,
                               "constants differ: the left has none with the values of \"%s\", "
                               "the right none with those of \"%s\"",
                               s->graph[RIGHT]->node[constant[RIGHT]].id,
                               s->graph[LEFT]->node[constant[LEFT]].id);
}

/* The explanation, the likeliest kind first: an operator that one side does without, leaves that
 * are exchanged, an optional attribute, the index of a table, its contents, any change. */
static iso_code explain(parting *p, description *x, iso_error *err) {
  const int64_t *root = x->root, *constant = x->constant, *exit = x->end.exit;
  const bool *leaf = x->leaf, both_ops = !leaf[LEFT] && !leaf[RIGHT];
  const int with = leaf[LEFT] ? LEFT : RIGHT;
  bool *repaired = &x->end.repaired;
  iso_code c = ISO_OK;
  if (x->wired) return x->mask ? lo_explain_mask(p, x->d, &x->end, err) : c;
  if (!p->gap && !x->moved && leaf[LEFT] != leaf[RIGHT] &&
      does_more(p->s, with, (uint32_t)root[with])) {
    c = lo_explain_by_repair(p, LO_WITHOUT_ONE, leaf, x->d, &x->end, err);
    if (!c && !*repaired) (void)missing_there(p, with, root, x->d);
  }
  /* A table that one side computes may be an attribute of the other's: a window, slopes. */
  const bool lone[2] = {constant[LEFT] < 0 && constant[RIGHT] >= 0,
                        constant[RIGHT] < 0 && constant[LEFT] >= 0};
  const bool exchanged =
      !c && !p->gap && !*repaired && !x->moved && both_ops && lo_exchanged_leaves(p, root, x->d);
  if (!c && !*repaired && !exchanged && !x->moved)
    c = lo_explain_by_repair(p, LO_OPTIONAL_ONE, lone, x->d, &x->end, err);
  /* The index of a table comes before its contents. */
  const bool tables[2] = {constant[LEFT] >= 0, constant[RIGHT] >= 0};
  if (!c && !*repaired && !exchanged && !x->moved)
    c = lo_explain_by_repair(p, LO_INTEGERS, tables, x->d, &x->end, err);
  if (*repaired) p->rounded |= both_ops;
  else if (!exchanged && tables[LEFT] && tables[RIGHT]) name_constants(p, constant, x->d);
  else if (!c && !p->gap && (!x->plain || x->moved) && !exchanged) {
    const bool read[2] = {!x->moved || !lo_in_region(p, LEFT, (uint32_t)exit[LEFT]),
                          !x->moved || !lo_in_region(p, RIGHT, (uint32_t)exit[RIGHT])};
    c = lo_explain_by_repair(p, LO_ANY, read, x->d, &x->end, err);
  }
  return c;
}

/* The right graph goes on with the reference's values from where the regions end. In `more`:
 * whether some output differs still. */
static iso_code go_on(parting *p, lo_ending *end, bool *more, iso_error *err) {
  const size_t n_right = p->s->graph[RIGHT]->n_nodes;
  for (size_t i = 0; i < n_right; i++) p->changed[i] |= end->touched[i];
  p->changed[n_right] = true;
  for (int side = 0; side < 2; side++)
    if (end->exit[side] >= 0) p->settled[side][end->exit[side]] = true;
  st_run_free(&p->run[RIGHT]);
  p->run[RIGHT] = end->next;
  end->next = (st_run){0};
  iso_code c = lo_index(p, RIGHT, err);
  if (!c) c = st_mark_parts(p->s, p->run, err);
  *more = !c && lo_any_output_apart(p);
  return c;
}

static iso_code describe(parting *p, const int64_t root[2], synth_divergence *d, bool *more,
                         iso_error *err) {
  const state *s = p->s;
  description x = {.root = root, .d = d, .end = {.exit = {-1, -1}}, .constant = {-1, -1}};
  x.end.touched = calloc(s->graph[RIGHT]->n_nodes + 1, 1);
  iso_code c = x.end.touched ? find_regions(p, &x, err) : nomem(err);
  if (!c && !x.end.repaired) c = look_at_roots(p, &x, err);
  if (!c && !x.end.repaired) c = explain(p, &x, err);
  if (!c && !x.end.repaired && !d->hint) c = lo_left_out(p, root, d, err);
  if (!c && !p->gap && s->o->keep_witness && !s->res->cut) {
    int64_t end[2] = {x.end.exit[LEFT], x.end.exit[RIGHT]};
    lo_apart_at(p, end);
    if (end[LEFT] >= 0 && shows(p, end)) c = lo_cut(p->s, p->run, end, d, err);
  }
  *more = false;
  if (!c && x.end.next.value) c = go_on(p, &x.end, more, err);
  st_run_free(&x.end.next);
  free(x.end.touched);
  return c;
}

static bool same_hint(const synth_divergence *a, const synth_divergence *b) {
  return a->hint && b->hint && strcmp(a->hint, b->hint) == 0;
}

/* One node, or one constant that is computed twice. */
static bool same_step(const state *s, int side, int64_t a, int64_t b) {
  return a == b || (s->map[side][a].i == s->map[side][b].i && s->map[side][a].i != EG_NONE &&
                    s->rec[s->map[side][a].i].konst);
}

/* A leaf or a constant: read in several places it is one. */
static bool same_for_all(const state *s, int64_t left) {
  return s->graph[LEFT]->node[left].kind != SYNTH_OP || s->rec[s->map[LEFT][left].i].konst;
}

static void walk(parting *p, int side) {
  const synth_graph *g = p->s->graph[side];
  memset(p->seen[side], 0, g->n_nodes + 1);
  for (size_t o = 0; o < p->s->graph[LEFT]->n_outputs; o++)
    if (lo_output_apart(p, o)) visit(p, side, g->output[side == LEFT ? o : p->s->right_of[o]].node);
}

static iso_code find_one(parting *p, synth_divergence *d, bool *more, iso_error *err) {
  state *s = p->s;
  int64_t root[2], end[2] = {-1, -1};
  *more = false;
  for (int side = 0; side < 2; side++) {
    memset(p->sound[side], 0, s->graph[side]->n_nodes + 1);
    walk(p, side);
    bool sound = false;
    iso_code c = p->gap ? ISO_OK : lo_find_sound(p, side, &sound, err);
    if (c) return c;
    if (sound) walk(p, side);
    c = pick(p, side, &root[side], err);
    if (c) return c;
  }
  if (root[LEFT] < 0 && root[RIGHT] < 0 && p->changed[s->graph[RIGHT]->n_nodes]) return ISO_OK;
  lo_apart_at(p, end); /* where nothing was found, an output itself is another tensor */
  for (int side = 0; side < 2; side++)
    if (root[side] < 0) root[side] = end[side] < 0 ? s->graph[side]->output[0].node : end[side];
  const char *kept;
  iso_code c = lo_kept_output(p, root, &kept, err);
  *d = (synth_divergence){.left = root[LEFT], .right = root[RIGHT], .index = -1, .at = {-1, -1}};
  if (!c) c = describe(p, root, d, more, err);
  if (kept) d->hint = kept;
  size_t known =
      s->res->n_divergences; /* one faulty operator that several places read: the earlier one */
  for (size_t i = known; i-- > 0;)
    if (same_step(s, RIGHT, d->right, s->res->divergence[i].right) ||
        (same_step(s, LEFT, d->left, s->res->divergence[i].left) &&
         (same_hint(d, &s->res->divergence[i]) || same_for_all(s, d->left))))
      known = i;
  if (s->res->cut && s->res->cut->divergence == s->res->n_divergences)
    s->res->cut->divergence = known;
  if (known == s->res->n_divergences) s->res->n_divergences++;
  return c;
}

static size_t run_of_both(const parting *p) {
  size_t run = 0;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = p->s->graph[side];
    for (uint32_t i = 0; i < g->n_nodes; i++)
      if (g->node[i].kind == SYNTH_OP && p->s->map[side][i].i != EG_NONE)
        run += st_work(g->node[i].call, &p->run[side], i);
  }
  return run;
}

/* The words about ranks go to the divergence at that node, else to the first. */
static iso_code add_words(const state *s, synth_divergence *d, int64_t node, const char *words,
                          iso_error *err) {
  size_t at = 0;
  for (size_t i = s->res->n_divergences; i-- > 0;)
    if (d[i].left == node) at = i;
  d[at].hint = d[at].hint ? iso_arena_printf(&s->res->arena, "%s; %s", d[at].hint, words) : words;
  return d[at].hint ? ISO_OK : nomem(err);
}

static iso_code lo_divergences(state *s, iso_error *err) {
  /* The budget of looking for explanations: as much as a few runs of both graphs, which the
   * comparison took anyhow; for small graphs little beside the program's start. */
  enum { AT_LEAST = 80000, RUNS = 6 };
  parting p = {.s = s};
  iso_code c = ISO_OK;
  synth_divergence *d = iso_arena_alloc(&s->res->arena, MAX_DIVERGENCES * sizeof *d);
  for (int side = 0; side < 2; side++)
    if (!(p.seen[side] = calloc(s->graph[side]->n_nodes + 1, 1)) ||
        !(p.settled[side] = calloc(s->graph[side]->n_nodes + 1, 1)) ||
        !(p.sound[side] = calloc(s->graph[side]->n_nodes + 1, 1)))
      c = nomem(err);
  if (!d || !(p.changed = calloc(s->graph[RIGHT]->n_nodes + 1, 1))) c = nomem(err);
  p.gap = s->res->verdict == SYNTH_UNDECIDED;
  if (!c && !s->witness.run[LEFT].value) c = st_run_draw(s, 0, err);
  p.run[LEFT] = s->witness.run[LEFT];
  p.run[RIGHT] = s->witness.run[RIGHT];
  s->witness.run[LEFT] = s->witness.run[RIGHT] = (st_run){0};
  if (!c) c = lo_index(&p, LEFT, err);
  if (!c) c = lo_index(&p, RIGHT, err);
  if (!c) c = lo_find_slack(&p, err);
  if (!c) c = st_mark_parts(s, p.run, err);
  int64_t node = -1;
  const char *words = "";
  if (!c && !p.gap) c = lo_rank_words(&p, &node, &words, err);
  if (!c) p.a_run = run_of_both(&p);
  s->work_left = AT_LEAST + RUNS * p.a_run;
  bool more = s->graph[LEFT]->n_outputs > 0;
  s->res->divergence = d;
  for (size_t i = 0; i < MAX_DIVERGENCES && more && !c; i++)
    c = find_one(&p, &d[s->res->n_divergences], &more, err);
  if (!c && *words && !p.mended && s->res->n_divergences) c = add_words(s, d, node, words, err);
  for (int side = 0; side < 2; side++) {
    st_run_free(&p.run[side]);
    free(p.by_size[side]);
    free(p.seen[side]);
    free(p.settled[side]);
    free(p.sound[side]);
  }
  free(p.changed);
  free(p.slack);
  return c;
}

const synth_localiser *localise_parts(void) {
  static const synth_localiser parts = {.divergences = lo_divergences,
                                        .cut_failing = lo_cut_failing};
  return &parts;
}
