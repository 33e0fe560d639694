/* Counterexamples made small: fewer elements first, then values that a reader can check by hand.
 *
 * A smaller instance is drawn anew and tried with every kind of value; on the smallest, values are
 * replaced one by one by small integers as long as the sides still differ. Greedy, bounded by the
 * number of trials. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/oracle_int.h"
#include "validate/sample/sample_int.h"

enum { SHAPE_TRIALS = 240, VALUE_TRIALS = 260, SMALL_FILLS = 24, READABLE = 1 << 14 };

static void counterexample_fini(val_counterexample *w) {
  for (uint32_t i = 0; w->bind != NULL && i < w->r->n_vars; i++) rule_tensor_unref(w->bind[i]);
  free(w->bind);
  rule_tensor_unref(w->lhs);
  rule_tensor_unref(w->rhs);
  iso_arena_fini(&w->arena);
  *w = (val_counterexample){0};
}

void val_finding_free(val_finding *f) {
  if (f == NULL) return;
  counterexample_fini(&f->counterexample);
}

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- keeping one ---- */

static const rule *copy_instance(iso_arena *a, const rule *r) {
  rule *n = iso_arena_alloc(a, sizeof *n);
  rule_variable *var = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *var);
  if (n == NULL || var == NULL) return NULL;
  *n = *r;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_variable *v = &r->var[i];
    const rule_term **dim = iso_arena_alloc(a, (v->n_dims + 1) * sizeof *dim);
    if (dim == NULL) return NULL;
    var[i] = *v;
    for (uint32_t d = 0; d < v->n_dims; d++)
      if ((dim[d] = rule_term_copy(a, v->dim[d])) == NULL) return NULL;
    var[i].dim = dim;
    var[i].low = v->low != NULL ? rule_term_copy(a, v->low) : NULL;
    var[i].high = v->high != NULL ? rule_term_copy(a, v->high) : NULL;
  }
  n->var = var;
  n->lhs = rule_term_copy(a, r->lhs);
  n->rhs = rule_term_copy(a, r->rhs);
  return n->lhs != NULL && n->rhs != NULL ? n : NULL;
}

static const rule_term *name_value(iso_arena *a, const val_name *n) {
  if (n->kind == 'f') return rule_float(a, n->f);
  if (n->kind != 'l') return rule_int(a, n->i);
  const rule_term *item[VAL_MAX_LIST];
  for (uint32_t i = 0; i < n->n; i++) item[i] = rule_int(a, n->list[i]);
  return rule_list(a, item, n->n);
}

static bool copy_names(val_counterexample *w, const val_problem *p) {
  const char **name = iso_arena_alloc(&w->arena, (p->n_names + 1) * sizeof *name);
  const rule_term **value = iso_arena_alloc(&w->arena, (p->n_names + 1) * sizeof *value);
  if (name == NULL || value == NULL) return false;
  for (uint32_t i = 0; i < p->n_names; i++) {
    if (p->name[i].hidden) continue;
    name[w->n_names] = iso_arena_strdup(&w->arena, p->name[i].name);
    value[w->n_names] = name_value(&w->arena, &p->name[i]);
    if (name[w->n_names] == NULL || value[w->n_names] == NULL) return false;
    w->n_names++;
  }
  w->name = name;
  w->value = value;
  return true;
}

iso_code val_counterexample_take(val_counterexample *w, const val_problem *p, const rule *r,
                                 rule_tensor *const *bind, const val_trial *t, iso_error *err) {
  val_counterexample n = {
      .found = true, .what = t->what, .index = t->index, .max_abs = t->abs, .max_rel = t->rel};
  n.r = copy_instance(&n.arena, r);
  n.bind = calloc(r->n_vars + 1, sizeof *n.bind);
  if (n.r == NULL || n.bind == NULL || !copy_names(&n, p)) {
    free(n.bind);
    iso_arena_fini(&n.arena);
    return no_memory(err);
  }
  for (uint32_t i = 0; i < r->n_vars; i++) n.bind[i] = rule_tensor_ref(bind[i]);
  n.lhs = rule_tensor_ref(t->lhs);
  n.rhs = rule_tensor_ref(t->rhs);
  counterexample_fini(w);
  *w = n;
  return ISO_OK;
}

