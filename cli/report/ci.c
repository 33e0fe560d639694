/* SARIF (OASIS, version 2.1.0), JUnit's XML, and GitHub's workflow commands. All are made from the
 * same divergences as the text. */
#include "cli/report/ci.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ci_text.h"
#include "cli/cli.h"
#include "cli/config/utf8.h"

static const cap_node *node_of(const cap_graph *g, int64_t i) { return i < 0 ? NULL : &g->node[i]; }

static const char *name_of(const cap_node *n) { return n->kind == CAP_OP ? n->op : n->name; }

static const char *reason_of(const report *p, size_t i) {
  return p->known && p->known->n > i ? p->known->reason[i] : NULL;
}

/* One divergence in a sentence or two. Owns: malloc'ed. */
static char *describe(const report *p, const synth_divergence *d) {
  const cap_node *l = node_of(p->left, d->left), *r = node_of(p->right, d->right);
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  if (l) fprintf(f, "left %s (%s)%s%s", l->id, name_of(l), *l->scope ? " in " : "", l->scope);
  if (r)
    fprintf(f, "%sright %s (%s)%s%s", l ? " and " : "", r->id, name_of(r), *r->scope ? " in " : "",
            r->scope);
  fputs(p->r->verdict == SYNTH_DIFFERENT ? " differ" : " are not shown equal", f);
  if (d->max_abs > 0) fprintf(f, " by up to %.3g (relative %.3g)", d->max_abs, d->max_rel);
  if (d->hint) fprintf(f, ": %s", d->hint);
  fputc('.', f);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

/* The node that a divergence is shown at: the right one, which is usually the one under test. */
static const cap_node *shown_at(const report *p, const synth_divergence *d) {
  const cap_node *r = node_of(p->right, d->right);
  return r ? r : node_of(p->left, d->left);
}

/* ---- SARIF ---- */

static json_t *location(const cap_node *n, const char *side) {
  json_t *l = json_object();
  if (n->source && *n->source) {
    long line;
    const size_t len = ci_split_source(n->source, &line);
    json_t *where = json_pack("{s:{s:o}}", "artifactLocation", "uri", ci_uri(n->source, len));
    if (line)
      json_object_set_new(where, "region", json_pack("{s:I}", "startLine", (json_int_t)line));
    json_object_set_new(l, "physicalLocation", where);
  }
  json_t *scope = json_pack("{s:s}", "name", n->id);
  char *full = NULL;
  if (*n->scope && asprintf(&full, "%s/%s", n->scope, n->id) > 0)
    json_object_set_new(scope, "fullyQualifiedName", json_string(full));
  free(full);
  json_object_set_new(l, "logicalLocations", json_pack("[o]", scope));
  if (side) json_object_set_new(l, "message", json_pack("{s:s}", "text", side));
  return l;
}

static json_t *sarif_result(const report *p, size_t i) {
  const synth_divergence *d = &p->r->divergence[i];
  const cap_node *l = node_of(p->left, d->left), *r = node_of(p->right, d->right);
  const char *reason = reason_of(p, i);
  char *text = describe(p, d);
  const bool differs = p->r->verdict == SYNTH_DIFFERENT;
  json_t *j = json_pack("{s:s, s:s, s:{s:s}}", "ruleId", differs ? "divergence" : "gap", "level",
                        reason    ? "note"
                        : differs ? "error"
                                  : "warning",
                        "message", "text", text ? text : "?");
  free(text);
  if (!j) return NULL;
  if (r || l) json_object_set_new(j, "locations", json_pack("[o]", location(r ? r : l, NULL)));
  if (r && l)
    json_object_set_new(j, "relatedLocations",
                        json_pack("[o]", location(l, "its counterpart on the left")));
  json_object_set_new(
      j, "partialFingerprints",
      json_pack("{s:s, s:s}", "left/v1", l ? l->id : "", "right/v1", r ? r->id : ""));
  if (reason)
    json_object_set_new(j, "suppressions",
                        json_pack("[{s:s, s:s}]", "kind", "external", "justification", reason));
  return j;
}

/* A verdict without a place. */
static json_t *sarif_placeless(const report *p) {
  const bool differs = p->r->verdict == SYNTH_DIFFERENT;
  return json_pack("{s:s, s:s, s:{s:s}}", "ruleId", differs ? "divergence" : "gap", "level",
                   differs ? "error" : "warning", "message", "text",
                   differs        ? "The outputs differ."
                   : p->r->reason ? p->r->reason
                                  : "The captures were not shown equivalent.");
}

char *report_sarif(const report *p) {
  char *left = utf8_clean(p->left->path), *right = utf8_clean(p->right->path);
  json_t *results = json_array();
  for (size_t i = 0; i < p->r->n_divergences; i++)
    json_array_append_new(results, sarif_result(p, i));
  if (p->r->n_divergences == 0 && p->r->verdict != SYNTH_EQUIVALENT)
    json_array_append_new(results, sarif_placeless(p));
  json_t *doc =
      json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:[{s:s, s:{s:s}}, {s:s, s:{s:s}}]}}, s:o, s:{s:s, "
                "s:s, s:s}}]}",
                "$schema",
                "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
                "version", "2.1.0", "runs", "tool", "driver", "name", "isomer", "version",
                ISO_VERSION, "rules", "id", "divergence", "shortDescription", "text",
                "Two captured graphs compute different functions, and part here.", "id", "gap",
                "shortDescription", "text", "No justified rule joins two captured graphs here.",
                "results", results, "properties", "verdict",
                p->r->verdict == SYNTH_EQUIVALENT  ? "equivalent"
                : p->r->verdict == SYNTH_DIFFERENT ? "different"
                                                   : "undecided",
                "left", left ? left : "", "right", right ? right : "");
  free(left);
  free(right);
  if (!doc) return NULL;
  char *text = json_dumps(doc, JSON_INDENT(1));
  json_decref(doc);
  return text;
}

