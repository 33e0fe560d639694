/* Rules in the copy: each way of one is a pattern that a guard and an application of ours belong
 * to.
 *
 * A pattern's variables stand for the rule's variables, its names and its expressions. The guard
 * binds names to the literals and the sizes at hand and asks the rule's conditions; the application
 * builds the other side with their values. */
#include "synth/saturate/saturate_int.h"
#include "synth/joint/joint.h"
#include "synth/search/compiled.h"
#include "synth/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

bool sat_bind(sat_run *x, const sat_rule *r, const eg_class *var, eg_class *of_var) {
  names_init(x->names, &x->scratch);
  for (uint32_t k = 0; k < r->n_bind; k++) {
    const rule_term *t = r->bind[k];
    const sat_type *type = sat_type_of(x->g, var[k]);
    if (!type) return false;
    if (t->kind != RULE_VAR) {
      if (!type->literal || !names_bind(x->names, t, type->literal)) return false;
      continue;
    }
    const rule_variable *d = &r->r->var[t->u.i];
    if (type->kind != SAT_TENSOR || !rule_variable_takes(d, type->dtype) ||
        !names_bind_shape(x->names, d, &type->shape))
      return false;
    of_var[t->u.i] = var[k];
  }
  return names_hold(x->names, r->r) && names_strict(x->names, r->r);
}

bool sat_instance(sat_run *x, const rule *r, const rule_term *const side[2],
                  const rule_shape *const *shape, rule *out) {
  iso_arena *a = &x->s->arena;
  rule_variable *v = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *v);
  for (uint32_t i = 0; i < r->n_vars && v; i++) {
    if (!shape[i]) return false;
    const rule_term **dim = iso_arena_alloc(a, (shape[i]->rank + 1) * sizeof *dim);
    for (uint32_t k = 0; k < shape[i]->rank && dim; k++)
      if (!(dim[k] = rule_int(a, shape[i]->dim[k]))) return false;
    if (!dim) return false;
    v[i] = (rule_variable){.name = r->var[i].name,
                           .kind = r->var[i].kind,
                           .narrow = r->var[i].narrow,
                           .n_dims = shape[i]->rank,
                           .dim = dim};
  }
  *out = (rule){.name = r->name,
                .n_vars = r->n_vars,
                .var = v,
                .lhs = rule_term_copy(a, side[0]),
                .rhs = rule_term_copy(a, side[1])};
  return v && out->lhs && out->rhs;
}

/* Whether a rule that was given holds, as far as its first application that joins anything tells: a
 * false one would fill the copy. Requires: its names are bound. */
static iso_code admit(sat_run *x, const sat_rule *r, const eg_class *of_var, bool *holds,
                      iso_error *err) {
  const rule_shape *shape[RULE_MAX_VARS] = {NULL};
  *holds = true;
  if (!r->given) return ISO_OK;
  uint8_t *said = &x->said[r->index];
  if (*said == SAT_UNASKED) {
    const rule_term *side[2] = {names_put(x->names, r->r->lhs, &x->scratch),
                                names_put(x->names, r->r->rhs, &x->scratch)};
    rule at;
    size_t index = SIZE_MAX;
    for (uint32_t i = 0; i < r->r->n_vars; i++)
      if (of_var[i].i != EG_NONE) shape[i] = &sat_type_of(x->g, of_var[i])->shape;
    const bool fits = side[0] && side[1] && sat_instance(x, r->r, side, shape, &at);
    iso_code c = fits ? st_admit_known(x->s, r->index, &at, NULL, x->names, &index, err) : ISO_OK;
    if (c) return c;
    *said = index == SIZE_MAX ? SAT_FAILS : SAT_HOLDS;
  }
  *holds = *said == SAT_HOLDS;
  return ISO_OK;
}

static bool guard(void *ctx, const eg_sat *g, const eg_class *var) {
  const sat_rule *r = ctx;
  sat_run *x = r->run;
  eg_class of_var[RULE_MAX_VARS];
  (void)g;
  if (r->given && x->said[r->index] == SAT_FAILS) return false;
  const bool fits = sat_bind(x, r, var, of_var) && names_put(x->names, r->to, &x->scratch) != NULL;
  if (x->scratch.failed) x->code = ISO_NOMEM;
  iso_arena_fini(&x->scratch);
  return fits;
}

