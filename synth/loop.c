/* The comparison: relate leaves and constants, give values, group e-nodes by value, and join what a rule justifies until
 * the outputs meet or nothing moves (Emerge, Algorithm 1, with the candidates in topological order). */
#include "synth/synth_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

synth_options synth_options_default(void) {
  return (synth_options){.n_redrawn = 2, .rel_tol = 1e-9, .max_pattern = 120, .max_tries = 32};
}

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- what the outputs depend on ---- */

static void mark_live(const synth_graph *g, const rule_term *t, bool *live) {
  if (t->kind == RULE_VAR) live[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_live(g, t->child[i], live);
}

/* A graph of live nodes only: what no output reads is not part of the function (and may be unspecified memory). */
static iso_code live_nodes(const synth_graph *g, bool **out, iso_error *err) {
  bool *live = calloc(g->n_nodes + 1, 1);
  if (!live) return nomem(err);
  for (size_t i = 0; i < g->n_outputs; i++) live[g->output[i].node] = true;
  for (size_t i = g->n_nodes; i-- > 0;)
    if (live[i] && g->node[i].kind == SYNTH_OP) mark_live(g, g->node[i].call, live);
  *out = live;
  return ISO_OK;
}

/* PyTorch's in-place operators are named with an underscore; in functional form they have one more output. Where nothing reads
 * the result, others may read what was written. */
static bool writes_in_place(const synth_node *n) {
  if (n->kind != SYNTH_OP || n->n_outputs != 1 || strncmp(n->call->u.s, "aten::", 6) != 0) return false;
  const char *name = n->call->u.s + 6;
  const size_t len = strcspn(name, ".");
  return len > 1 && name[len - 1] == '_' && name[len - 2] != '_';
}

/* Operators that compute no function of their arguments are refused. */
static iso_code refuse(state *s, const synth_graph *g, const synth_node *n, iso_error *err) {
  if (n->kind != SYNTH_OP || strcmp(n->call->u.s, "getitem") == 0) return ISO_OK;
  const rule_schema *sc = rule_schemas_find(s->schemas, n->call->u.s);
  if (writes_in_place(n) || (sc && sc->writes))
    return iso_fail(err, ISO_UNSUPPORTED, "%s: node \"%s\": %s writes to an argument; captures hold functions only", g->path, n->id, n->op);
  if (!sc) return ISO_OK;
  if (sc->random) {
    for (size_t k = 0; k < sc->n_args && k < n->call->n; k++) {
      const rule_term *a = n->call->child[k];
      if ((strcmp(sc->arg[k].name, "train") == 0 || strcmp(sc->arg[k].name, "training") == 0) && a->kind == RULE_BOOLEAN && !a->u.i)
        return ISO_OK;
      if (strcmp(sc->arg[k].name, "dropout_p") == 0 && a->kind == RULE_FLOAT && a->u.f == 0) return ISO_OK;
    }
    return iso_fail(err, ISO_UNSUPPORTED, "%s: node \"%s\": %s draws random numbers: its output is no function of its inputs", g->path,
                    n->id, n->op);
  }
  return ISO_OK;
}

/* ---- groups of equal values ---- */

void st_moments(const rule_tensor *t, double m[4]) {
  m[0] = m[1] = m[2] = m[3] = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!(fabs(x) < 1e30)) {
      m[2] += 1;
      continue;
    }
    m[0] += x;
    m[1] += fabs(x);
    m[2] += x * x;
    m[3] += x * fabs(x);
  }
}

bool st_near_moments(const double a[4], const double b[4]) {
  const double s1 = fmax(a[1], b[1]), s2 = fmax(a[2], b[2]);
  return fabs(a[0] - b[0]) <= 1e-8 * s1 && fabs(a[1] - b[1]) <= 1e-8 * s1 && fabs(a[2] - b[2]) <= 1e-8 * s2 &&
         fabs(a[3] - b[3]) <= 1e-8 * s2;
}

static bool has_side(state *s, eg_node e, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return true;
  return false;
}

