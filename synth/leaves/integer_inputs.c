/* The content of integer inputs: tokens, which are drawn anew, or positions and bounds, which are
 * kept.
 */
#include "synth/joint/joint.h"
#include "rules/operators.h"
#include "synth/leaves/leaves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* How the integers of an input are used on one side. */
typedef struct integer_use {
  bool counts;   /* they become floating numbers */
  bool looks_up; /* they index a table that is a constant */
  bool alone;    /* and one of these is not the other side's, too */
  bool chooses;  /* they index a table of parameters */
  bool compares; /* they decide something */
} integer_use;

static const rule_term *index_of(const rule_term *call) {
  const uint32_t at = rule_operator_of(call->u.s)->table;
  return at && at < call->n ? call->child[at] : NULL;
}

static bool all_flagged(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t k = 0; k < t->n; k++)
    if (!all_flagged(t->child[k], flag)) return false;
  return true;
}

/* Whether a constant table is a leaf that the other side has, too, at most cast and laid out: then
 * it was not computed beforehand in place of what the other side computes. */
static bool is_of_both(const state *s, int side, size_t table) {
  const synth_graph *g = s->graph[side];
  for (; g->node[table].kind == SYNTH_OP; table = (size_t)g->node[table].call->child[0]->u.i) {
    const rule_term *call = g->node[table].call;
    const rule_operator *o = rule_operator_of(call->u.s);
    if (!(o->identity || o->cast || o->moves) || call->n == 0 || call->child[0]->kind != RULE_VAR)
      return false;
  }
  const eg_node *m;
  const size_t n = s->map[side][table].i == EG_NONE
                       ? 0
                       : eg_class_nodes(s->g, eg_class_of(s->g, s->map[side][table]), &m);
  for (size_t k = 0; k < n; k++)
    if (s->rec[m[k].i].leaf && s->rec[m[k].i].node[!side] >= 0) return true;
  return false;
}

static iso_code use_of(const state *s, int side, size_t input, const bool *live, integer_use *u,
                       iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *flow = calloc(g->n_nodes + 1, 1), *konst = calloc(g->n_nodes + 1, 1);
  if (!flow || !konst) {
    free(flow);
    free(konst);
    return nomem(err);
  }
  flow[input] = true;
  for (size_t j = 0; j < g->n_nodes; j++) {
    const synth_node *n = &g->node[j];
    if (n->kind != SYNTH_OP)
      konst[j] = j != input && s->map[side][j].i != EG_NONE && s->rec[s->map[side][j].i].konst;
    if (n->kind != SYNTH_OP || !live[j]) continue;
    konst[j] = all_flagged(n->call, konst);
    if (!st_term_uses(n->call, flow)) continue;
    const rule_term *index = index_of(n->call), *table = n->call->child[0];
    if (index && st_term_uses(index, flow) && table->kind == RULE_VAR && !flow[table->u.i] &&
        rule_dtype_is_float(n->dtype)) {
      *(konst[table->u.i] ? &u->looks_up : &u->chooses) = true;
      u->alone |= konst[table->u.i] && !is_of_both(s, side, (size_t)table->u.i);
    } else if (rule_dtype_is_int(n->dtype)) flow[j] = true;
    else if (rule_dtype_is_float(n->dtype)) u->counts = true;
    else u->compares = true;
  }
  free(flow);
  free(konst);
  return ISO_OK;
}

/* Drawn anew, and all that is equal to it. */
static void free_class(state *s, eg_class cls) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  for (size_t k = 0; k < n; k++) s->rec[m[k].i].konst = false;
}

/* Whether any member is drawn anew, or all are. */
static bool is_free(const state *s, eg_class cls, bool all) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  for (size_t k = 0; k < n; k++)
    if (s->rec[m[k].i].konst == all) return !all;
  return all;
}

/* Whether there are inputs in a class, or in the terms that relate it to others. */
static bool holds_inputs(const state *s, eg_class cls) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  for (size_t i = 0; i < n; i++) {
    for (int side = 0; side < 2; side++) {
      const int32_t at = s->rec[m[i].i].node[side];
      if (at >= 0 && s->graph[side]->node[at].kind == SYNTH_INPUT) return true;
    }
    for (size_t k = 0; k < eg_node_arity(s->g, m[i]); k++)
      if (holds_inputs(s, eg_node_child(s->g, m[i], k))) return true;
  }
  return false;
}

/* A class is free where one of its members is, and where a class of which it is a layout is; and
 * then all of these are, as parts of a whole that is drawn are in either order of the sides: a part
 * of tokens may look like positions. Returns: whether more is free by now. */
