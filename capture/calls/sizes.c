/* Sizes that the calls of a side leave open, as sizes of one graph.
 *
 * Each call was captured with symbols of its own. State that one call hands on has the shape that
 * the next one reads, and parts of an input make up the whole of the other side's: these equations
 * give each symbol of a call as a term over the symbols of one graph, the other side's where that
 * makes one call, else the first call's (T of a prompt is T - 1 where the whole is T tokens long).
 * The larger or smaller of two sizes is the one that it is within the ranges of all calls: what a
 * window leaves of a prompt is the window where the next call was captured behind a full one.
 * Where a symbol is not given, or an equation holds at the captured sizes alone, all sizes are
 * those captured. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/calls/calls_int.h"

enum { MOST_SYMBOLS = 64 }; /* symbols.c refuses more */

/* ---- sizes as sums of symbols ---- */

/* k + by[0] S0 + by[1] S1 + ... */
typedef struct affine {
  int64_t k, by[MOST_SYMBOLS];
  bool fine; /* it is one */
} affine;

static size_t symbol_of(const cap_graph *g, const char *name) {
  size_t i = 0;
  while (i < g->n_symbols && strcmp(g->symbol[i].name, name) != 0) i++;
  return i;
}

/* x + times * y */
static void add_times(affine *x, const affine *y, int64_t times) {
  int64_t by;
  x->fine = x->fine && y->fine && !__builtin_mul_overflow(y->k, times, &by) &&
            !__builtin_add_overflow(x->k, by, &x->k);
  for (size_t i = 0; x->fine && i < MOST_SYMBOLS; i++)
    x->fine = !__builtin_mul_overflow(y->by[i], times, &by) &&
              !__builtin_add_overflow(x->by[i], by, &x->by[i]);
}

static bool is_number(const affine *x) {
  for (size_t i = 0; i < MOST_SYMBOLS; i++)
    if (x->by[i]) return false;
  return x->fine;
}

/* a is at least b for all that the symbols may be. */
static bool at_least(const chain *x, const affine *a, const affine *b) {
  affine d = *a;
  add_times(&d, b, -1);
  int64_t least = d.k, by;
  for (size_t i = 0; d.fine && i < x->scale->n_symbols; i++) {
    const cap_symbol *s = &x->range[i];
    if (d.by[i] < 0 && s->max == INT64_MAX) return false;
    d.fine = !__builtin_mul_overflow(d.by[i], d.by[i] < 0 ? s->max : s->min, &by) &&
             !__builtin_add_overflow(least, by, &least);
  }
  return d.fine && least >= 0;
}

/* Of a term over the symbols of x->scale. */
static affine affine_of(const chain *x, const rule_term *t) {
  affine out = {.fine = true}, part[2] = {{0}, {0}};
  const size_t at = t->kind == RULE_NAME ? symbol_of(x->scale, t->u.s) : MOST_SYMBOLS;
  if (t->kind == RULE_INT) return out.k = t->u.i, out;
  if (at < x->scale->n_symbols) return out.by[at] = 1, out;
  if (t->kind != RULE_EXPR || t->n > 2) return (affine){0};
  for (uint32_t i = 0; i < t->n; i++) part[i] = affine_of(x, t->child[i]);
  const bool sum = strcmp(t->u.s, "+") == 0, less = strcmp(t->u.s, "-") == 0,
             max = strcmp(t->u.s, "max") == 0, min = strcmp(t->u.s, "min") == 0;
  if (t->n == 2 && (max || min)) {
    const bool first = at_least(x, &part[min], &part[max]);
    return first || at_least(x, &part[max], &part[min]) ? part[!first] : (affine){0};
  }
  if (t->n == 1) add_times(&out, &part[0], less ? -1 : 1);
  else if (sum || less) {
    out = part[0];
    add_times(&out, &part[1], less ? -1 : 1);
  } else if (strcmp(t->u.s, "*") == 0 && (is_number(&part[0]) || is_number(&part[1]))) {
    const bool first = is_number(&part[0]);
    add_times(&out, &part[first], part[!first].k);
  } else out.fine = false;
  return out.fine && (t->n == 2 || less) ? out : (affine){0};
}

