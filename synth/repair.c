/* One change that makes a divergence go away: which operator it was, and what is wrong with it.
 *
 * Inside a region where the two sides are written differently, the first value without a counterpart is not yet the
 * faulty one. So every operator of the region is varied in the ways in which programs go wrong (an attribute, another
 * operator of its kind, arguments exchanged, left out, added), the region runs on, and where its end takes the
 * reference's value, that operator and that change are the explanation ("mutation-based fault localisation",
 * Papadakis and Le Traon, 2015). It is a hint: no verdict rests on it. */
#include "synth/synth_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 1500, MAX_LAST = 300, MAX_WIDE = 500, MAX_POOL = 24, MAX_NEAR = 16, SEEN = 8192 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct repair {
  state *s;
  const st_repair_task *task;
  const synth_graph *g, *other;
  rule_tensor **bind;      /* by node, then extra values */
  rule_tensor **instead;   /* by node: the value tried */
  bool *again;
  bool *to_goal;           /* ancestors of the goal, itself included */
  iso_arena arena;
  size_t tries;
  double apart;            /* how far the goal is from what it should be */
  const char *what;        /* the explanation of the try under way */
  uint64_t *seen;          /* hashes of the calls that were tried, by node: a table of SEEN */
  bool alone;              /* twins of a node are left as they are */
  bool found;
  uint32_t node;           /* where it was found */
  int64_t missing;         /* the operator of the other side that it lacks, -1 */
  int64_t operand, leaf;   /* the operand that another should stand for, and which leaf of the other side; -1: not so */
} repair;

static rule_tensor *value(const st_run *r, uint32_t i) { return r->value[i].n == 1 ? r->value[i].v[0] : NULL; }

static bool is_float(const rule_term *t) { return t->kind == RULE_FLOAT; }
static bool is_number(const rule_term *t) { return t->kind == RULE_FLOAT || t->kind == RULE_INT; }
static bool is_attribute(const rule_term *t) { return t->kind != RULE_VAR && t->kind != RULE_OP && t->kind != RULE_LIST; }

static const char *show(repair *r, const rule_term *t) {
  char *text = rule_term_print(t, r->s->schemas, NULL);
  const char *kept = text ? iso_arena_strdup(&r->s->res->arena, text) : "?";
  free(text);
  return kept ? kept : "?";
}

static const char *argument_name(repair *r, const rule_term *call, uint32_t k) {
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  return sc && k < sc->n_args ? sc->arg[k].name : "an argument";
}

/* ---- trying ---- */

/* A constant that is computed anew is so in float64, not as captured: it is off by its storage's rounding. */
static bool reaches_goal(repair *r, uint32_t n, const rule_tensor *v) {
  const bool konst = r->s->rec[r->s->map[r->task->side][n].i].konst;
  const double tol = konst ? fmax(r->s->o->rel_tol, fmin(1e-5, 1e-2 * r->apart)) : r->s->o->rel_tol;
  return v->numel == r->task->want->numel && r->s->oracle->compare(r->s->oracle->ctx, r->task->want, v, tol).equal;
}

/* The same operator on the same arguments: written twice, changed as one. */
static bool twin(const repair *r, uint32_t n, uint32_t i) {
  const eg_node *map = r->s->map[r->task->side];
  return i == n || (!r->alone && map[i].i == map[n].i && r->g->node[i].kind == SYNTH_OP);
}

static void flag_after(repair *r, uint32_t n) {
  memset(r->again, 0, r->g->n_nodes + 1);
  for (uint32_t i = 0; i < r->g->n_nodes; i++)
    r->again[i] = twin(r, n, i) || (r->to_goal[i] && r->g->node[i].kind == SYNTH_OP && st_term_uses(r->g->node[i].call, r->again));
}

/* Run from node `n` on with the values in r->instead. */
static iso_code run_on(repair *r, uint32_t n, iso_error *err) {
  rule_tensor *v;
  const st_carry with = {.from = r->task->run, .again = r->again, .value = r->instead};
  iso_code c = st_run_to(r->s, r->task->side, &with, r->task->goal, &v, err);
  if (c) return c == ISO_NOMEM ? c : ISO_OK;
  if (reaches_goal(r, n, v)) {
    r->found = true;
    r->node = n;
  }
  rule_tensor_unref(v);
  return ISO_OK;
}

/* The same, its twins changed as it is; then it alone. */
static iso_code try_values(repair *r, uint32_t n, iso_error *err) {
  bool any = false;
  for (uint32_t i = 0; i < r->g->n_nodes; i++)
    if (i != n && r->instead[n] && twin(r, n, i) && !r->instead[i]) r->instead[i] = rule_tensor_ref(r->instead[n]), any = true;
  iso_code c = run_on(r, n, err);
  if (r->found || !any) return c;
  for (uint32_t i = 0; i < r->g->n_nodes; i++)
    if (i != n && twin(r, n, i) && r->instead[i] == r->instead[n]) rule_tensor_unref(r->instead[i]), r->instead[i] = NULL;
  if (c) return c;
  r->alone = true;
  flag_after(r, n);
  c = run_on(r, n, err);
  r->alone = false;
  flag_after(r, n);
  return c;
}

