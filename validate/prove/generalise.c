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
 * becomes an attribute with that as its condition, other floats become positive attributes;
 * conditions that are not needed are dropped in the end. Where the rule is not proved then,
 * generality is taken back: the floats first, then one size after the other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/exec/engine_int.h"
#include "validate/prove/generalise.h"
#include "validate/prove/generalise_int.h"
#include "validate/prove/prove.h"

enum { MAX_PARTINGS = 160, MAX_TRIES = 8, MAX_ATTEMPTS = 32, MAX_ALL_WORK = 8000000 };

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
  if (!gn_write(g, &try)) t->code = iso_fail(t->err, ISO_NOMEM, "out of memory");
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

/* Part the units of one number: one alone or two together where they can change while the others
 * stay, else the remaining ones. */
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
  if (!gn_write(g, &try)) t->code = iso_fail(t->err, ISO_NOMEM, "out of memory");
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

/* The size ends one of many equal parts, whose size is a size by itself. */
static bool ends_part(const general *g, size_t at) {
  for (size_t j = 0; j < at; j++)
    if (g->named[j] && gn_in_long_row(g, g->value[at], g->value[j])) return true;
  return false;
}

/* A product or a multiple may be one by chance: where it need not be, it becomes a name. */
static void attempt_plain(general *g, attempt *t) {
  const rule_verdict was = *t->verdict;
  for (size_t i = 0; i < g->n && !t->code;
       i++) { /* the small ones first: the others are made of them */
    const rule_term *x = gn_size_term(g, i);
    if (!x || x->kind != RULE_EXPR || ends_part(g, i)) continue;
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

/* All sizes are named but for ends of parts of one, which are no size's multiples; those whose
 * number is an operand as well, too, where they are `kept`: a rank's indices are compared with
 * them. Returns: how many are named. */
static size_t name_all(general *g, bool kept) {
  size_t n = 0;
  for (size_t i = 0; i < g->n; i++)
    n += g->named[i] =
        !gn_in_long_row(g, g->value[i], 1) && !(kept && gn_is_operand(g, g->value[i]));
  return n;
}

static bool attempt_apart_from_operands(general *g, attempt *t) {
  const size_t all = name_all(g, false), n = name_all(g, true);
  return n > 0 && n < all && attempt_ways(g, t);
}

static bool attempt_named(general *g, attempt *t) {
  name_all(g, false);
  g->any_shape = g->n_units == g->n_dims && g->r->n_vars > 0;
  if (g->any_shape && attempt_one(g, t)) return true;
  g->any_shape = false;
  return attempt_ways(g, t) || (!t->code && attempt_apart_from_operands(g, t));
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
    const bool as_size = g->real[j] > 0 && gn_size_of_float(g, g->real[j], &p) < g->n;
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
    n += g->open[j] = g->real[j] > 0 && gn_size_of_float(g, g->real[j], &p) < g->n;
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

/* ---- sizes that are something of another by chance ---- */

static bool has_square(const rule_term *t) {
  if (t->kind != RULE_EXPR) return false;
  if (t->n == 2 && !strcmp(t->u.s, "*") && rule_term_eq(t->child[0], t->child[1])) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_square(t->child[i])) return true;
  return false;
}

/* A size is written as another one's square: four heads need be no square of two halves. */
static bool squares(general *g) {
  for (size_t i = 0; i < g->n; i++) {
    const rule_term *x = gn_size_term(g, i);
    if (x && has_square(x)) return true;
  }
  return false;
}

static bool is_dimension(const general *g, size_t size) {
  for (size_t k = 0; k < g->n_dims; k++)
    if (g->at[k].size == size) return true;
  return false;
}

/* Keeps as a literal a number that counts parts (two halves), where it is the only number that is
 * no dimension. */
static bool attempt_counted(general *g, attempt *t) {
  memset(g->plain, 0, sizeof g->plain);
  memset(g->below, 0, sizeof g->below);
  g->products = g->multiples = g->lasts = g->any_shape = false;
  open_all(g, true);
  size_t n = name_all(g, false), counts = 0;
  for (size_t i = 0; i < g->n; i++)
    if (g->named[i] && !is_dimension(g, i)) g->named[i] = false, counts++;
  if (counts != 1 || counts == n || !attempt_one(g, t)) return false;
  if (!t->code) attempt_less(g, t);
  return true;
}

/* The same with equal numbers as one size, then with a count as a literal. The first result stays
 * where neither holds without square sizes. Returns: whether something is proved. */
static bool attempt_others(general *g, attempt *t, const general *parted, bool found) {
  const rule_verdict verdict = *t->verdict;
  const rule out = *t->out;
  if (!all_distinct(parted)) {
    find_sizes(g, t, false);
    if (t->code || (attempt_sizes(g, t) && !(found && squares(g)))) return true;
  }
  *g = *parted;
  if (attempt_counted(g, t)) return true;
  *t->verdict = verdict;
  *t->out = out;
  return found;
}

static void attempt_all(general *g, attempt *t) {
  find_sizes(g, t, true);
  const general parted = *g;
  const bool found = !t->code && attempt_sizes(g, t);
  if (t->code || (found && !squares(g))) return;
  if (attempt_others(g, t, &parted, found) || t->code) return;
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
  if (!gn_write(&g, &same))
    return iso_fail(err, ISO_NOMEM, "out of memory"); /* notes units and floats */
  if (g.crowded || (g.n_units == 0 && g.n_real == 0)) return val_prove(r, schemas, o, verdict, err);
  attempt_all(&g, &t);
  return t.code;
}
