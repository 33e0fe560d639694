/* The page of `isomer lint`: the JSON report, and beside it the lanes of the timelines. A lane is
 * lists of numbers, each written as its difference to the one before, which keeps 640,000 events
 * small. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/report/html.h"
#include "cli/report/lint_report.h"

/* A text as JSON in a script element. */
static void put_string(FILE *f, const char *s) {
  fputc('"', f);
  for (; *s; s++) {
    const unsigned char c = (unsigned char)*s;
    if (c < 32 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 127)
      fprintf(f, "\\u%04x", c);
    else fputc(c, f);
  }
  fputc('"', f);
}

static void put_lane(FILE *f, const lint_lane *l) {
  fprintf(f, "{\"rank\":%" PRIu32 ",\"ranks\":%" PRIu32 ",\"never\":%zu", l->rank, l->n_ranks,
          l->n_never);
  fputs(",\"op\":[", f);
  for (size_t i = 0; i < l->n; i++) fprintf(f, "%s%u", i ? "," : "", l->bar[i].op);
  fputs("],\"name\":[", f);
  for (size_t i = 0; i < l->n; i++) fprintf(f, "%s%" PRIu32, i ? "," : "", l->bar[i].name);
  fputs("],\"at\":[", f);
  for (size_t i = 0; i < l->n; i++)
    fprintf(f, "%s%" PRId64, i ? "," : "",
            (int64_t)l->bar[i].position - (i ? (int64_t)l->bar[i - 1].position : 0));
  fputs("],\"start\":[", f);
  for (size_t i = 0; i < l->n; i++)
    fprintf(f, "%s%.6g", i ? "," : "", l->bar[i].start - (i ? l->bar[i - 1].start : 0));
  fputs("],\"took\":[", f);
  for (size_t i = 0; i < l->n; i++)
    if (l->bar[i].end < 0) fprintf(f, "%s-1", i ? "," : "");
    else fprintf(f, "%s%.6g", i ? "," : "", l->bar[i].end - l->bar[i].start);
  fputs("],\"meet\":[", f);
  for (size_t i = 0; i < l->n; i++)
    fprintf(f, "%s%" PRId64, i ? "," : "",
            l->bar[i].meet == UINT32_MAX ? -1 : (int64_t)l->bar[i].meet);
  fputs("]}", f);
}

static void put_lanes(FILE *f, const lint_report *r) {
  fprintf(f, "{\"version\":\"%s\",\"model\":\"%s\",\"ranks\":%zu,\"events\":%zu,\"words\":[",
          ISO_VERSION, lint_model_word(r->decides), r->n_ranks, r->n_events);
  for (size_t i = 0; i < r->n_words; i++) {
    if (i) fputc(',', f);
    put_string(f, r->word[i]);
  }
  fputs("],\"ops\":[", f);
  for (unsigned k = 0; lint_op_name(k); k++) fprintf(f, "%s\"%s\"", k ? "," : "", lint_op_name(k));
  fputs("],\"cycles\":[", f);
  for (size_t i = 0; i < r->n_findings; i++)
    fprintf(f, "%s%zu", i ? "," : "", r->finding[i].n_cycle);
  fputs("],\"lanes\":[", f);
  for (size_t i = 0; i < r->n_lanes; i++) {
    if (i) fputs(",\n", f);
    put_lane(f, &r->lane[i]);
  }
  fputs("]}", f);
}

typedef struct parts {
  const lint_view *v;
  char *text, *json;
} parts;

static void put(FILE *f, const char *name, size_t n, const void *ctx) {
  const parts *a = ctx;
  if (strncmp(name, "style", n) == 0) fputs(html_lint_style, f);
  else if (strncmp(name, "script", n) == 0) fputs(html_lint_script, f);
  else if (strncmp(name, "text", n) == 0) html_put_text(f, a->text);
  else if (strncmp(name, "report", n) == 0) html_put_json(f, a->json);
  else if (strncmp(name, "graphs", n) == 0) put_lanes(f, a->v->r);
  else if (strncmp(name, "title", n) == 0) html_put_text(f, html_title(a->text));
}

/* Owns: malloc'ed. */
static char *text_of(const lint_view *v) {
  char *text = NULL;
  size_t size;
  lint_view loud = *v;
  loud.quiet = false;
  FILE *f = open_memstream(&text, &size);
  if (f) lint_put_text(&loud, f);
  if (f && fclose(f) == 0) return text;
  free(text);
  return NULL;
}

char *lint_to_html(const lint_view *v) {
  parts a = {v, text_of(v), lint_to_json(v)};
  char *out = a.text && a.json ? html_filled(put, &a) : NULL;
  free(a.text);
  free(a.json);
  return out;
}
