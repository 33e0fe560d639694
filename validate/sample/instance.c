/* Instances of a rule: sizes and attributes drawn, conditions solved, operators asked
 * (instance_int.h).
 *
 * What both sides ask of the sizes is found by trial: an attempt is as good as the number of
 * operators that ran before one refused, and the best attempt is changed in one or two places.
 * Sizes come small, and from what the rule suggests: its literals, sizes drawn before, their
 * products and quotients. */
#include "validate/sample/instance_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/sample/sample_int.h"

enum { DRAWS = 300, TRIES = 400, PINNED_TRIES = 80, MAX_NUMEL = 1 << 16, MAX_PINNED = 1 << 21 };

/* ---- what is open ---- */

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
  if (strncmp(arg->name, "dim", 3) == 0 || strcmp(arg->name, "axis") == 0) return 'd';
  if (strcmp(arg->name, "eps") == 0) return 'e';
  if (strcmp(arg->name, "scale") == 0 || strcmp(arg->name, "p") == 0) return 'p';
  return 0;
}

/* Names in argument `arg`. An expression is of sizes and integers. */
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

iso_code val_problem_init(val_problem *p, const rule *r, rule_schemas *s, iso_error *err) {
  *p = (val_problem){.r = r, .schemas = s, .max_size = 6};
  if (r->n_vars > VAL_MAX_VARS)
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
  return collect_conditions(p, err);
}

/* The name that stands for dimension `d` of the variable, which the rule leaves unnamed. */
static const val_name *hidden_of(const val_problem *p, const char *var, uint32_t d) {
  char hidden[160];
  snprintf(hidden, sizeof hidden, "%.120s %u", var, d);
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->name[i].name, hidden) == 0) return &p->name[i];
  return NULL;
}

void val_problem_set(val_problem *p, const val_witness *w) {
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
      const val_name *n = x->dim[d]->kind == RULE_NONE ? hidden_of(p, x->name, d) : NULL;
      if (n != NULL)
        p->name[n - p->name].set = true, p->name[n - p->name].i = at->dim[lead + d]->u.i;
    }
  }
}

void val_problem_fini(val_problem *p) {
  if (p != NULL) iso_arena_fini(&p->arena);
}

/* ---- drawing ---- */

static int64_t small_size(const val_problem *p, iso_rng *rng) {
  static const int64_t sizes[] = {1, 2, 3, 2, 3, 4, 1, 5, 6, 4, 7, 8};
  static const int64_t more[] = {8, 12, 6, 16, 7, 9, 12, 5};
  if (p->roomy) return more[iso_rng_below(rng, 8)];
  for (;;) {
    const int64_t v = sizes[iso_rng_below(rng, 12)];
    if (v <= p->max_size || (v > 6 && p->max_size >= 6)) return v;
  }
}

/* A size or integer that is known: a name's, or of a shape. 0 where there is none. One that
 * conditions made large (scale^4 * size = 1) is not taken again: operators multiply sizes (scores
 * of all pairs) until there is no memory for them. */
static int64_t known_size(const val_problem *p, iso_rng *rng) {
  enum { LARGEST = 512 };
  if (p->n_names == 0) return 0;
  const val_name *n = &p->name[iso_rng_below(rng, p->n_names)];
  if (n->set && (n->kind == 's' || n->kind == 'i') && n->i >= 1 && n->i <= LARGEST) return n->i;
  if (p->r->n_vars == 0) return 0;
  const uint64_t v = iso_rng_below(rng, p->r->n_vars);
  return p->lead_rank[v] > 0 ? p->lead[v][iso_rng_below(rng, p->lead_rank[v])] : 0;
}

static int64_t draw_size(const val_problem *p, iso_rng *rng) {
  const uint64_t how = iso_rng_below(rng, 16);
  const int64_t a = known_size(p, rng), b = known_size(p, rng);
  if (how < 3 && a > 0) return a;
  if (how == 3 && a > 0 && b > 0 && a * b <= 64) return a * b;
  if (how == 4 && a > 0 && b > 0) return a % b == 0 ? a / b : a + b;
  if (how == 5 && p->n_suggested > 0) return p->suggested[iso_rng_below(rng, p->n_suggested)];
  if (how == 6 && a > 0 && p->n_suggested > 0) {
    const int64_t s = p->suggested[iso_rng_below(rng, p->n_suggested)];
    if (a * s <= 64) return a * s;
    if (a % s == 0) return a / s;
  }
  return small_size(p, rng);
}

