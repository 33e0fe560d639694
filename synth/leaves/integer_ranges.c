/* The range of each integer input: it is widened from the captured values as far as the tables
 * admit that it indexes, directly or through arithmetic. Inputs that make one index together share
 * the room: each may have any value of its range, for all values of the others. */
#include "rules/names.h"
#include "synth/joint/joint.h"
#include "synth/leaves/integer_spans.h"
#include "synth/leaves/leaves.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Integers that are drawn freely. */
typedef struct source {
  int side;
  size_t node;
  eg_class cls;
  st_span span;
  bool has_none;
  int64_t none;
  bool ended, fixed; /* a table ends its range; it keeps what was captured */
  bool seen;         /* by more than the operators that choose rows by it */
  int64_t end[2];    /* what a side's tables alone admit is below it; INT64_MAX: they say nothing */
} source;

typedef struct limit { /* a reading that says something */
  int side;
  const st_look_up *read;
  int64_t low, high; /* the first and the last row */
  uint64_t of;
  bool dropped;
} limit;

typedef struct ranging {
  state *s;
  st_walk walk[2];
  source *source;
  size_t n_source, cap_source;
  limit *limit;
  size_t n_limit, cap_limit;
} ranging;

/* ---- leaves by what is drawn ---- */

/* The integers that were captured, less a number that stands for none. */
static st_span captured(const state *s, const synth_node *n, uint64_t of, const int64_t *none,
                        bool *has_none) {
  st_span all = {.low = INT64_MAX, .high = INT64_MIN, .of = of};
  const size_t sets = n->kind == SYNTH_INPUT ? s->n_sets : 1;
  for (size_t set = 0; set < sets; set++)
    for (int64_t i = 0; i < n->value[set]->numel; i++) {
      const int64_t x = rule_tensor_get_int(n->value[set], i);
      if (none && x == *none) *has_none = true;
      if (none && x == *none) continue;
      if (x < all.low) all.low = x;
      if (x > all.high) all.high = x;
    }
  enum { LARGEST = 1 << 30 };
  all.told = all.low <= all.high && all.low > -(int64_t)LARGEST && all.high < LARGEST;
  return all;
}

static const synth_node *node_of(const ranging *r, const source *a) {
  return &r->s->graph[a->side]->node[a->node];
}

/* The member of a class that is a term over other leaves. */
static eg_node layout_of(const state *s, eg_class cls) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  eg_node def = {EG_NONE};
  for (size_t i = 0; i < n; i++)
    if (!s->rec[m[i].i].leaf && s->rec[m[i].i].node[LEFT] < 0 && s->rec[m[i].i].node[RIGHT] < 0 &&
        m[i].i < def.i)
      def = m[i];
  return def;
}

static iso_code add_source(ranging *r, eg_class cls, eg_node leaf, iso_error *err) {
  const rec *e = &r->s->rec[leaf.i];
  const int side = e->node[LEFT] >= 0 ? LEFT : RIGHT;
  if (!iso_grow(r->source, r->cap_source, r->n_source + 1)) return nomem(err);
  source *a = &r->source[r->n_source];
  *a = (source){.side = side, .node = (size_t)e->node[side], .cls = cls};
  a->end[LEFT] = a->end[RIGHT] = INT64_MAX;
  a->span = captured(r->s, node_of(r, a), UINT64_C(1) << r->n_source % 64, NULL, NULL);
  r->n_source++;
  return ISO_OK;
}

/* The span of a class of leaves: of its own draw, or of the leaves of which it is a layout; new
 * sources are added. */
static iso_code span_of(ranging *r, eg_class cls, int depth, st_span *out, bool *any,
                        iso_error *err) {
  enum { DEEPEST = 16 };
  const state *s = r->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, cls, &m);
  eg_node leaf = {EG_NONE};
  iso_code c = ISO_OK;
  for (size_t k = 0; k < n; k++) {
    const rec *e = &s->rec[m[k].i];
    if (e->leaf && e->konst) return ISO_OK;
    if (e->leaf && e->atom && m[k].i < leaf.i) leaf = m[k];
  }
  if (leaf.i == EG_NONE) {
    const eg_node def = layout_of(s, cls);
    const size_t arity = def.i == EG_NONE || depth > DEEPEST ? 0 : eg_node_arity(s->g, def);
    for (size_t k = 0; k < arity && !c; k++)
      c = span_of(r, eg_node_child(s->g, def, k), depth + 1, out, any, err);
    return c;
  }
  size_t at = 0;
  while (at < r->n_source && r->source[at].cls.i != cls.i) at++;
  if (at == r->n_source) c = add_source(r, cls, leaf, err);
  if (c) return c;
  *out = *any ? st_span_join(*out, r->source[at].span) : r->source[at].span;
  *any = true;
  return ISO_OK;
}

