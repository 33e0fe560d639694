/* Between which numbers the integers of a graph lie, by those of its leaves, and where they choose
 * rows of a table. Intervals are evaluated forward: a larger span of a leaf gives larger ones. */
#include "synth/leaves/integer_spans.h"
#include "rules/names.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 30 }; /* beyond it nothing is told: products stay in 64 bits */

static const st_span UNTOLD = {0};

static st_span span(int64_t low, int64_t high, uint64_t of) {
  const bool told = low >= -(int64_t)LARGEST && high <= LARGEST;
  return (st_span){low, high, of, told, false, false};
}

static st_span untold(uint64_t of) {
  st_span s = UNTOLD;
  s.of = of;
  return s;
}

st_span st_span_join(st_span a, st_span b) {
  return (st_span){a.low < b.low ? a.low : b.low,
                   a.high > b.high ? a.high : b.high,
                   a.of | b.of,
                   a.told && b.told,
                   a.loose || b.loose,
                   a.some || b.some};
}

/* ---- one operator ---- */

typedef struct operands {
  const synth_graph *g;
  const st_span *of;
} operands;

static bool is_truth(const operands *x, const rule_term *t) {
  return t->kind == RULE_VAR && x->g->node[t->u.i].dtype == RULE_BOOL;
}

/* The span of a call's operand; of one that is no integer nothing is told. */
static st_span operand(const operands *x, const rule_term *t) {
  if (t->kind == RULE_VAR) return x->of[t->u.i];
  if (t->kind == RULE_INT) return span(t->u.i, t->u.i, 0);
  st_span s = UNTOLD;
  for (uint32_t k = 0; k < t->n; k++) s.of |= operand(x, t->child[k]).of;
  return s;
}

/* All tensors of a call, those in lists, too. */
static bool join_tensors(const operands *x, const rule_term *t, bool any, st_span *out) {
  for (uint32_t k = 0; k < t->n; k++) {
    const rule_term *c = t->child[k];
    if (c->kind == RULE_LIST) any = join_tensors(x, c, any, out);
    if (c->kind != RULE_VAR) continue;
    *out = any ? st_span_join(*out, x->of[c->u.i]) : x->of[c->u.i];
    any = true;
  }
  return any;
}

/* One of two values, by a condition. Where the condition depends on the same leaves as the values,
 * it may be there to keep them inside; where not, the value that is not chosen may be outside. */
static st_span select_one(const operands *x, const rule_term *t) {
  st_span s = UNTOLD;
  uint64_t condition = 0;
  bool any = false;
  for (uint32_t k = 0; k < t->n; k++) {
    const st_span v = operand(x, t->child[k]);
    if (is_truth(x, t->child[k])) condition |= v.of;
    else s = any ? st_span_join(s, v) : v, any = true;
  }
  s.loose |= (condition & s.of) != 0;
  s.some = true;
  s.of |= condition;
  return s;
}

static bool has_zero(st_span a) { return a.low <= 0 && a.high >= 0; }

static st_span arithmetic(const operands *x, const rule_operator *o, const rule_term *t) {
  st_span a = operand(x, t->child[0]), b = t->n > 1 ? operand(x, t->child[1]) : span(0, 0, 0);
  /* Two numbers that go together: by a truth value, as in mask * (x - start), or x - x % n. */
  const bool told = a.told && b.told, loose = a.loose || b.loose || (a.of & b.of);
  if (o->arithmetic == RULE_ARITHMETIC_RSUB) {
    const st_span first = a;
    a = b;
    b = first;
  }
  const uint64_t of = a.of | b.of;
  st_span s = untold(of);
  const bool scaled = t->n > 2 && !(t->child[2]->kind == RULE_INT && t->child[2]->u.i == 1);
  if (!told) return s;
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_ADD:
    if (!scaled) s = span(a.low + b.low, a.high + b.high, of);
    break;
  case RULE_ARITHMETIC_SUB:
  case RULE_ARITHMETIC_RSUB:
    if (!scaled) s = span(a.low - b.high, a.high - b.low, of);
    break;
  case RULE_ARITHMETIC_NEG: s = span(-a.high, -a.low, of); break;
  case RULE_ARITHMETIC_MUL: {
    const int64_t p[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    s = span(p[0], p[0], of);
    for (int k = 1; k < 4; k++) s = st_span_join(s, span(p[k], p[k], of));
    break;
  }
  default: break;
  }
  /* Beside a 0 the other factor may be any number. */
  const bool hides =
      o->arithmetic == RULE_ARITHMETIC_MUL && ((a.of && has_zero(b)) || (b.of && has_zero(a)));
  s.loose = loose;
  s.some = a.some || b.some || hides;
  return s;
}

