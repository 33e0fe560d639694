/* The joint e-graph: both captured graphs as e-nodes, literals as symbols without children, values
 * on every draw.
 *
 * Values are kept per e-node and looked up per class (the oldest valued member stands for the
 * class), so that after two constants were related both sides go on with one of the two values. */
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/refute/refute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* A symbol's text: kinds that could collide carry a prefix that no operator has. */
static const char *literal_text(iso_arena *a, const rule_term *t) {
  switch (t->kind) {
  case RULE_INT: return iso_arena_printf(a, "#i%lld", (long long)t->u.i);
  case RULE_FLOAT: return isnan(t->u.f) ? "#fnan" : iso_arena_printf(a, "#f%a", t->u.f);
  case RULE_BOOLEAN: return t->u.i ? "#true" : "#false";
  case RULE_NONE: return "#none";
  case RULE_STRING: return iso_arena_printf(a, "#s%s", t->u.s);
  case RULE_DTYPE: return iso_arena_printf(a, "#d%s", rule_dtype_name((rule_dtype)t->u.i));
  default: return NULL;
  }
}

static iso_code ensure_rec(state *s, eg_node n, iso_error *err) {
  if (n.i < s->n_rec) return ISO_OK;
  if (!iso_grow(s->rec, s->cap_rec, (size_t)n.i + 1)) return nomem(err);
  for (size_t i = s->n_rec; i <= n.i; i++)
    s->rec[i] = (rec){.node = {-1, -1}, .group = -1, .def = EG_NONE, .from = EG_NONE};
  s->n_rec = (size_t)n.i + 1;
  return ISO_OK;
}

const rec *st_rec(const state *s, eg_node n) { return &s->rec[n.i]; }

static iso_code intern(state *s, const char *name, eg_symbol *out, iso_error *err) {
  return eg_intern(s->g, name, strlen(name), out, err);
}

iso_code st_new_graph(state *s, iso_error *err) {
  const iso_code c = eg_new(NULL, &s->g, err);
  return c ? c : intern(s, "#list", &s->literals.list, err);
}

iso_code st_add_atom(state *s, const char *name, const rule_shape *shape, eg_node *out,
                     iso_error *err) {
  eg_symbol sym;
  iso_code c = intern(s, name, &sym, err);
  if (!c) c = eg_add(s->g, sym, NULL, 0, out, err);
  if (!c) c = ensure_rec(s, *out, err);
  if (c) return c;
  rec *r = &s->rec[out->i];
  r->tensor = r->leaf = r->atom = true;
  r->shape = *shape;
  return ISO_OK;
}

iso_code st_literal_symbol(state *s, const rule_term *t, eg_symbol *out, iso_error *err) {
  const char *text = literal_text(&s->arena, t);
  if (!text) return nomem(err);
  const iso_code c = intern(s, text, out, err);
  if (c) return c;
  if (!iso_grow(s->literals.of, s->literals.cap, (size_t)out->i + 1)) return nomem(err);
  if (!s->literals.of[out->i] && !(s->literals.of[out->i] = rule_term_copy(&s->arena, t)))
    return nomem(err);
  return ISO_OK;
}

static iso_code add_literal(state *s, const rule_term *t, eg_node *out, iso_error *err) {
  eg_symbol sym;
  iso_code c = st_literal_symbol(s, t, &sym, err);
  if (c) return c;
  if ((c = eg_add(s->g, sym, NULL, 0, out, err))) return c;
  return ensure_rec(s, *out, err);
}

const rule_term *st_literal(state *s, eg_node n) {
  eg_symbol sym = eg_node_symbol(s->g, n);
  return sym.i < s->literals.cap ? s->literals.of[sym.i] : NULL;
}

bool st_is_list(state *s, eg_node n) { return eg_node_symbol(s->g, n).i == s->literals.list.i; }

eg_node st_rep(state *s, eg_class c) {
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].valued) return m[i];
  return (eg_node){EG_NONE};
}

/* A call is constant if every argument is, as the e-node was added. Lists pass their members' state
 * on through `rec.konst` of the list e-node. An argument that only equals a constant by a rule does
 * not count: constants' values are used where a graph is run as captured, rules hold of numbers
 * only, and isnan(0/0) is 1 where a rule makes it 0. */
static bool children_konst(state *s, eg_node n) {
  for (size_t k = 0; k < eg_node_arity(s->g, n); k++)
    if (!s->rec[eg_node_original(s->g, n, k).i].konst) return false;
  return true;
}

