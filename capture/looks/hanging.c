/* Inputs that a caller computed from a mask: found by a law that gives them on all sets, and drawn
 * with it. */
#include <stdlib.h>

#include "capture/agree_int.h"

static iso_code no_memory(agree *a) { return iso_fail(a->err, ISO_NOMEM, "out of memory"); }

/* Numbers of a group that nothing else is said of, and that is not drawn by itself. */
static bool may_hang(const agree *a, size_t j) {
  bool whole = false, any = false;
  if (a->in[j].group != j || a->in[j].twin >= 0 || a->in[j].looks.kind != LOOKS_KEPT ||
      !agree_unsaid(a, j) || agree_node(a, j)->output[0].dtype == RULE_BOOL ||
      rule_dtype_is_complex(agree_node(a, j)->output[0].dtype))
    return false;
  for (size_t i = 0; i < a->n; i++)
    whole |= a->in[i].whole >= 0 && a->in[a->in[i].whole].group == j;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *t = agree_value(a, j, set);
    for (int64_t i = 0; i < t->numel && !any; i++) any = rule_tensor_get(t, i) != 0;
  }
  return any && !whole;
}

static void values_of(const agree *a, size_t i, const rule_tensor **set) {
  for (size_t k = 0; k < a->sets; k++) set[k] = agree_value(a, i, k);
}

iso_code agree_has_law(agree *a, size_t g, size_t j, bool *yes) {
  const rule_tensor **set = malloc((2 * a->sets + 1) * sizeof *set);
  looks_law law = {0};
  if (!set) return no_memory(a);
  values_of(a, g, set);
  values_of(a, j, set + a->sets);
  const bool ok = looks_find_law(set, set + a->sets, a->sets, (looks_law){0}, &law);
  free(set);
  *yes = law.number != 0;
  return ok ? ISO_OK : no_memory(a);
}

/* Sets with one mask tell as much as one of them. */
static double bits_of_law(const agree *a, size_t g, looks_law law) {
  double bits = looks_law_bits(law, agree_value(a, g, 0));
  for (size_t set = 1; set < a->sets; set++) {
    bool same = false;
    for (size_t k = 0; k < set && !same; k++) {
      const rule_tensor *x = agree_value(a, g, set), *y = agree_value(a, g, k);
      same = x->numel == y->numel;
      for (int64_t i = 0; i < x->numel && same; i++)
        same = rule_tensor_get(x, i) == rule_tensor_get(y, i);
    }
    if (!same) bits += looks_law_bits(law, agree_value(a, g, set));
  }
  return bits;
}

/* Whether two laws give other numbers of some mask that looks like group `g`. */
static iso_code part_ways(agree *a, size_t g, const looks_law law[2], int64_t n, bool *yes) {
  enum { DRAWS = 12 };
  const rule_tensor *was = agree_value(a, g, 0);
  iso_rng rng = iso_rng_new(g, 0);
  rule_tensor *t;
  int64_t *x = malloc((2 * (size_t)n + 2) * sizeof *x);
  if (!x) return no_memory(a);
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &t, a->err);
  const bool made = !c;
  *yes = false;
  for (unsigned k = 0; k < DRAWS && !c && !*yes; k++) {
    if (!looks_draw_bits(&a->in[g].looks, k, &rng, t)) c = no_memory(a);
    if (c) break;
    for (int i = 0; i < 2; i++) looks_apply_law(law[i], t, x + i * (n + 1));
    for (int64_t i = 0; i < n && !*yes; i++) *yes = x[i] != x[n + 1 + i];
  }
  free(x);
  if (made) rule_tensor_unref(t);
  return c;
}

/* What is known of input `j`, which a law gives of group `g`. */
static iso_code weigh(agree *a, size_t j, size_t g, const rule_tensor **base,
                      const rule_tensor **value) {
  enum { SURE = 12 };
  looks_law law[2] = {a->in[j].law, a->in[j].law};
  iso_code c = ISO_OK;
  a->in[j].by_chance = bits_of_law(a, g, law[0]) < SURE;
  a->in[j].torn = false;
  while (!c && !a->in[j].torn) {
    if (!looks_find_law(base, value, a->sets, law[1], &law[1])) c = no_memory(a);
    if (c || !law[1].number) break;
    c = part_ways(a, g, law, value[0]->numel, &a->in[j].torn);
  }
  return c;
}

