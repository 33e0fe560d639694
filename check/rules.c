/* Applications of rules, and the rules themselves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "check/evaluate/evaluate.h"
#include "capture/roles/roles.h"

/* Of the numbers on which rules are evaluated. */
#define EVALUATION_SEED UINT64_C(0x62616c6c73)

/* The tolerance within which a literal is read as the real that a condition asks for: 1/sqrt(n) in
 * a capture is within an ulp of it, and its square and products round again. */
static const double reading_tol = 1e-15;

/* ---- sizes and attributes at a step ---- */

typedef struct place {
  const chk_state *k;
  const chk_step *x;
} place;

static const rule_term *find(const place *at, const char *name) {
  for (uint32_t i = 0; i < at->x->n_names; i++)
    if (strcmp(at->k->cert.name[at->x->first_name + i].name, name) == 0)
      return at->k->cert.name[at->x->first_name + i].value;
  return NULL;
}

static bool value_of(const void *ctx, const char *name, rule_term *out) {
  const rule_term *v = find(ctx, name);
  if (!v || (v->kind != RULE_INT && v->kind != RULE_FLOAT)) return false;
  *out = (rule_term){.kind = v->kind, .u = v->u};
  return true;
}

static bool size_at(const place *at, const rule_term *t, int64_t *out) {
  const rule_values v = {value_of, at, 0};
  return rule_size_at(t, &v, out);
}

static bool occurs(const rule_term *t, const char *name) {
  if (t->kind == RULE_NAME) return strcmp(t->u.s, name) == 0;
  for (uint32_t i = 0; i < t->n; i++)
    if (occurs(t->child[i], name)) return true;
  return false;
}

static bool in_rule(const rule *r, const char *name) {
  bool found = occurs(r->lhs, name) || occurs(r->rhs, name);
  for (uint32_t i = 0; i < r->n_where; i++) found |= occurs(r->where[i], name);
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; d < r->var[i].n_dims; d++) found |= occurs(r->var[i].dim[d], name);
  return found;
}

/* A declared real is a float, a declared list a list of integers, everything else an integer. */
static bool right_kind(const rule *r, const chk_name *n) {
  char kind = 'i';
  for (uint32_t i = 0; i < r->n_attrs; i++)
    if (strcmp(r->attr[i].name, n->name) == 0) kind = r->attr[i].kind;
  if (kind == 'f') return n->value->kind == RULE_FLOAT && isfinite(n->value->u.f);
  if (kind != 'l') return n->value->kind == RULE_INT;
  for (uint32_t i = 0; i < n->value->n; i++)
    if (n->value->child[i]->kind != RULE_INT) return false;
  return n->value->kind == RULE_LIST;
}

/* Sizes are at least 1, also those that stand in an expression. */
static bool sizes_are(const place *at, const rule_term *t) {
  const rule_term *v = t->kind == RULE_NAME ? find(at, t->u.s) : NULL;
  if (t->kind == RULE_NAME && (!v || v->kind != RULE_INT || v->u.i < 1)) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!sizes_are(at, t->child[i])) return false;
  return true;
}

/* ---- sides ---- */

/* A side of a rule against an argument, literally. */
static bool literally(const place *at, const rule_term *p, const rule_term *t,
                      const uint32_t *var) {
  int64_t size;
  switch (p->kind) {
  case RULE_VAR: return t->kind == RULE_VAR && var[p->u.i] == (uint32_t)t->u.i;
  case RULE_NAME: return rule_term_eq(find(at, p->u.s), t);
  case RULE_EXPR: return t->kind == RULE_INT && size_at(at, p, &size) && size == t->u.i;
  case RULE_OP: {
    const rule_term *call = t->kind == RULE_VAR ? at->k->term[t->u.i].call : NULL;
    if (!call || call->kind != RULE_OP || call->n != p->n || strcmp(call->u.s, p->u.s) != 0)
      return false;
    t = call;
    break;
  }
  case RULE_LIST:
    if (t->kind != RULE_LIST || p->n != t->n) return false;
    break;
  default: return rule_term_eq(p, t);
  }
  for (uint32_t i = 0; i < p->n; i++)
    if (!literally(at, p->child[i], t->child[i], var)) return false;
  return true;
}

