/* The page: a template with places to fill. The figures are the JSON report and html_data, as they
 * are; the script in the page draws them. Without scripts the page has the text report. */
#include "cli/report/html.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Text as HTML shows it. */
static void put_text(FILE *f, const char *s) {
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
static void put_json(FILE *f, const char *s) {
  for (; *s; s++)
    if (*s == '<' || *s == '>' || *s == '&') fprintf(f, "\\u%04x", (unsigned char)*s);
    else fputc(*s, f);
}

/* The text report in full, whatever was asked for on the terminal. Owns: malloc'ed. */
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
  fprintf(f, "{\"version\":\"%s\",\"decides\":%zu,\"pairs\":[", ISO_VERSION, a->decides);
  for (size_t k = 0; k < a->n; k++) {
    if (k) fputc(',', f);
    html_data(&a->p[k], f);
  }
  fputs("]}", f);
}

static void fill(FILE *f, const char *place, size_t n, const parts *a) {
  const char *last = strstr(a->text, "\nisomer: "); /* the last line is the verdict */
  for (const char *next = last; next; next = strstr(next + 1, "\nisomer: ")) last = next;
  if (strncmp(place, "style", n) == 0) fputs(html_style, f);
  else if (strncmp(place, "script", n) == 0) fputs(html_script, f);
  else if (strncmp(place, "text", n) == 0) put_text(f, a->text);
  else if (strncmp(place, "report", n) == 0) put_json(f, a->json);
  else if (strncmp(place, "graphs", n) == 0) put_graphs(f, a);
  else if (strncmp(place, "title", n) == 0) put_text(f, last ? last + 1 : "isomer");
}

char *report_html(const report *p, size_t n, size_t decides) {
  parts a = {p, n, decides, text_of(p, n, decides), report_json(p, n, decides)};
  char *out = NULL;
  size_t size;
  FILE *f = a.text && a.json ? open_memstream(&out, &size) : NULL;
  const char *at = html_page;
  for (const char *open; f && (open = strstr(at, "{{")); at = strstr(open, "}}") + 2) {
    fwrite(at, 1, (size_t)(open - at), f);
    fill(f, open + 2, (size_t)(strstr(open, "}}") - open - 2), &a);
  }
  if (f) fputs(at, f);
  free(a.text);
  free(a.json);
  if (f && !ferror(f) && fclose(f) == 0) return out;
  free(out);
  return NULL;
}