iso_code agree_find_hanging(agree *a) {
  const rule_tensor **base = malloc((a->sets + 1) * sizeof *base),
                    **value = malloc((a->sets + 1) * sizeof *value);
  iso_code c = base && value ? ISO_OK : no_memory(a);
  for (size_t j = 0; j < a->n && !c; j++) {
    if (!may_hang(a, j)) continue;
    values_of(a, j, value);
    for (size_t g = 0; g < a->n && !c && a->in[j].hangs < 0; g++) {
      if (a->in[g].looks.kind == LOOKS_KEPT) continue;
      values_of(a, g, base);
      if (!looks_find_law(base, value, a->sets, (looks_law){0}, &a->in[j].law)) c = no_memory(a);
      if (c || !a->in[j].law.number) continue;
      a->in[j].hangs = (int64_t)g;
      c = weigh(a, j, g, base, value);
    }
  }
  free(base);
  free(value);
  return c;
}

static iso_code draw_one(agree *a, agree_sets *s, size_t j, const rule_tensor *base) {
  const rule_tensor *was = agree_value(a, j, 0);
  rule_tensor *t, *own;
  int64_t *x = malloc(((size_t)was->numel + 1) * sizeof *x);
  if (!x) return no_memory(a);
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &t, a->err);
  if (c) {
    free(x);
    return c;
  }
  looks_apply_law(a->in[j].law, base, x);
  for (int64_t i = 0; i < was->numel; i++) rule_tensor_set(t, i, (double)x[i]);
  for (size_t i = 0; i < a->n && !c; i++) {
    if (a->in[i].group != j) continue;
    if (!(c = agree_as_input(a, t, agree_node(a, i), &own))) agree_set_last(a, s, i, own);
  }
  rule_tensor_unref(t);
  free(x);
  return c;
}

iso_code agree_draw_hanging(agree *a, agree_sets *s, size_t g, const rule_tensor *t,
                            const rule_tensor *apart) {
  iso_code c = ISO_OK;
  for (size_t j = 0; j < a->n && !c; j++)
    if (a->in[j].hangs == (int64_t)g)
      c = draw_one(a, s, j, apart && a->in[j].by_chance ? apart : t);
  return c;
}

/* ---- ids of padding ---- */

static bool some_other(const rule_tensor *t, double x) {
  bool any = false;
  for (int64_t i = 0; i < t->numel && !any; i++) any = rule_tensor_get(t, i) != x;
  return any;
}

/* Whether integers of group `j` are one number exactly where the zeros of group `g` are, or its
 * ones, as `where` says, on every set. */
static bool is_filled(const agree *a, size_t j, size_t g, bool where, double *fill) {
  int64_t hidden = 0, all = 0;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *x = agree_value(a, j, set), *m = agree_value(a, g, set);
    if (x->numel != m->numel) return false;
    for (int64_t i = 0; i < x->numel; i++) {
      if ((rule_tensor_get(m, i) != 0) != where) continue;
      if (hidden++ == 0) *fill = rule_tensor_get(x, i);
    }
    all += x->numel;
  }
  if (hidden < 2 || hidden == all || !some_other(agree_value(a, j, 0), *fill)) return false;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *x = agree_value(a, j, set), *m = agree_value(a, g, set);
    for (int64_t i = 0; i < x->numel; i++)
      if ((rule_tensor_get(x, i) == *fill) != ((rule_tensor_get(m, i) != 0) == where)) return false;
  }
  return true;
}

/* Where a mask that is drawn hides nothing, ids are some of those captured. */
static iso_code draw_filled(agree *a, agree_sets *s, size_t j, const rule_tensor *mask, bool where,
                            double fill) {
  const rule_tensor *was = agree_value(a, j, 0);
  rule_tensor *t, *own;
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &t, a->err);
  if (c) return c;
  for (int64_t i = 0; i < was->numel; i++) {
    int64_t k = i;
    const bool hidden = (rule_tensor_get(mask, i) != 0) == where;
    while (!hidden && rule_tensor_get(was, k) == fill) k = (k + 1) % was->numel;
    rule_tensor_set(t, i, hidden ? fill : rule_tensor_get(was, k));
  }
  for (size_t i = 0; i < a->n && !c; i++) {
    if (a->in[i].group != j) continue;
    if (!(c = agree_as_input(a, t, agree_node(a, i), &own))) agree_set_last(a, s, i, own);
  }
  rule_tensor_unref(t);
  return c;
}

iso_code agree_fill(agree *a, agree_sets *s, size_t g, const rule_tensor *mask) {
  iso_code c = ISO_OK;
  for (size_t j = 0; j < a->n && !c; j++) {
    double fill = 0;
    if (a->in[j].hangs >= 0 || agree_look_of(a, j) != NUMBERS || !may_hang(a, j)) continue;
    for (int where = 0; where < 2 && !c; where++)
      if (is_filled(a, j, g, where, &fill)) c = draw_filled(a, s, j, mask, where, fill);
  }
  return c;
}
