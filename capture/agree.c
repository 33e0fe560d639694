/* Inputs that two captures are run on. Captures of one module hold the inputs that each was made
 * with, and where these differ nothing has been compared yet: both are run on the left's, and on
 * the right's. Then the captures' domains are combined for both.
 *
 * Which inputs are one is told by their values first: one that the other side has too, perhaps with
 * its dimensions in another order, needs no name. Where some have no such counterpart, namesakes
 * with other values say that the captures were made on other inputs, and then names go before
 * values: masks of ones are equal to masks of ones. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agree_int.h"

enum { MAX_NOTES = 4096 };

static iso_code no_memory(agree *a) { return iso_fail(a->err, ISO_NOMEM, "out of memory"); }

iso_code agree_note(agree *a, rule_assumption kind, const char *text, size_t i, int64_t other) {
  const size_t n = a->out->n_notes;
  if (!text) return no_memory(a);
  if (n == MAX_NOTES) return ISO_OK;
  int64_t node[2] = {-1, -1};
  node[a->in[i].side] = a->in[i].node;
  if (other >= 0) node[a->in[other].side] = a->in[other].node;
  a->note[n] = (cap_note){kind, text, node[LEFT], node[RIGHT]};
  a->out->n_notes++;
  return ISO_OK;
}

/* ---- which inputs there are ---- */

static void mark(const rule_term *t, bool *live) {
  if (t->kind == RULE_VAR) live[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) mark(t->child[k], live);
}

static bool add_first(cap_names *t, const char *name, size_t i) {
  return cap_names_find(t, name) != CAP_NO_INDEX || cap_names_add(t, name, i);
}

/* Deep models of several ranks have thousands of inputs, and each is looked for by its name. */
static iso_code add_names(agree *a, int side, size_t from) {
  const cap_graph *g = a->graph[side];
  agree_index *by = &a->by[side];
  bool ok = true;
  for (size_t i = 0; i < g->n_nodes && ok; i++)
    if (g->node[i].kind == CAP_INPUT) ok = add_first(&by->given, g->node[i].name, i);
  for (size_t i = from; i < a->n && ok; i++) {
    const char *name = agree_node(a, i)->name;
    ok = add_first(&by->read, name, i) && add_first(&by->stem, agree_stem(name), i);
  }
  return ok ? ISO_OK : no_memory(a);
}

/* Inputs that an output depends on: the values of others do not matter. */
iso_code agree_collect(agree *a, int side) {
  const cap_graph *g = a->graph[side];
  const size_t from = a->n;
  bool *live = calloc(g->n_nodes + 1, 1);
  if (!live) return no_memory(a);
  for (size_t i = 0; i < g->n_results; i++) live[g->result[i].node] = true;
  for (size_t i = g->n_nodes; i-- > 0;)
    if (live[i] && g->node[i].call) mark(g->node[i].call, live);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (live[i] && g->node[i].kind == CAP_INPUT && g->input[i]) {
      a->in[a->n] = (agree_input){.node = i,
                                  .side = side,
                                  .group = a->n,
                                  .other = -1,
                                  .whole = -1,
                                  .twin = -1,
                                  .hangs = -1};
      a->n++;
    }
  free(live);
  return add_names(a, side, from);
}

void agree_fini(agree *a) {
  for (int side = 0; side < 2; side++) {
    cap_names_fini(&a->by[side].read);
    cap_names_fini(&a->by[side].stem);
    cap_names_fini(&a->by[side].given);
  }
  free(a->in);
}

static int64_t find(const agree *a, int side, uint32_t node) {
  for (size_t i = 0; i < a->n; i++)
    if (a->in[i].side == side && a->in[i].node == node) return (int64_t)i;
  return -1;
}

/* ---- values ---- */

/* The same sizes but for ones. */
static bool same_sizes(const rule_shape *x, const rule_shape *y) {
  uint32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < x->rank && x->dim[i] == 1) i++;
    while (j < y->rank && y->dim[j] == 1) j++;
    if (i == x->rank || j == y->rank) return i == x->rank && j == y->rank;
    if (x->dim[i] != y->dim[j]) return false;
  }
}

