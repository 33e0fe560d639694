/* The options of isomer compare, and how they go together. */
#include "cli/commands/compare_int.h"
#include "cli/cli.h"
#include "cli/config/options.h"
#include "cli/report/html.h"
#include "cli/config/limits.h"
#include "cli/report/obligations.h"
#include "cli/config/relations.h"
#include "cli/report/ci.h"
#include "cli/report/targets.h"
#include "egraph/base/parallel.h"
#include "localise/localise.h"
#include "validate/validate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage_error(const char *what, const char *arg) {
  return cli_usage_error("compare", what, arg);
}

/* A comma list of optimisations. Returns: false where one is none. */
static bool parse_disable(const char *s, unsigned *out) {
  static const char *const name[] = {"fingerprint", "reachable", "lazy",  "reuse",
                                     "signature",   "saturate",  "sizes", "roles"};
  enum { N = sizeof name / sizeof *name };
  for (;; s++) {
    const size_t n = strcspn(s, ",");
    size_t k = 0;
    while (k < N && (strlen(name[k]) != n || strncmp(s, name[k], n) != 0)) k++;
    if (k == N) return false;
    *out |= 1u << k; /* SYNTH_FINGERPRINT ... CMP_ROLES */
    s += n;
    if (*s == 0) return true;
  }
}

/* A word out of `list`. Returns: its place, -1 for none. */
static int parse_word(const char *s, const char *const *list) {
  for (int i = 0; list[i]; i++)
    if (strcmp(s, list[i]) == 0) return i;
  return -1;
}

