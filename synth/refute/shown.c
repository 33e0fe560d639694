/* That what an operator sees is a number, shown by proof: a divisor is positive, what a root is
 * taken of is not negative. The signs of rules/undefined.c know no more than each operand's, and a
 * largest less a least, or a mean of squares less a square, is of no sign by these. The oracle is
 * asked of the divisor as it is computed, some operators deep. */
#include <math.h>
#include <stdlib.h>

#include "rules/names.h"
#include "rules/operators.h"
#include "synth/refute/refute_int.h"

enum { MOST_VARIABLES = 16 };

/* How many operators the oracle is asked of: few are soon proved, and further ones may say what
 * bounds these. */
static const size_t depths[] = {2, 4, 6, 8, 12, 16, 24, 48};
enum { DEPTHS = sizeof depths / sizeof *depths };

/* What the call needs of an operand to be a number: that it is positive, or `or_zero`. Returns: the
 * operand, NULL: that is not known. */
static const rule_term *needs(const rule_term *call, bool *or_zero) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const int pole = rule_pole_at_zero(call);
  *or_zero = o->arithmetic == RULE_ARITHMETIC_SQRT || o->defined == RULE_DEFINED_NONNEGATIVE;
  const uint32_t k = *or_zero ? 0 : (uint32_t)pole;
  if (!*or_zero && pole < 0) return NULL;
  return k < call->n && call->child[k]->kind == RULE_VAR ? call->child[k] : NULL;
}

typedef struct writing {
  state *s;
  const synth_graph *g;
  iso_arena arena;
  bool *used;             /* by node: the term is made of it */
  const rule_term **made; /* by node */
  rule_variable var[MOST_VARIABLES];
  uint32_t n_vars;
  size_t most; /* operators */
  size_t n_calls;
  bool fine; /* it can be written */
} writing;

static const rule_term *variable(writing *w, const synth_node *n) {
  iso_arena *a = &w->arena;
  const rule_term *dim[RULE_MAX_RANK];
  w->fine &= w->n_vars < MOST_VARIABLES && (n->kind != SYNTH_OP || n->n_outputs == 1);
  for (uint32_t d = 0; d < n->shape.rank; d++) w->fine &= n->shape.dim[d] > 0;
  if (!w->fine) return NULL;
  for (uint32_t d = 0; d < n->shape.rank; d++) dim[d] = rule_int(a, n->shape.dim[d]);
  const rule_term *list = rule_list(a, dim, n->shape.rank);
  rule_variable *v = &w->var[w->n_vars];
  *v = (rule_variable){.name = iso_arena_printf(a, "tensor%u", w->n_vars),
                       .n_dims = n->shape.rank,
                       .dim = list ? list->child : NULL};
  rule_variable_set_dtype(v, n->dtype);
  return list && v->name ? rule_var(a, w->n_vars++) : NULL;
}

