/* `isomer show CAPTURE`: the contents of a capture, or with --dot its graph for Graphviz. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "rules/operators.h"
#include "cli/cli.h"
#include "cli/config/options.h"

enum { MAX_INPUTS = 64 };

typedef struct show_args {
  const char *capture;
  const char *inputs[MAX_INPUTS];
  size_t n_inputs;
  bool dot;
} show_args;

/* Texts of a capture may hold anything but NUL: control characters must not reach a terminal. */
static void put(const char *s) {
  for (; *s != '\0'; s++) putchar((unsigned char)*s < 32 || *s == 127 ? '?' : *s);
}

static void heading(const char *s) { printf("%-12s ", s); }

static void put_output(const cap_output *o) {
  char shape[256];
  printf("%s %s", rule_dtype_name(o->dtype), rule_shape_print(&o->shape, shape, sizeof shape));
}

/* ---- counted lines: how often each text occurs, the most frequent first ---- */

typedef struct tally {
  char **line;
  size_t n;
} tally;
typedef struct count {
  const char *line;
  size_t n;
} count;

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}
static int by_count(const void *pa, const void *pb) {
  const count *a = pa, *b = pb;
  return a->n != b->n ? (a->n > b->n ? -1 : 1) : strcmp(a->line, b->line);
}

static bool tally_init(tally *t, size_t cap) {
  t->n = 0;
  t->line = calloc(cap + 1, sizeof *t->line);
  return t->line != NULL;
}
static void tally_fini(tally *t) {
  for (size_t i = 0; i < t->n; i++) free(t->line[i]);
  free(t->line);
}
/* Takes over `line`; NULL means that memory ran out where it was made. */
static bool tally_add(tally *t, char *line) {
  if (line == NULL) return false;
  t->line[t->n++] = line;
  return true;
}

static bool tally_print(const char *title, tally *t) {
  count *c = calloc(t->n + 1, sizeof *c);
  if (c == NULL) return false;
  size_t n = 0;
  qsort(t->line, t->n, sizeof *t->line, by_text);
  for (size_t i = 0; i < t->n; i++) {
    if (n == 0 || strcmp(c[n - 1].line, t->line[i]) != 0) c[n++].line = t->line[i];
    c[n - 1].n++;
  }
  qsort(c, n, sizeof *c, by_count);
  heading(title);
  printf("%zu kinds\n", n);
  for (size_t i = 0; i < n; i++) {
    printf("  %6zu  ", c[i].n);
    put(c[i].line);
    putchar('\n');
  }
  free(c);
  return true;
}

/* ---- the summary ---- */

static void show_origin(const cap_graph *g) {
  const char *const unknown = "not given";
  heading("capture"), put(g->path), putchar('\n');
  heading("model"), put(*g->model ? g->model : unknown), putchar('\n');
  heading("framework"), put(*g->framework ? g->framework : unknown);
  if (*g->framework_version) putchar(' '), put(g->framework_version);
  if (*g->torch_version) fputs(", torch ", stdout), put(g->torch_version);
  putchar('\n');
}

static void show_symbols(const cap_graph *g) {
  if (g->n_symbols == 0) return;
  heading("sizes");
  for (size_t i = 0; i < g->n_symbols; i++) {
    const cap_symbol *x = &g->symbol[i];
    printf("%s%s = %" PRId64 ", from %" PRId64, i ? "; " : "", x->name, x->value, x->min);
    if (x->max < INT64_MAX) printf(" to %" PRId64, x->max);
  }
  putchar('\n');
  for (size_t i = 0; i < g->n_guards; i++) fputs("  ", stdout), put(g->guard[i]), putchar('\n');
}

