/* isomer compare LEFT RIGHT: the main job. Wires captures, engine and comparison together and
 * prints what came out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/report/certificate.h"
#include "cli/cli.h"
#include "cli/report/html.h"
#include "cli/config/limits.h"
#include "cli/report/obligations.h"
#include "cli/config/relations.h"
#include "cli/report/ci.h"
#include "cli/report/repro.h"
#include "cli/report/targets.h"
#include "egraph/base/parallel.h"
#include "localise/localise.h"
#include "validate/validate.h"

enum { MAX_PAIRS = 33, MAX_OPS = 32, MAX_INPUTS = 64 };

typedef struct options {
  const char *pair[MAX_PAIRS][2]; /* left, right; those after the first come with --also */
  size_t n_pairs;
  const char *json, *html, *rules, *save_rules, *repro, *counterexample;
  const char *certificate;
  const char *sarif, *junit, *explorer, *baseline; /* of one pair only */
  const char *relations;
  bool github;
  enum { COLOUR_AUTO, COLOUR, NO_COLOUR } colour;
  val_options val;
  synth_options synth;
  const char *ops[MAX_OPS], *inputs[MAX_INPUTS];
  size_t n_inputs;
  limits limits;
  bool certified; /* nothing less counts */
  bool quiet, verbose, explain, trace, progress, no_stats;
  cap_graph *const *compared; /* the two graphs at hand */
} options;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void help(FILE *f) {
  fputs("usage: isomer compare LEFT RIGHT [options]\n"
        "  --json FILE|-        the report as JSON (with -, the text goes to stderr)\n"
        "  --html FILE          the report as one page for a browser: graphs, divergences, rules "
        "(docs/reports.md)\n"
        "  --seed N             of inputs, parameters and samples that are drawn (default 0)\n"
        "  --rules FILE         rules to try first; each is validated again\n"
        "  --relations FILE     which outputs, inputs and leaves belong together "
        "(docs/relations.md)\n"
        "  --save-rules FILE    write the rules that were used\n"
        "  --certificate FILE   where equivalent: the chain of steps, for isomer check "
        "(docs/certificate.md)\n"
        "  --sarif FILE         the divergences for code scanning (SARIF 2.1.0)\n"
        "  --junit FILE         a test case for each output (JUnit's XML)\n"
        "  --github             a GitHub annotation for each divergence\n"
        "  --model-explorer DIR files for Model Explorer's two panes\n"
        "  --baseline FILE      divergences that are known: only new ones fail (docs/reports.md)\n"
        "  --also LEFT RIGHT    captures of the same models at other lengths, compared too (may be "
        "repeated); the verdict is the worst\n"
        "  --counterexample FILE  the inputs that show a difference, made small, as safetensors "
        "(left.NAME, right.NAME)\n"
        "  --repro FILE.py      a PyTorch script of the first divergence that runs alone: exit "
        "status 1 while it is there\n"
        "  --require certified|proved|tested|assumed  the least evidence for \"equivalent\" "
        "(default tested)\n"
        "  --timeout SECONDS    give up as undecided, between two steps; SIGINT does the same at "
        "once (exit status 130)\n"
        "  --memory BYTES       the same, by resident memory; K, M and G are understood\n"
        "  --inputs FILE        inputs (safetensors) of archives of torch.export.save, in place of "
        "their example inputs\n"
        "                       (repeated: a further input set each)\n"
        "  --ops LIB            a library of operators (may be repeated)\n"
        "  --helper CMD         a process that runs other operators: python3 -m "
        "isomer_capture.helper --import MODULE\n"
        "  --device cpu|cuda    where operators run\n"
        "  --jobs N             at most N threads (default: a processor each); results do not "
        "depend on it\n"
        "  --color auto|always|never  the verdict in colour (default auto: on a terminal, unless "
        "NO_COLOR is set)\n"
        "  --explain            the steps by which the outputs are equal\n"
        "  --disable LIST       do without: signature, fingerprint, reachable, lazy, reuse (to see "
        "what each buys)\n"
        "  --no-stats           no figures that differ from run to run in the report\n"
        "  --trace              each candidate and merge, on stderr\n"
        "  -q, -v               less, more\n"
        "exit status: 0 equivalent, 1 different, 3 undecided, 2 error\n",
        f);
}

