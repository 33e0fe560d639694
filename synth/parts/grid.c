/* Parts that ranks hold of two groups at once: a rank's batch of its heads, or its summand of its
 * rows.
 *
 * Ranks form a grid. The parts of each row, put together or added, make a part as one rank of the
 * other group would hold it; these are put together to the whole, or to a multiple of it.
 * Neighbours are one group, ranks that are equally far apart the other. Values decide before any
 * node is made. */
#include "synth/joint/joint.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <math.h>

/* In place of the dimension along which a group is put together: how it is reduced. */
enum { ADDED = RULE_MAX_RANK, LARGEST, SMALLEST, WAYS };
/* operator: a collective's ways to reduce, no operators' names */
static const char *const HOW[] = {"sum", "max", "min"};

/* How the parts are grouped. */
typedef struct grid {
  uint32_t groups, each; /* how many, of how many parts */
  bool apart;            /* a group's parts are as many apart as there are groups */
  uint32_t d;            /* or one of ADDED, LARGEST, SMALLEST */
} grid;

static void group_of(const st_parts *p, const grid *g, uint32_t k, st_parts *out) {
  *out = (st_parts){.n = g->each, .by = 1, .scale = 1};
  for (uint32_t i = 0; i < g->each; i++) {
    const uint32_t at = g->apart ? i * g->groups + k : k * g->each + i;
    out->of[i] = p->of[at];
    out->value[i] = p->value[at];
  }
}

static iso_code reduced(const st_parts *p, uint32_t how, rule_tensor **out, iso_error *err) {
  const rule_shape *shape = &p->value[0]->shape;
  *out = NULL;
  for (uint32_t k = 0; k < p->n; k++)
    if (!rule_shape_eq(shape, &p->value[k]->shape) || !rule_dtype_is_float(p->value[k]->dtype))
      return ISO_OK;
  iso_code c = rule_tensor_new(RULE_F64, shape, out, err);
  for (int64_t i = 0; !c && i < (*out)->numel; i++) {
    double all = rule_tensor_get(p->value[0], i);
    for (uint32_t k = 1; k < p->n; k++) {
      const double x = rule_tensor_get(p->value[k], i);
      all = how == ADDED ? all + x : how == LARGEST ? fmax(all, x) : fmin(all, x);
    }
    rule_tensor_set(*out, i, all);
  }
  return c;
}

/* Each group's result, by value: the whole is these, divided as the parts are. Owns: the caller
 * unrefs `out`'s, as many as it has. */
static iso_code make_values(const st_parts *p, const grid *g, st_parts *out, rule_tensor **own,
                            iso_error *err) {
  iso_code c = ISO_OK;
  *out = (st_parts){.by = p->by, .scale = p->scale};
  for (uint32_t k = 0; k < g->groups && !c; k++) {
    st_parts one;
    group_of(p, g, k, &one);
    c = g->d >= ADDED ? reduced(&one, g->d, &own[k], err)
                      : st_concatenated(&one, g->d, &own[k], err);
    if (c || !own[k]) break;
    out->value[out->n++] = own[k];
  }
  return c;
}

/* Nodes for them. */
static iso_code make_nodes(state *s, const st_parts *p, const grid *g, st_parts *out,
                           iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < g->groups && !c; k++) {
    st_parts one;
    group_of(p, g, k, &one);
    const rule_term *t = g->d >= ADDED ? st_reduced(s, &one, HOW[g->d - ADDED])
                                       : st_joined(&s->arena, &one, NULL, g->d);
    if (!t) return iso_fail(err, ISO_NOMEM, "out of memory");
    c = st_add_term(s, t, one.of, &out->of[k], err);
    if (!c) c = st_value(s, out->of[k], err);
    if (!c && !(out->value[k] = st_val(s, out->of[k], s->n_draws - 1)))
      c = st_lost(&s->values, err);
  }
  return c;
}

