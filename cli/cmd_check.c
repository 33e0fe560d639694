/* isomer check CERTIFICATE LEFT RIGHT: replay a certificate without any search. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "cli/cli.h"
#include "cli/relations.h"
#include "validate/validate.h"

enum { CHECK_HOLDS = 0, CHECK_REFUSED = 1, CHECK_MALFORMED = 2, CHECK_UNPROVED = 3 };

typedef struct options {
  const char *path[3];
  size_t n_paths;
  const char *relations;
  chk_options check;
  val_options val;
  const char *ops[32];
  bool quiet;
} options;

static void help(FILE *f) {
  fputs("usage: isomer check CERTIFICATE LEFT RIGHT [options]\n"
        "  --trust-rules   take the rules' evidence as it is written; else each is proved or tested again\n"
        "  --seed N        of the samples on which rules are tested (default 0)\n"
        "  --relations FILE  as the comparison was given it: which outputs belong together\n"
        "  --ops LIB       a library of operators (may be repeated)\n"
        "  -q              the last line only\n"
        "exit status: 0 holds, 1 refused, 2 malformed, 3 a rule could not be proved again\n",
        f);
}

static int usage_error(const char *what, const char *arg) {
  fprintf(stderr, "isomer: check: %s%s%s%s (isomer check --help)\n", what, arg ? " \"" : "", arg ? arg : "", arg ? "\"" : "");
  return CLI_ERROR;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o) {
  *o = (options){.val = val_options_default()};
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i], *lib = NULL, *seed = NULL;
    if (strcmp(a, "--trust-rules") == 0) o->check.trust_rules = true;
    else if (strcmp(a, "-q") == 0) o->quiet = true;
    else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) return help(stdout), 0;
    else if (strncmp(a, "--relations=", 12) == 0) o->relations = a + 12;
    else if (strcmp(a, "--relations") == 0) {
      if (!(o->relations = i + 1 < argc ? argv[++i] : NULL)) return usage_error("no value for", a);
    } else if (strncmp(a, "--ops=", 6) == 0) lib = a + 6;
    else if (strcmp(a, "--ops") == 0) {
      if (!(lib = i + 1 < argc ? argv[++i] : NULL)) return usage_error("no value for", a);
    } else if (strncmp(a, "--seed=", 7) == 0) seed = a + 7;
    else if (strcmp(a, "--seed") == 0) {
      if (!(seed = i + 1 < argc ? argv[++i] : NULL)) return usage_error("no value for", a);
    } else if (a[0] == '-' && a[1]) return usage_error("unknown option", a);
    else if (o->n_paths == 3) return usage_error("more than a certificate and two captures:", a);
    else o->path[o->n_paths++] = a;
    if (seed) {
      char *end;
      errno = 0;
      o->val.seed = strtoull(seed, &end, 10);
      if (*seed < '0' || *seed > '9' || errno || *end) return usage_error("not a seed:", seed);
    }
    if (lib && o->val.n_ops == 32) return usage_error("too many libraries:", lib);
    if (lib) o->ops[o->val.n_ops++] = lib;
  }
  return o->n_paths == 3 ? -1 : usage_error("a certificate and two captures are needed", NULL);
}

static int print(const options *o, const chk_report *r) {
  if (r->outcome == CHK_MALFORMED) {
    fprintf(stderr, "isomer: %s: %s\n", o->path[0], r->reason);
    return CHECK_MALFORMED;
  }
  if (r->outcome == CHK_HOLDS && !o->quiet) {
    printf("steps %zu, rules %zu, outputs %zu\n\nassumes (%zu):\n", r->n_steps, r->n_rules, r->n_outputs, r->n_assumptions);
    for (size_t i = 0; i < r->n_assumptions; i++) printf("  %s\n", r->assumption[i]);
    putchar('\n');
  }
  if (r->outcome == CHK_HOLDS) printf("isomer: HOLDS [%s%s]\n", rule_status_name(r->evidence), o->check.trust_rules && r->n_rules ? ", rules trusted" : "");
  else printf("isomer: %s: %s\n", r->outcome == CHK_REFUSED ? "REFUSED" : "NOT PROVED AGAIN", r->reason);
  return r->outcome == CHK_HOLDS ? CHECK_HOLDS : r->outcome == CHK_REFUSED ? CHECK_REFUSED : CHECK_UNPROVED;
}

int cmd_check(int argc, char **argv) {
  options o;
  const int early = parse(argc, argv, &o);
  if (early >= 0) return early;
  o.val.ops = o.ops;
  iso_error err = {0};
  rule_schemas *schemas = NULL;
  cap_graph *graph[2] = {NULL, NULL};
  val_engine *engine = NULL;
  chk_report report = {0};
  relations given = {0};
  const char *version;
  int status = CLI_ERROR;
  iso_code c = rule_schemas_new(&schemas, &err);
  for (int i = 0; i < 2 && !c; i++) c = cap_load(o.path[i + 1], schemas, &graph[i], &err);
  if (!c && o.relations) c = relations_load(o.relations, graph[0], graph[1], &given, &err);
  if (!c) c = val_new(&o.val, schemas, &engine, &err);
  if (!c) c = val_torch_version(engine, &version, &err); /* without it nothing can be checked: an error, and no refusal */
  if (!c) {
    rule_oracle oracle = val_oracle(engine);
    c = chk_check(o.path[0], graph[0], graph[1], schemas, &oracle, &o.check, &report, &err);
  }
  if (c) fprintf(stderr, "isomer: %s\n", err.msg);
  else status = print(&o, &report);
  chk_report_free(&report);
  relations_free(&given);
  val_free(engine);
  cap_free(graph[0]);
  cap_free(graph[1]);
  rule_schemas_free(schemas);
  return status;
}
