/* Why the outputs are equal: the e-graph's explanations, checked step by step, with the premises of
 * their rules; and the assumptions. */
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/refute/refute.h"
#include "synth/result/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- explanations ---- */

static bool accept_step(void *ctx, const eg_step *step) {
  state *s = ctx;
  switch (step->why.kind) {
  case WHY_LEAF:
  case WHY_VALUE: return step->why.data < s->assumed.n;
  case WHY_RULE: {
    if (step->why.data >= s->rules.n_app) return false;
    const application *a = &s->rules.app[step->why.data];
    const bool ends = (a->from.i == step->from.i && a->to.i == step->to.i) ||
                      (a->from.i == step->to.i && a->to.i == step->from.i);
    return ends && s->rules.info[a->rule].verdict.status >= RULE_TESTED;
  }
  default: return false;
  }
}

static const char *step_text(state *s, const eg_step *x) {
  const char *why = x->why.kind == EG_WHY_CONGRUENCE ? "congruence"
                    : x->why.kind == WHY_RULE
                        ? rule_set_at(s->rules.set, s->rules.app[x->why.data].rule)->name
                        : rule_assumption_name(s->assumed.of[x->why.data].kind);
  const char *from = st_operator(s, x->from), *to = st_operator(s, x->to);
  const char *const part[] = {st_any_id(s, x->from),
                              " (",
                              from,
                              ") = ",
                              st_any_id(s, x->to),
                              " (",
                              to,
                              ") by ",
                              x->why.kind == WHY_RULE ? "rule " : "",
                              why};
  enum { PARTS = sizeof part / sizeof *part };
  size_t n = 1;
  for (size_t i = 0; i < PARTS; i++) n += strlen(part[i]);
  char *text = iso_arena_alloc(&s->arena, n),
       *at = text; /* there is a line for each step, and formatting takes longer than explaining */
  for (size_t i = 0; i < PARTS && text; i++) at = stpcpy(at, part[i]);
  return text;
}

typedef struct question { /* why are the two equal? */
  premise p;
  bool told;     /* said for people: a premise of the match, and not what its check asks for */
  size_t before; /* by applications older than this one: none rests on itself */
} question;

typedef struct pair_queue {
  question *at;
  size_t n, cap;
} pair_queue;

static iso_code queue_pair(pair_queue *q, question x, iso_error *err) {
  if (!iso_grow(q->at, q->cap, q->n + 1)) return nomem(err);
  q->at[q->n++] = x;
  return ISO_OK;
}

/* A rule on the chain: queues the premises of its match, and the equalities by which the two
 * e-nodes literally are its sides. */
static iso_code queue_application(state *s, application *app, pair_queue *q, iso_error *err) {
  premise *need = NULL;
  size_t n = 0;
  const char *why = NULL;
  iso_code c = st_rematch(s, app, &need, &n, &why, err);
  if (!c && why)
    c = iso_fail(err, ISO_INTERNAL, "rule %s does not fit where it was applied: %s",
                 rule_set_at(s->rules.set, app->rule)->name, why);
  const size_t before = (size_t)(app - s->rules.app);
  for (size_t k = 0; k < app->n && !c; k++)
    c = queue_pair(q, (question){s->rules.prem[app->first + k], true, before}, err);
  for (size_t k = 0; k < n && !c; k++) c = queue_pair(q, (question){need[k], false, before}, err);
  free(need);
  return c;
}

/* Explains and checks one equality, and queues the premises of its rules. A path in the proof
 * forest never changes once it is there, so the premises of a match are explained by older merges
 * only, and the recursion ends. */
