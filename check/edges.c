/* Numbers at which terms computed from a leaf jump or bend.
 *
 * Two graphs may differ only where several comparisons hold at once, where an id is one of a few,
 * or past a number that fills a padded place: draws around the captured values do not get there. So
 * the numbers that operators compare with, clamp to and fill in are carried back to the leaves,
 * through sums, products and absolute values by solving these, through other operators unchanged:
 * then they only give the scale. Leaves are drawn beside these numbers, between them and past
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/operators.h"
#include "egraph/base/rng.h"

enum { MAX_EDGES = 24, MAX_NUMBERS = 4 };
static const double largest = 1e12; /* past it there are masks, and doubles that swallow others */

typedef struct numbers {
  double at[MAX_EDGES];
  unsigned n;
} numbers;

struct chk_edges {
  numbers *of;   /* by term; of leaves: by class */
  bool *depends; /* by term: on a free leaf */
  bool any;
};

static void add(numbers *x, double e) {
  if (!(fabs(e) <= largest)) return;
  for (unsigned i = 0; i < x->n; i++)
    if (x->at[i] == e) return;
  if (x->n < MAX_EDGES) x->at[x->n++] = e;
}

/* ---- operators ---- */

typedef enum how {
  PASS,
  COMPARE,
  FILL,
  JOIN,
  SUM,
  DIFFERENCE,
  REVERSED,
  PRODUCT,
  QUOTIENT,
  ABS,
  NEG
} how;

/* How a call carries numbers on, by the operator table. */
static how kind_of(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_ADD: return SUM;
  case RULE_ARITHMETIC_SUB: return DIFFERENCE;
  case RULE_ARITHMETIC_RSUB: return REVERSED;
  case RULE_ARITHMETIC_MUL: return PRODUCT;
  case RULE_ARITHMETIC_DIV: return QUOTIENT;
  case RULE_ARITHMETIC_ABS: return ABS;
  case RULE_ARITHMETIC_NEG: return NEG;
  default: break;
  }
  const bool chooses = o->choice == RULE_CHOICE_BOUND || o->choice == RULE_CHOICE_PIECES ||
                       o->choice == RULE_CHOICE_SELECT;
  if (o->choice == RULE_CHOICE_COMPARE) return COMPARE;
  if (o->joins) return JOIN;
  return (o->exact && chooses) || (o->fill && !o->fills) ? FILL : PASS;
}

/* The few numbers that a tensor of constants is made of; more than a few are no edges. */
static void add_values(numbers *x, const rule_tensor *v) {
  numbers few = {.n = 0};
  if (v->dtype == RULE_BOOL || rule_dtype_is_complex(v->dtype)) return;
  for (int64_t i = 0; i < v->numel && few.n <= MAX_NUMBERS; i++) add(&few, rule_tensor_get(v, i));
  for (unsigned i = 0; i < few.n && few.n <= MAX_NUMBERS; i++) add(x, few.at[i]);
}

/* The numbers that an argument stands for, if it depends on nothing that is drawn. */
static void known_numbers(const chk_state *k, const chk_edges *e, const rule_term *t, numbers *x) {
  if (t->kind == RULE_FLOAT) add(x, t->u.f);
  else if (t->kind == RULE_INT) add(x, (double)t->u.i);
  else if (t->kind == RULE_VAR && !e->depends[t->u.i] && k->here.real[t->u.i].n == 1)
    add_values(x, k->here.real[t->u.i].v[0]);
  else if (t->kind == RULE_LIST)
    for (uint32_t i = 0; i < t->n; i++)
      if (t->child[i]->kind == RULE_VAR) known_numbers(k, e, t->child[i], x);
}

/* Each of the result's edges, as the operator makes it of the argument and of the other's `c`. */
static void solve(how h, bool first, double c, const numbers *from, numbers *to) {
  for (unsigned i = 0; i < from->n; i++) {
    const double y = from->at[i];
    switch (h) {
    case SUM: add(to, y - c); break;
    case DIFFERENCE: add(to, first ? y + c : c - y); break;
    case REVERSED: add(to, first ? c - y : y + c); break;
    case PRODUCT: add(to, c != 0 ? y / c : y); break;
    case QUOTIENT: add(to, first ? y * c : y != 0 ? c / y : y); break;
    case NEG: add(to, -y); break;
    case ABS: add(to, -y), add(to, y); break;
    default: add(to, y);
    }
  }
}

static void carry(chk_edges *e, const rule_term *t, how h, bool first, const numbers *beside,
                  const numbers *own) {
  if (t->kind == RULE_LIST)
    for (uint32_t i = 0; i < t->n; i++) carry(e, t->child[i], h, first, beside, own);
  if (t->kind != RULE_VAR || !e->depends[t->u.i]) return;
  numbers *to = &e->of[t->u.i];
  if (h == COMPARE || h == FILL || h == JOIN)
    for (unsigned i = 0; i < beside->n; i++) add(to, beside->at[i]);
  if (h == COMPARE) return; /* truth values have no edges */
  if (h == ABS) add(to, 0);
  const bool solved = h >= SUM && h < ABS && beside->n > 0;
  for (unsigned i = 0; solved && i < beside->n; i++) solve(h, first, beside->at[i], own, to);
  if (!solved) solve(h == ABS || h == NEG ? h : PASS, first, 0, own, to);
}

/* An operator that reads places by integers has edges for the table, not for the integers. Casts
 * pass integers on to floats. */