static bool could_stand(const rule_tensor *v, const rule_tensor *old) {
  return rule_shape_eq(&v->shape, &old->shape) && rule_dtype_is_float(v->dtype) == rule_dtype_is_float(old->dtype);
}

/* Several outputs: what takes one of them takes the new one. */
static iso_code try_outputs(repair *r, uint32_t n, rule_tensor **out, size_t n_out, iso_error *err) {
  bool fits = n_out == r->g->node[n].n_outputs, differs = false;
  for (uint32_t m = n + 1; m < r->g->n_nodes && fits; m++) {
    const rule_term *o = r->g->node[m].call;
    if (r->g->node[m].kind != SYNTH_OP || strcmp(o->u.s, "getitem") != 0 || o->child[0]->u.i != n) continue;
    const rule_tensor *old = value(r->task->run, m);
    rule_tensor *v = out[o->child[1]->u.i];
    fits = old && could_stand(v, old);
    if (!fits || rule_tensor_same(v, old)) continue;
    differs = true;
    r->instead[m] = rule_tensor_ref(v);
  }
  iso_code c = fits && differs ? try_values(r, n, err) : ISO_OK;
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

/* Several ways lead to one call: it is tried once. What a call reads besides nodes of its own graph is told by its value. */
static bool tried(repair *r, uint32_t n, const rule_term *call) {
  uint64_t h = term_hash(mix(1, n), call);
  for (size_t i = r->g->n_nodes; i < r->g->n_nodes + 16; i++) h = mix(h, (uint64_t)(uintptr_t)r->bind[i]);
  if (h == 0) h = 1;
  size_t at = h % SEEN, left = SEEN;
  while (r->seen[at] && r->seen[at] != h && --left) at = (at + 1) % SEEN;
  const bool was = r->seen[at] == h;
  if (!was && left) r->seen[at] = h;
  return was;
}

/* Node `n` computed by `call` instead. */
static iso_code try_call(repair *r, uint32_t n, const rule_term *call, iso_error *err) {
  const rule_tensor *old = value(r->task->run, n);
  const bool several = r->g->node[n].n_outputs > 1;
  rule_tensor *out[MAX_OUT];
  size_t n_out = 0;
  if (!call) return nomem(err);
  if (r->found || !(old || several) || r->tries >= MAX_TRIES || rule_draws(r->s->schemas, call) || tried(r, n, call)) return ISO_OK;
  r->tries++;
  iso_error ignored;
  iso_code c = r->s->oracle->call(r->s->oracle->ctx, call, r->bind, true, out, MAX_OUT, &n_out, &ignored);
  if (c) return c == ISO_NOMEM ? nomem(err) : ISO_OK;
  if (several) c = try_outputs(r, n, out, n_out, err);
  else if (n_out == 1 && could_stand(out[0], old) && !rule_tensor_same(out[0], old)) {
    r->instead[n] = out[0];
    c = try_values(r, n, err);
    if (!r->found) r->instead[n] = NULL;
    else out[0] = rule_tensor_ref(out[0]);
  }
  for (size_t k = 0; k < n_out; k++) rule_tensor_unref(out[k]);
  return c;
}

static const rule_term *with_child(repair *r, const rule_term *call, uint32_t k, const rule_term *to) {
  const rule_term **child = iso_arena_alloc(&r->arena, (call->n + 1) * sizeof *child);
  if (!child) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[k] = to;
  return rule_op(&r->arena, call->u.s, child, call->n);
}

/* ---- the ways in which an operator can be wrong ---- */

/* Attributes that stand elsewhere: at calls of the same operator, and at whatever the other side has in the region. */
static size_t attribute_pool(repair *r, const rule_term *call, uint32_t k, const rule_term **pool) {
  const rule_term *now = call->child[k];
  const bool real = call->n > 0 && call->child[0]->kind == RULE_VAR && rule_dtype_is_float(r->g->node[call->child[0]->u.i].dtype);
  size_t n = 0;
  for (int pass = 0; pass < 2; pass++) {
    const synth_graph *g = pass ? r->g : r->other;
    for (uint32_t i = 0; i < g->n_nodes && n < MAX_POOL; i++) {
      const rule_term *c = g->node[i].call;
      if (g->node[i].kind != SYNTH_OP || !c) continue;
      const bool same_op = strcmp(c->u.s, call->u.s) == 0 && c->n == call->n, near = !pass && r->task->other_region[i];
      for (uint32_t j = 0; j < c->n && n < MAX_POOL; j++) {
        const rule_term *a = c->child[j];
        if (!is_attribute(a) || rule_term_eq(a, now)) continue;
        if (!(same_op && j == k) && !(near && real && is_float(a) && is_number(now))) continue;
        bool seen = false;
        for (size_t q = 0; q < n && !seen; q++) seen = rule_term_eq(pool[q], a);
        if (!seen) pool[n++] = a;
      }
    }
  }
  return n;
}

/* Real numbers in the other side's region. */
static size_t floats_beside(const repair *r, const rule_term **pool) {
  size_t n = 0;
  for (uint32_t i = 0; i < r->other->n_nodes && n < MAX_POOL; i++) {
    const rule_term *c = r->other->node[i].kind == SYNTH_OP && r->task->other_region[i] ? r->other->node[i].call : NULL;
    for (uint32_t j = 0; c && j < c->n && n < MAX_POOL; j++) {
      bool seen = !is_float(c->child[j]);
      for (size_t q = 0; q < n && !seen; q++) seen = rule_term_eq(pool[q], c->child[j]);
      if (!seen) pool[n++] = c->child[j];
    }
  }
  return n;
}

static iso_code try_attribute(repair *r, uint32_t n, const rule_term *call, uint32_t k, const rule_term *to, iso_error *err) {
  if (r->found || rule_term_eq(call->child[k], to)) return ISO_OK;
  iso_code c = try_call(r, n, with_child(r, call, k, to), err);
  if (!c && r->found)
    r->what = iso_arena_printf(&r->s->res->arena, "%s is %s, and would have to be %s", argument_name(r, call, k), show(r, call->child[k]), show(r, to));
  return c;
}

/* Both bounds of a slice, or of a range, that are off by one; `to_zero`: so that it begins at the beginning, as most do; else the others. */
static iso_code shifted_bounds(repair *r, uint32_t n, bool to_zero, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const bool slice = strncmp(call->u.s, "aten::slice", 11) == 0, range = strncmp(call->u.s, "aten::arange.start", 18) == 0;
  const uint32_t k = slice ? 2 : 0;
  if (!(slice || range) || call->n < k + 2 || call->child[k]->kind != RULE_INT || call->child[k + 1]->kind != RULE_INT) return ISO_OK;
  iso_code c = ISO_OK;
  for (int64_t by = -1; by <= 1 && !c && !r->found; by += 2) {
    if (to_zero != (call->child[k]->u.i + by == 0)) continue;
    const rule_term *start = rule_int(&r->arena, call->child[k]->u.i + by), *end = rule_int(&r->arena, call->child[k + 1]->u.i + by);
    const rule_term *t = start && end ? with_child(r, call, k, start) : NULL;
    c = try_call(r, n, t ? with_child(r, t, k + 1, end) : NULL, err);
    if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "\"%s\" begins one too %s", r->g->node[n].id, by > 0 ? "early" : "late");
  }
  return c;
}

