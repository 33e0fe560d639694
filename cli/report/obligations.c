/* Obligations of the rules on a chain (obligations.h). */
#include "cli/report/obligations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The explanation uses the rule, or the certificate does, which may take another way. */
static bool on_chain(const synth_result *r, const synth_rule_use *u) {
  bool found = u->needed;
  for (size_t i = 0; r->certificate && i < r->certificate->n_steps && !found; i++)
    found = r->certificate->step[i].applied == u->what;
  return found;
}

static iso_code ask(const synth_rule_use *u, rule_schemas *schemas, const val_options *o,
                    uint32_t *n, char *why, iso_error *err) {
  val_obligations k = {0};
  if (u->verdict.status != RULE_PROVED) {
    snprintf(why, 200, "it is %s", rule_status_name(u->verdict.status));
    return ISO_OK;
  }
  iso_code c = val_write_obligations(u->what, schemas, o, false, &k, err);
  *n = (uint32_t)k.n;
  if (!c && k.n == 0)
    snprintf(why, 200, "%s", k.reason[0] ? k.reason : "no obligation could be written");
  val_obligations_free(&k);
  return c;
}

static bool same_values(const synth_cert_step *x, const synth_cert_step *y) {
  if (x->n_names != y->n_names) return false;
  for (uint32_t i = 0; i < x->n_names; i++)
    if (strcmp(x->name[i], y->name[i]) != 0 || !rule_term_eq(x->value[i], y->value[i]))
      return false;
  return true;
}

static bool seen_before(const synth_certificate *k, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (k->step[i].applied == k->step[at].applied && same_values(&k->step[i], &k->step[at]))
      return true;
  return false;
}

/* A rule that has none for all sizes may have some where the chain uses it, which is all that the
 * chain needs. All of these, or none. */
static iso_code ask_at_steps(const synth_result *r, const synth_rule_use *u, rule_schemas *schemas,
                             const val_options *o, uint32_t *n, iso_error *err) {
  const synth_certificate *k = r->certificate;
  uint32_t all = 0;
  bool each = k != NULL && u->verdict.status == RULE_PROVED;
  iso_arena a;
  iso_arena_init(&a);
  iso_code c = ISO_OK;
  for (size_t i = 0; each && !c && i < k->n_steps; i++) {
    const synth_cert_step *x = &k->step[i];
    if (x->applied != u->what || seen_before(k, i)) continue;
    if (!(each = x->n_names > 0)) break; /* it is the rule itself */
    val_obligations one = {0};
    rule at;
    const rule_assignment v = {x->n_names, x->name, x->value, 0};
    c = rule_at(u->what, &v, &a, &at, &each, err);
    if (!c && each) c = val_write_obligations(&at, schemas, o, false, &one, err);
    each &= one.n > 0;
    all += (uint32_t)one.n;
    val_obligations_free(&one);
  }
  if (!c && each) *n = all;
  iso_arena_fini(&a);
  return c;
}

static iso_code undecided(synth_result *r, const char *reason, iso_error *err) {
  r->verdict = SYNTH_UNDECIDED;
  r->reason = reason;
  r->certificate = NULL;
  return reason ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

iso_code obligations_ask(synth_result *r, rule_schemas *schemas, const val_options *o,
                         bool required, obligations *out, iso_error *err) {
  *out = (obligations){.asked = true, .n_rules = r->n_rules};
  out->n = calloc(r->n_rules + 1, sizeof *out->n);
  out->why = calloc(r->n_rules + 1, sizeof *out->why);
  iso_code c = out->n && out->why ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  size_t missing = SIZE_MAX;
  for (size_t i = 0; i < r->n_rules && !c; i++) {
    if (!on_chain(r, &r->rule[i])) continue;
    c = ask(&r->rule[i], schemas, o, &out->n[i], out->why[i], err);
    if (!c && out->n[i] == 0) c = ask_at_steps(r, &r->rule[i], schemas, o, &out->n[i], err);
    if (!c && out->n[i] == 0 && missing == SIZE_MAX) missing = i;
  }
  if (c) return c;
  const char *stopped = o->stop ? o->stop(o->ctx) : NULL;
  if (stopped && missing != SIZE_MAX)
    return undecided(r, stopped, err); /* a limit never changes evidence */
  if (missing == SIZE_MAX && r->evidence == RULE_PROVED) r->evidence = RULE_CERTIFIED;
  if (!required || r->evidence == RULE_CERTIFIED) return ISO_OK;
  return undecided(
      r,
      missing == SIZE_MAX
          ? "a rule on the chain is not proved"
          : iso_arena_printf(&r->arena,
                             "rule %s on the chain has no obligation that z3 answers: %s",
                             r->rule[missing].what->name, out->why[missing]),
      err);
}

void obligations_free(obligations *k) {
  free(k->n);
  free(k->why);
  *k = (obligations){0};
}
