/* Inputs on all of their sets, and within the domains that their captures declare. */
#include "synth/joint/joint.h"
#include "rules/names.h"
#include "synth/leaves/leaves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "rules/permutation.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- what is kept ---- */

typedef struct shape_of { /* what one row, or all, of an input's integers look like */
  bool steps, same, bits, adds_up, restarts;
} shape_of;

/* 0, 0, 3, 7: bounds of sequences, or which of them an element is of. 0, 1, 2, 0, 1: positions in
 * several of them, perhaps behind padding that is one number. */
static void look_at_row(const rule_tensor *t, int64_t from, int64_t n, shape_of *s) {
  enum { FEW = 3 };
  int64_t up = 0;
  const int64_t first = rule_tensor_get_int(t, from);
  bool padding = first == 0 || first == 1;
  s->adds_up &= n >= FEW && first == 0 && rule_tensor_get_int(t, from + n - 1) > 0;
  s->restarts &= n > FEW && padding;
  for (int64_t i = from + 1; i < from + n; i++) {
    const int64_t x = rule_tensor_get_int(t, i), d = x - rule_tensor_get_int(t, i - 1);
    padding &= d == 0;
    s->adds_up &= d >= 0;
    s->restarts &= d == 1 || x == 0 || padding;
    up += d == 1;
  }
  s->restarts &= 2 * up >= n;
}

static shape_of look_at(const rule_tensor *t) {
  shape_of s = {true, true, true, t->numel > 0, t->numel > 0};
  const int64_t row = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  for (int64_t i = 0; i < t->numel; i++) {
    const int64_t v = rule_tensor_get_int(t, i), d = i ? v - rule_tensor_get_int(t, i - 1) : 0;
    s.steps &= i == 0 || d == 1;
    s.same &= d == 0;
    s.bits &= v == 0 || v == 1;
  }
  for (int64_t i = 0; row > 0 && i < t->numel; i += row) look_at_row(t, i, row, &s);
  return s;
}

static bool permutes(const synth_node *n) { return rule_domain_permutes(n->domain, n->dtype); }

/* Zeros and ones that a loss is told as its classes are no mask: the others may be meant, too. What
 * comes of a mask may be no others. */
static bool are_classes(const state *s, int side, size_t i, const bool *live) {
  const synth_node *n = &s->graph[side]->node[i];
  if (!rule_dtype_is_int(n->value[0]->dtype)) return false;
  for (size_t set = 0; n->kept && set < s->n_sets; set++)
    if (!look_at(n->value[set]).bits) return false;
  return st_chooses_rows(s, side, i, live) == ST_ROWS_CLASSES;
}

/* A position, a length or a bound has a visible structure (0, 1, 2, ..., or one value) on every
 * set, and is kept; so are inputs that are not numeric, and inputs whose domain relates elements.
 * An input that chooses rows of a table is no bound of a sequence, nor is one that a domain says to
 * be any numbers. The target classes of a loss may be any, even where the captured ones have a
 * structure. */
bool st_structured(const state *s, int side, size_t i, const bool *live) {
  const synth_node *n = &s->graph[side]->node[i];
  const rule_tensor *t = n->value[0];
  if (s->leaves.frees_by_chance && st_kept_by_chance(s, side, i, live)) return false;
  const bool joint = n->domain && rule_domain_is_joint(n->domain);
  if (!joint && are_classes(s, side, i, live)) return false;
  if (n->kept) return true;
  if (joint) return !permutes(n);
  if (rule_dtype_is_inexact(t->dtype)) return t->numel == 0;
  if (!rule_dtype_is_int(t->dtype)) return true;
  const st_rows rows = st_chooses_rows(s, side, i, live);
  shape_of every = {true, true, true, true, true};
  bool one_zero = t->numel == 1;
  for (size_t set = 0; set < s->n_sets; set++) {
    const shape_of x = look_at(n->value[set]);
    one_zero &= t->numel == 1 && rule_tensor_get_int(n->value[set], 0) == 0;
    every = (shape_of){every.steps && x.steps, every.same && x.same, every.bits && x.bits,
                       every.adds_up && x.adds_up, every.restarts && x.restarts};
  }
  /* One number has no structure to see, but for 0, where positions begin. */
  if (t->numel == 1) return one_zero;
  if (every.steps || every.same || every.bits) return true;
  return !n->domain && (every.adds_up || every.restarts) && rows == ST_ROWS_NONE;
}

