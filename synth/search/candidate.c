/* A candidate as a rule: named, stated, and decided once. Accepted candidates become rules of the
 * comparison. The others are remembered, so that no candidate is validated twice. */
#include "synth/search/search_int.h"
#include "synth/search/frontier.h"
#include "synth/search/substitution.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- naming ---- */

static void var_name(const rule_variable *v, const rec *r, const size_t *count, char *out,
                     size_t n) {
  static const char *const floats[] = {"x", "y", "z"};
  if (v->kind == 'f' && r->leaf && !r->konst) {
    const char *base = v->n_dims >= 2 ? "w" : "b";
    const size_t k = count[v->n_dims >= 2 ? 1 : 2];
    if (k) snprintf(out, n, "%s%zu", base, k + 1);
    else snprintf(out, n, "%s", base);
  } else if (v->kind == 'f') {
    if (count[0] < 3) snprintf(out, n, "%s", floats[count[0]]);
    else snprintf(out, n, "x%zu", count[0] - 1);
  } else {
    const size_t k = count[v->kind == 'b' ? 4 : 3];
    const char base = v->kind == 'b' ? 'm' : v->kind == 'c' ? 'c' : 'i';
    if (k) snprintf(out, n, "%c%zu", base, k + 1);
    else snprintf(out, n, "%c", base);
  }
}

static const char *bare_op(const char *op, char *buf, size_t n) {
  const char *p = strstr(op, "::");
  snprintf(buf, n, "%s", p ? p + 2 : op);
  char *dot = strchr(buf, '.');
  if (dot) *dot = 0;
  return buf;
}

/* The operator that a person would name the side by: the outermost that is not plain layout, else
 * the outermost. */
static const char *head_op(const rule_term *t) {
  const rule_term *first = NULL;
  while (t->kind == RULE_OP) {
    if (!first) first = t;
    if (!fr_layout_op(t->u.s)) return t->u.s;
    if (!t->n) break;
    t = t->child[0];
  }
  return first ? first->u.s : "id";
}

static const char *rule_title(state *s, const rule_term *l, const rule_term *r) {
  char a[64], b[64];
  bare_op(head_op(l), a, sizeof a);
  bare_op(head_op(r), b, sizeof b);
  if (strcmp(a, b) == 0) {
    const rule_term *outer = r->kind == RULE_OP && fr_layout_op(r->u.s) ? r : l;
    if (outer->kind == RULE_OP) bare_op(outer->u.s, b, sizeof b);
  }
  return iso_arena_printf(&s->arena, strcmp(a, b) == 0 ? "%s" : "%s-%s", a, b);
}

bool fr_rule(state *s, builder *b, const rule_term *l, const rule_term *r, rule *out,
             rule_tensor **example) {
  rule_variable *v = iso_arena_alloc(&s->arena, (b->n_vars + 1) * sizeof *v);
  if (!v) return false;
  size_t count[5] = {0};
  for (size_t i = 0; i < b->n_vars; i++) {
    const eg_node rep = st_rep(s, b->var[i]);
    if (rep.i == EG_NONE || !s->rec[rep.i].tensor) return false;
    const rec *q = &s->rec[rep.i];
    const rule_term **dim = iso_arena_alloc(&s->arena, (q->shape.rank + 1) * sizeof *dim);
    if (!dim) return false;
    for (uint32_t k = 0; k < q->shape.rank; k++) {
      if (q->shape.dim[k] < 1) return false;
      if (!(dim[k] = rule_int(&s->arena, q->shape.dim[k]))) return false;
    }
    v[i] = (rule_variable){.n_dims = q->shape.rank, .dim = dim};
    rule_variable_set_dtype(&v[i], st_dtype(s, rep));
    char name[32];
    var_name(&v[i], q, count, name, sizeof name);
    count[v[i].kind == 'f'   ? (q->leaf && !q->konst ? (v[i].n_dims >= 2 ? 1 : 2) : 0)
          : v[i].kind == 'b' ? 4
                             : 3]++;
    if (!(v[i].name = iso_arena_strdup(&s->arena, name))) return false;
    example[i] =
        st_spare(s, st_home(s, rep))
            ? NULL
            : st_val(s, rep, 0); /* a large parameter is an example of nothing but its shape */
  }
  *out = (rule){
      .name = rule_title(s, l, r), .n_vars = (uint32_t)b->n_vars, .var = v, .lhs = l, .rhs = r};
  return out->name != NULL;
}

typedef struct generalised {
  rule r;
  bool exact; /* its conditions cover the candidate at the doubles that stand there */
} generalised;

/* The oracle's verdict of a candidate: in `out` the rule that the verdict is about, as general
 * as it holds. */