static bool nan_anywhere(const rule_tensor *t) {
  if (!rule_dtype_is_float(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (isnan(rule_tensor_get(t, i))) return true;
  return false;
}

static iso_code prove(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  *done = eg_equal(s->g, u, t);
  if (*done) return ISO_OK;
  s->res->n_candidates++;
  iso_code c = ISO_OK;
  if (!st_without(s, SYNTH_REUSE)) c = st_apply_rules(s, u, t, done, err);
  if (!c && !*done && !st_without(s, SYNTH_REUSE)) c = st_apply_known(s, u, t, done, err);
  if (!c && !*done) c = st_synthesise(s, u, t, done, err);
  bool shards = false;
  if (!c && !*done) c = st_link_shards(s, u, t, &shards, err);
  if (!c && shards) c = st_synthesise(s, u, t, done, err);
  return c;
}

static bool values_equal(state *s, eg_node a, eg_node b) {
  for (size_t d = 0; d < s->n_draws; d++)
    if (!s->oracle->compare(s->oracle->ctx, st_val(s, a, d), st_val(s, b, d), s->o->rel_tol).equal) return false;
  return true;
}

/* 0: the same shape, 1: the same but for sizes 1, 2: another. */
static int shape_distance(const rule_shape *a, const rule_shape *b) {
  if (rule_shape_eq(a, b)) return 0;
  uint32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (j < b->rank && b->dim[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank ? 1 : 2;
    if (a->dim[i++] != b->dim[j++]) return 2;
  }
}

/* Link e-node `e` with member `m` of another shape through a layout term: the one of higher rank is written in terms of the
 * other. Returns: in `same` whether their values agree up to layout at all, in `done` whether they are linked. */
static iso_code link_layout(state *s, eg_node e, eg_node m, bool *same, bool *done, iso_error *err) {
  *same = *done = false;
  const size_t probe = s->n_draws - 1;
  eg_node hi = e, lo = m;
  if (s->rec[m.i].shape.rank > s->rec[e.i].shape.rank) hi = m, lo = e;
  const rule_term *term = NULL;
  for (int turn = 0; turn < 2 && !term; turn++) {
    if (turn) {
      const eg_node x = hi;
      hi = lo;
      lo = x;
    }
    term = synth_layout(&s->arena, s->schemas, st_val(s, lo, probe), st_val(s, hi, probe), s->oracle, s->o->rel_tol);
  }
  if (!term) return ISO_OK;
  eg_node aux;
  iso_code c = st_add_term(s, term, &lo, &aux, err);
  if (!c) c = st_value(s, aux, err);
  if (c) return c;
  if (!rule_shape_eq(&s->rec[aux.i].shape, &s->rec[hi.i].shape) || !values_equal(s, hi, aux)) return ISO_OK;
  *same = true;
  return prove(s, hi, aux, done, err);
}

static int32_t find_group(state *s, eg_node e, const double m[4], int32_t after) {
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  for (size_t i = (size_t)(after + 1); i < s->n_group; i++)
    if (s->group[i].numel == v->numel && (st_without(s, SYNTH_FINGERPRINT) || st_near_moments(s->group[i].moment, m)) &&
        st_val(s, s->group[i].member[0], 0)->dtype == v->dtype)
      return (int32_t)i;
  return -1;
}

static iso_code join_group(state *s, int32_t i, eg_node e, const double m[4], int64_t numel, iso_error *err) {
  if (i < 0) {
    if (!iso_grow(s->group, s->cap_group, s->n_group + 1)) return nomem(err);
    i = (int32_t)s->n_group++;
    s->group[i] = (group){.numel = numel};
    memcpy(s->group[i].moment, m, sizeof s->group[i].moment);
  }
  group *g = &s->group[i];
  if (!iso_grow(g->member, g->cap, g->n + 1)) return nomem(err);
  g->member[g->n++] = e;
  s->rec[e.i].group = i;
  return ISO_OK;
}

/* Try to join `e` with the members of its group: those of the same shape but for sizes 1 first, since the rules that come out
 * of them are the small ones; other layouts only across the two graphs, and only until one holds. */
static iso_code try_group(state *s, int32_t gi, eg_node e, bool *belongs, iso_error *err) {
  iso_code c = ISO_OK;
  bool linked = false;
  size_t failures = 0;
  const bool right_only = !has_side(s, e, LEFT);
  for (int round = 0; round < 3 && !c; round++) {
    const int want = round == 0 ? 1 : round == 1 ? 0 : 2;
    for (size_t k = 0; k < s->group[gi].n && !c && failures < 12; k++) {
      const eg_node m = s->group[gi].member[k];
      bool dup = m.i == e.i || eg_equal(s->g, m, e);
      if (dup) {
        *belongs = true;
        continue;
      }
      for (size_t j = 0; j < k && !dup; j++) dup = eg_equal(s->g, s->group[gi].member[j], m);
      if (dup || shape_distance(&s->rec[m.i].shape, &s->rec[e.i].shape) != want) continue;
      bool done = false;
      if (want == 0) {
        if (!values_equal(s, m, e)) {
          if (!*belongs) c = link_layout(s, e, m, belongs, &done, err);
          continue;
        }
        *belongs = true;
        c = prove(s, m, e, &done, err);
      } else {
        const bool across = right_only && has_side(s, m, LEFT);
        if (*belongs && (!across || linked)) continue;
        if (!across) { /* only find out whether it belongs here */
          const size_t probe = s->n_draws - 1;
          *belongs |= s->oracle->compare(s->oracle->ctx, st_val(s, m, probe), st_val(s, e, probe), s->o->rel_tol).equal;
          continue;
        }
        bool same;
        c = link_layout(s, e, m, &same, &done, err);
        *belongs |= same;
        linked |= done;
        if (!same) continue;
      }
      failures += !done;
    }
  }
  return c;
}

iso_code st_meet(state *s, eg_node e, int side, bool *same, iso_error *err) {
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  double moment[4];
  iso_code c = ISO_OK;
  bool done = false;
  *same = false;
  if (v->numel == 0 || nan_anywhere(v)) return ISO_OK;
  st_moments(v, moment);
  for (int32_t gi = find_group(s, e, moment, -1); gi >= 0 && !c && !done; gi = find_group(s, e, moment, gi))
    for (size_t k = 0; k < s->group[gi].n && !c && !done; k++) {
      const eg_node m = s->group[gi].member[k];
      bool seen = !has_side(s, m, side), agree = true;
      for (size_t j = 0; j < k && !seen; j++) seen = eg_equal(s->g, s->group[gi].member[j], m);
      if (seen) continue;
      if (shape_distance(&s->rec[m.i].shape, &s->rec[e.i].shape) != 0) c = link_layout(s, e, m, &agree, &done, err);
      else if ((agree = values_equal(s, m, e))) c = prove(s, m, e, &done, err);
      *same |= agree;
    }
  return c;
}

static iso_code visit(state *s, eg_node e, iso_error *err) {
  const rec *r = &s->rec[e.i];
  if (!r->tensor || !r->valued || r->konst) return ISO_OK;
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  if (v->numel == 0 || nan_anywhere(v)) return ISO_OK;
  if (r->group >= 0) { /* a later pass */
    bool belongs = true;
    return try_group(s, r->group, e, &belongs, err);
  }
  double m[4];
  st_moments(v, m);
  bool belongs = false;
  int32_t gi = -1;
  while ((gi = find_group(s, e, m, gi)) >= 0) {
    iso_code c = try_group(s, gi, e, &belongs, err);
    if (c) return c;
    if (belongs) break;
  }
  return join_group(s, gi, e, m, v->numel, err);
}

bool st_stopped(state *s) {
  if (!s->stopped && s->o->deadline > 0 && synth_clock() - s->t0 > s->o->deadline) s->stopped = "the time limit was reached";
  if (!s->stopped && s->o->stop) s->stopped = s->o->stop(s->o->ctx);
  return s->stopped != NULL;
}

/* ---- outputs ---- */

typedef struct pairing {
  uint32_t left, right; /* indices of outputs */
  eg_node aux;          /* what the left output must equal: the right one, in the left one's shape */
  const rule_term *term; /* that, over the right graph's nodes */
  const char *relation;
} pairing;

static iso_code pair_outputs(state *s, pairing *p, iso_error *err) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  for (size_t i = 0; i < L->n_outputs; i++) {
    p[i].left = p[i].right = (uint32_t)i; /* st_pair_outputs put them in one order */
    const eg_node l = s->map[LEFT][L->output[i].node], r = s->map[RIGHT][R->output[p[i].right].node];
    const rule_shape *a = &s->rec[l.i].shape, *b = &s->rec[r.i].shape;
    const int dist = shape_distance(a, b);
    if (dist == 2) {
      char x[128], y[128];
      return iso_fail(err, ISO_USAGE, "output \"%s\" is %s in %s and %s in %s: only sizes 1 may differ", L->output[i].name,
                      rule_shape_print(a, x, sizeof x), L->path, rule_shape_print(b, y, sizeof y), R->path);
    }
    p[i].aux = r;
    p[i].relation = "equal";
    if (!(p[i].term = rule_var(&s->arena, R->output[p[i].right].node))) return nomem(err);
    if (dist == 0) continue;
    /* A term that inserts or removes the sizes 1. */
    const rule_term *t = p[i].term;
    uint32_t rank = b->rank;
    const char *text = "right";
    for (uint32_t d = b->rank; d-- > 0 && t;)
      if (b->dim[d] == 1) {
        const rule_term *c[2] = {t, rule_int(&s->arena, d)};
        t = rule_op(&s->arena, "aten::squeeze.dim", c, 2);
        text = iso_arena_printf(&s->arena, "squeeze(%s, %u)", text, d);
        rank--;
      }
    for (uint32_t d = 0; d < a->rank && t; d++)
      if (a->dim[d] == 1) {
        const rule_term *c[2] = {t, rule_int(&s->arena, d)};
        t = rule_op(&s->arena, "aten::unsqueeze", c, 2);
        text = iso_arena_printf(&s->arena, "unsqueeze(%s, %u)", text, d);
        rank++;
      }
    if (!t || !text) return nomem(err);
    p[i].relation = text;
    p[i].term = t;
    iso_code c = st_add_term(s, t, s->map[RIGHT], &p[i].aux, err);
    if (!c) c = st_value(s, p[i].aux, err);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- the end: evidence, checks, report ---- */

static bool accept_step(void *ctx, const eg_step *step) {
  state *s = ctx;
  switch (step->why.kind) {
  case WHY_LEAF:
  case WHY_VALUE: return step->why.data < s->n_assume;
  case WHY_RULE: {
    if (step->why.data >= s->n_app) return false;
    const application *a = &s->app[step->why.data];
    const bool ends = (a->from.i == step->from.i && a->to.i == step->to.i) || (a->from.i == step->to.i && a->to.i == step->from.i);
    return ends && s->info[a->rule].verdict.status >= RULE_TESTED;
  }
  default: return false;
  }
}

static const char *step_text(state *s, const eg_step *x) {
  const char *why = x->why.kind == EG_WHY_CONGRUENCE ? "congruence"
                    : x->why.kind == WHY_RULE        ? rule_set_at(s->rules, s->app[x->why.data].rule)->name
                                                     : s->assume[x->why.data].kind;
  const char *from = eg_symbol_name(s->g, eg_node_symbol(s->g, x->from)), *to = eg_symbol_name(s->g, eg_node_symbol(s->g, x->to));
  return iso_arena_printf(&s->arena, "%s (%s) = %s (%s) by %s%s", st_any_id(s, x->from), from, st_any_id(s, x->to), to,
                          x->why.kind == WHY_RULE ? "rule " : "", why);
}

typedef struct pair_queue {
  premise *at;
  size_t n, cap;
} pair_queue;

/* Explain and check one equality; what its rules relied on is queued. A path in the proof forest never changes once it is
 * there, so that what a match relied on is explained by older merges only: the recursion ends. */
static iso_code explain_one(state *s, premise p, pair_queue *q, const char ***text, size_t *cap_text, rule_status *weakest, iso_error *err) {
  eg_step *step = NULL;
  size_t n = 0;
  bool ok = false;
  const char *why_not = NULL;
  iso_code c = eg_explain(s->g, p.a, p.b, &step, &n, err);
  if (!c) c = eg_proof_check(s->g, step, n, p.a, p.b, accept_step, s, &ok, &why_not, err);
  if (!c && !ok) c = iso_fail(err, ISO_INTERNAL, "the explanation does not hold: %s", why_not ? why_not : "no reason");
  for (size_t i = 0; i < n && !c; i++) {
    if (step[i].why.kind == WHY_RULE) {
      application *app = &s->app[step[i].why.data];
      rule_info *f = &s->info[app->rule];
      f->needed = true;
      if (f->verdict.status < *weakest) *weakest = f->verdict.status;
      if (app->seen) continue;
      app->seen = true;
      if (!iso_grow(q->at, q->cap, q->n + app->n)) c = nomem(err);
      for (size_t k = 0; k < app->n && !c; k++) q->at[q->n++] = s->prem[app->first + k];
    }
    const char *t = step_text(s, &step[i]);
    if (!t || !iso_grow(*text, *cap_text, s->res->n_steps + 1)) c = nomem(err);
    else (*text)[s->res->n_steps++] = t;
  }
  free(step);
  return c;
}

static iso_code explain(state *s, eg_node a, eg_node b, rule_status *weakest, iso_error *err) {
  pair_queue q = {0};
  const char **text = NULL;
  size_t cap = 0;
  const size_t before = s->res->n_steps;
  s->res->n_steps = 0;
  iso_code c = explain_one(s, (premise){a, b}, &q, &text, &cap, weakest, err);
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

/* Every class holds one value, one shape, one dtype: congruence merges included. */
static iso_code check_classes(state *s, iso_error *err) {
  for (uint32_t i = 0; i < s->n_rec; i++) {
    const eg_node e = {i};
    const rec *r = &s->rec[i];
    if (!r->tensor || !r->valued) continue;
    const eg_node rep = st_rep(s, eg_class_of(s->g, e));
    if (rep.i == i) continue;
    const rec *q = &s->rec[rep.i];
    if (!rule_shape_eq(&q->val[0]->shape, &r->val[0]->shape) || q->val[0]->dtype != r->val[0]->dtype)
      return iso_fail(err, ISO_INTERNAL, "\"%s\" and \"%s\" are in one class and differ in shape or dtype", st_any_id(s, rep), st_any_id(s, e));
    for (size_t d = 0; d < s->n_draws; d++) {
      if (q->val[d] == r->val[d]) continue;
      rule_diff df = s->oracle->compare(s->oracle->ctx, q->val[d], r->val[d], 10 * s->o->rel_tol);
      if (!df.equal)
        return iso_fail(err, ISO_INTERNAL, "\"%s\" and \"%s\" are in one class and differ by %.3g (relative)", st_any_id(s, rep),
                        st_any_id(s, e), df.max_rel);
      if (df.max_rel > s->res->largest_merged) s->res->largest_merged = df.max_rel;
    }
  }
  return ISO_OK;
}

static iso_code assume_inputs(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  char text[512];
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP) continue;
      const eg_node e = s->map[side][i];
      if (!s->rec[e.i].konst) continue;
      snprintf(text, sizeof text, "%s's %s keeps its captured value", side == LEFT ? "left" : "right", n->name);
      if (!st_assume(s, n->kind == SYNTH_INPUT ? "input" : "value", side == LEFT ? e : none, side == RIGHT ? e : none, NULL, text))
        return nomem(err);
    }
  if (!st_assume(s, "shape", none, none, NULL, "shown for the captured shapes and the captured branch")) return nomem(err);
  return ISO_OK;
}

static iso_code assume_casts(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind == SYNTH_OP || !rule_dtype_is_float(n->value[0]->dtype)) continue;
      if (st_assume(s, "dtype", none, none, NULL, "floating casts are identities: equality is over the real numbers, not over roundings"))
        return ISO_OK;
      return nomem(err);
    }
  return ISO_OK;
}

/* Kernels outside PyTorch mean what the reference kernels compute. */
static iso_code assume_kernels(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_OP || s->map[side][i].i == EG_NONE || strncmp(n->op, "aten::", 6) == 0 || strcmp(n->op, "getitem") == 0) continue;
      bool seen = false;
      for (size_t k = 0; k < i && !seen; k++) seen = strcmp(s->graph[side]->node[k].op ? s->graph[side]->node[k].op : "", n->op) == 0;
      for (size_t k = 0; side == RIGHT && k < s->graph[LEFT]->n_nodes && !seen; k++)
        seen = s->graph[LEFT]->node[k].op && strcmp(s->graph[LEFT]->node[k].op, n->op) == 0;
      if (seen) continue;
      char text[256];
      snprintf(text, sizeof text, "%s means what its reference kernel computes", n->op);
      const eg_node e = s->map[side][i];
      if (!st_assume(s, "definition", side == LEFT ? e : none, side == RIGHT ? e : none, NULL, text)) return nomem(err);
    }
  return ISO_OK;
}