/* NULL, or why the rule says nothing at these sizes and attributes. In `exact`, whether its
 * conditions hold of the doubles as they are. */
static const char *not_applicable(const place *at, const rule *r, bool *exact) {
  const rule_values read = {value_of, at, reading_tol}, as_is = {value_of, at, -1};
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].low || r->var[i].high) return "it holds for a range of values only";
  for (uint32_t i = 0; i < at->x->n_names; i++) {
    const chk_name *n = &at->k->cert.name[at->x->first_name + i];
    if (!in_rule(r, n->name)) return "it has no such name as the step gives a value";
    if (!right_kind(r, n)) return "a name stands for a value of another kind";
  }
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind != RULE_NONE && !sizes_are(at, r->var[i].dim[d]))
        return "a size is none";
  *exact = true;
  for (uint32_t i = 0; i < r->n_where; i++) {
    if (rule_condition_at(r->where[i], &read) != RULE_TRUE) return "a condition does not hold";
    *exact &= rule_condition_at(r->where[i], &as_is) == RULE_TRUE;
  }
  return NULL;
}

iso_code chk_instance(chk_state *k, const chk_step *x, size_t step) {
  const rule *r = rule_set_at(k->rules.rule[x->rule], 0);
  const uint32_t *var = k->cert.var + x->first_var;
  const rule_term a = {.kind = RULE_VAR, .u = {.i = x->a}},
                  b = {.kind = RULE_VAR, .u = {.i = x->b}};
  const place at = {k, x};
  bool exact = true;
  const char *why = not_applicable(&at, r, &exact);
  if (why) return chk_settle(k, CHK_REFUSED, "step %zu: rule %s: %s", step, r->name, why);
  if (!literally(&at, r->lhs, &a, var))
    return chk_settle(k, CHK_REFUSED, "step %zu: the first term is not the left side of rule %s",
                      step, r->name);
  if (!literally(&at, r->rhs, &b, var))
    return chk_settle(k, CHK_REFUSED, "step %zu: the second term is not the right side of rule %s",
                      step, r->name);
  if (exact || k->rules.read[x->rule]) return ISO_OK;
  k->rules.read[x->rule] = true;
  return chk_assume(
      k, RULE_ASSUMES_LITERAL,
      iso_arena_printf(
          k->arena,
          "rule %s is used where its conditions hold of the numbers that float literals stand for",
          r->name));
}

/* ---- kinds and shapes ---- */

bool chk_variable_fits(const chk_state *k, const chk_step *x, const rule_variable *v,
                       rule_dtype dtype, const rule_shape *shape) {
  const place at = {k, x};
  if (!rule_variable_takes(v, dtype)) return false;
  for (uint32_t d = 0; d < shape->rank; d++)
    if (shape->dim[d] < 1) return false; /* rules speak of sizes from 1 on */
  if (v->any_shape) return true;
  if (v->leading ? shape->rank < v->n_dims : shape->rank != v->n_dims) return false;
  for (uint32_t d = 0; d < v->n_dims; d++) {
    int64_t size;
    if (v->dim[d]->kind == RULE_NONE) continue;
    if (!size_at(&at, v->dim[d], &size) || size != shape->dim[shape->rank - v->n_dims + d])
      return false;
  }
  return true;
}

static iso_code check_variables(chk_state *k, const chk_step *x, size_t step) {
  const rule *r = rule_set_at(k->rules.rule[x->rule], 0);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const uint32_t id = k->cert.var[x->first_var + i];
    if (id == CHK_NONE) continue;
    const rule_tensor *t = k->here.real[id].n == 1 ? k->here.real[id].v[0] : NULL;
    if (!t || !chk_variable_fits(k, x, &r->var[i], t->dtype, &t->shape))
      return chk_settle(
          k, CHK_REFUSED,
          "step %zu: variable %s of rule %s stands for a tensor of another kind or shape", step,
          r->var[i].name, r->name);
  }
  return ISO_OK;
}

