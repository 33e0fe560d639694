/* `isomer saturate FILE.sexp`: equality saturation on a workload file, or congruence closure of its
 * cases. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/config/options.h"
#include "cli/report/report.h"
#include "cli/saturate/saturate.h"
#include "egraph/base/vec.h"

enum { WORK = 50000000 }; /* steps of the search for the best DAG */

typedef struct args {
  const char *file, *import, *json, *serialize, *dot, *html;
  bool full_search, extract, explain, dag;
  size_t batches, work, jobs;
  const char *only;
} args;

typedef struct job {
  const args *a;
  FILE *text, *json, *page; /* the last two NULL: not asked for */
  const eg_workload *w;
  cli_sat_language *l;
  bool first;         /* of a JSON list */
  eg_iteration *done; /* of the run under way */
  size_t n_done, cap_done;
  eg_rule_iteration *rule; /* for the page: `n_rules` of each iteration but the start */
  size_t n_rules, cap_rule;
  bool lost; /* no memory for them */
} job;

static int fail(const char *what) {
  fprintf(stderr, "isomer: %s\n", what);
  return CLI_ERROR;
}

static bool selected(const args *a, size_t k) {
  if (!a->only) return true;
  for (const char *p = a->only; *p; p += *p == ',') {
    char *end;
    if (strtoull(p, &end, 10) == k && end != p) return true;
    p = end;
    while (*p && *p != ',') p++;
  }
  return false;
}

/* ---- memory: the peak since the last reset, where the system can reset it ---- */

static void reset_peak(bool first) {
  if (!first) malloc_trim(0); /* what the run before left is not this one's */
  FILE *f = fopen("/proc/self/clear_refs", "w");
  if (!f) return;
  fputs("5", f);
  fclose(f);
}

static uint64_t peak_bytes(void) {
  char line[256];
  unsigned long long kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %llu", &kb) == 1) break;
  if (f) fclose(f);
  if (kb) return 1024 * (uint64_t)kb;
  struct rusage u;
  return getrusage(RUSAGE_SELF, &u) ? 0 : 1024 * (uint64_t)u.ru_maxrss;
}

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- saturation ---- */

/* Kept, and printed after the run, so that printing is not timed. */
static bool keep_iteration(void *ctx, eg_sat *s, size_t i, const eg_iteration *it) {
  job *j = ctx;
  (void)s;
  if (!iso_grow(j->done, j->cap_done, i + 1) ||
      (it->rule && !iso_grow(j->rule, j->cap_rule, i * j->n_rules + 1))) {
    j->lost = true;
    return false;
  }
  j->done[i] = *it;
  if (it->rule && j->n_rules)
    memcpy(j->rule + (i - 1) * j->n_rules, it->rule, j->n_rules * sizeof *j->rule);
  j->n_done = i + 1;
  return true;
}

static void put_iterations(const job *j) {
  fprintf(j->text, "  %4s %10s %10s %10s %10s\n", "", "e-nodes", "e-classes", "matches", "ms");
  for (size_t i = 0; i < j->n_done; i++) {
    const eg_iteration *it = &j->done[i];
    if (j->json)
      fprintf(j->json, "%s\n      {\"nodes\": %zu, \"classes\": %zu, \"matches\": %zu}",
              i ? "," : "", it->nodes, it->classes, i ? it->matches : 0);
    fprintf(j->text, "  %4zu %10zu %10zu", i, it->nodes, it->classes);
    if (i)
      fprintf(j->text, " %10zu %10.2f", it->matches,
              1e3 * (it->search_s + it->apply_s + it->rebuild_s));
    fputc('\n', j->text);
  }
}

static iso_code prepare(job *j, eg_sat **s, eg_rules **r, eg_class **root, iso_error *err) {
  eg_sat_options so = {.analysis = cli_sat_language_analysis(j->l), .log = j->a->explain};
  iso_code code = eg_sat_new(&so, s, err);
  if (!code && !(*root = calloc(eg_workload_count_starts(j->w) + 1, sizeof **root)))
    code = iso_fail(err, ISO_NOMEM, "out of memory");
  if (!code) code = eg_workload_start(j->w, *s, *root, err);
  if (!code) code = eg_rules_new(*s, r, err);
  return code ? code : cli_sat_language_rules(j->l, *s, *r, err);
}