/* A function of parameters: of them and of constants alone. */
static bool children_param(state *s, eg_node n) {
  bool any = false;
  for (size_t k = 0; k < eg_node_arity(s->g, n); k++) {
    const eg_node *m;
    size_t c = eg_class_nodes(s->g, eg_node_child(s->g, n, k), &m);
    bool konst = false, param = false;
    for (size_t i = 0; i < c; i++) konst |= s->rec[m[i].i].konst, param |= s->rec[m[i].i].param;
    if (!konst && !param) return false;
    any |= param;
  }
  return any;
}

iso_code st_add_term(state *s, const rule_term *t, const eg_node *bind, eg_node *out,
                     iso_error *err) {
  iso_code c;
  if (t->kind == RULE_VAR) {
    *out = bind[t->u.i];
    return ISO_OK;
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) {
    if ((c = add_literal(s, t, out, err))) return c;
    s->rec[out->i].konst = true;
    return ISO_OK;
  }
  if (t->n > MAX_CHILDREN)
    return iso_fail(err, ISO_RANGE, "%u arguments, more than %d", t->n, MAX_CHILDREN);
  eg_class *child = t->n ? malloc(t->n * sizeof *child) : NULL;
  if (t->n && !child) return nomem(err);
  eg_symbol sym;
  if (t->kind == RULE_LIST) sym = s->literals.list, c = ISO_OK;
  else c = intern(s, t->u.s, &sym, err);
  for (uint32_t i = 0; i < t->n && !c; i++) {
    eg_node k;
    if ((c = st_add_term(s, t->child[i], bind, &k, err))) break;
    child[i] = eg_class_of(s->g, k);
  }
  if (!c) c = eg_add(s->g, sym, child, t->n, out, err);
  free(child);
  if (!c) c = ensure_rec(s, *out, err);
  if (c) return c;
  rec *r = &s->rec[out->i];
  if (t->kind == RULE_OP && !r->multi) r->tensor = true;
  if (!r->konst) r->konst = children_konst(s, *out);
  r->param = !r->konst && (r->param || children_param(s, *out));
  return ISO_OK;
}

/* A constant whose captured value is not the result of its call. Its values come with those of the
 * leaves. */
static iso_code add_source(state *s, int side, size_t i, eg_node *out, iso_error *err) {
  char name[40];
  eg_symbol sym;
  snprintf(name, sizeof name, "$%cmask%zu", side == LEFT ? 'L' : 'R', i);
  iso_code c = intern(s, name, &sym, err);
  if (!c) c = eg_add(s->g, sym, NULL, 0, out, err);
  if (!c) c = ensure_rec(s, *out, err);
  if (!c) s->rec[out->i].tensor = s->rec[out->i].leaf = s->rec[out->i].konst = true;
  return c;
}

static void note_arguments(const rule_term *t, bool *whole) {
  if (t->kind == RULE_VAR) whole[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) note_arguments(t->child[k], whole);
}

/* The nodes that are read without getitem. */
static bool *read_whole(const synth_graph *g) {
  bool *whole = calloc(g->n_nodes + 1, 1);
  for (size_t i = 0; whole && i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && !rule_is_getitem(g->node[i].call->u.s))
      note_arguments(g->node[i].call, whole);
  for (size_t i = 0; whole && i < g->n_outputs; i++) whole[g->output[i].node] = true;
  return whole;
}

/* Of a list there may be one output, which getitem takes all the same: unbind of one row. */
static bool is_list(const state *s, const synth_node *n) {
  const rule_schema *d = rule_schemas_find(s->schemas, n->call->u.s);
  return d && rule_schema_outputs(d) == SIZE_MAX;
}

static iso_code add_nodes(state *s, int side, const bool *live, const bool *whole, iso_error *err) {
  const synth_graph *g = s->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP || !live[i]) continue;
    eg_node e;
    const rule_term *call = st_read_call(s, side, i, &s->arena);
    iso_code c = !call                        ? nomem(err)
                 : st_mask_source(s, side, i) ? add_source(s, side, i, &e, err)
                                              : st_add_term(s, call, s->map[side], &e, err);
    const rule_term *read;
    if (!c && call == n->call && !s->rec[e.i].konst &&
        !(c = st_read_rounded(s, side, (uint32_t)i, &read, err)) && read) {
      ((synth_node *)n)->call = read; /* the copy that synth_compare made */
      c = st_add_term(s, read, s->map[side], &e, err);
    }
    if (c) return iso_prefix(err, "%s: node \"%s\": ", g->path, n->id);
    s->map[side][i] = e;
    rec *r = &s->rec[e.i];
    const bool one = r->tensor && (r->node[LEFT] >= 0 || r->node[RIGHT] >= 0);
    r->multi = n->n_outputs != 1 || (!one && !whole[i] && is_list(s, n));
    r->tensor = !r->multi;
    r->shape = n->shape;
    if (r->node[side] < 0) r->node[side] = (int32_t)i;
  }
  return ISO_OK;
}