/* ---- smaller shapes ---- */

static int64_t elements(const rule *r) {
  int64_t n = 0;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    int64_t one = 1;
    for (uint32_t d = 0; d < r->var[v].n_dims; d++) one *= r->var[v].dim[d]->u.i;
    n += 16 * one + r->var[v].n_dims; /* of two with equally many elements, the lower rank */
  }
  return n;
}

typedef struct search {
  val_engine *e;
  val_counterexample *w;
  val_problem *p;
  iso_rng *rng;
  bool strict;
  int trials;
} search;

/* Try the instance on values; a clear difference is kept. */
static iso_code attempt(search *s, const rule *r, rule_tensor *const *bind, bool *kept,
                        iso_error *err) {
  val_trial t = {0};
  *kept = false;
  s->trials++;
  const val_trying how = {s->rng, val_engine_options(s->e)->rel_tol, s->strict, s->strict};
  iso_code c = val_try(s->e, r, bind, &how, &t, err);
  if (!c) c = val_trial_settle(s->e, r, bind, false, &t, err);
  if (!c && t.outcome == VAL_DIFFER && !(t.soft && !(s->w->max_rel < 1e-6))) {
    c = val_counterexample_take(s->w, s->p, r, bind, &t, err);
    *kept = !c;
  }
  val_trial_fini(&t);
  return c;
}

/* Every kind of value on it, where it has fewer elements. */
static iso_code try_values(search *s, const rule *r, bool *kept, iso_error *err) {
  iso_code c = ISO_OK;
  if (elements(r) >= elements(s->w->r)) return ISO_OK;
  for (unsigned k = 0; k < VAL_ALL_KINDS && !c && !*kept; k++) {
    rule_tensor *bind[RULE_MAX_VARS] = {NULL};
    if (val_sample(s->e, r, NULL, s->rng, k, bind, err)) break;
    c = attempt(s, r, bind, kept, err);
    for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  }
  return c;
}

static iso_code smaller_instance(search *s, bool *kept, iso_error *err) {
  iso_arena a = {0};
  val_found at;
  iso_code c = val_find_instance(s->e, s->p, s->rng, &a, &at, err);
  s->trials++;
  if (!c && at.found) c = try_values(s, &at.r, kept, err);
  iso_arena_fini(&a);
  return c;
}

/* Try the names as they are set now; where that fails they are as they were. */
static iso_code try_set(search *s, const val_problem *was, bool *kept, iso_error *err) {
  iso_arena a = {0};
  iso_error local;
  rule r;
  iso_code c = ISO_OK;
  if (val_names_hold(s->p) && val_instantiate(s->p, &a, &r, &local) == ISO_OK)
    c = try_values(s, &r, kept, err);
  iso_arena_fini(&a);
  if (!*kept) *s->p = *was;
  return c;
}

/* All that is `from` among sizes and integers, or the name `only` alone. */
static void set_sizes(val_problem *p, uint32_t only, bool alone, int64_t from, int64_t to) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (alone ? i == only
              : (p->name[i].kind == 's' || p->name[i].kind == 'i') && p->name[i].i == from)
      p->name[i].i = to;
}

static iso_code lower_names(search *s, const val_problem *was, bool *kept, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < was->n_names; i++)
    for (int64_t to = 1; was->name[i].kind == 's' && to < was->name[i].i && to <= 8; to++)
      for (int alone = 1; alone >= 0; alone--) {
        if (c || *kept || s->trials >= SHAPE_TRIALS) return c;
        set_sizes(s->p, i, alone, was->name[i].i, to);
        c = try_set(s, was, kept, err);
      }
  return c;
}

