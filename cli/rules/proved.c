/* Which rules of a set are proved (proved.h): the evidence that a set claims for them does not
 * count. */
#include "cli/rules/proved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rules/report.h"

static rule_scope scope_named(const char *name) {
  int s = RULE_THESE_SHAPES;
  while (s <= RULE_ALL_SHAPES && !(name && strcmp(name, rule_scope_name((rule_scope)s)) == 0)) s++;
  return s <= RULE_ALL_SHAPES ? (rule_scope)s : RULE_SCOPE_NONE;
}

/* `found`: what a worker says of it. */
static iso_code keep(rule_set *kept, const rule *r, const json_t *found, iso_error *err) {
  size_t at;
  const char *scope = json_string_value(json_object_get(found, "scope"));
  iso_code c = rule_set_add(kept, r, &at, NULL, err);
  if (c) return c;
  rule_set_evidence(kept, at, RULE_PROVED, scope_named(scope));
  rule_set_rests_on(kept, at, rules_rests_read(json_object_get(found, "rests_on")));
  return ISO_OK;
}

static iso_code refuse(json_t *refused, const rule *r, const char *status, const char *reason,
                       iso_error *err) {
  char why[400];
  snprintf(why, sizeof why, "it is %s and not proved%s%.300s", status,
           reason && *reason ? ": " : "", reason ? reason : "");
  if (strcmp(status, "refuted") == 0)
    snprintf(why, sizeof why, "it is refuted%s%.300s", reason && *reason ? ": " : "",
             reason ? reason : "");
  return json_object_set_new(refused, r->name, json_string(why))
             ? iso_fail(err, ISO_NOMEM, "out of memory")
             : ISO_OK;
}

iso_code rules_proved(const rule_set *set, size_t workers, double limit_s, const val_options *o,
                      rule_set **kept, json_t **refused, iso_error *err) {
  const size_t n = rule_set_count(set);
  rules_job *job = calloc(n + 1, sizeof *job);
  json_t *entries = NULL;
  *kept = NULL;
  *refused = json_object();
  iso_code c =
      job && *refused ? rule_set_new(kept, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < n && !c; i++) job[i] = (rules_job){"", rule_set_at(set, i)};
  if (!c) c = rules_check(job, n, &(rules_how){workers, limit_s, NULL, o}, &entries, err);
  for (size_t i = 0; i < n && !c; i++) {
    const json_t *e = json_array_get(entries, i);
    const char *status = json_string_value(json_object_get(e, "status"));
    if (status && strcmp(status, "proved") == 0) c = keep(*kept, job[i].r, e, err);
    else
      c = refuse(*refused, job[i].r, status ? status : "unknown",
                 json_string_value(json_object_get(e, "reason")), err);
  }
  json_decref(entries);
  free(job);
  if (!c) return ISO_OK;
  rule_set_free(*kept);
  json_decref(*refused);
  *kept = NULL;
  *refused = NULL;
  return c;
}
