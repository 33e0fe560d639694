/* The report of a comparison for programs. It says the same as the text, and nothing stronger than
 * was shown. */
#include "cli/report/report_int.h"
#include "cli/report/rounding.h"
#include "rules/operators.h"
#include "cli/config/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* JSON is UTF-8, file names are anything. */
static json_t *text_or_null(const char *s) {
  char *clean = s ? utf8_clean(s) : NULL;
  json_t *j = s && !clean ? NULL : s ? json_string(clean) : json_null();
  free(clean);
  return j;
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *id_list(const char *id) {
  json_t *a = json_array();
  if (id) json_array_append_new(a, json_string(id));
  return a;
}

static json_t *region(const cap_graph *g, const uint32_t *node, size_t n) {
  json_t *a = json_array();
  for (size_t i = 0; i < n; i++) json_array_append_new(a, json_string(g->node[node[i]].id));
  return a;
}

static json_t *side_json(const cap_graph *g) {
  json_t *then = json_array();
  for (size_t i = 0; i < g->n_then; i++) json_array_append_new(then, text_or_null(g->then[i]));
  return json_pack("{s:o, s:o, s:s, s:I}", "path", text_or_null(g->path), "then", then, "model",
                   g->model, "nodes", (json_int_t)g->n_nodes);
}

static json_t *place(const report *p, const cap_node *n) {
  if (!n) return json_null();
  json_t *shape = json_array();
  for (uint32_t d = 0; n->n_outputs && d < n->output[0].shape.rank; d++)
    json_array_append_new(shape, json_integer(n->output[0].shape.dim[d]));
  char *call = n->call ? rule_term_print(n->call, p->schemas, NULL) : NULL;
  json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "id", n->id, "op", n->op, "scope",
                        text_or_null(n->scope), "source", text_or_null(n->source), "shape", shape,
                        "call", text_or_null(call));
  if (n->caller && *n->caller) json_object_set_new(o, "caller", text_or_null(n->caller));
  free(call);
  return o;
}

static json_t *relative_to(const report *p) {
  json_t *a = json_array();
  const synth_result *r = p->r;
  for (size_t i = 0; i < r->n_assumptions; i++) {
    if (r->assumption[i].what) json_array_append_new(a, json_string(r->assumption[i].what));
  }
  return a;
}

/* Kernels that a term is relative to: its operators outside PyTorch, each once. */
static void kernels_in(iso_arena *names, const rule_term *t, json_t *out) {
  rule_relative r;
  if (t->kind == RULE_OP && !rule_is_aten(t->u.s) && !rule_is_getitem(t->u.s) &&
      rule_relative_of(names, t->u.s, &r)) {
    bool seen = false;
    for (size_t i = 0; i < json_array_size(out) && !seen; i++)
      seen = strcmp(json_string_value(json_array_get(out, i)), r.what) == 0;
    if (!seen) json_array_append_new(out, json_string(r.what));
  }
  for (uint32_t i = 0; i < t->n; i++) kernels_in(names, t->child[i], out);
}

static json_t *kernels_of(const rule *r) {
  json_t *out = json_array();
  iso_arena names;
  iso_arena_init(&names);
  kernels_in(&names, r->lhs, out);
  kernels_in(&names, r->rhs, out);
  iso_arena_fini(&names);
  return out;
}

