#include "egraph/base/parallel.h"

#include <pthread.h>
#include <sched.h>

enum {
  MOST = 16,
  WORTH = 1 << 20
}; /* threads; elements that a part is worth a thread for: about a millisecond */

typedef struct part {
  void (*f)(void *ctx, int64_t from, int64_t to);
  void *ctx;
  int64_t from, to;
  pthread_t thread;
} part;

static void *run(void *p) {
  part *a = p;
  a->f(a->ctx, a->from, a->to);
  return NULL;
}

void iso_parallel(unsigned threads, int64_t n, int64_t each,
                  void (*f)(void *ctx, int64_t from, int64_t to), void *ctx) {
  part p[MOST];
  const int64_t worth = each >= WORTH ? n : n / (WORTH / (each > 0 ? each : 1));
  int64_t parts = threads < MOST ? threads : MOST;
  if (parts > worth) parts = worth;
  if (parts < 1) parts = 1;
  for (int64_t i = 0, at = 0; i < parts; i++) {
    p[i] = (part){.f = f, .ctx = ctx, .from = at};
    p[i].to = at = at + n / parts + (i < n % parts);
  }
  int64_t started = 1;
  while (started < parts && pthread_create(&p[started].thread, NULL, run, &p[started]) == 0)
    started++;
  (void)run(&p[0]);
  for (int64_t i = started; i < parts; i++) (void)run(&p[i]);
  for (int64_t i = 1; i < started; i++) pthread_join(p[i].thread, NULL);
}

unsigned iso_processors(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return (unsigned)CPU_COUNT(&set);
#endif
  return 1;
}
