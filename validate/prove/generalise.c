/* A rule with literal sizes made general: sizes, and the attributes that go with them, become names
 * as far as the proof still holds.
 *
 * Equal numbers need not mean one size: a square weight is square by chance. Which of them must go
 * together is found by changing some and not the others: where the rule still holds, they are
 * apart. Then shapes become `_` where that is proved, else each such part of equal sizes one name;
 * a size that is the product of two others, or a few times another, is written so only where it
 * must be (four heads for two groups are no square). A number that is one below a size is written
 * so where names alone do not do (a clamp of indices to a table's last row), and sizes get bounds
 * where casts make integers narrow. A float that is a power of a size (1/sqrt of it, mostly)
 * becomes an attribute with that as its condition, other floats become positive attributes; which
 * conditions need not be is found out in the end. What then is not proved is taken back: the
 * floats, then one size after the other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/exec/engine_int.h"
#include "rules/memo.h"
#include "validate/prove/generalise.h"
#include "validate/prove/prove.h"

enum {
  MAX_VALUES = 24,
  MAX_UNITS = 256,
  MAX_PARTINGS = 160,
  MAX_TRIES = 8,
  TRY_SHARE = 200,
  MAX_ATTEMPTS = 32,
  MAX_NEW_CONDITIONS = 3 * MAX_VALUES,
  MAX_ALL_WORK = 8000000
};

/* A place where a size stands: dimensions of variables in order, then integers of attributes as
 * `rewritten` meets them. */
typedef struct unit {
  int64_t value;
  size_t size; /* index into g->value */
} unit;

/* Conditions on a float that is any number. */
typedef enum needs {
  AS_A_SIZE /* the power of a size that it is, where it is one; and positive */,
  POSITIVE,
  NOTHING
} needs;

typedef struct general {
  const rule *r;
  rule_schemas *schemas;
  iso_arena *a;
  unit at[MAX_UNITS];
  size_t n_units, n_dims,
      next; /* the first n_dims are of variables; next: the one that is rewritten next */
  int64_t value[MAX_VALUES]; /* sizes that go together, in increasing order */
  bool named[MAX_VALUES];
  bool plain[MAX_VALUES]; /* neither a product nor a multiple */
  size_t n;
  const int64_t *by; /* by unit: how much its number is changed; NULL: none is, names are put */
  double real[MAX_VALUES];
  bool open[MAX_VALUES];
  needs need[MAX_VALUES]; /* by float: what is asked of it */
  size_t n_real;
  bool any_shape, products, multiples;
  bool lasts; /* a number one below a size is its last place: the bound of a clamp of indices */
  size_t n_lasts;
  int64_t limit;          /* of integers that casts make narrow; 0: there are none */
  bool below[MAX_VALUES]; /* the size is, as a condition */
  bool crowded;   /* there are more units: some sizes would be names, and others of them numbers */
  rule_memo made; /* of parts that stand in several places, whose sizes are one */
} general;

static bool note_unit(general *g, int64_t v) {
  if (g->n_units == MAX_UNITS) return false;
  g->at[g->n_units++] = (unit){v, MAX_VALUES};
  return true;
}

static size_t find_size(const general *g, int64_t v) {
  for (size_t i = 0; i < g->n; i++)
    if (g->value[i] == v) return i;
  return g->n;
}

static void note_float(general *g, double f) {
  bool seen = !isfinite(f) || !(fabs(f) > 0) || sc_mask_literal(f) || g->n_real == MAX_VALUES;
  for (size_t j = 0; j < g->n_real && !seen; j++) seen = !(g->real[j] < f) && !(g->real[j] > f);
  if (!seen) g->real[g->n_real++] = f;
}

static const rule_term *name_of(general *g, char prefix, size_t i) {
  char name[32];
  snprintf(name, sizeof name, "%s%zu", prefix == 'n' ? "size" : "value", i);
  return rule_name(g->a, name);
}