static bool calls_one_of(const state *s, const char *const *op, size_t n) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *d = &s->graph[side]->node[i];
      if (d->kind != SYNTH_OP || s->map[side][i].i == EG_NONE) continue;
      for (size_t k = 0; k < n; k++) {
        const size_t len = strlen(op[k]);
        if (strncmp(d->op, op[k], len) == 0 && (d->op[len] == 0 || d->op[len] == '.')) return true;
      }
    }
  return false;
}

/* What equal elements leave open, and orders in which sums are taken. */
static iso_code assume_ties(state *s, iso_error *err) {
  static const char *const ties[] = {"aten::argmax", "aten::argmin", "aten::topk", "aten::sort", "aten::argsort", "aten::kthvalue", "aten::max.dim",
                                     "aten::min.dim", "aten::mode", "aten::median"};
  static const char *const sums[] = {"aten::index_add", "aten::scatter_add", "aten::scatter_reduce", "aten::index_reduce"};
  const eg_node none = {EG_NONE};
  if (calls_one_of(s, ties, sizeof ties / sizeof *ties) &&
      !st_assume(s, "ties", none, none, NULL, "an order among equal elements is left open: indices are compared where values differ"))
    return nomem(err);
  if (calls_one_of(s, sums, sizeof sums / sizeof *sums) && !st_assume(s, "order", none, none, NULL, "sums over unordered elements are equal up to their order"))
    return nomem(err);
  return ISO_OK;
}

