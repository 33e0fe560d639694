/* Bugs of sizes begin where a number of the program is reached: a window, the end of a table, the
 * length at which a rotary table changes. These numbers are literals of operators on integers,
 * sizes of indexed tensors, and numbers of the guards. */
#include "cli/commands/size_plan.h"
#include "egraph/base/rng.h"
#include "egraph/base/vec.h"
#include "rules/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 32, MOST_NUMBERS = 256, DRAWN = 3 };

typedef struct planning {
  cap_graph *const *graph;
  const calls_side *side; /* where these are read */
  const cap_options *from;
  size_plan *plan;
  size_t cap;
  struct {
    int64_t x;
    uint64_t of; /* which symbols it may bound, a bit each */
  } number[MOST_NUMBERS];
  size_t n_numbers;
  iso_error *err;
} planning;

double size_plan_work(const cap_graph *g) {
  double n = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->node[i].n_outputs; k++) {
      double own = 1;
      for (uint32_t d = 0; d < g->node[i].output[k].shape.rank; d++)
        own *= (double)g->node[i].output[k].shape.dim[d];
      n += g->node[i].kind == CAP_OP ? own : 0;
    }
  return n;
}

/* ---- numbers ---- */

/* A number that symbols of `of` may reach. */
static void note(planning *p, int64_t x, uint64_t of) {
  if (x < 3 || x > INT64_MAX / 2) return;
  for (size_t i = 0; i < p->n_numbers; i++)
    if (p->number[i].x == x) {
      p->number[i].of |= of;
      return;
    }
  if (p->n_numbers == MOST_NUMBERS) return;
  p->number[p->n_numbers].x = x;
  p->number[p->n_numbers++].of = of;
}

/* The left's symbols that a tensor of this shape may be as long as; of a number, all. */
static uint64_t symbols_in(const planning *p, const rule_shape *s) {
  const cap_graph *g = p->graph[0];
  uint64_t of = 0;
  for (size_t i = 0; i < g->n_symbols; i++)
    for (uint32_t d = 0; d < s->rank; d++)
      if (s->dim[d] == g->symbol[i].value) of |= UINT64_C(1) << i;
  return of ? of : UINT64_MAX;
}

/* Literals of a call that are no lists. */
static void note_literals(planning *p, const rule_term *t, uint64_t of) {
  for (uint32_t k = 0; k < t->n; k++) {
    const rule_term *x = t->child[k];
    if (x->kind == RULE_INT && x->u.i > INT64_MIN) note(p, x->u.i < 0 ? -x->u.i : x->u.i, of);
    if (x->kind == RULE_FLOAT && fabs(x->u.f) < 1e9 && x->u.f == floor(x->u.f))
      note(p, (int64_t)fabs(x->u.f), of);
  }
}

/* A table that integers read, or of which a part is taken. */
static void note_table(planning *p, const cap_graph *g, const cap_node *n) {
  const rule_term *call = n->call, *t = call->n ? call->child[0] : NULL;
  uint64_t of = symbols_in(p, &n->output[0].shape);
  bool indexed = rule_operator_of(call->u.s)->placed == RULE_PLACED_RANGE;
  for (uint32_t k = 1; k < call->n; k++) {
    const rule_term *x = call->child[k];
    if (x->kind == RULE_LIST && x->n) x = x->child[0];
    if (x->kind != RULE_VAR || !rule_dtype_is_int(g->node[x->u.i].output[0].dtype)) continue;
    indexed = true;
    of = symbols_in(p, &g->node[x->u.i].output[0].shape);
  }
  if (!indexed || !t || t->kind != RULE_VAR) return;
  const rule_shape *s = &g->node[t->u.i].output[0].shape;
  for (uint32_t d = 0; d < s->rank && d < 3; d++)
    if (symbols_in(p, &(rule_shape){.rank = 1, .dim = {s->dim[d]}}) == UINT64_MAX)
      note(p, s->dim[d], of);
}

