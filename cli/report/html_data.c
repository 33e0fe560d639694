/* The graphs for the page, as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/html.h"
#include "cli/config/utf8.h"
#include "rules/assumption.h"

/* ---- JSON ---- */

/* A JSON string of printable ASCII that neither ends nor opens anything inside HTML; bytes that are
 * no UTF-8 become U+FFFD. */
static void html_string(FILE *f, const char *s) {
  fputc('"', f);
  while (*s) {
    uint32_t c;
    s += utf8_decode(s, &c);
    if (c == '"' || c == '\\') fprintf(f, "\\%c", (int)c);
    else if (c >= 0x20 && c < 0x7F && c != '<' && c != '>' && c != '&' && c != '\'')
      fputc((int)c, f);
    else if (c < 0x10000) fprintf(f, "\\u%04" PRIx32, c);
    else
      fprintf(f, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + ((c - 0x10000) >> 10),
              0xDC00 + ((c - 0x10000) & 0x3FF));
  }
  fputc('"', f);
}

/* Numbers that JSON lacks are texts. */
static void put_number(FILE *f, double x) {
  if (isfinite(x)) fprintf(f, "%.9g", x);
  else fputs(isnan(x) ? "\"NaN\"" : x > 0 ? "\"inf\"" : "\"-inf\"", f);
}

/* One more entry of an object. */
static void put_text(FILE *f, const char *key, const char *s) {
  fprintf(f, ",\"%s\":", key);
  html_string(f, s);
}

static void put_figure(FILE *f, const char *key, double x) {
  fprintf(f, ",\"%s\":", key);
  put_number(f, x);
}

static void put_indices(FILE *f, const uint32_t *a, size_t n) {
  fputc('[', f);
  for (size_t i = 0; i < n; i++) fprintf(f, "%s%" PRIu32, i ? "," : "", a[i]);
  fputc(']', f);
}

/* 0 where the node before has the same. */
static void put_again(FILE *f, const char *s, const char *before) {
  if (before && strcmp(s ? s : "", before) == 0) fputc('0', f);
  else html_string(f, s ? s : "");
}

/* ---- assumptions ---- */

void html_assumptions(FILE *f) {
  for (int kind = 0; kind < RULE_ASSUMPTIONS; kind++) {
    fprintf(f, "%s\"%s\":", kind ? "," : "{", rule_assumption_name((rule_assumption)kind));
    html_string(f, rule_assumption_meaning((rule_assumption)kind));
  }
  fputc('}', f);
}

/* ---- graphs ---- */

/* Lists of literals as people write them; else the rule language. */
static void literal_text(FILE *out, const rule_term *t, rule_schemas *schemas) {
  if (t->kind == RULE_LIST) {
    fputc('[', out);
    for (uint32_t i = 0; i < t->n; i++) {
      if (i) fputs(", ", out);
      literal_text(out, t->child[i], schemas);
    }
    fputc(']', out);
    return;
  }
  char *text = rule_term_print(t, schemas, NULL);
  fputs(text ? text : "?", out);
  free(text);
}

static void put_literal(FILE *f, const char *name, const rule_term *t, rule_schemas *schemas) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out && *name) fprintf(out, "%s=", name);
  if (out) literal_text(out, t, schemas);
  html_string(f, out && fclose(out) == 0 ? text : "?");
  free(text);
}

static bool has_tensor(const rule_term *t) {
  bool any = t->kind == RULE_VAR || t->kind == RULE_OP;
  for (uint32_t i = 0; i < t->n && !any; i++) any = has_tensor(t->child[i]);
  return any;
}

/* An argument: a number is a node, a text a literal, a list either. */
static void put_argument(FILE *f, const rule_term *t, rule_schemas *schemas) {
  if (t->kind == RULE_VAR) fprintf(f, "%" PRId64, t->u.i);
  else if (t->kind == RULE_LIST && has_tensor(t)) {
    for (uint32_t i = 0; i < t->n; i++) {
      fputc(i ? ',' : '[', f);
      put_argument(f, t->child[i], schemas);
    }
    fputc(']', f);
  } else put_literal(f, "", t, schemas);
}