/* Rules whose proof, or whose conditions, read a float literal as the real number it stands for say so. */
static iso_code assume_literals(state *s, iso_error *err) {
  const eg_node none = {EG_NONE};
  for (size_t i = 0; i < rule_set_count(s->rules); i++) {
    if (s->info[i].uses == 0 || !(s->info[i].read || strstr(s->info[i].verdict.method, "literals read"))) continue;
    char text[256];
    snprintf(text, sizeof text, "rule %s holds with its float literals read as the numbers they stand for", rule_set_at(s->rules, i)->name);
    if (!st_assume(s, "literal", none, none, NULL, text)) return nomem(err);
  }
  return ISO_OK;
}

static iso_code unexplained(state *s, bool *const live[2], iso_error *err) {
  size_t n = 0;
  struct synth_leaf_ref *ref = iso_arena_alloc(&s->res->arena, (s->graph[0]->n_nodes + s->graph[1]->n_nodes + 1) * sizeof *ref);
  if (!ref) return nomem(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *nd = &s->graph[side]->node[i];
      if (nd->kind == SYNTH_OP || !live[side][i] || s->rec[s->map[side][i].i].konst) continue;
      /* Explained: its class has a leaf or a term of the other side, or it occurs in the other side's definitions. */
      const eg_node e = s->map[side][i];
      const eg_node *m;
      bool other = has_side(s, e, !side) || !s->rec[e.i].atom;
      const size_t cnt = eg_class_parents(s->g, eg_class_of(s->g, e), &m);
      for (size_t k = 0; k < cnt && !other; k++) {
        eg_node p = m[k];
        for (int hop = 0; hop < 6 && !other; hop++) { /* cat(slice(leaf), ...) = a leaf of the other side */
          if (has_side(s, p, !side)) other = true;
          const eg_node *pp;
          if (s->rec[p.i].node[0] >= 0 || s->rec[p.i].node[1] >= 0) break;
          if (eg_class_parents(s->g, eg_class_of(s->g, p), &pp) == 0) break;
          p = pp[0];
        }
      }
      if (!other) ref[n++] = (struct synth_leaf_ref){side == RIGHT, (uint32_t)i};
    }
  s->res->unexplained = ref;
  s->res->n_unexplained = n;
  return ISO_OK;
}

