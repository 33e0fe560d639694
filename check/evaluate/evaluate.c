/* Sizes, draws and the comparison of an evaluation (evaluate.h). */
#include "check/evaluate/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/evaluate/evaluate_int.h"
#include "egraph/base/rng.h"
#include "rules/masks.h"

enum { MAX_NAMES = 64, MAX_LITERALS = 32, BESIDE = 7, LEAST_DRAWN = 4, MOST_DRAWN = 40 };
enum { OTHER_SIZES = 2, TRIES = 60 };
enum {
  LIMIT = 1 << 20,
  ENOUGH = 1 << 16
}; /* work of one evaluation, and of a rule, from where on it is drawn less */

static const double informative =
    1e-9; /* a ball that is wider, relative to the largest number, shows nothing */

typedef struct assigned {
  const char *name;
  char kind; /* 'i', 'f' or 'l' */
  rule_term value;
  const rule_term *list;
  bool set;
} assigned;

typedef struct instance {
  const chk_evaluated *x;
  const rule *r;
  assigned name[MAX_NAMES];
  uint32_t n_names;
  bool captured; /* the sizes and shapes of the certificate's step */
  bool reading;
  double literal[MAX_LITERALS];
  double bound;                  /* of what is drawn */
  uint32_t n_literals, n_beside; /* n_beside: drawn at or beside literals so far */
  int64_t work;
  iso_rng rng, shapes; /* shapes: from its start in each draw */
  char *seen;          /* by element of the sides: compared */
  int64_t n_seen;
  bool nomem;
  chk_evaluation *out;
} instance;

/* ---- names ---- */

static const assigned *find(const instance *k, const char *name) {
  for (uint32_t i = 0; i < k->n_names; i++)
    if (strcmp(k->name[i].name, name) == 0) return &k->name[i];
  return NULL;
}

static bool value_of(const void *ctx, const char *name, rule_term *out) {
  const assigned *a = find(ctx, name);
  if (!a || !a->set || a->kind == 'l') return false;
  *out = a->value;
  return true;
}

static const rule_term *list_of(const void *ctx, const char *name) {
  const assigned *a = find(ctx, name);
  return a ? a->list : NULL;
}

static rule_values values_of(const instance *k, double tol) {
  return (rule_values){value_of, k, tol};
}

static void note_name(instance *k, const char *name) {
  if (find(k, name) || k->n_names == MAX_NAMES) return;
  assigned *a = &k->name[k->n_names++];
  *a = (assigned){.name = name, .kind = 'i'};
  for (uint32_t i = 0; i < k->r->n_attrs; i++)
    if (strcmp(k->r->attr[i].name, name) == 0) a->kind = k->r->attr[i].kind;
  for (uint32_t i = 0; i < k->x->n_names; i++)
    if (strcmp(k->x->name[i], name) == 0) {
      a->value = *k->x->value[i];
      a->list = a->kind == 'l' ? k->x->value[i] : NULL;
      a->set = true;
    }
}

static void note_names(instance *k, const rule_term *t) {
  if (t->kind == RULE_NAME) note_name(k, t->u.s);
  for (uint32_t i = 0; i < t->n; i++) note_names(k, t->child[i]);
}

static void note_all_names(instance *k) {
  for (uint32_t i = 0; i < k->r->n_vars; i++)
    for (uint32_t d = 0; d < k->r->var[i].n_dims; d++) note_names(k, k->r->var[i].dim[d]);
  note_names(k, k->r->lhs);
  note_names(k, k->r->rhs);
  for (uint32_t i = 0; i < k->r->n_where; i++) note_names(k, k->r->where[i]);
}

static bool conditions_hold(const instance *k, double tol) {
  const rule_values v = values_of(k, tol);
  for (uint32_t i = 0; i < k->r->n_where; i++)
    if (rule_condition_at(k->r->where[i], &v) != RULE_TRUE) return false;
  return true;
}

/* ---- other sizes ---- */

static bool mentions(const rule_term *t, const char *name) {
  if (t->kind == RULE_NAME) return strcmp(t->u.s, name) == 0;
  for (uint32_t i = 0; i < t->n; i++)
    if (mentions(t->child[i], name)) return true;
  return false;
}