static bool is_free(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  return n->kind != SYNTH_OP && e.i != EG_NONE && rule_dtype_is_int(n->dtype) && !s->rec[e.i].konst;
}

static iso_code set_leaves(ranging *r, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = r->s->graph[side];
    for (size_t i = 0; i < g->n_nodes && !c; i++) {
      if (g->node[i].kind == SYNTH_OP || !r->walk[side].needed[i]) continue;
      bool any = false;
      st_span *out = &r->walk[side].span[i];
      if (g->node[i].dtype == RULE_BOOL) *out = (st_span){.high = 1, .told = true, .some = true};
      else if (is_free(r->s, side, i))
        c = span_of(r, eg_class_of(r->s->g, r->s->map[side][i]), 0, out, &any, err);
      else if (rule_dtype_is_int(g->node[i].dtype) && out->low == 0 && out->high == 0 && !out->told)
        *out = captured(r->s, &g->node[i], 0, NULL, NULL);
    }
  }
  return c;
}

static iso_code evaluate(ranging *r, iso_error *err) {
  const iso_code c = set_leaves(r, err);
  for (int side = 0; side < 2 && !c; side++) st_walk_evaluate(&r->walk[side]);
  return c;
}

/* ---- what readings say ---- */

static bool inside(const st_span *x, const st_look_up *read) {
  return x->low >= (read->wraps ? -read->rows : 0) && x->high < read->rows;
}

/* Where a number that chooses nothing was captured, the range is that of the others. */
static void leave_none_out(ranging *r, const st_look_up *read, uint64_t of) {
  for (size_t k = 0; k < r->n_source; k++) {
    source *a = &r->source[k];
    if (!(a->span.of & of) || a->has_none) continue;
    bool has = false;
    const st_span rest = captured(r->s, node_of(r, a), a->span.of, &read->none, &has);
    if (has && rest.told) a->span = rest, a->has_none = true, a->none = read->none;
  }
}

static void see(ranging *r, uint64_t of) {
  for (size_t k = 0; k < r->n_source; k++) r->source[k].seen |= (r->source[k].span.of & of) != 0;
}

/* Notes the leaves that a call outside of the walk reads, other than the index by which it chooses
 * rows. */
static iso_code see_arguments(ranging *r, int side, const rule_term *t, uint32_t but,
                              iso_error *err) {
  const st_walk *w = &r->walk[side];
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < t->n && !c; k++) {
    const rule_term *a = t->child[k];
    if (k == but) continue;
    if (a->kind == RULE_LIST) c = see_arguments(r, side, a, UINT32_MAX, err);
    if (a->kind != RULE_VAR) continue;
    st_span of = w->span[a->u.i];
    bool any = false;
    if (!w->needed[a->u.i] && is_free(r->s, side, (size_t)a->u.i))
      c = span_of(r, eg_class_of(r->s->g, r->s->map[side][a->u.i]), 0, &of, &any, err);
    if (!c && (w->needed[a->u.i] || any)) see(r, of.of);
  }
  return c;
}

static iso_code see_sources(ranging *r, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = r->s->graph[side];
    const st_walk *w = &r->walk[side];
    for (size_t j = 0; j < g->n_nodes && !c; j++) {
      const synth_node *n = &g->node[j];
      if (n->kind != SYNTH_OP || r->s->map[side][j].i == EG_NONE || w->needed[j]) continue;
      const rule_operator *o = rule_operator_of(n->call->u.s);
      c = see_arguments(r, side, n->call, o->ends == RULE_ENDS_NOWHERE ? UINT32_MAX : o->index,
                        err);
    }
    for (size_t k = 0; k < g->n_outputs; k++)
      if (w->needed[g->output[k].node]) see(r, w->span[g->output[k].node].of);
  }
  return c;
}

/* Whether a look-up bounds only some elements of its leaves. One that reads only some of them, or
 * reads them under a condition, is taken as a bound on all where nothing else looks at the others
 * and no look-up reads further rows. */
static bool bounds_some_only(const ranging *r, const limit *l, const st_span *x) {
  if (!x->some) return false;
  for (size_t k = 0; k < r->n_source; k++)
    if (r->source[k].seen && (r->source[k].span.of & l->of)) return true;
  for (size_t k = 0; k < r->n_limit; k++)
    if ((r->limit[k].of & l->of) && r->limit[k].read->rows > l->read->rows) return true;
  return false;
}

