/* The log of an eg_sat told to an eg_graph, which keeps reasons. See log_int.h for what an event
 * is.
 *
 * All terms come first, then the merges: as long as nothing is merged an e-node that is found is
 * spelled as it was asked for, so the two e-nodes of a rule's step are instances of its sides to
 * the letter. */
#include <stdlib.h>

#include "egraph/base/vec.h"
#include "egraph/sat/log_int.h"
#include "egraph/sat/query_int.h"

/* ---- keeping the log ---- */

bool egi_log_reserve(eg_sat *s, size_t n, uint32_t arity) {
  egi_log *l = s->log;
  return !l || (iso_grow(l->term, l->cap_term, l->n_term + n * (1 + (size_t)arity)) &&
                iso_grow(l->term_at, l->cap_at, l->n_at + n));
}

void egi_log_class(eg_sat *s, uint32_t row) {
  egi_log *l = s->log;
  if (!l) return;
  const uint32_t op = egi_row_op(s, row);
  l->term_at[l->n_at++] = l->n_term;
  l->term[l->n_term++] = op;
  for (uint32_t k = 0; k < s->op[op].arity; k++) l->term[l->n_term++] = egi_row_child(s, row, k);
}

bool egi_log_merge(eg_sat *s, uint32_t a, uint32_t b, eg_why why) {
  egi_log *l = s->log;
  if (!l) return true;
  if (!iso_grow(l->event, l->cap_event, l->n_event + 5)) return false;
  const uint32_t e[5] = {EGI_LOG_MERGE, why.kind, why.data, a, b};
  for (int i = 0; i < 5; i++) l->event[l->n_event++] = e[i];
  return true;
}

bool egi_log_rule(eg_sat *s, uint32_t rule, const uint32_t *var, size_t n_vars) {
  egi_log *l = s->log;
  if (!l) return true;
  if (!iso_grow(l->event, l->cap_event, l->n_event + 1 + n_vars)) return false;
  l->event[l->n_event++] = EGI_LOG_RULE + rule;
  for (size_t i = 0; i < n_vars; i++) l->event[l->n_event++] = var[i];
  return true;
}

void egi_log_free(egi_log *l) {
  if (!l) return;
  free(l->term);
  free(l->term_at);
  free(l->event);
  free(l);
}

/* ---- replaying it ---- */

typedef struct replay {
  const eg_sat *s;
  eg_graph *g;
  eg_node *node;     /* per class */
  eg_symbol *symbol; /* per operator */
  eg_node *made;     /* per term of a pattern */
  eg_class *child;
  struct equation {
    eg_node a, b;
    eg_why why;
  } * equation;
  size_t n_equations, cap_equations;
  iso_error *err;
} replay;

/* Children are named by their e-nodes, so that an explanation speaks of the terms that were meant.
 */
static iso_code add(replay *x, uint32_t op, eg_node *out) {
  return eg_add(x->g, x->symbol[op], x->child, x->s->op[op].arity, out, x->err);
}

static iso_code terms(replay *x) {
  const egi_log *l = x->s->log;
  for (size_t c = 0; c < l->n_at; c++) {
    const uint32_t *t = l->term + l->term_at[c];
    for (uint32_t k = 0; k < x->s->op[t[0]].arity; k++) x->child[k].i = x->node[t[1 + k]].i;
    const iso_code code = add(x, t[0], &x->node[c]);
    if (code) return code;
  }
  return ISO_OK;
}

static iso_code equate(replay *x, eg_node a, eg_node b, eg_why why) {
  if (!iso_grow(x->equation, x->cap_equations, x->n_equations + 1))
    return iso_fail(x->err, ISO_NOMEM, "out of memory for a replay");
  x->equation[x->n_equations++] = (struct equation){a, b, why};
  return ISO_OK;
}

