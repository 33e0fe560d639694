/* Whether an equation follows from rules: both sides in one e-graph, grown by the rules until they
 * meet or nothing is new.
 *
 * Terms that a rule makes are run on the values at hand, as any other: they give the shapes that
 * rules speak of, and no step joins two values that differ. Each iteration matches all rules on the
 * same e-graph, then applies what was found; classes and rules are walked in order of their
 * numbers, limits are counts: same calls, same answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/joint/joint.h"
#include "synth/search/search.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* A match, kept until all are found. */
typedef struct found {
  size_t rule;
  eg_node root, *var;
  premise *prem;
  size_t n_prem;
  const rule_term *other;
} found;

typedef struct search {
  state *s;
  size_t rule, n, cap, limit;
  found *at;
  bool failed;
} search;

static bool keep_match(void *ctx, const st_match *m) {
  search *q = ctx;
  const size_t n_vars = rule_set_at(q->s->rules.set, q->rule)->n_vars;
  found f = {q->rule,
             m->root,
             iso_arena_alloc(&q->s->arena, (n_vars + 1) * sizeof *f.var),
             iso_arena_alloc(&q->s->arena, (m->n_prem + 1) * sizeof *f.prem),
             m->n_prem,
             m->other};
  if (!f.var || !f.prem || !iso_grow(q->at, q->cap, q->n + 1)) {
    q->failed = true;
    return false;
  }
  if (n_vars) memcpy(f.var, m->var, n_vars * sizeof *f.var);
  if (m->n_prem) memcpy(f.prem, m->prem, m->n_prem * sizeof *f.prem);
  q->at[q->n++] = f;
  return q->n < q->limit;
}

/* Which operators give several tensors is known from their schemas, before they are run. */
static void mark_multi(state *s, size_t from) {
  for (size_t i = from; i < s->n_rec; i++) {
    rec *r = &s->rec[i];
    const rule_schema *d =
        r->tensor
            ? rule_schemas_find(s->schemas,
                                eg_symbol_name(s->g, eg_node_symbol(s->g, (eg_node){(uint32_t)i})))
            : NULL;
    if (d == NULL || rule_schema_outputs(d) == 1) continue;
    r->multi = true;
    r->tensor = false;
  }
}

/* Returns: in `ok` whether the e-node has a value, or could be run now. */
static iso_code run_term(state *s, eg_node n, bool *ok, iso_error *err) {
  iso_error local = {0};
  const iso_code c = s->rec[n.i].valued ? ISO_OK : st_value(s, n, &local);
  *ok = c == ISO_OK;
  return c == ISO_NOMEM ? iso_fail(err, c, "%s", local.msg) : ISO_OK;
}

/* Add a term and its value. */
static iso_code add(state *s, const rule_term *t, const eg_node *var, eg_node *out, bool *ok,
                    iso_error *err) {
  const size_t before = s->n_rec;
  const iso_code c = st_add_term(s, t, var, out, err);
  if (c) return c;
  mark_multi(s, before);
  return run_term(s, *out, ok, err);
}

/* The e-node that a term made of known e-nodes is, and what that rests on: an e-node that was there
 * may have other members of the same classes for its children. */
static iso_code note_made(state *s, const rule_term *t, found *f, size_t *cap, eg_node *out,
                          iso_error *err) {
  iso_code c = st_add_term(s, t, f->var, out, err);
  for (uint32_t k = 0; k < t->n && !c; k++) {
    eg_node child;
    if ((c = note_made(s, t->child[k], f, cap, &child, err))) break;
    const eg_node meant = {eg_node_original(s->g, *out, k).i};
    if (child.i == meant.i) continue;
    if (f->n_prem == *cap) {
      premise *more = iso_arena_alloc(&s->arena, (2 * *cap + 8) * sizeof *more);
      if (!more) return nomem(err);
      if (f->n_prem) memcpy(more, f->prem, f->n_prem * sizeof *more);
      f->prem = more;
      *cap = 2 * *cap + 8;
    }
    f->prem[f->n_prem++] = (premise){child, meant};
  }
  return c;
}

static iso_code apply(state *s, found *f, bool *changed, iso_error *err) {
  eg_node made;
  bool ok;
  size_t cap = f->n_prem;
  iso_code c = add(s, f->other, f->var, &made, &ok, err);
  if (c || !ok || eg_equal(s->g, f->root, made)) return c;
  if ((c = run_term(s, f->root, &ok, err)) || !ok) return c;
  if ((c = note_made(s, f->other, f, &cap, &made, err))) return c;
  *changed = true;
  const st_use use = {
      .rule = f->rule, .from = f->root, .to = made, .prem = f->prem, .n_prem = f->n_prem};
  return st_record_application(s, &use, err);
}

/* Every match of every rule that may be used, both ways. */
static iso_code match_all(search *q, const bool *use, iso_error *err) {
  state *s = q->s;
  const size_t n_nodes = eg_count_added(s->g);
  iso_code c = ISO_OK;
  for (q->rule = 0; q->rule < rule_set_count(s->rules.set) && !c; q->rule++) {
    if (!use[q->rule]) continue;
    for (uint32_t i = 0; i < n_nodes && q->n < q->limit && !c; i++) {
      const eg_class at = eg_class_of(s->g, (eg_node){i});
      if (at.i != i) continue;
      for (int rhs = 0; rhs < 2 && !c; rhs++)
        c = st_match_side(s, q->rule, rhs, at, keep_match, q, err);
    }
  }
  return !c && q->failed ? nomem(err) : c;
}

static iso_code saturate(state *s, eg_node a, eg_node b, const bool *use,
                         const synth_follow_limits *l, iso_error *err) {
  iso_code c = eg_rebuild(s->g, err);
  bool changed = true;
  for (size_t k = 0; k < l->iterations && changed && !c && !eg_equal(s->g, a, b); k++) {
    search q = {.s = s, .limit = l->nodes};
    changed = false;
    c = match_all(&q, use, err);
    for (size_t i = 0; i < q.n && !c && eg_count_added(s->g) < l->nodes && !eg_equal(s->g, a, b);
         i++)
      c = apply(s, &q.at[i], &changed, err);
    free(q.at);
  }
  return c;
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
  for (int k = 0; k < 2 && !c && ok; k++) c = add(s, k ? r->rhs : r->lhs, var, &side[k], &ok, err);
  if (!c && ok) {
    c = from->limits.given ? join_given(s, use, err)
                           : saturate(s, side[0], side[1], use, &from->limits, err);
    *follows = !c && eg_equal(s->g, side[0], side[1]);
    if (*follows) c = explain(s, side[0], side[1], from->used, err);
  }
  free(var);
  fini(s);
  return c;
}
