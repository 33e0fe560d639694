/* Domains that captures and their user give to inputs, for both captures; and input sets drawn from
 * it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agree_int.h"
#include "rules/operators.h"

/* Sets that are drawn (how_many). */
enum { LEAST_SETS = 6, MOST_SETS = 48, WORK = 1 << 22, LITERALS = 32 };

static iso_code no_memory(agree *a) { return iso_fail(a->err, ISO_NOMEM, "out of memory"); }

const cap_node *agree_unread(const agree *a, size_t i) {
  const int side = !a->in[i].side;
  const cap_graph *other = a->graph[side];
  const cap_node *n = agree_node(a, i);
  if (cap_names_find(&a->by[side].read, n->name) != CAP_NO_INDEX) return NULL;
  for (size_t k = cap_names_find(&a->by[side].given, n->name); k < other->n_nodes; k++) {
    const cap_node *o = &other->node[k];
    if (o->kind == CAP_INPUT && strcmp(o->name, n->name) == 0 &&
        o->output[0].dtype == n->output[0].dtype &&
        rule_shape_eq(&o->output[0].shape, &n->output[0].shape))
      return o;
  }
  return NULL;
}

/* Whether two inputs of other names may be one: not where the other side was given one of the same
 * name and does not read it, since two masks of ones are two masks. */
static bool may_be_one(const agree *a, size_t i, size_t j) {
  return agree_equal(a, i, j) && !agree_unread(a, i) && !agree_unread(a, j);
}

/* Inputs that are paired share a group. One without a partner by name or value joins the first
 * input of its value. */
static void group(agree *a) {
  for (size_t i = 0; i < a->n; i++) {
    const int64_t j = a->in[i].other;
    if (a->in[i].side == LEFT || a->in[i].settled) continue;
    int64_t with = j >= 0 ? j : agree_namesake(a, i);
    if (with >= 0 && j < 0 && !agree_equal(a, i, (size_t)with)) with = -1;
    for (size_t k = 0; k < a->n && a->in[k].side == LEFT && with < 0; k++)
      if (!a->in[k].settled && may_be_one(a, i, k)) with = (int64_t)k;
    if (with >= 0) a->in[i].group = a->in[with].group;
  }
  /* Several of the left that the right has once. */
  for (size_t i = 0; i < a->n && a->in[i].side == LEFT; i++) {
    const int64_t said = a->in[i].spoken ? a->in[i].other : -1;
    bool alone = a->in[i].other < 0 && !a->in[i].settled && a->in[i].group == i;
    if (said >= 0) a->in[i].group = a->in[said].group;
    for (size_t j = i + 1; j < a->n && alone; j++) alone = a->in[j].group != i;
    for (size_t j = i + 1; j < a->n && alone; j++)
      if (a->in[j].side == RIGHT && !a->in[j].settled && may_be_one(a, i, j)) {
        a->in[i].group = a->in[j].group;
        alone = false;
      }
  }
}

/* ---- parts that ranks hold ---- */

/* The dimension along which `own` is one of several equal parts of `whole`; RULE_MAX_RANK: none. */
static uint32_t shared_dim(const rule_shape *whole, const rule_shape *own) {
  uint32_t found = RULE_MAX_RANK;
  for (uint32_t d = 0; whole->rank == own->rank && d < own->rank; d++) {
    if (whole->dim[d] == own->dim[d]) continue;
    if (found < RULE_MAX_RANK || own->dim[d] < 1 || whole->dim[d] % own->dim[d])
      return RULE_MAX_RANK;
    found = d;
  }
  return found;
}

/* Where the rows of input `j` stand in its whole, whose elements have `size` bytes. */
typedef struct rows {
  size_t outer, all, part, first; /* blocks; bytes of one in the whole, in the part; before it */
} rows;

