/* Elements of outputs that an order among equal numbers decides.
 *
 * topk, sort and their like leave open which of equal numbers comes first, so two true programs may
 * give other places where captured or drawn numbers are equal, and whatever reads these places
 * differs too. Here the terms are run with each such operator given ranks for numbers: equal ones
 * are told apart by their position, once upwards and once downwards. An element that one of the two
 * runs changes says nothing of whether the programs are one. */
#include <math.h>
#include <stdlib.h>

#include "check/check_int.h"
#include "check/value_int.h"

typedef struct ranked {
  double number;
  int64_t at; /* counted from the end, below 0, where later ones come first */
} ranked;

static int by_number(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                : (x->at > y->at) - (x->at < y->at);
}

/* Whether the numbers have an order, and float64 holds each. */
static bool is_ordered(const rule_tensor *x) {
  if (rule_dtype_is_complex(x->dtype)) return false;
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = rule_tensor_get(x, i);
    if (isnan(v) || (!rule_dtype_is_float(x->dtype) && fabs(v) >= 0x1p53)) return false;
  }
  return true;
}

/* Owns: the caller frees `list`, sorted, and unrefs `rank`. */
static iso_code rank(chk_state *k, const rule_tensor *x, bool down, ranked **list,
                     rule_tensor **rank) {
  iso_code c = rule_tensor_new(RULE_F64, &x->shape, rank, k->err);
  if (!c && !(*list = calloc((size_t)x->numel + 1, sizeof **list))) c = chk_nomem(k);
  if (c) return c;
  for (int64_t i = 0; i < x->numel; i++)
    (*list)[i] = (ranked){rule_tensor_get(x, i), down ? -1 - i : i};
  qsort(*list, (size_t)x->numel, sizeof **list, by_number);
  for (int64_t r = 0; r < x->numel; r++)
    rule_tensor_set(*rank, (*list)[r].at < 0 ? -1 - (*list)[r].at : (*list)[r].at, (double)r);
  return ISO_OK;
}

/* Whether ranks stand where `numbers` has their numbers: an operator that counts equal numbers
 * finds none among ranks. */
static bool are_ranks_of(const rule_tensor *ranks, const ranked *list, int64_t n,
                         const rule_tensor *numbers) {
  for (int64_t i = 0; i < ranks->numel; i++) {
    const double r = rule_tensor_get(ranks, i);
    if (!(r >= 0 && r < (double)n) || list[(int64_t)r].number != rule_tensor_get(numbers, i))
      return false;
  }
  return true;
}

/* Term `id` gets the places of `by_rank`, where its numbers are the same ones. */
static void take_places(chk_state *k, uint32_t id, chk_values *by_rank, const ranked *list,
                        int64_t n) {
  chk_values *const was = &k->here.real[id];
  bool same = by_rank->n == was->n;
  for (size_t r = 0; r < was->n && same; r++) {
    rule_tensor **const x = &by_rank->v[r], *const y = was->v[r];
    same = rule_shape_eq(&(*x)->shape, &y->shape);
    if (!same || (*x)->dtype != RULE_F64) continue;
    if (!(same = are_ranks_of(*x, list, n, y))) break;
    rule_tensor_unref(*x);
    *x = rule_tensor_ref(y);
  }
  if (!same) return;
  const chk_values other = *was;
  *was = *by_rank;
  *by_rank = other;
}

/* Runs term `id`, which was just run, on ranks. An operator that takes no such numbers keeps its
 * results. */