static bool in_attribute(const general *g, size_t size) {
  for (size_t k = g->n_dims; k < g->n_units; k++)
    if (g->at[k].size == size) return true;
  return false;
}

/* The size of index `at` as the product of two, as a few times another, as a name, or as it stands.
 */
static const rule_term *size_term(general *g, size_t at) {
  const int64_t v = g->value[at];
  for (int64_t times = 2; times <= 4 && g->multiples && !g->plain[at]; times++) {
    const size_t i = v % times ? g->n : find_size(g, v / times);
    if (i == g->n || !g->named[i] || v / times < 3) continue;
    return rule_expr(g->a, "*", (const rule_term *[]){rule_int(g->a, times), size_term(g, i)}, 2);
  }
  for (size_t i = 0; i < 2 * g->n && g->products && !g->plain[at] && v > 3; i++) {
    /* Heads and their size stand in attributes; their products are sizes of tensors. */
    const bool any = i >= g->n;
    const size_t j = i % g->n;
    const int64_t p = g->value[j];
    if (p * p > v || v % p || !g->named[j] || !(any || in_attribute(g, j))) continue;
    const size_t k = find_size(g, v / p);
    if (k == g->n || !g->named[k] || !(any || in_attribute(g, k))) continue;
    return rule_expr(g->a, "*", (const rule_term *[]){name_of(g, 'n', j), name_of(g, 'n', k)}, 2);
  }
  return g->named[at] ? name_of(g, 'n', at) : rule_int(g->a, v);
}

/* The term for the next place of a size: noted while there are no units, else as they say. */
static const rule_term *next_unit(general *g, const rule_term *t) {
  const bool sized = t->kind == RULE_INT && t->u.i > 1 && t->u.i < (1 << 30);
  if (!sized) return t;
  if (g->next >= MAX_UNITS) return g->crowded = true, t;
  const size_t i = g->next++;
  if (i >= g->n_units && !note_unit(g, t->u.i)) return t;
  if (g->by) return g->by[i] ? rule_int(g->a, t->u.i + g->by[i]) : t;
  return g->at[i].size < g->n ? size_term(g, g->at[i].size) : t;
}

/* A number that is no size: one below a size, where it is taken for that; else as it stands. */
static const rule_term *last_place(general *g, const rule_term *t) {
  const size_t i = t->u.i > 0 && t->u.i < INT64_MAX ? find_size(g, t->u.i + 1) : g->n;
  if (i == g->n || !g->named[i]) return t;
  g->n_lasts++;
  if (!g->lasts || g->by) return t;
  return rule_expr(g->a, "-", (const rule_term *[]){size_term(g, i), rule_int(g->a, 1)}, 2);
}

static const rule_term *in_list(general *g, const rule_term *t);

static const rule_term *rewritten(general *g, const rule_term *t, const rule_arg *arg) {
  if (t->kind == RULE_OP || (t->kind == RULE_LIST && !(arg && sc_counts(arg))))
    return in_list(g, t);
  if (arg && sc_counts(arg) && t->kind == RULE_INT) return next_unit(g, t);
  if (arg && sc_counts(arg) && t->kind == RULE_LIST) {
    const rule_term *c[RULE_MAX_RANK];
    if (t->n > RULE_MAX_RANK) return t;
    for (uint32_t i = 0; i < t->n; i++) c[i] = next_unit(g, t->child[i]);
    return rule_list(g->a, c, t->n);
  }
  if (arg && arg->type == RULE_ARG_SCALAR && t->kind == RULE_INT) return last_place(g, t);
  if (arg && sc_takes_floats(arg) && t->kind == RULE_FLOAT) {
    note_float(g, t->u.f);
    for (size_t j = 0; j < g->n_real; j++)
      if (g->open[j] && !(g->real[j] < t->u.f) && !(g->real[j] > t->u.f)) return name_of(g, 'a', j);
  }
  return t;
}