/* ---- JUnit ---- */

static void put_details(const report *p, FILE *f) {
  for (size_t i = 0; i < p->r->n_divergences; i++) {
    const cap_node *n = shown_at(p, &p->r->divergence[i]);
    char *text = describe(p, &p->r->divergence[i]);
    if (n && *n->source) ci_put_xml(f, n->source), fputs(": ", f);
    ci_put_xml(f, text ? text : "?");
    if (reason_of(p, i)) fputs(" Known: ", f), ci_put_xml(f, reason_of(p, i));
    fputc('\n', f);
    free(text);
  }
}

static void put_case(const report *p, size_t i, FILE *f) {
  const synth_pair *o = &p->r->pair[i];
  const bool accepted = p->known && baseline_accepts(p->known, p->r),
             differs = p->r->verdict == SYNTH_DIFFERENT;
  fputs("    <testcase", f);
  ci_put_attribute(f, "classname", p->left->model[0] ? p->left->model : "isomer");
  ci_put_attribute(f, "name", o->left);
  if (o->equivalent && p->r->verdict != SYNTH_UNDECIDED) {
    fputs("/>\n", f);
    return;
  }
  fputs(">\n", f);
  if (accepted) {
    fputs("      <skipped message=\"different, and every divergence is known\"/>\n", f);
  } else {
    fputs("      <failure", f);
    ci_put_attribute(f, "type", differs ? "different" : "undecided");
    ci_put_attribute(f, "message",
                     differs        ? "the outputs differ"
                     : p->r->reason ? p->r->reason
                                    : "undecided");
    fputc('>', f);
    put_details(p, f);
    fputs("</failure>\n", f);
  }
  fputs("    </testcase>\n", f);
}

char *report_junit(const report *p) {
  char *text = NULL;
  size_t n = 0, failed = 0, skipped = 0;
  const bool accepted = p->known && baseline_accepts(p->known, p->r);
  for (size_t i = 0; i < p->r->n_pairs; i++)
    if (!p->r->pair[i].equivalent || p->r->verdict == SYNTH_UNDECIDED)
      *(accepted ? &skipped : &failed) += 1;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  /* A comparison that was stopped early has no outputs to show: one case stands for it. */
  const bool none = p->r->n_pairs == 0;
  fprintf(f,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"isomer\" tests=\"%zu\" "
          "failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
          none ? 1 : p->r->n_pairs, none ? 1 : failed, skipped);
  fprintf(f, "  <testsuite tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"",
          none ? 1 : p->r->n_pairs, none ? 1 : failed, skipped);
  char *name = NULL;
  if (asprintf(&name, "%s = %s", p->left->path, p->right->path) < 0) name = NULL;
  ci_put_attribute(f, "name", name ? name : "isomer");
  free(name);
  fputs(">\n", f);
  for (size_t i = 0; i < p->r->n_pairs; i++) put_case(p, i, f);
  if (none) {
    fputs("    <testcase classname=\"isomer\" name=\"compare\">\n      <failure type=\"undecided\"",
          f);
    ci_put_attribute(f, "message", p->r->reason ? p->r->reason : "undecided");
    fputs("/>\n    </testcase>\n", f);
  }
  fputs("  </testsuite>\n</testsuites>", f);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

/* ---- GitHub ---- */

void report_github(const report *p, FILE *f) {
  const bool differs = p->r->verdict == SYNTH_DIFFERENT;
  const char *kind = differs ? "error" : "warning";
  for (size_t i = 0; i < p->r->n_divergences; i++) {
    const synth_divergence *d = &p->r->divergence[i];
    const cap_node *n = shown_at(p, d);
    const char *reason = reason_of(p, i);
    long line = 0;
    fprintf(f, "::%s ", reason ? "notice" : kind);
    if (n && *n->source) {
      const size_t len = ci_split_source(n->source, &line);
      fputs("file=", f);
      ci_put_command(f, n->source, len, true);
      if (line) fprintf(f, ",line=%ld", line);
      fputc(',', f);
    }
    fprintf(f, "title=isomer: %s::", reason ? "known divergence" : differs ? "divergence" : "gap");
    char *text = describe(p, d);
    ci_put_command(f, text ? text : "?", text ? strlen(text) : 1, false);
    if (reason) fputs(" Known: ", f), ci_put_command(f, reason, strlen(reason), false);
    fputc('\n', f);
    free(text);
  }
  if (p->r->n_divergences == 0 && p->r->verdict != SYNTH_EQUIVALENT) {
    const char *why = differs ? "the outputs differ" : p->r->reason ? p->r->reason : "undecided";
    fprintf(f, "::%s title=isomer::", kind);
    ci_put_command(f, why, strlen(why), false);
    fputc('\n', f);
  }
}
