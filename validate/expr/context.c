/* The context of a proof: its memory, its budget, and the symbols that it has names for. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "validate/exec/engine_int.h"
#include "validate/expr/expr_int.h"
#include "validate/prove/prove.h"

enum { VISITS_A_UNIT = 8 /* a step of a walk costs less than an expression made */ };

void sc_fail(sc *c, const char *fmt, ...) {
  if (c->fault.failed) return;
  c->fault.failed = true;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(c->fault.reason, sizeof c->fault.reason, fmt, ap);
  va_end(ap);
}

/* A coefficient that has no room is 0 from then on: two that have none would be the same. */
static void numbers_failed(void *ctx, const char *why) { sc_fail(ctx, "%s", why); }

bool sc_work(sc *c, size_t n) {
  c->budget.work += (int64_t)n + c->budget.walk->visited / VISITS_A_UNIT;
  c->budget.walk->visited %= VISITS_A_UNIT;
  if (c->budget.work > c->budget.max_work) sc_fail(c, "more work than the prover's budget");
  c->fault.no_memory |= c->q.no_memory;
  if (c->budget.work > c->budget.next_look) {
    const char *why = val_stopped(c->o);
    c->budget.next_look = c->budget.work + SC_LOOK_WORK;
    if (why) sc_fail(c, "%s", why), c->budget.work = SC_MAX_WORK + 1; /* no other case is tried */
  }
  return !c->fault.failed;
}

/* Reserved, not touched: a small rule costs a few pages. */
struct sc_scratch {
  sx_node *node;
  uint32_t *word, *stack;
  bool taken;
};

static bool reserve(struct sc_scratch *x) {
  if (!x->node) x->node = malloc(SC_MAX_NODES * sizeof *x->node);
  if (!x->word) x->word = malloc((size_t)SC_MAX_WORDS * sizeof *x->word);
  if (!x->stack) x->stack = malloc((size_t)SX_MAX_STACK * 2 * sizeof *x->stack);
  return x->node && x->word && x->stack;
}

static void let_go(struct sc_scratch *x) {
  free(x->node);
  free(x->word);
  free(x->stack);
  *x = (struct sc_scratch){0};
}

struct sc_scratch *sc_scratch_new(void) {
  return calloc(1, sizeof(struct sc_scratch));
}

void sc_scratch_free(struct sc_scratch *x) {
  if (x) let_go(x);
  free(x);
}

static bool take_memory(sc *c, const val_options *o) {
  struct sc_scratch own = {0}, *x = o && o->scratch && !o->scratch->taken ? o->scratch : &own;
  c->scratch = x == &own ? NULL : x;
  if (!reserve(x)) {
    let_go(x);
    c->scratch = NULL;
    return false;
  }
  x->taken = true;
  c->store.node = x->node;
  c->store.word = x->word;
  c->store.stack = x->stack;
  return true;
}

/* The memory of a large proof is given back to the system. */
static void give_memory(sc *c) {
  enum { KEPT_NODES = 1 << 14, KEPT_WORDS = 1 << 17 };
  struct sc_scratch own = {c->store.node, c->store.word, c->store.stack, false},
                    *x = c->scratch ? c->scratch : &own;
  x->taken = false;
  if (x == &own || c->store.n_nodes > KEPT_NODES || c->store.n_words > KEPT_WORDS) let_go(x);
}

bool sc_init(sc *c, const rule *r, rule_schemas *s, const val_options *o) {
  *c = (sc){.r = r, .schemas = s, .budget.max_work = SC_MAX_WORK};
  c->budget.walk = &c->budget.own_walk;
  if (!take_memory(c, o)) return false;
  c->store.cap_table = SC_TABLE;
  c->store.table = calloc(SC_TABLE, sizeof *c->store.table);
  if (!c->store.table) return false;
  if (!pv_q_init(&c->q)) return false;
  c->q.failure = numbers_failed;
  c->q.ctx = c;
  c->store.n_nodes = 1;
  c->store.node[0] = (sx_node){.op = X_NONE};
  c->zero = sx_q(c, PV_ZERO_Q);
  c->one = sx_q(c, PV_ONE_Q);
  c->minus_one = sx_q(c, PV_MINUS_Q);
  c->no = sc_node(c, X_FALSE, &(uint32_t){0}, 0);
  c->yes = sc_node(c, X_TRUE, &(uint32_t){0}, 0);
  c->neginf = sc_node(c, X_NEGINF, &(uint32_t){0}, 0);
  c->o = o; /* from here on it may stop */
  c->budget.next_look = 0;
  return !c->fault.failed;
}

