/* Samples of events that chance does not bring about: conditions that hold together, integers that
 * crowd, values on the far side of a fill. */
#include "validate/branch/meet_int.h"

#include <stdlib.h>

enum { MEETS = 24, FEW = 4, MANY = 8, FILLS = 27, EACH = 400 };

typedef struct rare {
  val_engine *e;
  const rule *r;
  rule_tensor *const *example;
  iso_rng *rng;
  const val_watcher *who;
  val_domain *domain;
  rule_tensor **bind;
  val_pair pair[VAL_PAIRS];
  size_t n_pairs;
  val_pool *pool; /* of each variable */
  size_t n_conditions;
  bool stop;
} rare;

static void let_go(rare *s) {
  for (uint32_t i = 0; i < s->r->n_vars; i++) {
    rule_tensor_unref(s->bind[i]);
    s->bind[i] = NULL;
  }
}

static iso_code draw(rare *s, unsigned kind, iso_error *err) {
  let_go(s);
  return val_sample(s->e, s->r, s->example, s->rng, kind, s->bind, err);
}

static iso_code show(rare *s, bool pairs, iso_error *err) {
  bool agree = false;
  iso_code c = s->who->weigh(s->who->ctx, s->r, s->bind, &agree, &s->stop, err);
  if (!c && pairs && agree && !s->stop) c = val_pairs_note(s->e, s->pair, s->n_pairs, s->bind, err);
  return c;
}

static iso_code meet(rare *s, unsigned share, iso_error *err) {
  static const unsigned kinds[] = {VAL_PLAIN, VAL_SEAM, VAL_POSITIVE, VAL_AT};
  iso_code c = val_pools(s->e, s->r, s->domain, s->bind, s->pool, &s->n_conditions, err);
  /* That all of them hold is as rare as they are many. */
  const size_t many = s->n_conditions < MANY ? s->n_conditions : MANY,
               meets = s->n_conditions ? (size_t)MEETS << (many > FEW ? many - FEW : 0) : 0;
  for (unsigned k = 0; k < meets / share && !c && !s->stop; k++) {
    c = draw(s, kinds[k / 2 % 4], err);
    if (!c) val_meet_fill(s->r, s->pool, k, s->rng, s->bind);
    if (!c) c = show(s, true, err);
  }
  return c;
}

/* Numbers of both signs, and of one: where integers crowd, what is chosen among numbers that belong
 * to one of them may be beside a literal, and which is larger their sign decides. */
static unsigned of_signs(unsigned turn) {
  static const unsigned kinds[] = {VAL_PLAIN, VAL_POSITIVE, VAL_NEGATIVE};
  return kinds[turn % 3];
}

static iso_code crowd(rare *s, unsigned share, iso_error *err) {
  iso_code c = ISO_OK;
  bool any = true;
  for (unsigned k = 0; k < VAL_CROWDS && any && !c && !s->stop; k += share) {
    c = draw(s, of_signs(k / VAL_CROWD_WAYS), err);
    any = !c && val_crowd_fill(s->r, s->domain, k, s->rng, s->bind);
    if (any) c = show(s, true, err);
  }
  return c;
}

static iso_code each(rare *s, unsigned share, iso_error *err) {
  const unsigned turns = val_each_turns(s->r, s->domain, s->bind, EACH / share);
  iso_code c = ISO_OK;
  for (unsigned k = 0; k < turns && !c && !s->stop; k++) {
    c = draw(s, of_signs(k), err);
    if (!c) val_each_fill(s->r, s->domain, k, turns, s->rng, s->bind);
    if (!c) c = show(s, false, err);
  }
  return c;
}

/* Around each literal, with masks of all kinds. Twice, where there are conditions: numbers that
 * conditions read then come from their pools, so that the chosen values compete with the
 * literal. */
static iso_code fill(rare *s, unsigned share, iso_error *err) {
  double l[VAL_FILLS];
  const size_t n = val_fill_literals(s->r, l);
  const unsigned turns = FILLS * (unsigned)n / share;
  iso_code c = ISO_OK;
  for (unsigned k = 0; k < turns * (s->n_conditions ? 2 : 1) && !c && !s->stop; k++) {
    const unsigned turn = k % turns;
    c = draw(s, k / 2 % 8, err);
    if (!c)
      val_fill_around(s->r, s->domain, l[turn % n], (unsigned)(turn / n) % VAL_FILL_TURNS, s->rng,
                      s->bind);
    if (!c && k >= turns) val_meet_fill(s->r, s->pool, 2 * turn + 1, s->rng, s->bind);
    if (!c) c = show(s, true, err);
  }
  return c;
}

/* Rows that rise throughout, and that fall: comparisons of neighbours are all true, or none. */
static iso_code ramps(rare *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (unsigned turn = VAL_FILL_TURNS - 2; turn < VAL_FILL_TURNS && !c && !s->stop; turn++) {
    c = draw(s, VAL_PLAIN, err);
    if (!c) val_fill_around(s->r, s->domain, 1, turn, s->rng, s->bind);
    if (!c) c = show(s, false, err);
  }
  return c;
}

static iso_code all(rare *s, bool *gap, iso_error *err) {
  const unsigned share = s->who->share;
  iso_arena a = {0};
  iso_code c = draw(s, VAL_PLAIN, err);
  if (!c) c = val_domains(s->e, val_engine_schemas(s->e), s->r, s->bind, s->domain, err);
  if (!c) c = val_reach(s->e, s->r, s->bind, s->domain, err);
  if (!c) c = val_pairs_of(s->r, &a, s->pair, &s->n_pairs, err);
  if (!c) c = meet(s, share, err);
  if (!c && !s->stop) c = crowd(s, share, err);
  if (!c && !s->stop) c = each(s, share, err);
  if (!c && !s->stop) c = ramps(s, err);
  if (!c && !s->stop) c = fill(s, share, err);
  if (!c && !s->stop) c = val_pairs_gap(s->e, s->r, s->pair, s->n_pairs, gap, err);
  iso_arena_fini(&a);
  return c == ISO_UNSUPPORTED ? ISO_OK : c;
}

iso_code val_rare(val_engine *e, const rule *r, rule_tensor *const *example, const val_watcher *who,
                  bool *gap, iso_error *err) {
  rare s = {.e = e, .r = r, .example = example, .rng = who->rng, .who = who};
  *gap = false;
  s.domain = calloc(r->n_vars + 1, sizeof *s.domain);
  s.bind = calloc(r->n_vars + 1, sizeof *s.bind);
  s.pool = calloc(r->n_vars + 1, sizeof *s.pool);
  iso_code c =
      s.domain && s.bind && s.pool ? all(&s, gap, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  if (s.bind) let_go(&s);
  free(s.bind);
  free(s.domain);
  free(s.pool);
  return c;
}