/* Its terms in `made`. Returns: in `out` the first part. */
static iso_code instance(replay *x, const eg_pattern *p, const uint32_t *var, eg_node *out) {
  for (size_t i = 0; i < p->n_terms; i++) {
    const egi_term *t = &p->term[i];
    for (uint32_t k = 0; k < t->n; k++) x->child[k].i = x->made[p->kid[t->kid + k]].i;
    if (t->is_var) x->made[i] = x->node[var[t->sym]];
    else {
      const iso_code code = add(x, t->sym, &x->made[i]);
      if (code) return code;
    }
  }
  *out = p->n_roots ? x->made[p->root[0]] : x->node[var[p->root_var]];
  return ISO_OK;
}

static iso_code application(replay *x, const egi_rule *rule, const uint32_t *var, eg_why why) {
  const eg_pattern *p = &rule->rhs;
  eg_node a, b;
  iso_code code = instance(x, &rule->lhs, var, &a);
  if (!code) code = instance(x, p, var, &b);
  if (code || !rule->several) return code ? code : equate(x, a, b, why);
  uint32_t i = 0;
  for (size_t k = 0; k < p->n_parts; k++)
    for (; i < p->part[k].end && !code; i++)
      code = equate(x, p->part[k].var == EG_NONE ? a : x->node[var[p->part[k].var]],
                    x->made[p->root[i]], why);
  return code;
}

static iso_code events(replay *x, const eg_rules *r) {
  const egi_log *l = x->s->log;
  uint32_t number = 0;
  for (size_t i = 0; i < l->n_event; number++) {
    const uint32_t *e = l->event + i;
    iso_code code;
    if (e[0] == EGI_LOG_MERGE) {
      code = equate(x, x->node[e[3]], x->node[e[4]], (eg_why){e[1], e[2]});
      i += 5;
    } else {
      const uint32_t k = e[0] - EGI_LOG_RULE;
      if (!r || k >= r->n)
        return iso_fail(x->err, ISO_USAGE, "a replay needs the rules that were run");
      code = application(x, &r->rule[k], e + 1, (eg_why){EG_WHY_RULE + k, number});
      i += 1 + r->rule[k].lhs.n_vars;
    }
    if (code) return code;
  }
  return ISO_OK;
}

static iso_code merges(replay *x) {
  iso_code code = ISO_OK;
  for (size_t i = 0; i < x->n_equations && !code; i++)
    code = eg_merge(x->g, x->equation[i].a, x->equation[i].b, x->equation[i].why, x->err);
  return code ? code : eg_rebuild(x->g, x->err);
}

static iso_code prepare(replay *x, const eg_rules *r) {
  const eg_sat *s = x->s;
  size_t n = 1;
  for (size_t k = 0; r && k < r->n; k++) {
    if (r->rule[k].lhs.n_terms > n) n = r->rule[k].lhs.n_terms;
    if (r->rule[k].rhs.n_terms > n) n = r->rule[k].rhs.n_terms;
  }
  x->node = malloc((s->n_cls + 1) * sizeof *x->node);
  x->symbol = malloc((s->n_ops + 1) * sizeof *x->symbol);
  x->made = malloc(n * sizeof *x->made);
  x->child = malloc((s->max_arity + 1) * sizeof *x->child);
  if (!x->node || !x->symbol || !x->made || !x->child)
    return iso_fail(x->err, ISO_NOMEM, "out of memory for a replay");
  iso_code code = eg_new(NULL, &x->g, x->err);
  for (size_t i = 0; i < s->n_ops && !code; i++)
    code = eg_intern(x->g, s->op[i].name, s->op[i].n_name, &x->symbol[i], x->err);
  return code;
}

iso_code eg_sat_replay(const eg_sat *s, const eg_rules *rules, eg_graph **out, eg_node **node,
                       iso_error *err) {
  replay x = {.s = s, .err = err};
  if (!s->log) return iso_fail(err, ISO_USAGE, "an explanation needs an e-graph that keeps a log");
  iso_code code = prepare(&x, rules);
  if (!code) code = terms(&x);
  if (!code) code = events(&x, rules);
  if (!code) code = merges(&x);
  free(x.equation);
  free(x.symbol);
  free(x.made);
  free(x.child);
  if (!code && node) *node = x.node;
  else free(x.node);
  if (code) {
    eg_free(x.g);
    return code;
  }
  *out = x.g;
  return ISO_OK;
}
