/* isomer check CERTIFICATE LEFT RIGHT: replay a certificate without any search. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "cli/report/check_report.h"
#include "cli/cli.h"
#include "cli/config/options.h"
#include "cli/config/relations.h"
#include "cli/report/report.h"
#include "capture/calls/calls.h"
#include "capture/roles/roles.h"
#include "validate/validate.h"

enum { MAX_OPS = 32, MAX_INPUTS = 64 };
enum { CHECK_SEED = 0x636865636b }; /* of the input sets that the checker draws */
enum { CHECK_HOLDS = 0, CHECK_REFUSED = 1, CHECK_MALFORMED = 2, CHECK_UNPROVED = 3 };

typedef struct options {
  const char *path[3];
  size_t n_paths;
  calls_side calls[2];
  const char *relations, *json;
  const char *learn[2]; /* the pair that was learned from; NULL: none */
  chk_options check;
  val_options val;
  const char *ops[MAX_OPS], *inputs[MAX_INPUTS];
  bool quiet, refine;
} options;

static int usage_error(const char *what, const char *arg) {
  return cli_usage_error("check", what, arg);
}

/* Returns: -1, or the exit status. */
static int take(void *ctx, const char *name, const char *v, const char *second) {
  options *o = ctx;
  if (!name) {
    if (o->n_paths == 3) return usage_error("more than a certificate and two captures:", v);
    o->path[o->n_paths++] = v;
  } else if (strcmp(name, "relations") == 0) o->relations = v;
  else if (strcmp(name, "json") == 0) o->json = v;
  else if (strcmp(name, "learn") == 0) o->learn[0] = v, o->learn[1] = second;
  else if (strcmp(name, "then") == 0) {
    if (!calls_add(o->calls, v, second)) return usage_error("too many calls:", v);
  } else if (strcmp(name, "helper") == 0) o->val.helper = v;
  else if (strcmp(name, "trust-rules") == 0) o->check.trust_rules = true;
  else if (strcmp(name, "quiet") == 0) o->quiet = true;
  else if (strcmp(name, "refine") == 0) o->refine = true;
  else if (strcmp(name, "seed") == 0) {
    char *end;
    errno = 0;
    o->val.seed = strtoull(v, &end, 10);
    if (*v < '0' || *v > '9' || errno || *end) return usage_error("not a seed:", v);
  } else if (strcmp(name, "inputs") == 0) {
    if (o->check.n_inputs == MAX_INPUTS) return usage_error("too many input sets:", v);
    o->inputs[o->check.n_inputs++] = v;
  } else {
    if (o->val.n_ops == MAX_OPS) return usage_error("too many libraries:", v);
    o->ops[o->val.n_ops++] = v;
  }
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o) {
  *o = (options){.val = val_options_default()};
  const int status = cli_options_read("check", argc, argv, take, o);
  if (status >= 0) return status;
  if (o->n_paths < 3) return usage_error("a certificate and two captures are needed", NULL);
  if (o->check.n_inputs && !cap_is_archive(o->path[1]) && !cap_is_archive(o->path[2]))
    return usage_error("--inputs is for archives of torch.export.save; captures have their own",
                       NULL);
  return -1;
}

static void print_holds(const options *o, const chk_report *r, FILE *f) {
  const char *trusted = o->check.trust_rules && r->n_rules ? ", rules trusted" : "";
  iso_arena a;
  iso_arena_init(&a);
  const char *scope = r->symbol ? check_report_scope(r, &a) : NULL;
  fprintf(f, "isomer: HOLDS [%s%s%s%s]%s\n", rule_status_name(r->evidence), trusted,
          !scope                          ? ""
          : r->evidence == RULE_CERTIFIED ? "; proved for "
                                          : ", for ",
          scope ? scope : "", o->check.pinned ? ", at these weights" : "");
  iso_arena_fini(&a);
}

static int print(const options *o, const chk_report *r, FILE *f) {
  if (r->outcome == CHK_MALFORMED) {
    fprintf(stderr, "isomer: %s: no certificate: %s\n", o->path[0], r->reason);
    return CHECK_MALFORMED;
  }
  if (r->outcome == CHK_HOLDS && !o->quiet) check_report_text(r, o->val.seed - CHK_SEED, f);
  if (r->outcome == CHK_HOLDS) print_holds(o, r, f);
  else
    fprintf(f, "isomer: %s: %s\n", r->outcome == CHK_REFUSED ? "REFUSED" : "NOT PROVED AGAIN",
            r->reason);
  return r->outcome == CHK_HOLDS     ? CHECK_HOLDS
         : r->outcome == CHK_REFUSED ? CHECK_REFUSED
                                     : CHECK_UNPROVED;
}