static const rule_term *in_list(general *g, const rule_term *t) {
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(g->schemas, t->u.s) : NULL;
  if (t->kind == RULE_VAR) return t;
  const rule_term *made = rule_memo_find(&g->made, t, NULL);
  if (made) return made;
  const rule_term **c = iso_arena_alloc(g->a, (t->n + 1) * sizeof *c);
  if (!c) return NULL;
  const bool getitem = t->kind == RULE_OP && !strcmp(t->u.s, "getitem");
  for (uint32_t i = 0; i < t->n; i++) {
    c[i] = getitem && i ? t->child[i]
                        : rewritten(g, t->child[i], s && i < s->n_args ? &s->arg[i] : NULL);
    if (!c[i]) return NULL;
  }
  made = t->kind == RULE_OP     ? rule_op(g->a, t->u.s, c, t->n)
         : t->kind == RULE_LIST ? rule_list(g->a, c, t->n)
                                : t;
  return made && rule_memo_put(&g->made, t, NULL, made) ? made : NULL;
}

/* Powers of sizes that scales are: f^up = size, or f^down size = 1. */
static const struct power { int up, down; } powers[] = {{0, 2}, {2, 0}, {0, 4}, {0, 1}};

/* The size that a float is a power of, by index; g->n where it is none. */
static size_t size_of_float(const general *g, double f, struct power *as) {
  for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
    *as = powers[k];
    const double v = nearbyint(as->up ? pow(f, as->up) : 1 / pow(f, as->down));
    if (!(v >= 2) || v > 1e9 ||
        fabs(f - (as->up ? pow(v, 1.0 / as->up) : 1 / pow(v, 1.0 / as->down))) > 4e-16 * f)
      continue;
    const size_t i = find_size(g, (int64_t)v);
    if (i < g->n && g->named[i]) return i;
  }
  return g->n;
}

static const rule_term *times(general *g, const rule_term *x, const rule_term *y) {
  return rule_expr(g->a, "*", (const rule_term *[]){x, y}, 2);
}

/* x^n, n at least 1. */
static const rule_term *to_the(general *g, const rule_term *x, int n) {
  const rule_term *r = x;
  for (int i = 1; i < n; i++) r = times(g, r, x);
  return r;
}

/* Conditions of float attributes: the power of a size that they are, and positive. Of sizes that
 * they, and so the places in them, stay what they are as narrow integers. */
static uint32_t conditions(general *g, const rule_term **where) {
  uint32_t n = 0;
  for (size_t i = 0; i < g->n; i++) {
    const rule_term *s = g->below[i] && g->named[i] ? size_term(g, i) : NULL;
    if (!s || s->kind != RULE_NAME) continue;
    where[n++] = rule_expr(g->a, "<", (const rule_term *[]){s, rule_int(g->a, g->limit)}, 2);
  }
  for (size_t j = 0; j < g->n_real; j++) {
    const double f = g->real[j];
    struct power p;
    if (!g->open[j] || f < 0 || g->need[j] == NOTHING) continue;
    const rule_term *s = name_of(g, 'a', j);
    where[n++] = rule_expr(g->a, ">", (const rule_term *[]){s, rule_int(g->a, 0)}, 2);
    const size_t k = g->need[j] == AS_A_SIZE ? size_of_float(g, f, &p) : g->n;
    if (k == g->n) continue;
    const rule_term *size = size_term(g, k),
                    *l = p.up ? to_the(g, s, p.up) : times(g, to_the(g, s, p.down), size);
    where[n++] = rule_expr(g->a, "=", (const rule_term *[]){l, p.up ? size : rule_int(g->a, 1)}, 2);
  }
  return n;
}