static void show_leaves(const cap_graph *g, cap_kind kind, const char *title, bool list) {
  size_t n = 0;
  uint64_t bytes = 0, elements = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == kind) {
      n++;
      elements += (uint64_t)g->node[i].value->numel;
      bytes += (uint64_t)g->node[i].value->numel * rule_dtype_size(g->node[i].value->dtype);
    }
  heading(title);
  printf("%zu", n);
  if (n > 0) printf(", %" PRIu64 " elements, %" PRIu64 " bytes", elements, bytes);
  putchar('\n');
  for (size_t i = 0; list && i < g->n_nodes; i++)
    if (g->node[i].kind == kind) {
      fputs("  ", stdout), put(g->node[i].name), fputs(": ", stdout);
      put_output(&g->node[i].output[0]), putchar('\n');
    }
}

static void show_results(const cap_graph *g) {
  heading("outputs");
  printf("%zu\n", g->n_results);
  for (size_t i = 0; i < g->n_results; i++) {
    const cap_node *x = &g->node[g->result[i].node];
    fputs("  ", stdout), put(g->result[i].name), fputs(": ", stdout), put_output(&x->output[0]);
    fputs(", node ", stdout), put(x->id), putchar('\n');
  }
}

static bool show_operators(const cap_graph *g) {
  tally all, unknown = {0};
  bool ok = tally_init(&all, g->n_nodes) && tally_init(&unknown, g->n_nodes);
  for (size_t i = 0; ok && i < g->n_nodes; i++) {
    const cap_node *x = &g->node[i];
    if (x->kind != CAP_OP) continue;
    ok = tally_add(&all, strdup(x->op));
    if (ok && rule_schemas_find(g->schemas, x->op) == NULL) ok = tally_add(&unknown, strdup(x->op));
  }
  ok = ok && tally_print("operators", &all);
  if (ok && unknown.n > 0) ok = tally_print("no schema", &unknown);
  else if (ok) heading("no schema"), puts("none");
  tally_fini(&all);
  tally_fini(&unknown);
  return ok;
}

/* The literals that a kernel outside PyTorch depends on, "op: name value, ..."; *out NULL where
 * there are none. Returns: false when there is no memory. */
static bool attributes_of(const cap_graph *g, const cap_node *x, char **out) {
  *out = NULL;
  if (x->kind != CAP_OP || rule_is_aten(x->op) || rule_is_getitem(x->op)) return true;
  const rule_schema *s = rule_schemas_find(g->schemas, x->call->u.s);
  size_t size;
  FILE *f = open_memstream(out, &size);
  if (f == NULL) return false;
  bool any = false, ok = true;
  fputs(x->call->u.s, f);
  for (uint32_t i = 0; i < x->call->n && ok; i++) {
    const rule_term *t = x->call->child[i];
    if (t->kind == RULE_VAR || (t->kind == RULE_LIST && t->n > 0 && t->child[0]->kind == RULE_VAR))
      continue;
    char *text = rule_term_print(t, g->schemas, NULL);
    ok = text != NULL;
    fprintf(f, "%s%s%s%s", any ? ", " : ": ", s != NULL && i < s->n_args ? s->arg[i].name : "",
            s != NULL && i < s->n_args ? " " : "", ok ? text : "");
    free(text);
    any = true;
  }
  if (fclose(f) != 0) ok = false;
  if (ok && any) return true;
  free(*out);
  *out = NULL;
  return ok;
}

static bool show_attributes(const cap_graph *g) {
  tally t;
  bool ok = tally_init(&t, g->n_nodes);
  for (size_t i = 0; ok && i < g->n_nodes; i++) {
    char *line;
    ok = attributes_of(g, &g->node[i], &line);
    if (ok && line != NULL) ok = tally_add(&t, line);
  }
  if (ok && t.n > 0) ok = tally_print("attributes", &t);
  tally_fini(&t);
  return ok;
}

static bool show_summary(const cap_graph *g) {
  show_origin(g);
  show_symbols(g);
  heading("nodes"), printf("%zu\n", g->n_nodes);
  show_leaves(g, CAP_INPUT, "inputs", true);
  heading("input sets"), printf("%zu\n", g->n_sets);
  show_leaves(g, CAP_PARAMETER, "parameters", false);
  show_leaves(g, CAP_BUFFER, "buffers", false);
  show_leaves(g, CAP_CONSTANT, "constants", false);
  show_results(g);
  heading("trace"), puts(cap_has_trace(g) ? "yes" : "no");
  return show_operators(g) && show_attributes(g);
}

