/* Rules that follow from the others (library.h). */
#include <stdlib.h>
#include <string.h>

#include "cli/rules/library.h"
#include "synth/synth.h"

enum { INSTANCES = 3 };

typedef struct minimizer {
  const rule_set *set;
  size_t n;
  rule_schemas *schemas;
  val_engine *engine;
  rule_oracle oracle;
  uint64_t seed;
  bool given;
  bool *drop, *use, *used, *few;
} minimizer;

typedef enum answer { STAYS, FOLLOWS, NO_INSTANCE } answer;

/* Rules hold for the values that they speak of; where those are a range, the e-graph does not know
 * of it. */
static bool ranged(const rule *r) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].low != NULL || r->var[i].high != NULL) return true;
  return false;
}

/* Whether both sides meet, by `use` of the rules. */
static iso_code follows_by(minimizer *m, const val_concrete *at, const bool *use, bool *follows,
                           iso_error *err) {
  synth_following from = {m->set,     use,        m->used,
                          &m->oracle, m->schemas, synth_follow_limits_default()};
  from.limits.given = m->given;
  return synth_follows(&at->r, at->bind, &from, follows, err);
}

/* The rules that sufficed for an instance before are tried first: they are few, and most often do.
 */
static iso_code on_instance(minimizer *m, const rule *r, uint64_t seed, bool first, answer *out,
                            iso_error *err) {
  iso_arena a;
  iso_arena_init(&a);
  bool follows = false;
  val_concrete at = {.bind = calloc((size_t)r->n_vars + 1, sizeof *at.bind)};
  iso_code c = at.bind == NULL ? iso_fail(err, ISO_NOMEM, "out of memory")
                               : val_instance(m->engine, r, seed, &a, &at, err);
  if (!first) memcpy(m->few, m->used, m->n * sizeof *m->few);
  if (!c && at.found && !first) c = follows_by(m, &at, m->few, &follows, err);
  if (!c && at.found && !follows) c = follows_by(m, &at, m->use, &follows, err);
  *out = !at.found ? NO_INSTANCE : follows ? FOLLOWS : STAYS;
  for (uint32_t i = 0; at.bind != NULL && i < r->n_vars; i++) rule_tensor_unref(at.bind[i]);
  free(at.bind);
  iso_arena_fini(&a);
  return c;
}

static iso_code decide(minimizer *m, size_t i, answer *out, iso_error *err) {
  const rule *r = rule_set_at(m->set, i);
  iso_code c = ISO_OK;
  *out = FOLLOWS;
  for (size_t k = 0; k < m->n; k++) {
    const rule *k_th = rule_set_at(m->set, k);
    m->use[k] = k != i && !m->drop[k] && k_th->claimed != RULE_REFUTED &&
                k_th->claimed >= r->claimed && !ranged(k_th);
  }
  memset(m->used, 0, m->n * sizeof *m->used);
  for (uint64_t k = 0; k < INSTANCES && !c && *out == FOLLOWS; k++)
    c = on_instance(m, r, m->seed + k, k == 0, out, err);
  if (c == ISO_INTERNAL) {
    err->code = c = ISO_FORMAT;
    iso_prefix(err,
               "looking whether %s follows, a rule did not hold (isomer rules check): ", r->name);
  }
  return c;
}

/* ---- the order ---- */

typedef struct entry {
  size_t size, index;
} entry;

static int larger_first(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->size != y->size) return x->size < y->size ? 1 : -1;
  return x->index < y->index ? 1 : x->index > y->index ? -1 : 0;
}

static entry *order(const rule_set *set, size_t n) {
  entry *e = calloc(n + 1, sizeof *e);
  for (size_t i = 0; i < n && e != NULL; i++)
    e[i] = (entry){
        rule_term_size(rule_set_at(set, i)->lhs) + rule_term_size(rule_set_at(set, i)->rhs), i};
  if (e != NULL) qsort(e, n, sizeof *e, larger_first);
  return e;
}

static iso_code note(minimizer *m, size_t i, answer what, json_t *dropped, json_t *without,
                     iso_error *err) {
  const char *name = rule_set_at(m->set, i)->name;
  bool ok = what != NO_INSTANCE || json_array_append_new(without, json_string(name)) == 0;
  if (what == FOLLOWS) {
    json_t *from = json_array();
    for (size_t k = 0; k < m->n && ok; k++)
      if (m->used[k])
        ok = json_array_append_new(from, json_string(rule_set_at(m->set, k)->name)) == 0;
    m->drop[i] = true;
    ok = ok &&
         json_array_append_new(dropped, json_pack("{s:s, s:o}", "name", name, "from", from)) == 0;
  }
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

static iso_code run(minimizer *m, json_t *kept, json_t *dropped, json_t *without, iso_error *err) {
  entry *e = order(m->set, m->n);
  iso_code c = e != NULL && m->drop != NULL && m->use != NULL && m->used != NULL &&
                       m->few != NULL && kept != NULL && dropped != NULL && without != NULL
                   ? ISO_OK
                   : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < m->n && !c; i++) {
    answer what;
    c = decide(m, e[i].index, &what, err);
    if (!c) c = note(m, e[i].index, what, dropped, without, err);
  }
  for (size_t i = 0; i < m->n && !c; i++)
    if (!m->drop[i] && json_array_append_new(kept, json_string(rule_set_at(m->set, i)->name)) != 0)
      c = iso_fail(err, ISO_NOMEM, "out of memory");
  free(e);
  return c;
}

iso_code rules_minimize(const rule_set *set, const val_options *o, bool given, bool **drop,
                        json_t **report, iso_error *err) {
  minimizer m = {.set = set, .n = rule_set_count(set), .seed = o->seed, .given = given};
  json_t *kept = json_array(), *dropped = json_array(), *without = json_array();
  m.drop = calloc(m.n + 1, sizeof *m.drop);
  m.use = calloc(m.n + 1, sizeof *m.use);
  m.used = calloc(m.n + 1, sizeof *m.used);
  m.few = calloc(m.n + 1, sizeof *m.few);
  iso_code c = rule_schemas_new(&m.schemas, err);
  if (!c) c = val_new(o, m.schemas, &m.engine, err);
  if (!c) {
    m.oracle = val_oracle(m.engine);
    c = run(&m, kept, dropped, without, err);
  }
  if (!c) {
    *report =
        json_pack("{s:O, s:O, s:O}", "kept", kept, "dropped", dropped, "without_instance", without);
    *drop = m.drop;
    if (*report == NULL) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  if (c) free(m.drop);
  free(m.use);
  free(m.used);
  free(m.few);
  json_decref(kept);
  json_decref(dropped);
  json_decref(without);
  val_free(m.engine);
  rule_schemas_free(m.schemas);
  return c;
}