static json_t *rules_json(const report *p) {
  json_t *a = json_array();
  for (size_t i = 0; i < p->r->n_rules; i++) {
    const synth_rule_use *u = &p->r->rule[i];
    char *lhs = rule_side_print(u->what, false), *rhs = rule_side_print(u->what, true);
    json_t *rel = kernels_of(u->what);
    json_t *where = json_array();
    char how[RULE_METHOD_TEXT];
    for (uint32_t k = 0; k < u->what->n_where; k++) {
      char *t = rule_term_print(u->what->where[k], p->schemas, NULL);
      json_array_append_new(where, json_string(t ? t : "?"));
      free(t);
    }
    const bool asked = p->obligations && p->obligations->asked;
    json_array_append_new(
        a, json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:s, s:I, s:I, s:s, s:o}", "name",
                     u->what->name, "lhs", lhs ? lhs : "?", "rhs", rhs ? rhs : "?", "conditions",
                     where, "status", rule_status_name(u->verdict.status), "scope",
                     rule_scope_name(u->verdict.scope), "relative_to", rel, "method",
                     rule_verdict_method(&u->verdict, how), "samples",
                     (json_int_t)u->verdict.n_samples, "uses", (json_int_t)u->uses, "origin",
                     u->loaded ? "loaded" : "synthesised", "obligations",
                     asked ? json_integer(p->obligations->n[i]) : json_null()));
    free(lhs);
    free(rhs);
  }
  return a;
}

/* A row-major index as one index for each dimension. */
static json_t *index_json(const rule_shape *s, int64_t index) {
  if (index < 0) return json_null();
  json_t *a = json_array();
  for (uint32_t d = s->rank; d-- > 0 && s->dim[d] > 0; index /= s->dim[d])
    json_array_insert_new(a, 0, json_integer(index % s->dim[d]));
  return a;
}

static json_t *changed_json(const report *p) {
  json_t *a = json_array();
  for (size_t i = 0; i < p->r->n_changed; i++) {
    const synth_changed *x = &p->r->changed[i];
    json_array_append_new(a, json_pack("{s:s, s:s, s:o, s:o, s:o}", "side",
                                       x->right ? "right" : "left", "name",
                                       (x->right ? p->right : p->left)->node[x->node].name, "index",
                                       index_json(&x->shape, x->index), "value", number(x->value),
                                       "captured", number(x->captured)));
  }
  return a;
}

static json_t *divergences_json(const report *p, int64_t pair) {
  json_t *a = json_array();
  const synth_result *r = p->r;
  for (size_t i = 0; i < r->n_divergences; i++) {
    const synth_divergence *d = &r->divergence[i];
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "left",
                          place(p, report_node(p->left, d->left)), "right",
                          place(p, report_node(p->right, d->right)), "left_region",
                          region(p->left, d->left_region, d->n_left_region), "right_region",
                          region(p->right, d->right_region, d->n_right_region), "max_abs",
                          number(d->max_abs), "max_rel", number(d->max_rel), "index",
                          index_json(&d->shape, d->index), "hint", text_or_null(d->hint));
    if (p->known) json_object_set_new(o, "known", text_or_null(p->known->reason[i]));
    if (pair >= 0) json_object_set_new(o, "pair", json_integer(pair));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *assumptions_json(const report *p) {
  json_t *a = json_array();
  for (size_t i = 0; i < p->r->n_assumptions; i++) {
    const synth_assumption *s = &p->r->assumption[i];
    json_array_append_new(
        a, json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:o}", "kind", rule_assumption_name(s->kind),
                     "text", s->text, "left", id_list(s->left), "right", id_list(s->right),
                     "relation", text_or_null(s->relation), "weakens",
                     (int)rule_assumption_weakens(s->kind), "what", text_or_null(s->what)));
  }
  return a;
}

static json_t *stats_json(const report *p) {
  const synth_result *r = p->r;
  struct rusage ru;
  getrusage(RUSAGE_SELF, &ru);
  json_t *sec =
      json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "load", p->load, "execute", r->seconds_execute,
                "relate", r->seconds_relate, "synthesise", r->seconds_synthesise, "validate",
                r->seconds_validate, "total", p->total);
  json_t *slowest = r->slowest_rule ? json_pack("{s:s, s:f}", "name", r->slowest_rule,
                                                "cpu_seconds", r->slowest_rule_cpu_s)
                                    : json_null();
  return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "seconds", sec, "slowest_rule",
                   slowest, "candidates", (json_int_t)r->n_candidates, "merges",
                   (json_int_t)r->n_merges, "rules_synthesised", (json_int_t)r->n_synthesised,
                   "rules_refuted", (json_int_t)r->n_refuted, "rules_reused",
                   (json_int_t)r->n_reused, "peak_rss_bytes", (json_int_t)ru.ru_maxrss * 1024);
}

