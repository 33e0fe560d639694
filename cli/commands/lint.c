/* isomer lint INPUT...: schedules, communication and placements of one program, checked without a
 * reference. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/capture.h"
#include "cli/cli.h"
#include "cli/config/options.h"
#include "cli/report/lint_report.h"
#include "cli/report/report.h"
#include "lint/placement/placement.h"
#include "validate/validate.h"

enum { LINT_CLEAN = 0, LINT_FINDINGS = 1, LINT_UNDECIDED = 3 };
enum { MAX_PIPELINE = 1 << 20 };

typedef struct options {
  const char **path;
  size_t n_paths;
  lint_options lint;
  const char *json, *sarif, *junit, *html, *baseline;
  lint_placement_options placement;
  bool github, strict, quiet;
} options;

static int usage_error(const char *what, const char *arg) {
  return cli_usage_error("lint", what, arg);
}

/* Returns: -1, or the exit status. */
static int set_count(const char *name, const char *v, int64_t min, int64_t *out) {
  char *end;
  errno = 0;
  const long long n = strtoll(v, &end, 10);
  if (*v < '0' || *v > '9' || errno || *end || n < min || n > MAX_PIPELINE) {
    char what[64];
    snprintf(what, sizeof what, "--%s takes a number, not", name);
    return usage_error(what, v);
  }
  *out = n;
  return -1;
}

/* An option or an input. Returns: -1, or the exit status. */
static int take(void *ctx, const char *name, const char *v, const char *second) {
  options *o = ctx;
  (void)second;
  if (!name) return o->path[o->n_paths++] = v, -1;
  if (strcmp(name, "stages") == 0) return set_count(name, v, 1, &o->lint.stages);
  if (strcmp(name, "microbatches") == 0) return set_count(name, v, 1, &o->lint.microbatches);
  if (strcmp(name, "max-in-flight") == 0) return set_count(name, v, 0, &o->lint.max_in_flight);
  if (strcmp(name, "progress") == 0) {
    o->lint.model = lint_model_named(v);
    return o->lint.model < 0 ? usage_error("no progress model", v) : -1;
  }
  if (strcmp(name, "seed") == 0) {
    int64_t seed = 0;
    const int status = set_count(name, v, 0, &seed);
    o->placement.seed = (uint64_t)seed;
    return status;
  }
  if (strcmp(name, "mesh") == 0) o->placement.mesh = v;
  else if (strcmp(name, "placements") == 0) o->placement.file = v;
  else if (strcmp(name, "json") == 0) o->json = v;
  else if (strcmp(name, "sarif") == 0) o->sarif = v;
  else if (strcmp(name, "junit") == 0) o->junit = v;
  else if (strcmp(name, "html") == 0) o->html = v, o->lint.timeline = true;
  else if (strcmp(name, "baseline") == 0) o->baseline = v;
  else if (strcmp(name, "github") == 0) o->github = true;
  else if (strcmp(name, "strict") == 0) o->strict = true;
  else o->quiet = true;
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o) {
  const int status = cli_options_read("lint", argc, argv, take, o);
  if (status >= 0) return status;
  return o->n_paths ? -1 : usage_error("an input is needed", NULL);
}