/* Another call of the operator in the same graph has this attribute. */
static bool usual(const repair *r, uint32_t n, uint32_t k) {
  const rule_term *call = r->g->node[n].call;
  for (uint32_t i = 0; i < r->g->n_nodes; i++) {
    const rule_term *c = r->g->node[i].call;
    if (i != n && r->g->node[i].kind == SYNTH_OP && !twin(r, n, i) && strcmp(c->u.s, call->u.s) == 0 && c->n == call->n && rule_term_eq(c->child[k], call->child[k]))
      return true;
  }
  return false;
}

static bool can_vary(const rule_term *t) { return is_attribute(t) && t->kind != RULE_DTYPE; }

/* Attributes as they stand elsewhere. */
static iso_code seen_attributes(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    const rule_term *now = call->child[k], *pool[MAX_POOL];
    if (!can_vary(now) || (r->task->changes == ST_ODD && usual(r, n, k))) continue;
    const size_t n_pool = attribute_pool(r, call, k, pool);
    for (size_t q = 0; q < n_pool && !c; q++) c = try_attribute(r, n, call, k, pool[q], err);
    if (!c && now->kind == RULE_BOOLEAN) c = try_attribute(r, n, call, k, rule_bool(&r->arena, !now->u.i), err);
  }
  return c || r->found ? c : shifted_bounds(r, n, true, err);
}

/* A whole number that is added: whatever it is, without it. Two ranges of which one was shifted are as well mended by shifting the other. */
static iso_code added_number(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  static const char *const ops[] = {"aten::add.Tensor", "aten::sub.Tensor", "aten::add.Scalar", "aten::sub.Scalar"};
  bool adds = call->n > 1 && call->child[1]->kind == RULE_INT && call->child[1]->u.i != 0, of = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) of |= strcmp(call->u.s, ops[i]) == 0;
  adds &= of && call->child[0]->kind == RULE_VAR && rule_dtype_is_int(r->g->node[call->child[0]->u.i].dtype);
  return adds ? try_attribute(r, n, call, 1, rule_int(&r->arena, 0), err) : ISO_OK;
}