iso_code chk_variables(chk_state *k) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++)
    if (k->cert.step[i].kind == CHK_RULE) c = check_variables(k, &k->cert.step[i], i);
  return c;
}

/* ---- evidence ---- */

/* Whether the rule speaks of more than tensors of given shapes: tests say nothing of the rest. */
static bool is_open(const rule *r) {
  bool open = r->n_attrs > 0 || r->n_where > 0;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    open |= r->var[i].any_shape || r->var[i].leading;
    for (uint32_t d = 0; d < r->var[i].n_dims; d++) open |= r->var[i].dim[d]->kind != RULE_INT;
  }
  return open;
}

static bool same_values(const chk_state *k, const chk_step *x, const chk_step *y) {
  if (x->n_names != y->n_names) return false;
  for (uint32_t i = 0; i < x->n_names; i++) {
    const chk_name *a = &k->cert.name[x->first_name + i], *b = &k->cert.name[y->first_name + i];
    if (strcmp(a->name, b->name) != 0 || !rule_term_eq(a->value, b->value)) return false;
  }
  return true;
}

static bool seen_before(const chk_state *k, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (k->cert.step[i].kind == CHK_RULE && k->cert.step[i].rule == k->cert.step[at].rule &&
        same_values(k, &k->cert.step[i], &k->cert.step[at]))
      return true;
  return false;
}

/* The rule as step `x` uses it; `within`: as in rule_assignment. */
static iso_code rule_at_step(chk_state *k, const rule *r, const chk_step *x, double within,
                             rule *out, bool *whole) {
  const char **name = iso_arena_alloc(k->arena, (x->n_names + 1) * sizeof *name);
  const rule_term **value = iso_arena_alloc(k->arena, (x->n_names + 1) * sizeof *value);
  iso_error err = {0};
  if (!name || !value) return chk_nomem(k);
  for (uint32_t i = 0; i < x->n_names; i++) {
    name[i] = k->cert.name[x->first_name + i].name;
    value[i] = k->cert.name[x->first_name + i].value;
  }
  const rule_assignment v = {x->n_names, name, value, within};
  return rule_at(r, &v, k->arena, out, whole, &err) ? chk_nomem(k) : ISO_OK;
}

/* A rule that has no obligation for all sizes may have some at the sizes of the steps, and no step
 * needs more. All of these, or none. */
static iso_code ask_at_steps(chk_state *k, const rule *r, uint32_t which, chk_shown *shown) {
  size_t all = 0;
  bool each = true;
  for (size_t i = 0; i < k->cert.n_steps && each; i++) {
    if (k->cert.step[i].kind != CHK_RULE || k->cert.step[i].rule != which || seen_before(k, i))
      continue;
    char why[200] = "";
    iso_error err = {0};
    size_t n = 0;
    rule at;
    if (!(each = k->cert.step[i].n_names > 0)) break; /* it is the rule itself */
    iso_code c = rule_at_step(k, r, &k->cert.step[i], 0, &at, &each);
    if (c) return c;
    if (each) c = k->oracle->certify(k->oracle->ctx, &at, &n, why, &err);
    if (c == ISO_NOMEM) return chk_nomem(k);
    each &= !c && n > 0;
    all += n;
  }
  if (!each || all == 0) return ISO_OK;
  shown->n_obligations = all;
  shown->how = CHK_BY_Z3;
  shown->at_steps = true;
  return ISO_OK;
}

/* A proof object, where there is one: obligations that are written for this very rule, and answered
 * by z3 and not by the prover. */