static json_t *shapes_json(const cap_graph *g) {
  json_t *o = json_object();
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *n = &g->node[i];
    if (n->kind != CAP_INPUT) continue;
    json_t *shape = json_array();
    for (uint32_t d = 0; d < n->output[0].shape.rank; d++)
      json_array_append_new(shape, json_integer(n->output[0].shape.dim[d]));
    json_object_set_new(o, n->name, shape);
  }
  return o;
}

static json_t *coverage_json(const report *p) {
  const synth_coverage *v = &p->r->coverage;
  json_t *side[2], *branches = json_array();
  for (int k = 0; k < 2; k++) {
    const cap_graph *g = k == 0 ? p->left : p->right;
    side[k] = json_pack("{s:I, s:o, s:o, s:o}", "reached", (json_int_t)v->n_reached[k], "unreached",
                        region(g, v->unreached[k], v->n_unreached[k]), "not_run",
                        id_list(v->not_run[k] >= 0 ? g->node[v->not_run[k]].id : NULL),
                        "input_shapes", shapes_json(g));
  }
  for (size_t i = 0; i < v->n_branches; i++) {
    const cap_node *n = &(v->branch[i].right ? p->right : p->left)->node[v->branch[i].node];
    json_array_append_new(branches, json_pack("{s:s, s:s, s:s, s:s}", "side",
                                              v->branch[i].right ? "right" : "left", "id", n->id,
                                              "op", n->op, "missing", v->branch[i].missing));
  }
  return json_pack("{s:o, s:o, s:b, s:{s:I, s:I, s:I}, s:I, s:o, s:o}", "left", side[0], "right",
                   side[1], "same_graph", (int)p->same_graph, "draws", "captured",
                   (json_int_t)v->n_captured, "redrawn", (json_int_t)v->n_redrawn, "searched",
                   (json_int_t)v->n_searched, "branch_points", (json_int_t)v->n_points, "branches",
                   branches, "largest_merged_difference", number(p->r->largest_merged));
}

static json_t *refinement_json(const report *p) {
  json_t *all = json_array();
  for (size_t i = 0; p->refinement && i < p->refinement->n; i++) {
    const refined *x = &p->refinement->of[i];
    json_t *one = json_pack("{s:o, s:o, s:b, s:o}", "output", text_or_null(x->output), "relation",
                            text_or_null(x->relation), "clean", (int)x->clean, "surprising",
                            text_or_null(x->surprising));
    if (x->where) json_object_set_new(one, "where", text_or_null(x->where));
    json_array_append_new(all, one);
  }
  return all;
}