static bool is_size(const rule *r, const char *name) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (mentions(r->var[i].dim[d], name)) return true;
  return false;
}

/* A positive real for which `condition`, an equation, holds: by halving between powers of ten. */
static bool solve(instance *k, assigned *a, const rule_term *condition) {
  const rule_values v = values_of(k, -1);
  double low = 1e-9, high = 1e9, at_low = 0;
  a->value.kind = RULE_FLOAT;
  a->set = true;
  for (int i = 0; i < 400 && low < high; i++) {
    const double at = i == 0   ? low
                      : i == 1 ? high
                      : i < 80 ? sqrt(low * high)
                               : low + (high - low) / 2;
    a->value.u.f = at;
    const double d =
        rule_number_at(condition->child[0], &v) - rule_number_at(condition->child[1], &v);
    if (isnan(d)) return false;
    if (i == 0) at_low = d;
    else if (i == 1 && (d > 0) == (at_low > 0)) return false;
    else if (d == 0) break;
    else if (i > 1 && (at <= low || at >= high)) break;
    else if (i > 1 && (d > 0) == (at_low > 0)) low = at;
    else if (i > 1) high = at;
  }
  return true;
}

static void choose_real(instance *k, assigned *a) {
  static const double usual[] = {0.5, 1, 2, 0.125, 3, 1e-5, 0.75};
  for (uint32_t i = 0; i < k->r->n_where; i++) {
    const rule_term *c = k->r->where[i];
    if (c->kind == RULE_EXPR && c->n == 2 && strcmp(c->u.s, "=") == 0 && mentions(c, a->name) &&
        solve(k, a, c))
      return;
  }
  a->value = (rule_term){.kind = RULE_FLOAT,
                         .u = {.f = usual[iso_rng_below(&k->rng, sizeof usual / sizeof *usual)]}};
  a->set = true;
}

/* Small sizes; other integers stay, or are small; reals meet the conditions where they can be
 * solved for. Lists stay. */
static bool choose_sizes(instance *k) {
  for (uint32_t i = 0; i < k->n_names; i++) {
    assigned *a = &k->name[i];
    const bool size = is_size(k->r, a->name), keep = a->set && !size && iso_rng_below(&k->rng, 2);
    if (a->kind == 'l' && !a->set) return false;
    if (a->kind != 'i' || keep) continue;
    a->value = (rule_term){.kind = RULE_INT,
                           .u = {.i = (int64_t)iso_rng_below(&k->rng, 4) + (size ? 1 : 0)}};
    a->set = true;
  }
  for (uint32_t i = 0; i < k->n_names; i++)
    if (k->name[i].kind == 'f' && (!k->name[i].set || !conditions_hold(k, 1e-15)))
      choose_real(k, &k->name[i]);
  return conditions_hold(k, 1e-15);
}

/* ---- shapes ---- */

static bool shape_of(const instance *k, const rule_variable *v, const rule_tensor *like,
                     const int64_t *common, iso_rng *rng, uint32_t *rank, int64_t *dim) {
  const rule_values values = values_of(k, -1);
  const uint32_t lead =
      like ? like->shape.rank - (like->shape.rank < v->n_dims ? like->shape.rank : v->n_dims) : 2;
  *rank = v->any_shape || v->leading ? lead : 0;
  for (uint32_t d = 0; d < *rank; d++) dim[d] = like ? like->shape.dim[d] : common[d];
  for (uint32_t d = 0; d < v->n_dims; d++, ++*rank) {
    const bool unnamed = v->dim[d]->kind == RULE_NONE;
    int64_t n = 1 + (int64_t)iso_rng_below(rng, 3);
    if (*rank == RULE_MAX_RANK) return false;
    if (!unnamed && (!rule_size_at(v->dim[d], &values, &n) || n < 1)) return false;
    if (unnamed && like && *rank < like->shape.rank) n = like->shape.dim[*rank];
    dim[*rank] = n;
  }
  return true;
}

/* ---- draws ---- */

