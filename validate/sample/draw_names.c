/* Values for open names, drawn so that the conditions hold: one name after another, the last one of
 * a condition by solving it. Sizes are small, or suggested by the rule: its literals, sizes drawn
 * before, their products and quotients. */
#include <math.h>

#include "validate/sample/instance_int.h"

enum { DRAWS = 300, FEW = 64 };

static int64_t small_size(const val_problem *p, iso_rng *rng) {
  static const int64_t sizes[] = {1, 2, 3, 2, 3, 4, 1, 5, 6, 4, 7, 8};
  static const int64_t more[] = {8, 12, 6, 16, 7, 9, 12, 5};
  if (p->roomy) return more[iso_rng_below(rng, 8)];
  for (;;) {
    const int64_t v = sizes[iso_rng_below(rng, 12)];
    if (v <= p->max_size || (v > 6 && p->max_size >= 6)) return v;
  }
}

/* A size or integer that is known: a name's, or of a shape. 0 where there is none. One that
 * conditions made large (scale^4 * size = 1) is not taken again: operators multiply sizes (scores
 * of all pairs) until there is no memory for them. */
static int64_t known_size(const val_problem *p, iso_rng *rng) {
  enum { LARGEST = 512 };
  if (p->n_names == 0) return 0;
  const val_name *n = &p->name[iso_rng_below(rng, p->n_names)];
  if (n->set && (n->kind == 's' || n->kind == 'i') && n->i >= 1 && n->i <= LARGEST) return n->i;
  if (p->r->n_vars == 0) return 0;
  const uint64_t v = iso_rng_below(rng, p->r->n_vars);
  return p->lead_rank[v] > 0 ? p->lead[v][iso_rng_below(rng, p->lead_rank[v])] : 0;
}

static int64_t draw_size(const val_problem *p, iso_rng *rng) {
  const uint64_t how = iso_rng_below(rng, 16);
  const int64_t a = known_size(p, rng), b = known_size(p, rng);
  if (how < 3 && a > 0) return a;
  if (how == 3 && a > 0 && b > 0 && a * b <= 64) return a * b;
  if (how == 4 && a > 0 && b > 0) return a % b == 0 ? a / b : a + b;
  if (how == 5 && p->n_suggested > 0) {
    const int64_t s = p->suggested[iso_rng_below(rng, p->n_suggested)];
    if (!p->few || s <= FEW) return s;
  }
  if (how == 6 && a > 0 && p->n_suggested > 0) {
    const int64_t s = p->suggested[iso_rng_below(rng, p->n_suggested)];
    if (a * s <= 64) return a * s;
    if (a % s == 0) return a / s;
  }
  return small_size(p, rng);
}

static double draw_real(const val_problem *p, const val_name *n, iso_rng *rng) {
  static const double some[] = {0.5, 2, -1, 3, 1, 0.25, -2, 1.5, 0, 0.1, 10, -0.75};
  static const double eps[] = {1e-5, 1e-3, 0.1, 1, 1e-6, 1e-12};
  if (n->role == 'e') return eps[iso_rng_below(rng, 6)];
  /* A number that is added where a root or a quotient is taken keeps it from having no value only
   * if it is positive. */
  if (p->few && n->role != 'p' && iso_rng_below(rng, 2) == 0) return -(double)iso_rng_below(rng, 2);
  const double v = iso_rng_below(rng, 3) == 0 ? iso_rng_normal(rng) : some[iso_rng_below(rng, 12)];
  return n->role == 'p' ? fabs(v) + (v == 0 ? 0.5 : 0) : v;
}

static void draw_name(val_problem *p, val_name *n, iso_rng *rng) {
  n->set = false;
  if (p->pinned == 1 + (uint32_t)(n - p->name)) n->i = p->pin;
  else if (n->kind == 's') n->i = draw_size(p, rng);
  else if (n->kind == 'f') n->f = draw_real(p, n, rng);
  else if (n->kind == 'i') {
    const uint64_t how = iso_rng_below(rng, 8);
    if (n->role == 'd') n->i = (int64_t)iso_rng_below(rng, 7) - 3;
    else
      n->i = how < 3   ? (int64_t)iso_rng_below(rng, 4)
             : how < 4 ? -1 - (int64_t)iso_rng_below(rng, 2)
                       : draw_size(p, rng);
  } else {
    n->n = 1 + (uint32_t)iso_rng_below(rng, 4);
    const bool dims = n->role == 'd' || iso_rng_below(rng, 2);
    for (uint32_t i = 0; i < n->n; i++) n->list[i] = dims ? (int64_t)i : draw_size(p, rng);
    for (uint32_t i = n->n; dims && i > 1; i--) { /* an order of the dimensions */
      const uint32_t j = (uint32_t)iso_rng_below(rng, i);
      const int64_t t = n->list[i - 1];
      n->list[i - 1] = n->list[j];
      n->list[j] = t;
    }
  }
  n->set = true;
}