/* ---- relations on every set ---- */

/* Elements that are equal on every set get one number: a layout of these numbers is then a layout
 * on each set. */
iso_code st_all_sets(const state *s, const synth_node *n, rule_tensor **out, iso_error *err) {
  const rule_tensor *t = n->value[0];
  if (n->kind != SYNTH_INPUT || s->n_sets < 2) return *out = rule_tensor_ref(n->value[0]), ISO_OK;
  const size_t size = rule_dtype_size(t->dtype);
  iso_code c = rule_tensor_new(RULE_I64, &t->shape, out, err);
  for (int64_t i = 0; !c && i < t->numel; i++) {
    uint64_t h = (uint64_t)t->dtype;
    for (size_t set = 0; set < s->n_sets; set++)
      h = iso_hash((const char *)n->value[set]->data + (size_t)i * size, size, h);
    memcpy((char *)(*out)->data + (size_t)i * sizeof h, &h, sizeof h);
  }
  return c;
}

/* The numbers of elements are hashes, so a relation found by them is checked against the values. */
iso_code st_hold_on_sets(state *s, int side, size_t i, synth_relation *r, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t set = 0; r->term && s->n_sets > 1 && set < s->n_sets && !c; set++) {
    rule_tensor *v = NULL;
    c = st_value_over(s, !side, r->term, set, &v, err);
    if (!c && !rule_tensor_same(v, s->graph[side]->node[i].value[set])) r->term = NULL;
    rule_tensor_unref(v);
  }
  return c;
}

/* ---- draws ---- */

/* The elements of `v` that are the part. Owns: the caller unrefs. */
static iso_code take_part(const st_drawn_part *p, const rule_tensor *v, rule_tensor **out,
                          iso_error *err) {
  const size_t size = rule_dtype_size(v->dtype);
  const iso_code c = rule_tensor_new(v->dtype, &p->at->shape, out, err);
  for (int64_t k = 0; !c && k < p->at->numel; k++)
    memcpy((char *)(*out)->data + (size_t)k * size,
           (const char *)v->data + (size_t)rule_tensor_get_int(p->at, k) * size, size);
  return c;
}

/* Changes the elements of each part of the leaf that are outside of the part's own domain. Returns:
 * in `inside` whether all are inside then. */
static iso_code fit_parts(const state *s, const synth_node *whole, size_t round, iso_rng *rng,
                          rule_tensor *v, bool *inside, iso_error *err) {
  const size_t size = rule_dtype_size(v->dtype);
  iso_code c = ISO_OK;
  *inside = true;
  for (size_t k = 0; k < s->leaves.n_parts && !c; k++) {
    const st_drawn_part *p = &s->leaves.part[k];
    rule_tensor *own;
    if (&s->graph[p->side]->node[p->leaf] != whole) continue;
    if ((c = take_part(p, v, &own, err))) break;
    if (!rule_domain_admits(p->domain, own, NULL, 0))
      *inside &= rule_domain_fit(p->domain, -INFINITY, INFINITY, (unsigned)round, rng, own);
    for (int64_t j = 0; j < own->numel; j++)
      memcpy((char *)v->data + (size_t)rule_tensor_get_int(p->at, j) * size,
             (const char *)own->data + (size_t)j * size, size);
    rule_tensor_unref(own);
  }
  return c;
}

