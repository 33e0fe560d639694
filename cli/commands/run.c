/* `isomer run`: execute a captured graph and compare its results with the recorded ones.
 *
 * Without --propagate each node is run on its recorded arguments, so that a difference is that
 * node's own and does not travel; with it, or where nothing was recorded, values flow from the
 * leaves and are let go after their last use. Contents that are unspecified (`aten::empty*`), and
 * views of them, are not compared. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "capture/capture.h"
#include "rules/operators.h"
#include "cli/cli.h"
#include "cli/config/options.h"
#include "egraph/base/arena.h"
#include "egraph/base/vec.h"
#include "validate/validate.h"

/* Captured dtypes, one operator: normwise, in units in the last place. */
static const double ulp_limit = 16;
/* Over many operators, where roundings add up: for formats of 24 bits and more (1e-4 in float32).
 * Shorter ones keep the limit above, which is coarse enough there. */
static const double ulp_limit_flowing = 1024;
/* --float64 against a trace that was rounded on the way: relative, normwise. */
static const double float64_limit = 1e-4;
enum { SHOWN = 10 /* differing nodes on stdout, without -v */, MAX_RESULTS = 1 << 16 };

typedef struct options {
  const char *capture, *json, *device, *helper;
  bool propagate, float64, quiet, verbose;
  const char **ops, **inputs; /* room for argc each */
  size_t n_ops, n_inputs;
} options;

/* The result of comparing a node. */
typedef enum outcome { NOT_COMPARED, AGREES, DIFFERS } outcome;

typedef struct run {
  const options *o;
  FILE *text; /* stdout, or stderr when JSON goes to stdout; NULL: quiet */
  const cap_graph *g;
  val_engine *engine;
  rule_tensor **value;    /* of nodes, where it is held: leaves, and results when values flow */
  rule_tensor ***results; /* of nodes with several outputs: n_outputs of them */
  bool *poison;           /* contents are unspecified */
  bool traced;            /* there is something to compare with */
  size_t *last_use; /* the last node that needs this one's value; n_nodes for the graph's outputs */
  rule_tensor **room; /* MAX_RESULTS */
  size_t n_run, n_compared, n_differ;
  double worst;
  json_t *differences;
} run;

/* ---- values ---- */

static bool flows(const run *r) { return r->o->propagate || !r->traced; }
static bool is_getitem(const cap_node *n) { return n->call && rule_is_getitem(n->call->u.s); }

/* Calls `f` on the index of every node that `t` reads. */
static void each_use(const rule_term *t, void (*f)(void *ctx, uint32_t node), void *ctx) {
  if (t->kind == RULE_VAR) f(ctx, (uint32_t)t->u.i);
  for (uint32_t i = 0; i < t->n; i++) each_use(t->child[i], f, ctx);
}

typedef struct use {
  run *r;
  size_t user;
  bool poison;
  iso_code code;
  iso_error *err;
} use;

static void note_use(void *ctx, uint32_t node) {
  use *u = ctx;
  if (u->r->last_use[node] < u->user) u->r->last_use[node] = u->user;
}

static void note_poison(void *ctx, uint32_t node) {
  use *u = ctx;
  u->poison = u->poison || u->r->poison[node];
}

/* The value of a node that stands as an argument: held, or recorded. */
static void fetch(void *ctx, uint32_t node) {
  use *u = ctx;
  run *r = u->r;
  if (u->code != ISO_OK || r->value[node] || r->g->node[node].n_outputs != 1) return;
  rule_tensor *t = NULL;
  u->code = cap_trace(r->g, node, 0, &t, u->err);
  if (u->code != ISO_OK) return;
  if (!t) {
    u->code =
        iso_fail(u->err, ISO_FORMAT, "trace.safetensors has no value for \"%s\"; try --propagate",
                 r->g->node[node].id);
    return;
  }
  r->value[node] = t;
}

static void drop(run *r, size_t node) {
  rule_tensor_unref(r->value[node]);
  r->value[node] = NULL;
  if (!r->results[node]) return;
  for (size_t k = 0; k < r->g->node[node].n_outputs; k++) rule_tensor_unref(r->results[node][k]);
  free(r->results[node]);
  r->results[node] = NULL;
}

static void drop_used(void *ctx, uint32_t node) {
  use *u = ctx;
  if (u->r->last_use[node] == u->user) drop(u->r, node);
}