static iso_code note_app(sat_run *x, const sat_rule *r, const eg_class *var, iso_error *err) {
  if (!iso_grow(x->app, x->cap_apps, x->n_apps + 1) ||
      !iso_grow(x->kids, x->cap_kids, x->n_kids + r->n_bind))
    return nomem(err);
  x->app[x->n_apps++] = (sat_app){r, (uint32_t)x->n_kids};
  for (uint32_t k = 0; k < r->n_bind; k++) x->kids[x->n_kids++] = var[k].i;
  return ISO_OK;
}

/* Joins the other side with the class that matched. A term of another shape or dtype is not joined:
 * the rule makes no claim about it. */
static iso_code apply(void *ctx, eg_sat *g, eg_class root, const eg_class *var, iso_error *err) {
  const sat_rule *r = ctx;
  sat_run *x = r->run;
  eg_class of_var[RULE_MAX_VARS], made;
  for (uint32_t i = 0; i < RULE_MAX_VARS; i++) of_var[i].i = EG_NONE;
  bool fits = sat_bind(x, r, var, of_var);
  const rule_term *to = fits ? names_put(x->names, r->to, &x->scratch) : NULL;
  iso_code c = ISO_OK;
  if (to) {
    c = sat_add_term(x, to, of_var, &made, err);
    const sat_type *a = c ? NULL : sat_type_of(g, root), *b = c ? NULL : sat_type_of(g, made);
    fits = !c && eg_sat_find(g, root).i != eg_sat_find(g, made).i && !(a && b && a != b);
    if (fits) c = admit(x, r, of_var, &fits, err);
    if (!c && fits && !(c = note_app(x, r, var, err)))
      c = eg_sat_merge(g, root, made, (eg_why){2, (uint32_t)x->n_apps - 1}, err);
  }
  if (!c && x->scratch.failed) c = nomem(err);
  iso_arena_fini(&x->scratch);
  return c;
}

typedef struct text {
  char *at;
  size_t n, cap;
  bool failed;
} text;

static void put(text *t, const char *more) {
  const size_t n = strlen(more);
  t->failed |= !iso_grow(t->at, t->cap, t->n + n + 1);
  if (!t->failed) memcpy(t->at + t->n, more, n + 1);
  if (!t->failed) t->n += n;
}

/* The pattern's variable for a variable, a name or an expression of the rule. */
static uint32_t variable(sat_rule *r, const rule_term *t) {
  for (uint32_t k = 0; k < r->n_bind && t->kind != RULE_EXPR; k++)
    if (rule_term_eq(r->bind[k], t)) return k;
  r->bind[r->n_bind] = t;
  return r->n_bind++;
}

static bool plain(const char *op) { return op[0] != '?' && strpbrk(op, " ();\"\t\r\n") == NULL; }

/* A side as the text of a pattern. Returns: false where it has none. */
static bool write_side(sat_run *x, sat_rule *r, const rule_term *t, text *out) {
  char atom[24];
  eg_symbol sym;
  iso_error err;
  switch (t->kind) {
  case RULE_VAR:
  case RULE_NAME:
  case RULE_EXPR:
    if (r->n_bind == RULE_MAX_VARS) return false;
    snprintf(atom, sizeof atom, "?%u", variable(r, t));
    put(out, atom);
    return true;
  case RULE_OP:
  case RULE_LIST:
    if (t->n == 0 || t->n > MAX_CHILDREN || (t->kind == RULE_OP && !plain(t->u.s))) return false;
    put(out, "(");
    put(out, t->kind == RULE_LIST ? "#list" : t->u.s);
    for (uint32_t k = 0; k < t->n; k++) {
      put(out, " ");
      if (!write_side(x, r, t->child[k], out)) return false;
    }
    put(out, ")");
    return true;
  default:
    if (st_literal_symbol(x->s, t, &sym, &err)) return out->failed = true, false;
    snprintf(atom, sizeof atom, "#%u", sym.i);
    put(out, atom);
    return true;
  }
}

static bool has_all(const sat_rule *r, const rule_term *t) {
  if (t->kind == RULE_VAR) {
    for (uint32_t k = 0; k < r->n_bind; k++)
      if (rule_term_eq(r->bind[k], t)) return true;
    return false;
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!has_all(r, t->child[i])) return false;
  return true;
}

/* ---- which rules can match at all ---- */