static rows rows_of(const agree *a, size_t j, const rule_shape *whole, size_t size) {
  const rule_shape *own = &agree_node(a, j)->output[0].shape;
  const uint32_t dim = a->in[j].dim;
  size_t outer = 1;
  for (uint32_t d = dim + 1; d < own->rank; d++) size *= (size_t)own->dim[d];
  for (uint32_t d = 0; d < dim; d++) outer *= (size_t)own->dim[d];
  return (rows){outer, size * (size_t)whole->dim[dim], size * (size_t)own->dim[dim],
                size * (size_t)a->in[j].from};
}

/* The rows of `whole` that input `j` is. Owns: the caller unrefs. */
static iso_code cut(agree *a, const rule_tensor *whole, size_t j, rule_tensor **out) {
  const rows r = rows_of(a, j, &whole->shape, rule_dtype_size(whole->dtype));
  const iso_code c = rule_tensor_new(whole->dtype, &agree_node(a, j)->output[0].shape, out, a->err);
  for (size_t o = 0; o < r.outer && !c; o++)
    memcpy((char *)(*out)->data + o * r.part, (const char *)whole->data + o * r.all + r.first,
           r.part);
  return c;
}

static void paste(const agree *a, const rule_tensor *own, size_t j, rule_tensor *whole) {
  const rows r = rows_of(a, j, &whole->shape, rule_dtype_size(whole->dtype));
  for (size_t o = 0; o < r.outer; o++)
    memcpy((char *)whole->data + o * r.all + r.first, (const char *)own->data + o * r.part, r.part);
}

/* Whether captured values bear out that input `j` is its rank's part of input `i`. */
static iso_code is_part(agree *a, size_t i, size_t j, bool *part) {
  iso_code c = ISO_OK;
  for (size_t set = 0; set < a->sets && !c && *part; set++) {
    rule_tensor *t;
    if ((c = cut(a, agree_value(a, i, set), j, &t))) break;
    *part = rule_tensor_same_bytes(t, agree_value(a, j, set));
    rule_tensor_unref(t);
  }
  return c;
}

/* Ranks that have equal parts of an input of the other side hold them in the order of ranks: a mask
 * that was captured full is as full on every rank, and a draw for it is cut for them. */
static iso_code find_parts(agree *a) {
  iso_code c = ISO_OK;
  for (size_t j = 0; j < a->n && !c; j++) {
    const char *name = agree_node(a, j)->name, *rest = agree_stem(name);
    const cap_output *own = &agree_node(a, j)->output[0];
    const int64_t rank = strtoll(name + 4, NULL, 10); /* of "rank<r>." */
    for (size_t i = 0; i < a->n && rest != name && !a->in[j].settled && !c; i++) {
      const cap_output *all = &agree_node(a, i)->output[0];
      const uint32_t dim = shared_dim(&all->shape, &own->shape);
      bool part = a->in[i].side != a->in[j].side && dim < RULE_MAX_RANK &&
                  all->dtype == own->dtype && strcmp(agree_node(a, i)->name, rest) == 0 &&
                  rank < all->shape.dim[dim] / own->shape.dim[dim];
      if (!part) continue;
      a->in[j].dim = dim, a->in[j].from = rank * own->shape.dim[dim];
      c = is_part(a, i, j, &part);
      if (c || !part) continue;
      a->in[j].whole = (int64_t)i;
      cap_set_part(a->graph[a->in[j].side], a->in[j].node, a->in[i].node, dim, a->in[j].from);
    }
  }
  return c;
}

/* ---- domains of both ---- */

/* The values that are both in `*all` and in the domain of `n`. */
static iso_code meet_one(agree *a, const cap_node *n, const rule_domain **all) {
  char x[256], y[256];
  bool empty = false;
  if (!n || !n->domain) return ISO_OK;
  const rule_domain *was = *all;
  *all = was ? rule_domain_meet(&a->graph[LEFT]->arena, was, n->domain, n->output[0].dtype,
                                &n->output[0].shape, &empty)
             : n->domain;
  if (!*all) return no_memory(a);
  if (!empty) return ISO_OK;
  return iso_fail(a->err, ISO_USAGE,
                  "input \"%.80s\": %s says %s, %s says %s: nothing is inside both", n->name,
                  was->who, rule_domain_print(was, x, sizeof x), n->domain->who,
                  rule_domain_print(n->domain, y, sizeof y));
}