static iso_code ask_z3(chk_state *k, const rule *r, uint32_t which, chk_shown *shown) {
  char why[200] = "";
  iso_error err = {0};
  shown->how = CHK_BY_PROVER;
  if (!k->oracle || !k->oracle->certify) return ISO_OK;
  iso_code c = k->oracle->certify(k->oracle->ctx, r, &shown->n_obligations, why, &err);
  if (c == ISO_NOMEM) return chk_nomem(k);
  if (c) snprintf(why, sizeof why, "%.199s", err.msg);
  if (!c && shown->n_obligations) shown->how = CHK_BY_Z3;
  else if (!(shown->why = iso_arena_strdup(k->arena, why))) return chk_nomem(k);
  return shown->how == CHK_BY_Z3 ? ISO_OK : ask_at_steps(k, r, which, shown);
}

static iso_code assume_literals(chk_state *k, const rule *r, const char *how) {
  return chk_assume(
      k, RULE_ASSUMES_LITERAL,
      iso_arena_printf(k->arena,
                       "rule %s is %s with its float literals read as the numbers they stand for",
                       r->name, how));
}

/* Both sides by code of the checker's own, where step `x` (NULL: none does) uses the rule and at
 * other sizes: where they differ it is false, even if it was proved. */
static iso_code evaluate(chk_state *k, const rule *r, const chk_step *x, unsigned rests_on,
                         chk_shown *shown) {
  rule_tensor **example = calloc(r->n_vars + 1, sizeof *example);
  const uint32_t n_names = x ? x->n_names : 0;
  const char **name = calloc(n_names + 1, sizeof *name);
  const rule_term **value = calloc(n_names + 1, sizeof *value);
  chk_evaluation v = {0};
  iso_code c = example && name && value ? ISO_OK : chk_nomem(k);
  for (uint32_t i = 0; !c && x && i < r->n_vars; i++) {
    const uint32_t id = k->cert.var[x->first_var + i];
    if (id != CHK_NONE && k->here.real[id].n == 1) example[i] = k->here.real[id].v[0];
  }
  for (uint32_t i = 0; !c && i < n_names; i++) {
    name[i] = k->cert.name[x->first_name + i].name;
    value[i] = k->cert.name[x->first_name + i].value;
  }
  chk_evaluated e = {.r = r,
                     .n_names = n_names,
                     .name = name,
                     .value = value,
                     .example = example,
                     .reading = r->reads_literals || (rests_on & RULE_RESTS_ON_LITERALS),
                     .masks = r->reads_literals || (rests_on & RULE_RESTS_ON_MASKS),
                     .seed = EVALUATION_SEED + k->o->seed};
  if (!c) c = chk_evaluate(&e, &v, k->err);
  /* Tests are run in float64: what differs by the rounding of a literal alone they do not see. */
  if (!c && v.agreement == CHK_DIFFERS && r->claimed == RULE_TESTED) {
    e.rounded = true;
    c = chk_evaluate(&e, &v, k->err);
    if (!c && v.agreement == CHK_AGREES) c = assume_literals(k, r, "tested");
  }
  free(example);
  free(name);
  free(value);
  if (c) return c;
  if (v.agreement == CHK_DIFFERS)
    return chk_settle(k, CHK_REFUSED, "rule %s is false: %s", r->name, v.why);
  shown->n_sizes = v.n_sizes;
  return (shown->not_evaluated = iso_arena_strdup(k->arena, v.why)) ? ISO_OK : chk_nomem(k);
}

/* `r`, of which nothing is claimed: samples are drawn by a rule's text, and without its evidence it
 * is the rule as it was decided first. At the tensors of step `x`, where it speaks of no others. */
static iso_code decide(chk_state *k, const rule *r, const chk_step *x, rule_verdict *v) {
  const uint32_t *var = k->cert.var + x->first_var;
  rule_tensor **example = calloc(r->n_vars + 1, sizeof *example);
  iso_error why = {0};
  rule bare = *r;
  bare.claimed = RULE_UNKNOWN;
  bare.scope = RULE_SCOPE_NONE;
  if (!example) return chk_nomem(k);
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (var[i] != CHK_NONE && !is_open(r) && k->here.real[var[i]].n == 1)
      example[i] = k->here.real[var[i]].v[0];
  iso_code c = k->oracle ? k->oracle->decide(k->oracle->ctx, &bare, example, v, &why) : ISO_OK;
  free(example);
  if (c == ISO_NOMEM) return chk_nomem(k);
  return c ? chk_settle(k, CHK_REFUSED, "rule %s cannot be decided: %s", r->name, why.msg) : ISO_OK;
}