/* ---- Graphviz ---- */

static void put_label(const char *s) {
  for (; *s != '\0'; s++) {
    if (*s == '"' || *s == '\\') putchar('\\');
    putchar((unsigned char)*s < 32 || *s == 127 ? '?' : *s);
  }
}

static void dot_node(const cap_graph *g, size_t i) {
  static const char *const shape[] = {[CAP_INPUT] = "invhouse",
                                      [CAP_PARAMETER] = "box",
                                      [CAP_BUFFER] = "folder",
                                      [CAP_CONSTANT] = "note",
                                      [CAP_OP] = "ellipse"};
  const cap_node *x = &g->node[i];
  printf("  n%zu [shape=%s, label=\"", i, shape[x->kind]);
  put_label(x->name != NULL ? x->name : x->id);
  fputs("\\n", stdout);
  if (x->kind == CAP_OP) put_label(x->op), fputs("\\n", stdout);
  put_output(&x->output[0]);
  if (x->n_outputs > 1) printf(" and %zu more", x->n_outputs - 1);
  puts("\"];");
}

static void dot_edges(const rule_term *t, size_t to) {
  if (t->kind == RULE_VAR) printf("  n%" PRId64 " -> n%zu;\n", t->u.i, to);
  for (uint32_t i = 0; i < t->n; i++) dot_edges(t->child[i], to);
}

static void show_dot(const cap_graph *g) {
  fputs("digraph \"", stdout), put_label(*g->model ? g->model : g->path), puts("\" {");
  for (size_t i = 0; i < g->n_nodes; i++) {
    dot_node(g, i);
    if (g->node[i].call != NULL) dot_edges(g->node[i].call, i);
  }
  for (size_t i = 0; i < g->n_results; i++) {
    printf("  out%zu [shape=doubleoctagon, label=\"", i);
    put_label(g->result[i].name);
    printf("\"];\n  n%" PRIu32 " -> out%zu;\n", g->result[i].node, i);
  }
  puts("}");
}

/* ---- the command ---- */

static int usage_error(const char *what, const char *arg) {
  return cli_usage_error("show", what, arg);
}

static int take(void *ctx, const char *name, const char *v, const char *second) {
  show_args *a = ctx;
  (void)second;
  if (!name) {
    if (a->capture) return usage_error("one capture at a time", NULL);
    a->capture = v;
  } else if (strcmp(name, "dot") == 0) a->dot = true;
  else {
    if (a->n_inputs == MAX_INPUTS) return usage_error("too many input sets:", v);
    a->inputs[a->n_inputs++] = v;
  }
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse_args(int argc, char **argv, show_args *a) {
  const int status = cli_options_read("show", argc, argv, take, a);
  if (status >= 0) return status;
  if (a->capture == NULL) return usage_error("which capture?", NULL);
  if (a->n_inputs > 0 && !cap_is_archive(a->capture))
    return usage_error("--inputs is for archives of torch.export.save; a capture has its own",
                       NULL);
  return -1;
}

static iso_code show(const show_args *a, iso_error *err) {
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  iso_code code = rule_schemas_new(&schemas, err);
  const cap_options o = {.inputs = a->inputs, .n_inputs = a->n_inputs};
  if (code == ISO_OK) code = cap_load_with(a->capture, &o, schemas, &g, err);
  if (code == ISO_OK) {
    if (a->dot) show_dot(g);
    else if (!show_summary(g)) code = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  cap_free(g);
  rule_schemas_free(schemas);
  return code;
}

int cmd_show(int argc, char **argv) {
  show_args a = {0};
  iso_error err;
  const int early = parse_args(argc, argv, &a);
  if (early >= 0) return early;
  const iso_code code = show(&a, &err);
  if (code == ISO_OK) return CLI_EQUIVALENT;
  fprintf(stderr, "isomer: %s\n", err.msg);
  return CLI_ERROR;
}
