/* The page: a template with places to fill. The figures are the JSON report and html_data, as they
 * are; the script in the page draws them. Without scripts the page has the text report. */
#include "cli/report/html.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Text as HTML shows it. */
void html_put_text(FILE *f, const char *s) {
  for (; *s; s++) switch (*s) {
    case '<': fputs("&lt;", f); break;
    case '>': fputs("&gt;", f); break;
    case '&': fputs("&amp;", f); break;
    case '"': fputs("&quot;", f); break;
    default: fputc(*s, f);
    }
}

/* JSON inside of a script element: a "<" stands in strings only, and there it may be written
 * otherwise. */
void html_put_json(FILE *f, const char *s) {
  for (; *s; s++)
    if (*s == '<' || *s == '>' || *s == '&') fprintf(f, "\\u%04x", (unsigned char)*s);
    else fputc(*s, f);
}

/* The text report in full, for any options of the terminal. Owns: malloc'ed. */
static char *text_of(const report *p, size_t n, size_t decides) {
  char *text = NULL;
  size_t size;
  report *loud = malloc(n * sizeof *loud);
  FILE *f = loud ? open_memstream(&text, &size) : NULL;
  for (size_t k = 0; f && k < n; k++) loud[k] = p[k], loud[k].quiet = false;
  if (f) report_text(loud, n, decides, f);
  free(loud);
  if (f && fclose(f) == 0) return text;
  free(text);
  return NULL;
}

typedef struct parts {
  const report *p;
  size_t n, decides;
  char *text, *json;
} parts;

static void put_graphs(FILE *f, const parts *a) {
  fprintf(f, "{\"version\":\"%s\",\"decides\":%zu,\"assumes\":", ISO_VERSION, a->decides);
  html_assumptions(f);
  fputs(",\"pairs\":[", f);
  for (size_t k = 0; k < a->n; k++) {
    if (k) fputc(',', f);
    html_data(&a->p[k], f);
  }
  fputs("]}", f);
}

const char *html_title(const char *text) {
  const char *last = strstr(text, "\nisomer: "); /* the last line is the verdict */
  for (const char *next = last; next; next = strstr(next + 1, "\nisomer: ")) last = next;
  return last ? last + 1 : "isomer";
}

static void fill_page(FILE *f, html_place *put, const void *ctx) {
  const char *at = html_page;
  for (const char *open; (open = strstr(at, "{{")); at = strstr(open, "}}") + 2) {
    fwrite(at, 1, (size_t)(open - at), f);
    put(f, open + 2, (size_t)(strstr(open, "}}") - open - 2), ctx);
  }
  fputs(at, f);
}

char *html_filled(html_place *put, const void *ctx) {
  char *out = NULL;
  size_t size;
  FILE *f = open_memstream(&out, &size);
  if (f) fill_page(f, put, ctx);
  const bool failed = !f || ferror(f);
  if (f && fclose(f) == 0 && !failed) return out;
  free(out);
  return NULL;
}

static void fill(FILE *f, const char *place, size_t n, const void *ctx) {
  const parts *a = ctx;
  if (strncmp(place, "style", n) == 0) fputs(html_style, f);
  else if (strncmp(place, "script", n) == 0) fputs(html_script, f);
  else if (strncmp(place, "text", n) == 0) html_put_text(f, a->text);
  else if (strncmp(place, "report", n) == 0) html_put_json(f, a->json);
  else if (strncmp(place, "graphs", n) == 0) put_graphs(f, a);
  else if (strncmp(place, "title", n) == 0) html_put_text(f, html_title(a->text));
}

char *report_html(const report *p, size_t n, size_t decides) {
  parts a = {p, n, decides, text_of(p, n, decides), report_json(p, n, decides)};
  char *out = a.text && a.json ? html_filled(fill, &a) : NULL;
  free(a.text);
  free(a.json);
  return out;
}