static const rule_term *of_two(chain *x, const rule_term *a, const char *op, const rule_term *b) {
  const rule_term *child[2] = {a, b};
  return a && b ? rule_expr(x->a, op, child, 2) : NULL;
}

static const rule_term *affine_term(chain *x, const affine *s) {
  const rule_term *out = NULL;
  for (size_t i = 0; i < x->scale->n_symbols; i++) {
    if (!s->by[i]) continue;
    const rule_term *one = rule_name(x->a, x->scale->symbol[i].name);
    if (one && s->by[i] != 1) one = of_two(x, rule_int(x->a, s->by[i]), "*", one);
    out = out ? of_two(x, out, "+", one) : one;
    if (!out) return NULL;
  }
  if (!out) return rule_int(x->a, s->k);
  return s->k == 0 ? out
                   : of_two(x, out, s->k < 0 ? "-" : "+", rule_int(x->a, s->k < 0 ? -s->k : s->k));
}

static const rule_term *simplified(chain *x, const rule_term *t) {
  if (!t) return NULL;
  const affine s = affine_of(x, t);
  return s.fine ? affine_term(x, &s) : t;
}

const rule_term *calls_sum(chain *x, const rule_term *a, const rule_term *b) {
  return simplified(x, of_two(x, a, "+", b));
}

/* ---- terms of a call as those of all ---- */

static const rule_term *rebuild(chain *x, const rule_term *t, const rule_term *const *child) {
  return t->kind == RULE_LIST   ? rule_list(x->a, child, t->n)
         : t->kind == RULE_EXPR ? rule_expr(x->a, t->u.s, child, t->n)
                                : rule_op(x->a, t->u.s, child, t->n);
}

const rule_term *calls_translate(chain *x, size_t k, const rule_term *t) {
  if (t->kind == RULE_VAR) return rule_var(x->a, x->to[k][t->u.i]);
  if (t->kind == RULE_NAME) {
    const size_t at = symbol_of(x->g[k], t->u.s);
    return at < x->g[k]->n_symbols ? x->size[k][at] : rule_term_copy(x->a, t);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST && t->kind != RULE_EXPR)
    return rule_term_copy(x->a, t);
  const rule_term **child = malloc((t->n + 1) * sizeof *child), *out = NULL;
  bool fine = child != NULL;
  for (uint32_t i = 0; i < t->n && fine; i++)
    fine = (child[i] = calls_translate(x, k, t->child[i])) != NULL;
  if (fine) out = rebuild(x, t, child);
  free(child);
  return t->kind == RULE_EXPR ? simplified(x, out) : out;
}

/* Whether the symbols in the size are given. */
static bool given(const chain *x, size_t k, const rule_term *t) {
  if (t->kind == RULE_NAME) {
    const size_t at = symbol_of(x->g[k], t->u.s);
    return at < x->g[k]->n_symbols && x->size[k][at];
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!given(x, k, t->child[i])) return false;
  return true;
}

/* ---- equations ---- */

typedef struct solving {
  chain *x;
  bool more, unlike, open, no_memory; /* of one round */
  bool any; /* a symbol may be a term that is no sum: none is given as one */
} solving;

static bool alike(const chain *x, const rule_term *a, const rule_term *b) {
  const affine p = affine_of(x, a), q = affine_of(x, b);
  if (!p.fine || !q.fine) return rule_term_eq(a, b);
  return p.k == q.k && memcmp(p.by, q.by, sizeof p.by) == 0;
}