/* Attributes that are likely: beside the present one, small, given by a size. */
static iso_code likely_attributes(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    const rule_term *now = call->child[k];
    if (!can_vary(now)) continue;
    for (int64_t by = -1; by <= 1 && now->kind == RULE_INT && !c; by += 2) c = try_attribute(r, n, call, k, rule_int(&r->arena, now->u.i + by), err);
    if (now->kind == RULE_INT)
      for (int64_t d = -2; d <= 4 && !c; d++)
        if (llabs(now->u.i) <= 8) c = try_attribute(r, n, call, k, rule_int(&r->arena, d), err);
    if (is_float(now) || (now->kind == RULE_NONE && strcmp(argument_name(r, call, k), "scale") == 0)) {
      const rule_tensor *v = value(r->task->run, n);
      for (uint32_t d = 0; v && d < v->shape.rank && !c; d++) /* scales that a size gives */
        for (int form = 0; form < 3 && !c; form++) {
          const double size = (double)v->shape.dim[d], x = form == 0 ? 1 / sqrt(size) : form == 1 ? 1 / size : sqrt(size);
          if (size > 1) c = try_attribute(r, n, call, k, rule_float(&r->arena, x), err);
        }
      if (!c) c = try_attribute(r, n, call, k, rule_float(&r->arena, 1), err);
    }
  }
  return c || r->found ? c : shifted_bounds(r, n, false, err);
}

static bool holds_tensors(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t k = 0; k < t->n; k++)
    if (holds_tensors(t->child[k])) return true;
  return false;
}

enum { MAX_WINDOW = 16 };

/* What may be left out, and is given; or is not, and the other side has it: a window, a cap, slopes. */
static iso_code optional_attributes(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *pool[MAX_POOL];
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  iso_code c = ISO_OK;
  if (!sc || strncmp(call->u.s, "aten::slice", 11) == 0) return ISO_OK;
  for (uint32_t k = 0; k < call->n && k < sc->n_args && !c && !r->found; k++) {
    const rule_arg_type type = sc->arg[k].type;
    const bool real = type == RULE_ARG_FLOAT || type == RULE_ARG_SCALAR;
    if (!sc->arg[k].optional || holds_tensors(call->child[k]) || type == RULE_ARG_CONTEXT || type == RULE_ARG_DTYPE) continue;
    if (call->child[k]->kind != RULE_NONE) c = try_attribute(r, n, call, k, rule_none(&r->arena), err);
    else if (type == RULE_ARG_INT)
      for (int64_t d = 1; d <= MAX_WINDOW && !c; d++) c = try_attribute(r, n, call, k, rule_int(&r->arena, d), err);
    const size_t n_pool = !c && real && call->child[k]->kind == RULE_NONE ? floats_beside(r, pool) : 0;
    for (size_t q = 0; q < n_pool && !c; q++) c = try_attribute(r, n, call, k, pool[q], err);
  }
  return c;
}

/* All attributes at once as another call of the operator has them (both ends of a slice). */
static iso_code like_a_sibling(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  size_t tried = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < (pass ? r->other : r->g)->n_nodes && !c && !r->found && tried < MAX_NEAR; i++) {
      const synth_node *m = &(pass ? r->other : r->g)->node[i];
      if (m->kind != SYNTH_OP || strcmp(m->call->u.s, call->u.s) != 0 || m->call->n != call->n) continue;
      const rule_term **child = iso_arena_alloc(&r->arena, (call->n + 1) * sizeof *child);
      if (!child) return nomem(err);
      uint32_t changes = 0;
      bool fits = true;
      for (uint32_t k = 0; k < call->n; k++) {
        child[k] = call->child[k];
        fits &= is_attribute(child[k]) == is_attribute(m->call->child[k]);
        if (!fits || !is_attribute(child[k]) || rule_term_eq(child[k], m->call->child[k])) continue;
        child[k] = m->call->child[k];
        changes++;
      }
      if (!fits || changes < 2) continue;
      tried++;
      c = try_call(r, n, rule_op(&r->arena, call->u.s, child, call->n), err);
      if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "its attributes would have to be those of \"%s\"", m->id);
    }
  return c;
}

static const char *const families[][8] = {
    {"aten::sin", "aten::cos"}, {"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor"},
    {"aten::gelu", "aten::silu", "aten::relu", "aten::tanh", "aten::sigmoid"}, {"aten::gt.Scalar", "aten::ge.Scalar", "aten::lt.Scalar", "aten::le.Scalar"},
    {"aten::gt.Tensor", "aten::ge.Tensor", "aten::lt.Tensor", "aten::le.Tensor"}, {"aten::maximum", "aten::minimum"}, {"aten::amax", "aten::amin"},
    {"aten::mean.dim", "aten::sum.dim_IntList"}, {"aten::floor", "aten::ceil", "aten::round", "aten::trunc"}, {"aten::rsqrt", "aten::sqrt"},
    {"aten::tril", "aten::triu"}, {"aten::argmax", "aten::argmin"}};