static bool make(general *g, rule *out) {
  const rule *r = g->r;
  rule_variable *var = iso_arena_alloc(g->a, (r->n_vars + 1) * sizeof *var);
  rule_attribute *attr = iso_arena_alloc(g->a, (g->n_real + 1) * sizeof *attr);
  const rule_term **where = iso_arena_alloc(g->a, MAX_NEW_CONDITIONS * sizeof *where);
  if (!var || !attr || !where) return false;
  *out = *r;
  g->next = g->n_lasts = 0;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_term **dim = iso_arena_alloc(g->a, (r->var[i].n_dims + 1) * sizeof *dim);
    if (!dim) return false;
    var[i] = r->var[i];
    for (uint32_t k = 0; k < r->var[i].n_dims; k++)
      if (!(dim[k] = next_unit(g, r->var[i].dim[k]))) return false;
    var[i].dim = dim;
    if (g->any_shape) var[i].any_shape = true, var[i].n_dims = 0;
  }
  if (g->n_dims == 0) g->n_dims = g->next;
  out->var = var;
  out->n_attrs = 0;
  for (size_t j = 0; j < g->n_real; j++) {
    if (!g->open[j]) continue;
    const rule_term *n = name_of(g, 'a', j);
    if (!n) return false;
    attr[out->n_attrs++] = (rule_attribute){n->u.s, 'f'};
  }
  out->attr = attr;
  out->n_where = conditions(g, where);
  out->where = where;
  for (uint32_t i = 0; i < out->n_where; i++)
    if (!where[i]) return false;
  g->made = (rule_memo){0};
  out->lhs = in_list(g, r->lhs);
  out->rhs = in_list(g, r->rhs);
  rule_memo_free(&g->made);
  return out->lhs && out->rhs;
}

static bool usable(const rule *r) {
  if (r->n_where || r->n_attrs || r->n_vars > 64) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (r->var[i].any_shape || r->var[i].leading || r->var[i].low || r->var[i].high) return false;
    for (uint32_t k = 0; k < r->var[i].n_dims; k++)
      if (r->var[i].dim[k]->kind != RULE_INT) return false;
  }
  return true;
}

/* ---- which equal numbers go together ---- */

typedef struct attempt {
  rule *out;
  rule_verdict *verdict;
  const val_options *o;
  const val_generality *how;
  iso_error *err;
  iso_code code;
  size_t n_partings, n_attempts;
  int64_t work;
} attempt;

static bool is_number(const general *g, int64_t v) {
  for (size_t i = 0; i < g->n_units; i++)
    if (g->at[i].value == v) return true;
  return false;
}

/* The numbers of these units, which are all `v`, changed by `by`; with `products`, those that are
 * one of them times another number as well: four heads are two groups of two. Returns: whether a
 * product was changed. */
static bool changed(const general *g, const bool *some, int64_t v, int64_t by, bool products,
                    int64_t *out) {
  bool any = false;
  for (size_t i = 0; i < g->n_units; i++) {
    const int64_t u = g->at[i].value;
    const bool product = products && !some[i] && u > v && u % v == 0 && is_number(g, u / v);
    out[i] = some[i] ? by : product ? by * (u / v) : 0;
    any |= product;
  }
  return any;
}

static bool holds_changed(general *g, attempt *t, const int64_t *by) {
  rule_verdict v = {.status = RULE_UNKNOWN};
  val_options with = *t->o;
  sc_sight sight = {0};
  rule try;
  with.z3_rlimit = 0; /* without Z3: what is found out here is proved later */
  if (t->code || ++t->n_partings > MAX_PARTINGS || t->work > MAX_ALL_WORK) return false;
  g->by = by;
  if (!make(g, &try)) t->code = iso_fail(t->err, ISO_NOMEM, "out of memory");
  else t->code = sc_prove(&(sc_asked){&try, g->schemas, &with}, false, NULL, &v, &sight, t->err);
  t->work += sight.work;
  if (!t->code && v.status != RULE_PROVED && sc_only_masks(&try))
    t->code = sc_prove(&(sc_asked){&try, g->schemas, &with}, true, NULL, &v, &sight, t->err),
    t->work += sight.work;
  g->by = NULL;
  return !t->code && v.status == RULE_PROVED;
}