static iso_code meet(agree *a, size_t g) {
  const rule_domain *all = NULL;
  const size_t first = g;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < a->n && !c; i++) {
    if (a->in[i].group != g) continue;
    c = meet_one(a, agree_node(a, i), &all);
    if (!c) c = meet_one(a, agree_unread(a, i), &all);
  }
  if (c || !all) return c;
  char text[256];
  int64_t other = -1;
  for (size_t i = 0; i < a->n; i++) {
    if (a->in[i].group != g) continue;
    cap_set_domain(a->graph[a->in[i].side], a->in[i].node, all);
    if (a->in[i].side != a->in[first].side) other = (int64_t)i;
  }
  return agree_note(a, RULE_ASSUMES_RANGE,
                    iso_arena_printf(&a->graph[LEFT]->arena, "%s is within what it may be: %s",
                                     agree_node(a, first)->name,
                                     rule_domain_print(all, text, sizeof text)),
                    first, other);
}

/* Input sets in which something is outside of a domain: another capture's, that was said more of
 * here. */
static iso_code keep_inside(agree *a) {
  agree_sets s = {0};
  size_t bad = 0;
  char why[160] = "";
  iso_code c = ISO_OK;
  for (size_t set = 0; set < a->sets && !c; set++) {
    bool inside = true;
    for (size_t i = 0; i < a->n && inside; i++) {
      const rule_domain *d = agree_node(a, i)->domain;
      inside = !d || rule_domain_admits(d, agree_value(a, i, set), why, sizeof why);
      if (!inside) bad = i;
    }
    if (inside) c = agree_add(a, &s, set);
  }
  if (!c && s.n == 0) {
    char says[256];
    const rule_domain *d = agree_node(a, bad)->domain;
    c = iso_fail(a->err, ISO_USAGE, "input \"%.80s\": %s as it was captured, and %s says %s",
                 agree_node(a, bad)->name, why, d->who, rule_domain_print(d, says, sizeof says));
  }
  if (!c && s.n < a->sets) agree_use(a, &s);
  agree_drop(a, &s);
  return c;
}

/* ---- sets drawn inside domains ---- */

static bool is_part_of(const agree *a, size_t j, size_t g) {
  return a->in[j].whole >= 0 && a->in[a->in[j].whole].group == g;
}

/* Whether comparisons keep an input as it was captured, although its domain has other values. */
static bool stays(const agree *a, size_t i) {
  const rule_domain *d = agree_node(a, i)->domain;
  const agree_look x = agree_look_of(a, i);
  return d && (rule_domain_is_joint(d) || (x != FLOATS && x != NUMBERS));
}

/* Whether an input that comparisons keep as captured has other values by its domain, or by those of
 * its parts. Both sides have it, read or not, whole or in parts. */
static bool extends(const agree *a, size_t g) {
  bool both = agree_unread(a, g) != NULL, any = stays(a, g);
  for (size_t i = 0; i < a->n; i++) {
    both |= a->in[i].group == g && a->in[i].side != a->in[g].side;
    both |= is_part_of(a, i, g);
    any |= is_part_of(a, i, g) && stays(a, i);
  }
  return both && any && a->in[g].group == g;
}

static void bounds(const agree *a, size_t i, double *low, double *high) {
  *low = INFINITY, *high = -INFINITY;
  for (size_t set = 0; set < a->sets; set++)
    for (int64_t k = 0; k < agree_value(a, i, set)->numel; k++) {
      const double x = rule_tensor_get(agree_value(a, i, set), k);
      if (x < *low) *low = x;
      if (x > *high) *high = x;
    }
}

