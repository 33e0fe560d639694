/* Literals that went through a narrower dtype on one side only: 0.11180339753627777 is what 1 /
 * sqrt(80) became in a tensor that somebody took a number out of. Where the other side writes a
 * number of more digits that rounds to it, or divides by one, that is the number meant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "synth/constants/constants.h"
#include "synth/joint/joint.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

enum { MAX_LITERALS = 256 };

typedef struct literals {
  double v[MAX_LITERALS];
  size_t n;
} literals;

static bool holds(const literals *x, double v) {
  for (size_t i = 0; i < x->n; i++)
    if (x->v[i] == v) return true;
  return false;
}

static void collect(literals *x, const rule_term *t) {
  if (t->kind == RULE_FLOAT && isfinite(t->u.f) && t->u.f != 0 && x->n < MAX_LITERALS &&
      !holds(x, t->u.f))
    x->v[x->n++] = t->u.f;
  for (uint32_t i = 0; i < t->n; i++) collect(x, t->child[i]);
}

bool st_uses_float32(double v) {
  int exponent;
  const double m = ldexp(frexp(v, &exponent), 15);
  return isfinite(v) && (double)(float)v == v && m != floor(m);
}

/* Nobody writes so many digits of a number that a narrow dtype holds. */
static bool many_digits(double v) {
  enum { MANY = 7 };
  char text[40];
  snprintf(text, sizeof text, "%.*g", MANY - 1, v);
  return strtod(text, NULL) != v;
}

/* Whether a narrower dtype makes `v` of `x`. */
static bool makes(double x, double v) {
  if (st_uses_float32(v)) return (double)(float)x == v;
  int exponent;
  for (int digits = 8; digits <= 11; digits += 3) { /* bfloat16, float16 */
    frexp(x, &exponent);
    const double unit = ldexp(1, exponent - digits);
    if (nearbyint(x / unit) * unit == v) return many_digits(v);
  }
  return false;
}

/* The other side's number of which `v` is the rounded one; `v` if there is none. */
static double meant(double v, const literals *own, const literals *other) {
  if (holds(other, v)) return v;
  for (size_t i = 0; i < other->n; i++) {
    const double l = other->v[i], of[2] = {l, 1 / l};
    for (int k = 0; k < 2; k++)
      if (of[k] != v && makes(of[k], v) && !makes(v, of[k]) && !holds(own, of[k])) return of[k];
  }
  return v;
}

iso_code st_find_readings(state *s, const bool *const live[2], iso_error *err) {
  literals *all = calloc(2, sizeof *all);
  if (!all) return nomem(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (live[side][i] && s->graph[side]->node[i].kind == SYNTH_OP)
        collect(&all[side], s->graph[side]->node[i].call);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < all[side].n; i++) {
      const double v = all[side].v[i], to = meant(v, &all[side], &all[!side]);
      if (to == v) continue;
      if (!iso_grow(s->constants.reading, s->constants.cap_readings, s->constants.n_readings + 1)) {
        free(all);
        return nomem(err);
      }
      s->constants.reading[s->constants.n_readings++] = (st_reading){side, v, to};
    }
  free(all);
  return ISO_OK;
}

/* NULL in `out`: no literal of it is read as another number, and `x` stays as it is. */
static iso_code read_term(state *s, int side, const rule_term *t, const rule_term **out,
                          const st_reading **x, iso_error *err) {
  *out = t;
  if (t->kind == RULE_FLOAT)
    for (size_t i = 0; i < s->constants.n_readings; i++)
      if (s->constants.reading[i].side == side && s->constants.reading[i].from == t->u.f) {
        *x = &s->constants.reading[i];
        return (*out = rule_float(&s->arena, s->constants.reading[i].to)) ? ISO_OK : nomem(err);
      }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return ISO_OK;
  const rule_term **child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
  bool changed = false;
  if (!child) return nomem(err);
  for (uint32_t k = 0; k < t->n; k++) {
    iso_code c = read_term(s, side, t->child[k], &child[k], x, err);
    if (c) return c;
    changed |= child[k] != t->child[k];
  }
  if (changed)
    *out = t->kind == RULE_OP ? rule_op(&s->arena, t->u.s, child, t->n)
                              : rule_list(&s->arena, child, t->n);
  return *out ? ISO_OK : nomem(err);
}

iso_code st_read_rounded(state *s, int side, uint32_t node, const rule_term **out, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[node];
  const st_reading *x = NULL;
  *out = NULL;
  if (s->constants.n_readings == 0) return ISO_OK;
  const rule_term *read;
  iso_code c = read_term(s, side, n->call, &read, &x, err);
  if (c || !x) return c;
  const char *text = iso_arena_printf(
      &s->arena, "%s's %s has %.9g, which a narrower dtype makes of the other side's %.17g",
      side == LEFT ? "left" : "right", n->id, x->from, x->to);
  const eg_node none = {EG_NONE};
  if (!text || !st_assume(s, RULE_ASSUMES_ROUNDING, none, none, NULL, text) ||
      !iso_grow(s->constants.rounded, s->constants.cap_rounded, s->constants.n_rounded + 1))
    return nomem(err);
  s->constants.rounded[s->constants.n_rounded++] = (st_rounded){.assumption = s->assumed.n - 1,
                                                                .node = {none, none},
                                                                .side = side,
                                                                .captured = node,
                                                                .call = n->call};
  *out = read;
  return ISO_OK;
}
