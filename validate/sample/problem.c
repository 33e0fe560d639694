/* The open parts of a rule: its sizes, attributes and unnamed dimensions, the conditions among
 * them, and the integers that it suggests as sizes. */
#include <stdio.h>
#include <string.h>

#include "validate/sample/instance_int.h"

static iso_code too_large(const rule *r, iso_error *err) {
  return iso_fail(err, ISO_UNSUPPORTED, "rule %s has more than %d sizes and attributes", r->name,
                  VAL_MAX_NAMES);
}

static val_name *find_name(val_problem *p, const char *name) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->name[i].name, name) == 0) return &p->name[i];
  return NULL;
}

/* Kinds only grow stronger: a name that is an integer somewhere is one everywhere. */
static bool note_name(val_problem *p, const char *name, char kind, char role) {
  val_name *n = find_name(p, name);
  if (n == NULL) {
    if (p->n_names == VAL_MAX_NAMES) return false;
    n = &p->name[p->n_names++];
    *n = (val_name){.name = name, .kind = kind, .role = role};
    return true;
  }
  if (n->kind == 'f' && kind != 'f' && n->role != 'D') n->kind = kind;
  if (n->role == 0) n->role = role;
  return true;
}

static bool note_names_in(val_problem *p, const rule_term *t, char kind) {
  if (t->kind == RULE_NAME && !note_name(p, t->u.s, kind, 0)) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!note_names_in(p, t->child[i], kind)) return false;
  return true;
}

static void suggest(val_problem *p, int64_t v) {
  if (v < 1 || v > 4096 || p->n_suggested == 32) return;
  for (uint32_t i = 0; i < p->n_suggested; i++)
    if (p->suggested[i] == v) return;
  p->suggested[p->n_suggested++] = v;
}

static char role_of(const rule_arg *arg) {
  if (rule_arg_is_dim(arg)) return 'd';
  if (strcmp(arg->name, "eps") == 0) return 'e';
  if (strcmp(arg->name, "scale") == 0 || strcmp(arg->name, "p") == 0) return 'p';
  return 0;
}

static bool note_value(val_problem *p, const rule_arg *arg, rule_arg_type type, const rule_term *t);

static bool note_term(val_problem *p, const rule_term *t) {
  if (t->kind != RULE_OP) return true;
  const rule_schema *s = rule_schemas_find(p->schemas, t->u.s);
  for (uint32_t i = 0; i < t->n; i++) {
    static const rule_arg tensor = {.name = "", .type = RULE_ARG_TENSOR};
    const rule_arg *arg = s != NULL && i < s->n_args ? &s->arg[i] : &tensor;
    if (!note_value(p, arg, arg->type, t->child[i])) return false;
  }
  return true;
}

static bool note_value(val_problem *p, const rule_arg *arg, rule_arg_type type,
                       const rule_term *t) {
  if (t->kind == RULE_OP) return note_term(p, t);
  if (t->kind == RULE_INT) suggest(p, t->u.i);
  if (t->kind == RULE_EXPR) return note_names_in(p, t, 'i');
  if (t->kind == RULE_LIST) {
    const rule_arg_type element = type == RULE_ARG_INTS      ? RULE_ARG_INT
                                  : type == RULE_ARG_TENSORS ? RULE_ARG_TENSOR
                                                             : RULE_ARG_FLOAT;
    for (uint32_t i = 0; i < t->n; i++)
      if (!note_value(p, arg, element, t->child[i])) return false;
    return true;
  }
  if (t->kind != RULE_NAME) return true;
  const bool list = type == RULE_ARG_INTS || type == RULE_ARG_FLOATS || type == RULE_ARG_BOOLS;
  const val_name *known = find_name(p, t->u.s);
  if (list && known == NULL)
    return note_name(p, t->u.s, 'l', role_of(arg)); /* declared ones are noted already */
  return note_name(p, t->u.s, type == RULE_ARG_INT || type == RULE_ARG_INTS ? 'i' : 'f',
                   role_of(arg));
}

/* Only sizes, integers and + - * of them. */
static bool integral(val_problem *p, const rule_term *t) {
  if (t->kind == RULE_INT) return true;
  if (t->kind == RULE_NAME) {
    const val_name *n = find_name(p, t->u.s);
    return n != NULL && (n->kind == 's' || n->kind == 'i');
  }
  if (t->kind != RULE_EXPR || strchr("+-*", t->u.s[0]) == NULL || strcmp(t->u.s, "mod") == 0)
    return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!integral(p, t->child[i])) return false;
  return true;
}

/* An attribute that an equation defines by sizes and integers is an integer, unless it was declared
 * a float. */
static void note_defined(val_problem *p, const rule_term *t) {
  if (strcmp(t->u.s, "and") == 0)
    for (uint32_t i = 0; i < t->n; i++) note_defined(p, t->child[i]);
  if (strcmp(t->u.s, "=") != 0) return;
  for (uint32_t side = 0; side < 2; side++) {
    const rule_term *a = t->child[side], *b = t->child[1 - side];
    val_name *n = a->kind == RULE_NAME ? find_name(p, a->u.s) : NULL;
    if (n != NULL && n->kind == 'f' && n->role != 'D' && integral(p, b)) n->kind = 'i';
  }
}

static uint32_t count_conjuncts(const rule_term *t) {
  uint32_t n = 0;
  if (strcmp(t->u.s, "and") != 0) return 1;
  for (uint32_t i = 0; i < t->n; i++) n += count_conjuncts(t->child[i]);
  return n;
}

static void add_conjuncts(val_problem *p, const rule_term *t) {
  if (strcmp(t->u.s, "and") == 0)
    for (uint32_t i = 0; i < t->n; i++) add_conjuncts(p, t->child[i]);
  else p->where[p->n_where++] = t;
}