static int usage_error(const char *what, const char *arg) {
  fprintf(stderr, "isomer: compare: %s%s%s%s (isomer compare --help)\n", what, arg ? " \"" : "",
          arg ? arg : "", arg ? "\"" : "");
  return CLI_ERROR;
}

static void on_progress(void *ctx, const char *stage, size_t done, size_t total) {
  const options *o = ctx;
  if (o->progress) fprintf(stderr, "\r\033[K%s %zu/%zu", stage, done, total);
}

static void on_idle(void *ctx) {
  const options *o = ctx;
  for (int side = 0; side < 2; side++) cap_idle(o->compared[side]);
}

static const char *on_stop(void *ctx) {
  const options *o = ctx;
  return limits_reached(&o->limits);
}

static void on_trace(void *ctx, const char *line) {
  (void)ctx;
  fprintf(stderr, "%s\n", line);
}

static bool parse_u64(const char *s, uint64_t *out) {
  char *end;
  errno = 0;
  if (*s < '0' || *s > '9') return false;
  *out = strtoull(s, &end, 10);
  return errno == 0 && *end == 0;
}

/* A comma list of optimisations. Returns: false where one is none. */
static bool parse_disable(const char *s, unsigned *out) {
  static const char *const name[] = {"fingerprint", "reachable", "lazy", "reuse", "signature"};
  enum { N = sizeof name / sizeof *name };
  for (;; s++) {
    const size_t n = strcspn(s, ",");
    size_t k = 0;
    while (k < N && (strlen(name[k]) != n || strncmp(s, name[k], n) != 0)) k++;
    if (k == N) return false;
    *out |= 1u << k; /* SYNTH_FINGERPRINT ... */
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
  } all[] = {{"--json", &o->json},
             {"--html", &o->html},
             {"--rules", &o->rules},
             {"--relations", &o->relations},
             {"--save-rules", &o->save_rules},
             {"--counterexample", &o->counterexample},
             {"--repro", &o->repro},
             {"--certificate", &o->certificate},
             {"--sarif", &o->sarif},
             {"--junit", &o->junit},
             {"--model-explorer", &o->explorer},
             {"--baseline", &o->baseline},
             {"--helper", &o->val.helper}};
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
  if (strcmp(name, "--seed") == 0) {
    if (!parse_u64(v, &n)) return usage_error("not a seed:", v);
    o->val.seed = o->synth.seed = n;
  } else if (strcmp(name, "--jobs") == 0) {
    if (!parse_u64(v, &n) || n < 1 || n > 1024) return usage_error("not a number of jobs:", v);
    o->synth.threads = (unsigned)n;
  } else if (strcmp(name, "--timeout") == 0) {
    if (!limits_parse_seconds(v, &o->limits.seconds))
      return usage_error("not a number of seconds:", v);
  } else if (strcmp(name, "--memory") == 0) {
    if (!limits_parse_bytes(v, &o->limits.memory_bytes))
      return usage_error("not a number of bytes:", v);
  } else if (strcmp(name, "--disable") == 0) {
    if (!parse_disable(v, &o->synth.disable))
      return usage_error("--disable takes signature, fingerprint, reachable, lazy and reuse, not",
                         v);
  } else if (strcmp(name, "--require") == 0) {
    if ((word = parse_word(v, evidence)) < 0)
      return usage_error("--require takes certified, proved, tested or assumed, not", v);
    o->synth.require_proved = word >= 2;
    o->certified = word == 3;
  } else if (strcmp(name, "--inputs") == 0) {
    if (o->n_inputs == MAX_INPUTS) return usage_error("too many input sets:", v);
    o->inputs[o->n_inputs++] = v;
  } else if (strcmp(name, "--ops") == 0) {
    if (o->val.n_ops == MAX_OPS) return usage_error("too many libraries:", v);
    o->ops[o->val.n_ops++] = v;
  } else if (strcmp(name, "--device") == 0) {
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
  } all[] = {{"-q", &o->quiet},      {"-v", &o->verbose},        {"--github", &o->github},
             {"--trace", &o->trace}, {"--explain", &o->explain}, {"--no-stats", &o->no_stats}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (strcmp(name, all[k].name) == 0) return *all[k].flag = true;
  return false;
}

/* What the options together ask for. Returns: -1, or the exit status. */
static int settle(options *o) {
  if (!o->pair[0][1]) return usage_error("two captures are needed", NULL);
  if (o->n_inputs && !cap_is_archive(o->pair[0][0]) && !cap_is_archive(o->pair[0][1]))
    return usage_error("--inputs is for archives of torch.export.save; captures have their own",
                       NULL);
  if (o->n_pairs > 1 && (o->sarif || o->junit || o->explorer || o->baseline || o->github))
    return usage_error("--also does not go with reports of one pair: --sarif, --junit, --github, "
                       "--model-explorer, --baseline",
                       NULL);
  const char *const target[] = {o->json,  o->html,  o->save_rules,     o->certificate,
                                o->sarif, o->junit, o->counterexample, o->repro};
  iso_error err;
  if (targets_check(target, sizeof target / sizeof *target, &err))
    return usage_error(err.msg, NULL);
  if (o->baseline && access(o->baseline, R_OK) != 0)
    return usage_error("the baseline cannot be read:", o->baseline);
  o->synth.certificate = o->certificate != NULL;
  o->synth.keep_witness = o->repro || o->counterexample;
  o->synth.shrink = o->counterexample != NULL;
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o) {
  static const char *const with_value[] = {"--seed",    "--require", "--timeout", "--memory",
                                           "--disable", "--inputs",  "--ops",     "--device",
                                           "--color",   "--jobs",    NULL};
  *o = (options){.n_pairs = 1, .val = val_options_default(), .synth = synth_options_default()};
  o->synth.localiser = localise_parts();
  o->synth.threads = iso_processors();
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i], *eq = strchr(a, '=');
    char name[64];
    snprintf(name, sizeof name, "%.*s", eq && a[0] == '-' ? (int)(eq - a) : 63, a);
    const char **text = text_option(o, name);
    if (text || parse_word(name, with_value) >= 0) {
      const char *v = eq ? eq + 1 : i + 1 < argc ? argv[++i] : NULL;
      const int status = v ? -1 : usage_error("no value for", name);
      if (status >= 0) return status;
      if (text) *text = v;
      else if (set_option(o, name, v) >= 0) return CLI_ERROR;
    } else if (strcmp(a, "--also") == 0) {
      if (i + 2 >= argc) return usage_error("--also takes two captures", NULL);
      if (o->n_pairs == MAX_PAIRS) return usage_error("too many pairs:", a);
      o->pair[o->n_pairs][0] = argv[++i];
      o->pair[o->n_pairs++][1] = argv[++i];
    } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
      help(stdout);
      return 0;
    } else if (set_flag(o, a)) continue;
    else if (a[0] == '-' && a[1]) return usage_error("unknown option", a);
    else if (!o->pair[0][0]) o->pair[0][0] = a;
    else if (!o->pair[0][1]) o->pair[0][1] = a;
    else return usage_error("more than two captures:", a);
  }
  return settle(o);
}