/* Positions stay consecutive: up to the highest, from the lowest, and in between. */
static bool draw_steps(const agree *a, size_t g, unsigned number, iso_rng *rng, rule_tensor *t) {
  const rule_domain *d = agree_node(a, g)->domain;
  const double n = (double)t->numel, last = d->high - n + 1;
  if (agree_look_of(a, g) != STEPS || rule_domain_is_joint(d) || !isfinite(last - d->low) ||
      last < d->low)
    return false;
  double from = number == 0 ? last : d->low;
  if (number > 1) from += floor(iso_rng_uniform(rng) * (last - d->low + 1));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, from + (double)i);
  return rule_domain_admits(d, t, NULL, 0);
}

/* Numbers that the graphs compute or compare with; and, of whole ones that they compare or cut
 * with, these and their neighbours. */
typedef struct literals {
  double of[LITERALS];
  size_t n;
  int64_t count[LITERALS];
  size_t n_counts;
} literals;

static void add_count(literals *l, int64_t x) {
  bool there = x < 0 || l->n_counts == LITERALS;
  for (size_t i = 0; i < l->n_counts && !there; i++) there = l->count[i] == x;
  if (!there) l->count[l->n_counts++] = x;
}

static void collect_counts(literals *l, const rule_term *call) {
  const rule_operator *o = rule_operator_of(call->u.s);
  if (o->choice <= RULE_CHOICE_NONE && !o->part) return;
  for (uint32_t i = o->part ? 2 : 1; i < call->n; i++) { /* behind the operand, and its dimension */
    const rule_term *t = call->child[i];
    const double x = t->kind == RULE_INT     ? (double)t->u.i
                     : t->kind == RULE_FLOAT ? floor(t->u.f)
                                             : INFINITY;
    if (!(fabs(x) < 1e9)) continue;
    for (int by = 0; by < 3; by++) add_count(l, (int64_t)x + (by == 2 ? -1 : by));
  }
}

static void collect(literals *l, const rule_term *t) {
  const double x = t->kind == RULE_INT ? (double)t->u.i : t->kind == RULE_FLOAT ? t->u.f : INFINITY;
  bool there = !isfinite(x) || l->n == LITERALS;
  for (size_t i = 0; i < l->n && !there; i++) there = l->of[i] == x;
  if (!there) l->of[l->n++] = x;
  for (uint32_t i = 0; i < t->n; i++) collect(l, t->child[i]);
}

/* The part of the domain that set `number` is drawn from: all of it, one number after the other
 * everywhere, a number of the graphs everywhere, and the neighbours of one. */
static void choose_part(const rule_domain *d, const literals *l, unsigned number, double *low,
                        double *high) {
  const unsigned turn = number / 4, way = number % 4;
  const double from = *low, to = *high;
  if (!isfinite(to - from)) return;
  if (way == 1) *low = *high = from + fmod(turn, to - from + 1);
  for (size_t k = 0; way > 1 && k < l->n; k++) {
    const double x = floor(l->of[(turn + k) % l->n]), by = way - 2;
    if (x < from || x > to) continue;
    *low = fmax(x - by, from), *high = fmin(x + by, to);
    break;
  }
  if (!rule_domain_has(d, *low) && *low == *high) *low = from, *high = to;
}

void agree_set_last(const agree *a, agree_sets *s, size_t i, rule_tensor *own) {
  rule_tensor **to = agree_slot(a, s, s->n - 1, i);
  rule_tensor_unref(*to);
  *to = own;
}