static iso_code consult(state *s, const rule *r, rule_tensor **example, bool glance,
                        generalised *out, rule_verdict *v, iso_error *err) {
  const rule_oracle *o = s->oracle;
  /* A rule of tiles says where they lie: it has no other use, and many sizes that could be named.
   */
  const bool as_is = s->ranks.tiling;
  *out = (generalised){*r, true};
  if (!glance && (!o->generalise || as_is)) return o->decide(o->ctx, r, example, v, err);
  iso_code c = glance ? o->glance(o->ctx, r, example, &s->arena, as_is ? NULL : &out->r, v, err)
                      : o->generalise(o->ctx, r, example, &s->arena, &out->r, v, err);
  if (c || as_is || v->status != RULE_PROVED || names_cover(&out->r, r, &s->arena, &out->exact))
    return c;
  /* It has to explain the place that it comes from. */
  out->r = *r;
  return o->decide(o->ctx, r, example, v, err);
}

static void trace_candidate(state *s, const rule *r, const rule_verdict *v, double seconds) {
  char *text = rule_print(r), how[RULE_METHOD_TEXT];
  char *line = text ? iso_arena_printf(&s->arena, "candidate %s %s (%s%s, %.3f s): %s", r->name,
                                       rule_status_name(v->status), rule_verdict_method(v, how),
                                       v->reason, seconds, text)
                    : NULL;
  if (line) s->o->trace(s->o->ctx, line);
  free(text);
}

/* Keeps a rule that holds. */
static iso_code accept(state *s, generalised *of, fr_decision *out, iso_error *err) {
  const rule_verdict *v = &out->v;
  bool first;
  of->r.reads_literals = v->status == RULE_PROVED && (v->rests_on & RULE_RESTS_ON_LITERALS);
  iso_code c = rule_set_add(s->rules.set, &of->r, &out->index, &first, err);
  if (!c && !iso_grow(s->rules.info, s->rules.cap_info, out->index + 1))
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (c) return c;
  rule_info *info = &s->rules.info[out->index];
  if (first) *info = (rule_info){0};
  info->verdict = *v;
  info->read |= !of->exact;
  rule_set_evidence(s->rules.set, out->index, v->status, v->scope);
  s->res->n_synthesised += first;
  return ISO_OK;
}

iso_code fr_decide(state *s, const rule *r, rule_tensor **example, bool glance, fr_decision *out,
                   iso_error *err) {
  size_t at;
  bool first;
  *out = (fr_decision){.index = SIZE_MAX};
  glance &= s->oracle->glance && !st_without(s, SYNTH_REUSE);
  iso_code c = rule_set_add(s->rules.tried, r, &at, &first, err);
  if (c) return c;
  if (!iso_grow(s->rules.tries, s->rules.cap_tries, at + 1))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  const bool glanced = !first && s->rules.tries[at].glanced;
  out->open = glanced && glance;
  if (out->open) return ISO_OK;
  out->fresh = first || glanced || st_without(s, SYNTH_REUSE);
  if (!out->fresh) {
    out->v = s->rules.tries[at].verdict;
    out->index = s->rules.tries[at].rule;
    return ISO_OK;
  }
  const double t0 = synth_clock(), cpu = synth_cpu_clock();
  generalised general;
  if ((c = consult(s, r, example, glance, &general, &out->v, err))) return c;
  s->res->seconds_validate += synth_clock() - t0;
  st_note_cost(s, r->name, cpu);
  st_refuse_masks(&s->masks, &out->v);
  out->open = glance && out->v.status == RULE_UNKNOWN;
  const bool holds = out->v.status >= RULE_TESTED;
  if (holds) c = accept(s, &general, out, err);
  else s->res->n_refuted += !out->open;
  if (c) return c;
  s->rules.tries[at] = (try){out->v, out->index, out->open};
  if (s->o->trace && !out->open)
    trace_candidate(s, holds ? rule_set_at(s->rules.set, out->index) : r, &out->v,
                    synth_cpu_clock() - cpu);
  return ISO_OK;
}

iso_code st_join_stated(state *s, const st_stated *x, bool *done, iso_error *err) {
  eg_node from, to;
  *done = false;
  iso_code c = st_add_term(s, x->l, x->var, &from, err);
  if (!c) c = st_value(s, from, err);
  if (!c) c = st_add_term(s, x->r, x->var, &to, err);
  if (!c) c = st_value(s, to, err);
  if (c) return c;
  *done = eg_equal(s->g, from, to);
  if (*done || !st_values_equal(s, from, to)) return ISO_OK;
  if ((c = st_apply_rules(s, from, to, done, err)) || *done) return c;
  builder b = {.s = s, .n_vars = x->n};
  rule_tensor *example[RULE_MAX_VARS];
  rule cand;
  fr_decision as;
  for (uint32_t i = 0; i < x->n; i++) b.var[i] = eg_class_of(s->g, x->var[i]);
  if (!fr_rule(s, &b, x->l, x->r, &cand, example))
    return s->arena.failed ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
  c = fr_decide(s, &cand, example, false, &as, err);
  if (c || as.index == SIZE_MAX || !st_usable(s, as.index)) return c;
  *done = true;
  const st_use use = {.rule = as.index, .from = from, .to = to, .as = &cand, .var = x->var};
  return st_record_application(s, &use, err);
}