/* Options whose value is kept as it is. Returns: where, NULL for others. */
static const char **text_option(options *o, const char *name) {
  const struct {
    const char *name, **value;
  } all[] = {{"json", &o->json},
             {"html", &o->html},
             {"rules", &o->rules},
             {"relations", &o->relations},
             {"save-rules", &o->save_rules},
             {"save-relations", &o->save_relations},
             {"expect", &o->expect},
             {"counterexample", &o->counterexample},
             {"repro", &o->repro},
             {"certificate", &o->certificate},
             {"sarif", &o->sarif},
             {"junit", &o->junit},
             {"model-explorer", &o->explorer},
             {"baseline", &o->baseline},
             {"helper", &o->val.helper}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (strcmp(name, all[k].name) == 0) return all[k].value;
  return NULL;
}

/* Options whose value is looked at. Returns: -1, or the exit status. */
static int set_option(options *o, const char *name, const char *v) {
  static const char *const evidence[] = {"assumed", "tested", "proved", "certified", NULL},
                           *const device[] = {"cpu", "cuda", NULL};
  static const char *const colour[] = {
      [COLOUR_AUTO] = "auto", [COLOUR] = "always", [NO_COLOUR] = "never", NULL};
  uint64_t n;
  int word;
  if (strcmp(name, "seed") == 0) {
    if (!cli_parse_u64(v, &n)) return usage_error("not a seed:", v);
    o->val.seed = o->synth.seed = n;
  } else if (strcmp(name, "jobs") == 0) {
    if (!cli_parse_u64(v, &n) || n < 1 || n > 1024) return usage_error("not a number of jobs:", v);
    o->synth.threads = (unsigned)n;
  } else if (strcmp(name, "timeout") == 0) {
    if (!limits_parse_seconds(v, &o->limits.seconds))
      return usage_error("not a number of seconds:", v);
  } else if (strcmp(name, "memory") == 0) {
    if (!limits_parse_bytes(v, &o->limits.memory_bytes))
      return usage_error("not a number of bytes:", v);
  } else if (strcmp(name, "disable") == 0) {
    if (!parse_disable(v, &o->synth.disable))
      return usage_error("--disable takes signature, fingerprint, reachable, lazy, reuse, "
                         "saturate, sizes and roles, not",
                         v);
  } else if (strcmp(name, "require") == 0) {
    if ((word = parse_word(v, evidence)) < 0)
      return usage_error("--require takes certified, proved, tested or assumed, not", v);
    o->synth.require_proved = word >= 2;
    o->certified = word == 3;
  } else if (strcmp(name, "inputs") == 0) {
    if (o->n_inputs == MAX_INPUTS) return usage_error("too many input sets:", v);
    o->inputs[o->n_inputs++] = v;
  } else if (strcmp(name, "ops") == 0) {
    if (o->val.n_ops == MAX_OPS) return usage_error("too many libraries:", v);
    o->ops[o->val.n_ops++] = v;
  } else if (strcmp(name, "device") == 0) {
    if (parse_word(v, device) < 0) return usage_error("--device takes cpu or cuda, not", v);
    o->val.device = v;
  } else {
    if ((word = parse_word(v, colour)) < 0)
      return usage_error("--color takes auto, always or never, not", v);
    o->colour = word;
  }
  return -1;
}

static bool set_flag(options *o, const char *name) {
  const struct {
    const char *name;
    bool *flag;
  } all[] = {
      {"quiet", &o->quiet},       {"verbose", &o->verbose},   {"github", &o->github},
      {"trace", &o->trace},       {"refine", &o->refine},     {"explain", &o->explain},
      {"no-stats", &o->no_stats}, {"rounding", &o->rounding}, {"at-these-weights", &o->pinned},
      {"static", &o->unrun}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (strcmp(name, all[k].name) == 0) return *all[k].flag = true;
  return false;
}

/* Settle how the options go together. Returns: -1, or the exit status. */
static int settle(options *o) {
  if (!o->pair[0][1]) return usage_error("two captures are needed", NULL);
  const bool then = o->calls[0].n + o->calls[1].n > 0;
  if (then && (o->n_pairs > 1 || o->learn[0] || o->n_inputs))
    return usage_error("--then does not go with --also, --learn and --inputs", NULL);
  if (o->learn[0] && !o->unrun) return usage_error("--learn goes with --static", NULL);
  if (o->unrun && (o->certified || o->rounding || o->refine || o->pinned || o->relations ||
                   o->expect || o->repro || o->counterexample || o->n_pairs > 1))
    return usage_error("--static does not go with --also, --require certified, --rounding, "
                       "--refine, --relations, --expect, --at-these-weights, --repro and "
                       "--counterexample",
                       NULL);
  if (o->n_inputs && !cap_is_archive(o->pair[0][0]) && !cap_is_archive(o->pair[0][1]))
    return usage_error("--inputs is for archives of torch.export.save; captures have their own",
                       NULL);
  if (o->n_pairs > 1 && (o->sarif || o->junit || o->explorer || o->baseline || o->github))
    return usage_error("--also does not go with reports of one pair: --sarif, --junit, --github, "
                       "--model-explorer, --baseline",
                       NULL);
  const char *const target[] = {o->json,           o->html,  o->save_rules,
                                o->certificate,    o->sarif, o->junit,
                                o->counterexample, o->repro, o->save_relations};
  iso_error err;
  if (targets_check(target, sizeof target / sizeof *target, &err))
    return usage_error(err.msg, NULL);
  if (o->baseline && access(o->baseline, R_OK) != 0)
    return usage_error("the baseline cannot be read:", o->baseline);
  /* Obligations may be written at the sizes of a chain's steps, which a certificate has. */
  o->synth.certificate = o->certificate || o->certified;
  o->synth.keep_witness = o->repro || o->counterexample;
  o->synth.shrink = o->counterexample != NULL;
  return -1;
}

/* An option or a capture. Returns: -1, or the exit status. */
static int take(void *ctx, const char *name, const char *v, const char *second) {
  options *o = ctx;
  if (!name) {
    const char **place = !o->pair[0][0] ? &o->pair[0][0] : &o->pair[0][1];
    if (*place) return usage_error("more than two captures:", v);
    *place = v;
    return -1;
  }
  const char **text = text_option(o, name);
  if (text) return *text = v, -1;
  if (set_flag(o, name)) return -1;
  if (strcmp(name, "learn") == 0) return o->learn[0] = v, o->learn[1] = second, -1;
  if (strcmp(name, "then") == 0)
    return calls_add(o->calls, v, second) ? -1 : usage_error("too many calls:", v);
  if (strcmp(name, "also") != 0) return set_option(o, name, v);
  if (o->n_pairs == MAX_PAIRS) return usage_error("too many pairs:", v);
  o->pair[o->n_pairs][0] = v;
  o->pair[o->n_pairs++][1] = second;
  return -1;
}

int cmp_parse(int argc, char **argv, options *o) {
  *o = (options){.n_pairs = 1, .val = val_options_default(), .synth = synth_options_default()};
  o->synth.localiser = localise_parts();
  o->synth.threads = iso_processors();
  const int status = cli_options_read("compare", argc, argv, take, o);
  return status >= 0 ? status : settle(o);
}