/* A part of a dimension that is as long as an open size. */
static void note_part(planning *p, const cap_graph *g, const cap_node *n) {
  const rule_term *call = n->call, *t = call->n ? call->child[0] : NULL;
  if (rule_operator_of(n->op)->placed != RULE_PLACED_RANGE || call->n < 4 || t->kind != RULE_VAR)
    return;
  const rule_shape *s = &g->node[t->u.i].output[0].shape;
  const rule_term *dim = call->child[1];
  if (dim->kind != RULE_INT || dim->u.i < 0 || dim->u.i >= s->rank) return;
  const uint64_t of = symbols_in(p, &(rule_shape){.rank = 1, .dim = {s->dim[dim->u.i]}});
  if (of != UINT64_MAX) note_literals(p, call, of);
}

static void note_numbers(planning *p, const cap_graph *g) {
  for (size_t i = 0; i < g->n_numbers; i++) note(p, g->number[i], UINT64_MAX);
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *n = &g->node[i];
    if (!n->call || n->call->kind != RULE_OP) continue;
    const rule_dtype d = n->output[0].dtype;
    if (rule_dtype_is_int(d) || d == RULE_BOOL)
      note_literals(p, n->call, symbols_in(p, &n->output[0].shape));
    note_part(p, g, n);
    note_table(p, g, n);
  }
}

/* ---- sizes ---- */

/* Add sizes that are not there, and not the captured ones. */
static iso_code add(planning *p, const int64_t *value) {
  size_plan *plan = p->plan;
  const cap_graph *g = p->graph[0];
  const size_t n = plan->n_symbols;
  const char *broken;
  bool captured = true;
  for (size_t k = 0; k < n; k++) captured &= value[k] == g->symbol[k].value;
  for (size_t i = 0; i < plan->n && !captured; i++)
    captured = memcmp(&plan->value[i * n], value, n * sizeof *value) == 0;
  if (captured) return ISO_OK;
  const iso_code c = cap_admits(g, value, &broken, p->err);
  if (c || broken) return c;
  if (plan->n == MOST_SIZES) return plan->left_out++, ISO_OK;
  if (!iso_grow(plan->value, p->cap, (plan->n + 1) * n))
    return iso_fail(p->err, ISO_NOMEM, "out of memory");
  memcpy(&plan->value[plan->n++ * n], value, n * sizeof *value);
  return ISO_OK;
}

/* The captured sizes with one other. */
static iso_code add_one(planning *p, size_t symbol, int64_t x) {
  int64_t value[64];
  const cap_graph *g = p->graph[0];
  for (size_t k = 0; k < g->n_symbols; k++) value[k] = k == symbol ? x : g->symbol[k].value;
  return add(p, value);
}

/* Whether both graphs are small enough at these sizes of the left. */
static bool small(const planning *p, const int64_t *value) {
  cap_graph *at[2] = {NULL, NULL};
  int64_t right[64];
  cap_size size[2][64];
  iso_error ignored;
  if (cap_relate_sizes(p->graph[0], p->graph[1], value, right, &ignored)) return false;
  for (int s = 0; s < 2; s++)
    for (size_t k = 0; k < p->graph[s]->n_symbols; k++)
      size[s][k] = (cap_size){p->graph[s]->symbol[k].name, s ? right[k] : value[k]};
  const calls_sizes sizes[2] = {{size[0], p->graph[0]->n_symbols},
                                {size[1], p->graph[1]->n_symbols}};
  const bool read =
      calls_load(p->side, p->from, sizes, p->graph[0]->schemas, at, &ignored) == ISO_OK;
  const bool fits = read && size_plan_work(at[0]) + size_plan_work(at[1]) <= p->plan->most;
  cap_free(at[0]);
  cap_free(at[1]);
  return fits;
}