/* Leading dimensions: one shape for all, broadcast against it, or each its own. */
static void draw_leads(val_problem *p, iso_rng *rng) {
  const bool some = iso_rng_below(rng, 8) != 0;
  int64_t shared[VAL_MAX_LEAD];
  const uint32_t shared_rank = (uint32_t)iso_rng_below(rng, p->roomy ? 2 : VAL_MAX_LEAD) + p->roomy;
  const uint64_t how = iso_rng_below(
      rng,
      p->roomy
          ? 2
          : 8); /* 2: broadcast; 3: free; 4: one alone has it; 5: one alone has not; else equal */
  bool leads = false;
  for (uint32_t v = 0; v < p->r->n_vars; v++)
    leads |= p->r->var[v].any_shape || p->r->var[v].leading;
  const uint32_t alone = leads ? (uint32_t)iso_rng_below(rng, p->r->n_vars) : 0;
  for (uint32_t i = 0; i < VAL_MAX_LEAD; i++) shared[i] = small_size(p, rng);
  for (uint32_t v = 0; v < p->r->n_vars; v++) {
    const rule_variable *x = &p->r->var[v];
    p->lead_rank[v] = 0;
    if (!x->any_shape && !x->leading) continue;
    uint32_t rank = some || x->any_shape ? shared_rank : 0;
    if (how == 2 && rank > 0) rank -= (uint32_t)iso_rng_below(rng, rank + 1);
    if (how == 3) rank = (uint32_t)iso_rng_below(rng, VAL_MAX_LEAD);
    if ((how == 4 && v != alone) || (how == 5 && v == alone)) rank = 0;
    if (rank + x->n_dims > RULE_MAX_RANK) rank = 0;
    p->lead_rank[v] = rank;
    for (uint32_t i = 0; i < rank; i++) { /* from the right, as broadcasting does */
      p->lead[v][rank - 1 - i] = how == 3 ? small_size(p, rng) : shared[VAL_MAX_LEAD - 1 - i];
      if (how == 2 && iso_rng_below(rng, 3) == 0) p->lead[v][rank - 1 - i] = 1;
    }
  }
}

/* Solves conditions with one name left, and checks the others. Returns: false where one is
 * false. */
static bool propagate(val_problem *p, iso_rng *rng) {
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < p->n_where; i++) {
      uint32_t which = 0;
      const val_truth v = val_condition_at(p, p->where[i]);
      if (v == VAL_FALSE) return false;
      if (v == VAL_TRUE) continue;
      if (!val_last_open(p, p->where[i], &which)) continue;
      if (!val_solve_last(p, p->where[i], which, rng)) return false;
      moved = true;
    }
  }
  return true;
}

bool val_names_hold(const val_problem *p) {
  for (uint32_t i = 0; i < p->n_where; i++)
    if (val_condition_at(p, p->where[i]) != VAL_TRUE) return false;
  for (uint32_t i = 0; i < p->n_names; i++)
    if (!p->name[i].set || (p->name[i].kind == 's' && p->name[i].i < 1)) return false;
  return true;
}

/* Give the names that are open values, in a random order, conditions solved as they become so. */
static bool complete(val_problem *p, iso_rng *rng) {
  if (!propagate(p, rng)) return false;
  const uint32_t start = p->n_names > 0 ? (uint32_t)iso_rng_below(rng, p->n_names) : 0;
  const bool back = iso_rng_below(rng, 2) == 0;
  for (uint32_t k = 0; k < p->n_names; k++) {
    val_name *n = &p->name[(start + (back ? p->n_names - k : k)) % p->n_names];
    if (n->set) continue;
    draw_name(p, n, rng);
    if (!propagate(p, rng)) return false;
  }
  return val_names_hold(p);
}

