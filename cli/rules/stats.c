/* Statistics of a rule library (library.h).
 *
 * Families, by the operators that a rule mentions, the most telling first: "bridge" joins operators
 * of a framework's own (vllm::...) with PyTorch's; "partition" has collectives of several ranks;
 * "normalisation" has a norm, whole or spelled out (a mean of squares and a reciprocal square
 * root); "dtype" mentions casts, "wrapper" calls without effect (dropout outside training, clone,
 * alias), beside at most layout; "layout" only arranges elements, or moves an arrangement past one
 * other operator; "other" computes. */
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "cli/rules/library.h"

typedef struct mentions {
  size_t casts, wrappers, layouts, collectives, foreign, norms, others, squares, means, roots;
} mentions;

static void look(const rule_term *t, mentions *m) {
  if (t->kind == RULE_OP) {
    const char *op = t->u.s;
    const rule_operator *o = rule_operator_of(op);
    /* operator: the spaces and names that libraries give collectives */
    if (strncmp(op, "_c10d_functional::", 18) == 0 || strncmp(op, "c10d_functional::", 17) == 0 ||
        strncmp(op, "c10d::", 6) == 0 || strstr(op, "all_reduce") != NULL ||
        strstr(op, "all_gather") != NULL || strstr(op, "reduce_scatter") != NULL)
      m->collectives++;
    else if (!rule_is_aten(op) && !rule_is_getitem(op)) m->foreign++;
    else if (o->cast) m->casts++;
    else if (o->identity) m->wrappers++;
    else if (o->rearranges || o->part || o->joins || rule_is_getitem(op)) m->layouts++;
    else if (o->norm) m->norms++;
    else {
      m->others++;
      m->squares += rule_is_overload(op, OP_POW) || rule_is_overload(op, OP_SQUARE);
      m->means += rule_is_overload(op, OP_MEAN);
      m->roots += rule_is_overload(op, OP_RSQRT);
    }
  }
  for (uint32_t i = 0; i < t->n; i++) look(t->child[i], m);
}

/* The family of a rule: "bridge", "partition", "normalisation", "dtype", "layout", "wrapper" or
 * "other". Static. */
static const char *rules_family(const rule *r) {
  mentions l = {0}, b;
  look(r->lhs, &l);
  b = l;
  look(r->rhs, &b);
  if (b.collectives) return "partition";
  if (b.foreign) return "bridge";
  if (b.norms || (b.means && b.roots)) return "normalisation";
  if (b.casts) return "dtype";
  if (b.wrappers && !b.others) return "wrapper";
  /* The same computations on both sides: only the place of the layout differs. */
  if (b.layouts && 2 * l.others == b.others && l.others <= 1) return "layout";
  return b.wrappers ? "wrapper" : "other";
}

/* ---- counting ---- */

static bool bump(json_t *counts, const char *key) {
  return json_object_set_new(
             counts, key, json_integer(json_integer_value(json_object_get(counts, key)) + 1)) == 0;
}

static void count_ops(const rule_term *t, json_int_t *n) {
  if (t->kind == RULE_OP && !rule_is_getitem(t->u.s)) ++*n;
  for (uint32_t i = 0; i < t->n; i++) count_ops(t->child[i], n);
}

static bool has_open_size(const rule *r) {
  for (uint32_t v = 0; v < r->n_vars; v++) {
    if (r->var[v].any_shape || r->var[v].leading) return true;
    for (uint32_t d = 0; d < r->var[v].n_dims; d++)
      if (r->var[v].dim[d]->kind != RULE_INT) return true;
  }
  return false;
}

typedef struct tally {
  json_int_t rules, open, conditions, ops;
  json_t *evidence, *scope, *family; /* counts by name */
  json_t *known;                     /* key of both sides: family; of rules in the reports */
} tally;

static bool count_rule(tally *t, const rule *r) {
  t->rules++;
  t->open += has_open_size(r);
  t->conditions += r->n_where > 0;
  count_ops(r->lhs, &t->ops);
  count_ops(r->rhs, &t->ops);
  return bump(t->evidence, r->claimed ? rule_status_name(r->claimed) : "none") &&
         bump(t->scope, r->claimed && r->scope ? rule_scope_name(r->scope) : "none") &&
         bump(t->family, rules_family(r));
}

/* ---- reports of comparisons ---- */

typedef struct use_tally {
  json_int_t reports, instances, applications;
  json_t *rule; /* "lhs <=> rhs": {"models": {name: 1}, "status"} */
} use_tally;

/* The model's name in a report; where it has none, its path. */
static const char *model_of(const json_t *side) {
  const char *model = json_string_value(json_object_get(side, "model")),
             *path = json_string_value(json_object_get(side, "path"));
  return model != NULL ? model : path != NULL ? path : "?";
}

static bool count_use(use_tally *u, const json_t *r, const char *model) {
  const char *lhs = json_string_value(json_object_get(r, "lhs")),
             *rhs = json_string_value(json_object_get(r, "rhs"));
  const char *status = json_string_value(json_object_get(r, "status"));
  if (lhs == NULL || rhs == NULL || status == NULL) return true;
  json_t *key = json_sprintf("%s <=> %s", lhs, rhs);
  if (key == NULL) return false;
  json_t *e = json_object_get(u->rule, json_string_value(key));
  bool ok = true;
  if (e == NULL) {
    e = json_pack("{s:{}, s:s}", "models", "status", status);
    ok = e != NULL && json_object_set_new(u->rule, json_string_value(key), e) == 0;
  }
  u->instances++;
  u->applications += json_integer_value(json_object_get(r, "uses"));
  ok = ok && json_object_set_new(json_object_get(e, "models"), model, json_integer(1)) == 0;
  json_decref(key);
  return ok;
}

