/* Preloaded into a program, clocks that run twenty times as fast from its first look at each: the
 * program finds itself on a machine that is as slow. A result that depends on a clock changes then
 * (tests/cli/load.py). */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 20, CLOCKS = 16, SECOND = 1000000000 };

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t) {
  static _Atomic int64_t first[CLOCKS];
  const long status = syscall(SYS_clock_gettime, id, t);
  if (status || id < 0 || id >= CLOCKS) return (int)status;
  const int64_t real = t->tv_sec * (int64_t)SECOND + t->tv_nsec;
  int64_t from = 0; /* no clock of a process that asks is at 0 */
  if (atomic_compare_exchange_strong(&first[id], &from, real)) from = real;
  const int64_t fast = from + TIMES * (real - from);
  *t = (struct timespec){fast / SECOND, fast % SECOND};
  return 0;
}
