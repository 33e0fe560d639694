/* One change that makes a divergence go away: the operator at fault, and its fault.
 *
 * Inside a region where the two sides are written differently, the first value without a
 * counterpart is not yet the faulty one. So every operator of the region is varied in the ways in
 * which programs go wrong (an attribute, another operator of its kind, arguments exchanged, left
 * out, added), the region runs on, and where its end takes the reference's value, that operator and
 * that change are the explanation ("mutation-based fault localisation", Papadakis and Le Traon,
 * 2015). It is a hint: no verdict rests on it. */
#include "localise/mutate.h"
#include "rules/operators.h"
#include "localise/localise_int.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAST = 300, MAX_WIDE = 500, SEEN = 8192 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

rule_tensor *rp_value(const st_run *r, uint32_t i) {
  return r->value[i].n == 1 ? r->value[i].v[0] : NULL;
}

bool rp_is_attribute(const rule_term *t) {
  return t->kind != RULE_VAR && t->kind != RULE_OP && t->kind != RULE_LIST;
}

const char *rp_show(repair *r, const rule_term *t) {
  char *text = rule_term_print(t, r->s->schemas, NULL);
  const char *kept = text ? iso_arena_strdup(&r->s->res->arena, text) : "?";
  free(text);
  return kept ? kept : "?";
}

const char *rp_argument_name(repair *r, const rule_term *call, uint32_t k) {
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  return sc && k < sc->n_args ? sc->arg[k].name : "an argument";
}

/* ---- trying ---- */

/* A constant that is computed anew is so in float64, not as captured: it is off by its storage's
 * rounding. */
static bool reaches_goal(repair *r, uint32_t n, const rule_tensor *v) {
  const bool konst = r->s->rec[r->s->map[r->task->side][n].i].konst;
  const double tol = konst ? fmax(r->s->o->rel_tol, fmin(1e-5, 1e-2 * r->apart)) : r->s->o->rel_tol;
  return v->numel == r->task->want->numel &&
         r->s->oracle->compare(r->s->oracle->ctx, r->task->want, v, tol).equal;
}

/* The same operator on the same arguments: written twice, changed as one. */
bool rp_twin(const repair *r, uint32_t n, uint32_t i) {
  const eg_node *map = r->s->map[r->task->side];
  return i == n || (!r->alone && map[i].i == map[n].i && r->g->node[i].kind == SYNTH_OP);
}

static void flag_after(repair *r, uint32_t n) {
  memset(r->again, 0, r->g->n_nodes + 1);
  for (uint32_t i = 0; i < r->g->n_nodes; i++)
    r->again[i] = rp_twin(r, n, i) || (r->to_goal[i] && r->g->node[i].kind == SYNTH_OP &&
                                       st_term_uses(r->g->node[i].call, r->again));
}

bool rp_spent(const repair *r) { return r->tries >= RP_MAX_TRIES || r->work >= r->most; }

/* Run from node `n` on with the values in r->instead and the calls in r->call. */
static iso_code run_on(repair *r, uint32_t n, iso_error *err) {
  rule_tensor *v;
  const st_carry with = {
      .from = r->task->run, .again = r->again, .value = r->instead, .call = r->call};
  iso_code c = st_run_to(r->s, r->task->side, &with, r->task->goal, &v, &r->work, err);
  if (c) return c == ISO_NOMEM ? c : ISO_OK;
  if (reaches_goal(r, n, v)) {
    r->found = true;
    r->node = n;
  }
  rule_tensor_unref(v);
  return ISO_OK;
}

/* It alone; then its twins changed as it is. */
iso_code rp_try_values(repair *r, uint32_t n, iso_error *err) {
  bool any = false;
  for (uint32_t i = 0; i < r->g->n_nodes && !any; i++)
    any = i != n && r->instead[n] && rp_twin(r, n, i) && !r->instead[i];
  if (!any) return run_on(r, n, err);
  r->alone = true;
  flag_after(r, n);
  iso_code c = run_on(r, n, err);
  r->alone = false;
  flag_after(r, n);
  if (c || r->found) return c;
  for (uint32_t i = 0; i < r->g->n_nodes; i++)
    if (i != n && rp_twin(r, n, i) && !r->instead[i])
      r->instead[i] = rule_tensor_ref(r->instead[n]);
  c = run_on(r, n, err);
  for (uint32_t i = 0; i < r->g->n_nodes && !r->found; i++)
    if (i != n && rp_twin(r, n, i) && r->instead[i] == r->instead[n])
      rule_tensor_unref(r->instead[i]), r->instead[i] = NULL;
  return c;
}