static void note_literals(instance *k, const rule_term *t) {
  rule_term v = *t;
  if (t->kind == RULE_NAME && !value_of(k, t->u.s, &v)) return;
  const double x = v.kind == RULE_FLOAT ? v.u.f : (double)v.u.i;
  bool fresh = (v.kind == RULE_FLOAT || v.kind == RULE_INT) && isfinite(x);
  for (uint32_t i = 0; i < k->n_literals && fresh; i++) fresh = k->literal[i] != x;
  if (fresh && k->n_literals < MAX_LITERALS) k->literal[k->n_literals++] = x;
  for (uint32_t i = 0; i < t->n; i++) note_literals(k, t->child[i]);
}

/* Numbers beside masks are far from them (rules/masks.h). */
static double bound_of(const instance *k) {
  double bound = INFINITY;
  for (uint32_t i = 0; i < k->n_literals && k->x->masks; i++) {
    const double x = k->literal[i];
    if (x == RULE_MASK_F16) bound = fmin(bound, RULE_MASK_F16_BOUND);
    else if (rule_is_mask(RULE_F32, x)) bound = fmin(bound, RULE_MASK_BOUND);
  }
  return bound;
}

static bool coin(instance *k) { return iso_rng_below(&k->rng, 2) != 0; }

/* The literals and their neighbours, one after the other. */
static double beside_literal(instance *k, bool whole) {
  const uint32_t i = k->n_beside++, n = k->n_literals ? k->n_literals : 1;
  const double x = k->n_literals ? k->literal[i % n] : 0, root = sqrt(fabs(x));
  const double near = 1 + ldexp(coin(k) ? 1 : -1, -20);
  switch (i / n % BESIDE) {
  case 0: return x;
  case 1: return whole ? x + 1 : x * (1 + 0x1p-20);
  case 2: return whole ? x - 1 : x * (1 - 0x1p-20);
  case 3: return -x;
  case 4: return root * near;
  case 5: return -root * near;
  default: return x + (coin(k) ? 0.125 : -0.125);
  }
}

enum { FRACTIONS, POSITIVE, LITERALS, WIDE, AGAIN, MIXED, TIES, CAPTURED, KINDS };

static double draw_real(instance *k, int how) {
  const double small = ((double)iso_rng_below(&k->rng, 33) - 16) / 8;
  if (how == MIXED) how = coin(k) ? WIDE : coin(k) ? POSITIVE : FRACTIONS;
  switch (how) {
  case POSITIVE: return ((double)iso_rng_below(&k->rng, 24) + 1) / 8;
  case LITERALS:
  case AGAIN: {
    const double x = beside_literal(k, false);
    return fabs(x) > k->bound ? small : x;
  }
  case WIDE: return ldexp(iso_rng_normal(&k->rng), (int)iso_rng_below(&k->rng, 17) - 8);
  case TIES: return (double)iso_rng_below(&k->rng, 3) - 1;
  default: return small;
  }
}

static double draw_integer(instance *k, int how, const rule_tensor *like, int64_t most) {
  if ((how == FRACTIONS || how == CAPTURED) && like && like->numel)
    return rule_tensor_get(like, (int64_t)iso_rng_below(&k->rng, (uint64_t)like->numel));
  if (how == LITERALS || how == AGAIN) return nearbyint(beside_literal(k, true));
  return (double)iso_rng_below(&k->rng, how == POSITIVE || how == TIES ? 2
                                        : how == WIDE                  ? (uint64_t)most
                                                                       : 4);
}

static int64_t largest_size(ev *e, const rule *r) {
  int64_t most = 1;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; e->var[i] && d < e->var[i]->rank; d++)
      if (e->var[i]->dim[d] > most) most = e->var[i]->dim[d];
  return most;
}

static void fill(instance *k, ev *e, int how) {
  const int64_t most = largest_size(e, k->r);
  for (uint32_t i = 0; i < k->r->n_vars; i++) {
    const ev_tensor *t = e->var[i];
    const rule_tensor *like = k->x->example ? k->x->example[i] : NULL;
    for (int64_t j = 0; t && j < t->n; j++)
      t->v[j] = ball_exact(t->kind == 'f'   ? draw_real(k, how)
                           : t->kind == 'i' ? draw_integer(k, how, like, most)
                                            : (double)iso_rng_below(&k->rng, 2));
  }
}

