/* `isomer saturate --html PAGE`: a picture of each run, in a file that a browser opens alone.
 *
 * Counts are the same from run to run. Times are not: each stands in an element of the class
 * `time` of its own, and nothing else depends on them. */
#include <stdlib.h>
#include <string.h>

#include "cli/report/html.h"
#include "cli/saturate/saturate.h"

enum { WIDTH = 720, HEIGHT = 240, LEFT = 70, BELOW = 24 };

static const char style[] =
    ".curve { fill: none; stroke-width: 2; } .nodes { stroke: var(--rule); }\n"
    ".classes { stroke: var(--assumed); stroke-dasharray: 6 3; }\n"
    ".matches { stroke: var(--after); stroke-dasharray: 2 3; }\n"
    "text { fill: var(--text); font-size: 12px; } .grid { stroke: var(--line); }\n"
    "td.n, td.time, th.n { text-align: right; font-variant-numeric: tabular-nums; }\n"
    "td.heat { padding: 0; min-width: .9em; border: 1px solid var(--bg); }\n"
    ".wide { overflow-x: auto; }\n";

static void put_time(FILE *f, double seconds) {
  fprintf(f, "<td class=\"time\">%.3f</td>", 1e3 * seconds);
}

/* ---- the curves ---- */

typedef size_t value_of(const eg_iteration *it);
static size_t nodes_of(const eg_iteration *it) { return it->nodes; }
static size_t classes_of(const eg_iteration *it) { return it->classes; }
static size_t matches_of(const eg_iteration *it) { return it->matches; }

/* Of a number how often it doubles, by tenths: curves are drawn by that, without a rounding that
 * another libm does otherwise. */
static size_t tenths(size_t n) {
  static const unsigned part[] = {1024, 1097, 1176, 1261, 1351, 1448, 1552, 1663, 1783, 1911};
  size_t twice = 0, k = 0;
  uint64_t m = n;
  if (!n) return 0;
  for (; m > 1; m >>= 1) twice++;
  const uint64_t scaled = twice > 10 ? (uint64_t)n >> (twice - 10) : (uint64_t)n << (10 - twice);
  while (k < 9 && part[k + 1] <= scaled) k++;
  return 10 * twice + k;
}

static void put_curve(FILE *f, const cli_sat_page_run *r, const char *name, value_of *of,
                      size_t top) {
  fprintf(f, "<polyline class=\"curve %s\" points=\"", name);
  for (size_t i = 0; i < r->n; i++) {
    const size_t x = LEFT + (r->n > 1 ? i * (WIDTH - LEFT - 10) / (r->n - 1) : 0),
                 y = 10 + (HEIGHT - BELOW - 10) * (top - tenths(of(&r->it[i]))) / top;
    fprintf(f, "%s%zu,%zu", i ? " " : "", x, y);
  }
  fputs("\"/>\n", f);
}

static void put_curves(FILE *f, const cli_sat_page_run *r) {
  size_t top = 10;
  for (size_t i = 0; i < r->n; i++) {
    const size_t most = r->it[i].nodes > r->it[i].matches ? r->it[i].nodes : r->it[i].matches;
    while (top <= tenths(most)) top += 10;
  }
  fprintf(f, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"%s\">\n", WIDTH,
          HEIGHT, WIDTH, "e-nodes, e-classes and matches by iteration, doubling upwards");
  const size_t step = top > 120 ? 40 : top > 60 ? 20 : 10;
  for (size_t t = 0; t <= top; t += step) {
    const size_t y = 10 + (HEIGHT - BELOW - 10) * (top - t) / top;
    fprintf(f,
            "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%zu\" y2=\"%zu\"/>"
            "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%zu</text>\n",
            LEFT, WIDTH - 10, y, y, LEFT - 6, y + 4, (size_t)1 << (t / 10));
  }
  fprintf(
      f, "<text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%zu</text>\n",
      LEFT, HEIGHT - 6, WIDTH - 10, HEIGHT - 6, r->n ? r->n - 1 : 0);
  put_curve(f, r, "matches", matches_of, top);
  put_curve(f, r, "classes", classes_of, top);
  put_curve(f, r, "nodes", nodes_of, top);
  fputs(
      "</svg>\n<p class=\"dim\">e-nodes drawn through, e-classes in dashes, matches in dots</p>\n",
      f);
}