static iso_code certify(state *s, const pairing *p, iso_error *err) {
  const size_t n = s->graph[LEFT]->n_outputs;
  if (!s->o->certificate || s->res->verdict != SYNTH_EQUIVALENT) return ISO_OK;
  eg_node *aux = calloc(n + 1, sizeof *aux);
  const rule_term **relation = calloc(n + 1, sizeof *relation);
  iso_code c = aux && relation ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++) aux[i] = p[i].aux, relation[i] = p[i].term;
  if (!c) c = st_certify(s, aux, relation, err);
  free(aux);
  free(relation);
  return c;
}

static uint32_t root(uint32_t *up, uint32_t i) {
  while (up[i] != i) i = up[i] = up[up[i]];
  return i;
}

/* Layouts that the comparison made (unsqueeze(x) on the way from one graph to the other) join the classes of both ends. */
static bool made_layout(const state *s, eg_node e) {
  static const char *const ops[] = {"aten::unsqueeze", "aten::squeeze.dim", "aten::reshape", "aten::transpose.int", "aten::permute", "aten::t"};
  const rec *r = &s->rec[e.i];
  const char *op = eg_symbol_name(s->g, eg_node_symbol(s->g, e));
  if (r->node[0] >= 0 || r->node[1] >= 0 || !r->tensor || eg_node_arity(s->g, e) == 0) return false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(op, ops[i]) == 0) return true;
  return false;
}

/* Which nodes ended in one class, up to layout. */
static iso_code publish_classes(state *s, iso_error *err) {
  const size_t all = s->res->n_classes = eg_count_added(s->g);
  uint32_t *up = malloc((all + 1) * sizeof *up);
  if (!up) return nomem(err);
  for (uint32_t i = 0; i < all; i++) up[i] = i;
  for (uint32_t i = 0; i < all; i++)
    if (made_layout(s, (eg_node){i})) up[root(up, eg_class_of(s->g, (eg_node){i}).i)] = root(up, eg_node_child(s->g, (eg_node){i}, 0).i);
  for (int side = 0; side < 2; side++) {
    const size_t n = s->graph[side]->n_nodes;
    uint32_t *of = iso_arena_alloc(&s->res->arena, (n + 1) * sizeof *of);
    if (!of) {
      free(up);
      return nomem(err);
    }
    for (size_t i = 0; i < n; i++) of[i] = s->map[side][i].i == EG_NONE ? UINT32_MAX : root(up, eg_class_of(s->g, s->map[side][i]).i);
    s->res->class_of[side] = of;
  }
  free(up);
  return ISO_OK;
}