/* [name, value, name, value ...], defaults left out. */
static void put_arguments(FILE *f, const rule_term *call, rule_schemas *schemas) {
  const rule_schema *schema = call ? rule_schemas_find(schemas, call->u.s) : NULL;
  const char *sep = "";
  fputc('[', f);
  for (uint32_t i = 0; call && i < call->n; i++) {
    const rule_arg *arg = schema && i < schema->n_args ? &schema->arg[i] : NULL;
    if (arg && arg->deflt && rule_term_eq(arg->deflt, call->child[i])) continue;
    fputs(sep, f);
    html_string(f, arg ? arg->name : "");
    fputc(',', f);
    put_argument(f, call->child[i], schemas);
    sep = ",";
  }
  fputc(']', f);
}

static void put_shape(FILE *f, const cap_node *n) {
  char text[256] = "";
  size_t at = 0;
  for (size_t k = 0; k < n->n_outputs && k < 4 && at + 64 < sizeof text; k++) {
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", k ? ", " : "",
                           rule_dtype_name(n->output[k].dtype));
    rule_shape_print(&n->output[k].shape, text + at, sizeof text - at);
    at += strlen(text + at);
  }
  html_string(f, text);
}

/* id, kind, operator or name, shape, class (-1: none), standing, arguments, module, source line. */
static void put_node(FILE *f, const report *p, bool right, size_t i) {
  static const char kinds[] = {[CAP_INPUT] = 'i',
                               [CAP_PARAMETER] = 'p',
                               [CAP_BUFFER] = 'b',
                               [CAP_CONSTANT] = 'c',
                               [CAP_OP] = 'o'};
  const cap_graph *g = right ? p->right : p->left;
  const cap_node *n = &g->node[i], *before = i ? &g->node[i - 1] : NULL;
  const uint32_t *cls = p->r->class_of[right];
  const uint8_t *standing = p->r->standing_of[right];
  fputs(i ? ",\n[" : "\n[", f);
  html_string(f, n->id);
  fprintf(f, ",\"%c\",", kinds[n->kind]);
  html_string(f, n->kind == CAP_OP ? n->op : n->name);
  fputc(',', f);
  put_shape(f, n);
  fprintf(f, ",%" PRId64 ",%d,", cls && cls[i] != UINT32_MAX ? (int64_t)cls[i] : -1,
          standing ? standing[i] : SYNTH_UNREAD);
  put_arguments(f, n->call, p->schemas);
  fputc(',', f);
  put_again(f, n->scope, before ? before->scope : NULL);
  fputc(',', f);
  put_again(f, n->source, before ? before->source : NULL);
  fputc(']', f);
}

static void put_graph(FILE *f, const report *p, bool right) {
  const cap_graph *g = right ? p->right : p->left;
  fputs("{\"path\":", f);
  html_string(f, g->path);
  fputs(",\"then\":[", f);
  for (size_t i = 0; i < g->n_then; i++) {
    if (i) fputc(',', f);
    html_string(f, g->then[i]);
  }
  fputc(']', f);
  put_text(f, "model", g->model);
  put_text(f, "framework", g->framework);
  put_text(f, "framework_version", g->framework_version);
  put_text(f, "torch_version", g->torch_version);
  fputs(",\"outputs\":[", f);
  for (size_t i = 0; i < g->n_results; i++)
    fprintf(f, "%s%" PRIu32, i ? "," : "", g->result[i].node);
  fputs("],\"nodes\":[", f);
  for (size_t i = 0; i < g->n_nodes; i++) put_node(f, p, right, i);
  fputs("]}", f);
}

/* ---- rules ---- */

/* A variable is its number, a literal the text "name=value", a call [operator, argument ...], a
 * list of tensors ["", element ...]. */
