/* The report as one page: a file that a browser opens alone, without network or server. */
#ifndef CLI_REPORT_HTML_H
#define CLI_REPORT_HTML_H

#include "cli/report/report.h"

/* The page of `n` pairs, as report_json takes them. Owns: malloc'ed; NULL when there is no memory.
 * The same comparison gives the same bytes where no_stats is set. */
char *report_html(const report *p, size_t n, size_t decides);

/* Text as HTML shows it; JSON inside of a script element. */
void html_put_text(FILE *f, const char *s);
void html_put_json(FILE *f, const char *s);
/* The last line of a text report, which is the page's title. */
const char *html_title(const char *text);
/* html_page, each place "{{NAME}}" of which is filled by put(f, NAME, its length, ctx). Owns:
 * malloc'ed; NULL when there is no memory. */
typedef void html_place(FILE *f, const char *name, size_t n, const void *ctx);
char *html_filled(html_place *put, const void *ctx);

/* ---- html_data.c ---- */
/* The meaning of each kind of assumption, as a JSON object. */
void html_assumptions(FILE *f);
/* Data of the page beyond the JSON report: the nodes of both graphs with class and standing, the
 * rules' patterns and the classes they joined, the divergences' regions and pictures. One JSON
 * object. */
void html_data(const report *p, FILE *f);

/* ---- the page's template, made of page.html, page.css and page*.js when the program is built ----
 */
extern const char html_page[], html_style[], html_script[];
/* Of `isomer lint`'s page: cli/templates/lint. */
extern const char html_lint_style[], html_lint_script[];

#endif