iso_code agree_cut_parts(agree *a, size_t g, const rule_tensor *t, agree_sets *s, bool *inside) {
  iso_code c = ISO_OK;
  *inside = true;
  for (size_t j = 0; j < a->n && !c && *inside; j++) {
    const rule_domain *d = agree_node(a, j)->domain;
    rule_tensor *own;
    if (!is_part_of(a, j, g)) continue;
    if ((c = cut(a, t, j, &own))) break;
    *inside = !d || rule_domain_admits(d, own, NULL, 0);
    if (s && *inside) agree_set_last(a, s, j, own);
    else rule_tensor_unref(own);
  }
  return c;
}

/* How one fresh value is made. */
typedef struct drawing {
  unsigned form; /* which of the ways */
  const literals *l;
  iso_rng *rng;
} drawing;

/* Fills `t` with a value from the domain of input `i`. */
static bool draw_one(const agree *a, size_t i, const drawing *by, rule_tensor *t) {
  const rule_domain *d = agree_node(a, i)->domain;
  double low, high;
  bounds(a, i, &low, &high);
  if (isfinite(d->low)) low = d->low;
  if (isfinite(d->high)) high = d->high;
  if (!d->mask) choose_part(d, by->l, by->form, &low, &high);
  return t->numel > 0 && (draw_steps(a, i, by->form, by->rng, t) ||
                          rule_domain_draw(d, low, high, by->form, by->rng, t));
}

static void shift(rule_tensor *t, double by) {
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, rule_tensor_get(t, i) + by);
}

/* Draws each part whose domain does not admit its rows of `t` by itself, and puts them there. Ranks
 * that hold the same rows may each say something else of them: then the last was heard, and others
 * refuse (agree_cut_parts). Positions of a whole that says nothing follow those of one part. */
static iso_code draw_parts(agree *a, size_t g, const drawing *by, rule_tensor *t) {
  iso_code c = ISO_OK;
  const bool said = agree_node(a, g)->domain, steps = !said && agree_look_of(a, g) == STEPS;
  for (size_t j = 0, n = 0; j < a->n && !c; j++) {
    const rule_domain *d = agree_node(a, j)->domain;
    rule_tensor *own;
    if (!d || !is_part_of(a, j, g) || (steps && n)) continue;
    if ((c = cut(a, t, j, &own))) break;
    const double was = own->numel ? rule_tensor_get(own, 0) : 0;
    if ((!said || !rule_domain_admits(d, own, NULL, 0)) && draw_one(a, j, by, own)) {
      if (steps) shift(t, rule_tensor_get(own, 0) - was);
      else paste(a, own, j, t);
      n++;
    }
    rule_tensor_unref(own);
  }
  return c;
}

/* A fresh value for the group in the last set. */
static iso_code draw_group(agree *a, agree_sets *s, size_t g, const drawing *by) {
  const rule_tensor *was = agree_value(a, g, 0);
  rule_tensor *t;
  bool drawn = true;
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &t, a->err);
  if (c) return c;
  memcpy(t->data, was->data, (size_t)was->numel * rule_dtype_size(was->dtype));
  if (agree_node(a, g)->domain) drawn = draw_one(a, g, by, t);
  if (drawn) c = draw_parts(a, g, by, t);
  if (drawn && !c) c = agree_cut_parts(a, g, t, NULL, &drawn);
  for (size_t i = 0; i < a->n && drawn && !c; i++) {
    rule_tensor *own;
    if (a->in[i].group != g) continue;
    if (!(c = agree_as_input(a, t, agree_node(a, i), &own))) agree_set_last(a, s, i, own);
  }
  if (drawn && !c) c = agree_cut_parts(a, g, t, s, &drawn);
  rule_tensor_unref(t);
  return c;
}