/* The results of the changed nodes are kept as their values. */
static iso_code keep_values(repair *r, iso_error *err) {
  const st_carry with = {
      .from = r->task->run, .again = r->again, .value = r->instead, .call = r->call};
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < r->g->n_nodes && !c; i++) {
    if (!r->call[i]) continue;
    rule_tensor *v;
    if ((c = st_run_to(r->s, r->task->side, &with, i, &v, NULL, err))) break;
    r->instead[i] = v;
  }
  return c == ISO_NOMEM ? c : ISO_OK;
}

iso_code rp_try_calls(repair *r, uint32_t first, iso_error *err) {
  if (r->found || rp_spent(r)) return ISO_OK;
  r->tries++;
  for (uint32_t i = 0; i < r->g->n_nodes; i++)
    r->again[i] = r->call[i] || (r->to_goal[i] && r->g->node[i].kind == SYNTH_OP &&
                                 st_term_uses(r->g->node[i].call, r->again));
  iso_code c = run_on(r, first, err);
  return !c && r->found ? keep_values(r, err) : c;
}

static bool could_stand(const rule_tensor *v, const rule_tensor *old) {
  return rule_shape_eq(&v->shape, &old->shape) &&
         rule_dtype_is_float(v->dtype) == rule_dtype_is_float(old->dtype);
}

/* Several outputs: readers of one of them read the new one. */
static iso_code try_outputs(repair *r, uint32_t n, rule_tensor **out, size_t n_out,
                            iso_error *err) {
  bool fits = n_out == r->g->node[n].n_outputs, differs = false;
  for (uint32_t m = n + 1; m < r->g->n_nodes && fits; m++) {
    const rule_term *o = r->g->node[m].call;
    if (r->g->node[m].kind != SYNTH_OP || !rule_is_getitem(o->u.s) || o->child[0]->u.i != n)
      continue;
    const rule_tensor *old = rp_value(r->task->run, m);
    rule_tensor *v = out[o->child[1]->u.i];
    fits = old && could_stand(v, old);
    if (!fits || rule_tensor_same(v, old)) continue;
    differs = true;
    r->instead[m] = rule_tensor_ref(v);
  }
  iso_code c = fits && differs ? rp_try_values(r, n, err) : ISO_OK;
  for (uint32_t m = n + 1; m < r->g->n_nodes && !r->found; m++) {
    rule_tensor_unref(r->instead[m]);
    r->instead[m] = NULL;
  }
  return c;
}

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ (h >> 29);
}

static uint64_t term_hash(uint64_t h, const rule_term *t) {
  h = mix(h, (uint64_t)t->kind * 64 + t->n);
  if (t->kind == RULE_OP || t->kind == RULE_STRING)
    for (const char *p = t->u.s; *p; p++) h = mix(h, (uint64_t)(unsigned char)*p);
  else if (t->kind == RULE_FLOAT) {
    uint64_t bits;
    memcpy(&bits, &t->u.f, sizeof bits);
    h = mix(h, bits);
  } else if (t->kind != RULE_LIST && t->kind != RULE_NONE) h = mix(h, (uint64_t)t->u.i);
  for (uint32_t k = 0; k < t->n; k++) h = term_hash(h, t->child[k]);
  return h;
}

/* Several ways lead to one call, which is tried once. Operands that are no nodes of this graph are
 * identified by their values. */
static bool tried(repair *r, uint32_t n, const rule_term *call) {
  uint64_t h = term_hash(mix(1, n), call);
  for (size_t i = r->g->n_nodes; i < r->g->n_nodes + 16; i++)
    h = mix(h, (uint64_t)(uintptr_t)r->bind[i]);
  if (h == 0) h = 1;
  size_t at = h % SEEN, left = SEEN;
  while (r->seen[at] && r->seen[at] != h && --left) at = (at + 1) % SEEN;
  const bool was = r->seen[at] == h;
  if (!was && left) r->seen[at] = h;
  return was;
}