/* Open dimensions from the outside in: none, or all that stand in one place shorter. */
static iso_code lower_leads(search *s, const val_problem *was, bool *kept, iso_error *err) {
  iso_code c = ISO_OK;
  uint32_t most = 0;
  for (uint32_t v = 0; v < was->r->n_vars; v++)
    most = was->lead_rank[v] > most ? was->lead_rank[v] : most;
  for (uint32_t place = most; place > 0; place--) /* counted from the inside */
    for (int64_t to = 0; to < 4; to++) {
      if (c || *kept || s->trials >= SHAPE_TRIALS) return c;
      bool moved = false;
      for (uint32_t v = 0; v < was->r->n_vars; v++) {
        const uint32_t n = s->p->lead_rank[v];
        int64_t *lead = s->p->lead[v];
        if (n < place || (to > 0 && lead[n - place] <= to)) continue;
        moved = true;
        if (to > 0) lead[n - place] = to;
        else
          memmove(lead + n - place, lead + n - place + 1, (place - 1) * sizeof *lead),
              s->p->lead_rank[v]--;
      }
      if (moved) c = try_set(s, was, kept, err);
    }
  return c;
}

/* One size after another, until none can be less. */
static iso_code lower_sizes(search *s, iso_error *err) {
  iso_code c = ISO_OK;
  val_problem *was = malloc(sizeof *was);
  if (was == NULL) return no_memory(err);
  val_problem_set(s->p, s->w);
  for (bool kept = true; kept && !c && s->trials < SHAPE_TRIALS;) {
    kept = false;
    *was = *s->p;
    c = lower_leads(s, was, &kept, err);
    if (!c && !kept) c = lower_names(s, was, &kept, err);
  }
  free(was);
  return c;
}

static iso_code shrink_shapes(search *s, iso_error *err) {
  iso_code c = ISO_OK;
  s->p->roomy = false;
  for (int64_t size = 1; size <= 4 && !c; size++) {
    s->p->max_size = size;
    for (int i = 0; i < 8 && s->trials < SHAPE_TRIALS / 2 && !c; i++) {
      bool kept = false;
      c = smaller_instance(s, &kept, err);
    }
  }
  return c ? c : lower_sizes(s, err);
}

/* ---- smaller values ---- */

static iso_code copy_tensor(const rule_tensor *t, rule_tensor **out, iso_error *err) {
  iso_code c = rule_tensor_new(t->dtype, &t->shape, out, err);
  if (!c) memcpy((*out)->data, t->data, (size_t)t->numel * rule_dtype_size(t->dtype));
  return c;
}

/* All floats at once: integers up to `bound`. */
static iso_code small_fill(search *s, int64_t bound, bool *kept, iso_error *err) {
  const rule *r = s->w->r; /* until a smaller one is kept */
  const uint32_t n_vars = r->n_vars;
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < n_vars && !c; i++) {
    if (r->var[i].kind != 'f') {
      bind[i] = rule_tensor_ref(s->w->bind[i]);
      continue;
    }
    c = copy_tensor(s->w->bind[i], &bind[i], err);
    for (int64_t j = 0; !c && j < bind[i]->numel; j++)
      rule_tensor_set(bind[i], j,
                      (double)((int64_t)iso_rng_below(s->rng, (uint64_t)(2 * bound + 1)) - bound));
  }
  if (!c) c = attempt(s, r, bind, kept, err);
  for (uint32_t i = 0; i < n_vars; i++) rule_tensor_unref(bind[i]);
  return c;
}

/* One number of one tensor. */
static iso_code change(search *s, uint32_t var, int64_t at, double to, bool *kept, iso_error *err) {
  const rule *r = s->w->r;
  rule_tensor *bind[RULE_MAX_VARS];
  for (uint32_t i = 0; i < r->n_vars; i++) bind[i] = s->w->bind[i];
  iso_code c = copy_tensor(s->w->bind[var], &bind[var], err);
  if (c) return c;
  rule_tensor *fresh = bind[var];
  rule_tensor_set(fresh, at, to);
  c = attempt(s, r, bind, kept, err);
  rule_tensor_unref(fresh);
  return c;
}

static double simplicity(double v) {
  if (v == 0 || v == 1) return v;
  if (!(fabs(v) < 1e15)) return INFINITY;
  return v == nearbyint(v)                             ? 2 + fabs(v)
         : 2 * v == nearbyint(2 * v) && fabs(v) < 1000 ? 1000 + fabs(v)
                                                       : 1e16;
}

/* Whether x lies within the rule's bounds on the variable. */
static bool allowed(const rule_variable *v, double x) {
  return (v->low == NULL || x >= (double)v->low->u.i) &&
         (v->high == NULL || x < (double)v->high->u.i);
}