static iso_code publish(state *s, iso_error *err) {
  synth_result *r = s->res;
  const size_t n = rule_set_count(s->rules);
  synth_rule_use *use = iso_arena_alloc(&r->arena, (n + 1) * sizeof *use);
  synth_assumption *as = iso_arena_alloc(&r->arena, (s->n_assume + 1) * sizeof *as);
  if (!use || !as) return nomem(err);
  for (size_t i = 0; i < n; i++) {
    if (s->info[i].verdict.status < RULE_TESTED || s->info[i].uses == 0) continue;
    use[r->n_rules++] = (synth_rule_use){rule_set_at(s->rules, i), s->info[i].verdict, s->info[i].uses, s->info[i].loaded, s->info[i].needed};
  }
  r->rule = use;
  for (size_t i = 0; i < s->n_assume; i++) {
    const synth_assumption *a = &s->assume[i];
    as[i] = (synth_assumption){a->kind, iso_arena_strdup(&r->arena, a->text), a->left, a->right,
                               a->relation ? iso_arena_strdup(&r->arena, a->relation) : NULL};
  }
  r->assumption = as;
  r->n_assumptions = s->n_assume;
  r->rules = s->rules;
  s->rules = NULL;
  return ISO_OK;
}

static void state_free(state *s) {
  for (size_t i = 0; i < s->n_rec; i++) {
    rec *r = &s->rec[i];
    for (size_t k = 0; r->val && k < s->n_draws * r->n_out; k++) rule_tensor_unref(r->val[k]);
    for (size_t k = 0; r->cval && k < r->n_out; k++) rule_tensor_unref(r->cval[k]);
    free(r->val);
    free(r->cval);
  }
  for (int side = 0; side < 2; side++) st_run_free(&s->witness[side]);
  for (size_t i = 0; i < s->n_group; i++) free(s->group[i].member);
  free(s->rec);
  free(s->group);
  free(s->literal);
  free(s->map[0]);
  free(s->map[1]);
  free(s->app);
  free(s->prem);
  free(s->info);
  free(s->tries);
  rule_set_free(s->tried);
  free(s->assume);
  free(s->peers);
  for (int side = 0; side < 2; side++) {
    free(s->replica[side]);
    free(s->part[side]);
  }
  for (int side = 0; side < 2; side++) free(s->first_peers[side]);
  rule_set_free(s->rules);
  eg_free(s->g);
  iso_arena_fini(&s->arena);
}

void synth_result_free(synth_result *r) {
  if (!r) return;
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; r->witness_leaf[side] && i < r->n_leaf[side]; i++) rule_tensor_unref(r->witness_leaf[side][i]);
    free(r->witness_leaf[side]);
    for (size_t i = 0; r->cut && i < r->cut->n_given[side]; i++) rule_tensor_unref(r->cut->value[side][i]);
  }
  rule_set_free(r->rules);
  iso_arena_fini(&r->arena);
  iso_arena_fini(&r->terms);
  free(r);
}

/* Evaluate every live e-node, left graph first. */
/* Our own copy of the nodes: masks' literals may be read as something else. */
static iso_code own_nodes(state *s, const synth_graph *g, synth_graph *copy, iso_error *err) {
  synth_node *node = iso_arena_alloc(&s->arena, (g->n_nodes + 1) * sizeof *node);
  if (!node) return nomem(err);
  memcpy(node, g->node, g->n_nodes * sizeof *node);
  *copy = *g;
  copy->node = node;
  return ISO_OK;
}

static iso_code evaluate(state *s, iso_error *err) {
  for (uint32_t i = 0; i < s->n_rec; i++) {
    rec *r = &s->rec[i];
    if (r->valued || !(r->tensor || r->multi) || (r->node[0] < 0 && r->node[1] < 0)) continue;
    const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
    const synth_node *n = &s->graph[side]->node[r->node[side]];
    iso_code c = st_value(s, (eg_node){i}, err);
    if (c) {
      iso_prefix(err, "%s: node \"%s\" (%s): ", s->graph[side]->path, n->id, n->op);
      return c;
    }
    if (s->o->progress && i % 64 == 0) s->o->progress(s->o->ctx, "execute", i, s->n_rec);
    if (st_stopped(s)) break;
  }
  return ISO_OK;
}

static bool outputs_met(state *s, const pairing *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!eg_equal(s->g, s->map[LEFT][s->graph[LEFT]->output[p[i].left].node], p[i].aux)) return false;
  return true;
}

static iso_code candidates(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  for (int pass = 0; pass < 3; pass++) {
    if (outputs_met(s, p, n_pairs)) break;
    const size_t merges = s->res->n_merges;
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
        const eg_node e = s->map[side][i];
        if (e.i == EG_NONE) continue;
        if (st_stopped(s)) return ISO_OK;
        if (pass && has_side(s, e, !side)) continue;
        iso_code c = visit(s, e, err);
        if (c) return c;
        if (s->o->progress && i % 16 == 0) s->o->progress(s->o->ctx, "synthesise", i, s->graph[side]->n_nodes);
      }
    if (s->res->n_merges == merges) break;
  }
  return ISO_OK;
}