static iso_code explain_one(state *s, question x, pair_queue *q, const char ***text,
                            size_t *cap_text, rule_status *weakest, iso_error *err) {
  eg_step *step = NULL;
  size_t n = 0;
  bool ok = false;
  const char *why_not = NULL;
  iso_code c = eg_explain(s->g, x.p.a, x.p.b, &step, &n, err);
  if (!c) c = eg_proof_check(s->g, step, n, x.p.a, x.p.b, accept_step, s, &ok, &why_not, err);
  if (!c && !ok)
    c = iso_fail(err, ISO_INTERNAL, "the explanation does not hold: %s",
                 why_not ? why_not : "no reason");
  for (size_t i = 0; i < n && !c; i++) {
    if (step[i].why.kind == WHY_RULE) {
      application *app = &s->rules.app[step[i].why.data];
      rule_info *f = &s->rules.info[app->rule];
      if (step[i].why.data >= x.before)
        c = iso_fail(err, ISO_INTERNAL, "rule %s rests on itself",
                     rule_set_at(s->rules.set, app->rule)->name);
      if (c) break;
      f->needed = true;
      if (f->verdict.status < *weakest) *weakest = f->verdict.status;
      if (app->seen) continue;
      app->seen = true;
      if ((c = queue_application(s, app, q, err))) break;
    }
    if (!x.told) continue;
    const char *t = step_text(s, &step[i]);
    if (!t || !iso_grow(*text, *cap_text, s->res->n_steps + 1)) c = nomem(err);
    else (*text)[s->res->n_steps++] = t;
  }
  free(step);
  return c;
}

iso_code st_explain(state *s, eg_node a, eg_node b, rule_status *weakest, iso_error *err) {
  pair_queue q = {0};
  const char **text = NULL;
  size_t cap = 0;
  const size_t before = s->res->n_steps;
  s->res->n_steps = 0;
  iso_code c = explain_one(s, (question){{a, b}, true, SIZE_MAX}, &q, &text, &cap, weakest, err);
  for (size_t i = 0; i < q.n && !c; i++) c = explain_one(s, q.at[i], &q, &text, &cap, weakest, err);
  const size_t n = s->res->n_steps;
  const char **all = c ? NULL : iso_arena_alloc(&s->res->arena, (before + n + 1) * sizeof *all);
  if (!c && !all) c = nomem(err);
  for (size_t i = 0; i < before && !c; i++) all[i] = s->res->step[i];
  for (size_t i = 0; i < n && !c; i++) all[before + i] = text[i];
  if (!c) s->res->step = all;
  s->res->n_steps = before + n;
  free(text);
  free(q.at);
  return c;
}

/* One is infinite where the other is, of the other sign: a quotient by 0 is no real number. */
static bool at_pole(const rule_tensor *a, const rule_tensor *b) {
  bool any = false;
  for (int64_t i = 0; rule_dtype_is_float(a->dtype) && i < a->numel && !any; i++)
    any = isinf(rule_tensor_get(a, i)) && rule_tensor_get(a, i) == -rule_tensor_get(b, i);
  return any;
}

/* A number on a cut of the complex plane has a root and an angle by the sign of its zero. */
static bool any_complex(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->map[side][i].i != EG_NONE && rule_dtype_is_complex(s->graph[side]->node[i].dtype))
        return true;
  return false;
}