iso_code st_add_graph(state *s, int side, const bool *live, iso_error *err) {
  bool *whole = read_whole(s->graph[side]);
  const iso_code c = whole ? add_nodes(s, side, live, whole, err) : nomem(err);
  free(whole);
  return c;
}

/* the captured id, or NULL */
static const char *st_id(const state *s, eg_node n, int side) {
  int32_t i = s->rec[n.i].node[side];
  return i < 0 ? NULL : s->graph[side]->node[i].id;
}

const char *st_any_id(const state *s, eg_node n) {
  const char *id = st_id(s, n, LEFT);
  return id ? id : st_id(s, n, RIGHT) ? st_id(s, n, RIGHT) : "(auxiliary)";
}

const char *st_assume(state *s, rule_assumption kind, eg_node left, eg_node right,
                      const char *relation, const char *text) {
  if (!iso_grow(s->assumed.of, s->assumed.cap, s->assumed.n + 1)) return NULL;
  s->assumed.of[s->assumed.n++] = (synth_assumption){
      .kind = kind,
      .text = iso_arena_strdup(&s->arena, text),
      .left = left.i == EG_NONE ? NULL : st_id(s, left, LEFT),
      .right = right.i == EG_NONE ? NULL : st_id(s, right, RIGHT),
      .relation = relation ? iso_arena_strdup(&s->arena, relation) : NULL,
  };
  return s->assumed.of[s->assumed.n - 1].text;
}

iso_code st_merge(state *s, eg_node a, eg_node b, uint32_t kind, uint32_t data, iso_error *err) {
  const rec *ra = &s->rec[a.i], *rb = &s->rec[b.i];
  if (ra->valued && rb->valued) {
    /* No step of the chain may join e-nodes that values tell apart, whoever proposed it. */
    if (!rule_shape_eq(&ra->shape, &rb->shape) || st_dtype(s, a) != st_dtype(s, b))
      return iso_fail(err, ISO_INTERNAL,
                      "\"%s\" and \"%s\" differ in shape or dtype and were about to be merged",
                      st_any_id(s, a), st_any_id(s, b));
    for (size_t d = 0; d < s->n_draws && !ra->typed && !rb->typed; d++) {
      const rule_tensor *va = st_val(s, a, d), *vb = st_val(s, b, d);
      if (!va || !vb) return st_lost(&s->values, err);
      rule_diff df = s->oracle->compare(s->oracle->ctx, va, vb, s->o->rel_tol);
      bool rounding = false;
      const eg_node e[2] = {a, b};
      const iso_code c =
          df.equal ? ISO_OK : st_same_numbers(s, d, e, kind == WHY_RULE, &rounding, err);
      if (c) return c;
      if (rounding) continue;
      if (!df.equal)
        return iso_fail(
            err, ISO_INTERNAL,
            "\"%s\" and \"%s\" differ by %.3g (relative) on draw %zu and were about to "
            "be merged%s%s",
            st_any_id(s, a), st_any_id(s, b), df.max_rel, d, kind == WHY_RULE ? " by rule " : "",
            kind == WHY_RULE ? rule_set_at(s->rules.set, s->rules.app[data].rule)->name : "");
      if (df.max_rel > s->res->largest_merged) s->res->largest_merged = df.max_rel;
    }
  }
  iso_code c = eg_merge(s->g, a, b, (eg_why){kind, data}, err);
  if (c) return c;
  s->res->n_merges++;
  if (s->o->trace) {
    char line[512];
    snprintf(line, sizeof line, "merge %s = %s (%s%s)", st_any_id(s, a), st_any_id(s, b),
             kind == WHY_RULE   ? "rule "
             : kind == WHY_LEAF ? "leaf relation"
                                : "constant",
             kind == WHY_RULE ? rule_set_at(s->rules.set, s->rules.app[data].rule)->name : "");
    s->o->trace(s->o->ctx, line);
  }
  return eg_rebuild(s->g, err);
}