/* The term with what was made for nodes. */
static const rule_term *written(writing *w, const rule_term *t) {
  if (t->kind == RULE_VAR) return w->made[t->u.i];
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(&w->arena, (t->n + 1) * sizeof *child);
  for (uint32_t k = 0; child && k < t->n; k++)
    if (!(child[k] = written(w, t->child[k]))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP ? rule_op(&w->arena, t->u.s, child, t->n)
                            : rule_list(&w->arena, child, t->n);
}

/* Node `top` over what it is computed from, the nearest operators first. */
static const rule_term *computed(writing *w, uint32_t top) {
  bool *open = iso_arena_alloc(&w->arena, top + 1);
  if (!open) return NULL;
  w->used[top] = true;
  for (uint32_t i = top + 1; i-- > 0;) {
    const synth_node *n = &w->g->node[i];
    open[i] = w->used[i] && n->kind == SYNTH_OP && w->n_calls < w->most;
    w->n_calls += open[i];
    if (open[i]) st_term_mark(n->call, w->used);
  }
  for (uint32_t i = 0; i <= top; i++) {
    const synth_node *n = &w->g->node[i];
    if (!w->used[i]) continue;
    w->made[i] = open[i] ? written(w, n->call) : variable(w, n);
    if (!w->made[i]) return NULL;
  }
  return w->made[top];
}

/* x > 0, or x >= 0, as what is true everywhere. Returns: in r->lhs NULL where it cannot be written.
 */
static iso_code claim(writing *w, uint32_t top, bool or_zero, rule *r, iso_error *err) {
  const synth_node *n = &w->g->node[top];
  const rule_term *dim[RULE_MAX_RANK], *x = computed(w, top);
  if (!x) return w->fine ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
  for (uint32_t d = 0; d < n->shape.rank; d++) dim[d] = rule_int(&w->arena, n->shape.dim[d]);
  const rule_term *compared[2] = {x, rule_float(&w->arena, 0)},
                  *full[3] = {rule_list(&w->arena, dim, n->shape.rank), rule_bool(&w->arena, true),
                              rule_dtype_term(&w->arena, RULE_BOOL)};
  *r = (rule){.name = "sign", .n_vars = w->n_vars, .var = w->var};
  iso_code c = rule_call(&w->arena, w->s->schemas, or_zero ? OP_GE_SCALAR : OP_GT_SCALAR, compared,
                         2, &r->lhs, err);
  if (!c) c = rule_call(&w->arena, w->s->schemas, OP_FULL, full, 3, &r->rhs, err);
  return !c && !rule_share(&w->arena, r) ? iso_fail(err, ISO_NOMEM, "out of memory") : c;
}

typedef struct sign {
  int side;
  uint32_t node;
  bool or_zero;
} sign;

/* Whether the oracle proves it of a node as computed by so many operators. Returns: in `calls` how
 * many there were. */
static iso_code proved_sign(state *s, const sign *q, size_t most, size_t *calls, bool *yes,
                            iso_error *err) {
  const synth_graph *g = s->graph[q->side];
  rule_tensor *example[MOST_VARIABLES] = {NULL};
  rule_verdict v = {0};
  rule r = {0};
  writing w = {.s = s, .g = g, .most = most, .fine = true};
  iso_arena_init(&w.arena);
  w.used = calloc(g->n_nodes + 1, sizeof *w.used);
  w.made = calloc(g->n_nodes + 1, sizeof *w.made);
  iso_code c = w.used && w.made ? ISO_OK : st_no_memory(err);
  if (!c) c = claim(&w, q->node, q->or_zero, &r, err);
  if (!c && r.lhs) c = s->oracle->decide(s->oracle->ctx, &r, example, &v, err);
  *yes = !c && v.status == RULE_PROVED && !v.rests_on;
  *calls = w.n_calls;
  free(w.used);
  free(w.made);
  iso_arena_fini(&w.arena);
  return c;
}

/* Whether it proves that the call of a node is a number where its operands are. */
static iso_code proved_number(state *s, int side, const rule_term *call, bool *yes,
                              iso_error *err) {
  sign q = {.side = side};
  const rule_term *operand = needs(call, &q.or_zero);
  size_t calls = SIZE_MAX, before = 0;
  iso_code c = ISO_OK;
  *yes = false;
  if (!operand) return ISO_OK;
  q.node = (uint32_t)operand->u.i;
  for (size_t k = 0; k < DEPTHS && !*yes && !c && calls != before; k++) {
    before = calls;
    c = proved_sign(s, &q, depths[k], &calls, yes, err);
  }
  return c;
}

iso_code st_sees_numbers(state *s, const st_poles *p, bool *yes, iso_error *err) {
  iso_code c = ISO_OK;
  *yes = true;
  for (int side = 0; side < 2 && !c && *yes; side++) {
    const synth_graph *g = s->graph[side];
    rule_fact *fact = calloc(g->n_nodes + 1, sizeof *fact);
    bool *need = st_below_watched(s, p, side);
    if (!fact || !need) c = st_no_memory(err);
    for (size_t i = 0; i < g->n_nodes && !c && *yes; i++) {
      const rule_term *call = g->node[i].call;
      bool shown = false;
      if (!need[i]) continue;
      st_note_fact(s, side, i, fact);
      if (call && fact[i].undefined && !st_any_undefined(call, fact)) {
        c = proved_number(s, side, call, &shown, err);
        fact[i].undefined = !shown;
      }
      *yes = !(p->watch[side][i] && fact[i].undefined);
    }
    free(fact);
    free(need);
  }
  return c;
}
