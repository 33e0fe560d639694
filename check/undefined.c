/* Where the captures may be undefined, and the operators in them that see it. Rules hold of
 * numbers: where an operator may see NaN or infinity, a proved rule is worth no more than the
 * inputs on which both captures ran there (redrawn.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/operators.h"

static bool is_real(rule_dtype d) { return rule_dtype_is_float(d) || rule_dtype_is_complex(d); }

static rule_fact fact_of_leaf(chk_state *k, uint32_t i) {
  const chk_term *t = &k->term[i];
  const chk_values *konst = &k->here.konst[chk_root(k, i)];
  const rule_tensor *v = konst->n == 1 && konst->v ? konst->v[0] : NULL;
  rule_fact f = rule_fact_of_domain(t->node ? t->node->domain : NULL);
  f.nonnegative |= t->node && t->node->value && t->node->value->dtype == RULE_BOOL;
  if (!v) return f;
  f = (rule_fact){.constant = true, .nonnegative = true, .nonzero = true};
  for (int64_t e = 0; e < v->numel; e++) {
    const double x = rule_tensor_get(v, e);
    if (x == -INFINITY) f.masked = true;
    else if (!isfinite(x)) f.undefined = true;
    if (!(x >= 0)) f.nonnegative = false;
    if (x == 0) f.nonzero = false;
  }
  return f;
}

bool chk_may_be_undefined(const chk_state *k) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < k->graph[side]->n_nodes; i++) {
      const rule_term *call = k->graph[side]->node[i].call;
      if (call && rule_operator_of(call->u.s)->makes_undefined) return true;
    }
  return false;
}

static bool any_undefined(const rule_term *t, const rule_fact *fact) {
  if (t->kind == RULE_VAR) return fact[t->u.i].undefined;
  for (uint32_t i = 0; i < t->n; i++)
    if (any_undefined(t->child[i], fact)) return true;
  return false;
}

static bool reads_real(const chk_state *k, const rule_term *t) {
  const cap_node *n = t->kind == RULE_VAR ? k->term[t->u.i].node : NULL;
  bool any = n && (n->value ? is_real(n->value->dtype) : n->call && is_real(n->output[0].dtype));
  for (uint32_t i = 0; i < t->n; i++) any |= reads_real(k, t->child[i]);
  return any;
}

/* Whether integers that the term makes have seen what is no number: those of a comparison have. A
 * cast makes some of it, and which ones nothing says. */
static bool sees(const chk_state *k, const chk_term *t) {
  const rule_dtype d = t->node->output[0].dtype;
  if (t->node->n_outputs != 1 || is_real(d)) return rule_looks_at_undefined(t->call);
  return d == RULE_BOOL || (!rule_operator_of(t->call->u.s)->cast && reads_real(k, t->call));
}

static void add(chk_poles *p, double x) {
  for (size_t i = 0; i < p->n; i++)
    if (p->value[i] == x) return;
  if (isfinite(x) && fabs(x) < 1e12 && p->n < CHK_POLES) p->value[p->n++] = x;
}

/* Literals that sums, differences and comparisons have beside their operand; for a sum also the
 * operand that makes it 0. */
static void add_numbers(const chk_state *k, const rule_term *call, chk_poles *p) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool found =
      (o->arithmetic >= RULE_ARITHMETIC_ADD && o->arithmetic <= RULE_ARITHMETIC_RSUB) ||
      o->choice == RULE_CHOICE_COMPARE ||
      (o->choice == RULE_CHOICE_BOUND && o->bound == RULE_BOUND_BELOW);
  for (uint32_t i = 0; i < call->n && i < 2 && found; i++) {
    const rule_term *t = call->child[i];
    if (t->kind == RULE_FLOAT) add(p, t->u.f), add(p, -t->u.f);
    if (t->kind == RULE_INT) add(p, (double)t->u.i), add(p, -(double)t->u.i);
    const cap_node *n = t->kind == RULE_VAR ? k->term[t->u.i].node : NULL;
    if (n && !n->call && n->kind != CAP_INPUT && n->value && n->value->numel == 1)
      add(p, rule_tensor_get(n->value, 0));
  }
}

/* Whether a value that is at hand has minus infinity: where, constants alone decide. */
static bool meets_mask(const chk_state *k, uint32_t i) {
  const chk_values *v = &k->here.real[i];
  bool any = v->n != 1;
  for (int64_t e = 0; !any && e < v->v[0]->numel; e++)
    any = rule_tensor_get(v->v[0], e) == -INFINITY;
  return any;
}

iso_code chk_poles_of(chk_state *k, chk_poles *p) {
  rule_fact *fact = calloc(k->n_terms + 1, sizeof *fact);
  bool *need = calloc(k->n_terms + 1, 1);
  *p = (chk_poles){.value = {0, 1, -1}, .n = 3};
  if (!fact || !need) return free(fact), free(need), chk_nomem(k);
  for (size_t o = 0; o < k->cert.n_outputs; o++)
    need[k->cert.output[o].a] = need[k->cert.output[o].b] = true;
  chk_mark_below(k, need);
  for (uint32_t i = 0; i < k->n_terms; i++) {
    const chk_term *t = &k->term[i];
    fact[i] = t->call ? rule_fact_of(t->call, fact) : fact_of_leaf(k, i);
    if (t->node) fact[i] = rule_fact_in_shape(fact[i], &t->node->output[0].shape);
    /* A term that the certificate makes up is in no capture, and a node that no output needs is
     * seen by none. */
    if (!t->call || !t->node || !need[i]) continue;
    const bool whole = t->node->n_outputs == 1 && !is_real(t->node->output[0].dtype);
    if (whole && sees(k, t)) fact[i].undefined = false;
    if (whole) fact[i].large = false;
    if (whole || (fact[i].masked && !meets_mask(k, i))) fact[i].masked = false;
    if (sees(k, t)) p->seen |= any_undefined(t->call, fact);
    p->told |= rule_tells_overflow(t->call, fact) == RULE_TELLS_OVERFLOW;
    add_numbers(k, t->call, p);
  }
  for (size_t o = 0; o < k->cert.n_outputs; o++)
    p->apart |= fact[k->cert.output[o].a].undefined != fact[k->cert.output[o].b].undefined;
  free(fact);
  free(need);
  return ISO_OK;
}

iso_code chk_weigh_undefined(chk_state *k, bool last) {
  chk_poles p;
  bool sees = false, any = false;
  iso_code c = chk_poles_of(k, &p);
  for (size_t i = 0; i < k->cert.n_steps && !c; i++) {
    if (k->cert.step[i].kind != CHK_RULE) continue;
    any = true;
    const rule *r = rule_set_at(k->rules.rule[k->cert.step[i].rule], 0);
    sees |= rule_looks_at_undefined(r->lhs) || rule_looks_at_undefined(r->rhs);
  }
  const bool weighs = (sees && p.seen) || (any && p.told);
  if (c || !weighs || k->report->evidence <= RULE_TESTED) return c;
  if (k->cert.evidence == RULE_TESTED) k->report->evidence = RULE_TESTED;
  else if (last)
    c = chk_settle(k, CHK_REFUSED,
                   "it says %s, and its rules see what may be no number: there it is tested",
                   rule_status_name(k->cert.evidence));
  return c;
}
