/* How far a comparison is: on a terminal one line that changes, elsewhere a line once in ten
 * seconds, so that a log of hours says that something goes on and stays short. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/compare_int.h"

enum { SECONDS = 10 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_start(progress *p, bool wanted) {
  const double began = now();
  *p = (progress){.terminal = wanted && isatty(STDERR_FILENO), .began = began};
  p->lines = wanted && !p->terminal;
  p->next = began + SECONDS;
}

void progress_at(progress *p, const char *stage, size_t done, size_t total) {
  p->stage = stage;
  p->done = done;
  p->total = total;
  if (p->terminal) fprintf(stderr, "\r\033[K%s %zu/%zu", stage, done, total);
  progress_goes_on(p);
}

void progress_goes_on(progress *p) {
  if (!p->lines) return;
  const double t = now();
  if (t < p->next) return;
  p->next = t + SECONDS;
  if (p->stage)
    fprintf(stderr, "isomer: after %.0f s: %s %zu/%zu\n", t - p->began, p->stage, p->done,
            p->total);
  else fprintf(stderr, "isomer: after %.0f s\n", t - p->began);
}

void progress_end(const progress *p) {
  if (p->terminal) fputs("\r\033[K", stderr);
}