/* The largest value of one symbol that is allowed and small enough, by halving. */
static int64_t largest(const planning *p, size_t symbol) {
  const cap_symbol *s = &p->graph[0]->symbol[symbol];
  int64_t value[64], low = s->value, high = s->max < 1 << 20 ? s->max : 1 << 20;
  const char *broken;
  for (size_t k = 0; k < p->graph[0]->n_symbols; k++) value[k] = p->graph[0]->symbol[k].value;
  while (low < high) {
    value[symbol] = low + (high - low + 1) / 2;
    iso_error ignored;
    const bool fine =
        cap_admits(p->graph[0], value, &broken, &ignored) == ISO_OK && !broken && small(p, value);
    if (fine) low = value[symbol];
    else high = value[symbol] - 1;
  }
  return low;
}

static iso_code add_symbol(planning *p, size_t s, int64_t *top) {
  const cap_symbol *x = &p->graph[0]->symbol[s];
  iso_code c = ISO_OK;
  *top = largest(p, s);
  for (int64_t k = 0; k < 2 && !c; k++) c = add_one(p, s, x->min + k);
  if (!c) c = add_one(p, s, 1);
  if (!c) c = add_one(p, s, 2);
  if (!c) c = add_one(p, s, *top);
  if (!c && x->value > 1) c = add_one(p, s, x->value - 1);
  if (!c) c = add_one(p, s, x->value + 1);
  return c;
}

/* Sizes of all symbols at once: the least, and drawn ones. */
static iso_code add_corners(planning *p, const int64_t *top, uint64_t seed) {
  const cap_graph *g = p->graph[0];
  int64_t value[64];
  iso_rng rng = iso_rng_new(seed ^ UINT64_C(0x706c616e), 0);
  for (size_t k = 0; k < g->n_symbols; k++) value[k] = g->symbol[k].min;
  iso_code c = add(p, value);
  for (int i = 0; i < DRAWN && !c; i++) {
    for (size_t k = 0; k < g->n_symbols; k++) {
      const cap_symbol *s = &g->symbol[k];
      const int64_t most = 4 * s->value + 8 < top[k] ? 4 * s->value + 8 : top[k];
      value[k] = s->min + (int64_t)iso_rng_below(&rng, (uint64_t)(most - s->min) + 1);
    }
    c = add(p, value);
  }
  return c;
}

static double product(const int64_t *value, size_t n) {
  double x = 1;
  for (size_t k = 0; k < n; k++) x *= (double)value[k] + 1;
  return x;
}

/* Smaller sizes first: they cost less, and the first that shows a difference is nearer to the
 * smallest. */
static void sort(size_plan *plan) {
  const size_t n = plan->n_symbols;
  for (size_t i = 1; i < plan->n; i++)
    for (size_t j = i; j > 0; j--) {
      int64_t *x = &plan->value[(j - 1) * n], *y = &plan->value[j * n];
      if (product(x, n) <= product(y, n)) break;
      for (size_t k = 0; k < n; k++) {
        const int64_t t = x[k];
        x[k] = y[k], y[k] = t;
      }
    }
}

iso_code size_plan_make(cap_graph *const graph[2], const calls_side side[2],
                        const cap_options *from, uint64_t seed, size_plan *out, iso_error *err) {
  enum { ROOM = 1 << 22 };
  planning p = {.graph = graph, .side = side, .from = from, .plan = out, .err = err};
  int64_t top[64];
  const double captured = size_plan_work(graph[0]) + size_plan_work(graph[1]);
  *out = (size_plan){.n_symbols = graph[0]->n_symbols};
  out->most = captured > ROOM / 2 ? 2 * captured : ROOM;
  note_numbers(&p, graph[0]);
  note_numbers(&p, graph[1]);
  iso_code c = ISO_OK;
  for (size_t s = 0; s < graph[0]->n_symbols && !c; s++) c = add_symbol(&p, s, &top[s]);
  if (!c) c = add_corners(&p, top, seed);
  for (size_t i = 0; i < p.n_numbers && !c; i++)
    for (size_t s = 0; s < graph[0]->n_symbols && !c; s++)
      for (int64_t by = -1; by <= 2 && !c; by++)
        if (p.number[i].of >> s & 1 && p.number[i].x + by <= top[s])
          c = add_one(&p, s, p.number[i].x + by);
  sort(out);
  return c;
}

void size_plan_free(size_plan *p) { free(p->value); }
