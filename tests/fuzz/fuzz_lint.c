/* Inputs of lint of any bytes: they are checked or refused with one line. A report is whole: every
 * finding has a text, and its events lie within the ranks. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lint/lint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_report(const lint_report *r) {
  size_t n = 0;
  for (size_t i = 0; i < r->n_findings; i++) {
    const lint_finding *f = &r->finding[i];
    n += f->error;
    if (!f->text || !*f->text || f->kind >= LINT_KINDS) abort();
    for (size_t k = 0; k < f->n_events; k++)
      if (f->event[k].rank >= r->n_ranks) abort();
    for (size_t k = 0; k < f->n_ranks; k++)
      if (f->rank[k] >= r->n_ranks || (k && f->rank[k] <= f->rank[k - 1])) abort();
  }
  if (n != r->n_errors || n + r->n_warnings != r->n_findings) abort();
  if (r->progress[r->decides] == LINT_RUNS && r->makespan < 0) abort();
  /* A trace that hangs has a finding, or one that explains it. */
  if (r->progress[r->decides] == LINT_HANGS && !r->n_errors) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  char path[64];
  const int fd = memfd_create("lint", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, n) != (ssize_t)n) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const char *const input[] = {path};
  const lint_options o = lint_options_default();
  lint_report *r = NULL;
  iso_error err;
  const iso_code c = lint_run(input, 1, &o, &r, &err);
  if (!c) check_report(r);
  else if (c == ISO_INTERNAL || c == ISO_NOMEM || !*err.msg || strchr(err.msg, '\n')) abort();
  lint_free(r);
  close(fd);
  return 0;
}