/* Views of unspecified contents are unspecified too, even where all of them were written over. */
static bool is_poison(run *r, const cap_node *n) {
  const rule_operator *o = rule_operator_of(n->op);
  if (o->unspecified) return true;
  if (!o->identity && !o->rearranges && !o->part && !o->cast && !rule_is_getitem(n->op))
    return false;
  use u = {.r = r};
  each_use(n->call, note_poison, &u);
  return u.poison;
}

/* ---- comparing ---- */

static bool report_difference(run *r, const cap_node *n, size_t k, double ulps, const char *what) {
  if (r->text && (r->n_differ < SHOWN || r->o->verbose)) {
    fprintf(r->text, "%s%s%s differs: %s", n->id, n->op[0] ? " " : "", n->op, what);
    if (n->n_outputs > 1) fprintf(r->text, " in output %zu", k);
    if (n->scope[0]) fprintf(r->text, " (%s)", n->scope);
    fputc('\n', r->text);
  }
  json_t *d = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:s}", "id", n->id, "output", (int)k, "op",
                        n->op, "scope", n->scope, "source", n->source, "difference",
                        isfinite(ulps) ? json_real(ulps) : json_null(), "text", what);
  return json_array_append_new(r->differences, d) == 0;
}

/* The number that is held against the limit: units in the last place, or with --float64 a relative
 * difference. */
static double measure(const run *r, const rule_tensor *trace, const rule_tensor *got) {
  if (!r->o->float64) return val_ulp_normwise(trace, got);
  /* The units are those of the coarser dtype: the trace is widened first, so that they are
   * float64's. */
  iso_error err;
  rule_tensor *wide = NULL;
  if (rule_tensor_to_float64((rule_tensor *)(uintptr_t)trace, &wide, &err) != ISO_OK)
    return INFINITY;
  double rel = val_ulp_normwise(wide, got) * 0x1p-52;
  rule_tensor_unref(wide);
  return rel;
}

/* A trace in half precision is no better than its rounding. */
static double limit_for(const run *r, rule_dtype traced) {
  const bool narrow = rule_dtype_digits(traced) < rule_dtype_digits(RULE_F32);
  const double eps = narrow ? rule_dtype_unit(traced, 1) : 0;
  if (r->o->float64) return eps > 0 ? ulp_limit * eps : float64_limit;
  return flows(r) && eps == 0 ? ulp_limit_flowing : ulp_limit;
}

/* Shape and dtype as the graph says. Returns: false, with the reason in `what`. */
static bool as_declared(const run *r, const cap_output *want, const rule_tensor *got,
                        char what[256]) {
  char a[100], b[100];
  bool float64 =
      r->o->float64 && (rule_dtype_is_float(want->dtype) || rule_dtype_is_complex(want->dtype));
  if (!rule_shape_eq(&want->shape, &got->shape))
    snprintf(what, 256, "the graph says %s, the operator gives %s",
             rule_shape_print(&want->shape, a, sizeof a),
             rule_shape_print(&got->shape, b, sizeof b));
  else if (!float64 && want->dtype != got->dtype)
    snprintf(what, 256, "the graph says %s, the operator gives %s", rule_dtype_name(want->dtype),
             rule_dtype_name(got->dtype));
  else return true;
  return false;
}