/* Integers of one width stand for those of another, and floating numbers too. */
static bool same_kind(rule_dtype x, rule_dtype y) {
  return x == y || (rule_dtype_is_int(x) && rule_dtype_is_int(y)) ||
         (rule_dtype_is_float(x) && rule_dtype_is_float(y));
}

static bool fits(const agree *a, size_t i, size_t j) {
  const cap_output *x = &agree_node(a, i)->output[0], *y = &agree_node(a, j)->output[0];
  return same_kind(x->dtype, y->dtype) && same_sizes(&x->shape, &y->shape);
}

bool agree_equal(const agree *a, size_t i, size_t j) {
  if (!fits(a, i, j)) return false;
  for (size_t set = 0; set < a->sets; set++)
    if (!rule_tensor_same_bytes(agree_value(a, i, set), agree_value(a, j, set))) return false;
  return true;
}

/* Whether y is x with its dimensions in the order `at`, on every set; `opposed`: with ones for its
 * zeros. */
static bool permuted(const agree *a, size_t i, size_t j, bool opposed, const uint32_t *at) {
  const rule_tensor *x = agree_value(a, i, 0), *y = agree_value(a, j, 0);
  const uint32_t rank = x->shape.rank;
  const size_t size = rule_dtype_size(x->dtype);
  int64_t stride[RULE_MAX_RANK], step = 1;
  for (uint32_t d = rank; d-- > 0; step *= x->shape.dim[d]) stride[d] = step;
  for (uint32_t d = 0; d < rank; d++)
    if (y->shape.dim[d] != x->shape.dim[at[d]]) return false;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *p = agree_value(a, i, set), *q = agree_value(a, j, set);
    int64_t k[RULE_MAX_RANK] = {0};
    for (int64_t n = 0; n < y->numel; n++) {
      int64_t from = 0;
      for (uint32_t d = 0; d < rank; d++) from += k[d] * stride[at[d]];
      const bool same = opposed ? (rule_tensor_get(p, from) != 0) != (rule_tensor_get(q, n) != 0)
                                : memcmp((const char *)p->data + (size_t)from * size,
                                         (const char *)q->data + (size_t)n * size, size) == 0;
      if (!same) return false;
      for (uint32_t d = rank; d-- > 0 && ++k[d] == y->shape.dim[d];) k[d] = 0;
    }
  }
  return true;
}

/* Whether some order of dimensions makes one of the other. */
static bool turned(const agree *a, size_t i, size_t j, bool opposed, uint32_t *at, uint32_t n,
                   unsigned used) {
  const uint32_t rank = agree_node(a, i)->output[0].shape.rank;
  if (n == rank) return permuted(a, i, j, opposed, at);
  for (uint32_t d = 0; d < rank; d++) {
    if (used & 1u << d) continue;
    at[n] = d;
    if (turned(a, i, j, opposed, at, n + 1, used | 1u << d)) return true;
  }
  return false;
}

static bool rearranged(const agree *a, size_t i, size_t j, bool opposed, uint32_t *at) {
  enum { RANKS = 5 };
  const cap_output *x = &agree_node(a, i)->output[0], *y = &agree_node(a, j)->output[0];
  return x->dtype == y->dtype && x->shape.rank == y->shape.rank && x->shape.rank <= RANKS &&
         turned(a, i, j, opposed, at, 0, 0);
}

bool agree_rearranged(const agree *a, size_t i, size_t j, uint32_t *at) {
  return rearranged(a, i, j, false, at);
}

static void find_known(agree *a) {
  uint32_t at[RULE_MAX_RANK];
  for (size_t i = 0; i < a->n; i++)
    for (size_t j = 0; j < a->n && !a->in[i].known; j++)
      if (a->in[j].side != a->in[i].side && !a->in[j].settled)
        a->in[i].known = agree_equal(a, i, j) || agree_rearranged(a, i, j, at);
}

/* Whether every element of input `i` is an element of some input of the other side: a part of one,
 * or made of several. */
