/* Instances of a rule: its terms at the values drawn, and operators asked (instance_int.h).
 *
 * The sizes that both sides accept are found by trial: an attempt is as good as the number of
 * operators that ran before one refused, and the best attempt is changed in one or two places. */
#include <stdio.h>
#include <string.h>

#include "rules/memo.h"
#include "validate/sample/instance_int.h"
#include "validate/sample/sample_int.h"

enum { TRIES = 400, PINNED_TRIES = 80 };
enum { MAX_NUMEL = 1 << 16, MAX_OF_MANY = 1 << 12, MAX_PINNED = 1 << 21 };
/* Elements of all results together: a rule of a hundred operators has as many of them. */
enum { MOST_DRAWN = 1 << 21, MOST_PINNED = 1 << 27 };

/* ---- the rule at these values ---- */

typedef struct substitution {
  const val_problem *p;
  iso_arena *a;
  rule_memo done; /* shared parts, by the argument that they stand for */
} substitution;

static const rule_term *substitute(substitution *s, const rule_arg *arg, const rule_term *t);

static const rule_term *substitute_children(substitution *s, const rule_arg *arg,
                                            const rule_term *t) {
  iso_arena *a = s->a;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  const rule_schema *of = t->kind == RULE_OP ? rule_schemas_find(s->p->schemas, t->u.s) : NULL;
  if (child == NULL) return NULL;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_arg *formal = of != NULL && i < of->n_args ? &of->arg[i]
                             : t->kind == RULE_LIST       ? arg
                                                          : NULL;
    child[i] = substitute(s, formal, t->child[i]);
    if (child[i] == NULL) return NULL;
    const rule_term *fitted = child[i];
    /* An integer for a real argument becomes a float, and the like. */
    if (t->kind == RULE_OP && formal != NULL && t->child[i]->kind != RULE_OP &&
        t->child[i]->kind != RULE_VAR &&
        rule_arg_value(a, formal, child[i], &fitted, NULL) == ISO_OK)
      child[i] = fitted;
  }
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

static const rule_term *substitute(substitution *s, const rule_arg *arg, const rule_term *t) {
  const val_problem *p = s->p;
  iso_arena *a = s->a;
  if (t->kind == RULE_OP || t->kind == RULE_LIST) {
    const rule_term *before = rule_memo_find(&s->done, t, arg);
    if (before) return before;
    before = substitute_children(s, arg, t);
    return before && rule_memo_put(&s->done, t, arg, before) ? before : NULL;
  }
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
  const int64_t most = p->pinned ? MAX_PINNED : p->many ? MAX_OF_MANY : MAX_NUMEL;
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
        const val_name *n = val_hidden_of(p, x->name, d - lead);
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
    var[v] = (rule_variable){.name = x->name,
                             .kind = x->kind,
                             .narrow = x->narrow,
                             .n_dims = lead + x->n_dims,
                             .dim = dim};
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
  substitution s = {.p = p, .a = a};
  out->lhs = substitute(&s, NULL, r->lhs);
  out->rhs = substitute(&s, NULL, r->rhs);
  rule_memo_free(&s.done);
  if (out->lhs == NULL || out->rhs == NULL)
    return iso_fail(err, ISO_UNSUPPORTED, "an attribute has no value");
  return rule_share(a, out) ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* ---- what the operators ask for ---- */

typedef struct attempt {
  size_t score;  /* how many operators ran */
  bool ok;       /* both sides did */
  char why[200]; /* else the first refusal */
} attempt;

/* Whether both sides run. Errors: ISO_NOMEM. */
static iso_code try_instance(val_engine *e, const val_problem *of, const rule *r, iso_rng *rng,
                             attempt *out, iso_error *err) {
  rule_tensor *bind[RULE_MAX_VARS] = {NULL}, *x = NULL;
  iso_error local;
  val_probe p = {.most = !of->open ? 0 : of->pinned ? MOST_PINNED : MOST_DRAWN};
  bool empty = true; /* both: of one alone, the shapes differ */
  out->ok = false;
  iso_code c = val_sample(e, r, NULL, rng, VAL_PLAIN, bind, &local);
  for (int side = 0; side < 2 && !c; side++) {
    c = val_eval_probe(e, side ? r->rhs : r->lhs, bind, &p, &x, &local);
    if (c) break;
    empty &= x->numel == 0;
    rule_tensor_unref(x);
  }
  out->score = p.n_run;
  out->ok = !c && !empty;
  if (!c && empty) snprintf(out->why, sizeof out->why, "the result has no elements");
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  if (c) snprintf(out->why, sizeof out->why, "%.199s", local.msg);
  /* Of sizes that were drawn a result may be larger than any memory: others are tried. */
  return c == ISO_NOMEM && !p.most ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
}

/* The same instance with attributes where they matter, as far as both sides run there. */
static iso_code twist(val_engine *e, val_problem *p, iso_rng *rng, iso_error *err) {
  const val_problem plain = *p;
  iso_arena a = {0};
  iso_error local;
  rule r;
  attempt at = {.ok = false};
  iso_code c = ISO_OK;
  p->twisted = false;
  if (val_twist(p) && val_instantiate(p, &a, &r, &local) == ISO_OK)
    c = try_instance(e, p, &r, rng, &at, err);
  iso_arena_fini(&a);
  const unsigned turn = p->turn;
  if (!at.ok) *p = plain;
  p->turn = turn;
  p->twisted = at.ok;
  return c;
}

iso_code val_find_instance(val_engine *e, val_problem *p, iso_rng *rng, iso_arena *a,
                           val_found *out, iso_error *err) {
  val_problem best = *p;
  size_t best_score = 0;
  out->found = false;
  out->tries = 0;
  out->why[0] = 0;
  if (!val_draw_names(p, rng)) {
    snprintf(out->why, sizeof out->why,
             "no sizes and attributes were found that meet the conditions");
    return ISO_OK;
  }
  const int tries = p->pinned ? PINNED_TRIES : TRIES;
  for (int i = 0; i < tries; i++) {
    iso_arena scratch = {0};
    iso_error local;
    rule r;
    attempt at = {.ok = false};
    out->tries++;
    iso_code c = val_instantiate(p, &scratch, &r, &local);
    if (c == ISO_OK) c = try_instance(e, p, &r, rng, &at, &local);
    else snprintf(at.why, sizeof at.why, "%.199s", local.msg);
    if (at.why[0]) snprintf(out->why, sizeof out->why, "%s", at.why);
    iso_arena_fini(&scratch);
    if (c == ISO_NOMEM) return iso_fail(err, c, "out of memory");
    if (at.ok) {
      out->found = true;
      c = twist(e, p, rng, err);
      return c ? c : val_instantiate(p, a, &out->r, err);
    }
    if (at.score >= best_score) best = *p, best_score = at.score;
    else *p = best;
    if (i == 39)
      p->roomy = false,
      p->max_size = p->max_size > 4 ? 4 : p->max_size; /* what seldom fits is looked for among small
                                                          ones, which cost little */
    if (i % 40 == 39 ? !val_draw_names(p, rng) : !val_vary_names(p, rng)) return ISO_OK;
    if (i % 40 == 39) best_score = 0;
  }
  return ISO_OK;
}