static iso_code shrink_number(search *s, uint32_t v, int64_t i, iso_error *err) {
  iso_code c = ISO_OK;
  for (bool kept = true; kept && !c;) {
    const double was = rule_tensor_get(s->w->bind[v], i);
    const double to[] = {0,
                         1,
                         -1,
                         2,
                         -2,
                         0.5,
                         -0.5,
                         1.5,
                         -1.5,
                         nearbyint(was),
                         nearbyint(2 * was) / 2,
                         trunc(was / 2),
                         was - copysign(1, was)};
    const bool floats = s->w->r->var[v].kind == 'f';
    kept = false;
    for (size_t k = 0; k < sizeof to / sizeof *to && !kept && !c && s->trials < VALUE_TRIALS; k++)
      if (simplicity(to[k]) < simplicity(was) && allowed(&s->w->r->var[v], to[k]) &&
          (floats || to[k] == nearbyint(to[k])))
        c = change(s, v, i, to[k], &kept, err);
    if (s->trials >= VALUE_TRIALS) break;
  }
  return c;
}

static iso_code shrink_numbers(search *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t v = 0; v < s->w->r->n_vars && !c; v++)
    for (int64_t i = 0; s->w->r->var[v].kind != 'c' && i < s->w->bind[v]->numel && !c; i++)
      c = shrink_number(s, v, i, err);
  return c;
}

iso_code val_counterexample_shrink(val_engine *e, val_counterexample *w, val_problem *p,
                                   iso_rng *rng, bool strict, iso_error *err) {
  search s = {.e = e, .w = w, .p = p, .rng = rng, .strict = strict};
  iso_code c = p->open ? shrink_shapes(&s, err) : ISO_OK;
  s.trials = 0;
  bool kept = false;
  /* The names belong to the instance that is kept, and are copied anew with every smaller one. */
  val_problem_set(p, w);
  for (int64_t bound = 1; bound <= 4 && !kept && !c; bound *= 2)
    for (int i = 0; i < SMALL_FILLS / 3 && !kept && !c; i++) c = small_fill(&s, bound, &kept, err);
  return c || elements(w->r) > READABLE ? c : shrink_numbers(&s, err);
}

void val_counterexample_describe(const val_counterexample *w, rule_verdict *out) {
  char x[100], y[100], at[120] = "";
  size_t n = 0;
  for (uint32_t i = 0; i < w->n_names && n < sizeof at - 40; i++) {
    const rule_term *v = w->value[i];
    if (v->kind == RULE_LIST) continue;
    n += (size_t)snprintf(
        at + n, sizeof at - n, v->kind == RULE_INT ? "%s%.20s = %.0f" : "%s%.20s = %g",
        n ? ", " : " at ", w->name[i], v->kind == RULE_INT ? (double)v->u.i : v->u.f);
    if (n > sizeof at - 1) n = sizeof at - 1;
  }
  if (w->what == 's')
    snprintf(out->reason, sizeof out->reason, "the sides have shapes %s and %s%s",
             rule_shape_print(&w->lhs->shape, x, sizeof x),
             rule_shape_print(&w->rhs->shape, y, sizeof y), at);
  else if (w->what == 'd')
    snprintf(out->reason, sizeof out->reason, "the sides are %s and %s%s",
             rule_dtype_name(w->lhs->dtype), rule_dtype_name(w->rhs->dtype), at);
  else if (!(fabs(rule_tensor_get(w->lhs, w->index) - rule_tensor_get(w->rhs, w->index)) >
             w->max_abs / 2) &&
           w->max_abs > 0)
    snprintf(out->reason, sizeof out->reason,
             "element %lld differs by %.3g over the reals, which float64 rounds away%s",
             (long long)w->index, w->max_abs, at);
  else
    snprintf(out->reason, sizeof out->reason,
             w->max_rel > 1e-6 ? "element %lld is %.8g and %.8g%s"
                               : "element %lld is %.17g and %.17g%s",
             (long long)w->index, rule_tensor_get(w->lhs, w->index),
             rule_tensor_get(w->rhs, w->index), at);
}