static double draw_real(const val_name *n, iso_rng *rng) {
  static const double some[] = {0.5, 2, -1, 3, 1, 0.25, -2, 1.5, 0, 0.1, 10, -0.75};
  static const double eps[] = {1e-5, 1e-3, 0.1, 1, 1e-6, 1e-12};
  if (n->role == 'e') return eps[iso_rng_below(rng, 6)];
  const double v = iso_rng_below(rng, 3) == 0 ? iso_rng_normal(rng) : some[iso_rng_below(rng, 12)];
  return n->role == 'p' ? fabs(v) + (v == 0 ? 0.5 : 0) : v;
}

static void draw_name(val_problem *p, val_name *n, iso_rng *rng) {
  n->set = false;
  if (p->pinned == 1 + (uint32_t)(n - p->name)) n->i = p->pin;
  else if (n->kind == 's') n->i = draw_size(p, rng);
  else if (n->kind == 'f') n->f = draw_real(n, rng);
  else if (n->kind == 'i') {
    const uint64_t how = iso_rng_below(rng, 8);
    if (n->role == 'd') n->i = (int64_t)iso_rng_below(rng, 7) - 3;
    else
      n->i = how < 3   ? (int64_t)iso_rng_below(rng, 4)
             : how < 4 ? -1 - (int64_t)iso_rng_below(rng, 2)
                       : draw_size(p, rng);
  } else {
    n->n = 1 + (uint32_t)iso_rng_below(rng, 4);
    const bool dims = n->role == 'd' || iso_rng_below(rng, 2);
    for (uint32_t i = 0; i < n->n; i++) n->list[i] = dims ? (int64_t)i : draw_size(p, rng);
    for (uint32_t i = n->n; dims && i > 1; i--) { /* an order of the dimensions */
      const uint32_t j = (uint32_t)iso_rng_below(rng, i);
      const int64_t t = n->list[i - 1];
      n->list[i - 1] = n->list[j];
      n->list[j] = t;
    }
  }
  n->set = true;
}

/* Leading dimensions: one shape for all, broadcast against it, or each its own. */
static void draw_leads(val_problem *p, iso_rng *rng) {
  const bool some = iso_rng_below(rng, 8) != 0;
  int64_t shared[VAL_MAX_LEAD];
  const uint32_t shared_rank = (uint32_t)iso_rng_below(rng, p->roomy ? 2 : VAL_MAX_LEAD) + p->roomy;
  const uint64_t how = iso_rng_below(
      rng,
      p->roomy
          ? 2
          : 8); /* 2: broadcast; 3: free; 4: one alone has it; 5: one alone has not; else equal */
  bool leads = false;
  for (uint32_t v = 0; v < p->r->n_vars; v++)
    leads |= p->r->var[v].any_shape || p->r->var[v].leading;
  const uint32_t alone = leads ? (uint32_t)iso_rng_below(rng, p->r->n_vars) : 0;
  for (uint32_t i = 0; i < VAL_MAX_LEAD; i++) shared[i] = small_size(p, rng);
  for (uint32_t v = 0; v < p->r->n_vars; v++) {
    const rule_variable *x = &p->r->var[v];
    p->lead_rank[v] = 0;
    if (!x->any_shape && !x->leading) continue;
    uint32_t rank = some || x->any_shape ? shared_rank : 0;
    if (how == 2 && rank > 0) rank -= (uint32_t)iso_rng_below(rng, rank + 1);
    if (how == 3) rank = (uint32_t)iso_rng_below(rng, VAL_MAX_LEAD);
    if ((how == 4 && v != alone) || (how == 5 && v == alone)) rank = 0;
    if (rank + x->n_dims > RULE_MAX_RANK) rank = 0;
    p->lead_rank[v] = rank;
    for (uint32_t i = 0; i < rank; i++) { /* from the right, as broadcasting does */
      p->lead[v][rank - 1 - i] = how == 3 ? small_size(p, rng) : shared[VAL_MAX_LEAD - 1 - i];
      if (how == 2 && iso_rng_below(rng, 3) == 0) p->lead[v][rank - 1 - i] = 1;
    }
  }
}

/* Solve what has one name left; see that nothing is false. Returns: false where something is. */
static bool propagate(val_problem *p, iso_rng *rng) {
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < p->n_where; i++) {
      uint32_t which = 0;
      const val_truth v = val_condition_at(p, p->where[i]);
      if (v == VAL_FALSE) return false;
      if (v == VAL_TRUE) continue;
      if (!val_last_open(p, p->where[i], &which)) continue;
      if (!val_solve_last(p, p->where[i], which, rng)) return false;
      moved = true;
    }
  }
  return true;
}