/* A size of call `k` is `want`, over the symbols of all; NULL: that is not known yet. */
static void equate(solving *v, size_t k, const rule_term *have, const rule_term *want) {
  chain *x = v->x;
  v->open |= !want;
  if (!want) return;
  if (!given(x, k, have)) {
    const size_t at = have->kind == RULE_NAME ? symbol_of(x->g[k], have->u.s) : MOST_SYMBOLS;
    const bool fits = at < x->g[k]->n_symbols && (v->any || affine_of(x, want).fine);
    v->open |= !fits;
    if (!fits) return;
    x->size[k][at] = want;
    v->more = true;
    return;
  }
  const rule_term *own = calls_translate(x, k, have);
  v->no_memory |= !own;
  v->unlike |= own && !alike(x, own, want);
}

static const rule_term *known(solving *v, size_t k, const rule_term *t) {
  if (!given(v->x, k, t)) return NULL;
  const rule_term *out = calls_translate(v->x, k, t);
  v->no_memory |= !out;
  return out;
}

static const rule_term *part_size(const chain *x, const calls_parts *p, size_t i, uint32_t d) {
  return x->g[p->call[i]]->node[p->node[i]].dim[d];
}

/* Part `i` is what the others leave of the whole. */
static void equate_rest(solving *v, const calls_parts *p, size_t i) {
  chain *x = v->x;
  affine rest = affine_of(x, p->dim[p->along]);
  for (size_t j = 0; j < p->n; j++) {
    if (j == i) continue;
    const rule_term *other = known(v, p->call[j], part_size(x, p, j, p->along));
    v->open |= !other;
    if (!other) return;
    const affine by = affine_of(x, other);
    add_times(&rest, &by, -1);
  }
  const rule_term *want = rest.fine ? affine_term(x, &rest) : NULL;
  equate(v, p->call[i], part_size(x, p, i, p->along), want);
}

static void equate_parts(solving *v, const calls_parts *p) {
  chain *x = v->x;
  v->unlike |= p->way == CALLS_APART || p->loose;
  for (size_t i = 0; i < p->n && p->way != CALLS_APART; i++)
    for (uint32_t d = 0; d < p->whole.rank; d++) {
      const bool along = p->way != CALLS_SAME && d == p->along, last = i + 1 == p->n;
      if (along && p->way == CALLS_BEHIND) equate_rest(v, p, i);
      else if (!along || last) equate(v, p->call[i], part_size(x, p, i, d), p->dim[d]);
    }
}

static void equate_input(solving *v, size_t k, uint32_t i) {
  chain *x = v->x;
  const cap_node *n = &x->g[k]->node[i];
  size_t from, result;
  if (calls_source(x, k, n->name, &from, &result)) {
    const cap_node *s = &x->g[from]->node[x->g[from]->result[result].node];
    for (uint32_t d = 0; d < n->output[0].shape.rank && d < s->output[0].shape.rank; d++)
      equate(v, k, n->dim[d], s->dim ? known(v, from, s->dim[d]) : NULL);
    return;
  }
  calls_parts p = calls_inputs(x, n->name);
  const int64_t whole = x->other ? calls_input(x->other, n->name) : -1;
  if (p.n < 2 || whole < 0 || p.call[0] != k) return;
  calls_settle_way(x, &p, (uint32_t)whole);
  equate_parts(v, &p);
}

static bool all_given(const chain *x) {
  for (size_t k = 0; k < x->n; k++)
    for (size_t i = 0; i < x->g[k]->n_symbols; i++)
      if (!x->size[k][i]) return false;
  return true;
}

/* Narrows a symbol of the scale to what a call says of its own, which is `s`; false: that is a
 * condition on several, or on a multiple of one. */
static bool narrow(const chain *x, cap_symbol *symbol, const cap_symbol *own, const affine *s) {
  size_t at = 0, n = 0;
  for (size_t i = 0; i < x->scale->n_symbols; i++)
    if (s->by[i]) at = i, n++;
  if (!s->fine || n != 1 || s->by[at] != 1) return false;
  int64_t low, high;
  if (__builtin_sub_overflow(own->min, s->k, &low)) low = 0;
  if (own->max == INT64_MAX || __builtin_sub_overflow(own->max, s->k, &high)) high = INT64_MAX;
  if (low > symbol[at].min) symbol[at].min = low;
  if (high < symbol[at].max) symbol[at].max = high;
  return true;
}