/* A rule that is proved where all parts are numbers, and has a side that is none at some sizes (a
 * row that is masked wholly): no step needs it there. So it is decided at the sizes of each of its
 * steps, and has to be proved at all of them; of other sizes it says nothing. */
static iso_code decide_at_steps(chk_state *k, const rule *r, uint32_t which, rule_verdict *out) {
  unsigned rests_on = RULE_RESTS_ON_NUMBERS;
  rule_verdict v = *out;
  for (size_t i = 0; i < k->cert.n_steps; i++) {
    const chk_step *x = &k->cert.step[i];
    rule at;
    bool whole = true;
    if (x->kind != CHK_RULE || x->rule != which || seen_before(k, i)) continue;
    if (x->n_names == 0) return ISO_OK; /* it is the rule itself */
    iso_code c = rule_at_step(k, r, x, reading_tol, &at, &whole);
    if (!c && whole) c = decide(k, &at, x, &v);
    if (c || chk_settled(k)) return c;
    if (!whole || v.status != RULE_PROVED) return ISO_OK;
    rests_on |= v.rests_on;
  }
  *out = v;
  out->rests_on = rests_on;
  return ISO_OK;
}

static iso_code show_again(chk_state *k, const rule *r, const chk_step *x, chk_shown *shown) {
  rule_verdict v = {0};
  iso_code c = decide(k, r, x, &v);
  if (!c && !chk_settled(k) && v.status == RULE_REFUTED && (v.rests_on & RULE_RESTS_ON_NUMBERS))
    c = decide_at_steps(k, r, x->rule, &v);
  if (c || chk_settled(k)) return c;
  if (v.status == RULE_REFUTED)
    return chk_settle(k, CHK_REFUSED, "rule %s is refuted: %s", r->name, v.reason);
  if (v.status < r->claimed)
    return chk_settle(k, CHK_UNPROVED, "rule %s is said to be %s, and was found %s here%s%s",
                      r->name, rule_status_name(r->claimed), rule_status_name(v.status),
                      v.reason[0] ? ": " : "", v.reason);
  shown->defined_at_steps = v.rests_on & RULE_RESTS_ON_NUMBERS;
  k->rules.rests_on[x->rule] = v.rests_on;
  c = evaluate(k, r, x, v.rests_on, shown);
  if (!c && !chk_settled(k) && v.status == RULE_PROVED) c = ask_z3(k, r, x->rule, shown);
  if (!c && k->oracle && v.status < RULE_PROVED) shown->how = CHK_BY_TESTS;
  if (c || chk_settled(k)) return c;
  if ((v.rests_on & RULE_RESTS_ON_MASKS) && k->mask.near)
    return chk_settle(k, CHK_REFUSED,
                      "rule %s reads finite masks as minus infinity, and numbers come near them",
                      r->name);
  return v.rests_on & RULE_RESTS_ON_LITERALS ? assume_literals(k, r, "proved") : ISO_OK;
}

/* The steps that use rule `x`, as a list. NULL when there is no memory. */
static const char *steps_of(chk_state *k, uint32_t which) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  for (size_t i = 0; i < k->cert.n_steps; i++)
    if (k->cert.step[i].kind == CHK_RULE && k->cert.step[i].rule == which)
      fprintf(f, "%s%zu", ftell(f) ? ", " : "", i);
  const bool failed = fclose(f) != 0;
  const char *kept = failed ? NULL : iso_arena_strdup(k->arena, text);
  free(text);
  return kept;
}

