/* Certificates of any bytes: they are refused or malformed with a reason, or hold as far as the
 * form goes (nothing is run here). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check/check.h"
#include "tests/fuzz/gpt2_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const chk_options o = {.trust_rules = true};
  iso_error err;
  chk_report r;
  char path[64];
  if (!schemas) load();
  const int fd = memfd_create("certificate", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, n) != (ssize_t)n) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const iso_code c = chk_check(path, graph[0], graph[1], schemas, NULL, &o, &r, &err);
  if (c != ISO_OK) abort();
  if ((r.outcome != CHK_HOLDS) != (r.reason[0] != 0) || strchr(r.reason, '\n')) abort();
  chk_report_free(&r);
  close(fd);
  return 0;
}