iso_code st_fit(const state *s, int side, size_t i, size_t round, iso_rng *rng, rule_tensor **v,
                iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const st_range *r = st_range_of(s, side, i);
  const rule_domain *d = n->domain;
  const bool ints = rule_dtype_is_int(n->value[0]->dtype);
  double low = -INFINITY, high = INFINITY;
  bool inside = true;
  if (n->kind != SYNTH_INPUT || (!d && !s->leaves.n_parts) || rule_dtype_is_complex((*v)->dtype))
    return ISO_OK;
  if (ints && r->told) low = (double)r->low, high = (double)r->high - 1;
  if (d && !rule_domain_admits(d, *v, NULL, 0))
    inside = rule_domain_fit(d, low, high, (unsigned)round, rng, *v);
  if (inside) {
    const iso_code c = fit_parts(s, n, round, rng, *v, &inside, err);
    if (c || (inside && (!d || rule_domain_admits(d, *v, NULL, 0)))) return c;
  }
  rule_tensor_unref(*v);
  *v = NULL;
  return rule_tensor_to_float64(n->value[0], v, err);
}

const st_range *st_interval(const state *s, int side, size_t leaf, int64_t *low, int64_t *high) {
  const synth_node *n = &s->graph[side]->node[leaf];
  const st_range *r = st_range_of(s, side, leaf);
  const rule_domain *d = n->domain;
  *low = r->told ? r->low : INT64_MAX;
  *high = r->told ? r->high : INT64_MIN;
  if (r->told) return r;
  if (d && isfinite(d->low) && isfinite(d->high)) {
    *low = (int64_t)d->low;
    *high = (int64_t)d->high + 1;
    return r;
  }
  const rule_tensor *v = n->value[0];
  for (int64_t i = 0; i < v->numel; i++) {
    const int64_t x = rule_tensor_get_int(v, i);
    if (x < *low) *low = x;
    if (x >= *high) *high = x + 1;
  }
  return r;
}

bool st_admits(const state *s, eg_node e, const rule_tensor *v) {
  for (int side = 0; side < 2; side++) {
    const int32_t i = s->rec[e.i].node[side];
    const rule_domain *d = i >= 0 ? s->graph[side]->node[i].domain : NULL;
    if (d && !rule_domain_admits(d, v, NULL, 0)) return false;
    for (size_t k = 0; i >= 0 && k < s->leaves.n_parts; k++) {
      const st_drawn_part *p = &s->leaves.part[k];
      if (p->side != side || p->leaf != (size_t)i) continue;
      for (int64_t j = 0; j < p->at->numel; j++)
        if (!rule_domain_has(p->domain, rule_tensor_get(v, rule_tensor_get_int(p->at, j))))
          return false;
    }
  }
  return true;
}

/* A statement about each element of a leaf by itself holds for the elements of the leaves that it
 * is made of: of those it takes a part of, it says nothing about the rest. */
static iso_code pass_on(state *s, synth_node *of, const rule_term *t, const rule_domain *d,
                        iso_error *err) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_OP && rule_operator_of(t->u.s)->part) return ISO_OK;
  for (uint32_t k = 0; k < t->n && !c; k++) c = pass_on(s, of, t->child[k], d, err);
  if (c || t->kind != RULE_VAR) return c;
  synth_node *n = &of[t->u.i];
  const rule_domain alone = {.low = d->low,
                             .high = d->high,
                             .exclude = d->exclude,
                             .n_exclude = d->n_exclude,
                             .who = d->who};
  const rule_domain was = n->domain ? *n->domain : rule_domain_all(d->who);
  bool empty = false;
  rule_domain *both = rule_domain_meet(&s->arena, &was, &alone, n->dtype, &n->shape, &empty);
  if (!both) return nomem(err);
  if (!empty) n->domain = both;
  return ISO_OK;
}

iso_code st_pass_domain_on(state *s, int side, size_t i, const rule_term *t, iso_error *err) {
  const rule_domain *d = s->graph[side]->node[i].domain;
  if (!d || t->kind == RULE_VAR || rule_domain_is_open(d)) return ISO_OK;
  /* Our own copy of the nodes (own_nodes). */
  return pass_on(s, (synth_node *)(uintptr_t)s->graph[!side]->node, t, d, err);
}

static bool same_statement(const rule_domain *a, const rule_domain *b) {
  bool same = a->low == b->low && a->high == b->high && a->n_exclude == b->n_exclude;
  for (size_t k = 0; k < a->n_exclude && same; k++) same = a->exclude[k] == b->exclude[k];
  return same;
}

