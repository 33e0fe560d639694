/* Whether an equation follows from rules: both sides in one e-graph, saturated by the rules
 * (synth/saturate/) until they meet or a limit is reached. The steps that join them are run on the
 * values at hand: none joins two values that differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/joint/joint.h"
#include "synth/saturate/saturate.h"
#include "synth/search/search.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static iso_code saturate(state *s, eg_node a, eg_node b, const bool *use,
                         const synth_follow_limits *l, iso_error *err) {
  const st_goal goal = {a, b};
  st_saturation o = {.goal = &goal,
                     .n_goals = 1,
                     .use = use,
                     .trusted = true,
                     .iterations = l->iterations,
                     .nodes = l->nodes,
                     .classes = SIZE_MAX};
  const iso_code c = eg_rebuild(s->g, err);
  return c ? c : st_saturate(s, &o, err);
}

/* ---- the terms at hand alone ---- */

static bool one_value(state *s, eg_node a, eg_node b) {
  const rule_tensor *x = st_val(s, a, 0), *y = st_val(s, b, 0);
  return x->dtype == y->dtype && rule_shape_eq(&x->shape, &y->shape) &&
         s->oracle->compare(s->oracle->ctx, x, y, s->o->rel_tol).equal;
}

/* Pairs of classes with one value, as a comparison tries them; nothing is added. */
static iso_code join_given(state *s, const bool *use, iso_error *err) {
  iso_code c = eg_rebuild(s->g, err);
  const size_t n = eg_count_added(s->g);
  for (size_t i = 0; i < rule_set_count(s->rules.set); i++)
    s->rules.info[i].verdict.status = use[i] ? RULE_PROVED : RULE_UNKNOWN;
  for (bool changed = true; changed && !c;) {
    changed = false;
    for (uint32_t i = 0; i < n && !c; i++)
      for (uint32_t k = i + 1; k < n && !c; k++) {
        const eg_node a = {i}, b = {k};
        bool done = false;
        if (!s->rec[i].tensor || !s->rec[k].tensor || !s->rec[i].valued || !s->rec[k].valued ||
            eg_equal(s->g, a, b) || !one_value(s, a, b))
          continue;
        c = st_apply_rules(s, a, b, &done, err);
        changed |= done;
      }
  }
  return c;
}

static bool all_numbers(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (!isfinite(rule_tensor_get(t, i))) return false;
  return true;
}

/* An equation between different numbers does not hold: then no consequence matters. */
static iso_code must_hold(state *s, const rule *r, const eg_node side[2], iso_error *err) {
  if (!s->rec[side[0].i].tensor || !s->rec[side[1].i].tensor || one_value(s, side[0], side[1]) ||
      !all_numbers(st_val(s, side[0], 0)) || !all_numbers(st_val(s, side[1], 0)))
    return ISO_OK;
  return iso_fail(err, ISO_INTERNAL, "the sides of %s differ", r->name);
}

/* ---- which rules the equality rests on ---- */

static iso_code mark_used(state *s, premise p, premise **queue, size_t *n, size_t *cap, bool *used,
                          iso_error *err) {
  eg_step *step = NULL;
  size_t n_steps = 0;
  iso_code c = eg_explain(s->g, p.a, p.b, &step, &n_steps, err);
  for (size_t i = 0; i < n_steps && !c; i++) {
    application *app = step[i].why.kind == WHY_RULE ? &s->rules.app[step[i].why.data] : NULL;
    if (!app || app->seen) continue;
    app->seen = used[app->rule] = true;
    if (!iso_grow(*queue, *cap, *n + app->n)) c = nomem(err);
    for (size_t k = 0; k < app->n && !c; k++) (*queue)[(*n)++] = s->rules.prem[app->first + k];
  }
  free(step);
  return c;
}

