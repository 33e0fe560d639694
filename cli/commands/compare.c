/* isomer compare LEFT RIGHT: the main job. Wires captures, engine and comparison together and
 * prints the result. */
#include "check/check.h"
#include "cli/commands/compare_int.h"
#include "cli/report/certificate.h"
#include "cli/cli.h"
#include "cli/report/html.h"
#include "cli/config/limits.h"
#include "cli/report/obligations.h"
#include "cli/report/ci.h"
#include "cli/report/repro.h"
#include "cli/report/same_graph.h"
#include "egraph/base/parallel.h"
#include "validate/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_progress(void *ctx, const char *stage, size_t done, size_t total) {
  options *o = ctx;
  progress_at(&o->progress, stage, done, total);
}

static void on_idle(void *ctx) {
  const options *o = ctx;
  for (int side = 0; side < 2; side++) cap_idle(o->compared[side]);
}

static const char *on_stop(void *ctx) {
  options *o = ctx;
  progress_goes_on(&o->progress);
  return limits_reached(&o->limits);
}

static void on_trace(void *ctx, const char *line) {
  (void)ctx;
  fprintf(stderr, "%s\n", line);
}

static iso_code save_rules(const pair *p, size_t n, const char *path, iso_error *err) {
  rule_set *set = NULL;
  iso_code c = rule_set_new(&set, err);
  for (size_t k = 0; k < n && !c; k++) c = cmp_add_rules(p[k].result, set, err);
  if (!c) c = rule_set_save(set, path, err);
  rule_set_free(set);
  return c;
}

/* Write the files that --repro and --counterexample name, of the pair that decides. */
static iso_code write_witness(const options *o, report *rep, iso_error *err) {
  iso_code c = ISO_OK;
  if (rep->r->verdict != SYNTH_DIFFERENT) return c;
  if (o->counterexample && !rep->r->witness_leaf[0])
    fprintf(stderr, "isomer: %s is not written: %s\n", o->counterexample,
            "the witness is an output that nothing on the right is");
  else if (o->counterexample && !(c = repro_inputs(rep, o->counterexample, err)))
    rep->counterexample = o->counterexample;
  if (c || !o->repro) return c;
  if (!rep->r->cut) {
    fprintf(
        stderr,
        "isomer: %s is not written: the first divergence has no regions that can be run alone\n",
        o->repro);
    return c;
  }
  char *text = repro_script(rep);
  c = text ? report_write(o->repro, text, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  free(text);
  if (!c) rep->repro = o->repro;
  return c;
}

static iso_code save_learned(const options *o, iso_error *err) {
  char *path = report_beside(o->certificate, "learned");
  const iso_code c = path ? report_write(path, o->learned_certificate, err)
                          : iso_fail(err, ISO_NOMEM, "out of memory");
  free(path);
  return c;
}

/* The certificate of pair `k`: in FILE.json; of those with --also in FILE.2.json and so on. */
static iso_code save_certificate(const options *o, const report *rep, size_t k, iso_error *err) {
  const cap_options from = cmp_inputs_of(o, k);
  char *numbered = NULL, *text = NULL, number[32];
  if (!rep->r->certificate) {
    fprintf(stderr,
            "isomer: no certificate is written%s%s: the captures were not found equivalent\n",
            k ? " for " : "", k ? rep->left->path : "");
    return ISO_OK;
  }
  snprintf(number, sizeof number, "%zu", k + 1);
  if (k && !(numbered = report_beside(o->certificate, number)))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  char *lines = refinement_lines(rep->refinement, true);
  const certificate_of of = {&from, lines, o->pinned, o->unrun, rep->n_roles};
  iso_code c = lines ? certificate_text(rep->r, rep->left, rep->right, &of, &text, err)
                     : iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c) c = report_write(numbered ? numbered : o->certificate, text, err);
  if (!c && o->learned_certificate) c = save_learned(o, err);
  free(lines);
  free(text);
  free(numbered);
  return c;
}