bool val_names_hold(const val_problem *p) {
  for (uint32_t i = 0; i < p->n_where; i++)
    if (val_condition_at(p, p->where[i]) != VAL_TRUE) return false;
  for (uint32_t i = 0; i < p->n_names; i++)
    if (!p->name[i].set || (p->name[i].kind == 's' && p->name[i].i < 1)) return false;
  return true;
}

/* Give the names that are open values, in a random order, conditions solved as they become so. */
static bool complete(val_problem *p, iso_rng *rng) {
  if (!propagate(p, rng)) return false;
  const uint32_t start = p->n_names > 0 ? (uint32_t)iso_rng_below(rng, p->n_names) : 0;
  const bool back = iso_rng_below(rng, 2) == 0;
  for (uint32_t k = 0; k < p->n_names; k++) {
    val_name *n = &p->name[(start + (back ? p->n_names - k : k)) % p->n_names];
    if (n->set) continue;
    draw_name(p, n, rng);
    if (!propagate(p, rng)) return false;
  }
  return val_names_hold(p);
}

static bool some_integer(const val_problem *p) {
  for (uint32_t k = 0; k < p->n_names; k++)
    if (p->name[k].kind == 'i') return true;
  return false;
}

static uint32_t any_integer(const val_problem *p, iso_rng *rng) {
  const uint32_t start = (uint32_t)iso_rng_below(rng, p->n_names);
  for (uint32_t k = 0; k < p->n_names; k++)
    if (p->name[(start + k) % p->n_names].kind == 'i') return (start + k) % p->n_names;
  return p->n_names;
}

/* An integer attribute as far as the conditions let it go, one way or the other, or equal to
 * another: a condition that is off by one fails only there. */
static void to_the_edge(val_problem *p, iso_rng *rng) {
  enum { FAR = 12 };
  const uint32_t at = any_integer(p, rng);
  uint32_t other = any_integer(p, rng);
  if (other == at) other = any_integer(p, rng);
  int64_t *v = &p->name[at].i, was = *v;
  const uint64_t how = p->n_where ? iso_rng_below(rng, 3) : 2;
  if (how == 2) {
    *v = p->name[other].i;
    if (!val_names_hold(p)) *v = was;
    return;
  }
  for (int k = 0; k < FAR && val_names_hold(p); k++) was = *v, *v += how ? 1 : -1;
  *v = was;
}

/* How far the attribute may go in one direction, at most 16; it is put back. */
static double room_of(const val_problem *p, val_name *n, double sign) {
  const double was = n->f;
  double in = 0, out = 16;
  for (int k = 0; k < 40 && out - in > 1e-12; k++) {
    const double d = k == 0 ? out : (in + out) / 2;
    n->f = was + sign * d;
    if (!val_names_hold(p)) out = d;
    else in = d;
    if (in == out) break;
  }
  n->f = was;
  /* Conditions hold within a tolerance: what lies in that is beyond the bound. */
  return out == 0 || in == out ? in : fmax(0, in - 1e-8 * (fabs(was) + in + 1));
}

/* A real attribute within its bounds, close to one of them more often than not: solving finds the
 * bounds themselves, and of wide ones chance finds only the inside. */
static void to_the_bound(val_problem *p, iso_rng *rng) {
  for (uint32_t k = 0; k < p->n_names; k++) {
    val_name *n = &p->name[k];
    if (n->kind != 'f' || n->hidden) continue;
    const double sign = iso_rng_below(rng, 2) ? 1 : -1, was = n->f, room = room_of(p, n, sign);
    const double back = fmin(1, pow(10, -(double)iso_rng_below(rng, 7)) / fmax(room, 1e-12));
    if (room == 0 || room == 16) continue;
    n->f = was + sign * room * (1 - back * iso_rng_uniform(rng));
    if (!val_names_hold(p)) n->f = was;
  }
}

bool val_draw_names(val_problem *p, iso_rng *rng) {
  for (int i = 0; i < DRAWS; i++) {
    for (uint32_t k = 0; k < p->n_names; k++) p->name[k].set = false;
    if (p->pinned) draw_name(p, &p->name[p->pinned - 1], rng);
    draw_leads(p, rng);
    if (!complete(p, rng)) continue;
    if (some_integer(p) && iso_rng_below(rng, p->n_where ? 2 : 4) == 0) to_the_edge(p, rng);
    if (p->n_where && iso_rng_below(rng, 2)) to_the_bound(p, rng);
    return true;
  }
  return false;
}

/* ---- the rule at these values ---- */

