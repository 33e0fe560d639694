/* The report as one page: a file that a browser opens alone, without network or server. */
#ifndef CLI_REPORT_HTML_H
#define CLI_REPORT_HTML_H

#include "cli/report/report.h"

/* The page of `n` pairs, as report_json takes them. Owns: malloc'ed; NULL when there is no memory.
 * The same comparison gives the same bytes where no_stats is set. */
char *report_html(const report *p, size_t n, size_t decides);

/* ---- html_data.c ---- */
/* Data of the page beyond the JSON report: the nodes of both graphs with class and standing, the
 * rules' patterns and the classes they joined, the divergences' regions and pictures. One JSON
 * object. */
void html_data(const report *p, FILE *f);

/* ---- the page's template, made of page.html, page.css and page*.js when the program is built ----
 */
extern const char html_page[], html_style[], html_script[];

#endif