/* ---- one draw ---- */

static chk_agreement stop(instance *k, chk_agreement as, const char *why) {
  snprintf(k->out->why, sizeof k->out->why, "%s", why);
  return as;
}

static bool shows(ball x) { return ball_known(x) && x.rad <= informative * fabsl(x.mid); }

/* At literals, which may be huge, that sides agree says little. */
static chk_agreement compare(instance *k, const ev_tensor *a, const ev_tensor *b,
                             bool at_literals) {
  char text[160];
  if (a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
    return stop(k, CHK_DIFFERS, "the sides have different shapes");
  if (!k->seen && !(k->seen = calloc((size_t)a->n + 1, 1)))
    return k->nomem = true, CHK_NOT_EVALUATED;
  if (k->n_seen >= 0 && k->n_seen != a->n) return stop(k, CHK_NOT_EVALUATED, "its shape varies");
  k->n_seen = a->n;
  for (int64_t i = 0; i < a->n; i++) {
    if (!ball_meet(a->v[i], b->v[i])) {
      snprintf(text, sizeof text, "element %lld is %.12Lg on the left and %.12Lg on the right",
               (long long)i, a->v[i].mid, b->v[i].mid);
      return stop(k, CHK_DIFFERS, text);
    }
    if (!at_literals && shows(a->v[i]) && shows(b->v[i])) k->seen[i] = 1;
  }
  return CHK_AGREES;
}

/* Both sides on the values drawn last. */
static chk_agreement both(instance *k, ev *e, bool at_literals) {
  e->work = 0;
  const ev_tensor *a = ev_eval(e, k->r->lhs), *b = a ? ev_eval(e, k->r->rhs) : NULL;
  k->work += e->work;
  return b ? compare(k, a, b, at_literals)
           : stop(k, CHK_NOT_EVALUATED, e->why ? e->why : "it cannot be evaluated");
}

static bool make_variables(instance *k, ev *e) {
  iso_rng rng = k->shapes;
  const int64_t common[2] = {1 + (int64_t)iso_rng_below(&rng, 3),
                             1 + (int64_t)iso_rng_below(&rng, 3)};
  e->var = ev_take(e, k->r->n_vars, sizeof *e->var);
  for (uint32_t i = 0; e->var && i < k->r->n_vars; i++) {
    const rule_variable *v = &k->r->var[i];
    const rule_tensor *like = k->captured && k->x->example ? k->x->example[i] : NULL;
    uint32_t rank;
    int64_t dim[RULE_MAX_RANK];
    if (v->kind == 'c') return ev_fail(e, "complex numbers") != NULL;
    if (!shape_of(k, v, like, common, &rng, &rank, dim))
      return ev_fail(e, "a variable has no shape") != NULL;
    if (!(e->var[i] = ev_new(e, v->kind, rank, dim))) return false;
  }
  return e->var != NULL;
}

/* Whether it speaks of other sizes than the step's. */
static bool has_sizes(const instance *k) {
  bool any = k->n_names > 0;
  for (uint32_t i = 0; i < k->r->n_vars; i++) {
    any |= k->r->var[i].any_shape || k->r->var[i].leading;
    for (uint32_t d = 0; d < k->r->var[i].n_dims; d++)
      any |= k->r->var[i].dim[d]->kind == RULE_NONE;
  }
  return any;
}

static bool has_narrow(const rule *r) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].narrow) return true;
  return false;
}

/* Where masks stand for minus infinity, a difference only due to their being finite is none.
 * Numbers here do not wrap, but integers of few bits do. */
static chk_agreement draw_once(instance *k, ev *e, int how) {
  e->masks = false;
  fill(k, e, how);
  const bool at_literals = how == LITERALS || how == AGAIN;
  const chk_agreement a = both(k, e, at_literals);
  if (a == CHK_DIFFERS && has_narrow(k->r))
    return stop(k, CHK_NOT_EVALUATED, "its integers may wrap");
  if (a != CHK_DIFFERS || !k->x->masks) return a;
  e->masks = true;
  return both(k, e, at_literals);
}