static iso_code renamed(repair *r, uint32_t n, const char *op, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *arg[MAX_CHILDREN], *t = NULL;
  const rule_schema *from = rule_schemas_find(r->s->schemas, call->u.s), *to = rule_schemas_find(r->s->schemas, op);
  if (strcmp(op, call->u.s) == 0 || !from || !to) return ISO_OK;
  uint32_t k = 0;
  for (; k < call->n && k < to->n_args && k < from->n_args && strcmp(from->arg[k].name, to->arg[k].name) == 0; k++) arg[k] = call->child[k];
  iso_error ignored;
  if (rule_call(&r->arena, r->s->schemas, op, arg, k, &t, &ignored)) return ISO_OK;
  iso_code c = try_call(r, n, t, err);
  if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s", call->u.s, op);
  return c;
}

static iso_code other_operators(repair *r, uint32_t n, iso_error *err) {
  const char *op = r->g->node[n].call->u.s;
  iso_code c = ISO_OK;
  for (size_t f = 0; f < sizeof families / sizeof *families && !c; f++) {
    bool in = false;
    for (size_t k = 0; k < 8 && families[f][k]; k++) in |= strcmp(op, families[f][k]) == 0;
    for (size_t k = 0; k < 8 && families[f][k] && in && !c && !r->found; k++) c = renamed(r, n, families[f][k], err);
  }
  /* An operator of the other side's region over these arguments, with its attributes. */
  const rule_term *call = r->g->node[n].call;
  for (uint32_t i = 0; i < r->other->n_nodes && !c && !r->found; i++) {
    const rule_term *m = r->other->node[i].kind == SYNTH_OP && r->task->other_region[i] ? r->other->node[i].call : NULL;
    if (!m || m->n == 0 || m->child[0]->kind != RULE_VAR || call->n == 0 || call->child[0]->kind != RULE_VAR || strcmp(m->u.s, call->u.s) == 0) continue;
    bool plain = true;
    for (uint32_t k = 1; k < m->n; k++) plain &= is_attribute(m->child[k]);
    if (!plain) continue;
    const rule_term *t = with_child(r, m, 0, call->child[0]);
    c = try_call(r, n, t, err);
    const rule_tensor *given = r->found ? value(r->task->run, (uint32_t)call->child[0]->u.i) : NULL;
    if (given && rule_tensor_same(given, r->instead[n])) r->what = "the other side does without it";
    else if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s", call->u.s, m->u.s);
  }
  return c;
}

static iso_code exchanged(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < call->n && !c && !r->found; i++) {
    if (call->child[i]->kind == RULE_LIST && call->child[i]->n > 1) {
      const rule_term *l = call->child[i];
      for (uint32_t a = 0; a < l->n && a < 4 && !c && !r->found; a++)
        for (uint32_t b = a + 1; b < l->n && b < 5 && !c && !r->found; b++) {
          const rule_term **x = iso_arena_alloc(&r->arena, l->n * sizeof *x);
          if (!x) return nomem(err);
          memcpy(x, l->child, l->n * sizeof *x);
          x[a] = l->child[b], x[b] = l->child[a];
          c = try_call(r, n, with_child(r, call, i, rule_list(&r->arena, x, l->n)), err);
          if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "elements %u and %u of %s are exchanged", a, b, argument_name(r, call, i));
        }
    }
    for (uint32_t j = i + 1; j < call->n && !c && !r->found; j++) {
      if (call->child[i]->kind != RULE_VAR || call->child[j]->kind != RULE_VAR) continue;
      const rule_term *t = with_child(r, call, i, call->child[j]);
      c = try_call(r, n, t ? with_child(r, t, j, call->child[i]) : NULL, err);
      if (!c && r->found)
        r->what = iso_arena_printf(&r->s->res->arena, "%s and %s are exchanged", argument_name(r, call, i), argument_name(r, call, j));
    }
  }
  return c;
}

/* Each one several times, for all of them several times over; or the other way about. */
static iso_code repeated(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *arg[4] = {NULL}, *t = NULL;
  const rule_tensor *v = value(r->task->run, n);
  const int64_t rank = v ? v->shape.rank : 0;
  int64_t times = 0, dim = -1;
  const char *to = NULL;
  if (rank == 0 || rank > RULE_MAX_RANK || call->n == 0 || call->child[0]->kind != RULE_VAR) return ISO_OK;
  if (strcmp(call->u.s, "aten::repeat_interleave.self_int") == 0 && call->n > 2 && call->child[1]->kind == RULE_INT && call->child[2]->kind == RULE_INT) {
    times = call->child[1]->u.i, dim = call->child[2]->u.i < 0 ? call->child[2]->u.i + rank : call->child[2]->u.i;
    to = "aten::repeat";
  } else if (strcmp(call->u.s, "aten::repeat") == 0 && call->n > 1 && call->child[1]->kind == RULE_LIST && call->child[1]->n == rank) {
    to = "aten::repeat_interleave.self_int";
    for (uint32_t k = 0; k < rank && to; k++) {
      const rule_term *c = call->child[1]->child[k];
      if (c->kind != RULE_INT || (c->u.i != 1 && dim >= 0)) to = NULL;
      else if (c->u.i != 1) times = c->u.i, dim = k;
    }
  }
  if (!to || dim < 0 || times < 2) return ISO_OK;
  const bool over = strcmp(to, "aten::repeat") == 0;
  const rule_term *each[RULE_MAX_RANK];
  for (int64_t k = 0; k < rank; k++)
    if (!(each[k] = rule_int(&r->arena, k == dim ? times : 1))) return nomem(err);
  arg[0] = call->child[0];
  arg[1] = over ? rule_list(&r->arena, each, (size_t)rank) : rule_int(&r->arena, times);
  arg[2] = rule_int(&r->arena, dim);
  if (!arg[1] || !arg[2]) return nomem(err);
  iso_error ignored;
  if (rule_call(&r->arena, r->s->schemas, to, arg, over ? 2 : 3, &t, &ignored)) return ISO_OK;
  iso_code c = try_call(r, n, t, err);
  if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s", call->u.s, to);
  return c;
}

