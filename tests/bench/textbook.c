/* The textbook e-graph on a workload file: `textbook saturate FILE --json - [--only N]`, output as
 * `isomer saturate` gives it. Only runs with the simple scheduler; others, and rules with guards,
 * are left out: an empty list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/support/textbook.h"

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(const eg_workload *w, size_t k, const char *comma) {
  textbook *t = textbook_new();
  if (w->run[k].backoff || !textbook_load(t, w)) {
    textbook_free(t);
    return;
  }
  bool changed = true;
  size_t i = 0;
  printf("%s{\"scheduler\": \"simple\", \"iterations\": [{\"nodes\": %zu, \"classes\": %zu, "
         "\"matches\": 0}",
         comma, textbook_count_nodes(t), textbook_count_classes(t));
  const double t0 = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  for (; changed && i < w->run[k].iteration_limit; i++) {
    const size_t n = textbook_iterate(t, &changed);
    printf(", {\"nodes\": %zu, \"classes\": %zu, \"matches\": %zu}", textbook_count_nodes(t),
           textbook_count_classes(t), n);
  }
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  printf("], \"stop\": \"%s\", \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_rss_bytes\": %llu}",
         changed ? "iteration-limit" : "saturated", now(CLOCK_MONOTONIC) - t0,
         now(CLOCK_PROCESS_CPUTIME_ID) - cpu, 1024ULL * (unsigned long long)u.ru_maxrss);
  textbook_free(t);
}

int main(int argc, char **argv) {
  static char text[1 << 22];
  size_t only = SIZE_MAX;
  const char *file = NULL;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--only") && i + 1 < argc) only = strtoul(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--json")) i++;
    else if (strcmp(argv[i], "saturate") != 0) file = argv[i];
  }
  FILE *f = file ? fopen(file, "rb") : NULL;
  eg_workload *w = NULL;
  iso_error err = {0};
  const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
  if (f) fclose(f);
  if (!n || eg_workload_parse(text, n, file, &w, &err)) {
    fprintf(stderr, "textbook: %s\n", err.code ? err.msg : "no file");
    return 2;
  }
  printf("{\"runs\": [");
  const char *comma = "";
  for (size_t k = 0; k < w->n_runs; k++)
    if (only == SIZE_MAX || only == k) {
      run(w, k, comma);
      comma = ", ";
    }
  puts("]}");
  eg_workload_free(w);
  return 0;
}