static bool reads_only(const rule_term *t, size_t leaf) {
  if (t->kind == RULE_VAR) return (size_t)t->u.i == leaf;
  for (uint32_t k = 0; k < t->n; k++)
    if (!reads_only(t->child[k], leaf)) return false;
  return true;
}

/* A leaf of the other side is made of elements of the part's: which these are. Counts in `n` those
 * that no other part has. */
static iso_code note_part(state *s, st_drawn_part part, const rule_term *t,
                          rule_tensor *const *number, char *taken, int64_t *n, iso_error *err) {
  rule_tensor *v = NULL;
  iso_code c = st_term_over(s, t, number, &v, err);
  if (c) return c;
  for (int64_t k = 0; k < v->numel; k++) {
    const int64_t at = rule_tensor_get_int(v, k);
    *n += !taken[at];
    taken[at] = true;
  }
  if (!iso_grow(s->leaves.part, s->leaves.cap_parts, s->leaves.n_parts + 1)) {
    rule_tensor_unref(v);
    return nomem(err);
  }
  part.at = v;
  s->leaves.part[s->leaves.n_parts++] = part;
  return ISO_OK;
}

void st_forget_parts(state *s, size_t from) {
  for (size_t k = from; k < s->leaves.n_parts; k++) rule_tensor_unref(s->leaves.part[k].at);
  s->leaves.n_parts = from;
}

/* Parts that say one thing, and are all of a leaf together, say it of the leaf; others are drawn
 * each inside its own. */
static iso_code pass_parts_on(state *s, int side, size_t leaf, const synth_relation *of,
                              const bool *defined, iso_error *err) {
  const synth_graph *g = s->graph[side];
  const rule_tensor *whole = s->graph[!side]->node[leaf].value[0];
  const rule_domain *said = NULL;
  const size_t before = s->leaves.n_parts;
  rule_tensor **number = calloc(s->graph[!side]->n_nodes + 1, sizeof *number);
  char *taken = calloc((size_t)whole->numel + 1, 1);
  int64_t n = 0;
  iso_code c =
      number && taken ? rule_tensor_new(RULE_I64, &whole->shape, &number[leaf], err) : nomem(err);
  for (int64_t k = 0; !c && k < whole->numel; k++) ((int64_t *)number[leaf]->data)[k] = k;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const rule_domain *d = g->node[i].domain;
    if (!defined[i] || !d || rule_domain_is_open(d) || of[i].term->kind != RULE_OP ||
        !reads_only(of[i].term, leaf))
      continue;
    if (said && !same_statement(said, d)) n = INT64_MIN / 2;
    said = d;
    c = note_part(s, (st_drawn_part){!side, leaf, d, NULL}, of[i].term, number, taken, &n, err);
  }
  if (!c && n == whole->numel && said) {
    st_forget_parts(s, before);
    const rule_term *all = rule_var(&s->arena, (uint32_t)leaf);
    c = all ? pass_on(s, (synth_node *)(uintptr_t)s->graph[!side]->node, all, said, err)
            : nomem(err);
  }
  if (number) rule_tensor_unref(number[leaf]);
  free(number);
  free(taken);
  return c;
}

iso_code st_pass_parts_on(state *s, int side, const synth_relation *of, const bool *defined,
                          iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool any = false;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes; i++)
    any |= defined[i] && g->node[i].domain && !rule_domain_is_open(g->node[i].domain);
  for (size_t k = 0; k < s->graph[!side]->n_nodes && any && !c; k++)
    if (s->graph[!side]->node[k].kind == SYNTH_INPUT)
      c = pass_parts_on(s, side, k, of, defined, err);
  return c;
}

/* ---- domains in the e-graph: the input as a term that cannot leave its own ---- */

enum { MAX_REPLACED = 16 }; /* values left out; more would make the term too large for any rule */