static chk_agreement draw_all(instance *k) {
  const rule_values values = values_of(k, 1e-15);
  chk_agreement a = CHK_AGREES;
  k->seen = NULL;
  k->n_seen = -1;
  const int64_t before = k->work;
  k->n_beside = 0;
  const int least = has_sizes(k) ? LEAST_DRAWN / 2 : LEAST_DRAWN; /* small ones are drawn more */
  k->shapes = iso_rng_new(iso_rng_next(&k->rng), 0);
  for (int i = 0; i < MOST_DRAWN && a == CHK_AGREES; i++) {
    const int how = i < KINDS ? i : i % 2 ? LITERALS : AGAIN;
    if (i >= least && k->work - before > ENOUGH) break;
    if (i >= KINDS && k->n_beside >= BESIDE * k->n_literals) break;
    ev e = {.r = k->r,
            .values = &values,
            .list = list_of,
            .reading = k->reading,
            .rounded = k->x->rounded,
            .limit = LIMIT};
    iso_arena_init(&e.arena);
    a = make_variables(k, &e) ? draw_once(k, &e, how) : stop(k, CHK_NOT_EVALUATED, e.why);
    k->nomem |= e.nomem;
    iso_arena_fini(&e.arena);
  }
  for (int64_t i = 0; i < k->n_seen && a == CHK_AGREES; i++)
    if (!k->seen[i])
      a = stop(k, CHK_NOT_EVALUATED, "some elements are defined on nothing that is drawn");
  free(k->seen);
  k->seen = NULL;
  return a;
}

/* ---- all sizes ---- */

/* Appends to the difference the sizes at which it is. */
static void name_sizes(const instance *k) {
  size_t n = strlen(k->out->why);
  for (uint32_t i = 0; i < k->n_names && n < sizeof k->out->why; i++) {
    const assigned *a = &k->name[i];
    if (a->kind == 'l') continue;
    char *to = k->out->why + n;
    const size_t room = sizeof k->out->why - n;
    const int wrote = a->value.kind == RULE_FLOAT
                          ? snprintf(to, room, ", %s %.17g", a->name, a->value.u.f)
                          : snprintf(to, room, ", %s %lld", a->name, (long long)a->value.u.i);
    n += wrote > 0 ? (size_t)wrote : 0;
  }
}

static bool complete(const instance *k) {
  for (uint32_t i = 0; i < k->n_names; i++)
    if (!k->name[i].set) return false;
  return true;
}

iso_code chk_evaluate(const chk_evaluated *x, chk_evaluation *out, iso_error *err) {
  instance k = {
      .x = x, .r = x->r, .rng = iso_rng_new(x->seed, 0x6576616c), .out = out, .captured = true};
  *out = (chk_evaluation){0};
  note_all_names(&k);
  const bool open = has_sizes(&k);
  instance at = k;
  for (int i = 0; i <= TRIES && !k.nomem && out->agreement != CHK_DIFFERS; i++) {
    char why[sizeof out->why];
    memcpy(why, out->why, sizeof why);
    if (i > 0 && (!open || out->n_sizes > OTHER_SIZES)) break;
    const iso_rng rng = at.rng;
    at = k;
    at.rng = rng;
    at.captured = i == 0;
    if (i == 0 ? !complete(&at) : !choose_sizes(&at)) continue;
    at.reading = x->reading || !conditions_hold(&at, -1);
    note_literals(&at, at.r->lhs);
    note_literals(&at, at.r->rhs);
    at.bound = bound_of(&at);
    const chk_agreement a = draw_all(&at);
    if (a == CHK_AGREES) out->n_sizes++;
    if (a == CHK_DIFFERS) name_sizes(&at);
    if (a == CHK_DIFFERS) out->agreement = a;
    else if (i > 0 && why[0])
      memcpy(out->why, why, sizeof why); /* of the step's own sizes, if there is something */
    k.nomem = at.nomem;
  }
  if (k.nomem) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (out->agreement == CHK_DIFFERS) return ISO_OK;
  out->agreement = out->n_sizes ? CHK_AGREES : CHK_NOT_EVALUATED;
  if (out->n_sizes) out->why[0] = 0;
  else if (!out->why[0])
    stop(&k, CHK_NOT_EVALUATED, "no sizes were found that meet its conditions");
  return ISO_OK;
}