/* A bound moves numbers outside to its end, and may be there for that. */
static st_span bounded(const operands *x, const rule_operator *o, const rule_term *t) {
  st_span s = operand(x, t->child[0]);
  for (uint32_t k = 1; k < t->n && k < 3; k++) {
    if (t->child[k]->kind == RULE_NONE) continue;
    const st_span b = operand(x, t->child[k]);
    const bool below = o->bound == RULE_BOUND_GIVEN ? k == 1 : o->bound == RULE_BOUND_BELOW;
    if (!b.told || o->bound == RULE_BOUND_BOTH) return untold(s.of | b.of);
    const bool some = s.some || b.some;
    if (!s.told) s = span(-(int64_t)LARGEST, LARGEST, s.of);
    if (below) s = span(s.low > b.low ? s.low : b.low, s.high > b.high ? s.high : b.high, s.of);
    else s = span(s.low < b.low ? s.low : b.low, s.high < b.high ? s.high : b.high, s.of);
    s.of |= b.of;
    s.some = some;
  }
  return s;
}

/* Rounded down, or what is left over, by a number that is given. */
static st_span divided(const operands *x, const rule_operator *o, const rule_term *t) {
  const st_span a = operand(x, t->child[0]), b = operand(x, t->child[1]);
  const bool rounds =
      o->choice == RULE_CHOICE_QUOTIENT ||
      (t->n > 2 && t->child[2]->kind == RULE_STRING && strcmp(t->child[2]->u.s, "floor") == 0);
  if (b.low != b.high || !b.told || b.low < 1) return untold(a.of | b.of);
  if (o->choice == RULE_CHOICE_REMAINDER) {
    const bool may_be_negative = o->same_sign && !(a.told && a.low >= 0);
    return span(may_be_negative ? 1 - b.low : 0, b.low - 1, a.of);
  }
  if (!a.told || !rounds) return untold(a.of | b.of);
  const int64_t d = b.low, low = a.low >= 0 ? a.low / d : -((d - 1 - a.low) / d),
                high = a.high >= 0 ? a.high / d : -((d - 1 - a.high) / d);
  st_span s = span(low, high, a.of);
  s.loose = a.loose;
  s.some = a.some;
  return s;
}

/* Consecutive numbers, or one number. */
static st_span filled(const rule_operator *o, const rule_term *t, const synth_node *n) {
  if (o->fill && o->fill <= t->n && t->child[o->fill - 1]->kind == RULE_INT) {
    const int64_t v = t->child[o->fill - 1]->u.i;
    return span(v, v, 0);
  }
  const int64_t last = n->shape.rank == 1 ? n->shape.dim[0] - 1 : 0;
  if (strcmp(t->u.s, OP_ARANGE) == 0) return span(0, last, 0);
  if (strcmp(t->u.s, OP_ARANGE_START) == 0 && t->child[0]->kind == RULE_INT)
    return span(t->child[0]->u.i, t->child[0]->u.i + last, 0);
  return rule_is_overload(t->u.s, OP_ZEROS) ? span(0, 0, 0) : UNTOLD;
}

/* The leaves that a floating result depends on. The index of a look-up is left out: every index
 * that runs is one of the table's rows. */
static st_span real(const operands *x, const rule_operator *o, const rule_term *t) {
  st_span s = UNTOLD;
  for (uint32_t k = 0; k < t->n; k++)
    if (o->ends == RULE_ENDS_NOWHERE || k != o->index) s.of |= operand(x, t->child[k]).of;
  return s;
}