/* Another value for one that is left out. */
static int64_t instead(const rule_domain *d, int64_t x) {
  double y = (double)x + 1;
  while (y <= d->high && !rule_domain_has(d, y)) y++;
  if (y <= d->high) return (int64_t)y;
  for (y = (double)x - 1; !rule_domain_has(d, y);) y--;
  return (int64_t)y;
}

static const rule_term *number(state *s, bool ints, double x) {
  if (isinf(x)) return rule_none(&s->arena);
  return ints ? rule_int(&s->arena, (int64_t)x) : rule_float(&s->arena, x);
}

/* A term over RULE_VAR 0, which may be any number, that maps it into the domain and keeps numbers
 * inside as they are. */
static iso_code inside(state *s, const rule_domain *d, bool ints, const rule_term **out,
                       iso_error *err) {
  const rule_term *t = rule_var(&s->arena, 0);
  iso_code c = t ? ISO_OK : nomem(err);
  if (!c && (isfinite(d->low) || isfinite(d->high))) {
    const rule_term *arg[3] = {t, number(s, ints, d->low), number(s, ints, d->high)};
    c = arg[1] && arg[2] ? rule_call(&s->arena, s->schemas, OP_CLAMP, arg, 3, &t, err) : nomem(err);
  }
  for (size_t k = 0; ints && k < d->n_exclude && !c; k++) {
    const int64_t x = (int64_t)d->exclude[k];
    const rule_term *eq[2] = {t, rule_int(&s->arena, x)}, *is;
    if (!eq[1]) return nomem(err);
    if ((c = rule_call(&s->arena, s->schemas, OP_EQ_SCALAR, eq, 2, &is, err))) return c;
    const rule_term *arg[3] = {is, rule_int(&s->arena, instead(d, x)), t};
    c = arg[1] ? rule_call(&s->arena, s->schemas, OP_WHERE_SCALARSELF, arg, 3, &t, err)
               : nomem(err);
  }
  *out = t;
  return c;
}

/* A new atom of that shape, which has no values yet. */
static iso_code new_atom(state *s, const rule_shape *shape, eg_node *out, iso_error *err) {
  const char *name = iso_arena_printf(&s->arena, "$within%zu", s->leaves.n_bound);
  if (!name || !iso_grow(s->leaves.bound, s->leaves.cap_bound, s->leaves.n_bound + 1))
    return nomem(err);
  return st_add_atom(s, name, shape, out, err);
}

typedef struct bounding {
  const rule_term *term; /* over the atom */
  rule_assumption kind;
  const char *text; /* NULL: no memory */
  bool other;       /* the atom has other values than the leaf */
} bounding;