/* Every class holds one value, one shape, one dtype: congruence merges included. */
iso_code st_check_classes(state *s, iso_error *err) {
  for (uint32_t i = 0; i < s->n_rec; i++) {
    const eg_node e = {i};
    const rec *r = &s->rec[i];
    if (!r->tensor || !r->valued) continue;
    const eg_node rep = st_rep(s, eg_class_of(s->g, e));
    if (st_home(s, rep).i == st_home(s, e).i) continue;
    const rec *q = &s->rec[rep.i];
    if (!rule_shape_eq(&q->shape, &r->shape) || st_dtype(s, rep) != st_dtype(s, e))
      return iso_fail(err, ISO_INTERNAL,
                      "\"%s\" and \"%s\" are in one class and differ in shape or dtype",
                      st_any_id(s, rep), st_any_id(s, e));
    for (size_t d = 0; d < s->n_draws && !r->typed && !q->typed; d++) {
      st_trim(s);
      const rule_tensor *vq = st_val(s, rep, d), *ve = st_val(s, e, d);
      if (!vq || !ve) return st_lost(&s->values, err);
      if (vq == ve) continue;
      rule_diff df = s->oracle->compare(s->oracle->ctx, vq, ve, 10 * s->o->rel_tol);
      bool rounding = false;
      const eg_node pair[2] = {rep, e};
      iso_code c = df.equal ? ISO_OK : st_same_numbers(s, d, pair, true, &rounding, err);
      if (c) return c;
      if (rounding) continue;
      bool pole = false;
      if (!df.equal && isinf(df.max_rel) && (c = st_same_pole(s, d, pair, &pole, err))) return c;
      s->constants.poles_differ |= pole;
      s->constants.poles_differ |= !df.equal && (at_pole(vq, ve) || any_complex(s));
      if (!df.equal && s->constants.poles_differ) continue; /* the outputs' values decide */
      bool told = false;
      if (!df.equal && st_tells_overflow(s, &told, err)) return ISO_NOMEM;
      if (told) continue; /* what it makes of the outputs is judged there */
      if (!df.equal)
        return iso_fail(err, ISO_INTERNAL,
                        "\"%s\" and \"%s\" are in one class and differ by %.3g (relative)",
                        st_any_id(s, rep), st_any_id(s, e), df.max_rel);
      if (df.max_rel > s->res->largest_merged) s->res->largest_merged = df.max_rel;
    }
  }
  return ISO_OK;
}

/* ---- assumptions ---- */

static iso_code assume_inputs(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  char text[512];
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP) continue;
      const eg_node e = s->map[side][i];
      if (!s->rec[e.i].konst &&
          !(s->leaves.keep_integers && s->rec[e.i].lonely && n->kind == SYNTH_INPUT))
        continue;
      snprintf(text, sizeof text, "%s's %s keeps its captured value",
               side == LEFT ? "left" : "right", n->name);
      if (!st_assume(s, n->kind == SYNTH_INPUT ? RULE_ASSUMES_INPUT : RULE_ASSUMES_VALUE,
                     side == LEFT ? e : none, side == RIGHT ? e : none, NULL, text))
        return nomem(err);
    }
  if (!st_assume(s, RULE_ASSUMES_SHAPE, none, none, NULL,
                 "shown for the captured shapes and the captured branch"))
    return nomem(err);
  return ISO_OK;
}

/* Kernels that give float32 for float64 compute so. */
static iso_code assume_coarse(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  if (s->groups.coarse == 0) return ISO_OK;
  char text[160];
  snprintf(text, sizeof text,
           "a kernel computes in few bits: it and what depends on it are compared within %g",
           s->groups.coarse);
  return st_assume(s, RULE_ASSUMES_DTYPE, none, none, NULL, text) ? ISO_OK : nomem(err);
}

static iso_code assume_casts(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP || !rule_dtype_is_float(n->dtype)) continue;
      if (st_assume(s, RULE_ASSUMES_DTYPE, none, none, NULL,
                    "floating casts are identities: equality is over the real numbers, not over "
                    "roundings"))
        return ISO_OK;
      return nomem(err);
    }
  return ISO_OK;
}

/* Assumes that kernels outside PyTorch compute the same as the reference kernels. */
static iso_code assume_kernels(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_OP || s->map[side][i].i == EG_NONE || rule_is_aten(n->op) ||
          rule_is_getitem(n->op))
        continue;
      bool seen = false;
      for (size_t k = 0; k < i && !seen; k++)
        seen = strcmp(s->graph[side]->node[k].op ? s->graph[side]->node[k].op : "", n->op) == 0;
      for (size_t k = 0; side == RIGHT && k < s->graph[LEFT]->n_nodes && !seen; k++)
        seen = s->graph[LEFT]->node[k].op && strcmp(s->graph[LEFT]->node[k].op, n->op) == 0;
      if (seen) continue;
      rule_relative r;
      if (!rule_relative_of(&s->arena, n->op, &r)) return nomem(err);
      const char *text = rule_relative_print(&s->arena, r);
      const eg_node e = s->map[side][i];
      if (!text ||
          !st_assume(s, r.kind, side == LEFT ? e : none, side == RIGHT ? e : none, NULL, text))
        return nomem(err);
      s->assumed.of[s->assumed.n - 1].what = r.what;
    }
  return ISO_OK;
}