/* A view where the elements have to be moved: a permutation of the argument that has the same shape. */
static iso_code permuted(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const rule_tensor *v = value(r->task->run, n);
  const rule_tensor *x = call->n && call->child[0]->kind == RULE_VAR ? value(r->task->run, (uint32_t)call->child[0]->u.i) : NULL;
  static const char *const views[] = {"aten::view", "aten::reshape", "aten::_unsafe_view"};
  bool view = false;
  for (size_t i = 0; i < sizeof views / sizeof *views; i++) view |= strcmp(call->u.s, views[i]) == 0;
  if (!view || !v || !x || x->shape.rank < 2 || x->shape.rank > 4 || x->shape.rank != v->shape.rank) return ISO_OK;
  const uint32_t rank = x->shape.rank;
  uint32_t all = 1;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < rank; i++) all *= rank;
  for (uint32_t code = 0; code < all && !c && !r->found; code++) {
    const rule_term *dim[4];
    uint32_t seen = 0, at = code;
    bool fits = true, moved = false;
    for (uint32_t i = 0; i < rank; i++, at /= rank) {
      const uint32_t d = at % rank;
      seen |= 1u << d;
      moved |= d != i;
      fits &= x->shape.dim[d] == v->shape.dim[i];
      if (!(dim[i] = rule_int(&r->arena, d))) return nomem(err);
    }
    if (!fits || !moved || seen != (1u << rank) - 1) continue;
    const rule_term *arg[] = {call->child[0], rule_list(&r->arena, dim, rank)};
    c = try_call(r, n, arg[1] ? rule_op(&r->arena, "aten::permute", arg, 2) : NULL, err);
    if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be aten::permute to %s", call->u.s, show(r, arg[1]));
  }
  return c;
}

/* Two parts of one operator's results taken for one another. To exchange two arguments of what reads them is the same
 * function; where a program unpacks its parts out of order, that is where it happened. */
static iso_code parts_exchanged(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  if (strcmp(call->u.s, "getitem") != 0 || r->found) return ISO_OK;
  bool ordered = true;
  int64_t last = -1;
  for (uint32_t m = 0; m < r->g->n_nodes; m++) {
    const rule_term *o = r->g->node[m].call;
    if (r->g->node[m].kind != SYNTH_OP || strcmp(o->u.s, "getitem") != 0 || o->child[0]->u.i != call->child[0]->u.i) continue;
    ordered &= o->child[1]->u.i > last;
    last = o->child[1]->u.i;
  }
  if (ordered) return ISO_OK;
  const uint32_t from = (uint32_t)call->child[0]->u.i;
  iso_code c = ISO_OK;
  for (uint32_t m = n + 1; m < r->g->n_nodes && !c && !r->found && r->tries < MAX_TRIES; m++) {
    const rule_term *o = r->g->node[m].call;
    if (r->g->node[m].kind != SYNTH_OP || strcmp(o->u.s, "getitem") != 0 || o->child[0]->u.i != from) continue;
    rule_tensor *a = value(r->task->run, n), *b = value(r->task->run, m);
    if (!a || !b || !rule_shape_eq(&a->shape, &b->shape)) continue;
    r->tries++;
    bool *kept = r->again;
    if (!(r->again = calloc(r->g->n_nodes + 1, 1))) {
      r->again = kept;
      return nomem(err);
    }
    for (uint32_t i = n; i < r->g->n_nodes; i++)
      r->again[i] = i == n || i == m || (r->to_goal[i] && r->g->node[i].kind == SYNTH_OP && st_term_uses(r->g->node[i].call, r->again));
    r->instead[n] = rule_tensor_ref(b);
    r->instead[m] = rule_tensor_ref(a);
    c = try_values(r, n, err);
    free(r->again);
    r->again = kept;
    if (!r->found) {
      rule_tensor_unref(r->instead[n]);
      rule_tensor_unref(r->instead[m]);
      r->instead[n] = r->instead[m] = NULL;
    } else r->what = iso_arena_printf(&r->s->res->arena, "parts %lld and %lld are exchanged", (long long)call->child[1]->u.i, (long long)o->child[1]->u.i);
  }
  return c;
}