static iso_code reorder(chk_state *k, uint32_t id, bool down) {
  const rule_term *term = k->term[id].call;
  if (term->n == 0 || term->child[0]->kind != RULE_VAR || k->here.konst[chk_root(k, id)].v)
    return ISO_OK;
  const uint32_t of = (uint32_t)term->child[0]->u.i;
  rule_tensor *bind[MAX_CALL], *rank_of = NULL;
  ranked *list = NULL;
  chk_values by_rank = {0};
  iso_arena a;
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  iso_arena_init(&a);
  if (!c && !(l->call = chk_local_call(l, term, &a))) c = chk_nomem(k);
  const rule_tensor *x = k->here.real[of].n == 1 ? k->here.real[of].v[0] : NULL;
  if (c || !x || !is_ordered(x)) goto done;
  c = rank(k, x, down, &list, &rank_of);
  for (uint32_t i = 0; i < l->n && !c; i++)
    bind[i] = l->var[i] == of ? rank_of : k->here.real[l->var[i]].v[0];
  if (!c) c = chk_call(k, id, l, bind, true, &by_rank);
  if (!c && !chk_settled(k)) take_places(k, id, &by_rank, list, x->numel);
done:
  chk_drop_values(&by_rank);
  rule_tensor_unref(rank_of);
  free(list);
  iso_arena_fini(&a);
  free(l);
  return c;
}

static bool leaves_ties(const chk_state *k, uint32_t id) {
  return k->term[id].call && chk_leaves_ties(k->term[id].call->u.s);
}

enum { AS_BEFORE = -1, UP, DOWN };

/* The needed terms, with open orders taken as `order` says. */
static iso_code run(chk_state *k, const bool *need, int order) {
  iso_code c = ISO_OK;
  k->here.own = 0;
  for (uint32_t i = 0; i < k->n_terms && !c && !chk_settled(k); i++) {
    if (!need[i]) continue;
    c = chk_run_term(k, i);
    if (order == AS_BEFORE || c || chk_settled(k) || !leaves_ties(k, i)) continue;
    c = reorder(k, i, order == DOWN);
    if (!c) chk_unsettle(k);
  }
  chk_unsettle(k);
  return c;
}

static bool same_number(double x, double y) { return x == y || (isnan(x) && isnan(y)); }

/* Marks the elements in which the term's value is not `was`. */
static void mark_moved(const chk_state *k, uint32_t id, const rule_tensor *was, bool *moved) {
  const rule_tensor *now = k->here.real[id].n == 1 ? k->here.real[id].v[0] : NULL;
  for (int64_t i = 0; now && now->numel == was->numel && i < was->numel; i++)
    moved[i] |= !same_number(rule_tensor_get(was, i), rule_tensor_get(now, i));
}

static bool only_moved_differ(const rule_tensor *a, const rule_tensor *b, const bool *moved,
                              double tol) {
  double size = 0;
  for (int64_t i = 0; i < a->numel && rule_dtype_is_float(a->dtype); i++)
    if (isfinite(rule_tensor_get(a, i))) size = fmax(size, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (!moved[i] && !same_number(x, y) && !(fabs(x - y) <= tol * size)) return false;
  }
  return true;
}

iso_code chk_order_explains(chk_state *k, const bool *need, const chk_output *o, double tol,
                            bool *yes) {
  bool any = false;
  for (uint32_t i = 0; i < k->n_terms; i++) any |= need[i] && leaves_ties(k, i);
  *yes = false;
  if (!any) return ISO_OK;
  rule_tensor *a = rule_tensor_ref(k->here.real[o->a].v[0]),
              *b = rule_tensor_ref(k->here.real[o->b].v[0]);
  bool *moved = calloc((size_t)a->numel + 1, sizeof *moved);
  iso_code c = moved ? ISO_OK : chk_nomem(k);
  for (int order = UP; order <= DOWN && !c && a->numel == b->numel; order++) {
    if ((c = run(k, need, order))) break;
    mark_moved(k, o->a, a, moved);
    mark_moved(k, o->b, b, moved);
  }
  *yes = !c && !rule_dtype_is_complex(a->dtype) && a->numel == b->numel &&
         only_moved_differ(a, b, moved, tol);
  if (!c) c = run(k, need, AS_BEFORE);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  free(moved);
  return c;
}