/* A capture as the comparison sees it. Owns: free_graph. */
typedef struct view {
  synth_graph g;
  synth_node *node;
  synth_output *output;
  rule_tensor **value;
} view;

/* `relation`: of each output, or NULL. */
static bool make_view(const cap_graph *c, const char *const *relation, size_t n_captured, view *v) {
  *v = (view){0};
  v->node = calloc(c->n_nodes + 1, sizeof *v->node);
  v->output = calloc(c->n_results + 1, sizeof *v->output);
  v->value = calloc((c->n_sets + 1) * (c->n_nodes + 1), sizeof *v->value);
  if (!v->node || !v->output || !v->value) return false;
  for (size_t i = 0; i < c->n_nodes; i++) {
    const cap_node *n = &c->node[i];
    rule_tensor **val = &v->value[i * c->n_sets];
    for (size_t s = 0; s < c->n_sets; s++)
      val[s] = n->kind == CAP_INPUT ? c->input[s * c->n_nodes + i] : n->value;
    v->node[i] = (synth_node){.id = n->id,
                              .name = n->name,
                              .op = n->op,
                              .scope = n->scope,
                              .source = n->source,
                              .kind = n->kind == CAP_INPUT       ? SYNTH_INPUT
                                      : n->kind == CAP_PARAMETER ? SYNTH_PARAMETER
                                      : n->kind == CAP_BUFFER    ? SYNTH_BUFFER
                                      : n->kind == CAP_CONSTANT  ? SYNTH_CONSTANT
                                                                 : SYNTH_OP,
                              .call = n->call,
                              .n_outputs = n->n_outputs,
                              .value = val,
                              .domain = n->domain};
    if (n->n_outputs) v->node[i].shape = n->output[0].shape, v->node[i].dtype = n->output[0].dtype;
  }
  for (size_t i = 0; i < c->n_results; i++)
    v->output[i] =
        (synth_output){c->result[i].name, c->result[i].node, relation ? relation[i] : NULL};
  v->g = (synth_graph){.path = c->path,
                       .n_nodes = c->n_nodes,
                       .node = v->node,
                       .n_outputs = c->n_results,
                       .output = v->output,
                       .n_sets = c->n_sets,
                       .n_captured = n_captured};
  return true;
}