static bool all_there(const sat_run *x, const st_pattern *p) {
  if (p->op.i != EG_NONE && !x->there[p->op.i]) return false;
  for (uint32_t k = 0; p->child && k < p->t->n; k++)
    if (!all_there(x, &p->child[k])) return false;
  return true;
}

/* Returns: whether an operator is new. */
static bool put_there(sat_run *x, const st_pattern *p) {
  bool fresh = p->op.i != EG_NONE && !x->there[p->op.i];
  if (fresh) x->there[p->op.i] = true;
  for (uint32_t k = 0; p->child && k < p->t->n; k++) fresh |= put_there(x, &p->child[k]);
  return fresh;
}

/* A way of a rule, before it is compiled. */
typedef struct way {
  const rule *r;
  size_t index;
  bool given, back, use;
  const st_pattern *from, *to;
} way;

typedef struct ways {
  way *at;
  size_t n, cap;
} ways;

/* A rule whose operators are all there brings those of its other side. */
static void reach(sat_run *x, ways *w) {
  for (bool fresh = true; fresh;) {
    fresh = false;
    for (size_t i = 0; i < w->n; i++) {
      if (w->at[i].use || !all_there(x, w->at[i].from)) continue;
      w->at[i].use = true;
      fresh |= put_there(x, w->at[i].to);
    }
  }
}

static bool ranged(const rule *r) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].low || r->var[i].high) return true;
  return false;
}

/* A way of a rule, if everything that the other side speaks of is known from this one. */
static iso_code add_way(sat_run *x, const way *y, iso_error *err) {
  const rule *r = y->r;
  sat_rule *w = iso_arena_alloc(&x->arena, sizeof *w);
  const rule_term **bind = iso_arena_alloc(&x->arena, RULE_MAX_VARS * sizeof *bind);
  if (!w || !bind) return nomem(err);
  *w = (sat_rule){x, r, y->index, y->given, y->from->t, y->to->t, bind, 0};
  text t = {0};
  const bool fits = write_side(x, w, w->from, &t) && has_all(w, w->to);
  const eg_rule text_of = {.name = r->name,
                           .lhs = t.at,
                           .ctx = w,
                           .guard = guard,
                           .guard_stays_false = true,
                           .apply = apply};
  iso_code c = t.failed ? nomem(err) : fits ? eg_rules_add(x->rules, &text_of, err) : ISO_OK;
  free(t.at);
  return c;
}

static iso_code list_ways(sat_run *x, const rule_set *set, bool given, ways *w, iso_error *err) {
  const st_saturation *o = x->o;
  st_rules *rules = &x->s->rules;
  for (size_t i = 0; set && i < rule_set_count(set); i++) {
    const rule *r = rule_set_at(set, i);
    const bool may = given ? true : o->use ? o->use[i] : st_usable(x->s, i);
    st_compiled as;
    if (!may || r->n_vars > RULE_MAX_VARS || ranged(r) ||
        (x->refused[given] && x->refused[given][i]))
      continue;
    const iso_code c =
        st_compile(x->s, given ? &rules->known_compiled : &rules->compiled, i, r, &as, err);
    if (c) return c;
    if (!iso_grow(w->at, w->cap, w->n + 2)) return nomem(err);
    w->at[w->n++] = (way){r, i, given, false, false, as.side[0], as.side[1]};
    w->at[w->n++] = (way){r, i, given, true, false, as.side[1], as.side[0]};
  }
  return ISO_OK;
}

iso_code sat_add_rules(sat_run *x, iso_error *err) {
  state *s = x->s;
  ways w = {0};
  iso_code c = list_ways(x, s->rules.set, false, &w, err);
  if (!c && x->o->given) c = list_ways(x, s->known, true, &w, err);
  const size_t n = eg_count_symbols(s->g);
  const size_t n_known = s->known ? rule_set_count(s->known) : 0;
  if (!c && (!(x->there = calloc(n + 1, 1)) || !(x->said = calloc(n_known + 1, 1)))) c = nomem(err);
  for (size_t i = 0; i < eg_count_added(s->g) && !c; i++)
    x->there[eg_node_symbol(s->g, (eg_node){(uint32_t)i}).i] = true;
  if (!c) reach(x, &w);
  for (size_t i = 0; i < w.n && !c; i++)
    if (w.at[i].use) c = add_way(x, &w.at[i], err);
  free(w.at);
  return c;
}