static iso_code try_instead(repair *r, uint32_t n, rule_tensor *v, const char *what, iso_error *err) {
  const rule_tensor *old = value(r->task->run, n);
  if (r->found || !old || r->tries >= MAX_TRIES || !rule_shape_eq(&v->shape, &old->shape) || v->dtype != old->dtype || rule_tensor_same(v, old)) return ISO_OK;
  r->tries++;
  r->instead[n] = rule_tensor_ref(v);
  iso_code c = try_values(r, n, err);
  if (r->found) r->what = what;
  else {
    rule_tensor_unref(v);
    r->instead[n] = NULL;
  }
  return c;
}

/* An operator too much: its argument stands for it. */
static iso_code left_out(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    rule_tensor *v = call->child[k]->kind == RULE_VAR ? value(r->task->run, (uint32_t)call->child[k]->u.i) : NULL;
    if (v) c = try_instead(r, n, v, "the other side does without it", err);
  }
  return c;
}

/* An operator too few: behind this one. */
static iso_code added(repair *r, uint32_t n, iso_error *err) {
  const uint32_t extra = (uint32_t)r->g->n_nodes;
  const rule_tensor *v = value(r->task->run, n);
  iso_code c = ISO_OK;
  if (!v || !rule_dtype_is_float(v->dtype) || strcmp(r->g->node[n].call->u.s, "getitem") == 0) return ISO_OK;
  const rule_term *self = rule_var(&r->arena, n), *neg[1] = {self};
  c = try_call(r, n, rule_op(&r->arena, "aten::neg", neg, 1), err);
  if (!c && r->found) r->what = "its sign is wrong";
  /* What the other side's region applies, its other arguments as they are there. */
  for (uint32_t i = 0; i < r->other->n_nodes && !c && !r->found; i++) {
    const synth_node *m = &r->other->node[i];
    if (m->kind != SYNTH_OP || !r->task->other_region[i] || m->call->n == 0 || m->call->n > 12) continue;
    for (uint32_t k = 0; k < m->call->n && k < 2 && !c && !r->found; k++) {
      const rule_term **child = iso_arena_alloc(&r->arena, m->call->n * sizeof *child);
      bool fits = m->call->child[k]->kind == RULE_VAR;
      uint32_t n_extra = 0;
      if (!child) return nomem(err);
      for (uint32_t j = 0; j < m->call->n && fits; j++) {
        child[j] = j == k ? self : m->call->child[j];
        if (j == k || child[j]->kind != RULE_VAR) {
          fits &= child[j]->kind != RULE_LIST || child[j]->n == 0 || child[j]->child[0]->kind != RULE_VAR;
          continue;
        }
        const uint32_t operand = (uint32_t)child[j]->u.i; /* within the region it would be a result, not a cause */
        r->bind[extra + n_extra] = value(r->task->other_run, operand);
        fits &= r->bind[extra + n_extra] != NULL && (!r->task->other_region[operand] || r->other->node[operand].kind != SYNTH_OP ||
                                                     r->s->rec[r->s->map[!r->task->side][operand].i].konst);
        child[j] = rule_var(&r->arena, extra + n_extra++);
      }
      if (!fits) continue;
      c = try_call(r, n, rule_op(&r->arena, m->call->u.s, child, m->call->n), err);
      if (c || !r->found) continue;
      r->what = iso_arena_printf(&r->s->res->arena, "%s is missing behind it (\"%s\" of the other side)", m->call->u.s, m->id);
      r->missing = i;
    }
  }
  /* A sum or product that lost one of its operands. */
  static const char *const binary[] = {"aten::add.Tensor", "aten::mul.Tensor"};
  for (uint32_t i = n, near = 0; i-- > 0 && !c && !r->found && near < MAX_NEAR;) {
    const rule_tensor *y = value(r->task->run, i);
    if (!y || !rule_shape_eq(&y->shape, &v->shape) || y->dtype != v->dtype) continue;
    near++;
    for (int b = 0; b < 2 && !c && !r->found; b++) {
      const rule_term *arg[2] = {self, rule_var(&r->arena, i)}, *t = NULL;
      iso_error ignored;
      if (!arg[1] || rule_call(&r->arena, r->s->schemas, binary[b], arg, 2, &t, &ignored)) continue;
      c = try_call(r, n, t, err);
      if (!c && r->found) r->what = iso_arena_printf(&r->s->res->arena, "%s of it and \"%s\" is missing", binary[b], r->g->node[i].id);
    }
  }
  return c;
}