static void note_witness(state *s, size_t output, rule_diff diff, bool redrawn) {
  synth_result *r = s->res;
  r->redrawn = redrawn;
  r->witness_output = s->graph[LEFT]->output[output].name;
  r->witness_abs = diff.max_abs;
  r->witness_rel = diff.max_rel;
  r->witness_seed = s->o->seed;
}

/* The verdict where some output is not joined: a witness decides. `apart`: draws on which the values differ. */
static iso_code seek_witness(state *s, const bool *apart, bool *differs, iso_error *err) {
  size_t output = 0;
  rule_diff diff = {0};
  iso_code c = ISO_OK;
  bool any = false;
  *differs = false;
  for (size_t d = 0; d < s->n_draws && !c && !*differs; d++) { /* captured draws come first */
    if (!apart[d]) continue;
    any = true;
    c = st_confirm(s, d, &output, &diff, differs, err);
    if (!c && *differs) note_witness(s, output, diff, d >= s->n_sets);
  }
  if (!c && !*differs && !st_stopped(s)) {
    c = st_hunt(s, &output, &diff, differs, err);
    if (!c && *differs) note_witness(s, output, diff, true);
  }
  if (!c && !*differs)
    s->res->reason = st_stopped(s) ? s->stopped
                     : any ? "the outputs differ, but not by more than rounding explains, and no justified rule joins them"
                           : "the outputs agree on every draw, but no justified rule joins them";
  return c;
}

static iso_code judge(state *s, pairing *p, iso_error *err) {
  synth_result *r = s->res;
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  synth_pair *pair = iso_arena_alloc(&r->arena, (L->n_outputs + 1) * sizeof *pair);
  bool *apart = calloc(s->n_draws + 1, 1);
  iso_code c = pair && apart ? ISO_OK : nomem(err);
  bool all = true, differs = false;
  r->evidence = RULE_PROVED;
  if (!c && !(s->right_of = iso_arena_alloc(&s->arena, (L->n_outputs + 1) * sizeof *s->right_of))) c = nomem(err);
  for (size_t i = 0; i < L->n_outputs && !c; i++) {
    s->right_of[p[i].left] = p[i].right;
    const eg_node l = s->map[LEFT][L->output[p[i].left].node];
    const char *name = L->output[p[i].left].name;
    bool equal_values = true;
    for (size_t d = 0; d < s->n_draws; d++)
      if (!s->oracle->compare(s->oracle->ctx, st_val(s, l, d), st_val(s, p[i].aux, d), s->o->rel_tol).equal) {
        equal_values = false;
        apart[d] = true;
      }
    bool done = eg_equal(s->g, l, p[i].aux);
    if (!done && equal_values && !st_stopped(s)) c = prove(s, l, p[i].aux, &done, err);
    if (!c && done && !equal_values) c = iso_fail(err, ISO_INTERNAL, "output \"%s\" was joined although its values differ", name);
    if (!c && done) c = explain(s, l, p[i].aux, &r->evidence, err);
    pair[i] = (synth_pair){name, R->output[p[i].right].name, p[i].relation, done};
    all &= done;
  }
  if (!c && !all) c = seek_witness(s, apart, &differs, err);
  free(apart);
  if (c) return c;
  r->pair = pair;
  r->n_pairs = L->n_outputs;
  r->verdict = all ? SYNTH_EQUIVALENT : differs ? SYNTH_DIFFERENT : SYNTH_UNDECIDED;
  if (all && s->o->require_proved && r->evidence < RULE_PROVED) {
    r->verdict = SYNTH_UNDECIDED;
    r->reason = "a rule on the chain is tested and not proved";
  }
  return ISO_OK;
}

/* The other side's node to show beside one: the same occurrence of its operator, else what the output is computed by. */
static int64_t beside(const synth_graph *g, int64_t node, const synth_graph *other) {
  size_t nth = 0;
  for (int64_t i = 0; i < node; i++) nth += g->node[i].kind == SYNTH_OP && strcmp(g->node[i].op, g->node[node].op) == 0;
  for (size_t i = 0; i < other->n_nodes; i++)
    if (other->node[i].kind == SYNTH_OP && strcmp(other->node[i].op, g->node[node].op) == 0 && nth-- == 0) return (int64_t)i;
  return other->n_outputs ? (int64_t)other->output[0].node : -1;
}

/* An operator that fails on one side only is a divergence at that place; on both sides it is an error. */
static iso_code fails_alone(state *s, bool *alone, iso_error *err) {
  iso_error was = *err;
  int side = 0;
  int64_t node = -1;
  iso_code c = s->g && s->map[LEFT] ? st_fails_alone(s, &side, &node, alone, err) : ISO_OK;
  if (c) return c;
  if (!*alone) {
    *err = was;
    return ISO_TORCH;
  }
  synth_result *r = s->res;
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  synth_divergence *d = iso_arena_alloc(&r->arena, sizeof *d);
  synth_pair *pair = iso_arena_alloc(&r->arena, (L->n_outputs + 1) * sizeof *pair);
  uint32_t *region = iso_arena_alloc(&r->arena, sizeof *region);
  if (!d || !pair || !region) return nomem(err);
  *region = (uint32_t)node;
  *d = (synth_divergence){.left = -1, .right = -1, .index = -1, .hint = r->reason};
  if (side == LEFT) d->left = node, d->left_region = region, d->n_left_region = 1;
  else d->right = node, d->right_region = region, d->n_right_region = 1;
  *(side == LEFT ? &d->right : &d->left) = beside(s->graph[side], node, s->graph[!side]);
  for (size_t i = 0; i < L->n_outputs && i < R->n_outputs; i++) pair[r->n_pairs++] = (synth_pair){L->output[i].name, R->output[i].name, "equal", false};
  r->pair = pair;
  r->divergence = d;
  r->n_divergences = 1;
  r->coverage.not_run[side] = node;
  r->verdict = SYNTH_DIFFERENT;
  r->reason = NULL;
  r->witness_output = L->n_outputs ? L->output[0].name : "";
  r->witness_abs = r->witness_rel = INFINITY;
  r->witness_seed = s->o->seed;
  return ISO_OK;
}