static iso_code write_one(const char *path, char *text, iso_error *err) {
  const iso_code c =
      text ? report_write(path, text, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  free(text);
  return c;
}

static iso_code write_files(const options *o, const lint_view *v, iso_error *err) {
  iso_code c = ISO_OK;
  if (o->json) c = write_one(o->json, lint_to_json(v), err);
  if (!c && o->sarif) c = write_one(o->sarif, lint_to_sarif(v), err);
  if (!c && o->junit) c = write_one(o->junit, lint_to_junit(v), err);
  if (!c && o->html) c = write_one(o->html, lint_to_html(v), err);
  return c;
}

static bool on_stdout(const options *o) {
  const char *const file[] = {o->json, o->sarif, o->junit, o->html};
  for (size_t i = 0; i < 4; i++)
    if (file[i] && strcmp(file[i], "-") == 0) return true;
  return false;
}

/* ---- captures ---- */

/* A folder with a graph.json, or an archive of torch.export.save. */
static bool is_capture(const char *path) {
  char graph[4096], head[4] = {0};
  struct stat st;
  if (stat(path, &st)) return false;
  if (S_ISDIR(st.st_mode)) {
    const int n = snprintf(graph, sizeof graph, "%s/graph.json", path);
    return n > 0 && (size_t)n < sizeof graph && stat(graph, &st) == 0;
  }
  FILE *f = fopen(path, "rbe");
  const bool zip = f && fread(head, 1, 4, f) == 4 && memcmp(head, "PK\3\4", 4) == 0;
  if (f) fclose(f);
  return zip;
}

/* Owns: malloc'ed. */
static iso_code read_text(const char *path, char **out, iso_error *err) {
  enum { MOST = 1 << 24 };
  FILE *f = fopen(path, "re");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  char *text = malloc(MOST + 1);
  const size_t n = text ? fread(text, 1, MOST + 1, f) : 0;
  const bool failed = ferror(f), large = n > MOST;
  fclose(f);
  iso_code c = !text    ? iso_fail(err, ISO_NOMEM, "out of memory")
               : failed ? iso_fail(err, ISO_IO, "%s: it could not be read", path)
               : large  ? iso_fail(err, ISO_LIMIT, "%s: larger than 16 MiB", path)
                        : ISO_OK;
  if (!c) text[n] = 0;
  if (!c && memchr(text, 0, n)) c = iso_fail(err, ISO_FORMAT, "%s: it is no text", path);
  if (c) free(text);
  else *out = text;
  return c;
}

static iso_code lint_graph(const options *o, lint_report **out, iso_error *err) {
  rule_schemas *schemas = NULL;
  val_engine *engine = NULL;
  cap_graph *g = NULL;
  char *text = NULL;
  lint_placement_options how = o->placement;
  val_options v = val_options_default();
  v.seed = how.seed;
  if (o->n_paths > 1) return iso_fail(err, ISO_USAGE, "%s: a capture stands alone", o->path[1]);
  iso_code c = rule_schemas_new(&schemas, err);
  if (!c) c = val_new(&v, schemas, &engine, err);
  if (!c) c = cap_load(o->path[0], schemas, &g, err);
  if (!c && how.file) c = read_text(how.file, &text, err);
  how.placements = text;
  if (!c) {
    const rule_oracle oracle = val_oracle(engine);
    c = lint_capture(g, &how, schemas, &oracle, out, err);
  }
  free(text);
  cap_free(g);
  val_free(engine);
  rule_schemas_free(schemas);
  return c;
}

static iso_code find(const options *o, lint_report **out, iso_error *err) {
  const char *const given = o->placement.mesh ? "mesh" : o->placement.file ? "placements" : NULL;
  if (is_capture(o->path[0])) return lint_graph(o, out, err);
  if (given)
    return iso_fail(err, ISO_USAGE, "%s: --%s is of a capture, which this is not", o->path[0],
                    given);
  return lint_run(o->path, o->n_paths, &o->lint, out, err);
}

static int run(const options *o, iso_error *err) {
  lint_report *r = NULL;
  lint_known known = {0};
  iso_code c = find(o, &r, err);
  if (!c && o->baseline) c = lint_known_load(o->baseline, r, &known, err);
  int status = CLI_ERROR;
  if (!c) {
    const lint_view v = {.r = r,
                         .path = o->path[0],
                         .known = o->baseline ? &known : NULL,
                         .strict = o->strict,
                         .quiet = o->quiet};
    FILE *text = on_stdout(o) ? stderr : stdout;
    c = write_files(o, &v, err);
    if (!c && o->github) lint_put_github(&v, text);
    if (!c) {
      lint_put_text(&v, text);
      status = lint_view_open(&v) ? LINT_FINDINGS : r->undecided ? LINT_UNDECIDED : LINT_CLEAN;
    }
  }
  lint_known_free(&known);
  lint_free(r);
  return status;
}

int cmd_lint(int argc, char **argv) {
  options o = {.lint = lint_options_default(), .path = calloc((size_t)argc, sizeof *o.path)};
  iso_error err = {0};
  if (!o.path) return fprintf(stderr, "isomer: out of memory\n"), CLI_ERROR;
  int status = parse(argc, argv, &o);
  if (status < 0) {
    status = run(&o, &err);
    if (status == CLI_ERROR) fprintf(stderr, "isomer: %s\n", err.msg);
  }
  free(o.path);
  return status;
}