/* As many as a small graph is run on quickly: by how much a run of both computes. */
static unsigned how_many(const agree *a) {
  enum { CALL = 256 }; /* elements that take as long as a call does by itself */
  double work = 1;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < a->graph[side]->n_nodes; i++) {
      const cap_node *n = &a->graph[side]->node[i];
      if (n->kind == CAP_OP) work += CALL;
      for (size_t o = 0; n->kind == CAP_OP && o < n->n_outputs; o++) {
        const rule_shape *shape = &n->output[o].shape;
        double elements = 1;
        for (uint32_t d = 0; d < shape->rank; d++) elements *= (double)shape->dim[d];
        work += elements;
      }
    }
  return (unsigned)fmax(LEAST_SETS, fmin(MOST_SETS, WORK / work));
}

/* Adds sets. `looks`: inputs of zeros and ones that look like masks are drawn in them, too, and
 * `full` is as in agree_form. */
static iso_code draw_some(agree *a, agree_sets *s, const literals *l, uint64_t seed, bool looks,
                          bool full) {
  const unsigned n = how_many(a);
  iso_code c = ISO_OK;
  for (unsigned k = 0; k < n && !c; k++) {
    unsigned nth = 0; /* of the inputs that are drawn */
    c = agree_add(a, s, 0);
    for (size_t g = 0; g < a->n && !c; g++) {
      iso_rng rng =
          iso_rng_new(seed ^ (looks ? UINT64_C(0x6c6f6f6b73) + full : UINT64_C(0x646f6d61696e)),
                      g * MOST_SETS + k);
      const bool by_looks = looks && a->in[g].looks.kind != LOOKS_KEPT;
      if (!by_looks && !extends(a, g)) continue;
      /* Two masks of one form on every set would be one mask. */
      unsigned form = (k + nth) % n;
      if (nth && k % 2) form = (unsigned)iso_rng_below(&rng, n);
      c = by_looks
              ? agree_draw_looks(a, s, g, &(agree_form){form, l->count, l->n_counts, full}, &rng)
              : draw_group(a, s, g, &(drawing){form, l, &rng});
      nth++;
    }
  }
  return c;
}

/* `unsure`: no difference on sets that are drawn by looks is sure to be one. */
static iso_code draw_sets(agree *a, uint64_t seed, bool unsure) {
  bool said = false, looks = false;
  agree_sets s = {0};
  literals l = {0};
  iso_code c = ISO_OK;
  for (size_t g = 0; g < a->n; g++) {
    said |= extends(a, g);
    looks |= a->in[g].looks.kind != LOOKS_KEPT;
  }
  a->out->n_captured = a->out->n_said = a->out->n_sure = a->sets;
  if (!said && !looks) return ISO_OK;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < a->graph[side]->n_nodes; i++)
      if (a->graph[side]->node[i].call) {
        collect(&l, a->graph[side]->node[i].call);
        collect_counts(&l, a->graph[side]->node[i].call);
      }
  for (size_t set = 0; set < a->sets && !c; set++) c = agree_add(a, &s, set);
  if (said && !c) c = draw_some(a, &s, &l, seed, false, false);
  a->out->n_said = s.n;
  if (looks && !c) c = draw_some(a, &s, &l, seed, true, false);
  a->out->n_sure = unsure ? a->out->n_said : s.n;
  if (looks && !c && a->out->unsure) c = draw_some(a, &s, &l, seed, true, true);
  if (!c) agree_use(a, &s);
  agree_drop(a, &s);
  return c;
}

iso_code agree_domains(agree *a, uint64_t seed) {
  bool unsure = false;
  group(a);
  iso_code c = find_parts(a);
  for (size_t g = 0; g < a->n && !c; g++)
    if (a->in[g].group == g) c = meet(a, g);
  for (size_t j = 0; j < a->n && !c; j++) {
    const int64_t whole = a->in[j].whole;
    const rule_domain *d = whole < 0 ? NULL : agree_node(a, (size_t)whole)->domain;
    if (d) c = cap_pass_domain(a->graph[a->in[j].side], a->in[j].node, d, a->err);
  }
  if (!c) c = keep_inside(a);
  if (!c) c = agree_find_looks(a, &unsure);
  return c ? c : draw_sets(a, seed, unsure);
}