/* Prints the report and writes it. Returns: the exit status. */
static int conclude(const options *o, const chk_report *r) {
  iso_error err = {0};
  const int status = print(o, r, o->json && strcmp(o->json, "-") == 0 ? stderr : stdout);
  char *text = o->json ? check_report_json(r) : NULL;
  iso_code c = !o->json ? ISO_OK
               : text   ? report_write(o->json, text, &err)
                        : iso_fail(&err, ISO_NOMEM, "out of memory");
  free(text);
  if (c) fprintf(stderr, "isomer: %s\n", err.msg);
  return c ? CLI_ERROR : status;
}

/* A step that does not fit the captures is the certificate's fault: `found` is settled then. */
static iso_code refuse(iso_code c, chk_report *found, iso_error *err) {
  if (c != ISO_FORMAT && c != ISO_USAGE) return c;
  found->outcome = CHK_REFUSED;
  snprintf(found->reason, sizeof found->reason, "%s", err->msg);
  return ISO_OK;
}

/* Changes the captures' outputs by the certificate's lines on how they are put together. */
static iso_code relate(options *o, cap_graph *graph[2], relations *given, chk_report *found,
                       iso_error *err) {
  const char *const *line = NULL;
  size_t n = 0;
  iso_code c = chk_relation_lines(o->path[0], &given->arena, &line, &n, err);
  if (c) return c;
  given->refines = o->refine;
  for (size_t i = 0; i < n && !c; i++)
    if (!relations_is_fold(line[i])) c = relations_add(given, line[i], graph[0], graph[1], err);
  if (!c) c = relations_check_names(given, err);
  if (!c) c = relations_apply(given, graph[0], graph[1], err);
  o->check.relation = line;
  o->check.n_relations = n;
  return n ? refuse(c, found, err) : c;
}

/* The parameters that were computed when a model was loaded: first those of the relations file,
 * then those that the certificate names, which are held against the values as a user's are. */
static iso_code fold(const options *o, cap_graph *graph[2], const rule_oracle *oracle,
                     relations_folded *out, chk_report *found, iso_error *err) {
  const char *const *line = NULL;
  size_t n = 0;
  iso_code c = relations_fold_file(o->relations, graph, oracle, out, err);
  if (!c) c = chk_relation_lines(o->path[0], &out->arena, &line, &n, err);
  if (c) return c;
  for (size_t i = 0; i < n && !c; i++)
    if (relations_is_fold(line[i]))
      c = relations_fold(line[i], "the certificate's relation", true, graph, oracle, out, err);
  return n ? refuse(c, found, err) : c;
}

/* The right side's `n` ranks as one, as the certificate says. */
static iso_code make_one(options *o, cap_graph *graph[2], const rule_oracle *oracle, size_t n,
                         roles_result *out, chk_report *found, iso_error *err) {
  const roles_asked q = {graph[0], oracle, 2, true, o->check.seed};
  const iso_code c = roles_fold(graph[1], &q, out, err);
  if (!c && out->n_ranks != n) {
    found->outcome = CHK_REFUSED;
    snprintf(found->reason, sizeof found->reason, "its %zu ranks are not one: %s", n,
             out->why ? out->why : "there are others");
  }
  o->check.roles = out;
  return c;
}

static iso_code holds_of_no_number(void *ctx, const rule *r, bool *yes, iso_error *err) {
  return val_undefined_together(ctx, r, yes, err);
}

