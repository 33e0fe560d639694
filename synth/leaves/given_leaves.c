/* Several lines about leaves, taken together.
 *
 * Lines that share leaves make a family. Its elements are numbered, and the lines say which are
 * one. Where the left leaves are free, and every right leaf is made of them, the right ones are
 * written in terms of the left: replicas, other cuts and overlaps come out as layouts; elements
 * that the lines leave open are looked up by value; and leaves without a line can be related to the
 * same left leaves. Else, where each left leaf has one line, the left leaf is written as that line
 * says. Leaves that fit neither way keep their captured values: drawn freely they would violate a
 * line. */
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct family {
  state *s;
  const size_t *root;         /* by leaf: left nodes, then right ones */
  size_t of, n_left;          /* the family's root; nodes of the left graph */
  int64_t n, n_left_elements; /* elements; those of left leaves come first */
  int64_t *up;                /* by element: equal ones, the smallest number at the root */
  rule_tensor **number[2];    /* by node: the numbers of its elements */
} family;

/* ---- which leaves belong together ---- */

static size_t some_leaf(const rule_term *t) {
  while (t->kind != RULE_VAR) {
    uint32_t i = 0;
    while (t->child[i]->kind != RULE_VAR && t->child[i]->kind != RULE_OP &&
           t->child[i]->kind != RULE_LIST)
      i++;
    t = t->child[i];
  }
  return (size_t)t->u.i;
}

static bool says(const synth_given *g) { return !g->forbid && g->term; }

/* A leaf that the line is about, counted as in family.root. */
static size_t subject(const synth_given *g, size_t n_left) {
  return g->equals ? some_leaf(g->equals) + n_left : g->left;
}

/* ---- which elements are one ---- */

static int64_t find_element(int64_t *up, int64_t i) {
  while (up[i] != i) i = up[i] = up[up[i]];
  return i;
}

static void unite_elements(int64_t *up, int64_t a, int64_t b) {
  a = find_element(up, a);
  b = find_element(up, b);
  if (a < b) up[b] = a;
  else up[a] = b;
}

static iso_code number_leaves(family *f, iso_error *err) {
  state *s = f->s;
  iso_code c = ISO_OK;
  f->n = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const size_t leaf = side == LEFT ? i : f->n_left + i;
      if (f->root[leaf] != f->of) continue;
      rule_tensor *t = NULL;
      if ((c = rule_tensor_new(RULE_I64, &s->graph[side]->node[i].shape, &t, err))) break;
      f->number[side][i] = t;
      for (int64_t e = 0; e < t->numel; e++) rule_tensor_set(t, e, (double)(f->n + e));
      f->n += t->numel;
    }
  if (!c && !(f->up = malloc(((size_t)f->n + 1) * sizeof *f->up))) c = nomem(err);
  for (int64_t e = 0; e < f->n && !c; e++) f->up[e] = e;
  return c;
}

static iso_code take_line(family *f, const synth_given *g, iso_error *err) {
  rule_tensor *a = NULL, *b = NULL;
  iso_code c = st_term_over(f->s, g->term, f->number[RIGHT], &b, err);
  if (!c && g->equals) c = st_term_over(f->s, g->equals, f->number[RIGHT], &a, err);
  else if (!c) a = rule_tensor_ref(f->number[LEFT][g->left]);
  for (int64_t e = 0; !c && e < a->numel; e++)
    unite_elements(f->up, rule_tensor_get_int(a, e), rule_tensor_get_int(b, e));
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  return c;
}

/* Whether no two elements of the left are one. */
static bool left_is_free(const family *f) {
  for (int64_t e = 0; e < f->n_left_elements; e++)
    if (find_element(f->up, e) != e) return false;
  return true;
}

/* Every number of a right leaf becomes the smallest of those that are one. Returns: whether each is
 * one of the left. */
static bool settle_numbers(const family *f, rule_tensor *t) {
  bool covered = true;
  for (int64_t e = 0; e < t->numel; e++) {
    const int64_t x = find_element(f->up, rule_tensor_get_int(t, e));
    rule_tensor_set(t, e, (double)x);
    covered &= x < f->n_left_elements;
  }
  return covered;
}

/* ---- what comes of a family ---- */

/* Relates a right leaf, part of which lines speak of, to the left leaves by value, unless that
 * contradicts a line. */
static iso_code by_value(family *f, size_t i, synth_relation *out, iso_error *err) {
  state *s = f->s;
  const synth_graph *l = s->graph[LEFT];
  const rule_tensor *t = f->number[RIGHT][i];
  rule_tensor **value = calloc(l->n_nodes + 1, sizeof *value), *said = NULL;
  synth_index *x = NULL;
  for (size_t k = 0; value && k < l->n_nodes; k++)
    if (f->number[LEFT][k]) value[k] = l->node[k].value[0];
  iso_code c = value ? synth_index_new(value, NULL, l->n_nodes, s->schemas, &x, err) : nomem(err);
  if (!c) c = synth_relate(x, s->graph[RIGHT]->node[i].value[0], NULL, &s->arena, out, err);
  if (!c && s->graph[RIGHT]->node[i].kind == SYNTH_INPUT)
    c = st_hold_on_sets(s, RIGHT, i, out, err);
  if (!c && out->term) c = st_term_over(s, out->term, f->number[LEFT], &said, err);
  for (int64_t e = 0; said && !c && e < t->numel && out->term; e++) {
    const int64_t want = rule_tensor_get_int(t, e);
    if (want < f->n_left_elements && want != rule_tensor_get_int(said, e)) out->term = NULL;
  }
  rule_tensor_unref(said);
  synth_index_free(x);
  free(value);
  return c;
}

