/* What captured integers of an input have in common that a caller may have made so: a permutation,
 * an order, edges in both directions. They are drawn without, and outputs that differ only where it
 * is broken may be those of an input that no program has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "synth/refute/refute.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { DRAWS = 8, MAX_RUNS = 64, MIN_RUNS = 8 };
static const int64_t work = 200000000; /* elements of leaves read by all runs together */

typedef enum property { PERMUTES, RISES, FALLS, PAIRED, N_PROPERTIES } property;

static int64_t length_of_row(const rule_tensor *t) {
  return t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
}

/* ---- whether they have it ---- */

static int by_size(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

/* In `to` what `t` has. */
static void read_all(const rule_tensor *t, double *to) {
  for (int64_t i = 0; i < t->numel; i++) to[i] = rule_tensor_get(t, i);
}

static bool permutes(const rule_tensor *t, double *x) {
  read_all(t, x);
  qsort(x, (size_t)t->numel, sizeof *x, by_size);
  for (int64_t i = 0; i < t->numel; i++)
    if (x[i] != (double)i) return false;
  return true;
}

/* Along rows, and not one number everywhere. `by`: 1 or -1. */
static bool is_ordered(const rule_tensor *t, int by) {
  const int64_t n = length_of_row(t);
  bool other = false;
  for (int64_t i = 0; i < t->numel; i++) {
    if (i % n == 0) continue;
    const double d = by * (rule_tensor_get(t, i) - rule_tensor_get(t, i - 1));
    if (d < 0) return false;
    other |= d > 0;
  }
  return other;
}

/* Column `j` of two rows has the numbers of column `i` exchanged. */
static bool is_reverse(const rule_tensor *t, int64_t i, int64_t j) {
  const int64_t n = t->shape.dim[1];
  return rule_tensor_get(t, i) == rule_tensor_get(t, n + j) &&
         rule_tensor_get(t, j) == rule_tensor_get(t, n + i);
}

/* The column that is the reverse of column `i`, as often as there are such; -1: none. */
static int64_t reverse_of(const rule_tensor *t, int64_t i) {
  const int64_t n = t->shape.dim[1];
  int64_t nth = 0;
  for (int64_t k = 0; k < i; k++)
    nth += rule_tensor_get(t, k) == rule_tensor_get(t, i) &&
           rule_tensor_get(t, n + k) == rule_tensor_get(t, n + i);
  for (int64_t j = 0; j < n; j++)
    if (is_reverse(t, i, j) && nth-- == 0) return j;
  return -1;
}

static bool is_paired(const rule_tensor *t) {
  enum { MOST = 1 << 10 }; /* columns: of more it is not asked */
  if (t->shape.rank != 2 || t->shape.dim[0] != 2 || t->shape.dim[1] > MOST) return false;
  bool others = false;
  for (int64_t i = 0; i < t->shape.dim[1]; i++) {
    if (reverse_of(t, i) < 0) return false;
    others |= reverse_of(t, i) != i;
  }
  return others;
}

static bool has(const rule_tensor *t, property p, double *room) {
  enum { FEW = 3 }; /* two numbers have some order */
  if (length_of_row(t) < FEW) return false;
  switch (p) {
  case PERMUTES: return t->shape.rank == 1 && permutes(t, room) && !is_ordered(t, 1);
  case RISES: return is_ordered(t, 1);
  case FALLS: return is_ordered(t, -1);
  default: return is_paired(t);
  }
}

/* ---- other numbers that have it ---- */

static void shuffle(double *x, int64_t n, iso_rng *rng) {
  for (int64_t i = n; i > 1; i--) {
    const int64_t k = (int64_t)iso_rng_below(rng, (uint64_t)i);
    const double was = x[k];
    x[k] = x[i - 1], x[i - 1] = was;
  }
}

/* `t` has any numbers; in `out` such that have the property of `was`, as near to those as can be,
 * and by `nth` some of them others. */
static void make(property p, const rule_tensor *was, const rule_tensor *t, size_t nth, iso_rng *rng,
                 double *out) {
  const int64_t n = length_of_row(t);
  read_all(t, out);
  if (p == PERMUTES) {
    for (int64_t i = 0; i < n; i++) out[i] = (double)i;
    shuffle(out, n, rng);
    return;
  }
  for (int64_t i = 0; i < t->numel && nth; i++)
    if (iso_rng_below(rng, 2))
      out[i] = rule_tensor_get(was, (int64_t)iso_rng_below(rng, (uint64_t)t->numel));
  for (int64_t from = 0; from < t->numel && p != PAIRED; from += n) {
    qsort(out + from, (size_t)n, sizeof *out, by_size);
    for (int64_t i = 0; i < n / 2 && p == FALLS; i++) {
      const double x = out[from + i];
      out[from + i] = out[from + n - 1 - i], out[from + n - 1 - i] = x;
    }
  }
  for (int64_t i = 0; i < n && p == PAIRED; i++) {
    const int64_t j = reverse_of(was, i);
    if (nth % 2 ? j < i : j > i) out[j] = out[n + i], out[n + j] = out[i];
    if (j == i) out[n + i] = out[i];
  }
}

/* ---- whether the outputs differ there ---- */

typedef struct asking {
  state *s;
  size_t runs;
  double *room;
} asking;

static iso_code any_shows(asking *a, eg_node leaf, property p, const rule_tensor *was,
                          rule_tensor *drawn, bool *yes, iso_error *err) {
  iso_rng rng = iso_rng_new(a->s->o->seed, leaf.i);
  iso_code c = ISO_OK;
  *yes = false;
  for (size_t k = 0; k < DRAWS && !c && !*yes; k++) {
    rule_tensor *v;
    if (a->runs == 0 || st_stopped(a->s)) return *yes = true, ISO_OK; /* it is not asked */
    if ((c = rule_tensor_new(drawn->dtype, &drawn->shape, &v, err))) return c;
    make(p, was, drawn, k, &rng, a->room);
    for (int64_t i = 0; i < v->numel; i++) rule_tensor_set(v, i, a->room[i]);
    st_variant one = {.leaf = &leaf, .value = &v, .n = 1, .anew = true};
    a->runs--;
    c = st_try_variant(a->s, &one, false, NULL, NULL, yes, err);
    rule_tensor_unref(v);
  }
  return c;
}

static iso_code say(state *s, const char *name, property p, iso_error *err) {
  static const struct {
    const char *has, *line;
  } of[N_PROPERTIES] = {
      [PERMUTES] = {"is no permutation", "distinct"},
      [RISES] = {"falls along a row", "sorted"},
      [FALLS] = {"rises along a row", "range LOW HIGH"},
      [PAIRED] = {"has a column that no other has the other way round", "range LOW HIGH"},
  };
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason = iso_arena_printf(
      &s->res->arena,
      "the outputs differ only where %.80s %s, and it was not captured so: a relations file may "
      "say what it may be (input %.80s %s)",
      name, of[p].has, name, of[p].line);
  return s->res->reason ? ISO_OK : nomem(err);
}

static bool has_on_all_sets(const synth_node *n, size_t sets, property p, double *room) {
  for (size_t k = 0; k < sets; k++)
    if (!n->value[k] || !has(n->value[k], p, room)) return false;
  return sets > 0;
}

static iso_code ask(asking *a, int side, size_t i, iso_error *err) {
  state *s = a->s;
  const synth_node *n = &s->graph[side]->node[i];
  rule_tensor *drawn = s->res->witness_leaf[side][i];
  iso_code c = ISO_OK;
  for (property p = PERMUTES; p < N_PROPERTIES && !c; p++) {
    bool shows;
    if (!has_on_all_sets(n, st_n_captured(s), p, a->room) || has(drawn, p, a->room)) continue;
    c = any_shows(a, s->map[side][i], p, n->value[0], drawn, &shows, err);
    if (!c && !shows) return say(s, n->name, p, err);
  }
  return c;
}

iso_code st_doubt_properties(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  int64_t largest = 1;
  if (s->res->verdict != SYNTH_DIFFERENT || !s->res->redrawn || !s->res->witness_leaf[LEFT] ||
      !s->res->witness_leaf[RIGHT])
    return ISO_OK;
  const int64_t runs =
      work / (st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) + 1);
  asking a = {.s = s,
              .runs = runs < MIN_RUNS   ? MIN_RUNS
                      : runs > MAX_RUNS ? MAX_RUNS
                                        : (size_t)runs};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_INPUT && n->value[0] && n->value[0]->numel > largest)
        largest = n->value[0]->numel;
    }
  if (!(a.room = malloc((size_t)largest * sizeof *a.room))) return nomem(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      const eg_node e = s->map[side][i];
      if (n->kind != SYNTH_INPUT || n->domain || n->kept || !n->value[0] || e.i == EG_NONE ||
          !s->res->witness_leaf[side][i] || s->rec[e.i].konst || !s->rec[e.i].atom ||
          !rule_dtype_is_int(n->value[0]->dtype) || s->res->verdict != SYNTH_DIFFERENT)
        continue;
      c = ask(&a, side, i, err);
    }
  free(a.room);
  return c;
}