static void put_stop(job *j, const eg_rules *r, const eg_run_report *told) {
  fprintf(j->text, "  %s after %zu iterations", eg_stop_name(told->stop), told->iterations);
  if (told->culprit != SIZE_MAX && told->culprit_matches)
    fprintf(j->text, "; searching %s, which had %zu matches", eg_rules_name(r, told->culprit),
            told->culprit_matches);
  else if (told->culprit != SIZE_MAX)
    fprintf(j->text, "; most e-nodes came from %s (%zu)", eg_rules_name(r, told->culprit),
            told->culprit_nodes);
  fputc('\n', j->text);
}

static iso_code put_page(job *j, const eg_rules *r, const eg_workload_run *w, eg_stop stop,
                         iso_error *err) {
  if (!j->page) return ISO_OK;
  const char **name = calloc(j->n_rules + 1, sizeof *name);
  if (!name) return iso_fail(err, ISO_NOMEM, "out of memory for a page");
  for (size_t k = 0; k < j->n_rules; k++) name[k] = eg_rules_name(r, k);
  cli_sat_page_run_put(j->page, &(cli_sat_page_run){.scheduler = w->backoff ? "backoff" : "simple",
                                                    .stop = eg_stop_name(stop),
                                                    .it = j->done,
                                                    .n = j->n_done,
                                                    .rule = j->rule,
                                                    .name = name,
                                                    .n_rules = j->n_rules});
  free(name);
  return ISO_OK;
}

static iso_code write_graph(const eg_sat *s, const eg_class *root, size_t n, const char *path,
                            bool dot, iso_error *err) {
  FILE *f = fopen(path, "w");
  bool ok = f && (dot ? eg_sat_dot(s, f) : eg_sat_write_json(s, NULL, root, n, f));
  if (f && fclose(f)) ok = false;
  return ok ? ISO_OK : iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
}

