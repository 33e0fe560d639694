/* isomer rules VERB FILE...: rule files checked, listed, merged and compared. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/config/options.h"
#include "cli/report/report.h"
#include "cli/rules/check.h"
#include "cli/rules/library.h"
#include "cli/rules/proved.h"
#include "cli/rules/report.h"

enum { MAX_FILES = 1024, MAX_SAMPLES = 100000000, SAMPLES_A_SECOND = 4 };

typedef struct options {
  const char *verb, *json, *counterexample, *obligations, *output, *target, *name;
  const char *file[MAX_FILES], *report[MAX_FILES];
  size_t n_files, n_reports, jobs;
  double limit_s;
  val_options val;
  const char *ops[32];
  bool require_proved, given, unchecked, quiet, verbose;
} options;

static int usage_error(const char *what, const char *arg) {
  return cli_usage_error("rules", what, arg);
}

/* An option or a file. Returns: -1 where it was fine. */
static int take(void *ctx, const char *name, const char *v, const char *second) {
  options *o = ctx;
  uint64_t n;
  (void)second;
  if (!name) {
    if (o->n_files == MAX_FILES) return usage_error("too many files", NULL);
    o->file[o->n_files++] = v;
  } else if (strcmp(name, "quiet") == 0) o->quiet = true;
  else if (strcmp(name, "verbose") == 0) o->verbose = true;
  else if (strcmp(name, "unchecked") == 0) o->unchecked = true;
  else if (strcmp(name, "json") == 0) o->json = v;
  else if (strcmp(name, "counterexample") == 0) o->counterexample = v;
  else if (strcmp(name, "certificates") == 0) o->obligations = v;
  else if (strcmp(name, "output") == 0) o->output = v;
  else if (strcmp(name, "seed") == 0) {
    if (!cli_parse_u64(v, &n)) return usage_error("not a seed:", v);
    o->val.seed = n;
  } else if (strcmp(name, "samples") == 0) {
    if (!cli_parse_u64(v, &n) || n < 1 || n > MAX_SAMPLES)
      return usage_error("not a number of samples:", v);
    o->val.least_samples = (uint32_t)n;
  } else if (strcmp(name, "jobs") == 0) {
    if (!cli_parse_u64(v, &n) || n < 1 || n > 1024) return usage_error("not a number of jobs:", v);
    o->jobs = n;
  } else if (strcmp(name, "require") == 0) {
    if (strcmp(v, "proved") != 0 && strcmp(v, "tested") != 0)
      return usage_error("--require takes proved or tested, not", v);
    o->require_proved = strcmp(v, "proved") == 0;
  } else if (strcmp(name, "ops") == 0) {
    if (o->val.n_ops == 32) return usage_error("too many libraries:", v);
    o->ops[o->val.n_ops++] = v;
  } else if (strcmp(name, "terms") == 0) {
    if (strcmp(v, "any") != 0 && strcmp(v, "given") != 0)
      return usage_error("--terms takes any or given, not", v);
    o->given = strcmp(v, "given") == 0;
  } else if (strcmp(name, "to") == 0) o->target = v;
  else if (strcmp(name, "name") == 0) o->name = v;
  else if (strcmp(name, "report") == 0) {
    if (o->n_reports == MAX_FILES) return usage_error("too many reports:", v);
    o->report[o->n_reports++] = v;
  } else if (strcmp(name, "device") == 0) {
    if (strcmp(v, "cpu") != 0 && strcmp(v, "cuda") != 0)
      return usage_error("--device takes cpu or cuda, not", v);
    o->val.device = v;
  }
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o) {
  static const char *const verbs[] = {"check", "list",     "show",  "merge",
                                      "diff",  "minimize", "stats", "export"};
  char command[32];
  *o = (options){.val = val_options_default(), .jobs = 1, .limit_s = 300};
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    cli_help("rules", stdout);
    return 0;
  }
  for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++)
    if (strcmp(argv[1], verbs[i]) == 0) o->verb = verbs[i];
  if (o->verb == NULL)
    return usage_error(argc > 1 ? "no such command:"
                                : "check, list, show, merge, diff, minimize, stats or export?",
                       argc > 1 ? argv[1] : NULL);
  snprintf(command, sizeof command, "rules.%s", o->verb);
  const int status = cli_options_read(command, argc - 1, argv + 1, take, o);
  if (status >= 0) return status;
  if (o->n_files == 0) return usage_error("no file", NULL);
  if (strcmp(o->verb, "export") == 0 && o->target == NULL)
    return usage_error("export to what? --to", rules_targets);
  if (strcmp(o->verb, "diff") == 0 && o->n_files != 2)
    return usage_error("diff takes two files", NULL);
  return -1;
}