static bool within(const agree *a, size_t i) {
  enum { MOST = 1 << 14 }; /* elements: of more it is left open */
  const rule_tensor *x = agree_value(a, i, 0);
  for (int64_t k = 0; k < x->numel && x->numel <= MOST; k++) {
    bool found = false;
    for (size_t j = 0; j < a->n && !found; j++) {
      const rule_tensor *y = agree_value(a, j, 0);
      if (a->in[j].side == a->in[i].side || !same_kind(x->dtype, y->dtype)) continue;
      for (int64_t m = 0; m < y->numel && !found; m++)
        found = rule_tensor_get(x, k) == rule_tensor_get(y, m);
    }
    if (!found) return false;
  }
  return true;
}

agree_look agree_look_of(const agree *a, size_t i) {
  if (!rule_dtype_is_int(agree_node(a, i)->output[0].dtype))
    return agree_node(a, i)->output[0].dtype == RULE_BOOL ? BITS : FLOATS;
  bool bits = true, one = true, steps = true;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *t = agree_value(a, i, set);
    for (int64_t k = 0; k < t->numel; k++) {
      const int64_t x = rule_tensor_get_int(t, k), last = k ? rule_tensor_get_int(t, k - 1) : x;
      bits &= x == 0 || x == 1;
      one &= x == last;
      steps &= k == 0 || (x > last && x - 1 == last);
    }
    if (t->numel == 1) one = steps = bits = rule_tensor_get_int(t, 0) == 0;
  }
  return steps ? STEPS : bits ? BITS : one ? ONE_NUMBER : NUMBERS;
}

/* ---- which inputs are one ---- */

static void pair_up(agree *a, size_t i, size_t j) {
  a->in[i].other = (int64_t)j;
  a->in[j].other = (int64_t)i;
}

static void pair_spoken(agree *a, const cap_spoken *said) {
  for (size_t k = 0; said && k < said->n_pairs; k++) {
    const int64_t l = find(a, LEFT, said->pair[k][0]), r = find(a, RIGHT, said->pair[k][1]);
    if (l < 0 || r < 0) continue;
    pair_up(a, (size_t)l, (size_t)r);
    a->in[l].spoken = a->in[r].spoken = true;
  }
  for (size_t i = 0; i < a->n; i++) {
    const bool *skip = said ? said->skip[a->in[i].side] : NULL;
    a->in[i].settled = skip && skip[a->in[i].node];
  }
}

