#include "cli/report/rounding.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { SHOWN = 12 };
static const char *const side_name[] = {"left", "right"};

/* Where a point lies in the left graph: the part of its scope up to the last number, which is a
 * layer; all of it where there is none. */
static size_t layer_length(const char *scope) {
  size_t end = strlen(scope);
  for (size_t k = end; k-- > 0;)
    if (isdigit((unsigned char)scope[k])) return k + 1;
  return end;
}

static const char *scope_of(const report *p, const rounding_point *x) {
  const char *scope = p->left->node[x->node[0]].scope;
  return scope ? scope : "";
}

static bool same_layer(const report *p, const rounding_point *a, const rounding_point *b) {
  const char *x = scope_of(p, a), *y = scope_of(p, b);
  const size_t n = layer_length(x);
  return n == layer_length(y) && strncmp(x, y, n) == 0;
}

/* A figure that may be infinite: a number on one side only. */
static void put(FILE *f, const char *before, double x) {
  if (isfinite(x)) fprintf(f, "%s%.2g", before, x);
  else fprintf(f, "%s%s", before, isnan(x) ? "-" : "inf");
}

void report_rounding_line(const report *p, FILE *f) {
  if (p->rounding) fprintf(f, "rounding: %s\n", p->rounding->text);
}

static void print_losses(const report *p, size_t k, FILE *f) {
  const rounding *r = p->rounding;
  for (size_t i = 0; i < r->n_losses; i++)
    if (r->loss[i].share[k] >= ROUNDING_LEAST_SHARE)
      fprintf(f, "    %s (%.0f %% of its error)\n", r->loss[i].text, 100 * r->loss[i].share[k]);
}

/* The last point of each layer. */
static void print_curve(const report *p, FILE *f) {
  const rounding *r = p->rounding;
  size_t shown = 0, hidden = 0;
  for (size_t i = 0; i < r->n_points; i++) {
    const rounding_point *x = &r->point[i];
    if (i + 1 < r->n_points && same_layer(p, x, x + 1)) continue;
    if (shown == SHOWN && !p->verbose) {
      hidden++;
      continue;
    }
    if (shown++ == 0) fputs("  along the layers, relative to exact:\n", f);
    const char *scope = scope_of(p, x);
    fprintf(f, "    %-32.*s", (int)layer_length(scope), *scope ? scope : "the model");
    put(f, " left ", x->error[0]);
    put(f, ", right ", x->error[1]);
    put(f, ", apart ", x->difference);
    put(f, ", predicted ", x->predicted);
    fputc('\n', f);
  }
  if (hidden) fprintf(f, "    and %zu more (-v)\n", hidden);
}

void report_rounding_text(const report *p, FILE *f) {
  const rounding *r = p->rounding;
  if (!r || r->missing) return;
  fprintf(f, "\nrounding, on the captured inputs and parameters:\n");
  for (size_t k = 0; k < r->n_outputs; k++) {
    const rounding_output *o = &r->output[k];
    fprintf(f, "  output %s: ", o->left);
    put(f, "left ", o->error[0]);
    put(f, " from exact, right ", o->error[1]);
    put(f, ", apart ", o->difference);
    put(f, "; stochastic rounding predicts ", o->predicted);
    fprintf(f, ": %s\n", o->explained ? "explained" : "not explained");
    print_losses(p, k, f);
  }
  print_curve(p, f);
}

/* ---- JSON ---- */

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *losses_json(const report *p, size_t k) {
  const rounding *r = p->rounding;
  json_t *all = json_array();
  for (size_t i = 0; i < r->n_losses; i++) {
    const rounding_loss *l = &r->loss[i];
    const cap_graph *g = l->side ? p->right : p->left;
    if (l->share[k] < ROUNDING_LEAST_SHARE) continue;
    json_array_append_new(all, json_pack("{s:s, s:s, s:f, s:o, s:I, s:s}", "side",
                                         side_name[l->side], "id", g->node[l->node].id, "share",
                                         l->share[k], "ratio", number(l->ratio), "places",
                                         (json_int_t)l->places, "text", l->text));
  }
  return all;
}

static json_t *output_json(const report *p, size_t k) {
  const rounding_output *o = &p->rounding->output[k];
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:o}", "output", o->left, "left_error",
                   number(o->error[0]), "right_error", number(o->error[1]), "difference",
                   number(o->difference), "predicted", number(o->predicted), "exact_difference",
                   number(o->exact), "explained", (int)o->explained, "text", o->text, "operators",
                   losses_json(p, k));
}

static json_t *point_json(const report *p, const rounding_point *x) {
  return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "left", p->left->node[x->node[0]].id,
                   "right", p->right->node[x->node[1]].id, "scope", scope_of(p, x), "left_error",
                   number(x->error[0]), "right_error", number(x->error[1]), "difference",
                   number(x->difference), "predicted", number(x->predicted));
}

void report_rounding_json(const report *p, json_t *doc) {
  json_t *outputs = json_array(), *curve = json_array();
  const rounding *r = p->rounding;
  for (size_t k = 0; r && k < r->n_outputs; k++) json_array_append_new(outputs, output_json(p, k));
  for (size_t i = 0; r && i < r->n_points; i++)
    json_array_append_new(curve, point_json(p, &r->point[i]));
  json_object_set_new(doc, "rounding", outputs);
  json_object_set_new(doc, "rounding_curve", curve);
  json_object_set_new(doc, "rounding_conclusion", r ? json_string(r->text) : json_null());
}