/* Takes over `text`; NULL: there is no memory. */
static iso_code write_report(const char *path, char *text, iso_error *err) {
  iso_code c = text ? report_write(path, text, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  free(text);
  return c;
}

/* Certificates, one for each pair, and reports that are of one pair. */
static iso_code publish_parts(const options *o, const report *rep, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k < o->n_pairs && o->certificate && !c; k++)
    c = save_certificate(o, &rep[k], k, err);
  if (!c && o->sarif) c = write_report(o->sarif, report_sarif(rep), err);
  if (!c && o->junit) c = write_report(o->junit, report_junit(rep), err);
  if (!c && o->explorer) c = report_model_explorer(rep, o->explorer, err);
  if (!c && o->github) report_github(rep, o->json && strcmp(o->json, "-") == 0 ? stderr : stdout);
  return c;
}

static int status_of(const pair *p, const baseline *known) {
  const synth_result *r = p->result;
  if (limits_interrupted()) return CLI_INTERRUPTED;
  if (r->verdict == SYNTH_UNDECIDED) return CLI_UNDECIDED;
  if (p->refinement.unexpected) return CLI_DIFFERENT;
  return r->verdict == SYNTH_EQUIVALENT || baseline_accepts(known, r) ? CLI_EQUIVALENT
                                                                      : CLI_DIFFERENT;
}

static iso_code publish(const options *o, const pair *p, const baseline *known,
                        rule_schemas *schemas, iso_error *err) {
  report *rep = calloc(o->n_pairs, sizeof *rep);
  FILE *const text = o->json && strcmp(o->json, "-") == 0 ? stderr : stdout;
  const char *no_color = getenv("NO_COLOR");
  const bool colour = o->colour == COLOUR || (o->colour == COLOUR_AUTO &&
                                              !(no_color && *no_color) && isatty(fileno(text)));
  const size_t worst = cmp_deciding(p, o->n_pairs);
  iso_code c = rep ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t k = 0; k < o->n_pairs && !c; k++)
    rep[k] = (report){.left = p[k].graph[0],
                      .right = p[k].graph[1],
                      .r = p[k].result,
                      .schemas = schemas,
                      .seed = o->synth.seed,
                      .load = p[k].load,
                      .obligations = &p[k].obligations,
                      .refinement = &p[k].refinement,
                      .looked = &p[k].looked,
                      .total = p[k].total,
                      .verbose = o->verbose,
                      .explain = o->explain,
                      .quiet = o->quiet,
                      .no_stats = o->no_stats,
                      .colour = colour,
                      .pinned = o->pinned,
                      .n_roles = p[k].roles.n_ranks,
                      .rounding = o->rounding ? &p[k].rounding : NULL,
                      .known = o->baseline ? known : NULL};
  for (size_t k = 0; k < o->n_pairs && !c; k++)
    c = same_graph(rep[k].left, rep[k].right, &rep[k].same_graph, err);
  if (!c && o->save_rules) c = save_rules(p, o->n_pairs, o->save_rules, err);
  if (!c && o->save_relations)
    c = write_report(o->save_relations, refinement_lines(&p[worst].refinement, false), err);
  if (!c) c = write_witness(o, &rep[worst], err);
  if (!c && o->json) c = write_report(o->json, report_json(rep, o->n_pairs, worst), err);
  if (!c && o->html) c = write_report(o->html, report_html(rep, o->n_pairs, worst), err);
  if (!c) c = publish_parts(o, rep, err);
  if (!c) report_text(rep, o->n_pairs, worst, text);
  free(rep);
  return c;
}

/* The certificate of the pair that was learned from, which has how its leaves were related. */
static iso_code certify_learned(options *o, const pair *p, iso_error *err) {
  const cap_options from = {0};
  char *lines = refinement_lines(&p->refinement, true);
  const certificate_of of = {&from, lines, false, false, p->roles.n_ranks};
  const iso_code c = lines ? certificate_text(p->result, p->graph[0], p->graph[1], &of,
                                              &o->learned_certificate, err)
                           : iso_fail(err, ISO_NOMEM, "out of memory");
  free(lines);
  return c;
}