/* Whether the rule holds with the numbers of these units changed, up and down: the end of a slice
 * may lie behind its tensor's. */
static bool apart(general *g, attempt *t, const bool *some, int64_t v) {
  int64_t by[MAX_UNITS];
  for (int products = 0; products < 2; products++) {
    const bool any = changed(g, some, v, 1, products, by);
    if (products && !any) return false;
    if (!holds_changed(g, t, by)) continue;
    changed(g, some, v, -1, products, by);
    return holds_changed(g, t, by);
  }
  return false;
}

/* One more size: of these units. */
static void add_size(general *g, const bool *of) {
  size_t i = 0, first = 0;
  while (!of[first]) first++;
  const int64_t v = g->at[first].value;
  if (g->n == MAX_VALUES) return;
  while (i < g->n && g->value[i] <= v) i++;
  memmove(g->value + i + 1, g->value + i, (g->n - i) * sizeof *g->value);
  for (size_t k = 0; k < g->n_units; k++)
    if (g->at[k].size != MAX_VALUES && g->at[k].size >= i) g->at[k].size++;
  g->n++;
  g->value[i] = v;
  for (size_t k = 0; k < g->n_units; k++)
    if (of[k]) g->at[k].size = i;
}

/* Part the units of one number: one alone or two together where they can change while the rest
 * stands, else what is left. */
static void part(general *g, attempt *t, int64_t v) {
  bool left[MAX_UNITS] = {false}, some[MAX_UNITS];
  size_t n = 0;
  for (size_t i = 0; i < g->n_units; i++)
    if (g->at[i].value == v) left[i] = true, n++;
  for (size_t i = 0; i < g->n_units && n > 1 && g->n < MAX_VALUES - 1; i++) {
    if (!left[i]) continue;
    for (size_t k = i; k < g->n_units && left[i] && n > 1; k++) {
      if (!left[k] || (k > i && n == 2)) continue;
      memset(some, 0, sizeof some);
      some[i] = some[k] = true;
      if (!apart(g, t, some, v)) continue;
      add_size(g, some);
      n -= i == k ? 1 : 2;
      left[i] = left[k] = false;
    }
  }
  if (n) add_size(g, left);
}

/* `parted`: equal numbers that need not be one size are apart. */
static void find_sizes(general *g, attempt *t, bool parted) {
  g->n = 0;
  for (size_t i = 0; i < g->n_units; i++) g->at[i].size = MAX_VALUES;
  if (!parted) t->n_partings = MAX_PARTINGS;
  for (size_t i = 0; i < g->n_units && !t->code; i++)
    if (g->at[i].size == MAX_VALUES) part(g, t, g->at[i].value);
}

static bool all_distinct(const general *g) {
  for (size_t i = 1; i < g->n; i++)
    if (g->value[i] == g->value[i - 1]) return false;
  return true;
}

/* ---- what is tried ---- */

/* Returns: whether to stop: it is proved, or something failed. */
static bool attempt_one(general *g, attempt *t) {
  rule try;
  val_options with = *t->o;
  with.z3_rlimit = 0;
  if (!t->code && (++t->n_attempts > MAX_ATTEMPTS || t->work > MAX_ALL_WORK || val_stopped(t->o))) {
    *t->verdict = (rule_verdict){.status = RULE_UNKNOWN};
    return false;
  }
  if (!make(g, &try)) t->code = iso_fail(t->err, ISO_NOMEM, "out of memory");
  int64_t work = 0;
  if (!t->code) t->code = sc_prove_read(&try, g->schemas, &with, t->verdict, &work, t->err);
  t->work += work;
  if (t->code) return true;
  bool holds = t->verdict->status == RULE_PROVED;
  if (holds && !rule_share(g->a, &try)) t->code = iso_fail(t->err, ISO_NOMEM, "out of memory");
  if (holds && !t->code && t->how->admits)
    t->code = t->how->admits(t->how->ctx, &try, &holds, t->err);
  if (t->code) return true;
  if (holds) *t->out = try;
  else *t->verdict = (rule_verdict){.status = RULE_UNKNOWN};
  return holds;
}