static iso_code explain(state *s, eg_node a, eg_node b, bool *used, iso_error *err) {
  premise *queue = NULL;
  size_t n = 0, cap = 0;
  iso_code c = mark_used(s, (premise){a, b}, &queue, &n, &cap, used, err);
  for (size_t i = 0; i < n && !c; i++) c = mark_used(s, queue[i], &queue, &n, &cap, used, err);
  free(queue);
  return c;
}

/* ---- the e-graph of one equation ---- */

static iso_code add_variable(state *s, uint32_t i, rule_tensor *value, eg_node *out,
                             iso_error *err) {
  char name[32];
  eg_symbol sym;
  snprintf(name, sizeof name, "#x%u", i);
  const rule_term atom = {.kind = RULE_OP, .u.s = name};
  iso_code c = eg_intern(s->g, name, strlen(name), &sym, err);
  if (!c) c = st_add_term(s, &atom, NULL, out, err);
  rec *r = c ? NULL : &s->rec[out->i];
  if (!c && !(r->val = calloc(1, sizeof *r->val))) c = nomem(err);
  if (c || (c = rule_tensor_to_float64(value, &r->val[0], err))) return c;
  r->n_out = 1;
  r->tensor = r->leaf = r->valued = true;
  r->konst = false;
  r->shape = value->shape;
  return ISO_OK;
}

static void fini(state *s) {
  for (size_t i = 0; i < s->n_rec; i++) {
    for (size_t k = 0; s->rec[i].val && k < s->rec[i].n_out; k++)
      rule_tensor_unref(s->rec[i].val[k]);
    for (size_t k = 0; s->rec[i].cval && k < s->rec[i].n_out; k++)
      rule_tensor_unref(s->rec[i].cval[k]);
    free(s->rec[i].val);
    free(s->rec[i].cval);
  }
  free(s->rec);
  free(s->literals.of);
  free(s->rules.app);
  free(s->rules.prem);
  free(s->rules.compiled.rule);
  free(s->rules.info);
  free(s->assumed.of);
  eg_free(s->g);
  iso_arena_fini(&s->arena);
}

synth_follow_limits synth_follow_limits_default(void) {
  return (synth_follow_limits){.iterations = 5, .nodes = 2000};
}

iso_code synth_follows(const rule *r, rule_tensor *const *bind, const synth_following *from,
                       bool *follows, iso_error *err) {
  const bool *use = from->use;
  const synth_options o = synth_options_default();
  synth_result res = {0};
  state st = {.oracle = from->oracle,
              .schemas = from->schemas,
              .o = &o,
              .n_draws = 1,
              .n_sets = 1,
              .n_kept = 1,
              .rules.set = (rule_set *)from->known,
              .res = &res,
              .t0 = synth_clock()};
  state *s = &st;
  eg_node side[2], *var = NULL;
  *follows = false;
  iso_code c = st_new_graph(s, err);
  var = calloc((size_t)r->n_vars + 1, sizeof *var);
  if (!c && (!var || !iso_grow(s->rules.info, s->rules.cap_info, rule_set_count(from->known) + 1)))
    c = nomem(err);
  for (uint32_t i = 0; i < r->n_vars && !c; i++) c = add_variable(s, i, bind[i], &var[i], err);
  bool ok = true;
  for (int k = 0; k < 2 && !c && ok; k++)
    c = st_add_valued(s, k ? r->rhs : r->lhs, var, &side[k], &ok, err);
  if (!c && ok) c = must_hold(s, r, side, err);
  if (!c && ok) {
    c = from->limits.given ? join_given(s, use, err)
                           : saturate(s, side[0], side[1], use, &from->limits, err);
    *follows = !c && eg_equal(s->g, side[0], side[1]);
    if (*follows && from->limits.given) c = explain(s, side[0], side[1], from->used, err);
    /* Of a saturation only the steps that the equality rests on were repeated. */
    for (size_t i = 0; i < s->rules.n_app && *follows && !from->limits.given; i++)
      from->used[s->rules.app[i].rule] = true;
  }
  free(var);
  fini(s);
  return c;
}