/* ---- the tables ---- */

static void put_iterations(FILE *f, const cli_sat_page_run *r) {
  fputs("<h3>Iterations</h3>\n<div class=\"wide\"><table>\n<tr><th class=\"n\">iteration</th>"
        "<th class=\"n\">e-nodes</th><th class=\"n\">e-classes</th><th class=\"n\">matches</th>"
        "<th class=\"n\">search, ms</th><th class=\"n\">apply, ms</th>"
        "<th class=\"n\">rebuild, ms</th></tr>\n",
        f);
  for (size_t i = 0; i < r->n; i++) {
    const eg_iteration *it = &r->it[i];
    fprintf(f, "<tr><td class=\"n\">%zu</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td>", i,
            it->nodes, it->classes);
    fprintf(f, "<td class=\"n\">%zu</td>", it->matches);
    put_time(f, it->search_s);
    put_time(f, it->apply_s);
    put_time(f, it->rebuild_s);
    fputs("</tr>\n", f);
  }
  fputs("</table></div>\n", f);
}

static const eg_rule_iteration *cell(const cli_sat_page_run *r, size_t i, size_t k) {
  return &r->rule[(i - 1) * r->n_rules + k];
}

/* A cell per iteration, the darker the more matches; how many is in its title. */
static void put_heat(FILE *f, const cli_sat_page_run *r, size_t k, size_t most) {
  const size_t top = tenths(most) + 1;
  for (size_t i = 1; i < r->n; i++) {
    const eg_rule_iteration *c = cell(r, i, k);
    const size_t percent = c->matches ? 10 + 90 * (tenths(c->matches) + 1) / top : 0;
    fprintf(f,
            "<td class=\"heat\" title=\"%zu: %zu matches, %zu e-nodes\" style=\"background:"
            "color-mix(in srgb, var(--heat) %zu%%, transparent)\"></td>",
            i, c->matches, c->nodes, percent);
  }
}

static void put_rules(FILE *f, const cli_sat_page_run *r) {
  size_t most = 1;
  for (size_t i = 1; i < r->n; i++)
    for (size_t k = 0; k < r->n_rules; k++)
      if (cell(r, i, k)->matches > most) most = cell(r, i, k)->matches;
  fprintf(f,
          "<h3>Rules</h3>\n<div class=\"wide\"><table>\n<tr><th>rule</th>"
          "<th class=\"n\">matches</th><th class=\"n\">e-nodes</th>"
          "<th class=\"n\">search, ms</th><th class=\"n\">apply, ms</th>"
          "<th colspan=\"%zu\">matches by iteration</th></tr>\n",
          r->n > 1 ? r->n - 1 : 1);
  for (size_t k = 0; k < r->n_rules; k++) {
    eg_rule_iteration all = {0};
    for (size_t i = 1; i < r->n; i++) {
      all.matches += cell(r, i, k)->matches;
      all.nodes += cell(r, i, k)->nodes;
      all.search_s += cell(r, i, k)->search_s;
      all.apply_s += cell(r, i, k)->apply_s;
    }
    fputs("<tr><td class=\"mono\">", f);
    html_put_text(f, r->name[k]);
    fprintf(f, "</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td>", all.matches, all.nodes);
    put_time(f, all.search_s);
    put_time(f, all.apply_s);
    put_heat(f, r, k, most);
    fputs("</tr>\n", f);
  }
  fputs("</table></div>\n", f);
}

void cli_sat_page_open(FILE *f, const char *title) {
  fputs(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\"><title>",
      f);
  html_put_text(f, title);
  fprintf(f, "</title>\n<style>\n%s%s</style></head>\n<body><main>\n<h1>", html_style, style);
  html_put_text(f, title);
  fputs("</h1>\n", f);
}

void cli_sat_page_run_put(FILE *f, const cli_sat_page_run *r) {
  fprintf(f, "<h2>%s scheduler: ", r->scheduler);
  html_put_text(f, r->stop);
  fprintf(f, "</h2>\n");
  put_curves(f, r);
  put_rules(f, r);
  put_iterations(f, r);
}

void cli_sat_page_close(FILE *f) { fputs("</main></body></html>\n", f); }