static void narrow_ranges(chain *x) {
  for (size_t k = 0; k < x->n; k++)
    for (size_t i = 0; i < x->g[k]->n_symbols; i++) {
      if (!x->size[k][i]) continue;
      const affine s = affine_of(x, x->size[k][i]);
      (void)narrow(x, x->range, &x->g[k]->symbol[i], &s);
    }
}

static iso_code solve(chain *x) {
  solving v = {.x = x, .more = true};
  while (v.more && !v.no_memory) {
    v.more = v.unlike = v.open = false;
    narrow_ranges(x);
    for (size_t k = 0; k < x->n; k++)
      for (uint32_t i = 0; i < x->g[k]->n_nodes; i++)
        if (x->g[k]->node[i].kind == CAP_INPUT) equate_input(&v, k, i);
    v.any = !v.more && v.open && !v.any;
    v.more |= v.any;
  }
  if (v.no_memory) return cap_no_memory(x->err);
  if (v.unlike || v.open || !all_given(x)) x->scale = NULL;
  return ISO_OK;
}

iso_code calls_settle_sizes(chain *x) {
  x->scale = x->other ? x->other : x->g[0];
  bool open = x->scale->n_symbols > 0;
  for (size_t k = 0; k < x->n; k++) {
    const size_t n = x->g[k]->n_symbols;
    open &= n > 0; /* else it may be of its own sizes alone */
    x->size[k] = calloc(n + 1, sizeof *x->size[k]);
    if (!x->size[k]) return cap_no_memory(x->err);
  }
  if (!open) return x->scale = NULL, ISO_OK;
  x->range = iso_arena_alloc(x->a, (x->scale->n_symbols + 1) * sizeof *x->range);
  if (!x->range) return cap_no_memory(x->err);
  memcpy(x->range, x->scale->symbol, x->scale->n_symbols * sizeof *x->range);
  for (size_t i = 0; i < x->g[0]->n_symbols && x->scale == x->g[0]; i++)
    if (!(x->size[0][i] = rule_name(x->a, x->g[0]->symbol[i].name))) return cap_no_memory(x->err);
  return solve(x);
}

/* ---- in text ---- */

static const char *term_text(iso_arena *a, const rule_term *t) {
  if (t->kind == RULE_INT) return iso_arena_printf(a, "%" PRId64, t->u.i);
  if (t->kind == RULE_NAME) return t->u.s;
  const char *x = term_text(a, t->child[0]), *y = t->n > 1 ? term_text(a, t->child[1]) : "";
  if (!x || !y) return NULL;
  if (t->n == 1) return iso_arena_printf(a, "(%s%s)", t->u.s, x);
  return *t->u.s == 'm' ? iso_arena_printf(a, "%s(%s, %s)", t->u.s, x, y)
                        : iso_arena_printf(a, "(%s %s %s)", x, t->u.s, y);
}

const char *calls_size_text(chain *x, const rule_term *t) { return term_text(x->a, t); }

const char *calls_text(chain *x, size_t k, const char *text) {
  const char *out = "";
  while (*text && out) {
    const size_t n = cap_symbol_length(text);
    size_t length = n; /* else a number, "and", a sign */
    while (!n && isalnum((unsigned char)text[length])) length++;
    if (length == 0) length = 1;
    const char *name = iso_arena_printf(x->a, "%.*s", (int)length, text);
    const size_t at = n && name ? symbol_of(x->g[k], name) : x->g[k]->n_symbols;
    const char *as = at < x->g[k]->n_symbols ? term_text(x->a, x->size[k][at]) : name;
    out = as ? iso_arena_printf(x->a, "%s%s", out, as) : NULL;
    text += length;
  }
  return out;
}

