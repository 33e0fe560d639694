/* A rule at sizes, attributes and values that meet its conditions: for those who want to look at
 * one instance.
 *
 * Sizes that happen to be equal, or 1, make more things equal than the rule says: of some instances
 * the one with the fewest such accidents is taken. A rule of which instances are hard to find, or
 * that has none, gets no more tries than two searches have. */
#include <stdlib.h>

#include "validate/sample/instance_int.h"
#include "validate/sample/sample_int.h"

enum { DRAWS = 12, MOST_TRIES = 800, SAMPLES = 8, LARGEST = 9 };

/* Sizes that are 1, pairs of names with one value, and shapes without dimensions where the rule
 * leaves them open. */
static unsigned accidents(const val_problem *p) {
  unsigned n = 0;
  for (uint32_t i = 0; i < p->n_names; i++) {
    if (p->name[i].kind != 's' && p->name[i].kind != 'i') continue;
    n += p->name[i].kind == 's' && p->name[i].i == 1;
    for (uint32_t k = 0; k < i; k++)
      n += p->name[k].kind == p->name[i].kind && p->name[k].i == p->name[i].i;
  }
  for (uint32_t v = 0; v < p->r->n_vars; v++)
    n += (p->r->var[v].any_shape || p->r->var[v].leading) && p->lead_rank[v] == 0;
  return n;
}

/* Values on which both sides run. Returns: in `found` whether there are some; then the caller has
 * them in `bind`. */
static iso_code values(val_engine *e, const rule *r, iso_rng *rng, rule_tensor **bind, bool *found,
                       iso_error *err) {
  for (unsigned k = 0; k < SAMPLES && !*found; k++) {
    rule_tensor *side[2] = {NULL, NULL};
    iso_error local = {0};
    for (uint32_t i = 0; i < r->n_vars; i++) bind[i] = NULL;
    iso_code c = val_sample(e, r, NULL, rng, k == 0 ? VAL_PLAIN : k, bind, &local);
    if (!c) c = val_eval(e, r->lhs, bind, VAL_FLOAT64, &side[0], &local);
    if (!c) c = val_eval(e, r->rhs, bind, VAL_FLOAT64, &side[1], &local);
    rule_tensor_unref(side[0]);
    rule_tensor_unref(side[1]);
    *found = c == ISO_OK;
    for (uint32_t i = 0; i < r->n_vars && !*found; i++) {
      rule_tensor_unref(bind[i]);
      bind[i] = NULL;
    }
    if (c == ISO_NOMEM) return iso_fail(err, c, "%s", local.msg);
  }
  return ISO_OK;
}

iso_code val_instance(val_engine *e, const rule *r, uint64_t seed, iso_arena *a, val_concrete *out,
                      iso_error *err) {
  val_problem p;
  iso_rng rng = iso_rng_new(seed, 0x1257);
  unsigned least = 0, tries = 0;
  bool some = false;
  out->found = false;
  iso_code c = val_problem_init(&p, r, val_engine_schemas(e), err);
  if (c) return c == ISO_UNSUPPORTED ? ISO_OK : c;
  p.max_size = LARGEST;
  for (int i = 0; i < DRAWS && tries < MOST_TRIES && !c; i++) {
    val_found at;
    c = val_find_instance(e, &p, &rng, a, &at, err);
    tries += at.tries;
    const unsigned n = at.found ? accidents(&p) : 0;
    if (c || !at.found || (some && n >= least)) continue;
    out->r = at.r;
    some = true;
    least = n;
    if (n == 0 || !p.open) break;
  }
  val_problem_fini(&p);
  return c || !some ? c : values(e, &out->r, &rng, out->bind, &out->found, err);
}
