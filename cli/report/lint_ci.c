/* Findings of `isomer lint` for code scanning, test runners and GitHub. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ci_text.h"
#include "cli/cli.h"
#include "cli/report/lint_report.h"
#include "cli/config/utf8.h"

static const char *reason_of(const lint_view *v, size_t i) {
  return v->known ? v->known->reason[i] : NULL;
}

/* An event as a place in code scanning: its source line, or the input. */
static json_t *location(const lint_view *v, const lint_finding *x) {
  long line = 0;
  char *file = utf8_clean(x->source ? x->source : v->path);
  if (!file) return NULL;
  const size_t n = x->source ? ci_split_source(file, &line) : strlen(file);
  json_t *where = json_pack("{s:{s:o}}", "artifactLocation", "uri", ci_uri(file, n));
  free(file);
  if (line) json_object_set_new(where, "region", json_pack("{s:I}", "startLine", (json_int_t)line));
  char name[64] = "input";
  if (x->n_events)
    snprintf(name, sizeof name, "rank %" PRIu32 "/event %" PRIu32, x->event[0].rank,
             x->event[0].position);
  char *node = x->n_nodes ? utf8_clean(x->node[0].id) : NULL;
  json_t *j = json_pack("{s:o, s:[{s:s}]}", "physicalLocation", where, "logicalLocations", "name",
                        node ? node : name);
  free(node);
  return j;
}

static json_t *result(const lint_view *v, size_t i) {
  const lint_finding *x = &v->r->finding[i];
  const char *reason = reason_of(v, i);
  char *text = utf8_clean(x->text);
  json_t *j = json_pack("{s:s, s:s, s:{s:s}, s:[o]}", "ruleId", lint_kind_word(x->kind), "level",
                        reason     ? "note"
                        : x->error ? "error"
                                   : "warning",
                        "message", "text", text ? text : "?", "locations", location(v, x));
  free(text);
  if (j && reason)
    json_object_set_new(j, "suppressions",
                        json_pack("[{s:s, s:s}]", "kind", "external", "justification", reason));
  return j;
}

char *lint_to_sarif(const lint_view *v) {
  json_t *results = json_array(), *rules = json_array();
  for (size_t i = 0; i < v->r->n_findings; i++) json_array_append_new(results, result(v, i));
  if (v->r->undecided) {
    char *why = utf8_clean(v->r->undecided);
    json_array_append_new(results, json_pack("{s:s, s:s, s:{s:s}}", "ruleId", "undecided", "level",
                                             "warning", "message", "text", why ? why : "?"));
    free(why);
  }
  for (int i = 0; i < LINT_KINDS; i++)
    json_array_append_new(rules, json_pack("{s:s}", "id", lint_kind_word((lint_kind)i)));
  json_array_append_new(rules, json_pack("{s:s}", "id", "undecided"));
  json_t *doc =
      json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "$schema",
                "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
                "version", "2.1.0", "runs", "tool", "driver", "name", "isomer", "version",
                ISO_VERSION, "rules", rules, "results", results);
  char *text = doc ? json_dumps(doc, JSON_INDENT(1)) : NULL;
  json_decref(doc);
  return text;
}

/* A test case for each finding; one that stands for the input where there is none. */
static void put_case(const lint_view *v, size_t i, FILE *f) {
  const lint_finding *x = &v->r->finding[i];
  char name[128];
  snprintf(name, sizeof name, "%s", lint_kind_word(x->kind));
  if (x->n_events)
    snprintf(name, sizeof name, "%s at rank %" PRIu32 " event %" PRIu32, lint_kind_word(x->kind),
             x->event[0].rank, x->event[0].position);
  fputs("    <testcase classname=\"isomer lint\"", f);
  ci_put_attribute(f, "name", name);
  const bool counts = (x->error || v->strict) && !reason_of(v, i);
  fputs(counts ? ">\n      <failure" : ">\n      <skipped", f);
  if (counts) ci_put_attribute(f, "type", lint_kind_word(x->kind));
  ci_put_attribute(f, "message", x->text);
  fputs("/>\n    </testcase>\n", f);
}

char *lint_to_junit(const lint_view *v) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  const size_t all = v->r->n_findings, failed = lint_view_open(v);
  const bool none = all == 0;
  const size_t tests = none ? 1 : all, failures = none ? v->r->undecided != NULL : failed;
  fprintf(
      f,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"isomer\" tests=\"%zu\" "
      "failures=\"%zu\" errors=\"0\">\n  <testsuite tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
      "skipped=\"%zu\"",
      tests, failures, tests, failures, none ? 0 : all - failed);
  ci_put_attribute(f, "name", v->path);
  fputs(">\n", f);
  for (size_t i = 0; i < all; i++) put_case(v, i, f);
  if (none) {
    fputs("    <testcase classname=\"isomer lint\" name=\"input\"", f);
    if (v->r->undecided) {
      fputs(">\n      <failure type=\"undecided\"", f);
      ci_put_attribute(f, "message", v->r->undecided);
      fputs("/>\n    </testcase>\n", f);
    } else {
      fputs("/>\n", f);
    }
  }
  fputs("  </testsuite>\n</testsuites>", f);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

void lint_put_github(const lint_view *v, FILE *f) {
  for (size_t i = 0; i < v->r->n_findings; i++) {
    const lint_finding *x = &v->r->finding[i];
    const char *reason = reason_of(v, i), *at = x->source ? x->source : v->path;
    long line = 0;
    fprintf(f, "::%s file=", reason ? "notice" : x->error ? "error" : "warning");
    const size_t n = x->source ? ci_split_source(at, &line) : strlen(at);
    ci_put_command(f, at, n, true);
    if (line) fprintf(f, ",line=%ld", line);
    fprintf(f, ",title=isomer: %s::", lint_kind_word(x->kind));
    ci_put_command(f, x->text, strlen(x->text), false);
    if (reason) fputs(" Known: ", f), ci_put_command(f, reason, strlen(reason), false);
    fputc('\n', f);
  }
  if (!v->r->undecided) return;
  fputs("::warning title=isomer::", f);
  ci_put_command(f, v->r->undecided, strlen(v->r->undecided), false);
  fputc('\n', f);
}