/* A tensor that is not given (a bias, a mask), or another one than is meant. */
static iso_code other_tensors(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  const uint32_t extra = (uint32_t)r->g->n_nodes;
  iso_code c = ISO_OK;
  if (!sc || strcmp(call->u.s, "getitem") == 0) return ISO_OK;
  for (uint32_t k = 0; k < call->n && k < sc->n_args && !c && !r->found; k++) {
    if (sc->arg[k].type != RULE_ARG_TENSOR) continue;
    const rule_term *now = call->child[k];
    const bool none = now->kind == RULE_NONE;
    if (!none && now->kind != RULE_VAR) continue;
    const rule_tensor *have = none ? NULL : value(r->task->run, (uint32_t)now->u.i);
    for (int pass = 0; pass < 2; pass++) {
      const synth_graph *g = pass ? r->other : r->g;
      const st_run *run = pass ? r->task->other_run : r->task->run;
      uint32_t near = 0;
      for (uint32_t i = pass ? (uint32_t)g->n_nodes : n; i-- > 0 && !c && !r->found && near < MAX_NEAR;) {
        rule_tensor *v = value(run, i);
        if (!v || (none ? g->node[i].kind == SYNTH_OP && !r->s->rec[r->s->map[pass ? !r->task->side : r->task->side][i].i].konst
                        : !have || !rule_shape_eq(&v->shape, &have->shape) || v->dtype != have->dtype))
          continue;
        if (pass && g->node[i].kind == SYNTH_OP && !r->s->rec[r->s->map[!r->task->side][i].i].konst) continue; /* that would be its result, not its cause */
        near++;
        r->bind[extra] = v;
        c = try_call(r, n, with_child(r, call, k, rule_var(&r->arena, extra)), err);
        if (!c && r->found)
          r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s\"%s\"", argument_name(r, call, k), pass ? "the other side's " : "",
                                     g->node[i].name ? g->node[i].name : g->node[i].id);
        if (!c && r->found && pass && !none && g->node[i].kind != SYNTH_OP) r->operand = now->u.i, r->leaf = (int64_t)i;
      }
    }
  }
  return c;
}

typedef iso_code (*variation)(repair *r, uint32_t n, iso_error *err);

iso_code st_repair(state *s, const st_repair_task *task, st_repair_result *out, iso_error *err) {
  static const variation tiers[][10] = {
      [ST_OPTIONAL] = {optional_attributes},
      [ST_ODD] = {added_number, seen_attributes, parts_exchanged},
      [ST_OF_ONE] = {seen_attributes, optional_attributes, exchanged, likely_attributes, other_operators, like_a_sibling, permuted, repeated},
      [ST_LOOSE] = {left_out, added, other_tensors},
      [ST_WITHOUT] = {left_out}};
  const variation *const tier = tiers[task->changes];
  repair r = {.s = s, .task = task, .g = s->graph[task->side], .other = s->graph[!task->side], .missing = -1, .operand = -1, .leaf = -1};
  iso_arena_init(&r.arena);
  const rule_tensor *now = value(task->run, task->goal);
  if (now && now->numel == task->want->numel) r.apart = s->oracle->compare(s->oracle->ctx, task->want, now, s->o->rel_tol).max_rel;
  const size_t n = r.g->n_nodes;
  *out = (st_repair_result){0};
  r.bind = calloc(n + 16, sizeof *r.bind);
  r.instead = calloc(n + 1, sizeof *r.instead);
  r.again = calloc(n + 1, 1);
  r.seen = calloc(SEEN, sizeof *r.seen);
  r.to_goal = calloc(n + 1, 1);
  iso_code c = r.bind && r.instead && r.again && r.seen && r.to_goal ? ISO_OK : nomem(err);
  if (!c) {
    r.to_goal[task->goal] = true;
    for (uint32_t i = task->goal + 1; i-- > 0;)
      if (r.to_goal[i] && r.g->node[i].kind == SYNTH_OP) st_term_mark(r.g->node[i].call, r.to_goal);
    for (uint32_t i = 0; i < n; i++) r.bind[i] = task->run->value[i].n ? task->run->value[i].v[0] : NULL;
  }
  for (size_t first = 0, p = 0; p < ST_PHASES && !c && !r.found; first += task->n_suspects[p++]) {
    if (p == ST_PHASES - 2 && r.tries > MAX_TRIES - MAX_WIDE) r.tries = MAX_TRIES - MAX_WIDE; /* something is left for what the region reads */
    if (p == ST_PHASES - 1) r.tries = r.tries > MAX_LAST ? r.tries - MAX_LAST : 0; /* something is left for the last */
    for (size_t t = 0; tier[t] && !c && !r.found; t++)
      for (size_t k = 0; k < task->n_suspects[p] && !c && !r.found; k++) {
        const uint32_t i = task->suspect[first + k];
        if (r.g->node[i].kind != SYNTH_OP || !r.to_goal[i]) continue;
        flag_after(&r, i);
        c = tier[t](&r, i, err);
      }
  }
  if (!c && r.found) {
    *out = (st_repair_result){.found = true, .node = r.node, .what = r.what, .instead = r.instead, .missing = r.missing, .operand = r.operand, .leaf = r.leaf};
    r.instead = NULL;
  }
  if (r.instead)
    for (size_t i = 0; i < n; i++) rule_tensor_unref(r.instead[i]);
  free(r.bind);
  free(r.instead);
  free(r.again);
  free(r.seen);
  free(r.to_goal);
  iso_arena_fini(&r.arena);
  return c;
}