/* Node `n` computed by `call` instead. */
iso_code rp_try_call(repair *r, uint32_t n, const rule_term *call, iso_error *err) {
  const rule_tensor *old = rp_value(r->task->run, n);
  const bool several = r->g->node[n].n_outputs > 1;
  rule_tensor *out[MAX_OUT];
  size_t n_out = 0;
  if (!call) return nomem(err);
  if (r->found || !(old || several) || rp_spent(r) || rule_draws(r->s->schemas, call) ||
      tried(r, n, call))
    return ISO_OK;
  r->tries++;
  r->work += st_work(r->g->node[n].call, r->task->run, n);
  iso_error ignored;
  iso_code c =
      r->s->oracle->call(r->s->oracle->ctx, call, r->bind, true, out, MAX_OUT, &n_out, &ignored);
  if (c) return c == ISO_NOMEM ? nomem(err) : ISO_OK;
  if (several) c = try_outputs(r, n, out, n_out, err);
  else if (n_out == 1 && could_stand(out[0], old) && !rule_tensor_same(out[0], old)) {
    r->instead[n] = out[0];
    c = rp_try_values(r, n, err);
    if (!r->found) r->instead[n] = NULL;
    else out[0] = rule_tensor_ref(out[0]);
  }
  for (size_t k = 0; k < n_out; k++) rule_tensor_unref(out[k]);
  return c;
}

const rule_term *rp_with_child(repair *r, const rule_term *call, uint32_t k, const rule_term *to) {
  const rule_term **child = iso_arena_alloc(&r->arena, (call->n + 1) * sizeof *child);
  if (!child) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[k] = to;
  return rule_op(&r->arena, call->u.s, child, call->n);
}

/* The changes of each kind, the likeliest first. */
static const rp_variation TIERS[][20] = {
    [LO_TWIN] = {rp_added_number, rp_seen_attributes, rp_parts_exchanged, rp_other_part,
                 rp_optional_attributes, rp_exchanged, rp_likely_attributes, rp_filled,
                 rp_other_operators, rp_like_a_sibling, rp_permuted, rp_viewed, rp_repeated,
                 rp_left_out, rp_halves, rp_added, rp_other_tensors},
    [LO_OPTIONAL] = {rp_optional_attributes},
    [LO_ODD] = {rp_added_number, rp_seen_attributes, rp_parts_exchanged},
    [LO_OF_ONE] = {rp_seen_attributes, rp_other_part, rp_optional_attributes, rp_exchanged,
                   rp_likely_attributes, rp_filled, rp_other_operators, rp_like_a_sibling,
                   rp_permuted, rp_viewed, rp_repeated},
    [LO_LOOSE] = {rp_rows_exchanged, rp_left_out, rp_halves, rp_alike, rp_added, rp_other_tensors},
    [LO_WITHOUT] = {rp_left_out}};

/* Owns: finish, also after an error. */
static iso_code begin(repair *r, state *s, const lo_repair_task *task, iso_error *err) {
  *r = (repair){.s = s,
                .task = task,
                .g = s->graph[task->side],
                .other = s->graph[!task->side],
                .missing = -1,
                .operand = -1,
                .leaf = -1};
  iso_arena_init(&r->arena);
  r->most = s->work_left / 4;
  const rule_tensor *now = rp_value(task->run, task->goal);
  if (now && now->numel == task->want->numel)
    r->apart = s->oracle->compare(s->oracle->ctx, task->want, now, s->o->rel_tol).max_rel;
  const size_t n = r->g->n_nodes;
  r->bind = calloc(n + 16, sizeof *r->bind);
  r->instead = calloc(n + 1, sizeof *r->instead);
  r->call = calloc(n + 1, sizeof *r->call);
  r->again = calloc(n + 1, 1);
  r->seen = calloc(SEEN, sizeof *r->seen);
  r->to_goal = calloc(n + 1, 1);
  if (!r->bind || !r->instead || !r->call || !r->again || !r->seen || !r->to_goal)
    return nomem(err);
  r->to_goal[task->goal] = true;
  for (uint32_t i = task->goal + 1; i-- > 0;) {
    if (task->settled[i] && i != task->goal) r->to_goal[i] = false;
    if (r->to_goal[i] && r->g->node[i].kind == SYNTH_OP)
      st_term_mark(r->g->node[i].call, r->to_goal);
  }
  for (uint32_t i = 0; i < n; i++)
    r->bind[i] = task->run->value[i].n ? task->run->value[i].v[0] : NULL;
  return ISO_OK;
}