static iso_code run_one(job *j, const eg_workload_run *w, iso_error *err) {
  eg_sat *s = NULL;
  eg_rules *r = NULL;
  eg_class *root = NULL;
  eg_run_report told;
  reset_peak(j->first);
  iso_code code = prepare(j, &s, &r, &root, err);
  eg_run_options o = eg_run_options_default();
  o.scheduler = w->backoff ? EG_BACKOFF : EG_SIMPLE;
  o.iteration_limit = w->iteration_limit;
  o.node_limit = w->node_limit;
  o.mem_limit_bytes = 0; /* a workload has the limits that it names */
  o.full_search = j->a->full_search;
  o.jobs = (unsigned)j->a->jobs;
  o.by_rule = j->page != NULL;
  j->n_rules = r ? eg_rules_count(r) : 0;
  o.ctx = j;
  o.each = keep_iteration;
  j->n_done = 0;
  j->lost = !iso_grow(j->done, j->cap_done, 128);
  fprintf(j->text, "%s, %s\n", j->w->name, w->backoff ? "backoff" : "simple");
  if (j->json)
    fprintf(j->json, "%s\n    {\"scheduler\": \"%s\", \"iterations\": [", j->first ? "" : ",",
            w->backoff ? "backoff" : "simple");
  j->first = false;
  /* A clock of the processor is a system call: that of the process has no other one in between. */
  const double own = now(CLOCK_THREAD_CPUTIME_ID), t0 = now(CLOCK_MONOTONIC),
               cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  if (!code) code = eg_sat_run(s, r, &o, &told, err);
  const double cpu_seconds = now(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               seconds = now(CLOCK_MONOTONIC) - t0,
               own_seconds = now(CLOCK_THREAD_CPUTIME_ID) - own;
  if (!code) code = cli_sat_language_error(j->l, err);
  if (!code && j->lost) code = iso_fail(err, ISO_NOMEM, "out of memory for a report");
  const uint64_t peak = peak_bytes();
  put_iterations(j);
  if (!code) {
    put_stop(j, r, &told);
    fprintf(j->text, "  %.3f s, %.3f s of processor, peak memory %.1f MB\n", seconds, cpu_seconds,
            1e-6 * (double)peak);
    if (j->json)
      fprintf(j->json,
              "],\n     \"stop\": \"%s\", \"seconds\": %.6f, \"cpu_seconds\": %.6f, "
              "\"first_thread_cpu_seconds\": %.6f, \"peak_rss_bytes\": %" PRIu64 "}",
              eg_stop_name(told.stop), seconds, cpu_seconds, own_seconds, peak);
  }
  if (!code) code = put_page(j, r, w, told.stop, err);
  if (!code)
    code = cli_sat_show(&(cli_sat_shown){s, r, root, eg_workload_count_starts(j->w), j->text,
                                         j->a->extract, j->a->explain, j->a->dag, j->a->work},
                        err);
  if (!code && j->a->serialize)
    code = write_graph(s, root, eg_workload_count_starts(j->w), j->a->serialize, false, err);
  if (!code && j->a->dot) code = write_graph(s, NULL, 0, j->a->dot, true, err);
  free(root);
  eg_rules_free(r);
  eg_sat_free(s);
  return code;
}

static iso_code run_case(job *j, const eg_workload_case *c, iso_error *err) {
  eg_sat *s = NULL;
  uint64_t checksum = 0;
  eg_closure_cost cost = {0};
  reset_peak(j->first);
  iso_code code = eg_sat_new(NULL, &s, err);
  if (!code) code = eg_workload_close(c, j->a->batches, s, &checksum, &cost, err);
  if (!code) {
    const size_t nodes = eg_sat_count_nodes(s), classes = eg_sat_count_classes(s);
    const uint64_t peak = peak_bytes();
    fprintf(j->text,
            "%s %" PRIu64 " %" PRIu64 ": %zu e-nodes, %zu e-classes, checksum %016" PRIx64
            ", %.3f ms, peak memory %.1f MB\n",
            c->mirror ? "mirror" : "random", c->terms, c->seed, nodes, classes, checksum,
            1e3 * cost.seconds, 1e-6 * (double)peak);
    if (j->json)
      fprintf(j->json,
              "%s\n    {\"nodes\": %zu, \"classes\": %zu, \"checksum\": \"%016" PRIx64
              "\", \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_rss_bytes\": %" PRIu64 "}",
              j->first ? "" : ",", nodes, classes, checksum, cost.seconds, cost.cpu_seconds, peak);
    j->first = false;
  }
  eg_sat_free(s);
  return code;
}

static iso_code run_all(job *j, iso_error *err) {
  iso_code code = ISO_OK;
  j->first = true;
  if (j->json) fprintf(j->json, "{\"%s\": [", j->w->closure ? "cases" : "runs");
  for (size_t k = 0; k < j->w->n_cases && !code; k++)
    if (selected(j->a, k)) code = run_case(j, &j->w->at[k], err);
  if (!code && !j->w->closure) code = cli_sat_language_new(j->w, &j->l, err);
  for (size_t k = 0; k < j->w->n_runs && !code; k++)
    if (selected(j->a, k)) code = run_one(j, &j->w->run[k], err);
  if (j->json) fputs("\n]}\n", j->json);
  cli_sat_language_free(j->l);
  return code;
}

/* ---- files and arguments ---- */

static iso_code read_whole(const char *path, char **out, size_t *n, iso_error *err) {
  FILE *f = fopen(path, "rb");
  size_t cap = 0;
  *out = NULL;
  *n = 0;
  iso_code code = f ? ISO_OK : iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  while (!code && !feof(f)) {
    if (!iso_grow(*out, cap, *n + 65536))
      code = iso_fail(err, ISO_NOMEM, "%s: out of memory", path);
    else *n += fread(*out + *n, 1, cap - *n, f);
    if (!code && ferror(f)) code = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  }
  if (f) fclose(f);
  return code;
}

/* JSON is collected first, so that an error leaves nothing half-written. */
static iso_code write_json(const args *a, const char *text, size_t n, iso_error *err) {
  if (!strcmp(a->json, "-")) {
    fwrite(text, 1, n, stdout); /* main looks at the stream's state */
    return ISO_OK;
  }
  FILE *f = fopen(a->json, "w");
  bool ok = f && fwrite(text, 1, n, f) == n;
  if (f && fclose(f)) ok = false;
  return ok ? ISO_OK : iso_fail(err, ISO_IO, "%s: %s", a->json, strerror(errno));
}

static iso_code saturate(const args *a, iso_error *err) {
  char *text = NULL, *json = NULL, *page = NULL;
  size_t n = 0, n_json = 0, n_page = 0;
  eg_workload *w = NULL;
  job j = {.a = a, .text = a->json && !strcmp(a->json, "-") ? stderr : stdout};
  static char buffer[1 << 14];
  setvbuf(j.text, buffer, _IOFBF,
          sizeof buffer); /* a line of stderr would be a system call, on the clock */
  iso_code code = read_whole(a->import ? a->import : a->file, &text, &n, err);
  if (!code && !a->import) code = eg_workload_parse(text, n, a->file, &w, err);
  if (!code && ((a->json && !(j.json = open_memstream(&json, &n_json))) ||
                (a->html && !(j.page = open_memstream(&page, &n_page)))))
    code = iso_fail(err, ISO_NOMEM, "out of memory");
  j.w = w;
  if (!code && a->import)
    code = cli_sat_import(
        a->import, text, n,
        &(cli_sat_extraction){.dag = a->dag, .work = a->work, .text = j.text, .json = j.json}, err);
  free(text);
  if (!code && w) {
    if (j.page) cli_sat_page_open(j.page, w->name);
    code = run_all(&j, err);
    if (j.page) cli_sat_page_close(j.page);
    if (code && w->name[0]) iso_prefix(err, "%s: ", a->file);
  }
  free(j.done);
  free(j.rule);
  if (j.json && fclose(j.json) && !code) code = iso_fail(err, ISO_NOMEM, "out of memory");
  if (j.page && fclose(j.page) && !code) code = iso_fail(err, ISO_NOMEM, "out of memory");
  if (!code && a->json) code = write_json(a, json, n_json, err);
  if (!code && a->html) code = report_write(a->html, page, err);
  free(json);
  free(page);
  eg_workload_free(w);
  fflush(j.text);
  return code;
}

static int usage_error(const char *what, const char *arg) {
  return cli_usage_error("saturate", what, arg);
}

/* A number from 1 on, of nine digits at most. */
static bool read_count(const char *v, size_t *out) {
  return *v && strlen(v) <= 9 && strspn(v, "0123456789") == strlen(v) &&
         (*out = strtoull(v, NULL, 10));
}

static int take(void *ctx, const char *name, const char *v, const char *second) {
  args *a = ctx;
  (void)second;
  if (!name) {
    if (a->file) return usage_error("one file is expected", NULL);
    a->file = v;
  } else if (strcmp(name, "full-search") == 0) a->full_search = true;
  else if (strcmp(name, "import") == 0) a->import = v;
  else if (strcmp(name, "extract") == 0) {
    if (strcmp(v, "tree") != 0 && strcmp(v, "dag") != 0)
      return usage_error("--extract needs tree or dag, not", v);
    a->extract = true;
    a->dag = *v == 'd';
  } else if (strcmp(name, "work") == 0) {
    if (!read_count(v, &a->work)) return usage_error("--work needs a number from 1, not", v);
  } else if (strcmp(name, "explain") == 0) a->extract = a->explain = true;
  else if (strcmp(name, "serialize") == 0) a->serialize = v;
  else if (strcmp(name, "dot") == 0) a->dot = v;
  else if (strcmp(name, "html") == 0) a->html = v;
  else if (strcmp(name, "jobs") == 0) {
    if (!read_count(v, &a->jobs) || a->jobs > 16)
      return usage_error("--jobs needs a number from 1 to 16, not", v);
  } else if (strcmp(name, "json") == 0) a->json = v;
  else if (strcmp(name, "only") == 0) {
    if (!*v || strspn(v, "0123456789,") != strlen(v))
      return usage_error("--only needs numbers, not", v);
    a->only = v;
  } else if (!read_count(v, &a->batches))
    return usage_error("--batches needs a number from 1, not", v);
  return -1;
}

/* Returns: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, args *a) {
  a->batches = 1;
  a->work = WORK;
  const int status = cli_options_read("saturate", argc, argv, take, a);
  if (status >= 0) return status;
  if (a->import && (a->file || a->explain || a->serialize || a->dot || a->html))
    return usage_error(
        "with --import an e-graph is read, and terms are extracted: no rules, no runs", NULL);
  return a->file || a->import ? -1 : usage_error("a file is expected", NULL);
}

int cmd_saturate(int argc, char **argv) {
  args a = {0};
  iso_error err = {0};
  const int early = parse(argc, argv, &a);
  if (early >= 0) return early;
  return saturate(&a, &err) ? fail(err.msg) : 0;
}