static const rule_term *substitute(const val_problem *p, iso_arena *a, const rule_arg *arg,
                                   const rule_term *t);

static const rule_term *substitute_children(const val_problem *p, iso_arena *a, const rule_arg *arg,
                                            const rule_term *t) {
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(p->schemas, t->u.s) : NULL;
  if (child == NULL) return NULL;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_arg *formal = s != NULL && i < s->n_args ? &s->arg[i]
                             : t->kind == RULE_LIST     ? arg
                                                        : NULL;
    child[i] = substitute(p, a, formal, t->child[i]);
    const rule_term *fitted = child[i];
    /* An integer for a real argument becomes a float, and the like. */
    if (child[i] != NULL && t->kind == RULE_OP && formal != NULL && t->child[i]->kind != RULE_OP &&
        t->child[i]->kind != RULE_VAR &&
        rule_arg_value(a, formal, child[i], &fitted, NULL) == ISO_OK)
      child[i] = fitted;
  }
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

static const rule_term *substitute(const val_problem *p, iso_arena *a, const rule_arg *arg,
                                   const rule_term *t) {
  if (t->kind == RULE_OP || t->kind == RULE_LIST) return substitute_children(p, a, arg, t);
  int64_t v;
  if (t->kind == RULE_EXPR && val_size_at(p, t, &v)) return rule_int(a, v);
  double real;
  if (t->kind == RULE_EXPR) return val_real_at(p, t, &real) ? rule_float(a, real) : NULL;
  if (t->kind != RULE_NAME) return t;
  for (uint32_t i = 0; i < p->n_names; i++) {
    const val_name *n = &p->name[i];
    if (strcmp(n->name, t->u.s) != 0) continue;
    if (n->kind == 'f') return rule_float(a, n->f);
    if (n->kind != 'l') return rule_int(a, n->i);
    const rule_term *item[VAL_MAX_LIST];
    for (uint32_t k = 0; k < n->n; k++) item[k] = rule_int(a, n->list[k]);
    return rule_list(a, item, n->n);
  }
  return t;
}