static bool passes(const chk_state *k, uint32_t from, const rule_term *t) {
  if (t->kind != RULE_VAR || k->here.real[from].n < 1 || k->here.real[t->u.i].n < 1) return true;
  const rule_dtype a = k->here.real[from].v[0]->dtype, b = k->here.real[t->u.i].v[0]->dtype;
  const rule_term *call = k->term[from].call;
  return rule_dtype_is_float(a) == rule_dtype_is_float(b) || kind_of(call->u.s) != PASS ||
         rule_operator_of(call->u.s)->cast;
}

static void carry_all(const chk_state *k, chk_edges *e, uint32_t id) {
  const rule_term *call = k->term[id].call;
  const how h = kind_of(call->u.s);
  numbers beside = {.n = 0};
  const uint32_t n = h >= SUM && call->n > 2 ? 2 : call->n; /* the third one is alpha, or a mode */
  for (uint32_t i = 0; h != PASS && i < n; i++)
    if (h != JOIN || call->child[i]->kind != RULE_INT) /* the dimension */
      known_numbers(k, e, call->child[i], &beside);
  for (uint32_t i = 0; i < n; i++)
    if (passes(k, id, call->child[i])) carry(e, call->child[i], h, i == 0, &beside, &e->of[id]);
}

/* ---- leaves ---- */

static bool any_depends(const chk_edges *e, const rule_term *t) {
  if (t->kind == RULE_VAR) return e->depends[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (any_depends(e, t->child[i])) return true;
  return false;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

iso_code chk_edges_new(chk_state *k, const bool *need, chk_edges **out) {
  chk_edges *e = *out = calloc(1, sizeof *e);
  if (!e) return chk_nomem(k);
  e->of = calloc(k->n_terms + 1, sizeof *e->of);
  e->depends = calloc(k->n_terms + 1, 1);
  if (!e->of || !e->depends) return chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const rule_term *t = k->term[i].call;
    if (need[i]) e->depends[i] = t ? any_depends(e, t) : chk_leaf_is_free(k, i);
  }
  for (uint32_t i = (uint32_t)k->n_terms; i-- > 0;)
    if (need[i] && e->depends[i] && k->term[i].call) carry_all(k, e, i);
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const uint32_t root = chk_root(k, i);
    if (k->term[i].call || !e->depends[i]) continue;
    e->any |= e->of[i].n > 0;
    for (unsigned j = 0; j < e->of[i].n && root != i; j++) add(&e->of[root], e->of[i].at[j]);
  }
  for (uint32_t i = 0; i < k->n_terms; i++)
    qsort(e->of[i].at, e->of[i].n, sizeof *e->of[i].at, by_size);
  return ISO_OK;
}

void chk_edges_free(chk_edges *e) {
  if (!e) return;
  free(e->of);
  free(e->depends);
  free(e);
}

bool chk_any_edges(const chk_edges *e) { return e->any; }

static const numbers *edges_of(chk_state *k, const chk_edges *e, uint32_t leaf) {
  return &e->of[chk_root(k, leaf)];
}

bool chk_has_edges(chk_state *k, const chk_edges *e, uint32_t leaf) {
  return edges_of(k, e, leaf)->n > 0;
}

/* ---- draws ---- */

/* Region 0 lies below all edges, region n above them. */
static double in_region(const numbers *x, unsigned region, iso_rng *rng) {
  const double first = x->at[0], last = x->at[x->n - 1];
  const double u = iso_rng_uniform(rng), past = 0.05 + 3 * u;
  if (region == 0) return first - past * fmax(fabs(first), last > first ? last - first : 1);
  if (region == x->n) return last + past * fmax(fabs(last), last > first ? last - first : 1);
  const double low = x->at[region - 1], high = x->at[region];
  static const double at[] = {1e-6, 0.5, 1 - 1e-6};
  const uint64_t which = iso_rng_below(rng, 4);
  return low + (high - low) * (which < 3 ? at[which] : u);
}

double chk_draw_edge(chk_state *k, const chk_edges *e, uint32_t leaf, size_t number, int64_t i,
                     iso_rng *rng) {
  const numbers *x = edges_of(k, e, leaf);
  const bool real = rule_dtype_is_float(chk_captured(k, leaf, k->here.set)->dtype);
  const unsigned n = real ? x->n + 1 : x->n;
  iso_rng fixed = iso_rng_new(UINT64_C(0x65646765), number * 4096 + chk_root(k, leaf));
  const uint64_t start = iso_rng_below(&fixed, n);
  uint64_t which;
  if (real && number % CHK_EDGE_KINDS == CHK_EDGE_RAMP) {
    const double step = 1.5 * fmax(fabs(x->at[0]), fabs(x->at[x->n - 1]));
    return (start % 2 ? step : -step) * ((double)(i % 64) + iso_rng_uniform(rng) / 8);
  }
  switch (number % CHK_EDGE_KINDS) {
  case CHK_EDGE_ONE: which = start; break;
  case CHK_EDGE_RAMP: /* of integers */
  case CHK_EDGE_IN_TURN: which = (start + (uint64_t)i) % n; break;
  default: which = iso_rng_below(rng, n);
  }
  if (real) return in_region(x, (unsigned)which, rng);
  const bool beside = number % CHK_EDGE_KINDS == CHK_EDGE_BESIDE;
  const double y = nearbyint(x->at[which]) + (beside ? (double)iso_rng_below(rng, 3) - 1 : 0);
  return y < 0 && beside ? x->at[which] : y;
}