static bool free_alike(state *s, eg_node e) {
  const eg_class cls = eg_class_of(s->g, e);
  const size_t arity = eg_node_arity(s->g, e);
  bool below = false, more = false;
  if (!holds_inputs(s, cls)) return false;
  for (size_t k = 0; k < arity; k++) below |= is_free(s, eg_node_child(s->g, e, k), false);
  if ((below || is_free(s, cls, false)) && !is_free(s, cls, true)) {
    free_class(s, cls);
    more = true;
  }
  for (size_t k = 0; k < arity && is_free(s, cls, false); k++) {
    const eg_class child = eg_node_child(s->g, e, k);
    if (!holds_inputs(s, child) || is_free(s, child, true)) continue;
    free_class(s, child);
    more = true;
  }
  return more;
}

/* An input may look narrower than the other side takes it to be: a label may look like
 * a position. Requires: nothing but leaves and the terms that relate them is in the e-graph. */
static void free_all_alike(state *s) {
  bool more = true;
  while (more) {
    more = false;
    for (uint32_t i = 0; i < s->n_rec; i++) more |= free_alike(s, (eg_node){i});
  }
}

/* Whether input `i` only chooses rows of tables of parameters, on its side and wherever the other
 * side has it. */
static iso_code only_chooses(state *s, const bool *const live[2], int side, size_t i, bool *yes,
                             iso_error *err) {
  const eg_class cls = eg_class_of(s->g, s->map[side][i]);
  bool there[2] = {false, false};
  *yes = true;
  for (int k = 0; k < 2 && *yes; k++)
    for (size_t j = 0; j < s->graph[k]->n_nodes && *yes; j++) {
      const synth_node *n = &s->graph[k]->node[j];
      if (n->kind == SYNTH_OP || !live[k][j] || s->map[k][j].i == EG_NONE ||
          eg_class_of(s->g, s->map[k][j]).i != cls.i)
        continue;
      integer_use u = {0};
      iso_code c = n->kind == SYNTH_INPUT ? use_of(s, k, j, live[k], &u, err) : ISO_OK;
      if (c) return c;
      there[k] = true;
      *yes = n->kind == SYNTH_INPUT && u.chooses && !u.counts && !u.looks_up && !u.compares;
    }
  *yes = *yes && there[LEFT] && there[RIGHT];
  return ISO_OK;
}

/* Which inputs of a side carry tokens. */
static iso_code find_tokens(state *s, const bool *const live[2], int side, bool *token,
                            iso_error *err) {
  const synth_graph *g = s->graph[side];
  size_t n = 0, last = 0;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes; i++) {
    if (g->node[i].kind != SYNTH_INPUT || !live[side][i] || g->node[i].kept) continue;
    if (!s->rec[s->map[side][i].i].konst) return ISO_OK;
    if (rule_dtype_is_int(g->node[i].value[0]->dtype) && st_chooses_rows(s, side, i, live[side]))
      n++, last = i;
  }
  if (n == 1) token[last] = true;
  for (size_t i = 0; i < g->n_nodes && n > 1 && !c; i++)
    if (g->node[i].kind == SYNTH_INPUT && live[side][i] && !g->node[i].kept &&
        rule_dtype_is_int(g->node[i].value[0]->dtype) && st_chooses_rows(s, side, i, live[side]))
      c = only_chooses(s, live, side, i, &token[i], err);
  return c;
}

/* If all inputs were kept, the captures would be functions of nothing. So where every input of a
 * side has a visible structure and one of them only indexes a table, that one carries the tokens,
 * whatever they happen to be. So do several that do nothing else on either side. An input that is
 * drawn on one side is drawn on both. */