void sc_fini(sc *c) {
  sc_z3_close(c);
  give_memory(c);
  free(c->store.table);
  for (size_t i = 0; i < c->terms.n_owned && i < 256; i++) free(c->terms.owned[i]);
  free(c->store.sym);
  free(c->draws.sym);
  free(c->draws.met);
  pv_q_fini(&c->q);
  free(c->terms.memo);
  free(c->terms.elems);
  iso_arena_fini(&c->arena);
}

/* Where ranges are cut again and again at the borders of windows, another way to look at them is
 * tried. */
static size_t most_symbols(const sc *c) {
  return c->reading.has_frames && !c->reading.mask_frames ? SC_MAX_CUT_SYMS : SC_MAX_SYMS;
}

sx sc_symbol(sc *c, const char *name, char role, unsigned flags) {
  if (c->store.n_syms >= most_symbols(c) ||
      !iso_grow(c->store.sym, c->store.cap_syms, c->store.n_syms + 1)) {
    if (c->store.n_syms < most_symbols(c)) c->fault.no_memory = true;
    sc_fail(c, "too many indices");
    return c->zero;
  }
  c->store.sym[c->store.n_syms] = (sx_sym){.name = name, .role = role, .flags = flags};
  return sc_node(c, X_SYM, &(uint32_t){(uint32_t)c->store.n_syms++}, 1);
}

sx sc_symbol_named(sc *c, const char *name) {
  for (size_t i = 0; i < c->store.n_syms; i++)
    if (c->store.sym[i].role == 'c' && !strcmp(c->store.sym[i].name, name))
      return sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
  return sc_symbol(c, name, 'c', S_POS | S_NONNEG | S_NONZERO);
}

sx sc_unknown(sc *c, const char *name) {
  for (size_t i = 0; i < c->store.n_syms; i++)
    if (c->store.sym[i].role == 'u' && !strcmp(c->store.sym[i].name, name))
      return sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
  char *copy = c->terms.n_owned < 256 ? strdup(name) : NULL;
  if (!copy) {
    c->fault.no_memory |= c->terms.n_owned < 256;
    sc_fail(c, "too many names");
    return c->zero;
  }
  c->terms.owned[c->terms.n_owned++] = copy;
  return sc_symbol(c, copy, 'u', 0);
}

sx sc_derived(sc *c, const char *name, sx of, int64_t low) {
  for (size_t i = 0; i < c->store.n_syms; i++)
    if (c->store.sym[i].role == 'q' && c->store.sym[i].of == of && c->store.sym[i].low == low &&
        !strcmp(c->store.sym[i].name, name))
      return sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
  const size_t at = c->store.n_syms;
  const sx u = sc_symbol(c, name, 'q',
                         S_INT | (low >= 0 ? S_NONNEG : 0u) | (low > 0 ? S_POS | S_NONZERO : 0u));
  if (!c->fault.failed)
    c->store.sym[at].has_low = true, c->store.sym[at].low = low, c->store.sym[at].of = of;
  return u;
}

sx sc_index(sc *c, sx high) {
  if (high == c->one) return c->zero;
  const size_t at = c->store.n_syms;
  if (c->fault.failed || at >= most_symbols(c)) return sc_symbol(c, "i", 'x', S_INT | S_NONNEG);
  if (!iso_grow(c->store.sym, c->store.cap_syms, at + 1)) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  c->store.sym[at] =
      (sx_sym){.name = "i", .role = 'x', .flags = S_INT | S_NONNEG, .has_low = true, .high = high};
  c->store.n_syms++;
  return sc_node(c, X_SYM, &(uint32_t){(uint32_t)at}, 1);
}