iso_code synth_compare(const synth_graph *left, const synth_graph *right, const rule_set *known, const rule_oracle *oracle,
                       rule_schemas *schemas, const synth_options *o, synth_result **out, iso_error *err) {
  synth_graph own[2];
  state st = {.graph = {left, right}, .oracle = oracle, .schemas = schemas, .o = o, .known = known, .bounded = {{EG_NONE}, {EG_NONE}}, .t0 = synth_clock()};
  state *s = &st;
  bool *live[2] = {NULL, NULL};
  synth_graph paired[2];
  iso_code c = st_pair_outputs(left, right, &s->arena, paired, err);
  if (c) {
    iso_arena_fini(&s->arena);
    return c;
  }
  for (int side = 0; side < 2; side++) s->graph[side] = &paired[side];
  pairing *p = calloc(paired[LEFT].n_outputs + 1, sizeof *p);
  s->n_sets = left->n_sets < right->n_sets ? left->n_sets : right->n_sets;
  s->n_draws = s->n_sets + o->n_redrawn;
  s->map[0] = calloc(left->n_nodes + 1, sizeof *s->map[0]);
  s->map[1] = calloc(right->n_nodes + 1, sizeof *s->map[1]);
  s->res = calloc(1, sizeof *s->res);
  c = p && s->map[0] && s->map[1] && s->res ? ISO_OK : nomem(err);
  if (s->res) s->res->coverage.not_run[LEFT] = s->res->coverage.not_run[RIGHT] = -1;
  if (!c) c = eg_new(NULL, &s->g, err);
  if (!c) c = rule_set_new(&s->rules, err);
  if (!c) c = rule_set_new(&s->tried, err);
  for (int side = 0; side < 2 && !c; side++) {
    if ((c = own_nodes(s, s->graph[side], &own[side], err))) break;
    s->given[side] = s->graph[side]->node;
    const synth_graph *g = s->graph[side] = &own[side];
    c = live_nodes(g, &live[side], err);
    for (size_t i = 0; i < g->n_nodes && !c; i++)
      if (live[side][i] || writes_in_place(&g->node[i])) c = refuse(s, g, &g->node[i], err);
    if (!c && rule_schemas_starved(schemas)) c = nomem(err); /* something was not looked at */
  }
  double t = synth_clock();
  if (!c) c = st_relate_leaves(s, (const bool *const *)live, err);
  for (int side = 0; side < 2 && !c; side++) c = st_add_graph(s, side, live[side], err);
  if (!c) c = eg_rebuild(s->g, err);
  if (!c) c = st_draw_leaves(s, err);
  if (!c) c = st_bound_indices(s, err);
  if (!c) c = st_relate_constants(s, err);
  if (!c) s->res->seconds_relate = synth_clock() - t;
  t = synth_clock();
  if (!c) c = evaluate(s, err);
  if (!c) c = st_check_unspecified(s, err);
  if (!c) s->res->seconds_execute = synth_clock() - t;
  t = synth_clock();
  bool alone = false;
  if (c == ISO_TORCH) c = fails_alone(s, &alone, err);
  if (alone) s->res->evidence = RULE_UNKNOWN;
  else if (!c && !st_stopped(s)) {
    c = pair_outputs(s, p, err);
    if (!c) c = st_find_peers(s, err);
    if (!c) c = candidates(s, p, s->graph[LEFT]->n_outputs, err);
    if (!c) c = check_classes(s, err);
    if (!c) c = judge(s, p, err);
    if (!c) c = certify(s, p, err);
    if (!c) s->res->seconds_synthesise = synth_clock() - t - s->res->seconds_validate;
    const bool kept = !c && o->keep_witness && s->res->verdict == SYNTH_DIFFERENT;
    if (kept) c = st_keep_witness(s, err);
    if (!c && (s->res->verdict == SYNTH_DIFFERENT || (s->res->verdict == SYNTH_UNDECIDED && !s->stopped))) c = st_divergences(s, err);
    if (!c && kept && o->shrink) c = st_shrink(s, err);
  } else if (!c) {
    s->res->verdict = SYNTH_UNDECIDED;
    s->res->reason = s->stopped;
  }
  if (!c) c = st_cover(s, (const bool *const *)live, err);
  if (!c) c = assume_inputs(s, err);
  if (!c) c = assume_casts(s, err);
  if (!c) c = assume_kernels(s, err);
  if (!c) c = assume_ties(s, err);
  if (!c) c = assume_literals(s, err);
  if (!c) c = unexplained(s, live, err);
  if (!c) c = publish_classes(s, err);
  if (!c) c = publish(s, err);
  if (c) synth_result_free(s->res);
  else {
    /* Texts and relations of the result point into it. */
    s->res->terms = s->arena;
    s->arena = (iso_arena){0};
    *out = s->res;
  }
  state_free(s);
  free(live[0]);
  free(live[1]);
  free(p);
  return c;
}
