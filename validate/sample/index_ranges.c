/* The range in which samples draw integer variables: from the definitions of operators
 * (validate/ops/), which report every index that they take with the size that bounds it. Reports
 * are about expressions. Where the index is an element of the variable itself, its range follows;
 * where it is computed from elements (the shards of a vocabulary), only that there is a bound. */
#include <stdlib.h>

#include "rules/operators.h"
#include "validate/exec/engine_int.h"
#include "validate/prove/prove.h"
#include "validate/sample/sample_int.h"

typedef struct told {
  val_engine *e; /* NULL: nothing can be run */
  rule_tensor *const *bind;
  val_domain *out;
  const rule *r;
} told;

/* One operator failed: the others go on. */
static void recover(sc *c) {
  if (c->fault.no_memory) return;
  c->fault.failed = c->fault.undefined = false;
  c->here.n_choices = 0;
  c->budget.depth = 0;
  c->fault.reason[0] = 0;
}

static void mark(const sc *c, sx x, uint64_t *vars) {
  const sx_node p = *sc_at(c, x);
  if (p.op == X_CONST || p.op == X_SYM || p.op == X_BOUND) return;
  if (p.op == X_LEAF) *vars |= 1ULL << sc_word(c, x, 0);
  for (uint32_t i = p.op == X_LEAF || p.op == X_FN || p.op == X_SUM || p.op == X_TOP ||
                    p.op == X_PROD || p.op == X_ROW;
       i < p.n; i++)
    if (p.op == X_ADD ? i & 1 : p.op == X_MUL ? !(i & 1) : true) mark(c, sc_word(c, x, i), vars);
}

static void on_index(sc *c, const pt_tensor *index, sx size, bool from_end, sx besides) {
  told *t = c->hooks.index_ctx;
  sx idx[RULE_MAX_RANK];
  int64_t n, other;
  uint64_t vars = 0;
  if (!sx_is_int(c, size, &n)) return;
  for (uint32_t i = 0; i < index->rank; i++) idx[i] = sc_index(c, index->dim[i]);
  const sx x = pt_at(c, index, idx);
  if (c->fault.failed) return recover(c);
  const bool own = sc_op(c, x) == X_LEAF;
  mark(c, x, &vars);
  for (uint32_t v = 0; v < t->r->n_vars && v < 64; v++) {
    val_domain *d = &t->out[v];
    if (!(vars >> v & 1)) continue;
    if (d->behind == INT64_MAX) d->behind_from_end = true;
    if (own && d->size == INT64_MAX) d->from_end = true;
    if (n < d->behind) d->behind = n;
    if (own && n < d->size) d->size = n;
    d->behind_from_end &= from_end;
    if (own) d->from_end &= from_end;
    if (own && besides && sx_is_int(c, besides, &other)) d->has_besides = true, d->besides = other;
  }
}

static sx unknown_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)t;
  (void)idx;
  sc_fail(c, "an operator without a definition");
  return c->zero;
}

/* For an operator without a definition, the table of operators says whose rows it chooses by
 * integers. */
static void tell_by_table(sc *c, const rule_term *term) {
  const rule_operator *o = rule_operator_of(term->u.s);
  const bool along = o->ends == RULE_ENDS_ALONG;
  if ((!along && o->ends != RULE_ENDS_ROWS) || o->index >= term->n) return;
  if (along && term->child[1]->kind != RULE_INT) return;
  const pt_tensor *x = pt_eval_tensor(c, term->child[0]),
                  *index = x ? pt_eval_tensor(c, term->child[o->index]) : NULL;
  const int64_t d = along ? term->child[1]->u.i : 0, at = d < 0 && x ? d + x->rank : d;
  if (index && at >= 0 && at < x->rank) on_index(c, index, x->dim[at], false, 0);
  recover(c);
}

/* Integers that say how many elements a result has are few: a result that no memory holds shows
 * nothing. */
static void tell_lengths(sc *c, const rule_term *term) {
  enum { MOST = 4 };
  const uint32_t k = rule_operator_of(term->u.s)->lengths;
  if (!k || k > term->n) return;
  const pt_tensor *x = pt_eval_tensor(c, term->child[k - 1]);
  if (x) on_index(c, x, sx_int(c, MOST), false, 0);
  recover(c);
}

/* A stand-in for a term without a definition: a tensor of its shape, which bounds later tables. */
static const pt_tensor *otherwise(sc *c, const rule_term *term) {
  told *t = c->hooks.index_ctx;
  rule_tensor *x = NULL;
  iso_error err;
  if (c->fault.no_memory) return NULL;
  recover(c);
  tell_by_table(c, term);
  tell_lengths(c, term);
  if (!t->e || val_eval(t->e, term, t->bind, VAL_FLOAT64, &x, &err) != ISO_OK)
    return sc_fail(c, "no shape"), NULL;
  pt_tensor *p = pt_new(c,
                        rule_dtype_is_float(x->dtype) ? 'f'
                        : x->dtype == RULE_BOOL       ? 'b'
                                                      : 'i',
                        unknown_elem);
  for (uint32_t k = 0; p && k < x->shape.rank; k++) p->dim[p->rank++] = sx_int(c, x->shape.dim[k]);
  rule_tensor_unref(x);
  return p;
}

/* Each part that reads an integer variable by itself, so that one that fails hides no other.
 * Returns: whether `t` is one. */
static bool walk(sc *c, const told *to, const rule_term *t) {
  if (t->kind == RULE_VAR) return to->r->var[t->u.i].kind == 'i';
  bool reads = false;
  for (uint32_t i = 0; i < t->n; i++) reads |= walk(c, to, t->child[i]);
  if (!reads || t->kind != RULE_OP || rule_is_getitem(t->u.s) || c->fault.no_memory) return reads;
  (void)pt_eval(c, t);
  recover(c);
  return reads;
}

iso_code val_domains(val_engine *e, rule_schemas *schemas, const rule *r, rule_tensor *const *bind,
                     val_domain *out, iso_error *err) {
  bool any = false;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    out[v] = (val_domain){.size = INT64_MAX, .behind = INT64_MAX};
    any |= r->var[v].kind == 'i';
  }
  if (!any) return ISO_OK;
  sc *c = calloc(1, sizeof *c);
  told t = {e, bind, out, r};
  const bool made = c && sc_init(c, r, schemas, e ? val_engine_options(e) : NULL);
  if (made) {
    c->hooks.on_index = on_index;
    c->hooks.otherwise = otherwise;
    c->hooks.index_ctx = &t;
    walk(c, &t, r->lhs);
    walk(c, &t, r->rhs);
  }
  const bool ok = made && !c->fault.no_memory;
  if (c) sc_fini(c);
  free(c);
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}