static st_span exact_result(const operands *x, const rule_operator *o, const synth_node *n) {
  const rule_term *t = n->call;
  st_span s = UNTOLD, all = UNTOLD;
  (void)join_tensors(x, t, false, &all);
  if (n->dtype == RULE_BOOL) {
    s = span(0, 1, all.of);
    s.some = true;
    return s;
  }
  if (!rule_dtype_is_int(n->dtype)) return real(x, o, t);
  if (!t->n) return s;
  if (o->choice == RULE_CHOICE_SELECT) return select_one(x, t);
  if (o->part) {
    s = operand(x, t->child[0]);
    s.some = true;
    return s;
  }
  if (o->identity || o->rearranges || o->cast || rule_is_getitem(t->u.s))
    return operand(x, t->child[0]);
  if (o->table) { /* a table of integers */
    s = operand(x, t->child[0]);
    s.loose = false;
    s.some = true;
    return s;
  }
  if (o->fills) return filled(o, t, n);
  if (o->joins && join_tensors(x, t, false, &s)) return s;
  if (o->arithmetic && o->arithmetic != RULE_ARITHMETIC_DIV) return arithmetic(x, o, t);
  if (o->choice == RULE_CHOICE_BOUND) return bounded(x, o, t);
  if (t->n > 1 && (o->choice == RULE_CHOICE_QUOTIENT || o->choice == RULE_CHOICE_DIVISION ||
                   o->choice == RULE_CHOICE_REMAINDER))
    return divided(x, o, t);
  return untold(all.of);
}

/* Whether integers of a dtype are all numbers of the span: others wrap. */
static bool holds(rule_dtype d, const st_span *s) {
  if (d == RULE_U8) return s->low >= 0 && s->high <= UINT8_MAX;
  if (d == RULE_I8) return s->low >= INT8_MIN && s->high <= INT8_MAX;
  return d != RULE_I16 || (s->low >= INT16_MIN && s->high <= INT16_MAX);
}

static st_span result(const operands *x, const rule_operator *o, const synth_node *n) {
  const st_span s = exact_result(x, o, n);
  return s.told && !holds(n->dtype, &s) ? untold(s.of) : s;
}

/* ---- readings ---- */

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* The rows of a table less those at the end that are zero: padding of a vocabulary to a size that
 * divides well. */
static int64_t used_rows(const synth_node *table, int64_t dim) {
  const int64_t rows = table->shape.dim[dim];
  if (table->kind == SYNTH_OP || dim != 0 || table->shape.rank < 2 || rows < 1) return rows;
  const rule_tensor *t = table->value[0];
  int64_t last = t->numel;
  while (last > 0 && rule_tensor_get(t, last - 1) == 0) last--;
  return last == 0 ? rows : (last - 1) / (t->numel / rows) + 1;
}

/* By `index`, along a dimension of `table`. */
static iso_code note(st_walk *w, const rule_term *index, const rule_term *table, int64_t dim,
                     st_look_up r, iso_error *err) {
  if (index->kind != RULE_VAR || table->kind != RULE_VAR) return ISO_OK;
  const synth_node *n = &w->g->node[table->u.i];
  if (dim < 0) dim += n->shape.rank;
  if (dim < 0 || dim >= (int64_t)n->shape.rank) return ISO_OK;
  r.index = (size_t)index->u.i;
  r.rows = n->shape.dim[dim];
  r.used = used_rows(n, dim);
  if (!iso_grow(w->read, w->cap_read, w->n_read + 1)) return nomem(err);
  w->read[w->n_read++] = r;
  return ISO_OK;
}

static iso_code note_each(st_walk *w, const rule_term *t, const rule_term *list, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t k = 0; list->kind == RULE_LIST && k < list->n && !c; k++)
    if (list->child[k]->kind == RULE_VAR && w->g->node[list->child[k]->u.i].dtype != RULE_BOOL)
      c = note(w, list->child[k], t->child[0], k, (st_look_up){.wraps = true}, err);
  return c;
}