/* The rules of all files, one set per file. */
static iso_code load(const options *o, bool all, rule_set **set, iso_error *err) {
  for (size_t i = 0; i < o->n_files; i++) {
    const iso_code c =
        all ? rule_set_load_all(o->file[i], &set[i], err) : rule_set_load(o->file[i], &set[i], err);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- check ---- */

/* One script, a block per refuted rule. */
static iso_code write_counterexamples(const char *path, const json_t *entries, iso_error *err) {
  char *text = NULL;
  size_t n = 0, i;
  json_t *e;
  FILE *f = open_memstream(&text, &n);
  if (f == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  json_array_foreach(entries, i, e) {
    const char *code =
        json_string_value(json_object_get(json_object_get(e, "counterexample"), "python"));
    if (code != NULL) fprintf(f, "%s\n", code);
  }
  iso_code c =
      fclose(f) == 0 ? report_write(path, text, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  free(text);
  return c;
}

/* Takes `o`. */
static iso_code write_json(const char *path, json_t *o, iso_error *err) {
  char *text = o != NULL ? json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
  char *line = text != NULL ? malloc(strlen(text) + 2) : NULL;
  iso_code c = ISO_OK;
  if (line == NULL) c = iso_fail(err, ISO_NOMEM, "out of memory");
  else {
    sprintf(line, "%s\n", text);
    c = report_write(path, line, err);
  }
  free(line);
  free(text);
  json_decref(o);
  return c;
}

/* Prints the findings. Returns: the exit status. */
static int conclude(const options *o, const json_t *entries, FILE *f) {
  size_t count[4] = {0}, i; /* proved, tested, refuted, unknown */
  json_t *e;
  json_array_foreach(entries, i, e) {
    const char *s = json_string_value(json_object_get(e, "status"));
    count[strcmp(s, "proved") == 0    ? 0
          : strcmp(s, "tested") == 0  ? 1
          : strcmp(s, "refuted") == 0 ? 2
                                      : 3]++;
    if (!o->quiet) rules_entry_text(f, e, o->verbose);
  }
  fprintf(f, "isomer: %zu rules: %zu proved, %zu tested, %zu refuted, %zu unknown\n",
          json_array_size(entries), count[0], count[1], count[2], count[3]);
  if (count[2]) return CLI_DIFFERENT;
  return count[3] || (o->require_proved && count[1]) ? CLI_UNDECIDED : CLI_EQUIVALENT;
}

static iso_code check(options *o, rule_set **set, int *status, iso_error *err) {
  size_t n = 0, k = 0;
  for (size_t i = 0; i < o->n_files; i++) n += rule_set_count(set[i]);
  rules_job *job = calloc(n + 1, sizeof *job);
  if (job == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < o->n_files; i++)
    for (size_t j = 0; j < rule_set_count(set[i]); j++)
      job[k++] = (rules_job){o->file[i], rule_set_at(set[i], j)};
  json_t *entries = NULL;
  o->val.ops = o->ops;
  const double limit_s = o->limit_s + (double)o->val.least_samples / SAMPLES_A_SECOND;
  const rules_how how = {o->jobs, limit_s, o->obligations, &o->val};
  iso_code c = rules_check(job, n, &how, &entries, err);
  if (!c && o->counterexample != NULL) c = write_counterexamples(o->counterexample, entries, err);
  if (!c && o->json != NULL) c = write_json(o->json, json_pack("{s:O}", "rules", entries), err);
  if (!c)
    *status = conclude(o, entries, o->json != NULL && strcmp(o->json, "-") == 0 ? stderr : stdout);
  json_decref(entries);
  free(job);
  return c;
}

/* ---- the rest ---- */

static iso_code list(const options *o, rule_set **set, iso_error *err) {
  for (size_t i = 0; i < o->n_files; i++)
    for (size_t j = 0; j < rule_set_count(set[i]); j++) {
      const rule *r = rule_set_at(set[i], j);
      char *lhs = rule_side_print(r, false), *rhs = rule_side_print(r, true);
      if (lhs != NULL && rhs != NULL)
        printf("%s%s%s%s%s\t%s <=> %s\n", r->name, r->claimed ? " [" : "",
               r->claimed ? rule_status_name(r->claimed) : "", r->scope ? ", " : "",
               r->claimed ? (r->scope ? rule_scope_name(r->scope) : "") : "", lhs, rhs);
      const bool ok = lhs != NULL && rhs != NULL;
      free(lhs);
      free(rhs);
      if (!ok) return iso_fail(err, ISO_NOMEM, "out of memory");
    }
  return ISO_OK;
}

static iso_code show_rule(const rule *r, const char *before, iso_error *err) {
  char *text = rule_print(r);
  if (text == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  printf("%s%s", before, text);
  free(text);
  return ISO_OK;
}

static iso_code show(const options *o, rule_set **set, iso_error *err) {
  iso_code c = ISO_OK;
  size_t shown = 0;
  for (size_t i = 0; i < o->n_files; i++)
    for (size_t j = 0; j < rule_set_count(set[i]) && !c; j++) {
      const rule *r = rule_set_at(set[i], j);
      if (!o->name || strcmp(r->name, o->name) == 0) c = show_rule(r, shown++ ? "\n" : "", err);
    }
  return c || !o->name || shown
             ? c
             : iso_fail(err, ISO_USAGE, "no rule has the name \"%.200s\"", o->name);
}

/* One set of all files. Evidence of a rule that two files have: the weaker claim stands. Owns: the
 * caller frees. */
static iso_code gather(const options *o, rule_set **set, rule_set **out, iso_error *err) {
  rule_set *all = NULL;
  iso_code c = rule_set_new(&all, err);
  for (size_t i = 0; i < o->n_files && !c; i++)
    for (size_t j = 0; j < rule_set_count(set[i]) && !c; j++) {
      const rule *r = rule_set_at(set[i], j);
      size_t at;
      bool fresh;
      c = rule_set_add(all, r, &at, &fresh, err);
      if (!c && !fresh &&
          (r->claimed < rule_set_at(all, at)->claimed || r->scope < rule_set_at(all, at)->scope))
        rule_set_evidence(
            all, at,
            r->claimed < rule_set_at(all, at)->claimed ? r->claimed : rule_set_at(all, at)->claimed,
            r->scope < rule_set_at(all, at)->scope ? r->scope : rule_set_at(all, at)->scope);
    }
  if (c) rule_set_free(all);
  else *out = all;
  return c;
}

static iso_code put(const options *o, const rule_set *set, iso_error *err) {
  if (o->output != NULL && strcmp(o->output, "-") != 0) return rule_set_save(set, o->output, err);
  iso_code c = ISO_OK;
  for (size_t j = 0; !c && j < rule_set_count(set); j++)
    c = show_rule(rule_set_at(set, j), j ? "\n" : "", err);
  return c;
}

static iso_code merge(const options *o, rule_set **set, iso_error *err) {
  rule_set *all = NULL;
  iso_code c = gather(o, set, &all, err);
  if (!c) c = put(o, all, err);
  rule_set_free(all);
  return c;
}

/* ---- libraries ---- */

static void print_dropped(const json_t *findings) {
  size_t i, k;
  json_t *e, *from;
  json_array_foreach(json_object_get(findings, "dropped"), i, e) {
    fprintf(stderr, "%s follows from", json_string_value(json_object_get(e, "name")));
    json_array_foreach(json_object_get(e, "from"), k, from)
        fprintf(stderr, "%s %s", k ? "," : "", json_string_value(from));
    fputc('\n', stderr);
  }
  json_array_foreach(json_object_get(findings, "without_instance"), i, e)
      fprintf(stderr, "%s stays: no sizes and values were found on which both its sides run\n",
              json_string_value(e));
  fprintf(stderr, "isomer: %zu rules stay, %zu follow from them\n",
          json_array_size(json_object_get(findings, "kept")),
          json_array_size(json_object_get(findings, "dropped")));
}

static iso_code minimize(options *o, rule_set **set, iso_error *err) {
  rule_set *all = NULL, *small = NULL;
  bool *drop = NULL;
  json_t *findings = NULL;
  o->val.ops = o->ops;
  iso_code c = gather(o, set, &all, err);
  if (!c) c = rules_minimize(all, &o->val, o->given, &drop, &findings, err);
  if (!c) c = rule_set_new(&small, err);
  for (size_t i = 0; !c && i < rule_set_count(all); i++)
    if (!drop[i]) c = rule_set_add(small, rule_set_at(all, i), NULL, NULL, err);
  /* Of two things on stdout, the report: the rules then need a file. */
  const bool both = o->json != NULL && strcmp(o->json, "-") == 0 &&
                    (o->output == NULL || strcmp(o->output, "-") == 0);
  if (!c && !both) c = put(o, small, err);
  if (!c && o->json != NULL) c = write_json(o->json, json_incref(findings), err);
  if (!c && !o->quiet) print_dropped(findings);
  free(drop);
  json_decref(findings);
  rule_set_free(all);
  rule_set_free(small);
  return c;
}

static iso_code stats(const options *o, rule_set **set, iso_error *err) {
  json_t *s = NULL;
  iso_code c = rules_stats(set, o->n_files, o->report, o->n_reports, &s, err);
  if (!c) rules_stats_text(o->json != NULL && strcmp(o->json, "-") == 0 ? stderr : stdout, s);
  if (!c && o->json != NULL) c = write_json(o->json, json_incref(s), err);
  json_decref(s);
  return c;
}

/* The rules that are proved here, in place of `*all`; the others are named, a line each. */
static iso_code only_proved(options *o, rule_set **all, int *status, iso_error *err) {
  rule_set *kept = NULL;
  json_t *refused = NULL, *why;
  const char *name;
  o->val.ops = o->ops;
  iso_code c = rules_proved(*all, o->jobs, o->limit_s, &o->val, &kept, &refused, err);
  if (c) return c;
  json_object_foreach(refused, name, why) {
    const char *text = json_string_value(why);
    fprintf(stderr, "isomer: rule %s is not exported: %s (--unchecked)\n", name, text);
    if (strncmp(text, "it is refuted", 13) == 0) *status = CLI_DIFFERENT;
    else if (*status == 0) *status = CLI_UNDECIDED;
  }
  json_decref(refused);
  rule_set_free(*all);
  *all = kept;
  return ISO_OK;
}

static iso_code export(options *o, rule_set **set, int *status, iso_error *err) {
  rule_set *all = NULL;
  char *text = NULL;
  json_t *refused = NULL, *why;
  const char *name;
  iso_code c = gather(o, set, &all, err);
  if (!c && !rules_is_target(o->target))
    c = iso_fail(err, ISO_USAGE, "no such target: \"%s\" (%s)", o->target, rules_targets);
  const size_t given = c ? 0 : rule_set_count(all);
  if (!c && !o->unchecked) c = only_proved(o, &all, status, err);
  if (!c) c = rules_export(all, o->target, o->unchecked, &text, &refused, err);
  if (!c) c = report_write(o->output != NULL ? o->output : "-", text, err);
  if (!c && !o->quiet) {
    json_object_foreach(refused, name, why)
        fprintf(stderr, "%s is left out: %s\n", name, json_string_value(why));
    fprintf(stderr, "isomer: %zu of %zu rules exported\n",
            rule_set_count(all) - json_object_size(refused), given);
  }
  free(text);
  json_decref(refused);
  rule_set_free(all);
  return c;
}

/* Rules of `a` that are not in `b`, behind `sign`. */
static iso_code only_in(rule_set *a, rule_set *b, char sign, size_t *n, iso_error *err) {
  rule_set *both = NULL;
  iso_code c = rule_set_new(&both, err);
  for (size_t j = 0; j < rule_set_count(b) && !c; j++)
    c = rule_set_add(both, rule_set_at(b, j), NULL, NULL, err);
  for (size_t j = 0; j < rule_set_count(a) && !c; j++) {
    const rule *r = rule_set_at(a, j);
    bool fresh;
    c = rule_set_add(both, r, NULL, &fresh, err);
    if (c || !fresh) continue;
    char *lhs = rule_side_print(r, false), *rhs = rule_side_print(r, true);
    printf("%c %s\t%s <=> %s\n", sign, r->name, lhs ? lhs : "?", rhs ? rhs : "?");
    free(lhs);
    free(rhs);
    ++*n;
  }
  rule_set_free(both);
  return c;
}

static iso_code diff(rule_set **set, int *status, iso_error *err) {
  size_t n = 0;
  iso_code c = only_in(set[0], set[1], '-', &n, err);
  if (!c) c = only_in(set[1], set[0], '+', &n, err);
  if (n) *status = CLI_DIFFERENT;
  return c;
}

int cmd_rules(int argc, char **argv) {
  options o;
  const int early = parse(argc, argv, &o);
  if (early >= 0) return early;
  iso_error err = {0};
  int status = 0;
  rule_set **set = calloc(o.n_files + 1, sizeof(rule_set *));
  iso_code c = set == NULL ? iso_fail(&err, ISO_NOMEM, "out of memory")
                           : load(&o, strcmp(o.verb, "check") == 0, set, &err);
  if (!c) {
    if (strcmp(o.verb, "check") == 0) c = check(&o, set, &status, &err);
    else if (strcmp(o.verb, "list") == 0) c = list(&o, set, &err);
    else if (strcmp(o.verb, "merge") == 0) c = merge(&o, set, &err);
    else if (strcmp(o.verb, "diff") == 0) c = diff(set, &status, &err);
    else if (strcmp(o.verb, "minimize") == 0) c = minimize(&o, set, &err);
    else if (strcmp(o.verb, "stats") == 0) c = stats(&o, set, &err);
    else if (strcmp(o.verb, "export") == 0) c = export(&o, set, &status, &err);
    else c = show(&o, set, &err);
  }
  if (c) {
    fprintf(stderr, "isomer: %s\n", err.msg);
    status = CLI_ERROR;
  }
  for (size_t i = 0; set != NULL && i < o.n_files; i++) rule_set_free(set[i]);
  free(set);
  return status;
}