/* Each right leaf as a layout of left ones. Returns: in `found` whether all of them are. */
static iso_code right_of_left(family *f, synth_relation *of, bool *found, iso_error *err) {
  state *s = f->s;
  const size_t n_l = s->graph[LEFT]->n_nodes, n_r = s->graph[RIGHT]->n_nodes;
  synth_index *x = NULL;
  synth_relation *mine = calloc(n_r + 1, sizeof *mine);
  iso_code c = mine ? synth_index_new(f->number[LEFT], NULL, n_l, s->schemas, &x, err) : nomem(err);
  *found = true;
  for (size_t i = 0; i < n_r && !c && *found; i++) {
    if (!f->number[RIGHT][i]) continue;
    if (settle_numbers(f, f->number[RIGHT][i]))
      c = synth_relate(x, f->number[RIGHT][i], NULL, &s->arena, &mine[i], err);
    else c = by_value(f, i, &mine[i], err);
    *found = mine[i].term != NULL;
  }
  for (size_t i = 0; i < n_r && !c && *found; i++) {
    if (!mine[i].term) continue;
    of[i] = mine[i];
    s->leaves.settled[RIGHT][i] = s->leaves.written[RIGHT][i] = true;
  }
  synth_index_free(x);
  free(mine);
  return c;
}

/* Whether each left leaf has one line, and no line is about right leaves alone. */
static bool one_line_each(const family *f) {
  const synth_options *o = f->s->o;
  for (size_t k = 0; k < o->n_given; k++) {
    const synth_given *g = &o->given[k];
    if (!says(g) || f->root[subject(g, f->n_left)] != f->of) continue;
    if (g->equals) return false;
    for (size_t j = 0; j < k; j++)
      if (says(&o->given[j]) && !o->given[j].equals && o->given[j].left == g->left) return false;
  }
  return true;
}

static void left_as_said(family *f, bool keep) {
  state *s = f->s;
  for (size_t k = 0; k < s->o->n_given; k++) {
    const synth_given *g = &s->o->given[k];
    if (!says(g) || g->equals || f->root[g->left] != f->of) continue;
    s->leaves.settled[LEFT][g->left] = s->leaves.written[LEFT][g->left] = true;
    const uint32_t whole = st_whole_leaf(s, g);
    if (whole != UINT32_MAX) s->leaves.settled[RIGHT][whole] = true;
  }
  for (int side = 0; side < 2 && keep; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (f->number[side][i]) s->leaves.kept[side][i] = true;
}

static iso_code take_family(family *f, synth_relation *of, iso_error *err) {
  state *s = f->s;
  iso_code c = number_leaves(f, err);
  f->n_left_elements = 0;
  for (size_t i = 0; i < s->graph[LEFT]->n_nodes; i++)
    if (f->number[LEFT][i]) f->n_left_elements += f->number[LEFT][i]->numel;
  for (size_t k = 0; k < s->o->n_given && !c; k++)
    if (says(&s->o->given[k]) && f->root[subject(&s->o->given[k], f->n_left)] == f->of)
      c = take_line(f, &s->o->given[k], err);
  bool found = false;
  if (!c && left_is_free(f)) c = right_of_left(f, of, &found, err);
  if (!c && !found) left_as_said(f, !one_line_each(f));
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      rule_tensor_unref(f->number[side][i]);
      f->number[side][i] = NULL;
    }
  free(f->up);
  f->up = NULL;
  return c;
}

iso_code st_take_families(state *s, synth_relation *of, iso_error *err) {
  const size_t n_l = s->graph[LEFT]->n_nodes, n = n_l + s->graph[RIGHT]->n_nodes;
  size_t *up = malloc((n + 1) * sizeof *up);
  bool *done = calloc(n + 1, 1);
  family f = {
      .s = s,
      .n_left = n_l,
      .number = {calloc(n_l + 1, sizeof **f.number), calloc(n - n_l + 1, sizeof **f.number)}};
  iso_code c = up && done && f.number[0] && f.number[1] ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++) up[i] = i;
  for (size_t k = 0; k < s->o->n_given && !c; k++) {
    const synth_given *g = &s->o->given[k];
    if (!says(g)) continue;
    st_tie_leaves(up, subject(g, n_l), g->term, n_l);
    if (g->equals) st_tie_leaves(up, subject(g, n_l), g->equals, n_l);
  }
  for (size_t i = 0; i < n && !c; i++) st_root_leaf(up, i);
  for (size_t i = 0; i < n && !c; i++) up[i] = st_root_leaf(up, i);
  f.root = up;
  for (size_t k = 0; k < s->o->n_given && !c; k++) {
    const synth_given *g = &s->o->given[k];
    if (!says(g) || done[f.of = up[subject(g, n_l)]]) continue;
    done[f.of] = true;
    c = take_family(&f, of, err);
  }
  free(up);
  free(done);
  free(f.number[0]);
  free(f.number[1]);
  return c;
}