static iso_code count_report(use_tally *u, const char *path, iso_error *err) {
  json_error_t e;
  json_t *answer = json_load_file(path, 0, &e), *r;
  const char *format = json_string_value(json_object_get(answer, "format"));
  size_t i;
  bool ok = true;
  if (answer == NULL) return iso_fail(err, ISO_FORMAT, "%s: %s", path, e.text);
  if (format == NULL || strcmp(format, "isomer-report") != 0) {
    json_decref(answer);
    return iso_fail(err, ISO_FORMAT, "%s: is not a report of isomer compare --json", path);
  }
  u->reports++;
  json_array_foreach(json_object_get(answer, "rules"), i, r) ok =
      ok && count_use(u, r, model_of(json_object_get(answer, "left")));
  json_decref(answer);
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

static json_t *use_json(const use_tally *u) {
  const char *key;
  json_t *e;
  json_int_t distinct = 0, shared = 0, proved = 0;
  json_object_foreach(u->rule, key, e) {
    const char *status = json_string_value(json_object_get(e, "status"));
    distinct++;
    shared += json_object_size(json_object_get(e, "models")) > 1;
    proved += status != NULL && strcmp(status, "proved") == 0;
  }
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "reports", u->reports, "instances",
                   u->instances, "applications", u->applications, "distinct", distinct, "shared",
                   shared, "proved", proved);
}

iso_code rules_stats(rule_set *const *set, size_t n_sets, const char *const *path, size_t n_reports,
                     json_t **out, iso_error *err) {
  tally t = {.evidence = json_object(), .scope = json_object(), .family = json_object()};
  use_tally u = {.rule = json_object()};
  rule_set *distinct = NULL;
  iso_code c = rule_set_new(&distinct, err);
  bool ok = t.evidence != NULL && t.scope != NULL && t.family != NULL && u.rule != NULL;
  for (size_t i = 0; i < n_sets && !c && ok; i++)
    for (size_t k = 0; k < rule_set_count(set[i]) && !c && ok; k++) {
      ok = count_rule(&t, rule_set_at(set[i], k));
      c = rule_set_add(distinct, rule_set_at(set[i], k), NULL, NULL, err);
    }
  for (size_t i = 0; i < n_reports && !c; i++) c = count_report(&u, path[i], err);
  if (!c && ok)
    *out = json_pack("{s:I, s:I, s:I, s:I, s:I, s:O, s:O, s:O, s:o*}", "rules", t.rules, "distinct",
                     (json_int_t)rule_set_count(distinct), "open_sizes", t.open, "conditions",
                     t.conditions, "operators", t.ops, "evidence", t.evidence, "scope", t.scope,
                     "families", t.family, "use", n_reports ? use_json(&u) : NULL);
  if (!c && (!ok || *out == NULL)) c = iso_fail(err, ISO_NOMEM, "out of memory");
  rule_set_free(distinct);
  json_decref(t.evidence);
  json_decref(t.scope);
  json_decref(t.family);
  json_decref(u.rule);
  return c;
}

static long long number(const json_t *o, const char *key) {
  return (long long)json_integer_value(json_object_get(o, key));
}

static void line(FILE *f, const char *title, const json_t *counts, const char *const *key,
                 size_t n) {
  const char *sep = "";
  fprintf(f, "%-12s ", title);
  for (size_t i = 0; i < n; i++) {
    if (!number(counts, key[i])) continue;
    fprintf(f, "%s%lld %s", sep, number(counts, key[i]), key[i]);
    sep = ", ";
  }
  fprintf(f, "%s\n", *sep ? "" : "-");
}

void rules_stats_text(FILE *f, const json_t *s) {
  static const char *const evidence[] = {"proved", "tested", "assumed", "refuted", "none"};
  static const char *const scope[] = {"all shapes", "these ranks", "these shapes", "none"};
  static const char *const family[] = {"wrapper",   "dtype",  "layout", "normalisation",
                                       "partition", "bridge", "other"};
  const json_t *use = json_object_get(s, "use");
  fprintf(f,
          "rules        %lld\ndistinct     %lld\nopen sizes   %lld\nconditions   %lld\noperators   "
          " %lld\n",
          number(s, "rules"), number(s, "distinct"), number(s, "open_sizes"),
          number(s, "conditions"), number(s, "operators"));
  line(f, "evidence", json_object_get(s, "evidence"), evidence, 5);
  line(f, "scope", json_object_get(s, "scope"), scope, 4);
  line(f, "families", json_object_get(s, "families"), family, 7);
  if (use != NULL)
    fprintf(f,
            "used         %lld comparisons, %lld instances, %lld applications; %lld distinct, %lld "
            "shared by two models or more, %lld proved\n",
            number(use, "reports"), number(use, "instances"), number(use, "applications"),
            number(use, "distinct"), number(use, "shared"), number(use, "proved"));
}