static iso_code note_classes(st_walk *w, const rule_term *t, uint32_t at, iso_error *err) {
  st_look_up r = {0};
  if (at + 3 < t->n && t->child[at + 3]->kind == RULE_INT)
    r = (st_look_up){.has_none = true, .none = t->child[at + 3]->u.i};
  const rule_term *x = t->child[at - 1];
  if (x->kind != RULE_VAR || !rule_dtype_is_int(w->g->node[t->child[at]->u.i].dtype)) return ISO_OK;
  return note(w, t->child[at], x, w->g->node[x->u.i].shape.rank > 1, r, err);
}

static iso_code note_count(st_walk *w, const rule_term *t, uint32_t at, iso_error *err) {
  if (t->child[at]->kind != RULE_VAR || t->child[at + 1]->kind != RULE_INT ||
      t->child[at + 1]->u.i < 1)
    return ISO_OK;
  if (!iso_grow(w->read, w->cap_read, w->n_read + 1)) return nomem(err);
  const int64_t rows = t->child[at + 1]->u.i;
  w->read[w->n_read++] =
      (st_look_up){.index = (size_t)t->child[at]->u.i, .rows = rows, .used = rows};
  return ISO_OK;
}

static iso_code note_readings(st_walk *w, const rule_term *t, iso_error *err) {
  const rule_operator *o = rule_operator_of(t->u.s);
  const uint32_t at = o->index;
  if (o->ends == RULE_ENDS_NOWHERE || at >= t->n) return ISO_OK;
  switch (o->ends) {
  case RULE_ENDS_ROWS: return note(w, t->child[at], t->child[0], 0, (st_look_up){0}, err);
  case RULE_ENDS_ALONG:
    if (t->child[1]->kind != RULE_INT) return ISO_OK;
    return note(w, t->child[at], t->child[0], t->child[1]->u.i, (st_look_up){0}, err);
  case RULE_ENDS_EACH: return note_each(w, t, t->child[at], err);
  case RULE_ENDS_CLASSES:
    return t->child[at]->kind == RULE_VAR ? note_classes(w, t, at, err) : ISO_OK;
  default: return at + 1 < t->n ? note_count(w, t, at, err) : ISO_OK;
  }
}

/* ---- a graph ---- */

iso_code st_walk_new(const state *s, int side, st_walk *w, iso_error *err) {
  const synth_graph *g = s->graph[side];
  bool *needed = calloc(g->n_nodes + 1, 1);
  iso_code c = ISO_OK;
  *w = (st_walk){.g = g, .needed = needed, .span = calloc(g->n_nodes + 1, sizeof *w->span)};
  if (!needed || !w->span) c = nomem(err);
  for (size_t j = 0; j < g->n_nodes && !c; j++) {
    const synth_node *n = &g->node[j];
    if (n->kind == SYNTH_OP && s->map[side][j].i != EG_NONE) c = note_readings(w, n->call, err);
  }
  for (size_t k = 0; k < w->n_read && !c; k++) needed[w->read[k].index] = true;
  for (size_t j = g->n_nodes; j-- > 0 && !c;)
    if (needed[j] && g->node[j].kind == SYNTH_OP) st_term_mark(g->node[j].call, needed);
  for (size_t j = 0; j < g->n_nodes && !c; j++) {
    if (!needed[j] || g->node[j].kind != SYNTH_OP) continue;
    if (!iso_grow(w->node, w->cap_node, w->n_node + 1)) c = nomem(err);
    else
      w->node[w->n_node++] =
          (st_walk_node){j, rule_operator_of(g->node[j].call->u.s),
                         !rule_dtype_is_int(g->node[j].dtype) && g->node[j].dtype != RULE_BOOL};
  }
  return c;
}

void st_walk_free(st_walk *w) {
  free(w->needed);
  free(w->span);
  free(w->node);
  free(w->read);
}

void st_walk_evaluate(st_walk *w) {
  const operands x = {w->g, w->span};
  for (size_t k = 0; k < w->n_node; k++)
    if (!w->node[k].real || !w->traced)
      w->span[w->node[k].node] = result(&x, w->node[k].op, &w->g->node[w->node[k].node]);
  w->traced = true;
}