/* Whether the graphs call an operator of which `fact` holds. */
static bool calls_any(const state *s, bool (*fact)(const rule_operator *)) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *d = &s->graph[side]->node[i];
      if (d->kind == SYNTH_OP && s->map[side][i].i != EG_NONE && fact(rule_operator_of(d->op)))
        return true;
    }
  return false;
}

static bool leaves_ties(const rule_operator *o) { return o->ties; }
static bool adds_unordered(const rule_operator *o) { return o->unordered; }

/* Assumptions about equal elements, and about the order in which sums are taken. */
static iso_code assume_ties(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  if (calls_any(s, leaves_ties) &&
      !st_assume(
          s, RULE_ASSUMES_TIES, none, none, NULL,
          "an order among equal elements is left open: indices are compared where values differ"))
    return nomem(err);
  if (calls_any(s, adds_unordered) &&
      !st_assume(s, RULE_ASSUMES_ORDER, none, none, NULL,
                 "sums over unordered elements are equal up to their order"))
    return nomem(err);
  return ISO_OK;
}

/* Rules whose proof, or whose conditions, read a float literal as the real number it stands for say
 * so. */
static iso_code assume_literals(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (size_t i = 0; i < rule_set_count(s->rules.set); i++) {
    if (s->rules.info[i].uses == 0 ||
        !(s->rules.info[i].read || (s->rules.info[i].verdict.rests_on & RULE_RESTS_ON_LITERALS)))
      continue;
    char text[256];
    snprintf(text, sizeof text,
             "rule %s holds with its float literals read as the numbers they stand for",
             rule_set_at(s->rules.set, i)->name);
    if (!st_assume(s, RULE_ASSUMES_LITERAL, none, none, NULL, text)) return nomem(err);
  }
  return ISO_OK;
}

/* So do those whose proof took a topk that need not sort in the order in which libtorch leaves it.
 */
static iso_code assume_orders(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (size_t i = 0; i < rule_set_count(s->rules.set); i++) {
    if (s->rules.info[i].uses == 0 || !(s->rules.info[i].verdict.rests_on & RULE_RESTS_ON_ORDER))
      continue;
    char text[256];
    snprintf(text, sizeof text,
             "rule %s is proved with the results of topk without sorted in libtorch's order",
             rule_set_at(s->rules.set, i)->name);
    if (!st_assume(s, RULE_ASSUMES_ORDER, none, none, NULL, text)) return nomem(err);
  }
  return ISO_OK;
}

/* The caller's assumptions. */
static iso_code assume_said(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (size_t i = 0; i < s->o->n_said; i++) {
    const synth_note *n = &s->o->said[i];
    const eg_node l = n->left < 0 ? none : s->map[LEFT][n->left],
                  r = n->right < 0 ? none : s->map[RIGHT][n->right];
    const char *text = iso_arena_strdup(&s->arena, n->text);
    if (!text || !st_assume(s, n->kind, l, r, NULL, text)) return nomem(err);
  }
  return ISO_OK;
}

iso_code st_assume_all(state *s, iso_error *err) {
  iso_code c = assume_inputs(s, err);
  if (!c) c = assume_casts(s, err);
  if (!c) c = assume_coarse(s, err);
  if (!c) c = assume_kernels(s, err);
  if (!c) c = assume_ties(s, err);
  for (size_t i = 0; i < s->o->n_noted && !c; i++)
    if (!st_assume(s, RULE_ASSUMES_DEFINITION, (eg_node){EG_NONE}, (eg_node){EG_NONE}, NULL,
                   s->o->noted[i]))
      c = nomem(err);
  if (!c) c = assume_said(s, err);
  if (!c) c = assume_orders(s, err);
  return c ? c : assume_literals(s, err);
}