/* Where the ranks of one model are in one graph, "rank<r>.NAME" is rank r's NAME. */
const char *agree_stem(const char *name) {
  const size_t digits = strncmp(name, "rank", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
  return digits && name[4 + digits] == '.' ? name + 4 + digits + 1 : name;
}

static int64_t called(const agree *a, size_t i, const char *name, bool stems) {
  const agree_index *by = &a->by[!a->in[i].side];
  for (size_t j = cap_names_find(stems ? &by->stem : &by->read, name); j < a->n; j++) {
    const char *other = agree_node(a, j)->name;
    if (a->in[j].side != a->in[i].side && !a->in[j].settled && (stems || a->in[j].other < 0) &&
        strcmp(name, stems ? agree_stem(other) : other) == 0)
      return (int64_t)j;
  }
  return -1;
}

int64_t agree_namesake(const agree *a, size_t i) {
  const char *name = agree_node(a, i)->name;
  const int64_t j = called(a, i, name, false);
  return j >= 0 ? j : called(a, i, agree_stem(name), true);
}

static bool same_name(const agree *a, size_t i, size_t j) {
  return a->in[i].side == LEFT && strcmp(agree_node(a, i)->name, agree_node(a, j)->name) == 0;
}

static iso_code refuse(agree *a, size_t i, size_t j) {
  char x[128], y[128];
  const cap_output *l = &agree_node(a, i)->output[0], *r = &agree_node(a, j)->output[0];
  return iso_fail(a->err, ISO_USAGE,
                  "%s and %s were captured on other values of \"%.80s\", which is %s %s in one and "
                  "%s %s in the "
                  "other: they cannot be run on the same",
                  a->graph[LEFT]->path, a->graph[RIGHT]->path, agree_node(a, i)->name,
                  rule_dtype_name(l->dtype), rule_shape_print(&l->shape, x, sizeof x),
                  rule_dtype_name(r->dtype), rule_shape_print(&r->shape, y, sizeof y));
}

/* Whether the captures were made on other inputs: some input is nowhere on the other side, and its
 * namesake has other values. */
static iso_code made_on_others(agree *a, bool *others) {
  *others = false;
  for (size_t i = 0; i < a->n; i++) {
    const int64_t j = a->in[i].settled || a->in[i].other >= 0 ? -1 : agree_namesake(a, i);
    if (j < 0 || agree_equal(a, i, (size_t)j) || (a->in[i].known && a->in[j].known)) continue;
    if (fits(a, i, (size_t)j)) *others = true;
    else if (same_name(a, i, (size_t)j) && !within(a, i) && !within(a, (size_t)j)) {
      bool one;
      iso_code c = agree_of_one_mask(a, i, (size_t)j, &one);
      if (!c && !one) c = refuse(a, i, (size_t)j);
      if (c) return c;
    }
  }
  return ISO_OK;
}

static void pair_names(agree *a) {
  for (size_t i = 0; i < a->n && a->in[i].side == LEFT; i++) {
    const int64_t j = a->in[i].settled || a->in[i].other >= 0 ? -1 : agree_namesake(a, i);
    if (j >= 0 && fits(a, i, (size_t)j)) pair_up(a, i, (size_t)j);
  }
  for (size_t i = 0; i < a->n; i++) { /* further ranks have what the first has */
    const int64_t j = a->in[i].settled || a->in[i].other >= 0 ? -1 : agree_namesake(a, i);
    if (j >= 0 && fits(a, i, (size_t)j)) a->in[i].other = j;
  }
}

/* Not where the other side was given an input of that name, and does not read it: what it reads in
 * its place is another one. */
static bool lost(const agree *a, size_t i) {
  return !a->in[i].known && !a->in[i].settled && a->in[i].other < 0 && agree_namesake(a, i) < 0 &&
         !agree_unread(a, i) && !agree_swapped(a, i);
}

static bool alike(const agree *a, size_t i, size_t j) {
  return lost(a, j) && fits(a, i, j) && agree_look_of(a, i) == agree_look_of(a, j);
}

/* How many of `side` that have lost their counterparts are like input `i`. */
static size_t count_alike(const agree *a, size_t i, int side) {
  size_t n = 0;
  for (size_t j = 0; j < a->n; j++) n += a->in[j].side == side && alike(a, i, j);
  return n;
}

/* Pairs inputs whose names differ and that equal no input of the other side: the first with the
 * first, where both sides have equally many of that kind and shape. Inputs whose values have a
 * structure (masks, positions) are left out, unless all inputs of both sides agree in kind and
 * shape, in order. */
static void pair_places(agree *a) {
  size_t n[2] = {0, 0};
  for (size_t i = 0; i < a->n; i++) n[a->in[i].side]++;
  bool in_order = n[LEFT] == n[RIGHT];
  for (size_t i = 0; in_order && i < n[LEFT]; i++)
    in_order = fits(a, i, n[LEFT] + i) && agree_look_of(a, i) == agree_look_of(a, n[LEFT] + i);
  for (size_t i = 0; i < n[LEFT]; i++) {
    const agree_look x = agree_look_of(a, i);
    if (!lost(a, i)) continue;
    if (in_order && lost(a, n[LEFT] + i)) pair_up(a, i, n[LEFT] + i);
    if (a->in[i].other >= 0 || (x != FLOATS && x != NUMBERS)) continue;
    if (count_alike(a, i, LEFT) != count_alike(a, i, RIGHT)) continue;
    size_t j = n[LEFT];
    while (j < a->n && !alike(a, i, j)) j++;
    if (j < a->n) pair_up(a, i, j);
  }
}

/* Whether input `j` has ones for the zeros of input `i`, perhaps with its dimensions in another
 * order. */
static bool are_opposites(const agree *a, size_t i, size_t j) {
  uint32_t at[RULE_MAX_RANK];
  if (agree_value(a, i, 0)->numel < 2) return false; /* one number says nothing */
  return agree_complement(a, i, j) || (agree_zeros_and_ones(a, i) && agree_zeros_and_ones(a, j) &&
                                       rearranged(a, i, j, true, at));
}

/* Input `i` of the left, and all of the right that are compared with it. In another order they are
 * not run on each other's values. */
static void oppose(agree *a, size_t i) {
  for (size_t j = 0; j < a->n; j++) {
    const bool is = a->in[j].side == RIGHT && a->in[j].other == (int64_t)i;
    if (!is || !are_opposites(a, i, j)) continue;
    a->in[i].opposed = a->in[j].opposed = true;
    if (!agree_complement(a, i, j)) a->in[i].other = a->in[j].other = -1;
  }
}

/* What one capture keeps the other may leave out, under one name: then no value is one for both. */
static iso_code doubt_names(agree *a, unsigned opposed) {
  for (size_t i = 0; i < a->n && a->in[i].side == LEFT; i++) {
    const int64_t j = a->in[i].other;
    if (j < 0 || a->in[i].spoken || !are_opposites(a, i, (size_t)j)) continue;
    const size_t bit = a->out->n_doubts++;
    if (bit < CHAR_BIT * sizeof opposed && opposed >> bit & 1) oppose(a, i);
    if (a->out->doubt) continue;
    const char *name = agree_node(a, i)->name, *other = agree_node(a, (size_t)j)->name;
    a->out->doubt = iso_arena_printf(
        &a->graph[LEFT]->arena,
        "the outputs differ, and %.80s was captured with ones for the zeros of the right's %.80s, "
        "so that one may be what is kept and the other what is left out: a relations file may say "
        "that they are one (input %.80s = %.80s)",
        name, other, name, other);
    if (!a->out->doubt) return no_memory(a);
  }
  return ISO_OK;
}

/* Opposites that are not drawn as one keep their values: floats that are drawn each by itself are
 * no zeros and ones, and part whatever the graphs make of a mask. */
static void keep_opposed(agree *a) {
  for (size_t i = 0; i < a->n; i++) {
    const agree_input *in = &a->in[i];
    const size_t head = in->twin >= 0 ? (size_t)in->twin : in->group;
    if (in->opposed && a->in[head].looks.kind == LOOKS_KEPT)
      cap_keep_input(a->graph[in->side], in->node, false);
  }
}

/* ---- all of it ---- */

static iso_code settle(agree *a, const cap_spoken *said, uint64_t seed) {
  bool others = false;
  pair_spoken(a, said);
  iso_code c = agree_lengthen(a);
  find_known(a);
  if (!c) c = made_on_others(a, &others);
  if (!c && others) pair_names(a);
  if (!c) pair_places(a);
  if (!c) c = doubt_names(a, said ? said->opposed : 0);
  if (!c) c = agree_exchange(a);
  if (!c) c = agree_domains(a, seed);
  if (!c) keep_opposed(a);
  return c;
}

iso_code cap_agree(cap_graph *left, cap_graph *right, const cap_spoken *said, uint64_t seed,
                   cap_agreement *out, iso_error *err) {
  agree a = {.graph = {left, right},
             .out = out,
             .err = err,
             .sets = left->n_sets < right->n_sets ? left->n_sets : right->n_sets};
  *out = (cap_agreement){.n_captured = a.sets};
  a.in = calloc(left->n_nodes + right->n_nodes + 1, sizeof *a.in);
  if (!a.in) return no_memory(&a);
  iso_code c = agree_collect(&a, LEFT);
  if (!c) c = agree_collect(&a, RIGHT);
  a.note = c ? NULL : iso_arena_alloc(&left->arena, (2 * a.n + 1) * sizeof *a.note);
  if (!c && !a.note) c = no_memory(&a);
  out->note = a.note;
  if (!c) c = settle(&a, said, seed);
  agree_fini(&a);
  return c;
}

iso_code cap_pin(cap_graph *left, cap_graph *right, cap_agreement *a, iso_error *err) {
  cap_note *all = iso_arena_alloc(&left->arena, (a->n_notes + 1) * sizeof *all);
  if (!all) return cap_no_memory(err);
  if (a->n_notes) memcpy(all, a->note, a->n_notes * sizeof *all);
  all[a->n_notes++] = (cap_note){RULE_ASSUMES_VALUE,
                                 "parameters keep their captured values: at these weights", -1, -1};
  a->note = all;
  cap_graph *const side[] = {left, right};
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < side[k]->n_nodes; i++) {
      cap_node *n = (cap_node *)(uintptr_t)&side[k]->node[i];
      if (n->kind == CAP_PARAMETER) n->kind = CAP_CONSTANT;
    }
  return ISO_OK;
}