static iso_code compare_output(run *r, size_t i, size_t k, const rule_tensor *got, outcome *out,
                               iso_error *err) {
  const cap_node *n = &r->g->node[i];
  char what[256];
  bool known = true;
  if (!as_declared(r, &n->output[k], got, what)) {
    *out = DIFFERS;
    known = report_difference(r, n, k, NAN, what);
  } else if (r->traced && !r->poison[i]) {
    rule_tensor *trace = NULL;
    iso_code code = cap_trace(r->g, (uint32_t)i, k, &trace, err);
    if (code != ISO_OK) return code;
    if (!trace) return ISO_OK;
    double m = measure(r, trace, got);
    if (*out == NOT_COMPARED) *out = AGREES;
    if (m > r->worst) r->worst = m;
    if (!(m <= limit_for(r, trace->dtype))) {
      *out = DIFFERS;
      if (isinf(m))
        snprintf(what, sizeof what, "other values, or infinities or NaN in other places");
      else snprintf(what, sizeof what, r->o->float64 ? "%.3g relative" : "%.3g ulp", m);
      known = report_difference(r, n, k, m, what);
    } else if (r->text && r->o->verbose) {
      fprintf(r->text, r->o->float64 ? "%s %s %.3g relative\n" : "%s %s %.3g ulp\n", n->id, n->op,
              m);
    }
    rule_tensor_unref(trace);
  }
  return known ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* ---- running ---- */

/* Keep the results for later nodes; owns them from here on. */
static iso_code keep(run *r, size_t i, size_t n, iso_error *err) {
  if (r->g->node[i].n_outputs == 1) {
    r->value[i] = r->room[0];
    return ISO_OK;
  }
  r->results[i] = malloc((n + 1) * sizeof *r->results[i]);
  if (!r->results[i]) {
    for (size_t k = 0; k < n; k++) rule_tensor_unref(r->room[k]);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  memcpy(r->results[i], r->room, n * sizeof *r->room);
  return ISO_OK;
}

/* A projection: of results that are held, or recorded under the operator's name. */
static iso_code run_getitem(run *r, const cap_node *n, size_t *got, iso_error *err) {
  const rule_term *from = n->call->child[0];
  int64_t k = n->call->n == 2 && n->call->child[1]->kind == RULE_INT ? n->call->child[1]->u.i : -1;
  uint32_t node = (uint32_t)from->u.i;
  if (from->kind != RULE_VAR || k < 0 || (uint64_t)k >= r->g->node[node].n_outputs)
    return iso_fail(err, ISO_FORMAT,
                    "node \"%s\": getitem takes a node and the number of one of its outputs",
                    n->id);
  rule_tensor *t = NULL;
  if (r->results[node]) t = rule_tensor_ref(r->results[node][k]);
  else if (r->value[node]) t = rule_tensor_ref(r->value[node]);
  else {
    iso_code code = cap_trace(r->g, node, (size_t)k, &t, err);
    if (code != ISO_OK) return code;
    if (!t) {
      *got = 0; /* a trace need not repeat what the projection's own entry says */
      return ISO_OK;
    }
  }
  r->room[0] = t;
  *got = 1;
  return ISO_OK;
}

static iso_code run_call(run *r, size_t i, size_t *got, iso_error *err) {
  const cap_node *n = &r->g->node[i];
  if (is_getitem(n)) return run_getitem(r, n, got, err);
  use u = {.r = r, .user = i, .err = err};
  each_use(n->call, fetch, &u);
  if (u.code != ISO_OK) return u.code;
  unsigned flags = r->o->float64 ? VAL_FLOAT64 : 0;
  iso_code code = val_call(r->engine, n->call, r->value, flags, r->room, MAX_RESULTS, got, err);
  if (code != ISO_OK)
    iso_prefix(err, "%s: node \"%s\"%s%s: ", r->g->path, n->id, n->scope[0] ? " of " : "",
               n->scope);
  return code;
}

static iso_code run_node(run *r, size_t i, iso_error *err) {
  const cap_node *n = &r->g->node[i];
  r->poison[i] = is_poison(r, n);
  size_t got = 0;
  iso_code code = run_call(r, i, &got, err);
  if (code != ISO_OK) return code;
  outcome o = NOT_COMPARED;
  bool none = got == 0 && is_getitem(n);
  if (got != n->n_outputs && !none) {
    char what[128];
    snprintf(what, sizeof what, "the graph says %zu outputs, the operator gives %zu", n->n_outputs,
             got);
    o = DIFFERS;
    if (!report_difference(r, n, 0, NAN, what)) code = iso_fail(err, ISO_NOMEM, "out of memory");
    if (code == ISO_OK && flows(r))
      code = iso_fail(err, ISO_FORMAT, "%s: node \"%s\": %s", r->g->path, n->id, what);
  } else {
    for (size_t k = 0; k < got && code == ISO_OK; k++)
      code = compare_output(r, i, k, r->room[k], &o, err);
  }
  r->n_run++;
  r->n_compared += o != NOT_COMPARED;
  r->n_differ += o == DIFFERS;
  if (code == ISO_OK && flows(r)) return keep(r, i, got, err);
  for (size_t k = 0; k < got; k++) rule_tensor_unref(r->room[k]);
  return code;
}

static iso_code start(run *r, iso_error *err) {
  size_t n = r->g->n_nodes;
  r->value = calloc(n + 1, sizeof *r->value);
  r->results = calloc(n + 1, sizeof *r->results);
  r->poison = calloc(n + 1, sizeof *r->poison);
  r->last_use = calloc(n + 1, sizeof *r->last_use);
  r->room = malloc(MAX_RESULTS * sizeof *r->room);
  r->differences = json_array();
  if (!r->value || !r->results || !r->poison || !r->last_use || !r->room || !r->differences)
    return iso_fail(err, ISO_NOMEM, "out of memory");
  r->traced = cap_has_trace(r->g);
  for (size_t i = 0; i < n; i++) {
    const cap_node *node = &r->g->node[i];
    r->last_use[i] = i;
    use u = {.r = r, .user = i};
    if (node->call) each_use(node->call, note_use, &u);
    else r->value[i] = rule_tensor_ref(node->value);
  }
  for (size_t k = 0; k < r->g->n_results; k++) r->last_use[r->g->result[k].node] = n;
  return ISO_OK;
}

static iso_code run_all(run *r, iso_error *err) {
  for (size_t i = 0; i < r->g->n_nodes; i++) {
    const cap_node *n = &r->g->node[i];
    if (!n->call) continue;
    iso_code code = run_node(r, i, err);
    if (code != ISO_OK) return code;
    use u = {.r = r, .user = i};
    each_use(n->call, drop_used, &u);
    if (r->last_use[i] == i) drop(r, i);
  }
  return ISO_OK;
}

/* ---- reports ---- */

/* One line and one JSON object for each output of the graph. */
static iso_code report_outputs(run *r, json_t *list, iso_error *err) {
  for (size_t k = 0; k < r->g->n_results; k++) {
    const cap_result *o = &r->g->result[k];
    const rule_tensor *t = r->value[o->node];
    if (!t) continue; /* nothing flowed there */
    double sum = 0, most = 0;
    for (int64_t i = 0; i < t->numel; i++) {
      double x = rule_tensor_get(t, i);
      sum += x;
      most = fmax(most, fabs(x));
    }
    char shape[100];
    rule_shape_print(&t->shape, shape, sizeof shape);
    if (r->text)
      fprintf(r->text, "%s %s %s sum %.9g max %.9g\n", o->name, rule_dtype_name(t->dtype), shape,
              sum, most);
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", o->name, "dtype", rule_dtype_name(t->dtype),
                  "shape", shape, "sum", isfinite(sum) ? json_real(sum) : json_null(), "max",
                  isfinite(most) ? json_real(most) : json_null());
    if (json_array_append_new(list, j) != 0) return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  return ISO_OK;
}

static iso_code write_json(const options *o, json_t *root, iso_error *err) {
  FILE *f = strcmp(o->json, "-") == 0 ? stdout : fopen(o->json, "w");
  if (!f) return iso_fail(err, ISO_IO, "%s: cannot be written", o->json);
  bool ok = json_dumpf(root, f, JSON_INDENT(1)) == 0 && fputc('\n', f) != EOF;
  if (f != stdout && fclose(f) != 0) ok = false;
  return ok ? ISO_OK : iso_fail(err, ISO_IO, "%s: cannot be written", o->json);
}

static iso_code report(run *r, iso_error *err) {
  json_t *outputs = json_array();
  if (!outputs) return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_code code = flows(r) ? report_outputs(r, outputs, err) : ISO_OK;
  const char *unit = r->o->float64 ? "relative" : "ulp";
  if (code == ISO_OK && r->text) {
    if (r->n_differ > SHOWN && !r->o->verbose)
      fprintf(r->text, "and %zu more\n", r->n_differ - SHOWN);
    if (!r->traced && r->n_differ == 0)
      fprintf(r->text, "isomer: ran %zu nodes; there is no trace to compare with\n", r->n_run);
    else
      fprintf(r->text, "isomer: %s: %zu nodes run, %zu compared, %zu differ, at most %.3g %s\n",
              r->n_differ ? "DIFFERS" : "AGREES", r->n_run, r->n_compared, r->n_differ, r->worst,
              unit);
  }
  if (code == ISO_OK && r->o->json) {
    json_t *root = json_pack(
        "{s:s, s:i, s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:o, s:s, s:O, s:O}", "format",
        "isomer-run", "version", 1, "capture", r->g->path, "trace", r->traced, "propagate",
        flows(r), "float64", r->o->float64, "agrees", r->n_differ == 0, "nodes",
        (json_int_t)r->n_run, "compared", (json_int_t)r->n_compared, "differ",
        (json_int_t)r->n_differ, "largest", isfinite(r->worst) ? json_real(r->worst) : json_null(),
        "unit", unit, "differences", r->differences, "outputs", outputs);
    code = root ? write_json(r->o, root, err)
                : iso_fail(err, ISO_IO, "%s: no JSON can be made of this report", r->o->json);
    json_decref(root);
  }
  json_decref(outputs);
  return code;
}

static void finish(run *r) {
  for (size_t i = 0; r->value && r->results && i < r->g->n_nodes; i++) drop(r, i);
  free(r->value);
  free(r->results);
  free(r->poison);
  free(r->last_use);
  free(r->room);
  json_decref(r->differences);
}

static iso_code run_capture(const options *o, bool *differs, iso_error *err) {
  rule_schemas *schemas = NULL;
  cap_graph *graph = NULL;
  run r = {.o = o,
           .text = o->quiet                               ? NULL
                   : o->json && strcmp(o->json, "-") == 0 ? stderr
                                                          : stdout};
  val_options v = val_options_default();
  v.device = o->device;
  v.ops = o->ops;
  v.helper = o->helper;
  v.n_ops = o->n_ops;
  iso_code code = rule_schemas_new(&schemas, err);
  const cap_options c = {.inputs = o->inputs, .n_inputs = o->n_inputs};
  if (code == ISO_OK) code = cap_load_with(o->capture, &c, schemas, &graph, err);
  if (code == ISO_OK) code = val_new(&v, schemas, &r.engine, err);
  const char *version; /* asked for here, so that libraries that do not load are no node's fault */
  if (code == ISO_OK) code = val_torch_version(r.engine, &version, err);
  if (code == ISO_OK) {
    r.g = graph;
    code = start(&r, err);
    if (code == ISO_OK) code = run_all(&r, err);
    if (code == ISO_OK) code = report(&r, err);
    *differs = r.n_differ > 0;
    finish(&r);
  }
  val_free(r.engine);
  cap_free(graph);
  rule_schemas_free(schemas);
  return code;
}

/* ---- command line ---- */

static int usage_error(const char *why) { return cli_usage_error("run", why, NULL); }

static int take(void *ctx, const char *name, const char *v, const char *second) {
  options *o = ctx;
  (void)second;
  if (!name) {
    if (o->capture) return usage_error("one capture, please");
    o->capture = v;
  } else if (strcmp(name, "propagate") == 0) o->propagate = true;
  else if (strcmp(name, "float64") == 0) o->float64 = true;
  else if (strcmp(name, "json") == 0) o->json = v;
  else if (strcmp(name, "ops") == 0) o->ops[o->n_ops++] = v;
  else if (strcmp(name, "helper") == 0) o->helper = v;
  else if (strcmp(name, "inputs") == 0) o->inputs[o->n_inputs++] = v;
  else if (strcmp(name, "device") == 0) {
    if (strcmp(v, "cpu") != 0 && strcmp(v, "cuda") != 0)
      return usage_error("the device is cpu or cuda");
    o->device = v;
  } else if (strcmp(name, "quiet") == 0) o->quiet = true;
  else o->verbose = true;
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o) {
  const int status = cli_options_read("run", argc, argv, take, o);
  if (status >= 0) return status;
  if (o->capture && o->n_inputs > 0 && !cap_is_archive(o->capture))
    return usage_error("--inputs is for archives of torch.export.save; a capture has its own");
  return o->capture ? -1 : usage_error("which capture?");
}

int cmd_run(int argc, char **argv) {
  options o = {.device = "cpu",
               .ops = calloc((size_t)argc + 1, sizeof *o.ops),
               .inputs = calloc((size_t)argc + 1, sizeof *o.inputs)};
  if (!o.ops || !o.inputs) {
    free(o.ops);
    free(o.inputs);
    fputs("isomer: out of memory\n", stderr);
    return CLI_ERROR;
  }
  int status = parse(argc, argv, &o);
  if (status < 0) {
    bool differs = false;
    iso_error err = {0};
    iso_code code = run_capture(&o, &differs, &err);
    if (code != ISO_OK) fprintf(stderr, "isomer: %s\n", err.msg);
    status = code != ISO_OK ? CLI_ERROR : differs ? CLI_DIFFERENT : CLI_EQUIVALENT;
  }
  free(o.ops);
  free(o.inputs);
  return status;
}
