/* Applications of rules, and the rules themselves. */
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"

/* NULL, or what of the rule goes beyond what stands in certificates: rules at given sizes. */
static const char *too_open(const rule *r) {
  if (r->n_attrs || r->n_where) return "it has attributes or conditions";
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (r->var[i].any_shape || r->var[i].leading || r->var[i].low || r->var[i].high) return "it leaves a shape or a range open";
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind != RULE_INT) return "it leaves a size open";
  }
  return NULL;
}

/* A side of a rule against an argument, literally. */
static bool literally(const chk_state *k, const rule_term *p, const rule_term *t, const uint32_t *var) {
  if (p->kind == RULE_VAR) return t->kind == RULE_VAR && var[p->u.i] == (uint32_t)t->u.i;
  if (p->kind == RULE_OP) {
    if (t->kind != RULE_VAR) return false;
    const rule_term *call = k->term[t->u.i].call;
    if (!call || call->kind != RULE_OP || call->n != p->n || strcmp(call->u.s, p->u.s) != 0) return false;
    t = call;
  } else if (p->kind != RULE_LIST || t->kind != RULE_LIST || p->n != t->n) {
    return p->kind != RULE_NAME && p->kind != RULE_EXPR && rule_term_eq(p, t);
  }
  for (uint32_t i = 0; i < p->n; i++)
    if (!literally(k, p->child[i], t->child[i], var)) return false;
  return true;
}

iso_code chk_instance(chk_state *k, const chk_step *x, size_t step) {
  const rule *r = rule_set_at(k->rule[x->rule], 0);
  const uint32_t *var = k->var + x->first_var;
  const rule_term a = {.kind = RULE_VAR, .u = {.i = x->a}}, b = {.kind = RULE_VAR, .u = {.i = x->b}};
  const char *open = too_open(r);
  if (open) return chk_settle(k, CHK_REFUSED, "step %zu: rule %s: %s", step, r->name, open);
  if (!literally(k, r->lhs, &a, var)) return chk_settle(k, CHK_REFUSED, "step %zu: the first term is not the left side of rule %s", step, r->name);
  if (!literally(k, r->rhs, &b, var)) return chk_settle(k, CHK_REFUSED, "step %zu: the second term is not the right side of rule %s", step, r->name);
  return ISO_OK;
}

/* ---- kinds and shapes ---- */

static char kind_of(const rule_tensor *t) {
  return rule_dtype_is_float(t->dtype) ? 'f' : rule_dtype_is_complex(t->dtype) ? 'c' : t->dtype == RULE_BOOL ? 'b' : 'i';
}

static bool fits(const rule_variable *v, const rule_tensor *t) {
  if (kind_of(t) != v->kind || t->shape.rank != v->n_dims) return false;
  for (uint32_t d = 0; d < v->n_dims; d++)
    if (v->dim[d]->u.i != t->shape.dim[d]) return false;
  return true;
}

static iso_code check_variables(chk_state *k, const chk_step *x, size_t step) {
  const rule *r = rule_set_at(k->rule[x->rule], 0);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const uint32_t id = k->var[x->first_var + i];
    if (id == CHK_NONE) continue;
    if (k->real[id].n != 1 || !fits(&r->var[i], k->real[id].v[0]))
      return chk_settle(k, CHK_REFUSED, "step %zu: variable %s of rule %s stands for a tensor of another kind or shape", step, r->var[i].name, r->name);
  }
  return ISO_OK;
}

/* ---- evidence ---- */

static iso_code show_again(chk_state *k, const rule *r, const uint32_t *var) {
  rule_tensor **example = calloc(r->n_vars + 1, sizeof *example);
  rule_verdict v = {0};
  iso_error why = {0};
  rule bare = *r; /* samples are drawn by a rule's text: without its evidence it is the rule as it was decided first */
  bare.claimed = RULE_UNKNOWN;
  bare.scope = RULE_SCOPE_NONE;
  if (!example) return chk_nomem(k);
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (var[i] != CHK_NONE) example[i] = k->real[var[i]].v[0];
  iso_code c = k->oracle ? k->oracle->decide(k->oracle->ctx, &bare, example, &v, &why) : ISO_OK;
  free(example);
  if (c == ISO_NOMEM) return chk_nomem(k);
  if (c) return chk_settle(k, CHK_REFUSED, "rule %s cannot be decided: %s", r->name, why.msg);
  if (v.status == RULE_REFUTED) return chk_settle(k, CHK_REFUSED, "rule %s is refuted: %s", r->name, v.reason);
  if (v.status < r->claimed)
    return chk_settle(k, CHK_UNPROVED, "rule %s is said to be %s, and was found %s here%s%s", r->name, rule_status_name(r->claimed),
                      rule_status_name(v.status), v.reason[0] ? ": " : "", v.reason);
  if (!strstr(v.method, "literals read")) return ISO_OK;
  return chk_assume(k, iso_arena_printf(k->arena, "literal: rule %s is proved with its float literals read as the numbers they stand for", r->name));
}

iso_code chk_rules(chk_state *k) {
  bool *seen = calloc(k->n_rules + 1, 1);
  iso_code c = seen ? ISO_OK : chk_nomem(k);
  k->report->evidence = RULE_PROVED;
  for (size_t i = 0; i < k->n_steps && !c && !chk_settled(k); i++)
    if (k->step[i].kind == CHK_RULE) c = check_variables(k, &k->step[i], i);
  for (size_t i = 0; i < k->n_steps && !c && !chk_settled(k); i++) {
    const chk_step *x = &k->step[i];
    if (x->kind != CHK_RULE || seen[x->rule]) continue;
    const rule *r = rule_set_at(k->rule[x->rule], 0);
    seen[x->rule] = true;
    k->report->n_rules++;
    if (r->claimed != RULE_PROVED && r->claimed != RULE_TESTED) c = chk_settle(k, CHK_REFUSED, "rule %s has no evidence", r->name);
    else if (!k->o->trust_rules) c = show_again(k, r, k->var + x->first_var);
    if (r->claimed < k->report->evidence) k->report->evidence = r->claimed;
  }
  if (!c && !chk_settled(k) && k->o->trust_rules && k->report->n_rules) c = chk_assume(k, "rules: their evidence is taken as it is written");
  free(seen);
  if (!c && !chk_settled(k) && k->report->evidence != k->evidence)
    c = chk_settle(k, CHK_REFUSED, "its rules are %s, and it says %s", rule_status_name(k->report->evidence), rule_status_name(k->evidence));
  return c;
}