/* Rules are held against the claims that the certificate makes of them. */
static iso_code claims_hold(chk_state *k) {
  chk_report *r = k->report;
  const bool certified = k->cert.evidence == RULE_CERTIFIED && r->evidence == RULE_PROVED;
  for (size_t i = 0; i < r->n_rules && certified && !k->o->trust_rules && !chk_settled(k); i++)
    if (r->shown[i].how != CHK_BY_Z3)
      return chk_settle(k, CHK_UNPROVED,
                        "rule %s is said to be certified, and z3 was not asked of it here: %s",
                        r->shown[i].rule, r->shown[i].why);
  if (certified)
    r->evidence = k->o->trust_rules && r->n_rules
                      ? RULE_PROVED
                      : RULE_CERTIFIED; /* trusted rules are not asked for */
  else if (r->evidence != k->cert.evidence)
    return chk_settle(k, CHK_REFUSED, "its rules are %s, and it says %s",
                      rule_status_name(r->evidence), rule_status_name(k->cert.evidence));
  return ISO_OK;
}

/* The rules by which ranks became one, which were proved a moment ago, and the leaves taken for
 * one. */
static iso_code show_roles(chk_state *k, chk_shown *shown) {
  const roles_result *x = k->o->roles;
  iso_code c = ISO_OK;
  for (size_t i = 0; x && i < x->n_rules && !c && !chk_settled(k); i++) {
    const rule *r = rule_set_at(x->rules, x->rule[i].index);
    chk_shown *s = &shown[k->report->n_rules++];
    *s = (chk_shown){.why = "", .not_evaluated = "", .steps = "ranks"};
    if (!(s->rule = iso_arena_strdup(k->arena, r->name))) return chk_nomem(k);
    c = evaluate(k, r, NULL, x->rule[i].verdict.rests_on, s);
    if (!c && !chk_settled(k)) c = ask_z3(k, r, CHK_NONE, s);
  }
  for (size_t i = 0; x && i < x->n_notes && !c && !chk_settled(k); i++)
    c = chk_assume(k, RULE_ASSUMES_LEAF, iso_arena_strdup(k->arena, x->note[i]));
  return c;
}

iso_code chk_rules(chk_state *k) {
  bool *seen = calloc(k->rules.n + 1, 1);
  const size_t more = k->o->roles ? k->o->roles->n_rules : 0;
  chk_shown *shown = iso_arena_alloc(k->arena, (k->rules.n + more + 1) * sizeof *shown);
  k->rules.rests_on = iso_arena_alloc(k->arena, (k->rules.n + 1) * sizeof *k->rules.rests_on);
  iso_code c = seen && shown && k->rules.rests_on ? ISO_OK : chk_nomem(k);
  k->report->shown = shown;
  k->report->evidence = RULE_PROVED;
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++) {
    const chk_step *x = &k->cert.step[i];
    if (x->kind != CHK_RULE || seen[x->rule]) continue;
    const rule *r = rule_set_at(k->rules.rule[x->rule], 0);
    seen[x->rule] = true;
    chk_shown *s = &shown[k->report->n_rules++];
    *s = (chk_shown){.why = "", .not_evaluated = ""};
    s->rule = iso_arena_strdup(k->arena, r->name); /* rules do not live as long as the report */
    s->steps = steps_of(k, x->rule);
    if (!s->rule || !s->steps) c = chk_nomem(k);
    if (c) break;
    if (r->claimed != RULE_PROVED && r->claimed != RULE_TESTED)
      c = chk_settle(k, CHK_REFUSED, "rule %s has no evidence", r->name);
    else if (r->claimed != RULE_PROVED && is_open(r))
      c = chk_settle(k, CHK_REFUSED, "rule %s has open sizes and is only tested", r->name);
    else if (!k->o->trust_rules) c = show_again(k, r, x, s);
    if (r->claimed < k->report->evidence) k->report->evidence = r->claimed;
  }
  if (!c && !chk_settled(k) && k->o->trust_rules && k->report->n_rules)
    c = chk_assume(k, RULE_ASSUMES_RULES, "their evidence is taken as it is written");
  free(seen);
  if (!c && !chk_settled(k)) c = show_roles(k, shown);
  if (!c && !chk_settled(k)) c = chk_weigh_undefined(k, false);
  return c || chk_settled(k) ? c : claims_hold(k);
}