/* Whether the groups' results are a cut of `whole`, or of a tensor that is found. */
static iso_code fits(state *s, const st_parts *made, eg_node whole, st_sought *x, bool *yes,
                     iso_error *err) {
  eg_node of[MOST_WHOLES] = {whole};
  uint32_t n = 1;
  *yes = false;
  x->numel = st_moments_of_all(made, x->moment);
  st_scale_moments(x->moment, made->scale, x->moment);
  if (whole.i == EG_NONE) n = st_wholes(s, made, x, of);
  for (uint32_t i = 0; i < n && !*yes; i++) {
    const rule_tensor *v = st_val(s, of[i], s->n_draws - 1);
    if (!v) return st_lost(&s->values, err);
    *yes = v->numel == x->numel && st_is_cut(v, made);
  }
  return ISO_OK;
}

/* The tensor that the groups' results are along a dimension: `d`. */
static iso_code whole_of(state *s, const st_parts *made, const st_sought *x, eg_node *whole,
                         uint32_t *d, bool *found, iso_error *err) {
  eg_node of[MOST_WHOLES] = {*whole};
  const uint32_t n = whole->i == EG_NONE ? st_wholes(s, made, x, of) : 1;
  *found = false;
  for (uint32_t i = 0; i < n && !*found; i++) {
    const rule_tensor *v = st_val(s, of[i], s->n_draws - 1);
    if (!v) return st_lost(&s->values, err);
    *found = st_is_cut_along(v, made, d);
    *whole = of[i];
  }
  return ISO_OK;
}

/* Group by group: the whole's steps on a group's rows equal the group's result. */
static iso_code by_groups(state *s, const st_parts *p, const grid *g, const st_parts *made,
                          eg_node whole, st_sought *x, iso_error *err) {
  eg_node rows[MAX_RANKS];
  uint32_t d;
  bool there;
  iso_code c = whole_of(s, made, x, &whole, &d, &there, err);
  if (!c && there) c = st_rows_of(s, whole, made->n, d, rows, &there, err);
  bool all = !c && there;
  for (uint32_t k = 0; k < g->groups && all && !c; k++) {
    st_parts one;
    bool met = false;
    group_of(p, g, k, &one);
    c = st_join_whole(s, &one, rows[k], &met, err);
    if (!c) c = eg_rebuild(s->g, err);
    all = eg_equal(s->g, rows[k], made->of[k]);
  }
  if (all && !c) x->met = true, x->at = whole;
  return c;
}

static iso_code try_grid(state *s, const st_parts *p, const grid *g, eg_node whole, st_sought *x,
                         iso_error *err) {
  rule_tensor *own[MAX_RANKS] = {NULL};
  st_parts made;
  bool yes = false;
  iso_code c = make_values(p, g, &made, own, err);
  if (!c && made.n == g->groups) c = fits(s, &made, whole, x, &yes, err);
  for (uint32_t k = 0; k < g->groups; k++) rule_tensor_unref(own[k]);
  if (c || !yes) return c;
  if ((c = make_nodes(s, p, g, &made, err))) return c;
  if (p->by == 1) c = by_groups(s, p, g, &made, whole, x, err);
  if (c || x->met) return c;
  return whole.i == EG_NONE ? st_join_cut(s, &made, x, err)
                            : st_join_whole(s, &made, whole, &x->met, err);
}

/* Whether some tensor has the elements of all parts: however these are put together. */
static bool any_cut(state *s, const st_parts *p, const st_sought *x) {
  st_sought all = *x;
  eg_node of[MOST_WHOLES];
  all.numel = st_moments_of_all(p, all.moment);
  st_scale_moments(all.moment, p->scale, all.moment);
  return st_wholes(s, p, &all, of) > 0;
}

iso_code st_join_grid(state *s, const st_parts *p, eg_node whole, st_sought *x, iso_error *err) {
  iso_code c = ISO_OK;
  const bool cut = whole.i != EG_NONE || any_cut(s, p, x);
  const uint32_t rank = p->value[0]->shape.rank;
  for (uint32_t each = 2; 2 * each <= p->n; each++)
    for (int apart = 0; apart < 2 && p->n % each == 0; apart++)
      for (uint32_t d = 0; d < rank + WAYS - ADDED && !c && !x->met; d++) {
        if (d < rank && !cut) continue;
        const grid g = {p->n / each, each, apart == 1, d < rank ? rank - 1 - d : ADDED + d - rank};
        if (g.d > ADDED && (p->pieces || whole.i == EG_NONE)) continue; /* what is 0 is no sign */
        c = try_grid(s, p, &g, whole, x, err);
      }
  return c;
}