/* `pair`: which one it is, of several; -1 where there is one. */
static json_t *pair_json(const report *p, int64_t pair) {
  const synth_result *r = p->r;
  json_t *outs = json_array(), *leaves = json_array();
  for (size_t i = 0; i < r->n_pairs; i++)
    json_array_append_new(outs, json_pack("{s:s, s:s, s:s, s:b}", "left", r->pair[i].left, "right",
                                          r->pair[i].right, "relation", r->pair[i].relation,
                                          "equivalent", (int)r->pair[i].equivalent));
  for (size_t i = 0; i < r->n_unexplained; i++) {
    const cap_graph *g = r->unexplained[i].right ? p->right : p->left;
    const cap_node *n = &g->node[r->unexplained[i].node];
    json_array_append_new(leaves, json_pack("{s:s, s:s, s:s}", "side",
                                            r->unexplained[i].right ? "right" : "left", "id", n->id,
                                            "name", n->name));
  }
  json_t *cex = json_null();
  if (r->verdict == SYNTH_DIFFERENT)
    cex = json_pack("{s:o, s:I, s:b, s:s, s:o, s:o, s:b, s:o, s:I}", "inputs",
                    text_or_null(p->counterexample), "seed", (json_int_t)r->witness_seed, "redrawn",
                    (int)r->redrawn, "output", r->witness_output, "max_abs", number(r->witness_abs),
                    "max_rel", number(r->witness_rel), "redrawn_parameters",
                    (int)r->redrawn_parameters, "changed", changed_json(p), "changed_elements",
                    (json_int_t)r->n_changed_all);
  json_t *doc = json_pack(
      "{s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
      "isomer-report", "version", 1, "verdict", report_verdict_name(r->verdict), "evidence",
      r->verdict == SYNTH_EQUIVALENT ? json_string(rule_status_name(r->evidence)) : json_null(),
      "relative_to", relative_to(p), "left", side_json(p->left), "right", side_json(p->right),
      "outputs", outs, "assumptions", assumptions_json(p), "unexplained_leaves", leaves, "rules",
      rules_json(p), "divergences", divergences_json(p, pair), "counterexample", cex,
      "largest_merged_difference", number(r->largest_merged), "stats",
      p->no_stats ? json_null() : stats_json(p));
  if (doc) json_object_set_new(doc, "coverage", coverage_json(p));
  if (doc) json_object_set_new(doc, "refinement", refinement_json(p));
  const looked none = {0};
  if (doc) json_object_set_new(doc, "scope", looked_json(p->looked ? p->looked : &none));
  if (doc) json_object_set_new(doc, "at_these_weights", json_boolean(p->pinned));
  if (doc) report_rounding_json(p, doc);
  if (doc && p->repro) json_object_set_new(doc, "repro", text_or_null(p->repro));
  return doc;
}

char *report_json(const report *p, size_t n, size_t decides) {
  json_t *doc = pair_json(&p[decides], n > 1 ? (int64_t)decides : -1);
  if (!doc) return NULL;
  json_t *pairs = n > 1 ? json_array() : NULL;
  for (size_t k = 0; k < n && pairs; k++)
    json_array_append_new(pairs, pair_json(&p[k], (int64_t)k));
  if (pairs) json_object_set_new(doc, "pairs", pairs);
  char *text = json_dumps(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(doc);
  return text;
}

char *report_beside(const char *path, const char *word) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  const size_t stem = dot && dot > (slash ? slash + 1 : path) ? (size_t)(dot - path) : strlen(path);
  char *out;
  return asprintf(&out, "%.*s.%s%s", (int)stem, path, word, path + stem) < 0 ? NULL : out;
}

iso_code report_write(const char *path, const char *text, iso_error *err) {
  if (strcmp(path, "-") == 0) {
    puts(text);
    if (fflush(stdout) || ferror(stdout))
      return iso_fail(err, ISO_IO, "standard output: %s", strerror(errno));
    return ISO_OK;
  }
  struct stat st;
  const bool plain =
      stat(path, &st) != 0 || S_ISREG(st.st_mode); /* a device or pipe is written as it is */
  char tmp[4096];
  if (snprintf(tmp, sizeof tmp, plain ? "%s.tmp.%ld" : "%s", path, (long)getpid()) >=
      (int)sizeof tmp)
    return iso_fail(err, ISO_IO, "%s: the name is too long", path);
  FILE *f = fopen(tmp, "w");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  bool ok = fputs(text, f) >= 0 && fputc('\n', f) != EOF && fflush(f) == 0;
  int why = errno;
  if (fclose(f) != 0 && ok) ok = false, why = errno;
  if (ok && plain && rename(tmp, path) != 0) ok = false, why = errno;
  if (ok) return ISO_OK;
  if (plain) unlink(tmp);
  return iso_fail(err, ISO_IO, "%s: %s", path, strerror(why));
}