static void free_view(view *v) {
  free(v->node);
  free(v->output);
  free(v->value);
}

/* One pair: its captures and what came out. Owns: free_pair. */
typedef struct pair {
  cap_graph *graph[2];
  view view[2];
  relations relations;
  cap_agreement agreed;
  synth_result *result;
  obligations obligations;
  double load, total; /* seconds */
} pair;

static void free_pair(pair *p) {
  synth_result_free(p->result);
  obligations_free(&p->obligations);
  for (int side = 0; side < 2; side++) {
    free_view(&p->view[side]);
    cap_free(p->graph[side]);
  }
  relations_free(&p->relations);
}

static iso_code add_rules(const synth_result *r, rule_set *set, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < r->n_rules && !c; i++) {
    size_t index;
    bool fresh;
    c = rule_set_add(set, r->rule[i].what, &index, &fresh, err);
    if (!c) rule_set_evidence(set, index, r->rule[i].verdict.status, r->rule[i].verdict.scope);
  }
  return c;
}

static iso_code save_rules(const pair *p, size_t n, const char *path, iso_error *err) {
  rule_set *set = NULL;
  iso_code c = rule_set_new(&set, err);
  for (size_t k = 0; k < n && !c; k++) c = add_rules(p[k].result, set, err);
  if (!c) c = rule_set_save(set, path, err);
  rule_set_free(set);
  return c;
}

static cap_options inputs_of(const options *o, size_t k) {
  return (cap_options){.inputs = o->inputs,
                       .n_inputs = k == 0 ? o->n_inputs : 0}; /* other pairs have other lengths */
}

/* What was agreed on of inputs, as assumptions. Owns: free(). */
static synth_note *notes_of(const cap_agreement *a) {
  synth_note *n = calloc(a->n_notes + 1, sizeof *n);
  for (size_t i = 0; n && i < a->n_notes; i++)
    n[i] = (synth_note){a->note[i].kind, a->note[i].text, a->note[i].left, a->note[i].right};
  return n;
}