/* ---- ranges and guards ---- */

typedef struct guards {
  const char **of;
  size_t n;
} guards;

static iso_code add_guard(chain *x, guards *all, const char *text) {
  if (!text) return cap_no_memory(x->err);
  for (size_t i = 0; i < all->n; i++)
    if (strcmp(all->of[i], text) == 0) return ISO_OK;
  all->of[all->n++] = text;
  return ISO_OK;
}

/* What a call's symbol may be, said of the symbols of all. */
static iso_code bound(chain *x, cap_symbol *symbol, const cap_symbol *own, const rule_term *as,
                      guards *all) {
  const affine s = affine_of(x, as);
  const char *text = term_text(x->a, as);
  if (narrow(x, symbol, own, &s) || is_number(&s)) return ISO_OK;
  if (!text) return cap_no_memory(x->err);
  iso_code c = add_guard(x, all, iso_arena_printf(x->a, "%s >= %" PRId64, text, own->min));
  if (!c && own->max < INT64_MAX)
    c = add_guard(x, all, iso_arena_printf(x->a, "%s <= %" PRId64, text, own->max));
  return c;
}

/* The symbols of all, within what each call says of its own. Requires: x->scale. */
iso_code calls_give_symbols(chain *x, cap_graph *g) {
  size_t n_guards = x->scale->n_guards, n_numbers = 0, n = x->scale->n_symbols;
  for (size_t k = 0; k < x->n; k++) {
    n_guards += x->g[k]->n_guards + 2 * x->g[k]->n_symbols;
    n_numbers += x->g[k]->n_numbers;
  }
  cap_symbol *symbol = iso_arena_alloc(x->a, (n + 1) * sizeof *symbol);
  guards all = {iso_arena_alloc(x->a, (n_guards + 1) * sizeof *all.of), 0};
  int64_t *number = iso_arena_alloc(x->a, (n_numbers + 1) * sizeof *number);
  if (!symbol || !all.of || !number) return cap_no_memory(x->err);
  memcpy(symbol, x->scale->symbol, n * sizeof *symbol);
  iso_code c = ISO_OK;
  n_numbers = 0;
  for (size_t i = 0; i < n && !c; i++)
    if (!(symbol[i].name = iso_arena_strdup(x->a, symbol[i].name))) c = cap_no_memory(x->err);
  for (size_t k = 0; k < x->n; k++) {
    const cap_graph *from = x->g[k];
    for (size_t i = 0; i < from->n_symbols && !c; i++)
      c = bound(x, symbol, &from->symbol[i], x->size[k][i], &all);
    for (size_t i = 0; i < from->n_guards && !c; i++)
      c = add_guard(x, &all, calls_text(x, k, from->guard[i]));
    for (size_t i = 0; i < from->n_numbers; i++) number[n_numbers++] = from->number[i];
  }
  g->symbol = symbol, g->n_symbols = n;
  g->guard = all.of, g->n_guards = all.n;
  g->number = number, g->n_numbers = n_numbers;
  return c;
}

iso_code calls_size_at(chain *x, size_t k, const cap_size *at, size_t n, cap_size *out) {
  int64_t value[MOST_SYMBOLS];
  for (size_t i = 0; i < x->scale->n_symbols; i++) {
    value[i] = x->scale->symbol[i].now;
    for (size_t j = 0; j < n; j++)
      if (strcmp(x->scale->symbol[i].name, at[j].name) == 0) value[i] = at[j].value;
  }
  const cap_scope scope = {.symbol = x->scale->symbol, .n = x->scale->n_symbols, .value = value};
  iso_code c = ISO_OK;
  for (size_t i = 0; i < x->g[k]->n_symbols && !c; i++) {
    const char *text = term_text(x->a, x->size[k][i]);
    out[i].name = x->g[k]->symbol[i].name;
    c = text ? cap_evaluate(text, false, &scope, &out[i].value, x->err) : cap_no_memory(x->err);
  }
  return c;
}