static bool some_integer(const val_problem *p) {
  for (uint32_t k = 0; k < p->n_names; k++)
    if (p->name[k].kind == 'i') return true;
  return false;
}

static uint32_t any_integer(const val_problem *p, iso_rng *rng) {
  const uint32_t start = (uint32_t)iso_rng_below(rng, p->n_names);
  for (uint32_t k = 0; k < p->n_names; k++)
    if (p->name[(start + k) % p->n_names].kind == 'i') return (start + k) % p->n_names;
  return p->n_names;
}

/* An integer attribute as far as the conditions let it go, one way or the other, or equal to
 * another: a condition that is off by one fails only there. */
static void to_the_edge(val_problem *p, iso_rng *rng) {
  enum { FAR = 12 };
  const uint32_t at = any_integer(p, rng);
  uint32_t other = any_integer(p, rng);
  if (other == at) other = any_integer(p, rng);
  int64_t *v = &p->name[at].i, was = *v;
  const uint64_t how = p->n_where ? iso_rng_below(rng, 3) : 2;
  if (how == 2) {
    *v = p->name[other].i;
    if (!val_names_hold(p)) *v = was;
    return;
  }
  for (int k = 0; k < FAR && val_names_hold(p); k++) was = *v, *v += how ? 1 : -1;
  *v = was;
}

/* How far the attribute may go in one direction, at most 16; it is put back. */
static double room_of(const val_problem *p, val_name *n, double sign) {
  const double was = n->f;
  double in = 0, out = 16;
  for (int k = 0; k < 40 && out - in > 1e-12; k++) {
    const double d = k == 0 ? out : (in + out) / 2;
    n->f = was + sign * d;
    if (!val_names_hold(p)) out = d;
    else in = d;
    if (in == out) break;
  }
  n->f = was;
  /* Conditions hold within a tolerance, so a number within it may lie beyond the bound. */
  return out == 0 || in == out ? in : fmax(0, in - 1e-8 * (fabs(was) + in + 1));
}

/* A real attribute within its bounds, close to one of them more often than not: solving finds the
 * bounds themselves, and of wide ones chance finds only the inside. */
static void to_the_bound(val_problem *p, iso_rng *rng) {
  for (uint32_t k = 0; k < p->n_names; k++) {
    val_name *n = &p->name[k];
    if (n->kind != 'f' || n->hidden) continue;
    const double sign = iso_rng_below(rng, 2) ? 1 : -1, was = n->f, room = room_of(p, n, sign);
    const double back = fmin(1, pow(10, -(double)iso_rng_below(rng, 7)) / fmax(room, 1e-12));
    if (room == 0 || room == 16) continue;
    n->f = was + sign * room * (1 - back * iso_rng_uniform(rng));
    if (!val_names_hold(p)) n->f = was;
  }
}

bool val_draw_names(val_problem *p, iso_rng *rng) {
  for (int i = 0; i < DRAWS; i++) {
    for (uint32_t k = 0; k < p->n_names; k++) p->name[k].set = false;
    if (p->pinned) draw_name(p, &p->name[p->pinned - 1], rng);
    draw_leads(p, rng);
    if (!complete(p, rng)) continue;
    if (some_integer(p) && iso_rng_below(rng, p->n_where ? 2 : 4) == 0) to_the_edge(p, rng);
    if (p->n_where && iso_rng_below(rng, 2)) to_the_bound(p, rng);
    return true;
  }
  return false;
}

bool val_vary_names(val_problem *p, iso_rng *rng) {
  for (int attempt = 0; attempt < 8; attempt++) {
    if (iso_rng_below(rng, 3) == 0 || p->n_names == 0) draw_leads(p, rng);
    const uint64_t n = 1 + iso_rng_below(rng, 2);
    for (uint64_t k = 0; k < n && p->n_names > 0; k++) {
      val_name *x = &p->name[iso_rng_below(rng, p->n_names)];
      draw_name(p, x, rng);
    }
    if (val_names_hold(p)) return true;
    /* Names that an equation ties together move together. */
    for (uint32_t k = 0; k < p->n_names; k++)
      if (iso_rng_below(rng, 3) == 0) p->name[k].set = false;
    if (!complete(p, rng)) continue;
    if (some_integer(p) && iso_rng_below(rng, p->n_where ? 2 : 4) == 0) to_the_edge(p, rng);
    return true;
  }
  return val_draw_names(p, rng);
}