static iso_code drop_limits(ranging *r, iso_error *err) {
  iso_code c = see_sources(r, err);
  size_t n = 0;
  for (size_t k = 0; k < r->n_limit && !c; k++) {
    limit *l = &r->limit[k];
    l->dropped = bounds_some_only(r, l, &r->walk[l->side].span[l->read->index]);
  }
  for (size_t k = 0; k < r->n_limit && !c; k++)
    if (!r->limit[k].dropped) r->limit[n++] = r->limit[k];
  if (!c) r->n_limit = n;
  return c;
}

/* Look-ups whose captured indices lie inside the table are limits. Where indices are known to leave
 * the table on other values, although the captured ones do not since inputs go together, their
 * leaves keep their values. */
static iso_code find_limits(ranging *r, iso_error *err) {
  iso_code c = evaluate(r, err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t k = 0; k < r->walk[side].n_read && !c; k++) {
      const st_look_up *read = &r->walk[side].read[k];
      const st_span *x = &r->walk[side].span[read->index];
      if (!x->told || x->loose || !x->of || inside(x, read) || !read->has_none) continue;
      leave_none_out(r, read, x->of);
      c = evaluate(r, err);
    }
  for (int side = 0; side < 2 && !c; side++)
    for (size_t k = 0; k < r->walk[side].n_read && !c; k++) {
      const st_look_up *read = &r->walk[side].read[k];
      const st_span *x = &r->walk[side].span[read->index];
      if (!x->told || x->loose || !x->of) continue;
      if (!inside(x, read)) {
        for (size_t j = 0; j < r->n_source; j++)
          r->source[j].fixed |= (r->source[j].span.of & x->of) != 0;
        continue;
      }
      if (!iso_grow(r->limit, r->cap_limit, r->n_limit + 1)) return nomem(err);
      const int64_t rows = x->high < read->used ? read->used : read->rows;
      r->limit[r->n_limit++] =
          (limit){side, read, x->low < 0 ? -read->rows : 0, rows - 1, x->of, false};
    }
  return c ? c : drop_limits(r, err);
}

/* ---- as far as they admit ---- */

enum { BOTH = -1 };

/* `only`: the limits of one side, padding included; else BOTH. */
static iso_code fits(ranging *r, int only, bool *yes, iso_error *err) {
  const iso_code c = evaluate(r, err);
  *yes = true;
  for (size_t k = 0; k < r->n_limit && *yes && !c; k++) {
    const limit *l = &r->limit[k];
    const st_span *x = &r->walk[l->side].span[l->read->index];
    if (only != BOTH && l->side != only) continue;
    *yes = x->told && x->low >= l->low && x->high <= (only == BOTH ? l->high : l->read->rows - 1);
  }
  return c;
}

/* One end of a span is moved towards `to` as far as limits admit. */
static iso_code move(ranging *r, int64_t *end, int64_t to, int only, iso_error *err) {
  bool yes;
  int64_t good = *end, bad = to;
  *end = to;
  iso_code c = fits(r, only, &yes, err);
  if (c || yes) return c;
  while (llabs(good - bad) > 1 && !c) {
    *end = good + (bad - good) / 2;
    if (!(c = fits(r, only, &yes, err))) *(yes ? &good : &bad) = *end;
  }
  *end = good;
  return c;
}

/* Further than any table that it reads admits. */
static int64_t beyond(const ranging *r, const source *a, int only) {
  enum { FACTOR = 16 }; /* arithmetic may make it smaller */
  int64_t most = -1;
  for (size_t k = 0; k < r->n_limit; k++)
    if ((r->limit[k].of & a->span.of) && r->limit[k].read->rows > most &&
        (only == BOTH || r->limit[k].side == only))
      most = r->limit[k].read->rows;
  return most < 0 ? -1 : (most > a->span.high ? most : a->span.high) * FACTOR;
}

static iso_code widen(ranging *r, source *a, int only, int64_t *end, iso_error *err) {
  int64_t far = beyond(r, a, only);
  const rule_domain *d = node_of(r, a)->domain;
  *end = INT64_MAX;
  if (far < 0) return ISO_OK;
  if (only == BOTH && d && isfinite(d->high) && d->high < (double)far) far = (int64_t)d->high;
  if (far <= a->span.high) return *end = a->span.high + 1, ISO_OK;
  const iso_code c = move(r, &a->span.high, far, only, err);
  if (a->span.high < far || (d && isfinite(d->high))) *end = a->span.high + 1;
  return c;
}

/* The range that a side's tables alone admit, for a note where the other's admit less. */
static iso_code find_ends(ranging *r, source *a, iso_error *err) {
  const int64_t was = a->span.high;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    c = widen(r, a, side, &a->end[side], err);
    a->span.high = was;
  }
  return c;
}