static void suggest_all(val_problem *p, const rule_term *t) {
  if (t->kind == RULE_INT) suggest(p, t->u.i);
  for (uint32_t i = 0; i < t->n; i++) suggest_all(p, t->child[i]);
}

/* The conditions as a list, with the sizes that are expressions at least 1. */
static iso_code collect_conditions(val_problem *p, iso_error *err) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->r->n_where; i++) n += count_conjuncts(p->r->where[i]);
  for (uint32_t v = 0; v < p->r->n_vars; v++) n += p->r->var[v].n_dims;
  p->where = iso_arena_alloc(&p->arena, (n + 1) * sizeof *p->where);
  if (p->where == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t i = 0; i < p->r->n_where; i++) add_conjuncts(p, p->r->where[i]);
  for (uint32_t v = 0; v < p->r->n_vars; v++)
    for (uint32_t d = 0; d < p->r->var[v].n_dims; d++) {
      const rule_term *t = p->r->var[v].dim[d];
      if (t->kind != RULE_EXPR) continue;
      const rule_term *least[2] = {t, rule_int(&p->arena, 1)};
      p->where[p->n_where] = rule_expr(&p->arena, ">=", least, 2);
      if (p->where[p->n_where++] == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
    }
  return ISO_OK;
}

/* How many of `few` operators are left when those of the term are taken off; 0 where none is. */
static size_t beyond(const rule_term *t, size_t few) {
  if (t->kind == RULE_OP && few > 0) few--;
  for (uint32_t i = 0; i < t->n && few > 0; i++) few = beyond(t->child[i], few);
  return few;
}

iso_code val_problem_init(val_problem *p, const rule *r, rule_schemas *s, iso_error *err) {
  *p = (val_problem){.r = r, .schemas = s, .max_size = 6};
  if (r->n_vars > RULE_MAX_VARS)
    return iso_fail(err, ISO_UNSUPPORTED, "rule %s has %u variables", r->name, r->n_vars);
  bool fits = true;
  for (uint32_t i = 0; i < r->n_attrs && fits; i++) {
    fits = note_name(p, r->attr[i].name, r->attr[i].kind, 0);
    if (fits && r->attr[i].kind == 'f') find_name(p, r->attr[i].name)->role = 'D';
  }
  for (uint32_t v = 0; v < r->n_vars && fits; v++) {
    p->open |= r->var[v].any_shape || r->var[v].leading;
    for (uint32_t d = 0; d < r->var[v].n_dims && fits; d++) {
      const rule_term *t = r->var[v].dim[d];
      if (t->kind == RULE_NONE) {
        const char *hidden = iso_arena_printf(&p->arena, "%s %u", r->var[v].name, d);
        if (hidden == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
        fits = note_name(p, hidden, 's', 0);
        if (fits) p->name[p->n_names - 1].hidden = true;
      } else {
        fits = note_names_in(p, t, 's');
        if (t->kind == RULE_INT) suggest(p, t->u.i);
      }
    }
  }
  fits = fits && note_term(p, r->lhs) && note_term(p, r->rhs);
  for (uint32_t i = 0; i < r->n_where && fits; i++) {
    fits = note_names_in(p, r->where[i], 'f');
    suggest_all(p, r->where[i]);
  }
  for (uint32_t v = 0; v < r->n_vars && fits; v++) {
    if (r->var[v].low != NULL) fits = note_names_in(p, r->var[v].low, 'i');
    if (r->var[v].high != NULL && fits) fits = note_names_in(p, r->var[v].high, 'i');
  }
  if (!fits) return too_large(r, err);
  for (int pass = 0; pass < 3; pass++) /* one definition may rest on another */
    for (uint32_t i = 0; i < r->n_where; i++) note_defined(p, r->where[i]);
  p->open |= p->n_names > 0;
  p->many = beyond(r->rhs, beyond(r->lhs, VAL_MANY)) == 0;
  return collect_conditions(p, err);
}

const val_name *val_hidden_of(const val_problem *p, const char *var, uint32_t d) {
  char hidden[160];
  snprintf(hidden, sizeof hidden, "%.120s %u", var, d);
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->name[i].name, hidden) == 0) return &p->name[i];
  return NULL;
}

void val_problem_set(val_problem *p, const val_counterexample *w) {
  for (uint32_t i = 0; i < w->n_names; i++) {
    val_name *n = find_name(p, w->name[i]);
    if (n == NULL) continue;
    const rule_term *v = w->value[i];
    n->set = true;
    if (v->kind == RULE_FLOAT) n->f = v->u.f;
    else if (v->kind == RULE_INT) n->i = v->u.i;
    else
      for (n->n = 0; n->n < v->n; n->n++) n->list[n->n] = v->child[n->n]->u.i;
  }
  for (uint32_t v = 0; v < p->r->n_vars; v++) {
    const rule_variable *x = &p->r->var[v], *at = &w->r->var[v];
    const uint32_t lead = x->any_shape || x->leading ? at->n_dims - x->n_dims : 0;
    p->lead_rank[v] = lead;
    for (uint32_t i = 0; i < lead; i++) p->lead[v][i] = at->dim[i]->u.i;
    for (uint32_t d = 0; d < x->n_dims; d++) {
      const val_name *n = x->dim[d]->kind == RULE_NONE ? val_hidden_of(p, x->name, d) : NULL;
      if (n != NULL)
        p->name[n - p->name].set = true, p->name[n - p->name].i = at->dim[lead + d]->u.i;
    }
  }
}

void val_problem_fini(val_problem *p) {
  if (p != NULL) iso_arena_fini(&p->arena);
}