static void finish(repair *r) {
  state *s = r->s;
  s->work_left -= r->work < s->work_left ? r->work : s->work_left;
  for (size_t i = 0; r->instead && i < r->g->n_nodes; i++) rule_tensor_unref(r->instead[i]);
  free(r->bind);
  free(r->instead);
  free(r->call);
  free(r->again);
  free(r->seen);
  free(r->to_goal);
  iso_arena_fini(&r->arena);
}

/* Every suspect in every way, phase after phase: tiers first, then suspects. */
static iso_code vary(repair *r, iso_error *err) {
  const lo_repair_task *task = r->task;
  const rp_variation *const tier = TIERS[task->changes];
  iso_code c = ISO_OK;
  if (task->changes <= LO_ODD && task->changes >= LO_TWIN)
    for (size_t k = 0; k < task->n_earlier && !c && !r->found; k++)
      if (task->earlier[k].side == task->side) c = rp_earlier(r, &task->earlier[k], err);
  for (size_t first = 0, p = 0; p < LO_PHASES && !c && !r->found; first += task->n_suspects[p++]) {
    if (p == LO_PHASES - 2 && r->tries > RP_MAX_TRIES - MAX_WIDE)
      r->tries = RP_MAX_TRIES - MAX_WIDE; /* something is left for what the region reads */
    if (p == LO_PHASES - 1)
      r->tries = r->tries > MAX_LAST ? r->tries - MAX_LAST : 0; /* something is left for the last */
    for (size_t t = 0; tier[t] && !c && !r->found; t++)
      for (size_t k = 0; k < task->n_suspects[p] && !c && !r->found; k++) {
        const uint32_t i = task->suspect[first + k];
        if (r->g->node[i].kind != SYNTH_OP || !r->to_goal[i]) continue;
        flag_after(r, i);
        c = tier[t](r, i, err);
      }
  }
  return c;
}

/* A step of arithmetic that an attribute was found to undo (alpha 0, a factor 1) is one too much.
 */
static void reword(repair *r) {
  const rule_term *call = r->g->node[r->node].call;
  if (rule_operator_of(call->u.s)->arithmetic == RULE_ARITHMETIC_NONE || !r->instead[r->node])
    return;
  for (uint32_t k = 0; k < call->n; k++) {
    const rule_term *a = call->child[k];
    const rule_tensor *v = a->kind == RULE_VAR ? rp_value(r->task->run, (uint32_t)a->u.i) : NULL;
    if (!v || !rule_tensor_same(v, r->instead[r->node])) continue;
    r->what = rp_too_much(r, call, k);
    return;
  }
}

iso_code lo_repair(state *s, const lo_repair_task *task, lo_repair_result *out, iso_error *err) {
  repair r;
  *out = (lo_repair_result){0};
  iso_code c = begin(&r, s, task, err);
  if (!c) c = vary(&r, err);
  if (!c && r.found) {
    reword(&r);
    *out = (lo_repair_result){.found = true,
                              .node = r.node,
                              .what = r.what,
                              .change = r.change,
                              .instead = r.instead,
                              .missing = r.missing,
                              .operand = r.operand,
                              .leaf = r.leaf};
    r.instead = NULL;
    lo_change *g = &out->change;
    g->side = task->side;
    if (g->op) g->op = iso_arena_strdup(&s->arena, g->op);
    if (g->from) g->from = rule_term_copy(&s->arena, g->from);
    if (g->to) g->to = rule_term_copy(&s->arena, g->to);
    if ((r.change.from && !g->from) || (r.change.to && !g->to)) g->op = NULL; /* not kept */
  }
  finish(&r);
  return c;
}