iso_code st_free_tokens(state *s, const bool *const live[2], iso_error *err) {
  bool *token[2] = {calloc(s->graph[LEFT]->n_nodes + 1, 1),
                    calloc(s->graph[RIGHT]->n_nodes + 1, 1)};
  iso_code c = token[LEFT] && token[RIGHT] ? ISO_OK : nomem(err);
  free_all_alike(s);
  for (int side = 0; side < 2 && !c; side++) c = find_tokens(s, live, side, token[side], err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (token[side][i]) free_class(s, eg_class_of(s->g, s->map[side][i]));
  free_all_alike(s);
  free(token[LEFT]);
  free(token[RIGHT]);
  return c;
}

/* A position that one side computes with, and that the other looks up in a table of what was
 * computed, is kept as it was captured: the table is rounded as it was stored, which for other
 * positions is nothing that the captured dtypes tell. */
static iso_code keep_position(state *s, const bool *const live[2], size_t l, size_t r,
                              iso_error *err) {
  const size_t input[2] = {l, r};
  integer_use u[2] = {{0}};
  for (int side = 0; side < 2; side++) {
    const iso_code c = use_of(s, side, input[side], live[side], &u[side], err);
    if (c) return c;
  }
  const bool mixed = (u[LEFT].counts && u[RIGHT].alone) || (u[RIGHT].counts && u[LEFT].alone);
  if (!mixed || u[LEFT].chooses || u[RIGHT].chooses) return ISO_OK;
  for (int side = 0; side < 2; side++) {
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, s->map[side][input[side]]), &m);
    for (size_t k = 0; k < n; k++) s->rec[m[k].i].konst = true;
  }
  char text[512];
  snprintf(text, sizeof text,
           "%s keeps its captured values: one side computes with them, the other looks them up in "
           "a table",
           s->graph[LEFT]->node[l].name);
  return st_assume(s, RULE_ASSUMES_INPUT, s->map[LEFT][l], s->map[RIGHT][r], NULL, text)
             ? ISO_OK
             : nomem(err);
}

static bool free_integers(const state *s, int side, size_t i, const bool *live) {
  const synth_node *n = &s->graph[side]->node[i];
  return n->kind == SYNTH_INPUT && live[i] && rule_dtype_is_int(n->value[0]->dtype) &&
         !s->rec[s->map[side][i].i].konst;
}

static bool same_integers(const state *s, size_t l, size_t r) {
  for (size_t set = 0; set < s->n_sets; set++) {
    const rule_tensor *a = s->graph[LEFT]->node[l].value[set],
                      *b = s->graph[RIGHT]->node[r].value[set];
    if (a->numel != b->numel) return false;
    for (int64_t k = 0; k < a->numel; k++)
      if (rule_tensor_get_int(a, k) != rule_tensor_get_int(b, k)) return false;
  }
  return true;
}

/* A position that one side computes with, and that the other looks up in a table of what was
 * computed, is kept as it was captured: the table is rounded as it was stored, which for other
 * positions is nothing that the captured dtypes tell. */
iso_code st_keep_positions(state *s, const bool *const live[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t l = 0; l < s->graph[LEFT]->n_nodes && !c; l++)
    for (size_t r = 0; free_integers(s, LEFT, l, live[LEFT]) && r < s->graph[RIGHT]->n_nodes && !c;
         r++)
      if (free_integers(s, RIGHT, r, live[RIGHT]) && same_integers(s, l, r))
        c = keep_position(s, live, l, r, err);
  return c;
}

/* ---- what so few are by chance ---- */

/* Whether a set is another than those before it. */
static bool is_new_set(const synth_node *n, size_t set) {
  for (size_t k = 0; k < set; k++)
    if (rule_tensor_same_bytes(n->value[k], n->value[set])) return false;
  return true;
}

/* Of however many elements, one number is what comes to mind first; but ones may be a mask. Of
 * others the first may be any, unless it is the place that each of them is at. */
bool st_kept_by_chance(const state *s, int side, size_t i, const bool *live) {
  enum { SURE = 12 };            /* bits */
  static const int64_t any = 16; /* numbers, where no table says how many */
  const synth_node *n = &s->graph[side]->node[i];
  int64_t rows;
  if (n->kind != SYNTH_INPUT || n->domain || !live[i] || !n->value[0]->numel) return false;
  if (n->kept && n->by_chance) return true; /* floats, too */
  if (!rule_dtype_is_int(n->value[0]->dtype)) return false;
  const st_rows how = st_chooses_among(s, side, i, live, &rows);
  if (n->kept && how == ST_ROWS_NONE) return false; /* a mask, or what comes of one */
  if (rows == 0) rows = any;
  double bits = 0;
  bool high = false;
  for (size_t set = 0; set < s->n_sets && bits < SURE; set++) {
    const rule_tensor *t = n->value[set];
    bool same = true, places = true;
    for (int64_t k = 0; k < t->numel; k++) {
      const int64_t x = rule_tensor_get_int(t, k);
      same &= x == rule_tensor_get_int(t, 0);
      places &= x == k;
      high |= x != 0 && x != 1;
    }
    if (!is_new_set(n, set)) continue;
    const bool bit = !high && !same;
    const bool ones = same && rule_tensor_get_int(t, 0) == 1 && how == ST_ROWS_NONE;
    const int64_t others = t->numel - !places;
    if (!same || ones) bits += (double)others * log2((double)rows / (bit ? 2 : 1));
  }
  return bits < SURE;
}