/* Lowers a source below 0, where a summand, or a bound, makes rows of negative numbers, too. */
static iso_code sink(ranging *r, source *a, iso_error *err) {
  const rule_domain *d = node_of(r, a)->domain;
  const int64_t to =
      d && isfinite(d->low) && d->low > -(double)a->span.high ? (int64_t)d->low : -a->span.high;
  return a->span.low == 0 && to < 0 ? move(r, &a->span.low, to, BOTH, err) : ISO_OK;
}

static iso_code widen_all(ranging *r, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k < r->n_source && !c; k++)
    if (!r->source[k].fixed && r->source[k].span.told) c = find_ends(r, &r->source[k], err);
  for (int low = 1; low >= 0; low--)
    for (size_t k = 0; k < r->n_source && !c; k++) {
      source *a = &r->source[k];
      const rule_domain *d = node_of(r, a)->domain;
      const int64_t to = d && isfinite(d->low) && d->low > 0 ? (int64_t)d->low : 0;
      if (a->fixed || !a->span.told || beyond(r, a, BOTH) < 0) continue;
      int64_t end = INT64_MAX;
      if (low && a->span.low > to) c = move(r, &a->span.low, to, BOTH, err);
      if (!low) c = widen(r, a, BOTH, &end, err);
      a->ended = end != INT64_MAX;
    }
  for (size_t k = 0; k < r->n_source && !c; k++)
    if (r->source[k].ended) c = sink(r, &r->source[k], err);
  return c;
}

/* ---- what is kept of it ---- */

/* Whether a rule may hold inside a range only: there is padding after it, or negative numbers are
 * read from the end. Only for indices that one leaf alone decides. */
static bool matters(const ranging *r, uint64_t of) {
  for (size_t k = 0; k < r->n_limit; k++)
    if (!(r->limit[k].of & ~of) &&
        (r->limit[k].high < r->limit[k].read->rows - 1 || r->limit[k].read->wraps))
      return true;
  return false;
}

static void keep(const ranging *r, int side, size_t i) {
  const state *s = r->s;
  const st_span *x = &r->walk[side].span[i];
  st_range *out = &s->leaves.range[side][i];
  bool ended = x->told;
  for (size_t k = 0; k < r->n_source; k++) {
    const source *a = &r->source[k];
    if (!(a->span.of & x->of)) continue;
    ended &= a->ended;
    if (a->cls.i != eg_class_of(s->g, s->map[side][i]).i) continue;
    out->has_none = a->has_none;
    out->none = a->none;
    out->end[LEFT] = a->end[LEFT];
    out->end[RIGHT] = a->end[RIGHT];
  }
  out->told = ended && x->of;
  out->low = x->low;
  out->high = x->high + 1;
  out->of = x->of;
  out->matters = out->told && matters(r, x->of);
}

/* A range that one side does not read is drawn from on the other, too, where the leaf is the same.
 */
static iso_code keep_leaf(ranging *r, int side, size_t i, iso_error *err) {
  const bool needed = r->walk[side].needed[i];
  bool any = false;
  const eg_class cls = eg_class_of(r->s->g, r->s->map[side][i]);
  const iso_code c = needed ? ISO_OK : span_of(r, cls, 0, &r->walk[side].span[i], &any, err);
  if (!c && (needed || any)) keep(r, side, i);
  if (!needed) r->s->leaves.range[side][i].matters = false;
  return c;
}

iso_code st_find_ranges(state *s, iso_error *err) {
  ranging r = {.s = s};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    const size_t n = s->graph[side]->n_nodes + 1;
    if (!(s->leaves.range[side] = calloc(n, sizeof *s->leaves.range[side]))) c = nomem(err);
    if (!c) c = st_walk_new(s, side, &r.walk[side], err);
    for (size_t i = 0; i < n; i++)
      if (!c) s->leaves.range[side][i].end[LEFT] = s->leaves.range[side][i].end[RIGHT] = INT64_MAX;
  }
  if (!c) c = find_limits(&r, err);
  if (!c) c = widen_all(&r, err);
  if (!c) c = evaluate(&r, err);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      if (is_free(s, side, i)) c = keep_leaf(&r, side, i, err);
  for (size_t k = 0; k < r.n_source && !c; k++)
    if (r.source[k].fixed) s->leaves.kept[r.source[k].side][r.source[k].node] = true;
  for (int side = 0; side < 2; side++) st_walk_free(&r.walk[side]);
  free(r.source);
  free(r.limit);
  return c;
}