static iso_code compare_pair(options *o, size_t k, rule_schemas *schemas, val_engine *engine,
                             const rule_set *known, pair *p, iso_error *err) {
  const double t0 = now();
  const cap_options inputs = inputs_of(o, k);
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    c = cap_load_with(o->pair[k][side], &inputs, schemas, &p->graph[side], err);
  if (!c && o->relations)
    c = relations_load(o->relations, p->graph[0], p->graph[1], &p->relations, err);
  if (!c)
    c = relations_agree(&p->relations, p->graph[0], p->graph[1], o->synth.seed, &p->agreed, err);
  synth_options so = o->synth;
  so.given = p->relations.given, so.n_given = p->relations.n_given;
  so.noted = p->relations.noted, so.n_noted = p->relations.n_noted;
  if (!c && !(so.said = notes_of(&p->agreed))) c = iso_fail(err, ISO_NOMEM, "out of memory");
  so.n_said = p->agreed.n_notes;
  for (int side = 0; side < 2 && !c; side++)
    if (!make_view(p->graph[side], side ? p->relations.relation : NULL, p->agreed.n_captured,
                   &p->view[side]))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
  p->load = now() - t0;
  if (!c) {
    rule_oracle oracle = val_oracle(engine);
    o->compared = p->graph;
    c = synth_compare(&p->view[0].g, &p->view[1].g, known, &oracle, schemas, &so, &p->result, err);
    /* One step too large for the limit, or a device that failed: what was found before may rest on
     * what could not be run. */
    const char *why = val_lost(engine)                           ? val_lost(engine)
                      : c == ISO_NOMEM && o->limits.memory_bytes ? "the memory limit was reached"
                                                                 : NULL;
    if (why) {
      if (!c) synth_result_free(p->result);
      p->result = calloc(1, sizeof *p->result);
      c = p->result ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
      if (!c)
        *p->result =
            (synth_result){.verdict = SYNTH_UNDECIDED, .reason = why, .coverage.not_run = {-1, -1}};
    }
  }
  free((void *)(uintptr_t)so.said);
  if (!c && p->result->verdict == SYNTH_EQUIVALENT && (o->certificate || o->certified))
    c = obligations_ask(p->result, schemas, &o->val, o->certified, &p->obligations, err);
  p->total = now() - t0;
  return c;
}

/* How much the inputs of a pair hold. */
static int64_t input_elements(const pair *p) {
  int64_t n = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < p->graph[side]->n_nodes; i++) {
      const cap_node *node = &p->graph[side]->node[i];
      int64_t own = node->kind == CAP_INPUT;
      for (uint32_t d = 0; own && d < node->output[0].shape.rank; d++)
        own *= node->output[0].shape.dim[d];
      n += own;
    }
  return n;
}

/* The pair whose verdict is everything's: the worst, the first of these; of equivalent ones that
 * with the weakest evidence, of different ones that with the shortest inputs. */
static size_t deciding(const pair *p, size_t n) {
  static const int rank[] = {[SYNTH_EQUIVALENT] = 0, [SYNTH_UNDECIDED] = 1, [SYNTH_DIFFERENT] = 2};
  size_t worst = 0;
  for (size_t k = 1; k < n; k++) {
    const synth_result *a = p[k].result, *b = p[worst].result;
    bool worse = rank[a->verdict] > rank[b->verdict];
    if (a->verdict == b->verdict && a->verdict == SYNTH_EQUIVALENT)
      worse = a->evidence < b->evidence;
    if (a->verdict == b->verdict && a->verdict == SYNTH_DIFFERENT)
      worse = input_elements(&p[k]) < input_elements(&p[worst]);
    if (worse) worst = k;
  }
  return worst;
}