static void open_all(general *g, bool open) { memset(g->open, open, g->n_real * sizeof *g->open); }

/* A product or a multiple may be one by chance: what need not be is a name. */
static void attempt_plain(general *g, attempt *t) {
  const rule_verdict was = *t->verdict;
  for (size_t i = 0; i < g->n && !t->code;
       i++) { /* the small ones first: the others are made of them */
    const rule_term *x = size_term(g, i);
    if (!x || x->kind != RULE_EXPR) continue;
    g->plain[i] = true;
    if (!attempt_one(g, t)) g->plain[i] = false, *t->verdict = was;
  }
}

/* A size that is a product by chance (4 experts, 2 chosen): by its last place it may be a name. */
static void attempt_lasts(general *g, attempt *t) {
  const general had = *g;
  const rule_verdict was = *t->verdict;
  g->products = g->multiples = false;
  g->lasts = true;
  if (!attempt_one(g, t)) *g = had, *t->verdict = was;
}

/* Sizes bounded by the narrow integers; each that need not be is not. */
static bool attempt_below(general *g, attempt *t) {
  memset(g->below, g->limit > 0, sizeof g->below);
  if (g->limit > 0 && attempt_one(g, t)) {
    const rule_verdict was = *t->verdict;
    for (size_t i = 0; i < g->n && !t->code; i++) {
      g->below[i] = false;
      if (!attempt_one(g, t)) g->below[i] = true, *t->verdict = was;
    }
    return true;
  }
  memset(g->below, 0, sizeof g->below);
  return false;
}

/* How sizes are written, in the order in which it is tried. */
typedef enum way { PLAIN, PRODUCTS, MULTIPLES, LASTS } way;

/* The sizes that are named, in each of the ways. */
static bool attempt_ways(general *g, attempt *t) {
  memset(g->plain, 0, sizeof g->plain);
  memset(g->below, 0, sizeof g->below);
  for (way w = PLAIN; w <= LASTS; w++) {
    g->lasts = w == LASTS;
    g->products = w == PRODUCTS || w == MULTIPLES;
    g->multiples = w == MULTIPLES;
    if (g->lasts && !g->n_lasts) continue;
    if (!attempt_one(g, t) && (g->products || !attempt_below(g, t))) continue;
    if (g->products && !t->code) attempt_plain(g, t);
    if (g->products && g->n_lasts && !t->code) attempt_lasts(g, t);
    return true;
  }
  g->lasts = g->products = g->multiples = false;
  return false;
}

static bool attempt_named(general *g, attempt *t) {
  memset(g->named, 1, g->n * sizeof *g->named);
  g->any_shape = g->n_units == g->n_dims && g->r->n_vars > 0;
  if (g->any_shape && attempt_one(g, t)) return true;
  g->any_shape = false;
  return attempt_ways(g, t);
}

/* Proved with its floats as they stand: which of them may be any number. */
static void attempt_floats(general *g, attempt *t) {
  const rule_verdict was = *t->verdict;
  bool better = false;
  for (size_t j = 0; j < g->n_real && g->n_real > 1 && !t->code; j++) {
    if (g->open[j]) continue;
    g->open[j] = true;
    const bool holds = attempt_one(g, t) && !t->code;
    g->open[j] = holds;
    better |= holds;
    if (!holds) *t->verdict = was;
  }
}