/* Input `i` equals the term over the atom, whose values are there. */
static iso_code equate(state *s, int side, size_t i, eg_node raw, const bounding *by,
                       iso_error *err) {
  const eg_node e = s->map[side][i], none = {EG_NONE};
  eg_node def;
  iso_code c = by->text ? st_add_term(s, by->term, &raw, &def, err) : nomem(err);
  if (c || (c = st_value(s, def, err))) return c;
  s->leaves.bound[s->leaves.n_bound++] = (st_bound){e, raw, def, by->other};
  if (!st_assume(s, by->kind, side == LEFT ? e : none, side == RIGHT ? e : none, NULL, by->text))
    return nomem(err);
  return st_merge(s, e, def, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
}

iso_code st_bound_leaf(state *s, int side, size_t i, const rule_term *term, rule_assumption kind,
                       const char *text, iso_error *err) {
  eg_node raw;
  iso_code c = new_atom(s, &s->graph[side]->node[i].shape, &raw, err);
  if (!c) c = st_values_of(s, raw, s->map[side][i], err);
  return c ? c : equate(s, side, i, raw, &(bounding){term, kind, text, false}, err);
}

/* ---- different integers: the first places of some numbers in order ---- */

/* Numbers whose order begins with those of `v`. Owns: the caller unrefs. */
static iso_code ordered(const rule_domain *d, const rule_tensor *v, rule_tensor **out,
                        iso_error *err) {
  const rule_shape shape = {.rank = 1, .dim = {rule_domain_span(d)}};
  iso_code c = rule_tensor_new(RULE_F64, &shape, out, err);
  for (int64_t i = 0; !c && i < shape.dim[0]; i++) rule_tensor_set(*out, i, (double)i + 1);
  for (int64_t i = 0; !c && i < v->numel; i++)
    rule_tensor_set(*out, rule_tensor_get_int(v, i) - (int64_t)d->low, (double)(i - v->numel));
  return c;
}

static iso_code order_values(state *s, int side, size_t i, eg_node raw, iso_error *err) {
  rule_tensor **val = calloc(s->n_draws + 1, sizeof *val);
  iso_code c = val ? ISO_OK : nomem(err);
  for (size_t d = 0; d < s->n_draws && !c; d++) {
    const rule_tensor *v = st_val(s, s->map[side][i], d);
    c = v ? ordered(s->graph[side]->node[i].domain, v, &val[d], err) : st_lost(&s->values, err);
  }
  if (!c) c = st_set_values(s, raw, val, err);
  for (size_t d = 0; val && d < s->n_draws; d++) rule_tensor_unref(val[d]);
  free(val);
  return c;
}

static iso_code bound_distinct(state *s, int side, size_t i, const char *text, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const rule_shape shape = {.rank = 1, .dim = {rule_domain_span(n->domain)}};
  const rule_term *t;
  eg_node raw;
  if (n->dtype != RULE_I64) return ISO_OK; /* places are of that dtype */
  iso_code c =
      rule_places(&s->arena, s->schemas, n->domain, &n->shape, rule_var(&s->arena, 0), &t, err);
  if (!c) c = new_atom(s, &shape, &raw, err);
  if (!c) c = order_values(s, side, i, raw, err);
  return c ? c : equate(s, side, i, raw, &(bounding){t, RULE_ASSUMES_RANGE, text, true}, err);
}

const st_bound *st_bound_by(const st_leaves *leaves, eg_node e, bool raw) {
  for (size_t k = 0; k < leaves->n_bound; k++)
    if ((raw ? leaves->bound[k].raw.i : leaves->bound[k].def.i) == e.i) return &leaves->bound[k];
  return NULL;
}

const st_bound *st_bound_of(const state *s, eg_node e) {
  for (size_t k = 0; k < s->leaves.n_bound; k++)
    if (eg_equal(s->g, s->leaves.bound[k].leaf, e)) return &s->leaves.bound[k];
  return NULL;
}

/* Whether the domain is that of one part of a leaf whose others say something else. */
static bool part_of_some(const state *s, const rule_domain *d) {
  for (size_t k = 0; k < s->leaves.n_parts; k++)
    if (s->leaves.part[k].domain == d) return true;
  return false;
}

iso_code st_bound_domains(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      const rule_domain *d = n->domain;
      const rule_term *t = NULL;
      char text[256];
      if (n->kind != SYNTH_INPUT || !d || s->map[side][i].i == EG_NONE) continue;
      const bool ints = rule_dtype_is_int(n->dtype);
      const bool many = d->n_exclude > MAX_REPLACED, bounds = isfinite(d->low) || isfinite(d->high);
      if (s->rec[s->map[side][i].i].konst || (!ints && !rule_dtype_is_float(n->dtype))) continue;
      if (!(bounds || (ints && d->n_exclude)) || many || st_bound_of(s, s->map[side][i])) continue;
      rule_domain_print(d, text, sizeof text);
      const char *said = iso_arena_printf(&s->arena, "%s's %s may be: %s",
                                          side == LEFT ? "left" : "right", n->name, text);
      if (ints && permutes(n)) {
        if ((c = bound_distinct(s, side, i, said, err))) return c;
        continue;
      }
      /* Else the leaves that it is made of have the range by now (st_pass_domain_on). */
      if (!s->rec[s->map[side][i].i].atom && !part_of_some(s, d)) continue;
      if ((c = inside(s, d, ints, &t, err))) return c;
      c = st_bound_leaf(s, side, i, t, RULE_ASSUMES_RANGE, said, err);
    }
  return c;
}