/* What --repro and --counterexample ask for, of the pair that decides. */
static iso_code write_witness(const options *o, report *rep, iso_error *err) {
  iso_code c = ISO_OK;
  if (rep->r->verdict != SYNTH_DIFFERENT) return c;
  if (o->counterexample && !(c = repro_inputs(rep, o->counterexample, err)))
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

/* The certificate of pair `k`: in FILE.json; of those with --also in FILE.2.json and so on. */
static iso_code save_certificate(const options *o, const report *rep, size_t k, iso_error *err) {
  const char *path = o->certificate, *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  const size_t stem = dot && dot > (slash ? slash + 1 : path) ? (size_t)(dot - path) : strlen(path);
  const cap_options from = inputs_of(o, k);
  char *numbered = NULL, *text = NULL;
  if (!rep->r->certificate) {
    fprintf(stderr,
            "isomer: no certificate is written%s%s: the captures were not found equivalent\n",
            k ? " for " : "", k ? rep->left->path : "");
    return ISO_OK;
  }
  if (k && asprintf(&numbered, "%.*s.%zu%s", (int)stem, path, k + 1, path + stem) < 0)
    return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_code c = certificate_text(rep->r, rep->left, rep->right, &from, &text, err);
  if (!c) c = report_write(numbered ? numbered : path, text, err);
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

static int status_of(const synth_result *r, const baseline *known) {
  if (limits_interrupted()) return CLI_INTERRUPTED;
  if (r->verdict == SYNTH_UNDECIDED) return CLI_UNDECIDED;
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
  const size_t worst = deciding(p, o->n_pairs);
  iso_code c = rep ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t k = 0; k < o->n_pairs && !c; k++)
    rep[k] = (report){.left = p[k].graph[0],
                      .right = p[k].graph[1],
                      .r = p[k].result,
                      .schemas = schemas,
                      .seed = o->synth.seed,
                      .load = p[k].load,
                      .obligations = &p[k].obligations,
                      .total = p[k].total,
                      .verbose = o->verbose,
                      .explain = o->explain,
                      .quiet = o->quiet,
                      .no_stats = o->no_stats,
                      .colour = colour,
                      .known = o->baseline ? known : NULL};
  if (!c && o->save_rules) c = save_rules(p, o->n_pairs, o->save_rules, err);
  if (!c) c = write_witness(o, &rep[worst], err);
  if (!c && o->json) c = write_report(o->json, report_json(rep, o->n_pairs, worst), err);
  if (!c && o->html) c = write_report(o->html, report_html(rep, o->n_pairs, worst), err);
  if (!c) c = publish_parts(o, rep, err);
  if (!c) report_text(rep, o->n_pairs, worst, text);
  free(rep);
  return c;
}

int cmd_compare(int argc, char **argv) {
  options o;
  const int early = parse(argc, argv, &o);
  if (early >= 0) return early;
  o.val.ops = o.ops;
  o.progress = !o.quiet && !o.trace && isatty(STDERR_FILENO);
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
  for (size_t k = 0; k < o.n_pairs && !c; k++) {
    c = compare_pair(&o, k, schemas, engine, known, &p[k], &err);
    if (!c && k + 1 < o.n_pairs) c = add_rules(p[k].result, known, &err);
  }
  if (o.progress) fputs("\r\033[K", stderr);
  int status = CLI_ERROR;
  if (!c) {
    baseline accepted = {0};
    if (o.baseline)
      c = baseline_load(o.baseline, p[0].result, p[0].graph[0], p[0].graph[1], &accepted, &err);
    if (!c) c = publish(&o, p, &accepted, schemas, &err);
    status = status_of(p[deciding(p, o.n_pairs)].result, &accepted);
    baseline_free(&accepted);
  }
  if (c) {
    fprintf(stderr, "isomer: %s\n", err.msg);
    status = CLI_ERROR;
  }
  for (size_t k = 0; p && k < o.n_pairs; k++) free_pair(&p[k]);
  free(p);
  rule_set_free(known);
  val_free(engine);
  rule_schemas_free(schemas);
  return status;
}
