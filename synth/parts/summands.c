/* The summands of a tensor, over ranks and micro-batches at once.
 *
 * A step that accumulates gradients adds them up a micro-batch at a time and has a collective add
 * up the ranks', before or after that, with a division in between: the sum of all is one of results
 * of one operator, as many as there are ranks times micro-batches, or of as many of each of several
 * operators, where a weight stands in several places. The walk passes sums, multiples by one number
 * and collectives that add, in any order. */
#include "synth/parts/parts.h"
#include "rules/names.h"
#include "rules/operators.h"

#include <string.h>

enum { STEPS = 4 * MAX_RANKS };

typedef struct walk {
  const synth_graph *g;
  uint32_t todo[STEPS], seen[STEPS], n_todo, n_seen;
  bool full;
} walk;

static const synth_node *var_of(const walk *w, const rule_term *t) {
  return t->kind == RULE_VAR ? &w->g->node[t->u.i] : NULL;
}

static void enter(walk *w, const rule_term *t) {
  if (w->n_todo == STEPS) w->full = true;
  else w->todo[w->n_todo++] = (uint32_t)t->u.i;
}

/* A literal, or a tensor that is one number. */
static bool is_number(const walk *w, const rule_term *t) {
  const synth_node *n = var_of(w, t);
  return n ? n->shape.rank == 0 : t->kind == RULE_INT || t->kind == RULE_FLOAT;
}

/* The ranks' tensors that a collective adds up; the last is walked first. Returns: false where it
 * does something else. */
static bool enter_reduced(walk *w, const rule_term *call) {
  const rule_term *list = call->n > 1 ? call->child[0] : NULL;
  if (!list || list->kind != RULE_LIST || call->child[1]->kind != RULE_STRING ||
      (strcmp(call->child[1]->u.s, "sum") != 0 && strcmp(call->child[1]->u.s, "avg") != 0))
    return false;
  for (size_t k = 0; k < list->n; k++)
    if (list->child[k]->kind != RULE_VAR) return false;
  for (size_t k = list->n; k-- > 0;) enter(w, list->child[k]);
  return true;
}

/* Enters the summands of node `i`, if it is a sum or a multiple of one. */
static bool enter_operands(walk *w, uint32_t i) {
  const rule_term *call = w->g->node[i].call;
  if (w->g->node[i].kind != SYNTH_OP || call->n < 2) return false;
  const rule_term *const *arg = call->child;
  const rule_arithmetic how = rule_operator_of(call->u.s)->arithmetic;
  const bool first = arg[0]->kind == RULE_VAR, second = arg[1]->kind == RULE_VAR;
  if (rule_is_collective(call->u.s)) return enter_reduced(w, call);
  if (rule_is_getitem(call->u.s)) {
    const synth_node *of = var_of(w, arg[0]);
    return of && of->kind == SYNTH_OP && rule_is_collective(of->call->u.s) &&
           enter_reduced(w, of->call);
  }
  if (how == RULE_ARITHMETIC_ADD && first && second) {
    enter(w, arg[1]);
    enter(w, arg[0]);
    return true;
  }
  const bool scaled = how == RULE_ARITHMETIC_MUL || how == RULE_ARITHMETIC_DIV;
  if (!scaled || !first || !is_number(w, arg[1])) return false;
  enter(w, arg[0]);
  return true;
}

static bool was_seen(const walk *w, uint32_t i) {
  for (uint32_t k = 0; k < w->n_seen; k++)
    if (w->seen[k] == i) return true;
  return false;
}

static const char *operator_of(const walk *w, uint32_t i) {
  const synth_node *n = &w->g->node[i];
  return n->kind == SYNTH_OP ? n->call->u.s : "";
}

/* Whether it adds, and does not only multiply. */
static bool adds(const walk *w, uint32_t i) {
  const rule_arithmetic how = rule_operator_of(operator_of(w, i))->arithmetic;
  return how != RULE_ARITHMETIC_MUL && how != RULE_ARITHMETIC_DIV;
}

/* Walks down from `i` through its summands. Returns: how many tensors it adds up; in `sums` how
 * many times it adds. */
static uint32_t collect(walk *w, uint32_t i, uint32_t *node, uint32_t *sums) {
  uint32_t n = 0;
  *sums = 0;
  w->todo[w->n_todo++] = i;
  while (w->n_todo && !w->full) {
    const uint32_t k = w->todo[--w->n_todo];
    if (was_seen(w, k)) continue;
    if (enter_operands(w, k)) {
      if (w->n_seen == STEPS) return 0;
      w->seen[w->n_seen++] = k;
      *sums += adds(w, k);
      continue;
    }
    const char *op = operator_of(w, k);
    bool again = false;
    for (uint32_t j = 0; j < n; j++) again |= node[j] == k;
    if (again) continue;
    if (op[0] == 0 || n == MAX_RANKS) return 0;
    node[n++] = k;
  }
  return w->full ? 0 : n;
}

/* Puts results of one operator beside one another. Returns: how many there are of each, 0 where
 * these are not equally many. */
static uint32_t by_operator(const walk *w, uint32_t *node, uint32_t n) {
  uint32_t each = 0;
  for (uint32_t first = 0, end; first < n; first = end) {
    end = first + 1;
    for (uint32_t k = end; k < n; k++) {
      const uint32_t at = node[k];
      if (strcmp(operator_of(w, at), operator_of(w, node[first])) != 0) continue;
      memmove(node + end + 1, node + end, (k - end) * sizeof *node);
      node[end++] = at;
    }
    if (first > 0 && end - first != each) return 0;
    each = end - first;
  }
  return each;
}

uint32_t st_summands(const synth_graph *g, uint32_t i, bool *inner, uint32_t *node,
                     uint32_t *each) {
  walk w = {.g = g};
  uint32_t sums;
  *each = 0;
  const bool plain = strcmp(operator_of(&w, i), OP_ADD_TENSOR) == 0;
  if (g->node[i].kind != SYNTH_OP || !adds(&w, i)) return 0;
  const uint32_t n = collect(&w, i, node, &sums);
  *each = by_operator(&w, node, n);
  /* The summands of one collective are its ranks' peers, which others propose. */
  if (*each < 2 || sums == 0 || (sums == 1 && !plain)) return 0;
  for (uint32_t k = 0; k < w.n_seen; k++) inner[w.seen[k]] |= w.seen[k] != i;
  return n;
}