/* Sizes as they stand: one at a time, then one after the other. */
static bool attempt_fewer(general *g, attempt *t) {
  for (size_t i = 0; i < g->n && i < MAX_TRIES; i++) {
    memset(g->named, 1, g->n * sizeof *g->named);
    g->named[i] = false;
    if (attempt_ways(g, t)) return true;
  }
  memset(g->named, 1, g->n * sizeof *g->named);
  for (size_t i = 0; i + 1 < g->n && i < MAX_TRIES; i++) {
    g->named[i] = false;
    if (attempt_one(g, t)) return true;
  }
  return false;
}

/* Of the floats that are open: which need meet less. */
static void attempt_less(general *g, attempt *t) {
  const rule_verdict was = *t->verdict;
  struct power p;
  for (size_t j = 0; j < g->n_real && !t->code; j++) {
    if (!g->open[j]) continue;
    const bool as_size = g->real[j] > 0 && size_of_float(g, g->real[j], &p) < g->n;
    const needs had = g->need[j];
    for (int less = NOTHING; less > (as_size ? AS_A_SIZE : POSITIVE) && less > (int)had && !t->code;
         less--) {
      g->need[j] = (needs)less;
      if (attempt_one(g, t)) break;
      g->need[j] = had;
      *t->verdict = was;
    }
  }
}

/* Floats that are powers of sizes are open, others stand as they are. Returns: whether there are
 * both. */
static bool open_sizes(general *g) {
  struct power p;
  size_t n = 0;
  memset(g->named, 1, g->n * sizeof *g->named);
  for (size_t j = 0; j < g->n_real; j++)
    n += g->open[j] = g->real[j] > 0 && size_of_float(g, g->real[j], &p) < g->n;
  return n > 0 && n < g->n_real;
}

static bool attempt_sizes(general *g, attempt *t) {
  open_all(g, true);
  bool holds = attempt_named(g, t);
  if (!holds && open_sizes(g) && (holds = attempt_named(g, t)) && !t->code) attempt_floats(g, t);
  if (holds && !t->code) attempt_less(g, t);
  if (holds) return true;
  open_all(g, false);
  if (!g->n_real || !attempt_named(g, t)) return false;
  if (!t->code) attempt_floats(g, t);
  if (!t->code) attempt_less(g, t);
  return true;
}

static void attempt_all(general *g, attempt *t) {
  find_sizes(g, t, true);
  if (t->code || attempt_sizes(g, t)) return;
  if (!all_distinct(g)) {
    find_sizes(g, t, false);
    if (t->code || attempt_sizes(g, t)) return;
  }
  /* From here on it is only worth while where the rule as it stands is proved. */
  t->code = val_prove(g->r, g->schemas, t->o, t->verdict, t->err);
  if (t->code || t->verdict->status != RULE_PROVED) return;
  const rule_verdict concrete = *t->verdict;
  if (!attempt_fewer(g, t)) *t->verdict = concrete;
  else if (!t->code) attempt_floats(g, t);
}

iso_code val_generalise(const rule *r, rule_schemas *schemas, const val_options *o,
                        const val_generality *how, rule *out, rule_verdict *verdict,
                        iso_error *err) {
  const int64_t limit[2] = {sc_narrow_limit(r->lhs), sc_narrow_limit(r->rhs)};
  general g = {.r = r, .schemas = schemas, .a = how->a};
  g.limit = limit[0] && (!limit[1] || limit[0] < limit[1]) ? limit[0] : limit[1];
  attempt t = {.out = out, .verdict = verdict, .o = o, .how = how, .err = err};
  rule same;
  *out = *r;
  if (!usable(r)) return val_prove(r, schemas, o, verdict, err);
  if (!make(&g, &same))
    return iso_fail(err, ISO_NOMEM, "out of memory"); /* notes units and floats */
  if (g.crowded || (g.n_units == 0 && g.n_real == 0)) return val_prove(r, schemas, o, verdict, err);
  attempt_all(&g, &t);
  return t.code;
}