iso_code val_instantiate(const val_problem *p, iso_arena *a, rule *out, iso_error *err) {
  const rule *r = p->r;
  const int64_t most = p->pinned ? MAX_PINNED : MAX_NUMEL;
  *out = *r;
  rule_variable *var = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *var);
  if (var == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t v = 0; v < r->n_vars; v++) {
    const rule_variable *x = &r->var[v];
    const uint32_t lead = p->lead_rank[v];
    const rule_term **dim = iso_arena_alloc(a, (lead + x->n_dims + 1) * sizeof *dim);
    if (dim == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
    int64_t numel = 1;
    for (uint32_t d = 0; d < lead + x->n_dims; d++) {
      int64_t size = 0;
      if (d < lead) size = p->lead[v][d];
      else if (x->dim[d - lead]->kind == RULE_NONE) {
        const val_name *n = hidden_of(p, x->name, d - lead);
        size = n != NULL ? n->i : 0;
      } else if (!val_size_at(p, x->dim[d - lead], &size)) size = 0;
      if (size < (x->n_dims > 0 && d >= lead && x->dim[d - lead]->kind == RULE_INT ? 0 : 1) ||
          numel > most || (size > most && p->open))
        return iso_fail(err, ISO_UNSUPPORTED, "a size of %s is out of range", x->name);
      if (size > 0) numel *= size;
      if ((dim[d] = rule_int(a, size)) == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
    }
    if (numel > most && p->open)
      return iso_fail(err, ISO_UNSUPPORTED, "%s has too many elements", x->name);
    var[v] =
        (rule_variable){.name = x->name, .kind = x->kind, .n_dims = lead + x->n_dims, .dim = dim};
    int64_t limit;
    if (x->low != NULL) {
      if (!val_size_at(p, x->low, &limit))
        return iso_fail(err, ISO_UNSUPPORTED, "the range of %s has no number", x->name);
      var[v].low = rule_int(a, limit);
    }
    if (x->high != NULL) {
      if (!val_size_at(p, x->high, &limit))
        return iso_fail(err, ISO_UNSUPPORTED, "the range of %s has no number", x->name);
      var[v].high = rule_int(a, limit);
    }
  }
  out->var = var;
  out->n_attrs = out->n_where = 0;
  out->lhs = substitute(p, a, NULL, r->lhs);
  out->rhs = substitute(p, a, NULL, r->rhs);
  if (out->lhs == NULL || out->rhs == NULL)
    return iso_fail(err, ISO_UNSUPPORTED, "an attribute has no value");
  return rule_share(a, out) ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* ---- what the operators ask for ---- */

/* Whether both sides run: how many operators did, and the first refusal. Errors: ISO_NOMEM. */
static iso_code try_instance(val_engine *e, const rule *r, iso_rng *rng, size_t *score, bool *ok,
                             char *why, iso_error *err) {
  rule_tensor *bind[VAL_MAX_VARS] = {NULL}, *x = NULL;
  iso_error local;
  val_probe p = {0};
  bool empty = true; /* both: of one alone, the shapes differ */
  *ok = false;
  iso_code c = val_sample(e, r, NULL, rng, VAL_PLAIN, false, bind, &local);
  for (int side = 0; side < 2 && !c; side++) {
    c = val_eval_probe(e, side ? r->rhs : r->lhs, bind, &p, &x, &local);
    if (c) break;
    empty &= x->numel == 0;
    rule_tensor_unref(x);
  }
  *score = p.n_run;
  *ok = !c && !empty;
  if (!c && empty) snprintf(why, 200, "the result has no elements");
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  if (c) snprintf(why, 200, "%.199s", local.msg);
  return c == ISO_NOMEM ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
}

/* Draw one or two things anew; the rest stays where the conditions let it. */
static bool vary(val_problem *p, iso_rng *rng) {
  for (int attempt = 0; attempt < 8; attempt++) {
    if (iso_rng_below(rng, 3) == 0 || p->n_names == 0) draw_leads(p, rng);
    const uint64_t n = 1 + iso_rng_below(rng, 2);
    for (uint64_t k = 0; k < n && p->n_names > 0; k++) {
      val_name *x = &p->name[iso_rng_below(rng, p->n_names)];
      draw_name(p, x, rng);
    }
    if (val_names_hold(p)) return true;
    /* What an equation ties together moves together. */
    for (uint32_t k = 0; k < p->n_names; k++)
      if (iso_rng_below(rng, 3) == 0) p->name[k].set = false;
    if (!complete(p, rng)) continue;
    if (some_integer(p) && iso_rng_below(rng, p->n_where ? 2 : 4) == 0) to_the_edge(p, rng);
    return true;
  }
  return val_draw_names(p, rng);
}

/* The same instance with attributes where they matter, as far as both sides run there. */
static iso_code twist(val_engine *e, val_problem *p, iso_rng *rng, iso_error *err) {
  const val_problem plain = *p;
  iso_arena a = {0};
  iso_error local;
  rule r;
  size_t score = 0;
  bool ok = false;
  char why[200];
  iso_code c = ISO_OK;
  p->twisted = false;
  if (val_twist(p) && val_instantiate(p, &a, &r, &local) == ISO_OK)
    c = try_instance(e, &r, rng, &score, &ok, why, err);
  iso_arena_fini(&a);
  const unsigned turn = p->turn;
  if (!ok) *p = plain;
  p->turn = turn;
  p->twisted = ok;
  return c;
}

iso_code val_find_instance(val_engine *e, val_problem *p, iso_rng *rng, iso_arena *a, rule *out,
                           bool *found, char *why, iso_error *err) {
  val_problem best = *p;
  size_t best_score = 0;
  *found = false;
  if (!val_draw_names(p, rng)) {
    snprintf(why, 200, "no sizes and attributes were found that meet the conditions");
    return ISO_OK;
  }
  const int tries = p->pinned ? PINNED_TRIES : TRIES;
  for (int i = 0; i < tries; i++) {
    iso_arena scratch = {0};
    iso_error local;
    rule r;
    size_t score = 0;
    bool ok = false;
    iso_code c = val_instantiate(p, &scratch, &r, &local);
    if (c == ISO_OK) c = try_instance(e, &r, rng, &score, &ok, why, &local);
    else snprintf(why, 200, "%.199s", local.msg);
    iso_arena_fini(&scratch);
    if (c == ISO_NOMEM) return iso_fail(err, c, "out of memory");
    if (ok) {
      *found = true;
      c = twist(e, p, rng, err);
      return c ? c : val_instantiate(p, a, out, err);
    }
    if (score >= best_score) best = *p, best_score = score;
    else *p = best;
    if (i == 39)
      p->roomy = false,
      p->max_size = p->max_size > 4 ? 4 : p->max_size; /* what seldom fits is looked for among small
                                                          ones, which cost little */
    if (i % 40 == 39 ? !val_draw_names(p, rng) : !vary(p, rng)) return ISO_OK;
    if (i % 40 == 39) best_score = 0;
  }
  return ISO_OK;
}