static void put_term(FILE *f, const rule_term *t, const char *name, rule_schemas *schemas) {
  if (t->kind == RULE_VAR) fprintf(f, "%" PRId64, t->u.i);
  else if (t->kind == RULE_OP || has_tensor(t)) {
    const rule_schema *schema = t->kind == RULE_OP ? rule_schemas_find(schemas, t->u.s) : NULL;
    fputc('[', f);
    html_string(f, t->kind == RULE_OP ? t->u.s : "");
    for (uint32_t i = 0; i < t->n; i++) {
      const rule_arg *arg = schema && i < schema->n_args ? &schema->arg[i] : NULL;
      if (arg && arg->deflt && rule_term_eq(arg->deflt, t->child[i])) continue;
      fputc(',', f);
      put_term(f, t->child[i], arg ? arg->name : "", schemas);
    }
    fputc(']', f);
  } else put_literal(f, name, t, schemas);
}

static void put_rule(FILE *f, const synth_rule_use *u, rule_schemas *schemas) {
  fprintf(f, "\n{\"needed\":%s,\"classes\":", u->needed ? "true" : "false");
  put_indices(f, u->of_class, u->n_of_class);
  fputs(",\"vars\":[", f);
  for (uint32_t i = 0; i < u->what->n_vars; i++) {
    if (i) fputc(',', f);
    html_string(f, u->what->var[i].name);
  }
  fputs("],\"lhs\":", f);
  put_term(f, u->what->lhs, "", schemas);
  fputs(",\"rhs\":", f);
  put_term(f, u->what->rhs, "", schemas);
  fprintf(f, ",\"seed\":%" PRIu64, u->verdict.seed);
  put_figure(f, "tolerance", u->verdict.rel_tol);
  put_figure(f, "max_rel", u->verdict.max_rel);
  fputc('}', f);
}

/* ---- divergences ---- */

static void put_picture(FILE *f, const synth_picture *p) {
  fprintf(f,
          "{\"n_rows\":%" PRId64 ",\"n_columns\":%" PRId64 ",\"row_step\":%" PRId64
          ",\"column_step\":%" PRId64 ",\"rows\":%" PRIu32 ",\"columns\":%" PRIu32,
          p->n_rows, p->n_columns, p->row_step, p->column_step, p->rows, p->columns);
  fprintf(f, ",\"n_differ\":%" PRId64 ",\"index\":%" PRId64, p->n_differ, p->index);
  put_figure(f, "largest", p->largest);
  put_figure(f, "left", p->left);
  put_figure(f, "right", p->right);
  fputs(",\"cell\":[", f);
  for (size_t i = 0; i < (size_t)p->rows * p->columns; i++) {
    if (i) fputc(',', f);
    if (isfinite(p->cell[i])) fprintf(f, "%.3g", (double)p->cell[i]);
    else fputs("-1", f);
  }
  fputs("]}", f);
}

static void put_divergence(FILE *f, const synth_divergence *d) {
  fprintf(f,
          "\n{\"left\":%" PRId64 ",\"right\":%" PRId64 ",\"at\":[%" PRId64 ",%" PRId64
          "],\"regions\":[",
          d->left, d->right, d->at[0], d->at[1]);
  put_indices(f, d->left_region, d->n_left_region);
  fputc(',', f);
  put_indices(f, d->right_region, d->n_right_region);
  fputs("],\"picture\":", f);
  if (d->picture) put_picture(f, d->picture);
  else fputs("null", f);
  fputc('}', f);
}

void html_data(const report *p, FILE *f) {
  const synth_result *r = p->r;
  fputs("{\"sides\":[", f);
  put_graph(f, p, false);
  fputc(',', f);
  put_graph(f, p, true);
  fputs("],\n\"rules\":[", f);
  for (size_t i = 0; i < r->n_rules; i++) {
    if (i) fputc(',', f);
    put_rule(f, &r->rule[i], p->schemas);
  }
  fputs("],\n\"divergences\":[", f);
  for (size_t i = 0; i < r->n_divergences; i++) {
    if (i) fputc(',', f);
    put_divergence(f, &r->divergence[i]);
  }
  fputs("],\n\"reason\":", f);
  html_string(f, r->reason ? r->reason : "");
  fputc('}', f);
}