/* `learned`: the parameters that another certificate relates, or NULL. */
static iso_code check_graphs(options *o, cap_graph *graph[2], rule_schemas *schemas,
                             val_engine *engine, const chk_report *learned, chk_report *found,
                             iso_error *err) {
  const bool weights = !o->check.unrun;
  relations given = {0};
  relations_folded folded = {0};
  cap_agreement agreed = {0};
  const rule_oracle oracle = val_oracle(engine);
  iso_code c = weights ? fold(o, graph, &oracle, &folded, found, err) : ISO_OK;
  if (!c) c = relations_load(o->relations, false, graph[0], graph[1], &given, err);
  if (!c) c = relations_agree(&given, graph[0], graph[1], CHECK_SEED ^ o->val.seed, &agreed, err);
  if (!c) c = relations_note_folds(&folded, &agreed, err);
  if (!c && found->outcome == CHK_HOLDS && weights) c = relate(o, graph, &given, found, err);
  if (!c) c = chk_at_these_weights(o->path[0], &o->check.pinned, err);
  if (!c && o->check.pinned && weights) c = cap_pin(graph[0], graph[1], &agreed, err);
  o->check.agreed = &agreed;
  o->check.given_leaves = given.n_given > 0;
  o->check.learned = learned ? learned->related : NULL;
  o->check.n_learned = learned ? learned->n_related : 0;
  o->check.together = holds_of_no_number;
  o->check.together_ctx = engine;
  if (!c && found->outcome == CHK_HOLDS)
    c = chk_check(o->path[0], graph[0], graph[1], schemas, &oracle, &o->check, found, err);
  relations_free(&given);
  relations_folded_free(&folded);
  return c;
}

/* A certificate of two captures. `learned` as above. Owns: the caller frees `found`, also after an
 * error. */
static iso_code check_one(options *o, rule_schemas *schemas, val_engine *engine,
                          const chk_report *learned, chk_report *found, iso_error *err) {
  cap_options from = {.inputs = o->inputs, .n_inputs = o->check.n_inputs, .sort_unseen = true};
  cap_graph *graph[2] = {NULL, NULL};
  roles_result roles = {0};
  size_t n_roles = 0;
  const rule_oracle oracle = val_oracle(engine);
  iso_code c = chk_static(o->path[0], &o->check.unrun, err);
  from.no_weights = o->check.unrun;
  if (!c && !o->check.unrun) c = chk_roles(o->path[0], &n_roles, err);
  from.keep_role = n_roles > 0;
  for (int i = 0; i < 2; i++) o->calls[i].first = o->path[i + 1];
  if (!c) c = calls_load(o->calls, &from, NULL, schemas, graph, err);
  if (!c && n_roles) c = make_one(o, graph, &oracle, n_roles, &roles, found, err);
  if (!c && found->outcome == CHK_HOLDS)
    c = check_graphs(o, graph, schemas, engine, learned, found, err);
  roles_free(&roles);
  cap_free(graph[0]);
  cap_free(graph[1]);
  return c;
}

/* The certificate of the pair that was learned from, beside the other one. Returns: in `holds`
 * whether there is more to check; else `status` is final. */
static iso_code check_learned(const options *o, rule_schemas *schemas, val_engine *engine,
                              chk_report *out, int *status, bool *holds, iso_error *err) {
  options small = *o;
  char *path = report_beside(o->path[0], "learned");
  if (!path) return iso_fail(err, ISO_NOMEM, "out of memory");
  small.path[0] = path, small.path[1] = o->learn[0], small.path[2] = o->learn[1];
  small.json = NULL;
  small.calls[0].n = small.calls[1].n = 0;
  small.check.inputs = NULL, small.check.n_inputs = 0;
  const iso_code c = check_one(&small, schemas, engine, NULL, out, err);
  *holds = !c && out->outcome == CHK_HOLDS;
  if (!c && !*holds) *status = print(&small, out, stdout);
  free(path);
  return c;
}

int cmd_check(int argc, char **argv) {
  options o;
  const int early = parse(argc, argv, &o);
  if (early >= 0) return early;
  o.val.ops = o.ops;
  o.val.seed += CHK_SEED;
  o.check.inputs = o.inputs;
  o.check.seed = o.val.seed;
  iso_error err = {0};
  rule_schemas *schemas = NULL;
  val_engine *engine = NULL;
  chk_report found = {0}, learned = {0};
  const char *version;
  int status = CLI_ERROR;
  bool go_on = true;
  iso_code c = rule_schemas_new(&schemas, &err);
  if (!c) c = val_new(&o.val, schemas, &engine, &err);
  if (!c)
    c = val_torch_version(engine, &version,
                          &err); /* without it nothing can be checked: an error, and no refusal */
  if (!c && o.learn[0]) c = check_learned(&o, schemas, engine, &learned, &status, &go_on, &err);
  if (!c && go_on) c = check_one(&o, schemas, engine, o.learn[0] ? &learned : NULL, &found, &err);
  if (c) fprintf(stderr, "isomer: %s\n", err.msg), status = CLI_ERROR;
  else if (go_on) status = conclude(&o, &found);
  chk_report_free(&found);
  chk_report_free(&learned);
  val_free(engine);
  rule_schemas_free(schemas);
  return status;
}
