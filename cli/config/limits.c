/* Limits on a command; see limits.h. Memory is counted as the kernel counts resident pages: weights
 * are mapped and libtorch allocates on its own, so no allocator of ours could count it. */
#include "cli/config/limits.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "rules/tensor.h"

/* Beyond the limit, for memory that is reserved and never touched (the prover's tables, libtorch's
 * arenas). */
static const uint64_t reserve_bytes = UINT64_C(1) << 30;

const char limits_memory[] = "the memory limit was reached";

enum { KEPT_SHARE = 8 }; /* of the limit, what may be kept for tensors to come */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool limits_parse_bytes(const char *s, uint64_t *out) {
  char *end;
  if (*s < '0' || *s > '9') return false;
  errno = 0;
  uint64_t n = strtoull(s, &end, 10);
  if (errno) return false;
  const char *suffixes = "KMG", *unit = *end ? strchr(suffixes, *end) : NULL;
  if (*end && (!unit || end[1])) return false;
  if (unit && __builtin_mul_overflow(n, UINT64_C(1) << (10 * (unit - suffixes + 1)), &n))
    return false;
  *out = n;
  return n > 0;
}

bool limits_parse_seconds(const char *s, double *out) {
  char *end;
  if (strspn(s, "0123456789.eE+-") != strlen(s)) return false; /* no "inf", no hexadecimal */
  *out = strtod(s, &end);
  return *end == 0 && end != s && *out > 0 && isfinite(*out);
}

void limits_start(limits *l) {
  l->end = l->seconds > 0 ? now() + l->seconds : INFINITY;
  struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL);
  if (l->memory_bytes && l->memory_bytes / KEPT_SHARE < (uint64_t)5 << 28)
    rule_memory_keep((size_t)(l->memory_bytes / KEPT_SHARE));
#ifdef __SANITIZE_ADDRESS__
  return; /* its shadow, which is most of the address space, counts as data */
#endif
  struct rlimit r;
  if (l->memory_bytes == 0 || l->memory_bytes > UINT64_MAX / 2 || getrlimit(RLIMIT_DATA, &r) != 0)
    return;
  const rlim_t want = l->memory_bytes + reserve_bytes;
  if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur > want) {
    r.rlim_cur = want;
    setrlimit(RLIMIT_DATA, &r);
  }
}

static uint64_t resident_bytes(void) {
  FILE *f = fopen("/proc/self/statm", "re");
  unsigned long long size, resident = 0;
  if (!f) return 0;
  if (fscanf(f, "%llu %llu", &size, &resident) != 2) resident = 0;
  fclose(f);
  return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

const char *limits_reached(const limits *l) {
  if (interrupted) return "interrupted";
  if (now() > l->end) return "the time limit was reached";
  if (l->memory_bytes && resident_bytes() > l->memory_bytes)
    rule_memory_keep(0); /* what nobody uses is not to end it */
  if (l->memory_bytes && resident_bytes() > l->memory_bytes) return limits_memory;
  return NULL;
}

bool limits_interrupted(void) { return interrupted != 0; }