/* The rules of the pair that --learn names, beside those that are known, and how its leaves were
 * related. */
static iso_code learn(options *o, rule_schemas *schemas, val_engine *engine, rule_set **known,
                      iso_error *err) {
  options small = *o;
  pair p = {.no_scope = true};
  small.unrun = false;
  small.learning = true;
  small.n_pairs = 1;
  small.pair[0][0] = o->learn[0], small.pair[0][1] = o->learn[1];
  small.synth.ctx = &small;
  iso_code c = *known ? ISO_OK : rule_set_new(known, err);
  if (!c) c = cmp_compare_pair(&small, 0, schemas, engine, *known, &p, err);
  if (!c) c = cmp_add_rules(p.result, *known, err);
  if (!c)
    c = synth_hints(&p.view[0].g, &p.view[1].g, p.result, &o->learned, &o->synth.hint,
                    &o->synth.n_hints, err);
  if (!c && o->certificate && p.result->certificate && !p.result->certificate->missing)
    c = certify_learned(o, &p, err);
  cmp_free_pair(&p);
  return c;
}

int cmd_compare(int argc, char **argv) {
  options o;
  const int early = cmp_parse(argc, argv, &o);
  if (early >= 0) return early;
  o.val.ops = o.ops;
  o.val.other_samples = CHK_SEED;
  progress_start(&o.progress, !o.quiet && !o.trace);
  limits_start(&o.limits);
  o.synth.ctx = o.val.ctx = &o;
  o.synth.stop = o.val.stop = on_stop;
  o.synth.progress = on_progress;
  o.synth.idle = on_idle;
  o.synth.trace = o.trace ? on_trace : NULL;
  iso_error err = {0};
  rule_schemas *schemas = NULL;
  val_engine *engine = NULL;
  rule_set *known = NULL;
  pair *p = calloc(o.n_pairs, sizeof *p);
  iso_code c = p ? rule_schemas_new(&schemas, &err) : iso_fail(&err, ISO_NOMEM, "out of memory");
  if (!c && o.rules) c = rule_set_load(o.rules, &known, &err);
  if (!c && !known && o.n_pairs > 1) c = rule_set_new(&known, &err);
  if (!c) c = val_new(&o.val, schemas, &engine, &err);
  const char *
      version; /* libraries that do not load, and a device that is not there, are no node's fault */
  if (!c && (o.val.n_ops || strcmp(o.val.device, "cpu") != 0))
    c = val_torch_version(engine, &version, &err);
  if (!c && o.learn[0]) c = learn(&o, schemas, engine, &known, &err);
  for (size_t k = 0; k < o.n_pairs && !c; k++) {
    c = cmp_compare_pair(&o, k, schemas, engine, known, &p[k], &err);
    if (!c && !o.unrun) c = cmp_other_sizes(&o, k, schemas, engine, known, &p[k], &err);
    if (!c && k + 1 < o.n_pairs) c = cmp_add_rules(p[k].result, known, &err);
  }
  progress_end(&o.progress);
  int status = CLI_ERROR;
  if (!c) {
    baseline accepted = {0};
    if (o.baseline)
      c = baseline_load(o.baseline, p[0].result, p[0].graph[0], p[0].graph[1], &accepted, &err);
    if (!c) c = publish(&o, p, &accepted, schemas, &err);
    status = status_of(&p[cmp_deciding(p, o.n_pairs)], &accepted);
    baseline_free(&accepted);
  }
  if (c) {
    fprintf(stderr, "isomer: %s\n", err.msg);
    status = CLI_ERROR;
  }
  for (size_t k = 0; p && k < o.n_pairs; k++) cmp_free_pair(&p[k]);
  free(p);
  rule_set_free(known);
  iso_arena_fini(&o.learned);
  free(o.learned_certificate);
  val_free(engine);
  rule_schemas_free(schemas);
  return status;
}
